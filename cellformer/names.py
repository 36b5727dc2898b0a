"""Resolving names: a workbook of the gallery, or a model in one of the `formats`.

The command, `cellformer.load` and `cellformer.build` all resolve their names here.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellformer import budget, workbooks
from cellformer.engine.cells import language
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.files import possible
from cellformer.engine.cells.graph import Graph
from cellformer.engine.learning import corpus
from cellformer.engine.models import adapter as adapters
from cellformer.engine.models import checkpoint, encoding, formats
from cellformer.engine.models.generate import Passage, padded, passage
from cellformer.engine.models.model import Model
from cellformer.engine.models.spec import TwoStackSpec
from cellformer.engine.studies import scores, telling
from cellformer.engine.studies.addition import Studies
from cellformer.engine.studies.folding import folded
from cellformer.engine.studies.forecast import forecast
from cellformer.engine.studies.study import Asked
from cellformer.engine.text import chat_ids, sentence_lists, tokenizing
from cellformer.engine.text.chat import Chat
from cellformer.engine.text.tokenizer import IdsOnly, Library, mask_of, shown
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.compose.book import Book, OnLayout
from cellformer.exporters.file.reading import WORKBOOK, WorkbookFile, present
from cellformer.exporters.model import source
from cellformer.exporters.model.plan import for_model
from cellformer.given import Given

if TYPE_CHECKING:
    from cellformer.exporters.edits.edited import Edited

ID = r"\d{1,18}"  # no id has more digits
COLUMNS = 16  # tokens of a checkpoint's workbook, prompt and continuation, if it stays small
ROOM_TO_ANSWER = 16  # the same behind what is said to a model that chats
FEW_COLUMNS = 8  # the same with a large vocabulary: room for another sentence
MANY_FORMULAS = 250_000  # above it, there are columns for the tokens of the prompt only


@dataclass(frozen=True)
class Loaded:
    """A model, the ids of a prompt, and the default number of columns of its workbook."""

    name: str
    model: Model
    ids: list[int]
    n_tokens: int
    second: list[int] = field(default_factory=list)  # the other sentence, for sentence encoders
    chat: Chat | None = None  # the conversation that the ids are

    @property
    def graph(self) -> Graph:
        """The graph of the prompt; for a sentence encoder, of both sentences."""
        if not self.second:
            return self.model.graph(self.ids)
        return encoding.graph(self.model, passage(self.model, self.ids, second=self.second))

    def built(self, n_tokens: int | None = None) -> Book:
        """The workbook of the prompt, for addresses of its cells."""
        n_tokens = n_tokens or self.n_tokens
        words = passage(self.model, self.ids, n_tokens, second=self.second, chat=self.chat)
        return self.book(self.model, words)

    @property
    def place_of_answer(self) -> int:
        """The row of the token whose words are ranked: an encoder's mask, or else the last
        token."""
        return self.model.place_of_answer(self.ids) if self.model.spec.gives != "next word" else -1

    @property
    def texts(self) -> list[str]:
        """The texts of the prompt's tokens."""
        return [shown(self.model.vocabulary.texts)[i] for i in self.ids]

    def place(self, text: str | int | None, option: str) -> int:
        """The position of a token, by its word or its number (default: the row that is ranked).
        Raises InputError."""
        if text is None:
            return self.place_of_answer % len(self.ids)
        return scores.place(self.texts, text, option)

    def asked(self, force: bool, special: bool = True, **asked: Any) -> Asked:
        """The prompt with a question, for a study. Raises InputError for a model that ranks no
        words."""
        needs_words(self)
        allow = partial(budget.of_passes, self.model, len(self.ids), force)
        encode = partial(text_ids, self.model, special=special)
        return Asked(
            self.name, self.model, self.ids, self.second, **asked, allow=allow, encode=encode
        )

    def book(
        self,
        model: Model,
        passage: Passage,
        live: Sequence[str] = (),
        studies: Studies | None = None,
        on_layout: OnLayout | None = None,
        is_page: bool = False,
    ) -> Book:
        """The workbook of a passage, with what `studies` add. `live` names the parts that recompute
        (default: all). `on_layout` is called with it before its values are computed; `is_page`:
        it becomes a page."""
        if live or studies or is_model(self.name):
            given = live, studies, on_layout
            return model_workbook.build(title(self.name), model, passage, *given, is_page=is_page)
        found: Book = workbooks.find(self.name).build(model, passage)
        return found


