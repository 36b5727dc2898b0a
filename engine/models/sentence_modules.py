"""The modules of a sentence-transformers folder: modules.json, beside the encoder.

After the encoder come Pooling, and optionally Dense and Normalize. The config keeps them as
`sentence_modules`, a list of their own configs with a `type`, so that a saved model has them too. A
folder without modules has a model for masked words, or one whose tokens' mean is taken, the
library's default.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.fields import json_object
from cellformer.engine.cells.files import read_json
from cellformer.engine.models import classes
from cellformer.engine.models.foreign import Config, Piece, Pieces
from cellformer.engine.models.spec import Pooling
from cellformer.engine.models.tensors import TensorEntry, inside, of_folder

KEY, FILE, CONFIG = "sentence_modules", "modules.json", "config.json"
MOST = 20  # modules
POOLING: dict[str, Pooling] = {
    "cls_token": "first",
    "mean_tokens": "mean",
    "lasttoken": "last",
    "max_tokens": "max",
    "mean_sqrt_len_tokens": "mean of root",
}
MODE = "pooling_mode_"
LINEAR = "sentence.linear."  # what we call the tensors of the module Dense,
FIRST = "sentence.first."  # and of the first one of two
HEADS = ("ForMaskedLM", "ForPreTraining")  # of architectures that read a masked word out
KNOWN = ("Transformer", "Pooling", "Dense", "Normalize")


# --- files ------------------------------------------------------------------------------------


def read(folder: Path, config: Config) -> dict[str, TensorEntry]:
    """Add a folder's modules to its config; returns their tensors. Raises InputError."""
    found: dict[str, TensorEntry] = {}
    if KEY in config.values or not (folder / FILE).is_file():  # saved here, or none
        return found
    if json_object(folder / "config_sentence_transformers.json").get("default_prompt_name"):
        raise InputError(
            f"{folder} puts a fixed text before every sentence (default_prompt_name), which "
            "cellformer does not support; choose another sentence encoder"
        )
    modules = []
    for module in _list(folder / FILE):
        kind = module.get("type", str, "").rpartition(".")[2]
        place = inside(folder, module.get("path", str, ""), f"{FILE}: the path")
        file = folder / "sentence_bert_config.json" if kind == "Transformer" else place / CONFIG
        modules.append({**json_object(file), "type": kind})
        if kind == "Dense":
            found = {FIRST + n.removeprefix(LINEAR): t for n, t in found.items()}
            found |= {LINEAR + n.removeprefix("linear."): t for n, t in of_folder(place).items()}
    config.values[KEY] = modules
    return found


def _list(path: Path) -> list[Config]:
    found = read_json(path)
    if not isinstance(found, list) or not all(isinstance(module, dict) for module in found):
        raise InputError(f"{path} must contain a list of modules; download the file again")
    if len(found) > MOST:
        raise InputError(
            f"{path} lists {len(found):,} modules; the limit is {MOST}; download the file again"
        )
    return [Config(path, module) for module in found]


def save(config: Mapping[str, Any], tensors: Mapping[str, Any], folder: Path) -> None:
    """Write the modules in sentence-transformers' format."""
    from safetensors.numpy import save_file

    if KEY not in config:
        return
    listed = []
    kinds = [module["type"] for module in config[KEY]]
    for k, module in enumerate(config[KEY]):
        kind = module["type"]
        place = "" if kind == "Transformer" else f"{k}_{kind}"
        own = {name: value for name, value in module.items() if name != "type"}
        file = "sentence_bert_config.json" if kind == "Transformer" else "config.json"
        (folder / place).mkdir(exist_ok=True)
        (folder / place / file).write_text(json.dumps(own, indent=2) + "\n")
        if kind == "Dense":
            start = FIRST if kind in kinds[k + 1 :] else LINEAR
            held = {n: t for n, t in tensors.items() if n.startswith(start)}
            linear = {f"linear.{n.removeprefix(start)}": t for n, t in held.items()}
            save_file(linear, folder / place / "model.safetensors")
        full = f"sentence_transformers.models.{kind}"
        listed.append({"idx": k, "name": str(k), "path": place, "type": full})
    (folder / FILE).write_text(json.dumps(listed, indent=2) + "\n")


