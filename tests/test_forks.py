"""What forks do that k3s does not: the campaign either keeps it right, or says what needs a hand; never a silent hang."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from refactor_tool import engine
from refactor_tool.codemods import SUITE, etcd_ready
from refactor_tool.engine import run_codemod
from refactor_tool.gosrc.tree import Tree
from refactor_tool.model import ExitCode, File, Leave, Manual, Plan, Snapshot
from refactor_tool.world.templates import load_templates
from tests import txtar
from tests.campaign import Files, contents, fixture, plan, planned, snapshot

EXECUTOR = "pkg/daemons/executor/executor.go"
EMBED = "pkg/daemons/executor/embed.go"
HEAD = """package fork

import (
	"context"
	"net/http"

	"github.com/k3s-io/k3s/pkg/cli/cmds"
	daemonconfig "github.com/k3s-io/k3s/pkg/daemons/config"
	"github.com/k3s-io/k3s/pkg/daemons/executor"
	"k8s.io/apiserver/pkg/authentication/authenticator"
)

var (
	_ http.Handler
	_ authenticator.Request
	_ cmds.Agent
	_ daemonconfig.Node
)

"""


def executor_of(struct: str, body: str, **own: str) -> str:
    """Return a file with an executor, each method with a body in which CALL is the call of the same method."""
    interface = re.search(r"type Executor interface \{\n(.*?)\n\}", fixture()[EXECUTOR].decode(), re.DOTALL)
    assert interface is not None
    methods = []
    for line in interface[1].split("\n"):
        signature = re.sub(r"\b(InitialOptions|ETCDConfig)\b", r"executor.\1", line.strip())
        name = signature.split("(")[0]
        params = signature.split("(", 1)[1].split(")")[0]
        names = ", ".join(param.split()[0] for param in params.split(",") if param)
        text = own.get(name, body).replace("CALL", f"{name}({names})")
        methods.append(f"func (t *Fork) {signature} {{\n\t{text}\n}}\n")
    return HEAD + struct + "\n\n" + "\n".join(methods)


def fork(struct: str, body: str, **own: str) -> Files:
    return {**fixture(), "pkg/fork/fork.go": executor_of(struct, body, **own).encode()}


def edited(path: str, old: str, new: str) -> Files:
    text = fixture()[path].decode()
    assert text.count(old) == 1, old
    return {**fixture(), path: text.replace(old, new).encode()}


def reasons(result: Plan) -> str:
    assert not any(problem.code is ExitCode.INTERNAL for problem in result.problems)
    return "\n".join(problem.message for problem in result.problems)


def test_a_decorator_keeps_no_signals_of_its_own() -> None:
    result = plan(fork("type Fork struct {\n\tnext executor.Executor\n}", "return t.next.CALL"))
    assert "nothing closes Fork.apiServerReady" in reasons(result)
    assert "nothing closes Fork.etcdReady" in reasons(result)


def test_an_executor_that_starts_components_in_its_own_way() -> None:
    own = {
        "APIServerHandlers": "return nil, nil, nil",
        "CurrentETCDOptions": "return executor.InitialOptions{}, nil",
        "ETCD": 'return t.pod("etcd", args.Name)',
    }
    files = fork(
        "type Fork struct {\n\tdir string\n}\n\nfunc (t *Fork) pod(...string) error { return nil }", "return nil", **own
    )
    told = reasons(plan(files))
    assert "(*Fork).ETCD starts etcd in a way of its own" in told


# --- gates, other interfaces, and names that a fork has taken --------------------------------------

CONTROL = "pkg/daemons/control/server.go"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            "\treturn executor.APIServer(ctx, runtime.ETCDReady, args)",
            "\tready := make(chan struct{})\n\tgo func() {\n\t\t<-runtime.ETCDReady\n\t\tclose(ready)\n\t}()\n"
            "\treturn executor.APIServer(ctx, ready, args)",
            "APIServer is not the ETCDReady",
        ),
        ("APIServer(ctx, runtime.ETCDReady,", "APIServer(ctx, runtime.KMSReady,", "APIServer is not the ETCDReady"),
        (
            "ControllerManager(ctx, cfg.Runtime.APIServerReady,",
            "ControllerManager(ctx, forkGate,",
            "ControllerManager is not the APIServerReady",
        ),
    ],
    ids=["gate-in-a-goroutine", "gate-in-a-field", "gate-of-the-package"],
)
def test_a_start_gate_of_the_forks_own(old: str, new: str, told: str) -> None:
    result = plan(edited(CONTROL, old, new))
    assert told in reasons(result)
    assert any("wait for it before the call" in str(found.verdict) for found in result.findings)


@pytest.mark.parametrize(
    ("before", "given"),
    [
        ("ready := runtime.ETCDReady\n\t<-ready\n\t", "ready"),
        ("var ready = (runtime.ETCDReady)\n\t<-ready\n\t", "(ready)"),
    ],
)
def test_a_local_that_only_passes_the_channel_on(before: str, given: str) -> None:
    old = "return executor.APIServer(ctx, runtime.ETCDReady, args)"
    result = plan(edited(CONTROL, old, f"{before}return executor.APIServer(ctx, {given}, args)"))
    assert "is not the ETCDReady" not in reasons(result)


@pytest.mark.parametrize(
    "use",
    [
        "func f(x any) bool {\n\t_, ok := x.(TYPE)\n\treturn ok\n}\n",
        "func f(x any) {\n\tswitch x.(type) {\n\tcase TYPE:\n\t}\n}\n",
        "func f(x TYPE) {}\n",
        "var starter TYPE\n",
        "type starter struct {\n\tnext TYPE\n}\n",
        "func f[T TYPE](x T) {}\n",
    ],
    ids=["assertion", "type-switch", "parameter", "variable", "field", "constraint"],
)
@pytest.mark.parametrize(
    ("method", "told"),
    [
        ("APIServer(context.Context, <-chan struct{}, []string) error", "asks for APIServer with a channel"),
        ("ControllerManager(context.Context, <-chan struct{}, []string) error", "asks for ControllerManager with a"),
        ("ETCD(context.Context, executor.ETCDConfig, []string) error", "asks for ETCD without its test"),
        ("Start(context.Context) (<-chan struct{}, error)", "asks for Start with a channel"),
    ],
    ids=["apiserver", "controller-manager", "etcd", "cluster"],
)
def test_an_interface_without_a_name_that_asks_for_what_goes(use: str, method: str, told: str) -> None:
    text = HEAD + use.replace("TYPE", f"interface {{ {method} }}")
    result = plan({**fixture(), "pkg/fork/fork.go": text.encode()})
    assert f"an interface without a name {told}" in reasons(result)


@pytest.mark.parametrize(
    ("path", "more", "told"),
    [
        (
            EMBED,
            "func (e *Embedded) APIServerReadyChan() chan bool {\n\treturn nil\n}\n",
            "'func (e *Embedded) APIServerReadyChan() chan bool' takes the name of APIServerReadyChan() <-chan struct{}",
        ),
        (
            EMBED,
            "func (e *Embedded) CRI(ctx context.Context, endpoint string) error {\n\treturn nil\n}\n",
            "'func (e *Embedded) CRI(ctx context.Context, endpoint string) error' takes the name of CRI(",
        ),
        (
            "pkg/fork/fork.go",
            HEAD + "type Fork struct {\n\texecutor.Embedded\n}\n\n"
            "func (t *Fork) Containerd(ctx context.Context, node *daemonconfig.Node) error {\n"
            "\treturn t.Embedded.Containerd(ctx, node)\n}\n\n"
            "func (t *Fork) CRIReadyChan() chan struct{} {\n\treturn nil\n}\n",
            "'func (t *Fork) CRIReadyChan() chan struct{}' takes the name of CRIReadyChan() <-chan struct{}",
        ),
        (
            "pkg/util/own.go",
            'package util\n\nimport "context"\n\nfunc WaitReady(ctx context.Context, name string) error {\n'
            "\treturn nil\n}\n",
            "pkg/util declares a WaitReady that is something else",
        ),
        (
            "pkg/util/own.go",
            "package util\n\ntype ReadySignal struct{}\n",
            "pkg/util declares a ReadySignal that is something else",
        ),
        ("pkg/daemons/executor/own.go", "package executor\n\ntype TestFunc int\n", "TestFunc is something else"),
        ("tests/mock/own.go", "package mock\n\ntype Executor struct{}\n", "tests/mock has no NewReady"),
        (
            "tests/mock/own.go",
            "package mock\n\ntype Executor struct{}\n\nfunc NewReady(name string) *Executor {\n\treturn nil\n}\n",
            "tests/mock has no NewReady",
        ),
    ],
    ids=["accessor", "cri", "promoted", "wait", "signal", "test-func", "mock", "mock-of-a-name"],
)
def test_a_name_of_ours_that_is_something_else(path: str, more: str, told: str) -> None:
    before = fixture().get(path, b"")
    tree = {**fixture(), path: before + b"\n" * bool(before) + more.encode()}
    found = engine.scan(snapshot(tree), SUITE)
    assert any(isinstance(each.verdict, Manual) and told in each.verdict.reason for each in found.findings)
    assert not any("is missing" in problem.message for problem in found.problems)


def test_methods_of_the_interface_that_take_something_else() -> None:
    text = fixture()[EXECUTOR].decode()
    changed = text.replace("type Executor interface {\n", "type Executor interface {\n\tCRIReadyChan() chan bool\n")
    changed += "\nfunc CRIReadyChan() chan bool {\n\treturn executor.CRIReadyChan()\n}\n"
    told = reasons(plan({**fixture(), EXECUTOR: changed.encode()}))
    assert "'CRIReadyChan() chan bool' takes the name" in told
    assert "'func CRIReadyChan() chan bool' takes the name" in told


@pytest.mark.parametrize(
    ("literal", "named", "step"),
    [
        ("&executor.Embedded{nil}", "Embedded", "executor-ready-channels"),
        ("[]executor.Embedded{{nil}}", "Embedded", "executor-ready-channels"),
        ('map[string][]*executor.Embedded{"a": {{nil}}}', "Embedded", "executor-ready-channels"),
        ("daemonconfig.ControlRuntime{nil}", "ControlRuntime", "apiserver-ready"),
        ("daemonconfig.ControlRuntime{nil}", "ControlRuntime", "cri-ready"),
        ("daemonconfig.ControlRuntime{nil}", "ControlRuntime", "etcd-ready"),
        ("cmds.Agent{nil}", "Agent", "cri-ready"),
        ("etcd.ETCD{nil}", "ETCD", "etcd-ready"),
    ],
)
def test_a_literal_without_the_names_of_fields(literal: str, named: str, step: str) -> None:
    head = HEAD.replace("import (\n", 'import (\n\t"github.com/k3s-io/k3s/pkg/etcd"\n')
    text = f"{head}var _ etcd.ETCD\n\nfunc f() any {{\n\treturn {literal}\n}}\n"
    found = engine.scan(snapshot({**fixture(), "pkg/fork/fork.go": text.encode()}), SUITE).findings
    told = f"{named} gets its values by position here"
    by_hand = [each.id for each in found if isinstance(each.verdict, Manual) and told in each.verdict.reason]
    assert step in by_hand
    assert len(by_hand) == len(set(by_hand))


@pytest.mark.parametrize(
    ("body", "is_copied"),
    [
        ("c := *e\n\treturn &c", True),
        ("return new(*e)", True),
        ("*e = Embedded{}\n\treturn e", False),
        ("c := (*e).nodeConfig\n\treturn &Embedded{nodeConfig: c}", False),
        ("c := *e.nodeConfig\n\treturn &Embedded{nodeConfig: &c}", False),
    ],
)
def test_an_executor_that_is_copied_with_its_signals(body: str, is_copied: bool) -> None:
    text = f"package executor\n\nfunc (e *Embedded) Clone() *Embedded {{\n\t{body}\n}}\n"
    told = reasons(plan({**fixture(), "pkg/daemons/executor/fork.go": text.encode()}))
    assert ("Embedded is copied, and a signal must not be" in told) == is_copied


@pytest.mark.parametrize(
    ("path", "text", "told", "ours"),
    [
        (
            "pkg/util/ready_test.go",
            "package util\n\nfunc own() {}\n",
            "pkg/util/ready_test.go is there already",
            b"Test_UnitReadySignal_ZeroValue",
        ),
        (
            "pkg/util/own_test.go",
            "package util\n\nfunc Test_UnitReadySignal_Concurrent() {}\n",
            "Test_UnitReadySignal_Concurrent is declared here",
            b"Test_UnitReadySignal_ZeroValue",
        ),
        (
            "pkg/util/own_test.go",
            "package util\n\nvar infoLines = 1\n",
            "infoLines is declared here",
            b"Test_UnitWaitForAPIServerReady_Timeout",
        ),
        (
            "pkg/daemons/executor/own_test.go",
            "package executor\n\ntype unsetExecutor int\n",
            "unsetExecutor is declared here",
            b"Test_UnitExecutor_Two",
        ),
        (
            "pkg/cluster/own_test.go",
            "package cluster\n\ntype remoteDriver int\n",
            "remoteDriver is declared here",
            b"Test_UnitCluster_RemoteDB",
        ),
        (
            "pkg/etcd/ready_linux_test.go",
            "package etcd\n\nfunc own() {}\n",
            "pkg/etcd/ready_linux_test.go is there already",
            b"Test_UnitETCD_NewCluster_Migrate",
        ),
    ],
    ids=["file", "test", "variable", "type", "cluster", "etcd"],
)
def test_tests_that_are_left_out_are_named(path: str, text: str, told: str, ours: bytes) -> None:
    result = plan({**fixture(), path: text.encode()})
    left = [each for each in result.findings if isinstance(each.verdict, Leave) and told in each.verdict.reason]
    assert [each.path for each in left] == [path]
    assert not result.problems
    assert contents(result.final)[path] == text.encode()
    assert any(ours in data for data in contents(planned().final).values())
    assert not any(ours in data for data in contents(result.final).values())


def test_a_wrapper_that_touches_a_configuration_which_may_be_missing() -> None:
    text = HEAD + (
        "type Fork struct {\n\texecutor.Embedded\n}\n\n"
        "func (t *Fork) ETCD(ctx context.Context, args executor.ETCDConfig, extraArgs []string) error {\n"
        '\targs.Name = "fork"\n\treturn t.Embedded.ETCD(ctx, args, extraArgs)\n}\n'
    )
    told = reasons(plan({**fixture(), "pkg/fork/fork.go": text.encode()}))
    assert "(*Fork).ETCD reads the configuration of etcd" in told


def test_a_parameter_cannot_follow_a_variadic_one() -> None:
    old, new = (
        "reset bool, options executor.InitialOptions) error",
        "reset bool, options executor.InitialOptions, extra ...string) error",
    )
    told = reasons(plan(edited("pkg/etcd/etcd.go", old, new)))
    assert "no parameter can follow the last of" in told


def test_a_container_runtime_that_is_started_under_a_condition() -> None:
    start = "\t\tif err := executor.Containerd(ctx, nodeConfig); err != nil {\n\t\t\treturn err\n\t\t}\n"
    inner = '\t\tif os.Getenv("FORK") == "" {\n' + start.replace("\t\t", "\t\t\t", 1) + "\t\t}\n"
    told = reasons(plan(edited("pkg/agent/run.go", start, inner)))
    assert "does not start docker, else containerd, and nothing else" in told


def test_a_receive_left_to_a_person_knows_the_new_name() -> None:
    """Its parameter is renamed, and the series must compile all the same."""
    path = "pkg/agent/tunnel/tunnel.go"
    text = fixture()[path].decode()
    found = re.search(r"func \(a \*agentTunnel\) watchPods\([^)]*\) \{\n", text)
    assert found is not None
    changed = text[: found.end()] + "\tdefer close(a.podsSynced)\n" + text[found.end() :]
    after = contents(plan({**fixture(), path: changed.encode()}).final)[path].decode()
    body = after[after.index("watchPods(ctx") :] if "watchPods(ctx" in after else after
    assert "<-rbacReady" in body
    assert not re.search(
        r"\bapiServerReady\b", re.sub(r"//.*", "", after[after.index(") watchPods(") :].split("\n}\n")[0])
    )


def test_a_source_that_is_not_formatted_is_no_bug_of_the_tool() -> None:
    result = plan(edited("pkg/agent/run.go", "\tnotifySocket := ", "\t notifySocket  := ".replace("  :=", " :=")))
    assert not any(problem.code is ExitCode.INTERNAL for problem in result.problems)


def test_a_lock_of_another_kind() -> None:
    result = plan(edited("pkg/etcd/etcd.go", "type ETCD struct {\n", "type ETCD struct {\n\tclientMu int\n\n"))
    assert "clientMu that is no sync.Mutex" in reasons(result)


def test_a_loop_in_the_background_that_runs_under_a_condition() -> None:
    call = "\tif err := waitForAPIServerInBackground(ctx, cfg.Runtime); err != nil {\n\t\treturn err\n\t}\n"
    inner = "\tif !cfg.ClusterReset {\n\t" + call.replace("\n\t", "\n\t\t") + "\t}\n"
    told = reasons(plan(edited("pkg/daemons/control/server.go", call, inner)))
    assert "the call of waitForAPIServerInBackground cannot be deleted" in told


def test_a_comment_above_the_branch_that_a_wait_stands_in() -> None:
    text = fixture()[EMBED].decode()
    start = text.rindex("\n", 0, text.index("if err := util.WaitForAPIServerReady(")) + 1
    end = text.index("\n\t\t}\n", start) + len("\n\t\t}\n")
    inner = '\t\tif os.Getenv("FORK") == "" {\n\t' + text[start : end - 1].replace("\n", "\n\t") + "\n\t\t}\n"
    comment = "\t\t// There is no apiReady to wait for here.\n"
    result = plan({**fixture(), EMBED: (text[:start] + comment + inner + text[end:]).encode()})
    after = contents(result.final)[EMBED].decode()
    assert reasons(result) == ""
    assert "apiReady" not in after
    assert 'if os.Getenv("FORK") == "" {\n\t\t\tif err := util.WaitReady(' in after


@pytest.mark.parametrize(
    "base",
    [
        "type Base struct {\n\tlevel\n}\n\ntype level struct {\n\t*executor.Embedded\n}",
        "type Base = executor.Embedded",
        "type Base interface {\n\texecutor.Executor\n\tLevel() int\n}",
    ],
)
@pytest.mark.parametrize("check", ["", "\nvar _ executor.Executor = &Fork{}\n"])
def test_a_wrapper_that_takes_the_rest_from_something_further_below(base: str, check: str) -> None:
    text = HEAD + (
        f"{base}\n\ntype Fork struct {{\n\tBase\n}}\n{check}\n"
        "func (t *Fork) APIServer(ctx context.Context, etcdReady <-chan struct{}, args []string) error {\n"
        "\treturn t.Base.APIServer(ctx, etcdReady, args)\n}\n"
    )
    result = plan({**fixture(), "pkg/fork/fork.go": text.encode()})
    after = contents(result.final)
    assert reasons(result) == ""
    assert b"ReadySignal" not in after["pkg/fork/fork.go"]
    assert b"return t.Base.APIServer(ctx, args)" in after["pkg/fork/fork.go"]


def test_a_wrapper_beside_the_executor_that_it_wraps() -> None:
    text = (
        b'package executor\n\nimport "context"\n\ntype base struct {\n\t*Embedded\n}\n\ntype metered struct {\n\tbase\n}\n\n'
        b"func (m *metered) Kubelet(ctx context.Context, args []string) error {\n\treturn m.base.Kubelet(ctx, args)\n}\n\n"
        b"var _ Executor = &metered{}\n"
    )
    result = plan({**fixture(), "pkg/daemons/executor/fork.go": text})
    after = contents(result.final)
    assert reasons(result) == ""
    assert after["pkg/daemons/executor/fork.go"] == text
    assert after[EMBED] == contents(planned().final)[EMBED]


def test_a_decorator_beside_the_executor_whose_signals_have_the_same_names() -> None:
    own = executor_of("type Fork struct {\n\tnext Executor\n}", "return t.next.CALL")
    own = re.sub(r'\t"[^"]*/executor"\n|\bexecutor\.', "", own.replace("package fork", "package executor"))
    told = reasons(plan({**fixture(), "pkg/daemons/executor/fork.go": own.encode()}))
    assert "nothing closes Fork.apiServerReady" in told
    assert "nothing closes Fork.etcdReady" in told
    assert "Embedded" not in told


@pytest.mark.parametrize(
    ("path", "message", "goes_on"),
    [
        (EMBED, "The kubelet starts without an apiserver: %v", True),
        ("pkg/agent/tunnel/tunnel.go", "The tunnel goes on without an apiserver: %v", True),
        ("pkg/agent/tunnel/tunnel.go", "Tunnel endpoint watch failed to wait for apiserver ready: %v", False),
    ],
)
def test_a_goroutine_that_goes_on_without_an_apiserver(path: str, message: str, goes_on: bool) -> None:
    text = fixture()[path].decode()
    start = text.index("util.WaitForAPIServerReady(")
    fatal = text.index("logrus.Fatal", start)
    changed = f'{text[:fatal]}logrus.Warnf("{message}", err){text[text.index(chr(10), fatal) :]}'
    told = reasons(plan({**fixture(), path: changed.encode()}))
    assert ("what waits goes on where the wait has failed" in told) is goes_on


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("ctx, cancel := context.WithTimeout(ctx, time.Minute)\n\tdefer cancel()", "known to last"),
        ("ctx, cancel := context.WithCancel(ctx)\n\tdefer cancel()", "known to last"),
        ("ctx = short(ctx)", "known to last"),
        ('ctx = context.WithValue(ctx, "fork", true)', ""),
    ],
)
def test_a_poll_that_would_end_with_the_function_that_starts_it(line: str, told: str) -> None:
    text = fixture()[EMBED].decode()
    start = text.index("{\n", text.index(") Bootstrap(")) + 2
    result = reasons(plan({**fixture(), EMBED: f"{text[:start]}\t{line}\n{text[start:]}".encode()}))
    assert told in result
    assert bool(result) is bool(told)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("ctx, cancel := context.WithCancel(context.Background())\n\tdefer cancel()", "no context is at hand"),
        ("ctx, cancel := context.WithTimeout(ctx, time.Minute)\n\tdefer cancel()", "no context is at hand"),
        ("ctx, cancel := context.WithCancel(ctx)\n\tdefer cancel()", ""),
    ],
)
def test_a_wait_with_a_context_that_ends_at_another_time(line: str, told: str) -> None:
    path = "pkg/agent/tunnel/tunnel.go"
    text = fixture()[path].decode()
    start = text.index("{\n", text.index(") setKubeletPort(")) + 2
    result = plan({**fixture(), path: f"{text[:start]}\t{line}\n{text[start:]}".encode()})
    verdicts = [str(found.verdict) for found in result.findings if found.function.endswith("setKubeletPort")]
    assert verdicts
    assert any(told in verdict for verdict in verdicts)
    assert any("no context is at hand" in verdict for verdict in verdicts) is bool(told)


RESTORE = """package restore

