"""The parts that architectures are built from, a few ops each: norms, rotation, heads, the
readout."""

from collections.abc import Callable, Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np

from cellformer.engine.cells.access import Mask
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.op import Op
from cellformer.engine.models import ops
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import ModelSpec


def softmax(
    g: Graph,
    x: Block,
    out: tuple[Graph, str],
    temperature: Block | None = None,
    sink: Block | None = None,
) -> Block:
    """Softmax along each row of x, as separate blocks for its steps; `sink` [1, 1] is one more
    score, whose share is nobody's."""
    top = g.block("row_max", ops.row_max, x, sink)  # [n_tokens, 1]
    e = g.block("exp", ops.exp, x, top, temperature)  # as x
    total = g.block("row_sum", ops.row_sum, e, sink, top if sink else None)  # [n_tokens, 1]
    where, name = out
    return where.block(name, ops.fraction, e, total)  # as x


def layer_norm(
    ln: Graph, x: Block, eps: float, bias: bool = True, gained: Op = ops.affine
) -> Block:
    """LayerNorm (Ba et al. 2016, section 3): centre, divide by the deviation, gain and bias."""
    normalized = standardize(ln, "normalized", x, eps)  # as x
    w, b = ln.weight("w", x.axes[1]), ln.weight("b", x.axes[1]) if bias else None
    return ln.block("out", gained, normalized, w, b)  # as x


def layer_norm_above_one(ln: Graph, x: Block, eps: float) -> Block:
    """LayerNorm whose gain is 1 + w: as x."""
    return layer_norm(ln, x, eps, gained=ops.gain_above_one)


def layer_norm_without_bias(ln: Graph, x: Block, eps: float) -> Block:
    """LayerNorm with a gain alone: as x."""
    return layer_norm(ln, x, eps, bias=False)


def standardize(ln: Graph, name: str, x: Block, eps: float) -> Block:
    """LayerNorm without gain and bias: mean 0 and deviation 1 for every token."""
    mean = ln.block("mean", ops.mean, x)  # [n_tokens, 1]
    scale = ln.block("scale", ops.deviation, x, ln.input("eps", eps))  # [n_tokens, 1]
    return ln.block(name, ops.normalize, x, mean, scale)  # as x


def rms_norm(
    ln: Forward, x: Block, eps: float, w: Block | None = None, gained: Op = ops.affine
) -> Block:
    """RMSNorm (Zhang & Sennrich 2019, section 4): divide by the root mean square, then gain, if the
    model has one."""
    if not ln.spec.norm_gain:
        return plain_rms_norm(ln, x, eps)
    scale = ln.block("scale", ops.root_mean_square, x, ln.input("eps", eps))  # [n_tokens, 1]
    normalized = ln.block("normalized", ops.divide_rows, x, scale)  # as x
    return ln.block("out", gained, normalized, ln.weight("w", "d_model") if w is None else w)


def plain_rms_norm(ln: Graph, x: Block, eps: float) -> Block:
    """RMSNorm without a gain: as x."""
    scale = ln.block("scale", ops.root_mean_square, x, ln.input("eps", eps))  # [n_tokens, 1]
    return ln.block("out", ops.divide_rows, x, scale)


def norm_together(
    ln: Forward, heads: Sequence[Forward], xs: Sequence[Block], name: str, gain: str
) -> list[Block]:
    """RMSNorm over the features of all heads together; each head is [n_tokens, its features]."""
    eps = ln.input("eps", ln.spec.norm_eps)
    size = ln.block("root_mean_square", ops.root_mean_square_of_all, xs, eps)  # [n_tokens, 1]
    found = []
    for h, x in zip(heads, xs, strict=True):
        own = h.at(name)
        normalized = own.block("normalized", ops.divide_rows, x, size)  # as x
        found.append(own.block("out", ops.affine, normalized, h.weight(gain, x.axes[1])))
    return found


def rms_norm_above_one(ln: Forward, x: Block, eps: float, w: Block | None = None) -> Block:
    """RMSNorm whose gain is 1 + w: as x."""
    return rms_norm(ln, x, eps, w, ops.gain_above_one)


def project(h: Graph, which: str, x: Block, bias: bool, bound: Block | None = None) -> Block:
    """Queries ("q"), keys ("k") or values ("v"), kept from -bound to bound: [n_tokens, d_head]."""
    axes, name = ("d_model", "d_head"), f"unbounded.{which}" if bound else which
    found = linear(h, name, x, which.upper(), axes, bias)
    return h.block(which, ops.bounded, found, bound) if bound else found


