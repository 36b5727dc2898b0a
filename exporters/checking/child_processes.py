"""Jobs in child processes, each in an empty folder, with a time limit.

Whatever a program does to its process (crash, fill the memory, never return) becomes one line; and
nothing in the user's current folder is run or read as settings.
"""

import contextlib
import os
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping
from multiprocessing import connection, get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

from cellformer.engine.cells.errors import InputError, one_line

Job = Callable[[], Any]
OnProgress = Callable[[str, str], None]


class Outcome(NamedTuple):
    """The result of a job, or why there is none."""

    value: Any = None
    fault: str = ""


class _Running(NamedTuple):
    process: BaseProcess
    answer: Connection
    end: float


def run(
    jobs: Mapping[str, Job],
    folder: Path,
    seconds: float,
    on_progress: OnProgress,
    remedy: str = "; allow more time with --timeout",
) -> dict[str, Outcome]:
    """Run all jobs at once, each in a process and an empty folder of its own; outcomes by name.

    `on_progress` is called with a job's name and its time limit when it begins, and with its name
    and "" when it ends; `remedy` is said of one that takes too long. Raises InputError if a job
    does.
    """
    running: dict[str, _Running] = {}
    found: dict[str, Outcome] = {}
    try:
        for name, job in jobs.items():
            running[name] = _begun(job, folder / name, seconds)
            on_progress(name, f"{seconds:,.0f} s at most")
        while running:
            wait = max(0.0, min(one.end for one in running.values()) - monotonic())
            connection.wait([one.answer for one in running.values()], wait)
            for name, one in list(running.items()):
                if one.answer.poll() or monotonic() >= one.end:
                    found[name] = _outcome(one, seconds, remedy)
                    _stop(running.pop(name))
                    on_progress(name, "")
    finally:
        for one in running.values():
            _stop(one)
    return {name: found[name] for name in jobs}


def _begun(job: Job, private: Path, seconds: float) -> _Running:
    """Start a process for a job. Where the system can fork, it shares this process's memory."""
    private.mkdir()
    context = get_context("fork") if sys.platform == "linux" else get_context("spawn")
    answer, there = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(job, private, there))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads
        process.start()
    there.close()
    return _Running(process, answer, monotonic() + seconds)


def _work(job: Job, private: Path, answer: Connection) -> None:
    """Run a job in this process, and send its result."""
    if hasattr(os, "setsid"):
        os.setsid()  # with what it starts it can be ended, and no key of the keyboard reaches it
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    os.chdir(private)
    os.environ |= dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(private))  # what it leaves goes too
    tempfile.tempdir = None
    try:
        answer.send(Outcome(job()))
    except InputError as error:
        answer.send(error)
    except MemoryError:
        answer.send(Outcome(fault="it needs more memory than this computer has"))
    except BaseException as error:  # a panic of Rust is no Exception
        said = one_line(f"{type(error).__name__}: {error}")[:200]
        answer.send(Outcome(fault=f"it failed ({said})"))
    answer.close()
    sys.stdout.flush()
    os._exit(0)  # a copy leaves what the program would do at its end to the program


def _outcome(one: _Running, seconds: float, remedy: str) -> Outcome:
    """The result of a process, or how it ended. Raises InputError."""
    if not one.answer.poll():
        return Outcome(fault=f"it takes longer than {seconds:,.0f} s{remedy}")
    try:
        found = one.answer.recv()
    except EOFError:
        one.process.join()
        return Outcome(fault=_died(one.process.exitcode or 0))
    if isinstance(found, InputError):
        raise found
    assert isinstance(found, Outcome)
    return found


def limit(seconds: int, memory: int) -> None:
    """Limit this process, where the system can: its processor time, and the bytes of memory that it
    may take besides those that it has."""
    if sys.platform != "linux":
        return
    import resource

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    room = pages * resource.getpagesize() + memory
    for kind, most in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, room)):
        hard = resource.getrlimit(kind)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, hard))


def _died(code: int) -> str:
    if code == -getattr(signal, "SIGXCPU", 0):
        return "it uses too much processor time"
    if code >= 0:
        return f"it ended without a result (exit code {code})"
    with contextlib.suppress(ValueError):
        return f"it crashed ({signal.Signals(-code).name}, signal {-code})"
    return f"it crashed (signal {-code})"


def _stop(one: _Running) -> None:
    """End a process, and its children."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(one.process.pid or 0, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        one.process.kill()
    one.process.join()
    one.answer.close()
