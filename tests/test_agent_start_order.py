"""Step 6 knows one order of statements; whatever differs from it is a person's to reorder."""

from __future__ import annotations

import pytest

from refactor_tool.codemods.agent_start_order import CODEMOD
from refactor_tool.engine import find, run_codemod
from refactor_tool.model import Manual
from refactor_tool.world.templates import load_templates
from tests.sites import mutated, verdicts

CASE = "agent-first"
RUN = "pkg/agent/run.go"
FUNCTION = "setupTunnelAndRunAgent"
TAIL = "\tif !started {\n\t\treturn agent.Agent(ctx, node, proxy)\n\t}\n\treturn nil\n"


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        pytest.param("\tvar started bool\n", "\tvar started = false\n", "manual order", id="flag-with-a-value"),
        pytest.param(
            "\tvar started bool\n", "\tprepare()\n\tvar started bool\n", "rewrite order", id="unknown-call-at-the-top"
        ),
        pytest.param(
            "\tvar started bool\n", "\tvar started bool\n\tprepare()\n", "manual order", id="unknown-call-in-between"
        ),
        pytest.param(
            "\tif err := tunnelSetup",
            "\tprepare()\n\tif err := tunnelSetup",
            "manual order",
            id="unknown-call-before-the-tunnel",
        ),
        pytest.param(
            "\tif !started {", "\tprepare()\n\tif !started {", "manual order", id="unknown-call-after-the-last-set-up"
        ),
        pytest.param(TAIL, f"{TAIL[:-11]}\tprepare()\n\treturn nil\n", "manual order", id="unknown-call-at-the-end"),
        pytest.param("\tif !started {", "\tif started == false {", "manual order", id="flag-compared-in-another-way"),
        pytest.param(
            "\t\tif err := waitForAPIServerAddresses(ctx, node); err != nil {\n\t\t\treturn err\n\t\t}\n",
            "",
            "manual order",
            id="nothing-to-wait-for",
        ),
        pytest.param(
            "\t} else if cfg.ClusterReset && proxy.IsAPIServerLBEnabled() {",
            "\t} else if cfg.ClusterReset && proxy != nil {",
            "manual order",
            id="another-special-case",
        ),
        pytest.param(
            "\tif err := certMonitorSetup(ctx, node); err != nil {\n\t\treturn err\n\t}\n",
            "\tif err := certMonitorSetup(ctx, node); err != nil {\n\t\treturn wrap(err)\n\t}\n",
            "rewrite order",
            id="last-set-up-wraps-its-error",
        ),
        pytest.param(
            "\t\treturn agent.Agent(ctx, node, proxy)\n",
            "\t\treturn wrap(agent.Agent(ctx, node, proxy))\n",
            "manual order",
            id="late-start-wraps-its-error",
        ),
        pytest.param(
            "\tif err := tunnelSetup(ctx, node); err != nil {",
            "\tif err := agent.Agent(ctx, node, proxy); err != nil {\n\t\treturn err\n\t}\n"
            "\tif err := tunnelSetup(ctx, node); err != nil {",
            "manual order",
            id="started-once-more",
        ),
    ],
)
def test_a_changed_function_gets_its_own_verdict(old: str, new: str, wanted: str) -> None:
    assert verdicts(CODEMOD, mutated(CODEMOD, CASE, RUN, old, new), RUN, FUNCTION) == [wanted]


def test_an_unknown_order_does_not_hold_back_anything_and_shows_its_statements() -> None:
    tree = mutated(CODEMOD, CASE, RUN, "\tvar started bool\n", "\tvar started bool\n\tprepare()\n")

    (found,) = find(tree, CODEMOD)

    assert isinstance(found.verdict, Manual)
    assert not found.verdict.blocks
    assert "var started bool; prepare(); if !cfg.ClusterReset" in found.verdict.reason
    assert not run_codemod(tree, CODEMOD, load_templates()).problems


def test_a_last_set_up_that_is_no_plain_guard_keeps_its_text() -> None:
    tree = mutated(
        CODEMOD,
        CASE,
        RUN,
        "\tif err := certMonitorSetup(ctx, node); err != nil {\n\t\treturn err",
        "\tif err := certMonitorSetup(ctx, node); err != nil {\n\t\treturn wrap(err)",
    )

    (change,) = run_codemod(tree, CODEMOD, load_templates()).changes

    assert change.after is not None
    assert b"\t\treturn wrap(err)\n\t}\n\n\treturn nil\n}\n" in change.after.data
