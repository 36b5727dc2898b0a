"""Tokenizer: from the typed text to token ids, step by step.

Characters are across the top; each row below is one step of the tokenizer, and in BPE each merge is
a row. What the steps look up, the vocabulary and the merges, is on a sheet of its own. See
`engine.text.tokenizing` for the rows.

A workbook has this page if its graph has the tables of `tokenizing.add`. If Play has placed the
block `sentence`, the sentence is typed there; else it is typed here.
"""

import numpy as np

from engine.cells.access import Rect
from engine.cells.block import Block
from engine.cells.functions import OR
from engine.cells.language import AsIs
from engine.cells.name import SECOND
from exporters.compose.book import Book, Place, Run, Sheet
from exporters.compose.composer import Composer
from exporters.compose.dressing import When
from exporters.model import layout
from exporters.model.model_book import ModelBook

SHEET = "Tokenizer"
TABLES = "Tokenizer tables"  # the sheet of what the steps look up
PURPOSE = "from what is typed to token ids, step by step"
AFTER = "Study"
PREFIX = "tokenizer."
LABEL, MEANING, TOLD, LOWEST, MERGED, LEFT = 0, 1, 1, 2, 4, 5  # columns; characters begin at LEFT
TOP = 4
BESIDE = {"told": TOLD, "lowest": LOWEST, "place": LOWEST + 1, "merged": MERGED}
LAST = ("problem", "count")  # of the steps
PINNED = ("number", "character")  # always in view above the steps
RESULTS = ("message", "fine", "n_ids", "token", "ids")

SECTIONS = {  # the row that begins a part of the sheet
    "text": "The characters",
    "kind": "What each character is",
    "gives": "From characters to symbols",
    "symbols": "Every row merges the pair of neighbours of the lowest rank",
    "rank": "The rank of each pair: a symbol and the one to its right; ·: they are not merged",
    "nodes": "The vocabulary as a tree: the node that so many symbols lead to",
    "longest": "The longest piece of so many symbols",
    "score": "The best sum of scores whose last piece ends here, by that piece's length",
    "behind": "How far each is from a number near the best",
    "problem": "What comes out",
}
MEANINGS = {
    "sentence": "what is typed",
    "text": "as it is tokenized",
    "number": "column",
    "position": "its place in the text; one beyond the first 65,536 may count two",
    "character": "the character",
    "code": "its Unicode number; 0: the text has ended",
    "entry": "its row in the table of characters",
    "kind": "1 letter, 2 number, 3 space, 4 newline, 5 other, 6 by itself, 7 outside",
    "run": "how many of this kind stand from here on",
    "white": "how many of them are white space",
    "after_white": "the kind of what follows the white space",
    "contraction": "how long the ending of a contraction is: 's, 'll",
    "newlines": "how many newlines stand from here on",
    "to_newline": "how far it is to the last newline of the white space",
    "others": "how many signs, and the newlines behind them",
    "length": "how long a piece is if it begins here",
    "begins": "1 where a piece begins: nothing is joined across that",
    "next": "where the next piece begins",
    "single": "the symbol of a character that is a piece; 0: its bytes are",
    "gives": "how many symbols the character gives",
    "before": "how many symbols come before it",
    "total": "how many symbols there are",
    "source": "the character that a symbol comes from",
    "within": "which of that character's symbols it is, from 0",
    "byte": "the byte of UTF-8; -1: none",
    "symbol": "the code after normalizing: small letters, no accents",
    "word_kind": "its kind; 3, a space, where there is none",
    "room": "how many symbols are left of the piece",
    "starts": "1 where a token begins",
    "failing": "1 where the rest of the word is not found",
    "fails": "1 where the word is unknown",
    "best": "the best sum of scores up to here",
    "near": "a number near it",
    "last": "how long the last piece of the best path to here is",
    "ends": "1 where a piece of the best path ends",
    "left": "how many symbols are before the piece",
    "piece": "the piece that ends here: an id plus 1",
    "missing": "1 where a character is unknown",
    "taken": "how many tokens up to here",
    "id": "the id",
    "problem": "0, or the number of what is wrong",
    "count": "how many ids the text has",
    "message": "the result in words",
    "fine": "1: all of the text became ids",
    "n_ids": "how many ids there are",
    "ids": "the token ids; -1: no more",
    "token": "the tokens",
    "told": "what is merged",
    "lowest": "lowest rank",
    "place": "its column",
    "merged": "symbol",
}
TABLE_HEADS = {
    "added": ("tokens of their own",),
    "holds": ("in the text",),
    "marks": ("tokens that are found",),
    "marked": ("text with a sign for each",),
    "clash": ("in the way",),
    "characters": ("from code", "kind", "gives", "shift", "second", "third"),
    "byte_symbols": ("symbol of each byte",),
    "pairs": ("pair", "rank"),
    "made": ("merge of each rank",),
    "pieces": ("piece of each symbol",),
    "tree": ("parent and code", "symbol", "score"),
}


