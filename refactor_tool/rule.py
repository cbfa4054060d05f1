"""The contract of a hazard rule, and the doors to run a set of them and to read about them.

A rule reports what has gone wrong in real start-up code; it is not part of the campaign. It is a frozen value that
carries its own examples, from which its tests and `docs/rules.md` are made:

    RULE = Rule(
        id="L22",
        name="nil-on-cancel-field",
        severity="error",
        summary="A goroutine sets a field to nil once the context has ended, while others may still use it.",
        why="...",
        cases=(31,),
        fix="delete the assignment",
        bad=(Example("...", '''package ...'''),),
        good=(Example("...", '''package ...'''),),
        find=find,
    )

`find` looks at one tree, `compare` at what a change did to one; a rule has one of them. The runner gives every finding
the severity of its rule where the finding has none of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeAlias

from refactor_tool.gosrc.tree import Tree
from refactor_tool.model import CodemodError, Finding, Leave, Severity, ToolError
from refactor_tool.record import record, replace

Find: TypeAlias = Callable[[Tree], Iterable[Finding]]
#: Called with the tree before a change and the tree after it; findings are places in the latter.
Compare: TypeAlias = Callable[[Tree, Tree], Iterable[Finding]]

#: Ends the lines of an example on which a finding of its rule must begin.
MARK = " // hazard"

_ID = re.compile(r"[LD]\d{1,2}\Z")
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)+\Z")


@record
class Example:
    """One file on which a rule is shown, and what is wrong or right about it, in a few words.

    Lines that end in `MARK` are where findings begin; no other line has one. `fixed` is the file after the rule's own
    fix, "" where it has none for it. For a rule that compares, `before` is the file before the change. `others` are
    more files of the tree, as (path, text).
    """

    title: str
    go: str
    fixed: str = ""
    before: str = ""
    path: str = "pkg/daemons/control/server.go"
    others: tuple[tuple[str, str], ...] = ()


@record
class Rule:
    """One hazard. `cases` are numbers of defects in the corpus; `fix` says what the tool's own fix does, "" for none.

    `severity` is the gravest that its findings have.
    """

    id: str
    name: str
    severity: Severity
    summary: str
    why: str
    cases: tuple[int, ...]
    bad: tuple[Example, ...]
    good: tuple[Example, ...]
    fix: str = ""
    find: Find | None = None
    compare: Compare | None = None


def hazards(tree: Tree, rules: Sequence[Rule]) -> tuple[Finding, ...]:
    """Return what the rules find in a tree, sorted by path, place and rule. Rules that compare trees are passed over.

    Raises `Unparsable` for a file with a hazard's words in it that is not Go.
    """
    label = tree.snapshot.label
    runs = [(rule, partial(rule.find, tree)) for rule in rules if rule.find is not None]
    return _sorted(finding for rule, run in runs for finding in _ran(rule, label, run))


def new_hazards(before: Tree, after: Tree, rules: Sequence[Rule]) -> tuple[Finding, ...]:
    """Return what the rules that compare trees say about a change; places are those of `after`. Raises as `hazards`."""
    label = after.snapshot.label
    runs = [(rule, partial(rule.compare, before, after)) for rule in rules if rule.compare is not None]
    return _sorted(finding for rule, run in runs for finding in _ran(rule, label, run))


def check_rules(rules: Sequence[Rule]) -> None:
    """Raise `CodemodError` for an author's mistake, before any source is read."""
    ids = [rule.id for rule in rules]
    names = [rule.name for rule in rules]
    for rule in rules:
        if not _ID.match(rule.id):
            raise CodemodError(f"rule id {rule.id!r} is not L or D and a number")
        if not _NAME.match(rule.name):
            raise CodemodError(f"{rule.id}: the name {rule.name!r} is not lower-case words joined by '-'")
        if ids.count(rule.id) > 1 or names.count(rule.name) > 1:
            raise CodemodError(f"{rule.id} {rule.name} is there twice")
        if (rule.find is None) == (rule.compare is None):
            raise CodemodError(f"{rule.id} must have one of find and compare")
        if not rule.summary.endswith(".") or "\n" in rule.summary:
            raise CodemodError(f"{rule.id}: the summary must be one sentence on one line")
        _check_examples(rule)


def _check_examples(rule: Rule) -> None:
    if not rule.bad or not rule.good:
        raise CodemodError(f"{rule.id} needs a bad and a good example")
    if not all(MARK in example.go for example in rule.bad):
        raise CodemodError(f"{rule.id}: a bad example marks no line with {MARK.strip()!r}")
    if any(MARK in example.go for example in rule.good):
        raise CodemodError(f"{rule.id}: a good example marks a hazard")
    if bool(rule.fix) != any(example.fixed for example in rule.bad):
        raise CodemodError(f"{rule.id}: a fix and an example of it go together")
    if any(bool(example.before) == (rule.compare is None) for example in (*rule.bad, *rule.good)):
        raise CodemodError(f"{rule.id}: examples of rules that compare, and no others, say what was before")


def _ran(rule: Rule, label: str, run: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """Run one rule; a bug in it is noted with the rule's id."""
    try:
        return [_settled(rule, finding) for finding in run()]
    except ToolError:
        raise
    except Exception as error:
        error.add_note(f"rule {rule.id} on {label}")
        raise


def _settled(rule: Rule, finding: Finding) -> Finding:
    if finding.id != rule.id or finding.kind != "rule" or isinstance(finding.verdict, Leave):
        raise CodemodError(f"rule {rule.id} gave out {finding}")
    return finding if finding.severity is not None else replace(finding, severity=rule.severity)


def _sorted(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(dict.fromkeys(findings), key=lambda found: found.order))


# --- for people -------------------------------------------------------------------------------------


def catalogue(rules: Sequence[Rule]) -> str:
    """Return all rules as the Markdown page `docs/rules.md`."""
    rows = "".join(
        f"| [{rule.id}](#{_anchor(rule)}) | {rule.name} | {rule.severity} | {'yes' if rule.fix else 'no'} "
        f"| {', '.join(map(str, rule.cases))} |\n"
        for rule in rules
    )
    return (
        "# Hazard rules\n\n"
        "What start-up readiness defects of k3s and RKE2 have in common, as checks. Case numbers are those of the\n"
        "corpus. Rules that begin with D look at what a change does, all others at one tree. This page is made from\n"
        "the rules themselves (`refactor_tool/rules/`); their examples are their tests.\n\n"
        "| rule | name | severity | fix | cases |\n| --- | --- | --- | --- | --- |\n"
        + rows
        + "".join("\n" + describe(rule) for rule in rules)
    )


def describe(rule: Rule) -> str:
    """Return one rule as Markdown: what it finds, why that is a hazard, and its examples."""
    parts = [f"## {rule.id} {rule.name}", f"{rule.severity.capitalize()}. {rule.summary}", rule.why.strip()]
    if rule.fix:
        parts.append(f"The tool's own fix: {rule.fix}.")
    for word, examples in (("Bad", rule.bad), ("Good", rule.good)):
        for example in examples:
            parts.append(f"{word}: {example.title}")
            parts += [f"before\n\n{_code(example.before)}\n\nafter"] if example.before else []
            parts.append(_code(example.go))
            parts += [f"fixed\n\n{_code(example.fixed)}"] if example.fixed else []
    return "\n\n".join(parts) + "\n"


def _code(go: str) -> str:
    return f"```go\n{go.strip()}\n```"


def _anchor(rule: Rule) -> str:
    return f"{rule.id} {rule.name}".lower().replace(" ", "-")
