"""Many refs at once: one row each, whatever happens to the others, the same however many processes work on them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from refactor_tool import engine, matrix
from refactor_tool.codemods import SUITE
from refactor_tool.gosrc import parse
from refactor_tool.matrix import Batch, examine
from refactor_tool.model import BranchRow, ExitCode, File
from refactor_tool.world.objects import Objects
from refactor_tool.world.pool import Here, Lost
from tests.command import ROOT, Ran, run
from tests.repo import Repo
from tests.small_trees import contents, fingerprint
from tests.test_table import validate
from tests.trees import Files, after, before, edited

AGENT = "pkg/agent/run.go"


@pytest.fixture(scope="module")
def k3s(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """A repository with a branch for each thing that may become of one, none of which is checked out."""
    repo = Repo(tmp_path_factory.mktemp("matrix") / "k3s")
    branches: dict[str, Files] = {
        "release/todo": before(),
        "release/done": after(),
        "release/drifted": edited(before(), AGENT, "close(cfg.ContainerRuntimeReady)", "println()"),
        "broken": edited(before(), AGENT, "func run(", "func run(("),
        "other": {"go.mod": File(b"module example.org/m\n"), "main.go": File(b"package main\n")},
        "empty": {"README.md": File(b"nothing\n")},
    }
    for branch, files in branches.items():
        repo.git("checkout", "-q", "--orphan", branch)
        repo.commit(files)
    repo.git("checkout", "-q", "--orphan", "elsewhere")
    repo.commit({"README.md": File(b"here\n")})
    repo.git("tag", "v1", "release/todo")
    repo.git("update-ref", "refs/remotes/origin/release/done", "release/done")
    return repo


def table(ran: Ran) -> dict[str, Any]:
    """Return the document that was printed, held against its schema."""
    document: dict[str, Any] = json.loads(ran.out)
    validate(document, "matrix.schema.json")
    assert document["summary"]["exit_code"] == ran.code
    return document


# --- what a run says ----------------------------------------------------------------------------------


def test_each_ref_has_its_row_and_none_stops_another(k3s: Repo) -> None:
    wanted = {
        "release/todo": (1, ""),
        "nope": (3, "'nope' is not a commit here"),
        "broken": (5, f"{AGENT}:"),
        "release/done": (0, ""),
        "other": (4, "has no readiness to move"),
        "empty": (4, "no Go file"),
        "-x": (2, "'-x' is not a ref"),
        "none-*": (3, "matches 'none-*'"),
        "v1": (1, ""),
    }
    ran = run("matrix", k3s.path, *(f"--ref={ref}" for ref in wanted), "--format", "json", "--jobs", "1")
    document = table(ran)
    found = {row["ref"]: (row["exit_code"], row["message"]) for row in document["branches"]}
    assert list(found) == list(wanted)
    for ref, (code, words) in wanted.items():
        assert found[ref][0] == code, ref
        assert words in found[ref][1]
        assert bool(found[ref][1]) == bool(words), "a message says why there is nothing else"
    assert ran.code == 2, "the gravest of them"


@pytest.mark.parametrize(
    ("refs", "code"),
    [
        (("release/done",), 0),
        (("release/done", "release/todo"), 1),
        (("other", "release/todo"), 4),
        (("broken", "other"), 5),
        (("nope", "broken"), 3),
        (("nope", "-x"), 2),
    ],
    ids=lambda value: str(value),
)
def test_exit_code_is_the_gravest(k3s: Repo, refs: Sequence[str], code: int) -> None:
    assert run("matrix", k3s.path, *(f"--ref={ref}" for ref in refs), "--jobs", "1").code == code


def test_rows_are_what_a_run_on_one_ref_says(k3s: Repo) -> None:
    document = table(run("matrix", k3s.path, "--ref", "*release/*", "--format", "json", "--jobs", "1"))
    assert [row["ref"] for row in document["branches"]] == [
        *("release/done", "release/drifted", "release/todo"),
        "origin/release/done",
    ]
    for row in document["branches"]:
        alone = run("scan", k3s.path, "--ref", row["ref"], "--format", "json")
        assert row["document"] == json.loads(alone.out)
        assert row["exit_code"] == alone.code


def test_sites_have_states(k3s: Repo) -> None:
    document = table(run("matrix", k3s.path, "--ref", "release/*", "--format", "json", "--jobs", "1"))
    done, drifted, todo = ({site["state"] for site in row["sites"]} for row in document["branches"])
    assert done <= {"applied", "left"}
    assert todo <= {"to do", "left"}
    assert drifted & {"differs", "missing"}


def test_no_ref_is_every_local_branch_and_no_path_the_current_folder(k3s: Repo) -> None:
    document = table(run("matrix", "--format", "json", "--jobs", "1", cwd=k3s.path))
    assert {row["repository"] for row in document["branches"]} == {"."}
    assert [row["ref"] for row in document["branches"]] == [
        *("broken", "elsewhere", "empty", "other", "release/done", "release/drifted", "release/todo")
    ]


def test_any_number_of_repositories(k3s: Repo, tmp_path: Path) -> None:
    second = Repo(tmp_path / "fork")
    second.commit(after())
    (tmp_path / "folder").mkdir()
    paths = (second.path, k3s.path, tmp_path / "missing", tmp_path / "folder")
    ran = run("matrix", *paths, "--ref", "main", "--ref", "v1", "--format", "json", "--jobs", "1")
    found = [(row["repository"], row["ref"], row["exit_code"]) for row in table(ran)["branches"]]
    assert found == [
        (str(second.path), "main", 0),
        (str(second.path), "v1", 3),
        (str(k3s.path), "main", 3),
        (str(k3s.path), "v1", 1),
        (str(tmp_path / "missing"), "main, v1", 2),
        (str(tmp_path / "folder"), "main, v1", 3),
    ]


def test_repository_of_which_nothing_can_be_read_is_one_line(tmp_path: Path) -> None:
    ran = run("matrix", tmp_path)
    assert (ran.code, ran.out) == (3, b"")
    assert ran.err.split("\n")[0] == f"refactor-tool: {tmp_path}: not a git repository"


@pytest.mark.parametrize("jobs", ["0", "-3"])
def test_jobs_below_one_are_refused(k3s: Repo, jobs: str) -> None:
    ran = run("matrix", k3s.path, f"--jobs={jobs}")
    assert (ran.code, ran.out) == (2, b"")
    assert f"--jobs {jobs}: at least one is needed" in ran.err


def test_text_fits_a_terminal(k3s: Repo) -> None:
    ran = run("matrix", k3s.path, "--ref", "release/todo", "--ref", "release/done", "--jobs", "1")
    lines = ran.out.decode().split("\n")
    assert all(len(line) <= 80 for line in lines)
    assert lines[-2] == "2 branches: 1 done, 1 to do"
    assert "\x1b" not in ran.out.decode()


@pytest.mark.parametrize("no_colour", ["", "1"], ids=["colour", "NO_COLOR"])
def test_colour_is_for_terminals_that_may_have_it(k3s: Repo, no_colour: str) -> None:
    pty = pytest.importorskip("pty")
    mine, theirs = pty.openpty()
    env = os.environ | {"TERM": "xterm", "NO_COLOR": no_colour, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "refactor_tool", "matrix", k3s.path, "--ref", "release/done", "--jobs", "1"]
    done = subprocess.run(command, stdout=theirs, stderr=subprocess.DEVNULL, env=env, check=False)
    os.close(theirs)
    shown = os.read(mine, 1 << 16)
    os.close(mine)
    assert done.returncode == 0
    assert (b"\x1b[32m" in shown) == (no_colour == "")


def test_terminal_without_the_signs_gets_ascii(k3s: Repo) -> None:
    env = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "refactor_tool", "matrix", k3s.path, "--ref", "release/done", "--jobs", "1"]
    done = subprocess.run(command, capture_output=True, env=env, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.isascii()
    assert b"+ applied" in done.stdout


def test_html_is_printed(k3s: Repo) -> None:
    ran = run("matrix", k3s.path, "--ref", "release/done", "--format", "html", "--jobs", "1")
    assert ran.out.startswith(b"<!doctype html>")
    assert ran.code == 0


# --- the repository stays as it is ----------------------------------------------------------------------


def test_repository_is_untouched(k3s: Repo, tmp_path: Path) -> None:
    lock = k3s.path / ".git/index.lock"
    lock.touch()  # whoever wants the index fails
    print_before = fingerprint(k3s.path)
    ran = run("matrix", k3s.path, "--ref", "*", "--out", tmp_path / "out", "--jobs", "1")
    assert fingerprint(k3s.path) == print_before
    lock.unlink()
    assert ran.code == 5


def test_real_repository_is_untouched(corpus: Path) -> None:
    """The corpus is a folder that not even its owner may write to."""
    before_run = fingerprint(corpus / "k3s.git")
    assert run("matrix", corpus / "k3s.git", "--ref", "during/*", "--format", "json").code == 1
    assert fingerprint(corpus / "k3s.git") == before_run


# --- the output folder ----------------------------------------------------------------------------------


def test_out_has_the_series_of_each_branch_and_the_table(k3s: Repo, tmp_path: Path) -> None:
    out = tmp_path / "out"
    refs = ("release/todo", "release/done", "release/drifted", "nope")
    ran = run("matrix", k3s.path, *(f"--ref={ref}" for ref in refs), "--out", out, "--jobs", "1")
    assert ran.code == 4 or ran.code == 3
    document = json.loads((out / "plan.json").read_bytes())
    validate(document, "matrix.schema.json")
    assert [row["folder"] for row in document["branches"]] == ["release/todo", "release/done", "release/drifted", None]
    found = {path for path, data in contents(out).items() if data is not None}
    assert {path for path in found if "/" not in path} == {"plan.json", "matrix.html"}
    for row in document["branches"][:3]:
        alone = tmp_path / "alone" / row["ref"]
        assert run("plan", k3s.path, "--ref", row["ref"], "--out", alone).code == row["exit_code"]
        assert contents(out / row["folder"]) == contents(alone), "the very files that plan --out writes"
    assert sum(path.endswith(".patch") for path in found) == len(SUITE) + 1, "a cover letter too"
    assert 'href="release/todo/report.html"' in (out / "matrix.html").read_text(encoding="utf-8")
    assert ran.last == f"written to {out}; look at {out / 'matrix.html'}"


def test_series_can_be_applied_to_its_branch(k3s: Repo, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run("matrix", k3s.path, "--ref", "release/todo", "--out", out, "--jobs", "1").code == 1
    clone = Repo(tmp_path / "clone")
    clone.take(k3s.path, "release/todo")
    clone.git("am", "-q", *(str(path) for path in sorted((out / "release/todo").glob("000[1-9]-*.patch"))))
    assert clone.tree() == {path: (file.mode, file.oid) for path, file in after().items()}


def test_keep_going_writes_what_is_sound(k3s: Repo, tmp_path: Path) -> None:
    refs = ("--ref", "release/drifted", "--jobs", "1")
    run("matrix", k3s.path, *refs, "--out", tmp_path / "all")
    assert not list(tmp_path.glob("all/release/drifted/*.patch"))
    run("matrix", k3s.path, *refs, "--out", tmp_path / "some", "--keep-going")
    assert list(tmp_path.glob("some/release/drifted/*.patch"))


def test_earlier_output_is_replaced_and_what_others_put_there_stays(k3s: Repo, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run("matrix", k3s.path, "--ref", "release/todo", "--ref", "v1", "--out", out, "--jobs", "1")
    mine = {"notes.txt": b"mine", "release/todo/notes.txt": b"mine", "mine/0001-mine.patch": b"mine"}
    for name, data in mine.items():
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).write_bytes(data)
    run("matrix", k3s.path, "--ref", "release/done", "--out", out, "--jobs", "1")
    found = {path: data for path, data in contents(out).items() if data is not None}
    assert set(found) == {
        *("matrix.html", "plan.json", "release/done/plan.json", "release/done/report.html"),
        *mine,
    }
    assert all(found[name] == data for name, data in mine.items())


def test_folder_of_somebody_else_is_refused_before_anything_is_written(k3s: Repo, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    ran = run("matrix", k3s.path, "--ref", "release/done", "--out", tmp_path, "--jobs", "1")
    assert ran.code == 2
    assert contents(tmp_path) == {"notes.txt": b"mine"}


# --- all or nothing -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many(k3s: Repo, tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """A repository with so many branches that nobody is done with them at once."""
    repo = Repo(tmp_path_factory.mktemp("many") / "many")
    for at in range(16):
        repo.git("checkout", "-q", "--orphan", f"b{at}")
        repo.commit(edited(before(), AGENT, "package agent", f"// Branch {at}.\npackage agent"))
    return repo


@pytest.mark.parametrize(
    ("number", "jobs"),
    [
        pytest.param(signal.SIGINT, 1, id="interrupt, 1 job"),
        pytest.param(signal.SIGINT, 2, id="interrupt, 2 jobs"),
        pytest.param(signal.SIGTERM, 2, id="told to end, 2 jobs"),
        pytest.param(signal.SIGHUP, 1, id="hung up, 1 job"),
    ],
)
def test_interrupt_leaves_nothing_and_exits_130(many: Repo, tmp_path: Path, number: signal.Signals, jobs: int) -> None:
    """A real child, and a real signal in the middle of its work: as soon as one of its processes reads objects."""
    out = tmp_path / "new/out"
    command = [sys.executable, "-m", "refactor_tool", "matrix", many.path, "--out", out, "--jobs", str(jobs)]
    child = subprocess.Popen(
        command, env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    _wait_until(lambda: child.poll() is not None or _reads_objects(child.pid))
    time.sleep(0.5)
    assert child.poll() is None, "it must be in the middle of its work"
    child.send_signal(number)
    printed, err = child.communicate(timeout=60)
    assert (child.returncode, printed) == (130, b"")
    assert err == b"refactor-tool: interrupted; nothing was written\n"
    assert list(tmp_path.iterdir()) == []
    _wait_until(lambda: not _reads_objects(child.pid))


def _wait_until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end, "waited for a minute"
        time.sleep(0.05)


def _reads_objects(pid: int) -> bool:
    """Say whether a process, or one that it started, has git read objects."""
    listed = subprocess.run(["ps", "-ww", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines() if len(line.split(None, 2)) == 3]
    family = {pid}
    while True:
        grown = family | {int(own) for own, parent, _ in rows if int(parent) in family}
        if grown == family:
            break
        family = grown
    return any(int(own) in family and "cat-file --batch" in args for own, _, args in rows)


@pytest.mark.parametrize("at", ["mkdir", "write", "replace", "rename"])
def test_full_disk_leaves_nothing_and_exits_3(
    k3s: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    out = tmp_path / "new/out"
    real, calls = getattr(os, at), []

    def full(*args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        if len(calls) == (1 if at == "rename" else 3):
            raise OSError(28, os.strerror(28), "x")
        return real(*args, **kwargs)

    monkeypatch.setattr(os, at, full)
    ran = run("matrix", k3s.path, "--ref", "release/done", "--ref", "v1", "--out", out, "--jobs", "1")
    monkeypatch.undo()
    assert calls
    assert (ran.code, ran.out) == (3, b"")
    assert "No space left on device" in ran.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("form", ["text", "json", "html"])
def test_output_that_cannot_be_printed_exits_3(k3s: Repo, form: str) -> None:
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "refactor_tool", "matrix", k3s.path, "--ref", "release/done", "--format", form]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*command, "--jobs", "1"], stdout=full, stderr=subprocess.PIPE, env=env, check=False)
    assert done.returncode == 3
    assert done.stderr.startswith(b"refactor-tool: the output cannot be written: No space left on device\n")
    assert b"Traceback" not in done.stderr


# --- the same however it is run ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def alone(k3s: Repo, tmp_path_factory: pytest.TempPathFactory) -> tuple[Ran, dict[str, bytes | None]]:
    return _in_full(k3s, tmp_path_factory.mktemp("alone"), "--jobs", "1")


def _in_full(repo: Repo, folder: Path, *how: str) -> tuple[Ran, dict[str, bytes | None]]:
    refs = ("--ref", "release/*", "--ref", "nope", "--ref", "broken", "--ref", "other", "--ref", "origin/*")
    ran = run("matrix", repo.path, *refs, "--format", "json", "--out", folder / "out", *how)
    return ran, contents(folder / "out")


@pytest.mark.parametrize("jobs", ["2", "5"])
def test_processes_give_the_same_bytes(k3s: Repo, tmp_path: Path, alone: Any, jobs: str) -> None:
    ran, files = _in_full(k3s, tmp_path, "--jobs", jobs)
    assert (ran.code, ran.out, ran.err) == (alone[0].code, alone[0].out, "")
    assert files == alone[1]


def test_cluster_gives_the_same_bytes(k3s: Repo, tmp_path: Path, alone: Any, cluster: Any) -> None:
    ran, files = _in_full(k3s, tmp_path, "--scheduler", cluster.scheduler_address)
    assert (ran.code, ran.out, ran.err) == (alone[0].code, alone[0].out, "")
    assert files == alone[1]


def test_cluster_is_given_paths_that_hold_elsewhere(
    k3s: Repo, tmp_path: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its workers stand in another folder than the person who types `matrix .`."""
    ran = run("matrix", ".", "--ref", "release/done", "--scheduler", cluster.scheduler_address, cwd=k3s.path)
    assert ran.code == 0
    assert "1 branch: 1 done" in ran.out.decode()


