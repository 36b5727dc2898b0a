"""The settings of Play: the choice of a word, and the token to look at.

Whatever is typed, a setting counts as its nearest valid value; the note beside it says so if that
differs. The position, and the two words of Lens, Attribution and Switches, follow the sentence; a
cell of its own overrides each.
"""

from collections.abc import Sequence
from typing import Any

from cellformer.engine.cells.expression import Expression, decimal
from cellformer.engine.cells.functions import AND, IF, ISNUMBER, OR, SUMPRODUCT, N
from cellformer.engine.cells.language import worded
from cellformer.engine.cells.name import ENCODER
from cellformer.engine.models.choosing import BY_NUMBER, GREEDILY, LEAST
from cellformer.engine.text.tokenizer import mask_of
from cellformer.exporters.compose.book import Place
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.dressing import between
from cellformer.exporters.compose.lookups import entry
from cellformer.exporters.compose.sentences import sentence
from cellformer.exporters.model import block_sheets, words
from cellformer.exporters.model.block_sheets import PLAY, PROMPT_COL
from cellformer.exporters.model.model_book import ModelBook

LABEL_COL, LOOK_COL = PROMPT_COL - 1, 7  # of the labels of both groups
LOOK_LINES = 5  # of what is looked at
WHOLE = {"validate": "integer", "criteria": ">=", "value": 0}
NOT_BELOW_ZERO = {"validate": "decimal", "criteria": ">=", "value": 0}
RULES: dict[str, dict[str, Any]] = {
    "choose": {"validate": "list", "source": [GREEDILY, BY_NUMBER]},
    "temperature": NOT_BELOW_ZERO | {"error_message": "0 (greedy), or a number above 0."},
    "top_k": WHOLE | {"error_message": "A whole number; 0 keeps all words."},
    "top_p": between(decimal(LEAST), 1, "A share above 0, up to 1."),
    "min_p": between(0, 1, "A share from 0 to 1; 0 keeps all words."),
    "repetition_penalty": {"validate": "decimal", "criteria": ">", "value": 0}
    | {"error_message": "A number above 0; 1 does not change the logits."},
}
LOOKED_AT = {
    "next word": "the sheet ranks the words after this token (counted from 0)",
    "masked word": "the sheet ranks words for this token (from 0): the mask, or the last token",
    "class": "this token represents the whole text (counted from 0)",
    "token class": "the sheet ranks this token’s classes (token counted from 0)",
}
LATE = ("min_p", "repetition_penalty")  # which stand below settings of the model's own
LAST_ROW = 7  # below the heading, of the lines on the left; there is room for two more on the right
Said = tuple[Expression, Any, Any]  # whether a value is within its range; the note then, and else


def add(book: ModelBook, ws: Composer, top: int) -> None:
    """Add the settings for the choice of a word, and the token to look at; below, settings of
    the model's own."""
    _look(book, ws, top)
    heading = book.of_words("How a word is chosen", "How a letter is chosen")
    ws.sheet.put(top, 0, heading, "heading")
    said = _choice(book)
    placed = (*book.places, *said)
    others = [b for b in book.blocks if block_sheets.on_play(b) and b.name not in placed]
    lines: list[tuple[str, Said | str]] = [(n, said[n]) for n in said if n not in LATE]
    lines += [(block.name, words.meaning(block)) for block in others]
    lines += [(n, said[n]) for n in said if n in LATE]
    for k, (name, note) in enumerate(lines, 1):
        left = k <= LAST_ROW
        at = (top + k, LABEL_COL) if left else (top + k - LAST_ROW + LOOK_LINES, LOOK_COL)
        dial = name in said and name != "temperature"  # which is the model's
        label = name.replace("_", "-" if name in said else " ")
        _line(book, ws, at, label, [(name, "dial" if dial else "input setting")], note)
        if name in RULES:
            ws.sheet.rules[at[0], at[1] + 1] = RULES[name]


def add_of_one(book: ModelBook, ws: Composer, top: int) -> None:
    """Add the token to look at, the temperature, the number of given tokens."""
    masked, mask = book.plan.gives == "masked word", mask_of(book.model.vocabulary)
    notes = {
        "position": LOOKED_AT[book.plan.gives],
        "temperature": "below 1: more certain; above 1: less certain",
        "n_prompt": "number of given tokens",
    }
    ws.sheet.put(top, 0, "Chosen token and settings", "heading")
    there = [n for n in notes if n in book.graph.blocks and n not in book.places]
    for row, name in enumerate(there, top + 1):
        style = "id" if name == "n_prompt" else "dial"
        cells = [(name, style if book.graph[name].computed else "input setting")]
        _line(book, ws, (row, LABEL_COL), name.replace("n_prompt", "given"), cells, notes[name])
    if masked and mask is not None:
        ids, at = book.graph["tokens"].area.as_range, book.graph["position"][0, 0]
        found = IF(
            entry(ids, 1, at + 1) == mask, "", worded("no mask at this position: type a mask")
        )
        ws.show("mask", (top + 3, PROMPT_COL), found, "note")


def _line(
    book: ModelBook,
    ws: Composer,
    at: tuple[int, int],
    label: str,
    cells: Sequence[tuple[str, str]],
    note: Said | str = "",
) -> None:
    """Add a label, single cells in their styles, and a note, which may depend on whether the first
    cell's value is within its range."""
    row, col = at
    ws.sheet.put(row, col, label, "row label")
    for k, (name, style) in enumerate(cells, col + 1):
        if name:
            named = not name.startswith("look.")
            book.lay(Place(book.graph[name], PLAY, row, k, turned=False, named=named), style)
    end = col + 1 + len(cells)
    if isinstance(note, tuple):
        right, usual, otherwise = note
        usual, otherwise = (sentence(x) if isinstance(x, str) else x for x in (usual, otherwise))
        shown = ws.show(f"{cells[0][0]}.note", (row, end), IF(right, usual, otherwise), "note")
        ws.mark(shown, "differs", shown != usual)
    elif note:
        ws.sheet.put(row, end, note, "note")


