"""Write what the tool was asked to write, all of it or nothing, and never into a repository's own files.

An output folder may lie anywhere else, in the examined checkout too where the user named it there.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from refactor_tool.model import EnvironmentFailure, UsageError, blob_id
from refactor_tool.world.place import inside_git_dir, resolve
from refactor_tool.world.transaction import Write, replace_files, replace_files_within, unbroken

MARKER = "plan.json"


def write_dir(out: Path, files: Mapping[str, bytes], *, force: bool) -> None:
    """Make `files` (names below `out`, POSIX) the output in the folder `out`, which is made where it is missing.

    An earlier output of ours, known by its plan.json, is replaced, and so are those of branches below it: patches,
    results and pages go, whatever else lies there stays. With `force` other folders may be written to as well; of what
    lies there only files of the same names are touched. Raises UsageError for another folder that is not empty, for a
    patch of ours that was edited since, unless with `force`, and for one that is not ours and that `git am` would take
    with ours; EnvironmentFailure where the disk refuses.
    """
    writes: dict[str, Write | None] = {name: Write(data) for name, data in files.items()}
    with _told(out):
        folder = resolve(out)
        is_there = folder.exists()
        is_file = is_there and not folder.is_dir()
    _refuse_git(folder)
    if is_file:
        raise UsageError(f"{out}: a file, not a folder", "name another folder")
    if not is_there:
        _make(folder, writes)
        return
    with _told(out):
        is_free = not os.listdir(folder) or _is_ours(folder)
    if not is_free and not force:
        raise UsageError(f"{out}: not empty, and not an earlier output", "name another folder, or use --force")
    with _told(out):
        earlier = [*_earlier_output(folder)]
        patches = dict(_patches(folder, {name.rpartition("/")[0] for name in (*files, *earlier)}))
    for name in (name for name, state in patches.items() if state == "foreign"):
        raise UsageError(f"{out / name}: not of the series, and git am would take it too", "move it elsewhere")
    for name in (name for name, state in patches.items() if state == "edited" and not force):
        raise UsageError(f"{out / name}: edited since it was written", "move it elsewhere, or use --force to lose that")
    replace_files(folder, writes | dict.fromkeys(name for name in earlier if name not in files))


def write_file_atomic(path: Path, data: bytes) -> None:
    """Make `data` the content of the file at `path`; its folder must exist.

    A device, a pipe or an open descriptor, such as `/dev/stdout`, is written as it is. Raises UsageError where no file
    can be, EnvironmentFailure where the disk refuses.
    """
    require_writable(path)
    number, target = _descriptor(path), resolve(path)
    if number is None and (target.is_file() or not target.exists()):
        replace_files(target.parent, {target.name: Write(data)})
        return
    with _told(path), open(target if number is None else number, "wb", closefd=number is None) as file:
        file.write(data)


def require_writable(path: Path) -> None:
    """Raise what `write_file_atomic` would raise, as far as that can be known before."""
    with _told(path):
        number, target = _descriptor(path), resolve(path)
        if number is not None:
            os.fstat(number)
            return
        is_folder, has_folder = target.is_dir(), target.parent.is_dir()
        touched = target if target.exists() and not target.is_file() else target.parent
        if has_folder and not is_folder and not os.access(touched, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    _refuse_git(target)
    if is_folder or not has_folder:
        what = "a folder, not a file" if is_folder else f"there is no folder {path.parent}"
        raise UsageError(f"{path}: {what}", "name a file in a folder that exists")


def leads_to(path: Path | None) -> Path | int:
    """Return what is written under a name, None for standard output: what two names have in common is one file.

    A file is named by its path without links, what else is open by its descriptor.
    """
    number = 1 if path is None else _descriptor(path)
    if number is None:
        return Path(os.path.realpath(path or ""))
    try:
        is_file = stat.S_ISREG(os.fstat(number).st_mode)
    except OSError:
        is_file = False
    return Path(os.path.realpath(f"/dev/fd/{number}")) if is_file else number


def _descriptor(path: Path) -> int | None:
    """Return the open descriptor of this process that a name stands for, as /dev/stdout does for 1."""
    own = {os.path.realpath(folder) for folder in ("/dev/fd", "/proc/self/fd")}
    for _ in range(_LINKS):
        folder = os.path.realpath(path.parent)
        if folder in own:
            return int(path.name) if path.name.isdecimal() else None
        if not os.path.islink(path):
            return None
        path = Path(folder, os.readlink(path))
    return None


#: How many links in a row Linux follows.
_LINKS = 40


_PATCH = re.compile(r"\d{4,}-.*\.patch", re.DOTALL)
_OURS = re.compile(rf"{_PATCH.pattern}|plan\.json|report\.html|matrix\.html", re.DOTALL)


def _patches(out: Path, folders: Iterable[str]) -> Iterator[tuple[str, Literal["ours", "edited", "foreign"]]]:
    """Yield the patches in folders below `out`, by their names there, and what each of them is."""
    for folder in sorted(folders):
        here = out / folder
        names = sorted(filter(_PATCH.fullmatch, os.listdir(here))) if here.is_dir() else []
        told = _told_blobs(here) if names else {}
        for name in names:
            known = told is None or name in told
            is_same = told is None or (known and blob_id((here / name).read_bytes()) == told[name])
            yield f"{folder}/{name}".lstrip("/"), "ours" if is_same else "edited" if known else "foreign"


def _told_blobs(folder: Path) -> dict[str, str] | None:
    """Return the blob ids of the patches that were written with a folder's plan.json; None where it does not tell."""
    if not _is_ours(folder):
        return {}
    try:
        return {each["name"]: each["blob"] for each in json.loads((folder / MARKER).read_bytes())["patches"]}
    except (ValueError, TypeError, KeyError):  # of a version that did not tell, or edited itself
        return None


def _earlier_output(out: Path) -> Iterator[str]:
    """Yield the names below `out` of what lies beside a plan.json of ours and is named as we do."""
    for folder, folders, names in os.walk(out):
        folders.sort()
        if MARKER in names and _is_ours(Path(folder)):
            below = Path(folder).relative_to(out)
            yield from ((below / name).as_posix() for name in sorted(names) if _OURS.fullmatch(name))


def _is_ours(out: Path) -> bool:
    marker = out / MARKER
    if not marker.is_file():
        return False
    with marker.open("rb") as file:
        return b'"refactor-tool/' in file.read(256)


def _make(out: Path, writes: Mapping[str, Write | None]) -> None:
    """Make the folder whole under another name and rename it, so that it is never seen half full."""
    stage = out.parent / f".{out.name}.{os.urandom(6).hex()}"
    made = [folder for folder in out.parents if not folder.exists()]
    with unbroken() as stop_if_asked:
        try:
            with _told(out):
                for folder in reversed(made):
                    folder.mkdir()
                stage.mkdir()
                replace_files_within(stop_if_asked, stage, writes)
                stop_if_asked()
                os.rename(stage, out)
        except BaseException:
            import shutil

            shutil.rmtree(stage, ignore_errors=True)
            for folder in made:
                with suppress(OSError):
                    folder.rmdir()
            raise


@contextmanager
def _told(out: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise EnvironmentFailure(f"{out}: cannot be written: {error.strerror}", "nothing was written") from None


def _refuse_git(out: Path) -> None:
    if inside_git_dir(out):
        raise UsageError(f"{out}: inside a git repository's own files", "name a folder outside .git")
