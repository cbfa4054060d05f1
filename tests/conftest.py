"""Options and fixtures that several test modules share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-goldens", action="store_true", help="write the wanted parts of the case files anew")


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Return the folder of real k3s trees; skip, visibly, where there is none."""
    where = os.environ.get("REFACTOR_TOOL_CORPUS", "")
    if not where:
        pytest.skip("REFACTOR_TOOL_CORPUS is not set: no real k3s trees to test against")
    if not (Path(where) / "k3s.git").is_dir():
        pytest.fail(f"REFACTOR_TOOL_CORPUS names {where}, which holds no k3s.git")
    return Path(where)
