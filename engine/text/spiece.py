"""spiece.model, the file of T5's and ALBERT's tokenizers: SentencePiece's unigrams, as transformers
takes them.

Its classes read the pieces and the map of characters, and no other rule of the file: text is split
at white space, each word begins with ▁, and what no piece has is unknown.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.fields import Fields, content_of, json_object
from cellformer.engine.text import tokenizers_library as library
from cellformer.engine.text.sentencepiece import (
    CHARACTER_MAP,
    MODEL_TYPE,
    REMEDY,
    UNIGRAM,
    UnreadError,
    content,
)
from cellformer.engine.text.vocabularies import Ends, Kind, finish


class Style(NamedTuple):
    """The rules of a class of tokenizers for the file."""

    unknown: int  # the id of the unknown piece; the file may name another, which does not count
    tokens: Mapping[str, str]  # its special tokens by their roles, unless a file says others
    ends: tuple[str, str]  # the roles of the tokens before and after a text; "": none
    n_gaps: int  # tokens <extra_id_0>, <extra_id_1>, ... behind the file's, by default


T5 = Style(2, {"eos": "</s>", "unk": "<unk>", "pad": "<pad>"}, ("", "eos"), 100)
ALBERT = Style(
    1,
    {"bos": "[CLS]", "eos": "[SEP]", "unk": "<unk>", "pad": "<pad>"}
    | {"cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"},
    ("cls", "sep"),
    0,
)
STYLES = {"t5": T5, "mt5": T5, "umt5": T5, "albert": ALBERT}
MOST_GAPS = 10_000


def style_of(path: Path, said: Fields) -> Style:
    """The style of a file: of the class that tokenizer_config.json names, or else of the folder's
    type of model. Raises UnreadError for any other."""
    named = said.get("tokenizer_class", str, "").removesuffix("Fast").removesuffix("Tokenizer")
    kind = named or str(Fields(path.parent / "config.json").look("model_type"))
    if kind.lower() not in STYLES:
        raise UnreadError(
            f"{path} is the tokenizer of a {kind} model, but cellformer reads such a file for T5 "
            f"and ALBERT only; {REMEDY}"
        )
    return STYLES[kind.lower()]


def tokenizer(path: Path, said: Fields, style: Style, ends: Ends, named: Sequence[str]) -> Any:
    """The library's tokenizer of a file; `said` is tokenizer_config.json, `ends` stand around every
    text, and `named` are the special tokens with a role. Raises InputError, or UnreadError for a
    file of another kind."""
    found, n_gaps = content(path), said.get("extra_ids", int, style.n_gaps) if style.n_gaps else 0
    if found.trainer.get(MODEL_TYPE, UNIGRAM) != UNIGRAM:
        raise UnreadError(f"{path} has no unigrams, but cellformer needs unigrams; {REMEDY}")
    if not 0 <= n_gaps <= MOST_GAPS:
        raise InputError(f"{said.path}: extra_ids is {n_gaps}; it must be from 0 to {MOST_GAPS:,}")
    gaps = [f"<extra_id_{n}>" for n in reversed(range(n_gaps))]
    pieces, scores = [*found.texts, *gaps], [*found.scores, *[0.0] * n_gaps]
    steps = steps_before(found.rules.get(CHARACTER_MAP, b""), said, style)
    always = style is T5 or said.get("add_prefix_space", bool, True)
    space = {"type": "Metaspace", "replacement": "▁", "split": True}
    space |= {"prepend_scheme": "always" if always else "never"}
    words = {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, space]}
    model = {"type": "Unigram", "unk_id": style.unknown}
    model |= {"vocab": [*zip(pieces, scores, strict=True)]}
    spec: dict[str, Any] = {"normalizer": None, "added_tokens": []}
    spec |= {"pre_tokenizer": words, "decoder": space, "model": model}
    if steps:
        spec["normalizer"] = {"type": "Sequence", "normalizers": steps}
    library.check(spec, str(path))
    with library.asked(f"{path}: its pieces"):
        inner = library.from_text(json.dumps(spec))
        kinds = [*found.kinds, *[Kind.CONTROL] * n_gaps]
        return finish(inner, pieces, whole(inner, said, named, pieces, kinds), ends)


def whole(
    inner: Any, said: Fields, named: Sequence[str], pieces: Sequence[str], kinds: Sequence[int]
) -> list[int]:
    """The kinds of pieces by which some stay whole, after all special tokens are added. If
    tokenizer_config.json lists tokens beside those with a role, only these stay whole."""
    beside = Fields(said.path, json_object(said.path))
    keys = (f"{key}_special_tokens" for key in ("extra", "additional"))
    given = [beside.get(key, list, []) for key in keys if key in beside.values]
    listed = [content_of(value) for value in given[0]] if given else []
    special = [*named, *(token for token in listed if token)]
    inner.add_special_tokens(special)
    kept = () if given else (Kind.CONTROL, Kind.USER_DEFINED)
    return [
        Kind.CONTROL if piece in special else kind if kind in kept else Kind.NORMAL
        for piece, kind in zip(pieces, kinds, strict=True)
    ]


def steps_before(charsmap: bytes, said: Fields, style: Style) -> list[dict[str, Any]]:
    """The normalizers, as in a tokenizer.json: ALBERT's own, then the file's map of characters."""
    steps: list[dict[str, Any]] = []
    if style is ALBERT:
        quotes = ("``", "''")
        steps += [{"type": "Replace", "pattern": {"String": old}, "content": '"'} for old in quotes]
        bare = not said.get("keep_accents", bool, False)
        steps += [{"type": "NFKD"}, {"type": "StripAccents"}] if bare else []
        steps += [{"type": "Lowercase"}] if said.get("do_lower_case", bool, True) else []
    if charsmap:
        text = base64.b64encode(charsmap).decode("ascii")
        steps.append({"type": "Precompiled", "precompiled_charsmap": text})
    return steps
