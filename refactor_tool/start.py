"""The way into the tool: the command that argv asks for, one boundary for every way to end, one exit code."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

from refactor_tool import __version__, plain
from refactor_tool.model import ExitCode, ToolError, refusal


def main() -> NoReturn:
    """Run the command line and exit with a code of the table in the README."""
    _require_streams()
    with _boundary():
        call = plain.read(sys.argv[1:])
        if call is not None:
            raise SystemExit(_run(call))
        from refactor_tool.cli import app

        app()
    raise SystemExit(ExitCode.CLEAN)


def _require_streams() -> None:
    """Leave where there is no standard output; without standard error, go on and complain to nobody."""
    own = sys.__stderr__
    if sys.stderr is None:  # descriptor 2 is closed
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - it is open as long as the process
    elif own is not None and sys.stderr is own:
        sys.stderr = _Unheard(own.buffer, own.encoding, own.errors, line_buffering=True)
    if sys.stdout is None:
        _complain("the output cannot be written: standard output is closed", "write it to a file or a pipe")
        raise SystemExit(ExitCode.ENVIRONMENT)
    if isinstance(getattr(sys.stdout, "buffer", None), io.RawIOBase):  # PYTHONUNBUFFERED: a write may be cut short
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(sys.stdout.buffer), sys.stdout.encoding, sys.stdout.errors)


class _Unheard(io.TextIOWrapper):
    """Standard error: what cannot be written there is lost, and the exit code stands all the same."""

    def write(self, text: str, /) -> int:
        with suppress(OSError):
            super().write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            super().flush()


def _run(call: plain.Call) -> ExitCode:
    match call.command:
        case "scan":
            from refactor_tool.commands import scan

            return scan.run(scan.Request(call.path, **call.said))
        case "plan":
            from refactor_tool.commands import plan

            return plan.run(plan.Request(call.path, **call.said))
        case "check":
            from refactor_tool.commands import check

            return check.check(check.Request(call.path, **call.said))
        case _:
            raise ValueError(f"no command {call.command!r}")


@contextmanager
def _boundary() -> Iterator[None]:
    """Turn every way to end into one clear line and the right exit code."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()  # whether it can be written must be known before the exit code is
    except ToolError as error:
        _complain(error.message, error.hint)
        raise SystemExit(error.code) from None
    except KeyboardInterrupt as stop:
        _interrupted(stop)
        raise SystemExit(ExitCode.INTERRUPTED) from None
    except SystemExit as end:
        if end.code == ExitCode.INTERRUPTED:  # typer has made this of the interrupt, and said nothing
            _interrupted(end)
        raise
    except BrokenPipeError:
        raise SystemExit(ExitCode.FINDINGS) from None
    except Exception as error:
        if (refused := refusal(error)) is not None:
            _complain(refused.message, refused.hint)
            raise SystemExit(refused.code) from None
        import traceback

        traceback.print_exc()
        _complain(f"internal error in version {__version__}", "please report it with the text above")
        raise SystemExit(ExitCode.INTERNAL) from None


def _interrupted(error: BaseException) -> None:
    """Say that it was interrupted, and what was done before, if the interrupt behind an error tells."""
    behind: BaseException | None = error
    while behind is not None and not isinstance(behind, KeyboardInterrupt):
        behind = behind.__cause__ or behind.__context__
    _complain(f"interrupted; {str(behind or '') or 'nothing was written'}")


def _complain(message: str, hint: str = "") -> None:
    print(f"refactor-tool: {_printable(message)}", file=sys.stderr)
    if hint:
        print(f"  {_printable(hint)}", file=sys.stderr)


def _printable(text: str) -> str:
    try:
        from refactor_tool.report.text import printable
    except OSError:  # no file can be opened any more, not even that one
        return ascii(text)
    return printable(text)
