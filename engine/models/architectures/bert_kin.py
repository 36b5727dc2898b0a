"""BERT's kin: encoders that are BERT's pass with other values, or with other vectors at its
beginning, a row each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from cellformer.engine.cells.access import EVERYTHING
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.models import distance, ops, parts, rope, sentence_modules
from cellformer.engine.models.architectures import bert, llama
from cellformer.engine.models.architectures.kin import Kin
from cellformer.engine.models.distance import Buckets
from cellformer.engine.models.foreign import (
    Config,
    Piece,
    Pieces,
    joined_heads,
    mapped,
    of_layer,
    outside,
)
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import CLASSES, ModelSpec

PROJECTION = ("W_project_E", "b_project_E")
BUCKETS = Buckets(n=32, farthest=128, both_ways=True)  # of MPNet's reference, whatever is said
PADDING = 1  # the id that counts no position, of the same
WORDS = bert.of_words("cls.predictions", "transform.dense", "transform.LayerNorm")
LM_HEAD = bert.of_words("lm_head", ln="layer_norm")


@dataclass(frozen=True, repr=False)
class MpnetSpec(ModelSpec):
    """ModelSpec with MPNet's own field."""

    n_buckets: int = BUCKETS.n  # of distances


@dataclass(frozen=True, repr=False)
class ElectraSpec(ModelSpec):
    """ModelSpec with ELECTRA's own field."""

    d_word: int = 0  # the size of a word's vector; where it is d_model, nothing is projected


@dataclass(frozen=True, repr=False)
class AlbertSpec(ElectraSpec):
    """ElectraSpec with ALBERT's own fields."""

    owners: tuple[int, ...] = ()  # of each layer, the first that has the same weights
    places: tuple[str, ...] = ()  # of each layer, where the checkpoint has its weights


@dataclass(frozen=True, repr=False)
class ErnieSpec(ModelSpec):
    """ModelSpec with ERNIE's own field."""

    n_tasks: int = 0  # rows of a table of tasks, of which the first is used; 0: none


def turned(g: Forward, ids: Sequence[int]) -> None:
    """The pass of NomicBERT and GTE over token ids."""
    W_E, x = bert.embed(g, ids)  # x: [n_tokens, d_model]
    bert.of_layers(g, x, W_E, turn=parts.rotation(g, len(ids)), write=gated_mlp)


def gated_mlp(b: Forward, x: Block) -> Block:
    """A gated MLP, of which only the output may have a bias: [n_tokens, d_model]."""
    m, axes = b.at("mlp"), ("d_model", "d_mlp")
    gate = parts.linear(m, "gate", x, "gate", axes, bias=False)  # [n_tokens, d_mlp]
    pre = parts.linear(m, "pre", x, "in", axes, bias=False)  # [n_tokens, d_mlp]
    act = m.block("act", getattr(ops, b.spec.activation), gate)  # [n_tokens, d_mlp]
    return parts.contract(b, m.block("post", ops.gated, act, pre), b.spec.bias)


def of_turned(c: Config) -> ModelSpec:
    """The spec of NomicBERT, and of GTE, which has biases."""
    gte = c.values["model_type"] == "gte"
    kin = bert.of_kin(c, of_words="gelu" if gte else None)
    d_head = c.optional("head_dim", int, None) or kin["d_head"]
    rotary = rope.read(c, d_head, default_theta=160_000.0 if gte else 1000.0)
    kin |= {"position": "rotary", "n_positions": 0, "d_head": d_head, "bias": gte}
    return ModelSpec(**kin | {"n_ctx": sentence_modules.longest(c, rotary.n_ctx)}, **rotary.fields)


