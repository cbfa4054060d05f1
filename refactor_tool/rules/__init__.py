"""One module per family of hazards, and the literal tuple of the rules that are on."""

from __future__ import annotations

from refactor_tool.rule import Rule
from refactor_tool.rules import (
    changed_waits,
    goroutine_exit,
    ready_accessor,
    ready_close,
    ready_receive,
    runtime_nil,
    shutdown_state,
    start_order,
    wait_loops,
    wait_result,
)

RULES: tuple[Rule, ...] = (
    ready_receive.READY_RECV_NO_CTX,
    ready_close.PREMATURE_READY_CLOSE,
    wait_result.CANCEL_COUNTED_AS_SUCCESS,
    ready_close.UNGUARDED_READY_CLOSE,
    ready_close.SKIPPABLE_READY_SIGNAL,
    ready_accessor.NIL_READY_ACCESSOR,
    start_order.USE_BEFORE_BOOTSTRAP,
    goroutine_exit.FATAL_IN_GOROUTINE,
    wait_result.IGNORED_RESULT,
    wait_loops.LOST_WAIT_REASON,
    wait_result.WAIT_FAILED_BUT_CONTINUE,
    start_order.WAITGROUP_LATE_INIT,
    runtime_nil.RUNTIME_CORE_NIL_DEREF,
    wait_loops.BUSY_POLL,
    wait_loops.WAIT_IGNORES_CTX,
    shutdown_state.NIL_ON_CANCEL_FIELD,
    changed_waits.CONTINUE_TO_RETURN,
    changed_waits.SELECT_TO_RECEIVE,
    start_order.START_ORDER_CHANGE,
)
