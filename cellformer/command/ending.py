"""How the command ends: well, or in one line on standard error and exit code 2.

This is the one place where what a user can cause becomes that line: input that cannot be used, a
disk that is full, a stream that is closed, too little memory, a signal. A bug stays a traceback.
"""

import contextlib
import os
import signal
import sys
from types import FrameType

import typer
from typer.exceptions import TyperException

from engine import InputError
from engine.cells.errors import one_line

CANNOT, INTERRUPTED, TERMINATED = 2, 130, 143  # the last two as shells count signals


def run(app: typer.Typer) -> None:
    """Run the command to its end. Raises SystemExit, but for a bug."""
    signal.signal(signal.SIGTERM, _terminate)
    code, said = _outcome(app)
    if code != CANNOT:
        said = said or _flush()
    if said:
        code = code or CANNOT
        with contextlib.suppress(OSError, ValueError):
            print(f"cellformer: {one_line(said)}", file=sys.stderr, flush=True)
    sys.exit(code)


def _outcome(app: typer.Typer) -> tuple[int, str]:
    """The exit code, and the line to say, if any."""
    _take_any_text()
    if sys.stdout is None:
        return CANNOT, "standard output is closed; send it to a file, or to /dev/null"
    try:
        done = app(standalone_mode=False)
        if done == INTERRUPTED:  # as typer says it
            raise KeyboardInterrupt
        return done if isinstance(done, int) else 0, ""
    except InputError as error:
        return CANNOT, str(error)
    except TyperException as error:
        return _usage(error)
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED, "interrupted; nothing was left half-written"
    except MemoryError:
        return CANNOT, "there is not enough memory; take a smaller model or a shorter prompt"
    except OSError as error:
        return CANNOT, _of_system(error)


def _take_any_text() -> None:
    """Have characters that a terminal does not know printed as question marks."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _usage(error: TyperException) -> tuple[int, str]:
    """What is wrong with options and arguments; without any, the help."""
    if type(error).__name__ == "NoArgsIsHelpError":
        print(error)
        return CANNOT, ""
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "cellformer"
    said = str(getattr(error, "format_message", lambda: error)())
    return CANNOT, f"{said.rstrip('.')}; see {path} --help"


def _of_system(error: OSError) -> str:
    """What the system refused, and for which file."""
    if isinstance(error, BrokenPipeError):
        _to_nowhere()
        return "nobody reads the output any more"
    what = f"{error.filename}: " if error.filename else ""
    why = error.strerror or str(error)
    return f"{what}{why}; choose another file, or make room for it"


def _flush() -> str:
    """Hand on what was printed; why that cannot be done, if so."""
    try:
        sys.stdout.flush()
    except OSError as error:
        _to_nowhere()
        return f"standard output: {error.strerror}"
    return ""


def _to_nowhere() -> None:
    """Have the interpreter find nothing left to flush."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with contextlib.suppress(OSError, ValueError):
        os.dup2(nowhere, sys.stdout.fileno())


def _terminate(number: int, frame: FrameType | None) -> None:
    """End as after an error: temporary files go."""
    raise SystemExit(TERMINATED)
