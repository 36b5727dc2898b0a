"""A workbook that does not fit into the memory that is free: one layer of it is offered."""

from pathlib import Path

import pytest

from cellformer import memory
from cellformer.engine.studies.forecast import Forecast

SMOLLM2 = Forecast(139_927_759, 3_579_646, 1031.6, shared=True)  # LibreOffice holds it in 5.3 GB


def test_one_layer_is_offered_when_memory_is_short() -> None:
    told = memory.advice(SMOLLM2, 3_655_940, 4.0)
    assert told == (
        "LibreOffice needs 5.3 GB for this workbook, but only 4.0 GB are free. With --live "
        "blocks.0, one layer is live and the rest is constant: about 3,655,940 cells"
    )


@pytest.mark.parametrize(("n_cells", "available"), [(3_655_940, 6.0), (3_655_940, None), (0, 4.0)])
def test_nothing_is_offered_otherwise(n_cells: int, available: float | None) -> None:
    assert memory.advice(SMOLLM2, n_cells, available) == ""


def test_free_memory_is_read_from_the_system(tmp_path: Path) -> None:
    told = tmp_path / "meminfo"
    told.write_text("MemTotal:       24000000 kB\nMemAvailable:    4000000 kB\n")
    assert memory.free(told) == pytest.approx(4.096)
    assert memory.free(tmp_path / "none") is None
    assert (memory.free() is None) != memory.SYSTEM.exists()
