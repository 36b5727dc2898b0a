"""The golden models with few words, neurons and heads, and one layer of each kind.

Their workbooks have the formulas of their architectures in a third of the cells. What is asked
of all architectures' workbooks is asked of them.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from conftest import golden_models

from cellformer.engine.cells.block import Block
from cellformer.engine.models import architectures, checkpoint
from cellformer.engine.models.foreign import Config
from cellformer.engine.models.forward import weight_shapes

N_WORDS = 3
N_NEURONS = 4
N_HEADS = 2
N_COLUMNS = 3  # one more than windows of words see
WINDOW = N_COLUMNS - 1
FIRST = ("gpt2", "llama")
# as configs call them
LAYERS = ("num_hidden_layers", "num_layers", "n_layer", "n_layers")
NEURONS = ("d_ff", "intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size", "hidden_dim")
HEADS = ("num_attention_heads", "num_heads", "n_head", "n_heads")
SHARED = ("num_key_value_heads", "num_kv_heads")  # heads of keys and values
WIDTH = ("hidden_size", "n_embd", "dim", "d_model", "word_embed_proj_dim")
FOURFOLD = ("codegen",)  # their heads are a multiple of four, and stay
WINDOWS = ("sliding_window", "window_size")
UNLIKE = (
    "attention_types",
    "attn_layer_indices",
    "first_k_dense_replace",
    "mlp_only_layers",
    "no_rope_layers",
    "num_hidden_groups",
    "num_kv_shared_layers",
)  # where they stand, layers differ, or share their weights


def corner(name: str, folder: Path) -> Path:
    """A golden model's checkpoint, whose matrices are the corners of the golden ones."""
    return _saved(name, folder, _fewer(golden_models()[name].config))


def with_few_words(name: str, folder: Path) -> Path:
    """A golden model's checkpoint with few words, and all else: what its corner stands for."""
    return _saved(name, folder, {})


def _fewer(config: Mapping[str, Any]) -> dict[str, Any]:
    """What a config says otherwise of a model's corner. Heads are as wide as they were, and so is
    what the config calls by another name."""
    changes: dict[str, Any] = {key: N_NEURONS for key in NEURONS if key in config}
    if not config.get("use_bidirectional_attention"):  # then no text is longer than the window
        changes |= {key: WINDOW for key in WINDOWS if config.get(key)}
    n_heads = next((config[key] for key in HEADS if key in config), N_HEADS)
    for key in (*HEADS, *SHARED, *WIDTH):
        if key in config and config["model_type"] not in FOURFOLD:
            changes[key] = config[key] * N_HEADS // n_heads
    if not any(key in config for key in UNLIKE):
        kinds = list(dict.fromkeys(config.get("layer_types", [""])))
        changes |= {key: len(kinds) for key in LAYERS if key in config}
        changes |= {"layer_types": kinds} if "layer_types" in config else {}
    return changes


def of_words(config: Mapping[str, Any]) -> dict[str, Any]:
    """What a config says of few words: their number and, of two stacks, special tokens that are
    among them."""
    if not config.get("is_encoder_decoder"):
        return {"vocab_size": N_WORDS}
    ids = {key: i for key, i in config.items() if key.endswith("_token_id") and isinstance(i, int)}
    last = {key: N_WORDS - 1 for key, i in ids.items() if i >= N_WORDS}
    return last | {"vocab_size": N_WORDS, "decoder_vocab_size": None}


def _saved(name: str, folder: Path, changes: Mapping[str, Any]) -> Path:
    model = golden_models()[name]
    config = {**model.config, **of_words(model.config), **changes}
    spec = architectures.find(config["model_type"]).read_config(Config(folder, config))
    shapes = weight_shapes(model.architecture, spec)
    weights = {w: model.weights[w][tuple(map(slice, shape))] for w, shape in shapes.items()}
    checkpoint.save(replace(model, spec=spec, weights=weights, config=config), folder)
    return folder


@cache
def unlike() -> tuple[str, ...]:
    """The golden models with a kind of block that those before them lack, gpt2 and llama first: a
    name, its numbers aside, an op, and what it reads. Other programs are asked about these."""
    seen: set[tuple[object, ...]] = set()
    found = []
    for name in sorted(golden_models(), key=lambda name: (name not in FIRST, name)):
        graph = golden_models()[name].graph([2, 0, 3])
        own = {_kind(block) for block in graph}
        if own - seen:
            found.append(name)
        seen |= own
    return tuple(sorted(found))


def _kind(block: Block) -> tuple[object, ...]:
    reads = {(name, codes[1][:2]) for name, codes, _ in block.operands}
    mask = block.mask and (block.mask.causal, block.mask.window is None)
    op = block.op.name if block.op else block.kind
    return re.sub(r"\d+", "", block.name), op, mask, frozenset(reads)
