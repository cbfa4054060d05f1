"""The waits that polled /readyz by themselves, and go.

`WaitForAPIServerReady` had four callers of three shapes: an error returned, two fatal exits in a goroutine, and a
promise in a select loop. Whoever returned the error keeps the time limit, with a helper of the agent; a goroutine waits
for the executor as long as its context lasts; the loop goes as a whole. A caller that is none of these is left to a
person.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from refactor_tool.codemod import Template
from refactor_tool.codemods._apiserver import (
    ACCESSOR,
    BACKGROUND,
    HELPER,
    ID,
    LIMIT,
    MESSAGE,
    NOTIFY,
    STANDALONE,
    WAIT,
    anchor_at,
    found,
    has_helper,
    is_upstream,
    runtime_field,
)
from refactor_tool.codemods._before_bootstrap import endless
from refactor_tool.codemods._k3s import (
    AGENT,
    CMDS,
    CONFIG,
    CONTROL,
    EXECUTOR,
    TUNNEL,
    UTIL,
    folder_of,
    package,
    takes_client,
)
from refactor_tool.codemods._shapes import (
    LOGRUS,
    PKG_ERRORS,
    Guard,
    cannot_name,
    combined,
    comment_above,
    context_at,
    exit_of,
    filled,
    guard_at,
    in_goroutine,
    logs,
    named,
    ready_chan,
    wait_ready,
    whole_function,
    with_comment_about,
    wrapped,
)
from refactor_tool.gosrc import ast, layout
from refactor_tool.gosrc.tree import Occurrence, Tree, TypeRef
from refactor_tool.gosrc.walk import functions_at, trail, walk
from refactor_tool.model import Change, Edit, Finding, Leave, Manual, Rewrite, Span, Verdict

_HELPER = Template(f"{ID}/agent_helper.go.j2", ("config", "context", "ready", "time", "util"))
_STANDALONE = Template(f"{ID}/standalone_wait.go.j2", ("ctx", "node", "unless", "wrapped"))
TEMPLATES = (_HELPER, _STANDALONE)

#: The kubeconfigs that lead to the apiserver of the process's own cluster, as that of the executor's poll does.
_KUBECONFIGS = frozenset(
    "KubeConfigAdmin KubeConfigController KubeConfigK3sController KubeConfigKubelet KubeConfigSupervisor".split()
)
_APISERVER = re.compile(r"API ?server", re.IGNORECASE)
_WATCH = "Tunnel endpoint watch failed to wait for apiserver ready"
_GONE = re.compile(r"\bapiReady\b")


def find(tree: Tree) -> Iterator[Finding]:
    """Yield who keeps the time limit, the loop in the background, and every caller of `WaitForAPIServerReady`."""
    yield from _standalone(tree)
    yield from _background(tree)
    for use in tree.callers(ast.PackageObject(package(tree, UTIL), WAIT)):
        yield from _caller(tree, use)


# --- the agent, which keeps the time limit ----------------------------------------------------------


def _standalone(tree: Tree) -> Iterator[Finding]:
    for path, decl in tree.functions(package(tree, AGENT), STANDALONE):
        verdict, span = _standalone_verdict(tree, path, tree.function(path, decl))
        message = "return an error where the apiserver does not become ready in time"
        yield found(tree, path, span, verdict, message, "limit", anchor=anchor_at(tree, path, span.start))


def _standalone_verdict(tree: Tree, path: str, decl: ast.FuncDecl) -> tuple[Verdict, Span]:
    agent = package(tree, AGENT)
    calls = [(node, tree.calls(path, node)) for node in walk(decl) if isinstance(node, ast.Call)]
    for call, called in calls:
        if called == ast.PackageObject(agent, HELPER) and has_helper(tree):
            return Leave(f"{STANDALONE} waits with a time limit already", done=True), call.span
    if is_upstream(tree):
        return Leave("upstream's poll has the time limit and exits the process by itself", done=True), decl.name_span
    instruction = f"before {STANDALONE} blocks, wait for the executor's channel for at most util.{LIMIT}"
    if tree.functions(agent, HELPER):
        return Manual(f"{AGENT} has a function {HELPER} of its own", instruction), decl.name_span
    bootstrap = ast.PackageObject(package(tree, EXECUTOR), "Bootstrap")
    node = next((call.args[1] for call, called in calls if called == bootstrap and len(call.args) > 1), None)
    blocks = next(filter(None, map(_blocks, decl.body.stmts)), None) if decl.body is not None else None
    if node is None or blocks is None or exit_of(decl) != "return err":
        text = tree.text(path, decl.signature)
        reason = f"{STANDALONE} does not bootstrap the executor and then wait for its context: {text}"
        return Manual(reason, instruction), decl.signature
    return _limited(tree, path, decl, *blocks, tree.text(path, node.span)), blocks[0]


def _blocks(stmt: ast.Stmt) -> tuple[Span, str] | None:
    """Return the place of a wait for the end of a context, and the context's name."""
    match stmt:
        case ast.ExprStmt(
            x=ast.Unary(op="<-", x=ast.Call(fun=ast.Selector(x=ast.Ident(name=ctx), name="Done"), args=()))
        ):
            return stmt.span, ctx
        case _:
            return None


