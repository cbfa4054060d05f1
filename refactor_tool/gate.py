"""Turn a plan into results and one decision. Pure: the day, the baseline and the base tree are arguments.

The order in which a finding is excused: by a comment in the source, by being in the base tree already, by the
baseline. What excuses nothing any more is itself a finding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from refactor_tool.model import ExitCode, Finding, Leave, Places, Plan, Position, Problem, Snapshot, gravest
from refactor_tool.outcome import (
    SEVERITIES,
    Accepted,
    Baseline,
    Decision,
    FailOn,
    Pending,
    Report,
    Result,
    RuleInfo,
    Suppression,
    identity,
    is_held,
)
from refactor_tool.record import record, replace
from refactor_tool.report.document import fingerprint_of, fingerprint_parts, reason, severity, verdict_word
from refactor_tool.report.words import counted

#: How many pairs of a file that is gone and one that is new are compared; beyond that the latter count as new.
_MOST_PAIRS = 250_000
#: What the gate itself can find.
RULES: tuple[RuleInfo, ...] = tuple(
    RuleInfo(id, title, help, "")
    for id, title, help in (
        (
            "bad-suppression",
            "A suppression comment says nothing the gate can use",
            "Write it as //refactor-tool:ignore RULE reason [until=YYYY-MM-DD]: rule and reason are required.",
        ),
        (
            "unused-suppression",
            "A suppression comment suppresses nothing",
            "Nothing that the named rule reports starts where the comment stands. Take the comment out.",
        ),
        (
            "stale-baseline",
            "The baseline accepts a finding that is gone",
            "Write the baseline anew, so that the same finding fails when it comes back.",
        ),
    )
)


@record
class Examined:
    """One tree: what was found in it, by which rules, and the suppression comments in its source.

    `ran` are ids; None says that all did. Whether a comment or a baseline's entry for a rule that did not run is of use
    is not known.
    """

    plan: Plan
    suppressions: tuple[Suppression, ...] = ()
    ran: frozenset[str] | None = None


def judge(
    tree: Examined,
    rules: Sequence[RuleInfo],
    *,
    fail_on: FailOn = "error",
    today: str = "",
    base: Examined | None = None,
    base_name: str = "",
    baseline: Baseline | None = None,
    proof: Sequence[Result] = (),
) -> Report:
    """Return every result and the decision.

    `rules` are all there are, in the order to name them. `today` is YYYY-MM-DD; a suppression counts up to and
    including its last day. With `base`, what counts there already is `known`; a file that moved since is the same file.
    `proof` is what the Go toolchain found; nothing excuses that.
    """
    plan = tree.plan
    ids = [rule.id for rule in rules]
    found = _examine(tree, ids, today)
    if base is not None:
        moves = _moves(base.plan.base, plan.base, {result.path for result in found})
        there = {result.fingerprint for result in _examine(base, ids, today) if result.status == "open"}
        names = [result.fingerprint for result in _examine(tree, ids, today, moves)] if moves else None
        found = list(_known(found, names, there, base_name))
    if baseline is not None:
        left = unjudged(baseline, tree.ran, ids)
        found = [*_accepted(found, baseline), *_stale(found, baseline, left)]
    results = tuple(sorted([*found, *proof], key=_order))
    problems = _untold(plan.problems, results)
    pending = _pending(plan, results, ids)
    decision = _decision(plan, results, problems, pending, fail_on)
    return Report(plan, (*rules, *RULES), results, problems, pending, decision, base_name)


def unjudged(baseline: Baseline, ran: Set[str] | None, rules: Sequence[str]) -> tuple[Accepted, ...]:
    """Return the entries of rules that did not run: whether what they accept is there is not known."""
    return tuple(entry for entry in baseline.entries if ran is not None and entry.id in rules and entry.id not in ran)


def failure(problem: Problem, label: str = ".", fail_on: FailOn = "error") -> Report:
    """Return the report of a run that came to no result, so that no file of an earlier run speaks for it.

    The problem's path is from the top of the repository.
    """
    nothing = Snapshot({}, label=label)
    problems = (problem,)
    plan = Plan(base=nothing, findings=(), steps=(), final=nothing, problems=problems)
    return Report(plan, RULES, (), problems, (), _decision(plan, (), problems, (), fail_on))


def _examine(tree: Examined, rules: Sequence[str], today: str, moves: Mapping[str, str] | None = None) -> list[Result]:
    """Return what one tree has by itself: its findings, suppressed or not, then what is wrong with its comments.

    `moves` are the names that files have elsewhere, for the fingerprints.
    """
    places = Places(tree.plan.base)
    pairs = zip(tree.plan.findings, fingerprint_parts(tree.plan, moves or {}), strict=True)
    held = ((finding, fingerprint_of(*parts)) for finding, parts in pairs if not isinstance(finding.verdict, Leave))
    found = [_result(places, finding, name) for finding, name in held]
    faults = {comment: comment.fault or _unknown_rule(comment.rule, rules) for comment in tree.suppressions}
    covers: dict[tuple[str, str, int], Suppression] = {}
    for comment in sorted((comment for comment, fault in faults.items() if not fault), key=_lasts, reverse=True):
        for line in range(comment.first, comment.last + 1):
            covers.setdefault((comment.path, comment.rule, line), comment)
    pairs_covered = [(result, covers.get((result.path, result.id, result.start.line))) for result in found]
    used = {cover for _, cover in pairs_covered}
    twins: Counter[tuple[str, ...]] = Counter()
    out = [_excused(result, cover, today) for result, cover in pairs_covered]
    for comment, fault in faults.items():
        is_judged = tree.ran is None or comment.rule in tree.ran
        if fault or (is_judged and comment not in used):
            id = "bad-suppression" if fault else "unused-suppression"
            message = f"this suppression does not count: {fault}" if fault else _useless(comment, found)
            path = (moves or {}).get(comment.path, comment.path)
            key = (id, path, comment.rule, comment.reason, comment.until)
            twins[key] += 1
            out.append(_complaint(id, message, comment, places, fingerprint_of(*key, str(twins[key]))))
    return out


def _lasts(comment: Suppression) -> tuple[bool, str]:
    """Order comments by how long they count: of several that cover a finding the longest does."""
    return not comment.until, comment.until


def _useless(comment: Suppression, found: Iterable[Result]) -> str:
    here = (each for each in found if (each.path, each.id) == (comment.path, comment.rule))
    if any(comment.first <= each.start.line <= comment.last for each in here):
        return f"another comment covers the {comment.rule} that starts here, and counts for longer"
    return f"nothing of {comment.rule} starts here"


def _excused(result: Result, cover: Suppression | None, today: str) -> Result:
    if cover is None:
        return result
    if not cover.until or today <= cover.until:
        return replace(result, status="suppressed", why=cover.reason)
    expired = f"its suppression in line {cover.line} counted until {cover.until}"
    return replace(result, advice=f"{result.advice}; {expired}" if result.advice else expired)


def _result(places: Places, finding: Finding, fingerprint: str) -> Result:
    word = verdict_word(finding)
    grade = severity(finding)
    if grade is None or word == "leave":
        raise ValueError(f"{finding.id} at {finding.path}: left alone, and yet open")
    return Result(
        id=finding.id,
        severity=grade,
        verdict="unclassified" if finding.is_unclassified else word,
        path=finding.path,
        span=finding.span,
        start=places.position(finding.path, finding.span.start),
        end=places.position(finding.path, finding.span.end),
        function=finding.function,
        message=finding.message,
        advice=reason(finding),
        fingerprint=fingerprint,
    )


def _order(result: Result) -> tuple[str, Position, Position, str, str, str]:
    return result.path, result.start, result.end, result.id, result.message, result.fingerprint


# --- what excuses a finding ---------------------------------------------------------------------------


def _unknown_rule(rule: str, rules: Sequence[str]) -> str:
    if rule in rules:
        return ""
    from difflib import get_close_matches

    near = get_close_matches(rule, rules, 1, 0.5)
    return f"there is no rule {rule!r}{f'; did you mean {near[0]!r}?' if near else ''}"


def _complaint(id: str, message: str, comment: Suppression, places: Places, fingerprint: str) -> Result:
    return Result(
        id=id,
        severity="error",
        verdict="gate",
        path=comment.path,
        span=comment.span,
        start=places.position(comment.path, comment.span.start),
        end=places.position(comment.path, comment.span.end),
        function="",
        message=message,
        advice=next(rule.help for rule in RULES if rule.id == id),
        fingerprint=fingerprint,
    )


def _known(found: Sequence[Result], names: Sequence[str] | None, there: Set[str], base_name: str) -> Iterator[Result]:
    """Mark what counts in the base too; `names` are the fingerprints with the paths that the base has."""
    for result, name in zip(found, names or [result.fingerprint for result in found], strict=True):
        is_known = result.status == "open" and name in there
        yield replace(result, status="known", why=f"in {base_name} already") if is_known else result


def _accepted(found: Iterable[Result], baseline: Baseline) -> Iterator[Result]:
    entries = {identity(entry): entry for entry in baseline.entries}
    for result in found:
        entry = entries.get(identity(result))
        if entry is not None and result.status == "open" and result.verdict != "gate":
            yield replace(result, status="baseline", why=entry.note or f"accepted in {baseline.name}")
        else:
            yield result


def _stale(found: Iterable[Result], baseline: Baseline, left: Sequence[Accepted]) -> Iterator[Result]:
    there = {result.fingerprint: result for result in found}
    for entry in baseline.entries:
        other = there.get(entry.fingerprint)
        if other is None and entry in left:
            continue
        if other is None or identity(other) != identity(entry):
            place = Position(entry.line, 1)
            what = "accepted and no longer there" if other is None else "the fingerprint is not of what this line says"
            yield Result(
                id="stale-baseline",
                severity="error",
                verdict="gate",
                path=baseline.name,
                span=None,
                start=place,
                end=place,
                function=entry.function,
                message=f"{what}: {entry.id} in {entry.path}: {entry.message}",
                advice=f"write the baseline anew: {baseline.mend}",
                fingerprint=fingerprint_of("stale-baseline", *identity(entry)),
            )


# --- files that moved ---------------------------------------------------------------------------------


def _moves(old: Snapshot, new: Snapshot, paths: Iterable[str]) -> dict[str, str]:
    """Return, for each of `paths` that is new, the file it was: the same bytes, else at least half of the lines."""
    gone = {path: file.data for path, file in old.files.items() if path not in new.files and path.endswith(".go")}
    come = {path: new.files[path].data for path in sorted(set(paths) - set(old.files)) if path in new.files}
    out: dict[str, str] = {}
    same: dict[bytes, list[str]] = {}
    for name in sorted(gone, reverse=True):
        same.setdefault(gone[name], []).append(name)
    for path, data in come.items():
        if same.get(data):
            out[path] = same[data].pop()
    left = {name: _lines(gone[name]) for name in sorted(gone.keys() - set(out.values()))}
    edited = {path: _lines(data) for path, data in come.items() if path not in out}
    named: dict[str, list[str]] = {}
    for name in left:
        named.setdefault(_base(name), []).append(name)
    # beside its only namesake first, as git does it: when a folder moves, a thousand files do
    for path, lines in edited.items():
        namesakes = named.get(_base(path), [])
        if len(namesakes) == 1:
            out |= _taken(path, lines, left, namesakes)
    edited = {path: lines for path, lines in edited.items() if path not in out}
    if len(edited) * len(left) <= _MOST_PAIRS:
        for path, lines in edited.items():
            out |= _taken(path, lines, left, list(left))
    return out


def _taken(path: str, lines: Counter[bytes], left: dict[str, Counter[bytes]], names: list[str]) -> dict[str, str]:
    """Take what a file was, the likest of some names, out of what is left; {} where none is like it."""
    likeness = {name: _likeness(left[name], lines) for name in names if name in left}
    best = min(likeness, key=lambda name: (-likeness[name], name), default="")
    if not best or likeness[best] < 0.5:
        return {}
    del left[best]
    return {path: best}


def _base(path: str) -> str:
    return path.rpartition("/")[2]


def _lines(data: bytes) -> Counter[bytes]:
    return Counter(data.split(b"\n"))


def _likeness(one: Counter[bytes], other: Counter[bytes]) -> float:
    """Return how much of two files is the same lines, 0 to 1."""
    return 2 * (one & other).total() / (one.total() + other.total())


# --- the decision -------------------------------------------------------------------------------------


def _untold(problems: Iterable[Problem], results: Iterable[Result]) -> tuple[Problem, ...]:
    """Leave out the problems that a result tells as well, which may be excused; the others fail the gate."""
    told = {(result.path, result.start.line) for result in results}
    return tuple(
        problem
        for problem in problems
        if problem.code is not ExitCode.FINDINGS or (problem.path, problem.line) not in told
    )


def _pending(plan: Plan, results: Iterable[Result], order: Sequence[str]) -> tuple[Pending, ...]:
    campaign = {finding.id for finding in plan.findings if finding.kind == "codemod"}
    counts = Counter(result.id for result in results if result.id in campaign and result.status == "open")
    return tuple(Pending(id, counts[id]) for id in order if counts[id])


def _decision(
    plan: Plan,
    results: Sequence[Result],
    problems: Sequence[Problem],
    pending: Sequence[Pending],
    fail_on: FailOn,
) -> Decision:
    held = [result for result in results if is_held(result, fail_on)]
    code = gravest([*(problem.code for problem in problems), *([ExitCode.FINDINGS] if held else [])])
    parts = list(_parts(plan, results, problems, pending, held, fail_on))
    verdict = "passed" if code is ExitCode.CLEAN else f"failed (exit {int(code)})"
    return Decision(code, f"{verdict}: {'; '.join(parts)}", fail_on)


def _parts(
    plan: Plan,
    results: Sequence[Result],
    problems: Sequence[Problem],
    pending: Sequence[Pending],
    held: Sequence[Result],
    fail_on: FailOn,
) -> Iterator[str]:
    if problems:
        worst = next(problem for problem in problems if problem.code is gravest(each.code for each in problems))
        place = f"{worst.path}:{worst.line}: " if worst.line else f"{worst.path}: " if worst.path else ""
        step = f"{worst.step}: " if worst.step else ""
        more = f" (and {counted(len(problems) - 1, 'more problem')})" if len(problems) > 1 else ""
        yield f"{step}{place}{worst.message}{more}"
    if held:
        yield f"{counted(len(held), 'finding')} at or above {fail_on}"
    if pending:
        yield "steps to do: " + ", ".join(f"{step.id} ({counted(step.sites, 'site')})" for step in pending)
    counts = Counter(result.severity for result in results if result.status == "open")
    counts.subtract(result.severity for result in held)
    below = ", ".join(f"{counts[grade]} {grade}" for grade in SEVERITIES if counts[grade])
    if below:
        yield f"not held against it with --fail-on {fail_on}: {below}"
    excused = Counter[str](result.status for result in results if result.status != "open")
    yield from (f"{excused[status]} {word}" for status, word in _EXCUSES.items() if excused[status])
    if not problems and not results:
        yield f"nothing to do in {counted(len(plan.findings), 'site')}"


_EXCUSES = {"known": "there before", "baseline": "in the baseline", "suppressed": "suppressed in the source"}
