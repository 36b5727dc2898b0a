"""Tokenizers of the `tokenizers` library: ids as transformers gives them, names, text back."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from learnt import KINDS, LINES, byte_level, sentence_pieces, word_pieces

from engine import InputError
from engine.models.tokenizer import Library, load_tokenizer, save_tokenizer, shown, stream

MEANT = (
    "the",
    "model",
    "a cell's",
    "you'll",
    "DON'T",
    "éà",
    "ﬁ",
    "😀",
    "👩‍🔬",
    "中文",
    "12345",
    "x_y",
    "…",
)
SPECIAL = ("<s>", "<|endoftext|>", "[MASK]", "</s>")


@pytest.fixture(scope="session", params=KINDS, ids=lambda kind: kind.replace(" ", "-"))
def folder(request, tmp_path_factory) -> Path:
    """A folder with a learnt tokenizer of each kind."""
    path = tmp_path_factory.mktemp("learnt")
    KINDS[request.param]().save(str(path / "tokenizer.json"))
    (path / "config.json").write_text('{"model_type": "llama"}')
    return path


def loaded(folder: Path) -> Library:
    size = len(json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"])
    tokenizer = load_tokenizer(folder, size)
    assert isinstance(tokenizer, Library)
    return tokenizer


def texts(n: int = 200) -> list[str]:
    """Random texts out of words that were learnt, words that were not, spaces and line ends."""
    draw = random.Random(5)
    words = [*MEANT, *SPECIAL, *"\n".join(LINES).split()]
    gaps = (" ", " ", " ", "  ", "", "\n", "\t", ", ", "\r\n")
    made = []
    for _ in range(n):
        pairs = [(draw.choice(words), draw.choice(gaps)) for _ in range(draw.randrange(12))]
        made.append("".join(piece for pair in pairs for piece in pair))
    return ["", " ", "   ", *made]


def reference(folder: Path) -> Any:
    transformers = pytest.importorskip("transformers", reason="pip install 'cellformer[reference]'")
    return transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))


def test_ids_are_those_of_transformers(folder: Path) -> None:
    ours, theirs = loaded(folder), reference(folder)
    theirs._tokenizer.no_padding()
    for text in texts():
        for special in (True, False):
            wanted = theirs.encode(
                text, add_special_tokens=special, truncation=False, padding=False
            )
            assert ours.encode(text, special=special) == wanted, text


def test_decoded_text_is_that_of_transformers(folder: Path) -> None:
    ours, theirs = loaded(folder), reference(folder)
    draw = random.Random(6)
    for text in texts():
        ids = ours.encode(text)
        ids += draw.choices(range(ours.n), k=3)
        assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=True)


def test_text_comes_back(folder: Path) -> None:
    ours = loaded(folder)
    lossy = any(kind in ours.inner.to_str() for kind in ("BertNormalizer", "NFKC"))
    for text in texts():
        if not (lossy or any(token in text for token in SPECIAL)):
            assert ours.decode(ours.encode(text)) == text


def test_a_stream_is_what_decode_gives(folder: Path) -> None:
    ours = loaded(folder)
    draw = random.Random(7)
    for text in texts():
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


def test_names_say_what_the_model_sees(folder: Path) -> None:
    ours = loaded(folder)
    names = shown(ours.texts)
    tokens = ours.encode("see the 中", special=False)
    text = "".join(names[i].replace("␣", " ") for i in tokens)
    kind = ours.inner.model.__class__.__name__
    if kind == "BPE":
        spelt = "".join(f"<0x{byte:02X}>" for byte in "中".encode())
        assert text.strip() in (f"see the {spelt}", "see the 中")
        assert any(name.startswith("␣th") for name in names) and "<0xE4>" in names
    if kind == "Unigram":
        assert text.strip() == "see the <unk>"
    if kind == "WordPiece":
        assert {name for name in names if name.startswith("##")}


def test_what_was_saved_is_the_same(folder: Path, tmp_path: Path) -> None:
    ours = loaded(folder)
    save_tokenizer(ours, tmp_path)
    again = load_tokenizer(tmp_path, ours.n)
    assert again.texts == ours.texts
    assert all(again.encode(text) == ours.encode(text) for text in texts(20))


# --- files beside the vocabulary ----------------------------------------------------------------


def same_as_auto(folder: Path, n: int) -> None:
    """Ids of AutoTokenizer, special tokens included, for the files of a folder."""
    transformers = pytest.importorskip("transformers", reason="pip install 'cellformer[reference]'")
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    ours = load_tokenizer(folder, n)
    for text in texts():
        assert ours.encode(text) == theirs.encode(text), text


def write(folder: Path, **files: object) -> None:
    for name, value in files.items():
        (folder / f"{name}.json").write_text(json.dumps(value))


@pytest.fixture
def vocab_and_merges(tmp_path: Path) -> Path:
    """GPT-2's two files."""
    byte_level().model.save(str(tmp_path))
    write(tmp_path, config={"model_type": "gpt2"})
    return tmp_path


