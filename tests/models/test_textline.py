"""Ids become text in cells as the `tokenizers` library decodes them."""

from functools import cache

import numpy as np
import pytest
from learnt import KINDS, learnt, texts

from cellformer.engine.cells.graph import Graph
from cellformer.engine.text import decoded_text
from cellformer.engine.text.detokenizing import held
from cellformer.engine.text.tokenizer import BYTE, Characters, Tokenizer, WordList

pytestmark = pytest.mark.slow

N_TOKENS = 12
N_RANDOM = 12


@cache
def tokenizer(kind: str) -> Tokenizer:
    if kind == "words":
        return WordList(("the", "a", "cat"))
    return Characters(tuple("abc \n")) if kind == "characters" else learnt(kind)


def cases(kind: str) -> list[list[int]]:
    """Ids of texts, random ids, and random ids that are bytes for the most part."""
    rng, known = np.random.default_rng(7), tokenizer(kind)
    n = len(known.texts)
    found = [known.encode(text) for text in texts(N_RANDOM, 40)] if kind in KINDS else []
    found += [rng.integers(0, n, N_TOKENS).tolist() for _ in range(N_RANDOM)]
    bytes_ = [i for i, text in enumerate(known.texts) if BYTE.search(text)]
    for _ in range(2 * N_RANDOM if bytes_ else 0):
        some = rng.choice(bytes_, N_TOKENS)
        found.append(np.where(rng.random(N_TOKENS) < 0.7, some, rng.integers(0, n)).tolist())
    return [(ids + [0] * N_TOKENS)[:N_TOKENS] for ids in found]


@pytest.mark.parametrize(
    "kind", ["words", "characters", "gpt2", "sentencepiece", "bert", "unigram"]
)
def test_decoded_line_equals_the_library(kind: str) -> None:
    g = Graph()
    g.input("tokens", np.zeros((N_TOKENS, 1)), ("token", ""), "ids")
    decoded_text.add(g, tokenizer(kind))
    for ids in cases(kind):
        g.fill("tokens", np.array(ids, dtype=np.float64)[:, None])
        assert g.values["text.whole"][0, 0] == held(tokenizer(kind).decode(ids)), ids
