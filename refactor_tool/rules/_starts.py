"""The order in which the parts of a node are started, as far as it can be read from the start functions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from refactor_tool.gosrc import ast
from refactor_tool.gosrc.tree import Tree
from refactor_tool.gosrc.walk import Node, children, name_of
from refactor_tool.model import Span
from refactor_tool.record import record
from refactor_tool.rules._ready import START_METHODS, in_executor

#: The functions whose order matters: folder and name. They are looked into where one calls another, and so are their
#: folders' other functions.
ENTRIES = (
    ("pkg/agent", "run"),
    ("pkg/cli/server", "run"),
    ("pkg/server", "StartServer"),
    ("pkg/daemons/control", "Server"),
)
FOLDERS = frozenset({*(folder for folder, _ in ENTRIES), "pkg/daemons/agent"})
#: What starts something or waits for it, beside the executor's functions: the end of its package and its name.
_LISTED = frozenset(
    {
        ("pkg/agent", "Run"),
        ("pkg/agent", "RunStandalone"),
        ("pkg/agent/config", "Get"),
        ("pkg/agent/config", "KubeProxyDisabled"),
        ("pkg/agent/flannel", "Run"),
        ("pkg/agent/netpol", "Run"),
        ("pkg/agent/tunnel", "Setup"),
        ("pkg/certmonitor", "Setup"),
        ("pkg/daemons/agent", "Agent"),
        ("pkg/daemons/control", "Prepare"),
        ("pkg/daemons/control", "Server"),
        ("pkg/server", "StartServer"),
    }
)
_WAITS = re.compile(r"WaitFor\w+|waitFor\w+")
_DEPTH = 4


@record
class Start:
    """One start or wait: its name, whether a goroutine does it, and where the entry function causes it."""

    name: str
    detached: bool
    place: Span


def starts(tree: Tree, path: str, decl: ast.FuncDecl) -> tuple[Start, ...]:
    """Return what a function starts and waits for, itself or through what it calls, in the order it stands there."""
    return tuple(_starts(tree, path, tree.function(path, decl), None, False, (decl.name,)))


def _starts(
    tree: Tree, path: str, decl: ast.FuncDecl, place: Span | None, detached: bool, way: tuple[str, ...]
) -> Iterator[Start]:
    for step in _steps(decl):
        where, apart = place or step.node.span, detached or step.detached
        if isinstance(step.node, ast.For):
            yield Start("StartupHooks", apart, where)
            continue
        found = tree.calls(path, step.node)
        name = _listed(tree, found, name_of(step.node), step.launched)
        if name is not None:
            yield Start(name, apart, where)
        inner = _inside(tree, found)
        if inner is not None and len(way) < _DEPTH and inner[1].name not in way:
            where_in, callee = inner
            deeper = (*way, callee.name)
            yield from _starts(tree, where_in, tree.function(where_in, callee), where, apart or step.launched, deeper)


@record
class _Step:
    """A call, or a loop over start-up hooks.

    `detached` is what a goroutine does, `launched` the call of a go statement, which the function makes itself.
    """

    node: ast.Call | ast.For
    detached: bool
    launched: bool = False


def _steps(node: Node, detached: bool = False) -> Iterator[_Step]:
    """Yield the steps below a node in the order they stand."""
    match node:
        case ast.Go(call=ast.Call() as call):
            yield _Step(call, detached, launched=True)
            for child in children(call):
                yield from _steps(child, True)
            return
        case ast.Call():
            yield _Step(node, detached)
        case ast.For(exprs=exprs) if any(_is_hooks(expr) for expr in exprs):
            yield _Step(node, detached)
        case _:
            pass
    for child in children(node):
        yield from _steps(child, detached)


def _is_hooks(expr: ast.Expr) -> bool:
    return isinstance(expr, ast.Selector) and expr.name == "StartupHooks"


def _listed(tree: Tree, found: ast.Object, name: str, launched: bool) -> str | None:
    if in_executor(found) and (name in START_METHODS or name.endswith("ReadyChan")):
        return f"executor.{name}"
    if isinstance(found, ast.PackageObject):
        folder = found.package.rpartition("/pkg/")[2]
        if (f"pkg/{folder}", name) in _LISTED:
            return f"{folder.rpartition('/')[2]}.{name}"
        if _WAITS.fullmatch(name) or (launched and _is_looked_into(tree, found)):
            return name
    return None


def _inside(tree: Tree, found: ast.Object) -> tuple[str, ast.FuncDecl] | None:
    """Return the declaration of a function that is looked into; another entry speaks for itself."""
    if not isinstance(found, ast.PackageObject) or not _is_looked_into(tree, found):
        return None
    if (found.package.removeprefix(f"{tree.module}/"), found.name) in ENTRIES:
        return None
    known = tree.functions(found.package, found.name)
    return next((item for item in known if item[1].body_span is not None), None)


def _is_looked_into(tree: Tree, found: ast.PackageObject) -> bool:
    return found.package.removeprefix(f"{tree.module}/") in FOLDERS
