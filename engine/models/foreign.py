"""The terms of an architecture's file: the config.json that it reads, and pieces of the tensors
that hold its weights.

A `Piece` is a slice of a foreign tensor, transposed if the tensor is [out, in]. One table of pieces
(name here -> piece) serves loading and saving.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from typing import Any

from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.fields import Fields
from cellformer.engine.models.spec import Activation, ModelSpec

ACTIVATIONS: dict[str, Activation] = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_accurate": "gelu_tanh",
    "gelu_python": "gelu",
    "gelu_python_tanh": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
    "relu2": "relu2",
    "quick_gelu": "quick_gelu",
    "mish": "mish",
    "tanh": "tanh",
    "sigmoid": "logistic",
    "relu6": "relu6",
    "leaky_relu": "leaky_relu",
    "selu": "selu",
    "elu": "elu",
    "laplace": "laplace",
    "linear": "same",
}
USUAL = ("hidden_size", "num_attention_heads", "num_hidden_layers")
ORIGINAL = "original_max_position_embeddings"
LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, ORIGINAL: 8192}  # Llama 3's scaling
FULL, WINDOWED = "full_attention", "sliding_attention"  # what `layer_types` calls layers
# What a config says that no forward pass reads, as patterns.
OF_TRAINING = ("*dropout*", "*pdrop", "initializer_range", "gradient_checkpointing", "use_bfloat16")
OF_TOKENS = ("*token", "*token_id", "*token_ids", "tokenizer_class", "prefix")
OF_TASKS = ("summary_*", "task_specific_params", "finetuning_task", "*label*", "problem_type")
OF_GENERATION = ("do_sample", "temperature", "top_k", "top_p", "max_*length")
OF_BEAMS = ("num_beams", "early_stopping", "length_penalty")
OF_FILES = ("_*", "*_version", "architectures", "auto_map", "model_type", "dtype", "torch_dtype")
OF_PROGRAMS = ("*cache*", "return_dict", "output_*", "*attn_implementation", "pretraining_tp")
NO_MATTER = OF_TRAINING + OF_TOKENS + OF_TASKS + OF_GENERATION + OF_BEAMS + OF_FILES + OF_PROGRAMS


class Config(Fields):
    """A config.json that notes which fields are read: an unread field may change what the model
    computes, see `check_unread`. `path` names the file in errors."""

    def ignore(self, *names: str) -> None:
        """Mark fields that the architecture's reference implementation does not read either."""
        self.asked |= set(names)

    def assume(self, **values: Any) -> None:
        """Set the reference implementation's defaults for fields that the config leaves out."""
        self.values = values | self.values

    def rename(self, **names: str) -> None:
        """Accept other names of fields, as the reference implementation does: other=own."""
        self.values = {names.get(name, name): value for name, value in self.values.items()}

    def otherwise(self, **values: Any) -> "Config":
        """This config with other values of some fields; it shares the list of fields that were
        read."""
        other = Config(self.path, self.values | values)
        other.asked = self.asked
        return other

    def check_unread(self) -> None:
        """Raise InputError for an option that is set and that the architecture did not read."""
        for name, value in self.values.items():
            off = value is None or value is False or value in ("", [], {})
            if not (off or name in self.asked or any(fnmatch(name, p) for p in NO_MATTER)):
                raise InputError(
                    f"{self.path}: cellformer does not know {name} = {value!r}, which could "
                    f"change the results; delete {name} if you know that the results stay the same"
                )

    def windowed(self, n_layers: int, kind: str = WINDOWED) -> list[bool]:
        """The layers with sliding windows, or with another kind than full attention, by
        `layer_types`; empty without that field.

        Raises InputError for an unknown kind of layer, and for a list of the wrong length.
        """
        kinds = self.listed("layer_types", str)
        unknown = [one for one in kinds if one not in (kind, FULL)]
        if unknown or len(kinds) not in (0, n_layers):
            what = f"has {unknown[0]!r}" if unknown else f"lists {len(kinds)} layers"
            raise InputError(
                f"{self.path}: layer_types {what}; write {FULL} or {kind} for each of "
                f"{n_layers} layers"
            )
        return [one == kind for one in kinds]

    def activation(self, name: str, default: str | None = None) -> Activation:
        """An activation function, by its name here."""
        value = self.get(name, str, default)
        if value not in ACTIVATIONS:
            raise InputError(
                f"{self.path}: {name} = {value!r} is not supported; choose one of "
                f"{', '.join(ACTIVATIONS)}"
            )
        return ACTIVATIONS[value]

    def divide(self, whole: str, by: str) -> int:
        """The quotient of two fields, for a head's size. Raises InputError if it is not whole."""
        a: int = self.get(whole, int)
        b: int = self.get(by, int)
        if b < 1 or a % b:
            raise InputError(f"{self.path}: {by} = {b} must divide {whole} = {a}")
        return a // b

    def sizes(self, words: tuple[str, str, str] = USUAL) -> dict[str, Any]:
        """A spec's sizes that every model has, by a config's words for the width of the stream, the
        numbers of heads and of layers."""
        width, heads, layers = words
        return {
            "d_vocab": self.get("vocab_size", int),
            "d_model": self.get(width, int),
            "n_layers": self.get(layers, int),
            "n_heads": self.get(heads, int),
            "d_head": self.divide(width, heads),
        }

    def refuse(self, name: str, allowed: Any, why: str) -> None:
        """Raise InputError if a field has another value than the supported one."""
        value = self.look(name)
        if value not in (allowed, None):
            raise InputError(f"{self.path}: {name} = {value!r} is not supported; {why}")


