"""A real Dask cluster on this machine, for the tests of `--scheduler`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.command import ROOT


@contextmanager
def local_cluster(workers: int) -> Iterator[Any]:
    """Give a cluster of so many worker processes, which can import the tool; skip, visibly, without the extra."""
    distributed = pytest.importorskip("distributed", reason="the extra cluster is not installed")
    with distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address=":0",  # without it one more port is taken, always the same
        env={"PYTHONPATH": str(ROOT)},
    ) as cluster:
        yield cluster
