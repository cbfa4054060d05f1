"""What can be proved of a changed tree without Go: it parses, is laid out no worse, and its imports hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from refactor_tool.gosrc import ast
from refactor_tool.gosrc.convert import Converter
from refactor_tool.gosrc.layout import _field_rows, _import_groups, _is_aligned, _sections
from refactor_tool.gosrc.parse import ParseCache, Parsed, faults
from refactor_tool.gosrc.scope import names_in_scope
from refactor_tool.gosrc.tree import Tree, is_package_used
from refactor_tool.model import FileChange, Span
from refactor_tool.record import record

if TYPE_CHECKING:
    from tree_sitter import Node


@record
class Flaw:
    """Something a change made worse: where in the new file (None for the whole file), and what."""

    path: str
    span: Span | None
    message: str


def prove(before: Tree, after: Tree, changes: Iterable[FileChange]) -> tuple[Flaw, ...]:
    """Return what the changes made worse; () is the proof of design.md's invariant 5 but for idempotence."""
    out: list[Flaw] = []
    changed = [change for change in changes if change.path.endswith(".go")]
    for change in changed:
        if change.after is None:
            continue
        old = before.cache.parse(change.before.oid, change.before.data) if change.before is not None else None
        new = after.cache.parse(change.after.oid, change.after.data)
        broken = faults(new)
        if broken:
            out.extend(Flaw(change.path, fault.span, f"does not parse: {fault.message}") for fault in broken)
            continue
        out.extend(_layout(change.path, old, new))
        out.extend(_imports(change.path, old, new, before, after))
    if not out:
        out.extend(_cycles(before, after, changed))
    return tuple(out)


def _imports(path: str, old: Parsed | None, new: Parsed, before: Tree, after: Tree) -> list[Flaw]:
    out = []
    for spec in after.file(path).imports:
        used = spec.name in (".", "_") or spec.path == "C" or is_package_used(new, after._import_name(spec))
        if not used and (old is None or spec.path not in {known.path for known in before.file(path).imports}):
            out.append(Flaw(path, spec.span, f"import {spec.path!r} is not used"))
        elif not used and old is not None and is_package_used(old, before._import_name(spec)):
            out.append(Flaw(path, spec.span, f"import {spec.path!r} is no longer used"))
    known = Counter(name for name, _ in _free_qualifiers(before, path, old)) if old is not None else Counter()
    for name, span in _free_qualifiers(after, path, new):
        if known[name] == 0:
            out.append(Flaw(path, span, f"{name!r} is neither imported nor declared"))
    seen: set[str] = set()
    for spec in after.file(path).imports:
        local = after._import_name(spec)
        if spec.name not in (".", "_") and local in seen:
            out.append(Flaw(path, spec.span, f"import name {local!r} is used twice"))
        seen.add(local)
    return out


def _free_qualifiers(tree: Tree, path: str, parsed: Parsed) -> list[tuple[str, Span]]:
    """Return the `x` of every `x.y` that no declaration or import of the file explains."""
    known = {tree._import_name(spec) for spec in tree.file(path).imports}
    out = []
    for node in _walk(parsed.root):
        x: Node | None = None
        if node.type == "selector_expression":
            x = node.child_by_field_name("operand")
        elif node.type == "qualified_type":
            x = node.child_by_field_name("package")
        if x is None or x.type not in ("identifier", "package_identifier") or x.text is None:
            continue
        name = x.text.decode()
        if name in known or names_in_scope(x, x.text):
            continue
        if isinstance(tree._resolve_global(path, name), ast.UnknownObject):
            out.append((name, Span(x.start_byte, x.end_byte)))
    return out


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


def _layout(path: str, old: Parsed | None, new: Parsed) -> list[Flaw]:
    known = Counter(message for message, _ in layout_faults(old)) if old is not None else Counter()
    out = []
    for message, span in layout_faults(new):
        if known[message] > 0:
            known[message] -= 1
        else:
            out.append(Flaw(path, span, f"gofmt would change it: {message}"))
    return out


