"""L10, L16 and L17: loops that wait without a reason, without rest, or without an end."""

from __future__ import annotations

import re
from collections.abc import Iterator

from refactor_tool.gosrc import ast
from refactor_tool.gosrc.tree import Tree, TypeRef
from refactor_tool.gosrc.walk import name_of, walk
from refactor_tool.model import Edit, Finding, Manual, Rewrite, Span
from refactor_tool.rule import Example, Rule
from refactor_tool.rules import _fix
from refactor_tool.rules._code import Site, by_hand, hazard, sites
from refactor_tool.rules._ready import WAIT_PACKAGE

_CONTEXT = b"context.Context"
_HEEDS_CONTEXT = re.compile(rb"\.Done\(\)|\.Err\(\)|context\.(?:Canceled|Cause)")
_SLEEP = ast.PackageObject("time", "Sleep")
_YIELD = ast.PackageObject("runtime", "Gosched")
_LOGS = re.compile(r"(?:Trace|Debug|Info|Warn|Warning|Error|Print)(?:f|ln|S)?")


# --- L10 --------------------------------------------------------------------------------------------


def _find_lost_reason(tree: Tree) -> Iterator[Finding]:
    needles = (b"return false, nil", b"continue\n", b"continue\r\n")
    for site in sites(tree, *needles, in_body=(b"for {", b".C {", b"wait."), keep=_follows_error):
        test = site.nearest(ast.If)
        err = _error_of(test) if isinstance(test, ast.If) else None
        if not isinstance(test, ast.If) or err is None or not _waits_on(tree, site):
            continue
        if test.else_ is None and _drops(test.then, err):
            message = f"the reason to wait on is lost: nobody is told what {err} was"
            instruction = f"log {err} when it is another one than before, so that the log shows what is waited for"
            verdict = by_hand("how often to tell it depends on the interval", instruction)
            yield hazard("L10", site, test.cond.span, message, verdict, "reason-lost")


def _follows_error(data: bytes, at: int) -> bool:
    return b" != nil {" in data[max(0, at - 400) : at]


def _error_of(test: ast.If) -> str | None:
    """Return the error that a condition asks for and nothing else, None for another condition."""
    match test.cond:
        case ast.Binary(op="!=", x=ast.Ident(name=err), y=ast.Ident(name="nil")):
            return err
        case _:
            return None


def _waits_on(tree: Tree, site: Site) -> bool:
    """Tell whether the statement goes on waiting: in a poll's callback, or in a loop without a bound of its own."""
    if _polling(tree, site) is not None:
        return site.nearest(ast.Return) is not None
    loop = site.nearest(ast.For)
    if not isinstance(loop, ast.For) or site.nearest(ast.Return) is not None:
        return False
    return not tree.text(site.path, loop.header).strip() or _ticks(tree, site.path, loop)


def _polling(tree: Tree, site: Site) -> ast.Call | None:
    """Return the poll whose callback is the function around a place."""
    for node in reversed(site.outer):
        if isinstance(node, ast.Call) and any(arg is site.function for arg in node.args):
            found = tree.calls(site.path, node)
            is_poll = isinstance(found, ast.PackageObject) and found.package == WAIT_PACKAGE
            return node if is_poll and name_of(node).startswith(("Poll", "ExponentialBackoff")) else None
    return None


def _drops(body: ast.Block, err: str) -> bool:
    """Tell whether a branch does no more with the error than keep it: it is not logged, handed on or looked into."""
    for stmt in body.stmts:
        match stmt:
            case ast.ExprStmt(x=ast.Call() as call):
                if not _LOGS.fullmatch(name_of(call)) or _mentions(call, err):
                    return False
            case ast.Return():
                if _mentions(stmt, err):
                    return False
            case ast.Assign() | ast.Branch():
                pass
            case _:
                return False
    return True


def _mentions(node: ast.Call | ast.Return, err: str) -> bool:
    return any(isinstance(part, ast.Ident) and part.name == err for part in walk(node))


# --- L16 --------------------------------------------------------------------------------------------


def _find_busy(tree: Tree) -> Iterator[Finding]:
    for site in sites(tree, b"Gosched()", b"time.Sleep(", in_body=(b"for ",)):
        loop = site.nearest(ast.For)
        what = _asked(tree, site.path, loop) if isinstance(loop, ast.For) else None
        if isinstance(loop, ast.For) and what is not None:
            message = f"asks again and again whether {what}, with nothing that ends it"
            instruction = "wait for a channel that is closed when it is there, or poll with the context"
            verdict = by_hand("what would have to be waited for is not known", instruction)
            yield hazard("L16", site, Span(loop.span.start, loop.body.span.start), message, verdict, "busy")


