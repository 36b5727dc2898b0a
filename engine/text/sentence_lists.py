"""Two lists of sentences to tell apart, from a file with a sentence a line: `# name` begins a list.

A direction leads from one to the other. Each sentence becomes the ids that the model reads.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cellformer.engine.cells.errors import InputError
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
        if not name:
            raise InputError(f"{where}: name the list first, in a line ‘# name’")
        if len(name) > LONGEST:
            raise InputError(
                f"{where}: the list's name has more than {LONGEST} characters; shorten it"
            )
        if not text and name in found:
            raise InputError(
                f"{where}: there is already a list {quoted(name)}; rename one of the two"
            )
        if not text:
            found[name] = []
        else:
            ids = encoded(text, encode, where)
            _check_new(ids, seen, f"on line {number}", f"{where}: {quoted(text)}")
            found[name].append(ids)
    _check({name: len(sentences) for name, sentences in found.items()}, f"{path}")
    return found


def of_texts(lists: Mapping[str, Sequence[str]], encode: Callable[[str], Sequence[int]]) -> Lists:
    """The same of texts by list. Raises InputError as `read` does."""
    found: Lists = {}
    seen: Seen = {}
    for name, texts in lists.items():
        where = f"list {quoted(name)}"
        found[name] = [encoded(text, encode, where) for text in texts]
        for text, ids in zip(texts, found[name], strict=True):
            _check_new(ids, seen, f"in {where}", f"{where}: {quoted(text)}")
    _check({name: len(sentences) for name, sentences in found.items()}, "this")
    return found


def encoded(text: str, encode: Callable[[str], Sequence[int]], where: str) -> list[int]:
    """The ids of a text; `where` it stands begins the message of an InputError."""
    try:
        return list(encode(text))
    except InputError as error:
        raise InputError(f"{where}, {quoted(text)}: {error}") from None


def _check_new(ids: Sequence[int], seen: Seen, place: str, what: str) -> None:
    """Raise InputError for ids that stand elsewhere, too: they could be fitted and held out."""
    if tuple(ids) in seen:
        raise InputError(f"{what} is already {seen[tuple(ids)]}; delete one of the two")
    seen[tuple(ids)] = place


def _check(sizes: Mapping[str, int], what: str) -> None:
    """Raise InputError unless there are two lists, each with some sentences to hold out."""
    if len(sizes) != 2:
        few = "list" if len(sizes) == 1 else "lists"
        raise InputError(
            f"{what} has {len(sizes)} {few} of sentences, but two are needed; begin each list "
            "with a line ‘# name’"
        )
    for name, n in sizes.items():
        if n < FEWEST:
            had = "no sentence" if n == 0 else "one sentence"
            raise InputError(
                f"{what}: list {quoted(name)} has {had}, but needs at least {FEWEST}, because "
                "one sentence tests the probe"
            )
        if n > MOST:
            raise InputError(
                f"{what}: list {quoted(name)} has {n:,} sentences; the limit is {MOST}"
            )
