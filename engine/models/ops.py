"""Every operation of the forward pass, written once, as one cell of its output (see `cells.op`).

Parameters are the operands, subscripts say which of their cells are read (the codes are in
`cells.access`), `cells.functions` has the functions.
"""

from collections.abc import Sequence
from math import inf

from cellformer.engine.cells.expression import Held
from cellformer.engine.cells.functions import (
    AVERAGE,
    COS,
    ERF,
    EXP,
    IF,
    INT,
    LN,
    MAX,
    MIN,
    ORDER,
    ROUND,
    SIN,
    SQRT,
    SUM,
    SUMPRODUCT,
    TANH,
    VARP,
    count,
    lookup,
)
from cellformer.engine.cells.op import X, op

LARGEST_STRENGTH = 1000  # of a direction that is added, either way
LEAST_TAKEN, MOST_TAKEN = -1, 2  # of another sentence: beyond 0 and 1, where slopes are read
LOWEST = -1_000_000_000  # an exponent: its exponential is 0
COLDEST = 1e-6  # a temperature: at 0 the largest logit has it all, and nothing is divided by 0

# --- embedding and residual stream --------------------------------------------------------


@op(ids="i,0", table="?,j")
def embed(ids: X, table: X) -> X:
    return lookup(table, ids)


@op(ids="i,0", n="0,0")
def or_first(ids: X, n: X) -> X:
    """Ids below n; 0 for the others."""
    return IF(ids < n, ids, 0)


@op(level="i,j", factor="0,j", shift="0,j")
def scaled(level: X, factor: X, shift: X) -> X:
    """A pixel's brightness as the model reads it."""
    return level * factor + shift


@op(ids="i,0", patches="?,j", token="0,j", is_class="i,0")
def class_first(ids: X, patches: X, token: X, is_class: X) -> X:
    """The class token (1), and the patches (0) by their numbers (Devlin et al. 2019, section 3)."""
    return token * is_class + lookup(patches, ids) * (1 - is_class)


@op(xs="i,j", b="0,j", many="xs")
def add(xs: Sequence[X], b: X = None) -> X:
    total = xs[0]
    for x in xs[1:]:
        total = total + x
    return total if b is None else total + b


@op(x="i,j", length="0,0")
def stretch(x: X, length: X) -> X:
    return x * length


@op(direction="0,j", strength="0,0", where="i,0")
def push(direction: X, strength: X, where: X) -> X:
    """A direction times a strength, added at each token (Turner et al. 2023)."""
    return direction * (within(-LARGEST_STRENGTH, strength, LARGEST_STRENGTH) * where)


def within(low: float, typed: X, high: float) -> X:
    """A typed number, kept between two bounds. MIN ignores a blank cell, but not a sum with one."""
    return MAX(low, MIN(high, typed + 0))


# --- switches: what a head or an MLP writes, or something else in its place --------------------


@op(own="i,j", shared="i,j")
def in_effect(own: X, shared: X) -> X:
    return own * shared


@op(average="i,j", on="0,0", mean_ablation="0,0")
def stand_in(average: X, on: X, mean_ablation: X) -> X:
    return average * ((1 - on) * mean_ablation)


# --- a value of this sentence, or the other's (Vig et al. 2020, section 3) -----------


@op(x="i,j", other="i,j", take="i,0", part="0,j")
def patched(x: X, other: X, take: X, part: X = None) -> X:
    """The other sentence's row where `take` is 1; with `part`, only in its columns of 1."""
    taken = within(LEAST_TAKEN, take, MOST_TAKEN)
    return x + (other - x) * (taken if part is None else taken * part)


@op(x="i,j", other="i,j", take="i,0", out="i,≤i")
def patched_seen(x: X, other: X, take: X) -> X:
    """The same for scores and patterns, which have a cell for each key that a query sees."""
    return x + (other - x) * within(LEAST_TAKEN, take, MOST_TAKEN)


