"""stories: the grammar, what its model has learnt, and each sentence about maps and neighbours."""

from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, cli, default_book

from cellformer.engine import Evaluator
from cellformer.engine.models import checkpoint
from cellformer.engine.text import word_list_file
from cellformer.workbooks import stories
from cellformer.workbooks.stories import control, grammar, learning, neighbours, rules

DRAWN = [grammar.words_of(row) for row in grammar.sentences(np.random.default_rng(1), 500)]


def vectors(name: str) -> np.ndarray:
    """The word vectors of the first or the second model: [84, 64]."""
    return checkpoint.load(learning.FOLDER / name).weights["W_E"][grammar.ROWS]


def cosines(name: str) -> np.ndarray:
    """The cosine of each pair of words, -1 for a word and itself: [84, 84]."""
    x = vectors(name)
    units = x / np.linalg.norm(x, axis=1, keepdims=True)
    return units @ units.T - 2 * np.eye(len(x))


def nearest(name: str) -> dict[str, str]:
    """Each word's nearest one."""
    return dict(
        zip(grammar.CONTENT, np.array(grammar.CONTENT)[cosines(name).argmax(1)], strict=True)
    )


def cosine(a: str, b: str) -> float:
    """The cosine of two words in the first model."""
    return float(cosines(learning.OWN)[grammar.CONTENT.index(a), grammar.CONTENT.index(b)])


def texts(sheet: str) -> str:
    """All texts of a sheet."""
    book = default_book("stories")
    shown = (book.clean.cell(sheet, *at) for at in sorted(book.sheets[sheet].entries))
    return " ".join(text for text in shown if isinstance(text, str))


# --- the grammar ----------------------------------------------------------------------------------


def test_words_are_those_of_the_capstone() -> None:
    found = word_list_file.read(ROOT / "docs" / "capstone-words.txt")
    assert {name: [*words] for name, words in found.items()} == grammar.GROUPS
    assert {word for words in DRAWN for word in words} == {*grammar.WORDS} - {grammar.BOS}


def test_stories_have_two_sentences_and_fit() -> None:
    for words in DRAWN:
        assert words.count(grammar.STOP) == 2 and words[-1] == grammar.EOS
        assert len(words) < grammar.LENGTH
    assert max(map(len, DRAWN)) == grammar.LENGTH - 1


def test_shares_add_up_and_are_the_frequencies() -> None:
    for words in DRAWN[:50]:
        assert all(sum(shares.values()) == pytest.approx(1) for shares in grammar.told(words))
    first = Counter(words[1] for words in DRAWN)
    *_, shares = grammar.told(["the"])
    assert first["happy"] / len(DRAWN) == pytest.approx(shares["happy"], abs=0.04)


@pytest.mark.parametrize("role", grammar.ROLES)
def test_words_of_one_role_can_replace_each_other(role: str) -> None:
    """In every story; a word of another role in some story cannot."""
    words = grammar.ROLES[role]
    swap = dict(zip(words, [*words[1:], words[0]], strict=True))
    for told in DRAWN:
        assert grammar.surprise([swap.get(word, word) for word in told]) == pytest.approx(
            grammar.surprise(told)
        )


def test_words_of_two_roles_differ_in_some_story() -> None:
    """No two other words can replace each other: the list of roles is complete."""
    more = [grammar.words_of(row) for row in grammar.sentences(np.random.default_rng(2), 2000)]
    for a, b in combinations(grammar.CONTENT, 2):
        if grammar.ROLE.get(a, a) != grammar.ROLE.get(b, b):
            assert any(differs(told, [{a: b, b: a}.get(w, w) for w in told]) for told in more)


def differs(told: list[str], other: list[str]) -> bool:
    """Whether a story is impossible, or has another probability."""
    try:
        return grammar.surprise(other) != pytest.approx(grammar.surprise(told))
    except KeyError:
        return True


def test_impossible_stories_are_refused() -> None:
    with pytest.raises(KeyError):
        [*grammar.told(["the", "fish", "and", "the", "frog", "run"])]


# --- the control ----------------------------------------------------------------------------------