def times(
    g: Forward, name: str, x: Block, path: str, by: float, factor: str = "multiplier"
) -> Block:
    """x times a constant, in a block under `path`; x itself if the constant is 1."""
    return x if by == 1 else g.block(name, ops.stretch, x, g.at(path).input(factor, by))


def linear(g: Graph, name: str, x: Block, which: str, out: tuple[str, str], bias: bool) -> Block:
    """x times the weight `W_which` with axes `out`, plus `b_which` if the model has biases."""
    W = g.weight(f"W_{which}", *out)
    b = g.weight(f"b_{which}", out[1]) if bias else None
    return g.block(name, ops.linear, x, W, b)  # [n_tokens, out[1]]


def embed(
    g: Forward, ids: Sequence[int], name: str = "embed", size: str = "d_model"
) -> tuple[Block, Block]:
    """The embedding, and the token vectors that begin the residual stream."""
    spec = g.spec
    if spec.n_layers and (spec.n_heads or spec.d_mlp) and g.readout.by_head:
        g.input("mean_ablation", 0.0)
    tokens = g.input("tokens", np.reshape(ids, (-1, 1)), ("token", ""), "ids")  # [n_tokens, 1]
    W_E = g.weight("W_E", "vocab", size)
    return W_E, g.block(name, ops.embed, tokens, W_E)  # [n_tokens, size]


def positions(g: Forward, n_tokens: int, first: int = 0, axis: str = "token") -> Block:
    """0, 1, 2, ... for the tokens of each sentence, or counted from `first`: [n_tokens, 1]."""
    counted = first + np.arange(n_tokens) % (g.readout.sentence or n_tokens)
    return g.input("positions", counted.reshape(-1, 1), (axis, ""), "ids")


def rotation(
    g: Forward, n_tokens: int, name: str = "rotary", spec: ModelSpec | None = None
) -> tuple[Block, Block]:
    """Cosines and signed sines of every position's angles (Su et al. 2021, section 3.4.2).

    The features i and i + d_rotary / 2 of a head rotate together (or 2i and 2i + 1, if the spec
    pairs adjacent features), at frequency theta^(-2i/d_rotary) unless the spec lists frequencies;
    features beyond d_rotary do not rotate. `spec` is given if it differs between layers.
    """
    g, spec = g.at(name), spec or g.spec
    half = spec.rotary // 2
    still = np.zeros(spec.d_head - spec.rotary)
    plain = spec.rope_theta ** (-2 * np.arange(half) / max(spec.rotary, 1))
    speed = np.array(spec.rope_frequencies) if spec.rope_frequencies else plain
    speeds = of_pairs(speed, speed, spec.rope_neighbours)
    signs = of_pairs(-np.ones(half), np.ones(half), spec.rope_neighbours)
    position = g.input("positions", np.arange(n_tokens).reshape(-1, 1), ("token", ""))
    axes = ("", "d_head")
    frequency = g.input("frequency", np.concatenate([speeds, still]), axes)  # [1, d_head]
    factor = None
    if spec.rope_factor != 1:  # of what turns
        grown = np.full(spec.rotary, spec.rope_factor)
        factor = g.input("factor", np.concatenate([grown, still + 1]), axes)  # [1, d_head]
    cos = g.block("cos", ops.cosine, position, frequency, factor)  # [n_tokens, d_head]
    sign = g.input("sign", np.concatenate([signs, still]), axes)  # [1, d_head]
    sin = g.block("sin", ops.signed_sine, position, frequency, sign, factor)
    return cos, sin  # each [n_tokens, d_head]


def of_pairs(first: np.ndarray, second: np.ndarray, neighbours: bool) -> np.ndarray:
    """One value for the first and one for the second feature of every pair, in the features'
    order."""
    both = np.stack([first, second])  # [2, d_rotary / 2]
    return (both.T if neighbours else both).ravel()  # [d_rotary]


def rotate(h: Forward, name: str, x: Block, turn: tuple[Block, Block]) -> Block:
    """Queries or keys rotated by their positions' angles: [n_tokens, d_head]."""
    spec = h.spec
    apart = 1 if spec.rope_neighbours else spec.rotary // 2
    return h.block(name, ops.rotate, x, x, *turn, pair=(apart, spec.rotary))


class OfAllHeads(NamedTuple):
    """Blocks that all heads of a layer share, each [1, 1]."""

    scale: Block  # what scores are multiplied by
    switch: Block  # 1; 0 silences every head
    cap: Block | None  # what scores stay within; None: any score


