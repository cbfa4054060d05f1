"""Step 4: the container runtime's readiness comes from the executor, and the channel that was handed around goes.

The server command makes it and gives it to `config.NewRuntime`, for etcd to wait on, and to `cmds.Agent`, for the agent
to close. A carrier goes only if each of its uses is one that is rewritten here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise

from refactor_tool.codemod import Anchor, Codemod, Template
from refactor_tool.codemods import _cri_carriers, _shapes
from refactor_tool.codemods._cri_carriers import BY_HAND, ID, Carriers, Variable, finding, is_pure, nodes_at
from refactor_tool.codemods._k3s import AGENT, ETCD, EXECUTOR, MOCK, folder_of, package, relocated
from refactor_tool.gosrc import ast, layout
from refactor_tool.gosrc.tree import Occurrence, Tree
from refactor_tool.gosrc.walk import Node, functions_at, statement, trail, walk
from refactor_tool.model import Edit, Finding, Fragment, Leave, Manual, NeedImport, Rewrite, Span, Verdict
from refactor_tool.record import record, replace

CHAN = "CRIReadyChan"
LOGRUS = "github.com/sirupsen/logrus"
#: Where etcd waits for the container runtime.
WAITS = {"(*ETCD).Reset": "etcd-reset", "(*ETCD).Start": "etcd-start", "(*ETCD).manageLearners": "etcd-learners"}

_ELSE = Template(f"{ID}/else.go.j2", ("ctx", "executor", "node"))
_CALL_CRI = Template(f"{ID}/call_cri.go.j2", ("ctx", "executor", "node", "standalone"))
_SET_MOCK = Template(f"{ID}/set_mock.go.j2", ("executor", "mock"))
_CRI = re.compile(rb"\bCRI\b")
_CHAN = re.compile(rb"\b" + CHAN.encode() + rb"\b")
_RUN = re.compile(rb"\bRun\b")
_OLD_NAMES = re.compile(rb"\b(?:containerRuntimeReady|agentReady)\b")


def find(tree: Tree) -> Iterator[Finding]:
    """Yield a finding for every carrier and every use of the container runtime's readiness."""
    carriers = Carriers.of(tree)
    calls = tree.callers(carriers.new_runtime)
    uses = tuple(carriers.uses())
    variables = _cri_carriers.variables(carriers, calls, uses)
    covered = {place for variable in variables for place in variable.covers} | _handed_on(carriers, uses)
    waits = [*_judged(carriers, uses, covered), *_asked(tree)]
    found = [
        *(each for variable in variables for each in variable.findings),
        *(_cri_carriers.call(carriers, call) for call in calls),
        *relocated(waits, WAITS, ("receive", "select-case", "call")),
        *_cri_carriers.new_runtime(carriers),
        *_direct_starts(tree),
        *_executor_for_tests(carriers),
    ]
    yield from found
    yield from _cri_carriers.fields(carriers, found)
    yield from _called(tree, {each.anchor for each in found})
    yield from _dead(tree, variables)


def _handed_on(carriers: Carriers, uses: Iterable[Occurrence]) -> set[tuple[str, Span]]:
    """Return the uses that go with a call of `NewRuntime` or with the key of a field."""
    return {
        (use.path, use.qualified)
        for use in uses
        if use.role in ("argument", "value") and carriers.takes(use.path, nodes_at(carriers.tree, use.path, use.span))
    }


def _judged(carriers: Carriers, uses: Iterable[Occurrence], covered: Collection[tuple[str, Span]]) -> Iterator[Finding]:
    """Judge each use once; the nil check around a close goes with that."""
    own = [use for use in uses if (use.path, use.qualified) not in covered]
    closes = [_use(carriers, use) for use in own if use.role == "close"]
    yield from closes
    for use in (use for use in own if use.role != "close"):
        if not any(close.path == use.path and close.span.contains(use.qualified) for close in closes):
            yield _use(carriers, use)


