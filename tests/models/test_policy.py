"""GRPO as cells: 200 steps against torch, and what the example prints."""

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from conftest import script

from cellformer.engine import Evaluator
from cellformer.engine.learning import policy

SETTINGS = (("balanced", 0.02), ("balanced", 0.2), ("ends with a credit", 0.5))


@pytest.fixture(scope="module")
def example() -> ModuleType:
    found: ModuleType = script("learn_from_a_reward", "benchmarks")
    return found


@pytest.fixture(scope="module")
def weights(example: ModuleType) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = example.imitator(0)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "beta"), SETTINGS)
def test_200_steps_equal_torch(
    torch: Any, example: ModuleType, weights: dict[str, np.ndarray], kind: str, beta: float
) -> None:
    numbers = example.random_numbers(0)
    ours = list(example.learn(weights, numbers, kind, beta))
    theirs = by_torch(torch, weights, numbers, kind, beta)
    assert len(ours) == len(theirs) == 200
    for (ids, loss, after), (ids_, loss_, after_) in zip(ours, theirs, strict=True):
        assert (ids == ids_).all()
        assert loss == pytest.approx(loss_, abs=1e-9)
        for name, w in after.items():
            assert np.abs(w - after_[name]).max() < 1e-9


def by_torch(
    torch: Any, weights: dict[str, np.ndarray], numbers: np.ndarray, kind: str, beta: float
) -> list[tuple[Any, float, dict[str, np.ndarray]]]:
    """The texts, the loss and the next weights of each step, written out in torch."""
    w = {name: torch.tensor(x, requires_grad=True) for name, x in weights.items()}
    base = {name: torch.tensor(x) for name, x in weights.items()}
    adam, found = torch.optim.Adam(w.values(), 0.01), []
    for row in numbers:
        chance = torch.tensor(row)
        ids = torch.full((8, 8), 2)
        with torch.no_grad():
            for t in range(7):
                ends = forward(torch, w, ids[:, :-1])[:, t].softmax(-1).cumsum(-1)
                ids[:, t + 1] = (chance[:, t, None] >= ends[:, :2]).sum(1)
        own = ids[:, 1:]
        before = (own == 2).int().cumsum(1) - (own == 2).int()
        mask, ended = before == 0, (own == 2).any(1)
        debits, credits = ((own == k) & mask for k in (0, 1))
        n = mask.sum(1)
        if kind == "balanced":
            right = ended & (debits.sum(1) == credits.sum(1)) & (debits.sum(1) > 0)
        else:
            last = own.gather(1, (n - 2).clamp(min=0)[:, None])[:, 0]
            right = ended & (n > 1) & (last == 1)
        r = right.double()
        advantage = ((r - r.mean()) / (r.std(unbiased=False) + 1e-4))[:, None]
        new, reference = (logs(torch, x, ids) for x in (w, base))
        ratio = (new - new.detach()).exp()
        gain = torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)
        kl = (reference - new).exp() - (reference - new) - 1
        loss = -(((gain - beta * kl) * mask).sum(1) / n).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
        after = {name: x.detach().numpy().copy() for name, x in w.items()}
        found.append((own.numpy().copy(), loss.item(), after))
    return found


def logs(torch: Any, w: dict[str, Any], ids: Any) -> Any:
    """The logarithm of the probability of each word that follows."""
    return forward(torch, w, ids[:, :-1]).log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0]


def forward(torch: Any, w: dict[str, Any], ids: Any) -> Any:
    """The logits after each word."""

    def norm(x: Any) -> Any:
        return x / (x.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()

    t = ids.shape[1]
    x = w["W_E"][ids] + w["W_pos"][:t]
    y, out = norm(x), 0
    for head in ("blocks.0.attn.h0.", "blocks.0.attn.h1."):
        q, k, v = (y @ w[f"{head}W_{which}"] for which in "QKV")
        scores = q @ k.transpose(-1, -2) / 2
        hidden = torch.ones(t, t).triu(1).bool()
        out = out + scores.masked_fill(hidden, -torch.inf).softmax(-1) @ v @ w[f"{head}W_O"]
    x = x + out
    x = x + (norm(x) @ w["blocks.0.mlp.W_in"]).relu() @ w["blocks.0.mlp.W_out"]
    return x @ w["W_U"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_model_learns_to_balance_and_a_penalty_keeps_variety(
    example: ModuleType, seed: int
) -> None:
    """By the exact probability of each of its 255 texts."""
    begun = example.imitator(seed)
    found = [example.measured(begun)]
    for beta in (0.02, 0.5):
        *_, last = example.learn(begun, example.random_numbers(seed), "balanced", beta)
        found.append(example.measured(last[2]))
    before, free, kept = found
    assert 0.2 < before.right < 0.22
    assert free.right > 0.98
    assert 0.65 < kept.right < 0.8
    assert free.variety < 0.2 < 2.5 < kept.variety < before.variety


@pytest.mark.slow
def test_clipping_stops_the_gain_in_one_direction(
    example: ModuleType, weights: dict[str, np.ndarray]
) -> None:
    """With a ratio of e^0.5, the clip range of 0.2 limits a good text and not a bad one."""
    graph, _ = example.step(weights, 0.02)
    live = Evaluator(graph)
    live.set("policy.ratio", 0, 0, 1.6)
    live.set("advantage", 0, 0, 2.0)
    assert live["policy.gain"][0, 0] == pytest.approx(2.4)
    live.set("advantage", 0, 0, -2.0)
    assert live["policy.gain"][0, 0] == pytest.approx(-3.2)
    assert policy.CLIP == 0.2
