"""Where the agent starts a container runtime, and closes the channel of it before step 4 and calls CRI after it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from refactor_tool.codemod import Template
from refactor_tool.codemods import _shapes
from refactor_tool.codemods._cri_carriers import BY_HAND, ID, Carriers, finding
from refactor_tool.codemods._k3s import AGENT, DAEMONS_AGENT, EXECUTOR, package
from refactor_tool.gosrc import ast
from refactor_tool.gosrc.tree import Occurrence, Tree
from refactor_tool.gosrc.walk import Node, functions_at, trail, walk
from refactor_tool.model import Edit, Finding, Fragment, Leave, Manual, NeedImport, Rewrite, Span, Verdict
from refactor_tool.record import record, replace

ELSE = Template(f"{ID}/else.go.j2", ("ctx", "executor", "node"))
CALL_CRI = Template(f"{ID}/call_cri.go.j2", ("ctx", "executor", "node", "standalone"))
_CRI = re.compile(rb"\bCRI\b")
_RUN = re.compile(rb"\bRun\b")


def closing(carriers: Carriers, use: Occurrence) -> Finding:
    """Let the executor close the channel: where it starts the runtime, or where there is none to start."""
    tree, path = carriers.tree, use.path
    whole = _shapes.whole_function(tree, path, use.span)
    place = _closing_statement(carriers, path, trail(whole, use.span)) if whole is not None else None
    if whole is None or place is None or _shapes.exit_of(functions_at(whole, use.span)[-1]) != "return err":
        span = _tested(carriers, path, trail(whole, use.span)) if whole is not None else None
        line = tree.line_text(path, (span or use.span).start)
        unknown = Manual(f"the agent closes its channel in an unknown way: {line!r}", BY_HAND)
        return finding(tree, path, span or use.qualified, unknown, "call executor.CRI", "unknown-shape")
    stmt, before = place
    starts = _starts(tree, path, whole)
    verdict: Verdict
    elsewhere = _started_elsewhere(tree) if not starts else ""
    if elsewhere and _reaches_agent(tree, path, whole):
        by_hand = f"let {elsewhere} call executor.CRI for a runtime that is not started there, and delete this"
        verdict, anchor = Manual(f"the container runtimes are started by {elsewhere}", by_hand), "agent-run"
    elif not starts:
        verdict, anchor = _standalone(tree, path, stmt, before), "run-standalone"
    elif any(start.by_executor for start in starts):
        verdict, anchor = _else_branch(tree, path, whole, stmt, before, starts), "agent-run"
    else:
        verdict, anchor = _after_starts(tree, path, stmt, before, starts), "agent-run"
    return finding(tree, path, stmt.span, verdict, "call executor.CRI", "close-channel", anchor)


def direct_starts(tree: Tree) -> Iterator[Finding]:
    """Let the executor start what it can, so that it knows when that is ready."""
    known = _directly(tree)
    able = _by_executor(tree).values()
    for path in tree.package_files(package(tree, AGENT)):
        for use in tree.occurrences(path, _RUN) if able and b"containerd" in tree.data(path) else ():
            if use.object not in known or known[use.object] not in able:
                continue
            name = known[use.object]
            executor = tree.qualify(path, package(tree, EXECUTOR), "executor", use.span.start)
            if use.role != "call":
                line = tree.line_text(path, use.span.start)
                verdict: Verdict = Manual(f"{name} is started in an unknown way: {line!r}", f"call executor.{name}")
            elif executor is None:
                verdict = _shapes.cannot_name(EXECUTOR, f"executor.{name}")
            else:
                edit = Edit(path, use.qualified, f"{executor.prefix}{name}".encode())
                verdict = Rewrite((edit, *_shapes.needs(path, executor)))
            yield finding(tree, path, use.qualified, verdict, f"start {name} by the executor", "direct-start")


def called(tree: Tree, anchors: Collection[str]) -> Iterator[Finding]:
    """Yield where the agent calls CRI already."""
    for path in tree.package_files(package(tree, AGENT)):
        for use in tree.occurrences(path, _CRI) if _CRI.search(tree.data(path)) else ():
            decl = tree.function_at(path, use.span.start)
            if not _is_cri(tree, use.object) or decl is None:
                continue
            anchor = "agent-run" if _starts(tree, path, tree.function(path, decl)) else "run-standalone"
            done = Leave("the executor is asked for the container runtime already", done=True)
            shown = "" if anchor in anchors else anchor
            yield finding(tree, path, use.qualified, done, "executor.CRI is called", "close-channel", shown)


# --- what starts a container runtime --------------------------------------------------------------


@record
class Start:
    """A call that starts a container runtime: which, whether the executor can do it, its arguments and its place."""

    runtime: str
    by_executor: bool
    args: tuple[str, ...]
    span: Span


def _starts(tree: Tree, path: str, root: Node) -> tuple[Start, ...]:
    able = _by_executor(tree)
    known = {**_directly(tree), **able}
    names = {found.name for found in known if isinstance(found, ast.PackageObject)}
    calls = [node for node in walk(root) if isinstance(node, ast.Call) and _called_name(node) in names]
    return tuple(
        Start(known[callee], known[callee] in able.values(), _texts(tree, path, call.args), call.span)
        for call, callee in ((call, tree.calls(path, call)) for call in calls)
        if callee in known
    )


def _started_elsewhere(tree: Tree) -> str:
    """Name the function below the agent that starts a runtime through the executor, as in February 2024, or ""."""
    for path in tree.package_files(package(tree, DAEMONS_AGENT)):
        if b"Containerd(" in tree.data(path):
            for decl in tree.decls(path):
                if isinstance(decl, ast.FuncDecl) and _starts(tree, path, tree.function(path, decl)):
                    return f"{decl.title} in {path}"
    return ""


def _reaches_agent(tree: Tree, path: str, decl: ast.FuncDecl, depth: int = 2) -> bool:
    """Tell whether a function runs the agent, itself or through functions of its own package."""
    for call in (node for node in walk(decl) if isinstance(node, ast.Call)):
        match tree.calls(path, call):
            case ast.PackageObject(package=owner, name="Agent") if owner == package(tree, DAEMONS_AGENT):
                return True
            case ast.PackageObject(package=owner, name=name) if depth and owner == tree.package_of(path):
                below = tree.functions(owner, name)
                if any(_reaches_agent(tree, where, tree.function(where, each), depth - 1) for where, each in below):
                    return True
            case _:
                pass
    return False


def _called_name(call: ast.Call) -> str:
    return call.fun.name if isinstance(call.fun, ast.Ident | ast.Selector) else ""


def _texts(tree: Tree, path: str, args: Sequence[ast.Expr]) -> tuple[str, ...]:
    return tuple(tree.text(path, arg.span) for arg in args)


def _by_executor(tree: Tree) -> dict[ast.Object, str]:
    """Return the executor's functions that start a container runtime, by what they start; none before 2024-02-21."""
    names = [name for name in ("Containerd", "Docker") if tree.functions(package(tree, EXECUTOR), name)]
    return {ast.PackageObject(package(tree, EXECUTOR), name): name for name in names}


