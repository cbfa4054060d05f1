"""What `verify` proved of a tree or of each step of a series: value types, and the one decision they lead to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from refactor_tool.model import ExitCode, FileChange, Problem, Snapshot
from refactor_tool.record import record

Level: TypeAlias = Literal["syntax", "types", "build", "behaviour"]
Status: TypeAlias = Literal["ok", "failed", "not verified"]

#: Cheapest first. Each level sees what the one before cannot.
LEVELS: tuple[Level, ...] = ("syntax", "types", "build", "behaviour")


@record
class BuildConfig:
    """One way in which the module is built."""

    name: str
    goos: str
    tags: tuple[str, ...] = ()
    goarch: str = "amd64"


#: The builds that k3s and its downstreams make; test files belong to each.
BUILD_CONFIGS: tuple[BuildConfig, ...] = (
    BuildConfig("linux", "linux"),
    BuildConfig("windows", "windows"),
    BuildConfig("no_embedded_executor", "linux", ("no_embedded_executor",)),
    BuildConfig("no_cri_dockerd", "linux", ("no_cri_dockerd",)),
)


@record
class Origin:
    """Who wrote a place of a step: the codemod, the site it rewrote, and with which template.

    `path` and `line` (1-based) are those of the site in the tree before the step; `template` is "" for a text that is
    no template's.
    """

    codemod: str
    path: str
    line: int
    function: str
    message: str
    template: str = ""


@record
class Written:
    """A part of a step: `origin` wrote lines `start..end` (0-based, half open) of `path` as it is after the step.

    `package` is the import path where an import was asked for.
    """

    path: str
    start: int
    end: int
    origin: Origin
    package: str = ""


@record
class Stage:
    """One thing to verify: a tree, and the tree before it where there is one. `written` says who wrote what of it."""

    id: str
    title: str
    before: Snapshot | None
    after: Snapshot
    changes: tuple[FileChange, ...] = ()
    written: tuple[Written, ...] = ()


@record
class Fault:
    """One thing that is wrong, and was not before; the place is 1-based in the tree of its stage, columns in bytes.

    `function` is the declaration around it as Go writes it. `configs` are names of build configurations, () where the
    level does not tell them apart. `code` is a short stable word.
    """

    path: str
    line: int | None
    column: int | None
    message: str
    code: str
    function: str = ""
    configs: tuple[str, ...] = ()
    origin: Origin | None = None


@record
class Gap:
    """Something that a level did not look at, and why; `blocks` where that leaves the stage unproven."""

    what: str
    reason: str
    configs: tuple[str, ...] = ()
    blocks: bool = True


@record
class Checked:
    """One level on one stage. `configs` are those it was checked in."""

    level: Level
    configs: tuple[str, ...] = ()
    faults: tuple[Fault, ...] = ()
    gaps: tuple[Gap, ...] = ()
    note: str = ""

    @property
    def status(self) -> Status:
        if self.faults:
            return "failed"
        return "not verified" if any(gap.blocks for gap in self.gaps) else "ok"


@record
class Ran:
    """One level on all stages, one `Checked` each in order; `reason` says why it did not run and has none."""

    level: Level
    checked: tuple[Checked, ...] = ()
    reason: str = ""
    hint: str = ""
    #: It was wanted and could not run, which is a failure of the machine.
    lacking: bool = False

    @property
    def status(self) -> Status:
        if self.reason:
            return "not verified"
        found = {checked.status for checked in self.checked}
        return "failed" if "failed" in found else "not verified" if "not verified" in found else "ok"


@record
class Verification:
    """All that came out, one `Ran` a level. `kind` says what the stages are; `toolchain` is what Go calls itself."""

    snapshot: Snapshot
    kind: Literal["series", "change", "tree"]
    stages: tuple[Stage, ...]
    ran: tuple[Ran, ...]
    wanted: Level
    toolchain: str = ""
    problems: tuple[Problem, ...] = ()

    @property
    def codes(self) -> tuple[ExitCode, ...]:
        """Return the exit codes that apply: 1 for a fault, 3 for a wanted level that is not proven."""
        codes = [problem.code for problem in self.problems]
        wanted = LEVELS[: LEVELS.index(self.wanted) + 1]
        for ran in self.ran:
            if ran.status == "failed":
                codes.append(ExitCode.FINDINGS)
            if ran.level in wanted and (ran.lacking or _is_gappy(ran.checked)):
                codes.append(ExitCode.ENVIRONMENT)
        return tuple(codes)


def _is_gappy(checked: Iterable[Checked]) -> bool:
    return any(gap.blocks for each in checked for gap in each.gaps)
