"""Output is written whole or not at all, whatever the disk or the user does in the middle."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from refactor_tool.model import Conflict, EnvironmentFailure, ExitCode, UsageError, blob_id
from refactor_tool.world import transaction
from refactor_tool.world.out import write_dir, write_file_atomic
from refactor_tool.world.templates import load_templates
from refactor_tool.world.transaction import Write, replace_files
from tests.faults import each_fault
from tests.small_trees import contents, new_repo

PLAN = b'{"schema": "refactor-tool/1"}\n'
FIRST = {"0000-cover-letter.patch": b"cover\n", "0001-one.patch": b"1\n", "0002-two.patch": b"2\n", "plan.json": PLAN}
SECOND = {"0000-cover-letter.patch": b"new cover\n", "0001-other.patch": b"1\r\n\xff", "plan.json": PLAN + b"\n"}


# --- folders ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", ["absent", "empty", "deep", "dangling link", "link"])
def test_new_folder_holds_just_the_files(tmp_path: Path, start: str) -> None:
    out = tmp_path / ("a/b/out" if start == "deep" else "out")
    if start == "link":
        (tmp_path / "elsewhere").mkdir()
        out.symlink_to("elsewhere")
    if start == "empty":
        out.mkdir()
    if start == "dangling link":
        out.symlink_to("elsewhere")
    write_dir(out, {**FIRST, "sub/x.patch": b"x"}, force=False)
    assert contents(out) == {**FIRST, "sub": None, "sub/x.patch": b"x"}
    assert {path.name for path in tmp_path.iterdir()} <= {"a", "out", "elsewhere"}
    write_dir(out, SECOND, force=False)
    assert contents(out) == {**SECOND, "sub": None, "sub/x.patch": b"x"}


def test_empty_folder_is_filled_and_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tmp_path.chmod(0o750)
    before = tmp_path.stat()
    write_dir(Path(), FIRST, force=False)
    assert contents(Path.cwd()) == FIRST
    assert (tmp_path.stat().st_ino, tmp_path.stat().st_mode) == (before.st_ino, before.st_mode)


def test_folder_behind_a_loop_of_links_is_a_fault_of_the_disk(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(EnvironmentFailure, match="loop/out: cannot be written"):
        write_dir(tmp_path / "loop/out", FIRST, force=False)
    with pytest.raises((EnvironmentFailure, UsageError), match="loop/file: "):
        write_file_atomic(tmp_path / "loop/file", b"x")


def test_files_get_the_modes_the_umask_gives(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        write_dir(tmp_path / "out", FIRST, force=False)
        write_file_atomic(tmp_path / "file", b"x")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o750
    assert stat.S_IMODE((tmp_path / "out/plan.json").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


def test_earlier_output_is_replaced_and_what_is_not_ours_stays(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_dir(out, FIRST, force=False)
    (out / "notes.txt").write_bytes(b"mine\n")
    (out / "plan.json").chmod(0o600)
    write_dir(out, SECOND, force=False)
    assert contents(out) == {**SECOND, "notes.txt": b"mine\n"}
    assert stat.S_IMODE((out / "plan.json").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "there",
    [
        pytest.param({"notes.txt": b"mine\n"}, id="anything"),
        pytest.param({".hidden": b""}, id="a hidden file"),
        pytest.param({"plan.json": b'{"format_version": "1.2"}'}, id="another tool's plan.json"),
    ],
)
def test_folder_of_somebody_else_is_refused_and_kept_even_with_force(tmp_path: Path, there: dict[str, bytes]) -> None:
    for name, data in there.items():
        (tmp_path / name).write_bytes(data)
    with pytest.raises(UsageError, match="not empty, and not an earlier output") as caught:
        write_dir(tmp_path, FIRST, force=False)
    assert "--force" in caught.value.hint
    assert contents(tmp_path) == there
    write_dir(tmp_path, FIRST, force=True)
    assert contents(tmp_path) == there | FIRST


@pytest.mark.parametrize("force", [False, True])
def test_patches_of_somebody_else_are_kept_and_not_handed_to_git_am_with_ours(tmp_path: Path, force: bool) -> None:
    write_dir(tmp_path, told(FIRST), force=False)
    (tmp_path / "0001-mine.patch").write_bytes(b"p\n")
    with pytest.raises(UsageError, match=r"0001-mine\.patch: not of the series, and git am would take it too"):
        write_dir(tmp_path, SECOND, force=force)
    assert contents(tmp_path) == {**told(FIRST), "0001-mine.patch": b"p\n"}


def test_patches_that_were_edited_are_lost_only_with_force(tmp_path: Path) -> None:
    write_dir(tmp_path, told(FIRST), force=False)
    write_dir(tmp_path, told(FIRST), force=False)
    (tmp_path / "0001-one.patch").write_bytes(b"better\n")
    with pytest.raises(UsageError, match=r"0001-one\.patch: edited since it was written") as caught:
        write_dir(tmp_path, SECOND, force=False)
    assert "--force" in caught.value.hint
    assert (tmp_path / "0001-one.patch").read_bytes() == b"better\n"
    write_dir(tmp_path, SECOND, force=True)
    assert contents(tmp_path) == SECOND


@pytest.mark.parametrize("plan_json", [PLAN, b'{"schema": "refactor-tool/1"', PLAN.replace(b"}", b', "patches": [1]}')])
def test_an_output_that_does_not_tell_its_patches_is_replaced(tmp_path: Path, plan_json: bytes) -> None:
    write_dir(tmp_path, {**FIRST, "plan.json": plan_json}, force=False)
    write_dir(tmp_path, SECOND, force=False)
    assert contents(tmp_path) == SECOND


def told(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return the files with a plan.json that tells the patches, as `report.folder` writes it."""
    patches = [{"name": name, "blob": blob_id(data)} for name, data in files.items() if name.endswith(".patch")]
    return {**files, "plan.json": json.dumps({"schema": "refactor-tool/1", "patches": patches}).encode()}


