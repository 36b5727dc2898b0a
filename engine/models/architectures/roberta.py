"""RoBERTa (Liu et al. 2019) and its relatives: BERT with positions counted from the padding token's
id on, and other names for the head's tensors. XLM-RoBERTa and CamemBERT differ only in
tokenizers."""

from cellformer.engine.models import sentence_modules
from cellformer.engine.models.architectures import bert
from cellformer.engine.models.foreign import Config, Pieces
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("roberta", "xlm-roberta", "camembert")
EPS = bert.EPS
UNREAD = ("*.pooler.*", "lm_head.*")
forward = bert.forward


def read_config(c: Config) -> ModelSpec:
    """RoBERTa's config."""
    first, kin = 1 + c.get("pad_token_id", int, 1), bert.of_kin(c, of_words="gelu")
    n_ctx = sentence_modules.longest(c, kin["n_positions"] - first)
    return ModelSpec(n_ctx=n_ctx, first_position=first, **kin)


def pieces(spec: ModelSpec) -> Pieces:
    """BERT's layout under another name; the head is `lm_head`."""
    yield from bert.of_base(spec, "roberta")
    yield from of_head(spec)


def of_head(spec: ModelSpec) -> Pieces:
    """The head for words, or for labels."""
    bias = "lm_head" if spec.tied else "lm_head.decoder"
    words = ("lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", bias)
    yield from bert.of_head(spec, words)
