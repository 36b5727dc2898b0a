"""What people type on Play, in the model's own tokenizer, by formulas."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import on_play
import pytest
from conftest import (
    CellAt,
    InIronCalc,
    libreoffice_after,
    random_model,
    recomputed_in_ironcalc,
)
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

import cellformer as cf
from cellformer.engine.cells.texts import readable
from cellformer.engine.models.generate import passage
from cellformer.engine.models.spec import ModelSpec
from cellformer.engine.text.detokenizing import held
from cellformer.engine.text.subwords import Library
from cellformer.engine.text.tokenizer import Characters, IdsOnly
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.checking.verify import read, verify
from cellformer.exporters.compose.book import Book
from cellformer.exporters.file.reading import Value
from cellformer.exporters.model.plan import Limits

pytestmark = pytest.mark.slow

TALE = (
    "Once upon a time there was a little girl who liked to play with her dog. She didn't know "
    "what's up, 12 times! And in the end it was good: the dog was hers, and so it went on."
)
TYPED = ("the girl", "Once upon a time", "she went on", "12 dogs", "  two spaces", "What's up?")
# as the usual 60 characters, in few cells; after 12 dogs each kind has room for another token
N_TOKENS, TEXT_LENGTH = 8, 16
FEW = Limits(words=20)  # so that these models have many


def byte_level() -> Tokenizer:
    """A tokenizer as GPT-2's, learnt from the tale."""
    found = Tokenizer(models.BPE())
    found.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    found.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    found.train_from_iterator(
        [TALE] * 3, trainers.BpeTrainer(vocab_size=272, initial_alphabet=alphabet)
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
    trainer = trainers.BpeTrainer(vocab_size=60, special_tokens=["<unk>"])
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
    sizes = {"d_model": 3, "n_layers": 1, "n_heads": 1, "d_head": 2}
    spec = ModelSpec(d_vocab=n, n_ctx=10, position="learned", **sizes)
    return replace(random_model(spec), vocabulary=vocabulary)


@cache
def book(kind: str) -> Book:
    given = passage(model(kind), model(kind).vocabulary.encode("the dog"), N_TOKENS)
    return model_workbook.build(kind, model(kind), replace(given, text_length=TEXT_LENGTH))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Book], Path]:
    """Writes a book, which its title names, once."""
    folder = tmp_path_factory.mktemp("written")

    def path(where: Book) -> Path:
        found = folder / f"{where.title}.xlsx"
        return found if found.exists() else cf.write(where, found)

    return path


@pytest.fixture(scope="module")
def opened(
    written: Callable[[Book], Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Book], InIronCalc]:
    """Opens a book once in IronCalc, which recomputes it from wrong values."""
    found: dict[str, InIronCalc] = {}

    def sheet(where: Book) -> InIronCalc:
        if where.title not in found:
            cells = read(written(where))
            found[where.title] = recomputed_in_ironcalc(cells, tmp_path_factory.mktemp("wrong"))
        else:  # what a test typed last is gone, its results are not
            found[where.title].model.evaluate()
        return found[where.title]

    return sheet


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
def test_typed_sentence_is_tokenized_and_continues(kind: str) -> None:
    live = cf.Evaluator(book(kind).graph)
    for text in typeable(kind):
        live.set("sentence", 0, 0, text)
        found = live["tokens"][:, 0].astype(int).tolist()
        assert found == expected(kind, text), text
        assert live["text.whole"][0, 0] == held(model(kind).vocabulary.decode(found))


@pytest.mark.parametrize("kind", KINDS)
def test_typed_sentence_in_ironcalc(kind: str, opened) -> None:
    where, sheet = book(kind), opened(book(kind))
    for text in typeable(kind):
        with sheet.typed({where.cell("sentence", 0, 0): text}):
            found = [sheet[where.cell("tokens", t, 0)] for t in range(N_TOKENS)]
            line = sheet[where.cell("text.whole", 0, 0)]
        assert found == expected(kind, text), text
        assert line == held(model(kind).vocabulary.decode([int(i) for i in found]))


def test_typed_sentence_in_gnumeric(tmp_path: Path, gnumeric) -> None:
    """It takes no single index for names that stand in a row, as those of a tied model do."""
    tokenizer = model("characters").vocabulary
    spec = replace(model("characters").spec, tied=True)
    tied = replace(random_model(spec), vocabulary=tokenizer)
    found = cf.build(tied, prompt="the dog", n_tokens=N_TOKENS)
    assert found.places["W_E"].turned
    assert verify(cf.write(found, tmp_path / "book.xlsx"), "gnumeric").agrees


def test_unknown_character_gives_a_message() -> None:
    live = cf.Evaluator(book("characters").graph)
    live.set("sentence", 0, 0, "the dög")
    assert live["tokenizer.fine"][0, 0] == 0
    assert "character" in live["tokenizer.message"][0, 0]
    assert np.isfinite(live["probs"]).all()


def test_text_length_is_the_limit(tmp_path: Path) -> None:
    whole = model("characters")
    words = replace(passage(whole, whole.vocabulary.encode("the dog"), 10), text_length=9)
    where = model_workbook.build("short", whole, words)
    path = cf.write(where, tmp_path / "short.xlsx")
    sheet = InIronCalc(path)
    for text, fine in (("the girls", 1), ("the little girl", 0)):
        with sheet.typed({where.cell("sentence", 0, 0): text}):
            assert sheet[where.cell("tokenizer.fine", 0, 0)] == fine
    with sheet.typed({where.cell("sentence", 0, 0): "the little girl"}):
        assert "has more than 9 characters" in sheet[where.cell("tokenizer.message", 0, 0)]
    assert not cf.read(path).inputs  # its Source tells how long