@op(x="i,:", w=":,j", on="0,0", off="0,j", b="0,j")
def switched_linear(x: X, w: X, on: X, off: X = None, b: X = None) -> X:
    """A share of the residual stream: none of its own while `on` is 0."""
    own = (SUMPRODUCT(x, w) if b is None else SUMPRODUCT(x, w) + b) * on
    return own if off is None else own + off


@op(zs="i,:", ws=":,j", b="0,j", many="zs ws")
def sum_of_heads(zs: Sequence[X], ws: Sequence[X], b: X = None) -> X:
    """The sum of all heads' outputs."""
    shares = [SUMPRODUCT(z, w) for z, w in zip(zs, ws, strict=True)]
    total = shares[0]
    for share in shares[1:]:
        total = total + share
    return total if b is None else total + b


# --- linear maps --------------------------------------------------------------------------


@op(x="i,:", w=":,j", b="0,j")
def linear(x: X, w: X, b: X = None) -> X:
    return SUMPRODUCT(x, w) if b is None else SUMPRODUCT(x, w) + b


@op(x="i,:", w="j,:", b="0,j")
def linear_tied(x: X, w: X, b: X = None) -> X:
    """The unembedding with tied weights: each word's row of the embedding is its column."""
    return SUMPRODUCT(x, w) if b is None else SUMPRODUCT(x, w) + b


# --- LayerNorm (Ba et al. 2016) -----------------------------------------------------------


@op(x="i,:")
def mean(x: X) -> X:
    return AVERAGE(x)


@op(x="i,:", eps="0,0")
def deviation(x: X, eps: X) -> X:
    return SQRT(VARP(x) + eps)


@op(x="i,j", mean="i,0", scale="i,0")
def normalize(x: X, mean: X, scale: X) -> X:
    return (x - mean) / scale


@op(x="i,j", w="0,j", b="0,j")
def affine(x: X, w: X, b: X = None) -> X:
    return x * w if b is None else x * w + b


@op(xs="i,j", shares="i,@#", own="i,j", many="xs shares")
def plus_shares(xs: Sequence[X], shares: Sequence[X], own: X) -> X:
    """A part of the stream, plus a share of each (Baykal et al. 2023, section 3)."""
    total = own
    for x, share in zip(xs, shares, strict=True):
        total = total + x * share
    return total


@op(x="i,j", found="i,j", expected="i,j", share="i,@")
def moved(x: X, found: X, expected: X, share: X) -> X:
    """A part of the stream, moved as far as another is not as expected, and a share more."""
    return x + (found - expected) * (1 + share)


@op(x="i,j", mean="i,0", size="i,0", far="0,0")
def above(x: X, mean: X, size: X, far: X) -> X:
    """The distance of x above a bound, a number of deviations from the mean; 0 below the bound."""
    return MAX(0, x - (mean + size * far))


# --- RMSNorm (Zhang & Sennrich 2019) --------------------------------------------------------


@op(x="i,:", eps="0,0")
def root_mean_square(x: X, eps: X) -> X:
    return SQRT(SUMPRODUCT(x, x) / count(x) + eps)


@op(xs="i,:", eps="0,0", many="xs")
def root_mean_square_of_all(xs: Sequence[X], eps: X) -> X:
    """The root mean square over the features of several blocks of equal width."""
    total = SUMPRODUCT(xs[0], xs[0])
    for x in xs[1:]:
        total = total + SUMPRODUCT(x, x)
    return SQRT(total / (count(xs[0]) * len(xs)) + eps)


@op(x="i,j", by="i,0")
def divide_rows(x: X, by: X) -> X:
    return x / by


@op(x="i,j", w="0,j", b="0,j")
def gain_above_one(x: X, w: X, b: X = None) -> X:
    return x * (1 + w) if b is None else x * (1 + w) + b


# --- rotary positions (Su et al. 2021, section 3.2.2) -------------------------------------------


@op(position="i,0", frequency="0,j", factor="0,j")
def cosine(position: X, frequency: X, factor: X = None) -> X:
    cos = COS(position * frequency)
    return cos if factor is None else cos * factor


