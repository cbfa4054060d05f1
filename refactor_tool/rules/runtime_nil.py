"""L15: clients that exist only once the controllers have started, used before."""

from __future__ import annotations

import re
from collections.abc import Iterator

from refactor_tool.gosrc import ast
from refactor_tool.gosrc.tree import Tree
from refactor_tool.gosrc.walk import walk
from refactor_tool.model import Finding
from refactor_tool.rule import Example, Rule
from refactor_tool.rules._code import Site, by_hand, hazard, is_test, sites
from refactor_tool.rules._flow import before

_OWNER = "ControlRuntime"
_USES = (b".Core.Core()", b".K3s.K3s()")
#: Where functions are registered that run once the clients are there.
_REGISTERED = re.compile(rb"ControllerStart(?:s\[[^\]\n]*\])? = ")
_WORD = re.compile(rb"\w+")
#: A function at file level as gofmt writes it: its name, and the rest up to the brace that closes it.
_FUNCTION = re.compile(rb"^func (?:\([^)\n]*\) )?(\w+)([^\n]*\}\r?$|.*?^\})", re.MULTILINE | re.DOTALL)


def _find(tree: Tree) -> Iterator[Finding]:
    exempt: dict[str, frozenset[str]] = {}
    seen: set[tuple[str, ast.FuncDecl, str]] = set()
    for site in sites(tree, *_USES):
        field = _client(tree, site)
        if field is None:
            continue
        package = tree.package_of(site.path)
        if package not in exempt:
            exempt[package] = _run_by_hooks(tree, package)
        name = tree.text(site.path, field.span)
        if site.decl.name in exempt[package] or (site.path, site.decl, name) in seen or _is_registered(tree, site):
            continue
        if not _is_tested(tree, site, name, field.name):
            seen.add((site.path, site.decl, name))
            message = f"{name} is nil until the controllers have started, and nothing here tests it"
            instruction = f"test {name} for nil and answer that the node is not ready yet, in a handler with status 503"
            yield hazard(
                "L15", site, field.span, message, by_hand("what to do instead differs", instruction), "nil-client"
            )


def _client(tree: Tree, site: Site) -> ast.Selector | None:
    """Return the field of the runtime that is called through at a place."""
    match site.inside[-1] if site.inside else None:
        case ast.Call(fun=ast.Selector(x=ast.Selector() as field)):
            found = tree.resolve(site.path, field)
            return field if isinstance(found, ast.FieldObject) and found.type == _OWNER else None
        case _:
            return None


def _is_tested(tree: Tree, site: Site, name: str, field: str) -> bool:
    """Tell whether a test of the client for nil stands before the use, or around it."""
    data = tree.data(site.path)
    asked = re.compile(rb"\." + field.encode() + rb" (?:==|!=) nil")
    for node in (*site.outer, *site.inside):
        if isinstance(node, ast.If) and asked.search(
            data, node.cond.span.start, min(node.cond.span.end, site.span.start)
        ):
            return True
        if (
            isinstance(node, ast.Binary)
            and node.op in ("&&", "||")
            and asked.search(data, node.span.start, site.span.start)
        ):
            return True
        if any(asked.search(data, stmt.span.start, stmt.span.end) for stmt in before(node, site.span)):
            return True
    return False


def _is_registered(tree: Tree, site: Site) -> bool:
    """Tell whether the use is in a literal that is registered to run once the clients are there."""
    data = tree.data(site.path)
    for node in site.outer:
        if isinstance(node, ast.FuncLit):
            line = data[data.rfind(b"\n", 0, node.span.start) + 1 : node.span.start]
            if _REGISTERED.search(line):
                return True
    return False


def _run_by_hooks(tree: Tree, package: str) -> frozenset[str]:
    """Return the names of a package's functions that registered functions are or mention, however far away."""
    texts: dict[bytes, list[bytes]] = {}
    paths = [path for path in tree.package_files(package) if not is_test(path)]
    if not any(_REGISTERED.search(tree.data(path)) for path in paths):
        return frozenset()
    for path in paths:
        for name, body in _FUNCTION.findall(tree.data(path)):
            texts.setdefault(name, []).append(body)
    todo = {word for path in paths for word in _mentioned(tree, path) if word in texts}
    found: set[bytes] = set()
    while todo:
        name = todo.pop()
        found.add(name)
        todo |= {word for text in texts[name] for word in _WORD.findall(text) if word in texts} - found
    return frozenset(name.decode() for name in found)


def _mentioned(tree: Tree, path: str) -> set[bytes]:
    """Return the words in what a file registers."""
    out: set[bytes] = set()
    for found in _REGISTERED.finditer(tree.data(path)):
        decl = tree.function_at(path, found.start())
        if decl is not None and decl.body_span is not None:
            for node in walk(tree.function(path, decl)):
                if isinstance(node, ast.Assign) and node.span.start <= found.start() < node.span.end:
                    out.update(_WORD.findall(tree.data(path), *node.rhs[0].span))
    return out


RUNTIME_CORE_NIL_DEREF = Rule(
    id="L15",
    name="runtime-core-nil-deref",
    severity="warning",
    summary="A client of the runtime, Core or K3s, is used without a test for nil where it may not be there yet.",
    why="""
The clients are made when the controllers start, which is after the supervisor answers requests and after timers run. A
status request or a scheduled snapshot during start-up ends the process with a nil pointer. Functions that are
registered as controller starts, and what they call, run later and are left alone.
""",
    cases=(49, 51, 52),
    bad=(
        Example(
            "a status request while the server starts",
            """package handlers

import "example.com/m/pkg/daemons/config"

func encryptionStatus(control *config.Control) (string, error) {
	return status(control.Runtime.Core.Core()) // hazard
}
""",
            path="pkg/server/handlers/secrets-encrypt.go",
            others=(
                (
                    "pkg/daemons/config/types.go",
                    "package config\n\ntype Control struct {\n\tRuntime *ControlRuntime\n}\n\n"
                    "type ControlRuntime struct {\n\tCore *Factory\n}\n",
                ),
            ),
        ),
    ),
    good=(
        Example(
            "a test before or around the use, and what runs when the controllers start",
            """package handlers

import (
	"errors"

	"example.com/m/pkg/daemons/config"
)

func encryptionStatus(control *config.Control) (string, error) {
	if control.Runtime.Core == nil {
		return "", errors.New("runtime core not ready")
	}
	return status(control.Runtime.Core.Core())
}

func snapshot(control *config.Control) {
	if control.Runtime != nil && control.Runtime.Core != nil {
		save(control.Runtime.Core.Core())
	}
	control.Runtime.ClusterControllerStarts["a"] = func() { watch(control.Runtime.Core.Core()) }
	control.Runtime.ClusterControllerStarts["b"] = func() { register(control) }
}

func register(control *config.Control) {
	watch(control.Runtime.Core.Core())
}
""",
            path="pkg/server/handlers/secrets-encrypt.go",
            others=(
                (
                    "pkg/daemons/config/types.go",
                    "package config\n\ntype Control struct {\n\tRuntime *ControlRuntime\n}\n\n"
                    "type ControlRuntime struct {\n\tCore *Factory\n\tClusterControllerStarts map[string]func()\n}\n",
                ),
            ),
        ),
    ),
    find=_find,
)
