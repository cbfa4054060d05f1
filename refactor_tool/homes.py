"""Where each expected site stands in the tree of the issue (fb870adb9), in which shape, and what becomes of it there.

This decides nothing: sites are found by what they are. It is what a person is told when a branch has drifted.
"""

from __future__ import annotations

from refactor_tool.record import record


@record
class Home:
    """A site of the tree of the issue: file, function as Go writes it, shape, and `step`, the Go that it becomes."""

    path: str
    function: str
    shape: str
    step: str

    @property
    def place(self) -> str:
        return f"{self.path} {self.function}".rstrip()


#: That of a site which the tree of the issue does not have, or which nobody has entered below.
NOWHERE = Home("", "", "", "")

#: What the tool knows how to rewrite, by the word for the shape; … stands for anything.
SHAPES: dict[str, str] = {
    "call": "executor.ETCD(ctx, executor.ETCDConfig{…}, …)",
    "caller": "executor.APIServer(ctx, …ETCDReady, args)",
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
    "limit": "const DefaultAPIServerReadyTimeout = …, or the wait at the end: <-ctx.Done(); return ctx.Err()",
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
    "type": "type Executor interface { … }, before which the type of a test is declared",
    "util": "func WaitForAPIServerReady(ctx …, kubeconfigPath string, timeout time.Duration) error",
    "value": "APIServerReady: ….Runtime.APIServerReady in a composite literal",
}

_API = "pkg/util/api.go"
_AGENT = "pkg/agent/run.go"
_TUNNEL = "pkg/agent/tunnel/tunnel.go"
_TYPES = "pkg/daemons/config/types.go"
_CONTROL = "pkg/daemons/control/server.go"
_EMBED = "pkg/daemons/executor/embed.go"
_EXECUTOR = "pkg/daemons/executor/executor.go"
_STATE = "pkg/daemons/executor/etcd.go"
_ETCD = "pkg/etcd/etcd.go"
_COMMAND = "pkg/cli/server/server.go"
_SERVER = "pkg/server/server.go"
_CLUSTER = "pkg/cluster/cluster.go"
_MANAGED = "pkg/cluster/managed.go"
_UNIT = "tests/unit.go"
_CMDS = "pkg/cli/cmds/agent.go"

