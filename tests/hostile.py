"""Hostile input: what a user mistypes, and what somebody who means harm puts into a file.

    python tests/hostile.py [N [KIND ...]]    # N of each kind; prints what was handled badly

A KIND is one of `hostile_kinds`, or the name of a file there, which stands for all that it has.

Every input must end within 20 s and below 1 GB, either well, with numbers that are finite, or with
exit code 2 and one line of at most 300 printable characters; and leave nothing half-written behind.
Each runs in a process of its own, forked from one that has everything imported.
"""

import atexit
import contextlib
import io
import os
import pkgutil
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent / "models"))

import hostile_kinds
from hostile_kinds.cases import GOLDEN, Case, Kind

from cellformer.__main__ import main as command
from cellformer.command.group import begin

SECONDS, MOST_KB, LONGEST = 20, 1_000_000, 300
TO_END = 8  # seconds after a signal
KB_OF_PARENT = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
FILES = [
    import_module(f"hostile_kinds.{m.name}") for m in pkgutil.iter_modules(hostile_kinds.__path__)
]
GROUPS: dict[str, dict[str, Kind]] = {
    file.__name__.rpartition(".")[2]: file.KINDS for file in FILES if hasattr(file, "KINDS")
}
KINDS = {name: kind for group in GROUPS.values() for name, kind in group.items()}


@dataclass(frozen=True)
class Outcome:
    """How the command ended."""

    code: int
    out: str
    err: str
    seconds: float
    kilobytes: int
    left: list[str]  # files that were not there before
    wrong: str = ""  # what is wrong with what it wrote


def faults(case: Case, outcome: Outcome) -> list[str]:
    """What was handled badly."""
    found = []
    lines = outcome.err.splitlines()
    disagrees = outcome.code == 1 and "DISAGREES" in outcome.out
    skipped = outcome.code == 3 and "skipped" in outcome.out  # as verify says of an engine
    if outcome.code not in (0, 2) and not (case.signal or disagrees or skipped):
        found.append(f"code {outcome.code}")
    if case.signal and outcome.code not in (0, 2, 129, 130, 143):
        found.append(f"code {outcome.code} after a signal")
    if case.signal and outcome.seconds > case.after + TO_END:
        found.append(f"ends {outcome.seconds - case.after:.0f} s after a signal")
    if outcome.code == 0 and case.must_fail:
        found.append("taken without a word")
    if "--csv" in case.args and not all(c.isprintable() or c in "\n\t" for c in outcome.out):
        found.append(f"control characters in the table: {ascii(outcome.out)[:200]}")
    found += filter(None, (outcome.wrong, case.said(outcome.out)))
    if "Traceback" in outcome.err:
        found.append(f"a traceback: {lines[-1][:150] if lines else ''}")
    elif outcome.code == 2 and not case.stderr:
        if len(lines) != 1 and case.stdout != "closed":
            found.append(f"{len(lines)} lines: {outcome.err[:200]!r}")
        if any(len(line) > LONGEST for line in lines):
            found.append(f"a line of {max(map(len, lines))} characters")
    if not all(line.isprintable() for line in lines):
        found.append(f"control characters: {outcome.err[:80]!r}")
    if outcome.code == 0 and any(word in outcome.out.split() for word in ("nan", "inf", "-inf")):
        found.append("numbers that are none, with code 0")
    if outcome.seconds > SECONDS:
        found.append(f"{outcome.seconds:.0f} s")
    if outcome.kilobytes - KB_OF_PARENT > MOST_KB:
        found.append(f"{outcome.kilobytes / 1e6:.1f} GB")
    if outcome.code and outcome.left and not case.stdout:
        found.append(f"left behind: {outcome.left}")
    if any(name.endswith(".part") for name in outcome.left):
        found.append(f"half-written: {outcome.left}")
    return found


