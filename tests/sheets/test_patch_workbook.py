"""The sheet Patch: what is switched is computed by other programs as by the engine."""

from pathlib import Path

import numpy as np
import pytest
from conftest import (
    ERROR,
    InIronCalc,
    assert_libreoffice_agrees_after,
    assert_recomputes_after,
    cli,
    golden_models,
)

import cellformer as cf
from cellformer import names
from cellformer.engine import Evaluator, InputError
from cellformer.engine.cells.batch import CellName
from cellformer.engine.models.generate import passage
from cellformer.engine.studies import lens, pair, patching
from cellformer.engine.studies.pair import BEFORE, Against
from cellformer.exporters.assemble import model_workbook, tour
from cellformer.exporters.checking.verify import FormulaCells, read
from cellformer.exporters.edits import edited
from cellformer.exporters.file.xlsx import write
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.pages.patch import LEAD, OTHER_LEAD

TEXTS = ("the cat sat", "the cat the")
PATH = ("embed", "blocks.0.attn.h0.v")
SWITCHED: dict[CellName, float | str] = {
    ("blocks.0.attn.h0.result.take", 2, 0): 1.0,
    ("blocks.0.attn.h0.pattern.take", 1, 0): 1.0,
    ("blocks.0.resid_mid.take", 2, 0): 0.5,
    ("path.take", 2, 0): 1.0,
}


@pytest.fixture(scope="module")
def book() -> ModelBook:
    loaded = names.load("cat-sat", TEXTS[0])
    other = tuple(loaded.model.vocabulary.encode(TEXTS[1]))
    words = passage(loaded.model, loaded.ids)
    found = loaded.book(loaded.model, words, studies={"against": Against(other, PATH)})
    assert isinstance(found, ModelBook)
    return found


@pytest.fixture(scope="module")
def cells(book, tmp_path_factory) -> FormulaCells:
    return read(write(book, tmp_path_factory.mktemp("patch") / "cat-sat.xlsx"))


@pytest.fixture(scope="module")
def sheet(cells) -> InIronCalc:
    return InIronCalc(cells.path)


@pytest.mark.slow
def test_every_suggested_edit_does_what_its_text_says(book, cells, sheet) -> None:
    suggestions = book.sheets["Patch"].suggestions
    assert len(suggestions) == 3
    for t in suggestions:
        after = assert_recomputes_after({t.cell: t.value}, sheet, book, cells)
        assert after.cell(*book.cell(*t.watch)) == pytest.approx(t.becomes, abs=1e-9)
        assert f"{t.becomes:.3f}" in t.text


@pytest.mark.slow
def test_switched_sites_and_a_path_agree_in_other_programs(
    book, cells, sheet, tmp_path, libreoffice
) -> None:
    """From wrong values; and with each suggested edit in LibreOffice, too."""
    assert_recomputes_after(SWITCHED, sheet, book, cells)
    edits = [SWITCHED, *({t.cell: t.value} for t in book.sheets["Patch"].suggestions)]
    assert_libreoffice_agrees_after(edits, book, cells, tmp_path)


@pytest.mark.slow
def test_no_input_gives_an_error(book, cells, sheet) -> None:
    """A text and an error of a switch, unknown words, an equal pair, a longer prompt."""
    typed: tuple[tuple[CellName, float | str], ...] = (
        (("blocks.0.attn.h0.q.take", 1, 0), "abc"),
        (("blocks.0.attn.h0.q.take", 1, 0), 1e308),
        (("blocks.0.attn.h0.pattern.take", 2, 0), -1e308),
        (("path.take", 1, 0), 1e308),
        (("path.rows", 2, 0), 1e308),
        (("other.words", 2, 0), "no-such-word"),
        (("other.words", 2, 0), ""),
        (("other.words", 2, 0), "sat"),
        (("patch.target.word", 0, 0), "no-such-word"),
        (("sentence", 0, 0), "the cat sat on the mat"),
        (("sentence", 0, 0), "no-such-word"),
    )
    for at, value in typed:
        with sheet.typed({book.cell(*at): value}):
            shown = {cell: sheet[cell] for cell in cells.formulas}
        assert not [cell for cell, x in shown.items() if ERROR.fullmatch(str(x))], (at, value)


def test_the_lead_and_the_gradient_are_those_of_the_engine(book) -> None:
    found = cf.patch("cat-sat", TEXTS[1], TEXTS[0])
    rows = {(row.site, row.token): row for row in found}
    live = Evaluator(book.graph)
    for take in pair.switches(book.graph)[::5]:
        row = rows[take.path, 2]
        live.set(take.name, 2, 0, 1.0)
        assert live[LEAD][0, 0] == pytest.approx(row.lead, abs=1e-12)
        live.reset()
        span = book.value(BEFORE, 0, 0) - book.value(OTHER_LEAD, 0, 0)
        gain = book.values[pair.gain(book.graph, take).name][2, 0]
        assert -gain / span == pytest.approx(row.estimate, abs=1e-12)


