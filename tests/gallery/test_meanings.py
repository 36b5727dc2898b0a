"""What a block means, beside its formula: not merely its name, nor what is so called elsewhere."""

import re

import pytest
from conftest import default_book, in_tiers

from cellformer import workbooks

NAMES = in_tiers(name for name in workbooks.names() if name != "shakespeare")
TOLD = re.compile(
    r"^(\S+)(?: = .*)?   \[[^\]]*\]   (.*)$", re.DOTALL
)  # see exporters/assemble/block_list.py


def told(name: str) -> list[tuple[str, str]]:
    """Blocks, and the meanings that the sheets give them."""
    sheets = default_book(name).sheets.values()
    texts = [entry.value for sheet in sheets for entry in sheet.entries.values()]
    found = [TOLD.match(text) for text in texts if isinstance(text, str)]
    return [(m[1], m[2]) for m in found if m]


@pytest.mark.parametrize("name", NAMES)
def test_meanings_are_more_than_names(name: str) -> None:
    names = [
        (block, meaning)
        for block, meaning in told(name)
        if meaning.replace(" ", "_") in ("", block.rpartition(".")[2])
    ]
    assert names == []


@pytest.mark.parametrize("name", NAMES)
def test_meanings_without_experts(name: str) -> None:
    assert not any("router" in block for block in default_book(name).graph.blocks)
    strangers = [
        (block, meaning)
        for block, meaning in told(name)
        if "expert" in meaning or "the chosen experts’ shares" in meaning or "capped" in meaning
    ]
    assert strangers == []


@pytest.mark.slow
def test_optimizer_is_explained() -> None:
    meanings = dict(told("learn"))
    assert meanings["pace"].startswith("the factor of the velocity: the learning rate")
    assert meanings["loss.chosen"] == "1 for the true next word, 0 for other words"
    assert dict(told("unrolled"))["step2.gradient.W_E"] == "how the loss changes with W_E"
