"""One module per family of hazards, and the literal tuple of the rules that are on."""

from __future__ import annotations

from refactor_tool.rule import Rule
from refactor_tool.rules import goroutine_exit, ready_close, ready_receive, wait_result

RULES: tuple[Rule, ...] = (
    ready_receive.READY_RECV_NO_CTX,
    ready_close.PREMATURE_READY_CLOSE,
    wait_result.CANCEL_COUNTED_AS_SUCCESS,
    ready_close.SKIPPABLE_READY_SIGNAL,
    goroutine_exit.FATAL_IN_GOROUTINE,
    wait_result.IGNORED_RESULT,
    wait_result.WAIT_FAILED_BUT_CONTINUE,
)
