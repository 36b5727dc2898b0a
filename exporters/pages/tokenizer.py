"""Tokenizer: from the typed text to token ids, step by step.

Characters are across the top; each row below is one step of the tokenizer, and in BPE each merge is
a row. What the steps look up, the vocabulary and the merges, is on a sheet of its own. See
`cellformer.engine.text.tokenizing` for the rows.

A workbook has this page if its graph has the tables of `tokenizing.add`. If Play has placed the
block `sentence`, the sentence is typed there; else it is typed here.
"""

import re
from collections.abc import Sequence

import numpy as np

from cellformer.engine.cells.access import Rect
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.functions import OR
from cellformer.engine.cells.language import AsIs
from cellformer.engine.cells.name import ENCODER, SECOND
from cellformer.exporters.compose.book import Book, Place, Run, Sheet
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.dressing import When
from cellformer.exporters.model import layout
from cellformer.exporters.model.model_book import ModelBook

SHEET = "Tokenizer"
TABLES = "Tokenizer tables"  # the sheet of what the steps look up
PURPOSE = "from your text to token ids, step by step"
AFTER = "Study"
PREFIX = "tokenizer."
# the sheet of the steps of what is typed, by the prefix of its blocks: a sentence, the second one,
# the source sentence of two stacks
SHEETS = {"": SHEET, f"{SECOND}.": f"{SHEET} {SECOND}", f"{ENCODER}.": SHEET}
LABEL, MEANING, TOLD, LOWEST, MERGED, LEFT = 0, 1, 1, 2, 4, 5  # columns; characters begin at LEFT
TOP = 4
BESIDE = {"told": TOLD, "lowest": LOWEST, "place": LOWEST + 1, "merged": MERGED}
LAST = ("problem", "count")  # of the steps
PINNED = ("number", "character")  # always in view above the steps
RESULTS = ("message", "fine", "n_ids", "token", "ids")

SECTIONS = {  # the row that begins a part of the sheet
    "text": "The characters",
    "normal_entry": "Each character after normalization",
    "mark_class": "Marks (accents) after a letter are sorted and joined with the letter",
    "again_entry": "The remaining characters, normalized again",
    "belongs": "Character classes of the patterns: 1 if the character belongs to the class",
    "match": "How many characters each part of the pattern matches from here (· means none)",
    "kind": "Kind of each character",
    "gives": "From characters to symbols",
    "symbols": "Every row merges the neighbouring pair with the lowest rank",
    "rank": "Rank of each pair (a symbol and the symbol to its right); ·: the pair does not merge",
    "nodes": "The vocabulary as a tree: the node reached after this number of symbols",
    "longest": "The longest piece up to this length",
    "score": "The best sum of scores up to here, for each length of the last piece",
    "behind": "Distance of each sum from a number near the best sum",
    "problem": "Resulting tokens",
}
MEANINGS = {
    "sentence": "what is typed",
    "text": "text for the tokenizer",
    "number": "column",
    "position": "place in the text; codes above 65,535 can count as two",
    "character": "the character",
    "code": "Unicode number; 0: end of the text",
    "entry": "row in the table of characters",
    "kind": "3: space; 6: stands alone; 7: not supported; 8 or more: class",
    "mark_class": "combining class; 0: not a mark",
    "letter": "number of letters up to here",
    "key": "number that sorts characters by letter, class, column",
    "order": "column of the character placed here",
    "sorted": "its code",
    "sorted_class": "its combining class",
    "composed": "letter composed with the letter before; 0: none",
    "composed_letter": "the letter before, composed so far",
    "marks_between": "class of the mark in between; 0: none",
    "whole": "the letter with its composed marks",
    "composed_code": "code; for a composed mark, the code of the letter",
    "length": "length of the match that begins here (· means no match)",
    "begins": "1: a word begins here, and tokens cannot cross this point",
    "kept": "0: the character is dropped",
    "next": "end of the match, or the next character",
    "word_ends": "1: the last character of a word",
    "fused": "1: unknown, and in one token with the character before",
    "single": "symbol of the character; 0 if the bytes are used instead",
    "gives": "how many symbols the character becomes",
    "before": "number of earlier symbols",
    "total": "number of symbols",
    "source": "source character of the symbol",
    "within": "place of the symbol within its character, from 0",
    "byte": "UTF-8 byte; -1: none",
    "symbol": "code after normalization: lower case, no accents",
    "word_kind": "kind of the character; 3 means a space or no character",
    "room": "symbols to the end of the word",
    "starts": "1: a token begins here",
    "failing": "1: no token matches the rest of the word",
    "fails": "1: the word is unknown",
    "so_far": "best sum of scores before this symbol; 0: a word begins",
    "best": "best sum of scores up to here",
    "near": "near the best sum",
    "last": "length of the last piece on the best path to here",
    "ends": "1: a piece of the best path ends here",
    "left": "number of symbols before the piece",
    "piece": "piece that ends here (its id plus 1)",
    "missing": "1: a character is unknown",
    "taken": "number of tokens up to here",
    "id": "the id",
    "problem": "0, or the number of an error",
    "count": "number of ids in the text",
    "message": "the result in words",
    "fine": "1: the whole text became ids",
    "n_ids": "number of ids",
    "ids": "token ids; -1: no more ids",
    "token": "the tokens",
    "told": "what is merged",
    "lowest": "lowest rank",
    "place": "its column",
    "merged": "symbol",
}
NORMAL = {  # of the rows in which characters become others
    "entry": "row in the table of normalized characters",
    "kind": "1: mark; 2: letter with marks; 7: not supported",
    "gives": "number of resulting characters",
    "before": "resulting characters before this place",
    "total": "number of characters, added up",
    "source": "source character",
    "within": "place among the resulting characters, from 0",
    "code": "its code",
}
TABLE_HEADS = {
    "added": ("special tokens",),
    "holds": ("in the text",),
    "marks": ("special tokens found",),
    "marked": ("text with a sign for each token",),
    "clash": ("in the way",),
    "parted": ("text with adjusted spaces",),
    "filled": ("no space in empty parts",),
    "characters": ("from code", "kind", "gives", "shift", "second", "third"),
    "normal_characters": ("from code", "kind", "gives", "shift", "second", "third"),
    "again_characters": ("from code", "kind", "gives", "shift", "second", "third"),
    "combining": ("from code", "class"),
    "compositions": ("letter and mark", "composed"),
    "byte_symbols": ("symbol of each byte", "symbol of last byte"),
    "pairs": ("pair", "rank"),
    "made": ("merge of each rank",),
    "pieces": ("piece of each symbol",),
    "tree": ("parent and code", "symbol", "score"),
}


