"""Our series beside a real range of commits: what both changed alike, what only one changed, and what differs.

Pure. Units are declarations at file level, by the name Go gives them; what is left of a file (package clause, imports,
comments between) is one unit more. A declaration that a side moves to another file is compared with itself. Ours is
meant to differ from any other series in places: this shows where, it does not judge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from typing import Literal, TypeAlias

from refactor_tool import edits
from refactor_tool.gosrc import ast
from refactor_tool.gosrc.tree import Tree
from refactor_tool.model import Snapshot, Span
from refactor_tool.record import record

Verdict = Literal["same", "different", "ours only", "theirs only"]
VERDICTS: tuple[Verdict, ...] = ("same", "different", "ours only", "theirs only")

#: A declaration by its file and name, and the text of each.
_Key: TypeAlias = tuple[str, str]
_Texts: TypeAlias = dict[_Key, bytes]
#: What is left of a file, as a unit.
REST = "(file)"


@record
class Unit:
    """One declaration that at least one side changed.

    `path` is its file in the base, or with `is_new` in the result that adds it. `ours` and `theirs` are the files in
    which the sides have it, "" where one has it not. `similarity` is 0 to 1 between the two texts.
    """

    path: str
    name: str
    verdict: Verdict
    similarity: float
    is_new: bool
    ours: str
    theirs: str


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
    paths = sorted(_changed(base.snapshot, ours.snapshot) | _changed(base.snapshot, theirs.snapshot))
    before, mine, other = (_texts(tree, paths) for tree in (base, ours, theirs))
    moved_by_us, moved_by_them = _moves(before, mine), _moves(before, other)
    units = []
    for key in before:
        at_ours, at_theirs = moved_by_us.get(key, key), moved_by_them.get(key, key)
        units.append(_unit(key, before[key], _Side(at_ours, mine.get(at_ours)), _Side(at_theirs, other.get(at_theirs))))
    new_ours = _without(mine, before, moved_by_us)
    new_theirs = _without(other, before, moved_by_them)
    moved = _moves(new_ours, new_theirs)
    for key in new_ours:
        at_theirs = moved.get(key, key)
        units.append(_unit(key, None, _Side(key, mine[key]), _Side(at_theirs, new_theirs.pop(at_theirs, None))))
    units += [_unit(key, None, _Side(key, None), _Side(key, text)) for key, text in new_theirs.items()]
    our_lines, their_lines = _lines(base.snapshot, ours.snapshot, paths), _lines(base.snapshot, theirs.snapshot, paths)
    return Comparison(
        tuple(sorted((unit for unit in units if unit is not None), key=lambda unit: (unit.path, unit.name))),
        (our_lines & their_lines).total(),
        our_lines.total(),
        their_lines.total(),
    )


def _changed(base: Snapshot, other: Snapshot) -> set[str]:
    paths = {*base.files, *other.files}
    return {path for path in paths if path.endswith(".go") and _oid(base, path) != _oid(other, path)}


def _oid(snapshot: Snapshot, path: str) -> str | None:
    file = snapshot.files.get(path)
    return file.oid if file is not None else None


# --- one declaration ----------------------------------------------------------------------------------


@record
class _Side:
    """Where a side has a declaration, and its text; None where it has it not."""

    key: _Key
    text: bytes | None

    @property
    def place(self) -> str:
        return self.key[0] if self.text is not None else ""


def _unit(key: _Key, before: bytes | None, mine: _Side, other: _Side) -> Unit | None:
    """Return what became of a declaration; None where neither side changed it. To move it is to change it."""
    base = _Side(key, before)
    changed_by_us, changed_by_them = mine != base, other != base
    if not (changed_by_us or changed_by_them):
        return None
    verdict: Verdict
    if mine == other:
        verdict = "same"
    elif changed_by_us and changed_by_them:
        verdict = "different"
    else:
        verdict = "ours only" if changed_by_us else "theirs only"
    similarity = _similarity(mine.text or b"", other.text or b"")
    return Unit(*key, verdict, similarity, before is None, mine.place, other.place)


def _similarity(one: bytes, two: bytes) -> float:
    if one == two:
        return 1.0
    return SequenceMatcher(None, edits.split_lines(one), edits.split_lines(two), autojunk=False).ratio()


# --- where things went --------------------------------------------------------------------------------


def _moves(before: Mapping[_Key, bytes], after: Mapping[_Key, bytes]) -> dict[_Key, _Key]:
    """Return where each declaration went that is in another file now: to the only new one of its name.

    That is one in its folder, else one elsewhere whose text is much the same. The rest of a file goes where most of its
    declarations went.
    """
    new: dict[str, list[_Key]] = {}
    for key in after:
        if key not in before and key[1] != REST:
            new.setdefault(key[1], []).append(key)
    moves: dict[_Key, _Key] = {}
    for key in before:
        if key in after or key[1] not in new:
            continue
        others = [other for other in new[key[1]] if other not in moves.values()]
        beside = [other for other in others if _folder(other) == _folder(key)]
        found = beside or [other for other in others if _similarity(before[key], after[other]) > _MUCH]
        if len(found) == 1:
            moves[key] = found[0]
    for path in {path for path, name in before if name == REST and (path, REST) not in after}:
        went = Counter(moves[key][0] for key in moves if key[0] == path)
        target = next(((other, REST) for other, _ in went.most_common(1)), None)
        if target is not None and target in after and target not in before and target not in moves.values():
            moves[path, REST] = target
    return moves


#: How much of a declaration must be the same to take it for one of another package that moved here.
_MUCH = 0.5


def _folder(key: _Key) -> str:
    return key[0].rpartition("/")[0]


def _without(after: _Texts, before: _Texts, moves: Mapping[_Key, _Key]) -> _Texts:
    """Return what is there after that is nothing of before."""
    known = {*before, *moves.values()}
    return {key: text for key, text in after.items() if key not in known}


# --- what there is ------------------------------------------------------------------------------------


def _texts(tree: Tree, paths: Iterable[str]) -> _Texts:
    return {(path, name): text for path in paths for name, text in _units(tree, path)}


def _units(tree: Tree, path: str) -> Iterator[tuple[str, bytes]]:
    """Yield each declaration's name and text, doc comment included, and what is left of the file."""
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
    yield REST, b"\n".join(part for part in left if part)


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
            gone, come = old[change.before_start : change.before_end], new[change.after_start : change.after_end]
            out.update((path, "-", line.strip()) for line in gone if line.strip())
            out.update((path, "+", line.strip()) for line in come if line.strip())
    return out


def _data(snapshot: Snapshot, path: str) -> bytes:
    file = snapshot.files.get(path)
    return file.data if file is not None else b""
