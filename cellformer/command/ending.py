"""The end of the command: success, or one line on standard error and exit code 2.

Errors that a user can cause become that line here: invalid input, a full disk, a closed stream, too
little memory, a signal. A bug stays a traceback. The command's own imports take a second and happen
within `run`, so this file imports next to nothing at its top.
"""

import contextlib
import errno
import os
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, TextIO, cast

CANNOT = 2
INTERRUPTED, PIPE_CLOSED = 130, 141  # as shells count signals: 128 + SIGINT, + SIGPIPE
INTERRUPTION = "interrupted; no unfinished file was left"
TOLD_TO_END = ("SIGHUP", "SIGTERM")  # closing a terminal sends the first, which Windows lacks


class Output:
    """Standard output; its OSErrors name it as their file."""

    def __init__(self, stream: TextIO):
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        with _naming_output():
            return self._stream.write(text)

    def flush(self) -> None:
        with _naming_output():
            self._stream.flush()


@contextlib.contextmanager
def _naming_output() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        error.filename = "standard output"
        raise


def run(load: Callable[[], Callable[..., Any]]) -> None:
    """Import the command with `load` and run it. Raises SystemExit, or the exception of a bug."""
    _take_any_text()
    if sys.stdout is None:
        code, said = CANNOT, "standard output is closed; send it to a file, or to /dev/null"
    else:
        with contextlib.redirect_stdout(cast(TextIO, Output(sys.stdout))):
            code, said = _outcome(load)
    if said:
        with contextlib.suppress(OSError, ValueError):
            print(f"cellformer: {said}", file=sys.stderr, flush=True)
    sys.exit(code)


def _outcome(load: Callable[[], Callable[..., Any]]) -> tuple[int, str]:
    """Exit code, and the line to print, if any."""
    try:
        _on_signals(_leave, _leave)
        command = load()
        _on_signals(_terminate, signal.default_int_handler)
        _watch()
        done = command(standalone_mode=False)
        sys.stdout.flush()
        if done == INTERRUPTED:  # as typer says it
            raise KeyboardInterrupt
        return done if isinstance(done, int) else 0, ""
    except KeyboardInterrupt:
        return INTERRUPTED, INTERRUPTION
    except MemoryError:
        return CANNOT, "not enough memory; use a smaller model or a shorter prompt"
    except OSError as error:
        return _of_system(error)
    except SystemExit as stopped:
        if isinstance(stopped.__context__, BrokenPipeError):  # typer and rich make an exit of it
            return _of_system(stopped.__context__)
        raise
    except Exception as error:
        return _of_user(error)


def _of_user(error: Exception) -> tuple[int, str]:
    """Exit code and line for invalid input; any other error is a bug and is raised again."""
    from typer.exceptions import Abort, TyperException

    from cellformer.engine.cells.errors import InputError, one_line

    if isinstance(error, InputError):
        return CANNOT, one_line(str(error))
    if isinstance(error, TyperException):
        code, said = _usage(error)
        return code, one_line(said)
    if isinstance(error, Abort):
        return INTERRUPTED, INTERRUPTION
    raise error


def _take_any_text() -> None:
    """Print characters that the terminal's encoding lacks as question marks."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _usage(error: Any) -> tuple[int, str]:
    """Exit code and line for wrong options and arguments; prints the help if there are none."""
    if type(error).__name__ == "NoArgsIsHelpError":
        print(error)
        return CANNOT, ""
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "cellformer"
    said = str(getattr(error, "format_message", lambda: error)())
    return CANNOT, f"{said.rstrip('.')}; see {path} --help"


def _of_system(error: OSError) -> tuple[int, str]:
    """Exit code and line for an error of the operating system."""
    if error.filename == "standard output":
        _to_nowhere()
    if isinstance(error, BrokenPipeError):
        return PIPE_CLOSED, ""  # what reads it wants no more of it, as `head` does
    from cellformer.engine.cells.errors import one_line

    what = f"{error.filename}: " if error.filename else ""
    why = error.strerror or str(error)
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return CANNOT, f"{why}; raise the limit with `ulimit -n 1024`, or use fewer --jobs"
    return CANNOT, one_line(f"{what}{why}; choose another file, or free some disk space")


def _to_nowhere() -> None:
    """Redirect standard output to nowhere, so that nothing is flushed to it at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with contextlib.suppress(OSError, ValueError):
        os.dup2(nowhere, sys.stdout.fileno())


def _on_signals(told_to_end: Any, interrupted: Any) -> None:
    """Set signal handlers; a signal that is ignored, as under nohup, stays ignored."""
    for name in (*TOLD_TO_END, "SIGINT"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, interrupted if name == "SIGINT" else told_to_end)


def _watch() -> None:
    """End the program even where it cannot handle a signal."""
    from cellformer.command.watchdog import watch

    watch(tuple(getattr(signal, name) for name in TOLD_TO_END if hasattr(signal, name)))


def _leave(number: int, frame: FrameType | None) -> None:
    """Exit at once: nothing was written yet, and an exception during an import may be lost."""
    if number == signal.SIGINT:
        os.write(2, f"cellformer: {INTERRUPTION}\n".encode())
    os._exit(128 + number)


def _terminate(number: int, frame: FrameType | None) -> None:
    """Exit as after an error, which deletes temporary files. Later signals are ignored."""
    signal.signal(number, signal.SIG_IGN)
    sys.unraisablehook = lambda lost: None  # where no exception passes; the watchdog ends it then
    raise SystemExit(128 + number)
