"""InputError, the one exception for users: it names what is invalid, and the remedy."""

from collections.abc import Iterable
from difflib import get_close_matches
from types import ModuleType

from cellformer.engine.cells.texts import escaped


class InputError(ValueError):
    """Invalid input. The message is one line that names the fact and the remedy.

    >>> cf.load("cat-sad")
    Traceback (most recent call last):
        ...
    cellformer.engine.cells.errors.InputError: there is no workbook 'cat-sad'; nearest: cat-sat
    """

    def __str__(self) -> str:
        return one_line(Exception.__str__(self))


class UnknownNameError(InputError, KeyError):
    """An unknown name. It is also a KeyError, for use in mappings."""

    def __init__(self, what: str, name: object, known: Iterable[str]) -> None:
        super().__init__(f"no {what} is named {name!r}; {nearest(str(name), known)}")


def declared(module: ModuleType, kind: str, wanted: Iterable[str]) -> ModuleType:
    """A module found in a package. Raises InputError if it lacks a declaration."""
    lacking = [name for name in wanted if not hasattr(module, name)]
    if lacking:
        raise InputError(
            f"{module.__file__} is {kind}, but does not declare {', '.join(lacking)}; add what "
            "is missing"
        )
    return module


def check_all(*facts: tuple[object, str]) -> None:
    """Raise InputError with the text of the first fact that does not hold."""
    for holds, fault in facts:
        if not holds:
            raise InputError(fault)


LONGEST, END = 280, 120  # characters of a message, and those that its end keeps


def one_line(text: str) -> str:
    """A message as one line of printable characters, shortened in the middle if long."""
    text = "".join(c if c.isprintable() else escaped(c) for c in text)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - END - 5]} ... {text[-END:]}"


def first_line(error: BaseException) -> str:
    """The first line of another library's error."""
    return (str(error) or type(error).__name__).splitlines()[0]


def sides(shape: Iterable[int]) -> str:
    """A shape in a message: 3 x 4."""
    return " x ".join(map(str, shape))


def nearest(wanted: str, known: Iterable[str]) -> str:
    """The known names nearest to `wanted`, for the end of a message."""
    names = list(known)
    if ending := [name for name in names if name.endswith(f".{wanted}")]:
        return "nearest: " + ", ".join(ending[:3])
    folded = {name.casefold(): name for name in reversed(names)}
    close = [folded[name] for name in get_close_matches(wanted.casefold(), folded, n=3, cutoff=0.6)]
    if close:
        return "nearest: " + ", ".join(close)
    return "known: " + ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
