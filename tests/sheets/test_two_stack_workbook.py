"""Workbooks of encoder-decoders: a typed source sentence is answered as `generate` answers it."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from conftest import (
    GOLDEN,
    assert_libreoffice_agrees_after,
    assert_recomputes_after,
    cli,
    libreoffice_after,
    recomputed_in_ironcalc,
    script,
    told,
    typed,
)
from translators import N_TOKENS, SOURCES, TEXT_LENGTH, answer, translator

import cellformer as cf
from cellformer.engine.cells import language
from cellformer.engine.cells.gradient import backward
from cellformer.engine.learning import objective
from cellformer.engine.models import checkpoint
from cellformer.engine.models.choosing import GREEDY, Sampling
from cellformer.engine.models.generate import generate, passage
from cellformer.engine.studies import ablation
from cellformer.engine.studies.addition import Studies
from cellformer.engine.studies.forecast import forecast
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.checking.verify import read, verify
from cellformer.exporters.edits import edited
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.model.plan import Limits, for_model

pytestmark = pytest.mark.slow

NAMES = ("t5", "flan-t5", "umt5", "bart", "marian")
ALL_WORDS, FEW_WORDS = Limits(), Limits(words=10)  # above it, one token alone is ranked
START = SOURCES[1]


@cache
def translates(limits: Limits = ALL_WORDS) -> ModelBook:
    model = translator()
    model = model.reading(model.vocabulary.encode(START))
    words = replace(passage(model, [model.spec.start], N_TOKENS), text_length=TEXT_LENGTH)
    return model_workbook.build("translator", model, words, limits=limits)


def of_ids(
    name: str, n: int, studies: Studies | None = None, limits: Limits = ALL_WORDS
) -> ModelBook:
    """The workbook of a golden model, whose source is typed as ids: more of them than columns."""
    model = checkpoint.load(GOLDEN / name).reading([3, 1, 4, 7, 5])
    words = passage(model, [model.spec.start], n)
    return model_workbook.build(name, model, words, studies=studies, limits=limits)


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    return cf.write(translates(), tmp_path_factory.mktemp("two") / "translator.xlsx")


def ids_of_answer(shown: Mapping[int, float]) -> list[int]:
    """The ids of the answer on a sheet, from the first word to the end of the text."""
    found = [int(shown[t]) for t in range(1, N_TOKENS)]
    (end,) = translator().vocabulary.ends
    return found[: found.index(end)] if end in found else found


@pytest.mark.parametrize("text", SOURCES)
def test_a_typed_source_is_answered_as_generate_answers(text: str) -> None:
    live = cf.Evaluator(translates().graph)
    live.set("encoder.sentence", 0, 0, text)
    expected = answer(translator(), text)
    assert ids_of_answer(dict(enumerate(live["tokens"][:, 0]))) == expected
    assert live["text.whole"][0, 0] == translator().vocabulary.decode(expected)
    n = len(translator().vocabulary.encode(text)[:N_TOKENS])
    assert live["encoder.attention_mask"][:, 0].tolist() == [1.0] * n + [0.0] * (N_TOKENS - n)


def test_sources_typed_in_libreoffice_are_answered(written, tmp_path: Path, libreoffice) -> None:
    """Ten sources, each typed into a workbook whose every cached value is wrong."""
    book = translates()
    sources = [text for text in SOURCES if text][:10]
    cell = book.cell("encoder.sentence", 0, 0)
    shown = libreoffice_after(written, [{cell: text} for text in sources], tmp_path / "office")
    answers = set()
    for text, file in zip(sources, shown, strict=True):
        at = [book.cell("tokens", t, 0) for t in range(N_TOKENS)]
        found = ids_of_answer({t: file[sheet][row, col] for t, (sheet, row, col) in enumerate(at)})
        assert found == answer(translator(), text), text
        sheet, row, col = book.cell("text.whole", 0, 0)
        assert (file[sheet][row, col] or "") == translator().vocabulary.decode(found), text
        answers.add(tuple(found))
    assert len(answers) > 5


def test_generate_prints_what_the_sheet_says(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    checkpoint.save(translator(), folder)
    live = cf.Evaluator(translates().graph)
    for text in ("return the same list", "1 + 2 = 3"):
        live.set("encoder.sentence", 0, 0, text)
        done = cli("generate", folder, "--prompt", text, "-n", str(N_TOKENS - 1))
        assert done.out.rstrip("\n") == live["text.whole"][0, 0]


def test_a_translator_in_ironcalc_and_gnumeric(written, tmp_path: Path) -> None:
    book, cells = translates(), read(written)
    sheet = recomputed_in_ironcalc(cells, tmp_path)
    for text in (SOURCES[7], "", "</s>"):
        assert_recomputes_after({("encoder.sentence", 0, 0): text}, sheet, book, cells)
    off = {("blocks.0.cross.h1.switch", 0, 0): 0.0, ("encoder.blocks.1.mlp.switch", 0, 0): 0.0}
    assert_recomputes_after(off, sheet, book, cells)
    picked = {("prompt.pick", 1, 0): book.labels["vocab"][20], ("prompt.pick", 2, 0): "no word"}
    assert_recomputes_after(picked, sheet, book, cells)
    report = verify(cells, "gnumeric")
    assert report.skipped or report.agrees


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("limits", [ALL_WORDS, FEW_WORDS], ids=["all words", "one token"])
def test_ids_typed_in_libreoffice(name: str, limits: Limits, tmp_path: Path, libreoffice) -> None:
    book = of_ids(name, 4, limits=limits)
    path = cf.write(book, tmp_path / "book.xlsx")
    other = {("encoder.tokens", 1, 0): 9.0, ("encoder.n_prompt", 0, 0): 2.0}
    edits = [{}, other, {("blocks.0.cross.switch", 0, 0): 0.0}]
    assert_libreoffice_agrees_after(edits, book, read(path), tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_typed_ids_are_answered_as_generate_answers(name: str) -> None:
    book = of_ids(name, 6)
    live = cf.Evaluator(book.graph)
    for t, i in enumerate([9, 2]):
        live.set("encoder.tokens", t, 0, float(i))
    live.set("encoder.n_prompt", 0, 0, 2.0)
    model = book.model.reading([9, 2])
    steps = generate(model, [model.spec.start], 5)
    assert live["tokens"][1:, 0].tolist() == [step.token for step in steps]


def test_one_ranked_token_follows_the_source_and_the_answer_so_far() -> None:
    book, model = translates(FEW_WORDS), translator()
    live = cf.Evaluator(book.graph)
    live.set("encoder.sentence", 0, 0, SOURCES[8])
    for t, i in enumerate(answer(model, SOURCES[8])[:3], 1):
        live.set("prompt.pick", t, 0, float(i))
    source = model.reading(model.vocabulary.encode(SOURCES[8]))
    graph = source.graph([model.spec.start, *answer(model, SOURCES[8])[:3]])
    np.testing.assert_allclose(live["logits"][0], graph.values["logits"][-1], atol=1e-12)


def test_switches_of_both_stacks_say_what_ablate_says() -> None:
    book = of_ids("t5", 4)
    sheet = book.sheets["Switches"]
    constants = {
        float(entry.value) for entry in sheet.entries.values() if entry.style == "constant"
    }
    target = int(book.value("target", 0, 0))
    graph = book.model.graph([book.model.spec.start])
    effects = {e.part: -e.change for e in ablation.effects(graph, target)}
    names = {"encoder.blocks.0.attn.h0", "blocks.0.attn.h0", "blocks.0.cross.h0"}
    names |= {"encoder.blocks.0.mlp", "blocks.0.cross", "blocks.0.mlp"}
    assert names <= set(effects)
    for part, loss in effects.items():
        assert min(abs(loss - value) for value in constants) < 1e-9, part
        assert book.places[f"{part}.switch"].sheet == "Switches"


def test_an_average_is_over_the_tokens_that_a_part_writes_at() -> None:
    model = checkpoint.load(GOLDEN / "t5").reading([3, 1, 4])
    wrote = model.graph([0, 5]).values
    averages = ablation.averaged(model, [[0, 5]]).averages
    for part in ("encoder.blocks.0.attn.h1.result", "blocks.0.cross.h0.result"):
        expected = wrote[part].mean(axis=0)
        name = part.replace("result", "average")
        np.testing.assert_allclose(averages[name][0], expected, atol=1e-12)


def test_sheets_stand_in_the_order_of_the_figure() -> None:
    order = list(of_ids("t5", 4).sheets)
    kinds = ["Encoder Embedding", "Encoder Block 0", "Encoder Output", "Embedding", "Block 0"]
    kinds += ["Readout", "Encoder Weights 0", "Weights 0"]
    places = [order.index(kind) for kind in kinds]
    assert places == sorted(places)


def test_keys_of_cross_attention_are_labelled_by_the_source() -> None:
    book = translates()
    labels = book.shown["labels.blocks.0.cross.h0.pattern.columns"].block
    words = [str(book.clean(labels[0, k])) for k in range(4)]
    vocabulary = translator().vocabulary
    assert words == [book.labels["vocab"][i] for i in vocabulary.encode(START)[:4]]


def test_edits_of_a_translator_are_taken_back(written, tmp_path: Path) -> None:
    book = translates()
    cells: dict[tuple[str, int, int], float | str] = {
        book.cell("encoder.sentence", 0, 0): "names in Python",
        book.cell("blocks.0.cross.h0.W_K", 1, 2): 3.0,
    }
    path = typed(written, tmp_path / "edited.xlsx", cells)
    found = edited.read(path)
    assert found.values == {
        ("encoder.sentence", 0, 0): "names in Python",
        ("blocks.0.cross.h0.W_K", 1, 2): 3.0,
    }
    done = cli("diff", path)
    assert done.code == 0 and f"the prompt: {START} → names in Python" in done.out
    words = told("run", path)["words"]
    changed = {**translator().weights}
    changed["blocks.0.cross.h0.W_K"] = np.array(changed["blocks.0.cross.h0.W_K"])
    changed["blocks.0.cross.h0.W_K"][1, 2] = 3.0
    model = replace(translator(), weights=changed)
    logits = model.reading(model.vocabulary.encode("names in Python")).graph([0]).last("logits")
    assert words[0]["logit"] == pytest.approx(float(logits.max()), abs=1e-9)


def test_a_workbook_answers_another_source(written) -> None:
    done = cli("generate", written, "--prompt", SOURCES[3], "-n", str(N_TOKENS - 1))
    expected = translator().vocabulary.decode(answer(translator(), SOURCES[3]))
    assert done.out.rstrip("\n") == expected


def test_an_odd_number_of_source_tokens_is_harmless() -> None:
    """A number of tokens that is typed out of range leaves numbers in every cell."""
    live = cf.Evaluator(of_ids("t5", 4).graph)
    for n in (0.0, -3.0, 99.0, 2.5):
        live.set("encoder.n_prompt", 0, 0, n)
        assert np.isfinite(live["logits"]).all()


def test_a_gradient_workbook_of_two_stacks(tmp_path: Path) -> None:
    book = of_ids("t5", 3, {"gradient": True})
    graph = book.model.graph(book.passage.ids)
    words = (int(book.value(word, 0, 0)) for word in ("target", "rival"))
    name = "encoder.blocks.0.attn.h1.W_V"
    own = backward(graph, objective.logit(graph, 0, *words))[name]
    found = book.values[f"gradient.{name}"]
    np.testing.assert_allclose(found, graph.values[own.name], atol=1e-12)
    assert np.abs(found).max() > 0
    cells = read(cf.write(book, tmp_path / "gradient.xlsx"))
    sheet = recomputed_in_ironcalc(cells, tmp_path)
    assert_recomputes_after({("W_E", 4, 1): 0.7}, sheet, book, cells)


@pytest.mark.parametrize("asked", [("--nudge",), ("--why",), ("--against", "2,1,4")])
def test_what_two_stacks_have_not_is_refused_in_a_line(asked) -> None:
    done = cli("build", GOLDEN / "t5", "--ids", "3,1,4", *asked)
    assert done.code == 2 and "two stacks" in done.err and done.err.count("\n") == 1


@pytest.mark.parametrize("part", ["encoder.blocks.0", "blocks.0.cross", "blocks.0.cross.h0.z"])
def test_one_part_alone_is_live(part: str, tmp_path: Path) -> None:
    path = tmp_path / "part.xlsx"
    done = cli("build", GOLDEN / "t5", "--ids", "3,1,4", "--live", part, "-o", path)
    assert done.code == 0, done
    sheet = recomputed_in_ironcalc(read(path), tmp_path)
    assert ("Encoder Block 0" in sheet.number) == part.startswith("encoder")


def test_a_part_behind_the_patterns_has_no_sheet_of_heads(tmp_path: Path) -> None:
    """Of one stack, too: what a live part reads of patterns is constant."""
    path = tmp_path / "part.xlsx"
    done = cli(
        "build", GOLDEN / "llama", "--ids", "2,3", "--live", "blocks.0.attn.h0.z", "-o", path
    )
    assert done.code == 0, done
    assert "Heads" not in recomputed_in_ironcalc(read(path), tmp_path).number


def test_every_text_is_in_italian() -> None:
    languages = script("languages")
    recorder = languages.Recorder("en")
    with language.speaking(recorder):
        book = of_ids("t5", 4)
        of_ids("t5", 4, limits=FEW_WORDS)
    asked = languages._messages(recorder, book)
    assert [text for text in asked if text not in language.language("it").texts] == []


@pytest.mark.parametrize("name", ["bart", "mbart", "marian"])
def test_answers_of_relatives_are_those_of_generate(name: str, tmp_path: Path) -> None:
    """Their answers end with a word that their files force; norms, places and words differ."""
    book = of_ids(name, 5)
    live = cf.Evaluator(book.graph)
    for source in ([3, 1, 4, 7, 5], [9, 2], [11, 6, 4]):
        for t, i in enumerate(source):
            live.set("encoder.tokens", t, 0, float(i))
        live.set("encoder.n_prompt", 0, 0, float(len(source)))
        model = book.model.reading(source)
        steps = generate(model, [model.spec.start], 4)
        assert live["tokens"][1:, 0].tolist() == [step.token for step in steps]
    recomputed_in_ironcalc(read(cf.write(book, tmp_path / "book.xlsx")), tmp_path)


@pytest.mark.parametrize("sampling", [GREEDY, Sampling(1.5), Sampling(0.7, top_k=4, top_p=0.9)])
def test_words_that_never_come_are_not_chosen_in_cells(sampling: Sampling, tmp_path: Path) -> None:
    plain = checkpoint.load(GOLDEN / "bart")
    start, source = plain.spec.start, [3, 1, 4, 7, 5]
    likely = {step.token for step in generate(plain.reading(source), [start], 4, sampling, seed=3)}
    rules = replace(plain.rules, never=tuple((i,) for i in likely - {2}))
    model = replace(plain, rules=rules).reading(source)
    steps = generate(model, [start], 4, sampling, seed=3)
    wanted = [step.token for step in steps]
    assert not likely - {2} & {*wanted}
    words = passage(model, [start], 5, sampling, seed=3)
    book = model_workbook.build("bart", model, words)
    assert book.graph.values["tokens"][1:, 0].tolist() == wanted
    recomputed_in_ironcalc(read(cf.write(book, tmp_path / "book.xlsx")), tmp_path)


def test_forecast_of_a_translator() -> None:
    book = translates()
    expected = forecast(book.model, N_TOKENS, for_model(book.model).readout)
    assert expected.n_formulas == pytest.approx(book.n_formulas, rel=0.25)
    assert expected.n_cells == pytest.approx(book.n_cells, rel=0.25)
