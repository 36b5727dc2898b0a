"""DeBERTa, versions 2 and 3 (He et al. 2021, "DeBERTa", section 3.1): BERT whose scores also depend
on distance, by what the query and the key hold.

Each distance, or bucket of distances, has a vector. A head makes a key of it, which meets the
query, and a query, which meets the key.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.models import ops, parts
from cellformer.engine.models.architectures import bert
from cellformer.engine.models.foreign import Config, Pieces, mapped
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("deberta-v2",)
EPS = bert.EPS
ONCE = ("*.position_embeddings.*", "*.encoder.rel_embeddings.*", "*.encoder.LayerNorm.*")
UNREAD = ("pooler.*", "cls.*", "lm_predictions.*", "mask_predictions.*", *ONCE)  # where not used
QKV = ("self.query_proj", "self.key_proj", "self.value_proj")


@dataclass(frozen=True, repr=False)
class DebertaSpec(ModelSpec):
    """ModelSpec with DeBERTa's own fields."""

    n_distances: int = 0  # rows of their table
    n_buckets: int = 0  # of distances either way; 0: each distance has a vector
    farthest: int = 0  # tokens; all distances from here on share a vector
    of_query: bool = False  # queries meet the keys of distances
    of_key: bool = False  # keys meet the queries of distances
    shared: bool = False  # the maps of distances are those of tokens
    distance_norm: bool = False  # of the vectors of distances
    older_head: bool = True  # the head for words has the names of the first version


class Distances(NamedTuple):
    """The distances of a text."""

    bucket: Block  # the row of `vectors` of each query and key, [n_tokens, n_tokens]
    vectors: Block  # [distances of this text, d_model]


def forward(g: Forward, ids: Sequence[int]) -> None:
    """One forward pass over token ids."""
    spec = g.spec_as(DebertaSpec)
    W_E, x = bert.embed(g, ids)  # x: [n_tokens, d_model]
    far = distances(g, len(ids)) if spec.n_distances else None

    def bias(h: Forward, n: int, q: Block, k: Block, scale: Block) -> Block:
        assert far
        return of_head(h.at("distance"), far, q, k, scale)

    bert.of_layers(g, x, W_E, bias=bias if far else None)


def distances(g: Forward, n_tokens: int) -> Distances:
    """The distances of a text, and the vectors of those alone."""
    spec, d = g.spec_as(DebertaSpec), g.at("distance")
    rows, bucket = np.unique(rows_of(spec, n_tokens), return_inverse=True)
    bucket = bucket.reshape(n_tokens, n_tokens)
    ids = d.input("rows", rows.reshape(-1, 1), ("distance", ""), "ids")
    x = d.block("embed", ops.embed, ids, d.weight("W_distance", "n_distances", "d_model"))
    x = parts.layer_norm(d.at("ln"), x, spec.norm_eps) if spec.distance_norm else x
    return Distances(d.input("bucket", bucket, ("token", "token"), "ids"), x)


def rows_of(spec: DebertaSpec, n_tokens: int) -> np.ndarray:
    """The row of the table for each query and key, [n_tokens, n_tokens]. It uses float32, as in
    training, because the edges of buckets depend on it."""
    place, half = np.arange(n_tokens), spec.n_distances // 2
    found = place[:, None] - place[None, :]  # query less key
    if spec.n_buckets:
        middle, last = spec.n_buckets // 2, spec.farthest - 1
        over = np.maximum(np.abs(found), middle).astype(np.float32) / np.float32(middle)
        steps = np.log(over) / np.log(np.float32(last / middle)) * np.float32(middle - 1)
        shared = np.sign(found) * (np.ceil(steps).astype(np.int64) + middle)
        found = np.where(np.abs(found) <= middle, found, shared)
    return np.asarray(np.clip(found + half, 0, 2 * half - 1))


