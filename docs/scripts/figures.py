"""Write the sizes that the documents tell into them: what stands between two marks.

    python docs/scripts/figures.py

A mark is a comment of Markdown, which no reader sees: `<!--formulas shakespeare-->458,025<!--/-->`.
Times and memory are measured, and stand without.
"""

import re
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from cellformer import names
from cellformer.engine.models import checkpoint
from cellformer.engine.models.architectures import gpt2
from cellformer.engine.models.forward import ONE_TOKEN, Forward
from cellformer.exporters.compose.book import Book
from cellformer.exporters.file.xlsx import write

FOLDER = Path(__file__).parents[1]
MODELS = FOLDER.parent / "workbooks" / "models"
MARKED = re.compile(r"(<!--(\w+) ([\w-]+)-->).*?(<!--/-->)", re.DOTALL)
GPT2_SMALL = gpt2.Gpt2Spec(
    d_vocab=50257, d_model=768, n_ctx=1024, n_layers=12, n_heads=12, d_head=64, d_mlp=3072,
    activation="gelu_tanh", position="learned", norm="layer", final_norm=True, tied=True, bias=True,
)  # fmt: skip
Find = Callable[[str], Book]


def formulas(find: Find, name: str) -> str:
    """How many formulas a workbook of the list has."""
    return f"{find(name).n_formulas:,}"


def megabytes(find: Find, name: str) -> str:
    """How large its file is."""
    with tempfile.TemporaryDirectory() as folder:
        size = write(find(name), Path(folder) / f"{name}.xlsx").stat().st_size
    return f"{size / 1e6:.1f} MB"


def weights(find: Find, name: str) -> str:
    """How many weights a shipped model has."""
    return f"{sum(w.size for w in checkpoint.load(MODELS / name).weights.values()):,}"


def shipped(find: Find, name: str) -> str:
    """How large the file of its weights is."""
    size = (MODELS / name / "model.safetensors").stat().st_size
    return f"{size / 1e6:.1f} MB" if size > 1e6 else f"{size / 1e3:.0f} KB"


def millions(find: Find, n_tokens: str) -> str:
    """How many formulas the blocks of GPT-2 small have over so many tokens, in millions."""
    graph = Forward(GPT2_SMALL, None, ONE_TOKEN)
    gpt2.forward(graph, [0] * int(n_tokens))
    return f"{sum(block.n_cells for block in graph if block.op) / 1e6:.1f} million"


FIGURES = {f.__name__: f for f in (formulas, megabytes, weights, shipped, millions)}


def current(text: str, find: Find = names.book) -> str:
    """A page with its figures as they are."""

    def figure(found: re.Match[str]) -> str:
        begin, what, of, end = found.groups()
        return begin + FIGURES[what](find, of) + end

    return MARKED.sub(figure, text)


def pages() -> Iterator[Path]:
    """The documents that tell a figure."""
    for page in sorted(FOLDER.glob("*.md")):
        if MARKED.search(page.read_text(encoding="utf-8")):
            yield page


if __name__ == "__main__":
    find = cache(names.book)
    for page in pages():
        page.write_text(current(page.read_text(encoding="utf-8"), find), encoding="utf-8")
        print(page.name)