def gte_pieces(spec: ModelSpec) -> Pieces:
    """One tensor for queries, keys and values, and one for the MLP's input and its gate."""
    heads = partial(joined_heads, joined="qkv_proj", out="o_proj", keys="h")
    norms, mlp = {"ln1": "attn_ln", "ln2": "mlp_ln"}, {"out": "mlp.down_proj"}
    words = ("lm_head.dense", "lm_head.norm", "lm_head.decoder", "lm_head.decoder")
    yield from bert.pieces_of(
        "gte", words, ("gte.pooler.dense", "classifier"), norms, heads=heads, mlp=mlp
    )(spec)
    for layer in range(spec.n_layers):
        joined = f"gte.encoder.layer.{layer}.mlp.up_gate_proj"
        for n, which in enumerate(("in", "gate")):
            yield from mapped(f"blocks.{layer}.mlp", which, joined, n, spec.d_mlp)


def of_eurobert(c: Config) -> ModelSpec:
    """EuroBERT's spec. Raises InputError for a classifier."""
    given = sentence_modules.readout(c)
    if given["gives"] in CLASSES:
        raise InputError(
            f"{c.path}: classifiers of a eurobert model are not supported; use EuroBertForMaskedLM "
            "or a sentence encoder"
        )
    c.ignore("classifier_pooling")
    biased = c.get("mlp_bias", bool, False)
    return replace(llama.usual(c), causal=False, mlp_bias=biased, word_bias=biased, **given)


def eurobert_pieces(spec: ModelSpec) -> Pieces:
    """Llama's, with a bias of the words' scores."""
    yield from llama.pieces(spec)
    yield "b_U", Piece("lm_head.bias")


def of_ernie(c: Config) -> ModelSpec:
    n_tasks = c.get("task_type_vocab_size", int, 3) if c.get("use_task_id", bool, False) else 0
    c.ignore("task_type_vocab_size")
    return ErnieSpec(n_tasks=n_tasks, **bert.of_kin(c))


def with_distances(g: Forward, ids: Sequence[int]) -> None:
    """MPNet's pass over token ids."""
    W_E, x = bert.embed(g, ids)  # x: [n_tokens, d_model]
    biases = distance.biases(g, len(ids), "token", BUCKETS, EVERYTHING)
    bert.of_layers(g, x, W_E, bias=lambda h, n, *_: biases[n])


def projected(g: Forward, ids: Sequence[int]) -> None:
    """The pass of ELECTRA and ALBERT over token ids. ALBERT's layers of a group share the cells
    of their weights, so a change of one is a change of every layer."""
    spec = g.spec_as(ElectraSpec)
    owners = spec.owners if isinstance(spec, AlbertSpec) else ()
    if spec.d_word == spec.d_model and not isinstance(spec, AlbertSpec):
        return bert.forward(g, ids)
    W_E, word = bert.embed(g, ids, "d_word")  # word: [n_tokens, d_word]
    W, b = g.weight("W_project_E", "d_word", "d_model"), g.weight("b_project_E", "d_model")
    bert.of_layers(g, g.block("projected", ops.linear, word, W, b), W_E, owners)


def of_distilbert(c: Config) -> ModelSpec:
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


def of_electra(c: Config) -> ModelSpec:
    """ELECTRA's spec; missing fields have the values of the small model."""
    if any(name.endswith("ForPreTraining") for name in c.listed("architectures", str)):
        raise InputError(
            f"{c.path}: ELECTRA's discriminator finds replaced tokens and predicts no words; use "
            "its generator, or a classifier trained from the discriminator"
        )
    kin = bert.of_kin(c, of_words="gelu", of_classes="gelu")
    return ElectraSpec(d_word=c.get("embedding_size", int, 128), **kin)


def of_mpnet(c: Config) -> ModelSpec:
    c.refuse(
        "relative_attention_num_buckets",
        BUCKETS.n,
        "the library transformers always sorts distances into 32 buckets",
    )
    return MpnetSpec(**bert.of_kin(c, of_words="gelu", first=PADDING + 1) | {"n_segments": 0})


