"""Texts of many scripts through every kind of tokenizer, as transformers loads it and in cells.

Each tokenizer is saved as a folder and read again: by transformers' AutoTokenizer, whose ids are
the right ones, by cellformer, and as the tables of a sheet, computed by the engine. Prints how many
texts have exactly these ids, and how many a message instead. Argv: how many texts (200), and the
kinds (all).

    PYTHONPATH=.:tests:tests/models python benchmarks/tokenizer_kinds.py 200 o200k deepseek
"""

import json
import sys
import tempfile
from collections import Counter
from pathlib import Path

import learnt
import many_scripts
import numpy as np
from transformers import AutoTokenizer

from cellformer.engine.cells.graph import Graph
from cellformer.engine.text import tokenizing
from cellformer.engine.text.tokenizer import Library, load_tokenizer

LENGTH, ROOM = 16, 44  # characters of a text, and what fits the sheet


def main() -> None:
    """Try each kind."""
    n, kinds = int((sys.argv[1:] or [200])[0]), sys.argv[2:]
    made = dict.fromkeys(learnt.KINDS, learnt.learnt)
    made |= dict.fromkeys(many_scripts.KINDS, many_scripts.of_scripts)
    found = Counter[str]()
    for kind in kinds or made:
        texts = many_scripts.texts(n, LENGTH, seed=len(kind))
        found += tried(kind, made[kind](kind), texts)
    print(f"{len(kinds or made)} tokenizers: {told(found)}")


def tried(kind: str, of: Library, texts: list[str]) -> Counter[str]:
    """Compare each text's ids."""
    with tempfile.TemporaryDirectory() as folder:
        of.inner.save(f"{folder}/tokenizer.json")
        config = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "clean_up_tokenization_spaces": False,
        }
        Path(folder, "tokenizer_config.json").write_text(json.dumps(config))
        right = AutoTokenizer.from_pretrained(folder)
        ours = load_tokenizer(Path(folder), of.n)
    if reason := tokenizing.refusal(ours):
        print(f"{kind}: {reason}", flush=True)
        return Counter({"refused": len(texts)})
    graph = Graph(None, None)
    tokenizing.add(graph, ours, "", ROOM + 4, ROOM)
    found, messages = Counter[str](), Counter[str]()
    for text in texts:
        wanted = right(text)["input_ids"]
        found["read"] += ours.encode(text) == wanted
        graph.fill("sentence", np.array([[text]], dtype=object))
        ids = [int(i) for i in graph.values["tokenizer.ids"][:, 0] if i >= 0]
        fine = bool(graph.values["tokenizer.fine"][0, 0])
        found[
            "in cells" if fine and ids == wanted else "wrong" if fine or ids else "a message"
        ] += 1
        if not fine:
            messages[graph.values["tokenizer.message"][0, 0].split(":")[0]] += 1
    print(
        f"{kind}: {told(found)}",
        *(f"\n    {m} {k}" for k, m in messages.most_common(3)),
        flush=True,
    )
    return found


def told(found: Counter[str]) -> str:
    """The counts in words."""
    return ", ".join(
        f"{found[k]} {k}" for k in ("read", "in cells", "a message", "wrong", "refused")
    )


if __name__ == "__main__":
    main()
