"""L02, L04 and L05: readiness that is reported though nothing is ready, more than once, or not at all."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from itertools import chain

from refactor_tool.gosrc import ast, layout
from refactor_tool.gosrc.tree import Tree
from refactor_tool.gosrc.walk import Function, Node, name_of, trail, walk
from refactor_tool.model import Edit, Finding, Manual, Rewrite, Span
from refactor_tool.record import record
from refactor_tool.rule import Example, Rule
from refactor_tool.rules._code import Site, by_hand, hazard, sites
from refactor_tool.rules._flow import before, ends_with_context, leaves, own, received, statements
from refactor_tool.rules._ready import START_METHODS, closed, in_executor, is_wait, ready_channel, says_ready

#: The type that owns a channel, for the examples.
_SIGNAL = """package util

type ReadySignal struct {
	ch chan struct{}
}

func (r *ReadySignal) Chan() <-chan struct{} { return r.ch }

func (r *ReadySignal) Close() {}

func (r *ReadySignal) CloseIfNil(err error) error { return err }
"""
_RETURNS_NIL = re.compile(r"\{\s*return nil\s*\}")
_HELPER = b"func CloseIfNilErr("
#: A variable is stored in a field.
_STORE = re.compile(rb"^[ \t]*[\w.]+\.(\w+) = (\S+)\r?$", re.MULTILINE)
#: How many statements before a close are looked at; each close is looked at alone, and a function may have thousands.
_STEPS_BACK = 100


@record
class Close:
    """A close of a readiness channel: the call, the channel as written, and the function that defers it, if any.

    What owns a channel and closes it with a method counts as the channel; such a call has no argument.
    """

    site: Site
    call: ast.Call
    channel: str
    deferred_by: Function | None


def _closes(tree: Tree) -> Iterator[Close]:
    """Yield every close of a readiness channel."""
    for site in sites(tree, b"close(", in_file=(b"eady",)):
        call = site.inside[-1] if site.inside else None
        channel = closed(call) if isinstance(call, ast.Call) else None
        name = ready_channel(tree, site.path, channel) if channel is not None else None
        if isinstance(call, ast.Call) and name is not None:
            yield Close(site, call, name, _deferring(site))


def _deferring(site: Site) -> Function | None:
    """Return the function that runs a close whenever it ends, by `defer close(c)` or by a deferred literal."""
    if site.nearest(ast.Defer) is not None:
        return site.function
    if site.nearest(ast.If, ast.Switch, ast.Select) is not None or len(site.outer) < 2:
        return None
    around = [node for node in site.outer if isinstance(node, ast.FuncDecl | ast.FuncLit)]
    is_deferred = any(isinstance(node, ast.Defer) and _is_literal_call(node.call, site.function) for node in site.outer)
    return around[-2] if is_deferred else None


def _is_literal_call(call: ast.Expr, literal: Function) -> bool:
    return isinstance(call, ast.Call) and call.fun is literal


# --- L02 --------------------------------------------------------------------------------------------


def _find_premature(tree: Tree) -> Iterator[Finding]:
    exits: dict[tuple[str, Span], list[tuple[int, str]]] = {}  # one function may defer thousands of closes
    for close in chain(_closes(tree), _signals(tree)):
        if close.deferred_by is not None:
            key = (close.site.path, close.deferred_by.span)
            if key not in exits:
                exits[key] = list(_failing_exits(tree, close.site.path, close.deferred_by))
            failure = _failing_exit(_reached(tree, close, close.deferred_by), exits[key])
            shape = "deferred"
        else:
            failure = _failure_before(tree, close.site)
            shape = "after-failure"
        if failure is not None:
            statement = close.site.nearest(ast.Defer) or close.call
            message = f"closes {close.channel}, which says that it is ready, also where {failure}"
            verdict = _mended(tree, close) or _by_hand(close)
            yield hazard("L02", close.site, statement.span, message, verdict, shape)
    yield from _always_ready(tree)


def _signals(tree: Tree) -> Iterator[Close]:
    """Yield the calls that close a readiness channel through what owns it, such as a `ReadySignal`."""
    for site in sites(tree, b".Close()", keep=_says_ready_before):
        call = site.inside[-1] if site.inside else None
        match call:
            case ast.Call(fun=ast.Selector(x=ast.Selector(name=name) | ast.Ident(name=name) as signal), args=()):
                if says_ready(name) and _has_channel(tree, tree.calls(site.path, call)):
                    yield Close(site, call, tree.text(site.path, signal.span), _deferring(site))
            case _:
                pass


def _says_ready_before(data: bytes, at: int) -> bool:
    """Tell by the bytes whether the line may say ready before an offset."""
    return data.find(b"eady", data.rfind(b"\n", 0, at) + 1, at) >= 0


def _has_channel(tree: Tree, method: ast.Object) -> bool:
    """Tell whether what has a method gives out a channel to wait for as well."""
    if not isinstance(method, ast.FieldObject):
        return False
    results = (param.type for _, other in tree.methods(method.package, method.type) for param in other.results)
    return any(isinstance(type_, ast.ChanType) and type_.direction == "recv" for type_ in results)


def _by_hand(close: Close) -> Manual:
    instruction = f"take the close to where the wait or start has succeeded, and leave {close.channel} open otherwise"
    if isinstance(close.deferred_by, ast.FuncDecl) and close.deferred_by.results:
        channel = close.channel
        call = f"executor.CloseIfNilErr(err, {channel})" if close.call.args else f"{channel}.CloseIfNil(err)"
        instruction += f", as `return {call}` does"
    return by_hand(f"where {close.channel} stands for success cannot be told from the code", instruction)


def _failing_exit(reached: Span, exits: list[tuple[int, str]]) -> str | None:
    """Return on which way out of what is reached a deferred close is wrong, None where all of them are a success."""
    at = bisect_left(exits, reached.start, key=lambda one: one[0])
    return exits[at][1] if at < len(exits) and exits[at][0] < reached.end else None


def _failing_exits(tree: Tree, path: str, function: Function) -> Iterator[tuple[int, str]]:
    """Yield where a function is left without a success, in order, and what is wrong there."""
    for node in statements(function.body) if function.body is not None else ():
        match node:
            case ast.Return():
                failure = _failing_return(tree, path, function, node)
                if failure is not None:
                    yield node.span.start, failure
            case ast.ExprStmt(x=ast.Call() as call):
                name = name_of(call)
                if name == "RequestShutdown":
                    yield node.span.start, "a shutdown is requested"
                elif name.startswith("Fatal") or name == "panic" or tree.text(path, call.fun.span) == "os.Exit":
                    yield node.span.start, f"{name} is called"
            case _:
                pass


def _reached(tree: Tree, close: Close, function: Function) -> Span:
    """Return what of a function may run once the deferred close is due: not what a branch that leaves keeps out."""
    start = close.call.span.start
    for node in reversed(trail(function, close.call.span)):
        if isinstance(node, ast.Block) and leaves(tree, close.site.path, node.stmts):
            return Span(start, node.span.end)
    return Span(start, function.span.end)


def _failing_return(tree: Tree, path: str, function: Function, node: ast.Return) -> str | None:
    if node.values:
        last = node.values[-1]
        succeeds = isinstance(last, ast.Ident) and last.name in ("nil", "true")
        return None if succeeds else "an error is returned"
    way = trail(function, node.span)
    if any(isinstance(step, ast.Case) and ends_with_context(step) for step in way):
        return "the context ended first"
    if any(isinstance(step, ast.If) and step.then in way and _tests_error(step.cond) for step in way):
        return "there was an error"
    body = function.body
    last_stmt = body.stmts[-1] if body is not None and body.stmts else None
    in_last_loop = isinstance(last_stmt, ast.For) and last_stmt.span.contains(node.span)
    return None if in_last_loop or node is last_stmt else "the function returns early"


def _tests_error(cond: ast.Expr) -> bool:
    """Tell whether a condition holds where some error is there: `err != nil`, `ctx.Err() != nil`."""
    return any(
        isinstance(node, ast.Binary) and node.op == "!=" and isinstance(node.y, ast.Ident) and node.y.name == "nil"
        for node in walk(cond)
    )


def _failure_before(tree: Tree, site: Site) -> str | None:
    """Return which failed step runs on into the close, None where each one before it leaves."""
    path = site.path
    tested = [step.cond for step in site.inside if isinstance(step, ast.If)]
    for node in reversed(site.inside):
        for stmt in reversed(before(node, site.span)[-_STEPS_BACK:]):
            match stmt:
                case ast.ExprStmt(x=ast.Call() as call) if _can_fail(tree, path, call):
                    return f"{name_of(call)} failed: nobody looks at its result"
                case ast.If(init=init, cond=cond, then=then, else_=None) if _tests_error(cond):
                    tested.append(cond)
                    if not leaves(tree, path, then.stmts) and _is_about_start(tree, path, init, then):
                        return "the step before it failed: its error is only reported"
                case ast.If(cond=cond):
                    tested.append(cond)
                case ast.Select(cases=cases):
                    for case in cases:
                        if ends_with_context(case) and not leaves(tree, path, case.body):
                            return "the context ended first"
                case ast.Assign(lhs=(*_, ast.Ident(name=err)), rhs=(ast.Call() as call,)) if (
                    err != "_" and _can_fail(tree, path, call) and not _mentions(tested, err)
                ):
                    return f"{name_of(call)} failed: its error is not looked at before"
                case _:
                    pass
    return None


def _can_fail(tree: Tree, path: str, call: ast.Call) -> bool:
    return is_wait(tree, path, call) or (
        name_of(call) in START_METHODS and in_executor(tree.calls(path, call)) and name_of(call) != "CurrentETCDOptions"
    )


def _is_about_start(tree: Tree, path: str, init: ast.Stmt | None, then: ast.Block) -> bool:
    requests = any(isinstance(node, ast.Call) and name_of(node) == "RequestShutdown" for node in own(then))
    match init:
        case ast.Assign(rhs=(ast.Call() as call,)):
            return requests or _can_fail(tree, path, call)
        case _:
            return requests


def _mentions(exprs: list[ast.Expr], name: str) -> bool:
    return any(isinstance(node, ast.Ident) and node.name == name for expr in exprs for node in walk(expr))


def _always_ready(tree: Tree) -> Iterator[Finding]:
    """Find a start of etcd with a test that always succeeds, where there is something to test."""
    for site in sites(tree, b"ETCD(", in_body=(b"return nil }",)):
        call = site.inside[-1] if site.inside else None
        if not isinstance(call, ast.Call) or name_of(call) != "ETCD":
            continue
        for arg in call.args:
            if isinstance(arg, ast.FuncLit) and _RETURNS_NIL.fullmatch(tree.text(site.path, arg.body.span)):
                if any(_has_nothing_to_test(step, site.span) for step in site.inside):
                    continue
                message = "the test that decides when etcd is ready always succeeds"
                instruction = (
                    "test the datastore that is used, and call it ready without a test only where there is none"
                )
                verdict = by_hand("what would have to be tested is not known", instruction)
                yield hazard("L02", site, arg.span, message, verdict, "always-ready")


def _has_nothing_to_test(step: Node, span: Span) -> bool:
    """Tell whether a step on the way is `if database == nil { ... }` around the place."""
    match step:
        case ast.If(cond=ast.Binary(op="==", y=ast.Ident(name="nil")), then=then):
            return then.span.contains(span)
        case _:
            return False


def _mended(tree: Tree, close: Close) -> Rewrite | None:
    """Return the change of `defer close(c)` to a close around each returned value; None for other shapes."""
    site, function = close.site, close.deferred_by
    path, defer = site.path, site.nearest(ast.Defer)
    if site.crowded or not isinstance(function, ast.FuncDecl) or function.body is None:
        return None
    if defer not in function.body.stmts or not close.call.args:
        return None
    declared = tree.type_of(path, close.call.args[0])
    if declared is None or not isinstance(declared.expr, ast.ChanType) or declared.expr.direction != "both":
        return None
    if len(function.results) != 1 or function.results[0].names or tree.comments_in(path, _line(tree, path, defer)):
        return None
    helper = _helper(tree, path, site.span.start)
    returns = [
        node for node in statements(function.body) if isinstance(node, ast.Return) and node.span.start > defer.span.end
    ]
    if helper is None or any(len(node.values) != 1 for node in returns):
        return None
    edits = [layout.remove_lines(tree, path, defer.span)]
    for node in returns:
        (value,) = node.values
        way = trail(function, node.span)
        if not any(isinstance(step, ast.If) and step.then in way and _is_failed(step.cond, value) for step in way):
            text = f"{helper}CloseIfNilErr({tree.text(path, value.span)}, {close.channel})"
            edits.append(Edit(path, value.span, text.encode()))
    return Rewrite(tuple(edits))


def _line(tree: Tree, path: str, node: Node) -> Span:
    return layout.whole_lines(tree.data(path), node.span)


def _helper(tree: Tree, path: str, offset: int) -> str | None:
    """Return how `CloseIfNilErr` is qualified at a place, None where the tree has none that can be named there."""
    for where in tree.files_with(_HELPER):
        found = tree.qualify(path, tree.package_of(where), "executor", offset)
        if found is not None and found.need is None:
            return found.prefix
    return None


def _is_failed(cond: ast.Expr, value: ast.Expr) -> bool:
    match cond, value:
        case ast.Binary(op="!=", x=ast.Ident(name=tested), y=ast.Ident(name="nil")), ast.Ident(name=name):
            return tested == name
        case _:
            return False


# --- L04 --------------------------------------------------------------------------------------------

#: With how many closes of a channel each one is compared: that many are wrong anyhow.
_MANY = 50
#: Start methods of which a node runs one: closes in several of them exclude each other.
_ALTERNATIVES = frozenset({"Containerd", "Docker", "CRI"})


def _find_unguarded(tree: Tree) -> Iterator[Finding]:
    owners: dict[tuple[str, ...], list[Close]] = {}
    stores: dict[tuple[str, Span], dict[str, list[Span]]] = {}  # one function may close thousands of locals
    for close in _closes(tree):
        key = (close.site.path, close.site.decl.span)
        if key not in stores:
            stores[key] = _stores(tree, *key)
        owner = _owner(tree, close, stores[key])
        if owner is not None and not _is_guarded(tree, close):
            owners.setdefault(owner, []).append(close)
    verdict = by_hand("which close comes first is not fixed", "close the channel through a sync.Once, in one place")
    for owner, closes in sorted(owners.items()):
        others = closes[:_MANY]
        apart = [one for one in closes if any(not _exclude(tree, one, other) for other in others if other is not one)]
        for close in apart:
            places = len(closes)
            message = f"{close.channel} is closed in {places} places: a second close of a channel panics"
            yield hazard("L04", close.site, close.call.span, message, verdict, "closed-twice")
        for close in closes if not apart and owner[0] == "field" else ():
            if any(isinstance(node, ast.Go) for node in close.site.outer) and close.site.decl.receiver is not None:
                message = (
                    f"each call of {close.site.decl.name} closes {close.channel}: a second close of a channel panics"
                )
                yield hazard("L04", close.site, close.call.span, message, verdict, "closed-per-call")


def _owner(tree: Tree, close: Close, stores: dict[str, list[Span]]) -> tuple[str, ...] | None:
    """Return what holds the closed channel: a field, also where a local is stored in it, or the local itself."""
    path = close.site.path
    (channel,) = close.call.args
    match tree.resolve(path, channel):
        case ast.FieldObject(package=package, type=owner, name=name):
            return "field", package, owner, name
        case ast.LocalObject(name=name, at=at, kind="var"):
            for use in tree.occurrences_at(path, stores.get(name, [])):
                if isinstance(use.object, ast.FieldObject):
                    return "field", use.object.package, use.object.type, use.object.name
            return "local", path, str(at.start)
        case _:
            return None


def _stores(tree: Tree, path: str, function: Span) -> dict[str, list[Span]]:
    """Return the names of the fields that the locals of a function are stored in, by these."""
    found: dict[str, list[Span]] = {}
    for match in _STORE.finditer(tree.data(path), *function):
        found.setdefault(match[2].decode("utf-8", "replace"), []).append(Span(*match.span(1)))
    return found


def _is_guarded(tree: Tree, close: Close) -> bool:
    """Tell whether a sync.Once, a look at the channel, or setting it to nil keeps a close from being done again."""
    site = close.site
    for node in (*site.outer, *site.inside):
        match node:
            case ast.Call(fun=ast.Selector(name="Do"), args=(ast.FuncLit() as once,)) if once.span.contains(site.span):
                return True
            case ast.Select(cases=cases) if any(_looks_at(tree, close, case) for case in cases):
                return True
            case ast.If() if _forgets(tree, site, node, close.channel):
                return True
            case _:
                pass
    return False


def _looks_at(tree: Tree, close: Close, case: ast.Case) -> bool:
    channel = received(case.comm)
    return channel is not None and tree.text(close.site.path, channel.span) == close.channel


def _exclude(tree: Tree, one: Close, other: Close) -> bool:
    """Tell whether two closes never both run: branches of one statement, one that leaves, or alternative starts."""
    if (one.site.path, one.site.decl.span) != (other.site.path, other.site.decl.span):
        names = {one.site.decl.name, other.site.decl.name}
        return names <= _ALTERNATIVES and one.site.decl.receiver_type == other.site.decl.receiver_type
    first, second = sorted((one, other), key=lambda close: close.site.span)
    for node in (*first.site.outer, *first.site.inside):
        if node.span.contains(second.site.span):
            continue
        if isinstance(node, ast.Case) or (isinstance(node, ast.Block) and leaves(tree, first.site.path, node.stmts)):
            return True
    return any(
        isinstance(node, ast.If) and node.else_ is not None and node.else_.span.contains(second.site.span)
        for node in (*first.site.outer, *first.site.inside)
        if isinstance(node, ast.If) and node.then.span.contains(first.site.span)
    )


# --- L05 --------------------------------------------------------------------------------------------


def _find_skippable(tree: Tree) -> Iterator[Finding]:
    for close in _closes(tree):
        site = close.site
        for step in (*site.outer, *site.inside):
            if (
                isinstance(step, ast.If)
                and step.else_ is None
                and step.then.span.contains(site.span)
                and _asks_for(tree, site.path, step.cond, close.channel)
                and not _forgets(tree, site, step, close.channel)
            ):
                message = (
                    f"{close.channel} is not closed where it is nil, and who waits for one made later waits for ever"
                )
                instruction = "make the channel before anything can start, and report an error where it is missing"
                yield hazard(
                    "L05", site, step.cond.span, message, by_hand("nil means two things here", instruction), "nil"
                )


def _asks_for(tree: Tree, path: str, cond: ast.Expr, channel: str) -> bool:
    return any(
        isinstance(node, ast.Binary)
        and node.op == "!="
        and isinstance(node.y, ast.Ident)
        and node.y.name == "nil"
        and tree.text(path, node.x.span) == channel
        for node in walk(cond)
    )


def _forgets(tree: Tree, site: Site, step: ast.If, channel: str) -> bool:
    """Tell whether the channel is set to nil after its close: then nil says that it has been closed."""
    return f"{channel} = nil" in tree.text(site.path, step.then.span)


PREMATURE_READY_CLOSE = Rule(
    id="L02",
    name="premature-ready-close",
    severity="error",
    summary="A readiness channel is closed on a path where the wait or start behind it failed.",
    why="""
