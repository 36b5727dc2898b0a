"""Start: what this workbook is, what to look at, what to try, where everything is."""

from collections.abc import Sequence

from exporters.book import Book, Sheet, cell, quoted
from exporters.layout import PICK_ROW, PLAY, PROMPT_COL
from exporters.story import Story, Try

SHEET = "Start"
LINE, LONGEST = 15, 116  # a row's height in points, the characters of a line
PURPOSES = {
    PLAY: "type a sentence in the yellow cell: it continues itself, and the next word is ranked",
    "Study": "what was asked of the model, and what came out",
    "Switches": "switch heads and MLPs off: 1 works, 0 is off; what each is worth stands beside",
    "Embedding": "from token ids to vectors",
    "Readout": "from the last residual to logits and probabilities",
    "Heads": "every attention pattern side by side: each column says where one token looks",
    "Lens": "what the model would say if it stopped after each sublayer",
    "Attribution": "what each head, MLP and embedding adds to the target word’s logit",
    "Trajectory": "the residual stream walking across a plane that you choose",
    "Words": "three maps of the vocabulary, and how much each leaves out",
    "Vocabulary": "the embedding: a column per word; blue: type over any of them",
    "Weights": "embeddings and the last norm; blue: type over any of them",
    "Sampling": "how each next word is chosen, step by step: ranks, top-k, top-p, random number",
    "Printed": "the source’s tables: printed, recomputed (it follows your edits), difference",
    "Map": "the architecture, top to bottom: click a step to go to its cells",
    "Index": "every block: where it stands, its shape, its meaning, whether it was edited",
    "Check": "whether the workbook holds together: all should say ok until you edit",
    "Source": "the model as it was built, for `cellformer diff` and `cellformer import`",
}


IN_LARGE = {
    PLAY: "the prompt as token ids: type others where they are live, and the next token is ranked",
    "Switches": "switch heads and MLPs off: 1 works, 0 is off",
    "Index": "every block: where it stands, its shape, its meaning",
    "Source": "what the workbook was built from",
}


def page(book: Book, story: Story) -> None:
    """The first thing that a reader sees."""
    sheet = book.sheet(SHEET)
    book.tries = story.tries
    sheet.widths = {0: 3, 1: 24, 2: 96, 3: 24}
    sheet.put(0, 0, story.title, "title")
    sheet.put(1, 0, story.source, "note")
    row = _section(sheet, 3, "What this is", story.about)
    sheet.put(row, 0, "Three things to try", "heading")
    for k, suggestion in enumerate(story.tries, 1):
        where = _cell_of(book, suggestion)
        sheet.put(row + k, 0, str(k), "row label")
        sheet.link(row + k, 1, where.replace("'", ""), where)
        sheet.put(row + k, 2, suggestion.text, "wrapped")
        sheet.heights[row + k] = LINE * (1 + len(suggestion.text) // LONGEST)
        if suggestion.watch:
            seen = book.at(*suggestion.watch)
            sheet.link(row + k, 3, f"see {seen.replace(chr(39), '')}", seen)
    row += len(story.tries) + 2
    row = _section(sheet, row, "What to look at", story.look)
    sheet.put(row, 0, "Sheets", "heading")
    for name in book.sheets:
        if name != SHEET:
            row += 1
            sheet.link(row, 1, name, f"{quoted(name)}!A1")
            sheet.put(row, 2, book.sheets[name].purpose or purpose(name, book.large))
    sheet.put(row + 2, 0, "How to read the cells", "heading")
    legend = [
        ("weight blue", 0.5, "blue: typed in, a weight or a setting; change it"),
        ("activation black", 0.5, "black: a formula over cells of the same sheet"),
        ("activation green", 0.5, "green: a formula that reads another sheet"),
    ]
    for k, (style, value, text) in enumerate(legend, row + 3):
        sheet.put(k, 1, value, style)
        sheet.put(k, 2, text)


def _section(sheet: Sheet, row: int, heading: str, lines: Sequence[str]) -> int:
    sheet.put(row, 0, heading, "heading")
    for k, line in enumerate(lines, 1):
        sheet.put(row + k, 1, line)
    return row + len(lines) + 2


def _cell_of(book: Book, suggestion: Try) -> str:
    if isinstance(suggestion.cell, int):
        return f"{PLAY}!{cell(PICK_ROW, PROMPT_COL + suggestion.cell)}"
    return book.at(*suggestion.cell)


def purpose(name: str, large: bool) -> str:
    """What a sheet is for, in a line; some hold less in a large workbook."""
    kind, _, layer = name.partition(" ")
    if large and name in IN_LARGE:
        return IN_LARGE[name]
    if kind == "Block":
        return f"layer {layer}: attention and MLP, step by step"
    if kind == "Vocabulary":
        return PURPOSES[kind]
    return f"layer {layer}: type over any of them" if layer else PURPOSES[name]
