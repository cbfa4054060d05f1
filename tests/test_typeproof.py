"""The type checker of level *types*: what it must see, what it must not claim, and what it says it did not look at."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import refactor_tool
from refactor_tool.model import Snapshot, blob_id
from refactor_tool.world import gotool
from refactor_tool.world.tree import read_ref, read_tree
from tests import txtar
from tests.repo import Repo

SOURCE = Path(refactor_tool.__file__).parent / "verify_go"
FIXTURE = Path(__file__).resolve().parent.parent / "fixtures" / "k3s"
MODULE = "example.com/m"
K3S = "github.com/k3s-io/k3s"

LINUX = {"name": "linux", "goos": "linux", "goarch": "amd64", "tags": []}
WINDOWS = {"name": "windows", "goos": "windows", "goarch": "amd64", "tags": []}
NO_EXECUTOR = {"name": "no_embedded_executor", "goos": "linux", "goarch": "amd64", "tags": ["no_embedded_executor"]}
NO_DOCKERD = {"name": "no_cri_dockerd", "goos": "linux", "goarch": "amd64", "tags": ["no_cri_dockerd"]}
CONFIGS = (LINUX, WINDOWS, NO_EXECUTOR, NO_DOCKERD)

Answer = dict[str, Any]
Files = Mapping[str, str | bytes]


@dataclass(frozen=True)
class Verifier:
    """The built program; it runs in an empty folder with an empty environment, so it can start nothing by name."""

    program: Path
    folder: Path
    goroot: Path

    def run(self, request: object) -> subprocess.CompletedProcess[bytes]:
        asked = {"goroot": str(self.goroot), **request} if isinstance(request, dict) else request
        data = asked if isinstance(asked, bytes) else json.dumps(asked).encode()
        return subprocess.run([self.program], input=data, cwd=self.folder, env={}, capture_output=True, check=False)

    def ask(self, request: object) -> Answer:
        done = self.run(request)
        assert done.returncode == 0, done.stderr.decode(errors="replace")
        answer: Answer = json.loads(done.stdout)
        assert answer["schema"] == "refactor-tool-types/1"
        return answer

    def check(self, *trees: Files, configs: Sequence[Mapping[str, object]] = (LINUX,), **more: object) -> Answer:
        """Check trees of text, in order; the module is MODULE."""
        return self.ask(request({f"tree{n}": tree for n, tree in enumerate(trees)}) | {"configs": configs, **more})


def request(trees: Mapping[str, Files], module: str = MODULE) -> dict[str, object]:
    texts: dict[str, str] = {}
    encoded: dict[str, str] = {}
    listed = []
    for name, tree in trees.items():
        files = {}
        for path, content in tree.items():
            data = content.encode() if isinstance(content, str) else content
            files[path] = blob_id(data)
            try:
                texts[files[path]] = data.decode()
            except UnicodeDecodeError:
                encoded[files[path]] = base64.b64encode(data).decode()
        listed.append({"name": name, "files": files})
    return {"module": module, "configs": CONFIGS, "trees": listed, "blobs": texts, "blobs_base64": encoded}


def contents(snapshot: Snapshot) -> dict[str, bytes]:
    return {path: file.data for path, file in snapshot.files.items()}


def places(problems: Iterable[Mapping[str, Any]]) -> list[str]:
    return [f"{p['path']}:{p['line']} {p['code']}" for p in problems]


@pytest.fixture(scope="session")
def verifier(go: gotool.Go, go_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Verifier:
    """Build the program as `verify` does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(go_cache))
        return Verifier(gotool.checker(go), tmp_path_factory.mktemp("empty"), go.goroot)


# --- what it must see ------------------------------------------------------------------------------

CASES = Path(__file__).parent / "typeproof"
SOUND: Mapping[str, str] = txtar.parse((CASES / "sound.txt").read_text(encoding="utf-8"))[1]
GO_MOD = SOUND["go.mod"]
A = SOUND["a/a.go"]


def cases(name: str) -> dict[str, str]:
    """Return the cases of a file by their reason; each starts with `== reason`."""
    texts = re.split(r"^== (.+)\n", (CASES / name).read_text(encoding="utf-8"), flags=re.M)[1:]
    return {reason: text.rstrip("\n") + "\n" for reason, text in zip(texts[::2], texts[1::2], strict=True)}


ERRORS, SILENT = cases("errors.txt"), cases("silent.txt")


