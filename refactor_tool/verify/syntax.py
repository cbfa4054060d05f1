"""Level *syntax*: what needs no toolchain. The engine's proof of every stage, and no new hazard that is an error.

Hazards are compared over all stages, since a step may rely on what a later one completes; one that stays is told
where it came in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from refactor_tool.gosrc.parse import ParseCache, faults
from refactor_tool.gosrc.proof import prove
from refactor_tool.gosrc.tree import Tree
from refactor_tool.model import Finding, Span
from refactor_tool.record import replace
from refactor_tool.rule import Rule, hazards, new_hazards
from refactor_tool.verified import Checked, Fault, Gap, Stage
from refactor_tool.verify.origin import trace
from refactor_tool.verify.stages import unread

#: A larger file is not read, here as by the type checker; the largest of k3s has 150 kB.
LARGEST = 4 << 20


def check(stages: Sequence[Stage], rules: Sequence[Rule], cache: ParseCache) -> tuple[Checked, ...]:
    """Return what can be said of each stage without Go; raises `Unparsable` where a rule cannot read the first tree."""
    trees = _trees(stages, cache)
    proofs = [_proof(stage, *pair) for stage, pair in zip(stages, trees, strict=True)]
    sound = not any(proof.faults or proof.gaps for proof in proofs)
    added = _hazards(trees, rules) if sound and stages[0].before is not None else [()] * len(stages)
    out = []
    for stage, proof, found, (_, after) in zip(stages, proofs, added, trees, strict=True):
        told = [*proof.faults, *(_hazard(after, finding) for finding in found)]
        out.append(replace(proof, faults=tuple(replace(fault, origin=trace(stage, fault)) for fault in told)))
    return tuple(out)


def _trees(stages: Sequence[Stage], cache: ParseCache) -> list[tuple[Tree | None, Tree]]:
    """Return the facts before and after each stage; what a stage does not change is not worked out again."""
    out: list[tuple[Tree | None, Tree]] = []
    before = Tree(stages[0].before, cache) if stages[0].before is not None else None
    for stage in stages:
        after = before.after(stage.changes) if before is not None else Tree(stage.after, cache)
        out.append((before, after))
        before = after
    return out


def _proof(stage: Stage, before: Tree | None, after: Tree) -> Checked:
    changed = [change.path for change in stage.changes] if before is not None else list(after.snapshot.go_paths())
    large = [path for path in changed if _size(after, path) > LARGEST]
    gaps = (*unread(stage), *(Gap(path, f"a file of {_size(after, path)} bytes") for path in large))
    if before is not None:
        flaws = prove(before, after, [change for change in stage.changes if change.path not in large])
        told = [_fault(after, flaw.path, flaw.span, flaw.message, "syntax") for flaw in flaws]
    else:
        told = [
            _fault(after, path, fault.span, f"does not parse: {fault.message}", "syntax")
            for path in changed
            if path not in large
            for file in [after.snapshot.files[path]]
            for fault in faults(after.cache.parse(file.data))
        ]
    return Checked("syntax", (), tuple(told), gaps, f"{len(changed)} files")


def _size(tree: Tree, path: str) -> int:
    file = tree.snapshot.files.get(path)
    return len(file.data) if file is not None else 0


def _hazards(trees: Sequence[tuple[Tree | None, Tree]], rules: Sequence[Rule]) -> list[tuple[Finding, ...]]:
    first, last = trees[0][0], trees[-1][1]
    assert first is not None
    left = _new(first, last, rules)
    if not left:
        return [()] * len(trees)
    out: list[tuple[Finding, ...]] = []
    for at, (before, after) in enumerate(trees):
        assert before is not None
        is_last, sought = at == len(trees) - 1, set(map(_key, left))
        mine = left if is_last else [one for one in _new(before, after, rules) if _key(one) in sought]
        out.append(tuple(mine))
        gone = Counter(map(_key, mine))
        left = [one for one in left if not _take(gone, _key(one))]
    return out


def _new(before: Tree, after: Tree, rules: Sequence[Rule]) -> list[Finding]:
    """Return the errors among the hazards that `after` has more of than `before`, and those of the change itself."""
    known = Counter(map(_key, _errors(hazards(before, rules))))
    found = [one for one in _errors(hazards(after, rules)) if not _take(known, _key(one))]
    return [*found, *_errors(new_hazards(before, after, rules))]


def _take(counts: Counter[tuple[str, ...]], key: tuple[str, ...]) -> bool:
    counts[key] -= 1
    return counts[key] >= 0


def _key(finding: Finding) -> tuple[str, ...]:
    """Return what stays of a hazard when lines move or its file is renamed."""
    return finding.id, finding.function, finding.shape


def _errors(findings: Iterable[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.severity == "error"]


def _hazard(tree: Tree, finding: Finding) -> Fault:
    return _fault(tree, finding.path, finding.span, finding.message, finding.id, finding.function)


def _fault(tree: Tree, path: str, span: Span | None, message: str, code: str, function: str = "") -> Fault:
    if span is None or path not in tree.snapshot.files:
        return Fault(path, None, None, message, code, function)
    place = tree.lines(path).position(span.start)
    return Fault(path, place.line, place.column, message, code, function)
