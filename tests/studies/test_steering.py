"""Steering equals torch with hooks, does in the dialogue game what its rules say, and its probe is
what plain numpy makes of it."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from conftest import cli, golden_models, told

import cellformer as cf
from cellformer import names
from cellformer.engine import InputError, Model
from cellformer.engine.models import ops
from cellformer.engine.studies import lens, probes, steering
from cellformer.engine.studies.steering import STRENGTHS, Contrast
from cellformer.engine.text import sentence_lists

CALLERS = Path(__file__).parents[2] / "examples" / "callers.txt"
AS_IDS = {"one": [[1, 2, 3], [4, 2], [5, 5, 7, 2]], "other": [[8, 3], [9, 1, 3], [6, 3, 3, 3]]}
LINES = {
    "asks": ["What say you?", "Who is there?", "Where is he?", "Why do you weep?"],
    "tells": ["I say so.", "He is there.", "It is his house.", "You do weep."],
}
KINDS = ("dialogue-game", "shakespeare", "llama", "gemma2")


@cache
def model(name: str) -> Model:
    return golden_models()[name] if name in golden_models() else cf.load(name)


@cache
def contrast(name: str, site: str = "") -> Contrast:
    found, lists = model(name), AS_IDS
    if name == "shakespeare":
        lists = sentence_lists.of_texts(LINES, found.vocabulary.encode)
    elif name == "dialogue-game":
        lists = sentence_lists.read(CALLERS, found.vocabulary.encode)
    return steering.contrast(found, lists, site)


def prompt(name: str) -> list[int]:
    texts = {"dialogue-game": "<BOS> Pietro chiama Paolo", "shakespeare": "ROMEO:"}
    return model(name).vocabulary.encode(texts[name]) if name in texts else [1, 2, 3]


# --- against torch --------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_texts_and_logits_equal_torch_with_hooks(name: str, torch) -> None:
    import hooked

    reference, found, ids = hooked.Hooked(model(name)), contrast(name), prompt(name)
    means = [
        torch.stack([hooked.recorded(reference, own)[0][found.site][-1] for own in lists]).mean(0)
        for lists in found.lists.values()
    ]
    direction = means[0] - means[1]
    for strength in STRENGTHS:
        text = steering.continued(model(name), ids, 6, found, strength)
        shift = direction * strength
        logits = reference.run(text, lambda at, x, s=shift: x + s if at == found.site else x)
        graph = steering.steered(model(name).graph(text), found.site, found.direction, strength)
        np.testing.assert_allclose(graph.last("logits"), logits, atol=1e-9)
        written = logits.argmax(1)[len(ids) - 1 : -1].tolist()
        assert text[len(ids) :] == written


# --- against numpy --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["dialogue-game", "gemma2"])
@pytest.mark.parametrize("mean", [False, True])
def test_one_batch_gives_what_each_sentence_gives_alone(name: str, mean: bool) -> None:
    site = "blocks.1.resid_mid"
    found = steering.contrast(model(name), contrast(name).lists, site, mean)
    for ids, rows in zip(found.lists.values(), (found.first, found.second), strict=True):
        alone = [model(name).graph(own).values[site][0 if mean else -1 :].mean(0) for own in ids]
        np.testing.assert_allclose(rows, alone, atol=1e-10)


def test_the_probe_equals_plain_numpy() -> None:
    """Two clouds that overlap, so that neither accuracy is 1."""
    draw = np.random.default_rng(4)
    lists = [draw.normal(size=(n, 5)) + shift for n, shift in ((19, 0.4), (14, -0.2))]
    out = [np.random.default_rng(7).permutation(len(x))[: len(x) // 3] for x in lists]
    kept = [np.delete(x, which, axis=0) for x, which in zip(lists, out, strict=True)]
    a, b = (x.mean(0) for x in kept)
    middle = (a + b) / 2
    shares = []
    for first, second in (kept, [x[which] for x, which in zip(lists, out, strict=True)]):
        right = sum((x - middle) @ (a - b) > 0 for x in first)
        right += sum((x - middle) @ (a - b) <= 0 for x in second)
        shares.append(right / (len(first) + len(second)))
    found = probes.accuracy("here", *lists, seed=7)
    assert [found.fitted, found.held_out] == pytest.approx(shares)
    assert (found.n_fitted, found.n_held_out) == (23, 10)
    assert found.fitted != found.held_out and max(shares) < 1


@pytest.mark.parametrize("name", ["dialogue-game", "llama", "gemma2", "opt-350m", "gptj"])
def test_words_are_the_readout_of_the_direction_without_biases(name: str) -> None:
    """Adding the direction to a stream moves the scores so, apart from the norm's divisor."""
    found, g = contrast(name), model(name).graph([1])
    scores = steering.words(model(name), found)
    end = lens.scoring(g)
    x, d = found.direction[0], found.direction[0]
    for block in lens.stages(g)[-1:]:
        assert block.shape[1] == len(d)
    if "ln_final.w" in model(name).weights:
        gain = np.ravel(model(name).weights["ln_final.w"])
        x = (d - d.mean() if model(name).spec.norm == "layer" else d) * (
            1 + gain if name == "gemma2" else gain
        )
    if end.x.op is ops.linear:
        x = x @ model(name).weights["W_project_U"]
    words = g.values[end.words.name]
    np.testing.assert_allclose(scores, x @ (words.T if end.by_rows else words), atol=1e-9)