def test_real_branches_are_the_same_either_way(corpus: Path, cluster: Any) -> None:
    refs = ("--ref", "older/*", "--ref", "after/*", "--format", "json")
    found = [
        run("matrix", corpus / "k3s.git", *refs, *how)
        for how in (("--jobs", "1"), ("--jobs", "2"), ("--scheduler", cluster.scheduler_address))
    ]
    assert len({(ran.code, ran.out) for ran in found}) == 1
    states = json.loads(found[0].out)["summary"]["states"]
    assert (states["differs"], states["missing"]) == (0, 0)


# --- one batch -----------------------------------------------------------------------------------------


def batch(repo: Repo, *refs: str, plan: bool = False) -> Batch:
    return Batch("k3s", str(repo.path), refs, plan)


def test_batches_are_about_as_many_as_workers(k3s: Repo) -> None:
    class Seen(Here):
        width = 3

        def each(self, work: Any, items: Any) -> Iterator[Any]:
            self.refs = [item.refs for item in items]
            return iter([[BranchRow("k3s", ref, ExitCode.CLEAN) for ref in item.refs] for item in items])

    pool, said = Seen(), []
    work = [batch(k3s, *"abcde"), batch(k3s, *"xyz")]
    rows = matrix.run(work, pool, lambda at, of: said.append((at, of)))
    assert pool.refs == [tuple("abc"), tuple("de"), tuple("xyz")], "never refs of two repositories in one"
    assert [row.ref for row in rows] == list("abcdexyz")
    assert said == [(3, 8), (5, 8), (8, 8)]


