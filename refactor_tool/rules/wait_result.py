"""L03, L09 and L12: what came of a wait is not asked, or a failed wait counts as a success."""

from __future__ import annotations

import re
from collections.abc import Iterator

from refactor_tool.gosrc import ast
from refactor_tool.gosrc.tree import Tree
from refactor_tool.gosrc.walk import name_of, walk
from refactor_tool.model import Edit, Finding, Manual, Rewrite, Severity, Span
from refactor_tool.record import record
from refactor_tool.rule import Example, Rule
from refactor_tool.rules import _fix
from refactor_tool.rules._code import Site, by_hand, hazard, site_at, sites
from refactor_tool.rules._flow import after, before, following, leaves, statements
from refactor_tool.rules._ready import (
    CACHE_PACKAGE,
    START_METHODS,
    WAIT_PACKAGE,
    WAIT_WORDS,
    deferred_close,
    gives_error,
    in_executor,
    is_wait,
)

_ENDED = frozenset(
    {
        ast.PackageObject("context", "Canceled"),
        ast.PackageObject("context", "DeadlineExceeded"),
        ast.PackageObject(WAIT_PACKAGE, "ErrWaitTimeout"),
    }
)
_INTERRUPTED = ast.PackageObject(WAIT_PACKAGE, "Interrupted")
_REPORTS = frozenset(
    f"{level}{form}"
    for level in ("Trace", "Debug", "Info", "Warn", "Warning", "Error", "Print")
    for form in ("", "f", "ln", "S")
) | {"RequestShutdown"}
_UNBOUNDED = frozenset(
    "PollUntilContextCancel PollUntilWithContext PollUntil PollImmediateUntil PollImmediateUntilWithContext"
    " PollInfinite PollInfiniteWithContext PollImmediateInfinite PollImmediateInfiniteWithContext".split()
)
#: How many bytes before its test an error may be set: a longer call than any in a start function.
_FAR = 20_000
#: Words of a log that say that going on may be meant.
_MILD = ("Trace", "Debug", "Info", "Warn", "Print")
_LOGRUS = "github.com/sirupsen/logrus"


# --- L03 --------------------------------------------------------------------------------------------


def _find_counted_as_success(tree: Tree) -> Iterator[Finding]:
    for site in sites(tree, b"Canceled", b"DeadlineExceeded", b"ErrWaitTimeout", b"Interrupted("):
        test = site.nearest(ast.If)
        if not isinstance(test, ast.If) or test.else_ is not None or not test.cond.span.contains(site.span):
            continue
        err = _excused(tree, site.path, test.cond)
        wait = _waited(tree, site, err) if err is not None else None
        guard = _guard(site, err) if wait is not None and err is not None else None
        if err is None or wait is None or guard is None:
            continue
        goes_on = _goes_on(tree, site, guard, err)
        if goes_on is not None:
            message = f"a wait ({name_of(wait)}) that ended with the context counts as a success: {goes_on}"
            verdict = _fixed_test(tree, site, guard, test.cond.span, err)
            yield hazard("L03", site, test.cond.span, message, verdict, "excused-error")


def _waited(tree: Tree, site: Site, err: str) -> ast.Call | None:
    """Return the wait whose error is tested: in its own statement, or in the last one before that sets the error."""
    guard = _guard(site, err)
    if guard is None:
        return None
    if guard.init is None and not _is_set_near(tree, site, err):
        return None
    call = _origin(site, guard, err)
    return call if call is not None and is_wait(tree, site.path, call) else None


def _is_set_near(tree: Tree, site: Site, err: str) -> bool:
    """Tell whether a call sets an error not far before a place, as far as the text tells."""
    start = max(site.decl.span.start, site.span.start - _FAR)
    made = re.compile(rb"\b" + err.encode() + rb" :?= [\w.]+\(")
    return made.search(tree.data(site.path), start, site.span.start) is not None


