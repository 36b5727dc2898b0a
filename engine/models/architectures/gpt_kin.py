"""GPT-2's relatives, a row each: decoders with LayerNorm and an MLP without a gate. Their pass
is Llama's, with ALiBi where there are no other positions."""

from collections.abc import Callable, Sequence
from functools import partial
from math import sqrt
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.models import alibi, parts, rope
from cellformer.engine.models.architectures import decoder, gpt2
from cellformer.engine.models.architectures.kin import Kin
from cellformer.engine.models.architectures.llama import BEFORE, LlamaSpec, attention, run
from cellformer.engine.models.foreign import (
    USUAL,
    Config,
    Pieces,
    fused_heads,
    grouped_heads,
    heads_at,
    joined_heads,
    layout,
    outside,
)
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import ModelSpec

EPS = "layer_norm_epsilon"
PARTS = 4  # of CodeGen's tensor of queries, values and keys


class Words(NamedTuple):
    """A config's words for sizes. Without one for the MLP's, it is four times the stream's; without
    one for the activation function, that is always the same."""

    width: str
    heads: str
    layers: str
    context: str
    mlp: str = ""
    activation: str = ""


OF_GPT2 = Words("n_embd", "n_head", "n_layer", "n_positions", "n_inner", "activation_function")
RENAMED = {
    "hidden_size": "n_embd",
    "num_attention_heads": "n_head",
    "num_hidden_layers": "n_layer",
    "max_position_embeddings": "n_positions",
}


def forward(
    g: Forward,
    ids: Sequence[int],
    norm: parts.Norm = parts.layer_norm,
    places: Callable[[Forward, int], Block] = alibi.places,
) -> None:
    place = places(g, len(ids)) if g.spec.position == "none" else None  # [n_tokens, n_heads]
    run(g, ids, norm, partial(attention, places=place))


def of_gpt(
    c: Config, words: Words = OF_GPT2, eps: str = EPS, tied: bool = True, **own: Any
) -> LlamaSpec:
    """The common fields of GPT-2's relatives, from the same `words`. `eps` is the config's name
    for the epsilon of norms, `tied` a default; `own` are other fields of the spec."""
    wide = 4 * c.get(words.width, int)
    if words.activation:
        own["activation"] = c.activation(words.activation)
    usual = {
        "norm": "layer",
        "final_norm": True,
        "norm_eps": c.get(eps, float, 1e-5),
        "tied": c.get("tie_word_embeddings", bool, tied),
        "out_bias": True,
        "mlp_bias": True,
        "gated": False,
        "n_ctx": c.get(words.context, int),
        "d_mlp": c.get(words.mlp, int, wide) if words.mlp else wide,
    }
    return LlamaSpec(**c.sizes(words[:3]) | usual | own)


def of_bloom(c: Config) -> LlamaSpec:
    """BLOOM's spec. It has no maximum position: `seq_length` is the length of training."""
    if c.get("pretraining_tp", int, 1) > 1:
        c.refuse(
            "slow_but_exact",
            False,
            "with this option, sums leave out the biases; set this option to false",
        )
    return of_gpt(
        c,
        Words("hidden_size", "n_head", "n_layer", "seq_length"),
        activation="gelu_tanh",
        embed_norm=True,
        qkv_bias=True,
        adds_to_normed=c.get("apply_residual_connection_post_layernorm", bool, False),
    )


def of_falcon(c: Config) -> LlamaSpec:
    n_heads, new = c.get("num_attention_heads", int), c.get("new_decoder_architecture", bool, False)
    n_kv_heads, one_key = c.get("num_kv_heads", int, n_heads), c.get("multi_query", bool, True)
    parallel, n_norms = c.get("parallel_attn", bool, True), c.get("num_ln_in_parallel_attn", int, 2)
    if new and n_norms not in (1, 2):
        raise InputError(f"{c.path}: num_ln_in_parallel_attn is {n_norms}; it can be 1 or 2")
    rotary = rope.read(c, c.divide("hidden_size", "num_attention_heads"))
    return of_gpt(
        c,
        Words(*USUAL, rope.LONGEST, "ffn_hidden_size", "activation"),
        n_kv_heads=n_kv_heads if new else 1 if one_key else n_heads,
        position="none" if c.get("alibi", bool, False) else "rotary",
        **dict.fromkeys(("qkv_bias", "out_bias", "mlp_bias"), c.get("bias", bool, False)),
        n_ctx=rotary.n_ctx,
        **rotary.fields,
        parallel=new or parallel,
        own_norms=new and n_norms == 2,
    )


