"""The figures that the sources print, and why some differ from the cells."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cellformer.engine.cells.expression import Area
from cellformer.exporters.assemble.worksheets import Comparison
from cellformer.workbooks.napkin import counts, sizes
from cellformer.workbooks.napkin.sizes import MODELS

LABELS = sizes.LABELS | counts.LABELS
FIVE = ("GPT-1", "GPT-2 small", "GPT-2 XL", "GPT-3", "DeepSeek V3")
SEVEN = ("ViT-Tiny", "ViT-Base", "ViT-Large", "GPT-2 small", "GPT-3", "BERT base", "BERT large")


class Figures(NamedTuple):
    """A source's printed numbers for some models: a row for each size or count."""

    source: str
    models: Sequence[str]
    rows: Mapping[str, Sequence[float]]


FIGURES = [
    Figures(
        "introduction",
        FIVE[1:],
        {
            "billions": (0.124, 1.5, 175, 671),
            "d_model": (768, 1600, 12288, 7168),
            "d_mlp": (3072, 6400, 49152, 18432),
            "n_heads": (12, 25, 96, 128),
            "d_head": (64, 64, 128, 56),
            "n_layers": (12, 48, 96, 61),
            "d_vocab": (5025, 50257, 50257, 129280),
            "n_ctx": (1024, 2048, 2048, 163840),
        },
    ),
    Figures(
        "slides",
        FIVE,
        {
            "d_model": (768, 768, 1600, 12288, 7168),
            "d_head": (64, 64, 64, 128, 128),
            "d_mlp": (3072, 3072, 6400, 49152, 18432),
            "n_heads": (12, 12, 25, 96, 128),
            "n_layers": (12, 12, 48, 96, 61),
            "n_ctx": (512, 1024, 1024, 2048, 128000),
            "d_vocab": (40478, 50257, 50257, 50257, 128000),
        },
    ),
    Figures("slides", ("GPT-1", "GPT-2 XL", "GPT-3"), {"billions": (0.117, 1.5, 175)}),
    Figures("slides, size of W_E", ["GPT-3"], {"d_model": [12888], "d_vocab": [50527]}),
    Figures("slides, about 1%", ("GPT-3", "DeepSeek V3"), {"ends": (0.01, 0.01)}),
    Figures("slides, about 2/3", ["GPT-3"], {"mlps_share": [0.67]}),
    Figures(
        "notes",
        SEVEN,
        {
            "n_layers": (12, 12, 24, 12, 96, 12, 24),
            "n_heads": (3, 12, 16, 12, 96, 12, 16),
            "d_model": (192, 768, 1024, 768, 12288, 768, 1024),
        },
    ),
    Figures("notes", ["GPT-3"], {"d_mlp": [49152], "d_head": [128], "d_vocab": [50257]}),
    Figures(
        "essay",
        ("GPT-2 small", "Llama 7B"),
        {
            "n_layers": (12, 32),
            "d_model": (768, 4096),
            "n_heads": (12, 32),
            "d_head": (64, 128),
            "d_mlp": (3072, 11008),
            "d_vocab": (50257, 32000),
        },
    ),
    Figures("essay", ["Llama 7B"], {"billions": [7]}),
]
SECTIONS = {
    "introduction": "Introduction, key figures of models",
    "slides": "Slides, Napkins and sizes",
    "notes": "Lecture notes, typical counts",
    "essay": "QKV Attention, section 4",
}
FIRST_COUNT = (
    "The source prints 1.5; the sizes give 1.558. OpenAI's own first count, 1.542, was too low"
)
NOTES = {  # by source, model and row
    "introduction": {
        ("GPT-2 XL", "billions"): FIRST_COUNT,
        (
            "DeepSeek V3",
            "d_head",
        ): "The source prints 56 = 7168 / 128. The heads are 128 wide: 16384, more than d_model",
        ("GPT-2 small", "d_vocab"): "misprint: 5025 lacks the last digit of 50257",
        ("GPT-2 XL", "n_ctx"): "printed 2048, but every GPT-2 has 1024 positions",
    },
    "slides": {
        ("GPT-2 XL", "billions"): FIRST_COUNT,
        (
            "DeepSeek V3",
            "n_ctx",
        ): "The source prints 128k, the intended length. The published settings allow 163840",
        ("DeepSeek V3", "d_vocab"): "printed 128k, rounded from 129280 tokens",
    },
    "slides, size of W_E": {
        ("GPT-3", "d_model"): "printed 12888; W_U in the source has 12288",
        ("GPT-3", "d_vocab"): "printed 50527 once; 50257 elsewhere",
    },
    "slides, about 1%": {("DeepSeek V3", "ends"): "printed about 1%; exact 0.3%"},
    "slides, about 2/3": {("GPT-3", "mlps_share"): "printed about 2/3; exact 66.4%"},
}


PUBLISHED = ("slides", "DeepSeek V3", "n_ctx")  # its settings allow more than it was made for


def comparisons(cells: Mapping[str, Area]) -> list[Comparison]:
    """Every printed figure beside its cell. `cells` are the rows of sizes and counts, by name."""
    return [
        Comparison(
            f"{source}: {LABELS[name]} of {model}",
            number,
            cells[name][MODELS.index(model)],
            NOTES.get(source, {}).get((model, name), ""),
            decimals(number),
            SECTIONS[source.partition(",")[0]],
            "other settings" if (source, model, name) == PUBLISHED else "",
        )
        for source, models, rows in FIGURES
        for name, numbers in rows.items()
        for model, number in zip(models, numbers, strict=True)
    ]


def decimals(number: float) -> int:
    """The number of decimals that a number is printed with."""
    return len(f"{number}".partition(".")[2])
