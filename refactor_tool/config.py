"""What a check is to hold a tree to: a few keys, each also a flag, from `.refactor-tool.toml` or pyproject.toml. Pure.

A flag wins over the file, and the file over the default. The file comes with the tree that is judged, so it is data: it
names nothing outside the tree and no file to write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from refactor_tool.model import UsageError
from refactor_tool.outcome import FAIL_ON, FailOn
from refactor_tool.record import record

FILE = ".refactor-tool.toml"
PYPROJECT = "pyproject.toml"
#: Where a value came from when nobody said anything.
DEFAULT = "default"


@record
class ConfigFile:
    """What a file says; `folder` is where it lies, "" or ending in a slash.

    That is relative to the top of the repository; for a file that the user named, to where the user stands.
    """

    name: str
    folder: str
    values: Mapping[str, Any]


@record
class Config:
    """What is in force. `baseline` is relative to the top of the repository unless a flag named it or its file.

    `rules` are the ids of the hazard rules to run, None for those that fit: all of them where there is something to
    compare with, none where every old hazard would fail. `origins` says for every key where its value came from.
    """

    fail_on: FailOn
    base: str
    baseline: str
    formats: tuple[str, ...]
    rules: tuple[str, ...] | None
    origins: Mapping[str, str]


@record
class Known:
    """The names that a value may be: of formats and of hazard rules."""

    formats: tuple[str, ...]
    rules: tuple[str, ...]


def parse(name: str, folder: str, data: bytes, known: Known) -> ConfigFile | None:
    """Return what a file says; None for a pyproject.toml that says nothing of this tool.

    Raises `UsageError` naming file and key for what is not understood.
    """
    import tomllib

    if name == PYPROJECT and b"refactor-tool" not in data:
        return None
    shown = f"{folder}{name}"
    try:
        whole = tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        raise UsageError(f"{shown}: not UTF-8 (byte {error.start})", "TOML is UTF-8") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        why = "nested too deep" if isinstance(error, RecursionError) else str(error)
        raise UsageError(f"{shown}: not TOML: {why}", "mend the file") from None
    if name != PYPROJECT:
        values = whole
    else:
        tool = whole.get("tool", {})
        if not isinstance(tool, dict) or "refactor-tool" not in tool:
            return None
        values = tool["refactor-tool"]
        if not isinstance(values, dict):
            raise UsageError(f"{shown}: tool.refactor-tool is not a table", "write [tool.refactor-tool]")
    return ConfigFile(shown, folder, {key: _value(shown, key, value, known) for key, value in values.items()})


def merge(flags: Mapping[str, Any], file: ConfigFile | None) -> Config:
    """Return what is in force; `flags` hold only what the user gave, by the keys of the file."""
    defaults: dict[str, Any] = {"fail-on": "error", "base": "", "baseline": "", "format": ["text"], "rules": None}
    said = dict(file.values) if file is not None else {}
    if file is not None and "baseline" in said:
        said["baseline"] = file.folder + said["baseline"]
    name = file.name if file is not None else ""
    values = {**defaults, **said, **flags}
    origins = {key: f"--{key}" if key in flags else name if key in said else DEFAULT for key in defaults}
    return Config(
        values["fail-on"], values["base"], values["baseline"], tuple(values["format"]), values["rules"], origins
    )


def fail_on(text: str, where: str) -> FailOn:
    """Return the threshold that `text` names; `where` is the flag or file, for the error."""
    if text not in FAIL_ON:
        raise UsageError(
            f"{where}: {text!r} is no threshold{_near(text, FAIL_ON)}", f"it is one of {', '.join(FAIL_ON)}"
        )
    return text


def format_name(text: str, where: str, formats: Sequence[str]) -> str:
    """Return `text` if it names a format."""
    if text not in formats:
        raise UsageError(
            f"{where}: there is no format {text!r}{_near(text, formats)}", f"formats: {', '.join(formats)}"
        )
    return text


def day(text: str, where: str) -> str:
    """Return `text` if it is a day as YYYY-MM-DD."""
    from datetime import date

    try:
        if date.fromisoformat(text).isoformat() == text:
            return text
    except ValueError:
        pass
    raise UsageError(f"{where}: {text!r} is no day", "write it as YYYY-MM-DD")


def rule_ids(text: str, where: str, rules: Sequence[str]) -> tuple[str, ...]:
    """Return the rules that `text` names: `all`, `none` or ids with commas between them."""
    if text in ("all", "none"):
        return tuple(rules) if text == "all" else ()
    asked = [word.strip() for word in text.split(",")]
    for word in asked:
        if word not in rules:
            raise UsageError(f"{where}: there is no rule {word!r}{_near(word, rules)}", f"rules: {', '.join(rules)}")
    return tuple(rule for rule in rules if rule in asked)


def _value(name: str, key: str, value: Any, known: Known) -> Any:
    where = f"{name}: {key}"
    match key:
        case "fail-on":
            return fail_on(_text(where, value), where)
        case "base":
            return _text(where, value)
        case "baseline":
            path = _text(where, value)
            parts = path.split("/")
            if (
                not path
                or path.startswith("/")
                or "\\" in path
                or {"", ".", ".."} & set(parts)
                or not path.isprintable()
            ):
                raise UsageError(f"{where}: {path!r} is no path below this file's folder", "write a relative path")
            return path
        case "format":
            names = [value] if isinstance(value, str) else value
            if not isinstance(names, list) or not names or not all(isinstance(each, str) for each in names):
                raise UsageError(f"{where}: not a format or a list of formats", f"formats: {', '.join(known.formats)}")
            for each in names:
                if "=" in each:
                    raise UsageError(f"{where}: {each!r} names a file to write", f"give it as a flag: --format {each}")
                format_name(each, where, known.formats)
            if len(names) > 1:
                raise UsageError(
                    f"{where}: {len(names)} formats, and only one goes to standard output",
                    "name one, and give the others as flags: --format NAME=FILE",
                )
            return names
        case "rules":
            return rule_ids(_text(where, value), where, known.rules)
        case _:
            keys = ("fail-on", "base", "baseline", "format", "rules")
            raise UsageError(f"{name}: there is no key {key!r}{_near(key, keys)}", f"keys: {', '.join(keys)}")


def _text(where: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise UsageError(f"{where}: not a text", f'write {where.rpartition(" ")[2]} = "…"')
    return value


def _near(text: str, names: Sequence[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(text.replace("_", "-"), names, 1, 0.5)
    return f"; did you mean {near[0]!r}?" if near else ""
