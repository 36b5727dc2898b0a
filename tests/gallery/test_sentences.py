"""Sentences of the workbooks and of docs, each beside the numbers that make it true."""

import re
from dataclasses import replace
from itertools import islice, permutations

import numpy as np
import pytest
from conftest import ROOT, default_book, random_model

from cellformer.engine import Evaluator, Model, ModelSpec
from cellformer.workbooks import dialogue_game, induction, learn, two_layers
from cellformer.workbooks.learn import game, step
from cellformer.workbooks.semantic_tiny import probes, semantics
from cellformer.workbooks.tool_call import sums


def said(name: str, sheet: str = "Start") -> str:
    """All texts of a sheet."""
    book = default_book(name)
    at = sorted(book.sheets[sheet].entries)
    shown = (book.clean.cell(sheet, *cell) for cell in at)
    return " ".join(text for text in shown if isinstance(text, str))


def written(page: str) -> str:
    """A page of docs, its lines joined."""
    return " ".join((ROOT / "docs" / page).read_text(encoding="utf-8").split())


# --- the dialogue game: what a head carries is not what is lost without it -----------------------

GAME = dialogue_game.model()
OURS, OTHER = (GAME.vocabulary.encode(f"<BOS> {who} chiama Paolo") for who in ("Pietro", "3"))
TARSO, VICE = GAME.vocabulary.encode("Tarso vice", special=False)
CHIAMA = 2  # the place of the verb


def patched(block: str) -> np.ndarray:
    """The next word's probabilities after `Pietro chiama Paolo` where what one block holds at the
    verb is what it holds there after `3 chiama Paolo`."""
    other, live = GAME.graph(OTHER).values[block], Evaluator(GAME.graph(OURS))
    for j, value in enumerate(other[CHIAMA]):
        live.set(block, CHIAMA, j, float(value))
    return live["probs"][-1]


@pytest.mark.slow
def test_first_layer_writes_the_caller_at_the_verb() -> None:
    """Rules and docs: head 0.0 alone turns the answer to vice with 0.70, MLP 0 with 0.81, the
    stream after layer 0 with 0.99; no other head of that layer does, nor any at another word."""
    assert patched("blocks.0.attn.h0.result")[VICE] == pytest.approx(0.703, abs=5e-4)
    assert patched("blocks.0.mlp_out")[VICE] == pytest.approx(0.812, abs=5e-4)
    assert patched("blocks.0.resid_post")[VICE] == pytest.approx(0.994, abs=5e-4)
    for head in (1, 2, 3):
        assert patched(f"blocks.0.attn.h{head}.result")[TARSO] > 0.99
    rules, page = said("dialogue-game", "Rules"), written("dialogue-game.md")
    assert "the answer becomes vice" in rules
    assert "output of head 0.0, the probability of *vice* is 0.70." in page
    assert "With the output of MLP 0, the probability is 0.81." in page
    assert "With the whole stream after layer 0, it is 0.99." in page


@pytest.mark.slow
def test_head_is_not_missed_when_off() -> None:
    live = Evaluator(GAME.graph(OURS))
    live.set("blocks.0.attn.h0.switch", 0, 0, 0.0)
    assert live["probs"][-1, TARSO] == pytest.approx(0.9997, abs=5e-5)
    assert "‘Tarso’ keeps 99.97 %" in said("dialogue-game", "Rules")


@pytest.mark.slow
def test_tarso_head_looks_at_the_verb() -> None:
    """Start: and finds there who called."""
    assert GAME.graph(OURS).values["blocks.1.attn.h2.pattern"][-1, CHIAMA] > 0.98
    assert "where head 0.0 has put the caller’s name" in said("dialogue-game")


def test_share_of_the_plane_of_names() -> None:
    share = default_book("dialogue-game").values["map.plane_share"][0, 0]
    assert share / 0.15 == pytest.approx(1 / 3, abs=0.03)


# --- attention and order --------------------------------------------------------------------------

WORDS = [3, 1, 4, 2]  # the last word stays where it is


def answers(model: Model) -> np.ndarray:
    """The last word's logits with the words before it in every order: [n_orders, d_vocab]."""
    orders = [[*order, WORDS[-1]] for order in permutations(WORDS[:-1])]
    return np.array([model.graph(ids).values["logits"][-1] for ids in orders])


