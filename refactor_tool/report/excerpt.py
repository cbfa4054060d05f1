"""What a format needs of the examined source: columns in characters, and lines to show. No line is copied whole."""

from __future__ import annotations

from refactor_tool.model import LineIndex, Position, Snapshot
from refactor_tool.report.text import printable

#: Characters of a line that are shown at most, and how many of them before the place that is meant.
_WIDTH, _LEAD = 120, 40


class Source:
    """Read the files of a snapshot by line; each is indexed once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._indexes: dict[str, LineIndex] = {}
        self._last = ("", Position(0, 0), 0)

    def column(self, path: str, place: Position) -> int:
        """Return the 1-based column of a place in characters; bytes that are no UTF-8 count one each.

        Cheap when asked in order: only what lies between two places of a line is decoded.
        """
        bounds = self._bounds(path, place.line)
        if bounds is None:
            return place.column
        data, start, _ = bounds
        known, at, column = self._last
        if (known, at.line) != (path, place.line) or at.column > place.column:
            at, column = Position(place.line, 1), 1
        between = data[start + at.column - 1 : start + place.column - 1]
        column += len(between.decode("utf-8", "surrogateescape"))
        self._last = (path, place, column)
        return column

    def excerpt(self, path: str, start: Position, end: Position) -> tuple[str, str] | None:
        """Return the first line of a place and the carets below it, tabs widened, cut where it is long; or None."""
        bounds = self._bounds(path, start.line)
        if bounds is None:
            return None
        data, first, last = bounds
        at = min(first + start.column - 1, last)
        until = min(first + end.column - 1, last) if end.line == start.line else last
        while at < until and data[at] in b"\t ":  # carets stand under what is meant, not under its indent
            at += 1
        cut = max(first, at - 4 * _LEAD)
        before = _shown(data[cut:at])
        marked = _shown(data[at : min(until, at + 4 * _WIDTH)])
        after = _shown(data[until : min(last, until + 4 * _WIDTH)])
        if cut > first or len(before) > _LEAD:
            before = f"…{before[-_LEAD:]}"
        shown = f"{before}{marked}{after}"
        if len(shown) > _WIDTH:
            shown = f"{shown[: _WIDTH - 1]}…"
        return shown, " " * len(before) + "^" * max(1, min(len(marked), len(shown) - len(before)))

    def _bounds(self, path: str, line: int) -> tuple[bytes, int, int] | None:
        """Return a file's bytes and where a line starts and ends in them; None for a file not in the snapshot."""
        file = self._snapshot.files.get(path)
        if file is None:
            return None
        if path not in self._indexes:
            self._indexes[path] = LineIndex(file.data)
        span = self._indexes[path].line_span(line, len(file.data))
        end = span.end
        while end > span.start and file.data[end - 1] in b"\r\n":
            end -= 1
        return file.data, span.start, end


def _shown(part: bytes) -> str:
    return printable(part.decode("utf-8", "backslashreplace").replace("\t", "    "))
