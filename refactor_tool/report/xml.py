"""JUnit and checkstyle. Built as text: attribute values hold no line ends and nothing that XML forbids."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from refactor_tool.model import ExitCode, Problem
from refactor_tool.outcome import Report, Result
from refactor_tool.report.excerpt import Source
from refactor_tool.report.text import printable
from refactor_tool.report.words import told

_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
_TABLE = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})


def render_junit(report: Report) -> bytes:
    """Return one test case a result: failed if it is held against the tree, skipped if excused, else passed.

    The first test case is the gate itself, so that a clean tree has one and a run without a result is an error. No
    times: the same tree gives the same bytes.
    """
    held = set(report.held())
    cases = [*_gate_case(report)]
    for result in report.results:
        cases += _case(result, result in held)
    count = f'tests="{len(report.results) + 1}"'
    failed = len(held) + (report.decision.code is ExitCode.FINDINGS)
    errors = int(report.decision.code not in (ExitCode.CLEAN, ExitCode.FINDINGS))
    skipped = sum(result.status != "open" for result in report.results)
    totals = f'{count} failures="{failed}" errors="{errors}"'
    lines = [
        f'<testsuites name="refactor-tool" {totals}>',
        f' <testsuite name="refactor-tool check" {totals} skipped="{skipped}">',
        *cases,
        " </testsuite>",
        "</testsuites>",
    ]
    return (_HEAD + "\n".join(lines) + "\n").encode()


def render_checkstyle(report: Report) -> bytes:
    """Return the results by file; excused ones are `info`. Problems without a file stand under the tree's label."""
    source = Source(report.plan.base)
    rows: list[tuple[str, str]] = [(report.file(result), _style(result, source)) for result in report.results]
    rows += [(report.file(problem) or report.plan.base.label, _style_problem(problem)) for problem in report.problems]
    lines = ['<checkstyle version="4.3">']
    for path, group in groupby(sorted(rows, key=lambda row: row[0]), key=lambda row: row[0]):
        lines += [f' <file name="{_attribute(path)}">', *(line for _, line in group), " </file>"]
    return (_HEAD + "\n".join([*lines, "</checkstyle>"]) + "\n").encode()


def _gate_case(report: Report) -> Iterator[str]:
    decision = report.decision
    line = _attribute(decision.line)
    open_tag = '  <testcase classname="refactor-tool" name="gate">'
    match decision.code:
        case ExitCode.CLEAN:
            yield f"{open_tag}<system-out>{line}</system-out></testcase>"
        case ExitCode.FINDINGS:
            yield f'{open_tag}<failure type="gate" message="{line}"/></testcase>'
        case _:
            text = "".join(f"{_attribute(_problem_text(problem))}\n" for problem in report.problems)
            yield f'{open_tag}<error type="exit {int(decision.code)}" message="{line}">{text}</error></testcase>'


def _case(result: Result, held: bool) -> Iterator[str]:
    name = _attribute(f"{result.path} {result.function} [{result.fingerprint}]".replace("  ", " "))
    place = _attribute(f"{result.path}:{result.start.line}:{result.start.column}: {result.severity}: {told(result)}")
    yield f'  <testcase classname="refactor-tool.{_attribute(result.id)}" name="{name}">'
    if result.status != "open":
        yield f"   <skipped>{place}</skipped>"
    elif held:
        yield f'   <failure type="{result.severity}" message="{_attribute(result.message)}">{place}</failure>'
    else:
        yield f"   <system-out>{place}</system-out>"
    yield "  </testcase>"


def _style(result: Result, source: Source) -> str:
    severity = result.severity if result.status == "open" else "info"
    column = source.column(result.path, result.start)
    return (
        f'  <error line="{result.start.line}" column="{column}" severity="{severity}"'
        f' message="{_attribute(told(result))}" source="refactor-tool.{_attribute(result.id)}"/>'
    )


def _style_problem(problem: Problem) -> str:
    line = f' line="{problem.line}"' if problem.line else ""
    return f'  <error{line} severity="error" message="{_attribute(problem.message)}" source="refactor-tool"/>'


def _problem_text(problem: Problem) -> str:
    place = f"{problem.path}:{problem.line or 1}: " if problem.path else ""
    return f"{place}{problem.message}"


def _attribute(text: str) -> str:
    return printable(text).translate(_TABLE)