# --- where weights stand ----------------------------------------------------------------------


@dataclass(frozen=True)
class Piece:
    """A slice [start, stop) of a foreign tensor along one axis; stop None is the end."""

    name: str
    axis: int = 0
    start: int = 0
    stop: int | None = None
    transposed: bool = False
    row: bool = False  # a vector that is one row of a matrix
    columns: tuple[int, int] = (0, 1)  # the first that it takes, and every how manieth
    width: int = 0  # of adjacent columns, one of columns[1] parts; 0: they stand in turn
    stack: int = 0  # how many matrices the tensor holds, one behind another; 0: it is one
    shape: tuple[int, ...] = ()  # of the tensor, if it is neither a matrix nor a vector

    @property
    def slices(self) -> tuple[slice, ...]:
        """The piece as indices of numpy: `tensor[piece.slices]`."""
        taken = (slice(None),) * self.axis + (slice(self.start, self.stop),)
        first, step = self.columns
        side = slice(first, first + self.width) if self.width else slice(first, None, step)
        return taken if step == 1 else (*taken, side)


# Our name of a weight, and the piece that holds it. Where checkpoints differ in that, a weight
# comes with each: it is read from the first that is there, and saved in the first.
Pieces = Iterator[tuple[str, Piece]]
Heads = Callable[[str, str, ModelSpec], Pieces]  # of a layer's attention
Names = Mapping[str, str]  # ours -> theirs


def head_of(
    name: str, n: int, d_head: int, axis: int, offset: int = 0, turn: bool = False
) -> Piece:
    """One head's slice of a tensor with all heads side by side, from `offset` on."""
    start = offset + n * d_head
    return Piece(name, axis, start, start + d_head, turn)


def of_stack(
    name: str, n: int, rows: int, stack: int, turn: bool = False, columns: tuple[int, int] = (0, 1)
) -> Piece:
    """Rows [n * rows, (n + 1) * rows) of a stack of matrices, counted through all of them."""
    return Piece(name, 0, n * rows, (n + 1) * rows, turn, columns=columns, stack=stack)


def norm(ours: str, theirs: str) -> Pieces:
    """The pieces of a norm: gain and bias."""
    yield f"{ours}.w", Piece(f"{theirs}.weight")
    yield f"{ours}.b", Piece(f"{theirs}.bias")


