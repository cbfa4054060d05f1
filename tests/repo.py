"""A throw-away git repository for tests: no configuration from outside, fixed times and names."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from refactor_tool.model import File

NAME, MAIL = "A U Thor", "author@example.org"


class Repo:
    """A repository at `path`, which is made; blobs are written as they are, never converted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        self.git("init", "-q", "-b", "main")

    def run(self, *args: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Run git and return what it did, whatever that was."""
        person = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in _PERSON.items()}
        env = {"PATH": os.environ["PATH"], "HOME": str(self.path), "LC_ALL": "C", "TZ": "UTC", **person}
        env |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        return subprocess.run(["git", "-C", self.path, *args], input=stdin, capture_output=True, env=env, check=False)

    def git(self, *args: str, stdin: bytes = b"") -> bytes:
        """Run git, which must succeed, and return its standard output."""
        done = self.run(*args, stdin=stdin)
        assert done.returncode == 0, f"git {' '.join(args)}: {(done.stderr + done.stdout).decode(errors='replace')}"
        return done.stdout

    def commit(self, files: Mapping[str, File], message: str = "base") -> str:
        """Make `files` the whole tree, commit that and return the commit's id."""
        for old in self.tree():
            (self.path / old).unlink()
        for name, file in files.items():
            where = self.path / name
            where.parent.mkdir(parents=True, exist_ok=True)
            where.write_bytes(file.data)
            where.chmod(int(file.mode[-3:], 8))
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "--cleanup=verbatim", "-F", "-", stdin=message.encode())
        return self.git("rev-parse", "HEAD").decode().strip()

    def tree(self) -> dict[str, tuple[str, str]]:
        """Return path → (mode, blob id) of the index."""
        entries = self.git("ls-files", "-s", "-z").decode("utf-8", "surrogateescape").split("\0")[:-1]
        return {path: (mode, oid) for (mode, oid, _), path in (_entry(entry) for entry in entries)}

    def take(self, store: Path, *branches: str) -> None:
        """Fetch branches of another repository, without their history, and check out the first."""
        self.git("fetch", "-q", "--depth=1", store.as_uri(), *(f"{branch}:{branch}" for branch in branches))
        self.git("checkout", "-q", branches[0])

    def changes(self, old: str, new: str) -> list[tuple[str, File | None, File | None]]:
        """Return each file that differs between two revisions, before and after."""
        raw = self.git("diff", "--raw", "--no-abbrev", "--no-renames", "-z", old, new).decode().split("\0")[:-1]
        result = []
        for entry, path in zip(raw[::2], raw[1::2], strict=True):
            old_mode, new_mode, old_id, new_id, _ = entry[1:].split(" ")
            result.append((path, self._file(old_mode, old_id), self._file(new_mode, new_id)))
        return result

    def _file(self, mode: str, oid: str) -> File | None:
        return File(self.git("cat-file", "blob", oid), mode, oid) if int(oid, 16) else None


_PERSON = {"NAME": NAME, "EMAIL": MAIL, "DATE": "1700000000 +0000"}


def _entry(entry: str) -> tuple[tuple[str, str, str], str]:
    head, _, path = entry.partition("\t")
    mode, oid, stage = head.split(" ")
    return (mode, oid, stage), path