# --- of many words: what comes next is ranked after the last token -------------------------------


@cache
def answering(kind: str, ids: tuple[int, ...] = ()) -> Book:
    given = ids or model(kind).vocabulary.encode("the dog")
    words = replace(passage(model(kind), given, N_TOKENS), text_length=TEXT_LENGTH)
    return model_workbook.build(f"many {kind}", model(kind), words, limits=FEW)


def assert_answers(where: Book, cell: Callable[[CellAt], Value], ids: list[int]) -> None:
    """The first tokens are those, and what comes after them is ranked."""
    logits = where.model.graph(ids).values["logits"][-1]
    assert [cell(where.cell("tokens", t, 0)) for t in range(len(ids))] == ids
    assert cell(where.cell("position", 0, 0)) == len(ids) - 1
    for rank, v in enumerate(np.argsort(-logits)[:5]):
        row = on_play.RANKS_OF_LAST + rank
        assert cell(("Play", row, 2)) == v
        assert cell(("Play", row, 3)) == pytest.approx(logits[v], abs=1e-9)


def told(sheet: InIronCalc) -> str:
    return str(sheet[on_play.MESSAGE])


def line(sheet: InIronCalc) -> str:
    return str(sheet[on_play.TEXT_OF_LAST] or "")


@pytest.mark.parametrize("kind", KINDS)
def test_typed_sentence_is_answered_large_vocabulary(kind: str, opened) -> None:
    where, tokenizer = answering(kind), model(kind).vocabulary
    assert where.plan.answers
    sheet = opened(where)
    assert_answers(where, sheet.__getitem__, tokenizer.encode("the dog"))
    for text in list(typeable(kind))[1::2]:
        ids = tokenizer.encode(text)
        with sheet.typed({where.cell("sentence", 0, 0): text}):
            assert_answers(where, sheet.__getitem__, ids[:N_TOKENS])
            if len(ids) > N_TOKENS:
                assert f"only the first {N_TOKENS} fit" in told(sheet)
            else:
                following = tokenizer.texts[int(sheet["Play", on_play.RANKS_OF_LAST, 2])]
                assert f"tokens given: {len(ids)}" in told(sheet)
                assert line(sheet) == readable(text + following)


def test_typed_ids_replace_the_sentence_large_vocabulary(opened) -> None:
    where, tokenizer = answering("byte-level"), model("byte-level").vocabulary
    sheet = opened(where)
    ids = tokenizer.encode("the dog")
    picked = {where.cell("prompt.pick", t, 0): float(i) for t, i in ((0, 7), (len(ids), 11))}
    with sheet.typed(picked):
        assert_answers(where, sheet.__getitem__, [7, *ids[1:], 11])
        assert "2 picked tokens replace" in told(sheet) and not line(sheet)


def test_unknown_character_is_reported_large_vocabulary(opened) -> None:
    where = answering("characters")
    sheet = opened(where)
    with sheet.typed({where.cell("sentence", 0, 0): "the dög"}):
        assert "the character ö (code 246) has no id in the vocabulary (t is used instead)" in told(
            sheet
        )
        assert not line(sheet)


def test_ids_that_no_text_gives_large_vocabulary() -> None:
    """The bytes of a character in the wrong order."""
    whole = model("byte-level")
    odd = tuple(whole.vocabulary.encode("é")[::-1])
    where = answering("byte-level", odd)
    assert where.graph.inputs["sentence"][0, 0] == ""
    assert where.graph.values["prompt.id"][: len(odd), 0].tolist() == list(odd)
    logits = whole.graph(odd).values["logits"][-1]
    assert where.graph.values["logits"][0] == pytest.approx(logits)


def test_no_tokenizer_large_vocabulary() -> None:
    bare = replace(model("byte-level"), vocabulary=IdsOnly(272))
    where = model_workbook.build("bare", bare, passage(bare, [3, 4]), limits=FEW)
    assert "Tokenizer" not in where.sheets and "sentence" not in where.graph.blocks
    assert "no tokenizer" in where.clean.cell("Play", on_play.SENTENCE[1], 0)


def test_typed_sentence_in_libreoffice(tmp_path: Path, written, libreoffice) -> None:
    """One text, typed where the sentence stands."""
    many = answering("byte-level")
    books = {kind: book(kind) for kind in KINDS} | {"many": many}
    files = {}
    for kind, where in books.items():
        edit = {where.cell("sentence", 0, 0): "12 dogs"}
        (files[kind],) = libreoffice_after(written(where), [edit], tmp_path / kind)
    found = files.pop("many")
    ids = many.model.vocabulary.encode("12 dogs")
    assert_answers(many, lambda at: found[at[0]][at[1:]], ids)
    for kind, file in files.items():
        cells = [book(kind).cell("tokens", t, 0) for t in range(N_TOKENS)]
        found = [file[sheet][row, col] for sheet, row, col in cells]
        wanted = expected(kind, "12 dogs")
        assert found == wanted, kind
        sheet, row, col = book(kind).cell("text.whole", 0, 0)
        assert file[sheet][row, col] == held(model(kind).vocabulary.decode(wanted))
