"""A checkpoint folder in Hugging Face format, named by itself or by one of its files."""

import re
from functools import partial
from pathlib import Path

from cellformer.engine.models import sentence_modules
from cellformer.engine.models.foreign import Config
from cellformer.engine.models.formats import Source
from cellformer.engine.models.seeing import SEEING, language_model, reading_part
from cellformer.engine.models.tensors import Tensors, of_folder
from cellformer.engine.models.unpacking import unpacked
from cellformer.engine.text.tokenizer import load_tokenizer

FILES = re.compile(
    r"config\.json|(model\.safetensors|pytorch_model\.bin)(\.index\.json)?"
    r"|(model|pytorch_model)-\d+-of-\d+\.(safetensors|bin)"
)


def reads(name: str) -> bool:
    """A folder with a config, or one of its files."""
    path = Path(name)
    if path.is_dir():
        return (path / "config.json").exists()
    return path.is_file() and bool(FILES.fullmatch(path.name))


def config_of(name: str) -> Config:
    """The config of a folder, or of the folder of one of its files."""
    folder = Path(name) if Path(name).is_dir() else Path(name).parent
    return Config(folder / "config.json")


def open_source(name: str) -> Source:
    """The model of a folder; for a vision-language model, its language model."""
    config = config_of(name)
    folder = config.path.parent
    held = unpacked(folder, config, of_folder(folder))
    if str(config.values.get("model_type")) in SEEING:
        config, held = reading_part(config), language_model(held)
    held |= sentence_modules.read(folder, config)
    return Source(config, Tensors(folder, held), partial(load_tokenizer, folder))
