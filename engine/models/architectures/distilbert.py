"""DistilBERT (Sanh et al. 2019): BERT with half its layers, and without segments."""

from functools import partial

from cellformer.engine.models import sentence_modules
from cellformer.engine.models.architectures import bert
from cellformer.engine.models.foreign import Config, Pieces, layout
from cellformer.engine.models.spec import ModelSpec

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
        **c.sizes(("dim", "n_heads", "n_layers")),
        n_ctx=sentence_modules.longest(c, n_positions),
        d_mlp=c.get("hidden_dim", int),
        activation=c.activation("activation"),
        n_positions=n_positions,
        norm_eps=1e-12,
        **bert.of_encoders(c, c.activation("activation"), of_classes="relu"),
    )


def pieces(spec: ModelSpec) -> Pieces:
    """DistilBERT's layout: matrices are [out, in]."""
    yield from bert.of_embeddings("distilbert")
    yield from layout(
        {},
        "distilbert.transformer.layer.{}",
        {"ln1": "sa_layer_norm", "ln2": "output_layer_norm"},
        partial(bert.heads_of, names=("q_lin", "k_lin", "v_lin", "out_lin")),
        attn="attention",
        mlp={"in": "ffn.lin1", "out": "ffn.lin2"},
    )(spec)
    words = ("vocab_transform", "vocab_layer_norm", "vocab_projector", "vocab_projector")
    yield from bert.of_head(spec, words, ("pre_classifier", "classifier"))
