"""Every value type the rooms pass to each other; invariants only, no IO, no syntax trees.

Positions are byte offsets into a file's bytes, half open. Lines and columns exist only at the edge
(`Position`), 1-based, columns in bytes.
"""

from __future__ import annotations

import errno
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import IntEnum
from itertools import accumulate
from typing import Any, Literal, NamedTuple, TypeAlias

from refactor_tool.record import record, replace

#: What every name of the campaign's vocabulary holds; found by a byte search, before anything is parsed.
NEEDLES: tuple[bytes, ...] = (
    b"Ready",
    b"NewRuntime",
    b"testClusterDB",
    b"readyCh",
    b"etcdLoop",
    b"waitForAPIServerInBackground",
)
#: What every comment to the tool holds.
IGNORE_MARK = b"refactor-tool:"


class ExitCode(IntEnum):
    """The whole contract between the tool and a script that calls it."""

    CLEAN = 0
    FINDINGS = 1
    USAGE = 2
    ENVIRONMENT = 3
    NOTHING_SCANNED = 4
    UNPARSABLE = 5
    CONFLICT = 6
    INTERNAL = 70
    INTERRUPTED = 130


#: Gravest first; where several apply the first of them is the process's exit code.
GRAVITY: tuple[ExitCode, ...] = (
    ExitCode.INTERRUPTED,
    ExitCode.INTERNAL,
    ExitCode.USAGE,
    ExitCode.ENVIRONMENT,
    ExitCode.UNPARSABLE,
    ExitCode.NOTHING_SCANNED,
    ExitCode.CONFLICT,
    ExitCode.FINDINGS,
    ExitCode.CLEAN,
)


def gravest(codes: Iterable[ExitCode]) -> ExitCode:
    """Return the code that wins where several apply; `CLEAN` for none."""
    return min(codes, key=GRAVITY.index, default=ExitCode.CLEAN)


class ToolError(Exception):
    """A failure with one clear line for the user: what is wrong, where, and what to do about it."""

    code: ExitCode = ExitCode.INTERNAL

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(ToolError):
    """The call or the configuration is wrong."""

    code = ExitCode.USAGE


class EnvironmentFailure(ToolError):
    """The machine or repository lacks something: git, a ref, history, a toolchain."""

    code = ExitCode.ENVIRONMENT


def refusal(error: BaseException) -> EnvironmentFailure | None:
    """Return what the machine refused us as the error that it is for a user; None for an error that is ours."""
    if not isinstance(error, OSError) or error.errno not in (*_FULL, *_SHORT):
        return None
    if error.errno in _FULL:
        what = f"{error.filename or 'the output'} cannot be written"
        return EnvironmentFailure(f"{what}: {error.strerror}", "make room, or write it elsewhere")
    return EnvironmentFailure(f"{error.filename or 'this machine'} refuses: {error.strerror}", "raise what limits it")


#: What a file says that takes no more: the disk is full or broken, or the file was opened to be read.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
#: What is said where there is too little of something, or a path may not be used.
_SHORT = (
    *(errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM),
    *(errno.EACCES, errno.EROFS, errno.ELOOP, errno.ENAMETOOLONG),
)


class NothingScanned(ToolError):
    """There is no k3s source here, or a site that must be there is missing or doubled."""

    code = ExitCode.NOTHING_SCANNED


class Unparsable(ToolError):
    """A file that matters is not readable as Go source: `what` is wrong in it, from a 1-based line on if known."""

    code = ExitCode.UNPARSABLE

    def __init__(self, what: str, hint: str = "", *, path: str = "", at: Position | None = None) -> None:
        place = f"{path}:{at.line}:{at.column}" if at is not None else path
        super().__init__(f"{place}: {what}" if place else what, hint)
        self.what = what
        self.path = path
        self.line = at.line if at is not None else None


class Conflict(ToolError):
    """Edits overlap, the tree is dirty, or it moved under us."""

    code = ExitCode.CONFLICT


class CodemodError(Exception):
    """A codemod author's mistake, found before any source is read."""


class _Bounds(NamedTuple):
    start: int
    end: int


class Span(_Bounds):
    """Bytes `start` to `end` of a file, half open. A tuple, because a run makes tens of thousands of them."""

    __slots__ = ()

    def __new__(cls, start: int, end: int) -> Span:
        if not 0 <= start <= end:
            raise ValueError(f"bad span {start}..{end}")
        return tuple.__new__(cls, (start, end))

    def contains(self, other: Span) -> bool:
        return self.start <= other.start and other.end <= self.end

    def overlaps(self, other: Span) -> bool:
        return self.start < other.end and other.start < self.end


class Position(NamedTuple):
    """A place for people: 1-based line, 1-based column in bytes."""

    line: int
    column: int


