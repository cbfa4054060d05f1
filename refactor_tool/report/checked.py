"""What a check looks like in a terminal: each result with its line of source, then the decision."""

from __future__ import annotations

from collections.abc import Iterator

from refactor_tool.model import ExitCode
from refactor_tool.outcome import Report, Result, is_held
from refactor_tool.report.excerpt import Source
from refactor_tool.report.text import Paint, printable

_COLOURS = {"error": "red", "warning": "yellow", "info": "cyan"}


def render(report: Report, paint: Paint) -> bytes:
    """Return the results, the problems and the decision, in UTF-8 whatever the locale.

    What is excused comes first, a line each, so that what counts stands where the eye is: at the end.
    """
    source = Source(report.plan.base)
    lines = [_excused(result, paint) for result in report.results if result.status != "open"]
    lines += [
        line for result in report.results if result.status == "open" for line in _open(report, result, source, paint)
    ]
    for problem in report.problems:
        place = f"{printable(problem.path)}{f':{problem.line}' if problem.line else ''}: " if problem.path else ""
        step = f"{problem.step}: " if problem.step else ""
        lines.append(f"{paint('problem', 'red')} {step}{place}{printable(problem.message)}")
        if problem.hint:
            lines.append(f"  {printable(problem.hint)}")
    for item in report.plan.base.skipped:
        lines.append(f"{paint('not read', 'yellow')} {printable(item.path)}: {printable(item.reason)}")
    lines.append(decision_line(report, paint))
    return ("\n".join(lines) + "\n").encode()


def decision_line(report: Report, paint: Paint) -> str:
    """Return the one line that explains the exit code."""
    decision = report.decision
    head, _, rest = printable(decision.line).partition(":")
    return f"{paint(head, 'green' if decision.code is ExitCode.CLEAN else 'red')}:{rest}"


def _excused(result: Result, paint: Paint) -> str:
    return paint(f"{_head(result, result.status)} ({printable(result.why)})", "dim")


def _open(report: Report, result: Result, source: Source, paint: Paint) -> Iterator[str]:
    colour = _COLOURS[result.severity] if is_held(result, report.decision.fail_on) else "dim"
    yield _head(result, paint(result.severity, colour))
    excerpt = source.excerpt(result.path, result.start, result.end)
    if excerpt is not None:
        number = str(result.start.line)
        yield f"  {number} | {excerpt[0]}"
        yield f"  {' ' * len(number)} | {paint(excerpt[1], colour)}"
    if result.advice:
        yield f"    {printable(result.advice)}"


def _head(result: Result, word: str) -> str:
    function = f" in {printable(result.function)}" if result.function else ""
    place = f"{printable(result.path)}:{result.start.line}:{result.start.column}"
    return f"{place}: {word}: {result.id}{function}: {printable(result.message)}"
