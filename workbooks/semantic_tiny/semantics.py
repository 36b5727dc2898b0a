"""semantic-tiny: forty words with a meaning placed by hand, and what a model learns about it.

Six axes place every word. This table generates true sentences, definitions and comparisons; a small
decoder is trained on the sentences and never sees the table. Do its word vectors find the axes
again? The same model is trained from two initial embeddings, wide (1.0) and narrow (0.02), and
measured beside the table itself and beside untrained vectors.

`python -m cellformer.workbooks.semantic_tiny.semantics` trains, measures and writes models/semantic-tiny
again.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cellformer.engine import Model, ModelSpec, WordList
from cellformer.engine.learning import decoders
from cellformer.engine.learning.decoders import Decoder
from cellformer.engine.learning.recipe import IGNORED, Recipe
from cellformer.engine.learning.training import Progress, trained
from cellformer.engine.learning.training import train as train_model
from cellformer.engine.models import checkpoint

FOLDER = Path(__file__).parent.parent / "models" / "semantic-tiny"
SCALES = (1.0, 0.02)  # standard deviation of the initial word vectors
SEEDS = (0, 1, 2)

# --- the table ----------------------------------------------------------------------------

AXES = ("gender", "age", "power", "size", "animacy", "mobility")
ADJECTIVES = {  # for a coordinate below 0, and above
    "gender": ("female", "male"),
    "age": ("young", "adult"),
    "power": ("weak", "strong"),
    "size": ("small", "big"),
    "animacy": ("inanimate", "animate"),
    "mobility": ("still", "mobile"),
}
COMPARATIVES = {  # for the lower coordinate, and the higher
    "age": ("younger", "older"),
    "power": ("weaker", "stronger"),
    "size": ("smaller", "bigger"),
    "mobility": ("slower", "faster"),
}
_ROWS = """
king       1    1    1    0    1   0.5
queen     -1    1    1    0    1   0.5
man        1    0.5  0.5  0    1   0.5
woman     -1    0.5  0.5  0    1   0.5
boy        1   -0.5 -0.5 -0.5  1   0.5
girl      -1   -0.5 -0.5 -0.5  1   0.5
prince     1   -0.5  0.5 -0.5  1   0.5
princess  -1   -0.5  0.5 -0.5  1   0.5
knight     1    0.5  1    0    1   1
witch     -1    1    0.5  0    1   0.5
giant      1    1    1    1    1   0.5
child      0   -0.5 -0.5 -0.5  1   0.5
baby       0   -1   -1   -0.5  1   0
elder      0    1   -0.5  0    1   0.5

lion       1    0.5  1    0.5  1   1
lioness   -1    0.5  1    0.5  1   1
cub        0   -0.5 -0.5 -0.5  1   1
stag       1    0.5  0.5  0.5  1   1
doe       -1    0.5  0.5  0.5  1   1
fawn       0   -0.5 -1   -0.5  1   1
bull       1    0.5  1    1    1   0.5
cow       -1    0.5  0.5  1    1   0.5
calf       0   -1   -0.5  0.5  1   0.5
horse      0    0.5  1    1    1   1
mouse      0    0.5 -1   -1    1   1
eagle      0    0.5  0.5 -0.5  1   1
tortoise   0    1    0.5 -0.5  1   0.5

