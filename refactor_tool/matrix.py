"""Branches × sites: run the campaign on many refs of many repositories, one row each.

The unit of work is a batch: some refs of one repository, read by one git process, their blobs parsed once. A pool of
processes and a Dask cluster run the very same function on the same batches, and rows come back in the order that was
asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import dropwhile
from pathlib import Path

from refactor_tool import __version__, engine
from refactor_tool.codemods import SUITE, TITLE
from refactor_tool.drift import cell
from refactor_tool.eras import must_have
from refactor_tool.gosrc.parse import ParseCache
from refactor_tool.model import (
    BranchRow,
    EnvironmentFailure,
    Finding,
    Manual,
    Places,
    Plan,
    SiteCell,
    Snapshot,
    ToolError,
)
from refactor_tool.record import record
from refactor_tool.report.document import document, exit_code
from refactor_tool.report.folder import folder
from refactor_tool.report.series import series
from refactor_tool.world.pool import Lost, Pool
from refactor_tool.world.templates import load_templates
from refactor_tool.world.tree import read_each


@record
class Batch:
    """Refs of one repository to be looked at together; with `plan` the series is made and proved too.

    `repository` is what the user called it, `root` its absolute path, which every worker must see.
    """

    repository: str
    root: str
    refs: tuple[str, ...]
    plan: bool = False
    keep_going: bool = False

    def cut(self, size: int) -> Iterator[Batch]:
        """Yield the same work in batches of `size` neighbouring refs at the most."""
        for at in range(0, len(self.refs), size):
            yield Batch(self.repository, self.root, self.refs[at : at + size], self.plan, self.keep_going)


def run(work: Sequence[Batch], pool: Pool, done: Callable[[int, int], None]) -> list[BranchRow]:
    """Return a row per ref in the order of `work`. `done` hears how many refs are done, of how many.

    A ref whose worker dies has a row that says so; those that shared its batch are looked at again without it.
    """
    total = sum(len(batch.refs) for batch in work)
    size = max(1, -(-total // max(1, pool.width)))
    batches = [part for batch in work for part in batch.cut(size)]
    rows: list[BranchRow] = []
    for batch, result in zip(batches, pool.each(examine, batches), strict=True):
        rows.extend(_again(batch, result.reason, pool) if isinstance(result, Lost) else result)
        done(len(rows), total)
    return rows


def _again(batch: Batch, reason: str, pool: Pool) -> Iterator[BranchRow]:
    """Yield the rows of a batch that was lost, its refs looked at one by one; a single one is lost for good."""
    singles = list(batch.cut(1))
    results = pool.each(examine, singles) if len(singles) > 1 else iter([Lost(reason)])
    for single, result in zip(singles, results, strict=True):
        if isinstance(result, Lost):
            yield failed(batch.repository, single.refs[0], EnvironmentFailure(result.reason))
        else:
            yield from result


def failed(repository: str, ref: str, error: ToolError) -> BranchRow:
    """Return the row of a ref that could not be looked at."""
    return BranchRow(repository, ref, error.code, error.message, error.hint)


def examine(batch: Batch) -> list[BranchRow]:
    """Return the rows of one batch. One ref that fails does not stop the others."""
    cache = ParseCache()
    sources = load_templates() if batch.plan else {}
    try:
        return [
            failed(batch.repository, ref, found) if isinstance(found, ToolError) else _row(batch, found, sources, cache)
            for ref, found in read_each(Path(batch.root), batch.refs)
        ]
    except ToolError as error:  # the repository itself cannot be read
        return [failed(batch.repository, ref, error) for ref in batch.refs]


def _row(batch: Batch, snapshot: Snapshot, sources: dict[str, str], cache: ParseCache) -> BranchRow:
    cache.keep(snapshot)
    try:
        if batch.plan:
            plan = engine.plan(snapshot, SUITE, sources, keep_going=batch.keep_going, cache=cache)
        else:
            plan = engine.scan(snapshot, SUITE, cache=cache)
        return BranchRow(
            batch.repository,
            snapshot.label,
            exit_code(plan),
            era=plan.era,
            cells=tuple(_cells(plan)),
            document=document(plan),
            files=_files(plan) if batch.plan else (),
        )
    except ToolError as error:
        return failed(batch.repository, snapshot.label, error)
    except Exception as error:
        return failed(batch.repository, snapshot.label, _bug(error))


def _files(plan: Plan) -> tuple[tuple[str, bytes], ...]:
    return tuple(folder(plan, series(plan, version=__version__, subject=TITLE), TITLE).items())


def _bug(error: Exception) -> ToolError:
    """Return a mistake of ours as an error of one line: what, at which codemod, and where in the source."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    where = f" at {Path(at.tb_frame.f_code.co_filename).name}:{at.tb_lineno}" if at is not None else ""
    notes = "".join(f", {note}" for note in getattr(error, "__notes__", ()))
    told = " ".join(f"{type(error).__name__}: {error}".split())
    return ToolError(
        f"internal error in version {__version__}{where}{notes}: {told}",
        "plan this ref alone to see more, and report it",
    )


def _cells(plan: Plan) -> Iterator[SiteCell]:
    """Yield every site that is there or must be there, in the campaign's order; then what else needs a person."""
    places = Places(plan.base)
    for codemod in SUITE:
        mine = [finding for finding in plan.findings if finding.id == codemod.id]
        for anchor in codemod.anchors:
            here = [finding for finding in mine if finding.anchor == anchor.name]
            if len(here) > 1:
                yield _doubled(codemod.id, anchor.name, here, places)
            elif here:
                yield cell(codemod.id, anchor.name, here[0], places.line(here[0]), _text(plan, here[0]))
            elif must_have(plan.era, codemod.id, anchor.name, optional=anchor.optional):
                yield cell(codemod.id, anchor.name, None, None, "")
    for finding in plan.findings:
        if isinstance(finding.verdict, Manual) and not finding.anchor:
            reason, step = finding.verdict.reason, finding.verdict.instruction
            line, text = places.line(finding), _text(plan, finding)
            yield SiteCell(finding.id, "", "differs", finding.place, reason, line, step=step, found=text)


def _doubled(codemod: str, anchor: str, here: Sequence[Finding], places: Places) -> SiteCell:
    where = " and ".join(f"{finding.place}, line {places.line(finding)}" for finding in here)
    why = f"there {len(here)} times: {where}"
    first = places.line(here[0])
    return SiteCell(codemod, anchor, "differs", here[0].place, why, first, step="leave one of them, and plan again")


def _text(plan: Plan, finding: Finding) -> str:
    """Return the source of a finding on one line, at most 200 characters of it, without comments above."""
    data = plan.base.files[finding.path].data[finding.span.start : finding.span.end]
    lines = [line.strip() for line in data.decode("utf-8", "replace").split("\n")]
    code = list(dropwhile(lambda line: line.startswith("//"), lines)) or lines
    text = " ".join(" ".join(code).split())
    return text if len(text) <= 200 else f"{text[:199]}…"
