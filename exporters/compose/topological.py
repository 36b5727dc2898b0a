"""The order in which things are read: each says what it comes after."""

from collections.abc import Mapping

from engine.cells.errors import InputError


def reading_order(after: Mapping[str, str], first: str, kind: str) -> list[str]:
    """`first`, and what comes after it, directly or not; what follows a thing stands behind it.

    Of several that come after the same one, the first by name stands nearest. Raises InputError for
    one that comes after nothing that there is.
    """
    follows: dict[str, list[str]] = {}
    for name, before in sorted(after.items(), reverse=True):
        follows.setdefault(before, []).append(name)
    found: list[str] = []
    waiting = [first]
    while waiting:
        found.append(waiting.pop())
        waiting += follows.get(found[-1], ())
    for name, before in after.items():
        if name not in found:
            raise InputError(f"the {kind} {name!r} comes AFTER {before!r}, which is no {kind}")
    return found
