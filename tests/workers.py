"""Work for the pools of the tests: what is sent to another process must be importable there."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path


def square(number: int) -> int:
    """Return the square, later for smaller numbers, so that results come in another order than items."""
    time.sleep(0.02 * (5 - number % 6))
    return number * number


def process(_: int) -> int:
    return os.getpid()


def poison(item: str) -> str:
    """End the process if the item says so."""
    if item == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    return item.upper()


def die_once(marker: str) -> str:
    """End the process the first time, and make a file so that the second time it lives."""
    path = Path(marker)
    if not path.exists():
        path.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "survived"


def slowly(folder: str) -> None:
    """Say that work has begun, and take longer than any test."""
    (Path(folder) / str(os.getpid())).touch()
    time.sleep(600)
