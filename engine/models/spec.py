"""ModelSpec: the sizes and architectural choices of a decoder or an encoder."""

from dataclasses import MISSING, Field, dataclass, fields, replace
from types import NoneType, UnionType
from typing import Any, Literal, Self, get_args, get_origin, get_type_hints

from cellformer.engine.cells.arguments import explained_class
from cellformer.engine.cells.errors import InputError, UnknownNameError, check_all
from cellformer.engine.cells.fields import LARGEST
from cellformer.engine.cells.texts import cut

Position = Literal["none", "learned", "sinusoidal", "rotary"]
Norm = Literal["none", "layer", "rms"]
Activation = Literal[
    "relu", "gelu", "gelu_tanh", "silu", "relu2", "quick_gelu", "mish", "tanh", "logistic",
    "relu6", "leaky_relu", "selu", "elu", "laplace", "same",
]  # fmt: skip
Reads = Literal["text", "image"]
Gives = Literal["next word", "masked word", "sentence", "class", "token class"]
Pooling = Literal["mean", "first", "last", "max", "mean of root"]

CLASSES: tuple[Gives, Gives] = ("class", "token class")  # of a text, of each token

MAX_HEADS = 20_000  # in all layers; the largest Llama has 16,128
MAX_LAYERS = 2_000  # the largest Llama has 126


@explained_class
@dataclass(frozen=True)
class ModelSpec:
    """Sizes and choices of a decoder or an encoder, with TransformerLens's names.

    `n_heads=0` leaves attention out of every block, `d_mlp=0` the MLP; `n_layers=0` is a bigram
    model. Fields that an architecture does not use keep their defaults.

    >>> cf.load("cat-sat").spec
    ModelSpec(d_vocab=20, d_model=5, n_ctx=8, n_layers=1, n_heads=1, d_head=5)
    """

    def __repr__(self) -> str:
        """The fields that differ from their defaults."""
        given = [f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if self._chosen(f)]
        return cut(f"{type(self).__name__}({', '.join(given)})", 280)

    def _chosen(self, of: Field[Any]) -> bool:
        return of.default is MISSING or getattr(self, of.name) != of.default

    d_vocab: int
    d_model: int
    n_ctx: int  # the longest prompt, in tokens
    d_vocab_out: int | None = None  # how many words get a logit; None: d_vocab
    n_layers: int = 0
    n_heads: int = 0
    n_kv_heads: int | None = None  # heads of keys and values, shared by groups; None: n_heads
    d_head: int = 0
    d_mlp: int = 0
    d_state: int = 0  # numbers that each channel carries from token to token; 0: no recurrence
    activation: Activation = "relu"
    position: Position = "none"
    norm: Norm = "none"
    norm_after: bool = False  # after each sublayer's residual add, as in 2017; else before it
    norm_gain: bool = True  # RMSNorm multiplies each feature by a weight; False: it only divides
    embed_norm: bool = False  # of the sum of embeddings, before the first block
    final_norm: bool = False  # before the unembedding
    norm_eps: float = 1e-5
    tied: bool = False  # the unembedding is the embedding, transposed
    bias: bool = False  # biases in attention and MLP
    qkv_bias: bool = False  # llama family: of queries, keys and values
    out_bias: bool = False  # llama family: of attention's output
    mlp_bias: bool = False  # llama family
    qk_norm: bool = False  # llama family: RMSNorm of every query and key
    causal: bool = True
    windows: tuple[int | None, ...] = ()  # per layer: how many keys a query sees; (): all
    sqrt_d_head: float | None = None  # what scores are divided by; None: the root of d_head
    d_rotary: int | None = None  # how many of a head's features rotate; None: d_head
    rope_theta: float = 10000.0
    rope_frequencies: tuple[float, ...] = ()  # of a head's pairs; (): theta^(-2i/d_rotary)
    rope_factor: float = 1.0  # of all cosines and sines
    rope_neighbours: bool = False  # features 0 and 1, 2 and 3, ... turn together; else see rotation
    parallel: bool = False  # attention and MLP read the same residual
    reads: Reads = "text"  # of an image, token ids are the brightness of its pixels
    gives: Gives = "next word"  # what is read out: logits of words or labels, or a vector for all
    n_positions: int = 0  # encoders: rows of the table of positions
    first_position: int = 0  # encoders: the first token's row of it
    n_segments: int = 0  # encoders: rows of the segment embedding; 0: none
    head_activation: Activation = "gelu"  # encoders: of the dense layer before the logits
    pooling: Pooling = "mean"  # of tokens' vectors, to the sentence's
    d_sentence: int = 0  # size of a linear map after pooling; 0: none
    d_between: int = 0  # size of another one before it; 0: none
    sentence_bias: bool = False  # of that map
    sentence_tanh: bool = False  # of what it gives
    unit_length: bool = False  # the sentence's vector is divided by its length

    @classmethod
    def of(cls, spec: "ModelSpec", **own: Any) -> Self:
        """A spec with the fields of another one, and this class' own."""
        return cls(**{f.name: getattr(spec, f.name) for f in fields(spec)} | own)

    def __post_init__(self) -> None:
        self._check_kinds()
        needed = {name: getattr(self, name) for name in ("d_vocab", "d_model", "n_ctx")}
        needed |= {} if self.d_vocab_out is None else {"d_vocab_out": self.d_vocab_out}
        sizes = ("n_layers", "n_heads", "d_head", "d_mlp", "d_state")
        others = {name: getattr(self, name) for name in sizes}
        check_all(
            *((n >= 1, f"{size} is {n}; it must be at least 1") for size, n in needed.items()),
            (self.rope_theta > 0, f"rope_theta is {self.rope_theta}; it must be above 0"),
            (
                self.norm_eps >= 0 and self.sqrt_d_head != 0,
                "norm_eps must not be negative, and sqrt_d_head must not be 0, because the "
                "scores are then not numbers",
            ),
            *((n >= 0, f"{size} is {n}; it must not be negative") for size, n in others.items()),
        )
        self._check_heads()

    def _check_heads(self) -> None:
        """Raise InputError for blocks and heads that no model has."""
        rotary, n_heads, kv_heads = self.position == "rotary", self.n_heads, self.kv_heads
        check_all(
            (
                self.n_layers <= MAX_LAYERS,
                f"n_layers is {self.n_layers:,}; the limit is {MAX_LAYERS:,}",
            ),
            (
                self.n_layers * max(n_heads, 1) <= MAX_HEADS,
                f"n_layers = {self.n_layers} and n_heads = {n_heads} give too many heads; the "
                f"limit is {MAX_HEADS:,} heads",
            ),
            (
                not self.n_layers or n_heads or self.d_mlp or self.d_state,
                "a block needs heads or an MLP: set n_heads or d_mlp, or set n_layers=0",
            ),
            (not n_heads or self.d_head, f"{n_heads} heads need a d_head of at least 1"),
            (
                not n_heads or (kv_heads >= 1 and n_heads % kv_heads == 0),
                f"{n_heads} heads cannot share {kv_heads} key-value heads; n_heads must be a "
                "multiple of n_kv_heads",
            ),
            (
                not rotary or 0 <= self.rotary <= self.d_head,
                f"d_rotary is {self.rotary}; it must be from 0 to d_head = {self.d_head}",
            ),
            (
                not rotary or self.rotary % 2 == 0,
                f"d_rotary is {self.rotary}; it must be even, because features rotate in pairs",
            ),
        )

    def _check_kinds(self) -> None:
        """Check the type of every field: sizes are whole numbers, choices are known."""
        for name, kind in get_type_hints(type(self)).items():
            value = getattr(self, name)
            if not _fits(value, kind):
                choices = get_args(kind) if get_origin(kind) is Literal else ()
                what = f"; it can be {', '.join(choices)}" if choices else f", not {_said(kind)}"
                raise InputError(f"{name} is {value!r}{what}")
        check_all(
            (
                all(window is None or window >= 1 for window in self.windows),
                "a window must have at least 1 key; correct the window size",
            ),
            (
                len(self.windows) in (0, self.n_layers),
                f"there must be one window for each layer ({self.n_layers}), but "
                f"{len(self.windows)} are given",
            ),
        )

    @property
    def kv_heads(self) -> int:
        return self.n_heads if self.n_kv_heads is None else self.n_kv_heads

    @property
    def rotary(self) -> int:
        return self.d_head if self.d_rotary is None else self.d_rotary

    def window(self, layer: int) -> int | None:
        """The number of keys that a query of this layer sees; None: all up to itself."""
        return self.windows[layer] if self.windows else None

    def size(self, axis: str) -> int:
        """The length of an axis by its name: "d_model", "vocab", ...; 1 for the nameless one."""
        name = axis if axis in self.__dataclass_fields__ else f"d_{axis}"
        if axis and not hasattr(self, name):
            raise UnknownNameError("axis", axis, self.__dataclass_fields__)
        size = getattr(self, name) if axis else 1
        return self.d_vocab if size is None else size


