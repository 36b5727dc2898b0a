"""Large models: matrices that stay in their file, many words, bulky files, one part alone."""

import re
import subprocess
import sys
import zipfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import orjson
import pytest
from conftest import GOLDEN, ROOT, assert_recomputes, needs
from openpyxl import load_workbook

from cellformer.command import main as command
from engine import Evaluator, InputError, Model
from engine.cells.stored import SafetensorsFile, Stored, decimals
from engine.models import checkpoint
from engine.models.generate import passage
from engine.studies.forecast import forecast
from exporters import anymodel, deflate, layout, xlsx
from exporters.plan import for_model
from exporters.verify import poison, recalculate_in_libreoffice, verify

IDS = [3, 1, 2900]


def make(folder: Path, *sizes: int) -> Path:
    """A random checkpoint: layers, width, heads, words, context."""
    script = ROOT / "benchmarks" / "gpt2_small.py"
    subprocess.run([sys.executable, script, folder, *map(str, sizes)], check=True)
    return folder


@pytest.fixture(scope="module")
def many_words(tmp_path_factory) -> Path:
    """A checkpoint of 3,000 words."""
    return make(tmp_path_factory.mktemp("many"), 2, 12, 3, 3000, 16)


@pytest.fixture
def in_file(many_words, monkeypatch) -> Model:
    """Its model, no matrix of which is held."""
    monkeypatch.setattr(checkpoint, "MOST_HELD", 0)
    monkeypatch.setattr("engine.cells.numpy_math.MOST_READ", 5000)
    return checkpoint.load(many_words)


def test_a_stored_matrix_is_the_array(many_words) -> None:
    file = SafetensorsFile(many_words / "model.safetensors")
    stored = Stored(file, "transformer.wte.weight", (10, 30), (2, 9))
    array = np.asarray(stored)
    assert stored.shape == array.shape == (20, 7) and array.dtype == np.float64
    turned = stored.swapaxes(-1, -2)
    np.testing.assert_array_equal(np.asarray(turned), array.T)
    np.testing.assert_array_equal(stored[3:5, :], array[3:5])
    np.testing.assert_array_equal(turned[..., 1:4, 2:], array.T[1:4, 2:])
    np.testing.assert_array_equal(turned[..., np.array([7, 0, 7])], array.T[:, [7, 0, 7]])


def test_a_model_in_its_file_computes_what_a_held_one_does(in_file, many_words) -> None:
    assert isinstance(in_file.weights["W_E"], Stored)
    held = Model(
        in_file.spec,
        {name: np.array(w) for name, w in in_file.weights.items()},
        in_file.vocabulary,
        architecture=in_file.architecture,
    )
    np.testing.assert_allclose(
        in_file.graph(IDS).values["logits"], held.graph(IDS).values["logits"], atol=1e-13
    )
    live = Evaluator(in_file.graph(IDS))
    live.set("blocks.1.attn.h0.W_Q", 0, 0, 5.0)
    assert np.abs(live["logits"] - live.graph.values["logits"]).max() > 0


@pytest.mark.parametrize("scale", [1.0, 0.02, 1e-6, 1e-12, 3000.0, 1e12])
def test_decimals_are_the_shortest(scale: float) -> None:
    x = np.random.default_rng(0).normal(0, scale, (50, 40)).astype(np.float32)
    x[0, :4] = 0, 0.5, 0.1, -1
    shortest = orjson.loads(orjson.dumps(x, option=orjson.OPT_SERIALIZE_NUMPY))
    np.testing.assert_array_equal(decimals(x), shortest)
    np.testing.assert_array_equal(decimals(x).astype(np.float32), x)


def test_a_damaged_file_is_named(in_file, many_words, tmp_path: Path) -> None:
    data = (many_words / "model.safetensors").read_bytes()
    (tmp_path / "short.safetensors").write_bytes(data[:-1000])
    file = SafetensorsFile(tmp_path / "short.safetensors")
    last = max(file.places, key=lambda name: file.places[name].end)
    with pytest.raises(InputError, match="ends within"):
        file.read(last, (0, file.shape(last)[0]))


def build(model: Model, path: Path, live: tuple[str, ...] = ()) -> Path:
    return xlsx.write(anymodel.build("many", model, passage(model, IDS), live), path)


