"""Our series beside a real range of commits."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

from refactor_tool import engine
from refactor_tool.codemods import SUITE
from refactor_tool.commands.printed import paint
from refactor_tool.compare import compare
from refactor_tool.gosrc.parse import ParseCache
from refactor_tool.gosrc.tree import Tree, tree_of
from refactor_tool.model import ExitCode, Finding, Places, UsageError
from refactor_tool.record import record
from refactor_tool.report.comparison import Hazards, comparison_document, comparison_text
from refactor_tool.report.document import as_json
from refactor_tool.rule import hazards, new_hazards
from refactor_tool.rules import RULES
from refactor_tool.world.console import Progress
from refactor_tool.world.templates import load_templates
from refactor_tool.world.tree import read_many


@record
class Request:
    """What the user typed; no path is the current folder."""

    path: Path | None
    revisions: str
    format: Literal["text", "json"] = "text"


def run(request: Request) -> ExitCode:
    """Print how our series on the first revision compares with what the second one is.

    Return 0 where all of the series was made, 1 where something is left to a person.
    """
    first, second = _range(request.revisions)
    with Progress() as progress:
        base, theirs = read_many(request.path, [first, second])
        cache = ParseCache()
        plan = engine.plan(base, SUITE, load_templates(), keep_going=True, progress=progress.step, cache=cache)
        before, ours, other = (tree_of(each, cache) for each in (base, plan.final, theirs))
        found = compare(before, ours, other)
        said: Hazards = {
            "base": _hazards(before, before),
            "ours": _hazards(before, ours),
            "theirs": _hazards(before, other),
        }
    if request.format == "json":
        sys.stdout.buffer.write(as_json(comparison_document(request.revisions, plan, found, said)))
    else:
        sys.stdout.write(comparison_text(request.revisions, plan, found, said, paint()))
    return ExitCode.FINDINGS if plan.problems else ExitCode.CLEAN


def _range(revisions: str) -> tuple[str, str]:
    first, dots, second = revisions.partition("..")
    if not (first and dots and second) or second.startswith("."):
        raise UsageError(
            f"{revisions!r} is not REV..REV",
            "name the commit before somebody else's change, two dots, and the one after it",
        )
    return first, second


def _hazards(base: Tree, tree: Tree) -> list[tuple[Finding, int | None]]:
    """Return what the rules say of a tree and of the way to it from the base, each with its line."""
    places = Places(tree.snapshot)
    found = [*hazards(tree, RULES), *(new_hazards(base, tree, RULES) if tree is not base else ())]
    return [(finding, places.line(finding)) for finding in found]
