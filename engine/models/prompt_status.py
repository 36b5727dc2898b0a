"""The status of a typed sentence: messages about it, and where each of its words comes from.

They are formulas over the blocks that `prompt` and `encoding` add.
"""

from collections.abc import Mapping
from typing import Any

from cellformer.engine.cells.evaluator import Evaluator
from cellformer.engine.cells.expression import Expression, expression
from cellformer.engine.cells.functions import (
    IF,
    LEFT,
    LEN,
    RIGHT,
    SUBSTITUTE,
    SUM,
    SUMPRODUCT,
    TRIM,
)
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.language import worded
from cellformer.engine.cells.name import ENCODER
from cellformer.engine.cells.sentence import sentence

SILENT, LEFT_OUT = "no answer", "the rest is left out"


def built_with(g: Graph) -> str:
    """The typed sentence as built; in a conversation, your message."""
    if f"{ENCODER}.tokens" in g.blocks:
        return typed_source(g, g.inputs)
    return str(g.inputs["chat.you" if "chat.you" in g.blocks else "sentence"][0, 0])


def typed_source(g: Graph, values: Mapping[str, Any] | Evaluator) -> str:
    """The source sentence of two stacks, as it is typed: a text, or ids."""
    if f"{ENCODER}.sentence" in g.blocks:
        return str(values[f"{ENCODER}.sentence"][0, 0])
    ids = values[f"{ENCODER}.tokens"][: int(values[f"{ENCODER}.n_prompt"][0, 0]), 0]
    return " ".join(str(int(i)) for i in ids)


def answered(g: Graph, shown: Expression, otherwise: Expression | str = "") -> Expression:
    """An answer, or `otherwise` if a word is unknown or the cell is blank."""
    if "prompt.answered" not in g.blocks:
        return shown
    return IF(g["prompt.answered"][0, 0] == 1, shown, otherwise)


def is_silent(message: Expression) -> Expression:
    """Whether a message means that no answer follows."""
    return _ends_with(message, worded(SILENT))


def is_shortened(message: Expression) -> Expression:
    """Whether a message says that the sentence has more words than there are columns."""
    return _ends_with(message, worded(LEFT_OUT))


def _ends_with(message: Expression, end: str) -> Expression:
    return RIGHT(message, len(end)) == end


# --- the sentence -------------------------------------------------------------------------


def message(g: Graph, prefix: str, continues: bool, first: Expression) -> Expression:
    """The message about a sentence, whose blocks have a prefix. `first` is the text of the token
    that stands in if there is none."""
    if prefix or "prompt.typed" not in g.blocks:
        return _of_tokens(g, prefix, first)
    return _of_words(g, continues)


def _of_words(g: Graph, continues: bool) -> Expression:
    """The message if a word is chosen after every token."""
    n, count, picked = g["tokens"].shape[0], g["n_prompt"][0, 0], _picked(g)
    text = (
        "tokens given: {n}, generated: {rest}"
        if continues
        else "tokens given: {n}, as built: {rest}"
    )
    rest = n - count
    if "prompt.ended" in g.blocks:
        rest = rest - SUM(g["prompt.ended"].area.as_range)
    counted = sentence(text, n=count, rest=rest) & picked
    if "tokenizer.fine" in g.blocks:
        fine, told = g["tokenizer.fine"][0, 0], g["tokenizer.message"][0, 0]
        return _unless_unknown(g, IF(fine == 0, told, counted), "", told)
    spaced = TRIM(g["sentence"][0, 0])
    n_words = LEN(spaced) - LEN(SUBSTITUTE(spaced, " ", "")) + 1
    longer = f"{worded('longer than the {n} columns of this sheet', n=n)}: {worded(LEFT_OUT)}"
    if not continues:
        fewer = "tokens given: {n}; the missing ones are the words as built"
        all_given = sentence("tokens given: {n}", n=count)
        counted = IF(count < n, sentence(fewer, n=count), all_given) & picked
    if "prompt.opened" in g.blocks:
        opened, first = g["prompt.opened"][0, 0], g["prompt.typed"][0, 0]
        put = sentence("; the sheet adds {word}, the start of every text", word=first)
        counted, n_words = counted & IF(opened == 1, put, ""), n_words + opened
    nearest = sentence("; nearest: {word}", word=g["prompt.nearest"][0, 0])
    nothing = expression(f"{worded('nothing is typed')}: {worded(SILENT)}")
    return _unless_unknown(g, IF(n_words > n, longer, counted), nearest, nothing)


