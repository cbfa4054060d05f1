"""One module per codemod, and the campaign: the literal, ordered tuple of them."""

from __future__ import annotations

from refactor_tool.codemod import Codemod
from refactor_tool.codemods import apiserver_ready, executor_ready_channels, surface_readyz_errors

SUITE: tuple[Codemod, ...] = (
    surface_readyz_errors.CODEMOD,
    executor_ready_channels.CODEMOD,
    apiserver_ready.CODEMOD,
)
