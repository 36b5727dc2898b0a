"""StableLM (Bellagente et al. 2024, section 2): Llama's parts with LayerNorm and partial rotary
positions; the model of 12 billion parameters has attention and MLP in parallel on the same norm,
and norms of each head's queries and keys."""

from functools import partial

from cellformer.engine.models import parts
from cellformer.engine.models.architectures import llama
from cellformer.engine.models.architectures.llama import attention_normed_by_head, run, usual
from cellformer.engine.models.foreign import Config, Piece, Pieces
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("stablelm",)
EPS = "layer_norm_eps"  # the config's name for what keeps its norms' divisors above zero
NEW = {"hidden_act": "silu"}

forward = partial(run, norm=parts.layer_norm, attend=attention_normed_by_head)


def read_config(c: Config) -> ModelSpec:
    """StableLM's config."""
    c.assume(vocab_size=50304, hidden_size=2560, intermediate_size=6912, num_hidden_layers=32)
    c.assume(num_attention_heads=32, num_key_value_heads=32, max_position_embeddings=4096)
    return usual(
        c,
        part="partial_rotary_factor",
        default_part=0.25,
        bias="",
        eps=EPS,
        norm="layer",
        qkv_bias=c.get("use_qkv_bias", bool, False),
        qk_norm=c.get("qk_layernorm", bool, False),
        parallel=c.get("use_parallel_residual", bool, False),
    )


def pieces(spec: ModelSpec) -> Pieces:
    """Llama's, with a norm for each head."""
    yield from llama.pieces(spec)
    for layer in range(spec.n_layers):
        b, f = f"blocks.{layer}", f"model.layers.{layer}"
        for kind, count, which in (("h", spec.n_heads, "q"), ("kv", spec.kv_heads, "k")):
            for n in range(count):
                gain = Piece(f"{f}.self_attn.{which}_layernorm.norms.{n}.weight")
                yield f"{b}.attn.{kind}{n}.{which}_norm.w", gain
