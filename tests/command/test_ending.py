"""How the command ends when it is told to, is killed, or nobody reads it: real processes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from zipfile import is_zipfile

import pytest
from conftest import cli, needs, script, typed

from cellformer import exercises
from cellformer.exporters.file import xlsx

UNFINISHED = ".cellformer-*.part"
LIMIT = 60  # seconds in which a process has done what is waited for

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has other signals"),
    pytest.mark.slow,
]


def wait_until(there: Callable[[], object]) -> None:
    until = time.monotonic() + LIMIT
    while not there():
        assert time.monotonic() < until
        time.sleep(0.005)


@contextmanager
def running(
    *args: str, cwd: Path, python: tuple[str, ...] = (), ignored: tuple[int, ...] = ()
) -> Iterator[subprocess.Popen]:
    """The command in a group of its own, as a terminal starts it, with signals that it ignores:
    these alone, whatever the tests themselves were started with."""

    def ignore() -> None:
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)

    command = [sys.executable, *python, "-m", "cellformer", *args]
    with subprocess.Popen(
        command,
        cwd=cwd,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=ignore,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def all_ended(group: int) -> bool:
    """Whether no process of a group is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.fixture(scope="module")
def large(tmp_path_factory) -> str:
    """A model of more cells than are written in memory: where there are two cores its workbook
    takes copies of the program, and a folder."""
    folder = tmp_path_factory.mktemp("large") / "model"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["", str(folder), "1", "32", "2", "180000", "16"])
        script("gpt2_small", "benchmarks").main()
    return str(folder)


@pytest.fixture(params=["in memory", "by copies of the program"])
def building(request, tmp_path: Path) -> Iterator[subprocess.Popen]:
    """A build onto a file that is there, held midway: `go_on` lets it go on."""
    args = ("dialogue-game",)
    if request.param != "in memory":
        args = (request.getfixturevalue("large"), "--ids", "0,1")
    midway = f"{UNFINISHED}/*" if len(args) > 1 else UNFINISHED
    for _ in range(5):  # where this process did not get its turn, the build may be done
        (tmp_path / "book.xlsx").write_text("what was there")
        with running("build", *args, "-o", "book.xlsx", cwd=tmp_path) as process:
            wait_until(lambda p=process: any(tmp_path.glob(midway)) or p.poll() is not None)
            with suppress(ProcessLookupError, ChildProcessError):
                os.killpg(process.pid, signal.SIGSTOP)
                os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            if any(not is_zipfile(file) for file in tmp_path.glob(midway)):
                yield process  # what is whole by now only waits for its name
                return
    pytest.fail("no build was seen midway")


def go_on(process: subprocess.Popen) -> None:
    os.killpg(process.pid, signal.SIGCONT)


