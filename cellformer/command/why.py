"""The command `why`: the words that a head looks at, and the parts that make it look."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table
from rich.text import Text as Shown

from cellformer import budget, names
from cellformer.command import channel as of_channel
from cellformer.command import printing, results
from cellformer.command import say as of_word
from cellformer.command.answer import Answer
from cellformer.command.console import console, line
from cellformer.command.options import Beyond, Ids, Name, NoSpecial, Prompt
from cellformer.engine import InputError, Model
from cellformer.engine.cells import finite
from cellformer.engine.models.architectures.mamba import MambaSpec
from cellformer.engine.studies import circuits, heads, scores
from cellformer.engine.studies.part_names import said
from cellformer.engine.studies.scores import Split
from cellformer.engine.text.tokenizer import shown

INDUCTION = 0.5  # of its attention to that word: an induction head
TOP = 12  # pairs of writers, of heads
PAIRS = 5  # of words
QK, OV = "QK circuit", "OV circuit"
CIRCUITS = {
    QK: (circuits.qk, "which word attends to which word"),
    OV: (circuits.ov, "which next word rises if the head attends to which word"),
}


def why(
    name: Name,
    prompt: Prompt = None,
    ids: Ids = None,
    no_special: NoSpecial = False,
    head: Annotated[
        str | None, typer.Option("--head", help="Head to explain, such as 1.2 (layer 1, head 2).")
    ] = None,
    from_: Annotated[
        str | None,
        typer.Option("--from", help="The query token: a word or a position (default: the last)."),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option("--to", help="The key token (default: the one with the most attention)."),
    ] = None,
    rival_key: Annotated[
        str | None, typer.Option("--rival-key", help="Second key token, to compare with the first.")
    ] = None,
    channel: of_channel.Channel = None,
    say: of_word.Word = None,
    rival: of_word.Rival = None,
    neurons: of_word.Neurons = False,
    against: of_word.Against = None,
    also: of_word.Also = None,
    output: of_word.Output = None,
    force: Beyond = False,
) -> Answer:
    """Show which parts of the model cause a head's attention or a predicted word.

    With --head, a table splits an attention score by the parts that wrote the query and the key.
    The numbers sum to the score. Two tables follow: the QK circuit (which word attends to which)
    and the OV circuit (if a head attends to a word, which next words become more likely). Without
    an option, print what each head does on repeated random words, and which heads it reads from.

    With --say, list the edges that lead to a word, and each edge's part of the lead over a rival.
    Then find a few edges that keep the answer without the others, and try them on other sentences.
    With --channel, print how much a channel of a recurrent model takes from each token.
    """
    of_head = {"head": head, "to": to, "rival-key": rival_key}
    if channel is not None:
        _alone("channel", of_head | {"say": say})
        loaded = names.load(name, prompt, ids, not no_special, force=force)
        return of_channel.taken(loaded, channel, from_, force)
    if say is not None:
        _alone("say", of_head | {"from": from_})
        special = not no_special
        loaded = names.load(name, prompt, ids, special, force=force)
        return of_word.say(loaded, say, rival, neurons, against, also, output, special, force)
    if neurons or any(given is not None for given in (rival, against, also, output)):
        raise InputError(
            "--rival, --neurons, --against, --also and --output work only for one word; name the "
            "word with --say"
        )
    if head is None:
        of_prompt = {"prompt": prompt, "ids": ids, "no-special": no_special or None}
        return _all_heads(_model(name, of_head | {"from": from_}, of_prompt), force)
    loaded = names.load(name, prompt, ids, not no_special, force=force)
    budget.of_passes(loaded.model, len(loaded.ids), force)
    return _head(loaded, head, from_, to, rival_key)


def _alone(of: str, others: Mapping[str, str | None]) -> None:
    """Raise InputError for an option that cannot be combined with another."""
    for option in names.given_options(others):
        raise InputError(f"{option} and --{of} cannot be combined; give only one of them")


def _model(
    name: str, of_head: Mapping[str, str | None], of_prompt: Mapping[str, str | bool | None]
) -> Model:
    """The model whose heads are all in question. Raises InputError for one without heads, and
    for an option of one head."""
    model = names.model(name)
    if isinstance(model.spec, MambaSpec) and not model.spec.n_heads:
        raise InputError(
            "the model has no attention heads; ask about a channel of its recurrence with "
            "--channel 0.0"
        )
    for option in names.given_options(of_head):
        raise InputError(f"{option} works only for one head; name the head, such as --head 1.2")
    for option in names.given_options(of_prompt if model.spec.n_heads else {}):
        raise InputError(f"{option} works only for one head or word; add --head or --say")
    return model


# --- all heads -----------------------------------------------------------------------------


def _all_heads(model: Model, force: bool) -> Answer:
    """The habits of each head on a repeated random text, and which heads read which."""
    budget.of_passes(model, min(2 * heads.LONGEST + 1, model.spec.n_ctx), force, heads.N_TEXTS)
    found = heads.habits(model)
    try:
        composed, refused = circuits.compositions(model), ""
    except InputError as reason:
        composed, refused = [], str(reason)

    result: results.WhyHeads = {"heads": found, "compositions": composed, "refused": refused}
    return Answer(lambda: _tell_heads(found, composed, refused), lambda: result, "heads")


def _tell_heads(
    found: Sequence[heads.Habits], composed: Sequence[circuits.Composition], refused: str
) -> None:
    """Print every head, and which reads which."""
    title = "every head, on a list of random words that occurs twice:"
    printing.rows(found, title, closing=_of_habits(found))
    if refused:
        line(refused)
    most = sorted(composed, key=lambda pair: -max(pair[2:]))[:TOP]
    if most:
        console.print()
        part = ("queries", "keys", "values")[int(np.argmax(most[0][2:]))]
        printing.rows(
            most,
            "which head reads the output of which head (composition: 0 nothing, 1 everything):",
            closing=f"The strongest link: the {part} of {said(most[0].later)} read the output of "
            f"{said(most[0].earlier)}.",
        )


def _of_habits(found: Sequence[heads.Habits]) -> str:
    """The head that is most like an induction head, in a sentence."""
    best = max(found, key=lambda row: row.induction)
    does = (
        "does so" if best.induction >= INDUCTION else "comes closest, but is not an induction head"
    )
    return (
        "An induction head attends to the word that followed an earlier copy of the current "
        f"word: {said(best.head)} {does}, with {best.induction:.1%} of its attention."
    )


# --- one head -------------------------------------------------------------------------------


def _head(
    loaded: names.Loaded,
    head: str,
    from_: str | None,
    to: str | None,
    rival_key: str | None,
) -> Answer:
    """The split of one score, and of its difference to a rival key's score."""
    graph = loaded.graph
    found = scores.Head(graph, scores.head_of(graph, head))
    finite.check(graph, graph.values)
    words, texts = list(shown(loaded.model.vocabulary.texts)), loaded.texts
    query = loaded.place(from_, "--from")
    split = found.split(query, found.most(query) if to is None else loaded.place(to, "--to"))
    rival = None
    if rival_key is not None:
        rival = found.split(query, loaded.place(rival_key, "--rival-key"))

    def tell() -> None:
        printing.prompt(" ".join(texts), len(texts))
        _tell(split, rival, texts)
        if (beside := rival or _second(found, split)) is not None:
            line(_closing(split, beside, texts))
        for what, pairs in _circuits(loaded.model, split.head, words).items():
            console.print()
            line(f"{what}: {pairs}" if isinstance(pairs, str) else f"{what}, {CIRCUITS[what][1]}:")
            if not isinstance(pairs, str):
                _pairs(pairs)

    return Answer(
        tell,
        lambda: _plain(split, rival, texts, _circuits(loaded.model, split.head, words)),
        lambda: _entries(split, rival),
    )


