"""DistilBERT (Sanh et al. 2019): BERT with half its layers, and without segments."""

from cellformer.engine.models import sentence_modules
from cellformer.engine.models.architectures import bert
from cellformer.engine.models.foreign import Config, Piece, Pieces, linear, norm
from cellformer.engine.models.spec import CLASSES, ModelSpec

MODEL_TYPES = ("distilbert",)
EPS = ""  # its config has none: it is always the same
UNREAD = ("vocab_*",)  # where no word is read out
forward = bert.forward


def read_config(c: Config) -> ModelSpec:
    """DistilBERT's config."""
    c.assume(n_layers=6, max_position_embeddings=512, activation="gelu")
    c.ignore("sinusoidal_pos_embds")  # what positions start with in training
    c.ignore("chunk_size_feed_forward")  # how much of the MLP is computed together
    n_positions = c.get("max_position_embeddings", int)
    return ModelSpec(
        d_vocab=c.get("vocab_size", int),
        d_model=c.get("dim", int),
        n_ctx=sentence_modules.longest(c, n_positions),
        n_layers=c.get("n_layers", int),
        n_heads=c.get("n_heads", int),
        d_head=c.divide("dim", "n_heads"),
        d_mlp=c.get("hidden_dim", int),
        activation=c.activation("activation"),
        n_positions=n_positions,
        norm_eps=1e-12,
        **bert.of_encoders(c, c.activation("activation"), of_classes="relu"),
    )


def pieces(spec: ModelSpec) -> Pieces:
    """DistilBERT's layout: matrices are [out, in]."""
    e = "distilbert.embeddings"
    yield "W_E", Piece(f"{e}.word_embeddings.weight")
    yield "W_pos", Piece(f"{e}.position_embeddings.weight")
    yield from norm("ln_embed", f"{e}.LayerNorm")
    yield from sentence_modules.pieces()
    for layer in range(spec.n_layers):
        b, f = f"blocks.{layer}", f"distilbert.transformer.layer.{layer}"
        names = {which: f"{f}.attention.{which.lower()}_lin" for which in "QKV"}
        yield from bert.heads_of(b, spec, names | {"O": f"{f}.attention.out_lin"})
        yield from norm(f"{b}.ln1", f"{f}.sa_layer_norm")
        yield from norm(f"{b}.ln2", f"{f}.output_layer_norm")
        yield from linear(f"{b}.mlp", f"{f}.ffn", (("in", "lin1"), ("out", "lin2")))
    if spec.gives in CLASSES:
        return (yield from bert.of_classes("pre_classifier", "classifier"))
    yield "head.W", Piece("vocab_transform.weight", transposed=True)
    yield "head.b", Piece("vocab_transform.bias")
    yield from norm("ln_final", "vocab_layer_norm")
    yield "W_U", Piece("vocab_projector.weight", transposed=True)
    yield "b_U", Piece("vocab_projector.bias")