STYLES = {
    "symbols": "symbol",
    "rank": "rank",
    "character": "word",
    "text": "text",
    "score": "symbol",
    "behind": "symbol",
    "best": "step",
    "near": "step",
    "number": "label number",
}


def wanted(book: ModelBook) -> bool:
    """In workbooks whose graph has a tokenizer's tables."""
    return f"{PREFIX}ids" in book.graph.blocks


def add(book: ModelBook) -> None:
    """Add the rows of the tokenizer, and its tables on a sheet of their own."""
    for prefix in ("", f"{SECOND}."):
        if f"{prefix}{PREFIX}ids" in book.graph.blocks:
            name = f"{SHEET} {prefix.rstrip('.')}".rstrip()
            layout.dress(book, book.sheet(name))
            lay_out(book, prefix, name)


def lay_out(book: Book, prefix: str = "", name: str = SHEET) -> None:
    """Place every block of the tokenizer, with labels; needs no model.

    A second sentence's blocks have a prefix and a sheet of their own; both use the same tables.
    """
    sheet, tables = book.sheet(name), book.sheet(TABLES)
    sheet.purpose = PURPOSE
    tables.purpose = "what the tokenizer looks up: characters, merges, the vocabulary"
    tables.hold(0, 0, f"{book.title} · {TABLES}", "title")
    tables.link(1, 0, AsIs(f"← {SHEET}"), f"{SHEET}!A1")
    tables.frozen = (TOP, 0)
    Page(book, sheet, tables, prefix).lay_out()


