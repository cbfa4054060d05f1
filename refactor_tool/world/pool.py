"""Where work runs: here, in processes of this machine, or on a Dask cluster that is there already.

All three run the same function on the same items and give the results in the order of the items. An item whose worker
dies is tried once more, alone; what then has no result is `Lost`, and the others have theirs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from refactor_tool import __version__
from refactor_tool.model import EnvironmentFailure
from refactor_tool.record import record
from refactor_tool.world.transaction import unbroken

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

_T = TypeVar("_T")
_R = TypeVar("_R")


@record
class Lost:
    """Why an item has no result."""

    reason: str


class Pool(Protocol):
    """Something that works on `width` items at a time."""

    @property
    def width(self) -> int: ...

    def each(self, work: Callable[[_T], _R], items: Sequence[_T]) -> Iterator[_R | Lost]:
        """Yield what `work` makes of each item, in order; `work`, items and results must be picklable."""
        ...


def default_jobs() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def open_pool(jobs: int, scheduler: str | None) -> Iterator[Pool]:
    """Give a pool for the time of a run: this process for one job, processes for more, or the cluster of a scheduler.

    Raises EnvironmentFailure where the cluster cannot be reached, has no workers, or workers without this version.
    """
    if scheduler is not None:
        with _cluster(scheduler) as pool:
            yield pool
    else:
        yield Here() if jobs <= 1 else Processes(jobs)


class Here:
    """This process; an item that ends it ends everything."""

    width = 1

    def each(self, work: Callable[[_T], _R], items: Sequence[_T]) -> Iterator[_R | Lost]:
        return (work(item) for item in items)


@record
class Processes:
    """As many processes of this machine."""

    width: int

    def each(self, work: Callable[[_T], _R], items: Sequence[_T]) -> Iterator[_R | Lost]:
        from concurrent.futures.process import BrokenProcessPool

        with _processes(min(self.width, len(items))) as executor:
            for item, future in zip(items, _submit(executor, work, items), strict=True):
                try:
                    yield future.result()
                except BrokenProcessPool:
                    yield _alone(work, item)


def _alone(work: Callable[[_T], _R], item: _T) -> _R | Lost:
    """Work on an item in a process of its own, as any of those that ran together may have died of another."""
    from concurrent.futures.process import BrokenProcessPool

    with _processes(1) as executor:
        (future,) = _submit(executor, work, [item])
        try:
            return future.result()
        except BrokenProcessPool:
            return Lost("the process that worked on it died, maybe for lack of memory")


@contextmanager
def _processes(count: int) -> Iterator[ProcessPoolExecutor]:
    """Give an executor whose processes do not outlive an interrupt."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import active_children, get_context

    others = set(active_children())
    executor = ProcessPoolExecutor(max(1, count), mp_context=get_context("spawn"))
    try:
        yield executor
    except BaseException:
        for child in set(active_children()) - others:
            child.terminate()
        raise
    finally:
        executor.shutdown(cancel_futures=True)


def _submit(executor: Executor, work: Callable[[_T], _R], items: Sequence[_T]) -> list[Future[_R]]:
    """Hand all items over. Processes are started here, deaf to the terminal's interrupt: this process ends them."""
    import signal

    with unbroken() as stop_if_asked:
        if not hasattr(signal, "pthread_sigmask"):
            futures = [executor.submit(work, item) for item in items]
        else:
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                futures = [executor.submit(work, item) for item in items]
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
        stop_if_asked()
    return futures


# --- a cluster --------------------------------------------------------------------------------------


@record
class Cluster:
    """The workers of a Dask cluster, through an executor that the cluster's client made."""

    width: int
    executor: Executor

    def each(self, work: Callable[[_T], _R], items: Sequence[_T]) -> Iterator[_R | Lost]:
        futures = [self.executor.submit(work, item) for item in items]
        for item, future in zip(items, futures, strict=True):
            try:
                yield future.result()
            except Exception:
                wait(futures)
                yield self._alone(work, item)

    def _alone(self, work: Callable[[_T], _R], item: _T) -> _R | Lost:
        """Work on an item while nothing else runs: a worker that dies takes all down that wait for it."""
        try:
            return self.executor.submit(work, item).result()
        except Exception as error:
            return Lost(f"the cluster gave no result: {type(error).__name__}: {_one_line(error)}")


@contextmanager
def _cluster(address: str) -> Iterator[Cluster]:
    try:
        from distributed import Client
    except ImportError:
        raise EnvironmentFailure(
            "--scheduler needs the packages dask and distributed",
            "install the extra: pip install 'refactor-tool[cluster]'",
        ) from None
    try:
        client = Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError, RuntimeError) as error:
        raise EnvironmentFailure(
            f"no Dask scheduler answers at {address}: {_one_line(error)}",
            "start one, or give the address that it prints",
        ) from None
    with client:
        _require_workers(client, address)
        yield Cluster(max(1, sum(client.nthreads().values())), client.get_executor(pure=False))


#: How long a scheduler, and its first worker, may take to answer.
_PATIENCE = "10s"


def _require_workers(client: Any, address: str) -> None:
    """Raise EnvironmentFailure unless there is a worker, and all have this version: others may give other results."""
    try:
        client.wait_for_workers(1, timeout=_PATIENCE)
    except TimeoutError:
        raise EnvironmentFailure(
            f"the Dask scheduler at {address} has no worker", f"start one: dask worker {address}"
        ) from None
    try:
        found = set(client.run(installed_version).values())
    except Exception as error:
        found = {_one_line(error)}
    if found != {__version__}:
        others = ", ".join(sorted(found - {__version__}))
        raise EnvironmentFailure(
            f"workers of {address} cannot run this version of refactor-tool: {others}",
            f"install version {__version__} where the workers run",
        )


def installed_version() -> str:
    """Return the version of the tool where this is called."""
    return __version__


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
