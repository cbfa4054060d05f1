"""Shapes of Go code that several codemods recognise, and the edits that replace them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from refactor_tool.codemod import Template
from refactor_tool.codemods._k3s import EXECUTOR, UTIL, package
from refactor_tool.gosrc import ast, layout
from refactor_tool.gosrc.tree import Occurrence, Tree, TypeRef
from refactor_tool.gosrc.walk import Function, functions_at, statement, trail
from refactor_tool.gosrc.words import word_places
from refactor_tool.model import Change, Edit, Fragment, Manual, NeedImport, Rewrite, Span
from refactor_tool.record import record, replace

CONTEXT = ast.PackageObject("context", "Context")
#: What makes a context that ends with another, unless it is cancelled; the first has nothing to cancel it.
_DERIVED = tuple(ast.PackageObject("context", name) for name in ("WithValue", "WithCancel", "WithCancelCause"))
_SAME = _DERIVED[0]
PKG_ERRORS = "github.com/pkg/errors"
LOGRUS = "github.com/sirupsen/logrus"

WAIT_READY = Template("shared/wait_ready.go.j2", ("ctx", "exit", "ready", "util"))

_ABOUT_READINESS = re.compile(r"\bready\b|readiness|\w+Ready\b|\bchannel\b", re.IGNORECASE)
_DEFER_CLOSE = b"defer close("


# --- places -----------------------------------------------------------------------------------------


def whole_function(tree: Tree, path: str, place: Span) -> ast.FuncDecl | None:
    """Return the function that holds a place, with its body; None where there is none."""
    decl = tree.function_at(path, place.start)
    return tree.function(path, decl) if decl is not None and decl.body_span is not None else None


def context_at(tree: Tree, path: str, decl: ast.FuncDecl, place: Span, *, outlives: bool = False) -> str | None:
    """Return the name of the nearest context that can be used at a place.

    That is a `context.Context` parameter, else a local `ctx` whose type is not known as a package from outside made it.
    None where it has become another that need not end with the first, or ends before it. `outlives` asks for one as it
    was given, for what goes on when the function has returned.
    """
    for function in reversed(functions_at(decl, place)):
        for param in function.params:
            if tree.named_type(TypeRef(param.type, path)) == CONTEXT:
                for ident in param.names:
                    visible = tree.named_type(tree.type_of_name(path, place.start, ident.name))
                    if (
                        ident.name != "_"
                        and visible == CONTEXT
                        and _lasts(tree, path, decl, place, ident.name, outlives)
                    ):
                        return ident.name
    made = _is_made_outside(tree, path, tree.object_of_name(path, place.start, "ctx"))
    return "ctx" if made and _lasts(tree, path, decl, place, "ctx", outlives) else None


def _lasts(tree: Tree, path: str, decl: ast.FuncDecl, place: Span, name: str, outlives: bool) -> bool:
    """Tell whether the context of a name at a place ends with the first of that name, and by no time limit."""
    found = tree.object_of_name(path, place.start, name)
    for stmt in _assignments(tree, path, decl, name, place):
        left = next(left for left in stmt.lhs if isinstance(left, ast.Ident) and left.name == name)
        if tree.resolve(path, left) != found:
            continue
        match stmt.rhs:
            case (ast.Call(args=(ast.Ident(name=first), *_)) as call,) if tree.calls(path, call) in _DERIVED:
                same = tree.calls(path, call) == _SAME or not outlives
                if not same or not _lasts(tree, path, decl, call.span, first, outlives):
                    return False
            case (ast.Call() as call,) if isinstance(found, ast.LocalObject) and found.kind == "var" and not outlives:
                called = tree.calls(path, call)
                if isinstance(called, ast.PackageObject) and called.package == CONTEXT.package:
                    return False
            case _:
                return False
    return True


def _assignments(tree: Tree, path: str, decl: ast.FuncDecl, name: str, place: Span) -> Iterator[ast.Assign]:
    """Yield the statements of a function that assign to a plain name and end before a place, in order."""
    assigned = re.compile(rb"\b" + name.encode() + rb"\b(?=[^=(){};]*=(?!=))")
    for at in (Span(*match.span()) for match in assigned.finditer(tree.data(path), decl.span.start, place.start)):
        stmt = statement(trail(decl, at))
        if isinstance(stmt, ast.Assign) and stmt.span.end <= place.start and any(left.span == at for left in stmt.lhs):
            yield stmt


def _is_made_outside(tree: Tree, path: str, found: ast.Object) -> bool:
    """Tell whether a call of unknown type makes a variable, as in `ctx, cancel := context.WithCancel(ctx)`."""
    if not isinstance(found, ast.LocalObject) or found.kind != "var":
        return False
    decl = whole_function(tree, path, found.at)
    match statement(trail(decl, found.at)) if decl is not None else None:
        case ast.Assign(op=":=", rhs=(ast.Call() as call,)):
            return not tree.results_of(path, call)
        case _:
            return False


def outside(tree: Tree, path: str, span: Span) -> tuple[Span, Span]:
    """Return what of a file is not in a span."""
    return Span(0, span.start), Span(span.end, len(tree.data(path)))


def names_in(tree: Tree, path: str, span: Span, name: str) -> tuple[Occurrence, ...]:
    """Return the places in the code of a span where a name stands, whatever it means there."""
    places = [*word_places(tree.data(path), name.encode(), span.start, span.end)]
    return tuple(occurrence for occurrence in tree.occurrences_at(path, places) if occurrence.object is not None)


def uses_of(tree: Tree, *targets: ast.PackageObject | ast.FieldObject, folder: str = "") -> Iterator[Occurrence]:
    """Yield where functions or methods of one name are used, called or as a value; in `folder` alone if unexported.

    Files in which the name is no selector are not parsed, but for the function's own package and dot imports of it.
    """
    name = re.escape(targets[0].name.encode())
    selector, word = re.compile(rb"\.\s*(" + name + rb")\b"), re.compile(rb"\b(" + name + rb")\b")
    homes = {target.package for target in targets if isinstance(target, ast.PackageObject)}
    dotted = [f'. "{home}"'.encode() for home in homes]
    owners = {
        target.package
        for target in targets
        if isinstance(target, ast.PackageObject) or tree.types(target.package, target.type)
    }
    for path in tree.package_files(package(tree, folder)) if folder else tree.files_with(targets[0].name.encode()):
        if not any(tree.knows(path, owner) for owner in owners):
            continue
        data = tree.data(path)
        bare = tree.package_of(path) in homes or any(line in data for line in dotted)
        spans = [Span(*match.span(1)) for match in (word if bare else selector).finditer(data)]
        for use in tree.occurrences_at(path, spans):
            if use.object in targets and use.role != "declaration":
                yield use


def exit_of(function: Function) -> str | None:
    """Return the statement with which a cancelled wait leaves a function, where `err` is the context's error.

    None where it has results that no statement here fits.
    """
    match function.results:
        case ():
            return "return"
        case (ast.Param(names=names, type=ast.Ident(name="error")),) if len(names) < 2:
            return "return err"
        case _:
            return None


def needs(path: str, *qualifiers: ast.Qualifier) -> tuple[NeedImport, ...]:
    """Return the imports that the qualifiers ask for."""
    return tuple(NeedImport(path, *qualifier.need) for qualifier in qualifiers if qualifier.need is not None)


def filled(template: Template, params: Mapping[str, str], indent: str = "", *, lines: bool = False) -> Fragment:
    """Return the fragment of a template with its parameters; `indent` and `lines` are as `Fragment` has them."""
    return Fragment(template.name, tuple(sorted(params.items())), indent, lines)


def cannot_name(folder: str, what: str) -> Manual:
    """Say that a package cannot be written at a place."""
    return Manual(
        f"{folder} cannot be named here: its name means something else, or importing it would be a cycle",
        f"rename what shadows it, or add the import by hand, then write {what}",
    )


def named(
    tree: Tree, path: str, offset: int, packages: Mapping[str, str]
) -> tuple[dict[str, str], tuple[NeedImport, ...]] | Manual:
    """Return how packages are written at a byte of a file, by the names given to them, and the imports for that."""
    found = {name: tree.qualify(path, wanted, name, offset) for name, wanted in packages.items()}
    known = {name: qualifier for name, qualifier in found.items() if qualifier is not None}
    lacking = next((wanted for name, wanted in packages.items() if name not in known), None)
    if lacking is not None:
        return cannot_name(lacking.removeprefix(f"{tree.module}/"), "what is needed by hand")
    return {name: qualifier.prefix for name, qualifier in known.items()}, needs(path, *known.values())


# --- waiting ----------------------------------------------------------------------------------------


def ready_chan(tree: Tree, path: str, name: str, place: Span) -> tuple[str, tuple[Change, ...]] | Manual:
    """Return how to ask the executor for a channel, such as `executor.CRIReadyChan()`, and the changes for it.

    A method of an executor asks its receiver, which it names where it has no name.
    """
    decl = tree.function_at(path, place.start)
    if decl is not None and decl.receiver is not None and _is_executor(tree, path, decl.receiver_type):
        own = receiver(tree, path, decl, place)
        return own if isinstance(own, Manual) else (f"{own[0]}.{name}()", own[1])
    executor = tree.qualify(path, package(tree, EXECUTOR), "executor", place.start)
    if executor is None:
        return cannot_name(EXECUTOR, f"executor.{name}()")
    return f"{executor.prefix}{name}()", needs(path, executor)


def _is_executor(tree: Tree, path: str, type_name: str) -> bool:
    owner = tree.package_of(path), type_name
    return any((found.package, found.type) == owner for found in tree.implementers(package(tree, EXECUTOR), "Executor"))


def receiver(tree: Tree, path: str, decl: ast.FuncDecl, place: Span) -> tuple[str, tuple[Change, ...]] | Manual:
    """Return the name of a method's receiver at a place, and the changes that give it one where it has none."""
    if decl.receiver is None:
        raise ValueError(f"{decl.title} is no method")
    by_hand = "name the receiver so that it can be used there"
    own = decl.receiver.names[0] if decl.receiver.names else None
    if own is not None and own.name != "_":
        found = tree.object_of_name(path, place.start, own.name)
        if isinstance(found, ast.LocalObject) and found.at == own.span:
            return own.name, ()
        return Manual(f"{decl.title} has no receiver that can be named here", by_hand)
    wanted = receiver_name(tree, tree.package_of(path), decl.receiver_type)
    if names_in(tree, path, decl.span, wanted):
        return Manual(f"{decl.title} needs a receiver, and {wanted} is taken", by_hand)
    if own is not None:
        return wanted, (Edit(path, own.span, wanted.encode()),)
    at = decl.receiver.type.span.start
    return wanted, (Edit(path, Span(at, at), f"{wanted} ".encode()),)


