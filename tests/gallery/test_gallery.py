"""The gallery: every page agrees with its own computation, and does what its edits promise."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import isclose
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

import numpy as np
import pytest
import thin
from conftest import (
    ERROR,
    ROOT,
    THIN,
    Built,
    CellAt,
    assert_agrees,
    cli,
    default_book,
    in_tiers,
    libreoffice_after,
    needs,
    recomputed_in_ironcalc,
    script,
)
from openpyxl import load_workbook
from thin import thinned

from cellformer import workbooks
from cellformer.engine.cells.batch import CellName
from cellformer.engine.cells.errors import InputError
from cellformer.engine.models.generate import passage
from cellformer.engine.studies import ablation
from cellformer.exporters.checking.programs import Recomputed
from cellformer.exporters.checking.verify import verify
from cellformer.exporters.compose.book import Book, Reading
from cellformer.exporters.compose.story import Suggestion
from cellformer.exporters.file import xlsx
from cellformer.exporters.file.reading import Value
from cellformer.names import is_worksheet
from cellformer.workbooks import cat_sat, shakespeare

TRIED = [name for name in workbooks.names() if name != "shakespeare"]  # see test_shakespeare
SMALLER = {name: f"{THIN}{name}" if name in thin.THIN else name for name in TRIED}


class Promise(NamedTuple):
    """A suggested edit: what is typed where, what that is to the engine, what is then watched."""

    text: str
    typed: dict[CellAt, float | str]
    edits: dict[CellName, float | str]
    shown: dict[CellAt, float | str]


@cache
def promises(name: str) -> list[Promise]:
    """The edits of a workbook's start sheet, and of its other sheets."""
    book = default_book(name)
    assert len(book.suggestions) == 3
    assert {len(sheet.suggestions) for sheet in book.sheets.values()} <= {0, 3}
    of_sheets = [sheet.suggestions for sheet in book.sheets.values() if sheet.suggestions]
    if is_worksheet(name.removeprefix(THIN)):
        return [
            promise_of(book, (t,))
            for suggestions in (book.suggestions, *of_sheets)
            for t in suggestions
        ]
    return [
        promise_of(book, suggestions)
        for suggestions in zip(book.suggestions, *of_sheets, strict=True)
    ]


def promise_of(book: Book, suggestions: Sequence[Suggestion]) -> Promise:
    """Suggestions that are made together: one of each of a transformer's sheets, which are slow to
    recompute. Each by itself changes what is to be seen, too."""
    each = [edits_of(t) for t in suggestions]
    edits = {at: value for own in each for at, value in own.items()}
    typed_in = {book.cell(*at): value for at, value in edits.items()}
    shown: dict[CellAt, Value] = {}
    for t, own in zip(suggestions, each, strict=True):
        seen = watched(book, t, own)
        assert seen == nearly(t.becomes), t.text
        shown |= {book.cell(*t.watch): watched(book, t, edits)}
    return Promise("; ".join(t.text for t in suggestions), typed_in, edits, shown)


def edits_of(t: Suggestion) -> dict[CellName, float | str]:
    """What is typed."""
    assert t.value is not None, t.text
    return {block_cell(at): value for at, value in ((t.cell, t.value), *t.also)}


def watched(book: Book, t: Suggestion, edits: Mapping[CellName, float | str]) -> Value:
    """The value of the watched cell after edits."""
    name, i, j = t.watch
    return edited(book, edits)(book.graph[name][i, j])


def nearly(value: Value) -> object:
    """What is equal to a value: a text to itself, a number to those around it."""
    return value if isinstance(value, str) else pytest.approx(value, abs=1e-9)


def block_cell(at: CellName | int) -> CellName:
    """A cell of a table or block, or the k-th word to pick on Play."""
    return ("prompt.pick", at, 0) if isinstance(at, int) else at


@cache
def after(name: str, k: int) -> Reading:
    """What the engine has in every cell after an edit."""
    return edited(default_book(name), promises(name)[k].edits)


EDITED: dict[tuple[int, frozenset], Reading] = {}  # by the book, which `default_book` keeps


def edited(book: Book, edits: Mapping[CellName, float | str]) -> Reading:
    key = id(book), frozenset(edits.items())
    if key not in EDITED:
        cells = {book.graph[block][i, j]: x for (block, i, j), x in edits.items()}
        EDITED[key] = book.edited(cells)
    return EDITED[key]


