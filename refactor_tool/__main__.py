"""Run the command line: `python -m refactor_tool`, or the installed `refactor-tool`.

A run makes some hundred thousand values that live until it ends. The collector is told so, and the process ends without
taking them apart one by one, which took a tenth of a scan.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import NoReturn

#: Values made before the youngest of them are looked through for cycles; Python's own 700 fits programs that run on.
_MANY = 200_000


def run() -> NoReturn:
    """Run the command line and end the process with its exit code."""
    gc.set_threshold(_MANY, 50, 50)
    from refactor_tool.start import main

    try:
        main()
    except SystemExit as end:
        if isinstance(end.code, int):
            _leave(end.code)
        raise


def _leave(code: int) -> None:
    """End the process at once if what was printed has arrived; else return, for the interpreter to say why not."""
    for stream in (sys.stdout, sys.stderr):
        if stream is None or stream.closed:
            continue
        try:
            stream.flush()
        except (OSError, ValueError):
            return
    os._exit(code)


if __name__ == "__main__":
    run()
