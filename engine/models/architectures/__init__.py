"""Architectures: a model type is supported if a file names it. A file is an architecture, or lists
several in KIN.

An architecture declares

    MODEL_TYPES   the `model_type`s of config.json that it reads
    EPS           the config's name for the epsilon of its norms; "": it has none
    forward       the forward pass, read top to bottom like its paper's figure
    read_config   a config as a ModelSpec
    pieces        where each weight stands in the checkpoint's tensors, for loading and saving
    NEW           decoders only: a new model's config, besides its sizes
    UNREAD        optional: patterns of tensors that it ignores, of other tasks
    as_held       optional: the spec of a checkpoint that holds tensors of these names
    constants     optional: tensors that are alike in every model, for saving
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

from cellformer.engine.cells.errors import InputError, declared, nearest
from cellformer.engine.cells.packages import modules
from cellformer.engine.models.foreign import Config, Pieces
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import ModelSpec

OWN = "cellformer"  # the model type of our own layout
DECLARED = ("MODEL_TYPES", "EPS", "forward", "read_config", "pieces")


class Declared(Protocol):
    """The declarations of an architecture's file."""

    MODEL_TYPES: tuple[str, ...]
    EPS: str
    NEW: Mapping[str, Any]

    def forward(self, g: Forward, ids: Sequence[int]) -> None: ...

    def read_config(self, c: Config) -> ModelSpec: ...

    def pieces(self, spec: ModelSpec) -> Pieces: ...


def known() -> dict[str, Declared]:
    """Every supported model type, and the architecture that reads it.

    Raises InputError for one that lacks a declaration.
    """
    found: dict[str, Declared] = {}
    for module in modules(__name__, __path__):
        for one in getattr(module, "KIN", (module,)):
            architecture = cast(Declared, declared(one, "an architecture", DECLARED))
            found |= dict.fromkeys(architecture.MODEL_TYPES, architecture)
    return found


def of(model_type: str) -> Declared | None:
    """The architecture of a model type, if it is supported."""
    if model_type == OWN:  # for which no other file is imported
        from cellformer.engine.models.architectures import decoder

        return cast(Declared, decoder)
    return known().get(model_type)


def find(model_type: str) -> Declared:
    """The architecture of a model type. Raises InputError if it is not supported."""
    found = of(model_type)
    if found is None:
        raise InputError(
            f"there is no architecture {model_type!r}; {nearest(model_type, known())}; "
            f"docs/architectures.md lists all {len(known())}"
        )
    return found
