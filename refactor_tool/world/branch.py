"""A series as commits on a new branch, by plumbing alone: no hook, no filter, no work tree, no index of the user's.

One ref is created at the very end. A failure before that leaves unreachable objects, which `git gc` removes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from refactor_tool.model import Conflict, FileChange, Plan, UsageError
from refactor_tool.record import record
from refactor_tool.world.git import Git
from refactor_tool.world.guard import refuse_dirty, refuse_moved
from refactor_tool.world.journal import BranchMade
from refactor_tool.world.objects import Commit, Objects
from refactor_tool.world.place import Place
from refactor_tool.world.scratch import scratch
from refactor_tool.world.text import shell_line
from refactor_tool.world.tree import list_commit


@record
class Commits:
    """Commits nothing refers to yet: the ref that is to be made, their ids in order, and the one they start from."""

    ref: str
    commits: tuple[str, ...]
    base: str


def make_commits(git: Git, place: Place, plan: Plan, branch: str, *, messages: Sequence[str], author: str) -> Commits:
    """Write the blobs, trees and commits of the plan; raises as `apply.apply_branch` says."""
    if not plan.steps or len(messages) != len(plan.steps):
        raise ValueError(f"{len(messages)} messages for {len(plan.steps)} steps")
    ref = _new_ref(git, branch)
    person = _person(author, plan.base.committed_at)
    if plan.base.commit is None:
        raise UsageError(f"{git.root}: the plan is of no commit", "commit first, or apply to the work tree")
    if place.kind == "worktree":
        refuse_dirty(git)
    with Objects(git) as objects:
        base = objects.commit(plan.base.commit)
        if plan.base.source == "tree" and objects.commit("HEAD").oid != base.oid:
            raise Conflict(f"{git.root}: HEAD moved since the plan was made", "plan again")
        prefix, before = _files(objects, base, place)
        refuse_moved(plan.base.files, before)
        commits = _chain(git, prefix, plan, messages, person)
        _, after = _files(objects, objects.commit(commits[-1]), place)
        if after != {path: (file.mode, file.oid) for path, file in plan.final.files.items()}:
            raise AssertionError("the last commit's tree is not the planned one")
    return Commits(ref, commits, base.oid)


def create(git: Git, made: Commits, stop_if_asked: Callable[[], None]) -> None:
    """Make the branch; Conflict where one of that name came to be in the meantime, be it just the same."""
    tip = made.commits[-1]
    if _tip(git, made.ref) is not None:
        raise _taken(made.ref)
    stop_if_asked()
    reply = git.call("update-ref", "-m", "refactor-tool: apply", made.ref, tip, "0" * 40, env=_person(_NOBODY))
    if reply.code == 0 or _tip(git, made.ref) == tip:  # the signal that ends git may come too late
        return
    stop_if_asked()
    raise _taken(made.ref) if "exists" in reply.err else git.failure(reply.err, "update-ref")


def take_back(git: Git, made: BranchMade) -> str:
    """Delete the branch; Conflict where it moved on or is checked out."""
    name = made.ref.removeprefix("refs/heads/")
    found = _tip(git, made.ref)
    if found is None:
        return f"branch {name} is gone already"
    if found != made.tip:
        raise Conflict(
            f"branch {name} has moved since: it is at {found[:12]}, not at {made.tip[:12]}",
            f"to drop it with what was added: git -C {shell_line(str(git.root))} branch -D {shell_line(name)}",
        )
    holder = _checked_out_in(git, made.ref)
    if holder is not None:
        raise Conflict(
            f"branch {name} is checked out in {holder}",
            f"leave it first: git -C {shell_line(holder)} switch --detach {made.base[:12]}",
        )
    git.run("update-ref", "-d", made.ref, made.tip, env=_person(_NOBODY))
    return f"branch {name} is deleted; its base was {made.base[:12]}"


_NOBODY = "refactor-tool <refactor-tool@localhost>"


def _new_ref(git: Git, branch: str) -> str:
    ref = f"refs/heads/{branch}"
    if branch in ("", "HEAD") or branch.startswith("-") or git.call("check-ref-format", ref).code != 0:
        raise UsageError(f"{branch!r} is not a name git takes for a branch", "see git help check-ref-format")
    if _tip(git, ref) is not None:
        raise _taken(ref)
    return ref


def _tip(git: Git, ref: str) -> str | None:
    return git.call("rev-parse", "--verify", "--quiet", ref).out.decode().strip() or None


def _taken(ref: str) -> Conflict:
    name = ref.removeprefix("refs/heads/")
    return Conflict(f"a branch {name!r}, or one below or above that name, exists", "choose another --branch, or undo")


def _person(identity: str, when: int | None = None) -> dict[str, str]:
    """Return the environment that makes `Name <mail>` author and committer, at `when` in unix seconds."""
    match = re.fullmatch(r"([^<>\0\n]*[^<>\0\n\s]) <([^<>\0\n\s]+)>", identity)
    if match is None:
        raise UsageError(f"{identity!r} is not an identity", "write it as 'Name <mail>'")
    person = {"NAME": match[1], "EMAIL": match[2]} | ({} if when is None else {"DATE": f"{when} +0000"})
    return {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in person.items()}


def _files(objects: Objects, commit: Commit, place: Place) -> tuple[str, dict[str, tuple[str, str]]]:
    prefix, entries = list_commit(objects, commit, place)
    return prefix, {path: (entry.mode, entry.oid) for path, entry in entries.items() if entry.is_file}


def _chain(git: Git, prefix: str, plan: Plan, messages: Sequence[str], person: Mapping[str, str]) -> tuple[str, ...]:
    commits = [plan.base.commit or ""]
    with scratch() as folder:
        index = {"GIT_INDEX_FILE": str(folder / "index")}
        git.run("read-tree", commits[0], env=index)
        for step, message in zip(plan.steps, messages, strict=True):
            lines = b"".join(_index_line(git, prefix, change) for change in step.changes)
            git.run("update-index", "-z", "--index-info", stdin=lines, env=index)
            tree = git.run("write-tree", "--missing-ok", env=index).decode().strip()
            text = message.encode("utf-8", "surrogateescape")
            made = git.run("commit-tree", "--no-gpg-sign", "-p", commits[-1], tree, stdin=text, env=person)
            commits.append(made.decode().strip())
    return tuple(commits[1:])


def _index_line(git: Git, prefix: str, change: FileChange) -> bytes:
    """Write the blob and return what tells the index of it."""
    if change.after is None:
        entry = f"0 {'0' * 40}"
    else:
        if git.write_blob(change.after.data) != change.after.oid:
            raise AssertionError(f"{change.path}: the blob id in the plan is wrong")
        entry = f"{change.after.mode} {change.after.oid}"
    return f"{entry}\t{prefix}{change.path}\0".encode("utf-8", "surrogateescape")


def _checked_out_in(git: Git, ref: str) -> str | None:
    """Return the work tree that has the branch checked out."""
    where = ""
    for line in git.run("worktree", "list", "--porcelain").decode("utf-8", "surrogateescape").split("\n"):
        if line.startswith("worktree "):
            where = line.removeprefix("worktree ")
        elif line == f"branch {ref}":
            return where
    return None
