"""Lens and attribution follow any graph back: biased and capped readouts, norms after sublayers."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from conftest import GOLDEN, needs
from corners import corner

from cellformer.engine import Evaluator, Graph, InputError, Model, ModelSpec, WordList
from cellformer.engine.models import checkpoint, ops, parts
from cellformer.engine.models.forward import Architecture, Forward, weight_shapes
from cellformer.engine.models.generate import passage
from cellformer.engine.studies import lens
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.checking.verify import verify
from cellformer.exporters.file.xlsx import write

SPEC = ModelSpec(d_vocab=6, d_model=5, n_ctx=8, n_layers=2, n_heads=2, d_head=3, d_mlp=4, bias=True)
IDS = [1, 4, 2]


def decoder(biased: bool, capped: bool) -> Architecture:
    """MLPs alone, with a norm after each, in a stream that begins stretched."""

    def forward(g: Forward, ids: Sequence[int]) -> None:
        _, embed = parts.embed(g, ids, "embed.word")
        x = g.block("embed", ops.stretch, embed, g.input("embed.length", 1.7))
        for layer in range(g.spec.n_layers):
            b = g.at(f"blocks.{layer}")
            x = b.block("resid_pre", ops.add, [x])
            pre = parts.linear(b.at("mlp"), "pre", x, "in", ("d_model", "d_mlp"), True)
            wrote = parts.contract(b, b.at("mlp").block("post", ops.gelu, pre), True)
            x = b.block("resid_post", ops.add, [x, parts.layer_norm(b.at("ln2"), wrote, 1e-5)])
        x = g.block("resid_final", ops.add, [x])
        x = parts.rms_norm(g.at("ln_final"), x, 1e-5)
        b_U = g.weight("b_U", "vocab") if biased else None
        name = "uncapped" if capped else "logits"
        scores = g.block(name, ops.linear, x, g.weight("W_U", "d_model", "vocab"), b_U)
        if capped:
            scores = g.block("logits", ops.soft_cap, scores, g.input("logits.cap", 2.5))
        temperature = g.input("temperature", 1.0)
        parts.softmax(g.at("softmax"), scores, temperature=temperature, out=(g, "probs"))

    return forward


def random(architecture: Architecture, scale: float = 0.7) -> Model:
    rng = np.random.default_rng(3)
    shapes = weight_shapes(architecture, SPEC)
    weights = {name: rng.normal(0, scale, shape) for name, shape in shapes.items()}
    words = WordList(tuple(f"w{i}" for i in range(SPEC.d_vocab)))
    return Model(SPEC, weights, words, architecture=architecture)


KINDS = [(True, False), (False, True), (True, True)]


@pytest.mark.parametrize(("biased", "capped"), KINDS)
@pytest.mark.parametrize("scale", [0.0, 0.7, 3.0])
def test_shares_add_up_to_the_logit(biased: bool, capped: bool, scale: float) -> None:
    graph = random(decoder(biased, capped), scale).graph(IDS)
    views = lens.add_lens(graph, 2, 4, 5)
    live = Evaluator(graph)
    live.set("embed.length", 0, 0, 3.0)
    for values in (graph.values, live):
        for word, v in (("target", 4), ("rival", 5)):
            total = sum(values[credit.name] for credit in views.credits[word].values())
            expected = values["logits"][:, v]
            np.testing.assert_allclose(total[:, 0], expected, atol=1e-12)
    writers = [name for name in views.credits["target"] if "ln" not in name and name != "b_U"]
    assert writers == ["blocks.1.mlp_out", "blocks.0.mlp_out", "embed.word"]
    assert ("b_U" in views.credits["target"]) == biased


def test_lens_of_an_unknown_op_is_refused() -> None:
    graph = Graph()
    x, w = graph.input("x", [[1.0, 2.0]]), graph.input("w", [[1.0], [3.0]], kind="weight")
    unscaled = graph.block("unscaled", ops.linear, x, w)
    graph.block("logits", ops.stretch, unscaled, graph.input("logit_scale", 0.5))
    with pytest.raises(ValueError, match=r"^logits is stretch, which .* scale the vectors before"):
        lens.scoring(graph)


@pytest.mark.parametrize("name", ["bert", "roberta", "distilbert"])
def test_shares_through_an_activation_function(name: str) -> None:
    """The head's ratio of each number is taken as it is, at each token its own: all parts of the
    model have shares, which add up; each is what was written, along a direction [d_model]."""
    graph = checkpoint.load(GOLDEN / name).graph([3, 1, 5, 2])
    views = lens.add_lens(graph, 1, 7, 4)
    live = Evaluator(graph)
    live.set("head.b", 0, 1, -30.0)  # behind a GELU: 0, of which nothing has a share
    for values in (graph.values, live):
        for word, v in (("target", 7), ("rival", 4)):
            shares = {writer: values[c.name] for writer, c in views.credits[word].items()}
            total = sum(shares.values())
            np.testing.assert_allclose(total[:, 0], values["logits"][:, v], atol=1e-10)
    n_heads = sum(writer.endswith(".result") for writer in views.credits["target"])
    assert n_heads == 6 and "blocks.1.mlp_out" in views.credits["target"]
    by_hand = _direction_by_hand(graph.values, live["head.pre"], live["head.post"], 7)
    wrote = live["blocks.1.mlp_out"] / live["blocks.1.ln2.scale"]
    share = live[views.credits["target"]["blocks.1.mlp_out"].name]
    np.testing.assert_allclose(share[:, 0], (wrote * by_hand).sum(1), atol=1e-12)


def _direction_by_hand(
    w: Mapping[str, np.ndarray], pre: np.ndarray, post: np.ndarray, word: int
) -> np.ndarray:
    """What a word's logit gains by the last norm's input: [n_tokens, d_model]."""
    d = w["W_E"][word] * w["ln_final.w"]
    d = (d - d.mean()) / (post.std(1, keepdims=True) ** 2 + 1e-12) ** 0.5
    d = (d * post / pre) @ w["head.W"].T * w["blocks.1.ln2.w"]
    return d - d.mean(1, keepdims=True)


@pytest.mark.parametrize(("biased", "capped"), KINDS)
def test_the_last_stage_is_the_readout(biased: bool, capped: bool) -> None:
    graph = random(decoder(biased, capped)).graph(IDS)
    views = lens.add_lens(graph, 1, 4, 5)
    names = ["blocks.0.resid_pre", "blocks.0.resid_post", "blocks.1.resid_post"]
    assert [stage.name for stage in views.stages] == names
    np.testing.assert_allclose(
        graph.values["lens.2.logits"][0], graph.values["logits"][1], atol=1e-12
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bloom", "opt-350m"])
def test_lens_workbooks_of_rare_architectures(name: str, tmp_path: Path) -> None:
    """Scores that fall with distance, words of another size than the stream."""
    needs("ironcalc")
    model = checkpoint.load(corner(name, tmp_path / name))
    book = model_workbook.build(name, model, passage(model, [2, 1], 3))
    report = verify(write(book, tmp_path / f"{name}.xlsx"), "ironcalc")
    assert report.agrees, report


@pytest.mark.slow
@pytest.mark.parametrize(("biased", "capped"), KINDS)
def test_lens_workbook_recomputes(biased: bool, capped: bool, tmp_path: Path) -> None:
    needs("ironcalc")
    model = random(decoder(biased, capped))
    book = model_workbook.build("any", model, passage(model, IDS, 5))
    report = verify(write(book, tmp_path / "any.xlsx"), "ironcalc")
    assert report.agrees, report
    with pytest.raises(InputError, match="its architecture has no checkpoint format"):
        checkpoint.save(model, tmp_path)