def test_ref_whose_worker_dies_is_told_and_others_of_its_batch_are_not_lost(k3s: Repo) -> None:
    class Fragile(Here):
        def each(self, work: Any, items: Any) -> Iterator[Any]:
            for item in items:
                yield Lost("the process died") if "release/done" in item.refs else work(item)

    rows = matrix.run([batch(k3s, "release/todo", "release/done", "nope")], Fragile(), lambda _at, _of: None)
    assert [(row.ref, int(row.code), row.message) for row in rows[:2]] == [
        ("release/todo", 1, ""),
        ("release/done", 3, "the process died"),
    ]
    assert "is not a commit here" in rows[2].message


def test_mistake_of_ours_on_one_ref_does_not_stop_the_others(k3s: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    real = engine.scan

    def faulty(snapshot: Any, suite: Any, **kwargs: Any) -> Any:
        if snapshot.label == "release/done":
            error = ValueError("a\nbug")
            error.add_note("codemod cri-ready on release/done")
            raise error
        return real(snapshot, suite, **kwargs)

    monkeypatch.setattr(engine, "scan", faulty)
    first, second = examine(batch(k3s, "release/done", "release/todo"))
    assert first.code is ExitCode.INTERNAL
    assert first.message.startswith("internal error in version ")
    assert first.message.endswith(", codemod cri-ready on release/done: ValueError: a bug")
    assert "test_matrix.py:" in first.message
    assert second.code is ExitCode.FINDINGS


def test_repository_that_a_worker_does_not_see_is_told_for_each_ref(tmp_path: Path) -> None:
    rows = examine(Batch("k3s", str(tmp_path / "missing"), ("a", "b")))
    assert [(row.ref, row.code) for row in rows] == [("a", ExitCode.USAGE), ("b", ExitCode.USAGE)]


def test_blobs_are_read_once_and_parsed_once(k3s: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refs in a row share what they have in common; one more that is the same costs nothing."""
    parsed: list[bytes] = []
    read: list[str] = []
    real_parse, real_read = parse.ParseCache.parse_once, Objects.blobs
    monkeypatch.setattr(
        parse.ParseCache, "parse_once", lambda self, data, old: parsed.append(data) or real_parse(self, data, old)
    )
    monkeypatch.setattr(Objects, "blobs", lambda self, oids: real_read(self, [read.append(oid) or oid for oid in oids]))
    examine(batch(k3s, "release/todo"))
    once = (len(parsed), len(read))
    parsed.clear()
    read.clear()
    examine(batch(k3s, "release/todo", "v1", "release/drifted"))
    assert len(read) == once[1] + 1, "one file of the last differs"
    assert len(parsed) == once[0] + 1
    assert len(set(parsed)) == len(parsed)


def test_memory_is_bounded_by_one_tree(k3s: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[int] = []
    real = parse.ParseCache.keep

    def keep(self: parse.ParseCache, oids: Any) -> None:
        real(self, oids)
        held.append(len(self._parsed))

    monkeypatch.setattr(parse.ParseCache, "keep", keep)
    examine(batch(k3s, "release/todo", "release/done", "release/todo", "release/drifted", plan=True))
    assert len(held) == 4
    assert max(held) <= sum(path.endswith(".go") for path in before()) + 10


def test_every_codemod_has_its_sites_in_the_table(k3s: Repo) -> None:
    (row,) = examine(batch(k3s, "release/todo"))
    assert list(dict.fromkeys(cell.codemod for cell in row.cells)) == [codemod.id for codemod in SUITE]
    assert all(cell.anchor for cell in row.cells)
