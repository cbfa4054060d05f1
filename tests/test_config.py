"""Configuration: what a file may say, what a flag does to it, and that the published schema says the same."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import jsonschema
import pytest
from typer.main import get_command

from refactor_tool import config
from refactor_tool.cli import app
from refactor_tool.model import UsageError
from refactor_tool.report.formats import FORMATS
from tests.command import ROOT, run

SCHEMA = json.loads((ROOT / "schemas/config.schema.json").read_text(encoding="utf-8"))
NAMES = tuple(FORMATS)
RULES = ("L01", "L02", "D1")


def parse(text: str | bytes, name: str = config.FILE, folder: str = "") -> config.ConfigFile | None:
    return config.parse(name, folder, text.encode() if isinstance(text, str) else text, config.Known(NAMES, RULES))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", {}),
        ('fail-on = "warning"', {"fail-on": "warning"}),
        ('base = "origin/main"', {"base": "origin/main"}),
        ('baseline = "ci/accepted.jsonl"', {"baseline": "ci/accepted.jsonl"}),
        ('format = "github"', {"format": ["github"]}),
        ('format = ["github"]', {"format": ["github"]}),
        ('rules = "all"', {"rules": RULES}),
        ('rules = "none"', {"rules": ()}),
        ('rules = "D1, L01"', {"rules": ("L01", "D1")}),
        ('# a comment\nfail-on = "never"', {"fail-on": "never"}),
    ],
)
def test_key_is_read(text: str, values: dict[str, object]) -> None:
    found = parse(text)
    assert found is not None and dict(found.values) == values
    jsonschema.Draft202012Validator(SCHEMA).validate(tomllib.loads(text))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('fail_on = "error"', "there is no key 'fail_on'; did you mean 'fail-on'?"),
        ('basline = "x"', "there is no key 'basline'; did you mean 'baseline'?"),
        ('wholly-unlike = "x"', "there is no key 'wholly-unlike'"),
        ('fail-on = "eror"', "'eror' is no threshold; did you mean 'error'?"),
        ("fail-on = 3", "fail-on: not a text"),
        ('base = ""', "base: not a text"),
        ('format = "sarf"', "there is no format 'sarf'; did you mean 'sarif'?"),
        ('format = "json=/etc/passwd"', "names a file to write"),
        ('rules = "L1"', "there is no rule 'L1'; did you mean 'L01'?"),
        ('rules = ""', "rules: not a text"),
        ("rules = []", "rules: not a text"),
        ("format = []", "not a format or a list of formats"),
        ('format = ["text", "json"]', "2 formats, and only one goes to standard output"),
        ("format = [1]", "not a format or a list of formats"),
        ('baseline = "/etc/passwd"', "no path below this file's folder"),
        ('baseline = "../up"', "no path below this file's folder"),
        ('baseline = "a/../b"', "no path below this file's folder"),
        ('baseline = "a//b"', "no path below this file's folder"),
        ('baseline = "a\\\\b"', "no path below this file's folder"),
    ],
)
def test_mistake_is_told_with_file_key_and_near_name(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert caught.value.message.startswith(f"{config.FILE}: ")
    assert words in caught.value.message
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(SCHEMA).validate(tomllib.loads(text))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"fail-on = \xff", "not UTF-8 (byte 10)"),
        (b"fail-on", "not TOML"),
        (b"a = 1\na = 2", "not TOML"),
        (b"a = " + b"[" * 20_000, "not TOML"),
        (b'baseline = "a\\nb"', "no path below"),
        (b'baseline = "a\\u001b[2Jb"', "no path below"),
    ],
    ids=["bytes", "half a line", "a key twice", "nested deep", "line end in a path", "escape in a path"],
)
def test_hostile_file_is_a_usage_error(data: bytes, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(data)
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", None),
        ('[project]\nname = "refactor-tool"', None),
        ("[tool.refactor-tool]", {}),
        ('[tool.refactor-tool]\nfail-on = "info"', {"fail-on": "info"}),
        ('[tool.other]\nfail-on = "x"', None),
    ],
)
def test_pyproject_speaks_only_in_its_table(text: str, found: dict[str, str] | None) -> None:
    read = parse(text, config.PYPROJECT)
    assert (dict(read.values) if read is not None else None) == found


def test_schema_knows_the_very_formats_and_keys() -> None:
    assert tuple(SCHEMA["$defs"]["format"]["enum"]) == NAMES
    assert set(config.merge({}, None).origins) == set(SCHEMA["properties"])


def test_flag_wins_over_file_and_file_over_default() -> None:
    file = parse('fail-on = "info"\nbaseline = "b"', folder="sub/")
    found = config.merge({"fail-on": "never"}, file)
    assert (found.fail_on, found.baseline, found.formats) == ("never", "sub/b", ("text",))
    assert dict(found.origins) == {
        "fail-on": "--fail-on",
        "base": "default",
        "baseline": f"sub/{config.FILE}",
        "format": "default",
        "rules": "default",
    }


def options() -> list[tuple[str, str]]:
    """Return every option of every command that takes a value."""
    commands = get_command(app).commands
    return [
        (name, param.opts[0])
        for name, command in commands.items()
        for param in command.params
        if param.opts[0].startswith("--") and not getattr(param, "is_flag", False)
    ]


@pytest.mark.parametrize(("command", "option"), [*options(), ("scan", "an argument")])
def test_empty_value_is_told_and_nothing_is_done(command: str, option: str, tmp_path: Path) -> None:
    forms = [[""]] if option == "an argument" else [[option, ""], [f"{option}="]]
    for form in forms:
        ran = run(command, *form, cwd=tmp_path)
        assert (ran.code, ran.err.splitlines()[0]) == (2, f"refactor-tool: {option}: the value is empty")
    assert list(tmp_path.iterdir()) == []


# --- which file counts --------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "go.mod").write_text("module example.com/m\n")
    (tmp_path / "a.go").write_text("package a\n")
    return tmp_path


def in_force(*args: str | Path, **more) -> dict[str, str]:
    """Return what `doctor` says of each key."""
    text = run("doctor", *args, **more).out.decode()
    lines = text.partition("configuration\n")[2].splitlines()
    return {line.split()[0]: line.split(maxsplit=1)[1].strip() for line in lines}


def test_nearest_file_counts_and_doctor_says_which(folder: Path) -> None:
    assert in_force(folder)["fail-on"] == "error  [default]"
    (folder / "pyproject.toml").write_text('[tool.refactor-tool]\nfail-on = "info"\n')
    assert in_force(folder)["fail-on"] == "info  [pyproject.toml]"
    (folder / ".refactor-tool.toml").write_text('fail-on = "warning"\n')
    assert in_force(folder)["fail-on"] == "warning  [.refactor-tool.toml]"
    other = folder / "other.toml"
    other.write_text('fail-on = "never"\n')
    assert in_force(folder, "--config", other)["fail-on"].startswith("never")


def test_doctor_says_what_is_wrong_and_ends_with_its_code(folder: Path) -> None:
    (folder / ".refactor-tool.toml").write_text('fial-on = "warning"\n')
    ran = run("doctor", folder)
    assert ran.code == 2
    assert b"there is no key 'fial-on'; did you mean 'fail-on'?" in ran.out
    assert b"python" in ran.out, "the rest is shown all the same"


def test_doctor_without_git_says_what_to_install(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    ran = run("doctor", folder, env={"PATH": str(tmp_path_factory.mktemp("empty"))})
    assert ran.code == 3
    assert b"git          missing: needed for repositories: install git" in ran.out


def test_configuration_through_a_link_is_refused(folder: Path) -> None:
    (folder / "real.toml").write_text('fail-on = "never"\n')
    (folder / ".refactor-tool.toml").symlink_to("real.toml")
    assert run("doctor", folder).code == 2
