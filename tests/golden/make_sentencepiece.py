"""Make a tokenizer.model as Llama's, and what SentencePiece itself makes of some texts.

    PYTHONPATH=.:tests python tests/golden/make_sentencepiece.py

Needs sentencepiece; 0.2.3 made what is here. Each text's ids are in sentencepiece.json,
beside sentencepiece.model.
"""

import io
import json
from pathlib import Path

import sentencepiece
from learnt import LINES, texts

HERE = Path(__file__).parent
file = io.BytesIO()
sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=iter(LINES),
    model_writer=file,
    vocab_size=700,
    model_type="bpe",
    byte_fallback=True,
    normalization_rule_name="identity",
    remove_extra_whitespaces=False,
    character_coverage=0.995,
    minloglevel=2,
)
(HERE / "sentencepiece.model").write_bytes(file.getvalue())
processor = sentencepiece.SentencePieceProcessor(model_proto=file.getvalue())
ids = {text: processor.encode(text) for text in texts(200, 60, seed=8)}
(HERE / "sentencepiece.json").write_text(json.dumps(ids, ensure_ascii=False) + "\n")
