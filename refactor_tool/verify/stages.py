"""Cut what is to be verified into stages: a tree, the tree before it, and who wrote the difference."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, assert_never

from refactor_tool.model import (
    Edit,
    FileChange,
    Fragment,
    NeedImport,
    NewFile,
    Places,
    Plan,
    Rewrite,
    Snapshot,
    Span,
    Step,
)
from refactor_tool.record import replace
from refactor_tool.verified import Gap, Origin, Stage, Written
from refactor_tool.verify.locate import line_after, locate


def of_plan(plan: Plan) -> tuple[Stage, ...]:
    """Return one stage a step, with every edit traced to its site and template."""
    stages = []
    before = plan.base
    for step in plan.steps:
        after = before.with_changes(step.changes)
        written = tuple(_written(Places(before), step))
        stages.append(Stage(step.id, step.title, before, after, step.changes, written))
        before = after
    return tuple(stages)


def of_series(
    base: Snapshot, patches: Sequence[tuple[str, Sequence[FileChange]]], plan_json: bytes | None
) -> tuple[Stage, ...]:
    """Return one stage a patch, given each patch's name and changes.

    Where the folder's plan.json tells of as many steps, its ids and titles are used, and its sites are known.
    """
    told = _read(plan_json)
    names = [(str(step["id"]), str(step["title"])) for step in told.get("steps", [])]
    if len(names) != len(patches):
        told, names = {}, [(name.removesuffix(".patch"), "") for name, _ in patches]
    stages = []
    before = base
    for (name, title), (_, changes) in zip(names, patches, strict=True):
        after = before.with_changes(changes)
        stages.append(Stage(name, title, before, after, tuple(changes), tuple(_sites(told, name, changes))))
        before = after
    return tuple(stages)


def of_change(before: Snapshot, after: Snapshot) -> Stage:
    """Return the stage that leads from one tree to another."""
    return Stage("change", f"{before.label} to {after.label}", before, after, before.changes_to(after))


def of_tree(tree: Snapshot) -> Stage:
    """Return the stage of a tree as it is: whatever is wrong in it counts."""
    return Stage("tree", tree.label, None, tree)


def unread(stage: Stage) -> tuple[Gap, ...]:
    """Return the Go files that were seen and not read, such as links, which a build would read.

    They leave a stage unproven where it brings them, or where a tree is looked at as it is.
    """
    known = () if stage.before is None else stage.before.skipped
    return tuple(
        Gap(one.path, one.reason, blocks=one not in known) for one in stage.after.skipped if one.path.endswith(".go")
    )


def _written(places: Places, step: Step) -> Iterator[Written]:
    """Yield what each site of a step wrote, at its place after the step."""
    made: dict[str, dict[tuple[Span, bytes | Fragment], Origin]] = {}
    for finding in step.findings:
        if not isinstance(finding.verdict, Rewrite):
            continue
        line = places.position(finding.path, finding.span.start).line
        origin = Origin(finding.id, finding.path, line, finding.function, finding.message)
        for change in finding.verdict.changes:
            match change:
                case Edit(path=path, span=span, text=text):
                    made.setdefault(path, {}).setdefault((span, text), origin)
                case NewFile(path=path, text=text):
                    yield Written(path, 0, _lines(step, path), replace(origin, template=text.template))
                case NeedImport(path=path, package=package):
                    yield Written(path, 0, 0, origin, package)
                case _:
                    assert_never(change)
    changes = {change.path: change for change in step.changes}
    for path, origins in made.items():
        file = changes.get(path)
        if file is None or file.before is None or file.after is None:
            continue
        ordered = sorted(origins, key=lambda edit: edit[0])
        sizes = [(span, len(text) if isinstance(text, bytes) else None) for span, text in ordered]
        for edit, (start, end) in zip(ordered, locate(file.before.data, file.after.data, sizes), strict=True):
            template = edit[1].template if isinstance(edit[1], Fragment) else ""
            yield Written(path, start, end, replace(origins[edit], template=template))


def _lines(step: Step, path: str) -> int:
    found = next((change.after for change in step.changes if change.path == path), None)
    return found.data.count(b"\n") if found is not None else 0


def _read(plan_json: bytes | None) -> Mapping[str, Any]:
    try:
        told = json.loads(plan_json or b"{}")
        is_ours = str(told["schema"]).startswith("refactor-tool/") and all("id" in step for step in told["steps"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}
    return told if is_ours else {}


def _sites(told: Mapping[str, Any], step: str, changes: Sequence[FileChange]) -> Iterator[Written]:
    """Yield the sites of a step that a plan.json tells of; it tells their lines in the base."""
    by_path = {change.path: change for change in changes}
    for found in told.get("findings", []):
        change = by_path.get(found["path"])
        if found["id"] != step or found["verdict"] != "rewrite" or change is None or change.after is None:
            continue
        origin = Origin(step, found["path"], found["line"], found["function"], found["message"])
        before = change.before.data if change.before is not None else b""
        lines = [line_after(before, change.after.data, found[key] - 1) for key in ("line", "end_line")]
        yield Written(found["path"], lines[0], lines[1] + 1, origin)