def linear(ours: str, theirs: str, names: Iterable[tuple[str, str]], turn: bool = True) -> Pieces:
    """The pieces of W_x and b_x for every (x, foreign name); `turn` if the matrices are [out,
    in]."""
    for which, name in names:
        yield f"{ours}.W_{which}", Piece(f"{theirs}.{name}.weight", transposed=turn)
        yield f"{ours}.b_{which}", Piece(f"{theirs}.{name}.bias")


def mapped(
    ours: str, which: str, theirs: str, n: int, size: int, offset: int = 0, stack: int = 0
) -> Pieces:
    """The pieces W_x and b_x of a linear map, with x for `which`: the n-th `size` rows, from
    `offset` on, of a tensor [out, in], or of a `stack`, and of its bias."""
    rows = head_of(f"{theirs}.weight", n, size, 0, offset, turn=True)
    yield f"{ours}.W_{which}", replace(rows, stack=stack)
    yield f"{ours}.b_{which}", head_of(f"{theirs}.bias", n, size, 0, offset)


def heads_at(
    ours: str, out: str, spec: ModelSpec, place: Callable[[str, int], tuple[str, int]], keys: str
) -> Pieces:
    """The pieces of attention: `place` gives, of Q, K or V and of a head's number, the tensor [out,
    in] that it is in, and as which head there; `out` holds what all heads write. `keys` is our name
    for the heads of keys and values: h if none is shared."""
    for which, kind in (("Q", "h"), ("K", keys), ("V", keys)):
        for n in range(spec.n_heads if which == "Q" else spec.kv_heads):
            yield from mapped(f"{ours}.{kind}{n}", which, *place(which, n), spec.d_head)
    yield from written(ours, out, spec)


def grouped_heads(
    ours: str,
    theirs: str,
    spec: ModelSpec,
    out: str = "o_proj",
    keys: str = "kv",
    qkv: Sequence[str] = ("q_proj", "k_proj", "v_proj"),
) -> Pieces:
    """The pieces of attention with a tensor for all queries, one for keys, and one for values."""
    names = dict(zip("QKV", qkv, strict=True))

    def place(which: str, n: int) -> tuple[str, int]:
        return f"{theirs}.{names[which]}", n

    yield from heads_at(ours, f"{theirs}.{out}", spec, place, keys)


def fused_heads(
    ours: str,
    theirs: str,
    spec: ModelSpec,
    fused: str = "query_key_value",
    out: str = "dense",
    keys: str = "kv",
) -> Pieces:
    """The pieces of attention with one tensor, `fused`. For each group it holds the queries of the
    heads that share a key, then their key, then their value."""
    group = spec.n_heads // spec.kv_heads

    def place(which: str, n: int) -> tuple[str, int]:
        of_group, nth = divmod(n, group) if which == "Q" else (n, group + "KV".index(which))
        return f"{theirs}.{fused}", of_group * (group + 2) + nth

    yield from heads_at(ours, f"{theirs}.{out}", spec, place, keys)


def joined_heads(
    ours: str, theirs: str, spec: ModelSpec, joined: str, out: str, keys: str = "kv"
) -> Pieces:
    """The pieces of attention with all queries, then all keys, then all values in one tensor,
    `joined`."""
    before = {"Q": 0, "K": spec.n_heads, "V": spec.n_heads + spec.kv_heads}

    def place(which: str, n: int) -> tuple[str, int]:
        return f"{theirs}.{joined}", before[which] + n

    yield from heads_at(ours, f"{theirs}.{out}", spec, place, keys)


def written(ours: str, out: str, spec: ModelSpec) -> Pieces:
    """The pieces of attention's output: W_O of each head, and b_O."""
    yield from (
        (f"{ours}.h{n}.W_O", head_of(f"{out}.weight", n, spec.d_head, 1, turn=True))
        for n in range(spec.n_heads)
    )
    yield f"{ours}.b_O", Piece(f"{out}.bias")


GATED = (("gate", "gate_proj"), ("in", "up_proj"), ("out", "down_proj"))  # of a gated MLP

