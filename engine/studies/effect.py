"""The row of an ablation, apart from what computes it: the JSON of every command is described by
such rows, also where nothing is computed."""

from dataclasses import dataclass
from typing import Annotated


@dataclass(frozen=True)
class Effect:
    """A part that is switched off alone, and what that does to a target word at one token."""

    part: Annotated[str, "a head, an attention block or an MLP"]
    change: Annotated[float, "of the target's logit", "+.4f"]
    before: Annotated[float, "the target's probability with every part on", ".4f"]
    probability: Annotated[float, "the target's then", ".4f"]
    first: Annotated[str, "the likeliest word then"]
