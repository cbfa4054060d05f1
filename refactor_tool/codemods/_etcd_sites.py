"""What the parts of the step etcd-ready share: how they name their sites, methods and lines."""

from __future__ import annotations

from collections.abc import Sequence

from refactor_tool.codemods._k3s import package, site
from refactor_tool.gosrc import ast, layout
from refactor_tool.gosrc.tree import Tree
from refactor_tool.model import Edit, Finding, Span, Verdict

ID = "etcd-ready"


def finding(tree: Tree, path: str, span: Span, verdict: Verdict, message: str, shape: str, anchor: str = "") -> Finding:
    """Return a finding of this step at a place."""
    return site(tree, ID, path, span, verdict, message, channel="etcd", shape=shape, anchor=anchor)


def methods(tree: Tree, folder: str, type_name: str, name: str) -> tuple[tuple[str, ast.FuncDecl], ...]:
    """Return the declarations of one method of a type."""
    return tree.method(package(tree, folder), type_name, name)


def receiver_of(decl: ast.FuncDecl) -> str:
    """Return the name of a method's receiver, "" where it has none that can be used."""
    names = decl.receiver.names if decl.receiver is not None else ()
    return names[0].name if names and names[0].name != "_" else ""


def parameter_of(decl: ast.FuncDecl) -> str:
    """Return the name of a function's only parameter, "" where it has more or one that cannot be used."""
    names = [ident.name for param in decl.params for ident in param.names]
    return names[0] if len(decl.params) == len(names) == 1 and names != ["_"] else ""


def body_of(decl: ast.FuncDecl) -> tuple[ast.Stmt, ...]:
    """Return the statements of a function that has its body."""
    return decl.body.stmts if decl.body is not None else ()


def text_of(tree: Tree, path: str, expr: ast.Expr) -> str:
    return tree.text(path, expr.span)


def appended(path: str, items: Sequence[Span], inside: Span, text: str) -> Edit:
    """Return the edit that adds a last argument or parameter."""
    return layout.append_item(path, items, inside, text.encode())


def line_after(tree: Tree, path: str, span: Span, text: str) -> Edit:
    """Return the edit that puts a line of the same indentation below the line on which `span` ends."""
    at = layout.insert_after_line(tree, path, span.end - 1)
    return Edit(path, at, f"{tree.indent(path, span.start)}{text}{newline(tree, path)}".encode())


def newline(tree: Tree, path: str) -> str:
    return "\r\n" if tree.file(path).crlf else "\n"


def top_of(tree: Tree, path: str, decl: ast.Decl) -> int:
    """Return where a declaration begins, its doc comment included."""
    return decl.doc.start if decl.doc is not None else decl.span.start


def is_nil(expr: ast.Expr) -> bool:
    return isinstance(expr, ast.Ident) and expr.name == "nil"