class Cover:
    """Places (path, span) that are asked many times whether one of them contains another."""

    def __init__(self, places: Iterable[tuple[str, Span]]) -> None:
        spans: dict[str, list[Span]] = {}
        for path, span in sorted(places):
            spans.setdefault(path, []).append(span)
        # of the spans that begin before a place, the one that reaches farthest contains it if any of them does
        self._reach = {
            path: ([span.start for span in own], list(accumulate((span.end for span in own), max)))
            for path, own in spans.items()
        }

    def holds(self, path: str, span: Span) -> bool:
        starts, ends = self._reach.get(path, ((), ()))
        at = bisect_right(starts, span.start)
        return at > 0 and ends[at - 1] >= span.end


class LineIndex:
    """Translate byte offsets of one file to positions; lines end at LF only."""

    def __init__(self, data: bytes) -> None:
        ends = accumulate(map(len, data.split(b"\n")), initial=0)
        self._starts = [end + line for line, end in enumerate(ends)][:-1]

    def position(self, offset: int) -> Position:
        line = bisect_right(self._starts, offset)
        return Position(line, offset - self._starts[line - 1] + 1)

    def line_span(self, line: int, size: int) -> Span:
        """Return the bytes of a 1-based line with its LF; `size` is the length of the file."""
        end = self._starts[line] if line < len(self._starts) else size
        return Span(self._starts[line - 1], end)


