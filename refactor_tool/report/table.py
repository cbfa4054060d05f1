"""Branches × sites as JSON values and as text: a picture to look at before reading. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from refactor_tool import __version__
from refactor_tool.model import BranchRow, ExitCode, SiteCell, SiteState, gravest
from refactor_tool.report.text import Paint, printable
from refactor_tool.report.words import counted

SCHEMA = "refactor-tool/matrix/1"
#: What may be said of a site, from done to worst.
STATES: tuple[SiteState, ...] = ("applied", "left", "to do", "differs", "missing")
_SIGNS = dict(zip(STATES, "✓·→!✗", strict=True))
_PLAIN_SIGNS = dict(zip(STATES, "+.>!x", strict=True))
_STYLES = dict(zip(STATES, ("green", "dim", "cyan", "yellow", "red"), strict=True))
_INDENT = "  "


def matrix_document(rows: Sequence[BranchRow], folders: Mapping[int, str]) -> dict[str, Any]:
    """Return the table and every branch's document; `folders` are those of the series, by the number of the row."""
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
                "hint": row.hint,
                "folder": folders.get(at),
                "sites": [_site(cell) for cell in row.cells],
                "document": row.document,
            }
            for at, row in enumerate(rows)
        ],
        "summary": {
            "branches": len(rows),
            "exit_code": int(gravest(row.code for row in rows)),
            "states": {state: sum(cell.state == state for row in rows for cell in row.cells) for state in STATES},
        },
    }


def matrix_text(rows: Sequence[BranchRow], paint: Paint, *, plain: bool = False, width: int = 80) -> str:
    """Return a bar of signs a branch, the sites by codemod; then what needs a person, and the counts.

    `plain` keeps to ASCII. No line of the bars is longer than `width` characters, where one codemod's sites fit.
    """
    groups = columns(rows)
    signs = _PLAIN_SIGNS if plain else _SIGNS
    bands = _bands(groups, width - len(_INDENT))
    lines = [*_legend(groups, signs, paint), "", *(_INDENT + _numbers(groups, band) for band in bands)]
    for name, row in zip(names(rows), rows, strict=True):
        if row.message:
            lines.append(f"{paint(name, 'bold')}  {paint(printable(row.message), 'red')}")
            if row.hint:
                lines.append(f"{_INDENT}{printable(row.hint)}")
            continue
        lines.append(f"{paint(name, 'bold')}  {summary(row)}  {paint(f'({row.era})', 'dim')}")
        lines.extend(_INDENT + _bar(row, groups, band, signs, paint) for band in bands)
    drift = [line for name, row in zip(names(rows), rows, strict=True) for line in _drift(name, row)]
    if drift:
        lines += ["", paint("needs a hand", "yellow"), *drift]
    return "\n".join([*lines, "", _total(rows)]) + "\n"


def columns(rows: Iterable[BranchRow]) -> dict[str, tuple[str, ...]]:
    """Return every site that any branch has, by codemod, in the campaign's order, of which each branch has a part."""
    order: list[tuple[str, str]] = []
    for cells in sorted(map(expected, rows), key=len, reverse=True):  # the longest tells most about the order
        at = 0
        for key in ((cell.codemod, cell.anchor) for cell in cells):
            if key not in order:
                order.insert(at, key)
            at = order.index(key) + 1
    groups: dict[str, tuple[str, ...]] = {}
    for codemod, anchor in order:
        groups[codemod] = (*groups.get(codemod, ()), anchor)
    return groups


def names(rows: Sequence[BranchRow]) -> list[str]:
    """Return what the rows are called: the ref, after its repository where there are several."""
    several = len({row.repository for row in rows}) > 1
    return [printable(f"{row.repository}: {row.ref}" if several else row.ref) for row in rows]


def expected(row: BranchRow) -> tuple[SiteCell, ...]:
    """Return the sites of a branch that have a place in the table."""
    return tuple(cell for cell in row.cells if cell.anchor)


def summary(row: BranchRow) -> str:
    """Return how many sites of a branch are in which state."""
    counts = Counter(cell.state for cell in row.cells)
    return ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state] and state != "left")


def needs_a_hand(row: BranchRow) -> tuple[SiteCell, ...]:
    """Return the sites of a branch that the tool cannot do."""
    return tuple(cell for cell in row.cells if cell.state in ("differs", "missing"))


