"""Step 1: `WaitForAPIServerReady` says which checks keep the apiserver from being ready.

The set-up of its client is carried over into a function of its own as it stands, so what a branch does there stays too
(`GetRESTConfig` or `BuildConfigFromFlags`, how it dials). Only a poll whose parts are all known is replaced.
"""

from __future__ import annotations

from collections.abc import Iterator

from refactor_tool.codemod import Anchor, Codemod, Template
from refactor_tool.codemods._k3s import TAKE_KUBECONFIG, UTIL, declares, package, site, takes_client
from refactor_tool.codemods._left_out import in_the_way
from refactor_tool.codemods._readyz_poll import ReadyzPoll, recognise
from refactor_tool.codemods._shapes import LOGRUS, PKG_ERRORS, cannot_name, needs, wrapped
from refactor_tool.gosrc import ast, layout
from refactor_tool.gosrc.tree import Tree
from refactor_tool.gosrc.walk import walk
from refactor_tool.model import Change, Edit, Finding, Fragment, Leave, Manual, NewFile, Rewrite, Span, Verdict

ID = "surface-readyz-errors"
WAIT = "WaitForAPIServerReady"
LIMIT = "DefaultAPIServerReadyTimeout"
#: The successor of `PollImmediateWithContext` and of its package's errors came together, with apimachinery 0.27.
CONTEXT_POLL = "PollUntilContextTimeout"
OLD_POLL = "PollImmediateUntilWithContext"
#: Packages that the new code needs, by the name it has for them.
PACKAGES = {
    "context": "context",
    "errors": "errors",
    "json": "encoding/json",
    "fmt": "fmt",
    "strings": "strings",
    "time": "time",
    "logrus": LOGRUS,
    "apierrors": "k8s.io/apimachinery/pkg/api/errors",
    "metav1": "k8s.io/apimachinery/pkg/apis/meta/v1",
    "wait": "k8s.io/apimachinery/pkg/util/wait",
    "rest": "k8s.io/client-go/rest",
}
REQUEST_LIMIT = "readyzRequestTimeout"
NEW_NAMES = ("newReadyzClient", "checkReadyz", "readyzPollInterval", REQUEST_LIMIT)
TEST_PATHS = (f"{UTIL}/api_test.go", f"{UTIL}/readyz_test.go")
TEST_NAMES = (
    "notReadyBody",
    "writeKubeConfig",
    "infoLines",
    *(f"Test_Unit{WAIT}_{what}" for what in "Timeout CauseChanges Canceled Hung Status BadKubeConfig".split()),
)
INSTRUCTION = (
    "poll with a function that reads the body of /readyz with DoRaw and returns its [-] lines as the error; limit each"
    " request to 15 seconds, log a reason when it changes, and wrap the poll's error together with the last reason"
)

DOC = Template(f"{ID}/doc.go.j2", ("has_doc",))
CONSTANTS = Template(f"{ID}/constants.go.j2", ("interval", "time"))
POLL = Template(
    f"{ID}/wait.go.j2",
    ("context", "is_new_poll", "ctx", "fmt", "kubeconfig", "logrus", "poll", "rest", "time", "timeout", "verb", "wait"),
)
RETURN = Template(f"{ID}/return.go.j2", ("error",))
REQUEST_TIMEOUT = Template(f"{ID}/request_timeout.go.j2", ("config",))
CHECK = Template(f"{ID}/check.go.j2", ("apierrors", "client", "context", "errors", "json", "metav1", "rest", "strings"))
TEST = Template(f"{ID}/api_test.go.j2", ("is_new_poll",))


def find(tree: Tree) -> Iterator[Finding]:
    """Yield the function, and the limit that its callers give it, which stays."""
    util = package(tree, UTIL)
    for path, decl in tree.functions(util, WAIT):
        verdict = _verdict(tree, path, decl)
        message = f"let {WAIT} name the checks that fail"
        span = _with_doc(decl)
        yield site(
            tree,
            ID,
            path,
            span,
            verdict,
            message,
            channel="apiserver",
            shape="readyz-poll",
            anchor="wait-for-apiserver-ready",
        )
        kept = in_the_way(tree, UTIL, TEST_PATHS, TEST_NAMES) if isinstance(verdict, Rewrite) else None
        if kept is not None:
            yield site(tree, ID, kept.path, kept.span, kept.verdict, "add tests", channel="apiserver", shape="tests")
    for path, constant, _ in tree.variables(util, LIMIT):
        stays = Leave("how long its callers wait for the apiserver does not change")
        span = _with_doc(constant)
        yield site(tree, ID, path, span, stays, f"keep {LIMIT}", channel="apiserver", shape="limit", anchor="limit")


def _verdict(tree: Tree, path: str, decl: ast.FuncDecl) -> Verdict:
    if _reads_reply(tree, path, decl):
        if _is_unlimited(tree):
            return Manual(
                f"nothing uses {REQUEST_LIMIT}: one request that hangs takes all of the time that there is",
                f"set it as the Timeout of the client's configuration: restConfig.Timeout = {REQUEST_LIMIT}",
            )
        return Leave("it reads the reply to /readyz and tells what is in it already", done=True)
    taken = [name for name in NEW_NAMES if declares(tree, package(tree, UTIL), name)]
    if taken:
        return Manual(f"{UTIL} declares {taken[0]} already, but {WAIT} does not use it", INSTRUCTION)
    if takes_client(decl):
        return Manual(
            f"{WAIT} takes a client: {tree.text(path, decl.signature)}", f"{TAKE_KUBECONFIG}, or {INSTRUCTION}"
        )
    poll = recognise(tree, path, tree.function(path, decl))
    return Manual(poll, INSTRUCTION) if isinstance(poll, str) else _rewrite(tree, path, decl, poll)


