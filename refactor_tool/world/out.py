"""Write what the tool was asked to write, all of it or nothing, and never into a repository's own files.

An output folder may lie anywhere else, in the examined checkout too where the user named it there.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from refactor_tool.model import EnvironmentFailure, UsageError, blob_id
from refactor_tool.world.place import inside_git_dir
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
    _refuse_git(out)
    writes: dict[str, Write | None] = {name: Write(data) for name, data in files.items()}
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out}: a file, not a folder", "name another folder")
    with _told(out):
        inside = sorted(os.listdir(out)) if out.exists() else []
        earlier = _is_ours(out)
    if not inside:
        _make(out, writes)
        return
    if not earlier and not force:
        raise UsageError(f"{out}: not empty, and not an earlier output", "name another folder, or use --force")
    with _told(out):
        patches = {name: _state(out, name) for name in _numbered(out, files)}
        stale = [name for name in _earlier_output(out) if name not in files]
    for name in (name for name, state in patches.items() if state == "foreign"):
        raise UsageError(f"{out / name}: not of the series, and git am would take it too", "move it elsewhere")
    for name in (name for name, state in patches.items() if state == "edited" and not force):
        raise UsageError(f"{out / name}: edited since it was written", "move it elsewhere, or use --force to lose that")
    replace_files(out, writes | dict.fromkeys(stale))


def write_file_atomic(path: Path, data: bytes) -> None:
    """Make `data` the content of the file at `path`; its folder must exist. A device or a pipe is written as it is.

    Raises UsageError where no file can be, EnvironmentFailure where the disk refuses.
    """
    target = path.resolve()
    _refuse_git(target)
    if target.is_dir() or not target.parent.is_dir():
        what = "a folder, not a file" if target.is_dir() else f"there is no folder {path.parent}"
        raise UsageError(f"{path}: {what}", "name a file in a folder that exists")
    if target.exists() and not target.is_file():
        with _told(path):
            target.write_bytes(data)
        return
    replace_files(target.parent, {target.name: Write(data)})


_OURS = re.compile(r"\d{4,}-.*\.patch|plan\.json|report\.html|matrix\.html", re.DOTALL)


_PATCH = re.compile(r"\d{4,}-.*\.patch", re.DOTALL)


def _numbered(out: Path, files: Iterable[str]) -> Iterator[str]:
    """Yield the patches in the folders of `files` and in those of an earlier output, by their names below `out`."""
    folders = {name.rpartition("/")[0] for name in (*files, *_earlier_output(out))}
    for folder in sorted(folders):
        names = sorted(os.listdir(out / folder)) if (out / folder).is_dir() else ()
        yield from (f"{folder}/{name}".lstrip("/") for name in names if _PATCH.fullmatch(name))


def _state(out: Path, name: str) -> Literal["ours", "edited", "foreign"]:
    """Say what a patch is by the plan.json beside it, which tells the blob id of each that was written with it."""
    path = out / name
    if not _is_ours(path.parent):
        return "foreign"
    try:
        ids = {each["name"]: each["blob"] for each in json.loads((path.parent / MARKER).read_bytes())["patches"]}
    except (ValueError, TypeError, KeyError):  # of a version that did not tell, or edited itself
        return "ours"
    if path.name not in ids:
        return "foreign"
    return "ours" if blob_id(path.read_bytes()) == ids[path.name] else "edited"


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
    target = out.resolve()
    stage = target.parent / f".{target.name}.{os.urandom(6).hex()}"
    made = [folder for folder in target.parents if not folder.exists()]
    with unbroken() as stop_if_asked:
        try:
            with _told(out):
                for folder in reversed(made):
                    folder.mkdir()
                stage.mkdir()
                replace_files_within(stop_if_asked, stage, writes)
                stop_if_asked()
                os.rename(stage, target)
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