def other_problems(row: BranchRow) -> tuple[str, ...]:
    """Return what else stands in the way of a branch's series, a line each."""
    told = {cell.why for cell in row.cells}
    return tuple(
        ": ".join(part for part in (problem["step"], problem["path"], problem["message"]) if part)
        for problem in (row.document or {}).get("problems", ())
        if problem["code"] != ExitCode.NOTHING_SCANNED and problem["message"] not in told
    )


def called(cell: SiteCell) -> str:
    """Return the name of a site: its codemod, and which of those that the codemod expects."""
    return f"{cell.codemod}/{cell.anchor}" if cell.anchor else cell.codemod


def place(cell: SiteCell) -> str:
    """Return where a site is, with its line, and from where it has moved; "" for one that is missing."""
    path, _, function = cell.place.partition(" ")
    here = f"{path}:{cell.line} {function}".rstrip() if cell.place else ""
    return f"{here}, moved from {cell.moved}" if cell.moved else here


def _site(cell: SiteCell) -> dict[str, Any]:
    return {
        "codemod": cell.codemod,
        "site": cell.anchor,
        "state": cell.state,
        "place": cell.place,
        "line": cell.line,
        "why": cell.why,
        "moved_from": cell.moved,
        "step": cell.step,
        "expected": cell.expected,
        "found": cell.found,
    }


def _legend(groups: Mapping[str, Sequence[str]], signs: Mapping[SiteState, str], paint: Paint) -> Iterator[str]:
    yield "   ".join(f"{paint(signs[state], _STYLES[state])} {state}" for state in STATES)
    if groups:
        yield ""
    yield from (f"{at:>2} {name}, {counted(len(sites), 'site')}" for at, (name, sites) in enumerate(groups.items(), 1))


def _bands(groups: Mapping[str, Sequence[str]], width: int) -> list[tuple[str, ...]]:
    """Part the codemods into lines that fit."""
    bands: list[tuple[str, ...]] = []
    used = 0
    for name, sites in groups.items():
        needed = max(2, len(sites))
        if bands and used + 1 + needed <= width:
            bands[-1] += (name,)
            used += 1 + needed
        else:
            bands.append((name,))
            used = needed
    return bands


def _numbers(groups: Mapping[str, Sequence[str]], band: Sequence[str]) -> str:
    order = list(groups)
    return " ".join(f"{order.index(name) + 1:<{max(2, len(groups[name]))}}" for name in band).rstrip()


def _bar(
    row: BranchRow,
    groups: Mapping[str, Sequence[str]],
    band: Sequence[str],
    signs: Mapping[SiteState, str],
    paint: Paint,
) -> str:
    known = {(cell.codemod, cell.anchor): cell.state for cell in row.cells}
    parts = []
    for name in band:
        states = [known.get((name, anchor)) for anchor in groups[name]]
        drawn = "".join(paint(signs[state], _STYLES[state]) if state is not None else " " for state in states)
        parts.append(drawn + " " * (2 - len(states)))
    return " ".join(parts).rstrip()


def _drift(name: str, row: BranchRow) -> Iterator[str]:
    """Yield the lines about a branch's sites that need a person: what is there, what the tool knows, what to do."""
    for cell in needs_a_hand(row):
        yield f"{_INDENT}{name} {called(cell)}: {cell.state}{f' at {printable(place(cell))}' if cell.place else ''}"
        yield from (
            f"{_INDENT * 2}{word:<6} {printable(text)}"
            for word, text in (("why", cell.why), ("known", cell.expected), ("found", cell.found), ("do", cell.step))
            if text
        )
    yield from (f"{_INDENT}{name} {printable(problem)}" for problem in other_problems(row))


def _total(rows: Sequence[BranchRow]) -> str:
    failed = sum(bool(row.message) for row in rows)
    by_hand = sum(bool(needs_a_hand(row) or other_problems(row)) for row in rows)
    done = sum(row.code is ExitCode.CLEAN for row in rows)
    counts = ((done, "done"), (len(rows) - failed - by_hand - done, "to do"), (by_hand, "by hand"), (failed, "failed"))
    told = ", ".join(f"{count} {word}" for count, word in counts if count)
    return f"{len(rows)} {'branch' if len(rows) == 1 else 'branches'}: {told or 'nothing to look at'}"
