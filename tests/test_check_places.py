"""Where people keep a tree: each kind of repository gives the very same answer, or says the command that helps."""

from __future__ import annotations

import html
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from refactor_tool.model import File
from tests import trees
from tests.command import ROOT, Ran, run
from tests.repo import Repo
from tests.test_check import EXTRA, fifth


def told(ran: Ran) -> Any:
    """Return the findings of a JSON document, and the decision without the name of its place."""
    document = json.loads(ran.out)
    return document["findings"], document["gate"]["results"], document["summary"], document["gate"]["line"]


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """Return a clone-like repository of two commits: the migrated tree, then a wait that somebody added."""
    repo = Repo(tmp_path / "origin")
    repo.commit(trees.after())
    repo.commit(fifth(), "add a wait")
    return repo


@pytest.fixture
def wanted(repo: Repo) -> Any:
    ran = run("check", "--format", "json", repo.path)
    assert ran.code == 1
    return told(ran)


@dataclass(frozen=True)
class Place:
    """A way to have the tree: what to do, the arguments and the environment that go with it."""

    path: Path
    args: tuple[str, ...] = ()
    cwd: Path | None = None
    env: dict[str, str] = field(default_factory=dict)
    typed: bool = True


def clone(repo: Repo, *args: str) -> Path:
    where = repo.path.parent / "clone"
    repo.git("clone", "-q", *args, repo.path.as_uri(), str(where))
    return where


def sparse(repo: Repo) -> Place:
    where = clone(repo)
    repo.git("-C", str(where), "sparse-checkout", "set", "--no-cone", "/go.mod", "/pkg/util/")
    assert not (where / EXTRA).exists()
    return Place(where)


def partial(repo: Repo) -> Place:
    repo.git("config", "uploadpack.allowFilter", "true")
    return Place(clone(repo, "--filter=blob:none"))


def linked_worktree(repo: Repo) -> Place:
    where = repo.path.parent / "linked"
    repo.git("worktree", "add", "-q", "--detach", str(where))
    return Place(where)


def submodule(repo: Repo) -> Place:
    outer = Repo(repo.path.parent / "outer")
    outer.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", repo.path.as_uri(), "k3s")
    outer.git("commit", "-q", "-m", "x")
    return Place(outer.path / "k3s")


def detached(repo: Repo) -> Place:
    repo.git("checkout", "-q", "--detach")
    return Place(repo.path)


def merge_ref(repo: Repo) -> Place:
    """Check out what GitHub tests: a merge of base and head that no branch has, at depth 1."""
    repo.git("checkout", "-q", "-b", "pull", "HEAD~1")
    repo.git("commit", "-q", "--allow-empty", "-m", "elsewhere")
    repo.git("checkout", "-q", "--detach", "main")
    repo.git("merge", "-q", "--no-ff", "-m", "merge", "pull")
    repo.git("update-ref", "refs/pull/1/merge", "HEAD")
    repo.git("checkout", "-q", "main")
    where = Repo(repo.path.parent / "runner")
    where.git("fetch", "-q", "--depth=1", repo.path.as_uri(), "+refs/pull/1/merge:refs/remotes/pull/1/merge")
    where.git("checkout", "-q", "--detach", "refs/remotes/pull/1/merge")
    return Place(where.path)


def git_dir(repo: Repo) -> Place:
    where = repo.path.parent / "elsewhere"
    where.mkdir()
    env = {"GIT_DIR": str(repo.path / ".git"), "GIT_WORK_TREE": str(repo.path)}
    return Place(repo.path, cwd=where, env=env, typed=False)


def hook(repo: Repo) -> Place:
    """Run as a hook does: git sets GIT_DIR and GIT_INDEX_FILE, relative to the top."""
    return Place(repo.path, cwd=repo.path, env={"GIT_DIR": ".git", "GIT_INDEX_FILE": ".git/index"}, typed=False)


def foreign(repo: Repo) -> Place:
    """Give the repository to somebody else and trust it, as a CI container does."""
    own(repo.path)
    home = repo.path.parent / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(f"[safe]\n\tdirectory = {repo.path}\n")
    return Place(repo.path, env={"HOME": str(home)})


def own(path: Path, user: int = 12345) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    subprocess.run(["chown", "-R", str(user), path], check=True)


def crlf(repo: Repo) -> Place:
    """Clone with line ends that no snapshot may take over: the index says what the tree is."""
    return Place(clone(repo, "-c", "core.autocrlf=true"), ("--staged",))


