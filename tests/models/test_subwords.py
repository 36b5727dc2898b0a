"""Tokenizers of the `tokenizers` library: ids as transformers gives them, names, text back."""

import json
import random
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from conftest import GOLDEN, library
from learnt import KINDS, learnt, texts
from tokenizers import Tokenizer

from cellformer.engine import InputError
from cellformer.engine.text.tokenizer import Library, load_tokenizer, save_tokenizer, shown, stream

pytestmark = pytest.mark.slow

SPECIAL = ("<s>", "<|endoftext|>", "[MASK]", "</s>")
ENTIRE = ("gpt2", "llama3", "smollm", "sentencepiece", "gemma")  # what goes in comes out


@pytest.fixture(scope="session", params=KINDS, ids=lambda kind: kind.replace(" ", "-"))
def folder(request, tmp_path_factory) -> Path:
    """A folder with a learnt tokenizer of each kind, padded and cut to a length as some are."""
    path = tmp_path_factory.mktemp("learnt") / request.param
    path.mkdir()
    inner = Tokenizer.from_str(learnt(request.param).inner.to_str())
    inner.enable_padding(length=20)
    inner.enable_truncation(8)
    inner.save(str(path / "tokenizer.json"))
    return path


def loaded(folder: Path) -> Library:
    size = len(json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"])
    tokenizer = load_tokenizer(folder, size)
    assert isinstance(tokenizer, Library)
    return tokenizer


@cache
def tried() -> list[str]:
    """Random texts; some have special tokens in them."""
    draw = random.Random(5)
    found = texts(200, 60, seed=5)
    for k in range(0, len(found), 5):
        at = draw.randint(0, len(found[k]))
        found[k] = found[k][:at] + draw.choice(SPECIAL) + found[k][at:]
    return [" ", "   ", *found]


def reference(folder: Path) -> Any:
    transformers = library("transformers")
    return transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))


def test_ids_equal_transformers(folder: Path) -> None:
    ours, theirs = loaded(folder), reference(folder)
    theirs._tokenizer.no_padding()
    for text in tried():
        for special in (True, False):
            wanted = theirs.encode(
                text, add_special_tokens=special, truncation=False, padding=False
            )
            assert ours.encode(text, special=special) == wanted, text


def test_decoded_text_equals_transformers(folder: Path) -> None:
    ours, theirs = loaded(folder), reference(folder)
    draw = random.Random(6)
    for text in tried():
        ids = ours.encode(text)
        ids += draw.choices(range(ours.n), k=3)
        assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=True)


@pytest.mark.parametrize("kind", ENTIRE)
def test_text_comes_back(kind: str) -> None:
    ours = learnt(kind)
    for text in tried():
        if not any(token in text for token in (*SPECIAL, "▁")):
            assert ours.decode(ours.encode(text)) == text


def test_stream_equals_decode(folder: Path) -> None:
    ours = loaded(folder)
    draw = random.Random(7)
    for text in tried():
        for ids in (ours.encode(text), draw.choices(range(ours.n), k=20)):
            parts = list(stream(ours, ids))
            assert "".join(parts) == ours.decode(ids)
            assert all(parts)


def test_names_are_distinct_and_without_a_space(folder: Path) -> None:
    ours = loaded(folder)
    names = shown(ours.texts)
    assert len(set(names)) == len(names) == ours.n
    assert not any(character.isspace() for name in names for character in name)
    assert all(len(name.encode("utf-16-le")) <= 80 for name in names)


SEEN = {
    "gpt2": "of␣the␣<0xED><0x95><0x9C>",
    "llama3": "of␣the␣<0xED><0x95><0x9C>",
    "sentencepiece": "␣of␣the␣<0xED><0x95><0x9C>",
    "gemma": "of␣the␣<0xED><0x95><0x9C>",
    "bert": "ofthe[UNK]",
    "unigram": "␣of␣the␣<unk>",
}


@pytest.mark.parametrize("kind", SEEN)
def test_names_say_what_the_model_sees(kind: str) -> None:
    tokenizer = learnt(kind)
    names = shown(tokenizer.texts)
    assert "".join(names[i] for i in tokenizer.encode("of the 한", special=False)) == SEEN[kind]


