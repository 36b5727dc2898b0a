"""Model formats, one file each.

Each gives a `Source`, the three things that a Hugging Face folder has: a config, tensors by their
Hugging Face names, and a tokenizer. So architectures do not depend on formats. A file declares

    reads         whether it reads a name, of a file or of something else
    open_source   the Source of such a name; it raises InputError
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from cellformer.engine.cells.errors import InputError, declared
from cellformer.engine.cells.files import possible
from cellformer.engine.cells.packages import modules
from cellformer.engine.models.adapter import is_adapter
from cellformer.engine.models.foreign import Config
from cellformer.engine.models.tensors import Tensors
from cellformer.engine.text.tokenizer import Tokenizer

DECLARED = ("reads", "open_source")
ENDINGS = (".gguf", ".bin", ".pt", ".pth", ".safetensors", ".json")


@dataclass(frozen=True)
class Source:
    """A model from any format, in Hugging Face's terms."""

    config: Config
    tensors: Tensors
    tokenizer: Callable[[int], Tokenizer]  # for so many ids as the embedding has rows


class Format(Protocol):
    """The declarations of a format's file."""

    def reads(self, name: str) -> bool:
        """Whether this format reads a name."""

    def open_source(self, name: str) -> Source:
        """The model of a name that the format reads."""


def known() -> list[Format]:
    """Every format."""
    found = (declared(module, "a format", DECLARED) for module in modules(__name__, __path__))
    return [cast(Format, module) for module in found]


def find(name: str) -> Format | None:
    """The format that reads a name, if any."""
    return next((form for form in known() if form.reads(name)), None)


def means(name: str) -> bool:
    """Whether a name, even a missing path, is a model's in some format."""
    path = possible(name)
    return path.exists() or "/" in name or path.suffix in ENDINGS or find(name) is not None


def open_source(name: str) -> Source:
    """The model of a file, a folder, or another name that a format reads. Raises InputError."""
    form, path = find(name), Path(name)
    if form is not None:
        return form.open_source(name)
    if not path.exists():
        raise InputError(f"there is no file or folder {name}")
    if not path.is_dir():
        raise InputError(
            f"{name} is not a model in a known format; name a file that ends in "
            f"{', '.join(ENDINGS)}"
        )
    return open_source(str(_only(path)))


def _only(folder: Path) -> Path:
    """The only model file in a folder. Raises InputError."""
    if is_adapter(folder):
        raise InputError(
            f"{folder} contains an adapter and no model; name the base model, and add --adapter "
            f"{folder}"
        )
    inside = [path for path in sorted(folder.iterdir()) if path.is_file() and find(str(path))]
    if not inside:
        raise InputError(
            f"{folder} has no config.json and no other file of a model; name a model's folder"
        )
    if len(inside) > 1:
        raise InputError(
            f"{folder} has several models; name one of them: "
            f"{', '.join(path.name for path in inside)}"
        )
    return inside[0]


def title(name: str) -> str:
    """A model's title: the last part of its name, without extension, revision or kind of
    numbers."""
    bare = re.sub(r"(?<!^.):[^/\\]*$", "", re.split(r"[@?]", name)[0])  # not a drive's colon
    if "://" in bare:  # the address of a page
        bare = re.sub(r"/(tree|blob|resolve|raw)/[^/]+", "", bare)
    last = Path(bare).resolve()
    return last.stem if last.suffix in ENDINGS else last.name