def test_current_folder_may_be_the_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes").write_bytes(b"mine")
    write_dir(Path(), FIRST, force=True)
    assert contents(Path.cwd()) == {**FIRST, "notes": b"mine"}


def test_file_in_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"x")
    with pytest.raises(UsageError, match="a file, not a folder"):
        write_dir(tmp_path / "out", FIRST, force=True)
    with pytest.raises(EnvironmentFailure, match="cannot be written"):
        write_dir(tmp_path / "out/below", FIRST, force=True)
    assert contents(tmp_path) == {"out": b"x"}


@pytest.mark.parametrize("where", [".git", ".git/out", ".git/hooks", "bare.git", "bare.git/out", "link/out"])
@pytest.mark.parametrize(
    "write",
    [
        pytest.param(lambda where: write_dir(where, FIRST, force=True), id="folder"),
        pytest.param(lambda where: write_file_atomic(where / "file", b"x"), id="file"),
    ],
)
def test_nothing_is_written_into_a_repository_itself(tmp_path: Path, where: str, write) -> None:
    repo = new_repo(tmp_path / "r")
    repo.git("clone", "-q", "--bare", ".", "bare.git")
    (repo.path / "link").symlink_to(".git")
    before = contents(tmp_path), sorted((repo.path / ".git").rglob("*"))
    with pytest.raises(UsageError, match="git repository's own files"):
        write(repo.path / where)
    assert (contents(tmp_path), sorted((repo.path / ".git").rglob("*"))) == before


def test_output_may_lie_in_a_checkout_where_the_user_named_it(tmp_path: Path) -> None:
    repo = new_repo(tmp_path / "r")
    write_dir(repo.path / "series", FIRST, force=False)
    assert contents(repo.path / "series") == FIRST


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x", "", "a//b", "./x"])
def test_name_that_leads_out_is_a_bug(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="not a path below"):
        replace_files(tmp_path, {"ok": Write(b""), name: Write(b"x")})
    assert contents(tmp_path) == {}


