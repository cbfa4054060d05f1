"""L07, L14 and D3: what is started or used before what it needs is there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from refactor_tool.gosrc import ast
from refactor_tool.gosrc.tree import Tree
from refactor_tool.gosrc.walk import Node, name_of
from refactor_tool.model import Finding, Span
from refactor_tool.rule import Example, Rule
from refactor_tool.rules._changes import changed_paths
from refactor_tool.rules._code import Site, by_hand, hazard, site_at, sites
from refactor_tool.rules._flow import before, own
from refactor_tool.rules._ready import START_METHODS, in_executor
from refactor_tool.rules._starts import ENTRIES, FOLDERS, Start, starts

# --- L07 --------------------------------------------------------------------------------------------

#: Executor functions that may be called before Bootstrap: they set it up, or ask what it is.
_EARLY = frozenset({"Bootstrap", "CurrentETCDOptions"})
_READYZ = b'readyz"'
_CALLED = re.compile(rb"\b([A-Za-z_]\w*)\(")
_WAITS_FOR_CRI = re.compile(rb"<-[ \t]*[\w.]*(?:[cC][rR][iI]|ContainerRuntime)Ready\w*")
#: What connects to the container runtime as soon as it is called: the end of its package's path, and its name.
_NEEDS_CRI = frozenset({("spegel/pkg/oci", "NewContainerd"), ("/containerd", "New"), ("/agent/cri", "Connection")})


def _before_bootstrap(tree: Tree) -> Iterator[Finding]:
    for found in sites(tree, b"Bootstrap(", in_body=(b"executor",)):
        site = site_at(found.path, tree.function(found.path, found.decl), found.span)
        bootstrap = site.inside[-1] if site is not None else None
        if site is None or not isinstance(bootstrap, ast.Call) or not _is_bootstrap(tree, site.path, bootstrap):
            continue
        for call in _earlier_calls(site, bootstrap):
            why = _needs_bootstrap(tree, site.path, call)
            if why is not None:
                message = f"{name_of(call)} runs before executor.Bootstrap: it {why}"
                instruction = "call it after Bootstrap, or from a goroutine that waits for what it needs"
                verdict = by_hand("what else depends on this order cannot be told", instruction)
                yield hazard("L07", site, call.span, message, verdict, "before-bootstrap")


def _is_bootstrap(tree: Tree, path: str, call: ast.Call) -> bool:
    return name_of(call) == "Bootstrap" and in_executor(tree.calls(path, call))


def _earlier_calls(site: Site, bootstrap: ast.Call) -> Iterator[ast.Call]:
    """Yield what the function itself calls before, goroutines and literals left out."""
    body = site.function.body
    if body is not None:
        for node in own(body):
            if isinstance(node, ast.Call) and node.span.end <= bootstrap.span.start:
                yield node


def _needs_bootstrap(tree: Tree, path: str, call: ast.Call) -> str | None:
    found, name = tree.calls(path, call), name_of(call)
    if not isinstance(found, ast.PackageObject):
        return None
    if in_executor(found):
        needs = (name in START_METHODS or name.endswith("ReadyChan")) and name not in _EARLY
        return "asks an executor that has made nothing yet" if needs else None
    if any(_READYZ in tree.data(file) for file in tree.package_files(found.package)) and _asks_readyz(tree, found, 2):
        return "waits for the readiness of a server that may itself wait for Bootstrap"
    return None


def _asks_readyz(tree: Tree, function: ast.PackageObject, depth: int) -> bool:
    """Tell whether a function, or what it calls in its own package, asks for /readyz."""
    for path, decl in tree.functions(function.package, function.name):
        data = tree.data(path)
        if _READYZ in data[decl.span.start : decl.span.end]:
            return True
        called = (
            {found.decode() for found in _CALLED.findall(data, decl.signature.end, decl.span.end)} if depth else set()
        )
        if any(_asks_readyz(tree, ast.PackageObject(function.package, name), depth - 1) for name in sorted(called)):
            return True
    return False


def _before_runtime(tree: Tree) -> Iterator[Finding]:
    """Find a call that connects to the container runtime in a function that waits for it elsewhere."""
    for site in sites(tree, b"NewContainerd(", b"containerd.New(", b"cri.Connection(", in_body=(b"Ready",)):
        call = next((node for node in reversed(site.inside) if isinstance(node, ast.Call)), None)
        found = tree.calls(site.path, call) if call is not None else None
        if call is None or not isinstance(found, ast.PackageObject):
            continue
        if not any(found.package.endswith(package) and found.name == name for package, name in _NEEDS_CRI):
            continue
        data = tree.data(site.path)
        waits = _WAITS_FOR_CRI.search(data, site.decl.span.start, site.decl.span.end)
        earlier = [stmt for node in (*site.outer, *site.inside) for stmt in before(node, call.span)]
        if waits and not any(_WAITS_FOR_CRI.search(data, stmt.span.start, stmt.span.end) for stmt in earlier):
            message = f"{name_of(call)} connects to the container runtime, for which this function waits only later"
            instruction = "connect after the wait, or use a client that connects on first use"
            verdict = by_hand("what else depends on this order cannot be told", instruction)
            yield hazard("L07", site, call.span, message, verdict, "before-runtime")


def _use_before_bootstrap(tree: Tree) -> Iterator[Finding]:
    yield from _before_bootstrap(tree)
    yield from _before_runtime(tree)


# --- L14 --------------------------------------------------------------------------------------------

_GO = re.compile(rb"\bgo[ \t]")


def _late_init(tree: Tree) -> Iterator[Finding]:
    for site in sites(tree, b" = &", b" = new(", b" = make(", in_body=(b"\tgo ",)):
        stmt = site.nearest(ast.Assign)
        if not isinstance(stmt, ast.Assign) or len(stmt.lhs) != 1 or not isinstance(stmt.lhs[0], ast.Selector):
            continue
        field = stmt.lhs[0]
        earlier = (step for node in site.inside for step in before(node, stmt.span))
        if any(_launches_user(tree, site, step, field) for step in earlier):
            name = tree.text(site.path, field.span)
            message = f"{name} is made here, after a goroutine that uses it was started"
            verdict = by_hand("what else depends on this order cannot be told", f"make {name} before the go statement")
            yield hazard("L14", site, stmt.span, message, verdict, "late-init")


def _launches_user(tree: Tree, site: Site, earlier: ast.Stmt, field: ast.Selector) -> bool:
    """Tell whether a statement starts a goroutine that mentions a field, itself or in what it calls."""
    if not _GO.search(tree.data(site.path), earlier.span.start, earlier.span.end):
        return False
    start = earlier.span.start
    found = site_at(site.path, site.decl, Span(start, start))
    return found is not None and any(
        isinstance(node, ast.Go) and isinstance(node.call, ast.Call) and _uses(tree, site.path, node.call, field)
        for node in _below(found, earlier.span)
    )


def _below(site: Site, span: Span) -> Iterator[Node]:
    for node in site.inside:
        if node.span == span:
            yield node
            yield from own(node)
            return


def _uses(tree: Tree, path: str, call: ast.Call, field: ast.Selector) -> bool:
    mention = re.compile(rb"\." + field.name.encode() + rb"\b")
    if isinstance(call.fun, ast.FuncLit):
        return _mentions(tree, path, call.fun.body.span, mention, 1)
    return any(_mentions(tree, where, decl.span, mention, 1) for where, decl in _declared(tree, tree.calls(path, call)))


def _mentions(tree: Tree, path: str, span: Span, mention: re.Pattern[bytes], depth: int) -> bool:
    """Tell whether the code of a span mentions a field, itself or in a function of the package that it calls."""
    data = tree.data(path)
    if mention.search(data, span.start, span.end):
        return True
    if not depth:
        return False
    package = tree.package_of(path)
    return any(
        _mentions(tree, where, decl.span, mention, depth - 1)
        for name in sorted(set(_CALLED.findall(data, span.start, span.end)))
        for where, decl in tree.functions(package, name.decode())
    )


def _declared(tree: Tree, found: ast.Object) -> tuple[tuple[str, ast.FuncDecl], ...]:
    match found:
        case ast.PackageObject(package=package, name=name):
            return tree.functions(package, name)
        case ast.FieldObject(package=package, type=owner, name=name):
            return tuple(item for item in tree.methods(package, owner) if item[1].name == name)
        case _:
            return ()


# --- D3 ---------------------------------------------------------------------------------------------


def _order_changed(old_tree: Tree, new_tree: Tree) -> Iterator[Finding]:
    if not any(path.rpartition("/")[0] in FOLDERS for paths in changed_paths(old_tree, new_tree) for path in paths):
        return
    for folder, name in ENTRIES:
        old = dict(old_tree.functions(f"{old_tree.module}/{folder}", name))
        for path, decl in new_tree.functions(f"{new_tree.module}/{folder}", name):
            full = new_tree.function(path, decl)
            site = site_at(path, full, full.body.span) if full.body is not None else None
            if path in old and site is not None:
                yield from _moves(site, starts(old_tree, path, old[path]), starts(new_tree, path, decl))


def _moves(site: Site, was: Sequence[Start], now: Sequence[Start]) -> Iterator[Finding]:
    """Tell of each call in an entry function whose starts are done at another time than before."""
    together = {start.name for start in was if not start.detached}
    still = {start.name for start in now if not start.detached}
    detached = {start.name: start for start in now if start.name in together - still}
    for place, names in _by_place(detached.values()):
        are = "are" if len(names) > 1 else "is"
        message = f"{_joined(names)} {are} started in a goroutine now: what follows does not wait for it"
        yield _needs_approval(site, place, message, "detached")
    old, new = ([start for start in starts if not start.detached] for starts in (was, now))
    first = _reordered(_once(old), _once(new))
    last = _reordered(_once(old[::-1])[::-1], _once(new[::-1])[::-1])
    told: set[str] = set()
    for place, names, order in (*first, *last):
        if not told.issuperset(names):
            told.update(names)
            yield _needs_approval(site, place, f"{_joined(names)} now {order}; it was the other way round", "moved")


def _once(found: Sequence[Start]) -> list[Start]:
    """Return the first start of each name."""
    return list({start.name: start for start in reversed(found)}.values())[::-1]


def _reordered(was: Sequence[Start], now: Sequence[Start]) -> list[tuple[Span, list[str], str]]:
    """Return the calls whose starts moved among those that both sides have: place, names, and where they are now."""
    order = [start.name for start in was]
    kept = [start for start in now if start.name in order]
    ranks = [order.index(start.name) for start in kept]
    stay = _longest_in_order(ranks)
    out = []
    for place, names in _by_place([start for at, start in enumerate(kept) if at not in stay]):
        at = next(at for at, start in enumerate(kept) if start.name == names[0])
        other = next(known for known in range(len(kept)) if (known < at) != (ranks[known] < ranks[at]) and known != at)
        out.append((place, names, f"{'after' if other < at else 'before'} {kept[other].name}"))
    return out


def _needs_approval(site: Site, place: Span, message: str, shape: str) -> Finding:
    reason = "the order of start-up is a contract that no test holds"
    return hazard("D3", site, place, message, by_hand(reason, "ask somebody who knows what waits for what"), shape)


def _by_place(found: Iterable[Start]) -> list[tuple[Span, list[str]]]:
    places: dict[Span, list[str]] = {}
    for start in found:
        places.setdefault(start.place, []).append(start.name)
    return list(places.items())


def _joined(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _longest_in_order(ranks: Sequence[int]) -> list[int]:
    """Return the places of a longest rising run of ranks, so that as few as can be count as moved."""
    runs: list[list[int]] = [[]]
    for at, rank in enumerate(ranks):
        longest: list[int] = []
        for run in runs:
            if len(run) > len(longest) and ranks[run[-1]] < rank:
                longest = run
        runs.append([*longest, at])
    return runs[max(range(len(runs)), key=lambda number: len(runs[number]))]


USE_BEFORE_BOOTSTRAP = Rule(
    id="L07",
    name="use-before-bootstrap",
    severity="error",
    summary="Something that needs the executor, or a runtime it starts, is used before it is there.",
    why="""
