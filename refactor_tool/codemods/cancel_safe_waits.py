"""Step 7: waits for readiness end with the context, and do not go on as if what they wait for had succeeded.

Covers what no earlier step had a reason to touch: bare receives, such as those for the tunnel's permissions and the
scheduler's node; deferred closes, which report readiness also where it was never reached; and waits that are fatal on
shutdown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from refactor_tool.codemod import Anchor, Codemod, Template
from refactor_tool.codemods import _shapes
from refactor_tool.codemods._close_on_success import CLOSE, CLOSE_AT_END, close_on_success
from refactor_tool.codemods._fatal_waits import CALLS, ENDED, FATAL, fatal_waits
from refactor_tool.codemods._k3s import CONFIG, CONTROL, EXECUTOR, TUNNEL, UTIL, is_test, package, relocated, site
from refactor_tool.gosrc import ast
from refactor_tool.gosrc.tree import Occurrence, Tree, TypeRef
from refactor_tool.gosrc.walk import functions_at, trail
from refactor_tool.model import Change, Channel, Edit, Finding, Leave, Manual, NeedImport, Rewrite, Span, Verdict
from refactor_tool.record import replace

ID = "cancel-safe-waits"
MESSAGE = "end the wait with the context"
OLD_NAME, NEW_NAME = "apiServerReady", "rbacReady"
#: Functions that wait with a bare receive or close with defer, and their anchors.
RECEIVES = {
    "setKubeletPort": "tunnel-kubelet-port",
    "watchPods": "tunnel-pods",
    "watchEndpoints": "tunnel-endpoints",
    "Scheduler": "embedded-scheduler",
    "CloudControllerManager": "embedded-cloud-controller",
}
CLOSES = {"scheduler": "control-scheduler", "cloudControllerManager": "control-cloud-controller"}
#: The components of the embedded executor that wait, with the number of parameters that they must have to be tested.
COMPONENTS = {"Kubelet": 2, "APIServer": 2, "Scheduler": 3, "ControllerManager": 2, "CloudControllerManager": 3}

_CHANNELS = ("APIServerReadyChan", "ETCDReadyChan", "CRIReadyChan")
#: What is in every function that waits.
_WAITS = ("WaitReady(", "WaitForAPIServerReady(", "<-")

_TEST = Template(f"{ID}/embed_test.go.j2", ("config",))
LOCAL = rb"\w*[rR]eady"
_ASKED = re.compile(rb"\b\w+ReadyChan\b")
_OLD = re.compile(rb"\b" + OLD_NAME.encode() + rb"\b")


def find(tree: Tree) -> Iterator[Finding]:
    """Yield the waits that do not end with the context, and what reports or ends them wrongly."""
    kept = Leave("the hand-made change keeps it: its waits end where the process does", done=True)
    hand_made = _is_hand_made(tree)
    closes = relocated(_closes(tree), CLOSES, ("close",))
    yield from _unclosed_signals(tree)
    yield from _plain_channels(tree)
    receives = tuple(_receives(tree, closes))
    for each in (*receives, *_renames(tree, receives), *closes, *_fatals(tree), *_waitless(tree), *_idle(tree)):
        match each.verdict:
            case Rewrite() | Manual() if hand_made:
                yield replace(each, verdict=kept)
            case Manual() as manual:
                # every site stands for itself: what is left to do by hand does not make the others wrong
                yield replace(each, verdict=replace(manual, blocks=False))
            case _:
                yield each


def _is_hand_made(tree: Tree) -> bool:
    """Tell whether the executor has all its channels, but nothing that a wait of ours could be written with."""
    interface = tree.interface(package(tree, EXECUTOR), "Executor")
    asked = {method.name for method in interface[2].methods} if interface is not None else set()
    return set(_CHANNELS) <= asked and not tree.functions(package(tree, UTIL), "WaitReady")


def _finding(
    tree: Tree, path: str, span: Span, verdict: Verdict, message: str, shape: str, anchor: str = ""
) -> Finding:
    name = tree.text(path, span).lower()
    channel: Channel = "rbac" if "rbac" in name or OLD_NAME.lower() in name else "node" if "node" in name else "none"
    return site(tree, ID, path, span, verdict, message, channel=channel, shape=shape, anchor=anchor)


# --- bare receives ----------------------------------------------------------------------------------


def _receives(tree: Tree, closes: Sequence[Finding]) -> Iterator[Finding]:
    """Yield the bare receives from channels, and the waits that are right already."""
    for path, decl in _waiting_functions(tree):
        yield from _in_function(tree, path, decl, closes)
    for path in tree.files_with(b"ReadyChan()", b"ReadyChan <-chan struct{}"):
        if not is_test(path):
            yield from _of_executor(tree, path, closes)


def _in_function(tree: Tree, path: str, decl: ast.FuncDecl, closes: Sequence[Finding]) -> Iterator[Finding]:
    """Judge what a function of the tunnel or an executor does with the channels that it is given."""
    # an executor of somebody else's is none of the sites that must be there
    is_foreign = decl.name in COMPONENTS and decl.receiver_type != "Embedded"
    anchor = "" if is_foreign else RECEIVES.get(decl.name, "")
    waits = False
    selects = []
    for use in _channels(tree, path, decl):
        receive = _bare_receive(tree, use)
        if receive is not None:
            ready = _new_name(tree, use) or use.name
            yield _receive(tree, use, receive, ready, anchor, closes, _tests(tree, path, decl))
        elif use.role == "receive":
            line = tree.line_text(path, use.span.start)
            odd = Manual(f"{line!r} does more than wait", f"select on {use.name} and the end of the context")
            yield _finding(tree, path, use.span, odd, MESSAGE, "receive", anchor)
        elif use.role == "argument" and _is_wait_ready(tree, use):
            done = Leave("the wait ends with the context already", done=True)
            yield _finding(tree, path, use.span, done, MESSAGE, "receive", anchor)
        else:
            selects += [use] if use.role == "select-case" else []
            continue
        waits = True
    if not waits:
        yield from (_select(tree, use, anchor) for use in selects)


def _select(tree: Tree, use: Occurrence, anchor: str) -> Finding:
    """Judge a wait in a select, in a function that has no other."""
    verdict: Verdict = Leave("the wait ends with the context already", done=True)
    if not _ends_with_context(tree, use):
        line = tree.line_text(use.path, use.span.start)
        verdict = Manual(f"{line!r} waits in a select that goes on after the context", "leave the function there")
    return _finding(tree, use.path, use.span, verdict, MESSAGE, "select-case", anchor)


def _of_executor(tree: Tree, path: str, closes: Sequence[Finding]) -> Iterator[Finding]:
    """Judge the bare receives from a channel that an executor is asked for, there or by a caller that hands it on."""
    for use in tree.occurrences(path, _ASKED):
        receive = _bare_receive(tree, use)
        call = tree.call_at(path, use.qualified) if use.role == "call" else None
        if receive is not None and (call is not None or isinstance(use.object, ast.LocalObject)):
            ready = tree.text(path, call.span) if call is not None else use.name
            yield _receive(tree, use, receive, ready, "", closes)
        elif isinstance(use.object, ast.LocalObject):
            given = Leave("a channel of the executor that the function is given", done=True)
            yield _finding(tree, path, use.span, given, MESSAGE, "channel")


def _receive(
    tree: Tree,
    use: Occurrence,
    receive: Span,
    ready: str,
    anchor: str,
    closes: Sequence[Finding],
    tests: tuple[Change, ...] = (),
) -> Finding:
    """Judge a bare receive; a deferred close of its function is no obstacle where it goes as well."""
    goes = any(
        isinstance(close.verdict, Rewrite) and _same_function(tree, close, use.path, receive) for close in closes
    )
    verdict = _shapes.wait_ready(tree, use.path, receive, ready, tests, close_goes=goes)
    return _finding(tree, use.path, receive, verdict, MESSAGE, "receive", anchor)


def _same_function(tree: Tree, close: Finding, path: str, receive: Span) -> bool:
    decl = _shapes.whole_function(tree, path, receive) if close.path == path else None
    return decl is not None and functions_at(decl, receive)[-1:] == functions_at(decl, close.span)[-1:]


def _waiting_functions(tree: Tree) -> Iterator[tuple[str, ast.FuncDecl]]:
    """Yield the functions of the tunnel, and those methods of executors that are given a channel to wait for."""
    for path in tree.package_files(package(tree, TUNNEL)):
        if not is_test(path):
            yield from ((path, decl) for decl in tree.decls(path) if isinstance(decl, ast.FuncDecl))
    for executor in tree.implementers(package(tree, EXECUTOR), "Executor"):
        yield from (found for found in executor.methods if found[1].name in RECEIVES and not is_test(found[0]))


def _channels(tree: Tree, path: str, decl: ast.FuncDecl) -> Iterator[Occurrence]:
    """Yield where a function names a channel that carries nothing: any that it is given, and locals called ready."""
    outside = (Span(0, decl.span.start), Span(decl.span.end, len(tree.data(path))))
    given = [
        ident.name.encode() for param in decl.params if isinstance(param.type, ast.ChanType) for ident in param.names
    ]
    names = re.compile(rb"\b(?:" + b"|".join([LOCAL, *given]) + rb")\b")
    for use in tree.occurrences(path, names, outside):
        if isinstance(use.object, ast.LocalObject):
            found = tree.type_of_name(path, use.span.start, use.name)
            if found is not None and isinstance(found.expr, ast.ChanType):
                yield use


def _bare_receive(tree: Tree, use: Occurrence) -> Span | None:
    """Return the statement that does nothing but receive from the channel that is named or asked for."""
    decl = _shapes.whole_function(tree, use.path, use.span)
    for parent, node in pairwise(trail(decl, use.span) if decl is not None else ()):
        match node:
            case ast.ExprStmt(span=span, x=ast.Unary(op="<-", x=ast.Ident() | ast.Call(args=()))):
                return None if isinstance(parent, ast.Case) and parent.comm == node else span
            case _:
                pass
    return None


def _ends_with_context(tree: Tree, use: Occurrence) -> bool:
    """Tell whether the select around a place has a case for the end of a context, after which nothing is done."""
    decl = _shapes.whole_function(tree, use.path, use.span)
    if decl is None:
        return False
    select = next((node for node in reversed(trail(decl, use.span)) if isinstance(node, ast.Select)), None)
    ends = [case for case in select.cases if _shapes.is_end(tree, use.path, case)] if select is not None else []
    body = functions_at(decl, use.span)[-1].body
    is_last = body is not None and body.stmts[-1] == select
    return any(is_last or any(isinstance(stmt, ast.Return) for stmt in case.body) for case in ends)


def _is_wait_ready(tree: Tree, use: Occurrence) -> bool:
    decl = _shapes.whole_function(tree, use.path, use.span)
    calls = [node for node in trail(decl, use.span) if isinstance(node, ast.Call)] if decl is not None else []
    waits = ast.PackageObject(package(tree, UTIL), "WaitReady")
    return bool(calls) and tree.calls(use.path, calls[-1]) == waits


def _tests(tree: Tree, path: str, decl: ast.FuncDecl) -> tuple[Change, ...]:
    """Add the test of all components to those that came with the executor's channels, where these are there."""
    own, test = tree.package_of(path), path.removesuffix(".go") + "_test.go"
    methods = {method.name: method for _, method in tree.methods(own, decl.receiver_type)}
    taken = [name for name in ("waiting", "Test_UnitEmbedded_Canceled") if tree.functions(own, name)]
    if decl.name != "CloudControllerManager" or test not in tree.snapshot.files or taken:
        return ()
    if not tree.functions(own, "Test_UnitEmbedded_CRI_Canceled") or any(
        name not in methods or sum(len(param.names) for param in methods[name].params) != count
        for name, count in COMPONENTS.items()
    ):
        return ()
    config = tree.qualify(test, package(tree, CONFIG), "daemonconfig", 0)
    if config is None:
        return ()
    end = len(tree.data(test))
    needed = (NeedImport(test, name) for name in ("context", "runtime", "strings", "testing", "time"))
    text = _TEST.filled({"config": config.prefix})
    return (Edit(test, Span(end, end), text), *needed, *_shapes.needs(test, config))


