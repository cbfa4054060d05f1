"""On real trees each of these codemods rewrites a whole era, and finds the hand-made change done."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from refactor_tool.codemod import Codemod
from refactor_tool.codemods import agent_start_order, cancel_safe_waits, cri_ready
from refactor_tool.engine import find
from refactor_tool.model import Leave, Rewrite
from tests.sites import AFTER, BEFORE, OLDER, missing_anchors, real, uncovered

CODEMODS = (cri_ready.CODEMOD, agent_start_order.CODEMOD, cancel_safe_waits.CODEMOD)
#: Branches inside the hand-made change in which a codemod's part of it is done.
DURING = {"cri-ready": ("during/cri", "during/tests"), "agent-start-order": ("during/cri", "during/tests")}
CHANNELS = {"cri-ready": ("cri",), "cancel-safe-waits": ("tunnel-local",)}


def over(*refs: str, only: Mapping[str, tuple[str, ...]] | None = None) -> list[object]:
    """Return a parameter per codemod and branch: those of all, and those of `only` for the one codemod."""
    return [
        pytest.param(codemod, ref, id=f"{codemod.id}-{ref}")
        for codemod in CODEMODS
        for ref in (*(only or {}).get(codemod.id, ()), *refs)
    ]


@pytest.mark.parametrize(("codemod", "ref"), over(*BEFORE, *OLDER))
def test_a_whole_era_is_rewritten(corpus: Path, codemod: Codemod, ref: str) -> None:
    findings = list(find(real(corpus, ref), codemod))

    assert not missing_anchors(codemod, findings)
    assert all(isinstance(found.verdict, Rewrite) for found in findings)


@pytest.mark.parametrize(("codemod", "ref"), over(*AFTER, only=DURING))
def test_the_hand_made_change_is_done_whole(corpus: Path, codemod: Codemod, ref: str) -> None:
    findings = list(find(real(corpus, ref), codemod))

    assert not missing_anchors(codemod, findings)
    assert all(isinstance(found.verdict, Leave) and found.verdict.done for found in findings)


@pytest.mark.parametrize("ref", BEFORE + OLDER)
@pytest.mark.parametrize("codemod", [known for known in CODEMODS if known.id in CHANNELS], ids=lambda known: known.id)
def test_every_core_site_of_the_channel_lies_in_a_finding(corpus: Path, codemod: Codemod, ref: str) -> None:
    tree = real(corpus, ref)

    assert uncovered(corpus, ref, tree, find(tree, codemod), CHANNELS[codemod.id]) == []
