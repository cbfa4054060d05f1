"""What a run looks like in a terminal: sites by channel and step, the series at a glance, and what to type next.

Pure: colour is a parameter, and text from the examined tree is shown without control characters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby

from refactor_tool import edits
from refactor_tool.model import ExitCode, Finding, Manual, Places, Plan, Step
from refactor_tool.report.document import (
    Tally,
    exit_code,
    other_problems,
    reason,
    tally,
    verdict_word,
    why_pending,
)

_CHANNELS = ("apiserver", "etcd", "cri", "node", "rbac", "none")
_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_VERDICT_COLOURS = {"rewrite": "green", "manual": "yellow", "leave": "dim", "hazard": "red", "unclassified": "red"}


class Paint:
    """Put colour on text, or leave it as it is."""

    def __init__(self, *, colour: bool) -> None:
        self._colour = colour

    def __call__(self, text: str, style: str) -> str:
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if self._colour else text


def printable(text: str) -> str:
    """Return text from a checkout so that it cannot steer a terminal, break a line or command a CI runner.

    Runners take `##[…]`, `##vso[…]` and `##teamcity[…]` for commands wherever they stand in a line.
    """
    if not text.isprintable():
        text = "".join(
            char if char.isprintable() else char.encode("unicode_escape", "backslashreplace").decode() for char in text
        )
    return text.replace("##", "#\\x23")


def render_scan(plan: Plan, paint: Paint, *, asked: str = "") -> str:
    """Return every site with what would become of it, grouped by channel and codemod, then the counts.

    `asked` is the path that the user gave, which stands for a work tree.
    """
    lines = [_head(plan, paint, asked)]
    where = Places(plan.base)
    for channel in _CHANNELS:
        mine = [finding for finding in plan.findings if finding.channel == channel]
        if not mine:
            continue
        lines += ["", paint(channel if channel != "none" else "other", "bold")]
        for name, group in groupby(sorted(mine, key=_by_id(plan)), key=lambda finding: finding.id):
            lines.append(f"  {paint(name, 'cyan')}")
            lines.extend(_site(finding, where, paint) for finding in group)
    lines += ["", *_needs_a_hand(plan, where, paint), _counts(tally(plan), paint), *_problems(plan, paint)]
    return "\n".join(lines) + "\n"


def render_plan(plan: Plan, paint: Paint, *, next_command: str, asked: str = "") -> str:
    """Return the series at a glance: steps with their size, sites by verdict, what needs a hand, what to type next.

    `asked` is as for `render_scan`.
    """
    lines = [_head(plan, paint, asked), ""]
    lines.extend(_steps(plan.steps, paint))
    if not plan.steps:
        lines.append("  nothing to do" if exit_code(plan) is ExitCode.CLEAN else "  no series")
        lines.extend(f"  {name}: done already" for name in plan.done)
    left_out = paint("not in the series", "yellow")
    lines.extend(f"  {left_out}  {name}: {printable(why)}" for name, why in why_pending(plan))
    lines += ["", *_needs_a_hand(plan, Places(plan.base), paint), _counts(tally(plan), paint), *_problems(plan, paint)]
    if next_command:
        lines += ["", f"next: {paint(next_command, 'bold')}"]
    elif plan.problems and not plan.steps:
        lines += ["", "next: do what is named above and plan again, or emit what is sound with --keep-going"]
    return "\n".join(lines) + "\n"


def _by_id(plan: Plan) -> Callable[[Finding], tuple[str, int]]:
    order = {name: at for at, name in enumerate(dict.fromkeys(finding.id for finding in plan.findings))}
    return lambda finding: (finding.kind, order[finding.id])


def _head(plan: Plan, paint: Paint, asked: str) -> str:
    base = plan.base
    label = asked if asked and base.source == "tree" else base.label
    files = sum(path.endswith(".go") for path in base.files)
    commit = f" ({base.commit[:12]})" if base.commit else ""
    era = f", {plan.era}" if plan.era else ""
    return f"{paint(printable(label), 'bold')}{commit}: {files} Go files{era}"


def _site(finding: Finding, where: Places, paint: Paint) -> str:
    word = "unclassified" if finding.is_unclassified else verdict_word(finding)
    place = f"{printable(finding.path)}:{where.line(finding)}"
    function = f" {printable(finding.function)}" if finding.function else ""
    why = reason(finding)
    text = printable(why if why else finding.message)
    return f"    {paint(f'{word:<8}', _VERDICT_COLOURS[word])} {place}{function}: {text}"


def _steps(steps: Iterable[Step], paint: Paint) -> Iterator[str]:
    rows = [(step, *edits.size(step.changes)) for step in steps]
    if not rows:
        return
    width = max(len(step.id) for step, _, _ in rows)
    scale = max(added + removed for _, added, removed in rows) / 24
    for at, (step, added, removed) in enumerate(rows, start=1):
        files = len(step.changes)
        bar = paint("+" * _bar(added, scale), "green") + paint("-" * _bar(removed, scale), "red")
        unit = "files" if files != 1 else "file "
        yield f"  {at:>2} {step.id:<{width}}  {files:>2} {unit} {added:>5}+ {removed:>4}-  {bar}"
        yield f"     {paint(step.title, 'dim')}"


def _bar(count: int, scale: float) -> int:
    return max(1, round(count / scale)) if count and scale > 0 else min(count, 1)


def _needs_a_hand(plan: Plan, where: Places, paint: Paint) -> Iterator[str]:
    manual = [one for one in plan.findings if isinstance(one.verdict, Manual) and not one.is_unclassified]
    if not manual:
        return
    yield paint("needs a hand", "yellow")
    for finding in manual:
        yield f"  {printable(finding.path)}:{where.line(finding)} {finding.id}: {printable(reason(finding))}"
    yield ""


def _counts(counts: Tally, paint: Paint) -> str:
    parts = [
        paint(f"{counts.rewrite} to rewrite", "green") if counts.rewrite else "0 to rewrite",
        paint(f"{counts.manual} by hand", "yellow") if counts.manual else "0 by hand",
        f"{counts.leave} left",
        paint(f"{counts.unclassified} unclassified", "red") if counts.unclassified else "0 unclassified",
    ]
    if counts.hazards:
        parts.append(paint(f"{counts.hazards} hazards", "red"))
    return f"{counts.sites} sites: {', '.join(parts)}"


def _problems(plan: Plan, paint: Paint) -> Iterator[str]:
    for problem in other_problems(plan):
        line = f":{problem.line}" if problem.line is not None else ""
        parts = [problem.step, f"{printable(problem.path)}{line}" if problem.path else "", printable(problem.message)]
        yield f"{paint('problem', 'red')} {': '.join(part for part in parts if part)}"
        if problem.hint:
            yield f"  {printable(problem.hint)}"
    for item in plan.base.skipped:
        yield f"{paint('not read', 'yellow')} {printable(item.path)}: {printable(item.reason)}"
