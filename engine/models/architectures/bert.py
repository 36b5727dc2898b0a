"""BERT (Devlin et al. 2019, section 3): every token attends to all others; norms follow residual
sums.

The output is a score for each word at a masked token (a dense layer and a norm come first), or for
each label of the text or of a token (see `classes`), or one vector for the sentence (see
`pooling`), as in MiniLM and other sentence-transformers models.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from cellformer.engine.cells.access import EVERYTHING, Mask
from cellformer.engine.cells.block import Block
from cellformer.engine.models import ops, parts, sentence_modules
from cellformer.engine.models.foreign import (
    Config,
    Heads,
    Names,
    Pieces,
    grouped_heads,
    layout,
    norm,
    outside,
)
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.pooling import pool
from cellformer.engine.models.spec import CLASSES, Activation, ModelSpec

MODEL_TYPES = ("bert",)
EPS = "layer_norm_eps"  # the config's name for what keeps its norms' divisors above zero
UNREAD = ("*.pooler.*", "cls.*")  # of tasks; `cls.predictions` where no word is read out
# a head's bias of scores [n_tokens, n_tokens], by its part of the graph, its number, its queries
# and keys, and what scores are multiplied by
Bias = Callable[[Forward, int, Block, Block, Block], Block]


def forward(g: Forward, ids: Sequence[int]) -> None:
    """One forward pass over token ids."""
    W_E, x = embed(g, ids)  # x: [n_tokens, d_model]
    of_layers(g, x, W_E)


def embed(g: Forward, ids: Sequence[int], size: str = "d_model") -> tuple[Block, Block]:
    """The embedding, and the normed sum of tokens', positions' and segments' vectors: [n_tokens,
    size]."""
    spec = g.spec
    W_E, embed = parts.embed(g, ids, size=size)  # embed: [n_tokens, size]
    stream = [embed]
    if spec.position == "learned":
        places = parts.positions(g, len(ids), spec.first_position)  # [n_tokens, 1]
        W_pos = g.weight("W_pos", "n_positions", size)
        stream.append(g.block("pos_embed", ops.embed, places, W_pos))
    for kind in ("segment", "task"):
        if getattr(spec, f"n_{kind}s", 0):
            which = g.input(f"{kind}s", np.zeros((len(ids), 1)), ("token", ""), "ids")
            W = g.weight(f"W_{kind}", f"n_{kind}s", size)
            stream.append(g.block(f"{kind}_embed", ops.embed, which, W))
    x = g.block("embed_sum", ops.add, stream)
    return W_E, parts.layer_norm(g.at("ln_embed"), x, spec.norm_eps)


def of_layers(
    g: Forward,
    x: Block,
    W_E: Block,
    owners: Sequence[int] = (),
    bias: Bias | None = None,
    turn: tuple[Block, Block] | None = None,
    write: Callable[[Forward, Block], Block] | None = None,
) -> None:
    """All layers over the embedded tokens x [n_tokens, d_model], and the output. `owners` are
    the layers whose weights each layer uses (default: its own); `bias` and `turn` as in
    `attention`; `write` is the MLP (default: `mlp`)."""
    spec, n_tokens = g.spec, x.shape[0]
    present = g.input("attention_mask", np.ones((n_tokens, 1)), ("token", ""))  # [n_tokens, 1]

    for layer in range(spec.n_layers):
        b = g.at(f"blocks.{layer}")
        b = b.with_weights_of(f"blocks.{owners[layer]}") if owners else b
        x = b.block("resid_pre", ops.add, [x])  # [n_tokens, d_model]
        attn_out = attention(b, x, present, turn, bias)  # [n_tokens, d_model]
        x = b.block("resid_mid", ops.add, [x, attn_out])  # [n_tokens, d_model]
        x = parts.layer_norm(b.at("ln1"), x, spec.norm_eps)  # [n_tokens, d_model]

        x = b.block("resid_post", ops.add, [x, (write or mlp)(b, x)])  # [n_tokens, d_model]
        x = parts.layer_norm(b.at("ln2"), x, spec.norm_eps)  # [n_tokens, d_model]

    x = g.block("resid_final", ops.add, [x])  # [n_tokens, d_model]
    if spec.gives == "sentence":
        pool(g, x, present)
    else:
        read_out(g, x, W_E)


def attention(
    b: Forward,
    x: Block,
    present: Block | None = None,
    turn: tuple[Block, Block] | None = None,
    bias: Bias | None = None,
    qkv_bias: bool = True,
    mask: Mask = EVERYTHING,
) -> Block:
    """The sum of the outputs of all heads: [n_tokens, d_model]. Queries and keys rotate by
    `turn`; `bias` adds to the scores of each head."""
    attn, head_axes, biased = b.at("attn"), ("d_model", "d_head"), b.spec.bias and qkv_bias
    of_all = parts.of_all_heads(attn)
    heads = []
    for head in range(b.spec.n_heads):
        h = attn.at(f"h{head}")
        q = parts.linear(h, "q", x, "Q", head_axes, biased)  # [n_tokens, d_head]
        k = parts.linear(h, "k", x, "K", head_axes, biased)  # [n_tokens, d_head]
        v = parts.linear(h, "v", x, "V", head_axes, biased)  # [n_tokens, d_head]
        q = parts.rotate(h, "rot_q", q, turn) if turn else q
        k = parts.rotate(h, "rot_k", k, turn) if turn else k
        by = bias(h, head, q, k, of_all.scale) if bias else None
        heads.append(parts.attend(h, q, k, v, of_all, mask, present=present, bias=by))
    return parts.write_heads(b, heads, b.spec.bias)


def mlp(b: Forward, x: Block) -> Block:
    """The MLP: expand, apply the activation function, contract; each token by itself."""
    m = b.at("mlp")
    pre = parts.linear(m, "pre", x, "in", ("d_model", "d_mlp"), bias=True)  # [n_tokens, d_mlp]
    post = m.block("post", getattr(ops, b.spec.activation), pre)  # [n_tokens, d_mlp]
    return parts.contract(b, post, bias=True)  # [n_tokens, d_model]


def read_out(g: Forward, x: Block, W_E: Block, ln: str = "ln_final") -> None:
    """The head: a dense layer and an activation function, but for the labels of tokens; a norm,
    `ln`, for words; then a score for each word or label."""
    head, spec = g.at("head"), g.spec
    if spec.gives == "token class":
        return parts.rank_classes_of_tokens(g, x, W_E)
    out = W_E.axes[1] if spec.gives == "masked word" else "d_model"
    W, b = head.weight("W", "d_model", out), head.weight("b", out)
    pre = head.block("pre", ops.linear, parts.looked_at(g, x), W, b)  # [n_tokens or 1, out]
    x = head.block("post", getattr(ops, spec.head_activation), pre)
    if spec.gives == "masked word":
        x = parts.layer_norm(g.at(ln), x, spec.norm_eps)  # [n_tokens or 1, out]
    parts.rank_words(g, x, W_E, None, bias=True)


def read_config(c: Config) -> ModelSpec:
    """BERT's config."""
    return ModelSpec(**of_kin(c))


