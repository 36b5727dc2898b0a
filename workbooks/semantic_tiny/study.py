"""The sheet Study of semantic-tiny: the table of forty words, an analogy asked of it and of the
learned vectors, and the measures of every run."""

import json

from engine.cells.expression import Area, Expression
from engine.cells.functions import IF, IFERROR, INDEX, LARGE, MATCH, SQRT, SUMPRODUCT
from exporters import layout
from exporters.book import Sheet
from exporters.model_book import ModelBook
from exporters.pages.trajectory import feature
from exporters.pages.vocabulary import word_vector
from workbooks.semantic_tiny import semantics

TOP, N_WORDS, N_AXES = 14, len(semantics.CONTENT), len(semantics.AXES)
HAND, LEARNED, REPORT = 7, 8, 11  # columns: cosine in the table, in the learned vectors; the runs
ASKED_ROW, TARGET_ROW = 6, 12
NEAREST = 5
WORK = TOP + N_WORDS + 4  # the learned target, d_model numbers down


def study(book: ModelBook) -> None:
    """The table and an analogy, live; the measures of every run, as they came out."""
    sheet = book.sheet("Study")
    sheet.purpose = "what was asked of the model, and what came out"
    layout.dress(book, sheet)
    sheet.widths = {0: 13} | dict.fromkeys(range(1, REPORT), 10) | {REPORT: 20}
    _table(sheet)
    _asked(sheet)
    _targets(book, sheet)
    for k, word in enumerate(semantics.ROWS):
        row, hand = TOP + k, sheet[TARGET_ROW, 1 : 1 + N_AXES].fixed
        cosine = _cosine(sheet, k, sheet[row, 1 : 1 + N_AXES], hand)
        sheet.formula(row, HAND, cosine, "step")
        learned = sheet[WORK : WORK + book.model.spec.d_model, 1].fixed
        cosine = _cosine(sheet, k, word_vector(book, word), learned)
        sheet.formula(row, LEARNED, cosine, "live")
    for col, left, title in ((HAND, 4, "in the table"), (LEARNED, 7, "learned")):
        sheet.put(TOP - 2, col, title, "label")
        sheet.put(TOP - 1, col, "cosine", "label")
        _nearest(sheet, col, left, title)
    sheet.dress(sheet[TOP : TOP + N_WORDS, HAND : LEARNED + 1], "scale")
    _report(sheet)


def _column(sheet: Sheet, col: int) -> Area:
    """A column of the table: the words, an axis, or the cosines."""
    return sheet[TOP : TOP + N_WORDS, col].fixed


def _ids(sheet: Sheet) -> list[Area]:
    """The three words asked with, as their places in the table, counted from 0."""
    return [sheet[ASKED_ROW + 1, k].fixed for k in range(3)]


def _table(sheet: Sheet) -> None:
    sheet.put(TARGET_ROW - 1, 0, "The table, wired by hand: type over it", "heading")
    for k, name in enumerate(semantics.AXES):
        sheet.put(TOP - 1, 1 + k, name, "label")
    for k, (word, row) in enumerate(zip(semantics.CONTENT, semantics.TABLE, strict=True)):
        sheet.put(TOP + k, 0, word, "word")
        for axis, x in enumerate(row.tolist()):
            sheet.put(TOP + k, 1 + axis, x, "weight blue")


def _asked(sheet: Sheet) -> None:
    """a − b + c: choose the words."""
    sheet.put(ASKED_ROW - 2, 0, "An analogy: choose three words", "heading")
    words = _column(sheet, 0)
    asked = zip(semantics.ANALOGIES[0][:3], ("a", "− b", "+ c"), strict=True)
    for k, (word, label) in enumerate(asked):
        sheet.put(ASKED_ROW - 1, k, label, "label")
        sheet.put(ASKED_ROW, k, word, "token")
        sheet.lists[ASKED_ROW, k] = words
        place = MATCH(sheet[ASKED_ROW, k], words, 0) - 1
        sheet.formula(ASKED_ROW + 1, k, IFERROR(place, 0), "id")


