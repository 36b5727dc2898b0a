"""The sheets of the workbook recurrence: one sentence read by both models, what they read of it,
what they keep, where they fail, and every step."""

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Area, Expression, expression
from cellformer.engine.cells.functions import AND, COUNTIF, IF, INT, added
from cellformer.engine.cells.language import worded
from cellformer.engine.models.forward import Forward
from cellformer.exporters.assemble.block_list import stack
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.exporters.compose import theme
from cellformer.exporters.compose.book import Chart, Place, Series
from cellformer.exporters.compose.composer import Composer, Formula
from cellformer.exporters.compose.dressing import UNKNOWN, When, between
from cellformer.exporters.compose.lookups import nth
from cellformer.exporters.compose.sentences import quote, rounded, sentence
from cellformer.workbooks.recurrence import learning
from cellformer.workbooks.recurrence.learning import (
    LARGER,
    MAMBA,
    MAMBA_SPEC,
    N_QUESTIONS,
    SHOWN,
    SPEC,
    TRANSFORMER,
)
from cellformer.workbooks.recurrence.machine import FIRST, HEADS, PATTERNS
from cellformer.workbooks.recurrence.sentences import N_WORDS, WORDS

NAMES = {TRANSFORMER: "transformer", MAMBA: "Mamba"}
TITLES = {
    TRANSFORMER: "Transformer",
    MAMBA: "Mamba",
    LARGER: "Mamba with 8 numbers per channel instead of 2",
}
MEANINGS = {  # of the tables around both passes
    "words": "the words that both models know",
    "read": "the id of each typed word; -1 for an unknown word",
    "right.id": "the id of the account that must follow; -1 if none must",
    "asked": "where the same person was named before, from 1; 0 if nowhere",
    "hidden.step": "the step of each channel at each word, again",
    "hidden.time": "the sum of the steps of each channel up to each word",
    "reader.used": "the number of the word that reads, as it counts",
    "channel.used": "the number of the channel, as it counts",
    "channel.step": "the steps of the channel",
    "channel.time": "the sum of its steps up to each word",
    "channel.z": "the output of the channel, as the layer computes it",
    "channel.now": "the sum of its steps up to the word that reads",
    "channel.read": "the output of the channel at that word, from its hidden attention",
    "channel.gap": "the difference from the output of the layer",
}
WIDE = dict.fromkeys(range(1, N_WORDS + 1), 8.3)
LABELS = {"vocab": WORDS}
SIZES = {  # of a transformer's keys and values, and of a Mamba's state and last inputs
    "layers": ((SPEC.n_layers, 32), (MAMBA_SPEC.n_layers, 64)),
    "d_model, or channels": ((SPEC.d_model, 2560), (MAMBA_SPEC.d_inner, 5120)),
    "numbers per channel": ((0, 0), (MAMBA_SPEC.d_state, 16)),
    "words of a convolution": ((0, 0), (MAMBA_SPEC.d_conv, 4)),
}
READS = {
    "reads.layer_0": "attention, head 0.0",
    "reads.layer_1": "attention, head 1.0",
    f"reads.{MAMBA}": "hidden attention, Mamba",
}
MODELS = ("our transformer", "our Mamba", "Pythia 2.8B", "Mamba 2.8B")
LENGTHS = (1, 12, 100, 1_000, 10_000, 100_000)


def compare(w: Workbook, g: Forward) -> None:
    """The first sheet: the sentence, what each model predicts, and what a word reads."""
    ws = w.sheet(
        "Compare",
        "a transformer and a Mamba read the same sentence: what each predicts, and what it reads",
        widths={0: 25} | WIDE | {N_WORDS + 1: 9},
    )
    top = ws.cursor
    ws.show("verdict", (top, 0), verdict(g), "heading")
    ws.show("fault", (top + 1, 0), fault(g), "note")
    ws.sheet.put(top + 2, 0, "word number", "row label")
    ws.sheet.across(top + 2, 1, range(1, N_WORDS + 1), "label number")
    ws.lay(
        g["typed"],
        (top + 3, 1),
        "token",
        rule={"validate": "list", "source": list(WORDS), **UNKNOWN},
        label="type the sentence",
    )
    ws.lay(g["right"], (top + 4, 1), "word", label="must follow")
    ws.cursor = top + 6
    for name, first in FIRST.items():
        predictions(ws, g, NAMES[name], f"{first}next")
    what_is_read(ws, g)
    kept_so_far(ws, g)


