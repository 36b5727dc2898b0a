"""The attention hidden in a recurrence (Ali et al. 2024, "The Hidden Attention of Mamba Models",
section 4).

What a channel reads of its states at a token is a sum over the tokens up to it: what each put in,
as far as it has not faded. So it is a weight times that token's input, as in attention; but weights
may be below 0, and need not sum to 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.graph import Graph, Readable
from cellformer.engine.cells.groups import grouped
from cellformer.engine.models import ops
from cellformer.engine.studies.lens import as_computed, operands


@dataclass(frozen=True)
class Recurrence:
    """The blocks of a layer's recurrence, or of one of its heads. A block that all channels
    share has one column."""

    name: str  # what its blocks' names begin with
    step: Block  # [n_tokens, n_channels]
    rate: Block  # [d_state, n_channels], below 0: how fast each number of a state fades
    B: Block  # [n_tokens, d_state]: what each token writes of its input
    C: Block  # [n_tokens, d_state]: what each token reads of the states
    x: Block  # [n_tokens, n_channels]: the input
    D: Block  # [1, n_channels]: what is read of the own input, past the states
    z: Block  # [n_tokens, n_channels]: what is read

    @property
    def layer(self) -> int:
        """The number of its layer."""
        assert self.z.layer is not None
        return self.z.layer

    @property
    def n_channels(self) -> int:
        """The number of channels."""
        return self.z.shape[1]

    @property
    def shares(self) -> bool:
        """Whether all channels have the same weights."""
        return self.step.shape[1] < self.n_channels


def recurrences(graph: Graph) -> list[Recurrence]:
    """The recurrences of a model, in the order of the forward pass."""
    read = (ops.read_states, ops.read_states_of_head)
    return [_recurrence(z) for z in graph if z.op in read and not z.passes]


def _recurrence(z: Block) -> Recurrence:
    read = operands(z)
    state = operands(as_computed(read["states"]))
    fades = operands(as_computed(state["left"])) if "left" in state else state
    step, rate = fades["step"], fades["rate"]
    return Recurrence(z.path, step, rate, state["to"], read["cs"], read["x"], read["d"], z)


def of_layer(graph: Graph, layer: int) -> list[Recurrence]:
    """The recurrences of a layer: one, or one for each head. Raises InputError where there is
    none."""
    found = grouped(recurrences(graph), lambda each: each.layer)
    if not found:
        raise InputError(
            "the model has no state-space recurrence (as in Mamba), so no layer has channels; "
            "explain an attention head instead"
        )
    if layer not in found:
        raise InputError(
            f"layer {layer} has no recurrence; choose a layer that has one, from {min(found)} to "
            f"{max(found)}"
        )
    return found[layer]


def named(graph: Graph, text: str) -> tuple[Recurrence, int]:
    """The recurrence and the channel of `0.3`, layer 0 and channel 3, or of `0.1.3`, head 1 in
    between. Raises InputError."""
    numbers = text.split(".")
    if not all(number.isdecimal() for number in numbers) or len(numbers) not in (2, 3):
        raise InputError(f"there is no channel {text!r}; write ‘0.3’ for channel 3 of layer 0")
    layer, *head, channel = map(int, numbers)
    found = of_layer(graph, layer)
    if len(found) > 1 and not head:
        raise InputError(
            f"the states of layer {layer} are divided into heads; name a head, too: "
            f"{layer}.0.{channel}"
        )
    if head and head[0] >= len(found):
        raise InputError(f"layer {layer} has no head {head[0]}; its last head is {len(found) - 1}")
    return found[head[0] if head else 0], channel


def weights(values: Readable, of: Recurrence, channel: int) -> np.ndarray:
    """The weight of the input at each token (column) in the channel's output at each token
    (row), without its own past the states: [n_tokens, n_tokens]. `values` are a graph's, or an
    evaluator. Raises InputError for an unknown channel."""
    if not 0 <= channel < of.n_channels:
        most = of.n_channels - 1
        raise InputError(f"{of.name} has no channel {channel}; its channels run from 0 to {most}")
    step, rate = (_column(values, block, channel) for block in (of.step, of.rate))
    time = np.cumsum(step)
    passed = np.tril(time[:, None] - time[None, :])  # [n_tokens, n_tokens], from 0 up
    left = np.exp(passed[:, :, None] * rate)  # [n_tokens, n_tokens, d_state], or 1 for all
    both = values[of.C.name][:, None, :] * left * values[of.B.name][None, :, :]
    return np.asarray(np.tril(both.sum(-1) * step))


def _column(values: Readable, block: Block, channel: int) -> np.ndarray:
    """A channel's column of a block, or the one that all channels share."""
    return values[block.name][:, channel if block.shape[1] > 1 else 0]


def average(values: Readable, of: Sequence[Recurrence]) -> np.ndarray:
    """The mean of that over all channels of some recurrences: [n_tokens, n_tokens]."""
    each = [weights(values, one, c) for one in of for c in range(one.n_channels)]
    return np.asarray(np.array(each).mean(axis=0))


def read(values: Readable, of: Recurrence, channel: int) -> np.ndarray:
    """The output of the channel at each token, from its weights: [n_tokens]."""
    x, own = values[of.x.name][:, channel], _column(values, of.D, channel)
    return np.asarray(weights(values, of, channel) @ x + own * x)


def taken(values: Readable, of: Recurrence, token: int) -> np.ndarray:
    """The amount that each channel takes, at a token, from the tokens before it: [n_channels]."""
    C, B = values[of.C.name][token], values[of.B.name][token]
    own = values[of.D.name][0] + values[of.step.name][token] * (C @ B)
    return np.asarray(values[of.z.name][token] - own * values[of.x.name][token])
