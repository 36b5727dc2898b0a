"""Generation, one token at a time, computing one new row of every block.

The existing rows are the KV cache: under a causal mask no later token changes them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from cellformer.engine.cells.access import Rect
from cellformer.engine.cells.arguments import explained, explained_class
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.evaluation import evaluate
from cellformer.engine.cells.finite import check_cells
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.values import is_whole
from cellformer.engine.models.answering import Rules
from cellformer.engine.models.choosing import GREEDY, Sampling
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.model import Model
from cellformer.engine.models.spec import CLASSES, TwoStackSpec
from cellformer.engine.text.chat import Chat

EMPTY = 0  # stands where an encoder's prompt has no token; nothing attends to it


@explained_class
@dataclass(frozen=True)
class Passage:
    """A prompt and its continuation, with the sampling that chose it; or an encoder's padded
    sentences.

    >>> model = cf.load("cat-sat")
    >>> words = cf.passage(model, model.vocabulary.encode("the cat"), n_tokens=4)
    >>> words
    <Passage of 4 tokens, 2 of them from the prompt>
    >>> words.ids[:2]
    [0, 1]
    """

    ids: list[int]  # [n_tokens]
    n_prompt: int
    sampling: Sampling
    numbers: np.ndarray  # [n_tokens + 1], the random number that chooses the token of each position
    text_length: int = 0  # characters that a sentence typed in its place may have; 0: see `prompt`
    second: tuple[int, ...] = ()  # a sentence encoder's other sentence
    chat: Chat | None = None  # the conversation that the prompt is
    n_source: int = 0  # of an encoder-decoder: the positions of its source sentence, empty ones too

    def __repr__(self) -> str:
        return f"<Passage of {len(self.ids)} tokens, {self.n_prompt} of them from the prompt>"

    @property
    def prompts(self) -> list[list[int]]:
        """The given texts: the prompt without its continuation, and the second sentence."""
        return [*filter(None, (self.ids[: self.n_prompt], list(self.second)))]


@dataclass(frozen=True)
class Step:
    """One generated token, its cells, and the cells of a full pass of the same length."""

    token: int
    n_cells: int
    n_full: int


class Rows:
    """The values of a graph whose token rows are computed one after another."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.values = {name: array.copy() for name, array in graph.inputs.items()}
        for block in graph:
            if block.op:
                self.values[block.name] = np.full(block.shape, block.op.blank)

    @np.errstate(all="ignore")
    def compute(self, start: int, stop: int) -> int:
        """Compute rows [start, stop) of every block; returns the number of cells computed. Raises
        InputError for a cell that is not finite."""
        n_cells = 0
        for block in self.graph:
            if block.op:
                for rect in _rects(block, start, stop):
                    found = evaluate(block, rect, self.values)
                    check_cells(block, rect, found)
                    self.values[block.name][rect.slices] = found
                    n_cells += int(block.mask.seen(rect).sum()) if block.partial else rect.size
        return n_cells


def _rects(block: Block, start: int, stop: int) -> list[Rect]:
    """The cells of a block for tokens [start, stop); the whole block, once, if it has no token
    axis."""
    cols = (0, block.shape[1])
    if block.axes[0] != "token":
        return [block.whole] if start == 0 else []
    if block.partial:
        cols = block.mask.keys(start, stop)[0], block.mask.keys(stop - 1, stop)[1]
    return [Rect(start, stop, *cols)]


@explained
def generate(
    model: Model,
    ids: Sequence[int],
    n_tokens: int,
    sampling: Sampling = GREEDY,
    seed: int = 0,
    change: Callable[[Forward], Forward] = lambda graph: graph,
) -> Iterator[Step]:
    """The steps that continue a prompt's ids by `n_tokens` tokens, as `cf.generate` describes.
    Raises InputError."""
    if not (is_whole(n_tokens) and n_tokens >= 1):
        raise InputError(f"cannot generate {n_tokens!r} tokens; ask for at least 1")
    if model.spec.gives != "next word":
        what = "a classifier" if model.spec.gives in CLASSES else "an encoder"
        raise InputError(
            f"a {model.kind} model is {what} and cannot continue a text; use a decoder"
        )
    if not model.spec.causal:
        raise InputError(
            "a model without a causal mask cannot generate token by token; use a decoder"
        )
    check_room(model, len(ids), n_tokens)
    model.check_ids(ids)
    numbers = random_numbers(seed, len(ids) + n_tokens)
    graph = change(model.graph([*ids, *([ids[0]] * (n_tokens - 1))]))
    choose = partial(_chosen, model, sampling, len(ids) + n_tokens)
    return _steps(graph, list(ids), n_tokens, choose, numbers)