# --- files --------------------------------------------------------------------------------------------


def test_file_is_replaced_through_a_link_and_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "real").chmod(0o640)
    (tmp_path / "link").symlink_to("real")
    write_file_atomic(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "real").stat().st_mode) == 0o640
    write_file_atomic(tmp_path / "fresh", b"x")
    assert contents(tmp_path) == {"real": b"new", "link": b"new", "fresh": b"x"}


def test_device_stays_a_device() -> None:
    write_file_atomic(Path(os.devnull), b"gone")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_pipe_gets_the_bytes(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    write_file_atomic(tmp_path / "pipe", b"data")
    reader.join(10)
    assert got == [b"data"]


@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="no names for open descriptors here")
@pytest.mark.parametrize("name", ["/dev/fd/{}", "link"])
def test_descriptor_gets_the_bytes_where_it_stands(tmp_path: Path, name: str) -> None:
    with (tmp_path / "log").open("ab+", buffering=0) as log:
        log.write(b"before\n")
        (tmp_path / "link").symlink_to(f"/dev/fd/{log.fileno()}")
        write_file_atomic(tmp_path / name.format(log.fileno()), b"data\n")
        log.write(b"after\n")
    assert (tmp_path / "log").read_bytes() == b"before\ndata\nafter\n"


def test_descriptor_of_a_pipe_gets_the_bytes() -> None:
    reader, writer = os.pipe()
    write_file_atomic(Path(f"/dev/fd/{writer}"), b"data")
    os.close(writer)
    with open(reader, "rb") as pipe:
        assert pipe.read() == b"data"


@pytest.mark.parametrize(("name", "words"), [("", "a folder"), ("absent/file", "there is no folder")])
def test_file_that_cannot_be_is_a_usage_error(tmp_path: Path, name: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        write_file_atomic(tmp_path / name, b"x")
    assert contents(tmp_path) == {}


# --- all or nothing -----------------------------------------------------------------------------------


@pytest.mark.parametrize("earlier", [False, True], ids=["new folder", "earlier output"])
def test_fault_at_any_call_leaves_all_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, earlier: bool) -> None:
    out = tmp_path / "new/out" if not earlier else tmp_path / "out"
    if earlier:
        write_dir(out, {**FIRST, "sub/x": b"x"}, force=False)
    before = contents(tmp_path)

    def check(what: str) -> None:
        assert contents(tmp_path) == before, what

    calls = each_fault(monkeypatch, lambda: write_dir(out, {**SECOND, "sub/new/x": b"y"}, force=False), check)
    assert calls > 15
    after = {**SECOND, "sub": None, "sub/new": None, "sub/new/x": b"y"}
    assert contents(out) == (after | {"sub/x": b"x"} if earlier else after)


def test_fault_in_the_single_file_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"old")

    def check(what: str) -> None:
        assert contents(tmp_path) == {"file": b"old"}, what

    each_fault(monkeypatch, lambda: write_file_atomic(tmp_path / "file", b"new"), check)
    assert contents(tmp_path) == {"file": b"new"}


def test_disk_full_says_so_and_what_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(EnvironmentFailure, match=r"cannot be written: No space left on device") as caught:
        write_dir(tmp_path / "out", FIRST, force=False)
    assert caught.value.code == ExitCode.ENVIRONMENT
    assert caught.value.hint == "nothing was changed"


def test_disk_without_hard_links_serves_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    out = tmp_path / "out"
    write_dir(out, FIRST, force=False)
    before = contents(tmp_path)

    def check(what: str) -> None:
        assert contents(tmp_path) == before, what

    def back() -> None:
        write_dir(out, FIRST, force=False)

    each_fault(monkeypatch, lambda: write_dir(out, SECOND, force=False), check, survived=back)
    assert contents(tmp_path / "out") == SECOND


