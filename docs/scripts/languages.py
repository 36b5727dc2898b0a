"""The catalogues of workbooks' texts, `engine/languages/*.po`, brought up to date.

    python docs/scripts/languages.py     # every catalogue: new texts, and old ones that are gone
    python docs/scripts/languages.py de  # begins a catalogue of another language

Texts are recorded while every workbook of the gallery is built, and a model's with every study;
what they do not ask for is found in the source, too. A text that changed is marked
`fuzzy`, and stays English until somebody has looked at it and removed the mark.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po, write_po

from cellformer import exercises, names, workbooks
from cellformer.engine.cells import language
from cellformer.engine.models.generate import passage
from cellformer.engine.studies import pair, part_names, slips, steering
from cellformer.engine.studies.exercises import LEVELS
from cellformer.engine.studies.pair import Against
from cellformer.exporters.assemble import (
    answer_key,
    encoder_workbook,
    exercise,
    model_workbook,
    tour,
    transformer,
    two_stack_workbook,
)
from cellformer.exporters.compose import theme
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.dressing import in_words
from cellformer.exporters.model import block_sheets, glossary, words
from cellformer.exporters.pages import chat, tokenizer
from cellformer.exporters.play import ranking, sentence, settings, tokens

ROOT = Path(__file__).parents[2]
WORDED = re.compile(r"[^\W\d_]{2}")  # what has no two letters in a row is no text
MODEL, OTHER = "dialogue-game", "<BOS> 3 chiama Paolo"  # with every study, against a sentence
RECURRENT = str(ROOT / "tests/golden/mamba")
HEAD = "# The texts of workbooks. At the top: how its terms are rendered.\n#"
CALLS = ("worded", "sentence", "translated")


@dataclass(frozen=True)
class Recorder(language.Language):
    """English, which remembers what it was asked for."""

    asked: dict[str, None] = field(default_factory=dict)

    def of(self, text: str) -> str:
        if not isinstance(text, language.AsIs) and WORDED.search(text):
            self.asked[str(text)] = None
        return text


def asked_for(books: Iterable[str] = (), studies: bool = True) -> dict[str, list[str]]:
    """The texts of some workbooks (default: all, and those of the studies of a model), each with
    the workbooks that ask for it."""
    found: dict[str, list[str]] = {}
    for name in books or workbooks.path():
        recorder = Recorder("en")
        with language.speaking(recorder):
            book = names.book(name)
            more = [names.with_part(name, part) for part in names.parts(name)]
            _looked_at(book)
        for text in _messages(recorder, book, *more):
            found.setdefault(text, []).append(name)
    for book, recorder in _studied() if studies else ():
        for text in _messages(recorder, book):
            found.setdefault(text, []).append(MODEL)
    for text in of_recurrence() if studies else ():
        found.setdefault(text, []).append("mamba")
    return found


def of_recurrence() -> list[str]:
    """The texts of the workbook of a recurrent model, which no workbook of the gallery is."""
    recorder = Recorder("en")
    with language.speaking(recorder):
        book = names.load(RECURRENT, ids="3,1,4").built()
        _looked_at(book)
    return _messages(recorder, book)


def _messages(recorder: Recorder, *books: Book) -> list[str]:
    """What was asked for, in this order, but for the books' data."""
    held = set().union(*map(data, books))
    return [text for text in recorder.asked if text not in held]


def _looked_at(book: Book) -> None:
    """Ask for the texts that a file of the book has beside its cells."""
    for sheet in book.sheets.values():
        for rule in (*sheet.rules.values(), *(rule for _, rule in sheet.areas)):
            in_words(rule)
    for style in theme.STYLES:
        theme.look(style)


def _studied() -> Iterator[tuple[Book, Recorder]]:
    """A model's workbook with each study, and two with exercises."""
    loaded = names.load(MODEL)
    lists = {
        "calls": ["<BOS> Pietro chiama Paolo", "<BOS> Paolo chiama Pietro"],
        "loses": ["<BOS> Pietro perde banana", "<BOS> Paolo perde nuvola"],
    }
    contrast = steering.contrast(loaded.model, names.sentences(loaded.model, lists), "")
    studies = (
        *({"gradient": True}, {"nudge": True}, {"quantize": {}}, {"why": ""}),
        {"against": Against(tuple(pair.others(loaded.asked(True, against=OTHER))))},
        {"steer": contrast},
    )
    given = passage(loaded.model, loaded.ids, len(loaded.ids))
    for live, study in (*(((), study) for study in studies), (("blocks.0",), {})):
        recorder = Recorder("en")
        with language.speaking(recorder):
            yield loaded.book(loaded.model, given, live, study), recorder
    recorder = Recorder("en")
    with language.speaking(recorder):
        yield _of_two_stacks(), recorder
    for name in ("cat-sat", "zero-layer"):
        recorder = Recorder("en")
        with language.speaking(recorder):
            yield exercises.recipe(name, 1, None).book(), recorder


