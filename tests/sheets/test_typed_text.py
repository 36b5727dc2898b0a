"""What people type on Play, in the model's own tokenizer, by formulas."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from conftest import InIronCalc, random_model, recalculated
from openpyxl import load_workbook
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

import cellformer as cf
from engine.models.detokenizing import held
from engine.models.spec import ModelSpec
from engine.models.subwords import Library
from engine.models.tokenizer import Characters
from exporters.book import Book
from exporters.verify import verify

TALE = (
    "Once upon a time there was a little girl who liked to play with her dog. She didn't know "
    "what's up, 12 times! And in the end it was good: the dog was hers, and so it went on."
)
TYPED = ("the girl", "Once upon a time", "she went on", "12 dogs", "  two spaces", "What's up?")
N_TOKENS = 12


def byte_level() -> Tokenizer:
    """A tokenizer as GPT-2's, learnt from the tale."""
    found = Tokenizer(models.BPE())
    found.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    found.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    found.train_from_iterator(
        [TALE] * 3, trainers.BpeTrainer(vocab_size=290, initial_alphabet=alphabet)
    )
    return found


def sentencepiece() -> Tokenizer:
    """A tokenizer as Llama's, learnt from the tale."""
    found = Tokenizer(models.BPE(byte_fallback=False, unk_token="<unk>"))
    found.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    found.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    trainer = trainers.BpeTrainer(vocab_size=120, special_tokens=["<unk>"])
    found.train_from_iterator([TALE] * 3, trainer)
    return found


@cache
def model(kind: str) -> cf.Model:
    """A small random model whose tokenizer was learnt."""
    if kind == "characters":
        vocabulary = Characters(tuple(sorted(set(TALE))))
        n = len(vocabulary.texts)
    else:
        inner = byte_level() if kind == "byte-level" else sentencepiece()
        n = inner.get_vocab_size()
        vocabulary = Library(inner, n)
    sizes = {"d_model": 6, "n_layers": 1, "n_heads": 1, "d_head": 6}
    spec = ModelSpec(d_vocab=n, n_ctx=40, position="learned", **sizes)
    return replace(random_model(spec), vocabulary=vocabulary)


@cache
def book(kind: str) -> Book:
    return cf.build(model(kind), prompt="the dog", n_tokens=N_TOKENS, title=kind)


KINDS = ("characters", "byte-level", "sentencepiece")


def expected(kind: str, text: str) -> list[int]:
    """The ids of a typed text and its greedy continuation, as the command has them."""
    ids = model(kind).vocabulary.encode(text)[:N_TOKENS]
    more = N_TOKENS - len(ids)
    if more:
        ids += [step.token for step in cf.generate(model(kind), ids, more, cf.Sampling())]
    return ids


def typeable(kind: str) -> Iterator[str]:
    """The texts whose every character the tokenizer knows."""
    for text in TYPED:
        if kind == "byte-level" or set(text) <= set(TALE):
            yield text


@pytest.mark.parametrize("kind", KINDS)
def test_a_typed_sentence_becomes_the_tokenizer_s_ids_and_continues(kind: str) -> None:
    for text in typeable(kind):
        live = cf.Evaluator(book(kind).graph)
        live.set("sentence", 0, 0, text)
        found = live["tokens"][:, 0].astype(int).tolist()
        assert found == expected(kind, text), text
        assert live["text.whole"][0, 0] == held(model(kind).vocabulary.decode(found))


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_in_ironcalc(kind: str, tmp_path: Path) -> None:
    path = cf.write(book(kind), tmp_path / "book.xlsx")
    assert verify(path, "ironcalc").agrees
    sheet, where = InIronCalc(path), book(kind)
    for text in typeable(kind):
        with sheet.typed({where.cell("sentence", 0, 0): text}):
            found = [sheet[where.cell("tokens", t, 0)] for t in range(N_TOKENS)]
            line = sheet[where.cell("text.whole", 0, 0)]
        assert found == expected(kind, text), text
        assert line == held(model(kind).vocabulary.decode([int(i) for i in found]))


def test_what_the_tokenizer_does_not_know_gives_a_message_and_no_id() -> None:
    live = cf.Evaluator(book("characters").graph)
    live.set("sentence", 0, 0, "the dög")
    assert live["tokenizer.fine"][0, 0] == 0
    assert "character" in live["tokenizer.message"][0, 0]
    assert np.isfinite(live["probs"]).all()


@pytest.mark.office
def test_the_same_in_libreoffice(tmp_path: Path) -> None:
    """One text each, typed where the sentence stands."""
    paths = {}
    for kind in KINDS:
        sheets = load_workbook(cf.write(book(kind), tmp_path / f"{kind}.xlsx"))
        sheet, row, col = book(kind).cell("sentence", 0, 0)
        sheets[sheet].cell(row + 1, col + 1).value = "the girl"
        paths[kind] = tmp_path / f"{kind}-typed.xlsx"
        sheets.save(paths[kind])
    for kind, file in recalculated(paths, tmp_path / "out").items():
        cells = [book(kind).cell("tokens", t, 0) for t in range(N_TOKENS)]
        found = [file[sheet][row, col] for sheet, row, col in cells]
        assert found == expected(kind, "the girl"), kind
        sheet, row, col = book(kind).cell("text.whole", 0, 0)
        assert file[sheet][row, col] == held(
            model(kind).vocabulary.decode(expected(kind, "the girl"))
        )
