"""Plain calls of `scan`, `plan` and `check`, read without typer, whose import takes a third of a scan.

A call is plain where every word of it is known here: the command, options in full, each with its value and none twice
that counts once, and at most one PATH. Everything else is typer's: help, mistakes and every message about them. A
test holds the two readings against each other, so that this table cannot say anything else than the command line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from refactor_tool.record import record


@record
class Option:
    """One option: the attribute of the command's `Request` that it sets, and how.

    A flag takes no value, a value of a `many` is added to a tuple. `choices` are the only values, where there are any.
    """

    attribute: str
    flag: bool = False
    many: bool = False
    choices: tuple[str, ...] = ()


@record
class Call:
    """A command, PATH, and the attributes of its `Request` that were said."""

    command: str
    path: Path | None
    said: Mapping[str, Any]


_FORMAT = Option("format", choices=("text", "json", "jsonl"))
COMMANDS: Mapping[str, Mapping[str, Option]] = {
    "scan": {"--ref": Option("refs", many=True), "--format": _FORMAT},
    "plan": {
        "--ref": Option("ref"),
        "--stdout": Option("stdout", flag=True),
        "--format": _FORMAT,
        "--only": Option("only", many=True),
        "--skip": Option("skip", many=True),
        "--keep-going": Option("keep_going", flag=True),
        "--signoff": Option("signoff"),
        "--author": Option("author"),
    },
    "check": {
        "--ref": Option("ref"),
        "--staged": Option("staged", flag=True),
        "--base": Option("base"),
        "--fail-on": Option("fail_on"),
        "--format": Option("formats", many=True),
        "--baseline": Option("baseline"),
        "--write-baseline": Option("write_baseline", flag=True),
        "--rules": Option("rules"),
        "--verify": Option("verify"),
        "--today": Option("today"),
    },
}


def read(argv: Sequence[str]) -> Call | None:
    """Return what the arguments ask for, None where they are not plain."""
    options = COMMANDS.get(argv[0]) if argv else None
    if options is None:
        return None
    path: str | None = None
    said: dict[str, Any] = {}
    words = iter(argv[1:])
    for word in words:
        name, equals, value = word.partition("=")
        option = options.get(name)
        if option is None:
            if word.startswith("-") or not word or path is not None:
                return None
            path = word
            continue
        if option.flag:
            if equals or option.attribute in said:
                return None
            said[option.attribute] = True
            continue
        value = value if equals else next(words, "")
        is_known = not option.choices or value in option.choices
        if not value or value.startswith("-") or not is_known or (option.attribute in said and not option.many):
            return None
        said[option.attribute] = (*said.get(option.attribute, ()), value) if option.many else value
    return Call(argv[0], Path(path) if path is not None else None, said)
