"""Tokenizers in cells give the ids of the library that they were learnt with."""

import json
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from conftest import CellAt, InIronCalc, libreoffice_after, typed
from learnt import KINDS, LINES, learnt, texts
from tokenizers import AddedToken, Regex, Tokenizer, models
from tokenizers import pre_tokenizers as pre

from cellformer.engine import InputError, WordList
from cellformer.engine.cells.evaluator import Evaluator
from cellformer.engine.cells.expression import constant
from cellformer.engine.cells.graph import Graph
from cellformer.engine.text import tokenizing
from cellformer.engine.text.tokenizer import Characters, IdsOnly, Library
from cellformer.engine.text.tokenizer import Tokenizer as AnyTokenizer
from cellformer.exporters.compose.book import Book
from cellformer.exporters.file import xlsx
from cellformer.exporters.pages import tokenizer as page

pytestmark = pytest.mark.slow

LENGTH, N_TOKENS = 20, 32
SHORT = 14  # of random texts: half the cells, and still several words
WORDS = WordList(("the", "cat", "sat", "The", "on", "Ägypten", "don't", "😀", "mat."))
OURS = {"words": WORDS, "characters": Characters(tuple(sorted(set("".join(LINES[:900])))))}
EVERY_KIND = [*KINDS, *OURS]
ONE = ("n_ids", "fine", "message")  # what has one cell


def tokenizer(kind: str) -> AnyTokenizer:
    return ties(kind) if kind in TIES else OURS.get(kind) or learnt(kind)


# Unigrams in which the same pieces in another order differ in the sum's last digit, with texts
TIES = {
    "ties": (
        {"▁": -7.700624, "*": -5.451635, "**": -6.138355, "a": -3.0},
        ["***", "*****", "a*****a***"],
    ),
    "ties of round scores": ({"▁": 0.0, "x": -1.1, "xx": -1.9}, ["xxx", "xxxxxxx"]),
}


@cache
def ties(kind: str) -> Library:
    pieces = [("<unk>", 0.0), *TIES[kind][0].items()]
    inner = Tokenizer(models.Unigram(pieces, unk_id=0))
    inner.pre_tokenizer = pre.Metaspace(prepend_scheme="first", split=False)
    return Library(inner, len(pieces))


def expected(of: AnyTokenizer, text: str) -> list[int] | None:
    """The ids; None where the text has none."""
    if isinstance(of, Library):
        return list(of.inner.encode(text).ids)
    try:
        return of.encode(text)
    except InputError:
        return None


def tried(kind: str, n: int, length: int = SHORT) -> list[str]:
    """Random texts; of words that a list has, in part."""
    found = texts(n, length, seed=EVERY_KIND.index(kind))
    if kind == "words":
        rng = np.random.default_rng(0)
        for k in range(0, n, 2):
            words = [WORDS.words[i] for i in rng.integers(0, 9, rng.integers(0, 6))]
            found[k] = rng.choice([" ", "  ", "\n", "\t"]).join(words)[:length]
    return found


class Row:
    """What a sheet, or the engine, says of one sentence."""

    def __init__(self, ids: Iterable[float], n_ids: float, fine: float, message: str):
        self.ids, self.n_ids = [*map(int, ids)], int(n_ids)
        self.fine, self.message = fine, message


def assert_right(of: AnyTokenizer, text: str, row: Row) -> bool:
    """Exactly the library's ids, or a message and none; whether there were ids."""
    wanted = expected(of, text)
    if row.fine:
        assert row.ids == [*(wanted or ()), *[-1] * (N_TOKENS - row.n_ids)], (text, row.message)
        assert wanted is not None and row.n_ids == len(wanted), (text, row.message)
    else:
        assert set(row.ids) == {-1} and row.n_ids == 0 and row.message, (text, row.message)
    return bool(row.fine)


@cache
def graph_of(kind: str, length: int = LENGTH) -> Graph:
    graph = Graph(None, None)
    tokenizing.add(graph, tokenizer(kind), "", N_TOKENS, length)
    return graph


