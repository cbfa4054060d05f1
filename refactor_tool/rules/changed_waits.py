"""D1 and D2: changes that take something away from a loop or a wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from refactor_tool.gosrc import ast
from refactor_tool.gosrc.tree import Tree
from refactor_tool.gosrc.walk import Node, children, name_of, walk
from refactor_tool.model import Finding, Span
from refactor_tool.rule import Example, Rule
from refactor_tool.rules._changes import changed_functions, function_key
from refactor_tool.rules._code import by_hand, hazard, site_at
from refactor_tool.rules._flow import ends_with_context
from refactor_tool.rules._ready import BareReceive, bare_receives, is_wait
from refactor_tool.rules._select import select_with_context

# --- D1 ---------------------------------------------------------------------------------------------


def _continue_to_return(before: Tree, after: Tree) -> Iterator[Finding]:
    for changed in changed_functions(before, after, b"continue"):
        old, new = _loops(before, changed.old_path, changed.old), _loops(after, changed.new_path, changed.new)
        for header in old.keys() & new.keys():
            for was, now in zip(old[header], new[header], strict=False):
                found = _turned(was, now)
                site = site_at(changed.new_path, changed.new, found.span) if found is not None else None
                if site is not None and found is not None:
                    message = (
                        "the loop went on here before the change, and now the function ends: later rounds are lost"
                    )
                    verdict = by_hand("a return in a loop ends all of it", "write continue, if only this round is done")
                    yield hazard("D1", site, found.span, message, verdict, "loop-ends")


def _loops(tree: Tree, path: str, decl: ast.FuncDecl) -> dict[str, list[ast.For]]:
    """Return a function's loops by what they run over, in order."""
    out: dict[str, list[ast.For]] = {}
    for node in walk(decl):
        if isinstance(node, ast.For):
            out.setdefault(" ".join(tree.text(path, node.header).split()), []).append(node)
    return out


def _turned(was: ast.For, now: ast.For) -> ast.Return | None:
    """Return a return that took the place of a continue; None where not fewer of these and more of those are there."""
    old, new = list(_in_loop(was)), list(_in_loop(now))
    fewer = _count(new, ast.Branch) < _count(old, ast.Branch)
    if not fewer or _count(new, ast.Return) <= _count(old, ast.Return):
        return None
    return next(node for node in reversed(new) if isinstance(node, ast.Return))


def _count(nodes: list[ast.Branch | ast.Return], kind: type[ast.Branch | ast.Return]) -> int:
    return sum(isinstance(node, kind) for node in nodes)


def _in_loop(node: Node) -> Iterator[ast.Branch | ast.Return]:
    """Yield the continues and returns of a loop's own rounds, those of loops and functions in it left out."""
    for child in children(node):
        if isinstance(child, ast.Return) or (isinstance(child, ast.Branch) and child.keyword == "continue"):
            yield child
        elif not isinstance(child, ast.For | ast.FuncLit):
            yield from _in_loop(child)


# --- D2 ---------------------------------------------------------------------------------------------


def _select_to_receive(before: Tree, after: Tree) -> Iterator[Finding]:
    changes = [*changed_functions(before, after, b"Done()"), *changed_functions(before, after, b"aitFor")]
    lost = {
        (change.new_path, change.new.span): change
        for change in changes
        if _bounded_waits(before, change.old_path, change.old) > _bounded_waits(after, change.new_path, change.new)
    }
    if not lost:
        return
    old = Counter(
        function_key(found.site.path, found.site.decl) for found in bare_receives(before, {c.old_path for c in changes})
    )
    new: dict[tuple[str, Span], list[BareReceive]] = {}
    for found in bare_receives(after, {path for path, _ in lost}):
        new.setdefault((found.site.path, found.site.decl.span), []).append(found)
    for place, change in lost.items():
        receives = new.get(place, [])
        for found in receives[old[function_key(change.old_path, change.old)] :]:
            message = f"the wait ended with the context before the change; now {found.channel} alone ends it"
            verdict = select_with_context(after, found)
            yield hazard("D2", found.site, found.receive.span, message, verdict, "context-lost")