A closed channel says: this component is ready, go on. A `defer close(ready)` says so too where the function returns an
error, requests a shutdown or was cancelled; so does a close after a wait whose result nobody looks at, and a test of
readiness that always succeeds. Everything that waited then starts against something that is not there, and fails later
with an error of its own.
""",
    cases=(4, 6, 7, 8, 20, 29),
    fix="in a function that returns an error only, the close moves to `executor.CloseIfNilErr` around what is returned",
    bad=(
        Example(
            "the runtime failed to start, and everybody is told that it runs",
            """package executor

import "context"

type Embedded struct {
	criReady chan struct{}
}

func (e *Embedded) Docker(ctx context.Context, socket string) error {
	defer close(e.criReady) // hazard
	if err := prepare(socket); err != nil {
		return err
	}
	return run(ctx, socket)
}

func CloseIfNilErr(err error, ch chan struct{}) error {
	if err == nil {
		close(ch)
	}
	return err
}
""",
            fixed="""package executor

import "context"

type Embedded struct {
	criReady chan struct{}
}

func (e *Embedded) Docker(ctx context.Context, socket string) error {
	if err := prepare(socket); err != nil {
		return err
	}
	return CloseIfNilErr(run(ctx, socket), e.criReady)
}

func CloseIfNilErr(err error, ch chan struct{}) error {
	if err == nil {
		close(ch)
	}
	return err
}
""",
        ),
        Example(
            "a signal that is closed once is closed on failure all the same",
            """package executor