def in_engine(graph: Graph, text: str) -> Row:
    graph.fill("sentence", np.array([[text]], dtype=object))
    n_ids, fine, message = (graph.values[f"tokenizer.{leaf}"][0, 0] for leaf in ONE)
    return Row(graph.values["tokenizer.ids"][:, 0], n_ids, fine, message)


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_engine_ids_equal_the_library(kind: str) -> None:
    graph, of = graph_of(kind, SHORT), tokenizer(kind)
    found = [assert_right(of, text, in_engine(graph, text)) for text in tried(kind, 29)]
    assert sum(found) > len(found) * (0.3 if kind in OURS else 0.75)


# --- in spreadsheet programs ------------------------------------------------------------------


def book_of(of: AnyTokenizer, text: str = "", length: int = SHORT) -> Book:
    book = Book("A tokenizer")
    tokenizing.add(book.graph, of, text, N_TOKENS, length)
    page.lay_out(book)
    return book


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Book, Path]]:
    """The book of a kind of tokenizer, and its file, made once."""
    folder = tmp_path_factory.mktemp("written")

    @cache
    def made(kind: str) -> tuple[Book, Path]:
        book = book_of(tokenizer(kind))
        return book, xlsx.write(book, folder / f"{kind}.xlsx")

    return made


def watched(book: Book) -> list[CellAt]:
    """Where a sheet says it."""
    ids = [book.cell("tokenizer.ids", k, 0) for k in range(N_TOKENS)]
    return [*ids, *(book.cell(f"tokenizer.{leaf}", 0, 0) for leaf in ONE)]


def row_of(book: Book, value: Callable[[CellAt], object]) -> Row:
    """What a sheet says, by the values of its cells."""
    *ids, n_ids, fine, message = map(value, watched(book))
    return Row(ids, n_ids, fine, message)


@pytest.mark.parametrize("kind", [*EVERY_KIND, *TIES])
def test_libreoffice_ids_equal_the_library(kind: str, written, tmp_path: Path, libreoffice) -> None:
    """From wrong values; the first text stands in the file, where LibreOffice has read it."""
    lines = "\tone,\n two"  # LibreOffice holds a tab of such a text as another character
    sentences = TIES[kind][1] if kind in TIES else [lines, *tried(kind, 29)[-2:]]
    book, path = written(kind)
    sentence, (first, *others) = book.cell("sentence", 0, 0), sentences
    path = typed(path, tmp_path / "typed.xlsx", {sentence: first})
    edits = [{}, *({sentence: text} for text in others)]
    files, found = libreoffice_after(path, edits, tmp_path / "office"), []
    for text, file in zip(sentences, files, strict=True):
        row = row_of(book, lambda at, file=file: file[at[0]][at[1:]])
        found.append(assert_right(tokenizer(kind), text, row))
    assert any(found)


@pytest.mark.parametrize("kind", [*EVERY_KIND, *TIES])
def test_ironcalc_ids_equal_the_library(kind: str, written) -> None:
    book, path = written(kind)
    sheet = InIronCalc(path)
    for text in TIES[kind][1] if kind in TIES else tried(kind, 29)[-6:]:
        if not text.strip() or text[0] in "='+-" or text.replace(".", "").isdigit():
            continue  # its way of typing makes another value of these
        with sheet.typed({book.cell("sentence", 0, 0): text}):
            assert_right(tokenizer(kind), text, row_of(book, sheet.__getitem__))


# --- texts as people type them ----------------------------------------------------------------