def of_kin(
    c: Config, of_words: Activation | None = None, of_classes: Activation = "tanh", first: int = 0
) -> dict[str, Any]:
    """ModelSpec fields that BERT and its kin read from their configs in the same way.

    `of_words` is the activation function of the masked-word head (default: that of the MLP),
    `of_classes` that of a classifier's; `first` is the first token's row of the table of positions.
    """
    c.assume(num_hidden_layers=12, max_position_embeddings=512, hidden_act="gelu")
    c.refuse(
        "position_embedding_type",
        "absolute",
        "only learned positions (one vector for each position) are supported",
    )
    c.refuse("is_decoder", False, "cellformer does not know decoders of this kind")
    c.refuse("add_cross_attention", False, "this model has no second text to attend to")
    c.ignore("chunk_size_feed_forward")  # how much of the MLP is computed together
    n_positions = c.get("max_position_embeddings", int)
    return {
        **c.sizes(),
        "n_ctx": sentence_modules.longest(c, n_positions - first),
        "d_mlp": c.get("intermediate_size", int),
        "activation": c.activation("hidden_act"),
        "n_positions": n_positions,
        "first_position": first,
        "n_segments": c.get("type_vocab_size", int, 2),
        "norm_eps": c.get(EPS, float, 1e-12),
        **of_encoders(c, of_words or c.activation("hidden_act"), of_classes),
    }


