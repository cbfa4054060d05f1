"""What must hold before anything is applied."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from refactor_tool.model import Conflict, EnvironmentFailure, File
from refactor_tool.world.git import Git
from refactor_tool.world.text import first_names, shell_line


def refuse_dirty(git: Git) -> None:
    """Raise Conflict where a tracked file of the work tree is not as committed; untracked ones do not count.

    Asked with the user's own configuration: a line end that git converts on checkout is no change.
    """
    answer = git.run(
        *("status", "--porcelain=v1", "-z", "--untracked-files=no", "--no-renames", "--ignore-submodules=dirty"),
        as_user=True,
    )
    dirty = [line[3:] for line in answer.decode("utf-8", "surrogateescape").split("\0")[:-1]]
    if dirty:
        raise Conflict(
            f"{git.root}: uncommitted changes in {first_names(dirty)}",
            f"commit them, or put them aside: git -C {shell_line(str(git.root))} stash",
        )


def refuse_elsewhere(git: Git) -> None:
    """Raise EnvironmentFailure where git's work tree is another folder (core.worktree): it would speak of that one."""
    top = Path(os.fsdecode(git.run("rev-parse", "--show-toplevel").removesuffix(b"\n")))
    if top.resolve() != git.root:
        raise EnvironmentFailure(
            f"{git.root}: git keeps the work tree of this repository in {top} (core.worktree)",
            "apply to a branch instead, or give that folder a repository of its own",
        )


def refuse_moved(planned: Mapping[str, File], found: Mapping[str, tuple[str, str]]) -> None:
    """Raise Conflict where a tree, by path its mode and blob id, is not the one the plan was made on."""
    expected = {path: (file.mode, file.oid) for path, file in planned.items()}
    if expected != found:
        moved = sorted(path for path in {**expected, **found} if expected.get(path) != found.get(path))
        raise Conflict(f"the tree moved under us: {first_names(moved)}", "plan again")
