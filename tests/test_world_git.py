"""How git is run, and what is said where it cannot answer: each failure with the command that helps, which is then run."""

from __future__ import annotations

import hashlib
import itertools
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from refactor_tool.model import EnvironmentFailure, ExitCode, File, UsageError
from refactor_tool.world.git import Git, check_ref
from refactor_tool.world.place import locate
from refactor_tool.world.tree import read_ref, read_tree
from tests.repo import Repo
from tests.small_trees import BASE, be_nobody, new_repo

SOURCES = {path: file for path, file in BASE.items() if path != "README.md"}


@pytest.fixture(autouse=True)
def _nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    be_nobody(tmp_path, monkeypatch)


def failure(path: Path, ref: str) -> EnvironmentFailure:
    with pytest.raises(EnvironmentFailure) as caught:
        read_ref(path, ref)
    assert caught.value.code == ExitCode.ENVIRONMENT
    assert "\n" not in caught.value.message + caught.value.hint
    return caught.value


def follow(hint: str) -> None:
    """Run the command that a hint ends in, as the user would."""
    command = hint[hint.index("git ") :].partition(", then ")[0]
    env = {
        **os.environ,
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "protocol.file.allow",
        "GIT_CONFIG_VALUE_0": "always",
    }
    subprocess.run(shlex.split(command), check=True, capture_output=True, env=env, timeout=60)


# --- refs ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ref",
    [
        pytest.param("", id="empty"),
        pytest.param("-h", id="short option"),
        pytest.param("--batch-all-objects", id="long option"),
        pytest.param("main\nmain", id="two requests in one"),
        pytest.param("main\0", id="NUL"),
        pytest.param("\x1b[31mmain", id="escape"),
    ],
)
def test_ref_that_is_none_is_a_usage_error(tmp_path: Path, ref: str) -> None:
    repo = new_repo(tmp_path / "r")
    with pytest.raises(UsageError, match="ref"):
        check_ref(ref)
    with pytest.raises(UsageError, match="ref"):
        read_ref(repo.path, ref)


@pytest.mark.parametrize("ref", ["main", "HEAD", "HEAD^0", "refs/heads/main", "v1", "HEAD@{0}", "main^{commit}"])
def test_everything_git_takes_for_a_commit_is_a_ref(tmp_path: Path, ref: str) -> None:
    repo = new_repo(tmp_path / "r")
    repo.git("tag", "-a", "-m", "annotated", "v1")
    assert dict(read_ref(repo.path, ref).files) == SOURCES
    head = repo.git("rev-parse", "HEAD").decode().strip()
    assert read_ref(repo.path, head).commit == read_ref(repo.path, head[:9]).commit == head


@pytest.mark.parametrize(
    ("ref", "hint"),
    [
        pytest.param("release-1.23", "near names: release-1.32", id="misspelt"),
        pytest.param("upstream/release-1.32", "near names: release-1.32", id="other remote"),
        pytest.param("something-else", "for-each-ref", id="nothing like it"),
        pytest.param("beefbeef", "for-each-ref", id="a short id that is not here"),
        pytest.param("a b c", "for-each-ref", id="with spaces"),
        pytest.param("main:go.mod", "for-each-ref", id="a file"),
        pytest.param("HEAD~7", "for-each-ref", id="before the first commit"),
        pytest.param("0123456789abcdef0123456789abcdef01234567", "for-each-ref", id="an id that is not here"),
    ],
)
def test_unknown_ref_names_what_is_near(tmp_path: Path, ref: str, hint: str) -> None:
    repo = new_repo(tmp_path / "r")
    repo.git("branch", "release-1.32")
    error = failure(repo.path, ref)
    assert repr(ref) in error.message
    assert str(repo.path) in error.message
    assert hint in error.hint


def test_tree_is_no_commit(tmp_path: Path) -> None:
    repo = new_repo(tmp_path / "r")
    tree = repo.git("rev-parse", "main^{tree}").decode().strip()
    assert "is not a commit here" in failure(repo.path, tree).message


