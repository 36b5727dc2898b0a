"""The parts of a model as people write them: head 1.2, MLP 1, expert 0.3, layer 1.

All is counted from 0: head 1.2 is head 2 of layer 1. Every text for people has these names: sheets,
pages, help, terminal. Scripts, equations, Index and JSON have the blocks' own: `blocks.1.attn.h2`.
"""

import re
from collections.abc import Iterable

from cellformer.engine.cells.language import AsIs, worded
from cellformer.engine.cells.name import Named

WHOLE = {  # a part that each layer has one of, by stack
    ("", "attn"): "attention {n}",
    ("", "cross"): "cross attention {n}",
    ("", "mlp"): "MLP {n}",
    ("", "conv"): "convolution {n}",
    ("", "time"): "time mixing {n}",
    ("", "ssm"): "state space {n}",
    ("", "mixed"): "attention and state space {n}",
    ("", ""): "layer {n}",
    ("encoder", "attn"): "encoder attention {n}",
    ("encoder", "mlp"): "encoder MLP {n}",
    ("encoder", ""): "encoder layer {n}",
}
ONE_OF = {  # one of several in a part, by the letters before its number
    "h": {
        ("", "cross"): "cross head {n}",
        ("encoder", "attn"): "encoder head {n}",
        ("", ""): "head {n}",
    },
    "kv": {("encoder", "attn"): "encoder KV head {n}", ("", ""): "KV head {n}"},
    "qk": {("", ""): "QK head {n}"},
    "e": {("encoder", "mlp"): "encoder expert {n}", ("", ""): "expert {n}"},
}
SHARED = "shared expert {n}"
NAME = re.compile(
    r"(?P<stack>encoder)?\.?blocks\.(?P<layer>\d+)"
    r"(?:\.(?P<part>attn|cross|mlp|conv|time|ssm|mixed)(?![a-z])"
    r"(?:\.(?P<one>kv|qk|h|e)(?P<number>\d+)|\.(?P<shared>shared))?)?"
    r"(?:_out|\.added|\.result)?(?P<leaf>(?:\..+)?)"
)
SHORT = re.compile(r"\d+\.\d+")


def said(name: str) -> str:
    """The name of a part, or of a block of it, for people: `head 1.2` for
    `blocks.1.attn.h2.result`, `head 1.2 b_Q` for `blocks.1.attn.h2.b_Q`. A block outside all
    layers keeps its name."""
    found = NAME.fullmatch(name)
    if not found:
        return AsIs(name)
    at = found["stack"] or "", found["part"] or ""
    if found["one"]:
        texts, n = ONE_OF[found["one"]], f"{found['layer']}.{found['number']}"
        part = worded(texts.get(at, texts["", ""]), n=n)
    else:
        part = worded(SHARED if found["shared"] else WHOLE[at], n=found["layer"])
    leaf = found["leaf"].removeprefix(".")
    return AsIs(f"{part} {leaf}" if leaf else part)


def head_of(block: Named) -> str:
    """The name of a block's head, for people."""
    return said(block.forward.rpartition(".")[0])


def named(text: str, names: Iterable[str]) -> str | None:
    """The part that a text names, by its name for people, by its number alone, `1.2`, or by its
    own name; None if there is none."""
    given = text.strip().removesuffix(".")
    given = f"head {given}" if SHORT.fullmatch(given) else given
    return next((name for name in names if given in (name, said(name))), None)
