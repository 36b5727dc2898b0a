"""The sheets Step 1 to Step 6 of `reward`: every number of a step, in the order of computation."""

from collections.abc import Callable

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Expression
from cellformer.engine.cells.functions import EXP, IF, SUM, SUMPRODUCT
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.name import GRADIENT, TURNED
from cellformer.exporters.assemble.block_list import stack
from cellformer.exporters.compose.composer import Composer
from cellformer.workbooks.learn.sheets import (
    settings,
)
from cellformer.workbooks.reward import table
from cellformer.workbooks.reward.game import LENGTH, TEXTS
from cellformer.workbooks.reward.sheets import LABELS, Parts, grid, one, places, slug

GRIDS = {  # of a number for each word of each text: the block, and its meaning
    "now": ("loss.of_token", "probability of the word now"),
    "old": ("policy.old", "old probability: when the word was drawn"),
    "ratio": ("policy.ratio", "ratio: probability now / old probability"),
    "clipped": ("policy.clipped", "clipped ratio: within the clip range"),
    "surrogate": (
        "policy.surrogate",
        ("surrogate: the smaller of advantage × ratio and advantage × clipped ratio"),
    ),
    "reference": ("policy.reference", "probability by the model ‘books’"),
    "divergence": ("policy.divergence", "KL divergence from ‘books’, estimated"),
    "counted": ("policy.counted", "part of the loss: share × (beta × KL − surrogate)"),
}
SHARES = ("now", "old", "reference")  # grids of probabilities, from blocks of surprises
HEADINGS = {
    "tokens": "The eight texts, as token ids: END begins each text",
    "embed": "A vector for each word, and a vector for its place",
    "blocks.0.attn.sqrt_d_head": "Attention: each word looks at earlier words of its text",
    "blocks.0.mlp.pre": "MLP: each word separately",
    "logits": "Readout: a score for every possible next word, then probabilities",
    "loss.targets": "Surprise: how unlikely each written word is",
    "advantage": "Policy: ratio, clipped ratio, surrogate and KL divergence",
}


def write(ws: Composer) -> None:
    """Add the texts of this step: how each word is drawn, and what each text is worth."""
    ws.widths({0: 24})
    g, top = ws.book.graph, ws.cursor
    which = {"batch": ("batch", "row of random numbers", "count")}
    settings(
        ws,
        which | {"policy.fresh": ("new texts", "1: new texts; 0: the last texts again", "count")},
    )
    one(g, "rewarded", SUM(g["reward.of_text"].area))
    more = {
        "rewarded": ("sum of rewards", "of the eight texts", "step"),
        "reward.mean": ("mean reward", "", "step"),
        "reward.deviation": ("deviation", "standard deviation of the rewards", "step"),
    }
    settings(ws, more)
    ws.heads_at((top, LENGTH + 1), "id", "0", "1", "2", style="label")
    ws.lay(g["words"], (top + 1, LENGTH + 2), "word", label="word")
    ws.cursor += 1
    top = ws.cursor
    grid(ws, g["shown"], (top, 1), "The texts", "word", places())
    facts = {"reward.of_text": "reward", "advantage.of_text": "advantage", "length": "words"}
    for col, (name, head) in enumerate(facts.items(), LENGTH + 2):
        ws.lay(g[name], (top + 2, col), "step" if name != "length" else "id", head=head)
    ws.cursor = top + TEXTS + 3
    drawn = {
        "chance": ("The random number of each word", "constant"),
        "below.D": ("The word is D if the random number is below this probability of D", "step"),
        "below.C": ((
            "The word is C if the random number is below this probability of D or C, else END"
        ), "step"),
        "beginning": ("The beginning before each word, by its number on Step 1 Model; 0 after the end", "id"),
        "kept.texts": ("The texts of the previous update", "id"),
        "drawn": ("The word that the random number draws: 0 D, 1 C, 2 END", "id"),
        "texts": ("The words of the texts in use", "id"),
    }  # fmt: skip
    for name, (meaning, style) in drawn.items():
        grid(ws, g[name], (ws.cursor, 1), meaning, style)
        ws.cursor += TEXTS + 3
    grid(
        ws,
        g["rewards"],
        (ws.cursor, 1),
        "The reward of each text, by each name",
        "step",
        ("balanced", "credit", "long"),
    )
    ws.lay(g["text"], (ws.cursor + 2, 5), "word", head="text")
    ws.cursor += TEXTS + 3