def test_ambiguous_id_asks_for_more_digits(tmp_path: Path) -> None:
    repo = new_repo(tmp_path / "r")
    tree = repo.git("rev-parse", "main^{tree}")
    seen: dict[str, bytes] = {}
    for number in itertools.count():
        text = b"tree " + tree + b"committer x <x@example.org> %d +0000\n\nx\n" % number
        oid = hashlib.sha1(b"commit %d\0" % len(text) + text).hexdigest()
        if oid[:4] in seen:
            break
        seen[oid[:4]] = text
    for each in (text, seen[oid[:4]]):
        repo.git("hash-object", "-t", "commit", "-w", "--literally", "--stdin", stdin=each)
    error = failure(repo.path, oid[:4])
    assert "more than one object id" in error.message
    assert error.hint == "give more digits"


# --- history and objects that are not here ------------------------------------------------------------


@pytest.fixture
def origin(tmp_path: Path) -> Repo:
    """Return a repository of two commits that serves partial clones."""
    repo = new_repo(tmp_path / "origin")
    repo.commit({**BASE, "main.go": File(b"package second\n")})
    repo.git("branch", "side")
    for key in ("uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"):
        repo.git("config", key, "true")
    return repo


def clone(origin: Repo, into: Path, *options: str) -> Path:
    command = ["git", "-c", "protocol.file.allow=always", "clone", "-q", *options, f"file://{origin.path}", str(into)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return into


def test_shallow_clone_says_how_to_get_the_history(tmp_path: Path, origin: Repo) -> None:
    path = clone(origin, tmp_path / "clone", "--depth=1")
    assert read_ref(path, "HEAD").files["main.go"].data == b"package second\n"
    error = failure(path, "HEAD~1")
    assert "shallow" in error.message
    follow(error.hint)
    assert dict(read_ref(path, "HEAD~1").files) == SOURCES


def test_branch_that_was_not_cloned_says_how_to_fetch_it(tmp_path: Path, origin: Repo) -> None:
    path = clone(origin, tmp_path / "clone", "--depth=1", "--single-branch")
    error = failure(path, "origin/side")
    follow(error.hint)
    assert error.hint.endswith("then name FETCH_HEAD")
    assert read_ref(path, "FETCH_HEAD").files["main.go"].data == b"package second\n"


def test_partial_clone_fetches_nothing_and_says_how_to(tmp_path: Path, origin: Repo) -> None:
    path = clone(origin, tmp_path / "clone", "--filter=blob:none", "--no-checkout")
    before = sorted((path / ".git/objects").rglob("*"))
    error = failure(path, "HEAD")
    assert "partial clone" in error.message
    assert sorted((path / ".git/objects").rglob("*")) == before
    follow(error.hint)
    assert read_ref(path, "HEAD").files["main.go"].data == b"package second\n"


def test_damaged_repository_says_how_to_look(tmp_path: Path) -> None:
    repo = new_repo(tmp_path / "r")
    oid = BASE["pkg/a/a.go"].oid
    (repo.path / ".git/objects" / oid[:2] / oid[2:]).unlink()
    error = failure(repo.path, "HEAD")
    assert "objects are missing" in error.message
    assert "fsck" in error.hint
    assert dict(read_tree(repo.path).files) == SOURCES, "the work tree is still whole"


def test_malformed_commit_is_told(tmp_path: Path) -> None:
    repo = new_repo(tmp_path / "r")
    text = b"tree " + repo.git("rev-parse", "main^{tree}") + b"author x\n\nno committer\n"
    oid = repo.git("hash-object", "-t", "commit", "-w", "--literally", "--stdin", stdin=text).decode().strip()
    assert "malformed" in failure(repo.path, oid).message


def test_sha256_repository_has_trees_but_no_refs_for_us(tmp_path: Path) -> None:
    path = tmp_path / "r"
    path.mkdir()
    run = {"cwd": path, "check": True, "capture_output": True}
    subprocess.run(["git", "init", "-q", "--object-format=sha256"], **run)
    (path / "a.go").write_bytes(b"package a\n")
    subprocess.run(["git", "add", "."], **run)
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run(["git", *identity, "commit", "-q", "-m", "x"], **run)
    assert "SHA-256" in failure(path, "HEAD").message
    snapshot = read_tree(path)
    assert (list(snapshot.files), snapshot.commit) == (["a.go"], None)


def test_repository_of_a_later_git_is_told(tmp_path: Path) -> None:
    repo = new_repo(tmp_path / "r")
    repo.git("config", "core.repositoryFormatVersion", "1")
    repo.git("config", "extensions.fromTheFuture", "true")
    assert "unknown repository extension found: fromthefuture" in failure(repo.path, "HEAD").message


def test_gitfile_that_points_nowhere_is_told(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    (tmp_path / "r/.git").write_text("gitdir: /nowhere/at/all\n")
    error = failure(tmp_path / "r", "HEAD")
    assert "not a git repository: /nowhere/at/all" in error.message


# --- whose git, whose repository ----------------------------------------------------------------------


@pytest.mark.parametrize("read", [read_tree, lambda path: read_ref(path, "HEAD")], ids=["work tree", "ref"])
def test_machine_without_git_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read) -> None:
    repo = new_repo(tmp_path / "r")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentFailure, match="git was not found on PATH") as caught:
        read(repo.path)
    assert caught.value.hint.startswith("install git")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a repository to somebody else")