def _choice(book: ModelBook) -> dict[str, Said]:
    """The notes on the settings of the choice."""
    choose, heat, k, p, m = (book.graph[name][0, 0] for name in [*RULES][:5])
    k_taken, p_taken, m_taken = (book.graph[f"choice.{leaf}"][0, 0] for leaf in "kpm")
    alone = book.of_words("0: only the likeliest word", "0: only the likeliest letter")
    greedy = book.of_words("0 is greedy: the likeliest word", "0 is greedy: the likeliest letter")
    least = IF(p_taken < 1, sentence(alone), p_taken & "")
    found: dict[str, Said] = {
        "choose": (
            OR(choose == GREEDILY, choose == BY_NUMBER),
            "largest logit (greedy) or random (sampled)",
            "not ‘greedy’ or ‘sampled’: ‘greedy’ is used",
        ),
        "temperature": (
            AND(ISNUMBER(heat), N(heat) >= 0),
            IF(heat == 0, sentence(greedy), sentence(words.MEANING["temperature"])),
            "negative, or not a number: 0 (greedy) is used",
        ),
        "top_k": (
            AND(ISNUMBER(k), N(k) == k_taken),
            book.of_words(
                "only the k likeliest words; 0: all", "only the k likeliest letters; 0: all"
            ),
            sentence("not a whole number: {n} is used", n=k_taken),
        ),
        "top_p": (
            AND(ISNUMBER(p), N(p) == p_taken),
            "the likeliest, up to this total share; 1: all",
            sentence("not a number above 0 and up to 1: {share} is used", share=least),
        ),
        "min_p": (
            AND(ISNUMBER(m), N(m) == m_taken),
            "at least this share of the top probability; 0: all",
            sentence("not a number from 0 to 1: {share} is used", share=m_taken & ""),
        ),
    }
    if "repetition_penalty" in book.graph.blocks:
        typed, taken = book.graph["repetition_penalty"][0, 0], book.graph["choice.penalty"][0, 0]
        found["repetition_penalty"] = (
            AND(ISNUMBER(typed), N(typed) == taken),
            "above 1: earlier words are less likely; 1: no penalty",
            "not a number above 0: counts as 1 (no penalty)",
        )
    return found


def _look(book: ModelBook, ws: Composer, top: int) -> None:
    """Add the length of the prompt, the position to look at, and the two words."""
    sheet, typed, now = ws.sheet, LOOK_COL + 1, LOOK_COL + 2
    heads = "Looked at", "type another", "now"
    sheet.lines(top, [heads], {LOOK_COL: "heading", typed: "label", now: "label"})
    _line(
        book,
        ws,
        (top + 1, LOOK_COL),
        book.of_words("words given", "letters given"),
        [("", ""), ("n_prompt", "id")],
    )
    sheet.put(top + 2, LOOK_COL, "the prompt is", "row label")
    book.named_cells["prompt"] = (PLAY, top + 2, now)
    ws.show(
        "prompt",
        (top + 2, now),
        IF(_as_built(book), worded("as built"), worded("changed")),
        "label",
    )
    at, last = book.graph["position"][0, 0], len(book.passage.ids) - 1
    value = book.graph["look.position.instead"][0, 0]
    usual = book.of_words(
        "the last given word, unless you type another",
        "the last given letter, unless you type another",
    )
    said: Said = (
        OR(value == "", value == at),
        usual,
        sentence("not a position of a token: {n} is used", n=at),
    )
    cells = [("look.position.instead", "dial"), ("position", "id")]
    _line(book, ws, (top + 3, LOOK_COL), "position", cells, said)
    sheet.rules[top + 3, typed] = between(
        0, last, worded("A position from 0 to {last}.", last=last), whole=True
    )
    likeliest = book.of_words("the likeliest word", "the likeliest letter")
    names = {"target": likeliest, "rival": "the next likeliest"}
    for row, (name, usual) in enumerate(names.items(), top + 4):
        value, ident = (book.graph[f"look.{name}.{leaf}"][0, 0] for leaf in ("instead", "id"))
        told = f"{usual}, unless you type another", f"unknown: counts as {usual}"
        cells = [(f"look.{name}.instead", "token"), (f"look.{name}", "word"), (name, "id")]
        said = OR(value == "", ident >= 0), *told
        _line(
            book, ws, (row, LOOK_COL), book.of_words(f"{name} word", f"{name} letter"), cells, said
        )
        sheet.lists[row, typed] = book.graph["outputs"].area.fixed.as_range


def _as_built(book: ModelBook) -> Expression:
    """Whether the prompt is the one that the workbook was built with."""
    given = [("", "prompt.built", book.passage.n_prompt)]
    if book.plan.sources:
        given.append((f"{ENCODER}.", f"{ENCODER}.built", len(book.model.source)))
    alike = []
    for prefix, name, n in given:
        ids, built = book.graph[f"{prefix}tokens"].area[:n, 0], book.graph[name].area[:n, 0]
        same = SUMPRODUCT(ids - built, ids - built) == 0
        alike += [book.graph[f"{prefix}n_prompt"][0, 0] == n, same]
    return AND(*alike)
