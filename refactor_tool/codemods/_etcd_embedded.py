"""Split the embedded executor's ETCD into a start of etcd and a loop that tests it and closes the channel."""

from __future__ import annotations

from refactor_tool.codemod import Template
from refactor_tool.codemods import _shapes
from refactor_tool.codemods._etcd_sites import newline, receiver_of, top_of
from refactor_tool.codemods._k3s import IS_CLOSED, UTIL, WAIT_CLOSED, declares, helper, package
from refactor_tool.gosrc import ast, layout
from refactor_tool.gosrc.tree import Tree, TypeRef
from refactor_tool.model import Change, Edit, Manual, NeedImport, Rewrite, Span, Verdict

INTERVAL = Template("etcd-ready/test_interval.go.j2", ("time",))
DOC = Template("etcd-ready/embedded_doc.go.j2", ("args",))
BODY = Template("etcd-ready/embedded_etcd.go.j2", ("args", "ctx", "extra", "logrus", "params", "receiver", "time"))
TEST = Template("etcd-ready/embedded_test.go.j2")
TEMPLATES = (INTERVAL, DOC, BODY, TEST)

_TESTS = "pkg/daemons/executor/ready_test.go"
_SIGNAL = "etcdReady"
_BY_HAND = "split it into a start of etcd and a loop that calls the test, and closes the channel once it succeeds"


def embedded(
    tree: Tree,
    path: str,
    decl: ast.FuncDecl,
    owner: ast.Implementer,
    signature: tuple[Change, ...],
    config: ast.Param | None,
    stray: Span | None,
) -> Verdict:
    """Turn the method into one that tests etcd, and what it did into `startETCD`.

    `signature` are the edits of its parameters, `config` the one that becomes a pointer, and `stray` a use of that as
    a value.
    """
    refusal = _unfit(tree, path, decl, owner, stray)
    if refusal is not None:
        return refusal
    assert decl.body_span is not None  # _unfit refuses a method without one
    time = tree.qualify(path, "time", "time", decl.body_span.start)
    logrus = tree.qualify(path, _shapes.LOGRUS, "logrus", decl.body_span.start)
    if time is None or logrus is None:
        return _shapes.cannot_name("time" if time is None else _shapes.LOGRUS, "the loop that tests etcd")
    names = [param.names[0].name for param in decl.params]
    values = {
        "ctx": names[0],
        "args": names[1],
        "extra": names[2],
        "params": ", ".join(_pointer(tree, path, param, is_config=param == config) for param in decl.params),
        "receiver": receiver_of(decl),
        "time": time.prefix,
        "logrus": logrus.prefix,
    }
    above = next((known for where, known in tree.types(owner.package, owner.type) if where == path), decl)
    top, before, opened = top_of(tree, path, above), decl.signature.start, decl.body_span.start + 1
    lead = [Edit(path, Span(before, before), f"//{newline(tree, path)}".encode())] if decl.doc is not None else []
    return Rewrite(
        (
            Edit(path, Span(top, top), INTERVAL.filled(values)),
            *lead,
            Edit(path, Span(before, before), DOC.filled(values)),
            *signature,
            Edit(path, Span(opened, opened), BODY.filled(values)),
            *_shapes.needs(path, time, logrus),
            *_tests(tree),
        )
    )


def _pointer(tree: Tree, path: str, param: ast.Param, *, is_config: bool) -> str:
    text = tree.text(path, param.span)
    if not is_config or isinstance(param.type, ast.Unary):
        return text
    cut = param.type.span.start - param.span.start
    return f"{text[:cut]}*{text[cut:]}"


def _unfit(tree: Tree, path: str, decl: ast.FuncDecl, owner: ast.Implementer, stray: Span | None) -> Manual | None:
    """Return why the method cannot be split."""
    named = all(len(param.names) == 1 and param.names[0].name != "_" for param in decl.params)
    match decl.results:
        case (ast.Param(names=(), type=ast.Ident(name="error")),) if named and len(decl.params) == 3:
            pass
        case _:
            return Manual(f"{decl.title} has parameters or results that are not known", _BY_HAND)
    receiver = receiver_of(decl)
    if not receiver or decl.body_span is None or _shapes.names_in(tree, path, decl.body_span, receiver):
        return Manual(f"{decl.title} has no name for its receiver, or uses it to start etcd", _BY_HAND)
    if decl.receiver is None or not isinstance(decl.receiver.type, ast.Unary):
        return Manual(f"{decl.title} would close the channel of a copy", "give it a pointer receiver")
    if stray is not None:
        return Manual(f"the configuration is used as a value: {tree.line_text(path, stray.start)!r}", _BY_HAND)
    taken = next((name for name in ("startETCD", "etcdTestInterval") if declares(tree, owner.package, name)), None)
    if taken is not None:
        return Manual(f"{taken} is declared already", _BY_HAND)
    return _without_signal(tree, owner)


def _without_signal(tree: Tree, owner: ast.Implementer) -> Manual | None:
    """Refuse an executor that has its channels already, but not the field that is closed here."""
    if not any(method.name == "ETCDReadyChan" for _, method in owner.methods):
        return None  # a tree in which the step that adds the channels has not been made
    for path, decl in tree.types(owner.package, owner.type):
        for field in decl.type.fields if isinstance(decl.type, ast.StructType) else ():
            signal = tree.named_type(TypeRef(field.type, path)) == ast.PackageObject(package(tree, UTIL), "ReadySignal")
            if signal and any(ident.name == _SIGNAL for ident in field.names):
                return None
    return Manual(
        f"{owner.type} has an ETCDReadyChan, but no field {_SIGNAL} of type util.ReadySignal behind it",
        "make the channel a util.ReadySignal, as the step executor-ready-channels does",
    )


def _tests(tree: Tree) -> tuple[Change, ...]:
    """Add the tests of ETCD to those of the channels, where the tree has those."""
    if _TESTS not in tree.snapshot.files:
        return ()
    decls = [decl for decl in tree.decls(_TESTS) if isinstance(decl, ast.FuncDecl)]
    names = {decl.name for decl in decls}
    helpers = [helper(tree, _TESTS, *each) for each in (IS_CLOSED, WAIT_CLOSED)]
    if any(each is None or each[0] != _TESTS for each in helpers) or any("_ETCD_" in name for name in names):
        return ()
    after = next((decl for decl in decls if decl.name.endswith("_BeforeBootstrap")), decls[-1])
    at = layout.insert_after_line(tree, _TESTS, after.span.end)
    imports = ("context", "errors", "sync/atomic", "testing", "time")
    return (Edit(_TESTS, at, TEST.filled({})), *(NeedImport(_TESTS, name) for name in imports))
