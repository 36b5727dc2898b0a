"""The sheet Rules: what the model has learnt of the grammar, and the essay's figures beside ours.

The model reads stories that are new to it. At each place where a rule decides, the words that the
grammar allows are known: their probabilities add up to the model's share.
"""

from collections.abc import Iterator, Sequence
from math import log

import numpy as np

from cellformer.engine import Model
from cellformer.engine.learning import in_cells
from cellformer.engine.learning.decoders import Decoder
from cellformer.exporters.model import layout
from cellformer.exporters.model.model_book import ModelBook
from cellformer.workbooks.stories import grammar

SHEET = "Rules"
PURPOSE = "which rules of the grammar the model has learnt"
ABOUT = (
    "The model has read random stories, and never a rule. These numbers are measured on 200 new "
    "stories, with the model as built.",
    "At each place where a rule decides, the grammar allows certain words. The sheet adds the "
    "model’s probabilities of these words. At 100 %, the model keeps the rule.",
)
LIMITS = (
    "No rule says that a dog is an animal, or that the sky is above. The model has learnt which "
    "words follow which, and nothing else.",
    "‘big’ and ‘small’, or ‘mom’ and ‘mother’, are the same for the grammar. Their vectors "
    "still differ by chance: the first weights and the stories were random.",
)
N_STORIES, SEED = 200, 10**9  # of new stories
DIGITS = 4
VERB, GOAL, BEGIN, PRONOUN, BACK, DEED, SAME = RULES = (
    "the hero can do it (a fish does not run)",
    "the place suits the verb (one swims in a river or the sea)",
    "the second sentence begins with ‘so’ after ‘happy’ or ‘good’, with ‘but’ after ‘sad’ or ‘bad’",
    "the pronoun fits the hero (‘she’ or ‘they’ for a girl)",
    "the companion of the first sentence comes back",
    "the second verb fits the mood (sad heroes cry or look)",
    "the place of the first sentence comes back",
)


def rule_of(shares: grammar.Shares, second: bool) -> str:
    """The rule that decides about a word of the first or second sentence; "" for none."""
    words = set(shares)
    if words <= set(grammar.GROUPS["verbs"]):
        return DEED if second else VERB
    if words <= {"so", "but"}:
        return BEGIN
    if "they" in words:
        return PRONOUN
    if len(words) > 1:
        return GOAL if words & set(grammar.LOOKS) else ""
    (word,) = words
    return BACK if word in grammar.HEROES else SAME if second and word in grammar.LOOKS else ""


def places(words: Sequence[str]) -> Iterator[tuple[int, str, list[int]]]:
    """The words of a story about which a rule decides: the number of words before, the rule, the
    ids that it allows."""
    second = False
    for k, shares in enumerate(grammar.told(words)):
        if rule := rule_of(shares, second):
            yield k, rule, [grammar.ID[word] for word in shares]
        second |= words[k] == grammar.STOP


def measured(model: Model, ids: np.ndarray) -> tuple[float, dict[str, float]]:
    """The loss on stories [n, LENGTH], and the mean probability of the words that each rule allows."""
    logits = in_cells.reader(Decoder.of(model), model.weights)(np.maximum(ids[:, :-1], 0))
    exps = np.exp(logits - logits.max(axis=-1, keepdims=True))
    probs = exps / exps.sum(axis=-1, keepdims=True)  # [n, LENGTH - 1, d_vocab]
    kept: dict[str, list[float]] = {rule: [] for rule in RULES}
    losses: list[float] = []
    for row, said in zip(ids, probs, strict=True):
        words = grammar.words_of(row)
        losses += [-log(said[k, grammar.ID[word]]) for k, word in enumerate(words)]
        for k, rule, allowed in places(words):
            kept[rule].append(float(said[k, allowed].sum()))
    return float(np.mean(losses)), {rule: float(np.mean(x)) for rule, x in kept.items()}


def unread() -> np.ndarray:
    """Stories that no training draws: [N_STORIES, LENGTH]."""
    return grammar.sentences(np.random.default_rng(SEED), N_STORIES)


def figures(model: Model) -> list[tuple[str, str]]:
    """The share of each rule that a model keeps, on new stories."""
    return [(rule, f"{share:.1%}") for rule, share in measured(model, unread())[1].items()]


def add(book: ModelBook) -> None:
    """Add the losses, and each rule's share."""
    page = layout.page(book, SHEET, PURPOSE, *ABOUT, widths={0: 82, 1: 11, 2: 11})
    ids = unread()
    loss, kept = measured(book.model, ids)
    losses = {
        "the model": loss,
        "the lowest possible loss": grammar.floor(ids),
        "a guess among all words": log(len(grammar.WORDS)),
    }
    page.heading("Loss in nats per word (constants)")
    told = ((name, round(value, DIGITS)) for name, value in losses.items())
    page.sheet.lines(page.cursor, told, {0: "text", 1: "basis"})
    page.cursor += len(losses)
    page.heading("The probability of all words that a rule allows (constants)")
    page.heads_at((page.cursor, 1), "kept", "broken", style="head")
    for row, (rule, share) in enumerate(kept.items(), page.cursor + 1):
        page.sheet.put(row, 0, rule)
        shown = round(share, DIGITS)
        page.sheet.across(row, 1, (shown, 1 - shown), "constant percent")
    page.cursor += len(kept) + 1
    page.heading("What the grammar does not know", *LIMITS)
