"""Compare what `microgpt` learnt in LibreOffice with the retelling of the program, part by part.

    cellformer build microgpt -o microgpt.xlsx
    /usr/bin/python3 benchmarks/learn_in_libreoffice.py microgpt.xlsx 1020 window > found.json
    PYTHONPATH=.:tests:tests/gallery python benchmarks/microgpt.py found.json

1,000 steps train, and each of the 20 after them writes a name. Prints the largest differences of
losses and weights, whether the names are the same, and what a step takes here and in numpy.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
from test_microgpt import retold


def main(path: str) -> None:
    """The losses, the weights and the names of one run."""
    begun = time.process_time()
    losses, weights, names = retold()
    in_numpy = time.process_time() - begun
    ((way, found),) = json.loads(Path(path).read_text(encoding="utf-8")).items()
    gap = np.abs(np.array(found["losses"][: len(losses)]) - losses).max()
    print(f"{way}: {len(losses)} losses differ by {gap:.1e} at most")
    gap = max(_gap(found["weights"][name], values) for name, values in weights.items())
    print(f"{sum(w.size for w in weights.values())} weights differ by {gap:.1e} at most")
    written = [line[0] for line in found["names"]]
    print(f"{len(names)} names are {'the same' if written == names else 'different'}: {written}")
    steps = len(found["losses"]) - 1
    print(
        f"{steps / found['processor'] * 60:.1f} steps a minute of the processor, "
        f"{steps / found['clock'] * 60:.1f} on the clock; a step takes "
        f"{found['processor'] / steps / (in_numpy / len(losses)):,.0f} times as long as in numpy"
    )


def _gap(shown: list[list[float]], values: np.ndarray) -> float:
    """The largest difference of a block, which may stand on its sheet turned."""
    cells = np.array(shown, dtype=float)
    return float(np.abs((cells if cells.shape == values.shape else cells.T) - values).max())


main(*sys.argv[1:])