@explained
def passage(
    model: Model,
    ids: Sequence[int],
    n_tokens: int | None = None,
    sampling: Sampling = GREEDY,
    seed: int = 0,
    second: Sequence[int] = (),
    chat: Chat | None = None,
) -> Passage:
    """A prompt, continued to `n_tokens` tokens in total (default: not continued).

    An encoder's prompt is padded instead. `second` is the sentence that a sentence encoder compares
    it with (default: the same); `chat` is the conversation that the prompt is, if it is one. Raises
    InputError as `generate` does, and if `n_tokens` is below the prompt's length.

    >>> model = cf.load("dialogue-game")
    >>> words = cf.passage(model, model.vocabulary.encode("Pietro chiama"), n_tokens=5)
    >>> model.vocabulary.decode(words.ids)
    '<BOS> Pietro chiama 6 <SEP>'
    """
    if second and model.spec.gives != "sentence":
        raise InputError(
            f"a {model.kind} model is not a sentence encoder; leave out the second sentence"
        )
    longest = max(len(ids), len(second))
    n_tokens = longest if n_tokens is None else n_tokens
    more = _further(model, len(ids), longest, n_tokens)
    numbers = random_numbers(seed, n_tokens + 1)
    if model.spec.gives != "next word":
        places = [*ids, *[EMPTY] * more]
        model.check_ids(places)
        model.check_ids(second or ids)
        other = tuple(second or ids) if model.spec.gives == "sentence" else ()
        return Passage(places, len(ids), sampling, numbers, second=other)
    model.check_ids(ids)
    in_cells = replace(model, rules=model.rules.in_cells)  # as the cells of a passage choose
    steps = generate(in_cells, ids, more, sampling, seed) if more else ()
    tokens = [*ids, *(step.token for step in steps)]
    n_source = 0
    if isinstance(model.spec, TwoStackSpec):
        n_source = max(len(model.source), min(n_tokens, model.spec.n_source))
    return Passage(tokens, len(ids), sampling, numbers, chat=chat, n_source=n_source)


def padded(
    model: Model,
    ids: Sequence[int],
    n_tokens: int,
    sampling: Sampling = GREEDY,
    seed: int = 0,
    chat: Chat | None = None,
) -> Passage:
    """A prompt with room for `n_tokens` tokens in total: its last token again, where nothing sees
    what follows the prompt. Raises InputError as `passage` does."""
    model.check_ids(ids)
    more = _further(model, len(ids), len(ids), n_tokens)
    numbers = random_numbers(seed, n_tokens + 1)
    return Passage([*ids, *[ids[-1]] * more], len(ids), sampling, numbers, chat=chat)


def _further(model: Model, n_given: int, longest: int, n_tokens: int) -> int:
    """The number of tokens after the given ones. Raises InputError for an impossible total."""
    if not (is_whole(n_tokens) and n_tokens >= longest):
        raise InputError(
            f"the prompt alone has {longest} tokens, more than the total of {n_tokens!r}; give a "
            f"total of at least {longest}"
        )
    if more := n_tokens - n_given:
        check_room(model, n_given, more)
    return more


def random_numbers(seed: int, n: int) -> np.ndarray:
    """The first n random numbers in [0, 1) of a seed. Raises InputError for an invalid seed."""
    if not (is_whole(seed) and seed >= 0):
        raise InputError(f"the random seed is {seed!r}; it must be a whole number, 0 or more")
    return np.random.default_rng(seed).random(n)


def check_room(model: Model, n_prompt: int, more: int) -> None:
    """Raise InputError if a prompt and its continuation exceed the context."""
    room = model.spec.n_ctx - n_prompt
    if more > room:
        fits = f"ask for {room}" if room > 0 else "give a shorter prompt"
        raise InputError(
            f"the prompt has {n_prompt} tokens and you ask for {more} more, but the model reads "
            f"at most {model.spec.n_ctx}; {fits}"
        )


def _chosen(
    model: Model, sampling: Sampling, n_tokens: int, logits: np.ndarray, r: float, so_far: list[int]
) -> int:
    """The token that comes after those so far, in a text of `n_tokens`: of all that the model's
    rules allow, if it has any."""
    if model.rules == Rules():
        return sampling.choose(logits, r, so_far)
    is_last = len(so_far) == n_tokens - 1
    words = model.rules.allowed(len(logits), so_far, model.source, model.vocabulary.ends, is_last)
    before = np.flatnonzero(np.isin(words, so_far)).tolist()
    return int(words[sampling.choose(logits[words], r, before)])


Choose = Callable[[np.ndarray, float, list[int]], int]  # of logits, a number, the ids so far


def _steps(
    graph: Forward, ids: list[int], n_tokens: int, choose: Choose, numbers: np.ndarray
) -> Iterator[Step]:
    last = len(ids) + n_tokens - 1  # the last token is chosen, and nothing is computed for it
    rows = Rows(graph)
    start, n_full = 0, 0
    for stop in range(len(ids), last + 1):
        n_cells = rows.compute(start, stop)
        n_full += n_cells
        so_far = rows.values["tokens"][:stop, 0].astype(int).tolist()
        token = choose(rows.values["logits"][stop - 1], float(numbers[stop]), so_far)
        yield Step(token, n_cells, n_full)
        if stop < last:
            rows.values["tokens"][stop, 0] = token
        start = stop
