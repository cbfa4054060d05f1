"""The file of accepted findings: one JSON object a line, sorted, so that it reviews and merges as text. Pure.

The first line names the format. What stands in `note` is the reviewer's and is kept when the file is written anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from refactor_tool.model import UsageError
from refactor_tool.outcome import Accepted, Result, identity

SCHEMA = "refactor-tool/baseline/1"
_REQUIRED = ("path", "id", "function", "fingerprint", "message")
_KEYS = (*_REQUIRED, "note")


def parse(name: str, data: bytes) -> tuple[Accepted, ...]:
    """Return the entries of a baseline file; a line that stands twice counts once.

    Raises `UsageError` naming the line that is not one of ours.
    """
    lines = data.split(b"\n")
    head = _object(name, 1, lines[0])
    if head != {"schema": SCHEMA}:
        raise UsageError(
            f'{name}:1: not a baseline of this tool, which starts with {{"schema": "{SCHEMA}"}}',
            "write it with check --write-baseline",
        )
    found: dict[tuple[str, ...], Accepted] = {}
    for number, line in enumerate(lines[1:], start=2):
        if line.strip():
            entry = _entry(name, number, _object(name, number, line))
            found.setdefault(identity(entry), entry)
    return tuple(found.values())


def render(results: Iterable[Result], before: Iterable[Accepted] = (), kept: Iterable[Accepted] = ()) -> bytes:
    """Return the file that accepts `results` and what `kept` did; notes of the entries `before` are kept too."""
    notes = {identity(entry): entry.note for entry in before}
    every: tuple[Accepted | Result, ...] = (*kept, *results)
    rows = {
        identity(found): {
            "path": found.path,
            "id": found.id,
            "function": found.function,
            "fingerprint": found.fingerprint,
            "message": found.message,
            **({"note": notes[identity(found)]} if notes.get(identity(found)) else {}),
        }
        for found in every
    }
    lines = [{"schema": SCHEMA}, *(row for _, row in sorted(rows.items()))]
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def _object(name: str, number: int, line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        hint = "finish the merge" if line[:7] in (b"<<<<<<<", b"=======", b">>>>>>>") else "one JSON object a line"
        raise UsageError(f"{name}:{number}: not a line of a baseline", hint)
    return value


def _entry(name: str, number: int, value: dict[str, Any]) -> Accepted:
    wrong = [key for key in value if key not in _KEYS or not isinstance(value[key], str)]
    lacking = [key for key in _REQUIRED if key not in value]
    if wrong or lacking:
        what = f"{wrong[0]!r} is no text of a baseline's line" if wrong else f"{lacking[0]!r} is missing"
        raise UsageError(f"{name}:{number}: {what}", f"its keys are {', '.join(_KEYS)}")
    return Accepted(**value, line=number)
