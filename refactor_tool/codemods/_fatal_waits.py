"""Waits that end the process where they fail, also if they fail because it shuts down."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from refactor_tool.codemod import Template
from refactor_tool.codemods import _shapes
from refactor_tool.codemods._k3s import CONTROL, EXECUTOR, TUNNEL, is_test, package
from refactor_tool.gosrc import ast, layout
from refactor_tool.gosrc.tree import Occurrence, Tree
from refactor_tool.gosrc.walk import functions_at, trail, walk
from refactor_tool.model import Edit, Leave, Manual, Rewrite, Verdict

#: The waits, and the anchors of their sites.
FATAL = {"WaitForRBACReady": "tunnel-rbac", "waitForUntaintedNode": "untainted-node", "APIServerHandlers": "handlers"}
ENDED = Template("cancel-safe-waits/ended.go.j2", ("ctx", "exit"))
CALLS = re.compile(rb"\b(?:" + "|".join(FATAL).encode() + rb")\b")


def fatal_waits(tree: Tree) -> Iterator[tuple[Occurrence, Verdict]]:
    """Yield the calls of such waits in the tunnel, the control plane and executors, and what becomes of each.

    Where a wait is fatal nowhere, the only call whose error is tested stands for its site.
    """
    executors = {
        package(tree, EXECUTOR),
        *(each.package for each in tree.implementers(package(tree, EXECUTOR), "Executor")),
    }
    mild: dict[str, list[Occurrence]] = {}
    fatal = set()
    for folder in sorted({package(tree, TUNNEL), package(tree, CONTROL), *executors}):
        for path in tree.package_files(folder):
            for use in tree.occurrences(path, CALLS) if not is_test(path) else ():
                guard = _guard(tree, use) if use.role == "call" else None
                if guard is not None and _is_fatal(tree, path, guard):
                    fatal.add(use.name)
                    yield use, _unless_ended(tree, path, guard)
                elif guard is not None:
                    mild.setdefault(use.name, []).append(use)
    for name, uses in mild.items():
        if name not in fatal and len(uses) == 1:
            yield uses[0], Leave("a failure of it does not end the process", done=True)


def _guard(tree: Tree, use: Occurrence) -> ast.If | None:
    """Return the `if` that tests the error of a call, in it or after it."""
    path = use.path
    decl = _shapes.whole_function(tree, path, use.span)
    for parent, node in pairwise(trail(decl, use.span) if decl is not None else ()):
        match node:
            case ast.If(init=ast.Assign() as init) if init.span.contains(use.span):
                return node
            case ast.Assign(lhs=(*_, ast.Ident(name=err))) if isinstance(parent, ast.Block):
                after = (stmt for stmt in parent.stmts[parent.stmts.index(node) + 1 :] if isinstance(stmt, ast.If))
                tests = (
                    stmt for stmt in after if any(isinstance(n, ast.Ident) and n.name == err for n in walk(stmt.cond))
                )
                return next(tests, None)
            case _:
                pass
    return None


def _is_fatal(tree: Tree, path: str, guard: ast.If) -> bool:
    return bool(guard.then.stmts) and _shapes.logs(tree, path, guard.then.stmts[-1]).startswith("Fatal")


def _unless_ended(tree: Tree, path: str, guard: ast.If) -> Verdict:
    """Leave the function at the start of a guard where the context has ended."""
    first = guard.then.stmts[0]
    by_hand = "return where the context has ended, and be fatal only otherwise"
    line = tree.line_text(path, guard.span.start)
    match first:
        case ast.If(cond=ast.Binary(op="!=", x=ast.Call(fun=ast.Selector(name="Err")))):
            return Leave("not fatal where the context has ended already", done=True)
        case _:
            pass
    decl = _shapes.whole_function(tree, path, first.span)
    function = functions_at(decl, first.span)[-1] if decl is not None else None
    ctx = _shapes.context_at(tree, path, decl, first.span) if decl is not None else None
    leave = _shapes.exit_of(function) if function is not None else None
    if function is None or ctx is None or leave is None:
        return Manual(f"{line!r} is fatal where no context is at hand, or more than an error is returned", by_hand)
    above = _shapes.comment_above(tree, path, first.span)
    at = layout.insert_before_line(tree, path, above.start if above is not None else first.span.start)
    text = ENDED.filled({"ctx": ctx, "exit": leave}, tree.indent(path, first.span.start), lines=True)
    return Rewrite((Edit(path, at, text),))
