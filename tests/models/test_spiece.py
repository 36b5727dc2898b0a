"""spiece.model alone, held to transformers by golden files; what is refused."""

import json
import shutil
from pathlib import Path

import pytest
from conftest import GOLDEN

from cellformer.engine import InputError
from cellformer.engine.text.subwords import Library
from cellformer.engine.text.tokenizer import load_tokenizer

FOLDER = GOLDEN / "spiece"
KINDS = ("t5", "mt5", "albert")
N = 600  # rows of an embedding


def folder_of(kind: str, folder: Path, **said: object) -> Path:
    """A folder with spiece.model, and what tokenizer_config.json says."""
    shutil.copytree(FOLDER / kind, folder)
    (folder / "tokenizer_config.json").write_text(json.dumps(said))
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_ids_are_those_of_transformers(kind: str, tmp_path: Path) -> None:
    for n, row in enumerate(json.loads((FOLDER / kind / "ids.json").read_text())):
        tokenizer = load_tokenizer(folder_of(kind, tmp_path / f"{n}", **row["said"]), N)
        assert {text: tokenizer.encode(text) for text in row["ids"]} == row["ids"]


def test_a_saved_tokenizer_gives_the_same_ids(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(FOLDER / "t5", N)
    assert isinstance(tokenizer, Library)
    tokenizer.inner.save(str(tmp_path / "tokenizer.json"))
    again = load_tokenizer(tmp_path, N)
    for text in ("the value <extra_id_3> of", "  a b", "中文"):
        assert again.encode(text) == tokenizer.encode(text)
        assert again.decode(again.encode(text)) == tokenizer.decode(tokenizer.encode(text))


@pytest.mark.parametrize("kind", KINDS)
def test_special_tokens_stand_around_a_text(kind: str) -> None:
    tokenizer = load_tokenizer(FOLDER / kind, N)
    bare, whole = (tokenizer.encode("the value", special=on) for on in (False, True))
    before, after = ([2], [3]) if kind == "albert" else ([], [1])
    assert whole == [*before, *bare, *after]
    assert tokenizer.decode(whole) == "the value"


def test_another_class_is_refused_when_a_text_is_encoded(tmp_path: Path) -> None:
    folder = folder_of("t5", tmp_path / "t5", tokenizer_class="PegasusTokenizer")
    tokenizer = load_tokenizer(folder, N)
    assert tokenizer.decode([1, 2]) == "1 2"
    said = r"spiece\.model is the tokenizer of a Pegasus model.*; give token ids"
    with pytest.raises(InputError, match=said):
        tokenizer.encode("a")


def test_byte_pairs_are_refused(tmp_path: Path) -> None:
    folder = folder_of("t5", tmp_path / "t5")
    shutil.copy(GOLDEN / "sentencepiece.model", folder / "spiece.model")
    with pytest.raises(InputError, match=r"spiece\.model has no unigrams"):
        load_tokenizer(folder, N).encode("a")


REFUSED = {
    "too many gaps": ({"extra_ids": 10**9}, "extra_ids is 1000000000; it must be from 0"),
    "a list that is none": ({"extra_special_tokens": "<x>"}, "must have the type list"),
}


@pytest.mark.parametrize("said, message", REFUSED.values(), ids=REFUSED)
def test_refused(said: dict, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        load_tokenizer(folder_of("t5", tmp_path / "t5", **said), N)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    folder = folder_of("t5", tmp_path / "t5")
    data = bytearray((folder / "spiece.model").read_bytes())
    (folder / "spiece.model").write_bytes(data[:-9])
    with pytest.raises(InputError, match="is not a SentencePiece model"):
        load_tokenizer(folder, N).encode("a")