def test_exchange_takes_each_word_to_another_group() -> None:
    moved = grammar.PLAYED
    assert len(moved) == 34 and sorted(moved) == sorted(moved.values())
    assert all(grammar.GROUP[word] != grammar.GROUP[role] for word, role in moved.items())
    for group in [*grammar.GROUPS][:-1]:
        parts = Counter(grammar.GROUP[moved[w]] for w in grammar.GROUPS[group] if w in moved)
        assert max(parts.values()) <= 2


def test_exchanged_stories_are_the_same_stories() -> None:
    told = grammar.sentences(np.random.default_rng(3), 20)
    other = grammar.exchanged(np.random.default_rng(3), 20)
    for row, swapped in zip(told, other, strict=True):
        words = grammar.words_of(swapped)
        assert [grammar.PLAYED.get(word, word) for word in words] == grammar.words_of(row)


@pytest.mark.slow
def test_nearness_follows_the_role_and_not_the_meaning() -> None:
    """The sheets Start and Exchanged: 97 % and 3 %; both by numpy, and in cells."""
    near, used = nearest(learning.CONTROL), grammar.PLAYED
    moved = [*used]
    role = np.mean(
        [grammar.GROUP[used[w]] == grammar.GROUP[used.get(near[w], near[w])] for w in moved]
    )
    meaning = np.mean([grammar.GROUP[w] == grammar.GROUP[near[w]] for w in moved])
    first = nearest(learning.OWN)
    both = np.mean([grammar.GROUP[w] == grammar.GROUP[first[w]] for w in moved])
    shown = default_book("stories").values["exchanged.share"].astype(float)
    np.testing.assert_allclose(shown, [[both, both], [meaning, role]], atol=1e-12)
    of_role = f"For {role:.0%} of these words, the nearest word has the same new role."
    said = f"{of_role} For {meaning:.0%}, it has a similar meaning."
    assert said.replace("%", " %") in texts("Start")
    assert [both, meaning, role] == pytest.approx([32 / 34, 2 / 34, 33 / 34])


@pytest.mark.slow
def test_story_on_exchanged_is_possible() -> None:
    assert grammar.surprise([*control.STORY.split(), grammar.EOS]) > 0
    assert f"number {grammar.ID['dog']} means ‘dog’" in texts("Exchanged")
    assert grammar.PLAYED["dog"] == "moon" and grammar.PLAYED["cat"] == "boy"


@pytest.mark.slow
def test_second_models_nearest_words_in_cells() -> None:
    book, near = default_book("stories"), nearest(learning.CONTROL)
    assert book.values["exchanged.nearest"].ravel().tolist() == [near[w] for w in grammar.MOVED]
    for word in ("cat", "they", "sky"):
        shown = book.edited({book.graph["exchanged.asked"].area: word})
        for name, model in (("first", learning.OWN), ("second", learning.CONTROL)):
            row = cosines(model)[grammar.CONTENT.index(word)]
            order = np.argsort(-row)[: control.N_NEAREST]
            found = shown(book.graph[f"exchanged.{name}_near"].area).ravel()
            assert found.tolist() == [grammar.CONTENT[k] for k in order]
            values = shown(book.graph[f"exchanged.{name}_cosine_near"].area).ravel()
            np.testing.assert_allclose(values.astype(float), row[order], atol=1e-9)


# --- neighbours and maps --------------------------------------------------------------------------


@pytest.mark.slow
def test_neighbours_in_cells() -> None:
    book, near = default_book("stories"), nearest(learning.OWN)
    assert book.values["near.nearest"].ravel().tolist() == [*near.values()]
    groups = [
        np.mean([grammar.GROUP[near[w]] == name for w in words])
        for name, words in grammar.GROUPS.items()
    ]
    every = np.mean([grammar.GROUP[w] == grammar.GROUP[near[w]] for w in near])
    roles = np.mean([grammar.ROLE[w] == grammar.ROLE.get(near[w]) for w in grammar.ROLE])
    shares = book.values["near.share"].ravel().astype(float)
    np.testing.assert_allclose(shares, [*groups, every, roles], atol=1e-12)
    assert every == pytest.approx(0.917, abs=5e-4) and roles == pytest.approx(33 / 34)
    table = cosines(learning.OWN)
    shown = book.values["near.mean"].astype(float)
    for k, words in enumerate(grammar.GROUPS.values()):
        among = np.isin(grammar.CONTENT, words)
        inside = table[np.ix_(among, among)][~np.eye(len(words), dtype=bool)].mean()
        others = table[np.ix_(among, ~among)].mean()
        assert shown[k] == pytest.approx([inside, others], abs=1e-9)


