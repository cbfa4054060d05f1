"""Which refs a name or a pattern means in a repository."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from refactor_tool.model import EnvironmentFailure, ToolError
from refactor_tool.record import record
from refactor_tool.world.git import Git, check_ref
from refactor_tool.world.place import locate
from refactor_tool.world.text import shell_line


@record
class Named:
    """One branch, remote branch or tag: the shortest name that means it alone, and whether it is a local branch."""

    name: str
    local: bool


def expand_refs(path: Path | None, patterns: Sequence[str]) -> tuple[tuple[str, ToolError | None], ...]:
    """Return the refs that names and globs mean, each once, or in place of a glob why it means none.

    A name is taken as it is and not looked up. A glob (`*`, `?`, `[`; `*` stands for slashes too) is held against local
    and remote branches and tags by their short names, and gives its matches in git's order, branches first. No pattern
    at all means every local branch. Raises UsageError or EnvironmentFailure where there is no repository.
    """
    git = Git.at(locate(path))
    listed = tuple(_listed(git))
    if not patterns:
        local = [ref.name for ref in listed if ref.local]
        return tuple((name, None) for name in local) or (("*", _nothing(git, "has no local branch")),)
    found: dict[str, ToolError | None] = {}
    for pattern in patterns:
        if not any(sign in pattern for sign in "*?["):
            found |= {pattern: _fault(pattern)}
            continue
        matches = [ref.name for ref in listed if fnmatchcase(ref.name, pattern)]
        none = _nothing(git, f"has no branch or tag that matches {pattern!r}")
        found |= dict.fromkeys(matches) if matches else {pattern: none}
    return tuple(found.items())


def _listed(git: Git) -> Iterator[Named]:
    """Yield what there is in git's order; `origin/HEAD` and the like, which only point at another, are left out."""
    places = ("refs/heads", "refs/remotes", "refs/tags")
    answer = git.run("for-each-ref", "--format=%(refname)%00%(symref)", *places).decode("utf-8", "surrogateescape")
    full = [name for name, _, target in (line.partition("\0") for line in answer.split("\n")[:-1]) if not target]
    short = Counter(name.split("/", 2)[2] for name in full)
    for name in full:
        _, kind, rest = name.split("/", 2)
        yield Named(rest if short[rest] == 1 else f"{kind}/{rest}", kind == "heads")


def _fault(name: str) -> ToolError | None:
    try:
        check_ref(name)
    except ToolError as error:
        return error
    return None


def _nothing(git: Git, what: str) -> EnvironmentFailure:
    see = shell_line("git", "-C", str(git.root), "for-each-ref")
    return EnvironmentFailure(f"{git.root}: {what}", f"to see what is there: {see}")
