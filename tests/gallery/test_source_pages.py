"""Sheets after the source documents: what their cells show, computed a second time in numpy."""

import numpy as np
import pytest
from conftest import default_book

from cellformer.workbooks import tokenization
from cellformer.workbooks.final_step import searches


def shown(name: str, *tables: str) -> list[np.ndarray]:
    """The values of a workbook's tables, as numbers where they are."""
    book = default_book(name)
    values = [np.atleast_2d(book.clean(book.graph[table].area)) for table in tables]
    return [v if isinstance(v.flat[0], str) else v.astype(float) for v in values]


def softmax(x: np.ndarray, axis: int) -> np.ndarray:
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def test_a_database_finds_by_cosine_and_says_where_nothing_is_near() -> None:
    book, g = default_book("final-step"), default_book("final-step").graph
    words = [str(word) for word in searches.COUNTED]
    counts = np.array([[text.count(word) for word in words] for text in searches.STORED])
    asked = np.array([searches.QUESTION.count(word) for word in words])
    cosines = counts @ asked / np.linalg.norm(counts, axis=1) / np.linalg.norm(asked)
    assert book.clean(g["search.cosines"].area).ravel() == pytest.approx(cosines)
    logits, query, table = (book.values[name] for name in ("logits", "resid_final", "W_U"))
    assert book.clean(g["search.logits"].area).ravel() == pytest.approx((query @ table)[0])
    assert book.clean(g["search.logits"].area).ravel() == pytest.approx(logits[0])
    best = " ".join(searches.STORED[int(cosines.argmax())])
    assert book.clean(g["search.found"][0, 0]) == best
    unknown = {g["search.asked"][0, k]: "" for k in range(searches.LONGEST)}
    after = book.edited(unknown)
    assert after(g["search.found"][0, 0]) == searches.NOTHING
    assert after(g["search.reads"][0, 0]) == ""


@pytest.mark.parametrize("told", [0.0, 1.0])
def test_average_ignores_order(told: float) -> None:
    book = default_book("positions")
    after = book.edited({book.graph["places_on"][0, 0]: told})
    words, places = shown("positions", "word_vectors", "place_vectors")
    lasts, averages = [], []
    for order in ([0, 1, 2, 3], [2, 1, 0, 3]):
        x = words[order] + told * places
        share = softmax(x @ x[-1] / 2, 0)
        lasts.append(x[-1] + share @ x)
        averages.append(x.mean(axis=0))
    apart = after(book.graph["apart"].area)[0]
    assert apart[0] == pytest.approx(0, abs=1e-12)
    assert apart[1] == pytest.approx(np.linalg.norm(lasts[0] - lasts[1]))
    assert (apart[1] > 0.1) == bool(told)
    assert averages[0] == pytest.approx(averages[1])


def test_clock_hands_tell_hours_apart() -> None:
    minutes, periods, found = shown("positions", "minutes", "periods", "clock_distances")
    angles = 2 * np.pi * minutes / periods
    hands = np.exp(1j * angles)
    later = np.exp(2j * np.pi * (minutes + 1) / periods)
    assert found[:, 0] == pytest.approx(np.linalg.norm(later - hands, axis=1))
    assert found[:, 1] == pytest.approx(np.linalg.norm(hands - hands[0], axis=1), abs=1e-9)
    day = np.exp(2j * np.pi * np.arange(721)[:, None] / periods)
    apart = np.abs(day[:, None] - day[None]).sum(axis=2) + 9 * np.eye(721)
    assert apart[:720, :720].min() > 0.1
    assert apart[0, 720] == pytest.approx(0, abs=1e-9)


def test_softmax_by_each_axis() -> None:
    scores, rows, columns = shown("one-head", "scores", "by_rows", "by_columns")
    assert rows == pytest.approx(softmax(scores, 1))
    assert columns == pytest.approx(softmax(scores, 0))
    other, theirs = shown("one-head", "other", "other_by_rows")
    assert theirs == pytest.approx(softmax(other, 1))
    assert theirs[0].round(3).tolist() == [0.845, 0.103, 0.051]
    assert theirs[1].round(3).tolist() == [0.204, 0.184, 0.612]


def test_heads_are_cut_as_numpy_cuts_them() -> None:
    x, wq, wk, right, wrong = shown("one-head", "X", "W_Q", "W_K", "head_0", "reshaped")
    q, k = x @ wq, x @ wk
    heads = q.reshape(3, 2, 2).transpose(1, 0, 2)  # [n_heads, T, d_head]
    assert right == pytest.approx(heads[0])
    assert wrong == pytest.approx(q.reshape(2, 3, 2)[0])
    (found,) = shown("one-head", "by_slices")
    scores = np.einsum("thd,Thd->htT", q.reshape(3, 2, 2), k.reshape(3, 2, 2)) / np.sqrt(2)
    assert found == pytest.approx(np.hstack([*scores]))


