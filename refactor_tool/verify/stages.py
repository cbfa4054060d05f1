"""Cut what is to be verified into stages: a tree, the tree before it, and who wrote the difference."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, assert_never

from refactor_tool.model import (
    Edit,
    FileChange,
    Finding,
    Fragment,
    NeedImport,
    NewFile,
    Places,
    Plan,
    Rewrite,
    Snapshot,
)
from refactor_tool.verified import Origin, Stage, Written


def of_plan(plan: Plan) -> tuple[Stage, ...]:
    """Return one stage a step, with every edit traced to its site and template."""
    stages = []
    before = plan.base
    for step in plan.steps:
        after = before.with_changes(step.changes)
        written = tuple(part for finding in step.findings for part in _written(Places(before), finding))
        stages.append(Stage(step.id, step.title, before, after, step.changes, written))
        before = after
    return tuple(stages)


def of_series(
    base: Snapshot, patches: Sequence[tuple[str, Sequence[FileChange]]], plan_json: bytes | None
) -> tuple[Stage, ...]:
    """Return one stage a patch, given each patch's name and changes.

    Where the folder's plan.json tells of as many steps, its ids and titles are used, and its sites are known.
    """
    names = [(name.removesuffix(".patch"), "") for name, _ in patches]
    sites: dict[str, list[Written]] = {}
    told = _read(plan_json)
    steps = told.get("steps", [])
    if len(steps) == len(patches):
        names = [(str(step["id"]), str(step["title"])) for step in steps]
        sites = _sites(told)
    stages = []
    before = base
    for (name, title), (_, changes) in zip(names, patches, strict=True):
        after = before.with_changes(changes)
        stages.append(Stage(name, title, before, after, tuple(changes), tuple(sites.get(name, ()))))
        before = after
    return tuple(stages)


def of_change(before: Snapshot, after: Snapshot) -> Stage:
    """Return the stage that leads from one tree to another."""
    changes = tuple(
        FileChange(path, before.files.get(path), after.files.get(path))
        for path in sorted({*before.files, *after.files})
        if before.files.get(path) != after.files.get(path)
    )
    return Stage("change", f"{before.label} to {after.label}", before, after, changes)


def of_tree(tree: Snapshot) -> Stage:
    """Return the stage of a tree as it is: whatever is wrong in it counts."""
    return Stage("tree", tree.label, None, tree)


def _written(places: Places, finding: Finding) -> Iterator[Written]:
    if not isinstance(finding.verdict, Rewrite):
        return
    line = places.position(finding.path, finding.span.start).line

    def origin(template: str) -> Origin:
        return Origin(finding.id, finding.path, line, finding.function, finding.message, template)

    for change in finding.verdict.changes:
        match change:
            case Edit(path=path, span=span, text=text):
                start = places.position(path, span.start).line - 1
                end = places.position(path, max(span.start, span.end - 1)).line
                yield Written(path, start, end, origin(text.template if isinstance(text, Fragment) else ""))
            case NewFile(path=path, text=text):
                yield Written(path, 0, 0, origin(text.template))
            case NeedImport(path=path, package=package):
                yield Written(path, 0, 0, origin(""), package)
            case _:
                assert_never(change)


def _read(plan_json: bytes | None) -> Mapping[str, Any]:
    try:
        told = json.loads(plan_json or b"{}")
        is_ours = str(told["schema"]).startswith("refactor-tool/") and all("id" in step for step in told["steps"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}
    return told if is_ours else {}


def _sites(told: Mapping[str, Any]) -> dict[str, list[Written]]:
    """Return the sites of a plan.json by step; their lines are those of the base."""
    sites: dict[str, list[Written]] = {}
    for found in _rewrites(told.get("findings", [])):
        origin = Origin(found["id"], found["path"], found["line"], found["function"], found["message"])
        sites.setdefault(found["id"], []).append(Written(found["path"], found["line"] - 1, found["end_line"], origin))
    return sites


def _rewrites(findings: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    return (found for found in findings if found.get("verdict") == "rewrite")
