"""The sheet Study of semantic-tiny: the table of forty words, an analogy in it and in the vectors
of two trainings, and the measures of every run."""

import json
from typing import NamedTuple

from cellformer.engine.cells.expression import Expression, Nth
from cellformer.engine.cells.functions import IF, IFERROR, LARGE, MATCH, SQRT, SUMPRODUCT
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.story import Suggestion
from cellformer.exporters.model import layout
from cellformer.exporters.model.model_book import ModelBook
from cellformer.workbooks.semantic_tiny import semantics

SHEET = "Study"
TOP, N_WORDS, N_AXES = 14, len(semantics.CONTENT), len(semantics.AXES)
COSINES, NEAREST_AT, REPORT = 7, 4, 17  # columns: cosines, the nearest words, the runs
ASKED_ROW, TARGET_ROW = 6, 12
NEAREST = 5
WORK = TOP + N_WORDS + 10  # the learned targets, d_model numbers across


class Asked(NamedTuple):
    """Vectors in which the analogy is computed: a table [n_words, d], and where its result
    stands."""

    name: str
    title: str
    vectors: str  # the table's name


SETS = (
    Asked("hand", "in the table", "study.table"),
    Asked("narrow", "narrow", "models.narrow"),
    Asked("wide", "wide", "models.wide"),
)


def add(book: ModelBook) -> None:
    """Add the table and an analogy, live; three suggested edits; the measures of every run, as
    constants."""
    page = layout.page(
        book,
        SHEET,
        "the table, an analogy, and measures of every run",
        widths={0: 13} | dict.fromkeys(range(1, REPORT), 10) | {REPORT: 20},
    )
    _asked(book, page)
    for k, asked in enumerate(SETS):
        _target(book, page, asked, k)
        _cosines(book, page, asked, COSINES + k)
        _nearest(book, page, asked, COSINES + k, NEAREST_AT + 3 * k)
    page.dress(page.sheet[TOP : TOP + N_WORDS, COSINES : COSINES + len(SETS)], "scale")
    Composer(book, SHEET, TOP + N_WORDS).suggest(*_suggestions(), at=(10, 12, 0))
    _report(page)


def table(book: ModelBook) -> None:
    """Add the forty words and their coordinates, as inputs."""
    page = layout.page(book, SHEET)
    page.sheet.put(TARGET_ROW - 1, 0, "The table, set by hand: you can edit it", "heading")
    page.typed_at("study.word", (TOP, 0), [[word] for word in semantics.CONTENT], "word")
    page.heads_at((TOP - 1, 1), *semantics.AXES, style="label")
    page.typed_at("study.table", (TOP, 1), semantics.TABLE.tolist(), "weight blue")


def _asked(book: ModelBook, page: Composer) -> None:
    """Add the words of the analogy, a − b + c, as inputs."""
    page.sheet.put(ASKED_ROW - 2, 0, "An analogy: choose three words", "heading")
    words = book.graph["study.word"]
    page.heads_at((ASKED_ROW - 1, 0), *("a", "− b", "+ c"), style="label")
    asked = page.typed_at("study.asked", (ASKED_ROW, 0), [[*semantics.ANALOGIES[0][:3]]], "token")
    words_column = page.sheet[TOP : TOP + N_WORDS, 0].fixed
    page.sheet.lists |= {(ASKED_ROW, k): words_column for k in range(3)}

    page.computed_at(
        "study.place",
        (ASKED_ROW + 1, 0),
        (1, 3),
        lambda _, k: IFERROR(MATCH(asked[0, k], words.area, 0) - 1, 0),
        "id",
    )


def _target(book: ModelBook, page: Composer, asked: Asked, k: int) -> None:
    """Add a − b + c, along every axis of the table, or every feature of learned vectors."""
    vectors, places = book.graph[asked.vectors], book.graph["study.place"]

    def entry(_: int, d: int) -> Expression:
        a, b, c = (Nth(vectors[:, d].fixed, places[0, n] + 1) for n in range(3))
        return a - b + c

    at = (WORK + k, 1) if k else (TARGET_ROW, 1)
    page.computed_at(
        f"study.target_{asked.name}",
        at,
        (1, vectors.shape[1]),
        entry,
        "step",
        label=asked.title if k else "a − b + c",
    )
    if k == 1:
        page.sheet.put(WORK - 1, 0, "a − b + c of the learned vectors", "heading")


def _cosines(book: ModelBook, page: Composer, asked: Asked, col: int) -> None:
    """Add each word's cosine with the target; blank for the three words of the analogy."""
    vectors, places = book.graph[asked.vectors], book.graph["study.place"]
    target = book.graph[f"study.target_{asked.name}"].area.fixed

    def cosine(k: int, _: int) -> Expression:
        own = vectors[k, :]
        lengths = SQRT(SUMPRODUCT(own, own) * SUMPRODUCT(target, target))
        among = sum((places[0, n] == k for n in range(3)), places[0, 0] * 0)
        return IF(among > 0, "", IF(lengths > 0, SUMPRODUCT(own, target) / lengths, 0))

    page.sheet.put(TOP - 2, col, asked.title, "label")
    page.computed_at(
        f"study.cosine_{asked.name}", (TOP, col), (N_WORDS, 1), cosine, "live", head="cosine"
    )


