"""A pair of sentences in cells: the pass of the other sentence, its words, the sentence's own pass
without any patch, and the two words whose lead counts (see `patching`).

The other sentence is typed word by word, below the first one's: a blank, or a word that is unknown,
is the first sentence's own. So both are always equally long. The target and its rival are typed as
words, too. Estimates are of the pass without patches, so they do not follow what is switched.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from cellformer.engine.cells.access import Span
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.expression import Area, Expression
from cellformer.engine.cells.functions import IF, IFERROR
from cellformer.engine.cells.gradient import GAIN, backward, to_first_order
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.name import CLEAN, GRADIENT, OTHER, PATH
from cellformer.engine.models.encoding import TOKENS
from cellformer.engine.models.generate import Passage
from cellformer.engine.models.model import Model
from cellformer.engine.studies import patching
from cellformer.engine.studies.addition import LEAD as OF_LEAD
from cellformer.engine.studies.addition import Addition, Given, Option
from cellformer.engine.studies.part_names import said
from cellformer.engine.studies.patching import PATCH, TAKE, AnyGraph, Comparison, Path, Site
from cellformer.engine.studies.study import Asked, Study
from cellformer.engine.text import word_lookup
from cellformer.engine.text.tokenizer import shown

MOST_SWITCHES = 2_000  # sites times tokens: above it, heads' and MLPs' insides have none
COMPARED = ("target", "rival")
LEAD = f"{PATCH}.lead"
BEFORE = f"{CLEAN}.{LEAD}"  # without any patch


def add(
    graph: AnyGraph, passage: Passage, against: Sequence[int], path: tuple[str, str] | None
) -> AnyGraph:
    """The graph with the other sentence's pass, switches, and the sentence's own pass without them.
    What was generated after the prompt, as built, is the same in all. Raises InputError for an
    unknown site of the path."""
    ids = [*against, *passage.ids[passage.n_prompt :]]
    found = patching.against(graph, ids, sites(graph), path and path_of(graph, path))
    at, own = found.at(CLEAN), graph.inputs["tokens"]
    at.copy_with({"tokens": at.input("tokens", own, graph["tokens"].axes, "ids")}, among=graph)
    return found


def sites(graph: Graph, most: int = MOST_SWITCHES) -> list[Site]:
    """The sites with switches: the usual ones, or in larger models without the insides of heads and
    MLPs."""
    found = patching.sites(graph)
    if len(found) * graph["tokens"].shape[0] > most:
        inside = (*patching.IN_HEAD, "post")
        found = [name for name in found if graph[name].leaf not in inside]
    return [patching.site(graph, name) for name in found]


def path_of(graph: Graph, path: tuple[str, str]) -> Path:
    """The path between two sites by their names."""
    sender, receiver = path
    return Path(patching.site(graph, sender), patching.site(graph, receiver))


def switches(graph: Graph) -> list[Block]:
    """The switches of all sites, in the order of the forward pass."""
    return [b for b in graph if b.leaf == TAKE and b.kind == "setting" and PATH not in b.passes]


def measure(graph: Graph, row: int) -> None:
    """Add the leads at a token, for the sentence, the other one, and the sentence without any
    patch; and, by its gradient, the effect of each switch on the last."""
    patching.add_leads(graph, *patching.words(graph, row), passes=(OTHER, CLEAN))
    at = [take.path for take in switches(graph)]
    instead = {graph[f"{CLEAN}.{name}"]: graph[f"{OTHER}.{name}"] for name in at}
    backward(graph, graph[BEFORE], to=[next(iter(instead))], tokens=TOKENS)
    to_first_order(graph, instead, tokens=TOKENS)


def gain(graph: Graph, take: Block) -> Block:
    """The change of the lead that a switch would cause, by its gradient: [n_tokens, 1]."""
    return graph[f"{GRADIENT}.{CLEAN}.{take.path}.{GAIN}"]


def follow(graph: Graph, words: Sequence[str], outputs: Sequence[str]) -> None:
    """Make the other sentence's tokens, and the two words, follow the entries. `words` are the
    texts of the input vocabulary, and `outputs` the texts of words with a logit."""
    _follow_words(graph, words)
    for name in COMPARED:
        _follow_word(graph, name, outputs)


def _follow_word(graph: Graph, name: str, outputs: Sequence[str]) -> None:
    """The target, or the rival; one that is unknown counts as the word as built."""
    at, built = graph.at(PATCH), int(graph.inputs[f"{PATCH}.{name}"][0, 0])
    typed = at.input(f"{name}.word", outputs[built], kind="table")
    _look_up(at, f"{name}.found", (1, 1), lambda t: typed[t, 0], "look")
    found = graph[f"{PATCH}.{name}.found"][0, 0]
    graph.follow(f"{PATCH}.{name}", lambda *_: IF(found < 0, built, found))


def _follow_words(graph: Graph, words: Sequence[str]) -> None:
    """The other sentence's tokens, word by word."""
    at, axes = graph.at(OTHER), (graph["tokens"].axes[0], "")
    built = graph.inputs[f"{OTHER}.tokens"][:, 0].astype(int)
    texts = np.array([words[i] for i in built], dtype=object).reshape(-1, 1)
    typed = at.input("words", texts, axes, "table")
    _look_up(at, "found", typed.shape, lambda t: typed[t, 0], "prompt")
    found, own = graph[f"{OTHER}.found"], graph["prompt.id"]
    graph.follow(f"{OTHER}.tokens", lambda t, _: IF(found[t, 0] < 0, own[t, 0], found[t, 0]))
    given, n = graph.inputs[f"{CLEAN}.tokens"][:, 0].astype(int), graph["n_prompt"][0, 0]
    graph.follow(f"{CLEAN}.tokens", lambda t, _: IF(t < n, own[t, 0], int(given[t])))


