"""The attention hidden in a recurrence (Ali et al. 2024, "The Hidden Attention of Mamba Models",
section 4).

What a channel reads of its states at a token is a sum over the tokens up to it: what each put in,
as far as it has not faded. So it is a weight times that token's input, as in attention; but weights
may be below 0, and need not sum to 1.
"""

from dataclasses import dataclass

import numpy as np

from engine.cells.block import Block
from engine.cells.errors import InputError
from engine.cells.graph import Graph, Readable
from engine.models import ops
from engine.studies.lens import as_computed, operands


@dataclass(frozen=True)
class Recurrence:
    """The blocks of a layer's recurrence."""

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


def recurrences(graph: Graph) -> list[Recurrence]:
    """The recurrences of a model, in the order of the forward pass."""
    found = [block for block in graph if block.op is ops.read_states and not block.passes]
    return [_recurrence(z) for z in found]


def _recurrence(z: Block) -> Recurrence:
    read = operands(z)
    state = operands(as_computed(read["states"]))
    step, rate, B = (state[name] for name in ("step", "rate", "to"))
    return Recurrence(z.path, step, rate, B, read["cs"], read["x"], read["d"], z)


def of_layer(graph: Graph, layer: int) -> Recurrence:
    """The recurrence of a layer. Raises InputError where there is none."""
    found = {each.layer: each for each in recurrences(graph)}
    if not found:
        raise InputError("the model has no recurrence: its attention is in its heads' patterns")
    if layer not in found:
        raise InputError(f"layer {layer} has no recurrence; those from 0 to {max(found)} do")
    return found[layer]


def weights(values: Readable, of: Recurrence, channel: int) -> np.ndarray:
    """What a channel reads at each token (row) of the input at each (column), without its own past
    the states: [n_tokens, n_tokens]. `values` are a graph's, or an evaluator. Raises InputError for
    an unknown channel."""
    n_channels = of.z.shape[1]
    if not 0 <= channel < n_channels:
        raise InputError(
            f"{of.name} has no channel {channel}; they count from 0 to {n_channels - 1}"
        )
    step, rate = values[of.step.name][:, channel], values[of.rate.name][:, channel]
    time = np.cumsum(step)
    passed = np.tril(time[:, None] - time[None, :])  # [n_tokens, n_tokens], from 0 up
    left = np.exp(passed[:, :, None] * rate)  # [n_tokens, n_tokens, d_state]
    both = values[of.C.name][:, None, :] * left * values[of.B.name][None, :, :]
    found: np.ndarray = np.tril(both.sum(-1) * step)
    return found


def average(values: Readable, of: Recurrence) -> np.ndarray:
    """The mean of that over all channels: [n_tokens, n_tokens]."""
    each = np.array([weights(values, of, c) for c in range(of.z.shape[1])])
    found: np.ndarray = each.mean(axis=0)
    return found


def read(values: Readable, of: Recurrence, channel: int) -> np.ndarray:
    """What the channel reads at each token, from its weights: [n_tokens]."""
    x, own = values[of.x.name][:, channel], values[of.D.name][0, channel]
    found: np.ndarray = weights(values, of, channel) @ x + own * x
    return found


def taken(values: Readable, of: Recurrence, token: int) -> np.ndarray:
    """What each channel reads at a token of those before it: [n_channels]."""
    C, B = values[of.C.name][token], values[of.B.name][token]
    own = values[of.D.name][0] + values[of.step.name][token] * (C @ B)
    found: np.ndarray = values[of.z.name][token] - own * values[of.x.name][token]
    return found
