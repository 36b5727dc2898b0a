"""Workbooks of exercises: built by name and level, and built again from the recipe in such a
file."""

import faulthandler
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from cellformer import names, workbooks
from cellformer.engine.cells import language
from cellformer.engine.cells.errors import InputError
from cellformer.engine.models import formats
from cellformer.engine.models.generate import passage
from cellformer.engine.studies.exercises import Level
from cellformer.exporters.assemble import exercise
from cellformer.exporters.assemble.answer_key import KEY, Answer
from cellformer.exporters.assemble.exercise import VERSION
from cellformer.exporters.checking import child_processes
from cellformer.exporters.compose.book import Book, OnLayout
from cellformer.exporters.edits import edited, grading
from cellformer.exporters.edits.grading import Grade as Grade
from cellformer.exporters.edits.grading import Marking
from cellformer.exporters.file.reading import Cell, WorkbookFile
from cellformer.exporters.model.model_book import ModelBook

SECONDS, PROCESSOR_SECONDS, BYTES = 60, 10, 1_000_000_000  # for one file
TO_BUILD = 60  # more seconds, where each process builds the workbook
NOT_MARKED = "not marked"


@dataclass(frozen=True)
class Recipe:
    """The recipe of a workbook of exercises: a name, a level, and for a model the prompt."""

    name: str
    level: Level = 1
    ids: tuple[int, ...] = ()  # of the prompt
    n_tokens: int = 0
    lang: str = "en"

    def book(self, solved: bool = False, on_layout: OnLayout | None = None) -> Book:
        """The workbook; `solved`, with the right formulas in its yellow cells."""
        return self.asked(solved, on_layout)[0]

    def asked(
        self, solved: bool = False, on_layout: OnLayout | None = None
    ) -> tuple[Book, list[Answer]]:
        """The same, and its yellow cells. Raises InputError."""
        known = language.current()
        with language.speaking(known if known.code == self.lang else language.language(self.lang)):
            book = self.plain(on_layout)
            declared = getattr(self._module, "EXERCISES", ()) if self._own_prompt else ()
            found = exercise.asked(book, self.level, declared)
            return book, exercise.make(book, found, self.level, asdict(self), solved)

    def plain(self, on_layout: OnLayout | None = None) -> Book:
        """The workbook without exercises. Raises InputError."""
        if names.is_worksheet(self.name):
            return names.book(self.name)
        loaded = names.load(self.name, ids=",".join(map(str, self.ids)))
        found = passage(loaded.model, list(self.ids), self.n_tokens)
        book = loaded.book(loaded.model, found, on_layout=on_layout)
        if not (isinstance(book, ModelBook) and book.plan.whole):
            raise InputError(
                "--exercise needs a decoder model with at most 2,048 tokens in its vocabulary, "
                "or a workbook made of worksheets"
            )
        return book

    @property
    def _module(self) -> object:
        named = formats.means(self.name) or names.is_workbook(self.name)
        return None if named else workbooks.find(self.name)

    @property
    def _own_prompt(self) -> bool:
        """Whether it is for the prompt that the workbook's own exercises are about."""
        if self._module is None or not self.ids:
            return self._module is not None
        return list(self.ids) == names.load(self.name).ids


def recipe(
    name: str,
    number: int = 1,
    prompt: str | None = None,
    ids: str | None = None,
    special: bool = True,
    n_tokens: int | None = None,
    force: bool = False,
) -> Recipe:
    """The recipe of a workbook's exercises. Raises InputError."""
    if names.is_worksheet(name):
        names.check_takes(name, prompt=prompt, ids=ids, no_special=not special, tokens=n_tokens)
        return Recipe(name, level(number), lang=language.current().code)
    loaded = names.load(name, prompt, ids, special, force=force)
    ids_of = tuple(loaded.ids)
    return Recipe(name, level(number), ids_of, n_tokens or loaded.n_tokens, language.current().code)


def level(number: int) -> Level:
    """A level by its number. Raises InputError for another one."""
    for known in (1, 2, 3):
        if number == known:
            return known
    raise InputError(
        f"there is no level {number}; choose 1 (single numbers), 2 (formulas) or 3 (whole rows)"
    )


Kind = tuple[Recipe, str]  # what files that are graded by one workbook have in common


