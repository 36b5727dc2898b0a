"""The sheet Printed: every figure that the essays print of their dialogue game, beside ours.

Theirs and ours are two trainings of one architecture on one game. Results that the game determines
are the same; where a model stores what it knows differs, and the figures that differ most show it.
"""

from cellformer.engine.cells.expression import Expression
from cellformer.engine.cells.functions import INDEX, MAX, MIN, SQRT, SUMPRODUCT
from cellformer.exporters.assemble.worksheets import Comparison, compare, worksheet
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.lookups import place_of_largest, product_sum
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.pages import lens, vocabulary
from cellformer.workbooks.dialogue_game import game

SHEET = "Printed"
PURPOSE = "every figure of the essays beside ours, which follows your edits, and why they differ"
MAPS = "Embeddings and the Maps, section 4"
ORDER = "26347158"  # of the eight numbers, the likeliest first, as the essay has it
TIES = "near-ties: differences of 0.006 that no rule of the game asks for"
SCALE = "a coordinate's size means nothing by itself: scale stream and norm, and nothing changes"
TARSO = game.ID["Tarso"]
FOUND = (
    "The essay's layer 0 finds Tarso; ours finds that a leader was called and says vice, the word of the numbers. The attention of layer 1 sees",
    "who called, and turns it into Tarso. Same game, same size, same score: which layer does which part of the work is an accident of training.",
)


WHY_ORANGE = (
    "Orange is no error: the essay's model and this one are two trainings of the same model, and every training finds other weights.",
    "Both have learnt the rules: Tarso is sure, and the numbers are about equally likely. Where and how they compute this is different.",
)


def add(book: ModelBook) -> None:
    """The figures; then the depth, stage by stage."""
    ws = worksheet(book, SHEET, PURPOSE)
    ws.text(*WHY_ORANGE)
    ws.cursor += 1
    rows = [*_page(book), *_depth(book), *_maps(book)]
    ours = [row._replace(other="other training") for row in rows]
    compare(ws, ours, "The Final Step, section 4")
    ws.heading("How the word is found, stage by stage", *FOUND)
    _stages(book, ws, ws.cursor + 1)


def _page(book: ModelBook) -> list[Comparison]:
    """Add the two examples of ranked words: a certain one, and an uncertain one."""
    sure = book.graph["probs"][3, TARSO]
    first, last = game.ID["1"], game.ID["8"] + 1
    numbers = book.graph["probs"][2, first:last]
    rows = [
        Comparison("§3: Tarso after <BOS> Pietro chiama Paolo", 0.9998, sure,
                   "another training of the same model; both are sure", 4, "The Final Step, section 3"),
        Comparison("§4: the least likely number after <BOS> Pietro chiama", 0.10, MIN(numbers),
                   "printed: each around 0.10 to 0.12; the grammar gives each of the eight 0.1106", 1),
        Comparison("§4: the likeliest number", 0.12, MAX(numbers),
                   "printed: each around 0.10 to 0.12", 1),
    ]  # fmt: skip
    for place, word in enumerate(ORDER, 1):
        own = book.graph["probs"][2, game.ID[word]]
        what = f"§4: place of {word} among the eight"
        likelier = SUMPRODUCT((numbers.fixed > own) * 1)  # HyperFormula has no RANK
        rows.append(Comparison(what, place, likelier + 1, TIES, 0))
    return rows


def _depth(book: ModelBook) -> list[Comparison]:
    """Add the lens and the path of the last token."""
    start, attention, end = (along(book, k) for k in (0, 1, len(book.views.stages) - 1))
    page = "The Final Step, section 5"
    return [
        Comparison("§5: Tarso after the first block", 0.92, book.graph["lens.2.probs"][0, TARSO],
                   "ours says vice there: below", 2, page),
        Comparison("§5: along Tarso, at the start", -3.1, start, SCALE, 1, page),
        Comparison("§5: along Tarso, at the end", 10.6, end, SCALE, 1, page),
        Comparison("§5: what the first block's attention adds along Tarso", 7.62, attention - start,
                   "ours adds nearly nothing there; its steps stand below", 2, page),
        Comparison("Embeddings §4a: share of the path in the plane of Tarso and Paolo", 0.28,
                   book.named("share of the path"), "ours lies more in that plane; see Trajectory", 2, MAPS),
        Comparison("Embeddings §4a: the best that any plane holds", 0.72, book.named("best of the path"),
                   "two principal components of the path, as built: a constant", 2, MAPS),
    ]  # fmt: skip


def _maps(book: ModelBook) -> list[Comparison]:
    """The maps of the vocabulary."""
    share = {
        name: book.graph[f"map.{name}"][0, 0]
        for name in ("plane_share", "cosine_share", "four_share")
    }
    first = book.graph["map.share"]
    return [
        Comparison("§4a: share of spread in the plane Paolo − Pietro, peers − ranks", 0.15, share["plane_share"],
                   "our model keeps its names in other directions: this plane holds a third of the essay's share", 2, MAPS),
        Comparison("§4b: two principal components hold", 0.347, first[0, 0] + first[0, 1],
                   "ours are led by <PAD>, <EOS> and perde, two to three times as long as other words", 3, MAPS),
        Comparison("§4b: four hold", 0.553, share["four_share"], "led by the same long words", 3, MAPS),
        Comparison("§4b: two hold of the words' directions (cosine)", 0.435, share["cosine_share"],
                   "lengths set aside, the essay's share rises and ours falls: length led ours", 3, MAPS),
    ]  # fmt: skip


def along(book: ModelBook, stage: int) -> Expression:
    """The coordinate of the stream along Tarso's vector after a stage."""
    vector = vocabulary.word_vector(book, TARSO)
    x = book.graph[f"lens.{stage}.x"].area
    return product_sum(x, vector) / SQRT(product_sum(vector, vector))


def _stages(book: ModelBook, ws: Composer, top: int) -> None:
    """Add each stage: Tarso's probability, the most likely word, the coordinate along Tarso."""
    ws.heads_at((top, 1), *("after", "Tarso", "first word", "along Tarso"))
    stages = ws.table("stages", (top + 1, 2), (len(book.views.stages), 3))
    for k, name in enumerate(lens.stage_names(book)):
        row, chances = top + 1 + k, book.graph[f"lens.{k}.probs"].area.as_range
        ws.sheet.put(row, 1, name)
        stages.put(k, 0, book.graph[f"lens.{k}.probs"][0, TARSO], "live fine")
        texts = book.graph["outputs"].area.fixed.as_range
        stages.put(k, 1, INDEX(texts, place_of_largest(chances), 1), "word")
        step = along(book, k) - along(book, k - 1) if k else along(book, 0)
        stages.put(k, 2, step, "change plain")
