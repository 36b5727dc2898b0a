"""How fast the engine computes, as ratios: a full pass, and one edited weight to new logits.

    python benchmarks/recompute.py

The model's forward pass is held against the same in straight numpy, and the graph of the whole
book, which has the tables of its pages as well, beside it; an edit against a forward pass, and in
the whole book against LibreOffice's own incremental recalculation of the exported workbook and
IronCalc's. Each figure is the median of repeated runs in this one run.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "cells")]

from conftest import random_model  # noqa: E402
from reference import straight_numpy  # noqa: E402

from cellformer import workbooks  # noqa: E402
from cellformer.engine import Evaluator, Graph, ModelSpec  # noqa: E402
from cellformer.engine.models.generate import passage  # noqa: E402
from cellformer.exporters.assemble.transformer import assemble  # noqa: E402
from cellformer.exporters.checking.verify import ENGINES  # noqa: E402
from cellformer.exporters.compose.book import Book  # noqa: E402
from cellformer.exporters.compose.story import Story, Suggestion  # noqa: E402
from cellformer.exporters.file.xlsx import write  # noqa: E402
from cellformer.exporters.model.model_book import ModelBook  # noqa: E402

N = 31
SYSTEM_PYTHON = "/usr/bin/python3"  # Debian's: it has LibreOffice's `uno`


def seconds(work: Callable[[], object], n: int = N) -> float:
    """The median time of one call."""
    times = []
    for _ in range(n):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return median(times)


def models() -> dict[str, tuple[Graph, Book, str]]:
    """Two models with the weight block to edit: cat-sat, and a two-layer decoder of width 64."""
    cat_sat = workbooks.find("cat-sat")
    model = cat_sat.model()
    book = cat_sat.build(model, passage(model, model.vocabulary.encode(cat_sat.PROMPT)))
    spec = ModelSpec(
        d_vocab=28, d_model=64, n_ctx=16, n_layers=2, n_heads=4, d_head=16, d_mlp=256,
        activation="gelu_tanh", position="learned", norm="layer", final_norm=True, tied=True,
        bias=True,
    )  # fmt: skip
    wide = random_model(spec)
    story = Story("width-64: a benchmark", "", [""], [""], [Suggestion("", 0)])
    large = assemble("width-64", wide, passage(wide, list(range(12))), story)
    return {
        "cat-sat": (forward_of(book), book, "blocks.0.attn.h0.W_V"),
        "2 layers, d=64, 12 tokens": (forward_of(large), large, "blocks.1.attn.h0.W_V"),
    }


def forward_of(book: ModelBook) -> Graph:
    """The model's forward pass alone: a book's graph has the tables of its pages as well."""
    return book.model.graph(book.passage.ids)


def full_pass(forward: Graph, whole: Graph) -> None:
    """Full evaluation of the model's forward pass against straight numpy, and of the book."""
    ids = forward.inputs["tokens"][:, 0].astype(int).tolist()
    weights = dict(forward.weights or {})
    engine = seconds(Evaluator(forward).run)
    numpy = seconds(lambda: straight_numpy(forward.spec, weights, ids))
    book = seconds(Evaluator(whole).run)
    print(f"  forward pass: {engine * 1e3:.2f} ms, {engine / numpy:.1f} x straight numpy")
    print(f"  the whole book, its tables too: {book * 1e3:.2f} ms")


def edited_in(graph: Graph, weight: str) -> float:
    """Seconds from an edited weight to all that follows from it, in the engine."""
    live, values = Evaluator(graph), iter(range(10**6))
    live.run()

    def edit() -> None:
        live.set(weight, 1, 1, next(values) % 7 + 0.5)
        live.recompute()

    return seconds(edit)


def one_edit(forward: Graph, book: Book, weight: str) -> None:
    """One edited weight to new logits, in the engine and in spreadsheet programs."""
    full, engine = seconds(Evaluator(forward).run), edited_in(forward, weight)
    print(f"  one edit: {engine * 1e3:.2f} ms, {engine / full:.2f} x a forward pass")
    whole = edited_in(book.graph, weight)
    print(f"  the same in the whole book: {whole * 1e3:.2f} ms")
    with tempfile.TemporaryDirectory() as folder:
        path = write(book, Path(folder) / "book.xlsx")
        for name, measure in (("IronCalc", in_ironcalc), ("LibreOffice", in_libreoffice)):
            taken = measure(path, book, book.graph, weight)
            if taken is None:
                print(f"  {name}: skipped, not installed")
            else:
                print(f"  {name}: {taken * 1e3:.2f} ms, {taken / whole:.1f} x the engine's edit")


def edited_and_read(book: Book, graph: Graph, weight: str) -> tuple[str, int, int, str, int, int]:
    """Where the edited weight and the last logit stand: (sheet, row, column) twice."""
    source, target = book.places[weight], book.places["logits"]
    last = graph["logits"].shape[0] - 1
    return source.sheet, *source.cell(1, 1), target.sheet, *target.cell(last, 0)


def in_ironcalc(path: Path, book: Book, graph: Graph, weight: str) -> float | None:
    """IronCalc recomputes everything at `evaluate`."""
    if not ENGINES["ironcalc"].installed():
        return None
    import ironcalc

    model = ironcalc.load_from_xlsx(str(path), "en", "UTC", "en")
    model.evaluate()
    names = [s["name"] for s in model.get_worksheets_properties()]
    sheet, row, col, to_sheet, to_row, to_col = edited_and_read(book, graph, weight)
    values = iter(range(10**6))

    def edit() -> object:
        value = next(values) % 7 + 0.5
        model.update_cell_with_number(names.index(sheet), row + 1, col + 1, value)
        model.evaluate()
        return model.get_cell_value(names.index(to_sheet), to_row + 1, to_col + 1)

    return seconds(edit)


def in_libreoffice(path: Path, book: Book, graph: Graph, weight: str) -> float | None:
    """LibreOffice recomputes what an edit reaches; its own Python drives it."""
    where = map(str, edited_and_read(book, graph, weight))
    script = Path(__file__).with_name("libreoffice_edit.py")
    command = [SYSTEM_PYTHON, str(script), str(path), str(N), *where]
    done = subprocess.run(command, capture_output=True, text=True)
    return float(done.stdout) if done.returncode == 0 else None


if __name__ == "__main__":
    for title, (forward, book, weight) in models().items():
        print(f"{title}: {sum(b.n_cells for b in forward):,} cells, {book.n_formulas:,} formulas")
        full_pass(forward, book.graph)
        one_edit(forward, book, weight)
