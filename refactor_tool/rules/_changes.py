"""What a change did, file by file and function by function."""

from __future__ import annotations

from collections.abc import Iterator

from refactor_tool.gosrc import ast
from refactor_tool.gosrc.tree import Tree
from refactor_tool.record import record
from refactor_tool.rules._code import is_test


@record
class Changed:
    """A function on both sides of a change that altered it, with its body: the file of each, and each declaration."""

    old_path: str
    old: ast.FuncDecl
    new_path: str
    new: ast.FuncDecl


def changed_paths(before: Tree, after: Tree) -> tuple[set[str], set[str]]:
    """Return the Go files that a change removed or altered, and those it altered or added; tests left out."""
    old, new = before.snapshot.files, after.snapshot.files
    gone = {path for path in before.snapshot.go_paths() if path not in new or new[path].oid != old[path].oid}
    come = {path for path in after.snapshot.go_paths() if path not in old or old[path].oid != new[path].oid}
    return {path for path in gone if not is_test(path)}, {path for path in come if not is_test(path)}


def changed_functions(before: Tree, after: Tree, word: bytes) -> Iterator[Changed]:
    """Yield the functions that a change altered and that held a word before, also where they moved to another file."""
    gone, come = changed_paths(before, after)
    old: dict[tuple[str, str, str], list[tuple[str, ast.FuncDecl]]] = {}
    for path in sorted(gone):
        for decl in _functions(before, path) if word in before.data(path) else ():
            if word.decode() in before.text(path, decl.span):
                old.setdefault(function_key(path, decl), []).append((path, decl))
    for path in sorted(come) if old else ():
        for decl in _functions(after, path):
            known = old.get(function_key(path, decl), [])
            same_file = [item for item in known if item[0] == path]
            for was_in, was in same_file or known[: len(known) == 1]:
                if before.text(was_in, was.span) != after.text(path, decl.span):
                    yield Changed(was_in, before.function(was_in, was), path, after.function(path, decl))


def _functions(tree: Tree, path: str) -> Iterator[ast.FuncDecl]:
    return (decl for decl in tree.decls(path) if isinstance(decl, ast.FuncDecl) and decl.body_span is not None)


def function_key(path: str, decl: ast.FuncDecl) -> tuple[str, str, str]:
    """Return what names a function on both sides of a change: folder, receiver type and name."""
    return path.rpartition("/")[0], decl.receiver_type, decl.name
