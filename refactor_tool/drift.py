"""Why a site is not rewritten: done, in another shape, moved, or missing; with both shapes and what to do by hand."""

from __future__ import annotations

from refactor_tool.homes import HOMES, NOWHERE, SHAPES
from refactor_tool.model import Finding, Leave, Manual, Rewrite, SiteCell


def hint(codemod: str, anchor: str) -> str:
    """Return what to look for where an expected site is missing, and what becomes of it; "" where that is not known."""
    home = HOMES.get((codemod, anchor), NOWHERE)
    return (
        f"at the issue it stands in {home.place} ({SHAPES[home.shape]}) and becomes: {home.step}" if home.place else ""
    )


def cell(codemod: str, anchor: str, finding: Finding | None, line: int | None, text: str) -> SiteCell:
    """Return what became of an expected site; `line` and `text` are where it begins and what stands there."""
    home = HOMES.get((codemod, anchor), NOWHERE)
    expected = SHAPES.get(home.shape, "")
    if finding is None:
        why = f"not found; it was at {home.place}" if home.place else "not found"
        return SiteCell(codemod, anchor, "missing", "", why, step=home.step, expected=expected)
    place = finding.place
    moved = home.place if home.place != place else ""
    match finding.verdict:
        case Rewrite():
            return SiteCell(codemod, anchor, "to do", place, finding.message, line, moved)
        case Manual(reason=reason, instruction=instruction):
            step = instruction or home.step
            return SiteCell(codemod, anchor, "differs", place, reason, line, moved, step, expected, text)
        case Leave(reason=reason, done=done):
            return SiteCell(codemod, anchor, "applied" if done else "left", place, reason, line, moved)