# --- the tunnel's channel ---------------------------------------------------------------------------


def _renames(tree: Tree, receives: Sequence[Finding]) -> Iterator[Finding]:
    """Yield where the tunnel calls the channel of its permissions by the apiserver's name, comments included.

    A receive that is rewritten takes the new name by that.
    """
    rewritten = {(each.path, each.span) for each in receives if isinstance(each.verdict, Rewrite)}
    for path in tree.package_files(package(tree, TUNNEL)):
        uses = tree.occurrences(path, _OLD) if OLD_NAME.encode() in tree.data(path) else ()
        locals_ = [use for use in uses if isinstance(use.object, ast.LocalObject)]
        renamed = [tree.function_at(path, use.span.start) for use in locals_ if _new_name(tree, use) is not None]
        for use in uses:
            is_about_it = use.role == "comment" and tree.function_at(path, use.span.start) in renamed
            if use not in locals_ and not is_about_it:
                continue
            receive = _bare_receive(tree, use)
            if receive is not None and (path, receive) in rewritten:
                continue
            verdict: Verdict = Rewrite((Edit(path, use.span, NEW_NAME.encode()),))
            if not is_about_it and _new_name(tree, use) is None:
                taken = _is_about_permissions(tree, path)
                why = (
                    f"{NEW_NAME} means something else here" if taken else "not the channel of the tunnel's permissions"
                )
                verdict = Leave(f"{OLD_NAME} keeps its name: {why}")
            message = "call the channel by what closes it, which is the tunnel's permissions"
            yield _finding(tree, path, use.span, verdict, message, "name")