LONG = (
    "The quick brown fox jumps over the lazy dog and translates every English sentence to German",
    "a" * 90,
    "one " * 22,
    "Ein Café über naïve Ägypter, 1234 5678 don't I'll We'Re: 日本 😀 x = 42; déjà-vu, and so on",
    " ".join("abcdefghijklmnopqrstuvwxyz") + " 0 1 2 3 4 5 6 7 8 9",
)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "unigram" in kind])
def test_unigram_of_long_sentences(kind: str) -> None:
    """Its path goes from cell to cell through all of a text, deeper than Python calls itself."""
    graph, of = Graph(None, None), tokenizer(kind)
    tokenizing.add(graph, of, "", 96, 92)
    for text in LONG:
        row = in_engine(graph, text)
        assert row.fine, row.message
        assert row.ids[: row.n_ids] == expected(of, text), text


# --- added tokens in a text -------------------------------------------------------------------


STRIPPING = ("<mask>", "<|end|>")  # one takes the spaces before it, one those behind it


def marked(n: int, seed: int) -> list[str]:
    """Random texts with added tokens in them, spaces and line ends about these."""
    rng = np.random.default_rng(seed)
    marks = [*STRIPPING, "<|im_start|>", "[MASK]", "</s>", "<|endoftext|>", "[mask]"]
    found = []
    for text in texts(n, 12, seed):
        at, k = int(rng.integers(len(text) + 1)), int(rng.integers(1, 3))
        about = [str(rng.choice(["", " ", "  ", "\n"])) for _ in range(2)]
        middle = "".join(rng.choice(marks, k))
        found.append(text[:at] + about[0] + middle + about[1] + text[at:])
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_added_tokens_within_a_text(kind: str) -> None:
    inner = Tokenizer.from_str(learnt(kind).inner.to_str())
    before, after = (AddedToken(t, lstrip=t == "<mask>", rstrip=t != "<mask>") for t in STRIPPING)
    inner.add_special_tokens([before, after, "<|im_start|>"])
    library = Library(inner, inner.get_vocab_size())
    graph = Graph(None, None)
    tokenizing.add(graph, library, "", N_TOKENS, 40)
    found = [assert_right(library, t, in_engine(graph, t)) for t in marked(6, len(kind))]
    assert sum(found) >= 2


def test_gemmas_runs_of_newlines_leave_other_tokens_found() -> None:
    inner = Tokenizer.from_str(learnt("gemma").inner.to_str())
    inner.add_tokens([AddedToken("\n" * k, normalized=False) for k in (2, 3)])
    inner.add_special_tokens(["<start_of_turn>"])
    library = Library(inner, inner.get_vocab_size())
    graph = Graph(None, None)
    tokenizing.add(graph, library, "", N_TOKENS, 40)
    for text in ("<start_of_turn>a\n\n\n\nb", "a<start_of_turn>\n\n", "\n\n\n"):
        assert assert_right(library, text, in_engine(graph, text))


# --- messages ---------------------------------------------------------------------------------


MESSAGES = [
    ("gpt2", "x" * 25, "has more than 20 characters"),
    ("gpt2", "é" * 20, "longer than the 20 symbols"),
    ("sentencepiece", "a <s> b", "6 tokens"),
    ("bert", "a [PAD] b", "contains the special token [PAD]: delete [PAD]"),
    ("bert", "a \ue000 b", "the sheet has no ids"),
    ("bert", "[CLS] a [MASK]b", "6 tokens"),
    ("gpt2", "a  <|endoftext|> b", "4 tokens"),
    ("qwen2", "e\u0301", "2 tokens"),
    ("unigram nfkc", "e\u0301", "3 tokens"),
    ("unigram nfkc", "a \ufdfa", "code 65018"),
    ("words", "the dog sat", "begins at character 5 is not in the vocabulary"),
    ("characters", "a☃b", "the character ☃ (code 9731) has no id in the vocabulary"),
    ("characters", "", "nothing is typed"),
    ("words", "cat", "1 token"),
    ("bert", "", "2 tokens"),
]


@pytest.mark.parametrize(("kind", "text", "message"), MESSAGES)
def test_messages_of_the_tokenizer(kind: str, text: str, message: str) -> None:
    row = in_engine(graph_of(kind), text)
    assert message in row.message
    assert_right(tokenizer(kind), text, row)


