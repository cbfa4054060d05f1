"""What `verify` does outside the process: it finds and runs Go, copies trees, applies patches, and cleans up."""

from __future__ import annotations

import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from refactor_tool.model import Conflict, EnvironmentFailure, File, FileChange
from refactor_tool.world import gotool
from refactor_tool.world.checkout import Checkout
from refactor_tool.world.patches import apply_series, read_series
from refactor_tool.world.tree import read_ref, read_tree
from tests.small_trees import BASE, contents, fingerprint, new_repo, plan_of


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, go_cache: Path) -> Path:
    """Return an empty cache but for what Go has compiled for other tests."""
    compiled = go_cache / "refactor-tool/go-build"
    compiled.mkdir(parents=True, exist_ok=True)
    folder = tmp_path / "cache/refactor-tool"
    folder.mkdir(parents=True, mode=0o700)
    (folder / "go-build").symlink_to(compiled)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder.parent))
    return folder


def script(path: Path, text: str) -> gotool.Go:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return gotool.Go(path, "go1.26.8 linux/amd64", path.parent)


# --- Go -----------------------------------------------------------------------------------------------------


def test_checker_is_built_once_by_any_number_of_runs(go: gotool.Go, cache: Path) -> None:
    with ThreadPoolExecutor(3) as pool:
        programs = set(pool.map(lambda _: gotool.checker(go), range(3)))
    (program,) = programs
    assert sorted(path.name for path in cache.iterdir()) == sorted(["go-build", program.name])
    made = program.stat().st_ino
    assert gotool.checker(go) == program
    assert program.stat().st_ino == made


def test_checkers_that_nobody_uses_any_more_are_removed(go: gotool.Go, cache: Path) -> None:
    for age in range(6):
        old = cache / f"types-{age}"
        old.write_bytes(b"")
        os.utime(old, (1_000_000 - age, 1_000_000 - age))
    program = gotool.checker(go)
    assert {path.name for path in cache.glob("types-*")} == {program.name, "types-0", "types-1", "types-2"}


def test_checker_that_cannot_be_built_leaves_nothing(tmp_path: Path, cache: Path) -> None:
    broken = script(tmp_path / "go", 'test "$1" = env && echo "{}" || { echo "no space left" >&2; exit 1; }')
    with pytest.raises(EnvironmentFailure, match="cannot build the type checker: no space left"):
        gotool.checker(broken)
    assert [path.name for path in cache.iterdir()] == ["go-build"]


def test_what_takes_too_long_is_ended_with_all_it_started(tmp_path: Path) -> None:
    slow = script(tmp_path / "go", f"sleep 300 &\necho $! > {tmp_path}/child\nwait")
    start = time.monotonic()
    told: list[str] = []
    env = {"PATH": os.environ["PATH"]}
    assert gotool.run(slow, ("build",), tmp_path, env, 2.5, lambda: told.append("at work")).code is None
    assert len(told) >= 2, "somebody is told every second that it is still at work"
    assert time.monotonic() - start < 60
    assert _has_ended((tmp_path / "child").read_text())


def _has_ended(pid: str) -> bool:
    told = subprocess.run(["ps", "-o", "stat=", "-p", pid.strip()], capture_output=True, text=True, check=False)
    return told.stdout.strip()[:1] in ("", "Z")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("echo bad >&2; exit 1", "the type checker failed: bad", id="failed"),
        pytest.param("exit 1", "the type checker failed: it gave no reason", id="failed in silence"),
        pytest.param("exec sleep 100", "the type checker took longer than 1 seconds", id="hangs"),
    ],
)
def test_checker_without_an_answer_is_a_failure(tmp_path: Path, text: str, says: str) -> None:
    program = script(tmp_path / "types", f"PATH={os.environ['PATH']}\n{text}").program
    with gotool.asking(program, b"{}") as answer, pytest.raises(EnvironmentFailure, match=says):
        answer(1.0)


