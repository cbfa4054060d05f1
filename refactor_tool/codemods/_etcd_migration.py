"""Pass etcd's own test to those that start it, and hold it back while content is migrated to a new cluster."""

from __future__ import annotations

from collections.abc import Iterator

from refactor_tool.codemod import Template
from refactor_tool.codemods import _shapes
from refactor_tool.codemods._etcd_sites import (
    appended,
    body_of,
    finding,
    is_nil,
    line_after,
    methods,
    text_of,
)
from refactor_tool.codemods._k3s import ETCD, EXECUTOR, MOCK, UTIL, declares, helper, package
from refactor_tool.codemods._left_out import in_the_way
from refactor_tool.gosrc import ast, layout
from refactor_tool.gosrc.tree import Tree, TypeRef
from refactor_tool.gosrc.walk import walk
from refactor_tool.model import Change, Edit, Finding, Leave, Manual, NewFile, Rewrite, Span, Verdict

HELD_BACK = Template("etcd-ready/migration_test_func.go.j2", ("context", "lead", "receiver", "util"))
TEST = Template(
    "etcd-ready/etcd_test.go.j2", ("config", "imports", "is_old_loop", "is_retried", "needs_client", "on_demand")
)
TEMPLATES = (HELD_BACK, TEST)

_TESTS = "pkg/etcd/ready_linux_test.go"
_TEST_NAMES = (
    "etcdExecutor",
    "blocks",
    "closedClient",
    "Test_UnitETCD_NewCluster_Migrate",
    "Test_UnitETCD_Client_Concurrent",
)
_CLIENT = "go.etcd.io/etcd/client/v3"


def of_tests(tree: Tree) -> Iterator[Finding]:
    """Yield the calls of `(*ETCD).cluster`, each of which says how the etcd that it starts is tested."""
    arity = max((_arity(tree, path, decl) for path, decl in methods(tree, ETCD, "ETCD", "cluster")), default=0)
    own_test = any(_has_own_test(tree, path, decl) for path, decl in methods(tree, ETCD, "ETCD", "cluster"))
    for use in _shapes.uses_of(tree, ast.FieldObject(package(tree, ETCD), "ETCD", "cluster"), folder=ETCD):
        path = use.path
        decl, call = tree.function_at(path, use.span.start), tree.call_at(path, use.qualified)
        anchor = "new-cluster" if decl is not None and decl.title == "(*ETCD).newCluster" else ""
        if decl is None or call is None or not isinstance(call.fun, ast.Selector):
            line = tree.line_text(path, use.span.start)
            verdict: Verdict = Manual(f"cluster is used as a value: {line!r}", "pass it the test of etcd")
            yield finding(tree, path, use.qualified, verdict, "passes the test on", "function-value", anchor)
            continue
        if len(call.args) == arity:
            verdict = _never_closed(tree, path, decl) or Leave("cluster is given a test already", done=True)
        elif own_test:
            verdict = Leave("cluster knows its test itself", done=True)
        elif anchor and any(_migrations(tree, path, decl)):
            verdict = _held_back(tree, path, decl, call, text_of(tree, path, call.fun.x))
            kept = in_the_way(tree, ETCD, [_TESTS], _TEST_NAMES) if isinstance(verdict, Rewrite) else None
            if kept is not None:
                yield finding(tree, kept.path, kept.span, kept.verdict, "add tests", "tests")
        else:
            test = f"{text_of(tree, path, call.fun.x)}.Test"
            verdict = Rewrite((appended(path, [arg.span for arg in call.args], call.args_span, test),))
        yield finding(tree, path, call.span, verdict, "passes the test of etcd on", "call", anchor)


def _arity(tree: Tree, path: str, decl: ast.FuncDecl) -> int:
    """Return how many arguments a function takes with a test, whether it takes one already or not yet."""
    wanted = ast.PackageObject(package(tree, EXECUTOR), "TestFunc")
    takes_test = any(tree.named_type(TypeRef(param.type, path)) == wanted for param in decl.params)
    return sum(max(1, len(param.names)) for param in decl.params) + (not takes_test)


def _never_closed(tree: Tree, path: str, decl: ast.FuncDecl) -> Manual | None:
    """Tell which signal of a function nothing closes, so that a test which waits for it never comes to an end."""
    signal = ast.PackageObject(package(tree, UTIL), "ReadySignal")
    nodes = [*walk(tree.function(path, decl))]
    closed = {
        node.x.name
        for node in nodes
        if isinstance(node, ast.Selector) and node.name.startswith("Close") and isinstance(node.x, ast.Ident)
    }
    for spec in (spec for node in nodes if isinstance(node, ast.VarStmt) for spec in node.specs):
        if spec.type is not None and tree.named_type(TypeRef(spec.type, path)) == signal:
            for name in (ident.name for ident in spec.names if ident.name not in closed):
                return Manual(
                    f"nothing closes {name} in {decl.title}, and etcd is never tested",
                    f"call {name}.Close() once the content has been migrated",
                )
    return None


def _has_own_test(tree: Tree, path: str, decl: ast.FuncDecl) -> bool:
    """Tell whether a function starts etcd with a test of its own choice, as upstream's does (d45006be6)."""
    starts = ast.PackageObject(package(tree, EXECUTOR), "ETCD")
    calls = (node for node in walk(tree.function(path, decl)) if isinstance(node, ast.Call))
    return any(len(call.args) > 3 and tree.calls(path, call) == starts for call in calls)