def changed(change: Mapping[str, str | None], base: Files = SOUND) -> dict[str, str | bytes]:
    tree = dict(base)
    for path, text in change.items():
        if text is None:
            del tree[path]
        else:
            tree[path] = text
    return tree


def test_sound_tree_has_no_error_in_any_configuration(verifier: Verifier) -> None:
    answer = verifier.check(SOUND, configs=CONFIGS)
    assert [(run["config"], run["packages"], run["errors"], run["not_verified"]) for run in answer["runs"]] == [
        (config["name"], 2, [], []) for config in CONFIGS
    ]


def with_error(case: str) -> dict[str, str | bytes]:
    """Return the sound tree with the files of a case, and without those it says are `removed`."""
    head, files = txtar.parse(case)
    return changed({**files, **dict.fromkeys(re.findall("^removed (.+)$", head, re.M))})


@pytest.fixture(scope="session")
def broken(verifier: Verifier) -> Answer:
    """Check every case of errors.txt in one run, each after the sound tree."""
    trees: dict[str, Files] = {}
    for reason, case in ERRORS.items():
        trees |= {f"before {reason}": SOUND, reason: with_error(case)}
    return verifier.ask(request(trees))


@pytest.mark.parametrize("reason", ERRORS)
def test_new_error_is_named_with_its_place(broken: Answer, reason: str) -> None:
    """Compare with the head of the case: `path:line code`, in every configuration or in `@config` alone."""
    wanted: dict[str, list[str]] = {str(config["name"]): [] for config in CONFIGS}
    for place, config in re.findall(r"^(\S+:\d+ [\w-]+)(?: @(\w+))?$", txtar.parse(ERRORS[reason])[0], re.M):
        for name in [config] if config else wanted:
            wanted[name].append(place)
    pairs = [pair for pair in broken["pairs"] if pair["after"] == reason]
    assert {pair["config"]: places(pair["new"]) for pair in pairs} == wanted
    assert not any(pair["gone"] for pair in pairs)


def test_message_names_declaration_package_and_every_import_of_a_cycle(verifier: Verifier) -> None:
    text = f'package a\n\nimport _ "{MODULE}/b"\n\ntype S struct{{}}\n\nfunc (s *S) m() {{ nowhere() }}\n'
    cycle, _, undefined = sorted(
        verifier.check(SOUND, changed({"a/n.go": text}))["pairs"][0]["new"], key=lambda p: (p["code"], p["path"])
    )
    assert cycle["message"] == f"import cycle not allowed: {MODULE}/a imports {MODULE}/b imports {MODULE}/a"
    assert (undefined["package"], undefined["decl"]) == (f"{MODULE}/a", "(*S).m")
    assert (undefined["line"], undefined["column"]) == (7, 19)


def test_declarations_of_outside_packages_can_be_given(verifier: Verifier) -> None:
    use = changed(
        {"a/n.go": 'package a\n\nimport "outside.example/lib"\n\nvar x int = lib.Known()\n\nvar y int = lib.Unknown\n'}
    )
    known = {"outside.example/lib": 'package lib\nimport "unknown"\nfunc Known() string\nvar Unknown unknown.T\n'}
    assert places(verifier.check(use)["runs"][0]["errors"]) == []
    assert places(verifier.check(use, known=known)["runs"][0]["errors"]) == ["a/n.go:5 incompatible-type"]


def test_replaced_module_is_as_unknown_as_any_other(verifier: Verifier) -> None:
    use = {"a/n.go": 'package a\n\nimport "github.com/pkg/errors"\n\nvar x = errors.Wrap(1, "")\n'}
    replaced = {**use, "go.mod": GO_MOD + "\nreplace github.com/pkg/errors => ../elsewhere\n"}
    assert places(verifier.check(changed(use))["runs"][0]["errors"]) == ["a/n.go:5 missing-method"]
    assert places(verifier.check(changed(replaced))["runs"][0]["errors"]) == []


# --- what it must not claim ------------------------------------------------------------------------


@pytest.fixture(scope="session")
def unknown(verifier: Verifier) -> Answer:
    """Check every case of silent.txt, a file of package a, in one run; no tree teaches another the names of packages."""
    runs = []
    for reason, case in SILENT.items():
        tree = changed({"a/n.go": f"package a\n\n{case}"})
        runs += verifier.ask(request({reason: tree}) | {"configs": (LINUX, WINDOWS), "packages": ["a"]})["runs"]
    return {"runs": runs}


