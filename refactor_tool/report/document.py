"""The JSON document of a run: one schema for scan, plan and check. Every other format tells the same findings.

Lines and columns are 1-based, columns in bytes, ends exclusive. New keys may be added; none changes its meaning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Literal, assert_never

from refactor_tool import __version__, edits
from refactor_tool.model import (
    ExitCode,
    Finding,
    Leave,
    Manual,
    Places,
    Plan,
    Problem,
    Rewrite,
    Severity,
    Snapshot,
    gravest,
)
from refactor_tool.record import record

SCHEMA = "refactor-tool/1"


@record
class Tally:
    """How many sites there are, by what is said of them."""

    rewrite: int
    manual: int
    leave: int
    unclassified: int
    hazards: int

    @property
    def sites(self) -> int:
        return self.rewrite + self.manual + self.leave + self.unclassified + self.hazards


def tally(plan: Plan) -> Tally:
    counts = Counter(verdict_word(finding) for finding in plan.findings if not finding.is_unclassified)
    unclassified = sum(finding.is_unclassified for finding in plan.findings)
    return Tally(counts["rewrite"], counts["manual"], counts["leave"], unclassified, counts["hazard"])


def exit_code(plan: Plan) -> ExitCode:
    """Return the code that a run with this result ends with: the gravest of its problems, 1 for anything left to do."""
    codes = [problem.code for problem in plan.problems]
    if any(not isinstance(finding.verdict, Leave) for finding in plan.findings):
        codes.append(ExitCode.FINDINGS)
    return gravest(codes)


def verdict_word(finding: Finding) -> Literal["rewrite", "manual", "leave", "hazard"]:
    """Return the document's word for a verdict; whatever a rule reports is a hazard."""
    if finding.kind == "rule":
        return "hazard"
    match finding.verdict:
        case Rewrite():
            return "rewrite"
        case Manual():
            return "manual"
        case Leave():
            return "leave"
        case _:
            assert_never(finding.verdict)


def severity(finding: Finding) -> Severity | None:
    """Return how grave a finding is for a gate: what is left to do is an error, what is rightly there is nothing."""
    match finding.verdict:
        case Leave():
            return None
        case _ if finding.severity is not None:
            return finding.severity
        case Rewrite() | Manual():
            return "error"
        case _:
            assert_never(finding.verdict)


def reason(finding: Finding) -> str:
    """Return why a site is manual or left, with what to do; "" for a rewrite."""
    match finding.verdict:
        case Rewrite():
            return ""
        case Manual(reason=why, instruction=instruction):
            return f"{why}; {instruction}" if instruction else why
        case Leave(reason=why):
            return why
        case _:
            assert_never(finding.verdict)


def other_problems(plan: Plan) -> tuple[Problem, ...]:
    """Return the problems that are not told already, as a site for a person."""
    told = _reasons_by_hand(plan)
    return tuple(problem for problem in plan.problems if (problem.step, problem.message) not in told)


def why_pending(plan: Plan) -> tuple[tuple[str, str], ...]:
    """Return each codemod that is not in the series, with why in a few words."""
    told = _reasons_by_hand(plan)
    return tuple((name, "needs a hand, see below" if (name, why) in told else why) for name, why in plan.pending)


def _reasons_by_hand(plan: Plan) -> frozenset[tuple[str, str]]:
    return frozenset(
        (finding.id, finding.verdict.reason) for finding in plan.findings if isinstance(finding.verdict, Manual)
    )


def document(plan: Plan) -> dict[str, Any]:
    """Return the run as JSON values in a fixed order of keys."""
    counts = tally(plan)
    return {
        "schema": SCHEMA,
        "tool": {"name": "refactor-tool", "version": __version__},
        "snapshot": _snapshot(plan.base),
        "era": plan.era,
        "findings": _findings(plan),
        "steps": [
            {
                "id": step.id,
                "title": step.title,
                "files": [
                    {"path": change.path, "added": added, "removed": removed}
                    for change in step.changes
                    for added, removed in [edits.size([change])]
                ],
            }
            for step in plan.steps
        ],
        "done": list(plan.done),
        "pending": [{"id": name, "reason": why} for name, why in plan.pending],
        "problems": [_problem(problem) for problem in plan.problems],
        "skipped": [{"path": item.path, "reason": item.reason} for item in plan.base.skipped],
        "summary": {
            "sites": counts.sites,
            "rewrite": counts.rewrite,
            "manual": counts.manual,
            "leave": counts.leave,
            "unclassified": counts.unclassified,
            "hazards": counts.hazards,
            "exit_code": int(exit_code(plan)),
        },
    }


def as_json(value: Any) -> bytes:
    """Return JSON values as a file holds them."""
    import json

    return (json.dumps(value, indent=1) + "\n").encode()


def fingerprints(plan: Plan) -> tuple[str, ...]:
    """Return a stable id per finding, in order: it holds when lines move or functions are reordered."""
    return tuple(fingerprint_of(*parts) for parts in fingerprint_parts(plan))


def fingerprint_parts(plan: Plan, names: Mapping[str, str] = MappingProxyType({})) -> Iterator[tuple[str, ...]]:
    """Yield what the id of each finding is made from, in order.

    That is the rule, file, function, shape, the site's text with white space folded, and a number for equal ones.
    `names` are other names for files, such as those they had before they moved.
    """
    seen: Counter[tuple[str, ...]] = Counter()
    for finding in plan.findings:
        data = plan.base.files[finding.path].data if finding.path in plan.base.files else b""
        text = b" ".join(data[finding.span.start : finding.span.end].split()).decode("utf-8", "replace")
        key = (finding.id, names.get(finding.path, finding.path), finding.function, finding.shape, text)
        seen[key] += 1
        yield *key, str(seen[key])


def fingerprint_of(*parts: str) -> str:
    # imported here: a scan in text has no use for it
    from hashlib import sha256

    return sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:20]


def _snapshot(snapshot: Snapshot) -> dict[str, Any]:
    sizes = [len(file.data) for path, file in snapshot.looked_through() if path.endswith(".go")]
    return {
        "source": snapshot.source,
        "label": snapshot.label,
        "commit": snapshot.commit,
        "go_files": len(sizes),
        "bytes": sum(sizes),
    }


def _findings(plan: Plan) -> list[dict[str, Any]]:
    places = Places(plan.base)
    out = []
    for finding, fingerprint in zip(plan.findings, fingerprints(plan), strict=True):
        start = places.position(finding.path, finding.span.start)
        end = places.position(finding.path, finding.span.end)
        out.append(
            {
                "id": finding.id,
                "kind": finding.kind,
                "path": finding.path,
                "line": start.line,
                "column": start.column,
                "end_line": end.line,
                "end_column": end.column,
                "function": finding.function,
                "verdict": verdict_word(finding),
                "severity": severity(finding),
                "reason": reason(finding),
                "message": finding.message,
                "channel": finding.channel,
                "shape": finding.shape,
                "fingerprint": fingerprint,
            }
        )
    return out


def _problem(problem: Problem) -> dict[str, Any]:
    return {
        "code": int(problem.code),
        "message": problem.message,
        "path": problem.path,
        "line": problem.line,
        "step": problem.step,
        "hint": problem.hint,
    }
