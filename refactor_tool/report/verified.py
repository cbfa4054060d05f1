"""What `verify` found, for people and as JSON; neither leaves anything out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from refactor_tool import __version__
from refactor_tool.model import ExitCode
from refactor_tool.report.text import Paint, printable
from refactor_tool.report.words import counted
from refactor_tool.verified import LEVELS, Checked, Fault, Gap, Level, Origin, Ran, Status, Verification

SCHEMA = "refactor-tool-verify/1"

_COUNT = re.compile(r"^\d+ files in ")
_STYLES: dict[Status, str] = {"ok": "green", "failed": "red", "not verified": "yellow"}


def render_text(result: Verification, code: ExitCode, paint: Paint) -> str:
    """Return a table of stages and levels, every fault with its place and maker, every gap, and the verdict."""
    base = result.snapshot
    commit = f" ({base.commit[:12]})" if base.commit else ""
    what = {"series": "each step of the series", "change": "the change", "tree": "the tree as it is"}[result.kind]
    lines = [f"{paint(printable(base.label), 'bold')}{commit}: {what}"]
    if result.toolchain:
        lines.append(f"  {printable(result.toolchain)}")
    lines += ["", *_table(result, paint)] if result.stages else []
    faults = [
        line
        for at, stage in enumerate(result.stages)
        for ran in result.ran
        for checked in ran.checked[at : at + 1]
        for fault in checked.faults
        for line in _fault(stage.id, ran, fault, paint)
    ]
    lines += ["", *faults] if faults else []
    gaps = list(_gaps(result, paint))
    lines += ["", *gaps] if gaps else []
    for problem in result.problems:
        place = f"{printable(problem.path)}{f':{problem.line}' if problem.line else ''}: " if problem.path else ""
        step = f"{problem.step}: " if problem.step else ""
        lines.append(f"{paint('problem', 'red')} {step}{place}{printable(problem.message)}")
    lines += ["", _verdict(result, code, paint)]
    return "\n".join(lines) + "\n"


def render_json(result: Verification, code: ExitCode) -> bytes:
    """Return the document; the same input gives the same bytes, so it tells no times."""
    document = {
        "schema": SCHEMA,
        "tool": {"name": "refactor-tool", "version": __version__},
        "snapshot": {
            "source": result.snapshot.source,
            "label": result.snapshot.label,
            "commit": result.snapshot.commit,
        },
        "kind": result.kind,
        "toolchain": result.toolchain or None,
        "levels": [
            {"level": ran.level, "status": ran.status, "reason": ran.reason, "hint": ran.hint} for ran in result.ran
        ],
        "steps": [
            {
                "id": stage.id,
                "title": stage.title,
                "levels": [_checked(ran.checked[at]) for ran in result.ran if ran.checked],
            }
            for at, stage in enumerate(result.stages)
        ],
        "problems": [
            {
                "code": int(problem.code),
                "message": problem.message,
                "path": problem.path,
                "line": problem.line,
                "step": problem.step,
            }
            for problem in result.problems
        ],
        "summary": {
            "wanted": result.wanted,
            "reached": _reached(result),
            "errors": len(_faults(result)),
            "exit_code": int(code),
        },
    }
    return (json.dumps(document, indent=1) + "\n").encode()


# --- for people -----------------------------------------------------------------------------------------


def _table(result: Verification, paint: Paint) -> Iterator[str]:
    width = max(len(stage.id) for stage in result.stages)
    cells = max(len(status) for status in _STYLES)
    yield f"     {'':<{width}}  {'  '.join(f'{ran.level:<{cells}}' for ran in result.ran)}".rstrip()
    for at, stage in enumerate(result.stages):
        statuses = [ran.checked[at].status if ran.checked else ran.status for ran in result.ran]
        row = "  ".join(paint(f"{status:<{cells}}", _STYLES[status]) for status in statuses)
        yield f"  {at + 1:>2} {printable(stage.id):<{width}}  {row}".rstrip()
    notes = [(ran, _note(ran)) for ran in result.ran]
    width = max(len(level) for level in LEVELS)
    yield ""
    yield from (f"  {ran.level:<{width}}  {note}" for ran, note in notes)


def _note(ran: Ran) -> str:
    """Say what a level looked at, or why it did not."""
    if ran.reason:
        hint = f"; {ran.hint}" if ran.hint else ""
        return printable(f"not verified: {ran.reason}{hint}")
    configs = dict.fromkeys(config for checked in ran.checked for config in checked.configs)
    notes = list(dict.fromkeys(checked.note for checked in ran.checked if checked.note))
    told = " to ".join(dict.fromkeys((notes[0], notes[-1]))) if notes else ""
    return ": ".join(filter(None, (", ".join(configs), told))) or "nothing to look at"


def _fault(stage: str, ran: Ran, fault: Fault, paint: Paint) -> Iterator[str]:
    place = ":".join([printable(fault.path), *(str(each) for each in (fault.line, fault.column) if each is not None)])
    where = f" in {printable(fault.function)}" if fault.function else ""
    configs = f" [{', '.join(fault.configs)}]" if fault.configs else ""
    head = f"{paint(place, 'bold')}: {paint(ran.level, 'red')}: {printable(stage)}{where}"
    yield f"{head}: {printable(fault.message)}{configs}"
    if fault.origin is not None:
        yield f"    {_origin(fault.origin)}"


def _origin(origin: Origin) -> str:
    function = f" {origin.function}" if origin.function else ""
    template = f" with templates/{origin.template}" if origin.template else ""
    return printable(f"made by {origin.codemod} at {origin.path}:{origin.line}{function}{template}: {origin.message}")


def _gaps(result: Verification, paint: Paint) -> Iterator[str]:
    """Yield what was not looked at; what leaves a stage unproven first, what has the same reason on one line."""
    seen: dict[tuple[bool, str, str, tuple[str, ...], tuple[str, ...]], dict[str, None]] = {}
    found: dict[tuple[Level, Gap], tuple[str, ...]] = {}
    for ran in result.ran:
        for stage, checked in zip(result.stages, ran.checked, strict=False):
            for gap in checked.gaps:
                found[ran.level, gap] = (*found.get((ran.level, gap), ()), stage.id)
    for (level, gap), ids in found.items():
        key = (not gap.blocks, level, _COUNT.sub("", gap.reason), gap.configs, ids)
        seen.setdefault(key, {})[gap.what] = None
    for (spared, name, reason, configs, ids), whats in sorted(seen.items()):
        where = f" [{', '.join(configs)}]" if configs else ""
        of = "" if len(ids) == len(result.stages) else f" in {', '.join(map(printable, ids))}"
        word = paint("not looked at", "dim") if spared else paint("not verified", "yellow")
        yield f"{word}{' by' if spared else ''} {name}{of}: {printable(', '.join(whats))}: {printable(reason)}{where}"


def _verdict(result: Verification, code: ExitCode, paint: Paint) -> str:
    faults = len(_faults(result))
    if result.problems:
        return f"{paint('not verified', 'red')}: there is no series that could be; refactor-tool plan says more"
    if not result.stages:
        return "nothing to verify: nothing changes"
    if faults:
        new = "" if result.kind == "tree" else "new "
        return f"{paint('failed', 'red')}: {counted(faults, f'{new}error')}"
    if code is not ExitCode.CLEAN:
        reached = _reached(result)
        upto = f"; {reached} is" if reached else ""
        return f"{paint('not verified', 'yellow')}: level {result.wanted} is not proven{upto}"
    what = counted(len(result.stages), "step") if result.kind == "series" else result.kind
    new = "" if result.kind == "tree" else "new "
    return f"{paint('verified', 'green')} at level {result.wanted}: {what}, no {new}error"


def _faults(result: Verification) -> list[Fault]:
    return [fault for ran in result.ran for checked in ran.checked for fault in checked.faults]


def _reached(result: Verification) -> str | None:
    """Return the highest level up to which all is proven."""
    reached = None
    for ran in result.ran:
        if ran.status != "ok":
            break
        reached = ran.level
    return reached


# --- as JSON --------------------------------------------------------------------------------------------


def _checked(checked: Checked) -> dict[str, Any]:
    return {
        "level": checked.level,
        "status": checked.status,
        "configs": list(checked.configs),
        "note": checked.note,
        "errors": [_error(fault) for fault in checked.faults],
        "not_verified": [_gap(gap) for gap in checked.gaps],
    }


def _error(fault: Fault) -> dict[str, Any]:
    origin = fault.origin
    return {
        "path": fault.path,
        "line": fault.line,
        "column": fault.column,
        "function": fault.function,
        "code": fault.code,
        "message": fault.message,
        "configs": list(fault.configs),
        "made_by": {
            "codemod": origin.codemod,
            "path": origin.path,
            "line": origin.line,
            "function": origin.function,
            "template": origin.template or None,
            "message": origin.message,
        }
        if origin is not None
        else None,
    }


def _gap(gap: Gap) -> dict[str, Any]:
    return {"what": gap.what, "reason": gap.reason, "configs": list(gap.configs), "blocks": gap.blocks}