@op(position="i,0", frequency="0,j", sign="0,j", factor="0,j")
def signed_sine(position: X, frequency: X, sign: X, factor: X = None) -> X:
    sin = SIN(position * frequency) * sign
    return sin if factor is None else sin * factor


@op(x="i,j", partner="i,~", cos="i,j", sin="i,j")
def rotate(x: X, partner: X, cos: X, sin: X) -> X:
    return x * cos + partner * sin


# --- attention (Vaswani et al. 2017, section 3.2.1) ---------------------------------------


@op(x="i,j")
def reciprocal(x: X) -> X:
    return 1 / x


@op(q="i,:", k="j,:", scale="0,0", present="j,0", out="i,≤i", blank=-inf)
def scores(q: X, k: X, scale: X, present: X = None) -> X:
    found = SUMPRODUCT(q, k) * scale
    return found if present is None else or_far_below(found, present)


def or_far_below(x: X, present: X) -> X:
    """x for a present token (1); -10000 for an absent one (0), because its exponential is 0."""
    return x * present + (present - 1) * 10000


@op(x="i,j", bound="0,0")
def bounded(x: X, bound: X) -> X:
    """x, from -bound to bound (MosaicML 2023: clip_qkv)."""
    return MAX(0 - bound, MIN(bound, x))


@op(position="i,0", beta="0,0", length="0,0")
def growth(position: X, beta: X, length: X) -> X:
    """The factor of queries (Meta 2025, Llama 4): 1 within the length of training, then more, so
    that a long text does not level the pattern."""
    return 1 + beta * LN(1 + Held(INT(position / length)))


@op(x="i,j", by="i,0")
def times_rows(x: X, by: X) -> X:
    return x * by


@op(position="i,0", slope="0,j")
def place(position: X, slope: X) -> X:
    return position * slope


@op(x="i,j", query="i,@", key="j,@", out="i,≤i", blank=-inf)
def farther(x: X, query: X, key: X) -> X:
    """Scores that fall with distance (Press et al. 2022, section 3), in the n-th head."""
    return x - (query - key)


@op(bucket="i,j", table="?,@", out="i,≤i")
def of_bucket(bucket: X, table: X) -> X:
    """The bias of the n-th head for the bucket that a distance is in."""
    return lookup(table, bucket)


@op(bucket="i,j", of_query="i,?", of_key="j,?", out="i,≤i")
def of_distance(bucket: X, of_query: X = None, of_key: X = None) -> X:
    """The match of the query with the distance, plus that of the key (He et al. 2021, "DeBERTa",
    section 3.1)."""
    found = [lookup(match, bucket) for match in (of_query, of_key) if match is not None]
    return found[0] if len(found) == 1 else found[0] + found[1]


@op(x="i,j", bias="i,j", out="i,≤i", blank=-inf)
def biased(x: X, bias: X) -> X:
    """Scores with a bias by distance (Raffel et al. 2020, section 2.1)."""
    return x + bias


@op(pattern="i,≤i", v="≤i,j", on="0,0")
def mix(pattern: X, v: X, on: X = None) -> X:
    return SUMPRODUCT(pattern, v) if on is None else SUMPRODUCT(pattern, v) * on


@op(x="i,j", cap="0,0", out="i,≤i", blank=-inf)
def soft_cap(x: X, cap: X) -> X:
    """Scores that stay between -cap and cap (Gemma Team 2024, section 2)."""
    return TANH(x / cap) * cap


# --- softmax: of scores over the keys seen, of logits over the vocabulary -------------------


@op(x="i,≤i", sink="0,0")
def row_max(x: X, sink: X = None) -> X:
    return MAX(x) if sink is None else MAX(MAX(x), sink)


@op(x="i,j", top="i,0", temperature="0,0", out="i,≤i")
def exp(x: X, top: X, temperature: X = None) -> X:
    """The top keeps it from overflowing, and cancels: so it counts as a constant."""
    below = x - Held(top)
    if temperature is None:
        return EXP(below)
    return EXP(below / MAX(temperature, COLDEST))


