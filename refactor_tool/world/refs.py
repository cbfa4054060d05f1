"""Which refs a name or a pattern means in a repository."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from refactor_tool.model import EnvironmentFailure, ToolError
from refactor_tool.record import record
from refactor_tool.world.git import Git, check_ref
from refactor_tool.world.place import locate
from refactor_tool.world.text import shell_line


@record
class Named:
    """One branch, remote branch or tag: in full, and by the shortest name that git takes for it alone."""

    full: str
    name: str
    local: bool


def expand_refs(path: Path | None, patterns: Sequence[str]) -> tuple[tuple[str, ToolError | None], ...]:
    """Return the refs that names and globs mean, each once, or in place of a glob why it means none.

    Each ref is called by a name that git takes for it alone. A name is taken as it is and not looked up, but where it
    may mean several refs it becomes the name of the one that git takes it for. A glob (`*`, `?`, `[`; `*` stands for
    slashes too) is held against local and remote branches and tags by their short names, and gives its matches in git's
    order, branches first. No pattern at all means every local branch. Raises UsageError or EnvironmentFailure where
    there is no repository.
    """
    git = Git.at(locate(path))
    every = _every(git)
    listed = tuple(_listed(every))
    if not patterns:
        local = [ref.name for ref in listed if ref.local]
        return tuple((name, None) for name in local) or (("*", _nothing(git, "has no local branch")),)
    names = {ref.full: ref.name for ref in listed}
    found: dict[str, ToolError | None] = {}
    for pattern in patterns:
        if not any(sign in pattern for sign in "*?["):
            meant = _meanings(pattern, every)
            found |= {names.get(meant[0], meant[0]) if len(meant) > 1 else pattern: _fault(pattern)}
            continue
        matches = [ref.name for ref in listed if fnmatchcase(ref.name, pattern)]
        none = _nothing(git, f"has no branch or tag that matches {pattern!r}")
        found |= dict.fromkeys(matches) if matches else {pattern: none}
    return tuple(found.items())


#: What git takes for something else before it looks for a ref, or for an option.
_TAKEN = re.compile(r"@|-.*|[A-Z_]*HEAD|[0-9a-fA-F]{40}|(main-worktree|worktrees)/.*", re.DOTALL)
#: Where git looks for a name, in its order (gitrevisions).
_PLACES = ("", "refs/", "refs/tags/", "refs/heads/", "refs/remotes/")


def _meanings(name: str, every: Mapping[str, str]) -> tuple[str, ...]:
    """Return the refs, in full, that git may take `name` for, the one it takes first; none where it takes no ref."""
    if _TAKEN.fullmatch(name):
        return ()
    asked = (*(f"{place}{name}" for place in _PLACES), f"refs/remotes/{name}/HEAD")
    return tuple(full for full in asked if full in every)


def _every(git: Git) -> dict[str, str]:
    """Return all refs by their full names in git's order, each with the ref it only points at, or ""."""
    answer = git.run("for-each-ref", "--format=%(refname)%00%(symref)").decode("utf-8", "surrogateescape")
    return {name: target for name, _, target in (line.partition("\0") for line in answer.split("\n")[:-1])}


def _listed(every: Mapping[str, str]) -> Iterator[Named]:
    """Yield branches and tags; `origin/HEAD` and the like, which only point at another, are left out."""
    for full, target in every.items():
        kind, _, rest = full.removeprefix("refs/").partition("/")
        if kind in ("heads", "remotes", "tags") and not target:
            short = (name for name in (rest, f"{kind}/{rest}") if _meanings(name, every) == (full,))
            yield Named(full, next(short, full), kind == "heads")


def _fault(name: str) -> ToolError | None:
    try:
        check_ref(name)
    except ToolError as error:
        return error
    return None


def _nothing(git: Git, what: str) -> EnvironmentFailure:
    see = shell_line("git", "-C", str(git.root), "for-each-ref")
    return EnvironmentFailure(f"{git.root}: {what}", f"to see what is there: {see}")
