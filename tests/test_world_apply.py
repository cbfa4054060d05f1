"""A series becomes commits or edits as one act, is what `git am` would make of it, and is taken back as one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from refactor_tool.model import Conflict, EnvironmentFailure, File, Plan, Snapshot, UsageError
from refactor_tool.report.series import DEFAULT_AUTHOR, mailbox, message, series
from refactor_tool.world.apply import Applied, apply_branch, apply_worktree, undo
from refactor_tool.world.git import Git
from refactor_tool.world.journal import Journal
from refactor_tool.world.tree import read_ref, read_tree
from tests.faults import each_fault
from tests.repo import Repo
from tests.small_trees import BASE, be_nobody, contents, fingerprint, new_repo, plan_of

STEPS: tuple[dict[str, bytes | None], ...] = (
    {"main.go": b"package main\n\nfunc main() { one() }\n", "pkg/new/deep/n.go": b"package deep\n"},
    {"main.go": b"package main\n\nfunc main() { two() }\r\n", "pkg/a/a.go": None, "pkg/a/tool.go": b"package tool\n"},
)


@pytest.fixture(autouse=True)
def _nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    be_nobody(tmp_path, monkeypatch)


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return new_repo(tmp_path / "r")


def branch(path: Path, plan: Plan, name: str = "ready", author: str = DEFAULT_AUTHOR) -> Applied:
    return apply_branch(path, plan, name, messages=[message(step) for step in plan.steps], author=author)


def same_files(snapshot: Snapshot, plan: Plan) -> bool:
    return dict(snapshot.files) == dict(plan.final.files)


def without_objects(git_dir: Path) -> dict[str, bytes]:
    """Return every file of a git directory but objects, which may stay behind, and the log of a ref that went."""
    found = (path for path in git_dir.rglob("*") if path.is_file())
    paths = {path.relative_to(git_dir).as_posix(): path for path in found}
    return {name: path.read_bytes() for name, path in paths.items() if not name.startswith("objects/")}


def journal(repo: Repo) -> Path:
    return repo.path / ".git/refactor-tool/undo.json"


# --- a branch -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("read", [read_tree, lambda path: read_ref(path, "HEAD")], ids=["from tree", "from ref"])
def test_branch_is_what_git_am_makes_of_the_series(
    tmp_path: Path, repo: Repo, read: Callable[[Path], Snapshot]
) -> None:
    plan = plan_of(read(repo.path), *STEPS)
    work = fingerprint(repo.path / "pkg"), (repo.path / ".git/index").read_bytes()
    done = branch(repo.path, plan)
    assert (fingerprint(repo.path / "pkg"), (repo.path / ".git/index").read_bytes()) == work
    assert same_files(read_ref(repo.path, "ready"), plan)
    assert "2 commits" in done.summary
    log = repo.git("log", "--reverse", "--format=%H %an <%ae> %cn <%ce> %at %ct", "main..ready").decode().splitlines()
    assert log == [f"{oid} {DEFAULT_AUTHOR} {DEFAULT_AUTHOR} 1700000000 1700000000" for oid in done.commits]

    repo.git("switch", "-q", "-c", "mailed", "main")
    repo.git("am", "-q", stdin=mailbox(series(plan, version="1")))
    for made, mailed in (("ready", "mailed"), ("ready~1", "mailed~1")):
        assert repo.git("rev-parse", f"{made}^{{tree}}") == repo.git("rev-parse", f"{mailed}^{{tree}}")
        assert repo.git("log", "-1", "--format=%B", made) == repo.git("log", "-1", "--format=%B", mailed)
    assert repo.git("fsck", "--strict") == b""


def test_commit_ids_are_the_same_for_everybody(tmp_path: Path, repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other"
    repo.git("clone", "-q", "--bare", ".", str(other))
    plan = plan_of(read_ref(repo.path, "HEAD"), *STEPS)
    first = branch(repo.path, plan).commits
    config = "[user]\n name = Somebody\n email = s@example.org\n[commit]\n gpgSign = true\n[gpg]\n program = false\n"
    (tmp_path / "home/.gitconfig").write_text(config + "[i18n]\n commitEncoding = latin1\n")
    for name, value in {"TZ": "Asia/Tokyo", "GIT_AUTHOR_NAME": "x", "GIT_COMMITTER_DATE": "2001-01-01"}.items():
        monkeypatch.setenv(name, value)
    assert branch(other, plan).commits == first


def test_bare_repository_gets_a_branch_and_no_work_tree_edit(tmp_path: Path, repo: Repo) -> None:
    bare = tmp_path / "bare.git"
    repo.git("clone", "-q", "--bare", ".", str(bare))
    plan = plan_of(read_tree(bare), *STEPS)
    branch(bare, plan, "feature/ready")
    assert same_files(read_ref(bare, "feature/ready"), plan)
    with pytest.raises(UsageError, match="no work tree"):
        apply_worktree(bare, plan)
    assert "feature/ready" in undo(bare)
    with pytest.raises(EnvironmentFailure):
        read_ref(bare, "feature/ready")


def test_module_below_the_top_is_changed_where_it_lies(repo: Repo) -> None:
    module = {"sub/go.mod": BASE["go.mod"], "sub/main.go": BASE["main.go"], "sub/pkg/a/a.go": BASE["pkg/a/a.go"]}
    repo.commit({**BASE, **module, "sub/pkg/a/tool.go": BASE["pkg/a/tool.go"]})
    for inside in ("sub", "sub/pkg"):
        plan = plan_of(read_tree(repo.path / inside), *STEPS)
        branch(repo.path / inside, plan)
        assert same_files(read_ref(repo.path / inside, "ready"), plan)
        changed = repo.git("diff", "--name-only", "main", "ready").decode().split()
        assert changed == ["sub/main.go", "sub/pkg/a/a.go", "sub/pkg/a/tool.go", "sub/pkg/new/deep/n.go"]
        undo(repo.path)
    apply_worktree(repo.path / "sub", plan)
    assert same_files(read_tree(repo.path / "sub"), plan)
    assert b"sub/" in repo.git("status", "--porcelain").split(b"\n")[0]
    undo(repo.path)
    assert repo.git("status", "--porcelain") == b""


def test_nothing_of_the_repository_runs(tmp_path: Path, repo: Repo) -> None:
    script = tmp_path / "evil"
    script.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\ncat\n")
    script.chmod(0o755)
    for hook in ("reference-transaction", "post-index-change", "pre-commit", "commit-msg", "post-commit"):
        (repo.path / ".git/hooks" / hook).symlink_to(script)
    repo.git("config", "core.fsmonitor", str(script))
    repo.git("config", "core.splitIndex", "true")
    plan = plan_of(read_ref(repo.path, "HEAD"), *STEPS)
    branch(repo.path, plan)
    undo(repo.path)
    assert not (tmp_path / "ran").exists()
    assert not list((repo.path / ".git").glob("sharedindex.*"))


@pytest.mark.parametrize(
    "name", ["", "-d", "--all", "HEAD", "a..b", "a b", "x.lock", "@{-1}", "refs/heads/", "a\nb", "/x", "x/"]
)
def test_name_git_would_not_take_is_a_usage_error(repo: Repo, name: str) -> None:
    plan = plan_of(read_tree(repo.path), *STEPS)
    with pytest.raises(UsageError, match="not a name git takes"):
        branch(repo.path, plan, name)


@pytest.mark.parametrize("name", ["main", "topic", "topic/below", "above"])
def test_branch_that_exists_is_a_conflict(repo: Repo, name: str) -> None:
    repo.git("branch", "topic")
    repo.git("branch", "above/it")
    plan = plan_of(read_tree(repo.path), *STEPS)
    refs = repo.git("for-each-ref")
    with pytest.raises(Conflict, match="exists"):
        branch(repo.path, plan, name)
    assert repo.git("for-each-ref") == refs
    assert not journal(repo).exists()


@pytest.mark.parametrize("author", ["", "nobody", "A <>", "<a@b>", "A <a@b> x", "A\nB <a@b>", "A <a b>"])
def test_identity_git_would_change_is_a_usage_error(repo: Repo, author: str) -> None:
    plan = plan_of(read_tree(repo.path), *STEPS)
    with pytest.raises(UsageError, match="not an identity"):
        branch(repo.path, plan, author=author)


def test_plan_must_be_of_a_commit_that_is_here(tmp_path: Path, repo: Repo) -> None:
    fresh = Repo(tmp_path / "fresh")
    (fresh.path / "main.go").write_bytes(BASE["main.go"].data)
    plan = plan_of(read_tree(fresh.path), {"main.go": b"package x\n"})
    with pytest.raises(UsageError, match="the plan is of no commit"):
        branch(fresh.path, plan)
    fresh.git("add", ".")
    fresh.git("commit", "-q", "-m", "first")
    foreign = plan_of(read_tree(fresh.path), {"main.go": b"package x\n"})
    with pytest.raises(EnvironmentFailure, match="is not a commit here"):
        branch(repo.path, foreign)
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain/main.go").write_bytes(b"package main\n")
    for apply in (branch, apply_worktree):
        with pytest.raises(EnvironmentFailure, match="not a git repository"):
            apply(tmp_path / "plain", plan)


def test_plan_without_steps_is_a_bug(repo: Repo) -> None:
    plan = plan_of(read_tree(repo.path))
    with pytest.raises(ValueError, match="0 steps"):
        branch(repo.path, plan)
    with pytest.raises(ValueError, match="without steps"):
        apply_worktree(repo.path, plan)


# --- the work tree ------------------------------------------------------------------------------------


def test_work_tree_becomes_the_end_of_the_series_and_comes_back(repo: Repo) -> None:
    (repo.path / "pkg/a/tool.go").chmod(0o750)
    plan = plan_of(read_tree(repo.path), *STEPS)
    before, index = contents(repo.path), (repo.path / ".git/index").read_bytes()
    done = apply_worktree(repo.path, plan)
    assert done.paths == ("main.go", "pkg/a/a.go", "pkg/a/tool.go", "pkg/new/deep/n.go")
    assert same_files(read_tree(repo.path), plan)
    assert (repo.path / "pkg/a/tool.go").stat().st_mode & 0o777 == 0o750
    assert (repo.path / ".git/index").read_bytes() == index
    assert "4 files as before" in undo(repo.path)
    assert contents(repo.path) == before
    assert repo.git("status", "--porcelain") == b""
    assert not journal(repo).parent.exists()


@pytest.mark.parametrize("name", ["elsewhere", "r/pkg"])
def test_nothing_is_written_where_git_keeps_another_work_tree(repo: Repo, tmp_path: Path, name: str) -> None:
    plan = plan_of(read_tree(repo.path), *STEPS)
    shutil.copytree(repo.path, tmp_path / "elsewhere", ignore=shutil.ignore_patterns(".git"))
    repo.git("config", "core.worktree", str(tmp_path / name))
    (repo.path / "main.go").write_bytes(b"package main // not committed\n")
    before = contents(repo.path)
    with pytest.raises(EnvironmentFailure, match=r"core\.worktree"):
        apply_worktree(repo.path, plan)
    assert contents(repo.path) == before


@pytest.mark.parametrize("spelt", ["..", "link"])
def test_work_tree_that_git_keeps_here_by_another_name_is_written(repo: Repo, tmp_path: Path, spelt: str) -> None:
    plan = plan_of(read_tree(repo.path), *STEPS)
    (tmp_path / "link").symlink_to(repo.path)
    repo.git("config", "core.worktree", ".." if spelt == ".." else str(tmp_path / "link"))
    apply_worktree(repo.path, plan)
    assert same_files(read_tree(repo.path), plan)


def test_folder_that_becomes_empty_goes_as_in_a_checkout(repo: Repo) -> None:
    before = contents(repo.path)
    plan = plan_of(read_tree(repo.path), {"pkg/a/a.go": None, "pkg/a/tool.go": None})
    apply_worktree(repo.path, plan)
    assert not (repo.path / "pkg").exists()
    undo(repo.path)
    assert contents(repo.path) == before


def test_line_ends_are_those_of_a_checkout(tmp_path: Path, repo: Repo) -> None:
    (tmp_path / "home/.gitconfig").write_text("[core]\n\tautocrlf = true\n")
    for path in BASE:
        (repo.path / path).unlink()
    repo.git("-c", "core.autocrlf=true", "checkout", "--", ".")
    plan = plan_of(read_tree(repo.path), {"main.go": b"package x\r\n", "pkg/new.go": b"package pkg\n"})
    apply_worktree(repo.path, plan)
    assert (repo.path / "main.go").read_bytes() == b"package x\r\n"
    assert (repo.path / "pkg/new.go").read_bytes() == b"package pkg\r\n", "as git would write the new blob"
    undo(repo.path)
    assert (repo.path / "main.go").read_bytes() == BASE["main.go"].data.replace(b"\n", b"\r\n")
    assert not (repo.path / "pkg/new.go").exists()


@pytest.mark.parametrize("attribute", ["filter=lfs", "ident", "working-tree-encoding=latin1"])
def test_file_that_git_converts_is_refused(repo: Repo, attribute: str) -> None:
    (repo.path / ".git/info/attributes").write_text(f"main.go {attribute}\n")
    plan = plan_of(read_tree(repo.path), *STEPS)
    before = contents(repo.path)
    with pytest.raises(EnvironmentFailure, match=r"main\.go: git converts this file on checkout \(attribute"):
        apply_worktree(repo.path, plan)
    assert contents(repo.path) == before
    branch(repo.path, plan)
    assert same_files(read_ref(repo.path, "ready"), plan)


def test_ignored_file_in_the_way_is_kept(repo: Repo) -> None:
    repo.commit({**BASE, ".gitignore": File(b"/pkg/new/\n")})
    (repo.path / "pkg/new/deep").mkdir(parents=True)
    (repo.path / "pkg/new/deep/n.go").write_bytes(b"package mine\n")
    plan = plan_of(read_tree(repo.path), *STEPS)
    before = contents(repo.path)
    with pytest.raises(Conflict, match=r"pkg/new/deep/n\.go: a file that git ignores"):
        apply_worktree(repo.path, plan)
    assert contents(repo.path) == before


def test_file_a_sparse_checkout_hides_goes_to_a_branch_only(repo: Repo) -> None:
    repo.git("sparse-checkout", "set", "--no-cone", "/main.go", "/go.mod")
    plan = plan_of(read_tree(repo.path), *STEPS)
    with pytest.raises(Conflict, match="hidden by a sparse checkout") as caught:
        apply_worktree(repo.path, plan)
    assert "sparse-checkout disable" in caught.value.hint
    branch(repo.path, plan)
    assert same_files(read_ref(repo.path, "ready"), plan)


def test_folder_git_ignores_is_refused(repo: Repo) -> None:
    repo.commit({**BASE, ".gitignore": File(b"/build/\n")})
    (repo.path / "build").mkdir()
    (repo.path / "build/main.go").write_bytes(BASE["main.go"].data)
    plan = plan_of(read_tree(repo.path / "build"), {"main.go": b"package x\n"})
    with pytest.raises(UsageError, match="git ignores this folder"):
        apply_worktree(repo.path / "build", plan)


# --- a tree that is not what the plan read ------------------------------------------------------------


def edit(repo: Repo) -> None:
    (repo.path / "main.go").write_bytes(b"package edited\n")


def edit_text(repo: Repo) -> None:
    (repo.path / "README.md").write_bytes(b"edited\n")


def stage(repo: Repo) -> None:
    edit(repo)
    repo.git("add", "-A")
    (repo.path / "main.go").write_bytes(BASE["main.go"].data)


def remove(repo: Repo) -> None:
    (repo.path / "pkg/a/tool.go").unlink()


@pytest.mark.parametrize("make_dirty", [edit, edit_text, stage, remove], ids=lambda function: function.__name__)
@pytest.mark.parametrize("apply", [branch, apply_worktree], ids=["branch", "work tree"])
@pytest.mark.parametrize("ref", [True, False], ids=["plan of HEAD", "plan of the tree"])
def test_dirty_tree_is_refused(repo: Repo, make_dirty: Callable[[Repo], None], apply, ref: bool) -> None:
    make_dirty(repo)
    plan = plan_of(read_ref(repo.path, "HEAD") if ref else read_tree(repo.path), {"go.mod": b"module x\n"})
    before, refs = contents(repo.path), repo.git("for-each-ref")
    with pytest.raises(Conflict, match=r"uncommitted changes in \S+$") as caught:
        apply(repo.path, plan)
    assert "stash" in caught.value.hint
    assert (contents(repo.path), repo.git("for-each-ref")) == (before, refs)
    assert not journal(repo).exists()


@pytest.mark.parametrize("apply", [branch, apply_worktree], ids=["branch", "work tree"])
def test_other_untracked_files_are_no_dirt(repo: Repo, apply) -> None:
    (repo.path / "notes.txt").write_bytes(b"mine\n")
    plan = plan_of(read_tree(repo.path), *STEPS)
    apply(repo.path, plan)
    undo(repo.path)
    assert (repo.path / "notes.txt").read_bytes() == b"mine\n"


def move_head(repo: Repo) -> None:
    repo.git("commit", "-q", "--allow-empty", "-m", "more")


def move_tree(repo: Repo) -> None:
    repo.commit({**BASE, "pkg/a/more.go": File(b"package a\n"), "main.go": File(b"package b\n")})


def add_untracked(repo: Repo) -> None:
    (repo.path / "pkg/a/more.go").write_bytes(b"package a\n")


def hide_edit(repo: Repo) -> None:
    repo.git("update-index", "--assume-unchanged", "main.go")
    (repo.path / "main.go").write_bytes(b"package hidden\n")


@pytest.mark.parametrize(
    ("apply", "move", "words"),
    [
        pytest.param(branch, move_head, "HEAD moved", id="branch: a commit more"),
        pytest.param(branch, move_tree, "HEAD moved", id="branch: other files"),
        pytest.param(apply_worktree, move_tree, r"moved under us: main\.go, pkg/a/more\.go", id="tree: other files"),
        pytest.param(apply_worktree, add_untracked, r"moved under us: pkg/a/more\.go", id="tree: a file more"),
        pytest.param(apply_worktree, hide_edit, r"moved under us: main\.go", id="tree: an edit git does not see"),
    ],
)
def test_tree_that_moved_since_the_plan_is_refused(repo: Repo, apply, move, words: str) -> None:
    plan = plan_of(read_tree(repo.path), *STEPS)
    move(repo)
    before, refs = contents(repo.path), repo.git("for-each-ref")
    with pytest.raises(Conflict, match=words):
        apply(repo.path, plan)
    assert (contents(repo.path), repo.git("for-each-ref")) == (before, refs)


@pytest.mark.parametrize("move", [add_untracked, hide_edit], ids=lambda function: function.__name__)
def test_branch_holds_nothing_that_is_not_committed(repo: Repo, move: Callable[[Repo], None]) -> None:
    move(repo)
    plan = plan_of(read_tree(repo.path), {"go.mod": b"module x\n"})
    with pytest.raises(Conflict, match="moved under us"):
        branch(repo.path, plan)


def test_plan_with_a_wrong_blob_id_makes_no_branch(repo: Repo) -> None:
    base = read_tree(repo.path)
    plan = plan_of(base, {"main.go": b"package x\n"})
    lie = File(b"package y\n", known=plan.final.files["main.go"].oid)
    step = plan.steps[0]
    change = type(step.changes[0])("main.go", step.changes[0].before, lie)
    false = Plan(base, (), (type(step)("x", "X", "", (), (change,)),), plan.final)
    with pytest.raises(AssertionError, match="blob id"):
        branch(repo.path, false)
    unlike = Plan(base, (), plan.steps, base)
    with pytest.raises(AssertionError, match="not the planned one"):
        branch(repo.path, unlike)
    assert repo.git("branch", "--list", "ready") == b""


# --- all or nothing, and back -------------------------------------------------------------------------


@pytest.mark.parametrize("apply", [branch, apply_worktree], ids=["branch", "work tree"])
def test_fault_at_any_call_applies_nothing(repo: Repo, monkeypatch: pytest.MonkeyPatch, apply) -> None:
    plan = plan_of(read_tree(repo.path), *STEPS)
    before, inside = contents(repo.path), without_objects(repo.path / ".git")

    def check(what: str) -> None:
        assert contents(repo.path) == before, what
        left = without_objects(repo.path / ".git")
        left.pop("refactor-tool/undo.json", None)  # recorded and not done: undo finds nothing to do
        assert left == inside, what

    calls = each_fault(monkeypatch, lambda: apply(repo.path, plan), check, survived=lambda: undo(repo.path))
    assert calls > 4
    undo(repo.path)
    assert contents(repo.path) == before
    assert without_objects(repo.path / ".git") == inside


def test_fault_while_taking_back_changes_nothing(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(read_tree(repo.path), *STEPS)
    before = contents(repo.path)
    apply_worktree(repo.path, plan)
    applied = contents(repo.path)

    def check(what: str) -> None:
        assert contents(repo.path) in (applied, before), what
        assert journal(repo).exists(), what

    each_fault(monkeypatch, lambda: undo(repo.path), check, survived=lambda: apply_worktree(repo.path, plan))
    assert contents(repo.path) == before
    assert not journal(repo).exists()


def test_killed_in_the_middle_can_be_taken_back(repo: Repo) -> None:
    plan = plan_of(read_tree(repo.path), *STEPS)
    before = contents(repo.path)
    apply_worktree(repo.path, plan)
    (repo.path / "main.go").write_bytes(BASE["main.go"].data)
    (repo.path / "pkg/new/deep/n.go").unlink()
    undo(repo.path)
    assert contents(repo.path) == before


def test_applications_are_taken_back_last_first(repo: Repo) -> None:
    before = contents(repo.path)
    branch(repo.path, plan_of(read_tree(repo.path), STEPS[0]), "one")
    apply_worktree(repo.path, plan_of(read_tree(repo.path), *STEPS))
    with pytest.raises(Conflict, match="uncommitted"):
        branch(repo.path, plan_of(read_tree(repo.path), {"go.mod": b"module x\n"}), "two")
    assert "work tree" in undo(repo.path)
    assert contents(repo.path) == before
    assert "branch one" in undo(repo.path)
    with pytest.raises(UsageError, match="nothing to undo"):
        undo(repo.path)
    assert not journal(repo).parent.exists()


def test_linked_work_trees_share_the_journal(tmp_path: Path, repo: Repo) -> None:
    linked = tmp_path / "it's linked"
    repo.git("worktree", "add", "-q", "--detach", str(linked))
    apply_worktree(linked, plan_of(read_tree(linked), *STEPS))
    with pytest.raises(Conflict, match="another work tree") as caught:
        undo(repo.path)
    assert caught.value.hint.endswith("/it'\"'\"'s linked'")
    undo(linked)
    assert contents(linked) == contents(repo.path)


def test_branch_that_moved_on_is_kept(repo: Repo) -> None:
    branch(repo.path, plan_of(read_tree(repo.path), *STEPS))
    repo.git("switch", "-q", "ready")
    repo.git("commit", "-q", "--allow-empty", "-m", "mine")
    repo.git("switch", "-q", "main")
    tip = repo.git("rev-parse", "ready")
    with pytest.raises(Conflict, match="has moved since") as caught:
        undo(repo.path)
    assert repo.git("rev-parse", "ready") == tip
    assert journal(repo).exists()
    subprocess.run(caught.value.hint.partition(": ")[2], shell=True, check=True, capture_output=True)
    assert "gone already" in undo(repo.path)


def test_branch_that_is_checked_out_is_kept_until_it_is_left(tmp_path: Path, repo: Repo) -> None:
    branch(repo.path, plan_of(read_tree(repo.path), *STEPS))
    repo.git("worktree", "add", "-q", str(tmp_path / "a linked one"), "ready")
    with pytest.raises(Conflict, match="is checked out in") as caught:
        undo(repo.path)
    subprocess.run(caught.value.hint.partition(": ")[2], shell=True, check=True, capture_output=True)
    assert "deleted" in undo(repo.path)
    assert repo.git("branch", "--list", "ready") == b""


@pytest.mark.parametrize(
    ("path", "change"),
    [
        pytest.param("main.go", lambda file: file.write_bytes(b"package mine\n"), id="edited"),
        pytest.param("main.go", lambda file: file.unlink(), id="removed"),
        pytest.param("pkg/a/a.go", lambda file: file.write_bytes(b"package mine\n"), id="made anew"),
        pytest.param("main.go", lambda file: (file.unlink(), file.symlink_to("go.mod")), id="now a link"),
        pytest.param("pkg/new/deep/n.go", lambda file: file.write_bytes(b"package mine\n"), id="new one edited"),
    ],
)
def test_file_changed_since_is_named_and_nothing_is_taken_back(repo: Repo, path: str, change) -> None:
    apply_worktree(repo.path, plan_of(read_tree(repo.path), *STEPS))
    change(repo.path / path)
    now = contents(repo.path)
    with pytest.raises(Conflict, match=rf"changed since they were written: {path};"):
        undo(repo.path)
    assert contents(repo.path) == now
    assert journal(repo).exists()


def test_one_at_a_time(repo: Repo) -> None:
    (repo.path / ".git/refactor-tool").mkdir()
    lock = repo.path / ".git/refactor-tool/undo.lock"
    lock.touch()
    plan = plan_of(read_tree(repo.path), *STEPS)
    before = contents(repo.path)
    for act in (lambda: branch(repo.path, plan), lambda: apply_worktree(repo.path, plan), lambda: undo(repo.path)):
        with pytest.raises(Conflict, match="another refactor-tool is at work") as caught:
            act()
        assert caught.value.hint == f"if none is: rm {lock}"
    assert contents(repo.path) == before
    assert repo.git("branch", "--list", "ready") == b""


@pytest.mark.parametrize("apply", [branch, apply_worktree])
def test_same_application_a_moment_before_is_a_conflict(repo: Repo, monkeypatch: pytest.MonkeyPatch, apply) -> None:
    plan = plan_of(read_tree(repo.path), *STEPS)

    def after_another(git: Git) -> Journal:
        monkeypatch.setattr("refactor_tool.world.apply.Journal", Journal)
        apply(repo.path, plan)
        return Journal(git)

    monkeypatch.setattr("refactor_tool.world.apply.Journal", after_another)
    with pytest.raises(Conflict, match=r"exists|moved under us"):
        apply(repo.path, plan)
    assert len(json.loads(journal(repo).read_bytes())["entries"]) == 1


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"not json", id="no JSON"),
        pytest.param(b"[]", id="not an object"),
        pytest.param(b'{"schema": "refactor-tool-undo/2", "entries": []}', id="of a later version"),
        pytest.param(b'{"schema": "refactor-tool-undo/1", "entries": [{"kind": "x"}]}', id="of no known kind"),
        pytest.param(b'{"schema": "refactor-tool-undo/1", "entries": [{"kind": "branch"}]}', id="with a part missing"),
    ],
)
def test_journal_that_cannot_be_read_is_kept(repo: Repo, text: bytes) -> None:
    journal(repo).parent.mkdir()
    journal(repo).write_bytes(text)
    with pytest.raises(EnvironmentFailure, match="not a journal this version can read"):
        undo(repo.path)
    assert journal(repo).read_bytes() == text
    assert sorted(path.name for path in journal(repo).parent.iterdir()) == ["undo.json"]


def test_journal_holds_odd_names_and_any_bytes(repo: Repo) -> None:
    name = 'pkg/\udcff\n"x.go'
    repo.commit({**BASE, name: File(b"\x00\xff package\r\n")})
    before = contents(repo.path)
    apply_worktree(repo.path, plan_of(read_tree(repo.path), {name: b"package x\n"}))
    assert json.loads(journal(repo).read_bytes())["schema"] == "refactor-tool-undo/1"
    undo(repo.path)
    assert contents(repo.path) == before
    plan = plan_of(read_tree(repo.path), {name: b"package x\n"})
    branch(repo.path, plan)
    assert same_files(read_ref(repo.path, "ready"), plan)


def test_branch_made_although_git_was_ended_counts(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Git.call

    def ended(self: Git, *args: str, **kwargs):
        reply = real(self, *args, **kwargs)
        return type(reply)(-2, b"", "") if args[0] == "update-ref" else reply

    plan = plan_of(read_tree(repo.path), *STEPS)
    with monkeypatch.context() as patch:
        patch.setattr(Git, "call", ended)
        branch(repo.path, plan)
    assert same_files(read_ref(repo.path, "ready"), plan)
    assert "deleted" in undo(repo.path)


def test_names_on_the_disk_are_the_same_in_any_locale(repo: Repo) -> None:
    files = {os.fsencode(repo.path) + b"/" + name: b"package odd\n" for name in (b"gr\xc3\xbcn.go", b"\xff.go")}
    for where, data in files.items():
        with open(where, "wb") as file:
            file.write(data)
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", "odd")
    script = """
