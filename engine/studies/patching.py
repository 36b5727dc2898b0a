"""Activation patching: the values of one sentence put into the pass of another, a site at a time.

Two sentences of equal length, alike but for a few words, go through one model. A *site* is a
computed block and rows of it, named as cells are: `blocks.0.attn.h0.result[2,:]`. Each has a
switch, `<site>.take` [n_tokens, 1]: 0 keeps a row, 1 takes the other sentence's (`other.<site>`),
and everything downstream is computed from it (Vig et al. 2020, section 3; Meng et al. 2022, section
2.1). The measure is how much of the difference between the two sentences' leads of a word over its
rival that recovers (Wang et al. 2023, section 3.2; Zhang & Nanda 2024, section 2).

- Estimates, attribution patching: the gradient of the lead by each switch (Nanda 2023; Syed et al.
  2023, section 3).
- Path patching: one block as the other sentence has it, seen by a single later block alone
  (Goldowsky-Dill et al. 2023, section 3; Wang et al. 2023, section 3.1). What lies between is
  computed anew, except that other heads and MLPs keep their outputs. `path.take` [n_tokens, 1]
  switches the rows of the sender.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import partial
from typing import Annotated, NamedTuple, TypeVar

import numpy as np

from cellformer.engine.cells.arrays import ranked
from cellformer.engine.cells.batch import Change, variants
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError, UnknownNameError, nearest
from cellformer.engine.cells.gradient import backward
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.groups import batches
from cellformer.engine.cells.interventions import Formula, intervened
from cellformer.engine.cells.name import OTHER, PATH
from cellformer.engine.learning import objective
from cellformer.engine.models import ops
from cellformer.engine.models.model import Model
from cellformer.engine.studies.part_names import named

AnyGraph = TypeVar("AnyGraph", bound=Graph)
TAKE, PART, PATCH = "take", "part", "patch"
PATH_TAKE, PATH_ROWS = f"{PATH}.{TAKE}", f"{PATH}.rows"
STREAM = ("resid_pre", "resid_mid", "attn_out", "mlp_out")
IN_HEAD = ("q", "rot_q", "k", "rot_k", "v", "pattern")
MOST_NUMBERS = 20_000_000  # that a batch of variants holds: 160 MB
NAME = re.compile(r"([\w.]+)(?:\[([^,\]]*)(?:,([^,\]]*))?\])?")


class Site(NamedTuple):
    """Rows, and columns if not all of them, of a block."""

    block: str
    rows: range
    columns: range | None = None

    @property
    def name(self) -> str:
        """Its name, without rows."""
        if self.columns is None:
            return self.block
        return f"{self.block}[:,{self.columns.start}:{self.columns.stop}]"


class Path(NamedTuple):
    """A path from the output of one block to an input of one later block."""

    sender: Site
    receiver: Site


class Scores(NamedTuple):
    """The scores of the target and its rival."""

    probability: Annotated[float, "of the target"]
    logit: Annotated[float, "of the target"]
    lead: Annotated[float, "the target's logit minus the rival's"]


class Patched(NamedTuple):
    """The effect of a patch of one site at one token."""

    site: str
    token: int | None  # None: all tokens of a path's sender
    scores: Scores
    recovered: float | None  # the part of the sentences' difference in leads; None: there is none
    estimate: float | None  # the same by the gradient


class Comparison(NamedTuple):
    """Two sentences, and the effects of patching the first from the second."""

    target: int
    rival: int
    before: Scores  # nothing patched
    other: Scores  # of the other sentence
    rows: list[Patched]


# --- sites ----------------------------------------------------------------------------------------


def patchable(graph: Graph) -> list[Block]:
    """The blocks that can be patched: computed, a row for each token, and not the same for every
    sentence."""
    axis, after = graph["tokens"].axes[0], graph.after(["tokens"])
    return [block for block in graph if block.name in after and block.axes[0] == axis]


def sites(graph: Graph) -> list[str]:
    """The usual sites, in the order of computation: the embedding, the residual stream, what each
    part writes into it, queries, keys (before and after they rotate), values, patterns, and the
    hidden neurons of MLPs. Where heads' `result`s are not shown, their `z` takes its place."""
    return [block.name for block in patchable(graph) if _usual(block) or writes(graph, block)]


def _usual(block: Block) -> bool:
    if block.layer is None:
        return block.own == "embed"
    if block.part == "attn":
        return block.leaf in IN_HEAD and block.inside[-1] == block.head
    return block.leaf in STREAM if not block.part else (block.part, block.leaf) == ("mlp", "post")


