"""The gate: read, find, judge, write every format, and end with one line and one exit code.

Whatever happens, each file that was asked for is written: a run that fails must leave none of an earlier run behind
that says otherwise.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from refactor_tool import config, engine, gate
from refactor_tool.codemods import SUITE
from refactor_tool.commands import catalogue
from refactor_tool.commands.printed import paint
from refactor_tool.config import Config
from refactor_tool.gosrc import depth
from refactor_tool.gosrc.parse import ParseCache
from refactor_tool.gosrc.tree import tree_of
from refactor_tool.model import (
    EnvironmentFailure,
    ExitCode,
    Finding,
    NothingScanned,
    Plan,
    Problem,
    Snapshot,
    ToolError,
    Unparsable,
    UsageError,
    refusal,
)
from refactor_tool.outcome import Accepted, Baseline, Report, Result, RuleInfo, is_held
from refactor_tool.record import record, replace
from refactor_tool.report.formats import FORMATS, WITH_FIXES, render
from refactor_tool.report.text import Paint
from refactor_tool.report.words import counted
from refactor_tool.suppress import suppressions
from refactor_tool.world.aside import Aside, name_below, name_from_here, read_file
from refactor_tool.world.clock import today
from refactor_tool.world.console import Progress, colour_allowed, done

if TYPE_CHECKING:
    from refactor_tool.engine import Progress as Step
    from refactor_tool.rule import Rule


@record
class Request:
    """What the user typed; None is what the user did not say. `command` begins the command that would do it again."""

    path: Path | None
    ref: str | None = None
    staged: bool = False
    base: str | None = None
    fail_on: str | None = None
    formats: tuple[str, ...] = ()
    baseline: str | None = None
    write_baseline: bool = False
    config: Path | None = None
    rules: str | None = None
    verify: str | None = None
    today: str | None = None


@record
class Output:
    """One format and the file it goes to, None for standard output."""

    format: str
    file: Path | None


def check(request: Request) -> ExitCode:
    """Judge a tree, write what was asked for, and return the exit code.

    Raises `ToolError` only where the request itself cannot be read, and before anything is written.
    """
    outputs = _outputs(request.formats, request.baseline)
    try:
        _require_writable(outputs)
        if request.staged and request.ref is not None:
            raise UsageError("--staged and --ref name two trees", "give one of them")
        aside, file = _read_aside(request)
        outputs = outputs or _outputs(config.merge({}, file).formats, request.baseline)
        report = _judge(request, config.merge(_flags(request), file), aside, outputs)
    except ToolError as error:
        _write(request, _failed(request, _problem(error)), outputs)
        return error.code
    except KeyboardInterrupt:
        fault = _try_files(_failed(request, Problem(ExitCode.INTERRUPTED, "interrupted")), outputs)
        with done("the files tell so" if _has_files(outputs) and fault is None else ""):
            raise
    except Exception as error:
        bug = Problem(ExitCode.INTERNAL, f"internal error: {type(error).__name__}: {error}")
        _try_files(_failed(request, _refused(error) or bug), outputs)
        raise
    _write(request, report, outputs)
    return report.decision.code


def read_config(request: Request) -> Config:
    """Return what is in force."""
    _, file = _read_aside(request)
    return config.merge(_flags(request), file)


# --- what was asked -----------------------------------------------------------------------------------


def _outputs(formats: Sequence[str], baseline: str | None) -> tuple[Output, ...]:
    """Read NAME[=FILE]; raises `UsageError` for an unknown name, or two that go to the same place."""
    names = tuple(FORMATS)
    outputs = []
    for text in formats:
        name, has_file, file = text.partition("=")
        config.format_name(name, "--format", names)
        if has_file and not file:
            raise UsageError(f"--format {text}: no file is named", f"write {name}=FILE, or {name} for standard output")
        outputs.append(Output(name, Path(file) if file not in ("", "-") else None))
    if len(outputs) > 1 or baseline is not None:
        _require_apart(outputs, baseline)
    return tuple(outputs)


def _require_apart(outputs: Sequence[Output], baseline: str | None) -> None:
    from refactor_tool.world.out import leads_to

    places = [leads_to(output.file) for output in outputs]
    for at, (output, place) in enumerate(zip(outputs, places, strict=True)):
        where = "standard output" if output.file is None else str(output.file)
        if place in places[:at]:
            raise UsageError(f"--format: two formats go to {where}", "name another file: --format NAME=FILE")
        if baseline is not None and place == leads_to(Path(baseline)):
            raise UsageError(f"--format: {where} is the baseline", "name another file: --format NAME=FILE")


def _require_writable(outputs: Sequence[Output]) -> None:
    for output in outputs:
        if output.file is not None:
            from refactor_tool.world.out import require_writable

            require_writable(output.file)


def _flags(request: Request) -> dict[str, Any]:
    said = {"base": request.base, "baseline": request.baseline, "format": request.formats or None}
    if request.fail_on is not None:
        said["fail-on"] = config.fail_on(request.fail_on, "--fail-on")
    if request.rules is not None:
        said["rules"] = config.rule_ids(request.rules, "--rules", catalogue.hazard_ids())
    return {key: value for key, value in said.items() if value is not None}


def _read_aside(request: Request) -> tuple[Aside, config.ConfigFile | None]:
    """Return where the files beside the source are read from, and the configuration among them."""
    aside = Aside.of(request.path, request.ref, staged=request.staged)
    return aside, _config_file(request, aside)


def _config_file(request: Request, aside: Aside) -> config.ConfigFile | None:
    if request.config is not None:
        data = read_file(request.config)
        if data is None:
            raise UsageError(f"{request.config}: no such file", "give --config a file that exists")
        name = request.config.name
        return config.parse(name, str(request.config).removesuffix(name), data, _known())
    names = [f"{folder}{name}" for folder in aside.folders for name in (config.FILE, config.PYPROJECT)]
    for name, data in aside.read(names).items():
        folder, slash, base = name.rpartition("/")
        found = config.parse(base, folder + slash, data, _known())
        if found is not None:
            return found
    return None


def _known() -> config.Known:
    return config.Known(tuple(FORMATS), catalogue.hazard_ids())


# --- the judgement ------------------------------------------------------------------------------------


def _judge(request: Request, settings: Config, aside: Aside, outputs: Sequence[Output]) -> Report:
    day = config.day(request.today, "--today") if request.today is not None else today()
    baseline = _baseline(request, settings, aside)
    wanted = _wanted(settings)
    idle = tuple(rule.id for rule in wanted if rule.find is None and not settings.base)
    if wanted and len(idle) == len(wanted):
        raise UsageError(f"{', '.join(idle)}: nothing to compare the tree with", "name what it was with --base REF")
    cache = ParseCache()
    with Progress() as progress:
        tree = _examine(_snapshot(request), wanted, cache, progress.step)
        base = _examine_base(request, settings, wanted, cache, progress.step) if settings.base else None
        proved, unproved = _proof(
            request, tree.plan.base, base.plan.base if base is not None else None, cache, progress
        )
    tree = _compared(base, tree, wanted, cache)
    if unproved:
        tree = replace(tree, plan=replace(tree.plan, problems=(*tree.plan.problems, *unproved)))
    rules = _catalogue(request, bool(wanted or tree.suppressions or baseline))
    judge = partial(
        gate.judge,
        tree,
        rules,
        fail_on=settings.fail_on,
        today=day,
        base=base,
        base_name=settings.base,
        proof=proved,
    )
    report = judge(baseline=baseline)
    if request.write_baseline:
        kept = gate.unjudged(baseline, tree.ran, [rule.id for rule in rules]) if baseline is not None else ()
        report = _accept(request, report, baseline, kept, judge)
    if not wanted:
        report = _remarked(report, "hazard rules not run")
    elif idle:
        report = _remarked(report, f"{', '.join(idle)} not run: no --base to compare with")
    if any(output.format in WITH_FIXES for output in outputs):
        report = _with_fixes(report, cache)
    return report


def _catalogue(request: Request, hazards: bool) -> tuple[RuleInfo, ...]:
    found = catalogue.campaign() + (catalogue.hazards() if hazards else ())
    if request.verify is None:
        return found
    from refactor_tool.commands.proof import RULE

    return (*found, RULE)


def _proof(
    request: Request, after: Snapshot, before: Snapshot | None, cache: ParseCache, progress: Progress
) -> tuple[tuple[Result, ...], tuple[Problem, ...]]:
    if request.verify is None:
        return (), ()
    if request.verify not in ("syntax", "types"):
        raise UsageError(f"--verify: {request.verify!r} is no level of the gate", "give syntax or types")
    from refactor_tool.commands.proof import proof

    return proof(before, after, "syntax" if request.verify == "syntax" else "types", cache, progress.step)


def _wanted(settings: Config) -> tuple[Rule, ...]:
    """Return the hazard rules to run. Unasked they run only where what is old can be told from what is new."""
    if settings.rules == () or (settings.rules is None and not settings.base and not settings.baseline):
        return ()
    from refactor_tool.rules import RULES

    return tuple(rule for rule in RULES if settings.rules is None or rule.id in settings.rules)


def _snapshot(request: Request) -> Snapshot:
    if request.staged:
        from refactor_tool.world.staged import read_staged

        return read_staged(request.path)
    from refactor_tool.world.tree import read_ref, read_tree

    return read_tree(request.path) if request.ref is None else read_ref(request.path, request.ref)


def _base(request: Request, settings: Config) -> Snapshot:
    """Read the tree to compare with. `REF...` is where it and the examined commit parted, as in git diff."""
    from refactor_tool.world.tree import read_ref

    try:
        ref = settings.base
        if ref.endswith("..."):
            from refactor_tool.world.history import merge_base

            ref = merge_base(request.path, ref.removesuffix("..."), request.ref or "HEAD")
        return read_ref(request.path, ref)
    except NothingScanned as error:
        raise NothingScanned(f"the base: {error.message}", "give --base a commit of the same tree") from None
    except EnvironmentFailure as error:
        raise EnvironmentFailure(f"the base: {error.message}", error.hint) from None


def _examine_base(
    request: Request, settings: Config, wanted: Sequence[Rule], cache: ParseCache, step: Step
) -> gate.Examined:
    try:
        return _examine(_base(request, settings), wanted, cache, step)
    except Unparsable as error:  # no place in the tree that is judged
        raise Unparsable(f"the base: {error.message}", error.hint) from None


def _examine(snapshot: Snapshot, wanted: Sequence[Rule], cache: ParseCache, step: Step) -> gate.Examined:
    try:
        return _examined(snapshot, wanted, cache, step)
    except Unparsable as error:
        if error.path:
            error.path = f"{snapshot.prefix}{error.path}"
        raise


def _examined(snapshot: Snapshot, wanted: Sequence[Rule], cache: ParseCache, step: Step) -> gate.Examined:
    if wanted:
        snapshot = snapshot.whole()  # a hazard may be anywhere
    plan = engine.scan(snapshot, SUITE, progress=step, cache=cache)
    tree = tree_of(snapshot, cache)
    if wanted:
        from refactor_tool.rule import hazards

        step("hazards", len(SUITE), len(SUITE))
        with depth.told(tree):
            plan = _with_findings(plan, hazards(tree, wanted))
    ran = [info.id for info in catalogue.campaign()] + [rule.id for rule in wanted if rule.find is not None]
    return gate.Examined(plan, suppressions(tree), frozenset(ran))


def _compared(
    base: gate.Examined | None, tree: gate.Examined, wanted: Sequence[Rule], cache: ParseCache
) -> gate.Examined:
    """Add what the rules find that look at a change, where there is a base to compare with."""
    comparing = [rule for rule in wanted if rule.compare is not None]
    if base is None or not comparing:
        return tree
    from refactor_tool.rule import new_hazards

    after = tree_of(tree.plan.base, cache)
    with depth.told(after):
        found = new_hazards(tree_of(base.plan.base, cache), after, comparing)
    ran = (tree.ran or frozenset()) | {rule.id for rule in comparing}
    return gate.Examined(_with_findings(tree.plan, found), tree.suppressions, ran)


def _with_findings(plan: Plan, more: Iterable[Finding]) -> Plan:
    return replace(plan, findings=tuple(sorted((*plan.findings, *more), key=lambda found: found.order)))


def _with_fixes(report: Report, cache: ParseCache) -> Report:
    from refactor_tool.report.document import fingerprints
    from refactor_tool.world.templates import load_templates

    names = dict(zip(report.plan.findings, fingerprints(report.plan), strict=True))
    found = engine.fixes(report.plan, SUITE, load_templates(), cache)
    return replace(report, fixes=tuple((names[finding], changes) for finding, changes in found))


# --- the baseline -------------------------------------------------------------------------------------


def _baseline(request: Request, settings: Config, aside: Aside) -> Baseline | None:
    if request.write_baseline and (request.baseline is None or settings.base):
        what = "which file to write" if request.baseline is None else "a whole tree, not what is new since --base"
        raise UsageError(f"--write-baseline needs to know {what}", "check --baseline FILE --write-baseline")
    if not settings.baseline:
        return None
    from refactor_tool import baseline

    typed = request.baseline is not None or request.config is not None  # a path from here, not one in the tree
    data = read_file(Path(settings.baseline)) if typed else aside.read([settings.baseline]).get(settings.baseline)
    file = Path(settings.baseline) if typed else aside.root / settings.baseline
    name = name_below(aside.root, file)
    mend = _mend(request, settings.baseline if typed else name_from_here(file))
    if data is None:
        if request.write_baseline:
            return Baseline(name, (), mend)
        raise UsageError(f"{settings.baseline}: there is no such baseline", f"to write it: {mend}")
    return Baseline(name, baseline.parse(name, data), mend)


def _mend(request: Request, file: str) -> str:
    from refactor_tool.world.text import shell_line

    words = ["refactor-tool", "check", *([str(request.path)] if request.path is not None else [])]
    words += ["--ref", request.ref] if request.ref is not None else []
    words += ["--staged"] if request.staged else []
    words += ["--config", str(request.config)] if request.config is not None else []
    words += ["--fail-on", request.fail_on] if request.fail_on is not None else []
    words += ["--rules", request.rules] if request.rules is not None else []
    return shell_line(*words, "--baseline", file, "--write-baseline")


def _accept(
    request: Request,
    report: Report,
    before: Baseline | None,
    kept: Sequence[Accepted],
    judge: Callable[..., Report],
) -> Report:
    """Write the baseline that accepts what the gate holds against the tree and `kept`, and judge again with it."""
    from refactor_tool import baseline
    from refactor_tool.world.out import write_file_atomic

    if report.problems or before is None or request.baseline is None:
        return _remarked(report, "the baseline was not written")
    threshold = report.decision.fail_on
    wanted = [
        result
        for result in report.results
        if (result.status == "baseline" or is_held(result, "info" if threshold == "never" else threshold))
        and result.verdict != "gate"
    ]
    data = baseline.render(wanted, before.entries, kept)
    write_file_atomic(Path(request.baseline), data)
    with done(f"{request.baseline} was written"):
        again = judge(baseline=replace(before, entries=baseline.parse(before.name, data)))
    return _remarked(again, f"wrote {counted(len(wanted), 'finding')} to {request.baseline}")


def _remarked(report: Report, remark: str) -> Report:
    return replace(report, decision=replace(report.decision, line=f"{report.decision.line}; {remark}"))


# --- what is written ----------------------------------------------------------------------------------


def _failed(request: Request, problem: Problem) -> Report:
    label = request.ref if request.ref is not None else "staged" if request.staged else str(request.path or ".")
    return gate.failure(problem, label)


def _refused(error: Exception) -> Problem | None:
    refused = refusal(error)
    return None if refused is None else _problem(refused)


def _problem(error: ToolError) -> Problem:
    hint = f" ({error.hint})" if error.hint else ""
    if isinstance(error, Unparsable):
        return Problem(error.code, f"{error.what}{hint}", error.path, error.line)
    return Problem(error.code, f"{error.message}{hint}")


def _write_files(request: Request, report: Report, outputs: Sequence[Output]) -> None:
    """Write every file; where one cannot be written, the others tell of that, and its error is raised."""
    fault = _try_files(report, outputs)
    if fault is not None:
        _try_files(_failed(request, _problem(fault)), outputs)
        raise fault


def _try_files(report: Report, outputs: Sequence[Output]) -> ToolError | None:
    """Write the files that can be written, and return what stood in the way of the first of the others."""
    files = [(output.file, output.format) for output in outputs if output.file is not None]
    fault = None
    for at, (file, format_) in enumerate(files):
        from refactor_tool.world.out import write_file_atomic

        with done(f"only {at} of {len(files)} files were written" if at else ""):
            try:
                write_file_atomic(file, render(format_, report, Paint(colour=False)))
            except ToolError as error:
                fault = fault or error
    return fault


def _write(request: Request, report: Report, outputs: Sequence[Output]) -> None:
    """Write the files, then standard output; the decision goes to standard error where no text tells it."""
    from refactor_tool.report.checked import decision_line

    _write_files(request, report, outputs)
    shown = next((output.format for output in outputs if output.file is None), "" if outputs else "text")
    with done("the files were written" if _has_files(outputs) else ""):
        if shown:
            try:
                sys.stdout.buffer.write(render(shown, report, paint()))
                sys.stdout.buffer.flush()
            except OSError as error:
                if (refused := _refused(error)) is not None:
                    _try_files(_failed(request, refused), outputs)
                raise
        if shown != "text":
            print(decision_line(report, Paint(colour=colour_allowed(sys.stderr))), file=sys.stderr)


def _has_files(outputs: Sequence[Output]) -> bool:
    return any(output.file is not None for output in outputs)
