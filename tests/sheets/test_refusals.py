"""Options of a model's workbook that cannot be combined, or need another model: one line each."""

from dataclasses import replace

import pytest

import cellformer as cf
from cellformer.engine.cells.errors import InputError
from cellformer.exporters.assemble import refusals
from cellformer.exporters.model.plan import LEAD, LIMITS, Studies, for_model

GAME = cf.load("dialogue-game")
ASKED = {  # some options, and how a plan has them
    "--gradient": {"gradient_of": LEAD},
    "--why": {"why": True},
    "--against": {"against": (1, 2)},
    "--quantize": {"quantize": True},
    "--rows tokens": {"token_rows": True},
}


def refusal(**studies: object) -> str:
    plan = replace(for_model(GAME, (), limits=LIMITS), studies=Studies(**studies))
    try:
        refusals.check(GAME, plan)
    except InputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("one", ASKED)
@pytest.mark.parametrize("other", ASKED)
def test_options_that_stand_apart_are_refused(one: str, other: str) -> None:
    apart = {(o.name, name) for o in refusals.OPTIONS for name in o.apart}
    said = refusal(**ASKED[one], **(ASKED[other] if other != one else {}))
    if (one, other) in apart or (other, one) in apart:
        assert "cannot be combined: build a workbook with each" in said
        assert one in said and other in said
    else:
        assert said == ""


def test_options_are_known_by_their_names() -> None:
    names = {option.name for option in refusals.OPTIONS}
    assert all(set(option.apart) <= names - {option.name} for option in refusals.OPTIONS)
    assert set(ASKED) < names