def receiver_name(tree: Tree, owner: str, type_name: str) -> str:
    """Return what the methods of a type call their receiver."""
    used = (method.receiver for _, method in tree.methods(owner, type_name))
    names = (known.names[0].name for known in used if known is not None and known.names)
    return next((name for name in names if name != "_"), "e")


def wait_ready(
    tree: Tree, path: str, receive: Span, ready: str, extra: tuple[Change, ...] = (), *, close_goes: bool = False
) -> Rewrite | Manual:
    """Replace the statement `<-ch` by a wait for `ready` that ends with the context and leaves the function then.

    `close_goes` says that a deferred close of the function, which leaving it would run, is removed as well.
    """
    line = tree.line_text(path, receive.start)
    wanted = f"replace it by a util.WaitReady of {ready} that leaves the function where the context ends first"
    decl = whole_function(tree, path, receive)
    functions = functions_at(decl, receive) if decl is not None else ()
    if decl is None or not functions:
        return Manual(f"{line!r} waits outside a function", wanted)
    if not _is_alone(tree, path, receive):
        return Manual(f"{line!r} does more than wait", wanted)
    ctx = context_at(tree, path, decl, receive)
    if ctx is None:
        return Manual(f"no context is at hand where {line!r} waits", wanted)
    leave = exit_of(functions[-1])
    if leave is None:
        return Manual(f"{line!r} waits in a function whose results are not an error alone", wanted)
    if not close_goes and closes_at_exit(tree, path, functions[-1]):
        return Manual(
            f"{line!r} waits in a function that closes a channel with defer, also where the wait fails", wanted
        )
    util = tree.qualify(path, package(tree, UTIL), "util", receive.start)
    if util is None:
        return cannot_name(UTIL, f"util.WaitReady({ctx}, {ready})")
    indent = tree.indent(path, receive.start)
    guard = Fragment.of(WAIT_READY.name, indent, util=util.prefix, ctx=ctx, ready=ready, exit=leave)
    return Rewrite((Edit(path, receive, guard), *needs(path, util), *extra))