def of_head(d: Forward, far: Distances, q: Block, k: Block, scale: Block) -> Block:
    """The share of distance in a head's scores: [n_tokens, n_tokens]."""
    spec = d.spec_as(DebertaSpec)
    d = d.with_weights_of(d.prefix.removesuffix(".distance.")) if spec.shared else d

    def match(name: str, x: Block, which: str) -> Block:  # [n_tokens, distances of this text]
        axes = ("d_model", "d_head")
        y = parts.linear(d, which, far.vectors, which.upper(), axes, bias=True)
        return d.block(name, ops.scores, x, y, scale)

    of_query = match("of_query", q, "k") if spec.of_query else None
    of_key = match("of_key", k, "q") if spec.of_key else None
    return d.block("bias", ops.of_distance, far.bucket, of_query, of_key)


def read_config(c: Config) -> ModelSpec:
    c.assume(vocab_size=128100, hidden_size=1536, intermediate_size=6144, type_vocab_size=0)
    c.assume(num_hidden_layers=24, num_attention_heads=24, layer_norm_eps=1e-7)
    c.assume(max_position_embeddings=512)
    kin = bert.of_kin(c, of_classes=c.activation("pooler_hidden_act", "gelu"))
    for name in ("embedding_size", "pooler_hidden_size"):
        c.refuse(name, kin["d_model"], "only hidden_size is supported")
    c.refuse("attention_head_size", kin["d_head"], "heads must divide hidden_size")
    c.refuse("conv_kernel_size", 0, "the convolution after the first layer is not supported")
    c.ignore("conv_groups", "conv_act")
    if not c.get("position_biased_input", bool, True):
        kin |= {"position": "none", "n_positions": 0}
    older = c.get("legacy", bool, True)
    kin |= {"tied": kin["tied"] or not older, "older_head": older}
    return DebertaSpec(**kin | distances_in(c, kin["d_head"]))


def distances_in(c: Config, d_head: int) -> dict[str, Any]:
    """The fields about distances, and what scores are divided by."""
    said, norm = c.look("pos_att_type"), c.get("norm_rel_ebd", str, "none")
    kinds = listed(said) if isinstance(said, str) else c.listed("pos_att_type", str)
    n_buckets = max(c.get("position_buckets", int, -1), 0)
    farthest = c.get("max_relative_positions", int, -1)
    farthest = farthest if farthest > 0 else c.get("max_position_embeddings", int)
    if n_buckets == 1 or (n_buckets and farthest <= n_buckets // 2 + 1):
        raise InputError(
            f"{c.path}: position_buckets = {n_buckets} does not fit max_relative_positions = "
            f"{farthest}; it must be from 2 to {2 * farthest - 3}"
        )
    of_query, of_key = "c2p" in kinds, "p2c" in kinds
    used = c.get("relative_attention", bool, False) and (of_query or of_key)
    return {
        "n_distances": 2 * (n_buckets or farthest) if used else 0,
        "n_buckets": n_buckets,
        "farthest": farthest,
        "of_query": of_query,
        "of_key": of_key,
        "shared": c.get("share_att_key", bool, False),
        "distance_norm": "layer_norm" in listed(norm),
        "sqrt_d_head": sqrt(d_head * (1 + of_query + of_key)),
    }


def listed(text: str) -> list[str]:
    """The words between the bars of a text."""
    return [word.strip() for word in text.lower().split("|")]


def pieces(spec: DebertaSpec) -> Pieces:
    """BERT's layout, with other names for queries, keys and values, and the maps of distances."""
    older = bert.of_words("cls.predictions", "transform.dense", "transform.LayerNorm")
    newer = bert.of_words("lm_predictions.lm_head")
    yield from bert.pieces_of(
        "deberta",
        older if spec.older_head else newer,
        ("pooler.dense", "classifier"),
        heads=partial(bert.heads, qkv=QKV),
        whole={
            "distance.W_distance": "deberta.encoder.rel_embeddings",
            "distance.ln": "deberta.encoder.LayerNorm",
        },
    )(spec)
    for layer in range(spec.n_layers):
        attn = f"deberta.encoder.layer.{layer}.attention.self"
        for n in range(spec.n_heads):
            ours = f"blocks.{layer}.attn.h{n}.distance"
            yield from mapped(ours, "K", f"{attn}.pos_key_proj", n, spec.d_head)
            yield from mapped(ours, "Q", f"{attn}.pos_query_proj", n, spec.d_head)
