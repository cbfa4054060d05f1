"""Words for people, the same in every format."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from refactor_tool.outcome import Result


def counted(count: int, noun: str) -> str:
    """Return `1 finding`, `2 findings`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def told(result: Result) -> str:
    """Return all that is said of a result as one text: where it stands, what it is, and what to do or why not."""
    place = f"{result.function}: " if result.function else ""
    if result.status != "open":
        return f"{place}{result.message} ({result.status}: {result.why})"
    return f"{place}{result.message}{f' ({result.advice})' if result.advice else ''}"
