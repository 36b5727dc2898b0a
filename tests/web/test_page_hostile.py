"""Hostile texts on a page in a browser: words, names, sentences, links and files, some 700.

Nothing of them is executed or asked for, the console has no error, and each is shown as what it is.
"""

import base64
import random
import re
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

import attacks
import pytest
from conftest import random_model
from in_node import call

from cellformer.engine import ModelSpec, WordList
from cellformer.engine.cells.expression import Area, Expression
from cellformer.engine.cells.texts import readable
from cellformer.engine.models.generate import passage
from cellformer.engine.text.tokenizer import shown
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.story import Story
from cellformer.exporters.file import xlsx
from cellformer.exporters.web.page import write

Given = list[Any]  # a way to give a text to a page, and the text
Attack = Callable[..., dict[str, Any]]

LONGEST = 300  # characters of what a page tells
REPEATED = 40  # of a text that it repeats
OPENED = " is opened · As built "  # after the name of a file that could be read
AT_ONCE = 10  # words in a sentence
N_SHEETS = 12
TITLE = "</title><script>hacked(0)</script>: <img src=x onerror=hacked(0)>"
NO_SHEET_NAME = str.maketrans("", "", "[]:*?/\\'")  # signs that a sheet's name may not have


def model_book(words: Sequence[str], n_tokens: int) -> Book:
    """The workbook of a small model with these words and a hostile title."""
    spec = ModelSpec(len(words), 4, n_tokens, n_layers=1, n_heads=1, d_head=2)
    model = replace(random_model(spec), vocabulary=WordList(tuple(words)))
    return model_workbook.build(TITLE, model, passage(model, [0, 1], n_tokens))


@pytest.fixture(scope="module")
def attack(chromium: str) -> Attack:
    """Gives texts to a page; what is then read. Nothing bad has happened."""

    def attacked(page: Path, given: Sequence[Given] = (), hash_: str = "") -> dict[str, Any]:
        found: dict[str, Any] = call("hostile.mjs", "attacked", chromium, str(page), given, hash_)
        assert found["bad"] == []
        for after in found["read"]:
            assert len(after["ledger"]) <= LONGEST, after["ledger"]
            assert readable(after["ledger"]) == after["ledger"]
        return found

    return attacked


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Book, Path]:
    """A small book and its page."""
    book = model_book(["a", "b", "<i>"], 4)
    path = tmp_path_factory.mktemp("hostile") / "page.html"
    write(book, path)
    return book, path


@pytest.mark.slow
def test_each_hostile_word_and_the_title_are_shown(attack: Attack, tmp_path: Path) -> None:
    words = attacks.words([*attacks.PLAIN, *islice(attacks.joined(0), 60)])
    spelt = shown(tuple(words))
    write(model_book(words, AT_ONCE), tmp_path / "page.html")
    told = [spelt[k : k + AT_ONCE] for k in range(0, len(words), AT_ONCE)]
    found = attack(tmp_path / "page.html", [["sentence", " ".join(ten)] for ten in told])
    assert found["begun"]["title"] == TITLE
    assert found["begun"]["shown"][0] == TITLE.replace(": ", "")
    for ten, after in zip(told, found["read"], strict=True):
        assert after["tokens"] == list(ten)
        assert {*after["ranks"]} <= {*spelt}


@pytest.mark.slow
def test_each_hostile_sentence_is_told(attack: Attack, small: tuple[Book, Path]) -> None:
    """Its first unknown word is named, hidden characters escaped; and the sentence is what was
    typed."""
    texts = [*attacks.PLAIN, *attacks.SPACED, *islice(attacks.joined(1), 30)]
    found = attack(small[1], [["sentence", text] for text in texts])
    for text, after in zip(texts, found["read"], strict=True):
        assert after["sentence"] == text.replace("\r\n", "\n")
        unknown = [word for word in text.split(" ") if word not in ("", "a", "b", "A", "B")]
        if unknown and unknown[0].isprintable() and len(unknown[0]) < REPEATED:
            assert after["ledger"].startswith(f"‘{unknown[0]}’ is not a word of this model"), text


