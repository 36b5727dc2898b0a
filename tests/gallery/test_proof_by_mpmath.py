"""The proof of adder anew, with 30 decimals: mpmath's intervals, and a pass of one's own."""

from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from conftest import library

from cellformer.engine.cells.batch import filled
from cellformer.engine.learning.in_cells import blank_pass
from cellformer.workbooks import adder
from cellformer.workbooks.adder import intervals, proof, sums, trained
from cellformer.workbooks.adder.sums import FIRST, LENGTH

N_CASES = 2000
DEPTH = 14


@pytest.fixture(scope="module")
def mpmath() -> ModuleType:
    found = library("mpmath")
    found.iv.dps = 30
    return found


class Exact:
    """The pass in interval arithmetic, on lists of mpmath's intervals."""

    def __init__(self, mpmath: ModuleType) -> None:
        self.iv = mpmath.iv
        weights = adder.transformer().weights
        self.w = {name: self.of(w.astype(object)) for name, w in weights.items()}
        self.eps = self.iv.mpf(str(adder.transformer().spec.norm_eps))

    def of(self, x: np.ndarray) -> np.ndarray:
        return np.vectorize(self.iv.mpf, otypes=[object])(x)

    def hull(self, *several: Any) -> Any:
        return self.iv.mpf([min(x.a for x in several).a, max(x.b for x in several).b])

    def normed(self, x: np.ndarray, gain: np.ndarray) -> np.ndarray:
        squares = sum(self.square(value) for value in x)
        return x / self.iv.sqrt(squares / len(x) + self.eps) * gain

    def square(self, x: Any) -> Any:
        ends = self.iv.mpf(x.a) ** 2, self.iv.mpf(x.b) ** 2
        return self.hull(*ends, *([self.iv.mpf(0)] if 0 in x else []))

    def turned(self, x: np.ndarray, distance: int) -> np.ndarray:
        angles = [distance / self.iv.mpf(3) ** (self.iv.mpf(i) / 2) for i in (0, 1)]
        cos, sin = ([f(a) for a in angles] for f in (self.iv.cos, self.iv.sin))
        low = [x[i] * cos[i] - x[i + 2] * sin[i] for i in (0, 1)]
        return np.array(low + [x[i + 2] * cos[i] + x[i] * sin[i] for i in (0, 1)])

    @cached_property
    def values(self) -> np.ndarray:
        return self.inputs @ self.w["blocks.0.attn.kv0.W_V"]

    @cached_property
    def inputs(self) -> np.ndarray:
        return np.array([self.normed(x, self.w["blocks.0.ln1.w"]) for x in self.w["W_E"]])

    @cached_property
    def attention(self) -> np.ndarray:
        """e^score: [head, distance, digit here, digit there]."""
        key = self.inputs @ self.w["blocks.0.attn.kv0.W_K"]
        keys = [self.normed(x, self.w["blocks.0.attn.k_norm"]) for x in key]
        found = []
        for h in (0, 1):
            query = self.inputs @ self.w[f"blocks.0.attn.h{h}.W_Q"]
            queries = np.array([self.normed(x, self.w["blocks.0.attn.q_norm"]) for x in query])
            turned = [np.array([self.turned(k, -d) for k in keys]) for d in range(LENGTH - 1)]
            found.append([np.vectorize(self.iv.exp)(queries @ k.T / 2) for k in turned])
        return np.array(found)

    @cached_property
    def either(self) -> dict[tuple[int, int, int], np.ndarray]:
        """The bounds over all digits there of e^score, and of it times each value."""
        found = {}
        for at in np.ndindex(self.attention.shape[:3]):
            e = self.attention[at]
            terms = self.values * e[:, None]
            found[at] = np.array([self.hull(*e), *(self.hull(*x) for x in terms.T)])
        return found

    def box(self, place: int, a: int, b: int, a1: int, b1: int, carry: int) -> np.ndarray:
        t, here = FIRST + place, (a1 + b1 + carry) % 10
        tokens: dict[int, int] = {0: 0, 11: 0, 12: 0, 23: 0}
        if place:
            tokens |= {place: a1, place + 12: b1}
        tokens |= {place + 1: a, place + 13: b} if place < 10 else {}
        tokens |= {t: here}
        stream = self.w["W_E"][here]
        hull = [self.hull(*column) for column in self.values.T]
        for h in (0, 1):
            sums_ = self.of(np.zeros(5, object))
            for j in range(t + 1):
                if j in tokens:
                    e = self.attention[h, t - j, here, tokens[j]]
                    sums_ = sums_ + np.array([e, *(self.values[tokens[j]] * e)])
                else:
                    sums_ = sums_ + self.either[h, t - j, here]
            mean = [self.both(x / sums_[0], y) for x, y in zip(sums_[1:], hull, strict=True)]
            stream = stream + np.array(mean) @ self.w[f"blocks.0.attn.h{h}.W_O"]
        return stream

    def both(self, x: Any, y: Any) -> Any:
        return self.iv.mpf([max(x.a, y.a).a, min(x.b, y.b).b])

    def lead(self, mid: np.ndarray, right: int) -> float:
        y = self.normed(mid, self.w["blocks.0.ln2.w"])
        gate, pre = (y @ self.w[f"blocks.0.mlp.{x}"] for x in ("W_gate", "W_in"))
        post = np.array([self.silu(g) for g in gate]) * pre
        words = self.w["W_E"] * self.w["ln_final.w"]
        apart = [words[right] - words[d] for d in range(10) if d != right]
        W_out = self.w["blocks.0.mlp.W_out"]
        return min(float((x @ mid + (W_out @ x) @ post).a) for x in apart)

    def silu(self, x: Any) -> Any:
        ends = [self.iv.mpf(e) / (1 + self.iv.exp(-self.iv.mpf(e))) for e in (x.a, x.b)]
        least = self.iv.mpf(intervals.SILU_LOWEST)
        return self.hull(*ends, *([least / (1 + self.iv.exp(-least))] if least in x else []))

    def proved(self, box: np.ndarray, right: int, depth: int = DEPTH) -> bool:
        if self.lead(box, right) > 0:
            return True
        k = max(range(len(box)), key=lambda i: float(box[i].delta.b))
        ends = [box[k].a, box[k].mid, box[k].b]
        halves = [box.copy(), box.copy()]
        for half, ab in zip(halves, (ends[:2], ends[1:]), strict=True):
            half[k] = self.iv.mpf([x.a for x in ab])
        return depth > 0 and all(self.proved(half, right, depth - 1) for half in halves)


