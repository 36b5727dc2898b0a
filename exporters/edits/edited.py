"""Reading an edited and saved workbook: its differences from the workbook as built.

The book is built again (a model's from the workbook's own Source sheet, one of the gallery by its
name, others from the file's own tables, see `rebuilding`), and every cell of the file is compared
with it (see `differences`).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from cellformer.engine import InputError, Model
from cellformer.engine.cells.language import ENGLISH, Language, codes, language, speaking
from cellformer.engine.cells.name import ENCODER
from cellformer.engine.models.prompt_status import typed_source
from cellformer.exporters.assemble import start
from cellformer.exporters.assemble.answer_key import KEY
from cellformer.exporters.assemble.transformer import assemble
from cellformer.exporters.compose.book import START, Book
from cellformer.exporters.compose.story import Story
from cellformer.exporters.edits.differences import Edited as Edited
from cellformer.exporters.edits.differences import EditedCell as EditedCell
from cellformer.exporters.edits.differences import compared, of_inputs
from cellformer.exporters.file.reading import WorkbookFile
from cellformer.exporters.model import source
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.model.plan import MANY_WORDS, for_model

BLANK = Story("", "", [], [], [])
NO_MODEL = (
    "the workbook has no sheet Source: cellformer did not make this workbook, or the sheet was "
    "deleted; build the workbook again"
)


@dataclass(repr=False)
class EditedModel(Edited):
    """A model's workbook as built, and its changes."""

    book: ModelBook

    @property
    def model(self) -> Model:
        """The model as built."""
        return self.book.model

    @property
    def sentence(self) -> str:
        """The edited prompt: the typed sentence, with the words that are picked instead."""
        if "prompt.rest" in self.book.graph.blocks:
            return " ".join(self.words)
        if self.model.read:
            return typed_source(self.book.graph, self._live)
        return str(self._live["sentence"][0, 0])

    @property
    def source(self) -> list[int]:
        """The ids of the source sentence that an encoder-decoder reads."""
        n_source = int(self._live[f"{ENCODER}.n_prompt"][0, 0])
        return [int(i) for i in self._live[f"{ENCODER}.tokens"][:n_source, 0]]

    @property
    def words(self) -> list[str]:
        """The words of the prompt, typed or picked."""
        given = self._live["prompt.typed"][: int(self._live["n_prompt"][0, 0]), 0]
        return [word for word in given if word]

    @property
    def unknown(self) -> list[str]:
        """The words of the prompt that are not in the vocabulary; its first word is used
        instead."""
        vocabulary = self._live["vocabulary"][:, 0]
        return [word for word in self.words if word not in vocabulary]

    @property
    def ids(self) -> list[int]:
        """The prompt's token ids."""
        return [int(i) for i in self._live["tokens"][: int(self._live["n_prompt"][0, 0]), 0]]

    @property
    def position(self) -> int:
        """The token whose next word is ranked."""
        return int(self._live["position"][0, 0])


def read(
    path: str | Path,
    find: Callable[[str], Model] | None = None,
    worksheets: Callable[[str], Book | None] | None = None,
) -> Edited:
    """The changes in a workbook.

    If the file does not contain its model, `find` loads the model by the workbook's title; a
    workbook without a model is built by `worksheets`, by name, or rebuilt from the file. Raises
    InputError for a file that cellformer did not make, one of exercises, one whose sheets were
    taken apart, and a weight without a number.
    """
    file = WorkbookFile(path)
    try:
        if KEY in file:
            raise InputError(
                "this is a workbook of exercises; grade it with ‘cellformer grade FILE’"
            )
        with speaking(language_of(file)):
            if source.SHEET in file:
                return compared(EditedModel(_rebuild(file, find)), file)
            return _of_worksheets(file, worksheets)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def read_model(path: str | Path, find: Callable[[str], Model] | None = None) -> EditedModel:
    """The changes in a model's workbook. Raises InputError as `read` does, and for a workbook
    without a transformer."""
    if not {source.SHEET, KEY} & {*WorkbookFile(path)}:
        raise InputError(f"{path}: {NO_MODEL}")
    found = read(path, find, None)
    assert isinstance(found, EditedModel)
    return found


def language_of(file: WorkbookFile) -> Language:
    """The language of a workbook's texts: Source names it, or else a heading on Start shows it."""
    if source.SHEET in file:
        return language(source.read(file[source.SHEET].column(0)).language)
    heading = file[START][start.TOP, 0] if START in file else None
    return next((x for x in map(language, codes()) if x.of(start.ABOUT) == heading), ENGLISH)


def name_of(file: WorkbookFile) -> str:
    """The name of a workbook without a model, from its Start; "" for others."""
    plain = START in file and source.SHEET not in file
    title = file[START][0, 0] if plain else None
    return title.partition(":")[0] if isinstance(title, str) else ""


def held(file: WorkbookFile, book: Book, name: str) -> np.ndarray:
    """The values of a block in a file: float64 [rows, columns]. Raises InputError if one is not a
    number."""
    place = book.places[name]
    found, values = np.empty(place.block.shape), file[place.sheet].values
    for i, j in place.block.whole.cells():
        value = values.get(place.cell(i, j))
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(
                f"{name}[{i},{j}] contains {value!r}, which is not a number; train the model again"
            )
        found[i, j] = value
    return found


def _of_worksheets(file: WorkbookFile, worksheets: Callable[[str], Book | None] | None) -> Edited:
    """The changes in a workbook without a model: of the gallery by the name on Start, or else
    rebuilt from the file itself."""
    from cellformer.exporters.edits import rebuilding  # only such a file waits for its parser

    name = name_of(file)
    book = worksheets(name) if worksheets is not None and name else None
    if isinstance(book, ModelBook):
        raise InputError(rebuilding.NOT_OURS)
    if book is not None and not (file.names and file.names.keys().isdisjoint(book.places)):
        return compared(Edited(book), file)
    return of_inputs(Edited(rebuilding.rebuilt(file)), file)


def _rebuild(file: WorkbookFile, find: Callable[[str], Model] | None) -> ModelBook:
    """A model's book as it was built."""
    facts = source.read(file[source.SHEET].column(0))
    model = facts.model
    if model is None:
        if find is None:
            raise InputError("the workbook does not contain its model; name the model with --model")
        model = find(facts.title)
        if model.read:
            model = model.reading(facts.source)
    if facts.part or not for_model(model).read_back:
        raise InputError(
            "cellformer cannot read edits from a workbook that shows only a part of its model, "
            f"or has more than {MANY_WORDS:,} words. Make the edits with `run --set`"
        )
    if facts.chosen and max(facts.chosen.named) >= len(model.vocabulary.texts):
        raise InputError(
            "the sheet Source of this workbook was changed; copy the sheet from the workbook as "
            "built"
        )
    plan = for_model(model, by_hand=facts.headings is not None)
    plan = replace(plan, studies=facts.studies(model), chat=facts.passage.chat is not None)
    return assemble(
        facts.title, model, facts.passage, BLANK, (), facts.headings, None, plan, facts.chosen
    )