class Page:
    """The two sheets, while they are laid out."""

    def __init__(self, book: Book, sheet: Sheet, tables: Sheet, prefix: str = ""):
        self.book, self.sheet, self.tables, self.typed = book, sheet, tables, f"{prefix}sentence"
        self.prefix = prefix + PREFIX
        # the first free column of the sheet of tables
        self.right = max((col + 2 for col in tables.widths), default=0)
        self.row = TOP + len(RESULTS) + 2  # of the next step
        self.blocks = {
            name.removeprefix(self.prefix): block
            for name, block in book.graph.blocks.items()
            if name.startswith(self.prefix)
        }
        self.n = self.blocks["number"].shape[1]

    def lay_out(self) -> None:
        """Add the result on top, then every step in the order of computation."""
        self.sheet.widths = {LABEL: 14, TOLD: 20, LOWEST: 9, LOWEST + 1: 8, MERGED: 9} | {
            LEFT + k: 7 for k in range(max(self.n, self.blocks["ids"].shape[0]))
        }
        self._sentence()
        for k, leaf in enumerate(RESULTS, 1):
            self._results(leaf, TOP + k)
        for leaf in PINNED:
            self._step(leaf, self.blocks[leaf])
        self.sheet.frozen = (self.row, LEFT)
        steps = [leaf for leaf in self.blocks if leaf not in (*PINNED, *RESULTS, *BESIDE)]
        for leaf in sorted(steps, key=lambda leaf: leaf in ("rank", *LAST)):  # behind the symbols
            self._lay(leaf, self.blocks[leaf])

    def _lay(self, leaf: str, block: Block) -> None:
        if leaf in ("holds", "marked", "clash"):
            self._beside_added(leaf, block)
        elif block.expression is None:
            self._table(leaf, block)
        else:
            self._step(leaf, block)

    def _sentence(self) -> None:
        block = self.book.graph[self.typed]
        self.sheet.put(TOP, LABEL, "sentence", "row label")
        if self.typed in self.book.places:
            Composer(self.book, self.sheet.name).show("typed", (TOP, MEANING), block[0, 0], "text")
            return
        self.book.lay(Place(block, self.sheet.name, TOP, MEANING, turned=False), "sentence")
        self.sheet.merged.append(Rect(TOP, TOP + 1, MEANING, LEFT + 8))

    def _results(self, leaf: str, row: int) -> None:
        block = self.blocks[leaf]
        self.sheet.put(row, LABEL, leaf, "row label")
        across = block.shape[0] > 1
        if across or leaf == "n_ids" or leaf == "fine":
            self.sheet.put(row, MEANING, MEANINGS[leaf], "note")
        style = {"message": "note", "token": "word"}.get(leaf, "id")
        left = MEANING if leaf == "message" else LEFT
        self.book.lay(Place(block, self.sheet.name, row, left, turned=across), style)

    # --- the steps ----------------------------------------------------------------------------

    def _step(self, leaf: str, block: Block) -> None:
        if leaf in SECTIONS:
            self.row += 1
            self.sheet.put(self.row, LABEL, SECTIONS[leaf], "heading")
            self.row += 1
        if leaf == "symbols":
            self._merges(block)
        n_rows = block.shape[0]
        if leaf in MEANINGS:  # it is one row by what it is, not because pieces are short
            self.sheet.put(self.row, LABEL, leaf.replace("_", " "), "row label")
            self.sheet.put(self.row, MEANING, MEANINGS[leaf], "note")
        else:
            longest_first, from_0 = leaf in ("score", "behind"), leaf in ("symbols", "rank")
            for k in range(n_rows):
                number = n_rows - k if longest_first else k + (not from_0)
                self.sheet.put(self.row + k, LABEL, number, "label number")
        place = Place(block, self.sheet.name, self.row, LEFT, turned=False)
        self.book.lay(place, STYLES.get(leaf, "id"))
        self.row += n_rows

    def _merges(self, symbols: Block) -> None:
        """Add what each row merges, to the left of its symbols."""
        for leaf, col in BESIDE.items():
            block = self.blocks[leaf]
            self.sheet.put(self.row, col, MEANINGS[leaf], "label")
            place = Place(block, self.sheet.name, self.row + 1, col, turned=False)
            self.book.lay(place, "text" if leaf == "told" else "rank")
        self.row += 1
        top, n = self.row, symbols.shape[0] - 1
        number = self.book.places[f"{self.prefix}number"]
        column = self.sheet[number.top, LEFT].fixed_rows
        place_of = self.sheet[top, BESIDE["place"]].fixed_cols
        merged = OR(column == place_of, column == place_of + 1)
        self.sheet.dress(self.sheet[top : top + n, LEFT : LEFT + self.n], When("differs", merged))

    # --- the tables ---------------------------------------------------------------------------

    def _table(self, leaf: str, block: Block) -> None:
        _, cols = block.shape
        heads = TABLE_HEADS[leaf]
        for k in range(cols):
            self.tables.put(TOP - 1, self.right + k, heads[k], "label")
        place = Place(block, TABLES, TOP, self.right, turned=False)
        self.book.places[block.name] = place
        values = self.book.graph.inputs[block.name]
        if values.dtype == np.float64:
            self.tables.regions.append((place, "symbol typed"))
        else:
            self.tables.runs.append(Run(place.rect(block.whole), "text", list(values[:, 0])))
        widths = {self.right + k: 14 for k in range(cols)}
        self.tables.widths = dict(self.tables.widths) | widths
        self.right += cols + (0 if leaf in ("added", "marks") else 1)

    def _beside_added(self, leaf: str, block: Block) -> None:
        """Add where each added token stands in the text."""
        (head,) = TABLE_HEADS[leaf]
        self.tables.put(TOP - 1, self.right, head, "label")
        style = "text" if leaf == "marked" else "id"
        self.book.lay(Place(block, TABLES, TOP, self.right, turned=False), style)
        self.tables.widths = dict(self.tables.widths) | {self.right: 14}
        self.right += 1 if leaf == "marked" else 2