@op(x="i,≤i", sink="0,0", top="i,0")
def row_sum(x: X, sink: X = None, top: X = None) -> X:
    """With a sink (Xiao et al. 2024), a score that belongs to no token: it takes a share of all."""
    return SUM(x) if sink is None else SUM(x) + EXP(sink - Held(top))


@op(x="i,j", total="i,0", out="i,≤i")
def fraction(x: X, total: X) -> X:
    return x / total


# --- masked tokens without a vector (Lin et al. 2023, supplement A.1) ---------------------------


@op(masked=":,0", present=":,0", share="0,0")
def compensation(masked: X, present: X, share: X) -> X:
    """The factor of the vectors of unmasked tokens. It keeps as much of them in the text as the
    `share` of training."""
    return share * SUM(present) / MAX(SUM(present) - SUM(masked), 1)


@op(x="i,j", masked="i,0", by="0,0")
def unmasked(x: X, masked: X, by: X) -> X:
    return x * (1 - masked) * by


# --- one vector of all tokens (Reimers & Gurevych 2019, section 3) ------------------------------


@op(x="i,0", all=":,0")
def part_of_all(x: X, all: X) -> X:
    """The weight of each token in the mean."""
    return x / SUM(all)


@op(all=":,0")
def last_place(all: X) -> X:
    """The place of the last token, from 0: empty ones stand behind it."""
    return SUM(all) - 1


@op(x="i,0", all=":,0")
def part_of_root(x: X, all: X) -> X:
    """The same over the root of how many there are."""
    return x / SQRT(SUM(all))


@op(x=":,j", part=":,0")
def pooled(x: X, part: X) -> X:
    return SUMPRODUCT(x, part)


@op(x="i,j", present="i,0")
def present_alone(x: X, present: X) -> X:
    """The vectors, very low for empty positions, so that these are never the maximum."""
    return or_far_below(x, present)


@op(x=":,0")
def total(x: X) -> X:
    return SUM(x)


@op(x=":,j")
def largest(x: X) -> X:
    return MAX(x)


@op(x="i,:")
def length(x: X) -> X:
    return MAX(SQRT(SUMPRODUCT(x, x)), 1e-12)


@op(x="i,:", y="j,:", x_length="i,0", y_length="j,0")
def cosine_of_angle(x: X, y: X, x_length: X, y_length: X) -> X:
    """1 for vectors that point the same way, 0 at right angles, -1 for opposite ones."""
    return SUMPRODUCT(x, y) / (x_length * y_length)


# --- reading the residual stream: what of it points a word's way ----------------------------------


@op(ids="i,0", table="j,?")
def column(ids: X, table: X) -> X:
    return lookup(table, ids)


@op(x="i,j")
def same(x: X) -> X:
    return x


@op(x="j,i")
def transposed(x: X) -> X:
    return x


@op(x="i,j", mean="i,0")
def centre(x: X, mean: X) -> X:
    return x - mean


@op(x="i,:", direction="j,:", by="i,0")
def credit(x: X, direction: X, by: X = None) -> X:
    return SUMPRODUCT(x, direction) if by is None else SUMPRODUCT(x, direction) / by


@op(x="0,:", direction="j,:", by="i,0")
def credit_of_bias(x: X, direction: X, by: X) -> X:
    return SUMPRODUCT(x, direction) / by


@op(x="i,:", direction="i,:", by="i,0")
def credit_of_token(x: X, direction: X, by: X = None) -> X:
    """The credit if each token has its own direction."""
    return SUMPRODUCT(x, direction) if by is None else SUMPRODUCT(x, direction) / by


@op(x="0,:", direction="i,:", by="i,0")
def credit_of_bias_of_token(x: X, direction: X, by: X = None) -> X:
    return SUMPRODUCT(x, direction) if by is None else SUMPRODUCT(x, direction) / by


@op(x="i,:", own="i,:", direction="j,:", by="i,0")
def credit_of_change(x: X, own: X, direction: X, by: X = None) -> X:
    """The credit of the change that a patch makes: the credit of x, less the credit of its own
    value."""
    found = SUMPRODUCT(x, direction) - SUMPRODUCT(own, direction)
    return found if by is None else found / by


