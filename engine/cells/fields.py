"""The fields of a JSON object in a file, with the types that their values must have."""

from pathlib import Path
from typing import Any

from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.files import read_json

LARGEST = 1e12  # number that is taken for meant


def json_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file, empty if there is no file. Raises InputError."""
    return Fields(path).values if path.is_file() else {}


def content_of(value: Any) -> str | None:
    """The text that a field gives, as a string or as the `content` of an object, as tokens are."""
    found = value.get("content") if isinstance(value, dict) else value
    return found if isinstance(found, str) else None


class Fields:
    """The values of a JSON object by name; read from `path` unless they are given."""

    def __init__(self, path: Path, values: Any = None):
        self.path = path
        self.values = read_json(path) if values is None else values
        if not isinstance(self.values, dict):
            raise InputError(f"{path} does not contain a JSON object")
        self.asked: set[str] = set()

    def look(self, name: str) -> Any:
        """The value of a field of any type; None if it is missing."""
        self.asked.add(name)
        return self.values.get(name)

    def get(self, name: str, kind: type, default: Any = None) -> Any:
        """The value of a field; `default` if it is missing or null; without a default, an error."""
        value = self.look(name)
        if value is None:
            if default is None:
                raise InputError(f"{self.path} has no {name!r}")
            return default
        if isinstance(value, int | float) and not -LARGEST <= value <= LARGEST:
            raise InputError(f"{self.path}: {name!r} is {value}; no model can use such a number")
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise InputError(
                f"{self.path}: {name!r} is {value!r}, but must have the type {kind.__name__}"
            )
        return value

    def listed(self, name: str, kind: type) -> list[Any]:
        """The values of a list; () if it is missing or null."""
        values: list[Any] = self.get(name, list, [])
        if not all(isinstance(value, kind) for value in values):
            raise InputError(f"{self.path}: the list {name!r} must contain only {kind.__name__}")
        return values

    def optional(self, name: str, kind: type, default: Any) -> Any:
        """The value of a field that may be null."""
        null = self.look(name) is None and (name in self.values or default is None)
        return None if null else self.get(name, kind, default)
