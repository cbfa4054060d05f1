"""Run one rule on a small Go file whose lines say where it must find something."""

from __future__ import annotations

import re

from refactor_tool import edits
from refactor_tool.gosrc.layout import settle_imports
from refactor_tool.gosrc.proof import prove
from refactor_tool.gosrc.tree import Tree
from refactor_tool.model import Edit, File, FileChange, Finding, NeedImport, Rewrite
from refactor_tool.record import replace
from refactor_tool.rule import MARK, Rule, hazards, new_hazards
from refactor_tool.rules import RULES
from tests import gotree

BY_ID = {rule.id: rule for rule in RULES}
#: What a body may use without saying so: the package's local name and its path.
PACKAGES = {
    "cache": "k8s.io/client-go/tools/cache",
    "context": "context",
    "cri": "example.com/k/pkg/agent/cri",
    "errors": "errors",
    "executor": "example.com/k/pkg/daemons/executor",
    "klog": "k8s.io/klog/v2",
    "logrus": "github.com/sirupsen/logrus",
    "oci": "github.com/spegel-org/spegel/pkg/oci",
    "os": "os",
    "runtime": "runtime",
    "signals": "example.com/m/pkg/signals",
    "sync": "sync",
    "time": "time",
    "util": "example.com/k/pkg/util",
    "wait": "k8s.io/apimachinery/pkg/util/wait",
}
PATH = "pkg/x/x.go"


def go(body: str) -> str:
    """Return a Go file with a body and the imports it uses; a text that begins with `package` is one already."""
    if body.startswith("package "):
        return body
    used = sorted(path for name, path in PACKAGES.items() if re.search(rf"\b{name}\.", body))
    imports = "".join(f'\t"{path}"\n' for path in used)
    return f"package x\n\n{f'import ({chr(10)}{imports}){chr(10)}{chr(10)}' if used else ''}{body.strip()}\n"


def tree(body: str, others: dict[str, str] | None = None, path: str = PATH) -> Tree:
    files = {"go.mod": f"module {gotree.MODULE}\n\ngo 1.23\n", path: go(body).replace(MARK, "")}
    return gotree.of({**files, **(others or {})})


def marked(body: str) -> list[int]:
    return [at for at, line in enumerate(go(body).split("\n"), 1) if line.endswith(MARK)]


def lines(tree: Tree, findings: tuple[Finding, ...]) -> list[int]:
    return [tree.lines(found.path).position(found.span.start).line for found in findings]


def found(rule: Rule, tree: Tree, before: Tree | None = None) -> tuple[Finding, ...]:
    return hazards(tree, [rule]) if before is None else new_hazards(before, tree, [rule])


def fixed(tree: Tree, findings: tuple[Finding, ...], path: str) -> Tree:
    """Return the tree after the fixes of the findings, which must be bytes and imports of one file, and sound."""
    changes = [change for one in findings if isinstance(one.verdict, Rewrite) for change in one.verdict.changes]
    spans = [
        (change.span, change.text) for change in changes if isinstance(change, Edit) and isinstance(change.text, bytes)
    ]
    needs = {(change.package, change.name) for change in changes if isinstance(change, NeedImport)}
    assert len(spans) + len([change for change in changes if isinstance(change, NeedImport)]) == len(changes)
    assert {change.path for change in changes if isinstance(change, Edit | NeedImport)} <= {path}
    data = tree.data(path)
    text = settle_imports(tree.cache, data, edits.apply(data, spans), needs)
    after = Tree(replace(tree.snapshot, files={**tree.snapshot.files, path: File(text)}))
    change = FileChange(path, tree.snapshot.files[path], after.snapshot.files[path])
    assert prove(tree, after, [change]) == ()
    return after
