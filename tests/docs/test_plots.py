"""cf.plot: each picture shows the numbers of the graph."""

import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import GOLDEN, golden_models

import cellformer as cf
from cellformer.engine.studies import hidden_attention

pytest.importorskip("matplotlib", reason="pip install 'cellformer[plot]'")
PROMPT = "<BOS> Pietro chiama Paolo"


@pytest.fixture(scope="module")
def game() -> cf.Graph:
    return cf.graph("dialogue-game", PROMPT)


def squares(figure) -> np.ndarray:
    return np.asarray(figure.axes[0].images[0].get_array())


def test_pattern_shows_a_head_and_its_changes(game) -> None:
    name = "blocks.1.attn.h2.pattern"
    assert np.array_equal(squares(cf.plot.pattern(game, "1.2")), game.values[name])
    live = cf.Evaluator(game)
    live.set("blocks.1.attn.h2.scores", 3, 0, 9.0)
    assert np.array_equal(squares(cf.plot.pattern(live, name)), live[name])
    figure = cf.plot.pattern(game)
    assert [axes.get_title() for axes in figure.axes] == [
        f"head {i}.{j}" for i in (0, 1) for j in range(4)
    ]
    assert figure.axes[0].get_yticklabels()[1].get_text() == "1 Pietro"
    with pytest.raises(cf.InputError, match="nearest"):
        cf.plot.pattern(game, "1.9")
    with pytest.raises(cf.InputError, match="no attention pattern named"):
        cf.plot.pattern(game, "blocks.7.*")


def test_hidden_attention_shows_a_channel_and_its_changes() -> None:
    live = cf.Evaluator(golden_models()["mamba2"].graph([3, 1, 4, 1]))
    of, channel = hidden_attention.named(live.graph, "1.2.0")
    assert of.name == "blocks.1.ssm.h2"
    for value in (0.0, 2.0):
        live.set("blocks.1.ssm.h2.A_log", 0, 0, value)
        found = squares(cf.plot.hidden_attention(live, "1.2.0"))
        assert np.array_equal(found, hidden_attention.weights(live, of, channel))
    with pytest.raises(
        cf.InputError, match=r"states of layer 1 are divided into heads; name a head, too: 1\.0\.0"
    ):
        cf.plot.hidden_attention(live, "1.0")


def test_lens_ends_in_the_answer(game) -> None:
    figure = cf.plot.lens("dialogue-game", PROMPT)
    assert squares(figure)[-1] == pytest.approx(game.values["probs"].max(axis=1))
    words = [text.get_text() for text in figure.axes[0].texts]
    assert words[-1] == "Tarso" and len(words) == squares(figure).size


def test_attribution_sums_to_the_lead(game) -> None:
    figure = cf.plot.attribution("dialogue-game", PROMPT, "Tarso", "vice")
    words = cf.load("dialogue-game").vocabulary.texts
    logits = game.values["logits"][-1]
    lead = logits[words.index("Tarso")] - logits[words.index("vice")]
    assert sum(bar.get_width() for bar in figure.axes[0].patches) == pytest.approx(lead, rel=1e-9)


def test_stream_is_the_length_of_its_rows(game) -> None:
    lengths = squares(cf.plot.stream(game))
    expected = np.linalg.norm(game.values["blocks.1.resid_post"], axis=1)
    assert lengths[-1] == pytest.approx(expected)


def test_a_sweep_is_the_variants(game) -> None:
    cell = ("blocks.1.attn.h2.switch", 0, 0)
    figure = cf.plot.sweep(game, "blocks.1.attn.h2.switch[0,0]", [0, 0.5, 1], target="Tarso")
    found = cf.variants(game, [{cell: x} for x in (0.0, 0.5, 1.0)])["probs"][:, -1]
    at = cf.load("dialogue-game").vocabulary.texts.index("Tarso")
    assert np.array_equal(figure.axes[0].lines[0].get_ydata(), found[:, at])
    with pytest.raises(cf.InputError, match="nearest: Tarso"):
        cf.plot.sweep(game, cell, [0, 1], target="Tarsoo")


def test_pictures_are_the_same_bytes(game, tmp_path: Path) -> None:
    for ending in ("png", "svg", "pdf"):
        paths = [tmp_path / f"{n}.{ending}" for n in "ab"]
        one, other = (cf.plot.save(cf.plot.pattern(game, "1.2"), p).read_bytes() for p in paths)
        assert one == other
    assert cf.plot.pattern(game, "1.2")._repr_png_().startswith(b"\x89PNG")
    with pytest.raises(cf.InputError, match="the name of a picture must end in"):
        cf.plot.save(cf.plot.pattern(game, "1.2"), tmp_path / "a.gif")


def test_models_without_a_tokenizer_take_ids() -> None:
    for name in ("llama", "bert"):
        figure = cf.plot.lens(str(GOLDEN / name), "1,2,3")
        assert squares(figure).shape[1] == 3
    graph = cf.load(str(GOLDEN / "llama")).graph([1, 2, 3])
    assert squares(cf.plot.stream(graph)).shape[1] == squares(cf.plot.pattern(graph)).shape[1] == 3


def test_what_has_no_such_picture_is_refused(game) -> None:
    loss = cf.graph("loss")
    with pytest.raises(cf.InputError, match="no attention"):
        cf.plot.pattern(loss)
    with pytest.raises(cf.InputError, match="graph of a model"):
        cf.plot.sweep(loss, "counts[0,0]", [1, 2])
    with pytest.raises(cf.InputError, match="two or more"):
        cf.plot.sweep(game, "W_E[0,0]", [])
    with pytest.raises(cf.InputError, match="has no model"):
        cf.plot.lens("loss")


def test_without_matplotlib_the_package_is_whole(game, monkeypatch) -> None:
    for name in ("matplotlib", "cellformer.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    assert "pattern" in dir(cf.plot)
    with pytest.raises(cf.InputError, match="pip install"):
        cf.plot.pattern(game)


def test_words_are_no_formulas() -> None:
    spec = cf.ModelSpec(d_vocab=2, d_model=2, n_ctx=4, n_layers=1, n_heads=1, d_head=2, d_mlp=2)
    words = cf.WordList(("$x^2", "$\\frac"))
    shapes = {"W_E": (2, 2), "W_U": (2, 2)}
    shapes |= {f"blocks.0.attn.h0.{name}": (2, 2) for name in ("W_Q", "W_K", "W_V", "W_O")}
    shapes |= {"blocks.0.mlp.W_in": (2, 2), "blocks.0.mlp.W_out": (2, 2)}
    try:
        model = cf.Model(spec, {name: np.eye(2) for name in shapes}, words)
    except cf.InputError as error:
        pytest.fail(str(error))
    assert cf.plot.lens(model, "$x^2 $\\frac")._repr_png_().startswith(b"\x89PNG")
    assert cf.plot.pattern(model.graph([0, 1]))._repr_png_().startswith(b"\x89PNG")
