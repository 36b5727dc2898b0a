"""The bounds of `proof` as cells: 200 cases of one place at once, with room for rounding.

A vector of n numbers within bounds has 3 n columns: the lower bounds, the upper bounds, and the
largest absolute values. A matrix is spread so that a bound of a product is one SUMPRODUCT.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Expression, Nth, expression
from cellformer.engine.cells.functions import (
    ABS,
    AND,
    COS,
    COUNT,
    EXP,
    IF,
    IFERROR,
    MAX,
    MIN,
    MOD,
    OR,
    POWER,
    SIN,
    SQRT,
    SUM,
    SUMPRODUCT,
    N,
    added,
)
from cellformer.engine.models.forward import Forward
from cellformer.workbooks.adder import intervals, learning, proof
from cellformer.workbooks.adder.proof import BASE
from cellformer.workbooks.adder.sums import FIRST, LENGTH, PLACES
from cellformer.workbooks.adder.trained import BLOCK, HEADS, KEYS

PROOF = "proof"  # what the names of its blocks begin with
WIDE, INNER, N_HEADS = learning.D_MODEL, learning.D_MLP, learning.N_HEADS
OF_HEAD = 1 + WIDE  # numbers that a token adds to a head: the weight, and weight times value
TERM = N_HEADS * OF_HEAD
PAIRS, CASES = 2 * BASE, 2 * BASE * BASE  # digits of the place before with a carry; and with b
ROOM_OF_SCORE = round(proof.ROOM / intervals.SLACK)
UNIT = 100  # of leads: they are differences of numbers that programs round differently
LARGEST = 1e30  # a weight above it is not looked at: then nothing is proved
EQUAL = 1e-14  # frequencies that differ by less are the same: programs read 15 digits
NONE, ZERO, ANY, OWN = range(4)  # roles of a token: beyond the text, 0, any digit, of the case
OWN_AT = {"here": 0, "b": PLACES, "b'": PLACES + 1, "a": FIRST - 1, "a'": FIRST}  # tokens back
KNOWN = (0, PLACES + 1, PLACES + 2, FIRST)  # tokens that are 0 in every sum
GAINS = {
    "ln1": f"{BLOCK}.ln1.w",
    "q_norm": f"{BLOCK}.attn.q_norm",
    "k_norm": f"{BLOCK}.attn.k_norm",
    "ln2": f"{BLOCK}.ln2.w",
}
Formula = Callable[[int, int], Expression]
# of a row, of the k-th number, low (0) or high (1): the bound, and the room for rounding
Bound = Callable[[int, int, int], tuple[Expression, Expression]]


class Asked(NamedTuple):
    """The cells that choose the cases."""

    place: Expression  # from 0, the ones
    here: Expression  # the digit written before
    a: Expression  # the digit of the first number


def add(g: Forward, asked: Asked) -> None:
    """Add all tables."""
    at = Tables(g, asked)
    at.weights()
    at.digits()
    at.attention()
    at.tokens()
    at.pairs()
    at.streams()
    at.mlp()
    at.leads()


class Tables:
    """The tables, in the order of computation."""

    def __init__(self, g: Forward, asked: Asked) -> None:
        self.g, self.asked = g, asked

    def __getitem__(self, name: str) -> Block:
        return self.g[f"{PROOF}.{name}"]

    def table(self, name: str, shape: tuple[int, int], formula: Formula) -> Block:
        """Add a table."""
        return self.g.table(f"{PROOF}.{name}", shape, formula)

    @property
    def slack(self) -> Expression:
        """The room for rounding, relative to the size of what is rounded."""
        return self["room"][0, 0].fixed

    @property
    def tiny(self) -> Expression:
        """The same for numbers near 0."""
        return self["room"][1, 0].fixed

    # --- weights as computed cells, so that an error in another cell is never taken as 0 ---------

    def weights(self) -> None:
        """Add the room for rounding, whether the proof is about these numbers, and the weights."""
        g = self.g
        powers = [round(math.log10(x)) for x in (intervals.SLACK, intervals.TINY, proof.HUGE)]
        self.table("room", (3, 1), lambda i, _: POWER(10, powers[i]))
        self.table("fits", (1, 1), lambda *_: IF(AND(*self._as_built(), *self._numbers()), 1, 0))
        gains = list(GAINS.values())
        self.table("gain", (len(gains), WIDE), lambda i, k: N(g[gains[i]][0, k]))
        self.table("eps", (1, 1), lambda *_: N(g[f"{BLOCK}.ln1.eps"][0, 0]))
        self.spread("W_K", [g[f"{KEYS}.W_K"]])
        self.spread("W_V", [g[f"{KEYS}.W_V"]])
        for h, head in enumerate(HEADS):
            self.spread(f"W_Q{h}", [g[f"{head}.W_Q"]])
        self.spread("W_O", [g[f"{h}.W_O"] for h in HEADS], [g[f"{h}.on"] for h in HEADS])
        self.spread("W_gate", [g[f"{BLOCK}.mlp.W_gate"]])
        self.spread("W_in", [g[f"{BLOCK}.mlp.W_in"]])
        W_out, on = g[f"{BLOCK}.mlp.W_out"], g[f"{BLOCK}.mlp.switch"]

        def out(m: int, c: int) -> Expression:
            weight = W_out[m, c % WIDE] * on[0, 0].fixed
            return weight if c < WIDE else ABS(weight)

        self.table("W_out", (INNER, 2 * WIDE), out)
        words, last = g["W_E"], g["ln_final.w"]
        self.table("word", (BASE, WIDE), lambda x, k: words[x, k] * last[0, k].fixed / UNIT)

        def digit(x: int, c: int) -> Expression:
            own = words[x, c % WIDE]
            return ABS(own) if c >= 2 * WIDE else N(own)

        self.table("digit", (BASE, 3 * WIDE), digit)

    def _as_built(self) -> list[Expression]:
        """Conditions: every setting of the pass is as built, so that distances alone count."""
        names = ["rotary.positions", "rotary.frequency", "rotary.sign", f"{BLOCK}.attn.sqrt_d_head"]
        names += [name for name in self.g.inputs if name.endswith(".eps")]
        held = {name: self.g.inputs[name] for name in names}
        return [
            ABS(self.g[name][i, j] - float(values[i, j])) <= (name == "rotary.frequency") * EQUAL
            for name, values in held.items()
            for i, j in self.g[name].whole.cells()
        ]

    def _numbers(self) -> list[Expression]:
        """Conditions: every weight is a number, and not a huge one."""
        held = [x for x in self.g if x.kind == "weight" or x.name.endswith(".switch")]
        n = sum(x.whole.size for x in held)
        ranges = [x.area.as_range for x in held]
        return [COUNT(*ranges) == n, MAX(*ranges) < LARGEST, MIN(*ranges) > -LARGEST]

    def spread(self, name: str, matrices: list[Block], on: list[Block] | None = None) -> None:
        """Add matrices [n, m], one below another, as rows of factors: m for lower bounds of a
        product, then m for upper bounds. Factors are of lower bounds, upper bounds, and sizes."""
        rows = [(w, k) for w in matrices for k in range(w.shape[0])]
        n, m = len(rows), matrices[0].shape[1]

        def factor(i: int, c: int) -> Expression:
            w, k = rows[c % n]
            weight: Expression = w[k, i % m]
            if on:
                weight = weight * on[matrices.index(w)][0, 0].fixed
            up, of = i >= m, c // n
            if of == 2:
                return ABS(weight) * (self.slack if up else -self.slack)
            return (MAX if (of == 0) != up else MIN)(weight, 0)

        self.table(name, (2 * m, 3 * n), factor)

    # --- interval arithmetic -----------------------------------------------------------------

    def bounds(self, name: str, n_rows: int, n: int, bound: Bound, parts: int = 3) -> Block:
        """Add the bounds of vectors of n numbers, `bound(row, number, high)` made wider by room for
        rounding, and their sizes if there are three parts."""

        def cell(i: int, c: int) -> Expression:
            high, k = divmod(c, n)
            if high == 2:
                return MAX(-self[name][i, k], self[name][i, n + k])
            found, room = bound(i, k, high)
            return found + room if high else found - room

        return self.table(name, (n_rows, parts * n), cell)

    def product(self, name: str, x: Block, w: Block, parts: int = 3) -> Block:
        """Add the product of vectors with a spread matrix: its bounds, and its sizes if it has
        three parts."""
        m = w.shape[0] // 2

        def bound(i: int, k: int, high: int) -> tuple[Expression, Expression]:
            return SUMPRODUCT(x[i, :], w[high * m + k, :].fixed), self.tiny

        return self.bounds(name, x.shape[0], m, bound, parts)

    def normed(self, name: str, x: Block, gain: str) -> Block:
        """Add RMSNorm: the bounds of the scale, and of the vector."""
        n, slack, tiny = x.shape[1] // 3, self.slack, self.tiny
        g_row = list(GAINS).index(gain)

        def scale(i: int, c: int) -> Expression:
            sizes = x[i, 2 * n :]
            squares = SUMPRODUCT(sizes, sizes) / n
            if c == 1:
                least = [MAX(x[i, k], -x[i, n + k], 0) for k in range(n)]
                mean = added([y * y for y in least]) / n - slack * squares - tiny
                return 1 / SQRT(MAX(mean, 0) + self["eps"][0, 0].fixed) * (1 + slack) + tiny
            mean = squares * (1 + slack) + tiny + self["eps"][0, 0].fixed
            return 1 / SQRT(mean) - slack * self[f"{name}.scale"][i, 1]

        scales = self.table(f"{name}.scale", (x.shape[0], 2), scale)

        def bound(i: int, k: int, high: int) -> tuple[Expression, Expression]:
            gained: Expression = self["gain"][g_row, k].fixed
            ends = [x[i, k] * gained, x[i, n + k] * gained]
            every = [end * scales[i, s] for end in ends for s in (0, 1)]
            room = 2 * slack * ABS(gained) * x[i, 2 * n + k] * scales[i, 1] + tiny
            return (MAX if high else MIN)(*every), room

        return self.bounds(name, x.shape[0], n, bound)

    # --- what depends on a digit alone -----------------------------------------------------------

    def digits(self) -> None:
        """Add inputs, keys and values of the ten digits, and the query of the digit before."""
        inputs = self.normed("input", self["digit"], "ln1")
        raw = self.product("key.raw", inputs, self["W_K"])
        key, slack, tiny = self.normed("key", raw, "k_norm"), self.slack, self.tiny
        n = WIDE

        def factor(x: int, c: int) -> Expression:
            """A factor of the middles, sizes and radii of a query, for one of both bounds."""
            k, part, sign = c % n, c % (3 * n) // n, 1 if c >= 3 * n else -1
            low, high, size = key[x, k], key[x, n + k], key[x, 2 * n + k]
            if part == 0:
                return (low + high) / 2
            if part == 1:
                all_sizes = SUM(key[x, 2 * n :].as_range)
                return sign * ((high - low) / 2 + ROOM_OF_SCORE * slack * all_sizes)
            return sign * size

        self.table("key.factor", (BASE, 6 * n), factor)
        values = self.product("value.raw", inputs, self["W_V"])

        def value(x: int, k: int, high: int) -> tuple[Expression, Expression]:
            return values[x, high * n + k], slack * values[x, 2 * n + k] + tiny

        self.bounds("value", BASE, n, value, 2)

        def hull(_: int, k: int, high: int) -> tuple[Expression, Expression]:
            room = slack * MAX(values[:, 2 * n + k].as_range) + tiny
            return (MAX if high else MIN)(values[:, high * n + k].as_range), room

        self.bounds("value.hull", 1, n, hull, 2)

    def attention(self) -> None:
        """Add e^score of the digit before with each digit at each distance."""
        inputs, here, slack, tiny, n = self["input"], self.asked.here, self.slack, self.tiny, WIDE
        self.table("own", (1, 3 * n), lambda _, c: Nth(inputs[:, c].as_range, here + 1))

        def raw(h: int, k: int, high: int) -> tuple[Expression, Expression]:
            return SUMPRODUCT(self["own"][0, :], self[f"W_Q{h}"][high * n + k, :]), tiny

        query = self.normed("query", self.bounds("query.raw", N_HEADS, n, raw), "q_norm")
        half = n // 2
        self.table("speed", (1, half), lambda _, k: POWER(learning.THETA, -k / half))

        def turn(d: int, c: int) -> Expression:
            return (COS if c < half else SIN)(d * self["speed"][0, c % half].fixed)

        turned = self.table("turn", (LENGTH - 1, n), turn)

        def looks(d: int, c: int) -> Expression:
            h, k, part = c // (3 * n), c % n, c % (3 * n) // n
            cos, sin = turned[d, k % half], turned[d, half + k % half]
            one, two = (query[h, j + k % half].fixed for j in (0, half))
            one_up, two_up = (query[h, n + j + k % half].fixed for j in (0, half))
            mids = (one + one_up) / 2, (two + two_up) / 2
            if part == 0:
                return mids[0] * cos - mids[1] * sin if k < half else mids[0] * sin + mids[1] * cos
            if part == 1:
                own = self["query.turned"]
                return ABS(own[d, c - n]) + own[d, c + n]
            radii = (one_up - one) / 2, (two_up - two) / 2
            across = (cos, sin) if k < half else (sin, cos)
            sizes = SUM(query[h, 2 * n :].fixed.as_range)
            return ABS(across[0]) * radii[0] + ABS(across[1]) * radii[1] + slack * sizes

        looks_at = self.table("query.turned", (LENGTH - 1, N_HEADS * 3 * n), looks)
        factor, root = self["key.factor"], learning.D_HEAD**0.5

        def exp(high: int) -> Formula:
            def of(d: int, c: int) -> Expression:
                h, x = divmod(c, BASE)
                query = looks_at[d, h * 3 * n : (h + 1) * 3 * n]
                key = factor[x, high * 3 * n : (high + 1) * 3 * n].fixed
                found = EXP(SUMPRODUCT(query, key) / root)
                return found * (1 + slack) + tiny if high else found * (1 - slack)

            return of

        for high, end in enumerate(("low", "high")):
            self.table(f"attention.{end}", (LENGTH - 1, N_HEADS * BASE), exp(high))

    # --- what each token adds to the two heads -----------------------------------------------------

    def tokens(self) -> None:
        """Add the part of all tokens that no case tells apart, and of each digit where it does."""
        place = self.asked.place

        def role(d: int, _: int) -> Expression:
            if d in OWN_AT.values():
                return expression(OWN)
            token = place + (FIRST - d)
            zero = IF(OR(*[token == t for t in KNOWN]), ZERO, ANY)
            return IF(token < 0, NONE, zero) if d > FIRST else zero

        roles = self.table("role", (LENGTH - 1, 1), role)

        def part(d: int, c: int) -> Expression:
            every, zero = self._least(d, c, range(BASE)), self._least(d, c, [0])
            return IF(roles[d, 0] == ANY, every, IF(roles[d, 0] == ZERO, zero, 0))

        parts = self.table("others", (LENGTH - 1, 2 * TERM), part)

        def of_digit(i: int, c: int) -> Expression:
            d = list(OWN_AT.values())[i // BASE]
            return self._least(d, c, [i % BASE])

        self.table("token", (len(OWN_AT) * BASE, 2 * TERM), of_digit)

        def base(_: int, c: int) -> Expression:
            others = SUM(parts[:, c].as_range)
            here, a = self.asked.here, self.asked.a
            return others + self._digit("here", c, here) + self._digit("a", c, a)

        self.table("base", (1, 2 * TERM), base)

    def _digit(self, of: str, c: int, digit: Expression) -> Expression:
        """An entry of the table `token`: what a digit adds at one of the case's tokens."""
        top = list(OWN_AT).index(of) * BASE
        return Nth(self["token"][top : top + BASE, c].fixed.as_range, digit + 1)

    def _least(self, d: int, c: int, digits: "range | list[int]") -> Expression:
        """A bound over digits at a distance: of e^score, or of its product with a value."""
        high, h, k = c // TERM, c % TERM // OF_HEAD, c % OF_HEAD - 1
        best = MAX if high else MIN
        low, up = self["attention.low"], self["attention.high"]
        if k < 0:
            cells = (up if high else low)[d, h * BASE + digits[0] : h * BASE + digits[-1] + 1]
            return best(cells) if len(digits) > 1 else cells
        values = self["value"]
        of = high * WIDE + k
        return best(*[
            e[d, h * BASE + x] * values[x, of].fixed for x in digits for e in (low, up)
        ])  # fmt: skip

    def pairs(self) -> None:
        """Add the digits of the place before that fit the digit written there, with a carry."""
        place, here = self.asked.place, self.asked.here

        def digit(i: int, c: int) -> Expression:
            carry, a = divmod(i, BASE)
            own = self["before"]
            match c:
                case 0 | 2:
                    return expression(a if c == 0 else carry)
                case 1:
                    return MOD(here - carry - a, BASE)
                case 3:
                    return IF(own[i, 0] + own[i, 1] + own[i, 2] > BASE - 1, 1, 0)
            if carry:
                return IF(place > 1, 1, 0)
            return expression(1) if a == 0 else IF(place > 0, 1, 0)

        before = self.table("before", (PAIRS, 5), digit)

        def sums(i: int, c: int) -> Expression:
            a = self["token"][list(OWN_AT).index("a'") * BASE + i % BASE, c].fixed
            return self["base"][0, c].fixed + a + self._digit("b'", c, before[i, 1])

        self.table("before.sums", (PAIRS, 2 * TERM), sums)

        def case(n: int, c: int) -> Expression:
            right, i = divmod(n, PAIRS)
            if c == 0:
                return MOD(right - self.asked.a - before[i, 3].fixed, BASE)
            last = IF(place == PLACES, IF(self["case"][n, 0] == 0, 1, 0), 1)
            return before[i, 4].fixed * last

        self.table("case", (CASES, 2), case)

    # --- the pass, in each case --------------------------------------------------------------

    def streams(self) -> None:
        """Add the residual stream after attention."""
        case, slack, tiny, n = self["case"], self.slack, self.tiny, WIDE

        def sums(i: int, c: int) -> Expression:
            return self["before.sums"][i % PAIRS, c].fixed + self._digit("b", c, case[i, 0])

        total = self.table("sums", (CASES, 2 * TERM), sums)

        def inverse(i: int, c: int) -> Expression:
            h, high = c % N_HEADS, c // N_HEADS
            low, up = (total[i, end * TERM + h * OF_HEAD] for end in (0, 1))
            return 1 / low * (1 + slack) + tiny if high else MAX(1 / up - slack / low - tiny, 0)

        shares = self.table("share", (CASES, 2 * N_HEADS), inverse)
        m, hull = N_HEADS * n, self["value.hull"]

        def mean(i: int, c: int) -> Expression:
            if c >= 2 * m:
                return MAX(-self["mean"][i, c - 2 * m], self["mean"][i, c - m])
            high, h, k = c // m, c % m // n, c % n
            low, up = (total[i, end * TERM + h * OF_HEAD + 1 + k] for end in (0, 1))
            least, most = shares[i, h], shares[i, N_HEADS + h]
            room = slack * MAX(-low, up) * most + tiny
            if high:
                return MIN(MAX(up * least, up * most) + room, hull[0, n + k].fixed)
            return MAX(MIN(low * least, low * most) - room, hull[0, k].fixed)

        self.table("mean", (CASES, 3 * m), mean)
        words, here = self["digit"], self.asked.here
        self.table("own.word", (1, n), lambda _, k: Nth(words[:, k].as_range, here + 1))
        out = self["W_O"]

        def stream(i: int, k: int, high: int) -> tuple[Expression, Expression]:
            moved = SUMPRODUCT(self["mean"][i, :], out[high * n + k, :].fixed)
            return self["own.word"][0, k].fixed + moved, tiny

        self.bounds("mid", CASES, n, stream)

    def mlp(self) -> None:
        """Add the hidden cells of the MLP."""
        y, slack, tiny, n = self.normed("y", self["mid"], "ln2"), self.slack, self.tiny, INNER
        gate, pre = (
            self.product(x, y, self[w], 2) for x, w in (("gate", "W_gate"), ("pre", "W_in"))
        )
        lowest = intervals.SILU_LOWEST

        def silu(i: int, k: int, upper: int) -> tuple[Expression, Expression]:
            low, high = gate[i, k], gate[i, n + k]
            ends = [x / (1 + EXP(-x)) for x in (low, high)]
            dips, least = AND(low < lowest, high > lowest), lowest / (1 + EXP(-lowest))
            found = MAX(*ends) if upper else IF(dips, least, MIN(*ends))
            return found, slack * MAX(-low, high) + tiny

        act = self.bounds("act", CASES, n, silu, 2)

        def post(i: int, k: int, upper: int) -> tuple[Expression, Expression]:
            one, other = ((x[i, k], x[i, n + k]) for x in (act, pre))
            every = [x * z for x in one for z in other]
            sizes = [MAX(-low, high) for low, high in (one, other)]
            return (MAX if upper else MIN)(*every), slack * sizes[0] * sizes[1] + tiny

        self.bounds("post", CASES, n, post)

    def leads(self) -> None:
        """Add the lower bound of the right digit's lead over each other digit, and the least."""
        words, out, slack = self["word"], self["W_out"], self.slack
        others, n, m = BASE - 1, WIDE, INNER

        def apart(i: int, c: int) -> Expression:
            right, step = divmod(i, others)
            one, other = words[right, c % n], words[(right + step + 1) % BASE, c % n]
            return one - other if c < n else ABS(one) + ABS(other)

        away = self.table("apart", (BASE * others, 2 * n), apart)

        def factor(number: Callable[[int, int, slice], Expression], n: int) -> Formula:
            """Factors of a vector of n numbers: `number` is one of the leads, or of their sizes."""

            def of(i: int, c: int) -> Expression:
                if c >= 2 * n:
                    return -slack * number(i, c % n, slice(WIDE, None))
                along = number(i, c % n, slice(WIDE))
                return MAX(along, 0) if c < n else MIN(along, 0)

            return of

        def of_mlp(i: int, k: int, part: slice) -> Expression:
            return SUMPRODUCT(away[i, part], out[k, part].fixed)

        streams = self.table(
            "apart.stream",
            (BASE * others, 3 * n),
            factor(lambda i, k, part: away[i, part][k], n),
        )
        mlps = self.table("apart.mlp", (BASE * others, 3 * m), factor(of_mlp, m))
        mid, posts, case = self["mid"], self["post"], self["case"]

        def lead(i: int, step: int) -> Expression:
            row = i // PAIRS * others + step
            stream = SUMPRODUCT(mid[i, :], streams[row, :].fixed)
            return stream + SUMPRODUCT(posts[i, :], mlps[row, :].fixed) - self.tiny

        leads = self.table("lead", (CASES, others), lead)

        def least(i: int, _: int) -> Expression:
            largest = MAX(out[:, n:].fixed.as_range)
            size = MAX(mid[i, 2 * n :]) + SUM(posts[i, 2 * m :]) * largest
            fits = AND(self["fits"][0, 0].fixed == 1, size < self["room"][2, 0].fixed)
            known = IFERROR(IF(fits, MIN(leads[i, :]), "?"), "?")
            return IF(case[i, 1] == 1, known, "")

        self.table("least", (CASES, 1), least)
