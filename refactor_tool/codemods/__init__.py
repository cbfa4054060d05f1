"""One module per codemod, and the campaign: the literal, ordered tuple of them."""

from __future__ import annotations

from refactor_tool.codemod import Codemod
from refactor_tool.codemods import (
    agent_start_order,
    apiserver_ready,
    cancel_safe_waits,
    cri_ready,
    etcd_ready,
    executor_ready_channels,
    surface_readyz_errors,
)

#: What the whole series does, for the head of its cover letter.
TITLE = "Ask the executor whether the apiserver, etcd and the CRI are ready"

SUITE: tuple[Codemod, ...] = (
    surface_readyz_errors.CODEMOD,
    executor_ready_channels.CODEMOD,
    apiserver_ready.CODEMOD,
    cri_ready.CODEMOD,
    etcd_ready.CODEMOD,
    agent_start_order.CODEMOD,
    cancel_safe_waits.CODEMOD,
)
