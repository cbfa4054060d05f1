"""Trees and surroundings that nobody plans for, through the command line: one clear line, the right code, nothing half-written."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from refactor_tool.codemods import SUITE
from refactor_tool.model import ExitCode, File
from tests import trees
from tests.command import FIXTURE, ROOT, Ran, run
from tests.repo import Repo
from tests.small_trees import contents, fingerprint

API = "pkg/util/api.go"
IDS = [codemod.id for codemod in SUITE]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a copy of the fixture, in no repository."""
    return shutil.copytree(FIXTURE, tmp_path / "k3s")


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """Return a repository that holds the fixture."""
    made = Repo(tmp_path / "r")
    made.commit(trees.before())
    return made


def patches(folder: Path) -> list[Path]:
    """Return the numbered patches of an output folder, without the cover letter."""
    return [path for path in sorted(folder.glob("*.patch")) if not path.name.startswith("0000-")]


def steps(ran: Ran) -> list[str]:
    return [step["id"] for step in json.loads(ran.out)["steps"]]


def change(where: Path, path: str, old: str, new: str) -> None:
    text = (where / path).read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{text.count(old)} times in {path}: {old!r}"
    (where / path).write_text(text.replace(old, new), encoding="utf-8")


# --- trees where it cannot work -----------------------------------------------------------------------


def _of(**files: str) -> Callable[[Path], Path]:
    def make(tmp_path: Path) -> Path:
        folder = tmp_path / "odd"
        folder.mkdir()
        for name, text in files.items():
            path = folder / f"{name.replace('__', '/')}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return folder

    return make


GO_MOD = {"go.mod": "module example.org/m\n\ngo 1.23\n"}


@pytest.mark.parametrize("command", ["scan", "plan", "check"])
@pytest.mark.parametrize(
    ("make", "code", "words"),
    [
        pytest.param(_of(), 4, "no Go file is there", id="an empty folder"),
        pytest.param(_of(**{"a.txt": "package a\n"}), 4, "no Go file is there", id="no Go tree"),
        pytest.param(_of(**{"a.go": "package a\n"}), 4, "no go.mod with a module line", id="no module"),
        pytest.param(_of(**{"go.mod": "go 1.23\n", "a.go": "package a\n"}), 4, "no go.mod", id="a module with no name"),
        pytest.param(_of(**GO_MOD, **{"a.go": "package a\n"}), 4, "this is not k3s", id="another module"),
        pytest.param(lambda tmp_path: tmp_path / "gone", 2, "no such folder", id="no such path"),
        pytest.param(lambda _: FIXTURE / "go.mod", 2, "not a folder", id="a file"),
    ],
)
def test_a_path_with_nothing_to_move_says_so(
    tmp_path: Path, command: str, make: Callable[[Path], Path], code: int, words: str
) -> None:
    where = make(tmp_path)
    before = fingerprint(tmp_path)
    ran = run(command, where, cwd=tmp_path)

    assert ran.code == code
    assert words in ran.err + ran.out.decode()
    assert "Traceback" not in ran.err
    assert fingerprint(tmp_path) == before


def test_a_k3s_without_the_wait_says_that_it_is_too_old(tree: Path) -> None:
    (tree / API).unlink()
    ran = run("plan", tree)

    assert ran.code == ExitCode.NOTHING_SCANNED
    assert "pkg/util does not declare WaitForAPIServerReady" in ran.err
    assert not ran.out


@pytest.mark.parametrize("command", ["scan", "plan", "check", "apply"])
def test_an_unknown_ref_or_no_repository_is_the_surroundings_fault(tree: Path, repo: Repo, command: str) -> None:
    ref = [] if command == "apply" else ["--ref", "nobody/knows"]
    here = run(command, tree, *ref)
    ran = run(command, repo.path, *ref) if ref else here

    assert {here.code, ran.code} == {ExitCode.ENVIRONMENT}
    assert "not a git repository" in here.err + here.out.decode()
    assert "'nobody/knows'" in ran.err + ran.out.decode() if ref else True