def _new_name(tree: Tree, use: Occurrence) -> str | None:
    """Return what a local of the tunnel should be called, None where it may not be."""
    decl = tree.function_at(use.path, use.span.start)
    if use.name != OLD_NAME or decl is None or not _is_about_permissions(tree, use.path):
        return None
    return None if _shapes.names_in(tree, use.path, decl.span, NEW_NAME) else NEW_NAME


def _is_about_permissions(tree: Tree, path: str) -> bool:
    """Tell whether the channel of that name is closed where the permissions are waited for, and nowhere else.

    A file that does not close one is given that of the package's other files.
    """
    files = [each for each in tree.package_files(tree.package_of(path)) if OLD_NAME.encode() in tree.data(each)]
    closes = [use for each in files for use in tree.occurrences(each, _OLD) if use.role in ("close", "defer-close")]
    closes = [use for use in closes if use.path == path] or closes
    waits = [use for each in files for use in tree.occurrences(each, CALLS) if use.name == "WaitForRBACReady"]
    return bool(closes) and all(
        any(_in_one_function(tree, close, wait) for wait in waits if wait.role == "call") for close in closes
    )


def _in_one_function(tree: Tree, one: Occurrence, other: Occurrence) -> bool:
    decl = _shapes.whole_function(tree, one.path, one.span) if one.path == other.path else None
    return decl is not None and functions_at(decl, one.span)[-1:] == functions_at(decl, other.span)[-1:] != ()


