"""L08: a goroutine that ends the whole process by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator

from refactor_tool.gosrc import ast
from refactor_tool.gosrc.tree import Tree
from refactor_tool.gosrc.walk import name_of
from refactor_tool.gosrc.words import word_places
from refactor_tool.model import Finding, Manual, NeedImport, Rewrite
from refactor_tool.rule import Example, Rule
from refactor_tool.rules import _fix
from refactor_tool.rules._code import Site, by_hand, hazard, is_test, sites, sources

_GO = b"\tgo "
_EXITS = (b"Fatal", b".Exit", b"panic(")
_LOGGER = re.compile(r"(?:^|/)(?:logrus|klog|glog|log|zap)(?:/v\d+)?\Z")
_STARTS = re.compile(rb"[ \t]*go (?:\w+\.)*")
_SIGNALS = "pkg/signals"


def _find(tree: Tree) -> Iterator[Finding]:
    started: dict[tuple[str, str, str], bool] = {}
    for site in sites(tree, *_EXITS, paths=_with_goroutines(tree)):
        call = next((node for node in reversed(site.inside) if isinstance(node, ast.Call)), None)
        if call is None or site.span.start >= call.fun.span.end or f"/{_SIGNALS}/" in f"/{site.path}":
            continue
        if not _ends_process(tree, site.path, call) or _recovers(tree, site):
            continue
        if not _is_goroutine(site) and not _is_started(tree, site, started):
            continue
        what = tree.text(site.path, call.fun.span).split("\n", 1)[0]
        message = f"{what} in a goroutine ends the process before other components have stopped"
        yield hazard("L08", site, call.span, message, _fixed(tree, site, call), "exit")


def _with_goroutines(tree: Tree) -> set[str]:
    """Return the files of packages in which some file starts a goroutine."""
    folders = {path.rpartition("/")[0] for path in sources(tree, _GO)}
    return {path for path in sources(tree, *_EXITS) if path.rpartition("/")[0] in folders}


def _ends_process(tree: Tree, path: str, call: ast.Call) -> bool:
    name = name_of(call)
    match call.fun:
        case ast.Ident(name="panic"):
            return isinstance(tree.resolve(path, call.fun), ast.UnknownObject)
        case ast.Selector():
            found = tree.resolve(path, call.fun)
            if isinstance(found, ast.PackageObject):
                is_log = _LOGGER.search(found.package) is not None
                return (found.package, name) == ("os", "Exit") or (is_log and name.startswith(("Fatal", "Exit")))
            return name.startswith("Fatal") and _is_entry(tree, path, call.fun.x)
        case _:
            return False


def _is_entry(tree: Tree, path: str, expr: ast.Expr) -> bool:
    """Tell whether an expression is a logger with fields, such as `logrus.WithError(err)`."""
    match expr:
        case ast.Call(fun=ast.Selector(x=ast.Call() as inner)):
            return _is_entry(tree, path, inner)
        case ast.Call(fun=ast.Selector() as maker):
            found = tree.resolve(path, maker)
            return isinstance(found, ast.PackageObject) and _LOGGER.search(found.package) is not None
        case _:
            return False


def _recovers(tree: Tree, site: Site) -> bool:
    """Tell whether the place is in a handler of a panic: the process is lost there anyhow."""
    bodies = (node.body for node in site.outer if isinstance(node, ast.FuncLit))
    return any("recover()" in tree.text(site.path, body.span) and _is_deferred(site, body) for body in bodies)


def _is_deferred(site: Site, body: ast.Block) -> bool:
    return any(
        isinstance(node, ast.Defer)
        and isinstance(node.call, ast.Call)
        and isinstance(node.call.fun, ast.FuncLit)
        and node.call.fun.body is body
        for node in site.outer
    )


def _is_goroutine(site: Site) -> bool:
    """Tell whether the place is in a literal that a go statement runs, itself or through what it passes it to."""
    return any(isinstance(node, ast.Go) for node in site.outer)


def _is_started(tree: Tree, site: Site, known: dict[tuple[str, str, str], bool]) -> bool:
    """Tell whether a go statement of its package runs the site's function."""
    decl, package = site.decl, tree.package_of(site.path)
    key = (package, decl.receiver_type, decl.name)
    if key not in known:
        known[key] = any(_starts(tree, path, decl.name, key) for path in tree.package_files(package))
    return known[key]


def _starts(tree: Tree, path: str, name: str, target: tuple[str, str, str]) -> bool:
    data = tree.data(path)
    if _GO not in data or is_test(path):
        return False
    calls = (place for place in word_places(data, name.encode()) if data.startswith(b"(", place.end))
    places = [at for at in calls if _STARTS.fullmatch(data, data.rfind(b"\n", 0, at.start) + 1, at.start)]
    for use in tree.occurrences_at(path, places):
        match use.object:
            case ast.PackageObject(package=package, name=called) if (package, "", called) == target:
                return True
            case ast.FieldObject(package=package, type=owner, name=called) if (package, owner, called) == target:
                return True
            case _:
                pass
    return False


