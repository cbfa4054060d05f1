"""Where edits go so that the result is laid out as gofmt would: lines, lists, aligned fields, imports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise

from refactor_tool.gosrc import ast
from refactor_tool.gosrc.parse import ParseCache, Parsed
from refactor_tool.gosrc.tree import Tree
from refactor_tool.gosrc.words import places_before_dot
from refactor_tool.model import Edit, Span
from refactor_tool.record import record

_FIRST_DECL = re.compile(rb"^(?:func|type|var|const)\b", re.MULTILINE)
_EMPTY_IMPORT = re.compile(rb"^import \(\s*\)\r?\n(?:\r?\n)?", re.MULTILINE)


def whole_lines(data: bytes, span: Span) -> Span:
    """Return `span` widened to whole lines, the last line's LF included."""
    end = data.find(b"\n", max(span.start, span.end - 1))
    return Span(data.rfind(b"\n", 0, span.start) + 1, len(data) if end < 0 else end + 1)


def remove_lines(tree: Tree, path: str, span: Span) -> Edit:
    """Return the edit that removes the lines of a statement, field or declaration.

    Of the blank lines around it one is kept where both sides have some; a blank line that would follow an opening or
    precede a closing brace goes too. The caller makes sure that the lines hold nothing else.
    """
    data = tree.data(path)
    lines = whole_lines(data, span)
    start, end = lines.start, lines.end
    blank_before = _is_blank_line(data, start - 1)
    blank_after = end < len(data) and _is_blank_line(data, end)
    opened = data[:start].rstrip()[-1:] in (b"{", b"(") or not data[:start].strip()
    closed = data[end:].lstrip()[:1] in (b"}", b")", b"")
    if blank_before and (blank_after or closed):
        start = data.rfind(b"\n", 0, start - 1) + 1
    elif blank_after and opened:
        end = data.find(b"\n", end) + 1
    return Edit(path, Span(start, end), b"")


def with_comment_above(data: bytes, lines: Span) -> Span:
    """Widen whole lines to the lines of `//` comment that stand directly above them."""
    start = lines.start
    while start:
        above = data.rfind(b"\n", 0, start - 1) + 1
        if not data[above:start].lstrip().startswith(b"//"):
            break
        start = above
    return Span(start, lines.end)


def insert_after_line(tree: Tree, path: str, offset: int) -> Span:
    """Return the empty span at the start of the line after the one that holds `offset`."""
    data = tree.data(path)
    end = data.find(b"\n", offset)
    at = len(data) if end < 0 else end + 1
    return Span(at, at)


def insert_before_line(tree: Tree, path: str, offset: int) -> Span:
    """Return the empty span at the start of the line that holds `offset`."""
    at = tree.data(path).rfind(b"\n", 0, offset) + 1
    return Span(at, at)


def remove_item(tree: Tree, path: str, items: Sequence[Span], index: int) -> Edit:
    """Return the edit that takes one item and its comma out of a list on one line, such as arguments or parameters."""
    if len(items) == 1:
        return Edit(path, items[0], b"")
    if index + 1 < len(items):
        return Edit(path, Span(items[index].start, items[index + 1].start), b"")
    return Edit(path, Span(items[index - 1].end, items[index].end), b"")


def append_item(path: str, items: Sequence[Span], inside: Span, text: bytes) -> Edit:
    """Return the edit that adds a last item to a list; `inside` is what lies between the parentheses."""
    at = items[-1].end if items else inside.start
    return Edit(path, Span(at, at), (b", " if items else b"") + text)


# --- aligned fields ---------------------------------------------------------------------------------


@record
class _Row:
    """One line of an aligned block: its cells (bytes of the file), or None for a line yet to come."""

    cells: tuple[Span, ...] | None
    texts: tuple[bytes, ...]
    line: Span


