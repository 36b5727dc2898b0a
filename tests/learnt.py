"""Tokenizers of every kind, learnt by the `tokenizers` library from our own documents.

Those hold more than one alphabet, so that a vocabulary of some hundred pieces has to cut.
"""

import json
from collections.abc import Callable
from typing import Any

import tokenizers
from conftest import ROOT
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from engine.models.subwords import QWEN_WORDS

TEXTS = [(ROOT / name).read_text() for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")]
LINES = "\n".join(TEXTS).splitlines()
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
EDGES = ("<s>", "</s>")


def around(inner: Any, first: str, last: str | None = None) -> Any:
    """A post-processor that puts special tokens around a text."""
    names = [name for name in (first, last) if name]
    template = [first, "$A", last] if last else [first, "$A"]
    ids = [(name, inner.token_to_id(name)) for name in names]
    return processors.TemplateProcessing(single=template, special_tokens=ids)


def byte_level() -> Any:
    """GPT-2's kind."""
    inner = tokenizers.Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = ["<|endoftext|>", "<|user|>"]
    trainer = trainers.BpeTrainer(vocab_size=600, initial_alphabet=alphabet, special_tokens=special)
    inner.train_from_iterator(LINES, trainer)
    return inner


def byte_level_begun() -> Any:
    """Llama 3's kind: its pattern for words, and a begin-of-text token."""
    inner = byte_level()
    split = pre_tokenizers.Split(tokenizers.Regex(QWEN_WORDS), "isolated")
    plain = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    inner.pre_tokenizer = pre_tokenizers.Sequence([split, plain])
    inner.post_processor = around(inner, "<|endoftext|>")
    return inner


def sentence_pieces(prepend: bool = True) -> Any:
    """Llama's kind: spaces are ▁, what is in no piece is bytes, `<s>` begins a text."""
    learnt = tokenizers.Tokenizer(models.BPE(unk_token="<unk>"))
    learnt.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    trainer = trainers.BpeTrainer(
        vocab_size=500, limit_alphabet=90, special_tokens=["<unk>", *EDGES]
    )
    learnt.train_from_iterator(LINES, trainer)
    model = json.loads(learnt.to_str())["model"]
    pieces = ["<unk>", *EDGES, *BYTES]
    pieces += [p for p in sorted(model["vocab"], key=model["vocab"].get) if p not in pieces]
    merges = [tuple(pair) for pair in model["merges"]]
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    bpe = models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    inner = tokenizers.Tokenizer(bpe)
    spaces = normalizers.Replace(" ", "▁")
    inner.normalizer = normalizers.Sequence([normalizers.Prepend("▁")] * prepend + [spaces])
    back = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    inner.decoder = decoders.Sequence(back + [decoders.Strip(" ", 1, 0)] * prepend)
    inner.add_special_tokens(["<unk>", *EDGES])
    inner.post_processor = around(inner, "<s>")
    return inner


def unigram() -> Any:
    """T5's kind: the best path through pieces with a score, and `</s>` at the end."""
    inner = tokenizers.Tokenizer(models.Unigram())
    inner.normalizer = normalizers.NFKC()
    inner.pre_tokenizer = pre_tokenizers.Metaspace()
    inner.decoder = decoders.Metaspace()
    special = ["<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(vocab_size=500, special_tokens=special, unk_token="<unk>")
    inner.train_from_iterator(LINES, trainer)
    inner.post_processor = around(inner, "</s>")
    return inner


def word_pieces() -> Any:
    """BERT's kind, padded and cut to a length as sentence encoders are saved."""
    inner = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    inner.normalizer = normalizers.BertNormalizer()
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    inner.train_from_iterator(
        LINES, trainers.WordPieceTrainer(vocab_size=600, special_tokens=special)
    )
    inner.post_processor = around(inner, "[CLS]", "[SEP]")
    inner.enable_padding(length=20)
    inner.enable_truncation(8)
    return inner


KINDS: dict[str, Callable[[], Any]] = {
    "byte-level": byte_level,
    "byte-level with a beginning": byte_level_begun,
    "SentencePiece": sentence_pieces,
    "SentencePiece without a space before": lambda: sentence_pieces(prepend=False),
    "Unigram": unigram,
    "WordPiece": word_pieces,
}