def _migrations(tree: Tree, path: str, decl: ast.FuncDecl) -> Iterator[ast.Call]:
    wanted = ast.FieldObject(package(tree, ETCD), "ETCD", "migrateFromSQLite")
    for node in walk(tree.function(path, decl)):
        if isinstance(node, ast.Call) and tree.calls(path, node) == wanted:
            yield node


def _held_back(tree: Tree, path: str, decl: ast.FuncDecl, call: ast.Call, receiver: str) -> Verdict:
    """Let etcd be tested only once content has been migrated, and never where that fails."""
    whole = tree.function(path, decl)
    stmts = body_of(whole)
    start = next((stmt for stmt in stmts if stmt.span.contains(call.span)), whole)
    known = all(_leaves(whole, each, start.span) for each in _migrations(tree, path, decl))
    match stmts[-1]:
        case ast.Return(values=(value,)) as last if known and is_nil(value):
            pass
        case _:
            wanted = "let the test wait for a util.ReadySignal that is closed after the migration, before it calls Test"
            return Manual("newCluster does not migrate content in the way that is known", wanted)
    taken = next((name for name in ("migrated", "test") if _shapes.names_in(tree, path, decl.span, name)), None)
    if taken is not None:
        return Manual(f"newCluster has something called {taken} already", "rename it")
    util = tree.qualify(path, package(tree, UTIL), "util", start.span.start)
    context = tree.qualify(path, "context", "context", start.span.start)
    if util is None or context is None:
        return _shapes.cannot_name(UTIL, "the test that waits for the migration")
    above = _shapes.comment_above(tree, path, start.span)
    at = above.start if above is not None else layout.insert_before_line(tree, path, start.span.start).start
    before = tree.data(path)[:at].replace(b"\r", b"")
    values = {
        "context": context.prefix,
        "lead": "" if before.endswith((b"{\n", b"\n\n")) else "\n",
        "receiver": receiver,
        "util": util.prefix,
    }
    end = layout.insert_before_line(tree, path, last.span.start)
    closed = Edit(path, end, line_after(tree, path, last.span, "migrated.Close()").text)
    return Rewrite(
        (
            Edit(path, Span(at, at), HELD_BACK.filled(values, tree.indent(path, start.span.start), lines=True)),
            appended(path, [arg.span for arg in call.args], call.args_span, "test"),
            closed,
            *_shapes.needs(path, util, context),
            *_tests(tree),
        )
    )


def _leaves(whole: ast.FuncDecl, migration: ast.Call, start: Span) -> bool:
    """Tell whether a migration comes after the start of etcd, and ends the function where it fails."""
    guard = _shapes.guard_at(whole, migration.span)
    return guard is not None and isinstance(guard.exit, ast.Return) and guard.stmt.span.start > start.end


def _tests(tree: Tree) -> tuple[Change, ...]:
    """Add a file of tests, where the tree has what they need: a configuration, and an executor that can be set."""
    etcd, executor, mock = package(tree, ETCD), package(tree, EXECUTOR), package(tree, MOCK)
    fields = all(
        tree.member(etcd, "ETCD", name) is not None for name in ("address", "cancel", "client", "config", "name")
    )
    config = _new_config(tree)
    lacks_mock = declares(tree, mock, "Executor") and not declares(tree, mock, "NewReady")
    if in_the_way(tree, ETCD, [_TESTS], _TEST_NAMES) is not None or not fields or lacks_mock:
        return ()
    if config is None or not declares(tree, executor, "Set"):
        return ()
    needs_client = not _checks_client(tree)
    on_demand = bool(methods(tree, ETCD, "ETCD", "startClient"))
    imports = [f'"{executor}"', f'"{mock}"']
    if needs_client or on_demand:
        imports.append(f'clientv3 "{_CLIENT}"')
    values = {
        "config": config,
        "imports": "\n\t".join(sorted(imports, key=lambda line: line.rpartition(" ")[2])),
        "needs_client": "yes" if needs_client else "",
        "on_demand": "yes" if on_demand else "",
        "is_old_loop": "yes" if tree.go_version < (1, 22) else "",
        "is_retried": "" if _gives_connection(tree) else "yes",
    }
    return (NewFile(_TESTS, TEST.filled(values)),)


def _new_config(tree: Tree) -> str | None:
    """Return the call that makes a configuration for a test, which takes the test since a897f6875 (2025-04-01)."""
    for path, _ in tree.functions(package(tree, ETCD), "generateTestConfig"):
        if helper(tree, path, "generateTestConfig", "*config.Control") is not None:
            return "generateTestConfig()"
        if helper(tree, path, "generateTestConfig", "*testing.T", "*config.Control") is not None:
            return "generateTestConfig(t)"
    return None


def _gives_connection(tree: Tree) -> bool:
    """Tell whether the client comes with a connection, whose requests fail at once; others are tried again."""
    return any(len(decl.results) == 3 for _, decl in tree.functions(package(tree, ETCD), "getClient"))


def _checks_client(tree: Tree) -> bool:
    """Tell whether the test of etcd fails without a client, where it panics in older trees."""
    return any(
        isinstance(node, ast.Binary) and node.op == "==" and text_of(tree, path, node.x).endswith(".client")
        for path, decl in methods(tree, ETCD, "ETCD", "Test")
        for node in walk(tree.function(path, decl))
    )
