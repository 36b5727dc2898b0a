"""The essays' own decoder as a graph of cells: the whole forward pass, top to bottom.

A residual stream runs through the model; every sublayer reads it and adds its output to it.
(Vaswani et al. 2017, "Attention Is All You Need", section 3; norms before the sublayers as in
GPT-2, or after them as in 2017.)
"""

from collections.abc import Sequence

import numpy as np

from cellformer.engine.cells.access import Mask
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError, nearest
from cellformer.engine.models import ops, parts
from cellformer.engine.models.foreign import Config, Piece, Pieces
from cellformer.engine.models.forward import Forward, weight_shapes
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("cellformer",)
EPS = "norm_eps"  # the config's name for what keeps its norms' divisors above zero


def forward(g: Forward, ids: Sequence[int]) -> None:
    """One forward pass over the token ids."""
    spec = g.spec
    W_E, embed = parts.embed(g, ids)  # embed: [n_tokens, d_model]
    stream = [embed]
    if spec.position in ("learned", "sinusoidal"):
        stream.append(position(g, len(ids)))
    if spec.embed_norm:
        stream = [norm(g.at("ln_embed"), g.block("embed_sum", ops.add, stream))]
    turn = parts.rotation(g, len(ids)) if spec.position == "rotary" else None

    for layer in range(spec.n_layers):
        b = g.at(f"blocks.{layer}")
        x = b.block("resid_pre", ops.add, stream)  # [n_tokens, d_model]
        if spec.n_heads:
            read = x if spec.norm_after else norm(b.at("ln1"), x)
            x = b.block("resid_mid", ops.add, [x, attention(b, read, turn)])
            x = norm(b.at("ln1"), x) if spec.norm_after else x
        if spec.d_mlp:
            read = x if spec.norm_after else norm(b.at("ln2"), x)
            x = b.block("resid_post", ops.add, [x, mlp(b, read)])  # [n_tokens, d_model]
            x = norm(b.at("ln2"), x) if spec.norm_after else x
        stream = [x]

    x = g.block("resid_final", ops.add, stream)  # [n_tokens, d_model]
    if spec.final_norm:
        final = parts.rms_norm if spec.norm == "rms" else parts.layer_norm
        x = final(g.at("ln_final"), x, spec.norm_eps)  # [n_tokens, d_model]
    parts.unembed(g, x, W_E)


def attention(b: Forward, x: Block, turn: tuple[Block, Block] | None) -> Block:
    """Multi-head attention: every head writes its own `result` into the stream."""
    spec, attn = b.spec, b.at("attn")
    of_all = parts.of_all_heads(attn)
    head_axes, mask = ("d_model", "d_head"), Mask(spec.causal, sentence=b.readout.sentence)
    heads = []
    for head in range(spec.n_heads):
        h = attn.at(f"h{head}")
        q = parts.linear(h, "q", x, "Q", head_axes, spec.bias)  # [n_tokens, d_head]
        k = parts.linear(h, "k", x, "K", head_axes, spec.bias)  # [n_tokens, d_head]
        v = parts.linear(h, "v", x, "V", head_axes, spec.bias)  # [n_tokens, d_head]
        if turn:
            q = parts.rotate(h, "rot_q", q, turn)
            k = parts.rotate(h, "rot_k", k, turn)
        heads.append(parts.attend(h, q, k, v, of_all, mask))
    return parts.write_heads(b, heads, spec.bias)  # [n_tokens, d_model]


def mlp(b: Forward, x: Block) -> Block:
    """The MLP: expand, apply the activation function, contract; each token by itself."""
    spec, m = b.spec, b.at("mlp")
    pre = parts.linear(m, "pre", x, "in", ("d_model", "d_mlp"), spec.bias)  # [n_tokens, d_mlp]
    post = m.block("post", getattr(ops, spec.activation), pre)  # [n_tokens, d_mlp]
    return parts.contract(b, post, spec.bias)  # [n_tokens, d_model]


def norm(ln: Forward, x: Block) -> Block:
    """The input of a sublayer: the stream, normalized if the model does."""
    spec = ln.spec
    if spec.norm == "none":
        return x
    return (parts.layer_norm if spec.norm == "layer" else parts.rms_norm)(ln, x, spec.norm_eps)


def position(g: Forward, n_tokens: int) -> Block:
    """A vector for each position: learned, or sinusoidal (2017, section 3.5)."""
    places = parts.positions(g, n_tokens)  # [n_tokens, 1]
    if g.spec.position == "learned":
        table = g.weight("W_pos", "n_ctx", "d_model")
    else:
        table = g.input("clock", clock(n_tokens, g.spec.d_model), ("n_ctx", "d_model"))
    return g.block("pos_embed", ops.embed, places, table)  # [n_tokens, d_model]


def clock(n_tokens: int, d_model: int) -> np.ndarray:
    """Sinusoidal positions: sine and cosine of pos / 10000^(2i / d_model) in turn."""
    i = np.arange(d_model)
    angle = np.arange(n_tokens)[:, None] / 10000 ** ((i - i % 2) / d_model)  # [n_tokens, d_model]
    return np.where(i % 2, np.cos(angle), np.sin(angle))


def read_config(c: Config) -> ModelSpec:
    """The fields of ModelSpec by name; missing ones take their defaults."""
    given = {k: v for k, v in c.values.items() if k != "model_type"}
    known = ModelSpec.__dataclass_fields__
    c.ignore(*known)
    for name, value in given.items():
        if name not in known:
            raise InputError(
                f"{c.path}: cellformer's own format has no field {name!r}; {nearest(name, known)}"
            )
        given[name] = tuple(value) if isinstance(value, list) else value
    try:
        return ModelSpec(**given)
    except TypeError as error:
        raise InputError(f"{c.path}: {str(error).partition(') ')[2] or error}") from None


def pieces(spec: ModelSpec) -> Pieces:
    """Every weight is a tensor of the same name."""
    yield from ((name, Piece(name)) for name in weight_shapes(forward, spec))