def test_estimates_and_the_lead_before_do_not_follow_a_switch(book) -> None:
    """But another word of the prompt, which the lead as patched follows, too."""
    live, gains = Evaluator(book.graph), pair.gain(book.graph, pair.switches(book.graph)[3]).name
    built = live[gains].copy()
    live.set("embed.take", 2, 0, 1.0)
    assert live[BEFORE][0, 0] == book.value(LEAD, 0, 0) != live[LEAD][0, 0]
    np.testing.assert_array_equal(live[gains], built)
    live.reset()
    live.set("sentence", 0, 0, "the cat the")
    assert live[BEFORE][0, 0] == pytest.approx(live[LEAD][0, 0], abs=1e-12)
    assert live[BEFORE][0, 0] == pytest.approx(book.value(OTHER_LEAD, 0, 0), abs=1e-12)
    assert np.abs(live[gains] - built).max() > 1e-3


def test_shares_add_up_to_the_logit_while_sites_are_switched(book) -> None:
    live = Evaluator(book.graph)
    for (name, i, j), value in SWITCHED.items():
        live.set(name, i, j, value)
    credits = book.views.credits["target"]
    total = sum(live[credit.name] for credit in credits.values())
    target = int(live["target"][0, 0])
    np.testing.assert_allclose(total[:, 0], live["logits"][:, target], atol=1e-12)
    assert "blocks.0.resid_mid.take" in credits


def test_stages_of_the_stream_are_those_without_switches() -> None:
    graph = golden_models()["gemma2"].graph([1, 2, 3])
    stages = [stage.name for stage in lens.stages(graph)]
    patched = patching.against(graph, [1, 4, 3])
    assert [stage.name for stage in lens.stages(patched)] == stages


@pytest.mark.slow
def test_a_switched_cell_is_read_back(book, tmp_path) -> None:
    path = cf.write(book, tmp_path / "switched.xlsx", {("embed.take", 2, 0): 1.0})
    found = edited.read_model(path)
    assert [(cell.name, cell.now) for cell in found.inputs] == [("embed.take[2,0]", 1.0)]
    assert not (found.overwritten or found.labels or found.added)
    lead = float(found.live()[LEAD][0, 0])
    assert lead == pytest.approx(book.value(OTHER_LEAD, 0, 0))


def test_the_other_sentence_is_told_apart_at_a_glance(book) -> None:
    others = {name: sheet for name, sheet in book.sheets.items() if name.startswith("Other")}
    assert list(others) == ["Other Embedding", "Other Block 0", "Other Readout"]
    for sheet in others.values():
        assert sheet.purpose.startswith("the other sentence: ")
    clean = {name: sheet for name, sheet in book.sheets.items() if name.startswith("Clean")}
    assert list(clean) == ["Clean Embedding", "Clean Block 0", "Clean Readout"]
    (purple,), (grey,) = ({sheet.tab for sheet in each.values()} for each in (others, clean))
    assert purple and grey and purple != grey


def test_the_tour_ends_where_it_patches(book) -> None:
    *_, last = tour.stops(book)
    assert (last.concept, last.sheet) == ("patch it", "Patch")
    assert f"{book.value(LEAD, 0, 0):.2f}".rstrip("0") in last.text.value(book.clean)


def test_a_large_model_has_switches_at_its_stream_alone() -> None:
    graph = golden_models()["llama"].graph([1, 2, 3])
    assert len(pair.sites(graph)) == len(patching.sites(graph))
    few = pair.sites(graph, most=100)
    assert 0 < len(few) < 40
    assert not [place for place in few if place.block.endswith((".q", ".pattern", ".post"))]


def test_a_pair_is_refused_where_it_cannot_be_shown() -> None:
    bert = golden_models()["bert"]
    with pytest.raises(InputError, match="--against needs a decoder with at most"):
        studies = {"against": Against((1, 4, 3))}
        model_workbook.build("bert", bert, passage(bert, [1, 2, 3]), studies=studies)
    given = ("build", "cat-sat", "--prompt", TEXTS[0])
    assert cli(*given, "--against", "the").code == 2
    assert cli(*given, "--from", "embed", "--to", "resid_final").code == 2
    assert cli(*given, "--against", TEXTS[1], "--gradient").code == 2


@pytest.mark.slow
def test_the_command_builds_a_pair(tmp_path: Path) -> None:
    given = ("build", "cat-sat", "--prompt", TEXTS[0], "--against", TEXTS[1])
    done = cli(*given, cwd=tmp_path)
    assert done.code == 0, done.err
    assert (tmp_path / "cat-sat-against.xlsx").is_file()