def _of_tokens(g: Graph, prefix: str, first: Expression) -> Expression:
    """The message about the number of tokens, for one token or a whole sentence."""
    n, count = g[f"{prefix}tokens"].shape[0], g[f"{prefix}n_prompt"][0, 0]
    fine, told, n_ids = (
        g[f"{prefix}tokenizer.{leaf}"][0, 0] for leaf in ("fine", "message", "n_ids")
    )
    counted = sentence("tokens given: {n}, room for {rest} more", n=count, rest=n - count)
    if prefix or "prompt.pick" not in g.blocks:
        return IF(n_ids == 0, told, IF(fine == 0, told, counted))
    counted = IF(fine == 0, told, counted & _picked(g))
    return IF(
        g["prompt.id"][0, 0] < 0,
        told & " " & sentence("({word} is used instead)", word=first),
        counted,
    )


def n_picked(g: Graph) -> Expression:
    """The number of picked tokens that replace typed ones."""
    return SUMPRODUCT((g["prompt.pick"].area.as_range != "") * 1)


def _picked(g: Graph) -> Expression:
    n = n_picked(g)
    return IF(n > 0, sentence("; {n} picked tokens replace typed tokens", n=n), "")


def _unless_unknown(
    g: Graph, said: Expression, nearest: Expression | str, nothing: Expression
) -> Expression:
    """A message, or else the name of an unknown word."""
    unknown = g["prompt.unknown"][g["tokens"].shape[0] - 1, 0]
    told = sentence("‘{word}’ is unknown", word=unknown) & nearest & f": {worded(SILENT)}"
    return IF(unknown != "", told, IF(g["prompt.typed"][0, 0] == "", nothing, said))


# --- its words ----------------------------------------------------------------------------


def not_given(continues: bool) -> str:
    """The source of a word that was not typed."""
    return worded("generated" if continues else "as built")


def word(g: Graph, t: int, text: Expression) -> Expression:
    """The typed or chosen word at a position; `text` is its text."""
    typed = IF(g["prompt.found"][t, 0] < 0, "?", text)
    return IF(_is_given(g, t), typed, _until_end(g, t, answered(g, text))) if t else typed


def origin(g: Graph, t: int, continues: bool) -> Expression:
    """The origin of the word at a position: given, picked, generated, as built, unknown."""
    found = IF(g["prompt.pick"][t, 0] != "", worded("picked"), worded("given"))
    unknown = sentence("unknown: {word}", word=g["prompt.typed"][t, 0])
    found = IF(g["prompt.found"][t, 0] < 0, unknown, found)
    return IF(_is_given(g, t), found, _until_end(g, t, not_given(continues))) if t else found


def is_unknown(origin: Expression) -> Expression:
    """Whether the origin of a word says that it is unknown."""
    begin = worded("unknown: {word}", word="")
    return LEFT(origin, len(begin)) == begin


def _until_end(g: Graph, t: int, shown: Expression | str) -> Expression | str:
    """The text shown for a generated word; nothing after an end-of-text token."""
    return IF(g["prompt.ended"][t, 0] == 1, "", shown) if "prompt.ended" in g.blocks else shown


def _is_given(g: Graph, t: int) -> Expression:
    return expression(t) < g["n_prompt"][0, 0]
