"""GPT-BigCode (Ben Allal et al. 2023, section 4; SantaCoder, StarCoder): GPT-2 whose heads share
one key and one value (Shazeer 2019, section 3)."""

from collections.abc import Sequence

from cellformer.engine.models import parts
from cellformer.engine.models.architectures.llama import LlamaSpec, attention, mlp, run
from cellformer.engine.models.foreign import Config, Piece, Pieces, head_of, linear, norm
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("gpt_bigcode",)
EPS = "layer_norm_epsilon"  # the config's name for what keeps its norms' divisors above zero
NEW = {"activation_function": "gelu_pytorch_tanh"}


def forward(g: Forward, ids: Sequence[int]) -> None:
    """One forward pass over the token ids."""
    run(g, ids, parts.layer_norm, attention, mlp)


def read_config(c: Config) -> ModelSpec:
    """GPT-BigCode's config."""
    c.rename(hidden_size="n_embd", num_attention_heads="n_head", num_hidden_layers="n_layer")
    c.rename(max_position_embeddings="n_positions")
    c.assume(vocab_size=50257, n_embd=768, n_layer=12, n_head=12, n_positions=1024)
    c.ignore("attention_softmax_in_fp32", "scale_attention_softmax_in_fp32")  # of half precision
    c.ignore("num_key_value_heads", "inference_runner", "validate_runner_input")
    c.ignore("pre_allocate_kv_cache", "max_sequence_length", "max_batch_size")
    n_heads = c.get("n_head", int)
    return LlamaSpec(
        d_vocab=c.get("vocab_size", int),
        d_model=c.get("n_embd", int),
        n_ctx=c.get("n_positions", int),
        n_layers=c.get("n_layer", int),
        n_heads=n_heads,
        n_kv_heads=1 if c.get("multi_query", bool, True) else n_heads,
        d_head=c.divide("n_embd", "n_head"),
        d_mlp=c.get("n_inner", int, 4 * c.get("n_embd", int)),
        activation=c.activation("activation_function", "gelu_pytorch_tanh"),
        position="learned",
        norm="layer",
        final_norm=True,
        norm_eps=c.get(EPS, float, 1e-5),
        tied=c.get("tie_word_embeddings", bool, True),
        qkv_bias=True,
        out_bias=True,
        mlp_bias=True,
        sqrt_d_head=None if c.get("scale_attn_weights", bool, True) else 1.0,
        gated=False,
    )


def pieces(spec: ModelSpec) -> Pieces:
    """Linear weights are [out, in]. One tensor holds all queries, the key and the value; or head by
    head, if each has its own."""
    d_head, shared = spec.d_head, spec.kv_heads == 1
    yield "W_E", Piece("transformer.wte.weight")
    yield "W_pos", Piece("transformer.wpe.weight")
    yield "W_U", Piece("lm_head.weight", transposed=True)
    yield from norm("ln_final", "transformer.ln_f")
    for layer in range(spec.n_layers):
        b, f = f"blocks.{layer}", f"transformer.h.{layer}"
        yield from norm(f"{b}.ln1", f"{f}.ln_1")
        yield from norm(f"{b}.ln2", f"{f}.ln_2")
        places = {f"h{n}.{{}}_Q": n if shared else 3 * n for n in range(spec.n_heads)}
        for k, which in enumerate("KV"):
            for n in range(spec.kv_heads):
                places[f"kv{n}.{{}}_{which}"] = spec.n_heads + k if shared else 3 * n + 1 + k
        for ours, n in places.items():
            name = f"{f}.attn.c_attn"
            yield f"{b}.attn.{ours.format('W')}", head_of(f"{name}.weight", n, d_head, 0, turn=True)
            yield f"{b}.attn.{ours.format('b')}", head_of(f"{name}.bias", n, d_head, 0)
        for n in range(spec.n_heads):
            out = head_of(f"{f}.attn.c_proj.weight", n, d_head, 1, turn=True)
            yield f"{b}.attn.h{n}.W_O", out
        yield f"{b}.attn.b_O", Piece(f"{f}.attn.c_proj.bias")
        yield from linear(f"{b}.mlp", f"{f}.mlp", (("in", "c_fc"), ("out", "c_proj")))