def load(
    name: str,
    prompt: str | None = None,
    ids: str | None = None,
    special: bool = True,
    live: Sequence[str] = (),
    second: str | None = None,
    force: bool = False,
    adapter: Path | None = None,
    system: str | None = None,
) -> Loaded:
    """Load a workbook's model, or a checkpoint, with a prompt (default: the workbook's own).

    With `special`, the tokenizer adds its special tokens to a checkpoint's prompt. `live` names the
    parts that recompute (default: all); `second` is the sentence that a sentence encoder compares
    the prompt with; `adapter` is the folder of a LoRA adapter for the model. With a `system` text,
    even an empty one, the prompt is what a person says, and is written as the model's chat template
    does. Raises InputError for an unknown name, an invalid prompt, and one beyond the budget unless
    `force`.
    """
    if is_workbook(name):
        check_keeps(name, adapter=adapter, second=second, live=live)
        held = _of_file(name)
        given = _ids(held.model, prompt, ids, special)
        if given is not None and held.model.read:  # it is the source; the answer begins as before
            return replace(held, model=held.model.reading(given))
        return replace(held, ids=held.ids if given is None else given)
    found = model(name, adapter)
    if system is not None:
        return conversation(name, found, prompt, ids, system, live, force)
    if second is not None and found.spec.gives != "sentence":
        raise InputError(f"{name} is not a sentence encoder; leave out --second")
    given = _ids(found, prompt, ids, special, "" if is_model(name) else name)
    if is_model(name):
        given = prompt_ids(found, None, special) if given is None else given
        if isinstance(found.spec, TwoStackSpec):  # it is the source; then begins an answer
            given, found = [found.spec.start], found.reading(given)
        found.check_ids(given)
        other = [] if second is None else prompt_ids(found, second, special)
        longest = max(len(given), len(other))
        budget.of_passes(found, longest, force)
        return Loaded(name, found, given, _columns(found, longest, live), other)
    module = workbooks.find(name)
    if given is None and is_worksheet(name):
        raise InputError(
            f"{name} has no default prompt; give a text with --prompt, or token ids with --ids"
        )
    if given is None:
        given = found.vocabulary.encode(module.PROMPT)
    return Loaded(name, found, given, max(len(given), getattr(module, "N_TOKENS", 0)))


ROOM_TO_CHAT = 40  # tokens behind the first message, on a page
GREETING = "Hello"  # what is said where nothing else is


def conversation(
    name: str,
    model: Model,
    prompt: str | None,
    ids: str | None,
    system: str,
    live: Sequence[str],
    force: bool,
) -> Loaded:
    """A conversation with one turn. Raises InputError for a model without a chat template."""
    template = model.vocabulary.chat if isinstance(model.vocabulary, Library) else None
    if template is None:
        raise InputError(
            f"{name} has no chat template, so it cannot hold a conversation; leave out --chat"
        )
    if ids is not None:
        raise InputError("--chat needs a text; give the text with --prompt, and leave out --ids")
    chat = Chat(template, GREETING if prompt is None else prompt, system)
    found = model.vocabulary.encode(chat.text, special=False)
    model.check_ids(found)
    budget.of_passes(model, len(found), force)
    room = ROOM_TO_ANSWER if for_model(model).ranks_every_token else FEW_COLUMNS
    n_tokens = min(len(found) + room, model.spec.n_ctx)
    return Loaded(name, model, found, len(found) if live else n_tokens, chat=chat)


def completes(loaded: Loaded) -> bool:
    """Whether a large model without a prompt of its own can complete a sentence on its page."""
    is_typed = is_model(loaded.name) and not tokenizing.refusal(loaded.model.vocabulary)
    one_token = for_model(loaded.model).readout.one_token
    return is_typed and one_token and not loaded.chat and telling.tells(loaded.model)


