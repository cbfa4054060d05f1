"""The fix for a wait that only readiness ends."""

from __future__ import annotations

from refactor_tool.gosrc import ast
from refactor_tool.gosrc.tree import Tree
from refactor_tool.model import Manual, Rewrite
from refactor_tool.rules import _fix
from refactor_tool.rules._code import by_hand
from refactor_tool.rules._ready import BareReceive


def select_with_context(tree: Tree, found: BareReceive) -> Rewrite | Manual:
    """Make a bare receive a select that also ends with the context and leaves the function then."""
    site, channel = found.site, found.channel
    wanted = f"wait in a select with a case for the end of the context, which must leave and not report {channel}"
    parent = site.inside[-2] if len(site.inside) > 1 else None
    if not isinstance(parent, ast.ExprStmt) or _is_case(site.inside[-3:-2], parent):
        return by_hand("what is received is part of another statement", wanted)
    ctx = _fix.context_at(tree, site)
    if ctx is None:
        return by_hand("no context is at hand", f"pass one in; {wanted}")
    leave = _fix.way_out(tree, site, f"{ctx}.Err()", wanted)
    if isinstance(leave, Manual):
        return leave
    lines = ("select {", f"case <-{ctx}.Done():", f"\t{leave}", f"case <-{channel}:", "}")
    return Rewrite((_fix.statement(tree, site.path, parent.span, *lines),))


def _is_case(around: tuple[object, ...], stmt: ast.ExprStmt) -> bool:
    return any(isinstance(node, ast.Case) and node.comm is stmt for node in around)
