"""The one poll of /readyz that is left: what pkg/util gets for it, and the executor's Bootstrap that starts it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from refactor_tool.codemod import Template
from refactor_tool.codemods._apiserver import (
    ACCESSOR,
    ID,
    KUBECONFIG,
    MESSAGE,
    NOTIFY,
    POLL,
    WAIT,
    found,
    is_upstream,
)
from refactor_tool.codemods._k3s import (
    CMDS,
    CONFIG,
    EXECUTOR,
    IS_CLOSED,
    TAKE_KUBECONFIG,
    UTIL,
    WRITE_KUBECONFIG,
    helper,
    package,
    takes_client,
)
from refactor_tool.codemods._shapes import (
    LOGRUS,
    PKG_ERRORS,
    cannot_name,
    combined,
    context_at,
    filled,
    named,
    names_in,
    wrapped,
)
from refactor_tool.gosrc import ast, layout
from refactor_tool.gosrc.tree import Tree
from refactor_tool.gosrc.walk import walk
from refactor_tool.model import Change, Edit, Finding, Fragment, Leave, Manual, NeedImport, Rewrite, Span, Verdict

_CLIENT = "newReadyzClient"
_PACKAGES = {"context": "context", "time": "time", "logrus": LOGRUS}
#: The Go that has `atomic.Bool`.
_ATOMIC_BOOL = (1, 19)

_NOTIFY = Template(f"{ID}/notify.go.j2", ("config", "context", "kubeconfig", "logrus", "poll", "time"))
_CUT_RETURN = Template(f"{ID}/cut_return.go.j2", ("client", "ctx", "timeout"))
_CUT_POLL = Template(f"{ID}/cut_poll.go.j2", ("client", "context", "ctx", "rest", "time", "timeout"))
_BOOTSTRAP = Template(f"{ID}/bootstrap.go.j2", ("ctx", "gap", "node", "receiver", "util", "wrapped"))
_API_TEST = Template(f"{ID}/api_test.go.j2")
_EMBED_TEST = Template(f"{ID}/embed_test.go.j2", ("cmds", "config"))
_READY_TEST = Template(f"{ID}/ready_test.go.j2")
TEMPLATES = (_NOTIFY, _CUT_RETURN, _CUT_POLL, _BOOTSTRAP, _API_TEST, _EMBED_TEST, _READY_TEST)


def find(tree: Tree) -> Iterator[Finding]:
    """Yield the function of pkg/util that polls, and the method that starts the poll."""
    yield from _util(tree)
    yield from _bootstrap(tree)


# --- pkg/util ---------------------------------------------------------------------------------------


def _util(tree: Tree) -> Iterator[Finding]:
    for path, decl in tree.functions(package(tree, UTIL), WAIT):
        span = Span(decl.doc.start if decl.doc is not None else decl.span.start, decl.span.end)
        verdict = _util_verdict(tree, path, decl)
        yield found(tree, path, span, verdict, f"add {NOTIFY}, which polls for the executor", "util", anchor="util")
    for path, decl in tree.functions(package(tree, UTIL), ACCESSOR):
        done = Leave("it gives out the channel that the poll closes", done=True)
        yield found(tree, path, decl.span, done, f"keep {ACCESSOR}", "accessor")


def _util_verdict(tree: Tree, path: str, decl: ast.FuncDecl) -> Verdict:
    util = package(tree, UTIL)
    if tree.functions(util, NOTIFY):
        return Leave(f"{NOTIFY} is there already", done=True)
    if is_upstream(tree):
        return Leave(f"{ACCESSOR} is there already, as upstream has it", done=True)
    instruction = f"write {NOTIFY}(ctx, kubeconfigPath, timeout, ready func()) error, which polls in a goroutine"
    if tree.functions(util, POLL):
        return Manual(f"{UTIL} has a function {POLL} of its own", instruction)
    if takes_client(decl):
        return Manual(
            f"{WAIT} takes a client: {tree.text(path, decl.signature)}", f"{TAKE_KUBECONFIG}, or {instruction}"
        )
    params = [tree.text(path, param.type.span) for param in decl.params for _ in param.names]
    if len(params) != 3 or params[1] != "string":
        return Manual(f"{WAIT} takes no kubeconfig: {tree.text(path, decl.signature)}", instruction)
    whole = tree.function(path, decl)
    parts = _cut(tree, path, whole) or _beside(tree, path, whole)
    if parts is None:
        return Manual(f"{WAIT} does not load its kubeconfig itself: {tree.text(path, decl.signature)}", instruction)
    return combined(parts, _api_tests(tree))


def _cut(tree: Tree, path: str, decl: ast.FuncDecl) -> tuple[Change, ...] | Manual | None:
    """Cut the function where its client is made: what follows becomes `pollReadyz`. None where it is not made so."""
    ctx, kubeconfig, timeout = (ident.name for param in decl.params for ident in param.names)
    match decl.body:
        case ast.Block(
            stmts=(
                ast.Assign(
                    lhs=(ast.Ident(name=client), ast.Ident(name=err)),
                    op=":=",
                    rhs=(ast.Call(args=(ast.Ident(name=given),)) as made,),
                ),
                ast.If(span=failed),
                *rest,
            )
        ) if given == kubeconfig and tree.calls(path, made) == ast.PackageObject(package(tree, UTIL), _CLIENT):
            pass
        case _:
            return None
    assigned = next((lhs for lhs in map(_assigned, rest) if lhs is not None and lhs.name == err), None)
    if assigned is None or names_in(tree, path, Span(failed.end, decl.span.end), kubeconfig):
        return None
    if names_in(tree, path, Span(failed.end, assigned.span.start), err):
        return None
    names = named(tree, path, decl.span.end, {**_PACKAGES, "rest": "k8s.io/client-go/rest"})
    if isinstance(names, Manual):
        return names
    qualifiers, imports = names
    data = tree.data(path)
    gap = _blank_lines(data, failed.end)
    here = Span(gap.end, gap.end)
    operator = data.index(b"=", assigned.span.end)
    locals_ = {"client": client, "ctx": ctx, "timeout": timeout}
    types = {name: qualifiers[name] for name in ("context", "rest", "time")}
    return (
        Edit(path, gap, filled(_CUT_RETURN, locals_)),
        Edit(path, here, _notify(qualifiers, POLL, kubeconfig)),
        Edit(path, here, filled(_CUT_POLL, {**locals_, **types})),
        Edit(path, Span(operator, operator), b":"),
        *imports,
    )


def _blank_lines(data: bytes, offset: int) -> Span:
    """Return what lies between the text of a line and the next line that has some."""
    end = data.index(b"\n", offset)
    start = end - data[:end].endswith(b"\r")
    following = len(data) - len(data[end:].lstrip())
    return Span(start, data.rindex(b"\n", start, following) + 1)


def _assigned(stmt: ast.Stmt) -> ast.Ident | None:
    match stmt:
        case ast.Assign(lhs=(ast.Ident() as lhs,), op="="):
            return lhs
        case _:
            return None


def _beside(tree: Tree, path: str, decl: ast.FuncDecl) -> tuple[Change, ...] | Manual | None:
    """Build on the function as it is, where it polls in its own way; the kubeconfig is tried before, as it does."""
    _, kubeconfig, _ = (ident.name for param in decl.params for ident in param.names)
    for stmt in decl.body.stmts if decl.body is not None else ():
        match stmt:
            case ast.Assign(lhs=(_, _), op=":=", rhs=(ast.Call(args=(*_, ast.Ident(name=given))) as configured,)) if (
                given == kubeconfig
            ):
                names = named(tree, path, decl.span.end, _PACKAGES)
                if isinstance(names, Manual):
                    return names
                after = layout.insert_after_line(tree, path, decl.span.end - 1)
                config = tree.text(path, configured.span)
                return (Edit(path, after, _notify(names[0], WAIT, kubeconfig, config)), *names[1])
            case _:
                pass
    return None


def _notify(qualifiers: Mapping[str, str], poll: str, kubeconfig: str, config: str = "") -> Fragment:
    names = {name: qualifiers[name] for name in ("context", "logrus", "time")}
    return filled(_NOTIFY, {**names, "poll": poll, "kubeconfig": kubeconfig, "config": config})


def _api_tests(tree: Tree) -> tuple[Change, ...]:
    """Add the tests of the new functions to those of the poll, where these are the ones that came with it."""
    util = package(tree, UTIL)
    body = next((path for path, _, _ in tree.variables(util, "notReadyBody")), None)
    beside = helper(tree, body, *WRITE_KUBECONFIG) if body is not None else None
    if body is None or beside is None or helper(tree, body, *IS_CLOSED) is None:
        return ()
    path = beside[0]
    size = len(tree.data(path))
    imports = "context net/http net/http/httptest sync/atomic testing time".split()
    return Edit(path, Span(size, size), filled(_API_TEST, {})), *(NeedImport(path, name) for name in imports)


# --- who starts the poll ----------------------------------------------------------------------------


def _bootstrap(tree: Tree) -> Iterator[Finding]:
    for owner in tree.implementers(package(tree, EXECUTOR), "Executor"):
        for path, decl in owner.methods:
            if owner.type == "Embedded" and decl.name == "Bootstrap":
                verdict, span = _bootstrap_verdict(tree, path, tree.function(path, decl))
                message = "start the poll for the apiserver; return the error where that is not possible"
                yield found(tree, path, span, verdict, message, "start", anchor="bootstrap")


def _bootstrap_verdict(tree: Tree, path: str, decl: ast.FuncDecl) -> tuple[Verdict, Span]:
    util = package(tree, UTIL)
    for node in walk(decl):
        match tree.calls(path, node) if isinstance(node, ast.Call) else None:
            case ast.PackageObject(package=owner, name=name) if owner == util and name in (NOTIFY, ACCESSOR):
                return Leave(f"Bootstrap calls {name} already", done=True), node.span
            case _:
                pass
    instruction = f"call util.{NOTIFY} with {KUBECONFIG} once the node's configuration is set, and return its error"
    kept = next((stmt for stmt in decl.body.stmts if _keeps_node(tree, path, stmt)), None) if decl.body else None
    own = decl.receiver.names if decl.receiver is not None else ()
    ctx = context_at(tree, path, decl, kept.span, outlives=True) if kept is not None else None
    if kept is not None and ctx is None:
        reason = "Bootstrap has no context here that is known to last when it has returned"
        return Manual(reason, f"{instruction}; the poll needs the context that Bootstrap was given"), kept.span
    if not isinstance(kept, ast.Assign) or not own or ctx is None:
        text = tree.text(path, decl.signature)
        return Manual(f"Bootstrap does not keep the node's configuration: {text}", instruction), decl.signature
    if tree.member(package(tree, CONFIG), "Agent", KUBECONFIG) is None:
        return Manual(f"the agent's configuration has no {KUBECONFIG}", instruction), kept.span
    error = wrapped(tree, path, kept.span, "err", MESSAGE)
    names = named(tree, path, kept.span.start, {"util": util})
    if error is None or isinstance(names, Manual):
        return names if isinstance(names, Manual) else cannot_name(PKG_ERRORS, instruction), kept.span
    at = layout.insert_after_line(tree, path, kept.span.end - 1)
    params = {
        "ctx": ctx,
        "gap": "yes" if tree.line_text(path, at.start) else "",
        "node": tree.text(path, kept.rhs[0].span),
        "receiver": own[0].name,
        "util": names[0]["util"],
        "wrapped": error[0],
    }
    start = filled(_BOOTSTRAP, params, tree.indent(path, kept.span.start), lines=True)
    return Rewrite((Edit(path, at, start), *names[1], *error[1], *_bootstrap_tests(tree, path))), kept.span


def _keeps_node(tree: Tree, path: str, stmt: ast.Stmt) -> bool:
    match stmt:
        case ast.Assign(lhs=(ast.Selector(name="nodeConfig"),), op="=", rhs=(ast.Ident() as node,)):
            return tree.named_type(tree.type_of(path, node)) == ast.PackageObject(package(tree, CONFIG), "Node")
        case _:
            return False


def _bootstrap_tests(tree: Tree, path: str) -> tuple[Change, ...]:
    """Add the tests of Bootstrap to those of the executor's channels, where these are the ones that came with them."""
    own = tree.package_of(path)
    beside = path.removesuffix(".go") + "_test.go"
    taken = any(tree.functions(own, name) for name in ("kubeConfig", "waitClosed", "Test_UnitEmbedded_Bootstrap"))
    if beside not in tree.snapshot.files or taken or tree.go_version < _ATOMIC_BOOL:
        return ()
    closed = helper(tree, beside, *IS_CLOSED)
    first = next((decl for decl in tree.decls(beside) if isinstance(decl, ast.FuncDecl)), None)
    names = named(tree, beside, 0, {"cmds": package(tree, CMDS), "daemonconfig": package(tree, CONFIG)})
    if closed is None or first is None or isinstance(names, Manual):
        return ()
    start = first.doc.start if first.doc is not None else first.span.start
    tests = filled(_EMBED_TEST, {"cmds": names[0]["cmds"], "config": names[0]["daemonconfig"]})
    imports = "context fmt net/http net/http/httptest os path/filepath sync/atomic testing time".split()
    where, decl = closed
    return (
        Edit(beside, Span(start, start), tests),
        *(NeedImport(beside, name) for name in imports),
        *names[1],
        Edit(where, layout.insert_after_line(tree, where, decl.span.end - 1), filled(_READY_TEST, {})),
        *(NeedImport(where, name) for name in ("testing", "time")),
    )