@pytest.mark.parametrize("bare", [False, True], ids=["work tree", "bare"])
def test_repository_of_somebody_else_is_read_once_the_user_trusts_it(tmp_path: Path, bare: bool) -> None:
    repo = new_repo(tmp_path / "it's mine")
    path = repo.path
    if bare:
        path = tmp_path / "bare.git"
        repo.git("clone", "-q", "--bare", ".", str(path))
    for entry in (path, *path.rglob("*")):
        os.chown(entry, 12345, 12345, follow_symlinks=False)
    with pytest.raises(EnvironmentFailure, match="belongs to another user") as caught:
        read_tree(path)
    assert caught.value.hint == failure(path, "HEAD").hint
    follow(caught.value.hint)
    assert dict(read_tree(path).files) == dict(read_ref(path, "HEAD").files) == SOURCES


def test_git_is_run_with_nothing_of_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = new_repo(tmp_path / "r")
    (tmp_path / "home/.gitconfig").write_text("[core]\n\tpager = false\n\tquotePath = true\n[user]\n\tname = x\n")
    for name, value in {
        "GIT_TRACE": "1",
        "GIT_CONFIG_COUNT": "nonsense",
        "GIT_PAGER": "false",
        "LC_ALL": "tr_TR",
    }.items():
        monkeypatch.setenv(name, value)
    git = Git.at(locate(repo.path))
    reply = git.call("config", "--list", "--show-scope", "-z")
    scopes = set(reply.out.split(b"\0")[:-1:2])
    assert (reply.code, reply.err, scopes) == (0, "", {b"local", b"command"})
    assert git.call("config", "user.name", as_user=True).out == b"", "nonsense in the user's own configuration"
    monkeypatch.delenv("GIT_CONFIG_COUNT")
    assert git.call("config", "user.name", as_user=True).out == b"x\n"


def test_failure_tells_what_git_said(tmp_path: Path) -> None:
    repo = new_repo(tmp_path / "r")
    git = Git.at(locate(repo.path))
    with pytest.raises(EnvironmentFailure, match=r"git ls-tree failed: Not a valid object name nothing$"):
        git.run("ls-tree", "nothing")
    assert "it gave no reason" in git.failure("", "x").message
    assert "warning: odd" in git.failure("warning: odd\n", "x").message


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("exec 0<&-; echo 'fatal: no strength' >&2; sleep 0.5; exit 1", id="hangs up before it is asked"),
        pytest.param("read -r _; echo 'fatal: no strength' >&2; exit 1", id="dies when asked"),
        pytest.param(f"read -r _; echo '{'0' * 40} blob 100'; echo 'fatal: no strength' >&2", id="dies in its answer"),
    ],
)
def test_git_that_dies_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    repo = new_repo(tmp_path / "r")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/git").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "bin/git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    assert failure(repo.path, "HEAD").message == f"{repo.path}: git cat-file failed: no strength"


def test_bare_repository_that_git_is_told_to_refuse_says_so(tmp_path: Path) -> None:
    repo = new_repo(tmp_path / "r")
    error = Git.at(locate(repo.path)).failure(
        "fatal: cannot use bare repository '/x' (safe.bareRepository is 'explicit')\n", "cat-file"
    )
    assert "refuse bare repositories" in error.message
    assert error.hint.endswith("git config --global safe.bareRepository all")