@pytest.mark.parametrize("reason", SILENT)
def test_unknown_package_is_never_the_error(unknown: Answer, reason: str) -> None:
    runs = [(run["errors"], run["not_verified"]) for run in unknown["runs"] if run["tree"] == reason]
    assert runs == [([], []), ([], [])]


def test_package_the_tree_does_not_hold_is_outside_where_a_required_module_may_hold_it(verifier: Verifier) -> None:
    use = {
        "go.mod": GO_MOD + f"\nrequire {MODULE}/api v1.0.0\n",
        "a/n.go": f'package a\n\nimport "{MODULE}/api/c"\n\nvar x = c.X\n',
    }
    assert places(verifier.check(changed(use))["runs"][0]["errors"]) == []


def test_generic_call_with_unknown_types_needs_no_newer_language(verifier: Verifier) -> None:
    text = """package a

import "outside.example/lib"

type J[T lib.C] struct{}

func New[T lib.C](x lib.I, i J[T], f func(T) error) {}

func Make[T lib.C](x lib.I) J[T] { return J[T]{} }

func on(t *lib.T) error { return nil }

func f() { New(lib.V, Make[*lib.T](lib.V), on) }
"""
    old = {"go.mod": GO_MOD.replace("go 1.21", "go 1.19"), "a/n.go": text}
    assert verifier.check(changed(old))["runs"][0]["errors"] == []


def test_external_test_shares_types_with_what_it_imports(verifier: Verifier) -> None:
    tree = {
        "go.mod": GO_MOD,
        "p/p.go": "package p\n\ntype T struct{}\n",
        "p/export_test.go": "package p\n\nfunc (T) OnlyInTests() {}\n",
        "q/q.go": f'package q\n\nimport "{MODULE}/p"\n\nfunc New() p.T {{ return p.T{{}} }}\n',
        "p/p_test.go": f'package p_test\n\nimport (\n\t"{MODULE}/p"\n\t"{MODULE}/q"\n)\n\nvar t p.T = q.New()\n\nfunc f() {{ t.OnlyInTests() }}\n',
    }
    assert verifier.check(tree)["runs"][0]["errors"] == []


# --- comparing trees -------------------------------------------------------------------------------

UNDEFINED = "package a\n\nfunc f() {\n\tnowhere()\n}\n"


def test_moved_error_is_not_new(verifier: Verifier) -> None:
    before = {"a/n.go": UNDEFINED}
    after = {"a/n.go": UNDEFINED.replace("func f", "// more\n// lines\nfunc other() {}\n\nfunc f")}
    pair = verifier.check(changed(before), changed(after))["pairs"][0]
    assert (pair["new"], pair["gone"]) == ([], [])


def test_second_error_of_a_kind_is_new_at_the_added_line(verifier: Verifier) -> None:
    after = UNDEFINED.replace("\tnowhere()", "\tnowhere(1)\n\tnowhere()")
    pair = verifier.check(changed({"a/n.go": UNDEFINED}), changed({"a/n.go": after}))["pairs"][0]
    assert places(pair["new"]) == ["a/n.go:4 undefined"]


def test_error_in_another_function_is_new(verifier: Verifier) -> None:
    after = UNDEFINED.replace("func f", "func g")
    pair = verifier.check(changed({"a/n.go": UNDEFINED}), changed({"a/n.go": after}))["pairs"][0]
    assert (places(pair["new"]), places(pair["gone"])) == (["a/n.go:4 undefined"], ["a/n.go:4 undefined"])


def test_every_step_is_compared_with_the_one_before(verifier: Verifier) -> None:
    pairs = verifier.check(SOUND, changed({"a/n.go": UNDEFINED}), changed({"a/n.go": UNDEFINED}), SOUND)["pairs"]
    assert [(pair["before"], pair["after"], len(pair["new"]), len(pair["gone"])) for pair in pairs] == [
        ("tree0", "tree1", 1, 0),
        ("tree1", "tree2", 0, 0),
        ("tree2", "tree3", 0, 1),
    ]


