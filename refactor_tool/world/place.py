"""What a PATH is: a work tree, a bare repository or a plain folder, and where in it the user stands.

Found by looking, not by asking git, so that a plain folder needs no git at all and no process is spent.
The caller's `GIT_DIR` and `GIT_WORK_TREE` count only where no PATH was given; `GIT_INDEX_FILE` never
says what a PATH is, only which index of that repository is meant (`aside.index_environment`).
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Literal

from refactor_tool.model import EnvironmentFailure, UsageError
from refactor_tool.record import record


@record
class Place:
    """A resolved PATH.

    `root` is the top of the work tree, the bare repository, or the folder itself, without links. `below` is the
    asked folder relative to `root` in POSIX form, "" at the top.
    """

    root: Path
    kind: Literal["worktree", "bare", "folder"]
    below: str = ""


def locate(path: Path | None = None) -> Place:
    """Find what `path` is; `None` is the current folder, or what the caller's git environment points at.

    Raises UsageError for a path that is missing or not a folder.
    """
    folder = _existing_folder(_default_path() if path is None else path)
    for candidate in (folder, *folder.parents):
        if git_dir(candidate) is not None:
            below = folder.relative_to(candidate).as_posix()
            return Place(candidate, "worktree", "" if below == "." else below)
        if _is_repository(candidate):
            return Place(candidate, "bare")
    return Place(folder, "folder")


def git_dir(folder: Path) -> Path | None:
    """Return the git directory of the work tree whose top is `folder`; None where it is not one."""
    entry = folder / ".git"
    if _is_repository(entry):
        return entry
    try:
        first = entry.read_bytes()[:4096] if entry.is_file() else b""
    except OSError:
        return None
    if not first.startswith(b"gitdir: "):
        return None
    return folder / os.fsdecode(first[len(b"gitdir: ") :].split(b"\n", 1)[0])


def resolve(path: Path) -> Path:
    """Return where a path leads, without links, whether something is there or not; OSError for a loop of links."""
    found = Path(os.path.realpath(path))
    if found.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return found


def inside_git_dir(path: Path) -> bool:
    """Say whether `path` lies in a repository's own files, where nothing but git may write."""
    resolved = resolve(path)
    lineage = (resolved, *resolved.parents)
    return any(part.name == ".git" or _is_repository(part) for part in lineage)


def _is_repository(folder: Path) -> bool:
    head, commondir = folder / "HEAD", folder / "commondir"
    try:
        return head.is_file() and (
            commondir.is_file() or ((folder / "objects").is_dir() and (folder / "refs").is_dir())
        )
    except OSError:
        return False


def _existing_folder(path: Path) -> Path:
    try:
        resolved = path.resolve(strict=True)
        is_folder = resolved.is_dir()
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(f"{path}: no such folder", "give a checkout, a bare repository or a folder") from None
    except (OSError, RuntimeError) as error:  # before Python 3.13 a loop of links is a RuntimeError
        why = getattr(error, "strerror", None) or "a loop of symbolic links"
        raise EnvironmentFailure(f"{path}: cannot be entered: {why}") from None
    if not is_folder:
        raise UsageError(f"{path}: not a folder", "give the checkout, not a file in it")
    return resolved


def _default_path() -> Path:
    here, work_tree, named = Path(), os.environ.get("GIT_WORK_TREE"), os.environ.get("GIT_DIR")
    if work_tree:
        return Path(work_tree)
    if not named:
        return here
    asked = Path(named).resolve()
    # In a hook git sets GIT_DIR to the repository of the current folder: then that work tree is meant.
    for folder in (here.resolve(), *here.resolve().parents):
        own = git_dir(folder)
        if own is not None and own.resolve() == asked:
            return here
    return asked.parent if asked.name == ".git" else asked