import (
	"context"

	"example.com/m/pkg/util"
)

type Embedded struct {
	criReady util.ReadySignal
}

func (e *Embedded) Docker(ctx context.Context, socket string) error {
	defer e.criReady.Close() // hazard
	return run(ctx, socket)
}
""",
            others=(("pkg/util/ready.go", _SIGNAL),),
        ),
        Example(
            "a shutdown counts as a node that is ready",
            """package control

import (
	"context"

	"example.com/k/pkg/signals"
)

func scheduler(ctx context.Context) chan struct{} {
	nodeReady := make(chan struct{})
	go func() {
		defer close(nodeReady) // hazard
		if err := waitForNode(ctx); err != nil {
			signals.RequestShutdown(err)
		}
	}()
	return nodeReady
}
""",
        ),
        Example(
            "a wait that failed is followed by the close",
            """package control

import (
	"context"
	"time"

	"example.com/m/pkg/util"
)

func watch(ctx context.Context) chan struct{} {
	ready := make(chan struct{})
	go func() {
		util.WaitForAPIServerReady(ctx, "kubelet.kubeconfig", time.Minute)
		close(ready) // hazard
	}()
	return ready
}
""",
        ),
        Example(
            "etcd on another node is ready before anybody has asked it",
            """package cluster

import (
	"context"

	"example.com/k/pkg/daemons/executor"
)

