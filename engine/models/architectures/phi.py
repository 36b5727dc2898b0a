"""Phi (Li et al. 2023: phi-1, phi-1.5, phi-2): attention and MLP in parallel on the same norm of
the stream, rotary positions on a part of each head's features, biases everywhere."""

from collections.abc import Sequence

from cellformer.engine.cells.access import Mask
from cellformer.engine.cells.block import Block
from cellformer.engine.models import ops, parts
from cellformer.engine.models.architectures.llama import Turn, of_heads, run, usual
from cellformer.engine.models.foreign import Config, Piece, Pieces, grouped_heads, linear, norm
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("phi",)
EPS = "layer_norm_eps"  # the config's name for what keeps its norms' divisors above zero
NEW = {"hidden_act": "gelu_new"}


def forward(g: Forward, ids: Sequence[int]) -> None:
    """One forward pass over the token ids."""
    run(g, ids, parts.layer_norm, attention)


def attention(b: Forward, x: Block, turn: Turn | None, window: int | None) -> Block:
    """The sum of what all heads write; the norm of all queries has one gain and bias, and that of
    all keys."""
    attn, given = b.at("attn"), b.spec.qk_norm
    ln = {w: attn.at(f"{w}_norm") for w in "qk"}
    of = {w: [ln[w].weight(leaf, "d_head") for leaf in "wb"] if given else [] for w in "qk"}

    def ready(h: Forward, which: str, x: Block) -> Block:
        if given:
            own = h.at(f"{which}_norm")
            x = parts.standardize(own, "normalized", x, h.spec.norm_eps)
            x = own.block("out", ops.affine, x, *of[which])
        return parts.rotate(h, f"rot_{which}", x, turn) if turn else x  # [n_tokens, d_head]

    return of_heads(b, x, parts.of_all_heads(attn), Mask(), ready)


def read_config(c: Config) -> ModelSpec:
    """Phi's config."""
    c.assume(vocab_size=51200, hidden_size=2048, intermediate_size=8192, hidden_act="gelu_new")
    c.assume(num_hidden_layers=24, num_attention_heads=32, max_position_embeddings=2048)
    return usual(
        c,
        part="partial_rotary_factor",
        default_part=0.5,
        bias="",
        eps=EPS,
        norm="layer",
        qkv_bias=True,
        out_bias=True,
        mlp_bias=True,
        word_bias=True,
        gated=False,
        parallel=True,
        qk_norm=c.get("qk_layernorm", bool, False),
    )


def pieces(spec: ModelSpec) -> Pieces:
    """Linear weights are [out, in]."""
    yield "W_E", Piece("model.embed_tokens.weight")
    yield "W_U", Piece("lm_head.weight", transposed=True)
    yield "b_U", Piece("lm_head.bias")
    yield from norm("ln_final", "model.final_layernorm")
    for layer in range(spec.n_layers):
        b, f = f"blocks.{layer}", f"model.layers.{layer}"
        yield from norm(f"{b}.ln1", f"{f}.input_layernorm")
        yield from grouped_heads(f"{b}.attn", f"{f}.self_attn", spec, out="dense")
        yield from norm(f"{b}.attn.q_norm", f"{f}.self_attn.q_layernorm")
        yield from norm(f"{b}.attn.k_norm", f"{f}.self_attn.k_layernorm")
        yield from linear(f"{b}.mlp", f"{f}.mlp", (("in", "fc1"), ("out", "fc2")))
