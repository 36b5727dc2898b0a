"""Steering: a direction of the residual stream, from two lists of sentences, added while the model
reads and writes.

The direction is the difference of the means of what stands at a site, a block with a row for each
token, at the sentences' last tokens (activation addition: Turner et al. 2023; contrastive
activation addition: Rimsky et al. 2024). Added with a strength at some tokens, or at all, it moves
what the model says. It is read as words as the stream is (logit lens, nostalgebraist 2020), and it
is the probe that tells the two lists apart (see `probes`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from numbers import Real
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.interventions import intervened
from cellformer.engine.cells.texts import cut
from cellformer.engine.models import ops
from cellformer.engine.models.choosing import GREEDY
from cellformer.engine.models.generate import Passage, check_room, generate
from cellformer.engine.models.model import Model
from cellformer.engine.models.spec import CLASSES
from cellformer.engine.studies import probes
from cellformer.engine.studies.addition import Addition, Given, Option
from cellformer.engine.studies.lens import GAINS, operands, scoring
from cellformer.engine.studies.probes import Accuracy
from cellformer.engine.text import sentence_lists

STEERING = "steering"  # what the names of its blocks begin with
DIRECTION, STRENGTH, WHERE = (f"{STEERING}.{leaf}" for leaf in ("direction", "strength", "where"))
STRENGTHS = (-2.0, -1.0, 0.0, 1.0, 2.0)
LARGEST = ops.LARGEST_STRENGTH
MORE = 20  # tokens that are written
END = "resid_final"  # the stream, as the readout takes it
MOST_LISTED = 8_000  # tokens of sentences to steer by: they lie on Source, as ids

AnyGraph = TypeVar("AnyGraph", bound=Graph)
Ids = Sequence[int]


@dataclass(frozen=True, eq=False)
class Contrast:
    """Two lists of sentences, and the vectors at a site for each of them."""

    site: str
    lists: Mapping[str, Sequence[Ids]] = field(repr=False)  # two, as ids by name
    first: np.ndarray = field(repr=False)  # [n_sentences, width], of the first list
    second: np.ndarray = field(repr=False)  # [n_sentences, width], of the other
    mean: bool = False  # whether it is the mean over the tokens, not the last token's

    @property
    def direction(self) -> np.ndarray:
        """The direction from the mean of the second list to the mean of the first: [1, width]."""
        return np.asarray(self.first.mean(axis=0) - self.second.mean(axis=0))[None, :]


@dataclass(frozen=True)
class Steered:
    """The text of a model by strength, the words along the direction, and how well it tells the
    lists apart."""

    contrast: Contrast
    texts: Mapping[float, list[int]]  # by strength: the ids of prompt and continuation
    words: np.ndarray | None  # [n_words], see `word_scores`; None: the site is no stream
    probe: Accuracy

    def __repr__(self) -> str:
        strengths = ", ".join(f"{strength:g}" for strength in self.texts)
        return f"<Steered at {self.contrast.site} by {cut(strengths)}>"


# --- the direction ------------------------------------------------------------------------------


def contrast(
    model: Model, lists: Mapping[str, Sequence[Ids]], site: str = "", mean: bool = False
) -> Contrast:
    """The vectors at a site (default: the stream in the middle of the layers) for each sentence
    of two lists. Raises InputError for an encoder, an unknown site, or other than two lists of
    two sentences or more."""
    if model.spec.gives != "next word" or not model.spec.causal:
        what = "a classifier" if model.spec.gives in CLASSES else "an encoder"
        raise InputError(
            f"a {model.kind} model is {what} and cannot continue a text; use a decoder"
        )
    model.check_one_stack("steering")
    if len(lists) != 2 or min(map(len, lists.values())) < 2:
        sizes = " and ".join(str(len(sentences)) for sentences in lists.values())
        raise InputError(
            "steering needs two lists of at least two sentences each, because one sentence of "
            f"each list tests the probe. You gave {len(lists)} lists, with {sizes or 'none'}"
        )
    half = model.spec.n_layers // 2  # by default, the stream in the middle of the layers
    site = site or (f"blocks.{half}.resid_pre" if half else END)
    first, second = (activations(model, sentences, site, mean) for sentences in lists.values())
    return Contrast(site, lists, first, second, mean)


def activations(
    model: Model, sentences: Sequence[Ids], site: str, mean: bool = False
) -> np.ndarray:
    """The vector at a site at each sentence's last token, or its mean over the tokens:
    [n_sentences, width]. Raises InputError for a site without a row for each token.

    One batch: under a causal mask no token sees those that fill up the shorter sentences.
    """
    longest = max(sentences, key=len)
    graph = model.graph(longest)
    width = _site(graph, site).shape[1]
    tokens = np.zeros((len(sentences), len(longest), 1))
    for row, ids in zip(tokens, sentences, strict=True):
        model.check_ids(ids)
        row[: len(ids), 0] = ids
    found = graph.last(site, {"tokens": tokens})  # [n_sentences, n_tokens, width]
    found = np.broadcast_to(found, (len(sentences), len(longest), width))
    begin = [0 if mean else len(ids) - 1 for ids in sentences]
    spans = zip(found, begin, sentences, strict=True)
    return np.array([rows[k : len(ids)].mean(axis=0) for rows, k, ids in spans])


def _site(graph: Graph, name: str) -> Block:
    """The block of a site. Raises InputError for one that has no row for each token."""
    block = graph[name]
    if block.op is None or block.partial or block.axes[0] != "token":
        raise InputError(
            f"{name} does not have a row of numbers for each token; name a residual stream, such "
            "as blocks.0.resid_post"
        )
    return block


# --- adding it ----------------------------------------------------------------------------------


def steered(
    graph: AnyGraph,
    site: str,
    direction: np.ndarray,
    strength: float = 0.0,
    tokens: Sequence[int] | None = None,
) -> AnyGraph:
    """The graph in which `strength` times a direction [1, width] is added to a site, at some tokens
    (default: all). Direction, strength and tokens are inputs: `steering.direction`,
    `steering.strength` [1, 1], `steering.where` [n_tokens, 1]. Raises InputError."""
    n_tokens = _site(graph, site).shape[0]
    where = np.zeros((n_tokens, 1))
    for t in range(n_tokens) if tokens is None else tokens:
        if not 0 <= t < n_tokens:
            raise InputError(f"there is no token {t}; positions run from 0 to {n_tokens - 1}")
        where[t] = 1.0

    def formula(g: Graph, name: str, own: Block) -> Block:
        at = g.at(STEERING)
        vector = at.input("direction", direction, ("", own.axes[1]))
        times = at.input("strength", strength)
        there = at.input("where", where, (own.axes[0], ""))
        added = at.block("added", ops.push, vector, times, there)  # [n_tokens, width]
        return g.block(name, ops.add, [own, added])

    return intervened(graph, {site: formula})


def add(graph: AnyGraph, found: Contrast) -> AnyGraph:
    """The graph with the direction of a contrast, of strength 0, and its words: for workbooks.
    Raises InputError for a site that is neither in a layer nor the final stream."""
    if graph[found.site].layer is None and found.site != END:
        raise InputError(
            f"{found.site} is outside the layers, but a workbook can steer only inside a layer or "
            f"at {END}; name a site such as blocks.0.resid_pre"
        )
    g = steered(graph, found.site, found.direction)
    if is_stream(g, found.site):
        word_scores(g, g[DIRECTION])
    return g


def continued(
    model: Model,
    ids: Ids,
    n_tokens: int,
    found: Contrast,
    strength: float,
    tokens: Sequence[int] | None = None,
) -> list[int]:
    """A prompt and what the steered model writes after it, greedily, up to an end of text."""
    change = partial(
        steered, site=found.site, direction=found.direction, strength=strength, tokens=tokens
    )
    text = list(ids)
    for step in generate(model, ids, n_tokens, GREEDY, change=change):
        text.append(step.token)
        if step.token in model.vocabulary.ends:
            break
    return text


def _check_strengths(strengths: Sequence[float]) -> None:
    """Raise InputError for a strength that is not a number as a workbook takes it."""
    for strength in strengths:
        if not (isinstance(strength, Real) and abs(strength) <= LARGEST):  # nan is not, either
            raise InputError(
                f"{strength!r} is not a strength from -{LARGEST} to {LARGEST}; give numbers, "
                "such as 1.5"
            )


def steer(
    model: Model,
    found: Contrast,
    ids: Ids,
    strengths: Sequence[float] = STRENGTHS,
    token: int | None = None,
    n_tokens: int | None = None,
) -> Steered:
    """The text of the model after a prompt with each strength, steered at one token or at all
    (None), with the direction's words and the probe's accuracy. Raises InputError."""
    _check_strengths(strengths)
    n_tokens = max(1, min(MORE, model.spec.n_ctx - len(ids))) if n_tokens is None else n_tokens
    check_room(model, len(ids), n_tokens)
    if token is not None and not 0 <= token < len(ids):
        raise InputError(
            f"there is no token {token}; the positions of the prompt run from 0 to {len(ids) - 1}"
        )
    at = None if token is None else [token]
    texts = {s: continued(model, ids, n_tokens, found, s, at) for s in strengths}
    accuracy = probes.accuracy(found.site, found.first, found.second)
    return Steered(found, texts, words(model, found), accuracy)


# --- reading it ---------------------------------------------------------------------------------


def word_scores(g: Graph, direction: Block) -> Block:
    """Add the dot product of a direction [1, d_model] with each word's vector: [1, n_words].

    The direction goes through the final norm as the stream does: centred, and multiplied by the
    gain. Biases, the norm's divisor and a cap on logits are left out, so the numbers grow with the
    direction.
    """
    end = scoring(g)
    path, x = [], end.x
    while x.name != END:
        path.append(x)
        x = operands(x)["x"]
    direction = g.at(STEERING).block("read", ops.add, [direction])  # in sheets it stands down
    for x in reversed(path):
        direction = _carried(g.at(f"{STEERING}.{x.path}" if x.path else STEERING), x, direction)
    op = ops.linear_tied if end.by_rows else ops.linear
    return g.at(STEERING).block("words", op, direction, end.words)


def _carried(at: Graph, x: Block, direction: Block) -> Block:
    """A direction after an op of the readout, given the one before it: without its bias."""
    if x.op is ops.normalize:
        return at.block(x.leaf, ops.centre, direction, at.block("mean", ops.mean, direction))
    if x.op in GAINS:
        _, (_, _, gain), *_ = x.operands
        return at.block(x.leaf, x.op, direction, gain)
    if x.op is ops.linear:
        return at.block(x.leaf, ops.linear, direction, operands(x)["w"])
    return direction  # divided by the same number for all words


def is_stream(graph: Graph, site: str) -> bool:
    """Whether a site is as wide as the stream, so that its directions have nearest words."""
    return graph[site].axes[1] == graph[END].axes[1]


def words(model: Model, found: Contrast) -> np.ndarray | None:
    """The dot product of the direction with each word: [n_words]; None for a site beside the
    stream."""
    g = model.graph([found.lists[next(iter(found.lists))][0][0]])
    if not is_stream(g, found.site):
        return None
    block = word_scores(g, g.at(STEERING).input("direction", found.direction, ("", "d_model")))
    return np.asarray(g.last(block.name)[0])


# --- in a workbook ------------------------------------------------------------------------------


def _asked(given: Given) -> Contrast:
    lists = sentence_lists.read(given.options["steer"], given.encode)
    return contrast(given.model, lists, given.options.get("site", ""))


def _check(model: Model, asked: Contrast, most: int) -> None:
    n_listed = sum(len(ids) for sentences in asked.lists.values() for ids in sentences)
    if n_listed > MOST_LISTED:
        raise InputError(
            f"the lists for steering have {n_listed:,} tokens, above the limit of "
            f"{MOST_LISTED:,} for a workbook; shorten the lists"
        )


def _read(facts: Mapping[str, Any], model: Model, passage: Passage) -> Contrast | None:
    given = dict(facts.get("lists", {}))
    lists = {str(name): [[int(i) for i in ids] for ids in found] for name, found in given.items()}
    longest = max(map(len, lists.values()), default=0)
    if len(lists) not in (0, 2) or longest > sentence_lists.MOST:
        raise ValueError("no such lists")
    return contrast(model, lists, str(facts.get("site", ""))) if lists else None


ADDITION = Addition(
    "steer",
    (
        Option(
            "steer",
            Path,
            "File with two lists of sentences. The workbook adds the direction between the lists "
            "to the residual stream. A line ‘# name’ begins a list.",
        ),
        Option(
            "site",
            str,
            "Place to steer, such as blocks.1.resid_pre (default: the middle layer).",
            of_blocks=True,
        ),
    ),
    _asked,
    instead="‘cellformer steer’ works with any decoder",
    apart=("against",),
    check=_check,
    adds=lambda graph, passage, asked: add(graph, asked),
    sheet="Steering",
    on_page=True,
    part=STEERING,
    meanings={
        "steering.direction": "direction from the mean of one list to the mean of the other",
        "steering.strength": "the number that multiplies the direction",
        "steering.where": "1 for tokens that receive the direction",
        "steering.added": "vector that steering adds at a token",
        "steering.words": "dot product of the direction and each word’s vector",
    },
    look=(
        "On the sheet Steering, add the direction from one list of sentences to another list. "
        "Then read the new answer of the model.",
    ),
    facts=lambda asked: {"site": asked.site, "lists": asked.lists},
    read=_read,
)
