"""Small tokenizers of every kind, trained by the `tokenizers` library, and random texts."""

import json
import random
from collections.abc import Callable
from functools import cache
from pydoc_data import topics

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, processors, trainers
from tokenizers import pre_tokenizers as pre

from cellformer.engine.text.tokenizer import Library
from cellformer.engine.text.vocabularies import LLAMA3, QWEN2

LINES = "\n".join(topics.topics.values())[:150_000].splitlines()  # Python's own manual
LINES += 20 * [
    "Ein Café über naïve Ägypter, 1234 5678 ñandú's don't I'll We'Re THEY'VE",
    "x = 42;  y\t= 'abc' + \"déjà\" // 😀 🎉",
    "日本語 текст",
]
MARKS = ["<s>", "</s>", "<unk>"]
SIGNS = "a|the|'s|'S|'re|'LL|'|don't| |  |   |\n|\t|\n\n|1|12|2024|!|...|?!|,|(|\"|-|_|<"
WORDS = "é|ü|Ñ|ß|İ|😀|👍🏽|日本|я|²|½|Zoo|Once upon a time|KING|Hello|’s|🎉 x|한|ა"
ODD = "\u00a0|▁|\u0301|ﬁ|Å|ſ|'ſ"
ATOMS = "|".join((SIGNS, WORDS, ODD)).split("|")


def texts(n: int, length: int, seed: int = 0) -> list[str]:
    """Random texts of at most so many characters: words of the manual, ASCII, odd signs; some are
    empty."""
    rng = random.Random(seed)

    def one() -> str:
        kind = rng.random()
        if kind < 0.04:
            return ""
        if kind < 0.4:
            words = rng.choice(LINES).split(" ")
            return " ".join(words[: rng.randint(1, 8)])
        if kind < 0.6:
            return "".join(chr(rng.randint(32, 126)) for _ in range(rng.randint(1, length)))
        return "".join(rng.choice(ATOMS) for _ in range(rng.randint(1, 9)))

    return [one()[:length] for _ in range(n)]


def _bytes(
    splitting: pre.PreTokenizer, normalizer: normalizers.Normalizer | None = None, size: int = 480
) -> Tokenizer:
    found = Tokenizer(models.BPE())
    found.pre_tokenizer = splitting
    found.decoder = decoders.ByteLevel()
    if normalizer:
        found.normalizer = normalizer
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        initial_alphabet=pre.ByteLevel.alphabet(),
        special_tokens=["<|endoftext|>"],
        show_progress=False,
    )
    found.train_from_iterator(LINES, trainer)
    return found


def _sentencepiece(size: int = 480) -> Tokenizer:
    """Byte pairs as in Llama: the space is a sign, and what has no piece is bytes."""
    found = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    found.pre_tokenizer = pre.Metaspace()
    of_bytes = [f"<0x{b:02X}>" for b in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=MARKS + of_bytes,
        limit_alphabet=70,
        show_progress=False,
    )
    found.train_from_iterator(LINES, trainer)
    spec = json.loads(found.to_str())
    spec["pre_tokenizer"] = None
    sign = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    parts = [{"type": "Prepend", "prepend": "▁"}, sign]
    spec["normalizer"] = {"type": "Sequence", "normalizers": parts}
    spec["added_tokens"] = [t for t in spec["added_tokens"] if t["content"] in MARKS]
    found = Tokenizer.from_str(json.dumps(spec))
    back = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    found.decoder = decoders.Sequence([*back, decoders.Strip(" ", 1, 0)])
    _between(found, "<s> $A", [("<s>", 0)])
    return found


def _gemma() -> Tokenizer:
    """The same without a space before the text, split at spaces that have become signs."""
    spec = json.loads(_sentencepiece().to_str())
    spec["normalizer"] = spec["normalizer"]["normalizers"][1]
    spec["pre_tokenizer"] = {
        "type": "Split",
        "pattern": {"String": " "},
        "behavior": "MergedWithPrevious",
        "invert": False,
    }
    spec["decoder"]["decoders"].pop()
    return Tokenizer.from_str(json.dumps(spec))


