"""The golden models with few words, few neurons, and one layer where all are alike.

Their workbooks have the formulas of their architectures in half the cells. What is asked
of all architectures' workbooks is asked of them.
"""

from dataclasses import replace
from pathlib import Path

from conftest import golden_models

from engine.models import architectures, checkpoint
from engine.models.foreign import Config
from engine.models.forward import weight_shapes

N_WORDS = 3
LAYERS = ("num_hidden_layers", "n_layer", "n_layers")  # as configs call their number
NEURONS = ("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size", "hidden_dim")
N_NEURONS = 4
UNLIKE = ("layer_types", "attention_types", "mlp_only_layers")  # where they stand, layers differ


def corner(name: str, folder: Path, n_layers: int = 2) -> Path:
    """A golden model's checkpoint, whose matrices are the corners of the golden ones."""
    model = golden_models()[name]
    neurons = {key: N_NEURONS for key in NEURONS if key in model.config}
    config = {**model.config, "vocab_size": N_WORDS, **neurons}
    if not any(key in config for key in UNLIKE):
        config |= {key: min(n_layers, config[key]) for key in LAYERS if key in config}
    spec = architectures.find(config["model_type"]).read_config(Config(folder, config))
    shapes = weight_shapes(model.architecture, spec)
    weights = {w: model.weights[w][tuple(map(slice, shape))] for w, shape in shapes.items()}
    checkpoint.save(replace(model, spec=spec, weights=weights, config=config), folder)
    return folder


def n_columns(name: str) -> int:
    """One more than the windows of a golden model see."""
    config = golden_models()[name].config
    return 1 + (config.get("sliding_window") or config.get("window_size") or 2)