def assert_kept(name: str, k: int, built: Built, shown: Callable[[CellAt], Value]) -> None:
    """A program shows what the k-th edit's text promises, what the engine computes, no error."""
    promise, computed = promises(name)[k], after(name, k)
    assert_promised(promise, shown)
    for cell in built.formula_cells(name).formulas:
        found, value = shown(cell), computed.cell(*cell)
        if isinstance(value, float):
            assert isinstance(found, int | float), (promise.text, cell, found)
            assert isclose(found, value, abs_tol=1e-9, rel_tol=1e-12), (promise.text, cell)
        else:
            assert (found or "") == (value or ""), (promise.text, cell)
            assert not ERROR.fullmatch(str(found)), (promise.text, cell)


def assert_promised(promise: Promise, shown: Callable[[CellAt], Value]) -> None:
    """A program shows what an edit's text promises."""
    for cell, value in promise.shown.items():
        assert shown(cell) == nearly(value), promise.text


@pytest.mark.parametrize("name", in_tiers(SMALLER.values()))
def test_every_edit_does_what_its_text_says(name: str, built, tmp_path: Path) -> None:
    """IronCalc agrees at every formula cell, from wrong values, and after each edit."""
    sheet = recomputed_in_ironcalc(built.formula_cells(name), tmp_path)
    for k, promise in enumerate(promises(name)):
        with sheet.typed(promise.typed):
            assert_kept(name, k, built, sheet.__getitem__)


@pytest.mark.slow
@pytest.mark.parametrize("name", thin.THIN)
def test_ironcalc_agrees_at_every_formula_cell(name: str, built) -> None:
    """Of those that it does not get whole above."""
    needs("ironcalc")
    report = verify(built.formula_cells(name), "ironcalc")
    assert report.agrees, report


@pytest.mark.slow
@pytest.mark.parametrize("name", thin.THIN)
def test_edits_of_large_workbooks_in_the_engine(name: str) -> None:
    for k, promise in enumerate(promises(name)):
        assert_promised(promise, lambda at, k=k: after(name, k).cell(*at))


NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?: ?%)?")


QUOTED = re.compile("‘([^’]*)’")


def numbers(text: str) -> list[tuple[float, float]]:
    """The numbers of a text but for what is quoted, each with the half of its last decimal."""
    of = []
    for number in NUMBER.findall(QUOTED.sub("", text)):
        digits = number.rstrip(" %").replace(",", "")
        unit = 0.01 if number.endswith("%") else 1.0
        of.append((float(digits) * unit, 0.5000001 * unit * 10.0 ** -len(digits.partition(".")[2])))
    return of


def names_it(text: str, value: Value) -> bool:
    """Whether a text names a value: a word in quotes or as a number, a number at the decimals that
    it gives, one of the numbers of a sentence."""
    if isinstance(value, str):
        shown = {said for said, _ in numbers(value)}
        return value in QUOTED.findall(text) or bool(shown & {said for said, _ in numbers(text)})
    return any(abs(value - said) <= half for said, half in numbers(text))


def every_suggestion(book: Book) -> list[Suggestion]:
    return [*book.suggestions, *(t for sheet in book.sheets.values() for t in sheet.suggestions)]


@pytest.mark.parametrize("name", in_tiers(workbooks.names()))
def test_every_suggestion_names_a_number_that_it_shows(name: str) -> None:
    """So readers can tell that they did it right: its text quotes what to type, and names what the
    cell to see then shows."""
    book = default_book(name)
    for t in every_suggestion(book):
        assert t.watch is not None, t.text
        assert is_quoted(t), t.text
        block, i, j = t.watch
        assert names_it(t.text, edited(book, edits_of(t))(book.graph[block][i, j])), t.text


def is_quoted(t: Suggestion) -> bool:
    """Whether a text quotes everything that is to be typed; <BOS> need not be."""
    quoted = QUOTED.findall(t.text)
    for value in (t.value, *(value for _, value in t.also)):
        spelt = value if isinstance(value, str) else f"{value:.12g}"
        told = {spelt, spelt.removeprefix("<BOS> ")}
        if not told & {*quoted} and value != 2**0.5:  # which is typed as a formula
            return False
    return True