@pytest.mark.slow
def test_pairs_in_cells() -> None:
    book = default_book("stories")
    found = book.values["near.pair_cosine"].ravel().astype(float)
    assert found == pytest.approx([cosine(a, b) for a, b in neighbours.PAIRS], abs=1e-9)
    common = dict(zip(neighbours.PAIRS, book.values["near.common"].ravel(), strict=True))
    assert common["cat", "dog"] == common["big", "small"] == common["mom", "queen"] == "role"
    assert common["cat", "fish"] == common["happy", "sad"] == "group"
    assert common["cold", "blue"] == "nothing"
    edited = book.edited({book.graph["near.pair"][0, 1]: "sofa"})
    assert edited(book.graph["near.common"][0, 0]) == "unknown word"
    assert edited(book.graph["near.pair_cosine"][0, 0]) == ""


@pytest.mark.slow
def test_opposites_are_near_if_no_rule_tells_them_apart() -> None:
    """Start: the two cosines; the others are what Neighbours lists."""
    assert "‘big’ and ‘small’ have a cosine of 0.97" in texts("Start")
    assert cosine("big", "small") == pytest.approx(0.97, abs=5e-3)
    assert cosine("happy", "good") > 0.95 > cosine("happy", "sad") + 0.03
    assert cosine("cold", "blue") > cosine("hot", "cold")


@pytest.mark.slow
def test_shares_of_components_equal_numpy() -> None:
    """Printed: what the essay sees, and the shares of its components."""
    book, x = default_book("stories"), vectors(learning.OWN)
    x = x - x.mean(0)
    _, sizes, axes = np.linalg.svd(x, full_matrices=False)
    share = float((sizes[:2] ** 2).sum() / (sizes**2).sum())
    groups = np.array([grammar.GROUP[word] for word in grammar.CONTENT])
    function, heroes = groups == "function words", np.isin(groups, ("animals", "people"))
    wanted = [between(x @ axes[k], function) for k in range(2)] + [between(x @ axes[0], heroes)]
    table = cosines(learning.OWN)
    colours, adjectives = groups == "colours", groups == "adjectives"
    rest = ~(colours | adjectives)
    wanted += [1.0, table[np.ix_(colours, adjectives)].mean(), table[np.ix_(colours, rest)].mean()]
    seen = book.shown["printed.seen"]
    found = [book.clean.cell("Printed", *seen.cell(k, 0)) for k in range(len(wanted))]
    np.testing.assert_allclose(np.array(found, dtype=float), wanted, atol=1e-9)
    assert share == pytest.approx(0.232, abs=5e-4)
    assert wanted[2] > 0.7 > 0.25 > max(wanted[:2]) and wanted[4] > wanted[5] + 0.1
    assert next(n.printed for n in book.held if "two components" in n.what) == 0.33


def between(x: np.ndarray, among: np.ndarray) -> float:
    """The share of a coordinate's variance between some words and the others."""
    means = np.where(among, x[among].mean(), x[~among].mean())
    return float(means.var() / x.var())


# --- what the model has learnt --------------------------------------------------------------------


def continued(text: str, switched_off: str = "") -> str:
    """The likeliest continuation of a beginning, to its end."""
    model = stories.model()
    ids = model.vocabulary.encode(text)
    while len(ids) < grammar.LENGTH and grammar.WORDS[ids[-1]] != grammar.EOS:
        live = Evaluator(model.graph(ids))
        if switched_off:
            live.set(f"{switched_off}.switch", 0, 0, 0.0)
        ids = [*ids, int(live["probs"][-1].argmax())]
    return " ".join(grammar.WORDS[v] for v in ids)


@pytest.mark.slow
@pytest.mark.parametrize("text", stories.STORY.examples)
def test_typed_stories_continue_by_the_grammar(text: str) -> None:
    told = continued(text).split()[1:]
    assert told[-1] == grammar.EOS and grammar.surprise(told) > 0


@pytest.mark.slow
def test_head_that_brings_the_companion_back() -> None:
    """Start: without head 0.0, the dog does not come back; the model still ends its story."""
    assert "and the dog" in continued(stories.COMPANION)
    without = continued(stories.COMPANION, "blocks.0.attn.h0")
    assert "and the dog" not in without and without.endswith(grammar.EOS)


