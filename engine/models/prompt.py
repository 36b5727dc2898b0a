"""A prompt in cells: a typed sentence is split into tokens and looked up, and continues itself.

`follow` gives the tokens of a graph formulas: a token is what was typed at its position, or, after
the prompt, what the token before it chose (see `choosing`). So typing another sentence is one more
edit of a cell, and a workbook writes its own continuation.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.expression import Area, Expression, Nth, expression
from cellformer.engine.cells.functions import (
    ABS,
    AND,
    IF,
    IFERROR,
    INT,
    LEFT,
    LEN,
    LOWER,
    MATCH,
    MAX,
    MID,
    MIN,
    OR,
    REPT,
    RIGHT,
    SUBSTITUTE,
    SUM,
    TRIM,
)
from cellformer.engine.cells.graph import Graph
from cellformer.engine.models import choosing
from cellformer.engine.models.generate import Passage
from cellformer.engine.models.model import Model
from cellformer.engine.text import chat as chats
from cellformer.engine.text import decoded_text, tokenizing, word_lookup
from cellformer.engine.text.tokenizer import LONGEST, Characters, Tokenizer, WordList, shown
from cellformer.engine.text.tokenizing.result import NO_ID

WORD = LONGEST + 1  # characters that a word is cut after; no token is shown with more
TOKENS = ("token", "")


def graph(model: Model, passage: Passage) -> Graph:
    """The graph of a passage whose tokens are formulas over the typed sentence and the chosen
    words."""
    g = model.graph(passage.ids)
    set_temperature(g, passage)
    follow(g, passage, model)
    return g


def set_temperature(g: Graph, passage: Passage) -> None:
    """Set the temperature that a passage was sampled with."""
    if passage.sampling.temperature:
        g.fill("temperature", np.array([[passage.sampling.temperature]]))


def never(model: Model) -> list[int]:
    """The ids that cells do not choose; the end of a text may always come."""
    return [i for (i,) in model.rules.in_cells.never if i not in model.vocabulary.ends]


def follow(g: Graph, passage: Passage, model: Model) -> None:
    """Make the tokens of a passage's graph follow a typed sentence.

    After its end, the sentence continues itself; in a model with attention in both directions it
    cannot, and the passage's tokens stay.
    """
    ids = typed_ids(g, passage, model.vocabulary)
    n_prompt = g["n_prompt"]
    built = g.at("prompt").input("built", np.reshape(passage.ids, (-1, 1)), TOKENS, "table")
    chosen = choosing.choice(g, passage.sampling, passage.numbers, never(model))

    def token(t: int, _: int) -> Expression:
        if t == 0:
            return ids[0, 0]
        otherwise: Any = chosen[t - 1, 0] if model.spec.causal else built[t, 0]
        if t == 1 and model.rules.first:
            otherwise = model.rules.first[0]
        if t == len(passage.ids) - 1 and model.rules.last:
            otherwise = min(model.rules.last)
        return IF(expression(t) < n_prompt[0, 0], ids[t, 0], otherwise)

    g.follow("tokens", token)
    write(g, passage, model)


def write(g: Graph, passage: Passage, model: Model) -> None:
    """Add the text of a graph's tokens, up to an end-of-text token; in a conversation, the text
    of the answer."""
    ended = _ends(g, model.vocabulary.ends) if model.spec.causal else None
    hidden: Callable[[int], Expression] | None = None
    if passage.chat:
        count = g["n_prompt"][0, 0]
        hidden = lambda t: IF(expression(t) < count, 1, ended[t, 0] if ended else 0)  # noqa: E731
    elif passage.n_source:  # its first token begins every answer
        hidden = lambda t: expression(ended[t, 0] if t and ended else int(not t))  # noqa: E731
    elif ended:
        hidden = lambda t: expression(ended[t, 0])  # noqa: E731
    decoded_text.add(g, model.vocabulary, hidden)
    if passage.chat:
        chats.go_on(g, passage.chat, expression(g["text.whole"][0, 0]))


def _ends(g: Graph, ends: Sequence[int]) -> Block | None:
    """Add `prompt.ended` [n_tokens, 1], 1 after an end-of-text token that was generated; None if
    the model has none."""
    if not ends:
        return None
    tokens, count = g["tokens"], g["n_prompt"][0, 0]

    def ended(t: int, _: int) -> Expression:
        if t == 0:
            return expression(0)
        last = OR(*(tokens[t - 1, 0] == end for end in ends))
        return IF(found[t - 1, 0] == 1, 1, IF(expression(t) > count, IF(last, 1, 0), 0))

    found = g.at("prompt").table("ended", tokens.shape, ended, TOKENS)
    return found


def typed_ids(g: Graph, passage: Passage, tokenizer: Tokenizer) -> Block:
    """Add a sentence, and the ids of its tokens: [n_tokens, 1].

    A token may be picked instead of the typed word. Case is ignored if only one word fits; an
    unknown word has the id 0, and then `prompt.answered` is empty. `n_prompt` counts up to the
    first missing one. After a source sentence nothing is typed: the words are those given.
    """
    n_tokens = len(passage.ids)
    at, one, words = g.at("prompt"), (n_tokens, 1), shown(tokenizer.texts)
    vocabulary = g.input("vocabulary", column(words), ("vocab", ""), "table")
    begun: list[str] = []  # the words that every answer to a source sentence begins with
    word_lookup.add(at, words)
    word_lookup.add_lowered(at, words)
    typed_text = None if passage.n_source else typed_as(g, passage, tokenizer)
    word: Block | None = None
    if passage.n_source:
        begun = [words[i] for i in passage.ids[: passage.n_prompt]]
    elif typed_text is None:
        prompt = " ".join(words[i] for i in passage.ids[: passage.n_prompt])
        first = opening(tokenizer)
        put = first if tokenizer.texts[passage.ids[0]] == first else ""
        word = split_at_spaces(g, prompt, n_tokens, put)
    else:
        word = tokenized(g, passage, tokenizer, *typed_text, vocabulary)
    pick = at.input("pick", column([""] * n_tokens), TOKENS, "table")

    def typed_at(t: int, _: int) -> Expression:
        usual: Any = word[t, 0] if word else begun[t] if t < len(begun) else ""
        return IFERROR(IF(pick[t, 0] != "", pick[t, 0], usual), "")

    def found_at(t: int, _: int) -> Expression:
        loose = word_lookup.find_ignoring_case(typed[t, 0], g, "prompt.lowered")
        return IF(exact[t, 0] >= 0, exact[t, 0], loose)

    def unknown_at(t: int, _: int) -> Expression:
        here = IF(AND(given[t, 0] == 1, found[t, 0] < 0), typed[t, 0], "")
        return IF(unknown[t - 1, 0] != "", unknown[t - 1, 0], here) if t else here

    typed = at.table("typed", one, typed_at, TOKENS)
    given = at.table(
        "given", one, lambda t, _: IF(typed[t, 0] == "", 0, given[t - 1, 0] if t else 1), TOKENS
    )
    g.table("n_prompt", (1, 1), lambda *_: MAX(1, SUM(given.area.as_range)))
    exact = at.table(
        "exact", one, lambda t, _: word_lookup.place_of(typed[t, 0], g, "prompt.words"), TOKENS
    )
    found = at.table("found", one, found_at, TOKENS)
    unknown = at.table("unknown", one, unknown_at, TOKENS)
    last = unknown[n_tokens - 1, 0]
    at.table("answered", (1, 1), lambda *_: IF(AND(typed[0, 0] != "", last == ""), 1, 0))
    if typed_text is None and not passage.n_source:
        nearest(at, vocabulary, last)
    return at.table("id", one, lambda t, _: MAX(0, found[t, 0]), TOKENS)


def nearest(at: Graph, vocabulary: Block, unknown: Expression) -> None:
    """Add `nearest`, the word of the vocabulary that is most similar to an unknown one: the same
    beginning and end, and about the same length, ignoring case."""

    def alike(v: int, _: int) -> Expression:
        word, same = vocabulary[v, 0], expression(0)
        for side, most in ((LEFT, 4), (RIGHT, 3)):
            for k in range(1, most + 1):
                same = same + IF(side(word, k) == side(unknown, k), 1, 0)
        return IF(unknown == "", 0, same - ABS(LEN(word) - LEN(unknown)) / 4)

    scores = at.table("alike", vocabulary.shape, alike, vocabulary.axes).area.as_range
    best = Nth(vocabulary.area.fixed, MATCH(MAX(scores), scores, 0))
    at.table("nearest", (1, 1), lambda *_: IF(unknown == "", "", best))


def answer(g: Graph, passage: Passage, tokenizer: Tokenizer) -> None:
    """Make the tokens of a graph follow a typed sentence, if only one token has logits: the last
    one given.

    An id typed at a position replaces the sentence's token there, so that passages without a text
    can be built, too; after a source sentence, ids alone are typed. After the last token come the
    passage's, which it does not see.
    """
    n_tokens, n_given = len(passage.ids), passage.n_prompt
    at, one, given = g.at("prompt"), (n_tokens, 1), passage.ids[: passage.n_prompt]
    by_ids = passage.chat is not None and passage.chat.by_ids
    if passage.chat and by_ids:
        found: tuple[str, bool] | None = passage.chat.you, False
    elif passage.chat:
        found = typed_as(g, passage, tokenizer, by_word=True)
    else:
        found = None if passage.n_source else text_of(tokenizer, given)
    text, special = found or ("", True)
    built = at.input("built", np.reshape(passage.ids, (-1, 1)), TOKENS, "table")
    picked: list[str | float] = [""] * n_tokens
    if by_ids or not found:
        picked[:n_given] = map(float, given)
    pick = at.input("pick", column(picked), TOKENS, "table")
    ids: Block | None = None
    if not passage.n_source:
        ids = tokenizing.add(g, tokenizer, text, n_tokens, room(text, passage), special).ids

    def token(t: int, _: int) -> Expression:
        there = typed[0, 0] >= 0 if t == 0 else expression(t) < n_prompt[0, 0]
        return IF(there, typed[t, 0], built[t, 0])

    typed = at.table(
        "id",
        one,
        lambda t, _: IF(pick[t, 0] != "", pick[t, 0], NO_ID if ids is None else ids[t, 0]),
        TOKENS,
    )
    n_prompt = g.table(
        "n_prompt",
        (1, 1),
        lambda *_: MAX(1, IFERROR(MATCH(NO_ID, typed.area.as_range, 0) - 1, n_tokens)),
    )
    g.follow("tokens", token)
    g.fill("position", np.array([[float(n_given - 1)]]))
    g.follow("position", lambda *_: n_prompt[0, 0] - 1)
    if passage.chat and not by_ids:
        chats.go_on(g, passage.chat, expression(g["chat.begun"][0, 0]))


def typed_as(
    g: Graph, passage: Passage, tokenizer: Tokenizer, by_word: bool = False
) -> tuple[str, bool] | None:
    """The text that a person types for a prompt, as `spelt`. For a conversation, it adds the
    cells and gives their text. Raises InputError if cells cannot turn the conversation into
    tokens."""
    if passage.chat is None:
        return spelt(tokenizer, passage.ids[: passage.n_prompt])
    if reason := tokenizing.refusal(tokenizer):
        raise InputError(
            f"{reason}, so a workbook cannot chat; use `cellformer generate --chat` instead"
        )
    chats.add(g, passage.chat, by_word)
    return passage.chat.text, False


def spelt(tokenizer: Tokenizer, ids: Sequence[int]) -> tuple[str, bool] | None:
    """A text that the tokenizer in cells turns into these ids, and whether it adds special tokens.

    None for vocabularies of words, which are split at spaces instead, and if no text gives the ids.
    """
    words = isinstance(tokenizer, WordList) and not isinstance(tokenizer, Characters)
    return None if words or tokenizing.refusal(tokenizer) else text_of(tokenizer, ids)


def text_of(tokenizer: Tokenizer, ids: Sequence[int]) -> tuple[str, bool] | None:
    """A text that a tokenizer turns into these ids, and whether it adds special tokens; or None."""
    text = tokenizer.decode(ids)
    for special in (True, False):
        with suppress(InputError):  # a special token that the model has no row for
            if tokenizer.encode(text, special=special) == list(ids):
                return text, special
    return None


def tokenized(
    g: Graph, passage: Passage, tokenizer: Tokenizer, text: str, special: bool, vocabulary: Block
) -> Block:
    """Add a sentence and its tokenizer in cells; returns the tokens' texts, [n_tokens, 1]."""
    n_tokens = len(passage.ids)
    ids = tokenizing.add(g, tokenizer, text, n_tokens, room(text, passage), special).ids
    return g.at("prompt").table(
        "word",
        (n_tokens, 1),
        lambda t, _: IF(ids[t, 0] < 0, "", Nth(vocabulary.area.fixed, ids[t, 0] + 1)),
        TOKENS,
    )


