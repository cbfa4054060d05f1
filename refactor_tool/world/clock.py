"""The day, for what expires."""

from __future__ import annotations

import os
import time

from refactor_tool.model import UsageError


def today() -> str:
    """Return the day in UTC as YYYY-MM-DD: that of SOURCE_DATE_EPOCH where it is set, else of the clock.

    Raises UsageError where SOURCE_DATE_EPOCH is no number of seconds since 1970, or of a day after the year 9999.
    """
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    try:
        if epoch and not (epoch.isascii() and epoch.isdigit()):
            raise ValueError
        day = time.gmtime(int(epoch) if epoch else None)
        if day.tm_year > 9999:  # days are compared as text
            raise ValueError
    except (ValueError, OverflowError, OSError):
        raise UsageError(
            f"SOURCE_DATE_EPOCH is {epoch!r}, no number of seconds up to the year 9999", "unset it, or set it right"
        ) from None
    return time.strftime("%Y-%m-%d", day)


def seconds() -> float:
    """Return a time that only ever grows, to measure how long things take."""
    return time.monotonic()
