"""A copy of a whole tree in a temporary folder, for tools that read files: the examined checkout is never one of them.

Git writes it from the object database of a repository of its own, so that no filter, hook or attribute of the examined
repository is at work. Links are left out: nothing in the copy leads out of it.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from types import TracebackType

from refactor_tool.model import FileChange, Snapshot
from refactor_tool.world.git import Git
from refactor_tool.world.objects import Objects, is_source
from refactor_tool.world.place import Place, locate
from refactor_tool.world.scratch import PREFIX, scratch
from refactor_tool.world.text import disk_name
from refactor_tool.world.tree import list_commit


class Checkout:
    """The copy of what a snapshot was read from; a context manager. `module` is the folder the snapshot is of.

    Raises as reading the snapshot did.
    """

    def __init__(self, path: Path | None, snapshot: Snapshot) -> None:
        self._place = locate(path)
        self._snapshot = snapshot
        self._ends = ExitStack()
        self._top = self._ends.enter_context(scratch())
        self.tree = self._top / "tree"
        self.scratch = self._top / "scratch"
        #: The module's folder below `tree`: "" or ending in a slash.
        self.prefix = ""

    @property
    def module(self) -> Path:
        return self.tree / self.prefix

    def __enter__(self) -> Checkout:
        try:
            self.tree.mkdir()
            self.scratch.mkdir()
            if self._place.kind == "folder" or self._snapshot.commit is None:
                _copy_folder(self._place.root / self._place.below, self.tree)
            else:
                self._check_out(self._snapshot.commit)
            if self._snapshot.source == "tree":
                self._overlay()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the copy."""
        self._ends.close()

    def apply(self, changes: Iterable[FileChange], *, back: bool = False) -> None:
        """Write what a step makes of each file, or with `back` what it was before."""
        for change in changes:
            file = change.before if back else change.after
            where = self._where(change.path)
            if file is None:
                where.unlink(missing_ok=True)
            else:
                where.parent.mkdir(parents=True, exist_ok=True)
                where.write_bytes(file.data)

    def relative(self, said: bytes) -> bytes:
        """Return what a tool said with places relative to the module; Go's cache repeats those of earlier copies."""
        pattern = rb"[^\s:]*/" + PREFIX.encode() + rb"\w{8}/tree/" + re.escape(os.fsencode(self.prefix))
        return re.sub(pattern, b"", said)

    def _where(self, path: str) -> Path:
        if {"", ".", ".."} & set(path.split("/")):
            raise ValueError(f"not a path below a folder: {path!r}")
        return self.module / PurePosixPath(disk_name(path))

    def _check_out(self, commit: str) -> None:
        examined = Git.at(self._place)
        store = examined.run("rev-parse", "--git-path", "objects").decode("utf-8", "surrogateescape").rstrip("\n")
        own = self._top / "git"
        own.mkdir()
        git = Git(own)
        git.run("init", "-q", "--bare", "--template=", ".")
        (own / "objects/info").mkdir(exist_ok=True)
        (own / "objects/info/alternates").write_bytes(os.fsencode(examined.root / store) + b"\n")
        env = {"GIT_DIR": str(own), "GIT_WORK_TREE": str(self.tree), "GIT_INDEX_FILE": str(own / "index")}
        git.run("read-tree", commit, env=env)
        git.run("-c", "core.symlinks=false", "checkout-index", "-q", "-a", env=env)
        for line in git.run("ls-files", "-s", "-z", env=env).split(b"\0")[:-1]:
            if line.startswith(b"120000 "):
                (self.tree / os.fsdecode(line.partition(b"\t")[2])).unlink(missing_ok=True)
        with Objects(git) as objects:
            self.prefix, _ = list_commit(objects, objects.commit(commit), Place(own, "bare", self._place.below))

    def _overlay(self) -> None:
        """Make the Go source what the snapshot says it is; the rest stays as it was committed."""
        for path in sorted(self.module.rglob("*")):
            name = path.relative_to(self.module).as_posix()
            if is_source(name) and "vendor" not in name.split("/") and path.is_file():
                path.unlink()
        self.apply(FileChange(path, None, file) for path, file in self._snapshot.files.items())


def _copy_folder(source: Path, target: Path) -> None:
    """Copy the regular files below a folder; links, devices and git's own files are left out."""

    def unwanted(folder: str, names: list[str]) -> list[str]:
        inside = (Path(folder) / name for name in names)
        return [
            one.name for one in inside if one.name == ".git" or one.is_symlink() or not (one.is_dir() or one.is_file())
        ]

    shutil.copytree(source, target, ignore=unwanted, dirs_exist_ok=True)
