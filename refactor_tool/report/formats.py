"""The formats of a report by name. Each tells every result: none filters, none knows more than the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from refactor_tool.report.text import Paint, printable

if TYPE_CHECKING:
    from refactor_tool.outcome import Report

#: Every name that `check --format` takes; the second part says what for.
FORMATS: dict[str, str] = {
    "text": "people, with the line of source",
    "json": "the document of scan and plan, with the gate's decision",
    "jsonl": "the same on one line",
    "sarif": "code scanning (SARIF 2.1.0)",
    "junit": "test reports (Jenkins, GitLab, Azure)",
    "github": "annotations of a GitHub job, on standard output",
    "github-summary": "$GITHUB_STEP_SUMMARY of a GitHub job",
    "gitlab": "GitLab Code Quality",
    "checkstyle": "whatever reads checkstyle",
    "rdjson": "reviewdog",
    "markdown": "a comment or a page",
}
#: Formats that can carry the rewrites themselves.
WITH_FIXES = frozenset({"sarif", "rdjson"})


def render(name: str, report: Report, paint: Paint) -> bytes:
    """Return the report in the format `name`, one of `FORMATS`; only `text` has colour."""
    match name:
        case "text":
            from refactor_tool.report import checked

            return checked.render(report, paint)
        case "json":
            return _json(document(report), indent=1)
        case "jsonl":
            return _json(document(report))
        case "sarif":
            from refactor_tool.report import sarif

            return _json(sarif.document(report), indent=1)
        case "junit":
            from refactor_tool.report import xml

            return xml.render_junit(report)
        case "checkstyle":
            from refactor_tool.report import xml

            return xml.render_checkstyle(report)
        case "github":
            from refactor_tool.report import actions

            return actions.render_annotations(report)
        case "github-summary":
            from refactor_tool.report import actions

            return actions.render_summary(report)
        case "gitlab":
            from refactor_tool.report import review

            return _json(review.gitlab(report), indent=1)
        case "rdjson":
            from refactor_tool.report import review

            return _json(review.rdjson(report), indent=1)
        case "markdown":
            from refactor_tool.report import markdown

            return markdown.render(report)
        case _:
            raise ValueError(f"no format {name!r}")


def document(report: Report) -> dict[str, Any]:
    """Return the run's JSON document with the gate's part: every result with its status, and the decision."""
    from refactor_tool.report.document import document as plan_document

    decision = report.decision
    found = plan_document(report.plan)
    found["summary"]["exit_code"] = int(decision.code)
    found["gate"] = {
        "passed": decision.passed,
        "exit_code": int(decision.code),
        "line": printable(decision.line),
        "fail_on": decision.fail_on,
        "base": report.base or None,
        "pending": [{"id": step.id, "sites": step.sites} for step in report.pending],
        "results": [
            {
                "id": result.id,
                "severity": result.severity,
                "verdict": result.verdict,
                "path": result.path,
                "line": result.start.line,
                "column": result.start.column,
                "end_line": result.end.line,
                "end_column": result.end.column,
                "function": result.function,
                "message": result.message,
                "advice": result.advice,
                "fingerprint": result.fingerprint,
                "status": result.status,
                "why": result.why,
            }
            for result in report.results
        ],
    }
    return found


def _json(value: Any, indent: int | None = None) -> bytes:
    """Return JSON in ASCII; no text in it can be taken for a CI runner's `##[…]` command."""
    import json

    return (json.dumps(value, indent=indent).replace("##", "#\\u0023") + "\n").encode()