def writes(graph: Graph, block: Block) -> bool:
    """Whether a block is the output of a head or an MLP."""
    if block.part != "attn" or block.head is None:
        return block.leaf == "mlp_out"
    return block.leaf == ("result" if f"{block.path}.result" in graph.blocks else "z")


def site(graph: Graph, text: str) -> Site:
    """The site that a text names: `blocks.0.resid_mid`, `blocks.0.resid_mid[2,:]`, or a range of
    neurons, `blocks.0.mlp.post[:,8:16]`. Raises InputError for an unknown one."""
    found = {block.name: block for block in patchable(graph)}
    match = NAME.fullmatch(named(text, found) or text.strip())
    if match is None:
        raise InputError(
            f"{text!r} is not the name of a site; write for example blocks.0.resid_mid[2,:]"
        )
    if match[1] in graph.blocks and match[1] not in found:
        raise InputError(
            f"{match[1]} cannot be patched, because it has no row for each token, or has the same "
            f"values for every sentence; {nearest(match[1], sites(graph))}"
        )
    if match[1] not in found:
        raise UnknownNameError("site", match[1], found)
    rows, cols = found[match[1]].shape
    columns = _span(text, "columns", match[3], cols)
    some = len(columns) < cols
    if some and found[match[1]].partial:
        raise InputError(
            f"{text!r}: {match[1]} can only be patched in whole rows; leave out the columns"
        )
    return Site(match[1], _span(text, "rows", match[2], rows), columns if some else None)


def _span(text: str, what: str, given: str | None, n: int) -> range:
    """The rows or columns that are written as `2`, `1:3` or `:`; all if nothing is given."""
    match = re.fullmatch(r"\s*(\d{0,18})\s*(:?)\s*(\d{0,18})\s*", given or ":")
    if match is None or not (match[1] or match[2]):
        raise InputError(f"{text!r}: {given!r} is not a range of {what}; write 2, 1:3 or :")
    start = int(match[1] or 0)
    stop = int(match[3] or n) if match[2] else start + 1
    if not start < stop <= n:
        raise InputError(f"{text!r}: {what} run from 0 to {n - 1}")
    return range(start, stop)


# --- graphs ---------------------------------------------------------------------------------------


def against(
    graph: AnyGraph, ids: Sequence[int], at: Iterable[Site] | None = None, path: Path | None = None
) -> AnyGraph:
    """The graph of a sentence with the pass of another, `other.*`, and a switch at every site
    (default: the usual ones) and for a path.

    At a site, NAME is what its readers read, and `NAME.own` as it is computed. The other pass
    stands before the sentence's own, so whatever is added later may read it. Raises InputError for
    a sentence of another length, or the same.
    """
    _check_alike(graph.inputs["tokens"][:, 0].astype(int).tolist(), ids)
    found = _with_other(graph, ids)
    if at is None:
        at = [site(found, name) for name in sites(graph)]
    at = list(at)
    _check_once(at)
    formulas: dict[str, Formula] = {place.block: partial(_switch, place) for place in at}
    if path is not None:
        _check_path(graph, path)
        name = path.receiver.block
        formulas[name] = partial(_end_of_path, path, formulas.get(name))
    return intervened(found, formulas)


def _check_once(at: Sequence[Site]) -> None:
    """Raise InputError for a block that is named with different columns: it has one switch."""
    columns: dict[str, range | None] = {}
    for place in at:
        if columns.setdefault(place.block, place.columns) != place.columns:
            raise InputError(
                f"{place.block} is named twice with different columns; patch these sites one at "
                "a time"
            )


def check_pair(model: Model, ids: Sequence[int], others: Sequence[int]) -> None:
    """Raise InputError unless a model's sentence can be patched from another, token by token."""
    if model.spec.gives == "sentence":
        raise InputError(
            "a sentence encoder does not rank words, so a patch has no effect to measure; choose a "
            "model that ranks words"
        )
    model.check_one_stack("patching")
    model.check_ids(others)
    _check_alike(ids, others, model.vocabulary.texts)
    place, its = (model.place_of_answer(given) for given in (ids, others))
    if place != its:
        raise InputError(
            f"the masked word is token {place} of the prompt, but token {its} of the other "
            "sentence; put the mask in the same place"
        )


def _check_alike(ids: Sequence[int], others: Sequence[int], texts: Sequence[str] = ()) -> None:
    """Raise InputError for sentences of different lengths, and for equal ones."""
    if list(ids) == list(others):
        raise InputError("the other sentence is the same as the prompt; change one of its words")
    if len(ids) == len(others):
        return
    fact = f"the prompt has {len(ids)} tokens, but the other sentence has {len(others)}"
    apart = SequenceMatcher(None, ids, others, autojunk=False).get_opcodes() if texts else []
    where = [
        f"where the prompt has {_quoted(ids[a:b], texts)}, the other sentence has "
        f"{_quoted(others[c:d], texts)}"
        for _, a, b, c, d in apart
        if b - a != d - c
    ]
    n = abs(len(ids) - len(others))
    shorter = "the other sentence" if len(others) < len(ids) else "the prompt"
    words = "1 token" if n == 1 else f"{n} tokens"
    remedy = f"patching compares token with token, so add {words} to {shorter}"
    raise InputError("; ".join([fact, *where, remedy]))


