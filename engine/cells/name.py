"""The parts of a block's name: its pass, layer, part and head.

    name := { pass "." } [ "blocks." layer "." ] [ part "." ] { word "." } leaf
    pass := turned | gradient | nudged | b | other | clean | path | step int | cut | seen int
         | encoder
    part := ln1 | attn | ln2 | mlp | ln_embed | ln_final | softmax | rotary | alibi | lens | ...
    head := ("h" | "kv" | "qk" | "e") int | shared, one of the words

The passes are copies of a forward pass: the backward pass (`turned`: transposed), the pass after
one or several training steps, that of a second sentence, that of the sentence which another is
patched from (`other`), the pass without any patch (`clean`), of what one block changes on its way
to another (`path`), and the pass with edges cut (`cut`; of the k-th stream that one part sees at
one token, `cut.seen<k>`). Where an
intervention changes a block (see `interventions`), `NAME.own` is the block as it is computed; where
it changes typed values, `NAME.used` is what is read of them.
"""

import re
from dataclasses import dataclass
from functools import cached_property

TURNED, GRADIENT, NUDGED, SECOND = "turned", "gradient", "nudged", "b"
OTHER, CLEAN, PATH, CUT, SEEN = "other", "clean", "path", "cut", "seen"
ENCODER = "encoder"
OWN, USED = "own", "used"
PASSES = (
    TURNED,
    GRADIENT,
    NUDGED,
    SECOND,
    OTHER,
    CLEAN,
    PATH,
    CUT,
    ENCODER,
    rf"{SEEN}\d+",
    r"step\d+",
)
PASS = re.compile("|".join(PASSES))
HEAD = re.compile(r"(h|kv|qk|e)\d+|shared")


class Named:
    """An object with a block's name, `nudged.blocks.0.attn.h1.q`, and the parts of it."""

    name: str

    @cached_property
    def _words(self) -> list[str]:
        return self.name.split(".")

    def under(self, name: str) -> bool:
        """Whether it has this name, or begins with it and a dot."""
        return f"{self.name}.".startswith(f"{name}.")

    @property
    def leaf(self) -> str:
        """The last word: `q`."""
        return self._words[-1]

    @property
    def path(self) -> str:
        """All words but the last: `nudged.blocks.0.attn.h1`."""
        return self.name.rpartition(".")[0]

    @cached_property
    def passes(self) -> tuple[str, ...]:
        """Its passes: `nudged`; none for the forward pass."""
        n = 0
        while n + 1 < len(self._words) and PASS.fullmatch(self._words[n]):
            n += 1
        return tuple(self._words[:n])

    @cached_property
    def own(self) -> str:
        """Its name in the forward pass: `blocks.0.attn.h1.q`."""
        return ".".join(self._words[len(self.passes) :])

    @cached_property
    def forward(self) -> str:
        """Its name in the forward pass of its stack: `encoder.blocks.0.attn.h0.q`."""
        return f"{ENCODER}.{self.own}" if ENCODER in self.passes else self.own

    @cached_property
    def layer(self) -> int | None:
        """The layer, 0; None outside the layers."""
        first, _, rest = self.own.partition(".")
        return int(rest.partition(".")[0]) if first == "blocks" else None

    @cached_property
    def inside(self) -> tuple[str, ...]:
        """The words between the pass, or the layer, and the leaf: `attn`, `h1`."""
        return tuple(self._words[len(self.passes) + (0 if self.layer is None else 2) : -1])

    @property
    def part(self) -> str:
        """The part of a layer or of the model: `attn`; "" for `resid_mid` and `logits`."""
        return self.inside[0] if self.inside else ""

    @property
    def head(self) -> str | None:
        """The head, or the expert: `h1`."""
        return next((word for word in self.inside if HEAD.fullmatch(word)), None)


@dataclass(frozen=True)
class Name(Named):
    """A name alone: of a weight in a file, of a part."""

    name: str
