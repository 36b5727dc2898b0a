"""Ablation: switch off heads, MLPs and experts, one at a time, and measure the change of the
logits.

A switch is a cell, 1 or 0 (`blocks.0.attn.h1.switch`); `blocks.0.attn.switch` is for all heads of a
layer, and `blocks.0.mlp.switch` for its MLP, or all its experts. A part that is off writes nothing
(zero ablation) or, if `mean_ablation` is 1, its average over reference prompts (mean ablation; Wang
et al. 2023, section 2.1).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from cellformer.engine.cells.arguments import explained
from cellformer.engine.cells.batch import Change, filled, variants
from cellformer.engine.cells.errors import InputError, nearest
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.groups import grouped
from cellformer.engine.models.model import Model
from cellformer.engine.studies.part_names import named, said
from cellformer.engine.studies.study import Asked, Study

SWITCH = "switch"


@dataclass(frozen=True)
class Effect:
    """The effect of switching off one part on a target word at one token."""

    part: Annotated[str, "a head, an attention block or an MLP", said]
    change: Annotated[float, "of the target's logit", "+.4f"]
    before: Annotated[float, "the target's probability with every part switched on", ".4f"]
    probability: Annotated[float, "the target's then", ".4f"]
    first: Annotated[str, "the likeliest word then"]


@dataclass(frozen=True)
class Options:
    """The kind of ablation."""

    mean: Annotated[bool, "Use mean ablation instead of zero ablation."] = False


def parts(graph: Graph) -> list[str]:
    """The parts that can be switched off, in the order of the forward pass."""
    return [block.path for block in graph if block.leaf == SWITCH]


def off(graph: Graph, part: str) -> Change:
    """The change of cells that switches a part off. Raises InputError for an unknown part."""
    name = named(part.removesuffix(f".{SWITCH}"), parts(graph))
    if name is None:
        raise InputError(f"{part!r} cannot be switched off; {nearest(part, parts(graph))}")
    return {(f"{name}.{SWITCH}", 0, 0): 0.0}


@explained
def effects(
    graph: Graph,
    target: int,
    row: int = -1,
    mean: bool = False,
    words: Sequence[str] | None = None,
) -> list[Effect]:
    """The effect of every part, each switched off alone, in one batch; `mean`: by mean ablation.
    `words` are the texts of the words; without them, `first` is an id.
    Raises InputError for a word that the model does not have.

    >>> graph = cf.graph("cat-sat", "the cat sat")
    >>> [effect.part for effect in cf.effects(graph, 5)]
    ['blocks.0.attn', 'blocks.0.attn.h0']
    """
    n_words = graph["logits"].shape[1]
    if words is not None and len(words) != n_words:
        raise InputError(
            f"words lists {len(words)} words, but the model has {n_words}; give one text for each "
            "word of the model"
        )
    if not -n_words <= target < n_words:
        raise InputError(f"there is no word {target}; give a number from 0 to {n_words - 1}")
    names = parts(graph)
    under: Change = {("mean_ablation", 0, 0): float(mean)} if names else {}
    values = variants(graph, [{**under, **off(graph, name)} for name in names])
    logits, probs = values["logits"][:, row], values["probs"][:, row]  # [n_parts, d_vocab] each
    logit, before = (float(graph.values[name][row, target]) for name in ("logits", "probs"))
    first = [str(k) if words is None else words[k] for k in np.argmax(logits, axis=-1)]
    return [
        Effect(name, float(scores[target]) - logit, before, float(p[target]), word)
        for name, scores, p, word in zip(names, logits, probs, first, strict=True)
    ]


def with_averages(model: Model, prompts: Sequence[Sequence[int]]) -> Model:
    """The model with its own averages, or else averages over these prompts. Workbooks and the
    command both use this, so mean ablation is the same in both."""
    return model if model.averages else averaged(model, prompts)


def averaged(model: Model, prompts: Sequence[Sequence[int]]) -> Model:
    """The model with `average`s: the mean output of each part over all tokens of the prompts."""
    for ids in prompts:
        model.check_ids(ids)
    alike = grouped(range(len(prompts)), lambda n: len(prompts[n]))  # computed in one batch
    totals: dict[str, np.ndarray] = {}  # [n_prompts, d_model] each
    n_tokens: dict[str, int] = {}  # that a part writes at: an encoder's are of the source
    for several in alike.values():
        for name, wrote in _written(model, [prompts[n] for n in several]).items():
            total = totals.setdefault(name, np.empty((len(prompts), wrote.shape[-1])))
            total[several] = wrote.sum(axis=-2)
            n_tokens[name] = n_tokens.get(name, 0) + len(several) * wrote.shape[-2]
    return replace(
        model,
        averages={
            name: x.sum(axis=0, keepdims=True) / n_tokens[name] for name, x in totals.items()
        },
    )


def _written(model: Model, prompts: Sequence[Sequence[int]]) -> dict[str, np.ndarray]:
    """The output of each part at the tokens of prompts of one length, by the name of its average:
    [n_prompts, n_tokens, d_model]; without the first axis for one prompt."""
    graph = model.graph(prompts[0])
    values: Mapping[str, np.ndarray] = graph.values
    if len(prompts) > 1:
        values = filled(graph, {"tokens": np.array(prompts, dtype=np.float64)[:, :, None]})
    return {
        block.name: values[f"{block.path}.result" if block.head else f"{block.path}_out"]
        for block in graph
        if block.leaf == "average"
    }


def _rows(asked: Asked) -> tuple[str, list[Effect]]:
    mean = asked.options.mean
    if mean:
        prompts = [asked.ids, *filter(None, [asked.second])]
        asked = replace(asked, model=with_averages(asked.model, prompts))
    if not (found := parts(asked.graph)):
        raise InputError(f"{asked.name} has no heads or MLPs, so there is nothing to ablate")
    asked.allow(len(found))
    target = asked.word(asked.target)
    return asked.words[target], effects(asked.graph, target, asked.row, mean, asked.words)


def _closing(target: str, rows: Sequence[Effect]) -> str:
    """The part without which the target's logit falls most, in a sentence."""
    most = min(rows, key=lambda row: row.change)
    if most.change >= 0:
        return (
            f"No part raises the logit of {target}: without each part, the logit stays the same "
            "or grows."
        )
    return (
        f"{target} needs {said(most.part)} most. Without this part, the probability of "
        f"{target} is {most.probability:.1%} instead of {most.before:.1%}, and the likeliest "
        f"word is {most.first}."
    )


STUDY = Study(
    "ablate",
    """Ablate heads, attention blocks and MLPs, one at a time, and report the target's logit.

    Zero ablation: the part writes nothing. With --mean, the part writes its average.""",
    Effect,
    _rows,
    Options,
    "change of the logit of {target}, and the probability of {target}, with each part switched off",
    _closing,
)
