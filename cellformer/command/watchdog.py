"""A watchdog, which ends a program that does not end after a signal.

Python runs the handler of a signal between two of its own instructions: not while numpy, torch or
another library computes, and an exception that the handler raises can be lost. The number of a
signal is also written to a pipe, at once; a thread waits for it there.
"""

import atexit
import os
import signal
import sys
from collections.abc import Collection
from contextlib import suppress
from functools import cache
from threading import Thread
from time import sleep

PATIENCE = 2.0  # seconds in which a program ends by itself after a signal


@cache
def watch(numbers: Collection[int]) -> None:
    """End this program some seconds after one of these signals, which it handles, if it still
    runs. Not on Windows, which ends a program without asking it."""
    if sys.platform == "win32":
        return
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    signal.set_wakeup_fd(writes, warn_on_full_buffer=False)
    Thread(target=_wait, args=(reads, numbers), daemon=True).start()


def _wait(reads: int, numbers: Collection[int]) -> None:
    while (number := os.read(reads, 1)[0]) not in numbers:
        pass
    sleep(PATIENCE)
    tidying = Thread(target=_tidy, daemon=True)
    tidying.start()
    tidying.join(PATIENCE)
    os._exit(128 + number)


def _tidy() -> None:
    """End child processes, and delete unfinished files and temporary folders."""
    from multiprocessing import active_children

    from cellformer.engine.cells.files import delete_unfinished

    for child in active_children():
        with suppress(OSError):
            os.killpg(child.pid or 0, signal.SIGKILL)  # one with a group of its own, with that
        child.kill()
    delete_unfinished()
    atexit._run_exitfuncs()
