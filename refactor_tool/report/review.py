"""What code review tools read: GitLab Code Quality and reviewdog's rdjson."""

from __future__ import annotations

from typing import Any

from refactor_tool import edits
from refactor_tool.model import FileChange, LineIndex, Position
from refactor_tool.outcome import Report, Result
from refactor_tool.report.text import printable
from refactor_tool.report.words import told

_GITLAB = {"error": "major", "warning": "minor", "info": "info"}


def gitlab(report: Report) -> list[dict[str, Any]]:
    """Return the issues of a GitLab Code Quality report; what is excused is `info`, a problem is a `blocker`."""
    problems = [
        {
            "description": printable(problem.message),
            "check_name": "refactor-tool",
            "fingerprint": f"problem-{at}-{int(problem.code)}",
            "severity": "blocker",
            "location": {
                "path": printable(report.file(problem) or report.plan.base.label),
                "lines": {"begin": problem.line or 1},
            },
        }
        for at, problem in enumerate(report.problems)
    ]
    return [_issue(result, report.file(result)) for result in report.results] + problems


def rdjson(report: Report) -> dict[str, Any]:
    """Return reviewdog's diagnostic result; columns in bytes of UTF-8. What is excused is INFO.

    A rewrite is suggested where it is one replacement in one file: half of a rewrite must not be accepted.
    """
    fixes = dict(report.fixes)
    links = {rule.id: rule.url for rule in report.rules}
    diagnostics = [
        _diagnostic(result, report.file(result), links, fixes.get(result.fingerprint, ())) for result in report.results
    ]
    diagnostics += [
        {
            "message": printable(problem.message),
            "location": {"path": printable(report.file(problem) or report.plan.base.label)}
            | ({"range": {"start": {"line": problem.line}}} if problem.line else {}),
            "severity": "ERROR",
        }
        for problem in report.problems
    ]
    return {"source": {"name": "refactor-tool"}, "diagnostics": diagnostics}


def _issue(result: Result, file: str) -> dict[str, Any]:
    return {
        "description": printable(f"{result.id}: {told(result)}"),
        "check_name": result.id,
        "fingerprint": result.fingerprint,
        "severity": _GITLAB[result.severity] if result.status == "open" else "info",
        "location": {
            "path": printable(file),
            "lines": {"begin": result.start.line, "end": result.end.line},
        },
    }


def _diagnostic(result: Result, file: str, links: dict[str, str], changes: tuple[FileChange, ...]) -> dict[str, Any]:
    url = links.get(result.id, "")
    found: dict[str, Any] = {
        "message": printable(told(result)),
        "location": {"path": printable(file), "range": _range(result.start, result.end)},
        "severity": result.severity.upper() if result.status == "open" else "INFO",
        "code": {"value": result.id, **({"url": url} if url else {})},
    }
    if len(changes) == 1 and changes[0].before is not None and changes[0].after is not None:
        replacements = list(edits.line_edits(changes[0].before.data, changes[0].after.data))
        if len(replacements) == 1 and changes[0].path == result.path:
            ((span, text),) = replacements
            index = LineIndex(changes[0].before.data)
            where = _range(index.position(span.start), index.position(span.end))
            found["suggestions"] = [{"range": where, "text": text.decode("utf-8", "surrogateescape")}]
    return found


def _range(start: Position, end: Position) -> dict[str, Any]:
    return {
        "start": {"line": start.line, "column": start.column},
        "end": {"line": end.line, "column": end.column},
    }