def test_a_wrong_number_in_a_suggestion_is_found() -> None:
    text = "Scores are divided by this number. Type ‘0.2’: ‘sat’ now gives itself 97 % of it."
    assert names_it(text, 0.9691) and not names_it(text, 0.42)
    assert not names_it(text, 0.2), "what is typed is no result"
    assert not names_it(text.replace("97", "79"), 0.9691)
    assert names_it("Type ‘bond’: it finds ‘the bond’.", "the bond")
    assert not names_it("Type ‘bond’: it finds ‘the share’.", "the bond")


def test_start_shows_a_share_as_its_text_does() -> None:
    """In percent where the text names it so: of cat-sat always, of adder never."""
    for name, style in (("cat-sat", "stop percent 1"), ("adder", "stop count")):
        book = default_book(name)
        shown, sheet = book.shown["start.watched"], book.sheets["Start"]
        found = {sheet.entries[shown.cell(k, 0)].style for k in range(3)}
        assert found == {style}


@pytest.mark.slow
def test_the_first_list_of_dialogue_game_is_uncertain() -> None:
    """After ‘chiama’ eight numbers are almost equally likely; after ‘Paolo’ one word is sure."""
    book = default_book("dialogue-game")
    shown = book.shown["start.likeliest"]
    unsure, sure = (book.clean.cell("Start", *shown.cell(k, 0)) for k in range(2))
    assert unsure.count("(11 %)") == 8 and sure == "Tarso (100 %)"
    before = book.shown["start.before"]
    assert book.clean.cell("Start", *before.cell(0, 0)) == "after ‘chiama’"


IN_LIBREOFFICE = (SMALLER | {"dialogue-game": "dialogue-game"}).values()  # one edit, of it whole


def tried_in_libreoffice(name: str) -> list[int]:
    """Every edit of a worksheet; the last one of a transformer, whose cells are many."""
    if name not in IN_LIBREOFFICE:
        return []
    found = range(len(promises(name)))
    return [*found] if is_worksheet(name.removeprefix(THIN)) else [*found][-1:]


@pytest.fixture(scope="module")
def office(built, tmp_path_factory, libreoffice) -> Callable[[str], list[Recomputed]]:
    """What LibreOffice makes of a workbook from wrong values, and of each edit then made in it;
    where cells wait for each other in a circle, of each in a copy, as all before would count."""

    @cache
    def shown(name: str) -> list[Recomputed]:
        folder, tried = tmp_path_factory.mktemp("office"), tried_in_libreoffice(name)
        edits = [{}, *(promises(name)[k].typed for k in tried)]
        if not built.file(name).iterates:
            return libreoffice_after(built[name], edits, folder / "all")
        each = enumerate(edits)
        return [libreoffice_after(built[name], [edit], folder / str(k))[0] for k, edit in each]

    return shown


@pytest.mark.parametrize("name", [n for n in workbooks.names() if n != "shakespeare"])
def test_libreoffice_agrees_at_every_formula_cell(name: str, built, office) -> None:
    assert_agrees(built.formula_cells(name), office(name)[0])


@pytest.mark.parametrize("name", IN_LIBREOFFICE)
def test_every_edit_in_libreoffice(name: str, built, office) -> None:
    tried, (_, *files) = tried_in_libreoffice(name), office(name)
    for k, file in zip(tried, files, strict=True):
        assert_kept(name, k, built, lambda cell, file=file: file[cell[0]][cell[1:]])
        assert not [sheet for sheet in file if file[sheet].errors], promises(name)[k].text


@pytest.mark.parametrize("name", workbooks.names())
def test_modules_say_what_to_look_at(name: str) -> None:
    module = workbooks.find(name)
    assert module.__doc__.startswith(f"{name}: ")


@cache
def thin_plays(n_tokens: int = shakespeare.N_TOKENS) -> Book:
    """The workbook of Shakespeare's plays with a random model of narrow vectors."""
    played = shakespeare.model()
    plays = thinned(played.spec, played.vocabulary)
    ids = plays.vocabulary.encode(shakespeare.PROMPT)
    return shakespeare.build(plays, passage(plays, ids, max(n_tokens, len(ids))))