def rounded_places(g: Forward, n_tokens: int) -> Block:
    """ALiBi's terms, [n_tokens, n_heads]: as `alibi.places`, but rounded to the 8 bits of bfloat16,
    in which Falcon was trained, and divided by the root of d_head as scores are."""
    position = np.arange(n_tokens).astype(ml_dtypes.bfloat16)
    slope = np.array(alibi.slopes(g.spec.n_heads), np.float32).astype(ml_dtypes.bfloat16)
    place = np.outer(position, slope).astype(np.float64) / sqrt(g.spec.d_head)
    return g.at("alibi").input("place", place, ("token", "head"))


def falcon_pieces(spec: LlamaSpec) -> Pieces:
    """One tensor for queries, keys and values, group by group."""
    norms = {"ln1": "ln_attn", "ln2": "ln_mlp"} if spec.own_norms else BEFORE
    yield from layout(OF_WORDS, BLOCKS, norms, fused_heads, "self_attention", FOURFOLD)(spec)


def bigcode_heads(ours: str, theirs: str, spec: ModelSpec) -> Pieces:
    """One tensor holds all queries, the key and the value; or head by head, if each has its own."""
    heads = joined_heads if spec.kv_heads == 1 else fused_heads
    yield from heads(ours, theirs, spec, "c_attn", "c_proj")


def of_neo(c: Config) -> LlamaSpec:
    n_layers, window = c.get("num_layers", int), c.get("window_size", int, 256)
    kinds: list[str] = []
    for pattern, n in map(pair, c.listed("attention_types", list)):
        kinds += pattern * min(n, n_layers + 1)
    if len(kinds) != n_layers or not set(kinds) <= {"global", "local"}:
        raise InputError(f"{c.path}: attention_types must give ‘global’ or ‘local’ for each layer")
    words = ("hidden_size", "num_heads", "num_layers", rope.LONGEST, "intermediate_size")
    return of_gpt(
        c,
        Words(*words, "activation_function"),
        position="learned",
        sqrt_d_head=1.0,
        windows=tuple(window if kind == "local" else None for kind in kinds),
    )


def pair(listed: list[Any]) -> tuple[list[str], int]:
    """A pattern of layer kinds and its number of repetitions: [["global", "local"], 12]. Anything
    else gives no layer."""
    kinds, times = listed if len(listed) == 2 else ([], 0)
    fits = isinstance(kinds, list) and all(isinstance(kind, str) for kind in kinds)
    return (kinds, times) if fits and isinstance(times, int) else ([], 0)


def of_neox(c: Config) -> LlamaSpec:
    c.ignore("rope_theta")  # the reference reads rotary_emb_base alone
    d_head = c.divide("hidden_size", "num_attention_heads")
    rotary = rope.read(c, d_head, "rotary_emb_base", "rotary_pct", 0.25)
    return of_gpt(
        c,
        Words(*USUAL, rope.LONGEST, "intermediate_size", "hidden_act"),
        "layer_norm_eps",
        tied=False,
        d_mlp=c.get("intermediate_size", int),
        position="rotary",
        **dict.fromkeys(("qkv_bias", "out_bias"), c.get("attention_bias", bool, True)),
        own_norms=True,
        d_rotary=rotary.d_rotary,
        n_ctx=rotary.n_ctx,
        **rotary.fields,
        parallel=c.get("use_parallel_residual", bool, True),
    )


def of_gptj(c: Config) -> LlamaSpec:
    return of_gpt(
        c,
        tied=False,
        n_kv_heads=c.get("n_head", int),
        position="rotary",
        d_rotary=c.get("rotary_dim", int, c.divide("n_embd", "n_head")),
        rope_neighbours=True,
        parallel=True,
        out_bias=False,
        word_bias=True,
    )


def of_codegen(c: Config) -> LlamaSpec:
    """CodeGen's spec, which has GPT-J's words."""
    spec = of_gptj(c)
    if spec.n_heads % PARTS:
        raise InputError(f"{c.path}: n_head is {spec.n_heads}; CodeGen needs a multiple of {PARTS}")
    return spec


