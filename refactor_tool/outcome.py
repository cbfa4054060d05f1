"""What the gate makes of a plan: results, each with a status, and one decision. Values only.

Every format renders these and nothing else, so that no format can tell another story than the exit code.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from refactor_tool.model import ExitCode, FileChange, Plan, Position, Problem, Severity, Span
from refactor_tool.record import record

FailOn: TypeAlias = Literal["error", "warning", "info", "never"]
#: Why a result is held against the tree or not: `known` was there at the base already.
Status: TypeAlias = Literal["open", "known", "baseline", "suppressed"]

#: Gravest first.
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
FAIL_ON: tuple[FailOn, ...] = (*SEVERITIES, "never")


@record
class RuleInfo:
    """What a person can read about an id: a codemod, a hazard rule, the audit, or the gate's own."""

    id: str
    title: str
    help: str
    url: str


@record
class Result:
    """One finding as the gate sees it.

    `span` is in bytes; None where `path` is no file of the snapshot, such as the baseline. Lines and columns are
    1-based, columns in bytes, ends exclusive. `advice` says what to do or why; `why` says where the status comes from.
    `verdict` is the document's word, or `unclassified`, or `gate` for what the gate itself found.
    """

    id: str
    severity: Severity
    verdict: Literal["rewrite", "manual", "hazard", "unclassified", "gate"]
    path: str
    span: Span | None
    start: Position
    end: Position
    function: str
    message: str
    advice: str
    fingerprint: str
    status: Status = "open"
    why: str = ""


@record
class Suppression:
    """One `//refactor-tool:ignore` comment. It covers findings that start on the lines `first` to `last`, 1-based.

    `until` is the last day it counts, as YYYY-MM-DD, or "". `fault` says what is wrong with it, or "".
    """

    path: str
    span: Span
    line: int
    first: int
    last: int
    rule: str
    reason: str
    until: str
    fault: str


@record
class Accepted:
    """One line of a baseline: a finding that a reviewer accepted, and why. `line` is its place in the file, 1-based."""

    path: str
    id: str
    function: str
    fingerprint: str
    message: str
    note: str = ""
    line: int = 0


def identity(each: Result | Accepted) -> tuple[str, ...]:
    """Return what must agree between a finding and the entry that accepts it, in the order of a baseline's lines."""
    return each.path, each.id, each.function, each.fingerprint


@record
class Baseline:
    """A reviewed file of accepted findings. `mend` is the command that brings it up to date."""

    name: str
    entries: tuple[Accepted, ...]
    mend: str


@record
class Decision:
    """The whole answer: one code, and one line that explains it."""

    code: ExitCode
    line: str
    fail_on: FailOn

    @property
    def passed(self) -> bool:
        return self.code is ExitCode.CLEAN


@record
class Pending:
    """A step of the campaign that this tree still needs, and how many sites it has there."""

    id: str
    sites: int


@record
class Report:
    """Everything a format may tell. `results` are sorted by path and place; `problems` are those no result tells.

    `fixes` holds, by fingerprint, what a result's rewrite alone would change; empty unless a format asked for it.
    """

    plan: Plan
    rules: tuple[RuleInfo, ...]
    results: tuple[Result, ...]
    problems: tuple[Problem, ...]
    pending: tuple[Pending, ...]
    decision: Decision
    base: str = ""
    fixes: tuple[tuple[str, tuple[FileChange, ...]], ...] = ()

    def file(self, found: Result | Problem) -> str:
        """Return the file of a result or problem from the top of the repository, as services name it; "" for none."""
        is_ours = found.path in self.plan.base.files
        return f"{self.plan.base.prefix}{found.path}" if is_ours else found.path

    def held(self) -> tuple[Result, ...]:
        """Return the results that the decision counts."""
        return tuple(result for result in self.results if is_held(result, self.decision.fail_on))


def is_held(result: Result, fail_on: FailOn) -> bool:
    """Say whether a result fails the gate."""
    return (
        result.status == "open"
        and fail_on != "never"
        and SEVERITIES.index(result.severity) <= SEVERITIES.index(fail_on)
    )
