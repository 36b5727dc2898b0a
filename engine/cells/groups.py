"""Items in groups, and in batches, in their own order."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Key = TypeVar("Key")


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """The items of each key, in the order in which keys appear."""
    found: dict[Key, list[Item]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found


def batches(items: Sequence[Item], most: int) -> Iterator[Sequence[Item]]:
    """The items in runs of `most`; the last one may be shorter."""
    return (items[begin : begin + most] for begin in range(0, len(items), most))
