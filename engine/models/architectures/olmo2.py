"""OLMo 2 (OLMo Team 2024, section 3.1): Llama's parts with norms after each sublayer instead of
before it, one norm over all heads' queries, and one over all keys."""

from collections.abc import Sequence

from engine.cells.access import Mask
from engine.cells.block import Block
from engine.models import ops, parts, rope
from engine.models.foreign import GATED, Config, Piece, Pieces, grouped_heads, head_of, linear
from engine.models.forward import Forward
from engine.models.spec import ModelSpec

MODEL_TYPES = ("olmo2",)
EPS = "rms_norm_eps"  # the config's name for what keeps its norms' divisors above zero
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
        of_all = parts.of_all_heads(attn)
        kvs = [attn.at(f"kv{n}") for n in range(spec.kv_heads)]
        hs = [attn.at(f"h{n}") for n in range(spec.n_heads)]
        axes = ("d_model", "d_head")
        keys = [parts.linear(kv, "k", x, "K", axes, spec.qkv_bias) for kv in kvs]
        values = [parts.linear(kv, "v", x, "V", axes, spec.qkv_bias) for kv in kvs]
        queries = [parts.linear(h, "q", x, "Q", axes, spec.qkv_bias) for h in hs]
        keys = turned(kvs, "k", norm_together(attn, kvs, "k_norm", keys), turn)
        queries = turned(hs, "q", norm_together(attn, hs, "q_norm", queries), turn)
        heads = [
            parts.attend(h, queries[n], keys[n // group], values[n // group], of_all, Mask())
            for n, h in enumerate(hs)
        ]
        wrote = parts.write_heads(b, heads, spec.out_bias)  # [n_tokens, d_model]
        wrote = parts.rms_norm(b.at("ln1_post"), wrote, spec.norm_eps)  # [n_tokens, d_model]
        x = b.block("resid_mid", ops.add, [x, wrote])  # [n_tokens, d_model]

        mlp = b.at("mlp")
        gate = parts.linear(mlp, "gate", x, "gate", ("d_model", "d_mlp"), bias=False)
        pre = parts.linear(mlp, "pre", x, "in", ("d_model", "d_mlp"), bias=False)
        opened = mlp.block("act", getattr(ops, spec.activation), gate)  # [n_tokens, d_mlp]
        post = mlp.block("post", ops.gated, opened, pre)  # [n_tokens, d_mlp]
        wrote = parts.contract(b, post, bias=False)  # [n_tokens, d_model]
        wrote = parts.rms_norm(b.at("ln2_post"), wrote, spec.norm_eps)  # [n_tokens, d_model]
        stream = [b.block("resid_post", ops.add, [x, wrote])]  # [n_tokens, d_model]

    x = g.block("resid_final", ops.add, stream)  # [n_tokens, d_model]
    x = parts.rms_norm(g.at("ln_final"), x, spec.norm_eps)  # [n_tokens, d_model]
    parts.unembed(g, x, W_E)


def norm_together(
    attn: Forward, heads: Sequence[Forward], name: str, xs: Sequence[Block]
) -> list[Block]:
    """RMSNorm over the features of all heads together; each head is [n_tokens, d_head]."""
    ln = attn.at(name)
    eps = ln.input("eps", attn.spec.norm_eps)
    size = ln.block("root_mean_square", ops.root_mean_square_of_all, xs, eps)  # [n_tokens, 1]
    found = []
    for h, x in zip(heads, xs, strict=True):
        normalized = h.at(name).block("normalized", ops.divide_rows, x, size)
        found.append(h.at(name).block("out", ops.affine, normalized, h.weight(name, "d_head")))
    return found


def turned(
    heads: Sequence[Forward], which: str, xs: Sequence[Block], turn: tuple[Block, Block]
) -> list[Block]:
    """Every head's queries, or keys, with rotary positions: each [n_tokens, d_head]."""
    return [parts.rotate(h, f"rot_{which}", x, turn) for h, x in zip(heads, xs, strict=True)]


def read_config(c: Config) -> ModelSpec:
    """OLMo 2's config."""
    c.assume(num_hidden_layers=32, max_position_embeddings=2048, hidden_act="silu")
    n_heads = c.get("num_attention_heads", int)
    d_head = c.get("head_dim", int, 0) or c.divide("hidden_size", "num_attention_heads")
    rotary = rope.read(c, d_head)
    bias = c.get("attention_bias", bool, False)
    return ModelSpec(
        d_vocab=c.get("vocab_size", int),
        d_model=c.get("hidden_size", int),
        n_ctx=rotary.n_ctx,
        n_layers=c.get("num_hidden_layers", int),
        n_heads=n_heads,
        n_kv_heads=c.optional("num_key_value_heads", int, None) or n_heads,
        d_head=d_head,
        d_mlp=c.get("intermediate_size", int),
        activation=c.activation("hidden_act"),
        position="rotary",
        norm="rms",
        final_norm=True,
        norm_eps=c.get(EPS, float, 1e-5),
        tied=c.get("tie_word_embeddings", bool, False),
        qkv_bias=bias,
        out_bias=bias,
        rope_theta=rotary.theta,
        rope_frequencies=rotary.frequencies,
        rope_factor=rotary.factor,
    )


def pieces(spec: ModelSpec) -> Pieces:
    """Linear weights are [out, in]; the norms of queries and keys are cut into heads."""
    yield "W_E", Piece("model.embed_tokens.weight")
    yield "W_U", Piece("lm_head.weight", transposed=True)
    yield "ln_final.w", Piece("model.norm.weight")
    for layer in range(spec.n_layers):
        b, f = f"blocks.{layer}", f"model.layers.{layer}"
        yield f"{b}.ln1_post.w", Piece(f"{f}.post_attention_layernorm.weight")
        yield f"{b}.ln2_post.w", Piece(f"{f}.post_feedforward_layernorm.weight")
        yield from grouped_heads(f"{b}.attn", f"{f}.self_attn", spec)
        for kind, count, name in (("h", spec.n_heads, "q_norm"), ("kv", spec.kv_heads, "k_norm")):
            gains = f"{f}.self_attn.{name}.weight"
            for n in range(count):
                yield f"{b}.attn.{kind}{n}.{name}", head_of(gains, n, spec.d_head, 0)
        yield from linear(f"{b}.mlp", f"{f}.mlp", GATED)