@pytest.mark.parametrize(
    ("spoil", "line", "what"),
    [
        pytest.param(
            lambda data: data.replace(b"func WaitForAPIServerReady(", b"func WaitForAPIServerReady(("),
            ":48",
            "does not parse as Go: unexpected 'ctx'",
            id="does not parse",
        ),
        pytest.param(
            lambda data: data.replace(b"\trestClient, err", b"<<<<<<< HEAD\n\trestClient, err"),
            ":66",
            "does not parse as Go: unexpected '<<<<<<<'",
            id="a merge that is not done",
        ),
        pytest.param(
            lambda data: data.replace(b"asks for /readyz", b"asks f\xfcr /readyz"),
            ":46",
            "not UTF-8 text",
            id="another encoding in a comment",
        ),
        pytest.param(
            lambda data: data.replace(b"no good answer", b"no g\xf6\xf6d answer"),
            ":75",
            "not UTF-8 text",
            id="another encoding in a string",
        ),
        pytest.param(
            lambda data: data.decode().encode("utf-16"), "", "not UTF-8 text: it holds a NUL byte", id="UTF-16"
        ),
    ],
)
def test_a_target_that_is_not_go_is_named_with_what_is_wrong(
    tree: Path, tmp_path: Path, spoil: Callable[[bytes], bytes], line: str, what: str
) -> None:
    (tree / API).write_bytes(spoil((tree / API).read_bytes()))
    for command in (["scan", tree], ["plan", tree, "--out", tmp_path / "series"], ["check", tree]):
        ran = run(*command)
        assert ran.code == ExitCode.UNPARSABLE
        assert re.search(rf"{API}{line}(:\d+)?: {re.escape(what)}", ran.err + ran.out.decode())
    assert not (tmp_path / "series").exists()


def test_a_target_that_may_not_be_read_is_named(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = os.open

    def refuse(path: str | bytes, *args: int, **more: int) -> int:
        if os.fsencode(path).endswith(b"api.go"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return opened(path, *args, **more)

    monkeypatch.setattr(os, "open", refuse)
    ran = run("plan", tree, "--out", tmp_path / "series")

    assert ran.code == ExitCode.UNPARSABLE
    assert f"{API}: cannot be read: Permission denied" in ran.err
    assert not (tmp_path / "series").exists()


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"package version func\n", id="does not parse"),
        pytest.param(b"package version // \xff\xfe\n", id="not UTF-8"),
        pytest.param(b"\0\1\2", id="binary"),
        pytest.param(b"", id="empty"),
    ],
)
def test_another_file_that_is_not_go_changes_nothing(tree: Path, data: bytes) -> None:
    clean = run("plan", tree, "--stdout")
    (tree / "pkg/version/more.go").write_bytes(data)
    ran = run("plan", tree, "--stdout")

    assert (ran.code, ran.out) == (ExitCode.FINDINGS, clean.out)


def test_a_link_that_leaves_the_tree_is_named_and_never_followed(tree: Path, tmp_path: Path) -> None:
    clean = run("plan", tree, "--stdout")
    (tmp_path / "secret.go").write_bytes(b"package util\n\nvar _ = APIServerReady\n")
    (tree / "pkg/util/more.go").symlink_to(tmp_path / "secret.go")

    assert run("plan", tree, "--stdout").out == clean.out
    ran = run("plan", tree)
    assert "not read pkg/util/more.go: a symbolic link that leaves the tree" in ran.out.decode()
    assert json.loads(run("plan", tree, "--format", "json").out)["skipped"] == [
        {"path": "pkg/util/more.go", "reason": "a symbolic link that leaves the tree"}
    ]


def test_a_target_that_is_a_link_is_the_reason_why_nothing_is_found(tree: Path, tmp_path: Path) -> None:
    (tree / API).rename(tmp_path / "api.go")
    (tree / API).symlink_to(tmp_path / "api.go")
    ran = run("plan", tree)

    assert ran.code == ExitCode.NOTHING_SCANNED
    assert "pkg/util does not declare WaitForAPIServerReady" in ran.err
    assert f"{API} was not read: a symbolic link that leaves the tree" in ran.err


def test_a_file_name_with_a_newline_goes_through_the_mail(tmp_path: Path, repo: Repo) -> None:
    (repo.path / "pkg/agent/run.go").rename(repo.path / "pkg/agent/ru\nn.go")
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", "rename")
    out = tmp_path / "series"

    assert run("plan", repo.path, "--out", out).code == ExitCode.FINDINGS
    repo.git("am", *map(str, patches(out)))
    done = run("plan", repo.path)
    assert done.code == ExitCode.CLEAN
    assert "nothing to do" in done.out.decode()


# --- trees that are half way there --------------------------------------------------------------------


