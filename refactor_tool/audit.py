"""Hold every occurrence of the readiness vocabulary against the findings, so that no site is dropped in silence.

Pure. The vocabulary is a pattern over names, not a list of places: a name that somebody adds tomorrow is found too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from refactor_tool.gosrc import ast
from refactor_tool.gosrc.tree import Occurrence, Tree, TypeRef
from refactor_tool.gosrc.words import words_with
from refactor_tool.model import NEEDLES, Channel, Cover, Finding, Leave, Manual, Span, Verdict

#: Names that mean readiness of a component; `NewRuntime` and `testClusterDB` carry or make a channel.
VOCABULARY = re.compile(
    rb"\w*(?:[Aa]pi|API|[Aa]piServer|APIServer|[Ee]tcd|ETCD|[Cc]ri|CRI|[Rr]untime|[Cc]ontainerd|[Dd]ocker"
    rb"|[Nn]ode|[Aa]gent|RBAC|[Rr]bac|[Kk]ubelet|[Ss]cheduler)Ready(?:Chan|Ch|Signal|Loop|Timeout|InBackground)?"
    rb"|waitForAPIServerInBackground|NewRuntime|testClusterDB|readyCh|etcdLoop"
)

#: Names of the vocabulary that are something else, with what they are. Never a readiness channel.
FALSE_FRIENDS: dict[str, str] = {
    "WaitForRBACReady": "waits for an access review, not for a component",
    "NodeReady": "the Kubernetes node condition",
}

UNCLASSIFIED = "unclassified"


def audit(tree: Tree, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return a finding for every occurrence that lies in none of `findings`, sorted by path and place.

    Its verdict is a `Leave` where a rule here knows the occurrence, else a `Manual` with the shape `unclassified`,
    which fails the run.
    """
    covered = Cover((finding.path, _whole_lines(tree, finding)) for finding in findings)
    return tuple(
        _finding(tree, found)
        for path in tree.files_with(*NEEDLES)
        for found in tree.occurrences_at(path, [at for at in words(tree.data(path)) if not covered.holds(path, at)])
    )


def words(data: bytes) -> list[Span]:
    """Return where the names of the vocabulary stand in a file's bytes, in order, prose included."""
    return words_with(NEEDLES, VOCABULARY, data)


def _whole_lines(tree: Tree, finding: Finding) -> Span:
    """Widen a finding to whole lines: a person reads a site as lines, and so does the JSON document."""
    data = tree.data(finding.path)
    end = data.find(b"\n", max(finding.span.start, finding.span.end - 1))
    return Span(data.rfind(b"\n", 0, finding.span.start) + 1, len(data) if end < 0 else end)


def _finding(tree: Tree, found: Occurrence) -> Finding:
    verdict = _verdict(tree, found)
    shape = found.role if isinstance(verdict, Leave) else UNCLASSIFIED
    title = tree.title_at(found.path, found.span.start)
    message = f"{found.name} ({found.role})"
    return Finding("audit", "audit", found.path, found.span, title, verdict, message, channel_of(found.name), shape)


def _verdict(tree: Tree, found: Occurrence) -> Verdict:
    reasons: Iterator[Leave | None] = (rule(tree, found) for rule in _RULES)
    known = next((reason for reason in reasons if reason is not None), None)
    if known is not None:
        return known
    line = tree.line_text(found.path, found.span.start)
    return Manual(
        f"no codemod knows this use of {found.name}: {line}",
        "look whether it waits for, carries or reports readiness; report it if the tool should know the shape",
    )


def _false_friend(_tree: Tree, found: Occurrence) -> Leave | None:
    what = FALSE_FRIENDS.get(found.name)
    return Leave(f"{found.name}: {what}") if what is not None else None


def _in_prose(_tree: Tree, found: Occurrence) -> Leave | None:
    if found.role in ("comment", "string"):
        return Leave(f"a {found.role} that mentions {found.name}; no code")
    return None