@pytest.fixture(scope="module")
def exact(mpmath: ModuleType) -> Exact:
    return Exact(mpmath)


def inside(inner: Any, low: float, high: float) -> bool:
    return bool(low <= inner.a) and bool(inner.b <= high)


@pytest.mark.slow
def test_random_cases_are_proved_anew(exact: Exact) -> None:
    """Each box lies within that of the proof, and each lead is at least as large."""
    rng, bounds = np.random.default_rng(11), proof.Bounds(adder.transformer())
    for place in range(11):
        every = proof.cases(place)
        some = every.of(rng.integers(0, len(every.a), N_CASES // 11 + 1))
        boxes = bounds.box(some)
        leads = bounds.lead(boxes, some.right)
        for n in range(len(some.a)):
            digits = [int(x[n]) for x in (some.a, some.b, some.a_before, some.b_before, some.carry)]
            box = exact.box(place, *digits)
            for k, x in enumerate(box):
                assert inside(x, boxes.low[n, k], boxes.high[n, k])
            right = (digits[0] + digits[1] + sum(digits[2:]) // 10) % 10
            lead = exact.lead(box, right)
            assert leads[n] <= lead <= leads[n] + 1e-3
            assert exact.proved(box, right)


@pytest.mark.slow
def test_rounding_is_far_less_than_the_room_for_it(exact: Exact) -> None:
    """The engine's streams after attention, beside exact ones: less than a tenth of SLACK."""
    ids = sums.drawn(np.random.default_rng(12), 20)
    graph = blank_pass(trained.decoder(), adder.transformer().weights, LENGTH - 1)
    held = filled(graph, {"tokens": ids[:, :-1, None].astype(float)})["blocks.0.resid_mid"]
    for row, tokens in zip(held, ids, strict=True):
        for t in range(FIRST, LENGTH - 1):
            here = tokens[t]
            stream, size = exact.w["W_E"][here], abs(adder.transformer().weights["W_E"][here])
            for h, head in enumerate(trained.HEADS):
                e = np.array([exact.attention[h, t - j, here, tokens[j]] for j in range(t + 1)])
                mean = e @ exact.values[tokens[: t + 1]] / e.sum()
                W_O = adder.transformer().weights[f"{head}.W_O"]
                stream = stream + mean @ exact.w[f"{head}.W_O"]
                size = size + abs(np.array([float(x.mid) for x in mean])) @ abs(W_O)
            away = [float(abs(x - y).b) for x, y in zip(row[t], stream, strict=True)]
            assert (np.array(away) < intervals.SLACK / 10 * size).all()