def test_a_site_of_an_unknown_shape_is_shown_and_nothing_is_emitted(tree: Path, tmp_path: Path) -> None:
    change(tree, "pkg/agent/tunnel/tunnel.go", 'logrus.Fatalf("No apiserver for the tunnel: %v", err)', "giveUp(err)")
    ran = run("plan", tree, "--out", tmp_path / "series")
    text = ran.out.decode()

    assert ran.code == ExitCode.FINDINGS
    assert patches(tmp_path / "series") == []
    assert "no series" in text
    assert "not in the series  apiserver-ready: needs a hand, see below" in text
    (said,) = [line for line in text.splitlines() if line.startswith("  pkg/agent/tunnel/tunnel.go:59 ")]
    assert "if err := util.WaitForAPIServerReady(ctx, config.AgentConfig.KubeConfigKubelet, " in said
    assert "wait with util.WaitReady for executor.APIServerReadyChan()" in said
    assert text.splitlines()[-1].startswith("next: do what is named above and plan again")


def test_what_is_sound_can_be_had_and_says_what_is_missing(tree: Path, tmp_path: Path) -> None:
    change(tree, "pkg/agent/tunnel/tunnel.go", 'logrus.Fatalf("No apiserver for the tunnel: %v", err)', "giveUp(err)")
    out = tmp_path / "series"
    ran = run("plan", tree, "--out", out, "--keep-going")
    letter = (out / "0000-cover-letter.patch").read_text(encoding="utf-8")

    assert ran.code == ExitCode.FINDINGS
    assert len(patches(out)) == 3
    assert "[PARTIAL]" in letter
    assert "- apiserver-ready: needs a hand, see below" in letter
    assert "- etcd-ready: needs apiserver-ready, which is not in the series" in " ".join(letter.split())


def test_after_each_patch_the_rest_is_planned_and_the_end_is_the_same(tmp_path: Path, repo: Repo) -> None:
    out = tmp_path / "series"
    assert steps(run("plan", repo.path, "--out", out, "--format", "json")) == IDS
    for at, patch in enumerate(patches(out), start=1):
        repo.git("am", str(patch))
        rest = tmp_path / f"rest{at}"
        ran = run("plan", repo.path, "--out", rest, "--format", "json")
        assert steps(ran) == IDS[at:]
        assert ran.code == (ExitCode.FINDINGS if IDS[at:] else ExitCode.CLEAN)
        repo.git("branch", f"after{at}")
        for later in patches(rest):
            repo.git("am", str(later))
        repo.git("branch", f"end{at}")
        repo.git("reset", "-q", "--hard", f"after{at}")
    assert len({repo.git("rev-parse", f"end{at}^{{tree}}") for at in range(1, len(IDS) + 1)}) == 1


def test_the_end_of_the_campaign_has_nothing_to_do(repo: Repo) -> None:
    assert run("apply", repo.path).code == ExitCode.CLEAN
    for command in ("plan", "scan", "check"):
        ran = run(command, repo.path, "--ref", "executor-ready")
        assert ran.code == ExitCode.CLEAN
    assert "7 commits" not in run("plan", repo.path, "--ref", "executor-ready").out.decode()
    before = fingerprint(repo.path)
    assert run("plan", repo.path, "--ref", "executor-ready", "--stdout").out == b""
    assert fingerprint(repo.path) == before


# --- what is asked for, and where it goes -------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        pytest.param(["--only", "cri-ready"], ["executor-ready-channels", "cri-ready"], id="one and what it needs"),
        pytest.param(["--only", IDS[0], "--only", "cri-ready"], [*IDS[:2], "cri-ready"], id="two"),
        pytest.param(["--skip", "etcd-ready"], [name for name in IDS if name != "etcd-ready"], id="all but one"),
        pytest.param(["--skip", "executor-ready-channels"], IDS[:1], id="all but what needs it"),
    ],
)
def test_a_part_of_the_campaign_is_planned_and_the_rest_is_named(
    tree: Path, options: list[str], wanted: list[str]
) -> None:
    ran = run("plan", tree, *options, "--format", "json")

    assert ran.code == ExitCode.FINDINGS
    assert steps(ran) == wanted
    assert [item["id"] for item in json.loads(ran.out)["pending"]] == [name for name in IDS if name not in wanted]


def test_an_unknown_codemod_is_a_usage_error_that_names_those_there_are(tree: Path) -> None:
    ran = run("plan", tree, "--only", "cri")

    assert ran.code == ExitCode.USAGE
    assert "there is no codemod 'cri'" in ran.err
    assert ", ".join(IDS) in ran.err


