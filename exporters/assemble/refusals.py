"""Refuses options of a workbook that the model cannot have, or that exclude each other."""

from cellformer.engine import InputError, Model
from cellformer.engine.studies import addition
from cellformer.exporters.model.plan import Plan


def check(model: Model, plan: Plan) -> None:
    """Raise InputError for a model that no workbook shows, or options that do not go together."""
    if model.spec.reads == "image":
        raise InputError(
            f"a {model.kind} model reads an image, but a workbook shows a model that reads a text; "
            "use ‘cellformer run’, or build the image model of the gallery: ‘cellformer build "
            "digits’"
        )
    asked = addition.of(plan.studies)
    for each in asked:
        if each.one_stack:
            model.check_one_stack(each.option)
    names = {each.name: each.option for each in asked}
    apart = [(names[name], each.option) for each in asked for name in each.apart if name in names]
    if model.adapter and "quantize" in names:
        apart.append(("--adapter", names["quantize"]))
    others = [*names.values(), *(["--live"] if plan.live else [])]
    if plan.chat:
        apart += [(option, "--chat") for option in others]
    for one, other in apart:
        raise InputError(f"{one} and {other} cannot be combined: build two workbooks")
    for each in asked:
        if each.instead and not plan.whole:
            raise InputError(
                f"{each.option} needs a decoder with at most {plan.limits.words:,} tokens in its "
                f"vocabulary, and works only without --live; {each.instead}"
            )
        if each.decoder and (plan.live or plan.gives != "next word"):
            raise InputError(
                f"{each.option} needs a decoder, a model that predicts the next word, and works "
                "only without --live"
            )
        each.check(model, plan.studies[each.name], plan.limits.rounded)
    if plan.chat and plan.gives != "next word":
        raise InputError(
            "--chat needs a decoder, a model that predicts the next word; leave out --chat"
        )