class Places:
    """Name places of a snapshot for people; each file is indexed once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._indexes: dict[str, LineIndex] = {}

    def position(self, path: str, offset: int) -> Position:
        """Return the position of a byte; the first one for a file that the snapshot does not have."""
        if path not in self._indexes:
            file = self._snapshot.files.get(path)
            self._indexes[path] = LineIndex(file.data if file is not None else b"")
        return self._indexes[path].position(offset)

    def line(self, finding: Finding) -> int | None:
        """Return the line that a finding starts on, None where its file is not in the snapshot."""
        if finding.path not in self._snapshot.files:
            return None
        return self.position(finding.path, finding.span.start).line


def blob_id(data: bytes) -> str:
    """Return the 40-digit id git gives these bytes as a blob."""
    # imported here: most runs ask for no id of what they read from the disk, and this loads a library
    from hashlib import sha1

    return sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


@record
class File:
    """One file of a snapshot: bytes and git mode (`100644` or `100755`); `known` is its blob id where git gave it."""

    data: bytes
    mode: str = "100644"
    known: str = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, File) and self.mode == other.mode and self.data == other.data

    def __hash__(self) -> int:
        return hash((self.data, self.mode))

    def __repr__(self) -> str:
        return f"File({len(self.data)} bytes, {self.oid!r}, {self.mode!r})"

    @property
    def oid(self) -> str:
        """The git blob id of the bytes."""
        return self.known or blob_id(self.data)


class LazyFiles(Mapping[str, File]):
    """The files of a large tree: each is read when it is first asked for and then kept, until then only its path is.

    `read` returns the file at a path, which may raise a `ToolError`; `search` the paths of a superset of those whose
    bytes hold any of some words, or None where it cannot tell.
    """

    def __init__(
        self,
        paths: Iterable[str],
        read: Callable[[str], File],
        search: Callable[[tuple[bytes, ...]], frozenset[str] | None],
    ) -> None:
        self._paths = dict.fromkeys(sorted(paths))
        self._read = read
        self._search = search
        self._kept: dict[str, File] = {}
        self._found: dict[tuple[bytes, ...], frozenset[str] | None] = {}
        self._changed: dict[str, File | None] = {}

    def __getitem__(self, path: str) -> File:
        file = self.peek(path)
        if path not in self._changed:
            self._kept[path] = file
        return file

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)

    def __contains__(self, path: object) -> bool:
        return path in self._paths

    def peek(self, path: str) -> File:
        """Return the file at a path without keeping it."""
        if path not in self._paths:
            raise KeyError(path)
        return self._changed.get(path) or self._kept.get(path) or self._read(path)

    def held(self) -> Iterator[File]:
        """Yield the files that were asked for, and those that were put in their places."""
        return (self.peek(path) for path in {**self._kept, **self._changed} if path in self._paths)

    def holding(self, words: tuple[bytes, ...]) -> frozenset[str]:
        """Return the paths of a superset of the files that hold any of the words, all paths in case of doubt."""
        if words not in self._found:
            self._found[words] = self._search(words)
        found = self._found[words]
        if found is None:
            return frozenset(self._paths)
        come = {path for path, file in self._changed.items() if file and any(word in file.data for word in words)}
        return frozenset((found - self._changed.keys() | come) & self._paths.keys())

    def with_changes(self, changes: Iterable[FileChange]) -> LazyFiles:
        """Return the files after `changes`."""
        return self.with_files({change.path: change.after for change in changes})

    def with_files(self, files: Mapping[str, File | None]) -> LazyFiles:
        """Return the files with others in their places, None for none; what is read is read for both."""
        changed = {**self._changed, **files}
        paths = self._paths.keys() - changed.keys() | {path for path, file in changed.items() if file is not None}
        other = LazyFiles(paths, self._read, self._search)
        other._kept, other._found, other._changed = self._kept, self._found, changed
        return other

    def is_akin(self, other: LazyFiles) -> bool:
        """Tell whether both came of the same files by changes."""
        return self._kept is other._kept

    def paths_unlike(self, other: LazyFiles) -> set[str]:
        """Return the paths that changes made different from those of files that are akin."""
        mine, theirs = self._changed, other._changed
        return {path for path in {*mine, *theirs} if path not in mine or mine[path] is not theirs.get(path, mine)}


@record
class Skipped:
    """A path that was seen and not read, with the reason (a link, a submodule, too large)."""

    path: str
    reason: str


@record
class Snapshot:
    """An immutable tree: repo-relative POSIX path → file, from a work tree, a ref or a fixture alike.

    Holds Go source and `go.mod` only. Paths that are not UTF-8 carry surrogate escapes. `prefix` is what stands before
    them in the repository: "", or the module's folder with a slash.
    """

    files: Mapping[str, File]
    source: Literal["ref", "tree"] = "tree"
    label: str = "."
    commit: str | None = None
    committed_at: int = 0
    skipped: tuple[Skipped, ...] = ()
    prefix: str = ""

    def go_paths(self) -> Iterator[str]:
        return (path for path in sorted(self.files) if path.endswith(".go"))

    def looked_through(self) -> Iterator[tuple[str, File]]:
        """Yield each path with its file, sorted as `files` is; of a large tree no file is kept that was not before."""
        files = self.files
        return ((path, files.peek(path) if isinstance(files, LazyFiles) else files[path]) for path in files)

    def whole(self) -> Snapshot:
        """Return the snapshot with all of its files read, for questions that any of them may bear on."""
        return replace(self, files=dict(self.files)) if isinstance(self.files, LazyFiles) else self

    def held(self) -> Iterable[File]:
        """Return the files that are in memory: all, but of a large tree those that somebody asked for."""
        return self.files.held() if isinstance(self.files, LazyFiles) else self.files.values()

    def with_changes(self, changes: Iterable[FileChange]) -> Snapshot:
        """Return the snapshot after `changes`; the receiver stays as it is."""
        if isinstance(self.files, LazyFiles):
            return replace(self, files=self.files.with_changes(changes))
        files = dict(self.files)
        for change in changes:
            if change.after is None:
                files.pop(change.path, None)
            else:
                files[change.path] = change.after
        return replace(self, files=files)

    def paths_unlike(self, other: Snapshot) -> set[str]:
        """Return the paths at which another snapshot does not hold the very file that this one holds."""
        mine, theirs = self.files, other.files
        if isinstance(mine, LazyFiles) and isinstance(theirs, LazyFiles) and mine.is_akin(theirs):
            return mine.paths_unlike(theirs)
        return {path for path in {*mine, *theirs} if mine.get(path) is not theirs.get(path)}

    def changes_to(self, after: Snapshot) -> tuple[FileChange, ...]:
        """Return what leads from this snapshot's files to those of another, sorted by path."""
        files, others = self.files, after.files
        return tuple(
            FileChange(path, files.get(path), others.get(path))
            for path in sorted(self.paths_unlike(after))
            if files.get(path) != others.get(path)
        )


# --- what a codemod says ---------------------------------------------------------------------------


@record
class Fragment:
    """Go text still to be rendered: a template's name and its parameters, sorted by name.

    The rendered text is indented like the place it goes to: `indent` is put before every line that is not
    empty, but before the first only with `lines`, which is for text that starts at the beginning of a line.
    """

    template: str
    params: tuple[tuple[str, str], ...] = ()
    indent: str = ""
    lines: bool = False

    @classmethod
    def of(cls, template: str, indent: str = "", *, lines: bool = False, **params: str) -> Fragment:
        return cls(template, tuple(sorted(params.items())), indent, lines)


@record
class Edit:
    """Replace the bytes of `span` in `path`; an empty span inserts, empty text deletes."""

    path: str
    span: Span
    text: bytes | Fragment


@record
class NewFile:
    """Create `path`, which must not exist."""

    path: str
    text: Fragment


@record
class NeedImport:
    """The file at `path` must import `package`, as `name` where that is not the package's own name."""

    path: str
    package: str
    name: str | None = None


