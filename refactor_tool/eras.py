"""What differs between periods of the k3s source, as data, and which period a tree is of.

An era is recognised from what the tree itself declares, never from a date or a version string. A tree that agrees with
no era in everything is named after the nearest, with what differs; each site is still judged by its own facts. The
table also says which of the sites that not every period has must be there in a tree that agrees with an era in
everything.
"""

from __future__ import annotations

from collections.abc import Callable

from refactor_tool.gosrc import ast
from refactor_tool.gosrc.tree import Tree
from refactor_tool.record import record

_EXECUTOR = "pkg/daemons/executor"


@record
class Fact:
    """One thing that differs by period: its name, what it asks, and how a tree answers it, in one word."""

    name: str
    question: str
    probe: Callable[[Tree], str]


@record
class Era:
    """One period: what its trees answer, and the optional sites (codemod, anchor) that all of them have."""

    name: str
    answers: tuple[tuple[str, str], ...]
    expects: frozenset[tuple[str, str]] = frozenset()


@record
class Recognised:
    """The nearest era, and each fact in which the tree differs from it: (name, the era's answer, the tree's)."""

    era: Era
    differs: tuple[tuple[str, str, str], ...]

    @property
    def is_exact(self) -> bool:
        return not self.differs

    @property
    def label(self) -> str:
        """Return the era's name for people, with what differs."""
        if self.is_exact:
            return self.era.name
        return f"nearest to {self.era.name}: {', '.join(f'{name} is {found}' for name, _, found in self.differs)}"


def recognise(tree: Tree) -> Recognised:
    """Return the era that a tree agrees with most; of equally near ones the first of the table."""
    found = {fact.name: fact.probe(tree) for fact in FACTS}
    candidates = [Recognised(era, _differences(era, found)) for era in ERAS]
    return min(candidates, key=lambda candidate: len(candidate.differs))


def _differences(era: Era, found: dict[str, str]) -> tuple[tuple[str, str, str], ...]:
    return tuple((name, want, found[name]) for name, want in era.answers if found[name] != want)


# --- how a tree answers -------------------------------------------------------------------------------


def _readiness(tree: Tree) -> str:
    """Return who gives out the readiness channels: structs that carry them, the executor, or both while half made."""
    carried = _runtime_field(tree) != "none" or bool(_field(tree, "ControlRuntime", "APIServerReady"))
    interface = tree.interface(f"{tree.module}/{_EXECUTOR}", "Executor")
    asked = interface is not None and any(method.name.endswith("ReadyChan") for method in interface[2].methods)
    if carried and asked:
        return "half-moved"
    return "carried" if carried else ("asked" if asked else "none")


def _runtime_field(tree: Tree) -> str:
    fields = (name for name in ("ContainerRuntimeReady", "AgentReady") if _field(tree, "ControlRuntime", name))
    return next(fields, "none")


def _field(tree: Tree, owner: str, name: str) -> bool:
    return any(
        ident.name == name
        for _, decl in tree.types(f"{tree.module}/pkg/daemons/config", owner)
        if isinstance(decl.type, ast.StructType)
        for field in decl.type.fields
        for ident in field.names
    )


def _runtimes(tree: Tree) -> str:
    """Return who starts containerd and cri-dockerd: the executor, or the agent itself."""
    interface = tree.interface(f"{tree.module}/{_EXECUTOR}", "Executor")
    methods = {method.name for method in interface[2].methods} if interface is not None else set()
    return "executor" if {"Containerd", "Docker"} <= methods else "agent"


def _poll(tree: Tree) -> str:
    """Return the polling helper of the Kubernetes libraries that the tree's own wait uses."""
    for path, decl in tree.functions(f"{tree.module}/pkg/util", "WaitForAPIServerReady"):
        body = tree.data(path)[decl.span.start : decl.span.end]
        return "PollImmediateWithContext" if b"PollImmediateWithContext" in body else "PollUntilContextTimeout"
    return "none"


def _node_wait(tree: Tree) -> str:
    """Return where the scheduler waits for an untainted node."""
    control = tree.functions(f"{tree.module}/pkg/daemons/control", "waitForUntaintedNode")
    return "control" if control else "executor"


def _cluster_test(tree: Tree) -> str:
    """Return what the test of the datastore gives back, or that there is none."""
    for _, decl in tree.method(f"{tree.module}/pkg/cluster", "Cluster", "testClusterDB"):
        return "channel-and-error" if len(decl.results) > 1 else "channel"
    return "none"


FACTS: tuple[Fact, ...] = (
    Fact("readiness", "Who gives out the readiness channels?", _readiness),
    Fact("runtime-field", "Which field carries the container runtime's readiness?", _runtime_field),
    Fact("runtimes", "Who starts the container runtimes?", _runtimes),
    Fact("poll", "Which polling helper does WaitForAPIServerReady use?", _poll),
    Fact("node-wait", "Where is the scheduler's wait for an untainted node?", _node_wait),
    Fact("cluster-test", "What does the test of the datastore give back?", _cluster_test),
)

_SINCE_1_29 = frozenset(
    {
        ("surface-readyz-errors", "limit"),
        ("executor-ready-channels", "embedded-containerd"),
        ("executor-ready-channels", "embedded-docker"),
        ("apiserver-ready", "kubelet"),
        ("cri-ready", "new-runtime"),
        ("cri-ready", "generate-runtime"),
        ("etcd-ready", "cluster-test"),
        ("cancel-safe-waits", "tunnel-kubelet-port"),
        ("cancel-safe-waits", "tunnel-pods"),
        ("cancel-safe-waits", "tunnel-endpoints"),
    }
)

#: Newest first. Branch points seen: 1.26.4 (257fa2c54), 1.30.2 (9af17d299), the issue (fb870adb9), its end (d45006be6).
ERAS: tuple[Era, ...] = (
    Era(
        "asked of the executor (after #11896)",
        (
            ("readiness", "asked"),
            ("runtime-field", "none"),
            ("runtimes", "executor"),
            ("poll", "PollUntilContextTimeout"),
            ("node-wait", "control"),
            ("cluster-test", "none"),
        ),
    ),
    Era(
        "carried in structs, 1.31 to 1.32",
        (
            ("readiness", "carried"),
            ("runtime-field", "ContainerRuntimeReady"),
            ("runtimes", "executor"),
            ("poll", "PollUntilContextTimeout"),
            ("node-wait", "control"),
            ("cluster-test", "channel"),
        ),
        _SINCE_1_29 | {("cancel-safe-waits", "control-scheduler"), ("cancel-safe-waits", "untainted-node")},
    ),
    Era(
        "carried in structs, 1.29 to 1.30",
        (
            ("readiness", "carried"),
            ("runtime-field", "ContainerRuntimeReady"),
            ("runtimes", "executor"),
            ("poll", "PollImmediateWithContext"),
            ("node-wait", "executor"),
            ("cluster-test", "channel-and-error"),
        ),
        _SINCE_1_29,
    ),
    Era(
        "carried in structs as AgentReady, up to 1.28",
        (
            ("readiness", "carried"),
            ("runtime-field", "AgentReady"),
            ("runtimes", "agent"),
            ("poll", "PollImmediateWithContext"),
            ("node-wait", "executor"),
            ("cluster-test", "channel-and-error"),
        ),
        frozenset({("apiserver-ready", "kubelet")}),
    ),
)