func (c *Cluster) Start(ctx context.Context) error {
	if c.config.DisableETCD || c.managedDB == nil {
		return executor.ETCD(ctx, nil, nil, func(context.Context) error { return nil }) // hazard
	}
	return c.start(ctx)
}
""",
            path="pkg/cluster/cluster.go",
        ),
    ),
    good=(
        Example(
            "each way out of the loop but success leaves the channel open",
            """package executor

import (
	"context"
	"time"
)

func (e *Embedded) ETCD(ctx context.Context, test func(context.Context) error) {
	go func() {
		for {
			if err := test(ctx); err == nil {
				close(e.etcdReady)
				return
			}
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return
			}
		}
	}()
}
""",
        ),
        Example(
            "a signal that is closed by success, and something else that is closed at the end",
            """package executor

import (
	"context"

	"example.com/m/pkg/util"
)

type Embedded struct {
	criReady util.ReadySignal
}

func (e *Embedded) Docker(ctx context.Context, socket string) error {
	readyFile, err := open(socket)
	if err != nil {
		return err
	}
	defer readyFile.Close()
	return e.criReady.CloseIfNil(run(ctx, readyFile))
}
""",
            others=(("pkg/util/ready.go", _SIGNAL),),
        ),
        Example(
            "a deferred close in a function that cannot fail, and a test that succeeds where there is nothing to test",
            """package cluster

