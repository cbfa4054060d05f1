"""Take etcd's readiness from the executor, which tests the datastore itself with a function that it is given.

The channel went from `(*Cluster).testClusterDB` through the result of `(*Cluster).Start` into `ControlRuntime`, and on
as a parameter into the executor. Each of these places is found by identity; what cannot be changed as a whole is left
to a person.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from refactor_tool.codemod import Anchor, Codemod
from refactor_tool.codemods import (
    _etcd_callers,
    _etcd_client,
    _etcd_cluster,
    _etcd_embedded,
    _etcd_migration,
    _etcd_remote,
    _etcd_start,
    _shapes,
    _signatures,
)
from refactor_tool.codemods._etcd_sites import ID, finding
from refactor_tool.codemods._k3s import CLI_SERVER, CONFIG, CONTROL, EXECUTOR, package
from refactor_tool.codemods._literals import unkeyed
from refactor_tool.gosrc import ast, layout
from refactor_tool.gosrc.tree import Occurrence, Tree
from refactor_tool.model import Finding, Leave, Manual, Rewrite, Verdict

FIELD = "ETCDReady"
CHAN = "ETCDReadyChan"
#: The function that apiserver-ready removes, with the wait for etcd that is in it.
BACKGROUND = "waitForAPIServerInBackground"

_FIELD = re.compile(rb"\b" + FIELD.encode() + rb"\b")
_CHAN = re.compile(rb"\b" + CHAN.encode() + rb"\b")


def find(tree: Tree) -> Iterator[Finding]:
    """Yield a finding for every place that makes, carries or waits for etcd's readiness, and that starts etcd."""
    found = [
        *_parameter(tree),
        *_etcd_start.of_start(tree),
        *_etcd_cluster.of_cluster(tree),
        *_etcd_remote.of_remote(tree),
        *_etcd_callers.of_callers(tree),
        *_etcd_migration.of_tests(tree),
        *_etcd_client.of_client(tree),
    ]
    uses = tuple(_field_uses(tree))
    found.extend(_use(tree, use) for use in uses if not any(_covers(each, use) for each in found))
    yield from found
    yield from _done(tree)
    yield from _field(tree, found, uses)


def _covers(found: Finding, use: Occurrence) -> bool:
    return found.path == use.path and found.span.contains(use.span)


def _parameter(tree: Tree) -> Iterator[Finding]:
    """Drop the channel that APIServer is given."""
    for place in _signatures.dropped(tree, "APIServer", CHAN):
        anchor = f"apiserver-{place.shape}"
        if place.shape == "demand":
            anchor = ""
        elif place.shape == "implementer":
            anchor = "apiserver-embedded" if place.owner == "Embedded" else ""
        elif place.shape == "caller" and (
            tree.package_of(place.path) != package(tree, CONTROL) or tree.file(place.path).test
        ):
            anchor = ""
        message = "APIServer asks the executor for etcd's channel itself"
        yield finding(tree, place.path, place.span, place.verdict, message, place.shape, anchor)


def _field_uses(tree: Tree) -> Iterator[Occurrence]:
    """Yield the uses of the field in code, and of fields of that name whose owner is not known."""
    for path in tree.files_with(FIELD.encode()):
        for use in tree.occurrences(path, _FIELD):
            is_member = isinstance(use.object, ast.UnknownObject) and use.qualified != use.span
            if use.role != "declaration" and (use.object == _the_field(tree) or is_member):
                yield use


def _the_field(tree: Tree) -> ast.FieldObject:
    return ast.FieldObject(package(tree, CONFIG), "ControlRuntime", FIELD)


def _use(tree: Tree, use: Occurrence) -> Finding:
    """Ask the executor in the place of a use that is not part of another site."""
    path = use.path
    title = tree.title_at(path, use.span.start)
    if tree.package_of(path) == package(tree, CONTROL) and title == BACKGROUND:
        gone = Leave(f"goes with {BACKGROUND}, which the step apiserver-ready removes")
        return finding(tree, path, use.qualified, gone, "goes with its function", use.role)
    asked = _shapes.ready_chan(tree, path, CHAN, use.qualified)
    line = tree.line_text(path, use.span.start)
    if use.object != _the_field(tree):
        verdict: Verdict = Manual(f"it is not known what {FIELD} is here: {line!r}", f"use the executor's {CHAN}")
    elif isinstance(asked, Manual):
        verdict = asked
    else:
        verdict = _shapes.replace_use(tree, use, *asked)
    anchor = "notify" if title == "run" and tree.package_of(path) == package(tree, CLI_SERVER) else ""
    return finding(tree, path, use.qualified, verdict, "waits for the executor's channel", use.role, anchor)