def _is_alone(tree: Tree, path: str, span: Span) -> bool:
    """Tell whether a statement has its line to itself, but for a comment after it."""
    data = tree.data(path)
    lines = layout.whole_lines(data, span)
    return not data[lines.start : span.start].strip() and data[span.end : lines.end].strip()[:2] in (b"", b"//", b"/*")


def closes_at_exit(tree: Tree, path: str, function: Function) -> bool:
    """Tell whether a function has a `defer close(...)` of its own, which an early return would run too."""
    body = function.body
    if body is None or tree.data(path).find(_DEFER_CLOSE, body.span.start, body.span.end) < 0:
        return False
    return any(
        isinstance(stmt, ast.Defer) and tree.data(path).startswith(_DEFER_CLOSE, stmt.span.start) for stmt in body.stmts
    )


def replace_use(tree: Tree, use: Occurrence, ready: str, extra: tuple[Change, ...] = ()) -> Rewrite | Manual:
    """Replace a readiness channel where it is read by `ready`; a statement that only receives becomes a wait.

    What the channel is compared with, stored over or closed through is `Manual`: the new one is never nil, and only the
    executor closes it.
    """
    path, whole = use.path, use.qualified
    decl = whole_function(tree, path, whole)
    around = [node for node in trail(decl, whole) if node.span != whole] if decl is not None else []
    around = [node for node in around if not isinstance(node, ast.Paren)]
    reads = Rewrite((Edit(path, whole, ready.encode()), *extra))
    if tree.comments_in(path, whole) or is_last_use(tree, path, whole):
        return _unknown_use(tree, use, ready)
    match around[::-1]:
        case [ast.Unary(op="<-"), ast.ExprStmt(span=receive), ast.Block() | ast.Case() as parent, *_] if not (
            isinstance(parent, ast.Case) and parent.comm is not None and parent.comm.span == receive
        ):
            return wait_ready(tree, path, receive, ready, extra)
        case [ast.Unary(op="<-") | ast.VarSpec() | ast.Return(), *_]:
            return reads
        case [ast.Call(fun=fun), *_] if not _is_builtin(tree, path, fun, "close"):
            return reads
        case [ast.Assign(rhs=rhs), *_] if any(value.span.contains(whole) for value in rhs):
            return reads
        case [ast.Element(value=value), *_] if value.span.contains(whole):
            return reads
        case _:
            return _unknown_use(tree, use, ready)


