"""Runs of symbols, which a vocabulary may cut in several ways of nearly the same score: dots,
ellipses, dashes, zeros, exclamation marks. Cells have the library's ids, or a message."""

import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from conftest import random_model, recomputed_in_ironcalc
from many_scripts import GPT4
from test_tokenizing import N_TOKENS, assert_right, in_engine, row_of
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, trainers
from tokenizers import pre_tokenizers as pre

import cellformer as cf
from cellformer.engine.cells.graph import Graph
from cellformer.engine.models.generate import passage
from cellformer.engine.models.spec import ModelSpec
from cellformer.engine.text import tokenizing
from cellformer.engine.text.tokenizer import Library
from cellformer.engine.text.vocabularies import LLAMA3, QWEN2
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.checking.verify import read
from cellformer.exporters.model.plan import Limits

TALE = """
So .. then ... she waited .... and waited ..... Wait… what…? No!! Yes!!! Help!!!! --- or -- not - at
all? 000 dollars, 0000 cents, 10000 times 100.00, 20 and 300. He said... nothing... A dash -- like
this -- or a rule ----- and then ... the end. Stop. Stop. Don't! 1...2...3... 0.5 and 0.005 —— two
dashes — one. ?? ?! *** ** * === == = ___ __ ... ... … ……
"""
OF_TALE = TALE.split()
LINES = [" ".join(OF_TALE[k : k + 9]) for k in range(len(OF_TALE) - 9)]
RUNS = [".", "…", "-", "—", "0", "!", "?", "*", "=", "_", "é"]
WORDS = [*OF_TALE, "so", "wait", "then", "12", "3.5", "don't", "naïve", "☃", "<mask>"]
LENGTH = 36  # room for 16 characters as bytes


def texts(n: int, seed: int) -> list[str]:
    """Random texts of runs and words."""
    rng = random.Random(seed)

    def run() -> str:
        parts = [rng.choice(RUNS) * rng.randint(1, 6) for _ in range(rng.choice((1, 1, 1, 2)))]
        return "".join(parts)

    def one() -> str:
        parts = [
            (run() if rng.random() < 0.6 else rng.choice(WORDS)) + rng.choice(("", " ", " ", "  "))
            for _ in range(rng.randint(1, 5))
        ]
        return "".join(parts)[:16]

    return [one() for _ in range(n)]


def _unigram(
    splitting: pre.PreTokenizer, normalizer: normalizers.Normalizer | None = None
) -> Tokenizer:
    found = Tokenizer(models.Unigram())
    found.pre_tokenizer = splitting
    found.decoder = decoders.Metaspace()
    if normalizer:
        found.normalizer = normalizer
    trainer = trainers.UnigramTrainer(
        vocab_size=140,
        unk_token="<unk>",
        special_tokens=["<unk>", "</s>", "<mask>"],
        show_progress=False,
    )
    found.train_from_iterator(LINES, trainer)
    return found


def _unsplit() -> Tokenizer:
    """The pieces of words, for a text that is not split."""
    found = _unigram(pre.Metaspace())
    found.pre_tokenizer = pre.Metaspace(prepend_scheme="first", split=False)
    return found


def _bpe(splitting: pre.PreTokenizer, size: int, **how: object) -> Tokenizer:
    found = Tokenizer(models.BPE(**how))
    found.pre_tokenizer = splitting
    found.decoder = decoders.BPEDecoder("</w>") if how else decoders.ByteLevel()
    in_bytes = {"initial_alphabet": pre.ByteLevel.alphabet()}
    behind = {"end_of_word_suffix": how.get("end_of_word_suffix")}
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=["<unk>", "<mask>"],
        show_progress=False,
        **(behind if how else in_bytes),
    )
    found.train_from_iterator(LINES, trainer)
    return found


def _of_bytes(pattern: str | None) -> Tokenizer:
    if pattern is None:
        return _bpe(pre.ByteLevel(add_prefix_space=False), 360)
    split = pre.Split(Regex(pattern), "isolated")
    return _bpe(pre.Sequence([split, pre.ByteLevel(False, use_regex=False)]), 360)


