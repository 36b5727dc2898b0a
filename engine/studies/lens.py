"""The logit lens and direct logit attribution: blocks that read a graph's residual stream.

Both look at one token, the `position`, and one word, the `target` (beside a `rival`): cells that
the reader sets.

- Lens (nostalgebraist 2020): the readout, final norm included, applied to the stream after every
  sublayer. What would the model say if it stopped here? Blocks `lens.N.x` to `lens.N.probs`.
- Attribution (Elhage et al. 2021, "Logit attribution"): a logit is linear in what was written into
  the stream, once each norm's divisor is taken as it is. So each head, MLP and embedding has its
  share, `target.<writer>.credit`, and the shares add up to the logit exactly.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from engine.cells.block import Block
from engine.cells.graph import Graph
from engine.models import ops


@dataclass
class Views:
    """What was added to a graph."""

    stages: list[Block] = field(default_factory=list)  # the stream after each sublayer
    credits: dict[str, dict[str, Block]] = field(default_factory=dict)  # word -> writer -> credit


def add(g: Graph, position: int, target: int, rival: int) -> Views:
    """Add lens and attribution to a graph that has none yet."""
    where = g.input("position", position, kind="ids")
    views = Views(stages(g))
    for n, stage in enumerate(views.stages):
        at = g.at(f"lens.{n}")
        at.again(g["resid_final"], at.block("x", ops.embed, where, stage))  # x: [1, d_model]
    for word, value in (("target", target), ("rival", rival)):
        g.input(word, value, kind="ids")
        views.credits[word] = dict(credits(g, word))
    return views


def stages(g: Graph) -> list[Block]:
    """The residual stream after the embedding, then after every sublayer."""
    found = ["resid_final"] if not g.spec.n_layers else ["blocks.0.resid_pre"]
    for layer in range(g.spec.n_layers):
        b = f"blocks.{layer}"
        after = ("ln1.out", "ln2.out") if g.spec.norm_after else ("resid_mid", "resid_post")
        sums = ("resid_mid", "resid_post")
        found += [
            f"{b}.{normed if f'{b}.{normed}' in g.blocks else summed}"
            for summed, normed in zip(sums, after, strict=True)
            if f"{b}.{summed}" in g.blocks
        ]
    return [g[name] for name in found]


def credits(g: Graph, word: str) -> Iterator[tuple[str, Block]]:
    """The share of each writer in a word's logit at every token: [n_tokens, 1], or [1, 1] where
    it is the same for all. From the unembedding back to the embedding."""
    d, by = direction(g, word), None  # d: [1, d_model]; by: [n_tokens, 1], the norms passed
    if "ln_final.out" in g.blocks:
        yield from shares(g, word, ["ln_final.b"], d, by)
        d, by = through(g, word, "ln_final", d, by)
    for layer in reversed(range(g.spec.n_layers)):
        b = f"blocks.{layer}"
        heads = [f"{b}.attn.h{h}.result" for h in reversed(range(g.spec.n_heads))]
        for norm, writers in (
            (f"{b}.ln2", [f"{b}.mlp_out"]),
            (f"{b}.ln1", [f"{b}.attn.b_O", *heads]),
        ):
            if g.spec.norm_after and f"{norm}.out" in g.blocks:
                yield from shares(g, word, [f"{norm}.b"], d, by)
                d, by = through(g, word, norm, d, by)
            yield from shares(g, word, writers, d, by)
    yield from shares(g, word, ["pos_embed", "embed"], d, by)


def shares(
    g: Graph, word: str, writers: list[str], d: Block, by: Block | None
) -> Iterator[tuple[str, Block]]:
    """The shares of those writers that there are, all read along one direction."""
    for name in writers:
        if name in g.blocks:
            at, wrote = g.at(word), g[name]
            if wrote.axes[0] == "token" or by is None:
                yield name, at.block(f"{name}.credit", ops.credit, wrote, d, by)
            else:  # a bias, the same at every token but for the norm's divisor
                yield name, at.block(f"{name}.credit", ops.credit_of_bias, wrote, d, by)


def direction(g: Graph, word: str) -> Block:
    """The direction that the readout scores a word by: its column of the unembedding."""
    logits = g["logits"]
    _, (rows, _), table = logits.operands[1]
    read = ops.embed if rows == "j" else ops.column
    return g.at(word).block("direction", read, g[word], table)  # [1, d_model]


def through(
    g: Graph, word: str, norm: str, d: Block, by: Block | None
) -> tuple[Block, Block | None]:
    """A direction before a norm that does there what `d` does after it, and the divisor so far."""
    at = g.at(f"{word}.{norm}")
    d = at.block("gained", ops.affine, d, g[f"{norm}.w"])  # [1, d_model]
    if f"{norm}.mean" in g.blocks:
        d = at.block("direction", ops.centre, d, at.block("mean", ops.mean, d))  # [1, d_model]
    scale = g[f"{norm}.scale"]  # [n_tokens, 1]
    return d, scale if by is None else at.block("by", ops.gated, scale, by)  # [n_tokens, 1]
