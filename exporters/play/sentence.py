"""The typed sentence: its cell, a line about what became of it, and it as a text. Two of them may
stand on Play; the second one's blocks have a prefix."""

from cellformer.engine.cells.expression import Expression
from cellformer.engine.cells.functions import AND, IF, NOT, OR, SUBSTITUTE, UNICHAR
from cellformer.engine.cells.language import AsIs, worded
from cellformer.engine.cells.name import ENCODER, SECOND
from cellformer.engine.cells.texts import readable
from cellformer.engine.models import prompt_status as status
from cellformer.engine.models.answering import Rules
from cellformer.engine.text import tokenizing
from cellformer.engine.text.tokenizer import mask_of, shown
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.model.block_sheets import PROMPT_COL
from cellformer.exporters.model.layout import token_text
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.model.words import BY_HAND

WIDE, TWO_LINES = 11, 36  # columns of a sentence, points
WORDS_COL = 7  # of what its words mean
APOSTROPHE = (
    "If a sentence begins with an apostrophe, type two apostrophes. Programs do not show the "
    "first: it marks a text."
)
SAID = {  # the cells of a conversation, each below the other
    "system": "System",
    "earlier": "earlier turns",
    "you": "You",
    "begun": "answer so far",
}
NEXT_WORD = (
    "the answer plus the likeliest next token. To continue, type that token above. ∎ marks the end"
)
TO_GO_ON = "copy the last line of Chat, and paste that line as a value into ‘earlier turns’"
NONE_HERE = {
    "system": "this model’s chat template has no system text",
    "earlier": "the chat template writes earlier turns in another way; only one turn is possible",
}
RULES = (
    "the command ‘generate’ also follows the rules for answers in the model file, for example "
    "‘no repeats’"
)
BESIDE = {PROMPT_COL - 1: "row label", PROMPT_COL: "note"}  # of a label and a note: their styles
NOTE_COL = 7  # beside the message
ASKED = {  # the sheet's purpose, and the heading above the sentence
    "source": (
        "type a sentence; the encoder reads the sentence, and the decoder answers",
        "Type a source sentence; the decoder answers below",
    ),
    "chat": (
        "type in the yellow cell ‘You’, and read the model’s answer",
        "Talk to the model: type in the yellow cells",
    ),
    "sentence": ("type two sentences, and see their similarity", "Type a sentence"),
    "masked word": (
        "type a sentence with a mask; the sheet ranks the words that fit the mask",
        "Type a sentence with {name}: the model reads each token together with all others",
    ),
    "class": (
        "type a text, and see the text’s class",
        "Type a text. The text’s classes are ranked below",
    ),
    "token class": (
        "type a text, and see the class of each token",
        "Type a text. Each token of the text gets a class",
    ),
}
NO_TEXT = "type token ids below: the tokenizer has no formulas here, or no text gives these ids"


def add(book: ModelBook, ws: Composer, top: int, prefix: str = "") -> None:
    """Add the yellow cell, and the line about the typed sentence."""
    another = prefix == f"{SECOND}."
    ws.sheet.put(top, 0, "Type another one" if another else asked(book)[1], "heading")
    ws.sheet.down(
        top - 1, WORDS_COL, [BY_HAND] if book.by_hand and not book.words else book.words, "note"
    )
    if book.plan.chat:
        conversation(book, ws, top + 1)
    elif f"{prefix}sentence" in book.graph.blocks:
        _yellow(ws, top + 1, "sentence", f"{prefix}sentence")
        _message(book, ws, top + 2, prefix)
    elif book.plan.answers and not prefix:
        ws.sheet.put(top + 1, 0, tokenizing.refusal(book.model.reader), "note")
    elif not book.live:
        ws.sheet.put(top + 2, PROMPT_COL, NO_TEXT, "note")


def _yellow(ws: Composer, row: int, label: str, name: str) -> None:
    """Add a yellow cell for a text, with its label."""
    ws.lay(ws.book.graph[name], (row, PROMPT_COL), "sentence", label=label)
    ws.sheet.notes[row, PROMPT_COL] = worded(APOSTROPHE)
    ws.sheet.merged.append(ws.sheet[row, PROMPT_COL : PROMPT_COL + WIDE].rect)


def add_source(book: ModelBook, ws: Composer, top: int) -> None:
    """Add the source sentence, and below its tokens the rules that the answer's cells do not
    apply."""
    add(book, ws, top, f"{ENCODER}.")
    rules = book.model.rules
    if rules != (rules.in_cells if book.plan.ranks_every_token else Rules()):
        ws.sheet.put(book.plan.parts["source tokens"] - 1, NOTE_COL, RULES, "note")


def _message(book: ModelBook, ws: Composer, row: int, prefix: str = "") -> None:
    """Add the line about the typed sentence."""
    said = ws.show(
        f"{prefix}message",
        (row, PROMPT_COL),
        status.message(book.graph, prefix, book.plan.continues, token_text(book, 0)),
        "note",
    )
    ws.mark(said, "differs", status.is_silent(said))