def predictions(ws: Composer, g: Forward, name: str, part: str) -> None:
    """Add the likeliest word after each word, and its probability."""
    top, word = ws.cursor, g[f"{part}.word"]
    ws.lay(word, (top, 1), "word shown", label=worded("the {model} predicts", model=name))
    ws.lay(g[f"{part}.share"], (top + 1, 1), "percent", label="its probability")
    ws.lay(g[f"{part}.right"], (top + 2, 1), "percent", label="probability of ‘must follow’")
    here, right = word[0, 0], g["right"][0, 0]
    ws.dress(
        word.area,
        When("stale", right == ""),
        When("right", AND(right != "", here == right)),
        When("differs", AND(right != "", here != right)),
    )
    ws.cursor += 4


def what_is_read(ws: Composer, g: Forward) -> None:
    """Add how much one word reads of each word, in each model."""
    top = ws.cursor
    ws.lay(
        g["reader"],
        (top, 1),
        "dial",
        rule=between(
            1, N_WORDS, worded("Type a whole number from 1 to {most}.", most=N_WORDS), whole=True
        ),
        label="word that reads",
    )
    place = g["reader.used"][0, 0]
    said = sentence(
        "← the number of a word: {word}. Below, you see how much this word reads from each word.",
        word=quote(nth(g["typed"].area, place)),
    )
    ws.show("reading", (top, 2), said, "note")
    for k, (name, text) in enumerate(READS.items(), 1):
        ws.lay(
            g[name],
            (top + k, 1),
            "step",
            dress="diverging" if name.endswith(MAMBA) else "scale",
            label=text,
        )
    ws.sheet.put(top, N_WORDS + 1, "1 on, 0 off", "label")
    for k, head in enumerate(HEADS, 1):
        ws.lay(
            g[f"{head}.switch"],
            (top + k, N_WORDS + 1),
            "switch",
            rule=between(-1, 2, "1 is on, 0 is off."),
        )
    ws.cursor = top + len(READS) + 1
    ws.text(
        "Hidden attention is the weight of each word in the output of the Mamba, averaged over "
        "its channels. Hidden attention can be below 0.",
        style="note",
    )


def kept_so_far(ws: Composer, g: Forward) -> None:
    """Add the numbers that each model keeps after each word."""
    top = ws.cursor

    ws.sheet.down(
        top,
        0,
        (worded("numbers kept, {model}", model=name) for name in NAMES.values()),
        "row label",
    )
    ws.show(
        "kept",
        (top, 1),
        lambda model, t: numbers_kept(g["sizes"].area, model, expression(t + 1)),
        "count",
        (len(NAMES), N_WORDS),
    )


def numbers_kept(sizes: Area, column: int, n_words: Expression) -> Expression:
    """The numbers that a model keeps after so many words: keys and values of each word, or a
    state and the last inputs of a convolution."""
    layers, width, state, inputs = (sizes[k, column] for k in range(len(SIZES)))
    return IF(state > 0, layers * width * (state + inputs - 1), 2 * layers * width * n_words)


def verdict(g: Forward) -> Expression:
    """A sentence that says how many known words each model predicts rightly."""
    right = [g["right"][0, t] for t in range(N_WORDS)]
    known = added([IF(word == "", 0, 1) for word in right])
    counts = {
        name: added(
            [
                IF(word == "", 0, IF(g[f"{first}next.word"][0, t] == word, 1, 0))
                for t, word in enumerate(right)
            ]
        )
        for name, first in FIRST.items()
    }
    return sentence(
        "Words that must follow: {known}. The transformer predicts {transformer} of them, the "
        "Mamba {mamba}.",
        known=known,
        **counts,
    )


def fault(g: Forward) -> Expression:
    """A line about typed words that the models do not know, or what to do."""
    unknown = COUNTIF(g["read"].area.as_range, -1)
    return IF(
        unknown > 0,
        sentence(
            "Unknown words: {n}. Each counts as ‘later’. Choose words from the list.", n=unknown
        ),
        sentence(
            "Type over the yellow words. Training counted a prediction only after a person who "
            "was named before: other predictions are grey."
        ),
    )


