"""What git said, told as one line that says what is wrong and the command that helps."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from refactor_tool.model import EnvironmentFailure
from refactor_tool.world.text import first_names, shell_line

if TYPE_CHECKING:
    from refactor_tool.world.git import Git

_OWNER = re.compile(r"dubious ownership in repository at '(.+)'|unsafe repository \('(.+)' is owned")
_BARE = re.compile(r"safe\.bareRepository")
_MISSING = re.compile(r"promisor remote|unable to read [0-9a-f]{40}|bad object|(?i:missing (?:blob|tree|object))")
_NO_REPOSITORY = re.compile(r"not a git repository")
_TOO_NEW = re.compile(r"unknown repository extension|Expected git repo version")
_HEX = re.compile(r"[0-9a-fA-F]{4,64}")


def explain(git: Git, err: str, what: str) -> EnvironmentFailure:
    """Return git's complaint `err` about the command `what` as an error that says what helps."""
    at = str(git.root)
    if owner := _OWNER.search(err):
        return EnvironmentFailure(
            f"{at}: the repository belongs to another user, so git refuses to read it",
            f"if you trust it: git config --global --add safe.directory {shell_line(owner[1] or owner[2])}",
        )
    if _BARE.search(err):
        return EnvironmentFailure(
            f"{at}: git is configured to refuse bare repositories (safe.bareRepository)",
            "if you trust it: git config --global safe.bareRepository all",
        )
    if _MISSING.search(err):
        return missing_objects(git)
    if _NO_REPOSITORY.search(err):
        return EnvironmentFailure(f"{at}: {_last_line(err)}", "give a clone")
    if _TOO_NEW.search(err):
        return EnvironmentFailure(
            f"{at}: this git cannot read the repository: {_last_line(err)}", "install a newer git"
        )
    return EnvironmentFailure(f"{at}: git {what} failed: {_last_line(err)}")


def missing_objects(git: Git) -> EnvironmentFailure:
    """Return the error for a repository that lacks objects its commits name."""
    promisors = git.call("config", "--local", "--get-regexp", r"^remote\..*\.promisor$").out.decode("utf-8", "replace")
    if promisors:
        remote = promisors.split()[0].removeprefix("remote.").removesuffix(".promisor")
        return EnvironmentFailure(
            f"{git.root}: a partial clone without the files to read; nothing is fetched behind your back",
            "to fetch them: " + shell_line("git", "-C", str(git.root), "fetch", "--refetch", "--no-filter", remote),
        )
    return EnvironmentFailure(
        f"{git.root}: objects are missing from the repository",
        f"to see which: git -C {shell_line(str(git.root))} fsck --connectivity-only",
    )


def unknown_ref(git: Git, ref: str) -> EnvironmentFailure:
    """Return the error for a ref that names no commit here: near names, or the history that is not here."""
    at = str(git.root)
    message = f"{at}: {ref!r} is not a commit here"
    names = git.ref_names()
    if not names and ref == "HEAD":
        return EnvironmentFailure(f"{at}: the repository has no commit yet", "commit first")
    is_id = _HEX.fullmatch(ref) is not None
    if is_id and git.call("rev-parse", f"--disambiguate={ref}").out.count(b"\n") > 1:
        return EnvironmentFailure(f"{at}: {ref!r} is the beginning of more than one object id", "give more digits")
    beyond = is_id or re.search(r"[~^@]", ref) is not None
    if beyond and git.run("rev-parse", "--is-shallow-repository").strip() == b"true":
        deepen = f"git -C {shell_line(at)} fetch --unshallow"
        return EnvironmentFailure(
            f"{message}: the history is cut off (a shallow clone)", f"to fetch all of it: {deepen}"
        )
    helps = []
    if near := _near(ref, names):
        helps.append(f"near names: {first_names(near, 5)}")
    remotes = git.run("remote").decode("utf-8", "replace").split()
    if remotes and not beyond and ref != "FETCH_HEAD":
        fetch = shell_line("git", "-C", at, "fetch", remotes[0], ref.removeprefix(f"{remotes[0]}/"))
        helps.append(f"if the remote has it: {fetch}, then name FETCH_HEAD")
    return EnvironmentFailure(
        message, "; ".join(helps) or f"to see what is there: git -C {shell_line(at)} for-each-ref"
    )


def _near(ref: str, names: tuple[str, ...]) -> list[str]:
    from difflib import get_close_matches

    same_end = [name for name in names if name.rpartition("/")[2] == ref.rpartition("/")[2]]
    return list(dict.fromkeys((*same_end, *get_close_matches(ref, names, 5, 0.6))))


def _last_line(err: str) -> str:
    """Return what git said that ended it: the first line marked fatal or error, else the last one."""
    lines = [line.strip() for line in err.splitlines() if line.strip()]
    marked = [line for line in lines if line.startswith(("fatal: ", "error: "))]
    line = marked[0] if marked else lines[-1] if lines else "it gave no reason"
    if line.endswith(":") and line != lines[-1]:
        line += " " + lines[lines.index(line) + 1]
    return line.removeprefix("fatal: ").removeprefix("error: ")
