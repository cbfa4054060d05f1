"""Byte edits and line diffs: bounds, overlap, merge, apply; one file's change as git writes it. Knows no Go.

Lines end at LF only: form feed, U+2028 and a lone CR are data. A last line without LF is a line of its own
kind and differs from the same text with one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO

from refactor_tool.model import Conflict, File, FileChange, Span
from refactor_tool.record import record

# --- byte edits -------------------------------------------------------------------------------------


def apply(data: bytes, edits: Iterable[tuple[Span, bytes]]) -> bytes:
    """Return `data` with every edit done; spans are byte offsets into `data`, half open.

    An empty span inserts. Equal edits count once; different insertions at one offset keep the order given. An
    insertion at the edge of a replaced span is done outside it.

    Raises `Conflict` where two spans overlap or an insertion lies inside a replaced span, and `ValueError` for
    a span that ends after the data.
    """
    parts: list[bytes] = []
    done = Span(0, 0)
    for span, text in sorted(dict.fromkeys(edits), key=lambda edit: edit[0]):
        if span.end > len(data):
            raise ValueError(f"edit of bytes {span.start}..{span.end} in {len(data)} bytes of data")
        if span.start < done.end:
            raise Conflict(
                f"edits overlap: bytes {done.start}..{done.end} and {span.start}..{span.end}",
                "let one codemod own the place, or let both make the same edit",
            )
        parts += (data[done.end : span.start], text)
        done = span
    parts.append(data[done.end :])
    return b"".join(parts)


# --- line diff --------------------------------------------------------------------------------------


@record
class LineChange:
    """Lines `before_start..before_end` became `after_start..after_end`; 0-based, half open, one may be empty."""

    before_start: int
    before_end: int
    after_start: int
    after_end: int


@record
class Hunk:
    """Changes that share their context. The place is 0-based, half open and includes the context.

    `heading` is what git puts after `@@`: the last line before the hunk that begins like a declaration, or
    nothing. `lines` are the lines of the patch: b" ", b"-" or b"+", then the line, with its LF if it has one.
    """

    place: LineChange
    heading: bytes
    lines: tuple[bytes, ...]

    @property
    def size(self) -> tuple[int, int]:
        """Return how many lines are added and removed."""
        marks = b"".join(line[:1] for line in self.lines)
        return marks.count(b"+"), marks.count(b"-")


def changes(before: bytes, after: bytes) -> tuple[LineChange, ...]:
    """Return the line changes that turn `before` into `after`, in order; shortest where that is affordable."""
    return tuple(_changes(split_lines(before), split_lines(after)))


def line_edits(before: bytes, after: bytes) -> tuple[tuple[Span, bytes], ...]:
    """Return the replacements of whole lines that turn `before` into `after`, in order, as `apply` takes them."""
    old, new = split_lines(before), split_lines(after)
    starts = [0]
    for line in old:
        starts.append(starts[-1] + len(line))
    return tuple(
        (
            Span(starts[change.before_start], starts[change.before_end]),
            b"".join(new[change.after_start : change.after_end]),
        )
        for change in _changes(old, new)
    )


def stat(before: bytes | None, after: bytes | None) -> tuple[int, int]:
    """Return how many lines were added and removed, as `git diff --numstat` counts; `None` is no file."""
    old, new = split_lines(before or b""), split_lines(after or b"")
    kept = sum(length for _, _, length in _matches(old, new))
    return len(new) - kept, len(old) - kept


def size(files: Iterable[FileChange]) -> tuple[int, int]:
    """Return how many lines all these changes add and remove."""
    added = removed = 0
    for change in files:
        before = change.before.data if change.before is not None else None
        more, less = stat(before, change.after.data if change.after is not None else None)
        added, removed = added + more, removed + less
    return added, removed


def hunks(before: bytes, after: bytes, context: int = 3) -> tuple[Hunk, ...]:
    """Return the hunks of a unified diff with `context` lines around each change."""
    old, new = split_lines(before), split_lines(after)
    result: list[Hunk] = []
    heading, searched = b"", 0
    for group in _grouped(_changes(old, new), 2 * context):
        first, last = group[0], group[-1]
        lead = min(context, first.before_start)
        tail = min(context, len(old) - last.before_end)
        place = LineChange(
            first.before_start - lead, last.before_end + tail, first.after_start - lead, last.after_end + tail
        )
        found = next(filter(None, map(_heading, reversed(old[searched : place.before_start]))), None)
        heading, searched = found or heading, place.before_start
        result.append(Hunk(place, heading, tuple(_hunk_lines(place, group, old, new))))
    return tuple(result)


def split_lines(data: bytes) -> list[bytes]:
    """Split at LF and keep it; the last line may lack it."""
    return BytesIO(data).readlines()


# --- git's patch of one file ------------------------------------------------------------------------

_NO_BLOB = "0" * 40


def unified(
    path_before: str | None,
    path_after: str | None,
    before: File | None,
    after: File | None,
    context: int = 3,
    *,
    known: Sequence[Hunk] | None = None,
) -> bytes:
    """Return the patch of one file as `git diff --full-index` writes it; nothing where nothing differs.

    `None` stands for no file, in both the path and the file. Paths are repo-relative; surrogate escapes stand
    for bytes that are not UTF-8. A patch without context needs `git apply --unidiff-zero`. `known` are the hunks where
    the caller has them.

    Raises `ValueError` for a rename and for a path without its file.
    """
    if (path_before is None, path_after is None) != (before is None, after is None):
        raise ValueError("a path comes with its file, and no path with no file")
    if path_before and path_after and path_before != path_after:
        raise ValueError(f"a rename is a deletion and a new file: {path_before!r} to {path_after!r}")
    if before == after:
        return b""
    path = path_after or path_before or ""
    old_name, new_name = quote_path(path, "a/"), quote_path(path, "b/")
    old_id, new_id = (file.oid if file else _NO_BLOB for file in (before, after))
    modes = [file.mode.encode() for file in (before, after) if file]
    lines = [b"diff --git %s %s\n" % (old_name, new_name)]
    mode = b""
    if before is None:
        old_name = b"/dev/null"
        lines.append(b"new file mode %s\n" % modes[0])
    elif after is None:
        new_name = b"/dev/null"
        lines.append(b"deleted file mode %s\n" % modes[0])
    elif before.mode == after.mode:
        mode = b" " + modes[0]
    else:
        lines.append(b"old mode %s\nnew mode %s\n" % (modes[0], modes[1]))
    if old_id != new_id:
        lines.append(b"index %s..%s%s\n" % (old_id.encode(), new_id.encode(), mode))
    body = known if known is not None else hunks(_data(before), _data(after), context)
    if body:
        lines += (b"--- %s\n" % _tabbed(old_name), b"+++ %s\n" % _tabbed(new_name))
    for hunk in body:
        lines.append(_hunk_header(hunk))
        lines += (line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n" for line in hunk.lines)
    return b"".join(lines)


def _data(file: File | None) -> bytes:
    return file.data if file is not None else b""


_ESCAPES = {7: b"\\a", 8: b"\\b", 9: b"\\t", 10: b"\\n", 11: b"\\v", 12: b"\\f", 13: b"\\r", 34: b'\\"', 92: b"\\\\"}


def quote_path(path: str, prefix: str = "") -> bytes:
    """Return the path as git prints it: as it is, or in double quotes with C escapes where it has odd bytes."""
    text = prefix + path
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return text.encode()
    raw = text.encode("utf-8", "surrogateescape")
    quoted = (_ESCAPES.get(byte) or (b"%c" % byte if 0x20 <= byte < 0x7F else b"\\%03o" % byte) for byte in raw)
    return b'"%s"' % b"".join(quoted)


def _tabbed(name: bytes) -> bytes:
    return name + b"\t" if b" " in name else name


def _hunk_header(hunk: Hunk) -> bytes:
    def extent(start: int, end: int) -> str:
        count = end - start
        first = start + 1 if count else start
        return str(first) if count == 1 else f"{first},{count}"

    place = hunk.place
    old, new = extent(place.before_start, place.before_end), extent(place.after_start, place.after_end)
    heading = b" " + hunk.heading if hunk.heading else b""
    return f"@@ -{old} +{new} @@".encode() + heading + b"\n"


def _heading(line: bytes) -> bytes:
    """Return what git's default funcname makes of a line: at most 80 bytes, cut before a byte that is not UTF-8."""
    if not (line[:1].isalpha() or line[:1] in (b"_", b"$")):
        return b""
    text = line[:80].rstrip(b" \t\r\n")
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return text[: error.start]
    return text


