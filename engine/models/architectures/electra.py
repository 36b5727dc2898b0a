"""ELECTRA (Clark et al. 2020, section 3): BERT whose word vectors may be shorter than the stream.

Of its two networks the generator ranks words; classifiers are trained from the discriminator.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from cellformer.engine.cells.errors import InputError
from cellformer.engine.models import ops, sentence_modules
from cellformer.engine.models.architectures import bert
from cellformer.engine.models.foreign import Config, Pieces, outside
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("electra",)
EPS = bert.EPS
PROJECTION = ("W_project_E", "b_project_E")
UNREAD = ("generator_*", "discriminator_predictions.*")  # where no word is read out


@dataclass(frozen=True, repr=False)
class ElectraSpec(ModelSpec):
    """ModelSpec with ELECTRA's own field."""

    d_word: int = 0  # the size of a word's vector; where it is d_model, nothing is projected


def forward(g: Forward, ids: Sequence[int]) -> None:
    """One forward pass over token ids."""
    spec = g.spec
    assert isinstance(spec, ElectraSpec)
    if spec.d_word == spec.d_model:
        return bert.forward(g, ids)
    W_E, word = bert.embed(g, ids, "d_word")  # word: [n_tokens, d_word]
    W, b = g.weight("W_project_E", "d_word", "d_model"), g.weight("b_project_E", "d_model")
    bert.of_layers(g, g.block("projected", ops.linear, word, W, b), W_E)


def read_config(c: Config) -> ModelSpec:
    """ELECTRA's config; missing fields have the values of the small model."""
    c.assume(vocab_size=30522, hidden_size=256, num_attention_heads=4, intermediate_size=1024)
    if any(name.endswith("ForPreTraining") for name in c.listed("architectures", str)):
        raise InputError(
            f"{c.path}: ELECTRA's discriminator says which tokens were replaced, and ranks no "
            "words; take its generator, or a classifier trained from it"
        )
    kin = bert.of_kin(c, of_words="gelu", of_classes="gelu")
    n_ctx = sentence_modules.longest(c, kin["n_positions"])
    return ElectraSpec(n_ctx=n_ctx, d_word=c.get("embedding_size", int, 128), **kin)


def pieces(spec: ModelSpec) -> Pieces:
    """BERT's layout under another name; the generator's head has names of its own."""
    yield from bert.of_base(spec, "electra")
    yield from outside(dict.fromkeys(PROJECTION, "electra.embeddings_project"))
    dense, scores = "generator_predictions", "generator_lm_head"
    yield from bert.of_head(spec, (f"{dense}.dense", f"{dense}.LayerNorm", scores, scores))
