"""Our series beside a real range of commits."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from refactor_tool import __version__, engine
from refactor_tool.codemods import SUITE
from refactor_tool.compare import VERDICTS, Comparison, compare
from refactor_tool.gosrc.parse import ParseCache
from refactor_tool.gosrc.tree import Tree
from refactor_tool.model import ExitCode, Finding, Places, UsageError
from refactor_tool.report.document import SCHEMA
from refactor_tool.report.text import Paint, printable
from refactor_tool.rule import hazards as find_hazards
from refactor_tool.rule import new_hazards
from refactor_tool.rules import RULES
from refactor_tool.world.console import Progress, colour_allowed
from refactor_tool.world.templates import load_templates
from refactor_tool.world.tree import read_many

_STYLES = {"same": "green", "different": "yellow", "ours only": "cyan", "theirs only": "dim"}


def run(path: Path, revisions: str, *, as_json: bool) -> ExitCode:
    """Print how our series on the first revision compares with what the second one is; 0 unless it cannot be made."""
    first, dots, second = revisions.partition("..")
    if not (first and dots and second) or second.startswith("."):
        raise UsageError(f"{revisions!r} is not REV..REV", "name the commit before the change and the one after it")
    with Progress() as progress:
        base, theirs = read_many(path, [first, second])
        cache = ParseCache()
        ours = engine.plan(base, SUITE, load_templates(), keep_going=True, progress=progress.step, cache=cache)
        trees = Tree(base, cache), Tree(ours.final, cache), Tree(theirs, cache)
        found = compare(*trees)
        hazards = {name: _hazards(trees[0], tree) for name, tree in zip(("base", "ours", "theirs"), trees, strict=True)}
    if as_json:
        sys.stdout.write(json.dumps(_document(revisions, found, hazards), indent=1) + "\n")
    else:
        sys.stdout.write(_text(revisions, found, hazards, Paint(colour=colour_allowed(sys.stdout))))
    for problem in ours.problems:
        sys.stderr.write(f"ours is partial: {problem.step or 'audit'}: {printable(problem.message)}\n")
    return ExitCode.FINDINGS if ours.problems else ExitCode.CLEAN


def _hazards(base: Tree, tree: Tree) -> list[tuple[Finding, int | None]]:
    """Return what the rules say of a tree and of the way to it from the base, each with its line."""
    places = Places(tree.snapshot)
    found = [*find_hazards(tree, RULES), *(new_hazards(base, tree, RULES) if tree is not base else ())]
    return [(finding, places.line(finding)) for finding in found]


def _text(revisions: str, found: Comparison, hazards: dict[str, list[tuple[Finding, int | None]]], paint: Paint) -> str:
    counts = ", ".join(f"{found.count(verdict)} {verdict}" for verdict in VERDICTS)
    lines = [
        f"{paint(printable(revisions), 'bold')}: {counts}",
        f"changed lines: {found.ours} ours, {found.theirs} theirs, {found.alike} alike "
        f"({found.similarity:.0%} of all that either changed)",
        "",
    ]
    path = ""
    for unit in found.units:
        if unit.path != path:
            path = unit.path
            lines.append(paint(printable(path), "bold"))
        ratio = f" {unit.similarity:.0%} alike" if unit.verdict == "different" else ""
        lines.append(f"  {paint(f'{unit.verdict:<11}', _STYLES[unit.verdict])} {printable(unit.name)}{ratio}")
    lines += ["", paint("hazards", "bold")]
    ids = sorted({finding.id for side in hazards.values() for finding, _ in side})
    for name in ids:
        numbers = {side: sum(finding.id == name for finding, _ in each) for side, each in hazards.items()}
        lines.append(
            f"  {name}: {numbers['base']} in the base, {numbers['ours']} in ours, {numbers['theirs']} in theirs"
        )
    for side in ("ours", "theirs"):
        known = {(finding.id, finding.path, finding.function) for finding, _ in hazards["base"]}
        new = [(one, line) for one, line in hazards[side] if (one.id, one.path, one.function) not in known]
        lines.extend(
            f"  new in {side}: {one.id} {printable(one.path)}:{line} {printable(one.function)}" for one, line in new
        )
    return "\n".join(lines) + "\n"


def _document(
    revisions: str, found: Comparison, hazards: dict[str, list[tuple[Finding, int | None]]]
) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "tool": {"name": "refactor-tool", "version": __version__},
        "range": revisions,
        "units": [
            {"path": one.path, "name": one.name, "verdict": one.verdict, "similarity": round(one.similarity, 4)}
            for one in found.units
        ],
        "summary": {
            **{verdict: found.count(verdict) for verdict in VERDICTS},
            "lines_ours": found.ours,
            "lines_theirs": found.theirs,
            "lines_alike": found.alike,
            "similarity": round(found.similarity, 4),
        },
        "hazards": {
            side: [
                {"id": one.id, "path": one.path, "line": line, "function": one.function, "message": one.message}
                for one, line in each
            ]
            for side, each in hazards.items()
        },
    }
