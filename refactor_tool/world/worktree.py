"""A series written into a work tree as one transaction, and taken back as one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

from refactor_tool.model import Conflict, EnvironmentFailure, File, FileChange, Plan, UsageError, blob_id
from refactor_tool.record import record
from refactor_tool.world.disk import Disk, list_worktree
from refactor_tool.world.git import Git
from refactor_tool.world.guard import refuse_dirty, refuse_elsewhere, refuse_moved
from refactor_tool.world.journal import Replaced, TreeChanged
from refactor_tool.world.place import Place
from refactor_tool.world.text import disk_name, first_names, shell_line
from refactor_tool.world.transaction import Write, replace_files, replace_files_within
from refactor_tool.world.tree import read_tree, tracked_prefix


@record
class Change:
    """What is to be written, by path below the top of the work tree, and what takes it back."""

    writes: Mapping[str, Write | None]
    undo: TreeChanged


def prepare(git: Git, place: Place, path: Path | None, plan: Plan) -> Change:
    """Check that the plan fits the work tree and return what to write; raises as `apply.apply_worktree` says."""
    if not plan.steps:
        raise ValueError("a plan without steps")
    if place.kind != "worktree":
        raise UsageError(f"{git.root}: a bare repository has no work tree", "apply to a branch")
    refuse_elsewhere(git)
    prefix = tracked_prefix(list_worktree(git), place)
    if prefix is None:
        raise UsageError(f"{git.root / place.below}: git ignores this folder", "give the checkout")
    refuse_dirty(git)
    now = read_tree(path)
    refuse_moved(plan.base.files, {name: (file.mode, file.oid) for name, file in now.files.items()})
    changes = _changes(plan, prefix)
    _refuse_filtered(git, changes)
    _refuse_unseen(git, changes)
    writes = {name: _write(git, name, change) for name, change in changes.items()}
    files = tuple(_replaced(name, changes[name], write) for name, write in writes.items())
    return Change(writes, TreeChanged(os.fspath(git.root), files, _missing_folders(git.root, writes)))


def write(git: Git, change: Change, stop_if_asked: Callable[[], None]) -> None:
    """Write all files, or none on any error; emptied folders go, as they do in a checkout.

    Raises Conflict where one of them is not what it was when the change was prepared.
    """
    disk = Disk(git.root)
    moved = [file.path for file in change.undo.files if _oid(disk, file.path) != _id(file.before)]
    if moved:
        raise Conflict(f"the tree moved under us: {first_names(moved)}", "plan again")
    replace_files_within(stop_if_asked, git.root, change.writes)
    _remove_empty(git.root, [name for name, write in change.writes.items() if write is None])


def take_back(git: Git, entry: TreeChanged) -> str:
    """Give every file the bytes it had; Conflict, with nothing changed, where one was changed since."""
    if entry.root != os.fspath(git.root):
        raise Conflict(
            f"{git.root}: the last apply wrote into another work tree, {entry.root}",
            f"undo it there: refactor-tool undo {shell_line(entry.root)}",
        )
    disk = Disk(git.root)
    changed, writes = [], {}
    for file in entry.files:
        found = _oid(disk, file.path)
        if found == file.after:
            writes[file.path] = None if file.before is None else Write(file.before, file.was_executable)
        elif found != _id(file.before):
            changed.append(file.path)
    if changed:
        raise Conflict(
            f"changed since they were written: {first_names(changed)}; nothing was taken back",
            "undo those changes first, or take the rest back by hand with git restore",
        )
    replace_files(git.root, writes)
    for folder in reversed(entry.folders):
        with suppress(OSError):
            (git.root / disk_name(folder)).rmdir()
    return f"work tree: {len(entry.files)} file{'s' * (len(entry.files) > 1)} as before"


def _changes(plan: Plan, prefix: str) -> dict[str, FileChange]:
    """Return what the whole series does to each file, by its path below the top of the work tree."""
    return {f"{prefix}{change.path}": change for change in plan.base.changes_to(plan.final)}


def _refuse_filtered(git: Git, paths: Iterable[str]) -> None:
    """Refuse files whose bytes in the work tree git makes from others, line ends aside."""
    names = "".join(f"{path}\0" for path in paths).encode("utf-8", "surrogateescape")
    attributes = ("filter", "ident", "working-tree-encoding")
    answer = git.run("check-attr", "-z", "--stdin", *attributes, stdin=names, as_user=True)
    fields = answer.decode("utf-8", "surrogateescape").split("\0")[:-1]
    for path, attribute, value in zip(fields[::3], fields[1::3], fields[2::3], strict=True):
        if value not in ("unspecified", "unset"):
            raise EnvironmentFailure(
                f"{path}: git converts this file on checkout (attribute {attribute})", "apply to a branch instead"
            )


def _refuse_unseen(git: Git, changes: Mapping[str, FileChange]) -> None:
    """Refuse to write where the disk is not as the snapshot says: hidden by a sparse checkout, or ignored by git."""
    disk = Disk(git.root)
    for path, change in changes.items():
        if change.before is None and os.path.lexists(git.root / disk_name(path)):
            raise Conflict(f"{path}: a file that git ignores is in the way", "move it away, or apply to a branch")
        if change.before is not None and disk.read(path) is None:
            raise Conflict(
                f"{path}: hidden by a sparse checkout",
                f"apply to a branch, or: git -C {shell_line(str(git.root))} sparse-checkout disable",
            )


def _write(git: Git, path: str, change: FileChange) -> Write | None:
    if change.after is None:
        return None
    executable = change.after.mode == "100755"
    if change.before is None:
        return Write(_as_checked_out(git, path, change.after), executable)
    return Write(change.after.data, executable if change.after.mode != change.before.mode else None)


def _as_checked_out(git: Git, path: str, file: File) -> bytes:
    """Return a new file's bytes with the line ends that git would give it."""
    return git.run("cat-file", "--filters", f"--path={path}", git.write_blob(file.data), as_user=True)


def _replaced(path: str, change: FileChange, write: Write | None) -> Replaced:
    before = change.before
    return Replaced(
        path,
        before=None if before is None else before.data,
        after=_id(None if write is None else write.data),
        was_executable=before is not None and before.mode == "100755",
    )


def _missing_folders(root: Path, writes: Mapping[str, Write | None]) -> tuple[str, ...]:
    parents = (folder.as_posix() for path, write in writes.items() if write for folder in PurePosixPath(path).parents)
    missing = {folder for folder in parents if not (root / disk_name(folder)).exists()}
    return tuple(sorted(missing, key=lambda folder: (folder.count("/"), folder)))


def _remove_empty(root: Path, removed: Sequence[str]) -> None:
    for path in removed:
        for folder in list(PurePosixPath(disk_name(path)).parents)[:-1]:
            with suppress(OSError):
                (root / folder).rmdir()


def _id(data: bytes | None) -> str | None:
    return None if data is None else blob_id(data)


def _oid(disk: Disk, path: str) -> str | None:
    """Return the blob id of what lies at a path now; "" where that is no file."""
    found = disk.read(path)
    return None if found is None else blob_id(found[0]) if found[1].startswith("100") else ""
