"""RWKV-4 (Peng et al. 2023, "RWKV: Reinventing RNNs for the Transformer Era"): no attention. Each
channel holds a mean of all values so far, by how much each counts, which fades from token to token
(section 3.1); an MLP with a gate follows. Both read a mixture of their own token and the one before
it.

Sums of exponentials are held relative to the largest exponent so far, as its reference holds them,
so that none overflows.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.models import ops, parts
from cellformer.engine.models.foreign import Config, Piece, Pieces, linear, norm
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("rwkv",)
EPS = ""  # no field has that of all norms: the last one has its own
LAST_EPS = 1e-5  # of the last norm, whatever the config says
CARRIED = 3  # numbers of each channel: both sums, and the largest exponent
MIXED = {"time": ("k", "v", "r"), "mlp": ("k", "r")}  # what is made of two tokens, in each part
FOREIGN = {"k": "key", "v": "value", "r": "receptance"}


@dataclass(frozen=True, repr=False)
class RwkvSpec(ModelSpec):
    """ModelSpec with RWKV's sizes."""

    d_channels: int = 1
    rescale_every: int = 0  # its reference halves the stream after so many layers; 0: never

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, size in (("attention_hidden_size", self.d_channels), ("d_mlp", self.d_mlp)):
            if size < 1:
                raise InputError(f"{name} is {size}; it must be at least 1")

    def eps(self, eps: float, layers: int) -> float:
        """A norm's epsilon after so many layers. Dividing it by four makes up for halving the
        stream."""
        return float(eps * 4 ** (layers // self.rescale_every if self.rescale_every > 0 else 0))


def forward(g: Forward, ids: Sequence[int]) -> None:
    spec = g.spec_as(RwkvSpec)
    W_E, embed = parts.embed(g, ids)  # embed: [n_tokens, d_model]
    x = parts.layer_norm(g.at("ln_embed"), embed, spec.norm_eps)  # [n_tokens, d_model]

    first = np.arange(len(ids))[:, None] == 0
    starts = g.at("time").input("starts", first.astype(float), ("token", ""))  # [n_tokens, 1]
    for layer in range(spec.n_layers):
        b, eps = g.at(f"blocks.{layer}"), spec.eps(spec.norm_eps, layer)
        x = b.block("resid_pre", ops.add, [x])  # [n_tokens, d_model]
        y = parts.layer_norm(b.at("ln1"), x, eps)  # [n_tokens, d_model]
        x = b.block("resid_mid", ops.add, [x, time_mixing(b, y, starts)])  # [n_tokens, d_model]
        y = parts.layer_norm(b.at("ln2"), x, eps)  # [n_tokens, d_model]
        x = b.block("resid_post", ops.add, [x, channel_mixing(b, y)])  # [n_tokens, d_model]

    x = g.block("resid_final", ops.add, [x])  # [n_tokens, d_model]
    x = parts.layer_norm(g.at("ln_final"), x, spec.eps(LAST_EPS, spec.n_layers))
    parts.unembed(g, x, W_E)


def time_mixing(b: Forward, y: Block, starts: Block) -> Block:
    """The output of the channels' means of all values so far: [n_tokens, d_model]. `starts`
    [n_tokens, 1] is 1 for the first token."""
    t, out = b.at("time"), ("d_model", "d_channels")
    k = mapped(t, "k", y, "K", out)  # [n_tokens, d_channels]
    v = mapped(t, "v", y, "V", out)  # [n_tokens, d_channels]
    r = mapped(t, "r", y, "R", out)  # [n_tokens, d_channels]
    fade = t.block("fade", ops.minus_exp, t.weight("decay", "d_channels"))  # [1, d_channels]
    bonus = t.weight("bonus", "d_channels")

    top = t.block("top", ops.top_so_far, fade, k, starts)  # [n_tokens, d_channels]
    last = t.block("top_before", ops.top_before, top, starts)  # [n_tokens, d_channels]
    total = t.block("sum", ops.faded_sum, fade, last, top, k, v)  # [n_tokens, d_channels]
    counted = t.block("counted", ops.faded_sum, fade, last, top, k)  # [n_tokens, d_channels]
    both = t.block("top_of_both", ops.top_of_both, last, k, bonus)  # [n_tokens, d_channels]
    past = t.block("past", ops.past_share, last, both)  # [n_tokens, d_channels]
    now = t.block("now", ops.own_share, k, bonus, both)  # [n_tokens, d_channels]
    above = t.block("sum_of_both", ops.sum_of_both, past, total, now, v)  # [n_tokens, d_channels]
    below = t.block("counts_of_both", ops.sum_of_both, past, counted, now)  # as above
    z = t.block("z", ops.quotient, above, below)  # [n_tokens, d_channels]

    received = t.block("received", ops.logistic, r)  # [n_tokens, d_channels]
    gated = t.block("gated", ops.gated, received, z)  # [n_tokens, d_channels]
    on, W_out = t.input("switch", 1.0), t.weight("W_out", "d_channels", "d_model")
    return b.block("time_out", ops.switched_linear, gated, W_out, on, parts.stand_in(t, on))


def channel_mixing(b: Forward, y: Block) -> Block:
    """The output of the MLP, times its gate: [n_tokens, d_model]."""
    m = b.at("mlp")
    pre = mapped(m, "pre", y, "in", ("d_model", "d_mlp"), "k")  # [n_tokens, d_mlp]
    post = m.block("post", ops.relu2, pre)  # [n_tokens, d_mlp]
    value = parts.linear(m, "value", post, "out", ("d_mlp", "d_model"), bias=False)
    r = mapped(m, "r", y, "R", ("d_model", "d_model"))  # [n_tokens, d_model]
    received = m.block("received", ops.logistic, r)  # [n_tokens, d_model]
    on = m.input("switch", 1.0)
    return b.block("mlp_out", ops.switched_gated, received, value, on, parts.stand_in(m, on))


def mapped(
    m: Forward, name: str, y: Block, weight: str, out: tuple[str, str], mixed: str = ""
) -> Block:
    """A linear map of each token's mixture with the one before it: [n_tokens, out[1]]."""
    which = mixed or name
    share = m.weight(f"mix_{which}", "d_model")
    x = m.block(f"mixed_{which}", ops.mixed_with_last, y, y, share)  # [n_tokens, d_model]
    return parts.linear(m, name, x, weight, out, bias=False)


def read_config(c: Config) -> ModelSpec:
    c.rename(max_position_embeddings="context_length")
    c.assume(vocab_size=50277, hidden_size=4096, num_hidden_layers=32)
    d_model = c.get("hidden_size", int)
    return RwkvSpec(
        d_vocab=c.get("vocab_size", int),
        d_model=d_model,
        n_ctx=c.get("context_length", int, 1024),
        n_layers=c.get("num_hidden_layers", int),
        d_mlp=c.get("intermediate_size", int, 4 * d_model),
        d_state=CARRIED,
        activation="relu2",
        norm="layer",
        embed_norm=True,
        final_norm=True,
        norm_eps=c.get("layer_norm_epsilon", float, 1e-5),
        tied=c.get("tie_word_embeddings", bool, False),
        d_channels=c.get("attention_hidden_size", int, d_model),
        rescale_every=c.get("rescale_every", int, 6),
    )


def pieces(spec: ModelSpec) -> Pieces:
    """Linear weights are [out, in]."""
    yield "W_E", Piece("rwkv.embeddings.weight")
    yield "W_U", Piece("head.weight", transposed=True)
    yield from norm("ln_embed", "rwkv.blocks.0.pre_ln")
    yield from norm("ln_final", "rwkv.ln_out")
    for layer in range(spec.n_layers):
        b, f = f"blocks.{layer}", f"rwkv.blocks.{layer}"
        time, mlp = f"{f}.attention", f"{f}.feed_forward"
        for which in ("ln1", "ln2"):
            yield from norm(f"{b}.{which}", f"{f}.{which}")
        for part, theirs in (("time", time), ("mlp", mlp)):
            for which in MIXED[part]:
                name = f"{theirs}.time_mix_{FOREIGN[which]}"
                share = Piece(name, row=True, shape=(1, 1, spec.d_model))
                yield f"{b}.{part}.mix_{which}", share
        yield f"{b}.time.decay", Piece(f"{time}.time_decay")
        yield f"{b}.time.bonus", Piece(f"{time}.time_first")
        named = (("K", "key"), ("V", "value"), ("R", "receptance"), ("out", "output"))
        yield from linear(f"{b}.time", time, named)
        yield from linear(f"{b}.mlp", mlp, (("in", "key"), ("R", "receptance"), ("out", "value")))
