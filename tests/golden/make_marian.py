"""Write tests/golden/tokenizers/marian: a tokenizer as Marian's checkpoints have it, learnt from
Python's own manual, and what transformers makes of texts with it. Needs sentencepiece.

python tests/golden/make_marian.py
"""

import io
import json
import random
import sys
from pathlib import Path

import sentencepiece
import transformers

HERE = Path(__file__).parent
FOLDER = HERE / "tokenizers" / "marian"
sys.path.insert(0, str(HERE.parent))
from learnt import LINES, texts  # noqa: E402

SIZE = 220  # pieces of each language
RULES = {  # a normalizer's, where SentencePiece's own would be a file of 240 kB
    **{chr(0xFF01 + k): chr(0x21 + k) for k in range(94)},  # wide letters
    **dict.fromkeys("\n\t\u00a0\u3000\u200b▁", " "),
    **{"ﬁ": "fi", "½": "1/2", "e\u0301": "é", "a\u0308": "ä", "¨": " \u0308", "\x01": "", "²": "2"},
}
TRIED = [
    *("", " ", "hi", " hi", "  two  spaces ", "日本語 text", "A\nB", "I'm 1234 ok"),
    *(">>fr<< hello world", ">>de<< hallo", ">>fr<<", "text >>fr<< y", "a </s> b", "x<unk>y"),
    *("ﬁ ½ ¨ ｆｕｌｌ\u3000width", "e\u0301 한 가", "a\x01b\x01", "👍🏽🎉", "<pad>", "ü▁x▁"),
]


def learnt(lines: list[str]) -> bytes:
    """A model learnt from lines."""
    out, rules = io.BytesIO(), FOLDER / "rules.tsv"
    rules.write_text("".join(f"{codes(a)}\t{codes(b)}\n" for a, b in RULES.items()))
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(filter(str.strip, lines)),
        model_writer=out,
        vocab_size=SIZE,
        character_coverage=0.995,
        normalization_rule_tsv=str(rules),
        minloglevel=2,
    )
    rules.unlink()
    return out.getvalue()


def codes(text: str) -> str:
    """The characters of a text as a file of rules has them."""
    return " ".join(f"{ord(character):X}" for character in text)


def numbered(models: list[bytes]) -> dict[str, int]:
    """The ids of pieces of both languages, some of which Marian's training never met."""
    rng, found = random.Random(1), ["</s>", "<unk>"]
    for model in models:
        pieces = sentencepiece.SentencePieceProcessor(model_proto=model)
        found += [pieces.id_to_piece(i) for i in range(3, SIZE) if rng.random() < 0.97]
    return {piece: i for i, piece in enumerate(dict.fromkeys([*found, ">>fr<<", "日本", "<pad>"]))}


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    models = [learnt(LINES[-600:]), learnt(LINES[:600])]
    for name, model in zip(("source.spm", "target.spm"), models, strict=True):
        (FOLDER / name).write_bytes(model)
    ids = numbered(models)
    (FOLDER / "vocab.json").write_text(json.dumps(ids))
    said = {"tokenizer_class": "MarianTokenizer", "source_lang": "en", "target_lang": "fr"}
    (FOLDER / "tokenizer_config.json").write_text(json.dumps(said))
    tokenizer, rng = transformers.MarianTokenizer.from_pretrained(FOLDER), random.Random(2)
    given = [[text, tokenizer(text)["input_ids"]] for text in [*TRIED, *texts(120, 60, seed=3)]]
    drawn = [[rng.randrange(len(ids)) for _ in range(rng.randint(1, 9))] for _ in range(60)]
    decoded = [[i, tokenizer.decode(i, skip_special_tokens=True)] for i in drawn]
    decoded += [[i, tokenizer.decode(i, skip_special_tokens=True)] for _, i in given]
    expected = {"encoded": given, "decoded": decoded}
    (FOLDER / "expected.json").write_text(json.dumps(expected, indent=0) + "\n")