def test_word_piece_within_a_word_is_marked() -> None:
    pieces, words = shown(learnt("sentencepiece").texts), shown(learnt("bert").texts)
    assert {"␣the", "␣a", "a", "<0x61>", "<0x0A>", "<s>"} <= {*pieces}
    assert {"the", "a", "##a", "[CLS]"} <= {*words}


def test_saved_tokenizer_is_the_same(folder: Path, tmp_path: Path) -> None:
    ours = loaded(folder)
    save_tokenizer(ours, tmp_path)
    again = load_tokenizer(tmp_path, ours.n)
    assert again.texts == ours.texts
    assert all(again.encode(text) == ours.encode(text) for text in tried()[:20])


# --- files beside the vocabulary ----------------------------------------------------------------


def same_as_auto(folder: Path, n: int) -> None:
    """Ids of AutoTokenizer, special tokens included, for the files of a folder."""
    transformers = library("transformers")
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    ours = load_tokenizer(folder, n)
    for text in tried():
        assert ours.encode(text) == theirs.encode(text), text


def write(folder: Path, **files: object) -> None:
    for name, value in files.items():
        (folder / f"{name}.json").write_text(json.dumps(value))


@pytest.fixture
def vocab_and_merges(tmp_path: Path) -> Path:
    """GPT-2's two files."""
    KINDS["gpt2"]().model.save(str(tmp_path))
    write(tmp_path, config={"model_type": "gpt2"})
    return tmp_path


BESIDE: dict[str, dict[str, object]] = {
    "nothing": {},
    "a prefix space": {"tokenizer_config": {"add_prefix_space": True}},
    "added tokens": {
        "added_tokens": {"<|im_start|>": 800, "<|im_end|>": 801, "the value": 802},
        "special_tokens_map": {"eos_token": "<|im_end|>"},
    },
    "OPT's beginning": {
        "tokenizer_config": {
            "add_bos_token": True,
            "bos_token": {"__type": "AddedToken", "content": "!", "normalized": True},
        }
    },
    "both ends": {"tokenizer_config": {"add_bos_token": True, "add_eos_token": True}},
    "a decoder of added tokens": {
        "tokenizer_config": {
            "added_tokens_decoder": {"800": {"content": "the value", "lstrip": True}},
            "tokenizer_class": "GPT2Tokenizer",
        }
    },
}


@pytest.mark.parametrize("name", BESIDE)
def test_files_beside_vocab_and_merges(name: str, vocab_and_merges: Path) -> None:
    write(vocab_and_merges, **BESIDE[name])
    same_as_auto(vocab_and_merges, 810)


def test_qwen_pre_tokenizer(vocab_and_merges: Path) -> None:
    config = {"tokenizer_class": "Qwen2Tokenizer"}
    write(vocab_and_merges, tokenizer_config=config, config={"model_type": "qwen2"})
    tokenizer = load_tokenizer(vocab_and_merges, 800)
    assert tokenizer.begin is None
    assert [tokenizer.texts[i] for i in tokenizer.encode("12 34")] == ["1", "2", " ", "3", "4"]


@pytest.mark.parametrize("lower", [True, False])
def test_word_piece_list(lower: bool, tmp_path: Path) -> None:
    KINDS["bert"]().model.save(str(tmp_path))
    write(tmp_path, config={"model_type": "bert"}, tokenizer_config={"do_lower_case": lower})
    same_as_auto(tmp_path, 600)


@pytest.mark.parametrize("post_processor", [True, False])
@pytest.mark.parametrize("kind", ["LlamaTokenizer", "PreTrainedTokenizerFast"])
def test_tokenizer_json_says_which_tokens_are_added(
    kind: str, post_processor: bool, tmp_path: Path
) -> None:
    values = json.loads(KINDS["sentencepiece"]().to_str())
    values["post_processor"] = values["post_processor"] if post_processor else None
    settings = {"tokenizer_class": kind, "add_bos_token": not post_processor, "bos_token": "<s>"}
    write(tmp_path, tokenizer=values, tokenizer_config=settings, config={"model_type": "llama"})
    ids = load_tokenizer(tmp_path, 760).encode("the value")
    assert (ids[0] == 0) == post_processor
    transformers = library("transformers")
    assert ids == transformers.AutoTokenizer.from_pretrained(tmp_path).encode("the value")


