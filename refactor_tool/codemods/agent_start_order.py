"""Step 6: the kubelet and kube-proxy start first, on every node, and the tunnel after them.

Before, they did so only where a load balancer for the apiserver hinted at RKE2, and a flag remembered it. The wait for
apiserver addresses, and everything that follows it, keeps its place and text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from refactor_tool.codemod import Anchor, Codemod, Template
from refactor_tool.codemods import _shapes
from refactor_tool.codemods._k3s import AGENT, DAEMONS_AGENT, EXECUTOR, TUNNEL, package, site
from refactor_tool.gosrc import ast, layout
from refactor_tool.gosrc.tree import Tree
from refactor_tool.gosrc.walk import Node, walk
from refactor_tool.model import Edit, Finding, Fragment, Leave, Manual, Rewrite, Span, Verdict
from refactor_tool.record import record, replace

ID = "agent-start-order"
NAME = "setupTunnelAndRunAgent"
#: What the special cases asked to find out whether this is RKE2.
HINT = "IsAPIServerLBEnabled"
BY_HAND = (
    "start agent.Agent first on all nodes, then wait for apiserver addresses on etcd-only nodes, then set up the tunnel"
    " and what follows"
)

_AGENT_FIRST = Template(f"{ID}/agent_first.go.j2", ("agent", "comment", "condition"))
_DOC = Template(f"{ID}/doc.go.j2", ("monitoring", "name"))
_RKE2 = re.compile(rf"\brke2\b|{HINT}", re.IGNORECASE)
_OLD_ORDER = re.compile(r"tunnel.*(?:kubelet|agent)|(?:kubelet|agent).*tunnel", re.IGNORECASE | re.DOTALL)
_WAIT = re.compile(rb"\b(?:WaitForAPIServerReady|APIServerReadyChan)\b")
#: The functions that may as well run after the agent's start.
_KNOWN = (
    (AGENT, "waitForAPIServerAddresses"),
    (AGENT, "tunnelSetup"),
    (AGENT, "certMonitorSetup"),
    (TUNNEL, "Setup"),
)


def find(tree: Tree) -> Iterator[Finding]:
    """Yield what becomes of the function that starts the agent and its tunnel."""
    for path, decl in tree.functions(package(tree, AGENT), NAME):
        verdict = _verdict(tree, path, tree.function(path, decl))
        if isinstance(verdict, Manual):
            # nothing else depends on the order
            verdict = replace(verdict, blocks=False)
        message = "start the kubelet and kube-proxy first, on all nodes"
        yield site(tree, ID, path, decl.span, verdict, message, channel="none", shape="order", anchor="start-order")


def _verdict(tree: Tree, path: str, decl: ast.FuncDecl) -> Verdict:
    if decl.body is None:
        return Manual(f"{NAME} has no body", BY_HAND)
    starts = [call for call in _calls(decl) if _is_agent(tree, path, call)]
    if not _mentions(decl, HINT):
        if len(starts) != 1:
            return Manual(f"{NAME} starts the agent at {len(starts)} places, in a way that is not known", BY_HAND)
        first = next((stmt for stmt in decl.body.stmts if any(_calls(stmt))), None)
        if first is not None and first.span.contains(starts[0].span):
            return Leave("the agent is started first already", done=True)
        return Leave("the agent is started at one place already, without a special case for RKE2", done=True)
    if not _kubelet_waits(tree):
        return Manual(
            "the kubelet of the embedded executor does not wait for the apiserver by itself",
            f"let it wait with util.WaitReady for executor.APIServerReadyChan() before it starts; then {BY_HAND}",
        )
    order = _order(tree, path, decl)
    if order is None or len(starts) != 3:
        outline = "; ".join(tree.text(path, stmt.span).splitlines()[0] for stmt in decl.body.stmts)
        return Manual(f"the statements of {NAME} are not the known ones: {outline}", BY_HAND)
    between = (*(each for each in order.wait if not _reads_addresses(each)), *order.setup)
    unknown = next((stmt for stmt in between if not _may_follow(tree, path, decl, stmt)), None)
    if unknown is not None:
        line = tree.line_text(path, unknown.span.start)
        return Manual(f"the agent may need what is done before it starts: {line!r}", BY_HAND)
    return _rewrite(tree, path, decl, order)


def _kubelet_waits(tree: Tree) -> bool:
    """Tell whether each executor of the tree that starts a kubelet holds it back until the apiserver is ready."""
    methods = [
        (path, method)
        for path, method in tree.methods_named("Kubelet")
        if tree.package_of(path) == package(tree, EXECUTOR)
    ]
    return bool(methods) and all(
        any(method.span.contains(found.span) and found.object is not None for found in tree.occurrences(path, _WAIT))
        for path, method in methods
    )


# --- the known order --------------------------------------------------------------------------------


@record
class Order:
    """The parts of the function as it was: what goes, and what stays in between."""

    flag: ast.VarStmt
    etcd_only: ast.If
    early: ast.If
    wait: tuple[ast.Stmt, ...]
    setup: tuple[ast.Stmt, ...]
    late: ast.If
    agent: ast.Call
    done: ast.Return


def _order(tree: Tree, path: str, decl: ast.FuncDecl) -> Order | None:
    stmts = decl.body.stmts if decl.body is not None else ()
    at = next((at for at, stmt in enumerate(stmts) if isinstance(stmt, ast.VarStmt)), 0)
    match stmts[at:]:
        case (
            ast.VarStmt(specs=(ast.VarSpec(names=(ast.Ident(name=flag),), values=()),)) as var,
            ast.If(init=None, then=ast.Block(stmts=(ast.If() as early, *wait)), else_=ast.If() as reset) as etcd_only,
            *setup,
            ast.If(
                init=None,
                cond=ast.Unary(op="!", x=ast.Ident(name=tested)),
                then=ast.Block(stmts=(ast.Return(values=(ast.Call() as agent,)),)),
                else_=None,
            ) as late,
            ast.Return(values=(ast.Ident(name="nil"),)) as done,
        ) if tested == flag and wait and setup and _is_agent(tree, path, agent):
            branches = [_early_start(tree, path, decl, stmt, flag) for stmt in (early, reset)]
            known = all(
                call is not None and tree.text(path, call.span) == tree.text(path, agent.span) for call in branches
            )
            return Order(var, etcd_only, early, tuple(wait), tuple(setup), late, agent, done) if known else None
        case _:
            return None


def _early_start(tree: Tree, path: str, decl: ast.FuncDecl, stmt: ast.If, flag: str) -> ast.Call | None:
    """Return the call with which a branch starts the agent early on RKE2, if it does nothing else but set the flag."""
    match stmt:
        case ast.If(
            init=None,
            then=ast.Block(
                stmts=(
                    ast.If(init=ast.Assign(rhs=(ast.Call() as call,))),
                    ast.Assign(lhs=(ast.Ident(name=set_),), op="=", rhs=(ast.Ident(name="true"),)),
                )
            ),
            else_=None,
        ) if set_ == flag and _mentions(stmt.cond, HINT) and _returned(tree, path, decl, call):
            return call
        case _:
            return None


def _reads_addresses(stmt: ast.Stmt) -> bool:
    """Tell whether a statement waits for the addresses right here, as it did before it had a function of its own."""
    return isinstance(stmt, ast.For | ast.Select) and _mentions(stmt, "APIAddressCh")


def _may_follow(tree: Tree, path: str, decl: ast.FuncDecl, stmt: ast.Stmt) -> bool:
    """Tell whether a statement may as well run after the agent's start: a log line, or the guard of a known function.

    Whatever else it calls may prepare what the agent reads.
    """
    if _shapes.logs(tree, path, stmt):
        return True
    if isinstance(stmt, ast.If) and stmt.init is None and stmt.else_ is None and not any(_calls(stmt.cond)):
        return all(_may_follow(tree, path, decl, each) for each in stmt.then.stmts)
    call = next(_calls(stmt), None)
    guard = _shapes.guard_at(decl, call.span, more=True) if call is not None else None
    return (
        guard is not None
        and guard.stmt == stmt
        and any(tree.calls(path, guard.call) == ast.PackageObject(package(tree, at), name) for at, name in _KNOWN)
        and isinstance(guard.exit, ast.Return)
        and all(_shapes.logs(tree, path, each) for each in guard.before)
        and not any(any(_calls(arg)) for arg in guard.call.args)
    )


def _returned(tree: Tree, path: str, decl: ast.FuncDecl, call: ast.Call) -> bool:
    """Tell whether a call stands in a guard that does nothing but return its error."""
    guard = _shapes.guard_at(decl, call.span)
    return guard is not None and tree.text(path, guard.exit.span) == f"return {guard.err}"


def _mentions(node: Node, name: str) -> bool:
    return any(isinstance(each, ast.Selector) and each.name == name for each in walk(node))


def _calls(node: ast.Stmt | ast.Expr | ast.FuncDecl) -> Iterator[ast.Call]:
    return (each for each in walk(node) if isinstance(each, ast.Call))


def _is_agent(tree: Tree, path: str, call: ast.Call) -> bool:
    return tree.calls(path, call) == ast.PackageObject(package(tree, DAEMONS_AGENT), "Agent")


# --- the change -------------------------------------------------------------------------------------


def _rewrite(tree: Tree, path: str, decl: ast.FuncDecl, order: Order) -> Verdict:
    agent = tree.text(path, order.agent.span)
    indent = tree.indent(path, order.flag.span.start)
    above = Span(order.etcd_only.then.span.start, order.early.span.start)
    head = Span(_lead(tree, path, order.flag.span, only_old=True), _lead(tree, path, order.wait[0].span))
    rest = Span(layout.insert_after_line(tree, path, order.wait[-1].span.end).start, order.etcd_only.span.end)
    tail, last = _tail(tree, path, decl, order)
    groups = [group for span in (head, rest, tail) for group in _comments(tree, path, span)]
    moved = [tree.text(path, group) for group in groups if above.contains(group) and not _is_old(tree, path, group)]
    for group in groups:
        if not above.contains(group) and not _is_old(tree, path, group):
            return Manual(f"the comment {tree.text(path, group)!r} would be lost", BY_HAND)
    for group in _comments(tree, path, Span(rest.end, tail.start)):
        if _OLD_ORDER.search(tree.text(path, group)):
            return Manual(f"the comment {tree.text(path, group)!r} tells the old order", BY_HAND)
    condition = tree.text(path, order.etcd_only.cond.span)
    comment = "\n".join(line.strip() for text in moved for line in text.splitlines())
    start = Fragment.of(_AGENT_FIRST.name, indent, lines=True, agent=agent, condition=condition, comment=comment)
    return Rewrite(
        (
            *_doc(tree, path, decl, order),
            Edit(path, head, start),
            Edit(path, rest, f"{indent}}}".encode()),
            Edit(path, tail, last),
        )
    )


def _lead(tree: Tree, path: str, span: Span, *, only_old: bool = False) -> int:
    """Return where the lines of a statement and of the comment above it start."""
    above = _shapes.comment_above(tree, path, span)
    if above is None or (only_old and not _is_old(tree, path, above)):
        return layout.insert_before_line(tree, path, span.start).start
    return above.start


def _tail(tree: Tree, path: str, decl: ast.FuncDecl, order: Order) -> tuple[Span, bytes]:
    """Return what stands from the last step of the set-up to the end of the body, and what it becomes."""
    match order.setup[-1]:
        case ast.If(init=ast.Assign(rhs=(ast.Call() as call,)), span=whole) if _returned(tree, path, decl, call):
            return Span(whole.start, order.done.span.end), f"return {tree.text(path, call.span)}".encode()
        case _:
            return Span(order.late.span.start, order.done.span.end), b"return nil"


def _comments(tree: Tree, path: str, span: Span) -> Iterator[Span]:
    """Yield the comments of a span, those of adjacent lines as one."""
    group: Span | None = None
    for comment in tree.comments_in(path, span):
        between = tree.data(path)[group.end : comment.start] if group is not None else b""
        if group is not None and not between.strip() and between.count(b"\n") == 1:
            group = Span(group.start, comment.end)
            continue
        if group is not None:
            yield group
        group = comment
    if group is not None:
        yield group


def _is_old(tree: Tree, path: str, comment: Span) -> bool:
    """Tell whether a comment explains the special cases that go."""
    return _RKE2.search(tree.text(path, comment)) is not None


def _doc(tree: Tree, path: str, decl: ast.FuncDecl, order: Order) -> tuple[Edit, ...]:
    """Replace a doc comment that tells the old order."""
    if decl.doc is None or not _OLD_ORDER.search(tree.text(path, decl.doc)):
        return ()
    monitored = any("certMonitor" in tree.text(path, stmt.span) for stmt in order.setup)
    text = Fragment.of(_DOC.name, name=decl.name, monitoring="yes" if monitored else "")
    return (Edit(path, Span(decl.doc.start, decl.span.start), text),)


CODEMOD = Codemod(
    id=ID,
    title="Start the agent before the tunnel",
    body=(
        "Neither the kubelet nor kube-proxy needs the tunnel, or the address of an\n"
        "apiserver: the embedded executor holds them back until the apiserver is\n"
        "ready, and RKE2 needs its kubelet first anyway, for static pods. Start them\n"
        "first on all nodes, so that nothing has to guess whether this is RKE2. On\n"
        "etcd-only nodes the wait for addresses still blocks what comes after it, so\n"
        "that the time limit of the wait for the apiserver starts only when one has\n"
        "registered."
    ),
    requires=("apiserver-ready",),
    anchors=(Anchor("start-order"),),
    templates=(_AGENT_FIRST, _DOC),
    find=find,
)
