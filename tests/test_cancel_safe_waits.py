"""Step 7 lets each wait end with its context, and closes a channel only where what it stands for was reached."""

from __future__ import annotations

import pytest

from refactor_tool.codemods.cancel_safe_waits import CODEMOD
from refactor_tool.engine import find, run_codemod
from refactor_tool.model import ExitCode, Manual
from refactor_tool.world.templates import load_templates
from tests.sites import mutated, verdicts

TUNNEL = "pkg/agent/tunnel/tunnel.go"
CONTROL = "pkg/daemons/control/server.go"
KEPT = "tunnel"
RELEASED = "control-plane"


@pytest.mark.parametrize(
    ("case", "path", "function", "old", "new", "wanted"),
    [
        pytest.param(
            KEPT,
            TUNNEL,
            "(*agentTunnel).setKubeletPort",
            "\t<-apiServerReady\n\n\ta.set()",
            '\tprintln("waiting")\n\t<-apiServerReady\n\n\ta.set()',
            ["rewrite name", "rewrite receive"],
            id="log-line-before-a-wait",
        ),
        pytest.param(
            KEPT,
            TUNNEL,
            "(*agentTunnel).setKubeletPort",
            "\t<-apiServerReady\n\n\ta.set()",
            "\t_ = <-apiServerReady\n\n\ta.set()",
            ["rewrite name", "rewrite name", "manual receive"],
            id="receive-into-nothing",
        ),
        pytest.param(
            KEPT,
            TUNNEL,
            "(*agentTunnel).setKubeletPort",
            "setKubeletPort(ctx context.Context, apiServerReady",
            "setKubeletPort(_ context.Context, apiServerReady",
            ["rewrite name", "manual receive", "rewrite name"],
            id="context-has-no-name",
        ),
        pytest.param(
            KEPT,
            TUNNEL,
            "(*agentTunnel).setKubeletPort",
            "\t<-apiServerReady\n\n\ta.set()",
            "\tdefer close(a.done)\n\t<-apiServerReady\n\n\ta.set()",
            ["rewrite name", "manual receive", "rewrite name"],
            id="something-is-closed-at-the-end",
        ),
        pytest.param(
            KEPT,
            TUNNEL,
            "(*agentTunnel).setKubeletPort",
            "apiServerReady <-chan struct{}) {\n\t<-apiServerReady\n\n\ta.set()",
            "wait <-chan struct{}) {\n\t<-wait\n\n\ta.set()",
            ["rewrite receive"],
            id="channel-of-another-name",
        ),
        pytest.param(
            KEPT,
            TUNNEL,
            "Setup",
            "\t\tclose(apiServerReady)\n\t}()",
            "\t\tclose(apiServerReady)\n\t}()\n\tgo func() { close(apiServerReady) }()",
            ["leave name", "rewrite fatal", "leave name", "leave name", "leave name", "leave name"],
            id="closed-elsewhere-as-well",
        ),
        pytest.param(
            KEPT,
            TUNNEL,
            "Setup",
            "err != nil {\n\t\t\tlogrus.Fatalf",
            "err != nil && tunnel != nil {\n\t\t\tlogrus.Fatalf",
            ["rewrite name", "rewrite fatal", *["rewrite name"] * 3],
            id="condition-with-more-in-it",
        ),
        pytest.param(
            KEPT,
            TUNNEL,
            "Setup",
            '\t\t\tlogrus.Fatalf("Tunnel watches failed to wait for RBAC: %v", err)\n',
            '\t\t\tlogrus.Warn(err)\n\t\t\tlogrus.Fatalf("Tunnel watches failed to wait for RBAC: %v", err)\n',
            ["rewrite name", "rewrite fatal", *["rewrite name"] * 3],
            id="log-line-before-the-end",
        ),
        pytest.param(
            RELEASED,
            CONTROL,
            "scheduler",
            "\t\tif !disabled {\n",
            "\t\tif disabled {\n\t\t\treturn\n\t\t}\n\t\tif !disabled {\n",
            ["manual close", "rewrite fatal"],
            id="another-way-out",
        ),
        pytest.param(
            RELEASED,
            CONTROL,
            "scheduler",
            "\t\tdefer close(nodeReady)\n",
            '\t\tdefer close(nodeReady)\n\t\tprintln("waiting")\n',
            ["rewrite close", "rewrite fatal"],
            id="log-line-after-the-deferred-close",
        ),
        pytest.param(
            RELEASED,
            CONTROL,
            "scheduler",
            "\t\tdefer close(nodeReady)\n",
            "\t\tdefer func() { close(nodeReady) }()\n",
            ["manual close", "rewrite fatal"],
            id="closed-in-a-deferred-function",
        ),
        pytest.param(
            RELEASED,
            CONTROL,
            "cloudControllerManager",
            "\t\t\t\t\tcontinue\n",
            "\t\t\t\t\treturn\n",
            ["manual close"],
            id="return-instead-of-a-retry",
        ),
        pytest.param(
            RELEASED,
            CONTROL,
            "cloudControllerManager",
            "\t\t\tcase err := <-promise(",
            "\t\t\tcase failed := <-promise(",
            ["manual close"],
            id="another-error-is-tested",
        ),
        pytest.param(
            RELEASED,
            CONTROL,
            "cloudControllerManager",
            "\t\t\t\t}\n\t\t\t\treturn\n",
            '\t\t\t\t}\n\t\t\t\tprintln("granted")\n\t\t\t\treturn\n',
            ["rewrite close"],
            id="log-line-before-success",
        ),
        pytest.param(
            RELEASED,
            CONTROL,
            "waitForAPIServerHandlers",
            "\thandlers, err := executor.APIServerHandlers(ctx)\n",
            "\thandlers, err := executor.APIServerHandlers(ctx)\n\tprintln()\n",
            ["rewrite fatal"],
            id="log-line-before-the-test",
        ),
    ],
)
def test_a_changed_site_gets_its_own_verdict(
    case: str, path: str, function: str, old: str, new: str, wanted: list[str]
) -> None:
    assert verdicts(CODEMOD, mutated(CODEMOD, case, path, old, new), path, function) == wanted


def test_what_a_person_must_do_does_not_hold_back_the_rest() -> None:
    tree = mutated(
        CODEMOD,
        RELEASED,
        CONTROL,
        "\t\tif !disabled {\n",
        "\t\tif disabled {\n\t\t\treturn\n\t\t}\n\t\tif !disabled {\n",
    )

    ran = run_codemod(tree, CODEMOD, load_templates())

    manual = [found.verdict for found in ran.findings if isinstance(found.verdict, Manual)]
    assert [verdict.blocks for verdict in manual] == [False]
    assert "whether the return in line 30 is a success is not known" in manual[0].reason


def test_a_close_in_a_function_of_another_name_keeps_its_anchor() -> None:
    tree = mutated(CODEMOD, RELEASED, CONTROL, "func cloudControllerManager(", "func cloudController(")

    moved = next(found for found in find(tree, CODEMOD) if found.anchor == "control-cloud-controller")

    assert moved.function == "cloudController"
    assert "it was in cloudControllerManager" in moved.message


def test_a_deferred_close_that_is_there_twice_is_an_anchor_twice() -> None:
    line = "\t\tdefer close(ccmRBACReady)\n"
    tree = mutated(CODEMOD, RELEASED, CONTROL, line, line + line)

    codes = {problem.code for problem in run_codemod(tree, CODEMOD, load_templates()).problems}

    assert ExitCode.NOTHING_SCANNED in codes