def _asked(tree: Tree, path: str, loop: ast.For) -> str | None:
    match loop:
        case ast.For(exprs=(ast.Binary(op="==", x=x, y=ast.Ident(name="nil")),), body=body):
            return f"{tree.text(path, x.span)} is there" if _only_rests(tree, path, body.stmts) else None
        case ast.For(exprs=(), body=ast.Block(stmts=(ast.Select(cases=cases),))):
            resting = [case for case in cases if case.default and case.body and _only_rests(tree, path, case.body)]
            return "a channel has something" if resting else None
        case _:
            return None


def _only_rests(tree: Tree, path: str, stmts: tuple[ast.Stmt, ...]) -> bool:
    """Tell whether statements do nothing but rest, and say so."""
    for stmt in stmts:
        if not isinstance(stmt, ast.ExprStmt) or not isinstance(stmt.x, ast.Call):
            return False
        if tree.calls(path, stmt.x) not in (_SLEEP, _YIELD) and not _LOGS.fullmatch(name_of(stmt.x)):
            return False
    return True


# --- L17 --------------------------------------------------------------------------------------------


def _find_deaf(tree: Tree) -> Iterator[Finding]:
    yield from _deaf_loops(tree)
    yield from _deaf_polls(tree)


def _deaf_loops(tree: Tree) -> Iterator[Finding]:
    seen: set[tuple[str, Span]] = set()
    for site in sites(tree, b"time.Sleep(", b".C {", b"time.Tick(", in_file=(_CONTEXT,)):
        loop = site.nearest(ast.For)
        if not isinstance(loop, ast.For) or (site.path, loop.span) in seen:
            continue
        if _HEEDS_CONTEXT.search(tree.data(site.path), loop.span.start, _round_end(tree, site, loop)):
            continue
        ctx = _fix.context_at(tree, site)
        if ctx is None and not _is_given_context(tree, site):
            continue
        if _ticks(tree, site.path, loop):
            message, verdict = "the ticks of this loop do not end with the context", _selecting(tree, site, loop, ctx)
        elif _sleeps(tree, site, loop):
            message, verdict = "this loop sleeps on when the context has ended", _waking(tree, site, ctx)
        else:
            continue
        seen.add((site.path, loop.span))
        yield hazard("L17", site, Span(loop.span.start, loop.body.span.start), message, verdict, "deaf-loop")


def _round_end(tree: Tree, site: Site, loop: ast.For) -> int:
    """Return where the round that the place is in ends: a branch that continues ends it early."""
    branch = site.nearest(ast.If)
    if isinstance(branch, ast.If) and loop.span.contains(branch.span) and branch.then.span.contains(site.span):
        last = branch.then.stmts[-1].span
        if tree.text(site.path, last).startswith("continue"):
            return last.end
    return loop.span.end


def _is_given_context(tree: Tree, site: Site) -> bool:
    """Tell whether a function around the place has a context parameter, be it one that it throws away."""
    return any(
        tree.named_type(TypeRef(param.type, site.path)) == _fix.CONTEXT
        for node in site.outer
        if isinstance(node, ast.FuncDecl | ast.FuncLit)
        for param in node.params
    )


def _ticks(tree: Tree, path: str, loop: ast.For) -> bool:
    match loop.exprs:
        case (ast.Selector(name="C"),):
            return "range" in tree.text(path, loop.header).split()
        case (ast.Call() as call,):
            return tree.calls(path, call) == ast.PackageObject("time", "Tick")
        case _:
            return False


def _sleeps(tree: Tree, site: Site, loop: ast.For) -> bool:
    """Tell whether a loop without a bound of its own sleeps between its rounds."""
    header = tree.text(site.path, loop.header)
    stmt = site.nearest(ast.ExprStmt)
    if ";" in header or "range" in header.split() or not isinstance(stmt, ast.ExprStmt):
        return False
    return isinstance(stmt.x, ast.Call) and tree.calls(site.path, stmt.x) == _SLEEP


def _waking(tree: Tree, site: Site, ctx: str | None) -> Rewrite | Manual:
    """Make the sleep a select that the end of the context cuts short."""
    wanted = "sleep in a select with a case for the end of the context, which must leave"
    stmt = site.nearest(ast.ExprStmt)
    leave = _left(tree, site, ctx, wanted)
    if isinstance(leave, Manual) or not isinstance(stmt, ast.ExprStmt) or not isinstance(stmt.x, ast.Call):
        return leave if isinstance(leave, Manual) else by_hand("the sleep is part of another statement", wanted)
    after = f"case <-{tree.text(site.path, stmt.x.fun.span).removesuffix('Sleep')}After({_args(tree, site, stmt.x)}):"
    lines = ("select {", f"case <-{ctx}.Done():", f"\t{leave}", after, "}")
    return Rewrite((_fix.statement(tree, site.path, stmt.span, *lines),))


