"""How fast this source tree is beside another one: the same work in both, in turns.

    python benchmarks/pairs.py OLD_TREE [ROUNDS]          evaluation, one edit, gradients
    python benchmarks/pairs.py OLD_TREE [ROUNDS] FOLDER   building a checkpoint's workbook
    python benchmarks/pairs.py OLD_TREE [ROUNDS] commands [all]   short ones; `build --all`, too

Both trees are installed (`pip install -e`), which makes the links that are read here. Every round
starts a process for each tree. Shown is the least processor time of all rounds, which other work on
the machine disturbs least, old and new, and the ratio of the new to the old.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path
from time import process_time
from typing import Any

ROOT = Path(__file__).parent.parent
IDS = "13,7932,15851,23770,31689,39608,47527,5189,13108,21027"
SIZES = ("4", "256", "8", "1000", "64")  # layers, width, heads, words, tokens
COMMANDS = ("--help", "list", "build cat-sat")
AT_LEAST = 0.3  # seconds of a measurement


def least(work: Callable[[], object]) -> float:
    """The least time of one call, in ms."""
    times: list[float] = []
    while len(times) < 3 or sum(times) < AT_LEAST:
        start = process_time()
        work()
        times.append(process_time() - start)
    return 1e3 * min(times)


def small() -> dict[str, float]:
    """Evaluation of the forward pass, an edited weight to the logits, and the same of gradients."""
    from cellformer import workbooks
    from cellformer.engine import Evaluator
    from cellformer.engine.cells.gradient import backward
    from cellformer.engine.learning import objective
    from cellformer.engine.models import checkpoint

    found: dict[str, float] = {}

    def measure(name: str, model: Any, ids: list[int]) -> None:
        live, edits = Evaluator(model.graph(ids)), count()

        def edit() -> None:
            live.set("blocks.0.attn.h0.W_V", 1, 1, next(edits) % 7 + 0.5)
            live.recompute()

        def with_gradients() -> Any:
            graph = model.graph(ids)
            backward(graph, objective.loss(graph, ids))
            return graph

        found[f"{name}: forward pass"] = least(live.run)
        found[f"{name}: one edit"] = least(edit)
        found[f"{name}: with gradients, made"] = least(with_gradients)
        found[f"{name}: with gradients, computed"] = least(Evaluator(with_gradients()).run)

    for name in ("cat-sat", "dialogue-game"):
        book = workbooks.find(name)
        model = book.model()
        measure(name, model, model.vocabulary.encode(book.PROMPT))
    with tempfile.TemporaryDirectory() as folder:
        make = [sys.executable, str(ROOT / "benchmarks/gpt2_small.py"), folder, *SIZES]
        subprocess.run(make, check=True)
        measure("4 layers of width 256", checkpoint.load(folder), list(range(64)))
    return found


def build(folder: str) -> dict[str, float]:
    """Building the workbook of a checkpoint."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "cellformer", "build", folder, "--ids", IDS]
        subprocess.run([*command, "-o", f"{out}/x.xlsx"], check=True, stdout=subprocess.DEVNULL)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "build, ms of the processor": 1e3 * (used.ru_utime + used.ru_stime),
        "build, peak KB": float(used.ru_maxrss),
    }


def commands(with_all: bool) -> dict[str, float]:
    """Commands that a person waits for, in ms of the processor."""
    found: dict[str, float] = {}
    for words in (*COMMANDS, *["build --all"] * with_all):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with tempfile.TemporaryDirectory() as out:
            command = [sys.executable, "-m", "cellformer", *words.split()]
            subprocess.run(command, check=True, cwd=out, stdout=subprocess.DEVNULL)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        took = used.ru_utime - before.ru_utime + used.ru_stime - before.ru_stime
        found[words] = 1e3 * took
    return found


def measured(tree: str, folder: list[str]) -> dict[str, float]:
    """What a process of that tree takes."""
    environment = os.environ | {"PYTHONPATH": f"{tree}/build/links", "OMP_NUM_THREADS": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # so that compiled files are there
    command = [sys.executable, __file__, "--here", *folder]
    done = subprocess.run(
        command, env=environment, cwd=tree, check=True, stdout=subprocess.PIPE, text=True
    )
    return dict(json.loads(done.stdout))


def main() -> None:
    """Print a line for each measurement: old, new, ratio."""
    if sys.argv[1] == "--here":
        match sys.argv[2:]:
            case []:
                found = small()
            case ["commands", *which]:
                found = commands(which == ["all"])
            case [folder, *_]:
                found = build(folder)
        print(json.dumps(found))
        return
    old, rounds, *folder = [*sys.argv[1:2], *(sys.argv[2:] or ["10"])]
    best: list[dict[str, float]] = [{}, {}]
    for _ in range(int(rounds)):
        for k, tree in enumerate((old, str(ROOT))):
            for name, value in measured(tree, folder).items():
                best[k][name] = min(value, best[k].get(name, value))
    for name, value in best[0].items():
        print(f"{name}: {value:,.2f}, {best[1][name]:,.2f}, {best[1][name] / value:.2f}")


if __name__ == "__main__":
    main()
