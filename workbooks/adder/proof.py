"""A proof that the model adds all sums of two numbers of ten digits: 10^20 of them, not examples.

At the token that writes a digit, the model reads the digit before it, and the four digits of the
summands at this place and the one before. These and the carry make a case. A score depends on two
digits and their distance alone, so the part of all other tokens has bounds, whatever digits they
are (`intervals`). In a case, the bounds of the residual stream are a box. Where the right digit
leads every other in the whole box, the case is proved; a box in which it may not is halved, again
and again. If the digits so far are right and every case is proved, the next digit is right: by
induction, so is every sum.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

import numpy as np

from cellformer.engine import InputError, Model
from cellformer.workbooks.adder import intervals, learning, trained
from cellformer.workbooks.adder.intervals import SLACK, Array, Interval, exactly, normed, widened
from cellformer.workbooks.adder.sums import DIGITS, FIRST, LENGTH, PLACES
from cellformer.workbooks.adder.trained import BLOCK, HEADS, KEYS

BASE = len(DIGITS)
ROOM = 4 * SLACK  # for the rounding of a score: turned numbers may have half the size
HALVINGS = 14  # of a box, at most
BOXES = 2500  # of a place that are halved at once, at most: the included weights need 465
ENDS = ("low", "high")
HUGE = 1e100  # a number of the stream whose square may be too large for a double


@dataclass(frozen=True)
class Digit:
    """The proof of one digit of the sum."""

    digit: Annotated[int, "of the sum, counted from the right"]
    cases: Annotated[int, "of the digits that matter most", ",d"]
    unproved: Annotated[int, "number of cases that are not proved", ",d"]
    lead: Annotated[
        float | None,
        "least lead of the right digit that is certain, before the last norm; null: no number",
        ".4f",
    ]
    wrong: Annotated[str, "a sum whose first wrong digit is this one; empty: none was found"]


@dataclass(frozen=True)
class Case:
    """A case that is not proved."""

    digit: Annotated[int, "of the sum, counted from the right"]
    adds: Annotated[str, "the digits of both numbers there"]
    before: Annotated[str, "the digits to the right of them, and the carry that these get"]
    lead: Annotated[float | None, "of the right digit, at least; null: no number", ".4f"]


@dataclass(frozen=True)
class Cases:
    """The cases of one place, and the least lead of the right digit in each: arrays of one length.
    `before` marks the place before; the carry goes from the place before that one into it."""

    place: int  # from 0, the ones
    a: Array
    b: Array
    a_before: Array
    b_before: Array
    carry: Array
    lead: Array  # above 0: proved; NaN: nothing is known

    @property
    def proved(self) -> Array:
        return np.asarray(self.lead > 0)

    @property
    def total_before(self) -> Array:
        return np.asarray(self.a_before + self.b_before + self.carry)

    @property
    def written(self) -> Array:
        """The digit that the model wrote last."""
        return self.total_before % BASE

    @property
    def right(self) -> Array:
        """The digit that it should write."""
        return np.asarray((self.a + self.b + self.total_before // BASE) % BASE)

    def of(self, some: Array) -> "Cases":
        """Some of the cases."""
        return replace(
            self, **{name: x[some] for name, x in vars(self).items() if isinstance(x, np.ndarray)}
        )


def cases(place: int) -> Cases:
    """All cases of a place, not yet proved. Beyond both ends of the numbers stand zeros."""
    here = np.arange(BASE if place < PLACES else 1)
    before = np.arange(BASE if place > 0 else 1)
    carry = np.arange(2 if place > 1 else 1)
    every = np.meshgrid(here, here, before, before, carry, indexing="ij")
    a, b, a_before, b_before, carry = (x.ravel() for x in every)
    return Cases(place, a, b, a_before, b_before, carry, np.full(a.size, np.nan))


class Bounds:
    """A model of adder's shape as bounds of what it computes."""

    def __init__(self, model: Model) -> None:
        self.w, self.eps = model.weights, model.spec.norm_eps

    @cached_property
    def values(self) -> Interval:
        """The value vector of each digit: [digits, d_head]."""
        W_V: Array = self.w[f"{KEYS}.W_V"]
        return self.inputs @ W_V

    @cached_property
    def inputs(self) -> Interval:
        """The input of the heads, for each digit: [digits, d_model]."""
        return normed(exactly(self.w["W_E"]), self.w[f"{BLOCK}.ln1.w"], self.eps)

    @cached_property
    def attention(self) -> Interval:
        """e^score of each [distance, head, digit here, digit there]."""
        norms = [self.w[f"{BLOCK}.attn.{name}"] for name in ("q_norm", "k_norm")]
        queries = [normed(self.inputs @ self.w[f"{h}.W_Q"], norms[0], self.eps) for h in HEADS]
        key = normed(self.inputs @ self.w[f"{KEYS}.W_K"], norms[1], self.eps)
        scale = learning.D_HEAD**-0.5
        found = []
        for distance in range(LENGTH - 1):
            for query in queries:
                score = scores(query, key, distance)
                found.append(intervals.exp(Interval(score.low * scale, score.high * scale)))
        shape = (-1, len(HEADS), BASE, BASE)
        return Interval(*(np.reshape([getattr(x, end) for x in found], shape) for end in ENDS))

    @cached_property
    def moved(self) -> Interval:
        """`attention`, times the values: [distance, head, digit here, digit there, d_head]."""
        return self.attention[..., None] * self.values

    def box(self, found: Cases) -> Interval:
        """The residual stream after attention, in each case: [n, d_model]."""
        t, zero, here = FIRST + found.place, np.zeros_like(found.a), found.written
        known = {0: zero, PLACES + 1: zero, PLACES + 2: zero, FIRST: zero, t: here}
        known |= {t - FIRST + 1: found.a, t - PLACES: found.b}
        if found.place:
            known |= {t - FIRST: found.a_before, t - PLACES - 1: found.b_before}
        hull = intervals.any_of(self.values, 0)
        hull = widened(hull.low, hull.high, hull.size)
        stream = exactly(self.w["W_E"][here])
        for h, head in enumerate(HEADS):
            weight, mixed = exactly(np.zeros(1)), exactly(np.zeros(1))
            for j in range(t + 1):
                there = self.attention[t - j, h, here], self.moved[t - j, h, here]  # [n, digits]
                if j in known:
                    n = np.arange(len(here))
                    weight, mixed = weight + there[0][n, known[j]], mixed + there[1][n, known[j]]
                else:
                    either = [intervals.any_of(x, 1) for x in there]
                    weight, mixed = weight + either[0], mixed + either[1]
            mean = mixed * intervals.inverse(weight)[:, None]
            mean = Interval(np.maximum(mean.low, hull.low), np.minimum(mean.high, hull.high))
            stream = stream + mean @ self.w[f"{head}.W_O"]
        return stream

    def lead(self, mid: Interval, right: Array) -> Array:
        """The least lead of the right digit over another one, in each box, before the last norm,
        which keeps its sign: [n]."""
        y = normed(mid, self.w[f"{BLOCK}.ln2.w"], self.eps)
        gate, pre, out = (self.w[f"{BLOCK}.mlp.{x}"] for x in ("W_gate", "W_in", "W_out"))
        post = intervals.silu(y @ gate) * (y @ pre)
        words = self.w["W_E"] * self.w["ln_final.w"]  # [digits, d_model]
        least = np.full(len(right), np.inf)
        for digit in range(BASE):
            apart = words[right] - words[digit]  # [n, d_model]
            size = abs(words[right]) + abs(words[digit])
            along = apart @ out.T  # [n, d_mlp]: the MLP's part is of the same stream
            low = lowest(mid, apart) + lowest(post, along)
            terms = (size * mid.size).sum(1) + (size @ abs(out).T * post.size).sum(1)
            low = widened(low, low, terms).low
            least = np.where(right == digit, least, np.minimum(least, low))
        stream = (mid.size + post.size @ abs(out)).max(1)
        return np.where(stream < HUGE, least, np.nan)

    def prove(self, found: Cases) -> Cases:
        """The cases with the least lead that could be shown. A case whose lead is not above 0 at
        the middle of a box cannot be proved, and is given up; so are all if there are too many
        boxes."""
        boxes, lead = self.box(found), np.full(len(found.a), np.inf)
        of = np.arange(len(lead))  # the case of each box
        lost = np.zeros(len(lead), bool)
        for halving in range(HALVINGS + 1):
            low = self.lead(boxes, found.right[of])
            np.minimum.at(lead, of[low > 0], low[low > 0])
            open_ = ~(low > 0)  # also where a lead is no number
            boxes, of, low = boxes[open_], of[open_], low[open_]
            gone = ~(self.lead(exactly(boxes.middle), found.right[of]) > 0)
            if halving == HALVINGS or (~gone).sum() > BOXES:
                gone[:] = True
            np.minimum.at(lead, of[gone], np.minimum(low[gone], 0))
            lost[of[gone]] = True
            left = ~lost[of]
            boxes, of = halved(boxes[left]), np.repeat(of[left], 2)
            if not len(of):
                break
        return replace(found, lead=lead)


