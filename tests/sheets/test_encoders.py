"""Encoders: what is typed, with room left or too little, has the numbers that it has by itself."""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from conftest import (
    assert_agrees,
    cli,
    libreoffice_after,
    recomputed_in_ironcalc,
    typed,
)
from encoders import N_TOKENS, PAIRS, TEXT_LENGTH, cosine, encoder

import cellformer as cf
from cellformer.engine.models import checkpoint
from cellformer.engine.models.generate import passage
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.checking.verify import read, verify
from cellformer.exporters.compose.book import Book

pytestmark = pytest.mark.slow

SENTENCES = ("sentence", "last token")
KINDS = (*SENTENCES, "bert", "roberta")
ERROR = re.compile(r"#(N/A|REF!|VALUE!|DIV/0!|NAME\?|NUM!|NULL!|ERROR!)")
MASKED = {
    "bert": ["the [MASK] is true", "[MASK]", "it [MASK] a class[MASK]", "no mask", "a " * 9],
    "roberta": ["the <mask> is true", "<mask>", "it<mask> a class   <mask>", "no mask", "a " * 19],
}


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> dict[str, Path]:
    """Their workbooks, written once."""
    folder = tmp_path_factory.mktemp("encoders")
    return {kind: cf.write(book(kind), folder / f"{kind}.xlsx") for kind in KINDS}


@cache
def book(kind: str) -> Book:
    model, texts = encoder(kind), PAIRS[0] if kind in SENTENCES else MASKED[kind][:1]
    ids, *second = (model.vocabulary.encode(text) for text in texts)
    words = passage(model, ids, N_TOKENS, second=second[0] if second else ())
    return model_workbook.build(kind, model, replace(words, text_length=TEXT_LENGTH))


def cut(kind: str, text: str) -> list[int]:
    """A text's ids, as many as fit."""
    return encoder(kind).vocabulary.encode(text)[:N_TOKENS]


@pytest.mark.parametrize("kind", SENTENCES)
def test_cosine_of_typed_sentences(kind: str) -> None:
    live = cf.Evaluator(book(kind).graph)
    for first, second in PAIRS[1::7]:
        live.set("sentence", 0, 0, first)
        live.set("b.sentence", 0, 0, second)
        expected = cosine(encoder(kind), first, second)
        assert abs(live["cosine"][0, 0] - expected) < 1e-12, (first, second)
        ids = cut(kind, second)
        assert live["b.tokens"][: len(ids), 0].astype(int).tolist() == ids
        assert int(live["b.attention_mask"].sum()) == len(ids)


@pytest.mark.parametrize("kind", MASKED)
def test_typed_mask_is_ranked(kind: str) -> None:
    model, live = encoder(kind), cf.Evaluator(book(kind).graph)
    for text in MASKED[kind][2:]:
        live.set("sentence", 0, 0, text)
        ids = cut(kind, text)
        assert live["tokens"][: len(ids), 0].astype(int).tolist() == ids, text
        alone, place = model.graph(ids), model.place_of_answer(ids)
        assert live["position"][0, 0] == place
        np.testing.assert_allclose(live["probs"][0], alone.values["probs"][place], atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_encoders_in_ironcalc(kind: str, written, tmp_path: Path) -> None:
    where, found = book(kind), read(written[kind])
    sheet, cells = recomputed_in_ironcalc(found, tmp_path), list(found.formulas)
    sentence = PAIRS[1][1] if kind in SENTENCES else MASKED[kind][2]
    for text in (sentence, "", "long " * 20):
        with sheet.typed({where.cell("sentence", 0, 0): text}):
            ids = cut(kind, text)
            if len(text) <= TEXT_LENGTH:
                shown = [sheet[where.cell("tokens", t, 0)] for t in range(len(ids))]
                assert shown == ids, text
            assert [cell for cell in cells if ERROR.match(str(sheet[cell]))] == [], text


def test_encoders_in_libreoffice(written, tmp_path: Path, libreoffice) -> None:
    """One pair typed; `benchmarks/sentences.py` types twenty."""
    where, pair = book("sentence"), PAIRS[7]
    names = zip(("sentence", "b.sentence"), pair, strict=True)
    cells = {where.cell(name, 0, 0): text for name, text in names}
    untyped = {kind: read(written[kind]) for kind in ("sentence", "bert")}
    edits = {"sentence": [{}, cells], "bert": [{}]}
    shown = {k: libreoffice_after(written[k], typed, tmp_path / k) for k, typed in edits.items()}
    for kind, files in shown.items():
        assert_agrees(untyped[kind], files[0])
    sheet, row, col = where.cell("cosine", 0, 0)
    answer = shown["sentence"][1][sheet][row, col]
    assert abs(answer - cosine(encoder("sentence"), *pair)) < 1e-9
    report = verify(untyped["bert"], "gnumeric")
    assert report.skipped or report.agrees


def edited(kind: str, path: Path, folder: Path) -> Path:
    """A workbook in which a weight and a sentence were typed."""
    where = book(kind)
    cells: dict[tuple[str, int, int], float | str] = {where.cell("W_pos", 2, 1): 3.0}
    cells[where.cell("sentence", 0, 0)] = "the object"
    return typed(path, folder / "edited.xlsx", cells)


def test_diff_of_an_encoder(written, tmp_path: Path) -> None:
    done = cli("diff", edited("sentence", written["sentence"], tmp_path))
    assert done.code == 0, done
    for text in ("W_pos[2,1]", "sentence[0,0]", "cosine", "baseline"):
        assert text in done.out
    assert "typed over" not in done.out


def test_import_an_edited_encoder(written, tmp_path: Path) -> None:
    path = edited("bert", written["bert"], tmp_path)
    assert cli("import", path, "-o", tmp_path / "out").code == 0
    weights, expected = cf.load(tmp_path / "out").weights, dict(encoder("bert").weights)
    expected["W_pos"] = expected["W_pos"].copy()
    expected["W_pos"][2, 1] = 3.0
    for name, values in expected.items():
        np.testing.assert_array_equal(np.reshape(weights[name], values.shape), values)


def test_shares_of_a_masked_word_add_up(tmp_path: Path) -> None:
    """The mask stands in the middle: the shares are those of its token."""
    checkpoint.save(encoder("bert"), tmp_path / "m")
    done = cli("run", tmp_path / "m", "--prompt", "the [MASK] is true", "--target", "value")
    assert done.code == 0, done
    lines = [line.split() for line in done.out.splitlines()]
    logit = next(line[2] for line in lines if line[1:2] == ["value"])
    shares = {" ".join(line[:-2]) or line[0]: line[-2] for line in lines[-14:] if len(line) > 1}
    assert float(shares.pop("sum")) == float(logit)
    assert sum(map(float, shares.values())) == pytest.approx(float(logit), abs=1e-3)
    assert "head 0.1" in shares
