"""Step 3: whoever waits for the apiserver asks the executor for its channel, and one poll closes that.

This module follows the channel that `ControlRuntime` carried, and the parameters of two executor methods that it was
handed to. The polls are in `_apiserver_poll` and `_apiserver_waits`. What only looks as if it were about this channel
is named and left.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from refactor_tool.codemod import Anchor, Codemod
from refactor_tool.codemods import _apiserver_poll, _apiserver_waits, _signatures
from refactor_tool.codemods._apiserver import (
    ACCESSOR,
    ANCHORS,
    FIELD,
    HELPER,
    ID,
    LATE,
    LIMIT,
    NOTIFY,
    anchor_at,
    found,
    has_helper,
    runtime_field,
    settled,
)
from refactor_tool.codemods._before_bootstrap import endless
from refactor_tool.codemods._k3s import AGENT, CMDS, CONFIG, CONTROL, EXECUTOR, SERVER, TUNNEL, UTIL, folder_of, package
from refactor_tool.codemods._literals import unkeyed
from refactor_tool.codemods._shapes import (
    WAIT_READY,
    comment_above,
    names_in,
    outside,
    ready_chan,
    replace_use,
    whole_function,
    with_comment_about,
)
from refactor_tool.gosrc import ast, layout
from refactor_tool.gosrc.tree import Occurrence, Tree
from refactor_tool.gosrc.walk import trail, walk
from refactor_tool.gosrc.words import words_with
from refactor_tool.model import Channel, Cover, Edit, Finding, Leave, Manual, Rewrite, Span, Verdict

#: Names of readiness that this step is about, or that only look so.
_WORDS = re.compile(
    rb"\w*(?:[Aa]pi|API|[Aa]piServer|APIServer)Ready(?:Chan|Loop|Timeout|InBackground)?"
    rb"|ccmRBACReady|schedulerNodeReady|nodeReady"
)
_NEEDLES = (b"APIServerReady", b"apiServerReady", b"apiReady", b"RBACReady", b"odeReady")
_ASKS = re.compile(rf"\b(?:{ACCESSOR}|{HELPER})\b".encode())
_BOOTSTRAP = re.compile(r"Bootstrap|nodeConfig")
_FIELD = re.compile(rf"\b{FIELD}\b".encode())
_OLD_NAME = re.compile(rb"\bschedulerNodeReady\b")
_NODE_READY = "nodeReady"


def find(tree: Tree) -> Iterator[Finding]:
    """Yield every place that waited for the apiserver, made, carried or took its channel; then what only looks so."""
    sites = [*_apiserver_poll.find(tree), *_apiserver_waits.find(tree), *_parameters(tree), *_scheduler(tree)]
    sites.extend(_field(tree, sites))
    sites.extend(_asked(tree, sites))
    yield from settled(sites)
    yield from _left(tree, sites)


# --- parameters of the executor's methods -----------------------------------------------------------


def _parameters(tree: Tree) -> Iterator[Finding]:
    for place in _signatures.dropped(tree, "ControllerManager", ACCESSOR):
        message = "start the controller manager without the channel; the executor waits by itself"
        anchor = _anchor(place, "controller-manager") or anchor_at(tree, place.path, place.span.start)
        yield found(tree, place.path, place.span, place.verdict, message, f"drop-{place.shape}", anchor=anchor)
    for place in _signatures.renamed(tree, "Scheduler", "apiReady", _NODE_READY):
        message = f"call the scheduler's channel {_NODE_READY}, which is what it stands for"
        anchor = _anchor(place, "scheduler")
        yield found(
            tree, place.path, place.span, place.verdict, message, f"rename-{place.shape}", anchor=anchor, channel="node"
        )


def _anchor(place: _signatures.Place, method: str) -> str:
    match place.shape:
        case "interface" | "forwarder":
            return f"{place.shape}-{method}"
        case "implementer" if place.owner == "Embedded":
            return f"embedded-{method}"
        case _:
            return ""


# --- the field that carried the channel -------------------------------------------------------------


def _field(tree: Tree, sites: Sequence[Finding]) -> Iterator[Finding]:
    """Yield the field of ControlRuntime and its uses, but those that go with what holds them."""
    gone = Cover((site.path, site.span) for site in sites if site.shape in ("promise", "drop-caller"))
    anchors = {site.anchor for site in sites}
    for use in tree.callers(runtime_field(tree)):
        if gone.holds(use.path, use.span):
            continue
        asked = ready_chan(tree, use.path, ACCESSOR, use.qualified)
        verdict: Verdict = asked if isinstance(asked, Manual) else replace_use(tree, use, *asked)
        if use.role in ("receive", "select-case") and isinstance(verdict, Rewrite):
            verdict = endless(tree, use.path, use.qualified) or verdict
        anchor = _first(anchor_at(tree, use.path, use.span.start), anchors)
        yield found(tree, use.path, use.qualified, verdict, f"ask the executor: {ACCESSOR}", use.role, anchor=anchor)
    yield from _lost_field(tree, sites, anchors)
    for path, decl in tree.types(package(tree, CONFIG), "ControlRuntime"):
        verdict, span = _without_field(tree, path, decl)
        yield found(tree, path, span, verdict, f"drop the field {FIELD}", "field", anchor="runtime-field")
        if isinstance(verdict, Rewrite):
            for where, place, by_hand in unkeyed(tree, package(tree, CONFIG), "ControlRuntime"):
                yield found(tree, where, place, by_hand, f"drop the field {FIELD}", "literal")


def _lost_field(tree: Tree, sites: Sequence[Finding], anchors: set[str]) -> Iterator[Finding]:
    """Yield the uses of a field of that name whose owner is not known, as where the field has gone before its uses."""
    for path in tree.files_with(FIELD.encode()):
        for use in tree.occurrences(path, _FIELD, outside=_lines(tree, path, sites)):
            if isinstance(use.object, ast.UnknownObject) and use.qualified != use.span:
                line = tree.line_text(path, use.span.start)
                lost = Manual(f"it is not known what {FIELD} is here: {line!r}", f"use the executor's {ACCESSOR}")
                anchor = _first(anchor_at(tree, path, use.span.start), anchors)
                yield found(tree, path, use.qualified, lost, f"ask the executor: {ACCESSOR}", use.role, anchor=anchor)


def _first(anchor: str, taken: set[str]) -> str:
    """Return an anchor where nothing has it yet, and take it: a function may read the channel more than once."""
    if anchor in taken:
        return ""
    taken.add(anchor)
    return anchor


def _without_field(tree: Tree, path: str, decl: ast.TypeDecl) -> tuple[Verdict, Span]:
    struct = decl.type
    fields = struct.fields if isinstance(struct, ast.StructType) else ()
    field = next((field for field in fields for ident in field.names if ident.name == FIELD), None)
    if field is None or not isinstance(struct, ast.StructType):
        return Leave(f"ControlRuntime carries no {FIELD} any more", done=True), decl.name_span
    if len(field.names) > 1:
        return Manual(f"{FIELD} shares its type with others: {tree.text(path, field.span)}", "drop it"), field.span
    above = comment_above(tree, path, field.span)
    span = field.span if above is None else Span(above.start, field.span.end)
    return Rewrite(layout.remove_fields(tree, path, struct, [FIELD])), span


# --- the scheduler ----------------------------------------------------------------------------------


def _scheduler(tree: Tree) -> Iterator[Finding]:
    """Yield the local that the scheduler's channel had, and the loop that waited for Bootstrap in older executors."""
    for path, decl in tree.functions(package(tree, CONTROL), "scheduler"):
        yield from _local_name(tree, path, decl)
    for owner in tree.implementers(package(tree, EXECUTOR), "Executor"):
        for path, decl in owner.methods:
            if decl.name == "Scheduler":
                yield from _busy_loops(tree, path, tree.function(path, decl))