def is_last_use(tree: Tree, path: str, place: Span) -> bool:
    """Tell whether a local variable has no other use than the expression that begins with it: Go would refuse it.

    Where it is more than the name of the variable, the same expression elsewhere is no other use: it goes as well.
    """
    text = tree.text(path, place)
    name = re.match(r"\w+", text)
    decl = tree.function_at(path, place.start)
    if name is None or decl is None:
        return False
    found = tree.object_of_name(path, place.start, name.group())
    if not isinstance(found, ast.LocalObject) or found.kind != "var":
        return False
    own = Span(place.start, place.start + len(name.group()))
    places = [use.span for use in names_in(tree, path, decl.span, name.group()) if use.object == found]
    others = [span for span in places if span not in (found.at, own)]
    if own == place:
        return not others
    size = place.end - place.start
    return all(tree.text(path, Span(at.start, at.start + size)) == text for at in others)


def _unknown_use(tree: Tree, use: Occurrence, ready: str) -> Manual:
    line = tree.line_text(use.path, use.span.start)
    return Manual(
        f"{use.name} is used in a way that is not known: {line!r}",
        f"use {ready} instead: it is never nil, and only the executor closes it",
    )


def _is_builtin(tree: Tree, path: str, fun: ast.Expr, name: str) -> bool:
    return isinstance(fun, ast.Ident) and fun.name == name and isinstance(tree.resolve(path, fun), ast.UnknownObject)