def layout_faults(parsed: Parsed) -> list[tuple[str, Span]]:
    """Return places that gofmt would lay out otherwise: blank lines, white space, alignment, import order.

    A message names the line's text, not its number, so that the faults of two versions of a file can be compared.
    """
    return [*_line_faults(parsed), *_indent_faults(parsed), *_align_faults(parsed), *_import_faults(parsed)]


def _line_faults(parsed: Parsed) -> list[tuple[str, Span]]:
    data = parsed.data
    out = []
    raw = [Span(n.start_byte, n.end_byte) for n in _walk(parsed.root) if n.type in ("raw_string_literal", "comment")]
    at = 0
    blank = False
    for line in data.split(b"\n"):
        span = Span(at, at + len(line))
        text = line.removesuffix(b"\r")
        inside = (
            any(region.start < span.start <= region.end for region in raw if region.end > span.start) if raw else False
        )
        if not inside:
            if text != text.rstrip(b" \t"):
                out.append((f"trailing space after {text.strip().decode('utf-8', 'replace')!r}", span))
            if not text and blank and at < len(data):
                out.append(("two blank lines", span))
        blank = not text
        at += len(line) + 1
    if data and not data.endswith(b"\n"):
        out.append(("no newline at the end", Span(len(data), len(data))))
    return out


def _indent_faults(parsed: Parsed) -> list[tuple[str, Span]]:
    """Compare the tabs before each statement with those of the line its block starts on."""
    out = []
    for node in _walk(parsed.root):
        if node.type != "statement_list" or node.parent is None:
            continue
        owner = node.parent
        # a header may span lines, so a block's depth is that of its closing brace
        anchor = owner.end_byte - 1 if owner.type == "block" else owner.start_byte
        expected = _tabs(parsed.data, anchor) + 1
        for stmt in node.named_children:
            start = parsed.data.rfind(b"\n", 0, stmt.start_byte) + 1
            lead = parsed.data[start : stmt.start_byte]
            if lead.strip() or stmt.start_point.row == owner.start_point.row:
                continue
            want = expected - 1 if stmt.type == "labeled_statement" else expected
            if lead != b"\t" * want:
                text = parsed.data[stmt.start_byte : stmt.end_byte].split(b"\n", 1)[0]
                out.append((f"indentation of {text.decode('utf-8', 'replace')!r}", Span(start, stmt.end_byte)))
    return out


def _tabs(data: bytes, offset: int) -> int:
    """Return how deep the code on the line of `offset` stands; a case clause counts from its own line."""
    start = data.rfind(b"\n", 0, offset) + 1
    line = data[start:].split(b"\n", 1)[0]
    return len(line) - len(line.lstrip(b"\t"))


def _align_faults(parsed: Parsed) -> list[tuple[str, Span]]:
    out = []
    convert = Converter(parsed.data)
    for node in _walk(parsed.root):
        if node.type == "struct_type" and b"\n" in parsed.data[node.start_byte : node.end_byte]:
            struct = convert.expr(node)
            if isinstance(struct, ast.StructType):
                for section in _sections(parsed.data, _field_rows(parsed.data, struct)):
                    if not _is_aligned(parsed.data, section):
                        first = section[0].texts[0].decode("utf-8", "replace")
                        out.append((f"alignment of the fields from {first!r}", section[0].line))
    return out


def _import_faults(parsed: Parsed) -> list[tuple[str, Span]]:
    out = []
    for group in _import_groups(parsed.data, parsed.imports()):
        paths = [spec.path for spec in group]
        for spec, ordered in zip(group, sorted(paths), strict=True):
            if spec.path != ordered:
                out.append((f"order of import {spec.path!r}", spec.span))
                break
    return out


def _walk(root: Node) -> Iterable[Node]:
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(node.named_children)


__all__ = ["Flaw", "ParseCache", "layout_faults", "prove"]
