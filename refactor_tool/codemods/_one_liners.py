"""Functions on one line: gofmt lays adjacent ones out as columns, and breaks one that is long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from refactor_tool.gosrc import ast
from refactor_tool.gosrc.tree import Tree
from refactor_tool.model import Edit, Span
from refactor_tool.record import record

#: How long the signature and the statements may be together.
LIMIT = 100


@record
class OneLiner:
    """A function on one line: how much longer its signature becomes, and its new body, None for the one it has."""

    decl: ast.FuncDecl
    grown: int
    body: str | None


def lines_beside(tree: Tree, path: str, method: ast.FuncDecl) -> tuple[ast.FuncDecl, ...]:
    """Return the functions on one line that stand on adjacent lines, from above to below, `method` among them.

    () where `method` takes more than a line.
    """
    if "\n" in tree.text(path, method.span):
        return ()
    lines = tree.lines(path)
    out: list[ast.FuncDecl] = []
    for decl in tree.decls(path):
        if not isinstance(decl, ast.FuncDecl) or "\n" in tree.text(path, decl.span):
            continue
        adjacent = out and lines.position(decl.span.start).line == lines.position(out[-1].span.start).line + 1
        if not adjacent and any(known.span == method.span for known in out):
            break
        out = [*out, decl] if adjacent else [decl]
    return tuple(out)


def one_liners(tree: Tree, path: str, group: Sequence[OneLiner]) -> Iterator[Edit]:
    """Yield the edits that lay out adjacent functions anew, with their new bodies.

    A long one takes three lines, and parts the columns above from those below.
    """
    newline = "\r\n" if tree.file(path).crlf else "\n"
    column: list[tuple[OneLiner, str]] = []
    for function in group:
        body = function.body or _body(tree, path, function)
        if function.body is not None and _width(tree, path, function) + len(body.strip("{ }")) > LIMIT:
            yield from _column(tree, path, column)
            column = []
            long = f"{{{newline}\t{body.removeprefix('{ ').removesuffix(' }')}{newline}}}"
            yield from _column(tree, path, [(function, long)])
        else:
            column.append((function, body))
    yield from _column(tree, path, column)


def _column(tree: Tree, path: str, column: Sequence[tuple[OneLiner, str]]) -> Iterator[Edit]:
    widest = max((_width(tree, path, function) for function, _ in column), default=0)
    for function, body in column:
        text = " " * (widest - _width(tree, path, function) + 1) + body
        place = Span(_signature_end(tree, path, function.decl), function.decl.span.end)
        if tree.text(path, place) != text:
            yield Edit(path, place, text.encode("utf-8", "surrogateescape"))


def _body(tree: Tree, path: str, function: OneLiner) -> str:
    return tree.text(path, function.decl.body_span) if function.decl.body_span is not None else ""


def _width(tree: Tree, path: str, function: OneLiner) -> int:
    """Return how many characters the new signature has."""
    decl = function.decl
    return len(tree.text(path, Span(decl.span.start, _signature_end(tree, path, decl)))) + function.grown


def _signature_end(tree: Tree, path: str, decl: ast.FuncDecl) -> int:
    data = tree.data(path)[decl.span.start : decl.signature.end]
    return decl.span.start + len(data.rstrip())
