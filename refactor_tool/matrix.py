"""Branches × sites: run the campaign on many refs of many repositories, one row each.

The unit of work is a batch: some refs of one repository, read by one git process, their blobs parsed once. Batches go
through any `concurrent.futures` executor, so a pool of processes and a Dask cluster run the very same function, and
rows come back in the order that was asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from pathlib import Path

from refactor_tool import __version__, engine
from refactor_tool.codemods import SUITE, TITLE
from refactor_tool.drift import cell
from refactor_tool.gosrc.parse import ParseCache
from refactor_tool.model import BranchRow, Finding, Plan, SiteCell, ToolError
from refactor_tool.record import record
from refactor_tool.report.document import document, exit_code
from refactor_tool.report.series import series
from refactor_tool.world.templates import load_templates
from refactor_tool.world.tree import read_each


@record
class Batch:
    """Refs of one repository to be looked at together; with `plan` the series is made and proved too."""

    repository: str
    refs: tuple[str, ...]
    plan: bool
    keep_going: bool = False


def batches(
    repositories: Sequence[tuple[str, Sequence[str]]], workers: int, *, plan: bool, keep_going: bool
) -> list[Batch]:
    """Cut (repository, refs) into about `workers` batches of neighbouring refs, never mixing repositories."""
    total = sum(len(refs) for _, refs in repositories)
    size = max(1, -(-total // max(1, workers)))
    return [
        Batch(repository, tuple(refs[at : at + size]), plan, keep_going)
        for repository, refs in repositories
        for at in range(0, len(refs), size)
    ]


def run(work: Sequence[Batch], executor: Executor | None, done: Callable[[int, int], None]) -> list[BranchRow]:
    """Return a row per ref in the order of `work`; `executor` None runs here. `done` hears of progress in refs."""
    total = sum(len(batch.refs) for batch in work)
    futures = [executor.submit(examine, batch) for batch in work] if executor is not None else []
    results = (future.result() for future in futures) if futures else (examine(batch) for batch in work)
    rows: list[BranchRow] = []
    for result in results:
        rows.extend(result)
        done(len(rows), total)
    return rows


def examine(batch: Batch) -> list[BranchRow]:
    """Return the rows of one batch. One ref that fails does not stop the others."""
    cache = ParseCache()
    sources = load_templates() if batch.plan else {}
    rows = []
    for ref, snapshot in read_each(Path(batch.repository), batch.refs):
        if isinstance(snapshot, ToolError):
            rows.append(BranchRow(batch.repository, ref, snapshot.code, snapshot.message))
            continue
        try:
            if batch.plan:
                result = engine.plan(snapshot, SUITE, sources, keep_going=batch.keep_going, cache=cache)
            else:
                result = engine.scan(snapshot, SUITE, cache=cache)
        except ToolError as error:
            rows.append(BranchRow(batch.repository, ref, error.code, error.message))
            continue
        cache.keep({file.oid for file in snapshot.files.values()})
        patches = series(result, version=__version__, subject=TITLE) if result.steps else ()
        rows.append(
            BranchRow(
                batch.repository,
                ref,
                exit_code(result),
                era=result.era,
                cells=tuple(_cells(result)),
                document=document(result),
                patches=tuple((patch.name, patch.data) for patch in patches),
            )
        )
    return rows


def _cells(plan: Plan) -> Iterable[SiteCell]:
    found = {(finding.id, finding.anchor): finding for finding in plan.findings if finding.anchor}
    for codemod in SUITE:
        for anchor in codemod.anchors:
            finding = found.get((codemod.id, anchor.name))
            if finding is not None or not anchor.optional:
                yield cell(codemod.id, anchor.name, finding, _text(plan, finding))


def _text(plan: Plan, finding: Finding | None) -> str:
    """Return the source of a finding on one line, at most 200 characters of it."""
    if finding is None:
        return ""
    data = plan.base.files[finding.path].data[finding.span.start : finding.span.end]
    text = " ".join(data.decode("utf-8", "replace").split())
    return text if len(text) <= 200 else f"{text[:199]}…"
