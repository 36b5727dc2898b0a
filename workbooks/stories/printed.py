"""The sheet Printed: the essay's figures of its capstone beside ours, and what it sees on its maps,
measured.

The essay's model read real stories, and ours those of a grammar: its figures need not be equal.
"""

from cellformer.engine.cells.expression import Area, Expression
from cellformer.engine.cells.functions import COUNT, COUNTIF, IF, SUM
from cellformer.engine.cells.language import worded
from cellformer.exporters.assemble.worksheets import Comparison, compare, worksheet
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.lookups import product_sum
from cellformer.exporters.model.model_book import ModelBook
from cellformer.workbooks.stories import grammar

SHEET = "Printed"
PURPOSE = "the essay's figures beside the results here, and what it sees on its maps, measured"
SECTION = "Embeddings and the Maps, section 5"
APART = "component {k}: function words against all others"
HEROES = "component 1: animals and people against all others"
SEEN = (
    "On its maps, the essay sees function words apart along the first component, loose groups "
    "of animals, and colours close to adjectives.",
    "A component gets 100 % if its whole variance lies between these words and all others. It "
    "gets 0 % if it does not separate these words from the others.",
    "In our model, the first component separates animals and people from the rest, not "
    "function words. Colours and adjectives are a little nearer to each other than to other "
    "words.",
)
READ = "the essay's model read real stories, with 50,257 tokens; ours reads a grammar of 87"


def add(book: ModelBook) -> None:
    """The figures; then the three observations."""
    ws = worksheet(book, SHEET, PURPOSE)
    compare(ws, _figures(book), SECTION)
    _seen(book, ws)


def _figures(book: ModelBook) -> list[Comparison]:
    """The essay's three numbers."""
    ids, vectors = (book.graph[f"map.{name}"].area for name in ("id", "vectors"))
    shown = book.graph["map.share"].area
    return [
        Comparison("words on the maps", 84, COUNTIF(ids, ">=0"), "", 0),
        Comparison("numbers in a word vector", 64, COUNT(vectors[:, 0]), "", 0),
        Comparison("share of the variance in two components", 0.33, SUM(shown[0, :2]), READ, other="other training"),
    ]  # fmt: skip


def _seen(book: ModelBook, ws: Composer) -> None:
    """Add live numbers for what the essay sees on its maps."""
    component, cosines = (book.graph[name].area for name in ("map.component", "near.cosine"))
    animals = book.graph["near.share"][0, 0]
    ws.heading("What the essay sees on its maps, measured here", *SEEN)
    colours, adjectives = kind("colours"), kind("adjectives")
    others = [kind(name) for name in grammar.GROUPS if name not in ("colours", "adjectives")]
    with_others = [SUM(cosines[colours, other]) for other in others]
    n_colours, n_adjectives = (len(grammar.GROUPS[name]) for name in ("colours", "adjectives"))
    n_others = len(grammar.CONTENT) - n_colours - n_adjectives
    rows = [
        *((worded(APART, k=k + 1), apart(component[:, k], FUNCTION), "percent") for k in range(2)),
        (HEROES, apart(component[:, 0], slice(0, len(grammar.HEROES))), "percent"),
        ("animals whose nearest word is an animal", animals, "live percent"),
        ("mean cosine of a colour and an adjective", SUM(cosines[colours, adjectives]) / (n_colours * n_adjectives), "live"),
        ("mean cosine of a colour and another word", sum(with_others[1:], with_others[0]) / (n_colours * n_others), "live"),
    ]  # fmt: skip
    table = ws.table("seen", (ws.cursor, 3), (len(rows), 1))
    for k, (text, formula, style) in enumerate(rows):
        ws.sheet.put(ws.cursor + k, 1, text)
        table.put(k, 0, formula, style)
    ws.cursor += len(rows)


def kind(name: str) -> slice:
    """The rows of a group's words."""
    first = grammar.CONTENT.index(grammar.GROUPS[name][0])
    return slice(first, first + len(grammar.GROUPS[name]))


def apart(coordinate: Area, words: slice) -> Expression:
    """The share of a centred coordinate's variance that lies between some words and the others."""
    n, n_words = len(grammar.CONTENT), words.stop - words.start
    between = SUM(coordinate[words, 0]) ** 2 * (1 / n_words + 1 / (n - n_words))
    whole = product_sum(coordinate, coordinate)
    return IF(whole > 0, between / whole, 0)


FUNCTION = kind("function words")
