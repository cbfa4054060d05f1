"""Which refs a name or a pattern means in a repository."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from refactor_tool.model import EnvironmentFailure
from refactor_tool.world.git import Git, check_ref
from refactor_tool.world.place import locate


def expand_refs(path: Path | None, patterns: Sequence[str]) -> tuple[str, ...]:
    """Return the refs that names and globs mean, each once: names as given, the matches of a glob in git's order.

    A glob (`*`, `?`, `[`) is matched against branches, remote branches and tags by their short names; no pattern at all
    means every local branch. Raises EnvironmentFailure for a glob that matches nothing; a plain name is not looked up.
    """
    git = Git.at(locate(path))
    listed = git.run("for-each-ref", "--format=%(refname)", "refs/heads", "refs/remotes", "refs/tags").decode(
        "utf-8", "surrogateescape"
    )
    names = [(full.split("/", 2)[2], full.startswith("refs/heads/")) for full in listed.splitlines()]
    found: dict[str, None] = {}
    for pattern in patterns or ("*",):
        if not any(sign in pattern for sign in "*?["):
            check_ref(pattern)
            found.setdefault(pattern)
            continue
        matches = [name for name, local in names if fnmatchcase(name, pattern) and (patterns or local)]
        if not matches:
            raise EnvironmentFailure(
                f"{git.root}: no branch or tag matches {pattern!r}",
                f"to see what is there: git -C {git.root} branch -a",
            )
        found |= dict.fromkeys(matches)
    return tuple(found)