def test_a_folder_that_is_not_empty_is_kept(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "mine"
    out.mkdir()
    (out / "notes.txt").write_text("mine\n", encoding="utf-8")
    ran = run("plan", tree, "--out", out)

    assert ran.code == ExitCode.USAGE
    assert "not empty" in ran.err
    assert contents(out) == {"notes.txt": b"mine\n"}
    assert not ran.out


def test_a_disk_that_is_full_leaves_no_folder(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    ran = run("plan", tree, "--out", tmp_path / "out" / "series")

    assert ran.code == ExitCode.ENVIRONMENT
    assert "No space left on device" in ran.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["k3s"]


@pytest.mark.parametrize("delay", [0.0, 0.1, 0.2, 0.3, 0.5, 0.8])
def test_an_interrupt_leaves_the_whole_folder_or_none(tree: Path, tmp_path: Path, delay: float) -> None:
    out = tmp_path / "out" / "series"
    command = [sys.executable, "-m", "refactor_tool", "plan", str(tree), "--out", str(out)]
    child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(delay)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)

    if child.returncode == ExitCode.FINDINGS:  # it was done before it was interrupted
        assert len(patches(out)) == len(IDS)
    else:
        assert child.returncode in (ExitCode.INTERRUPTED, -signal.SIGINT), err.decode()
        is_done = err.decode().endswith(f"interrupted; the series is in {out}\n")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["k3s", *(["out"] if is_done else [])]
        assert not is_done or len(patches(out)) == len(IDS)


def test_the_same_bytes_whatever_surrounds_it(repo: Repo, tmp_path: Path) -> None:
    surroundings: Iterator[tuple[Path, dict[str, str]]] = iter(
        (
            (tmp_path, {"PYTHONHASHSEED": "1", "LC_ALL": "C", "TZ": "UTC"}),
            (repo.path, {"PYTHONHASHSEED": "2", "LC_ALL": "C.UTF-8", "TZ": "Asia/Tokyo", "NO_COLOR": "1"}),
            (Path("/"), {"PYTHONHASHSEED": "3", "LANG": "tr_TR.UTF-8", "COLUMNS": "40", "PYTHONUTF8": "0"}),
        )
    )
    made = []
    for at, (cwd, env) in enumerate(surroundings):
        out = tmp_path / f"series{at}"
        kept = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(ROOT), **env}
        command = [sys.executable, "-m", "refactor_tool", "plan", str(repo.path), "--out", str(out)]
        ran = subprocess.run(command, cwd=cwd, env=kept, capture_output=True, check=False)
        assert ran.returncode == ExitCode.FINDINGS, ran.stderr.decode()
        assert b"\x1b" not in ran.stdout
        made.append(contents(out))
    assert made[0] == made[1] == made[2]
    assert len(made[0]) == len(IDS) + 3


def test_a_tree_with_odd_bytes_in_a_target_keeps_them(repo: Repo, tmp_path: Path) -> None:
    text = trees.before()[API].data
    marked = b"\xef\xbb\xbf" + text.replace(
        b"// WaitForAPIServerReady asks", b"// \xe2\x80\xa8\x0cWaitForAPIServerReady asks"
    )
    repo.commit(trees.before() | {API: File(marked)})

    assert run("plan", repo.path, "--out", tmp_path / "series").code == ExitCode.FINDINGS
    repo.git("am", *map(str, patches(tmp_path / "series")))
    after = (repo.path / API).read_bytes()
    assert after.startswith(b"\xef\xbb\xbfpackage util\n")
    assert b"// \xe2\x80\xa8\x0cWaitForAPIServerReady asks" in after


@pytest.mark.parametrize("ref", [(), ("--ref", "main")], ids=["work tree", "ref"])
def test_the_next_command_knows_a_module_below_the_top(repo: Repo, tmp_path: Path, ref: tuple[str, ...]) -> None:
    repo.commit({f"k3s/{path}": file for path, file in trees.before().items()})
    ran = run("plan", repo.path / "k3s", *ref, "--out", tmp_path / "series")
    assert "am --directory=k3s " in ran.last
    repo.git("am", "--directory=k3s", *map(str, patches(tmp_path / "series")))
    assert run("plan", repo.path / "k3s").code == ExitCode.CLEAN


def test_a_module_path_that_is_not_utf8(repo: Repo) -> None:
    repo.commit(trees.before() | {"go.mod": File(b"module github.com/\xff/k3s\n\ngo 1.23\n")})
    ran = run("scan", repo.path)
    assert ran.code == ExitCode.NOTHING_SCANNED
    assert "internal error" not in ran.err
