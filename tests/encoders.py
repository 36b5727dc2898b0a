"""Small random encoders with trained tokenizers, and pairs of sentences."""

from functools import cache
from typing import Any

import numpy as np
from learnt import learnt
from tokenizers import AddedToken, Tokenizer, processors

import cellformer as cf
from cellformer.engine.models.architectures import bert, llama
from cellformer.engine.models.architectures.llama import LlamaSpec
from cellformer.engine.models.forward import weight_shapes
from cellformer.engine.models.spec import ModelSpec
from cellformer.engine.text.subwords import Library

N_TOKENS = 10  # with room to spare: what the library learns is not the same in every process
TEXT_LENGTH = 45  # characters that are typed: as the usual 60, in fewer cells
PAIRS = [
    ("the value is true", "this one is false"),
    ("", "a class of an object"),
    ("Names in Python", "names in python"),
    ("x", "if it is not found, an error is raised"),
    ("What is a module?", "What's a module!"),
    ("for each item of the list", "list items, each in turn"),
    ("1 + 2 = 3", "12 times"),
    ("the the the the the the the the the the the", "short"),
    ("  two spaces  ", "two spaces"),
    ("a function call", "the call of a function"),
    ("Ein Café über uns", "Ein Cafe uber uns"),
    ("return", "returns"),
    ("an exception is raised", "an exception was raised"),
    ("and so on ...", "?!"),
    ("strings are immutable", "lists are mutable"),
    ("while True:", "for ever"),
    ("[SEP]", "[MASK] and [MASK]"),
    ("zip", "unzip"),
    ("the object", ""),
    ("same", "same"),
]
SIZES: dict[str, Any] = {
    "d_model": 8, "n_layers": 1, "n_heads": 2, "d_head": 4, "d_mlp": 6,
    "n_positions": 26, "position": "learned", "norm": "layer", "norm_after": True,
    "final_norm": True, "bias": True, "causal": False, "tied": True, "activation": "gelu",
}  # fmt: skip


CONFIG: dict[str, Any] = {
    "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 6,
    "max_position_embeddings": 26, "hidden_act": "gelu", "type_vocab_size": 2, "pad_token_id": 1,
}  # fmt: skip


def byte_level() -> Tokenizer:
    """A tokenizer as RoBERTa's: byte pairs, <s> before and </s> after, a mask that takes the space
    before it."""
    found = Tokenizer.from_str(learnt("gpt2").inner.to_str())
    found.add_special_tokens(["<s>", "</s>", AddedToken("<mask>", lstrip=True, special=True)])
    ends = [(text, found.token_to_id(text)) for text in ("<s>", "</s>")]
    found.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=ends)
    return found


@cache
def encoder(kind: str) -> cf.Model:
    """A random model: "sentence", a decoder's "last token", or for masked words as
    BERT ("bert") or RoBERTa ("roberta")."""
    if kind == "last token":
        return last_token()
    inner = byte_level() if kind == "roberta" else learnt("bert").inner
    n = inner.get_vocab_size()
    gives = "sentence" if kind == "sentence" else "masked word"
    first = 2 if kind == "roberta" else 0
    sizes = SIZES | {"n_ctx": SIZES["n_positions"] - first, "first_position": first}
    spec = ModelSpec(d_vocab=n, gives=gives, n_segments=2, norm_eps=1e-12, **sizes)
    config = CONFIG | {"vocab_size": n, "model_type": "roberta" if first else "bert"}
    config["architectures"] = ["BertModel" if kind == "sentence" else "BertForMaskedLM"]
    rng = np.random.default_rng(4)
    shapes = weight_shapes(bert.forward, spec)
    weights = {name: rng.normal(0, 0.5, shape) for name, shape in shapes.items()}
    for name in weights:  # so that sentences differ: gains about 1, small biases
        leaf = name.rpartition(".")[2]
        weights[name] = weights[name] * (0.1 if leaf.startswith("b") else 1.0) + (leaf == "w")
    weights = {name: w.astype(np.float32).astype(np.float64) for name, w in weights.items()}
    return cf.Model(spec, weights, Library(inner, n), architecture=bert.forward, config=config)


def last_token() -> cf.Model:
    """A random llama that gives the vector of a sentence's last token."""
    inner = learnt("bert").inner
    n = inner.get_vocab_size()
    spec = LlamaSpec(
        d_vocab=n, d_model=8, n_ctx=26, n_layers=1, n_heads=2, d_head=4, d_mlp=6, activation="silu",
        position="rotary", norm="rms", final_norm=True, gives="sentence", pooling="last",
        unit_length=True,
    )  # fmt: skip
    rng, shapes = np.random.default_rng(4), weight_shapes(llama.forward, spec)
    weights = {name: rng.normal(0, 0.5, shape) for name, shape in shapes.items()}
    return cf.Model(spec, weights, Library(inner, n), architecture=llama.forward)


def cosine(model: cf.Model, *texts: str) -> float:
    """The cosine of two sentences, each by itself in as many places as it has tokens."""
    u, v = (
        model.graph(model.vocabulary.encode(text)[:N_TOKENS]).values["vector"][0] for text in texts
    )
    return float(u @ v / np.sqrt(u @ u) / np.sqrt(v @ v))
