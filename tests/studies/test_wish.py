"""Wishes: the word comes first, by less than plain descent needs; its workbook; its price."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import GOLDEN, assert_agrees, cli, default_graph, libreoffice_shows, told
from corners import corner

from cellformer import workbooks
from cellformer.command.printing import output_words
from cellformer.engine.models import checkpoint
from cellformer.engine.studies import wish
from cellformer.engine.studies.price import ALL, Text, price
from cellformer.exporters.checking import verify
from cellformer.exporters.edits import edited
from cellformer.exporters.pages import ledger
from cellformer.workbooks.dialogue_game import game

PROMPT = [3, 1, 4, 1, 5]


def descent(search: wish.Search, rate: float) -> float:
    """The norm of what plain gradient descent of the cross-entropy changes, cut to the margin."""
    delta = np.zeros(sum(w.size for w in search.weights.values()))
    leads, slopes = search.slopes(delta, 1000)
    while leads.min() < wish.MARGIN:
        shares = np.exp(-leads)
        delta = delta + rate * (shares / (1 + shares.sum())) @ slopes
        leads, slopes = search.slopes(delta, 1000)
    return float(np.linalg.norm(search.cut(delta, wish.FINE)))


def assert_fulfilled(model, ids, target: int, parts: tuple[str, ...]) -> None:
    """The word is just first by these weights alone, and by less than descent changes."""
    graph = model.graph(ids)
    found = wish.smallest_change(graph, -1, target, parts)
    assert found.share == pytest.approx(found.norm / wish.norm(found.weights))
    assert all(name.startswith(parts or "") for name in found.change)
    logits = found.made(model).graph(ids).values["logits"][-1]
    lead = logits[target] - np.delete(logits, target).max()
    assert wish.MARGIN - 1e-9 < lead < wish.MARGIN + 1e-5
    search = wish.Search(model.graph(ids), -1, target, wish.chosen(graph, parts))
    assert found.norm <= min(descent(search, rate) for rate in (0.03, 0.3)) * (1 + 1e-9)


def test_smallest_change_makes_the_word_first() -> None:
    model = workbooks.find("cat-sat").model()
    ids = model.vocabulary.encode("the cat sat")
    assert_fulfilled(model, ids, model.vocabulary.encode("floor")[0], ("W_U",))


@pytest.mark.slow
def test_smallest_change_of_a_random_gpt2() -> None:
    assert_fulfilled(checkpoint.load(GOLDEN / "gpt2"), PROMPT, 10, ("W_E",))


def test_the_smallest_point_of_a_polyhedron() -> None:
    """It keeps every condition, and no other point that does is nearer: what is nearer on the way
    to another such point breaks one."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        slopes, wanted = rng.normal(size=(6, 30)), rng.normal(size=6)
        found = wish.smallest(slopes, wanted)
        assert (slopes @ found >= wanted - 1e-9).all()
        tight = slopes @ found <= wanted + 1e-6
        weights, *_ = np.linalg.lstsq(slopes[tight].T, found, rcond=None)
        np.testing.assert_allclose(weights @ slopes[tight], found, atol=1e-8)
        assert (weights >= -1e-8).all()  # Karush, Kuhn and Tucker's conditions


def test_no_change_for_the_first_word() -> None:
    graph = default_graph("cat-sat")
    first = int(np.argmax(graph.values["logits"][-1]))
    assert wish.smallest_change(graph, -1, first, ["W_U"]).cells() == []


# --- the price --------------------------------------------------------------------------------


def test_fresh_turns_follow_the_rules() -> None:
    texts = game.turns(np.random.default_rng(3), 25)
    words = [[game.WORDS[i] for i in text.ids] for text in texts]
    assert sum(line.count(game.SEP) for line in words) == 25
    for text, line in zip(texts, words, strict=True):
        assert len(text.rules) == len(line) < game.LENGTH
        for word, rules in zip(text.ids[1:], text.rules, strict=False):
            assert all(word not in broken for broken in rules.values())