def memory(w: Workbook, g: Forward) -> None:
    """All that is read: both patterns, the mean hidden attention, and that of one channel."""
    ws = w.sheet(
        "Memory",
        "how much each word (row) reads of each word (column), in both models",
        widths={0: 25} | WIDE,
    )
    one_channel(ws, g)
    tables = {
        "Attention of the transformer, head 0.0": PATTERNS["layer 0"],
        "Attention of the transformer, head 1.0": PATTERNS["layer 1"],
        "Hidden attention of the Mamba, mean of its channels": "hidden.mean",
    }
    for text, name in tables.items():
        block = g[name]
        ws.heading(text)
        words_across(ws, g, block.name)
        ws.show(
            f"down.{block.name}",
            (ws.cursor, 0),
            typed_word(g, down=True),
            "row label",
            (N_WORDS, 1),
        )
        square(ws, block)
        ws.cursor += N_WORDS + 1


def square(ws: Composer, block: Block) -> None:
    """Put a table of words by words at the cursor, coloured."""
    if block.op:
        place = Place(block, ws.sheet.name, ws.cursor, 1, turned=False)
        ws.book.places[block.name] = place
        ws.sheet.regions.append((place, theme.region_style(block, True)))
    else:
        ws.lay(block, (ws.cursor, 1), "step green")
    ws.dress(block.area, "scale" if block.op else "diverging")


def words_across(ws: Composer, g: Forward, name: str) -> None:
    """Put the typed words at the cursor, as heads of columns."""
    ws.show(f"across.{name}", (ws.cursor, 1), typed_word(g), "label", (1, N_WORDS))
    ws.cursor += 1


def typed_word(g: Forward, down: bool = False) -> Formula:
    """The typed words as labels, across or down."""
    return lambda i, j: g["typed"][0, i if down else j] & ""


def one_channel(ws: Composer, g: Forward) -> None:
    """Add what one channel of the Mamba reads, with its output in two ways."""
    top = ws.cursor
    ws.text(
        "A channel’s output is a weighted sum of its inputs, like attention. The weights can be "
        "below 0 (orange), and their sum need not be 1.",
        style="note",
    )
    most = MAMBA_SPEC.d_inner
    whole = worded("Type a whole number from 1 to {most}.", most=most)
    ws.lay(
        g["channel"],
        (top + 1, 1),
        "dial",
        label="channel",
        rule=between(1, most, whole, whole=True),
    )
    said = sentence(
        "← channel of the Mamba, at word {n} (see Compare). Weights × inputs + D × own input: "
        "{read}. Output of the layer: {z}.",
        n=g["reader.used"][0, 0],
        read=rounded(g["channel.read"][0, 0], 3),
        z=rounded(g["channel.read"][0, 0] - g["channel.gap"][0, 0], 3),
    )
    ws.show("channel", (top + 1, 2), said, "note")
    ws.cursor = top + 2
    words_across(ws, g, "channel")
    rows = {"channel.weights": "its hidden attention", "channel.input": "its inputs"}
    for k, (name, text) in enumerate(rows.items()):
        ws.lay(g[name], (ws.cursor + k, 1), "step", dress="diverging", label=text)
    ws.cursor += len(rows)


def cost(w: Workbook) -> None:
    """The numbers that each model keeps, by the number of words."""
    ws = w.sheet(
        "Cost",
        "what a model keeps of the text so far: a cache that grows, or a state that does not",
        widths={0: 30} | dict.fromkeys(range(1, 5), 17),
    )
    top = ws.cursor
    ws.cursor += 2
    ws.text(
        "transformer: 2 · layers · d_model · words, for keys and values",
        "Mamba: layers · channels · (numbers per channel + words of a convolution - 1)",
        style="equation",
    )
    values = [
        [*ours, *large] for ours, large in (zip(*pair, strict=True) for pair in SIZES.values())
    ]
    sizes = ws.typed("sizes", values, list(SIZES), MODELS, style="input setting")
    lengths = ws.typed(
        "lengths", [[n] for n in LENGTHS], cols=["words"], style="input setting", left=0
    )
    grown = ws.computed(
        "grown",
        (len(LENGTHS), len(MODELS)),
        lambda i, j: numbers_kept(sizes, j, lengths[i, 0]),
        cols=MODELS,
        left=1,
        top=ws.rect(lengths).top - 1,
        style="thousands",
    )
    growth(ws, top, sizes, lengths, grown)