def _wordpiece() -> Tokenizer:
    found = Tokenizer(models.WordPiece(unk_token="<unk>"))
    found.normalizer = normalizers.BertNormalizer(lowercase=True)
    found.pre_tokenizer = pre.BertPreTokenizer()
    found.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(
        vocab_size=160, special_tokens=["<unk>", "<mask>"], show_progress=False
    )
    found.train_from_iterator(LINES, trainer)
    return found


def _albert() -> normalizers.Normalizer:
    letters = [normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]
    return normalizers.Sequence([*letters, normalizers.Replace(Regex(" {2,}"), " ")])


KINDS: dict[str, Callable[[], Tokenizer]] = {
    "t5": lambda: _unigram(pre.Sequence([pre.WhitespaceSplit(), pre.Metaspace()])),
    "unigram unsplit": _unsplit,
    "xlm-r": lambda: _unigram(pre.Metaspace(), normalizers.NFKC()),
    "albert": lambda: _unigram(pre.Metaspace(), _albert()),
    "gpt2": lambda: _of_bytes(None),
    "llama3": lambda: _of_bytes(LLAMA3),
    "qwen2": lambda: _of_bytes(QWEN2),
    "gpt-4": lambda: _of_bytes(GPT4),
    "bert": _wordpiece,
    "</w>": lambda: _bpe(pre.BertPreTokenizer(), 160, unk_token="<unk>", end_of_word_suffix="</w>"),
    "digits grouped": lambda: _bpe(
        pre.Sequence([pre.Digits(), pre.ByteLevel(add_prefix_space=False)]), 360
    ),
}


@cache
def learnt(kind: str) -> Library:
    inner = KINDS[kind]()
    return Library(inner, inner.get_vocab_size())


@cache
def graph_of(kind: str) -> Graph:
    graph = Graph(None, None)
    tokenizing.add(graph, learnt(kind), "", N_TOKENS, LENGTH)
    return graph


# texts in which the order of two pieces depends on where sums begin
TIED = ("===== ====  =====_", "**  !!!!! -----  *", "000000 !!!!___  é0")


@pytest.mark.parametrize("kind", ["t5", "xlm-r", "unigram unsplit"])
def test_sums_of_scores_begin_with_every_word(kind: str) -> None:
    rows = {text: in_engine(graph_of(kind), text) for text in TIED}
    assert all(assert_right(learnt(kind), text, row) for text, row in rows.items())


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_runs_in_the_engine(kind: str) -> None:
    rows = {text: in_engine(graph_of(kind), text) for text in texts(184, seed=len(kind))}
    right = [assert_right(learnt(kind), text, row) for text, row in rows.items()]
    assert sum(right) >= 0.9 * len(right)


def model(kind: str) -> cf.Model:
    """A small random model with a tokenizer of a kind."""
    sizes = {"d_model": 2, "n_layers": 1, "n_heads": 1, "d_head": 2, "n_ctx": N_TOKENS}
    spec = ModelSpec(d_vocab=learnt(kind).n, position="learned", **sizes)
    return replace(random_model(spec), vocabulary=learnt(kind))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_runs_typed_into_play_in_ironcalc(kind: str, tmp_path: Path) -> None:
    """From wrong values, in a workbook of a model."""
    given = passage(model(kind), learnt(kind).encode("the end"), N_TOKENS)
    given = replace(given, text_length=LENGTH)
    book = model_workbook.build(kind, model(kind), given, limits=Limits(words=20))
    sheet = recomputed_in_ironcalc(read(cf.write(book, tmp_path / "book.xlsx")), tmp_path)
    sentence = book.cell("sentence", 0, 0)
    assert sentence[0] == "Play"
    for text in texts(30, seed=len(kind) + 100):
        with sheet.typed({sentence: text}):
            assert_right(learnt(kind), text, row_of(book, sheet.__getitem__))
