"""Recognise `WaitForAPIServerReady` as k3s had it: the set-up of a client, then a poll of it that keeps the last error.

The codemod carries the set-up over, so a statement more is welcome there. It replaces the poll, so every part of that
has to be one whose meaning is known: nothing that somebody added gets lost.
"""

from __future__ import annotations

from collections.abc import Callable

from refactor_tool.codemods._shapes import LOGRUS
from refactor_tool.gosrc import ast, layout
from refactor_tool.gosrc.tree import Tree
from refactor_tool.gosrc.walk import Node, walk
from refactor_tool.model import Span
from refactor_tool.record import record

#: The polls that are known, and what stands between the timeout and the check.
POLLS = {"PollUntilContextTimeout": ("true",), "PollImmediateWithContext": ()}
_WAIT = "k8s.io/apimachinery/pkg/util/wait"
_REST = "k8s.io/client-go/rest"


@record
class ReadyzPoll:
    """The parts of the function: names of its parameters and locals, and the statements between which it is cut."""

    ctx: str
    kubeconfig: str
    timeout: str
    err: str
    config: str
    client: str
    poll: str
    interval: str
    body: Span
    last_error: Span
    no_config: ast.If
    no_client: ast.If


def recognise(tree: Tree, path: str, decl: ast.FuncDecl) -> ReadyzPoll | str:
    """Return the parts of a function, or what about it is not known, with its text. `decl` must have its body."""
    params = [(ident.name, tree.text(path, param.type.span)) for param in decl.params for ident in param.names]
    match params, decl.results:
        case [(ctx, _), (kubeconfig, "string"), (timeout, _)], (ast.Param(names=(), type=ast.Ident(name="error")),):
            pass
        case _:
            return (
                f"{decl.name} does not take a context, a kubeconfig and a timeout: {_text(tree, path, decl.signature)}"
            )
    match decl.body:
        case ast.Block(
            stmts=(
                ast.VarStmt(specs=(ast.VarSpec(names=(ast.Ident(name=last),), values=()),)) as last_error,
                ast.Assign(lhs=(ast.Ident(name=config), ast.Ident(name=err)), op=":=", rhs=(ast.Call(),)) as configured,
                ast.If() as no_config,
                *setup,
                ast.Assign(lhs=(ast.Ident(name=client), ast.Ident()), op=":=", rhs=(ast.Call() as create,)) as created,
                ast.If() as no_client,
                ast.Assign(op="=", rhs=(ast.Call(args=(_, interval, *_, ast.FuncLit() as check)) as poll,)) as polled,
                ast.If() as failed,
                ast.Return() as success,
            )
        ):
            pass
        case _:
            return f"{decl.name} is not the set-up of a client and a poll of it: {_text(tree, path, decl.span)}"
    kept = Span(layout.whole_lines(tree.data(path), last_error.span).end, no_client.span.end)
    for comment in tree.comments_in(path, decl.body.span):
        if not kept.contains(comment):
            return f"a comment in the poll of {decl.name} would be lost: {_text(tree, path, comment)}"
    bound = {ctx, timeout, last}
    known: tuple[tuple[ast.Stmt, bool], ...] = (
        (configured, not _names(configured) & bound),
        (no_config, _is_guard(tree, path, no_config, err) and not _names(no_config.then) & bound),
        *((stmt, not _names(stmt) & bound and _is_setup(stmt, config)) for stmt in setup),
        (created, tree.calls(path, create) == ast.PackageObject(_REST, "RESTClientFor")),
        (no_client, _is_guard(tree, path, no_client, err) and not _names(no_client.then) & bound),
        (polled, _is_poll(tree, path, poll, ctx, timeout)),
        (failed, _is_failure(tree, path, failed, err, last)),
        (success, _text(tree, path, success.span) == "return nil"),
    )
    for stmt, is_known in known:
        if not is_known:
            return _unknown(tree, path, decl, Span(stmt.span.start, check.span.start) if stmt is polled else stmt.span)
    odd = _odd_in_check(tree, path, check, client, last)
    if odd is not None:
        return _unknown(tree, path, decl, odd)
    return ReadyzPoll(
        ctx=ctx,
        kubeconfig=kubeconfig,
        timeout=timeout,
        err=err,
        config=config,
        client=client,
        poll=_called(tree.calls(path, poll)),
        interval=_spaced(tree, path, interval),
        body=decl.body.span,
        last_error=last_error.span,
        no_config=no_config,
        no_client=no_client,
    )


def _unknown(tree: Tree, path: str, decl: ast.FuncDecl, span: Span) -> str:
    return f"{decl.name} has a statement of a form that is not known: {_text(tree, path, span)}"


def _is_setup(stmt: ast.Stmt, config: str) -> bool:
    """Tell whether a statement can be carried over: it does one thing, and sets no request timeout of its own."""
    match stmt:
        case ast.Assign(lhs=(ast.Selector(x=ast.Ident(name=owner), name="Timeout"),)) if owner == config:
            return False
        case ast.Assign() | ast.ExprStmt():
            return True
        case _:
            return False


def _is_poll(tree: Tree, path: str, poll: ast.Call, ctx: str, timeout: str) -> bool:
    match tree.calls(path, poll):
        case ast.PackageObject(package="k8s.io/apimachinery/pkg/util/wait", name=name) if name in POLLS:
            first, interval, *others = poll.args[:-1]
            texts = [tree.text(path, arg.span) for arg in (first, *others)]
            return texts == [ctx, timeout, *POLLS[name]] and _is_constant(tree, path, interval)
        case _:
            return False


