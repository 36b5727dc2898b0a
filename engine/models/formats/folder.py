"""A checkpoint folder in Hugging Face format, named by itself or by one of its files."""

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from cellformer.engine.models import sentence_modules
from cellformer.engine.models.foreign import Config
from cellformer.engine.models.formats import Source
from cellformer.engine.models.tensors import TensorEntry, Tensors, of_folder
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


# Models that see and read, with the kind of the part that reads, unless its config says it; what
# their configs have beside that part's
SEEING = {
    "gemma3": "gemma3_text",
    "mistral3": "mistral",
    "qwen3_5": "qwen3_5_text",
    "qwen3_5_moe": "qwen3_5_moe_text",
}
UNTIED = ("qwen3_5", "qwen3_5_moe")  # unless their configs say otherwise
BESIDE = (
    "vision_config",
    "image_token_index",
    "mm_tokens_per_image",
    "boi_token_index",
    "eoi_token_index",
    "projector_hidden_act",
    "vision_feature_layer",
    "multimodal_projector_bias",
    "spatial_merge_size",
)


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


def reading_part(whole: Config) -> Config:
    """The config of a vision-language model's language model, as of a model of its own."""
    text = whole.get("text_config", dict)
    whole.ignore(*BESIDE, "tie_word_embeddings")
    whole.check_unread()
    tied = whole.get("tie_word_embeddings", bool, whole.values["model_type"] not in UNTIED)
    kind = {"tie_word_embeddings": tied}
    text = {"model_type": SEEING[whole.values["model_type"]]} | text
    kind |= {"final_logit_softcapping": None}  # as a whole it does not cap them
    ends = {key: whole.values[key] for key in ("eos_token_id",) if key in whole.values}
    return Config(whole.path, text | kind | ends)


def language_model(held: Mapping[str, TensorEntry]) -> dict[str, TensorEntry]:
    """The tensors of the language model: `language_model` stands before or after `model` in their
    names."""
    found = {}
    for name, tensor in held.items():
        if name.startswith("language_model."):
            found[name.removeprefix("language_model.")] = tensor
        elif name.startswith("model.language_model."):
            found[name.replace("language_model.", "", 1)] = tensor
        elif name == "lm_head.weight":
            found[name] = tensor
    return found