def _fixed(tree: Tree, site: Site, call: ast.Call) -> Rewrite | Manual:
    wanted = "request a shutdown with the error, and leave the goroutine"
    stmt = site.nearest(ast.ExprStmt)
    name = name_of(call)
    if name not in ("Fatalf", "Fatal") or not isinstance(stmt, ast.ExprStmt) or stmt.x is not call:
        return by_hand("which error the node should end with is not known", wanted)
    if site.function.results or not _is_run_by_go(site):
        return by_hand("it is not the goroutine's own function that is left here", wanted)
    package = f"{tree.module}/{_SIGNALS}"
    if not tree.functions(package, "RequestShutdown"):
        return by_hand("the tree has no way to request a shutdown", "hand the error to who started the goroutine")
    leave = _fix.way_out(tree, site, "", wanted)
    if isinstance(leave, Manual):
        return leave
    signals = tree.qualify(site.path, package, "signals", site.span.start)
    fmt = tree.qualify(site.path, "fmt", "fmt", site.span.start)
    args = tree.text(site.path, call.args_span)
    if signals is None or fmt is None or "\n" in args or tree.comments_in(site.path, stmt.span):
        return by_hand("signals or fmt cannot be named here, or the message has several lines", wanted)
    if name == "Fatal":
        args = f'"%s", {fmt.prefix}Sprint({args})'
    lines = [f"{signals.prefix}RequestShutdown({fmt.prefix}Errorf({args}))"]
    body = site.function.body
    if body is None or stmt is not body.stmts[-1]:
        lines.append(leave)
    needs = tuple(NeedImport(site.path, *found.need) for found in (signals, fmt) if found.need is not None)
    return Rewrite((_fix.statement(tree, site.path, stmt.span, *lines), *needs))


def _is_run_by_go(site: Site) -> bool:
    """Tell whether the function around the place is the very literal of a go statement."""
    return any(
        isinstance(node, ast.Go) and isinstance(node.call, ast.Call) and node.call.fun is site.function
        for node in site.outer
    )


FATAL_IN_GOROUTINE = Rule(
    id="L08",
    name="fatal-in-goroutine",
    severity="warning",
    summary="A goroutine ends the whole process with Fatal, os.Exit or a panic.",
    why="""
The process ends at once: no deferred call runs, etcd or kine are not flushed, other components do not drain, and a
container or unit manager sees a crash. A goroutine should say that the node has to stop and return. The handler of a
recovered panic is left alone, and so is the package that handles the shutdown itself.
""",
    cases=(2, 16),
    fix="`signals.RequestShutdown` with the message as its error, and a return",
    bad=(
        Example(
            "one component that cannot start takes the datastore with it",
            """package control

import (
	"context"

	"github.com/sirupsen/logrus"
)

func start(ctx context.Context, command Command) {
	go func() {
		if err := command.ExecuteContext(ctx); err != nil {
			logrus.Fatalf("component exited: %v", err) // hazard
		}
		logrus.Info("component stopped")
	}()
}
""",
            fixed="""package control

import (
	"context"
	"fmt"

	"example.com/m/pkg/signals"
	"github.com/sirupsen/logrus"
)

func start(ctx context.Context, command Command) {
	go func() {
		if err := command.ExecuteContext(ctx); err != nil {
			signals.RequestShutdown(fmt.Errorf("component exited: %v", err))
			return
		}
		logrus.Info("component stopped")
	}()
}
""",
            others=(
                (
                    "pkg/signals/signals.go",
                    "package signals\n\nfunc RequestShutdown(err error) bool { return err == nil }\n",
                ),
            ),
        ),
        Example(
            "a function that is started elsewhere in its package",
            """package control

import (
	"os"

	log "github.com/sirupsen/logrus"
)

func start() {
	go serve()
}

func serve() {
	if err := listen(); err != nil {
		log.WithError(err).Fatal("no listener") // hazard
	}
	os.Exit(0) // hazard
}
""",
        ),
    ),
    good=(
        Example(
            "a handler of panics, a goroutine that asks for the shutdown, and a start that nothing runs beside",
            """package control

import (
	"context"

	"example.com/k/pkg/signals"
	"github.com/sirupsen/logrus"
)

func start(ctx context.Context, command Command) {
	if command == nil {
		logrus.Fatal("nothing to run")
	}
	go func() {
		defer func() {
			if err := recover(); err != nil {
				logrus.Fatalf("component panic: %v", err)
			}
		}()
		if err := command.ExecuteContext(ctx); err != nil {
			signals.RequestShutdown(err)
		}
	}()
}
""",
        ),
    ),
    find=_find,
)
