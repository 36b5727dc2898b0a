"""Tokenizers, and how a token is shown."""

import json
from pathlib import Path

import pytest
from conftest import random_model, saved
from on_play import PROMPT_ROW, WORDS_ROW

from cellformer.engine import InputError, ModelSpec, WordList
from cellformer.engine.models import checkpoint
from cellformer.engine.models.generate import passage
from cellformer.engine.text.tokenizer import (
    LONGEST,
    Characters,
    IdsOnly,
    load_tokenizer,
    show,
    shown,
    stream,
)
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.file.reading import WorkbookFile
from cellformer.exporters.file.xlsx import write
from cellformer.exporters.model.block_sheets import PROMPT_COL

SHOWN = {
    "the": "the",
    " the": "␣the",
    "a\nb": "a\\nb",
    "\t": "\\t",
    "\x00": "\\x00",
    "\x7f": "\\x7f",
    "\\n": "\\\\n",
    "␣": "\\␣",
    "=1+1": "=1+1",
    "😀": "😀",
    "\ud800": "\\ud800",
    "\u200b": "\\u200b",
    "_x0041_": "_\\x0041_",
    "": "\\empty",
    "x" * 99: "x" * 39 + "…",
    "x" * 37 + "_x0041_": "x" * 37 + "_\\…",
}


@pytest.mark.parametrize(("text", "expected"), SHOWN.items())
def test_token_is_shown_readably(text: str, expected: str) -> None:
    assert show(text) == expected


def test_token_of_ten_million_characters_is_cut() -> None:
    assert show("\n" * 10_000_000) == "\\n" * 19 + "\\…"
    assert shown(("é" * 10_000_000, "é" * 9_999_999)) == tuple(
        "é" * 36 + f"…\\#{i}" for i in (0, 1)
    )


def test_no_two_tokens_are_shown_alike() -> None:
    texts = ("x" * 99, "x" * 98, " a", "␣a", "a", "\\x00", "\x00", "x" * 39 + "…", "x" * 28)
    texts += ("b", "b", "b\\#9", "b\\", "b\\", "\\" * 50, "\\" * 51, "😀" * 30, "😀" * 31)
    names = shown(texts)
    assert len(set(names)) == len(texts)
    assert names[9:11] == ("b\\#9", "b\\#10")
    assert not any(" " in name for name in names)
    assert all(len(name.encode("utf-16-le")) <= 2 * LONGEST for name in names)


def test_words_and_characters() -> None:
    assert WordList(("the", "cat")).encode(" the  cat the") == [0, 1, 0]
    assert WordList(("The", "the", "Cat")).encode("the cAT The") == [1, 2, 0]
    with pytest.raises(InputError, match="'THE' is not in the vocabulary"):
        WordList(("The", "the")).encode("THE")
    assert Characters(("a", " ", "b")).encode("a b") == [0, 1, 2]
    with pytest.raises(InputError, match="nearest: cat"):
        WordList(("the", "cat")).encode("catt")
    with pytest.raises(InputError, match="twice"):
        WordList(("a", "a"))


def bytes_to_unicode() -> dict[int, str]:
    """GPT-2's byte-level alphabet."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in printable]
    return {b: chr(b) for b in printable} | {b: chr(256 + k) for k, b in enumerate(others)}


EXTRA = ("=1+1", "+1", "-x", "@cmd", '"&<', " the", "😀")


@pytest.fixture(scope="module")
def byte_level(tmp_path_factory) -> Path:
    """A folder with GPT-2's alphabet and some awkward tokens, and a model of that size."""
    alphabet = bytes_to_unicode()
    tokens = list(alphabet.values())
    tokens += ["".join(alphabet[b] for b in text.encode()) for text in EXTRA]
    folder = tmp_path_factory.mktemp("byte-level") / "model"
    spec = ModelSpec(d_vocab=len(tokens), d_model=2, n_ctx=9, n_layers=1, n_heads=1, d_head=2)
    checkpoint.save(random_model(spec), folder)
    (folder / "words.json").unlink()
    (folder / "vocab.json").write_text(json.dumps({t: i for i, t in enumerate(tokens)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    return folder


@pytest.fixture(scope="module")
def awkward(byte_level) -> tuple[Path, tuple[str, ...], list[int]]:
    """A workbook of that model, its texts, and the prompt's ids."""
    model = checkpoint.load(byte_level)
    texts = model.vocabulary.texts
    assert texts[256:] == EXTRA and "\t" in texts and "\x00" in texts
    ids = [texts.index(t) for t in ("=", "+", "-", "@", "\t", "\x00", '"', "😀", "=1+1")]
    book = model_workbook.build("bytes", model, passage(model, ids))
    return write(book, byte_level.parent / "bytes.xlsx"), texts, ids


@pytest.mark.slow
@pytest.mark.parametrize("saved_by", ["us", pytest.param("libreoffice", marks=pytest.mark.office)])
def test_byte_alphabet_in_a_workbook(saved_by: str, awkward, tmp_path) -> None:
    path, texts, ids = awkward
    if saved_by == "libreoffice":
        (path,) = saved({"bytes": path}, tmp_path / "out").values()
    play = WorkbookFile(path)["Play"]
    prompt = [play[PROMPT_ROW, PROMPT_COL + k] for k in range(len(ids))]
    assert prompt == [show(texts[i]) for i in ids]
    words = [play[WORDS_ROW + v, 1] for v in range(len(texts))]
    assert words == list(shown(texts))
    assert {type(text) for text in (*prompt, *words)} == {str}


def test_a_library_s_tokenizer(byte_level, tmp_path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = Tokenizer(models.WordLevel({"a": 0, "b": 1, "?": 2}, unk_token="?"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.save(str(tmp_path / "tokenizer.json"))
    tokenizer = load_tokenizer(tmp_path, 5)
    assert tokenizer.encode("b a z") == [1, 0, 2]
    assert tokenizer.texts == ("a", "b", "?", "<3>", "<4>")
    with pytest.raises(InputError, match="Unicode"):
        tokenizer.encode("\udcff")
    with pytest.raises(InputError, match="--ids"):
        load_tokenizer(byte_level.parent / "nothing", 2).encode("a")


def test_text_of_ids() -> None:
    words, characters = WordList(("the", "cat")), Characters(("a", " ", "b"))
    assert words.decode([0, 1, 0]) == "the cat the" == "".join(stream(words, [0, 1, 0]))
    assert characters.decode([0, 1, 2]) == "a b" == "".join(stream(characters, [0, 1, 2]))
    assert IdsOnly(9).decode([7, 0]) == "7 0" == "".join(stream(IdsOnly(9), [7, 0]))
    assert list(stream(words, [])) == []
