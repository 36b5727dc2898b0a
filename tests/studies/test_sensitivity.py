"""What moves a logit: `gradient --json` against `run --set`, estimates beside real effects."""

import numpy as np
import pytest
from conftest import GOLDEN, cli, told

from cellformer.engine.cells.gradient import backward
from cellformer.engine.learning import objective
from cellformer.engine.models import checkpoint
from cellformer.engine.studies import ablation, lens, sensitivity

pytestmark = pytest.mark.slow

STEP = 1e-4


def logits(*sets: str) -> np.ndarray:
    changes = [text for change in sets for text in ("--set", change)]
    ran = told("run", "dialogue-game", "--show", "logits", *changes)
    return np.array(ran["blocks"]["logits"][-1])


def test_gradients_equal_finite_differences_through_set() -> None:
    """A few of the weights that `benchmarks/gradients.py` takes fifty of."""
    found = told("gradient", "dialogue-game", "--top", 3)
    target = int(np.argmax(logits()))
    largest = max(np.abs(g).max() for g in found["gradient"].values())
    rng = np.random.default_rng(0)
    weights = checkpointed()
    for name in rng.choice(sorted(found["gradient"]), 2, replace=False):
        i, j = (int(rng.integers(n)) for n in weights[name].shape)
        at = f"{name}[{i},{j}]"
        up, down = (
            logits(f"{at}={weights[name][i, j] + sign * STEP:.17g}")[target] for sign in (1, -1)
        )
        expected = (up - down) / (2 * STEP)
        assert abs(found["gradient"][name][i][j] - expected) < 1e-6 * largest, at


def checkpointed() -> dict[str, np.ndarray]:
    from cellformer import workbooks

    model = workbooks.find("dialogue-game").model()
    return {name: np.atleast_2d(w) for name, w in model.weights.items()}


def test_largest_gradients_come_first() -> None:
    model = checkpoint.load(GOLDEN / "gpt2")
    graph = model.graph([3, 1, 4, 1, 5])
    found = sensitivity.of_logit(graph, -1, 2, 6)
    every = np.concatenate([np.abs(g).ravel() for g in found.gradients.values()])
    largest = found.largest(5)
    np.testing.assert_allclose([abs(w.gradient) for w in largest], np.sort(every)[::-1][:5])
    for w in found.largest(5, times_weight=True):
        assert w.estimate == -w.value * w.gradient
        block, i, j = graph.parse(w.cell)
        other = {**model.weights, block.name: np.array(graph.values[block.name])}
        other[block.name][i, j] = 0.0
        logit = graph.values["logits"][-1]
        again = type(model)(**{**vars(model), "weights": other}).graph([3, 1, 4, 1, 5])
        after = again.values["logits"][-1]
        change = (after[2] - after[6]) - (logit[2] - logit[6])
        assert w.effect == pytest.approx(change, abs=1e-12)
    assert sum(g.size for g in found.groups()) == pytest.approx(every.sum())
    assert sum(g.n for g in found.groups(heads=True)) == every.size


def test_estimates_of_switched_off_parts() -> None:
    graph = checkpoint.load(GOLDEN / "mixtral").graph([3, 1, 4, 1, 5])
    effects = {e.part: e.change for e in ablation.effects(graph, 2)}
    found = sensitivity.of_logit(graph, -1, 2)
    parts = found.parts()
    assert [part.name for part in parts] == list(effects)
    for part in parts:
        assert part.effect == pytest.approx(effects[part.name], abs=1e-12)
    errors = dict(sensitivity.errors(parts))
    assert errors["integrated"] < errors["patching"] / 2


@pytest.mark.parametrize("name", ["gpt2", "llama", "olmo2", "phi", "opt-350m"])
def test_attribution_is_a_gradient_with_the_norms_held(name: str) -> None:
    """Each writer's share is what it wrote, times the gradient that reaches it directly."""
    model, ids, target = checkpoint.load(GOLDEN / name), [3, 1, 4, 1, 5], 2
    viewed = model.graph(ids)
    credits = lens.add_lens(viewed, 4, target, 6).credits["target"]
    graph = model.graph(ids)
    of = objective.logit(graph, 4, target)
    norms = [b for b in graph if b.leaf == "scale" and ".attn." not in b.name]
    found = backward(graph, of, to=[graph[writer] for writer in credits], held=norms)
    for writer, credit in credits.items():
        share = graph.values[writer] * graph.values[found[writer].name]
        expected = viewed.values[credit.name][-1, 0]
        row = share[-1] if share.shape[0] > 1 else share[0]
        assert row.sum() == pytest.approx(expected, abs=1e-10), writer


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("gradient cat-sat --target nothing", "'nothing' is not in the vocabulary"),
        ("gradient cat-sat --rival nothing", "'nothing' is not in the vocabulary"),
        ("gradient attention-by-columns", "has no model; give a cell, such as --target"),
        (f"gradient {GOLDEN}/minilm --ids 3,4", "gives a vector for a sentence"),
        (f"build {GOLDEN}/bert --ids 3,4 --gradient", "--gradient needs a decoder with at most"),
        ("build cat-sat --gradient --live blocks.0", "--gradient needs a decoder with at most"),
    ],
)
def test_gradient_without_logits_is_refused(given: str, said: str, tmp_path) -> None:
    code, _, err = cli(*given.split(), cwd=tmp_path)
    assert code == 2 and said in err and err.count("\n") == 1
