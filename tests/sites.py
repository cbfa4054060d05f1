"""What the tests of single codemods share: a case with one thing changed, what is said of a function, and real sites."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from pathlib import Path

from refactor_tool.codemod import Codemod
from refactor_tool.engine import find
from refactor_tool.gosrc.tree import Tree
from refactor_tool.model import Finding
from refactor_tool.world.tree import read_ref
from tests import gotree, txtar

ROOT = Path(__file__).parent.parent / "fixtures" / "cases"

BEFORE = ("before/issue", "before/issue-parent", "before/pr-base")
OLDER = ("older/v1.30", "older/v1.26")
AFTER = ("after/etcd", "later/2025-06", "later/2025-11", "later/2026-04")


def mutated(codemod: Codemod, case: str, path: str, old: str, new: str) -> Tree:
    """Return the tree of a case in which `old`, which must be there once, is `new`."""
    _, files = txtar.parse((ROOT / codemod.id / f"{case}.txt").read_text(encoding="utf-8"))
    inputs = {name: text for name, text in files.items() if not name.startswith("want")}
    assert inputs[path].count(old) == 1, f"{inputs[path].count(old)} times in {path}: {old!r}"
    return gotree.of(inputs | {path: inputs[path].replace(old, new)})


def verdicts(codemod: Codemod, tree: Tree, path: str, function: str) -> list[str]:
    """Return what is said of a function: verdict and shape, in order."""
    return [
        f"{type(found.verdict).__name__.lower()} {found.shape}"
        for found in find(tree, codemod)
        if (found.path, found.function) == (path, function)
    ]


def real(corpus: Path, ref: str) -> Tree:
    """Return the tree of a branch of the corpus."""
    return Tree(read_ref(corpus / "k3s.git", ref))


def missing_anchors(codemod: Codemod, findings: Iterable[Finding]) -> set[str]:
    """Return the anchors that must be there and are not."""
    return {anchor.name for anchor in codemod.anchors if not anchor.optional} - {found.anchor for found in findings}


def uncovered(
    corpus: Path, ref: str, tree: Tree, findings: Iterable[Finding], channels: Collection[str]
) -> list[tuple[str, int]]:
    """Return the lines of the corpus' core sites of some channels that lie in no finding."""
    covered = {
        (found.path, line)
        for found in findings
        for line in range(
            tree.lines(found.path).position(found.span.start).line,
            tree.lines(found.path).position(max(found.span.start, found.span.end - 1)).line + 1,
        )
    }
    rows = [json.loads(line) for line in (corpus / "sites.jsonl").read_text(encoding="utf-8").splitlines()]
    wanted = {
        (row["file"], row["line"])
        for row in rows
        if (row["ref"], row["set"]) == (ref, "core") and row["channel"] in channels
    }
    assert wanted, f"the corpus has no core sites of {sorted(channels)} at {ref}"
    return sorted(wanted - covered)