def _quoted(ids: Sequence[int], texts: Sequence[str]) -> str:
    return repr(" ".join(texts[i].strip() for i in ids)) if len(ids) else "nothing"


def _check_path(graph: Graph, path: Path) -> None:
    """Raise InputError unless a path goes forward, between whole rows."""
    names, (sender, receiver) = list(graph.blocks), path
    if sender.columns or receiver.columns:
        raise InputError(
            "path patching copies whole rows; leave out the range of columns in the names of both "
            "sites"
        )
    if names.index(sender.block) >= names.index(receiver.block):
        raise InputError(
            f"{receiver.block} is computed before {sender.block}, so no path leads to "
            f"{receiver.block}; name a part of a later layer, or resid_final"
        )


def _with_other(graph: AnyGraph, ids: Sequence[int]) -> AnyGraph:
    """The graph with the other sentence's pass before its own."""
    found, after = graph.empty(), graph.after(["tokens"])
    for block in graph:
        if block.name not in after:
            found.take(block, graph)
    at, axes = found.at(OTHER), graph["tokens"].axes
    tokens = at.input("tokens", np.reshape(ids, (-1, 1)), axes, "ids")
    own = [block for block in graph if block.name in after]
    at.copy_with({"tokens": tokens}, among=own)
    for block in own:
        found.add(block)
    return found


def _switch(place: Site, g: Graph, name: str, own: Block) -> Block:
    """A block with a switch for each of its rows."""
    take = g.input(f"{place.block}.{TAKE}", np.zeros((own.shape[0], 1)), (own.axes[0], ""))
    part = None
    if place.columns is not None:
        inside = np.isin(np.arange(own.shape[1]), place.columns).astype(float)
        part = g.input(f"{place.block}.{PART}", inside, ("", own.axes[1]))
    return _patched(g, name, own, g[f"{OTHER}.{place.block}"], take, part)


def _patched(g: Graph, name: str, own: Block, other: Block, *switches: Block | None) -> Block:
    op = ops.patched_seen if own.partial else ops.patched
    return g.block(name, op, own, other, *filter(None, switches))


def _end_of_path(path: Path, switch: Formula | None, g: Graph, name: str, own: Block) -> Block:
    """The receiver of a path, computed from the sender as its switch says: `path.<block>` is each
    block between the two, and `path.rows` are the receiver's rows that read it."""
    at, axes, sender = g.at(PATH), (own.axes[0], ""), g[path.sender.block]
    between = _between(g, sender, own)
    if own not in between:
        raise InputError(
            f"{name} reads {sender.name} only through other heads and MLPs, or not at all: name "
            "a part of a later layer, or resid_final"
        )
    take = at.input(TAKE, np.zeros((own.shape[0], 1)), axes)
    rows = np.isin(np.arange(own.shape[0]), path.receiver.rows).astype(float)
    read = at.input("rows", rows[:, None], axes)
    sent = _patched(at, sender.name, sender, g[f"{OTHER}.{path.sender.block}"], take)
    at.copy_with({sender.name: sent}, among=between)
    through = g[f"{PATH}.{own.name}"]
    if switch is None:
        return _patched(g, name, own, through, read)
    return switch(g, name, _patched(at, name, own, through, read))


def _between(g: Graph, sender: Block, receiver: Block) -> list[Block]:
    """The blocks that lead from a sender to a receiver, and the receiver. Other heads and MLPs
    keep their outputs, so blocks behind them are left out."""
    held = {block.name for block in g if writes(g, block) and block is not receiver}
    after = g.after([sender.name], held)
    needed, found = {receiver.name}, []
    for block in reversed(list(g)):
        if block.name in needed and block.name in after:
            needed.update(b.name for _, _, b in block.operands)
            found.append(block)
    return found[::-1]


# --- measures -------------------------------------------------------------------------------------