def test_price_is_a_mean_over_bound_words() -> None:
    model = workbooks.find("cat-sat").model()
    unembed = np.array(model.weights["W_U"])
    unembed[:, 3] *= 3
    other = replace(model, weights={**model.weights, "W_U": unembed})
    texts = [Text([0, 1], [{"a": {3}}, {}]), Text([2], [{"a": {3}, "b": ()}])]
    p, q = (
        [m.graph(text.ids).values["probs"][k] for text in texts for k in range(len(text.ids))]
        for m in (model, other)
    )
    apart = [float((a * np.log(a / b)).sum()) for a, b in zip(p, q, strict=True)]
    every, a, b = price(model, other, texts)
    assert (every.what, every.n, a.n, b.n) == (ALL, 3, 2, 1)
    changed = [int(np.argmax(x) != np.argmax(y)) for x, y in zip(p, q, strict=True)]
    assert every.changed == sum(changed) and b.changed == changed[2]
    assert every.divergence == pytest.approx(np.mean(apart))
    assert a.divergence == pytest.approx((apart[0] + apart[2]) / 2)
    assert a.kept == pytest.approx(1 - (p[0][3] + p[2][3]) / 2)
    assert a.kept_after == pytest.approx(1 - (q[0][3] + q[2][3]) / 2)
    assert (b.kept, b.kept_after) == (1, 1)


# --- the command ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wished(tmp_path_factory) -> tuple[Path, dict]:
    """The workbook of a wish, and what the command says of it."""
    folder = tmp_path_factory.mktemp("wished")
    model, path = corner("gpt2", folder / "gpt2"), folder / "gpt2.xlsx"
    given = ("--ids", "2,1,0", "--say", "2", "--only", "W_E")
    return path, told("edit", model, *given, "-o", path)


@pytest.mark.slow
def test_workbook_holds_the_change_alone(wished, tmp_path) -> None:
    path, said = wished
    found = edited.read_model(path)
    assert not (found.overwritten or found.labels or found.unheld)
    inputs = found.book.graph.inputs
    change = {cell: now - inputs[cell[0]][cell[1:]] for cell, now in found.values.items()}
    assert len(change) == said["changed"]
    for (block, i, j), value in change.items():
        assert value == pytest.approx(said["change"][block][i][j], abs=1e-12)
    assert np.linalg.norm(list(change.values())) == pytest.approx(said["norm"])
    assert cli("import", path, "-o", tmp_path / "model").code == 0
    probs = checkpoint.load(tmp_path / "model").graph(found.ids).values["probs"][-1]
    np.testing.assert_allclose(probs, said["after"], atol=1e-6)
    assert output_words(found.model)[int(np.argmax(probs))] == said["word"]


def test_wished_word_in_libreoffice(wished, tmp_path, libreoffice) -> None:
    path, said = wished
    shown = libreoffice_shows({"gpt2": path}, tmp_path / "office")["gpt2"]
    assert_agrees(verify.read(path), shown)
    line = str(shown[ledger.SHEET][ledger.LINE])
    assert line.startswith(f"{said['changed']} edits: ")
    assert line.endswith(f"now is {said['word']}")


@pytest.mark.slow
def test_wish_prints(tmp_path) -> None:
    (tmp_path / "also.txt").write_text("the dog\na cat sat\n")
    given = ("cat-sat", "--say", "dog", "--only", "W_U", "--also", "also.txt")
    done = cli("edit", *given, cwd=tmp_path)
    for text in ("dog comes first after a change of norm", "moved most", "W_U["):
        assert text in done.out
    assert "over the 5 next words of also.txt" in done.out and "a cat sat" in done.out
    assert {path.name for path in tmp_path.iterdir()} == {"also.txt", "cat-sat-edited.xlsx"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("cat-sat --say nothing", "'nothing' is not in the vocabulary"),
        ("cat-sat --say mat", "is already the most likely"),
        (
            "cat-sat --say dog --only blocks.7",
            "no weight has a name that begins with 'blocks.7'; known",
        ),
        pytest.param(
            "cat-sat --say floor --only W_E",
            "no change of W_E was found that makes the word the most likely",
            marks=pytest.mark.slow,
        ),
        ("cat-sat --say dog -o x.csv", "x.csv: the name of a workbook must end in .xlsx"),
        ("cat-sat --say dog --also nothing.txt", "cannot read nothing.txt"),
        ("cat-sat --say dog --also /dev/zero", "cannot read /dev/zero: it is not an ordinary file"),
        ("attention-by-columns --say a", "has no model, but this command needs a model"),
        (f"{GOLDEN}/llama --ids 3,4 --say 999", "ids from 0 to"),
        (f"{GOLDEN}/bert --ids 3,4 --say 1", "predicts no next word"),
        (f"{GOLDEN}/minilm --ids 3,4 --say 1", "predicts no next word"),
    ],
)
def test_impossible_wishes_are_refused(given: str, said: str, tmp_path: Path) -> None:
    done = cli("edit", *given.split(), cwd=tmp_path)
    assert done.code == 2 and done.out == ""
    assert said in done.err and done.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