def test_checker_that_nobody_waits_for_is_ended(tmp_path: Path) -> None:
    program = script(
        tmp_path / "types",
        f"PATH={os.environ['PATH']}\necho $$ > {tmp_path}/pid\n: > {tmp_path}/pid.whole\nexec sleep 300",
    ).program
    start = time.monotonic()
    with gotool.asking(program, b"{}"):
        while not (tmp_path / "pid.whole").exists() and time.monotonic() < start + 60:
            time.sleep(0.01)
    assert time.monotonic() - start < 60
    assert _has_ended((tmp_path / "pid").read_text())


def test_network_is_used_only_where_it_was_asked_for(go: gotool.Go, tmp_path: Path) -> None:
    home = gotool.Home(tmp_path / "cache", tmp_path / "scratch")
    off, on = gotool.environment(go, home), gotool.environment(go, home, network=True)
    assert off["GOPROXY"].split(",")[-1] == "off"
    assert (off["GOSUMDB"], "off" in on["GOPROXY"].split(",")[:-1]) == ("off", False)
    for env in (off, on):
        assert env["GOPROXY"].startswith("file://")
        assert (env["GOTOOLCHAIN"], env["GOENV"], env["GOWORK"]) == ("local", "off", "off")
        assert all(Path(env[name]).is_relative_to(tmp_path) for name in ("HOME", "GOCACHE", "GOMODCACHE", "GOPATH"))


