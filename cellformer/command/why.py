"""The command `why`: what a head looks at, and what it is that meets there."""

import json
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import typer
from rich.text import Text as Shown

from cellformer import budget, names
from cellformer.command import printing
from cellformer.command.options import Beyond, Ids, Name, NoSpecial, Prompt
from cellformer.command.printing import console, line
from engine import InputError
from engine.cells import finite
from engine.cells.errors import UnknownNameError
from engine.studies import scores
from engine.studies.scores import Split
from engine.text.tokenizer import shown

TOP = 12  # pairs of writers


def why(
    name: Name,
    prompt: Prompt = None,
    ids: Ids = None,
    no_special: NoSpecial = False,
    head: Annotated[
        str | None, typer.Option("--head", help="Head to ask about, as 1.2: layer 1, head 2.")
    ] = None,
    from_: Annotated[
        str | None,
        typer.Option(
            "--from", help="The token that looks: a word or a position (default: the last)."
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option("--to", help="The token looked at (default: the one that it looks at most)."),
    ] = None,
    rival_key: Annotated[
        str | None, typer.Option("--rival-key", help="Another token, to compare that one with.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, the whole table.")] = False,
    force: Beyond = False,
) -> None:
    """Explain why a head looks where it looks: its score by what wrote the query and the key.

    The divisors of norms are held at their values, so the table sums to the score.
    """
    if head is None:
        raise InputError("name a head with --head, as 1.2: layer 1, head 2")
    loaded = names.load(name, prompt, ids, not no_special, force=force)
    budget.of_passes(loaded.model, len(loaded.ids), force)
    _head(loaded, head, from_, to, rival_key, as_json)


# --- one head -------------------------------------------------------------------------------


def _head(
    loaded: names.Loaded,
    head: str,
    from_: str | None,
    to: str | None,
    rival_key: str | None,
    as_json: bool,
) -> None:
    """Print the split of one score, and of its difference to a rival key's."""
    graph = loaded.graph
    found = scores.Head(graph, scores.head_of(graph, head))
    finite.check(graph, graph.values)
    words = list(shown(loaded.model.vocabulary.texts))
    texts = [words[i] for i in loaded.ids]
    last = loaded.place_of_answer % len(texts)
    query = last if from_ is None else place(texts, from_, "--from")
    key = found.most(query) if to is None else place(texts, to, "--to")
    split = found.split(query, key)
    other = None if rival_key is None else place(texts, rival_key, "--rival-key")
    rival = None if other is None else found.split(query, other)
    if as_json:
        print(json.dumps(_plain(split, rival, texts)))
        return
    printing.prompt(" ".join(texts), len(texts))
    _tell(split, rival, texts)


def place(texts: Sequence[str], text: str, option: str) -> int:
    """The position of a token that a number, or its word, names. Raises InputError for a word that
    is not in the prompt, or is twice."""
    if text.isdecimal():
        if int(text) >= len(texts):
            raise InputError(
                f"{option} {text}: the prompt's positions run from 0 to {len(texts) - 1}"
            )
        return int(text)
    found = [k for k, own in enumerate(texts) if own.lstrip("␣ ") == text.lstrip("␣ ")]
    if not found:
        raise UnknownNameError("word of the prompt", text, dict.fromkeys(texts))
    if len(found) > 1:
        at = " and ".join(map(str, found))
        raise InputError(f"{option} {text!r} is at positions {at}; give one of these numbers")
    return found[0]


def _plain(split: Split, rival: Split | None, texts: Sequence[str]) -> dict[str, Any]:
    """The split as JSON."""
    told: dict[str, Any] = {
        "head": split.head,
        "query": {"position": split.query, "token": texts[split.query]},
        "query_writers": split.of_query,
        "key_writers": split.of_key,
        **_of_key(split, texts),
    }
    if rival is not None:
        told["rival"] = _of_key(rival, texts)
        told["difference"] = split.less(rival).tolist()
    return told


def _of_key(split: Split, texts: Sequence[str]) -> dict[str, Any]:
    return {
        "key": {"position": split.key, "token": texts[split.key]},
        "score": split.score,
        "pattern": split.pattern,
        "table": split.table.tolist(),
        "outside": dict(split.outside),
    }


def _tell(split: Split, rival: Split | None, texts: Sequence[str]) -> None:
    """Print the largest entries of the table, what stands outside it, and the sum."""
    said = f"head {scores.short(split.head)}, from ‘{texts[split.query]}’ ({split.query})"
    looks = [f"to ‘{texts[s.key]}’ ({s.key}), {s.pattern:.1%}" for s in (split, rival) if s]
    line(f"{said} {', and '.join(looks)}: the score, by what wrote the query and the key")
    console.print()
    tables = [split.table]
    heads = ["score"]
    if rival is not None:
        tables += [rival.table, split.less(rival)]
        heads = [f"to {texts[split.key]}", f"to {texts[rival.key]}", "difference"]
    table = printing.table_of("wrote the query", "wrote the key", *heads)
    order = np.argsort(-np.abs(tables[-1]), axis=None, kind="stable")
    for at in order[:TOP]:
        i, j = divmod(int(at), len(split.of_key))
        row = (f"{x[i, j]:+.4f}" for x in tables)
        table.add_row(Shown(split.of_query[i], "bold"), Shown(split.of_key[j], "bold"), *row)
    if len(others := order[TOP:]):
        row = (f"{x.flat[others].sum():+.4f}" for x in tables)
        table.add_row(f"{len(others):,} other pairs", "", *row)
    for what in split.outside:
        table.add_row(what, "", *map("{:+.4f}".format, _outside(what, split, rival)))
    sums = [split.score] if rival is None else [split.score, rival.score]
    sums += [split.score - rival.score] if rival else []
    table.add_row("score", "", *map("{:+.4f}".format, sums), style="bold")
    console.print(table)


def _outside(what: str, split: Split, rival: Split | None) -> list[float]:
    """What stands outside the table, in each of its columns."""
    if rival is None:
        return [split.outside[what]]
    both = [one.outside.get(what, 0.0) for one in (split, rival)]
    return [*both, both[0] - both[1]]
