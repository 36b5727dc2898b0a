"""Tokenizers as models of 2025 and 2026 have them, learnt from texts of many scripts."""

import random
from collections.abc import Callable
from functools import cache

from learnt import LINES
from learnt import texts as manual
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, trainers
from tokenizers import pre_tokenizers as pre

from cellformer.engine.text.tokenizer import Library
from cellformer.engine.text.vocabularies import QWEN2

SCRIPTS = (
    "春眠不觉晓，处处闻啼鸟。今天天气真好，123456789元！",
    "国の長いトンネルを抜けると雪国であった。カタカナ１２３ か\u3099 カ\uff9e",
    "مرحبا بالعالم، كيف حالُكَ؟ السَّلامُ عليكم ١٢٣٤ ﷺ",
    "בְּרֵאשִׁית בָּרָא אֱלֹהִים שלום עולם 2024",
    "नमस्ते दुनिया, हिन्दी में क़लम क\u093cलम १२३ क्षत्रिय",
    "สวัสดีชาวโลก ที่นี่ประเทศไทย ๑๒๓",
    "안녕하세요 세계 한국어 각각 12345 ᄀ\u1161\u11a8 가\u11a8",
    "😀🎉👍🏽👨\u200d👩\u200d👧 🏴\U000e0067\U000e0062\U000e007f ❤\ufe0f ok",
    "def f(x):\n\tif x != 3:\r\n        return x[1:]  # note // ok/\n\n\n",
    "1234567 3.14159 1,000,000 ½ ² Ⅳ ①",
    "İstanbul ıÇŞ ǅ ǆ ﬁne oﬃce Å\u212b ế ệ nai\u0308ve Cafe\u0301 q\u0307\u0323 e\u0302\u0323",
    "it's IT'S We'RE they'll 'ſ don't I'd'd x's ’s",
    "  \u00a0\u200b\u2003 \u0085 a\u2028b \t\n \r\n \u1680\u3000",
    "µλ Ωmega \u2126 ΑΒΓ ς Σ ß ẞ ŉ ʼn ﬆ ΐ",
    "camelCaseWord HTTPServer XMLHttpRequest2 snake_case a/b//c/\n/ #include<x.h>",
    "\u0301 a\u0301\u0301 \u0e31 \u093c क\u093c \u0344 a\u0315\u0300\u05ae\u0300b",
    "<mask> <|im_start|>user\n<mask>x<|im_end|> <s>  <mask>",
)


def texts(n: int, length: int, seed: int = 0) -> list[str]:
    """Random texts of at most so many characters, in part of several scripts."""
    rng = random.Random(seed)

    def cut(most: int) -> str:
        line = rng.choice(SCRIPTS)
        at = rng.randrange(len(line))
        return line[at : at + rng.randint(1, most)]

    def one() -> str:
        kind = rng.random()
        if kind < 0.5:
            return cut(length)
        if kind < 0.9:
            parts = (cut(4) + rng.choice(["", "", " ", "\n"]) for _ in range(rng.randint(1, 6)))
            return "".join(parts)[:length]
        return manual(1, length, rng.randrange(1_000_000))[0]

    return [one() for _ in range(n)]


