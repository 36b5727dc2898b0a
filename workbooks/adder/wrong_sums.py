"""A search for sums that a model gets wrong: random ones, hard ones, and those of unproved cases.

The proof says which cases may fail; a wrong sum shows that one does. A score depends on two digits
and their distance alone, so the pass over many sums is one of look-ups.
"""

from collections.abc import Sequence

import numpy as np

from cellformer.engine import Model
from cellformer.workbooks.adder import sums, trained
from cellformer.workbooks.adder.proof import BASE, Bounds, Cases
from cellformer.workbooks.adder.sums import FIRST, LENGTH, PLACES
from cellformer.workbooks.adder.trained import BLOCK, HEADS

Array = np.ndarray
RANDOM, CASES, ENDINGS = 10_000, 500, 12  # sums; unproved cases of a place, and sums of each
SEED = 47
Sum = tuple[int, int]


def wrong_sums(model: Model, found: Sequence[Cases]) -> dict[int, Sum]:
    """Sums whose first wrong digit stands at a place, for the places where one was found. The
    engine itself gets each wrong."""
    rng = np.random.default_rng(SEED)
    tried = [sums.drawn(rng, RANDOM), *(of_cases(rng, each) for each in found)]
    bounds, wrong = Bounds(model), {}
    with np.errstate(all="ignore"):
        for ids in tried:
            misses = written(bounds, ids) != ids[:, FIRST + 1 :]
            for place in range(PLACES + 1):
                rows = np.flatnonzero(misses[:, place] & ~misses[:, :place].any(1))
                if len(rows) and place not in wrong and not trained.right(model, ids[rows[:1]])[0]:
                    wrong[place] = numbers(ids[rows[0]])
    return wrong


def numbers(ids: Array) -> Sum:
    """The two numbers of a sum."""
    ends = ((1, PLACES + 1), (PLACES + 3, FIRST))
    a, b = (sum(int(x) * 10**k for k, x in enumerate(ids[i:j])) for i, j in ends)
    return a, b


def of_cases(rng: np.random.Generator, found: Cases) -> Array:
    """Sums with the unproved cases of a place that are least sure. The other digits are random,
    or all the same: [n, LENGTH]."""
    unproved = np.flatnonzero(~found.proved)
    hardest = unproved[np.argsort(found.lead[unproved])][:CASES]
    some, place = found.of(np.repeat(hardest, ENDINGS)), found.place
    n = len(some.a)
    a, b = rng.integers(0, BASE, (2, n, PLACES))
    for digits in (a, b):
        alike = rng.random(n) < 0.5
        digits[alike] = rng.integers(0, BASE, (alike.sum(), 1)) * np.ones((1, PLACES), int)
    if place < PLACES:
        a[:, place], b[:, place] = some.a, some.b
    if place > 0:
        a[:, place - 1], b[:, place - 1] = some.a_before, some.b_before
    if place > 1:  # two digits that pass this carry on, whatever comes into their place
        carries, lower = some.carry > 0, rng.integers(0, BASE - 1, n)
        a[:, place - 2] = lower + carries
        others = rng.integers(0, np.where(carries, lower + 1, BASE - 1 - lower))
        b[:, place - 2] = np.where(carries, BASE - 1 - others, others)
    return sums.tokens(a, b)


def written(bounds: Bounds, ids: Array) -> Array:
    """The digit that the model writes after each right beginning of sums [n, LENGTH]: [n, 11]."""
    attention, values = bounds.attention.middle, bounds.values.middle
    found = np.empty((len(ids), PLACES + 1), int)
    for t in range(FIRST, LENGTH - 1):
        here, there = ids[:, t], ids[:, : t + 1]
        mid = bounds.w["W_E"][here]
        for h, head in enumerate(HEADS):
            distance = t - np.arange(t + 1)
            share = attention[distance, h, here[:, None], there]  # [n, t + 1]
            share = share / share.sum(1, keepdims=True)
            mid = mid + (share[..., None] * values[there]).sum(1) @ bounds.w[f"{head}.W_O"]
        found[:, t - FIRST] = logits(bounds, mid).argmax(1)
    return found


def logits(bounds: Bounds, mid: Array) -> Array:
    """The logits of streams after attention, up to a factor: [n, digits]."""
    w, mlp = bounds.w, f"{BLOCK}.mlp"
    y = mid / np.sqrt((mid**2).mean(1, keepdims=True) + bounds.eps) * w[f"{BLOCK}.ln2.w"]
    gate = y @ w[f"{mlp}.W_gate"]
    post = gate / (1 + np.exp(-gate)) * (y @ w[f"{mlp}.W_in"])
    return np.asarray((mid + post @ w[f"{mlp}.W_out"]) * w["ln_final.w"] @ w["W_E"].T)
