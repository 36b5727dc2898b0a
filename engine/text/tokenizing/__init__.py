"""A tokenizer in cells: formulas turn the text of one cell into token ids, step by step.

`add` adds the tables to a graph; a page lays them out. Symbols are numbers throughout, since
looking up a text ignores case and takes wildcards. The steps:

    sentence -> characters -> words of the pre-tokenizer -> symbols -> ids

Characters and words are looked up; BPE merges pairs, one row per merge; WordPiece takes the longest
token of a word, Unigram the best path. A text that the sheet cannot tokenize exactly as the
tokenizer does gives a message and no ids, never wrong ones.
"""

from functools import lru_cache

from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.graph import Graph
from cellformer.engine.text.marian import Marian
from cellformer.engine.text.tokenizer import Characters, Library, Tokenizer, WordList
from cellformer.engine.text.tokenizing import bpe, lists, of_marian, unigram, wordpiece
from cellformer.engine.text.tokenizing.result import Result
from cellformer.engine.text.tokenizing.settings import Settings, read
from cellformer.engine.text.tokenizing.steps import Steps

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
    """Add the tables from the typed `sentence` to `tokenizer.ids` [n_tokens, 1].

    `text_length` is the maximum length in characters, or bytes; `special` adds the tokenizer's
    special tokens. Raises InputError for a tokenizer without tables in cells.
    """
    if reason := refusal(tokenizer):
        raise InputError(reason)
    steps = Steps(graph, tokenizer, sentence, text_length, n_tokens)
    if isinstance(tokenizer, Characters):
        return lists.add_characters(steps, tokenizer)
    if isinstance(tokenizer, WordList):
        return wordpiece.add_words(steps, tokenizer)
    assert isinstance(tokenizer, Library | Marian)
    settings = _settings(tokenizer)
    return KINDS[settings.kind](steps, settings, special)


def refusal(tokenizer: Tokenizer) -> str:
    """Why a tokenizer has no tables in cells, as a sentence; "" if it has."""
    if isinstance(tokenizer, WordList):
        return ""
    if not isinstance(tokenizer, Library | Marian):
        return "this model has no tokenizer, so you type the sentence as token ids"
    return _refusal(tokenizer)


@lru_cache(maxsize=16)  # of a large vocabulary it takes a while
def _refusal(tokenizer: Library | Marian) -> str:
    try:
        _settings(tokenizer)
    except InputError as error:
        return str(error)
    return ""


def _settings(tokenizer: Library | Marian) -> Settings:
    if isinstance(tokenizer, Marian):
        return of_marian.read(tokenizer)
    if (size := tokenizer.inner.get_vocab_size(with_added_tokens=False)) > tokenizer.n:
        raise InputError(
            f"the tokenizer has {size:,} tokens, but the model has embeddings for only "
            f"{tokenizer.n:,}"
        )
    found = read(tokenizer.inner)
    if found.kind == "BPE":
        bpe.check(found)
    return found
