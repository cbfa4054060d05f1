"""The process as a whole: its exit code, its outputs, and how it ends when nobody can read them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from refactor_tool.model import File
from tests import command
from tests.campaign import fixture
from tests.command import FIXTURE, ROOT
from tests.repo import Repo

COMMAND = [sys.executable, "-m", "refactor_tool"]


@pytest.mark.parametrize(
    ("argv", "code", "text"),
    [
        pytest.param(["--version"], 0, b"refactor-tool ", id="read by typer"),
        pytest.param(["scan", FIXTURE], 1, b" sites: ", id="something to do"),
        pytest.param(["plan", FIXTURE, "--stdout"], 1, b"-- \n", id="the last bytes of a long output"),
        pytest.param(["scan", FIXTURE / "gone"], 2, b"", id="a mistake in a plain call"),
        pytest.param(["scan", "--unknown"], 2, b"", id="a mistake that typer tells"),
    ],
)
def test_exit_code_and_output(argv: list[str | Path], code: int, text: bytes) -> None:
    ran = subprocess.run([*COMMAND, *argv], cwd=ROOT, capture_output=True, check=False)
    assert (ran.returncode, text in ran.stdout, bool(ran.stderr)) == (code, True, code == 2)


def test_reader_that_goes_away() -> None:
    with subprocess.Popen(
        [*COMMAND, "plan", FIXTURE, "--stdout"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        assert child.stderr.read() == b""
    assert child.returncode == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full here")
@pytest.mark.parametrize("argv", [["scan", FIXTURE], ["--version"]], ids=["plain", "read by typer"])
def test_output_that_does_not_arrive(argv: list[str | Path]) -> None:
    with open("/dev/full", "wb") as full:
        ran = subprocess.run([*COMMAND, *argv], cwd=ROOT, stdout=full, stderr=subprocess.PIPE, check=False)
    assert ran.returncode not in (0, 1)
    assert b"No space left on device" in ran.stderr


@pytest.mark.parametrize(
    ("argv", "printer", "told"),
    [
        pytest.param(["scan", "."], "refactor_tool.commands.scan.write", "nothing was written", id="scan"),
        pytest.param(
            ["plan", ".", "--out", "out"], "refactor_tool.commands.plan.write", "the series is in out", id="plan"
        ),
        pytest.param(["apply", "."], "refactor_tool.report.text.render_plan", "executor-ready", id="apply"),
        pytest.param(
            ["matrix", ".", "--out", "out"], "refactor_tool.commands.matrix.matrix_text", "all is in out", id="matrix"
        ),
        pytest.param(
            ["check", ".", "--format", "json=out", "--format", "text"],
            "refactor_tool.report.checked.decision_line",
            "the files were written",
            id="check",
        ),
        pytest.param(
            ["check", ".", "--format", "json=out"], "refactor_tool.engine.scan", "the files tell so", id="early"
        ),
    ],
)
def test_an_interrupt_says_what_was_done_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, argv: list[str], printer: str, told: str
) -> None:
    repo = Repo(tmp_path / "r")
    repo.commit({path: File(data) for path, data in fixture().items()})

    def interrupted(*_args: object, **_named: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(printer, interrupted)
    ran = command.run(*argv, cwd=repo.path)
    assert ran.code == 130
    assert ran.err.startswith("refactor-tool: interrupted; ")
    assert told in ran.err
    assert (repo.path / "out").exists() == ("out" in " ".join(argv))