def scores(query: Interval, key: Interval, distance: int) -> Interval:
    """The products of queries, turned by their distance to the keys, with keys: [digits, digits].

    They differ from those of the middles as much as radii and sizes allow. Here the model turns
    both, by their positions: `ROOM` is for numbers of these sizes.
    """
    angle = turn(distance)
    middle = query.middle @ angle
    radius = query.radius @ abs(angle) + SLACK * query.size.sum(-1, keepdims=True)
    room = key.radius + ROOM * key.size.sum(-1, keepdims=True)
    apart = (abs(middle) + radius) @ room.T + radius @ key.size.T + intervals.TINY
    near = middle @ key.middle.T
    return Interval(near - apart, near + apart)


def turn(distance: int) -> Array:
    """The rotation of a vector by its distance, to multiply it with: [d_head, d_head]."""
    half = learning.D_HEAD // 2
    angle = distance * learning.THETA ** (-np.arange(half) / half)
    cos, sin = np.diag(np.cos(angle)), np.diag(np.sin(angle))
    return np.block([[cos, sin], [-sin, cos]])


def lowest(x: Interval, direction: Array) -> Array:
    """The least product of a vector in a box with a direction: [n]."""
    return np.asarray((np.where(direction > 0, x.low, x.high) * direction).sum(-1))


