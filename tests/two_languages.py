"""A translator with a vocabulary for each language: tokenizers learnt from ten sentences, and a
small Marian trained on them until it translates them."""

import json
import struct
from pathlib import Path
from typing import Any

from cellformer.engine.text import marian
from cellformer.engine.text.sentencepiece import unigram

PAIRS = {
    "the cat sleeps": "il gatto dorme",
    "the dog sleeps": "il cane dorme",
    "the cat eats fish": "il gatto mangia pesce",
    "the dog eats meat": "il cane mangia carne",
    "a bird sings": "un uccello canta",
    "a child reads": "un bambino legge",
    "the child eats fish": "il bambino mangia pesce",
    "the bird sleeps": "l'uccello dorme",
    "a dog reads": "un cane legge",
    "a cat sings": "un gatto canta",
}
UNKNOWN, CONTROL = 2, 3  # kinds of pieces in SentencePiece's files
LONGEST = 28  # tokens of a sentence
STEPS = 300
PADDING = 2  # its id, in both vocabularies


def number(value: int) -> bytes:
    """A varint."""
    return bytes([value & 127 | 128]) + number(value >> 7) if value > 127 else bytes([value])


def field(of: int, value: bytes) -> bytes:
    """A field of a protocol buffer: a message, or a text."""
    return number(of << 3 | 2) + number(len(value)) + value


def spm(pieces: list[tuple[str, float]]) -> bytes:
    """A SentencePiece file of unigrams, without normalization."""
    specials = [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), ("</s>", 0.0, CONTROL)]
    found = b""
    for text, score, kind in [*specials, *((*piece, 1) for piece in pieces)]:
        inner = field(1, text.encode()) + b"\x15" + struct.pack("<f", score)
        found += field(1, inner + b"\x18" + number(kind))
    return found + field(2, b"\x18\x01") + field(3, field(1, b"identity"))


def learnt(lines: list[str], size: int) -> list[tuple[str, float]]:
    """Unigram pieces with their scores."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    inner = Tokenizer(models.Unigram())
    inner.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=size, show_progress=False)
    inner.train_from_iterator(lines, trainer)
    return [tuple(piece) for piece in json.loads(inner.to_str())["model"]["vocab"]]


def write_tokenizer(folder: Path) -> tuple[int, int]:
    """Write both vocabularies; gives their sizes."""
    sizes = []
    for name, ids, lines, size in (
        ("source.spm", "vocab.json", [*PAIRS], 60),
        ("target.spm", "target_vocab.json", [*PAIRS.values()], 70),
    ):
        pieces = learnt(lines, size)
        (folder / name).write_bytes(spm(pieces))
        texts = ["</s>", "<unk>", "<pad>", *(text for text, _ in pieces)]
        (folder / ids).write_text(json.dumps({text: i for i, text in enumerate(texts)}))
        sizes.append(len(texts))
    said = {"tokenizer_class": "MarianTokenizer", "separate_vocabs": True}
    said |= {"source_lang": "en", "target_lang": "it"}
    (folder / "tokenizer_config.json").write_text(json.dumps(said))
    return sizes[0], sizes[1]


def trained(folder: Path, torch: Any, transformers: Any) -> None:
    """Train a Marian on the pairs, and save it with its tokenizer."""
    folder.mkdir(exist_ok=True)
    n_source, n_target = write_tokenizer(folder)
    torch.manual_seed(3)
    config = transformers.MarianConfig(
        vocab_size=n_source, decoder_vocab_size=n_target, share_encoder_decoder_embeddings=False,
        d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, dropout=0.0,
        max_position_embeddings=LONGEST, scale_embedding=True, activation_function="swish",
        pad_token_id=PADDING, decoder_start_token_id=PADDING, eos_token_id=0,
        forced_eos_token_id=0, bad_words_ids=[[PADDING]],
    )  # fmt: skip
    model = transformers.MarianMTModel(config)
    model.save_pretrained(folder)  # whose config the tokenizer's sizes are read from
    reader, target = marian.read(folder, n_target).reader, unigram(folder / "target.spm")
    ids = json.loads((folder / "target_vocab.json").read_text())
    rows = [
        (reader.encode(text), [*(ids[piece] for piece in target.cut(answer)), 0])
        for text, answer in PAIRS.items()
    ]
    source, labels = (
        torch.tensor([side + [empty] * (LONGEST - len(side)) for side in sides])
        for sides, empty in zip(zip(*rows, strict=True), (PADDING, -100), strict=True)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    model.train()
    for _ in range(STEPS):
        optimizer.zero_grad()
        model(source, attention_mask=(source != PADDING).long(), labels=labels).loss.backward()
        optimizer.step()
    model.eval().save_pretrained(folder)
