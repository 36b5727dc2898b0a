"""A prompt as cells: a sentence is typed, split into tokens and looked up; it continues itself.

`follow` gives the tokens of a graph formulas: a token is what was typed at its place, or after the
prompt what the token before it chose (see `choosing`). So typing another sentence is one more cell
that is set, and a workbook writes its own continuation.
"""

from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from engine.cells.block import Block
from engine.cells.errors import InputError
from engine.cells.expression import Expression, Nth, expression
from engine.cells.functions import (
    IF,
    IFERROR,
    LEFT,
    LEN,
    MATCH,
    MAX,
    MID,
    REPT,
    SUBSTITUTE,
    SUM,
    TRIM,
)
from engine.cells.graph import Graph
from engine.models import choosing, finding, textline, tokenizing
from engine.models.generate import Passage
from engine.models.model import Model
from engine.models.tokenizer import LONGEST, Characters, Tokenizer, WordList, shown
from engine.models.tokenizing.result import NO_ID

WORD = LONGEST + 1  # characters that a word is cut after; no token is shown with more
TOKENS = ("token", "")


def graph(model: Model, passage: Passage) -> Graph:
    """The graph of a passage whose tokens follow what is typed and chosen."""
    g = model.graph(passage.ids)
    heat(g, passage)
    follow(g, passage, model)
    return g


def heat(g: Graph, passage: Passage) -> None:
    """Give a graph the temperature that a passage was drawn at."""
    if passage.sampling.temperature:
        g.fill("temperature", np.array([[passage.sampling.temperature]]))


def follow(g: Graph, passage: Passage, model: Model) -> None:
    """Have the tokens of a graph, which are those of a passage, follow a sentence.

    Where the sentence ends, it continues itself; a model whose tokens see those after them cannot,
    and keeps the tokens of the passage.
    """
    ids = typed_ids(g, passage, model.vocabulary)
    n_prompt = g["n_prompt"]
    built = g.at("prompt").input("built", np.reshape(passage.ids, (-1, 1)), TOKENS, "table")
    chosen = choosing.choice(g, passage.sampling, passage.numbers)

    def token(t: int, _: int) -> Expression:
        if t == 0:
            return ids[0, 0]
        otherwise = chosen[t - 1, 0] if model.spec.causal else built[t, 0]
        return IF(expression(t) < n_prompt[0, 0], ids[t, 0], otherwise)

    g.follow("tokens", token)
    textline.add(g, model.vocabulary)


def typed_ids(g: Graph, passage: Passage, tokenizer: Tokenizer) -> Block:
    """Add a sentence, and the ids of its tokens: [n_tokens, 1].

    A token may be picked in the place of what was typed; of one that is unknown the id is 0.
    `n_prompt` counts up to the first that is missing.
    """
    n_tokens = len(passage.ids)
    at, one, words = g.at("prompt"), (n_tokens, 1), shown(tokenizer.texts)
    vocabulary = g.input("vocabulary", column(words), ("vocab", ""), "table")
    finding.add(at, words)
    typed_text = spelt(tokenizer, passage.ids[: passage.n_prompt])
    if typed_text is None:
        prompt = " ".join(words[i] for i in passage.ids[: passage.n_prompt])
        word = split_at_spaces(g, prompt, n_tokens)
    else:
        word = tokenized(g, passage, tokenizer, *typed_text, vocabulary)
    pick = at.input("pick", column([""] * n_tokens), TOKENS, "table")

    def typed_at(t: int, _: int) -> Expression:
        return IF(pick[t, 0] != "", pick[t, 0], word[t, 0])

    def given_at(t: int, _: int) -> Expression:
        return IF(typed[t, 0] == "", 0, given[t - 1, 0] if t else 1)

    def ident(t: int, _: int) -> Expression:
        return MAX(0, finding.place_of(typed[t, 0], g, "prompt.words"))

    typed = at.table("typed", one, typed_at, TOKENS)
    given = at.table("given", one, given_at, TOKENS)
    g.table("n_prompt", (1, 1), lambda *_: MAX(1, SUM(given.area.as_range)))
    return at.table("id", one, ident, TOKENS)