def _bounded_waits(tree: Tree, path: str, decl: ast.FuncDecl) -> int:
    """Count what waits in a function and ends with a context: selects with a case for it, and calls that wait."""
    return sum(
        any(ends_with_context(case) for case in node.cases)
        if isinstance(node, ast.Select)
        else isinstance(node, ast.Call) and name_of(node).startswith("WaitFor") and is_wait(tree, path, node)
        for node in walk(decl)
    )


CONTINUE_TO_RETURN = Rule(
    id="D1",
    name="continue-to-return",
    severity="error",
    summary="A change turned a continue of a loop into a return.",
    why="""
When the body of a loop becomes a function, its continues become returns. In a loop inside that body they must not: the
first member that is skipped ends the pass, and those after it are never looked at.
""",
    cases=(18,),
    bad=(
        Example(
            "the first voting member ends the promotion of learners",
            """package etcd

func (e *ETCD) manageLearners(members []Member) {
	every(func() {
		if !e.isLeader() {
			return
		}
		for _, member := range members {
			if !member.IsLearner {
				return // hazard
			}
			e.promote(member)
		}
	})
}
""",
            before="""package etcd

func (e *ETCD) manageLearners(members []Member) {
	for range e.ticks {
		if !e.isLeader() {
			continue
		}
		for _, member := range members {
			if !member.IsLearner {
				continue
			}
			e.promote(member)
		}
	}
}
""",
            path="pkg/etcd/etcd.go",
        ),
    ),
    good=(
        Example(
            "the loop that became a function is gone, and the one in it goes on",
            """package etcd

func (e *ETCD) manageLearners(members []Member) {
	every(func() {
		if !e.isLeader() {
			return
		}
		for _, member := range members {
			if !member.IsLearner {
				continue
			}
			e.promote(member)
		}
	})
}
""",
            before="""package etcd

func (e *ETCD) manageLearners(members []Member) {
	for range e.ticks {
		if !e.isLeader() {
			continue
		}
		for _, member := range members {
			if !member.IsLearner {
				continue
			}
			e.promote(member)
		}
	}
}
""",
            path="pkg/etcd/etcd.go",
        ),
    ),
    compare=_continue_to_return,
)

SELECT_TO_RECEIVE = Rule(
    id="D2",
    name="ctx-select-to-bare-recv",
    severity="error",
    summary="A change replaced a wait that ended with the context by a bare receive of readiness.",
    why="""
Moving a wait to the executor's channel is what upstream does; dropping the context with it is not meant. A shutdown
during start-up then leaves the goroutine behind, and whatever waits for it hangs.
""",
    cases=(3, 42),
    fix="the select that ends with the context comes back, with the new channel in it",
    bad=(
        Example(
            "the new channel came, and the context went",
            """package control

import (
	"context"

	"example.com/k/pkg/daemons/executor"
)

func scheduler(ctx context.Context, runtime *Runtime) {
	go func() {
		<-executor.APIServerReadyChan() // hazard
		run(ctx)
	}()
}
""",
            fixed="""package control

import (
	"context"

	"example.com/k/pkg/daemons/executor"
)

func scheduler(ctx context.Context, runtime *Runtime) {
	go func() {
		select {
		case <-ctx.Done():
			return
		case <-executor.APIServerReadyChan():
		}
		run(ctx)
	}()
}
""",
            before="""package control

import "context"

func scheduler(ctx context.Context, runtime *Runtime) {
	go func() {
		select {
		case <-ctx.Done():
			return
		case <-runtime.APIServerReady:
		}
		run(ctx)
	}()
}
""",
        ),
    ),
    good=(
        Example(
            "a bare receive that was one before",
            """package control

import (
	"context"

	"example.com/k/pkg/daemons/executor"
)

func scheduler(ctx context.Context, runtime *Runtime) {
	go func() {
		<-executor.APIServerReadyChan()
		run(ctx)
	}()
}
""",
            before="""package control

import "context"

func scheduler(ctx context.Context, runtime *Runtime) {
	go func() {
		<-runtime.APIServerReady
		run(ctx)
	}()
	select {
	case <-ctx.Done():
	case <-runtime.stopped:
	}
}
""",
        ),
    ),
    compare=_select_to_receive,
)
