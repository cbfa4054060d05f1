"""Make the operating system fail at a chosen call, to see what is left behind."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

#: Everything that changes a disk and that the tool calls.
CALLS = ("open", "write", "fchmod", "fsync", "link", "replace", "rename", "mkdir", "unlink")
#: What goes wrong, and whether after the call has done its work or instead of it.
FAULTS: tuple[tuple[str, Callable[[], BaseException], bool], ...] = (
    ("disk full at", lambda: OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "x"), False),
    ("interrupt after", KeyboardInterrupt, True),
)


def each_fault(
    monkeypatch: pytest.MonkeyPatch,
    act: Callable[[], object],
    check: Callable[[str], None],
    survived: Callable[[], object] | None = None,
) -> int:
    """Run `act` with a fault at each call in turn, and `check` after each; return how many calls there are.

    `check` is told what was done. Where `act` may live with a fault, `survived` makes all as it was again. The last
    time there is no fault left, and `act` must succeed.
    """
    for at in range(1000):
        for name, fault, late in FAULTS:
            what = f"{name} call {at}"
            with _failing(monkeypatch, at, fault, late) as fired:
                try:
                    act()
                except (KeyboardInterrupt, Exception):
                    failed = True
                else:
                    failed = False
            if not fired:
                assert not failed
                return at
            if failed:
                check(what)
            else:
                assert survived is not None, f"{what}: nobody noticed"
                survived()
    raise AssertionError("no end of calls")


@contextmanager
def _failing(
    monkeypatch: pytest.MonkeyPatch, at: int, fault: Callable[[], BaseException], late: bool
) -> Iterator[list[str]]:
    """Let call number `at` (from 0) fail, once; `late` after it was done. Gives a list that then holds its name."""
    count, fired = -1, []
    with monkeypatch.context() as patch:
        for name in CALLS:
            real = getattr(os, name)

            def counted(*args, name=name, real=real, **kwargs):
                nonlocal count
                if _is_spared(name, args, kwargs):
                    return real(*args, **kwargs)
                count += 1
                if count != at:
                    return real(*args, **kwargs)
                fired.append(name)
                if late and name not in ("open", "rename"):  # a handle would leak; the rename ends the work
                    real(*args, **kwargs)
                raise fault()

            patch.setattr(os, name, counted)
        yield fired


def _is_spared(name: str, args: tuple, kwargs: dict) -> bool:
    """Say whether a call only reads, or cleans up when all is done: there a fault can do nothing."""
    reads = name == "open" and not args[1] & os.O_WRONLY
    return reads or kwargs.get("dir_fd") is not None or (name == "unlink" and str(args[0]).endswith(".lock"))