Change: TypeAlias = Edit | NewFile | NeedImport


@record
class Rewrite:
    """Do all of `changes` or none. Imports that become unused go by themselves."""

    changes: tuple[Change, ...]


@record
class Manual:
    """A person must do it. `reason` says why the tool cannot, `instruction` exactly what to do.

    With `blocks` the codemod's other rewrites would not compile, or not be right, without it: the step is not emitted.
    """

    reason: str
    instruction: str = ""
    blocks: bool = True


@record
class Leave:
    """Rightly untouched; `done` where that is because the change is there already."""

    reason: str
    done: bool = False


Verdict: TypeAlias = Rewrite | Manual | Leave
Kind: TypeAlias = Literal["codemod", "rule", "audit"]
Channel: TypeAlias = Literal["apiserver", "etcd", "cri", "node", "rbac", "none"]
Severity: TypeAlias = Literal["error", "warning", "info"]


@record
class Finding:
    """One site and what is said of it.

    `anchor` names which expected site of the codemod this is ("" for one found by a general rule); an
    anchor that is missing or doubled fails the run. `function` is written as Go does: `run`,
    `(*Embedded).Kubelet`, `type Executor`, or "" at file level. `message` is what would be done, or what
    was found. `shape` is a short stable word for the form of the site, such as `guard-fatal`. `severity` is how grave
    a rule says it is; None where that follows from the verdict.
    """

    id: str
    kind: Kind
    path: str
    span: Span
    function: str
    verdict: Verdict
    message: str
    channel: Channel = "none"
    shape: str = ""
    anchor: str = ""
    severity: Severity | None = None

    @property
    def place(self) -> str:
        """Return the file and the function, for people."""
        return f"{self.path} {self.function}".rstrip()

    @property
    def order(self) -> tuple[str, Span, str, str]:
        """Return what findings are sorted by: path and place, then what says it."""
        return self.path, self.span, self.id, self.message

    @property
    def is_unclassified(self) -> bool:
        """Tell whether nobody knows what this occurrence is, which fails a run."""
        return self.kind == "audit" and isinstance(self.verdict, Manual)


# --- what the engine makes of it --------------------------------------------------------------------


@record
class FileChange:
    """One file before and after a step; `None` where it does not exist."""

    path: str
    before: File | None
    after: File | None


@record
class Step:
    """One commit of the series: what it says and what it changes, sorted by path."""

    id: str
    title: str
    body: str
    findings: tuple[Finding, ...]
    changes: tuple[FileChange, ...]


@record
class Problem:
    """Why a plan is not fit to be emitted: what, where, and the exit code it stands for.

    `line` is 1-based in the tree that `step` was to change, or in the base where there is no step; `hint` is help.
    """

    code: ExitCode
    message: str
    path: str = ""
    line: int | None = None
    step: str = ""
    hint: str = ""


@record
class Plan:
    """The whole result for one snapshot: comparable, serialisable, free of syntax nodes.

    `findings` are positions in `base`, sorted by path, place and id. `steps` holds only the steps that change
    something, in order; `final` is the tree after the last of them. `done` names the codemods whose change was
    there already and `pending` those that were not run or could not finish, with the reason.
    """

    base: Snapshot
    findings: tuple[Finding, ...]
    steps: tuple[Step, ...]
    final: Snapshot
    problems: tuple[Problem, ...] = ()
    done: tuple[str, ...] = ()
    pending: tuple[tuple[str, str], ...] = ()
    era: str = ""


# --- many trees at once -------------------------------------------------------------------------------

SiteState: TypeAlias = Literal["applied", "to do", "differs", "left", "missing"]


@record
class SiteCell:
    """One expected site on one branch: what became of it, where it is, and why; `anchor` "" is one that nobody expects.

    `line` is where it begins, 1-based; `moved` is where it stood in the tree of the issue, where that is elsewhere. Of
    a site that differs or is missing, `step` is what to do by hand, `expected` the shape that the tool knows, and
    `found` the text that stands there, on one line.
    """

    codemod: str
    anchor: str
    state: SiteState
    place: str
    why: str
    line: int | None = None
    moved: str = ""
    step: str = ""
    expected: str = ""
    found: str = ""


@record
class BranchRow:
    """One ref: its cells in the campaign's order, then those nobody expects, its document, and the code it ends with.

    `files` are what an output folder of its own holds, by name; () where no series was asked for. `message` says why a
    ref could not be looked at, and `hint` what helps; then there is nothing else.
    """

    repository: str
    ref: str
    code: ExitCode
    message: str = ""
    hint: str = ""
    era: str = ""
    cells: tuple[SiteCell, ...] = ()
    document: dict[str, Any] | None = None
    files: tuple[tuple[str, bytes], ...] = ()
