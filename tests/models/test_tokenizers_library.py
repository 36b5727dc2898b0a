"""The wall before the `tokenizers` library: its exceptions, panics, aborts and endless answers are
each one line, and known tokenizers go through it as they are."""

import ast
import base64
import json
import random
import time
from pathlib import Path

import pytest
from conftest import GOLDEN, ROOT
from foreign_values import LIBRARY, PLAIN, tokenizer_files, unigram
from tokenizers import Tokenizer, models, pre_tokenizers

from cellformer.engine import InputError
from cellformer.engine.text import subwords, tokenizers_library
from cellformer.engine.text.subwords import Library
from cellformer.engine.text.tokenizers_library import check, from_text, growth, normalizing, quick
from cellformer.engine.text.tokenizing.settings import GPT2
from cellformer.engine.text.vocabularies import LLAMA3, QWEN2

# SentencePiece's own, of six rules: ﬁ fi, Ａ A, Ä a + diaeresis, Ｂ B, U+2003 a space, 😀 :)
SIX_RULES = (GOLDEN / "charsmap.txt").read_text().strip()


def of_parts(at: Path, **parts: object) -> Library:
    """The tokenizer of a folder with a tokenizer.json of these parts."""
    tokenizer_files(at, parts)
    found = subwords.read(at / "model", 17)
    assert found is not None
    return found


@pytest.mark.parametrize("name", LIBRARY)
def test_bad_tokenizer_parts_are_one_line(name: str, tmp_path: Path, capfd) -> None:
    """What is taken has ids, or says in a line why it has none; nothing is printed beside it."""
    began = time.monotonic()
    try:
        found = of_parts(tmp_path, **LIBRARY[name])
        for text in ("a" * 30 + "! nothing", "abab"):
            found.decode(found.encode(text))
    except InputError as error:
        assert "\n" not in str(error)
    assert time.monotonic() - began < tokenizers_library.PATIENCE + 60
    assert capfd.readouterr().err == ""


def test_unknown_word_is_named(tmp_path: Path) -> None:
    model = {"type": "WordLevel", "vocab": {"a": 0, "b": 1}, "unk_token": "?"}
    found = of_parts(tmp_path, model=model, pre_tokenizer={"type": "Whitespace"})
    assert found.encode("a b") == [0, 1]
    with pytest.raises(
        InputError, match=r"no piece of .* contains 'nothing', .*\. Write the prompt without"
    ):
        found.encode("a nothing b")


def test_unigram_without_unknown_piece(tmp_path: Path) -> None:
    split = {"type": "Whitespace"}
    found = of_parts(tmp_path, model=unigram(unk_id=None), pre_tokenizer=split)
    with pytest.raises(InputError, match="no piece of the tokenizer contains 'xyz'"):
        found.encode("ab xyz")


def test_missing_added_token_is_one_line(tmp_path: Path, capfd) -> None:
    found = of_parts(tmp_path, **LIBRARY["an unknown token in front"])
    with pytest.raises(InputError, match="the tokenizer does not accept this text"):
        found.encode("ab")
    assert capfd.readouterr().err == ""  # where the library prints a page


# --- patterns -----------------------------------------------------------------------------------

O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
CL100K = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
    r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
DEEPSEEK = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"
KNOWN = (GPT2, LLAMA3, QWEN2, O200K, CL100K, DEEPSEEK, BLOOM, " {2,}", "[0-9][0-9][0-9]")
SLOW = ("(a+)+$", "(a*)*b", "(a|aa)+$", "a*a*a*b", "(?:x{1,99}){1,99}", r"(\d)\1+", "(?:a?){50}b")


@pytest.mark.parametrize("pattern", KNOWN)
def test_known_patterns_need_no_process(pattern: str) -> None:
    assert quick(pattern)


@pytest.mark.parametrize("pattern", SLOW)
def test_slow_patterns_run_in_a_process(pattern: str) -> None:
    assert not quick(pattern)


def test_process_gives_the_same_ids(tmp_path: Path) -> None:
    found = of_parts(tmp_path, **LIBRARY["backtracking, long"])
    assert not quick("(a|aa)+$")
    for text in ("abab", "", "b a b", "aab"):
        assert found.encode(text) == found.inner.encode(text).ids
        assert found.decode(found.encode(text)) == found.inner.decode(found.encode(text))


def test_endless_pattern_is_one_line(tmp_path: Path) -> None:
    found = of_parts(tmp_path, **LIBRARY["backtracking"])
    with pytest.raises(
        InputError, match="the tokenizer's pattern takes too long on this text; give token ids"
    ):
        found.encode("a" * 40 + "!")


# --- bounds -------------------------------------------------------------------------------------


def test_sentencepiece_charsmap_is_sound() -> None:
    apply = normalizing([{"type": "Precompiled", "precompiled_charsmap": SIX_RULES}])
    assert apply("ﬁ ＡÄ 😀 Ｂ x") == "fi Aa\u0308 :) B x"


def test_accepted_charsmap_never_panics() -> None:
    """Of 150 with a bit or more that are others."""
    rng, whole = random.Random(0), base64.b64decode(SIX_RULES)
    taken = 0
    for _ in range(150):
        spoilt = bytearray(whole)
        for _ in range(rng.choice([1, 3, 30])):
            spoilt[rng.randrange(len(spoilt))] ^= 1 << rng.randrange(8)
        text = base64.b64encode(bytes(spoilt)).decode()
        try:
            apply = normalizing([{"type": "Precompiled", "precompiled_charsmap": text}])
        except InputError:
            continue
        taken += 1
        for code in (
            *range(1, 0x3000, 5),
            0xFB01,
            0xFF21,
            0xFF22,
            0x1F600,
            *range(0x10000, 0x30000, 999),
        ):
            apply(chr(code) + "a")
    assert 20 < taken < 140


def test_growth_by_normalizing_is_known() -> None:
    double = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
    assert growth({"type": "Sequence", "normalizers": [double] * 40}) == 2.0**40
    assert growth({"type": "Sequence", "normalizers": [{"type": "NFKC"}]}) == 1
    with pytest.raises(InputError, match="into more than 1,000"):
        check({"normalizer": {"type": "Sequence", "normalizers": [double] * 40}}, "it")


def test_no_bpe_dropout() -> None:
    spec = json.loads(Tokenizer(models.BPE()).to_str())
    spec["model"] |= PLAIN | {"dropout": 0.9}
    inner = from_text(json.dumps(spec))
    assert {tuple(inner.encode("abababab").ids) for _ in range(20)} == {(2, 2, 2, 2)}


def test_billion_pieces_are_refused() -> None:
    with pytest.raises(InputError, match="too many for a vocabulary; ask for at most 10,000,000"):
        tokenizers_library.learnt("a text", 10**9)
    few = tokenizers_library.learnt("the cat the cat", 5_000_000)
    assert few.get_vocab_size() < 300


def test_library_is_used_in_one_module() -> None:
    """But by those that put a tokenizer together, and have the wall about what may fail."""
    found = {
        str(path.relative_to(ROOT / "engine" / "text"))
        for path in (ROOT / "engine").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "tokenizers"
    }
    assert found == {"tokenizers_library.py", "vocabularies.py", "subwords.py"}


def test_own_tokenizer_is_checked() -> None:
    inner = Tokenizer(models.WordLevel({"a": 0}, unk_token="?"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    with pytest.raises(InputError, match="no piece of the tokenizer contains 'b'"):
        Library(inner, 1).encode("a b")
