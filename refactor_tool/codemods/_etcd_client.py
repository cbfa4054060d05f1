"""Let only one goroutine start the client of etcd, on servers where its test and its proxy both need one."""

from __future__ import annotations

from collections.abc import Iterator

from refactor_tool.codemod import Template
from refactor_tool.codemods import _shapes
from refactor_tool.codemods._etcd_remote import lists_members, tests_remote_etcd
from refactor_tool.codemods._etcd_sites import (
    body_of,
    finding,
    is_nil,
    methods,
    newline,
    parameter_of,
    receiver_of,
    text_of,
)
from refactor_tool.codemods._k3s import ETCD, declares, package
from refactor_tool.codemods._literals import unkeyed
from refactor_tool.gosrc import ast, layout
from refactor_tool.gosrc.tree import Occurrence, Tree, TypeRef
from refactor_tool.gosrc.walk import trail, walk
from refactor_tool.gosrc.words import word_places
from refactor_tool.model import Change, Edit, Finding, Leave, Manual, NeedImport, Rewrite, Span, Verdict
from refactor_tool.record import record

LOCK = Template("etcd-ready/client_lock.go.j2", ("receiver",))
SPLIT = Template("etcd-ready/client_split.go.j2", ("client", "ctx", "params", "receiver", "type"))
DATASTORE = Template("etcd-ready/client_datastore.go.j2", ("ca", "cert", "endpoint", "key", "receiver"))
DROP = Template("etcd-ready/client_drop.go.j2", ("receiver", "statements"))
GUARD = Template("etcd-ready/ensure_client_guard.go.j2", ("ctx", "exit", "receiver"))
VALUE = Template("etcd-ready/ensure_client_value.go.j2", ("ctx", "gap", "receiver"))
TIMEOUT = Template("etcd-ready/member_timeout.go.j2", ("context", "ctx", "timeout"))
TEMPLATES = (LOCK, SPLIT, DATASTORE, DROP, GUARD, VALUE, TIMEOUT)

_BY_HAND = "guard the start of the client with a lock: the test of etcd and its proxy may both be the first to need it"
_LOCK = b"clientMu"
#: The limit for one request to etcd, by its names over time.
_LIMITS = ("statusTimeout", "testTimeout")


def of_client(tree: Tree) -> Iterator[Finding]:
    """Yield what becomes of the client, of the function that starts it, and of those that need it started."""
    guarded = False
    for path, known in tree.types(package(tree, ETCD), "ETCD"):
        if isinstance(known.type, ast.StructType):
            verdict = _field(tree, path, known, known.type)
            yield finding(tree, path, known.name_span, verdict, "guards the client with a lock", "field", "etcd-client")
            for where, place, by_hand in (
                unkeyed(tree, package(tree, ETCD), "ETCD") if isinstance(verdict, Rewrite) else ()
            ):
                yield finding(tree, where, place, by_hand, "guards the client with a lock", "literal")
            guarded = isinstance(verdict, Leave) and verdict.done and not _is_unguarded(tree)
            if isinstance(verdict, Leave) and not verdict.done:
                return
    yield from _half_guarded(tree)
    if not guarded:
        for path, decl in methods(tree, ETCD, "ETCD", "startClient"):
            verdict = _StartClient(tree, path, tree.function(path, decl), receiver_of(decl)).verdict()
            yield finding(tree, path, decl.signature, verdict, "starts the client under the lock", "start-client")
    elif not methods(tree, ETCD, "ETCD", "ensureClient"):
        return
    readers = methods(tree, ETCD, "ETCD", "GetMembersClientURLs")
    for path, decl in readers:
        if not guarded or b"ensureClient" not in tree.data(path)[decl.span.start : decl.span.end]:
            verdict = _members(tree, path, tree.function(path, decl))
            yield finding(tree, path, decl.signature, verdict, "starts the client if there is none", "member-urls")
    for use in _shapes.uses_of(tree, ast.FieldObject(package(tree, ETCD), "ETCD", "startClient"), folder=ETCD):
        in_reader = any(path == use.path and decl.span.contains(use.span) for path, decl in readers)
        if not in_reader and not tree.file(use.path).test:
            yield from _on_demand(tree, use)


def _half_guarded(tree: Tree) -> Iterator[Finding]:
    """Yield the functions that guard the client with its lock, and lost a part of what goes with that."""
    for path in tree.package_files(package(tree, ETCD)):
        around = (tree.function_at(path, at.start) for at in word_places(tree.data(path), _LOCK))
        for decl in dict.fromkeys(decl for decl in around if decl is not None):
            verdict = _lost(tree, path, decl)
            if verdict is not None:
                yield finding(tree, path, decl.signature, verdict, "keeps what guards the client", "half-guarded")