import (
	"context"

	"example.com/k/pkg/daemons/executor"
)

func (c *Cluster) Start(ctx context.Context, ready chan struct{}) error {
	go func() {
		defer close(ready)
		for {
			if c.managedDB.Test(ctx) == nil {
				return
			}
		}
	}()
	if c.managedDB == nil {
		if err := executor.ETCD(ctx, nil, nil, func(context.Context) error { return nil }); err != nil {
			return err
		}
	}
	return c.start(ctx)
}
""",
            path="pkg/cluster/cluster.go",
        ),
    ),
    find=_find_premature,
)

UNGUARDED_READY_CLOSE = Rule(
    id="L04",
    name="unguarded-ready-close",
    severity="warning",
    summary="A readiness channel is closed in more than one place, or by each call of a method, without a guard.",
    why="""
Closing a closed channel panics. Which of two closes is the second depends on options, on the executor that is used and
on who is faster, so it shows on somebody else's node: a reset of the cluster, a restart of one component.
""",
    cases=(56,),
    bad=(
        Example(
            "the server closes what the agent has closed where both run",
            """package server

type Agent struct {
	AgentReady chan struct{}
}

func run(reset bool, agent *Agent) error {
	agentReady := make(chan struct{})
	agent.AgentReady = agentReady
	if reset {
		close(agentReady) // hazard
	}
	return start(agent)
}

