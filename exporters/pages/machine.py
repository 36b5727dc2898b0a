"""Machine: the whole model on one screen, at the token that Play looks at.

From top to bottom: the sentence; what each stage adds to the token's residual stream, as a strip of
colours, with the most likely word after it (see `lens`); every head's attention pattern as a tile;
on the right the most likely next words, baseline beside live. Below the first screen is a table of
where each head looks, which the captions read.

The sheet is a canvas of narrow columns: a strip has a column for each number, a tile one for each
token. Numbers that do not fit are cut, as the caption says; heads that do not fit continue in a row
below.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from cellformer.engine.cells.access import Span
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Area, Expression, Nth, expression
from cellformer.engine.cells.functions import IF, MATCH, MAX, MIN, ROUND
from cellformer.engine.cells.language import worded
from cellformer.engine.models.forward import SOURCE
from cellformer.engine.models.prompt_status import SILENT
from cellformer.engine.studies import lens
from cellformer.engine.studies.part_names import head_of
from cellformer.exporters.compose import theme
from cellformer.exporters.compose.book import Chart, Place, Series, Sheet
from cellformer.exporters.compose.composer import Composer, Table
from cellformer.exporters.compose.dressing import When, between
from cellformer.exporters.compose.lookups import entry, nth, place_of_largest
from cellformer.exporters.compose.sentences import percent, quote, rounded, sentence
from cellformer.exporters.model import layout
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.model.words import stage_names
from cellformer.exporters.play import ranking
from cellformer.exporters.play.sentence import answered

SHEET = "Machine"
PURPOSE = "the whole model at one token: what each part reads and adds, what comes next"
AFTER = "Start"
SAID = "machine.look_said"  # the sentences that say where each head looks
LOOKED_AT = "machine.token"  # typed here, where Play has no position
TOP = 4
# in pixels of Excel, which LibreOffice shows a ninth wider: columns, and rows
LABEL, STRIPS, TEXT, CHART = 118, 600, 205, 245
NARROWEST, WIDEST, CHIP, MOST_CHIP, CAPTION = 5, 44, 44, 110, 125
NUMBERED = 36  # columns as wide as this show their numbers
LINE, LOW_LINE, MARK, THINNEST, LABELLED = 17, 15, 5, 4, 13
MANY_STAGES = 16  # of which more have low lines
TILES = {1: 240, 2: 108}  # how high the tiles of a layer are together, by the number of layers
OF_MANY = 84
CROSS = "cross"  # attention to the source sentence of two stacks
DECIMALS = 9  # that where a token looks is rounded to: equal shares stay equal in every program
TILED = (
    "Each square is a head. In a token's row, the darker a cell, the more the token reads that "
    "word (full colour: 100 %). The mark is at {token}"
)
TILED_SOURCE = (
    "In a token's row, the darker a cell, the more the token reads that word of the source "
    "sentence. The mark is at {token}"
)


def wanted(book: ModelBook) -> bool:
    """Whether the workbook is of a whole model."""
    return not book.live


def place(book: ModelBook) -> None:
    """Place the cell for the token to look at, if no other sheet has it."""
    if "position" not in book.graph.blocks:
        block = book.graph.input(LOOKED_AT, book.passage.n_prompt - 1, kind="table")
        book.places[LOOKED_AT] = Place(block, SHEET, TOP - 1, 1, turned=False)


def add(book: ModelBook) -> None:
    """Add the sentence, the strips, the tiles, the words; below, where the token looks."""
    canvas = Canvas(book)
    narrow = dict.fromkeys(range(1, 1 + canvas.columns), theme.characters(canvas.unit))
    page = layout.page(book, SHEET, widths={0: theme.characters(LABEL)} | narrow)
    page.sheet.lettered = False  # of so many narrow columns the letters are a smear
    if LOOKED_AT in book.places:
        _dial(book, page.sheet)
    if book.plan.sources:
        page.sheet.put(page.cursor, 0, "the source", "row label")
        _chips(book, page, canvas, SOURCE, "source")
    _sentence(book, page, canvas)
    _strips(book, page, canvas)
    top = page.cursor + 1 + sum(map(canvas.height_of_tiles, canvas.axes)) + 3
    for axis in canvas.axes:
        heads = [head for heads in canvas.heads(axis).values() for head in heads]
        looks = page.table(_of("look", axis), (top, 1), (len(heads), canvas.n_keys(axis)))
        _tiles(book, page, canvas, axis, looks.area)
        _looks(book, page, canvas, heads, looks)
        top += len(heads) + 3
    _words(book, page.sheet, canvas)


def _of(name: str, axis: str) -> str:
    """The name of a table about attention to the tokens of an axis."""
    return name if axis == "token" else f"{CROSS}.{name}"


def _low(sheet: Sheet, row: int, pixels: float = LINE) -> int:
    """Set the height of a row; returns the row."""
    sheet.heights[row] = 0.75 * pixels
    return row


@dataclass
class Canvas:
    """The part of a model that fits on a screen, in columns."""

    book: ModelBook

    @cached_property
    def stages(self) -> list[Block]:
        """The residual stream after the embedding, and after every sublayer."""
        return self.book.views.stages or lens.stages(self.book.graph)

    @cached_property
    def layers(self) -> dict[int, list[Block]]:
        """The patterns of every layer, head by head, of attention among the tokens."""
        return self.heads("token")

    @cached_property
    def axes(self) -> list[str]:
        """The axes of the keys: the sentence's tokens, or a source sentence's."""
        return [axis for axis in ("token", SOURCE) if self.heads(axis)]

    def heads(self, axis: str) -> dict[int, list[Block]]:
        """The patterns of every layer over the tokens of an axis."""
        return self._patterns.get(axis, {})

    @cached_property
    def _patterns(self) -> dict[str, dict[int, list[Block]]]:
        """The same by axis."""
        found: dict[str, dict[int, list[Block]]] = {}
        for block in self.book.graph:
            pattern = block.leaf == "pattern" and block.axes[0] == "token"
            if pattern and block.layer is not None and not block.passes:
                found.setdefault(block.axes[1], {}).setdefault(block.layer, []).append(block)
        return found

    def n_keys(self, axis: str) -> int:
        """The number of keys."""
        return self.book.passage.n_source if axis == SOURCE else self.n_tokens

    def tile(self, axis: str) -> tuple[int, int]:
        """The rows and columns of a tile: a row is a token that looks."""
        return self.n_tokens, self.n_keys(axis)

    @property
    def tile_columns(self) -> int:
        """The columns of the widest tile, with the mark before it."""
        return 1 + max((self.tile(axis)[1] for axis in self.axes), default=self.n_tokens)

    @property
    def n_tokens(self) -> int:
        """The number of columns of a tile."""
        return len(self.book.passage.ids)

    @cached_property
    def n_heads(self) -> int:
        """The largest number of heads in a layer."""
        groups = (self.heads(axis).values() for axis in self.axes)
        return max((len(heads) for group in groups for heads in group), default=0)

    @cached_property
    def unit(self) -> int:
        """The width of a column in pixels: strips and tiles take the available room."""
        d_model = self.stages[0].shape[1]
        tiles = max(1, min(self.n_heads, (STRIPS + TEXT) // CAPTION)) * self.tile_columns
        return max(NARROWEST, min(WIDEST, STRIPS // d_model, (STRIPS + TEXT) // tiles))

    def style(self, of: str) -> str:
        """The style of a "strip" or a "tile": colours alone, or with numbers if there is room."""
        return f"{of} number" if self.unit >= NUMBERED else "tint"

    @property
    def shown(self) -> int:
        """The number of entries of the stream in a strip."""
        return min(self.stages[0].shape[1], STRIPS // self.unit)

    @property
    def chart_col(self) -> int:
        """The first column of the chart of next words."""
        return 1 + max((STRIPS + TEXT) // self.unit, self.shown + 1 + -(-TEXT // self.unit))

    @property
    def columns(self) -> int:
        """The number of narrow columns on a screen."""
        return self.chart_col + CHART // self.unit

    @cached_property
    def across(self) -> int:
        """The number of tiles side by side."""
        room = (self.chart_col - 1) // max(self.tile_columns, -(-CAPTION // self.unit))
        down = -(-self.n_heads // max(1, room))
        return -(-self.n_heads // max(1, down))

    @property
    def slot(self) -> int:
        """The columns of a tile, with the mark before it and a gap after it."""
        return max(self.tile_columns, (self.chart_col - 1) // max(1, self.across))

    @property
    def tile_rows(self) -> int:
        """The number of rows of tiles for a layer."""
        return -(-self.n_heads // self.across)

    def thickness(self, axis: str) -> float:
        """The height of a row of a tile, in pixels."""
        n_layers = sum(len(self.heads(axis)) for axis in self.axes)
        budget = TILES.get(n_layers, OF_MANY) / (self.tile(axis)[0] * self.tile_rows)
        return max(THINNEST, min(self.unit, budget))

    def height_of_tiles(self, axis: str) -> int:
        """The number of sheet rows that all tiles of an axis take, with a line above."""
        return len(self.heads(axis)) * self.tile_rows * (self.tile(axis)[0] + 2) + (axis == SOURCE)


# --- the sentence -------------------------------------------------------------------------


def position(book: ModelBook) -> Area:
    """The token on the Machine, counted from 0."""
    return book.graph["position" if "position" in book.graph.blocks else LOOKED_AT][0, 0]


def words(book: ModelBook) -> Area:
    """The texts of all tokens, in a row of Play."""
    return layout.token_texts(book)


def looked_at(book: ModelBook) -> Expression:
    """The text of the token on the Machine, in quotes."""
    return quote(entry(words(book), 1, position(book) + 1))


def _dial(book: ModelBook, sheet: Sheet) -> None:
    sheet.put(TOP - 1, 0, "look at token", "row label")
    book.lay(book.places[LOOKED_AT], "dial")
    sheet.merged.append(sheet[TOP - 1, 1:4].rect)
    last = len(book.passage.ids) - 1
    sheet.rules[TOP - 1, 1] = between(
        0, last, worded("A token number from 0 to {last}.", last=last), whole=True
    )


def _sentence(book: ModelBook, page: Composer, canvas: Canvas) -> None:
    """Every token in a box, with the chosen one marked."""
    given = _given(book, page)
    cells = _chips(book, page, canvas, "token", "sentence")
    below = page.cursor
    here = page.show("position", (below, 0), position(book), "token number")
    for k, cell in enumerate(cells):
        page.dress(cell, When("here", here.fixed == k))
        if given is not None:
            page.dress(cell, When("generated", expression(k) >= given.fixed))
    text = "everything below is computed for the token {token}"
    said = sentence(text, token=looked_at(book))
    page.show("looked_at", (_low(page.sheet, below), 1), said, "said")
    page.cursor = below + 1


def _chips(book: ModelBook, page: Composer, canvas: Canvas, axis: str, name: str) -> list[Area]:
    """Add a box for each token of an axis, as a table; returns their cells."""
    sheet, row, n = page.sheet, page.cursor, canvas.n_keys(axis)
    room, longest = canvas.chart_col - 1, max(len(text) for text in book.labels["vocab"])
    wide = min(8 * longest + 12, MOST_CHIP, max(CHIP, room * canvas.unit // n))
    chip = max(1, wide // canvas.unit)
    in_a_row = max(1, room // chip)
    page.cursor = row + 1 + (n - 1) // in_a_row
    chips = page.table(name, (row, 1), (page.cursor - row, in_a_row * chip))
    found = []
    for k in range(n):
        at = k // in_a_row, k % in_a_row * chip
        _low(sheet, row + at[0], 22)
        found.append(chips.put(*at, layout.token_text(book, k, axis), "chip"))
        if chip > 1:
            sheet.merged.append(sheet[row + at[0], 1 + at[1] : 1 + at[1] + chip].rect)
    return found


def _given(book: ModelBook, page: Composer) -> Area | None:
    """The number of typed tokens, if the model continues the sentence."""
    if "n_prompt" not in book.graph.blocks:
        page.sheet.put(page.cursor, 0, "the sentence", "row label")
        return None
    return page.show("given", (page.cursor, 0), book.graph["n_prompt"][0, 0], "given number")


# --- what each stage adds -----------------------------------------------------------------


def _strips(book: ModelBook, page: Composer, canvas: Canvas) -> None:
    """A strip for each stage, and one for their sum, the stream at the end."""
    sheet, first, n_stages = page.sheet, page.cursor + 1, len(canvas.stages)
    strips = page.table("stage", (first, 1), (n_stages + 1, canvas.shown))
    guesses = page.table("guess", (first, 2 + canvas.shown), (n_stages + 1, 1))
    for n, name in enumerate((*stage_names(book.graph, canvas.stages), "sum: the stream")):
        stage = canvas.stages[min(n, n_stages - 1)]
        low = n < n_stages and n_stages > MANY_STAGES
        row = _low(sheet, first + n, LOW_LINE if low else LINE)
        sheet.link(row, 0, name, book.address(stage.area))
        for j in range(canvas.shown):
            adds = at_token(book, stage, j)
            if 0 < n < n_stages:
                adds = adds - at_token(book, canvas.stages[n - 1], j)
            strips.put(n, j, adds, canvas.style("strip"))
        if n < n_stages and book.views.stages:
            guesses.put(n, 0, sentence("best guess so far: {guess}", guess=guess(book, n)), "said")
    _said_of_strips(book, page, canvas, strips.area[:n_stages, :])
    page.dress(strips.area[n_stages : n_stages + 1, :], "diverging")
    if "probs" in book.graph.blocks:
        guesses.put(n_stages, 0, _answer(book), "said")
    page.cursor = first + n_stages + 1


def at_token(book: ModelBook, block: Block, j: int) -> Expression:
    """The j-th number of a block at the chosen token."""
    row = position(book) + 1 if block.shape[0] > 1 else expression(1)
    return Nth(block.area[:, j], row)


def _said_of_strips(book: ModelBook, page: Composer, canvas: Canvas, strips: Area) -> None:
    """Add the meaning of the strips, and the scale of their colours."""
    page.dress(strips, "diverging")
    d_model = canvas.stages[0].shape[1]
    numbers = (
        worded("{d_model} numbers", d_model=d_model)
        if d_model == canvas.shown
        else (worded("the first {shown} of {d_model} numbers", shown=canvas.shown, d_model=d_model))
    )
    said = sentence(
        "What each part adds to {token} ({numbers}; orange below 0, blue above, full colour at "
        "±{largest})",
        token=looked_at(book),
        numbers=numbers,
        largest=rounded(MAX(MAX(strips), -MIN(strips)), 2),
    )
    page.show("stages", (_low(page.sheet, page.cursor, 20), 0), said, "part")


def guess(book: ModelBook, n: int) -> Expression:
    """The word that the model would predict after the n-th stage, with its probability."""
    chances = book.graph[f"lens.{n}.probs"].area.as_range
    texts = layout.labels_of(book, "logits", 1, book.graph["logits"].shape[1])
    where = place_of_largest(book.graph[f"lens.{n}.logits"].area.as_range)
    return quote(nth(texts, where)) & " " & percent(nth(chances, where))


def _answer(book: ModelBook) -> Expression:
    """The most likely next word, with its probability."""
    found, live, _ = ranking.ranked(book)
    says = sentence("says {word}, {chance}", word=quote(found[0]), chance=percent(live[0]))
    return answered(book, says, worded(SILENT))


# --- where each token looks ---------------------------------------------------------------


def _tiles(book: ModelBook, page: Composer, canvas: Canvas, axis: str, looks: Area) -> None:
    """The pattern of every head as a tile; captions read `looks`, a row for each head."""
    text = TILED_SOURCE if axis == SOURCE else TILED
    name = "cross heads of layer {layer}" if axis == SOURCE else "heads of layer {layer}"
    at = _low(page.sheet, page.cursor, 20), 0
    page.show(_of("tiles", axis), at, sentence(text, token=looked_at(book)), "part")
    row, n_above = page.cursor + 1, 0
    for layer, heads in canvas.heads(axis).items():
        page.sheet.put(row, 0, worded(name, layer=layer), "row label")
        for k, head in enumerate(heads):
            down, along = divmod(k, canvas.across)
            at = row + down * (canvas.tile(axis)[0] + 2), 1 + along * canvas.slot
            _tile(book, page, canvas, head, *at)
            caption = at[0], at[1] + -(-34 // canvas.unit)
            share, word = _most(book, looks[n_above + k : n_above + k + 1, :], axis)
            page.show(
                _of(f"caption.{head_name(head)}", axis),
                caption,
                sentence("{share} to {word}", share=share, word=word),
                "said",
            )
        n_above += len(heads)
        row += canvas.tile_rows * (canvas.tile(axis)[0] + 2)
    page.cursor = row


def _tile(
    book: ModelBook, page: Composer, canvas: Canvas, head: Block, row: int, left: int
) -> None:
    """Add a head's pattern, its name above, and to its left a mark at the chosen token."""
    sheet, axis = page.sheet, head.axes[1]
    height, thickness = canvas.tile(axis)[0], canvas.thickness(axis)
    sheet.link(_low(sheet, row), left, head_name(head), book.address(head.area))
    _low(sheet, row + 1, MARK)
    sheet.heights |= dict.fromkeys(range(row + 2, row + 2 + height), 0.75 * thickness)
    name, here, at = _of(f"mark.{head_name(head)}", axis), position(book), (row + 2, left)
    marks = page.show(name, at, lambda i, _: IF(here == i, 1, 0), "mark", (height, 1))
    page.dress(marks, "scale")
    name = _of(f"tile.{head_name(head)}", axis)
    add_pattern(page, name, (row + 2, left + 1), head, canvas.style("tile"))
    if left == 1 and thickness >= LABELLED:
        at = row + 2, 0
        layout.labels(book, sheet, name, at, head.axes[0], range(height), "row label")