def growth(ws: Composer, top: int, sizes: Area, lengths: Area, grown: Area) -> None:
    """Add the sentences about the growth, and the charts."""
    for row, (j, unit, decimals) in enumerate(((0, 1, 0), (2, 1_000_000, 2))):
        each, stays = numbers_kept(sizes, j, expression(1)), grown[0, j + 1]
        said = (
            "The transformer keeps {each} numbers for each word. The Mamba always keeps "
            "{stays} numbers. From word {word} on, the Mamba keeps fewer.",
            "Pythia, a transformer of 2.8 billion weights, keeps {each} million numbers for "
            "each word. A Mamba of that size always keeps {stays} million. From word {word} "
            "on, the Mamba keeps fewer.",
        )[row]
        told = sentence(
            said,
            each=rounded(each / unit, decimals),
            stays=rounded(stays / unit, decimals),
            word=INT(stays / each) + 1,
        )
        ws.show(f"told.{row}", (top + row, 0), told, "text" if row else "heading")
    ws.chart(
        Chart(
            ws.rect(lengths).top - 1,
            6,
            "scatter",
            "Numbers kept",
            [Series(MODELS[j], lengths, grown[:, j]) for j in (2, 3)],
            size=(420, 290),
            axes=("words", "numbers kept"),
            joined=True,
            number="0E+00",
        )
    )


def failures(w: Workbook) -> None:
    """The right answers of each model, by number of people and of filler words."""
    ws = w.sheet(
        "Failures",
        "where each model fails: right answers by number of people and of filler words",
        widths={0: 25} | dict.fromkeys(range(1, len(SHOWN) + 1), 8.3),
    )
    ws.text(
        worded(
            "Up to {n} words, the transformer answers {share:.1%} correctly. It has no "
            "position for later words (–).",
            n=N_WORDS,
            share=learning.share(TRANSFORMER),
        ),
        worded(
            "The Mamba answers {share:.1%} correctly. Nearly all its wrong answers are "
            "accounts of other people. It forgets within 50 filler words, but training had at "
            "most 9.",
            share=learning.share(MAMBA),
        ),
        worded(
            "A Mamba with 8 numbers per channel instead of 2 had the same training. It answers "
            "{share:.1%} correctly, so a larger state alone does not help here.",
            share=learning.share(LARGER),
        ),
    )
    ws.text(
        worded(
            (
                "Each cell shows the right answers to {n} new questions, measured with the "
                "weights as built."
            ),
            n=N_QUESTIONS,
        ),
        style="note",
    )
    ws.cursor -= 1
    for name, counts in learning.answers().items():
        ws.heading(TITLES[name])
        ws.sheet.put(ws.cursor, 0, "filler words", "row label")
        ws.sheet.across(ws.cursor, 1, SHOWN, "label number")
        for k, row in enumerate(counts, 1):
            ws.sheet.put(
                ws.cursor + k,
                0,
                worded("{n} people", n=k) if k > 1 else worded("1 person"),
                "row label",
            )
            for j, n in enumerate(row, 1):
                if n is None:
                    ws.sheet.put(ws.cursor + k, j, "–", "row label")
                else:
                    ws.sheet.put(ws.cursor + k, j, n / N_QUESTIONS, "constant percent")
        ws.dress(ws.sheet[ws.cursor + 1 : ws.cursor + 1 + len(counts), 1 : 1 + len(SHOWN)], "scale")
        ws.cursor += len(counts) + 1


def inside(w: Workbook, g: Forward) -> None:
    """Every other block, in the order of computation."""
    ws = w.sheet(
        "Inside",
        "every step of both models, from tokens to probabilities, with its formula",
        "Names of the Mamba’s blocks begin with ‘mamba.’. Layers and heads are counted from 0.",
    )
    for block in [*g]:
        if block.name not in w.book.places:
            stack(ws, block, LABELS, "", meaning=MEANINGS.get(block.name, ""))