def _done(tree: Tree) -> Iterator[Finding]:
    """Yield the wait of the server command where it asks the executor already."""
    wanted = ast.PackageObject(package(tree, EXECUTOR), CHAN)
    for path in tree.package_files(package(tree, CLI_SERVER)):
        if CHAN.encode() in tree.data(path):
            for use in tree.occurrences(path, _CHAN):
                if use.object == wanted and tree.title_at(path, use.span.start) == "run":
                    verdict = Leave("asks the executor already", done=True)
                    yield finding(
                        tree, path, use.qualified, verdict, "waits for the executor's channel", use.role, "notify"
                    )


def _field(tree: Tree, found: Sequence[Finding], uses: Sequence[Occurrence]) -> Iterator[Finding]:
    """Remove the field if nothing that uses it is left."""
    by_hand = [each for each in found if isinstance(each.verdict, Manual)]
    left = next((use for use in uses if any(_covers(each, use) for each in by_hand)), None)
    for path, decl in tree.types(package(tree, CONFIG), "ControlRuntime"):
        if not isinstance(decl.type, ast.StructType):
            continue
        field = next((each for each in decl.type.fields if any(name.name == FIELD for name in each.names)), None)
        if field is None:
            verdict: Verdict = Leave("ControlRuntime carries no readiness of etcd", done=True)
        elif left is not None:
            line = tree.lines(left.path).position(left.span.start).line
            verdict = Manual(f"{FIELD} may still be needed for {left.path}:{line}", "remove it at last")
        elif len(field.names) > 1 or not isinstance(field.type, ast.ChanType):
            verdict = Manual(f"{FIELD} is not a channel in a line of its own", "remove it by hand")
        else:
            verdict = Rewrite(layout.remove_fields(tree, path, decl.type, (FIELD,)))
        span = field.span if field is not None else decl.name_span
        yield finding(tree, path, span, verdict, f"carries no {FIELD}", "field", "runtime-field")
        if isinstance(verdict, Rewrite):
            for where, place, lost in unkeyed(tree, package(tree, CONFIG), "ControlRuntime"):
                yield finding(tree, where, place, lost, f"carries no {FIELD}", "literal")


CODEMOD = Codemod(
    id=ID,
    title="Wait for etcd with the executor's ready channel",
    body="""\
Start etcd with a function that tests the datastore. The executor calls it
until it succeeds, and only then closes the channel: not when the context
ends. Servers without etcd of their own now test the connection to the one
that they use before the apiserver is started, where the channel used to be
closed from the beginning. With kine, the datastore is ready when the
listener of kine is.

The test begins as soon as etcd is started, so make it wait until content
has been migrated from sqlite. Where etcd runs on another server, the test
and the refresh of the etcd proxy may both be the first to need the client:
start it under a lock, and limit the time that listing the members may
take.
""",
    find=find,
    templates=(
        _shapes.WAIT_READY,
        _etcd_start.TEST_FUNC,
        *_etcd_embedded.TEMPLATES,
        *_etcd_cluster.TEMPLATES,
        *_etcd_remote.TEMPLATES,
        *_etcd_migration.TEMPLATES,
        *_etcd_client.TEMPLATES,
    ),
    anchors=(
        Anchor("apiserver-interface"),
        Anchor("apiserver-forwarder"),
        Anchor("apiserver-embedded"),
        Anchor("apiserver-caller"),
        Anchor("test-func"),
        Anchor("etcd-interface"),
        Anchor("etcd-forwarder"),
        Anchor("etcd-embedded"),
        Anchor("etcd-cluster"),
        Anchor("etcd-temporary", optional=True),
        Anchor("cluster-start"),
        Anchor("cluster-test", optional=True),
        Anchor("start-call"),
        Anchor("new-cluster"),
        Anchor("etcd-client"),
        Anchor("notify"),
        Anchor("runtime-field"),
    ),
    requires=("executor-ready-channels", "apiserver-ready"),
)
