"""What tests share: small models, workbooks built once, programs started once, the command."""

import contextlib
import gc
import importlib
import importlib.util
import io
import json
import os
import re
import shutil
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from html import escape
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import hyperformula as in_javascript
import numpy as np
import pytest
import readers
from hypothesis import settings
from hypothesis import strategies as st
from libreoffice import CellAt, Typed, recomputed, save
from validator import PROGRAM, REMEDY, faults

from cellformer import workbooks
from cellformer.__main__ import main
from cellformer.engine import Graph, Model, ModelSpec, WordList
from cellformer.engine.cells.access import Rect
from cellformer.engine.cells.batch import CellName
from cellformer.engine.models import checkpoint
from cellformer.engine.models.architectures.decoder import forward
from cellformer.engine.models.forward import weight_shapes
from cellformer.exporters.checking.programs import Recomputed
from cellformer.exporters.checking.verify import (
    ENGINES,
    FormulaCells,
    compare,
    formula_cells,
    poison,
    read_values,
)
from cellformer.exporters.compose.address import a1
from cellformer.exporters.compose.book import Book, Reading
from cellformer.exporters.edits import edited
from cellformer.exporters.file.reading import Value, WorkbookFile
from cellformer.exporters.file.xlsx import write
from cellformer.names import book

ROOT = Path(__file__).parent.parent
GOLDEN = ROOT / "tests" / "golden"
NODE_MODULES = ROOT / "tests" / "node" / "node_modules"
os.environ["NODE_PATH"] = f"{NODE_MODULES}{os.pathsep}{os.environ.get('NODE_PATH', '')}"
ERROR = re.compile(r"#(N/A|DIV/0!|VALUE!|REF!|NAME\?|NUM!|NULL!|ERROR!)")

# Workers inherit this and share the cores: threads of torch and OpenBLAS would wait for each other.
for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

gc.set_threshold(100_000)  # as the command has it: books are kept, and hardly any of it is garbage

settings.register_profile("cellformer", deadline=None, derandomize=True)
settings.load_profile("cellformer")


# Fixtures of programs and libraries: a test that asks for one of them is marked `office`.
OTHERS = {"libreoffice", "gnumeric", "formualizer", "formulas", "hyperformula"}
OTHERS |= {"javascript_readers", "torch", "transformers", "node", "chromium", "firefox"}
OTHERS.add("validator")


# The engines of `verify` that a plain call asks, and HyperFormula.
EVERY_ENGINE = {name: engine for name, engine in ENGINES.items() if not engine.by_name}
EVERY_ENGINE["hyperformula"] = in_javascript.ENGINE