mountain   0    0    1    1   -1  -1
castle     0    0    1    0.5 -1  -1
tower      0    0    0.5  1   -1  -1
rock       0    0    0.5  0.5 -1  -1
pebble     0    0    0   -1   -1  -1
coin       0    0    0.5 -1   -1  -1
feather    0    0   -1   -1   -1   0.5
sword      0    0    1   -0.5 -1   0
arrow      0    0    0.5 -0.5 -1   1
cart       0    0    0    0.5 -1   0.5
boat       0    0   -0.5  0.5 -1   0.5
ship       0    0    0.5  1   -1   0.5
river      0    0    1    1   -1   1
"""
_SPLIT = [row.split() for row in _ROWS.splitlines() if row]
CONTENT = tuple(word for word, *_ in _SPLIT)
KINDS = {"people": (0, 14), "animals": (14, 27), "things": (27, 40)}  # where each kind stands
# A word's coordinates, from -1 to 1; 0: the axis does not say anything of it.
TABLE = np.array([row for _, *row in _SPLIT], dtype=np.float64)  # [n_words, n_axes]

# a - b + c -> d, exact in the table
ANALOGIES = (
    ("king", "man", "woman", "queen"),
    ("prince", "man", "woman", "princess"),
    ("boy", "man", "woman", "girl"),
    ("lion", "man", "woman", "lioness"),
    ("stag", "man", "woman", "doe"),
)

# --- the corpus ---------------------------------------------------------------------------

PAD, BOS, EOS = MARKS = ("<PAD>", "<BOS>", "<EOS>")
WORDS = (
    MARKS
    + CONTENT
    + ("is", "than")
    + tuple(word for pair in ADJECTIVES.values() for word in pair)
    + tuple(word for pair in COMPARATIVES.values() for word in pair)
)
ID = {word: i for i, word in enumerate(WORDS)}
ROWS = [ID[word] for word in CONTENT]  # where W_E keeps the content words
LENGTH = 10  # of the longest sentence: <BOS>, a word, is, six adjectives, <EOS>


def definitions() -> list[str]:
    """Each word with an adjective for every axis on which it has a value."""

    def said(row: np.ndarray) -> str:
        return " ".join(
            ADJECTIVES[axis][int(x > 0)] for axis, x in zip(AXES, row, strict=True) if x
        )

    return [f"{word} is {said(row)}" for word, row in zip(CONTENT, TABLE, strict=True)]


def comparisons() -> list[str]:
    """Every pair of words that differ on an axis, in both orders."""
    found = []
    for axis, names in COMPARATIVES.items():
        column = dict(zip(CONTENT, TABLE[:, AXES.index(axis)], strict=True))
        there = [(word, x) for word, x in column.items() if x]
        found += [
            f"{a} is {names[int(x > y)]} than {b}" for a, x in there for b, y in there if x != y
        ]
    return found


def encoded(texts: list[str]) -> np.ndarray:
    """The ids of sentences between <BOS> and <EOS>, then IGNORED: int64 [n_sentences, LENGTH]."""
    ids = np.full((len(texts), LENGTH), IGNORED, dtype=np.int64)
    for row, text in zip(ids, texts, strict=True):
        words = [BOS, *text.split(), EOS]
        row[: len(words)] = [ID[word] for word in words]
    return ids


DEFINITIONS = encoded(definitions())  # [n_definitions, LENGTH]
COMPARISONS = encoded(comparisons())  # [n_comparisons, LENGTH]


def sentences(rng: np.random.Generator, n: int) -> np.ndarray:
    """Ids of n random sentences, as many definitions as comparisons on average: [n, LENGTH]."""
    defined = DEFINITIONS[rng.integers(len(DEFINITIONS), size=n)]
    compared = COMPARISONS[rng.integers(len(COMPARISONS), size=n)]
    return np.where(rng.random((n, 1)) < 0.5, defined, compared)


def loss_floor() -> float:
    """The lowest possible loss in nats per predicted token, of a model that knows the corpus
    exactly.

    The entropy of a sentence (all are different) over the mean number of tokens after <BOS>.
    """
    halves = (DEFINITIONS, COMPARISONS)
    entropy = np.log(2) + np.mean([np.log(len(ids)) for ids in halves])
    tokens = np.mean([(ids[:, 1:] != IGNORED).sum(1).mean() for ids in halves])
    return float(entropy / tokens)


# --- the model ----------------------------------------------------------------------------


def decoder() -> Decoder:
    """A GPT-2 decoder as small as the essay's: 2 layers, 2 heads, vectors of 32 numbers."""
    return decoders.new(
        "gpt2",
        d_vocab=len(WORDS),
        n_ctx=LENGTH - 1,
        d_model=32,
        n_layers=2,
        n_heads=2,
        d_mlp=128,
    )