def add_fields(tree: Tree, path: str, struct: ast.StructType, fields: Sequence[tuple[str, str]]) -> tuple[Edit, ...]:
    """Return the edits that add `name type` fields after the last field of a struct, aligned as gofmt does."""
    data = tree.data(path)
    newline = b"\r\n" if tree.file(path).crlf else b"\n"
    rows = _field_rows(data, struct)
    if not rows:
        at = struct.span.end - 1
        outer = tree.indent(path, struct.span.start).encode()
        text = b"".join(outer + f"\t{name} {type_}".encode() + newline for name, type_ in _padded(fields))
        if data[:at].rstrip(b" \t").endswith(b"\n"):
            return (Edit(path, insert_before_line(tree, path, at), text),)
        opened = b" {" if data[struct.span.start : at] == b"struct{" else data[at - 1 : at]
        return (Edit(path, Span(at - 1, at), opened + newline + text + outer),)
    section = _last_section(data, rows)
    added = [_Row(None, (name.encode(), type_.encode()), Span(0, 0)) for name, type_ in fields]
    realign = _is_aligned(data, section)
    edits = list(_realigned(path, data, section, [*section, *added])) if realign else []
    widths = _widths([*section, *added]) if realign else [[len(row.texts[0])] for row in [*section, *added]]
    indent = tree.indent(path, section[-1].line.start).encode()
    lines = b""
    for row, width in zip(added, widths[len(section) :], strict=True):
        lines += indent + row.texts[0].ljust(width[0]) + b" " + row.texts[1] + newline
    edits.append(Edit(path, Span(section[-1].line.end, section[-1].line.end), lines))
    return tuple(edits)


def remove_fields(tree: Tree, path: str, struct: ast.StructType, names: Iterable[str]) -> tuple[Edit, ...]:
    """Return the edits that remove single-name fields, their doc comments too, and align what is left."""
    data = tree.data(path)
    gone = set(names)
    rows = _field_rows(data, struct)
    removed = [row for row in rows if row.texts[0].decode() in gone]
    edits = [remove_lines(tree, path, with_comment_above(data, row.line)) for row in removed]
    for section in _sections(data, rows):
        kept = [row for row in section if row not in removed]
        if len(kept) < len(section) and kept and _is_aligned(data, section):
            edits.extend(_realigned(path, data, kept, kept))
    return tuple(edits)


def remove_element(tree: Tree, path: str, literal: ast.Composite, index: int) -> tuple[Edit, ...]:
    """Return the edits that remove a keyed element which has a line of its own, and align the values left."""
    data = tree.data(path)
    rows = [
        _Row(
            (element.key.span, element.value.span),
            (_bytes(data, element.key.span) + b":", _bytes(data, element.value.span)),
            whole_lines(data, element.span),
        )
        for element in literal.elements
        if element.key is not None
    ]
    gone = next(row for row in rows if row.line.contains(literal.elements[index].span))
    edits = [remove_lines(tree, path, gone.line)]
    for section in _sections(data, rows):
        if gone in section:
            group = [row for row in section if _value_column(data, row) == _value_column(data, gone)]
            kept = [row for row in group if row != gone]
            if kept and _is_aligned(data, group):
                edits.extend(_realigned(path, data, kept, kept, colon=1))
    return tuple(edits)


def _value_column(data: bytes, row: _Row) -> int:
    cells = row.cells
    return cells[1].start - row.line.start if cells is not None and len(cells) > 1 else -1


