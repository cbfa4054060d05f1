"""Let `(*Cluster).Start` return nothing but an error, and test the datastore through the executor instead."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from refactor_tool.codemod import Template
from refactor_tool.codemods import _shapes
from refactor_tool.codemods._etcd_sites import body_of, finding, is_nil, methods, newline, receiver_of
from refactor_tool.codemods._k3s import CLUSTER, CONFIG, EXECUTOR, package
from refactor_tool.gosrc import ast
from refactor_tool.gosrc.tree import Occurrence, Tree
from refactor_tool.gosrc.walk import Node, children, trail, walk
from refactor_tool.model import Change, Edit, Finding, Leave, Manual, Rewrite, Span, Verdict
from refactor_tool.record import record

NO_ETCD = Template("etcd-ready/no_etcd.go.j2", ("ctx", "executor", "receiver"))
KINE = Template("etcd-ready/kine.go.j2", ("ctx", "executor", "receiver"))
CONTEXT_CASE = Template("etcd-ready/context_case.go.j2", ("ctx",))
TEMPLATES = (NO_ETCD, KINE, CONTEXT_CASE)

BY_HAND = "return an error alone, and wait for etcd with the executor's ETCDReadyChan"

#: What the doc comment says of the channel, the items of a list before it included.
_DOC = re.compile(
    r"(?P<comma>,\n// )?(?P<what>handles [^.]*?), and returns a channel\n// that will be closed when "
    r"datastore is ready[.]"
)


def of_cluster(tree: Tree) -> Iterator[Finding]:
    """Yield what becomes of the start of the cluster."""
    for path, decl in methods(tree, CLUSTER, "Cluster", "Start"):
        if returns_channel(decl.results):
            yield from _ClusterStart(tree, path, tree.function(path, decl)).findings()
            continue
        match [param.type for param in decl.results]:
            case [ast.Ident(name="error")]:
                verdict: Verdict = _reported(tree, path, decl) or Leave("Start returns an error alone", done=True)
            case _:
                line = tree.line_text(path, decl.span.start)
                verdict = Manual(f"the results of Start are not known: {line!r}", BY_HAND)
        yield finding(tree, path, decl.signature, verdict, "returns no channel", "result", "cluster-start")


def _reported(tree: Tree, path: str, decl: ast.FuncDecl) -> Manual | None:
    """Tell of a start that reports etcd as ready on fewer kinds of servers than the series lets it do."""
    if not methods(tree, CLUSTER, "Cluster", "testRemoteDB"):
        return None
    etcd = ast.PackageObject(package(tree, EXECUTOR), "ETCD")
    nodes = walk(tree.function(path, decl))
    count = sum(isinstance(node, ast.Call) and tree.calls(path, node) == etcd for node in nodes)
    if count >= 2:
        return None
    return Manual(
        f"Start calls executor.ETCD {count} times: on servers without etcd, or with kine, it is never ready",
        "call executor.ETCD(ctx, nil, nil, c.testRemoteDB) where etcd is disabled, and where there is no managedDB",
    )


def returns_channel(results: Sequence[ast.Param]) -> bool:
    """Tell whether results are a channel and an error."""
    match [param.type for param in results]:
        case [ast.ChanType(), ast.Ident(name="error")]:
            return True
        case _:
            return False


def is_config_field(tree: Tree, path: str, expr: ast.Expr, name: str) -> bool:
    """Tell whether an expression is a field of the server's configuration or of what is below it."""
    found = tree.resolve(path, expr) if isinstance(expr, ast.Selector) else None
    return isinstance(found, ast.FieldObject) and found.name == name and found.package == package(tree, CONFIG)


def only_returns(stmt: ast.Stmt, err: str) -> bool:
    """Tell whether a statement does nothing but return where an error is not nil."""
    match stmt:
        case ast.If(
            init=None,
            cond=ast.Binary(op="!=", x=ast.Ident(name=name), y=ast.Ident(name="nil")),
            then=ast.Block(stmts=(ast.Return(),)),
            else_=None,
        ):
            return name == err
        case _:
            return False


