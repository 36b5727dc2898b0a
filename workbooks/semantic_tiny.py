"""semantic-tiny: forty words wired by hand along six axes, and what a model's vectors make of them.

Look at sheet Study: the table, an analogy of your own in it and in the learned vectors, and every
measure of every run. The weights are shipped in `models/semantic-tiny`; `_semantics` made them.
"""

import json
from collections.abc import Iterator

import numpy as np

from engine import Model
from engine.cells.access import Rect
from engine.models import checkpoint, training
from engine.models.generate import Passage
from engine.models.training import Progress
from exporters import layout
from exporters.address import a1
from exporters.book import Book, Sheet
from exporters.model_book import cell
from exporters.pages.trajectory import feature
from exporters.pages.vocabulary import word_vector
from exporters.story import Story, Suggestion
from exporters.transformer import assemble
from workbooks import _semantics as semantics

TOPIC = "Words and positions"
PROMPT = "<BOS> queen is"
N_TOKENS = 9
SCALE = 0.02  # the shipped model that the workbook shows

STORY = Story(
    title="semantic-tiny: forty words wired by hand, and what a model makes of them",
    source="After L. Erzegovesi, The Final Step (2026): the cautionary tale. Weights trained for this workbook.",
    about=[
        "Six axes (gender, age, power, size, animacy, mobility) place forty words. From that table come true sentences:",
        "definitions (queen is female adult strong ...) and comparisons (lion is stronger than mouse). A small decoder reads",
        "the sentences and never the table. Do its word vectors find the axes again? It depends on how they began: from wide",
        "random vectors (1.0) they stay near where they were, and king − man + woman is no queen; from narrow ones (0.02),",
        "with the same sentences and the same loss, five of six axes can be read off, and queen is first. This is the latter.",
    ],
    look=[
        "Study: the table; an analogy of your own, in the table and in the learned vectors; every run measured, side by side.",
        "A model can do its task perfectly and hold its knowledge anywhere: a map of its words need not show axes that you know.",
    ],
    tries=[
        Suggestion("Choose `king`: the first adjective turns from female to male, and the rest stays.", 1),
        Suggestion("Type 0 on Switches for the first layer's MLP: the sentence ends before a word is said.", ("blocks.0.mlp.switch", 0, 0)),
        Suggestion("Type 3: the model grows unsure, and every word a little likely.", ("temperature", 0, 0)),
    ],
)  # fmt: skip


def model() -> Model:
    """The model that began with narrow word vectors, seed 0."""
    return checkpoint.load(semantics.FOLDER / f"scale-{SCALE}")


def build(model: Model, passage: Passage) -> Book:
    """The workbook of a sentence and its continuation, with the study beside."""
    return assemble("semantic-tiny", model, passage, STORY, study=study)


def train(seed: int, embed_scale: float | None) -> Iterator[Progress | Model]:
    """Each step's progress and, last, the trained model. Raises InputError without torch."""
    recipe = semantics.recipe(SCALE if embed_scale is None else embed_scale)
    for step in training.train(semantics.spec(), recipe, semantics.sentences, seed):
        yield step if isinstance(step, Progress) else semantics.model(step)


def floor(ids: np.ndarray) -> float:
    """The loss of a model that knows the corpus exactly, whatever the sentences drawn."""
    return semantics.loss_floor()


def figures(model: Model) -> list[tuple[str, str]]:
    """The measures of a model's word vectors, as in the report."""
    measured = semantics.row("", None, model.weights["W_E"][semantics.ROWS], None)
    found = [
        ("variance in 2 components", f"{measured['share_of_2']:.1%}"),
        ("variance in 6 components", f"{measured['share_of_6']:.1%}"),
    ]
    found += [
        (f"R² of {axis}, held out", f"{r2['held_out']:.2f}") for axis, r2 in measured["r2"].items()
    ]
    found += [(a["asked"], ", ".join(a["nearest"])) for a in measured["analogies"]]
    return found


# --- the study --------------------------------------------------------------------------------

TOP, N_WORDS = 14, len(semantics.CONTENT)
HAND, LEARNED, REPORT = 7, 8, 11  # columns: cosine in the table, in the learned vectors; the runs
ASKED_ROW, TARGET_ROW = 6, 12
NEAREST = 5
WORK = TOP + N_WORDS + 4  # the learned target, d_model numbers down


def study(book: Book) -> None:
    """The table and an analogy, live; the measures of every run, as they came out."""
    sheet = book.sheet("Study")
    sheet.purpose = "what was asked of the model, and what came out"
    layout.dress(book, sheet)
    sheet.widths = {0: 13} | dict.fromkeys(range(1, REPORT), 10) | {REPORT: 20}
    _table(sheet)
    _analogy(book, sheet)
    _report(sheet)


def _words(col: int) -> str:
    return a1(Rect(TOP, TOP + N_WORDS, col, col + 1), "all")


def _table(sheet: Sheet) -> None:
    sheet.put(TARGET_ROW - 1, 0, "The table, wired by hand: type over it", "heading")
    for k, name in enumerate(semantics.AXES):
        sheet.put(TOP - 1, 1 + k, name, "label")
    for k, (word, row) in enumerate(zip(semantics.CONTENT, semantics.TABLE, strict=True)):
        sheet.put(TOP + k, 0, word, "word")
        for axis, x in enumerate(row.tolist()):
            sheet.put(TOP + k, 1 + axis, x, "weight blue")