def _wordpiece(lowercase: bool) -> Tokenizer:
    found = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    found.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    found.pre_tokenizer = pre.BertPreTokenizer()
    found.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    found.train_from_iterator(
        LINES,
        trainers.WordPieceTrainer(vocab_size=360, special_tokens=special, show_progress=False),
    )
    # The trainer numbers equal counts in any order; sorted pieces make every run the same.
    pieces = special + sorted({*found.get_vocab()} - {*special})
    vocab = {piece: i for i, piece in enumerate(pieces)}
    found.model = models.WordPiece(vocab, unk_token="[UNK]")
    _between(found, "[CLS] $A [SEP]", [("[CLS]", 2), ("[SEP]", 3)])
    return found


def _unigram(
    splitting: pre.PreTokenizer,
    normalizer: normalizers.Normalizer | None = None,
) -> Tokenizer:
    found = Tokenizer(models.Unigram())
    found.pre_tokenizer = splitting
    found.decoder = decoders.Metaspace()
    if normalizer:
        found.normalizer = normalizer
    trainer = trainers.UnigramTrainer(
        vocab_size=500, unk_token="<unk>", special_tokens=MARKS, show_progress=False
    )
    found.train_from_iterator(LINES[-600:], trainer)  # as many pieces as of all, far sooner
    _between(found, "$A </s>", [("</s>", 1)])
    return found


def _between(found: Tokenizer, form: str, special: list[tuple[str, int]]) -> None:
    found.post_processor = processors.TemplateProcessing(single=form, special_tokens=special)


def _llama3() -> Tokenizer:
    found = _bytes(_split(LLAMA3))
    _between(found, "<|endoftext|> $A", [("<|endoftext|>", 0)])
    return found


def _split(pattern: str) -> pre.PreTokenizer:
    bytes_alone = pre.ByteLevel(add_prefix_space=False, use_regex=False)
    return pre.Sequence([pre.Split(Regex(pattern), "isolated"), bytes_alone])


def _one_space() -> normalizers.Normalizer:
    return normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])


def _as_albert() -> normalizers.Normalizer:
    """Quotes replaced, accents taken off, small letters; spaces as SentencePiece has them."""
    quotes = [normalizers.Replace(pair, '"') for pair in ("``", "''")]
    letters = [normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]
    ends = [normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(" {2,}"), "▁")]
    return normalizers.Sequence([*quotes, normalizers.Nmt(), *letters, *ends])


KINDS: dict[str, Callable[[], Tokenizer]] = {
    "gpt2": lambda: _bytes(pre.ByteLevel(add_prefix_space=False), size=800),
    "gpt2 with a space before": lambda: _bytes(pre.ByteLevel(add_prefix_space=True)),
    "llama3": _llama3,
    "qwen2": lambda: _bytes(_split(QWEN2), normalizers.NFC()),
    "smollm": lambda: _bytes(
        pre.Sequence([pre.Digits(individual_digits=True), pre.ByteLevel(add_prefix_space=False)])
    ),
    "sentencepiece": _sentencepiece,
    "gemma": _gemma,
    "bert": lambda: _wordpiece(lowercase=True),
    "bert cased": lambda: _wordpiece(lowercase=False),
    "unigram": lambda: _unigram(pre.Metaspace()),
    "unigram whole": lambda: _unigram(pre.Metaspace(prepend_scheme="first", split=False)),
    "unigram nfkc": lambda: _unigram(pre.Metaspace(), _one_space()),
    "unigram albert": lambda: _unigram(pre.Metaspace(), _as_albert()),
    "unigram of words": lambda: _unigram(
        pre.Sequence([pre.WhitespaceSplit(), pre.Metaspace()]), normalizers.NFKC()
    ),
}


@cache
def learnt(kind: str) -> Library:
    """A tokenizer of a kind."""
    inner = KINDS[kind]()
    return Library(inner, inner.get_vocab_size())


def fewer(kind: str, n: int) -> Library:
    """A tokenizer of a kind with its first n pieces alone, as if no more had been learnt."""
    spec = json.loads(learnt(kind).inner.to_str())
    model = spec["model"]
    model["vocab"] = pieces = {piece: i for piece, i in model["vocab"].items() if i < n}
    if "merges" in model:
        model["merges"] = [pair for pair in model["merges"] if "".join(pair) in pieces]
    return Library(Tokenizer.from_str(json.dumps(spec)), n)