def _targets(book: ModelBook, sheet: Sheet) -> None:
    """a − b + c: along every axis of the table, and of the learned vectors."""
    sheet.put(TARGET_ROW, 0, "a − b + c", "row label")
    for col in range(1, 1 + N_AXES):
        axis = _column(sheet, col)
        a, b, c = (INDEX(axis, ident + 1, 1) for ident in _ids(sheet))
        sheet.formula(TARGET_ROW, col, a - b + c, "step")
    sheet.put(WORK - 2, 0, "a − b + c of the learned vectors", "heading")
    first = semantics.ROWS[0]
    for d in range(book.model.spec.d_model):
        x, y, z = (feature(book, d, ident + first) for ident in _ids(sheet))
        sheet.put(WORK + d, 0, d, "label number")
        sheet.formula(WORK + d, 1, x - y + z, "step green")


def _cosine(sheet: Sheet, k: int, own: Area, target: Area) -> Expression:
    """Word k's cosine with the target; nothing for the three words that were asked with."""
    a, b, c = (ident == k for ident in _ids(sheet))
    lengths = SQRT(SUMPRODUCT(own, own) * SUMPRODUCT(target, target))
    cosine = IF(lengths > 0, SUMPRODUCT(own, target) / lengths, 0)
    return IF(a + b + c > 0, "", cosine)


def _nearest(sheet: Sheet, col: int, left: int, title: str) -> None:
    """The five nearest words, of those not asked with."""
    sheet.put(ASKED_ROW - 2, left, f"nearest, {title}", "block")
    cosines = _column(sheet, col)
    for rank in range(1, NEAREST + 1):
        row, largest = ASKED_ROW - 2 + rank, LARGE(cosines, rank)
        word = INDEX(_column(sheet, 0), MATCH(largest, cosines, 0), 1)
        sheet.formula(row, left, word, "word")
        sheet.formula(row, left + 1, largest, "step")


def _report(sheet: Sheet) -> None:
    """Every run: variance shares, probes, analogies, as measured."""
    report = json.loads((semantics.FOLDER / "report.json").read_text())
    sheet.put(ASKED_ROW - 2, REPORT, "Every run, as it came out (constants)", "heading")
    text = f"loss in nats per token; its floor is {report['loss_floor']:.3f}. R² of a ridge probe, each word held out in turn: 1 is read off, 0 or less is not"
    sheet.put(ASKED_ROW - 1, REPORT, text, "note")
    heads = [
        "vectors",
        "seed",
        "loss",
        "2 PCs",
        "6 PCs",
        *(f"R² {axis}" for axis in semantics.AXES),
    ]
    heads += [a["asked"] for a in report["rows"][0]["analogies"]]
    heads += ["cosine of the first"]
    for k, head in enumerate(heads):
        sheet.put(ASKED_ROW, REPORT + k, head, "head" if k else "block")
        sheet.widths = {**sheet.widths, REPORT + k: 20 if not k or k > 10 else 11}
    top = ASKED_ROW + 1
    for n, row in enumerate(report["rows"]):
        sheet.put(top + n, REPORT, row["vectors"])
        for k, key in ((1, "seed"), (2, "loss")):
            if row[key] is not None:
                sheet.put(top + n, REPORT + k, float(row[key]), "id" if k == 1 else "basis")
        for k, key in ((3, "share_of_2"), (4, "share_of_6")):
            sheet.put(top + n, REPORT + k, row[key], "constant percent")
        for k, axis in enumerate(semantics.AXES):
            sheet.put(top + n, REPORT + 5 + k, row["r2"][axis]["held_out"], "basis")
        for k, answer in enumerate(row["analogies"]):
            said = next(iter(answer["nearest"]))
            text = said if answer["right"] else f"{said} (not {answer['wanted']})"
            sheet.put(top + n, REPORT + 11 + k, text, "row label")
        cosine = next(iter(row["analogies"][0]["nearest"].values()))
        sheet.put(top + n, REPORT + 11 + len(row["analogies"]), cosine, "basis")
    probes = sheet[top : top + len(report["rows"]), REPORT + 5 : REPORT + 5 + N_AXES]
    sheet.dress(probes, "scale")
