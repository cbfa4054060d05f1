"""Walk the plain values of `ast`: everything below a node, and the way down to a place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias, cast, get_args

from refactor_tool.gosrc import ast
from refactor_tool.model import Span

Node: TypeAlias = (
    ast.Expr | ast.Stmt | ast.Decl | ast.Param | ast.Case | ast.Element | ast.Field | ast.Method | ast.VarSpec
)
Function: TypeAlias = ast.FuncDecl | ast.FuncLit

_NODES: frozenset[type] = frozenset(get_args(Node))
_STMTS = get_args(ast.Stmt)


def children(node: Node) -> Iterator[Node]:
    """Yield the nodes directly below one."""
    for name in type(node).__match_args__:
        value = getattr(node, name)
        for item in value if isinstance(value, tuple) else (value,):
            if type(item) in _NODES:
                yield cast("Node", item)


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and everything below it, parents first."""
    yield node
    for child in children(node):
        yield from walk(child)


def trail(root: Node, span: Span) -> tuple[Node, ...]:
    """Return the nodes that contain `span`, from `root` down to the innermost; () where `root` does not contain it."""
    if not root.span.contains(span):
        return ()
    for child in children(root):
        below = trail(child, span)
        if below:
            return (root, *below)
    return (root,)


def functions_at(decl: ast.FuncDecl, span: Span) -> tuple[Function, ...]:
    """Return the functions whose bodies contain `span`, the innermost last; `decl` must have its body."""
    found = (node for node in trail(decl, span) if isinstance(node, ast.FuncDecl | ast.FuncLit))
    return tuple(function for function in found if function.body is not None and function.body.span.contains(span))


def statement(nodes: tuple[Node, ...]) -> ast.Stmt | None:
    """Return the innermost statement of a trail that is not a block."""
    return next(
        (node for node in reversed(nodes) if isinstance(node, _STMTS) and not isinstance(node, ast.Block)), None
    )
