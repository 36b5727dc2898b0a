"""Phi (Li et al. 2023: phi-1, phi-1.5, phi-2): attention and MLP in parallel on the same norm of
the stream, rotary positions on a part of each head's features, biases everywhere."""

from collections.abc import Sequence

from cellformer.engine.cells.access import Mask
from cellformer.engine.cells.block import Block
from cellformer.engine.models import ops, parts, rope
from cellformer.engine.models.foreign import Config, Piece, Pieces, grouped_heads, linear, norm
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("phi",)
EPS = "layer_norm_eps"  # the config's name for what keeps its norms' divisors above zero
NEW = {"hidden_act": "gelu_new"}


def forward(g: Forward, ids: Sequence[int]) -> None:
    """One forward pass over the token ids."""
    spec = g.spec
    W_E, embed = parts.embed(g, ids)  # embed: [n_tokens, d_model]
    stream = [embed]
    turn = parts.rotation(g, len(ids))  # cosines and sines, each [n_tokens, d_head]
    group = spec.n_heads // spec.kv_heads  # heads that share keys

    for layer in range(spec.n_layers):
        b = g.at(f"blocks.{layer}")
        x = b.block("resid_pre", ops.add, stream)  # [n_tokens, d_model]
        y = parts.layer_norm(b.at("ln1"), x, spec.norm_eps)  # [n_tokens, d_model]

        attn = b.at("attn")
        of_all = parts.of_all_heads(attn)
        q_norm = norm_of(attn, "q_norm") if spec.qk_norm else None
        k_norm = norm_of(attn, "k_norm") if spec.qk_norm else None
        keys, values = [], []
        for n in range(spec.kv_heads):
            kv = attn.at(f"kv{n}")
            k = parts.linear(kv, "k", y, "K", ("d_model", "d_head"), spec.qkv_bias)
            k = normed(kv.at("k_norm"), k, k_norm)  # [n_tokens, d_head]
            keys.append(parts.rotate(kv, "rot_k", k, turn))  # [n_tokens, d_head]
            values.append(parts.linear(kv, "v", y, "V", ("d_model", "d_head"), spec.qkv_bias))
        heads = []
        for n in range(spec.n_heads):
            h = attn.at(f"h{n}")
            q = parts.linear(h, "q", y, "Q", ("d_model", "d_head"), spec.qkv_bias)
            q = normed(h.at("q_norm"), q, q_norm)  # [n_tokens, d_head]
            q = parts.rotate(h, "rot_q", q, turn)  # [n_tokens, d_head]
            heads.append(parts.attend(h, q, keys[n // group], values[n // group], of_all, Mask()))
        attn_out = parts.write_heads(b, heads, spec.out_bias)  # [n_tokens, d_model]
        x = b.block("resid_mid", ops.add, [x, attn_out])  # [n_tokens, d_model]

        mlp = b.at("mlp")
        pre = parts.linear(mlp, "pre", y, "in", ("d_model", "d_mlp"), bias=True)
        post = mlp.block("post", getattr(ops, spec.activation), pre)  # [n_tokens, d_mlp]
        mlp_out = parts.contract(b, post, bias=True)  # [n_tokens, d_model]
        stream = [b.block("resid_post", ops.add, [x, mlp_out])]  # [n_tokens, d_model]

    x = g.block("resid_final", ops.add, stream)  # [n_tokens, d_model]
    x = parts.layer_norm(g.at("ln_final"), x, spec.norm_eps)  # [n_tokens, d_model]
    parts.unembed(g, x, W_E, bias=True)


def norm_of(attn: Forward, name: str) -> tuple[Block, Block]:
    """Gain and bias of the norm of all heads' queries, or keys: each [1, d_head]."""
    return attn.at(name).weight("w", "d_head"), attn.at(name).weight("b", "d_head")


def normed(ln: Forward, x: Block, weights: tuple[Block, Block] | None) -> Block:
    """LayerNorm of a head's queries or keys, [n_tokens, d_head]; unchanged if the model has no such
    norm."""
    if weights is None:
        return x
    normalized = parts.standardize(ln, "normalized", x, ln.spec.norm_eps)
    return ln.block("out", ops.affine, normalized, *weights)


def read_config(c: Config) -> ModelSpec:
    """Phi's config."""
    c.assume(vocab_size=51200, hidden_size=2048, intermediate_size=8192, hidden_act="gelu_new")
    c.assume(num_hidden_layers=24, num_attention_heads=32, max_position_embeddings=2048)
    n_heads = c.get("num_attention_heads", int)
    d_head = c.get("head_dim", int, 0) or c.divide("hidden_size", "num_attention_heads")
    rotary = rope.read(c, d_head, part="partial_rotary_factor", default_part=0.5)
    return ModelSpec(
        d_vocab=c.get("vocab_size", int),
        d_model=c.get("hidden_size", int),
        n_ctx=rotary.n_ctx,
        n_layers=c.get("num_hidden_layers", int),
        n_heads=n_heads,
        n_kv_heads=c.get("num_key_value_heads", int, n_heads),
        d_head=d_head,
        d_mlp=c.get("intermediate_size", int),
        activation=c.activation("hidden_act"),
        position="rotary",
        norm="layer",
        final_norm=True,
        norm_eps=c.get(EPS, float, 1e-5),
        tied=c.get("tie_word_embeddings", bool, False),
        qkv_bias=True,
        out_bias=True,
        qk_norm=c.get("qk_layernorm", bool, False),
        d_rotary=rotary.d_rotary,
        rope_theta=rotary.theta,
        rope_frequencies=rotary.frequencies,
        rope_factor=rotary.factor,
        parallel=True,
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
