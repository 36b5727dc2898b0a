"""The workers for many prompts or workbooks: the options --jobs, --dask and --resume."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from cellformer.engine import InputError

if TYPE_CHECKING:
    from cellformer.work import Workers


@dataclass(frozen=True)
class Sharing:
    """The options that say who does the work."""

    jobs: int = 1
    dask: str | None = None
    resume: bool = False

    def check_none(self, remedy: str) -> None:
        """Raise InputError if any is given, where there is nothing to share."""
        if self != Sharing():
            given = "--dask" if self.dask else "--resume" if self.resume else "--jobs"
            raise InputError(f"{given} works only with many prompts or workbooks: {remedy}")

    @contextmanager
    def workers(self) -> Iterator["Workers"]:
        """The workers that are asked for. Raises InputError."""
        from cellformer.work import Workers  # only they wait for the library of processes

        if self.dask is None:
            yield Workers(jobs=self.jobs)
            return
        if self.jobs != 1:
            raise InputError("--jobs and --dask cannot be combined; give only one of them")
        try:
            distributed: Any = import_module("distributed")
        except ImportError:
            raise InputError("--dask needs dask: pip install 'cellformer[dask]'") from None
        try:
            client = distributed.Client(self.dask, timeout=10, set_as_default=False)
        except (OSError, ValueError):
            raise InputError(
                f"no Dask scheduler answers at {self.dask}; start a scheduler with `dask scheduler`"
            ) from None

        def alive() -> Collection[str]:
            try:
                found: Collection[str] = client.nthreads()
            except OSError:
                raise InputError(
                    f"the Dask scheduler at {self.dask} no longer answers; start the scheduler "
                    "again"
                ) from None
            return found

        with client:
            if not alive():
                raise InputError(
                    f"{self.dask} has no workers; start a worker with `dask worker {self.dask}`"
                )
            yield Workers(client.get_executor(pure=False), alive=alive)