def _local_name(tree: Tree, path: str, decl: ast.FuncDecl) -> Iterator[Finding]:
    """Yield each place where the scheduler's channel has its old name, in comments too."""
    uses = tree.occurrences(path, _OLD_NAME, outside=outside(tree, path, decl.span))
    if not any(isinstance(use.object, ast.LocalObject) for use in uses):
        return
    taken = names_in(tree, path, decl.span, _NODE_READY)
    for use in uses:
        verdict: Verdict = Rewrite((Edit(path, use.span, _NODE_READY.encode()),))
        if taken or (use.object is not None and not isinstance(use.object, ast.LocalObject)):
            verdict = Leave(f"{_NODE_READY if taken else use.name} means something else here")
        yield found(tree, path, use.span, verdict, f"call it {_NODE_READY}", "rename-local", channel="node")


def _busy_loops(tree: Tree, path: str, decl: ast.FuncDecl) -> Iterator[Finding]:
    """Yield `for e.nodeConfig == nil { runtime.Gosched() }`: Bootstrap sets that before it starts the poll."""
    for node in walk(decl):
        match node:
            case ast.For(
                exprs=(ast.Binary(op="==", x=ast.Selector(name="nodeConfig"), y=ast.Ident(name="nil")),),
                body=ast.Block(stmts=(ast.ExprStmt(x=ast.Call() as call),)),
            ) if tree.calls(path, call) == ast.PackageObject("runtime", "Gosched"):
                verdict: Verdict = Leave("the channel may be closed before Bootstrap, so the loop is needed")
                if _gets_apiserver(tree) and not tree.comments_in(path, node.span):
                    gone = with_comment_about(tree, path, node.span, _BOOTSTRAP)
                    verdict = Rewrite((layout.remove_lines(tree, path, gone),))
                message = "drop the busy loop: the channel is only closed after Bootstrap"
                yield found(tree, path, node.span, verdict, message, "busy-loop", channel="node")
            case _:
                pass