def _look_up(at: Graph, name: str, shape: Span, typed: Callable[[int], Area], among: str) -> None:
    """Add the ids of typed words, as a lookup finds them; -1: not found."""
    found = at.table(
        f"{name}.exact",
        shape,
        lambda t, _: word_lookup.place_of(IFERROR(typed(t) & "", ""), at, f"{among}.words"),
    )

    def loose(t: int, _: int) -> Expression:
        other = word_lookup.find_ignoring_case(IFERROR(typed(t) & "", ""), at, f"{among}.lowered")
        return IF(found[t, 0] >= 0, found[t, 0], other)

    at.table(name, shape, loose)


# --- as rows ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PatchedSite:
    """A site of the prompt, patched from the other sentence at one token."""

    against: Annotated[str, "the other sentence"]
    rival: Annotated[str, "the word compared with the target"]
    site: Annotated[str, "its name", said]
    token: Annotated[int | None, "its position"]
    word: Annotated[str, "the token there"]
    probability: Annotated[float, "of the target", ".4f"]
    logit: Annotated[float, "of the target", ".4f"]
    lead: Annotated[float, "the target's logit minus the rival's", "+.4f"]
    recovered: Annotated[
        float | None, "recovered share of the difference; null: no difference", "+.4f"
    ]
    estimate: Annotated[float | None, "recovered share, estimated by attribution patching", "+.4f"]


@dataclass(frozen=True)
class Options:
    """The sites that are patched."""

    sites: Annotated[
        tuple[str, ...],
        "Patch only this site, such as blocks.0.attn.h0.result or blocks.0.mlp.post[2,8:16]. "
        "Repeatable.",
        "site",
    ] = ()


def others(asked: Asked) -> list[int]:
    """The ids of the text that a prompt is patched from. Raises InputError."""
    found = asked.encode(asked.against, what="--against")
    patching.check_pair(asked.model, asked.ids, found)
    return found