def _analogy(book: Book, sheet: Sheet) -> None:
    """a − b + c: choose the words; the nearest by cosine, in the table and as learned."""
    sheet.put(ASKED_ROW - 2, 0, "An analogy: choose three words", "heading")
    asked = semantics.ANALOGIES[0][:3]
    for k, (word, sign) in enumerate(zip(asked, ("", "− ", "+ "), strict=True)):
        sheet.put(ASKED_ROW - 1, k, f"{sign}{'abc'[k]}", "label")
        sheet.put(ASKED_ROW, k, word, "token")
        sheet.lists[ASKED_ROW, k] = f"Study!{_words(0)}"
        match = f"MATCH({cell(ASKED_ROW, k)},{_words(0)},0)-1"
        sheet.calc(ASKED_ROW + 1, k, f"IFERROR({match},0)", float(_at(word)), "id")
    ids = [cell(ASKED_ROW + 1, k, True) for k in range(3)]
    a, b, c = (_at(word) for word in asked)
    sheet.put(TARGET_ROW, 0, "a − b + c", "row label")
    for axis in range(len(semantics.AXES)):
        x, y, z = (f"INDEX({_words(1 + axis)},{i}+1,1)" for i in ids)
        value = semantics.TABLE[a, axis] - semantics.TABLE[b, axis] + semantics.TABLE[c, axis]
        sheet.calc(TARGET_ROW, 1 + axis, f"{x}-{y}+{z}", float(value), "step")
    learned = book.values["W_E"][semantics.ROWS]  # [n_words, d_model]
    _target(book, sheet, ids, learned[a] - learned[b] + learned[c])
    for col, title, vectors in (
        (HAND, "in the table", semantics.TABLE),
        (LEARNED, "learned", learned),
    ):
        sheet.put(TOP - 2, col, title, "label")
        sheet.put(TOP - 1, col, "cosine", "label")
        target = vectors[a] - vectors[b] + vectors[c]
        cosines = vectors @ target / (np.linalg.norm(vectors, axis=1) * np.linalg.norm(target))
        for k in range(N_WORDS):
            _cosine(book, sheet, k, col, ids, -2.0 if k in (a, b, c) else float(cosines[k]))
        cosines[[a, b, c]] = -2
        _nearest(sheet, col, 4 if col == HAND else 7, title, cosines)
    sheet.scales.append((Rect(TOP, TOP + N_WORDS, HAND, LEARNED + 1), "scale"))


def _at(word: str) -> int:
    return semantics.CONTENT.index(word)


def _target(book: Book, sheet: Sheet, ids: list[str], target: np.ndarray) -> None:
    """a − b + c of the learned vectors: d_model numbers."""
    sheet.put(WORK - 2, 0, "a − b + c of the learned vectors", "heading")
    first = semantics.ROWS[0]
    for d, value in enumerate(target.tolist()):
        x, y, z = (feature(book, d).format(f"{i}+{first}") for i in ids)
        sheet.put(WORK + d, 0, d, "label number")
        sheet.calc(WORK + d, 1, f"{x}-{y}+{z}", value, "step green")


def _cosine(book: Book, sheet: Sheet, k: int, col: int, ids: list[str], value: float) -> None:
    """A word's cosine with the target; −2 for the three words that were asked with."""
    if col == HAND:
        own = a1(Rect(TOP + k, TOP + k + 1, 1, 1 + len(semantics.AXES)))
        target = a1(Rect(TARGET_ROW, TARGET_ROW + 1, 1, 1 + len(semantics.AXES)), "all")
    else:
        own = word_vector(book, semantics.ROWS[k])
        target = a1(Rect(WORK, WORK + book.graph.spec.d_model, 1, 2), "all")
    lengths = f"SQRT(SUMPRODUCT({own},{own})*SUMPRODUCT({target},{target}))"
    asked = "+".join(f"({i}={k})" for i in ids)
    formula = f"IF({asked}>0,-2,IF({lengths}>0,SUMPRODUCT({own},{target})/{lengths},0))"
    sheet.calc(TOP + k, col, formula, value, "live" if col == LEARNED else "step")


def _nearest(sheet: Sheet, col: int, left: int, title: str, cosines: np.ndarray) -> None:
    """The five nearest words, of those not asked with."""
    sheet.put(ASKED_ROW - 2, left, f"nearest, {title}", "block")
    order = np.argsort(-cosines, kind="stable")
    for k in range(NEAREST):
        row, v = ASKED_ROW - 1 + k, int(order[k])
        found = f"LARGE({_words(col)},{k + 1})"
        word = f"INDEX({_words(0)},MATCH({found},{_words(col)},0),1)"
        sheet.calc(row, left, word, semantics.CONTENT[v], "word")
        sheet.calc(row, left + 1, found, float(cosines[v]), "step")


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
    probes = Rect(top, top + len(report["rows"]), REPORT + 5, REPORT + 5 + len(semantics.AXES))
    sheet.scales.append((probes, "scale"))