@op(x="i,:", own="i,:", direction="i,:", by="i,0")
def credit_of_change_of_token(x: X, own: X, direction: X, by: X = None) -> X:
    """The same if each token has its own direction."""
    return credit_of_change.function(x, own, direction, by)


@op(direction="0,j", x="i,j", y="i,j")
def direction_before(direction: X, x: X, y: X) -> X:
    """A direction after x became y, as one before: multiplied by the ratio of the two."""
    return direction * y * x / MAX(x * x, 1e-24)


@op(score="i,0", cap="0,0")
def capped_by(score: X, cap: X) -> X:
    """The ratio of a score to its capped value: a / tanh(a), which is 1 for a score of 0."""
    size = MAX(SQRT(score * score) / cap, 1e-9)
    return size / TANH(size)


@op(x="0,0", by="i,0")
def over(x: X, by: X = None) -> X:
    return x if by is None else x / by


# --- objectives: what a gradient is taken of ----------------------------------------------------


@op(x="i,j", y="i,j")
def less(x: X, y: X) -> X:
    return x - y


@op(ids="i,0", number="0,j")
def is_number(ids: X, number: X) -> X:
    return IF(ids == number, 1, 0)


@op(x="i,:", chosen="i,:")
def along(x: X, chosen: X) -> X:
    """Each token's own product: of a row with 1 where a word is chosen, that word's entry."""
    return SUMPRODUCT(x, chosen)


@op(score="i,0", top="i,0", total="i,0")
def surprise(score: X, top: X, total: X) -> X:
    """Cross-entropy: minus the logarithm of a score's softmax probability."""
    return LN(total) - (score - Held(top))


# --- experts (Shazeer et al. 2017, section 2.1): which of them work at a token, and how much ------


@op(x="i,j", xs="i,:", number="0,j", numbers="0,:")
def rank(x: X, xs: X, number: X, numbers: X) -> X:
    """The number of entries before one: larger ones, and equal ones with smaller numbers."""
    return ORDER(x, xs, number, numbers)


@op(x="i,j", rank="i,j", k="0,0")
def first_k(x: X, rank: X, k: X) -> X:
    return x * IF(rank < MAX(k, 1), 1, 0)


@op(rank="i,j", k="0,0")
def is_first(rank: X, k: X) -> X:
    """1 for the first k, 0 for others."""
    return IF(rank < MAX(k, 1), 1, 0)


@op(x="i,j", open="i,j")
def open_alone(x: X, open: X) -> X:
    """Scores of experts in chosen groups (1); very low elsewhere, so that these come last."""
    return or_far_below(x, open)


@op(x="i,j", rank="i,j", place="0,0")
def not_before(x: X, rank: X, place: X) -> X:
    """Scores of the experts from a place on; very low for experts that were chosen before."""
    return or_far_below(x, IF(rank < place, 0, 1))


@op(x="i,j", best="i,0", reach="0,0")
def near(x: X, best: X, reach: X) -> X:
    """1 for scores that are hardly below the best, measured by the larger of both (Liu et al. 2024,
    "GRIN", section 2.2)."""
    return IF(reach * MAX(x, 0 - x, best) < best - x, 0, 1)


@op(x="i,j", rank="i,j", place="0,0")
def at_place(x: X, rank: X, place: X) -> X:
    return x * IF(rank == place, 1, 0)


@op(x="i,j")
def logistic(x: X) -> X:
    """1 / (1 + exp(-x)), through tanh, which never overflows."""
    return 0.5 + 0.5 * TANH(0.5 * x)


@op(gate="i,j", x="i,j", share="i,@", on="0,0")
def gated_share(gate: X, share: X, x: X = None, on: X = None) -> X:
    """An expert's hidden layer, times the expert's share: 0 where it was not chosen. Without a
    gate, x is left out."""
    hidden = gate * share if x is None else gate * x * share
    return hidden if on is None else hidden * on