def of_all_heads(attn: Forward, cap: float | None = None, by: float = 1.0) -> OfAllHeads:
    """Add the blocks that heads share. Scores are multiplied by 1 / sqrt(d_head), or as the spec
    says, and divided by `by`."""
    spec = attn.spec
    divisor = by * (sqrt(spec.d_head) if spec.sqrt_d_head is None else spec.sqrt_d_head)
    scale = attn.block("scale", ops.reciprocal, attn.input("sqrt_d_head", divisor))
    switch = attn.input("switch", 1.0)
    return OfAllHeads(scale, switch, None if cap is None else attn.input("cap", cap))


def stand_in(g: Forward, on: Block) -> Block | None:
    """The output of a part that is switched off: zero, or the average under mean ablation: [1,
    d_model].

    The average is a constant that `ablation.averages` measures; until then it is zero.
    """
    if not g.readout.by_head:
        return None
    average = g.input("average", np.zeros((1, g.spec.d_model)), ("", "d_model"))
    return g.block("off", ops.stand_in, average, on, g["mean_ablation"])


class Head(NamedTuple):
    """The blocks of a head, or of an expert, that its layer's output is computed from."""

    z: Block  # [n_tokens, d_head]; of an expert its hidden layer, [n_tokens, d_expert]
    W_O: Block  # [d_head, d_model]
    result: Block | None  # [n_tokens, d_model]; None: see `write_heads`


def attend(
    h: Forward,
    q: Block,
    k: Block,
    v: Block,
    layer: OfAllHeads,
    mask: Mask,
    places: Block | None = None,
    present: Block | None = None,
    n: int = 0,
    sink: Block | None = None,
    bias: Block | None = None,
    opened: Block | None = None,
) -> Head:
    """One head (Vaswani et al. 2017, section 3.2.1), up to the values weighted by its pattern.

    With ALiBi, `places` [n_tokens, n_heads] reduce scores with distance, by column n. `present`
    [n_tokens, 1] is 0 for tokens that nothing attends to (default: all are present). `sink` as in
    `softmax`; `bias` [queries, keys] is added to scores (see `distance`); `opened` [n_tokens,
    d_head] is what the weighted values are multiplied by. In cross attention k and v are of another
    sentence's tokens.
    """
    name = "of_content" if places or bias else "scores" if layer.cap is None else "uncapped"
    scores = h.block(name, ops.scores, q, k, layer.scale, present, mask=mask)  # [queries, keys]
    if layer.cap:
        scores = h.block("scores", ops.soft_cap, scores, layer.cap)  # [queries, keys]
    if places:
        scores = h.block("scores", ops.farther, scores, places, places, nth=n)  # [queries, keys]
    if bias:
        scores = h.block("scores", ops.biased, scores, bias)  # [queries, keys]
    pattern = softmax(h, scores, out=(h, "pattern"), sink=sink)  # [queries, keys]
    on = None
    if not h.readout.by_head:
        on = h.block("on", ops.in_effect, h.input("switch", 1.0), layer.switch)  # [1, 1]
    z = h.block("mixed" if opened else "z", ops.mix, pattern, v, on)  # [n_tokens, d_head]
    if opened:
        z = h.block("z", ops.gated, opened, z)  # [n_tokens, d_head]
    return write_head(h, z, layer.switch, on)


def write_head(h: Forward, z: Block, of_all: Block, on: Block | None = None) -> Head:
    """The output of a head, given z [n_tokens, d_head], unless its own switch or the switch
    `of_all` heads is off. If heads' outputs are not shown, `on` has already switched z."""
    W_O = h.weight("W_O", z.axes[1], "d_model")
    if on:
        return Head(z, W_O, None)
    on = h.block("on", ops.in_effect, h.input("switch", 1.0), of_all)  # [1, 1]
    return Head(z, W_O, h.block("result", ops.switched_linear, z, W_O, on, stand_in(h, on)))


def write_heads(b: Forward, heads: Sequence[Head], bias: bool) -> Block:
    """The output of attention: the sum of its heads' outputs, [n_tokens, d_model].

    If heads' own outputs (`result`) are not shown, they are summed in one step, and heads are
    switched off at z.
    """
    b_O = b.at("attn").weight("b_O", "d_model") if bias else None
    return sum_of(b, "attn_out", heads, b_O)


def sum_of(b: Forward, name: str, heads: Sequence[Head], bias: Block | None = None) -> Block:
    """The sum of the outputs of heads, or of experts: [n_tokens, d_model]."""
    results = [head.result for head in heads if head.result]
    if results:
        return b.block(name, ops.add, results, b=bias)
    zs, weights, _ = zip(*heads, strict=True)
    return b.block(name, ops.sum_of_heads, zs, weights, b=bias)