def _use(carriers: Carriers, use: Occurrence) -> Finding:
    """Judge one use of a field."""
    tree, path = carriers.tree, use.path
    anchor = WAITS.get(tree.title_at(path, use.span.start), "")
    match use.role, statement(nodes_at(tree, path, use.span)):
        case _ if not carriers.holds(use.object):
            pass
        case (("nil-check" | "close"), _) if use.object in carriers.agent:
            return _closing(carriers, use)
        case "key", _:
            return _cri_carriers.key(carriers, use)
        case "assignment", ast.Assign(span=span, lhs=(left,), op="=", rhs=(right,)) if carriers.is_field(path, left):
            gone = _shapes.remove_statements(tree, path, (span,))
            more = Manual(f"{tree.text(path, span)!r} does more than set a channel", BY_HAND)
            verdict = _shapes.combined(gone) if is_pure(right) else more
            return finding(tree, path, span, verdict, f"no longer set {use.name}", "field-assignment")
        case role, stmt if use.object in carriers.runtime:
            asked = _shapes.ready_chan(tree, path, CHAN, use.qualified)
            verdict = asked if isinstance(asked, Manual) else _shapes.replace_use(tree, use, *asked)
            span = stmt.span if role == "receive" and isinstance(stmt, ast.ExprStmt) else use.qualified
            return finding(tree, path, span, verdict, "ask the executor for the channel", role, anchor)
        case _:
            pass
    unknown = Manual(f"unknown use of {use.name}: {tree.line_text(path, use.span.start)!r}", BY_HAND)
    return finding(tree, path, use.qualified, unknown, f"use of {use.name}", "unknown-shape", anchor)


# --- where the agent closes the channel -------------------------------------------------------------


@record
class Start:
    """A call that starts a container runtime: which, whether the executor can do it, its arguments and its place."""

    runtime: str
    by_executor: bool
    args: tuple[str, ...]
    span: Span


def _by_executor(tree: Tree) -> dict[ast.Object, str]:
    """Return the executor's functions that start a container runtime, by what they start; none before 2024-02-21."""
    names = [name for name in ("Containerd", "Docker") if tree.functions(package(tree, EXECUTOR), name)]
    return {ast.PackageObject(package(tree, EXECUTOR), name): name for name in names}


def _directly(tree: Tree) -> dict[ast.Object, str]:
    """Return the functions that start one without the executor."""
    folders = {"Containerd": f"{AGENT}/containerd", "Docker": f"{AGENT}/cridockerd"}
    return {ast.PackageObject(package(tree, folder), "Run"): name for name, folder in folders.items()}


def _direct_starts(tree: Tree) -> Iterator[Finding]:
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


def _closing(carriers: Carriers, use: Occurrence) -> Finding:
    """Let the executor close the channel: where it starts the runtime, or where there is none to start."""
    tree, path = carriers.tree, use.path
    decl = tree.function_at(path, use.span.start)
    whole = tree.function(path, decl) if decl is not None else None
    place = _closing_statement(carriers, path, trail(whole, use.span)) if whole is not None else None
    if whole is None or place is None or _shapes.exit_of(functions_at(whole, use.span)[-1]) != "return err":
        line = tree.line_text(path, use.span.start)
        unknown = Manual(f"the agent closes its channel in an unknown way: {line!r}", BY_HAND)
        return finding(tree, path, use.qualified, unknown, "call executor.CRI", "unknown-shape")
    stmt, before = place
    starts = _starts(tree, path, whole)
    if not starts:
        verdict, anchor = _standalone(tree, path, stmt, before), "run-standalone"
    elif any(start.by_executor for start in starts):
        verdict, anchor = _else_branch(tree, path, stmt, before, starts), "agent-run"
    else:
        verdict, anchor = _after_starts(tree, path, stmt, before, starts), "agent-run"
    return finding(tree, path, stmt.span, verdict, "call executor.CRI", "close-channel", anchor)


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
                return node, parent.stmts[: parent.stmts.index(node)]
            case _:
                pass
    return None


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


def _called_name(call: ast.Call) -> str:
    return call.fun.name if isinstance(call.fun, ast.Ident | ast.Selector) else ""


