"""Turn `defer close(ready)` of a goroutine into a close where it has succeeded, and only there.

Every way out of the goroutine must be known: the end of the context, which closes nothing now, or success.
"""

from __future__ import annotations

from collections.abc import Iterator

from refactor_tool.codemod import Template
from refactor_tool.codemods import _shapes
from refactor_tool.codemods._k3s import UTIL, package
from refactor_tool.gosrc import ast, layout
from refactor_tool.gosrc.tree import Tree
from refactor_tool.gosrc.walk import Function, Node, children, functions_at, statement, trail
from refactor_tool.model import Edit, Fragment, Manual, Rewrite, Span

CLOSE = Template("cancel-safe-waits/close.go.j2", ("channel",))
CLOSE_AT_END = Template("cancel-safe-waits/close_at_end.go.j2", ("channel",))


def close_on_success(tree: Tree, path: str, channel: Span) -> Rewrite | Manual:
    """Replace the `defer close(...)` around the name `channel` by a close at each way out that is a success."""
    line = tree.line_text(path, channel.start)
    by_hand = f"replace {line!r} by a close where the goroutine has succeeded, and leave the channel open elsewhere"
    decl = _shapes.whole_function(tree, path, channel)
    if decl is None:
        return Manual(f"{line!r} stands outside a function", by_hand)
    function = functions_at(decl, channel)[-1]
    body = function.body
    deferred = statement(trail(decl, channel))
    if body is None or deferred not in body.stmts or not isinstance(deferred, ast.Defer):
        return Manual(f"{line!r} is not a statement of the goroutine itself", by_hand)
    name = tree.text(path, channel)
    closes: list[Edit] = []
    for leave in _returns(function):
        nodes = trail(decl, leave.span)
        if _is_success(nodes):
            at = layout.insert_before_line(tree, path, leave.span.start)
            closes.append(Edit(path, at, _text(CLOSE, tree.indent(path, leave.span.start), name)))
        elif not _is_cancelled(tree, path, nodes):
            where = tree.lines(path).position(leave.span.start).line
            return Manual(f"whether the return in line {where} is a success is not known", by_hand)
    if not _is_endless(tree, path, body):
        at = layout.insert_before_line(tree, path, body.span.end - 1)
        closes.append(Edit(path, at, _text(CLOSE_AT_END, tree.indent(path, at.start) + "\t", name)))
    if not closes:
        return Manual("the goroutine never succeeds", by_hand)
    return _shapes.combined(_shapes.remove_statements(tree, path, (deferred.span,)), tuple(closes))


def _text(template: Template, indent: str, channel: str) -> Fragment:
    return template.filled({"channel": channel}, indent, lines=True)


def _own(node: Node) -> Iterator[Node]:
    """Yield what is below a node, but for what is in functions of its own."""
    for child in children(node):
        if not isinstance(child, ast.FuncLit):
            yield child
            yield from _own(child)


def _returns(function: Function) -> Iterator[ast.Return]:
    return (node for node in _own(function) if isinstance(node, ast.Return))


def _is_success(nodes: tuple[Node, ...]) -> bool:
    """Tell whether a return is what is left where no error was received, after `if err != nil { continue }`."""
    match nodes:
        case (
            *_,
            ast.Case(
                comm=ast.Assign(lhs=(ast.Ident(name=received),)),
                body=(
                    ast.If(
                        init=None,
                        cond=ast.Binary(op="!=", x=ast.Ident(name=tested), y=ast.Ident(name="nil")),
                        then=ast.Block(stmts=(*_, ast.Branch(keyword="continue"))),
                        else_=None,
                    ),
                    *_,
                    ast.Return(values=()) as last,
                ),
            ),
            ast.Return() as leave,
        ):
            return received == tested and leave == last
        case _:
            return False


def _is_cancelled(tree: Tree, path: str, nodes: tuple[Node, ...]) -> bool:
    """Tell whether a return is taken only because the context has ended."""
    return any(_ends_context(tree, path, node) for node in nodes[-3:])


def _ends_context(tree: Tree, path: str, node: Node) -> bool:
    match node:
        case ast.Case():
            return _shapes.is_end(tree, path, node)
        case ast.If(init=ast.Assign(rhs=(ast.Call() as call,)), else_=None):
            return tree.calls(path, call) == ast.PackageObject(package(tree, UTIL), "WaitReady")
        case ast.If(cond=ast.Binary(op="!=", x=ast.Call(fun=ast.Selector(x=x, name="Err")), y=ast.Ident(name="nil"))):
            return tree.named_type(tree.type_of(path, x)) == _shapes.CONTEXT
        case _:
            return False


def _is_endless(tree: Tree, path: str, body: ast.Block) -> bool:
    """Tell whether the end of a body cannot be reached, as it ends with a loop that nothing breaks."""
    last: ast.Stmt | None = body.stmts[-1]
    label = ""
    while isinstance(last, ast.Labeled):
        label, last = last.label, last.stmt
    if not isinstance(last, ast.For) or tree.text(path, last.header).strip():
        return False
    return not any(_breaks(stmt, label, direct=True) for stmt in last.body.stmts)


def _breaks(node: Node, label: str, *, direct: bool) -> bool:
    """Tell whether a statement of a loop breaks it: by its label, or `direct`ly, not in a loop or choice of its own."""
    match node:
        case ast.Branch(keyword="break", label=target):
            return target == label if target else direct
        case ast.FuncLit():
            return False
        case ast.For() | ast.Select() | ast.Switch():
            direct = False
        case _:
            pass
    return any(_breaks(child, label, direct=direct) for child in children(node))
