"""What differs between periods of the k3s source, as data, and which period a tree is of.

An era is recognised from what the tree itself declares, never from a date or a version string. A tree that agrees with
no era in everything is named after the nearest, with what differs; each site is still judged by its own facts. The
table also says which of the sites that not every period has must be there in a tree that agrees with an era in
everything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

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
    """One period: what its trees answer, the optional sites (codemod, anchor) that all of them have, and others' sites.

    A fact without an answer may be anything. `lacks` are sites that trees of every other period must have.
    """

    name: str
    answers: Mapping[str, str]
    expects: frozenset[tuple[str, str]] = frozenset()
    lacks: frozenset[tuple[str, str]] = frozenset()


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


def must_have(era: str, codemod: str, anchor: str, *, optional: bool) -> bool:
    """Tell whether a site must be in a tree; `era` is its label. In a tree of no period only `optional` decides."""
    exact = next((known for known in ERAS if known.name == era), None)
    if exact is None:
        return not optional
    return (codemod, anchor) in exact.expects or not (optional or (codemod, anchor) in exact.lacks)


def _differences(era: Era, found: dict[str, str]) -> tuple[tuple[str, str, str], ...]:
    return tuple((name, want, found[name]) for name, want in era.answers.items() if found[name] != want)


# --- how a tree answers -------------------------------------------------------------------------------


def _readiness(tree: Tree) -> str:
    carried = _runtime_field(tree) != "none" or _has_field(tree, "ControlRuntime", "APIServerReady")
    asked = any(name.endswith("ReadyChan") for name in _methods(tree))
    if carried and asked:
        return "half-moved"
    return "carried" if carried else ("asked" if asked else "none")


def _runtime_field(tree: Tree) -> str:
    fields = (name for name in ("ContainerRuntimeReady", "AgentReady") if _has_field(tree, "ControlRuntime", name))
    return next(fields, "none")


def _runtime(tree: Tree) -> str:
    return "NewRuntime" if tree.functions(_package(tree, "pkg/daemons/config"), "NewRuntime") else "literal"


def _runtimes(tree: Tree) -> str:
    return "executor" if {"Containerd", "Docker"} <= _methods(tree) else "agent"


def _other_runtimes(tree: Tree) -> str:
    return "waited-for" if tree.functions(_package(tree, "pkg/agent/cri"), "WaitForService") else "ignored"


def _wait(tree: Tree) -> str:
    for path, decl in tree.functions(_package(tree, "pkg/util"), "WaitForAPIServerReady"):
        params = [tree.text(path, param.type.span) for param in decl.params for _ in param.names or ("",)]
        return "kubeconfig" if params[1:2] == ["string"] else "client"
    return "none"


def _poll(tree: Tree) -> str:
    for path, _ in tree.functions(_package(tree, "pkg/util"), "WaitForAPIServerReady"):
        known = (name for name in ("PollImmediateWithContext", "PollUntilContextTimeout") if name in _text(tree, path))
        return next(known, "another")
    return "none"


def _node_wait(tree: Tree) -> str:
    control = tree.functions(_package(tree, "pkg/daemons/control"), "waitForUntaintedNode")
    return "control" if control else "executor"


def _cluster_test(tree: Tree) -> str:
    for _, decl in tree.method(_package(tree, "pkg/cluster"), "Cluster", "testClusterDB"):
        return "channel-and-error" if len(decl.results) > 1 else "channel"
    return "none"


def _errors(tree: Tree) -> str:
    for path in tree.package_files(_package(tree, "pkg/agent")):
        if _PKG_ERRORS in _text(tree, path):
            return next(spec.local for spec in tree.file(path).imports if spec.path == _PKG_ERRORS)
    return "none"


def _handlers(tree: Tree) -> str:
    return "pkg/server/handlers" if tree.package_files(_package(tree, "pkg/server/handlers")) else "pkg/server"


_PKG_ERRORS = "github.com/pkg/errors"


def _package(tree: Tree, folder: str) -> str:
    return f"{tree.module}/{folder}"


def _text(tree: Tree, path: str) -> str:
    return tree.data(path).decode("utf-8", "replace")


def _methods(tree: Tree) -> set[str]:
    """Return the names of the methods that every executor has."""
    interface = tree.interface(_package(tree, "pkg/daemons/executor"), "Executor")
    return {method.name for method in interface[2].methods} if interface is not None else set()


def _has_field(tree: Tree, owner: str, name: str) -> bool:
    return any(
        ident.name == name
        for _, decl in tree.types(_package(tree, "pkg/daemons/config"), owner)
        if isinstance(decl.type, ast.StructType)
        for field in decl.type.fields
        for ident in field.names
    )


# --- the table ----------------------------------------------------------------------------------------

FACTS: tuple[Fact, ...] = (
    Fact("readiness", "Who gives out the readiness channels: structs that carry them, or the executor?", _readiness),
    Fact("runtime-field", "Which field carries the container runtime's readiness?", _runtime_field),
    Fact("runtime", "Is a control runtime made by NewRuntime or as a literal?", _runtime),
    Fact("runtimes", "Who starts containerd and cri-dockerd: the executor, or the agent itself?", _runtimes),
    Fact("other-runtimes", "Is a container runtime that somebody else starts waited for?", _other_runtimes),
    Fact("wait", "What does WaitForAPIServerReady take to ask with?", _wait),
    Fact("poll", "Which polling helper of the Kubernetes libraries stands beside WaitForAPIServerReady?", _poll),
    Fact("node-wait", "Where does the scheduler wait for an untainted node?", _node_wait),
    Fact("cluster-test", "What does the test of the datastore give back?", _cluster_test),
    Fact("errors", "By which name does the agent import github.com/pkg/errors?", _errors),
    Fact("handlers", "Where are the handlers of the supervisor?", _handlers),
)

_BEFORE_ISSUE = {
    "readiness": "carried",
    "runtime-field": "ContainerRuntimeReady",
    "runtime": "NewRuntime",
    "runtimes": "executor",
    "other-runtimes": "waited-for",
    "wait": "kubeconfig",
    "poll": "PollUntilContextTimeout",
    "node-wait": "control",
    "cluster-test": "channel",
    "errors": "pkgerrors",
    "handlers": "pkg/server/handlers",
}
# Going back in time, each period is the one after it but for what changed between them.
_V1_32 = _BEFORE_ISSUE | {"cluster-test": "channel-and-error", "errors": "errors"}
_V1_31 = _V1_32 | {"node-wait": "executor", "handlers": "pkg/server"}
_V1_30 = _V1_31 | {"poll": "PollImmediateWithContext"}
_V1_26 = _V1_30 | {"runtime-field": "AgentReady", "runtimes": "agent"}
_V1_25 = _V1_26 | {"runtime": "literal", "other-runtimes": "ignored"}
_V1_23 = _V1_25 | {"wait": "client"}

# The optional sites that all trees of a period have, each period those of the one before it and some more.
_SITES_1_23 = frozenset(
    {
        ("surface-readyz-errors", "limit"),
        ("cri-ready", "generate-runtime"),
        ("etcd-ready", "cluster-test"),
        ("cancel-safe-waits", "untainted-node"),
    }
)
_SITES_1_25 = _SITES_1_23 | {
    ("executor-ready-channels", "embedded-cri"),
    ("apiserver-ready", "kubelet"),
    ("etcd-ready", "etcd-temporary"),
}
_SITES_1_26 = _SITES_1_25 | {
    ("cri-ready", "new-runtime"),
    ("cancel-safe-waits", "tunnel-kubelet-port"),
    ("cancel-safe-waits", "tunnel-pods"),
    ("cancel-safe-waits", "tunnel-endpoints"),
    ("cancel-safe-waits", "tunnel-rbac"),
}
_SITES_1_30 = _SITES_1_26 | {
    ("executor-ready-channels", "embedded-containerd"),
    ("executor-ready-channels", "embedded-docker"),
}
_SITES_1_32 = _SITES_1_30 | {("cancel-safe-waits", "control-scheduler")}

# An agent without a kubelet is there since f090bf2d5, which is within that period.
_WITHOUT_STANDALONE = frozenset({("apiserver-ready", "agent-standalone"), ("cri-ready", "run-standalone")})

#: Newest first, each with the commits of k3s that begin and end it where they are known. A release branch may be of an
#: older period than its number says, which is why names are only told as an example.
ERAS: tuple[Era, ...] = (
    # since d45006be6; of what a tree was like before, this says nothing
    Era("asked of the executor", {"readiness": "asked", "runtime-field": "none", "cluster-test": "none"}),
    Era("carried in structs, as before #11896", _BEFORE_ISSUE, _SITES_1_32),  # such as fb870adb9
    Era("carried in structs, as in 1.32", _V1_32, _SITES_1_32),  # since 6381ae93e
    Era("carried in structs, as in 1.31", _V1_31, _SITES_1_30),  # since e4f3cc7b5
    Era("carried in structs, as in 1.30", _V1_30, _SITES_1_30),  # since fae41a8b2, such as 9af17d299 (1.30.2)
    Era("carried as AgentReady, as in 1.26", _V1_26, _SITES_1_26),  # such as 257fa2c54 (1.26.4)
    Era("carried as AgentReady, as in 1.25", _V1_25, _SITES_1_25),
    Era("carried as AgentReady, as in 1.23", _V1_23, _SITES_1_23, _WITHOUT_STANDALONE),
)
