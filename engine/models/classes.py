"""Classifiers: models that score the labels of a text, of one of its tokens, or of an image,
instead of words.

(Devlin et al. 2019, "BERT", sections 4.1 and 5.3.) The labels are those of `id2label` in the
config. An encoder's logits of a text are those of its first token, which stands for it, or of the
mean of all tokens; a decoder's those of its last token that is no padding (Radford et al. 2018,
section 3.2), without a bias.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from cellformer.engine.cells.errors import InputError
from cellformer.engine.models.foreign import Config
from cellformer.engine.models.spec import CLASSES, Gives, ModelSpec
from cellformer.engine.text.tokenizer import WordList

SCORES = "score.weight"  # of a decoder's labels

TASKS: dict[str, Gives] = {
    **dict(zip(("ForSequenceClassification", "ForTokenClassification"), CLASSES, strict=True)),
    "ForImageClassification": "class",
}


@dataclass(frozen=True, repr=False)
class Labels(WordList):
    """The labels of a classifier: texts of any kind."""

    ONE: ClassVar = "a label is a text"

    def encode(self, text: str, special: bool = True) -> list[int]:
        return [self._id(text)]

    def _whole(self, word: str) -> bool:
        return bool(word)


def task(architectures: Sequence[str]) -> Gives | None:
    """The task of a classifier among the `architectures` of a config; None: there is none."""
    pairs = ((name, ending) for name in architectures for ending in TASKS)
    return next((TASKS[ending] for name, ending in pairs if name.endswith(ending)), None)


def readout(c: Config, gives: Gives) -> dict[str, Any]:
    """The fields of ModelSpec for a classifier. Raises InputError for one that does not choose one
    label."""
    c.refuse(
        "problem_type",
        "single_label_classification",
        "cellformer reads only classifiers that choose one label",
    )
    n = len(labels(c))
    if n < 2:
        raise InputError(
            f"{c.path} names fewer than two labels, so the model gives a number and no class; "
            "choose a classifier with two or more labels"
        )
    return {"gives": gives, "d_vocab_out": n, "tied": False}


def of_decoder(c: Config, spec: ModelSpec) -> ModelSpec:
    """The spec of a model; a decoder that scores the labels of a text gives a class."""
    if spec.gives != "next word" or task(c.listed("architectures", str)) != "class":
        return spec
    return replace(spec, **readout(c, "class"))


def outputs(c: Config, spec: ModelSpec) -> Labels | None:
    """The labels of a model, if it is a classifier."""
    return Labels(tuple(labels(c))) if spec.gives in CLASSES else None


def labels(c: Config) -> list[str]:
    """The labels of a config, in order: LABEL_0, LABEL_1, ... if it names none.

    Raises InputError for what is no numbered list.
    """
    named = c.get("id2label", dict, {})
    n = len(named) or c.get("num_labels", int, 2)
    found = [named.get(str(k), named.get(k)) if named else f"LABEL_{k}" for k in range(n)]
    if not all(isinstance(label, str) and label for label in found):
        raise InputError(
            f"{c.path}: id2label is not a list of labels with the numbers 0 to {n - 1}"
        )
    return [str(label) for label in found]
