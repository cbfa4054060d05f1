"""Find where the edits of a step ended up in the file after it, although rendered texts and imports moved them."""

from __future__ import annotations

from collections.abc import Sequence

from refactor_tool import edits
from refactor_tool.model import LineIndex, Span

#: Bytes before an edit by which its place is known where what stands further up has changed as well.
_ANCHOR = 160


def locate(before: bytes, after: bytes, made: Sequence[tuple[Span, int | None]]) -> list[tuple[int, int]]:
    """Return, for each edit of `before`, the lines it became in `after`: 0-based, half open, at least one line.

    An edit is its span and the length of its text, None where that was rendered later; edits come in order. What
    stands between two edits is the same on both sides. Where an edit is not found its lines are told by the diff.
    """
    index = LineIndex(after)
    out = []
    at = 0
    for number, (span, size) in enumerate(made):
        start = _end_of(after, at, before[made[number - 1][0].end if number else 0 : span.start], number == 0)
        if start is None:
            out.append(_by_diff(before, after, span))
            continue
        following = made[number + 1][0].start if number + 1 < len(made) else None
        end = (
            start + size
            if size is not None
            else _begin_of(after, start, before[span.end : following], following is None)
        )
        at = start if end is None else end
        last = index.position(max(start, at - 1)).line
        out.append((index.position(_first(after, start, at)).line - 1, last))
    return out


def line_after(before: bytes, after: bytes, line: int) -> int:
    """Return the line (0-based) after a change that a line before it became, or the first of what it became."""
    shift = 0
    for change in edits.changes(before, after):
        if line < change.before_start:
            break
        if line < change.before_end:
            return change.after_start
        shift = change.after_end - change.before_end
    return line + shift


def _end_of(after: bytes, at: int, kept: bytes, is_first: bool) -> int | None:
    """Return where `kept` ends in `after`; of the first only the end counts, since imports above it may differ."""
    if after.startswith(kept, at):
        return at + len(kept)
    sought = kept[-_ANCHOR:] if is_first else kept
    found = after.find(sought, at)
    return found + len(sought) if found >= 0 else None


def _begin_of(after: bytes, at: int, kept: bytes, is_last: bool) -> int | None:
    if is_last:
        return len(after) - len(kept) if after.endswith(kept) and len(after) - len(kept) >= at else None
    found = after.find(kept, at)
    return found if found >= 0 else None


def _first(data: bytes, start: int, end: int) -> int:
    """Return the first byte of a text that is no line end."""
    while start < end and data[start] in b"\r\n":
        start += 1
    return start


def _by_diff(before: bytes, after: bytes, span: Span) -> tuple[int, int]:
    line = line_after(before, after, LineIndex(before).position(span.start).line - 1)
    return line, line + 1