@dataclass(frozen=True, repr=False)
class TwoStackSpec(ModelSpec):
    """ModelSpec of an encoder-decoder (Vaswani et al. 2017, figure 1): the inherited fields are
    the decoder's, and the encoder's are added."""

    start: int = 0  # the id that every answer begins with
    d_vocab_source: int | None = None  # words of the source's own vocabulary; None: the answer's
    n_source: int = 1  # the longest source sentence, in tokens
    n_encoder_layers: int = 0
    n_encoder_heads: int = 0
    d_encoder_mlp: int = 0

    @property
    def encoder(self) -> Self:
        """The encoder's spec: as the decoder's, with sizes of its own; every token sees all."""
        return replace(
            self,
            n_layers=self.n_encoder_layers,
            n_heads=self.n_encoder_heads,
            n_kv_heads=None,
            d_head=self.n_heads * self.d_head // self.n_encoder_heads,
            d_mlp=self.d_encoder_mlp,
            causal=False,
        )


def _fits(value: Any, kind: Any) -> bool:
    """Whether a value has a field's type and, if a number, a plausible size."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return value in inner
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(part, inner[0]) for part in value)
    if origin is UnionType:
        return any(_fits(value, one) for one in inner)
    if kind is float and type(value) is int:
        return abs(value) <= LARGEST
    fits = type(value) is kind or (kind is NoneType and value is None)
    return fits and (kind not in (int, float) or -LARGEST <= value <= LARGEST)


def _said(kind: Any) -> str:
    """A field's type in words."""
    words = {int: "a whole number", float: "a number", bool: "true or false", NoneType: "null"}
    inner = [_said(one) for one in get_args(kind) if one is not Ellipsis]
    if get_origin(kind) is tuple:
        return f"a list of {inner[0]}"
    return " or ".join(inner) if inner else words.get(kind, str(kind))
