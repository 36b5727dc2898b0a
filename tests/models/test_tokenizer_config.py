"""What tokenizer_config.json says against tokenizer.json: ids as AutoTokenizer gives them."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from learnt import LINES, learnt, texts
from tokenizers import Tokenizer, models, trainers
from tokenizers import pre_tokenizers as pre

from cellformer.engine import InputError
from cellformer.engine.text.tokenizer import load_tokenizer

pytestmark = pytest.mark.slow

EOT = "<|endoftext|>"
OWN = {f"{part}_token": EOT for part in ("bos", "eos", "cls", "sep", "unk", "pad", "mask")}
PREFIX = [{}, {"add_prefix_space": True}, {"add_prefix_space": False}]
OF_BERT: list[dict[str, Any]] = [
    {},
    {"do_lower_case": False},
    {"do_lower_case": True},
    {"strip_accents": False},
    {"do_lower_case": False, "strip_accents": True},
    {"tokenize_chinese_chars": False},
]
BOTH = [{"add_bos_token": True, "add_eos_token": True}, {"add_bos_token": False}]
# a learnt tokenizer, the model type, the class named, and options
CASES = [
    *[("gpt2", "gpt2", "GPT2Tokenizer", o) for o in [*PREFIX, *BOTH]],
    *[("gpt2 with a space before", "gpt2", None, o) for o in PREFIX],
    *[("gpt2 with a space before", "llama", "PreTrainedTokenizerFast", o) for o in PREFIX],
    *[("smollm", "llama", "GPT2TokenizerFast", o) for o in PREFIX],
    *[("qwen2", "qwen2", "PreTrainedTokenizerFast", o) for o in PREFIX],
    *[("qwen2", "qwen3", "Qwen2Tokenizer", o) for o in PREFIX],
    *[("gpt2", "roberta", "RobertaTokenizer", OWN | o) for o in PREFIX],
    *[("gpt2", "bart", kind, OWN | o) for o in PREFIX for kind in ("BartTokenizerFast", None)],
    *[("t5", "t5", kind, {"extra_ids": 0}) for kind in ("T5TokenizerFast", None)],
    *[("sentencepiece", "llama", "LlamaTokenizer", o) for o in [*PREFIX, *BOTH]],
    *[("sentencepiece", "mistral", "LlamaTokenizerFast", o) for o in PREFIX],
    *[("bert", "bert", "BertTokenizer", o) for o in OF_BERT],
    *[("bert cased", "distilbert", "DistilBertTokenizerFast", o) for o in OF_BERT],
    *[("bert cased", "bert", None, o) for o in OF_BERT],
    *[("bert cased", "bert", "PreTrainedTokenizerFast", o) for o in OF_BERT],
    *[("xlm-roberta", "xlm-roberta", "XLMRobertaTokenizerFast", o) for o in PREFIX],
]


@pytest.fixture(scope="module")
def specs() -> Iterator[Any]:
    """The content of tokenizer.json by the kind of tokenizer."""
    own = {"xlm-roberta": unigram(("<s>", "<pad>", "</s>", "<unk>", "<mask>"))}
    own["t5"] = unigram(("<pad>", "</s>", "<unk>"))
    yield {kind: learnt(kind).inner.to_str() for kind, *_ in CASES if kind not in own} | own


def unigram(marks: Sequence[str]) -> str:
    """A Unigram with the steps of XLM-RoBERTa, and with special tokens."""
    inner = Tokenizer(models.Unigram())
    inner.pre_tokenizer = pre.Sequence([pre.WhitespaceSplit(), pre.Metaspace()])
    trainer = trainers.UnigramTrainer(
        vocab_size=400, unk_token="<unk>", special_tokens=list(marks), show_progress=False
    )
    inner.train_from_iterator(LINES[-600:], trainer)
    return str(inner.to_str())


def folder(path: Path, spec: str, model_type: str, kind: str | None, options: Any) -> Path:
    path.mkdir(exist_ok=True)
    named = {"tokenizer_class": kind} if kind else {}
    (path / "tokenizer.json").write_text(spec)
    (path / "config.json").write_text(json.dumps({"model_type": model_type}))
    (path / "tokenizer_config.json").write_text(json.dumps(named | options))
    return path


TRIED = ["Héllo Wörld  ÀÉ", "hi", " hi", "", "  two  spaces ", "日本語 text", "A\nB", "I'm 1234 ok"]


@pytest.mark.parametrize("with_processor", [True, False])
def test_ids_equal_auto_tokenizer(specs, with_processor, tmp_path, transformers) -> None:
    transformers.utils.logging.set_verbosity_error()
    for kind, *said in CASES:
        spec = specs[kind]
        if not with_processor:
            spec = json.dumps(json.loads(spec) | {"post_processor": None})
        at = folder(tmp_path / "model", spec, *said)
        theirs = transformers.AutoTokenizer.from_pretrained(at)
        ours = load_tokenizer(at, len(theirs))
        for text in [*TRIED, *texts(25, 50, seed=3)]:
            assert ours.encode(text) == theirs.encode(text), (kind, said, text)


def test_options_of_another_type_are_refused(specs, tmp_path: Path) -> None:
    at = folder(tmp_path / "m", specs["bert"], "bert", "BertTokenizer", {"do_lower_case": "no"})
    with pytest.raises(InputError, match="'do_lower_case' is 'no', but must have the type bool"):
        load_tokenizer(at, 360)
