"""Options of a model's workbook that cannot be combined, or need another model: one line each."""

from dataclasses import replace

import pytest

import cellformer as cf
from cellformer.engine.cells.errors import InputError
from cellformer.engine.studies.addition import additions
from cellformer.engine.studies.pair import Against
from cellformer.exporters.assemble import refusals
from cellformer.exporters.model.plan import LIMITS, for_model

GAME = cf.load("dialogue-game")
ASKED = {  # some options, and how a plan has them
    "--gradient": {"gradient": True},
    "--why": {"why": ""},
    "--against": {"against": Against((1, 2))},
    "--quantize": {"quantize": {}},
}


def refusal(**studies: object) -> str:
    plan = replace(for_model(GAME, (), limits=LIMITS), studies=studies)
    try:
        refusals.check(GAME, plan)
    except InputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("one", ASKED)
@pytest.mark.parametrize("other", ASKED)
def test_options_that_stand_apart_are_refused(one: str, other: str) -> None:
    options = {each.name: each.option for each in additions()}
    apart = {(each.option, options[name]) for each in additions() for name in each.apart}
    said = refusal(**ASKED[one], **(ASKED[other] if other != one else {}))
    if (one, other) in apart or (other, one) in apart:
        assert "cannot be combined: build two workbooks" in said
        assert one in said and other in said
    else:
        assert said == ""


def test_options_are_known_by_their_names() -> None:
    names = {each.name for each in additions()}
    assert all(set(each.apart) <= names - {each.name} for each in additions())
    assert set(ASKED) < {each.option for each in additions()}
