"""What tests share: random small models, the workbooks built once, programs that may be missing."""

import gc
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st

import workbooks
from cellformer.names import book
from engine import Graph, Model, ModelSpec, WordList
from engine.models.architectures.decoder import forward
from engine.models.forward import weight_shapes
from exporters.book import Book
from exporters.verify import ENGINES, compare, poison, read, read_values, recalculate_in_libreoffice
from exporters.xlsx import write

EARLIER = ("cat-sat", "dialogue-game", "final-step", "fluffy-creature", "semantic-tiny")
ROOT = Path(__file__).parent.parent
GOLDEN = ROOT / "tests" / "golden"

# Workbooks that are read back are millions of objects, which the collector need not walk so often.
gc.set_threshold(200_000, 20, 100)
settings.register_profile("cellformer", deadline=None, derandomize=True)
settings.load_profile("cellformer")


def needs(engine: str) -> None:
    """Skip where a program is missing, with the reason; in CI nothing may be missing."""
    if not ENGINES[engine].installed():
        if os.environ.get("CI"):
            pytest.fail(f"{engine} is not installed, and CI needs it")
        pytest.skip(f"{engine} is not installed; {ENGINES[engine].remedy}")


def default_graph(name: str) -> Graph:
    module = workbooks.find(name)
    model = module.model()
    return model.graph(model.vocabulary.encode(module.PROMPT))


def default_book(name: str) -> Book:
    """A workbook with its own prompt and number of columns."""
    return book(name)


class Built(dict[str, Path]):
    """Workbooks by name, built with their own prompts when they are asked for."""

    def __init__(self, folder: Path):
        self.folder = folder

    def __missing__(self, name: str) -> Path:
        self[name] = write(default_book(name), self.folder / f"{name}.xlsx")
        return self[name]


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Every workbook, built with its own prompt."""
    return Built(tmp_path_factory.mktemp("built"))


def assert_recomputes(paths: Sequence[Path], folder: Path) -> None:
    """LibreOffice, from wrong cached values, agrees at every formula cell of every file."""
    folder.mkdir()
    wrong = [folder / path.name for path in paths]
    for path, copy in zip(paths, wrong, strict=True):
        poison(path, copy)
    for path, out in zip(paths, recalculate_in_libreoffice(wrong, folder / "out"), strict=True):
        book = read(path)
        report = compare("libreoffice", book, read_values(out, book))
        assert report.agrees, (path.name, report)


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