def _limited(tree: Tree, path: str, decl: ast.FuncDecl, blocks: Span, ctx: str, node: str) -> Rewrite | Manual:
    """Wait before the function blocks, and add the helper with the time limit after it."""
    above = comment_above(tree, path, blocks)
    before = layout.insert_before_line(tree, path, blocks.start if above is None else above.start)
    error = wrapped(tree, path, blocks, "err", MESSAGE)
    if error is None:
        return cannot_name(PKG_ERRORS, f"the error with {MESSAGE!r} before it")
    params = {"ctx": ctx, "node": node, "unless": _reset_flag(tree, path, decl), "wrapped": error[0]}
    wait = Edit(path, before, filled(_STANDALONE, params, tree.indent(path, blocks.start), lines=True))
    return combined((wait, *error[1]), _helper(tree, path, decl))


def _reset_flag(tree: Tree, path: str, decl: ast.FuncDecl) -> str:
    """Return the expression for a cluster reset, which runs without an apiserver; "" where there is none."""
    agent = ast.PackageObject(package(tree, CMDS), "Agent")
    if tree.member(agent.package, agent.name, "ClusterReset") is None:
        return ""
    own = (
        ident for param in decl.params if tree.named_type(TypeRef(param.type, path)) == agent for ident in param.names
    )
    return next((f"{ident.name}.ClusterReset" for ident in own), "")


def _helper(tree: Tree, path: str, decl: ast.FuncDecl) -> tuple[Change, ...] | Manual:
    after = layout.insert_after_line(tree, path, decl.span.end - 1)
    packages = {"context": "context", "time": "time", "daemonconfig": CONFIG, "util": UTIL}
    paths = {name: package(tree, folder) if "/" in folder else folder for name, folder in packages.items()}
    names = named(tree, path, after.start, paths)
    asked = ready_chan(tree, path, ACCESSOR, after)
    if isinstance(names, Manual):
        return names
    if isinstance(asked, Manual):
        return asked
    params = {"config": names[0]["daemonconfig"], "ready": asked[0]}
    params |= {name: names[0][name] for name in ("context", "time", "util")}
    return (Edit(path, after, filled(_HELPER, params)), *names[1], *asked[1])


# --- the loop in the background ---------------------------------------------------------------------


def _background(tree: Tree) -> Iterator[Finding]:
    control = package(tree, CONTROL)
    functions = tree.functions(control, BACKGROUND)
    for path, decl in functions:
        span = Span(decl.doc.start if decl.doc is not None else decl.span.start, decl.span.end)
        odd = _more_than_a_poll(tree, path, tree.function(path, decl))
        verdict: Verdict = Rewrite((layout.remove_lines(tree, path, span),))
        if odd is not None:
            verdict = Manual(odd, f"delete {BACKGROUND} with its call; the executor polls from Bootstrap on")
        yield found(tree, path, span, verdict, f"delete {BACKGROUND}", "promise", anchor="background")
        yield from _background_callers(tree, known=odd is None)
    if not functions:
        for path, server in tree.functions(control, "Server"):
            gone = Leave("nothing waits for the apiserver in the background any more", done=True)
            yield found(tree, path, server.name_span, gone, f"{BACKGROUND} is gone", "promise", anchor="background")


def _more_than_a_poll(tree: Tree, path: str, decl: ast.FuncDecl) -> str | None:
    """Return what the loop does besides polling and closing its channel, and would be lost with it, if anything."""
    comments = tree.comments_in(path, decl.span)
    if comments:
        return f"a comment in {BACKGROUND} would be lost: {tree.text(path, comments[0])}"
    for node in walk(decl):
        match node:
            case ast.Call():
                known = _is_part_of_poll(tree, path, node)
            case ast.Assign(lhs=lhs, op="="):
                known = all(tree.resolve(path, target) == runtime_field(tree) for target in lhs)
            case ast.Send() | ast.OtherStmt():
                known = False
            case _:
                known = True
        if not known:
            return f"{BACKGROUND} does more than to poll: {tree.line_text(path, node.span.start)}"
    return None


def _is_part_of_poll(tree: Tree, path: str, call: ast.Call) -> bool:
    match call.fun, tree.calls(path, call):
        case (ast.FuncLit(), _) | (ast.Selector(name="Done" | "Err"), _):
            return True
        case ast.Ident(name="make" | "close"), ast.UnknownObject():
            return True
        case _, ast.PackageObject(package=owner, name=name):
            known = {(package(tree, UTIL), WAIT), (package(tree, CONTROL), "promise"), ("time", "After")}
            return owner == LOGRUS or (owner, name) in known
        case _:
            return False


