"""Granite's mixtures of experts (IBM 2024): Mixtral's pass with Granite's multipliers of embedding,
stream, scores and logits."""

from cellformer.engine.models.architectures.llama import EPS, around_mlp, granite, usual
from cellformer.engine.models.architectures.mixtral import OLDER, MoeSpec, forward
from cellformer.engine.models.foreign import Config, Piece, Pieces, linear, of_stack
from cellformer.engine.models.spec import ModelSpec

__all__ = ["EPS", "MODEL_TYPES", "NEW", "forward", "pieces", "read_config"]

MODEL_TYPES = ("granitemoe",)
NEW = {"hidden_act": "silu", "num_local_experts": 4, "num_experts_per_tok": 2}


def read_config(c: Config) -> ModelSpec:
    """The config of the mixtures."""
    c.assume(num_hidden_layers=32, max_position_embeddings=2048)
    c.ignore("router_aux_loss_coef")  # of training
    spec = granite(c, usual(c))
    return MoeSpec.of(
        spec,
        norm_eps=c.get(EPS, float, 1e-6),
        n_experts=c.get("num_local_experts", int, 8),
        n_chosen=c.get("num_experts_per_tok", int, 2),
        d_expert=spec.d_mlp,
    )


def pieces(spec: ModelSpec) -> Pieces:
    """Linear weights are [out, in]; all experts' are stacked, the gate's before the input's, or
    stand alone, as in GGUF files."""
    assert isinstance(spec, MoeSpec)
    yield from around_mlp(spec)
    for layer in range(spec.n_layers):
        m, f = f"blocks.{layer}.mlp", f"model.layers.{layer}.block_sparse_moe"
        yield f"{m}.W_router", Piece(f"{f}.router.layer.weight", transposed=True)
        both, out = f"{f}.input_linear.weight", f"{f}.output_linear.weight"
        for n in range(spec.n_experts):
            e, stack = f"{m}.e{n}", spec.n_experts
            yield f"{e}.W_gate", of_stack(both, 2 * n, spec.d_expert, stack, turn=True)
            yield f"{e}.W_in", of_stack(both, 2 * n + 1, spec.d_expert, stack, turn=True)
            yield f"{e}.W_out", of_stack(out, n, spec.d_model, stack, turn=True)
            yield from linear(e, f"{f}.experts.{n}", OLDER)