The channels behind readiness are made by `executor.Bootstrap`. A start, a wait or a request for a channel before it
gets a nil channel or a panic; a poll of the server's own /readyz before it waits for a server that waits for those
channels. A client of the container runtime that connects in its constructor fails while the runtime still starts.
""",
    cases=(22, 37),
    bad=(
        Example(
            "the agent of a server node waits for a server that waits for the agent",
            """package agent

import (
	"context"

	"example.com/k/pkg/daemons/executor"
	"example.com/m/pkg/agent/config"
)

func run(ctx context.Context, node *Node) error {
	disabled := config.KubeProxyDisabled(ctx, node) // hazard
	<-executor.CRIReadyChan() // hazard
	if err := executor.Bootstrap(ctx, node); err != nil {
		return err
	}
	return start(ctx, node, disabled)
}
""",
            path="pkg/agent/run.go",
            others=(
                (
                    "pkg/agent/config/config.go",
                    'package config\n\nfunc KubeProxyDisabled() bool { return get("/v1/readyz") == nil }\n',
                ),
            ),
        ),
        Example(
            "the image store connects while containerd starts",
            """package spegel

import (
	"context"

	"github.com/spegel-org/spegel/pkg/oci"
)

func (c *Config) Start(ctx context.Context, criReadyChan <-chan struct{}) error {
	store, err := oci.NewContainerd(ctx, c.Address) // hazard
	if err != nil {
		return err
	}
	go func() {
		<-criReadyChan
		c.track(ctx, store)
	}()
	return nil
}
""",
            path="pkg/spegel/spegel.go",
        ),
    ),
    good=(
        Example(
            "preparation before, and the rest after, or beside it",
            """package agent