def test_too_many_tokens_are_cut_and_reported() -> None:
    graph, of = Graph(None, None), learnt("gpt2")
    result = tokenizing.add(graph, of, "one two three four", 3, LENGTH)
    values = graph.values
    ids = of.inner.encode("one two three four").ids
    assert values[result.ids.name][:, 0].tolist() == ids[:3]
    assert values[result.n_ids.name] == 3 and values[result.fine.name] == 0
    assert f"{len(ids)} tokens: only the first 3 fit" in values[result.message.name][0, 0]


def test_special_tokens_can_be_left_out() -> None:
    graph, of = Graph(None, None), learnt("bert")
    result = tokenizing.add(graph, of, "a spreadsheet", N_TOKENS, LENGTH, special=False)
    n = int(graph.values[result.n_ids.name][0, 0])
    wanted = of.inner.encode("a spreadsheet", add_special_tokens=False).ids
    assert graph.values[result.ids.name][:n, 0].tolist() == wanted


def test_evaluator_follows_typed_text() -> None:
    graph, of = graph_of("sentencepiece"), learnt("sentencepiece")
    live = Evaluator(graph)
    for text in ("the cat", "naïve 😀", "", "zyx"):
        live.set("sentence", 0, 0, text)
        n = int(live["tokenizer.n_ids"][0, 0])
        assert live["tokenizer.ids"][:n, 0].tolist() == of.inner.encode(text).ids


STRIPPED = ("``Don't''  she  said  ", "  two", "   ", "É ", "a''b``", "a '' ' ' '''b")


@pytest.mark.parametrize("text", STRIPPED)
def test_replace_and_strip_normalizers(text: str) -> None:
    assert assert_right(learnt("unigram albert"), text, in_engine(graph_of("unigram albert"), text))


@pytest.mark.parametrize("text", ["a \x01 b", "a\u3000", "a\u00a0"])
def test_unsupported_replacement_is_reported(text: str) -> None:
    row = in_engine(graph_of("unigram albert"), text)
    assert not assert_right(learnt("unigram albert"), text, row)
    assert "has no id in the vocabulary" in row.message


@pytest.mark.parametrize("kind", ["bert", "gpt2", "unigram albert"])
@pytest.mark.parametrize("text", ["\U0001f3f4\U000e0067\U000e007f", "a\U000e0100 b", "\U000f1000x"])
def test_tags_variants_and_private_use(kind: str, text: str) -> None:
    row = in_engine(graph_of(kind), text)
    assert_right(learnt(kind), text, row)


# --- what is refused --------------------------------------------------------------------------


def changed(kind: str, **parts: object) -> Library:
    """A learnt tokenizer with other parts, as its file has them."""
    spec = json.loads(learnt(kind).inner.to_str())
    for path, value in parts.items():
        *where, last = path.split("__")
        at = spec
        for name in where:
            at = at[name]
        at[last] = value
    inner = Tokenizer.from_str(json.dumps(spec))
    return Library(inner, inner.get_vocab_size())


SPACES_ALONE = {"type": "Replace", "pattern": {"String": " "}, "content": ""}
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
DIGITS = {"type": "Digits", "individual_digits": True}
SPLIT = {"type": "Split", "pattern": {"Regex": "a"}, "behavior": "Isolated", "invert": False}
SPACED = {**BYTES, "add_prefix_space": True}
SIGNED = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never", "split": True}
SPACES_OUT = {"type": "Replace", "pattern": {"Regex": "a+"}, "content": "b"}


def one_after_another(*parts: object) -> dict[str, object]:
    return {"pre_tokenizer": {"type": "Sequence", "pretokenizers": parts}}