@record
class _ClusterStart:
    """`Start` with its body, which returns a channel."""

    tree: Tree
    path: str
    decl: ast.FuncDecl

    def findings(self) -> Iterator[Finding]:
        yield self._signature()
        yield from self._doc_by_hand()
        parts = (*self._without_etcd(), *self._test(), *self._storage())
        yield from parts
        yield from self._returns([part.span for part in parts if part.shape != "missing"])

    def _finding(self, span: Span, verdict: Verdict, message: str, shape: str, anchor: str = "") -> Finding:
        return finding(self.tree, self.path, span, verdict, message, shape, anchor)

    def _missing(self, what: str, near: Span | None = None) -> Finding:
        """Say that a part of the function does not have the form that is known; all of the function is in question."""
        place = near or self.decl.name_span
        line = self.tree.line_text(self.path, place.start)
        verdict = Manual(f"Start has no {what} in the form that is known: {line!r}", BY_HAND)
        return self._finding(self.decl.span, verdict, f"looks for the {what}", "missing")

    def _signature(self) -> Finding:
        tree, path, decl = self.tree, self.path, self.decl
        results = decl.results_span or decl.name_span
        verdict: Verdict = Rewrite((Edit(path, results, b"error"), *_doc(tree, path, decl)))
        if not receiver_of(decl):
            verdict = Manual("Start has no name for its receiver", "name it")
        span = Span(decl.doc.start if decl.doc is not None else decl.span.start, decl.signature.end)
        return self._finding(span, verdict, "returns no channel", "result", "cluster-start")

    def _doc_by_hand(self) -> Iterator[Finding]:
        """Tell a person of a doc comment that speaks of the channel in words of its own; the code does not need it."""
        doc = self.decl.doc
        text = self.tree.text(self.path, doc) if doc is not None else ""
        if doc is not None and "channel" in text and not _doc(self.tree, self.path, self.decl):
            verdict = Manual(
                f"the doc comment speaks of a channel: {text!r}", "say that Start returns an error", blocks=False
            )
            yield self._finding(doc, verdict, "returns no channel", "doc")

    # --- servers without etcd, and without a managed datastore ------------------------------------------

    def _without_etcd(self) -> Iterator[Finding]:
        """Test the connection where etcd is disabled, instead of returning a channel that is closed already."""
        tree, path, what = self.tree, self.path, "block for servers without etcd"
        blocks = [
            (stmt, made, ready)
            for stmt in body_of(self.decl)
            if isinstance(stmt, ast.If)
            for made, ready in _made(stmt.then.stmts)
        ]
        if len(blocks) != 1:
            yield self._missing(what)
            return
        block, made, ready = blocks[0]
        closing = [stmt for stmt in block.then.stmts if _closes(stmt, ready.name)]
        last = block.then.stmts[-1]
        simple = is_config_field(tree, path, block.cond, "DisableETCD") and block.else_ is None
        if not simple or len(closing) != 1 or len(self._uses(ready)) != 2 or not self._returns_it(last, ready):
            yield self._missing(what, block.span)
            return
        removed = _shapes.combined(_shapes.remove_statements(tree, path, (made.span, closing[0].span)))
        yield self._finding(Span(made.span.start, closing[0].span.end), removed, "makes no channel", "make-close")
        verdict = self._starting(NO_ETCD, last.span, last.span)
        yield self._finding(last.span, verdict, "tests the etcd of another server", "return")

    def _returns_it(self, stmt: ast.Stmt, ready: ast.Ident) -> bool:
        match stmt:
            case ast.Return(values=(ast.Ident(name=name), ast.Ident(name="nil"))):
                return name == ready.name and not self.tree.comments_in(self.path, stmt.span)
            case _:
                return False

    def _storage(self) -> Iterator[Finding]:
        """Report kine as ready once its listener is up."""
        tree = self.tree
        starts = []
        for stmt in body_of(self.decl):
            match stmt:
                case ast.If(init=ast.Assign(rhs=(ast.Call() as call,)), else_=None) if self._calls(
                    call, "startStorage"
                ):
                    starts.append(stmt)
                case _:
                    pass
        if len(starts) != 1 or tree.member(package(tree, CLUSTER), "Cluster", "managedDB") is None:
            yield self._missing("start of the storage")
            return
        after = starts[0].span
        verdict = self._starting(KINE, after, Span(after.end, after.end))
        head = Span(after.start, starts[0].cond.span.end)
        yield self._finding(head, verdict, "reports kine as ready once it is started", "storage")

    def _starting(self, template: Template, place: Span, span: Span) -> Verdict:
        """Put a call of the executor's ETCD that starts nothing and tests the datastore in the place of `span`."""
        tree, path = self.tree, self.path
        ctx = _shapes.context_at(tree, path, self.decl, place, outlives=True)
        executor = tree.qualify(path, package(tree, EXECUTOR), "executor", place.start)
        if ctx is None:
            return Manual(f"no context is at hand at {tree.line_text(path, place.start)!r}", BY_HAND)
        if executor is None:
            return _shapes.cannot_name(EXECUTOR, "executor.ETCD")
        values = {"ctx": ctx, "executor": executor.prefix, "receiver": receiver_of(self.decl)}
        text = template.filled(values, tree.indent(path, place.start))
        return Rewrite((Edit(path, span, text), *_shapes.needs(path, executor)))

    # --- the channel of the test ------------------------------------------------------------------------

    def _test(self) -> Iterator[Finding]:
        """Take out the test that made the channel; ask the executor for the channel where it was used."""
        tree, path = self.tree, self.path
        tests = []
        for at, stmt in enumerate(body_of(self.decl)):
            match stmt:
                case ast.Assign(lhs=(ast.Ident() as ready, *errs), op=":=", rhs=(ast.Call() as call,)) if (
                    self._calls(call, "testClusterDB") and len(errs) < 2
                ):
                    tests.append((at, stmt, ready, errs))
                case _:
                    pass
        uses = [use for use in _shapes.names_in(tree, path, self.decl.span, "testClusterDB") if use.role == "call"]
        if len(tests) != 1 or len(uses) != 1:
            yield self._missing("single call of testClusterDB", uses[-1].span if uses else None)
            return
        at, stmt, ready, errs = tests[0]
        gone = [stmt.span, *self._check(at, errs)]
        if errs and len(gone) == 1:
            yield self._missing("check of testClusterDB's error alone", stmt.span)
            return
        verdict = _shapes.combined(_shapes.remove_statements(tree, path, gone))
        span = Span(gone[0].start, gone[-1].end)
        yield self._finding(span, verdict, "no longer tests the datastore by itself", "call")
        for use in self._uses(ready):
            if use.role == "select-case":
                yield self._finding(use.span, self._waiting(use), "waits for the executor's channel", "select-case")
            elif use.role != "return":
                line = tree.line_text(path, use.span.start)
                unknown = Manual(f"unknown use of the channel: {line!r}", BY_HAND)
                yield self._finding(use.span, unknown, "waits for the executor's channel", "unknown-shape")

    def _check(self, at: int, errs: Sequence[ast.Expr]) -> Iterator[Span]:
        """Yield the check of the test's error, if the error has no other use."""
        following = body_of(self.decl)[at + 1 : at + 2]
        for err, guard in zip(errs, following, strict=False):
            match err:
                case ast.Ident(name=name) if only_returns(guard, name) and all(
                    guard.span.contains(use.span) for use in self._uses(err)
                ):
                    yield guard.span
                case _:
                    pass

    def _waiting(self, use: Occurrence) -> Verdict:
        """Wait for the executor's channel in a select, and end with the context where it ran in circles."""
        tree, path = self.tree, self.path
        asked = _shapes.ready_chan(tree, path, "ETCDReadyChan", use.span)
        ctx = _shapes.context_at(tree, path, self.decl, use.span)
        select = next(node for node in reversed(trail(self.decl, use.span)) if isinstance(node, ast.Select))
        if isinstance(asked, Manual):
            return asked
        changes: list[Change] = [Edit(path, use.span, asked[0].encode()), *asked[1]]
        if not any(_shapes.is_end(tree, path, case) for case in select.cases):
            idle = next((case for case in select.cases if case.default), None)
            if idle is None or ctx is None or not _is_idle(tree, path, idle):
                return Manual("the select does not end with the context", "add a case for the end of the context")
            text = CONTEXT_CASE.filled({"ctx": ctx}, tree.indent(path, idle.span.start))
            changes.append(Edit(path, Span(idle.span.start, idle.body[-1].span.end), text))
        return Rewrite(tuple(changes))

    # --- what is returned -------------------------------------------------------------------------------

    def _returns(self, gone: Sequence[Span]) -> Iterator[Finding]:
        """Drop the channel from what is returned."""
        tree, path = self.tree, self.path
        for stmt in (node for node in _own(self.decl) if isinstance(node, ast.Return)):
            if any(span.contains(stmt.span) for span in gone):
                continue
            line = tree.line_text(path, stmt.span.start)
            verdict: Verdict = Manual(f"unknown results: {line!r}", BY_HAND)
            match stmt.values:
                case (ast.Ident() as first, second) if is_nil(first) or self._is_local(first):
                    if not tree.comments_in(path, stmt.span):
                        verdict = Rewrite((Edit(path, Span(first.span.start, second.span.start), b""),))
                case _:
                    pass
            yield self._finding(stmt.span, verdict, "returns no channel", "return")

    def _is_local(self, expr: ast.Ident) -> bool:
        return isinstance(self.tree.resolve(self.path, expr), ast.LocalObject)

    def _calls(self, call: ast.Call, name: str) -> bool:
        return self.tree.calls(self.path, call) == ast.FieldObject(package(self.tree, CLUSTER), "Cluster", name)

    def _uses(self, local: ast.Ident) -> tuple[Occurrence, ...]:
        """Return the uses of a local of the function, but its declaration."""
        return tuple(
            use
            for use in _shapes.names_in(self.tree, self.path, self.decl.span, local.name)
            if isinstance(use.object, ast.LocalObject) and use.object.at == local.span and use.span != local.span
        )


