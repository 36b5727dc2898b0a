"""Every operation of the forward pass, written once: one cell of the output each (see `cells.op`).

Parameters are what the cell reads, subscripts say which cells of it (the codes are in
`cells.access`), and `m` has the primitives.
"""

from math import inf

from engine.cells.op import op

# --- embedding and residual stream --------------------------------------------------------


@op(ids="i,0", table="?,j")
def embed(m, ids, table):
    return m.lookup(table, ids)


@op(xs="i,j", b="0,j", many="xs")
def add(m, xs, b=None):
    total = xs[0]
    for x in xs[1:]:
        total = total + x
    return total if b is None else total + b


@op(x="i,j", length="0,0")
def stretch(m, x, length):
    return x * length


# --- switches: what a head or an MLP writes, or something else in its place --------------------


@op(own="i,j", shared="i,j")
def both(m, own, shared):
    return own * shared


@op(average="i,j", on="0,0", mean_ablation="0,0")
def instead(m, average, on, mean_ablation):
    return average * ((1 - on) * mean_ablation)


@op(x="i,:", w=":,j", on="0,0", off="0,j", b="0,j")
def write(m, x, w, on, off=None, b=None):
    """A share of the residual stream: none of its own while `on` is 0."""
    own = (m.dot(x, w) if b is None else m.dot(x, w) + b) * on
    return own if off is None else own + off


@op(zs="i,:", ws=":,j", b="0,j", many="zs ws")
def write_heads(m, zs, ws, b=None):
    """What all heads together write."""
    shares = [m.dot(z, w) for z, w in zip(zs, ws, strict=True)]
    total = shares[0]
    for share in shares[1:]:
        total = total + share
    return total if b is None else total + b


# --- linear maps --------------------------------------------------------------------------


@op(x="i,:", w=":,j", b="0,j")
def linear(m, x, w, b=None):
    return m.dot(x, w) if b is None else m.dot(x, w) + b


@op(x="i,:", w="j,:", b="0,j")
def linear_tied(m, x, w, b=None):
    """The unembedding with tied weights: each word's row of the embedding is its column."""
    return m.dot(x, w) if b is None else m.dot(x, w) + b


# --- LayerNorm (Ba et al. 2016) -----------------------------------------------------------


@op(x="i,:")
def mean(m, x):
    return m.mean(x)


@op(x="i,:", eps="0,0")
def deviation(m, x, eps):
    return m.sqrt(m.varp(x) + eps)


@op(x="i,j", mean="i,0", scale="i,0")
def normalize(m, x, mean, scale):
    return (x - mean) / scale


@op(x="i,j", w="0,j", b="0,j")
def affine(m, x, w, b=None):
    return x * w if b is None else x * w + b


# --- RMSNorm (Zhang & Sennrich 2019) --------------------------------------------------------


@op(x="i,:", eps="0,0")
def root_mean_square(m, x, eps):
    return m.sqrt(m.dot(x, x) / m.count(x) + eps)


@op(x="i,j", by="i,0")
def divide_rows(m, x, by):
    return x / by


@op(x="i,j", w="0,j")
def gain_above_one(m, x, w):
    return x * (1 + w)


# --- rotary positions (Su et al. 2021, section 3.2.2) -------------------------------------------


@op(position="i,0", frequency="0,j")
def cosine(m, position, frequency):
    return m.cos(position * frequency)


@op(position="i,0", frequency="0,j", sign="0,j")
def signed_sine(m, position, frequency, sign):
    return m.sin(position * frequency) * sign


@op(x="i,j", partner="i,~", cos="i,j", sin="i,j")
def rotate(m, x, partner, cos, sin):
    return x * cos + partner * sin


# --- attention (Vaswani et al. 2017, section 3.2.1) ---------------------------------------


@op(x="i,j")
def reciprocal(m, x):
    return 1 / x


@op(q="i,:", k="j,:", scale="0,0", out="i,≤i", blank=-inf)
def scores(m, q, k, scale):
    return m.dot(q, k) * scale


@op(pattern="i,≤i", v="≤i,j", on="0,0")
def mix(m, pattern, v, on=None):
    return m.dot(pattern, v) if on is None else m.dot(pattern, v) * on


@op(x="i,j", cap="0,0", out="i,≤i", blank=-inf)
def soft_cap(m, x, cap):
    """Scores that stay between -cap and cap (Gemma Team 2024, section 2)."""
    return m.tanh(x / cap) * cap


# --- softmax: of scores over the keys seen, of logits over the vocabulary -------------------


@op(x="i,≤i")
def row_max(m, x):
    return m.max(x)


@op(x="i,j", top="i,0", temperature="0,0", out="i,≤i")
def exp(m, x, top, temperature=None):
    return m.exp(x - top) if temperature is None else m.exp((x - top) / temperature)


@op(x="i,≤i")
def row_sum(m, x):
    return m.sum(x)


@op(x="i,j", total="i,0", out="i,≤i")
def share(m, x, total):
    return x / total


# --- reading the residual stream: what of it points a word's way ----------------------------------


@op(ids="i,0", table="j,?")
def column(m, ids, table):
    return m.lookup(table, ids)


@op(x="i,j", mean="i,0")
def centre(m, x, mean):
    return x - mean


@op(x="i,:", direction="j,:", by="i,0")
def credit(m, x, direction, by=None):
    return m.dot(x, direction) if by is None else m.dot(x, direction) / by


@op(x="0,:", direction="j,:", by="i,0")
def credit_of_bias(m, x, direction, by):
    return m.dot(x, direction) / by


@op(score="i,0", cap="0,0")
def capped_by(m, score, cap):
    """How many times larger a score is than capped: a / tanh(a), which is 1 for a score of 0."""
    size = m.maximum(m.sqrt(score * score) / cap, 1e-9)
    return size / m.tanh(size)


@op(x="0,0", by="i,0")
def over(m, x, by=None):
    return x if by is None else x / by


# --- activations --------------------------------------------------------------------------


@op(x="i,j")
def relu(m, x):
    return m.maximum(x, 0)


@op(x="i,j")
def gelu(m, x):
    """GELU (Hendrycks & Gimpel 2016, section 2); 0.70710... is 1 / sqrt(2)."""
    return 0.5 * x * (1 + m.erf(x * 0.7071067811865476))


@op(x="i,j")
def silu(m, x):
    """x times the logistic function of x, through tanh, which never overflows."""
    return x * (0.5 + 0.5 * m.tanh(0.5 * x))


@op(x="i,j")
def gelu_tanh(m, x):
    """GELU, tanh form (Hendrycks & Gimpel 2016, section 2); 0.79788... is sqrt(2 / pi)."""
    return 0.5 * x * (1 + m.tanh(0.7978845608028654 * (x + 0.044715 * (x * x * x))))


@op(gate="i,j", x="i,j")
def gated(m, gate, x):
    """Shazeer 2020, section 2: the gate opens or closes each hidden cell."""
    return gate * x