import sys
from pathlib import Path
from refactor_tool.world.apply import apply_worktree, undo
from refactor_tool.world.tree import read_tree
from tests.small_trees import plan_of
path = Path(sys.argv[1])
base = read_tree(path)
odd = [name for name in base.files if not name.isascii()]
apply_worktree(path, plan_of(base, {**dict.fromkeys(odd, b"new\\n"), "neu/\\xfc/x.go": b"new\\n"}))
print(sys.getfilesystemencoding(), sorted(odd) == ["gr\\xfcn.go", "\\udcff.go"])
assert read_tree(path).files["neu/\\xfc/x.go"].data == b"new\\n"
"""
    env = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONWARNINGS": "error"}
    command = [sys.executable, "-c", script, str(repo.path)]
    done = subprocess.run(command, env=env, cwd=Path(__file__).parents[1], capture_output=True, check=False)
    assert (done.stderr.decode(), done.stdout.decode()) == ("", "ascii True\n")
    status = repo.git("status", "--porcelain", "-z", "--untracked-files=all").split(b"\0")
    assert status == [b" M gr\xc3\xbcn.go", b" M \xff.go", b"?? neu/\xc3\xbc/x.go", b""]
    undo(repo.path)
    assert repo.git("status", "--porcelain") == b""
    assert not (repo.path / "neu").exists()