def patch_each(
    graph: Graph,
    ids: Sequence[int],
    row: int = -1,
    target: int | None = None,
    rival: int | None = None,
    at: Sequence[Site] | None = None,
    path: Path | None = None,
) -> Comparison:
    """The effect of each site (default: the usual ones) at each of its tokens, alone, on the words
    at a token; with `path`, of the path from each token of its sender, and from all together.

    The default target is the sentence's likeliest word, the default rival the other's, or else the
    sentence's next likeliest. Raises InputError as `against` does, and for a target that is its own
    rival.
    """
    if at is None:
        at = [] if path else [site(graph, name) for name in sites(graph)]
    g = against(graph, ids, at, path)
    row = row % g["logits"].shape[0]
    target, rival = words(g, row, target, rival)
    each = dict.fromkeys((Site(p.block, range(0), p.columns), i) for p in at for i in p.rows)
    changes: list[tuple[Site, int | None, Change]] = (
        _of_path(path) if path else [(p, i, {(f"{p.block}.{TAKE}", i, 0): 1.0}) for p, i in each]
    )
    before, other = (
        _scores(g.values[f"{prefix}logits"], g.values[f"{prefix}probs"], row, target, rival)
        for prefix in ("", f"{OTHER}.")
    )
    scores = list(_each(g, [change for _, _, change in changes], row, target, rival))
    slopes = _slopes(g, row, target, rival, [change for _, _, change in changes])
    span = before.lead - other.lead
    rows = [
        Patched(
            place.name,
            token,
            now,
            (before.lead - now.lead) / span if span else None,
            (0 - slope) / span if span else None,
        )
        for (place, token, _), now, slope in zip(changes, scores, slopes, strict=True)
    ]
    return Comparison(target, rival, before, other, rows)


def _of_path(path: Path) -> list[tuple[Site, int | None, Change]]:
    """The changes that switch a path: for each token of the sender, and for all together."""
    each: list[tuple[Site, int | None, Change]] = [
        (path.sender, i, {(PATH_TAKE, i, 0): 1.0}) for i in path.sender.rows
    ]
    together = {(PATH_TAKE, i, 0): 1.0 for i in path.sender.rows}
    return each if len(each) == 1 else [*each, (path.sender, None, together)]


def words(
    g: Graph, row: int, target: int | None = None, rival: int | None = None
) -> tuple[int, int]:
    """The target and the rival at a token of a graph of `against`, or their defaults. Raises
    InputError for a target that is its own rival."""
    own = ranked(g.values["logits"][row])
    if target is None:
        target = own[0]
    if rival is None:
        likeliest = int(np.argmax(g.values[f"{OTHER}.logits"][row]))
        rival = next(v for v in (likeliest, *own) if v != target)
    if target == rival:
        raise InputError(
            "the target and its rival are the same word; name another word for one of them"
        )
    return target, rival


def _scores(logits: np.ndarray, probs: np.ndarray, row: int, target: int, rival: int) -> Scores:
    """The scores in one pass: logits and probs are [n_tokens, d_vocab]."""
    logit = float(logits[row, target])
    return Scores(float(probs[row, target]), logit, logit - float(logits[row, rival]))


def _each(
    g: Graph, changes: Sequence[Change], row: int, target: int, rival: int
) -> Iterator[Scores]:
    """The scores under each change, in batches that fit into memory."""
    n = max(1, MOST_NUMBERS // sum(block.whole.size for block in g if block.computed))
    for some in batches(changes, n):
        values = variants(g, some)
        yield from (
            _scores(logits, probs, row, target, rival)
            for logits, probs in zip(values["logits"], values["probs"], strict=True)
        )


def add_leads(g: Graph, target: int, rival: int, passes: Sequence[str]) -> None:
    """Add `patch.lead`, the target's logit less the rival's at the token of the block
    `position`, and the lead of some other passes, as `other.patch.lead`: [1, 1] each. The ids
    are in cells."""
    at, n = g.at(PATCH), len(g.blocks)
    ids = {"target": at.input("target", target, kind="ids")}
    ids["rival"] = at.input("rival", rival, kind="ids")
    row = at.block("row", ops.embed, g["position"], g["logits"])  # [1, d_vocab]
    each = [at.block(f"of_{word}", ops.column, ident, row) for word, ident in ids.items()]
    at.block("lead", ops.less, *each)
    among = [block for block in list(g)[n:] if block.op]
    for name in passes:
        g.at(name).copy_with({"logits": g[f"{name}.logits"]}, among=among)


def _slopes(g: Graph, row: int, target: int, rival: int, changes: Sequence[Change]) -> list[float]:
    """The change of the lead under each change, to first order: its gradient by the switches, which
    is added to the graph."""
    takes = [g[name] for name in dict.fromkeys(name for change in changes for name, _, _ in change)]
    found = backward(g, objective.logit(g, row, target, rival), to=takes)
    gradients = {take.name: g.values[found[take.name].name] for take in takes if take.name in found}
    return [
        sum(float(gradients[name][i, j]) for name, i, j in change if name in gradients)
        for change in changes
    ]
