"""Why a site is not rewritten: done, in another shape, moved, or missing; with both shapes and where it used to be.

The table of homes says where each expected site stands in the tree of the issue (fb870adb9) and in which shape. It
decides nothing: sites are found by what they are. It is what a person is told when a branch has drifted.
"""

from __future__ import annotations

from refactor_tool.model import Finding, Leave, Manual, Rewrite, SiteCell, SiteState
from refactor_tool.record import record


@record
class Home:
    """Where a site stands in the tree of the issue: file, function as Go writes it, and the shape found there."""

    path: str
    function: str
    shape: str

    @property
    def place(self) -> str:
        return f"{self.path} {self.function}".rstrip()


def cell(codemod: str, anchor: str, finding: Finding | None, text: str) -> SiteCell:
    """Return what became of an expected site; `text` is the source of the finding's place, on one line."""
    home = HOMES.get((codemod, anchor))
    expected = _SHAPES.get(home.shape, home.shape) if home is not None else ""
    if finding is None:
        why = f"not found; it was at {home.place}" if home is not None else "not found"
        return SiteCell(codemod, anchor, "missing", "", why, expected=expected)
    place = f"{finding.path} {finding.function}".rstrip()
    moved = home.place if home is not None and home.place != place else ""
    state, why = _state(finding)
    if state == "differs":
        return SiteCell(codemod, anchor, state, place, why, moved, expected, text)
    return SiteCell(codemod, anchor, state, place, why, moved)


def _state(finding: Finding) -> tuple[SiteState, str]:
    match finding.verdict:
        case Rewrite():
            return "to do", finding.message
        case Manual(reason=reason, instruction=instruction):
            return "differs", f"{reason}; {instruction}" if instruction else reason
        case Leave(reason=reason, done=done):
            return ("applied" if done else "left"), reason


#: What the tool knows how to rewrite, by the word for the shape; … stands for anything.
_SHAPES = {
    "caller": "executor.APIServer(ctx, …ETCDReady, args)",
    "call": "executor.ETCD(ctx, executor.ETCDConfig{…}, …)",
    "close": "defer close(CHANNEL) in the goroutine that waits",
    "close-channel": "if cfg.…Ready != nil { close(cfg.…Ready) }",
    "drop-caller": "executor.ControllerManager(ctx, …APIServerReady, args)",
    "drop-forwarder": "func ControllerManager(ctx …, apiReady <-chan struct{}, args …) error { return executor.… }",
    "drop-implementer": "func (…) ControllerManager(ctx …, apiReady <-chan struct{}, args …) error",
    "drop-interface": "ControllerManager(ctx …, apiReady <-chan struct{}, args …) error",
    "embedded": "func (e *Embedded) ETCD(ctx …, args ETCDConfig, extraArgs …) error { start; go func() { … }() }",
    "executor-cri": "the executor's methods that start a container runtime, or the struct itself",
    "executor-state": "type Embedded struct { … } in a file without a build tag",
    "fatal": "if err := WAIT(ctx, …); err != nil { logrus.Fatalf(…) } in a goroutine",
    "field": "a field of its own: NAME <-chan struct{}",
    "forwarder": "func NAME(…) error { return executor.NAME(…) }",
    "forwarders": "func NAME(…) … { return executor.NAME(…) } for each method of the interface",
    "generate-runtime": "func GenerateRuntime(…) that makes a runtime with NewRuntime(CHANNEL)",
    "guard-goroutine": "go func() { … if err := util.WaitForAPIServerReady(…); err != nil { logrus.Fatalf(…) } … }()",
    "guard-return": "if err := util.WaitForAPIServerReady(…); err != nil { return … }",
    "if": "if ready, err := cluster.Start(ctx); err != nil { … } else { ….ETCDReady = ready }",
    "implementer": "func (…) APIServer(ctx …, etcdReady <-chan struct{}, args …) error",
    "interface": "type Executor interface { … }",
    "limit": "a wait at the end of the function: <-ctx.Done(); return ctx.Err()",
    "order": "tunnel and certificates first, then agent.Agent, with the special cases for other executors",
    "promise": "case err := <-promise(func() error { return util.WaitForAPIServerReady(…) }): in an endless select",
    "readyz-poll": "a poll of /readyz whose last error is kept and returned at the end",
    "receive": "<-CHANNEL as a statement",
    "rename-forwarder": "func Scheduler(ctx …, apiReady <-chan struct{}, args …) error { return executor.… }",
    "rename-implementer": "func (…) Scheduler(ctx …, apiReady <-chan struct{}, args …) error",
    "rename-interface": "Scheduler(ctx …, apiReady <-chan struct{}, args …) error",
    "result": "func (c *Cluster) Start(ctx …) (<-chan struct{}, error)",
    "runtime-start": "func (…) NAME(ctx …, cfg …) error { return PACKAGE.Run(ctx, cfg) }",
    "select-case": "case <-CHANNEL: in a select that has the context too",
    "signature": "func NewRuntime(CHANNEL <-chan struct{}) *ControlRuntime",
    "start": "func (e *Embedded) Bootstrap(…) error that keeps its nodeConfig",
    "test": "func (c *Cluster) testClusterDB(ctx …) <-chan struct{} with a loop that tests every 5 seconds",
    "type": "type Executor interface { … }",
    "util": "func WaitForAPIServerReady(ctx …, kubeconfigPath string, timeout time.Duration) error",
    "value": "APIServerReady: ….Runtime.APIServerReady in a composite literal",
}