@record
class Guard:
    """`if err := call; err != nil { before; exit }` without an else; `err` is its name there."""

    stmt: ast.If
    call: ast.Call
    err: str
    exit: ast.Stmt
    before: tuple[ast.Stmt, ...] = ()


def guard_at(decl: ast.FuncDecl, call: Span, *, more: bool = False) -> Guard | None:
    """Return the guard whose call stands at exactly `call`; `decl` must have its body.

    Its branch is one statement, or with `more` any number of them but none.
    """
    for node in trail(decl, call):
        match node:
            case ast.If(
                init=ast.Assign(lhs=(ast.Ident(name=err),), op=":=", rhs=(ast.Call(span=span) as called,)),
                cond=ast.Binary(op="!=", x=ast.Ident(name=tested), y=ast.Ident(name="nil")),
                then=ast.Block(stmts=(*before, leave)),
                else_=None,
            ) if span == call and tested == err and (more or not before):
                return Guard(node, called, err, leave, tuple(before))
            case _:
                pass
    return None


def logs(tree: Tree, path: str, stmt: ast.Stmt) -> str:
    """Return the last call of a statement that only logs, as `Fatal` of `logrus.WithError(err).Fatal(…)`, else ""."""
    match stmt:
        case ast.ExprStmt(x=ast.Call(fun=ast.Ident(name=name) | ast.Selector(name=name) as called)):
            first: ast.Expr = called
            while isinstance(first, ast.Selector) and isinstance(first.x, ast.Call):
                first = first.x.fun
            found = tree.resolve(path, first)
            return name if isinstance(found, ast.PackageObject) and found.package == LOGRUS else ""
        case _:
            return ""


def is_end(tree: Tree, path: str, case: ast.Case) -> bool:
    """Tell whether a case of a select is the end of a context."""
    match case.comm:
        case ast.ExprStmt(x=ast.Unary(op="<-", x=ast.Call(fun=ast.Selector(x=x, name="Done"), args=()))):
            return tree.named_type(tree.type_of(path, x)) == CONTEXT
        case _:
            return False


def in_goroutine(decl: ast.FuncDecl, place: Span) -> bool:
    """Tell whether the innermost function around a place is a literal that a `go` statement starts."""
    innermost = functions_at(decl, place)[-1]
    return any(
        isinstance(node, ast.Go) and isinstance(node.call, ast.Call) and node.call.fun == innermost
        for node in trail(decl, place)
    )


def wrapped(tree: Tree, path: str, place: Span, err: str, message: str) -> tuple[str, tuple[NeedImport, ...]] | None:
    """Return an expression that puts a message before an error as the file does it, and the imports for it.

    github.com/pkg/errors goes by its own name or as `pkgerrors`; older files call `Wrap`, newer ones `WithMessage`.
    """
    errors = tree.qualify(path, PKG_ERRORS, "pkgerrors", place.start)
    if errors is None:
        return None
    function = "Wrap" if f"{errors.prefix}Wrap(".encode() in tree.data(path) else "WithMessage"
    return f'{errors.prefix}{function}({err}, "{message}")', needs(path, errors)


# --- taking away ------------------------------------------------------------------------------------


