"""Read files that are no Go source from where a snapshot was read: the disk, a ref or the index."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from refactor_tool.model import EnvironmentFailure, UsageError
from refactor_tool.record import record
from refactor_tool.world.disk import Disk
from refactor_tool.world.git import Git, check_ref
from refactor_tool.world.objects import SUBMODULE, Objects
from refactor_tool.world.place import Place, git_dir, locate


@record
class Aside:
    """Files beside the source. Names are relative to `root`, the top of the repository or the plain folder itself.

    `folders` lead from where the user stands up to the top, each "" or ending in a slash. `revision` is the ref that
    git reads them from, "" for the index, None for the disk.
    """

    root: Path
    folders: tuple[str, ...]
    revision: str | None

    @classmethod
    def of(cls, path: Path | None, ref: str | None, *, staged: bool) -> Aside:
        """Return the files beside what is read from `path`; raises as reading the snapshot does."""
        place = locate(path)
        parts = place.below.split("/") if place.below else []
        folders = tuple("".join(f"{part}/" for part in parts[:count]) for count in range(len(parts), -1, -1))
        if ref is not None:
            check_ref(ref)
        in_git = ref or ("" if staged else "HEAD" if place.kind == "bare" else None)
        return cls(place.root, folders, in_git)

    def read(self, names: Iterable[str]) -> dict[str, bytes]:
        """Return those of the files that are there.

        Raises UsageError for one that is no regular file, EnvironmentFailure where git cannot answer.
        """
        asked = list(names)
        listed = self._on_disk(asked) if self.revision is None else self._in_git(self.revision, asked)
        found = {}
        for name, mode, data in listed:
            if not mode.startswith("100"):
                raise UsageError(f"{name}: not a regular file", "put a file there")
            found[name] = data
        return found

    def _on_disk(self, names: list[str]) -> Iterator[tuple[str, str, bytes]]:
        disk = Disk(self.root)
        for name in names:
            read = disk.read(name)
            if read is not None:
                yield name, read[1], read[0]

    def _in_git(self, ref: str, names: list[str]) -> Iterator[tuple[str, str, bytes]]:
        place = locate(self.root)
        git = Git.at(place)
        with Objects(git) as objects:
            if ref:
                answer = git.run("ls-tree", "-z", "--full-tree", "--", objects.commit(ref).tree, *names)
            else:
                answer = git.run("ls-files", "-z", "-s", "--", *names, env=index_environment(place))
            there = {}
            for line in answer.decode("utf-8", "surrogateescape").split("\0")[:-1]:
                head, _, name = line.partition("\t")
                mode, *rest = head.split(" ")
                oid = rest[1 if ref else 0]  # mode, type, id; in the index mode, id, stage
                if mode not in ("040000", SUBMODULE) and (ref or rest[1] == "0"):
                    there[name] = (mode, oid)
            found = [name for name in names if name in there]
            blobs = objects.blobs(there[name][1] for name in found)
            for name, (_, data) in zip(found, blobs, strict=True):
                yield name, there[name][0], data


def index_environment(place: Place) -> dict[str, str]:
    """Return the variable that names another index of the repository at `place`, where the caller has it.

    `git commit -a` and `git commit FILE` let their hooks see one, which lies beside the repository's own. That of
    another repository, below or above, has no say here. Relative names are from the top of the caller's work tree.
    """
    named = os.environ.get("GIT_INDEX_FILE", "")
    own = git_dir(place.root)
    if not named or own is None:
        return {}
    index = Path(named) if os.path.isabs(named) else locate(Path()).root / named
    return {"GIT_INDEX_FILE": str(index)} if index.is_file() and index.parent.resolve() == own.resolve() else {}


def read_file(path: Path) -> bytes | None:
    """Return a file that the user named; None where there is none. EnvironmentFailure where it cannot be read."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise EnvironmentFailure(f"{path}: cannot be read: {error.strerror}") from None


def name_below(root: Path, file: Path) -> str:
    """Return a file's path below `root`, POSIX; just its name where it lies elsewhere."""
    try:
        return file.resolve().relative_to(root).as_posix()
    except (ValueError, OSError):
        return file.name


def name_from_here(file: Path) -> str:
    """Return a path to `file` from the current folder."""
    return os.path.relpath(file)