def _ready_signal(tree: Tree, found: Occurrence) -> Leave | None:
    """Know the new ways: a `ReadySignal`, a `…ReadyChan` method or function, and what upstream has (d45006be6)."""
    match found.object:
        case ast.FieldObject(package=package, type=owner, name=name):
            if name.endswith("ReadyChan"):
                return Leave("asks the executor for its readiness channel already", done=True)
            if _implements_ready_chan(tree, package, owner):
                return Leave(f"readiness state of the executor {owner}", done=True)
        case ast.PackageObject(name=name) if name.endswith("ReadyChan"):
            return Leave("asks the executor for its readiness channel already", done=True)
        case ast.PackageObject(name="ReadySignal"):
            return Leave("the type behind the readiness channels", done=True)
        case _:
            pass
    return None


def _implements_ready_chan(tree: Tree, package: str, owner: str) -> bool:
    return any(method.name.endswith("ReadyChan") for _, method in tree.methods(package, owner))


def _node_or_rbac(_tree: Tree, found: Occurrence) -> Leave | None:
    """Know a channel that carries something else than a component's readiness: an untainted node, or granted access."""
    channel = channel_of(found.name)
    if channel in ("node", "rbac") and isinstance(found.object, ast.LocalObject):
        what = "an untainted node" if channel == "node" else "granted access (RBAC)"
        return Leave(f"{found.name} carries the wait for {what}, not a component's readiness")
    return None


def _handed_over(tree: Tree, found: Occurrence) -> Leave | None:
    """Know a parameter that every caller gives a channel of the executor's."""
    if not isinstance(found.object, ast.LocalObject) or found.object.kind != "param":
        return None
    decl = tree.function_at(found.path, found.span.start)
    if decl is None:
        return None
    names = [ident.name for param in decl.params for ident in param.names]
    if found.name not in names:
        return None
    owner = tree.package_of(found.path)
    target = (
        ast.FieldObject(owner, decl.receiver_type, decl.name) if decl.receiver else ast.PackageObject(owner, decl.name)
    )
    at = names.index(found.name)
    calls = [tree.call_at(use.path, use.qualified) for use in tree.callers(target)]
    given = [call.args[at] for call in calls if call is not None and at < len(call.args)]
    if not given or len(given) < len(calls) or not all(_is_ready_chan_call(argument) for argument in given):
        return None
    return Leave(f"{found.name} is a channel that the caller has from the executor", done=True)


def _is_ready_chan_call(expr: ast.Expr) -> bool:
    match expr:
        case ast.Call(fun=ast.Selector(name=name) | ast.Ident(name=name)):
            return name.endswith("ReadyChan")
        case _:
            return False


def _outside(tree: Tree, found: Occurrence) -> Leave | None:
    match found.object:
        case ast.PackageObject(package=package) | ast.FieldObject(package=package) if not _in_tree(tree, package):
            return Leave(f"belongs to {package}")
        case _:
            return None


def _in_tree(tree: Tree, package: str) -> bool:
    return package == tree.module or package.startswith(tree.module + "/")


def _not_a_channel(tree: Tree, found: Occurrence) -> Leave | None:
    """Know a local or field by its declared type where that is no channel and no function: a bool, a gauge."""
    if not isinstance(found.object, ast.LocalObject | ast.FieldObject):
        return None
    declared = tree.type_at(found.path, found.qualified)
    if declared is None or isinstance(declared.expr, ast.ChanType | ast.FuncType | ast.InterfaceType):
        return None
    return Leave(f"{found.name} is no channel but {_type_text(tree, declared)}")


def _type_text(tree: Tree, declared: TypeRef) -> str:
    return tree.text(declared.path, declared.expr.span).split("\n", 1)[0]


_RULES = (_false_friend, _in_prose, _ready_signal, _node_or_rbac, _handed_over, _outside, _not_a_channel)


def channel_of(name: str) -> Channel:
    """Return the channel that a name of the vocabulary speaks of."""
    lower = name.lower()
    if "api" in lower:
        return "apiserver"
    if "etcd" in lower or name == "testClusterDB":
        return "etcd"
    if "cri" in lower or "runtime" in lower or "agentready" in lower or "containerd" in lower or "docker" in lower:
        return "cri"
    if "node" in lower:
        return "node"
    return "rbac" if "rbac" in lower else "none"