STYLES = {
    "symbols": "symbol",
    "rank": "rank",
    "match": "match",
    "length": "match",
    "character": "word",
    "text": "text",
    "score": "symbol",
    "behind": "symbol",
    "so_far": "step",
    "best": "step",
    "near": "step",
    "number": "label number",
}


def wanted(book: ModelBook) -> bool:
    """Whether the graph has a tokenizer's tables."""
    return any(f"{prefix}{PREFIX}ids" in book.graph.blocks for prefix in SHEETS)


def add(book: ModelBook) -> None:
    """Add the rows of the tokenizer, and its tables on a sheet of their own."""
    for prefix, name in SHEETS.items():
        if f"{prefix}{PREFIX}ids" in book.graph.blocks:
            layout.dress(book, book.sheet(name))
            lay_out(book, prefix, name)


def lay_out(book: Book, prefix: str = "", name: str = SHEET) -> None:
    """Place every block of the tokenizer, with labels; needs no model.

    A second sentence's blocks have a prefix and a sheet of their own; both use the same tables.
    """
    sheet, tables = book.sheet(name), book.sheet(TABLES)
    sheet.purpose = PURPOSE
    tables.purpose = "tables of the tokenizer: characters, merges, the vocabulary"
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
        texts = [name for leaf in self.blocks if (name := _texts_of(leaf)) in self.blocks]
        apart = (*PINNED, *RESULTS, *BESIDE, *texts)
        steps = [leaf for leaf in self.blocks if leaf not in apart]
        for leaf in sorted(steps, key=lambda leaf: leaf in ("rank", *LAST)):  # behind the symbols
            block = self.blocks[leaf]
            if leaf in ("holds", "marked", "clash", "parted", "filled"):
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
        if heading := SECTIONS.get(_plain(leaf)):
            self.row += 1
            self.sheet.put(self.row, LABEL, heading, "heading")
            self.row += 1
        if leaf == "symbols":
            self._merges(block)
        n_rows = block.shape[0]
        if meaning := _meaning(leaf):  # it is one row by what it is, not because pieces are short
            told = leaf.replace("_", " "), meaning
            self.sheet.lines(self.row, [told], {LABEL: "row label", MEANING: "note"})
        else:
            numbers = range(n_rows) if leaf in ("symbols", "rank") else range(1, n_rows + 1)
            if leaf in ("score", "behind"):  # the longest first
                numbers = numbers[::-1]
            self.sheet.down(self.row, LABEL, numbers, "label number")
        if _texts_of(leaf) in self.blocks:
            self._texts(self.blocks[_texts_of(leaf)])
        self.book.lay(
            Place(block, self.sheet.name, self.row, LEFT, turned=False),
            STYLES.get(_plain(leaf), "id"),
        )
        self.row += n_rows

    def _texts(self, block: Block) -> None:
        """Add the meaning of each row of a block: a part of a regular expression."""
        place = Place(block, self.sheet.name, self.row, MEANING, turned=False)
        self.book.places[block.name] = place
        self.sheet.runs.append(
            Run(place.rect(block.whole), "text", list(self.book.graph.inputs[block.name][:, 0]))
        )

    def _merges(self, symbols: Block) -> None:
        """Add the pair that each row merges, to the left of its symbols."""
        for leaf, col in BESIDE.items():
            block = self.blocks[leaf]
            self.sheet.put(self.row, col, MEANINGS[leaf], "label")
            self.book.lay(
                Place(block, self.sheet.name, self.row + 1, col, turned=False),
                "text" if leaf == "told" else "rank",
            )
        self.row += 1
        top, n = self.row, symbols.shape[0] - 1
        column = self.sheet[self.book.places[f"{self.prefix}number"].top, LEFT].fixed_rows
        place_of = self.sheet[top, BESIDE["place"]].fixed_cols
        merged = OR(column == place_of, column == place_of + 1)
        self.sheet.dress(self.sheet[top : top + n, LEFT : LEFT + self.n], When("differs", merged))

    # --- the tables ---------------------------------------------------------------------------

    def _table(self, leaf: str, block: Block) -> None:
        cols = block.shape[1]
        self.tables.across(TOP - 1, self.right, self._heads(leaf, cols), "label")
        place = Place(block, TABLES, TOP, self.right, turned=False)
        self.book.places[block.name] = place
        values = self.book.graph.inputs[block.name]
        if values.dtype == np.float64:
            self.tables.regions.append((place, "symbol typed"))
        else:
            self.tables.runs.append(Run(place.rect(block.whole), "text", list(values[:, 0])))
        self.tables.widths = dict(self.tables.widths) | {self.right + k: 14 for k in range(cols)}
        self.right += cols + (0 if leaf in ("added", "marks") else 1)

    def _heads(self, leaf: str, cols: int) -> Sequence[str]:
        if leaf == "classes":
            return [AsIs(text) for text in self.book.graph.inputs[f"{self.prefix}class"][:, 0]]
        if leaf == "characters" and "single" in self.blocks:
            return ("from code", "kind", "symbol", "symbol of last byte")[:cols]
        return TABLE_HEADS[leaf][:cols]

    def _beside_added(self, leaf: str, block: Block) -> None:
        """Add where each added token stands in the text."""
        self.tables.across(TOP - 1, self.right, TABLE_HEADS[leaf], "label")
        is_text = leaf in ("marked", "parted", "filled")
        self.book.lay(
            Place(block, TABLES, TOP, self.right, turned=False), "text" if is_text else "id"
        )
        self.tables.widths = dict(self.tables.widths) | {self.right: 14}
        self.right += 1 if is_text else 2


def _plain(leaf: str) -> str:
    """The name of a row without the number of its split: `match_2` is one of `match`."""
    return re.sub(r"_\d+$", "", leaf)


def _texts_of(leaf: str) -> str:
    """The block with the meaning of each row of a block."""
    name = _plain(leaf)
    return {"belongs": "class", "match": "part"}.get(name, "") + leaf.removeprefix(name)


def _meaning(leaf: str) -> str | None:
    """The meaning of a row; None for blocks of several rows."""
    for prefix in ("normal_", "again_"):
        if leaf.startswith(prefix):
            return NORMAL[leaf.removeprefix(prefix)]
    return MEANINGS.get(_plain(leaf))