def on_page(loaded: Loaded, n_tokens: int | None) -> tuple[Loaded, Passage]:
    """A conversation for a page, which joins ids and has room for further turns, and its passage.
    Raises InputError for a template or a tokenizer that ids cannot follow."""
    assert loaded.chat is not None
    if reason := tokenizing.refusal(loaded.model.vocabulary):
        raise InputError(f"{reason}, so a page cannot chat; use `cellformer generate --chat`")
    chat = replace(loaded.chat, you=loaded.chat.you.strip(), by_ids=True)
    encode = partial(loaded.model.vocabulary.encode, special=False)
    found = chat_ids.of(encode, chat)
    ids = [*found.head, *encode(chat.you), *found.closing]
    n = min(n_tokens or len(ids) + ROOM_TO_CHAT, loaded.model.spec.n_ctx)
    if n < len(ids):
        raise InputError(
            f"the message and the chat template have {len(ids)} tokens, but the page has room for "
            f"only {n}; write a shorter message, or give a larger --tokens"
        )
    made = padded(loaded.model, ids, n, chat=chat)
    return replace(loaded, ids=ids, n_tokens=n, chat=chat), made


def model(name: str, adapter: Path | None = None) -> Model:
    """The model of a workbook, or a checkpoint, with the LoRA adapter in a folder if there is one.
    The model of a workbook's file has the edits in it. Raises InputError.

    Raises InputError if the name has no model, and for one with an adapter beside it that is not
    asked for.
    """
    if isinstance(name, Given):
        return name.model
    if is_workbook(name):
        return _of_file(name).model
    if is_model(name):
        base = checkpoint.load(name)
        if adapter is None and adapters.is_adapter(Path(name)):
            raise InputError(
                f"{name} holds a model and an adapter. To build, run or generate with both, add "
                f"--adapter with this folder. To use the model alone, move {adapters.CONFIG} away"
            )
        return base if adapter is None else checkpoint.with_adapter(base, adapter, name)
    if adapter is not None:
        raise InputError(
            f"{name} is not a checkpoint, but --adapter needs a checkpoint; name the model's "
            "file or folder"
        )
    module = workbooks.find(name)
    if is_worksheet(name) and not hasattr(module, "transformer"):
        raise InputError(
            f"{name} has no model, but this command needs a model; use `cellformer build {name}` "
            "instead"
        )
    found: Model = module.transformer() if is_worksheet(name) else module.model()
    return found


def is_model(name: str) -> bool:
    """Whether a name is a model's in some format. A name of the gallery is not, unless a file
    has this name; the gallery therefore does without the formats' libraries."""
    if isinstance(name, Given):
        return True
    of_gallery = name in workbooks.names() and not possible(name).exists()
    return not of_gallery and formats.means(name)


def is_workbook(name: str) -> bool:
    """Whether a name is a workbook file's."""
    return possible(name).suffix.lower() == WORKBOOK


def beside(name: str) -> Path:
    """The workbook's file that a name without its ending may mean."""
    return possible(f"{name}{WORKBOOK}")


def opened(name: str, model: str | None = None) -> "Edited":
    """A workbook with its edits, from a file, or from the gallery without edits. `model` is the
    original model, if the file does not hold it. Raises InputError."""
    from cellformer.exporters.edits import edited  # for which little else waits

    if is_workbook(name) or (name not in workbooks.names() and beside(name).is_file()):
        return edited.read(present(name), finder(model), of_gallery)
    if is_model(name):
        raise InputError(
            f"{name} is not a workbook; build a workbook with `cellformer build`, and name its "
            ".xlsx file"
        )
    return edited.Edited(book(name))


def finder(name: str | None) -> Callable[[str], Model]:
    """A function that loads the model of a workbook that does not hold it."""

    def find(title: str) -> Model:
        if name is None and title not in workbooks.names():
            raise InputError(
                "the workbook does not contain its model; name the model with --model (in diff, "
                "explain and import)"
            )
        return model(name or title)

    return find


def _of_file(name: str) -> Loaded:
    """The model of a workbook's file, with its edits, and its prompt. Raises InputError for edits
    that no model holds."""
    from cellformer.exporters.edits.edited import EditedModel

    found = opened(name)
    if not isinstance(found, EditedModel):
        raise InputError(
            f"{name} has no model, but this command needs a model; use `run`, `trace`, `sweep` "
            "or `explain`"
        )
    if found.unheld:
        cell = found.unheld[0].where
        raise InputError(
            f"{name}: a model cannot store the change in {cell}; undo the change, or use `run`, "
            "`trace`, `sweep` or `explain`"
        )
    blocks = found.model.graph([0]).blocks
    change = {cell: float(value) for cell, value in found.values.items() if cell[0] in blocks}
    made = folded(found.model, change) if change else found.model
    made = made.reading(found.source) if made.read else made
    return Loaded(name, made, found.ids, len(found.book.passage.ids))


