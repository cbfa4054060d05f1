"""Trace a place in the tree after a step back to the site and the template that wrote it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from refactor_tool import edits
from refactor_tool.model import FileChange
from refactor_tool.verified import Fault, Origin, Stage, Written

_NAME = re.compile(r"[A-Za-z_]\w{2,}")


def trace(stage: Stage, fault: Fault) -> Origin | None:
    """Return who most likely made a fault: the writer of its line, else the nearest one, else of what it names.

    None where nothing the step wrote has to do with it.
    """
    here = [part for part in stage.written if part.path == fault.path]
    asked = [part for part in here if part.package and f'"{part.package}"' in fault.message]
    if asked:
        return asked[0].origin
    change = next((change for change in stage.changes if change.path == fault.path), None)
    near = _nearest([part for part in here if not part.package], change, fault)
    return near if near is not None else _named(stage, fault)


def _nearest(parts: Sequence[Written], change: FileChange | None, fault: Fault) -> Origin | None:
    if not parts or change is None:
        return None
    if fault.line is None or change.before is None or change.after is None:
        return parts[0].origin
    first, last = _line_before(change.before.data, change.after.data, fault.line - 1)

    def distance(part: Written) -> tuple[int, bool, int]:
        gap = max(part.start - last, first - part.end, 0)
        return gap, part.origin.function != fault.function, abs(part.start - first)

    return min(parts, key=distance).origin


def _line_before(before: bytes, after: bytes, line: int) -> tuple[int, int]:
    """Return the lines (0-based, half open) that a line after the change comes from; more than one inside a change."""
    shift = 0
    for change in edits.changes(before, after):
        if line < change.after_start:
            break
        if line < change.after_end:
            return change.before_start, change.before_end
        shift = change.before_end - change.after_end
    return line + shift, line + shift + 1


def _named(stage: Stage, fault: Fault) -> Origin | None:
    """Return the site that shares the most names with a message about a file that the step left alone."""
    names = set(_NAME.findall(fault.message))

    def shared(part: Written) -> int:
        told = f"{part.origin.function} {part.origin.message}"
        return len(names & set(_NAME.findall(told)))

    best = max(stage.written, key=shared, default=None)
    return best.origin if best is not None and shared(best) else None
