"""L01: waiting for readiness without waiting for the end of the context too."""

from __future__ import annotations

import re
from collections.abc import Iterator

from refactor_tool.gosrc import ast
from refactor_tool.gosrc.tree import Tree
from refactor_tool.model import Finding, Manual, Rewrite, Severity
from refactor_tool.rule import Example, Rule
from refactor_tool.rules import _fix
from refactor_tool.rules._code import Site, by_hand, hazard, sites
from refactor_tool.rules._flow import received
from refactor_tool.rules._ready import deferred_close, is_executor_method, ready_channel

_DONE_CALL = re.compile(rb"^[ \t]*(?:defer )?[\w.]+\.Done\(\)", re.MULTILINE)
_SAME_LINE_DONE = re.compile(rb"<-[ \t]*[\w.]*\.Done\(\)")


def _find(tree: Tree) -> Iterator[Finding]:
    for site in sites(tree, b"<-", in_file=(b"eady",), keep=_may_wait):
        receive = site.inside[-1] if site.inside else None
        if not isinstance(receive, ast.Unary) or receive.op != "<-" or _is_bounded(tree, site):
            continue
        channel = ready_channel(tree, site.path, receive.x)
        if channel is not None:
            where, severity = _where(tree, site)
            message = f"waits for {channel} alone: {where} when the context ends first"
            yield hazard("L01", site, receive.span, message, _fixed(tree, site, receive, channel), "receive", severity)


def _may_wait(data: bytes, at: int) -> bool:
    return (
        not data.startswith(b"<-chan", at) and _SAME_LINE_DONE.match(data, at) is None and data[at - 4 : at] != b"chan"
    )


def _is_bounded(tree: Tree, site: Site) -> bool:
    """Tell whether the receive is a case of a select that something else than readiness can end."""
    case, select = site.nearest(ast.Case), site.nearest(ast.Select)
    if not isinstance(case, ast.Case) or not isinstance(select, ast.Select):
        return False
    if case.comm is None or not case.comm.span.contains(site.span):
        return False
    channels = [received(other.comm) for other in select.cases]
    return any(channel is None or ready_channel(tree, site.path, channel) is None for channel in channels)


def _where(tree: Tree, site: Site) -> tuple[str, Severity]:
    body = site.function.body
    if site.function is site.decl and is_executor_method(tree, site.path, site.decl):
        return "start-up hangs", "error"
    if body is not None and _DONE_CALL.search(tree.data(site.path), body.span.start, body.span.end):
        return "shutdown waits for this goroutine for ever", "error"
    return "the goroutine stays for ever", "warning"


def _fixed(tree: Tree, site: Site, receive: ast.Unary, channel: str) -> Rewrite | Manual:
    wanted = f"wait in a select with a case for the end of the context, which must leave and not report {channel}"
    parent = site.inside[-2] if len(site.inside) > 1 else None
    if not isinstance(parent, ast.ExprStmt) or isinstance(site.nearest(ast.Select), ast.Select):
        return by_hand("what is received is part of another statement", wanted)
    ctx = _fix.context_at(tree, site)
    if ctx is None:
        return by_hand("no context is at hand", f"pass one in; {wanted}")
    leave = _fix.leave(site.function, f"{ctx}.Err()")
    if leave is None:
        return by_hand("what the function would have to return is not known", wanted)
    close = deferred_close(tree, site)
    if close is not None:
        return by_hand(f"leaving would close {close}, as if it were ready", f"close {close} on success only; {wanted}")
    lines = ("select {", f"case <-{ctx}.Done():", f"\t{leave}", f"case <-{channel}:", "}")
    return Rewrite((_fix.statement(tree, site.path, parent.span, *lines),))


READY_RECV_NO_CTX = Rule(
    id="L01",
    name="ready-recv-no-ctx",
    severity="error",
    summary="A bare receive waits for a readiness channel and for nothing else.",
    why="""
Readiness may never come: the component fails, or the node is told to stop first. A goroutine that only receives stays
for ever, and with it everything that waits for the goroutine. On the way through the start methods of an executor the
whole start-up hangs. It is an error there, and in a goroutine that a WaitGroup waits for; elsewhere a warning.
""",
    cases=(3, 39, 42),
    fix="a select with a case for the end of the context that leaves the function",
    bad=(
        Example(
            "shutdown waits for a goroutine that waits for an apiserver which will not come",
            """package control

import (
	"context"
	"sync"

	"example.com/k/pkg/daemons/executor"
)

func watch(ctx context.Context, wg *sync.WaitGroup) {
	go func() {
		defer wg.Done()
		<-executor.APIServerReadyChan() // hazard
		run(ctx)
	}()
}
""",
            fixed="""package control

import (
	"context"
	"sync"

	"example.com/k/pkg/daemons/executor"
)

func watch(ctx context.Context, wg *sync.WaitGroup) {
	go func() {
		defer wg.Done()
		select {
		case <-ctx.Done():
			return
		case <-executor.APIServerReadyChan():
		}
		run(ctx)
	}()
}
""",
        ),
        Example(
            "the channel has another name here, but a caller passes the readiness of etcd",
            """package control

func after(signal <-chan struct{}, start func() error) {
	go func() {
		<-signal // hazard
		start()
	}()
}

func (s *staticPods) APIServer(start func() error) {
	after(s.ETCDReadyChan(), start)
}
""",
        ),
    ),
    good=(
        Example(
            "the context ends the wait",
            """package control

import (
	"context"

	"example.com/k/pkg/daemons/executor"
)

func watch(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-executor.APIServerReadyChan():
	}
	return run(ctx)
}
""",
        ),
        Example(
            "a receive of something else",
            """package control

import "context"

func watch(ctx context.Context, alreadyDone chan struct{}, ready chan bool) {
	<-alreadyDone
	<-ready
	<-ctx.Done()
}
""",
        ),
    ),
    find=_find,
)
