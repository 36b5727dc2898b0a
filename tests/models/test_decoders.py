"""New models of every decoder: their weights to begin with, and what transformers makes of them."""

from pathlib import Path

import numpy as np
import pytest

from cellformer.engine.learning import decoders, training
from cellformer.engine.learning.recipe import Recipe
from cellformer.engine.models import checkpoint
from cellformer.engine.text.tokenizer import Characters

WORDS = Characters(tuple("abcdefghijklmnopqrst"))
SIZES = {"d_vocab": 20, "n_ctx": 8, "d_model": 16, "n_layers": 2, "n_heads": 2, "d_mlp": 64}
RECIPE = Recipe(steps=3, batch=4, embed_scale=0.05, learning_rate=0.05, warmup=1)
IDS = [3, 1, 4, 1, 5, 9, 2]


def drawn(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.integers(0, 20, (n, 9))


@pytest.mark.parametrize("name", decoders.names())
def test_transformers_loads_a_trained_decoder(
    name: str, tmp_path: Path, torch, transformers
) -> None:
    sizes = SIZES | ({"n_heads": 4} if name == "codegen" else {})  # a multiple of four
    decoder = decoders.new(name, **sizes)
    *_, weights = training.train(decoder, RECIPE, drawn, 0)
    model = training.trained(decoder, weights, WORDS)
    checkpoint.save(model, tmp_path / "m")
    again = checkpoint.load(tmp_path / "m")
    assert again.spec == decoder.spec
    theirs, told = transformers.AutoModelForCausalLM.from_pretrained(
        tmp_path / "m", output_loading_info=True
    )
    assert not told["missing_keys"] and not told["unexpected_keys"]
    theirs.set_experts_implementation("eager")
    with torch.no_grad():
        logits = theirs.eval()(torch.tensor([IDS])).logits[0].numpy()
    ours = again.graph(IDS).values["logits"]
    np.testing.assert_allclose(ours, logits, rtol=0, atol=1e-5 * np.abs(ours).max())


@pytest.mark.parametrize(("name", "gain"), [("gpt2", 1), ("llama", 1), ("gemma", 0), ("phi", 1)])
def test_weights_to_begin_with(name: str, gain: int) -> None:
    """Norms change nothing: a gain is 1, or 0 where 1 is added to it. Biases are 0."""
    decoder = decoders.new(name, **SIZES)
    weights = decoder.initial(RECIPE, np.random.default_rng(0))
    assert (weights["blocks.0.ln1.w"] == gain).all()
    assert not any(w.any() for name, w in weights.items() if w.ndim == 1 and ".w" not in name)
    assert weights["W_E"].std() == pytest.approx(0.05, rel=0.2)
    assert weights["blocks.1.mlp.W_in"].std() == pytest.approx(0.02, rel=0.2)
    assert weights["blocks.1.mlp.W_out"].std() == pytest.approx(0.01, rel=0.2)


def test_a_state_space_begins_with_slow_and_fast_memory() -> None:
    """Rates of 1 to 8 and steps of 0.001 to 0.1: a number of a state keeps 45 % to 99.9 % of
    itself from token to token. The input is passed on, too."""
    weights = decoders.new("mamba", **SIZES).initial(RECIPE, np.random.default_rng(0))
    steps = np.log1p(np.exp(weights["blocks.1.ssm.b_step"]))
    np.testing.assert_allclose(steps[[0, -1]], [0.001, 0.1])
    rates = np.exp(weights["blocks.1.ssm.A_log"])
    np.testing.assert_allclose(rates[:, 3], np.arange(1, 9))
    kept = np.exp(-steps * rates)
    assert kept.min() == pytest.approx(0.449, abs=0.001) and kept.max() == pytest.approx(0.999)
    assert (weights["blocks.1.ssm.D"] == 1).all()