def test_variance_of_a_dot_product() -> None:
    q, k, widths, variances, scaled = shown(
        "one-head", "drawn_q", "drawn_k", "widths", "variances", "scaled"
    )
    dots = np.array([(q[:, : int(d)] * k[:, : int(d)]).sum(axis=1) for d in widths[0]])
    assert variances[0] == pytest.approx(dots.var(axis=1))
    assert scaled[0] == pytest.approx(dots.var(axis=1) / widths[0])
    assert np.abs(scaled - 1).max() < 0.3
    (sharp, soft) = shown("one-head", "sharp", "soft")
    assert sharp[0] == pytest.approx(softmax(dots[:, :10], 1).max(axis=1))
    assert soft[0] == pytest.approx(softmax(dots[:, :10] / np.sqrt(widths.T), 1).max(axis=1))


def test_kv_cache_holds_recomputed_values() -> None:
    x, wq, wk, wv = shown("kv-cache", "x", "W_Q", "W_K", "W_V")
    for step, n in enumerate((3, 4, 5)):
        keys, values, z = shown("kv-cache", f"K_after_{step}", f"V_after_{step}", f"z_of_{step}")
        assert keys == pytest.approx(x[:n] @ wk)
        assert values == pytest.approx(x[:n] @ wv)
        share = softmax((x[:n] @ wk) @ (x[n - 1] @ wq) / np.sqrt(2), 0)
        assert z[0] == pytest.approx(share @ x[:n] @ wv)
    book = default_book("kv-cache")
    kept = {area.grid.name for area in book.graph["K_after_2"].expression(0, 0).areas()}
    assert kept == {"K_after_1"}, "an old key is read, not computed"


def test_reach_of_a_head_and_of_a_filter() -> None:
    book = default_book("ocr-filter")
    grid = np.array([(r, c) for r in range(5) for c in range(5)])
    for place in ((0, 0), (0, 4), (3, 1)):
        ink = np.zeros((5, 5))
        ink[4 - place[0], 4 - place[1]] = 1
        cells = {book.graph["place"][0, k]: float(place[k]) for k in range(2)}
        cells |= {book.graph["image"][i, j]: ink[i, j] for i in range(5) for j in range(5)}
        after = book.edited(cells)
        far = ((grid - (4 - np.array(place))) ** 2).sum(axis=1)
        share = softmax(-4.0 * far, 0).reshape(5, 5)
        assert after(book.graph["head_shares"].area) == pytest.approx(share)
        head, stop = after(book.graph["brought"].area)[0]
        assert head == pytest.approx((share * ink).sum())
        assert head > 0.9
        assert stop == (ink[:3, :3] * [-1, 2, -1]).sum()
    assert book.edited({book.graph["side"][0, 0]: 28.0})(book.graph["layers_needed"].area) == 14


def test_training_on_a_napkin() -> None:
    weights, corpus, flop, printed, hours, dollars = (
        table[0]
        for table in shown(
            "napkin", "trained", "corpus", "training_flop", "flop_printed", "chip_hours", "dollars"
        )
    )
    assert flop * 1e18 == pytest.approx(6 * weights * corpus * 1e9)
    assert (printed / flop)[:2] == pytest.approx([25.7, 25.4], abs=0.1)
    assert hours == pytest.approx(flop * 1e18 / (125e12 * 0.3) / 3600)
    assert dollars == pytest.approx(1.5 * hours)


@pytest.mark.slow
def test_merges_equal_the_library() -> None:
    """Texts that the corpus does not have, in other scripts too; and the corpus itself."""
    book, merges = default_book("tokenization"), tokenization.learnt(tokenization.CORPUS, 12)
    library = tokenization.library(merges)
    for text in ("lowest", "newer slow widest", "LOW lows", "été 12", "", "low\tlow"):
        after = book.edited({book.graph["sentence"][0, 0]: text})
        ids = after(book.graph["tokenizer.ids"].area).ravel()
        wanted = library.encode(text)
        assert ids.tolist() == [*wanted, *[-1] * (tokenization.N_TOKENS - len(wanted))], text
    assert [library.texts[i] for i in library.encode("lowest")] == [" low", "est"]
    assert merges[0][:2] == ("e", "s")
    stood = book.values["stood_in_all"].ravel().tolist()
    assert stood == [9, 9, 7, 7, 7, 6, 6, 6, 6, 3, 3, 3]  # as the paper has the first of them