def links(book: Book, state: str) -> list[str]:
    """Hostile links: whole, names of cells, values, versions, escapes. Each must be refused."""
    fingerprint = state.split("&")[1]
    texts = [*attacks.PLAIN, *islice(attacks.joined(2), 30)]
    draw = random.Random(3)
    own = f"v1&{fingerprint}"
    ways: tuple[Callable[[str], str], ...] = (
        lambda x: x,
        lambda x: f"v1&cellformer={x}&temperature=2",
        lambda x: f"{own}&{x}=1",
        lambda x: f"{own}&{x}[0,0]=1",
        lambda x: f"{own}&temperature=2&W_E[0,0]={x}x",
        lambda x: f"{own}&temperature={x}x&W_E[0,0]=2",
        lambda x: f"{state}&{x}",
    )
    found = [draw.choice(ways)(text) for text in texts]
    found += [f"{own}&W_E[0,0]=2&{part}" for part in ("W_E[0,0]=3", "W_E[9,9]=1", "W_E[-1,0]=1")]
    found += [f"{own}&W_E[0,0]=2&{part}" for part in ("W_E=%", "W_E=%ff", "W_E=1e999", "W_E=NaN")]
    found += [f"{own}&W_E=" + "1" * 200_000 + "x", "v1&" * 50_000, "v2&x", "v99999999999", "v1&&&"]
    found += [f"{own}&tokens[0,0]=99", f"{own}&logits[999999999,999999999]=1", f"{own}&W_E[0"]
    return [text.replace("#", "%23") for text in found if text.strip()]


@pytest.mark.slow
def test_each_hostile_link_is_refused_whole(attack: Attack, small: tuple[Book, Path]) -> None:
    """What stood before it stays, and one line tells what is wrong."""
    book, page = small
    (begun,) = attack(page, [["sentence", "b b a"]])["read"]
    state = begun["hash"].removeprefix("#")
    given = links(book, state)
    found = attack(page, [["link", text] for text in given], begun["hash"])
    assert found["begun"]["sentence"] == "b b a"
    for text, after in zip(given, found["read"], strict=True):
        assert after["hash"] == begun["hash"], text[:200]
        assert after["sentence"] == "b b a"
        assert any(x in after["ledger"] for x in ("link", "no state")), (
            text[:200],
            after["ledger"],
        )
        assert "As built" not in after["ledger"]


@pytest.mark.slow
def test_a_hostile_sentence_in_a_link_is_a_sentence(
    attack: Attack, small: tuple[Book, Path]
) -> None:
    (state,) = attack(small[1], [["sentence", "b"]])["read"]
    begin = state["hash"].rpartition("=")[0]
    texts = attacks.MARKUP
    given = [["link", f"{begin}=%27{quoted(text)}"] for text in texts]
    for text, after in zip(texts, attack(small[1], given)["read"], strict=True):
        assert after["sentence"] == text
        assert f"‘{text.split()[0][:10]}" in after["ledger"]


def quoted(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode())