def _directly(tree: Tree) -> dict[ast.Object, str]:
    """Return the functions that start one without the executor."""
    folders = {"Containerd": f"{AGENT}/containerd", "Docker": f"{AGENT}/cridockerd"}
    return {ast.PackageObject(package(tree, folder), "Run"): name for name, folder in folders.items()}


# --- what closes the channel ----------------------------------------------------------------------


def _closing_statement(
    carriers: Carriers, path: str, nodes: tuple[Node, ...]
) -> tuple[ast.Stmt, tuple[ast.Stmt, ...]] | None:
    """Return the statement that closes the channel if it is set, and those before it in its block."""
    for parent, node in pairwise(nodes):
        match node:
            case ast.If(
                init=None,
                cond=ast.Binary(op="!=", x=tested, y=ast.Ident(name="nil")),
                then=ast.Block(stmts=(ast.ExprStmt(x=ast.Call(fun=ast.Ident(name="close"), args=(closed,))),)),
                else_=None,
            ) if isinstance(parent, ast.Block) and carriers.is_field(path, tested) and carriers.is_field(path, closed):
                return node, parent.stmts[: parent.stmts.index(node)]
            case ast.ExprStmt(x=ast.Call(fun=ast.Ident(name="close"), args=(closed,))) if isinstance(
                parent, ast.Block
            ) and carriers.is_field(path, closed):
                alone = _tested(carriers, path, nodes) is None
                return (node, parent.stmts[: parent.stmts.index(node)]) if alone else None
            case _:
                pass
    return None