# --- what it does ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("caller", "strength", "answer"),
    [("Pietro", 0, "Tarso"), ("Pietro", -2, "vice"), ("7", 0, "vice"), ("7", 2, "Tarso")],
)
def test_the_caller_is_steered_at_the_verb(caller: str, strength: float, answer: str) -> None:
    """Paolo is Tarso to Pietro, vice to a number; the verb carries who calls."""
    text = f"<BOS> {caller} chiama Paolo"
    found = cf.steer("dialogue-game", CALLERS, strengths=[strength], token=2, prompt=text)
    assert model("dialogue-game").vocabulary.texts[found.texts[strength][4]] == answer


def test_no_strength_leaves_every_value() -> None:
    graph, found = model("llama").graph([1, 2, 3]), contrast("llama")
    steered = steering.steered(graph, found.site, found.direction)
    for block in graph:
        np.testing.assert_array_equal(steered.values[block.name], graph.values[block.name])


def test_the_command_prints_what_python_gives() -> None:
    asked = ("dialogue-game", "--lists", str(CALLERS), "--token", "2", "-n", "1", "--strength=-2")
    found = cf.steer("dialogue-game", CALLERS, strengths=[-2.0], token=2, n_tokens=1)
    said = told("steer", *asked, "--every-layer")
    assert said["texts"][0]["ids"] == found.texts[-2.0]
    assert said["probes"][0] == vars(found.probe)
    assert {probe["site"] for probe in said["probes"]} > {"blocks.0.resid_mid"}
    assert found.words is not None
    assert said["towards"][0]["dot"] == max(found.words)
    assert said["away"][0]["dot"] == min(found.words)
    printed = cli("steer", *asked).out
    assert "Paolo vice" in printed and "75.0%" in printed


# --- what is refused ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("# a\n<BOS>\n3\n", "has 1 list of sentences, but two are needed"),
        ("# a\n# b\n<BOS>\n3\n", "list 'a' has no sentence"),
        ("# a\n<BOS>\n3\n# b\n4\n", "list 'b' has one sentence"),
        ("# a\n<BOS>\nciao\n# b\n4\n5\n", "line 3, 'ciao': 'ciao' is not in the vocabulary"),
        ("<BOS>\n", "line 1: name the list first"),
        ("# a\n3\n3\n", "line 3: '3' is already on line 2"),
        ("# a\n3 4\n5\n# b\n3  4\n6\n", "line 5: '3  4' is already on line 2"),
        ("# a\n3\n# a\n", "line 3: there is already a list 'a'"),
        ("# a\n3\n5\n# b\n4\n6\n# c\n7\n8\n", "has 3 lists of sentences"),
        (f"# a\n{'3 ' * 40}\n", "the model reads at most 32"),
        (f"# {'a' * 61}\n3\n", "the list's name has more than 60 characters"),
    ],
)
def test_a_file_that_gives_no_direction_is_refused(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "lists.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=says):
        cf.steer("dialogue-game", path)


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda: cf.steer("dialogue-game", CALLERS, "blocks.1.resid_pr"), "nearest: blocks.1"),
        (
            lambda: cf.steer("dialogue-game", CALLERS, "W_E"),
            "does not have a row of numbers for each token",
        ),
        (lambda: cf.steer("dialogue-game", CALLERS, token=4), "run from 0 to 3"),
        (lambda: cf.steer("dialogue-game", CALLERS, n_tokens=40), "reads at most 32"),
        (
            lambda: cf.steer("dialogue-game", CALLERS, strengths=[np.nan]),
            "not a strength from -1000",
        ),
        (lambda: cf.steer("dialogue-game", {"a": ["3", "4"], "b": ["5", "4 "]}), "in list 'a'"),
        (lambda: names.sentences(model("llama"), {"a": ["5 x"]}), "is not a list of token ids"),
        (lambda: steering.contrast(model("bert"), AS_IDS), "use a decoder"),
        (lambda: steering.contrast(model("llama"), {"a": [[1]], "b": [[2]]}), "two lists"),
    ],
)
def test_bad_input_is_refused(ask: Callable[[], object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        ask()


def test_without_a_tokenizer_lists_hold_ids() -> None:
    lists = {"one": ["1 2 3", "4,2", "5"], "other": ["8, 3", "9 1, 3"]}
    found = names.sentences(model("llama"), lists)
    assert found == {"one": [[1, 2, 3], [4, 2], [5]], "other": [[8, 3], [9, 1, 3]]}


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ("--strength x", "a valid number"),
        ("--strength nan", "not a strength"),
        ("--strength 1e308", "1e+308 is not a strength from -1000 to 1000"),
        ("--token -1", "give a position"),
        ("-n -3", "greater than or equal to 1"),
    ],
)
def test_the_command_refuses_in_a_line(bad: str, says: str) -> None:
    done = cli("steer", "dialogue-game", "--lists", str(CALLERS), *bad.split())
    assert done.code == 2 and done.err.count("\n") == 1 and says in done.err, done.err