import (
	"context"

	"example.com/k/pkg/daemons/executor"
	"example.com/m/pkg/agent/config"
)

func run(ctx context.Context, node *Node) error {
	executor.Set(&Embedded{})
	go func() {
		config.KubeProxyDisabled(ctx, node)
	}()
	if err := executor.Bootstrap(ctx, node); err != nil {
		return err
	}
	return executor.Kubelet(ctx, nil)
}
""",
            path="pkg/agent/run.go",
            others=(
                (
                    "pkg/agent/config/config.go",
                    'package config\n\nfunc KubeProxyDisabled() bool { return get("/v1/readyz") == nil }\n',
                ),
            ),
        ),
        Example(
            "the store connects once the runtime is ready",
            """package spegel

import (
	"context"

	"github.com/spegel-org/spegel/pkg/oci"
)

func (c *Config) Start(ctx context.Context, criReadyChan <-chan struct{}) {
	go func() {
		<-criReadyChan
		store, err := oci.NewContainerd(ctx, c.Address)
		if err == nil {
			c.track(ctx, store)
		}
	}()
}
""",
            path="pkg/spegel/spegel.go",
        ),
    ),
    find=_use_before_bootstrap,
)

WAITGROUP_LATE_INIT = Rule(
    id="L14",
    name="waitgroup-late-init",
    severity="error",
    summary="A goroutine is started before the field that it uses is made.",
    why="""
