"""A small random encoder-decoder with a trained tokenizer, and texts for it."""

import json
from functools import cache
from typing import Any

import numpy as np
from learnt import learnt
from tokenizers import Tokenizer

import cellformer as cf
from cellformer.engine.models.architectures import t5
from cellformer.engine.models.forward import weight_shapes
from cellformer.engine.text.subwords import Library

N_TOKENS, TEXT_LENGTH = 10, 40  # columns, and characters that are typed
SOURCES = [
    "the value is true",
    "a class of an object",
    "",
    "names in Python",
    "x",
    "What is a module?",
    "Ein Café über uns",
    "1 + 2 = 3",
    "return the same list",
    "an error is raised here",
    "</s> and <unk>",
    "日本",
]
SIZES: dict[str, Any] = {
    "d_model": 8, "n_ctx": 20, "n_source": 20, "n_layers": 1, "n_heads": 2, "d_head": 4, "d_mlp": 6,
    "n_encoder_layers": 2, "n_encoder_heads": 2, "d_encoder_mlp": 6, "n_buckets": 6, "farthest": 5,
    "activation": "relu", "norm": "rms", "final_norm": True, "norm_eps": 1e-6, "sqrt_d_head": 1.0,
}  # fmt: skip
CONFIG: dict[str, Any] = {
    "model_type": "t5", "d_model": 8, "d_kv": 4, "d_ff": 6, "num_layers": 2, "num_heads": 2,
    "num_decoder_layers": 1, "n_positions": 20, "relative_attention_num_buckets": 6,
    "relative_attention_max_distance": 5, "feed_forward_proj": "relu", "eos_token_id": 1,
    "decoder_start_token_id": 0, "pad_token_id": 0, "is_encoder_decoder": True,
    "tie_word_embeddings": False, "architectures": ["T5ForConditionalGeneration"],
}  # fmt: skip


@cache
def translator() -> cf.Model:
    """A random T5 whose answers differ with the source, and mostly end."""
    spec_of_words = json.loads(learnt("unigram of words").inner.to_str())
    spec_of_words["normalizer"] = None  # as T5's, whose steps these then are
    inner = Tokenizer.from_str(json.dumps(spec_of_words))
    n = inner.get_vocab_size()
    words = Library(inner, n, begin=0, ends=(1,))
    spec = t5.T5Spec(d_vocab=n, tied=False, scales_output=False, **SIZES)
    rng = np.random.default_rng(56)
    shapes = weight_shapes(t5.forward, spec)
    weights = {name: rng.normal(0, 0.8, shape) for name, shape in shapes.items()}
    for name, w in weights.items():  # so that answers differ with the source
        if name.endswith(".w"):
            weights[name] = np.abs(w) + 0.5
        if ("cross" in name and name.endswith("W_O")) or "distance" in name:
            weights[name] = 2 * w
    weights["W_U"] /= np.sqrt((weights["W_U"] ** 2).sum(axis=0))  # no word is likely by itself
    weights["W_U"][:, 1] *= 1.3  # but the end
    weights = {name: w.astype(np.float32).astype(np.float64) for name, w in weights.items()}
    config = CONFIG | {"vocab_size": n}
    return cf.Model(spec, weights, words, architecture=t5.forward, config=config)


def answer(model: cf.Model, text: str) -> list[int]:
    """The ids of the answer to a source sentence, as `cellformer generate` has them, from the first
    word to the end of the text."""
    source = model.vocabulary.encode(text)[:N_TOKENS]
    steps = cf.generate(model.reading(source), [model.spec.start], N_TOKENS - 1)
    found = [step.token for step in steps]
    (end,) = model.vocabulary.ends
    return found[: found.index(end)] if end in found else found