@pytest.mark.slow
def test_beginning_of_a_story_continues_as_start_says() -> None:
    told = continued(stories.PROMPT)
    assert "a dog swim in the sea . so they laugh" in told and "swim in the sea" in texts("Start")


def test_rules_that_the_model_keeps() -> None:
    """The sheet Rules, measured again story by story; the least kept is the companion's."""
    model = stories.model()
    ids = grammar.sentences(np.random.default_rng(rules.SEED), 30)
    losses, kept = [], {rule: [] for rule in rules.RULES}
    for row in ids:
        words = grammar.words_of(row)
        probs = model.graph([grammar.ID[w] for w in (grammar.BOS, *words[:-1])]).values["probs"]
        losses += [-np.log(probs[k, grammar.ID[w]]) for k, w in enumerate(words)]
        for k, rule, allowed in rules.places(words):
            kept[rule].append(probs[k, allowed].sum())
    loss, shares = rules.measured(model, ids)
    assert loss == pytest.approx(np.mean(losses), abs=1e-9)
    assert shares == pytest.approx({rule: np.mean(x) for rule, x in kept.items()}, abs=1e-9)
    loss, shares = rules.measured(model, whole := rules.unread())
    assert loss - grammar.floor(whole) == pytest.approx(0.008, abs=1e-3)
    assert min(shares, key=lambda rule: shares[rule]) == rules.BACK
    assert 0.85 < shares.pop(rules.BACK) < 0.9 < 0.99 < min(shares.values())


# --- the files ------------------------------------------------------------------------------------


def test_weights_are_rounded() -> None:
    for name in learning.WORDS:
        for weight in checkpoint.load(learning.FOLDER / name).weights.values():
            rounded = weight.round(learning.DECIMALS).astype(np.float32)
            np.testing.assert_array_equal(weight.astype(np.float32), rounded)


@pytest.mark.slow
@pytest.mark.parametrize("name", learning.WORDS)
def test_training_repeats_the_file(name: str, tmp_path: Path) -> None:
    learning.remake(name, tmp_path)
    for made in (tmp_path / name).iterdir():
        assert made.read_bytes() == (learning.FOLDER / name / made.name).read_bytes()


def test_last_digits_do_not_reach_the_next_step() -> None:
    """So processors, which round them otherwise, train the same models."""
    steps = learning.train(0, steps=20)
    for _ in range(10):
        step = next(steps)
    for weight in step.weights.values():
        weight += 1e-13 * np.random.default_rng(0).normal(size=weight.shape)
    *_, model = steps
    *_, other = learning.train(0, steps=20)
    for name, weight in model.weights.items():
        np.testing.assert_array_equal(weight, other.weights[name])


def test_train_command_shows_the_rules(tmp_path: Path) -> None:
    done = cli("train", "stories", "-o", tmp_path / "m", "--steps", 2, "--embed-scale", "0.1")
    assert done.code == 0 and rules.BACK in done.out
    assert checkpoint.load(tmp_path / "m").spec == stories.model().spec


@pytest.mark.slow
def test_page_of_the_capstone_says_so() -> None:
    """docs/capstone.md: the numbers that the tests above compute."""
    page = " ".join((ROOT / "docs" / "capstone.md").read_text(encoding="utf-8").split())
    pairs = [("big", "small"), ("happy", "sad"), ("mom", "mother")]
    assert "; ".join(f"{cosine(a, b):.2f}" for a, b in pairs) in page
    book = default_book("stories")
    group, role = book.values["near.share"].ravel()[-2:]
    assert f"of the same group | {group:.0%}".replace("%", " %") in page
    assert f"if there is one | {role:.0%}".replace("%", " %") in page
    share = book.values["map.shown_share"][0, 0]
    assert f"share of two components | {share:.1%}".replace("%", " %") in page
    sizes = np.array([len(words) for words in grammar.GROUPS.values()])
    chance = (sizes * (sizes - 1)).sum() / (84 * 83)
    assert f"(by chance: {chance:.0%})".replace("%", " %") in page
    example = page.partition("``` <BOS> ")[2].partition(" ```")[0]
    assert grammar.surprise(example.split()) > 0