def files(book: Book, folder: Path) -> list[bytes]:
    """Hostile files: none that is this page's workbook."""
    good = xlsx.write(book, folder / "good.xlsx").read_bytes()
    draw = random.Random(4)
    with zipfile.ZipFile(BytesIO(good)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    sheets = [name for name in parts if "sheet" in name and name.endswith(".xml")]
    bombs = [b"<!DOCTYPE a [<!ENTITY b 'c'>]><worksheet>&b;", b"<" * 100_000, b"<c>" * 100_000]
    bombs += [b"\0" * 1_000_000, b"<row r='" + b"9" * 50_000 + b"'>", b"\xff\xfe<\0a\0>\0"]
    found = [
        b"",
        b"\0",
        b"PK\x03\x04",
        b"PK\x05\x06" + b"\xff" * 18,
        b"<script>hacked(34)</script>",
    ]
    found += [good[: draw.randrange(len(good))] for _ in range(12)]
    found += [packed({}), packed({"__proto__": b"x"}), packed({"../../x": b"x", "<b>": b"x"})]
    for bomb in bombs:
        found += [
            packed(parts | dict.fromkeys(sheets, bomb)),
            packed({"xl/workbook.xml": bomb}),
        ]
    for name in draw.sample([*parts], 12):
        found.append(packed({key: data for key, data in parts.items() if key != name}))
    for _ in range(12):
        data = bytearray(good)
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        found.append(bytes(data))
    return found


def packed(parts: dict[str, bytes]) -> bytes:
    """A zip archive of these parts."""
    data = BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, held in parts.items():
            archive.writestr(name, held)
    return data.getvalue()


@pytest.mark.slow
def test_each_hostile_file_is_told(
    attack: Attack, small: tuple[Book, Path], tmp_path: Path
) -> None:
    """By its name, with what is wrong; or it is read, where a flipped bit does not matter."""
    book, page = small
    held = [base64.b64encode(text).decode() for text in files(book, tmp_path)]
    names = [f"{name}.xlsx" for name in (*attacks.MARKUP, *attacks.SIGNS)][: len(held)]
    found = attack(page, [["file", [*one]] for one in zip(names, held, strict=True)])["read"]
    for name, after in zip(names, found, strict=True):
        named = readable(name) if len(name) <= REPEATED else f"{name[: REPEATED - 1]}…"
        # A browser has no half characters in names.
        told = re.sub(r"\\ud[89a-f]..", "\ufffd", named)
        begins = tuple(f"{x}{end}" for x in (named, told) for end in (": ", OPENED))
        assert after["ledger"].startswith(begins), name
        assert after["hash"] == ""
    assert sum(OPENED in after["ledger"] for after in found) < len(found) / 3


# --- worksheets -----------------------------------------------------------------------------


def ended(cells: Area) -> Callable[[int, int], Expression]:
    """The formulas that put the end of a script behind texts."""
    return lambda i, j: cells[i, 0] & "</script>"


def worksheets() -> tuple[Book, list[str]]:
    """A book with hostile names of sheets, texts, labels and notes; and all of these."""
    texts = [readable(x) for x in (*attacks.MARKUP, *attacks.CODE)]
    w = Workbook(TITLE)
    names, told = list[str](), list[str]()
    for k, text in enumerate(texts[:N_SHEETS]):
        name = text.translate(NO_SHEET_NAME)[:28].strip() or "-"
        names.append(f"{name}{k}")
        ws = w.sheet(names[-1], text)
        some = texts[k::N_SHEETS]
        told += some
        ws.heading(text)
        typed = ws.typed(f"typed{k}", [[x] for x in some], some, [text], style="word")
        ws.computed(f"joined{k}", (len(some), 1), ended(typed), some)
    first = w["typed0"]
    suggestion = w.suggestion(texts[2], {first[0, 0]: texts[3]}, w["joined0"][0, 0])
    story = Story(TITLE, texts[0], texts[:3], texts[3:6], [suggestion] * 3)
    return w.done(story), [*names, *told]


@pytest.mark.slow
def test_each_hostile_name_and_cell_of_a_worksheet_is_shown(attack: Attack, tmp_path: Path) -> None:
    book, texts = worksheets()
    write(book, tmp_path / "page.html")
    found = attack(tmp_path / "page.html", [["sheet", k] for k in range(N_SHEETS + 1)])
    everything = {text for after in found["read"] for text in after["shown"]}
    assert [x for x in texts if x not in everything] == []
    assert [x for x in texts[N_SHEETS:] if f"{x}</script>" not in everything] == []