def compared(
    asked: Asked,
    other: Sequence[int],
    sites: Sequence[str] = (),
    path: tuple[str, str] | None = None,
) -> Comparison:
    """A prompt patched from the ids of another text: at each site, or along a path from one site to
    another. Raises InputError for an unknown word or site."""
    if sites and path:
        raise InputError(
            "a path already names its two sites; give either a path or a list of sites, not both"
        )
    graph, row = asked.graph, asked.row
    target = asked.word(asked.target) if asked.target else None
    rival = asked.word(asked.rival, "--rival") if asked.rival else None
    at = [patching.site(graph, text) for text in sites] or None
    return patching.patch_each(graph, other, row, target, rival, at, path and path_of(graph, path))


def rows(asked: Asked, found: Comparison) -> list[PatchedSite]:
    """A comparison as rows."""
    words, tokens = asked.words, shown(asked.model.vocabulary.texts)
    return [
        PatchedSite(
            asked.against,
            words[found.rival],
            each.site,
            each.token,
            "" if each.token is None else tokens[asked.ids[each.token]],
            *each.scores,
            each.recovered,
            each.estimate,
        )
        for each in found.rows
    ]


def _rows(asked: Asked) -> tuple[str, list[PatchedSite]]:
    if not asked.against:
        raise InputError(
            "there is no text to copy values from; give a text with --against, or in a column "
            "named ‘against’"
        )
    found = compared(asked, others(asked), asked.options.sites or patching.sites(asked.graph))
    return asked.words[found.target], rows(asked, found)


STUDY = Study(
    "patch",
    "Copy values from another sentence into the prompt, one site at a time, and report the "
    "recovered share of the difference.",
    PatchedSite,
    _rows,
    Options,
)


# --- in a workbook ------------------------------------------------------------------------------


class Against(NamedTuple):
    """The other sentence, whose values a patch takes, and the path along which they go."""

    ids: tuple[int, ...]  # of the other sentence
    path: tuple[str, str] | None = None  # from one site to another


def _asked(given: Given) -> Against:
    ids = given.encode(given.options["against"], what="--against")
    patching.check_pair(given.model, given.ids, ids)
    return Against(tuple(ids), path_ends(given.options.get("from"), given.options.get("to")))


def path_ends(sender: str | None, receiver: str | None) -> tuple[str, str] | None:
    """The two ends of a path by their names. Raises InputError for one end alone."""
    if sender is None and receiver is None:
        return None
    if sender is None or receiver is None:
        raise InputError("a path needs both of its ends: give --from and --to")
    return sender, receiver


def _read(facts: Mapping[str, Any], model: Model, passage: Passage) -> Against | None:
    ids = tuple(int(i) for i in facts.get("against", ()))
    if ids and len(ids) != passage.n_prompt:
        raise ValueError("sentences of different lengths")
    sender, receiver = map(str, facts.get("path") or ("", ""))
    return Against(ids, (sender, receiver) if sender else None) if ids else None


ADDITION = Addition(
    "against",
    (
        Option(
            "against",
            str,
            "Compute a second text, with as many tokens as the prompt, and replace values of the "
            "prompt by values of this text.",
        ),
        Option("from", str, "Path patching: the site where the values come from."),
        Option(
            "to",
            str,
            "Path patching: the site that receives the values, such as blocks.1.attn.h2.v or "
            "resid_final.",
        ),
    ),
    _asked,
    instead="‘cellformer patch’ works with any model that ranks words",
    apart=("gradient", "nudge", "why"),
    prompt_alone=True,
    adds=lambda graph, passage, asked: add(graph, passage, *asked),
    ends=lambda graph, passage: measure(graph, passage.n_prompt - 1),
    follows=lambda graph, words, outputs: follow(graph, words, outputs),
    gradient_of=OF_LEAD,
    sheet="Patch",
    on_page=True,
    part=PATCH,
    holds=lambda block, graph: block.leaf == TAKE or block.name == patching.PATH_ROWS,
    look=(
        "On the sheet Patch, replace single values by the values of the other sentence. See "
        "how close the answer comes to the answer of the other sentence. Sheets with purple "
        "tabs compute the other sentence.",
    ),
    facts=lambda asked: {"against": asked.ids, "path": asked.path},
    read=_read,
)
