"""ModelSpec: what a decoder is, in numbers and choices."""

from dataclasses import dataclass, fields
from typing import Literal

from engine.errors import InputError


@dataclass(frozen=True)
class ModelSpec:
    """Sizes and choices of a decoder, in TransformerLens's vocabulary.

    `n_heads=0` leaves attention out of every block, `d_mlp=0` the MLP; `n_layers=0` is a bigram
    model. `sqrt_d_head` is what attention scores are divided by; None means the square root of
    d_head (Vaswani et al. 2017, section 3.2.1).
    """

    d_vocab: int
    d_model: int
    n_ctx: int  # the longest prompt, in tokens
    d_vocab_out: int | None = None  # how many words get a logit; None: d_vocab
    n_layers: int = 0
    n_heads: int = 0
    d_head: int = 0
    d_mlp: int = 0
    activation: Literal["relu", "gelu_tanh"] = "relu"
    position: Literal["none", "learned"] = "none"
    norm: Literal["none", "layer"] = "none"  # before each sublayer
    final_norm: bool = False  # a LayerNorm before the unembedding
    tied: bool = False  # the unembedding is the embedding, transposed
    bias: bool = False  # biases in attention and MLP
    sqrt_d_head: float | None = None
    norm_eps: float = 1e-5

    def __post_init__(self) -> None:
        for size in ("d_vocab", "d_model", "n_ctx"):
            if getattr(self, size) < 1:
                raise InputError(f"{size} is {getattr(self, size)}; it must be at least 1")
        for size in ("n_layers", "n_heads", "d_head", "d_mlp"):
            if getattr(self, size) < 0:
                raise InputError(f"{size} is {getattr(self, size)}; it cannot be negative")
        if self.n_layers and not (self.n_heads or self.d_mlp):
            raise InputError("a block needs heads or an MLP: set n_heads or d_mlp, or n_layers=0")
        if self.n_heads and not self.d_head:
            raise InputError(f"{self.n_heads} heads need a d_head of at least 1")

    def size(self, axis: str) -> int:
        """The length of an axis by its name: "d_model", "vocab", ...; 1 for the nameless one."""
        names = {field.name for field in fields(self)}
        size = 1 if not axis else getattr(self, axis if axis in names else f"d_{axis}")
        return self.d_vocab if size is None else size
