"""What can be proved of a changed tree without Go: it parses, is laid out no worse, and its imports hold."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from typing import TYPE_CHECKING

from refactor_tool.gosrc import ast
from refactor_tool.gosrc.convert import Converter
from refactor_tool.gosrc.layout import _field_rows, _import_groups, _is_aligned, _sections
from refactor_tool.gosrc.parse import Marks, Parsed, faults
from refactor_tool.gosrc.tree import Tree
from refactor_tool.model import FileChange, Span
from refactor_tool.record import record

if TYPE_CHECKING:
    from tree_sitter import Node

_TRAILING = re.compile(rb"[ \t]+(?=\r?$)", re.MULTILINE)
_BLANK_LINES = re.compile(rb"(?<=\n)(?:\r?\n){2,}")


@record
class Flaw:
    """Something a change made worse: where in the new file (None for the whole file), and what.

    `is_inherited` says that the file was not laid out as gofmt does before either, so that what the change took over
    from around it may not be.
    """

    path: str
    span: Span | None
    message: str
    is_inherited: bool = False


@record
class _Changed:
    """One changed file: both versions, and what is marked in the declarations that only the new one has."""

    path: str
    old: Parsed | None
    new: Parsed
    fresh: Marks


def prove(before: Tree, after: Tree, changes: Iterable[FileChange]) -> tuple[Flaw, ...]:
    """Return what the changes made worse; () is the proof of design.md's invariant 5 but for idempotence."""
    out: list[Flaw] = []
    changed = [change for change in changes if change.path.endswith(".go")]
    parsed = {change.path: before.cache.parse(change.before.data) for change in changed if change.before is not None}
    declared = {name.encode() for old in parsed.values() for head in old.heads() for name in head.names}
    for change in changed:
        if change.after is None:
            continue
        old = parsed.get(change.path)
        new = after.cache.parse(change.after.data)
        broken = faults(new)
        if broken:
            out.extend(Flaw(change.path, fault.span, f"does not parse: {fault.message}") for fault in broken)
            continue
        fresh = new.marks(_beyond(new, old) if old is not None else new.root.children)
        file = _Changed(change.path, old, new, fresh)
        out.extend(_layout(file))
        out.extend(_imports(file, before, after))
        out.extend(
            Flaw(change.path, span, f"{name!r} is neither imported nor declared")
            for name, span in _free_qualifiers(file, before, after, declared)
        )
    if not out:
        out.extend(_cycles(before, after, changed))
    return tuple(out)


def _beyond(parsed: Parsed, other: Parsed) -> Iterator[Node]:
    """Yield the declarations and comments of a file that another does not have, byte for byte, or not as often."""
    shared = Counter(other.data[part.start_byte : part.end_byte] for part in other.root.named_children)
    for part in parsed.root.named_children:
        text = parsed.data[part.start_byte : part.end_byte]
        if shared[text] > 0:
            shared[text] -= 1
        else:
            yield part


def _imports(file: _Changed, before: Tree, after: Tree) -> list[Flaw]:
    path, old, new = file.path, file.old, file.new
    out = []
    for spec in after.file(path).imports:
        used = spec.name in (".", "_") or spec.path == "C" or new.uses(after._import_name(spec))
        if not used and (old is None or spec.path not in {known.path for known in before.file(path).imports}):
            out.append(Flaw(path, spec.span, f"import {spec.path!r} is not used"))
        elif not used and old is not None and old.uses(before._import_name(spec)):
            out.append(Flaw(path, spec.span, f"import {spec.path!r} is no longer used"))
    seen: set[str] = set()
    for spec in after.file(path).imports:
        local = after._import_name(spec)
        if spec.name not in (".", "_") and local in seen:
            out.append(Flaw(path, spec.span, f"import name {local!r} is used twice"))
        seen.add(local)
    return out


def _free_qualifiers(
    file: _Changed, before: Tree, after: Tree, declared: Container[bytes]
) -> Iterator[tuple[str, Span]]:
    """Yield the `x` of every `x.y` that nothing explains, for names that the new file has more of than the old one.

    A name outside what is new may have lost its meaning only with its import, or where it is one of those that the
    changed files `declared` before.
    """
    path, old, new = file.path, file.old, file.new
    imported = {after._import_name(spec).encode() for spec in after.file(path).imports}
    specs = old.imports() if old is not None else ()
    imported_before = {name.encode() for spec in specs for name in (spec.local, before._import_name(spec))}
    lost = imported_before - imported
    places: dict[bytes, list[Node]] = {name: [] for name in lost}
    for node in file.fresh.get("qualifier", ()):
        places.setdefault(new.data[node.start_byte : node.end_byte], []).append(node)
    for name in sorted(places.keys() - imported):
        may_be_lost = name in lost or name in declared or b"." in imported_before
        if not may_be_lost and all(new.scopes.holds(node, name) for node in places[name]):
            continue
        nodes = list(new.qualifiers(name))
        known = list(old.qualifiers(name)) if old is not None and name not in lost else []
        if (known and len(nodes) <= len(known)) or not _is_unknown(after, path, name):
            continue
        free = [node for node in nodes if not new.scopes.holds(node, name)]
        was_free = old is not None and known and _is_unknown(before, path, name)
        if len(free) > (sum(not old.scopes.holds(node, name) for node in known) if old and was_free else 0):
            yield from ((name.decode(), Span(node.start_byte, node.end_byte)) for node in free)


