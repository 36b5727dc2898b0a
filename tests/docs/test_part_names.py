"""Texts for people use one name for each head and each layer, counted from 0: head 1.2, MLP 1,
layer 1.

Names of blocks, `blocks.1.attn.h2`, are left out: scripts, equations, Index and JSON have them.
"""

import html
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT, Built, cli, default_book

from cellformer import workbooks
from cellformer.command.group import HOMES, command
from cellformer.engine.studies.part_names import named, said
from cellformer.exporters.web import page

EXPLAINED = re.compile(r"\(layer \d+, head \d+\)")
EQUATION = re.compile(r"^[\w.]+ = .*?(?=   \[|$)")
BLOCK = re.compile(r"(?:\b\w+\.)*\b(?:blocks|model\.layers|layers)\.[\d*][\w.*]*")
OTHER_FORMS = re.compile(
    r"(?<![\w.])\d+\.(?:h|attn|mlp|MLP|kv|e|cross)\d*\b"  # 1.h2, 1.attn.h2, 0.mlp
    r"|\battn\.h\d"
    r"|\bheads? \d+\b(?!\.\d)(?![,. ]*(?:times|x|×))"  # head 2
    r"|\blayer \d+,? (?:head|MLP|attention)\b|\blayer \d+['’]s (?:head|MLP|attention)"
    r"|\b(?:MLP|attention|head|heads) of layer \d+ \d"
    r"|(?<![\w.])\d+ (?:MLP|attention)\b(?! head)"  # 0 MLP
    r"|\bL\d+H\d+\b"
    r"|(?<!\ba )\b(?:first|second|third|1st|2nd|3rd) (?:layer|head)\b",
    re.IGNORECASE,
)
HEAD = re.compile(r"\bheads? \d+\.\d+\b", re.IGNORECASE)
COUNTED = "Layers and heads are counted from 0"
LONGEST = 2000  # characters of a text; what is longer is data
WORDED = re.compile(r"[^\W\d_]{2}")
IN_SHEETS = re.compile(r"<(?:t|f|a:t|v)(?: [^>]*)?>([^<]*)</")
LITERAL = re.compile(r'"((?:[^"]|"")*)"')


def other_forms(text: str) -> list[str]:
    """What a text calls heads and layers, if it is not the one form."""
    for left_out in (EQUATION, BLOCK, EXPLAINED):
        text = left_out.sub("", text)
    return [found[0] for found in OTHER_FORMS.finditer(text)]


def is_text(held: str) -> bool:
    """Whether this is words, not numbers, a name or packed data."""
    return len(held) < LONGEST and bool(WORDED.search(held))


def of_workbook(path: Path) -> Iterator[tuple[str, str]]:
    """Where a workbook has a text, and the text: shared ones, those in formulas and in charts."""
    parts = re.compile(r"(sheet\d+|sharedStrings|chart\d+)\.xml$")
    with zipfile.ZipFile(path) as file:
        for part in filter(parts.search, file.namelist()):
            for found in map(html.unescape, IN_SHEETS.findall(file.read(part).decode())):
                texts = LITERAL.findall(found) if "sheets/" in part else [found]
                yield from ((part, text) for text in filter(is_text, texts))


@pytest.mark.parametrize(
    "text",
    [
        *("1.h2", "1.attn.h2", "0.mlp", "0.MLP", "head 2 looks", "heads 0 and 1", "L1H2", "0 MLP"),
        *("In layer 1, head 2, it looks", "layer 2's MLP off", "layer 0 attention", "0 attention"),
        *("the first layer writes", "the second head", "attn.h2 of it"),
    ],
)
def test_other_forms_are_found(text: str) -> None:
    assert other_forms(text)


@pytest.mark.parametrize(
    "text",
    [
        *("head 1.2 looks", "heads 0.1 and 1.1", "MLP 0", "attention 1", "layer 1", "KV head 1.0"),
        *("4 attention heads", "2 layers of 4 heads", "blocks.1.attn.h2.pattern", "Head 1.2 is"),
        *("as 1.2 (layer 1, head 2)", "what a second layer is for", "expert 0.3", "n_heads 4"),
    ],
)
def test_the_one_form_is_none_of_them(text: str) -> None:
    assert other_forms(text) == []


def test_a_part_has_one_name() -> None:
    names = {
        "blocks.1.attn.h2": "head 1.2",
        "blocks.1.attn.h2.result": "head 1.2",
        "blocks.1.attn.h2.b_Q": "head 1.2 b_Q",
        "blocks.0.mlp_out": "MLP 0",
        "blocks.0.attn.kv1": "KV head 0.1",
        "blocks.0.mlp.e3": "expert 0.3",
        "blocks.0.mlp.shared": "shared expert 0",
        "blocks.0.resid_mid": "layer 0 resid_mid",
        "blocks.1.cross.h0": "cross head 1.0",
        "encoder.blocks.0.attn.h1": "encoder head 0.1",
        "encoder.blocks.0.mlp": "encoder MLP 0",
        "embed": "embed",
    }
    assert {name: said(name) for name in names} == names
    for text in ("1.2", "head 1.2", "blocks.1.attn.h2"):
        assert named(text, ["blocks.0.attn.h2", "blocks.1.attn.h2"]) == "blocks.1.attn.h2"
    assert named("head 1.3", ["blocks.1.attn.h2"]) is None


@pytest.mark.slow
@pytest.mark.parametrize("name", workbooks.names())
def test_sheets_have_one_form(built: Built, name: str) -> None:
    texts = [*of_workbook(built[name])]
    assert {text: other_forms(text) for _, text in texts if other_forms(text)} == {}
    shown = any(HEAD.search(text) for part, text in texts if "sharedStrings" in part)
    assert sum(COUNTED in text for _, text in texts) == shown  # said once, on Start


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cat-sat", "dialogue-game", "two-layers", "adder", "low-rank"])
def test_pages_have_one_form(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.html"
    page.write(default_book(name), path)
    texts = [*filter(is_text, LITERAL.findall(path.read_text(encoding="utf-8")))]
    assert {text: other_forms(text) for text in texts if other_forms(text)} == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    "args",
    [
        *(
            ("ablate",),
            ("gradient",),
            ("why",),
            ("why", "--head", "1.2"),
            ("why", "--say", "Tarso"),
        ),
        *(("run", "--lens", "--target", "Tarso"), ("run", "--ablate", "head 1.2"), ("info",)),
        *(("quantize", "--bits", "4"), ("patch", "--against", "<BOS> 3 chiama Paolo")),
        ("patch", "--against", "<BOS> 3 chiama Paolo", "--site", "head 1.2", "--site", "MLP 0"),
    ],
)
def test_the_terminal_has_one_form(args: tuple[str, ...]) -> None:
    done = cli(args[0], "dialogue-game", *args[1:])
    assert done.code == 0 and other_forms(done.out) == []


def test_help_has_one_form() -> None:
    for name in HOMES:
        described = command(name)
        texts = [described.help, *(option.help for option in described.params)]
        assert [other_forms(text or "") for text in texts] == [[]] * len(texts)


@pytest.mark.parametrize(
    "path", [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")], ids=lambda p: p.name
)
def test_documents_have_one_form(path: Path) -> None:
    assert other_forms(path.read_text(encoding="utf-8")) == []
