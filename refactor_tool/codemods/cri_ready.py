"""Step 4: the container runtime's readiness comes from the executor, and the channel that was handed around goes.

The server command makes it and gives it to `config.NewRuntime`, for etcd to wait on, and to `cmds.Agent`, for the agent
to close. A carrier goes only if each of its uses is one that is rewritten here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from refactor_tool.codemod import Anchor, Codemod, Template
from refactor_tool.codemods import _cri_agent, _cri_carriers, _shapes
from refactor_tool.codemods._cri_carriers import BY_HAND, ID, Carriers, Variable, finding, nodes_at
from refactor_tool.codemods._k3s import ETCD, EXECUTOR, MOCK, declares, folder_of, package, relocated
from refactor_tool.codemods._literals import unkeyed
from refactor_tool.gosrc import ast, layout
from refactor_tool.gosrc.tree import Occurrence, Tree
from refactor_tool.gosrc.walk import statement, walk
from refactor_tool.model import Cover, Edit, Finding, Fragment, Leave, Manual, Rewrite, Span, Verdict

CHAN = "CRIReadyChan"
#: Where etcd waits for the container runtime.
WAITS = {"(*ETCD).Reset": "etcd-reset", "(*ETCD).Start": "etcd-start", "(*ETCD).manageLearners": "etcd-learners"}

_SET_MOCK = Template(f"{ID}/set_mock.go.j2", ("executor", "mock"))
_CHAN = re.compile(rb"\b" + CHAN.encode() + rb"\b")
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
        *_cri_agent.direct_starts(tree),
        *_executor_for_tests(carriers),
    ]
    yield from found
    for field in _cri_carriers.fields(carriers, found):
        yield field
        if isinstance(field.verdict, Rewrite):
            yield from _unkeyed(tree, field)
    yield from _cri_agent.called(tree, {each.anchor for each in found})
    yield from _dead(tree, variables)


def _unkeyed(tree: Tree, field: Finding) -> Iterator[Finding]:
    """Yield the literals by position of the struct that loses a field."""
    decl = tree.decl_at(field.path, field.span.start)
    if isinstance(decl, ast.TypeDecl):
        for path, place, by_hand in unkeyed(tree, tree.package_of(field.path), decl.name):
            yield finding(tree, path, place, by_hand, field.message, "literal")


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
    closed = Cover((close.path, close.span) for close in closes)
    for use in (use for use in own if use.role != "close"):
        if not closed.holds(use.path, use.qualified):
            yield _use(carriers, use)


def _use(carriers: Carriers, use: Occurrence) -> Finding:
    """Judge one use of a field."""
    tree, path = carriers.tree, use.path
    anchor = WAITS.get(tree.title_at(path, use.span.start), "")
    match use.role, statement(nodes_at(tree, path, use.span)):
        case _ if not carriers.holds(use.object):
            pass
        case (("nil-check" | "close"), _) if use.object in carriers.agent:
            return _cri_agent.closing(carriers, use)
        case "key", _:
            return _cri_carriers.key(carriers, use)
        case "assignment", ast.Assign(span=span, lhs=(left,), op="=", rhs=(right,)) if carriers.is_field(path, left):
            gone = _shapes.remove_statements(tree, path, (span,))
            more = Manual(f"{tree.text(path, span)!r} does more than set a channel", BY_HAND)
            verdict = _shapes.combined(gone) if carriers.may_drop(path, right) else more
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
    interface = tree.interface(package(tree, EXECUTOR), "Executor")
    asked = interface is not None and any(method.name == CHAN for method in interface[2].methods)
    ready = tree.functions(package(tree, MOCK), "NewReady")
    # the step before writes the executor for tests only where there is none
    is_own = asked or bool(ready) or declares(tree, package(tree, MOCK), "Executor")
    if is_own and not any(not each.params and len(each.results) == 1 for _, each in ready):
        lacks = f"{MOCK} has no NewReady, which makes an executor for tests that is ready"
        return Manual(lacks, "write it, then plan again")
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
        "start. A container runtime that somebody else starts is ready once its\n"
        "socket answers; where k3s cannot wait for that, at once, as before. What\n"
        "waits for it in the etcd package stops waiting when the context ends."
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
    templates=(_cri_agent.ELSE, _cri_agent.CALL_CRI, _SET_MOCK, _shapes.WAIT_READY),
    find=find,
)