def _padded(fields: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    width = max((len(name) for name, _ in fields), default=0)
    for name, type_ in fields:
        yield name.ljust(width), type_


def _field_rows(data: bytes, struct: ast.StructType) -> list[_Row]:
    """Return a row per field: name, type, tag or comment; embedded fields and fields of many lines have one cell."""
    rows = []
    for field in struct.fields:
        line = whole_lines(data, field.span)
        if not field.names or data.count(b"\n", field.span.start, field.span.end):
            rows.append(_Row((field.span,), (_bytes(data, field.span),), line))
            continue
        names = Span(field.names[0].span.start, field.names[-1].span.end)
        cells = [names, field.type.span]
        if field.tag is not None:
            cells.append(field.tag)
        tail = data[field.span.end : line.end].strip()
        if tail:
            at = data.index(tail, field.span.end)
            cells.append(Span(at, at + len(tail)))
        rows.append(_Row(tuple(cells), tuple(_bytes(data, cell) for cell in cells), line))
    return rows


def _sections(data: bytes, rows: Sequence[_Row]) -> list[list[_Row]]:
    """Split rows where lines are not adjacent; rows of one cell stand alone."""
    out: list[list[_Row]] = []
    for row in rows:
        if out and out[-1][-1].line.end == row.line.start and len(row.texts) > 1 and len(out[-1][-1].texts) > 1:
            out[-1].append(row)
        else:
            out.append([row])
    return out


def _last_section(data: bytes, rows: Sequence[_Row]) -> list[_Row]:
    return _sections(data, rows)[-1]


def _widths(rows: Sequence[_Row]) -> list[list[int]]:
    """Return for each row the width of each cell but its last: the widest among neighbours that have that cell too."""
    out: list[list[int]] = [[0] * (len(row.texts) - 1) for row in rows]
    for column in range(max((len(row.texts) for row in rows), default=1) - 1):
        for has, group in groupby(range(len(rows)), key=lambda at: len(rows[at].texts) > column + 1):
            members = list(group)
            if has:
                width = max(len(rows[at].texts[column].decode("utf-8", "replace")) for at in members)
                for at in members:
                    out[at][column] = width
    return out


def _is_aligned(data: bytes, rows: Sequence[_Row]) -> bool:
    """Tell whether rows are laid out now as `_widths` says; what is not, is left as it is."""
    return not any(True for _ in _gaps(data, rows, _widths(rows), colon=_colon(data, rows)))


def _colon(data: bytes, rows: Sequence[_Row]) -> int:
    first = rows[0]
    return 1 if first.cells is not None and first.texts[0].endswith(b":") else 0


def _realigned(path: str, data: bytes, rows: Sequence[_Row], context: Sequence[_Row], colon: int = 0) -> Iterator[Edit]:
    widths = _widths(context)[: len(rows)]
    for gap, blanks in _gaps(data, rows, widths, colon):
        yield Edit(path, gap, blanks)


def _gaps(
    data: bytes, rows: Sequence[_Row], widths: Sequence[Sequence[int]], colon: int
) -> Iterator[tuple[Span, bytes]]:
    """Yield the white space between cells that differs from what the widths ask for."""
    for row, width in zip(rows, widths, strict=True):
        cells = row.cells or ()
        for column, (left, right) in enumerate(pairwise(cells)):
            start = left.end + (colon if column == 0 else 0)
            blanks = b" " * (width[column] - len(row.texts[column].decode("utf-8", "replace")) + 1)
            if data[start : right.start] != blanks:
                yield Span(start, right.start), blanks


def _bytes(data: bytes, span: Span) -> bytes:
    return data[span.start : span.end]


def _is_blank_line(data: bytes, offset: int) -> bool:
    """Tell whether the line that holds `offset` is empty; `offset` may be its LF."""
    if offset < 0:
        return False
    start = data.rfind(b"\n", 0, offset) + 1
    end = data.find(b"\n", offset)
    return not data[start : len(data) if end < 0 else end].strip()


# --- imports ----------------------------------------------------------------------------------------


def settle_imports(
    cache: ParseCache, before: bytes | None, after: bytes, needs: Iterable[tuple[str, str | None]]
) -> bytes:
    """Return `after` with the needed (path, alias) imports added and those removed that the change made unused.

    An import that `before` did not use either stays: it is not ours. New ones go where they sort among the group that
    shares most of their path, as goimports does.
    """
    for path, alias in sorted(needs, key=lambda need: (need[0], need[1] or "")):
        head = _head(cache, after)
        if not any(spec.path == path and spec.name == alias for spec in head.imports()):
            after = _with_import(head, after, path, alias)
    return after if before is None else _without_unused(cache, cache.parse(before), after)


def _without_unused(cache: ParseCache, old: Parsed, after: bytes) -> bytes:
    """Take out the imports that `old` used and `after` does not, and the parentheses if nothing is left in them.

    Those whose name is nowhere before a dot are taken out first: what is parsed then is the result but for a name that
    is left in a comment, a string or a variable.
    """
    specs = [spec for spec in _head(cache, after).imports() if spec.name not in (".", "_")]
    unnamed = [
        spec
        for spec in specs
        if not any(True for _ in places_before_dot(after, spec.local.encode())) and old.uses(spec.local)
    ]
    after = _without_imports(after, unnamed)
    parsed = cache.parse(after, old)
    specs = [spec for spec in parsed.imports() if spec.name not in (".", "_")]
    return _without_imports(after, [spec for spec in specs if not parsed.uses(spec.local) and old.uses(spec.local)])


def _without_imports(data: bytes, specs: Sequence[ast.ImportSpec]) -> bytes:
    for spec in reversed(specs):
        lines = whole_lines(data, spec.span)
        data = _without_empty_group(data[: lines.start] + data[lines.end :], lines.start)
    return _EMPTY_IMPORT.sub(b"", data) if specs else data


def _head(cache: ParseCache, data: bytes) -> Parsed:
    """Parse the file up to its first declaration, before which all imports stand, or all of it in case of doubt."""
    end = _FIRST_DECL.search(data)
    head = cache.parse_once(data[: end.start()] if end is not None else data)
    return cache.parse(data) if head.root.has_error else head


def _without_empty_group(data: bytes, at: int) -> bytes:
    """Take out one blank line where a removed import left two, or one beside a parenthesis."""
    before, after = data[:at], data[at:]
    opened = before.rstrip(b" \t\r\n").endswith(b"(")
    if after.startswith((b"\n", b"\r\n")) and (before.endswith((b"\n\n", b"\n\r\n")) or opened):
        return before + after.split(b"\n", 1)[1]
    if after.lstrip(b" \t").startswith(b")") and before.endswith((b"\n\n", b"\n\r\n")):
        return before[:-1].rstrip(b"\r") + after
    return data


def _with_import(parsed: Parsed, data: bytes, path: str, alias: str | None) -> bytes:
    newline = b"\r\n" if b"\r\n" in data[:4096] else b"\n"
    line = (f'{alias} "{path}"' if alias else f'"{path}"').encode()
    specs = [spec for spec in parsed.imports() if spec.path != "C"]
    grouped = [spec for spec in specs if data[whole_lines(data, spec.span).start : spec.span.start].strip() == b""]
    if not grouped and specs:  # `import "x"` on lines of their own
        after = [spec for spec in specs if spec.path > path]
        lines = whole_lines(data, after[0].span if after else specs[-1].span)
        at = lines.start if after else lines.end
        return data[:at] + b"import " + line + newline + data[at:]
    if not grouped:
        clause = next(node for node in parsed.root.children if node.type == "package_clause")
        at = whole_lines(data, Span(clause.start_byte, clause.end_byte)).end
        return data[:at] + newline + b"import (" + newline + b"\t" + line + newline + b")" + newline + data[at:]
    group = max(_import_groups(data, grouped), key=lambda members: _affinity(members, path))
    after = [spec for spec in group if spec.path > path]
    if after:
        at = whole_lines(data, after[0].span).start
    else:
        at = whole_lines(data, group[-1].span).end
    return data[:at] + b"\t" + line + newline + data[at:]


def _import_groups(data: bytes, specs: Sequence[ast.ImportSpec]) -> list[list[ast.ImportSpec]]:
    groups: list[list[ast.ImportSpec]] = []
    for spec in specs:
        lines = whole_lines(data, spec.span)
        if groups and whole_lines(data, groups[-1][-1].span).end == lines.start:
            groups[-1].append(spec)
        else:
            groups.append([spec])
    return groups


def _affinity(group: Sequence[ast.ImportSpec], path: str) -> tuple[bool, int, int]:
    """Prefer a group of the same sort (standard library or not), then the longest shared path, then the largest."""
    standard = _is_standard(path)
    same = sum(_is_standard(spec.path) == standard for spec in group) * 2 > len(group)
    shared = (
        max(_shared_parts(spec.path, path) for spec in group if spec.name != "_")
        if any(spec.name != "_" for spec in group)
        else 0
    )
    return same, shared, len(group)


def _is_standard(path: str) -> bool:
    return "." not in path.split("/", 1)[0]


def _shared_parts(a: str, b: str) -> int:
    count = 0
    for x, y in zip(a.split("/"), b.split("/"), strict=False):
        if x != y:
            break
        count += 1
    return count
