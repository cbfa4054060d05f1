"""L22: state that is taken away from others when the node shuts down."""

from __future__ import annotations

import re
from collections.abc import Iterator

from refactor_tool.gosrc import ast, layout
from refactor_tool.gosrc.tree import Tree
from refactor_tool.model import Finding, Manual, Rewrite
from refactor_tool.rule import Example, Rule
from refactor_tool.rules._code import Site, by_hand, hazard, sites

_ENDED = re.compile(rb"<-[ \t]*[\w.]+\.Done\(\)")
_LOCKED = re.compile(rb"\.(?:R?Lock|Swap|Store)\(")


def _find(tree: Tree) -> Iterator[Finding]:
    for site in sites(tree, b" = nil", in_body=(b"go func",)):
        stmt = site.nearest(ast.Assign)
        if not isinstance(stmt, ast.Assign) or len(stmt.lhs) != 1 or not _is_shared(tree, site, stmt.lhs[0]):
            continue
        if not isinstance(site.function, ast.FuncLit) or not any(isinstance(node, ast.Go) for node in site.outer):
            continue
        earlier = tree.data(site.path)[site.function.body.span.start : stmt.span.start]
        if _ENDED.search(earlier) and not _LOCKED.search(earlier):
            name = tree.text(site.path, stmt.lhs[0].span)
            message = f"{name} is set to nil once the context has ended, while others may still use it"
            yield hazard("L22", site, stmt.span, message, _removed(tree, site, stmt, name), "nil-after-done")


def _is_shared(tree: Tree, site: Site, target: ast.Expr) -> bool:
    """Tell whether a target is a field of something that comes from outside the goroutine."""
    base = target
    while isinstance(base, ast.Selector):
        base = base.x
    if base is target or not isinstance(base, ast.Ident):
        return False
    found = tree.resolve(site.path, base)
    return not isinstance(found, ast.LocalObject) or not site.function.span.contains(found.at)


def _removed(tree: Tree, site: Site, stmt: ast.Assign, name: str) -> Rewrite | Manual:
    data = tree.data(site.path)
    lines = layout.whole_lines(data, stmt.span)
    if data[lines.start : lines.end].strip() != data[stmt.span.start : stmt.span.end]:
        return by_hand("the line holds something else too", f"delete the assignment to {name}; nothing needs it")
    return Rewrite((layout.remove_lines(tree, site.path, stmt.span),))


NIL_ON_CANCEL_FIELD = Rule(
    id="L22",
    name="nil-on-cancel-field",
    severity="error",
    summary="A goroutine sets a field to nil once the context has ended, without a lock.",
    why="""
Everything else learns of the shutdown at the same time and may be in the middle of using the field: what should be an
orderly end is a nil pointer panic. Closing what the field holds is enough; nobody needs the nil.
""",
    cases=(31,),
    fix="the assignment is deleted",
    bad=(
        Example(
            "a request for the client races with the shutdown",
            """package etcd

import "context"

func (e *ETCD) startClient(ctx context.Context) error {
	client, conn, err := dial(ctx)
	if err != nil {
		return err
	}
	e.client = client
	go func() {
		<-ctx.Done()
		e.client = nil // hazard
		conn.Close()
	}()
	return nil
}
""",
            fixed="""package etcd

import "context"

func (e *ETCD) startClient(ctx context.Context) error {
	client, conn, err := dial(ctx)
	if err != nil {
		return err
	}
	e.client = client
	go func() {
		<-ctx.Done()
		conn.Close()
	}()
	return nil
}
""",
            path="pkg/etcd/etcd.go",
        ),
    ),
    good=(
        Example(
            "a field of the goroutine's own, one that a lock guards, and one that is set before",
            """package etcd

import "context"

func (e *ETCD) startClient(ctx context.Context) {
	go func() {
		e.old = nil
		own := &state{}
		<-ctx.Done()
		own.client = nil
		e.mutex.Lock()
		e.client = nil
		e.mutex.Unlock()
	}()
}
""",
            path="pkg/etcd/etcd.go",
        ),
    ),
    find=_find,
)
