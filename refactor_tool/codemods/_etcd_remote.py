"""Replace the function that polled the datastore by one that tests once whether another server's datastore answers."""

from __future__ import annotations

from collections.abc import Iterator

from refactor_tool.codemod import Template
from refactor_tool.codemods._etcd_sites import finding, line_after, methods, parameter_of, receiver_of, top_of
from refactor_tool.codemods._k3s import CLUSTER, ETCD, package
from refactor_tool.codemods._left_out import in_the_way
from refactor_tool.codemods._shapes import uses_of
from refactor_tool.gosrc import ast
from refactor_tool.gosrc.tree import Tree, TypeRef
from refactor_tool.gosrc.walk import Node, name_of, walk
from refactor_tool.model import Change, Edit, Finding, Leave, Manual, NewFile, Rewrite, Span, Verdict

REMOTE = Template("etcd-ready/test_remote_db.go.j2", ("ctx", "members", "params", "receiver", "type"))
TEST = Template("etcd-ready/managed_test.go.j2", ("members", "module"))
TEMPLATES = (REMOTE, TEST)

_TESTS = "pkg/cluster/managed_test.go"
_TEST_NAMES = ("remoteDriver", "Test_UnitCluster_RemoteDB", "Test_UnitCluster_RemoteDB_Unmanaged")
_BY_HAND = "write testRemoteDB, which reads from the datastore once, in its place"
#: What the function called; one that does more than this is not replaced unseen.
_POLLING = frozenset({"make", "close", "Test", "EndpointName", "Info", "Infof", "After", "Done", ""})


def of_remote(tree: Tree) -> Iterator[Finding]:
    """Yield what becomes of the function that polled the datastore, and of its callers but the cluster's start."""
    message = "tests a datastore that another server runs, once"
    for path, decl in methods(tree, CLUSTER, "Cluster", "testRemoteDB"):
        done = Leave("tests the datastore once already", done=True)
        yield finding(tree, path, decl.signature, done, message, "test", "cluster-test")
    for path, decl in methods(tree, CLUSTER, "Cluster", "testClusterDB"):
        span = Span(top_of(tree, path, decl), decl.span.end)
        verdict = _replaced(tree, path, decl, span)
        yield finding(tree, path, span, verdict, message, "test", "cluster-test")
        kept = in_the_way(tree, CLUSTER, [_TESTS], _TEST_NAMES) if isinstance(verdict, Rewrite) else None
        if kept is not None:
            yield finding(tree, kept.path, kept.span, kept.verdict, "add tests", "tests")
    polled = ast.FieldObject(package(tree, CLUSTER), "Cluster", "testClusterDB")
    for use in uses_of(tree, polled, folder=CLUSTER):
        if tree.title_at(use.path, use.span.start) != "(*Cluster).Start":
            line = tree.line_text(use.path, use.span.start)
            by_hand = Manual(f"the channel of testClusterDB is used here: {line!r}", "use the executor's ETCDReadyChan")
            yield finding(tree, use.path, use.qualified, by_hand, "waits for the executor's channel", "call")


def tests_remote_etcd(tree: Tree) -> bool:
    """Tell whether servers that do not run etcd test it, or will after this step; upstream's way does not."""
    return any(methods(tree, CLUSTER, "Cluster", name) for name in ("testClusterDB", "testRemoteDB"))


def _replaced(tree: Tree, path: str, decl: ast.FuncDecl, span: Span) -> Verdict:
    reader = _reader(tree)
    receiver, ctx = receiver_of(decl), parameter_of(decl)
    if isinstance(reader, Manual):
        return reader
    if not receiver or not ctx or decl.receiver is None:
        return Manual(f"the signature of {decl.title} is not known: {tree.text(path, decl.signature)!r}", _BY_HAND)
    for comment in tree.comments_in(path, decl.span):
        return Manual(f"the comment {tree.text(path, comment)!r} would be lost", _BY_HAND)
    odd = _odd(tree, path, decl)
    if odd is not None:
        return Manual(f"{decl.title} does more than to poll the datastore: {odd!r}", _BY_HAND)
    members, extra = reader
    values = {
        "receiver": receiver,
        "type": tree.text(path, decl.receiver.type.span),
        "params": tree.text(path, decl.params_span),
        "ctx": ctx,
        "members": members,
        "module": tree.module,
    }
    new = (
        () if in_the_way(tree, CLUSTER, [_TESTS], _TEST_NAMES) is not None else (NewFile(_TESTS, TEST.filled(values)),)
    )
    return Rewrite((Edit(path, span, REMOTE.filled(values)), *extra, *new))


def _odd(tree: Tree, path: str, decl: ast.FuncDecl) -> str | None:
    """Return what the function does besides polling, as it was known to at any time, None if nothing."""
    nodes = tuple(walk(tree.function(path, decl)))
    strange = next((node for node in nodes if not _is_polling(node)), None)
    logs = [node for node in nodes if isinstance(node, ast.Call) and _callee(node) in ("Info", "Infof")]
    more = strange if strange is not None else next(iter(logs[2:]), None)
    return tree.text(path, more.span) if more is not None else None


def _is_polling(node: Node) -> bool:
    match node:
        case ast.Call():
            return _callee(node) in _POLLING
        case ast.Assign(op=op):
            return op == ":="
        case ast.Send() | ast.OtherStmt():
            return False
        case _:
            return True


def _callee(call: ast.Call) -> str:
    """Return the name of what is called, "" for a function literal: what is in it is looked at as well."""
    return "" if isinstance(call.fun, ast.FuncLit) else name_of(call) or "?"


# --- which method of the driver reads ---------------------------------------------------------------


def _reader(tree: Tree) -> tuple[str, tuple[Change, ...]] | Manual:
    """Return which method of the driver reads from the datastore, and the changes that let a driver be asked for it.

    Until 2023 GetMembersClientURLs told what the client had been given, and only GetMembersNames asked etcd.
    """
    driver = _driver(tree)
    interface = tree.interface(driver.package, driver.name) if driver is not None else None
    if driver is None or interface is None:
        return Manual("Cluster has no field managedDB of a driver", "test the datastore by hand")
    path, _, declared = interface
    for name in ("GetMembersClientURLs", "GetMembersNames"):
        for where, decl in methods(tree, ETCD, "ETCD", name):
            if not lists_members(tree, where, decl):
                continue
            if any(method.name == name for method in declared.methods):
                return name, ()
            drivers = tree.implementers(driver.package, driver.name)
            lacking = next((each.type for each in drivers if tree.member(each.package, each.type, name) is None), None)
            if lacking is not None:
                return Manual(f"the driver {lacking} has no {name}", "give it one that reads from the datastore")
            head = tree.text(where, Span(decl.name_span.start, decl.signature.end))
            return name, (line_after(tree, path, declared.methods[-1].span, head),)
    return Manual("no method of the etcd driver lists its members", "test the datastore by hand")


def lists_members(tree: Tree, path: str, decl: ast.FuncDecl) -> bool:
    """Tell whether a method asks etcd for its members."""
    nodes = walk(tree.function(path, decl))
    return any(isinstance(node, ast.Selector) and node.name == "MemberList" for node in nodes)


def _driver(tree: Tree) -> ast.PackageObject | None:
    """Return the interface of the managed datastore."""
    for path, decl in tree.types(package(tree, CLUSTER), "Cluster"):
        for field in decl.type.fields if isinstance(decl.type, ast.StructType) else ():
            if any(ident.name == "managedDB" for ident in field.names):
                return tree.named_type(TypeRef(field.type, path))
    return None