def _excused(tree: Tree, path: str, cond: ast.Expr) -> str | None:
    """Return the error of which a condition says that it is there and not one of an ended context."""
    match cond:
        case ast.Paren(x=inner):
            return _excused(tree, path, inner)
        case ast.Binary(op="&&", x=x, y=y):
            return _excused(tree, path, y) or _excused(tree, path, x)
        case ast.Unary(op="!", x=ast.Call(fun=ast.Selector(name="Is"), args=(ast.Ident(name=err), target))):
            return err if _is_ended(tree, path, target) else None
        case ast.Unary(op="!", x=ast.Call(args=(ast.Ident(name=err),)) as call):
            return err if name_of(call) == "Interrupted" and tree.calls(path, call) == _INTERRUPTED else None
        case ast.Binary(op="!=", x=ast.Ident(name=err), y=ast.Selector() as target):
            return err if _is_ended(tree, path, target) else None
        case _:
            return None


def _is_ended(tree: Tree, path: str, target: ast.Expr) -> bool:
    return isinstance(target, ast.Selector) and tree.resolve(path, target) in _ENDED


def _guard(site: Site, err: str) -> ast.If | None:
    """Return the statement that asks whether the error is there: around the place, or the one around that."""
    for node in reversed(site.inside):
        if isinstance(node, ast.If) and any(_tested(part) == err for part in walk(node.cond)):
            return node
        if isinstance(node, ast.If) and not node.cond.span.contains(site.span):
            return None
    return None


def _origin(site: Site, guard: ast.If, err: str) -> ast.Call | None:
    """Return the call that the tested error comes from: in the statement itself, else the last one before it."""
    stmts = [guard.init] if guard.init is not None else [s for node in site.inside for s in before(node, guard.span)]
    for stmt in reversed(stmts):
        match stmt:
            case ast.Assign(lhs=lhs, rhs=rhs) if any(isinstance(name, ast.Ident) and name.name == err for name in lhs):
                return rhs[0] if len(rhs) == 1 and isinstance(rhs[0], ast.Call) else None
            case _:
                pass
    return None


def _goes_on(tree: Tree, site: Site, guard: ast.If, err: str) -> str | None:
    rest = following(site, guard)
    if not rest:
        channel = deferred_close(tree, site)
        return f"{channel} is closed then" if channel is not None else None
    match rest[0]:
        case ast.Return(values=values):
            return None if any(_speaks_of(value, err) for value in values) else "the function returns as after one"
        case ast.If(init=init, cond=cond):
            return None if init is None and _speaks_of(cond, err) else "the function goes on"
        case ast.Branch():
            return None
        case _:
            return "the function goes on"


def _speaks_of(expr: ast.Expr, err: str) -> bool:
    """Tell whether an expression mentions an error variable, or asks a context for its error."""
    return any(
        (isinstance(node, ast.Ident) and node.name == err) or (isinstance(node, ast.Selector) and node.name == "Err")
        for node in walk(expr)
    )


def _fixed_test(tree: Tree, site: Site, guard: ast.If, cond: Span, err: str) -> Rewrite | Manual:
    wanted = "leave the function with the error where the wait ended with the context"
    leave = _fix.way_out(tree, site, err, wanted)
    if isinstance(leave, Manual):
        return leave
    if guard.cond.span != cond:
        return by_hand("the error is tested in two steps", wanted)
    if len(guard.then.stmts) == 1 and isinstance(guard.then.stmts[0], ast.Return):
        return Rewrite((Edit(site.path, cond, f"{err} != nil".encode()),))
    return Rewrite((_fix.otherwise(tree, site.path, guard, f"if {err} != nil", leave),))


# --- L09 --------------------------------------------------------------------------------------------


@record
class Dropped:
    """A call whose result nobody looks at, and what that result is called.

    `unbounded` is a wait without a limit of its own, `cancel_only` one that can only fail once the context has ended.
    """

    call: ast.Call
    stmt: ast.ExprStmt | ast.Go
    gives: str
    unbounded: bool
    cancel_only: bool


