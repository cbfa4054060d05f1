"""Prove a series, a change or a tree, level by level, and end with one exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Literal

from refactor_tool import engine
from refactor_tool.codemod import check_suite, check_templates
from refactor_tool.codemods import SUITE
from refactor_tool.commands import bench
from refactor_tool.commands.printed import paint
from refactor_tool.gosrc.parse import ParseCache
from refactor_tool.gosrc.tree import Tree
from refactor_tool.model import (
    EnvironmentFailure,
    ExitCode,
    NothingScanned,
    Problem,
    Snapshot,
    ToolError,
    Unparsable,
    UsageError,
    gravest,
)
from refactor_tool.record import record
from refactor_tool.report.verified import render_json, render_text
from refactor_tool.rules import RULES
from refactor_tool.verified import LEVELS, Checked, Level, Ran, Stage, Verification
from refactor_tool.verify import stages, syntax, types
from refactor_tool.world import gotool
from refactor_tool.world.console import Progress
from refactor_tool.world.patches import apply_series, read_series
from refactor_tool.world.templates import load_templates
from refactor_tool.world.tree import read_ref, read_tree

#: Seconds that the type checker may take; it ends by itself after half of that.
_PATIENCE = 120.0
Step = Callable[[str, int, int], None]


@record
class Request:
    """What the user typed; None is what the user did not say. At most one of `base`, `series` and `as_is`."""

    path: Path | None
    ref: str | None = None
    base: str | None = None
    series: Path | None = None
    as_is: bool = False
    level: Level | None = None
    run_tests: bool = False
    network: bool = False
    format: Literal["text", "json"] = "text"


@record
class Subject:
    """What is to be verified: the tree it starts from, the stages, and why there are none if there are none."""

    kind: Literal["series", "change", "tree"]
    snapshot: Snapshot
    stages: tuple[Stage, ...]
    problems: tuple[Problem, ...] = ()


def run(request: Request) -> ExitCode:
    """Verify what was asked for, print what came of it, and return the exit code.

    Raises `ToolError` where there is nothing that could be verified, or the request contradicts itself.
    """
    wanted = _wanted(request)
    cache = ParseCache()
    with Progress() as progress, _deep():
        subject = _subject(request, cache, progress.step)
        ran, toolchain = _climb(request, subject, wanted, cache, progress.step) if subject.stages else ((), "")
    result = Verification(subject.snapshot, subject.kind, subject.stages, ran, wanted, toolchain, subject.problems)
    code = gravest(result.codes)
    if request.format == "json":
        sys.stdout.buffer.write(render_json(result, code))
    else:
        sys.stdout.write(render_text(result, code, paint()))
    return code


def prove(before: Snapshot | None, after: Snapshot, level: Level, cache: ParseCache, step: Step) -> Verification:
    """Verify a tree up to a level that needs no network: the change from `before`, or the tree as it is."""
    if before is None:
        subject = Subject("tree", after, (stages.of_tree(after),))
    else:
        subject = _change(before, after)
    with _deep():
        ran, toolchain = _climb(Request(None), subject, level, cache, step) if subject.stages else ((), "")
    return Verification(subject.snapshot, subject.kind, subject.stages, ran, level, toolchain, ())


# --- what was asked -----------------------------------------------------------------------------------


def _wanted(request: Request) -> Level:
    ways = {"--base": request.base is not None, "--series": request.series is not None, "--as-is": request.as_is}
    named = [name for name, given in ways.items() if given]
    if len(named) > 1:
        raise UsageError(f"{' and '.join(named)} ask for different things", "give one of them")
    if request.level == "behaviour" and not request.run_tests:
        raise UsageError(
            "--level behaviour runs code of the examined tree: its tests", "add --run-tests if you trust it"
        )
    if request.run_tests and request.level not in (None, "behaviour"):
        raise UsageError(f"--run-tests goes beyond --level {request.level}", "leave one of them out")
    return "behaviour" if request.run_tests else request.level or "types"


def _subject(request: Request, cache: ParseCache, step: Step) -> Subject:
    tree = read_tree(request.path).whole() if request.ref is None else read_ref(request.path, request.ref)
    if request.as_is:
        return Subject("tree", tree, (stages.of_tree(tree),))
    if request.base is not None:
        return _change(read_ref(request.path, request.base), tree)
    if request.series is not None:
        series = read_series(request.series)
        return Subject("series", tree, stages.of_series(tree, apply_series(tree, series.patches), series.plan))
    sources = load_templates()
    check_suite(SUITE, sources)
    check_templates(SUITE, sources)
    plan = engine.plan(tree, SUITE, sources, progress=step, cache=cache)
    return Subject("series", tree, stages.of_plan(plan), plan.problems)


def _change(before: Snapshot, after: Snapshot) -> Subject:
    change = stages.of_change(before, after)
    is_change = bool(change.changes) or any(gap.blocks for gap in stages.unread(change))
    return Subject("change", after, (change,) if is_change else ())


@contextmanager
def _deep() -> Iterator[None]:
    try:
        yield
    except RecursionError:
        raise Unparsable("a Go file is nested deeper than this tool can read", "leave it out of the tree") from None


# --- the levels ---------------------------------------------------------------------------------------


def _climb(
    request: Request, subject: Subject, wanted: Level, cache: ParseCache, step: Step
) -> tuple[tuple[Ran, ...], str]:
    """Run the levels from the cheapest to the wanted one."""
    with _Types(subject, step) as beside:
        if wanted != "syntax":
            beside.begin()
        ran: list[Ran] = []
        for level in LEVELS:
            if level not in LEVELS[: LEVELS.index(wanted) + 1]:
                flag = "--run-tests" if level == "behaviour" else f"--level {level}"
                ran.append(Ran(level, reason="not asked for", hint=f"{flag} does"))
                continue
            if reason := _hindrance(level, ran):
                ran.append(Ran(level, reason=reason))
                continue
            try:
                ran.append(Ran(level, _run(level, request, subject, cache, beside, step)))
            except EnvironmentFailure as error:
                ran.append(Ran(level, reason=error.message, hint=error.hint, lacking=True))
    has_go = any(one.checked for one in ran if one.level != "syntax")
    return tuple(ran), beside.go.version if has_go else ""


def _hindrance(level: Level, ran: Sequence[Ran]) -> str:
    """Return why a level is not tried; after one that fails the next would only say so again.

    No compiler is set on what could not be looked at: it knows no limits.
    """
    for one in ran:
        if one.status == "failed":
            return f"level {one.level} failed"
        if one.status == "not verified" and level in ("build", "behaviour"):
            return f"level {one.level} is not verified"
    return ""


def _run(
    level: Level, request: Request, subject: Subject, cache: ParseCache, beside: _Types, step: Step
) -> tuple[Checked, ...]:
    if level == "syntax":
        step("syntax", 0, len(subject.stages))
        rules = RULES if subject.kind == "series" else ()  # of a change by hand check --base says what is hazardous
        return syntax.check(subject.stages, rules, cache)
    if level == "types":
        return beside.checked()
    return bench.run(
        level, request.path, subject.stages, _module(subject), beside.go, network=request.network, step=step
    )


class _Types:
    """Level types, at work while something else is done; a context manager, with whose end it ends."""

    def __init__(self, subject: Subject, step: Step) -> None:
        self._subject, self._step = subject, step
        self._answer: Callable[[float], bytes] | None = None
        self._ends = ExitStack()

    def __enter__(self) -> _Types:
        return self

    def __exit__(self, *raised: object) -> None:
        self._ends.close()

    @cached_property
    def go(self) -> gotool.Go:
        """The toolchain; raises EnvironmentFailure where there is none."""
        return gotool.find_go()

    def begin(self) -> None:
        """Ask the type checker, where it has been built already; what is in the way is told by `checked`."""
        with suppress(ToolError):
            if gotool.has_checker(self.go):
                self._ask()

    def checked(self) -> tuple[Checked, ...]:
        """Return what the type checker says of each stage; raises ToolError where it cannot."""
        if self._answer is None:
            self._step("building the type checker, once", 0, 1)
            self._ask()
        assert self._answer is not None
        self._step("types", 0, len(self._subject.stages))
        return types.read(self._answer(_PATIENCE), _module(self._subject), self._subject.stages)

    def _ask(self) -> None:
        question = types.request(_module(self._subject), self._subject.stages, str(self.go.goroot))
        self._answer = self._ends.enter_context(gotool.asking(gotool.checker(self.go), question))


def _module(subject: Subject) -> str:
    module = Tree(subject.snapshot).module
    if not module:
        raise NothingScanned(f"{subject.snapshot.label}: no go.mod with a module line", "name the root of a module")
    return module