@op(x="i,j", share="i,@")
def times_share(x: X, share: X) -> X:
    """An expert's gate, if its share multiplies what it reads (Meta 2025, Llama 4)."""
    return x * share


@op(x="i,j", alpha="0,0", limit="0,0")
def swish_below(x: X, alpha: X, limit: X) -> X:
    """x, at most the limit, times the logistic function of alpha x (OpenAI 2025, gpt-oss)."""
    low = MIN(limit, x)
    return low * (0.5 + 0.5 * TANH(0.5 * alpha * low))


@op(gate="i,j", x="i,j", share="i,@", limit="0,0", on="0,0")
def gated_share_of_next(gate: X, x: X, share: X, limit: X, on: X = None) -> X:
    """The gated share of 1 + x, with x from -limit to limit."""
    hidden = gate * (1 + MAX(0 - limit, MIN(limit, x))) * share
    return hidden if on is None else hidden * on


# --- recurrence: a row reads the row before it ---------------------------------------------------


@op(xs="i-#,j", ws="@#,j", b="0,j", many="xs ws")
def convolution(xs: Sequence[X], ws: Sequence[X], b: X = None) -> X:
    """A weighted sum of a feature's own row and the rows before it, for each feature by itself."""
    total = xs[0] * ws[0]
    for x, w in zip(xs[1:], ws[1:], strict=True):
        total = total + x * w
    return total if b is None else total + b


@op(x="i,j")
def minus_exp(x: X) -> X:
    return 0 - EXP(x)


@op(before="i-1,j", step="i,j", rate="@,j", to="i,@", x="i,j", itself="before")
def selective_scan(before: X, step: X, rate: X, to: X, x: X) -> X:
    """One number of each channel's state (Gu & Dao 2023, algorithm 2): the faded number of the
    row before, plus this token's share."""
    return EXP(step * rate) * before + step * to * x


@op(states="i,j", cs="i,@#", x="i,j", d="0,j", many="states cs")
def read_states(states: Sequence[X], cs: Sequence[X], x: X, d: X) -> X:
    """The output of each channel, from its state and the token's readout, plus the input past
    it."""
    total = x * d
    for state, c in zip(states, cs, strict=True):
        total = total + state * c
    return total


@op(step="i,0", rate="0,0")
def left(step: X, rate: X) -> X:
    """The share of a head's states that is left from the token before (Dao & Gu 2024, section
    2)."""
    return EXP(step * rate)


@op(before="i-1,j", left="i,0", to="i,@", x="i,j", itself="before")
def scan_of_head(before: X, left: X, to: X, x: X) -> X:
    """One number of each channel's state, if a head's states all fade alike."""
    return left * before + to * x


@op(states="i,j", cs="i,@#", x="i,j", d="0,0", many="states cs")
def read_states_of_head(states: Sequence[X], cs: Sequence[X], x: X, d: X) -> X:
    """The output of `read_states`, with one number for a head's inputs past its states."""
    return read_states.function(states, cs, x, d)


@op(x="i,j", low="0,0", high="0,0")
def limited(x: X, low: X, high: X = None) -> X:
    """x, from `low` to `high`."""
    return MAX(low, x) if high is None else MIN(high, MAX(low, x))


# --- RWKV (Peng et al. 2023, section 3.1): a mean of all values so far, which fades --------------


@op(x="i,j", last="i-1,j", share="0,j")
def mixed_with_last(x: X, last: X, share: X) -> X:
    """Each feature's own token and the one before it (section 3.1.1)."""
    return x * share + last * (1 - share)


@op(before="i-1,j", fade="0,j", k="i,j", starts="i,0", itself="before")
def top_so_far(before: X, fade: X, k: X, starts: X) -> X:
    """The largest exponent of the sums, which fade: it keeps them from overflowing, and cancels."""
    return MAX(IF(starts == 1, LOWEST, before + fade), k)