def run(case: Case, folder: Path) -> Outcome:
    """Run the command on an input, in a process of its own."""
    work, logs = folder / "work", folder / "logs"
    for path in (work, logs):
        path.mkdir(parents=True)
    for name in ("out", "err"):
        (logs / name).touch()
    case.prepare(work)
    before = set(_tree(work))
    began = time.monotonic()
    child = os.fork()
    if not child:
        _become(case, work, logs)
    if case.signal:
        time.sleep(case.after)
        os.kill(child, case.signal)
    while os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() - began > SECONDS:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.005)
    _, status, used = os.wait4(child, 0)
    seconds = time.monotonic() - began
    texts = [(logs / name).read_text(errors="replace") for name in ("out", "err")]
    left = sorted(set(_tree(work)) - before) if work.is_dir() else []
    code = os.waitstatus_to_exitcode(status)
    wrong = case.wrong(work) if not code else ""
    return Outcome(code, *texts, seconds, used.ru_maxrss, left, wrong)


def _tree(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*"):
        yield str(path.relative_to(folder))


def _become(case: Case, work: Path, logs: Path) -> None:
    """Be the command, and end."""
    code = 1
    atexit._clear()  # the folders that the other process deletes at its end
    try:
        for number, name, wanted in ((1, "out", case.stdout), (2, "err", case.stderr)):
            if wanted == "closed":
                os.close(number)
                continue
            to = os.open(wanted or logs / name, os.O_WRONLY | (0 if wanted else os.O_CREAT))
            os.dup2(to, number)
        sys.stdout = _stream(1, case.stdout, case.environment)
        sys.stderr = _stream(2, case.stderr, case.environment)
        os.environ.update(case.environment)
        os.chdir(work)
        if case.file_limit:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # as Python itself has it
            resource.setrlimit(resource.RLIMIT_FSIZE, (case.file_limit, case.file_limit))
        if "{gone}" in case.args:
            shutil.rmtree(work)
        sys.argv = ["cellformer", *(arg for arg in case.args if arg != "{gone}")]
        command()
        code = 0
    except SystemExit as stopped:
        code = stopped.code if isinstance(stopped.code, int) else (0 if not stopped.code else 1)
    except BaseException:
        traceback.print_exc()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream:
                stream.flush()
        except (OSError, ValueError):
            code = code or 120  # as the interpreter ends
    os._exit(code)


def _stream(number: int, wanted: str, environment: dict[str, str]) -> object:
    if wanted == "closed":
        return None  # as the interpreter has it
    encoding = environment.get("PYTHONIOENCODING", "utf-8")
    return open(number, "w", encoding=encoding, closefd=False)


def import_all() -> None:
    """Import what commands import, once: the processes that are forked from this one have it."""
    with contextlib.redirect_stdout(io.StringIO()):
        begin()(["info", str(GOLDEN / "llama")], standalone_mode=False)
    for file in FILES:
        if hasattr(file, "ready"):
            file.ready()


def bad(kind: str, n: int, seed: int = 0) -> Iterator[tuple[Case, list[str]]]:
    """Those of `n` inputs of a kind that were handled badly, and how."""
    cases = KINDS[kind](random.Random(seed))
    for _, case in zip(range(n), cases, strict=False):
        with tempfile.TemporaryDirectory() as folder:
            outcome = run(case, Path(folder))
        if found := faults(case, outcome):
            yield case, [*found, outcome.err[-300:] if "Traceback" not in outcome.err else ""]


def main() -> None:
    """Try N inputs of each kind; exit code 1 where one is handled badly."""
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 150
    import_all()
    total = 0
    named = sys.argv[2:] or list(KINDS)
    for kind in [kind for name in named for kind in GROUPS.get(name, [name])]:
        for case, found in bad(kind, n):
            total += 1
            print(f"{kind}: {case.name}  {' '.join(case.args)[:120]!r}\n    {'; '.join(found)}")
        print(f"--- {kind}: {n} tried")
    print(f"{total} handled badly")
    sys.exit(1 if total else 0)


if __name__ == "__main__":
    main()