# Files of few tests that take a minute or more: last, one worker would wait for the other.
LONG = ("test_learn_window.py", "test_shakespeare.py", "test_machine.py", "test_page_walk.py")
LONG += ("test_page_generates.py", "test_chat.py", "test_integrity.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that need more than Python and IronCalc; put the files that take longest
    first, then those of many tests."""
    for item in items:
        if OTHERS & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.office)
    n_tests = Counter(item.path for item in items)
    items.sort(key=lambda item: (item.path.name not in LONG, -n_tests[item.path]))


def needs(engine: str) -> None:
    """Skip where a program is missing, with the reason; in CI nothing may be missing."""
    program = EVERY_ENGINE[engine]
    if not program.installed():
        if os.environ.get("CI"):
            pytest.fail(f"{engine} is not installed, and CI needs it")
        pytest.skip(f"{engine} is not installed; {program.remedy}")


@pytest.fixture(scope="session")
def libreoffice() -> None:
    needs("libreoffice")


@pytest.fixture(scope="session")
def gnumeric() -> None:
    needs("gnumeric")


@pytest.fixture(scope="session")
def formualizer() -> None:
    needs("formualizer")


@pytest.fixture(scope="session")
def formulas() -> None:
    needs("formulas")


@pytest.fixture(scope="session")
def hyperformula() -> None:
    needs("hyperformula")


@pytest.fixture(scope="session")
def javascript_readers() -> None:
    if not readers.installed():
        if os.environ.get("CI"):
            pytest.fail("SheetJS and exceljs are not installed, and CI needs them")
        pytest.skip(f"SheetJS and exceljs are not installed; {readers.REMEDY}")


@pytest.fixture(scope="session")
def node() -> str:
    path = shutil.which("node")
    if path is None:
        if os.environ.get("CI"):
            pytest.fail("Node.js is not installed, and CI needs it")
        pytest.skip("Node.js is not installed")
    return path


@pytest.fixture(scope="session")
def chromium(node: str) -> str:
    """The path of a browser that playwright-core drives."""
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None or not (ROOT / "tests/node/node_modules/playwright-core").is_dir():
        if os.environ.get("CI"):
            pytest.fail("Chromium or playwright-core is not installed, and CI needs it")
        pytest.skip("Chromium is not installed, or: npm ci --prefix tests/node")
    return path


@pytest.fixture(scope="session")
def firefox(node: str) -> str:
    """The path of a browser that puppeteer-core drives."""
    path = shutil.which("firefox-esr") or shutil.which("firefox")
    if path is None or not (ROOT / "tests/node/node_modules/puppeteer-core").is_dir():
        if os.environ.get("CI"):
            pytest.fail("Firefox or puppeteer-core is not installed, and CI needs it")
        pytest.skip("Firefox is not installed, or: npm ci --prefix tests/node")
    return path


@pytest.fixture(scope="session")
def validator() -> Callable[..., list[str]]:
    """What Microsoft's Open XML SDK finds wrong with a workbook."""
    if not PROGRAM.is_file():
        if os.environ.get("CI"):
            pytest.fail("the validator of Microsoft's Open XML SDK is not installed")
        pytest.skip(f"the validator of Microsoft's Open XML SDK is not installed; {REMEDY}")
    return faults


def library(name: str) -> ModuleType:
    """A library, or skip where it is missing; in CI nothing may be missing."""
    if os.environ.get("CI"):
        return importlib.import_module(name)
    return pytest.importorskip(name, reason="pip install 'cellformer[reference]'")


@pytest.fixture(scope="session")
def torch() -> ModuleType:
    return library("torch")


@pytest.fixture(scope="session")
def transformers() -> ModuleType:
    return library("transformers")


def script(name: str, folder: str = "docs/scripts") -> ModuleType:
    """A script of docs/scripts/ or benchmarks/, as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / folder / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# --- the command ------------------------------------------------------------------------------


class Done(NamedTuple):
    """What the command did."""

    code: int
    out: str
    err: str


def cli(*args: object, cwd: Path | None = None) -> Done:
    """Run the command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["cellformer", *map(str, args)])
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        if cwd:
            patch.chdir(cwd)
        code: object = 0
        try:
            main()
        except SystemExit as stopped:
            code = stopped.code or 0
    assert isinstance(code, int)
    return Done(code, out.getvalue(), err.getvalue())


def told(*args: object, cwd: Path | None = None) -> Any:
    """The result that a command prints as JSON."""
    done = cli(*args, "--json", cwd=cwd)
    assert done.code == 0, done.err
    return json.loads(done.out)["result"]


# --- workbooks --------------------------------------------------------------------------------


def default_graph(name: str) -> Graph:
    module = workbooks.find(name)
    model = module.model()
    return model.graph(model.vocabulary.encode(module.PROMPT))


THIN = "thin-"  # before the name of a workbook: a smaller one with the same kinds of formulas
FIRST = ("attention-by-columns", "cat-sat", "loss", "napkin")  # workbooks of the first tier


def in_tiers(names: Iterable[str]) -> list[Any]:
    """Names of workbooks as parameters of a test: most of them in the second tier."""
    return [pytest.param(n, marks=() if n in FIRST else pytest.mark.slow) for n in names]


@cache
def default_book(name: str) -> Book:
    """A workbook with its own prompt and number of columns."""
    if name.startswith(THIN):
        import thin

        return thin.THIN[name.removeprefix(THIN)]()
    return book(name)