O200K = (  # of gpt-oss, Llama 4, Phi-4 mini
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
TEKKEN = O200K.replace("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "").replace("{1,3}", "")  # of Mistral
QWEN35 = QWEN2.replace(r"?\p{L}+", r"?[\p{L}\p{M}]+").replace(r"\s\p{L}\p{N}", r"\s\p{L}\p{M}\p{N}")
DEEPSEEK = (  # V3 and R1
    r"\p{N}{1,3}",
    "[一-龥぀-ゟ゠-ヿ]+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
)
CODER = ("[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+")  # of DeepSeek's older coder
CLIP = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
GPT4 = (  # with possessive quantifiers, which never give back what they have taken
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*"
    r"|\s*[\r\n]|\s+(?!\S)|\s+"
)
MARKS = [AddedToken("<mask>", lstrip=True, special=True), "<|im_start|>", "<|im_end|>"]


def _learnt(inner: Tokenizer, size: int, suffix: str = "", **how: object) -> Tokenizer:
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=["<unk>", "<s>"],
        show_progress=False,
        **({"end_of_word_suffix": suffix} if suffix else {}),
        **how,
    )
    inner.train_from_iterator([*SCRIPTS * 9, *LINES[:800]], trainer)
    inner.add_special_tokens(MARKS)
    return inner


def _bytes(
    *splits: pre.PreTokenizer, normalizer: normalizers.Normalizer | None = None, **how: str
) -> Tokenizer:
    found = Tokenizer(models.BPE(**how))
    found.pre_tokenizer = pre.Sequence([*splits, pre.ByteLevel(False, use_regex=False)])
    found.decoder = decoders.ByteLevel()
    if normalizer:
        found.normalizer = normalizer
    alphabet = pre.ByteLevel.alphabet()
    return _learnt(found, 640, how.get("end_of_word_suffix", ""), initial_alphabet=alphabet)


def _characters(
    splitting: pre.PreTokenizer,
    normalizer: normalizers.Normalizer | None = None,
    **how: object,
) -> Tokenizer:
    found = Tokenizer(models.BPE(unk_token="<unk>", **how))
    found.pre_tokenizer = splitting
    if normalizer:
        found.normalizer = normalizer
    return _learnt(found, 640, str(how.get("end_of_word_suffix", "")), limit_alphabet=160)


def _word_pieces(splitting: pre.PreTokenizer) -> Tokenizer:
    found = Tokenizer(models.WordPiece(unk_token="<unk>"))
    found.normalizer = normalizers.BertNormalizer(lowercase=False)
    found.pre_tokenizer = splitting
    trainer = trainers.WordPieceTrainer(
        vocab_size=500, special_tokens=["<unk>", "<s>"], show_progress=False
    )
    found.train_from_iterator([*SCRIPTS * 9, *LINES[:800]], trainer)
    found.add_special_tokens(MARKS)
    return found


def _split(pattern: str, behavior: str = "isolated", invert: bool = False) -> pre.PreTokenizer:
    return pre.Split(Regex(pattern), behavior, invert)


def _gpt2() -> pre.PreTokenizer:
    return pre.ByteLevel(add_prefix_space=False)


def _clip() -> Tokenizer:
    spaces = normalizers.Replace(Regex(r"\s+"), " ")
    normalizer = normalizers.Sequence([normalizers.NFC(), spaces, normalizers.Lowercase()])
    split = _split(CLIP, "removed", invert=True)
    return _bytes(split, normalizer=normalizer, end_of_word_suffix="</w>", unk_token="<unk>")


KINDS: dict[str, Callable[[], Tokenizer]] = {
    "o200k": lambda: _bytes(_split(O200K)),
    "tekken": lambda: _bytes(_split(TEKKEN)),
    "qwen3.5": lambda: _bytes(_split(QWEN35), normalizer=normalizers.NFC()),
    "deepseek": lambda: _bytes(*map(_split, DEEPSEEK)),
    "deepseek coder": lambda: _bytes(*map(_split, CODER), pre.Digits(individual_digits=True)),
    "gpt-4": lambda: _bytes(_split(GPT4)),
    "digits": lambda: _bytes(pre.Digits(individual_digits=True), _split(QWEN2)),
    "digits grouped": lambda: _bytes(pre.Digits(), _split(QWEN2)),
    "bloom": lambda: _bytes(_split(r" ?[^(\s|[.,!?…。，、।۔،])]+")),
    "bytes of words": lambda: _bytes(pre.Whitespace()),
    "punctuation": lambda: _bytes(pre.WhitespaceSplit(), pre.Punctuation("contiguous")),
    "merged": lambda: _bytes(_split(r"\s", "merged_with_next"), _split("[aé一]", "contiguous")),
    "nfkc lower": lambda: _bytes(
        _split(QWEN2),
        normalizer=normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()]),
    ),
    "no accents": lambda: _bytes(
        _split(QWEN2),
        normalizer=normalizers.Sequence(
            [normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase()]
        ),
    ),
    "nfd": lambda: _bytes(_split(QWEN35), normalizer=normalizers.NFD()),
    "clip": _clip,
    "openai-gpt": lambda: _characters(
        pre.BertPreTokenizer(), normalizers.BertNormalizer(), end_of_word_suffix="</w>"
    ),
    "bpe of words": lambda: _characters(pre.Whitespace()),
    "bpe at spaces": lambda: _characters(pre.WhitespaceSplit(), fuse_unk=True),
    "metaspace never": lambda: _characters(
        pre.Metaspace(prepend_scheme="never"), normalizers.NFKC(), fuse_unk=True
    ),
    "metaspace whole": lambda: _characters(
        pre.Metaspace(prepend_scheme="never", split=False), normalizers.NFKC()
    ),
    "wordpiece of words": lambda: _word_pieces(pre.Whitespace()),
    "wordpiece at spaces": lambda: _word_pieces(pre.WhitespaceSplit()),
    "wordpiece digits": lambda: _word_pieces(
        pre.Sequence([pre.Whitespace(), pre.Digits(individual_digits=True)])
    ),
}


@cache
def of_scripts(kind: str) -> Library:
    """A tokenizer of a kind."""
    inner = KINDS[kind]()
    return Library(inner, inner.get_vocab_size())
