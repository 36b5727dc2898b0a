"""A page's links: a state in the address, and back, in JavaScript and in Python."""

from pathlib import Path
from typing import Any

import as_page
import numpy as np
import pytest
from conftest import GOLDEN, cli, default_book
from hypothesis import given
from hypothesis import strategies as st
from in_node import JavaScriptError, call

import cellformer as cf
from cellformer.engine import Evaluator, InputError
from cellformer.engine.cells.block import Block
from cellformer.engine.models import checkpoint
from cellformer.exporters.compose.book import Book
from cellformer.exporters.edits import link
from cellformer.exporters.model.fingerprint import fingerprint, weights_sum
from cellformer.names import load

pytestmark = pytest.mark.usefixtures("node")

TEXTS = ["", "1", "-2.5e3", "'1", "a b", "a+b", "50%", "x&y=z#1", "[0,1]", "è 日本 🙂", "\n", "NaN"]
NUMBERS = [0.1 + 0.2, 5e-324, 1.7976931348623157e308, -0.0, 1e21, 1e-7, 123456789012345680.0]


@pytest.fixture(scope="module")
def book() -> Book:
    return default_book("cat-sat")


@pytest.fixture(scope="module")
def page(book, tmp_path_factory) -> str:
    return as_page.write(book, tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def begin(page) -> str:
    """What begins each of its links."""
    found: str = call("link.mjs", "write", page, [["W_E", 0, 0, 1.0]])
    return found.removesuffix("W_E=1")


def in_page(page: str, text: str) -> list[list[Any]]:
    """Node writes a large number without a point, which Python takes for a whole one."""
    found = call("link.mjs", "read", page, text)
    return [[*at, float(x) if isinstance(x, int) else x] for *at, x in found]


def in_python(text: str) -> dict[tuple[str, int, int], Any]:
    return link.read(f"https://example.org/a/b.html#{text}", default_book).values


# --- there and back ---------------------------------------------------------------------------


def states() -> st.SearchStrategy[list[list[Any]]]:
    """Lists of edits: numbers, and texts where texts are typed."""
    book = default_book("cat-sat")
    numbers = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(NUMBERS)
    words = st.sampled_from(TEXTS) | st.text(st.characters(codec="utf-8"), max_size=9)

    def edit(block: Block) -> st.SearchStrategy[list[Any]]:
        typed = book.graph.inputs.get(block.name, np.zeros(block.shape))
        value = words if isinstance(typed[0, 0], str) else numbers
        at = [st.integers(0, n - 1) for n in block.shape]
        return st.tuples(st.just(block.name), *at, value).map(list)

    blocks = [block for block in book.graph if block.kind != "ids"]
    blocks = [block for block in blocks if not isinstance(book.values[block.name][0, 0], str)]
    texts = [book.graph[name] for name in ("sentence", "prompt.pick")]
    cells = (st.sampled_from(blocks) | st.sampled_from(texts)).flatmap(edit)
    seen = cells.filter(lambda at: book.graph[at[0]].has(*at[1:3]))
    return st.lists(seen, max_size=6, unique_by=lambda at: tuple(at[:3]))


@given(edits=st.deferred(states))
def test_each_link_leads_to_the_same_edits(edits: list[list[Any]], page) -> None:
    text = call("link.mjs", "write", page, edits)
    assert text.isascii() and not set(text) & set(' <>"^`{|}#')
    assert in_page(page, text) == in_page(page, f"#{text}") == edits
    if edits:
        assert in_python(text) == {(name, i, j): value for name, i, j, value in edits}


def test_links_are_readable(page, begin) -> None:
    edits = [["sentence", 0, 0, "the dog sat"], ["blocks.0.attn.h0.switch", 0, 0, 1]]
    edits += [["W_E", 3, 2, 0.5], ["prompt.pick", 1, 0, "3"]]
    text = call("link.mjs", "write", page, edits)
    cells = "sentence=the+dog+sat&blocks.0.attn.h0.switch=1&W_E[3,2]=0.5&prompt.pick[1,0]='3"
    assert text == begin + cells
    assert begin.startswith("v1&cellformer=cat-sat.")


def test_nothing_edited_is_no_link(page) -> None:
    assert call("link.mjs", "write", page, []) == ""
    for nothing in ("", "#"):
        assert call("link.mjs", "read", page, nothing) == []


def test_last_sign_is_part_of_a_link(page, begin) -> None:
    """Where a link stands in a text, a full stop after it is left out."""
    text = call("link.mjs", "write", page, [["sentence", 0, 0, "It sat."]])
    assert text == f"{begin}sentence=It+sat%2E"


def test_half_a_character_is_a_question_mark(page, begin) -> None:
    text = call("link.mjs", "write", page, [["sentence", 0, 0, "a\ud83d"]])
    assert text == f"{begin}sentence=a%3F"


# --- bad links --------------------------------------------------------------------------------

BAD = {
    "sentence": "does not name a cell",
    "=1": "does not name a cell",
    "W_E[1]=1": "does not name a cell",
    "W_E[-1,0]=1": "does not name a cell",
    "W_E[1,1=1": "does not name a cell",
    "%ff=1": "damaged at %ff",
    "sentence=%": "damaged at %",
    "sentence=%e2%82": "damaged at %e2%82",
    "W_X=1": "W_X",
    "__proto__=1": "__proto__",
    "W_E[99,0]=1": "W_E",
    "W_E[99999999999,0]=1": "does not name a cell",
    "blocks.0.attn.h0.scores[0,5]=1": "scores",
    "W_E=one": "one",
    "W_E=": "W_E",
    "W_E='1": "W_E",
    "W_E=1e999": "W_E",
    "W_E=Infinity": "W_E",
    "W_E=0x10": "W_E",
    "tokens[1,0]=99": "not an id of W_E; ids are whole numbers from 0 to 19",
    "tokens[1,0]=0.5": "not an id of W_E; ids are whole numbers from 0 to 19",
    "W_E=1&W_E[0,0]=2": "names W_E[0,0] twice",
}


@pytest.mark.parametrize("part", BAD)
def test_bad_parts_are_refused(part: str, page, begin) -> None:
    with pytest.raises(JavaScriptError) as told:
        call("link.mjs", "read", page, begin + part)
    with pytest.raises(InputError) as in_command:
        in_python(begin + part)
    assert BAD[part] in str(told.value) and "; " in str(told.value)
    assert "\n" not in str(told.value) + str(in_command.value)


@given(st.text(max_size=60))
def test_any_text_is_a_state_or_one_line(page, begin, text: str) -> None:
    for whole in (text, begin + text):
        try:
            call("link.mjs", "read", page, whole)
        except JavaScriptError as error:
            assert "\n" not in str(error) and len(str(error)) < 300


def test_another_version_is_refused(page, begin) -> None:
    other = begin.replace("v1", "v2")
    with pytest.raises(JavaScriptError, match="has version v2, and this page reads v1; open it"):
        call("link.mjs", "read", page, other)
    with pytest.raises(InputError, match="has version v2, but this cellformer reads only v1"):
        in_python(other)


def test_another_page_is_refused(page, begin) -> None:
    """Of another model, and of the same model with other weights."""
    with pytest.raises(JavaScriptError, match="is of dog-sat, and this page is of cat-sat; open"):
        call("link.mjs", "read", page, begin.replace("cat-sat", "dog-sat") + "W_E=1")
    with pytest.raises(JavaScriptError, match="of another build of cat-sat; open it in the page"):
        call("link.mjs", "read", page, begin.replace("&W_E", "0&W_E")[:-1] + "0&W_E=1")


def test_fingerprints(book) -> None:
    again = cf.build("cat-sat")
    assert fingerprint(again) == fingerprint(book)
    other = cf.build("cat-sat", prompt="the dog sat")
    assert fingerprint(other) != fingerprint(book) and weights_sum(other) == weights_sum(book)
    assert fingerprint(cf.build("one-head")) != fingerprint(book)


# --- the command ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def address(page) -> str:
    edits = [["W_E", 3, 2, 0.5], ["sentence", 0, 0, "the dog sat"]]
    return "file:///home/a/cat-sat.html#" + call("link.mjs", "write", page, edits)


def test_import_of_a_link(address, tmp_path: Path) -> None:
    """A whole address, or its part from # on."""
    folder = tmp_path / "model"
    for text in (address, address[address.index("#") :]):
        done = cli("import", text, "-o", folder, "--force")
        assert done.code == 0 and "checkpoint with 1 changes from the link of cat-sat" in done.out
    weights = checkpoint.load(folder).weights["W_E"]
    live = Evaluator(default_book("cat-sat").graph)
    live.set("W_E", 3, 2, 0.5)
    np.testing.assert_allclose(weights, live["W_E"], rtol=1e-6)


def test_import_refuses_what_a_checkpoint_cannot_hold(begin, tmp_path: Path) -> None:
    done = cli("import", f"#{begin}blocks.0.attn.h0.q[1,1]=0.75", "-o", tmp_path / "model")
    assert done.code == 2 and done.err.count("\n") == 1
    assert "(blocks.0.attn.h0.q[1,1]) was 0.5 and is 0.75; a checkpoint" in done.err
    assert not (tmp_path / "model").exists()


def test_import_of_a_link_of_a_checkpoint(tmp_path: Path) -> None:
    """Whatever prompt its page has."""
    folder = GOLDEN / "llama"
    book = load(str(folder), ids="1,2,3").built()
    page = as_page.write(book, tmp_path / "page")
    text = "#" + call("link.mjs", "write", page, [["W_E", 3, 2, 0.5]])
    assert cli("import", text, "-o", tmp_path / "model").code == 2
    done = cli("import", text, "-o", tmp_path / "model", "--model", folder)
    assert done.code == 0, done.err
    assert checkpoint.load(tmp_path / "model").weights["W_E"][3, 2] == 0.5
    other = cli("import", text, "-o", tmp_path / "other", "--model", GOLDEN / "gpt2")
    assert (
        other.code == 2
        and "was made with other weights than those of gpt2; name its model" in other.err
    )


@pytest.mark.parametrize(
    ("name", "edit", "says"),
    [
        ("attention-by-columns", ["scores", 0, 0, 1.0], "attention-by-columns has no model"),
        (
            "learn",
            ["state", 0, 0, "learn"],
            "a link of learn does not contain the weights that were",
        ),
    ],
)
def test_import_of_a_link_of_worksheets(
    name: str, edit: list[Any], says: str, tmp_path: Path
) -> None:
    page = as_page.write(default_book(name), tmp_path / "page")
    text = "#" + call("link.mjs", "write", page, [edit])
    done = cli("import", text, "-o", tmp_path / "model")
    assert done.code == 2 and says in done.err
