"""Commits, trees and blobs by one `git cat-file --batch` that stays open: no process a ref, none a file.

Trees are walked here instead of by `git ls-tree`, so that refs share every subtree they have in common.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from refactor_tool.model import EnvironmentFailure
from refactor_tool.record import record
from refactor_tool.world.git import Git, check_ref

if TYPE_CHECKING:
    import subprocess

FOLDER, LINK, SUBMODULE = "40000", "120000", "160000"
#: Stands for the mode of an entry whose name no checkout may write, such as `..`.
UNSAFE = "unsafe"


@record
class Commit:
    """A commit's id, its tree's id, and when it was committed, in unix seconds."""

    oid: str
    tree: str
    committed_at: int


@record
class Entry:
    """What a tree or the index holds at a path: git mode without leading zeros, and object id."""

    path: str
    mode: str
    oid: str

    @property
    def is_file(self) -> bool:
        """Say whether it is a regular file."""
        return self.mode in ("100644", "100755")


def is_source(path: str) -> bool:
    """Say whether a snapshot holds the file at this path: Go source and `go.mod`."""
    return path.endswith((".go", "/go.mod")) or path == "go.mod"


class Objects:
    """Read objects of one repository; a context manager. A failed read leaves it fit for the next."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._process: subprocess.Popen[bytes] | None = None
        self._trees: dict[str, tuple[Entry, ...]] = {}

    def __enter__(self) -> Objects:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def commit(self, ref: str) -> Commit:
        """Return the commit `ref` names; EnvironmentFailure where there is none, UsageError for no ref at all."""
        check_ref(ref)
        ((oid, data),) = self._read([f"{ref}^{{commit}}"], ref)
        headers = dict(line.partition(b" ")[::2] for line in data.partition(b"\n\n")[0].split(b"\n"))
        try:
            return Commit(oid, headers[b"tree"].decode(), int(headers[b"committer"].split(b" ")[-2]))
        except (KeyError, IndexError, ValueError):
            raise EnvironmentFailure(f"{self._git.root}: the commit {oid} is malformed", "git fsck says more") from None

    def entries(self, tree: str) -> Iterator[Entry]:
        """Yield what matters below a tree: Go source, `go.mod`, links, submodules; a `vendor` folder as one entry."""
        level = [("", tree)]
        seen = 0
        while level:
            missing = dict.fromkeys(oid for _, oid in level if oid not in self._trees)
            for oid, data in self._read(list(missing)):
                self._trees[oid] = tuple(_relevant(data))
            below = []
            for prefix, oid in level:
                seen += len(self._trees[oid])
                if seen > _MOST_ENTRIES:
                    raise EnvironmentFailure(f"{self._git.root}: a tree of over {_MOST_ENTRIES} entries is not read")
                for entry in self._trees[oid]:
                    if entry.mode == FOLDER and entry.path != "vendor":
                        below.append((f"{prefix}{entry.path}/", entry.oid))
                    else:
                        yield Entry(prefix + entry.path, entry.mode, entry.oid)
            level = below

    def blobs(self, oids: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Yield id and bytes of each blob, in order."""
        return self._read(list(oids))

    def _read(self, names: Sequence[str], ref: str | None = None) -> Iterator[tuple[str, bytes]]:
        """Yield id and bytes of each object; `ref` is what the user called the only one of them."""
        complete = False
        try:
            for at in range(0, len(names), _WINDOW):
                yield from self._exchange(names[at : at + _WINDOW], ref)
            complete = True
        finally:
            if not complete:
                self._stop()  # answers nobody reads are still under way

    def _exchange(self, names: Sequence[str], ref: str | None) -> Iterator[tuple[str, bytes]]:
        process = self._running()
        source, sink = process.stdout, process.stdin
        assert source is not None
        assert sink is not None
        try:
            sink.write("".join(f"{name}\n" for name in names).encode("utf-8", "surrogateescape"))
            sink.flush()
        except BrokenPipeError:
            raise self._died() from None
        for _ in names:
            header = source.readline().split(b" ")
            if len(header) != 3 or not header[2][:-1].isdigit():
                raise self._refused(header, ref)
            data = source.read(int(header[2]) + 1)
            if len(data) != int(header[2]) + 1:
                raise self._died()
            oid = header[0].decode()
            if len(oid) != 40:
                raise EnvironmentFailure(f"{self._git.root}: repositories with SHA-256 object ids are not supported")
            yield oid, data[:-1]

    def _refused(self, header: Sequence[bytes], ref: str | None) -> EnvironmentFailure:
        from refactor_tool.world.failures import missing_objects, unknown_ref

        if header == [b""]:
            return self._died()
        return missing_objects(self._git) if ref is None else unknown_ref(self._git, ref)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._process = self._git.start("cat-file", "--batch")
        return self._process

    def _died(self) -> EnvironmentFailure:
        process, self._process = self._process, None
        assert process is not None
        _, err = process.communicate()
        return self._git.failure(err.decode("utf-8", "replace"), "cat-file")

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


#: Requests sent before the answers are read; 41 bytes each must fit the smallest pipe (4096), or both ends would wait.
_WINDOW = 96
#: A tree of a few kilobytes can name the same subtree a billion times.
_MOST_ENTRIES = 2_000_000


def _relevant(data: bytes) -> Iterator[Entry]:
    """Yield the entries of one tree object that matter, each with its bare name for a path."""
    at = 0
    while at < len(data):
        end = data.index(b"\0", at)
        mode, _, name = data[at:end].decode("utf-8", "surrogateescape").partition(" ")
        oid = data[end + 1 : end + 21].hex()
        at = end + 21
        if name in ("", ".", "..") or "/" in name or name.lower() == ".git":
            yield Entry(name, UNSAFE, oid)
        elif mode in (FOLDER, LINK, SUBMODULE):
            yield Entry(name, mode, oid)
        elif is_source(name):
            yield Entry(name, "100755" if int(mode, 8) & 0o100 else "100644", oid)