def halved(boxes: Interval) -> Interval:
    """Both halves of each box, across its widest side: [2 n, d_model]."""
    n, side = np.arange(len(boxes.low)), (boxes.high - boxes.low).argmax(-1)
    low, high = (np.repeat(getattr(boxes, end), 2, axis=0) for end in ENDS)
    low[2 * n + 1, side] = high[2 * n, side] = boxes.middle[n, side]
    return Interval(low, high)


def check(model: Model, name: str) -> None:
    """Raise InputError for a model that the proof is not about."""
    spec = trained.decoder().spec
    if replace(model.spec, norm_eps=spec.norm_eps) != spec:
        raise InputError(
            f"{name} is not adder, and the proof is about the layers and digits of adder; name "
            "adder, its workbook, or a folder by `cellformer train adder`"
        )


def prove(model: Model) -> list[Cases]:
    """Every case of every place, with the lead that could be shown."""
    bounds = Bounds(model)
    with np.errstate(all="ignore"):  # what overflows is not proved
        return [bounds.prove(cases(place)) for place in range(PLACES + 1)]


def digit(found: Cases, wrong: tuple[int, int] | None) -> Digit:
    """The proof of a digit in one row."""
    n, unproved = len(found.lead), int((~found.proved).sum())
    text = "{:,} + {:,}".format(*wrong) if wrong else ""
    return Digit(found.place + 1, n, unproved, _known(found.lead.min()), text)


def unproved(found: Cases) -> list[Case]:
    """The cases of a digit that are not proved."""
    some = found.of(~found.proved)
    pairs = [
        [f"{a} + {b}" for a, b in zip(*both, strict=True)]
        for both in ((some.a, some.b), (some.a_before, some.b_before))
    ]
    rows = zip(*pairs, some.carry, some.lead, strict=True)
    return [
        Case(found.place + 1, adds, f"{before} + {carry}", _known(lead))
        for adds, before, carry, lead in rows
    ]


def _known(lead: float) -> float | None:
    return float(lead) if np.isfinite(lead) else None
