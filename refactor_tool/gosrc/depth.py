"""Refuse source that is nested deeper than anybody writes, before it costs more than anybody waits.

The parser copes with any depth. But a node finds its parent by a walk from the root, so climbing is quadratic, and
converting a node to a value is recursive.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from refactor_tool.model import Unparsable

if TYPE_CHECKING:
    from tree_sitter import Node

    from refactor_tool.gosrc.tree import Tree

#: Brackets within brackets. The deepest file of k3s has 13.
MOST_NESTED = 200
#: Brackets that pair with nothing, since they stand in strings and comments; a file of k3s has 9. Links of an
#: `else if` chain, too.
_MOST_LOOSE = 500
#: Nodes within nodes on the way up from a place. In k3s there are up to 46.
_MOST_ANCESTORS = 300

#: What helps where a Go file cannot be read.
MEND = "mend the file, or leave it out of the tree"

_OTHERS = bytes(set(range(256)) - set(b"()[]{}"))


def is_too_deep(data: bytes) -> bool:
    """Say whether Go source is nested too deep by its brackets; takes microseconds for ordinary source."""
    rounds, left = _unnested(data.translate(None, _OTHERS), MOST_NESTED)
    return rounds == MOST_NESTED or left > _MOST_LOOSE or data.count(b"else if") > _MOST_LOOSE


def ancestors(node: Node) -> Iterator[Node]:
    """Yield what a node lies in, innermost first; RecursionError where that goes on and on."""
    parent = node.parent
    for _ in range(_MOST_ANCESTORS):
        if parent is None:
            return
        yield parent
        parent = parent.parent
    raise RecursionError("a place within too many nodes")


@contextmanager
def told(tree: Tree) -> Iterator[None]:
    """Turn a RecursionError into `Unparsable` that names the file nested deepest, unless none is: then it is a bug."""
    try:
        yield
    except RecursionError:
        depths = {path: _depth(parsed.root) for path, parsed in tree.parsed().items()}
        path = max(depths, key=lambda name: (depths[name], name), default="")
        if not path or depths[path] < MOST_NESTED:
            raise
        what = f"nested deeper than {MOST_NESTED} levels"
        raise Unparsable(what, MEND, path=path) from None


def _depth(root: Node) -> int:
    """Return how many nodes lie within each other."""
    cursor = root.walk()
    level = deepest = 0
    while True:
        if cursor.goto_first_child():
            level += 1
            deepest = max(deepest, level)
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return deepest
            level -= 1


def _unnested(brackets: bytes, most: int) -> tuple[int, int]:
    """Take the innermost pairs out again and again; return how often that worked, and how many brackets are left."""
    for count in range(most):
        outer = brackets.replace(b"()", b"").replace(b"[]", b"").replace(b"{}", b"")
        if len(outer) == len(brackets):
            return count, len(brackets)
        brackets = outer
    return most, len(brackets)
