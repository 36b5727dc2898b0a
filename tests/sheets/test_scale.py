"""Large models: matrices that stay in their file, many words, bulky files, one part alone."""

import errno
import io
import multiprocessing
import os
import re
import sys
import zipfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson
import pytest
from conftest import (
    GOLDEN,
    assert_agrees,
    cli,
    libreoffice_after,
    libreoffice_shows,
    needs,
    random_model,
    script,
)
from corners import N_COLUMNS, corner, unlike, with_few_words
from kinds import kinds
from libreoffice import Typed

import cellformer as cf
from cellformer.engine import Evaluator, InputError, Model, ModelSpec
from cellformer.engine.cells.evaluation import MOST_READ
from cellformer.engine.cells.stored import SafetensorsFile, Stored, decimals
from cellformer.engine.models import checkpoint
from cellformer.engine.models.generate import passage
from cellformer.engine.studies.forecast import forecast
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.checking.audit import audit
from cellformer.exporters.checking.programs import Recomputed
from cellformer.exporters.checking.verify import FormulaCells, read, verify
from cellformer.exporters.compose.book import Book, OnLayout
from cellformer.exporters.edits import edited
from cellformer.exporters.file import deflate, precompress, xlsx
from cellformer.exporters.file.reading import WorkbookFile
from cellformer.exporters.file.writing import USUAL, Writing
from cellformer.exporters.file.xlsx import MAX_COLUMN
from cellformer.exporters.model.plan import Limits, for_model

pytestmark = pytest.mark.slow

N_WORDS = 300
LIMITS = Limits(words=250)  # so that these are many
SEVERAL = replace(LIMITS, columns=80)  # so that they stand on several sheets
BULKY = Writing(most_addressed=0)  # as a file of millions of cells is written
IDS = [3, 1, 200]
FAST = "pip install 'cellformer[fast]'"
GOLDEN_NAMES = unlike()
CORNERS = ("bert", "gemma2", "gpt2", "llama", "mixtral", "qwen3_moe")
IN_LIBREOFFICE = GOLDEN_NAMES[1::2]  # the others are there as usual, see test_checkpoints
KINDS = ("exact named", "short bulky")  # of each way of writing numbers and cells


