"""Say which file of our tests is not written, because the tree has something else in its place or by its names."""

from __future__ import annotations

from collections.abc import Sequence

from refactor_tool.codemods._k3s import package
from refactor_tool.gosrc.tree import Tree
from refactor_tool.model import Leave, Span
from refactor_tool.record import record


@record
class InTheWay:
    """What has the place of a file of tests, and what is said there."""

    path: str
    span: Span
    verdict: Leave


def in_the_way(tree: Tree, folder: str, files: Sequence[str], names: Sequence[str] = ()) -> InTheWay | None:
    """Return what keeps tests out of a folder: the first of `names` that is declared, or all `files` that are there."""
    owner = package(tree, folder)
    for name in names:
        spans = [(path, decl.name_span) for path, decl in tree.functions(owner, name)]
        spans += [(path, decl.name_span) for path, decl in tree.types(owner, name)]
        spans += [(path, spec.span) for path, _, spec in tree.variables(owner, name)]
        for path, span in spans:
            return InTheWay(path, span, Leave(f"{name} is declared here, so the tests that have one are left out"))
    if not files or any(path not in tree.snapshot.files for path in files):
        return None
    end = tree.data(files[0]).find(b"\n")
    reason = f"{files[0]} is there already, so the tests that would be in it are left out"
    return InTheWay(files[0], Span(0, max(end, 0)), Leave(reason))