def _selecting(tree: Tree, site: Site, loop: ast.For, ctx: str | None) -> Rewrite | Manual:
    """Make a loop over ticks an endless one that selects between a tick and the end of the context."""
    wanted = "select between the tick and the end of the context, which must leave"
    leave = _left(tree, site, ctx, wanted)
    header = tree.text(site.path, loop.header)
    if isinstance(leave, Manual):
        return leave
    if not loop.body.stmts or ":=" in header or tree.comments_in(site.path, loop.header):
        return by_hand("the tick itself is used", wanted)
    ticks = tree.text(site.path, loop.exprs[0].span)
    first = loop.body.stmts[0].span
    lines = ("select {", f"case <-{ctx}.Done():", f"\t{leave}", f"case <-{ticks}:", "}")
    return Rewrite((Edit(site.path, loop.header, b" "), _fix.before(tree, site.path, first, *lines)))


def _left(tree: Tree, site: Site, ctx: str | None, wanted: str) -> str | Manual:
    if ctx is None:
        return by_hand("the context is thrown away", f"give the parameter a name; {wanted}")
    return _fix.way_out(tree, site, f"{ctx}.Err()", wanted)


def _args(tree: Tree, site: Site, call: ast.Call) -> str:
    return tree.text(site.path, call.args_span)


_PLAIN = frozenset("Poll PollImmediate PollInfinite PollImmediateInfinite ExponentialBackoff".split())


def _deaf_polls(tree: Tree) -> Iterator[Finding]:
    for site in sites(tree, b"wait.", in_file=(_CONTEXT,)):
        call = next((node for node in reversed(site.inside) if isinstance(node, ast.Call)), None)
        found = tree.calls(site.path, call) if call is not None and call.fun.span.contains(site.span) else None
        if call is None or not isinstance(found, ast.PackageObject) or found.package != WAIT_PACKAGE:
            continue
        if found.name in _PLAIN and _is_given_context(tree, site):
            message = f"wait.{found.name} does not end with the context"
            instruction = "use wait.PollUntilContextTimeout or wait.PollUntilContextCancel with it"
            verdict = by_hand("which of the two is right depends on who waits", instruction)
            yield hazard("L17", site, call.fun.span, message, verdict, "deaf-poll")
        callback = call.args[-1] if call.args else None
        outer = _thrown_away(tree, site, callback) if isinstance(callback, ast.FuncLit) else None
        if outer is not None and isinstance(callback, ast.FuncLit):
            name, param = outer
            message = f"the callback throws its context away and uses {name} from outside, which a timeout does not end"
            named = Rewrite((_fix.named(site.path, param, name),))
            yield hazard("L17", site, param.span, message, named, "deaf-callback")


def _thrown_away(tree: Tree, site: Site, callback: ast.FuncLit) -> tuple[str, ast.Param] | None:
    """Return the outer context that a callback uses in place of its own, and its own parameter."""
    if len(callback.params) != 1 or tree.named_type(TypeRef(callback.params[0].type, site.path)) != _fix.CONTEXT:
        return None
    (param,) = callback.params
    ctx = _fix.context_at(tree, site)
    if ctx is None or any(ident.name != "_" for ident in param.names):
        return None
    used = re.search(
        rb"\b" + ctx.encode() + rb"\b", tree.data(site.path)[callback.body.span.start : callback.body.span.end]
    )
    return (ctx, param) if used else None


LOST_WAIT_REASON = Rule(
    id="L10",
    name="lost-wait-reason",
    severity="warning",
    summary="A wait goes on after an error and tells nobody which one it was.",
    why="""
The apiserver may be refusing connections, answer 500 with a list of failed checks, or present the wrong certificate: a
log that says "waiting" every few seconds, or nothing for a quarter of an hour, does not tell them apart. An error that
is only kept for the end of the wait is as good as lost for who looks at the log meanwhile.
""",
    cases=(2, 61, 92),
    bad=(
        Example(
            "the same words at each try, and an error that is kept for later",
            """package control

import (
	"context"
	"errors"
	"time"

	"example.com/k/pkg/util"
	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/util/wait"
)

func watch(ctx context.Context) error {
	for {
		if err := util.WaitForAPIServerReady(ctx, 30*time.Second); err != nil { // hazard
			logrus.Info("Waiting for API server to become available")
			continue
		}
		break
	}
	var lastErr error
	return wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		err := review(ctx)
		if err != nil { // hazard
			lastErr = errors.Join(errors.New("no access"), err)
			return false, nil
		}
		return true, lastErr
	})
}
""",
        ),
    ),
    good=(
        Example(
            "the error is logged, returned, or not the only thing that is asked",
            """package control

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/util/wait"
)

func watch(ctx context.Context, items []string) error {
	for _, item := range items {
		if err := use(item); err != nil {
			continue
		}
	}
	return wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		if err := review(ctx); err != nil {
			logrus.Infof("Waiting for access: %v", err)
			return false, nil
		}
		if err := get(ctx); err != nil && isNotFound(err) {
			return false, nil
		}
		return true, nil
	})
}
""",
        ),
    ),
    find=_find_lost_reason,
)

