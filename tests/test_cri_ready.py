"""Step 4 follows the container runtime's channel through its carriers, site by site."""

from __future__ import annotations

from pathlib import Path

import pytest

from refactor_tool.codemods.cri_ready import CODEMOD
from refactor_tool.engine import find, run_codemod
from refactor_tool.gosrc.tree import Tree
from refactor_tool.model import ExitCode, Manual
from refactor_tool.world.templates import load_templates
from tests.sites import BEFORE, OLDER, mutated, real, verdicts

CASE = "every-carrier"
RUN = "pkg/agent/run.go"
ETCD = "pkg/etcd/etcd.go"
SERVER = "pkg/cli/server/server.go"
CONFIG = "pkg/daemons/config/types.go"
AGENT = "pkg/cli/cmds/agent.go"
UNIT = "tests/unit.go"

CLOSE = "\tif cfg.ContainerRuntimeReady != nil {\n\t\tclose(cfg.ContainerRuntimeReady)\n\t}\n"
START = "\t\tif err := executor.Containerd(ctx, node); err != nil {\n\t\t\treturn err\n\t\t}\n\t}\n"


@pytest.mark.parametrize(
    ("path", "function", "old", "new", "wanted"),
    [
        pytest.param(
            RUN, "run", START, f'{START}\tlog.Println("started")\n', ["manual close-channel"], id="unknown-call-before"
        ),
        pytest.param(
            RUN,
            "run",
            "executor.Docker(ctx, node); err",
            "executor.Docker(ctx, node, cfg); err",
            ["manual close-channel"],
            id="extra-argument-of-a-start",
        ),
        pytest.param(
            RUN,
            "run",
            "if node.Docker {\n\t\tif err := executor.Docker(",
            "if node.Docker {\n\t\tif err := executor.Containerd(",
            ["manual close-channel"],
            id="one-runtime-started-twice",
        ),
        pytest.param(
            RUN,
            "run",
            "\tif node.Docker {\n",
            "\tif node.Docker && cfg.Debug {\n",
            ["manual close-channel"],
            id="condition-with-more-in-it",
        ),
        pytest.param(
            RUN,
            "run",
            "\treturn startAgent(ctx, node)",
            "\treturn executor.Docker(ctx, node)",
            ["manual close-channel"],
            id="a-runtime-is-started-later-as-well",
        ),
        pytest.param(
            RUN,
            "run",
            "\treturn startAgent(ctx, node)",
            "\tclose(cfg.ContainerRuntimeReady)\n\treturn startAgent(ctx, node)",
            ["rewrite close-channel", "manual close-channel"],
            id="closed-twice",
        ),
        pytest.param(
            RUN,
            "run",
            "func run(ctx context.Context, cfg cmds.Agent, node *config.Node) error {",
            "func run(ctx context.Context, flags cmds.Agent, node *config.Node) error {\n\tcfg := &flags",
            ["rewrite close-channel"],
            id="flags-through-a-local-pointer",
        ),
        pytest.param(
            RUN,
            "run",
            "func run(ctx context.Context, cfg cmds.Agent, node *config.Node) error {",
            "func run(ctx context.Context, cfg cmds.Agent, node *config.Node) (context.Context, error) {",
            ["manual unknown-shape"],
            id="another-result",
        ),
        pytest.param(
            RUN,
            "run",
            "func run(ctx context.Context, cfg cmds.Agent, node *config.Node) error {",
            "func run(ctx context.Context, cfg cmds.Agent, node *config.Node) error {\n\texecutor := node",
            ["manual close-channel"],
            id="executor-is-a-local",
        ),
        pytest.param(
            RUN,
            "RunStandalone",
            "executor.Bootstrap(ctx, node, cfg); err",
            "executor.Bootstrap(context.TODO(), node, cfg); err",
            ["rewrite close-channel"],
            id="context-of-bootstrap-is-a-call",
        ),
        pytest.param(
            RUN,
            "RunStandalone",
            "\t<-ctx.Done()",
            "\tgo func() { close(cfg.ContainerRuntimeReady) }()\n\t<-ctx.Done()",
            ["rewrite close-channel", "manual unknown-shape"],
            id="closed-in-a-goroutine",
        ),
        pytest.param(
            ETCD,
            "(*ETCD).Reset",
            "\t\t<-e.config",
            '\t\tprintln("waiting")\n\t\t<-e.config',
            ["rewrite receive"],
            id="log-line-before-a-wait",
        ),
        pytest.param(
            ETCD,
            "(*ETCD).Reset",
            "\t\t<-e.config.Runtime.ContainerRuntimeReady",
            "\t\truntime := e.config.Runtime\n\t\tprintln(runtime)\n\t\t<-runtime.ContainerRuntimeReady",
            ["rewrite receive"],
            id="runtime-through-a-local",
        ),
        pytest.param(
            ETCD,
            "(*ETCD).Reset",
            "\t\t<-e.config.Runtime.ContainerRuntimeReady",
            "\t\tready := e.config.Runtime.ContainerRuntimeReady\n\t\t<-ready",
            ["rewrite assignment"],
            id="channel-through-a-local",
        ),
        pytest.param(
            ETCD,
            "(*ETCD).Reset",
            "\t\t<-e.config.Runtime.ContainerRuntimeReady",
            "\t\t_, ok := <-e.config.Runtime.ContainerRuntimeReady\n\t\t_ = ok",
            ["rewrite receive"],
            id="receive-with-a-result",
        ),
        pytest.param(
            ETCD,
            "(*ETCD).Reset",
            "\tgo func() {\n\t\t<-e.",
            "\tgo func(ctx string) {\n\t\t<-e.",
            ["manual receive"],
            id="context-is-shadowed",
        ),
        pytest.param(
            ETCD,
            "(*ETCD).Start",
            "\t\tcase <-e.config.Runtime.ContainerRuntimeReady:\n\t\t\treturn nil\n\t\tcase <-ctx.Done():",
            "\t\tcase <-ctx.Done():\n\t\t\treturn nil\n\t\tcase <-e.config.Runtime.ContainerRuntimeReady:",
            ["rewrite select-case"],
            id="cases-are-swapped",
        ),
        pytest.param(
            ETCD,
            "(*ETCD).manageLearners",
            "func (e *ETCD) manageLearners(ctx context.Context) {\n\t<-e.",
            "func (e *ETCD) manageLearners(ctx context.Context) {\n\tctx, cancel := context.WithCancel(ctx)\n"
            "\tdefer cancel()\n\t<-e.",
            ["rewrite receive"],
            id="derived-context",
        ),
        pytest.param(
            SERVER,
            "run",
            "config.NewRuntime(containerRuntimeReady)",
            "config.NewRuntime(containerRuntimeReady, true)",
            ["rewrite local", "manual call", "rewrite field-assignment"],
            id="extra-argument-of-new-runtime",
        ),
        pytest.param(
            SERVER,
            "run",
            "\tagent.Debug = true",
            "\tclose(containerRuntimeReady)\n\tagent.Debug = true",
            ["manual local", "rewrite call", "rewrite field-assignment", "manual close"],
            id="variable-closed-though-no-executor-runs",
        ),
        pytest.param(
            SERVER,
            "run",
            "\tagent.Debug = true",
            "\tdefer close(containerRuntimeReady)\n\tagent.Debug = true",
            ["manual local", "rewrite call", "rewrite field-assignment"],
            id="variable-closed-at-the-end",
        ),
        pytest.param(
            SERVER,
            "run",
            "containerRuntimeReady := make(chan struct{})",
            "containerRuntimeReady, other := make(chan struct{}), 1\n\t_ = other",
            ["manual local", "rewrite call", "rewrite field-assignment"],
            id="two-variables-in-one-statement",
        ),
        pytest.param(
            CONFIG,
            "NewRuntime",
            "NewRuntime(containerRuntimeReady <-chan struct{})",
            "NewRuntime(containerRuntimeReady <-chan struct{}, etcd bool)",
            ["manual signature", "rewrite literal-key"],
            id="another-parameter-of-new-runtime",
        ),
        pytest.param(
            CONFIG,
            "NewRuntime",
            "\treturn &ControlRuntime{",
            "\t<-containerRuntimeReady\n\treturn &ControlRuntime{",
            ["manual signature", "rewrite literal-key"],
            id="parameter-is-waited-for",
        ),
        pytest.param(
            AGENT,
            "type Agent",
            "ContainerRuntimeReady chan<- struct{}",
            "ContainerRuntimeReady, AgentReady chan<- struct{}",
            ["manual field"],
            id="two-fields-in-one-line",
        ),
        pytest.param(
            AGENT,
            "type Agent",
            "ContainerRuntimeReady chan<- struct{}",
            "ContainerRuntimeReady func()",
            ["manual field"],
            id="field-is-no-channel",
        ),
        pytest.param(
            UNIT,
            "GenerateRuntime",
            "\treturn nil",
            "\t<-readyCh\n\treturn nil",
            ["rewrite generate-runtime", "manual local", "manual local-assignment", "rewrite call"],
            id="tests-wait-for-the-variable",
        ),
        pytest.param(
            UNIT,
            "GenerateRuntime",
            "if control.Runtime != nil {",
            "if control.Runtime != nil && control.DataDir != open() {",
            ["rewrite generate-runtime", "manual local", "manual local-assignment", "rewrite call"],
            id="condition-that-does-more",
        ),
    ],
)
def test_a_changed_site_gets_its_own_verdict(path: str, function: str, old: str, new: str, wanted: list[str]) -> None:
    assert verdicts(CODEMOD, mutated(CODEMOD, CASE, path, old, new), path, function) == wanted


