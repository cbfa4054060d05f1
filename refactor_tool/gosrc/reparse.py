"""Parse a new version of a file with the tree of an earlier one, so that only declarations that changed are parsed.

tree-sitter keeps what an edit does not touch, and gives the same tree as a parse of all the bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from refactor_tool.model import Span

if TYPE_CHECKING:
    from tree_sitter import Parser, Tree


def reparse(parser: Parser, tree: Tree, before: bytes, after: bytes) -> Tree:
    """Return the tree of `after`; `tree` is that of `before` and stays as it is."""
    edited = tree.copy()
    for old, new in reversed([*_differences(tree, before, after)]):
        row, column = _point(before, old.start)
        rows, rest = _point(after[new.start : new.end], new.end - new.start)
        edited.edit(
            old.start,
            old.end,
            old.start + new.end - new.start,
            (row, column),
            _point(before, old.end),
            (row + rows, rest if rows else column + rest),
        )
    return parser.parse(after, edited)


def _differences(tree: Tree, before: bytes, after: bytes) -> Iterator[tuple[Span, Span]]:
    """Yield which bytes became which, in order: what lies between the declarations that both versions have."""
    old_at = new_at = 0
    for part in tree.root_node.named_children:
        found = after.find(before[part.start_byte : part.end_byte], new_at)
        if found >= 0:
            if before[old_at : part.start_byte] != after[new_at:found]:
                yield Span(old_at, part.start_byte), Span(new_at, found)
            old_at, new_at = part.end_byte, found + part.end_byte - part.start_byte
    if before[old_at:] != after[new_at:]:
        yield Span(old_at, len(before)), Span(new_at, len(after))


def _point(data: bytes, offset: int) -> tuple[int, int]:
    """Return the row and the column of a byte, 0-based."""
    return data.count(b"\n", 0, offset), offset - data.rfind(b"\n", 0, offset) - 1