def comment_above(tree: Tree, path: str, span: Span) -> Span | None:
    """Return the lines of comment that stand directly above a statement and belong to it."""
    lines = layout.whole_lines(tree.data(path), span)
    start = layout.with_comment_above(tree.data(path), lines).start
    return Span(start, lines.start) if start < lines.start else None


def with_comment_about(tree: Tree, path: str, span: Span, words: re.Pattern[str]) -> Span:
    """Widen a statement to the comment directly above it where that speaks of `words`; another comment stays."""
    above = comment_above(tree, path, span)
    return span if above is None or not words.search(tree.text(path, above)) else Span(above.start, span.end)


def is_about_readiness(text: str) -> bool:
    """Tell whether a comment speaks of what the campaign changes, so that it would say the opposite of the new code."""
    return _ABOUT_READINESS.search(text) is not None


def doomed_lines(tree: Tree, path: str, span: Span) -> Span | Manual:
    """Return the whole lines of a statement that goes, with the comment above it where that speaks of readiness.

    Another comment above it stays. `Manual` where one inside or beside it speaks of something else and would be lost,
    or where its lines hold something else.
    """
    data = tree.data(path)
    lines = layout.whole_lines(data, span)
    comments = tree.comments_in(path, lines)
    beside = b"".join(data[found.start : found.end] for found in comments if found.start >= span.end)
    if (data[lines.start : span.start] + data[span.end : lines.end].replace(beside, b"")).strip():
        line = tree.line_text(path, span.start)
        return Manual(f"there is more than one statement on the line {line!r}", "put each on a line of its own")
    for text in (tree.text(path, found) for found in comments):
        if not is_about_readiness(text):
            return Manual(f"the comment {text!r} would be lost", "move it to where it still holds")
    above = comment_above(tree, path, span)
    return Span(above.start, lines.end) if above is not None and is_about_readiness(tree.text(path, above)) else lines


def remove_statements(tree: Tree, path: str, spans: Iterable[Span]) -> tuple[Edit, ...] | Manual:
    """Take out the `doomed_lines` of statements."""
    gone: list[Span] = []
    for span in sorted(spans):
        lines = doomed_lines(tree, path, span)
        if isinstance(lines, Manual):
            return lines
        if gone and gone[-1].end >= lines.start:
            gone[-1] = Span(gone[-1].start, lines.end)
        else:
            gone.append(lines)
    return tuple(layout.remove_lines(tree, path, lines) for lines in gone)


def replace_statement(tree: Tree, path: str, span: Span, text: Fragment) -> tuple[Edit, ...] | Manual:
    """Put a fragment without indentation or last newline in the place of a statement's `doomed_lines`."""
    lines = doomed_lines(tree, path, span)
    if isinstance(lines, Manual):
        return lines
    end = span.start + len(tree.data(path)[span.start : lines.end].rstrip(b"\r\n"))
    return (Edit(path, Span(lines.start, end), replace(text, indent=tree.indent(path, span.start), lines=True)),)


def drop_item(tree: Tree, path: str, items: Sequence[Span], index: int, inside: Span) -> tuple[Edit, ...] | Manual:
    """Take one item out of a list of arguments, parameters or elements; `inside` is all between the brackets.

    An item alone on its lines goes with them.
    """
    data = tree.data(path)
    if tree.comments_in(path, inside):
        return Manual(f"a comment stands in the list {tree.text(path, inside)!r}", "take the item out by hand")
    if len(items) == 1:
        return (Edit(path, inside, b""),)
    lines = layout.whole_lines(data, items[index])
    if data[lines.start : lines.end].strip().removesuffix(b",") == data[items[index].start : items[index].end]:
        return (layout.remove_lines(tree, path, items[index]),)
    return (layout.remove_item(tree, path, items, index),)


def combined(*parts: tuple[Change, ...] | Manual) -> Rewrite | Manual:
    """Join the changes of several parts of one site; the first part that is `Manual` decides."""
    refusal = next((part for part in parts if isinstance(part, Manual)), None)
    if refusal is not None:
        return refusal
    return Rewrite(tuple(change for part in parts if not isinstance(part, Manual) for change in part))
