"""Plain English: help, documents and docstrings avoid turns that readers had to read twice.

Hand-written documents also have no sentence of more than 30 words, and none that begins as a noun
clause; nor does a docstring.
"""

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

MOST_WORDS = 30
CLAUSE = re.compile(r"(What|Who|Whoever|Whose|Which|Of|So|How)\b(?![^?]*\?)")
BY_SCRIPTS = ("api", "architectures", "command", "gallery", "json", "licences", "ops", "sources")
WRITTEN = [
    *(path for path in ROOT.glob("docs/*.md") if path.stem not in BY_SCRIPTS),
    *ROOT.glob("docs/teach/*.md"),
    *(
        ROOT / name
        for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "benchmarks/README.md")
    ),
    ROOT / "docs/paper/paper.md",
]
NO_PROSE = re.compile(
    r"^(---\n.*?\n---|```.*?```|<!--(\w+)-->\n.*?<!--/-->|(?:#|\||    |!\[)[^\n]*)$|<!--.*?-->",
    re.MULTILINE | re.DOTALL,
)
PARTS = re.compile(r"\n\s*(?:[-*]|\d+\.) |\n\s*\n|(?<=[.!?])(?<! al\.)[)*_]*\s+")


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


def sentences(markdown: str) -> list[str]:
    """The sentences of a document: no tables, code, titles, or texts that scripts write."""
    prose = re.sub(r"\]\([^)]*\)", "]", NO_PROSE.sub("\n\n", "\n" + markdown))
    prose = re.sub(r"`[^`]*`", "`code`", prose)
    return [" ".join(part.split()) for part in PARTS.split(prose) if part and part.strip()]


def hard(markdown: str) -> list[str]:
    """The sentences that are too long, or begin as a noun clause."""
    return [
        sentence
        for sentence in sentences(markdown)
        if len(sentence.split()) > MOST_WORDS or CLAUSE.match(sentence)
    ]


def test_banned_turns_are_found() -> None:
    assert found_in("Raises InputError where these\nare not to be had.") == ["to be had"]
    assert found_in("Raises InputError if the model does not support them.") == []


def test_no_text_has_a_banned_turn() -> None:
    assert {where: found_in(text) for where, text in texts() if found_in(text)} == {}


def test_hard_sentences_are_found() -> None:
    clause, long = "Who has one hour takes two workbooks.", f"A model {'reads ' * 29}words."
    assert hard(f"# Of titles\n\n{clause} It is short.\n\n- {long}\n") == [clause, long]
    assert hard("What is a key? | Who |\n\n```\nOf code\n```\n| Of tables |") == []


def test_documents_have_no_hard_sentence() -> None:
    found = {path.name: hard(path.read_text(encoding="utf-8")) for path in WRITTEN}
    assert {name: sentences for name, sentences in found.items() if sentences} == {}


def test_no_docstring_begins_as_a_noun_clause() -> None:
    begun = [where for where, text in texts() if ".py " in where and CLAUSE.match(text)]
    assert begun == []