def room(text: str, passage: Passage) -> int:
    """The maximum length of a typed sentence, in characters or bytes, given the passage's text."""
    n = len(text.encode())
    if passage.chat:
        more = passage.text_length or tokenizing.TEXT_LENGTH * (1 + passage.chat.by_ids)
        return n + more
    return max(n, passage.text_length or max(tokenizing.TEXT_LENGTH, 2 * n))


def opening(tokenizer: Tokenizer) -> str:
    """The word that a vocabulary of words puts in front of a text that lacks it; "" for none."""
    return tokenizer.opening if isinstance(tokenizer, WordList) else ""


def split_at_spaces(g: Graph, text: str, n_tokens: int, first: str = "") -> Block:
    """Add a sentence and its words: [n_tokens, 1].

    Each row takes the first word off the sentence and passes on the rest. A sentence that lacks its
    `first` word gets it, and `prompt.opened` is 1.
    """
    at, one = g.at("prompt"), (n_tokens, 1)
    typed = TRIM(g.input("sentence", text, kind="table")[0, 0])
    if first:
        begins = LOWER(LEFT(typed & " ", len(first) + 1)) == f"{first.lower()} "
        lacks = IF(OR(typed == "", begins), 0, 1)
        opened = at.table("opened", (1, 1), lambda *_: lacks)[0, 0]
        typed = IF(opened == 1, f"{first} ", "") & typed

    def rest_of(t: int, _: int) -> Expression:
        if t == 0:
            return typed
        before, taken = rest[t - 1, 0], word[t - 1, 0]
        return MID(before, LEN(taken) + 2, LEN(before) + 1)

    def first_of(t: int, _: int) -> Expression:
        begin = LEFT(rest[t, 0], WORD)  # of all of it, the spaces would pass 32,767 characters
        return TRIM(MID(SUBSTITUTE(begin, " ", REPT(" ", WORD)), 1, WORD))

    rest = at.table("rest", one, rest_of, TOKENS)
    word = at.table("word", one, first_of, TOKENS)
    return word


