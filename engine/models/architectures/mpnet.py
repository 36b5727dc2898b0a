"""MPNet (Song et al. 2020): BERT whose scores have a bias by distance, one for all layers, as T5's;
positions count from 2 on, and there are no segments."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from cellformer.engine.cells.access import EVERYTHING
from cellformer.engine.models import distance, sentence_modules
from cellformer.engine.models.architectures import bert, roberta
from cellformer.engine.models.distance import Buckets
from cellformer.engine.models.foreign import Config, Pieces, layout
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("mpnet",)
EPS = bert.EPS
UNREAD = ("*.pooler.*", "lm_head.*")
BUCKETS = Buckets(n=32, farthest=128, both_ways=True)  # of its reference, whatever a config says
PADDING = 1  # the id that counts no position, of the same


@dataclass(frozen=True, repr=False)
class MpnetSpec(ModelSpec):
    """ModelSpec with MPNet's own field."""

    n_buckets: int = BUCKETS.n  # of distances


def forward(g: Forward, ids: Sequence[int]) -> None:
    """One forward pass over token ids."""
    W_E, x = bert.embed(g, ids)  # x: [n_tokens, d_model]
    biases = distance.biases(g, len(ids), "token", BUCKETS, EVERYTHING)
    bert.of_layers(g, x, W_E, biases=biases)


def read_config(c: Config) -> ModelSpec:
    """MPNet's config."""
    c.refuse("relative_attention_num_buckets", BUCKETS.n, "its reference sorts distances into 32")
    kin = bert.of_kin(c, of_words="gelu") | {"n_segments": 0}
    n_ctx = sentence_modules.longest(c, kin["n_positions"] - PADDING - 1)
    return MpnetSpec(n_ctx=n_ctx, first_position=PADDING + 1, **kin)


def pieces(spec: ModelSpec) -> Pieces:
    """Matrices are [out, in]; the head is `lm_head`."""
    yield from bert.of_embeddings("mpnet")
    yield from layout(
        {"distance.W": "mpnet.encoder.relative_attention_bias"},
        "mpnet.encoder.layer.{}",
        {"ln1": "attention.LayerNorm", "ln2": "output.LayerNorm"},
        partial(bert.heads_of, names="qkvo"),
        attn="attention.attn",
        mlp=bert.MLP,
    )(spec)
    yield from roberta.of_head(spec)