def test_begin_and_end_tokens(tmp_path: Path) -> None:
    def found() -> tuple[int | None, tuple[int, ...]]:
        tokenizer = load_tokenizer(tmp_path, 700)
        return tokenizer.begin, tokenizer.ends

    KINDS["sentencepiece"]().save(str(tmp_path / "tokenizer.json"))
    assert found() == (None, ())
    write(tmp_path, tokenizer_config={"bos_token": "<s>"})
    assert found() == (0, ())
    write(tmp_path, config={"bos_token_id": 5, "eos_token_id": 6})
    assert found() == (5, (6,))
    write(tmp_path, generation_config={"bos_token_id": None, "eos_token_id": [2, 3, 9_999]})
    assert found() == (5, (2, 3))
    (tmp_path / "again").mkdir()
    save_tokenizer(load_tokenizer(tmp_path, 700), tmp_path / "again")
    assert load_tokenizer(tmp_path / "again", 700).ends == (2, 3)
    (tmp_path / "generation_config.json").write_text("[")
    with pytest.raises(InputError, match=r"generation_config.json is not JSON"):
        found()


def test_token_without_an_embedding_is_refused(tmp_path: Path) -> None:
    KINDS["gpt2"]().save(str(tmp_path / "tokenizer.json"))
    tokenizer = load_tokenizer(tmp_path, 300)
    assert len(tokenizer.texts) == 300
    assert tokenizer.encode("a")
    with pytest.raises(InputError, match=r"embedding has only 300 rows; .*--ids"):
        tokenizer.encode("the value")
    wide = load_tokenizer(tmp_path, 802)
    assert wide.texts[800:] == ("<800>", "<801>") and wide.decode([800]) == ""


def test_gap_before_an_added_token(vocab_and_merges: Path) -> None:
    write(vocab_and_merges, added_tokens={"<|im_start|>": 805})
    with pytest.raises(InputError, match=r"'<\|im_start\|>' has id 805, .* 800"):
        load_tokenizer(vocab_and_merges, 810)


def test_sentencepiece_model_alone(tmp_path: Path) -> None:
    shutil.copy(GOLDEN / "sentencepiece.model", tmp_path / "tokenizer.model")
    tokenizer = load_tokenizer(tmp_path, 700)
    for text, ids in json.loads((GOLDEN / "sentencepiece.json").read_text()).items():
        assert tokenizer.encode(text) == ids
    assert (tokenizer.begin, tokenizer.texts[0]) == (1, "<unk>")
    write(tmp_path, tokenizer_config={"add_bos_token": True, "add_eos_token": True})
    ids = load_tokenizer(tmp_path, 700).encode("of the")
    assert (ids[0], ids[-1], ids[1:-1]) == (1, 2, tokenizer.encode("of the"))


# The fields of a SentencePiece model: one piece, then what trained it, then what it does to a text.
PIECE, UNIGRAM, BPE, AS_IT_IS = b"\n\x03\n\x01a", b"", b"\x12\x02\x18\x02", b"\x1a\x02\x20\x00"
ONE_LINE = {
    "no model": (b"\n\x0b", "is not a SentencePiece model"),
    "a model of tiktoken": (b"IQ== 0\nIg== 1\n", "is not a SentencePiece model"),
    "nothing but zeros": (bytes(20), "is not a SentencePiece model"),
    "Unigram": (PIECE + UNIGRAM + AS_IT_IS, "has no byte pairs"),
    "fewer spaces": (PIECE + BPE, "changes the text before it splits"),
    "another alphabet": (
        PIECE + BPE + b"\x1a\x05\x12\x01a\x20\x00",
        "changes the text before it splits",
    ),
}


@pytest.mark.parametrize("name", ONE_LINE)
def test_unknown_tokenizer_is_one_line_when_used(name: str, tmp_path: Path) -> None:
    data, reason = ONE_LINE[name]
    (tmp_path / "tokenizer.model").write_bytes(data)
    tokenizer = load_tokenizer(tmp_path, 9)
    assert tokenizer.decode([1, 2]) == "1 2"
    with pytest.raises(InputError, match=rf"tokenizer\.model .*{reason}.*; give token ids"):
        tokenizer.encode("a")