def _gets_apiserver(tree: Tree) -> bool:
    """Tell whether the scheduler is given the apiserver's channel, as it was before `control` waited for a node."""
    scheduler = ast.PackageObject(package(tree, EXECUTOR), "Scheduler")
    calls = [(use.path, tree.call_at(use.path, use.qualified)) for use in tree.callers(scheduler) if use.role == "call"]
    given = [(path, call.args[1]) for path, call in calls if call is not None and len(call.args) > 1]
    return bool(given) and all(tree.resolve(path, channel) == runtime_field(tree) for path, channel in given)


# --- what is done, and what only looks like it ------------------------------------------------------


def _asked(tree: Tree, sites: Sequence[Finding]) -> Iterator[Finding]:
    """Yield who asks the executor already, or waits with the agent's helper."""
    anchors = {site.anchor for site in sites}
    executors = {(owner.package, owner.type) for owner in tree.implementers(package(tree, EXECUTOR), "Executor")}
    for path in tree.files_with(ACCESSOR.encode(), HELPER.encode()):
        for use in tree.occurrences(path, _ASKS, outside=_lines(tree, path, sites)):
            decl = tree.function_at(path, use.span.start)
            if use.role != "call" or decl is None or decl.name == ACCESSOR or not _is_asked(tree, use):
                continue
            own = decl.name == HELPER or (tree.package_of(path), decl.receiver_type) in executors
            anchor = _first(anchor_at(tree, path, use.span.start), anchors)
            done: Verdict = Leave("asks the executor already", done=True)
            if _is_waited_for(tree, use):
                done = endless(tree, use.path, use.qualified) or done
            shape = "asks-own" if own else "asks"
            yield found(tree, path, use.qualified, done, f"ask the executor: {ACCESSOR}", shape, anchor=anchor)


def _is_asked(tree: Tree, use: Occurrence) -> bool:
    match use.object:
        case ast.PackageObject(package=owner, name=name):
            helper = (package(tree, AGENT), HELPER) if has_helper(tree) else None
            return (owner, name) in {(package(tree, EXECUTOR), ACCESSOR), helper}
        case ast.FieldObject(name=name):
            return name == ACCESSOR
        case _:
            return False


def _is_waited_for(tree: Tree, use: Occurrence) -> bool:
    """Tell whether the channel that is asked for is received from at once, or the helper waits for it."""
    decl = whole_function(tree, use.path, use.span)
    for node in trail(decl, use.qualified) if decl is not None else ():
        match node:
            case ast.Unary(op="<-") | ast.Call(fun=ast.Selector(name="WaitReady")):
                return True
            case _:
                pass
    return use.name == HELPER