def _grouped(changes: Sequence[LineChange], reach: int) -> Iterator[list[LineChange]]:
    group: list[LineChange] = []
    for change in changes:
        if group and change.before_start - group[-1].before_end > reach:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _hunk_lines(
    place: LineChange, group: Iterable[LineChange], old: Sequence[bytes], new: Sequence[bytes]
) -> Iterator[bytes]:
    at = place.before_start
    for change in group:
        yield from (b" " + line for line in old[at : change.before_start])
        yield from (b"-" + line for line in old[change.before_start : change.before_end])
        yield from (b"+" + line for line in new[change.after_start : change.after_end])
        at = change.before_end
    yield from (b" " + line for line in old[at : place.before_end])


# --- the diff algorithm: Myers' greedy one, then hunks moved to where a reader expects them ----------------


def _changes(old: Sequence[bytes], new: Sequence[bytes]) -> list[LineChange]:
    result: list[LineChange] = []
    old_at = new_at = 0
    end = (len(old), len(new), 0)
    for old_start, new_start, length in (*_matches(old, new), end):
        if (old_at, new_at) != (old_start, new_start):
            result.append(LineChange(old_at, old_start, new_at, new_start))
        old_at, new_at = old_start + length, new_start + length
    return _compacted(result, old, new)


def _matches(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[tuple[int, int, int]]:
    """Yield the equal runs of lines of a longest common subsequence: where in `old`, where in `new`, and how many.

    A line that the other side lacks is in no such sequence; leaving it out first makes a rewritten file cheap.
    """
    shared = {line: number for number, line in enumerate(set(old) & set(new))}
    numbered = [list(map(shared.get, lines)) for lines in (old, new)]
    old_lines, new_lines = ([at for at, number in enumerate(numbers) if number is not None] for numbers in numbered)
    a, b = ([number for number in numbers if number is not None] for numbers in numbered)
    x = y = 0
    while x < len(a) and y < len(b):
        snakes, x, y = _round(a, b, x, y)
        for x_start, y_start, length in snakes:
            yield from _unbroken(old_lines, new_lines, x_start, y_start, length)


def _unbroken(
    old_lines: Sequence[int], new_lines: Sequence[int], x: int, y: int, length: int
) -> Iterator[tuple[int, int, int]]:
    """Yield an equal run in pieces that no line which was left out lies within."""
    last = length - 1
    if old_lines[x + last] - old_lines[x] == new_lines[y + last] - new_lines[y] == last:
        yield old_lines[x], new_lines[y], length
    else:
        half = length // 2
        yield from _unbroken(old_lines, new_lines, x, y, half)
        yield from _unbroken(old_lines, new_lines, x + half, y + half, length - half)


#: A diff of more edits than this is made piece by piece: no longer the shortest, but linear in the file's size.
_COST_LIMIT = 400
#: So many lines are compared at once where a long run may be equal.
_STRIDE = 32


def _round(a: Sequence[int], b: Sequence[int], x0: int, y0: int) -> tuple[list[tuple[int, int, int]], int, int]:
    """Go from (x0, y0) to the end, or as far as `_COST_LIMIT` edits lead; return the equal runs and the place.

    `furthest[k]` is the largest x reached on diagonal k = (x - x0) - (y - y0); negative diagonals count from
    the list's end.
    """
    a_end, b_end = len(a), len(b)
    limit = min(_COST_LIMIT, a_end - x0 + b_end - y0)
    furthest = [0] * (2 * limit + 3)
    furthest[1] = x0
    trail: list[list[int]] = []
    for cost in range(limit + 1):
        trail.append(furthest[:])
        for k in range(-cost, cost + 1, 2):
            inserts = k == -cost or (k != cost and furthest[k - 1] < furthest[k + 1])
            x = furthest[k + 1] if inserts else furthest[k - 1] + 1
            y = x - x0 - k + y0
            while x < a_end and y < b_end and a[x] == b[y]:
                step = _STRIDE if a[x : x + _STRIDE] == b[y : y + _STRIDE] and x + _STRIDE <= a_end else 1
                x += step
                y += step
            furthest[k] = x
            if x >= a_end and y >= b_end:
                return _snakes(trail, x, y, x0, y0), x, y
    reached = ((furthest[k], furthest[k] - x0 - k + y0) for k in range(-limit, limit + 1, 2))
    x, y = max(((x, y) for x, y in reached if x <= a_end and y <= b_end), key=sum)
    return _snakes(trail, x, y, x0, y0), x, y


def _snakes(trail: Sequence[Sequence[int]], x: int, y: int, x0: int, y0: int) -> list[tuple[int, int, int]]:
    """Walk back from (x, y) to (x0, y0); return the equal runs passed, first one first."""
    runs: list[tuple[int, int, int]] = []
    for cost in range(len(trail) - 1, -1, -1):
        furthest, k = trail[cost], (x - x0) - (y - y0)
        inserts = k == -cost or (k != cost and furthest[k - 1] < furthest[k + 1])
        start = furthest[k + 1] if inserts else furthest[k - 1] + 1
        if x > start:
            runs.append((start, start - x0 - k + y0, x - start))
        x = start if inserts else start - 1
        y = x - x0 - (k + 1 if inserts else k - 1) + y0
    return runs[::-1]


def _compacted(found: Iterable[LineChange], old: Sequence[bytes], new: Sequence[bytes]) -> list[LineChange]:
    """Join insertions and deletions that can slide up into the change before; put the others where they read best.

    Nothing slides down: the greedy algorithm has put each change as far down as it goes.
    """
    joined: list[tuple[LineChange, int]] = []
    for change in found:
        while True:
            room = change.before_start - (joined[-1][0].before_end if joined else 0)
            rise = _rise(change, old, new, room)
            if not joined or rise < room:
                break
            above, _ = joined.pop()
            change = LineChange(
                above.before_start, change.before_end - room, above.after_start, change.after_end - room
            )
        joined.append((change, rise))
    return [_best_place(change, rise, old, new) for change, rise in joined]


def _rise(change: LineChange, old: Sequence[bytes], new: Sequence[bytes], room: int) -> int:
    """Return by how many of `room` lines an insertion or deletion can slide up without a change of meaning."""
    lines, start, end = _sliding(change, old, new)
    up = 0
    while start < end and up < room and lines[start - up - 1] == lines[end - up - 1]:
        up += 1
    return up


def _sliding(change: LineChange, old: Sequence[bytes], new: Sequence[bytes]) -> tuple[Sequence[bytes], int, int]:
    """Return the side and the lines that can slide; none for a replacement."""
    if change.before_start == change.before_end:
        return new, change.after_start, change.after_end
    if change.after_start == change.after_end:
        return old, change.before_start, change.before_end
    return old, 0, 0


#: Bounds on the search for a good place, for files with thousands of equal lines.
_MOST_PLACES, _MOST_BLANKS = 100, 20


def _best_place(change: LineChange, rise: int, old: Sequence[bytes], new: Sequence[bytes]) -> LineChange:
    lines, start, end = _sliding(change, old, new)

    def cost(up: int) -> tuple[int, int, int]:
        above, below = _edge_cost(lines, start - up), _edge_cost(lines, end - up)
        return above[0] + below[0], above[1] + below[1], up

    up = min(range(min(rise, _MOST_PLACES) + 1), key=cost) if rise else 0
    return LineChange(change.before_start - up, change.before_end - up, change.after_start - up, change.after_end - up)


def _edge_cost(lines: Sequence[bytes], at: int) -> tuple[int, int]:
    """Say how badly a change's edge before line `at` reads: its indent, and whether no blank line is before it."""
    following = next((line for line in lines[at : at + _MOST_BLANKS] if not line.isspace()), None)
    if following is None:
        return 0, 0
    return _indent(following), int(at > 0 and not lines[at - 1].isspace())


def _indent(line: bytes) -> int:
    text = line.expandtabs(8)
    return len(text) - len(text.lstrip(b" "))
