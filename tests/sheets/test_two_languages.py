"""A translator with a vocabulary for each language: typed words are translated in the sheet as
transformers translates them."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import two_languages
from conftest import assert_recomputes_after, cli, libreoffice_after, recomputed_in_ironcalc
from two_languages import LONGEST, PAIRS

import cellformer as cf
from cellformer.engine.models import checkpoint
from cellformer.engine.models.generate import passage
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.checking.verify import read

pytestmark = pytest.mark.slow

OTHERS = ["a bird reads", "the child sings meat", "zebra  sleeps ", "", "the </s> cat", "a é b"]
N = LONGEST


@pytest.fixture(scope="module")
def folder(tmp_path_factory, torch, transformers) -> Path:
    torch.set_num_threads(1)
    found = tmp_path_factory.mktemp("two")
    two_languages.trained(found, torch, transformers)
    return found


@pytest.fixture(scope="module")
def answers(folder: Path, torch, transformers) -> dict[str, list[int]]:
    """The ids that transformers' generate answers to each text with, without the start."""
    model = checkpoint.load(folder)
    reference = transformers.MarianMTModel.from_pretrained(folder).eval()
    found = {}
    for text in [*PAIRS, *OTHERS]:
        ids = torch.tensor([model.reader.encode(text)])
        asked = {"max_new_tokens": N - 1, "do_sample": False, "num_beams": 1}
        answer = reference.generate(ids, attention_mask=torch.ones_like(ids), **asked)
        found[text] = answer[0].tolist()[1:]
    return found


@pytest.fixture(scope="module")
def book(folder: Path):
    model = checkpoint.load(folder)
    model = model.reading(model.reader.encode("a cat sings"))
    return model_workbook.build("two", model, passage(model, [model.spec.start], N))


def assert_translated(shown: dict[int, float], expected: list[int]) -> None:
    assert [int(shown[t]) for t in range(1, 1 + len(expected))] == expected


def test_it_has_learnt_the_ten_sentences(folder: Path, answers) -> None:
    model = checkpoint.load(folder)
    assert {text: model.vocabulary.decode(answers[text]) for text in PAIRS} == PAIRS
    assert (model.spec.d_vocab, model.spec.d_vocab_source) == (
        model.vocabulary.n,
        model.reader.n,
    )
    assert model.reader.ids.keys() != model.vocabulary.ids.keys()


@pytest.mark.skipif(not importlib.util.find_spec("sentencepiece"), reason="needs sentencepiece")
def test_ids_equal_those_of_transformers(folder: Path, answers, transformers) -> None:
    tokenizer, model = transformers.MarianTokenizer.from_pretrained(folder), checkpoint.load(folder)
    for text, ids in answers.items():
        assert model.reader.encode(text) == tokenizer(text)["input_ids"]
        assert model.vocabulary.decode(ids) == tokenizer.decode(ids, skip_special_tokens=True)


def test_typed_words_are_translated(book, folder: Path, answers) -> None:
    live, model = cf.Evaluator(book.graph), checkpoint.load(folder)
    for text, expected in answers.items():
        live.set("encoder.sentence", 0, 0, text)
        ids = model.reader.encode(text)
        assert live["encoder.tokens"][: len(ids), 0].tolist() == ids, text
        assert_translated(dict(enumerate(live["tokens"][:, 0])), expected)
        assert live["text.whole"][0, 0].rstrip() == model.vocabulary.decode(expected)


def test_typed_words_in_libreoffice_and_ironcalc(book, answers, tmp_path, libreoffice) -> None:
    path = cf.write(book, tmp_path / "two.xlsx")
    texts = ["the child eats fish", "zebra  sleeps "]
    cell = book.cell("encoder.sentence", 0, 0)
    for text, file in zip(
        texts, libreoffice_after(path, [{cell: t} for t in texts], tmp_path / "o"), strict=True
    ):
        at = [book.cell("tokens", t, 0) for t in range(N)]
        shown = {t: file[sheet][row, col] for t, (sheet, row, col) in enumerate(at)}
        assert_translated(shown, answers[text])
    cells = read(path)
    sheet = recomputed_in_ironcalc(cells, tmp_path)
    assert_recomputes_after({("encoder.sentence", 0, 0): texts[0]}, sheet, book, cells)


def test_saved_model_translates_alike(folder: Path, answers, tmp_path, transformers) -> None:
    model = checkpoint.load(folder)
    checkpoint.save(model, tmp_path / "back")
    again = checkpoint.load(tmp_path / "back")
    assert (again.spec, again.vocabulary.files) == (model.spec, model.vocabulary.files)
    theirs = transformers.MarianMTModel.from_pretrained(tmp_path / "back").state_dict()
    kept = transformers.MarianMTModel.from_pretrained(folder).state_dict()
    for name, values in kept.items():
        np.testing.assert_array_equal(theirs[name], values)
    text = "the dog eats meat"
    done = cli("generate", tmp_path / "back", "--prompt", text, "-n", str(N - 1))
    assert done.out.strip() == PAIRS[text]


def test_ids_of_the_source_are_of_its_vocabulary(folder: Path) -> None:
    n = checkpoint.load(folder).reader.n
    done = cli("run", folder, "--ids", str(n))
    assert done.code == 2 and f"run from 0 to {n - 1}" in done.err


def test_two_that_may_be_cut_in_two_ways_are_refused(book) -> None:
    live = cf.Evaluator(book.graph)
    live.set("encoder.sentence", 0, 0, "a >>fr<< cat")
    assert "a language" in live["encoder.tokenizer.message"][0, 0]
