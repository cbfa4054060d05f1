"""Names of k3s that several codemods need: where things live, and what they were called when."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from refactor_tool.gosrc import ast
from refactor_tool.gosrc.tree import Tree
from refactor_tool.model import Channel, Finding, Leave, Span, Verdict
from refactor_tool.record import replace

UTIL = "pkg/util"
EXECUTOR = "pkg/daemons/executor"
CONFIG = "pkg/daemons/config"
CONTROL = "pkg/daemons/control"
CMDS = "pkg/cli/cmds"
CLUSTER = "pkg/cluster"
ETCD = "pkg/etcd"
AGENT = "pkg/agent"
DAEMONS_AGENT = "pkg/daemons/agent"
TUNNEL = "pkg/agent/tunnel"
CRI = "pkg/agent/cri"
SERVER = "pkg/server"
CLI_SERVER = "pkg/cli/server"
MOCK = "tests/mock"

#: What the tests of several steps call, and what it takes and returns (`helper`).
IS_CLOSED = ("isClosed", "<-chan struct{}", "bool")
WAIT_CLOSED = ("waitClosed", "*testing.T", "<-chan struct{}")
WRITE_KUBECONFIG = ("writeKubeConfig", "*testing.T", "string", "string")

#: The field that carries the container runtime's readiness; `AgentReady` before 2024-02-21.
CRI_FIELDS = ("ContainerRuntimeReady", "AgentReady")

#: What helps where the wait for the apiserver takes a client.
TAKE_KUBECONFIG = "let it take the path of a kubeconfig, as in k3s since e763fadbb (2022-04-29), and plan again"


def takes_client(wait: ast.FuncDecl) -> bool:
    """Tell whether a wait takes a context, a client and a time limit, as the one for the apiserver did until then."""
    params = [param.type for param in wait.params for _ in param.names]
    return len(params) == 3 and isinstance(params[1], ast.Selector)


def package(tree: Tree, folder: str) -> str:
    """Return the import path of a folder of the examined module."""
    return f"{tree.module}/{folder}"


def declares(tree: Tree, folder_package: str, name: str) -> bool:
    """Tell whether a package declares a name at file level, in any of its files, tests included."""
    return bool(
        tree.functions(folder_package, name) or tree.types(folder_package, name) or tree.variables(folder_package, name)
    )


def helper(tree: Tree, beside: str, name: str, *types: str) -> tuple[str, ast.FuncDecl] | None:
    """Return the function that code in the file `beside` would call by a name, if it is the only one of its package.

    `types` are those of its parameters and results, as our templates write them; None where it has others.
    """
    known = tree.functions(tree.package_of(beside), name)
    if len(known) != 1 or tree.package_clause(known[0][0]) != tree.package_clause(beside):
        return None
    path, decl = known[0]
    has = [tree.text(path, each.type.span) for each in (*decl.params, *decl.results) for _ in each.names or (None,)]
    return known[0] if has == list(types) else None


def folder_of(path: str) -> str:
    """Return the folder of a file, as the names here have it."""
    return path.rpartition("/")[0]


def is_test(path: str) -> bool:
    """Tell whether a file is a test or holds helpers of tests."""
    return path.endswith("_test.go") or path.startswith("tests/")


def site(
    tree: Tree,
    codemod: str,
    path: str,
    span: Span,
    verdict: Verdict,
    message: str,
    *,
    channel: Channel,
    shape: str,
    anchor: str = "",
) -> Finding:
    """Return a codemod's finding at a place, with the function that holds it."""
    title = tree.title_at(path, span.start)
    return Finding(codemod, "codemod", path, span, title, verdict, message, channel, shape, anchor)


def relocated(
    found: Iterable[Finding],
    homes: Mapping[str, str],
    shapes: Collection[str],
    folders: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> tuple[Finding, ...]:
    """Recognise a site that has moved to another function: the only anchor without a finding, and the only one without.

    Of several sites without an anchor the only one that is not done yet is meant, since earlier steps may have made
    others, else the only one in the `folders` of the anchor.
    `homes` are anchors by the function in which their sites are expected; `shapes` says which sites may be meant.
    """
    findings = tuple(found)
    present = {each.anchor for each in findings}
    missing = [(home, anchor) for home, anchor in homes.items() if anchor not in present]
    homeless = [each for each in findings if not each.anchor and each.shape in shapes]
    undone = [each for each in homeless if not isinstance(each.verdict, Leave)]
    if len(missing) != 1:
        return findings
    home, anchor = missing[0]
    beside = [each for each in homeless if folder_of(each.path) in folders.get(anchor, ())]
    meant = next((sites[0] for sites in (undone, beside, homeless) if len(sites) == 1), None)
    if meant is None:
        return findings
    moved = replace(meant, anchor=anchor, message=f"{meant.message} (it was in {home})")
    return tuple(moved if each == meant else each for each in findings)
