"""Finding all modules of a package, without a list to edit."""

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType


def modules(package: str, folders: Iterable[str]) -> list[ModuleType]:
    """The modules of a package, by name, in the folders of its `__path__`."""
    return [import_module(f"{package}.{name}") for name in module_names(*folders)]


@cache
def module_names(*folders: str) -> tuple[str, ...]:
    """The names of the modules in the folders, cached."""
    return tuple(module.name for module in iter_modules(folders))
