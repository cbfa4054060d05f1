"""`verify` as a person or a CI job calls it: what each level catches, what it says of it, and what it never does."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from refactor_tool import engine
from refactor_tool.codemods import SUITE
from refactor_tool.model import File
from refactor_tool.verify import stages, types
from refactor_tool.world import gotool
from refactor_tool.world.templates import load_templates
from refactor_tool.world.tree import read_tree
from tests import trees
from tests.command import FIXTURE, Ran, run
from tests.repo import Repo
from tests.small_trees import fingerprint

K3S = "github.com/k3s-io/k3s"
Verify = Callable[..., Ran]


@pytest.fixture
def verify(go_cache: Path) -> Verify:
    """Return what runs the command with a cache that is kept between tests."""

    def call(*args: str | Path, env: dict[str, str] | None = None) -> Ran:
        return run("verify", *args, env={"XDG_CACHE_HOME": str(go_cache), **(env or {})})

    return call


@pytest.fixture
def no_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the test a machine with git and without Go."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "git").symlink_to(shutil.which("git") or "/nowhere")
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setattr("importlib.metadata.distribution", _nothing_installed)


def _nothing_installed(name: str) -> None:
    from importlib.metadata import PackageNotFoundError

    raise PackageNotFoundError(name)


def repo_of(path: Path, *commits: trees.Files) -> Path:
    repo = Repo(path)
    for files in commits:
        repo.commit(files)
    return repo.path


def small(**files: str) -> trees.Files:
    """Return a module of two packages that needs nothing; `a__x_test` is the file `a/x_test.go`."""
    texts = {
        "go.mod": "module example.com/m\n\ngo 1.21\n",
        "a/a.go": "package a\n\nfunc One() int {\n\treturn 1\n}\n",
        "b/b.go": 'package b\n\nimport "example.com/m/a"\n\nfunc Two() int {\n\treturn a.One() + a.One()\n}\n',
    }
    texts |= {f"{name.replace('__', '/')}.go": text for name, text in files.items()}
    return {path: File(text.encode()) for path, text in texts.items()}


def document(ran: Ran) -> Any:
    return json.loads(ran.out)


def status(ran: Ran) -> dict[str, str]:
    return {level["level"]: level["status"] for level in document(ran)["levels"]}


# --- without a toolchain --------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_go")
@pytest.mark.parametrize("level", [pytest.param((), id="by default"), ("--level", "types"), ("--level", "build")])
def test_without_go_a_wanted_level_is_not_verified_and_says_what_to_install(
    verify: Verify, tmp_path: Path, level: tuple[str, ...]
) -> None:
    ran = verify(repo_of(tmp_path / "r", trees.before()), *level)
    assert ran.code == 3
    assert b"not verified: there is no Go toolchain; pip install 'refactor-tool[verify]' brings Go" in ran.out
    assert ran.last.startswith("not verified: level")


@pytest.mark.usefixtures("no_go")
def test_without_go_level_syntax_is_proven(verify: Verify, tmp_path: Path) -> None:
    ran = verify(repo_of(tmp_path / "r", trees.before()), "--level", "syntax", "--format", "json")
    assert ran.code == 0
    assert status(ran) == {
        "syntax": "ok",
        "types": "not verified",
        "build": "not verified",
        "behaviour": "not verified",
    }
    assert document(ran)["summary"] == {"wanted": "syntax", "reached": "syntax", "errors": 0, "exit_code": 0}


def test_go_that_is_too_old_or_broken_is_no_toolchain(verify: Verify, tmp_path: Path, no_go: None) -> None:
    where = repo_of(tmp_path / "r", trees.before())
    go = tmp_path / "programs" / "go"
    for answer, says in (
        ('{"GOVERSION": "go1.20.1", "GOROOT": "/", "GOHOSTOS": "linux", "GOHOSTARCH": "amd64"}', b"is too old"),
        ("nonsense", b"is no Go toolchain that works"),
    ):
        go.write_text(f"#!/bin/sh\necho '{answer}'\n")
        go.chmod(0o755)
        ran = verify(where)
        assert (ran.code, says in ran.out) == (3, True), ran.out


def test_cache_that_others_may_write_into_is_refused(verify: Verify, go: gotool.Go, tmp_path: Path) -> None:
    cache = tmp_path / "cache" / "refactor-tool"
    cache.mkdir(parents=True)
    cache.chmod(0o777)
    ran = verify(repo_of(tmp_path / "r", trees.before()), env={"XDG_CACHE_HOME": str(cache.parent)})
    assert ran.code == 3
    assert b"others may write into it" in ran.out


# --- what is asked ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "says"),
    [
        pytest.param(("--as-is", "--base", "HEAD"), "--base and --as-is ask for different things", id="two subjects"),
        pytest.param(("--level", "behaviour"), "runs code of the examined tree", id="tests without leave"),
        pytest.param(("--level", "build", "--run-tests"), "--run-tests goes beyond --level build", id="tests too soon"),
        pytest.param(("--series", "nowhere"), "nowhere: no such folder or mailbox", id="no series"),
        pytest.param(("--series", "."), "no patch is there", id="folder without patches"),
    ],
)
def test_request_that_makes_no_sense_is_refused(
    verify: Verify, tmp_path: Path, args: tuple[str, ...], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = repo_of(tmp_path / "r", trees.before())
    monkeypatch.chdir(tmp_path)
    ran = verify(where, *args)
    assert (ran.code, ran.out) == (2, b"")
    assert says in ran.err


def test_series_that_cannot_be_made_is_not_verified_and_keeps_its_code(verify: Verify, tmp_path: Path) -> None:
    broken = trees.without(trees.before(), "pkg/agent/tunnel/tunnel.go")
    where = repo_of(tmp_path / "r", broken)
    ran = verify(where, "--level", "syntax")
    assert ran.code == run("plan", where).code != 0
    assert ran.last.startswith("not verified: there is no series")


def test_done_campaign_has_nothing_to_verify(verify: Verify, tmp_path: Path) -> None:
    ran = verify(repo_of(tmp_path / "r", trees.after()))
    assert (ran.code, ran.last) == (0, "nothing to verify: nothing changes")


def test_same_input_same_document(verify: Verify, go: gotool.Go, tmp_path: Path) -> None:
    where = repo_of(tmp_path / "r", small(), small(b__c="package b\n\nvar x int = a.One()\n"))
    first, second = (verify(where, "--base", "HEAD~1", "--format", "json") for _ in range(2))
    assert (first.code, first.out) == (1, second.out)


# --- the known bad changes ----------------------------------------------------------------------------------

EMBED, ETCD, RUN = "pkg/daemons/executor/embed.go", "pkg/daemons/executor/etcd.go", "pkg/agent/run.go"
CONTROL = "pkg/daemons/control/server.go"


def bad(path: str, old: str, new: str) -> Callable[[], trees.Files]:
    return lambda: trees.edited(trees.after(), path, old, new)


@pytest.mark.parametrize(
    ("change", "level", "place", "says"),
    [
        pytest.param(
            bad(RUN, "executor.CRI(ctx, nodeConfig); err", "executor.CRIReadyChan(); err"),
            "types",
            f"{RUN}:",
            "missing method Error",
            id="call expression alone replaced",
        ),
        pytest.param(
            bad(ETCD, ") CRIReadyChan()", ") Ready()"), "types", f"{EMBED}:", "CRIReadyChan", id="missing method"
        ),
        pytest.param(
            bad("pkg/util/api.go", "import (\n", 'import (\n\t"bufio"\n'),
            "syntax",
            "pkg/util/api.go:4:",
            "import 'bufio' is not used",
            id="unused import",
        ),
        pytest.param(
            bad(EMBED, "if err := util.NotifyAPIServerReady", "err := util.NotifyAPIServerReady"),
            "syntax",
            f"{EMBED}:",
            "does not parse",
            id="half of a statement",
        ),
        pytest.param(
            bad(
                ETCD,
                "if err := startETCD(ctx, args, extraArgs); err != nil {\n\t\t\treturn err\n\t\t}",
                "err := startETCD(ctx, args, extraArgs)",
            ),
            "types",
            f"{ETCD}:47:3:",
            "declared and not used: err",
            id="dropped error branch",
        ),
        pytest.param(
            bad("pkg/util/api.go", '\tpkgerrors "', f'\t_ "{K3S}/pkg/daemons/executor"\n\tpkgerrors "'),
            "syntax",
            "pkg/util/api.go",
            "import cycle",
            id="import cycle",
        ),
    ],
)
def test_known_bad_change_is_caught_by_the_cheapest_level(
    verify: Verify, go: gotool.Go, tmp_path: Path, change: Callable[[], trees.Files], level: str, place: str, says: str
) -> None:
    where = repo_of(tmp_path / "r", trees.after(), change())
    ran = verify(where, "--base", "HEAD~1", "--format", "json")
    assert ran.code == 1
    failed = [each for each in document(ran)["levels"] if each["status"] == "failed"]
    assert [each["level"] for each in failed] == [level]
    (checked,) = [each for each in document(ran)["steps"][0]["levels"] if each["status"] == "failed"]
    told = [f"{error['path']}:{error['line']}:{error['column']}: {error['message']}" for error in checked["errors"]]
    assert any(line.startswith(place) and says in line for line in told), told


def errors_of_types(ran: Ran) -> list[dict[str, Any]]:
    (step,) = document(ran)["steps"]
    (checked,) = [each for each in step["levels"] if each["level"] == "types"]
    errors: list[dict[str, Any]] = checked["errors"]
    return errors


def test_break_on_windows_is_told_of_windows_alone(verify: Verify, go: gotool.Go, tmp_path: Path) -> None:
    change = bad("pkg/daemons/executor/embed_windows.go", "func ", "func renamed")
    errors = errors_of_types(
        verify(repo_of(tmp_path / "r", trees.after(), change()), "--base", "HEAD~1", "--format", "json")
    )
    assert (EMBED, True) in {(error["path"], "undefined" in error["message"]) for error in errors}
    assert {config for error in errors for config in error["configs"]} == {"windows"}


def test_mock_without_a_method_is_told_where_it_is_declared_and_used(
    verify: Verify, go: gotool.Go, tmp_path: Path
) -> None:
    mock, method = (
        "tests/mock/executor.go",
        "func (e *Executor) CRIReadyChan() <-chan struct{} {\n\treturn e.CRIReady.Chan()\n}\n",
    )
    where = repo_of(tmp_path / "r", trees.after(), bad(mock, method, "")())
    errors = errors_of_types(verify(where, "--base", "HEAD~1", "--format", "json"))
    assert all("(missing method CRIReadyChan)" in error["message"] for error in errors)
    told = {error["path"]: (error["function"], error["configs"]) for error in errors}
    everywhere = ["linux", "windows", "no_embedded_executor", "no_cri_dockerd"]
    assert told[mock] == ("var _", everywhere)
    assert told["tests/unit.go"] == ("GenerateRuntime", everywhere)


@pytest.mark.parametrize(
    ("change", "place", "rule"),
    [
        pytest.param(
            lambda: trees.edited(
                bad(CONTROL, "\n\t\tclose(nodeReady)\n", "")(),
                CONTROL,
                "\tgo func() {\n\tapiReadyLoop:",
                "\tgo func() {\n\t\tdefer close(nodeReady)\n\tapiReadyLoop:",
            ),
            f"{CONTROL}:",
            "L02",
            id="closed on error",
        ),
        pytest.param(
            bad(
                RUN,
                "\tif err := executor.CRI(ctx, nodeConfig); err != nil {\n\t\treturn err\n\t}\n\n\tif err := tunnel",
                "\texecutor.CRI(ctx, nodeConfig)\n\n\tif err := tunnel",
            ),
            f"{RUN}:",
            "L09",
            id="error branch dropped with the error",
        ),
    ],
)
def test_series_with_a_hazard_is_caught_without_a_toolchain(
    verify: Verify, tmp_path: Path, change: Callable[[], trees.Files], place: str, rule: str
) -> None:
    where = repo_of(tmp_path / "r", trees.after(), change())
    Repo.git(_at(where), "format-patch", "-q", "-o", str(tmp_path / "series"), "HEAD~1")
    ran = verify(where, "--ref", "HEAD~1", "--series", tmp_path / "series", "--level", "syntax", "--format", "json")
    assert ran.code == 1
    errors = document(ran)["steps"][0]["levels"][0]["errors"]
    assert [error["code"] for error in errors] == [rule], errors
    assert errors[0]["path"] + ":" == place


def _at(path: Path) -> Repo:
    repo = object.__new__(Repo)
    repo.path = path
    return repo


# --- who made it --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "old", "new", "step", "path"),
    [
        pytest.param(
            "executor-ready-channels/cri.go.j2",
            "(ctx, cfg.ContainerRuntimeEndpoint, ",
            "(ctx, cfg.Nowhere, ",
            "executor-ready-channels",
            EMBED,
            id="inserted text",
        ),
        pytest.param(
            "executor-ready-channels/ready.go.j2",
            "r.ch = make(",
            "r.nowhere = make(",
            "executor-ready-channels",
            "pkg/util/ready.go",
            id="new file",
        ),
    ],
)
def test_error_names_codemod_site_and_template(
    go: gotool.Go,
    go_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    template: str,
    old: str,
    new: str,
    step: str,
    path: str,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(go_cache))
    sources = load_templates()
    assert old in sources[template]
    plan = engine.plan(read_tree(FIXTURE), SUITE, {**sources, template: sources[template].replace(old, new)})
    cut = stages.of_plan(plan)
    with gotool.asking(gotool.checker(go), types.request(K3S, cut, str(go.goroot))) as answer:
        found = types.read(answer(100), K3S, cut)
    failed = {stage.id: checked.faults for stage, checked in zip(cut, found, strict=True) if checked.faults}
    assert list(failed) == [step]
    origins = [fault.origin for fault in failed[step] if fault.path == path]
    assert origins
    assert {(one.codemod, one.template) for one in origins if one is not None} == {(step, template)}


def test_text_names_the_place_and_who_made_it(verify: Verify, go: gotool.Go, tmp_path: Path) -> None:
    where = repo_of(tmp_path / "r", trees.before())
    out = tmp_path / "series"
    assert run("plan", where, "--out", out).code == 1
    patch = next(out.glob("0002-*.patch"))
    patch.write_bytes(
        patch.read_bytes().replace(
            b'+	if cfg.ContainerRuntimeEndpoint == "/dev/null"', b'+	if cfg.Nowhere == "/dev/null"'
        )
    )
    ran = verify(where, "--series", out)
    text = ran.out.decode()
    assert ran.code == 1
    assert f"{EMBED}:" in text
    assert "cfg.Nowhere undefined" in text
    assert f"made by executor-ready-channels at {EMBED}:" in text
    assert "2 executor-ready-channels" in text


def test_series_folder_is_verified_as_the_plan_is(verify: Verify, go: gotool.Go, tmp_path: Path) -> None:
    where = repo_of(tmp_path / "r", trees.before())
    before = fingerprint(where)
    assert run("plan", where, "--out", tmp_path / "series").code == 1
    planned = verify(where, "--format", "json")
    applied = verify(where, "--series", tmp_path / "series", "--format", "json")
    assert (planned.code, applied.code) == (0, 0)
    assert planned.out == applied.out
    assert fingerprint(where) == before, "the examined checkout is left alone"


def test_patch_that_does_not_apply_is_a_conflict(verify: Verify, tmp_path: Path) -> None:
    where = repo_of(tmp_path / "r", trees.before(), trees.after())
    assert run("plan", where, "--ref", "HEAD~1", "--out", tmp_path / "series").code == 1
    ran = verify(where, "--series", tmp_path / "series")
    assert ran.code == 6
    assert "0001-" in ran.err
    assert "does not apply" in ran.err


def test_uncommitted_work_is_verified(verify: Verify, go: gotool.Go, tmp_path: Path) -> None:
    where = repo_of(tmp_path / "r", small())
    (where / "b/b.go").write_text('package b\n\nimport "example.com/m/a"\n\nvar Two = a.Three()\n')
    ran = verify(where, "--base", "HEAD")
    assert ran.code == 1
    assert b"b/b.go:5:13: types: change in var Two: undefined: a.Three" in ran.out


def test_mailbox_is_verified_on_a_folder_without_git(verify: Verify, go: gotool.Go, tmp_path: Path) -> None:
    where = repo_of(tmp_path / "r", trees.before())
    (tmp_path / "box").write_bytes(run("plan", where, "--stdout").out)
    shutil.rmtree(where / ".git")
    ran = verify(where, "--series", tmp_path / "box")
    assert (ran.code, ran.last) == (0, f"verified at level types: {len(SUITE)} steps, no new error")


# --- build and behaviour --------------------------------------------------------------------------------------

TEST = 'package a\n\nimport "testing"\n\nfunc TestOne(t *testing.T) {\n\tif One() != %d {\n\t\tt.Errorf("got %%d", One())\n\t}\n}\n'


def test_build_passes_and_says_in_which_configurations(verify: Verify, go: gotool.Go, tmp_path: Path) -> None:
    where = repo_of(tmp_path / "r", small(), small(a__w_windows="package a\n\nvar W = 1\n"))
    ran = verify(where, "--base", "HEAD~1", "--level", "build", "--format", "json")
    assert ran.code == 0, ran.out
    (built,) = [each for each in document(ran)["steps"][0]["levels"] if each["level"] == "build"]
    assert built["configs"] == ["windows"], "no other configuration selects what changed"


def test_build_sees_what_types_do_not(verify: Verify, go: gotool.Go, tmp_path: Path) -> None:
    lost = 'package a\n\nimport "fmt"\n\nfunc Say() {\n\tfmt.Printf("%d\\n", "text")\n}\n'
    where = repo_of(tmp_path / "r", small(), small(a__say=lost))
    ran = verify(where, "--base", "HEAD~1", "--level", "build")
    assert ran.code == 1
    assert b"a/say.go:6:" in ran.out
    assert b"wrong type string" in ran.out


def test_build_takes_no_account_of_what_was_wrong_before(verify: Verify, go: gotool.Go, tmp_path: Path) -> None:
    lost = 'package a\n\nimport "fmt"\n\nfunc Say() {\n\tfmt.Printf("%d\\n", "text")\n}\n'
    moved = lost.replace("func Say", "// Say says.\nfunc Say")
    where = repo_of(tmp_path / "r", small(a__say=lost), small(a__say=moved))
    assert verify(where, "--base", "HEAD~1", "--level", "build").code == 0


def test_missing_dependency_is_not_verified(verify: Verify, go: gotool.Go, tmp_path: Path) -> None:
    use = 'package a\n\nimport "nowhere.example/lib"\n\nvar X = lib.X\n'
    needs = "module example.com/m\n\ngo 1.21\n\nrequire nowhere.example/lib v1.0.0\n"
    files = small(a__x=use) | {"go.mod": File(needs.encode())}
    where = repo_of(tmp_path / "r", small() | {"go.mod": files["go.mod"]}, files)
    ran = verify(where, "--base", "HEAD~1", "--level", "build")
    assert ran.code == 3
    assert b"dependencies are not in the module cache" in ran.out


def test_failing_test_is_named_with_its_place(verify: Verify, go: gotool.Go, tmp_path: Path) -> None:
    where = repo_of(tmp_path / "r", small(), small(a__a_test=TEST % 2))
    ran = verify(where, "--base", "HEAD~1", "--run-tests", "--format", "json")
    assert ran.code == 1, ran.out
    (error,) = document(ran)["steps"][0]["levels"][-1]["errors"]
    assert (error["path"], error["line"], error["message"]) == ("a/a_test.go", 7, "TestOne fails: got 1")
    assert error["configs"] == ["linux"], "other configurations select the same files"


def test_test_that_failed_before_does_not_count(verify: Verify, go: gotool.Go, tmp_path: Path) -> None:
    changed = small(a__a_test=TEST % 2, a__more="package a\n\nvar More = 1\n")
    where = repo_of(tmp_path / "r", small(a__a_test=TEST % 2), changed)
    assert verify(where, "--base", "HEAD~1", "--run-tests").code == 0


def test_no_code_of_the_tree_runs_below_behaviour(verify: Verify, go: gotool.Go, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    runs = f'package a\n\nimport (\n\t"os"\n\t"testing"\n)\n\nfunc TestMain(m *testing.M) {{\n\tos.WriteFile({str(trace)!r}, nil, 0o600)\n\tos.Exit(m.Run())\n}}\n'
    where = repo_of(tmp_path / "r", small(), small(a__a_test=runs.replace("'", '"')))
    assert verify(where, "--base", "HEAD~1", "--level", "build").code == 0
    assert not trace.exists()
    assert verify(where, "--base", "HEAD~1", "--run-tests").code == 0
    assert trace.exists(), "the trace is what the tests would leave"


# --- a tree that means harm -------------------------------------------------------------------------------------


def hostile(trap: Path) -> dict[str, tuple[trees.Files, tuple[int, ...]]]:
    """Return trees by what is wrong with them, with the codes that levels types and build may end with.

    Where the code of level build depends on what else the machine has, such as a C compiler, all are given.
    """
    head = "module example.com/m\n\ngo 1.21\n"
    lib = "require outside.example/lib v1.0.0\n"

    def module(text: str, **files: str) -> trees.Files:
        return small(**files) | {"go.mod": File(text.encode())}

    return {
        "toolchain line": (module(f"{head}\ntoolchain go1.999.0\n"), (0, 0)),
        "language of the future": (module("module example.com/m\n\ngo 1.999\n"), (0, 3)),
        "replaced by a folder outside": (
            module(
                f"{head}\nreplace outside.example/lib => {trap}\n\n{lib}",
                a__use='package a\n\nimport "outside.example/lib"\n\nvar X = lib.X\n',
            ),
            (0, 3),
        ),
        "go.work that leads outside": (small() | {"go.work": File(f"go 1.21\n\nuse {trap}\n".encode())}, (0, 0)),
        "program to generate with": (small(a__gen=f"package a\n\n//go:generate touch {trap}/generated\n"), (0, 0)),
        "cgo flags that run a program": (
            small(
                a__c=f'package a\n\n// #cgo CFLAGS: -wrapper {trap}/evil\n// #cgo LDFLAGS: -fplugin={trap}/evil.so\nimport "C"\n'
            ),
            (0, 0, 1, 3),
        ),
        "cgo that asks a program for flags": (
            small(a__c=f'package a\n\n// #cgo pkg-config: {trap}/evil\nimport "C"\n'),
            (0, 0, 1, 3),
        ),
        "embedded file outside": (
            small(a__e='package a\n\nimport _ "embed"\n\n//go:embed ../../trap/lib.go\nvar S string\n'),
            (0, 1),
        ),
        "package named like a standard one": (
            small(
                fmt__fmt="package fmt\n\nfunc Sprint(int) int { return 0 }\n",
                b__std='package b\n\nimport "fmt"\n\nvar S string = fmt.Sprint(1)\n',
            ),
            (0, 0),
        ),
        "50 MB of one line": (small() | {"a/long.go": File(b"package a // " + b"x" * 50_000_000)}, (3, 3)),
        "50 MB of one expression": (
            small() | {"a/long.go": File(b"package a; var x = 0" + b"+1" * 25_000_000)},
            (3, 3),
        ),
    }


@pytest.mark.parametrize("level", ["types", "build"])
@pytest.mark.parametrize("what", hostile(Path("/nowhere")))
def test_hostile_tree_neither_runs_nor_escapes_nor_hangs(
    verify: Verify, go: gotool.Go, tmp_path: Path, what: str, level: str
) -> None:
    trap = tmp_path / "trap"
    trap.mkdir()
    (trap / "go.mod").write_text("module outside.example/lib\n")
    (trap / "lib.go").write_text("package lib\n\nvar X int = SECRET\n")
    for name in ("evil", "evil.so"):
        (trap / name).write_text(f"#!/bin/sh\ntouch {trap}/ran\n")
        (trap / name).chmod(0o755)
    files, codes = hostile(trap)[what]
    where = repo_of(tmp_path / "r", files)
    before = fingerprint(trap)
    start = time.monotonic()
    ran = verify(where, "--as-is", "--level", level)
    assert time.monotonic() - start < 120
    assert fingerprint(trap) == before
    assert "SECRET" not in ran.out.decode() + ran.err
    assert ran.code in (codes[:1] if level == "types" else codes[1:]), ran.out.decode()


@pytest.mark.parametrize("level", ["syntax", "types", "build"])
def test_links_are_told_and_not_followed(verify: Verify, go: gotool.Go, tmp_path: Path, level: str) -> None:
    (tmp_path / "secret.go").write_text("package a\n\nvar X int = SECRET\n")
    repo = Repo(tmp_path / "r")
    repo.commit(small())
    for name, target in (("a/link.go", "../../secret.go"), ("linked", ".."), ("self", ".")):
        (repo.path / name).symlink_to(target)
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", "links")
    told = b"a/link.go: a symbolic link that leaves the tree"
    for args in (("--as-is",), ("--base", "HEAD~1")):
        ran = verify(repo.path, *args, "--level", level)
        assert (ran.code, b"SECRET" in ran.out) == (3, False), ran.out
        assert b"not verified syntax: " + told in ran.out, "Go would compile it"
    (repo.path / "a/x.go").write_text("package a\n\nvar Y = 1\n")
    ran = verify(repo.path, "--base", "HEAD", "--level", level)
    assert ran.code == 0, "a change has nothing to do with a link that was there before"
    assert b"not looked at by %s: %s" % (level.encode(), told) in ran.out


def test_module_replaced_by_a_folder_outside_is_not_built(verify: Verify, go: gotool.Go, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/go.mod").write_text("module outside.example/lib\n\ngo 1.21\n")
    (tmp_path / "lib/lib.go").write_text("package lib\n\nvar X = SECRET\n")
    go_mod = "module example.com/m\n\ngo 1.21\n\nrequire outside.example/lib v1.0.0\n\nreplace outside.example/lib => ../lib\n"
    use = small(a__x='package a\n\nimport "outside.example/lib"\n\nvar X = lib.X\n')
    base = small() | {"go.mod": File(go_mod.encode())}
    where = repo_of(tmp_path / "r", base, use | {"go.mod": base["go.mod"]})
    ran = verify(where, "--base", "HEAD~1", "--level", "build")
    assert ran.code == 3
    assert b"outside.example/lib: go.mod replaces it by a folder outside the tree" in ran.out
    assert b"SECRET" not in ran.out


def test_filters_of_the_repository_are_not_run(verify: Verify, go: gotool.Go, tmp_path: Path) -> None:
    files = small() | {".gitattributes": File(b"* filter=evil\n")}
    where = repo_of(
        tmp_path / "r", files, small(a__x="package a\n\nvar X = 1\n") | {".gitattributes": files[".gitattributes"]}
    )
    _at(where).git("config", "filter.evil.smudge", f"touch {tmp_path}/smudged; cat")
    assert verify(where, "--ref", "HEAD", "--base", "HEAD~1", "--level", "build").code == 0
    assert not (tmp_path / "smudged").exists()


def test_user_environment_of_go_has_no_say_and_is_left_alone(
    verify: Verify, go: gotool.Go, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    settings = {
        "HOME": str(home),
        "GOCACHE": str(home / "gocache"),
        "GOFLAGS": f"-toolexec={tmp_path}/evil",
        "GOTOOLCHAIN": "go1.999.0",
        "GOWORK": str(tmp_path / "go.work"),
        "CGO_ENABLED": "1",
        "GOOS": "plan9",
    }
    where = repo_of(tmp_path / "r", small(), small(a__x="package a\n\nvar X = 1\n"))
    ran = verify(where, "--base", "HEAD~1", "--level", "build", env=settings)
    assert ran.code == 0, ran.out.decode() + ran.err
    assert sorted(os.listdir(home)) == []


# --- real trees -------------------------------------------------------------------------------------------------


def test_every_step_on_the_tree_of_the_issue_has_no_new_error(verify: Verify, go: gotool.Go, corpus: Path) -> None:
    ran = verify(corpus / "k3s.git", "--ref", "before/issue", "--format", "json")
    assert ran.code == 0
    found = document(ran)
    assert [step["id"] for step in found["steps"]] == [codemod.id for codemod in SUITE]
    for step in found["steps"]:
        syntax, types_ = step["levels"]
        assert (syntax["status"], types_["status"], types_["errors"]) == ("ok", "ok", [])
        assert types_["configs"] == ["linux", "windows", "no_embedded_executor", "no_cri_dockerd"]


def test_change_by_hand_has_no_new_error(verify: Verify, go: gotool.Go, corpus: Path) -> None:
    ran = verify(corpus / "k3s.git", "--ref", "after/etcd", "--base", "before/pr-base")
    assert (ran.code, ran.last) == (0, "verified at level types: change, no new error")


def test_real_tree_as_it_is_has_its_known_errors(verify: Verify, go: gotool.Go, corpus: Path) -> None:
    ran = verify(corpus / "k3s.git", "--ref", "before/issue", "--as-is", "--format", "json")
    assert ran.code == 1
    errors = document(ran)["steps"][0]["levels"][1]["errors"]
    assert {error["path"] for error in errors} == {"cmd/k3s/main.go", "tests/integration/integration.go"}