def _is_unknown(tree: Tree, path: str, name: bytes) -> bool:
    return isinstance(tree._resolve_global(path, name.decode()), ast.UnknownObject)


def _cycles(before: Tree, after: Tree, changes: Iterable[FileChange]) -> list[Flaw]:
    out = []
    for package in sorted({after.package_of(change.path) for change in changes}):
        for imported in sorted(after.imported_by(package) - before.imported_by(package)):
            if not after.may_import(package, imported):
                where = next(
                    (path for path in after.package_files(package) if imported.encode() in after.data(path)), package
                )
                out.append(Flaw(where, None, f"import cycle: {imported} imports {package} already"))
    return out


def _layout(file: _Changed) -> list[Flaw]:
    old, new = file.old, file.new
    found = layout_faults(new, file.fresh)
    gone = layout_faults(old, old.marks(_beyond(old, new))) if found and old is not None else []
    known = Counter(message for message, _ in gone)
    is_inherited = bool(found) and old is not None and bool(layout_faults(old))
    out = []
    for message, span in found:
        if known[message] > 0:
            known[message] -= 1
        else:
            out.append(Flaw(file.path, span, f"gofmt would change it: {message}", is_inherited))
    return out


def layout_faults(parsed: Parsed, marks: Marks | None = None) -> list[tuple[str, Span]]:
    """Return places that gofmt would lay out otherwise: blank lines, white space, alignment, import order.

    `marks` are those of the parts to look at for indentation and alignment, by default all of the file. A message names
    the line's text, not its number, so that the faults of two versions of a file can be compared.
    """
    marks = marks if marks is not None else parsed.marks(parsed.root.children)
    return [
        *_line_faults(parsed),
        *_indent_faults(parsed, marks),
        *_align_faults(parsed, marks),
        *_import_faults(parsed),
    ]


def _line_faults(parsed: Parsed) -> Iterator[tuple[str, Span]]:
    data = parsed.data
    lines = (data + b"\n").replace(b"\r\n", b"\n")
    may_trail, may_be_blank = b" \n" in lines or b"\t\n" in lines, b"\n\n\n" in lines
    texts = parsed.marks(parsed.root.children).get("text", ()) if may_trail or may_be_blank else ()
    for pattern in (*[_TRAILING] * may_trail, *[_BLANK_LINES] * may_be_blank):
        for found in pattern.finditer(data):
            if any(node.start_byte < found.end() and found.start() < node.end_byte for node in texts):
                continue
            if pattern is _BLANK_LINES:
                yield "two blank lines", Span(*found.span())
            else:
                line = data[data.rfind(b"\n", 0, found.start()) + 1 : found.start()].strip()
                yield f"trailing space after {line.decode('utf-8', 'replace')!r}", Span(*found.span())
    if data and not data.endswith(b"\n"):
        yield "no newline at the end", Span(len(data), len(data))


def _indent_faults(parsed: Parsed, marks: Marks) -> Iterator[tuple[str, Span]]:
    """Compare the tabs before each statement with those of the line its block ends or its case starts on."""
    data = parsed.data
    for node in marks.get("list", ()):
        owner = node.parent
        if owner is None:
            continue
        # a header may span lines, so a block's depth is that of its closing brace
        expected = _tabs(data, owner.end_byte - 1 if owner.type == "block" else owner.start_byte) + 1
        first = owner.start_point.row
        for stmt in node.named_children:
            start = data.rfind(b"\n", 0, stmt.start_byte) + 1
            lead = data[start : stmt.start_byte]
            if lead == b"\t" * (expected - (stmt.type == "labeled_statement")) or lead.strip():
                continue
            if stmt.start_point.row != first:
                text = data[stmt.start_byte : stmt.end_byte].split(b"\n", 1)[0]
                yield f"indentation of {text.decode('utf-8', 'replace')!r}", Span(start, stmt.end_byte)


def _tabs(data: bytes, offset: int) -> int:
    """Return with how many tabs the line of `offset` begins."""
    start = end = data.rfind(b"\n", 0, offset) + 1
    while data[end : end + 1] == b"\t":
        end += 1
    return end - start


def _align_faults(parsed: Parsed, marks: Marks) -> Iterator[tuple[str, Span]]:
    convert = Converter(parsed.data)
    for node in marks.get("struct", ()):
        struct = convert.expr(node) if node.start_point.row != node.end_point.row else None
        if isinstance(struct, ast.StructType):
            for section in _sections(parsed.data, _field_rows(parsed.data, struct)):
                if not _is_aligned(parsed.data, section):
                    first = section[0].texts[0].decode("utf-8", "replace")
                    yield f"alignment of the fields from {first!r}", section[0].line


def _import_faults(parsed: Parsed) -> Iterator[tuple[str, Span]]:
    for group in _import_groups(parsed.data, parsed.imports()):
        for spec, ordered in zip(group, sorted(spec.path for spec in group), strict=True):
            if spec.path != ordered:
                yield f"order of import {spec.path!r}", spec.span
                break