On most days the goroutine is slower than the two lines after the go statement. On the others it meets a nil WaitGroup,
map or client, and the server ends with a nil pointer panic.
""",
    cases=(80,),
    bad=(
        Example(
            "the goroutine waits for hooks with a WaitGroup that is made two lines later",
            """package server

import (
	"context"
	"sync"
)

func StartServer(ctx context.Context, config *Config) error {
	if config.DisableAPIServer {
		go label(ctx, config)
	} else {
		go startOnAPIServerReady(ctx, config)
	}
	config.StartupHooksWg = &sync.WaitGroup{} // hazard
	config.StartupHooksWg.Add(len(config.StartupHooks))
	return nil
}

func startOnAPIServerReady(ctx context.Context, config *Config) {
	if err := runControllers(ctx, config); err != nil {
		report(err)
	}
}

func runControllers(ctx context.Context, config *Config) error {
	config.StartupHooksWg.Wait()
	return start(ctx, config)
}
""",
            path="pkg/server/server.go",
        ),
    ),
    good=(
        Example(
            "made before, or not what the goroutine uses",
            """package server

import (
	"context"
	"sync"
)

func StartServer(ctx context.Context, config *Config) error {
	config.StartupHooksWg = &sync.WaitGroup{}
	go func() {
		config.StartupHooksWg.Wait()
		run(ctx, config)
	}()
	config.Handler = &Router{}
	return nil
}
""",
            path="pkg/server/server.go",
        ),
    ),
    find=_late_init,
)

START_ORDER_CHANGE = Rule(
    id="D3",
    name="start-order-change",
    severity="warning",
    summary="A change alters in which order the parts of a node are started, or starts one in a goroutine.",
    why="""