Norm = Callable[[Forward, Block, float], Block]
Sublayer = tuple[str, str, Callable[[Forward, Block], Block]]  # its norm, its sum, what it writes


def layers(g: Forward, stream: Sequence[Block], norm: Norm, sublayers: Sequence[Sublayer]) -> Block:
    """The stream after all layers, [n_tokens, d_model]. Each sublayer reads the stream and adds
    to it. Norms apply to its input or, with `norm_after`, to the sum."""
    spec = g.spec
    for layer in range(spec.n_layers):
        b = g.at(f"blocks.{layer}")
        x = b.block("resid_pre", ops.add, stream)  # [n_tokens, d_model]
        for ln, total, write in sublayers:
            read = x if spec.norm_after else norm(b.at(ln), x, spec.norm_eps)
            x = b.block(total, ops.add, [x, write(b, read)])  # [n_tokens, d_model]
            x = norm(b.at(ln), x, spec.norm_eps) if spec.norm_after else x
        stream = [x]
    return g.block("resid_final", ops.add, stream)  # [n_tokens, d_model]


def contract(b: Forward, post: Block, bias: bool) -> Block:
    """The output of the MLP: its hidden layer `post` times W_out."""
    mlp = b.at("mlp")
    W_out = mlp.weight("W_out", "d_mlp", "d_model")
    b_out = mlp.weight("b_out", "d_model") if bias else None
    on = mlp.input("switch", 1.0)
    return b.block("mlp_out", ops.switched_linear, post, W_out, on, stand_in(mlp, on), b_out)


def mlp(
    b: Forward,
    x: Block,
    bias: bool,
    gated: bool = False,
    by: float = 1.0,
    cut: Callable[[Forward, Block], Block] | None = None,
) -> Block:
    """An MLP: expand, apply the activation function, multiply if it is gated, contract: [n_tokens,
    d_model]. Before the activation function, the gate is multiplied `by` a number, or `cut`."""
    m, axes, act = b.at("mlp"), ("d_model", "d_mlp"), getattr(ops, b.spec.activation)
    if not gated:
        pre = linear(m, "pre", x, "in", axes, bias)  # [n_tokens, d_mlp]
        return contract(b, m.block("post", act, pre), bias)
    name = "gate" if by == 1 else "unscaled.gate"
    gate = times(m, "gate", linear(m, name, x, "gate", axes, bias), "gate", by)
    gate = cut(m, gate) if cut else gate  # as before
    pre = linear(m, "pre", x, "in", axes, bias)  # [n_tokens, d_mlp]
    return contract(b, m.block("post", ops.gated, m.block("act", act, gate), pre), bias)


def unembed(g: Forward, x: Block, W_E: Block, cap: float | None = None, bias: bool = False) -> None:
    """The final scores of the words for the stream: see `looked_at` and `rank_words`. A text's
    labels have neither a cap nor a bias."""
    if g.spec.gives == "class":
        g.input("attention_mask", np.ones((x.shape[0], 1)), ("token", ""))  # [n_tokens, 1]
        cap, bias = None, False
    rank_words(g, looked_at(g, x), W_E, cap, bias)


def looked_at(g: Forward, x: Block) -> Block:
    """The vectors to read out: of all tokens, or of the one at `position`."""
    if not g.readout.one_token:
        return x
    return g.block("last", ops.embed, g.input("position", x.shape[0] - 1, kind="ids"), x)


def rank_classes_of_tokens(g: Forward, x: Block, W_E: Block) -> None:
    """The logit of each label, for the chosen token or for all. For one token, `class_logits`
    also has each token's logits, without probabilities."""
    rank_words(g, looked_at(g, x), W_E, None, bias=True)
    if g.readout.one_token:
        g.block("class_logits", ops.linear, x, g["W_U"], g["b_U"])  # [n_tokens, d_vocab_out]


def rank_words(g: Forward, x: Block, W_E: Block, cap: float | None, bias: bool) -> None:
    """The logit of each word, or label, its dot product with x; then softmax with a
    temperature."""
    name = "logits" if cap is None else "uncapped"
    words = "vocab" if g.spec.d_vocab_out is None else "vocab_out"
    W_U = W_E if g.spec.tied else g.weight("W_U", x.axes[1], words)
    b_U = g.weight("b_U", words) if bias else None
    product = ops.linear_tied if g.spec.tied else ops.linear
    logits = g.block(name, product, x, W_U, b_U)  # [n_tokens, d_vocab]
    if cap is not None:
        logits = g.block("logits", ops.soft_cap, logits, g.input("logits.cap", cap))
    softmax(g.at("softmax"), logits, temperature=g.input("temperature", 1.0), out=(g, "probs"))