def conversation(book: ModelBook, ws: Composer, top: int) -> None:
    """Add the yellow cells of a conversation, the text that they become, and the line about it."""
    for row, (name, label) in enumerate(SAID.items(), top):
        if name == "begun" and book.plan.whole:
            continue
        if f"chat.{name}" in book.graph.blocks:
            _yellow(ws, row, label, f"chat.{name}")
        else:
            ws.sheet.lines(row, [(label, NONE_HERE[name])], BESIDE)
    row = top + len(SAID) - book.plan.whole
    in_a_line = SUBSTITUTE(book.graph["sentence"][0, 0], UNICHAR(10), " ↵ ")
    ws.show("reads", (row, PROMPT_COL), in_a_line, "note", label=worded("model’s input"))
    _message(book, ws, row + 1)


def add_text(book: ModelBook, ws: Composer, top: int) -> None:
    """Add the sentence and its continuation as one text, if tokens have texts."""
    g, sheet, at = book.graph, ws.sheet, (top, PROMPT_COL)
    if "text.whole" in g.blocks:
        is_answer = book.plan.chat or book.plan.sources
        sheet.put(top, PROMPT_COL - 1, worded("answer") if is_answer else "as text", "line label")
        typed = "" if is_answer else g["sentence"][0, 0] & ""
        ws.show("text", at, answered(book, g["text.whole"][0, 0], typed), "line")
        sheet.merged.append(sheet[top, PROMPT_COL : PROMPT_COL + WIDE].rect)
        sheet.heights[top] = TWO_LINES
        if "chat.so_far" in g.blocks:
            sheet.lines(top + 1, [(worded("to go on"), TO_GO_ON)], BESIDE)
    elif book.plan.chat:
        ws.show("text", at, _with_next(book), "text", label=worded("and now"))
        sheet.put(top + 1, PROMPT_COL, NEXT_WORD, "note")
    elif book.plan.answers and "sentence" in g.blocks:
        ws.show("text", at, _with_next(book), "text", label="as text")
        if has_room(book):
            built = readable(book.model.vocabulary.decode(book.passage.ids))
            sheet.lines(top + 1, [("as built, in full", AsIs(built))], BESIDE)


def asked(book: ModelBook) -> tuple[str, str]:
    """The sheet's purpose, and the heading above the sentence."""
    plan, in_yellow = book.plan, "type a sentence in the yellow cell: "
    ids = "the prompt as token ids: type other ids in the live cells to rank the next token"
    if plan.live:
        return ids, worded("Live parts: {parts}. The prompt is fixed", parts=", ".join(plan.live))
    kind = "source" if plan.sources else "chat" if plan.chat else plan.gives
    if kind in ASKED:
        purpose, heading = ASKED[kind]
        mask = mask_of(book.model.vocabulary)
        name = worded("a token") if mask is None else shown(book.model.vocabulary.texts)[mask]
        return worded(purpose), worded(heading, name=name)
    if plan.answers and "sentence" not in book.graph.blocks:
        return ids, "The prompt: type other token ids"
    if plan.answers:
        ranked = "the sheet ranks the next tokens"
        return in_yellow + ranked, f"Type a sentence; {ranked} below"
    if not plan.continues:
        purpose = f"{in_yellow}the sheet ranks the words that fit at a position"
        return purpose, "Type a sentence; the model reads each word with all the others"
    ranked = book.of_words("the sheet ranks the next word", "the sheet ranks the next letter")
    goes_on = "the model continues it"
    if has_room(book):
        return f"{in_yellow}{goes_on}, and {ranked}", f"Type a sentence; {goes_on}"
    return in_yellow + ranked, f"Type a sentence; {ranked}"


def has_room(book: ModelBook) -> bool:
    """Whether there are more columns than the prompt has words."""
    return len(book.passage.ids) > book.passage.n_prompt


def answered(book: ModelBook, shown: Expression, otherwise: Expression | str = "") -> Expression:
    """An answer, or `otherwise` if a word is unknown or nothing is typed."""
    return status.answered(book.graph, shown, otherwise)


def shortened(book: ModelBook) -> Expression:
    """Whether the sentence has more words than there are columns, as its message says."""
    return status.is_shortened(book.shown["play.message"].block[0, 0])


def _with_next(book: ModelBook) -> Expression:
    """The sentence and its most likely next token, if the ranked words follow the sentence."""
    next_token = book.shown["play.ranked.word"].block[0, 0]
    written = SUBSTITUTE(SUBSTITUTE(next_token, "␣", " "), "\\\\", "\\")
    fine, given, here, first, text = (
        book.graph[name][0, 0]
        for name in ("tokenizer.fine", "n_prompt", "position", "prompt.id", "sentence")
    )
    typed = AND(fine > 0, here == given - 1, NOT(first < 0), status.n_picked(book.graph) == 0)
    if book.plan.chat:
        ident, begun = book.shown["play.ranked.id"].block[0, 0], book.graph["chat.begun"][0, 0]
        ends = [ident == end for end in book.model.vocabulary.ends]
        said = begun & written
        return IF(typed, IF(OR(*ends), begun & " ∎", said) if ends else said, "")
    return IF(typed, text & written, "")
