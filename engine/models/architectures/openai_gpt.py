"""GPT, the first (Radford et al. 2018, section 3.1): norms after each sublayer's sum, as in 2017,
and learned positions."""

from cellformer.engine.models.architectures import gpt2
from cellformer.engine.models.architectures.decoder import forward
from cellformer.engine.models.foreign import GPT2, Config, Piece, Pieces
from cellformer.engine.models.spec import ModelSpec

__all__ = ["EPS", "MODEL_TYPES", "NEW", "forward", "pieces", "read_config"]

MODEL_TYPES = ("openai-gpt",)
EPS = "layer_norm_epsilon"  # the config's name for what keeps its norms' divisors above zero
NEW = {"afn": "gelu"}


def read_config(c: Config) -> ModelSpec:
    """GPT's config, whose "gelu" is the tanh form."""
    c.rename(hidden_size="n_embd", num_attention_heads="n_head", num_hidden_layers="n_layer")
    c.rename(max_position_embeddings="n_positions")
    c.assume(vocab_size=40478, n_embd=768, n_layer=12, n_head=12, n_positions=512, afn="gelu")
    c.ignore("n_ctx", "predict_special_tokens")
    exact = c.look("afn") == "gelu"
    d_model = c.get("n_embd", int)
    return ModelSpec(
        **c.sizes(GPT2),
        n_ctx=c.get("n_positions", int),
        d_mlp=4 * d_model,
        activation="gelu_tanh" if exact else c.activation("afn"),
        position="learned",
        norm="layer",
        norm_after=True,
        norm_eps=c.get(EPS, float, 1e-5),
        tied=c.get("tie_word_embeddings", bool, True),
        bias=True,
    )


def pieces(spec: ModelSpec) -> Pieces:
    """GPT-2's layout, with other names of the embeddings."""
    yield "W_E", Piece("transformer.tokens_embed.weight")
    yield "W_pos", Piece("transformer.positions_embed.weight")
    yield from gpt2.pieces(spec)