def answer(g: Graph, passage: Passage, tokenizer: Tokenizer) -> None:
    """Have the tokens of a graph with the logits of one token alone follow a sentence, and have
    that one be the last that is given.

    An id that is typed at a place stands for what the sentence has there: so a passage that no text
    gives is built, too. Behind the last stand the tokens of the passage, which it does not see.
    """
    n_tokens, n_given = len(passage.ids), passage.n_prompt
    at, one, given = g.at("prompt"), (n_tokens, 1), passage.ids[: passage.n_prompt]
    found = text_of(tokenizer, given)
    text, special = found or ("", True)
    built = at.input("built", np.reshape(passage.ids, (-1, 1)), TOKENS, "table")
    picked: list[str | float] = [""] * n_tokens
    if not found:
        picked[:n_given] = map(float, given)
    pick = at.input("pick", column(picked), TOKENS, "table")
    ids = tokenizing.add(g, tokenizer, text, n_tokens, room(text, passage), special).ids

    def given_at(t: int, _: int) -> Expression:
        return IF(pick[t, 0] != "", pick[t, 0], ids[t, 0])

    def count(*_: int) -> Expression:
        return MAX(1, IFERROR(MATCH(NO_ID, typed.area.as_range, 0) - 1, n_tokens))

    def token(t: int, _: int) -> Expression:
        there = typed[0, 0] >= 0 if t == 0 else expression(t) < n_prompt[0, 0]
        return IF(there, typed[t, 0], built[t, 0])

    typed = at.table("id", one, given_at, TOKENS)
    n_prompt = g.table("n_prompt", (1, 1), count)
    g.follow("tokens", token)
    g.fill("position", np.array([[float(n_given - 1)]]))
    g.follow("position", lambda *_: n_prompt[0, 0] - 1)


def spelt(tokenizer: Tokenizer, ids: Sequence[int]) -> tuple[str, bool] | None:
    """The text that a tokenizer in cells makes these ids of, and whether it adds special tokens.

    None where words are split at spaces instead: of word lists, whose words have none, and where
    no text gives the ids.
    """
    words = isinstance(tokenizer, WordList) and not isinstance(tokenizer, Characters)
    return None if words or tokenizing.refusal(tokenizer) else text_of(tokenizer, ids)


def text_of(tokenizer: Tokenizer, ids: Sequence[int]) -> tuple[str, bool] | None:
    """The text that a tokenizer makes these ids of, and whether it adds special tokens; or None."""
    text = tokenizer.decode(ids)
    for special in (True, False):
        with suppress(InputError):  # a special token that the model has no row for
            if tokenizer.encode(text, special=special) == list(ids):
                return text, special
    return None


def tokenized(
    g: Graph, passage: Passage, tokenizer: Tokenizer, text: str, special: bool, vocabulary: Block
) -> Block:
    """Add a sentence and its tokenizer in cells: the names of its tokens, [n_tokens, 1]."""
    n_tokens = len(passage.ids)
    ids = tokenizing.add(g, tokenizer, text, n_tokens, room(text, passage), special).ids

    def name(t: int, _: int) -> Expression:
        return IF(ids[t, 0] < 0, "", Nth(vocabulary.area.fixed, ids[t, 0] + 1))

    return g.at("prompt").table("word", (n_tokens, 1), name, TOKENS)


def room(text: str, passage: Passage) -> int:
    """How many characters, or bytes, a sentence may have that is built with a text."""
    n = len(text.encode())
    return max(n, passage.text_length or max(tokenizing.TEXT_LENGTH, 2 * n))


def split_at_spaces(g: Graph, text: str, n_tokens: int) -> Block:
    """Add a sentence and its words: [n_tokens, 1].

    Each row takes the first word off the sentence and hands the rest on.
    """
    at, one = g.at("prompt"), (n_tokens, 1)
    sentence = g.input("sentence", text, kind="table")

    def rest_of(t: int, _: int) -> Expression:
        if t == 0:
            return TRIM(sentence[0, 0])
        before, taken = rest[t - 1, 0], word[t - 1, 0]
        return MID(before, LEN(taken) + 2, LEN(before) + 1)

    def first_of(t: int, _: int) -> Expression:
        begin = LEFT(rest[t, 0], WORD)  # of all of it, the spaces would pass 32,767 characters
        return TRIM(MID(SUBSTITUTE(begin, " ", REPT(" ", WORD)), 1, WORD))

    rest = at.table("rest", one, rest_of, TOKENS)
    word = at.table("word", one, first_of, TOKENS)
    return word


def look(g: Graph, words: Sequence[str]) -> None:
    """Have lens and attribution, see `lens.add`, follow what is typed: they look at the end of the
    prompt, for two words out of those that have a logit, `words`."""
    n_prompt = g["n_prompt"]
    g.follow("position", lambda i, j: n_prompt[0, 0] - 1)
    g.input("outputs", column(words), (g["logits"].axes[1], ""), "table")
    at = g.at("look")
    finding.add(at, words)
    for name in ("target", "rival"):
        text = words[int(g.inputs[name][0, 0])]
        word = at.input(name, text, kind="table")[0, 0]
        ident = MAX(0, finding.place_of(word, g, "look.words"))
        g.follow(name, lambda *_, ident=ident: ident)


def column(texts: Sequence[str | float]) -> np.ndarray:
    """Texts, and numbers, as a column of cells."""
    return np.array(texts, dtype=object).reshape(-1, 1)
