"""Write docs/api.md: the public names of `import cellformer`, from their docstrings.

python docs/scripts/api.py
"""

import inspect
import re
from pathlib import Path
from typing import Any

import cellformer as cf

TARGET = Path(__file__).parents[1] / "api.md"
GROUPS = {
    "Models and workbooks": (
        "load",
        "save",
        "build",
        "build_all",
        "write",
        "read",
        "graph",
        "generate",
        "passage",
    ),
    "Commands": ("run", "ablate", "patch", "sweep", "explain", "diff", "verify", "edit"),
    "Studies": ("study", "quantize", "steer", "why", "variants", "exercise", "grade"),
}
MODULES, LINE = re.compile(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z])"), "\n    "
OBJECT = re.compile(r"<.*? at 0x\w+>")
HEAD = """# Python

`python docs/scripts/api.py` makes this page from the docstrings of `import cellformer as cf`. The
tests run each example. `help(cf.load)` shows the same. [A session](session.md) shows how the
functions work together.
"""


def reference() -> str:
    """The page, in Markdown."""
    rest = [name for name in cf.__all__ if not any(name in names for names in GROUPS.values())]
    groups = {**GROUPS, "Classes and the rest": tuple(rest)}
    parts = [HEAD]
    for title, names in groups.items():
        parts.append(f"\n## {title}\n")
        parts += [section(name, getattr(cf, name)) for name in names if name in cf.__all__]
    return "".join(parts)


def section(name: str, found: Any) -> str:
    """One name: its signature, its docstring, and its methods by their first lines."""
    signature = _signature(name, found)
    parts = [f"\n### `cf.{name}`\n", f"\n```python\n{signature}\n```\n", f"\n{told(found)}\n"]
    if inspect.isclass(found):
        lines = [f"- `.{member}`: {first}" for member, first in _members(found)]
        parts.append("\n" + "\n".join(lines) + "\n" if lines else "")
    return "".join(parts)


def _signature(name: str, found: Any) -> str:
    if inspect.ismodule(found):
        return f"from cellformer import {name}"
    try:
        found = inspect.signature(found)
    except (TypeError, ValueError):
        return f"cf.{name}(...)"
    parts = [OBJECT.sub("...", MODULES.sub("", str(each))) for each in found.parameters.values()]
    gives = found.return_annotation
    end = "" if gives is inspect.Signature.empty else f" -> {_plain(gives)}"
    line = f"cf.{name}({', '.join(parts)}){end}"
    return line if len(line) <= 90 else f"cf.{name}(\n    {(',' + LINE).join(parts)},\n){end}"


def _plain(kind: Any) -> str:
    """A type as source has it, without modules."""
    name = kind if isinstance(kind, str) else inspect.formatannotation(kind)
    return MODULES.sub("", name)


def told(found: Any) -> str:
    """A docstring in Markdown: its examples are fenced."""
    lines, fenced = [], False
    for line in (inspect.getdoc(found) or "").splitlines():
        if line.startswith(">>> ") and not fenced:
            lines, fenced = [*lines, "```pycon"], True
        elif not line and fenced:
            lines, fenced = [*lines, "```"], False
        lines.append(line)
    return "\n".join([*lines, "```"] if fenced else lines)


def _members(found: type) -> list[tuple[str, str]]:
    """The public methods and properties that a class documents, with their first lines."""
    return [
        (name, " ".join(doc.split("\n\n")[0].split()))
        for name, member in sorted(vars(found).items())
        if not name.startswith("_") and (doc := _own_doc(member))
    ]


def _own_doc(member: Any) -> str:
    if not (inspect.isfunction(member) or isinstance(member, property | classmethod)):
        return ""
    return inspect.getdoc(member) or ""


if __name__ == "__main__":
    TARGET.write_text(reference(), encoding="utf-8")
    print(TARGET.name)
