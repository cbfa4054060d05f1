"""What was applied to a repository and can be taken back, the last one last.

It lies in `refactor-tool/undo.json` in the repository's git directory, which linked work trees share. One process at a
time holds it. An entry is written before what it describes is done, so that an interrupted application can be taken
back too.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, TypeAlias, assert_never

from refactor_tool.model import Conflict, EnvironmentFailure
from refactor_tool.record import record
from refactor_tool.world.git import Git
from refactor_tool.world.text import shell_line
from refactor_tool.world.transaction import Write, replace_files

_NAME, _LOCK = "undo.json", "undo.lock"
_SCHEMA = "refactor-tool-undo/1"


@record
class BranchMade:
    """A branch that was made: full ref name, the commit it was left at, the one it starts from."""

    ref: str
    tip: str
    base: str


@record
class Replaced:
    """A file that was written: the bytes it had, and the blob id of what it got; None where it was not there."""

    path: str
    before: bytes | None
    after: str | None
    was_executable: bool = False


@record
class TreeChanged:
    """A work tree that was written to: its top, its files, and the folders that had to be made, outermost first."""

    root: str
    files: tuple[Replaced, ...]
    folders: tuple[str, ...] = ()


Application: TypeAlias = BranchMade | TreeChanged


class Journal:
    """The journal of a repository; a context manager that holds it.

    Raises Conflict where another process does, EnvironmentFailure where it cannot be read or written.
    """

    def __init__(self, git: Git) -> None:
        common = os.fsdecode(git.run("rev-parse", "--git-common-dir").rstrip(b"\n"))
        self._folder = git.root / common / "refactor-tool"
        self._entries: list[Application] = []

    def __enter__(self) -> Journal:
        lock = self._folder / _LOCK
        try:
            self._folder.mkdir(exist_ok=True)
            os.close(os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            raise Conflict(
                f"{self._folder.parent}: another refactor-tool is at work", f"if none is: rm {shell_line(str(lock))}"
            ) from None
        except OSError as error:
            raise EnvironmentFailure(f"{self._folder}: cannot be written: {error.strerror}") from None
        try:
            self._entries = self._load()
        except BaseException:
            self._release()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._release()

    @property
    def last(self) -> Application | None:
        """The last application that was not taken back."""
        return self._entries[-1] if self._entries else None

    def push(self, entry: Application) -> None:
        """Record what is about to be done."""
        self._save([*self._entries, entry])

    def pop(self) -> None:
        """Forget the last application: it is taken back, or was never done."""
        self._save(self._entries[:-1])

    def _save(self, entries: list[Application]) -> None:
        import json

        text = json.dumps({"schema": _SCHEMA, "entries": [_to_json(entry) for entry in entries]}, indent=1)
        replace_files(self._folder, {_NAME: Write(text.encode() + b"\n") if entries else None})
        self._entries = entries

    def _load(self) -> list[Application]:
        import json

        path = self._folder / _NAME
        try:
            document = json.loads(path.read_bytes())
            if document["schema"] != _SCHEMA:
                raise ValueError(document["schema"])
            return [_from_json(entry) for entry in document["entries"]]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, KeyError, TypeError):
            raise EnvironmentFailure(
                f"{path}: not a journal this version can read", "move it away; what it lists must be taken back by hand"
            ) from None

    def _release(self) -> None:
        with suppress(OSError):
            (self._folder / _LOCK).unlink()
            self._folder.rmdir()


def _to_json(entry: Application) -> Mapping[str, Any]:
    match entry:
        case BranchMade(ref, tip, base):
            return {"kind": "branch", "ref": ref, "tip": tip, "base": base}
        case TreeChanged(root, files, folders):
            return {"kind": "worktree", "root": root, "folders": folders, "files": [_file_to_json(f) for f in files]}
        case _:
            assert_never(entry)


def _file_to_json(file: Replaced) -> Mapping[str, Any]:
    import base64

    before = None if file.before is None else base64.b64encode(file.before).decode()
    return {"path": file.path, "before": before, "after": file.after, "executable": file.was_executable}


def _from_json(entry: Mapping[str, Any]) -> Application:
    if entry["kind"] == "branch":
        return BranchMade(entry["ref"], entry["tip"], entry["base"])
    if entry["kind"] != "worktree":
        raise ValueError(entry["kind"])
    files: Sequence[Mapping[str, Any]] = entry["files"]
    return TreeChanged(entry["root"], tuple(_file_from_json(file) for file in files), tuple(entry["folders"]))


def _file_from_json(file: Mapping[str, Any]) -> Replaced:
    import base64

    before = None if file["before"] is None else base64.b64decode(file["before"], validate=True)
    return Replaced(file["path"], before, file["after"], file["executable"])
