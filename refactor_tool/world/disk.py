"""The files of a folder as they lie on the disk. No link is followed, no device opened, nothing written.

Paths are relative to the folder, POSIX, with surrogate escapes where a name is not UTF-8, whatever the locale.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from refactor_tool.model import Unparsable
from refactor_tool.record import record
from refactor_tool.world.git import Git
from refactor_tool.world.objects import FOLDER, LINK, SUBMODULE, Entry, is_source

#: Stands for the mode of a device, a pipe or a socket.
SPECIAL = "special"


@record
class Listed:
    """A path of a work tree; `oid` is "" where git does not track it, `sparse` where a sparse checkout hides it.

    `assumed` says that git was told to take the file for unchanged, and so does not look at it.
    """

    entry: Entry
    sparse: bool = False
    assumed: bool = False


def list_worktree(git: Git) -> list[Listed]:
    """Return what git tracks in the work tree, and what it neither tracks nor ignores. One process.

    Only `.gitignore` files and `.git/info/exclude` ignore; a person's own ignore file has no say. An unmerged path
    stands once.
    """
    answer = git.run("ls-files", "-z", "-v", "-s", "--cached", "--others", "--exclude-standard")
    top = Disk(git.root)
    found: dict[str, Listed] = {}
    for line in answer.decode("utf-8", "surrogateescape").split("\0")[:-1]:
        tag, _, rest = line.partition(" ")
        if tag == "?":
            # what is named like source is looked at when it is read
            is_link = not is_source(rest) and top.link(rest) is not None
            mode = SUBMODULE if rest.endswith("/") else LINK if is_link else "100644"
            found[rest.rstrip("/")] = Listed(Entry(rest.rstrip("/"), mode, ""))
        else:
            head, _, path = rest.partition("\t")
            mode, oid, _ = head.split(" ")
            found.setdefault(path, Listed(Entry(path, mode, oid), sparse=tag in "Ss", assumed=tag.islower()))
    return list(found.values())


def list_folder(root: Path) -> Iterator[Entry]:
    """Yield what matters below a plain folder: Go source, `go.mod`, links, nested repositories, `vendor` folders.

    Raises Unparsable for a folder that may not be listed.
    """
    top = os.fsencode(root)
    waiting = [""]
    while waiting:
        prefix = waiting.pop()
        where = os.path.join(top, _encoded(prefix))
        try:
            with os.scandir(where) as listing:
                inside = sorted(listing, key=lambda item: item.name)
        except OSError as error:
            raise Unparsable(
                f"{prefix or root}: the folder cannot be read: {error.strerror}", "check its mode"
            ) from None
        for item in inside:
            name = item.name.decode("utf-8", "surrogateescape")
            if item.is_symlink():
                yield Entry(prefix + name, LINK, "")
            elif not item.is_dir(follow_symlinks=False):
                if is_source(name):
                    yield Entry(prefix + name, "100644", "")
            elif name == "vendor":
                yield Entry(prefix + name, FOLDER, "")
            elif os.path.lexists(os.path.join(item.path, b".git")):
                yield Entry(prefix + name, SUBMODULE, "")
            elif name != ".git":
                waiting.append(f"{prefix}{name}/")


class Disk:
    """Read files below `root`."""

    def __init__(self, root: Path) -> None:
        self._root = os.fsencode(root)
        self._real: dict[str, bool] = {}

    def read(self, path: str) -> tuple[bytes, str] | None:
        """Return bytes and git mode of a file; None where there is nothing.

        What is no regular file has no bytes, and `LINK` or `SPECIAL` for its mode. Raises Unparsable for a file that
        is there and may not be read.
        """
        if not self._is_real(path.rpartition("/")[0]):
            return None
        try:
            handle = os.open(self._where(path), _FLAGS)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR):
                return None
            if error.errno == errno.ELOOP:
                return b"", LINK
            if error.errno == errno.ENXIO:
                return b"", SPECIAL
            raise _unreadable(path, error) from None
        try:
            found = os.fstat(handle)
            if stat.S_ISDIR(found.st_mode):
                return None
            if not stat.S_ISREG(found.st_mode):
                return b"", SPECIAL
            return _read_all(handle, found.st_size), "100755" if found.st_mode & 0o100 else "100644"
        except OSError as error:
            raise _unreadable(path, error) from None
        finally:
            os.close(handle)

    def mode(self, path: str) -> str | None:
        """Return the mode that `read` would, without reading; None where there is nothing."""
        if not self._is_real(path.rpartition("/")[0]):
            return None
        try:
            found = os.lstat(self._where(path)).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise _unreadable(path, error) from None
        if stat.S_ISREG(found):
            return "100755" if found & 0o100 else "100644"
        if stat.S_ISLNK(found):
            return LINK
        return None if stat.S_ISDIR(found) else SPECIAL

    def link(self, path: str) -> str | None:
        """Return what the link at `path` points to; None where there is no link."""
        try:
            return os.readlink(self._where(path)).decode("utf-8", "surrogateescape")
        except OSError:
            return None

    def _is_real(self, folder: str) -> bool:
        """Say whether `folder` and all above it are folders and no links."""
        if not folder:
            return True
        if folder not in self._real:
            above = self._is_real(folder.rpartition("/")[0])
            try:
                self._real[folder] = above and stat.S_ISDIR(os.lstat(self._where(folder)).st_mode)
            except (FileNotFoundError, NotADirectoryError):
                self._real[folder] = False
            except OSError as error:
                raise _unreadable(folder, error) from None
        return self._real[folder]

    def _where(self, path: str) -> bytes:
        return b"%b/%b" % (self._root, _encoded(path))


#: Without blocking, since a pipe may be named like a Go file.
_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def _read_all(handle: int, size: int) -> bytes:
    data = os.read(handle, size + 1)
    if len(data) == size:
        return data
    parts = [data]
    while parts[-1]:
        parts.append(os.read(handle, 1 << 20))
    return b"".join(parts)


def _encoded(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")


def _unreadable(path: str, error: OSError) -> Unparsable:
    return Unparsable(f"cannot be read: {error.strerror}", "check its mode", path=path)