def spec() -> ModelSpec:
    """Its sizes."""
    return decoder().spec


def recipe(scale: float) -> Recipe:
    """The training recipe, with word vectors of this initial standard deviation."""
    return Recipe(steps=8000, batch=128, embed_scale=scale)


def train(scale: float, seed: int) -> Iterator[Progress | dict[str, np.ndarray]]:
    """Yield each step's progress and, last, the trained weights by name."""
    return train_model(decoder(), recipe(scale), sentences, seed)


def model(weights: dict[str, np.ndarray]) -> Model:
    """The model with these weights, which is saved in GPT-2's format."""
    return trained(decoder(), weights, WordList(WORDS))


# --- measures of word vectors -------------------------------------------------------------

# Ridge penalties to choose from, in units of a column's sum of squared deviations, on average.
PENALTIES = 10.0 ** np.arange(-6, 4)  # [n_penalties]


def variance_shares(vectors: np.ndarray) -> tuple[float, float]:
    """Share of the variance of [n_words, d] in the first 2 and the first 6 principal components."""
    s = np.linalg.svd(vectors - vectors.mean(0), compute_uv=False)
    shares = np.cumsum(s**2) / np.sum(s**2)
    return float(shares[:2][-1]), float(shares[:6][-1])


class R2(NamedTuple):
    """Share of an axis's variance that a linear probe of the vectors explains."""

    held_out: float  # every word predicted by a probe that has not seen it; below 0: not at all
    in_sample: float  # least squares on the words it was fitted to; 32 numbers fit 40 words anyhow


def probe_r2(vectors: np.ndarray, axis: np.ndarray) -> R2:
    """R² of a linear probe for an axis's values [n_words] on vectors [n_words, d].

    Held out is ridge regression, leave-one-out. The penalty is chosen separately for every held-out
    word, by leave-one-out among the other words: the smallest squared error in PENALTIES.
    """
    n = len(axis)
    penalties = PENALTIES * np.mean(np.sum((vectors - vectors.mean(0)) ** 2, 0))
    predicted = np.empty(n)
    for i in range(n):
        rest = np.arange(n) != i
        errors = held_out_errors(vectors[rest], axis[rest], penalties)  # [n_penalties, n - 1]
        best = penalties[np.argmin(np.sum(errors**2, 1))]
        slope, level = ridge(vectors[rest], axis[rest], best)
        predicted[i] = vectors[i] @ slope + level
    slope, level = ridge(vectors, axis, 0.0)
    return R2(_r2(axis, predicted), _r2(axis, vectors @ slope + level))


def ridge(x: np.ndarray, y: np.ndarray, penalty: float) -> tuple[np.ndarray, float]:
    """Slope [d] and intercept of y [n] on x [n, d], the intercept not penalized (Hoerl & Kennard
    1970).

    With penalty 0, least squares; of many solutions the shortest.
    """
    U, s, Vt = np.linalg.svd(x - x.mean(0), full_matrices=False)
    kept = s > s[0] * 1e-10  # a direction in which the words do not differ says nothing
    slope = Vt[kept].T @ (s[kept] / (s[kept] ** 2 + penalty) * (U[:, kept].T @ y))
    return slope, float(y.mean() - x.mean(0) @ slope)


def held_out_errors(x: np.ndarray, y: np.ndarray, penalties: np.ndarray) -> np.ndarray:
    """Each point's error in the ridge fit to the others, for each penalty: [n_penalties, n].

    Nothing is refitted: a point's held-out error is its error in the fit to all, over 1 minus its
    leverage (Allen's PRESS, 1974).
    """
    U, s, _ = np.linalg.svd(x - x.mean(0), full_matrices=False)  # U: [n, k], s: [k]
    shrunk = s**2 / (s**2 + penalties[:, None])  # [n_penalties, k]
    fitted = y.mean() + (shrunk * (U.T @ y)) @ U.T  # [n_penalties, n]
    leverage = 1 / len(y) + shrunk @ (U**2).T  # [n_penalties, n]
    return np.asarray((y - fitted) / (1 - leverage))


