"""Many variants at once, parts off, lens, attribution, maps: each held to its definition."""

from functools import cache

import numpy as np
import pytest
from conftest import golden_models, graphs, random_model
from hypothesis import given, settings
from hypothesis import strategies as st

from cellformer.engine import Evaluator, Graph, InputError, Model, ModelSpec
from cellformer.engine.cells.batch import variants
from cellformer.engine.studies import ablation, lens
from cellformer.engine.studies.planes import principal
from cellformer.engine.studies.tsne import tsne
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.pages import trajectory

pytestmark = pytest.mark.slow

LOADED = golden_models()
MODELS = {name: m for name, m in LOADED.items() if m.spec.gives != "sentence"}  # with logits
MODELS["norm after"] = random_model(
    ModelSpec(
        7, 6, 8, n_layers=2, n_heads=2, d_head=3, d_mlp=5, norm="layer", norm_after=True, bias=True,
        final_norm=True, position="sinusoidal",
    )
)  # fmt: skip
MODELS["attention only"] = random_model(ModelSpec(7, 6, 8, n_layers=2, n_heads=2, d_head=3))
MODELS["no layer"] = random_model(ModelSpec(7, 6, 8, tied=True))
IDS = [3, 5, 2, 6, 5]  # without 1, which is RoBERTa's padding


@pytest.mark.slow
@given(graphs(), st.randoms(use_true_random=False))
@settings(max_examples=30)
def test_batch_equals_single_evaluators(graph: Graph, random) -> None:
    changes: list[dict[tuple[str, int, int], float]] = []
    for _ in range(3):
        change = {}
        for _ in range(random.randint(0, 3)):
            block = random.choice([b for b in graph if b.op is None])
            i, j = (random.randrange(n) for n in block.shape)
            entries = graph.looked_up(block)[1] if block.kind == "ids" else 0
            value = random.randrange(entries) if entries else random.uniform(0.1, 2)
            change[block.name, i, j] = float(value)
        changes.append(change)
    values = variants(graph, changes)
    for n, change in enumerate(changes):
        live = Evaluator(graph)
        for cell, value in change.items():
            live.set(*cell, value)
        for block in graph:
            found = values[block.name][n]
            np.testing.assert_allclose(found, live[block.name], rtol=1e-12, atol=1e-12)


@cache
def averaged(name: str) -> Model:
    return ablation.averaged(MODELS[name], [IDS, [2, 2]])


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("mean", [False, True])
def test_zero_and_mean_ablation(name: str, mean: bool) -> None:
    graph = averaged(name).graph(IDS)
    parts = ablation.parts(graph)
    under = {("mean_ablation", 0, 0): float(mean)} if parts else {}
    values = variants(graph, [under | ablation.off(graph, part) for part in parts])
    for k, part in enumerate(parts):
        results = [n for n in graph.blocks if n.startswith(f"{part}.") and n.endswith(".result")]
        for block in results or [f"{part}_out"]:
            path = block.removesuffix(".result") if results else part
            expected = graph.inputs[f"{path}.average"] * mean
            wrote = values[block][k]
            np.testing.assert_allclose(wrote, np.broadcast_to(expected, wrote.shape), atol=1e-15)
    found = ablation.effects(graph, 4, mean=mean)
    assert [effect.part for effect in found] == parts


def test_averages_over_every_token() -> None:
    model, prompts = MODELS["gpt2"], [[1, 2, 3], [4], [5, 2, 1], [6]]
    average = ablation.averaged(model, prompts).averages["blocks.1.attn.h0.average"]
    written = [model.graph(ids).values["blocks.1.attn.h0.result"] for ids in prompts]
    np.testing.assert_allclose(average[0], np.vstack(written).mean(axis=0))


def test_unknown_part_is_named() -> None:
    with pytest.raises(InputError, match=r"blocks\.0\.attn\.h1"):
        ablation.off(MODELS["gpt2"].graph(IDS), "blocks.0.attn.h11")


@pytest.mark.parametrize("name", MODELS)
def test_shares_add_up_to_the_logit_at_every_token(name: str) -> None:
    graph = MODELS[name].graph(IDS)
    views = lens.add_lens(graph, 2, 4, 5)
    for word, v in (("target", 4), ("rival", 5)):
        total = sum(graph.values[credit.name] for credit in views.credits[word].values())
        np.testing.assert_allclose(
            np.broadcast_to(total, (len(IDS), 1))[:, 0], graph.values["logits"][:, v], atol=1e-10
        )


@pytest.mark.parametrize("name", MODELS)
def test_the_last_stage_of_the_lens_is_the_readout(name: str) -> None:
    graph = MODELS[name].graph(IDS)
    views = lens.add_lens(graph, 3, 4, 5)
    last = len(views.stages) - 1
    stopped = graph.values[f"lens.{last}.logits"][0]
    np.testing.assert_allclose(stopped, graph.values["logits"][3], atol=1e-12)
    first = views.stages[0].name
    if name == "gemma3n":  # before, the parts of its stream are mixed
        assert first == f"blocks.{graph.spec.n_layers - 1}.resid_post"
        return
    normed = "ln_embed.out" in graph.blocks and "projected" not in graph.blocks
    assert first in (("ln_embed.out",) if normed else ("blocks.0.resid_pre", "resid_final"))


def gram_schmidt(u: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The two directions that a sheet's cells make of u and v."""
    page = Composer(Book("gram-schmidt"), "Trajectory")
    given = [page.typed(name, np.c_[vector]) for name, vector in (("u", u), ("v", v))]
    trajectory.orthonormal(page, (0, 5), *given)
    e1, e2 = (page.book.clean(page.book.shown[f"trajectory.{e}"].block.area) for e in ("e1", "e2"))
    return e1.ravel(), e2.ravel()


def test_gram_schmidt_is_orthonormal() -> None:
    u, v = np.random.default_rng(0).normal(size=(2, 5))
    e1, e2 = gram_schmidt(u, v)
    np.testing.assert_allclose([e1 @ e1, e2 @ e2], 1)
    assert e1 @ e2 == pytest.approx(0, abs=1e-15)
    np.testing.assert_allclose(e1 * np.linalg.norm(u), u)
    assert (gram_schmidt(u, 2 * u)[1] == 0).all()


def test_principal_components_hold_the_most_variance() -> None:
    x = np.random.default_rng(1).normal(size=(30, 4)) * [5, 3, 1, 0.1]
    axes, share = principal(x)
    covariance = np.cov(x.T)
    largest = np.linalg.eigvalsh(covariance)[::-1]
    assert share == pytest.approx(largest[:2] / largest.sum())
    np.testing.assert_allclose(axes @ covariance @ axes.T, np.diag(largest[:2]), atol=1e-9)


def test_tsne_keeps_neighbours_together_and_repeats() -> None:
    rng = np.random.default_rng(2)
    group = np.repeat([0, 1, 2], 10)
    x = rng.normal(size=(30, 6)) + 20 * np.eye(6)[group]
    points, another = tsne(x, [(0, 5.0), (1, 5.0)])
    np.testing.assert_array_equal(points, tsne(x, [(0, 5.0)])[0])
    assert not np.array_equal(points, another)
    distances = np.linalg.norm(points[:, None] - points[None], axis=-1)
    np.fill_diagonal(distances, np.inf)
    assert (group[distances.argmin(axis=1)] == group).all()
