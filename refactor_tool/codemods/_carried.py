"""Tell whether a channel is one that k3s carries itself: a field of ControlRuntime, or what only passes that on."""

from __future__ import annotations

from collections.abc import Iterator

from refactor_tool.codemods._k3s import CLUSTER, CONFIG, EXECUTOR, package
from refactor_tool.codemods._shapes import names_in, uses_of, whole_function
from refactor_tool.gosrc import ast
from refactor_tool.gosrc.tree import Tree
from refactor_tool.gosrc.walk import trail, walk
from refactor_tool.model import Span


def is_carried(tree: Tree, path: str, channel: ast.Expr, field: str, seen: frozenset[Span] = frozenset()) -> bool:
    """Tell whether a channel is `field` of ControlRuntime, given out by a call, or an alias of these.

    An alias is a local that is set once, or a parameter of a function whose known calls all give it such a channel.
    """
    while isinstance(channel, ast.Paren):
        channel = channel.x
    match tree.resolve(path, channel):
        case ast.FieldObject() as found:
            return found == _the_field(tree, field)
        case ast.UnknownObject() if isinstance(channel, ast.Selector):
            # the field has gone before its uses
            return channel.name == field and tree.member(package(tree, CONFIG), "ControlRuntime", field) is None
        case ast.LocalObject(kind="var" | "param" as kind, at=at) as local if at not in seen:
            whole = whole_function(tree, path, at)
            if whole is None or _is_stored(tree, path, whole, local):
                return False
            sources = _values(tree, path, whole, at) if kind == "var" else _arguments(tree, path, whole, at)
            given = [is_carried(tree, where, each, field, seen | {at}) for where, each in sources]
            return bool(given) and all(given)
        case _:
            return isinstance(channel, ast.Call) and _gives_out(tree, path, channel, field)


def _the_field(tree: Tree, field: str) -> ast.FieldObject:
    return ast.FieldObject(package(tree, CONFIG), "ControlRuntime", field)


def _gives_out(tree: Tree, path: str, call: ast.Call, field: str) -> bool:
    """Tell whether a call asks the executor for the channel, or makes that of etcd."""
    starts = [ast.FieldObject(package(tree, folder), "Cluster", "Start") for folder in (CLUSTER, CONFIG)]
    asked = ast.PackageObject(package(tree, EXECUTOR), f"{field}Chan")
    return tree.calls(path, call) in ([asked, *starts] if field == "ETCDReady" else [asked])


def _is_stored(tree: Tree, path: str, whole: ast.FuncDecl, local: ast.LocalObject) -> bool:
    """Tell whether a local gets another value after its declaration, or somebody who could give it one."""
    stored = set()
    for node in walk(whole):
        match node:
            case ast.Assign(lhs=lhs):
                stored |= {left.span for left in lhs}
            case ast.Unary(op="&", x=x):
                stored.add(x.span)
            case _:
                pass
    uses = names_in(tree, path, whole.span, local.name)
    return any(use.object == local and use.span != local.at and use.span in stored for use in uses)


def _values(tree: Tree, path: str, whole: ast.FuncDecl, at: Span) -> Iterator[tuple[str, ast.Expr]]:
    """Yield the value that a local is declared with; of several results of a call, the first alone is known."""
    for node in trail(whole, at):
        match node:
            case ast.Assign(op=":=", lhs=names, rhs=values) | ast.VarSpec(names=names, values=values):
                index = next((place for place, name in enumerate(names) if name.span == at), len(values))
                if index < len(values) and (len(names) == len(values) or index == 0):
                    yield path, values[index]
            case _:
                pass


def _arguments(tree: Tree, path: str, whole: ast.FuncDecl, at: Span) -> Iterator[tuple[str, ast.Expr]]:
    """Yield what the calls of a function give to one of its parameters, and the function where it is no call."""
    names = [name for param in whole.params for name in param.names]
    index = next((place for place, name in enumerate(names) if name.span == at), None)
    if index is None or whole.receiver is not None:
        return
    for use in uses_of(tree, ast.PackageObject(tree.package_of(path), whole.name)):
        call = tree.call_at(use.path, use.qualified) if use.role == "call" else None
        known = call is not None and index < len(call.args)
        yield use.path, call.args[index] if call is not None and known else ast.Ident(use.span, use.name)