def make(folder: Path, *sizes: int) -> Path:
    """A random checkpoint: layers, width, heads, words, context."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["gpt2_small", str(folder), *map(str, sizes)])
        script("gpt2_small", "benchmarks").main()
    return folder


@pytest.fixture(scope="module")
def many_words(tmp_path_factory) -> Path:
    """A checkpoint of many words."""
    return make(tmp_path_factory.mktemp("many"), 2, 9, 3, N_WORDS, 16)


@pytest.fixture(scope="module")
def in_file(many_words) -> Model:
    """Its model, no matrix of which is held."""
    return checkpoint.load(many_words, most_held=0)


def made(model: Model, live: tuple[str, ...] = (), limits: Limits = LIMITS) -> Book:
    return model_workbook.build("many", model, passage(model, IDS), live, limits=limits)


@pytest.fixture(scope="module")
def several(in_file, tmp_path_factory) -> dict[str, Path]:
    """Vocabularies on several sheets: numbers exact and short, cells with addresses and without."""
    folder, found = tmp_path_factory.mktemp("several"), {}
    for digits, model in (("exact", in_file), ("short", in_file.with_decimals())):
        book = made(model, limits=SEVERAL)
        for cells, writing in (("named", USUAL), ("bulky", BULKY)):
            name = f"{digits} {cells}"
            found[name] = xlsx.write(book, folder / f"{name}.xlsx", writing=writing)
    return found


@pytest.fixture(scope="module")
def architectures(tmp_path_factory) -> dict[str, Path]:
    """Large workbooks of golden models, with few words and all of their kinds of layers."""
    folder = tmp_path_factory.mktemp("architectures")
    names = {*GOLDEN_NAMES, *CORNERS}
    return {name: large(corner(name, folder / name), N_COLUMNS) for name in names}


@pytest.fixture(scope="module")
def formula_cells(architectures) -> dict[str, FormulaCells]:
    """Their formula cells, read once."""
    return {name: read(path) for name, path in architectures.items()}


def large(folder: Path, n_tokens: int) -> Path:
    """The workbook of a checkpoint of few words, which counts them as many."""
    model = checkpoint.load(folder)
    words = passage(model, [2, 0, 2, 2, 0][:n_tokens])
    book = model_workbook.build(folder.name, model, words, limits=Limits(words=1))
    assert not book.plan.whole
    return xlsx.write(book, folder.with_suffix(".xlsx"), writing=Writing(fewest_filled=1))


@pytest.fixture(scope="module")
def parts(in_file, tmp_path_factory) -> dict[str, Path]:
    """A workbook of which one block is live, and one that is live throughout."""
    folder = tmp_path_factory.mktemp("parts")
    live = {"part": ("blocks.1",), "whole": ()}
    return {
        name: xlsx.write(made(in_file, of), folder / f"{name}.xlsx") for name, of in live.items()
    }


@pytest.fixture(scope="module")
def compact(in_file, tmp_path_factory) -> Path:
    """A workbook that spells its formulas as one of very many does."""
    book = made(in_file, limits=replace(LIMITS, formulas=0))
    return xlsx.write(book, tmp_path_factory.mktemp("compact") / "compact.xlsx")


@pytest.fixture(scope="module")
def stories(tmp_path_factory) -> tuple[Model, Book, Path]:
    """A model of TinyStories' layers, and of more words than a sheet has columns."""
    folder = tmp_path_factory.mktemp("stories")
    model = checkpoint.load(make(folder / "model", 8, 4, 2, 17_000, 64))
    ids = [(7919 * k + 13) % model.spec.d_vocab for k in range(4)]
    book = model_workbook.build("stories", model, passage(model, ids))
    return model, book, xlsx.write(book, folder / "stories.xlsx")


@pytest.fixture(scope="module")
def office(
    many_words,
    in_file,
    several,
    architectures,
    parts,
    stories,
    compact,
    tmp_path_factory,
    libreoffice,
) -> dict[str, Recomputed]:
    """All that LibreOffice is asked here; what is edited is opened once."""
    folder = tmp_path_factory.mktemp("office")
    paths = {"stories": stories[2], "compact": compact} | {kind: several[kind] for kind in KINDS}
    paths |= {name: architectures[name] for name in IN_LIBREOFFICE}
    found = libreoffice_shows(paths, folder / "office")
    book = made(checkpoint.load(many_words))
    many = xlsx.write(book, folder / "many.xlsx")
    block_1 = made(in_file, ("blocks.1",))
    head_off = {book.cell("blocks.1.attn.h2.switch", 0, 0): 0}
    typings: list[tuple[Path, dict[str, Typed]]] = [
        (many, {"typed id": {("Play", 9, 4): 77}, "head off": head_off}),
        (
            parts["part"],
            {"part": {}, "part edited": {block_1.cell("blocks.1.mlp.W_in", 2, 3): 1.5}},
        ),
    ]
    for path, edits in typings:
        shown = libreoffice_after(path, [*edits.values()], folder / path.stem)
        found |= dict(zip(edits, shown, strict=True))
    return found


def test_stored_matrix_equals_the_array(many_words) -> None:
    file = SafetensorsFile(many_words / "model.safetensors")
    stored = Stored(file, "transformer.wte.weight", (10, 30), (2, 9))
    array = np.asarray(stored)
    assert stored.shape == array.shape == (20, 7) and array.dtype == np.float64
    turned = stored.swapaxes(-1, -2)
    np.testing.assert_array_equal(np.asarray(turned), array.T)
    np.testing.assert_array_equal(stored[3:5, :], array[3:5])
    np.testing.assert_array_equal(turned[..., 1:4, 2:], array.T[1:4, 2:])
    np.testing.assert_array_equal(turned[..., np.array([7, 0, 7])], array.T[:, [7, 0, 7]])


