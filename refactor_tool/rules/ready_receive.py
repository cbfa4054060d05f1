"""L01: waiting for readiness without waiting for the end of the context too."""

from __future__ import annotations

import re
from collections.abc import Iterator

from refactor_tool.gosrc.tree import Tree
from refactor_tool.model import Finding, Severity, Span
from refactor_tool.rule import Example, Rule
from refactor_tool.rules._code import Site, hazard
from refactor_tool.rules._ready import bare_receives, is_executor_method
from refactor_tool.rules._select import select_with_context

_DONE_CALL = re.compile(rb"^[ \t]*(?:defer )?[\w.]+\.Done\(\)", re.MULTILINE)


def _find(tree: Tree) -> Iterator[Finding]:
    for found in bare_receives(tree):
        where, severity = _where(tree, found.site)
        message = f"waits for {found.channel} alone: {where} when the context ends first"
        verdict = select_with_context(tree, found)
        yield hazard("L01", found.site, found.receive.span, message, verdict, "receive", severity)


def _where(tree: Tree, site: Site) -> tuple[str, Severity]:
    if site.function is site.decl and is_executor_method(tree, site.path, site.decl):
        return "start-up hangs", "error"
    if site.function.body is not None and _is_waited_for(tree.data(site.path), site.function.body.span):
        return "shutdown waits for this goroutine for ever", "error"
    return "the goroutine stays for ever", "warning"


def _is_waited_for(data: bytes, body: Span) -> bool:
    # the plain search first: a function may have thousands of receives
    return data.find(b".Done()", *body) >= 0 and _DONE_CALL.search(data, *body) is not None


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
