"""Branches × sites: read refs of any number of repositories, show one table, write the series of each branch."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

from refactor_tool import matrix
from refactor_tool.commands.printed import paint
from refactor_tool.model import BranchRow, ExitCode, ToolError, UsageError, gravest
from refactor_tool.record import record
from refactor_tool.report.document import as_json
from refactor_tool.report.folder import PAGE, RESULT, TABLE, branch_folders
from refactor_tool.report.table import matrix_document, matrix_text
from refactor_tool.report.table_page import matrix_html
from refactor_tool.world.console import Progress, can_show, done
from refactor_tool.world.out import write_dir
from refactor_tool.world.place import locate
from refactor_tool.world.pool import default_jobs, open_pool
from refactor_tool.world.refs import expand_refs


@record
class Request:
    """What the user typed; no repository is the current folder, and no ref all local branches."""

    repositories: tuple[Path, ...] = ()
    refs: tuple[str, ...] = ()
    format: Literal["text", "json", "html"] = "text"
    out: Path | None = None
    force: bool = False
    keep_going: bool = False
    jobs: int | None = None
    scheduler: str | None = None


def run(request: Request) -> ExitCode:
    """Print the table, write the folder where one was asked for, and return the gravest of the branches' codes."""
    if request.jobs is not None and request.jobs < 1:
        raise UsageError(f"--jobs {request.jobs}: at least one is needed", "leave it out to use every processor")
    rows = _rows(request)
    folders = branch_folders(rows) if request.out is not None else {}
    document = matrix_document(rows, folders)
    if request.out is not None:
        files = {f"{folder}/{name}": data for at, folder in folders.items() for name, data in rows[at].files}
        page = matrix_html(rows, {at: f"{folder}/{PAGE}" for at, folder in folders.items()})
        write_dir(request.out, {**files, RESULT: as_json(document), TABLE: page}, force=request.force)
    with done(f"all is in {request.out}" if request.out is not None else ""):
        match request.format:
            case "json":
                sys.stdout.buffer.write(as_json(document))
            case "html":
                sys.stdout.buffer.write(matrix_html(rows, {}))
            case "text":
                sys.stdout.write(matrix_text(rows, paint(), plain=not can_show(sys.stdout, "✓→✗·×")))
                if request.out is not None:
                    sys.stdout.write(f"\nwritten to {request.out}; look at {request.out / TABLE}\n")
    return gravest(row.code for row in rows)


def _rows(request: Request) -> list[BranchRow]:
    """Return a row a ref, in the order of repositories and refs; those that cannot be looked at have their place."""
    meant = [(path, _refs(path, request.refs)) for path in dict.fromkeys(request.repositories or (None,))]
    work = [
        matrix.Batch(_shown(path), _root(path), refs, request.out is not None, request.keep_going)
        for path, found in meant
        if (refs := tuple(ref for ref, fault in found if fault is None))
    ]
    if not work:
        raise next(fault for _, found in meant for _, fault in found if fault is not None)
    total = sum(len(batch.refs) for batch in work)
    jobs = min(request.jobs if request.jobs is not None else default_jobs(), total)
    with Progress() as progress, open_pool(jobs, request.scheduler) as pool:
        rows = iter(matrix.run(work, pool, lambda at, of: progress.step("branches", at, of)))
    return [
        next(rows) if fault is None else matrix.failed(_shown(path), ref, fault)
        for path, found in meant
        for ref, fault in found
    ]


def _refs(path: Path | None, patterns: tuple[str, ...]) -> tuple[tuple[str, ToolError | None], ...]:
    """Return the refs that are meant in a repository; one that cannot be read does not stop the others."""
    try:
        return expand_refs(path, patterns)
    except ToolError as error:
        return ((", ".join(patterns) or "*", error),)


def _shown(path: Path | None) -> str:
    return "." if path is None else str(path)


def _root(path: Path | None) -> str:
    """Return the absolute path of the folder that is meant, for workers that stand elsewhere."""
    place = locate(path)
    return str(place.root / place.below)
