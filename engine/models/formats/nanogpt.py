"""nanoGPT's `ckpt.pt`: GPT-2 in plain linear layers, read by torch's loader for weights alone.

The characters of a character-level model are in meta.pkl, a pickle: it is read without running
anything that it names, so that only lists, dicts, texts and numbers come out.
"""

import json
import pickle
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cellformer.engine.cells.errors import InputError, first_line
from cellformer.engine.cells.files import check_size
from cellformer.engine.models.foreign import Config
from cellformer.engine.models.formats import Source
from cellformer.engine.models.tensors import Tensors, arrays, held, torch_load
from cellformer.engine.text.tokenizer import Characters, IdsOnly, Tokenizer

SIZES = {
    "n_layer": "n_layer",
    "n_head": "n_head",
    "n_embd": "n_embd",
    "block_size": "n_positions",
    "vocab_size": "vocab_size",
}
WRAPPER = "_orig_mod."  # what compiling puts before names
LINEAR = ("c_attn.weight", "c_proj.weight", "c_fc.weight")  # [out, in], and GPT-2's are [in, out]
MOST_BYTES = 10_000_000  # of a file of characters


def reads(name: str) -> bool:
    """A file of torch's."""
    path = Path(name)
    return path.is_file() and path.suffix in (".pt", ".pth")


def open_source(name: str) -> Source:
    """The model of a checkpoint."""
    path = Path(name)
    saved = torch_load(path)
    said, weights = saved.get("model_args"), saved.get("model")
    if not isinstance(said, dict) or not isinstance(weights, dict):
        raise InputError(
            f"{path} is not a nanoGPT checkpoint, because model_args or model is missing; name the "
            "file that nanoGPT's train.py wrote"
        )
    lacking = [size for size in SIZES if not isinstance(said.get(size), int)]
    if lacking:
        raise InputError(f"{path} lacks {', '.join(lacking)} in model_args")
    config = {
        "model_type": "gpt2",
        "activation_function": "gelu",
        "tie_word_embeddings": True,
        **{theirs: said[own] for own, theirs in SIZES.items()},
    }
    found = {n.removeprefix(WRAPPER): values for n, values in arrays(path, weights).items()}
    found = biases(found) | {n: v.T if n.endswith(LINEAR) else v for n, v in found.items()}
    tensors = Tensors(path, {n: held(path, n, values) for n, values in found.items()})
    trained = saved.get("config")
    dataset = str(trained.get("dataset", "")) if isinstance(trained, dict) else ""
    return Source(Config(path, config), tensors, partial(tokenizer, path, dataset))


def biases(tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Zero biases for a model that was trained without: GPT-2's layers all have one."""
    return {
        name.removesuffix("weight") + "bias": np.zeros(len(values), np.float32)
        for name, values in tensors.items()
        if name.endswith("weight") and (name.endswith(LINEAR) or ".ln_" in name)
    }


# --- characters ---------------------------------------------------------------------------------


def tokenizer(path: Path, dataset: str, n: int) -> Tokenizer:
    """The characters in meta.pkl beside a checkpoint, or where nanoGPT keeps its data; else
    `IdsOnly`.

    A model that was trained on GPT-2's tokens has no meta.pkl.
    """
    folders = [path.parent, path.parent.parent / "data" / Path(dataset).name]
    files = [folder / name for folder in folders for name in ("meta.json", "meta.pkl")]
    found = next((file for file in files if file.is_file()), None)
    if found is None:
        return IdsOnly(n)
    check_size(found, MOST_BYTES)
    try:
        with found.open("rb") as file:
            meta = json.load(file) if found.suffix == ".json" else PlainUnpickler(file).load()
        texts = {int(i): str(text) for i, text in meta["itos"].items()}
    except Exception as error:  # a spoilt pickle raises anything
        raise InputError(
            f"{found} does not show which characters the ids stand for: {first_line(error)}"
        ) from None
    if sorted(texts) != list(range(n)):
        raise InputError(
            f"{found} has {len(texts)} characters for {n} token ids; the numbers must be equal"
        )
    return Characters(tuple(texts[i] for i in range(n)))


class PlainUnpickler(pickle._Unpickler):
    """A pickle reader for lists, dicts, texts and numbers, which never imports or calls anything.

    It uses Python's implementation: C's allocates a table as long as any number in the file.
    """

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(
            f"the file names {module}.{name}, which cellformer does not run"
        )