@pytest.mark.parametrize("digits", ["exact", "short"])
def test_many_words_on_several_sheets(in_file, digits: str, tmp_path: Path, monkeypatch) -> None:
    """Every formula agrees; both ways of writing numbers; addresses in all cells, or not."""
    needs("libreoffice")
    needs("ironcalc")
    monkeypatch.setattr(layout, "MOST_COLUMNS", 800)
    model = in_file.with_decimals() if digits == "short" else in_file
    named = build(model, tmp_path / "named.xlsx")
    assert verify(named, "ironcalc").agrees
    sheets = load_workbook(named)
    assert [name for name in sheets.sheetnames if name.startswith("Vocabulary")] == [
        f"Vocabulary {k}" for k in range(4)
    ]
    monkeypatch.setattr(xlsx, "MOST_NAMED", 0)
    bulky = build(model, tmp_path / "bulky.xlsx")
    assert_recomputes([named, bulky], tmp_path / "wrong")
    same = load_workbook(bulky)
    for sheet in sheets:
        for row in sheet.iter_rows():
            for cell in row:
                there = same[sheet.title][cell.coordinate]
                assert there.data_type == cell.data_type
                assert text(there.value) == text(cell.value), (sheet.title, cell.coordinate)


def text(value: object) -> str:
    return str(getattr(value, "text", value))  # of an array formula


def test_the_sheet_holds_the_numbers_that_the_engine_reads(in_file, tmp_path: Path) -> None:
    model = in_file.with_decimals()
    book = anymodel.build("many", model, passage(model, IDS))
    sheets = load_workbook(xlsx.write(book, tmp_path / "short.xlsx"))
    for name in ("W_E", "blocks.0.mlp.W_in", "blocks.1.attn.h2.W_K"):
        place = book.places[name]
        values = np.asarray(book.values[name])
        for i, j in ((0, 0), (5, 3), (7, 1)):
            row, col = place.cell(i, j)
            assert sheets[place.sheet].cell(row + 1, col + 1).value == values[i, j]


def test_typed_ids_and_the_ranking(many_words, tmp_path: Path) -> None:
    needs("libreoffice")
    model = checkpoint.load(many_words)
    path = build(model, tmp_path / "many.xlsx")
    sheets = load_workbook(path)
    sheets["Play"]["E10"] = 77
    sheets.save(tmp_path / "edited.xlsx")
    (out,) = recalculate_in_libreoffice([tmp_path / "edited.xlsx"], tmp_path / "out")
    play = load_workbook(out, data_only=True)["Play"]
    logits = model.graph([3, 1, 77]).values["logits"][-1]
    order = np.argsort(-logits, kind="stable")[:20]
    assert [play.cell(21 + k, 3).value for k in range(20)] == order.tolist()
    for k, v in enumerate(order):
        assert play.cell(21 + k, 4).value == pytest.approx(logits[v], abs=1e-9)


def test_one_part_lives_and_the_rest_is_constant(in_file, tmp_path: Path) -> None:
    needs("libreoffice")
    path = build(in_file, tmp_path / "part.xlsx", ("blocks.1",))
    whole = build(in_file, tmp_path / "whole.xlsx")
    assert path.stat().st_size < whole.stat().st_size
    assert_recomputes([path], tmp_path / "wrong")
    book = anymodel.build("many", in_file, passage(in_file, IDS), ("blocks.1",))
    assert {b.name.split(".")[1] for b in book.graph if b.op} == {"1"}
    place, out = book.places["blocks.1.mlp.W_in"], book.places["blocks.1.resid_post"]
    sheets = load_workbook(path)
    row, col = place.cell(2, 3)
    sheets[place.sheet].cell(row + 1, col + 1).value = 1.5
    sheets.save(tmp_path / "edited.xlsx")
    live = Evaluator(in_file.graph(IDS))
    live.set("blocks.1.mlp.W_in", 2, 3, 1.5)
    (found,) = recalculate_in_libreoffice([tmp_path / "edited.xlsx"], tmp_path / "out")
    sheet = load_workbook(found, data_only=True)[out.sheet]
    for i, j in np.ndindex(*out.block.shape):
        row, col = out.cell(i, j)
        expected = live["blocks.1.resid_post"][i, j]
        assert sheet.cell(row + 1, col + 1).value == pytest.approx(expected, abs=1e-9)


