"""superposition: five features in two numbers, and a sparse autoencoder that recovers them.

A model has more features than dimensions, so features share dimensions, at angles. Look at the
arrows on Toy model, at how many of them a plane holds on Sparsity, at how much room larger spaces
have, and at Autoencoder, which finds the features from the two numbers alone. `learning` made the
weights.
"""

from collections.abc import Iterator

import numpy as np

from cellformer.engine.cells.functions import ABS, MAX, SQRT, SUMPRODUCT
from cellformer.engine.cells.rounding import NEAR
from cellformer.engine.learning.training import Progress
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.story import Story
from cellformer.workbooks.superposition import autoencoder, learning, room, sparsity, toy, trained
from cellformer.workbooks.superposition.autoencoder import FOUND
from cellformer.workbooks.superposition.examples import NAMES
from cellformer.workbooks.superposition.learning import (
    DECAYS,
    PENALTIES,
    PROBABILITIES,
    Learned,
    is_part,
    save,
)
from cellformer.workbooks.superposition.sparsity import TYPED
from cellformer.workbooks.superposition.trained import HELD

TOPIC, AFTER, LEVEL = "Inside a block", "fact-lookup", 2
TITLE = "superposition: more features than dimensions, and how to find them again"
SHEETS = ("Toy model", "Sparsity", "Room", "Autoencoder", "Examples", "Directions", "Trained")

__all__ = ["book", "figures", "is_part", "save", "train"]


def book() -> Book:
    """The workbook."""
    w = Workbook("superposition")
    for name in SHEETS:  # in the order in which they are read, whichever is made first
        w.book.sheet(name)
    learned = learning.load()
    toys, encoders = trained.add(w, learned)
    toy.add(w, learned)
    examples = sparsity.add(w, toys)
    room.add(w)
    autoencoder.add(w, encoders, examples)
    checks(w)
    return w.done(story(w))


def checks(w: Workbook) -> None:
    """Claims that hold for any entries on the models' sheets."""
    table, D, again, before = w["interference"], w["D"], w["again"], w["before"]
    n, n_latents = table.shape[0], D.shape[0]
    gaps = [ABS(again[k] - before[k]) for k in range(n)]
    turned = [ABS(table[i, j] - table[j, i]) for i in range(n) for j in range(i)]
    lengths = [ABS(SQRT(SUMPRODUCT(D[k, :], D[k, :])) - 1) for k in range(n_latents)]
    w.checks([
        ("h and the interference matrix give the same result", MAX(*gaps) < NEAR),
        ("any two features disturb each other equally", MAX(*turned) < NEAR),
        ("each latent writes a vector of length 1, to three decimals", MAX(*lengths) < 0.0005),
    ])  # fmt: skip


def story(w: Workbook) -> Story:
    """The start sheet's texts, and suggested edits with their computed effects."""
    found = w["found"]
    return Story(
        title=TITLE,
        source="Based on L. Erzegovesi, Embeddings and the Maps We Draw of Them (2026), section 2b, "
        "and M. Sinclair's slides; the model is from Elhage et al. 2022.",
        about=[
            "A language model needs more features than it has dimensions. So the model stores "
            "each feature as a direction, and the features share the model's numbers.",
            "Features that share numbers disturb each other a little. This sharing is called "
            "superposition.",
            "Why it matters: superposition makes most single numbers (neurons) of a model hard "
            "to read. Most numbers take part in many features.",
            "Each feature is spread over many numbers. So you must read directions instead of "
            "numbers, but first you must find these directions.",
            "Here is the smallest case, trained for this workbook: five features in two numbers. "
            "Rare features form a pentagon, 72 degrees apart.",
            "If all features are always present, the model keeps only two. Larger spaces have "
            "much more room for features.",
            "A sparse autoencoder sees only the two numbers. The autoencoder finds "
            f"{w.now(found):.0f} of the 5 features again (cosine {FOUND} or more).",
        ],
        look=[
            "On the sheet Toy model, type which features are present, and see the output. The "
            "picture shows each feature's arrow. You can also edit the weights.",
            "The sheet Sparsity shows how many features the model keeps, if features are more or "
            "less frequent and important. You can compare three trained models.",
            "The sheet Room shows how many random directions fit, by count and by formula. The "
            "sheet Autoencoder shows a model that finds the features again.",
            "The sheets Examples, Directions and Trained hold the data of the other sheets: "
            "every case, every random number and every trained model.",
        ],
        suggestions=[
            w.suggestion(
                "Type ‘0.6’: the feature ‘growth’ is now present, too. The arrow of ‘growth’ "
                "points the opposite way and disturbs ‘bank’. The output for ‘bank’ is "
                "{then:.2f}, not {now:.2f}.",
                {w["x"][NAMES.index("growth")]: 0.6},
                w["back"][0],
            ),
            w.suggestion(
                "Type ‘0.05’: features are now rarer. The two numbers hold {then:.0f} features, "
                "not {now:.0f}.",
                {w["p"]: 0.05},
                w["held_by"][TYPED],
            ),
            w.suggestion(
                "Type ‘0.03’, a small penalty for active latents: the autoencoder finds {then:.0f} features, not {now:.0f}.",
                {w["penalty"]: 0.03},
                found,
            ),
        ],
    )


def train(seed: int, steps: int | None = None) -> Iterator[Progress | Learned]:
    """Each step's progress and, last, all that is trained."""
    return learning.learn(seed, steps or learning.STEPS)


def figures(learned: Learned) -> list[tuple[str, str]]:
    """The number of features that each toy model holds, and the number that each autoencoder
    finds."""
    lengths = np.linalg.norm(learned.W, axis=2)  # [decays, probabilities, features]
    rows = [
        (
            f"features kept at importance {decay}, by probability",
            ", ".join(f"{p}: {n}" for p, n in zip(PROBABILITIES, counts, strict=True)),
        )
        for decay, counts in zip(DECAYS, (lengths > HELD).sum(-1), strict=True)
    ]
    return rows + [
        (f"features found, penalty {penalty}", f"{(best >= FOUND).sum()} of {len(best)}")
        for penalty, best in zip(PENALTIES, learning.cosines(learned).max(1), strict=True)
    ]