# --- signals ----------------------------------------------------------------------------------------


def _unclosed_signals(tree: Tree) -> Iterator[Finding]:
    """Yield the signals of executors that nothing closes once all steps are made: what asks for them waits for ever."""
    signal = ast.PackageObject(package(tree, UTIL), "ReadySignal")
    if not tree.types(signal.package, signal.name):
        return
    for executor in tree.implementers(package(tree, EXECUTOR), "Executor"):
        sources = [path for path in tree.package_files(executor.package) if not path.endswith("_test.go")]
        # a test closes the signals of its mock by itself
        for path, decl in (each for each in tree.types(executor.package, executor.type) if not is_test(each[0])):
            for field in decl.type.fields if isinstance(decl.type, ast.StructType) else ():
                if tree.named_type(TypeRef(field.type, path)) != signal:
                    continue
                for name in (each for each in field.names if _may_be_closed(tree, each.name)):
                    if not any(_closes_signal(tree, source, executor, name.name) for source in sources):
                        more = "; one that hands its calls on to another executor gives out that one's channels instead"
                        yield _unclosed(tree, path, name.span, executor.type, name.name, more)


def _unclosed(tree: Tree, path: str, span: Span, owner: str, field: str, more: str = "") -> Finding:
    reason = f"nothing closes {owner}.{field}, and what waits for it waits for ever"
    lost = Manual(reason, f"close it where {owner} knows that the component is ready{more}")
    return _finding(tree, path, span, lost, "close each signal", "unclosed-signal")


def _closes_signal(tree: Tree, path: str, executor: ast.Implementer, field: str) -> bool:
    """Tell whether a file closes the signal of an executor, and not only one of another that has the same name."""
    own = ast.FieldObject(executor.package, executor.type, field)
    places = re.finditer(rb"\b(" + field.encode() + rb")\s*\.\s*Close", tree.data(path))
    uses = tree.occurrences_at(path, [Span(*place.span(1)) for place in places])
    return any(use.object == own or isinstance(use.object, ast.UnknownObject) for use in uses)