HOMES: dict[tuple[str, str], Home] = {
    ("surface-readyz-errors", "wait-for-apiserver-ready"): Home(
        _API,
        "WaitForAPIServerReady",
        "readyz-poll",
        "read /readyz with DoRaw, and return the [-] lines of its body as the error",
    ),
    ("surface-readyz-errors", "limit"): Home(
        _API, "", "limit", "keep const DefaultAPIServerReadyTimeout = 15 * time.Minute"
    ),
    ("executor-ready-channels", "executor-interface"): Home(
        _EXECUTOR,
        "type Executor",
        "interface",
        "declare CRI, APIServerReadyChan, ETCDReadyChan and CRIReadyChan in the interface",
    ),
    ("executor-ready-channels", "executor-forwarders"): Home(
        _EXECUTOR,
        "Docker",
        "forwarders",
        "write a function for each of the four new methods: func NAME(…) … { return executor.NAME(…) }",
    ),
    ("executor-ready-channels", "embedded-state"): Home(
        _STATE,
        "type Embedded",
        "executor-state",
        "keep a util.ReadySignal for apiserver, etcd and CRI each, and let the three methods return its Chan()",
    ),
    ("executor-ready-channels", "embedded-containerd"): Home(
        _EMBED, "(*Embedded).Containerd", "runtime-start", "return e.criReady.CloseIfNil(containerd.Run(ctx, cfg))"
    ),
    ("executor-ready-channels", "embedded-docker"): Home(
        _EMBED, "(*Embedded).Docker", "runtime-start", "return e.criReady.CloseIfNil(cridockerd.Run(ctx, cfg))"
    ),
    ("executor-ready-channels", "embedded-cri"): Home(
        _EMBED,
        "(*Embedded).Docker",
        "executor-cri",
        "write CRI: return e.criReady.CloseIfNil(cri.WaitForService(ctx, cfg.ContainerRuntimeEndpoint, …)), at once for"
        " /dev/null",
    ),
    ("apiserver-ready", "util"): Home(
        _API,
        "WaitForAPIServerReady",
        "util",
        "write NotifyAPIServerReady(ctx, kubeconfigPath, timeout, ready func()) error, which polls in a goroutine",
    ),
    ("apiserver-ready", "bootstrap"): Home(
        _EMBED,
        "(*Embedded).Bootstrap",
        "start",
        "return the error of util.NotifyAPIServerReady(ctx, …KubeConfigK3sController,"
        " util.DefaultAPIServerReadyTimeout, e.apiServerReady.Close)",
    ),
    ("apiserver-ready", "background"): Home(
        _CONTROL, "waitForAPIServerInBackground", "promise", "delete waitForAPIServerInBackground and its call"
    ),
    ("apiserver-ready", "runtime-field"): Home(
        _TYPES, "type ControlRuntime", "field", "delete the field APIServerReady"
    ),
    ("apiserver-ready", "agent-run"): Home(
        _AGENT,
        "run",
        "guard-return",
        "wait with util.WaitReady for executor.APIServerReadyChan(), for util.DefaultAPIServerReadyTimeout at most",
    ),
    ("apiserver-ready", "agent-standalone"): Home(
        _AGENT, "RunStandalone", "limit", "do as in run before the last <-ctx.Done(), unless cfg.ClusterReset"
    ),
    ("apiserver-ready", "tunnel"): Home(
        _TUNNEL,
        "Setup",
        "guard-goroutine",
        "if err := util.WaitReady(ctx, executor.APIServerReadyChan()); err != nil { return }",
    ),
    ("apiserver-ready", "kubelet"): Home(
        _EMBED,
        "(*Embedded).Kubelet",
        "guard-goroutine",
        "if err := util.WaitReady(ctx, e.APIServerReadyChan()); err != nil { return }",
    ),
    ("apiserver-ready", "control-controller-manager"): Home(
        _CONTROL, "controllerManager", "drop-caller", "executor.ControllerManager(ctx, args)"
    ),
    ("apiserver-ready", "control-scheduler"): Home(
        _CONTROL, "scheduler", "select-case", "case <-executor.APIServerReadyChan():"
    ),
    ("apiserver-ready", "control-cloud-controller-manager"): Home(
        _CONTROL, "cloudControllerManager", "select-case", "case <-executor.APIServerReadyChan():"
    ),
    ("apiserver-ready", "server-command"): Home(
        _COMMAND,
        "run",
        "receive",
        "if err := util.WaitReady(ctx, executor.APIServerReadyChan()); err != nil { return }",
    ),
    ("apiserver-ready", "startup-hooks"): Home(
        _SERVER, "StartServer", "value", "APIServerReady: executor.APIServerReadyChan()"
    ),
    ("apiserver-ready", "controllers"): Home(
        _SERVER, "startOnAPIServerReady", "select-case", "case <-executor.APIServerReadyChan():"
    ),
    ("apiserver-ready", "interface-controller-manager"): Home(
        _EXECUTOR, "type Executor", "drop-interface", "ControllerManager(ctx context.Context, args []string) error"
    ),
    ("apiserver-ready", "interface-scheduler"): Home(
        _EXECUTOR,
        "type Executor",
        "rename-interface",
        "Scheduler(ctx context.Context, nodeReady <-chan struct{}, args []string) error",
    ),
    ("apiserver-ready", "forwarder-controller-manager"): Home(
        _EXECUTOR, "ControllerManager", "drop-forwarder", "return executor.ControllerManager(ctx, args)"
    ),
    ("apiserver-ready", "forwarder-scheduler"): Home(
        _EXECUTOR, "Scheduler", "rename-forwarder", "call the parameter nodeReady"
    ),
    ("apiserver-ready", "embedded-controller-manager"): Home(
        _EMBED,
        "(*Embedded).ControllerManager",
        "drop-implementer",
        "drop the parameter, and wait with util.WaitReady(ctx, e.APIServerReadyChan())",
    ),
    ("apiserver-ready", "embedded-scheduler"): Home(
        _EMBED, "(*Embedded).Scheduler", "rename-implementer", "call the parameter nodeReady"
    ),
    ("cri-ready", "agent-run"): Home(
        _AGENT,
        "run",
        "close-channel",
        "if err := executor.CRI(ctx, nodeConfig); err != nil { return err }, unless Docker or Containerd is called",
    ),
    ("cri-ready", "run-standalone"): Home(
        _AGENT, "RunStandalone", "close-channel", "if err := executor.CRI(ctx, nodeConfig); err != nil { return err }"
    ),
    ("cri-ready", "agent-field"): Home(
        _CMDS, "type Agent", "field", "delete the field ContainerRuntimeReady, or AgentReady as it was once"
    ),
    ("cri-ready", "runtime-field"): Home(
        _TYPES, "type ControlRuntime", "field", "delete the field ContainerRuntimeReady, or AgentReady as it was once"
    ),
    ("cri-ready", "new-runtime"): Home(
        _TYPES, "NewRuntime", "signature", "func NewRuntime() *ControlRuntime, and no argument in its callers"
    ),
    ("cri-ready", "generate-runtime"): Home(
        _UNIT, "GenerateRuntime", "generate-runtime", "executor.Set(mock.NewReady())"
    ),
    ("cri-ready", "etcd-reset"): Home(
        _ETCD,
        "(*ETCD).Reset",
        "receive",
        "if err := util.WaitReady(ctx, executor.CRIReadyChan()); err != nil { return }",
    ),
    ("cri-ready", "etcd-start"): Home(_ETCD, "(*ETCD).Start", "select-case", "case <-executor.CRIReadyChan():"),
    ("cri-ready", "etcd-learners"): Home(
        _ETCD,
        "(*ETCD).manageLearners",
        "receive",
        "if err := util.WaitReady(ctx, executor.CRIReadyChan()); err != nil { return }",
    ),
    ("etcd-ready", "apiserver-interface"): Home(
        _EXECUTOR, "type Executor", "interface", "APIServer(ctx context.Context, args []string) error"
    ),
    ("etcd-ready", "apiserver-forwarder"): Home(
        _EXECUTOR, "APIServer", "forwarder", "return executor.APIServer(ctx, args)"
    ),
    ("etcd-ready", "apiserver-embedded"): Home(
        _EMBED,
        "(*Embedded).APIServer",
        "implementer",
        "drop the parameter, and wait with util.WaitReady(ctx, e.ETCDReadyChan())",
    ),
    ("etcd-ready", "apiserver-caller"): Home(_CONTROL, "apiServer", "caller", "executor.APIServer(ctx, args)"),
    ("etcd-ready", "test-func"): Home(
        _EXECUTOR, "type Executor", "type", "declare type TestFunc func(context.Context) error"
    ),
    ("etcd-ready", "etcd-interface"): Home(
        _EXECUTOR,
        "type Executor",
        "interface",
        "ETCD(ctx context.Context, args *ETCDConfig, extraArgs []string, test TestFunc) error",
    ),
    ("etcd-ready", "etcd-forwarder"): Home(
        _EXECUTOR, "ETCD", "forwarder", "return executor.ETCD(ctx, args, extraArgs, test)"
    ),
    ("etcd-ready", "etcd-embedded"): Home(
        _STATE,
        "(*Embedded).ETCD",
        "embedded",
        "start etcd unless args is nil, call test every 5 seconds, and close etcdReady when it returns nil",
    ),
    ("etcd-ready", "etcd-cluster"): Home(
        _ETCD,
        "(*ETCD).cluster",
        "call",
        "executor.ETCD(ctx, &executor.ETCDConfig{…}, …, test), with a parameter test of its own",
    ),
    ("etcd-ready", "etcd-temporary"): Home(
        _ETCD, "(*ETCD).StartEmbeddedTemporary", "call", "embedded.ETCD(ctx, &executor.ETCDConfig{…}, …, nil)"
    ),
    ("etcd-ready", "cluster-start"): Home(
        _CLUSTER,
        "(*Cluster).Start",
        "result",
        "return only an error; hand a test to executor.ETCD(ctx, nil, nil, …) where this server runs no etcd",
    ),
    ("etcd-ready", "cluster-test"): Home(
        _MANAGED,
        "(*Cluster).testClusterDB",
        "test",
        "func (c *Cluster) testRemoteDB(ctx context.Context) error, which asks managedDB.GetMembersClientURLs once",
    ),
    ("etcd-ready", "start-call"): Home(
        _CONTROL, "prepare", "if", "if err := cluster.Start(ctx); err != nil { return … }"
    ),
    ("etcd-ready", "new-cluster"): Home(
        _ETCD,
        "(*ETCD).newCluster",
        "call",
        "give e.cluster a test that waits until the migration is done, and then calls e.Test",
    ),
    ("etcd-ready", "etcd-client"): Home(
        _ETCD, "type ETCD", "field", "guard the start, the use and the end of the client by a lock"
    ),
    ("etcd-ready", "notify"): Home(
        _COMMAND, "run", "receive", "if err := util.WaitReady(ctx, executor.ETCDReadyChan()); err != nil { return }"
    ),
    ("etcd-ready", "runtime-field"): Home(_TYPES, "type ControlRuntime", "field", "delete the field ETCDReady"),
    ("agent-start-order", "start-order"): Home(
        _AGENT,
        "setupTunnelAndRunAgent",
        "order",
        "agent.Agent first on all nodes, then the wait for addresses on etcd-only nodes, then tunnel and certificates",
    ),
    ("cancel-safe-waits", "tunnel-kubelet-port"): Home(
        _TUNNEL,
        "(*agentTunnel).setKubeletPort",
        "receive",
        "if err := util.WaitReady(ctx, rbacReady); err != nil { return }",
    ),
    ("cancel-safe-waits", "tunnel-pods"): Home(
        _TUNNEL,
        "(*agentTunnel).watchPods",
        "receive",
        "if err := util.WaitReady(ctx, rbacReady); err != nil { return }",
    ),
    ("cancel-safe-waits", "tunnel-endpoints"): Home(
        _TUNNEL,
        "(*agentTunnel).watchEndpoints",
        "receive",
        "if err := util.WaitReady(ctx, rbacReady); err != nil { return }",
    ),
    ("cancel-safe-waits", "embedded-scheduler"): Home(
        _EMBED, "(*Embedded).Scheduler", "receive", "if err := util.WaitReady(ctx, nodeReady); err != nil { return }"
    ),
    ("cancel-safe-waits", "embedded-cloud-controller"): Home(
        _EMBED,
        "(*Embedded).CloudControllerManager",
        "receive",
        "if err := util.WaitReady(ctx, ccmRBACReady); err != nil { return }",
    ),
    ("cancel-safe-waits", "control-scheduler"): Home(
        _CONTROL, "scheduler", "close", "close(nodeReady) at the end, where all waits before it have succeeded"
    ),
    ("cancel-safe-waits", "control-cloud-controller"): Home(
        _CONTROL,
        "cloudControllerManager",
        "close",
        "close(ccmRBACReady) at the end, where all waits before it have succeeded",
    ),
    ("cancel-safe-waits", "tunnel-rbac"): Home(
        _TUNNEL, "Setup", "fatal", "if ctx.Err() != nil { return } before the process is ended"
    ),
    ("cancel-safe-waits", "untainted-node"): Home(
        _CONTROL, "scheduler", "fatal", "if ctx.Err() != nil { return } before the process is ended"
    ),
    ("cancel-safe-waits", "handlers"): Home(
        _CONTROL, "waitForAPIServerHandlers", "fatal", "if ctx.Err() != nil { return } before the process is ended"
    ),
}
