"""Both models as cells: one typed sentence, two forward passes, and what each reads of it.

The blocks of the Mamba begin with `mamba.`. Its hidden attention is the mean over its channels (see
`cellformer.engine.studies.hidden_attention`), and that of one channel.
"""

import numpy as np

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Expression, expression
from cellformer.engine.cells.functions import (
    AND,
    EXP,
    IF,
    IFERROR,
    INT,
    MATCH,
    MAX,
    MIN,
    SUM,
    SUMPRODUCT,
)
from cellformer.engine.models.architectures import decoder, mamba
from cellformer.engine.models.forward import Forward, Readout
from cellformer.engine.studies.hidden_attention import Recurrence, recurrences
from cellformer.exporters.compose.lookups import nth
from cellformer.workbooks.recurrence import learning
from cellformer.workbooks.recurrence.learning import MAMBA, MAMBA_SPEC, SPEC, TRANSFORMER
from cellformer.workbooks.recurrence.sentences import FIRST_FILLER, N_PEOPLE, N_WORDS, WORDS

TYPED = ("Joe", "rent", "Bob", "wages", *["then", "later"] * 3, "then", "Joe")
READER, CHANNEL = N_WORDS, 1  # the word whose reading is shown, and the channel; both from 1
HEADS = ("blocks.0.attn.h0", "blocks.1.attn.h0")
PATTERNS = {f"layer {n}": f"{head}.pattern" for n, head in enumerate(HEADS)}
FIRST = {TRANSFORMER: "", MAMBA: f"{MAMBA}."}  # what the names of a model's blocks begin with
ROW = (1, N_WORDS)
SQUARE = (N_WORDS, N_WORDS)


def build() -> Forward:
    """The graph of both passes over the typed sentence."""
    learned = learning.load()
    weights = {f"{FIRST[name]}{w}": x for name in FIRST for w, x in learned[name].items()}
    g = Forward(SPEC, weights, Readout(by_head=False))
    typed = g.input("typed", np.array([TYPED], dtype=object), kind="table")
    words = g.input("words", np.array([WORDS], dtype=object).T, kind="table")
    ids = [WORDS.index(word) for word in TYPED]
    decoder.forward(g, ids)
    other = g.at(MAMBA)
    other.spec = other.sizes = MAMBA_SPEC
    mamba.forward(other, ids)

    def place(_: int, t: int) -> Expression:
        """The id of a typed word; -1 for an unknown one."""
        return IFERROR(MATCH(typed[0, t] & "", words.area.fixed.as_range, 0) - 1, -1)

    read = g.table("read", ROW, place)
    g.follow_all({
        "tokens": lambda t, _: IF(read[0, t] < 0, len(WORDS) - 1, read[0, t]),
        f"{MAMBA}.tokens": lambda t, _: g["tokens"][t, 0] + 0,
    })  # fmt: skip
    must_follow(g, words)
    for name in FIRST.values():
        predicted(g, name, words)
    readings(g)
    channel(g)
    return g


def must_follow(g: Forward, words: Block) -> None:
    """Add the account that must follow each word, if there is one: its id, or -1, and the word."""
    tokens = g["tokens"]

    def asked(_: int, t: int) -> Expression:
        """The place, from 1, where the same person was named before; 0 if nowhere."""
        before = [IF(tokens[s, 0] == tokens[t, 0], s + 1, 0) for s in range(t)]
        return IF(tokens[t, 0] < N_PEOPLE, MAX(0, *before), 0)

    place = g.table("asked", ROW, asked)

    def right(_: int, t: int) -> Expression:
        found = nth(tokens[:, 0].fixed, place[0, t] + 1)
        is_account = AND(found > N_PEOPLE - 1, found < FIRST_FILLER)
        return IF(place[0, t] > 0, IF(is_account, found, -1), -1)

    ids = g.table("right.id", ROW, right)
    g.table("right", ROW, lambda _, t: IF(ids[0, t] < 0, "", nth(words[:, 0].fixed, ids[0, t] + 1)))