@op(top="i-1,j", starts="i,0")
def top_before(top: X, starts: X) -> X:
    """The largest exponent up to the token before; of none before the first one."""
    return IF(starts == 1, LOWEST, top)


@op(before="i-1,j", fade="0,j", last="i,j", top="i,j", k="i,j", v="i,j", itself="before")
def faded_sum(before: X, fade: X, last: X, top: X, k: X, v: X = None) -> X:
    """The sum of values so far, weighted by how much each counts; without values, the sum of
    these weights."""
    own = EXP(k - Held(top))
    return EXP(Held(last) + fade - Held(top)) * before + (own if v is None else own * v)


@op(last="i,j", k="i,j", bonus="0,j")
def top_of_both(last: X, k: X, bonus: X) -> X:
    """The larger exponent: of the sums up to the token before, or of the own token."""
    return MAX(last, k + bonus)


@op(last="i,j", top="i,j")
def past_share(last: X, top: X) -> X:
    return EXP(Held(last) - Held(top))


@op(k="i,j", bonus="0,j", top="i,j")
def own_share(k: X, bonus: X, top: X) -> X:
    return EXP(k + bonus - Held(top))


@op(past="i,j", sums="i-1,j", now="i,j", v="i,j")
def sum_of_both(past: X, sums: X, now: X, v: X = None) -> X:
    """The sum up to the token before, and the own token (section 3.1.2)."""
    return past * sums + (now if v is None else now * v)


@op(x="i,j", by="i,j")
def quotient(x: X, by: X) -> X:
    return x / by


@op(gate="i,j", x="i,j", on="0,0", off="0,j")
def switched_gated(gate: X, x: X, on: X, off: X = None) -> X:
    """A share of the residual stream, as far as the gate is open; none while `on` is 0."""
    own = gate * x * on
    return own if off is None else own + off


# --- the gated delta rule (Yang et al. 2024, "Gated Delta Networks"), over pairs of tokens --------


@op(x="i,:", eps="0,0")
def length_above(x: X, eps: X) -> X:
    return SQRT(SUMPRODUCT(x, x) + eps)


@op(before="i-1,j", x="i,j", itself="before")
def sum_so_far(before: X, x: X) -> X:
    return before + x


@op(x="i,:", y="j,:", now="i,0", then="j,0", by="i,0", out="i,≤i")
def kept_product(x: X, y: X, now: X, then: X, by: X = None) -> X:
    """The product of a token's vector and an earlier one's, times the share of the earlier one
    that is still kept."""
    kept = SUMPRODUCT(x, y) * EXP(now - then)
    return kept if by is None else kept * by


@op(x="i,j", overlap="i,≤i", before="≤i,j", itself="before")
def corrected(x: X, overlap: X, before: X) -> X:
    """The output of a token, less what its key already recalls from earlier tokens."""
    return x - SUMPRODUCT(overlap, before)


# --- low-rank adapters (Hu et al. 2021, section 4.1) -----------------------------------------


@op(w="i,j", a="i,:", b=":,j", factor="0,0")
def adapted(w: X, a: X, b: X, factor: X) -> X:
    """A weight with the product of two thin matrices added."""
    return w + SUMPRODUCT(a, b) * factor


# --- weights rounded to few bits (Dettmers et al. 2022, section 2): an integer times a scale ----


@op(bits="0,0")
def largest_integer(bits: X) -> X:
    """The largest integer of so many bits, signed and symmetric about 0; 0 for no bits."""
    return IF(bits == 0, 0, 2 ** (bits - 1) - 1)


def scale_of(w: X, most: X) -> X:
    """The scale of a line of weights: its largest becomes the largest integer; 0: not rounded."""
    return IF(most == 0, 0, MAX(MAX(w), 0 - MIN(w)) / most)


@op(w=":,j", most="0,0")
def scale_of_column(w: X, most: X) -> X:
    return scale_of(w, most)


@op(w="i,:", most="0,0")
def scale_of_row(w: X, most: X) -> X:
    return scale_of(w, most)


