"""The parts of tokenizer_config.json that override a tokenizer.json.

Some classes of transformers build their steps themselves, from the options in tokenizer_config.json
or their own defaults, and take tokens alone from tokenizer.json (their `tokenization_*.py`, release
5). Other classes, such as `PreTrainedTokenizerFast`, take tokenizer.json as it is.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cellformer.engine.cells.fields import Fields, content_of

Spec = dict[str, Any]  # the content of a tokenizer.json

BERT = ("BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer")
ROBERTA = ("RobertaTokenizer", "XLMRobertaTokenizer", "CamembertTokenizer")
OF_BYTES = ("GPT2Tokenizer", "Qwen2Tokenizer", "GPTNeoXTokenizer", "RobertaTokenizer")
OF_SIGNS = ("XLMRobertaTokenizer", "CamembertTokenizer", "AlbertTokenizer")
AS_IT_IS = (  # model types whose tokenizer.json is taken as it is, whatever class is named
    *("ministral", "ministral3", "mistral", "mistral3", "mixtral", "nemotron", "persimmon"),
    *("granite", "granitemoe", "olmo2", "olmo3", "phi3", "phimoe", "stablelm", "gpt_bigcode"),
    *("glm", "glm4", "glm4_moe", "ernie4_5", "ernie4_5_moe", "internlm3", "modernbert"),
)
OF_TYPES = {  # where no file names a class
    **dict.fromkeys(("bert", "distilbert", "electra"), "BertTokenizer"),
    **dict.fromkeys(("gpt2", "gpt_neo", "gptj", "opt", "phi", "starcoder2"), "GPT2Tokenizer"),
    **dict.fromkeys(("roberta", "bart"), "RobertaTokenizer"),
    "t5": "T5Tokenizer",
    "xlm-roberta": "XLMRobertaTokenizer",
    "camembert": "CamembertTokenizer",
    "gpt_neox": "GPTNeoXTokenizer",
    **dict.fromkeys(("qwen2_moe", "qwen3", "qwen3_moe"), "Qwen2Tokenizer"),
}
ALIASES = {"BartTokenizer": "RobertaTokenizer"}  # classes that are others
BERT_OPTIONS = {  # option of tokenizer_config.json -> of tokenizer.json, and its default
    "do_lower_case": ("lowercase", True),
    "strip_accents": ("strip_accents", None),
    "tokenize_chinese_chars": ("handle_chinese_chars", True),
}
SIGN = "▁"  # SentencePiece's space


def heed(spec: Spec, said: Fields, config: Mapping[str, Any]) -> None:
    """Change the steps of a tokenizer.json as transformers does: `said` is
    tokenizer_config.json, `config` the model's config.json. Raises InputError for an option of a
    wrong type."""
    kind = class_of(said, config)
    prefix = said.optional("add_prefix_space", bool, None)
    if kind in BERT:
        of_bert(spec, said)
    elif kind in OF_BYTES:
        of_bytes(spec, bool(prefix), kind == "Qwen2Tokenizer")
    elif kind in OF_SIGNS and prefix is not None:
        for step in steps(spec.get("pre_tokenizer")):
            if step["type"] == "Metaspace":
                step["prepend_scheme"] = "always" if prefix else "never"
    elif kind == "LlamaTokenizer" and spec["model"].get("byte_fallback"):
        of_llama(spec, prefix is not False)
    elif kind == "T5Tokenizer" and spec["model"].get("type") == "Unigram":
        of_t5(spec, said)
    if kind in (*BERT, *ROBERTA):
        between(spec, said, *(("cls", "sep") if kind != "XLMRobertaTokenizer" else ("bos", "eos")))


def class_of(said: Fields, config: Mapping[str, Any]) -> str:
    """The class of transformers that reads a tokenizer."""
    kind = said.get("tokenizer_class", str, "") or config.get("tokenizer_class")
    model_type = str(config.get("model_type"))
    if model_type == "qwen2":  # whose files name others in error
        return "Qwen2Tokenizer"
    if model_type in AS_IT_IS:
        return ""
    named = str(kind).removesuffix("Fast") if kind else OF_TYPES.get(model_type, "")
    return ALIASES.get(named, named)


def steps(part: Any) -> Iterator[dict[str, Any]]:
    """The steps of a normalizer, a pre-tokenizer or a decoder."""
    if isinstance(part, dict):
        lists = [part[key] for key in ("normalizers", "pretokenizers", "decoders") if key in part]
        if not lists:
            yield part
        yield from (step for one in lists for each in one for step in steps(each))


def of_bert(spec: Spec, said: Fields) -> None:
    """BERT's normalizer with the options that tokenizer_config.json has."""
    for step in steps(spec.get("normalizer")):
        if step["type"] == "BertNormalizer":
            step |= {
                ours: said.optional(theirs, bool, default)
                for theirs, (ours, default) in BERT_OPTIONS.items()
            }


