"""Colour and progress go to terminals that can show them, and nowhere else."""

from __future__ import annotations

import io
import os

import pytest

from refactor_tool.world import console
from refactor_tool.world.console import Progress, colour_allowed


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the time, in a list; the console reads it there."""
    now = [100.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: now[0])
    return now


@pytest.mark.parametrize(
    ("environment", "allowed"),
    [
        pytest.param({}, True, id="a terminal"),
        pytest.param({"NO_COLOR": "1"}, False, id="NO_COLOR"),
        pytest.param({"NO_COLOR": ""}, True, id="NO_COLOR that is empty counts as unset"),
        pytest.param({"TERM": "dumb"}, False, id="dumb terminal"),
    ],
)
def test_colour_is_for_terminals_that_want_it(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], allowed: bool
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert colour_allowed(Terminal()) is allowed
    assert colour_allowed(io.StringIO()) is False


def test_real_terminal_and_real_pipe_are_told_apart() -> None:
    ends = [*os.openpty(), *os.pipe()]
    try:
        for end, allowed in ((ends[1], True), (ends[3], False)):
            with open(end, "w", closefd=False) as stream:
                assert colour_allowed(stream) is allowed
    finally:
        for end in ends:
            os.close(end)


def test_quick_work_is_silent(clock: list[float]) -> None:
    terminal = Terminal()
    with Progress(terminal) as progress:
        for number in range(100):
            progress.step("reading", number, 100)
            clock[0] += 0.004
    assert terminal.getvalue() == ""


def test_long_work_is_one_line_that_goes_at_the_end(clock: list[float]) -> None:
    terminal = Terminal()
    with Progress(terminal) as progress:
        clock[0] += 0.5
        progress.step("reading", 1, 3)
        progress.step("reading", 2, 3)
        clock[0] += 0.1
        progress.step("proof", 3, 3)
    assert terminal.getvalue() == "\r\x1b[Kreading 1/3\r\x1b[Kproof 3/3\r\x1b[K"


def test_line_goes_when_the_work_fails(clock: list[float]) -> None:
    def work() -> None:
        with Progress(terminal) as progress:
            clock[0] += 1
            progress.step("reading", 1, 3)
            raise KeyboardInterrupt

    terminal = Terminal()
    with pytest.raises(KeyboardInterrupt):
        work()
    assert terminal.getvalue().endswith("\r\x1b[K")


@pytest.mark.parametrize("dumb", [True, False], ids=["dumb terminal", "pipe"])
def test_no_progress_where_a_line_cannot_be_taken_back(
    monkeypatch: pytest.MonkeyPatch, clock: list[float], dumb: bool
) -> None:
    if dumb:
        monkeypatch.setenv("TERM", "dumb")
    stream = Terminal() if dumb else io.StringIO()
    with Progress(stream) as progress:
        clock[0] += 60
        progress.step("reading", 1, 3)
    assert stream.getvalue() == ""


def test_progress_is_told_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress() as progress:
        progress.step("reading", 1, 3)
    assert capsys.readouterr() == ("", "")