def test_what_is_not_read_back_is_told(in_file, many_words, tmp_path: Path) -> None:
    from exporters import edited

    for live in ((), ("blocks.1",)):
        path = build(in_file, tmp_path / "many.xlsx", live)
        with pytest.raises(InputError, match="is not read back"):
            edited.read(path, lambda title: checkpoint.load(many_words))


def test_every_architecture_as_a_large_workbook(tmp_path: Path, monkeypatch) -> None:
    """Formulas shared down columns: rotary positions, shared key-value heads, windows, RMSNorm."""
    needs("libreoffice")
    needs("ironcalc")
    monkeypatch.setattr("exporters.plan.MANY_WORDS", 1)
    paths = []
    for folder in sorted(path.parent for path in GOLDEN.glob("*/config.json")):
        model = checkpoint.load(folder)
        book = anymodel.build(folder.name, model, passage(model, [1, 2, 0, 2, 1]))
        paths.append(xlsx.write(book, tmp_path / f"{folder.name}.xlsx"))
        assert book.large and verify(paths[-1], "ironcalc").agrees, folder.name
    assert_recomputes(paths, tmp_path / "wrong")


def test_a_head_switched_off_in_the_sheet(many_words, tmp_path: Path) -> None:
    needs("libreoffice")
    model = checkpoint.load(many_words)
    book = anymodel.build("many", model, passage(model, IDS))
    sheets = load_workbook(xlsx.write(book, tmp_path / "many.xlsx"))
    place, logits = book.places["blocks.1.attn.h2.switch"], book.places["logits"]
    sheets[place.sheet].cell(place.top + 1, place.left + 1).value = 0
    sheets.save(tmp_path / "off.xlsx")
    (out,) = recalculate_in_libreoffice([tmp_path / "off.xlsx"], tmp_path / "out")
    sheet = load_workbook(out, data_only=True)[logits.sheet]
    found = [sheet.cell(logits.top + 1 + k, logits.left + 1).value for k in range(3000)]
    live = Evaluator(model.graph(IDS))  # with every head's own share
    live.set("blocks.1.attn.h2.switch", 0, 0, 0.0)
    assert np.abs(np.array(found) - live["logits"][-1]).max() < 1e-9
    assert np.abs(live["logits"] - live.graph.values["logits"]).max() > 1e-4


@pytest.mark.parametrize("stays", [False, True])
def test_what_short_decimals_do_is_told(many_words, tmp_path, monkeypatch, capsys, stays) -> None:
    """Of a model that stays in its file and of one that is held."""
    needs("ironcalc")
    if stays:
        monkeypatch.setattr(checkpoint, "MOST_HELD", 0)
    ids, path = ",".join(map(str, IDS)), tmp_path / "short.xlsx"
    run = ["cellformer", "build", str(many_words), "--ids", ids, "--digits", "short", "-o"]
    monkeypatch.setattr("sys.argv", [*run, str(path)])
    with pytest.raises(SystemExit) as stopped:
        command.main()
    assert not stopped.value.code
    monkeypatch.setattr("sys.argv", ["cellformer", "verify", str(path), "--engine", "ironcalc"])
    with pytest.raises(SystemExit) as stopped:
        command.main()
    assert not stopped.value.code
    exact = checkpoint.load(many_words)
    short = exact.with_decimals()
    gap = np.subtract(*(m.graph(IDS).values["logits"][-1] for m in (exact, short)))
    found = float(re.search(r"moves by (\S+) at most", capsys.readouterr().out)[1])
    assert found == pytest.approx(np.abs(gap).max(), rel=0.06) and found > 0


