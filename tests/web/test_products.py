"""Pages that hold weights as they stand in the model's file: every value is the engine's, for each
type of weights, with WebAssembly and without it."""

import json
import zlib
from base64 import b64decode
from dataclasses import replace
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from conftest import default_book, golden_models
from in_node import call
from pages import differing, read, values
from test_page_values import drawn

from cellformer.engine import Evaluator
from cellformer.engine.cells.stored import Place, Stored, TensorFile
from cellformer.engine.learning import decoders
from cellformer.engine.models.forward import weight_shapes
from cellformer.engine.models.generate import passage
from cellformer.engine.models.model import Model
from cellformer.engine.text.tokenizer import IdsOnly
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.checking import javascript
from cellformer.exporters.compose.book import Book
from cellformer.exporters.web import page
from cellformer.exporters.web.packing import QUANTIZED, TOGETHER

pytestmark = pytest.mark.usefixtures("node")

KINDS = ("gpt2", "gemma2", "qwen3", "mixtral", "mamba", "minilm")
FLOATS = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16}
TYPES = (*FLOATS, *QUANTIZED)
SIZES = {"d_vocab": 40, "n_ctx": 8, "d_model": 64, "n_layers": 1, "n_heads": 2, "d_mlp": 96}
N_EDITS = 20


def mixed(name: str, folder: Path) -> tuple[Book, dict[str, Stored]]:
    """A random model of an architecture, whose matrices have all types in turn, and those of them
    that stand in blocks."""
    rng = np.random.default_rng(3)
    if name == "minilm":
        old = golden_models()[name]
        spec = replace(old.spec, d_model=64, d_head=32, d_mlp=96)
        forward, config, words = old.architecture, old.config, old.vocabulary
    else:
        new = decoders.new(name, **SIZES)
        forward, config, spec, words = new.forward, new.config, new.spec, IdsOnly(SIZES["d_vocab"])
    types, stored = cycle(TYPES), dict[str, Any]()
    for weight, shape in sorted(weight_shapes(forward, spec).items()):
        numbers = 0.2 * rng.normal(size=shape)
        stored[weight] = typed(numbers, next(types), folder / weight) if len(shape) > 1 else numbers
    weights = {n: np.asarray(w) for n, w in stored.items()}
    model = Model(spec, weights, words, None, forward, config)
    return built(model, name), {n: w for n, w in stored.items() if isinstance(w, Stored)}


def typed(numbers: np.ndarray, kind: str, path: Path) -> Any:
    """A matrix in a type."""
    if kind in FLOATS:
        return numbers.astype(FLOATS[kind]).astype(np.float64)
    return in_blocks(numbers, kind, path)


def in_blocks(numbers: np.ndarray, kind: str, path: Path) -> Any:
    """A matrix in a file of GGUF's blocks along what products sum over, if it has whole blocks."""
    gguf = pytest.importorskip("gguf", reason="the gguf library is not installed")
    turned = numbers.shape[0] % TOGETHER == 0
    lines = numbers.T if turned else numbers
    if lines.shape[1] % TOGETHER or min(lines.shape) < 2:
        return numbers
    packed = gguf.GGMLQuantizationType[kind]
    raw = gguf.quants.quantize(np.ascontiguousarray(lines, np.float32), packed)
    path.write_bytes(raw.tobytes())
    unpack = partial(gguf.quants.dequantize, qtype=packed)
    place = Place(0, lines.shape, np.dtype(np.float32), raw.shape[1], unpack)
    rows, cols = ((0, n) for n in lines.shape)
    return Stored(TensorFile(path, {"w": place}), "w", rows, cols, turned)


def built(model: Model, name: str) -> Book:
    second = [2, 3] if model.spec.gives == "sentence" else ()
    return model_workbook.build(name, model, passage(model, [2, 0, 3], 4, second=second))


def held(book: Book, path: Path, stored: dict[str, Stored]) -> Path:
    """Write the data of a book's large page for values.mjs; some weights are in files."""
    plain = dict(book.graph._inputs)
    book.graph._inputs.update(stored)
    page.write(book, path, most_inside=0)
    book.graph._inputs.update(plain)
    found = Path(f"{path}.json")
    found.write_text(json.dumps(javascript.read(path)._asdict()))
    return found


