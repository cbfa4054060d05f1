"""Trace a place in the tree after a step back to the site and the template that wrote it."""

from __future__ import annotations

import re

from refactor_tool.verified import Fault, Origin, Stage, Written

_NAME = re.compile(r"[A-Za-z_]\w{2,}")


def trace(stage: Stage, fault: Fault) -> Origin | None:
    """Return who most likely made a fault: who wrote its line, else the nearest in its file, else what it names.

    None where nothing the step wrote has to do with it.
    """
    here = [part for part in stage.written if part.path == fault.path]
    asked = [part for part in here if part.package and f'"{part.package}"' in fault.message]
    if asked:
        return asked[0].origin
    line = fault.line - 1 if fault.line is not None else 0

    def distance(part: Written) -> tuple[int, bool, int]:
        gap = max(part.start - line, line - part.end + 1, 0)
        return gap, part.origin.function != fault.function, part.end - part.start

    near = min((part for part in here if not part.package), key=distance, default=None)
    return near.origin if near is not None else _named(stage, fault)


def _named(stage: Stage, fault: Fault) -> Origin | None:
    """Return the site that shares the most names with a message about a file that the step left alone."""
    names = set(_NAME.findall(fault.message))

    def shared(part: Written) -> int:
        told = f"{part.origin.function} {part.origin.message}"
        return len(names & set(_NAME.findall(told)))

    best = max(stage.written, key=shared, default=None)
    return best.origin if best is not None and shared(best) else None
