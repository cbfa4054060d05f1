"""Branches × sites: read refs of any number of repositories, show one table, write the series of each branch."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from refactor_tool import matrix
from refactor_tool.model import BranchRow, ExitCode, UsageError, gravest
from refactor_tool.record import record
from refactor_tool.report.table import matrix_document, matrix_html, matrix_text
from refactor_tool.report.text import Paint
from refactor_tool.world.console import Progress, colour_allowed
from refactor_tool.world.out import write_dir
from refactor_tool.world.pool import default_jobs, executor
from refactor_tool.world.refs import expand_refs


@record
class Request:
    """What the user typed; `format` is text, json or html."""

    repositories: tuple[Path, ...]
    refs: tuple[str, ...]
    format: str = "text"
    out: Path | None = None
    force: bool = False
    keep_going: bool = False
    jobs: int | None = None
    scheduler: str | None = None


def run(request: Request) -> ExitCode:
    """Print the table, write the folder where one was asked for, and return the gravest of the branches' codes."""
    if request.jobs is not None and request.jobs < 1:
        raise UsageError(f"--jobs {request.jobs}: at least one is needed", "leave it out to use every processor")
    wanted = [(str(path), expand_refs(path, request.refs)) for path in request.repositories]
    total = sum(len(refs) for _, refs in wanted)
    jobs = min(request.jobs if request.jobs is not None else default_jobs(), total)
    work = matrix.batches(
        wanted,
        jobs if request.scheduler is None else total,
        plan=request.out is not None,
        keep_going=request.keep_going,
    )
    with Progress() as progress, executor(jobs, request.scheduler) as pool:
        rows = matrix.run(work, pool, lambda at, of: progress.step("branches", at, of))
    if request.out is not None:
        write_dir(request.out, dict(_files(rows)), force=request.force)
    match request.format:
        case "json":
            sys.stdout.write(json.dumps(matrix_document(rows), indent=1) + "\n")
        case "html":
            sys.stdout.buffer.write(matrix_html(rows))
        case _:
            sys.stdout.write(matrix_text(rows, Paint(colour=colour_allowed(sys.stdout))))
    return gravest(row.code for row in rows)


def _files(rows: Sequence[BranchRow]) -> Iterable[tuple[str, bytes]]:
    """Yield the table as JSON and HTML, and each branch's series in a folder named after it."""
    yield "plan.json", (json.dumps(matrix_document(rows), indent=1) + "\n").encode()
    yield "matrix.html", matrix_html(rows)
    several = len({row.repository for row in rows}) > 1
    names: dict[str, int] = {}
    for row in rows:
        parts = [Path(row.repository).resolve().name] if several else []
        folder = "/".join([*parts, *(_safe(part) for part in row.ref.split("/"))])
        names[folder] = names.get(folder, 0) + 1
        if names[folder] > 1:
            folder = f"{folder}~{names[folder]}"
        for name, data in row.patches:
            yield f"{folder}/{name}", data


def _safe(part: str) -> str:
    """Return a part of a ref's name as a file name: no dots alone, no separators, no control characters."""
    kept = "".join(char if char.isprintable() and char not in '\\:*?"<>|' else "_" for char in part)
    return kept if kept.strip(".") else f"_{kept}"
