"""Small trees, plans and fingerprints that the tests of the world share."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from refactor_tool.model import File, FileChange, Plan, Snapshot, Step
from tests.repo import Repo

GO_MOD = File(b"module example.org/m\n\ngo 1.24\n")
BASE = {
    "go.mod": GO_MOD,
    "main.go": File(b"package main\n\nfunc main() {}\n"),
    "pkg/a/a.go": File(b"package a\n\nvar A = 1\n"),
    "pkg/a/tool.go": File(b"package a\n", "100755"),
    "README.md": File(b"# readme\n"),
}


def new_repo(path: Path, files: Mapping[str, File] = BASE) -> Repo:
    """Make a repository at `path` with one commit of `files`."""
    repo = Repo(path)
    repo.commit(files)
    return repo


def plan_of(base: Snapshot, *steps: Mapping[str, bytes | None]) -> Plan:
    """Return a plan whose steps give the named files these bytes, or remove them."""
    made, tree = [], base
    for number, step in enumerate(steps, 1):
        changes = []
        for path, data in sorted(step.items()):
            before = tree.files.get(path)
            mode = "100644" if before is None else before.mode
            changes.append(FileChange(path, before, None if data is None else File(data, mode)))
        made.append(Step(f"step-{number}", f"Do step {number}", f"Body of step {number}.\n", (), tuple(changes)))
        tree = tree.with_changes(changes)
    return Plan(base=base, findings=(), steps=tuple(made), final=tree)


def be_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the test a person without any git configuration; the home is `home` below `tmp_path`."""
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in [name for name in os.environ if name.startswith(("GIT_", "XDG_"))]:
        monkeypatch.delenv(name)


def fingerprint(folder: Path) -> str:
    """Return a digest of every path below a folder: kind, mode, time of change, and bytes."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        found = path.lstat()
        digest.update(f"{path!r} {found.st_mode} {found.st_mtime_ns} {found.st_ino}\0".encode())
        if path.is_symlink():
            digest.update(os.fsencode(os.readlink(path)))
        elif path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()


def contents(folder: Path) -> dict[str, bytes | None]:
    """Return every path below a folder but `.git`, with its bytes; None for a folder."""
    found = (path for path in folder.rglob("*") if ".git" not in path.relative_to(folder).parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None for path in found}