class Built(dict[str, Path]):
    """Workbooks by name, built with their own prompts when they are asked for, by whichever worker
    is asked first."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.files: dict[str, WorkbookFile] = {}
        self.formulas: dict[str, FormulaCells] = {}

    def __missing__(self, name: str) -> Path:
        path = self.folder / f"{name}.xlsx"
        self[name] = path if path.is_file() else write(default_book(name), path)
        return self[name]

    def file(self, name: str) -> WorkbookFile:
        """The file, read once."""
        if name not in self.files:
            self.files[name] = WorkbookFile(self[name])
        return self.files[name]

    def formula_cells(self, name: str) -> FormulaCells:
        """Its formula cells, read once."""
        if name not in self.formulas:
            self.formulas[name] = formula_cells(self.file(name))
            assert not self.formulas[name].n_uncomputed
        return self.formulas[name]


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Built:
    """Every workbook, built with its own prompt, in a folder that the workers share."""
    own = tmp_path_factory.getbasetemp()
    folder = (own if worker_id == "master" else own.parent) / "built"
    folder.mkdir(exist_ok=True)
    return Built(folder)


def typed(path: Path, target: Path, cells: Typed) -> Path:
    """A copy of a workbook with values typed into cells, and every computed value as it was.

    A text that begins with = is a formula; an empty one leaves the cell blank.
    """
    parts = WorkbookFile(path).parts
    edits: dict[str, list[tuple[str, float | str]]] = {}
    for (sheet, row, col), value in cells.items():
        edits.setdefault(parts[sheet], []).append((a1(Rect(row, row + 1, col, col + 1)), value))
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
        for part in old.namelist():
            data = old.read(part)
            for at, value in edits.get(part, ()):
                data = _with_cell(data, at, value)
            new.writestr(part, data)
    return target


def _with_cell(xml: bytes, at: str, value: float | str) -> bytes:
    cell = rf'<c r="{at}"(?: s="(\d+)")?[^>]*?(?:/>|>.*?</c>)'
    (found,) = re.finditer(cell.encode(), xml, re.DOTALL)
    kind, content = "", ""
    if not isinstance(value, str):
        content = f"<v>{float(value)!r}</v>"
    elif value.startswith("="):
        content = f"<f>{escape(value[1:])}</f>"
    elif value:
        kind, content = ' t="inlineStr"', f'<is><t xml:space="preserve">{escape(value)}</t></is>'
    text = f'<c r="{at}" s="{(found[1] or b"0").decode()}"{kind}>{content}</c>'
    return xml[: found.start()] + text.encode() + xml[found.end() :]


# --- IronCalc, in this process ----------------------------------------------------------------


class InIronCalc:
    """A workbook opened in IronCalc."""

    def __init__(self, path: Path):
        needs("ironcalc")
        import ironcalc

        self.model = ironcalc.load_from_xlsx(str(path), "en", "UTC", "en")
        names = [sheet["name"] for sheet in self.model.get_worksheets_properties()]
        self.number = {name: k for k, name in enumerate(names)}

    def __getitem__(self, cell: CellAt) -> Value:
        return self.model.get_cell_value(*self._at(cell))

    @contextlib.contextmanager
    def typed(self, cells: Typed) -> Iterator[None]:
        """What it shows while values are typed into cells."""
        before = {cell: self[cell] for cell in cells}
        self._type(cells)
        self.model.evaluate()
        try:
            yield
        finally:
            self._type(before)

    def _type(self, cells: Mapping[CellAt, Value]) -> None:
        for cell, value in cells.items():
            if value is None or value == "":
                self.model.clear_cell_contents(*self._at(cell))
            elif isinstance(value, str):
                self.model.update_cell_with_text(*self._at(cell), value)
            else:
                self.model.update_cell_with_number(*self._at(cell), float(value))

    def _at(self, cell: CellAt) -> tuple[int, int, int]:
        sheet, row, col = cell
        return self.number[sheet], row + 1, col + 1


def recomputed_in_ironcalc(cells: FormulaCells, folder: Path) -> InIronCalc:
    """A workbook whose every cached value was wrong, in IronCalc, which agrees at every cell."""
    poison(cells.path, folder / "wrong.xlsx")
    sheet = InIronCalc(folder / "wrong.xlsx")
    sheet.model.evaluate()
    report = compare("ironcalc", cells, {cell: sheet[cell] for cell in cells.formulas})
    assert report.agrees, report
    return sheet


def assert_recomputes_after(
    edits: Mapping[CellName, float | str], sheet: InIronCalc, book: Book, cells: FormulaCells
) -> Reading:
    """Type values into cells of blocks: every formula cell shows what the engine then has."""
    after = book.edited({book.graph[name][i, j]: value for (name, i, j), value in edits.items()})
    with sheet.typed({book.cell(*at): value for at, value in edits.items()}):
        shown = {cell: sheet[cell] for cell in cells.formulas}
    wanted = replace(cells, formulas={cell: after.cell(*cell) for cell in shown})
    report = compare("ironcalc", wanted, shown)
    assert report.agrees, report
    return after


# --- LibreOffice, which is started once ----------------------------------------------------------


def libreoffice_shows(paths: Mapping[str, Path], folder: Path) -> dict[str, Recomputed]:
    """What LibreOffice makes of workbooks whose every cached value is wrong, by their keys."""
    folder.mkdir()
    shown = enumerate(paths.items())
    return {key: libreoffice_after(path, [{}], folder / str(k))[0] for k, (key, path) in shown}


def libreoffice_after(path: Path, edits: Sequence[Typed], folder: Path) -> list[Recomputed]:
    """What LibreOffice makes of a workbook whose every cached value is wrong after each of several
    edits, made one at a time."""
    needs("libreoffice")
    folder.mkdir()
    poison(path, folder / "wrong.xlsx")
    return recomputed(folder / "wrong.xlsx", edits, folder)


def assert_libreoffice_agrees_after(
    edits: Sequence[Mapping[CellName, float | str]], book: Book, cells: FormulaCells, folder: Path
) -> None:
    """Type values into cells of blocks, edit after edit, from wrong values: every formula cell
    shows what the engine then has."""
    typed = [{book.cell(*at): value for at, value in edit.items()} for edit in edits]
    every = libreoffice_after(cells.path, typed, folder / "office")
    for edit, shown in zip(edits, every, strict=True):
        after = book.edited({book.graph[at][i, j]: x for (at, i, j), x in edit.items()})
        wanted = {at: after.cell(*at) for at in cells.formulas}
        assert_agrees(replace(cells, formulas=wanted), shown)


def saved(paths: Mapping[str, Path], folder: Path) -> dict[str, Path]:
    """Workbooks as LibreOffice saves them, by their keys."""
    needs("libreoffice")
    assert len({path.name for path in paths.values()}) == len(paths)
    return {key: save(path, folder / path.name) for key, path in paths.items()}


def assert_agrees(book: FormulaCells, shown: Recomputed) -> None:
    """LibreOffice has every formula cell's value."""
    report = compare("libreoffice", book, read_values(shown, book))
    assert report.agrees, (book.path.name, report)