REFUSED = [
    ("gpt2", one_after_another(SPLIT, SPACED), "a space before every word"),
    ("gpt2", one_after_another(SPLIT, SIGNED), "Metaspace after another"),
    ("gpt2", {"pre_tokenizer": {"type": "FixedLength", "length": 3}}, "FixedLength"),
    ("bert", {"pre_tokenizer": SPLIT}, "WordPiece with the pre-tokenizer Split"),
    ("bert", {"pre_tokenizer": DIGITS}, "does not split at spaces"),
    ("unigram", {"pre_tokenizer": SPLIT}, "Unigram that works on bytes"),
    ("gpt2", {"normalizer": SPACES_OUT}, "a normalizer that replaces 'a+'"),
    ("gpt2", {"normalizer": {"type": "Prepend", "prepend": "x"}}, "the normalizer Prepend"),
    ("gpt2", {"normalizer": {"type": "ByteLevel"}}, "the normalizer ByteLevel"),
    ("gpt2", {"pre_tokenizer": {"type": "UnicodeScripts"}}, "pre-tokenizer UnicodeScripts"),
    ("gpt2", one_after_another(BYTES, DIGITS), "Digits after one that changes the text"),
    ("gpt2", {"model__dropout": 0.1}, "dropout"),
    ("bert", {"normalizer": {"type": "Strip", "strip_left": True, "strip_right": True}}, "Strip"),
    ("unigram nfkc", {"normalizer": SPACES_ALONE}, "replaces ' '"),
]


@pytest.mark.parametrize(("kind", "parts", "reason"), REFUSED)
def test_unsupported_tokenizers_are_refused(kind: str, parts: dict, reason: str) -> None:
    of = changed(kind, **parts)
    assert reason in tokenizing.refusal(of)
    with pytest.raises(InputError, match="give token ids with --ids"):
        tokenizing.add(Graph(None, None), of)


@pytest.mark.parametrize("pattern", [r"\w+", r"\S+", "[^cst]", r"[\s\S]"])
def test_splits_that_remove_words(pattern: str) -> None:
    inner = Tokenizer.from_str(learnt("gpt2").inner.to_str())
    bytes_alone = pre.ByteLevel(add_prefix_space=False, use_regex=False)
    inner.pre_tokenizer = pre.Sequence([pre.Split(Regex(pattern), "removed"), bytes_alone])
    of = Library(inner, inner.get_vocab_size())
    graph = Graph(None, None)
    tokenizing.add(graph, of, "", N_TOKENS, LENGTH)
    for text in ("a cat, 12! sat", "?!", "word", ""):
        assert assert_right(of, text, in_engine(graph, text))


@pytest.mark.parametrize("pattern", [r"(?<=a)b", r"a+?b", r"(ab)+", r"\p{N}{1,3}+", "a*", "x$"])
def test_patterns_without_formulas_are_refused(pattern: str) -> None:
    of = learnt("gpt2")
    inner = Tokenizer.from_str(of.inner.to_str())
    inner.pre_tokenizer = pre.Sequence(
        [pre.Split(Regex(pattern), "isolated"), pre.ByteLevel(use_regex=False)]
    )
    assert repr(pattern) in tokenizing.refusal(Library(inner, of.n))


def test_ids_alone_have_no_sentence() -> None:
    assert tokenizing.refusal(IdsOnly(5)).startswith("this model has no tokenizer")


def test_unreachable_whole_words_are_refused() -> None:
    assert not tokenizing.refusal(changed("gpt2", model__ignore_merges=True))
    merges = json.loads(learnt("gpt2").inner.to_str())["model"]["merges"]
    with pytest.raises(InputError, match="merges cannot build"):
        tokenizing.add(
            Graph(None, None), changed("gpt2", model__ignore_merges=True, model__merges=merges[:-1])
        )


@pytest.mark.parametrize("kind", ["gpt2", "sentencepiece", "bert", "unigram"])
def test_table_constants_without_formulas(kind: str) -> None:
    for table in graph_of(kind).tables:
        assert table.expression is not None
        for i in range(table.shape[0]):
            cells = [table.expression(i, j) for j in range(table.shape[1])]
            assert table.begun(i) == [constant(cell) for cell in cells], (table.name, i)
