"""Where batches of work run: here, in processes of this machine, or on a Dask cluster that is there already."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager

from refactor_tool.model import EnvironmentFailure


def default_jobs() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def executor(jobs: int, scheduler: str | None) -> Iterator[Executor | None]:
    """Give an executor for the time of a run: None for one job here, processes for more, a cluster for a scheduler.

    The results are the same whichever it is. Raises EnvironmentFailure where the cluster cannot be reached.
    """
    if scheduler is not None:
        with _cluster(scheduler) as cluster:
            yield cluster
    elif jobs <= 1:
        yield None
    else:
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
            yield pool


@contextmanager
def _cluster(address: str) -> Iterator[Executor]:
    try:
        from distributed import Client
    except ImportError:
        raise EnvironmentFailure(
            "--scheduler needs the package distributed", "install the extra: pip install 'refactor-tool[cluster]'"
        ) from None
    try:
        client = Client(address, timeout="10s", set_as_default=False)
    except (OSError, ValueError) as error:
        raise EnvironmentFailure(
            f"no Dask scheduler answers at {address}: {error}", "start one, or give the address that it prints"
        ) from None
    with client:
        yield client.get_executor(pure=False, retries=1)