def test_an_old_error_is_none_that_is_new_because_another_package_has_the_same_name(verifier: Verifier) -> None:
    before = {
        "x/docker/docker.go": "package docker\n\ntype Config struct{}\n",
        "y/docker/docker.go": "package docker\n\ntype Other struct{}\n\nfunc New() *Other { return nil }\n",
        "c/c.go": f'package c\n\nimport "{MODULE}/x/docker"\n\nvar X = new(docker.Config).Gone\n\nvar Y = 1\n',
    }
    also = f'package c\n\nimport (\n\t"{MODULE}/x/docker"\n\tother "{MODULE}/y/docker"\n)\n\n'
    after = before["c/c.go"].replace(f'package c\n\nimport "{MODULE}/x/docker"\n\n', also)
    answer = verifier.check(changed(before), changed({**before, "c/c.go": after.replace("Y = 1", "Y = other.New()")}))
    assert [len(run["errors"]) for run in answer["runs"]] == [1, 1]
    assert answer["pairs"][0]["new"] == []


def test_equal_packages_are_checked_once(verifier: Verifier) -> None:
    once = verifier.check(SOUND)["stats"]
    twice = verifier.check(SOUND, SOUND, configs=(LINUX, NO_EXECUTOR, NO_DOCKERD))["stats"]
    assert once["checked"] == 4, "a, b, b with its tests, b_test"
    assert (twice["checked"], twice["packages"]) == (once["checked"], 6 * once["packages"])


def test_change_inside_a_body_leaves_the_importers_alone(verifier: Verifier) -> None:
    body = {"a/a.go": A.replace("return nil", "println(n); return nil")}
    api = {"a/a.go": A.replace("F(n int,", "F(n uint8,")}
    checked = [verifier.check(SOUND, changed(change))["stats"]["checked"] for change in ({}, body, api)]
    assert [number - checked[0] for number in checked] == [0, 1, 4]


def test_unexported_change_that_importers_can_tell_reaches_them(verifier: Verifier) -> None:
    before = {
        "a/n.go": "package a\n\ntype hidden struct{ X int }\n\nfunc New() hidden { return hidden{} }\n",
        "b/n.go": f'package b\n\nimport "{MODULE}/a"\n\nvar x = a.New().X\n',
    }
    after = {**before, "a/n.go": before["a/n.go"].replace("X int", "Y int")}
    assert places(verifier.check(changed(before), changed(after))["pairs"][0]["new"]) == [
        "b/n.go:5 missing-field-or-method"
    ]


def test_only_asked_packages_are_reported(verifier: Verifier) -> None:
    broken = changed({"a/n.go": UNDEFINED, "b/n.go": "package b\n\nvar x = y\n"})
    for name in ("b", "./b", f"{MODULE}/b"):
        run = verifier.check(broken, packages=[name])["runs"][0]
        assert (run["packages"], places(run["errors"])) == (1, ["b/n.go:3 undefined"])


def test_without_tests_only_what_is_built(verifier: Verifier) -> None:
    broken = changed({"b/n_test.go": "package b\n\nvar x = y\n"})
    assert places(verifier.check(broken)["runs"][0]["errors"]) == ["b/n_test.go:3 undefined"]
    assert verifier.check(broken, no_tests=True)["runs"][0]["errors"] == []


def test_cgo_files_are_left_out_without_cgo(verifier: Verifier) -> None:
    tree = changed({"a/n.go": 'package a\n\nimport "C"\n\nvar x = y\n'})
    configs = (LINUX, {**LINUX, "name": "pure", "no_cgo": True})
    assert [places(run["errors"]) for run in verifier.check(tree, configs=configs)["runs"]] == [
        ["a/n.go:5 undefined"],
        [],
    ]


def test_same_answer_from_any_number_of_workers(verifier: Verifier) -> None:
    trees = (SOUND, changed({"a/n.go": UNDEFINED, "b/n.go": "package b\n\nvar x = y\n"}))
    answers = [verifier.check(*trees, configs=CONFIGS, workers=workers) for workers in (1, 2, 5)]
    for answer in answers:
        del answer["stats"]["ms"]
    assert answers[0] == answers[1] == answers[2]


# --- what it did not look at -----------------------------------------------------------------------


def test_folders_and_files_outside_every_build_are_listed(verifier: Verifier) -> None:
    extra = {
        "a/testdata/t.go": "package t",
        "_old/o.go": "package o",
        "vendor/v/v.go": "package v",
        "tools/go.mod": "module tools\n",
        "tools/sub/t.go": "package t",
        "a/never.go": "//go:build never\n\npackage a\n",
    }
    answer = verifier.check(changed(extra), configs=(LINUX, WINDOWS))
    assert [(entry["path"], entry["reason"]) for entry in answer["trees"][0]["not_verified"]] == [
        ("_old", "1 files in a folder the go command leaves out"),
        ("a/never.go", "no configuration selects the file"),
        ("a/testdata", "1 files in a folder the go command leaves out"),
        ("tools", "1 files in a module of its own"),
        ("vendor", "1 files in a folder the go command leaves out"),
    ]
    assert answer["runs"][0]["packages"] == 2