def _tested(carriers: Carriers, path: str, nodes: Sequence[Node]) -> Span | None:
    """Return the place of the `if` around that asks whether the channel is set, None where there is none."""
    for node in nodes:
        if isinstance(node, ast.If) and any(
            isinstance(each, ast.Selector) and carriers.is_field(path, each) for each in walk(node.cond)
        ):
            return node.span
    return None


def _else_branch(
    tree: Tree, path: str, decl: ast.FuncDecl, stmt: ast.Stmt, before: Sequence[ast.Stmt], starts: Sequence[Start]
) -> Verdict:
    """Add the last branch to the `if` that starts one of two runtimes, and remove what closed the channel after it."""
    chain = next((each for each in reversed(before) if not _shapes.logs(tree, path, each)), None)
    branches, last = _branches(chain)
    chosen = [(_chosen(branch.cond), _started(branch.then, starts)) for branch in branches]
    args = {start.args for start in starts}
    if len(starts) != 2 or sorted(chosen) != [("Containerd", "Containerd"), ("Docker", "Docker")]:
        return Manual("the statement before does not start docker, else containerd, and nothing else", BY_HAND)
    if len(args) != 1 or len(starts[0].args) != 2:
        return Manual("docker and containerd are not started with the same context and node", BY_HAND)
    later = next(
        (each for each in (_later(tree, path, decl, branch.then, starts) for branch in branches) if each), None
    )
    if later is not None:
        line = tree.line_text(path, later.span.start)
        reason = f"the executor would report the container runtime as ready before {line!r}"
        return Manual(reason, "let the executor do that as part of the start, or do it before; then plan again")
    gone = _shapes.remove_statements(tree, path, (stmt.span,))
    if last is not None:
        known = any(isinstance(node, ast.Call) and _is_cri(tree, tree.calls(path, node)) for node in walk(last))
        return _shapes.combined(gone) if known else Manual("there is a last else branch that is not known", BY_HAND)
    executor = tree.qualify(path, package(tree, EXECUTOR), "executor", branches[-1].then.span.start)
    if executor is None:
        return _shapes.cannot_name(EXECUTOR, "executor.CRI")
    ctx, node = starts[0].args
    end = branches[-1].then.span.end
    text = Fragment.of(ELSE.name, tree.indent(path, end - 1), executor=executor.prefix, ctx=ctx, node=node)
    return _shapes.combined((Edit(path, Span(end, end), text), *_shapes.needs(path, executor)), gone)


def _branches(stmt: ast.Stmt | None) -> tuple[tuple[ast.If, ...], ast.Block | None]:
    """Return an `if` and its `else if`s, and the block of the last `else`."""
    match stmt:
        case ast.If(else_=ast.If() as other):
            rest, last = _branches(other)
            return (stmt, *rest), last
        case ast.If(else_=last):
            return (stmt,), last
        case _:
            return (), None


def _chosen(cond: ast.Expr) -> str:
    """Return what a node's configuration asks for where a condition holds, "" for an unknown condition."""
    match cond:
        case ast.Selector(name="Docker"):
            return "Docker"
        case ast.Binary(op="==", x=ast.Selector(name="ContainerRuntimeEndpoint"), y=ast.Literal_(text='""')):
            return "Containerd"
        case _:
            return ""


def _started(block: ast.Block, starts: Sequence[Start]) -> str:
    """Return what a block starts, whatever happens in it."""
    return "".join(start.runtime for start in starts if block.span.contains(start.span) and _is_certain(block, start))


