"""The series as one page to look at before reading: steps as bars, sites as squares, each change as a coloured diff.

Pure. One file without scripts or links to elsewhere; text from a tree is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from refactor_tool import edits
from refactor_tool.model import FileChange, Finding, Places, Plan, Problem, Step
from refactor_tool.report.document import other_problems, reason, tally, verdict_word, why_pending
from refactor_tool.report.markup import escaped

_COLOURS = {"rewrite": "#218bff", "manual": "#d4a72c", "leave": "#d0d7de", "unclassified": "#cf222e"}


def page(plan: Plan, title: str) -> bytes:
    """Return the page; the same plan gives the same bytes."""
    counts = tally(plan)
    commit = f" {plan.base.commit[:12]}" if plan.base.commit else ""
    where = escaped(plan.base.label) if plan.base.label != "." else "Work tree at"
    parts = [
        f"<h1>{escaped(title)}</h1>",
        f"<p>{where}{commit}: {escaped(plan.era)}. {counts.sites} sites: {counts.rewrite} to rewrite, "
        f"{counts.manual} by hand, {counts.leave} left, {counts.unclassified} unclassified.</p>",
        _squares(plan),
        _bars(plan.steps),
        *_attention(plan),
        *(part for at, step in enumerate(plan.steps, start=1) for part in _step(at, step)),
    ]
    return _PAGE.replace("{{title}}", escaped(title)).replace("{{body}}", "\n".join(parts)).encode("utf-8", "replace")


def _squares(plan: Plan) -> str:
    """Draw a row a file, a square a site, coloured by verdict; the reason shows when it is pointed at."""
    places = Places(plan.base)
    rows: dict[str, list[str]] = {}
    for finding in plan.findings:
        word = "unclassified" if finding.is_unclassified else verdict_word(finding)
        place = f"{finding.path}:{places.line(finding)} {finding.function}"
        title = f"{place}\n{finding.id}: {reason(finding) or finding.message}"
        square = f'<i style="--c:{_COLOURS.get(word, "#8250df")}" title="{escaped(title)}"></i>'
        rows.setdefault(finding.path, []).append(square)
    legend = "".join(f'<span style="--c:{colour}">{word}</span>' for word, colour in _COLOURS.items())
    lines = "".join(f"<tr><th>{escaped(path)}</th><td>{''.join(squares)}</td></tr>" for path, squares in rows.items())
    return f"<h2>Sites</h2><p class=legend>{legend}</p><table class=sites>{lines}</table>"


def _bars(steps: Iterable[Step]) -> str:
    """Draw the size of each step: lines added to the right in green, removed in red."""
    sizes = [(at, step, *edits.size(step.changes)) for at, step in enumerate(steps, start=1)]
    most = max((added + removed for _, _, added, removed in sizes), default=0) or 1
    rows = []
    for at, step, added, removed in sizes:
        bar = (
            f'<svg width="360" height="14"><rect width="{360 * added / most:.1f}" height="14" fill="#2da44e"/>'
            f'<rect x="{360 * added / most:.1f}" width="{360 * removed / most:.1f}" height="14" fill="#cf222e"/></svg>'
        )
        name = f'<a href="#step{at}">{at} {escaped(step.title)}</a>'
        rows.append(f"<tr><th>{name}</th><td>{bar}</td><td>+{added} −{removed}, {len(step.changes)} files</td></tr>")
    return f"<h2>Steps</h2><table>{''.join(rows)}</table>" if rows else ""


def _attention(plan: Plan) -> Iterator[str]:
    places = Places(plan.base)
    by_hand = [finding for finding in plan.findings if verdict_word(finding) == "manual"]
    if by_hand or plan.problems or plan.pending:
        yield "<h2>Needs a hand</h2><ul>"
        yield from (f"<li>{escaped(name)} is not in the series: {escaped(why)}</li>" for name, why in why_pending(plan))
        yield from (_by_hand(finding, places) for finding in by_hand)
        yield from (_problem(problem) for problem in other_problems(plan))
        yield "</ul>"


def _by_hand(finding: Finding, places: Places) -> str:
    place = f"{escaped(finding.path)}:{places.line(finding)}"
    return f"<li><code>{place}</code> {escaped(finding.id)}: {escaped(reason(finding))}</li>"


def _problem(problem: Problem) -> str:
    line = f":{problem.line}" if problem.line is not None else ""
    place = f"<code>{escaped(problem.path)}{line}</code> " if problem.path else ""
    step = f"{escaped(problem.step)}: " if problem.step else ""
    hint = f"<br>{escaped(problem.hint)}" if problem.hint else ""
    return f"<li>{place}{step}{escaped(problem.message)}{hint}</li>"


def _step(at: int, step: Step) -> Iterator[str]:
    yield f'<h2 id="step{at}">{at}. {escaped(step.title)}</h2><p class=body>{escaped(step.body)}</p>'
    for change in step.changes:
        added, removed = edits.size([change])
        is_open = "" if change.before is None or change.path.endswith("_test.go") else " open"
        yield f"<details{is_open}><summary><code>{escaped(change.path)}</code> +{added} −{removed}</summary><pre>"
        yield "".join(_hunks(change))
        yield "</pre></details>"


def _hunks(change: FileChange) -> Iterator[str]:
    before = change.before.data if change.before is not None else b""
    after = change.after.data if change.after is not None else b""
    for hunk in edits.hunks(before, after):
        heading = hunk.heading.decode("utf-8", "replace")
        yield f"<b>@@ {hunk.place.before_start + 1} → {hunk.place.after_start + 1} @@ {escaped(heading)}</b>\n"
        for line in hunk.lines:
            text = escaped(line.decode("utf-8", "replace").rstrip("\r\n").replace("\t", "    "))
            style = {"+": "ins", "-": "del"}.get(text[:1])
            yield f"<{style}>{text}</{style}>\n" if style else f"{text}\n"


_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{{title}}</title>
<style>
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em; }
td { white-space: nowrap; } .sites td { white-space: normal; }
th { font-weight: 400; text-align: left; padding-right: 1em; white-space: nowrap; }
.sites th { font: 12px ui-monospace, monospace; } .body { white-space: pre-line; }
i { display: inline-block; width: 12px; height: 12px; margin: 1px; border-radius: 3px; background: var(--c); }
.legend span { margin-right: 1.2em; }
.legend span::before { content: ""; display: inline-block; width: 12px; height: 12px; margin-right: 6px;
  border-radius: 3px; background: var(--c); }
pre { font: 12px/1.45 ui-monospace, monospace; overflow-x: auto; border: 1px solid #8884; border-radius: 6px;
  padding: 8px; }
ins, del { text-decoration: none; display: inline-block; min-width: 100%; }
ins { background: #2da44e33; } del { background: #cf222e33; } pre b { color: #8250df; font-weight: 400; }
summary { cursor: pointer; }
@media (max-width: 48em) { th, td { display: block; white-space: normal; overflow-wrap: anywhere; } }
</style>
{{body}}
</html>
"""