def test_package_with_a_syntax_error_is_not_verified_and_its_importers_are(verifier: Verifier) -> None:
    broken = {"a/n.go": "package a\n\nfunc {\n", "b/n.go": "package b\n\nvar x = y\n"}
    answer = verifier.check(SOUND, changed(broken))
    assert answer["pairs"][0]["newly_not_verified"] == [{"package": f"{MODULE}/a", "reason": "a/n.go: syntax error"}]
    assert places(answer["pairs"][0]["new"]) == ["a/n.go:3 syntax", "b/n.go:3 undefined"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param(
            "package a // " + "x" * 50_000_000,
            "a/n.go: file of 50000013 bytes, more than the limit of 4194304",
            id="50 MB of one line",
        ),
        pytest.param(
            "package a\nvar x = " + "(" * 40_000 + "1" + ")" * 40_000,
            "a/n.go: syntax nested deeper than the limit of 5000",
            id="brackets",
        ),
        pytest.param(
            "package a\nvar x = 1" + "+1" * 40_000,
            "a/n.go: syntax nested deeper than the limit of 5000",
            id="operators",
        ),
        pytest.param(
            "package a\nvar x " + "*" * 40_000 + "int",
            "a/n.go: syntax nested deeper than the limit of 5000",
            id="pointers",
        ),
        pytest.param(
            "package a\nvar x = " + "(" * 1_000_000, "a/n.go: syntax error", id="brackets the parser itself refuses"
        ),
        pytest.param("package a\n" + "var x int\n" * 3_000, "more than 500 errors", id="thousands of errors"),
        pytest.param(b"package a\n\xff\xfe\x00", "a/n.go: syntax error", id="not text"),
        pytest.param("", "a/n.go: syntax error", id="empty file"),
    ],
)
def test_hostile_file_ends_soon_and_is_not_verified(verifier: Verifier, text: str | bytes, reason: str) -> None:
    start = time.monotonic()
    run = verifier.check({**SOUND, "a/n.go": text})["runs"][0]
    assert time.monotonic() - start < 20
    assert run["not_verified"] == [{"package": f"{MODULE}/a", "reason": reason}]
    assert not [problem for problem in run["errors"] if problem["path"] != "a/n.go"], "importers take it as unknown"


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        pytest.param({"timeout_ms": 1}, "stopped after 1 ms", id="time"),
        pytest.param({"memory_bytes": 1_000_000}, "stopped at 1000000 bytes of memory", id="memory"),
    ],
)
def test_what_a_limit_stops_is_not_verified(verifier: Verifier, limits: dict[str, int], why: str) -> None:
    slow = (
        "package a\n\nimport (\n"
        + "".join(f'\t_ "{p}"\n' for p in ("net/http", "crypto/tls", "go/types", "net/http/pprof"))
        + ")\n"
    )
    many = {f"p{n}/p.go": slow.replace("package a", f"package p{n}") for n in range(20)}
    heavy = {
        f"h{n}/h.go": f"package h{n}\n\n"
        + "".join(f"func f{i}(a int) (int, error) {{ b := a * {i}; return b, nil }}\n" for i in range(8_000))
        for n in range(8)
    }
    answer = verifier.check({**SOUND, **many, **heavy}, limits=limits)
    assert answer["stopped"] == why
    assert why in {entry["reason"] for entry in answer["runs"][0]["not_verified"]}


def test_package_that_takes_for_ever_does_not_take_the_others_along(verifier: Verifier) -> None:
    doubled = "".join(f"type T{n} struct{{ a, b T{n + 1} }}\n" for n in range(60))
    bomb = f'package c\n\nimport "unsafe"\n\n{doubled}type T60 int\n\nconst size = unsafe.Sizeof(T0{{}})\n'
    answer = verifier.check(changed({"c/c.go": bomb, "a/n.go": UNDEFINED}), limits={"timeout_ms": 4000})
    assert answer["runs"][0]["not_verified"] == [{"package": f"{MODULE}/c", "reason": "stopped after 4000 ms"}]
    assert places(answer["runs"][0]["errors"]) == ["a/n.go:4 undefined"]