def test_a_use_that_a_person_must_do_holds_back_both_fields() -> None:
    tree = mutated(
        CODEMOD,
        CASE,
        ETCD,
        "\te.remove(ctx)\n}\n\nfunc (e *ETCD) remove",
        "\tfor range e.config.Runtime.ContainerRuntimeReady {\n\t}\n}\n\nfunc (e *ETCD) remove",
    )

    manual = {found.anchor: found.verdict for found in find(tree, CODEMOD) if isinstance(found.verdict, Manual)}

    assert {"agent-field", "runtime-field"} <= set(manual)
    assert all(isinstance(verdict, Manual) and verdict.blocks for verdict in manual.values())
    assert "pkg/etcd/etcd.go:" in str(manual["agent-field"])


def test_a_wait_that_is_there_twice_is_an_anchor_twice() -> None:
    wait = "\t<-e.config.Runtime.ContainerRuntimeReady\n\te.remove(ctx)"
    tree = mutated(CODEMOD, CASE, ETCD, f"{{\n{wait}", f"{{\n\t<-e.config.Runtime.ContainerRuntimeReady\n{wait}")

    problems = run_codemod(tree, CODEMOD, load_templates()).problems

    assert [problem.code for problem in problems] == [ExitCode.NOTHING_SCANNED]
    assert "etcd-learners is there 2 times" in problems[0].message


def test_a_wait_in_a_function_of_another_name_keeps_its_anchor() -> None:
    tree = mutated(CODEMOD, CASE, ETCD, "manageLearners(", "promoteLearners(")

    moved = next(found for found in find(tree, CODEMOD) if found.anchor == "etcd-learners")

    assert moved.function == "(*ETCD).promoteLearners"
    assert "it was in (*ETCD).manageLearners" in moved.message


@pytest.mark.parametrize("ref", BEFORE + OLDER)
def test_nothing_of_the_channel_is_left(corpus: Path, ref: str) -> None:
    tree = real(corpus, ref)
    ran = run_codemod(tree, CODEMOD, load_templates())
    after = Tree(tree.snapshot.with_changes(ran.changes))

    assert not ran.problems
    assert not after.files_with(b"AgentReady", b"ontainerRuntimeReady", b"readyCh ")