def _doc(tree: Tree, path: str, decl: ast.FuncDecl) -> tuple[Edit, ...]:
    """Let the doc comment say where readiness is told now, where it told of the channel in the words that are known."""
    text = tree.text(path, decl.doc) if decl.doc is not None else ""
    found = _DOC.search(text.replace("\r\n", "\n"))
    if decl.doc is None or found is None:
        return ()
    joined = f"{found['comma']}and " if found["comma"] else ""
    now = f"{joined}{found['what']}. The executor's etcd\n// ready channel is closed when the datastore is ready."
    end = newline(tree, path)
    after = text.replace(found.group().replace("\n", end), now.replace("\n", end))
    return (Edit(path, decl.doc, after.encode("utf-8", "surrogateescape")),)


def _own(node: Node) -> Iterator[Node]:
    """Yield what is in a function, but not what is in the functions inside it."""
    yield node
    for child in children(node):
        if not isinstance(child, ast.FuncLit):
            yield from _own(child)


def _made(stmts: Sequence[ast.Stmt]) -> Iterator[tuple[ast.Assign, ast.Ident]]:
    """Yield the statements that make a channel, with the new local that it goes to."""
    for stmt in stmts:
        match stmt:
            case ast.Assign(
                lhs=(ast.Ident() as ready,),
                op=":=",
                rhs=(ast.Call(fun=ast.Ident(name="make"), args=(ast.ChanType(), *_)),),
            ):
                yield stmt, ready
            case _:
                pass


def _closes(stmt: ast.Stmt, name: str) -> bool:
    """Tell whether a statement closes a channel, now or at the end."""
    match stmt:
        case ast.Defer(call=call) | ast.ExprStmt(x=call):
            pass
        case _:
            return False
    match call:
        case ast.Call(fun=ast.Ident(name="close"), args=(ast.Ident(name=closed),)):
            return closed == name
        case _:
            return False


def _is_idle(tree: Tree, path: str, case: ast.Case) -> bool:
    """Tell whether a clause only lets others run before it goes round again."""
    match case.body:
        case (ast.ExprStmt(x=ast.Call() as call),) if not tree.comments_in(path, case.span):
            return tree.calls(path, call) == ast.PackageObject("runtime", "Gosched")
        case _:
            return False
