"""Write docs/architectures.md: every supported `model_type`, what it is, and the options that it
reads, out of the files in engine/models/architectures.

python docs/scripts/architectures.py
"""

import inspect
from pathlib import Path
from typing import Any

from cellformer.engine.learning.decoders import SIZES
from cellformer.engine.models import answering, architectures, rope
from cellformer.engine.models.architectures import OWN, Declared
from cellformer.engine.models.foreign import ACTIVATIONS, Config
from cellformer.engine.models.seeing import SEEING

TARGET = Path(__file__).parents[1] / "architectures.md"
HEAD = """# Architectures

`python docs/scripts/architectures.py` makes this page from the files in
[engine/models/architectures](../engine/models/architectures). cellformer supports a model if the
table has the `model_type` of its `config.json`. Options are fields of `config.json` beside the
model's sizes. An unsupported option that changes the results causes an error that names it.

| `model_type` | architecture | options |
|---|---|---|
"""
TAIL = """
For models that also see ({seeing}), cellformer takes the language model. A decoder may have the
head for the class of a text (`ForSequenceClassification`) in place of the head for the next word.

Configs may name these activation functions: {activations}. Scalings of rotary positions are:
{kinds}. longrope works within its original length, dynamic within the model's length.

T5, BART, Marian and similar models have two stacks. The encoder reads the prompt, and the decoder
begins the answer. `run`, `generate`, `ablate`, `gradient`, `sweep` and `build` take both stacks,
and so do `--gradient`, `--live` and `--quantize`. In the workbook, you type the source sentence on
Play, and the answer continues itself below. A nudge, `--why`, patching, steering and the graph of
an answer take models of one stack.

`generate` applies the rules of `generation_config.json` (or of `config.json` without that file):
{rules}. If cells choose the words, as in `run --tokens`, they apply three rules: the first word,
the last word, and up to eight forbidden words.

Tests compare each architecture with `transformers`. They always use golden files
(`tests/models/test_references.py`). If torch is installed, they also draw random configurations
(`tests/models/test_fuzz.py`; `pip install -e '.[reference]'`). Weights may be float32, float16 or
bfloat16, in one file or in shards. torch's loader for weights alone reads a `pytorch_model.bin`.

`cellformer train --text FILE --architecture NAME -o DIR` trains a new model in the sizes of its
options. It takes all architectures except the encoders, encoder-decoders, Mamba and `cellformer`.
Every head has its own keys and values (in `falcon` one key serves all). Windows are the
architecture's own if it always has them, and two of four experts work at each token. Weights begin
at random. Matrices are normal: 0.05 for word vectors, 0.01 for outputs to the residual stream, 0.02
otherwise. Gains are neutral, and biases are 0. Tests train each and compare its logits with
`transformers` (`tests/models/test_decoders.py`), and a hundred steps by cells with torch's
(`tests/models/test_learning.py`).

[CONTRIBUTING.md](../CONTRIBUTING.md) says how to add an architecture.
"""
# What configs without a file say of encoders; of others, `NEW` does.
ENCODER = {"hidden_act": "gelu", "activation": "gelu", "pad_token_id": 0}
SMALL = {"d_vocab": 8, "d_model": 64, "n_ctx": 8, "n_layers": 2, "n_heads": 8, "d_head": 8}
SMALL |= {"d_mlp": 256, "d_expert": 8}
HEADS = {"expand": 1}  # of Mamba-2, whose channels are those of its heads
HEADS |= {"num_kv_shared_layers": 0}  # Gemma 3n has 15
DISTILBERT = {"dim": 64, "hidden_dim": 8, "n_layers": 2, "n_heads": 8}


class Noting(Config):
    """A config that notes the fields which are read, and not those that are passed over."""

    def ignore(self, *names: str) -> None:
        """These are not read."""

    def refuse(self, name: str, allowed: Any, why: str) -> None:
        """Nor is this, but to refuse it."""


def table() -> str:
    """The page, in Markdown."""
    known = architectures.known()
    of: dict[int, list[str]] = {}  # an architecture's identity -> its names
    for name, architecture in known.items():
        of.setdefault(id(architecture), []).append(name)
    rows = "".join(row(names, known[names[0]]) for names in sorted(of.values()))
    listed = {
        "seeing": ", ".join(f"`{name}`" for name in SEEING),
        "activations": ", ".join(f"`{name}`" for name in ACTIVATIONS),
        "rules": ", ".join(f"`{name}`" for name in answering.FIELDS),
        "kinds": ", ".join(f"`{name}`" for name in rope.KINDS if name != "default"),
    }
    return HEAD + rows + TAIL.format(**listed)


def row(names: list[str], file: Declared) -> str:
    """The row of a file."""
    what = " ".join(
        (getattr(file, "doc", "") or inspect.getdoc(file) or "").partition("\n\n")[0].split()
    ).rstrip(".")
    read = sorted(set().union(*(options(name, file) for name in names)))
    told = ", ".join(f"`{option}`" for option in read) or "any of ModelSpec's fields"
    return f"| {', '.join(f'`{name}`' for name in names)} | {what} | {told} |\n"


def options(name: str, file: Declared) -> set[str]:
    """The fields of its config that an architecture reads, beside the sizes."""
    if name == OWN:
        return set()
    sizes = {theirs: SMALL[ours] for ours, named in SIZES.items() for theirs in named} | DISTILBERT
    layers = {"attention_types": [[["global"], SMALL["n_layers"]]]}
    values = (
        ENCODER | HEADS | sizes | layers | (getattr(file, "NEW", None) or {}) | {"model_type": name}
    )
    asked = Noting(Path("config.json"), values)
    file.read_config(asked)
    return asked.asked - {*sizes}


if __name__ == "__main__":
    TARGET.write_text(table(), encoding="utf-8")
    print(TARGET.name)
