"""The terminal: whether colour is allowed, and progress for work that takes its time."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TextIO

#: Seconds before the first line of progress, and between two.
_PATIENCE, _PACE = 0.5, 0.1
_CLEAR = "\r\x1b[K"


def colour_allowed(stream: TextIO) -> bool:
    """Say whether `stream` may have colour: a terminal that can show it, and no NO_COLOR (https://no-color.org)."""
    return _is_capable(stream) and not os.environ.get("NO_COLOR")


@contextmanager
def done(what: str) -> Iterator[None]:
    """Let an interrupt from now on say what was done before it, instead of that nothing was; "" leaves it at that."""
    try:
        yield
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(str(stop) or what) from None


class Progress:
    """Show what is being done on stderr, in one line that goes at the end; a context manager.

    Silent for the first half second, and wherever stderr is no terminal or a dumb one.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._wanted = _is_capable(self._stream)
        self._next = time.monotonic() + _PATIENCE
        self._shown = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            self._stream.write(_CLEAR)
            self._stream.flush()

    def step(self, what: str, number: int, total: int) -> None:
        """Say that `number` of `total` are done; `what` is the tool's own word, never text from a checkout."""
        now = time.monotonic()
        if not self._wanted or now < self._next:
            return
        self._next, self._shown = now + _PACE, True
        self._stream.write(f"{_CLEAR}{what} {number}/{total}")
        self._stream.flush()


def _is_capable(stream: TextIO) -> bool:
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def can_show(stream: TextIO, text: str) -> bool:
    """Say whether the encoding of `stream` has all characters of a text."""
    try:
        text.encode(stream.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
