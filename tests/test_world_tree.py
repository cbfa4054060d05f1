"""Snapshots from work trees, plain folders and refs: what is in them, what is left out and why, what stays untouched."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from refactor_tool.model import (
    EnvironmentFailure,
    ExitCode,
    File,
    NothingScanned,
    Snapshot,
    ToolError,
    Unparsable,
    UsageError,
)
from refactor_tool.world import disk, objects
from refactor_tool.world.disk import Disk
from refactor_tool.world.history import merge_base
from refactor_tool.world.tree import read_each, read_many, read_ref, read_tree
from tests.repo import Repo
from tests.small_trees import BASE, GO_MOD, be_nobody, fingerprint, new_repo

SOURCES = {path: file for path, file in BASE.items() if path != "README.md"}


def reasons(snapshot: Snapshot) -> dict[str, str]:
    return {skipped.path: skipped.reason for skipped in snapshot.skipped}


@pytest.fixture(autouse=True)
def _nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    be_nobody(tmp_path, monkeypatch)


# --- what a snapshot holds ----------------------------------------------------------------------------


def test_work_tree_and_ref_give_the_same_files_with_ids_and_modes_of_git(tmp_path: Path) -> None:
    repo = new_repo(tmp_path / "r")
    tree, ref = read_tree(repo.path), read_ref(repo.path, "main")
    assert dict(tree.files) == dict(ref.files) == SOURCES
    known = repo.tree()
    assert {path: (file.mode, file.oid) for path, file in ref.files.items()} == {path: known[path] for path in SOURCES}
    head = repo.git("rev-parse", "HEAD").decode().strip()
    assert (ref.source, ref.label, ref.commit, ref.committed_at) == ("ref", "main", head, 1700000000)
    assert (tree.source, tree.label, tree.commit, tree.committed_at) == ("tree", ".", head, 1700000000)
    assert list(tree.files) == list(ref.files) == sorted(SOURCES)


def test_work_tree_shows_edits_new_files_and_removals(tmp_path: Path) -> None:
    repo = new_repo(tmp_path / "r")
    (repo.path / "main.go").write_bytes(b"package main // edited\n")
    (repo.path / "new.go").write_bytes(b"package main // new\n")
    (repo.path / "pkg/a/a.go").unlink()
    files = read_tree(repo.path).files
    assert files["main.go"] == File(b"package main // edited\n")
    assert files["new.go"] == File(b"package main // new\n")
    assert "pkg/a/a.go" not in files
    assert "pkg/a/a.go" in read_ref(repo.path, "HEAD").files


def test_only_the_repository_says_what_is_ignored(tmp_path: Path) -> None:
    repo = new_repo(tmp_path / "r", {**BASE, ".gitignore": File(b"zz_*.go\n")})
    (repo.path / "zz_generated.go").write_bytes(b"package main\n")
    (repo.path / "mine.go").write_bytes(b"package main\n")
    config = tmp_path / "home/.config/git"
    config.mkdir(parents=True)
    (config / "ignore").write_text("mine.go\n")
    files = read_tree(repo.path).files
    assert "mine.go" in files
    assert "zz_generated.go" not in files


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("pkg/a/li\nne.go", id="newline"),
        pytest.param('pkg/a/tab\there "quoted" \\.go', id="tab, quotes and backslash"),
        pytest.param("pkg/a/\udcff\udcfe.go", id="not UTF-8"),
        pytest.param("pkg/a/grün.go", id="not ASCII"),
        pytest.param("-rf.go", id="like an option"),
        pytest.param(":(glob)x.go", id="like pathspec magic"),
        pytest.param("? x.go", id="like an untracked entry"),
    ],
)
def test_odd_file_names_are_read_alike(tmp_path: Path, name: str) -> None:
    repo = new_repo(tmp_path / "r", {**BASE, name: File(b"package odd\n")})
    (repo.path / os.fsdecode(b"untracked " + os.fsencode(name.rpartition("/")[2]))).write_bytes(b"package x\n")
    assert read_ref(repo.path, "HEAD").files[name] == File(b"package odd\n")
    files = read_tree(repo.path).files
    assert files[name] == File(b"package odd\n")
    assert "untracked " + name.rpartition("/")[2] in files


def test_bytes_are_those_on_the_disk_whatever_git_would_convert(tmp_path: Path) -> None:
    repo = new_repo(tmp_path / "r")
    repo.git("config", "core.autocrlf", "true")
    repo.git("rm", "-q", "--cached", "main.go")
    (repo.path / "main.go").write_bytes(b"package main\r\n")
    repo.git("add", "main.go")
    assert read_tree(repo.path).files["main.go"] == File(b"package main\r\n")


def test_unmerged_file_is_read_once_as_it_lies_there(tmp_path: Path) -> None:
    repo = new_repo(tmp_path / "r")
    repo.git("switch", "-q", "-c", "other")
    repo.commit({**BASE, "main.go": File(b"package theirs\n")})
    repo.git("switch", "-q", "main")
    repo.commit({**BASE, "main.go": File(b"package ours\n")})
    assert repo.run("merge", "other").returncode == 1
    assert read_tree(repo.path).files["main.go"].data.startswith(b"<<<<<<<")


def test_file_a_sparse_checkout_hides_is_part_of_the_tree(tmp_path: Path) -> None:
    repo = new_repo(tmp_path / "r")
    repo.git("sparse-checkout", "set", "--no-cone", "/main.go")
    assert not (repo.path / "pkg").exists()
    assert dict(read_tree(repo.path).files) == SOURCES


# --- what is left out, with the reason ----------------------------------------------------------------


def test_links_are_named_and_never_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret.go"
    secret.write_bytes(b"package secret\n")
    repo = new_repo(tmp_path / "r")
    targets = {
        "inside.go": "main.go",
        "outside.go": "../secret.go",
        "absolute.go": str(secret),
        "pkg/out": "../../..",
        "pkg/in": "a",
        "dangling.go": "nowhere.go",
    }
    for name, target in targets.items():
        (repo.path / name).symlink_to(target)
    leaves, stays = "a symbolic link that leaves the tree", "a symbolic link"
    wanted = dict.fromkeys(("outside.go", "absolute.go", "pkg/out"), leaves)
    wanted |= dict.fromkeys(("inside.go", "pkg/in", "dangling.go"), stays)
    assert reasons(read_tree(repo.path)) == wanted, "untracked"
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", "links")
    for snapshot in (read_tree(repo.path), read_ref(repo.path, "HEAD")):
        assert reasons(snapshot) == wanted
        assert dict(snapshot.files) == SOURCES


def test_nothing_is_read_through_a_folder_that_became_a_link(tmp_path: Path) -> None:
    repo = new_repo(tmp_path / "r")
    elsewhere = tmp_path / "elsewhere"
    (repo.path / "pkg/a").rename(elsewhere)
    (repo.path / "pkg/a").symlink_to(elsewhere)
    snapshot = read_tree(repo.path)
    assert sorted(snapshot.files) == ["go.mod", "main.go"]
    assert reasons(snapshot) == {"pkg/a": "a symbolic link that leaves the tree"}


def test_tracked_file_that_became_something_else(tmp_path: Path) -> None:
    repo = new_repo(tmp_path / "r")
    for name in ("main.go", "pkg/a/a.go", "pkg/a/tool.go"):
        (repo.path / name).unlink()
    (repo.path / "main.go").symlink_to("go.mod")
    (repo.path / "pkg/a/a.go").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        os.chdir(repo.path / "pkg/a")  # the path of a socket must be short
        try:
            server.bind("tool.go")
        finally:
            os.chdir(here)
    (repo.path / "more.go").write_bytes(b"package more\n")
    snapshot = read_tree(repo.path)
    assert list(snapshot.files) == ["go.mod", "more.go"]
    wanted = {"main.go": "a symbolic link", "pkg/a/tool.go": "a device, a pipe or a socket"}
    assert reasons(snapshot) == wanted


def test_file_that_comes_in_pieces_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = new_repo(tmp_path / "r")
    real = os.read
    with monkeypatch.context() as patch:
        patch.setattr(disk.os, "read", lambda handle, size: real(handle, min(size, 7)))
        found = Disk(repo.path).read("main.go")
    assert found == (BASE["main.go"].data, "100644")


@pytest.mark.parametrize("tracked", [True, False], ids=["in a work tree", "in a plain folder"])
def test_pipe_named_like_a_go_file_does_not_hang(tmp_path: Path, tracked: bool) -> None:
    repo = new_repo(tmp_path / "r")
    (repo.path / "main.go").unlink()
    os.mkfifo(repo.path / "main.go")
    if not tracked:
        (repo.path / ".git").rename(tmp_path / "gone")
    snapshot = read_tree(repo.path)
    assert reasons(snapshot) == {"main.go": "a device, a pipe or a socket"}
    assert "pkg/a/a.go" in snapshot.files


def test_vendored_copies_and_other_repositories_are_left_out(tmp_path: Path) -> None:
    files = {**BASE, "vendor/x/x.go": GO_MOD, "pkg/vendor/y.go": GO_MOD, "pkg/vendors/z.go": File(b"package z\n")}
    repo = new_repo(tmp_path / "r", files)
    sub = new_repo(tmp_path / "sub")
    repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(sub.path), "module")
    repo.git("commit", "-q", "-m", "submodule")
    new_repo(repo.path / "nested")
    vendored = dict.fromkeys(("vendor", "pkg/vendor"), "vendored copies of other modules")
    own = "a repository of its own"
    assert reasons(read_ref(repo.path, "HEAD")) == {**vendored, "module": own}
    assert reasons(read_tree(repo.path)) == {**vendored, "module": own, "nested": own}
    assert dict(read_tree(repo.path / "module").files) == SOURCES, "a submodule is a repository when asked for"
    (repo.path / ".git").rename(tmp_path / "gone")
    plain = read_tree(repo.path)
    assert reasons(plain) == {**vendored, "module": own, "nested": own}
    assert sorted(plain.files) == sorted([*SOURCES, "pkg/vendors/z.go"])


# --- what PATH means ----------------------------------------------------------------------------------


MODULES = {
    **BASE,
    "tools/go.mod": File(b"module example.org/tools\n"),
    "tools/cmd/t.go": File(b"package main // tools\n"),
}


@pytest.mark.parametrize(
    ("below", "label", "paths"),
    [
        pytest.param("", ".", [*SOURCES, "tools/cmd/t.go", "tools/go.mod"], id="top: all modules"),
        pytest.param("pkg/a", ".", [*SOURCES, "tools/cmd/t.go", "tools/go.mod"], id="no go.mod of its own: all"),
        pytest.param("tools", "tools", ["cmd/t.go", "go.mod"], id="a module: that"),
        pytest.param("tools/cmd", "tools", ["cmd/t.go", "go.mod"], id="below a module: that"),
    ],
)
def test_subfolder_stands_for_its_module(tmp_path: Path, below: str, label: str, paths: list[str]) -> None:
    repo = new_repo(tmp_path / "r", MODULES)
    tree, ref = read_tree(repo.path / below), read_ref(repo.path / below, "main")
    assert sorted(tree.files) == sorted(ref.files) == sorted(paths)
    assert tree.label == label


def test_folder_that_git_ignores_is_a_plain_folder(tmp_path: Path) -> None:
    repo = new_repo(tmp_path / "r", {**BASE, ".gitignore": File(b"/build\n")})
    (repo.path / "build").mkdir()
    (repo.path / "build/x.go").write_bytes(b"package x\n")
    snapshot = read_tree(repo.path / "build")
    assert (list(snapshot.files), snapshot.commit) == (["x.go"], None)


def test_link_to_a_checkout_is_the_checkout(tmp_path: Path) -> None:
    repo = new_repo(tmp_path / "r")
    (tmp_path / "link").symlink_to(repo.path)
    assert dict(read_tree(tmp_path / "link").files) == SOURCES


def test_bare_repository_is_read_at_its_head(tmp_path: Path) -> None:
    repo = new_repo(tmp_path / "r")
    repo.git("clone", "-q", "--bare", ".", str(tmp_path / "bare.git"))
    snapshot = read_tree(tmp_path / "bare.git")
    assert dict(snapshot.files) == SOURCES
    assert (snapshot.source, snapshot.label) == ("ref", "HEAD")
    assert dict(read_tree(repo.path / ".git").files) == SOURCES, "a .git folder too"


def test_linked_work_tree_and_detached_head(tmp_path: Path) -> None:
    repo = new_repo(tmp_path / "r")
    repo.git("worktree", "add", "-q", "--detach", str(tmp_path / "linked"))
    (tmp_path / "linked/main.go").write_bytes(b"package linked\n")
    assert read_tree(tmp_path / "linked").files["main.go"].data == b"package linked\n"
    assert dict(read_ref(tmp_path / "linked", "HEAD").files) == SOURCES


def test_repository_without_a_commit_has_a_tree_and_no_head(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "r")
    (repo.path / "a.go").write_bytes(b"package a\n")
    snapshot = read_tree(repo.path)
    assert (list(snapshot.files), snapshot.commit, snapshot.committed_at) == (["a.go"], None, 0)
    with pytest.raises(EnvironmentFailure, match="no commit yet"):
        read_ref(repo.path, "HEAD")


@pytest.mark.parametrize("name", ["GIT_DIR", "GIT_WORK_TREE"])
def test_git_environment_counts_only_without_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    repo = new_repo(tmp_path / "r")
    other = new_repo(tmp_path / "other", {"go.mod": GO_MOD, "other.go": File(b"package other\n")})
    monkeypatch.chdir(repo.path)
    monkeypatch.setenv(name, str(other.path / ".git" if name == "GIT_DIR" else other.path))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "no-index"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(tmp_path / "no-objects"))
    assert dict(read_tree(repo.path).files) == dict(read_tree(Path()).files) == SOURCES
    assert dict(read_ref(repo.path, "HEAD").files) == SOURCES
    assert "other.go" in read_tree(None).files
    assert "other.go" in read_ref(None, "HEAD").files


def test_hook_reads_the_work_tree_it_runs_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = new_repo(tmp_path / "r")
    repo.git("worktree", "add", "-q", "--detach", str(tmp_path / "linked"))
    (tmp_path / "linked/main.go").write_bytes(b"package linked\n")
    monkeypatch.chdir(tmp_path / "linked")
    monkeypatch.setenv("GIT_DIR", str(repo.path / ".git/worktrees/linked"))
    assert read_tree(None).files["main.go"].data == b"package linked\n"


def test_plain_folder_needs_no_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plain/sub").mkdir(parents=True)
    (tmp_path / "plain/sub/a.go").write_bytes(b"package a\n")
    (tmp_path / "plain/x.txt").write_bytes(b"x")
    (tmp_path / "plain/sub/run.go").write_bytes(b"package a\n")
    (tmp_path / "plain/sub/run.go").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    snapshot = read_tree(tmp_path / "plain")
    assert dict(snapshot.files) == {
        "sub/a.go": File(b"package a\n"),
        "sub/run.go": File(b"package a\n", "100755"),
    }
    assert (snapshot.source, snapshot.label, snapshot.commit, snapshot.committed_at) == ("tree", ".", None, 0)


# --- many refs ----------------------------------------------------------------------------------------


def test_refs_share_what_they_have_in_common_and_one_failure_stops_no_other(tmp_path: Path) -> None:
    repo = new_repo(tmp_path / "r")
    repo.git("tag", "one")
    repo.commit({**BASE, "main.go": File(b"package two\n")})
    repo.git("tag", "two")
    results = dict(read_each(repo.path, ["one", "absent", "two", "-x"]))
    assert list(results) == ["one", "absent", "two", "-x"]
    assert isinstance(results["absent"], EnvironmentFailure)
    assert isinstance(results["-x"], UsageError)
    one, two = results["one"], results["two"]
    assert isinstance(one, Snapshot)
    assert isinstance(two, Snapshot)
    assert one.files["pkg/a/a.go"] is two.files["pkg/a/a.go"]
    assert (one.files["main.go"].data, two.files["main.go"].data) == (BASE["main.go"].data, b"package two\n")


def test_reading_stops_at_the_first_ref_that_fails(tmp_path: Path) -> None:
    repo = new_repo(tmp_path / "r")
    snapshots = read_many(repo.path, ["main", "absent", "main"])
    assert next(snapshots).label == "main"
    with pytest.raises(EnvironmentFailure, match="'absent' is not a commit here"):
        next(snapshots)


def test_more_than_a_pipe_holds_is_read(tmp_path: Path) -> None:
    files = {f"p{n % 9}/f{n}.go": File(b"package p\n" + b"// %d\n" % n * 400) for n in range(400)}
    repo = new_repo(tmp_path / "r", files)
    assert dict(read_ref(repo.path, "HEAD").files) == files


# --- trees where it cannot work -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error", "code", "words"),
    [
        pytest.param(lambda p: p / "absent", UsageError, ExitCode.USAGE, "no such folder", id="no such path"),
        pytest.param(lambda p: p / "file", UsageError, ExitCode.USAGE, "not a folder", id="a file"),
        pytest.param(lambda p: p / "file/x", UsageError, ExitCode.USAGE, "no such folder", id="below a file"),
        pytest.param(lambda p: p / "loop/x", EnvironmentFailure, ExitCode.ENVIRONMENT, "entered", id="loop of links"),
        pytest.param(lambda p: p / "empty", NothingScanned, ExitCode.NOTHING_SCANNED, "no Go file", id="empty folder"),
        pytest.param(lambda p: p / "text", NothingScanned, ExitCode.NOTHING_SCANNED, "no Go file", id="no Go in it"),
        pytest.param(lambda p: p / "mod", NothingScanned, ExitCode.NOTHING_SCANNED, "no Go file", id="only a go.mod"),
    ],
)
def test_path_that_is_no_tree_says_so(tmp_path: Path, make, error, code, words) -> None:
    (tmp_path / "file").write_text("x")
    for name in ("empty", "text", "mod"):
        (tmp_path / name).mkdir()
    (tmp_path / "text/readme.txt").write_text("x")
    (tmp_path / "mod/go.mod").write_text("module m\n")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(error, match=words) as caught:
        read_tree(make(tmp_path))
    assert caught.value.code == code
    assert str(make(tmp_path)) in caught.value.message


@pytest.mark.parametrize("read", [read_tree, lambda path: read_ref(path, "HEAD")], ids=["work tree", "ref"])
def test_repository_without_go_is_nothing_scanned(tmp_path: Path, read) -> None:
    repo = new_repo(tmp_path / "r", {"README.md": BASE["README.md"]})
    with pytest.raises(NothingScanned, match="no Go file"):
        read(repo.path)


def test_ref_needs_a_repository(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain/a.go").write_text("package a\n")
    with pytest.raises(EnvironmentFailure, match="not a git repository"):
        read_ref(tmp_path / "plain", "HEAD")


@pytest.mark.parametrize("where", ["main.go", "pkg", "pkg/a"])
@pytest.mark.parametrize("plain", [True, False], ids=["plain folder", "work tree"])
def test_unreadable_file_or_folder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, plain: bool
) -> None:
    repo = new_repo(tmp_path / "r")
    if plain:
        (repo.path / ".git").rename(tmp_path / "gone")
    refuse(monkeypatch, os.fsencode(repo.path / where))
    with pytest.raises(Unparsable, match=rf"^{where}\S*: .*cannot be read: Permission denied"):
        read_tree(repo.path)


def refuse(monkeypatch: pytest.MonkeyPatch, forbidden: bytes) -> None:
    """Refuse to open, list or look below a path, as the kernel does to everybody but root."""

    def below(path: object) -> bool:
        name = os.fsencode(path) if isinstance(path, str | bytes | os.PathLike) else b""
        return name.rstrip(b"/") == forbidden or name.startswith(forbidden + b"/")

    for function in ("open", "scandir", "lstat"):
        real = getattr(os, function)

        def guarded(path, *args, real=real, **kwargs):
            if below(path) and not (real is os_lstat and os.fsencode(path) == forbidden):
                raise PermissionError(13, "Permission denied", path)
            return real(path, *args, **kwargs)

        monkeypatch.setattr(os, function, guarded)


os_lstat = os.lstat


# --- nothing of the tree is run or changed ------------------------------------------------------------


def test_repository_is_untouched_and_nothing_it_configures_runs(tmp_path: Path) -> None:
    repo = new_repo(tmp_path / "r", {**BASE, ".gitattributes": File(b"*.go filter=evil diff=evil\n")})
    script = tmp_path / "evil"
    script.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\ncat\n")
    script.chmod(0o755)
    for key in ("core.fsmonitor", "filter.evil.clean", "filter.evil.smudge", "diff.evil.textconv", "core.pager"):
        repo.git("config", key, str(script))
    repo.git("config", "core.hooksPath", str(tmp_path))
    (repo.path / "main.go").write_bytes(b"package edited\n")
    before = fingerprint(repo.path)
    read_tree(repo.path)
    list(read_many(repo.path, ["main", "HEAD"]))
    with pytest.raises(EnvironmentFailure):
        read_ref(repo.path, "absent")
    assert fingerprint(repo.path) == before
    assert not (tmp_path / "ran").exists()


def test_graft_says_nothing_of_where_two_refs_parted(tmp_path: Path) -> None:
    repo = new_repo(tmp_path / "r")
    root = repo.git("rev-parse", "HEAD").decode().strip()
    for branch in ("one", "two"):
        repo.git("switch", "-q", "-c", branch, root)
        repo.git("commit", "-q", "--allow-empty", "-m", branch)
    tips = [repo.git("rev-parse", name).decode().strip() for name in ("one", "two")]
    (repo.path / ".git/info").mkdir(exist_ok=True)
    (repo.path / ".git/info/grafts").write_text(f"{tips[1]} {tips[0]}\n")
    assert repo.git("merge-base", *tips).decode().strip() == tips[0], "git by itself believes it"
    assert merge_base(repo.path, "one", "two") == root
    assert read_ref(repo.path, "two~1").commit == root


def test_replacement_objects_and_grafts_have_no_say(tmp_path: Path) -> None:
    repo = new_repo(tmp_path / "r")
    blob = repo.git("hash-object", "-w", "--stdin", stdin=b"package replaced\n").decode().strip()
    repo.git("replace", BASE["main.go"].oid, blob)
    assert read_ref(repo.path, "HEAD").files["main.go"] == BASE["main.go"]


@pytest.mark.parametrize("name", ["..", ".", ".git", ".GIT", "a/b.go"])
def test_name_no_checkout_may_write_is_left_out(tmp_path: Path, name: str) -> None:
    repo = new_repo(tmp_path / "r")
    oid = bytes.fromhex(BASE["main.go"].oid)
    evil = b"".join(b"100644 " + entry.encode() + b"\0" + oid for entry in sorted((name, "main.go")))
    tree = repo.git("hash-object", "-t", "tree", "-w", "--literally", "--stdin", stdin=evil).decode().strip()
    commit = repo.git("commit-tree", "-m", "evil", tree).decode().strip()
    snapshot = read_ref(repo.path, commit)
    assert list(snapshot.files) == ["main.go"]
    assert reasons(snapshot) == {name: "a name that no checkout may write"}


def test_tree_that_names_itself_a_billion_times_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "_MOST_ENTRIES", 20_000)
    repo = new_repo(tmp_path / "r")
    tree = repo.git("mktree", stdin=f"100644 blob {BASE['main.go'].oid}\tmain.go\n".encode()).decode().strip()
    for _ in range(9):
        lines = "".join(f"040000 tree {tree}\tf{n}\n" for n in range(10))
        tree = repo.git("mktree", stdin=lines.encode()).decode().strip()
    commit = repo.git("commit-tree", "-m", "bomb", tree).decode().strip()
    with pytest.raises(ToolError, match="over 20000 entries"):
        read_ref(repo.path, commit)
