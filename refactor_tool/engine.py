"""Find, decide, render, merge, prove, next step. Pure: the same snapshot gives the same plan, byte for byte.

`scan` says where every site is and what would become of it; `plan` makes the series and proves every step of it before
anyone can write a byte.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import assert_never

from refactor_tool import edits
from refactor_tool.audit import audit
from refactor_tool.codemod import Codemod, Renderer
from refactor_tool.eras import must_have, recognise
from refactor_tool.gosrc import depth
from refactor_tool.gosrc.layout import settle_imports
from refactor_tool.gosrc.parse import ParseCache
from refactor_tool.gosrc.proof import Flaw, prove
from refactor_tool.gosrc.tree import Tree, tree_of
from refactor_tool.model import (
    NEEDLES,
    Conflict,
    Edit,
    ExitCode,
    File,
    FileChange,
    Finding,
    Leave,
    Manual,
    NeedImport,
    NewFile,
    NothingScanned,
    Plan,
    Problem,
    Rewrite,
    Snapshot,
    Span,
    Step,
    ToolError,
    Unparsable,
)
from refactor_tool.record import record, replace

#: What tells k3s source that the campaign is about from other Go source: folder, name, and what to do without it.
_LANDMARKS = (
    ("pkg/daemons/executor", "Executor", "this is not k3s; name the root of a checkout of k3s or of a fork of it"),
    (
        "pkg/util",
        "WaitForAPIServerReady",
        "k3s of a time before the wait that the campaign replaces (2021) has none; a fork may have renamed it",
    ),
)

#: Called with what is being done, how far it is, and of how much.
Progress = Callable[[str, int, int], None]
#: Bytes of source that single rewrites are worked out in.
_FIX_BUDGET = 1 << 25


@record
class Ran:
    """One codemod on one tree: what it found, what came of it, and what stands in the way."""

    findings: tuple[Finding, ...]
    changes: tuple[FileChange, ...]
    problems: tuple[Problem, ...]


def scan(
    snapshot: Snapshot,
    suite: Sequence[Codemod],
    *,
    progress: Progress | None = None,
    cache: ParseCache | None = None,
) -> Plan:
    """Return every finding of every codemod and of the audit on the snapshot as it is; no steps, nothing rendered.

    With a `cache` blobs that an earlier snapshot had too are not parsed again; it never decides a verdict.

    Raises `NothingScanned` where there is no k3s source, and `Unparsable` for a target file that is not Go.
    """
    tree = _tree(snapshot, cache)
    era = recognise(tree).label
    findings, problems = _survey(tree, suite, era, progress or _silent)
    return Plan(
        base=snapshot,
        findings=findings,
        steps=(),
        final=snapshot,
        problems=problems,
        done=_done(findings, suite),
        era=era,
    )


def plan(
    snapshot: Snapshot,
    suite: Sequence[Codemod],
    sources: Mapping[str, str],
    *,
    skip: Iterable[str] = (),
    keep_going: bool = False,
    progress: Progress | None = None,
    cache: ParseCache | None = None,
) -> Plan:
    """Return the series that moves the snapshot to the end of the campaign, each step proved.

    `sources` are template texts by name. Codemods in `skip` are not run, nor those that require one of them. A plan
    with problems has no steps unless `keep_going`; then it has those that are sound, and `pending` names the others.

    Raises as `scan` does.
    """
    report = progress or _silent
    tree = _tree(snapshot, cache)
    era = recognise(tree).label
    findings, found_problems = _survey(tree, suite, era, report)
    renderer = Renderer(sources)
    steps: list[Step] = []
    problems = list(found_problems)
    pending: dict[str, str] = dict.fromkeys(skip, "left out with --skip or --only")
    for at, codemod in enumerate(suite):
        report(codemod.id, at, len(suite))
        lacking = next((name for name in codemod.requires if name in pending), None)
        if lacking is not None:
            pending.setdefault(codemod.id, f"needs {lacking}, which is not in the series")
        if codemod.id in pending:
            continue
        mine = find(tree, codemod) if steps else tuple(item for item in findings if item.id == codemod.id)
        ran, after = _run(tree, codemod, mine, renderer, era)
        if ran.problems:
            problems.extend(ran.problems)
            pending[codemod.id] = ran.problems[0].message
            continue
        if ran.changes:
            steps.append(Step(codemod.id, codemod.title, codemod.body, ran.findings, ran.changes))
            tree = after
            if cache is None:  # nobody else asks for what was parsed, and of earlier trees nothing is needed
                tree.cache.keep(tree.snapshot)
    report("proof", len(suite), len(suite))
    if steps:
        problems.extend(_second_plan(tree, suite, pending, snapshot))
    final = tree.snapshot
    if problems and not keep_going:
        steps, final = [], snapshot
    return Plan(
        base=snapshot,
        findings=findings,
        steps=tuple(steps),
        final=final,
        problems=tuple(dict.fromkeys(problems)),
        done=_done(findings, suite),
        pending=tuple(pending.items()),
        era=era,
    )


def fixes(
    found: Plan, suite: Sequence[Codemod], sources: Mapping[str, str], cache: ParseCache
) -> tuple[tuple[Finding, tuple[FileChange, ...]], ...]:
    """Return what each rewrite of a scan would change in its tree by itself, imports settled.

    One site of a codemod alone need not compile without the rest of its step, or the steps before it. A rewrite that
    cannot be made alone has no entry; nor have those beyond what can be worked out in a few seconds.
    """
    tree = tree_of(found.base, cache)
    renderer = Renderer(sources)
    by_id = {codemod.id: codemod for codemod in suite}
    out = []
    spent = 0
    for finding in found.findings:
        if isinstance(finding.verdict, Rewrite):
            spent += len(found.base.files[finding.path].data)
            if spent > _FIX_BUDGET:
                break
            with suppress(ToolError):
                out.append((finding, _apply(tree, by_id.get(finding.id), [finding], renderer)))
    return tuple(out)


def run_codemod(tree: Tree, codemod: Codemod, sources: Mapping[str, str]) -> Ran:
    """Run one codemod alone on a tree, with the proof that a second run has nothing to do."""
    ran, after = _run(tree, codemod, find(tree, codemod), Renderer(sources))
    again = _again(after, codemod) if ran.changes else []
    return Ran(ran.findings, (), tuple(again)) if again else ran


def _run(
    tree: Tree, codemod: Codemod, findings: tuple[Finding, ...], renderer: Renderer, era: str = ""
) -> tuple[Ran, Tree]:
    """Make what the findings ask for: the changes and the tree after them if they are sound, else the problems."""
    problems = [*_anchor_problems(tree, codemod, findings, era), *_manual_problems(tree, findings)]
    if problems:
        return Ran(findings, (), tuple(problems)), tree
    try:
        changes = _apply(tree, codemod, findings, renderer)
    except ToolError as error:
        return Ran(findings, (), (Problem(error.code, error.message, step=codemod.id),)), tree
    after = tree.after(changes)
    flaws = [_flaw(after, flaw, codemod) for flaw in prove(tree, after, changes)]
    return (Ran(findings, (), tuple(flaws)), tree) if flaws else (Ran(findings, changes, ()), after)


def _flaw(after: Tree, flaw: Flaw, codemod: Codemod) -> Problem:
    """Return what a change made worse as a mistake of ours, unless the source was not fit to take it."""
    code, message = ExitCode.INTERNAL, f"the result is not sound: {flaw.message}"
    if flaw.is_inherited:
        code, message = ExitCode.FINDINGS, f"run gofmt -w {flaw.path}, and plan again; {flaw.message}"
    return _problem(after, code, message, flaw.path, flaw.span, codemod.id)


def find(tree: Tree, codemod: Codemod) -> tuple[Finding, ...]:
    """Return a codemod's findings, sorted by path and place; a bug in it is noted with the codemod's id."""
    try:
        return tuple(sorted(dict.fromkeys(codemod.find(tree)), key=lambda found: found.order))
    except ToolError:
        raise
    except Exception as error:
        error.add_note(f"codemod {codemod.id} on {tree.snapshot.label}")
        raise


def _silent(_what: str, _at: int, _of: int) -> None:
    """Report no progress."""


# --- what is there ----------------------------------------------------------------------------------


def _tree(snapshot: Snapshot, cache: ParseCache | None) -> Tree:
    """Return the facts of a snapshot that is k3s source, by what is in it."""
    if not any(True for _ in snapshot.go_paths()):
        raise NothingScanned("no Go file to scan", "name a k3s checkout, or a ref with --ref")
    tree = tree_of(snapshot, cache) if cache is not None else Tree(snapshot)
    where = "" if snapshot.label == "." else f"{snapshot.label}: "
    if not tree.module:
        raise NothingScanned(f"{where}no go.mod with a module line", "name the root of a k3s checkout")
    for folder, name, hint in _LANDMARKS:
        if not any(name.encode() in tree.data(path) for path in tree.package_files(f"{tree.module}/{folder}")):
            lacks = f"{where}module {tree.module} has no readiness to move: {folder} does not declare {name}"
            raise _unread(snapshot, folder, lacks) or NothingScanned(lacks, hint)
    return tree


def _unread(snapshot: Snapshot, folder: str, lacks: str) -> ToolError | None:
    """Return what kept a file of a folder from being read, where that may be why something is not found in it."""
    for path in (path for path in snapshot.go_paths() if path.rpartition("/")[0] == folder):
        if b"\0" in snapshot.files[path].data:
            return Unparsable("not UTF-8 text: it holds a NUL byte", "convert the file to UTF-8", path=path)
    aside = next((each for each in snapshot.skipped if each.path.rpartition("/")[0] == folder), None)
    return NothingScanned(lacks, f"{aside.path} was not read: {aside.reason}") if aside is not None else None


def _survey(
    tree: Tree, suite: Sequence[Codemod], era: str, report: Progress
) -> tuple[tuple[Finding, ...], tuple[Problem, ...]]:
    found: list[Finding] = []
    problems: list[Problem] = []
    tree.files_with(*NEEDLES)  # asked first, these narrow down where the longer needles of the codemods are searched
    with depth.told(tree):
        for at, codemod in enumerate(suite):
            report("scanning", at, len(suite))
            mine = find(tree, codemod)
            found.extend(mine)
            problems.extend(_anchor_problems(tree, codemod, mine, era))
        audited = audit(tree, found)
    problems.extend(_unclassified(tree, audited))
    return tuple(sorted([*found, *audited], key=lambda found: found.order)), tuple(problems)


def _done(findings: Iterable[Finding], suite: Sequence[Codemod]) -> tuple[str, ...]:
    """Name the codemods that found their change in the tree already and have nothing left to do."""
    open_ids = {found.id for found in findings if not isinstance(found.verdict, Leave)}
    done_ids = {found.id for found in findings if isinstance(found.verdict, Leave) and found.verdict.done}
    return tuple(codemod.id for codemod in suite if codemod.id in done_ids and codemod.id not in open_ids)


# --- what stands in the way -------------------------------------------------------------------------


def _anchor_problems(tree: Tree, codemod: Codemod, findings: Iterable[Finding], era: str) -> list[Problem]:
    places: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.anchor:
            places.setdefault(finding.anchor, []).append(finding)
    out = []
    for anchor in codemod.anchors:
        here = places.get(anchor.name, [])
        if not here and must_have(era, codemod.id, anchor.name, optional=anchor.optional):
            from refactor_tool.drift import hint  # imported here: few trees lack a site

            message, lost = f"the site {anchor.name} is missing", hint(codemod.id, anchor.name)
            out.append(Problem(ExitCode.NOTHING_SCANNED, message, step=codemod.id, hint=lost))
        elif len(here) > 1:
            where = " and ".join(sorted(found.place for found in here))
            message = f"the site {anchor.name} is there {len(here)} times: {where}"
            out.append(_about(tree, ExitCode.NOTHING_SCANNED, message, here[-1]))
    return out


def _manual_problems(tree: Tree, findings: Iterable[Finding]) -> list[Problem]:
    return [
        _about(tree, ExitCode.FINDINGS, found.verdict.reason, found)
        for found in findings
        if isinstance(found.verdict, Manual) and found.verdict.blocks
    ]


def _unclassified(tree: Tree, audited: Iterable[Finding]) -> list[Problem]:
    return [
        _problem(tree, ExitCode.FINDINGS, f"unclassified: {text}", found.path, found.span, "")
        for found in audited
        if found.is_unclassified
        for text in [tree.line_text(found.path, found.span.start)]
    ]


def _again(after: Tree, codemod: Codemod) -> list[Problem]:
    """Run the codemod on its own result, which must find nothing left to do."""
    return [
        _about(after, ExitCode.INTERNAL, f"a second run would change it again: {found.message}", found)
        for found in find(after, codemod)
        if isinstance(found.verdict, Rewrite)
    ]


def _second_plan(tree: Tree, suite: Sequence[Codemod], pending: Container[str], snapshot: Snapshot) -> list[Problem]:
    """Hold the final tree against all codemods and the audit: nothing left to do, nothing newly unclassified."""
    found = [finding for codemod in suite for finding in find(tree, codemod)]
    out = [
        _about(tree, ExitCode.INTERNAL, f"a second plan is not empty: {item.message}", item)
        for item in found
        if isinstance(item.verdict, Rewrite) and item.id not in pending
    ]
    newly = [item for item in audit(tree, found) if item.is_unclassified]
    if newly:
        base = Tree(snapshot, tree.cache)
        known = {_line(base, item) for item in audit(base, ())}
        newly = [item for item in newly if _line(tree, item) not in known]
    return out + [
        replace(problem, message=f"after the series: {problem.message}") for problem in _unclassified(tree, newly)
    ]


def _about(tree: Tree, code: ExitCode, message: str, finding: Finding) -> Problem:
    return _problem(tree, code, message, finding.path, finding.span, finding.id)


def _problem(tree: Tree, code: ExitCode, message: str, path: str, span: Span | None, step: str) -> Problem:
    line = tree.lines(path).position(span.start).line if span is not None else None
    return Problem(code, message, path, line, step)


def _line(tree: Tree, finding: Finding) -> tuple[str, str]:
    return finding.path, tree.line_text(finding.path, finding.span.start)


# --- the change itself ------------------------------------------------------------------------------


def _apply(
    tree: Tree, codemod: Codemod | None, findings: Iterable[Finding], renderer: Renderer
) -> tuple[FileChange, ...]:
    """Merge the changes of all rewrites into one change a file, imports settled.

    Without a codemod they are a rule's, which has no templates.
    """
    owner, templates = (codemod.id, codemod.templates) if codemod is not None else ("a rule", ())
    spans: dict[str, list[tuple[Span, bytes]]] = {}
    created: dict[str, bytes] = {}
    needs: dict[str, set[tuple[str, str | None]]] = {}
    for finding in findings:
        if not isinstance(finding.verdict, Rewrite):
            continue
        for change in finding.verdict.changes:
            match change:
                case Edit(path=path, span=span, text=text):
                    crlf = tree.file(path).crlf
                    rendered = text if isinstance(text, bytes) else renderer.render(owner, templates, text, crlf=crlf)
                    spans.setdefault(path, []).append((span, rendered))
                case NewFile(path=path, text=fragment):
                    if path in tree.snapshot.files or path in created:
                        raise Conflict(f"{path} would be created and exists", "move it out of the way")
                    created[path] = renderer.render(owner, templates, fragment)
                case NeedImport(path=path, package=package, name=name):
                    needs.setdefault(path, set()).add((package, name))
                case _:
                    assert_never(change)
    out = [FileChange(path, None, File(data)) for path, data in created.items()]
    for path in sorted({*spans, *needs} - set(created)):
        before = tree.snapshot.files[path]
        try:
            changed = edits.apply(before.data, spans.get(path, []))
        except Conflict as conflict:
            raise Conflict(f"{path}: {conflict.message}", conflict.hint) from None
        after = settle_imports(tree.cache, before.data, changed, needs.get(path, ()))
        if after != before.data:
            out.append(FileChange(path, before, File(after, before.mode)))
    return tuple(sorted(out, key=lambda change: change.path))
