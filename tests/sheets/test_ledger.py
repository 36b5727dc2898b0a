"""The ledger on every sheet names what differs; bad values are told, and lead to no error."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from conftest import ERROR, CellAt, InIronCalc, random_model, script
from libreoffice import Typed, typed_by_hand
from on_play import MESSAGE, PICK_ROW, RANKS_ROW

import cellformer as cf
from cellformer.engine import ModelSpec
from cellformer.engine.cells.values import CellError
from cellformer.engine.models.choosing import Sampling
from cellformer.engine.studies import ablation
from cellformer.exporters.checking import verify
from cellformer.exporters.file.reading import Value, WorkbookFile
from cellformer.exporters.model.block_sheets import PLAY, PROMPT_COL
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.pages.switches import writers
from cellformer.exporters.play.ranking import n_ranks

pytestmark = pytest.mark.slow

LEDGER = script("ledger", "benchmarks")  # of benchmarks, which asks 50 sets of edits
# of two layers the formulas would be twice as many, and of the same kinds
SPEC = ModelSpec(7, 4, 8, n_layers=1, n_heads=2, d_head=2, d_mlp=3, norm="layer", bias=True)


def drawn() -> ModelBook:
    """A model of random weights that no test was written for."""
    book = cf.build(random_model(SPEC, 5), ids=[1, 2, 3], n_tokens=6, title="drawn")
    assert isinstance(book, ModelBook)
    return book


@pytest.fixture(scope="module")
def book() -> ModelBook:
    return drawn()


@pytest.fixture(scope="module")
def path(book: ModelBook, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cf.write(book, tmp_path_factory.mktemp("drawn") / "drawn.xlsx")


def typed(edits: Sequence[tuple[str, int, int, object]]) -> Typed:
    return {(sheet, row, col): value for sheet, row, col, value in edits}  # type: ignore[misc]


def test_ledger_names_exactly_the_edits(book: ModelBook, path: Path) -> None:
    """Random edits: weights, switches, dials, picks, the sentence; and none."""
    sheet, line = InIronCalc(path), book.named_cells["ledger"]
    for edited in LEDGER.sets(book, np.random.default_rng(7))[:25]:
        with sheet.typed(typed([edit for edit, _ in edited])):
            assert LEDGER.right(str(sheet[line]), [text for _, text in edited]), edited
    with sheet.typed({book.cell("prompt.pick", 5, 0): "w1"}):
        assert "word 5 picked: w1 (beyond the sentence: no effect)" in str(sheet[line])


def test_swapped_numbers_are_seen(book: ModelBook, path: Path) -> None:
    """No sum changes."""
    name, sheet = "blocks.0.mlp.W_in", InIronCalc(path)
    first, second = (float(book.values[name][i, 0]) for i in (0, 1))
    cells = {book.cell(name, 0, 0): second, book.cell(name, 1, 0): first}
    with sheet.typed(cells):
        line = str(sheet[book.named_cells["ledger"]])
        assert line.startswith(f"2 edits: {name}[0,0] ") and "and 1 more in this block" in line
        assert sheet["Built", 3, 0] == line


def test_bad_values_make_no_error(book: ModelBook, path: Path) -> None:
    """Whatever is pasted: every formula has a value, and the ledger names the cell."""
    sheet, formulas = InIronCalc(path), verify.read(path).formulas
    for edits in LEDGER.bad(book)[::3]:
        with sheet.typed(typed(edits)):
            wrong = [cell for cell in formulas if ERROR.fullmatch(str(sheet[cell]))]
            assert not wrong, (edits, wrong[:3])
            assert "edit" in str(sheet[book.named_cells["ledger"]]), edits


def as_typed(value: Value) -> float | str:
    """A value of a cell as one types it; nothing where it is blank."""
    return "" if value is None else value


def test_bad_values_in_libreoffice(
    book: ModelBook, path: Path, tmp_path: Path, libreoffice
) -> None:
    """The same of some of them, and of edits, in one sheet: each is taken back before the next."""
    edited = LEDGER.sets(book, np.random.default_rng(11))[:6]
    bad = LEDGER.bad(book)[1::12]
    line = book.named_cells["ledger"]
    told = [line, MESSAGE, (PLAY, RANKS_ROW, 1), (PLAY, RANKS_ROW, 3), ("Check", 5, 2)]
    texts = [typed([edit for edit, _ in edits]) for edits in edited] + [*map(typed, bad)]
    file, back, one_upon_the_other = WorkbookFile(path), dict[CellAt, float | str](), []
    for text in texts:
        one_upon_the_other.append(back | dict(text))
        back = {at: as_typed(file[at[0]][at[1:]]) for at in text}
    answers = typed_by_hand(path, one_upon_the_other, tmp_path / "office")
    for edits, answer in zip(edited, answers, strict=False):
        assert LEDGER.right(str(answer[line[0]][line[1:]]), [text for _, text in edits]), edits
    for edits, answer in zip(bad, answers[len(edited) :], strict=True):
        shown = {at: answer[at[0]][at[1:]] for at in told}
        assert not [at for at, value in shown.items() if isinstance(value, CellError)], edits


def test_unknown_word_has_no_answer(book: ModelBook, path: Path) -> None:
    """It is named with the nearest word, and nothing is ranked; case is forgiven."""
    sheet, line = InIronCalc(path), book.named_cells["ledger"]
    sentence, top, n = book.cell("sentence", 0, 0), RANKS_ROW, n_ranks(book)
    with sheet.typed({sentence: "w1 ww3 w2"}):
        assert sheet[MESSAGE] == "‘ww3’ is unknown; nearest: w3: no answer"
        shown = [sheet[PLAY, top + k, col] for k in range(n) for col in range(1, 7)]
        assert set(shown) <= {"", None}
        assert "‘ww3’ is unknown" in str(sheet[line])
        for other in list(book.sheets.values())[1:]:
            if other.name == "Guess":
                continue  # it asks for the word that the line holds
            (at,) = (at for at, e in other.entries.items() if at[0] == 1 and e.style == "ledger")
            assert sheet[other.name, *at] == sheet[line]
    with sheet.typed({sentence: "w1 W3 w2"}):
        assert sheet[MESSAGE] == "tokens given: 3, generated: 3"
        assert sheet[book.cell("tokens", 1, 0)] == 3
        assert sheet[PLAY, top, 1] in book.labels["vocab"]


def test_followed_words_follow_the_sentence(book: ModelBook, path: Path) -> None:
    """Target and rival are the likeliest words, unless others are typed, whatever is typed."""
    sheet, top = InIronCalc(path), RANKS_ROW
    target, rival, position, instead, sentence = (
        book.cell(name, 0, 0)
        for name in ("look.target", "look.rival", "position", "look.target.instead", "sentence")
    )
    (estimate,) = (
        at
        for at, e in book.sheets["Switches"].entries.items()
        if e.formula is not None and e.style == "heading"
    )
    words, rng = book.labels["vocab"], np.random.default_rng(3)
    for n in (1, 2, 4, 5):
        text = " ".join(words[k] for k in rng.integers(0, len(words), n))
        with sheet.typed({sentence: text}):
            first, second = (str(sheet[PLAY, top + k, 1]) for k in (0, 1))
            assert (sheet[position], sheet[target], sheet[rival]) == (n - 1, first, second), text
            assert sheet["Lens", 7, 1] == sheet["Attribution", 5, 1] == first
            assert str(sheet["Switches", *estimate]).endswith(f"to the logit of ‘{first}’")
    with sheet.typed({sentence: text, instead: second}):
        assert sheet[target] == second == sheet["Lens", 7, 1]
        assert sheet[rival] == first


def test_estimates_equal_attribution(book: ModelBook) -> None:
    """Each part's is the sum of its shares; it is as far from what ablation says as is told."""
    off = []
    last, target = book.passage.n_prompt - 1, int(book.value("target", 0, 0))
    for effect in ablation.effects(book.graph, target, last):
        shares = [book.views.credits["target"][name] for name in writers(book, effect.part)]
        now = sum(book.values[share.name][last, 0] for share in shares)
        off.append(abs(now + effect.change))
    said = [e.value for e in book.sheets["Switches"].entries.values() if e.style == "note"]
    told = f"its error as built: {np.median(off):.3f} (median), {max(off):.3f} (maximum)"
    assert any(told in str(text) for text in said)


def test_temperature_0_is_greedy(book: ModelBook, path: Path) -> None:
    """As the command has it: the likeliest word has it all, though words are `sampled`."""
    sheet = InIronCalc(path)
    how = {book.cell("choose", 0, 0): "sampled", book.cell("temperature", 0, 0): 0.0}
    wanted = [s.token for s in cf.generate(book.model, [1, 2, 3], 3, Sampling())]
    with sheet.typed(how):
        assert [sheet[book.cell("tokens", t, 0)] for t in (3, 4, 5)] == wanted
        assert sheet[PLAY, RANKS_ROW, 3] == 1
    assert sheet[PLAY, PICK_ROW, PROMPT_COL] in ("", None)
