"""A report as GitHub-flavoured markdown. Text from the tree is entities inside code, so it cannot become markup."""

from __future__ import annotations

from itertools import groupby

from refactor_tool.outcome import Report, Result
from refactor_tool.report.text import printable
from refactor_tool.report.words import counted, told


def render(report: Report) -> bytes:
    """Return the decision, the steps to do, and a table of results a file."""
    decision = report.decision
    lines = [f"## refactor-tool: {'passed' if decision.passed else f'failed (exit {int(decision.code)})'}", ""]
    lines += [code(decision.line.partition(": ")[2]), ""]
    if report.pending:
        lines += ["| step to do | sites |", "| --- | --- |"]
        lines += [f"| {code(step.id)} | {step.sites} |" for step in report.pending] + [""]
    for problem in report.problems:
        file = report.file(problem)
        place = f"{file}:{problem.line or 1}: " if file else ""
        lines += [f"- problem: {code(f'{place}{problem.message}')}"]
    for path, group in groupby(report.results, key=report.file):
        results = list(group)
        lines += ["", f"### {code(path)}: {counted(len(results), 'result')}", ""]
        lines += ["| line | status | severity | rule | what |", "| --- | --- | --- | --- | --- |"]
        lines += [_row(result) for result in results]
    for item in report.plan.base.skipped:
        lines += ["", f"- not read: {code(f'{item.path}: {item.reason}')}"]
    return ("\n".join(lines).rstrip("\n") + "\n").encode()


def code(text: str) -> str:
    """Return text from a tree as code that shows just that: no markup, mention, link or table cell can start in it."""
    plain = printable(text)
    return f"<code>{''.join(char if char.isalnum() or char == ' ' else f'&#{ord(char)};' for char in plain)}</code>"


def _row(result: Result) -> str:
    cells = (str(result.start.line), result.status, result.severity, code(result.id), code(told(result)))
    return f"| {' | '.join(cells)} |"
