"""StarCoder2 (Lozhkov et al. 2024, section 6.1): LayerNorm, rotary positions, grouped keys and
values, sliding windows in every layer, an MLP without a gate, and biases."""

from collections.abc import Sequence

from cellformer.engine.cells.access import Mask
from cellformer.engine.models import ops, parts, rope
from cellformer.engine.models.foreign import Config, Piece, Pieces, grouped_heads, linear, norm
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("starcoder2",)
EPS = "norm_epsilon"  # the config's name for what keeps its norms' divisors above zero
NEW = {"hidden_act": "gelu_pytorch_tanh", "sliding_window": None}


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
        mask = Mask(window=spec.window(layer))
        y = parts.layer_norm(b.at("ln1"), x, spec.norm_eps)  # [n_tokens, d_model]
        of_all = parts.of_all_heads(attn)
        keys, values = [], []
        for n in range(spec.kv_heads):
            kv = attn.at(f"kv{n}")
            k = parts.linear(kv, "k", y, "K", ("d_model", "d_head"), spec.bias)
            keys.append(parts.rotate(kv, "rot_k", k, turn))  # [n_tokens, d_head]
            values.append(parts.linear(kv, "v", y, "V", ("d_model", "d_head"), spec.bias))
        heads = []
        for n in range(spec.n_heads):
            h = attn.at(f"h{n}")
            q = parts.linear(h, "q", y, "Q", ("d_model", "d_head"), spec.bias)
            q = parts.rotate(h, "rot_q", q, turn)  # [n_tokens, d_head]
            heads.append(parts.attend(h, q, keys[n // group], values[n // group], of_all, mask))
        attn_out = parts.write_heads(b, heads, spec.bias)  # [n_tokens, d_model]
        x = b.block("resid_mid", ops.add, [x, attn_out])  # [n_tokens, d_model]

        mlp = b.at("mlp")
        y = parts.layer_norm(b.at("ln2"), x, spec.norm_eps)  # [n_tokens, d_model]
        pre = parts.linear(mlp, "pre", y, "in", ("d_model", "d_mlp"), spec.bias)
        post = mlp.block("post", getattr(ops, spec.activation), pre)  # [n_tokens, d_mlp]
        mlp_out = parts.contract(b, post, spec.bias)  # [n_tokens, d_model]
        stream = [b.block("resid_post", ops.add, [x, mlp_out])]  # [n_tokens, d_model]

    x = g.block("resid_final", ops.add, stream)  # [n_tokens, d_model]
    x = parts.layer_norm(g.at("ln_final"), x, spec.norm_eps)  # [n_tokens, d_model]
    parts.unembed(g, x, W_E)


def read_config(c: Config) -> ModelSpec:
    """StarCoder2's config."""
    c.assume(num_hidden_layers=30, max_position_embeddings=4096)
    c.assume(hidden_act="gelu_pytorch_tanh")
    for name, only in (("norm_type", "layer_norm"), ("mlp_type", "default")):  # of its first files
        c.refuse(name, only, f"only {only!r} is known")
    c.ignore("activation_function", "layer_norm_epsilon", "scale_attn_weights")
    c.ignore("attention_softmax_in_fp32", "scale_attention_softmax_in_fp32")
    n_layers, window = c.get("num_hidden_layers", int), c.optional("sliding_window", int, None)
    d_head = c.get("head_dim", int, 0) or c.divide("hidden_size", "num_attention_heads")
    rotary = rope.read(c, d_head)
    return ModelSpec(
        d_vocab=c.get("vocab_size", int),
        d_model=c.get("hidden_size", int),
        n_ctx=rotary.n_ctx,
        n_layers=n_layers,
        n_heads=c.get("num_attention_heads", int),
        n_kv_heads=c.get("num_key_value_heads", int, 2),
        d_head=d_head,
        d_mlp=c.get("intermediate_size", int),
        activation=c.activation("hidden_act"),
        position="rotary",
        norm="layer",
        final_norm=True,
        norm_eps=c.get(EPS, float, 1e-5),
        tied=c.get("tie_word_embeddings", bool, True),
        bias=c.get("use_bias", bool, True),
        windows=() if window is None else (window,) * n_layers,
        rope_theta=rotary.theta,
        rope_frequencies=rotary.frequencies,
        rope_factor=rotary.factor,
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
        yield from linear(f"{b}.mlp", f"{f}.mlp", (("in", "c_fc"), ("out", "c_proj")))