def of_bytes(spec: Spec, prefix: bool, splits: bool) -> None:
    """GPT-2's pre-tokenizer with or without a space before the text; `splits` if it has another
    pattern, and the space stands before each piece."""
    if prefix and not splits:
        spec["pre_tokenizer"] = {"type": "ByteLevel", "trim_offsets": True, "use_regex": True}
    for step in steps(spec.get("pre_tokenizer")):
        if step["type"] == "ByteLevel":
            step["add_prefix_space"] = prefix


def of_llama(spec: Spec, prefix: bool) -> None:
    """Llama's steps: every space becomes a sign. A sign also stands before the text, unless the
    text begins with one or `prefix` is False."""
    spec["normalizer"] = None
    spec["pre_tokenizer"] = {
        "type": "Metaspace",
        "replacement": SIGN,
        "prepend_scheme": "first" if prefix else "never",
        "split": False,
    }
    back: list[dict[str, Any]] = [
        {"type": "Replace", "pattern": {"String": SIGN}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ]
    strip = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
    spec["decoder"] = {"type": "Sequence", "decoders": back + [strip] * prefix}


def of_t5(spec: Spec, said: Fields) -> None:
    """T5's steps: words apart, a sign before each, and the end-of-text token behind the text."""
    sign = {"type": "Metaspace", "replacement": SIGN, "prepend_scheme": "always", "split": True}
    spec["pre_tokenizer"] = {
        "type": "Sequence",
        "pretokenizers": [{"type": "WhitespaceSplit"}, sign],
    }
    spec["decoder"] = sign
    mapped = (step for step in steps(spec.get("normalizer")) if step["type"] == "Precompiled")
    spec["normalizer"] = next(mapped, None)
    known, end = ids_of(spec), content_of(said.values.get("eos_token")) or "</s>"
    if end in known:
        put_around(spec, (), {end: known[end]}, end)


def ids_of(spec: Spec) -> dict[str, int]:
    """The ids of a tokenizer.json's tokens, added ones among them."""
    vocabulary = spec["model"]["vocab"]
    if isinstance(vocabulary, list):
        vocabulary = {piece: i for i, (piece, _) in enumerate(vocabulary)}
    added = {token["content"]: token["id"] for token in spec.get("added_tokens") or ()}
    return {**vocabulary, **added}


def between(spec: Spec, said: Fields, first: str, last: str) -> None:
    """Put a text between two special tokens, by their roles, where the vocabulary has both."""
    of_words = spec["model"].get("type") == "WordPiece"
    defaults = ("[CLS]", "[SEP]") if of_words else ("<s>", "</s>")
    known = ids_of(spec)
    tokens = [
        content_of(said.values.get(f"{role}_token")) or default
        for role, default in zip((first, last), defaults, strict=True)
    ]
    if all(token in known for token in tokens):
        put_around(spec, tokens[:1], {token: known[token] for token in tokens}, tokens[1])


def put_around(spec: Spec, first: Sequence[str], known: Mapping[str, int], last: str) -> None:
    """Have the special tokens `first` before a text, and `last` behind it; `known` are their
    ids."""
    before = [{"SpecialToken": {"id": token, "type_id": 0}} for token in first]
    behind = {"SpecialToken": {"id": last, "type_id": 0}}
    text = [{"Sequence": {"id": name, "type_id": 0}} for name in "AB"]
    spec["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [*before, text[0], behind],
        "pair": [*before, text[0], behind, text[1], behind],
        "special_tokens": {
            token: {"id": token, "ids": [i], "tokens": [token]} for token, i in known.items()
        },
    }