def _lost(tree: Tree, path: str, decl: ast.FuncDecl) -> Verdict | None:
    text = tree.text(path, decl.span)
    taken, given = text.count("clientMu.Lock()"), text.count("clientMu.Unlock()")
    if taken != given:
        return Manual(
            f"{decl.title} takes the lock of the client {taken} times, and gives it back {given} times",
            "take it before the client is used, and give it back afterwards on every way",
        )
    if decl.name != "startClientLocked":
        return None
    changes = _StartClient(tree, path, tree.function(path, decl), receiver_of(decl)).datastore()
    return (changes if isinstance(changes, Manual) else Rewrite(changes)) if changes else None


def _is_unguarded(tree: Tree) -> bool:
    """Tell whether the start of the client is as it was, where the lock is there already."""
    starts = methods(tree, ETCD, "ETCD", "startClient")
    return any("clientMu" not in tree.text(path, decl.span) for path, decl in starts)


# --- the field --------------------------------------------------------------------------------------


def _field(tree: Tree, path: str, decl: ast.TypeDecl, struct: ast.StructType) -> Verdict:
    """Add the lock below the client."""
    fields = {ident.name: field for field in struct.fields for ident in field.names}
    if "clientMu" in fields:
        known = tree.named_type(TypeRef(fields["clientMu"].type, path))
        if known != ast.PackageObject("sync", "Mutex") or isinstance(fields["clientMu"].type, ast.Unary):
            return Manual("the ETCD has a clientMu that is no sync.Mutex", "rename it")
        return Leave("the client is guarded by a lock already", done=True)
    if not tests_remote_etcd(tree):
        return Leave("servers without etcd test it in a way of their own here, which leaves the client to etcd's start")
    if not methods(tree, ETCD, "ETCD", "startClient"):
        setter = next(_setters(tree), None)
        if setter is not None:
            return Leave(f"the client is set once, by {setter}, before anything can ask for it")
        return Manual("nothing is known that sets the client of etcd before it is tested", _BY_HAND)
    sync = tree.qualify(path, "sync", "sync", decl.span.start)
    if sync is None or "client" not in fields:
        return Manual("ETCD has no field client, or sync means something else there", _BY_HAND)
    lock = ("clientMu", f"{sync.prefix}Mutex")
    edits = _below(tree, path, fields["client"], *lock) or layout.add_fields(tree, path, struct, (lock,))
    return Rewrite((*edits, *_shapes.needs(path, sync)))


def _setters(tree: Tree) -> Iterator[str]:
    """Yield the functions that give a driver its client before it is started, as they all did until 2023."""
    for name in ("Register", "SetControlConfig"):
        for path, decl in methods(tree, ETCD, "ETCD", name):
            for stmt in body_of(tree.function(path, decl)):
                match stmt:
                    case ast.Assign(lhs=(ast.Selector(name="client"),), op="="):
                        yield decl.title
                    case _:
                        pass


def _below(tree: Tree, path: str, field: ast.Field, name: str, type_: str) -> tuple[Edit, ...]:
    """Return the edit that puts a field below another, in its columns; () where the name is too long for them."""
    lines = layout.whole_lines(tree.data(path), field.span)
    width = field.type.span.start - field.span.start
    if len(name) >= width or tree.data(path)[field.span.end : lines.end].strip():
        return ()
    text = f"{tree.indent(path, field.span.start)}{name.ljust(width)}{type_}{newline(tree, path)}"
    return (Edit(path, Span(lines.end, lines.end), text.encode()),)


# --- startClient ------------------------------------------------------------------------------------