def packed_types(path: Path) -> set[str]:
    """The types of packed weights of a page."""
    raw = zlib.decompress(b64decode(javascript.read(path).data))
    numbers = [block.get("d", ()) for block in json.loads(raw)["blocks"]]
    return {found[0] for found in numbers if len(found) == 3}


def assert_same(book: Book, path: Path, folder: Path, compiles: bool) -> None:
    """A page has the engine's values: from wrong ones, after edits, and after they are undone."""
    assert call("values.mjs", "open", str(path), False, compiles)["differ"] == 0
    assert bool(call("values.mjs", "slower")) is not compiles
    call("values.mjs", "fresh")
    live = Evaluator(book.graph)
    assert [*islice(differing(values(folder), live), 5)] == []
    edits = [*of_weights(book, live), *islice(drawn(book, Evaluator(book.graph), 5), N_EDITS)]
    for edit in edits:
        live.set(*edit)
        call("values.mjs", "edit", [edit])
    live.recompute()
    assert [*islice(differing(values(folder), live), 5)] == []
    call("values.mjs", "edit", [(name, i, j, None) for name, i, j, _ in edits])
    assert [*islice(differing(values(folder), Evaluator(book.graph)), 5)] == []


def of_weights(book: Book, live: Evaluator) -> list[tuple[str, int, int, float]]:
    """An edit of each of the first matrices of weights."""
    found = [b.name for b in book.graph if b.kind == "weight" and min(b.shape) > 1]
    return [(name, 1, 1, float(live[name][1, 1]) + 0.3) for name in found[:6]]


def test_the_page_has_the_bytes_of_the_text() -> None:
    if not (Path(__file__).parents[1] / "node/node_modules/wabt").is_dir():
        pytest.skip("wabt is not installed: npm ci --prefix tests/node")
    own, given = call("products.mjs", "assembled")
    assert own == given, "products.wat was changed: put these bytes into products.js"


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_values_are_those_of_the_engine(name: str, tmp_path: Path) -> None:
    book, stored = mixed(name, tmp_path)
    path = held(book, tmp_path / "x.html", stored)
    assert packed_types(tmp_path / "x.html") == {*TYPES}
    for compiles in (True, False):
        assert_same(book, path, tmp_path, compiles)


@pytest.fixture
def large(tmp_path: Path) -> Path:
    path = tmp_path / "x.html"
    page.write(default_book("dialogue-game"), path, most_inside=0)
    return path


def test_only_a_large_page_may_compile(large: Path, tmp_path: Path) -> None:
    small = tmp_path / "small.html"
    page.write(default_book("dialogue-game"), small)
    assert page.COMPILES in large.read_text() and page.COMPILES not in small.read_text()


def test_rows_have_no_place_until_they_are_asked_for(large: Path, tmp_path: Path) -> None:
    """A new sentence takes the place of the longer text before it."""
    book, path = default_book("dialogue-game"), tmp_path / "x.json"
    path.write_text(json.dumps(javascript.read(large)._asdict()))
    assert call("values.mjs", "open", str(path), True, True, True) is None
    live, n_rows = Evaluator(book.graph), book.graph["blocks.0.mlp.post"].shape[0]
    for sentence in ("", "chiama", "Pietro chiama 6"):
        if sentence:
            live.set("sentence", 0, 0, sentence)
            live.recompute()
        before, after = call(
            "values.mjs", "grown", "blocks.0.mlp.post", sentence, str(tmp_path / "page")
        )
        assert (before <= n_rows / 2, after) == (True, n_rows), (sentence, before)
        assert [*islice(differing(read(tmp_path / "page"), live), 5)] == []


def test_a_page_that_may_not_compile_says_so(large: Path, chromium: str) -> None:
    weights = str(large.with_suffix(".weights"))
    for allowed in (True, False):
        if not allowed:
            large.write_text(large.read_text().replace(f" {page.COMPILES}", ""))
        _, ledger, edited = call("weights.mjs", "given", chromium, str(large), [weights])
        assert "says ‘Tarso’ 99.995 %" in ledger
        assert "now says ‘vice’" in edited
        assert ("forbids WebAssembly" in ledger) is not allowed
