"""L06: asking for readiness before there is an executor."""

from __future__ import annotations

import re
from collections.abc import Iterator

from refactor_tool.gosrc import ast
from refactor_tool.gosrc.tree import Tree
from refactor_tool.model import Edit, Finding, Manual, Rewrite, Span
from refactor_tool.record import record
from refactor_tool.rule import Example, Rule
from refactor_tool.rules import _fix
from refactor_tool.rules._code import by_hand, hazard, site_at, sites, sources

#: A function that only passes a call on to the same name of something, with or without a test of that for nil.
_FORWARDS = re.compile(
    rb"\nfunc (?:\([^)\n]*\) )?(\w+)\([^\n]*\{\r?\n"
    rb"(?:(\tif ([\w.]+) == nil \{\r?\n\t\t[^\n]*\r?\n\t\}\r?\n))?"
    rb"\t(?:return )?([\w.]+)\.(\w+)\([^\n]*\r?\n\}"
)
#: How many siblings with the test make its absence an oversight.
_MAJORITY = 3


def _find(tree: Tree) -> Iterator[Finding]:
    yield from _nil_channels(tree)
    for path in sources(tree, b" == nil {"):
        yield from _unguarded(tree, path)


def _nil_channels(tree: Tree) -> Iterator[Finding]:
    for site in sites(tree, b"return nil", in_file=(b"ReadyChan() ",), keep=_in_accessor):
        decl, node = site.decl, site.nearest(ast.Return)
        if site.function is not decl or not decl.name.endswith("ReadyChan") or not isinstance(node, ast.Return):
            continue
        if [isinstance(param.type, ast.ChanType) for param in decl.results] == [True]:
            message = f"{decl.name} gives out a nil channel, and who receives from it waits for ever"
            text = f'panic("{decl.name} asked before there is an executor")'
            verdict = Rewrite((_fix.statement(tree, site.path, node.span, text),))
            yield hazard("L06", site, node.span, message, verdict, "nil-channel")


def _in_accessor(data: bytes, at: int) -> bool:
    start = data.rfind(b"\nfunc ", 0, at)
    return b"ReadyChan(" in data[start : data.find(b"\n", start + 1)]


@record
class Forwarder:
    """A function that passes a call on: what it is passed to, the test for nil or b"", and where the call stands."""

    target: bytes
    guard: bytes
    call: Span


def _forwarders(data: bytes) -> list[Forwarder]:
    return [
        Forwarder(found.group(4), found.group(2) or b"", Span(*found.span(4)))
        for found in _FORWARDS.finditer(data)
        if found.group(1) == found.group(5) and (found.group(3) is None or found.group(3) == found.group(4))
    ]


def _unguarded(tree: Tree, path: str) -> Iterator[Finding]:
    """Find the few forwarders of a file that lack the test for nil that their siblings have."""
    found = _forwarders(tree.data(path))
    for target in sorted({one.target for one in found if one.guard}):
        siblings = [one for one in found if one.target == target]
        lacking = [one for one in siblings if not one.guard]
        guarded = [one for one in siblings if one.guard]
        if len(guarded) < _MAJORITY or len(guarded) < _MAJORITY * len(lacking):
            continue
        for one in lacking:
            decl = tree.function_at(path, one.call.start)
            site = site_at(path, tree.function(path, decl), one.call) if decl is not None else None
            stmt = site.nearest(ast.Return, ast.ExprStmt) if site is not None else None
            if site is not None and stmt is not None:
                name = target.decode()
                message = (
                    f"{site.decl.name} does not test {name} for nil as its siblings do: it panics without a reason"
                )
                verdict = _guarded(tree, path, site.decl, guarded, stmt.span)
                yield hazard("L06", site, stmt.span, message, verdict, "no-guard")


def _guarded(tree: Tree, path: str, decl: ast.FuncDecl, siblings: list[Forwarder], call: Span) -> Rewrite | Manual:
    """Put the test of a sibling with the same results before the call."""
    for sibling in siblings:
        other = tree.function_at(path, sibling.call.start)
        if other is not None and _results(tree, path, other) == _results(tree, path, decl):
            text = sibling.guard.lstrip() + tree.indent(path, call.start).encode()
            return Rewrite((Edit(path, Span(call.start, call.start), text),))
    return by_hand("no sibling has the same results", "test for nil first and return an error as the siblings do")


def _results(tree: Tree, path: str, decl: ast.FuncDecl) -> str:
    return tree.text(path, decl.results_span) if decl.results_span is not None else ""


NIL_READY_ACCESSOR = Rule(
    id="L06",
    name="nil-ready-accessor",
    severity="error",
    summary="What forwards to the executor gives out a nil channel, or forgets that there may be no executor yet.",
    why="""
A receive from a nil channel blocks for ever, without a message: whoever asked too early hangs, and so does the
start-up. And where all but one of the functions that forward to a variable test it for nil, the one that does not ends
the process with a nil pointer instead of the error that says what is wrong.
""",
    cases=(24,),
    fix="a panic that says what was asked too early; the test for nil that the siblings have",
    bad=(
        Example(
            "one accessor hands out nil, and one start function has no test",
            """package executor

import "context"

func Kubelet(ctx context.Context) error {
	if executor == nil {
		return ErrNotInitialized
	}
	return executor.Kubelet(ctx)
}

func Docker(ctx context.Context) error {
	if executor == nil {
		return ErrNotInitialized
	}
	return executor.Docker(ctx)
}

func CNI(ctx context.Context) error {
	return executor.CNI(ctx) // hazard
}

func CRIReadyChan() <-chan struct{} {
	if executor == nil {
		return nil // hazard
	}
	return executor.CRIReadyChan()
}
""",
            fixed="""package executor

import "context"

func Kubelet(ctx context.Context) error {
	if executor == nil {
		return ErrNotInitialized
	}
	return executor.Kubelet(ctx)
}

func Docker(ctx context.Context) error {
	if executor == nil {
		return ErrNotInitialized
	}
	return executor.Docker(ctx)
}

func CNI(ctx context.Context) error {
	if executor == nil {
		return ErrNotInitialized
	}
	return executor.CNI(ctx)
}

func CRIReadyChan() <-chan struct{} {
	if executor == nil {
		panic("CRIReadyChan asked before there is an executor")
	}
	return executor.CRIReadyChan()
}
""",
            path="pkg/daemons/executor/executor.go",
        ),
    ),
    good=(
        Example(
            "no function has a test, or each of them",
            """package executor

import "context"

func Kubelet(ctx context.Context) error {
	return executor.Kubelet(ctx)
}

func Docker(ctx context.Context) error {
	return executor.Docker(ctx)
}

func CNI(ctx context.Context) error {
	if network == nil {
		return ErrNotInitialized
	}
	return network.CNI(ctx)
}

func CRIReadyChan() <-chan struct{} {
	if executor == nil {
		panic("executor not bootstrapped")
	}
	return executor.CRIReadyChan()
}
""",
            path="pkg/daemons/executor/executor.go",
        ),
    ),
    find=_find,
)
