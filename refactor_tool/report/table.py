"""Branches × sites as text, JSON and HTML, and a comparison as text: pictures to look at before reading.

Pure. HTML is one file without scripts or links; text from a tree is escaped.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from refactor_tool import __version__
from refactor_tool.model import BranchRow, SiteCell, SiteState, gravest
from refactor_tool.report.document import SCHEMA
from refactor_tool.report.text import Paint, printable

STATES: tuple[SiteState, ...] = ("applied", "to do", "differs", "left", "missing")
_SIGNS: dict[SiteState, str] = {"applied": "✓", "to do": "→", "differs": "!", "left": "·", "missing": "✗"}
_STYLES: dict[SiteState, str] = {
    "applied": "green",
    "to do": "cyan",
    "differs": "yellow",
    "left": "dim",
    "missing": "red",
}
_COLOURS: dict[SiteState, str] = {
    "applied": "#2da44e",
    "to do": "#218bff",
    "differs": "#d4a72c",
    "left": "#d0d7de",
    "missing": "#cf222e",
}


def matrix_text(rows: Sequence[BranchRow], paint: Paint) -> str:
    """Return a line a branch, a sign a site, the sites by codemod; then what is not plain to do or done."""
    columns = _columns(rows)
    names = [_name(row, rows) for row in rows]
    width = max((len(name) for name in names), default=0)
    groups = Counter(codemod for codemod, _ in columns)
    lines = [f"{'':<{width}}  " + " ".join(f"{codemod[: max(count, 3)]:<{count}}" for codemod, count in groups.items())]
    for name, row in zip(names, rows, strict=True):
        if row.message:
            lines.append(f"{name:<{width}}  {paint(printable(row.message), 'red')}")
            continue
        known = {(cell.codemod, cell.anchor): cell for cell in row.cells}
        parts = []
        for codemod, count in groups.items():
            signs = [_sign(known.get(column), paint) for column in columns if column[0] == codemod]
            parts.append("".join(signs) + " " * max(0, 3 - count))
        lines.append(f"{name:<{width}}  {' '.join(parts)}  {_summary(row)}")
    lines += ["", "  ".join(f"{paint(_SIGNS[state], _STYLES[state])} {state}" for state in STATES) + "    no such site"]
    drift = [line for name, row in zip(names, rows, strict=True) for line in _drift(name, row)]
    if drift:
        lines += ["", paint("where branches differ", "yellow"), *drift]
    return "\n".join(lines) + "\n"


def matrix_document(rows: Sequence[BranchRow]) -> dict[str, Any]:
    """Return the table and every branch's document as JSON values."""
    return {
        "schema": SCHEMA,
        "tool": {"name": "refactor-tool", "version": __version__},
        "branches": [
            {
                "repository": row.repository,
                "ref": row.ref,
                "era": row.era,
                "exit_code": int(row.code),
                "message": row.message,
                "sites": [
                    {
                        "codemod": cell.codemod,
                        "site": cell.anchor,
                        "state": cell.state,
                        "place": cell.place,
                        "why": cell.why,
                        "moved_from": cell.moved,
                        "expected": cell.expected,
                        "found": cell.found,
                    }
                    for cell in row.cells
                ],
                "document": row.document,
            }
            for row in rows
        ],
        "summary": {
            "branches": len(rows),
            "exit_code": int(gravest(row.code for row in rows)),
            "states": {state: sum(cell.state == state for row in rows for cell in row.cells) for state in STATES},
        },
    }


def matrix_html(rows: Sequence[BranchRow]) -> bytes:
    """Return the table as one page: a coloured square a site, its place and reason when pointed at."""
    columns = _columns(rows)
    groups = Counter(codemod for codemod, _ in columns)
    head = "".join(f'<th colspan="{count}">{html.escape(name)}</th>' for name, count in groups.items())
    body = []
    for row in rows:
        known = {(cell.codemod, cell.anchor): cell for cell in row.cells}
        label = f"<th class=ref>{_escaped(_name(row, rows))}<small>{_escaped(row.message or row.era)}</small></th>"
        squares = "".join(_square(column, known.get(column)) for column in columns)
        body.append(f"<tr>{label}{squares}<td>{_escaped(_summary(row))}</td></tr>")
    legend = "".join(f'<span style="--c:{_COLOURS[state]}">{state}</span>' for state in STATES)
    page = _PAGE.replace("{{head}}", head).replace("{{body}}", "\n".join(body)).replace("{{legend}}", legend)
    return page.encode("utf-8", "replace")


def _columns(rows: Iterable[BranchRow]) -> list[tuple[str, str]]:
    """Return every (codemod, anchor) that any branch has, in the campaign's order."""
    order: dict[str, dict[str, None]] = {}
    for row in rows:
        for cell in row.cells:
            order.setdefault(cell.codemod, {}).setdefault(cell.anchor)
    return [(codemod, anchor) for codemod, anchors in order.items() for anchor in anchors]


def _name(row: BranchRow, rows: Sequence[BranchRow]) -> str:
    several = len({other.repository for other in rows}) > 1
    return printable(f"{row.repository}:{row.ref}" if several else row.ref)


def _sign(cell: SiteCell | None, paint: Paint) -> str:
    return paint(_SIGNS[cell.state], _STYLES[cell.state]) if cell is not None else " "


def _summary(row: BranchRow) -> str:
    counts = Counter(cell.state for cell in row.cells)
    return ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state] and state != "left")


def _drift(name: str, row: BranchRow) -> Iterator[str]:
    """Yield the lines about a branch's sites that need a person."""
    for cell in row.cells:
        moved = f", moved from {cell.moved}" if cell.moved else ""
        if cell.state in ("differs", "missing"):
            place = f" at {printable(cell.place)}" if cell.place else ""
            yield f"  {name} {cell.codemod}/{cell.anchor}: {cell.state}{place}{moved}"
            yield f"    {printable(cell.why)}"
            yield f"    known: {cell.expected}"
            if cell.found:
                yield f"    found: {printable(cell.found)}"


def _square(column: tuple[str, str], cell: SiteCell | None) -> str:
    if cell is None:
        return f'<td class=none title="{html.escape(column[1])}: no such site"></td>'
    title = f"{cell.anchor}: {cell.state}\n{cell.place}\n{cell.why}"
    return f'<td style="--c:{_COLOURS[cell.state]}" title="{_escaped(title)}"></td>'


def _escaped(text: str) -> str:
    return html.escape("\n".join(printable(line) for line in text.split("\n")))


_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>refactor-tool: branches and sites</title>
<style>
body { font: 14px/1.4 system-ui, sans-serif; margin: 2em; color: #1f2328; }
table { border-collapse: separate; border-spacing: 2px; }
th { font-weight: 600; text-align: left; font-size: 12px; padding: 2px 6px; border-left: 2px solid #d0d7de; }
th.ref { border: 0; font-size: 14px; } th small { display: block; font-weight: 400; color: #656d76; }
td[style] { width: 14px; height: 22px; background: var(--c); border-radius: 3px; }
td.none { background: repeating-linear-gradient(45deg, #fff 0 3px, #eaeef2 3px 6px); }
td:last-child { padding-left: 8px; white-space: nowrap; color: #656d76; }
p span::before { content: ""; display: inline-block; width: 12px; height: 12px; margin: 0 6px -1px 16px;
  border-radius: 3px; background: var(--c); }
</style>
<h1>Branches and sites</h1>
<p>{{legend}}</p>
<table><thead><tr><th class=ref></th>{{head}}</tr></thead><tbody>
{{body}}
</tbody></table>
</html>
"""