def _texts(tree: Tree, path: str, args: Sequence[ast.Expr]) -> tuple[str, ...]:
    return tuple(tree.text(path, arg.span) for arg in args)


def _else_branch(tree: Tree, path: str, stmt: ast.Stmt, before: Sequence[ast.Stmt], starts: Sequence[Start]) -> Verdict:
    """Add the last branch to the `if` that starts one of two runtimes, and remove what closed the channel after it."""
    chain = next((each for each in reversed(before) if not _is_log(tree, path, each)), None)
    branches, last = _branches(chain)
    inside = [[start for start in starts if branch.span.contains(start.span)] for branch in branches]
    args = {start.args for start in starts}
    if sorted(start.runtime for start in starts) != ["Containerd", "Docker"] or [len(each) for each in inside] != [
        1,
        1,
    ]:
        return Manual("the statement before does not start docker, else containerd, and nothing else", BY_HAND)
    if len(args) != 1 or len(starts[0].args) != 2:
        return Manual("docker and containerd are not started with the same context and node", BY_HAND)
    gone = _shapes.remove_statements(tree, path, (stmt.span,))
    if last is not None:
        known = any(isinstance(node, ast.Call) and _is_cri(tree, tree.calls(path, node)) for node in walk(last))
        return _shapes.combined(gone) if known else Manual("there is a last else branch that is not known", BY_HAND)
    executor = tree.qualify(path, package(tree, EXECUTOR), "executor", branches[-1].span.start)
    if executor is None:
        return _shapes.cannot_name(EXECUTOR, "executor.CRI")
    ctx, node = starts[0].args
    end = branches[-1].span.end
    text = Fragment.of(_ELSE.name, tree.indent(path, end - 1), executor=executor.prefix, ctx=ctx, node=node)
    return _shapes.combined((Edit(path, Span(end, end), text), *_shapes.needs(path, executor)), gone)


def _branches(stmt: ast.Stmt | None) -> tuple[tuple[ast.Block, ...], ast.Block | None]:
    """Return the blocks of an `if` and its `else if`s, and that of the last `else`."""
    match stmt:
        case ast.If(then=then, else_=ast.If() as other):
            rest, last = _branches(other)
            return (then, *rest), last
        case ast.If(then=then, else_=ast.Block() as last):
            return (then,), last
        case ast.If(then=then):
            return (then,), None
        case _:
            return (), None


def _is_log(tree: Tree, path: str, stmt: ast.Stmt) -> bool:
    match stmt:
        case ast.ExprStmt(x=ast.Call(fun=fun)):
            found = tree.resolve(path, fun)
            return isinstance(found, ast.PackageObject) and found.package == LOGRUS
        case _:
            return False


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
    text = Fragment.of(_CALL_CRI.name, executor=executor.prefix, ctx=ctx, node=node, standalone=why)
    return text, _shapes.needs(path, executor)


# --- tests ------------------------------------------------------------------------------------------


def _executor_for_tests(carriers: Carriers) -> Iterator[Finding]:
    """Give the tests that generate a runtime an executor which is ready."""
    tree = carriers.tree
    files = tree.files_with(b"func GenerateRuntime(")
    packages = {tree.package_of(path) for path in files if "tests" in folder_of(path).split("/")}
    for path, decl in (each for folder in sorted(packages) for each in tree.functions(folder, "GenerateRuntime")):
        verdict = _set_mock(carriers, path, tree.function(path, decl))
        message = "set an executor that is ready"
        yield finding(tree, path, decl.name_span, verdict, message, "generate-runtime", "generate-runtime")