def _background_callers(tree: Tree, *, known: bool) -> Iterator[Finding]:
    for use in tree.callers(ast.PackageObject(package(tree, CONTROL), BACKGROUND)):
        decl = whole_function(tree, use.path, use.span)
        call = tree.call_at(use.path, use.qualified)
        guard = guard_at(decl, call.span) if decl is not None and call is not None else None
        span = guard.stmt.span if guard is not None else use.qualified
        verdict: Verdict = Manual(
            f"the call of {BACKGROUND} cannot be deleted: {tree.line_text(use.path, use.span.start)}",
            "delete the call and what depends on it; the executor polls from Bootstrap on",
        )
        always = guard is not None and decl is not None and decl.body is not None and guard.stmt in decl.body.stmts
        returns = guard is not None and isinstance(guard.exit, ast.Return)
        if known and always and returns and not tree.comments_in(use.path, span):
            verdict = Rewrite(
                (layout.remove_lines(tree, use.path, with_comment_about(tree, use.path, span, _APISERVER)),)
            )
        yield found(tree, use.path, span, verdict, f"delete the call of {BACKGROUND}", "promise-call")


# --- callers of the poll ----------------------------------------------------------------------------


def _caller(tree: Tree, use: Occurrence) -> Iterator[Finding]:
    decl = whole_function(tree, use.path, use.span)
    title = decl.title if decl is not None else ""
    folder = folder_of(use.path)
    if (folder, title) == (CONTROL, BACKGROUND):
        return
    call = tree.call_at(use.path, use.qualified) if use.role == "call" else None
    guard = guard_at(decl, call.span, more=True) if decl is not None and call is not None else None
    span = guard.stmt.span if guard is not None else use.qualified
    kept = _kept(tree, use, folder, title)
    if kept is not None:
        verdict: Verdict = kept
        shape = "poll-kept"
    elif decl is None or call is None:
        verdict, shape = _by_hand(tree, use, f"{WAIT} is used as a value"), "poll-value"
    elif not in_goroutine(decl, call.span):
        limited = _with_limit(tree, use, decl, call)
        late = endless(tree, use.path, call.span) if isinstance(limited, Rewrite) else None
        verdict, shape = late or limited, "poll-call" if guard is None else "guard-return"
    elif guard is None:
        verdict, shape = _by_hand(tree, use, f"the call of {WAIT} has a shape that is not known"), "poll-unknown"
    else:
        verdict, shape = _in_goroutine(tree, use, decl, guard), "guard-goroutine"
    if guard is not None and shape == "guard-goroutine":
        span = with_comment_about(tree, use.path, span, _GONE)
    anchor = "" if kept is not None else anchor_at(tree, use.path, use.span.start)
    message = f"keep this use of {WAIT}" if kept is not None else "wait for the executor's channel, do not poll"
    yield found(tree, use.path, span, verdict, message, shape, anchor=anchor)


def _kept(tree: Tree, use: Occurrence, folder: str, title: str) -> Leave | None:
    """Return why a use of the function stays, None where it should not."""
    if folder == UTIL and tree.file(use.path).test:
        return Leave("a test of the function itself")
    if folder == UTIL and title in (NOTIFY, ACCESSOR):
        return Leave("the one poll that is left", done=True)
    if folder == AGENT and title == HELPER:
        return Leave("asked once, after the time limit, so that the error names the reason", done=True)
    return None


def _by_hand(tree: Tree, use: Occurrence, reason: str) -> Manual:
    """Leave a caller to a person. The others can do without it, but not if it is one that the step is about."""
    return Manual(
        f"{reason}: {tree.line_text(use.path, use.span.start)}",
        f"wait with util.WaitReady for executor.{ACCESSOR}() if this process bootstraps an executor, with a time limit"
        " where an error can be returned; else keep the poll",
        blocks=bool(anchor_at(tree, use.path, use.span.start)),
    )


def _in_goroutine(tree: Tree, use: Occurrence, decl: ast.FuncDecl, guard: Guard) -> Rewrite | Manual:
    """Wait as long as the context lasts: nobody takes a goroutine's error, and the executor logs the reason."""
    odd = _unlike_the_executor(tree, use, decl, guard.call, guard.stmt.span)
    if odd is not None:
        return _by_hand(tree, use, odd)
    branch = guard.before if isinstance(guard.exit, ast.Return) else (*guard.before, guard.exit)
    if not all(logs(tree, use.path, stmt) for stmt in branch):
        return _by_hand(tree, use, "what follows a failed wait is more than a log line, a fatal exit or a return")
    if not _leaves(tree, use.path, guard.exit):
        return _by_hand(tree, use, "what waits goes on where the wait has failed")
    asked = ready_chan(tree, use.path, ACCESSOR, guard.stmt.span)
    if isinstance(asked, Manual):
        return asked
    wait = wait_ready(tree, use.path, guard.stmt.span, *asked)
    stale = (_stale_comment(tree, use, node) for node in _ifs(decl, guard))
    return combined(wait if isinstance(wait, Manual) else wait.changes, *stale)