def look(g: Graph, words: Sequence[str]) -> None:
    """Make lens and attribution (see `lens.add`) follow the typed sentence: they look at the end of
    the prompt, and at its two most likely words among `words`, those with a logit. Words typed into
    `instead` replace them."""
    n_prompt = g["n_prompt"]
    outputs = g.input("outputs", column(words), (g["logits"].axes[1], ""), "table")
    at, n_tokens = g.at("look"), g["tokens"].shape[0]
    word_lookup.add(at, words)
    word_lookup.add_lowered(at, words)
    place = at.input("position.instead", "", kind="table")[0, 0]
    typed = IFERROR(IF(place == "", -1, INT(place * 1)), -1)
    g.follow("position", lambda *_: IF(typed < 0, n_prompt[0, 0] - 1, MIN(n_tokens - 1, typed)))
    ids = {name: _instead(at, name) for name in ("target", "rival")}
    order, here = g["choice.order"], g["position"][0, 0] + 1
    first, second = (_at(order[:, rank], here) for rank in (0, min(1, order.shape[1] - 1)))
    g.follow("target", lambda *_: IF(ids["target"] >= 0, ids["target"], first))
    other = IF(g["target"][0, 0] == second, first, second)
    g.follow("rival", lambda *_: IF(ids["rival"] >= 0, ids["rival"], other))
    for name in ids:
        word = Nth(outputs.area.fixed, g[name][0, 0] + 1)
        at.table(name, (1, 1), lambda *_, word=word: word)


def _instead(at: Graph, name: str) -> Expression:
    """The id of the word typed for the `target` or the `rival`, -1 if there is none: [1, 1]."""
    typed = at.input(f"{name}.instead", "", kind="table")[0, 0]
    sought = word_lookup.place_of(typed, at, "look.words")
    exact = at.table(f"{name}.exact", (1, 1), lambda *_: sought)[0, 0]
    loose = word_lookup.find_ignoring_case(typed, at, "look.lowered")
    ident = IF(typed == "", -1, IF(exact >= 0, exact, loose))
    return at.table(f"{name}.id", (1, 1), lambda *_: ident)[0, 0]


def _at(area: Area, k: Expression) -> Expression:
    """The k-th of some cells, or the only one."""
    return Nth(area.as_range, k) if area.rect.size > 1 else area


def column(texts: Sequence[str | float]) -> np.ndarray:
    """Texts, or numbers, as a column of cells."""
    return np.array(texts, dtype=object).reshape(-1, 1)
