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
PURPOSE = (
    "the essays' figures beside ours, and the reasons for differences; our figures follow your "
    "edits"
)
MAPS = "Embeddings and the Maps, section 4"
ORDER = "26347158"  # of the eight numbers, the likeliest first, as the essay has it
TIES = "almost equal: no rule of the game requires these differences of 0.006"
SCALE = "the size of one coordinate means nothing: the gain of the norm can change it"
TARSO = game.ID["Tarso"]
FOUND = (
    "The essay's layer 0 finds Tarso. Our layer 0 only finds that a leader was called, and says "
    "vice, the word that the numbers use.",
    "Attention in our layer 1 sees who called, and gives Tarso. Both models have the same game, "
    "size and score. Training decides by chance which layer does what.",
)


WHY_ORANGE = (
    "Orange does not mean an error. The essay's model and ours are two trainings of the same "
    "model. Every training finds other weights.",
    "Both models have learnt the rules: Tarso is sure, and the numbers are about equally "
    "likely. But they compute these answers in different places and ways.",
)


def add(book: ModelBook) -> None:
    """The figures; then the depth, stage by stage."""
    ws = worksheet(book, SHEET, PURPOSE)
    ws.text(*WHY_ORANGE)
    ws.cursor += 1
    rows = [*_page(book), *_depth(book), *_maps(book)]
    compare(ws, [row._replace(other="other training") for row in rows], "The Final Step, section 4")
    ws.heading("How the model finds the word, stage by stage", *FOUND)
    _stages(book, ws, ws.cursor + 1)


def _page(book: ModelBook) -> list[Comparison]:
    """Add the two examples of ranked words: a certain one, and an uncertain one."""
    sure = book.graph["probs"][3, TARSO]
    first, last = game.ID["1"], game.ID["8"] + 1
    numbers = book.graph["probs"][2, first:last]
    rows = [
        Comparison("§3: Tarso after <BOS> Pietro chiama Paolo", 0.9998, sure,
                   "another training of the same model; both models are sure", 4, "The Final Step, section 3"),
        Comparison("§4: the least likely number after <BOS> Pietro chiama", 0.10, MIN(numbers),
                   "the essay prints 0.10 to 0.12 per number; the grammar gives each number "
                   "0.1106", 1),
        Comparison("§4: the likeliest number", 0.12, MAX(numbers),
                   "the essay prints 0.10 to 0.12 per number", 1),
    ]  # fmt: skip
    for place, word in enumerate(ORDER, 1):
        own = book.graph["probs"][2, game.ID[word]]
        what = f"§4: place of {word} among eight numbers"
        likelier = SUMPRODUCT((numbers.fixed > own) * 1)  # HyperFormula has no RANK
        rows.append(Comparison(what, place, likelier + 1, TIES, 0))
    return rows


def _depth(book: ModelBook) -> list[Comparison]:
    """Add the lens and the path of the last token."""
    start, attention, end = (along(book, k) for k in (0, 1, len(book.views.stages) - 1))
    page = "The Final Step, section 5"
    return [
        Comparison("§5: Tarso after the first block", 0.92, book.graph["lens.2.probs"][0, TARSO],
                   "our model says vice (see below)", 2, page),
        Comparison("§5: stream along Tarso, at the start", -3.1, start, SCALE, 1, page),
        Comparison("§5: stream along Tarso, at the end", 10.6, end, SCALE, 1, page),
        Comparison("§5: what the first block's attention adds along Tarso", 7.62, attention - start,
                   "our attention adds almost nothing in this direction (see our steps below)", 2, page),
        Comparison("Embeddings §4a: share of the path in the plane of Tarso and Paolo", 0.28,
                   book.named("share of the path"), (
                       "a larger part of our path lies in that plane; see Trajectory"
                   ), 2, MAPS),
        Comparison("Embeddings §4a: the largest share in any plane", 0.72, book.named("best of the path"),
                   "first two principal components of the path as built (a constant)", 2, MAPS),
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
                   "our model keeps names in other directions: this plane has a third of the "
                   "essay's share", 2, MAPS),
        Comparison("§4b: share of two principal components", 0.347, first[0, 0] + first[0, 1],
                   "in our model, <PAD>, <EOS> and perde dominate: their vectors are 2 to 3 "
                   "times as long", 3, MAPS),
        Comparison("§4b: share of four components", 0.553, share["four_share"], "again, the long vectors dominate", 3, MAPS),
        Comparison("§4b: share of two components, by cosine", 0.435, share["cosine_share"],
                   "without lengths, the essay's share rises; our share falls, because it "
                   "depended on length", 3, MAPS),
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
        stages.put(
            k,
            1,
            INDEX(book.graph["outputs"].area.fixed.as_range, place_of_largest(chances), 1),
            "word",
        )
        step = along(book, k) - along(book, k - 1) if k else along(book, 0)
        stages.put(k, 2, step, "change plain")