def _of_two_stacks() -> Book:
    """The workbook of an encoder-decoder, which the gallery does not have."""
    loaded = names.load(str(ROOT / "tests" / "golden" / "t5"), ids="3,1,4")
    return loaded.book(loaded.model, passage(loaded.model, loaded.ids, 4))


def data(book: Book) -> set[str]:
    """The texts of a book that are no language: its words, and names of its blocks and sheets."""
    held = (np.asarray(values) for values in book.graph.inputs.values())
    texts = {str(x) for values in held if values.dtype == object for x in values.flat}
    shown = {text for labels in getattr(book, "labels", {}).values() for text in labels}
    return texts | shown | {name for name in book.graph.blocks if "." in name or "_" in name}


def written() -> dict[str, list[str]]:
    """The texts in calls of `worded` and `sentence`, with the files that they stand in."""
    found: dict[str, list[str]] = {}
    for room in ("engine", "exporters", "workbooks", "cellformer"):
        for file in sorted((ROOT / room).rglob("*.py")):
            for call in ast.walk(ast.parse(file.read_text())):
                if isinstance(call, ast.Call) and getattr(call.func, "id", "") in CALLS:
                    for text in filter(WORDED.search, _literals(call.args[0])):
                        found.setdefault(text, []).append(str(file.relative_to(ROOT)))
    return found


def kept(held: Catalog) -> dict[str, list[str]]:
    """The texts of a catalogue that stand in the source, though no workbook here asks for them:
    those of architectures that the gallery does not have."""
    there = {
        node.value
        for room in ("engine", "exporters")
        for file in (ROOT / room).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    return {m.id: ["exporters"] for m in held if m.id in there}


def declared() -> dict[str, list[str]]:
    """The texts about blocks, terms and sheets that a model of another architecture may have."""
    meanings = (*words.MEANING.values(), *words.IN_FULL.values(), *words.OF_LOSS.values())
    steps = (*tokenizer.SECTIONS.values(), *tokenizer.MEANINGS.values(), *tokenizer.NORMAL.values())
    columns = [head for row in tokenizer.TABLE_HEADS.values() for head in row]
    sheets = [purpose for _, purpose in block_sheets.SHEETS.values()]
    sheets += [page.PURPOSE for page in transformer.pages()]
    terms = [text for term in glossary.TERMS for text in (term.name, term.meaning, *term.headers)]
    stories = (encoder_workbook, two_stack_workbook, model_workbook, answer_key, exercise)
    texts = [x for story in stories for k, x in vars(story).items() if k.isupper()]
    by_kind = (
        ranking.HEADINGS,
        chat.PIECES,
        chat.STRIPPED,
        chat.STEPS,
        sentence.SAID,
        sentence.NONE_HERE,
        settings.LOOKED_AT,
        tour.TOKENS,
        encoder_workbook.PLAYS,
        part_names.WHOLE,
        *part_names.ONE_OF.values(),
    )
    found = (
        *meanings,
        *(text for texts in by_kind for text in texts.values()),
        *(sentence.TO_GO_ON, sentence.NEXT_WORD, sentence.RULES, tokens.SO_FAR),
        *steps,
        *columns,
        *words.AXES.values(),
        *sheets,
        *terms,
        *slips.TOLD.values(),
        *LEVELS.values(),
        *exercise.HERE.values(),
        *answer_key.TYPED_AS.values(),
        *answer_key.MISTAKES.values(),
        *(x for x in texts if isinstance(x, str) and " " in x),
    )
    return {text: ["exporters"] for text in found if WORDED.search(text)}


def _literals(argument: ast.expr) -> list[str]:
    """The texts that an argument may be."""
    if isinstance(argument, ast.IfExp):
        return _literals(argument.body) + _literals(argument.orelse)
    return [str(argument.value)] if isinstance(argument, ast.Constant) else []


def template(texts: dict[str, list[str]]) -> Catalog:
    """A catalogue without translations."""
    made = Catalog(project="cellformer", charset="utf-8", fuzzy=False)
    for text, places in sorted(texts.items(), key=lambda item: (item[1][0], item[0])):
        made.add(text, locations=[(place, None) for place in places[:1]])
    return made


def main(codes: list[str]) -> None:
    """Bring catalogues up to date, and print what they lack."""
    found = written() | declared() | asked_for()
    known = [path.stem for path in language.FOLDER.glob("*.po")]
    for code in codes or known:
        path = language.FOLDER / f"{code}.po"
        if path.exists():
            with path.open("rb") as file:
                held = read_po(file, locale=code)
            held.update(template(kept(held) | found), update_creation_date=False)
        else:
            held = Catalog(code, project="cellformer", header_comment=HEAD, fuzzy=False)
            held.update(template(found))
        with path.open("wb") as file:
            write_po(file, held, width=100, ignore_obsolete=True)
        lacking = [m for m in held if m.id and (not m.string or m.fuzzy)]
        print(f"{path}: {len(held)} texts, {len(lacking)} to translate")


if __name__ == "__main__":
    main(sys.argv[1:])
