"""check with the Go toolchain: what a change breaks fails the gate, and what was not verified is not verified."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from refactor_tool.model import EnvironmentFailure
from refactor_tool.world import gotool
from tests import trees
from tests.command import run
from tests.repo import Repo

BROKEN = "package agent\n\nfunc extra() int {\n\treturn undefinedName\n}\n"


@pytest.fixture
def toolchain(go: gotool.Go, go_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Need Go, and keep what it compiles."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(go_cache))


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    repo = Repo(tmp_path / "k3s")
    repo.commit(trees.after())
    return repo


@pytest.mark.usefixtures("toolchain")
def test_change_that_breaks_nothing_passes(repo: Repo) -> None:
    (repo.path / "pkg/agent/extra.go").write_text("package agent\n\nconst extra = 1\n")
    assert run("check", repo.path, "--base", "main", "--verify", "types").code == 0


@pytest.mark.usefixtures("toolchain")
def test_change_that_does_not_compile_fails_and_names_the_place(repo: Repo) -> None:
    (repo.path / "pkg/agent/extra.go").write_text(BROKEN)
    assert run("check", repo.path, "--base", "main").code == 0, "it waits for nothing"
    ran = run("check", repo.path, "--base", "main", "--verify", "types", "--format", "json")
    assert ran.code == 1
    held = [
        result
        for result in json.loads(ran.out)["gate"]["results"]
        if result["status"] == "open" and result["severity"] == "error"
    ]
    assert [(result["id"], result["path"], result["line"]) for result in held] == [("verify", "pkg/agent/extra.go", 4)]


@pytest.mark.usefixtures("toolchain")
def test_what_the_base_breaks_too_is_not_new(repo: Repo) -> None:
    repo.commit(trees.added(trees.after(), "pkg/agent/extra.go", BROKEN))
    (repo.path / "pkg/agent/other.go").write_text("package agent\n")
    assert run("check", repo.path, "--base", "main", "--verify", "types").code == 0


def test_no_toolchain_is_not_verified(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    def lacks() -> None:
        raise EnvironmentFailure("no Go toolchain", "install one")

    monkeypatch.setattr(gotool, "find_go", lacks)
    (repo.path / "pkg/agent/extra.go").write_text("package agent\n")
    ran = run("check", repo.path, "--base", "main", "--verify", "types", "--fail-on", "never")
    assert ran.code == 3 and "level types not verified: no Go toolchain (install one)" in ran.last


def test_level_that_is_none_is_a_usage_error(repo: Repo) -> None:
    assert run("check", repo.path, "--verify", "build").code == 2
