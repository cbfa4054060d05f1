"""Let `git grep` say which files of a large tree may hold a word, so that the others need not be read.

An answer is a superset: whoever needs to know looks into the files. None stands for no answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from refactor_tool.model import EnvironmentFailure
from refactor_tool.world.git import Git

Search: TypeAlias = Callable[[Git, Sequence[bytes]], "frozenset[str] | None"]
#: A tree with more Go files is large: for fewer a process more costs as much as to read them all.
MANY = 1_000


def search_tracked(git: Git, words: Sequence[bytes]) -> frozenset[str] | None:
    """Return the Go files that git tracks and that hold any of the words, by their paths in the work tree.

    Those that a sparse checkout hides, or that git takes for unchanged unseen, are not looked into.
    """
    return _grep(git, words)


def search_untracked(git: Git, words: Sequence[bytes]) -> frozenset[str] | None:
    """Return the Go files that git neither tracks nor ignores and that hold any of the words, and maybe others.

    Tracked ones may be left out: this walks the disk, and goes into no folder that is ignored or a repository.
    """
    return _grep(git, words, "--untracked")


def search_folder(root: Path, words: Sequence[bytes]) -> frozenset[str] | None:
    """Return the Go files of a folder that hold any of the words, whatever git thinks of it."""
    return _grep(Git(root), words, "--no-index")


def _grep(git: Git, words: Sequence[bytes], *where: str) -> frozenset[str] | None:
    wanted = [arg for word in words for arg in ("-e", word.decode("utf-8", "surrogateescape"))]
    try:
        reply = git.call("--no-literal-pathspecs", "grep", *where, *_FIXED, *wanted, "--", "*.go")
    except EnvironmentFailure:
        return None
    if reply.code not in (0, 1) or reply.err:  # a file that cannot be read is left out with a word on stderr
        return None
    return frozenset(reply.out.decode("utf-8", "surrogateescape").split("\0")[:-1])


#: Names alone, bytes as they are. Two threads are hardly faster here and cost a third more.
_FIXED = ("-l", "-z", "-a", "-F", "--threads=1", "--no-color", "--no-recurse-submodules")
