"""A temporary folder for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from refactor_tool.model import EnvironmentFailure

#: What the name of every temporary folder of ours begins with.
PREFIX = "refactor-tool-"


@contextmanager
def scratch() -> Iterator[Path]:
    """Give a new temporary folder that goes with all that is in it; EnvironmentFailure where none can be made."""
    from tempfile import TemporaryDirectory

    try:
        made = TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True)
    except OSError as error:
        raise EnvironmentFailure(f"no temporary folder can be made: {error.strerror}", "name one: TMPDIR") from None
    with made as folder:
        yield Path(folder)