def _left(tree: Tree, sites: Sequence[Finding]) -> Iterator[Finding]:
    """Yield what has a name of this step and is not its business, with the reason; the audit judges the rest."""
    for path in tree.files_with(*_NEEDLES):
        aside = Cover((path, line) for line in _lines(tree, path, sites))
        places = words_with([b"Ready"], _WORDS, tree.data(path))
        for use in tree.occurrences_at(path, [at for at in places if not aside.holds(path, at)]):
            leave = _reason(tree, use) if not _is_in_limit(tree, use) else None
            if leave is not None:
                yield found(tree, path, use.span, leave, f"keep {use.name}", use.role, channel=_channel(use))


def _is_in_limit(tree: Tree, use: Occurrence) -> bool:
    """Tell whether a place is in the declaration of the time limit or its comment, which are the first step's."""
    match tree.decl_at(use.path, use.span.start):
        case ast.VarDecl(specs=(ast.VarSpec(names=(ast.Ident(name=name),)),)) if name == LIMIT:
            return True
        case _:
            return False


def _lines(tree: Tree, path: str, sites: Sequence[Finding]) -> list[Span]:
    return [layout.whole_lines(tree.data(path), site.span) for site in sites if site.path == path]


def _reason(tree: Tree, use: Occurrence) -> Leave | None:
    if use.role in ("comment", "string"):
        return Leave(f"a {use.role} that mentions {use.name}, no code")
    if use.role == "label":
        return Leave("the label of the loop around the wait, which stays")
    match use.object:
        case ast.PackageObject(package=owner, name=name):
            return _reason_of_global(tree, use, owner, name)
        case ast.FieldObject(package=owner, type="StartupHookArgs") if owner == package(tree, CMDS):
            return Leave(
                "what startup hooks of other projects are given; it closes only after all of them have returned"
            )
        case ast.LocalObject(name=name) if name == "ccmRBACReady":
            return Leave("closed when the cloud controller manager has its privileges, not when the apiserver is ready")
        case ast.LocalObject(name=name) if name == _NODE_READY:
            return Leave("closed when a node is untainted, not when the apiserver is ready")
        case ast.LocalObject() if folder_of(use.path) == TUNNEL:
            return Leave("the tunnel's own channel, closed when its permissions are there, not by the apiserver")
        case _:
            return None


def _reason_of_global(tree: Tree, use: Occurrence, owner: str, name: str) -> Leave | None:
    util = package(tree, UTIL)
    if (owner, name) == (util, LIMIT):
        return Leave(f"the time limit of another wait: {tree.line_text(use.path, use.span.start)}")
    if (owner, name) in {(util, NOTIFY), (util, ACCESSOR)}:
        return Leave("the one poll that is left", done=True)
    if (owner, name) == (package(tree, AGENT), HELPER) and has_helper(tree):
        return Leave("the wait with a time limit", done=True)
    if (owner, name) == (package(tree, SERVER), "startOnAPIServerReady"):
        return Leave("it waits with its context already; only its channel changes")
    if tree.file(use.path).test and name.startswith("Test"):
        return Leave("a test of the poll")
    return None


def _channel(use: Occurrence) -> Channel:
    name = use.name.lower()
    if "rbac" in name or (folder_of(use.path) == TUNNEL and isinstance(use.object, ast.LocalObject)):
        return "rbac"
    return "node" if "node" in name else "apiserver"


CODEMOD = Codemod(
    id=ID,
    title="Wait for the apiserver with the executor's ready channel",
    body="""\
Poll /readyz in one place, which the embedded executor starts when it is
bootstrapped, and close its channel once the apiserver is ready. This
replaces the four places that polled by themselves and the channel that
ControlRuntime carried from one of them.

The agent still returns an error if the apiserver is not ready in time, and
that error now has the reason; agentless servers do the same. Goroutines of
the kubelet and of the agent tunnel end with the context where they exited
the process at the same limit. On servers the wait depends neither on etcd
nor on a busy loop any more.
""",
    find=find,
    templates=(WAIT_READY, *_apiserver_poll.TEMPLATES, *_apiserver_waits.TEMPLATES),
    anchors=tuple(Anchor(name, optional=name in LATE) for name in ANCHORS),
    requires=("surface-readyz-errors", "executor-ready-channels"),
)
