"""Why a model says a word: the graph of the answer, and the few edges that keep it, of named
models and sentences. The command `why` uses it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cellformer import workbooks
from cellformer.engine.cells import finite
from cellformer.engine.cells.arrays import ranked
from cellformer.engine.cells.batch import filled
from cellformer.engine.cells.errors import InputError
from cellformer.engine.models import formats
from cellformer.engine.models.model import Model
from cellformer.engine.studies.answer_graph import AnswerGraph, Edge
from cellformer.engine.studies.circuit import Case, Circuit, search
from cellformer.engine.studies.edge_cuts import Cuts, averages
from cellformer.engine.studies.study import word_of
from cellformer.names import Loaded

N_TRIED = 20  # other sentences that a circuit is tried on
N_DRAWN = 200  # beside these; averages are over those in which the rival leads,
FEWEST = 8  # or over all, if these are fewer
SEED = 29
NO_OTHERS = "there are no other sentences of this length; give such a sentence with --against"


@dataclass(frozen=True)
class Cut:
    """An edge, and the change of the answer without it; None for an edge of a bias or neuron."""

    edge: Edge
    real: float | None


@dataclass(frozen=True)
class Trial:
    """Another sentence: the answer of the whole model, and of the circuit alone."""

    ids: list[int]
    says: int
    alone: int


@dataclass(frozen=True)
class Said:
    """Why a model says a word after a sentence."""

    target: int
    rival: int
    answer: AnswerGraph
    edges: list[Cut]  # the strongest first
    circuit: Circuit | None  # None: no edges keep the answer,
    refused: str  # for this reason
    trials: list[Trial]


def why(
    loaded: Loaded,
    say: str,
    rival: str | None = None,
    neurons: int = 0,
    against: Sequence[int] = (),
    also: Sequence[Sequence[int]] = (),
    n_edges: int = 20,
) -> Said:
    """The strongest edges of the graph of a word's lead over a rival (default: the likeliest other
    word), and the circuit that keeps it, tried on some of `others`: the workbook's texts, or the
    given ones, `also`.

    A cut edge is replaced by what stands there in the sentence `against`, or by its average over
    those of the others in which the rival leads: neither carries the answer itself.

    Raises InputError for an unknown word, a model that is no decoder, or given texts of which none
    is another and as long as the prompt.
    """
    graph, texts = loaded.graph, others(loaded, also)
    if also and not texts:
        raise InputError(
            f"no other text has {len(loaded.ids)} tokens, the length of the prompt; add texts of "
            "that length"
        )
    finite.check(graph, graph.values)
    row = len(loaded.ids) - 1
    target = word_of(loaded.model, say, graph, row, "--say")
    if rival is None:
        beside = next(v for v in ranked(graph.values["logits"][row], 2) if v != target)
    else:
        beside = word_of(loaded.model, rival, graph, row, "--rival")
    if target == beside:
        raise InputError("the word and its rival are the same; choose another rival")
    answer = AnswerGraph(graph, row, target, beside)
    said = Said(target, beside, answer, cut(answer, answer.edges(neurons)[:n_edges]), None, "", [])
    if not (against or texts):
        return replace(said, refused=NO_OTHERS)
    held = texts[N_TRIED:] or texts
    replacing = [against] if against else _without(loaded.model, held, target, beside)
    instead = averages(loaded.model, replacing, len(loaded.ids))
    try:
        found = search([Case(loaded.model, loaded.ids, target, beside, instead)])
    except InputError as reason:
        return replace(said, refused=str(reason))
    trials = [tried(loaded.model, ids, found, instead) for ids in texts[:N_TRIED]]
    return replace(said, circuit=found, trials=trials)


def cut(answer: AnswerGraph, edges: Sequence[Edge]) -> list[Cut]:
    """Each edge, with the change of the answer when it alone is cut."""
    cuts = Cuts(answer)
    whole = [e for e in edges if e.source.neuron is None and e.reader.neuron is None]
    possible = [edge for edge in whole if cuts.possible(edge.ends)]
    changes = cuts.leads([[edge.ends] for edge in possible]) - answer.lead
    real = dict(zip(possible, map(float, changes), strict=True))
    return [Cut(edge, real.get(edge)) for edge in edges]


def tried(
    model: Model, ids: Sequence[int], circuit: Circuit, instead: dict[str, np.ndarray]
) -> Trial:
    """A circuit on another sentence, of the same length or shorter."""
    first, second = ranked(model.graph(ids).values["logits"][len(ids) - 1], 2)
    alone = Case(model, ids, first, second, instead).logits([circuit.edges])[0]
    return Trial(list(ids), first, int(np.argmax(alone)))


# --- other sentences ------------------------------------------------------------------------


def _without(
    model: Model, texts: Sequence[Sequence[int]], target: int, rival: int
) -> Sequence[Sequence[int]]:
    """The sentences of equal length after which the rival leads; all, if these are few."""
    graph, tokens = model.graph(texts[0]), np.array(texts, dtype=np.float64)[:, :, None]
    logits = filled(graph, {"tokens": tokens})["logits"][:, -1]  # [n_texts, d_vocab]
    found = [texts[k] for k in np.flatnonzero(logits[:, target] < logits[:, rival]).tolist()]
    return found if len(found) >= FEWEST else texts


def others(loaded: Loaded, given: Sequence[Sequence[int]] = ()) -> list[list[int]]:
    """Other sentences of the prompt's length, the beginnings of longer ones: given ones, or of the
    workbook's own texts, or else random words after the prompt's first. Each is there once, and the
    prompt is not."""
    wanted, n = N_TRIED + N_DRAWN, len(loaded.ids)
    module = None if formats.means(loaded.name) else workbooks.find(loaded.name)
    if given:
        texts = [list(ids[:n]) for ids in given if len(ids) >= n]
    elif module is not None and hasattr(module, "fresh"):
        texts = [list(text.ids[:n]) for text in module.fresh() if len(text.ids) >= n]
    else:
        drawn = np.random.default_rng(SEED).integers(0, loaded.model.spec.d_vocab, (wanted, n))
        drawn[:, 0] = loaded.ids[0]
        texts = drawn.tolist()
    found = dict.fromkeys(map(tuple, texts))
    found.pop(tuple(loaded.ids), None)
    return [list(ids) for ids in found][:wanted]
