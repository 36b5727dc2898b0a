"""MPNet (Song et al. 2020): BERT whose scores have a bias by distance, one for all layers, as T5's;
positions count from 2 on, and there are no segments."""

from collections.abc import Sequence
from dataclasses import dataclass

from cellformer.engine.cells.access import EVERYTHING
from cellformer.engine.models import distance, sentence_modules
from cellformer.engine.models.architectures import bert
from cellformer.engine.models.distance import Buckets
from cellformer.engine.models.foreign import Config, Piece, Pieces, linear, norm
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import CLASSES, ModelSpec

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
    e = "mpnet.embeddings"
    yield "W_E", Piece(f"{e}.word_embeddings.weight")
    yield "W_pos", Piece(f"{e}.position_embeddings.weight")
    yield from norm("ln_embed", f"{e}.LayerNorm")
    yield "distance.W", Piece("mpnet.encoder.relative_attention_bias.weight")
    yield from sentence_modules.pieces()
    for layer in range(spec.n_layers):
        b, f = f"blocks.{layer}", f"mpnet.encoder.layer.{layer}"
        yield from bert.heads_of(b, spec, {w: f"{f}.attention.attn.{w.lower()}" for w in "QKVO"})
        yield from norm(f"{b}.ln1", f"{f}.attention.LayerNorm")
        yield from norm(f"{b}.ln2", f"{f}.output.LayerNorm")
        mlp = (("in", "intermediate.dense"), ("out", "output.dense"))
        yield from linear(f"{b}.mlp", f, mlp)
    if spec.gives in CLASSES:
        scores = "classifier.out_proj" if spec.gives == "class" else "classifier"
        return (yield from bert.of_classes("classifier.dense", scores))
    yield "head.W", Piece("lm_head.dense.weight", transposed=True)
    yield "head.b", Piece("lm_head.dense.bias")
    yield from norm("ln_final", "lm_head.layer_norm")
    yield "W_U", Piece("lm_head.decoder.weight", transposed=True)
    yield "b_U", Piece("lm_head.bias" if spec.tied else "lm_head.decoder.bias")