# --- what they mean ---------------------------------------------------------------------------


def longest(c: Config, n_positions: int) -> int:
    """The maximum number of tokens of a sentence: the number of positions, or fewer."""
    for module in _modules(c):
        n_positions = min(n_positions, module.get("max_seq_length", int, 0) or n_positions)
    return n_positions


def _modules(c: Config) -> list[Config]:
    """The modules in a config."""
    return [Config(c.path, module) for module in c.listed(KEY, dict)]


def readout(c: Config) -> dict[str, Any]:
    """The fields of ModelSpec for the output: a masked word, a label, or a sentence's vector.

    Raises InputError for an unsupported head or module, with its name.
    """
    modules = _modules(c)
    if c.look(KEY) is None:
        names = c.listed("architectures", str)
        if gives := classes.task(names):
            return classes.readout(c, gives)
        for name in (name for name in names if not name.endswith((*HEADS, "Model"))):
            raise InputError(
                f"{c.path}: cellformer does not support the output layer of {name}. Use an encoder "
                "that gives vectors or masked words, or a classifier of texts or tokens"
            )
        masked = any(name.endswith(HEADS) for name in names)
        return {"gives": "masked word" if masked else "sentence"}
    found: dict[str, Any] = {"gives": "sentence"}
    order = [kind for module in modules if (kind := module.get("type", str, "")) != "Dropout"]
    for kind in (kind for kind in order if kind not in KNOWN):
        raise InputError(
            f"{c.path}: cellformer does not support the module {kind} of {FILE}, only "
            f"{', '.join(KNOWN)}"
        )
    if order.count("Dense") == 2:  # one after the other
        order.remove("Dense")
    if [kind for kind in KNOWN if kind in order] != order or order[:2] != list(KNOWN[:2]):
        raise InputError(
            f"{c.path}: the modules come in the order {', '.join(order)}, but cellformer supports "
            f"only the order {', '.join(KNOWN)}"
        )
    for module in modules:
        one = _meaning(c, module)
        if "d_sentence" in found and "d_sentence" in one:
            found |= _of_first(c, found)
        found |= one
    return found


def _of_first(c: Config, dense: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of ModelSpec for the first Dense of two. Raises InputError if it is more than a
    matrix."""
    if dense["sentence_bias"] or dense["sentence_tanh"]:
        raise InputError(
            f"{c.path}: cellformer does not support a bias or an activation in the first of two "
            "Dense modules"
        )
    return {"d_between": dense["d_sentence"]}


def _meaning(c: Config, module: Config) -> dict[str, Any]:
    """The fields of ModelSpec for one module."""
    kind = module.get("type", str)
    if kind == "Transformer" and module.get("do_lower_case", bool, False):
        raise InputError(
            f"{c.path}: cellformer does not support do_lower_case = true of the module "
            "Transformer; choose another sentence encoder"
        )
    if kind == "Pooling":
        said = [name for name in module.values if MODE in name]
        modes = [n.removeprefix(MODE) for n in said if module.get(n, bool, False)]
        if len(modes) != 1 or modes[0] not in POOLING:
            raise InputError(
                f"{c.path}: pooling by {', '.join(modes) or 'nothing'} is not supported; supported "
                f"is one of {', '.join(POOLING)}"
            )
        return {"pooling": POOLING[modes[0]]}
    if kind == "Dense":
        bend = module.get("activation_function", str, "").rpartition(".")[2]
        if bend not in ("Tanh", "Identity"):
            raise InputError(
                f"{c.path}: the module Dense has the activation {bend!r}; cellformer supports only "
                "Tanh and Identity"
            )
        return {
            "d_sentence": module.get("out_features", int),
            "sentence_bias": module.get("bias", bool, True),
            "sentence_tanh": bend == "Tanh",
        }
    return {"unit_length": True} if kind == "Normalize" else {}


def pieces() -> Pieces:
    """The pieces of the weights of Dense modules."""
    yield "dense.W_between", Piece(f"{FIRST}weight", transposed=True)
    yield "dense.W", Piece(f"{LINEAR}weight", transposed=True)
    yield "dense.b", Piece(f"{LINEAR}bias")
