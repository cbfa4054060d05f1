"""Waits that would last for ever, since what ends them is started only after them.

The poll for the apiserver ran beside the server before; now the executor's Bootstrap starts it, which the agent calls
once the server has been started. A wait that the server's start itself waits for must not become one for the channel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from refactor_tool.codemods._k3s import EXECUTOR, package
from refactor_tool.codemods._shapes import whole_function
from refactor_tool.gosrc import ast
from refactor_tool.gosrc.tree import Occurrence, Tree
from refactor_tool.gosrc.walk import trail, walk
from refactor_tool.model import Manual, Span

_BOOTSTRAPS = re.compile(rb"\bexecutor\.Bootstrap\(")
_CALLED = re.compile(rb"\b([A-Za-z_]\w*)\(")
#: How many functions of its own package a function may call on the way to Bootstrap.
_MOST_STEPS = 3
_TO_DO = "wait in a goroutine, or after the executor's Bootstrap, which is what starts the poll"


def endless(tree: Tree, path: str, place: Span) -> Manual | None:
    """Return why a wait at a place cannot end, None where it stands in a goroutine or nothing shows that it cannot.

    Callers are followed as long as they wait for what they call, up to one that leads to Bootstrap only afterwards.
    """
    waiting, seen = [(path, place)], {(path, place)}
    while waiting:
        where, span = waiting.pop()
        decl = whole_function(tree, where, span)
        if decl is None or _is_beside(decl, span):
            continue
        before, after = _around(tree, where, decl, span)
        if before:
            continue
        if after:
            called = tree.text(where, after[0].fun.span)
            return Manual(
                f"this wait never ends: {decl.title} bootstraps the executor only after it ({called})", _TO_DO
            )
        callers = {(use.path, use.qualified) for use in _callers(tree, where, decl)} - seen
        seen |= callers
        waiting += sorted(callers)
    return None


def _is_beside(decl: ast.FuncDecl, span: Span) -> bool:
    """Tell whether a function does not wait for what stands at a place: in a goroutine, a deferred call, a literal."""
    return any(isinstance(node, ast.Go | ast.Defer | ast.FuncLit) for node in trail(decl, span))


def _around(tree: Tree, path: str, decl: ast.FuncDecl, span: Span) -> tuple[list[ast.Call], list[ast.Call]]:
    """Return the calls that lead to Bootstrap before and after a place of a function."""
    calls = [node for node in walk(decl) if isinstance(node, ast.Call) and not node.span.contains(span)]
    leading = [call for call in calls if _leads(tree, path, call)]
    return [call for call in leading if call.span.end <= span.start], [
        call for call in leading if call.span.start >= span.end
    ]


def _leads(tree: Tree, path: str, call: ast.Call) -> bool:
    match tree.calls(path, call):
        case ast.PackageObject(package=owner, name="Bootstrap") if owner == package(tree, EXECUTOR):
            return True
        case ast.PackageObject(package=owner, name=name):
            return owner in _bootstrapping(tree) and _reaches(tree, owner, name, _MOST_STEPS)
        case _:
            return False


def _bootstrapping(tree: Tree) -> frozenset[str]:
    """Return the packages whose code, tests aside, calls the executor's Bootstrap."""
    paths = tree.files_with(b"executor.Bootstrap(")
    return frozenset(tree.package_of(path) for path in paths if not path.endswith("_test.go"))


def _reaches(tree: Tree, owner: str, name: str, steps: int) -> bool:
    """Tell whether a function calls Bootstrap, itself or through others of its package."""
    for path, decl in tree.functions(owner, name):
        data = tree.data(path)
        if _BOOTSTRAPS.search(data, decl.signature.end, decl.span.end):
            return True
        names = {found.decode() for found in _CALLED.findall(data, decl.signature.end, decl.span.end)} - {name}
        if steps and any(_reaches(tree, owner, called, steps - 1) for called in sorted(names)):
            return True
    return False


def _callers(tree: Tree, path: str, decl: ast.FuncDecl) -> Iterator[Occurrence]:
    own = tree.package_of(path)
    target = ast.FieldObject(own, decl.receiver_type, decl.name) if decl.receiver else ast.PackageObject(own, decl.name)
    paths = None if decl.name[:1].isupper() else tree.package_files(own)
    return (use for use in tree.callers(target, paths) if use.role == "call")