def add_pattern(page: Composer, name: str, at: Span, head: Block, style: str) -> None:
    """Add a table of a head's pattern: a row is a token that looks."""
    table = page.table(name, at, head.shape)
    for i, j in (at for at in head.whole.cells() if head.has(*at)):
        table.put(i, j, head[i, j], style)
    page.dress(table.area, "scale")


def head_name(head: Block) -> str:
    """A head by its layer and its number: 1.2."""
    return f"{head.layer}.{head_number(head)}"


def head_number(head: Block) -> int:
    """The number of the head that a block is of, in its layer."""
    return int((head.head or "h0")[1:])


def _most(book: ModelBook, shares: Area, axis: str) -> tuple[Expression, Expression]:
    """The largest share of attention that a head at the chosen token gives to a token of an
    axis, and that token."""
    most = MAX(shares)
    word = entry(layout.token_texts(book, axis), 1, MATCH(most, shares.as_range, 0))
    return percent(most), quote(word)


def _looks(
    book: ModelBook, page: Composer, canvas: Canvas, heads: Sequence[Block], looks: Table
) -> None:
    """Add where the token attends: a row for every head, a column for every token."""
    sheet, top, axis = page.sheet, looks.place.top, heads[0].axes[1]
    n = canvas.n_keys(axis)
    in_source = "Attention of {token} to the source, by head"
    text = in_source if axis == SOURCE else "Attention of {token} in each head"
    page.show(_of("looks", axis), (top - 2, 0), sentence(text, token=looked_at(book)), "heading")
    sheet.heights[top - 1] = 52
    layout.labels(
        book, sheet, _of("looks", axis), (top - 1, 1), axis, range(n), "upright", across=True
    )
    told = page.table(_of("look_said", axis), (top, 2 + n), (len(heads), 1))
    for k, head in enumerate(heads):
        sheet.link(
            top + k,
            0,
            head_of(head),
            book.address(head.area),
        )
        for j in range(n):
            looks.put(
                k,
                j,
                ROUND(Nth(head.area[:, j], position(book) + 1), DECIMALS),
                canvas.style("tile"),
            )
        share, word = _most(book, looks.area[k : k + 1, :], axis)
        text = "{token} gives {word} {share} of its attention"
        told.put(k, 0, sentence(text, token=looked_at(book), word=word, share=share), "said")
    page.dress(looks.area, "scale")


def sharpest(book: ModelBook, heads: Sequence[Block]) -> Block:
    """The head that (as built) attends most to a single token other than the first and the current
    one."""
    last = int(book.clean(position(book)))

    def most(head: Block) -> float:
        others = slice(None) if head.axes[1] == SOURCE else slice(1, last)
        return float(max(book.values[head.name][last, others], default=0.0))

    return max(heads, key=most)


def look(book: ModelBook, head: Block) -> Area:
    """The sentence about a head's attention at the chosen token."""
    axis = head.axes[1]
    heads = [block for heads in Canvas(book).heads(axis).values() for block in heads]
    return book.shown[f"machine.{_of('look_said', axis)}"].block[heads.index(head), 0]


# --- the next word ------------------------------------------------------------------------


def _words(book: ModelBook, sheet: Sheet, canvas: Canvas) -> None:
    """Add the most likely words, baseline beside live."""
    if "probs" not in book.graph.blocks:
        return
    texts, live, built = ranking.ranked(book)
    sheet.charts.append(
        Chart(
            TOP,
            canvas.chart_col,
            "bar",
            book.of_words("The next word", "The next letter"),
            [Series("as built", texts, built), Series("live", texts, live)],
            size=(CHART - 8, 420),
            shares=True,
        )
    )