def codegen_heads(ours: str, theirs: str, spec: ModelSpec) -> Pieces:
    """In each part of the tensor stand its heads' queries, then values, then keys."""
    each = spec.n_heads // PARTS  # heads in a part

    def place(which: str, n: int) -> tuple[str, int]:
        return f"{theirs}.qkv_proj", (n // each * 3 + "QVK".index(which)) * each + n % each

    yield from heads_at(ours, f"{theirs}.out_proj", spec, place, "kv")


def of_first_gpt(c: Config) -> ModelSpec:
    exact = c.look("afn") == "gelu"  # which is the tanh form there
    return ModelSpec(
        **c.sizes(OF_GPT2[:3]),
        n_ctx=c.get("n_positions", int),
        d_mlp=4 * c.get("n_embd", int),
        activation="gelu_tanh" if exact else c.activation("afn"),
        position="learned",
        norm="layer",
        norm_after=True,
        norm_eps=c.get(EPS, float, 1e-5),
        tied=c.get("tie_word_embeddings", bool, True),
        bias=True,
    )


def first_gpt_pieces(spec: ModelSpec) -> Pieces:
    """GPT-2's layout, with other names of the embeddings."""
    yield from outside({"W_E": "transformer.tokens_embed", "W_pos": "transformer.positions_embed"})
    yield from gpt2.pieces(spec)


def of_mpt(c: Config) -> LlamaSpec:
    """MPT's spec. `attn_config` has fields of its own."""
    c.refuse(
        "logit_scale", None, "the library transformers does not scale the logits of this model"
    )
    inner = Config(c.path, c.get("attn_config", dict, {}))
    for name, allowed, why in (  # what is supported, and why no more
        ("attn_type", "multihead_attention", "only separate keys for each head are supported"),
        ("prefix_lm", False, "each token attends only to earlier tokens and itself"),
        ("qk_ln", False, "the library transformers has no norm of queries and keys in this model"),
        ("alibi", True, "the library transformers has only ALiBi positions in this model"),
        ("alibi_bias_max", 8, "the library transformers has no other ALiBi slopes for this model"),
    ):
        inner.refuse(name, allowed, why)
    scale = inner.optional("softmax_scale", float, None)
    return of_gpt(
        c,
        Words("d_model", "n_heads", "n_layers", "max_seq_len"),
        n_kv_heads=c.get("n_heads", int),
        activation="gelu",
        out_bias=False,
        mlp_bias=False,
        sqrt_d_head=None if scale is None else 1 / scale,
        bound=inner.optional("clip_qkv", float, None) or None,
    )


def of_fairseq(c: Config, words: Words) -> LlamaSpec:
    """The spec of BioGPT and XGLM, which scale words by the root of the stream's size. Their norms
    always have an epsilon of 1e-5: no field of their config has it."""
    scaled = c.get("scale_embedding", bool, True)
    return of_gpt(
        c,
        words,
        eps="epsilon",
        qkv_bias=True,
        embed_scale=sqrt(c.get(words.width, int)) if scaled else 1.0,
        position="learned" if words.width == "hidden_size" else "sinusoidal",
        first_place=2,
    )


def of_xglm(c: Config) -> LlamaSpec:
    c.refuse("add_cross_attention", False, "the model has one stack, which reads no other text")
    if c.get("pad_token_id", int, 1) > 1:  # whose row of the table of positions is 0
        raise InputError(f"{c.path}: pad_token_id must be 0 or 1, as in XGLM")
    sizes = ("d_model", "attention_heads", "num_layers", rope.LONGEST)
    return of_fairseq(c, Words(*sizes, "ffn_dim", "activation_function"))


def fairseq_pieces(base: str, **whole: str) -> Callable[[ModelSpec], Pieces]:
    """The layout of OPT, below another `base`."""
    return layout(
        {"W_E": f"{base}.embed_tokens", "ln_final": f"{base}.layer_norm", **whole},
        f"{base}.layers.{{}}",
        {"ln1": "self_attn_layer_norm", "ln2": "final_layer_norm"},
        partial(grouped_heads, out="out_proj", keys="h"),
        "self_attn",
        {"in": "fc1", "out": "fc2"},
    )


WHOLE = {"W_E": "transformer.wte", "W_U": "lm_head", "ln_final": "transformer.ln_f"}
OF_WORDS = WHOLE | {"W_E": "transformer.word_embeddings"}
OF_PLACES = WHOLE | {"W_pos": "transformer.wpe"}
BLOCKS, NORMS = "transformer.h.{}", {"ln1": "ln_1", "ln2": "ln_2"}
FOURFOLD = {"in": "mlp.dense_h_to_4h", "out": "mlp.dense_4h_to_h"}
MLP = {"in": "mlp.c_fc", "out": "mlp.c_proj"}
GPTJ_MLP = {"in": "mlp.fc_in", "out": "mlp.fc_out"}
OF_GPTJ = (WHOLE | {"b_U": "lm_head"}, BLOCKS, {"ln1": "ln_1"})

gpt = partial(Kin, EPS=EPS, forward=forward)
gptj = partial(
    gpt,
    assumes={"activation_function": "gelu_new", "rotary_dim": 64, "vocab_size": 50400}
    | {"n_embd": 4096, "n_layer": 28, "n_head": 16, "n_positions": 2048},
    renames=RENAMED,
    ignores=("n_ctx", "rotary", "scale_attn_weights"),
    NEW={"activation_function": "gelu_new"},
)
KIN = (
    gpt(
        ("bloom",),
        "BLOOM (BigScience Workshop 2022, section 3.2.2): ALiBi instead of position embeddings, "
        "and a norm after the embedding",
        {"vocab_size": 250880, "hidden_size": 64, "n_layer": 2, "n_head": 8, "seq_length": 2048},
        of_bloom,
        renames={"num_hidden_layers": "n_layer", "num_attention_heads": "n_head"}
        | {"n_embed": "hidden_size"},
        ignores=(  # in published configs, and read by what BLOOM was trained with
            *("attention_softmax_in_fp32", "bias_dropout_fusion", "masked_softmax_fusion"),
            *("n_inner", "offset_alibi", "skip_bias_add", "skip_bias_add_qkv", "unk_token_id"),
            "slow_but_exact",
        ),
        NEW={},
        pieces=layout(
            OF_WORDS | {"ln_embed": "transformer.word_embeddings_layernorm"},
            BLOCKS,
            BEFORE,
            partial(fused_heads, keys="h"),
            "self_attention",
            FOURFOLD,
        ),
    ),
    gpt(
        ("biogpt",),
        "BioGPT (Luo et al. 2022, section 3): GPT-2 for texts of biomedicine. Vectors of words are "
        "multiplied by the root of the stream's size",
        {"vocab_size": 42384, "hidden_size": 1024, "num_hidden_layers": 24}
        | {"num_attention_heads": 16, "intermediate_size": 4096, "hidden_act": "gelu"}
        | {rope.LONGEST: 1024},
        lambda c: of_fairseq(c, Words(*USUAL, rope.LONGEST, "intermediate_size", "hidden_act")),
        ignores=("layer_norm_eps", "layerdrop"),
        NEW={"hidden_act": "gelu"},
        EPS="",
        pieces=fairseq_pieces("biogpt", W_pos="biogpt.embed_positions", W_U="output_projection"),
    ),
    gpt(
        ("xglm",),
        "XGLM (Lin et al. 2021, section 2): GPT-2 for 30 languages, with sinusoidal positions. "
        "Vectors of words are multiplied by the root of the stream's size",
        {"vocab_size": 256008, "d_model": 1024, "ffn_dim": 4096, "num_layers": 24}
        | {"attention_heads": 16, rope.LONGEST: 2048, "activation_function": "gelu"},
        of_xglm,
        renames={"num_attention_heads": "attention_heads", "hidden_size": "d_model"}
        | {"num_hidden_layers": "num_layers"},
        ignores=("layerdrop", "init_std", "decoder_start_token_id"),
        NEW={"activation_function": "gelu"},
        EPS="",
        pieces=fairseq_pieces("model", W_U="lm_head"),
    ),
    gpt(
        ("falcon",),
        "Falcon (Almazrouei et al. 2023, section 4.3): parallel attention and MLP, grouped keys "
        "and values, rotary positions. Falcon-7B has one norm for both sublayers and one key for "
        "all heads. Larger models have two norms and more keys. Falcon-RW has sequential "
        "sublayers and ALiBi",
        {rope.LONGEST: 2048, "activation": "gelu", "vocab_size": 65024, "hidden_size": 4544}
        | {"num_hidden_layers": 32, "num_attention_heads": 71},
        of_falcon,
        renames={"n_embed": "hidden_size"},
        NEW={"activation": "gelu"},
        forward=partial(forward, places=rounded_places),
        pieces=falcon_pieces,
    ),
    gpt(
        ("gpt_bigcode",),
        "GPT-BigCode (Ben Allal et al. 2023, section 4; SantaCoder, StarCoder): GPT-2, but all "
        "heads share one key and one value (Shazeer 2019, section 3)",
        {"vocab_size": 50257, "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024}
        | {"activation_function": "gelu_pytorch_tanh"},
        lambda c: of_gpt(
            c,
            n_kv_heads=1 if c.get("multi_query", bool, True) else c.get("n_head", int),
            position="learned",
            qkv_bias=True,
            sqrt_d_head=None if c.get("scale_attn_weights", bool, True) else 1.0,
        ),
        renames=RENAMED,
        ignores=(
            *("attention_softmax_in_fp32", "scale_attention_softmax_in_fp32"),  # of half precision
            *("num_key_value_heads", "inference_runner", "validate_runner_input"),
            *("pre_allocate_kv_cache", "max_sequence_length", "max_batch_size"),
        ),
        NEW={"activation_function": "gelu_pytorch_tanh"},
        pieces=layout(OF_PLACES, BLOCKS, NORMS, bigcode_heads, "attn", MLP),
    ),
    gpt(
        ("gpt_neo",),
        "GPT-Neo (Black et al. 2021; the TinyStories models): GPT-2 with alternating local "
        "(windowed) and global attention. Scores are not divided by sqrt(d_head). Queries, keys "
        "and values have no biases",
        {"attention_types": [[["global", "local"], 12]], "num_layers": 24}
        | {rope.LONGEST: 2048, "activation_function": "gelu_new"},
        of_neo,
        ignores=("attention_layers",),  # attention_types, spelt out
        NEW={"activation_function": "gelu_new"},
        pieces=layout(
            OF_PLACES,
            BLOCKS,
            NORMS,
            partial(grouped_heads, out="out_proj", keys="h"),
            "attn.attention",
            MLP,
        ),
    ),
    gpt(
        ("gpt_neox",),
        "GPT-NeoX (Black et al. 2022, section 2.1; the Pythia models): parallel attention and "
        "MLP, which read the same residual stream. Rotary positions change only a part of each "
        "head's features",
        {"num_hidden_layers": 44, rope.LONGEST: 2048, "hidden_act": "gelu"},
        of_neox,
        NEW={"hidden_act": "gelu"},
        EPS="layer_norm_eps",
        pieces=layout(
            {"W_E": "gpt_neox.embed_in", "W_U": "embed_out"}
            | {"ln_final": "gpt_neox.final_layer_norm"},
            "gpt_neox.layers.{}",
            BEFORE,
            partial(fused_heads, keys="h"),
            "attention",
            FOURFOLD,
        ),
    ),
    gptj(
        ("gptj",),
        "GPT-J (Wang & Komatsuzaki 2021): parallel attention and MLP with the same norm, as in "
        "Phi, but in separate tensors. Adjacent features rotate in pairs, and attention has no "
        "biases",
        read=of_gptj,
        pieces=layout(*OF_GPTJ, partial(grouped_heads, out="out_proj"), "attn", GPTJ_MLP),
    ),
    gptj(
        ("codegen",),
        "CodeGen (Nijkamp et al. 2022, section 2.2): GPT-J's forward pass. One tensor holds "
        "queries, values and keys in four parts, because four machines trained them",
        read=of_codegen,
        pieces=layout(*OF_GPTJ, codegen_heads, "attn", GPTJ_MLP),
    ),
    gpt(
        ("openai-gpt",),
        "GPT, the first version (Radford et al. 2018, section 3.1): norms after each sublayer's "
        "sum, as in the Transformer of 2017, and learned positions",
        {"vocab_size": 40478, "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 512}
        | {"afn": "gelu"},
        of_first_gpt,
        renames=RENAMED,
        ignores=("n_ctx", "predict_special_tokens"),
        NEW={"afn": "gelu"},
        forward=decoder.forward,
        pieces=first_gpt_pieces,
    ),
    gpt(
        ("mpt",),
        "MPT (MosaicML 2023): ALiBi instead of position embeddings, LayerNorm with only a gain, "
        "no biases. Queries, keys and values stay within a bound, if the config sets a bound",
        {"vocab_size": 50368, "d_model": 2048, "n_heads": 16, "n_layers": 24, "max_seq_len": 2048},
        of_mpt,
        renames={"hidden_size": "d_model", "num_attention_heads": "n_heads"}
        | {"num_hidden_layers": "n_layers"},
        ignores=(
            *("attn_config", "expansion_ratio", "learned_pos_emb", "init_device"),
            *("embedding_fraction", "norm_type", "no_bias", "verbose", "init_config"),
        ),
        NEW={},
        forward=partial(forward, norm=parts.layer_norm_without_bias),
        pieces=layout(
            WHOLE | {"ln_final": "transformer.norm_f"},
            "transformer.blocks.{}",
            {"ln1": "norm_1", "ln2": "norm_2"},
            partial(joined_heads, joined="Wqkv", out="out_proj"),
            "attn",
            {"in": "ffn.up_proj", "out": "ffn.down_proj"},
        ),
    ),
)
