"""Replace several files below one folder as one act: all of them or, on any error or interrupt, none.

New contents are written and synced beside the old ones first, then renamed into place one by one; at every moment each
file is whole, the old one or the new one. What was replaced is kept until the last rename, and put back if any fails.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from refactor_tool.model import Conflict, EnvironmentFailure
from refactor_tool.record import record
from refactor_tool.world.text import disk_name


@record
class Write:
    """What a file is to hold. It keeps the mode of the file it replaces, but for what `executable` says unless None."""

    data: bytes
    executable: bool | None = None


def replace_files(root: Path, changes: Mapping[str, Write | None]) -> None:
    """Write each path below the existing folder `root`, or remove it for None; missing folders are made.

    Removing a file leaves its folder. Raises EnvironmentFailure where the disk refuses, Conflict for a path that leads
    through a link, KeyboardInterrupt where a signal came; `root` is then as it was.
    """
    with unbroken() as stop_if_asked:
        replace_files_within(stop_if_asked, root, changes)


def replace_files_within(stop_if_asked: Callable[[], None], root: Path, changes: Mapping[str, Write | None]) -> None:
    """Do what `replace_files` does for a caller that holds signals back itself, with `unbroken`."""
    for path in changes:
        if PurePosixPath(path).is_absolute() or {"", ".", ".."} & set(path.split("/")):
            raise ValueError(f"not a path below a folder: {path!r}")
    moves = _Moves(root)
    try:
        moves.begin()
        for path, write in changes.items():
            stop_if_asked()
            moves.stage(path, write)
        for path in changes:
            stop_if_asked()
            moves.commit(path)
        stop_if_asked()
    except BaseException as error:
        moves.roll_back()
        if isinstance(error, OSError):
            raise EnvironmentFailure(
                f"{error.filename or root}: cannot be written: {error.strerror}", "nothing was changed"
            ) from None
        raise
    moves.forget()


@record
class _Staged:
    target: Path
    new: Path | None
    old: Path


class _Moves:
    """The files under way: staged below `root`, in a folder that goes when all is done."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._scratch = root / f".refactor-tool-{os.urandom(6).hex()}"
        self._staged: dict[str, _Staged] = {}
        self._tried: list[_Staged] = []
        self._made: list[Path] = []

    def begin(self) -> None:
        self._scratch.mkdir(mode=0o700)

    def stage(self, path: str, write: Write | None) -> None:
        for folder in PurePosixPath(disk_name(path)).parents:
            if (self._root / folder).is_symlink():
                raise Conflict(f"{path}: {folder} is a symbolic link", "nothing is written through a link")
        target, number = self._root / disk_name(path), len(self._staged)
        if write is None:
            self._staged[path] = _Staged(target, None, self._scratch / f"{number}.old")
        else:
            new = self._scratch / f"{number}.new"
            _write_synced(new, write, target)
            self._staged[path] = _Staged(target, new, self._scratch / f"{number}.old")

    def commit(self, path: str) -> None:
        staged = self._staged[path]
        self._tried.append(staged)
        if os.path.lexists(staged.target):
            _keep(staged.target, staged.old)
        if staged.new is None:
            staged.target.unlink(missing_ok=True)
            return
        for folder in reversed(PurePosixPath(disk_name(path)).parents):
            if not (self._root / folder).exists():
                self._made.append(self._root / folder)
                (self._root / folder).mkdir()
        os.replace(staged.new, staged.target)

    def roll_back(self) -> None:
        """Put everything back; EnvironmentFailure, with the old files kept, where the disk refuses even that."""
        lost = []
        for staged in reversed(self._tried):
            try:
                if os.path.lexists(staged.old):
                    os.replace(staged.old, staged.target)
                elif staged.new is not None and not staged.new.exists():
                    staged.target.unlink(missing_ok=True)
            except OSError:
                lost.append(staged.target)
        for folder in reversed(self._made):
            with suppress(OSError):
                folder.rmdir()
        if lost:
            raise EnvironmentFailure(f"{lost[0]}: cannot be put back", f"the old files are kept in {self._scratch}")
        self.forget()

    def forget(self) -> None:
        import shutil

        shutil.rmtree(self._scratch, ignore_errors=True)


def _write_synced(new: Path, write: Write, target: Path) -> None:
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o777 if write.executable else 0o666)
    try:
        view = memoryview(write.data)
        while view:
            view = view[os.write(handle, view) :]
        if target.is_file() and not target.is_symlink():
            mode = target.stat().st_mode & 0o7777
            if write.executable is not None:
                mode = mode | (mode & 0o444) >> 2 if write.executable else mode & ~0o111
            os.fchmod(handle, mode)
        os.fsync(handle)
    finally:
        os.close(handle)


_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


def _keep(target: Path, old: Path) -> None:
    """Make `old` a second name of the file, so that `target` is never absent; a copy where there are no hard links."""
    try:
        os.link(target, old, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        import shutil

        part = old.with_suffix(".part")
        shutil.copy2(target, part, follow_symlinks=False)
        os.replace(part, old)


@contextmanager
def unbroken() -> Iterator[Callable[[], None]]:
    """Hold signals that would end the process back; the yielded function raises KeyboardInterrupt if one came.

    One that comes after the last call of that function is too late: what it would have stopped is done.
    """
    import signal
    import threading

    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    came: list[int] = []

    def stop_if_asked() -> None:
        if came:
            raise KeyboardInterrupt

    names = [name for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {getattr(signal, name): signal.getsignal(getattr(signal, name)) for name in names}
    for number in before:
        signal.signal(number, lambda number, _: came.append(number))
    try:
        yield stop_if_asked
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
