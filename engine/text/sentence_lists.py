"""Two lists of sentences to tell apart, from a file with a sentence a line: `# name` begins a list.

A direction leads from one to the other. Each sentence becomes the ids that the model reads.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cellformer.engine.cells.errors import InputError, check_all
from cellformer.engine.cells.texts import readable
from cellformer.engine.text import list_file
from cellformer.engine.text.list_file import LONGEST, quoted

FEWEST, MOST = 2, 500  # sentences of a list

Lists = dict[str, list[list[int]]]  # ids of sentences, by list
Seen = dict[tuple[int, ...], str]  # where ids stand


def read(path: Path, encode: Callable[[str], Sequence[int]]) -> Lists:
    """The two lists of a file; `encode` gives a sentence's ids, and raises InputError. Raises
    InputError for a file that cannot be read, other than two lists, a list with too few or too many
    sentences, a sentence that stands twice, and one that the model cannot read."""
    found: Lists = {}
    seen: Seen = {}
    for number, raw, text in list_file.lines(path, "sentences", MOST):
        name = readable(raw)  # on sheets
        where = f"{path}, line {number}"
        check_all(
            (name, f"{where}: name the list first, in a line ‘# name’"),
            (
                len(name) <= LONGEST,
                f"{where}: the list's name has more than {LONGEST} characters; shorten it",
            ),
            (
                text or name not in found,
                f"{where}: there is already a list {quoted(name)}; rename one of the two",
            ),
        )
        if text:
            found[name].append(_new(text, encode, where, seen, f"on line {number}"))
        else:
            found[name] = []
    _check(found, f"{path}")
    return found


def of_texts(lists: Mapping[str, Sequence[str]], encode: Callable[[str], Sequence[int]]) -> Lists:
    """The same of texts by list. Raises InputError as `read` does."""
    found: Lists = {}
    seen: Seen = {}
    for name, texts in lists.items():
        where = f"list {quoted(name)}"
        found[name] = [_new(text, encode, where, seen, f"in {where}") for text in texts]
    _check(found, "this")
    return found


def encoded(text: str, encode: Callable[[str], Sequence[int]], where: str) -> list[int]:
    """The ids of a text; `where` it stands begins the message of an InputError."""
    try:
        return list(encode(text))
    except InputError as error:
        raise InputError(f"{where}, {quoted(text)}: {error}") from None


def _new(
    text: str, encode: Callable[[str], Sequence[int]], where: str, seen: Seen, place: str
) -> list[int]:
    """The ids of a text. Raises InputError for ids that stand elsewhere, too: they could be fitted
    and held out."""
    ids = encoded(text, encode, where)
    if tuple(ids) in seen:
        raise InputError(
            f"{where}: {quoted(text)} is already {seen[tuple(ids)]}; delete one of the two"
        )
    seen[tuple(ids)] = place
    return ids


def _check(lists: Lists, what: str) -> None:
    """Raise InputError unless there are two lists, each with some sentences to hold out."""
    few = "list" if len(lists) == 1 else "lists"
    check_all(
        (
            len(lists) == 2,
            f"{what} has {len(lists)} {few} of sentences, but two are needed; begin each list "
            "with a line ‘# name’",
        )
    )
    for name, sentences in lists.items():
        n = len(sentences)
        check_all(
            (
                n >= FEWEST,
                f"{what}: list {quoted(name)} has {'one' if n else 'no'} sentence, but needs at "
                f"least {FEWEST}, because one sentence tests the probe",
            ),
            (n <= MOST, f"{what}: list {quoted(name)} has {n:,} sentences; the limit is {MOST}"),
        )