PLACES: dict[str, Callable[[Repo], Place]] = {
    "work tree": lambda repo: Place(repo.path),
    "folder below": lambda repo: Place(repo.path / "pkg/util"),
    "current folder": lambda repo: Place(repo.path, cwd=repo.path, typed=False),
    "current folder below": lambda repo: Place(repo.path, cwd=repo.path / "pkg", typed=False),
    "branch": lambda repo: Place(repo.path, ("--ref", "main")),
    "index": lambda repo: Place(repo.path, ("--staged",)),
    "bare repository": lambda repo: Place(clone(repo, "--bare")),
    "mirror": lambda repo: Place(clone(repo, "--mirror"), ("--ref", "main")),
    "shallow clone": lambda repo: Place(clone(repo, "--depth=1")),
    "sparse checkout": sparse,
    "partial clone": partial,
    "linked work tree": linked_worktree,
    "submodule": submodule,
    "detached head": detached,
    "merge ref at depth 1": merge_ref,
    "GIT_DIR and GIT_WORK_TREE": git_dir,
    "hook": hook,
    "somebody else's, trusted": foreign,
    "converted line ends": crlf,
}


@pytest.mark.parametrize("make", PLACES.values(), ids=PLACES)
def test_every_place_gives_the_same_answer(make: Callable[[Repo], Place], repo: Repo, wanted: Any) -> None:
    place = make(repo)
    path = (str(place.path),) if place.typed else ()
    ran = run("check", "--format", "json", *place.args, *path, cwd=place.cwd, env=place.env)
    assert ran.code == 1, ran
    assert told(ran) == wanted