@op(w="i,j", scale="0,j")
def rounded_in_column(w: X, scale: X) -> X:
    return IF(scale == 0, w, ROUND(w / scale, 0) * scale)


@op(w="i,j", scale="i,0")
def rounded_in_row(w: X, scale: X) -> X:
    return IF(scale == 0, w, ROUND(w / scale, 0) * scale)


# --- activations --------------------------------------------------------------------------


@op(x="i,j")
def relu(x: X) -> X:
    return MAX(x, 0)


@op(x="i,j")
def gelu(x: X) -> X:
    """GELU (Hendrycks & Gimpel 2016, section 2); 0.70710... is 1 / sqrt(2)."""
    return 0.5 * x * (1 + ERF(x * 0.7071067811865476))


@op(x="i,j")
def silu(x: X) -> X:
    """x times the logistic function of x, through tanh, which never overflows."""
    return x * (0.5 + 0.5 * TANH(0.5 * x))


@op(x="i,j")
def gelu_tanh(x: X) -> X:
    """GELU, tanh form (Hendrycks & Gimpel 2016, section 2); 0.79788... is sqrt(2 / pi)."""
    return 0.5 * x * (1 + TANH(0.7978845608028654 * (x + 0.044715 * (x * x * x))))


@op(x="i,j")
def tanh(x: X) -> X:
    return TANH(x)


@op(x="i,j")
def relu2(x: X) -> X:
    """The square of ReLU (So et al. 2021, "Primer", section 4)."""
    return MAX(x, 0) * MAX(x, 0)


@op(x="i,j")
def quick_gelu(x: X) -> X:
    """x times the logistic function of 1.702 x (Hendrycks & Gimpel 2016, section 2), through
    tanh."""
    return x * (0.5 + 0.5 * TANH(0.851 * x))


@op(x="i,j")
def mish(x: X) -> X:
    """x tanh(ln(1 + e^x)) (Misra 2019), which is x up to the last digit from 20 on; as e^x alone it
    is exact where e^x is small."""
    grown = EXP(MIN(x, 20)) * (EXP(MIN(x, 20)) + 2)
    return x * grown / (grown + 2)


@op(x="i,j")
def relu6(x: X) -> X:
    """ReLU, at most 6 (Howard et al. 2017)."""
    return MIN(MAX(x, 0), 6)


@op(x="i,j")
def leaky_relu(x: X) -> X:
    """ReLU with a slope of 0.01 below 0 (Maas et al. 2013)."""
    return MAX(x, 0) + 0.01 * MIN(x, 0)


@op(x="i,j")
def elu(x: X) -> X:
    """e^x - 1 below 0 (Clevert et al. 2016)."""
    return MAX(x, 0) + (EXP(MIN(x, 0)) - 1)


@op(x="i,j")
def selu(x: X) -> X:
    """ELU with two factors that keep mean 0 and variance 1 (Klambauer et al. 2017)."""
    below = 1.6732632423543772 * (EXP(MIN(x, 0)) - 1)
    return 1.0507009873554805 * (MAX(x, 0) + below)


@op(x="i,j")
def laplace(x: X) -> X:
    """A normal distribution's share below x (Ma et al. 2023, "Mega", section 3.4)."""
    return 0.5 * (1 + ERF((x - 0.707107) * 2.506626424383798))


@op(x="i,j")
def softplus(x: X) -> X:
    """ln(1 + exp(x)), which is above 0 and, for large x, x."""
    return MAX(x, 0) + LN(1 + EXP(MIN(x, 0 - x)))


@op(x="i,j", rise="0,0", fall="0,0")
def xielu(x: X, rise: X, fall: X) -> X:
    """xIELU (Huang & Schlag 2024, section 3): a parabola above 0, an exponential below."""
    above, below = MAX(x, 0), MIN(x, 0)
    return rise * above * above + (EXP(below) - 1 - below) * (0.5 + fall) + 0.5 * x


@op(gate="i,j", x="i,j")
def gated(gate: X, x: X) -> X:
    """Shazeer 2020, section 2: the gate opens or closes each hidden cell."""
    return gate * x
