"""GPT-BigCode (Ben Allal et al. 2023, section 4; SantaCoder, StarCoder): GPT-2 whose heads share
one key and one value (Shazeer 2019, section 3)."""

from functools import partial

from cellformer.engine.models import parts
from cellformer.engine.models.architectures import gpt_neo
from cellformer.engine.models.architectures.llama import of_gpt, run
from cellformer.engine.models.foreign import Config, Pieces, head_of, layout, written
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("gpt_bigcode",)
EPS = "layer_norm_epsilon"  # the config's name for what keeps its norms' divisors above zero
NEW = {"activation_function": "gelu_pytorch_tanh"}

forward = partial(run, norm=parts.layer_norm)


def read_config(c: Config) -> ModelSpec:
    """GPT-BigCode's config."""
    c.rename(hidden_size="n_embd", num_attention_heads="n_head", num_hidden_layers="n_layer")
    c.rename(max_position_embeddings="n_positions")
    c.assume(vocab_size=50257, n_embd=768, n_layer=12, n_head=12, n_positions=1024)
    c.ignore("attention_softmax_in_fp32", "scale_attention_softmax_in_fp32")  # of half precision
    c.ignore("num_key_value_heads", "inference_runner", "validate_runner_input")
    c.ignore("pre_allocate_kv_cache", "max_sequence_length", "max_batch_size")
    return of_gpt(
        c,
        EPS,
        n_ctx=c.get("n_positions", int),
        n_kv_heads=1 if c.get("multi_query", bool, True) else c.get("n_head", int),
        d_mlp=c.get("n_inner", int, 4 * c.get("n_embd", int)),
        activation=c.activation("activation_function", "gelu_pytorch_tanh"),
        position="learned",
        qkv_bias=True,
        sqrt_d_head=None if c.get("scale_attn_weights", bool, True) else 1.0,
    )


def heads(ours: str, theirs: str, spec: ModelSpec) -> Pieces:
    """One tensor holds all queries, the key and the value; or head by head, if each has its own."""
    d_head, shared = spec.d_head, spec.kv_heads == 1
    places = {f"h{n}.{{}}_Q": n if shared else 3 * n for n in range(spec.n_heads)}
    for k, which in enumerate("KV"):
        for n in range(spec.kv_heads):
            places[f"kv{n}.{{}}_{which}"] = spec.n_heads + k if shared else 3 * n + 1 + k
    for head, n in places.items():
        name = f"{theirs}.c_attn"
        yield f"{ours}.{head.format('W')}", head_of(f"{name}.weight", n, d_head, 0, turn=True)
        yield f"{ours}.{head.format('b')}", head_of(f"{name}.bias", n, d_head, 0)
    yield from written(ours, f"{theirs}.c_proj", spec)


pieces = layout(gpt_neo.WHOLE, "transformer.h.{}", gpt_neo.NORMS, heads, "attn", gpt_neo.MLP)