def _entries(split: Split, rival: Split | None) -> Iterator[dict[str, Any]]:
    """The table with a line for each of its entries, and for the parts outside it."""
    tables = {"score": split.table} | ({"rival": rival.table} if rival else {})
    for i, query in enumerate(split.of_query):
        for j, key in enumerate(split.of_key):
            numbers = {head: float(table[i, j]) for head, table in tables.items()}
            yield {"query_writer": query, "key_writer": key, **numbers}
    for what in split.outside:
        numbers = dict(zip(tables, _outside(what, split, rival), strict=False))
        yield {"query_writer": what, "key_writer": "", **numbers}


def _plain(
    split: Split, rival: Split | None, texts: Sequence[str], found: Mapping[str, Any]
) -> results.WhyHead:
    """The split as JSON."""
    told: results.WhyHead = {
        **_of_key(split, texts),  # type: ignore[typeddict-item]
        "head": split.head,
        "query": {"position": split.query, "token": texts[split.query]},
        "query_writers": list(split.of_query),
        "key_writers": list(split.of_key),
        "qk_circuit": found[QK],
        "ov_circuit": found[OV],
    }
    if rival is not None:
        told["rival"] = _of_key(rival, texts)
        told["difference"] = split.less(rival).tolist()
    return told


def _of_key(split: Split, texts: Sequence[str]) -> results.Looked:
    return {
        "key": {"position": split.key, "token": texts[split.key]},
        "score": split.score,
        "pattern": split.pattern,
        "table": split.table.tolist(),
        "outside": dict(split.outside),
    }


