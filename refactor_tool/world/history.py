"""What the history of a repository says about two commits."""

from __future__ import annotations

from pathlib import Path

from refactor_tool.model import EnvironmentFailure
from refactor_tool.world.git import Git
from refactor_tool.world.objects import Objects
from refactor_tool.world.place import locate
from refactor_tool.world.text import shell_line


def merge_base(path: Path | None, one: str, other: str) -> str:
    """Return the id of the commit where two refs parted.

    Raises EnvironmentFailure for an unknown ref, and where there is no such commit or a shallow clone hides it.
    """
    git = Git.at(locate(path))
    with Objects(git) as objects:
        ids = [objects.commit(ref).oid for ref in (one, other)]
    reply = git.call("merge-base", *ids)
    if reply.code == 0:
        return reply.out.decode().strip()
    at = str(git.root)
    if git.run("rev-parse", "--is-shallow-repository").strip() == b"true":
        raise EnvironmentFailure(
            f"{at}: where {one} and {other} parted is cut off (a shallow clone)",
            f"to fetch all of it: {shell_line('git', '-C', at, 'fetch', '--unshallow')}",
        )
    raise EnvironmentFailure(f"{at}: {one} and {other} have no history in common", "give --base a commit of this one")
