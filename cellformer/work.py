"""Work in parts, done by an executor of the standard library's interface, here or elsewhere.

`done` hands part after part to a `concurrent.futures.Executor`: processes here, dask.distributed's
`client.get_executor()`, mpi4py's `MPIPoolExecutor`. A worker that dies loses its part, which is
done again. Parts do not know of each other, so results do not depend on who does which.
"""

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from dataclasses import dataclass
from functools import partial
from multiprocessing import active_children, get_context
from typing import Any, TypeVar

from cellformer.engine.cells.errors import InputError, first_line
from cellformer.exporters.file.sheet_parts import as_child

Part = TypeVar("Part")
Result = TypeVar("Result")
MOST_UNDER_WAY = 64  # parts that an executor has at once
MOST_LOST = 3  # times that a part, done alone, may lose its worker
CHECK = 1.0  # seconds between two looks at the workers


@dataclass(frozen=True)
class Workers:
    """The workers for the parts. By default, this process computes one part after another."""

    executor: Executor | None = None
    jobs: int = 1  # processes here, if there is no executor
    alive: Callable[[], Collection[str]] | None = None  # names of the executor's workers

    def __post_init__(self) -> None:
        if self.executor is not None and not hasattr(self.executor, "submit"):
            raise InputError(
                f"executor is {self.executor!r}; an executor must have a method submit"
            )


HERE = Workers()


@dataclass(frozen=True)
class Failed:
    """The exception of a part, handed over as a result. An exception of a future then means that
    its worker was lost."""

    error: Exception


def done(
    task: Callable[[Part], Result],
    parts: Sequence[Part],
    workers: Workers = HERE,
    tell: Callable[[str], None] = print,
    named: Callable[[Part], str] = str,
) -> Iterator[tuple[int, Result]]:
    """The number and the result of each part, in the order in which they are done.

    `tell` is given a line for each lost worker, and `named` names a part in the error of one that
    loses its worker each time. Raises that InputError, and the exceptions of parts.
    """
    waiting, suspects, losses = deque(range(len(parts))), deque[int](), Counter[int]()
    with _Crew(workers, tell) as crew:
        while waiting or suspects or crew.under_way:
            # parts that were lost are done one at a time, to find the one that ends its worker
            while (waiting or suspects) and len(crew.under_way) < (1 if suspects else crew.width):
                k = (suspects or waiting).popleft()
                crew.submit(k, partial(_attempt, task, parts[k]))
            alone = len(crew.under_way) == 1
            for k, found, lost in crew.finished():
                if isinstance(found, Failed):
                    raise found.error
                if lost is None:
                    yield k, found
                    continue
                suspects.append(k)
                losses[k] += alone
                if losses[k] == MOST_LOST:
                    raise InputError(
                        f"{named(parts[k])}: its worker process ended {MOST_LOST} times, "
                        f"probably because memory ran out ({first_line(lost)}); leave this part "
                        "out, or use fewer workers"
                    )


def _attempt(task: Callable[[Part], Result], part: Part) -> Result | Failed:
    try:
        return task(part)
    except InputError as error:
        return Failed(InputError(str(error)))  # its subclasses cannot be sent
    except Exception as error:
        return Failed(error)


class _Here(Executor):
    """This process, as an executor."""

    def submit(self, work: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        found: Future[Any] = Future()
        found.set_result(work(*given, **named))
        return found


class _Crew:
    """An executor, and the parts that it does."""

    def __init__(self, workers: Workers, tell: Callable[[str], None]):
        self._workers, self._tell = workers, tell
        self._others = set(active_children())
        self._own = workers.executor is None
        self._executor = workers.executor or self._new()
        self._known = set(workers.alive() if workers.alive else ())
        self.width = MOST_UNDER_WAY if workers.executor else 2 * workers.jobs
        self.under_way: dict[Future[Any], int] = {}

    def _new(self) -> Executor:
        """Processes here; or this one, if no more are asked for or another executor broke."""
        if self._own and self._workers.jobs > 1:
            return ProcessPoolExecutor(self._workers.jobs, get_context("spawn"), as_child)
        self.width = 1
        return _Here()

    def __enter__(self) -> "_Crew":
        return self

    def __exit__(self, kind: object, error: BaseException | None, at: object) -> None:
        for future in self.under_way:
            future.cancel()
        if self._own:
            self._executor.shutdown(wait=False, cancel_futures=True)
        if self._own and error is not None:
            for child in set(active_children()) - self._others:
                child.terminate()

    def submit(self, k: int, work: Callable[[], Any]) -> None:
        """Begin a part."""
        try:
            future = self._executor.submit(work)
        except BrokenExecutor as error:
            future = Future()
            future.set_exception(error)
        except RuntimeError as error:
            raise InputError(
                f"the executor accepts no more work ({first_line(error)}); give a new executor"
            ) from None
        self.under_way[future] = k

    def finished(self) -> list[tuple[int, Any, Exception | None]]:
        """Each part that is done: its number, and its result, or the exception of its worker."""
        ready: Collection[Future[Any]]
        ready, _ = wait(self.under_way, CHECK, FIRST_COMPLETED)
        self._check()
        if any(isinstance(_fault(future), BrokenExecutor) for future in ready):
            ready, _ = wait(self.under_way)  # all that it had are lost
            self._replace()
        found: list[tuple[int, Any, Exception | None]] = []
        for future in sorted(ready, key=self.under_way.__getitem__):
            k = self.under_way.pop(future)
            fault = _fault(future)
            found.append((k, None if fault else future.result(), fault))
        return found

    def _check(self) -> None:
        """Say which workers of another executor are gone; it gives their parts to others."""
        if self._workers.alive:
            now = set(self._workers.alive())
            for name in sorted(self._known - now):
                self._tell(f"worker {name} is gone; other workers repeat its part")
            self._known = now

    def _replace(self) -> None:
        """Go on with new processes where one has died, or here where another executor broke."""
        then = "its part is repeated" if self._own else "this process does the rest"
        self._tell(f"a worker died; {then}")
        self._executor.shutdown(wait=False)
        self._executor = self._new()


def _fault(future: Future[Any]) -> Exception | None:
    """Why a future that is done has no result."""
    try:
        future.result()
    except Exception as error:  # also that it was cancelled
        return error
    return None
