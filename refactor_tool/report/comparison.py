"""Our series beside another change, as JSON values and as text. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Literal, TypeAlias

from refactor_tool import __version__
from refactor_tool.compare import VERDICTS, Comparison, Unit
from refactor_tool.model import Finding, Plan
from refactor_tool.report.text import Paint, printable

SCHEMA = "refactor-tool/compare/1"
Tree: TypeAlias = Literal["base", "ours", "theirs"]
#: What the rules say of each tree, with lines.
Hazards: TypeAlias = Mapping[Tree, Sequence[tuple[Finding, int | None]]]

_STYLES = {"same": "green", "different": "yellow", "ours only": "cyan", "theirs only": "dim"}


def comparison_document(revisions: str, plan: Plan, found: Comparison, hazards: Hazards) -> dict[str, Any]:
    """Return the comparison as JSON values; `plan` is ours."""
    return {
        "schema": SCHEMA,
        "tool": {"name": "refactor-tool", "version": __version__},
        "range": revisions,
        "era": plan.era,
        "steps": [step.id for step in plan.steps],
        "pending": [{"id": name, "reason": why} for name, why in plan.pending],
        "units": [
            {
                "path": unit.path,
                "name": unit.name,
                "verdict": unit.verdict,
                "similarity": round(unit.similarity, 4),
                "new": unit.is_new,
                "ours": unit.ours or None,
                "theirs": unit.theirs or None,
            }
            for unit in found.units
        ],
        "hazards": {side: [_hazard(*each) for each in said] for side, said in hazards.items()},
        "new_hazards": {side: [_hazard(*each) for each in _new(side, hazards)] for side in ("ours", "theirs")},
        "summary": {
            "units": {verdict: found.count(verdict) for verdict in VERDICTS},
            "lines": {"ours": found.ours, "theirs": found.theirs, "alike": found.alike},
            "similarity": round(found.similarity, 4),
            "hazards": {side: len(said) for side, said in hazards.items()},
        },
    }


def comparison_text(revisions: str, plan: Plan, found: Comparison, hazards: Hazards, paint: Paint) -> str:
    """Return the numbers, every declaration that a side changed, and the hazards by side."""
    counts = ", ".join(f"{found.count(verdict)} {verdict}" for verdict in VERDICTS)
    lines = [
        f"{paint(printable(revisions), 'bold')}: {counts}",
        f"changed lines: {found.ours} ours, {found.theirs} theirs, {found.alike} alike "
        f"({found.similarity:.0%} of all that either changed)",
        *(f"{paint('not in ours', 'yellow')} {name}: {printable(why)}" for name, why in plan.pending),
    ]
    for path, units in groupby(found.units, key=lambda unit: unit.path):
        lines += ["", paint(printable(path), "bold"), *(_unit(unit, paint) for unit in units)]
    return "\n".join([*lines, "", *_hazards(hazards, paint)]) + "\n"


def _unit(unit: Unit, paint: Paint) -> str:
    sides = (("ours", unit.ours), ("theirs", unit.theirs))
    gone = [side for side, place in sides if not place]
    notes = ["new"] if unit.is_new else [f"deleted by {' and '.join(gone)}"] if gone else []
    notes += [f"{side} in {printable(place)}" for side, place in sides if place not in ("", unit.path)]
    notes += [f"{unit.similarity:.0%} alike"] if unit.verdict == "different" and not gone else []
    told = f" ({', '.join(notes)})" if notes else ""
    return f"  {paint(f'{unit.verdict:<11}', _STYLES[unit.verdict])} {printable(unit.name)}{told}"


def _hazards(hazards: Hazards, paint: Paint) -> Iterator[str]:
    ids = sorted({finding.id for said in hazards.values() for finding, _ in said})
    yield paint("hazards", "bold") + (f"{'base':>10}{'ours':>8}{'theirs':>8}" if ids else ": none in any of the three")
    for name in ids:
        numbers = [sum(finding.id == name for finding, _ in hazards[side]) for side in ("base", "ours", "theirs")]
        yield f"  {name:<6}{numbers[0]:>9}{numbers[1]:>8}{numbers[2]:>8}"
    for side in ("ours", "theirs"):
        for finding, line in _new(side, hazards):
            place = f"{printable(finding.path)}:{line} {printable(finding.function)}"
            yield f"  new in {side}: {finding.id} {place}: {printable(finding.message)}"


def _new(side: Tree, hazards: Hazards) -> list[tuple[Finding, int | None]]:
    """Return the hazards of a side in functions for which the base has none of that rule, moved ones left out."""
    known = {_where(finding) for finding, _ in hazards["base"]}
    here = {_where(finding) for finding, _ in hazards[side]}
    gone = Counter((one.id, one.message) for one, _ in hazards["base"] if _where(one) not in here)
    out = []
    for one, line in hazards[side]:
        if _where(one) not in known:
            if gone[one.id, one.message] > 0:
                gone[one.id, one.message] -= 1
            else:
                out.append((one, line))
    return out


def _where(finding: Finding) -> tuple[str, str, str]:
    return finding.id, finding.path, finding.function


def _hazard(finding: Finding, line: int | None) -> dict[str, Any]:
    return {
        "id": finding.id,
        "path": finding.path,
        "line": line,
        "function": finding.function,
        "message": finding.message,
    }