def given_options(asked: Mapping[str, object]) -> Iterator[str]:
    """The options that somebody gave, as people type them."""
    yield from (
        f"--{option.strip('_').replace('_', '-')}"
        for option, given in asked.items()
        if given is not None and given is not False and given != ()
    )


def check_keeps(name: str, **asked: object) -> None:
    """Raise InputError for an option that a workbook's file does not take."""
    for option in given_options(asked):
        raise InputError(f"{name} is computed with its saved settings; leave out {option}")


def graph(
    name: str,
    prompt: str | None = None,
    ids: str | None = None,
    special: bool = True,
    second: str | None = None,
    force: bool = False,
) -> Graph:
    """The graph of a workbook's tables, or of a model's forward pass over a prompt."""
    if is_workbook(name):
        check_keeps(name, prompt=prompt, ids=ids, second=second, no_special=not special)
        return opened(name).book.graph
    if not is_worksheet(name):
        return load(name, prompt, ids, special, second=second, force=force).graph
    check_takes(name, prompt=prompt, ids=ids, second=second, no_special=not special)
    return book(name).graph


def check_takes(name: str, **asked: object) -> None:
    """Raise InputError for an option that a workbook without a model cannot take."""
    for option in given_options(asked):
        raise InputError(f"{name} has no model, so {option} does not work; leave this option out")


def of_gallery(name: str) -> Book | None:
    """A workbook of the gallery, with its default prompt, or with a further part, `adder-proof`;
    None for another name."""
    if name in workbooks.names():
        return book(name)
    plain, _, part = name.rpartition("-")
    return with_part(plain, part) if plain in workbooks.names() and part in parts(plain) else None


def parts(name: str) -> Sequence[str]:
    """The further parts that a workbook of the gallery can be built with."""
    found: Sequence[str] = getattr(workbooks.find(name), "PARTS", ())
    return found


def with_part(name: str, part: str) -> Book:
    """A workbook of the gallery with a further part. Raises InputError if it has no such part."""
    if is_workbook(name) or is_model(name) or part not in parts(name):
        able = [each for each in workbooks.names() if part in parts(each)]
        raise InputError(f"{name} has no {part}; --{part} works only with {', '.join(able)}")
    found: Book = workbooks.find(name).book(**{part: True})
    return found


def book(name: str) -> Book:
    """A workbook of the gallery, with its default prompt, or of a file, with the numbers that are
    saved in it."""
    if is_workbook(name) and is_worksheet(name):
        return _saved(name)
    if is_worksheet(name):
        found: Book = workbooks.find(name).book()
        return found
    return load(name).built()


def _saved(name: str) -> Book:
    """The book of a file of worksheets, with the numbers that were typed as if it had been built
    with them. Raises InputError for changed formulas."""
    from cellformer.exporters.edits import rebuilding  # only such a file waits for its parser

    found = opened(name)
    if not found.values:
        return found.book
    if found.overwritten:
        cell = found.overwritten[0].where
        raise InputError(
            f"{name}: something was typed over the formula in {cell}; undo that change"
        )
    live = found.live()
    inputs = {x.name: live[x.name] for x in found.book.graph if not x.computed}
    with language.speaking(found.book.language):
        return rebuilding.rebuilt(WorkbookFile(name), inputs)


def is_worksheet(name: str) -> bool:
    """Whether a workbook of the gallery, or of a file, is made of worksheets, without a prompt."""
    if is_workbook(name):
        from cellformer.exporters.assemble.answer_key import KEY

        file = WorkbookFile(name)
        return source.SHEET not in file and KEY not in file
    return not is_model(name) and hasattr(workbooks.find(name), "book")


def title(name: str) -> str:
    """The default name of a workbook's file, without ending: for a path, its last part."""
    if is_workbook(name):
        return Path(name).stem
    return formats.title(name) if is_model(name) else name


