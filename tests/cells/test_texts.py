"""Texts made safe for where they go."""

from html import unescape
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cellformer.engine.cells.texts import from_xml, in_csv, in_xml, on_terminal, readable, storable

HOSTILE = ("\x1b[31mred", "\x9b2J", "a\rb", "\u202egnp.exe", "\u2067x", "\x00\x07\x08", "\udcff")


def test_text_in_one_line() -> None:
    assert readable(" a\r\n\tb\x1b[0m  c\u2028é👩‍🔬") == " a\\r\\n\\tb\\x1b[0m  c\\u2028é👩‍🔬"


@pytest.mark.parametrize("text", HOSTILE)
def test_no_control_characters_for_a_terminal(text: str) -> None:
    assert on_terminal(text).isprintable() and on_terminal(text) != text
    assert on_terminal(f"a\t{text}\n").startswith("a\t") and "\n" in on_terminal("b\n")


@pytest.mark.parametrize("text", ["=1+1", "+1", "-cmd", "@SUM(A1)", "\t=1"])
def test_table_holds_no_formula(text: str) -> None:
    assert in_csv(text) == "'" + text
    assert in_csv("a" + text) == "a" + text


@pytest.mark.parametrize("text", [*HOSTILE, "\r=1", "a\x7f\x85b", "a\u2028b"])
def test_table_controls_no_terminal(text: str) -> None:
    assert in_csv(text).isprintable() and in_csv(text) == readable(text)
    assert in_csv(f"=a\t{text}\n") == f"'=a\t{readable(text)}\n"  # which a CSV file may hold


@pytest.mark.slow
@given(st.text())
def test_xml_gives_back_every_text(text: str) -> None:
    """Of Unicode whatever a file can hold; a carriage return too, which XML would make a line's
    end."""
    element = ElementTree.fromstring(f"<t>{in_xml(text)}</t>")
    assert from_xml(element.text or "") == text == storable(text)


@pytest.mark.parametrize("text", ["_x0041_", "_x0041_x0042_", "_x005F_", "\x01_x0001_", "<r>&</r>"])
def test_text_like_an_xml_escape_stays_itself(text: str) -> None:
    assert from_xml(unescape(in_xml(text))) == text


def test_half_surrogate_pair_is_escaped() -> None:
    assert storable("a\udcff") == in_xml("a\udcff") == "a\\udcff"