def test_a_formula_that_no_program_takes(many_words, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(xlsx, "LONGEST", 100)
    with pytest.raises(InputError, match=r"blocks.0.* needs formulas of .* --live"):
        build(checkpoint.load(many_words), tmp_path / "long.xlsx")
    assert list(tmp_path.iterdir()) == []


def test_a_workbook_too_large_to_be_compared_is_told(many_words, tmp_path, monkeypatch) -> None:
    path = build(checkpoint.load(many_words), tmp_path / "many.xlsx")
    monkeypatch.setattr("exporters.verify.MOST_READ", 1000)
    with pytest.raises(InputError, match=r"unpacks to .* MB"):
        verify(path, "ironcalc")


def test_a_part_that_is_none(in_file, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"blocks\.1"):
        build(in_file, tmp_path / "part.xlsx", ("blocks.2",))
    assert list(tmp_path.iterdir()) == []


def test_deflate_is_one_stream_whatever_the_threads() -> None:
    data = b"".join(b"<c><v>%d</v></c>" % (k * k) for k in range(400_000))
    found = []
    for threads in (1, 4):
        with ThreadPoolExecutor(threads) as pool:
            packer = deflate.Deflate(pool)
            parts = [packer.compress(data[k : k + 70_001]) for k in range(0, len(data), 70_001)]
            found.append(b"".join(parts) + packer.flush())
    assert found[0] == found[1]
    assert zlib.decompress(found[0], -15) == data


def test_the_parts_of_a_file_are_whole_and_related(many_words, tmp_path: Path) -> None:
    """Every part parses; every part that relations name is there, and has a content type."""
    from xml.etree import ElementTree

    path = build(checkpoint.load(many_words), tmp_path / "many.xlsx")
    with zipfile.ZipFile(path) as book:
        assert book.testzip() is None
        names = set(book.namelist())
        types = book.read("[Content_Types].xml").decode()
        for name in names:
            ElementTree.fromstring(book.read(name))
            if name.endswith(".xml") and name != "[Content_Types].xml":
                assert f'PartName="/{name}"' in types, name
        targets = re.findall(r'Target="([^"]+)"', book.read("xl/_rels/workbook.xml.rels").decode())
        assert {f"xl/{target}" for target in targets} <= names


def test_an_interrupted_build_leaves_no_file(tmp_path: Path, monkeypatch) -> None:
    def stop(self) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("exporters.xlsx._Sheet._write_rows", stop)
    monkeypatch.setattr("sys.argv", ["cellformer", "build", "cat-sat", "-o", f"{tmp_path}/c.xlsx"])
    with pytest.raises(SystemExit) as stopped:
        command.main()
    assert stopped.value.code == 130
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("tokens", [3, 9])
def test_the_forecast_is_near(many_words, tokens: int) -> None:
    model = checkpoint.load(many_words)
    expected = forecast(model, tokens, for_model(model).readout)
    book = anymodel.build("many", model, passage(model, [1] * tokens))
    n_formulas, n_cells = book.n_formulas, book.n_cells
    assert expected.n_formulas == pytest.approx(n_formulas, rel=0.15)
    assert 0.6 * n_cells < expected.n_cells <= n_cells  # labels are not counted


def test_golden_models_are_small() -> None:
    for path in GOLDEN.glob("*/config.json"):
        weights = checkpoint.load(path.parent).weights.values()
        assert not any(isinstance(w, Stored) for w in weights)


def values_of(path: Path, name: str) -> list[tuple]:
    """The numbers of one sheet of a file too large to be held."""
    rows = load_workbook(path, data_only=True, read_only=True)[name].iter_rows(values_only=True)
    return [tuple(x for x in row if isinstance(x, int | float)) for row in rows]


def test_eight_layers_and_fifty_thousand_words(tmp_path: Path) -> None:
    """A model of TinyStories' sizes, 4 million cells: built, opened, recalculated, compared."""
    needs("libreoffice")
    folder = make(tmp_path / "model", 8, 64, 16, 50257, 64)
    model = checkpoint.load(folder)
    ids = [(7919 * k + 13) % model.spec.d_vocab for k in range(16)]
    book = anymodel.build("stories", model, passage(model, ids))
    path = xlsx.write(book, tmp_path / "stories.xlsx")
    assert book.n_cells > 4_000_000
    poison(path, tmp_path / "wrong.xlsx")
    (out,) = recalculate_in_libreoffice([tmp_path / "wrong.xlsx"], tmp_path / "out")
    for sheet in ("Readout", "Block 7", "Play"):
        for ours, theirs in zip(values_of(path, sheet), values_of(out, sheet), strict=False):
            assert theirs == pytest.approx(ours, abs=1e-9), sheet
    logits = model.graph(ids).values["logits"][-1]
    place = book.places["logits"]
    rows = load_workbook(out, data_only=True, read_only=True)[place.sheet].iter_rows(
        place.top + 1, place.top + len(logits), place.left + 1, place.left + 1, values_only=True
    )
    assert np.abs(np.array([x for (x,) in rows]) - logits).max() < 1e-9
