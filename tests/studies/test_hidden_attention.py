"""The attention hidden in a recurrence: by its weights every channel reads what the model has."""

from pathlib import Path

import numpy as np
import pytest
from conftest import golden_models

from cellformer.engine import Evaluator, Graph, InputError, Model
from cellformer.engine.models import architectures
from cellformer.engine.models.architectures.mamba import MambaSpec
from cellformer.engine.models.foreign import Config
from cellformer.engine.models.forward import weight_shapes
from cellformer.engine.studies import hidden_attention
from cellformer.engine.text.tokenizer import WordList

CLOSE = 1e-10
RECURRENT = sorted(n for n, m in golden_models().items() if isinstance(m.spec, MambaSpec))


def drawn(seed: int) -> Model:
    """A Mamba of random sizes and weights."""
    rng = np.random.default_rng(seed)
    config = {
        "vocab_size": 7,
        "hidden_size": int(rng.integers(1, 9)),
        "state_size": int(rng.integers(1, 6)),
        "num_hidden_layers": int(rng.integers(1, 4)),
        "expand": int(rng.integers(1, 4)),
        "conv_kernel": int(rng.integers(1, 6)),
        "use_bias": bool(rng.integers(2)),
    }
    architecture = architectures.find("mamba")
    spec = architecture.read_config(Config(Path("random"), config))
    shapes = weight_shapes(architecture.forward, spec)
    weights = {name: rng.normal(0, 0.7, shape) for name, shape in shapes.items()}
    words = WordList(tuple(f"w{i}" for i in range(7)))
    return Model(spec, weights, words, architecture=architecture.forward)


def gaps(graph: Graph) -> list[float]:
    """How far each channel is, at most, from what its layer has."""
    found = []
    for of in hidden_attention.recurrences(graph):
        for channel in range(of.n_channels):
            z = graph.values[of.z.name][:, channel]
            found.append(np.abs(hidden_attention.read(graph.values, of, channel) - z).max())
    assert found
    return found


@pytest.mark.parametrize("name", RECURRENT)
def test_hidden_attention_reproduces_every_channel_of_golden_models(name: str) -> None:
    assert max(gaps(golden_models()[name].graph([3, 1, 4, 1, 5, 9, 2]))) < CLOSE


@pytest.mark.parametrize("seed", range(30))
def test_hidden_attention_reproduces_every_channel_of_random_models(seed: int) -> None:
    assert max(gaps(drawn(seed).graph([3, 1, 4, 1, 5, 2, 6]))) < CLOSE


@pytest.mark.parametrize("name", RECURRENT)
def test_hidden_attention_in_place_of_the_states_gives_the_same_logits(name: str) -> None:
    graph = golden_models()[name].graph([3, 1, 4, 1, 5])
    live = Evaluator(graph)
    for of in hidden_attention.recurrences(graph):
        for channel in range(of.n_channels):
            for token, x in enumerate(hidden_attention.read(live, of, channel)):
                live.set(of.z.name, token, channel, float(x))
    np.testing.assert_allclose(live["logits"], graph.values["logits"], rtol=0, atol=CLOSE)


def test_a_weight_is_what_an_input_changes_at_a_token() -> None:
    """Without the convolution: only the states carry the input of token 1 on."""
    graph = drawn(5).graph([3, 1, 4, 1, 5])
    of, channel = hidden_attention.recurrences(graph)[-1], 0
    fixed = [of.step.name, of.B.name, of.C.name]
    live = Evaluator(graph)
    for name in fixed:  # what follows from the input is held as it is
        for i, j in np.ndindex(*graph[name].shape):
            live.set(name, i, j, float(graph.values[name][i, j]))
    live.set(of.x.name, 1, channel, float(graph.values[of.x.name][1, channel]) + 1.0)
    moved = (live[of.z.name] - graph.values[of.z.name])[:, channel]
    weights = hidden_attention.weights(graph.values, of, channel)[:, 1]
    weights[1] += graph.values[of.D.name][0, channel]
    np.testing.assert_allclose(moved, weights, rtol=0, atol=CLOSE)


def test_average_is_the_mean_of_all_channels_and_sees_no_later_token() -> None:
    graph = golden_models()["mamba"].graph([3, 1, 4, 1, 5])
    (of,) = hidden_attention.of_layer(graph, 1)
    each = [hidden_attention.weights(graph.values, of, c) for c in range(of.n_channels)]
    found = hidden_attention.average(graph.values, [of])
    np.testing.assert_allclose(found, sum(each) / len(each), rtol=1e-12)
    assert (found[np.triu_indices(5, 1)] == 0).all() and (found[np.tril_indices(5)] != 0).all()


def test_what_is_taken_of_tokens_before_is_the_rest_of_what_is_read() -> None:
    graph = golden_models()["mamba"].graph([3, 1, 4, 1, 5])
    (of,) = hidden_attention.of_layer(graph, 0)
    taken = hidden_attention.taken(graph.values, of, 3)
    for channel in range(of.n_channels):
        weights = hidden_attention.weights(graph.values, of, channel)[3, :3]
        assert taken[channel] == pytest.approx(weights @ graph.values[of.x.name][:3, channel])


def test_what_has_no_hidden_attention_is_refused() -> None:
    graph = golden_models()["mamba"].graph([3, 1])
    with pytest.raises(
        InputError, match=r"layer 2 has no recurrence; choose a layer that has one, from 0 to 1$"
    ):
        hidden_attention.of_layer(graph, 2)
    with pytest.raises(InputError, match="has no channel 12; its channels run from 0 to 11"):
        (of,) = hidden_attention.of_layer(graph, 0)
        hidden_attention.weights(graph.values, of, 12)
    with pytest.raises(
        InputError, match=r"no state-space recurrence \(as in Mamba\), so no layer has channels"
    ):
        hidden_attention.of_layer(golden_models()["gpt2"].graph([3, 1]), 0)