BUSY_POLL = Rule(
    id="L16",
    name="busy-or-nil-poll",
    severity="warning",
    summary="A loop asks again and again, with only a yield or a sleep in between.",
    why="""
Asking whether a field is still nil is a data race, and a loop with `runtime.Gosched` keeps a core busy until somebody
sets the field; where nobody does, because the node is of another kind, it is busy for ever.
""",
    cases=(54, 70, 90),
    bad=(
        Example(
            "a core is busy until the agent has bootstrapped, and on a node without one for ever",
            """package executor

import "runtime"

func (e *Embedded) Scheduler(ready <-chan struct{}) error {
	for e.nodeConfig == nil { // hazard
		runtime.Gosched()
	}
	for { // hazard
		select {
		case <-ready:
			return e.run()
		default:
			runtime.Gosched()
		}
	}
}
""",
        ),
    ),
    good=(
        Example(
            "a wait that costs nothing, and a loop that does something",
            """package executor

import (
	"context"
	"time"
)

func (e *Embedded) Scheduler(ctx context.Context, ready <-chan struct{}) error {
	for e.client == nil {
		e.client = e.dial()
		time.Sleep(time.Second)
	}
	for {
		select {
		case <-ready:
			return e.run()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
""",
        ),
    ),
    find=_find_busy,
)

WAIT_IGNORES_CTX = Rule(
    id="L17",
    name="wait-ignores-ctx",
    severity="warning",
    summary="A function that has a context waits in a loop or a poll that does not end with it.",
    why="""
A node that is told to stop while it waits for another one does not: the loop ticks on, and what waits for it hangs
until the unit manager kills the process. A poll callback that uses the context from outside outlives the poll's own
limit.
""",
    cases=(17, 21, 44, 71, 74, 86),
    fix="a select with a case for the end of the context; the callback's own context gets the name of the outer one",
    bad=(
        Example(
            "ticks, a sleep, and a step that outlives the limit of its poll",
            """package etcd

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

func manage(ctx context.Context, ready func(context.Context) error) error {
	go func() {
		for { // hazard
			sync()
			time.Sleep(5 * time.Second)
		}
	}()
	if err := wait.PollUntilContextCancel(ctx, time.Second, true, func(_ context.Context) (bool, error) { // hazard
		return ready(ctx) == nil, nil
	}); err != nil {
		return err
	}
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for range t.C { // hazard
		promote()
	}
	return nil
}
""",
            fixed="""package etcd

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

func manage(ctx context.Context, ready func(context.Context) error) error {
	go func() {
		for {
			sync()
			select {
			case <-ctx.Done():
				return
			case <-time.After(5 * time.Second):
			}
		}
	}()
	if err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		return ready(ctx) == nil, nil
	}); err != nil {
		return err
	}
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
		}
		promote()
	}
	return nil
}
""",
            path="pkg/etcd/etcd.go",
        ),
        Example(
            "a poll of the old kind, and a context that is thrown away",
            """package etcd

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

func join(ctx context.Context) error {
	return wait.PollImmediate(time.Second, time.Minute, func() (bool, error) { // hazard
		return ready(ctx), nil
	})
}

func start(_ context.Context, sync func()) {
	for { // hazard
		sync()
		time.Sleep(time.Second)
	}
}
""",
            path="pkg/etcd/etcd.go",
        ),
    ),
    good=(
        Example(
            "loops that heed the context, or have a bound of their own, and a callback that needs none",
            """package etcd

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

func manage(ctx context.Context, t *time.Ticker) error {
	for range t.C {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		promote()
	}
	for i := 0; i < 3; i++ {
		time.Sleep(time.Second)
	}
	return wait.PollUntilContextCancel(ctx, time.Second, true, func(context.Context) (bool, error) {
		return exists("socket"), nil
	})
}

func withoutContext() {
	for {
		time.Sleep(time.Second)
	}
}
""",
            path="pkg/etcd/etcd.go",
        ),
    ),
    find=_find_deaf,
)
