"""Encoders: a prompt padded to a number of positions, two sentences side by side, and the source
sentence of an encoder-decoder.

Nothing attends to an empty position (`attention_mask`), so a shorter sentence has exactly the
numbers that it has alone. Two sentences go through the same weights: the second one's blocks begin
with `b.`, and `cosine` compares their vectors.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.expression import Expression, expression
from cellformer.engine.cells.functions import IF, IFERROR, INDEX, MATCH, MAX
from cellformer.engine.cells.name import ENCODER, SECOND
from cellformer.engine.models import ops, prompt
from cellformer.engine.models.forward import EVERYTHING, SOURCE, Forward, Readout
from cellformer.engine.models.generate import EMPTY, Passage
from cellformer.engine.models.model import Model
from cellformer.engine.text import tokenizing
from cellformer.engine.text.tokenizer import Library, Tokenizer, mask_of
from cellformer.engine.text.tokenizing.settings import read

AXIS = "token_b"  # the axis of its tokens
TOKENS = ("token", AXIS, SOURCE)  # the axes of tokens


def graph(model: Model, passage: Passage, readout: Readout = EVERYTHING) -> Forward:
    """The graph of a passage, and of its second sentence if it has one."""
    if passage.n_source:
        return _after_source(model, passage, readout)
    g = model.graph(passage.ids, readout)
    if model.spec.gives == "next word" or model.spec.reads == "image":
        return g
    g.fill("attention_mask", _present(passage.n_prompt, len(passage.ids)))
    if "position" in g.blocks:
        place = model.place_of_answer(passage.ids[: passage.n_prompt])
        g.fill("position", np.array([[float(place)]]))
    if passage.second:
        _add_second(g, passage.second, len(passage.ids))
    return g


def _after_source(model: Model, passage: Passage, readout: Readout) -> Forward:
    """The graph of an encoder-decoder, whose source sentence is padded."""
    n, n_source = len(model.source), passage.n_source
    g = model.reading([*model.source, *[EMPTY] * (n_source - n)]).graph(passage.ids, readout)
    g.fill(f"{ENCODER}.attention_mask", _present(n, n_source))
    return g


def _present(n_prompt: int, n_tokens: int) -> np.ndarray:
    """1 for given tokens, 0 for empty positions: [n_tokens, 1]."""
    return (np.arange(n_tokens) < n_prompt).astype(np.float64)[:, None]


def _add_second(g: Forward, ids: Sequence[int], n_tokens: int) -> None:
    """Add the second sentence, and the cosine of both: [1, 1]."""
    at, axes = g.at(SECOND), (AXIS, "")
    places = [*ids, *[EMPTY] * (n_tokens - len(ids))]
    tokens = at.input("tokens", np.reshape(places, (-1, 1)), axes, "ids")
    present = at.input("attention_mask", _present(len(ids), n_tokens), axes)
    at.copy_with({"tokens": tokens, "attention_mask": present})
    names = [name for leaf in ("vector", "length") for name in (leaf, f"{SECOND}.{leaf}")]
    g.block("cosine", ops.cosine_of_angle, *(g[name] for name in names))


# --- sentences that are typed -----------------------------------------------------------------


def follow(g: Forward, passage: Passage, model: Model) -> None:
    """Make the tokens of a graph of `graph` follow one typed sentence, or two.

    If no text gives a sentence's ids, or the tokenizer has no formulas, the ids and their number
    are typed instead.
    """
    n_tokens, sentences = len(passage.ids), [passage.ids[: passage.n_prompt]]
    sentences += [list(passage.second)] if passage.second else []
    found = [text_of(model.vocabulary, ids) for ids in sentences]
    spelt = [text for text, _ in filter(None, found)]
    room = max(prompt.room(text, passage) for text in spelt or [""])
    for at, ids, text in zip((g, g.at(SECOND)), sentences, found, strict=False):
        _follow(at, ids, text, model.vocabulary, n_tokens, room)
    if model.spec.gives == "masked word":
        _look(g, mask_of(model.vocabulary))
    if model.spec.gives == "class" and model.spec.causal:
        _look_last(g, model.config.get("pad_token_id"))


def follow_source(g: Forward, passage: Passage, model: Model) -> None:
    """Make the source sentence of an encoder-decoder follow what is typed, as `follow` does."""
    at, ids = g.at(ENCODER), list(model.source)
    found = text_of(model.reader, ids)
    room = prompt.room(found[0] if found else "", passage)
    _follow(at, ids, found, model.reader, passage.n_source, room)
    places = [*ids, *[EMPTY] * (passage.n_source - len(ids))]
    at.input("built", np.reshape(places, (-1, 1)), (SOURCE, ""), "table")


def _follow(
    g: Forward,
    ids: Sequence[int],
    text: tuple[str, bool] | None,
    tokenizer: Tokenizer,
    n_tokens: int,
    room: int,
) -> None:
    """Add one sentence's tokens, and the marks of filled positions."""
    n_prompt: Block
    if text is None:
        n_prompt = g.input("n_prompt", len(ids), kind="table")
    else:
        found = tokenizing.add(g, tokenizer, text[0], n_tokens, room, text[1])
        n_prompt = g.table("n_prompt", (1, 1), lambda *_: MAX(1, found.n_ids[0, 0]))
        g.follow(f"{g.prefix}tokens", lambda t, _: IF(found.ids[t, 0] < 0, EMPTY, found.ids[t, 0]))
    g.follow(
        f"{g.prefix}attention_mask", lambda t, _: IF(expression(t) < n_prompt[0, 0].fixed, 1, 0)
    )


def _look(g: Forward, mask: int | None) -> None:
    """Set the position to the masked word's, or else to the last token's."""
    last: Expression = g["n_prompt"][0, 0] - 1
    place = last if mask is None else IFERROR(MATCH(mask, g["tokens"].area.as_range, 0) - 1, last)
    g.follow("position", lambda *_: place)


def _look_last(g: Forward, padding: int | None) -> None:
    """Set the position to the last token's, or to that before it where a padding token ends the
    text."""
    n_prompt, tokens = g["n_prompt"][0, 0], g["tokens"]
    before: Any = 0
    if padding is not None and tokens.shape[0] > 1:
        before = IF(INDEX(tokens.area.as_range, 1, n_prompt) == padding, 1, 0)
    g.follow("position", lambda *_: MAX(0, n_prompt - 1 - before))


def text_of(tokenizer: Tokenizer, ids: Sequence[int]) -> tuple[str, bool] | None:
    """A text that the tokenizer in cells turns into these ids, and whether it adds special tokens;
    None if there is none. Special tokens inside the text are written out, as `[MASK]`."""
    if tokenizing.refusal(tokenizer):
        return None
    for special in (True, False):
        for text in _spellings(tokenizer, ids, special):
            with suppress(InputError):
                if tokenizer.encode(text, special=special) == list(ids):
                    return text, special
    return None


def _spellings(tokenizer: Tokenizer, ids: Sequence[int], special: bool) -> list[str]:
    """Candidate texts for ids."""
    if not isinstance(tokenizer, Library):
        return [tokenizer.decode(ids)]
    found = read(tokenizer.inner)
    n_before, n_after = (len(found.before), len(found.after)) if special else (0, 0)
    own = list(ids)[n_before : len(ids) - n_after]
    decode = tokenizer.inner.decode
    return [decode(own, skip_special_tokens=False), "".join(tokenizer.texts[i] for i in own)]
