"""Settings of writing a file that depend on its size and on the computer."""

from dataclasses import dataclass

from cellformer.engine.cells.compressing import ISAL
from cellformer.engine.studies.forecast import MOST_ADDRESSED
from cellformer.exporters.file.deflate import THREADS


@dataclass(frozen=True)
class Writing:
    """The sizes at which a file is written in another way, for any values of its cells."""

    most_addressed: int = MOST_ADDRESSED  # cells of a file in which all have an address
    n_processes: int = THREADS  # that write the sheets of a file of more cells
    with_isal: bool = ISAL is not None  # ISA-L compresses these, not zlib
    longest: int = 8192  # characters of a formula
    fewest_filled: int = 32  # rows of a block that are filled in from the text of one
    most_filled: int = 1024  # and from one text


USUAL = Writing()
