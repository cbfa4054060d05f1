"""Waits that would last for ever, since what ends them is started only after them.

The poll for the apiserver ran beside the server before; now the executor's Bootstrap starts it, which the agent calls
once the server has been started. A wait that the server's start itself waits for must not become one for the channel.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

from refactor_tool.codemods._k3s import EXECUTOR, is_test, package
from refactor_tool.codemods._shapes import whole_function
from refactor_tool.gosrc import ast
from refactor_tool.gosrc.tree import Occurrence, Tree
from refactor_tool.gosrc.walk import name_of, trail, walk
from refactor_tool.gosrc.words import word_places
from refactor_tool.model import Manual, Span

#: Functions of one package on the way to Bootstrap; more are not followed.
_MOST_FUNCTIONS = 50
_TO_DO = "wait in a goroutine, or after the executor's Bootstrap, which is what starts the poll"


def endless(tree: Tree, path: str, place: Span) -> Manual | None:
    """Return why a wait at a place cannot end, None where it stands in a goroutine or nothing shows that it cannot.

    Callers are followed as long as they wait for what they call, up to one that leads to Bootstrap only afterwards.
    """
    waiting, seen = [(path, place)], {(path, place)}
    leading: Set[ast.PackageObject] = frozenset()
    while waiting:
        where, span = waiting.pop()
        decl = whole_function(tree, where, span)
        if decl is None or _is_beside(decl, span):
            continue
        leading = leading or _leading(tree)  # only now, since most waits stand in a goroutine
        before, after = _around(tree, where, decl, span, leading)
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


def _around(
    tree: Tree, path: str, decl: ast.FuncDecl, span: Span, leading: Set[ast.PackageObject]
) -> tuple[list[ast.Call], list[ast.Call]]:
    """Return the calls of what leads to Bootstrap before and after a place of a function."""
    names = {found.name for found in leading}
    calls = [node for node in walk(decl) if isinstance(node, ast.Call) and not node.span.contains(span)]
    # what a call calls is asked last, which is what takes time
    found = [call for call in calls if name_of(call) in names and tree.calls(path, call) in leading]
    return [call for call in found if call.span.end <= span.start], [
        call for call in found if call.span.start >= span.end
    ]


def _leading(tree: Tree) -> set[ast.PackageObject]:
    """Return the executor's Bootstrap and the functions that call it, themselves or through others of their package."""
    bootstrap = ast.PackageObject(package(tree, EXECUTOR), "Bootstrap")
    out = {bootstrap}
    paths = [path for path in tree.files_with(b"executor.Bootstrap(") if not is_test(path)]
    for owner in {tree.package_of(path) for path in paths}:
        names, new = set[str](), {"executor.Bootstrap"}
        while new and len(names) < _MOST_FUNCTIONS:
            new = {decl.name for name in new for decl in _calling(tree, owner, name.encode())} - names
            names |= new
        out |= {ast.PackageObject(owner, name) for name in names}
    return out


def _calling(tree: Tree, owner: str, name: bytes) -> Iterator[ast.FuncDecl]:
    """Yield the functions of a package that call another by its name, methods and tests aside."""
    for path in (each for each in tree.package_files(owner) if not is_test(each)):
        data = tree.data(path)
        for place in word_places(data, name):
            if data.startswith(b"(", place.end) and not data.startswith(b".", place.start - 1):
                decl = tree.function_at(path, place.start)
                if decl is not None and decl.receiver is None and decl.name_span != place:
                    yield decl


def _callers(tree: Tree, path: str, decl: ast.FuncDecl) -> Iterator[Occurrence]:
    own = tree.package_of(path)
    target = ast.FieldObject(own, decl.receiver_type, decl.name) if decl.receiver else ast.PackageObject(own, decl.name)
    paths = None if decl.name[:1].isupper() else tree.package_files(own)
    return (use for use in tree.callers(target, paths) if use.role == "call")