func start(agent *Agent) error {
	close(agent.AgentReady) // hazard
	return nil
}
""",
        ),
        Example(
            "a second start of etcd closes the channel again",
            """package executor

type Embedded struct {
	etcdReady chan struct{}
}

func (e *Embedded) ETCD(test func() error) {
	go func() {
		for test() != nil {
		}
		close(e.etcdReady) // hazard
	}()
}
""",
        ),
    ),
    good=(
        Example(
            "a guard, branches of which one runs, and a channel that each call makes",
            """package executor

import "sync"

type Embedded struct {
	once      sync.Once
	criReady  chan struct{}
	etcdReady chan struct{}
}

func (e *Embedded) ETCD() {
	go func() {
		e.once.Do(func() { close(e.etcdReady) })
	}()
}

func (e *Embedded) Docker(external bool) chan struct{} {
	if external {
		close(e.criReady)
	} else {
		close(e.criReady)
	}
	nodeReady := make(chan struct{})
	go func() { close(nodeReady) }()
	return nodeReady
}

func (e *Embedded) Containerd() {
	close(e.criReady)
}
""",
        ),
    ),
    find=_find_unguarded,
)

SKIPPABLE_READY_SIGNAL = Rule(
    id="L05",
    name="skippable-ready-signal",
    severity="warning",
    summary="A readiness channel is closed only if it is not nil, and nothing happens if it is.",
    why="""
The test for nil hides an error of order: where the channel is made after this code has run, the close is skipped, and
whoever waits for the channel that is made later waits for ever. There is no message.
""",
    cases=(25,),
    bad=(
        Example(
            "an executor that was not bootstrapped never says that etcd is ready",
            """package executor

import "context"

type Embedded struct {
	etcdReady chan struct{}
}

func (e *Embedded) ETCD(ctx context.Context, test func(context.Context) error) {
	if e.etcdReady != nil { // hazard
		go func() {
			for test(ctx) != nil {
			}
			close(e.etcdReady)
		}()
	}
}
""",
        ),
    ),
    good=(
        Example(
            "nil is an error, or says that the channel is closed already",
            """package executor

import "errors"

type Embedded struct {
	etcdReady chan struct{}
	criReady  chan struct{}
}

func (e *Embedded) started() error {
	if e.etcdReady != nil {
		close(e.etcdReady)
	} else {
		return errors.New("executor not bootstrapped")
	}
	if e.criReady != nil {
		close(e.criReady)
		e.criReady = nil
	}
	return nil
}
""",
        ),
    ),
    find=_find_skippable,
)