# --- edits that are read back ------------------------------------------------------------------

Edits = dict[CellName, float]
SPARED = ("eps", "positions")  # not edited at random


def random_edits(book: Book, n: int, seed: int) -> Edits:
    """Cells of inputs, in proportion to nothing: a switch is as likely as an embedding."""
    rng = np.random.default_rng(seed)
    inputs = [b for b in book.graph if b.kind in ("weight", "setting")]
    blocks = [b for b in inputs if b.leaf not in SPARED]
    found: Edits = {}
    while len(found) < n:
        block = blocks[int(rng.integers(len(blocks)))]
        i, j = (int(rng.integers(size)) for size in block.shape)
        value = float(np.round(rng.uniform(0.1, 1.0), 3))
        if abs(value - book.value(block.name, i, j)) > 1e-9:
            found[block.name, i, j] = value
    return found


def assert_read_back(path: Path, edits: Edits, ids: list[int]) -> None:
    """Exactly the edits are found in a model's workbook; with them the model computes."""
    found = edited.read_model(path)
    assert found.values == edits
    assert (found.source if found.model.read else found.ids) == ids
    read_out = "vector" if found.model.spec.gives == "sentence" else "logits"
    assert np.isfinite(found.live()[read_out]).all()


# --- models -----------------------------------------------------------------------------------


@cache
def golden_models() -> dict[str, Model]:
    """The golden models, by the names of their folders."""
    folders = sorted(path.parent for path in GOLDEN.glob("*/config.json"))
    return {folder.name: checkpoint.load(folder) for folder in folders}


@cache
def recurrent() -> list[str]:
    """The golden models with rows that read rows before: neither torch computes them here, nor has
    their answer a graph of parts."""
    graphs = {name: model.graph([0]) for name, model in golden_models().items()}
    return [name for name, graph in graphs.items() if any(b.op and b.op.itself for b in graph)]


def random_model(spec: ModelSpec, seed: int = 0) -> Model:
    rng = np.random.default_rng(seed)
    shapes = weight_shapes(forward, spec)
    weights = {name: rng.normal(0, 0.7, shape) for name, shape in shapes.items()}
    return Model(spec, weights, WordList(tuple(f"w{i}" for i in range(spec.d_vocab))))


@st.composite
def specs(draw: st.DrawFn) -> ModelSpec:
    """Small decoders of every kind: attention only, MLP only, no block at all, tied or not."""
    n_heads, d_mlp = draw(st.sampled_from([(0, 3), (1, 0), (2, 0), (1, 4), (2, 3)]))
    return ModelSpec(
        d_vocab=draw(st.integers(2, 6)),
        d_model=draw(st.integers(1, 4)),
        n_ctx=6,
        n_layers=draw(st.integers(0, 2)),
        n_heads=n_heads,
        d_head=draw(st.integers(1, 3)),
        d_mlp=d_mlp,
        activation=draw(st.sampled_from(["relu", "gelu_tanh"])),
        position=draw(st.sampled_from(["none", "learned"])),
        norm=draw(st.sampled_from(["none", "layer"])),
        final_norm=draw(st.booleans()),
        tied=draw(st.booleans()),
        bias=draw(st.booleans()),
        sqrt_d_head=draw(st.sampled_from([None, 1.0])),
    )


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    spec = draw(specs())
    ids = draw(st.lists(st.integers(0, spec.d_vocab - 1), min_size=1, max_size=4))
    return random_model(spec, draw(st.integers(0, 9))).graph(ids)
