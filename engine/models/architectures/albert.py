"""ALBERT (Lan et al. 2019, section 3.1): BERT whose layers share their weights, and whose word
vectors are shorter than the stream.

All layers of a group read the same weights, those of the group's first: the same cells, so that a
change of one is a change of every layer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from cellformer.engine.cells.errors import InputError
from cellformer.engine.models import ops, sentence_modules
from cellformer.engine.models.architectures import bert
from cellformer.engine.models.architectures.electra import PROJECTION, ElectraSpec
from cellformer.engine.models.foreign import Config, Pieces, of_layer, outside
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("albert",)
EPS = bert.EPS
UNREAD = ("*.pooler.*", "predictions.*", "sop_classifier.*")  # of tasks
GROUPS = "albert.encoder.albert_layer_groups"


@dataclass(frozen=True, repr=False)
class AlbertSpec(ElectraSpec):
    """ElectraSpec with ALBERT's own fields."""

    owners: tuple[int, ...] = ()  # of each layer, the first that has the same weights
    places: tuple[str, ...] = ()  # of each layer, where the checkpoint has its weights


def forward(g: Forward, ids: Sequence[int]) -> None:
    """One forward pass over token ids."""
    spec = g.spec
    assert isinstance(spec, AlbertSpec)
    W_E, word = bert.embed(g, ids, "d_word")  # word: [n_tokens, d_word]
    W, b = g.weight("W_project_E", "d_word", "d_model"), g.weight("b_project_E", "d_model")
    x = g.block("projected", ops.linear, word, W, b)  # [n_tokens, d_model]
    bert.of_layers(g, x, W_E, spec.owners)


def read_config(c: Config) -> ModelSpec:
    """ALBERT's config; missing fields have the values of its largest model."""
    c.assume(vocab_size=30000, hidden_size=4096, num_attention_heads=64, intermediate_size=16384)
    c.assume(hidden_act="gelu_new")
    kin = bert.of_kin(c)
    n_groups, n_inner = c.get("num_hidden_groups", int, 1), c.get("inner_group_num", int, 1)
    if not (1 <= n_groups <= max(kin["n_layers"], 1) and n_inner >= 1):
        raise InputError(
            f"{c.path}: {kin['n_layers']} layers in {n_groups} groups of {n_inner}; look at "
            "num_hidden_groups and inner_group_num"
        )
    places = [
        f"{int(n / (kin['n_layers'] / n_groups))}.albert_layers.{k}"
        for n in range(kin["n_layers"])
        for k in range(n_inner)
    ]
    kin |= {"n_layers": len(places), "d_word": c.get("embedding_size", int, 128)}
    owners = tuple(places.index(place) for place in places)
    n_ctx = sentence_modules.longest(c, kin["n_positions"])
    return AlbertSpec(n_ctx=n_ctx, owners=owners, places=tuple(places), **kin)


def pieces(spec: ModelSpec) -> Pieces:
    """A tensor for all layers of a group; matrices are [out, in]."""
    assert isinstance(spec, AlbertSpec)
    yield from bert.of_embeddings("albert")
    yield from outside(dict.fromkeys(PROJECTION, "albert.encoder.embedding_hidden_mapping_in"))
    norms = {"ln1": "attention.LayerNorm", "ln2": "full_layer_layer_norm"}
    heads = partial(bert.heads_of, names=("query", "key", "value", "dense"))
    mlp = {"in": "ffn", "out": "ffn_output"}
    for layer in sorted({*spec.owners}):
        place = (f"blocks.{layer}", f"{GROUPS}.{spec.places[layer]}")
        yield from of_layer(*place, spec, norms, heads, "attention", mlp)
    head = "predictions"
    bias = head if spec.tied else f"{head}.decoder"
    words = (f"{head}.dense", f"{head}.LayerNorm", f"{head}.decoder", bias)
    yield from bert.of_head(spec, words, ("albert.pooler", "classifier"))