def _reads_reply(tree: Tree, path: str, decl: ast.FuncDecl) -> bool:
    """Tell whether the function, or one that it calls in its package, reads a reply with `DoRaw`."""
    todo, seen = [(path, decl)], {decl.name}
    while todo:
        where, function = todo.pop()
        for node in walk(tree.function(where, function)):
            match node:
                case ast.Call(fun=ast.Selector(name="DoRaw")):
                    return True
                case ast.Call(fun=ast.Ident(name=name) as callee) if name not in seen:
                    seen.add(name)
                    if tree.resolve(where, callee) == ast.PackageObject(package(tree, UTIL), name):
                        todo.extend(tree.functions(package(tree, UTIL), name))
                case _:
                    pass
    return False


def _is_unlimited(tree: Tree) -> bool:
    """Tell whether the limit for one request is declared, and nothing uses it."""
    util = package(tree, UTIL)
    limit = ast.PackageObject(util, REQUEST_LIMIT)
    return declares(tree, util, REQUEST_LIMIT) and not tree.callers(limit, tree.package_files(util))


def _rewrite(tree: Tree, path: str, decl: ast.FuncDecl, poll: ReadyzPoll) -> Rewrite | Manual:
    names = {name: tree.qualify(path, imported, name, decl.span.start) for name, imported in PACKAGES.items()}
    # github.com/pkg/errors has a New too, where it is the one that is imported as `errors`
    names["errors"] = names["errors"] or tree.qualify(path, PKG_ERRORS, "pkgerrors", decl.span.start)
    known = {name: qualifier for name, qualifier in names.items() if qualifier is not None}
    no_config = _returns(tree, path, poll.no_config, poll.err, "failed to get API server client config")
    no_client = _returns(tree, path, poll.no_client, poll.err, "failed to create API server client")
    if len(known) < len(names) or no_config is None or no_client is None:
        unknown = min(names.keys() - known.keys(), default="pkgerrors")
        return cannot_name(PACKAGES.get(unknown, PKG_ERRORS), f"what uses {unknown}")
    is_new_poll = poll.poll == CONTEXT_POLL
    values = {
        **{name: qualifier.prefix for name, qualifier in known.items()},
        **{name: getattr(poll, name) for name in ("client", "config", "ctx", "interval", "kubeconfig", "timeout")},
        "poll": CONTEXT_POLL if is_new_poll else OLD_POLL,
        "is_new_poll": "yes" if is_new_poll else "",
        "has_doc": "yes" if decl.doc is not None else "",
        # before Go 1.20 an error could wrap only one other
        "verb": "%w" if tree.go_version >= (1, 20) else "%v",
    }

    def edit(place: Span, template: Template) -> Edit:
        return Edit(path, place, template.filled(values))

    head = layout.insert_after_line(tree, path, poll.body.start).start, _line_end(tree, path, poll.last_error)
    tail = _line_end(tree, path, poll.no_client.span), _line_end(tree, path, poll.body)
    return Rewrite(
        (
            edit(_constants_place(tree, path, decl), CONSTANTS),
            edit(layout.insert_before_line(tree, path, decl.span.start), DOC),
            edit(Span(*head), POLL),
            *no_config,
            edit(layout.insert_after_line(tree, path, poll.no_config.span.end - 1), REQUEST_TIMEOUT),
            *no_client,
            edit(Span(*tail), CHECK),
            *needs(path, *known.values()),
            *_tests(tree, TEST.filled(values)),
        )
    )


def _returns(tree: Tree, path: str, guard: ast.If, err: str, message: str) -> tuple[Change, ...] | None:
    """Let a guard return no client as well, and a message before an error that has none; None without its package."""
    stmt = guard.then.stmts[0].span
    value = tree.text(path, stmt).removeprefix("return").strip()
    error = wrapped(tree, path, stmt, err, message) if value == err else (value, ())
    if error is None:
        return None
    return (Edit(path, stmt, RETURN.filled({"error": error[0]})), *error[1])


def _constants_place(tree: Tree, path: str, decl: ast.FuncDecl) -> Span:
    """Return the place after the limit, or after the function where that is in another file."""
    limits = [limit.span for where, limit, _ in tree.variables(package(tree, UTIL), LIMIT) if where == path]
    return layout.insert_after_line(tree, path, (limits or [decl.span])[0].end - 1)


def _tests(tree: Tree, text: Fragment) -> tuple[Change, ...]:
    """Return the test file, nothing where the package has tests of these names."""
    path = next((path for path in TEST_PATHS if path not in tree.snapshot.files), None)
    if path is None or in_the_way(tree, UTIL, TEST_PATHS, TEST_NAMES) is not None:
        return ()
    return (NewFile(path, text),)


def _line_end(tree: Tree, path: str, span: Span) -> int:
    return layout.whole_lines(tree.data(path), span).end


def _with_doc(decl: ast.FuncDecl | ast.VarDecl) -> Span:
    return Span(decl.doc.start if decl.doc is not None else decl.span.start, decl.span.end)


CODEMOD = Codemod(
    id=ID,
    title="Surface the reason why the apiserver is not ready",
    body="""\
The wait for the apiserver dropped the reply that says which checks fail,
and named its last error only after the timeout. Log the reason whenever it
changes, give each request 15 seconds, and return an error that names the
last reason and still tells a timeout from a cancelled context. The reason
is the list of checks that failed where the reply has one, read from the
whole body: the client's own error holds no more than its first 2048 bytes,
most of which are about checks that passed.
""",
    find=find,
    templates=(DOC, CONSTANTS, POLL, RETURN, REQUEST_TIMEOUT, CHECK, TEST),
    anchors=(Anchor("wait-for-apiserver-ready"), Anchor("limit", optional=True)),
)
