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


@pytest.mark.skipif(sys.platform == "win32", reason="no limit on the size of a file here")
@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
def test_output_that_is_cut_short_is_no_output(tmp_path: Path, unbuffered: str) -> None:
    import resource

    with (tmp_path / "out").open("wb") as cut:
        ran = subprocess.run(
            [*COMMAND, "check", FIXTURE, "--format", "json"],
            cwd=ROOT,
            env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
            stdout=cut,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
            check=False,
        )
    assert ran.returncode == 3
    assert b"cannot be written: File too large" in ran.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="no limit on open files here")
def test_too_few_open_files_are_a_fault_of_the_machine(tmp_path: Path) -> None:
    import resource

    out = tmp_path / "out"
    ran = subprocess.run(
        [*COMMAND, "check", FIXTURE, "--format", f"json={out}"],
        cwd=ROOT,
        capture_output=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (9, 9)),
        check=False,
    )
    assert ran.returncode == 3
    assert b"Too many open files" in ran.stderr
    assert b"Traceback" not in ran.stderr
    assert not out.exists() or b'"exit_code": 3' in out.read_bytes()


@pytest.mark.parametrize("option", ["--baseline={}", "--config={}", "--format=json={}"])
@pytest.mark.parametrize("name", ["loop", "n" * 300])
def test_path_that_no_disk_takes_is_a_fault_of_the_machine(tmp_path: Path, option: str, name: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    ran = command.run("check", FIXTURE, option.format(tmp_path / name))
    assert ran.code == 3


@pytest.mark.parametrize("argv", [["apply", "."], ["verify", "."]], ids=" ".join)
def test_no_temporary_folder_is_a_fault_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, argv: list[str]
) -> None:
    repo = Repo(tmp_path / "r")
    repo.commit({path: File(data) for path, data in fixture().items()})
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    ran = command.run(*argv, cwd=repo.path)
    assert ran.code == 3
    assert "no temporary folder can be made" in ran.err + ran.out.decode()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full here")
@pytest.mark.parametrize(
    ("argv", "code"),
    [
        pytest.param(["scan", FIXTURE], 1, id="nothing to say"),
        pytest.param(["scan", FIXTURE / "gone"], 2, id="our word"),
        pytest.param(["scan", "--unknown"], 2, id="the word of typer"),
        pytest.param(["check", FIXTURE, "--format", "json"], 1, id="the decision"),
    ],
)
def test_complaint_that_does_not_arrive_changes_no_exit_code(argv: list[str | Path], code: int) -> None:
    with open("/dev/full", "wb") as full:
        ran = subprocess.run([*COMMAND, *argv], cwd=ROOT, stdout=subprocess.PIPE, stderr=full, check=False)
    assert ran.returncode == code


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
