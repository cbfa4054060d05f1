"""One hermetic way to run git: argument lists, bytes in and out, the same result whoever runs it and wherever.

No variable of the caller's git environment reaches git, no configuration outside the repository is read, and nothing
that the repository configures is run: no hook, no file-system monitor, no pager, no fetch of missing objects. Two
exceptions are deliberate. A repository that belongs to somebody else is read with the user's own configuration, since
`safe.directory` counts only there; and `as_user=True` is for questions about the user's work tree (line ends, filters).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from refactor_tool.model import EnvironmentFailure, UsageError
from refactor_tool.record import record
from refactor_tool.world.place import Place, git_dir

if TYPE_CHECKING:
    import subprocess


@record
class Reply:
    """What a git command answered."""

    code: int
    out: bytes
    err: str


@record
class Git:
    """Run git in the repository at `root`; `foreign` where it belongs to somebody else."""

    root: Path
    foreign: bool = False

    @classmethod
    def at(cls, place: Place) -> Git:
        """Return git for the repository at `place`; EnvironmentFailure where that is a plain folder."""
        if place.kind == "folder":
            hint = "give a clone; a plain folder can only be looked at as it is, without a ref"
            raise EnvironmentFailure(f"{place.root}: not a git repository", hint)
        return cls(place.root, _is_foreign(place.root))

    def run(self, *args: str, stdin: bytes = b"", env: Mapping[str, str] | None = None, as_user: bool = False) -> bytes:
        """Return what the command printed; EnvironmentFailure with what helps where it failed."""
        reply = self.call(*args, stdin=stdin, env=env, as_user=as_user)
        if reply.code != 0:
            raise self.failure(reply.err, args[0])
        return reply.out

    def call(
        self, *args: str, stdin: bytes = b"", env: Mapping[str, str] | None = None, as_user: bool = False
    ) -> Reply:
        """Return what the command answered, success or not; EnvironmentFailure where there is no git."""
        with self.start(*args, env=env, as_user=as_user) as process:
            try:
                out, err = process.communicate(stdin)
            except BaseException:
                process.kill()
                process.wait()
                raise
        return Reply(process.returncode, out, err.decode("utf-8", "replace"))

    def start(self, *args: str, env: Mapping[str, str] | None = None, as_user: bool = False) -> subprocess.Popen[bytes]:
        """Start the command with pipes at all three ends; EnvironmentFailure where there is no git."""
        from subprocess import PIPE, Popen

        command: list[str | bytes] = ["git", "-C", str(self.root), *_FIXED]
        command += (arg.encode("utf-8", "surrogateescape") for arg in args)
        whole = _environment(as_user or self.foreign) | dict(env or {})
        try:
            return Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=whole, bufsize=1 << 16)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            raise EnvironmentFailure("git was not found on PATH", "install git 2.25 or newer") from None

    def failure(self, err: str, what: str) -> EnvironmentFailure:
        """Return git's complaint `err` about the command `what` as an error that says what helps."""
        from refactor_tool.world.failures import explain

        return explain(self, err, what)

    def write_blob(self, data: bytes) -> str:
        """Put a blob into the object database, the bytes as they are, and return its id."""
        return self.run("hash-object", "-w", "--stdin", stdin=data).decode().strip()

    def ref_names(self) -> tuple[str, ...]:
        """Return the short names of all branches, tags and other refs, sorted."""
        names = self.run("for-each-ref", "--format=%(refname:short)").decode("utf-8", "surrogateescape")
        return tuple(sorted(names.split("\n")[:-1]))


def check_ref(ref: str) -> None:
    """Raise UsageError for a ref that git would take for an option, or that is not one line."""
    if not ref or ref.startswith("-"):
        raise UsageError(f"{ref!r} is not a ref", "give a branch, a tag or a commit id")
    if any(ord(char) < 0x20 or ord(char) == 0x7F for char in ref):
        raise UsageError(f"the ref {ref!r} has control characters", "give a branch, a tag or a commit id")


_FIXED = (
    "--no-pager",
    "--literal-pathspecs",
    *("-c", "core.quotePath=false"),
    *("-c", "core.fsmonitor=false"),
    *("-c", f"core.hooksPath={os.devnull}"),
    *("-c", f"core.excludesFile={os.devnull}"),
    *("-c", "core.splitIndex=false"),
    *("-c", "i18n.commitEncoding=UTF-8"),
)
_ENVIRONMENT = {
    "LC_ALL": "C",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": f"{os.devnull}/none",  # a file that is there, and be it empty, makes git complain
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",  # git before 2.39.5 fetches lazily in spite of the line above
}
_HERMETIC = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_ATTR_NOSYSTEM": "1"}


def _environment(own_configuration: bool) -> dict[str, str]:
    kept = "GIT_CONFIG" if own_configuration else "\0"
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("GIT_") or k.startswith(kept)}
    return inherited | _ENVIRONMENT | ({} if own_configuration else _HERMETIC)


def _is_foreign(root: Path) -> bool:
    """Say whether git would ask for `safe.directory` before it reads the repository."""
    if not hasattr(os, "geteuid"):
        return True
    own = git_dir(root)
    places = (root,) if own is None else (root, root / ".git", own)
    return any(place.exists() and place.stat().st_uid != os.geteuid() for place in places)
