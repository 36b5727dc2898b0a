"""OPT (Zhang et al. 2022, section 2): GPT-2 with ReLU, and positions counted from 2. OPT-350m has
norms after its sublayers, and word vectors shorter than the stream; Galactica (Taylor et al. 2022)
has no biases."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from cellformer.engine.cells.block import Block
from cellformer.engine.models import ops, parts
from cellformer.engine.models.architectures.decoder import attention, mlp
from cellformer.engine.models.foreign import Config, grouped_heads, layout
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("opt",)
EPS = ""  # its norms have torch's, 1e-5
NEW = {"activation_function": "relu"}
FIRST_PLACE = 2  # the rows before it were for padding


@dataclass(frozen=True, repr=False)
class OptSpec(ModelSpec):
    """ModelSpec with OPT's own fields."""

    d_word: int = 0  # the size of a word's vector; where it is d_model, nothing is projected
    plain_norms: bool = False  # without gain and bias

    @property
    def d_place(self) -> int:
        """The number of rows of W_pos."""
        return self.n_ctx + FIRST_PLACE

    @property
    def projects(self) -> bool:
        return self.d_word != self.d_model


def forward(g: Forward, ids: Sequence[int]) -> None:
    spec = g.spec_as(OptSpec)
    W_E, embed = words(g, ids, spec)  # embed: [n_tokens, d_model]
    places = parts.positions(g, len(ids), FIRST_PLACE)  # [n_tokens, 1]
    W_pos = g.weight("W_pos", "place", "d_model")
    stream = [embed, g.block("pos_embed", ops.embed, places, W_pos)]
    sublayers = (("ln1", "resid_mid", partial(attention, turn=None)), ("ln2", "resid_post", mlp))
    x = parts.layers(g, stream, norm, sublayers)  # [n_tokens, d_model]
    x = norm(g.at("ln_final"), x, spec.norm_eps) if spec.final_norm else x
    if spec.projects:
        x = g.block("logits.read", ops.linear, x, g.weight("W_project_U", "d_model", "d_word"))
    parts.unembed(g, x, W_E)


def words(g: Forward, ids: Sequence[int], spec: OptSpec) -> tuple[Block, Block]:
    """The embedding, and the tokens' vectors projected to the stream's size: [n_tokens,
    d_model]."""
    if not spec.projects:
        return parts.embed(g, ids)
    W_E, word = parts.embed(g, ids, "embed.word", "d_word")  # word: [n_tokens, d_word]
    return W_E, g.block("embed", ops.linear, word, g.weight("W_project_E", "d_word", "d_model"))


def norm(ln: Forward, x: Block, eps: float) -> Block:
    """LayerNorm, with gain and bias unless the model has none: [n_tokens, d_model]."""
    plain = ln.spec_as(OptSpec).plain_norms
    return parts.standardize(ln, "out", x, eps) if plain else parts.layer_norm(ln, x, eps)


def read_config(c: Config) -> ModelSpec:
    c.assume(vocab_size=50272, hidden_size=768, ffn_dim=3072, activation_function="relu")
    c.assume(num_hidden_layers=12, num_attention_heads=12, max_position_embeddings=2048)
    c.ignore("init_std", "layerdrop")  # of training
    before = c.get("do_layer_norm_before", bool, True)
    d_model = c.get("hidden_size", int)
    return OptSpec(
        **c.sizes(),
        d_word=c.get("word_embed_proj_dim", int, d_model),
        n_ctx=c.get("max_position_embeddings", int),
        d_mlp=c.get("ffn_dim", int),
        activation=c.activation("activation_function"),
        position="learned",
        norm="layer",
        norm_after=not before,
        final_norm=before and not c.get("_remove_final_layer_norm", bool, False),
        plain_norms=not c.get("layer_norm_elementwise_affine", bool, True),
        tied=c.get("tie_word_embeddings", bool, True),
        bias=c.get("enable_bias", bool, True),
    )


pieces = layout(
    {
        "W_E": "model.decoder.embed_tokens",
        "W_pos": "model.decoder.embed_positions",
        "W_project_E": "model.decoder.project_in",
        "W_project_U": "model.decoder.project_out",
        "W_U": "lm_head",
        "ln_final": "model.decoder.final_layer_norm",
    },
    "model.decoder.layers.{}",
    {"ln1": "self_attn_layer_norm", "ln2": "final_layer_norm"},
    partial(grouped_heads, out="out_proj", keys="h"),
    attn="self_attn",
    mlp={"in": "fc1", "out": "fc2"},
)
