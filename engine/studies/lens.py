"""The logit lens and direct logit attribution: blocks that read a graph's residual stream.

Both look at one token, the `position`, and one word, the `target` (beside a `rival`), cells that
the user sets. Both trace the graph back from its logits, so they work for every architecture.

- Lens (nostalgebraist 2020): the readout, final norm included, applied to the stream after every
  sublayer. What would the model predict if it stopped here? Blocks `lens.N.x` to `lens.N.probs`.
- Attribution (Elhage et al. 2021, "Logit attribution"): with each norm's divisor held constant, and
  the ratio by which a soft cap or an encoder's head changes a number, a logit is linear in what was
  written into the stream. So each head, MLP and embedding has its share, `target.<writer>.credit`,
  and the shares add up to the logit exactly. Where the stream, or a sum into it, is patched (see
  `patching`), what the patch changes is the share of its switch.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from cellformer.engine.cells.arguments import explained
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.graph import Graph
from cellformer.engine.models import ops


@dataclass
class Views:
    """The blocks that `add` added to a graph."""

    stages: list[Block] = field(default_factory=list)  # the stream after each sublayer
    credits: dict[str, dict[str, Block]] = field(default_factory=dict)  # word -> writer -> credit


@explained
def add_lens(graph: Graph, position: int, target: int, rival: int) -> Views:
    """Add lens and attribution to a graph that has none yet. Raises InputError for a model that is
    read out after the mean of its tokens.

    >>> graph = cf.graph("dialogue-game", "<BOS> Pietro chiama Paolo")
    >>> len(cf.add_lens(graph, position=3, target=7, rival=8).stages)
    5
    """
    if "pooling.mean" in graph.blocks:
        raise InputError(
            "a classifier reads the mean of all tokens, so there is no lens for its classes; leave "
            "out the lens"
        )
    where = graph.input("position", position, kind="ids")
    views = Views(stages(graph))
    for n, stage in enumerate(views.stages):
        at = graph.at(f"lens.{n}")
        at.copy_with({"resid_final": at.block("x", ops.embed, where, stage)})  # x: [1, d_model]
    for word, value in (("target", target), ("rival", rival)):
        graph.input(word, value, kind="ids")
        views.credits[word] = dict(credits(graph, word))
    return views


NORMS = (
    ops.affine,
    ops.gain_above_one,
    ops.normalize,
    ops.divide_rows,
)  # they carry a vector on, of another size
GAINS = (ops.affine, ops.gain_above_one, ops.stretch)  # they multiply its features


def stages(g: Graph) -> list[Block]:
    """The residual stream after the embedding, and after every sublayer.

    Found from the end back: the stream is the first term of each sum. In models with norms after
    the sums, a stage is the norm's output.
    """
    found, stage, x = [], g["resid_final"], as_computed(g["resid_final"])
    while as_computed(before := x.operands[0][2]).op in (ops.add, *NORMS):
        if x.op is ops.add:
            if len(terms(x)) > 1:
                found.append(stage)
            stage = before
        x = as_computed(before)
    return [stage, *reversed(found)]


def as_computed(x: Block) -> Block:
    """A block before patches of it (see `patching`), or the block."""
    while x.op is ops.patched:
        x = x.operands[0][2]
    return x


def terms(x: Block) -> list[Block]:
    """The terms of a sum, without its bias."""
    return [block for name, _, block in x.operands if name == "xs"]


class Scoring(NamedTuple):
    """The readout of the final stream: each word's logit is the dot product of x and the word's
    vector."""

    x: Block  # [n_tokens, d_model]
    words: Block  # their vectors
    by_rows: bool  # whether a word is a row of them, or a column
    bias: Block | None  # [1, n_words]
    cap: Block | None  # [1, 1]: logits stay within it


def scoring(g: Graph) -> Scoring:
    """The op and operands of the logits. Raises ValueError for an unsupported op."""
    scores = g["logits"]
    read = operands(scores)
    cap = read["cap"] if scores.op is ops.soft_cap else None
    if cap is not None:
        scores = read["x"]
        read = operands(scores)
    if scores.op not in (ops.linear, ops.linear_tied):
        found = scores.op.name if scores.op else "an input"
        raise ValueError(
            f"{scores.name} is {found}, which lens and attribution cannot follow back. Use "
            "ops.linear or ops.linear_tied, or ops.soft_cap of one of these (to scale the "
            "logits, scale the vectors before the unembedding, as architectures/llama.py does)"
        )
    return Scoring(read["x"], read["w"], scores.op is ops.linear_tied, read.get("b"), cap)


def operands(block: Block) -> dict[str, Block]:
    """The operands of a block, by parameter; the last one of a parameter with several."""
    return {name: operand for name, _, operand in block.operands}


def credits(g: Graph, word: str) -> Iterator[tuple[str, Block]]:
    """The share of each writer in a word's logit at every token: [n_tokens, 1], or [1, 1] if it is
    the same for all. Computed from the unembedding back to the embedding.

    `d` is the direction that shares are read along, [1, d_model], or [n_tokens, d_model] before an
    activation function; `by` [n_tokens, 1] is the divisor of a share, None for 1. An op that
    carries the stream on, as all between its end and the words do, changes both; the output of any
    other op is a writer's share.
    """
    end, at = scoring(g), g.at(word)
    d = at.block("direction", ops.embed if end.by_rows else ops.column, g[word], end.words)
    bias = at.block("bias", ops.column, g[word], end.bias) if end.bias else None  # [1, 1]
    by = None
    if end.cap:
        score = at.block("score", ops.linear_tied, end.x, d, bias)  # [n_tokens, 1]
        by = at.block("capped_by", ops.capped_by, score, end.cap)  # [n_tokens, 1]
    if end.bias and bias:
        yield end.bias.name, at.block(f"{end.bias.name}.credit", ops.over, bias, by)
    waiting, ended = [(end.x, d, by)], False  # whether the end of the stream was passed
    while waiting:
        x, d, by = waiting.pop()
        read, ended = operands(x), ended or x.name == "resid_final"
        carries = x.op in (ops.add, *NORMS, *GAINS) or maps(x) or not ended
        if carries and "b" in read:
            yield read["b"].name, credit(at, read["b"], d, by)
        if x.op is ops.add:
            waiting += [(term, d, by) for term in terms(x)]
        elif x.op is ops.patched and as_computed(x).op in (ops.add, *NORMS):
            yield read["take"].name, credit_of_patch(at, x, read["x"], d, by)
            waiting.append((read["x"], d, by))
        elif carries:
            waiting.append((read["x"], *through(g, word, x, d, by)))
        else:
            yield x.name, credit(at, x, d, by)


def maps(x: Block) -> bool:
    """Whether a block is the stream in other coordinates; token vectors are not yet the stream."""
    read = operands(x)
    return x.op is ops.linear and "b" not in read and read["x"].op is not ops.embed


def credit(at: Graph, wrote: Block, d: Block, by: Block | None) -> Block:
    """The dot product of a writer's output and a direction; a bias is the same at every token, but
    its share is not."""
    everywhere, turns = wrote.axes[0] == "token", d.axes[0] == "token"
    if everywhere or not (turns or by):
        op = ops.credit_of_token if turns else ops.credit
    else:
        op = ops.credit_of_bias_of_token if turns else ops.credit_of_bias
    return at.block(f"{wrote.name}.credit", op, wrote, d, by)


def credit_of_patch(at: Graph, x: Block, own: Block, d: Block, by: Block | None) -> Block:
    """The share of a patch in a sum: x less the computed sum; by token."""
    turns = d.axes[0] == "token"
    op = ops.credit_of_change_of_token if turns else ops.credit_of_change
    return at.block(f"{own.name}.credit", op, x, own, d, by)


def through(
    g: Graph, word: str, x: Block, d: Block, by: Block | None
) -> tuple[Block, Block | None]:
    """The direction and the divisor before an op, given those after it."""
    at, read = g.at(f"{word}.{x.path}" if x.path else word), operands(x)
    if x.op is ops.linear:
        name = f"{read['w'].name}.turned"  # both words read it
        turned = g.blocks.get(name) or g.block(name, ops.transposed, read["w"])
        return at.block("mapped", ops.linear, d, turned), by  # [1, d_model]
    if x.op in GAINS:
        _, gain = x.operands[:2]
        return at.block("gained", x.op, d, gain[2]), by  # as d
    if x.op not in NORMS:  # an activation function, of each number
        return at.block("bent", ops.direction_before, d, read["x"], x), by  # [n_tokens, d_model]
    scale = read["scale"] if x.op is ops.normalize else read["by"]  # [n_tokens, 1]
    if x.op is ops.normalize:
        d = at.block("direction", ops.centre, d, at.block("mean", ops.mean, d))  # [1, d_model]
    return d, scale if by is None else at.block("by", ops.gated, scale, by)  # [n_tokens, 1]
