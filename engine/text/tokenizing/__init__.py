"""A tokenizer in cells: what is typed in one cell becomes token ids by formulas, step by step.

`add` gives a graph the tables; a page lays them out. Symbols are numbers throughout, never texts:
looking a text up ignores case and takes wildcards. The way of a text:

    sentence -> characters -> pieces of the tokenizer's first splitting -> symbols -> ids

Characters and words are looked up; byte pairs are merged, a row for each merge; WordPiece takes the
longest piece of a word, Unigram the best path. What the sheet cannot tokenize as the tokenizer
does gives a message and no id, never a wrong one.
"""

from functools import lru_cache

from engine.cells.errors import InputError
from engine.cells.graph import Graph
from engine.text.tokenizer import Characters, Library, Tokenizer, WordList
from engine.text.tokenizing import bpe, lists, unigram, wordpiece
from engine.text.tokenizing.result import Result
from engine.text.tokenizing.settings import Settings, read
from engine.text.tokenizing.steps import Steps

__all__ = ["TEXT_LENGTH", "Result", "add", "refusal"]

TEXT_LENGTH = 60  # characters of a sentence, and bytes where symbols are bytes
KINDS = {"BPE": bpe.add, "WordPiece": wordpiece.add, "Unigram": unigram.add}


def add(
    graph: Graph,
    tokenizer: Tokenizer,
    sentence: str = "",
    n_tokens: int = TEXT_LENGTH,
    text_length: int = TEXT_LENGTH,
    special: bool = True,
) -> Result:
    """Give a graph the tables from the typed `sentence` to `tokenizer.ids` [n_tokens, 1].

    `text_length` characters fit, or bytes; `special` adds the tokens that the tokenizer's own
    files put before and after a text. Raises InputError for a tokenizer that has no such tables.
    """
    if reason := refusal(tokenizer):
        raise InputError(reason)
    steps = Steps(graph, tokenizer, sentence, text_length, n_tokens)
    if isinstance(tokenizer, Characters):
        return lists.add_characters(steps, tokenizer)
    if isinstance(tokenizer, WordList):
        return wordpiece.add_words(steps, tokenizer)
    assert isinstance(tokenizer, Library)
    settings = _settings(tokenizer)
    return KINDS[settings.kind](steps, settings, special)


def refusal(tokenizer: Tokenizer) -> str:
    """Why a tokenizer has no tables in cells, as a sentence; nothing where it has them."""
    if isinstance(tokenizer, WordList):
        return ""
    if not isinstance(tokenizer, Library):
        return "this model has no tokenizer: its sentence is given as token ids"
    return _refusal(tokenizer)


@lru_cache(maxsize=16)  # of a large vocabulary it takes a while
def _refusal(tokenizer: Library) -> str:
    try:
        _settings(tokenizer)
    except InputError as error:
        return str(error)
    return ""


def _settings(tokenizer: Library) -> Settings:
    if tokenizer.inner.get_vocab_size(with_added_tokens=False) > tokenizer.n:
        raise InputError(f"its tokenizer has more pieces than the model's {tokenizer.n} rows")
    found = read(tokenizer.inner)
    if found.kind == "BPE":
        bpe.check(found)
    return found
