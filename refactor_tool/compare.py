"""Our series beside a real range of commits: what both changed alike, what only one changed, and what differs.

Pure. Units are declarations at file level, by the name Go gives them, so that moved code compares with itself; what is
left of a file (package clause, imports, comments between) is one unit more. Ours is meant to differ from any other
series in places: this shows where, it does not judge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Literal

from refactor_tool import edits
from refactor_tool.gosrc import ast
from refactor_tool.gosrc.tree import Tree
from refactor_tool.model import Snapshot, Span
from refactor_tool.record import record

Verdict = Literal["same", "ours only", "theirs only", "different"]
VERDICTS: tuple[Verdict, ...] = ("same", "different", "ours only", "theirs only")


@record
class Unit:
    """One declaration that at least one side changed; `similarity` is 0 to 1 between the two results."""

    path: str
    name: str
    verdict: Verdict
    similarity: float


@record
class Comparison:
    """Everything that differs from the base on either side, by path and name.

    `alike` counts changed lines (added and removed, by text and file) that both sides have; `ours` and `theirs` all of
    each side's.
    """

    units: tuple[Unit, ...]
    alike: int
    ours: int
    theirs: int

    @property
    def similarity(self) -> float:
        """Return the share of changed lines that both have, 0 to 1; 1 where nobody changed anything."""
        either = self.ours + self.theirs - self.alike
        return self.alike / either if either else 1.0

    def count(self, verdict: Verdict) -> int:
        return sum(unit.verdict == verdict for unit in self.units)


def compare(base: Tree, ours: Tree, theirs: Tree) -> Comparison:
    """Compare two results of one base."""
    units: list[Unit] = []
    paths = sorted(_changed(base.snapshot, ours.snapshot) | _changed(base.snapshot, theirs.snapshot))
    for path in paths:
        before, mine, other = (dict(_units(tree, path)) for tree in (base, ours, theirs))
        for name in sorted({*before, *mine, *other}):
            unit = _unit(path, name, before.get(name), mine.get(name), other.get(name))
            if unit is not None:
                units.append(unit)
    our_lines, their_lines = _lines(base.snapshot, ours.snapshot, paths), _lines(base.snapshot, theirs.snapshot, paths)
    return Comparison(tuple(units), (our_lines & their_lines).total(), our_lines.total(), their_lines.total())


def _changed(base: Snapshot, other: Snapshot) -> set[str]:
    return {
        path for path in {*base.files, *other.files} if path.endswith(".go") and _oid(base, path) != _oid(other, path)
    }


def _oid(snapshot: Snapshot, path: str) -> str | None:
    file = snapshot.files.get(path)
    return file.oid if file is not None else None


def _unit(path: str, name: str, before: bytes | None, mine: bytes | None, other: bytes | None) -> Unit | None:
    if mine == other:
        return Unit(path, name, "same", 1.0) if mine != before else None
    ratio = SequenceMatcher(None, (mine or b"").splitlines(), (other or b"").splitlines(), autojunk=False).ratio()
    if other == before:
        return Unit(path, name, "ours only", ratio)
    return Unit(path, name, "theirs only" if mine == before else "different", ratio)


def _units(tree: Tree, path: str) -> Iterator[tuple[str, bytes]]:
    """Yield each declaration's name and text, doc comment included; what is left of the file is called `(file)`."""
    if path not in tree.snapshot.files:
        return
    data = tree.data(path)
    left: list[bytes] = []
    at = 0
    seen: Counter[str] = Counter()
    for decl in tree.decls(path):
        span = Span(decl.doc.start if decl.doc is not None else decl.span.start, decl.span.end)
        name = _name(decl)
        seen[name] += 1
        yield (name if seen[name] == 1 else f"{name} #{seen[name]}"), data[span.start : span.end]
        left.append(data[at : span.start].strip())
        at = span.end
    left.append(data[at:].strip())
    yield "(file)", b"\n".join(part for part in left if part)


def _name(decl: ast.Decl) -> str:
    match decl:
        case ast.FuncDecl():
            return decl.title
        case ast.TypeDecl(name=name):
            return f"type {name}"
        case ast.VarDecl(keyword=keyword, specs=specs):
            names = [ident.name for spec in specs for ident in spec.names]
            return f"{keyword} {', '.join(names[:3])}"


def _lines(base: Snapshot, other: Snapshot, paths: list[str]) -> Counter[tuple[str, str, bytes]]:
    """Count the lines that a side added or removed, white space around them taken off, empty ones left out."""
    out: Counter[tuple[str, str, bytes]] = Counter()
    for path in paths:
        before, after = _data(base, path), _data(other, path)
        old, new = edits.split_lines(before), edits.split_lines(after)
        for change in edits.changes(before, after):
            out.update(
                (path, "-", line.strip()) for line in old[change.before_start : change.before_end] if line.strip()
            )
            out.update((path, "+", line.strip()) for line in new[change.after_start : change.after_end] if line.strip())
    return out


def _data(snapshot: Snapshot, path: str) -> bytes:
    file = snapshot.files.get(path)
    return file.data if file is not None else b""
