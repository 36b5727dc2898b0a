"""Memory: the free memory here, and advice if a workbook needs more."""

import re
from pathlib import Path

from cellformer.engine.studies.forecast import Forecast

SYSTEM = Path("/proc/meminfo")  # Linux's; elsewhere nothing is known


def free(system: Path = SYSTEM) -> float | None:
    """The memory that programs may still take, in GB; None where the system does not tell."""
    try:
        told = re.search(r"MemAvailable:\s+(\d+) kB", system.read_text())
    except OSError:
        return None
    return None if told is None else int(told[1]) * 1024 / 1e9


def advice(expected: Forecast, n_cells: int, available: float | None) -> str:
    """A line that offers a workbook of `n_cells` with one live layer, if the whole one does not
    fit into the `available` GB. "" if it fits, if either is not known, or if there is no layer."""
    if available is None or expected.held <= available or not n_cells:
        return ""
    return (
        f"LibreOffice needs {expected.held:.1f} GB for this workbook, but only "
        f"{available:.1f} GB are free. With --live blocks.0, one layer is live and the rest is "
        f"constant: about {n_cells:,} cells"
    )