def test_hostile_tree_reaches_nothing_outside_the_request(verifier: Verifier, tmp_path: Path) -> None:
    trap = tmp_path / "trap.go"
    trap.write_text("package trap\n\nvar X int = nowhere\n")
    tree = {
        "go.mod": f"module {MODULE}\n\ngo 1.999\n\ntoolchain go1.999.0\n\nreplace outside.example/lib => {tmp_path}\n\nrequire outside.example/lib v1.0.0\n",
        "a/a.go": f'//line {trap}:77\npackage a\n\n//go:generate touch {tmp_path}/generated\n\nimport (\n\t_ "{tmp_path}"\n\t_ "../../../../../../{tmp_path}"\n\t_ "os/../../../{tmp_path}"\n\t_ "outside.example/lib"\n)\n\nvar x = y\n',
        "c/c.go": 'package c\n\n// #cgo LDFLAGS: -fplugin=evil.so\n// #include "/etc/passwd"\nimport "C"\n',
        "fmt/fmt.go": "package fmt\n\nfunc Sprint(int) int { return 0 }\n",
        "u/u.go": f'package u\n\nimport (\n\t"fmt"\n\n\town "{MODULE}/fmt"\n)\n\nvar x string = fmt.Sprint("")\n\nvar y int = own.Sprint(1)\n',
        "../escape.go": "package escape\n",
        "/absolute.go": "package absolute\n",
    }
    before = sorted(os.listdir(verifier.folder)), sorted(os.listdir(tmp_path))
    answer = verifier.check(tree, configs=CONFIGS)
    for run in answer["runs"]:
        assert places(run["errors"]) == ["a/a.go:7 import", "a/a.go:8 import", "a/a.go:9 import", "a/a.go:13 undefined"]
    assert answer["trees"][0]["language"] == "", "a language this toolchain does not know is not held against the tree"
    assert (sorted(os.listdir(verifier.folder)), sorted(os.listdir(tmp_path))) == before


def test_without_sources_of_the_standard_library_it_is_unknown_and_said_so(verifier: Verifier, tmp_path: Path) -> None:
    answer = verifier.check(
        changed({"a/n.go": 'package a\n\nimport "os"\n\nvar x = os.Nowhere\n\nvar y = z\n'}), goroot=str(tmp_path)
    )
    assert answer["std"] == f"unknown: no source of the standard library in {tmp_path}"
    assert places(answer["runs"][0]["errors"]) == ["a/n.go:7 undefined"]


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        pytest.param(b"{", "not the expected JSON", id="not JSON"),
        pytest.param({"modul": "x"}, 'unknown field "modul"', id="misspelt key"),
        pytest.param({**request({"t": SOUND}), "module": ""}, "without module", id="no module"),
        pytest.param({**request({"t": SOUND}), "goroot": ""}, "or goroot", id="no standard library"),
        pytest.param({**request({"t": SOUND}), "configs": []}, "without configs", id="no configuration"),
        pytest.param(
            {**request({"t": SOUND}), "configs": [LINUX, LINUX]}, 'config "linux"', id="two configurations of one name"
        ),
        pytest.param({**request({"t": SOUND}), "blobs": {}}, "is missing", id="no content for a file"),
        pytest.param({**request({"t": SOUND}), "blobs_base64": {"x": "%"}}, "blob x", id="not base64"),
        pytest.param(
            {**request({"t": SOUND}), "packages": ["nowhere"]},
            f"no tree has a package {MODULE}/nowhere",
            id="package nobody has",
        ),
        pytest.param(
            {**request({"t": SOUND}), "known": {"x.y/z": "func"}},
            "known declarations of x.y/z",
            id="known declarations that are not Go",
        ),
    ],
)
def test_unusable_request_is_refused_in_one_line(verifier: Verifier, bad: object, says: str) -> None:
    done = verifier.run(bad)
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (1, b"", 1)
    assert done.stderr.startswith(b"verify: ") and says in done.stderr.decode()


def test_program_is_gofmt_clean(unformatted: Callable[[Path], list[str]]) -> None:
    assert unformatted(SOURCE) == []


# --- the embedded fixture and real trees -----------------------------------------------------------


def test_embedded_fixture_has_no_error_in_any_configuration(verifier: Verifier) -> None:
    answer = verifier.ask(request({"fixture": contents(read_tree(FIXTURE))}, K3S))
    assert {run["config"]: places(run["errors"]) for run in answer["runs"]} == {
        str(config["name"]): [] for config in CONFIGS
    }
    assert not any(run["not_verified"] for run in answer["runs"])


