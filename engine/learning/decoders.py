"""Decoders that can be trained: any architecture that predicts the next word, in any size."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.name import Name
from cellformer.engine.learning.recipe import Recipe
from cellformer.engine.models import architectures
from cellformer.engine.models.foreign import Config
from cellformer.engine.models.forward import Architecture, Forward, weight_shapes
from cellformer.engine.models.model import Model
from cellformer.engine.models.spec import ModelSpec

SIZES = {  # what configs call them: the file of an architecture asks for the names that it knows
    "d_vocab": ("vocab_size",),
    "d_model": ("hidden_size", "n_embd", "d_model"),
    "n_ctx": ("max_position_embeddings", "n_positions", "seq_length", "max_seq_len"),
    "n_layers": ("num_hidden_layers", "num_layers", "n_layer", "n_layers"),
    "n_heads": (
        *("num_attention_heads", "attention_heads", "num_heads", "n_head", "n_heads"),
        "num_key_value_heads",
    ),
    "d_head": ("head_dim", "rotary_dim", "query_pre_attn_scalar"),
    "d_mlp": (
        *("intermediate_size", "shared_intermediate_size"),
        *("intermediate_size_mlp", "n_inner", "ffn_dim", "ffn_hidden_size"),
    ),
    "d_expert": ("moe_intermediate_size", "shared_expert_intermediate_size"),
}
# How a state space begins (Gu & Dao 2023, section 3.6; Gu et al. 2022): the numbers of a state fade
# at different rates, its steps are from 0.001 to 0.1, and each input is also passed on as it is.
RECURRENT: dict[str, Callable[[tuple[int, ...]], np.ndarray]] = {
    "A_log": lambda shape: np.log(np.arange(1.0, shape[0] + 1))[:, None],
    "b_step": lambda shape: np.log(np.expm1(np.geomspace(0.001, 0.1, shape[0]))),
    "D": np.ones,
}
# Special tokens have no ids: the defaults of most architectures are beyond the vocabulary.
NO_SPECIAL = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}


@dataclass(frozen=True)
class Decoder:
    """An architecture in certain sizes, without weights."""

    forward: Architecture
    spec: ModelSpec
    config: Mapping[str, Any]  # what it is saved with

    @classmethod
    def of(cls, model: Model) -> "Decoder":
        """The decoder of an existing model."""
        return cls(model.architecture, model.spec, model.config)

    def initial(self, recipe: Recipe, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Initial weights by name: gains without effect, biases 0, random matrices."""
        gains = self._gains()
        weights: dict[str, np.ndarray] = {}
        for name, shape in weight_shapes(self.forward, self.spec).items():
            leaf = Name(name).leaf
            if leaf in RECURRENT:
                weights[name] = np.broadcast_to(RECURRENT[leaf](shape), shape).copy()
            elif len(shape) == 1:
                weights[name] = np.full(shape, float(name in gains))
            else:
                scale = recipe.residual_scale if leaf in ("W_O", "W_out") else recipe.scale
                scale = recipe.embed_scale if leaf == "W_E" else scale
                weights[name] = rng.normal(0, scale, shape)
        return weights

    def _gains(self) -> set[str]:
        """The names of gain vectors, except in architectures with gains of 1 + w."""
        blank = Forward(self.spec)
        self.forward(blank, [0])
        return {
            x.name
            for block in blank
            for parameter, _, x in block.operands
            if block.op and (block.op.name, parameter) == ("affine", "w")
        }


def names() -> list[str]:
    """The architectures that can be trained."""
    known = architectures.known()
    return [
        name
        for name, file in known.items()
        if getattr(file, "NEW", None) is not None and name not in getattr(file, "NOT_NEW", ())
    ]


def new(name: str, **sizes: int) -> Decoder:
    """A decoder of an architecture by its name and d_vocab, d_model, n_ctx, n_layers, n_heads and
    d_mlp. Raises InputError for an architecture that is not trained here, and for impossible
    sizes."""
    if name not in names():
        fault = "is not trained here" if name in architectures.known() else "is unknown"
        raise InputError(f"architecture {name!r} {fault}; choose one of {', '.join(names())}")
    d_model, n_heads, d_mlp = sizes["d_model"], sizes["n_heads"], sizes["d_mlp"]
    if d_model % n_heads:
        raise InputError(f"the number of heads, {n_heads}, must divide d_model = {d_model}")
    sizes |= {"d_head": d_model // n_heads, "d_expert": d_mlp}
    file = architectures.find(name)
    given: dict[str, Any] = {
        theirs: sizes[ours] for ours, named in SIZES.items() for theirs in named
    }
    given["attention_types"] = [[["global"], sizes["n_layers"]]]  # GPT-Neo's layers, none windowed
    asked = Config(Path("config.json"), {"model_type": name, **given, **file.NEW})
    spec = file.read_config(asked)
    if spec.d_mlp and spec.d_mlp != d_mlp:
        raise InputError(f"the MLP of {name} must have {spec.d_mlp} cells, not {d_mlp}")
    said = {theirs: value for theirs, value in given.items() if theirs in asked.asked}
    stored = {"model_type": name, **said, **file.NEW, **NO_SPECIAL, **file.NEW}  # NEW wins
    return Decoder(file.forward, spec, stored)
