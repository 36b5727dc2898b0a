"""Finding all modules of a package, without a list to edit."""

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any


def modules(package: str, folders: Iterable[str]) -> list[ModuleType]:
    """The modules of a package, by name, in the folders of its `__path__`."""
    return [import_module(f"{package}.{name}") for name in module_names(*folders)]


@cache
def module_names(*folders: str) -> tuple[str, ...]:
    """The names of the modules in the folders, cached."""
    return tuple(module.name for module in iter_modules(folders))


def declaring(package: ModuleType, name: str) -> tuple[Any, ...]:
    """The values of a name, from those modules of a package that declare it. Other modules are
    not imported, because they are many."""
    return _declared(name, package.__name__, *package.__path__)


@cache
def _declared(name: str, package: str, *folders: str) -> tuple[Any, ...]:
    files = sorted(file for folder in folders for file in Path(folder).glob("*.py"))
    found = [f.stem for f in files if f"\n{name} = " in f.read_text(encoding="utf-8")]
    return tuple(getattr(import_module(f"{package}.{each}"), name) for each in found)