def test_plain_folder_needs_no_git(repo: Repo, wanted: Any, tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    repo.git("checkout-index", "-a", f"--prefix={folder}/")
    ran = run("check", "--format", "json", folder, env={"PATH": "/nonexistent"})
    assert told(ran) == wanted


# --- places that cannot answer ------------------------------------------------------------------------


def helping(ran: Ran) -> list[str]:
    """Return the words of the command that the line offers, after its last colon in parentheses."""
    assert ran.last.endswith(")"), ran.last
    return shlex.split(ran.last[:-1].rpartition("(")[2].rpartition(": ")[2])


def test_shallow_clone_without_the_base_says_what_to_fetch_and_that_helps(repo: Repo) -> None:
    where = clone(repo, "--depth=1")
    ran = run("check", where, "--base", "HEAD~1")
    assert ran.code == 3 and "shallow" in ran.last
    words = helping(ran)
    assert words[:3] == ["git", "-C", str(where)]
    repo.git(*words[1:])
    again = run("check", where, "--base", "HEAD~1")
    assert again.code == 1 and again.last.startswith("failed (exit 1): 1 finding at or above error")


def test_base_branch_that_was_not_fetched_says_what_to_fetch_and_that_helps(repo: Repo) -> None:
    repo.git("branch", "release", "HEAD~1")
    where = clone(repo, "--depth=1", "--single-branch")
    ran = run("check", where, "--base", "origin/release")
    assert ran.code == 3
    command, _, base = ran.last[:-1].rpartition("(")[2].rpartition(": ")[2].partition(", then name ")
    assert base == "FETCH_HEAD"
    repo.git(*shlex.split(command)[1:])
    assert run("check", where, "--base", base).code == 1


def test_where_a_shallow_clone_and_its_base_parted_is_cut_off(repo: Repo) -> None:
    repo.git("checkout", "-q", "-b", "side", "HEAD~1")
    repo.git("commit", "-q", "--allow-empty", "-m", "x")
    repo.git("checkout", "-q", "main")
    where = clone(repo, "--depth=1", "--no-single-branch")
    ran = run("check", where, "--base", "origin/side...")
    assert ran.code == 3 and "cut off (a shallow clone)" in ran.last
    repo.git(*helping(ran)[1:])
    again = run("check", where, "--base", "origin/side...")
    assert again.code == 1 and "1 finding at or above error" in again.last


def test_repository_of_somebody_else_says_how_to_trust_it(repo: Repo) -> None:
    own(repo.path)
    ran = run("check", repo.path, "--ref", "main", env={"HOME": str(repo.path.parent)})
    assert ran.code == 3
    assert helping(ran) == ["git", "config", "--global", "--add", "safe.directory", str(repo.path)]


def test_bare_repository_has_no_index(repo: Repo) -> None:
    ran = run("check", clone(repo, "--bare"), "--staged")
    assert ran.code == 2 and "nothing is staged" in ran.last


def test_repository_without_a_commit_has_no_ref(tmp_path: Path) -> None:
    empty = Repo(tmp_path / "empty")
    ran = run("check", empty.path, "--ref", "HEAD")
    assert (ran.code, "no commit yet" in ran.last) == (3, True)


def test_partial_clone_without_the_files_of_a_base_says_how_to_fetch_them(repo: Repo) -> None:
    repo.git("config", "uploadpack.allowFilter", "true")
    repo.commit(trees.edited(fifth(), "pkg/util/client.go", "package util", "package util\n\n// more"), "third")
    where = clone(repo, "--filter=blob:none")
    ran = run("check", where, "--base", "HEAD~1")
    assert ran.code == 3 and "partial clone" in ran.last
    repo.git(*helping(ran)[1:])
    again = run("check", where, "--base", "HEAD~1")
    assert again.code == 0 and "there before" in again.last


# --- the index ----------------------------------------------------------------------------------------


def test_commit_of_everything_is_judged_by_its_own_index(repo: Repo) -> None:
    """`git commit -a` lets its hook see another index than the repository's; so does `git commit PATH`."""
    repo.commit(trees.after(), "back")
    script = repo.path / ".git/hooks/pre-commit"
    script.write_text('#!/bin/sh\nprintf "%s" "$GIT_INDEX_FILE" >.git/seen\nexit 1\n')
    script.chmod(0o755)
    (repo.path / "pkg/agent/tunnel/tunnel.go").write_bytes(trees.before()["pkg/agent/tunnel/tunnel.go"].data)
    assert repo.run("commit", "-a", "-q", "-m", "x").returncode == 1
    index = (repo.path / ".git/seen").read_text()
    assert run("check", "--staged", repo.path).code == 0, "nothing is in the repository's index"
    script.write_text(f"#!/bin/sh\ncp {index} .git/kept\nexit 1\n")
    repo.run("commit", "-a", "-q", "-m", "x")
    ran = run("check", "--staged", cwd=repo.path, env={"GIT_DIR": ".git", "GIT_INDEX_FILE": ".git/kept"})
    assert ran.code == 1 and "apiserver-ready" in ran.last


@pytest.mark.parametrize("index", ["absolute", "relative"])
@pytest.mark.parametrize("where", ["beside", "below"])
def test_index_of_another_repository_has_no_say(repo: Repo, index: str, where: str) -> None:
    outer = Repo(repo.path.parent / "outer")
    outer.commit(trees.after())
    inner = repo.path if where == "beside" else outer.path / "inner"
    if where == "below":
        repo.git("clone", "-q", repo.path.as_uri(), str(inner))
    for top in (outer.path, inner):
        (top / ".git/other").write_bytes((outer.path / ".git/index").read_bytes())
    name = ".git/other" if index == "relative" else str(outer.path / ".git/other")
    wanted = run("check", "--staged", inner)
    assert wanted.code == 1
    assert run("check", "--staged", inner, cwd=outer.path, env={"GIT_INDEX_FILE": name}) == wanted
    assert run("check", "--staged", outer.path, cwd=inner, env={"GIT_INDEX_FILE": name}).code == 0


@pytest.mark.parametrize("args", [("-a",), ("pkg/agent/tunnel/tunnel.go",)], ids=["all", "one file"])
@pytest.mark.parametrize("kind", ["clone", "linked"])
def test_hook_judges_the_index_of_its_commit(repo: Repo, args: tuple[str, ...], kind: str) -> None:
    repo.commit(trees.after(), "back")
    where = linked_worktree(repo).path if kind == "linked" else repo.path
    seen = repo.path / ".git/seen"
    script = repo.path / ".git/hooks/pre-commit"
    for at in (".", "pkg"):
        script.write_text(
            f"#!/bin/sh\ncd {at}; {sys.executable} -m refactor_tool check --staged . >{seen} 2>&1\necho $? >>{seen}\nexit 1\n"
        )
        script.chmod(0o755)
        (where / "pkg/agent/tunnel/tunnel.go").write_bytes(trees.before()["pkg/agent/tunnel/tunnel.go"].data)
        env = {**os.environ, "PYTHONPATH": str(ROOT), "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b"}
        env |= {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
        subprocess.run(
            ["git", "-C", where, "commit", "-q", "-m", "x", *args], env=env, check=False, capture_output=True
        )
        assert seen.read_text().endswith("\n1\n") and "apiserver-ready" in seen.read_text(), seen.read_text()


def test_work_tree_has_no_say_in_what_is_staged(repo: Repo) -> None:
    (repo.path / EXTRA).unlink()
    (repo.path / "pkg/util/api.go").write_text("not Go")
    assert run("check", repo.path).code != 1
    assert run("check", "--staged", repo.path).last.startswith("failed (exit 1): 1 finding")


def test_configuration_and_baseline_come_from_the_tree_that_is_judged(repo: Repo) -> None:
    baseline = repo.path / "accepted.jsonl"
    assert run("check", repo.path, "--baseline", baseline, "--write-baseline").code == 0
    (repo.path / ".refactor-tool.toml").write_text('baseline = "accepted.jsonl"\n')
    repo.git("add", "-A")
    assert " in the baseline;" in run("check", repo.path).last
    assert " in the baseline;" in run("check", repo.path, "--staged").last
    assert run("check", repo.path, "--ref", "main").code == 1, "the commit has neither"
    repo.git("commit", "-q", "-m", "accept")
    baseline.unlink()
    assert " in the baseline;" in run("check", repo.path, "--ref", "main").last
    assert " in the baseline;" in run("check", clone(repo, "--bare")).last
    ran = run("check", repo.path)
    assert ran.code == 2 and "there is no such baseline" in ran.last


def test_configuration_counts_from_a_folder_below(repo: Repo) -> None:
    (repo.path / ".refactor-tool.toml").write_text('fail-on = "never"\n')
    assert run("check", repo.path / "pkg/util").code == 0
    (repo.path / "pkg/.refactor-tool.toml").write_text('fail-on = "error"\n')
    assert run("check", repo.path / "pkg/util").code == 1


@pytest.mark.parametrize("args", [(), ("--staged",), ("--ref", "main")], ids=["work tree", "index", "branch"])
def test_configuration_through_a_link_is_refused_wherever_it_is_read(repo: Repo, args: tuple[str, ...]) -> None:
    (repo.path / "real.toml").write_text('fail-on = "never"\n')
    (repo.path / ".refactor-tool.toml").symlink_to("real.toml")
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", "link")
    ran = run("check", repo.path, *args)
    assert (ran.code, "not a regular file" in ran.last) == (2, True)


@pytest.mark.parametrize("name", ["0:mod", "two\nlines", "-x", "a*", "mod\udcff"])
@pytest.mark.parametrize("args", [(), ("--staged",), ("--ref", "main")], ids=["work tree", "index", "branch"])
def test_configuration_of_a_folder_with_an_odd_name_is_its_own(
    tmp_path: Path, name: str, args: tuple[str, ...]
) -> None:
    top = Repo(tmp_path / "top")
    files = {f"{name}/{path}": file for path, file in fifth().items()}
    files |= {f"{name}/.refactor-tool.toml": File(b'fail-on = "never"\n')}
    files |= {f"{other}/.refactor-tool.toml": File(b"fail-on = 1\n") for other in ("mod", "ab")}
    top.commit(files)
    assert run("check", *args, cwd=top.path / name).code == 0


@pytest.mark.parametrize("name", ["ci.toml", "pyproject.toml"])
def test_named_configuration_has_its_baseline_beside_it(repo: Repo, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "ci/gate"
    folder.mkdir(parents=True)
    table = "[tool.refactor-tool]\n" if name == "pyproject.toml" else ""
    (folder / name).write_text(f'{table}baseline = "sub/accepted"\n')
    ran = run("check", repo.path, "--config", f"ci/gate/{name}", cwd=tmp_path)
    assert ran.code == 2 and "ci/gate/sub/accepted: there is no such baseline" in ran.last
    (folder / "sub").mkdir()
    assert run(*shlex.split(ran.last[:-1].rpartition("refactor-tool ")[2]), cwd=tmp_path).code == 0
    for args in ((), ("--ref", "main")):
        for file in (f"ci/gate/{name}", folder / name):
            ran = run("check", repo.path, *args, "--config", file, cwd=tmp_path)
            assert ran.code == 0 and "in the baseline" in ran.last


@pytest.mark.parametrize("args", [(), ("--staged",), ("--ref", "main")], ids=["work tree", "index", "branch"])
def test_services_are_told_files_from_the_top_of_the_repository(args: tuple[str, ...], tmp_path: Path) -> None:
    top = Repo(tmp_path / "top")
    top.commit({f"forks/k3s/{name}": data for name, data in (trees.after() | fifth()).items()})
    formats = ("github", "github-summary", "sarif", "gitlab", "checkstyle", "rdjson", "markdown")
    wanted = [f"--format={name}={tmp_path / name}" for name in formats]
    assert run("check", *wanted, *args, top.path / "forks/k3s").code == 1
    for name in formats:
        told = html.unescape((tmp_path / name).read_text(encoding="utf-8"))
        assert f"forks/k3s/{EXTRA}" in told and EXTRA not in told.replace(f"forks/k3s/{EXTRA}", ""), name


def test_services_are_told_where_a_file_does_not_parse(tmp_path: Path) -> None:
    top = Repo(tmp_path / "top")
    broken = trees.edited(trees.before(), "pkg/util/api.go", "return err\n", "return err }}\n")
    top.commit({f"forks/k3s/{name}": data for name, data in broken.items()})
    ran = run("check", "--format=github", f"--format=sarif={tmp_path / 'sarif'}", top.path / "forks/k3s")
    assert ran.code == 5
    (line,) = [line for line in ran.out.decode().splitlines() if ",line=" in line]
    assert line.startswith("::error file=forks/k3s/pkg/util/api.go,line=") and "does not parse as Go" in line
    told = json.loads((tmp_path / "sarif").read_text(encoding="utf-8"))["runs"][0]["invocations"][0]
    (note,) = told["toolExecutionNotifications"]
    assert note["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "forks/k3s/pkg/util/api.go"
