"""Show what is in force and why, and what this machine or repository lacks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from refactor_tool.commands.check import Request, read_config
from refactor_tool.model import ExitCode, ToolError, gravest
from refactor_tool.report.text import Paint, printable
from refactor_tool.world.machine import Fact, machine, repository
from refactor_tool.world.place import locate


def doctor(path: Path | None, config: Path | None, paint: Paint) -> tuple[str, ExitCode]:
    """Return the text to show and the gravest code of what is wrong; something optional that is missing is not."""
    codes = []
    lines = [paint("machine", "bold")]
    for fact in machine():
        lines.append(_fact(fact, paint))
        if fact.required and not fact.value:
            codes.append(ExitCode.ENVIRONMENT)
    sections = {"repository": _repository(path), "configuration": _config(path, config)}
    for title, facts in sections.items():
        lines += ["", paint(title, "bold")]
        try:
            lines += [_fact(fact, paint) for fact in facts]
        except ToolError as error:
            codes.append(error.code)
            lines.append(f"  {paint('wrong', 'red')}  {printable(error.message)}")
            lines += [f"         {printable(error.hint)}"] if error.hint else []
    return "\n".join(lines) + "\n", gravest(codes)


def _repository(path: Path | None) -> Iterator[Fact]:
    yield from repository(locate(path))


def _config(path: Path | None, config: Path | None) -> Iterator[Fact]:
    found = read_config(Request(path, config=config))
    values = {
        "fail-on": found.fail_on,
        "base": found.base or "none: every finding counts",
        "baseline": found.baseline or "none: nothing is accepted",
        "format": ", ".join(found.formats),
        "rules": "all with --base or --baseline" if found.rules is None else ", ".join(found.rules) or "none",
    }
    for key, value in values.items():
        yield Fact(key, f"{value}  [{found.origins[key]}]")


def _fact(fact: Fact, paint: Paint) -> str:
    value = printable(fact.value) if fact.value else f"{paint('missing', 'yellow')}: {fact.hint}"
    return f"  {fact.name:<12} {value}"
