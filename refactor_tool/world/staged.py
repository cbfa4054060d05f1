"""Read a snapshot from the index: what the next commit would hold, whatever lies in the work tree."""

from __future__ import annotations

from pathlib import Path

from refactor_tool.model import Conflict, Snapshot, UsageError
from refactor_tool.record import replace
from refactor_tool.world.aside import index_environment
from refactor_tool.world.disk import Listed
from refactor_tool.world.git import Git
from refactor_tool.world.objects import Entry, Objects
from refactor_tool.world.place import Place, locate
from refactor_tool.world.text import first_names, shell_line
from refactor_tool.world.tree import from_objects, relevant, tracked_prefix


def read_staged(path: Path | None = None) -> Snapshot:
    """Return the tree of the index, of another one of it where the caller is a hook that has that.

    `commit` is None: it is no commit yet. Raises UsageError where there is no work tree, Conflict for unmerged paths,
    and else as `read_ref` does.
    """
    place = locate(path)
    if place.kind != "worktree":
        raise UsageError(f"{place.root}: no work tree, so nothing is staged", "give a clone, or leave --staged out")
    git = Git.at(place)
    listing = _index(git, place)
    prefix = tracked_prefix(listing, place) or ""
    below = {name: listed.entry for name, listed in relevant(listing, prefix).items()}
    with Objects(git) as objects:
        return replace(from_objects(objects, place, below, {}, "tree", "staged", None), prefix=prefix)


def _index(git: Git, place: Place) -> list[Listed]:
    answer = git.run("ls-files", "-z", "-s", env=index_environment(place)).decode("utf-8", "surrogateescape")
    found: list[Listed] = []
    unmerged: list[Listed] = []
    for line in answer.split("\0")[:-1]:
        head, _, path = line.partition("\t")
        mode, oid, stage = head.split(" ")
        (found if stage == "0" else unmerged).append(Listed(Entry(path, mode, oid)))
    if unmerged:
        names = tuple(dict.fromkeys(listed.entry.path for listed in unmerged))
        raise Conflict(
            f"{git.root}: the index holds unmerged paths: {first_names(names)}",
            f"finish the merge, then: {shell_line('git', 'add', names[0])}",
        )
    return found