def _plain_channels(tree: Tree) -> Iterator[Finding]:
    """Yield what is wrong with executors that keep plain channels, as the hand-made change has them (d45006be6)."""
    for executor in tree.implementers(package(tree, EXECUTOR), "Executor"):
        sources = [tree.data(path) for path in tree.package_files(executor.package) if not is_test(path)]
        known: dict[str, str] = {}
        for path, decl in (each for each in executor.methods if each[1].name in _CHANNELS and not is_test(each[0])):
            field = _plain_channel(tree, path, decl)
            if field is None:
                continue
            other = known.setdefault(field, decl.name)
            if other != decl.name:
                lost = Manual(f"{decl.title} gives out the channel of {other}", "let it give out one of its own")
                yield _finding(tree, path, decl.signature, lost, "give out a channel each", "same-channel")
            elif not any(_ends(field).search(source) for source in sources):
                yield _unclosed(tree, path, decl.signature, executor.type, field)
        if len(known) == len(_CHANNELS) and executor.type == "Embedded":
            yield from (each for name in COMPONENTS for each in _without_wait(tree, executor.package, name))


def _plain_channel(tree: Tree, path: str, accessor: ast.FuncDecl) -> str | None:
    """Return the field of its executor that an accessor gives out, where that is a channel and nothing else."""
    body = tree.function(path, accessor).body
    match body.stmts[-1] if body is not None and body.stmts else None:
        case ast.Return(values=(ast.Selector(name=name) as field,)):
            found = tree.type_of(path, field)
            return name if found is not None and isinstance(found.expr, ast.ChanType) else None
        case _:
            return None


def _ends(field: str) -> re.Pattern[bytes]:
    """Return a pattern of what can end the waits for a field: a close, being handed to somebody, another channel."""
    name = field.encode()
    return re.compile(rb"[(,]\s*\w+\." + name + rb"\s*[,)]|\." + name + rb"\s*=(?!=)\s*+(?!make\b)")


def _may_be_closed(tree: Tree, field: str) -> bool:
    """Tell whether the step is made that lets an executor close a signal."""
    match field:
        case "apiServerReady":
            return bool(tree.functions(package(tree, UTIL), "NotifyAPIServerReady"))
        case "etcdReady":
            return bool(tree.types(package(tree, EXECUTOR), "TestFunc"))
        case _:
            return True


def _waitless(tree: Tree) -> Iterator[Finding]:
    """Yield the components of k3s' own executor that are started without a wait once the executor has its signals."""
    executor = package(tree, EXECUTOR)
    if tree.member(executor, "Embedded", "apiServerReady") is None or not tree.functions(
        package(tree, UTIL), "WaitReady"
    ):
        return
    for name in COMPONENTS:
        yield from _without_wait(tree, executor, name)


def _idle(tree: Tree) -> Iterator[Finding]:
    """Yield the waits of ours that hold nothing back: whose result nobody looks at, or whose context never ends."""
    for use in tree.callers(ast.PackageObject(package(tree, UTIL), "WaitReady")):
        is_call = use.role == "call" and not is_test(use.path)
        decl = _shapes.whole_function(tree, use.path, use.span) if is_call else None
        call = tree.call_at(use.path, use.qualified) if decl is not None else None
        if decl is None or call is None:
            continue
        odd = None
        match trail(decl, call.span)[-2:]:
            case (ast.ExprStmt(), _) | (ast.Assign(lhs=(ast.Ident(name="_"),)), _):
                odd = "goes on although the wait was ended", "leave the function where util.WaitReady gives an error"
            case _ if call.args and _never_ends(tree, use.path, call.args[0]):
                odd = "waits with a context that never ends", "wait with the context of the function"
        if odd is not None:
            lost = Manual(f"{tree.line_text(use.path, use.span.start)!r} {odd[0]}", odd[1])
            yield _finding(tree, use.path, call.span, lost, MESSAGE, "idle-wait")


def _never_ends(tree: Tree, path: str, ctx: ast.Expr) -> bool:
    match tree.calls(path, ctx) if isinstance(ctx, ast.Call) else None:
        case ast.PackageObject(package="context", name="Background" | "TODO"):
            return True
        case _:
            return False


def _without_wait(tree: Tree, owner: str, component: str) -> Iterator[Finding]:
    for path, decl in tree.method(owner, "Embedded", component):
        text = tree.text(path, decl.body_span) if decl.body_span is not None else ""
        if not any(word in text for word in _WAITS):
            lost = Manual(f"{decl.title} waits for nothing", "let it wait for what it needs before it starts")
            yield _finding(tree, path, decl.signature, lost, MESSAGE, "no-wait")


