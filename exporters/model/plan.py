"""Plan: how much of a model its workbook shows. Made once; everything that builds the workbook asks
it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from cellformer.engine.models.encoding import AXIS
from cellformer.engine.models.forward import EVERYTHING, ONE_TOKEN, SOURCE, Readout
from cellformer.engine.models.model import Model
from cellformer.engine.models.spec import CLASSES, Gives
from cellformer.engine.studies import addition
from cellformer.engine.studies.addition import Studies
from cellformer.engine.studies.forecast import MOST_CARRIED

MANY_WORDS = 2048  # above it, the logits of one token alone are shown


# the parts of Play, each after those that it reads, and the row that it begins in
AFTER_EVERY_TOKEN = {
    "sentence": 3,
    "text": 6,
    "tokens": 30,
    "settings": 22,
    "every word": 40,
    "expected": 7,
    "ranking": 9,
}
AFTER_LAST_TOKEN = {"sentence": 3, "tokens": 6, "looked at": 12, "ranking": 18, "text": 16}
OF_ONE_TOKEN = {"sentence": 3, "tokens": 6, "looked at": 12, "ranking": 18}
TOKEN_CLASSES = OF_ONE_TOKEN | {"looked at": 13}
TWO_SENTENCES = {
    "sentence": 3,
    "tokens": 6,
    "second sentence": 11,
    "second tokens": 14,
    "cosine": 20,
    "vectors": 24,
}
AFTER_SOURCE = {
    "source": 3,
    "source tokens": 6,
    "text": 13,
    "tokens": 37,
    "settings": 29,
    "every word": 47,
    "expected": 14,
    "ranking": 16,
}
AFTER_SOURCE_BY_ID = {
    "source": 3,
    "source tokens": 6,
    "tokens": 14,
    "looked at": 20,
    "ranking": 26,
}
AS_BUILT = {"sentence": 3, "tokens": 6}
AS_BUILT_OF_TWO = AS_BUILT | {"source tokens": 13}
LINES_OF_CHAT, LINES_OF_ANSWER = 4, 1  # more, of what is typed, and of what is answered


@dataclass(frozen=True)
class Limits:
    """The sizes above which a workbook is built differently."""

    words: int = MANY_WORDS  # of the vocabulary
    columns: int = 16_000  # of a table on one sheet, which ends at 16,384
    carried: int = MOST_CARRIED  # weights of a model that lies in its workbook as a file, too
    parts: int = 20_000  # of the scores of all heads; above it, of one head's
    rounded: int = 1_000_000  # weights that cells round, each with a formula beside it
    formulas: int = 1_000_000  # about 900 MB of LibreOffice, where each has a text of its own


LIMITS = Limits()


@dataclass(frozen=True)
class Plan:
    """The contents of a workbook, and how it shows them."""

    readout: Readout = EVERYTHING
    live: tuple[str, ...] = ()  # the parts that recompute; (): all
    by_hand: bool = False  # small enough that weights stand beside what they multiply
    continues: bool = True  # the sentence continues itself: the mask is causal
    gives: Gives = "next word"  # what the model is asked for
    studies: Studies = field(default_factory=dict)
    limits: Limits = LIMITS
    chat: bool = False  # what is typed is said to the model, in its own template
    layers: bool = True  # it has some; without, sheets about layers would be nearly empty
    checks: bool = (
        True  # the sheet Digest compares every range of formulas with its values as built
    )
    sources: bool = False  # an encoder reads a source sentence, which the decoder answers

    @cached_property
    def gradient_of(self) -> str:
        """The number that the backward pass differentiates; "": there is none."""
        return next(filter(None, (each.gradient_of for each in addition.of(self.studies))), "")

    @property
    def whole(self) -> bool:
        """Whether everything is shown: a decoder with a small vocabulary, all of it live."""
        return self.gives == "next word" and not self.readout.one_token and not self.live

    @property
    def ranks_every_token(self) -> bool:
        """Whether the next word is ranked, and chosen, after every token."""
        return self.whole

    @property
    def parts(self) -> Mapping[str, int]:
        """The parts of Play, each after those that it reads, with its first row."""
        if self.live:
            return AS_BUILT_OF_TWO if self.sources else AS_BUILT
        if self.sources:
            return AFTER_SOURCE if self.ranks_every_token else AFTER_SOURCE_BY_ID
        if self.gives == "sentence":
            return TWO_SENTENCES
        if self.gives == "token class":
            return TOKEN_CLASSES
        if self.gives in ("masked word", "class"):
            return OF_ONE_TOKEN
        found = AFTER_EVERY_TOKEN if self.ranks_every_token else AFTER_LAST_TOKEN
        return with_chat(found) if self.chat else found

    @property
    def rows_of_tokens(self) -> Mapping[str, int]:
        """The rows of Play that show the texts of tokens, by their axis."""
        below = 3 if self.ranks_every_token else 2
        found = {"token": self.parts["tokens"] + below}
        if "second tokens" in self.parts:
            found[AXIS] = self.parts["second tokens"] + below
        if "source tokens" in self.parts:
            found[SOURCE] = self.parts["source tokens"] + 2
        return found

    @property
    def explains(self) -> bool:
        """Whether it explains an answer: lens, attribution, the effect of switches."""
        return self.whole

    @property
    def colours_tables(self) -> bool:
        """Whether weights and activations are coloured about 0."""
        return self.whole

    @property
    def compares_blocks(self) -> bool:
        """Whether each block, and each text, is compared with its values as built."""
        return self.whole

    @property
    def read_back(self) -> bool:
        """Whether its edits can be read back from the file: with a small vocabulary, all of it
        live."""
        return self.readout.by_head and not self.live

    @property
    def shares_formulas(self) -> bool:
        """Whether equal formulas down a column are written once, for very many formulas."""
        return not self.whole

    @property
    def answers(self) -> bool:
        """Whether next words are ranked after one token only, the last of the typed ones."""
        return self.readout.one_token and not self.live and self.gives == "next word"

    @property
    def generates(self) -> bool:
        """Whether its tokens can follow from earlier ones: every token has logits."""
        return self.continues and not self.readout.one_token


WHOLE = Plan()


def with_chat(parts: Mapping[str, int]) -> Mapping[str, int]:
    """The parts of Play with room for a conversation: below it and below its answer, they begin
    lower."""
    lower = {
        part: top + LINES_OF_CHAT + LINES_OF_ANSWER * (top > parts["text"])
        for part, top in parts.items()
    }
    return lower | {"sentence": parts["sentence"]}


def for_model(
    model: Model, live: Sequence[str] = (), by_hand: bool = False, limits: Limits = LIMITS
) -> Plan:
    """The plan of a model's workbook; `live` names the parts that recompute."""
    gives, many = model.spec.gives, model.spec.d_vocab > limits.words
    readout = ONE_TOKEN if many else EVERYTHING
    if gives == "masked word" or gives in CLASSES:
        readout = Readout(one_token=True, by_head=not many)
    elif gives == "sentence":
        readout = Readout(one_token=False, by_head=not many)
    return Plan(
        readout,
        tuple(live),
        by_hand,
        model.spec.causal and gives == "next word",
        gives,
        limits=limits,
        layers=bool(model.spec.n_layers),
        sources=bool(model.read),
    )