@pytest.mark.parametrize(
    ("n_layers", "causal", "tells"), [(1, True, False), (2, False, False), (2, True, True)]
)
def test_second_causal_layer_tells_orders_apart(n_layers: int, causal: bool, tells: bool) -> None:
    """positions: a layer takes the words before a word as a set."""
    spec = ModelSpec(
        d_vocab=6, d_model=8, n_ctx=8, n_layers=n_layers, n_heads=2, d_head=4, d_mlp=8,
        causal=causal,
    )  # fmt: skip
    found = answers(random_model(spec))
    apart = np.abs(found - found[0]).max()
    assert (apart > 0.01) == tells and (tells or apart < 1e-12)


def test_dialogue_game_order_without_positions() -> None:
    weights = {**GAME.weights, "W_pos": np.zeros_like(GAME.weights["W_pos"])}
    blind = replace(GAME, weights=weights, averages={})
    ids = GAME.vocabulary.encode("<BOS> Pietro chiama Paolo")
    turned = [ids[0], ids[2], ids[1], ids[3]]
    ours, theirs = (blind.graph(x).values["logits"][-1] for x in (ids, turned))
    assert np.abs(ours - theirs).max() > 1


def test_no_matrix_shifts_binary_digits() -> None:
    """Not even with a constant added; waves have one, which the sheet Shift shows."""
    digits = np.array([[n >> k & 1 for k in range(4)] for n in range(17)], dtype=float)
    here, there = np.column_stack([digits[:-1], np.ones(16)]), digits[1:]
    moved = here @ np.linalg.lstsq(here, there, rcond=None)[0]
    assert np.abs(moved - there).max() > 0.4
    assert "no single matrix can move them forward." in said("positions")


# --- what weights know ----------------------------------------------------------------------------


def test_induction_heads_ignore_the_word() -> None:
    """Rename the words, in the stream as elsewhere: what heads ask, and what they write, stays.
    W_U's table of pairs does not."""
    w, rng = induction.model().weights, np.random.default_rng(0)
    renamed = np.arange(induction.D_MODEL)
    for part in (induction.TOKEN, induction.PREVIOUS, induction.NEXT):
        renamed[part] = part[rng.permutation(induction.N_WORDS) if part[0] else [1, 2, 3, 4, 0]]
    order = renamed[induction.TOKEN]
    for part in (induction.PREVIOUS, induction.NEXT):
        renamed[part] = part[order]
    for head in (induction.BACK, induction.MATCHER):
        asks = w[f"{head}.W_Q"] @ w[f"{head}.W_K"].T
        writes = w[f"{head}.W_V"] @ w[f"{head}.W_O"]
        for circuit in (asks, writes):
            np.testing.assert_array_equal(circuit[np.ix_(renamed, renamed)], circuit)
    table = w["W_U"][induction.TOKEN]
    assert np.abs(table[np.ix_(order, order)] - table).max() > np.abs(table).max() / 2
    assert "no weight of the heads knows a word" in said("induction")


def test_rule_of_thumb_for_parameters() -> None:
    """napkin: of all weights of GPT-3 and of GPT-2 small, counted here anew."""
    shares = []
    for layers, width, words, places in ((96, 12288, 50257, 2048), (12, 768, 50257, 1024)):
        of_layers = layers * (12 * width**2 + 13 * width)
        total = of_layers + (words + places + 2) * width
        inside = 12 * width / (12 * width + 9)  # without norms: with biases alone
        shares.append((12 * layers * width**2 / total, inside))
    (large, _), (small, inside) = shares
    text = said("napkin")
    assert f"The rule gives {large:.1%} of all weights of GPT-3" in text
    assert f"only {small:.0%} of the weights of GPT-2 small" in text
    assert f"the rule gives {inside:.2%} of the weights, even in GPT-2 small" in text


def test_share_of_mlps() -> None:
    sizes = {"GPT-3": (96, 12288, 2048), "GPT-2 small": (12, 768, 1024)}
    share = {}
    for name, (layers, width, places) in sizes.items():
        mlps = layers * (8 * width**2 + 5 * width)
        rest = layers * (4 * width**2 + 8 * width) + (50257 + places + 2) * width
        share[name] = mlps / (mlps + rest)
    assert share["GPT-3"] == pytest.approx(2 / 3, abs=0.01)
    assert share["GPT-2 small"] < 0.5
    assert "two thirds of the weights of GPT-3" in said("fact-lookup")


@pytest.mark.slow
def test_toy_numbers_take_part_in_most_features() -> None:
    """superposition: few single numbers can be read."""
    directions = default_book("superposition").graph.inputs["W"]
    assert (np.abs(directions) > 0.1).sum(axis=0).min() >= 3
    assert "superposition makes most single numbers" in said("superposition")


