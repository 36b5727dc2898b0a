"""Generation: the same tokens as repeated full passes, one new row at a time."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from conftest import golden_models, random_model

from cellformer.engine import InputError, ModelSpec
from cellformer.engine.models.answering import Rules
from cellformer.engine.models.choosing import Sampling
from cellformer.engine.models.generate import generate

MODELS = [  # without rules for answers; M2M-100, which counts no padding, is in test_two_stacks.py
    replace(model, rules=Rules())
    for model in golden_models().values()
    if model.spec.gives == "next word" and not model.spec.first_position
]
N_CASES = 3 * len(MODELS)


def repeated(model, ids: list[int], n: int, sampling: Sampling, seed: int) -> list[int]:
    """A full pass for every token."""
    numbers, ids = np.random.default_rng(seed).random(len(ids) + n), list(ids)
    for _ in range(n):
        logits = model.graph(ids).values["logits"][-1]
        ids.append(sampling.choose(logits, float(numbers[len(ids)]), ids))
    return ids[-n:]


@pytest.mark.slow
def test_generation_equals_repeated_full_passes() -> None:
    """Three times for each architecture."""
    for case in range(N_CASES):
        rng = np.random.default_rng(case)
        model = MODELS[case % len(MODELS)]
        ids = rng.integers(0, model.spec.d_vocab, int(rng.integers(1, 6))).tolist()
        n = min(int(rng.integers(1, 7)), model.spec.n_ctx - len(ids))
        sampling = Sampling(
            temperature=float(rng.choice([0, 0.5, 1, 2])),
            top_k=int(rng.choice([0, 1, 3])),
            top_p=float(rng.choice([1, 0.9, 0.3])),
            min_p=float(rng.choice([0, 0.2])),
            repetition_penalty=float(rng.choice([1, 0.7, 1.5])),
        )
        steps = list(generate(model, ids, n, sampling, seed=case))
        assert [s.token for s in steps] == repeated(model, ids, n, sampling, case), case


@pytest.mark.parametrize("model", MODELS)
def test_each_step_computes_one_row_of_every_block(model) -> None:
    ids, n = [1, 2, 3], 5
    computed = [
        sum(b.n_cells for b in model.graph([0] * n_tokens) if b.op)
        for n_tokens in range(len(ids), len(ids) + n)
    ]
    row = [after - before for before, after in pairwise(computed)]
    steps = list(generate(model, ids, n, Sampling()))
    assert [s.n_full for s in steps] == computed
    assert [s.n_cells for s in steps] == [computed[0], *row]


@pytest.mark.parametrize(
    ("sampling", "r", "token"),
    [
        (Sampling(), 0.99, 1),
        (Sampling(temperature=1), 0.0, 1),
        (Sampling(temperature=1), 0.61, 3),
        (Sampling(temperature=1), 0.999, 0),
        (Sampling(temperature=1, top_k=1), 0.999, 1),
        (Sampling(temperature=1, top_p=0.5), 0.999, 1),
        (Sampling(temperature=1, top_p=0.7), 0.999, 3),
        (Sampling(temperature=1e-9), 0.999, 1),
    ],
)
def test_sampling_by_hand(sampling, r, token) -> None:
    """Shares of 0.05, 0.6, 0.1, 0.25: in order 1, 3, 2, 0, cumulative 0.6, 0.85, 0.95, 1."""
    assert sampling.choose(np.log([0.05, 0.6, 0.1, 0.25]), r) == token


@pytest.mark.parametrize(
    "wrong", [{"temperature": -1}, {"temperature": np.nan}, {"top_k": -1}, {"top_p": 0}]
)
def test_impossible_sampling_is_refused(wrong) -> None:
    with pytest.raises(InputError):
        Sampling(**wrong)


def test_impossible_generation_is_refused() -> None:
    model = random_model(ModelSpec(d_vocab=3, d_model=2, n_ctx=4))
    both_ways = random_model(
        ModelSpec(d_vocab=3, d_model=2, n_ctx=4, n_layers=1, n_heads=1, d_head=2, causal=False)
    )
    for refused, ids, n in [(model, [0], 4), (model, [], 1), (model, [0], 0), (both_ways, [0], 1)]:
        with pytest.raises(InputError):
            generate(refused, ids, n, Sampling())


@pytest.mark.slow
def test_words_drawn_are_those_of_transformers_processors(torch, transformers) -> None:
    """In the order in which its `generate` applies them."""
    of, rng = transformers.generation.logits_process, np.random.default_rng(3)
    for case in range(60):
        logits, so_far = rng.normal(size=200) * 3, rng.integers(0, 200, 30)
        how = Sampling(1.3, int(rng.choice([0, 40])), float(rng.choice([0.8, 1])), 0.03, 1.4)
        steps = [of.RepetitionPenaltyLogitsProcessor(how.repetition_penalty)]
        steps += [of.TemperatureLogitsWarper(how.temperature)]
        steps += [of.TopKLogitsWarper(how.top_k)] if how.top_k else []
        steps += [of.TopPLogitsWarper(how.top_p)] if how.top_p < 1 else []
        steps += [of.MinPLogitsWarper(how.min_p)]
        scores = torch.tensor(logits[None], dtype=torch.float64)
        for step in steps:
            scores = step(torch.tensor(so_far[None]), scores)
        shares = torch.softmax(scores, -1)[0].numpy()
        order = np.argsort(-shares, kind="stable")
        ends = np.cumsum(shares[order])
        for r in rng.random(5):
            found = how.choose(logits, float(r), so_far.tolist())
            assert found == order[np.searchsorted(ends, r, side="right")], case