#: What does not compile at `before/issue` either: generated code that is not in the tree, and calls Windows has not.
BASE_ERRORS = ["cmd/k3s/main.go undefined", "cmd/k3s/main.go undefined"]
BASE_ERRORS_ON_WINDOWS = [
    *BASE_ERRORS,
    *(f"tests/integration/integration.go {code}" for code in ("types-66", "undefined", "undefined")),
]


def branches(corpus: Path, *names: str) -> dict[str, dict[str, bytes]]:
    return {name: contents(read_ref(corpus / "k3s.git", name)) for name in names}


def test_real_base_has_only_its_real_errors(verifier: Verifier, corpus: Path) -> None:
    answer = verifier.ask(request(branches(corpus, "before/issue"), K3S))
    for run in answer["runs"]:
        wanted = BASE_ERRORS_ON_WINDOWS if run["config"] == "windows" else BASE_ERRORS
        assert [f"{problem['path']} {problem['code']}" for problem in run["errors"]] == wanted
        assert (run["packages"], run["not_verified"]) == (140, [])


def test_hand_made_change_has_no_new_error(verifier: Verifier, corpus: Path) -> None:
    answer = verifier.ask(
        request(
            branches(corpus, "before/pr-base", "during/readyz", "during/apiserver", "during/cri", "after/etcd"), K3S
        )
    )
    assert [places(pair["new"]) for pair in answer["pairs"]] == [[]] * 16
    assert not any(pair["newly_not_verified"] for pair in answer["pairs"])


def test_commit_that_does_not_compile_as_a_test_is_found(verifier: Verifier, corpus: Path) -> None:
    answer = verifier.ask(request(branches(corpus, "before/pr-base", "during/tests"), K3S))
    assert [places(pair["new"]) for pair in answer["pairs"]] == [["tests/unit.go:48 undefined"]] * 4


def test_every_patch_of_the_prototype_has_no_new_error(verifier: Verifier, corpus: Path, tmp_path: Path) -> None:
    series = corpus.parent / "target" / "series.patch"
    if not series.is_file():
        pytest.skip("no series.patch beside the corpus")
    repo = Repo(tmp_path / "k3s")
    repo.take(corpus / "k3s.git", "before/issue")
    repo.git("am", "-q", str(series))
    commits = repo.git("rev-list", "--reverse", "HEAD").decode().split()
    trees = {f"{n} {commit[:8]}": contents(read_ref(repo.path, commit)) for n, commit in enumerate(commits)}
    answer = verifier.ask(request(trees, K3S))
    assert len(trees) == 8
    assert [places(pair["new"]) for pair in answer["pairs"]] == [[]] * 28
    assert not any(pair["newly_not_verified"] for pair in answer["pairs"])


@dataclass(frozen=True)
class Fault:
    """One mistake in a real tree: what it is, where, and the error that names it (`path` or `path:match`, code)."""

    reason: str
    branch: str
    path: str
    pattern: str
    replacement: str
    wanted: tuple[str, str]
    configs: tuple[str, ...] = tuple(str(config["name"]) for config in CONFIGS)

    def apply(self, tree: Mapping[str, bytes]) -> tuple[dict[str, bytes], int]:
        """Return the tree with the mistake and the line of its place."""
        text = tree[self.path].decode()
        match = re.search(self.pattern, text, re.S)
        assert match, f"{self.reason}: {self.path} has no {self.pattern}"
        changed = text[: match.start()] + match.expand(self.replacement) + text[match.end() :]
        return {**tree, self.path: changed.encode()}, text.count("\n", 0, match.start()) + 1