def _ifs(decl: ast.FuncDecl, guard: Guard) -> Iterator[Span]:
    """Yield a guard and the branches of its goroutine around it: a comment above any of them may be about the wait."""
    function = functions_at(decl, guard.stmt.span)[-1]
    yield from (node.span for node in trail(function, guard.stmt.span) if isinstance(node, ast.If))


def _leaves(tree: Tree, path: str, last: ast.Stmt) -> bool:
    """Tell whether a branch that ends with a return or a log line does not go on: a fatal one exits.

    The watch for other servers went on in k3s of 2022, and had nothing to watch then.
    """
    watches = tree.package_of(path) == package(tree, TUNNEL) and _WATCH in tree.text(path, last.span)
    return isinstance(last, ast.Return) or logs(tree, path, last).startswith(("Fatal", "Panic", "Exit")) or watches


def _with_limit(tree: Tree, use: Occurrence, decl: ast.FuncDecl, call: ast.Call) -> Rewrite | Manual:
    """Call the agent's helper in place of the poll; what is done with its error stays, whatever that is."""
    odd = _unlike_the_executor(tree, use, decl, call, call.span)
    if odd is not None:
        return _by_hand(tree, use, odd)
    agent = package(tree, AGENT)
    node = _node_of(tree, use.path, call.args[1])
    if tree.package_of(use.path) != agent or node is None or not tree.functions(agent, STANDALONE):
        return _by_hand(tree, use, "the time limit of this wait would be lost")
    if isinstance(tree.object_of_name(use.path, call.span.start, HELPER), ast.LocalObject | ast.PackageName):
        return _by_hand(tree, use, f"{HELPER} means something else here")
    ctx = tree.text(use.path, call.args[0].span)
    return Rewrite((Edit(use.path, call.span, f"{HELPER}({ctx}, {node})".encode()),))


def _unlike_the_executor(tree: Tree, use: Occurrence, decl: ast.FuncDecl, call: ast.Call, gone: Span) -> str | None:
    """Return what this wait has that the executor's poll does not, None if nothing; `gone` is what is replaced."""
    if tree.comments_in(use.path, gone):
        return "a comment in it would be lost"
    match call.args:
        case (ast.Ident(name=ctx), kubeconfig, limit) if not call.ellipsis:
            pass
        case _:
            return f"the arguments of {WAIT} are not known"
    if ctx != context_at(tree, use.path, decl, gone):
        return "it waits with another context than that of its function"
    match tree.resolve(use.path, kubeconfig):
        case ast.FieldObject(package=owner, name=name) if owner == package(tree, CONFIG) and name in _KUBECONFIGS:
            pass
        case _:
            waits = tree.functions(package(tree, UTIL), WAIT)
            own = "client" if any(takes_client(wait) for _, wait in waits) else "kubeconfig"
            return f"it asks with a {own} of its own, so it may wait for another apiserver"
    if tree.resolve(use.path, limit) != ast.PackageObject(package(tree, UTIL), LIMIT):
        return "it has a time limit of its own"
    return None


def _node_of(tree: Tree, path: str, kubeconfig: ast.Expr) -> str | None:
    """Return the variable of the node's configuration whose kubeconfig it is."""
    match kubeconfig:
        case ast.Selector(x=ast.Selector(x=ast.Ident(name=node) as variable, name="AgentConfig")):
            found = tree.type_of(path, variable)
            is_node = tree.named_type(found) == ast.PackageObject(package(tree, CONFIG), "Node")
            return node if is_node and found is not None and isinstance(found.expr, ast.Unary) else None
        case _:
            return None


def _stale_comment(tree: Tree, use: Occurrence, span: Span) -> tuple[Edit, ...] | Manual:
    """Take out the sentence above a wait that speaks of `apiReady`, the parameter that goes with this step."""
    above = comment_above(tree, use.path, span)
    gone = []
    sentence = True
    at = above.start if above is not None else span.start
    while above is not None and at < above.end:
        end = tree.data(use.path).index(b"\n", at) + 1
        text = tree.line_text(use.path, at).removeprefix("//").strip()
        if _GONE.search(text):
            if not sentence or not text.endswith("."):
                return _by_hand(tree, use, f"a comment above it speaks of apiReady: {text}")
            gone.append(layout.remove_lines(tree, use.path, Span(at, end)))
        sentence = not text or text.endswith(".")
        at = end
    return tuple(gone)
