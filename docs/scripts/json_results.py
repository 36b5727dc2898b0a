"""Write docs/json.md: what the commands print with --json, from `cellformer/command/results.py`.

python docs/scripts/json_results.py
"""

from collections.abc import Iterator, Sequence
from dataclasses import is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    NotRequired,
    Union,
    get_args,
    get_origin,
    is_typeddict,
)

from cellformer.command import results
from cellformer.command.answer import SCHEMA
from cellformer.command.group import HOMES
from cellformer.version import __version__

TARGET = Path(__file__).parents[1] / "json.md"
NAMES = {float: "number", int: "integer", str: "text", bool: "true or false", NoneType: "null"}
HEAD = f"""# JSON and CSV of the commands

`python docs/scripts/json_results.py` makes this page from `cellformer/command/results.py`.

With `--json`, a command prints one JSON object, in ASCII, and nothing else:

```json
{{"schema": "{SCHEMA}", "command": "ablate", "version": "{__version__}", "result": {{...}}}}
```

The number in `schema` rises when a field is removed, renamed or gets another meaning. New fields
do not change it. `version` is cellformer's version. Numbers are float64 with all their digits. A
number that is not finite, such as a masked score, is `null`.

With `--csv`, a command prints the list that is **bold** below. It prints a line with the names of
columns, and a line for each entry. `run --show BLOCK` prints the block, `grade` a line for each
file, and `why --head` the entries of its table. CSV escapes the control characters of a text, so
that no terminal obeys them. `--quiet` prints nothing. Every error is one line on standard error,
with exit code 2.

`cellformer ablate dialogue-game --json | jq '.result.rows[] | select(.change < -2) | .part'`
names the parts that matter.
"""


def reference() -> str:
    """The page, in Markdown."""
    parts = [HEAD]
    told: set[str] = set()
    for kinds in map(results.kinds, (name for name in HOMES if name != "open")):
        for kind in kinds:
            if kind.__name__ in told:
                continue
            told.add(kind.__name__)
            parts.append(f"\n## {kind.__doc__}\n\n{_fields(kind)}")
            for inner in _inside(kind):
                if inner.__name__ not in told:
                    told.add(inner.__name__)
                    parts.append(
                        f"\n**{inner.__name__}**: {_first_lower(inner)}\n\n{_fields(inner)}"
                    )
    return "".join(parts)


def _first_lower(kind: Any) -> str:
    text: str = kind.__doc__
    return text[0].lower() + text[1:] if text[1:2].islower() or text[1:2] == " " else text


def _fields(kind: Any) -> str:
    """A table of the fields of a kind of object."""
    rows = ["| field | | |", "|---|---|---|"]
    for field, hint in results.hints(kind).items():
        optional = get_origin(hint) is NotRequired
        inner = get_args(hint)[0] if optional else hint
        of, text, *_ = get_args(inner)
        name = f"**`{field}`**" if field == results.main_table(kind) else f"`{field}`"
        rows.append(f"| {name} | {'optional, ' if optional else ''}{spelt(of)} | {text} |")
    return "\n".join(rows) + "\n"


def spelt(of: Any) -> str:
    """A type in words."""
    origin, inner = get_origin(of), get_args(of)
    if origin is Annotated:
        return spelt(inner[0])
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(map(spelt, inner)))
    if origin in (list, Sequence):
        return f"list of {spelt(inner[0])}"
    if origin is tuple:
        return f"[{', '.join(map(spelt, inner))}]"
    if origin is dict:
        return f"object of {spelt(inner[1])}, by name"
    return NAMES.get(of) or f"[{of.__name__}]"


def _inside(kind: Any) -> Iterator[Any]:
    """The kinds of objects in the fields of a kind, each before those that are in it."""
    for hint in results.hints(kind).values():
        for inner in _named(hint):
            yield inner
            yield from _inside(inner)


def _named(of: Any) -> Iterator[Any]:
    for inner in get_args(of):
        yield from _named(inner)
    if not get_args(of) and (is_typeddict(of) or is_dataclass(of) or hasattr(of, "_fields")):
        yield of


if __name__ == "__main__":
    TARGET.write_text(reference(), encoding="utf-8")
    print(TARGET.name)
