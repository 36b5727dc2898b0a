"""The behaviour of each head on a text of random words that comes twice.

On such a text nothing but order and repetition can be seen, so a high score names a head's kind
(Olsson et al. 2022, "In-context learning and induction heads"; duplicates: Wang et al. 2023,
section 3.1). Entropy and distance are of the same text.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cellformer.engine.cells.batch import filled
from cellformer.engine.cells.errors import InputError
from cellformer.engine.models.model import Model
from cellformer.engine.studies import scores
from cellformer.engine.studies.part_names import said
from cellformer.engine.text.tokenizer import mask_of

SEED, N_TEXTS, LONGEST = 0, 4, 20  # of the words before they are repeated


@dataclass(frozen=True)
class Habits:
    """The mean attention that a head gives to each kind of token."""

    head: Annotated[str, "its name", said]
    previous: Annotated[float, "attention to the previous token", ".3f"]
    duplicate: Annotated[float, "attention of a repeated word to its earlier copy", ".3f"]
    induction: Annotated[
        float, "attention of a repeated word to the word after its earlier copy", ".3f"
    ]
    entropy: Annotated[
        float, "entropy of the head's attention, in nats; 0: all on one token", ".3f"
    ]
    distance: Annotated[float, "mean distance to the attended tokens, in tokens", ".3f"]


def repeated(model: Model) -> tuple[np.ndarray, int]:
    """Texts of different random words, each said twice: ids [N_TEXTS, n_tokens], and how many words
    are repeated. A begin-of-text token comes first, if there is one. Raises InputError for a
    context or a vocabulary that is too small."""
    vocabulary, spec = model.vocabulary, model.spec
    others = {vocabulary.begin, *vocabulary.ends, mask_of(vocabulary), spec.first_position - 1}
    words = [i for i in range(spec.d_vocab) if i not in others]
    first = [] if vocabulary.begin is None else [vocabulary.begin]
    n = min(LONGEST, (spec.n_ctx - len(first)) // 2, len(words))
    if n < 2:
        raise InputError(
            "the test of the heads repeats two or more different words, but the model's context is "
            "too short or its vocabulary is too small; choose a larger model"
        )
    rng = np.random.default_rng(SEED)
    texts = [rng.permutation(words)[:n] for _ in range(N_TEXTS)]
    return np.array([[*first, *text, *text] for text in texts]), n


def habits(model: Model) -> list[Habits]:
    """The habits of every head, in the order of the forward pass. Raises InputError as
    `repeated` does."""
    model.check_one_stack("the search for induction heads")
    ids, n = repeated(model)
    graph = model.graph(ids[0].tolist())
    values = filled(graph, {"tokens": ids[:, :, None].astype(np.float64)})
    return [_habits(head, values[f"{head}.pattern"], n) for head in scores.heads(graph)]


def _habits(head: str, pattern: np.ndarray, n: int) -> Habits:
    """The habits of one head, from its patterns [N_TEXTS, n_tokens, n_tokens]."""
    places = np.arange(pattern.shape[-1])
    again = places[-n:]  # the words as they are repeated
    apart = np.abs(places[:, None] - places)  # [n_tokens, n_tokens]
    logs = np.log(np.where(pattern > 0, pattern, 1.0))
    return Habits(
        head,
        previous=float(pattern[:, places[1:], places[:-1]].mean()),
        duplicate=float(pattern[:, again, again - n].mean()),
        induction=float(pattern[:, again, again - n + 1].mean()),
        entropy=float(-(pattern * logs).sum(-1).mean()) + 0.0,
        distance=float((pattern * apart).sum(-1).mean()),
    )
