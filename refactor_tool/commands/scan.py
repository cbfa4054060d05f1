"""Say where every readiness site of one or more trees is, and what would become of it."""

from __future__ import annotations

from pathlib import Path

from refactor_tool import engine
from refactor_tool.codemods import SUITE
from refactor_tool.commands.printed import Format, paint, write
from refactor_tool.gosrc.parse import ParseCache
from refactor_tool.model import ExitCode
from refactor_tool.record import record
from refactor_tool.report.text import render_scan
from refactor_tool.world.console import Progress
from refactor_tool.world.tree import read_trees


@record
class Request:
    """What the user typed. Without refs the work tree is read."""

    path: Path | None
    refs: tuple[str, ...] = ()
    format: Format = "text"


def run(request: Request) -> ExitCode:
    """Print what is found in each tree and return the gravest of their codes."""
    with Progress() as progress:
        trees = read_trees(request.path, request.refs)
        cache = ParseCache()
        plans = []
        for snapshot in trees:
            cache.keep(snapshot)
            plans.append(engine.scan(snapshot, SUITE, progress=progress.step, cache=cache))
    return write(plans, request.format, lambda plan: render_scan(plan, paint(), asked=str(request.path or "")))
