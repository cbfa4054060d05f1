"""Each period is recognised by what a tree declares, and what all trees of a period have must be there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from refactor_tool import engine
from refactor_tool.codemods import SUITE
from refactor_tool.eras import ERAS, FACTS, recognise
from refactor_tool.gosrc.tree import Tree
from refactor_tool.model import ExitCode, File, Plan, Snapshot
from refactor_tool.world.templates import load_templates
from refactor_tool.world.tree import read_each, read_ref
from tests.trees import Files, after, before

API = "pkg/util/api.go"
AGENT = "pkg/agent/run.go"
CONTROL = "pkg/daemons/control/server.go"
EMBED = "pkg/daemons/executor/embed.go"
EXECUTOR = "pkg/daemons/executor/executor.go"
MANAGED = "pkg/cluster/managed.go"
TUNNEL = "pkg/agent/tunnel/tunnel.go"
TYPES = "pkg/daemons/config/types.go"

ISSUE = "carried in structs, as before #11896"
ASKED = "asked of the executor"


@dataclass(frozen=True)
class Change:
    """One difference between periods, made in the fixture: in `path` all of `old` become `new`, or it moves to `new`."""

    path: str
    old: str
    new: str

    def __call__(self, files: Files) -> Files:
        assert self.path in files
        if not self.old:
            return {(self.new if path == self.path else path): file for path, file in files.items()}
        text = files[self.path].data.decode()
        assert self.old in text, f"{self.path} does not hold {self.old!r}"
        return files | {self.path: File(text.replace(self.old, self.new).encode())}


#: What each fact was before it was as in the issue: its answer then, and how the fixture comes to give it.
EARLIER: dict[str, tuple[str, tuple[Change, ...]]] = {
    "cluster-test": ("channel-and-error", (Change(MANAGED, ") <-chan struct{} {", ") (<-chan struct{}, error) {"),)),
    "errors": ("errors", (Change(AGENT, "pkgerrors ", ""), Change(AGENT, "pkgerrors.", "errors."))),
    "node-wait": ("executor", (Change(CONTROL, "waitForUntaintedNode(", "waitForNode("),)),
    "handlers": ("pkg/server", (Change("pkg/server/handlers/cert.go", "", "pkg/server/cert.go"), Change("pkg/server/handlers/handlers.go", "", "pkg/server/handlers.go"))),
    "poll": ("PollImmediateWithContext", (Change(API, "PollUntilContextTimeout", "PollImmediateWithContext"),)),
    "runtime-field": ("AgentReady", (Change(TYPES, "ContainerRuntimeReady", "AgentReady"),)),
    "runtimes": ("agent", (Change(EXECUTOR, "\tDocker(ctx context.Context, node", "\tdocker(ctx context.Context, node"),)),
    "runtime": ("literal", (Change(TYPES, "func NewRuntime(", "func newRuntime("),)),
    "other-runtimes": ("ignored", (Change("pkg/agent/cri/cri.go", "WaitForService", "Wait"),)),
    "wait": ("client", (Change(API, "kubeconfigPath string, timeout", "client kubernetes.Interface, timeout"),)),
}  # fmt: skip
#: The periods before the issue, newest first, with the facts that changed at the end of each.
CHANGED_AFTER = {
    ISSUE: (),
    "carried in structs, as in 1.32": ("cluster-test", "errors"),
    "carried in structs, as in 1.31": ("node-wait", "handlers"),
    "carried in structs, as in 1.30": ("poll",),
    "carried as AgentReady, as in 1.26": ("runtime-field", "runtimes"),
    "carried as AgentReady, as in 1.25": ("runtime", "other-runtimes"),
    "carried as AgentReady, as in 1.23": ("wait",),
}


def with_earlier(facts: Sequence[str], files: Files | None = None) -> Files:
    files = before() if files is None else files
    for name in facts:
        for change in EARLIER[name][1]:
            files = change(files)
    return files


def label(files: Files) -> str:
    return recognise(Tree(Snapshot(files))).label


# --- which period a tree is of -----------------------------------------------------------------------


def test_every_fact_and_every_period_is_tried_here() -> None:
    assert {fact.name for fact in FACTS} == {*EARLIER, "readiness"}
    assert [era.name for era in ERAS] == [ASKED, *CHANGED_AFTER]
    assert all(set(era.answers) <= {fact.name for fact in FACTS} for era in ERAS)


@pytest.mark.parametrize("era", CHANGED_AFTER)
def test_period_is_recognised_by_what_the_tree_declares(era: str) -> None:
    names = list(CHANGED_AFTER)
    earlier = [fact for name in names[: names.index(era) + 1] for fact in CHANGED_AFTER[name]]
    assert label(with_earlier(earlier)) == era


def test_tree_after_the_campaign_asks_the_executor() -> None:
    assert label(after()) == ASKED


@pytest.mark.parametrize("fact", EARLIER)
def test_mixed_tree_is_named_after_the_nearest_period_with_what_differs(fact: str) -> None:
    assert label(with_earlier([fact])) == f"nearest to {ISSUE}: {fact} is {EARLIER[fact][0]}"


def test_half_made_change_is_named() -> None:
    half = Change(EXECUTOR, "\tCurrentETCDOptions()", "\tAPIServerReadyChan() <-chan struct{}\n\tCurrentETCDOptions()")
    assert label(half(before())) == f"nearest to {ISSUE}: readiness is half-moved"
    files = before() | {path: after()[path] for path in (EXECUTOR, TYPES)}
    assert label(files) == f"nearest to {ASKED}: cluster-test is channel"


def test_neither_date_nor_version_counts() -> None:
    files = before()
    mod = files["go.mod"].data.decode()
    files = Change("go.mod", mod, mod.replace("go 1.2", "go 1.1"))(files)
    old = Snapshot(files, label="release-1.19", committed_at=1)
    assert recognise(Tree(old)).label == ISSUE


#: Renamed, moved and commented code answers as before; words in comments and strings answer nothing.
HARMLESS: dict[str, tuple[Change, ...]] = {
    "function moved within its package": (
        Change("pkg/agent/cri/cri.go", "", "pkg/agent/cri/wait.go"),
        Change(TYPES, "", "pkg/daemons/config/runtime.go"),
    ),
    "name of the parameter": (Change(API, "kubeconfigPath", "path"),),
    "old names in comments": (Change(TYPES, "type ControlRuntime struct {", "type ControlRuntime struct {\n\t// AgentReady"),),
}  # fmt: skip


@pytest.mark.parametrize("changes", HARMLESS.values(), ids=HARMLESS)
def test_what_means_the_same_answers_the_same(changes: tuple[Change, ...]) -> None:
    files = before()
    for change in changes:
        files = change(files)
    assert label(files) == ISSUE


CORPUS = {
    "before/issue-parent": ISSUE,
    "before/issue": ISSUE,
    "before/pr-base": ISSUE,
    "during/readyz": ISSUE,
    "during/apiserver": f"nearest to {ISSUE}: readiness is half-moved",
    "during/cri": f"nearest to {ASKED}: cluster-test is channel",
    "during/tests": f"nearest to {ASKED}: cluster-test is channel",
    "after/etcd": ASKED,
    "later/2025-06": ASKED,
    "later/2025-11": ASKED,
    "later/2026-04": ASKED,
    "older/v1.30": "carried in structs, as in 1.30",
    "older/v1.26": "carried as AgentReady, as in 1.26",
}


def test_real_trees_are_of_these_periods(corpus: Path) -> None:
    read = read_each(corpus / "k3s.git", CORPUS)
    assert {ref: label(dict(snapshot.files)) for ref, snapshot in read if isinstance(snapshot, Snapshot)} == CORPUS


@pytest.mark.parametrize("ref", ["older/v1.30", "older/v1.26"])
def test_result_is_of_one_period_whatever_the_base_was_of(corpus: Path, ref: str) -> None:
    """The polling helper, or the place of a handler, stays as old as the base."""
    assert label(dict(plan(dict(read_ref(corpus / "k3s.git", ref).files)).final.files)) == ASKED


# --- what must be there ------------------------------------------------------------------------------


def cut(path: str, start: str, end: str = "\n}\n") -> Callable[[Files], Files]:
    """Return a change that takes out all from `start` to the first `end` after it."""

    def change(files: Files) -> Files:
        text = files[path].data.decode()
        at = text.index(start)
        return files | {path: File((text[:at] + text[text.index(end, at) + len(end) :]).encode())}

    return change


#: For each site that all trees of the issue's period have and others may lack, a change that takes it out.
TAKEN_OUT: dict[tuple[str, str], Callable[[Files], Files]] = {
    ("surface-readyz-errors", "limit"): cut(API, "const DefaultAPIServerReadyTimeout", "\n"),
    ("executor-ready-channels", "embedded-containerd"): Change(EMBED, "(e *Embedded) Containerd", "(e *Other) Containerd"),
    ("executor-ready-channels", "embedded-docker"): Change(EMBED, "(e *Embedded) Docker", "(e *Other) Docker"),
    ("apiserver-ready", "kubelet"): cut(EMBED, "\t\tif err := util.WaitForAPIServerReady(", "\t\t}\n"),
    ("cri-ready", "generate-runtime"): Change("tests/unit.go", "func GenerateRuntime(", "func OtherRuntime("),
    ("etcd-ready", "etcd-temporary"): Change("pkg/etcd/etcd.go", "embedded.ETCD(", "embedded.etcd("),
    ("cancel-safe-waits", "control-scheduler"): Change(CONTROL, "defer close(schedulerNodeReady)", "println()"),
    ("cancel-safe-waits", "tunnel-kubelet-port"): cut(TUNNEL, "\t<-apiServerReady\n\n\twait.PollUntil", "\n"),
    ("cancel-safe-waits", "tunnel-pods"): cut(TUNNEL, "\t<-apiServerReady\n\n\twait.Jitter", "\n"),
    ("cancel-safe-waits", "tunnel-endpoints"): cut(TUNNEL, "\t<-apiServerReady\n\n\tfor", "\n"),
    ("cancel-safe-waits", "tunnel-rbac"): cut(TUNNEL, "\t\tif err := util.WaitForRBACReady(", "\t\t}\n"),
}  # fmt: skip


def plan(files: Files, *, keep_going: bool = False) -> Plan:
    return engine.plan(Snapshot(files), SUITE, load_templates(), keep_going=keep_going)


@pytest.mark.parametrize("site", TAKEN_OUT, ids="/".join)
def test_expected_site_that_is_missing_stops_the_series(site: tuple[str, str]) -> None:
    codemod, anchor = site
    files = TAKEN_OUT[site](before())
    assert label(files) == ISSUE, "another period would not expect the site"
    result = plan(files)
    assert (ExitCode.NOTHING_SCANNED, codemod, f"the site {anchor} is missing") in [
        (problem.code, problem.step, problem.message) for problem in result.problems
    ]
    assert result.steps == ()
    assert result.final.files == Snapshot(files).files


def test_sites_that_the_table_expects_are_all_tried_here() -> None:
    (era,) = (era for era in ERAS if era.name == ISSUE)
    tried_elsewhere = {  # without these the tree is of another period, or not k3s
        ("cri-ready", "new-runtime"),
        ("etcd-ready", "cluster-test"),
        ("cancel-safe-waits", "untainted-node"),
        ("executor-ready-channels", "embedded-cri"),
    }
    assert era.expects == {*TAKEN_OUT, *tried_elsewhere}


def test_known_sites_are_those_of_the_campaign() -> None:
    optional = {(codemod.id, anchor.name) for codemod in SUITE for anchor in codemod.anchors if anchor.optional}
    assert set().union(*(era.expects for era in ERAS)) == optional


def test_mixed_tree_may_lack_what_a_period_has() -> None:
    """Where a tree is of no period, nobody knows which optional sites it must have: its own facts decide."""
    files = with_earlier(["node-wait"], TAKEN_OUT["cancel-safe-waits", "tunnel-pods"](before()))
    assert label(files).startswith("nearest to")
    assert "the site tunnel-pods is missing" not in [problem.message for problem in plan(files).problems]


def test_doubled_site_stops_the_series() -> None:
    double = "pkg/util/api_windows.go"
    files = before() | {double: File(b"package util\n\nfunc WaitForAPIServerReady() {}\n")}
    result = plan(files)
    doubled = [problem for problem in result.problems if "there 2 times" in problem.message]
    assert {problem.step for problem in doubled} == {"surface-readyz-errors", "apiserver-ready"}
    assert {problem.code for problem in doubled} == {ExitCode.NOTHING_SCANNED}
    assert all(f"{API} WaitForAPIServerReady and {double} WaitForAPIServerReady" in each.message for each in doubled)
    assert result.steps == ()


def test_keep_going_gives_the_steps_that_a_missing_site_does_not_concern() -> None:
    result = plan(TAKEN_OUT["cancel-safe-waits", "tunnel-pods"](before()), keep_going=True)
    assert [step.id for step in result.steps] == [codemod.id for codemod in SUITE if codemod.id != "cancel-safe-waits"]
    assert result.pending == (("cancel-safe-waits", "the site tunnel-pods is missing"),)
    assert ExitCode.NOTHING_SCANNED in [problem.code for problem in result.problems]
