"""Training the adder: Adam on fresh sums, in numpy, in two minutes.

There is one layer, so a token's query, key and value depend on its digit alone, and a score on two
digits and their distance: all scores that can occur are one small table. So the loss and its
gradient are written out for this case, each part with the way back through it; the graph's own
backward pass takes ten times as long. A test holds both to be equal.

A run with the same seed repeats the included weights bit for bit, on any processor: 20,000 steps turn
a last bit that is rounded otherwise into other weights, so nothing here is left to libraries whose
sums have another order on another processor (`@`, e^x, complex numbers). Sums, products, quotients
and roots are rounded alike everywhere. About every second start learns to add, which its loss tells
early; hence several.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from cellformer.engine.learning.recipe import Recipe
from cellformer.engine.learning.training import Progress
from cellformer.workbooks.adder import sums
from cellformer.workbooks.adder.sums import FIRST, LENGTH

D_MODEL, N_HEADS, D_HEAD, D_MLP = 4, 2, 4, 6
THETA = 3.0  # of rotary positions: at 10,000 the slower pair would hardly turn over 35 places
EPS = 1e-6
RECIPE = Recipe(
    steps=20_000, batch=32, embed_scale=1.0, learning_rate=0.01, warmup=500, betas=(0.9, 0.99),
    weight_decay=0.0, scale=0.5,
)  # fmt: skip
STARTS, TRIAL = 4, 3_000  # random starts, and the steps after which the best one is known
DECIMALS = 2  # of a trained weight, so that a sheet shows all of it
BASE, HEADS = len(sums.DIGITS), N_HEADS * D_HEAD
SHAPES = {  # of the weights, in the order in which they stand in one vector
    "W_E": (BASE, D_MODEL), "ln1": (D_MODEL,), "W_Q": (D_MODEL, HEADS), "W_K": (D_MODEL, D_HEAD),
    "W_V": (D_MODEL, D_HEAD), "q_norm": (D_HEAD,), "k_norm": (D_HEAD,), "W_O": (HEADS, D_MODEL),
    "ln2": (D_MODEL,), "W_gate": (D_MODEL, D_MLP), "W_in": (D_MODEL, D_MLP),
    "W_out": (D_MLP, D_MODEL), "ln_final": (D_MODEL,),
}  # fmt: skip
SIZES = [int(np.prod(shape)) for shape in SHAPES.values()]
N_SCORES = BASE * BASE * LENGTH  # of a head: digit that looks, digit looked at, distance
ANGLES = np.outer(np.arange(LENGTH), THETA ** (-np.arange(0, D_HEAD, 2) / D_HEAD))
COS, SIN = np.cos(ANGLES).round(12), np.sin(ANGLES).round(12)  # [distances, D_HEAD / 2]
LN_2 = 0.6931471805599453
SERIES = [1 / math.factorial(k) for k in range(13, -1, -1)]  # of e^x, as Horner takes it

Array = np.ndarray
Back = Callable[
    [Array], tuple[Array, ...]
]  # from the gradient of a result to those of what it is of


def learn(seed: int, steps: int) -> Iterator[Progress | Array]:
    """Each step's progress and, last, the trained weights as one vector. Of several starts, the one
    of least loss after a trial is trained to the end."""
    rng = np.random.default_rng(seed)
    runs, trial = [Run(rng, steps) for _ in range(STARTS)], min(TRIAL, steps)
    total = steps + (STARTS - 1) * trial
    tried = [run for run in runs for _ in range(trial)]
    yield from (run.step(done, total) for done, run in enumerate(tried))
    best = min(runs, key=lambda run: np.mean(run.losses[-trial // 2 :]))
    yield from (best.step(done, total) for done in range(len(tried), total))
    yield best.vector.round(DECIMALS)


class Run:
    """Weights in training, from one start."""

    def __init__(self, rng: np.random.Generator, steps: int) -> None:
        self.recipe, self.rng, self.vector = replace(RECIPE, steps=steps), rng, initial(rng)
        self.velocity, self.second = np.zeros_like(self.vector), np.zeros_like(self.vector)
        self.losses: list[float] = []  # of its steps

    def step(self, done: int, total: int) -> Progress:
        """Make a step of Adam (Kingma & Ba 2015) on fresh sums; `done` of the `total` steps of
        all runs came before."""
        recipe, (kept, usual), n = self.recipe, self.recipe.betas, len(self.losses)
        ids = sums.drawn(self.rng, recipe.batch)
        loss, gradient = loss_and_gradient(self.vector, Batch(ids))
        gradient *= min(1.0, recipe.clip / np.sqrt((gradient * gradient).sum()))
        self.velocity += (1 - kept) * (gradient - self.velocity)
        self.second += (1 - usual) * (gradient * gradient - self.second)
        mean, size = self.velocity / (1 - kept ** (n + 1)), self.second / (1 - usual ** (n + 1))
        self.vector -= recipe.rate(n) * mean / (np.sqrt(size) + 1e-8)
        self.losses.append(loss)
        return Progress(done, total, loss, ids, parts(self.vector))


def initial(rng: np.random.Generator) -> Array:
    """Random matrices, and gains of 1: the weights before the first step."""
    vector = rng.normal(0, RECIPE.scale, sum(SIZES))
    for name, w in parts(vector).items():
        if w.ndim == 1:
            w[:] = 1
        elif name == "W_E":
            w *= RECIPE.embed_scale / RECIPE.scale
    return vector


def parts(vector: Array) -> dict[str, Array]:
    """The weights by name, as views of one vector."""
    cut = np.split(vector, np.cumsum(SIZES)[:-1])
    return {name: x.reshape(s) for (name, s), x in zip(SHAPES.items(), cut, strict=True)}


class Batch:
    """Sums, and where the scores of their digits stand in the table."""

    def __init__(self, ids: Array) -> None:
        self.ids, self.written = ids[:, :-1], ids[:, FIRST + 1 :]  # [n, 34], [n, 11]
        self.last = self.ids[:, FIRST:]  # [n, 11], the tokens after which a digit is written
        looks, at = np.arange(FIRST, LENGTH - 1)[:, None], np.arange(LENGTH - 1)
        pair = self.last[:, :, None] * BASE + self.ids[:, None, :]  # [n, 11, 34]
        self.score = np.where(at <= looks, pair * LENGTH + looks - at, N_SCORES)  # the last is none


def loss_and_gradient(vector: Array, batch: Batch) -> tuple[float, Array]:
    """The mean loss of the written digits in nats, and its gradient."""
    w, g = parts(vector), parts(np.zeros_like(vector))
    W_E = w["W_E"]
    h, back_h = normed(W_E, w["ln1"])  # [digits, d_model]
    (q, back_q), (k, back_k), (v, back_v) = (linear(h, w[f"W_{x}"]) for x in "QKV")
    q, back_nq = normed(q.reshape(BASE, N_HEADS, D_HEAD), w["q_norm"])
    k, back_nk = normed(k, w["k_norm"])
    z, back_z = attend(q, k, v, batch)  # [n, 11, n_heads * d_head]
    wrote, back_O = linear(z, w["W_O"])
    mid = W_E[batch.last] + wrote  # [n, 11, d_model]
    y, back_y = normed(mid, w["ln2"])
    (gate, back_gate), (pre, back_in) = (linear(y, w[f"W_{x}"]) for x in ("gate", "in"))
    post, back_post = gated(gate, pre)  # [n, 11, d_mlp]
    wrote, back_out = linear(post, w["W_out"])
    final, back_final = normed(mid + wrote, w["ln_final"])
    logits, back_logits = linear(final, W_E.T)
    loss, d_logits = surprise(logits, batch.written)

    d_final, d_words = back_logits(d_logits)
    d_end, g["ln_final"][:] = back_final(d_final)
    d_post, g["W_out"][:] = back_out(d_end)
    d_gate, d_pre = back_post(d_post)
    (d_y, g["W_gate"][:]), (more, g["W_in"][:]) = back_gate(d_gate), back_in(d_pre)
    d_mid, g["ln2"][:] = back_y(d_y + more)
    d_mid += d_end
    d_z, g["W_O"][:] = back_O(d_mid)
    d_q, d_k, d_v = back_z(d_z)
    d_q, g["q_norm"][:] = back_nq(d_q)
    d_k, g["k_norm"][:] = back_nk(d_k)
    d_h = np.zeros_like(h)
    for name, back, grad in (("W_Q", back_q, d_q), ("W_K", back_k, d_k), ("W_V", back_v, d_v)):
        more, g[name][:] = back(grad.reshape(BASE, -1))
        d_h = d_h + more
    d_E, g["ln1"][:] = back_h(d_h)
    g["W_E"][:] = d_E + d_words.T + by_digit(batch.last, d_mid)
    return loss, np.concatenate([g[name].ravel() for name in SHAPES])


def normed(x: Array, gain: Array) -> tuple[Array, Back]:
    """RMSNorm (Zhang & Sennrich 2019)."""
    scale = np.sqrt((x * x).mean(-1, keepdims=True) + EPS)
    y = x / scale

    def back(grad: Array) -> tuple[Array, ...]:
        own = grad * gain
        return (own - y * (own * y).mean(-1, keepdims=True)) / scale, flat(grad * y).sum(0)

    return y * gain, back


def linear(x: Array, W: Array) -> tuple[Array, Back]:
    """x W"""
    return product(x, W), lambda grad: (product(grad, W.T), outer(flat(x), flat(grad)).sum(0))


def gated(gate: Array, x: Array) -> tuple[Array, Back]:
    """SiLU of the gate, times x (Shazeer 2020, "GLU Variants Improve Transformer")."""
    share = 1 / (1 + exp(-gate))
    opened = gate * share
    return opened * x, lambda grad: (grad * x * (share + opened * (1 - share)), grad * opened)


def attend(q: Array, k: Array, v: Array, batch: Batch) -> tuple[Array, Back]:
    """Attention with rotary positions (Su et al. 2021) of the digits' queries [digits, n_heads,
    d_head], keys and values [digits, d_head]: [n, 11, n_heads * d_head].

    The two halves of a query or key are the two coordinates of points, which turn with the
    distance.
    """
    n, half, root = len(batch.ids), D_HEAD // 2, math.sqrt(D_HEAD)
    (q1, q2), (k1, k2) = ((x[..., :half], x[..., half:]) for x in (q, k))
    near = q1[:, :, None] * k1 + q2[:, :, None] * k2  # [digits, n_heads, digits, half]
    far = q1[:, :, None] * k2 - q2[:, :, None] * k1
    scores = product(near, COS.T) + product(far, SIN.T)  # [digits, n_heads, digits, distances]
    scores = scores.transpose(1, 0, 2, 3) / root
    table = np.zeros((N_HEADS, N_SCORES + 1))  # exponentials; 0 for what comes later
    table[:, :-1] = exp(scores - scores.max()).reshape(N_HEADS, -1)
    pattern = table[:, batch.score].transpose(1, 0, 2, 3).reshape(n, -1, LENGTH - 1)
    pattern /= pattern.sum(-1, keepdims=True)  # [n, n_heads * 11, 34]
    values = v[batch.ids]  # [n, 34, d_head]
    z = mixed(pattern, values)

    def back(grad: Array) -> tuple[Array, ...]:
        d_z = heads_apart(grad)
        d_v = by_digit(batch.ids, mixed(pattern.transpose(0, 2, 1), d_z))
        along = product(d_z, values.transpose(0, 2, 1)) - (d_z * z).sum(-1, keepdims=True)
        shares = (pattern * along).reshape(n, N_HEADS, -1).transpose(1, 0, 2)
        where = batch.score.ravel()
        found = [np.bincount(where, x.ravel(), N_SCORES + 1)[:-1] for x in shares]
        d_scores = np.reshape(found, scores.shape).transpose(1, 0, 2, 3) / root
        d_near, d_far = product(d_scores, COS), product(d_scores, SIN)
        d_q = d_near * k1 + d_far * k2, d_near * k2 - d_far * k1
        at = slice(None), slice(None), None  # of digits that look, for each digit looked at
        d_k = d_near * q1[at] - d_far * q2[at], d_near * q2[at] + d_far * q1[at]
        return (
            np.concatenate([x.sum(2) for x in d_q], -1),
            np.concatenate([x.sum((0, 1)) for x in d_k], -1),
            d_v,
        )

    return z.reshape(n, N_HEADS, -1, D_HEAD).transpose(0, 2, 1, 3).reshape(n, -1, HEADS), back


def heads_apart(x: Array) -> Array:
    """[n, 11, n_heads * d_head] as [n, n_heads * 11, d_head]."""
    n = len(x)
    return x.reshape(n, -1, N_HEADS, D_HEAD).transpose(0, 2, 1, 3).reshape(n, -1, D_HEAD)


def surprise(logits: Array, ids: Array) -> tuple[float, Array]:
    """The mean cross-entropy of the digits that follow, and its gradient."""
    logits = logits - logits.max(-1, keepdims=True)
    exps = exp(logits)
    totals = exps.sum(-1, keepdims=True)
    one = np.eye(BASE)[ids]  # [n, 11, digits]
    loss = (np.log(totals[..., 0]) - (logits * one).sum(-1)).mean()
    return float(loss), (exps / totals - one) / ids.size


def by_digit(ids: Array, x: Array) -> Array:
    """The sum of the vectors of each digit: [digits, ...]."""
    found: Array = np.zeros((BASE, x.shape[-1]))
    for k, column in enumerate(flat(x).T):
        found[:, k] = np.bincount(ids.ravel(), column, BASE)
    return found


def flat(x: Array) -> Array:
    """Vectors as the rows of one matrix."""
    return x.reshape(-1, x.shape[-1])


# --- rounded alike by every processor ------------------------------------------------------------


def product(x: Array, W: Array) -> Array:
    """x W, summed over the columns of x one after another; W [..., n, m] may have x's axes."""
    found: Array = x[..., :1] * W[..., :1, :]
    for k in range(1, x.shape[-1]):
        found += x[..., k : k + 1] * W[..., k : k + 1, :]
    return found


def mixed(shares: Array, vectors: Array) -> Array:
    """The same over many columns: [n, a, b] and [n, b, d] give [n, a, d]."""
    return np.asarray((shares[..., None] * vectors[:, None]).sum(2))


def outer(x: Array, y: Array) -> Array:
    """The outer product of the rows of two arrays: [n, a] and [n, b] give [n, a, b]."""
    return np.asarray(x[:, :, None] * y[:, None, :])


def exp(x: Array) -> Array:
    """e^x: 2 to a whole power, times the series of the remainder, which is at most ln 2 / 2."""
    whole = np.rint(x / LN_2)
    rest = x - whole * LN_2
    found = np.full_like(rest, SERIES[0])
    for term in SERIES[1:]:
        found = found * rest + term
    return np.asarray(np.ldexp(found, whole.astype(int)))