@pytest.mark.slow
@pytest.mark.parametrize("name", [*in_tiers(TRIED), "shakespeare"])
def test_no_text_holds_a_backtick(name: str, built, tmp_path: Path) -> None:
    """Quotes are ‘ and ’, as everywhere on sheets; a token of a vocabulary is data."""
    plays = name == "shakespeare"
    path = xlsx.write(thin_plays(7), tmp_path / "plays.xlsx") if plays else built[name]
    with ZipFile(path) as file:
        parts = [file.read(part).decode() for part in file.namelist() if part.endswith(".xml")]
    assert {text for part in parts for text in re.findall(r">([^<]*`[^<]*)<", part)} <= {"`"}


OF_A_KIND = {  # a printed number of each kind, as one finds with the source in hand
    ("cat-sat", "Step 2: Q [2, 0]"): "slip here",
    ("cat-sat", "Step 3: Q Kᵀ, divided by √5 [2, 2]"): "carried on",
    ("cat-sat", "Step 7: the last row of the stream [2, 0]"): "other settings",
    ("fluffy-creature", "Logits, computed by hand in the notes [3, 3]"): "carried on",
    ("fluffy-creature", "Logits, computed by hand in the notes [2, 3]"): "slip here",
    ("sampling", "section 5, probability of floor"): "rounded",
    ("positions", "slowest hand: wavelength / 2π"): "other settings",
    ("dialogue-game", "§5: Tarso after the first block"): "other training",
    ("dialogue-game", "§4: the likeliest number"): "",
    ("napkin", "introduction: d_model of GPT-2 small"): "typed",
    ("napkin", "introduction: d_vocab of GPT-2 small"): "slip here",
    ("loss", "log loss of a guess among 17 words"): "",
}


@pytest.mark.slow
def test_list_of_printed_numbers_is_current() -> None:
    """That of the plays prints none, whatever its model."""
    sources = script("sources")
    assert thin_plays().held == []
    found = list(sources.lines(lambda n: thin_plays() if n == "shakespeare" else default_book(n)))
    assert sources.TARGET.read_text() == sources.page(found), "python docs/scripts/sources.py"
    for line in found:
        assert line.document in sources.DOCUMENTS, line
        assert line.note or line.kind in ("", sources.TYPED), line
    kinds = {(line.workbook, line.held.what): line.kind for line in found}
    for key, kind in OF_A_KIND.items():
        assert kinds[key] == kind, key
    printed = [line.held.printed for line in found if line.workbook == "final-step"]
    assert {4.14, 2.14, 0.56, 6.84, 4.26, 2.28, -1.74, 0.87, 0.12, 0.01} < set(printed)


def test_printed_steps_follow_from_printed_tables() -> None:
    """The figures that the printed tables give, step by step, as numpy has them."""
    Q, K = (np.array(t.printed) for t in cat_sat.PRINTED[:2])
    shown = from_printed("cat-sat")
    assert shown["Step 3: Q Kᵀ"] == pytest.approx((Q @ K.T).ravel())
    assert shown["Step 3: Q Kᵀ, divided by √5"][1::2][:2] == pytest.approx(
        [0.031, -0.004], abs=1e-3
    )
    assert shown["Step 4: attention weights"][3:] == pytest.approx([0.286, 0.315, 0.399], abs=5e-4)
    blend = [0.027, -0.109, 0.269, 0.013, 0.132]
    assert shown["Step 5: weighted sum of V"][10:] == pytest.approx(blend, abs=5e-4)
    shown = from_printed("fluffy-creature")
    after = np.array([[10.5, 10.5], [11.71, 8.63], [10.64, 10.10], [9.98, 11.58]])
    logits = after @ np.array([[1.0, 2.0], [2.0, 0.5], [1.5, 1.5], [0.5, 2.5]]).T
    assert shown["Logits, computed by hand in the notes"] == pytest.approx(logits.ravel())
    assert logits[1, [1, 3]] == pytest.approx([27.735, 27.43])
    assert logits[2, 3] == pytest.approx(30.57)
    code = (0.1620798, 0.0471384, 0.7560350, 0.0347468)  # that the notes' code prints
    assert shown["Probabilities, from the notes' code"][4:8] == pytest.approx(code, abs=1e-6)


