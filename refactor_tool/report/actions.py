"""GitHub: annotations as workflow commands, and the job summary.

A workflow command is a line that begins with `::`, so every result is one line and nothing from the tree begins one.
"""

from __future__ import annotations

from collections import Counter

from refactor_tool.outcome import Report, Result
from refactor_tool.report.excerpt import Source
from refactor_tool.report.markdown import code
from refactor_tool.report.markdown import render as render_markdown
from refactor_tool.report.text import printable
from refactor_tool.report.words import counted, told

_LEVELS = {"error": "error", "warning": "warning", "info": "notice"}
#: GitHub drops the summary of a step whole where it is larger than this, in bytes.
_SUMMARY_LIMIT = 1 << 20


def render_annotations(report: Report) -> bytes:
    """Return one annotation a result and one for the decision."""
    source = Source(report.plan.base)
    lines = [_annotation(result, report.file(result), source) for result in report.results]
    for problem in report.problems:
        file = report.file(problem)
        place = {"file": file, **({"line": str(problem.line)} if problem.line else {})} if file else {}
        lines.append(_command("error", {**place, "title": "refactor-tool"}, problem.message))
    decision = report.decision
    lines.append(_command("notice" if decision.passed else "error", {"title": "refactor-tool"}, decision.line))
    return "".join(f"{line}\n" for line in lines).encode()


def render_summary(report: Report) -> bytes:
    """Return the job summary in markdown: every result, or, where GitHub would not take that much, counts by file."""
    whole = render_markdown(report)
    if len(whole) < _SUMMARY_LIMIT:
        return whole
    counts = Counter((report.file(result), result.id, result.status) for result in report.results)
    lines = [f"## refactor-tool: {code(report.decision.line)}", ""]
    lines.append(f"{counted(len(report.results), 'result')}, too many to list here; by file:")
    lines += ["", "| file | rule | status | results |", "| --- | --- | --- | --- |"]
    lines += [f"| {code(path)} | {code(id)} | {status} | {n} |" for (path, id, status), n in sorted(counts.items())]
    short = ("\n".join(lines) + "\n").encode()
    if len(short) < _SUMMARY_LIMIT:
        return short
    by_rule = Counter((result.id, result.status) for result in report.results)
    lines[2] = (
        f"{counted(len(report.results), 'result')} in {counted(len({p for p, _, _ in counts}), 'file')}; by rule:"
    )
    lines[4:] = ["| rule | status | results |", "| --- | --- | --- |"]
    lines += [f"| {code(id)} | {status} | {n} |" for (id, status), n in sorted(by_rule.items())]
    return ("\n".join(lines) + "\n").encode()


def _annotation(result: Result, file: str, source: Source) -> str:
    properties = {"file": file, "line": str(result.start.line), "endLine": str(result.end.line)}
    properties["col"] = str(source.column(result.path, result.start))
    if result.end.line == result.start.line:
        properties["endColumn"] = str(source.column(result.path, result.end))
    properties["title"] = f"{result.id} ({result.status})" if result.status != "open" else result.id
    level = _LEVELS[result.severity] if result.status == "open" else "notice"
    return _command(level, properties, told(result))


def _command(level: str, properties: dict[str, str], message: str) -> str:
    """Return one workflow command; GitHub undoes exactly these escapes."""
    shown = ",".join(f"{key}={_escaped(value, ',:')}" for key, value in properties.items())
    return f"::{level} {shown}::{_escaped(message, '')}"


def _escaped(text: str, more: str) -> str:
    text = printable(text).replace("%", "%25")
    for char in more:
        text = text.replace(char, f"%{ord(char):02X}")
    return text
