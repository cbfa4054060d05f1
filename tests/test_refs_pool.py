"""Which refs a pattern means, and where work runs: here, in processes, on a cluster, and when workers die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import refactor_tool
from refactor_tool.model import EnvironmentFailure, File, UsageError
from refactor_tool.world import pool as world
from refactor_tool.world.pool import Here, Lost, Pool, Processes, default_jobs, open_pool
from refactor_tool.world.refs import expand_refs
from refactor_tool.world.tree import read_many
from tests import workers
from tests.cluster import local_cluster
from tests.command import ROOT, run
from tests.repo import Repo
from tests.small_trees import BASE, fingerprint, new_repo

# --- refs -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """A clone with local and remote branches and tags, one name for both, and a name with a line separator of Unicode."""
    made = new_repo(tmp_path_factory.mktemp("refs") / "repo")
    for branch in ("release-1.30", "release-1.31", "work/a", "v1", "zeile\u2028zwei"):
        made.git("branch", branch)
    for tag in ("v1", "v1.31.0", "v2"):
        made.git("tag", tag)
    made.git("update-ref", "refs/remotes/origin/release-1.30", "HEAD")
    made.git("update-ref", "refs/remotes/origin/main", "HEAD")
    made.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    made.git("update-ref", "refs/notes/commits", "HEAD")
    return made


LOCAL = ["main", "release-1.30", "release-1.31", "heads/v1", "work/a", "zeile\u2028zwei"]


@pytest.mark.parametrize(
    ("patterns", "wanted"),
    [
        pytest.param([], LOCAL, id="no pattern is every local branch"),
        pytest.param(["release-1.*"], ["release-1.30", "release-1.31"], id="glob"),
        pytest.param(["*release-1.30"], ["release-1.30", "origin/release-1.30"], id="branches before remote ones"),
        pytest.param(["origin/*"], ["origin/main", "origin/release-1.30"], id="what only points at a branch is none"),
        pytest.param(["v[12]*"], ["v1.31.0", "v2"], id="class of characters"),
        pytest.param(["v1.31.?"], ["v1.31.0"], id="one character"),
        pytest.param(["*/v1"], ["heads/v1", "tags/v1"], id="a name of two has the kind before it"),
        pytest.param(["w*"], ["work/a"], id="star stands for slashes"),
        pytest.param(["*"], [*LOCAL, "origin/main", "origin/release-1.30", "tags/v1", "v1.31.0", "v2"], id="all"),
        pytest.param(["v2", "nope", "HEAD~1"], ["v2", "nope", "HEAD~1"], id="names are taken as they are"),
        pytest.param(["v2", "v*", "v2"], ["v2", "v1.31.0"], id="each once, where it is first"),
        pytest.param(["Release-*", "work/a"], ["work/a"], id="upper case is another letter"),
    ],
)
def test_pattern_means_these_refs(repo: Repo, patterns: list[str], wanted: list[str]) -> None:
    assert [ref for ref, fault in expand_refs(repo.path, patterns) if fault is None] == wanted
    for ref in wanted:
        if ref not in ("nope", "HEAD~1"):
            repo.git("rev-parse", "--verify", "-q", f"{ref}^{{commit}}")


def test_glob_without_a_match_is_told_and_others_are_kept(repo: Repo) -> None:
    (first, fault), (second, fine) = expand_refs(repo.path, ["nothing-*", "v2"])
    assert (first, second, fine) == ("nothing-*", "v2", None)
    assert isinstance(fault, EnvironmentFailure)
    assert fault.message == f"{repo.path}: has no branch or tag that matches 'nothing-*'"
    assert fault.hint == f"to see what is there: git -C {repo.path} for-each-ref"


@pytest.mark.parametrize("name", ["--upload-pack=x", "", "a\nb"])
def test_what_is_no_name_is_told_and_others_are_kept(repo: Repo, name: str) -> None:
    (_, fault), (_, fine) = expand_refs(repo.path, [name, "v2"])
    assert isinstance(fault, UsageError)
    assert fine is None


def test_repository_without_branches_says_so(tmp_path: Path) -> None:
    ((_, fault),) = expand_refs(Repo(tmp_path / "empty").path, [])
    assert fault is not None
    assert "has no local branch" in fault.message


@pytest.mark.parametrize(
    ("path", "error"), [("missing", UsageError), ("folder", EnvironmentFailure)], ids=["no folder", "no repository"]
)
def test_place_without_refs_is_an_error(tmp_path: Path, path: str, error: type[Exception]) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(error):
        expand_refs(tmp_path / path, [])


def test_each_branch_is_read_by_the_name_it_is_shown_under(tmp_path: Path) -> None:
    repo = new_repo(tmp_path / "repo")
    refs = [f"refs/heads/{name}" for name in ("heads/main", "tags/v1", "HEAD", "@", "a" * 40, "refs/tags/v1", "twin")]
    refs += ["refs/tags/v1", "refs/tags/twin", "refs/tags/heads/twin", "refs/x", "refs/heads/x"]
    for at, ref in enumerate(refs):
        repo.git("commit", "-q", "--allow-empty", "-m", str(at))
        repo.git("update-ref", ref, "HEAD")
    shown = [name for name, _ in expand_refs(repo.path, ["*"])]
    read = {snapshot.label: snapshot.commit for snapshot in read_many(repo.path, shown)}
    wanted = dict(
        line.split() for line in repo.git("for-each-ref", "--format=%(refname) %(objectname)").decode().splitlines()
    )
    del wanted["refs/x"]
    assert len(shown) == len(wanted) == len(refs)
    assert list(read.values()) == list(wanted.values())
    assert [name for name, _ in expand_refs(repo.path, ["twin", "HEAD", "heads/main"])] == ["tags/twin", "HEAD", "main"]


def test_listing_refs_touches_nothing(repo: Repo) -> None:
    before = fingerprint(repo.path)
    expand_refs(repo.path, ["*"])
    assert fingerprint(repo.path) == before


# --- pools on this machine ------------------------------------------------------------------------------


def test_there_is_a_processor() -> None:
    assert default_jobs() >= 1


@pytest.mark.parametrize("jobs", [0, 1, 2, 9], ids=lambda jobs: f"{jobs} jobs")
def test_results_come_in_the_order_of_items(jobs: int) -> None:
    with open_pool(jobs, None) as pool:
        assert list(pool.each(workers.square, range(7))) == [number * number for number in range(7)]
        assert pool.width == max(1, jobs)
        assert list(pool.each(workers.square, [])) == []


def test_one_job_runs_here_and_more_elsewhere() -> None:
    assert list(Here().each(workers.process, [0])) == [os.getpid()]
    found = set(Processes(2).each(workers.process, range(4)))
    assert found
    assert os.getpid() not in found


def test_item_that_ends_its_process_is_lost_and_others_are_not() -> None:
    found = list(Processes(2).each(workers.poison, ["a", "die", "b", "c"]))
    assert found[0::2] + found[3:] == ["A", "B", "C"]
    assert isinstance(found[1], Lost)
    assert "died" in found[1].reason


def test_item_whose_process_was_ended_by_others_is_done_again(tmp_path: Path) -> None:
    assert list(Processes(2).each(workers.die_once, [str(tmp_path / "marker")])) == ["survived"]


def test_mistake_of_the_work_is_not_taken_for_a_death() -> None:
    with pytest.raises(TypeError):
        list(Processes(2).each(workers.square, ["not a number"]))  # type: ignore[list-item]


def test_interrupt_ends_the_processes_at_once(tmp_path: Path) -> None:
    """The child gets the signal alone, as from `kill -INT`, while its workers would go on for minutes."""
    code = "import sys; from tests import workers; from refactor_tool.world.pool import Processes"
    code += "\nif __name__ == '__main__': list(Processes(2).each(workers.slowly, [sys.argv[1]] * 2))"
    script = tmp_path / "main.py"
    script.write_text(code)
    begun = tmp_path / "begun"
    begun.mkdir()
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, script, begun], env=env, stderr=subprocess.PIPE) as child:
        try:
            pids = _wait_for(lambda: [int(path.name) for path in begun.iterdir()], 2)
            child.send_signal(signal.SIGINT)
            _, err = child.communicate(timeout=60)
        finally:
            child.kill()
    assert child.returncode != 0
    assert err.count(b"KeyboardInterrupt") == 1, "only the process that was asked to stop says so"
    _wait_for(lambda: [pid for pid in pids if not _is_alive(pid)], 2)


def _wait_for(found: Any, count: int) -> Any:
    end = time.monotonic() + 60
    while len(found()) < count:
        assert time.monotonic() < end, "waited for a minute"
        time.sleep(0.05)
    return found()


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "zombie" not in Path(f"/proc/{pid}/status").read_text() if Path("/proc/self").exists() else True


# --- a cluster ----------------------------------------------------------------------------------------


@pytest.fixture
def pool(cluster: Any) -> Iterator[Pool]:
    with open_pool(1, cluster.scheduler_address) as made:
        yield made


def test_cluster_gives_results_in_the_order_of_items(pool: Pool) -> None:
    assert pool.width == 2
    assert list(pool.each(workers.square, range(7))) == [number * number for number in range(7)]


def test_cluster_works_in_its_own_processes(pool: Pool, cluster: Any) -> None:
    found = set(pool.each(workers.process, range(8)))
    assert found <= {worker.pid for worker in cluster.workers.values()}


def test_worker_of_the_cluster_that_dies_is_replaced(pool: Pool, tmp_path: Path) -> None:
    assert list(pool.each(workers.die_once, [str(tmp_path / "marker")])) == ["survived"]


def test_item_that_ends_every_worker_is_lost_and_others_are_not(pool: Pool) -> None:
    found = list(pool.each(workers.poison, ["a", "die", "b"]))
    assert (found[0], found[2]) == ("A", "B")
    assert isinstance(found[1], Lost)
    assert "KilledWorker" in found[1].reason


def test_mistake_on_the_cluster_is_told(pool: Pool) -> None:
    (found,) = pool.each(workers.square, ["not a number"])  # type: ignore[list-item]
    assert isinstance(found, Lost)
    assert "TypeError" in found.reason


def test_cluster_with_another_version_is_refused(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "__version__", "99.0")
    with pytest.raises(EnvironmentFailure) as refused, open_pool(1, cluster.scheduler_address):
        pass
    assert refused.value.message == (
        f"workers of {cluster.scheduler_address} cannot run this version of refactor-tool: {refactor_tool.__version__}"
    )
    assert "99.0" in refused.value.hint


def test_cluster_without_workers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "_PATIENCE", "1s")
    with (
        local_cluster(0) as empty,
        pytest.raises(EnvironmentFailure) as refused,
        open_pool(1, empty.scheduler_address),
    ):
        pass
    assert refused.value.message == f"the Dask scheduler at {empty.scheduler_address} has no worker"


@pytest.mark.parametrize(
    ("address", "why"),
    [
        pytest.param("tcp://127.0.0.1:9", "Timed out", id="nobody listens"),
        pytest.param("nonsense://x", "unknown address scheme", id="no such scheme"),
    ],
)
def test_scheduler_that_does_not_answer_is_one_line_and_exit_code_3(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, address: str, why: str
) -> None:
    pytest.importorskip("distributed", reason="the extra cluster is not installed")
    monkeypatch.setattr(world, "_PATIENCE", "1s")
    repo = new_repo(tmp_path / "repo", BASE | {"x.go": File(b"package main\n")})
    ran = run("matrix", repo.path, "--scheduler", address)
    assert (ran.code, ran.out) == (3, b"")
    message, hint = ran.err.strip().split("\n")
    assert message.startswith(f"refactor-tool: no Dask scheduler answers at {address}: ")
    assert why.lower() in message.lower()
    assert hint == "  start one, or give the address that it prints"


def test_missing_extra_is_exit_code_3_with_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    ran = run("matrix", new_repo(tmp_path / "repo").path, "--scheduler", "tcp://127.0.0.1:9")
    assert (ran.code, ran.out) == (3, b"")
    assert ran.err == (
        "refactor-tool: --scheduler needs the packages dask and distributed\n"
        "  install the extra: pip install 'refactor-tool[cluster]'\n"
    )
