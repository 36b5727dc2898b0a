"""What the options of a model's workbook need, and what they cannot be combined with: one row for
each, from which every refusal follows."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cellformer.engine import InputError, Model
from cellformer.exporters.model.plan import LOSS, Plan

MOST_LISTED = 8_000  # tokens of sentences to steer by: they lie on Source, as ids


class Option(NamedTuple):
    """An option, as people type it."""

    name: str
    asked: Callable[[Plan, Model], object]  # whether it is asked for
    instead: str = ""  # what to do with a model that is not shown whole; "": any will do
    apart: tuple[str, ...] = ()  # options that it cannot be combined with
    one_stack: bool = False  # whether a model with an encoder and a decoder will not do


OPTIONS = (
    Option(
        "--gradient",
        lambda plan, _: plan.studies.gradient_of not in ("", LOSS),
        "‘cellformer gradient’ takes any model",
    ),
    Option(
        "--nudge",
        lambda plan, _: plan.studies.gradient_of == LOSS,
        "‘cellformer gradient’ takes any model",
        one_stack=True,
    ),
    Option("--rows tokens", lambda plan, _: plan.studies.token_rows, "leave it out"),
    Option(
        "--why",
        lambda plan, _: plan.studies.why,
        "‘cellformer why’ takes any model",
        one_stack=True,
    ),
    Option(
        "--against",
        lambda plan, _: plan.studies.against,
        "‘cellformer patch’ takes any model that ranks words",
        ("--gradient", "--nudge", "--why"),
    ),
    Option(
        "--steer",
        lambda plan, _: plan.studies.steer,
        "‘cellformer steer’ takes any decoder",
        ("--against",),
    ),
    Option("--adapter", lambda _, model: model.adapter),
    Option(
        "--quantize",
        lambda plan, _: plan.studies.quantize,
        "‘cellformer quantize’ takes any model",
        ("--gradient", "--nudge", "--against", "--steer", "--adapter"),
    ),
    Option("--words", lambda plan, _: plan.studies.words),
    Option("--live", lambda plan, _: plan.live),
    Option(
        "--chat",
        lambda plan, _: plan.chat,
        "",
        (
            *("--gradient", "--nudge", "--rows tokens", "--why", "--against", "--steer"),
            *("--quantize", "--words", "--live"),
        ),
    ),
)


def check(model: Model, plan: Plan) -> None:
    """Raise InputError for a model that no workbook shows, or options that do not go together."""
    if model.spec.reads == "image":
        raise InputError(
            f"a {model.kind} model reads an image, which a workbook of a prompt does not show; run "
            "takes it, and ‘cellformer build digits’ is one in cells"
        )
    asked = [option for option in OPTIONS if option.asked(plan, model)]
    names = [option.name for option in asked]
    for option in asked:
        if option.one_stack:
            model.check_one_stack(option.name)
        for other in names:
            if other in option.apart:
                raise InputError(
                    f"{other} and {option.name} cannot be combined: build a workbook with each"
                )
        if option.instead and not plan.whole:
            raise InputError(
                f"{option.name} needs a full decoder with at most {plan.limits.words:,} tokens in "
                f"its vocabulary; {option.instead}"
            )
    if "--words" in names and (plan.live or plan.gives != "next word"):
        raise InputError("--words needs a full decoder, one that predicts the next word")
    if "--chat" in names and plan.gives != "next word":
        raise InputError("--chat needs a decoder, which predicts the next word; leave it out")
    _check_sizes(model, plan)


def _check_sizes(model: Model, plan: Plan) -> None:
    """Raise InputError for lists that are too long, and for too many weights to round in cells."""
    listed = plan.studies.steer.lists.values() if plan.studies.steer else ()
    n_listed = sum(len(ids) for sentences in listed for ids in sentences)
    if n_listed > MOST_LISTED:
        raise InputError(
            f"the lists to steer by have {n_listed:,} tokens, above the limit of {MOST_LISTED:,} "
            "of a workbook; shorten them"
        )
    n_weights = sum(int(np.prod(np.shape(w))) for w in model.weights.values())
    if plan.studies.quantize and n_weights > plan.limits.rounded:
        raise InputError(
            f"--quantize puts a formula beside each of {n_weights:,} weights, above the limit of "
            f"{plan.limits.rounded:,}; ‘cellformer quantize’ takes any model"
        )
