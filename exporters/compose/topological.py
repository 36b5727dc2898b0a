"""Reading order: each item names the one that it comes after."""

from collections.abc import Mapping

from cellformer.engine.cells.errors import check_all


def reading_order(after: Mapping[str, str], first: str, kind: str) -> list[str]:
    """`first`, and everything that comes after it, directly or not; every item after the one it
    names.

    Of several items after the same one, the first by name stands nearest. Raises InputError for an
    item that comes after an unknown one.
    """
    follows: dict[str, list[str]] = {}
    for name, before in sorted(after.items(), reverse=True):
        follows.setdefault(before, []).append(name)
    found: list[str] = []
    waiting = [first]
    while waiting:
        found.append(waiting.pop())
        waiting += follows.get(found[-1], ())
    check_all(*(
        (
            name in found,
            f"the {kind} {name!r} has AFTER = {before!r}, but there is no {kind} of that name; "
            "correct AFTER",
        )
        for name, before in after.items()
    ))  # fmt: skip
    return found
