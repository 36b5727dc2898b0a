"""A model of your own where the commands take a name: a text that carries the model."""

from pathlib import Path

from cellformer.engine.models.model import Model


class Given(str):
    """The name of a model that is in memory, as messages show it: `model`."""

    model: Model

    def __new__(cls, model: Model) -> "Given":
        """The name of a model."""
        found = super().__new__(cls, "model")
        found.model = model
        return found


def name_of(what: str | Path | Model) -> str:
    """The name that the commands take: of a workbook, a file or a folder, or of a model."""
    if isinstance(what, Model):
        return Given(what)
    if not isinstance(what, str | Path):
        raise TypeError("a name must be a text or a path")  # `explained` says which argument it is
    return str(what)
