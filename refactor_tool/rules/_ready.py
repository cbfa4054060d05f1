"""Readiness channels, the calls that wait for something, and the calls that start a component."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from refactor_tool.gosrc import ast
from refactor_tool.gosrc.tree import Tree
from refactor_tool.gosrc.walk import name_of, statement, trail
from refactor_tool.model import Span
from refactor_tool.record import record
from refactor_tool.rules._code import Site, sites
from refactor_tool.rules._flow import deferred_calls, received

_DEFERS_CLOSE = re.compile(rb"\bdefer (?:func\(\) \{[^}]*)?\bclose\(")
_SAME_LINE_DONE = re.compile(rb"<-[ \t]*[\w.]*\.Done\(\)")

#: What starts a component or makes the node ready for it, on every executor and in the package of that name.
START_METHODS = frozenset(
    "Bootstrap Kubelet KubeProxy APIServerHandlers APIServer Scheduler ControllerManager CurrentETCDOptions ETCD"
    " CloudControllerManager Containerd Docker CRI CNI".split()
)
WAIT_PACKAGE = "k8s.io/apimachinery/pkg/util/wait"
CACHE_PACKAGE = "k8s.io/client-go/tools/cache"
EXECUTOR_FOLDER = "/pkg/daemons/executor"

#: Part of every call that waits, as far as a byte search can tell.
WAIT_WORDS = (b"aitFor", b"WaitReady", b"Poll", b"poll", b"ExponentialBackoff")

_SAYS_READY = re.compile(r"(?:(?<![Aa]l)ready|Ready)")
_WAITS = re.compile(r"[Ww]aitFor\w+|WaitReady|poll[A-Z]\w*|Poll\w*")
_POLLS = re.compile(rb"\bwait\.(?:Poll|ExponentialBackoff)\w*\(")


def says_ready(name: str) -> bool:
    """Tell whether a name speaks of readiness."""
    return _SAYS_READY.search(name) is not None


def ready_channel(tree: Tree, path: str, expr: ast.Expr) -> str | None:
    """Return how a readiness channel is written where `expr` is one, else None.

    That is what a `...ReadyChan` function gives out, a `chan struct{}` whose name says ready, or a local or parameter
    that one of these was given to.
    """
    return tree.text(path, expr.span) if _is_ready(tree, path, expr, 2) else None


def _is_ready(tree: Tree, path: str, expr: ast.Expr, depth: int) -> bool:
    match expr:
        case ast.Paren(x=inner):
            return _is_ready(tree, path, inner, depth)
        case ast.Call(fun=ast.Ident(name=name) | ast.Selector(name=name)):
            return name.endswith("ReadyChan")
        case ast.Ident(name=name) | ast.Selector(name=name):
            if says_ready(name):
                return _may_signal(tree, path, expr)
            return depth > 0 and isinstance(expr, ast.Ident) and _was_given(tree, path, expr, depth - 1)
        case _:
            return False


def _may_signal(tree: Tree, path: str, expr: ast.Expr) -> bool:
    """Tell whether an expression is a `chan struct{}`, as far as its type is known."""
    declared = tree.type_of(path, expr)
    if declared is None:
        return not isinstance(tree.resolve(path, expr), ast.PackageObject | ast.PackageName)
    match declared.expr:
        case ast.ChanType(element=ast.StructType(fields=())):
            return True
        case _:
            return False


def _was_given(tree: Tree, path: str, name: ast.Ident, depth: int) -> bool:
    """Tell whether a local was made from a readiness channel, or a parameter gets one from any caller."""
    found = tree.resolve(path, name)
    if not isinstance(found, ast.LocalObject):
        return False
    decl = tree.function_at(path, found.at.start)
    if decl is None:
        return False
    if found.kind == "param":
        return _may_signal(tree, path, name) and _gets_ready(tree, path, decl, found.at, depth)
    made = statement(trail(tree.function(path, decl), found.at))
    match made:
        case ast.Assign(rhs=(ast.Call(fun=ast.Ident(name="make")),)):
            return _is_kept_as_ready(tree, path, decl, name.name)
        case ast.Assign(lhs=lhs, rhs=rhs) if len(lhs) == len(rhs):
            pairs = zip(lhs, rhs, strict=True)
            return any(left.span == found.at and _is_ready(tree, path, right, depth) for left, right in pairs)
        case _:
            return False


def _is_kept_as_ready(tree: Tree, path: str, decl: ast.FuncDecl, name: str) -> bool:
    """Tell whether a function stores a local under a name that says ready, as in `runtime.APIServerReady = done`."""
    stored = re.compile(rb"(?m)^[ \t]*[\w.]*[Rr]eady(?:Chan|Ch)? = " + re.escape(name.encode()) + rb"\r?$")
    return stored.search(tree.data(path), decl.span.start, decl.span.end) is not None


def _gets_ready(tree: Tree, path: str, decl: ast.FuncDecl, param: Span, depth: int) -> bool:
    index = next((at for at, ident in enumerate(_params(decl)) if ident.span == param), None)
    if index is None:
        return False
    package = tree.package_of(path)
    target: ast.PackageObject | ast.FieldObject = (
        ast.PackageObject(package, decl.name)
        if decl.receiver is None
        else ast.FieldObject(package, decl.receiver_type, decl.name)
    )
    for use in tree.callers(target):
        call = tree.call_at(use.path, use.qualified) if use.role == "call" else None
        if call is not None and index < len(call.args) and _is_ready(tree, use.path, call.args[index], depth):
            return True
    return False


def _params(decl: ast.FuncDecl) -> list[ast.Ident]:
    return [ident for param in decl.params for ident in param.names]


@record
class BareReceive:
    """A receive from a readiness channel that nothing else can end, and the channel as written."""

    site: Site
    receive: ast.Unary
    channel: str


def bare_receives(tree: Tree, paths: Collection[str] | None = None) -> Iterator[BareReceive]:
    """Yield the bare receives of readiness, in all files or those of `paths`."""
    bounded: dict[tuple[str, Span], bool] = {}  # one select may have thousands of cases
    for site in sites(tree, b"<-", in_file=(b"eady",), keep=_may_wait, paths=paths):
        receive = site.inside[-1] if site.inside else None
        if not isinstance(receive, ast.Unary) or receive.op != "<-":
            continue
        select = _select_of(site)
        if select is not None:
            key = (site.path, select.span)
            if key not in bounded:
                bounded[key] = _is_bounded(tree, site.path, select)
            if bounded[key]:
                continue
        channel = ready_channel(tree, site.path, receive.x)
        if channel is not None:
            yield BareReceive(site, receive, channel)


def _may_wait(data: bytes, at: int) -> bool:
    is_type = data.startswith(b"<-chan", at) or data[at - 4 : at] == b"chan"
    return not is_type and _SAME_LINE_DONE.match(data, at) is None


def _select_of(site: Site) -> ast.Select | None:
    """Return the select that the receive is a case of."""
    case, select = site.nearest(ast.Case), site.nearest(ast.Select)
    if not isinstance(case, ast.Case) or not isinstance(select, ast.Select):
        return None
    return select if case.comm is not None and case.comm.span.contains(site.span) else None


def _is_bounded(tree: Tree, path: str, select: ast.Select) -> bool:
    """Tell whether something else than readiness can end a select."""
    channels = [received(case.comm) for case in select.cases]
    return any(channel is None or ready_channel(tree, path, channel) is None for channel in channels)


def closed(call: ast.Expr) -> ast.Expr | None:
    """Return what a call closes, None for another call."""
    match call:
        case ast.Call(fun=ast.Ident(name="close"), args=(channel,)):
            return channel
        case _:
            return None


def deferred_close(tree: Tree, site: Site) -> str | None:
    """Return the readiness channel that the site's function closes however it ends, None where there is none.

    Crowded functions are not looked through: the time for that would grow with the square of their length.
    """
    body = site.function.body
    if site.crowded or body is None or not _DEFERS_CLOSE.search(tree.data(site.path), body.span.start, body.span.end):
        return None
    for call in deferred_calls(site.function):
        channel = closed(call)
        name = ready_channel(tree, site.path, channel) if channel is not None else None
        if name is not None:
            return name
    return None


# --- calls ------------------------------------------------------------------------------------------


def is_wait(tree: Tree, path: str, call: ast.Call) -> bool:
    """Tell whether a call waits for a state and has an error: a poll, a function named so, or one that polls itself."""
    name = name_of(call)
    if not name:
        return False
    match tree.calls(path, call):
        case ast.PackageObject(package=package, name=called) if package == WAIT_PACKAGE:
            return called.startswith(("Poll", "ExponentialBackoff", "WaitFor"))
        case ast.PackageObject(package=package, name=called):
            found = tree.functions(package, called)
        case ast.FieldObject(package=package, type=owner, name=called):
            found = tuple(item for item in tree.methods(package, owner) if item[1].name == called)
        case _:
            return _WAITS.fullmatch(name) is not None
    if not found:
        return _WAITS.fullmatch(name) is not None
    return any(
        gives_error(decl)
        and (_WAITS.fullmatch(name) or _POLLS.search(tree.data(where), decl.span.start, decl.span.end))
        for where, decl in found
    )


def gives_error(decl: ast.FuncDecl) -> bool:
    """Tell whether a function's last result is an error."""
    match decl.results:
        case (*_, ast.Param(type=ast.Ident(name="error"))):
            return True
        case _:
            return False


def in_executor(found: ast.Object) -> bool:
    """Tell whether something is declared at file level in k3s's executor package, in this tree or outside it."""
    return isinstance(found, ast.PackageObject) and found.package.endswith(EXECUTOR_FOLDER)


def is_executor_method(tree: Tree, path: str, decl: ast.FuncDecl) -> bool:
    """Tell whether a declaration is a start method of an executor: a type that has most of the start methods."""
    if decl.name not in START_METHODS or not decl.receiver_type:
        return False
    named = {method.name for _, method in tree.methods(tree.package_of(path), decl.receiver_type)}
    return 2 * len(named & START_METHODS) > len(START_METHODS)
