"""What a person is told of a site that is not rewritten: where it was, both shapes, and what to do by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from refactor_tool import engine
from refactor_tool.codemods import SUITE
from refactor_tool.drift import cell
from refactor_tool.homes import HOMES, SHAPES
from refactor_tool.matrix import Batch, examine
from refactor_tool.model import BranchRow, Finding, Leave, Manual, Rewrite, SiteCell, Snapshot, Span, Verdict
from refactor_tool.world.tree import read_ref
from tests.repo import Repo
from tests.test_eras import EARLIER, TAKEN_OUT, cut, label, with_earlier
from tests.trees import Files, after, before, edited, without

AGENT = "pkg/agent/run.go"
EMBED = "pkg/daemons/executor/embed.go"
TUNNEL = "pkg/agent/tunnel/tunnel.go"

ANCHORS = [(codemod.id, anchor.name) for codemod in SUITE for anchor in codemod.anchors]


# --- the table of homes -----------------------------------------------------------------------------


def test_every_site_has_a_home_and_every_home_a_site() -> None:
    assert set(HOMES) == set(ANCHORS)


def test_every_shape_is_told_and_every_told_shape_is_of_a_site() -> None:
    assert {home.shape for home in HOMES.values()} == set(SHAPES)


@pytest.mark.parametrize("key", ANCHORS, ids="/".join)
def test_home_is_told_in_words(key: tuple[str, str]) -> None:
    home = HOMES[key]
    assert home.path.endswith(".go")
    assert home.step
    assert not home.step.endswith(".")
    assert "\n" not in home.step + SHAPES[home.shape]


def homes_of(snapshot: Snapshot) -> dict[tuple[str, str], tuple[str, str]]:
    """Return place and shape of each expected site of a tree."""
    found = engine.scan(snapshot, SUITE).findings
    return {(each.id, each.anchor): (each.place, each.shape) for each in found if each.anchor}


def test_fixture_is_at_home() -> None:
    wanted = {key: (home.place, home.shape) for key, home in HOMES.items()}
    found = homes_of(Snapshot(before()))
    assert found == {key: wanted[key] for key in found}


def test_tree_of_the_issue_is_at_home(corpus: Path) -> None:
    found = homes_of(read_ref(corpus / "k3s.git", "before/issue"))
    assert found == {key: (home.place, home.shape) for key, home in HOMES.items() if key in found}
    assert set(HOMES) == set(found)


# --- one cell -----------------------------------------------------------------------------------------

KEY = ("cri-ready", "etcd-start")
HOME = HOMES[KEY]


def told(verdict: Verdict, path: str = HOME.path, function: str = HOME.function) -> SiteCell:
    finding = Finding(KEY[0], "codemod", path, Span(0, 1), function, verdict, "ask the executor", "cri", "x", KEY[1])
    return cell(*KEY, finding, 7, "case <-ready:")


@pytest.mark.parametrize(
    ("verdict", "state", "why", "step"),
    [
        pytest.param(Rewrite(()), "to do", "ask the executor", "", id="the tool does it"),
        pytest.param(Leave("there already", done=True), "applied", "there already", "", id="done"),
        pytest.param(Leave("not a site"), "left", "not a site", "", id="rightly untouched"),
        pytest.param(Manual("odd", "do this"), "differs", "odd", "do this", id="with an instruction of its own"),
        pytest.param(Manual("odd"), "differs", "odd", HOME.step, id="without"),
    ],
)
def test_state_follows_from_the_verdict(verdict: Verdict, state: str, why: str, step: str) -> None:
    found = told(verdict)
    assert (found.state, found.why, found.step, found.line, found.moved) == (state, why, step, 7, "")
    assert (found.expected, found.found) == ((SHAPES[HOME.shape], "case <-ready:") if state == "differs" else ("", ""))


@pytest.mark.parametrize(
    "verdict", [Rewrite(()), Manual("odd"), Leave("done", done=True)], ids=lambda v: type(v).__name__
)
def test_moved_site_says_from_where(verdict: Verdict) -> None:
    assert told(verdict, function="(*ETCD).Begin").moved == HOME.place
    assert told(verdict, path="pkg/etcd/start.go").moved == HOME.place


def test_missing_site_says_where_it_was_and_what_to_do() -> None:
    found = cell(*KEY, None, None, "")
    assert (found.state, found.place, found.line) == ("missing", "", None)
    assert found.why == f"not found; it was at {HOME.place}"
    assert (found.step, found.expected) == (HOME.step, SHAPES[HOME.shape])


# --- a branch that has drifted --------------------------------------------------------------------------


def row(tmp_path: Path, files: Files, *, plan: bool = False) -> BranchRow:
    repo = Repo(tmp_path / "repo")
    repo.commit(files)
    (found,) = examine(Batch("k3s", str(repo.path), ("main",), plan))
    return found


def cells(found: BranchRow, *states: str) -> dict[str, SiteCell]:
    return {f"{each.codemod}/{each.anchor}": each for each in found.cells if each.state in states}


def test_branch_without_drift_has_none(tmp_path: Path) -> None:
    found = row(tmp_path, before())
    assert cells(found, "differs", "missing") == {}
    assert not any(each.moved for each in found.cells)


@pytest.mark.parametrize("site", TAKEN_OUT, ids="/".join)
def test_site_that_the_period_expects_is_missing_if_it_is_not_there(tmp_path: Path, site: tuple[str, str]) -> None:
    found = row(tmp_path, TAKEN_OUT[site](before()))
    assert "/".join(site) in cells(found, "missing")
    assert int(found.code) == 4


def test_function_in_another_file_has_moved(tmp_path: Path) -> None:
    files = before()
    text = files[AGENT].data.decode()
    start = text.index("// setupTunnelAndRunAgent connects")
    end = text.index("\nfunc waitForAPIServerAddresses")
    head = 'package agent\n\nimport (\n\t"context"\n\n\t"github.com/k3s-io/k3s/pkg/agent/proxy"\n\t"github.com/k3s-io/k3s/pkg/cli/cmds"\n'
    head += (
        '\t"github.com/k3s-io/k3s/pkg/daemons/agent"\n\tdaemonconfig "github.com/k3s-io/k3s/pkg/daemons/config"\n)\n\n'
    )
    files = edited(files, AGENT, text[start:end], "")
    files |= {"pkg/agent/setup.go": type(files[AGENT])((head + text[start:end]).encode())}
    found = cells(row(tmp_path, files, plan=True), "to do")["agent-start-order/start-order"]
    assert found.place == "pkg/agent/setup.go setupTunnelAndRunAgent"
    assert found.moved == f"{AGENT} setupTunnelAndRunAgent"


def test_site_of_another_shape_shows_both_shapes_and_the_step(tmp_path: Path) -> None:
    kubelet = "\t\tif err := util.WaitForAPIServerReady(ctx, e.nodeConfig"
    found = row(
        tmp_path, edited(before(), EMBED, kubelet, "\t\t// a word\n" + kubelet.replace("(ctx", "(context.TODO()"))
    )
    differs = cells(found, "differs")["apiserver-ready/kubelet"]
    assert differs.expected == SHAPES["guard-goroutine"]
    assert differs.found.startswith("if err := util.WaitForAPIServerReady(context.TODO(), e.nodeConfig")
    assert "are not known" in differs.why
    assert "util.WaitReady" in differs.step
    assert differs.line is not None


def test_doubled_site_names_both_places(tmp_path: Path) -> None:
    double = "package util\n\nfunc WaitForAPIServerReady() {}\n"
    files = before() | {"pkg/util/api_windows.go": type(before()[AGENT])(double.encode())}
    found = cells(row(tmp_path, files), "differs")["surface-readyz-errors/wait-for-apiserver-ready"]
    assert found.why.startswith("there 2 times: pkg/util/api.go WaitForAPIServerReady, line ")
    assert "pkg/util/api_windows.go WaitForAPIServerReady, line 3" in found.why
    assert found.step == "leave one of them, and plan again"


def test_call_that_nobody_expects_is_told_too(tmp_path: Path) -> None:
    wait = 'package metrics\n\nimport (\n\t"context"\n\t"time"\n\n\t"github.com/k3s-io/k3s/pkg/util"\n)\n\n'
    wait += 'func Wait(ctx context.Context) {\n\t_ = util.WaitForAPIServerReady(ctx, "file", time.Second)\n}\n'
    files = before() | {"pkg/metrics/metrics.go": type(before()[AGENT])(wait.encode())}
    found = [each for each in row(tmp_path, files).cells if each.anchor == ""]
    assert [(each.state, each.place, each.line) for each in found] == [("differs", "pkg/metrics/metrics.go Wait", 11)]
    assert found[0].step


def test_what_is_done_is_applied(tmp_path: Path) -> None:
    found = row(tmp_path, after())
    assert {each.state for each in found.cells} <= {"applied", "left"}
    assert int(found.code) == 0


# --- the oldest trees ---------------------------------------------------------------------------------


def test_tree_of_1_23_says_what_to_do_first(tmp_path: Path) -> None:
    """The wait takes a client, the executor's methods work on copies, and there is no agent without a kubelet."""
    files = with_earlier(list(EARLIER))
    files = edited(files, EMBED, "func (e *Embedded) Bootstrap", "func (e Embedded) Bootstrap")
    files = cut(AGENT, "// RunStandalone is")(files)
    assert label(files) == "carried as AgentReady, as in 1.23"
    found = row(tmp_path, files, plan=True)
    expected = {"apiserver-ready/agent-standalone", "cri-ready/run-standalone"}
    assert not expected & {f"{each.codemod}/{each.anchor}" for each in found.cells}, (
        "nobody expects RunStandalone there"
    )
    differs = cells(found, "differs")
    wait, state = (
        differs["surface-readyz-errors/wait-for-apiserver-ready"],
        differs["executor-ready-channels/embedded-state"],
    )
    assert wait.step.startswith(
        "let it take the path of a kubeconfig, as in k3s since e763fadbb (2022-04-29), and plan again"
    )
    assert (
        state.step == "give pointer receivers to Embedded.Bootstrap, make the executor as &Embedded{}, and plan again"
    )


def test_tree_without_the_executor_says_why_it_is_not_looked_at(tmp_path: Path) -> None:
    found = row(tmp_path, without(before(), *[path for path in before() if path.startswith("pkg/daemons/executor/")]))
    assert (int(found.code), found.cells) == (4, ())
    assert "pkg/daemons/executor does not declare Executor" in found.message
    assert found.hint
