"""Libraries that take seconds to import: each worker imports every file, and few need these."""

from importlib import import_module
from typing import Any


class Later:
    """A module that is imported when it is first asked for something."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, what: str) -> Any:
        if what.startswith("_"):  # as pytest asks everything that a file holds
            raise AttributeError(what)
        return getattr(import_module(self._name), what)
