"""A large tree is read only as far as it can matter, and judged as if all of it had been read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from refactor_tool import engine
from refactor_tool.gosrc.tree import Tree
from refactor_tool.model import EnvironmentFailure, File, FileChange, LazyFiles, Snapshot, Unparsable
from refactor_tool.world import disk, presearch, tree
from refactor_tool.world.disk import Disk
from refactor_tool.world.git import Git
from refactor_tool.world.tree import read_tree
from tests import command
from tests.campaign import fixture
from tests.repo import Repo
from tests.small_trees import be_nobody

PLAIN = "package far\n\nfunc Far(x int) int { return x }\n"


@pytest.fixture(autouse=True)
def _nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    be_nobody(tmp_path, monkeypatch)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let any tree count as large."""
    monkeypatch.setattr(tree, "MANY", -1)


def checkout(path: Path, **more: str) -> Repo:
    """Make a checkout of the fixture with files of a package that has nothing to do with it, and more of them."""
    repo = Repo(path)
    far = {f"pkg/far/{name}.go": text for name, text in {"far": PLAIN, **more}.items()}
    texts = {**fixture(), **{name: text.encode() for name, text in far.items()}}
    repo.commit({name: File(data) for name, data in texts.items()})
    return repo


def read_files(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that grows with each file that is read from now on."""
    seen: list[str] = []
    real = Disk.read

    def read(self: Disk, path: str) -> tuple[bytes, str] | None:
        seen.append(path)
        return real(self, path)

    monkeypatch.setattr(disk.Disk, "read", read)
    return seen


# --- the same answers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["scan", "plan", "check"])
@pytest.mark.parametrize("is_plain_folder", [True, False], ids=["plain folder", "work tree"])
def test_a_large_tree_gives_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, is_plain_folder: bool
) -> None:
    repo = checkout(tmp_path / "r")
    if is_plain_folder:
        (repo.path / ".git").rename(tmp_path / "gone")
    eager = command.run(verb, repo.path, "--format", "json")
    monkeypatch.setattr(tree, "MANY", -1)
    lazy = command.run(verb, repo.path, "--format", "json")
    assert isinstance(read_tree(repo.path).files, LazyFiles)
    assert (lazy.code, lazy.out) == (eager.code, eager.out)
    assert eager.code in (0, 1)


@pytest.mark.usefixtures("small")
def test_a_large_tree_is_applied_and_taken_back(tmp_path: Path) -> None:
    repo = checkout(tmp_path / "r")
    assert command.run("apply", repo.path, "--worktree").code == 0
    assert command.run("plan", repo.path).code == 0
    assert repo.git("status", "--porcelain") != b""
    assert command.run("undo", repo.path).code == 0
    assert repo.git("status", "--porcelain") == b""


@pytest.mark.usefixtures("small")
def test_a_large_tree_below_the_top_of_its_repository(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "r")
    far = {"far/far.go": b"package far\n", "far/site.go": b"package far\n\nvar apiReady = make(chan struct{})\n"}
    beside = {"other/go.mod": b"module example.org/other\n", "other/a.go": b"package other\n\nvar apiReady = 1\n"}
    texts = {f"k3s/{path}": data for path, data in {**fixture(), **far}.items()} | beside
    repo.commit({path: File(data) for path, data in texts.items()})
    out = command.run("scan", repo.path / "k3s").out
    assert b" far/site.go:3" in out
    assert b"other/" not in out


@pytest.mark.usefixtures("small")
def test_what_cannot_matter_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = checkout(tmp_path / "r")
    seen = read_files(monkeypatch)
    command.run("scan", repo.path)
    assert "pkg/util/api.go" in seen
    assert "pkg/far/far.go" not in seen
    assert len(seen) == len(set(seen))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    "text",
    [
        "package far\n\nvar apiReady = make(chan struct{})\n",
        'package far\n\nimport "github.com/k3s-io/k3s/pkg/util"\n\nvar wait = util.WaitForAPIServerReady\n',
        "package far\n\nimport u `github.com/k3s-io/k3s/pkg/util`\n\nvar wait = u.WaitForAPIServerReady\n",
    ],
    ids=["a name of the vocabulary", "a fifth caller", "a fifth caller, quoted otherwise"],
)
def test_a_site_far_away_is_found(tmp_path: Path, text: str) -> None:
    repo = checkout(tmp_path / "r", site=text)
    ran = command.run("check", repo.path)
    assert ran.code == 1
    assert b"pkg/far/site.go:" in ran.out


@pytest.mark.usefixtures("small")
def test_the_rest_of_a_package_that_matters_is_searched(tmp_path: Path) -> None:
    """A file needs no import to use what another file of its package declares."""
    repo = checkout(
        tmp_path / "r",
        kept='package far\n\nimport "github.com/k3s-io/k3s/pkg/util"\n\nvar kept = util.WaitForAPIServerReady\n',
        used='package far\n\nfunc Used() error { return kept(nil, "", 0) }\n',
    )
    files = read_tree(repo.path).files
    assert isinstance(files, LazyFiles)
    assert "pkg/far/used.go" not in files.holding((b"github.com/k3s-io/k3s", b"Ready"))
    assert Tree(read_tree(repo.path)).files_with(b"kept(nil") == ("pkg/far/used.go",)


@pytest.mark.usefixtures("small")
def test_a_comment_to_the_tool_far_away_is_found(tmp_path: Path) -> None:
    repo = checkout(tmp_path / "r", mark="package far\n\n//refactor-tool:ignore\nvar X = 1\n")
    assert b"pkg/far/mark.go" in command.run("check", repo.path).out


@pytest.mark.usefixtures("small")
def test_a_change_after_the_plan_is_seen_in_files_that_were_not_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = checkout(tmp_path / "r")
    (repo.path / "new").mkdir()
    (repo.path / "new/a.go").write_text("package a\n")
    real = engine.plan

    def plan(*args: object, **named: object) -> object:
        made = real(*args, **named)  # type: ignore[arg-type]
        (repo.path / "new/a.go").write_text("package a // changed\n")
        return made

    monkeypatch.setattr(engine, "plan", plan)
    ran = command.run("apply", repo.path, "--worktree")
    assert (ran.code, "new/a.go" in ran.err) == (6, True)


@pytest.mark.usefixtures("small")
def test_a_rule_follows_a_name_through_a_package_of_its_own(tmp_path: Path) -> None:
    wait = (
        "package far\n\nfunc wait(ch chan struct{}) {\n\t<-ch\n}\n\n"
        "func Start() {\n\tready := make(chan struct{})\n\tgo wait(ready)\n}\n"
    )
    repo = checkout(tmp_path / "r", wait=wait)
    assert b"pkg/far/wait.go" in command.run("check", repo.path, "--rules", "all", "--format", "json").out


@pytest.mark.usefixtures("small")
def test_a_rule_sees_the_whole_tree(tmp_path: Path) -> None:
    hazard = 'package far\n\nimport "os"\n\nfunc start() {\n\tgo serve()\n}\n\nfunc serve() {\n\tos.Exit(1)\n}\n'
    repo = checkout(tmp_path / "r", exits=hazard)
    with_rules = command.run("check", repo.path, "--rules", "all", "--format", "json").out
    assert b"pkg/far/exits.go" in with_rules


# --- when git does not know ------------------------------------------------------------------------------


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_what_git_does_not_look_at_is_read(tmp_path: Path, flag: str) -> None:
    repo = checkout(tmp_path / "r")
    repo.git("update-index", flag, "pkg/far/far.go")
    (repo.path / "pkg/far/far.go").write_text("package far\n\nvar apiReady = make(chan struct{})\n")
    assert b"pkg/far/far.go:" in command.run("check", repo.path).out


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    "setting",
    [
        {"color.grep": "always", "color.ui": "always"},
        {"grep.patternType": "perl", "grep.fullName": "true", "grep.lineNumber": "true", "grep.column": "true"},
        {"submodule.recurse": "true", "grep.threads": "8"},
    ],
    ids=["colours", "other output", "submodules"],
)
def test_the_settings_of_a_repository_change_nothing(tmp_path: Path, setting: Mapping[str, str]) -> None:
    repo = checkout(tmp_path / "r", site="package far\n\nvar apiReady = make(chan struct{})\n")
    expected = command.run("scan", repo.path).out
    for name, value in setting.items():
        repo.git("config", name, value)
    assert presearch.search_tracked(Git(repo.path), (b"apiReady",)) is not None
    assert command.run("scan", repo.path).out == expected
    assert b"pkg/far/site.go" in expected


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("ignored", [".gitignore", ".git/info/exclude"])
def test_a_tracked_file_is_searched_though_it_is_ignored(tmp_path: Path, ignored: str) -> None:
    repo = checkout(tmp_path / "r", site="package far\n\nvar apiReady = make(chan struct{})\n")
    (repo.path / ignored).write_text("pkg/far/\n")
    assert b"pkg/far/site.go" in command.run("scan", repo.path).out


@pytest.mark.usefixtures("small")
def test_a_tracked_file_is_searched_beside_a_nested_repository(tmp_path: Path) -> None:
    repo = checkout(tmp_path / "r", site="package far\n\nvar apiReady = make(chan struct{})\n")
    repo.git("init", "-q", "pkg/far")
    assert b"pkg/far/site.go" in command.run("scan", repo.path).out


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("many", [-1, 0, 5], ids=["searched", "searched too", "read"])
def test_untracked_files_are_searched_where_they_are_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    repo = checkout(tmp_path / "r")
    monkeypatch.setattr(tree, "MANY", many)
    (repo.path / "new").mkdir()
    (repo.path / "new/far.go").write_text("package new\n")
    (repo.path / "new/site.go").write_text("package new\n\nvar apiReady = make(chan struct{})\n")
    seen = read_files(monkeypatch)
    assert b"new/site.go" in command.run("scan", repo.path).out
    assert "pkg/far/far.go" not in seen


@pytest.mark.usefixtures("small")
def test_an_untracked_file_is_searched_and_an_ignored_one_is_not(tmp_path: Path) -> None:
    repo = checkout(tmp_path / "r")
    (repo.path / ".gitignore").write_text("build/\n")
    for name in ("new", "build"):
        (repo.path / name).mkdir()
        (repo.path / name / "site.go").write_text("package site\n\nvar apiReady = make(chan struct{})\n")
    out = command.run("scan", repo.path).out
    assert b"new/site.go" in out
    assert b"build/site.go" not in out


@pytest.mark.usefixtures("small")
def test_no_answer_means_that_all_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = checkout(tmp_path / "r")
    expected = command.run("scan", repo.path).out
    real = Git.call

    def call(self: Git, *args: str, **named: object) -> object:
        if "grep" in args:
            raise EnvironmentFailure("git was not found on PATH")
        return real(self, *args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Git, "call", call)
    seen = read_files(monkeypatch)
    assert command.run("scan", repo.path).out == expected
    assert "pkg/far/far.go" in seen


@pytest.mark.usefixtures("small")
def test_a_complaint_of_git_is_no_answer(tmp_path: Path) -> None:
    repo = checkout(tmp_path / "r")
    assert presearch.search_tracked(Git(repo.path), (b"package far",)) == {"pkg/far/far.go"}
    assert presearch.search_folder(repo.path / "nowhere", (b"x",)) is None


@pytest.mark.usefixtures("small")
def test_a_file_that_goes_while_the_tree_is_read(tmp_path: Path) -> None:
    repo = checkout(tmp_path / "r")
    files = read_tree(repo.path).files
    (repo.path / "pkg/util/api.go").unlink()
    with pytest.raises(Unparsable, match=r"^pkg/util/api\.go: it was a file a moment ago"):
        files["pkg/util/api.go"]


@pytest.mark.usefixtures("small")
def test_a_large_tree_that_is_not_k3s_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = Repo(tmp_path / "r")
    repo.commit({"go.mod": File(b"module example.org/m\n"), "a.go": File(b"package a\n"), "b.go": File(b"package a\n")})
    seen = read_files(monkeypatch)
    assert command.run("scan", repo.path).code == 4
    assert seen == ["go.mod"]


# --- files that are read late ----------------------------------------------------------------------------


def lazy(texts: Mapping[str, str], read: list[str]) -> LazyFiles:
    """Return files with these texts; `read` notes each that is read."""

    def one(path: str) -> File:
        read.append(path)
        return File(texts[path].encode())

    return LazyFiles(
        texts, one, lambda words: frozenset(p for p, t in texts.items() if any(w in t.encode() for w in words))
    )


def test_a_file_is_read_once_and_then_kept() -> None:
    read: list[str] = []
    files = lazy({"b": "2", "a": "1"}, read)
    assert (list(files), len(files), "a" in files, "c" in files, files.get("c"), read) == (
        *(["a", "b"], 2, True, False, None),
        [],
    )
    assert files["a"] is files["a"]
    assert read == ["a"]


def test_a_look_at_all_files_keeps_none() -> None:
    read: list[str] = []
    snapshot = Snapshot(lazy({"a": "1", "b": "2"}, read))
    assert [(path, file.data) for path, file in snapshot.looked_through()] == [("a", b"1"), ("b", b"2")]
    assert list(snapshot.held()) == []
    assert dict(snapshot.files) == {"a": File(b"1"), "b": File(b"2")}
    assert len(list(snapshot.held())) == 2


def test_changes_of_files_that_are_read_late() -> None:
    read: list[str] = []
    before = Snapshot(lazy({"a": "x", "b": "x", "c": "y"}, read))
    kept = before.files["a"]
    gone, new = FileChange("b", File(b"x"), None), FileChange("d", None, File(b"x"))
    after = before.with_changes([gone, new])
    assert list(after.files) == ["a", "c", "d"]
    assert after.files["a"] is kept
    assert (after.files.get("b"), after.files["d"].data) == (None, b"x")
    assert before.paths_unlike(after) == after.paths_unlike(before) == {"b", "d"}
    assert [change.path for change in before.changes_to(after)] == ["b", "d"]
    assert isinstance(after.files, LazyFiles)
    assert after.files.holding((b"x",)) == {"a", "d"}
    assert isinstance(before.files, LazyFiles)
    assert before.files.holding((b"x",)) == {"a", "b"}
    again = after.with_changes([FileChange("d", File(b"x"), None), FileChange("b", None, kept)])
    assert (list(again.files), again.paths_unlike(before)) == (["a", "b", "c"], {"b", "d"})
    assert read == ["a", "b"]


def test_where_the_search_cannot_tell_every_file_may_hold_the_words() -> None:
    files = LazyFiles(["a", "b"], lambda path: File(path.encode()), lambda _words: None)
    fewer = files.with_files({"a": None})
    assert (fewer.holding((b"x",)), files.holding((b"x",))) == ({"b"}, {"a", "b"})