def test_question_to_go_leaves_nothing_behind(go: gotool.Go, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    gotool.find_go()
    gotool.environment(go, gotool.Home(tmp_path / "cache", tmp_path / "scratch"))
    time.sleep(1)  # Go counts what it does in a process that outlives it
    assert list(temporary.iterdir()) == []


# --- the copy -------------------------------------------------------------------------------------------------


def test_copy_of_a_commit_holds_all_but_links(tmp_path: Path) -> None:
    repo = new_repo(tmp_path / "r")
    (repo.path / "pkg/link.go").symlink_to("/etc/passwd")
    (repo.path / "data.txt").write_bytes(b"\r\ntext")
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", "more")
    before = fingerprint(repo.path)
    with Checkout(repo.path, read_ref(repo.path, "HEAD")) as copy:
        found = {path for path, data in contents(copy.module).items() if data is not None}
        assert found == {*BASE, "data.txt"}
        assert (copy.module / "data.txt").read_bytes() == b"\r\ntext"
        top = copy.tree.parent
    assert not top.exists()
    assert fingerprint(repo.path) == before


def test_copy_of_a_work_tree_has_its_uncommitted_source(tmp_path: Path) -> None:
    repo = new_repo(tmp_path / "r")
    (repo.path / "main.go").write_bytes(b"package main // changed\n")
    (repo.path / "pkg/a/a.go").unlink()
    with Checkout(repo.path, read_tree(repo.path)) as copy:
        assert (copy.module / "main.go").read_bytes() == b"package main // changed\n"
        assert not (copy.module / "pkg/a/a.go").exists()
        assert (copy.module / "README.md").exists()


def test_copy_of_a_plain_folder_leaves_links_out(tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    (folder / "a").mkdir(parents=True)
    (folder / "go.mod").write_bytes(b"module m\n")
    (folder / "a/a.go").write_bytes(b"package a\n")
    (folder / "a/link.go").symlink_to("/etc/passwd")
    (folder / "out").symlink_to("/etc")
    with Checkout(folder, read_tree(folder)) as copy:
        assert sorted(contents(copy.module)) == ["a", "a/a.go", "go.mod"]


def test_steps_are_written_into_the_copy_and_taken_back(tmp_path: Path) -> None:
    repo = new_repo(tmp_path / "r")
    snapshot = read_ref(repo.path, "HEAD")
    (step,) = plan_of(
        snapshot, {"main.go": b"package main // new\n", "pkg/b/b.go": b"package b\n", "pkg/a/a.go": None}
    ).steps
    with Checkout(repo.path, snapshot) as copy:
        before = contents(copy.module)
        copy.apply(step.changes)
        assert (copy.module / "pkg/b/b.go").read_bytes() == b"package b\n"
        assert not (copy.module / "pkg/a/a.go").exists()
        copy.apply(step.changes, back=True)
        (copy.module / "pkg/b").rmdir()
        assert contents(copy.module) == before


def test_path_that_leads_out_of_the_copy_is_refused(tmp_path: Path) -> None:
    repo = new_repo(tmp_path / "r")
    with Checkout(repo.path, read_ref(repo.path, "HEAD")) as copy, pytest.raises(ValueError, match="not a path below"):
        copy.apply((FileChange("../x.go", None, File(b"")),))


def test_module_in_a_folder_of_a_repository_is_found(tmp_path: Path) -> None:
    repo = new_repo(tmp_path / "r", {f"sub/{path}": file for path, file in BASE.items()})
    with Checkout(repo.path / "sub", read_ref(repo.path / "sub", "HEAD")) as copy:
        assert (copy.prefix, (copy.module / "main.go").is_file()) == ("sub/", True)
        said = f"/elsewhere/refactor-tool-abc_1234/tree/sub/main.go:1:2: bad {copy.module}/pkg/a.go:3".encode()
        assert copy.relative(said) == b"main.go:1:2: bad pkg/a.go:3"


# --- patches ----------------------------------------------------------------------------------------------------


def test_patches_apply_to_a_folder_without_git(tmp_path: Path) -> None:
    repo = new_repo(tmp_path / "r")
    changed = {**BASE, "main.go": File(b"package main\n"), "new.go": File(b"package main\n", "100755")}
    del changed["pkg/a/tool.go"]
    repo.commit(changed | {"README.md": File(b"# other\n")})
    repo.git("format-patch", "-q", "--cover-letter", "-o", str(tmp_path / "series"), "HEAD~1")
    repo.git("checkout", "-q", "HEAD~1")
    (repo.path / ".git").rename(tmp_path / "gone")
    series = read_series(tmp_path / "series")
    ((name, changes),) = apply_series(read_tree(repo.path), series.patches)
    assert name.startswith("0001-")
    assert [(change.path, change.after is not None) for change in changes] == [
        ("main.go", True),
        ("new.go", True),
        ("pkg/a/tool.go", False),
    ]
    assert [change.after.mode for change in changes if change.after is not None] == ["100644", "100755"]


def test_mailbox_is_a_series(tmp_path: Path) -> None:
    repo = new_repo(tmp_path / "r")
    for number in (1, 2):
        repo.commit({**BASE, "main.go": File(b"package main\n" * number)})
    mailbox = tmp_path / "box"
    mailbox.write_bytes(repo.git("format-patch", "--stdout", "HEAD~2"))
    series = read_series(mailbox)
    assert [name for name, _ in series.patches] == ["0001.patch", "0002.patch"]
    assert [len(changes) for _, changes in apply_series(read_ref(repo.path, "HEAD~2"), series.patches)] == [1, 1]


@pytest.mark.parametrize("path", ["../../escape.go", "/absolute.go", ".git/config.go"])
def test_patch_that_leads_out_of_the_tree_is_refused(tmp_path: Path, path: str) -> None:
    repo = new_repo(tmp_path / "r")
    text = f"From x\n\ndiff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"
    before = fingerprint(tmp_path)
    with pytest.raises(Conflict, match="does not apply"):
        apply_series(read_ref(repo.path, "HEAD"), [("evil.patch", text.encode())])
    assert fingerprint(tmp_path) == before


@pytest.mark.parametrize("path", ["link.go", "main.go", "pkg/go.mod"])
def test_patch_that_makes_a_link_is_refused(tmp_path: Path, path: str) -> None:
    repo = new_repo(tmp_path / "r")
    (repo.path / path).unlink(missing_ok=True)
    (repo.path / path).symlink_to("/etc/passwd")
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", "link")
    patch = repo.git("format-patch", "--stdout", "HEAD~1")
    with pytest.raises(Conflict, match=f"evil.patch makes {path} a link"):
        apply_series(read_ref(repo.path, "HEAD~1"), [("evil.patch", patch)])