def loss(ws: Composer) -> None:
    """Add the parts of the loss, and each of them for every word."""
    g = ws.book.graph
    for name, (of, _) in GRIDS.items():
        g.table(f"grid.{name}", (TEXTS, LENGTH), _of_words(g, of, name in SHARES))
    share = g["loss.share"].area
    for name, leaf in (("loss.surrogate", "surrogate"), ("loss.kl", "divergence")):
        one(g, name, SUMPRODUCT(share, g[f"policy.{leaf}"].area))
    ratios, limited = g["policy.ratio"], g["policy.clipped"]
    begun = g["beginning"]

    def clipped(k: int, t: int) -> Expression:
        n = k * LENGTH + t
        return IF(begun[k, t] == 0, 0, IF(ratios[n, 0] == limited[n, 0], 0, 1))

    g.table("clips", (TEXTS, LENGTH), clipped)
    one(g, "loss.clips", SUM(g["clips"].area))
    one(g, "loss.total", g["policy.loss"][0, 0] + 0)
    settings(ws, {
        "loss.surrogate": ("surrogate", "mean over words, then over texts", "change fine"),
        "loss.kl": ("KL divergence", "the same mean, without beta", "change fine"),
        "loss.total": ("loss", "beta × KL divergence − surrogate", "change fine"),
        "loss.clips": ("clipped words", "words whose ratio is beyond the clip range", "count"),
    })  # fmt: skip
    ws.cursor += 1
    for name, (_, meaning) in GRIDS.items():
        area = grid(
            ws, g[f"grid.{name}"], (ws.cursor, 1), meaning, "percent" if name in SHARES else "step"
        )
        if name in SHARES:
            ws.dress(area, "scale")
        ws.cursor += TEXTS + 3
    grid(ws, g["clips"], (ws.cursor, 1), "1: the ratio is beyond the clip range", "id")
    ws.cursor += TEXTS + 3
    ws.heading("The same numbers, in blocks of one number for each word, for the gradient")


def _of_words(g: Graph, of: str, share: bool) -> Callable[[int, int], Expression]:
    """A number for each word of each text, of a block with one for each token; nothing after the
    end. Of a surprise it is the probability."""
    block, begun = g[of], g["beginning"]

    def cell(k: int, t: int) -> Expression:
        x = block[k * LENGTH + t, 0]
        return IF(begun[k, t] == 0, "", EXP(-x) if share else x + 0)

    return cell


def add(p: Parts) -> None:
    """Add every block of the step, in the order of computation."""
    g, w = p.w.book.graph, p.w
    model = w.sheet(
        "Step 1 Model",
        "the current weights, and the probability of every word after every beginning",
        "The model has written 0 to 6 entries, D or C: there are 127 beginnings. The last block has "
        "the probability of each next word.",
    )
    writes = w.sheet(
        "Step 2 Write",
        "eight texts, drawn by random numbers with the current weights; their rewards and advantages",
        "advantage = (reward − mean) / (deviation + 0.0001). A text that is better than the other "
        "texts of its group has an advantage above 0.",
        (
            "If all eight rewards are equal, every advantage is 0: the model learns nothing "
            "from these texts."
        ),
    )
    write(writes)
    forward = w.sheet("Step 3 Forward", "from the eight texts to the probability of each next word")
    losses = w.sheet(
        "Step 4 Loss",
        "ratio, clipped ratio, surrogate and KL divergence of every word, and the loss",
        "loss = mean of (beta × KL divergence − surrogate), over the words of a text, then over texts. "
        "surrogate = the smaller of ratio × advantage and clipped ratio × advantage.",
        "In the first update of a batch, every ratio is 1, so nothing is clipped. Type ‘2’ or more "
        "at ‘updates per batch’ on the sheet Learn: later updates clip.",
        "KL divergence of a word = r − ln r − 1, where r = probability by ‘books’ / probability now "
        "(DeepSeekMath 2024, 4.1.1).",
    )
    loss(losses)
    back = w.sheet(
        "Step 5 Backward",
        ("how the loss changes with every number, computed backwards from the loss"),
    )
    adam = w.sheet("Step 6 Adam", "every weight after this step")
    sheets = {"model": model, "forward": forward, "loss": losses, "back": back, "adam": adam}
    placed, held = w.book.places, {slug(model) for model in p.trained}
    for block in [*g]:
        elsewhere = block.part in LATER or block.part in held or block.name in LATER
        if block.name in placed or elsewhere:
            continue
        ws = sheets[_kind(block)]
        if block.name in HEADINGS:
            ws.heading(HEADINGS[block.name])
        stack(ws, block, LABELS, "the loss")


LATER = (  # parts, and blocks, of other sheets
    *("latch", "start", "before", "now", "books", "text"),
    *(
        "settled",
        "random",
        "kind",
        "kinds",
        "expected",
        "variety",
        "likeliest",
        "likeliest.share",
        "certainty",
    ),
)


def _kind(block: Block) -> str:
    """The sheet of a block of the step."""
    if block.kind == "weight" or block.name.startswith(f"{table.ALL}."):
        return "model"
    if block.kind == "gradient" or GRADIENT in block.passes or TURNED in block.passes:
        return "back"
    if block.part in ("loss", "policy") or block.name in ("loss", "advantage"):
        return "loss"
    inside = block.name.startswith(("blocks.", "softmax.")) or block.name in FORWARD
    return "forward" if inside else "adam"


FORWARD = (
    *("tokens", "embed", "positions", "pos_embed", "resid_final", "logits", "temperature", "probs"),
)