def of_albert(c: Config) -> ModelSpec:
    """ALBERT's spec; missing fields have the values of its largest model."""
    kin = bert.of_kin(c)
    n_layers = kin["n_layers"]
    n_groups, n_inner = c.get("num_hidden_groups", int, 1), c.get("inner_group_num", int, 1)
    if not (1 <= n_groups <= max(n_layers, 1) and n_inner >= 1):
        raise InputError(
            f"{c.path}: {n_layers} layers cannot form {n_groups} groups of {n_inner}; check "
            "num_hidden_groups and inner_group_num"
        )
    places = [
        f"{int(n / (n_layers / n_groups))}.albert_layers.{k}"
        for n in range(n_layers)
        for k in range(n_inner)
    ]
    kin |= {"n_layers": len(places), "d_word": c.get("embedding_size", int, 128)}
    owners = tuple(places.index(place) for place in places)
    return AlbertSpec(owners=owners, places=tuple(places), **kin)


def electra_pieces(spec: ModelSpec) -> Pieces:
    """BERT's layout under another name; the generator's head has names of its own."""
    dense, scores = "generator_predictions", "generator_lm_head"
    words = (f"{dense}.dense", f"{dense}.LayerNorm", scores, scores)
    yield from bert.pieces_of("electra", words)(spec)
    yield from outside(dict.fromkeys(PROJECTION, "electra.embeddings_project"))


def albert_pieces(spec: AlbertSpec) -> Pieces:
    """A tensor for all layers of a group."""
    yield from bert.of_embeddings("albert")
    yield from outside(dict.fromkeys(PROJECTION, "albert.encoder.embedding_hidden_mapping_in"))
    norms = {"ln1": "attention.LayerNorm", "ln2": "full_layer_layer_norm"}
    heads = partial(bert.heads, qkv=("query", "key", "value"), out="dense")
    mlp = {"in": "ffn", "out": "ffn_output"}
    for layer in sorted({*spec.owners}):
        f = f"albert.encoder.albert_layer_groups.{spec.places[layer]}"
        yield from of_layer(f"blocks.{layer}", f, spec, norms, heads, "attention", mlp)
    yield from bert.of_head(spec, bert.of_words("predictions"), ("albert.pooler", "classifier"))


