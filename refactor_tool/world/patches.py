"""A series of patches applied to a snapshot by git, in a repository of its own that goes again.

Nothing of the examined repository is touched or even read: git gets the snapshot's bytes and the patches' text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from refactor_tool.edits import quote_path
from refactor_tool.model import Conflict, EnvironmentFailure, File, FileChange, Snapshot, UsageError
from refactor_tool.record import record
from refactor_tool.world.git import Git
from refactor_tool.world.objects import LINK, SUBMODULE, is_source
from refactor_tool.world.out import MARKER
from refactor_tool.world.scratch import scratch

_MAIL = re.compile(rb"^From [0-9a-f]{40} ", re.MULTILINE)
#: What a snapshot holds, as patterns of `git apply`, whose `*` matches slashes too.
_INCLUDED = ("--include=*.go", "--include=go.mod", "--include=*/go.mod")


@record
class Series:
    """Patches by name, in order, and the plan.json beside them, None without one."""

    patches: tuple[tuple[str, bytes], ...]
    plan: bytes | None = None


def read_series(path: Path) -> Series:
    """Read the `*.patch` files of a folder in the order of their names, or the mails of a mailbox.

    Raises UsageError where there is none, EnvironmentFailure for a file that cannot be read.
    """
    try:
        if path.is_dir():
            files = sorted(file for file in path.glob("*.patch") if file.is_file())
            patches = tuple((file.name, file.read_bytes()) for file in files)
            marker = path / MARKER
            plan = marker.read_bytes() if marker.is_file() else None
        else:
            data = path.read_bytes()
            starts = [found.start() for found in _MAIL.finditer(data)] or [0]
            mails = [data[start:end] for start, end in zip(starts, [*starts[1:], len(data)], strict=True)]
            patches = tuple((f"{number:04d}.patch", mail) for number, mail in enumerate(mails, 1))
            plan = None
    except FileNotFoundError:
        raise UsageError(f"{path}: no such folder or mailbox", "plan --out DIR writes a series") from None
    except OSError as error:
        raise EnvironmentFailure(f"{path}: cannot be read: {error.strerror}") from None
    if not any(b"\ndiff --git " in data for _, data in patches):
        raise UsageError(f"{path}: no patch is there", "name a folder that plan --out wrote")
    return Series(patches, plan)


def apply_series(base: Snapshot, patches: Iterable[tuple[str, bytes]]) -> list[tuple[str, tuple[FileChange, ...]]]:
    """Return what each patch changes in the snapshot left by the ones before it; mails without a patch are left out.

    Only Go source and go.mod are looked at. Raises Conflict for a patch that does not apply, or that
    makes one of them a link.
    """
    with scratch() as folder:
        git = Git(folder)
        git.run("init", "-q", "--bare", "--template=", ".")
        git.run("fast-import", "--quiet", stdin=b"".join(_stream(base)))
        index = {"GIT_INDEX_FILE": str(folder / "index")}
        git.run("read-tree", "refs/heads/base", env=index)
        out = []
        tree = git.run("write-tree", env=index).decode().strip()
        for name, data in patches:
            if b"\ndiff --git " not in data:
                continue
            reply = git.call("apply", "--cached", "--whitespace=nowarn", *_INCLUDED, "-", stdin=data, env=index)
            if reply.code != 0:
                why = next((line for line in reply.err.splitlines() if line.startswith("error: ")), "it is no patch")
                raise Conflict(
                    f"{name} does not apply: {why.removeprefix('error: ')}",
                    "name the tree that the series was made from: PATH, --ref REF",
                )
            after = git.run("write-tree", env=index).decode().strip()
            out.append((name, _changes(git, tree, after, name)))
            tree = after
    return out


def _stream(base: Snapshot) -> Iterable[bytes]:
    """Yield the snapshot as one commit for `git fast-import`."""
    yield b"commit refs/heads/base\ncommitter a <a> 0 +0000\ndata 0\n"
    for path, file in base.looked_through():
        yield b"M %s inline %s\ndata %d\n" % (file.mode.encode(), quote_path(path), len(file.data))
        yield file.data
        yield b"\n"


def _changes(git: Git, before: str, after: str, name: str) -> tuple[FileChange, ...]:
    raw = git.run("diff-tree", "-r", "-z", "--raw", "--no-renames", "--full-index", before, after)
    fields = raw.decode("utf-8", "surrogateescape").split("\0")[:-1]
    out = []
    for head, path in zip(fields[::2], fields[1::2], strict=True):
        old_mode, new_mode, old, new, _ = head.removeprefix(":").split(" ")
        if is_source(path):
            if new_mode in (LINK, SUBMODULE):
                raise Conflict(f"{name} makes {path} a link, which is not read", "leave the link out of the series")
            out.append(FileChange(path, _file(git, old_mode, old), _file(git, new_mode, new)))
    return tuple(sorted(out, key=lambda change: change.path))


def _file(git: Git, mode: str, oid: str) -> File | None:
    return File(git.run("cat-file", "blob", oid), mode, oid) if mode in ("100644", "100755") else None