def _odd_in_check(tree: Tree, path: str, check: ast.FuncLit, client: str, last: str) -> Span | None:
    """Return what in the check is not known: it is one request, whose error or status is kept as the last error."""
    stmts = check.body.stmts if check.body is not None else ()
    match check.params, stmts[:2]:
        case (
            (ast.Param(names=(ast.Ident(name=ctx),)),),
            (ast.Assign(lhs=(ast.Ident(name=status),)), ast.Assign(lhs=(ast.Ident(name=result),))),
        ):
            pass
        case _:
            return check.span
    asks = f'{client}.Get().AbsPath("/readyz").Do({ctx}).StatusCode(&{status})'
    known: tuple[Callable[[ast.Stmt], bool], ...] = (
        lambda stmt: _text(tree, path, stmt.span) == f"{status} := 0",
        lambda stmt: _text(tree, path, stmt.span) == f"{result} := {asks}",
        lambda stmt: _keeps_error(tree, path, stmt, result, last),
        lambda stmt: _keeps_status(tree, path, stmt, result, status, last),
        lambda stmt: _text(tree, path, stmt.span) == "return true, nil",
    )
    odd = next((stmt for stmt, is_known in zip(stmts, known, strict=False) if not is_known(stmt)), None)
    if odd is not None:
        return odd.span
    return None if len(stmts) == len(known) else check.span


def _keeps_error(tree: Tree, path: str, stmt: ast.Stmt, result: str, last: str) -> bool:
    match stmt:
        case ast.If(
            init=ast.Assign(lhs=(ast.Ident(name=error),)) as asked,
            then=ast.Block(stmts=(ast.Assign(lhs=(kept,), op="="), no)),
            else_=None,
        ):
            nodes = (asked, stmt.cond, kept, no)
            texts = [f"{error} := {result}.Error()", f"{error} != nil", last, "return false, nil"]
            return [_text(tree, path, node.span) for node in nodes] == texts
        case _:
            return False


def _keeps_status(tree: Tree, path: str, stmt: ast.Stmt, result: str, status: str, last: str) -> bool:
    match stmt:
        case ast.If(
            init=None,
            cond=ast.Binary(op="!=", x=ast.Ident(name=tested), y=ok),
            then=ast.Block(
                stmts=(
                    ast.Assign(lhs=(ast.Ident(), ast.Ident(name="_"))) as reply,
                    ast.Assign(lhs=(kept,), op="="),
                    ast.ExprStmt(x=ast.Call() as log),
                    no,
                )
            ),
            else_=None,
        ):
            texts = [_text(tree, path, node.span) for node in (reply.rhs[0], kept, no)]
            return (
                texts == [f"{result}.Raw()", last, "return false, nil"]
                and tested == status
                and tree.resolve(path, ok) == ast.PackageObject("net/http", "StatusOK")
                and _package_of(tree.calls(path, log)) == LOGRUS
            )
        case _:
            return False


def _is_failure(tree: Tree, path: str, stmt: ast.If, err: str, last: str) -> bool:
    """Know `if err != nil { return merr.NewErrors(err, lastErr) }`."""
    match stmt:
        case ast.If(
            init=None, then=ast.Block(stmts=(ast.Return(values=(ast.Call(args=(first, second)) as join,)),)), else_=None
        ):
            texts = [_text(tree, path, node.span) for node in (stmt.cond, first, second)]
            return texts == [f"{err} != nil", err, last] and _package_of(tree.calls(path, join)).endswith("/merr")
        case _:
            return False


def _is_guard(tree: Tree, path: str, stmt: ast.If, err: str) -> bool:
    """Know `if err != nil { return … }` with one value, on lines of their own."""
    match stmt:
        case ast.If(init=None, then=ast.Block(stmts=(ast.Return(values=(_,)) as leave,)), else_=None):
            spread = tree.line_text(path, leave.span.start) == tree.text(path, leave.span)
            return spread and _text(tree, path, stmt.cond.span) == f"{err} != nil"
        case _:
            return False


def _is_constant(tree: Tree, path: str, expr: ast.Expr) -> bool:
    """Tell whether an interval can be said outside the function: no locals, and no more than one operator."""
    match expr:
        case ast.Binary(x=x, y=y):
            return all(not isinstance(side, ast.Binary) and _is_constant(tree, path, side) for side in (x, y))
        case _:
            idents = (node for node in walk(expr) if isinstance(node, ast.Ident))
            return not any(isinstance(tree.resolve(path, ident), ast.LocalObject) for ident in idents)


def _spaced(tree: Tree, path: str, expr: ast.Expr) -> str:
    """Return an interval as gofmt writes it where it stands alone: with blanks around its operator."""
    match expr:
        case ast.Binary(x=x, op=op, y=y):
            return f"{tree.text(path, x.span)} {op} {tree.text(path, y.span)}"
        case _:
            return tree.text(path, expr.span)


def _names(node: Node) -> set[str]:
    return {found.name for found in walk(node) if isinstance(found, ast.Ident)}


def _called(found: ast.Object) -> str:
    return found.name if isinstance(found, ast.PackageObject) else ""


def _package_of(found: ast.Object) -> str:
    return found.package if isinstance(found, ast.PackageObject) else ""


def _text(tree: Tree, path: str, span: Span) -> str:
    """Return the text of a place with its white space made even."""
    return " ".join(tree.text(path, span).split())
