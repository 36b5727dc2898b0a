"""The settings of Marian's tokenizer for its cells: SentencePiece's unigrams, which another file
numbers."""

from base64 import b64encode
from functools import lru_cache

from cellformer.engine.cells.errors import InputError
from cellformer.engine.text.marian import LANGUAGE, Marian
from cellformer.engine.text.tokenizing.settings import MOST_MARKS, SPACE_SIGN, Mark, Settings


@lru_cache(maxsize=4)
def read(tokenizer: Marian) -> Settings:
    """The settings. Raises InputError for a source.spm that treats spaces in another way."""
    source, ids = tokenizer.source, tokenizer.ids
    if not (source.space_before and source.fewer_spaces):
        raise InputError(
            "cellformer has no formulas yet for a source.spm that keeps spaces; give token ids "
            "with --ids"
        )
    unknown = ids[tokenizer.special["unk_token"]]
    anywhere = sorted({*tokenizer.special.values()}, key=len, reverse=True)
    languages = [piece for piece in ids if LANGUAGE.fullmatch(piece)]
    marks = [Mark(text, ids[text], False, False) for text in [*anywhere, *languages]]
    characters = source.characters
    # a run of unknown characters may be one of the other language's pieces
    others = {c for piece in ids if not {piece, *piece} & source.scores.keys() for c in piece}
    followers = characters.followers if characters else ()
    precompiled = characters and b64encode(characters.data).decode()
    return Settings(
        "Unigram",
        {"vocab": list(source.scores.items()), "unk_id": unknown},
        [{"type": "Precompiled", "precompiled_charsmap": precompiled}] if precompiled else [],
        prefix="always",
        collapsed="between",
        stripped="ends",
        signed=True,
        after=[ids[tokenizer.special["eos_token"]]],
        added=[mark.text for mark in marks],
        marks=marks[:MOST_MARKS],
        numbers=[ids.get(piece, unknown) for piece in source.scores],
        n_anywhere=len(anywhere),
        apart_from_text=frozenset({SPACE_SIGN, *others}.union(followers)),
    )
