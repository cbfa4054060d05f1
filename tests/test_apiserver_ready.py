"""Step 3 decides site by site: small changes to a known site keep its verdict, or turn it into one for a person."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from refactor_tool.codemods.apiserver_ready import CODEMOD
from refactor_tool.engine import find, run_codemod
from refactor_tool.gosrc.tree import Tree
from refactor_tool.model import ExitCode, Leave, Manual, Rewrite
from refactor_tool.record import replace
from refactor_tool.world.templates import load_templates
from tests import gotree, sites, txtar

#: On the small trees here, which do not have all of its places.
ALONE = replace(CODEMOD, anchors=())
AGENT = "pkg/agent/run.go"
TUNNEL = "pkg/agent/tunnel/tunnel.go"
CONFIG = "pkg/daemons/config/types.go"
CONTROL = "pkg/daemons/control/server.go"
EMBED = "pkg/daemons/executor/embed.go"
EXECUTOR = "pkg/daemons/executor/executor.go"
API = "pkg/util/api.go"

DURING = ("during/apiserver", "during/cri", "during/tests")


def base(case: str = "four-shapes") -> dict[str, str]:
    """Return the files of a case."""
    _, files = txtar.parse((sites.ROOT / CODEMOD.id / f"{case}.txt").read_text(encoding="utf-8"))
    return {name: text for name, text in files.items() if not name.startswith("want")}


def mutated(path: str, old: str, new: str) -> Tree:
    return sites.mutated(CODEMOD, "four-shapes", path, old, new)


def to_do(tree: Tree, path: str, function: str) -> list[str]:
    """Return what is said of a function, but what is left there."""
    return [said for said in sites.verdicts(CODEMOD, tree, path, function) if not said.startswith("leave ")]


@pytest.mark.parametrize(
    ("path", "function", "old", "new", "wanted"),
    [
        pytest.param(
            AGENT,
            "run",
            "func run(ctx context.Context, node *config.Node) error {",
            "func run(ctx context.Context, n *config.Node) error {\n\tnode := n",
            ["rewrite guard-return"],
            id="agent-local-instead-of-a-parameter",
        ),
        pytest.param(
            AGENT,
            "run",
            "; err != nil {\n\t\treturn errors.Wrap",
            "; err != nil {\n\t\tprintln()\n\t\treturn errors.Wrap",
            ["rewrite guard-return"],
            id="agent-log-line-in-the-branch",
        ),
        pytest.param(
            AGENT,
            "run",
            "if err := util.Wait",
            "println()\n\tif err := util.Wait",
            ["rewrite guard-return"],
            id="agent-log-line-before",
        ),
        pytest.param(
            AGENT,
            "run",
            'errors.Wrap(err, "no apiserver")',
            "nil",
            ["rewrite guard-return"],
            id="agent-another-error",
        ),
        pytest.param(
            AGENT,
            "run",
            'return errors.Wrap(err, "no apiserver")',
            "panic(err)",
            ["rewrite guard-return"],
            id="agent-no-return",
        ),
        pytest.param(
            AGENT,
            "run",
            "KubeConfigKubelet, util.Def",
            "KubeConfigKubelet, 2*util.Def",
            ["manual guard-return"],
            id="agent-another-limit",
        ),
        pytest.param(
            AGENT,
            "run",
            "Timeout); err",
            "Timeout, true); err",
            ["manual guard-return"],
            id="agent-extra-argument",
        ),
        pytest.param(
            AGENT,
            "run",
            "if err := util.WaitForAPIServerReady",
            "waitForAPIServerReady := 1\n\tif err := util.WaitForAPIServerReady",
            ["manual guard-return"],
            id="agent-helper-shadowed",
        ),
        pytest.param(
            AGENT,
            "run",
            "func run(ctx context.Context, node *config.Node) error {",
            "func run(ctx context.Context, node config.Node) error {",
            ["manual guard-return"],
            id="agent-node-by-value",
        ),
        pytest.param(
            TUNNEL,
            "Setup",
            "logrus.Fatal(err)\n\t\t}\n\t\tif err := util.WaitForRBAC",
            'logrus.Fatalf("%v", err)\n\t\t}\n\t\tif err := util.WaitForRBAC',
            ["rewrite guard-goroutine"],
            id="tunnel-another-fatal-call",
        ),
        pytest.param(
            TUNNEL,
            "Setup",
            "logrus.Fatal(err)\n\t\t}\n\t\tif err := util.WaitForRBAC",
            "logrus.Fatal(err)\n\t\t} else {\n\t\t\tprintln()\n\t\t}\n\t\tif err := util.WaitForRBAC",
            ["manual poll-unknown"],
            id="tunnel-else-branch",
        ),
        pytest.param(
            TUNNEL,
            "Setup",
            "Timeout); err != nil {\n\t\t\tlogrus.Fatal(err)\n\t\t}\n\t\tif err := util.WaitForRBAC",
            "Timeout); err == nil {\n\t\t\tlogrus.Fatal(err)\n\t\t}\n\t\tif err := util.WaitForRBAC",
            ["manual poll-unknown"],
            id="tunnel-swapped-branches",
        ),
        pytest.param(
            TUNNEL,
            "Setup",
            "go func() {\n\t\tif err := util.WaitForAPI",
            "func() {\n\t\tif err := util.WaitForAPI",
            ["manual guard-return"],
            id="tunnel-not-in-a-goroutine",
        ),
        pytest.param(
            TUNNEL,
            "Setup",
            "if err := util.WaitForAPIServerReady(ctx",
            "if err := util.WaitForAPIServerReady(other(ctx)",
            ["manual guard-goroutine"],
            id="tunnel-another-context",
        ),
        pytest.param(
            TUNNEL,
            "Setup",
            "go func() {\n",
            "go func() {\n\t\tdefer close(apiServerReady)\n",
            ["manual guard-goroutine"],
            id="tunnel-close-at-exit",
        ),
        pytest.param(
            TUNNEL,
            "Setup",
            "node *config.Node) {",
            "node *config.Node, executor string) {",
            ["manual guard-goroutine"],
            id="tunnel-executor-shadowed",
        ),
        pytest.param(
            EMBED,
            "(*Embedded).Kubelet",
            "func (e *Embedded) Kubelet",
            "func (own *Embedded) Kubelet",
            ["manual guard-goroutine"],
            id="kubelet-receiver-renamed-but-not-its-use",
        ),
        pytest.param(
            EMBED,
            "(*Embedded).Kubelet",
            "func (e *Embedded) Kubelet(ctx context.Context, args []string) error {",
            "func (e *Embedded) Kubelet(ctx context.Context, args []string) error {\n\te := e",
            ["manual guard-goroutine"],
            id="kubelet-receiver-shadowed",
        ),
        pytest.param(
            EMBED,
            "(*Embedded).Kubelet",
            "// Agents cannot see apiReady.\n",
            "// Agents cannot see apiReady: wait\n",
            ["manual guard-goroutine"],
            id="kubelet-comment-that-goes-on",
        ),
        pytest.param(
            EMBED,
            "(*Embedded).ControllerManager",
            "<-apiReady\n\t\trun(ctx, args)\n\t}()\n\treturn nil\n}\n\nfunc (e *Embedded) API",
            "println()\n\t\t<-apiReady\n\t\trun(ctx, args)\n\t}()\n\treturn nil\n}\n\nfunc (e *Embedded) API",
            ["rewrite drop-implementer"],
            id="controller-manager-log-line",
        ),
        pytest.param(
            EMBED,
            "(*Embedded).ControllerManager",
            "ControllerManager(ctx context.Context, apiReady",
            "ControllerManager(_ context.Context, apiReady",
            ["manual drop-implementer"],
            id="controller-manager-without-a-context",
        ),
        pytest.param(
            EXECUTOR,
            "ControllerManager",
            "return executor.ControllerManager(ctx, apiReady, args)",
            "println()\n\treturn executor.ControllerManager(ctx, apiReady, args)",
            ["rewrite drop-forwarder"],
            id="forwarder-that-logs",
        ),
        pytest.param(
            EXECUTOR,
            "Scheduler",
            "return executor.Scheduler(ctx, apiReady, args)",
            "nodeReady := apiReady\n\treturn executor.Scheduler(ctx, nodeReady, args)",
            [],
            id="scheduler-new-name-taken",
        ),
        pytest.param(
            CONTROL,
            "controllerManager",
            "executor.ControllerManager(ctx, cfg.Runtime.APIServerReady, nil)",
            "executor.ControllerManager(ctx, nil, nil)",
            ["manual drop-caller"],
            id="caller-without-a-channel",
        ),
        pytest.param(
            CONTROL,
            "controllerManager",
            "return executor.ControllerManager(ctx, cfg.Runtime.APIServerReady, nil)",
            "ready := cfg.Runtime.APIServerReady\n\treturn executor.ControllerManager(ctx, ready, nil)",
            ["rewrite assignment", "manual drop-caller"],
            id="caller-with-a-local-of-no-other-use",
        ),
        pytest.param(
            CONTROL,
            "scheduler",
            "schedulerNodeReady := make(chan struct{})",
            "schedulerNodeReady, nodeReady := make(chan struct{}), 1\n\t_ = nodeReady",
            ["rewrite select-case"],
            id="local-new-name-taken",
        ),
        pytest.param(
            CONTROL,
            "scheduler",
            "cfg *config.Control) error {\n\tschedulerNodeReady",
            "cfg *config.Control) error {\n\truntime := cfg.Runtime\n\t_, _ = runtime.APIServerReady, runtime\n\tschedulerNodeReady",
            [
                "rewrite assignment",
                "rewrite rename-local",
                "rewrite rename-local",
                "rewrite select-case",
                "rewrite rename-local",
            ],
            id="field-through-a-local",
        ),
        pytest.param(
            CONTROL,
            "Server",
            "if err := waitForAPIServerInBackground(ctx, cfg.Runtime); err != nil {",
            "if err := waitForAPIServerInBackground(ctx, cfg.Runtime); err != nil { // why",
            ["manual promise-call"],
            id="background-call-with-a-comment",
        ),
        pytest.param(
            CONTROL,
            "waitForAPIServerInBackground",
            "if err == nil {\n\t\t\t\t\treturn",
            "if err == nil {\n\t\t\t\t\tlogrus.Info()\n\t\t\t\t\treturn",
            ["rewrite promise"],
            id="background-log-line",
        ),
        pytest.param(
            CONTROL,
            "waitForAPIServerInBackground",
            "done := make(chan struct{})",
            "done := make(chan struct{})\n\tcounter++",
            ["manual promise"],
            id="background-counter",
        ),
        pytest.param(
            CONTROL,
            "waitForAPIServerInBackground",
            "runtime.APIServerReady = done",
            "runtime.APIServerReady, runtime.ETCDReady = done, done",
            ["manual promise"],
            id="background-second-channel",
        ),
        pytest.param(
            CONFIG,
            "type ControlRuntime",
            "APIServerReady       <-chan struct{}\n\tETCDReady            <-chan struct{}",
            "APIServerReady, ETCDReady <-chan struct{}",
            ["manual field"],
            id="field-with-another-name-beside",
        ),
        pytest.param(
            EMBED,
            "(*Embedded).Bootstrap",
            "e.nodeConfig = nodeConfig",
            "println()\n\te.nodeConfig = nodeConfig\n\tprintln()",
            ["rewrite start"],
            id="bootstrap-log-lines",
        ),
        pytest.param(
            EMBED,
            "(*Embedded).Bootstrap",
            "e.nodeConfig = nodeConfig",
            "if nodeConfig != nil {\n\t\te.nodeConfig = nodeConfig\n\t}",
            ["manual start"],
            id="bootstrap-in-a-branch",
        ),
        pytest.param(
            CONFIG,
            "type Agent",
            "KubeConfigK3sController string",
            "KubeConfigOther string",
            [],
            id="no-kubeconfig-of-the-controller",
        ),
        pytest.param(
            AGENT,
            "RunStandalone",
            "<-ctx.Done()\n\treturn ctx.Err()",
            "println()\n\t<-ctx.Done()\n\treturn ctx.Err()",
            ["rewrite limit"],
            id="standalone-log-line",
        ),
        pytest.param(
            AGENT,
            "RunStandalone",
            "<-ctx.Done()\n\treturn ctx.Err()",
            "return block(ctx)",
            ["manual limit"],
            id="standalone-without-its-wait",
        ),
        pytest.param(
            AGENT,
            "RunStandalone",
            "executor.Bootstrap(ctx, node, cfg)",
            "prepare(ctx)",
            ["manual limit"],
            id="standalone-without-bootstrap",
        ),
    ],
)
def test_a_changed_site_gets_its_own_verdict(path: str, function: str, old: str, new: str, wanted: list[str]) -> None:
    assert to_do(mutated(path, old, new), path, function) == wanted


@pytest.mark.parametrize(
    ("path", "function", "old", "new", "words"),
    [
        pytest.param(
            API,
            "WaitForAPIServerReady",
            '\t"github.com/sirupsen/logrus"\n\t"k8s.io/client-go/rest"\n)\n',
            '\t"k8s.io/client-go/rest"\n)\n\nfunc logrus() {}\n',
            "logrus cannot be named",
            id="package-of-the-poll-taken",
        ),
        pytest.param(
            API,
            "WaitForAPIServerReady",
            "client, err := newReadyzClient(file)",
            'client, err := newReadyzClient("a")',
            "does not load its kubeconfig",
            id="no-kubeconfig-to-try",
        ),
        pytest.param(
            AGENT,
            "RunStandalone",
            "<-ctx.Done()",
            "errors := 1\n\t_ = errors\n\t<-ctx.Done()",
            "github.com/pkg/errors cannot be named",
            id="error-package-shadowed-in-the-agent",
        ),
        pytest.param(
            AGENT,
            "RunStandalone",
            "func RunStandalone",
            "func time() {}\n\nfunc RunStandalone",
            "time cannot be named",
            id="package-of-the-helper-taken",
        ),
        pytest.param(
            EMBED,
            "(*Embedded).Bootstrap",
            "e.nodeConfig = nodeConfig",
            "pkgerrors := 1\n\t_ = pkgerrors\n\te.nodeConfig = nodeConfig",
            "github.com/pkg/errors cannot be named",
            id="error-package-shadowed-in-bootstrap",
        ),
        pytest.param(
            EMBED,
            "(*Embedded).Bootstrap",
            "e.nodeConfig = nodeConfig",
            "util := 1\n\t_ = util\n\te.nodeConfig = nodeConfig",
            "pkg/util cannot be named",
            id="util-shadowed-in-bootstrap",
        ),
    ],
)
def test_a_name_that_is_taken_is_for_a_person(path: str, function: str, old: str, new: str, words: str) -> None:
    (verdict,) = (
        found.verdict
        for found in find(mutated(path, old, new), CODEMOD)
        if (found.path, found.function) == (path, function)
        and not isinstance(found.verdict, Leave)
        and found.shape in ("util", "limit", "start")
    )
    assert isinstance(verdict, Manual)
    assert words in verdict.reason
    assert verdict.instruction


@pytest.mark.parametrize(
    ("path", "old"),
    [
        pytest.param(
            AGENT, "util.WaitForAPIServerReady(ctx, node.AgentConfig.KubeConfigKubelet, util", id="error-returned"
        ),
        pytest.param(TUNNEL, "util.WaitForAPIServerReady(ctx, node.AgentConfig.KubeConfigKubelet, util", id="fatal"),
        pytest.param(
            EMBED, "util.WaitForAPIServerReady(ctx, e.nodeConfig.AgentConfig.KubeConfigKubelet, util", id="kubelet"
        ),
    ],
)
def test_a_known_wait_in_an_unknown_shape_holds_the_step_back(path: str, old: str) -> None:
    ran = run_codemod(mutated(path, old, old.replace("(ctx", "(own()")), ALONE, load_templates())

    assert not ran.changes
    assert ExitCode.FINDINGS in {problem.code for problem in ran.problems}


def test_a_wait_that_nobody_knows_does_not_hold_the_step_back() -> None:
    tree = gotree.of(base("more-callers-by-hand"))
    by_hand = [found.verdict for found in find(tree, CODEMOD) if isinstance(found.verdict, Manual)]

    assert by_hand
    assert not any(verdict.blocks for verdict in by_hand)
    assert all("WaitForAPIServerReady" in verdict.reason and verdict.instruction for verdict in by_hand)


def test_a_wait_that_is_there_twice_is_an_anchor_twice() -> None:
    wait = "\tif err := util.WaitForAPIServerReady(ctx, node.AgentConfig.KubeConfigKubelet, util.DefaultAPIServerReadyTimeout); err != nil {\n"
    twice = mutated(AGENT, wait, f"{wait}\t\treturn err\n\t}}\n{wait}")

    assert Counter(found.anchor for found in find(twice, CODEMOD))["agent-run"] == 2
    assert "agent-run is there 2 times" in " ".join(
        problem.message for problem in run_codemod(twice, CODEMOD, load_templates()).problems
    )


def test_a_channel_that_is_read_twice_is_one_anchor() -> None:
    server = 'package server\n\nimport "example.org/k3s/pkg/daemons/config"\n\n'
    use = "func StartServer(cfg *config.Control) {\n\t_ = cfg.Runtime.APIServerReady\n\t_ = cfg.Runtime.APIServerReady\n}\n"
    tree = gotree.of(base() | {"pkg/server/server.go": server + use})

    assert Counter(found.anchor for found in find(tree, CODEMOD))["startup-hooks"] == 1


def test_the_result_has_nothing_left_to_do_and_every_anchor_it_had() -> None:
    tree = gotree.of(base())
    ran = run_codemod(tree, ALONE, load_templates())
    after = Tree(tree.snapshot.with_changes(ran.changes))

    assert {found.anchor for found in find(after, CODEMOD)} == {found.anchor for found in find(tree, CODEMOD)}
    assert all(isinstance(found.verdict, Leave) for found in find(after, CODEMOD))


def test_an_error_that_is_read_before_the_poll_keeps_the_poll_in_one_piece() -> None:
    tree = mutated(API, "var last error\n", "var last error = err\n")
    ran = run_codemod(tree, ALONE, load_templates())
    (change,) = (change for change in ran.changes if change.path == API)

    assert change.after is not None
    assert b"err := WaitForAPIServerReady(ctx, file, timeout)" in change.after.data
    assert b"pollReadyz" not in change.after.data


def test_a_moved_function_is_found_where_it_is() -> None:
    files = base()
    moved = files[TUNNEL].replace("func watch", "func watch2").split("func Setup")
    header, setup = moved[0], "func Setup" + moved[1]
    tree = gotree.of(files | {TUNNEL: "package tunnel\n", "pkg/agent/tunnel/setup_linux.go": header + setup})

    (found,) = (found for found in find(tree, CODEMOD) if found.anchor == "tunnel")
    assert found.path == "pkg/agent/tunnel/setup_linux.go"
    assert isinstance(found.verdict, Rewrite)


@pytest.mark.parametrize(
    ("path", "old", "anchor"),
    [
        pytest.param(TUNNEL, "func Setup", "tunnel", id="goroutine"),
        pytest.param(AGENT, "func run", "agent-run", id="error-returned"),
        pytest.param(CONTROL, "func controllerManager", "control-controller-manager", id="caller"),
    ],
)
def test_a_site_in_a_function_of_another_name_keeps_its_anchor(path: str, old: str, anchor: str) -> None:
    tree = mutated(path, old, f"{old}2")
    ran = run_codemod(tree, ALONE, load_templates())
    after = Tree(tree.snapshot.with_changes(ran.changes))

    assert isinstance(next(found for found in find(tree, CODEMOD) if found.anchor == anchor).verdict, Rewrite)
    assert isinstance(next(found for found in find(after, CODEMOD) if found.anchor == anchor).verdict, Leave)


# --- real trees -------------------------------------------------------------------------------------


@pytest.mark.parametrize("ref", sites.BEFORE + sites.OLDER)
def test_the_four_polls_are_found_with_function_and_shape(corpus: Path, ref: str) -> None:
    found = {
        (item.function, item.shape)
        for item in find(sites.real(corpus, ref), CODEMOD)
        if isinstance(item.verdict, Rewrite)
    }

    assert {
        ("run", "guard-return"),
        ("Setup", "guard-goroutine"),
        ("(*Embedded).Kubelet", "guard-goroutine"),
        ("waitForAPIServerInBackground", "promise"),
    } <= found


@pytest.mark.parametrize("ref", sites.BEFORE + sites.OLDER)
def test_a_whole_era_needs_no_hand(corpus: Path, ref: str) -> None:
    findings = list(find(sites.real(corpus, ref), CODEMOD))

    assert not sites.missing_anchors(CODEMOD, findings)
    assert set(Counter(found.anchor for found in findings if found.anchor).values()) == {1}
    assert not [found for found in findings if isinstance(found.verdict, Manual)]
    assert {found.shape for found in findings if found.shape == "busy-loop"} == (
        {"busy-loop"} if ref in sites.OLDER else set()
    )


@pytest.mark.parametrize("ref", DURING + sites.AFTER)
def test_upstreams_way_is_done_whole(corpus: Path, ref: str) -> None:
    findings = list(find(sites.real(corpus, ref), CODEMOD))

    assert not sites.missing_anchors(CODEMOD, findings)
    assert set(Counter(found.anchor for found in findings if found.anchor).values()) == {1}
    assert all(isinstance(found.verdict, Leave) for found in findings)
    assert all(found.verdict.done for found in findings if found.anchor and isinstance(found.verdict, Leave))


@pytest.mark.parametrize("ref", sites.BEFORE + sites.OLDER)
def test_every_core_site_of_the_channel_lies_in_a_finding(corpus: Path, ref: str) -> None:
    """The declaration of the time limit, with its comment, belongs to the first step."""
    tree = sites.real(corpus, ref)
    channels = ("apiserver", "tunnel-local", "node", "ccm-rbac", "none")
    limit = tree.variables(f"{tree.module}/pkg/util", "DefaultAPIServerReadyTimeout")[0][1]
    lines = tree.lines(API)
    own = range(lines.position(limit.span.start).line - 4, lines.position(limit.span.end).line + 1)

    left = sites.uncovered(corpus, ref, tree, find(tree, CODEMOD), channels)
    assert [place for place in left if place[0] != API or place[1] not in own] == []