def predicted(g: Forward, name: str, words: Block) -> None:
    """Add the likeliest next word of a model after each word, its probability, and that of the
    word that must follow."""
    at, probs, right = g.at(f"{name}next"), g[f"{name}probs"], g["right.id"]

    def word(_: int, t: int) -> Expression:
        row = probs[t, :].as_range
        return nth(words[:, 0].fixed, MATCH(MAX(row), row, 0))

    at.add_tables(ROW, {
        "word": word,
        "share": lambda _, t: MAX(probs[t, :].as_range),
        "right": lambda _, t: IF(right[0, t] < 0, "", nth(probs[t, :], right[0, t] + 1)),
    })  # fmt: skip


def readings(g: Forward) -> None:
    """Add the mean hidden attention, and what one word reads of each word in both models."""
    ssm = recurrence(g)
    # a table of its own: its rows lie on the sheet as those of the rates do
    step = g.table("hidden.step", ssm.step.shape, lambda t, c: ssm.step[t, c] + 0)
    time = g.table("hidden.time", step.shape, lambda t, c: SUM(step[: t + 1, c].fixed_first))

    def weight(t: int, s: int) -> Expression:
        if s > t:
            return expression(0)
        passed = time[t, :] - time[s, :]
        # gnumeric takes no EXP of a range here, but a power of one
        fading = (EXP(1) ** (ssm.rate[n, :] * passed) for n in range(MAMBA_SPEC.d_state))
        each = [
            ssm.C[t, n] * ssm.B[s, n] * SUMPRODUCT(left, step[s, :])
            for n, left in enumerate(fading)
        ]
        return sum(each[1:], each[0]) / ssm.n_channels

    mean = g.table("hidden.mean", SQUARE, weight)
    number = g.input("reader", READER, kind="table")
    reader = g.table("reader.used", (1, 1), lambda *_: dial(number, N_WORDS))
    for what, block in {**{k: g[v] for k, v in PATTERNS.items()}, MAMBA: mean}.items():

        def reads(_: int, s: int, block: Block = block) -> Expression:
            rows = block[s:, s].fixed
            here = nth(rows, reader[0, 0] - s) if rows.rect.size > 1 else block[s, s]
            return IF(reader[0, 0] > s, here, 0)

        g.table(f"reads.{what.replace(' ', '_')}", ROW, reads)


def channel(g: Forward) -> None:
    """Add the hidden attention of one channel at the chosen word, and its output from that."""
    ssm, reader = recurrence(g), g["reader.used"]
    number = g.input("channel", CHANNEL, kind="table")
    chosen = g.table("channel.used", (1, 1), lambda *_: dial(number, ssm.n_channels))
    at = g.at("channel")

    def of(block: Block, row: int) -> Expression:
        return nth(block[row, :].fixed, chosen[0, 0])

    def at_reader(line: Block) -> Expression:
        return nth(line.area, reader[0, 0])

    fed = at.table("input", ROW, lambda _, t: of(ssm.x, t))
    step = at.table("step", ROW, lambda _, t: of(ssm.step, t))
    time = at.table("time", ROW, lambda _, t: SUM(step[0, : t + 1].fixed_first))
    z = at.table("z", ROW, lambda _, t: of(ssm.z, t))
    now = at.table("now", (1, 1), lambda *_: at_reader(time))

    def weight(_: int, s: int) -> Expression:
        passed = now[0, 0] - time[0, s]
        each = [
            nth(ssm.C[:, n].fixed, reader[0, 0]) * ssm.B[s, n] * EXP(of(ssm.rate, n) * passed)
            for n in range(MAMBA_SPEC.d_state)
        ]
        return IF(reader[0, 0] > s, sum(each[1:], each[0]) * step[0, s], 0)

    weights = at.table("weights", ROW, weight)
    by_weights = SUMPRODUCT(weights[0, :].as_range, fed[0, :].as_range)
    past = of(ssm.D, 0) * at_reader(fed)
    at.add_tables((1, 1), {
        "read": lambda *_: by_weights + past,
        "gap": lambda *_: at["channel.read"][0, 0] - at_reader(z),
    })  # fmt: skip


def recurrence(g: Forward) -> Recurrence:
    """The Mamba's recurrence."""
    (found,) = recurrences(g)
    return found


def dial(typed: Block, most: int) -> Expression:
    """The whole number from 1 to `most` that a typed one counts as; a text counts as 1."""
    return IFERROR(MIN(MAX(INT(typed[0, 0]), 1), most), 1)
