"""What this machine and this repository can do, for `doctor`."""

from __future__ import annotations

import platform
import shutil

from refactor_tool.model import EnvironmentFailure
from refactor_tool.record import record
from refactor_tool.world.git import Git
from refactor_tool.world.gotool import INSTALL, find_go
from refactor_tool.world.place import Place
from refactor_tool.world.text import shell_line


@record
class Fact:
    """One thing and its version or state, "" where it is missing; `hint` says what it is for and how to get it."""

    name: str
    value: str
    hint: str = ""
    required: bool = False


def machine() -> tuple[Fact, ...]:
    """Return the programs and packages that some command needs."""
    return (
        Fact("python", platform.python_version()),
        Fact("tree-sitter", _versions("tree-sitter", "tree-sitter-go")),
        Fact("git", _answer("git", "--version", after="git version "), "needed for repositories: install git", True),
        Fact("go", _go(), f"needed by verify: {INSTALL}"),
        Fact("dask", _versions("dask", "distributed"), "needed by --scheduler: pip install 'refactor-tool[cluster]'"),
    )


def repository(place: Place) -> tuple[Fact, ...]:
    """Return what the repository at a place is, and what of its history is not here; raises as git does."""
    if place.kind == "folder":
        return (Fact("kind", "a plain folder: no refs, no --base, no --staged"),)
    git = Git.at(place)
    answers = git.run("rev-parse", "--is-shallow-repository").decode().split()
    head = git.call("rev-parse", "--verify", "--quiet", "HEAD").out.decode().strip()
    branch = git.call("symbolic-ref", "--quiet", "--short", "HEAD").out.decode("utf-8", "replace").strip()
    unshallow = shell_line("git", "-C", str(place.root), "fetch", "--unshallow")
    return (
        Fact("kind", "a bare repository" if place.kind == "bare" else "a work tree"),
        Fact("head", f"{head[:12]} ({branch or 'detached'})" if head else "no commit yet"),
        Fact("history", f"shallow; all of it: {unshallow}" if answers == ["true"] else "complete"),
    )


def _go() -> str:
    try:
        return find_go().version
    except EnvironmentFailure:
        return ""


def _versions(*names: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return ", ".join(f"{name} {version(name)}" for name in names)
    except PackageNotFoundError:
        return ""


def _answer(program: str, *args: str, after: str) -> str:
    import subprocess

    found = shutil.which(program)
    if found is None:
        return ""
    try:
        done = subprocess.run([found, *args], capture_output=True, timeout=20, check=False, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace").strip().removeprefix(after) if done.returncode == 0 else ""