def test_file_that_cannot_be_put_back_is_kept_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"old a")
    (tmp_path / "b").write_bytes(b"old b")
    real, calls = os.replace, []

    def replace(old: Path, new: Path) -> None:
        calls.append(new)
        if len(calls) > 1:
            raise OSError(5, "Input/output error", str(new))
        real(old, new)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(EnvironmentFailure, match="cannot be put back") as caught:
        replace_files(tmp_path, {"a": Write(b"new a"), "b": Write(b"new b")})
    kept = Path(caught.value.hint.rpartition(" ")[2])
    assert sorted(path.read_bytes() for path in kept.glob("*.old")) == [b"old a", b"old b"]


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "in/link").symlink_to("../out")
    with pytest.raises(Conflict, match=r"link/x: link is a symbolic link"):
        replace_files(tmp_path / "in", {"first": Write(b"1"), "link/x": Write(b"x")})
    assert contents(tmp_path) == {"in": None, "in/link": None, "out": None}


def test_execute_bits_follow_the_read_bits(tmp_path: Path) -> None:
    for name, mode in (("keep", 0o750), ("on", 0o640), ("off", 0o755)):
        (tmp_path / name).write_bytes(b"")
        (tmp_path / name).chmod(mode)
    writes = {"keep": Write(b"1"), "on": Write(b"1", True), "off": Write(b"1", False), "new": Write(b"1", True)}
    replace_files(tmp_path, writes)
    modes = {name: stat.S_IMODE((tmp_path / name).stat().st_mode) for name in writes}
    assert (modes["keep"], modes["on"], modes["off"], modes["new"] & 0o100) == (0o750, 0o750, 0o644, 0o100)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_signal_in_the_middle_is_heeded_when_it_is_safe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    real = transaction._write_synced
    handler = signal.getsignal(number)

    def write_and_signal(*args) -> None:
        real(*args)
        os.kill(os.getpid(), number)

    monkeypatch.setattr(transaction, "_write_synced", write_and_signal)
    with pytest.raises(KeyboardInterrupt):
        write_dir(tmp_path / "out", FIRST, force=False)
    assert contents(tmp_path) == {}
    assert signal.getsignal(number) == handler


def test_other_threads_may_write(tmp_path: Path) -> None:
    thread = threading.Thread(target=write_dir, args=(tmp_path / "out", FIRST), kwargs={"force": False})
    thread.start()
    thread.join(30)
    assert contents(tmp_path / "out") == FIRST


def test_interrupted_process_leaves_nothing(tmp_path: Path) -> None:
    script = (
        "import sys, pathlib\nfrom refactor_tool.world.out import write_dir\n"
        "big = dict.fromkeys((f'{n:05}-x.patch' for n in range(20000)), b'x')\n"
        "print('go', flush=True)\nwrite_dir(pathlib.Path(sys.argv[1]), big, force=False)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "out")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=Path(__file__).parents[1],
    )
    assert child.stdout is not None
    child.stdout.readline()
    deadline = time.monotonic() + 30
    while not any(tmp_path.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert child.returncode != 0
    assert b"KeyboardInterrupt" in err
    assert list(tmp_path.iterdir()) == []


# --- templates ----------------------------------------------------------------------------------------


def test_templates_are_those_of_the_checkout() -> None:
    folder = Path(__file__).resolve().parents[1] / "templates"
    wanted = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.j2"))
    loaded = load_templates()
    assert list(loaded) == wanted
    assert all(loaded[name].encode() == (folder / name).read_bytes() for name in wanted)


def test_installation_without_templates_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from refactor_tool.world import templates

    (tmp_path / "pkg/world").mkdir(parents=True)
    monkeypatch.setattr(templates, "__file__", str(tmp_path / "pkg/world/templates.py"))
    with pytest.raises(EnvironmentFailure, match="installation is incomplete"):
        load_templates()
    (tmp_path / "pkg/templates/a").mkdir(parents=True)
    (tmp_path / "pkg/templates/a/x.go.j2").write_bytes(b"line\r\n")
    (tmp_path / "pkg/templates/a/notes.md").write_bytes(b"")
    assert load_templates() == {"a/x.go.j2": "line\r\n"}
