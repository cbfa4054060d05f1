"""SARIF 2.1.0: rules with help, results with regions and stable fingerprints, rewrites as replacements of bytes.

Columns are in characters, as SARIF has them; `byteOffset` and `byteLength` are exact whatever the encoding.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from refactor_tool import __version__, edits
from refactor_tool.model import ExitCode, FileChange, LineIndex, Position, Problem, Span
from refactor_tool.outcome import Report, Result, RuleInfo
from refactor_tool.report.excerpt import Source
from refactor_tool.report.text import printable
from refactor_tool.report.words import told

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}
#: The bytes of a path that stand for themselves in a URI (RFC 3986), and the slash.
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/")
#: What SARIF would take for a placeholder or a link in a message.
_PLACEHOLDER = re.compile(r"\{(\d+)\}")


def document(report: Report) -> dict[str, Any]:
    """Return the report as one SARIF log with one run."""
    source = Source(report.plan.base)
    fixes = dict(report.fixes)
    ids = [rule.id for rule in report.rules]
    results = [_result(report, result, ids, source, fixes.get(result.fingerprint, ())) for result in report.results]
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "refactor-tool",
                        "semanticVersion": __version__,
                        "informationUri": "https://github.com/k3s-io/k3s/issues/11896",
                        "rules": [_rule(rule) for rule in report.rules],
                    }
                },
                "automationDetails": {"id": "refactor-tool/check"},
                "columnKind": "unicodeCodePoints",
                "invocations": [_invocation(report)],
                "results": results,
            }
        ],
    }


def _rule(rule: RuleInfo) -> dict[str, Any]:
    found: dict[str, Any] = {
        "id": rule.id,
        "shortDescription": {"text": rule.title},
        "help": {"text": rule.help, "markdown": rule.help},
    }
    return found | ({"helpUri": rule.url} if rule.url else {})


def _invocation(report: Report) -> dict[str, Any]:
    code = report.decision.code
    finished = code in (ExitCode.CLEAN, ExitCode.FINDINGS)
    found: dict[str, Any] = {
        "executionSuccessful": finished,
        "exitCode": int(code),
        "exitCodeDescription": _message(report.decision.line),
    }
    notes = [_notification(problem, report.file(problem)) for problem in report.problems]
    return found | ({"toolExecutionNotifications": notes} if notes else {})


def _notification(problem: Problem, file: str) -> dict[str, Any]:
    found: dict[str, Any] = {"level": "error", "message": {"text": _message(problem.message)}}
    if file:
        region = {"region": {"startLine": problem.line}} if problem.line else {}
        found["locations"] = [{"physicalLocation": {"artifactLocation": _artifact(file), **region}}]
    return found


def _result(
    report: Report, result: Result, rules: list[str], source: Source, changes: tuple[FileChange, ...]
) -> dict[str, Any]:
    location: dict[str, Any] = {
        "physicalLocation": {"artifactLocation": _artifact(report.file(result)), "region": _region(result, source)}
    }
    if result.function:
        location["logicalLocations"] = [{"fullyQualifiedName": printable(result.function)}]
    found: dict[str, Any] = {
        "ruleId": result.id,
        **({"ruleIndex": rules.index(result.id)} if result.id in rules else {}),
        "level": _LEVELS[result.severity],
        "message": {"text": _message(told(result))},
        "locations": [location],
        "partialFingerprints": {"refactorTool/v1": result.fingerprint},
        "properties": {"verdict": result.verdict, "status": result.status},
    }
    if report.base:
        found["baselineState"] = "unchanged" if result.status == "known" else "new"
    match result.status:
        case "suppressed":
            found["suppressions"] = [{"kind": "inSource", "justification": _message(result.why)}]
        case "baseline":
            found["suppressions"] = [{"kind": "external", "justification": _message(result.why)}]
    if changes:
        description = {"text": f"{result.id}: this site alone; the whole step is in the series of refactor-tool plan"}
        made = [_change(change, report.plan.base.prefix) for change in changes]
        found["fixes"] = [{"description": description, "artifactChanges": made}]
    return found


def _region(result: Result, source: Source) -> dict[str, Any]:
    start, end = result.start, result.end
    if result.span is None:
        return {"startLine": start.line}
    return {
        "startLine": start.line,
        "startColumn": source.column(result.path, start),
        "endLine": end.line,
        "endColumn": source.column(result.path, end),
        "byteOffset": result.span.start,
        "byteLength": result.span.end - result.span.start,
    }


def _change(change: FileChange, prefix: str) -> dict[str, Any]:
    before = change.before.data if change.before is not None else b""
    after = change.after.data if change.after is not None else b""
    return {"artifactLocation": _artifact(prefix + change.path), "replacements": list(_replacements(before, after))}


def _replacements(before: bytes, after: bytes) -> Iterator[dict[str, Any]]:
    """Yield whole-line replacements that make `after` of `before`, in order."""
    index = LineIndex(before)
    for span, text in edits.line_edits(before, after):
        start, end = index.position(span.start), index.position(span.end)
        region = _lines(start, end, span)
        yield {"deletedRegion": region, "insertedContent": {"text": text.decode("utf-8", "surrogateescape")}}


def _lines(start: Position, end: Position, span: Span) -> dict[str, Any]:
    return {
        "startLine": start.line,
        "startColumn": 1,
        "endLine": end.line,
        "endColumn": end.column,
        "byteOffset": span.start,
        "byteLength": span.end - span.start,
    }


def _artifact(path: str) -> dict[str, Any]:
    shown = (chr(byte) if byte in _UNRESERVED else f"%{byte:02X}" for byte in path.encode("utf-8", "surrogateescape"))
    return {"uri": "".join(shown), "uriBaseId": "%SRCROOT%"}


def _message(text: str) -> str:
    """Return text from a tree as a SARIF message that holds no placeholder and no link."""
    return _PLACEHOLDER.sub(r"{{\1}}", printable(text)).replace("](", "] (")