def _later(tree: Tree, path: str, decl: ast.FuncDecl, block: ast.Block, starts: Sequence[Start]) -> ast.Stmt | None:
    """Return what a block does between the start of its runtime and its end, where that may take long or fail."""
    start = next(each.span for each in starts if block.span.contains(each.span))
    at = next(at for at, stmt in enumerate(block.stmts) if stmt.span.contains(start))
    first, rest = block.stmts[at], block.stmts[at + 1 :]
    match first, rest:
        case ast.Assign(lhs=(ast.Ident(name=err),), rhs=(ast.Call(span=span),)), (check, *after) if (
            span == start and isinstance(check, ast.If) and check.init is None and _returns(tree, path, check, err)
        ):
            rest = tuple(after)
        case _:
            guard = _shapes.guard_at(decl, start, more=True)
            if guard is None or guard.stmt != first or not _returns(tree, path, first, guard.err):
                return first
    quick = (ast.Go, ast.Defer)
    return next((stmt for stmt in rest if not isinstance(stmt, quick) and not _shapes.logs(tree, path, stmt)), None)


def _returns(tree: Tree, path: str, stmt: ast.Stmt, err: str) -> bool:
    """Tell whether a statement does nothing but return where an error is set."""
    match stmt:
        case ast.If(
            cond=ast.Binary(op="!=", x=ast.Ident(name=tested), y=ast.Ident(name="nil")),
            then=ast.Block(stmts=(*logged, ast.Return())),
            else_=None,
        ):
            return tested == err and all(_shapes.logs(tree, path, each) for each in logged)
        case _:
            return False


def _is_certain(block: ast.Block, start: Start) -> bool:
    """Tell whether a call below a block stands in no branch or loop within it."""
    return not any(
        isinstance(node, ast.For | ast.Switch | ast.Select)
        or (isinstance(node, ast.If) and (node.init is None or not node.init.span.contains(start.span)))
        for node in trail(block, start.span)
    )


def _is_cri(tree: Tree, found: ast.Object | None) -> bool:
    return found == ast.PackageObject(package(tree, EXECUTOR), "CRI")


def _after_starts(
    tree: Tree, path: str, stmt: ast.Stmt, before: Sequence[ast.Stmt], starts: Sequence[Start]
) -> Verdict:
    """Replace what closed the channel by the call that does so where the agent starts the runtimes itself."""
    args = {start.args for start in starts}
    if len(args) != 1 or len(starts[0].args) != 2:
        return Manual("docker and containerd are not started with the same context and node", BY_HAND)
    if not all(any(each.span.contains(start.span) for each in before) for start in starts):
        return Manual("a container runtime is started after the channel is closed", BY_HAND)
    lost = [
        text
        for found in tree.comments_in(path, stmt.span)
        if not _shapes.is_about_readiness(text := tree.text(path, found))
    ]
    if lost:
        return Manual(f"the comment {lost[0]!r} would be lost", "move it to where it still holds")
    call = _call_cri(tree, path, stmt, *starts[0].args, standalone=False)
    if isinstance(call, Manual):
        return call
    edit = Edit(path, stmt.span, replace(call[0], indent=tree.indent(path, stmt.span.start)))
    return Rewrite((edit, *call[1]))


def _standalone(tree: Tree, path: str, stmt: ast.Stmt, before: Sequence[ast.Stmt]) -> Verdict:
    """Replace what closed the channel of a node without a container runtime by the call that does so now."""
    bootstrap = ast.PackageObject(package(tree, EXECUTOR), "Bootstrap")
    calls = (node for each in before for node in walk(each) if isinstance(node, ast.Call))
    args = next((call.args for call in calls if tree.calls(path, call) == bootstrap), ())
    if len(args) < 2:
        return Manual("executor.Bootstrap is not called before, so the node's configuration is not known", BY_HAND)
    call = _call_cri(tree, path, stmt, *_texts(tree, path, args[:2]), standalone=True)
    if isinstance(call, Manual):
        return call
    return _shapes.combined(_shapes.replace_statement(tree, path, stmt.span, call[0]), call[1])


def _call_cri(
    tree: Tree, path: str, stmt: ast.Stmt, ctx: str, node: str, *, standalone: bool
) -> tuple[Fragment, tuple[NeedImport, ...]] | Manual:
    executor = tree.qualify(path, package(tree, EXECUTOR), "executor", stmt.span.start)
    if executor is None:
        return _shapes.cannot_name(EXECUTOR, f"executor.CRI({ctx}, {node})")
    why = "yes" if standalone else ""
    text = Fragment.of(CALL_CRI.name, executor=executor.prefix, ctx=ctx, node=node, standalone=why)
    return text, _shapes.needs(path, executor)
