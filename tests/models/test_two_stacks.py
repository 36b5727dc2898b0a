"""Encoder-decoders: greedy answers against transformers, buckets of distances, what is refused."""

from pathlib import Path

import numpy as np
import pytest
from conftest import GOLDEN, cli, told

from engine import InputError
from engine.cells.batch import variants
from engine.cells.gradient import backward
from engine.learning import objective
from engine.models import checkpoint
from engine.models.distance import Buckets
from engine.models.generate import generate

GOLD = GOLDEN / "t5"
N_SENTENCES, N_MORE = 10, 8


@pytest.mark.parametrize("name", ["t5", "flan-t5"])
def test_greedy_answers_equal_transformers(name: str, torch, transformers) -> None:
    reference = transformers.T5ForConditionalGeneration.from_pretrained(GOLDEN / name).eval()
    model, rng = checkpoint.load(GOLDEN / name), np.random.default_rng(3)
    for _ in range(N_SENTENCES):
        source = rng.integers(2, 17, int(rng.integers(1, 12))).tolist()
        asked = {"max_new_tokens": N_MORE, "do_sample": False, "eos_token_id": None}
        expected = reference.generate(torch.tensor([source]), **asked)[0].tolist()
        steps = generate(model.reading(source), [model.spec.start], N_MORE)
        assert [model.spec.start, *(step.token for step in steps)] == expected


@pytest.mark.parametrize("both_ways", [True, False])
@pytest.mark.parametrize(("n", "farthest"), [(32, 128), (8, 20), (6, 5), (64, 256), (9, 100)])
def test_distances_are_sorted_as_in_transformers(n, farthest, both_ways, torch) -> None:
    from transformers.models.t5.modeling_t5 import T5Attention

    distance = np.arange(-400, 400)
    expected = T5Attention._relative_position_bucket(
        torch.tensor(distance), both_ways, n, farthest
    ).numpy()
    np.testing.assert_array_equal(Buckets(n, farthest, both_ways).of(distance), expected)


def test_generate_prints_the_answer_alone() -> None:
    done = cli("generate", GOLD, "--ids", "3,1,4", "-n", "3")
    assert done.out.split() == ["11", "11", "11"]


@pytest.mark.parametrize("name", ["encoder.blocks.0.attn.h1.W_V", "blocks.0.cross.h0.W_K", "W_E"])
def test_gradients_go_through_both_stacks(name: str) -> None:
    graph = checkpoint.load(GOLD).reading([3, 1, 4]).graph([0, 5])
    score = objective.logit(graph, 1, 7, 4)
    gradient = backward(graph, score)[name]
    at = (name, 3, 1)
    start = graph.values[name][3, 1]
    up, down = variants(graph, [{at: start + 1e-5}, {at: start - 1e-5}])[score.name].ravel()
    assert graph.values[gradient.name][3, 1] == pytest.approx((up - down) / 2e-5, abs=1e-8)


def test_what_is_ablated_and_swept_is_of_both_stacks() -> None:
    parts = told("ablate", GOLD, "--ids", "3,1,4")["parts"]
    change = {part["part"]: part["change"] for part in parts}
    assert {"encoder.blocks.0.attn.h0", "blocks.0.cross", "blocks.0.mlp"} <= set(change)
    assert all(change.values())
    cell = "encoder.blocks.0.attn.switch[0,0]"
    asked = ("--ids", "3,1,4", "--from", "0", "--to", "1", "--steps", "2")
    off, on = told("sweep", GOLD, cell, *asked)["values"]
    moved = off["probability"] - on["probability"]
    assert moved == pytest.approx(change["encoder.blocks.0.attn"], abs=1e-12)


def test_attribution_of_a_word_sums_to_its_logit() -> None:
    found = told("run", GOLD, "--ids", "3,1,4", "--target", "5", "--lens")
    written = {share["part"]: share["logit"] for share in found["attribution"]}
    assert "blocks.0.cross.h1.result" in written and len(found["lens"]) == 4
    (logit,) = [word["logit"] for word in found["words"] if word["word"] == "5"]
    assert sum(written.values()) == pytest.approx(logit, abs=1e-12)


@pytest.mark.parametrize(
    "asked",
    [
        ("patch", GOLD, "--ids", "3,1,4", "--against", "2,1,4"),
        ("why", GOLD),
        ("build", GOLD, "--ids", "3,1,4"),
        ("why", GOLD, "--ids", "3,1,4", "--say", "5"),
    ],
)
def test_studies_of_one_stack_refuse_two(asked) -> None:
    done = cli(*asked)
    assert done.code == 2 and "stack" in done.err and done.err.count("\n") == 1


def test_an_answer_depends_on_the_source() -> None:
    model = checkpoint.load(GOLD)
    one, other = (model.reading(ids).graph([0]).values["logits"] for ids in ([3, 1, 4], [3, 1, 5]))
    assert np.abs(one - other).max() > 1e-3


def test_a_longer_source_than_the_context_is_refused() -> None:
    with pytest.raises(InputError, match="13 tokens, and the context holds 12"):
        checkpoint.load(GOLD).reading([1] * 13)


def test_an_unknown_activation_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes((GOLD / "model.safetensors").read_bytes())
    text = (GOLD / "config.json").read_text().replace('"relu"', '"double-relu"', 2)
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(InputError, match="'double-relu' is not known here"):
        checkpoint.load(tmp_path)