kin = partial(Kin, NEW=None, EPS=bert.EPS, forward=bert.forward)
KIN = (
    kin(
        ("distilbert",),
        "DistilBERT (Sanh et al. 2019): BERT with half its layers, and without segments",
        {"n_layers": 6, "max_position_embeddings": 512, "activation": "gelu"},
        of_distilbert,
        # what positions start with in training; how much of the MLP is computed together
        ignores=("sinusoidal_pos_embds", "chunk_size_feed_forward"),
        EPS="",  # its config has none: it is always the same
        UNREAD=("vocab_*",),  # where no word is read out
        pieces=bert.pieces_of(
            "distilbert",
            ("vocab_transform", "vocab_layer_norm", *("vocab_projector",) * 2),
            ("pre_classifier", "classifier"),
            {"ln1": "sa_layer_norm", "ln2": "output_layer_norm"},
            "transformer.layer.{}",
            partial(bert.heads, qkv=("q_lin", "k_lin", "v_lin"), out="out_lin"),
            mlp={"in": "ffn.lin1", "out": "ffn.lin2"},
        ),
    ),
    kin(
        ("roberta", "xlm-roberta", "camembert"),
        "RoBERTa (Liu et al. 2019) and its relatives: BERT with other names for the head's "
        "tensors. Positions are counted from the padding token's id. XLM-RoBERTa and CamemBERT "
        "differ only in their tokenizers",
        {},
        lambda c: ModelSpec(**bert.of_kin(c, "gelu", first=1 + c.get("pad_token_id", int, 1))),
        UNREAD=("*.pooler.*", "lm_head.*"),
        pieces=bert.pieces_of("roberta", LM_HEAD),
    ),
    kin(
        ("ernie",),
        "ERNIE (Sun et al. 2020, section 4.2): BERT, whose embedding may add a vector of the task",
        {},
        of_ernie,
        UNREAD=bert.UNREAD,
        pieces=bert.pieces_of(
            "ernie",
            WORDS,
            ("ernie.pooler.dense", "classifier"),
            whole={"W_task": "ernie.embeddings.task_type_embeddings"},
        ),
    ),
    kin(
        ("nomic_bert",),
        "NomicBERT (Nussbaum et al. 2024, section 4.1): BERT with rotary positions, gated MLPs, "
        "and no biases in layers",
        {"max_position_embeddings": 2048, "vocab_size": 30528, "hidden_act": "silu"},
        of_turned,
        forward=turned,
        UNREAD=bert.UNREAD,
        pieces=bert.pieces_of(
            "nomic_bert",
            bert.of_words("cls.predictions", "transform.dense", "transform.layer_norm"),
            ("nomic_bert.pooler.dense", "classifier"),
            {"ln1": "norm1", "ln2": "norm2"},
            "encoder.layers.{}",
            partial(joined_heads, joined="Wqkv", out="out_proj", keys="h"),
            "attn",
            {"in": "mlp.fc11", "gate": "mlp.fc12", "out": "mlp.fc2"},
            {"ln_embed": "nomic_bert.emb_ln"},
        ),
    ),
    kin(
        ("eurobert",),
        "EuroBERT (Boizard et al. 2025, section 2): Llama, whose tokens attend to all others",
        {"num_hidden_layers": 12, "max_position_embeddings": 8192, "vocab_size": 128256}
        | {"hidden_act": "silu", "hidden_size": 768, "intermediate_size": 3072}
        | {"num_attention_heads": 12},
        of_eurobert,
        EPS=llama.EPS,
        forward=llama.forward,
        UNREAD=("lm_head.*",),
        pieces=eurobert_pieces,
    ),
    kin(
        ("gte",),
        "GTE (Zhang et al. 2024, section 3.1): NomicBERT with biases in attention and behind MLPs",
        {"max_position_embeddings": 8192, "type_vocab_size": 1},
        of_turned,
        forward=turned,
        UNREAD=("*.pooler.*", "lm_head.*"),
        pieces=gte_pieces,
    ),
    kin(
        ("electra",),
        "ELECTRA (Clark et al. 2020, section 3): BERT, but word vectors may be shorter than the "
        # its generator ranks words; classifiers are trained from the discriminator
        "residual stream",
        {"vocab_size": 30522, "hidden_size": 256, "num_attention_heads": 4}
        | {"intermediate_size": 1024},
        of_electra,
        forward=projected,
        UNREAD=("generator_*", "discriminator_predictions.*"),  # where no word is read out
        pieces=electra_pieces,
    ),
    kin(
        ("mpnet",),
        "MPNet (Song et al. 2020): BERT with a bias that depends on distance, added to the "
        "scores. All layers share this bias, as in T5. Positions count from 2, and there are no "
        "segments",
        {},
        of_mpnet,
        forward=with_distances,
        UNREAD=("*.pooler.*", "lm_head.*"),
        pieces=bert.pieces_of(
            "mpnet",
            LM_HEAD,
            norms={"ln1": "attention.LayerNorm", "ln2": "output.LayerNorm"},
            heads=partial(bert.heads, qkv="qkv", out="o"),
            attn="attention.attn",
            whole={"distance.W": "mpnet.encoder.relative_attention_bias"},
        ),
    ),
    kin(
        ("albert",),
        "ALBERT (Lan et al. 2019, section 3.1): BERT with the same weights in all layers. Word "
        "vectors are shorter than the residual stream",
        {"hidden_act": "gelu_new", "vocab_size": 30000, "hidden_size": 4096}
        | {"num_attention_heads": 64, "intermediate_size": 16384},
        of_albert,
        forward=projected,
        UNREAD=("*.pooler.*", "predictions.*", "sop_classifier.*"),  # of tasks
        pieces=albert_pieces,
    ),
)
