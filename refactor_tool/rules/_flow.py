"""What runs after what inside one function: statements that never fall through, and what follows a statement."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import cast, get_args

from refactor_tool.gosrc import ast
from refactor_tool.gosrc.tree import Tree
from refactor_tool.gosrc.walk import Function, Node, children, walk
from refactor_tool.model import Span
from refactor_tool.rules._code import Site

#: A call statement that ends the process or the goroutine, whatever the logger is called.
_ENDS = re.compile(r"(?:[\w.]+\([^()]*\)\.)?(?:\w+\.)*(?:Fatal\w*|Exit|panic|Goexit)\(")
#: What may stand in a list of statements, and the clauses that have such a list.
_HOLDS = (*get_args(ast.Stmt), ast.Case)


def leaves(tree: Tree, path: str, stmts: Sequence[ast.Stmt]) -> bool:
    """Tell whether a list of statements never runs on into what follows it."""
    return bool(stmts) and _leaves(tree, path, stmts[-1])


def _leaves(tree: Tree, path: str, stmt: ast.Stmt) -> bool:
    match stmt:
        case ast.Return() | ast.Branch():
            return True
        case ast.OtherStmt(kind="fallthrough_statement"):
            return True
        case ast.ExprStmt(span=span):
            return _ENDS.match(tree.text(path, span)) is not None
        case ast.Block(stmts=stmts):
            return leaves(tree, path, stmts)
        case ast.If(then=then, else_=other) if other is not None:
            return leaves(tree, path, then.stmts) and _leaves(tree, path, other)
        case ast.For(header=header, body=body):
            endless = not tree.text(path, header).strip()
            return endless and not any(isinstance(node, ast.Branch) and node.keyword == "break" for node in own(body))
        case ast.Select(cases=cases):
            return bool(cases) and all(leaves(tree, path, case.body) and not _breaks(case) for case in cases)
        case ast.Switch(cases=cases):
            has_default = any(case.default for case in cases)
            return has_default and all(leaves(tree, path, case.body) and not _breaks(case) for case in cases)
        case ast.Labeled(stmt=inner):
            return inner is not None and _leaves(tree, path, inner)
        case _:
            return False


def _breaks(case: ast.Case) -> bool:
    return bool(case.body) and isinstance(case.body[-1], ast.Branch) and case.body[-1].keyword == "break"


def own(node: Node) -> Iterator[Node]:
    """Yield what stands below a node in order, function literals left out: they run at another time."""
    waiting = [child for child in reversed(children(node)) if not isinstance(child, ast.FuncLit)]
    while waiting:
        here = waiting.pop()
        yield here
        waiting.extend(child for child in reversed(children(here)) if not isinstance(child, ast.FuncLit))


def statements(node: Node) -> Iterator[ast.Stmt]:
    """Yield the statements below a node in order, those of function literals left out."""
    waiting: list[Node] = [node]
    while waiting:
        here = waiting.pop()
        if here is not node and not isinstance(here, ast.Case):
            yield cast("ast.Stmt", here)
        waiting.extend(child for child in reversed(children(here)) if isinstance(child, _HOLDS))


def following(site: Site, stmt: Node) -> tuple[ast.Stmt, ...]:
    """Return the statements that run after `stmt`, which holds the site, in its function: nearest first.

    Nothing follows the last statement of a loop's body but the next round.
    """
    out: list[ast.Stmt] = []
    for node in reversed(site.inside):
        if isinstance(node, ast.For) and node is not stmt:
            break
        if node.span.contains(stmt.span):
            out.extend(after(node, stmt.span))
    return tuple(out)


def after(node: Node, span: Span) -> tuple[ast.Stmt, ...]:
    """Return the statements of a block or clause that stand after a span; () for other nodes."""
    stmts = _list(node)
    return stmts[bisect_left(stmts, span.end, key=lambda stmt: stmt.span.start) :]


def before(node: Node, span: Span) -> tuple[ast.Stmt, ...]:
    """Return the statements of a block or clause that stand before a span; () for other nodes."""
    stmts = _list(node)
    return stmts[: bisect_right(stmts, span.start, key=lambda stmt: stmt.span.end)]


def _list(node: Node) -> tuple[ast.Stmt, ...]:
    match node:
        case ast.Block(stmts=stmts):
            return stmts
        case ast.Case(body=body):
            return body
        case _:
            return ()


def is_done(expr: ast.Expr) -> bool:
    """Tell whether an expression is `ctx.Done()` of any context."""
    match expr:
        case ast.Call(fun=ast.Selector(name="Done"), args=()):
            return True
        case ast.Paren(x=inner):
            return is_done(inner)
        case _:
            return False


def received(comm: ast.Stmt | None) -> ast.Expr | None:
    """Return what a statement or a select's case receives from, None for another one."""
    match comm:
        case ast.ExprStmt(x=ast.Unary(op="<-", x=channel)) | ast.Assign(rhs=(ast.Unary(op="<-", x=channel),)):
            return channel
        case _:
            return None


def ends_with_context(case: ast.Case) -> bool:
    """Tell whether a select's case is the one for the end of a context."""
    channel = received(case.comm)
    return channel is not None and is_done(channel)


def deferred_calls(function: Function) -> Iterator[ast.Call]:
    """Yield the calls that a function defers, those in a deferred literal's body included."""
    if function.body is None:
        return
    for node in statements(function.body):
        if isinstance(node, ast.Defer) and isinstance(node.call, ast.Call):
            if isinstance(node.call.fun, ast.FuncLit):
                yield from (inner for inner in walk(node.call.fun.body) if isinstance(inner, ast.Call))
            else:
                yield node.call
