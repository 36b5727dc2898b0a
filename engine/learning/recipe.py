"""Recipe: the training method, the learning rate of each step, the initial weights."""

from dataclasses import dataclass
from math import cos, pi

from cellformer.engine.learning.optimizers import ADAM

IGNORED = -1  # an id after the end of a sequence: neither read nor predicted


@dataclass(frozen=True)
class Recipe:
    """A training recipe: AdamW (Loshchilov & Hutter 2019) with warm-up and cosine decay."""

    steps: int
    batch: int
    embed_scale: float  # standard deviation of the initial token embedding
    learning_rate: float = 3e-3
    warmup: int = 100  # steps
    flat: float = 0.0  # share of the steps before the decay begins
    last_rate: float = 0.02  # share of the learning rate that is left at the end
    betas: tuple[float, float] = (0.9, 0.98)  # the first is the momentum of other methods
    weight_decay: float = 0.01  # of matrices
    clip: float = 1.0  # largest norm of the gradient
    scale: float = 0.02  # standard deviation of every other initial matrix
    residual_scale: float = 0.01  # of those that write into the residual stream
    method: int = ADAM  # see `optimizers`

    def rate(self, step: int) -> float:
        """The learning rate of a step, from 0 to steps - 1."""
        if step < self.warmup:
            return self.learning_rate * (step + 1) / self.warmup
        start = max(self.warmup, round(self.flat * self.steps))
        done = max(0, step - start) / max(1, self.steps - start)
        return self.learning_rate * (
            self.last_rate + (1 - self.last_rate) * (1 + cos(pi * done)) / 2
        )