def _r2(y: np.ndarray, predicted: np.ndarray) -> float:
    return float(1 - np.sum((y - predicted) ** 2) / np.sum((y - y.mean()) ** 2))


def analogy(vectors: np.ndarray, a: str, b: str, c: str) -> list[tuple[str, float]]:
    """The five content words nearest to a - b + c by cosine, but a, b and c, with their cosines.

    The vector offset method (Mikolov, Yih & Zweig 2013, section 4) on `vectors` [n_words, d] in the
    order of CONTENT, as they are: neither centred nor, as in the paper, brought to one length.
    """
    at = {word: vectors[i] for i, word in enumerate(CONTENT)}
    target = at[a] - at[b] + at[c]  # [d]
    cosines = {
        word: float(v @ target / (np.linalg.norm(v) * np.linalg.norm(target)))
        for word, v in at.items()
        if word not in (a, b, c)
    }
    return sorted(cosines.items(), key=lambda item: -item[1])[:5]


# --- the report ---------------------------------------------------------------------------


def row(name: str, seed: int | None, vectors: np.ndarray, loss: float | None) -> dict[str, Any]:
    """Every measure of word vectors [n_words, d], rounded to six digits after the point."""
    first_2, first_6 = variance_shares(vectors)
    probes = {axis: probe_r2(vectors, TABLE[:, k]) for k, axis in enumerate(AXES)}
    return {
        "vectors": name,
        "seed": seed,
        "loss": loss if loss is None else round(loss, 6),
        "share_of_2": round(first_2, 6),
        "share_of_6": round(first_6, 6),
        "r2": {
            axis: {k: round(v, 6) for k, v in r2._asdict().items()} for axis, r2 in probes.items()
        },
        "analogies": [answer(vectors, *asked) for asked in ANALOGIES],
    }


def answer(vectors: np.ndarray, a: str, b: str, c: str, wanted: str) -> dict[str, Any]:
    """The answer of word vectors [n_words, d] to an analogy, and whether it is right."""
    nearest = analogy(vectors, a, b, c)
    return {
        "asked": f"{a} - {b} + {c}",
        "wanted": wanted,
        "nearest": {word: round(cosine, 6) for word, cosine in nearest},
        "right": nearest[0][0] == wanted,
    }


class Trained(NamedTuple):
    """A finished run: its weights, and the mean loss of its last 100 steps, in nats per token."""

    weights: dict[str, np.ndarray]
    loss: float


def run(scale: float, seed: int) -> Trained:
    """Train to the end."""
    losses: list[float] = []
    weights: dict[str, np.ndarray] = {}
    for found in train(scale, seed):
        if isinstance(found, Progress):
            losses.append(found.loss)
        else:
            weights = found
    return Trained(weights, float(np.mean(losses[-100:])))


def report(runs: dict[tuple[float, int], Trained]) -> dict[str, Any]:
    """All rows: the table, vectors before training, and vectors of the runs by (scale, seed)."""
    rows = [row("hand-wired", None, TABLE, None)]
    for seed in SEEDS:
        vectors = decoder().initial(recipe(1.0), np.random.default_rng(seed))["W_E"][ROWS]
        rows.append(row("untrained", seed, vectors, None))
    for (scale, seed), found in runs.items():
        vectors = found.weights["W_E"][ROWS].astype(np.float64)
        rows.append(row(f"learned, scale {scale}", seed, vectors, found.loss))
    return {"loss_floor": round(loss_floor(), 6), "rows": rows}


def remake(folder: Path) -> None:
    """Train every scale and seed, and write report.json and the first seed's checkpoints."""
    runs = {(scale, seed): run(scale, seed) for scale in SCALES for seed in SEEDS}
    for scale in SCALES:
        checkpoint.save(model(runs[scale, SEEDS[0]].weights), folder / f"scale-{scale}")
    (folder / "report.json").write_text(json.dumps(report(runs), indent=2) + "\n")


if __name__ == "__main__":
    remake(FOLDER)
