"""Make the operating system fail at a chosen call, to see what is left behind."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

#: Everything that changes a disk and that the tool calls.
CALLS = ("open", "write", "fchmod", "fsync", "link", "replace", "rename", "mkdir", "unlink")
#: What goes wrong, and whether before the call has done its work or after.
FAULTS: dict[str, Callable[[], BaseException]] = {
    "disk full": lambda: OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "x"),
    "interrupt": KeyboardInterrupt,
}


@contextmanager
def failing(monkeypatch: pytest.MonkeyPatch, at: int, fault: Callable[[], BaseException], late: bool) -> Iterator[None]:
    """Let call number `at` (from 0) of the calls that change a disk fail, once; `late` after it was done."""
    count = -1
    with monkeypatch.context() as patch:
        for name in CALLS:
            real = getattr(os, name)

            def counted(*args, name=name, real=real, **kwargs):
                nonlocal count
                reads = name == "open" and not args[1] & os.O_WRONLY
                if reads or kwargs.get("dir_fd") is not None:  # clean-up by rmtree, which hides what fails
                    return real(*args, **kwargs)
                count += 1
                if count != at:
                    return real(*args, **kwargs)
                if late and name not in ("open", "rename"):  # a handle would leak; the rename ends the work
                    real(*args, **kwargs)
                raise fault()

            patch.setattr(os, name, counted)
        yield


def each_fault(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None], check: Callable[[str], None]) -> int:
    """Run `act` with a fault at each call in turn, and `check` after each; return how many there were.

    `check` is told what was done. `act` must fail each time and the last time, with no fault left, succeed.
    """
    for at in range(1000):
        for late in (False, True):
            for name, fault in FAULTS.items():
                what = f"{name} {'after' if late else 'at'} call {at}"
                try:
                    with failing(monkeypatch, at, fault, late):
                        act()
                except (KeyboardInterrupt, Exception):
                    check(what)
                else:
                    return at
    raise AssertionError("no end of calls")
