"""CodeGen (Nijkamp et al. 2022, section 2.2): GPT-J's pass, with queries, values and keys in one
tensor, in four parts, as four machines trained them."""

from cellformer.engine.cells.errors import InputError
from cellformer.engine.models.architectures import gptj
from cellformer.engine.models.architectures.gptj import EPS, NEW, forward
from cellformer.engine.models.foreign import Config, Pieces, head_of
from cellformer.engine.models.spec import ModelSpec

__all__ = ["EPS", "MODEL_TYPES", "NEW", "forward", "pieces", "read_config"]

MODEL_TYPES = ("codegen",)
PARTS = 4


def read_config(c: Config) -> ModelSpec:
    """CodeGen's config, which has GPT-J's words."""
    spec = gptj.read_config(c)
    if spec.n_heads % PARTS:
        raise InputError(f"{c.path}: n_head is {spec.n_heads}; CodeGen's are a multiple of {PARTS}")
    return spec


def pieces(spec: ModelSpec) -> Pieces:
    """GPT-J's; in each part of the tensor stand its heads' queries, then values, then keys."""
    each = spec.n_heads // PARTS  # heads in a part
    for layer in range(spec.n_layers):
        b, f = f"blocks.{layer}.attn", f"transformer.h.{layer}.attn.qkv_proj.weight"
        for n in range(spec.n_heads):
            for k, ours in enumerate((f"h{n}.W_Q", f"kv{n}.W_V", f"kv{n}.W_K")):
                place = (n // each * 3 + k) * each + n % each
                yield f"{b}.{ours}", head_of(f, place, spec.d_head, 0, turn=True)
    yield from gptj.pieces(spec)