HOMES: dict[tuple[str, str], Home] = {
    ("surface-readyz-errors", "wait-for-apiserver-ready"): Home(
        "pkg/util/api.go", "WaitForAPIServerReady", "readyz-poll"
    ),
    ("surface-readyz-errors", "limit"): Home("pkg/util/api.go", "", "limit"),
    ("executor-ready-channels", "executor-interface"): Home(
        "pkg/daemons/executor/executor.go", "type Executor", "interface"
    ),
    ("executor-ready-channels", "executor-forwarders"): Home(
        "pkg/daemons/executor/executor.go", "Docker", "forwarders"
    ),
    ("executor-ready-channels", "embedded-state"): Home(
        "pkg/daemons/executor/etcd.go", "type Embedded", "executor-state"
    ),
    ("executor-ready-channels", "embedded-containerd"): Home(
        "pkg/daemons/executor/embed.go", "(*Embedded).Containerd", "runtime-start"
    ),
    ("executor-ready-channels", "embedded-docker"): Home(
        "pkg/daemons/executor/embed.go", "(*Embedded).Docker", "runtime-start"
    ),
    ("executor-ready-channels", "embedded-cri"): Home(
        "pkg/daemons/executor/embed.go", "(*Embedded).Docker", "executor-cri"
    ),
    ("apiserver-ready", "util"): Home("pkg/util/api.go", "WaitForAPIServerReady", "util"),
    ("apiserver-ready", "bootstrap"): Home("pkg/daemons/executor/embed.go", "(*Embedded).Bootstrap", "start"),
    ("apiserver-ready", "background"): Home("pkg/daemons/control/server.go", "waitForAPIServerInBackground", "promise"),
    ("apiserver-ready", "runtime-field"): Home("pkg/daemons/config/types.go", "type ControlRuntime", "field"),
    ("apiserver-ready", "agent-run"): Home("pkg/agent/run.go", "run", "guard-return"),
    ("apiserver-ready", "agent-standalone"): Home("pkg/agent/run.go", "RunStandalone", "limit"),
    ("apiserver-ready", "tunnel"): Home("pkg/agent/tunnel/tunnel.go", "Setup", "guard-goroutine"),
    ("apiserver-ready", "kubelet"): Home("pkg/daemons/executor/embed.go", "(*Embedded).Kubelet", "guard-goroutine"),
    ("apiserver-ready", "control-controller-manager"): Home(
        "pkg/daemons/control/server.go", "controllerManager", "drop-caller"
    ),
    ("apiserver-ready", "control-scheduler"): Home("pkg/daemons/control/server.go", "scheduler", "select-case"),
    ("apiserver-ready", "control-cloud-controller-manager"): Home(
        "pkg/daemons/control/server.go", "cloudControllerManager", "select-case"
    ),
    ("apiserver-ready", "server-command"): Home("pkg/cli/server/server.go", "run", "receive"),
    ("apiserver-ready", "startup-hooks"): Home("pkg/server/server.go", "StartServer", "value"),
    ("apiserver-ready", "controllers"): Home("pkg/server/server.go", "startOnAPIServerReady", "select-case"),
    ("apiserver-ready", "interface-controller-manager"): Home(
        "pkg/daemons/executor/executor.go", "type Executor", "drop-interface"
    ),
    ("apiserver-ready", "interface-scheduler"): Home(
        "pkg/daemons/executor/executor.go", "type Executor", "rename-interface"
    ),
    ("apiserver-ready", "forwarder-controller-manager"): Home(
        "pkg/daemons/executor/executor.go", "ControllerManager", "drop-forwarder"
    ),
    ("apiserver-ready", "forwarder-scheduler"): Home(
        "pkg/daemons/executor/executor.go", "Scheduler", "rename-forwarder"
    ),
    ("apiserver-ready", "embedded-controller-manager"): Home(
        "pkg/daemons/executor/embed.go", "(*Embedded).ControllerManager", "drop-implementer"
    ),
    ("apiserver-ready", "embedded-scheduler"): Home(
        "pkg/daemons/executor/embed.go", "(*Embedded).Scheduler", "rename-implementer"
    ),
    ("cri-ready", "agent-run"): Home("pkg/agent/run.go", "run", "close-channel"),
    ("cri-ready", "run-standalone"): Home("pkg/agent/run.go", "RunStandalone", "close-channel"),
    ("cri-ready", "agent-field"): Home("pkg/cli/cmds/agent.go", "type Agent", "field"),
    ("cri-ready", "runtime-field"): Home("pkg/daemons/config/types.go", "type ControlRuntime", "field"),
    ("cri-ready", "new-runtime"): Home("pkg/daemons/config/types.go", "NewRuntime", "signature"),
    ("cri-ready", "generate-runtime"): Home("tests/unit.go", "GenerateRuntime", "generate-runtime"),
    ("cri-ready", "etcd-reset"): Home("pkg/etcd/etcd.go", "(*ETCD).Reset", "receive"),
    ("cri-ready", "etcd-start"): Home("pkg/etcd/etcd.go", "(*ETCD).Start", "select-case"),
    ("cri-ready", "etcd-learners"): Home("pkg/etcd/etcd.go", "(*ETCD).manageLearners", "receive"),
    ("etcd-ready", "apiserver-interface"): Home("pkg/daemons/executor/executor.go", "type Executor", "interface"),
    ("etcd-ready", "apiserver-forwarder"): Home("pkg/daemons/executor/executor.go", "APIServer", "forwarder"),
    ("etcd-ready", "apiserver-embedded"): Home("pkg/daemons/executor/embed.go", "(*Embedded).APIServer", "implementer"),
    ("etcd-ready", "apiserver-caller"): Home("pkg/daemons/control/server.go", "apiServer", "caller"),
    ("etcd-ready", "test-func"): Home("pkg/daemons/executor/executor.go", "type Executor", "type"),
    ("etcd-ready", "etcd-interface"): Home("pkg/daemons/executor/executor.go", "type Executor", "interface"),
    ("etcd-ready", "etcd-forwarder"): Home("pkg/daemons/executor/executor.go", "ETCD", "forwarder"),
    ("etcd-ready", "etcd-embedded"): Home("pkg/daemons/executor/etcd.go", "(*Embedded).ETCD", "embedded"),
    ("etcd-ready", "etcd-cluster"): Home("pkg/etcd/etcd.go", "(*ETCD).cluster", "call"),
    ("etcd-ready", "etcd-temporary"): Home("pkg/etcd/etcd.go", "(*ETCD).StartEmbeddedTemporary", "call"),
    ("etcd-ready", "cluster-start"): Home("pkg/cluster/cluster.go", "(*Cluster).Start", "result"),
    ("etcd-ready", "cluster-test"): Home("pkg/cluster/managed.go", "(*Cluster).testClusterDB", "test"),
    ("etcd-ready", "start-call"): Home("pkg/daemons/control/server.go", "prepare", "if"),
    ("etcd-ready", "new-cluster"): Home("pkg/etcd/etcd.go", "(*ETCD).newCluster", "call"),
    ("etcd-ready", "etcd-client"): Home("pkg/etcd/etcd.go", "type ETCD", "field"),
    ("etcd-ready", "notify"): Home("pkg/cli/server/server.go", "run", "receive"),
    ("etcd-ready", "runtime-field"): Home("pkg/daemons/config/types.go", "type ControlRuntime", "field"),
    ("agent-start-order", "start-order"): Home("pkg/agent/run.go", "setupTunnelAndRunAgent", "order"),
    ("cancel-safe-waits", "tunnel-kubelet-port"): Home(
        "pkg/agent/tunnel/tunnel.go", "(*agentTunnel).setKubeletPort", "receive"
    ),
    ("cancel-safe-waits", "tunnel-pods"): Home("pkg/agent/tunnel/tunnel.go", "(*agentTunnel).watchPods", "receive"),
    ("cancel-safe-waits", "tunnel-endpoints"): Home(
        "pkg/agent/tunnel/tunnel.go", "(*agentTunnel).watchEndpoints", "receive"
    ),
    ("cancel-safe-waits", "embedded-scheduler"): Home(
        "pkg/daemons/executor/embed.go", "(*Embedded).Scheduler", "receive"
    ),
    ("cancel-safe-waits", "embedded-cloud-controller"): Home(
        "pkg/daemons/executor/embed.go", "(*Embedded).CloudControllerManager", "receive"
    ),
    ("cancel-safe-waits", "control-scheduler"): Home("pkg/daemons/control/server.go", "scheduler", "close"),
    ("cancel-safe-waits", "control-cloud-controller"): Home(
        "pkg/daemons/control/server.go", "cloudControllerManager", "close"
    ),
    ("cancel-safe-waits", "tunnel-rbac"): Home("pkg/agent/tunnel/tunnel.go", "Setup", "fatal"),
    ("cancel-safe-waits", "untainted-node"): Home("pkg/daemons/control/server.go", "scheduler", "fatal"),
    ("cancel-safe-waits", "handlers"): Home("pkg/daemons/control/server.go", "waitForAPIServerHandlers", "fatal"),
}
