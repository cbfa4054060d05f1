"""Plain calls are read as typer reads them, or left to typer; and typer is not imported for them."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from typing import Any

import pytest

from refactor_tool import plain
from refactor_tool.cli import app
from refactor_tool.model import ExitCode
from tests.command import FIXTURE, ROOT

#: The function of `refactor_tool.commands.COMMAND` that takes the request.
DOORS = {"scan": "run", "plan": "run", "check": "check"}
#: A value that typer takes for an option that has no choices.
VALUE = "warning"

OPTIONS = [(command, name) for command, options in plain.COMMANDS.items() for name in options]


def as_typer_reads(argv: list[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the request that typer makes of the arguments."""
    asked: list[Any] = []

    def record(request: Any) -> ExitCode:
        asked.append(request)
        return ExitCode.CLEAN

    monkeypatch.setattr(import_module(f"refactor_tool.commands.{argv[0]}"), DOORS[argv[0]], record)
    with pytest.raises(SystemExit) as end:
        app(argv)
    assert not end.value.code, argv
    (request,) = asked
    return request


def as_read_plainly(argv: list[str]) -> Any:
    """Return the request of a plain call."""
    call = plain.read(argv)
    assert call is not None, argv
    module = import_module(f"refactor_tool.commands.{call.command}")
    return module.Request(call.path, **call.said)


def words(name: str, option: plain.Option) -> list[str]:
    if option.flag:
        return [name]
    return [name, option.choices[-1] if option.choices else VALUE]


@pytest.mark.parametrize("command", plain.COMMANDS)
@pytest.mark.parametrize("path", [[], ["some/folder"], ["."]], ids=["no path", "a path", "the current folder"])
def test_path_alone(command: str, path: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert as_read_plainly([command, *path]) == as_typer_reads([command, *path], monkeypatch)


@pytest.mark.parametrize(("command", "name"), OPTIONS, ids=[" ".join(each) for each in OPTIONS])
def test_each_option(command: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    option = plain.COMMANDS[command][name]
    said = words(name, option)
    alone = [command, *said]
    assert as_read_plainly(alone) == as_typer_reads(alone, monkeypatch)
    assert as_read_plainly(alone) != as_read_plainly([command]), "the option says nothing"
    before = [command, *said, "folder"]
    assert as_read_plainly(before) == as_typer_reads(before, monkeypatch)
    if not option.flag:
        joined = [command, "folder", "=".join(said)]
        assert as_read_plainly(joined) == as_typer_reads(joined, monkeypatch)
    if option.many:
        twice = [command, *said, "folder", name, "error"]
        assert as_read_plainly(twice) == as_typer_reads(twice, monkeypatch)


@pytest.mark.parametrize("command", plain.COMMANDS)
def test_all_options_together(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    argv = [
        command,
        "folder",
        *(word for name, option in plain.COMMANDS[command].items() for word in words(name, option)),
    ]
    assert as_read_plainly(argv) == as_typer_reads(argv, monkeypatch)


@pytest.mark.parametrize(
    "argv",
    [
        pytest.param([], id="no command"),
        pytest.param(["--version"], id="an option of the tool"),
        pytest.param(["doctor"], id="another command"),
        pytest.param(["sca"], id="part of a command"),
        pytest.param(["scan", "--help"], id="help"),
        pytest.param(["scan", "-h"], id="help in short"),
        pytest.param(["scan", "a", "b"], id="two paths"),
        pytest.param(["scan", ""], id="an empty path"),
        pytest.param(["scan", "--"], id="the end of the options"),
        pytest.param(["scan", "--", "-x"], id="a path that looks like an option"),
        pytest.param(["scan", "--ref"], id="an option without its value"),
        pytest.param(["scan", "--ref="], id="an empty value"),
        pytest.param(["scan", "--ref", "--format", "json"], id="an option for a value"),
        pytest.param(["scan", "--format", "xml"], id="a value that is no choice"),
        pytest.param(["scan", "--format", "JSON"], id="a choice in capitals"),
        pytest.param(["scan", "--fo", "json"], id="part of an option"),
        pytest.param(["scan", "--format", "json", "--format", "text"], id="twice what counts once"),
        pytest.param(["check", "--staged=yes"], id="a flag with a value"),
        pytest.param(["check", "--staged", "--staged"], id="a flag twice"),
        pytest.param(["check", "--no-staged"], id="a flag turned off"),
        pytest.param(["plan", "--out", "folder"], id="an option that only typer knows"),
    ],
)
def test_not_plain(argv: list[str]) -> None:
    assert plain.read(argv) is None


@pytest.mark.parametrize("argv", [["scan"], ["check"], ["plan", "--stdout"]], ids=" ".join)
def test_typer_is_not_imported(argv: list[str]) -> None:
    code = (
        "import sys; from refactor_tool.start import main\n"
        "try: main()\n"
        "except SystemExit: sys.exit(sorted({'typer', 'libcst', 'dask'} & sys.modules.keys()) or None)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code, *argv, FIXTURE], cwd=ROOT, capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr.decode()
    assert ran.stdout