def of_encoders(c: Config, of_words: Activation, of_classes: Activation = "tanh") -> dict[str, Any]:
    """ModelSpec fields of every encoder, its kind of output, and the activation functions of the
    heads for words and for labels."""
    found = sentence_modules.readout(c)
    return {
        "position": "learned",
        "norm": "layer",
        "norm_after": True,
        "final_norm": True,
        "bias": True,
        "causal": False,
        "tied": c.get("tie_word_embeddings", bool, True),
        "head_activation": of_classes if found["gives"] == "class" else of_words,
        **found,
    }


NORMS = {"ln1": "attention.output.LayerNorm", "ln2": "output.LayerNorm"}
MLP = {"in": "intermediate.dense", "out": "output.dense"}
heads = partial(
    grouped_heads, qkv=("self.query", "self.key", "self.value"), out="output.dense", keys="h"
)


def pieces_of(
    base: str,
    words: Sequence[str],
    classes: Sequence[str] = (),
    norms: Names = NORMS,
    layers: str = "encoder.layer.{}",
    heads: Heads = heads,
    attn: str = "attention",
    mlp: Names = MLP,
    whole: Names | None = None,
) -> Callable[[ModelSpec], Pieces]:
    """The `pieces` of BERT and its kin, whose tensors begin with `base`; `words` and `classes` as
    in `of_head`, the others as in `layout`."""

    def pieces(spec: ModelSpec) -> Pieces:
        yield from layout(whole or {}, f"{base}.{layers}", norms, heads, attn, mlp)(spec)
        yield from of_embeddings(base)
        yield from of_head(spec, words, classes)

    return pieces


def of_embeddings(base: str, ln: str = "LayerNorm") -> Pieces:
    """The vectors of words, positions and segments, and the steps after the last layer."""
    e = f"{base}.embeddings"
    yield from outside(
        {
            "W_E": f"{e}.word_embeddings",
            "W_pos": f"{e}.position_embeddings",
            "W_segment": f"{e}.token_type_embeddings",
            "ln_embed": f"{e}.{ln}",
        }
    )
    yield from sentence_modules.pieces()


def of_head(
    spec: ModelSpec, words: Sequence[str], classes: Sequence[str] = (), ln: str = "ln_final"
) -> Pieces:
    """The head: for words, the names of its dense layer, its norm, the scores, and their bias if
    they are tied; for labels, of its dense layer and the scores (default: RoBERTa's)."""
    if spec.gives in CLASSES:
        own = "classifier.out_proj" if spec.gives == "class" else "classifier"
        dense, scores = classes or ("classifier.dense", own)
        bias = scores
    else:
        dense, normed, scores, bias = words
        bias = bias if spec.tied else scores
        yield from norm(ln, normed)
    yield from outside({"head.W": dense, "head.b": dense, "W_U": scores, "b_U": bias})


def of_words(head: str, dense: str = "dense", ln: str = "LayerNorm") -> tuple[str, ...]:
    """The tensors of a head for words that begin with `head`."""
    return f"{head}.{dense}", f"{head}.{ln}", f"{head}.decoder", head


pieces = pieces_of(
    "bert",
    of_words("cls.predictions", "transform.dense", "transform.LayerNorm"),
    ("bert.pooler.dense", "classifier"),
)
