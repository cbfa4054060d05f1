"""Branches × sites as one page without scripts: a row a branch, a square a site, which says what it is when pointed at.

Pure; text from a tree is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from refactor_tool.model import BranchRow, SiteCell, SiteState
from refactor_tool.report.markup import escaped
from refactor_tool.report.table import STATES, called, columns, names, needs_a_hand, other_problems, place, summary
from refactor_tool.report.words import counted

_COLOURS: dict[SiteState, str] = dict(zip(STATES, ("#2da44e", "#afb8c1", "#218bff", "#d4a72c", "#cf222e"), strict=True))


def matrix_html(rows: Sequence[BranchRow], links: Mapping[int, str]) -> bytes:
    """Return the page; `links` are pages about single branches, by the number of the row."""
    groups = columns(rows)
    called_as = names(rows)
    return "\n".join(
        [
            _HEAD,
            f"<h1>{len(rows)} {'branch' if len(rows) == 1 else 'branches'} × "
            f"{counted(sum(map(len, groups.values())), 'site')}</h1>",
            f"<p class=legend>{''.join(_sample(state) for state in STATES)}</p>",
            f"<div><table><thead><tr><th></th>{''.join(map(_heading, groups.values(), range(1, len(groups) + 1)))}",
            "</tr></thead><tbody>",
            *(
                f"<tr>{_label(name, row, links.get(at))}{''.join(_squares(row, groups) if row.cells else ())}</tr>"
                for at, (name, row) in enumerate(zip(called_as, rows, strict=True))
            ),
            "</tbody></table></div>",
            f"<ol>{''.join(f'<li>{escaped(name)}</li>' for name in groups)}</ol>",
            *_by_hand(rows, called_as),
            "</html>\n",
        ]
    ).encode("utf-8", "replace")


def _sample(state: SiteState) -> str:
    return f'<span style="--c:{_COLOURS[state]}">{state}</span>'


def _heading(sites: Sequence[str], at: int) -> str:
    return f'<th class=group colspan="{len(sites)}">{at}</th>'


def _label(name: str, row: BranchRow, link: str | None) -> str:
    shown = f'<a href="{escaped(link)}">{escaped(name)}</a>' if link is not None else escaped(name)
    below = f"<small>{escaped(summary(row))}: {escaped(row.era)}</small>"
    if row.message:
        below = f"<small class=bad>{escaped(row.message)}</small>"
        below += f"<small>{escaped(row.hint)}</small>" if row.hint else ""
    return f"<th class=ref>{shown}{below}</th>"


def _squares(row: BranchRow, groups: Mapping[str, Sequence[str]]) -> Iterator[str]:
    known = {(cell.codemod, cell.anchor): cell for cell in row.cells}
    for name, sites in groups.items():
        for at, anchor in enumerate(sites):
            cell = known.get((name, anchor))
            first = " class=first" if at == 0 else ""
            title = _title(cell) if cell is not None else f"{name}/{anchor}: no such site here"
            colour = f' style="--c:{_COLOURS[cell.state]}"' if cell is not None else ""
            yield f'<td{first}><i{colour} title="{escaped(title)}"></i></td>'


def _title(cell: SiteCell) -> str:
    lines = [f"{called(cell)}: {cell.state}", place(cell), cell.why]
    return "\n".join(line for line in lines if line)


def _by_hand(rows: Sequence[BranchRow], called_as: Sequence[str]) -> Iterator[str]:
    """Yield, for each branch with sites that the tool cannot do, what is there, what it knows, and what to do."""
    for name, row in zip(called_as, rows, strict=True):
        cells, others = needs_a_hand(row), other_problems(row)
        if not cells and not others:
            continue
        yield f"<h2>{escaped(name)} needs a hand</h2><dl>"
        for cell in cells:
            yield f'<dt><i style="--c:{_COLOURS[cell.state]}"></i> {escaped(called(cell))}: {cell.state}'
            yield f"<code>{escaped(place(cell))}</code></dt><dd>{escaped(cell.why)}"
            pairs = (("known", cell.expected), ("found", cell.found), ("do", cell.step))
            yield from (f"<br>{word}: <code>{escaped(text)}</code>" for word, text in pairs if text)
            yield "</dd>"
        yield from (f"<dt>{escaped(problem)}</dt>" for problem in others)
        yield "</dl>"


_HEAD = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Branches and sites</title>
<style>
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 100em; padding: 0 1em; }
table { border-collapse: collapse; }
th { font-weight: 400; text-align: left; padding: 3px 12px 3px 0; }
th.ref { min-width: 12em; max-width: 24em; overflow-wrap: anywhere; }
th small { display: block; opacity: .65; line-height: 1.3; } th small.bad { color: #cf222e; opacity: 1; }
th.group { padding-left: 8px; border-left: 1px solid #8886; }
td { padding: 0 1px; } td.first { padding-left: 8px; } div { overflow-x: auto; }
tbody tr:hover { background: #8882; }
i { display: inline-block; width: 11px; height: 18px; border-radius: 3px; vertical-align: middle;
  background: repeating-linear-gradient(45deg, #8882 0 2px, transparent 2px 5px); }
i[style] { background: var(--c); }
.legend span { margin-right: 1.2em; }
.legend span::before { content: ""; display: inline-block; width: 11px; height: 11px; margin-right: 6px;
  border-radius: 3px; background: var(--c); }
ol { columns: 3 18em; max-width: 62em; padding-left: 1.5em; }
dt { margin-top: .8em; } dd { margin-left: 1.2em; overflow-wrap: anywhere; }
code { font: 12px/1.45 ui-monospace, monospace; }
</style>"""
