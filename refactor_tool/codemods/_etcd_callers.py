"""Take nothing but an error from `(*Cluster).Start`, also where it is called through an interface."""

from __future__ import annotations

from collections.abc import Iterator

from refactor_tool.codemods import _shapes
from refactor_tool.codemods._etcd_cluster import BY_HAND, is_config_field, only_returns, returns_channel
from refactor_tool.codemods._etcd_sites import finding, methods
from refactor_tool.codemods._k3s import CLUSTER, CONFIG, package
from refactor_tool.codemods._signatures import demands
from refactor_tool.gosrc import ast
from refactor_tool.gosrc.tree import Occurrence, Tree
from refactor_tool.gosrc.walk import walk
from refactor_tool.model import Edit, Finding, Leave, Manual, Rewrite, Span, Verdict

_MESSAGE = "takes no channel from Start"


def of_callers(tree: Tree) -> Iterator[Finding]:
    """Yield the interfaces that have Start with a channel, and the calls of Start."""
    owners = [ast.FieldObject(package(tree, CLUSTER), "Cluster", "Start")]
    for path, name, method in _interfaces(tree):
        owners.append(ast.FieldObject(tree.package_of(path), name, "Start"))
        loses: Verdict = Rewrite((Edit(path, Span(method.params_span.end + 1, method.span.end), b" error"),))
        if not name:
            loses = Manual("an interface without a name asks for Start with a channel", BY_HAND)
        yield finding(tree, path, method.span, loses, "returns no channel", "interface")
    # upstream's interface (d45006be6), whose Start may return an error alone already
    owners.append(ast.FieldObject(package(tree, CONFIG), "Cluster", "Start"))
    results = [decl.results for _, decl in methods(tree, CLUSTER, "Cluster", "Start")]
    for use in _shapes.uses_of(tree, *owners):
        if all(len(each) == 1 for each in results):
            verdict = Leave("Start returns no channel", done=True)
            yield finding(tree, use.path, use.qualified, verdict, _MESSAGE, "call", "start-call")
        else:
            yield _caller(tree, use)


def _interfaces(tree: Tree) -> Iterator[tuple[str, str, ast.Method]]:
    for path, name, method in demands(tree, "Start", b") (<-chan struct{}, error)"):
        if returns_channel(method.results):
            yield path, name, method


def _caller(tree: Tree, use: Occurrence) -> Finding:
    path = use.path
    call, decl = tree.call_at(path, use.qualified), tree.function_at(path, use.span.start)
    if call is not None and decl is not None:
        whole = tree.function(path, decl)
        for block in (node for node in walk(whole) if isinstance(node, ast.Block)):
            for at, stmt in enumerate(block.stmts):
                match stmt:
                    case ast.If(init=ast.Assign(rhs=(ast.Call(span=span),)) as init) if span == call.span:
                        verdict = _guarded(tree, path, stmt, init)
                        return finding(tree, path, stmt.span, verdict, _MESSAGE, "if", "start-call")
                    case ast.Assign(rhs=(ast.Call(span=span),)) if span == call.span:
                        place, verdict = _assigned(tree, path, whole, block, at, stmt)
                        return finding(tree, path, place, verdict, _MESSAGE, "assignment", "start-call")
                    case _:
                        pass
    return finding(tree, path, use.qualified, _unknown(tree, path, use.span), _MESSAGE, "unknown-shape", "start-call")


def _unknown(tree: Tree, path: str, span: Span) -> Manual:
    return Manual(f"unknown use of the channel of Start: {tree.line_text(path, span.start)!r}", BY_HAND)


def _guarded(tree: Tree, path: str, stmt: ast.If, init: ast.Assign) -> Verdict:
    """`if ready, err := Start(); err != nil { ... } else { store ready }`: the store goes, with the else."""
    match init.lhs, stmt.else_:
        case (ast.Ident() as ready, ast.Ident() as err), ast.Block(stmts=(store,)) as other if (
            _stores(tree, path, store, ready.name)
            and len(_shapes.names_in(tree, path, stmt.span, ready.name)) == 2
            and not tree.comments_in(path, Span(stmt.then.span.end, other.span.end))
        ):
            gone = Span(stmt.then.span.end, other.span.end)
            return Rewrite((Edit(path, Span(ready.span.start, err.span.start), b""), Edit(path, gone, b"")))
        case _:
            return _unknown(tree, path, stmt.span)


def _assigned(
    tree: Tree, path: str, decl: ast.FuncDecl, block: ast.Block, at: int, stmt: ast.Assign
) -> tuple[Span, Verdict]:
    """`ready, err := Start()`, a check of the error, and a store of the channel later: it becomes the check alone."""
    guard = block.stmts[at + 1] if at + 1 < len(block.stmts) else stmt
    match stmt.lhs:
        case (ast.Ident() as ready, ast.Ident() as err) if stmt.op == ":=" and only_returns(guard, err.name):
            pass
        case _:
            return stmt.span, _unknown(tree, path, stmt.span)
    store = next((each for each in block.stmts[at + 2 :] if _stores(tree, path, each, ready.name)), None)
    if store is None or not isinstance(guard, ast.If):
        return stmt.span, _unknown(tree, path, stmt.span)
    span = Span(stmt.span.start, store.span.end)
    between = Span(stmt.rhs[0].span.end, guard.cond.span.start)
    readers = _uses_after(tree, path, decl, ready, ready.span.end)
    if len(readers) > 1 or _uses_after(tree, path, decl, err, guard.span.end) or tree.comments_in(path, between):
        return span, _unknown(tree, path, stmt.span)
    head = Edit(path, Span(stmt.span.start, stmt.rhs[0].span.start), f"if {err.name} := ".encode())
    removed = _shapes.remove_statements(tree, path, (store.span,))
    return span, _shapes.combined((head, Edit(path, between, b"; ")), removed)


def _uses_after(tree: Tree, path: str, decl: ast.FuncDecl, local: ast.Ident, offset: int) -> list[Occurrence]:
    return [
        use
        for use in _shapes.names_in(tree, path, decl.span, local.name)
        if use.span.start >= offset and isinstance(use.object, ast.LocalObject) and use.object.at == local.span
    ]


def _stores(tree: Tree, path: str, stmt: ast.Stmt, name: str) -> bool:
    """Tell whether a statement stores the channel in the control runtime."""
    match stmt:
        case ast.Assign(lhs=(ast.Selector() as left,), op="=", rhs=(ast.Ident(name=stored),)):
            return stored == name and is_config_field(tree, path, left, "ETCDReady")
        case _:
            return False