def test_without_preadv(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows: a golden model's file is read by place and length."""
    expected = checkpoint.load(GOLDEN / "llama", 0).graph([3, 1, 4]).values["logits"]
    monkeypatch.delattr(os, "preadv")
    found = checkpoint.load(GOLDEN / "llama", 0).graph([3, 1, 4]).values["logits"]
    np.testing.assert_array_equal(found, expected)


def test_large_matrix_in_its_file_is_read_in_parts(tmp_path: Path) -> None:
    """The logits of more words than are read together, as a model gives them that is held."""
    folder = make(tmp_path / "model", 1, 9, 3, 30_000, 16)
    in_file, held = checkpoint.load(folder, most_held=0), checkpoint.load(folder)
    assert np.size(in_file.weights["W_E"]) > MOST_READ
    found, expected = (model.graph(IDS).values["logits"] for model in (in_file, held))
    np.testing.assert_allclose(found, expected, atol=1e-13)


def test_stored_model_equals_a_held_one(in_file, many_words) -> None:
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
    x[1:3] = np.exp2(np.arange(-35, 5))  # the next float is nearer below than above
    x[2] = np.nextafter(x[1], np.float32(0))
    shortest = orjson.loads(orjson.dumps(x, option=orjson.OPT_SERIALIZE_NUMPY))
    np.testing.assert_array_equal(decimals(x), shortest)
    np.testing.assert_array_equal(decimals(x).astype(np.float32), x)


def test_shortest_decimals_of_every_exponent() -> None:
    """Numbers of every exponent that float32 has, the first ones of each among them."""
    rng = np.random.default_rng(1)
    mantissas = np.concatenate([np.arange(40), rng.integers(0, 1 << 23, 160)]).astype(np.uint32)
    x = (np.arange(255, dtype=np.uint32)[:, None] << 23 | mantissas).view(np.float32)
    x[:, ::2] *= -1
    shortest = np.array(orjson.loads(orjson.dumps(x, option=orjson.OPT_SERIALIZE_NUMPY)))
    np.testing.assert_array_equal(decimals(x).view(np.int64), shortest.view(np.int64))


def test_damaged_file_is_named(in_file, many_words, tmp_path: Path) -> None:
    data = (many_words / "model.safetensors").read_bytes()
    (tmp_path / "short.safetensors").write_bytes(data[:-1000])
    file = SafetensorsFile(tmp_path / "short.safetensors")
    last = max(file.places, key=lambda name: file.places[name].end)
    with pytest.raises(InputError, match="ends in the middle of"):
        file.read(last, (0, file.shape(last)[0]), False)


@pytest.mark.parametrize("digits", ["exact", "short"])
def test_many_words_on_several_sheets(several, digits: str) -> None:
    """Both ways of writing numbers; addresses in all cells, or not."""
    needs("ironcalc")
    assert verify(several[f"{digits} named"], "ironcalc").agrees
    named, bulky = (WorkbookFile(several[f"{digits} {cells}"]) for cells in ("named", "bulky"))
    assert [name for name in named if name.startswith("Vocabulary")] == [
        f"Vocabulary {k}" for k in range(4)
    ]
    assert list(named) == list(bulky)
    for sheet in named:
        assert named[sheet].cells == bulky[sheet].cells


@pytest.mark.parametrize("kind", KINDS)
def test_many_words_in_libreoffice(several, kind: str, office) -> None:
    assert_agrees(read(several[kind]), office[kind])


def test_sheet_holds_short_decimals(in_file, tmp_path: Path) -> None:
    book = made(in_file.with_decimals())
    file = WorkbookFile(xlsx.write(book, tmp_path / "short.xlsx"))
    for name in ("W_E", "blocks.0.mlp.W_in", "blocks.1.attn.h2.W_K"):
        place = book.places[name]
        values = np.asarray(book.values[name])
        for i, j in ((0, 0), (5, 2), (7, 1)):
            assert file[place.sheet][place.cell(i, j)] == values[i, j]


def test_typed_ids_and_the_ranking(many_words, office) -> None:
    play = office["typed id"]["Play"]
    logits = checkpoint.load(many_words).graph([3, 1, 77]).values["logits"][-1]
    order = np.argsort(-logits, kind="stable")[:20]
    assert [play[20 + k, 2] for k in range(20)] == order.tolist()
    for k, v in enumerate(order):
        assert play[20 + k, 3] == pytest.approx(logits[v], abs=1e-9)


def test_live_part_alone(in_file, parts) -> None:
    assert parts["part"].stat().st_size < parts["whole"].stat().st_size
    book = made(in_file, ("blocks.1",))
    assert {b.name.split(".")[1] for b in book.graph if b.op} == {"1"}


def test_picked_columns_in_compact_workbooks(in_file, compact, parts) -> None:
    """A formula for all rows of a matrix's product, the same numbers, no circle, nothing shared
    that names another sheet."""
    needs("ironcalc")
    assert verify(compact, "ironcalc").agrees
    assert audit(compact) == []
    with zipfile.ZipFile(compact) as book, zipfile.ZipFile(parts["whole"]) as plain:
        sheets = [name for name in book.namelist() if "sheets/sheet" in name]
        assert any(b",0,ROWS($A$" in book.read(name) for name in sheets)
        assert not any(b",0,ROWS(" in plain.read(name) for name in sheets)


def test_picked_columns_in_libreoffice(compact, office) -> None:
    assert_agrees(read(compact), office["compact"])


@pytest.mark.parametrize("name", ["whole", "part", "compact"])
def test_many_words_in_gnumeric(parts, compact, name: str, gnumeric) -> None:
    """Among very many formulas its INDEX, which picks no columns, is given their addresses."""
    assert verify({**parts, "compact": compact}[name], "gnumeric").agrees


def test_large_workbooks_keep_excels_rules(several, architectures, parts) -> None:
    for path in (several["exact bulky"], parts["part"], *architectures.values()):
        assert audit(path) == [], path.name


def test_edited_live_part_in_libreoffice(in_file, parts, office) -> None:
    assert_agrees(read(parts["part"]), office["part"])
    book = made(in_file, ("blocks.1",))
    live = Evaluator(in_file.graph(IDS))
    live.set("blocks.1.mlp.W_in", 2, 3, 1.5)
    out = book.places["blocks.1.resid_post"]
    for i, j in np.ndindex(*out.block.shape):
        shown = office["part edited"][out.sheet][out.cell(i, j)]
        assert shown == pytest.approx(live["blocks.1.resid_post"][i, j], abs=1e-9)


def test_large_workbooks_and_parts_are_not_read_back(parts, many_words, tmp_path: Path) -> None:
    folder = make(tmp_path / "model", 1, 4, 1, 2100, 4)
    large = cf.write(cf.build(folder, ids=[1]), tmp_path / "large.xlsx")
    for path, model in ((parts["part"], many_words), (large, folder)):
        with pytest.raises(InputError, match="shows only a part of its model, or has more than"):
            edited.read(path, lambda title, model=model: checkpoint.load(model))


@pytest.mark.parametrize("name", GOLDEN_NAMES)
def test_every_architecture_as_a_large_workbook(name: str, formula_cells) -> None:
    """Formulas shared down columns: rotary positions, shared key-value heads, windows, RMSNorm."""
    needs("ironcalc")
    assert verify(formula_cells[name], "ironcalc").agrees


@pytest.mark.parametrize("name", CORNERS)
def test_corner_has_every_kind_of_formula(name: str, architectures, tmp_path: Path) -> None:
    """One layer those of two, two heads those of four, four neurons and three columns those of
    all."""
    whole = WorkbookFile(large(with_few_words(name, tmp_path / name), 5))
    # a small workbook asks single cells for formulas, too
    assert not kinds(whole) - kinds(WorkbookFile(architectures[name]))


def test_heads_that_share_keys_two_by_two(tmp_path: Path) -> None:
    """In a corner all heads share one key; of the whole model each of two is that of two heads."""
    needs("ironcalc")
    folder = with_few_words("llama", tmp_path / "llama")
    assert checkpoint.load(folder).spec.kv_heads == 2
    assert verify(large(folder, N_COLUMNS), "ironcalc").agrees


@pytest.mark.parametrize("name", IN_LIBREOFFICE)
def test_every_large_workbook_in_libreoffice(name: str, formula_cells, office) -> None:
    assert_agrees(formula_cells[name], office[name])


def test_a_head_switched_off_in_the_sheet(many_words, office) -> None:
    model = checkpoint.load(many_words)
    logits = made(model).places["logits"]
    sheet = office["head off"][logits.sheet]
    found = [sheet[logits.top + k, logits.left] for k in range(N_WORDS)]
    live = Evaluator(model.graph(IDS))  # with every head's own share
    live.set("blocks.1.attn.h2.switch", 0, 0, 0.0)
    assert np.abs(np.array(found) - live["logits"][-1]).max() < 1e-9
    assert np.abs(live["logits"] - live.graph.values["logits"]).max() > 1e-4


@pytest.mark.parametrize("most_held", [0, 4_000_000])
def test_effect_of_short_decimals_is_reported(many_words, tmp_path, most_held: int) -> None:
    """Of a model that stays in its file and of one that is held."""
    needs("ironcalc")
    short = checkpoint.load(many_words, most_held).with_decimals()
    path = xlsx.write(made(short), tmp_path / "short.xlsx")
    done = cli("verify", path, "--engine", "ironcalc")
    assert done.code == 0
    exact = checkpoint.load(many_words)
    short = exact.with_decimals()
    gap = np.subtract(*(m.graph(IDS).values["logits"][-1] for m in (exact, short)))
    found = float(re.search(r"a logit changes by at most (\S+)", done.out)[1])
    assert found == pytest.approx(np.abs(gap).max(), rel=0.06) and found > 0


def test_block_with_a_formula_too_long_is_refused(tmp_path: Path) -> None:
    """A layer of so many heads that the sum of them is longer than 300 characters."""
    model = random_model(ModelSpec(3, 2, 2, n_layers=1, n_heads=xlsx.FEW_OPERANDS + 1, d_head=1))
    book = model_workbook.build("long", model, passage(model, [1]))
    with pytest.raises(InputError, match=r"blocks.0.* needs formulas of .* --live"):
        xlsx.write(book, tmp_path / "long.xlsx", writing=Writing(longest=300))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("cores", [1, 2])
def test_page_with_a_formula_too_long_is_refused(tmp_path: Path, cores: int) -> None:
    """It is found as its sheet is written, where there are two cores by a copy of the program."""
    model = checkpoint.load(corner("gpt2", tmp_path / "gpt2"))
    book = model_workbook.build("gpt2", model, passage(model, [1, 2]))
    with pytest.raises(InputError, match=r"^\w+![A-Z]+\d+ needs formulas of .* shorter prompt"):
        writing = replace(BULKY, longest=300, n_processes=cores)
        xlsx.write(book, tmp_path / "long.xlsx", writing=writing)
    assert [path.name for path in tmp_path.iterdir()] == ["gpt2"]


def test_workbook_too_large_to_compare_is_refused(tmp_path: Path) -> None:
    """It unpacks to 600 MB, as it says."""
    with zipfile.ZipFile(tmp_path / "large.xlsx", "w") as file:
        file.writestr("xl/workbook.xml", "")
        file.filelist[0].file_size = 600_000_000
    with pytest.raises(InputError, match="has 600 MB"):
        verify(tmp_path / "large.xlsx", "ironcalc")


def test_unknown_part_is_refused(in_file, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"blocks\.1"):
        made(in_file, ("blocks.2",))


@pytest.fixture(params=["zlib", "isal"])
def with_isal(request) -> bool:
    if request.param == "isal":
        pytest.importorskip("isal", reason=FAST)
    return request.param == "isal"


def test_deflate_does_not_depend_on_threads(with_isal: bool) -> None:
    data = b"".join(b"<c><v>%d</v></c>" % (k * k) for k in range(100_000))
    found = []
    for threads in (0, 1, 4):
        with ThreadPoolExecutor(max(threads, 1)) as pool:
            file = io.BytesIO()
            stream = deflate.Deflate(file, with_isal, pool if threads else None)
            for k in range(0, len(data), 70_001):
                stream.write([data[k : k + 70_001]])
            stream.close()
        found.append(file.getvalue())
        assert (stream.size, stream.crc) == (len(data), zlib.crc32(data))
        assert stream.n_packed == len(found[-1])
    same = [file == found[0] for file in found]  # pytest would take minutes to tell what differs
    assert all(same), [*map(len, found)]
    assert zlib.decompress(found[0], -15) == data


@pytest.fixture(scope="module")
def two_builds(tmp_path_factory) -> list[Book]:
    """The same workbook, built twice."""
    model = checkpoint.load(corner("gpt_neo", tmp_path_factory.mktemp("two") / "two layers"))
    return [model_workbook.build("two layers", model, passage(model, [1, 2])) for _ in range(2)]


def test_two_builds_are_the_same_bytes(with_isal: bool, two_builds, tmp_path) -> None:
    """By copies of the program for two cores, and by one core after another."""
    built = []
    for book, cores in zip((*two_builds, two_builds[1]), (2, 2, 1), strict=True):
        writing = replace(BULKY, with_isal=with_isal, n_processes=cores)
        built.append(xlsx.write(book, tmp_path / "built.xlsx", writing=writing).read_bytes())
    assert built[0] == built[1] == built[2]
    with zipfile.ZipFile(tmp_path / "built.xlsx") as archive:
        assert archive.testzip() is None
    assert [path.name for path in tmp_path.iterdir()] == ["built.xlsx"]


TWO_CORES = replace(BULKY, n_processes=2)


def write_ahead(
    model: Model, path: Path, writing: Writing = TWO_CORES, begun: OnLayout = lambda book: None
) -> list[str]:
    """Build a large file that has its words on several sheets; those that are written ahead."""
    pytest.importorskip("isal", reason=FAST)
    model = model.with_decimals()
    with precompress.Ahead(path, writing) as ahead:

        def on_layout(book: Book) -> None:
            ahead.begin(book)
            begun(book)

        words = passage(model, IDS)
        book = model_workbook.build("many", model, words, on_layout=on_layout, limits=SEVERAL)
        xlsx.write(book, path, ahead=ahead.parts, writing=writing)
        return sorted(ahead.parts)


def test_rows_written_ahead_are_the_same_bytes(in_file, tmp_path) -> None:
    begun, files = [], []
    path = tmp_path / "built.xlsx"
    for cores in (2, 1):
        begun.append(write_ahead(in_file, path, replace(BULKY, n_processes=cores)))
        files.append(path.read_bytes())
        assert [*tmp_path.iterdir()] == [path]
    assert begun == [[f"Vocabulary {k}" for k in range(4)], []]
    assert files[0] == files[1]
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None


def test_process_killed_by_the_system_is_reported(in_file, tmp_path) -> None:
    def kill(book: Book) -> None:
        copies = multiprocessing.active_children()
        assert copies
        for copy in copies:
            copy.kill()

    with pytest.raises(InputError, match="the system ended a process that wrote a sheet"):
        write_ahead(in_file, tmp_path / "built.xlsx", begun=kill)
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_process_that_cannot_start(nth, in_file, tmp_path, monkeypatch) -> None:
    """Nothing is written ahead then; where sheets cannot be written, it is told."""
    fork, forked = os.fork, []

    def refused() -> int:
        forked.append(nth)
        if len(forked) == nth:
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return fork()

    monkeypatch.setattr(os, "fork", refused)
    path = tmp_path / "built.xlsx"
    if nth == 1:
        write_ahead(in_file, path)
        assert audit(path) == []
    else:
        with pytest.raises(InputError, match="cannot start more processes"):
            write_ahead(in_file, path)
    assert [*tmp_path.iterdir()] == [path] * (nth == 1)
    assert not multiprocessing.active_children()


def test_rows_written_ahead_end_with_the_build(in_file, tmp_path) -> None:
    def stop(book: Book) -> None:
        assert not book.graph._values
        assert multiprocessing.active_children()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_ahead(in_file, tmp_path / "built.xlsx", begun=stop)
    assert [*tmp_path.iterdir()] == []
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("most", [0, 1_000_000])
def test_rows_are_filled_in_as_they_are_spelt(many_words, tmp_path, most) -> None:
    """Also where a run of rows ends within a piece of the vocabulary, and columns are picked."""
    limits = replace(LIMITS, columns=100, formulas=most)
    book, written = made(checkpoint.load(many_words), limits=limits), []
    for fewest in (1, N_WORDS):  # rows that are filled in; none has so many
        writing = Writing(fewest_filled=fewest, most_filled=40)
        written.append(xlsx.write(book, tmp_path / "many.xlsx", writing=writing).read_bytes())
    assert written[0] == written[1]


def test_parts_of_a_file_are_related(parts) -> None:
    """Every part parses; every part that relations name is there, and has a content type."""
    from xml.etree import ElementTree

    with zipfile.ZipFile(parts["whole"]) as book:
        assert book.testzip() is None
        names = set(book.namelist())
        types = book.read("[Content_Types].xml").decode()
        for name in names:
            ElementTree.fromstring(book.read(name))
            if name.endswith(".xml") and name != "[Content_Types].xml":
                assert f'PartName="/{name}"' in types, name
        targets = re.findall(r'Target="([^"]+)"', book.read("xl/_rels/workbook.xml.rels").decode())
        assert {f"xl/{target}" for target in targets} <= names


def test_interrupted_write_leaves_no_file(in_file, tmp_path: Path) -> None:
    def stop(n_cells: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        xlsx.write(made(in_file), tmp_path / "c.xlsx", stop)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("tokens", [3, 9])
def test_the_forecast_is_near(tmp_path: Path, tokens: int) -> None:
    model = checkpoint.load(make(tmp_path / "model", 2, 9, 3, 2100, 16))
    expected = forecast(model, tokens, for_model(model).readout)
    book = model_workbook.build("many", model, passage(model, [1] * tokens))
    n_formulas, n_cells = book.n_formulas, book.n_cells
    assert expected.n_formulas == pytest.approx(n_formulas, rel=0.15)
    assert expected.n_cells == pytest.approx(n_cells, rel=0.15)


def test_golden_models_are_small() -> None:
    for path in GOLDEN.glob("*/config.json"):
        weights = checkpoint.load(path.parent).weights.values()
        assert not any(isinstance(w, Stored) for w in weights)


def test_eight_layers_and_more_words_than_columns(stories, office) -> None:
    """Two hundred thousand cells: built, opened, recomputed, compared."""
    model, book, path = stories
    assert book.n_cells > 200_000
    assert model.spec.d_vocab > MAX_COLUMN and "Vocabulary 1" in book.sheets
    ours, theirs = WorkbookFile(path), office["stories"]
    for sheet in ("Readout", "Block 7", "Play"):
        numbers = {at: v for at, v in ours[sheet].values.items() if isinstance(v, float)}
        shown = [theirs[sheet][at] for at in numbers]
        np.testing.assert_allclose(shown, [*numbers.values()], rtol=0, atol=1e-9, err_msg=sheet)
    logits = model.graph(book.passage.ids).values["logits"][-1]
    place = book.places["logits"]
    found = [theirs[place.sheet][place.top + k, place.left] for k in range(len(logits))]
    assert np.abs(np.array(found) - logits).max() < 1e-9
