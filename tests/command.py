"""Run the command line in this process, as if a shell had: arguments, folder, environment, both outputs, exit code."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from refactor_tool.start import main

ROOT = Path(__file__).resolve().parent.parent
FIXTURE = ROOT / "fixtures/k3s"
#: What a caller's environment may hold and a test must not inherit.
_FOREIGN = ("GIT_", "SOURCE_DATE_EPOCH", "NO_COLOR", "GITHUB_", "CI")


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command did."""

    code: int
    out: bytes
    err: str

    @property
    def last(self) -> str:
        """Return the line that explains the exit code: the last of standard output, else of standard error."""
        lines = self.out.decode("utf-8", "replace").strip().splitlines() or self.err.strip().splitlines()
        return lines[-1] if lines else ""


def run(*args: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Ran:
    """Run `refactor-tool ARGS` and return what it did; a traceback is the code 70, as for a user."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
    out, err = io.BytesIO(), io.BytesIO()
    with (
        chdir(cwd if cwd is not None else Path.cwd()),
        patch.dict(os.environ, kept | dict(env or {}), clear=True),
        patch.object(sys, "argv", ["refactor-tool", *map(str, args)]),
        patch.object(sys, "stdout", _writer(out)),
        patch.object(sys, "stderr", _writer(err)),
    ):
        try:
            main()
        except SystemExit as end:
            code: Any = end.code
        sys.stdout.flush()
        sys.stderr.flush()
        return Ran(int(code or 0), out.getvalue(), err.getvalue().decode("utf-8", "replace"))


def _writer(buffer: io.BytesIO) -> io.TextIOWrapper:
    return io.TextIOWrapper(buffer, encoding="utf-8", write_through=True)