def test_query_key_product_is_not_linear() -> None:
    """two-layers: twice the stream, four times the scores."""
    model = two_layers.model()
    graph = model.graph(model.vocabulary.encode(two_layers.PROMPT))
    live, stream = Evaluator(graph), "blocks.0.resid_pre"
    for i, j in graph[stream].whole.cells():
        live.set(stream, i, j, 2 * float(graph.values[stream][i, j]))
    head = "blocks.0.attn.h0.scores"
    seen = np.tril(np.ones(graph[head].shape, dtype=bool))
    np.testing.assert_allclose(live[head][seen], 4 * graph.values[head][seen])
    assert "and the product of queries and keys are also nonlinear." in said(
        "two-layers", "Printed"
    )


# --- probes whose components know the word held out ----------------------------------------------


@pytest.mark.slow
def test_probes_with_refitted_components() -> None:
    """semantic-tiny: the constants of the sheet, and the page's numbers, by fits made again."""
    book = default_book("semantic-tiny")
    shown = book.clean(book.graph["probes.explained"].area).astype(float)
    found = {}
    for col, (name, vectors) in enumerate(probes._probed(book).items(), 1):
        rows = range(probes.ANEW_ROW + 2, probes.ANEW_ROW + 2 + len(semantics.AXES))
        found[name] = np.array([book.clean.cell("Probes", row, col) for row in rows])
        np.testing.assert_allclose(found[name], by_projection(vectors), atol=1e-9)
    leaked = dict(zip(semantics.AXES, shown[:, 4], strict=True))
    anew = dict(zip(semantics.AXES, found["wide"], strict=True))
    page = written("semantic-tiny.md")
    for axis in ("size", "power", "age"):
        assert re.search(f"(?i:{axis}) (falls )?from {leaked[axis]:.2f} to {anew[axis]:.2f}", page)
    assert (shown[:, 5] - found["narrow"]).max() < 0.03


def by_projection(vectors: np.ndarray) -> np.ndarray:
    """The same by eigenvectors of the covariance, and a fit with a constant."""
    errors = np.empty_like(semantics.TABLE)
    for i in range(len(vectors)):
        rest = [k for k in range(len(vectors)) if k != i]
        _, parts = np.linalg.eigh(np.cov(vectors[rest].T))
        x = vectors @ parts[:, ::-1][:, : probes.BUILT]
        x = np.column_stack([np.ones(len(x)), x])
        fit = np.linalg.lstsq(x[rest], semantics.TABLE[rest], rcond=None)[0]
        errors[i] = semantics.TABLE[i] - x[i] @ fit
    return 1 - (errors**2).sum(axis=0) / (40 * semantics.TABLE.var(axis=0))


# --- learning ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_learn_comes_near_the_least_loss() -> None:
    """Start and docs: of all 24 sentences, after 450 steps and after 1,000."""
    ids = step.ids_of(game.sentences(), game.WORDS)
    g = step.graph(learn.SPEC, step.start(learn.SPEC, learn.SEED), game.LENGTH - 1)
    made, above = step.learn(step.add(g, learn.BATCH), ids, learn.BATCH), []
    for n in (450, 550):
        *_, (_, weights) = islice(made, n)
        whole = step.graph(learn.SPEC, weights, game.LENGTH - 1)
        loss, _ = next(step.learn(step.add(whole, len(ids)), ids, len(ids)))
        above.append(loss - game.FLOOR)
    assert above[0] < 0.02 and 0.003 < above[1] < 0.02
    told = "After 450 steps, the loss over all 24 sentences is less than 0.02 above this value."
    page = written("learning.md")
    assert told in said("learn") and told in page and len(ids) == 24
    assert "only has more weights, steps and sentences" in said("learn")


def test_step_is_more_than_sums_and_products() -> None:
    book = default_book("one-step")
    formulas = " ".join(book.formulas(block)(0, 0) for block in book.graph if block.computed)
    assert all(sign in formulas for sign in ("EXP(", "LN(", "/"))
    assert "sums, products, quotients, e^x and ln" in said("one-step")


# --- what was trained on ------------------------------------------------------------------------


@pytest.mark.slow
def test_the_quoted_sentence_was_trained_on() -> None:
    """tool-call: the example of training is one of training, and no sum that is held out."""
    quoted = re.findall(r"learned from sentences like ‘(.*?)’", said("tool-call"))
    trained = [" ".join(found.words[1:-1]) for found in sums.learnt()]
    assert len(quoted) == 1 and quoted[0] in trained


@pytest.mark.slow
def test_the_sum_of_embeddings_names_no_second_text() -> None:
    """microgpt adds a token's embedding and its position's; only BERT's kin have a third."""
    texts = " ".join(said("microgpt", sheet) for sheet in default_book("microgpt").sheets)
    assert "the sum of the embeddings of a token" in texts