@pytest.mark.parametrize("told", [signal.SIGHUP, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("to", [os.kill, os.killpg])
def test_terminated_build_leaves_the_old_file(building, tmp_path, told, to) -> None:
    """SIGHUP is what closing a terminal sends, to all that it started."""
    to(building.pid, told)
    go_on(building)
    _, err = building.communicate(timeout=LIMIT)
    assert building.returncode == 128 + told and "Traceback" not in err
    wait_until(lambda: all_ended(building.pid))
    assert [path.name for path in tmp_path.iterdir()] == ["book.xlsx"]
    assert (tmp_path / "book.xlsx").read_text() == "what was there"


def test_nohup_survives_a_closed_terminal(large, tmp_path: Path) -> None:
    args = ("build", large, "--ids", "0,1", "-o", "book.xlsx")
    with running(*args, cwd=tmp_path, ignored=(signal.SIGHUP,)) as process:
        wait_until(lambda: any(tmp_path.glob(f"{UNFINISHED}/*")))
        os.killpg(process.pid, signal.SIGHUP)
        assert process.wait(LIMIT) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["book.xlsx"]


def test_build_removes_files_of_a_killed_one(building, tmp_path: Path) -> None:
    building.kill()
    building.wait(LIMIT)
    with suppress(ProcessLookupError):
        go_on(building)  # its copies
    assert any(tmp_path.glob(UNFINISHED))

    def swept() -> bool:
        """Once its copies have ended, too, which they do within a second."""
        assert cli("build", "final-step", "-o", tmp_path / "other.xlsx").code == 0
        return not any(tmp_path.glob(UNFINISHED))

    wait_until(swept)
    assert {path.name for path in tmp_path.iterdir()} == {"book.xlsx", "other.xlsx"}
    assert (tmp_path / "book.xlsx").read_text() == "what was there"


def test_files_of_others_are_not_removed(building, tmp_path) -> None:
    """The build that runs goes on beside, and ends well."""
    others = [
        "notes.part",
        "tmpabcdefg.part",
        ".cellformer-notes.part",
        "cellformer-0123456789abcdef.part",
    ]
    for name in others:
        (tmp_path / name).write_text("somebody's")
    (tmp_path / ".cellformer-0123456789abcdef.part").symlink_to(tmp_path / "notes.part")
    assert cli("build", "final-step", "-o", tmp_path / "other.xlsx").code == 0
    assert {path.name for path in tmp_path.iterdir()} > {
        *others,
        ".cellformer-0123456789abcdef.part",
    }
    go_on(building)
    assert building.wait(LIMIT) == 0
    assert (tmp_path / "book.xlsx").stat().st_size > 10_000


def test_folder_of_a_killed_run_is_reused(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("the cat sat on the mat. " * 200)
    sizes = ("--layers", "1", "--d-model", "8", "--heads", "2", "--context", "8", "--steps", "2")
    left = tmp_path / "model" / ".cellformer-0123456789abcdef.part"
    (left / "new").mkdir(parents=True)
    (left / "before").mkdir()
    args = ("train", "--text", tmp_path / "text.txt", "-o", tmp_path / "model", *sizes)
    assert cli(*args).code == 0
    assert not left.exists() and (tmp_path / "model" / "config.json").exists()


def test_moved_files_of_a_killed_run_are_kept(tmp_path: Path) -> None:
    before = tmp_path / "model" / ".cellformer-0123456789abcdef.part" / "before"
    before.mkdir(parents=True)
    (before / "config.json").write_text("the only one")
    done = cli("train", "dialogue-game", "-o", tmp_path / "model", "--force")
    assert done.code == 2 and "before" in done.err and done.err.count("\n") == 1
    assert (before / "config.json").read_text() == "the only one"


@pytest.mark.parametrize("module", ["rich.text", "numpy", "typer"])
def test_ctrl_c_during_import_is_one_line(module: str, tmp_path: Path) -> None:
    with running("list", cwd=tmp_path, python=("-X", "importtime")) as process:
        assert any(line.split("|")[-1].strip() == module for line in process.stderr)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=LIMIT)
    said = [line for line in err.splitlines() if not line.startswith("import time:")]
    assert said == ["cellformer: interrupted; no unfinished file was left"]
    assert process.returncode == 130


# --- output that goes nowhere -------------------------------------------------------------------


BUSY = """
import multiprocessing, time
from hashlib import pbkdf2_hmac
from pathlib import Path
from tempfile import TemporaryDirectory
from cellformer.command import ending
from cellformer.engine.cells.files import replacing, temporary_folder

class Lost:
    def __del__(self):  # passes no exception on
        time.sleep(600)

def command(standalone_mode):
    with replacing(Path("book.xlsx")), temporary_folder(Path()) as there, TemporaryDirectory():
        (there / "sheet").touch()
        multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,)).start()
        Path("begun").touch()
        {}
        time.sleep(600)

ending.run(lambda: command)
"""


@pytest.mark.parametrize("busy", ["pbkdf2_hmac('sha256', b'', b'', 2**31 - 1)", "Lost()"])
@pytest.mark.parametrize("told", [signal.SIGHUP, signal.SIGTERM])
def test_a_program_that_handles_no_signal_is_ended(busy: str, told: int, tmp_path: Path) -> None:
    """Python handles none while native code computes, and a destructor loses what is raised."""
    (tmp_path / "temporary").mkdir()
    (tmp_path / "book.xlsx").write_text("what was there")
    told_so = dict(os.environ, TMPDIR=str(tmp_path / "temporary"))
    command = [sys.executable, "-c", BUSY.format(busy)]
    with (
        open(tmp_path / "said", "w") as said,
        subprocess.Popen(
            command, cwd=tmp_path, env=told_so, start_new_session=True, stderr=said
        ) as process,
    ):
        try:
            wait_until((tmp_path / "begun").exists)
            time.sleep(0.2)
            process.send_signal(told)
            assert process.wait(LIMIT) == 128 + told
            wait_until(lambda: all_ended(process.pid))
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    there = sorted(path.name for path in tmp_path.rglob("*"))
    assert there == ["begun", "book.xlsx", "said", "temporary"]
    assert (tmp_path / "said").read_text() == ""
    assert (tmp_path / "book.xlsx").read_text() == "what was there"


def in_shell(line: str, cwd: Path) -> subprocess.CompletedProcess:
    """A line of bash, in which `cellformer` is the command."""
    line = f'cellformer() {{ {sys.executable} -m cellformer "$@"; }}; {line}'
    return subprocess.run(["bash", "-c", line], cwd=cwd, capture_output=True, text=True)


@pytest.mark.parametrize(
    "line",
    [
        "run dialogue-game --json --show '*' | head -c 100",
        "list | true",
        "run cat-sat | true",
        "--help | true",
    ],
)
def test_closed_pipe_ends_quietly(line: str, tmp_path: Path) -> None:
    """As `cat` ends: 128 and the number of SIGPIPE, which no verdict has."""
    done = in_shell(f"cellformer {line}; echo ${{PIPESTATUS[0]}} >&2", tmp_path)
    assert done.stderr == "141\n"


def test_verify_exit_code_with_a_closed_pipe(built, tmp_path: Path) -> None:
    line = f"verify {built['final-step']} --engine ironcalc | true"
    done = in_shell(f"cellformer {line}; echo ${{PIPESTATUS[0]}}", tmp_path)
    assert (done.stdout, done.stderr) == ("141\n", "")


@pytest.mark.parametrize("args", ["list", "--help", "run cat-sat --json", "build final-step"])
def test_full_output_device(args: str, tmp_path: Path) -> None:
    done = in_shell(f"cellformer {args} > /dev/full", tmp_path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert done.stderr.startswith("cellformer: standard output: No space left on device")
    assert not [*tmp_path.glob(UNFINISHED)]


def test_closed_output(tmp_path: Path) -> None:
    done = in_shell("cellformer list >&-", tmp_path)
    assert done.returncode == 2
    assert done.stderr == (
        "cellformer: standard output is closed; send it to a file, or to /dev/null\n"
    )


def test_few_open_files_leave_no_folder(tmp_path: Path) -> None:
    done = in_shell("ulimit -n 12; cellformer build --all --jobs 2 -o made", tmp_path)
    assert done.returncode == 2 and "Too many open files; raise the limit with" in done.stderr
    assert done.stderr.count("\n") == 1 and not [*tmp_path.iterdir()]


@pytest.mark.skipif(sys.platform != "linux", reason="children are found in /proc")
@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGINT])
def test_terminated_grade_ends_what_computes_a_formula(tmp_path: Path, told: int) -> None:
    needs("ironcalc")
    book, (first, *_) = exercises.recipe("loss", 2).asked()
    path = xlsx.write(book, tmp_path / "blank.xlsx")
    endless = {(first.cell.grid.name, first.cell.rect.top, first.cell.rect.left): "=FACT(1E300)"}
    typed(path, tmp_path / "endless.xlsx", endless)
    with running("grade", "endless.xlsx", "endless.xlsx", cwd=tmp_path) as process:
        wait_until(lambda: computes(process.pid))
        (child,) = children(process.pid)
        process.send_signal(told)
        _, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 128 + told and "Traceback" not in err
    wait_until(lambda: not Path(f"/proc/{child}").exists())


def children(process: int) -> list[str]:
    return Path(f"/proc/{process}/task/{process}/children").read_text().split()


def computes(process: int) -> bool:
    """Whether a child has taken a second of processor time."""
    return any(
        int(Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[11]) > 100
        for child in children(process)
    )