OLDER = (("gate", "w1"), ("in", "w3"), ("out", "w2"))  # of Mixtral's experts


def joined_mlps(spec: ModelSpec) -> Pieces:
    """Gated MLPs with one tensor for gate and input."""
    for layer in range(spec.n_layers):
        ours, theirs = f"blocks.{layer}.mlp", f"model.layers.{layer}.mlp"
        for n, which in enumerate(("gate", "in")):
            yield from mapped(ours, which, f"{theirs}.gate_up_proj", n, spec.d_mlp)
        yield f"{ours}.W_out", Piece(f"{theirs}.down_proj.weight", transposed=True)


def apart(ours: str, theirs: str, n_experts: int, names: Iterable[tuple[str, str]]) -> Pieces:
    """The router, and each expert's matrices."""
    yield f"{ours}.W_router", Piece(f"{theirs}.gate.weight", transposed=True)
    for n in range(n_experts):
        yield from linear(f"{ours}.e{n}", f"{theirs}.experts.{n}", names)


def stacked(
    ours: str, both: str, out: str, n_experts: int, d_expert: int, d_model: int, stack: int = 0
) -> Pieces:
    """All experts' matrices in two tensors; for each expert, the gate's rows come before the
    input's."""
    for n in range(n_experts):
        e = f"{ours}.e{n}"
        yield f"{e}.W_gate", of_stack(both, 2 * n, d_expert, stack, turn=True)
        yield f"{e}.W_in", of_stack(both, 2 * n + 1, d_expert, stack, turn=True)
        yield f"{e}.W_out", of_stack(out, n, d_model, stack, turn=True)


def gains_by_head(
    spec: ModelSpec, gain: Callable[[str, str, int], Piece], leaf: str = ".w"
) -> Pieces:
    """The norm of each head's queries and keys: `gain` gives its piece, of a layer's attention, "q"
    or "k", and a head."""
    for layer in range(spec.n_layers):
        b, f = f"blocks.{layer}.attn", f"model.layers.{layer}.self_attn"
        for kind, count, which in (("h", spec.n_heads, "q"), ("kv", spec.kv_heads, "k")):
            yield from (
                (f"{b}.{kind}{n}.{which}_norm{leaf}", gain(f, which, n)) for n in range(count)
            )


TURNED = ("W_U", "W_project_E", "W_project_U", "head.W")  # matrices outside layers, [out, in]


def layout(
    whole: Names, layers: str, norms: Names, heads: Heads, attn: str, mlp: Names
) -> Callable[[ModelSpec], Pieces]:
    """A model's `pieces`, by names, ours -> theirs. The pieces of `whole` stand outside the
    layers, all others in a layer. `layers` is its place, with {} for its number."""

    def pieces(spec: ModelSpec) -> Pieces:
        yield from outside(whole)
        for layer in range(spec.n_layers):
            b, f = f"blocks.{layer}", layers.format(layer)
            yield from of_layer(b, f, spec, norms, heads, attn, mlp)

    return pieces


def outside(names: Names) -> Pieces:
    """The pieces of norms (ln), biases (b) and matrices (W) outside the layers."""
    for ours, theirs in names.items():
        kind = ours.rpartition(".")[2]
        if kind.startswith("ln"):
            yield from norm(ours, theirs)
        elif kind.startswith("b"):
            yield ours, Piece(f"{theirs}.bias")
        else:
            yield ours, Piece(f"{theirs}.weight", transposed=ours in TURNED)


def of_layer(
    ours: str, theirs: str, spec: ModelSpec, norms: Names, heads: Heads, attn: str, mlp: Names
) -> Pieces:
    """The pieces of a layer; matrices are [out, in]."""
    for here, there in norms.items():
        yield from norm(f"{ours}.{here}", f"{theirs}.{there}")
    yield from heads(f"{ours}.attn", f"{theirs}.{attn}", spec)
    yield from linear(f"{ours}.mlp", theirs, mlp.items())
