"""A model in numbers: parameters per part, the KV cache, the size of its workbook."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import orjson

from cellformer.engine.cells.compressing import compressor
from cellformer.engine.cells.name import Name
from cellformer.engine.cells.part import cells_of
from cellformer.engine.cells.stored import Stored
from cellformer.engine.models import encoding
from cellformer.engine.models.architectures.llama import ATTENDS, LlamaSpec
from cellformer.engine.models.choosing import N_RANKS
from cellformer.engine.models.encoding import TOKENS
from cellformer.engine.models.forward import EVERYTHING, Forward, Readout
from cellformer.engine.models.generate import passage
from cellformer.engine.models.model import Model
from cellformer.engine.models.spec import TwoStackSpec
from cellformer.engine.text.subwords import Library

# Measured on workbooks of trained and random models, in LibreOffice 7.4, see benchmarks/README.md:
# compressed bytes of a formula and of one that its column shares, seconds to open them and bytes to
# hold them, the same of a number, and what LibreOffice holds before it holds anything.
BYTES_PER_FORMULA, BYTES_PER_SHARED = 18.5, 15.0
SECONDS_PER_FORMULA, SECONDS_PER_SHARED, SECONDS_PER_NUMBER = 11e-6, 9.4e-6, 0.46e-6
HELD_PER_FORMULA, HELD_PER_SHARED, HELD_PER_NUMBER = 1100.0, 680.0, 19.5
HELD_ALWAYS = 0.2e9
ALWAYS = 0.1  # megabytes of what is no cell
SAMPLE = 4096  # weights on which the size of a weight in the file is measured
MOST_ADDRESSED = 5_000_000  # cells of a file in which all have an address
MOST_COMPARED = 300_000  # weights that stand in their workbook as they were built, as numbers
MOST_CARRIED = 1_000_000  # weights of a model that lies in its workbook a second time, as a file
MOST_MAPPED = 65  # words of the maps, or a few more
TEXTS, TEXTS_PER_BLOCK = 600, 20  # beside the numbers of its rows and columns
COMPARED, TOLD = 24, 130  # formulas for each computed block that compare it as built, other cells
TOKENIZER = 8_000  # formulas of a tokenizer of pieces


@dataclass(frozen=True)
class Forecast:
    """The size of a workbook: its cells, how many of them are formulas, megabytes."""

    n_cells: int
    n_formulas: int
    megabytes: float
    shared: bool  # whether the cells of a column share a formula, as in large workbooks

    def __str__(self) -> str:
        numbers = self.n_cells - self.n_formulas
        each = SECONDS_PER_SHARED if self.shared else SECONDS_PER_FORMULA
        seconds = numbers * SECONDS_PER_NUMBER + self.n_formulas * each
        return (
            f"about {self.n_cells:,} cells, {self.n_formulas:,} formulas, "
            f"{self.megabytes:,.1f} MB; LibreOffice needs about {seconds:.0f} s to open the "
            f"file, and {self.held:.1f} GB of memory"
        )

    @property
    def held(self) -> float:
        """The memory that LibreOffice needs to open it, in GB."""
        numbers = self.n_cells - self.n_formulas
        each = HELD_PER_SHARED if self.shared else HELD_PER_FORMULA
        return (HELD_ALWAYS + numbers * HELD_PER_NUMBER + self.n_formulas * each) / 1e9


OTHERS = {"conv": "convolutions", "ssm": "states"}  # in place of attention, in some models
PARTS = (
    *("embedding", "positions", "attention"),
    *(*OTHERS.values(), "MLP", "norms", "unembedding"),
)
NORMS = ("q_norm", "k_norm", "z_norm", "norm")  # inside of heads


def parameters(model: Model) -> Mapping[str, int]:
    """The number of parameters of each part, in the order of the forward pass."""
    parts = dict.fromkeys(PARTS, 0)
    for name, values in model.weights.items():
        parts[_part(name)] += values.size
    return {part: n for part, n in parts.items() if n or part not in OTHERS.values()}


def _part(name: str) -> str:
    weight = Name(name)
    if weight.leaf == "W_pos":
        return "positions"
    if weight.part.startswith("ln") or {*NORMS} & {*weight.inside, weight.leaf}:
        return "norms"
    if weight.part:
        return ({"mlp": "MLP"} | OTHERS).get(weight.part, "attention")
    return "unembedding" if weight.leaf.endswith("_U") else "embedding"


def kv_numbers(model: Model) -> int:
    """The number of keys and values that each token adds to the cache."""
    spec = model.spec
    attending = spec.n_layers
    if isinstance(spec, LlamaSpec):
        attending = sum(ATTENDS in spec.sublayers(layer) for layer in range(spec.n_layers))
    n_heads = spec.kv_heads if spec.n_heads else 0
    return 2 * attending * n_heads * spec.d_head


def numbers_of_pass(model: Model, n_tokens: int) -> int:
    """The number of numbers that a pass over so many tokens computes, blank cells included."""
    return sum(prod(block.shape) for block in _graph(model, n_tokens, EVERYTHING) if block.op)


def cells_of_part(model: Model, n_tokens: int, readout: Readout, live: Sequence[str]) -> int:
    """The number of cells of a workbook in which only the blocks under `live` recompute."""
    return cells_of(_graph(model, n_tokens, readout), live)


def _graph(model: Model, n_tokens: int, readout: Readout) -> Forward:
    """The graph of any prompt of so many tokens; nothing of it is computed."""
    if model.spec.gives == "next word" and not model.read:
        return model.graph([0] * n_tokens, readout)
    return encoding.graph(model, passage(model, [0] * n_tokens), readout)


def forecast(model: Model, n_tokens: int, readout: Readout) -> Forecast:
    """The size of the workbook of a prompt of `n_tokens`, with this readout; for a sentence
    model, the workbook of two sentences."""
    graph = _graph(model, n_tokens, readout)
    formulas = sum(block.n_cells for block in graph if block.op) + labels(graph)
    decoder = model.spec.gives == "next word"
    explained = decoder and not readout.one_token  # on pages around it
    if explained:
        formulas += pages(model, n_tokens) + 2 * len(graph.blocks)
    n_computed = sum(block.op is not None for block in graph)
    formulas += COMPARED * n_computed
    typed = sum(block.n_cells for block in graph if not block.op)
    kept = typed if typed <= MOST_COMPARED else 0  # as they were built
    texts = (
        TEXTS
        + TOLD * n_computed * decoder
        + sum(TEXTS_PER_BLOCK + sum(block.shape) for block in graph)
    )
    shared = not explained
    megabytes = ALWAYS + formulas * (BYTES_PER_SHARED if shared else BYTES_PER_FORMULA) / 1e6
    each = bytes_per_number(model, typed <= MOST_CARRIED, formulas + typed <= MOST_ADDRESSED)
    megabytes += (typed + kept) * each / 1e6
    return Forecast(formulas + typed + kept + texts, formulas, megabytes, shared)


def labels(graph: Forward) -> int:
    """The number of formulas beside the blocks: token texts above and beside them, and the table of
    words."""
    shown = (zip(block.shape, block.axes, strict=True) for block in graph if block.op)
    texts = sum(n for sides in shown for n, axis in sides if axis in TOKENS)
    words = graph.blocks.get("probs")
    return texts + (0 if graph.readout.one_token or words is None else 5 * words.shape[1])


def pages(model: Model, n_tokens: int) -> int:
    """About how many formulas the pages that explain a decoder have; the large ones are counted."""
    spec, n_words = model.spec, model.spec.d_vocab
    ranks, many = min(n_words, N_RANKS), n_words > N_RANKS
    beyond = n_words + 8 * n_words.bit_length() if many else 0
    choice = n_tokens * (2 * n_words + 5 * ranks + beyond + 12)
    patterns = spec.n_layers * spec.n_heads * n_tokens * (n_tokens + 3)  # on Heads and on Machine
    if isinstance(spec, TwoStackSpec):
        n_source = passage(model, [0] * n_tokens).n_source
        patterns += spec.n_layers * spec.n_heads * n_tokens * (2 * n_source + 3)  # cross attention
        patterns += spec.n_encoder_layers * spec.n_encoder_heads * n_source**2  # on Heads alone
    machine = 12 * n_tokens * (spec.n_layers + 1)
    attention = n_tokens * (4 * spec.d_head + 20) if spec.n_heads else 0  # one step, word by word
    lens = (spec.n_layers + 1) * 5 * (n_words + spec.d_model)
    paths = (spec.n_layers * (spec.n_heads + 3) + 3) * spec.d_model  # Attribution, Trajectory
    mapped = min(n_words, MOST_MAPPED)
    maps = (mapped + 20) * spec.d_model + 16 * mapped
    play = 1000 + 4 * n_words  # and the ledger
    tokenizer = TOKENIZER if isinstance(model.vocabulary, Library) else 0
    return play + choice + patterns + machine + attention + lens + paths + maps + tokenizer


def bytes_per_number(model: Model, carried: bool, addressed: bool) -> float:
    """The bytes of a weight in the file, measured on a sample: written and compressed as in the
    workbook, with or without an address, and again as a checkpoint if the workbook holds one."""
    largest = max(model.weights.values(), key=lambda weights: weights.size)
    rows = slice(0, -(-SAMPLE // largest.shape[-1]))
    if isinstance(largest, Stored):
        part = largest.part(rows, slice(None))
        sample = part.read() if part.decimal else np.asarray(part)
    else:
        sample = np.asarray(largest, np.float64)
    sample = np.ascontiguousarray(sample.ravel()[:SAMPLE])
    texts = orjson.dumps(sample, option=orjson.OPT_SERIALIZE_NUMPY)[1:-1].split(b",")
    addresses = [b' r="AA%d"' % k if addressed else b"" for k in range(len(texts))]
    pairs = zip(addresses, texts, strict=True)
    packer = compressor(many=not addressed)
    cells = b"".join(b'<c%s s="14"><v>%s</v></c>' % pair for pair in pairs)
    found = len(packer.compress(cells)) + len(packer.flush())
    if carried:
        with np.errstate(over="ignore"):
            found += len(zlib.compress(sample.astype(np.float32).tobytes(), 9))
    return found / len(sample)