@record
class _StartClient:
    """The function that starts the client, with its body; `name` is its receiver."""

    tree: Tree
    path: str
    decl: ast.FuncDecl
    name: str

    def verdict(self) -> Verdict:
        """Split the function where it has made sure that there is no client yet."""
        tree, path, decl, stmts = self.tree, self.path, self.decl, body_of(self.decl)
        ctx, client = parameter_of(decl), self._client_type()
        clash = next(
            (name for name in ("ensureClient", "startClientLocked") if methods(tree, ETCD, "ETCD", name)), None
        )
        if clash is not None:
            return Manual(f"{clash} is there already, but not the lock", _BY_HAND)
        if isinstance(client, Manual):
            return client
        if not ctx or decl.body_span is None or decl.receiver is None or len(stmts) < 2:
            return Manual("startClient has parameters or a receiver that are not known", _BY_HAND)
        if not _is_compared(stmts[0], self.name, "!="):
            return Manual("startClient does not begin with a check that there is no client", _BY_HAND)
        values = {
            "receiver": self.name,
            "type": tree.text(path, decl.receiver.type.span),
            "params": tree.text(path, decl.params_span),
            "ctx": ctx,
            "client": client[0],
        }
        opened = Span(decl.body_span.start + 1, decl.body_span.start + 1)
        split = Edit(path, self._gap(stmts[0], stmts[1]), SPLIT.filled(values))
        guarded: tuple[Change, ...] = (Edit(path, opened, LOCK.filled(values)), split, *client[1])
        return _shapes.combined(guarded, self.datastore(), self._dropped())

    def _client_type(self) -> tuple[str, tuple[NeedImport, ...]] | Manual:
        """Return how the type of the client is written in the function's file, which may not be that of its field."""
        tree = self.tree
        fields = [
            (path, field.type)
            for path, decl in tree.types(package(tree, ETCD), "ETCD")
            for field in (decl.type.fields if isinstance(decl.type, ast.StructType) else ())
            if any(ident.name == "client" for ident in field.names)
        ]
        match fields:
            case [(path, type_)] if path == self.path:
                return tree.text(path, type_.span), ()
            case [(path, ast.Unary(op="*", x=ast.Selector(x=ast.Ident(name=local))) as type_)]:
                named = tree.named_type(TypeRef(type_, path))
                known = tree.qualify(self.path, named.package, local, self.decl.span.start) if named else None
                if named is not None and known is not None:
                    return f"*{known.prefix}{named.name}", _shapes.needs(self.path, known)
            case _:
                pass
        return Manual("the type of the client cannot be named where it is started", _BY_HAND)

    def _gap(self, first: ast.Stmt, second: ast.Stmt) -> Span:
        """Return what is between two statements but the last line break, up to the comment above the second."""
        above = _shapes.comment_above(self.tree, self.path, second.span)
        data = self.tree.data(self.path)
        end = above.start if above is not None else layout.whole_lines(data, second.span).start
        return Span(first.span.end, max(first.span.end, len(data[:end].removesuffix(b"\n").removesuffix(b"\r"))))

    def datastore(self) -> tuple[Change, ...] | Manual:
        """Write to the configuration of the datastore only where that changes something."""
        tree, path, stmts = self.tree, self.path, body_of(self.decl)
        datastore = f"{self.name}.config.Datastore"
        wanted = {
            f"{datastore}.Endpoint": "endpoint",
            f"{datastore}.BackendTLSConfig.CAFile": "ca",
            f"{datastore}.BackendTLSConfig.CertFile": "cert",
            f"{datastore}.BackendTLSConfig.KeyFile": "key",
        }
        values = {"receiver": self.name}
        places: list[int] = []
        for at, stmt in enumerate(stmts):
            match stmt:
                case ast.Assign(lhs=(left,), op="=", rhs=(right,)) if key := wanted.get(text_of(tree, path, left)):
                    values[key] = text_of(tree, path, right)
                    places.append(at)
                case _:
                    pass
        if not places:
            return ()
        span = Span(stmts[places[0]].span.start, stmts[places[-1]].span.end)
        together = places == list(range(places[0], places[0] + len(wanted)))
        if not together or len(values) <= len(wanted) or tree.comments_in(path, span):
            return Manual("startClient sets the datastore's configuration in a way that is not known", _BY_HAND)
        if _shapes.names_in(tree, path, self.decl.span, "tlsConfig"):
            return Manual("startClient has something called tlsConfig already", "rename it")
        return (Edit(path, span, DATASTORE.filled(values, tree.indent(path, span.start))),)

    def _dropped(self) -> tuple[Change, ...] | Manual:
        """Take the lock where the client is dropped."""
        tree, path = self.tree, self.path
        out: list[Change] = []
        for body in (node.body for node in walk(self.decl) if isinstance(node, ast.FuncLit)):
            mine = [stmt for stmt in body.stmts if any(_is_client(node, self.name) for node in walk(stmt))]
            if not mine:
                continue
            span = Span(mine[0].span.start, mine[-1].span.end)
            if _shapes.names_in(tree, path, body.span, "clientMu"):
                return Manual("the client is dropped under a lock already, but not started under it", _BY_HAND)
            if tree.comments_in(path, span):
                return Manual("a comment stands where the client is dropped", _BY_HAND)
            texts = [tree.text(path, stmt.span) for stmt in body.stmts if span.contains(stmt.span)]
            values = {"receiver": self.name, "statements": "\n".join(texts)}
            out.append(Edit(path, span, DROP.filled(values, tree.indent(path, span.start))))
        return tuple(out)


# --- those that need the client ---------------------------------------------------------------------