# --- deferred closes --------------------------------------------------------------------------------


def _closes(tree: Tree) -> Iterator[Finding]:
    """Yield where the control plane reports readiness as it leaves a goroutine, for whatever reason."""
    for path in tree.package_files(package(tree, CONTROL)):
        handed = tuple(_handed_on(tree, path)) if not is_test(path) else ()
        yield from _never_closed(tree, path, handed)
        if is_test(path) or b"close(" not in tree.data(path):
            continue
        names = re.compile(rb"\b(?:" + b"|".join([LOCAL, *sorted({arg.name.encode() for arg in handed})]) + rb")\b")
        for use in tree.occurrences(path, names):
            if not isinstance(use.object, ast.LocalObject) or use.role not in ("close", "defer-close"):
                continue
            decl = tree.function_at(path, use.span.start)
            anchor = CLOSES.get(decl.name, "") if decl is not None else ""
            verdict: Verdict = Leave("closed where it has succeeded already", done=True)
            if use.role == "defer-close":
                verdict = close_on_success(tree, path, use.span)
            elif _is_deferred(tree, use):
                line = tree.line_text(path, use.span.start)
                verdict = Manual(f"{line!r} closes {use.name} whatever happens", "close it where it has succeeded")
            message = f"close {use.name} only where it has succeeded"
            yield _finding(tree, path, use.span, verdict, message, "close", anchor)


def _never_closed(tree: Tree, path: str, handed: Sequence[ast.Ident]) -> Iterator[Finding]:
    """Yield the channels that a component waits for and that nobody else has, so that it would wait for ever."""
    for arg in handed:
        decl, local = tree.function_at(path, arg.span.start), tree.resolve(path, arg)
        if decl is None or not isinstance(local, ast.LocalObject) or local.kind != "var":
            continue
        uses = [use for use in _shapes.names_in(tree, path, decl.span, arg.name) if use.object == local]
        if {use.span for use in uses} == {local.at, arg.span}:
            line = tree.line_text(path, arg.span.start)
            verdict = Manual(f"nobody closes {arg.name}: {line!r}", "close it where what it stands for is reached")
            message = f"close {arg.name} where it has succeeded"
            yield _finding(tree, path, arg.span, verdict, message, "unclosed")


def _handed_on(tree: Tree, path: str) -> Iterator[ast.Ident]:
    """Yield the channels of a file that the executor's components are given to wait for, whatever they are called."""
    for name in COMPONENTS:
        for use in tree.callers(ast.PackageObject(package(tree, EXECUTOR), name), [path]):
            call = tree.call_at(path, use.qualified)
            for arg in call.args if call is not None else ():
                known = tree.type_of(path, arg) if isinstance(arg, ast.Ident) else None
                if isinstance(arg, ast.Ident) and known is not None and isinstance(known.expr, ast.ChanType):
                    yield arg


def _is_deferred(tree: Tree, use: Occurrence) -> bool:
    decl = _shapes.whole_function(tree, use.path, use.span)
    return decl is not None and any(isinstance(node, ast.Defer) for node in trail(decl, use.span))


def _fatals(tree: Tree) -> Iterator[Finding]:
    """Yield where a wait that fails is fatal, also if it fails because the process shuts down."""
    for use, verdict in fatal_waits(tree):
        message = "do not end the process because a wait was cancelled"
        yield _finding(tree, use.path, use.span, verdict, message, "fatal", FATAL[use.name])


CODEMOD = Codemod(
    id=ID,
    title="End waits for readiness with the context",
    body=(
        "The waits for the scheduler's node, for the permissions of the cloud\n"
        "controller manager and of the tunnel, and for the apiserver's handlers did\n"
        "not end with the context, or ended the process, or went on as if they had\n"
        "succeeded. The channels that release the scheduler and the cloud controller\n"
        "manager are closed only where what they stand for was reached."
    ),
    requires=("executor-ready-channels", "apiserver-ready"),
    anchors=(
        *(Anchor(name, optional=name.startswith("tunnel")) for name in RECEIVES.values()),
        *(Anchor(name, optional=name == "control-scheduler") for name in CLOSES.values()),
        *(Anchor(name, optional=name != "handlers") for name in FATAL.values()),
    ),
    templates=(ENDED, _TEST, CLOSE, CLOSE_AT_END, _shapes.WAIT_READY),
    find=find,
)
