"""What the parts of the step etcd-ready share: how they name their sites, methods and lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from refactor_tool.codemods._k3s import package, site
from refactor_tool.gosrc import ast, layout
from refactor_tool.gosrc.tree import Occurrence, Tree
from refactor_tool.model import Edit, Finding, Span, Verdict

ID = "etcd-ready"


def finding(tree: Tree, path: str, span: Span, verdict: Verdict, message: str, shape: str, anchor: str = "") -> Finding:
    """Return a finding of this step at a place."""
    return site(tree, ID, path, span, verdict, message, channel="etcd", shape=shape, anchor=anchor)


def methods(tree: Tree, folder: str, type_name: str, name: str) -> tuple[tuple[str, ast.FuncDecl], ...]:
    """Return the declarations of one method of a type."""
    return tree.method(package(tree, folder), type_name, name)


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
