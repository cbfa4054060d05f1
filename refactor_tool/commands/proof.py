"""Let the Go toolchain have its say in the gate: what it finds in a tree, or in a change what was not there before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from refactor_tool.commands import verify
from refactor_tool.gosrc.parse import ParseCache
from refactor_tool.model import ExitCode, Position, Problem, Snapshot
from refactor_tool.outcome import Result, RuleInfo
from refactor_tool.report.document import fingerprint_of
from refactor_tool.report.words import counted
from refactor_tool.verified import Level, Verification

RULE = RuleInfo(
    "verify",
    "The Go toolchain finds what was not there before",
    "The tree is checked in every build configuration, without running any of its code. See refactor-tool verify.",
    "",
)


def proof(
    before: Snapshot | None, after: Snapshot, level: Level, cache: ParseCache, step: verify.Step
) -> tuple[tuple[Result, ...], tuple[Problem, ...]]:
    """Return what is wrong, and what could not be looked at: not verified is not verified."""
    verification = verify.prove(before, after, level, cache, step)
    return tuple(_results(verification)), tuple(_problems(verification))


def _results(verification: Verification) -> Iterator[Result]:
    twins: Counter[tuple[str, ...]] = Counter()
    for ran in verification.ran:
        for fault in (fault for checked in ran.checked for fault in checked.faults):
            key = (RULE.id, fault.path, fault.function, fault.code, fault.message)
            twins[key] += 1
            place = Position(fault.line or 1, fault.column or 1)
            where = f" ({', '.join(fault.configs)})" if fault.configs else ""
            yield Result(
                id=RULE.id,
                severity="error",
                verdict="gate",
                path=fault.path,
                span=None,
                start=place,
                end=place,
                function=fault.function,
                message=f"{fault.message}{where}",
                advice=f"level {ran.level} of refactor-tool verify",
                fingerprint=fingerprint_of(*key, str(twins[key])),
            )


def _problems(verification: Verification) -> Iterator[Problem]:
    for ran in verification.ran:
        if ran.lacking:
            yield Problem(ExitCode.ENVIRONMENT, f"level {ran.level} not verified: {ran.reason} ({ran.hint})")
        gaps = [gap for checked in ran.checked for gap in checked.gaps if gap.blocks]
        if gaps:
            more = f" (and {counted(len(gaps) - 1, 'more gap')})" if len(gaps) > 1 else ""
            yield Problem(
                ExitCode.ENVIRONMENT, f"level {ran.level} not verified: {gaps[0].what}: {gaps[0].reason}{more}"
            )
