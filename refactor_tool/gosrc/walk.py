"""Walk the plain values of `ast`: everything below a node, and the way down to a place."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import TypeAlias, get_args

from refactor_tool.gosrc import ast
from refactor_tool.model import Span

Node: TypeAlias = (
    ast.Expr | ast.Stmt | ast.Decl | ast.Param | ast.Case | ast.Element | ast.Field | ast.Method | ast.VarSpec
)
Function: TypeAlias = ast.FuncDecl | ast.FuncLit

_STMTS = get_args(ast.Stmt)
#: The attributes of each class that hold nodes: one, None, or a tuple of them.
_LINKS: dict[type, tuple[str, ...]] = {
    kind: tuple(
        name
        for name, annotation in kind.__annotations__.items()
        if not annotation.startswith(("Span", "str", "bool", "Literal"))
    )
    for kind in get_args(Node)
    if kind is not ast.Block
} | {ast.Block: ("stmts",)}


def children(node: Node) -> list[Node]:
    """Return the nodes directly below one, in order."""
    out: list[Node] = []
    for name in _LINKS[type(node)]:
        value = getattr(node, name)
        if type(value) is tuple:
            out.extend(value)
        elif value is not None:
            out.append(value)
    return out


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and everything below it, parents first."""
    waiting = [node]
    while waiting:
        here = waiting.pop()
        yield here
        waiting.extend(reversed(children(here)))


def trail(root: Node, span: Span) -> tuple[Node, ...]:
    """Return the nodes that contain `span`, from `root` down to the innermost; () where `root` does not contain it."""
    out: list[Node] = []
    here: Node | None = root if root.span.contains(span) else None
    while here is not None:
        out.append(here)
        here = _child_at(here, span)
    return tuple(out)


def _child_at(node: Node, span: Span) -> Node | None:
    """Return the node directly below one that contains `span`. What stands in a tuple is in the order of the file."""
    for name in _LINKS[type(node)]:
        value = getattr(node, name)
        if type(value) is tuple:
            at = bisect_right(value, span.start, key=_start)
            value = value[at - 1] if at else None
        if value is not None and value.span.contains(span):
            found: Node = value
            return found
    return None


def _start(node: Node) -> int:
    return node.span.start


def functions_at(decl: ast.FuncDecl, span: Span) -> tuple[Function, ...]:
    """Return the functions whose bodies contain `span`, the innermost last; `decl` must have its body."""
    found = (node for node in trail(decl, span) if isinstance(node, ast.FuncDecl | ast.FuncLit))
    return tuple(function for function in found if function.body is not None and function.body.span.contains(span))


def statement(nodes: tuple[Node, ...]) -> ast.Stmt | None:
    """Return the innermost statement of a trail that is not a block."""
    return next(
        (node for node in reversed(nodes) if isinstance(node, _STMTS) and not isinstance(node, ast.Block)), None
    )


def name_of(call: ast.Call) -> str:
    """Return the last name of what is called, "" for a literal or a conversion."""
    match call.fun:
        case ast.Ident(name=name) | ast.Selector(name=name):
            return name
        case _:
            return ""