def _members(tree: Tree, path: str, decl: ast.FuncDecl) -> Verdict:
    """Start the client if there is none, with the caller's context, and limit the time of the request."""
    unknown = Manual(
        "GetMembersClientURLs asks etcd in a way that is not known", "use the client of ensureClient in it"
    )
    if not lists_members(tree, path, decl):
        return Leave("answers without a request to etcd")
    stmts, name, ctx = body_of(decl), receiver_of(decl), parameter_of(decl)
    requests = [stmt for stmt in stmts if any(_is_client(node, name) for node in walk(stmt))]
    first, request = stmts[0], requests[-1] if requests else stmts[0]
    guarded = _is_compared(first, name, "==")
    if not ctx or len(requests) != (2 if guarded else 1) or (guarded and _demanded(tree, path, first, name) is None):
        return unknown
    uses = [node.span for node in walk(request) if _is_client(node, name)]
    if len(_shapes.names_in(tree, path, decl.span, "client")) != len(uses) + guarded:
        return unknown
    values = {"receiver": name, "ctx": ctx, "gap": "" if guarded else "\n\n"}
    start = VALUE.filled(values, tree.indent(path, first.span.start), lines=not guarded)
    place = first.span if guarded else _above(tree, path, first)
    changes: list[Change] = [Edit(path, place, start), *(Edit(path, span, b"client") for span in uses)]
    if not any(isinstance(node, ast.Selector) and node.name == "WithTimeout" for node in walk(decl)):
        limit = next((each for each in _LIMITS if declares(tree, package(tree, ETCD), each)), None)
        context = tree.qualify(path, "context", "context", request.span.start)
        if limit is None or context is None or _shapes.names_in(tree, path, decl.span, "cancel"):
            return unknown
        values |= {"context": context.prefix, "timeout": limit}
        text = TIMEOUT.filled(values, tree.indent(path, request.span.start), lines=True)
        changes.append(Edit(path, _above(tree, path, request), text))
    return Rewrite(tuple(changes))


def _above(tree: Tree, path: str, stmt: ast.Stmt) -> Span:
    """Return the empty span at the start of a statement's line, or of the comment above it."""
    above = _shapes.comment_above(tree, path, stmt.span)
    return layout.insert_before_line(tree, path, above.start if above is not None else stmt.span.start)


def _on_demand(tree: Tree, use: Occurrence) -> Iterator[Finding]:
    """Replace `if there is no client { start it }` by ensureClient; a start that must be the first stays as it is."""
    path, message = use.path, "starts the client if there is none"
    decl, call = _shapes.whole_function(tree, path, use.span), tree.call_at(path, use.qualified)
    if decl is None or call is None or not isinstance(call.fun, ast.Selector):
        verdict: Verdict = Manual("startClient is used as a value", _BY_HAND)
        yield finding(tree, path, use.qualified, verdict, message, "function-value")
        return
    name = text_of(tree, path, call.fun.x)
    around = (node for node in trail(decl, call.span) if isinstance(node, ast.If))
    outer = next((node for node in around if any(_is_client(each, name) for each in walk(node.cond))), None)
    if outer is None:
        return
    leave = _demanded(tree, path, outer, name)
    if leave is None:
        line = tree.line_text(path, outer.span.start)
        verdict = Manual(f"the client is started in a way that is not known: {line!r}", "call ensureClient instead")
    else:
        values = {"receiver": name, "ctx": tree.text(path, call.args_span), "exit": tree.text(path, leave.span)}
        verdict = Rewrite((Edit(path, outer.span, GUARD.filled(values, tree.indent(path, outer.span.start))),))
    yield finding(tree, path, outer.span, verdict, message, "on-demand")


def _demanded(tree: Tree, path: str, outer: ast.Stmt, name: str) -> ast.Stmt | None:
    """Return the exit of `if e.client == nil { if err := e.startClient(ctx); err != nil { exit } }`, else None."""
    if not isinstance(outer, ast.If) or not _is_compared(outer, name, "==") or tree.comments_in(path, outer.span):
        return None
    match outer:
        case ast.If(
            then=ast.Block(
                stmts=(
                    ast.If(
                        init=ast.Assign(
                            lhs=(ast.Ident(name="err"),),
                            op=":=",
                            rhs=(ast.Call(fun=ast.Selector(name="startClient"), args=(_,)),),
                        ),
                        cond=ast.Binary(op="!=", x=ast.Ident(name="err"), y=ast.Ident(name="nil")),
                        then=ast.Block(stmts=(leave,)),
                        else_=None,
                    ),
                )
            ),
            else_=None,
        ):
            return leave
        case _:
            return None


def _is_compared(stmt: ast.Stmt, name: str, op: str) -> bool:
    """Tell whether a statement's condition does nothing but compare the client with nil."""
    match stmt:
        case ast.If(init=None, cond=ast.Binary(op=found, x=x, y=y)):
            return found == op and _is_client(x, name) and is_nil(y)
        case _:
            return False


def _is_client(node: object, name: str) -> bool:
    match node:
        case ast.Selector(x=ast.Ident(name=owner), name="client"):
            return owner == name
        case _:
            return False
