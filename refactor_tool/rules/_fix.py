"""Edits that several rules' fixes are made of: leaving a function, and whole lines at a statement's place."""

from __future__ import annotations

from refactor_tool.gosrc import ast
from refactor_tool.gosrc.tree import Tree, TypeRef
from refactor_tool.gosrc.walk import Function, trail
from refactor_tool.gosrc.walk import statement as innermost_statement
from refactor_tool.model import Edit, Manual, Span
from refactor_tool.rules._code import Site, by_hand
from refactor_tool.rules._ready import deferred_close

CONTEXT = ast.PackageObject("context", "Context")

_NUMBERS = frozenset(
    "int int8 int16 int32 int64 uint uint8 uint16 uint32 uint64 uintptr byte rune float32 float64".split()
)


def context_at(tree: Tree, site: Site) -> str | None:
    """Return the name of the nearest context that can be used at a place, None where there is none.

    That is a `context.Context` parameter, else a local `ctx` that is known to be one.
    """
    for function in (node for node in reversed(site.outer) if isinstance(node, ast.FuncDecl | ast.FuncLit)):
        for param in function.params:
            if tree.named_type(TypeRef(param.type, site.path)) == CONTEXT:
                for ident in param.names:
                    if ident.name != "_" and _still_means(tree, site, ident):
                        return ident.name
    return "ctx" if _is_context(tree, site, "ctx") or _is_derived(tree, site, "ctx") else None


def _still_means(tree: Tree, site: Site, param: ast.Ident) -> bool:
    """Tell whether a context parameter's name is one at a place: nothing there, or a context, hides it."""
    match tree.object_of_name(site.path, site.span.start, param.name):
        case ast.LocalObject(at=at) if at == param.span:
            return True
        case _:
            return _is_context(tree, site, param.name)


def _is_context(tree: Tree, site: Site, name: str) -> bool:
    return tree.named_type(tree.type_of_name(site.path, site.span.start, name)) == CONTEXT


def _is_derived(tree: Tree, site: Site, name: str) -> bool:
    """Tell whether a local comes from package context, as in `ctx, cancel := context.WithCancel(ctx)`."""
    found = tree.object_of_name(site.path, site.span.start, name)
    if not isinstance(found, ast.LocalObject):
        return False
    made = innermost_statement(trail(site.decl, found.at))
    match made:
        case ast.Assign(rhs=(ast.Call() as call,)):
            maker = tree.calls(site.path, call)
            return isinstance(maker, ast.PackageObject) and maker.package == CONTEXT.package
        case _:
            return False


def way_out(tree: Tree, site: Site, err: str, wanted: str) -> str | Manual:
    """Return the statement that leaves the site's function with the error `err`, where it is sure to do no harm.

    `wanted` tells a person what to do otherwise.
    """
    if site.crowded:
        return by_hand("the function is too long for all its exits to be looked at", wanted)
    statement = leave(site.function, err)
    if statement is None:
        return by_hand("what the function must return is not known", wanted)
    close = deferred_close(tree, site)
    if close is not None:
        return by_hand(f"leaving would close {close}, as if it were ready", f"close {close} on success only; {wanted}")
    return statement


def leave(function: Function, err: str) -> str | None:
    """Return the statement that leaves a function with the error `err`; None where it cannot be written for sure.

    Other results are their zero values. A function without results just returns.
    """
    types = [param.type for param in function.results for _ in range(max(1, len(param.names)))]
    if not types:
        return "return"
    last = types[-1]
    if not isinstance(last, ast.Ident) or last.name != "error":
        return None
    zeros = [_zero(type_) for type_ in types[:-1]]
    if any(zero is None for zero in zeros):
        return None
    return f"return {', '.join([*(zero for zero in zeros if zero is not None), err])}"


def _zero(type_: ast.Expr) -> str | None:
    match type_:
        case ast.Ident(name="bool"):
            return "false"
        case ast.Ident(name="string"):
            return '""'
        case ast.Ident(name=name) if name in _NUMBERS:
            return "0"
        case ast.Ident(name="error" | "any"):
            return "nil"
        case ast.Unary(op="*") | ast.ChanType() | ast.FuncType() | ast.InterfaceType():
            return "nil"
        case ast.OtherExpr(kind="slice_type" | "map_type"):
            return "nil"
        case _:
            return None


def statement(tree: Tree, path: str, span: Span, *lines: str) -> Edit:
    """Replace a statement by lines of Go that are indented like it; tabs at their start go deeper."""
    return Edit(path, span, _lines(tree, path, span, lines))


def guarded(tree: Tree, path: str, span: Span, lead: str, test: str, *lines: str) -> tuple[Edit, ...]:
    """Make a call statement the start of an `if`: `lead` before it, `test` after it, `lines` in its body."""
    body = _lines(tree, path, span, ("{", *(f"\t{line}" for line in lines), "}"))
    return (
        Edit(path, Span(span.start, span.start), lead.encode()),
        Edit(path, Span(span.end, span.end), f"{test} ".encode() + body),
    )


def otherwise(tree: Tree, path: str, stmt: ast.If, head: str, *lines: str) -> Edit:
    """Put an `else` with a head such as `if err != nil` after an `if` that has none."""
    body = _lines(tree, path, stmt.span, (f" else {head} {{", *(f"\t{line}" for line in lines), "}"))
    return Edit(path, Span(stmt.span.end, stmt.span.end), body)


def before(tree: Tree, path: str, span: Span, *lines: str) -> Edit:
    """Put lines of Go before a statement."""
    return Edit(path, Span(span.start, span.start), _lines(tree, path, span, lines) + _break(tree, path, span))


def named(path: str, param: ast.Param, name: str) -> Edit:
    """Name a parameter that has no name, or `_`."""
    at = param.span.start
    return Edit(
        path, param.names[0].span if param.names else Span(at, at), (name if param.names else f"{name} ").encode()
    )


def append(tree: Tree, path: str, block: ast.Block, *lines: str) -> Edit | None:
    """Put lines of Go at the end of a block; None where its closing brace stands on the line of its last statement."""
    last = block.stmts[-1].span
    at = tree.data(path).find(b"\n", last.end, block.span.end)
    if at < 0:
        return None
    text = _break(tree, path, last).lstrip(b"\r\n") + _lines(tree, path, last, lines) + _newline(tree, path).encode()
    return Edit(path, Span(at + 1, at + 1), text)


def _lines(tree: Tree, path: str, like: Span, lines: tuple[str, ...]) -> bytes:
    return _break(tree, path, like).join(line.encode() for line in lines)


def _break(tree: Tree, path: str, like: Span) -> bytes:
    return f"{_newline(tree, path)}{tree.indent(path, like.start)}".encode()


def _newline(tree: Tree, path: str) -> str:
    return "\r\n" if tree.file(path).crlf else "\n"
