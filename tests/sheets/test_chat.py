"""A conversation in a workbook: what is typed becomes the template's text, the answer is that of
the command, and it ends where a text ends."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

import chatting
import pytest
from conftest import CellAt, InIronCalc, libreoffice_after, recomputed_in_ironcalc

import cellformer as cf
from cellformer import names
from cellformer.engine import Evaluator
from cellformer.engine.models.choosing import Sampling
from cellformer.engine.models.generate import generate, passage
from cellformer.engine.text.chat import Chat
from cellformer.engine.text.detokenizing import held
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.checking.verify import read
from cellformer.exporters.compose.book import Book
from cellformer.exporters.edits import edited
from cellformer.exporters.file.xlsx import write
from cellformer.exporters.model.plan import Limits

pytestmark = pytest.mark.slow

ROOM = 8  # tokens of an answer
ASKED = "What of France?"
SAID = [
    {"chat.you": "of Italy?"},
    {"chat.you": "  Of\n It \n", "chat.system": "\n user "},
    {"chat.you": "Rome", "chat.system": ""},
]


@cache
def built(folder: Path, template: str) -> Book:
    at = folder / "model"
    if not at.exists():
        chatting.write(at, template)
    loaded = names.load(str(at), ASKED, system="")
    n_tokens = len(loaded.ids) + ROOM
    return loaded.built(n_tokens)


@pytest.fixture(scope="module")
def trims(tmp_path_factory) -> tuple[Book, Path]:
    folder = tmp_path_factory.mktemp("trims")
    book = built(folder, chatting.SHORT)
    return book, write(book, folder / "trims.xlsx")


def answers(book: Book, said: dict[str, str]) -> tuple[str, list[int], str]:
    """What the model reads, its ids with those of its answer, and the answer."""
    chat = Chat(book.passage.chat.template, said["chat.you"], said.get("chat.system", "kind"))
    vocabulary, n = book.model.vocabulary, len(book.passage.ids)
    ids = vocabulary.encode(chat.text, special=False)
    found = [step.token for step in generate(book.model, ids, n - len(ids))]
    told = found[: found.index(2)] if 2 in found else found
    return chat.text, [*ids, *found], held(vocabulary.decode(told))


def in_ironcalc(path: Path, typed: Sequence[dict[CellAt, str]], _: Path) -> Iterator[Callable]:
    sheet = recomputed_in_ironcalc(read(path), path.parent)
    for cells in typed:
        with sheet.typed(cells):
            yield lambda *cell: sheet[cell]


def in_libreoffice(path: Path, typed: Sequence[dict[CellAt, str]], to: Path) -> Iterator[Callable]:
    for file in libreoffice_after(path, typed, to / "typed"):
        yield lambda sheet, row, col, file=file: file[sheet][row, col]


@pytest.mark.parametrize(
    "recomputed", [in_ironcalc, pytest.param(in_libreoffice, marks=pytest.mark.office)]
)
def test_sheet_answers_as_the_command(recomputed, trims, tmp_path, request) -> None:
    if recomputed is in_libreoffice:
        request.getfixturevalue("libreoffice")
    book, path = trims
    typed = [{book.cell(name, 0, 0): text for name, text in said.items()} for said in SAID]
    for said, value in zip(SAID, recomputed(path, typed, tmp_path), strict=True):
        text, ids, answer = answers(book, said)
        assert value(*book.cell("sentence", 0, 0)) == text
        assert [value(*book.cell("tokens", t, 0)) for t in range(len(ids))] == ids
        assert (value(*book.cell("text.whole", 0, 0)) or "") == answer


def test_conversation_goes_on(trims) -> None:
    """With what the sheet says to type as earlier turns."""
    book, _ = trims
    chat, vocabulary = book.passage.chat, book.model.vocabulary
    answer = book.values["text.whole"][0, 0]
    live = cf.Evaluator(book.graph)
    live.set("chat.earlier", 0, 0, str(book.values["chat.so_far"][0, 0]))
    live.set("chat.you", 0, 0, "Italy")
    later = Chat(chat.template, "Italy", "", ((ASKED, answer),))
    assert live["sentence"][0, 0] == later.text
    assert vocabulary.encode(later.text, special=False)


def test_sheet_ends_where_generation_ends(tmp_path) -> None:
    """Blank after an end-of-text token; a text that has it is no end."""
    model = cf.load(chatting.write(tmp_path / "model"))
    how, ids = Sampling(1.5, min_p=0.01), model.vocabulary.encode("Rome and<|im_end|>Paris")
    n = len(ids) + ROOM
    seed = next(
        seed
        for seed in range(999)
        if 2 in passage(model, ids, n, how, seed).ids[len(ids) + 2 : n - 2]
    )
    book = cf.build(model, ids=ids, n_tokens=n, sampling=how, seed=seed)
    tokens = book.passage.ids
    end = tokens.index(2, len(ids))
    assert book.values["prompt.ended"][:, 0].tolist() == [0] * (end + 1) + [1] * (n - end - 1)
    assert book.values["text.whole"][0, 0] == held(model.vocabulary.decode(tokens[:end]))
    words = book.shown["play.word"].block.area
    shown = [str(word or "") for word in book.clean(words)[0]]
    assert all(shown[: end + 1]) and not any(shown[end + 1 :])
    ironcalc = InIronCalc(write(book, tmp_path / "ends.xlsx"))
    ironcalc.model.evaluate()
    assert [ironcalc[book.cell("prompt.ended", t, 0)] for t in (end, end + 1)] == [0, 1]


def test_edits_are_read_back(trims, tmp_path) -> None:
    book, path = trims
    found = cf.read(path)
    assert not found.inputs and found.book.passage.chat == book.passage.chat
    assert isinstance(found, edited.Edited)


def test_large_vocabulary_answers_token_by_token(tmp_path) -> None:
    """Where one token alone is ranked, the answer so far is typed, and the next one shown with
    it."""
    loaded = names.load(str(chatting.write(tmp_path / "model", chatting.SHORT)), ASKED, system="")
    words = passage(loaded.model, loaded.ids, len(loaded.ids) + 4, chat=loaded.chat)
    book = model_workbook.build("many", loaded.model, words, limits=Limits(words=100))
    sheet = recomputed_in_ironcalc(read(write(book, tmp_path / "many.xlsx")), tmp_path)
    said, begun = SAID[0], "the capital"
    ids = loaded.model.vocabulary.encode(Chat(loaded.chat.template, said["chat.you"]).text, False)
    ids += loaded.model.vocabulary.encode(begun, False)
    following = next(generate(loaded.model, ids, 1)).token
    typed = {book.cell(name, 0, 0): text for name, text in (said | {"chat.begun": begun}).items()}
    with sheet.typed(typed):
        assert [sheet[book.cell("tokens", t, 0)] for t in range(len(ids))] == ids
        assert sheet[_shown(book, "play.ranked.id")] == following
        told = str(sheet[_shown(book, "play.text")])
        assert told.startswith(begun) and len(told) > len(begun)


def test_ids_typed_after_the_prompt_go_on_as_generate(tmp_path) -> None:
    """Ids are what the model said, whatever a tokenizer makes of their text."""
    loaded = names.load(str(chatting.write(tmp_path / "model", chatting.SHORT)), ASKED, system="")
    n, chat = len(loaded.ids), loaded.chat
    words = passage(loaded.model, loaded.ids, n + ROOM, chat=chat)
    book = model_workbook.build("many", loaded.model, words, limits=Limits(words=100))
    said = [step.token for step in generate(loaded.model, loaded.ids, ROOM)]
    assert list(loaded.model.vocabulary.encode(loaded.model.vocabulary.decode(said))) != said
    live = Evaluator(book.graph)
    for k, token in enumerate(said):
        assert live["logits"][0].argmax() == token
        live.set("prompt.pick", n + k, 0, float(token))


def _shown(book: Book, name: str) -> CellAt:
    sheet, rect = book.locate(book.shown[name].block.area)
    return sheet, rect.top, rect.left
