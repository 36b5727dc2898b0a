"""A list of words in a file becomes tokens of a model, or one line that says why not."""

from pathlib import Path

import pytest
from conftest import cli
from learnt import learnt

from cellformer.engine.cells.errors import InputError
from cellformer.engine.text import word_list_file
from cellformer.engine.text.tokenizer import IdsOnly, WordList


class AnyTexts(WordList):
    """A vocabulary that has a text with a space, as pieces of a text may."""

    def _whole(self, word: str) -> bool:
        return True


WORDS = AnyTexts(("sea", "ship", "=1+1", "lion", "{0}", "a b"))


def written(folder: Path, text: str) -> Path:
    path = folder / "words.txt"
    path.write_bytes(text.encode())
    return path


def test_groups_and_blank_lines(tmp_path: Path) -> None:
    path = written(tmp_path, "\ufeffsea\r\n\n# living things\n lion \n=1+1\n#\nship")
    groups = word_list_file.read(path)
    assert groups == {"words": ["sea"], "living things": ["lion", "=1+1", "#", "ship"]}
    groups["living things"].remove("#")
    groups["living things"][0] = "LION"  # case is forgiven, as on the sheets
    assert word_list_file.ids(groups, WORDS) == {"words": [0], "living things": [3, 2, 1]}


@pytest.mark.parametrize("kind", ["gpt2", "sentencepiece", "bert"])
def test_words_of_learnt_tokenizers_are_one_token_each(kind: str) -> None:
    """A word within a text is found first: with its space where the tokenizer has one."""
    tokenizer = learnt(kind)
    words = ["class", "the", "value", "object"]
    (found,) = word_list_file.ids({"": words}, tokenizer).values()
    for word, ident in zip(words, found, strict=True):
        assert tokenizer.texts[ident].strip(" ▁") == word
        assert [ident] in (tokenizer.encode(text, special=False) for text in (f" {word}", word))
    if kind == "gpt2":
        assert tokenizer.texts[found[0]] == " class"
    with pytest.raises(InputError, match=r"into .* tokens \(.*words of one token; replace"):
        word_list_file.ids({"": ["incomprehensibility"]}, tokenizer)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "lists 0 words; a map needs 4 to 255 words, one on each line"),
        ("lion\n", "lists 1 word;"),
        ("sea\nship\nlion\nsea", "line 4: 'sea' is already on line 1"),
        (
            "sea\nship\nlion\n=2+2",
            r"the vocabulary does not contain '=2\+2'; known: sea, ship, =1\+1",
        ),
        ("sea\nship\nlion\n\x01\x1b[31m", r"the vocabulary does not contain '\\x01\\x1b\[31m'"),
        ("sea\nship\nlion\n" + "w" * 9000, "the vocabulary does not contain 'w+…'"),
        ("\n".join(map(str, range(10_000))), "lists 10,000 words;"),
        ("\n".join(map(str, range(100_000))), "is too large for a list of 255 words"),
        ("sea\nship\nlion\na b", ""),
    ],
)
def test_bad_word_lists_are_refused(text: str, fault: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    if not fault:
        assert word_list_file.ids(word_list_file.read(path), WORDS)
        return
    with pytest.raises(InputError, match=fault) as told:
        word_list_file.ids(word_list_file.read(path), WORDS)
    assert len(str(told.value)) < 400


def test_missing_file_and_model_without_words(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no file"):
        word_list_file.read(tmp_path)
    (tmp_path / "latin").write_bytes(b"caf\xe9\n")
    with pytest.raises(InputError, match="is not a UTF-8 text"):
        word_list_file.read(tmp_path / "latin")
    with pytest.raises(InputError, match="no tokenizer; a list of words needs a tokenizer"):
        word_list_file.ids({"": ["a"]}, IdsOnly(5))
    path = written(tmp_path, "sea\nship\nlion\nriver")
    out = tmp_path / "out.xlsx"
    for words, told in (
        (("semantic-tiny", "--words", path), "the vocabulary does not contain 'sea'"),
        (("attention-by-columns", "--words", path), "has no model"),
    ):
        done = cli("build", *words, "-o", out)
        assert (done.code, out.exists()) == (2, False)
        assert told in done.err and done.err.count("\n") == 1