BESIDE: dict[str, dict[str, object]] = {
    "nothing": {},
    "a prefix space": {"tokenizer_config": {"add_prefix_space": True}},
    "added tokens": {
        "added_tokens": {"<|im_start|>": 600, "<|im_end|>": 601, "the model": 602},
        "special_tokens_map": {"eos_token": "<|im_end|>"},
    },
    "OPT's beginning": {
        "tokenizer_config": {
            "add_bos_token": True,
            "bos_token": {"__type": "AddedToken", "content": "<|user|>", "normalized": True},
        }
    },
    "both ends": {"tokenizer_config": {"add_bos_token": True, "add_eos_token": True}},
    "a decoder of added tokens": {
        "tokenizer_config": {
            "added_tokens_decoder": {"600": {"content": "the model", "lstrip": True}},
            "tokenizer_class": "GPT2Tokenizer",
        }
    },
}


@pytest.mark.parametrize("name", BESIDE)
def test_what_stands_beside_vocab_and_merges(name: str, vocab_and_merges: Path) -> None:
    write(vocab_and_merges, **BESIDE[name])
    same_as_auto(vocab_and_merges, 610)


def test_qwen_splits_words_otherwise(vocab_and_merges: Path) -> None:
    config = {"tokenizer_class": "Qwen2Tokenizer"}
    write(vocab_and_merges, tokenizer_config=config, config={"model_type": "qwen2"})
    tokenizer = load_tokenizer(vocab_and_merges, 600)
    assert tokenizer.begin is None
    assert [tokenizer.texts[i] for i in tokenizer.encode("12 34")] == ["1", "2", " ", "3", "4"]


@pytest.mark.parametrize("lower", [True, False])
def test_a_list_of_word_pieces(lower: bool, tmp_path: Path) -> None:
    word_pieces().model.save(str(tmp_path))
    write(tmp_path, config={"model_type": "bert"}, tokenizer_config={"do_lower_case": lower})
    same_as_auto(tmp_path, 600)


@pytest.mark.parametrize("post_processor", [True, False])
@pytest.mark.parametrize("kind", ["LlamaTokenizer", "PreTrainedTokenizerFast"])
def test_a_library_s_file_says_alone_what_is_added(
    kind: str, post_processor: bool, tmp_path: Path
) -> None:
    values = json.loads(sentence_pieces().to_str())
    values["post_processor"] = values["post_processor"] if post_processor else None
    settings = {"tokenizer_class": kind, "add_bos_token": not post_processor, "bos_token": "<s>"}
    write(tmp_path, tokenizer=values, tokenizer_config=settings, config={"model_type": "llama"})
    ids = load_tokenizer(tmp_path, 760).encode("the model")
    assert (ids[0] == 1) == post_processor
    transformers = pytest.importorskip("transformers", reason="pip install 'cellformer[reference]'")
    assert ids == transformers.AutoTokenizer.from_pretrained(tmp_path).encode("the model")


def test_where_a_text_begins_and_ends(tmp_path: Path) -> None:
    def found() -> tuple[int | None, tuple[int, ...]]:
        tokenizer = load_tokenizer(tmp_path, 700)
        return tokenizer.begin, tokenizer.ends

    sentence_pieces().save(str(tmp_path / "tokenizer.json"))
    assert found() == (None, ())
    write(tmp_path, tokenizer_config={"bos_token": "<s>"})
    assert found() == (1, ())
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


def test_a_piece_without_a_row_is_refused_when_it_is_used(tmp_path: Path) -> None:
    byte_level().save(str(tmp_path / "tokenizer.json"))
    tokenizer = load_tokenizer(tmp_path, 300)
    assert len(tokenizer.texts) == 300
    assert tokenizer.encode("a")
    with pytest.raises(InputError, match=r"embedding has 300 rows; .*--ids"):
        tokenizer.encode("the model")
    wide = load_tokenizer(tmp_path, 602)
    assert wide.texts[600:] == ("<600>", "<601>") and wide.decode([600]) == ""


def test_a_gap_before_an_added_token_gets_one_line(vocab_and_merges: Path) -> None:
    write(vocab_and_merges, added_tokens={"<|im_start|>": 605})
    with pytest.raises(InputError, match=r"'<\|im_start\|>' has id 605, .* 600"):
        load_tokenizer(vocab_and_merges, 610)


def test_a_model_of_sentencepiece_alone_gets_one_line(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.model").write_bytes(b"\n\x0b")
    with pytest.raises(InputError, match=r"tokenizer\.model is not read here; .*--ids"):
        load_tokenizer(tmp_path, 9).encode("a")
