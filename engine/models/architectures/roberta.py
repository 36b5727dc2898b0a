"""RoBERTa (Liu et al. 2019) and its relatives: BERT with positions counted from the padding token's
id on, and other names for the head's tensors. XLM-RoBERTa and CamemBERT differ only in
tokenizers."""

from cellformer.engine.models import sentence_modules
from cellformer.engine.models.architectures import bert
from cellformer.engine.models.foreign import Config, Piece, Pieces, norm
from cellformer.engine.models.spec import CLASSES, ModelSpec

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
    if spec.gives in CLASSES:
        scores = "classifier.out_proj" if spec.gives == "class" else "classifier"
        return (yield from bert.of_classes("classifier.dense", scores))
    yield "head.W", Piece("lm_head.dense.weight", transposed=True)
    yield "head.b", Piece("lm_head.dense.bias")
    yield from norm("ln_final", "lm_head.layer_norm")
    yield "W_U", Piece("lm_head.decoder.weight", transposed=True)
    yield "b_U", Piece("lm_head.bias" if spec.tied else "lm_head.decoder.bias")