def _columns(model: Model, n_prompt: int, live: Sequence[str]) -> int:
    """The default number of columns: room to continue the prompt, if the workbook stays small."""
    plan, n_tokens = for_model(model, live), max(n_prompt, min(COLUMNS, model.spec.n_ctx))
    few = max(n_prompt, min(FEW_COLUMNS, model.spec.n_ctx))
    if plan.answers and (plan.sources or not tokenizing.refusal(model.vocabulary)):
        return few
    if not plan.generates and plan.gives == "next word":
        return n_prompt
    small = forecast(model, n_tokens, plan.readout).n_formulas <= MANY_FORMULAS
    return n_tokens if small else few if plan.sources else n_prompt


def sentences(
    model: Model, lists: Path | Mapping[str, Sequence[str]], special: bool = True
) -> sentence_lists.Lists:
    """Two lists of sentences, of a file or as texts, as the model's ids. Raises InputError."""
    encode = partial(text_ids, model, special=special)
    if isinstance(lists, Path):
        return sentence_lists.read(lists, encode)
    return sentence_lists.of_texts(lists, encode)


def lines(model: Model, path: Path, special: bool = True) -> list[list[int]]:
    """The ids of a file's texts, one a line. Raises InputError."""
    encode = partial(text_ids, model, special=special)
    texts = enumerate(map(str.strip, corpus.read(path).splitlines()), 1)
    return [
        sentence_lists.encoded(text, encode, f"{path}, line {number}")
        for number, text in texts
        if text
    ]


def text_ids(model: Model, text: str, special: bool = True, what: str = "the text") -> list[int]:
    """The ids of a text beside the prompt; where the model has no tokenizer, it is a list of them,
    `5,6` or `5 6`. Raises InputError."""
    if isinstance(model.vocabulary, IdsOnly):
        ids = listed(re.sub(r"(?<=\d)\s+(?=\d)", ",", text), what)
    else:
        ids = prompt_ids(model, text, special)
    if not ids:
        raise InputError(f"{what} is empty; give at least one token")
    model.check_ids(ids)
    return ids


def prompt_ids(model: Model, prompt: str | None, special: bool = True) -> list[int]:
    """The ids of a prompt, with the tokenizer's special tokens if `special`. Raises InputError.

    The default is the begin-of-text token, or an encoder's mask.
    """
    if prompt is not None:
        return model.reader.encode(prompt, special)
    if model.spec.gives != "next word" and not isinstance(model.vocabulary, IdsOnly):
        mask = mask_of(model.vocabulary) if model.spec.gives == "masked word" else None
        text = "" if mask is None else model.vocabulary.texts[mask]
        return model.vocabulary.encode(text, special)
    if model.vocabulary.begin is None or not special:
        raise InputError(
            "this model has no default prompt; give a text with --prompt, or token ids with --ids"
        )
    return [model.vocabulary.begin]


def needs_words(loaded: Loaded) -> None:
    """Raise InputError for a model that ranks no words."""
    if loaded.model.spec.gives == "sentence":
        raise InputError(
            f"{loaded.name} gives a vector for a sentence and predicts no words; compare two "
            "sentences with `cellformer run`, --prompt and --second"
        )


def _ids(
    model: Model, prompt: str | None, ids: str | None, special: bool, workbook: str = ""
) -> list[int] | None:
    """The ids that somebody gave. Raises InputError, with the form of a prompt if the workbook has
    one of its own."""
    if prompt is not None and ids is not None:
        raise InputError("--prompt and --ids cannot be combined; give only one of them")
    if ids is not None:
        return listed(ids)
    try:
        return None if prompt is None else prompt_ids(model, prompt, special)
    except InputError as error:
        form = getattr(workbooks.find(workbook), "FORM", None) if workbook else None
        raise (InputError(f"{error}; {form}") if form else error) from None


def listed(ids: str, option: str = "--ids") -> list[int]:
    """The ids of a list, `0,1,3`. Raises InputError for another text."""
    if not re.fullmatch(rf"\s*{ID}\s*(,\s*{ID}\s*)*", ids):
        raise InputError(f"{option} {ids!r} is not a list of token ids; write a list such as 0,1,3")
    return [int(i) for i in ids.split(",")]