class Grader:
    """Grades files, each in a process of its own; those of one kind are graded by one workbook.

    Where the system can fork, the workbook is built once, and a process has it from its start.
    """

    def __init__(self) -> None:
        self._known: dict[Kind, tuple[Marking, str]] = {}

    def grade(self, path: str | Path) -> Grade:
        """The marks of a file. Raises InputError for a file without exercises, of another
        version, with a changed hidden sheet, or one that crashes its process."""
        try:
            if sys.platform == "linux":
                job = partial(self._limited, str(path), os.getcwd())
                found = _in_process(job, SECONDS)
                if not isinstance(found, Grade):
                    self.build(found)
                    found = _in_process(job, SECONDS)
            else:
                found = _in_process(partial(alone, str(path), os.getcwd()), SECONDS + TO_BUILD)
        except InputError as error:
            raise InputError(f"{path}: {NOT_MARKED}: {error}") from None
        assert isinstance(found, Grade)
        return found

    def _limited(self, path: str, folder: str) -> Grade | Kind:
        child_processes.limit(PROCESSOR_SECONDS, BYTES)
        faulthandler.disable()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what native code says when it crashes
        os.chdir(folder)
        return self.graded(path)

    def graded(self, path: str) -> Grade | Kind:
        """The marks of a file, in this process; if its workbook was not built yet, its kind."""
        file = WorkbookFile(path)
        recipe, digest = of_file(file)
        kind = recipe, edited.language_of(file).code
        if kind not in self._known:
            return kind
        marking, expected = self._known[kind]
        if digest != expected:
            raise InputError(
                "the exercises in the file do not match this version of cellformer; use a new "
                "file, or the version that made the file"
            )
        return marking.grade(file, path)

    def build(self, kind: Kind) -> None:
        """Build the workbook of a kind, in this process."""
        recipe, code = kind
        with language.speaking(language.language(code)):
            book, answers = recipe.asked()
            marking = Marking(book, answers, recipe.level)
            self._known[kind] = marking, exercise.digest(book, answers)
        with suppress(InputError):  # said of files with formulas, where IronCalc is missing
            _ = marking.calculator


def alone(path: str, folder: str) -> Grade:
    """The marks of a file, in a process that shares nothing with the one that began it."""
    os.chdir(folder)
    grader = Grader()
    found = grader.graded(path)
    if not isinstance(found, Grade):
        grader.build(found)
        found = grader.graded(path)
    assert isinstance(found, Grade)
    return found


def _in_process(job: Callable[[], Grade | Kind], seconds: float) -> Grade | Kind:
    """The result of a job in its own process. Raises InputError if the process gives none."""
    with TemporaryDirectory() as folder:
        outcome = child_processes.run({"file": job}, Path(folder), seconds, lambda *_: None, "")[
            "file"
        ]
    if outcome.fault:
        raise InputError(outcome.fault)
    found: Grade | Kind = outcome.value
    return found


def filled_in(file: WorkbookFile) -> list[tuple[str, str, Cell]]:
    """The yellow cells of a workbook of exercises: name, address, and contents. Raises
    InputError as `of_file` does."""
    book, answers = of_file(file)[0].asked()
    return [(a.name, book.address(a.block[a.i, a.j]), grading.typed(file, a)) for a in answers]


def of_file(file: WorkbookFile) -> tuple[Recipe, str]:
    """The recipe of a file, and the digest of its questions. Raises InputError for a file that
    is no workbook of exercises, or one of another version."""
    text = file[KEY][exercise.FACTS] if KEY in file else None
    if text is None:
        raise InputError(
            "the file has no exercises; write some with ‘cellformer build NAME --exercise’"
        )
    try:
        facts = json.loads(str(text))
        version, digest = int(facts.pop("version")), str(facts.pop("digest"))
        ids = tuple(int(i) for i in facts.pop("ids"))
        n_tokens, lang = int(facts["n_tokens"]), str(facts["lang"])
        recipe = Recipe(str(facts["name"]), level(int(facts["level"])), ids, n_tokens, lang)
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError):
        raise InputError("someone changed the sheet Key of the file; use a new file") from None
    if version != VERSION:
        raise InputError(
            f"the file's exercises have version {version}, but this cellformer grades only version "
            f"{VERSION}; write new exercises with ‘cellformer build NAME --exercise’"
        )
    return recipe, digest