def from_printed(name: str) -> dict[str, list[float]]:
    """What each table's last copy shows: what the tables printed before it give."""
    book, found = default_book(name), {}
    for table in book.printed:
        region = book.printed_cells[table.title].rect
        step = region.right - region.left
        step += 0 if len(table.printed) == 1 else 2
        left = region.left + 3 * step
        cells = [(r, left + c - region.left) for r, c in region.cells()]
        values = [book.clean.cell("Printed", *cell) for cell in cells]
        found[table.title] = [value for value in values if value is not None]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cat-sat", "fluffy-creature", "two-layers", "induction"])
def test_mean_ablation_differs_from_zero_ablation(name: str) -> None:
    book = default_book(name)
    moved = []
    for part in ablation.parts(book.graph):
        off = {(f"{part}.switch", 0, 0): 0.0}
        zero, mean = (
            edited(book, off | {("mean_ablation", 0, 0): x}).values["logits"] for x in (0.0, 1.0)
        )
        moved.append(np.abs(zero - mean).max())
    assert max(moved) > 0.1


def test_two_layers_gives_every_printed_table() -> None:
    """Section 6 prints two decimals."""
    book = default_book("two-layers")
    for table in workbooks.find("two-layers").printed():
        found = book.values[table.block]
        rows = range(len(table.printed)) if table.rows is None else table.rows
        for i, line in zip(rows, table.printed, strict=True):
            for j, value in enumerate(line):
                if book.graph[table.block].has(i, j):
                    assert abs(found[i, j] - value) < 0.006, (table.title, i, j)


@pytest.mark.slow
def test_build_all_with_an_index(tmp_path: Path) -> None:
    assert cli("build", "--all", "-o", tmp_path / "all").code == 0
    written = {path.name for path in (tmp_path / "all").iterdir()}
    beside = {"index.xlsx", "index.html", "SHA256SUMS", "pictures"}
    twins = {f"{name}.{kind}" for name in workbooks.path() for kind in ("xlsx", "html")}
    assert written == twins | beside
    sheet = load_workbook(tmp_path / "all" / "index.xlsx")["Gallery"]
    links = {c.value: c.hyperlink.target for line in sheet for c in line if c.hyperlink}
    assert links == {name: f"{name}.xlsx" for name in workbooks.path()}
    assert [*links] == workbooks.path(), "in learning order"
    assert sheet["A6"].value == "start here"


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("build", "give the name of a workbook"),
        ("build cat-sat --all", "cat-sat is not a folder of models"),
        ("build attention-by-columns --prompt a", "only the option -o works"),
        ("build attention-by-columns --seed 3", "only the option -o works"),
        ("build --all --temperature 0.5", "prompt. Combine --all only with -o"),
        ("generate attention-by-columns", "has no model"),
        ("build --all -o {file}", "cannot make the folder"),
    ],
)
def test_bad_commands_are_refused(line: str, fault: str, tmp_path) -> None:
    (tmp_path / "file").write_text("")
    words = [word.format(file=tmp_path / "file") for word in line.split()]
    done = cli(*words)
    assert done.code == 2
    assert fault in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_path_leads_to_every_workbook() -> None:
    """Levels do not fall inside a topic."""
    path = workbooks.path()
    assert sorted(path) == workbooks.names()
    assert path[0] == "adder"
    for listed in workbooks.by_topic().values():
        levels = [workbooks.level(name) for name in listed]
        assert levels == sorted(levels), listed


def test_workbook_after_an_unknown_one_is_refused(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "lost.py").write_text('''"""lost: a workbook."""
TITLE, TOPIC, AFTER, LEVEL = "lost", "Sizes", "nothing", 1
book = None
''')
    monkeypatch.setattr(workbooks, "__path__", [*workbooks.__path__, str(tmp_path)])
    with pytest.raises(InputError, match="'lost' has AFTER = 'nothing', but there is no workbook"):
        workbooks.path()


def test_every_workbook_is_listed_and_pictured() -> None:
    listed, page = cli("list").out, (ROOT / "docs" / "gallery.md").read_text()
    for name in workbooks.names():
        assert name in listed
        assert f"gallery/{name}.png" in page
        assert (ROOT / "docs" / "gallery" / f"{name}.png").is_file()
