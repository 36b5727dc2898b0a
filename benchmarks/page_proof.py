"""The numbers of a real model's page beside the engine's, and 40 greedy tokens of the page beside
those of `generate` and of transformers.

    npm ci --prefix tests/node
    PYTHONPATH=.:tests:tests/web python benchmarks/page_proof.py SmolLM2-135M-Instruct.Q4_1.gguf

Node.js runs the page's own script, with its WebAssembly. All values of 20 random blocks and all
logits are compared: as built, and after 20 random edits of weights, head switches and activations.
The script fails if a number is further than 1e-11 of max(1, |x|) from the engine's, or a token
differs.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from in_node import call
from pages import values, written

from cellformer import names
from cellformer.engine import Evaluator
from cellformer.engine.cells.block import Block
from cellformer.engine.models.generate import generate, passage
from cellformer.engine.studies.ablation import SWITCH

PROMPT = "Once upon a time, there"  # its answer does not end within 40 tokens
N_GREEDY, N_BLOCKS, N_EDITS = 40, 20, 20
MOST = 1e-11  # of max(1, |x|)
Edit = tuple[str, int, int, float]


def edits(live: Evaluator, rng: np.random.Generator) -> list[Edit]:
    """Random edits: by turns of a weight, of a head's switch, of an activation."""
    kinds: list[list[Block]] = [
        [b for b in live.graph if b.kind == "weight"],
        [b for b in live.graph if b.leaf == SWITCH and b.head is not None],
        [b for b in live.graph if b.op and b.layer is not None],
    ]
    found = []
    while len(found) < N_EDITS:
        block = pick(rng, kinds[len(found) % len(kinds)])
        i, j = (int(rng.integers(n)) for n in block.shape)
        if block.has(i, j):
            value = (
                0.0
                if block.leaf == SWITCH
                else float(live.cell(block.name, i, j).value) + rng.normal()
            )
            found.append((block.name, i, j, value))
    return found


def pick(rng: np.random.Generator, blocks: list[Block]) -> Block:
    """A random block."""
    return blocks[int(rng.integers(len(blocks)))]


def apart(live: Evaluator, names_of: list[str], folder: Path) -> tuple[int, float]:
    """How many values of blocks are compared, and the largest difference."""
    found, n, worst = values(folder), 0, 0.0
    for name in names_of:
        own, given = live[name].ravel(), np.asarray(found[name])
        same = (own == given) | (np.isnan(own) & np.isnan(given))
        with np.errstate(invalid="ignore"):
            gaps = np.where(same, 0, np.abs(own - given) / np.maximum(1, np.abs(own)))
        n, worst = n + own.size, max(worst, float(gaps.max()))
    return n, worst


def in_transformers(path: Path, ids: list[int]) -> list[int]:
    """The greedy tokens of transformers."""
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype="float32")
    given = torch.tensor([ids])
    asked: dict[str, Any] = {"do_sample": False, "max_new_tokens": N_GREEDY}
    found: list[int] = model.generate(given, attention_mask=given * 0 + 1, **asked)[0].tolist()
    return found[len(ids) :]


def main(name: str) -> None:
    """Print a line for each comparison."""
    loaded = names.load(name, PROMPT, force=True)
    model, ids = loaded.model, loaded.ids
    book = loaded.book(model, passage(model, ids, len(ids) + N_GREEDY), is_page=True)
    rng, live = np.random.default_rng(48), Evaluator(book.graph)
    numbers = [b.name for b in book.graph if b.op and live[b.name].dtype != object]
    chosen = [*map(str, rng.choice(numbers, N_BLOCKS, replace=False)), "logits"]
    with tempfile.TemporaryDirectory() as folder:
        held = written(book, Path(folder) / "page.html")
        call("values.mjs", "open", str(held), True)
        assert call("values.mjs", "slower") == ""
        told("as built", *apart(live, chosen, Path(folder)))
        made = edits(live, rng)
        for edit in made:
            live.set(*edit)
        live.recompute()
        call("values.mjs", "edit", made)
        told(f"after {len(made)} edits", *apart(live, chosen, Path(folder)))
        told("every block", *apart(live, numbers, Path(folder)))
        call("values.mjs", "edit", [(name, i, j, None) for name, i, j, _ in made])
        call("values.mjs", "begin", str(held))
        for _ in range(N_GREEDY):
            shown = call("values.mjs", "act", ["next"])["shown"]
    own = [step.token for step in generate(model, ids, N_GREEDY)]
    theirs = in_transformers(Path(name), ids)
    print(f"{N_GREEDY} greedy tokens: {model.vocabulary.decode(own)!r}")
    assert shown == ids + own == ids + theirs, (shown, own, theirs)


def told(when: str, n: int, worst: float) -> None:
    """Print a comparison, and stop if a number is too far off."""
    print(f"{when}: {n:,} values, the largest difference {worst:.1e}", flush=True)
    assert worst <= MOST


if __name__ == "__main__":
    main(sys.argv[1])
