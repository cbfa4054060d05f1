"""Find literals that give a struct its values by position: they do not fit any more once it gains or loses a field."""

from __future__ import annotations

import re
from collections.abc import Iterator

from refactor_tool.codemods._shapes import whole_function
from refactor_tool.gosrc import ast
from refactor_tool.gosrc.tree import Tree
from refactor_tool.gosrc.walk import trail
from refactor_tool.gosrc.words import word_places
from refactor_tool.model import Manual, Span

#: Types whose literals hold others, which need not write their own type.
_LISTS = frozenset(("slice_type", "array_type", "implicit_length_array_type", "map_type"))
_KEYED = re.compile(rb"\{\s*(?:\}|\w+\s*:)")
_POINTER = re.compile(rb"\*\s*(?:\w+\s*\.\s*)?$")
_IN_LIST = re.compile(rb"\]\s*\*?\s*(?:\w+\s*\.\s*)?$")
#: How far before the name of a type its package and what it is an element of are looked for, in bytes.
_LOOK_BACK = 80


def unkeyed(tree: Tree, owner: str, name: str) -> Iterator[tuple[str, Span, Manual]]:
    """Yield the literals of a struct type of a package whose values have no names, wherever in the tree they are."""
    for path in tree.files_with(name.encode() + b"{"):
        if not tree.knows(path, owner):
            continue
        data = tree.data(path)
        places = [at for at in word_places(data, name.encode()) if _may_be_unkeyed(data, at)]
        for use in tree.occurrences_at(path, places):
            for literal in _literals(tree, path, use.qualified) if use.object == ast.PackageObject(owner, name) else ():
                if literal.elements and literal.elements[0].key is None:
                    line = tree.line_text(path, literal.span.start)
                    reason = f"{name} gets its values by position here, and its fields change: {line!r}"
                    yield path, literal.span, Manual(reason, "name the fields in it, and plan again")


def _may_be_unkeyed(data: bytes, at: Span) -> bool:
    """Tell by the bytes around the name of a type whether a literal may begin there whose values have no names."""
    if not data.startswith(b"{", at.end):
        return False
    before = data[max(0, at.start - _LOOK_BACK) : at.start]
    return bool(_IN_LIST.search(before)) or not (_POINTER.search(before) or _KEYED.match(data, at.end))


def _literals(tree: Tree, path: str, place: Span) -> Iterator[ast.Composite]:
    """Yield the literals of the type that is written at a place, one or those of a list."""
    root = whole_function(tree, path, place) or tree.decl_at(path, place.start)
    nodes = trail(root, place) if root is not None else ()
    for node in nodes:
        if isinstance(node, ast.Composite) and node.type is not None and node.type.span.contains(place):
            depth = sum(isinstance(each, ast.OtherExpr) and each.kind in _LISTS for each in trail(node.type, place))
            yield from _below(node, depth)


def _below(literal: ast.Composite, depth: int) -> Iterator[ast.Composite]:
    """Yield what stands so many lists deep in a literal, where it does not write its type itself."""
    if depth == 0:
        yield literal
        return
    for element in literal.elements:
        if isinstance(element.value, ast.Composite) and element.value.type is None:
            yield from _below(element.value, depth - 1)
