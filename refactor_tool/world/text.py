"""Words for messages, names for the disk. Whoever prints them escapes what is unprintable."""

from __future__ import annotations

import os
from collections.abc import Sequence


def first_names(names: Sequence[str], most: int = 3) -> str:
    """Return the first `most` names in a row, and how many more there are."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def disk_name(path: str) -> str:
    """Return a path of a snapshot (UTF-8, surrogate escapes) as calls to the system want it in this locale."""
    return os.fsdecode(path.encode("utf-8", "surrogateescape"))


def shell_line(*words: str) -> str:
    """Return `words` as one line for a POSIX shell."""
    import shlex

    return shlex.join(words)