WAIT = r"util\.WaitForAPIServerReady\([^)]*\)"
END = r"\Z"
FAULTS = (
    Fault(
        "call expression alone replaced, error wrapped",
        "before/issue",
        "pkg/agent/run.go",
        WAIT,
        "make(<-chan struct{})",
        ("pkg/agent/run.go:+1", "missing-method"),
    ),
    Fault(
        "call expression alone replaced, error returned",
        "before/issue",
        "pkg/daemons/control/server.go",
        WAIT,
        "make(<-chan struct{})",
        ("pkg/daemons/control/server.go:+0", "missing-method"),
    ),
    Fault(
        "unused import",
        "before/issue",
        "pkg/util/api.go",
        r"import \(",
        'import (\n\t"math/bits"',
        ("pkg/util/api.go:+1", "unused-import"),
    ),
    Fault(
        "undefined name in other packages",
        "before/issue",
        "pkg/util/api.go",
        "DefaultAPIServerReadyTimeout",
        "Renamed",
        ("pkg/agent/tunnel/tunnel.go", "undefined"),
    ),
    Fault(
        "import cycle",
        "before/issue",
        "pkg/util/api.go",
        r"import \(",
        f'import (\n\t_ "{K3S}/pkg/daemons/executor"',
        ("pkg/util/api.go:+1", "import-cycle"),
        ("linux", "windows", "no_cri_dockerd"),
    ),
    Fault(
        "break on windows only",
        "before/issue",
        "pkg/util/net_windows.go",
        "func permitReuse",
        "func renamed",
        ("pkg/util/net.go", "undefined"),
        ("windows",),
    ),
    Fault(
        "break under one tag only",
        "before/issue",
        "pkg/daemons/executor/etcd.go",
        END,
        "\nvar _ = (*Embedded).Kubelet\n",
        ("pkg/daemons/executor/etcd.go:+1", "missing-field-or-method"),
        ("no_embedded_executor",),
    ),
    Fault(
        "wrong number of arguments",
        "before/issue",
        "pkg/agent/tunnel/tunnel.go",
        r"(WaitForAPIServerReady\(ctx), ",
        r"\1, ctx, ",
        ("pkg/agent/tunnel/tunnel.go:+0", "argument-count"),
    ),
    Fault(
        "dropped error branch",
        "before/issue",
        "pkg/daemons/executor/embed.go",
        r"(\t\terr := [^\n]*\n)\t\tif err != nil [^\n]*\n.*?\n\t\t\}\n",
        r"\1",
        ("pkg/daemons/executor/embed.go:+0", "unused-variable"),
        ("linux", "windows", "no_cri_dockerd"),
    ),
    Fault(
        "declared twice",
        "before/issue",
        "pkg/util/api.go",
        END,
        "\nfunc WaitForAPIServerReady() {}\n",
        ("pkg/util/api.go:+1", "duplicate-declaration"),
    ),
    Fault(
        "missing method of the embedded executor",
        "after/etcd",
        "pkg/daemons/executor/embed.go",
        r"\) CRIReadyChan",
        ") Renamed",
        ("pkg/daemons/executor/embed.go", "missing-method"),
        ("linux", "windows", "no_cri_dockerd"),
    ),
    Fault(
        "method of the embedded executor with one parameter more",
        "after/etcd",
        "pkg/daemons/executor/embed.go",
        r"(APIServerHandlers\(ctx context\.Context)",
        r"\1, more int",
        ("pkg/daemons/executor/embed.go", "missing-method"),
        ("linux", "windows", "no_cri_dockerd"),
    ),
    Fault(
        "missing method of the mock executor",
        "after/etcd",
        "tests/mock/executor.go",
        r"\) CRIReadyChan",
        ") Renamed",
        ("tests/unit.go", "missing-method"),
    ),
)


@pytest.fixture(scope="session")
def faulty(verifier: Verifier, corpus: Path) -> Answer:
    """Check every fault in one run: each tree is followed by one with the next fault in its place."""
    trees = branches(corpus, *dict.fromkeys(fault.branch for fault in FAULTS))
    chain: dict[str, Files] = {}
    for branch, tree in trees.items():
        chain[branch] = tree
        chain |= {fault.reason: fault.apply(tree)[0] for fault in FAULTS if fault.branch == branch}
    return verifier.ask(request(chain, K3S))


@pytest.mark.parametrize("fault", [pytest.param(fault, id=fault.reason) for fault in FAULTS])
def test_seeded_fault_is_caught_where_it_is(faulty: Answer, corpus: Path, fault: Fault) -> None:
    _, line = fault.apply(branches(corpus, fault.branch)[fault.branch])
    path, _, offset = fault.wanted[0].partition(":+")
    found = {pair["config"]: pair["new"] for pair in faulty["pairs"] if pair["after"] == fault.reason}
    assert tuple(config for config, new in found.items() if new) == fault.configs
    for config in fault.configs:
        wanted = [p for p in found[config] if (p["path"], p["code"]) == (path, fault.wanted[1])]
        assert wanted, places(found[config])
        assert not offset or line + int(offset) in {problem["line"] for problem in wanted}
