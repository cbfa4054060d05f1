"""Options and fixtures that several test modules share."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from refactor_tool.model import EnvironmentFailure
from refactor_tool.record import replace
from refactor_tool.world import gotool
from tests.cluster import local_cluster


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-goldens", action="store_true", help="write the wanted parts of the case files anew")


def pytest_configure() -> None:
    """Let what the tests start be interrupted, also where a shell runs them in the background and has that ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Return the folder of real k3s trees; skip, visibly, where there is none."""
    where = os.environ.get("REFACTOR_TOOL_CORPUS", "")
    if not where:
        pytest.skip("REFACTOR_TOOL_CORPUS is not set: no real k3s trees to test against")
    if not (Path(where) / "k3s.git").is_dir():
        pytest.fail(f"REFACTOR_TOOL_CORPUS names {where}, which holds no k3s.git")
    return Path(where)


@pytest.fixture(scope="session")
def go(go_cache: Path) -> gotool.Go:
    """Return the Go toolchain that `verify` would use; skip, visibly, where there is none."""
    try:
        return gotool.find_go()
    except EnvironmentFailure as error:
        pytest.skip(f"{error.message}: {error.hint}")


@pytest.fixture(scope="session")
def unformatted(go: gotool.Go) -> Callable[[Path], list[str]]:
    """Return what names the Go files below a folder that gofmt would change."""

    def call(folder: Path) -> list[str]:
        answer = gotool.run(replace(go, program=go.goroot / "bin/gofmt"), ("-l", "."), folder, {}, 60)
        assert answer.code == 0, answer.err
        return answer.out.decode().splitlines()

    return call


@pytest.fixture(scope="session")
def go_cache(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Path:
    """Return a folder for XDG_CACHE_HOME. What Go compiles is kept in pytest's cache from run to run, where there is one."""
    kept = getattr(pytestconfig, "cache", None)
    folder = tmp_path_factory.mktemp("go") if kept is None else Path(kept.mkdir("verify"))
    (folder / "refactor-tool").mkdir(mode=0o700, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """Give a real cluster of two workers, for all tests that need one."""
    with local_cluster(2) as made:
        yield made
