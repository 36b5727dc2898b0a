"""StableLM (Bellagente et al. 2024, section 2): Llama's parts with LayerNorm and partial rotary
positions; the model of 12 billion parameters has attention and MLP in parallel on the same norm,
and norms of each head's queries and keys."""

from collections.abc import Sequence

from cellformer.engine.cells.access import Mask
from cellformer.engine.cells.block import Block
from cellformer.engine.models import ops, parts, rope
from cellformer.engine.models.foreign import (
    GATED,
    Config,
    Piece,
    Pieces,
    grouped_heads,
    linear,
    norm,
)
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("stablelm",)
EPS = "layer_norm_eps"  # the config's name for what keeps its norms' divisors above zero
NEW = {"hidden_act": "silu"}


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

        attn = b.at("attn")
        y = parts.layer_norm(b.at("ln1"), x, spec.norm_eps)  # [n_tokens, d_model]
        of_all = parts.of_all_heads(attn)
        keys, values = [], []
        for n in range(spec.kv_heads):
            kv = attn.at(f"kv{n}")
            k = parts.linear(kv, "k", y, "K", ("d_model", "d_head"), spec.qkv_bias)
            k = normed(kv.at("k_norm"), k) if spec.qk_norm else k  # [n_tokens, d_head]
            keys.append(parts.rotate(kv, "rot_k", k, turn))  # [n_tokens, d_head]
            values.append(parts.linear(kv, "v", y, "V", ("d_model", "d_head"), spec.qkv_bias))
        heads = []
        for n in range(spec.n_heads):
            h = attn.at(f"h{n}")
            q = parts.linear(h, "q", y, "Q", ("d_model", "d_head"), spec.qkv_bias)
            q = normed(h.at("q_norm"), q) if spec.qk_norm else q  # [n_tokens, d_head]
            q = parts.rotate(h, "rot_q", q, turn)  # [n_tokens, d_head]
            heads.append(parts.attend(h, q, keys[n // group], values[n // group], of_all, Mask()))
        attn_out = parts.write_heads(b, heads, bias=False)  # [n_tokens, d_model]
        x = b.block("resid_mid", ops.add, [x, attn_out])  # [n_tokens, d_model]

        mlp = b.at("mlp")
        y = y if spec.parallel else parts.layer_norm(b.at("ln2"), x, spec.norm_eps)
        gate = parts.linear(mlp, "gate", y, "gate", ("d_model", "d_mlp"), bias=False)
        pre = parts.linear(mlp, "pre", y, "in", ("d_model", "d_mlp"), bias=False)
        opened = mlp.block("act", getattr(ops, spec.activation), gate)  # [n_tokens, d_mlp]
        post = mlp.block("post", ops.gated, opened, pre)  # [n_tokens, d_mlp]
        mlp_out = parts.contract(b, post, bias=False)  # [n_tokens, d_model]
        stream = [b.block("resid_post", ops.add, [x, mlp_out])]  # [n_tokens, d_model]

    x = g.block("resid_final", ops.add, stream)  # [n_tokens, d_model]
    x = parts.layer_norm(g.at("ln_final"), x, spec.norm_eps)  # [n_tokens, d_model]
    parts.unembed(g, x, W_E)


def normed(ln: Forward, x: Block) -> Block:
    """LayerNorm of a head's queries or keys, with a gain and no bias: [n_tokens, d_head]."""
    return parts.layer_norm_without_bias(ln, x, ln.spec.norm_eps)


def read_config(c: Config) -> ModelSpec:
    """StableLM's config."""
    c.assume(vocab_size=50304, hidden_size=2560, intermediate_size=6912, hidden_act="silu")
    c.assume(num_hidden_layers=32, num_attention_heads=32, max_position_embeddings=4096)
    d_head = c.divide("hidden_size", "num_attention_heads")
    rotary = rope.read(c, d_head, part="partial_rotary_factor", default_part=0.25)
    return ModelSpec(
        d_vocab=c.get("vocab_size", int),
        d_model=c.get("hidden_size", int),
        n_ctx=rotary.n_ctx,
        n_layers=c.get("num_hidden_layers", int),
        n_heads=c.get("num_attention_heads", int),
        n_kv_heads=c.get("num_key_value_heads", int, 32),
        d_head=d_head,
        d_mlp=c.get("intermediate_size", int),
        activation=c.activation("hidden_act"),
        position="rotary",
        norm="layer",
        final_norm=True,
        norm_eps=c.get(EPS, float, 1e-5),
        tied=c.get("tie_word_embeddings", bool, False),
        qkv_bias=c.get("use_qkv_bias", bool, False),
        qk_norm=c.get("qk_layernorm", bool, False),
        d_rotary=rotary.d_rotary,
        rope_theta=rotary.theta,
        rope_frequencies=rotary.frequencies,
        rope_factor=rotary.factor,
        parallel=c.get("use_parallel_residual", bool, False),
    )


def pieces(spec: ModelSpec) -> Pieces:
    """Linear weights are [out, in]."""
    yield "W_E", Piece("model.embed_tokens.weight")
    yield "W_U", Piece("lm_head.weight", transposed=True)
    yield from norm("ln_final", "model.norm")
    for layer in range(spec.n_layers):
        b, f = f"blocks.{layer}", f"model.layers.{layer}"
        yield from norm(f"{b}.ln1", f"{f}.input_layernorm")
        yield from norm(f"{b}.ln2", f"{f}.post_attention_layernorm")
        yield from grouped_heads(f"{b}.attn", f"{f}.self_attn", spec)
        for kind, count, which in (("h", spec.n_heads, "q"), ("kv", spec.kv_heads, "k")):
            for n in range(count):
                gain = Piece(f"{f}.self_attn.{which}_layernorm.norms.{n}.weight")
                yield f"{b}.attn.{kind}{n}.{which}_norm.w", gain
        yield from linear(f"{b}.mlp", f"{f}.mlp", GATED)
