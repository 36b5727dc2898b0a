"""The sheet Printed of semantic-tiny: the essay's figures beside ours, its acceptance tests applied
to every set of vectors, and a measure that shows nothing.

The essay's model failed its tests. Ours fails them from wide initial vectors, and passes them from
narrow ones with the same sentences and the same loss; the figures are on Study.
"""

import json

from cellformer.engine.cells.expression import Area, Expression
from cellformer.engine.cells.functions import COUNTIF, EXACT
from cellformer.exporters.assemble.worksheets import Comparison, compare, worksheet
from cellformer.exporters.compose.book import Sheet
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.model.model_book import ModelBook
from cellformer.workbooks.semantic_tiny import semantics
from cellformer.workbooks.semantic_tiny.study import ASKED_ROW, N_AXES, REPORT

SHEET, PURPOSE = (
    "Printed",
    ("the essay's figures and tests beside the results here, and a misleading measure"),
)
TOP = ASKED_ROW + 1  # of the runs on Study
TABLE, UNTRAINED, WIDE, NARROW = 0, 1, 4, 7  # rows of them: the first seed of each
SETS = {"the table": TABLE, "from 1.0": WIDE, "from 0.02": NARROW}
WAYS = ((UNTRAINED, "in_sample"), (UNTRAINED, "held_out"), (NARROW, "held_out"))
PASSES = 0.8  # R² of a probe that reads its axis
SECTION = "Embeddings and the Maps, section 2"
OURS = "The essay prints only a few rows of its table, so this workbook uses a different table."
FAILED = "both models failed, because wide vectors stay near their random start"
TRAP = (
    "A probe has 32 numbers, one for each feature, and one more number. A probe "
    "fitted to all 40 words ‘explains’ most of any axis.",
    "With untrained vectors, too, a probe ‘explains’ most of any axis. Only words "
    "that the probe has not seen can show whether an axis is really there.",
)


def add(book: ModelBook) -> None:
    """The figures, the tests, the trap."""
    ws, study = worksheet(book, SHEET, PURPOSE), book.sheet("Study")
    compare(ws, _figures(study), SECTION)
    _tests(ws, study)
    _trap(ws)


def _share(study: Sheet, row: int, n: int) -> Area:
    """The share of the variance in so many components, 2 or 6."""
    return study[TOP + row, REPORT + (3 if n == 2 else 4)]


def _probes(study: Sheet, row: int) -> Expression:
    """The number of axes that a probe can read from held-out words."""
    first = REPORT + 5
    return COUNTIF(study[TOP + row, first : first + N_AXES], f">{PASSES}")


def _analogies(study: Sheet, row: int) -> Expression:
    """The number of right analogies among the five."""
    first = REPORT + 5 + N_AXES
    right = [
        EXACT(study[TOP + row, first + k], asked[3]) for k, asked in enumerate(semantics.ANALOGIES)
    ]
    return sum(right[1:], right[0] + 0)


def _figures(study: Sheet) -> list[Comparison]:
    """The essay's figures of its one model, beside ours from wide initial vectors."""
    queen = study[TOP + WIDE, REPORT + 5 + N_AXES + len(semantics.ANALOGIES)]
    rows = [
        Comparison("variance in two components of the table set by hand", 0.70, _share(study, TABLE, 2), OURS),
        Comparison("share of variance in two components of the learned vectors", 0.20, _share(study, WIDE, 2), FAILED),
        Comparison("share of variance in six components of the learned vectors", 0.50, _share(study, WIDE, 6), FAILED),
        Comparison("probes with R² above 0.8 (of six)", 0, _probes(study, WIDE), FAILED, 0),
        Comparison("correct analogies (of five)", 2, _analogies(study, WIDE), "chance decides which analogies succeed", 0),
        Comparison("cosine of the word nearest to king − man + woman", 0.42, queen,
                   "the essay finds ‘lioness’, ‘child’ and ‘cub’. This workbook finds another "
                   "word, not ‘queen’"),
    ]  # fmt: skip
    return [row._replace(other="other training") for row in rows]


def _tests(ws: Composer, study: Sheet) -> None:
    """The essay's three acceptance tests, for every set of vectors."""
    ws.heading("The essay's acceptance tests for the table and two training runs")
    ws.heads_at((ws.cursor, 2), *list(SETS), style="label")
    tests = ws.table("tests", (ws.cursor + 1, 2), (3, len(SETS)))
    for col, row in enumerate(SETS.values(), 2):
        told = (_share(study, row, 6), "percent"), (_probes(study, row), "count")
        for k, (figure, style) in enumerate((*told, (_analogies(study, row), "count"))):
            tests.put(k, col - 2, figure, style)
    texts = (
        "variance in six components: 75 % or more",
        "probes with R² above 0.8 (of six)",
        "analogies (of five)",
    )
    ws.sheet.down(ws.cursor + 1, 1, texts, "text")
    ws.cursor += len(texts) + 2


def _trap(ws: Composer) -> None:
    """R² of probes on the words that they were fitted to, and on words held out: constants."""
    ws.heading("A misleading measure: R² on the words that were used to fit the probe", *TRAP)
    rows = json.loads((semantics.FOLDER / "report.json").read_text())["rows"]
    ws.heads_at((ws.cursor + 1, 2), *("fitted to", "held out", "held out"), style="label")
    ws.heads_at((ws.cursor, 2), *("untrained", "untrained", "from 0.02"), style="label")
    for k, axis in enumerate(semantics.AXES, ws.cursor + 2):
        ws.sheet.put(k, 1, axis)
        ws.sheet.across(k, 2, (rows[row]["r2"][axis][way] for row, way in WAYS), "basis")
    ws.cursor += N_AXES + 3
