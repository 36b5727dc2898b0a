"""Folding: turning edits of switches and settings into a change of weights alone.

A checkpoint holds only weights; a workbook has switches and settings too. What weights can express
is folded into them: a switch into the output matrix, mean ablation into the bias beside it, the
divisor of the scores into the queries (or the gain of their norm). Everything else is refused.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from cellformer.engine.cells.arguments import explained
from cellformer.engine.cells.batch import Change
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.name import Name
from cellformer.engine.models import architectures, ops
from cellformer.engine.models.model import Model
from cellformer.engine.studies.ablation import parts

FOLDED = ("switch", "average", "mean_ablation", "sqrt_d_head", "eps")


@explained
def folded(model: Model, change: Change) -> Model:
    """A model with, for any prompt, the logits of `model` under the change.

    Raises InputError for a change that weights cannot express.

    >>> quiet = cf.folded(cf.load("dialogue-game"), {("blocks.1.attn.h2.switch", 0, 0): 0.0})
    >>> float(abs(quiet.weights["blocks.1.attn.h2.W_O"]).max())
    0.0
    """
    graph = model.graph([0])
    values = {name: array.copy() for name, array in graph.inputs.items()}
    for (name, i, j), value in change.items():
        block = graph[name]
        if _of_a_prompt(graph, block):
            continue
        if block.kind != "weight" and block.leaf not in FOLDED:
            raise InputError(
                f"{name}[{i},{j}] was changed, and a checkpoint cannot store that change; undo it"
            )
        values[name][i, j] = value
    weights = {name: np.reshape(values[name], np.shape(w)) for name, w in model.weights.items()}
    for part in parts(graph):
        _switch(graph, weights, values, part)
    for name in values:
        if graph[name].leaf == "B_out":  # biases of all experts
            weights[name] = weights[name] * values[f"{graph[name].path}.switch"][0, 0]
        if graph[name].leaf == "sqrt_d_head":
            _divisor(graph, weights, values, graph[name])
    return _with_eps(replace(model, weights=weights, averages={}), graph, values)


def _of_a_prompt(graph: Graph, block: Block) -> bool:
    """Whether an input belongs to a prompt and not to the model: tokens, marks of present
    tokens, and inputs after the readout."""
    order = list(graph.blocks)
    end = order.index("logits" if "logits" in order else "vector")
    readers = [order.index(reader.name) for reader, _ in graph.readers[block.name]]
    after = block.op is None and all(k > end for k in readers)
    return block.kind == "ids" or block.name == "attention_mask" or after


def _switch(
    graph: Graph, weights: dict[str, np.ndarray], values: Mapping[str, np.ndarray], part: str
) -> None:
    """Multiply a part's output by its switch, and add the rest of its average."""
    if f"{part}.average" not in values:
        return  # it is of all heads, or experts, of a layer: they look at it
    layer = Name(part).path
    of_all = values.get(f"{layer}.switch", np.ones((1, 1)))
    on = float(values[f"{part}.switch"][0, 0] * of_all[0, 0])
    if on == 1:
        return
    if not {Name(weight).layer for weight in weights} >= {b.layer for b in graph} - {None}:
        raise InputError(
            f"{part} is switched off, but several layers share its weights; set its switch to 1"
        )
    head = f"{part}.W_O" in weights
    matrix, bias = (f"{part}.W_O", f"{layer}.b_O") if head else (f"{part}.W_out", f"{part}.b_out")
    weights[matrix] = weights[matrix] * on
    mean = float(values["mean_ablation"][0, 0])
    average = values[f"{part}.average"][0] * ((1 - on) * mean)  # [d_model]
    if bias in weights:
        weights[bias] = weights[bias] * (1.0 if head else on) + average
    elif average.any():
        raise InputError(
            f"{part} is switched off and writes its average. This architecture has no bias that "
            "could store the average; set mean ablation to 0"
        )


def _divisor(
    graph: Graph, weights: dict[str, np.ndarray], values: Mapping[str, np.ndarray], divisor: Block
) -> None:
    """Multiply queries by the old divisor of scores over the new."""
    name = divisor.name
    if values[name][0, 0] == 0:
        raise InputError(f"{name} is 0, and division by 0 is impossible; undo that change")
    factor = float(graph.inputs[name][0, 0] / values[name][0, 0])
    if factor == 1:
        return
    inside = [n for n in weights if n.startswith(f"{divisor.path}.")]
    scaled = [n for n in inside if "q_norm" in n.split(".")]
    normed = f"{divisor.path}.h0.q_norm.eps" in values and not scaled
    if normed or f"{divisor.path}.bound" in values:
        raise InputError(
            f"{name} was changed, but weights cannot store this change in a model that limits "
            "the size of queries; undo it"
        )
    scaled = scaled or [n for n in inside if Name(n).leaf in ("W_Q", "b_Q")]
    for n in scaled:
        one = float(any(reader.op is ops.gain_above_one for reader, _ in graph.readers[n]))
        weights[n] = (weights[n] + one) * factor - one


def _with_eps(model: Model, graph: Graph, values: Mapping[str, np.ndarray]) -> Model:
    """The model with one new eps for all norms, as a checkpoint has. Raises InputError."""
    norms = [name for name in values if graph[name].leaf == "eps"]
    if all(values[name][0, 0] == graph.inputs[name][0, 0] for name in norms):
        return model
    if len({float(graph.inputs[name][0, 0]) for name in norms}) > 1:
        raise InputError(
            "some norms have an eps that differs from the others, and a config cannot store "
            "this; give all norms the same eps again"
        )
    eps = {float(values[name][0, 0]) for name in norms}
    config = dict(model.config)
    field = architectures.find(config.get("model_type", architectures.OWN)).EPS
    if not field:
        raise InputError(
            f"eps is always {model.spec.norm_eps} in a model of type {config['model_type']}; "
            "undo that change"
        )
    if len(eps) > 1:
        raise InputError(
            "norms have different eps, but a checkpoint stores only one eps; give all norms the "
            "same eps"
        )
    spec = replace(model.spec, norm_eps=min(eps))
    if config:
        config[field] = min(eps)
    return replace(model, spec=spec, config=config)
