"""A checkpoint folder as Hugging Face tools save it, named by itself or by one of its files."""

import re
from functools import partial
from pathlib import Path

from engine.models import sentence_modules
from engine.models.foreign import Config
from engine.models.formats import Source
from engine.models.tensors import Tensors, of_folder
from engine.models.tokenizer import load_tokenizer

FILES = re.compile(
    r"config\.json|(model\.safetensors|pytorch_model\.bin)(\.index\.json)?"
    r"|(model|pytorch_model)-\d+-of-\d+\.(safetensors|bin)"
)


def reads(name: str) -> bool:
    """A folder with a config, or a file of one."""
    path = Path(name)
    if path.is_dir():
        return (path / "config.json").exists()
    return path.is_file() and bool(FILES.fullmatch(path.name))


def open_source(name: str) -> Source:
    """The model of a folder."""
    folder = Path(name) if Path(name).is_dir() else Path(name).parent
    config = Config(folder / "config.json")
    tensors = of_folder(folder) | sentence_modules.read(folder, config)
    return Source(config, Tensors(folder, tensors), partial(load_tokenizer, folder))
