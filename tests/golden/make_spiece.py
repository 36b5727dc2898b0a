"""Make spiece.model as in folders of T5 and ALBERT, and the ids that transformers gives texts.

    PYTHONPATH=.:tests python tests/golden/make_spiece.py

Needs sentencepiece, protobuf and transformers; 0.2.3, 7.36 and 5.24 made what is here. Each folder
of tests/golden/spiece has config.json, spiece.model, and ids.json: for each of several
tokenizer_config.json, the ids of each text.
"""

import io
import json
from pathlib import Path

import sentencepiece
import transformers
from learnt import LINES, texts

FOLDER = Path(__file__).parent / "spiece"
RULES = {  # of the map of characters: some letters, a wide one, spaces, what is left out
    "ﬁ": "fi", "Ａ": "A", "½": "1⁄2", "\u00a0": " ", "\t": " ", "\n": " ", "\u200b": "",
}  # fmt: skip
OF_T5 = {"vocab_size": 300, "pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
OF_ALBERT = {
    "vocab_size": 200, "pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1,
    "control_symbols": ["[CLS]", "[SEP]"], "user_defined_symbols": ["[MASK]", "(", "-"],
}  # fmt: skip
PLAIN = {"normalization_rule_name": "identity", "remove_extra_whitespaces": False}
FIVE = {"extra_ids": 5, "additional_special_tokens": [f"<extra_id_{n}>" for n in range(5)]}
ALBERTS = ({}, {"do_lower_case": False}, {"keep_accents": True, "additional_special_tokens": None})
KINDS = {  # the model, how its file is trained, and what is said beside it
    "t5": ("t5", OF_T5, ({}, FIVE, {"extra_ids": 0, "tokenizer_class": "T5TokenizerFast"})),
    "mt5": ("mt5", OF_T5 | PLAIN | {"byte_fallback": True, "vocab_size": 460}, ({}, FIVE)),
    "albert": ("albert", OF_ALBERT, (*ALBERTS, {"add_prefix_space": False})),
}
ODD = (
    "  two  spaces ", "Hello <extra_id_0> and<extra_id_99>.", "a\u00a0b\tc\nd", "ﬁne Ａ½ é e\u0301",
    "``quoted'' text", "[MASK] [CLS] a[SEP](b-c)", "<unk> <pad></s>", "▁a ▁▁ b", "中文 字",
    "…... ... .. ,,,", "\u200bx <0x41>", "İstanbul ẞ", "<extra_id_4><extra_id_5>",
)  # fmt: skip


def trained(path: Path, options: dict) -> None:
    """Write a spiece.model, learnt from a manual's lines."""
    rules = path.with_name("rules.tsv")
    codes = (
        " ".join(f"{ord(c):X}" for c in old) + "\t" + " ".join(f"{ord(c):X}" for c in new)
        for old, new in RULES.items()
    )
    rules.write_text("\n".join(codes) + "\n")
    own = {} if "normalization_rule_name" in options else {"normalization_rule_tsv": str(rules)}
    file = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES),
        model_writer=file,
        model_type="unigram",
        hard_vocab_limit=False,
        minloglevel=2,
        **options,
        **own,
    )
    path.write_bytes(file.getvalue())
    rules.unlink()


def ids_of(folder: Path, said: dict) -> dict:
    """What transformers makes of the texts, with and without special tokens."""
    beside = folder / "tokenizer_config.json"
    beside.write_text(json.dumps(said))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    beside.unlink()
    found = [*ODD, *texts(60, 60, seed=8)]
    return {"said": said, "ids": {text: tokenizer(text).input_ids for text in found}}


for name, (kind, options, beside) in KINDS.items():
    folder = FOLDER / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"model_type": kind}) + "\n")
    trained(folder / "spiece.model", options)
    rows = [ids_of(folder, said) for said in beside]
    (folder / "ids.json").write_text(json.dumps(rows, ensure_ascii=False) + "\n")
