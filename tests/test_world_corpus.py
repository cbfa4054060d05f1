"""Real k3s trees: what is read is what git has, nothing there changes, and what is applied is what `git am` makes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from refactor_tool.model import Snapshot
from refactor_tool.report.series import DEFAULT_AUTHOR, mailbox, message, series
from refactor_tool.world.apply import apply_branch, apply_worktree, undo
from refactor_tool.world.tree import read_each, read_ref, read_tree
from tests.small_trees import fingerprint, plan_of

#: Go files of the tree of the issue (k3s fb870ad).
GO_FILES = 307


def git(repo: Path, *args: str, stdin: bytes = b"") -> bytes:
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    return subprocess.run(["git", "-C", repo, *identity, *args], input=stdin, capture_output=True, check=True).stdout


def ids(repo: Path, ref: str) -> dict[str, tuple[str, str]]:
    """Return path → (mode, id) of the Go files and go.mod, as git lists them."""
    lines = git(repo, "ls-tree", "-r", "-z", ref).decode().split("\0")[:-1]
    split = (line.partition("\t") for line in lines)
    entries = {path: tuple(head.split(" ")) for head, _, path in split}
    return {path: (mode, oid) for path, (mode, _, oid) in entries.items() if path.endswith((".go", "go.mod"))}


def read_ids(snapshot: Snapshot) -> dict[str, tuple[str, str]]:
    return {path: (file.mode, file.oid) for path, file in snapshot.files.items()}


@pytest.fixture
def checkout(corpus: Path, tmp_path: Path) -> Path:
    command = ["git", "-c", "protocol.file.allow=always", "clone", "-q", "--depth=1", "-b", "before/issue"]
    subprocess.run([*command, f"file://{corpus}/k3s.git", tmp_path / "k3s"], check=True, capture_output=True)
    return tmp_path / "k3s"


@pytest.mark.parametrize("repository", ["k3s.git", "rke2.git"])
def test_every_ref_is_read_as_git_has_it_and_nothing_changes(corpus: Path, repository: str) -> None:
    path = corpus / repository
    before = fingerprint(path)
    refs = git(path, "for-each-ref", "--format=%(refname:short)").decode().split()
    assert refs
    for ref, snapshot in read_each(path, refs):
        assert isinstance(snapshot, Snapshot)
        assert read_ids(snapshot) == ids(path, ref)
        assert snapshot.commit == git(path, "rev-parse", ref).decode().strip()
    assert fingerprint(path) == before


def test_tree_of_the_issue_has_all_its_files(corpus: Path) -> None:
    snapshot = read_ref(corpus / "k3s.git", "before/issue")
    assert len(list(snapshot.go_paths())) == GO_FILES
    assert snapshot.commit == json.loads((corpus / "refs.json").read_bytes())["before/issue"]
    assert snapshot.skipped == ()
    assert dict(read_tree(corpus / "k3s.git").files) == dict(snapshot.files), "a bare repository is read at its HEAD"


def test_checkout_is_read_as_the_ref_it_stands_on_and_stays_untouched(corpus: Path, checkout: Path) -> None:
    before = fingerprint(checkout)
    tree, ref = read_tree(checkout), read_ref(corpus / "k3s.git", "before/issue")
    assert dict(tree.files) == dict(ref.files)
    assert (tree.commit, tree.committed_at) == (ref.commit, ref.committed_at)
    assert dict(read_tree(checkout / "pkg/util").files) == dict(ref.files)
    assert fingerprint(checkout) == before


def test_applied_to_a_checkout_and_taken_back(checkout: Path) -> None:
    base = read_tree(checkout)
    paths = ("pkg/util/api.go", "pkg/agent/run.go", "pkg/daemons/executor/embed.go")
    steps = [{path: base.files[path].data + b"\n// A line of ours.\n"} for path in paths]
    plan = plan_of(base, *steps, {"pkg/util/ours.go": b"package util\n"})
    messages = [message(step) for step in plan.steps]

    apply_branch(checkout, plan, "ready", messages=messages, author=DEFAULT_AUTHOR)
    git(checkout, "switch", "-q", "-c", "mailed")
    git(checkout, "am", "-q", stdin=mailbox(series(plan, version="1")))
    assert git(checkout, "rev-parse", "ready^{tree}") == git(checkout, "rev-parse", "mailed^{tree}")
    assert read_ids(read_ref(checkout, "ready")) == read_ids(plan.final) == ids(checkout, "mailed")
    git(checkout, "switch", "-q", "before/issue")
    git(checkout, "branch", "-q", "-D", "mailed")

    apply_worktree(checkout, plan)
    assert dict(read_tree(checkout).files) == dict(plan.final.files)
    undo(checkout)
    undo(checkout)
    assert git(checkout, "status", "--porcelain") == b""
    assert git(checkout, "branch", "--format=%(refname:short)").decode().split() == ["before/issue"]
