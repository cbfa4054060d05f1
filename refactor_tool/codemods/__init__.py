"""One module per codemod, and the campaign: the literal, ordered tuple of them."""

from __future__ import annotations

from refactor_tool.codemod import Codemod

SUITE: tuple[Codemod, ...] = ()