Most defects of start-up came with a change of order that looked harmless: the container runtime after the tunnel that
waits for the apiserver, controllers before the hooks they wait for. The order is read from `agent.run`, `server.run`,
`StartServer` and `control.Server`, with what they call. It may well be right; it needs the approval of somebody who
knows what waits for what.
""",
    cases=(55, 80),
    bad=(
        Example(
            "the second server of a cluster joins etcd only when its own apiserver is up",
            """package agent

import (
	"context"

	"example.com/k/pkg/daemons/executor"
	"example.com/m/pkg/agent/tunnel"
)

func run(ctx context.Context, node *Node) error {
	if err := setupTunnelAndRunAgent(ctx, node); err != nil { // hazard
		return err
	}
	return nil
}

func setupTunnelAndRunAgent(ctx context.Context, node *Node) error {
	if err := tunnel.Setup(ctx, node); err != nil {
		return err
	}
	return executor.Containerd(ctx, node)
}
""",
            before="""package agent

import (
	"context"

	"example.com/k/pkg/daemons/executor"
	"example.com/m/pkg/agent/tunnel"
)

func run(ctx context.Context, node *Node) error {
	if err := executor.Containerd(ctx, node); err != nil {
		return err
	}
	return tunnel.Setup(ctx, node)
}
""",
            path="pkg/agent/run.go",
        ),
        Example(
            "the network is started while the agent still is",
            """package agent

import (
	"context"

	"example.com/k/pkg/daemons/executor"
)

func run(ctx context.Context, node *Node) error {
	go func() {
		executor.CNI(ctx, node) // hazard
	}()
	return executor.Kubelet(ctx, nil)
}
""",
            before="""package agent

import (
	"context"

	"example.com/k/pkg/daemons/executor"
)

func run(ctx context.Context, node *Node) error {
	if err := executor.CNI(ctx, node); err != nil {
		return err
	}
	return executor.Kubelet(ctx, nil)
}
""",
            path="pkg/agent/run.go",
        ),
    ),
    good=(
        Example(
            "the same order in other words, and something new",
            """package agent

import (
	"context"

	"example.com/k/pkg/daemons/executor"
	"example.com/m/pkg/agent/tunnel"
)

func run(ctx context.Context, node *Node) error {
	if err := startRuntime(ctx, node); err != nil {
		return err
	}
	if err := executor.CNI(ctx, node); err != nil {
		return err
	}
	return tunnel.Setup(ctx, node)
}

func startRuntime(ctx context.Context, node *Node) error {
	return executor.Containerd(ctx, node)
}
""",
            before="""package agent

import (
	"context"

	"example.com/k/pkg/daemons/executor"
	"example.com/m/pkg/agent/tunnel"
)

func run(ctx context.Context, node *Node) error {
	if err := executor.Containerd(ctx, node); err != nil {
		return err
	}
	return tunnel.Setup(ctx, node)
}
""",
            path="pkg/agent/run.go",
        ),
    ),
    compare=_order_changed,
)
