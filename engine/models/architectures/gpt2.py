"""GPT-2 (Radford et al. 2019, section 2.3): LayerNorm before each sublayer, learned positions."""

from collections.abc import Sequence
from dataclasses import dataclass

from cellformer.engine.cells.access import Mask
from cellformer.engine.models import ops, parts
from cellformer.engine.models.foreign import Config, Piece, Pieces, head_of, linear, norm
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("gpt2",)
EPS = "layer_norm_epsilon"  # the config's name for what keeps its norms' divisors above zero
NEW = {"architectures": ["GPT2LMHeadModel"], "activation_function": "gelu_new"}


@dataclass(frozen=True, repr=False)
class Gpt2Spec(ModelSpec):
    """ModelSpec with an option of GPT-2's."""

    divides_by_layer: bool = False  # scores of the first layer by 1, of the second by 2, ...


def forward(g: Forward, ids: Sequence[int]) -> None:
    """One forward pass over the token ids."""
    spec = g.spec_as(Gpt2Spec)
    W_E, embed = parts.embed(g, ids)  # embed: [n_tokens, d_model]
    places = parts.positions(g, len(ids))  # [n_tokens, 1]
    W_pos = g.weight("W_pos", "n_ctx", "d_model")
    stream = [embed, g.block("pos_embed", ops.embed, places, W_pos)]

    for layer in range(spec.n_layers):
        b = g.at(f"blocks.{layer}")
        x = b.block("resid_pre", ops.add, stream)  # [n_tokens, d_model]

        attn = b.at("attn")
        y = parts.layer_norm(b.at("ln1"), x, spec.norm_eps)  # [n_tokens, d_model]
        of_all = parts.of_all_heads(attn, by=layer + 1 if spec.divides_by_layer else 1)
        heads = []
        for head in range(spec.n_heads):
            h = attn.at(f"h{head}")
            q = parts.linear(h, "q", y, "Q", ("d_model", "d_head"), bias=True)
            k = parts.linear(h, "k", y, "K", ("d_model", "d_head"), bias=True)
            v = parts.linear(h, "v", y, "V", ("d_model", "d_head"), bias=True)
            heads.append(parts.attend(h, q, k, v, of_all, Mask()))  # z: [n_tokens, d_head]
        attn_out = parts.write_heads(b, heads, bias=True)  # [n_tokens, d_model]
        x = b.block("resid_mid", ops.add, [x, attn_out])  # [n_tokens, d_model]

        mlp = b.at("mlp")
        y = parts.layer_norm(b.at("ln2"), x, spec.norm_eps)  # [n_tokens, d_model]
        pre = parts.linear(mlp, "pre", y, "in", ("d_model", "d_mlp"), bias=True)
        post = mlp.block("post", getattr(ops, spec.activation), pre)  # [n_tokens, d_mlp]
        mlp_out = parts.contract(b, post, bias=True)  # [n_tokens, d_model]
        stream = [b.block("resid_post", ops.add, [x, mlp_out])]  # [n_tokens, d_model]

    x = g.block("resid_final", ops.add, stream)  # [n_tokens, d_model]
    x = parts.layer_norm(g.at("ln_final"), x, spec.norm_eps)  # [n_tokens, d_model]
    parts.unembed(g, x, W_E)


def read_config(c: Config) -> ModelSpec:
    """GPT-2's config."""
    c.assume(n_layer=12, activation_function="gelu_new")
    c.ignore("reorder_and_upcast_attn")  # of half precision
    return Gpt2Spec(
        **c.sizes(("n_embd", "n_head", "n_layer")),
        n_ctx=c.get("n_positions", int, c.look("n_ctx") or 1024),
        d_mlp=c.get("n_inner", int, 4 * c.get("n_embd", int)),
        activation=c.activation("activation_function"),
        position="learned",
        norm="layer",
        final_norm=True,
        norm_eps=c.get(EPS, float, 1e-5),
        tied=c.get("tie_word_embeddings", bool, True),
        bias=True,
        sqrt_d_head=None if c.get("scale_attn_weights", bool, True) else 1.0,
        divides_by_layer=c.get("scale_attn_by_inverse_layer_idx", bool, False),
    )


def pieces(spec: ModelSpec) -> Pieces:
    """GPT-2's layout: Conv1D weights are [in, out]; c_attn holds queries, keys and values in
    turn."""
    yield "W_E", Piece("transformer.wte.weight")
    yield "W_pos", Piece("transformer.wpe.weight")
    yield "W_U", Piece("lm_head.weight", transposed=True)
    yield from norm("ln_final", "transformer.ln_f")
    for layer in range(spec.n_layers):
        b, f = f"blocks.{layer}", f"transformer.h.{layer}"
        yield from norm(f"{b}.ln1", f"{f}.ln_1")
        yield from norm(f"{b}.ln2", f"{f}.ln_2")
        for n in range(spec.n_heads):
            h = f"{b}.attn.h{n}"
            for k, which in enumerate("QKV"):
                name, offset = f"{f}.attn.c_attn", k * spec.d_model
                yield f"{h}.W_{which}", head_of(f"{name}.weight", n, spec.d_head, 1, offset)
                yield f"{h}.b_{which}", head_of(f"{name}.bias", n, spec.d_head, 0, offset)
            yield f"{h}.W_O", head_of(f"{f}.attn.c_proj.weight", n, spec.d_head, 0)
        yield f"{b}.attn.b_O", Piece(f"{f}.attn.c_proj.bias")
        mlp = (("in", "c_fc"), ("out", "c_proj"))
        yield from linear(f"{b}.mlp", f"{f}.mlp", mlp, turn=False)
