"""Run the command line: `python -m refactor_tool`, or the installed `refactor-tool`.

A run makes some hundred thousand values that live until it ends. The collector is told so, and the process ends without
taking them apart one by one, which took a tenth of a scan.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from contextlib import suppress
from typing import NoReturn

#: Values made before the youngest of them are looked through for cycles; Python's own 700 fits programs that run on.
_MANY = 200_000


def run() -> NoReturn:
    """Run the command line and end the process with its exit code."""
    gc.set_threshold(_MANY, 50, 50)
    from refactor_tool.start import main

    _heed_signals()
    try:
        main()
    except SystemExit as end:
        if isinstance(end.code, int):
            _leave(end.code)
        raise


def _heed_signals() -> None:
    """Let a run that is told to end do so as at an interrupt; what the caller ignores stays ignored."""
    for number in (getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP")):
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)


def _leave(code: int) -> NoReturn:
    """End the process at once: whether what was printed has arrived is in the code already."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with suppress(OSError, ValueError):
                stream.flush()
    os._exit(code)


if __name__ == "__main__":
    run()