def _nearest(book: ModelBook, page: Composer, asked: Asked, col: int, left: int) -> None:
    """Add the five nearest words, without the words of the analogy."""
    page.sheet.put(ASKED_ROW - 2, left, f"nearest, {asked.title}", "block")
    cosines, words = book.graph[f"study.cosine_{asked.name}"].area, book.graph["study.word"].area

    row, shape, name = ASKED_ROW - 1, (NEAREST, 1), f"study.nearest_{asked.name}"
    page.computed_at(
        name,
        (row, left),
        shape,
        lambda rank, _: Nth(words, MATCH(LARGE(cosines, rank + 1), cosines, 0)),
        "word",
    )
    page.computed_at(
        f"{name}_cosine", (row, left + 1), shape, lambda rank, _: LARGE(cosines, rank + 1), "step"
    )


def _suggestions() -> list[Suggestion]:
    """Three edits: an analogy that holds, one that fails in the wide model, a word that is
    moved."""
    return [
        Suggestion(
            "Type ‘stag’ as the first word: the wide model answers ‘{then}’ ({wide.then:.2f}). "
            "The table and the narrow model answer ‘{hand.then}’.",
            ("study.asked", 0, 0), "stag", ("study.nearest_wide", 0, 0),
            others={"wide": ("study.nearest_wide_cosine", 0, 0), "hand": ("study.nearest_hand", 0, 0)},
        ),
        Suggestion(
            "Type ‘mouse’ as the first word: no word matches the table's answer exactly. The "
            "nearest word is ‘{then}’, with a cosine of {cosine.then:.2f}.",
            ("study.asked", 0, 0), "mouse", ("study.nearest_hand", 0, 0),
            others={"cosine": ("study.nearest_hand_cosine", 0, 0)},
        ),
        Suggestion(
            "Type ‘1’ as the gender of queen: the table now treats queen as a king and answers "
            "‘{then}’ ({cosine.then:.2f}). The learned vectors do not change.",
            ("study.table", 1, 0), 1, ("study.nearest_hand", 0, 0),
            others={"cosine": ("study.nearest_hand_cosine", 0, 0)},
        ),
    ]  # fmt: skip


def _report(page: Composer) -> None:
    """Every run: variance shares, probes, analogies, as measured."""
    report = json.loads((semantics.FOLDER / "report.json").read_text())
    page.sheet.put(ASKED_ROW - 2, REPORT, "Results of every run (constants)", "heading")
    text = (
        f"Loss in nats per token (lowest possible: {report['loss_floor']:.3f}). R² of a ridge "
        "probe (each word held out in turn): 1 if the axis is found, 0 or less if not"
    )
    page.sheet.put(ASKED_ROW - 1, REPORT, text, "note")
    heads = ["vectors", "seed", "loss", "2 PCs", "6 PCs"]
    heads += [f"R² {axis}" for axis in semantics.AXES]
    heads += [a["asked"] for a in report["rows"][0]["analogies"]]
    heads += ["cosine, first analogy"]
    for k, head in enumerate(heads):
        page.sheet.put(ASKED_ROW, REPORT + k, head, "head" if k else "block")
        page.sheet.widths = {**page.sheet.widths, REPORT + k: 20 if not k or k > 10 else 11}
    top = ASKED_ROW + 1
    for n, row in enumerate(report["rows"]):
        page.sheet.put(top + n, REPORT, row["vectors"])
        for k, key in ((1, "seed"), (2, "loss")):
            if row[key] is not None:
                page.sheet.put(top + n, REPORT + k, float(row[key]), "id" if k == 1 else "basis")
        page.sheet.across(
            top + n, REPORT + 3, (row["share_of_2"], row["share_of_6"]), "constant percent"
        )
        page.sheet.across(
            top + n, REPORT + 5, (row["r2"][axis]["held_out"] for axis in semantics.AXES), "basis"
        )
        for k, answer in enumerate(row["analogies"]):
            said = next(iter(answer["nearest"]))
            text = said if answer["right"] else f"{said} (not {answer['wanted']})"
            page.sheet.put(top + n, REPORT + 11 + k, text, "row label")
        page.sheet.put(
            top + n,
            REPORT + 11 + len(row["analogies"]),
            next(iter(row["analogies"][0]["nearest"].values())),
            "basis",
        )
    page.dress(
        page.sheet[top : top + len(report["rows"]), REPORT + 5 : REPORT + 5 + N_AXES], "scale"
    )
