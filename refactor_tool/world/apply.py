"""Put a series into a repository, as commits on a new branch or into the work tree, and take it back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import assert_never

from refactor_tool.model import Plan, UsageError
from refactor_tool.record import record
from refactor_tool.world import branch as branches
from refactor_tool.world import worktree as worktrees
from refactor_tool.world.git import Git
from refactor_tool.world.journal import Application, BranchMade, Journal, TreeChanged
from refactor_tool.world.place import locate
from refactor_tool.world.transaction import unbroken


@record
class Applied:
    """What was done: the commits in order or the files written, and a line that says so."""

    summary: str
    commits: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


def apply_branch(path: Path | None, plan: Plan, branch: str, *, messages: Sequence[str], author: str) -> Applied:
    """Make one commit a step on a new branch, from the commit the plan was made on; nothing else changes.

    `messages` are the commit messages, one a step; `author` is `Name <mail>`, and the committer too; both dates are
    the base commit's, so the commit ids are the same on every machine. The trees are those `git am` makes of the
    series. The work tree, its index and its hooks have no part in it.

    Raises Conflict for a dirty work tree, a branch that exists, or a tree other than the plan read; UsageError for a
    name or identity git would not take; EnvironmentFailure as git does.
    """
    place = locate(path)
    git = Git.at(place)
    made = branches.make_commits(git, place, plan, branch, messages=messages, author=author)
    entry = BranchMade(made.ref, made.commits[-1], made.base)
    _do(git, entry, lambda stop_if_asked: branches.create(git, made, stop_if_asked))
    count = f"{len(made.commits)} commit{'s' * (len(made.commits) > 1)}"
    return Applied(f"branch {branch}: {count} on {made.base[:12]}; undo takes it back", commits=made.commits)


def apply_worktree(path: Path | None, plan: Plan) -> Applied:
    """Write the end of the series into the work tree, all files or none; the index stays as it is.

    Raises Conflict for a dirty work tree or one that is not what the plan read, UsageError where there is none,
    EnvironmentFailure for files that git filters on checkout, where git's work tree is elsewhere, or as git and the
    disk do.
    """
    place = locate(path)
    git = Git.at(place)
    change = worktrees.prepare(git, place, path, plan)
    _do(git, change.undo, lambda stop_if_asked: worktrees.write(git, change, stop_if_asked))
    paths = tuple(change.writes)
    count = f"{len(paths)} file{'s' * (len(paths) > 1)}"
    return Applied(f"work tree: {count} written; undo takes it back", paths=paths)


def undo(path: Path | None) -> str:
    """Take the last application back as one and return a line that says what was.

    Raises UsageError where there is none, Conflict, with nothing changed, where what it made was changed since.
    """
    git = Git.at(locate(path))
    with unbroken(), Journal(git) as journal:
        entry = journal.last
        match entry:
            case None:
                raise UsageError(f"{git.root}: nothing to undo: no apply is recorded here")
            case BranchMade():
                told = branches.take_back(git, entry)
            case TreeChanged():
                told = worktrees.take_back(git, entry)
            case _:
                assert_never(entry)
        journal.pop()
    return told


def _do(git: Git, entry: Application, act: Callable[[Callable[[], None]], None]) -> None:
    """Record what is about to be done and do it; where that fails nothing is recorded."""
    with unbroken() as stop_if_asked, Journal(git) as journal:
        journal.push(entry)
        try:
            act(stop_if_asked)
        except BaseException:
            journal.pop()
            raise