def _set_mock(carriers: Carriers, path: str, decl: ast.FuncDecl) -> Verdict:
    tree = carriers.tree
    setter = ast.PackageObject(package(tree, EXECUTOR), "Set")
    if any(isinstance(node, ast.Call) and tree.calls(path, node) == setter for node in walk(decl)):
        return Leave("an executor for tests is set already", done=True)
    made = tree.functions(carriers.new_runtime.package, carriers.new_runtime.name)
    if made and not any(each.params for _, each in made) and not tree.functions(package(tree, MOCK), "NewReady"):
        return Leave("tests set the executor that they need by themselves", done=True)
    if decl.body is None or not decl.body.stmts:
        return Manual("GenerateRuntime does nothing", "call executor.Set(mock.NewReady()) in it")
    first = decl.body.stmts[0].span
    above = _shapes.comment_above(tree, path, first)
    at = layout.insert_before_line(tree, path, above.start if above is not None else first.start)
    executor = tree.qualify(path, package(tree, EXECUTOR), "executor", first.start)
    mock = tree.qualify(path, package(tree, MOCK), "mock", first.start)
    tested = _tested_below(tree, tree.package_of(path))
    if tested:
        why = f"a test of {tested} imports {tree.package_of(path)}, and the executor imports {tested}: a cycle"
        return Manual(why, f"move the test to a package {tested.rpartition('/')[2]}_test, then run this again")
    if executor is None or mock is None:
        return _shapes.cannot_name(f"{EXECUTOR} or {MOCK}", "executor.Set(mock.NewReady())")
    text = Fragment.of(
        _SET_MOCK.name, tree.indent(path, first.start), lines=True, executor=executor.prefix, mock=mock.prefix
    )
    return Rewrite((Edit(path, at, text), *_shapes.needs(path, executor, mock)))


def _tested_below(tree: Tree, helpers: str) -> str:
    """Name a package which the executor imports and whose own tests import the helpers, "" where there is none."""
    for path in tree.files_with(f'"{helpers}"'.encode()):
        tested = tree.package_of(path)
        inside = path.endswith("_test.go") and not tree.package_clause(path).endswith("_test")
        if inside and not tree.may_import(tested, package(tree, EXECUTOR)):
            return tested
    return ""


# --- what is there already --------------------------------------------------------------------------


def _called(tree: Tree, anchors: Collection[str]) -> Iterator[Finding]:
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


def _asked(tree: Tree) -> Iterator[Finding]:
    """Yield where etcd waits for the executor's channel already."""
    for path in tree.package_files(package(tree, ETCD)):
        for use in tree.occurrences(path, _CHAN) if CHAN.encode() in tree.data(path) else ():
            done = Leave("waits for the executor's channel already", done=True)
            anchor = WAITS.get(tree.title_at(path, use.span.start), "")
            yield finding(tree, path, use.qualified, done, "executor.CRIReadyChan is asked", use.role, anchor)


def _dead(tree: Tree, variables: Sequence[Variable]) -> Iterator[Finding]:
    """Yield variables of the old names that feed nothing any more, as the hand-made change left them in tests."""
    known = {variable.local for variable in variables}
    for path in tree.files_with(b"containerRuntimeReady", b"agentReady"):
        for use in tree.occurrences(path, _OLD_NAMES):
            local = use.object
            if isinstance(local, ast.LocalObject) and local.kind == "var" and local not in known:
                dead = Leave(f"{local.name} feeds nothing any more", done=True)
                yield finding(tree, path, use.span, dead, f"{local.name} carries no readiness", "dead-local")


CODEMOD = Codemod(
    id=ID,
    title="Wait for the container runtime with the executor's ready channel",
    body=(
        "The server command made a channel, handed it to the control runtime and to\n"
        "the agent's configuration, and the agent closed it if it was set. The\n"
        "executor closes its own now, and only where the container runtime did\n"
        "start. A container runtime that is not started by the executor is ready\n"
        "once its socket answers. What waits for it in the etcd package stops\n"
        "waiting when the context ends."
    ),
    requires=("executor-ready-channels",),
    anchors=(
        Anchor("agent-run"),
        Anchor("run-standalone"),
        Anchor("agent-field"),
        Anchor("runtime-field"),
        Anchor("new-runtime", optional=True),
        Anchor("generate-runtime", optional=True),
        *(Anchor(name) for name in WAITS.values()),
    ),
    templates=(_ELSE, _CALL_CRI, _SET_MOCK, _shapes.WAIT_READY),
    find=find,
)
