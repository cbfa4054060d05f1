"""Shapes of Go code that several codemods recognise, and the edits that replace them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from refactor_tool.codemod import Template
from refactor_tool.codemods._k3s import EXECUTOR, UTIL, package
from refactor_tool.gosrc import ast, layout
from refactor_tool.gosrc.tree import Tree, TypeRef
from refactor_tool.gosrc.walk import Function, functions_at
from refactor_tool.model import Change, Edit, Fragment, Manual, NeedImport, Rewrite, Span

CONTEXT = ast.PackageObject("context", "Context")

WAIT_READY = Template("shared/wait_ready.go.j2", ("ctx", "exit", "ready", "util"))

_ABOUT_READINESS = re.compile(r"\bready\b|readiness|\w+Ready\b|\bchannel\b", re.IGNORECASE)


# --- places -----------------------------------------------------------------------------------------


def body_at(tree: Tree, path: str, *spans: Span) -> ast.FuncDecl | None:
    """Return the function that holds the first of `spans`, its body pruned to the statements that hold any of them."""
    decl = tree.function_at(path, spans[0].start)
    if decl is None or decl.body_span is None:
        return None
    return tree.function(path, decl, sorted(span.start for span in spans))


def context_at(tree: Tree, path: str, decl: ast.FuncDecl, place: Span) -> str | None:
    """Return the name of the nearest context that can be used at a place.

    That is a `context.Context` parameter, else a local `ctx` whose type is not known as a package from outside made it.
    """
    for function in reversed(functions_at(decl, place)):
        for param in function.params:
            if tree.named_type(TypeRef(param.type, path)) == CONTEXT:
                for ident in param.names:
                    if tree.named_type(tree.type_of_name(path, place.start, ident.name)) == CONTEXT:
                        return ident.name
    local = isinstance(tree.object_of_name(path, place.start, "ctx"), ast.LocalObject)
    return "ctx" if local and tree.type_of_name(path, place.start, "ctx") is None else None


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


def cannot_name(folder: str, what: str) -> Manual:
    """Say that a package cannot be written at a place."""
    return Manual(
        f"{folder} cannot be named here: its name means something else, or importing it would be a cycle",
        f"rename what shadows it, or add the import by hand, then write {what}",
    )


# --- waiting ----------------------------------------------------------------------------------------


def ready_chan(tree: Tree, path: str, name: str, place: Span) -> tuple[str, tuple[NeedImport, ...]] | Manual:
    """Return how to ask the executor for a channel, such as `executor.CRIReadyChan()`, and the imports for it."""
    executor = tree.qualify(path, package(tree, EXECUTOR), "executor", place.start)
    if executor is None:
        return cannot_name(EXECUTOR, f"executor.{name}()")
    return f"{executor.prefix}{name}()", needs(path, executor)


def wait_ready(
    tree: Tree, path: str, receive: Span, ready: str, imports: tuple[NeedImport, ...] = ()
) -> Rewrite | Manual:
    """Replace the statement `<-ch` by a wait for `ready` that ends with the context and leaves the function then."""
    line = tree.line_text(path, receive.start)
    wanted = f"replace it by a util.WaitReady of {ready} that leaves the function where the context ends first"
    decl = body_at(tree, path, receive)
    functions = functions_at(decl, receive) if decl is not None else ()
    if decl is None or not functions:
        return Manual(f"{line!r} waits outside a function", wanted)
    ctx = context_at(tree, path, decl, receive)
    if ctx is None:
        return Manual(f"no context is at hand where {line!r} waits", wanted)
    leave = exit_of(functions[-1])
    if leave is None:
        return Manual(f"{line!r} waits in a function whose results are not an error alone", wanted)
    if closes_at_exit(tree, path, functions[-1]):
        return Manual(
            f"{line!r} waits in a function that closes a channel with defer, also where the wait fails", wanted
        )
    util = tree.qualify(path, package(tree, UTIL), "util", receive.start)
    if util is None:
        return cannot_name(UTIL, f"util.WaitReady({ctx}, {ready})")
    indent = tree.indent(path, receive.start)
    guard = Fragment.of(WAIT_READY.name, indent, util=util.prefix, ctx=ctx, ready=ready, exit=leave)
    return Rewrite((Edit(path, receive, guard), *needs(path, util), *imports))


def closes_at_exit(tree: Tree, path: str, function: Function) -> bool:
    """Tell whether a function has a `defer close(...)` of its own, which an early return would run too."""
    body = function.body
    return body is not None and any(
        isinstance(stmt, ast.Defer | ast.OtherStmt) and tree.text(path, stmt.span).startswith("defer close(")
        for stmt in body.stmts
    )


# --- taking away ------------------------------------------------------------------------------------


def comment_above(tree: Tree, path: str, span: Span) -> Span | None:
    """Return the lines of comment that stand directly above a statement and belong to it."""
    data = tree.data(path)
    start = layout.whole_lines(data, span).start
    top = start
    while top:
        above = data.rfind(b"\n", 0, top - 1) + 1
        if not data[above:top].lstrip().startswith(b"//"):
            break
        top = above
    return Span(top, start) if top < start else None


def is_about_readiness(text: str) -> bool:
    """Tell whether a comment speaks of what the campaign changes, so that it would say the opposite of the new code."""
    return _ABOUT_READINESS.search(text) is not None


def doomed_lines(tree: Tree, path: str, span: Span) -> Span | Manual:
    """Return the whole lines of a statement that goes, with the comment above it where that speaks of readiness.

    Another comment above it stays. `Manual` where one inside or beside it does not speak of readiness and would be lost,
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