def _find_ignored(tree: Tree) -> Iterator[Finding]:
    for site in sites(tree, *WAIT_WORDS, b"executor.", keep=_begins_statement):
        dropped = _dropped(tree, site)
        if dropped is None:
            continue
        rest = following(site, dropped.stmt)
        if dropped.cancel_only and (isinstance(dropped.stmt, ast.Go) or not rest):
            continue  # nothing is left to do once the context has ended
        severity: Severity = "warning" if dropped.unbounded else "error"
        message = (
            f"nobody looks at the {dropped.gives} of {name_of(dropped.call)}: what follows runs after a failure too"
        )
        if isinstance(dropped.stmt, ast.Go) or not rest:
            message = f"nobody looks at the {dropped.gives} of {name_of(dropped.call)}: a failure is silent"
        verdict = _checked(tree, site, dropped, is_last=not rest)
        yield hazard("L09", site, dropped.call.span, message, verdict, "unused-result", severity)


def _begins_statement(data: bytes, at: int) -> bool:
    line = data[data.rfind(b"\n", 0, at) + 1 : at].rpartition(b"{")[2].strip().removeprefix(b"go ")
    return not line.strip(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.")


def _dropped(tree: Tree, site: Site) -> Dropped | None:
    stmt = site.nearest(ast.ExprStmt, ast.Go)
    call: ast.Expr
    match stmt:
        case ast.ExprStmt(x=call) | ast.Go(call=call) if isinstance(call, ast.Call) and not isinstance(
            call.fun, ast.FuncLit
        ):
            if not call.fun.span.contains(site.span):
                return None
        case _:
            return None
    found = tree.calls(site.path, call)
    name = name_of(call)
    if name in ("WaitForCacheSync", "WaitForNamedCacheSync") and _is_cache(found):
        return Dropped(call, stmt, "result", unbounded=True, cancel_only=True)
    if is_wait(tree, site.path, call):
        unbounded = name in _UNBOUNDED
        return Dropped(call, stmt, "error", unbounded, unbounded and not _can_give_up(tree, site, call.args))
    starts = name in START_METHODS and in_executor(found) and _has_error(tree, found)
    return Dropped(call, stmt, "error", unbounded=False, cancel_only=False) if starts else None


def _is_cache(found: ast.Object) -> bool:
    match found:
        case ast.PackageObject(package=package):
            return package == CACHE_PACKAGE
        case _:
            return isinstance(found, ast.UnknownObject)


def _has_error(tree: Tree, found: ast.Object) -> bool:
    """Tell whether a start function gives an error, as all do that are not in the tree."""
    if not isinstance(found, ast.PackageObject):
        return False
    known = tree.functions(found.package, found.name)
    return not known or any(gives_error(decl) for _, decl in known)


def _can_give_up(tree: Tree, site: Site, args: tuple[ast.Expr, ...]) -> bool:
    """Tell whether a poll's callback may end it with an error of its own."""
    if not args or not isinstance(args[-1], ast.FuncLit):
        return True
    returns = (node for node in statements(args[-1].body) if isinstance(node, ast.Return))
    return any(
        node.values and not (isinstance(node.values[-1], ast.Ident) and node.values[-1].name == "nil")
        for node in returns
    )


def _checked(tree: Tree, site: Site, dropped: Dropped, *, is_last: bool) -> Rewrite | Manual:
    wanted = f"test the {dropped.gives} of {name_of(dropped.call)} and leave the function where it failed"
    if isinstance(dropped.stmt, ast.Go):
        return by_hand(
            "the result of a call in a go statement cannot be used", f"call it in a function literal: {wanted}"
        )
    leave = _fix.way_out(tree, site, "err", wanted)
    if isinstance(leave, Manual):
        return leave
    lines = [] if is_last and leave == "return" else [leave]
    if leave == "return":
        logrus = tree.qualify(site.path, _LOGRUS, "logrus", site.span.start)
        if logrus is None or logrus.need is not None or dropped.gives != "error":
            return by_hand("the function can return no error", f"{wanted}, and say why")
        lines.insert(0, f'{logrus.prefix}Errorf("{name_of(dropped.call)} failed: %v", err)')
    elif dropped.gives != "error":
        return by_hand("there is no error to return", wanted)
    return Rewrite(_fix.guarded(tree, site.path, dropped.stmt.span, "if err := ", "; err != nil", *lines))


# --- L12 --------------------------------------------------------------------------------------------


def _find_continued(tree: Tree) -> Iterator[Finding]:
    for site in sites(tree, *WAIT_WORDS, keep=_is_assigned):
        call = next((node for node in reversed(site.inside) if isinstance(node, ast.Call)), None)
        if call is None or not call.fun.span.contains(site.span):
            continue
        full = _with_test(tree, site, call)
        test = full.nearest(ast.If) if full is not None else None
        if (
            full is None
            or not isinstance(test, ast.If)
            or test.else_ is not None
            or not _only_reports(tree, full, test)
        ):
            continue
        if not is_wait(tree, site.path, call):
            continue
        channel = deferred_close(tree, full)
        if any(after(node, test.span) for node in full.inside) or channel is not None:
            what = f"closes {channel}" if channel is not None else "goes on"
            message = f"{name_of(call)} failed, which is only reported, and the function {what}"
            severity: Severity = "warning" if _may_be_meant(test) and channel is None else "error"
            verdict = _left(tree, full, test, channel)
            yield hazard("L12", full, test.cond.span, message, verdict, "reported-only", severity)


def _is_assigned(data: bytes, at: int) -> bool:
    return b"=" in data[data.rfind(b"\n", 0, at) + 1 : at]


def _with_test(tree: Tree, site: Site, call: ast.Call) -> Site | None:
    """Return the site of the condition that tests a call's error, in its own statement or in the next one."""
    span: Span | None = None
    for node in site.inside:
        match node:
            case ast.If(init=ast.Assign(rhs=(only,)), cond=cond) if only is call:
                span = Span(cond.span.start, node.span.end)
            case ast.Block() | ast.Case():
                stmts = after(node, call.span)
                assigned = any(isinstance(step, ast.Assign) and step.rhs == (call,) for step in site.inside)
                if assigned and stmts and isinstance(stmts[0], ast.If):
                    span = stmts[0].span
            case _:
                pass
    if span is None:
        return None
    found = site_at(site.path, site.decl, Span(span.start, span.start))
    test = found.nearest(ast.If) if found is not None else None
    if not isinstance(test, ast.If) or not any(
        isinstance(node, ast.Binary) and node.op == "!=" for node in walk(test.cond)
    ):
        return None
    return site_at(site.path, site.decl, test.cond.span)


def _only_reports(tree: Tree, site: Site, test: ast.If) -> bool:
    stmts = test.then.stmts
    return (
        bool(stmts)
        and not leaves(tree, site.path, stmts)
        and all(
            isinstance(stmt, ast.ExprStmt) and isinstance(stmt.x, ast.Call) and name_of(stmt.x) in _REPORTS
            for stmt in stmts
        )
    )


def _may_be_meant(test: ast.If) -> bool:
    """Tell whether a failure is only mentioned, at a level below an error."""
    calls = (stmt.x for stmt in test.then.stmts if isinstance(stmt, ast.ExprStmt) and isinstance(stmt.x, ast.Call))
    return all(name_of(call).startswith(_MILD) for call in calls)


def _left(tree: Tree, site: Site, test: ast.If, channel: str | None) -> Rewrite | Manual:
    wanted = "leave the function after the report"
    if channel is None and _may_be_meant(test):
        return by_hand("whether it is meant to go on cannot be told", f"{wanted}, or say in a comment why it goes on")
    err = next((name for node in walk(test.cond) if (name := _tested(node)) is not None), "err")
    leave = _fix.way_out(tree, site, err, wanted)
    if isinstance(leave, Manual):
        return leave
    edit = _fix.append(tree, site.path, test.then, leave)
    return Rewrite((edit,)) if edit is not None else by_hand("the branch stands on one line", wanted)


def _tested(node: object) -> str | None:
    match node:
        case ast.Binary(op="!=", x=ast.Ident(name=name), y=ast.Ident(name="nil")):
            return name
        case _:
            return None


CANCEL_COUNTED_AS_SUCCESS = Rule(
    id="L03",
    name="cancel-counted-as-success",
    severity="error",
    summary="A wait that ended because the context ended, or time ran out, is treated like one that succeeded.",
    why="""
`if err != nil && !errors.Is(err, context.Canceled) { return err }` reads as "a shutdown is no failure". But what
follows is the code for success: it tells the caller, or everybody through a ready channel, that the component is ready.
""",
    cases=(8, 29),
    fix="the function is left with the error of the wait",
    bad=(
        Example(
            "callers are told that the apiserver is ready when the node shuts down",
            """package util

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

func WaitForAPIServerReady(ctx context.Context, timeout time.Duration) error {
	err := wait.PollUntilContextTimeout(ctx, time.Second, timeout, true, isReady)
	if err != nil && !errors.Is(err, context.Canceled) { // hazard
		return errors.Join(errors.New("apiserver is not ready"), err)
	}
	return nil
}
""",
            fixed="""package util

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

func WaitForAPIServerReady(ctx context.Context, timeout time.Duration) error {
	err := wait.PollUntilContextTimeout(ctx, time.Second, timeout, true, isReady)
	if err != nil {
		return errors.Join(errors.New("apiserver is not ready"), err)
	}
	return nil
}
""",
            path="pkg/util/api.go",
        ),
        Example(
            "only the error that is not excused ends the function",
            """package control

import (
	"context"

	"example.com/k/pkg/signals"
	"k8s.io/apimachinery/pkg/util/wait"
)

func start(ctx context.Context) {
	if err := waitForNode(ctx); err != nil && !wait.Interrupted(err) { // hazard
		signals.RequestShutdown(err)
		return
	}
	run(ctx)
}
""",
            fixed="""package control

import (
	"context"

	"example.com/k/pkg/signals"
	"k8s.io/apimachinery/pkg/util/wait"
)

func start(ctx context.Context) {
	if err := waitForNode(ctx); err != nil && !wait.Interrupted(err) {
		signals.RequestShutdown(err)
		return
	} else if err != nil {
		return
	}
	run(ctx)
}
""",
        ),
    ),
    good=(
        Example(
            "a component that ran and was stopped, and a wait after which nothing is done",
            """package control

import (
	"context"
	"errors"

	"example.com/k/pkg/signals"
)

func run(ctx context.Context, command Command) error {
	go func() {
		err := command.ExecuteContext(ctx)
		if err != nil && !errors.Is(err, context.Canceled) {
			signals.RequestShutdown(err)
		}
		signals.RequestShutdown(nil)
	}()
	go func() {
		if err := waitForNode(ctx); err != nil && !errors.Is(err, context.Canceled) {
			signals.RequestShutdown(err)
		}
	}()
	err := waitForNode(ctx)
	if err != nil && !errors.Is(err, context.Canceled) {
		return errors.New("no node")
	}
	return err
}
""",
        ),
    ),
    find=_find_counted_as_success,
)

IGNORED_RESULT = Rule(
    id="L09",
    name="ignored-start-or-wait-result",
    severity="error",
    summary="Nobody looks at the error of a start or a wait.",
    why="""
After a start that failed, or a wait that ran into its limit, the code goes on as if all was well and fails later, with
an error that has nothing to do with the cause. A wait without a limit of its own is a warning; where it can only end
with its context and nothing follows, there is nothing to look at.
""",
    cases=(20, 58),
    fix="the error is tested, and the function left with it",
    bad=(
        Example(
            "on a slow disk the agent goes on after thirty seconds",
            """package agent

import (
	"context"
	"time"

	"example.com/k/pkg/daemons/executor"
	"example.com/k/pkg/util"
)

func run(ctx context.Context) error {
	util.WaitForAPIServerReady(ctx, 30*time.Second) // hazard
	return executor.Kubelet(ctx, nil)
}
""",
            fixed="""package agent

import (
	"context"
	"time"

	"example.com/k/pkg/daemons/executor"
	"example.com/k/pkg/util"
)

func run(ctx context.Context) error {
	if err := util.WaitForAPIServerReady(ctx, 30*time.Second); err != nil {
		return err
	}
	return executor.Kubelet(ctx, nil)
}
""",
            path="pkg/agent/run.go",
        ),
        Example(
            "the start of etcd, and a cache that may not have been filled",
            """package cluster

import (
	"context"

	"example.com/k/pkg/daemons/executor"
	"k8s.io/client-go/tools/cache"
)

func start(ctx context.Context, synced cache.InformerSynced) {
	executor.ETCD(ctx, nil, nil, nil) // hazard
	cache.WaitForCacheSync(ctx.Done(), synced) // hazard
	serve(ctx)
}
""",
            path="pkg/cluster/cluster.go",
        ),
    ),
    good=(
        Example(
            "a poll that goes on as long as its context, and nothing after it",
            """package cluster

import (
	"context"
	"time"

	"example.com/k/pkg/daemons/executor"
	"k8s.io/apimachinery/pkg/util/wait"
)

func watch(ctx context.Context) error {
	go wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		return sync(ctx) == nil, nil
	})
	executor.Set(nil)
	return executor.ETCD(ctx, nil, nil, nil)
}
""",
            path="pkg/cluster/cluster.go",
        ),
    ),
    find=_find_ignored,
)

WAIT_FAILED_BUT_CONTINUE = Rule(
    id="L12",
    name="wait-failed-but-continue",
    severity="error",
    summary="The error of a failed wait is logged, or a shutdown requested, and the function goes on.",
    why="""
A request for shutdown returns at once. Without a return the code for success runs while the node stops, against a
component that is not there; with a deferred close of a ready channel it even starts others. Where the failure is only
mentioned, below the level of an error, going on may be meant, and it is a warning.
""",
    cases=(29,),
    fix="the function is left after the report",
    bad=(
        Example(
            "a shutdown is requested, and the controllers are started",
            """package control

import (
	"context"

	"example.com/k/pkg/signals"
)

func start(ctx context.Context) {
	if err := waitForNode(ctx); err != nil { // hazard
		signals.RequestShutdown(err)
	}
	run(ctx)
}
""",
            fixed="""package control

import (
	"context"

	"example.com/k/pkg/signals"
)

func start(ctx context.Context) {
	if err := waitForNode(ctx); err != nil {
		signals.RequestShutdown(err)
		return
	}
	run(ctx)
}
""",
        ),
        Example(
            "a message, and the code for success",
            """package spegel

import (
	"context"

	"github.com/sirupsen/logrus"
)

func start(ctx context.Context) error {
	err := waitForPeers(ctx)
	if err != nil { // hazard
		logrus.Warnf("Failed to wait for peers: %v", err)
	}
	return serve(ctx)
}
""",
            path="pkg/spegel/spegel.go",
        ),
    ),
    good=(
        Example(
            "the failure ends the function, the round, or is the last thing it does",
            """package control

import (
	"context"

	"example.com/k/pkg/signals"
	"github.com/sirupsen/logrus"
)

func start(ctx context.Context) {
	for ctx.Err() == nil {
		if err := waitForNode(ctx); err != nil {
			logrus.Warnf("Waiting for a node: %v", err)
			continue
		}
		break
	}
	err := waitForNode(ctx)
	if err != nil {
		signals.RequestShutdown(err)
		return
	}
	if err := waitForNode(ctx); err != nil {
		signals.RequestShutdown(err)
	}
}
""",
        ),
    ),
    find=_find_continued,
)
