"""Names, places and states of the apiserver's readiness that the modules of `apiserver-ready` share."""

from __future__ import annotations

from collections.abc import Iterable

from refactor_tool.codemods._k3s import (
    AGENT,
    CLI_SERVER,
    CONFIG,
    CONTROL,
    SERVER,
    TUNNEL,
    UTIL,
    folder_of,
    package,
    relocated,
    site,
)
from refactor_tool.gosrc import ast
from refactor_tool.gosrc.tree import Tree
from refactor_tool.gosrc.walk import walk
from refactor_tool.model import Channel, Finding, Span, Verdict

ID = "apiserver-ready"
ACCESSOR = "APIServerReadyChan"
WAIT = "WaitForAPIServerReady"
NOTIFY = "NotifyAPIServerReady"
POLL = "pollReadyz"
LIMIT = "DefaultAPIServerReadyTimeout"
HELPER = "waitForAPIServerReady"
STANDALONE = "RunStandalone"
BACKGROUND = "waitForAPIServerInBackground"
#: The channel that ControlRuntime carried, and what the startup hooks of other projects get.
FIELD = "APIServerReady"
#: The kubeconfig that the executor polls with, a field of the agent's node configuration.
KUBECONFIG = "KubeConfigK3sController"
MESSAGE = "failed to wait for apiserver ready"

_SHAPES = ("interface", "forwarder", "embedded")
#: The functions in which k3s waited, asked or passed on readiness of the apiserver, once each in every era, by folder
#: and title. "" is any folder: the embedded executor moved. Upstream moved the startup hooks and the tunnel's watches.
_PLACES = {
    (AGENT, "run"): "agent-run",
    (AGENT, STANDALONE): "agent-standalone",
    (TUNNEL, "Setup"): "tunnel",
    (TUNNEL, "(*agentTunnel).startWatches"): "tunnel",
    ("", "(*Embedded).Kubelet"): "kubelet",
    (CONTROL, "controllerManager"): "control-controller-manager",
    (CONTROL, "scheduler"): "control-scheduler",
    (CONTROL, "cloudControllerManager"): "control-cloud-controller-manager",
    (CLI_SERVER, "run"): "server-command",
    (SERVER, "StartServer"): "startup-hooks",
    (SERVER, "PrepareServer"): "startup-hooks",
    (SERVER, "startOnAPIServerReady"): "controllers",
}

#: Where the sites of some shapes are expected, by what they may be if one has moved to another function.
_HOMES = (
    ({"Setup of the tunnel": "tunnel"}, ("guard-goroutine", "asks")),
    ({"run of the agent": "agent-run"}, ("guard-return", "poll-call", "asks")),
    ({"controllerManager": "control-controller-manager"}, ("drop-caller",)),
    (
        {
            "scheduler": "control-scheduler",
            "cloudControllerManager": "control-cloud-controller-manager",
            "run of the server command": "server-command",
            "StartServer": "startup-hooks",
            "startOnAPIServerReady": "controllers",
        },
        ("select-case", "receive", "value", "argument", "assignment", "return", "asks"),
    ),
)
#: Places that waited for nothing in the oldest trees.
LATE = frozenset({"kubelet"})
#: What must be found once in a tree of any era, as done or still to be done.
ANCHORS = (
    "util",
    "bootstrap",
    "background",
    "runtime-field",
    *dict.fromkeys(_PLACES.values()),
    *(f"{shape}-{method}" for shape in _SHAPES for method in ("controller-manager", "scheduler")),
)


def anchor_at(tree: Tree, path: str, offset: int) -> str:
    """Return the anchor of the function that holds a byte, "" where it is none that the step is about."""
    title = tree.title_at(path, offset)
    return _PLACES.get((folder_of(path), title)) or _PLACES.get(("", title), "")


def settled(sites: Iterable[Finding]) -> tuple[Finding, ...]:
    """Give the anchor of a site that is missing to the one site that may be it, in another function."""
    known = tuple(sites)
    folders = {anchor: {folder for (folder, _), each in _PLACES.items() if each == anchor} for anchor in ANCHORS}
    for homes, shapes in _HOMES:
        known = relocated(known, homes, shapes, folders)
    return known


def found(
    tree: Tree,
    path: str,
    span: Span,
    verdict: Verdict,
    message: str,
    shape: str,
    *,
    anchor: str = "",
    channel: Channel = "apiserver",
) -> Finding:
    """Return a finding of this codemod."""
    return site(tree, ID, path, span, verdict, message, channel=channel, shape=shape, anchor=anchor)


def runtime_field(tree: Tree) -> ast.FieldObject:
    """Return the field that carried the channel."""
    return ast.FieldObject(package(tree, CONFIG), "ControlRuntime", FIELD)


def has_helper(tree: Tree) -> bool:
    """Tell whether the agent has its wait with a time limit, and not only another function of that name."""
    ready = ast.PackageObject(package(tree, UTIL), "WaitReady")
    calls = (
        tree.calls(path, node)
        for path, decl in tree.functions(package(tree, AGENT), HELPER)
        for node in walk(tree.function(path, decl))
        if isinstance(node, ast.Call)
    )
    return ready in calls


def is_upstream(tree: Tree) -> bool:
    """Tell whether the poll is upstream's (529e748ac): it makes the channel, and exits the process in the end."""
    util = package(tree, UTIL)
    makes = any(
        tree.text(path, decl.signature).endswith(" <-chan struct{}") and decl.params
        for path, decl in tree.functions(util, ACCESSOR)
    )
    return makes and not tree.functions(util, NOTIFY)
