"""Plain English: help, documents and docstrings have none of the turns that were read twice."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from cellformer.command.group import HOMES, command

ROOT = Path(__file__).parents[2]
PACKAGES = ("cellformer", "engine", "exporters", "workbooks")
DECLARED = (ast.Module, ast.ClassDef, ast.FunctionDef)
BANNED = re.compile(
    r"\b(to be had|as one learns|what is of|of which there|that there is|that is none|held against"
    r"|in the place of|(is|are|was|were) told|at hand|of the random numbers|by which one sees"
    r"|as people have them|the bend|bent|from elsewhere|(has|have) it so|(is|are) of no|as it comes"
    r"|what becomes of)\b",
    re.IGNORECASE,
)


def texts() -> Iterator[tuple[str, str]]:
    """Where a text stands, and the text: help, documents, docstrings."""
    for name, described in ((name, command(name)) for name in HOMES):
        yield f"{name} --help", described.help
        yield from ((f"{name} {option.name}", option.help) for option in described.params)
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md")):
        yield path.name, path.read_text(encoding="utf-8")
    for path in (path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, DECLARED) and (found := ast.get_docstring(node)):
                yield f"{path.relative_to(ROOT)} {getattr(node, 'name', '')}", found


def found_in(text: str) -> list[str]:
    return [match[0] for match in BANNED.finditer(" ".join(text.split()))]


def test_banned_turns_are_found() -> None:
    assert found_in("Raises InputError where these\nare not to be had.") == ["to be had"]
    assert found_in("Raises InputError if the model does not support them.") == []


def test_no_text_has_a_banned_turn() -> None:
    assert {where: found_in(text) for where, text in texts() if found_in(text)} == {}