import (
	"context"

	"github.com/k3s-io/k3s/pkg/daemons/config"
	"github.com/k3s-io/k3s/pkg/etcd"
)

func Restore(ctx context.Context, cfg *config.Control) error {
	LINES
	e := etcd.NewETCD()
	if err := e.SetControlConfig(cfg); err != nil {
		return err
	}
	return e.Reset(ctx, nil)
}
"""


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (
            "ready := make(chan struct{})\n\tclose(ready)\n\tcfg.Runtime = config.NewRuntime(ready)",
            "nothing closes the executor's channel in the place of 'close(ready)'",
        ),
        (
            "ready := make(chan struct{})\n\tgo func() {\n\t\tclose(ready)\n\t}()\n"
            "\tcfg.Runtime = config.NewRuntime(ready)",
            "ready is closed by a function of its own",
        ),
        ("cfg.Runtime = config.NewRuntime(closed)", "the argument 'closed' of NewRuntime cannot just be dropped"),
        ("cfg.Runtime = config.NewRuntime(nil)", ""),
    ],
)
def test_a_command_that_closes_the_channel_by_itself(lines: str, told: str) -> None:
    text = RESTORE.replace("LINES", lines)
    if "closed" in lines:
        text += "\nvar closed = make(chan struct{})\n\nfunc init() { close(closed) }\n"
    result = reasons(plan({**fixture(), "pkg/cli/restore/restore.go": text.encode()}))
    assert told in result
    assert bool(result) is bool(told)


def test_a_close_that_has_a_condition() -> None:
    old = "\tagentConfig.ContainerRuntimeReady = containerRuntimeReady\n"
    close = "\tif cfg.DisableAgent {\n\t\tclose(containerRuntimeReady)\n\t}\n"
    told = reasons(plan(edited("pkg/cli/server/server.go", old, close + old)))
    assert "nothing would be left in the branch of 'close(containerRuntimeReady)'" in told


@pytest.mark.parametrize("runtime", ["Docker", "Containerd"])
@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('logrus.Info("The container runtime is up")', ""),
        ("go watchImages(ctx)", ""),
        ("<-imagesLoaded", "as ready before '<-imagesLoaded'"),
        ("if err := importImages(ctx); err != nil {\n\t\t\treturn err\n\t\t}", "as ready before 'if err := import"),
    ],
)
def test_what_a_fork_does_before_its_container_runtime_is_ready(runtime: str, line: str, told: str) -> None:
    start = f"\t\tif err := executor.{runtime}(ctx, nodeConfig); err != nil {{\n\t\t\treturn err\n\t\t}}\n"
    result = reasons(plan(edited("pkg/agent/run.go", start, f"{start}\t\t{line}\n")))
    assert told in result
    assert bool(result) is bool(told)


@pytest.mark.parametrize(
    ("checked", "told"),
    [
        ("err := CALL\n\t\tif err != nil {\n\t\t\treturn err\n\t\t}\n", ""),
        ("if err := CALL; err != nil {\n\t\t\tlogrus.Warn(err)\n\t\t}\n", "as ready before"),
        ("_ = CALL\n", "as ready before"),
    ],
)
def test_a_container_runtime_whose_error_is_returned_in_another_way(checked: str, told: str) -> None:
    call = "executor.Containerd(ctx, nodeConfig)"
    start = f"if err := {call}; err != nil {{\n\t\t\treturn err\n\t\t}}\n"
    result = reasons(plan(edited("pkg/agent/run.go", start, checked.replace("CALL", call))))
    assert told in result
    assert bool(result) is bool(told)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('logrus.Info("The tunnel is set up")', ""),
        (
            "if err := prepareKubelet(nodeConfig); err != nil {\n\t\treturn err\n\t}",
            "before it starts",
        ),
        ('nodeConfig.AgentConfig.NodeName += "-fork"', "before it starts"),
        ('os.Setenv("FORK", "yes")', "before it starts"),
        ("// the tunnel is up, and the kubelet starts now", "tells the old order"),
    ],
)
def test_what_a_fork_does_before_the_agent_starts(line: str, told: str) -> None:
    old = "\t\tagentRan = true\n\t}\n\n"
    files = edited("pkg/agent/run.go", old, f"{old}\t{line}\n")
    found = [str(each.verdict) for each in plan(files).findings if each.id == "agent-start-order"]
    assert any(told in verdict for verdict in found)
    assert any(verdict.startswith("Manual") for verdict in found) is bool(told)


@pytest.mark.parametrize(
    ("path", "line", "told"),
    [
        ("pkg/daemons/executor/etcd.go", "e.etcdReady.Close()\n", "nothing closes Embedded.etcdReady"),
        (EMBED, "e.apiServerReady.Close", "nothing closes Embedded.apiServerReady"),
    ],
)
def test_a_signal_that_nothing_closes_any_more(path: str, line: str, told: str) -> None:
    after = dict(contents(planned().final))
    text = after[path].decode()
    assert line in text
    after[path] = text.replace(line, "func() {}" if not line.endswith("\n") else "_ = 0\n").encode()
    result = plan(after)
    (finding,) = [found for found in result.findings if not isinstance(found.verdict, Leave)]
    assert told in str(finding.verdict)
    assert told in reasons(result)


def test_a_wrapper_that_starts_a_runtime_by_itself() -> None:
    text = HEAD + (
        "type Fork struct {\n\texecutor.Embedded\n}\n\n"
        "func (t *Fork) Containerd(ctx context.Context, node *daemonconfig.Node) error {\n\treturn nil\n}\n"
    )
    told = reasons(plan({**fixture(), "pkg/fork/fork.go": text.encode()}))
    assert "(*Fork).Containerd does not hand on to Embedded" in told


def test_a_wrapper_that_hands_on_takes_the_rest_from_what_it_embeds() -> None:
    text = HEAD + (
        "type Fork struct {\n\texecutor.Embedded\n}\n\n"
        "func (t *Fork) Containerd(ctx context.Context, node *daemonconfig.Node) error {\n"
        "\treturn t.Embedded.Containerd(ctx, node)\n}\n"
    )
    assert reasons(plan({**fixture(), "pkg/fork/fork.go": text.encode()})) == ""


def test_a_datastore_that_is_never_reported_as_ready_any_more() -> None:
    after = dict(contents(planned().final))
    text = after["pkg/cluster/cluster.go"].decode()
    start = text.index("\tif c.managedDB == nil {\n")
    end = text.index("\n\t}\n", start) + len("\n\t}\n")
    assert "executor.ETCD(" in text[start:end]
    after["pkg/cluster/cluster.go"] = (text[:start] + text[end:]).encode()
    (finding,) = [found for found in plan(after).findings if not isinstance(found.verdict, Leave)]
    assert "Start calls executor.ETCD 1 times" in str(finding.verdict)


def test_a_component_that_waits_for_nothing_any_more() -> None:
    after = dict(contents(planned().final))
    text = after[EMBED].decode()
    start = text.index("func (e *Embedded) ControllerManager(")
    wait = text.index("\t\tif err := util.WaitReady(", start)
    end = text.index("\n\t\t}\n", wait) + len("\n\t\t}\n")
    after[EMBED] = (text[:wait] + text[end:]).encode()
    (finding,) = [found for found in plan(after).findings if not isinstance(found.verdict, Leave)]
    assert "(*Embedded).ControllerManager waits for nothing" in str(finding.verdict)


@pytest.mark.parametrize(
    ("path", "old", "new", "told"),
    [
        (
            "pkg/daemons/executor/etcd.go",
            "return e.etcdReady.Chan()",
            "return make(chan struct{})",
            "(*Embedded).ETCDReadyChan gives out another channel than that of etcdReady",
        ),
        (
            EXECUTOR,
            "return executor.CRIReadyChan()",
            "return executor.ETCDReadyChan()",
            "CRIReadyChan calls another method",
        ),
        ("pkg/etcd/etcd.go", "e.config.ExtraEtcdArgs, test)", "e.config.ExtraEtcdArgs, nil)", "started without a test"),
    ],
)
def test_a_channel_or_a_test_that_got_lost(path: str, old: str, new: str, told: str) -> None:
    after = dict(contents(planned().final))
    assert after[path].decode().count(old) == 1
    after[path] = after[path].replace(old.encode(), new.encode())
    found = [str(each.verdict) for each in plan(after).findings if not isinstance(each.verdict, Leave)]
    assert any(told in verdict for verdict in found)


def test_another_interface_that_asks_for_the_channel() -> None:
    """Nothing calls through it, and its parameters have no names: only the types tell."""
    text = HEAD + (
        "type Starter interface {\n\tAPIServer(context.Context, <-chan struct{}, []string) error\n"
        "\tControllerManager(context.Context, <-chan struct{}, []string) error\n}\n\n"
        "var _ Starter = &executor.Embedded{}\n"
    )
    result = plan({**fixture(), "pkg/fork/fork.go": text.encode()})
    found = [str(each.verdict) for each in result.findings if each.path == "pkg/fork/fork.go"]
    assert any("Starter asks for APIServer with a channel" in verdict for verdict in found)
    assert any("Starter asks for ControllerManager with a channel" in verdict for verdict in found)


@pytest.mark.parametrize("skipped", ["apiserver-ready", "etcd-ready"])
def test_a_step_that_is_left_out_is_no_signal_that_nothing_closes(skipped: str) -> None:
    tree = Snapshot({path: File(data) for path, data in fixture().items()})
    result = engine.plan(tree, SUITE, load_templates(), skip=[skipped])
    assert "nothing closes" not in reasons(result)
    assert result.steps


def test_helpers_of_tests_that_take_something_else_are_not_called() -> None:
    own = b"package util\n\nfunc isClosed(ch chan int) bool { return ch == nil }\n"
    result = plan({**fixture(), "pkg/util/own_test.go": own})
    assert not result.problems
    assert len(result.steps) == len(SUITE)
    assert not any(b"isClosed(" in data for path, data in util_tests(result).items() if path != "pkg/util/own_test.go")
    assert any(b"isClosed(" in data for data in util_tests(planned()).values())


def test_helpers_of_tests_that_take_something_else_since_an_earlier_step() -> None:
    ready = "pkg/daemons/executor/ready_test.go"
    steps = [codemod.id for codemod in SUITE]
    tree = Snapshot({path: File(data) for path, data in fixture().items()})
    early = engine.plan(tree, SUITE, load_templates(), skip=steps[steps.index("etcd-ready") :])
    files = contents(early.final)
    old, new = b"func waitClosed(t *testing.T, ", b"func waitClosed(t testing.TB, _ string, "
    assert files[ready].count(old) == 1
    changed = files[ready].replace(old, new).replace(b"waitClosed(t, ", b'waitClosed(t, "", ')
    assert b"_ETCD_" in contents(plan(files).final)[ready]
    assert b"_ETCD_" not in contents(plan({**files, ready: changed}).final)[ready]


def util_tests(result: Plan) -> Files:
    return {path: data for path, data in contents(result.final).items() if re.match(r"pkg/util/\w+_test.go", path)}


@pytest.mark.parametrize(
    ("path", "before", "wait", "named"),
    [
        pytest.param(
            "pkg/daemons/control/server.go",
            "	for _, start := range",
            "	<-cfg.Runtime.APIServerReady\n",
            "run bootstraps the executor only after it",
            id="in what the server's start calls",
        ),
        pytest.param(
            "pkg/server/server.go",
            "	go startOnAPIServerReady(",
            "	startOnAPIServerReady(",
            "run bootstraps",
            id="no goroutine",
        ),
    ],
)
def test_a_wait_that_the_start_of_the_server_waits_for(path: str, before: str, wait: str, named: str) -> None:
    new = wait if before.lstrip().startswith("go ") else wait + before
    result = plan(edited(path, before, new))
    assert f"this wait never ends: {named}" in reasons(result)
    assert "apiserver-ready" not in {step.id for step in result.steps}


def test_a_wait_of_the_agent_before_it_bootstraps_the_executor() -> None:
    text = fixture()["pkg/agent/run.go"].decode()
    found = re.search(r"\tif err := util\.WaitForAPIServerReady\(.*?\n\t}\n", text, re.DOTALL)
    assert found is not None
    moved = text.replace(found[0], "").replace(
        "	if err := executor.Bootstrap(", found[0] + "	if err := executor.Bootstrap(", 1
    )
    result = plan({**fixture(), "pkg/agent/run.go": moved.encode()})
    assert "this wait never ends: run bootstraps the executor only after it (executor.Bootstrap)" in reasons(result)


def test_a_migrated_tree_in_which_the_start_of_the_server_waits() -> None:
    server = "pkg/daemons/control/server.go"
    files = contents(planned().final)
    text = files[server].decode()
    place = "	for _, start := range"
    assert text.count(place) == 1
    late = text.replace(place, "	<-executor.APIServerReadyChan()\n" + place).encode()
    assert "this wait never ends: run bootstraps" in reasons(plan({**files, server: late}))


@pytest.mark.parametrize(
    ("params", "call"),
    [
        pytest.param("", "generateTestConfig()", id="as at the issue"),
        pytest.param("t *testing.T", "generateTestConfig(t)", id="as since 2025-04-01"),
        pytest.param("name string", "", id="something else"),
    ],
)
def test_the_configuration_that_tests_of_etcd_are_given(params: str, call: str) -> None:
    case = Path(__file__).parent.parent / "fixtures/cases/etcd-ready/tests-that-travel.txt"
    _, files = txtar.parse(case.read_text(encoding="utf-8"))
    inputs = {path: File(text.encode()) for path, text in list(files.items())[: list(files).index("want")]}
    own = inputs["pkg/etcd/etcd_test.go"].data.replace(
        b"generateTestConfig()", f"generateTestConfig({params})".encode()
    )
    tree = Tree(Snapshot({**inputs, "pkg/etcd/etcd_test.go": File(own)}))
    changes = {change.path: change.after for change in run_codemod(tree, etcd_ready.CODEMOD, load_templates()).changes}
    made = changes.get("pkg/etcd/ready_linux_test.go")
    assert changes
    assert set(re.findall(r"generateTestConfig\(.*?\)", made.data.decode() if made is not None else "")) == {call} - {
        ""
    }


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        pytest.param(
            "if err := util.WaitReady(ctx, e.ETCDReadyChan()); err != nil {\n\t\t\treturn\n\t\t}",
            "_ = util.WaitReady(ctx, e.ETCDReadyChan())",
            "goes on although the wait was ended",
            id="its error is dropped",
        ),
        pytest.param(
            "if err := util.WaitReady(ctx, e.ETCDReadyChan()); err != nil {\n\t\t\treturn\n\t\t}",
            "util.WaitReady(ctx, e.ETCDReadyChan())",
            "goes on although the wait was ended",
            id="its error is not taken",
        ),
        pytest.param(
            "util.WaitReady(ctx, e.ETCDReadyChan())",
            "util.WaitReady(context.Background(), e.ETCDReadyChan())",
            "waits with a context that never ends",
            id="another context",
        ),
    ],
)
def test_a_wait_that_holds_nothing_back(old: str, new: str, told: str) -> None:
    files = contents(planned().final)
    text = files[EMBED].decode()
    assert text.count(old) == 1
    result = plan({**files, EMBED: text.replace(old, new).encode()})
    assert told in "\n".join(str(found.verdict) for found in result.findings)
    assert not plan(files).steps
    assert all(isinstance(found.verdict, Leave) for found in plan(files).findings)


def test_a_wait_of_the_agent_that_was_put_into_a_function_of_its_own() -> None:
    text = fixture()["pkg/agent/run.go"].decode()
    found = re.search(r"\tif err := util\.WaitForAPIServerReady\(.*?\n\t}\n", text, re.DOTALL)
    assert found is not None
    own = f"\nfunc waitReady(ctx context.Context, nodeConfig *daemonconfig.Node) error {{\n{found[0]}\treturn nil\n}}\n"
    called = "\tif err := waitReady(ctx, nodeConfig); err != nil {\n\t\treturn err\n\t}\n"
    result = plan({**fixture(), "pkg/agent/run.go": (text.replace(found[0], called) + own).encode()})
    assert not result.problems
    assert len(result.steps) == len(SUITE)
    again = plan(contents(result.final))
    assert not again.problems
    assert not again.steps


def test_a_wait_that_a_fork_has_made_less_than_fatal() -> None:
    path = "pkg/daemons/control/server.go"
    text = fixture()[path].decode()
    found = re.search(r"waitForUntaintedNode\(.*?(logrus\.Fatalf)\(", text, re.DOTALL)
    assert found is not None
    mild = text[: found.start(1)] + "logrus.Errorf" + text[found.end(1) :]
    result = plan({**fixture(), path: mild.encode()})
    assert not [problem.message for problem in result.problems if "missing" in problem.message]
    assert any("does not end the process" in str(each.verdict) for each in result.findings)