def _circuits(model: Model, head: str, words: Sequence[str]) -> dict[str, Any]:
    """The strongest pairs of each circuit: two words and a number; or why there is none."""
    found: dict[str, Any] = {}
    for what, (circuit, _) in CIRCUITS.items():
        try:
            pairs = circuits.strongest(circuit(model, head), PAIRS)
        except InputError as reason:
            found[what] = str(reason)
            continue
        outputs = printing.output_words(model) if what == OV else words
        found[what] = [(words[p.first], outputs[p.second], p.value) for p in pairs]
    return found


def _pairs(pairs: Sequence[tuple[str, str, float]]) -> None:
    """Print the pairs of a circuit."""
    table = Table(box=None, show_header=False)
    for first, second, value in pairs:
        table.add_row(Shown(first, "bold"), "->", Shown(second, "bold"), f"{value:+.4f}")
    console.print(table)


def _tell(split: Split, rival: Split | None, texts: Sequence[str]) -> None:
    """Print the largest entries of the table, the parts outside it, and the sum."""
    head = f"{said(split.head)}, from ‘{texts[split.query]}’ ({split.query})"
    looks = [f"to ‘{texts[s.key]}’ ({s.key}), {s.pattern:.1%}" for s in (split, rival) if s]
    line(
        f"{head} {', and '.join(looks)}: parts of the score, by the parts that wrote the query "
        "and the key"
    )
    console.print()
    tables, heads, sums = [split.table], ["score"], [split.score]
    if rival is not None:
        tables += [rival.table, split.less(rival)]
        heads = [f"to {texts[split.key]}", f"to {texts[rival.key]}", "difference"]
        sums += [rival.score, split.score - rival.score]
    table = printing.table_of("wrote the query", "wrote the key", *heads)
    order = np.argsort(-np.abs(tables[-1]), axis=None, kind="stable")
    for at in order[:TOP]:
        i, j = divmod(int(at), len(split.of_key))
        writers = (Shown(said(name), "bold") for name in (split.of_query[i], split.of_key[j]))
        table.add_row(*writers, *(f"{x[i, j]:+.4f}" for x in tables))
    if len(others := order[TOP:]):
        row = (f"{x.flat[others].sum():+.4f}" for x in tables)
        table.add_row(f"{len(others):,} other pairs", "", *row)
    for what in split.outside:
        table.add_row(said(what), "", *map("{:+.4f}".format, _outside(what, split, rival)))
    table.add_row("score", "", *map("{:+.4f}".format, sums), style="bold")
    console.print(table)


def _second(found: scores.Head, split: Split) -> Split | None:
    """The split of the score of the token that gets most of the other attention."""
    shares = np.array(found.pattern[split.query])
    shares[split.key] = 0.0
    return found.split(split.query, int(np.argmax(shares))) if shares.any() else None


def _closing(split: Split, rival: Split, texts: Sequence[str]) -> str:
    """The two scores, the attention that follows, and the largest part of the difference."""
    key, other = (f"{texts[one.key]} ({one.key})" for one in (split, rival))
    parts, lead = split.less(rival), split.score - rival.score
    i, j = np.unravel_index(int(np.argmax(parts * np.sign(lead or 1.0))), parts.shape)
    share = f"{parts[i, j] / lead:.0%}" if lead else "nothing"
    return (
        f"{key} scores {split.score:+.4f} and gets {split.pattern:.1%} of the attention; {other} "
        f"scores {rival.score:+.4f} and gets {rival.pattern:.1%}. {share} of the difference comes "
        f"from {said(split.of_query[i])} in the query and {said(split.of_key[j])} in the key."
    )


def _outside(what: str, split: Split, rival: Split | None) -> list[float]:
    """The parts of the score outside the table, in each of its columns."""
    if rival is None:
        return [split.outside[what]]
    both = [one.outside.get(what, 0.0) for one in (split, rival)]
    return [*both, both[0] - both[1]]
