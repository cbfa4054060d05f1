"""What must hold before anything is applied."""

from __future__ import annotations

from collections.abc import Mapping

from refactor_tool.model import Conflict, File
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


def refuse_moved(planned: Mapping[str, File], found: Mapping[str, tuple[str, str]]) -> None:
    """Raise Conflict where a tree, by path its mode and blob id, is not the one the plan was made on."""
    expected = {path: (file.mode, file.oid) for path, file in planned.items()}
    if expected != found:
        moved = sorted(path for path in {**expected, **found} if expected.get(path) != found.get(path))
        raise Conflict(f"the tree moved under us: {first_names(moved)}", "plan again")
