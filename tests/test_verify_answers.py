"""The pure part of `verify`: what is asked of Go, what its answers mean, who made a fault, and the exit code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from refactor_tool.commands.bench import Pace
from refactor_tool.model import EnvironmentFailure, ExitCode, File, FileChange, Snapshot, Span, gravest
from refactor_tool.report.text import Paint
from refactor_tool.report.verified import render_json, render_text
from refactor_tool.verified import (
    BUILD_CONFIGS,
    LEVELS,
    Checked,
    Fault,
    Gap,
    Level,
    Origin,
    Ran,
    Stage,
    Verification,
    Written,
)
from refactor_tool.verify import build, stages, types
from refactor_tool.verify.locate import locate
from refactor_tool.verify.origin import trace

MODULE = "example.com/m"


def snapshot(files: Mapping[str, str]) -> Snapshot:
    return Snapshot({path: File(text.encode()) for path, text in files.items()})


def stage(before: Mapping[str, str], after: Mapping[str, str], *written: Written) -> Stage:
    cut = stages.of_change(snapshot(before), snapshot(after))
    return Stage("step", "", cut.before, cut.after, cut.changes, written)


def written(path: str, start: int, end: int, template: str, function: str = "", package: str = "") -> Written:
    return Written(
        path, start, end, Origin("codemod", path, start + 1, function, f"write {template}", template), package
    )


def fault(path: str, line: int | None, message: str = "wrong", function: str = "") -> Fault:
    return Fault(path, line, 1, message, "types", function)


# --- who made it ----------------------------------------------------------------------------------------

LINES = "".join(f"line {number}\n" for number in range(1, 21))


def replaced(*changes: tuple[int, str]) -> str:
    lines = LINES.splitlines(keepends=True)
    for number, text in changes:
        lines[number - 1] = text
    return "".join(lines)


AFTER = replaced((5, "new\nnew\nnew\n"), (15, "new\n"))
TWO = (written("a.go", 4, 7, "first", "Start"), written("a.go", 16, 17, "second", "Serve"))


@pytest.mark.parametrize(
    ("found", "template"),
    [
        pytest.param(fault("a.go", 6), "first", id="inside what was written"),
        pytest.param(fault("a.go", 17), "second", id="in the second part"),
        pytest.param(fault("a.go", 9), "first", id="on a line nobody wrote, nearer to the first"),
        pytest.param(fault("a.go", 14), "second", id="on a line nobody wrote, nearer to the second"),
        pytest.param(fault("a.go", None), "first", id="the file as a whole"),
        pytest.param(fault("b.go", 1, "missing method Serve"), "second", id="another file: what its message names"),
        pytest.param(fault("b.go", 1, "nothing known"), None, id="another file: nobody"),
    ],
)
def test_fault_is_traced(found: Fault, template: str | None) -> None:
    origin = trace(stage({"a.go": LINES}, {"a.go": AFTER}, *TWO), found)
    assert (origin.template if origin is not None else None) == template


def test_fault_in_a_new_file_is_its_template_s() -> None:
    cut = stage({}, {"new.go": LINES}, written("new.go", 0, 20, "file"))
    assert getattr(trace(cut, fault("new.go", 7)), "template", None) == "file"


def test_unused_import_is_of_who_asked_for_it() -> None:
    asked = written("a.go", 0, 0, "asker", package="errors")
    cut = stage({"a.go": LINES}, {"a.go": AFTER}, *TWO, asked)
    assert getattr(trace(cut, fault("a.go", 6, '"errors" imported and not used')), "template", None) == "asker"


BEFORE = b'package a\n\nimport "fmt"\n\nfunc F() {\n\tfmt.Println(1)\n}\n\nfunc G() {\n\tfmt.Println(2)\n}\n'


def edit(old: bytes, new: bytes | None) -> tuple[Span, int | None]:
    at = BEFORE.index(old)
    return Span(at, at + len(old)), None if new is None else len(new)


@pytest.mark.parametrize(
    ("made", "after", "lines"),
    [
        pytest.param(
            [edit(b"1", b"one"), edit(b"2", b"two")],
            BEFORE.replace(b"1", b"one").replace(b"2", b"two"),
            [(5, 6), (9, 10)],
            id="texts of known length",
        ),
        pytest.param(
            [edit(b"\tfmt.Println(1)\n", None), edit(b"2", b"two")],
            BEFORE.replace(b"\tfmt.Println(1)\n", b"\ta()\n\tb()\n\tc()\n").replace(b"2", b"two"),
            [(5, 8), (11, 12)],
            id="text that was rendered",
        ),
        pytest.param(
            [edit(b"1", b"one"), (Span(len(BEFORE), len(BEFORE)), None)],
            BEFORE.replace(b"1", b"one") + b"\nfunc H() {\n\tfmt.Println(3)\n}\n",
            [(5, 6), (12, 15)],
            id="text at the end that looks like what is before it",
        ),
        pytest.param(
            [edit(b"2", b"two")],
            BEFORE.replace(b'import "fmt"', b'import (\n\t"errors"\n\t"fmt"\n)').replace(b"2", b"two"),
            [(12, 13)],
            id="imports above have changed",
        ),
        pytest.param([edit(b"2", b"two")], b"package a\n", [(1, 2)], id="nothing is as it was"),
    ],
)
def test_edits_are_found_in_the_file_after_the_step(
    made: list[tuple[Span, int | None]], after: bytes, lines: list[tuple[int, int]]
) -> None:
    assert locate(BEFORE, after, made) == lines


# --- types ------------------------------------------------------------------------------------------------


def problem(path: str, line: int, message: str, package: str = MODULE) -> dict[str, Any]:
    decl = "F"
    return {
        "path": path,
        "line": line,
        "column": 2,
        "message": message,
        "package": package,
        "code": "undefined",
        "decl": decl,
    }


def answer(**more: Any) -> bytes:
    run = {"tree": "1 step", "config": "linux", "packages": 3, "errors": [], "not_verified": []}
    pair = {"before": "base", "after": "1 step", "config": "linux", "new": [], "gone": [], "newly_not_verified": []}
    told = {
        "schema": types.SCHEMA,
        "std": "source",
        "stopped": "",
        "trees": [
            {"name": name, "language": "", "not_verified": more.get("unseen", [])} for name in ("base", "1 step")
        ],
        "runs": [{**run, "config": config.name, "not_verified": more.get("gaps", [])} for config in BUILD_CONFIGS],
        "pairs": [
            {**pair, "config": config.name, "new": more.get("new", {}).get(config.name, [])}
            | {"newly_not_verified": more.get("newly", [])}
            for config in BUILD_CONFIGS
        ],
    }
    return json.dumps(told | more.get("top", {})).encode()


CUT = stage({"pkg/a/a.go": LINES}, {"pkg/a/a.go": AFTER})


def read(**more: Any) -> Checked:
    (checked,) = types.read(answer(**more), MODULE, (CUT,))
    return checked


def test_request_holds_each_blob_once_and_every_tree() -> None:
    told = json.loads(types.request(MODULE, (CUT,), "/go"))
    assert [tree["name"] for tree in told["trees"]] == ["base", "1 step"]
    assert sorted(told["blobs"].values()) == sorted((LINES, AFTER))
    assert [config["name"] for config in told["configs"]] == [config.name for config in BUILD_CONFIGS]


def test_bytes_that_are_no_text_are_asked_about_too() -> None:
    odd = Snapshot({"a\udcff.go": File(b"\xff")})
    told = json.loads(types.request(MODULE, (stages.of_tree(odd),), "/go"))
    assert list(told["blobs_base64"].values()) == ["/w=="]
    assert list(told["trees"][0]["files"]) == ["a\ufffd.go"]


def test_error_in_several_configurations_is_told_once() -> None:
    twice = [
        problem("pkg/a/a.go", 6, "undefined: x"),
        problem("pkg/a/a.go", 6, "undefined: x", f"{MODULE}/pkg/a [tests]"),
    ]
    checked = read(new={"linux": twice, "windows": twice[:1]})
    assert checked.status == "failed"
    (one,) = checked.faults
    assert (one.path, one.line, one.function, one.configs) == ("pkg/a/a.go", 6, "F", ("linux", "windows"))


@pytest.mark.parametrize(
    ("more", "status"),
    [
        pytest.param({}, "ok", id="all is looked at"),
        pytest.param(
            {"gaps": [{"package": f"{MODULE}/pkg/a [tests]", "reason": "syntax error"}]}, "not verified", id="touched"
        ),
        pytest.param({"gaps": [{"package": f"{MODULE}/pkg/b", "reason": "syntax error"}]}, "ok", id="not touched"),
        pytest.param(
            {
                "gaps": [{"package": f"{MODULE}/pkg/b", "reason": "too many errors"}],
                "newly": [{"package": f"{MODULE}/pkg/b", "reason": "too many errors"}],
            },
            "not verified",
            id="not touched, but new",
        ),
        pytest.param(
            {"unseen": [{"package": "", "path": "pkg/a/a.go", "reason": "no configuration selects the file"}]},
            "not verified",
            id="changed file that no configuration selects",
        ),
        pytest.param(
            {"unseen": [{"package": "", "path": "vendor", "reason": "3 files"}]}, "ok", id="folder nobody changed"
        ),
        pytest.param({"top": {"stopped": "stopped after 1 ms"}}, "not verified", id="stopped"),
        pytest.param({"top": {"std": "unknown: no source"}}, "not verified", id="no standard library"),
    ],
)
def test_what_was_not_looked_at_is_not_ok(more: dict[str, Any], status: str) -> None:
    checked = read(**more)
    assert checked.status == status
    assert bool(checked.gaps) == bool(more)


@pytest.mark.parametrize("said", [b"", b"{}", b'{"schema": "other/1"}', b"[1]"])
def test_answer_that_is_none_is_refused(said: bytes) -> None:
    with pytest.raises(EnvironmentFailure):
        types.read(said, MODULE, (CUT,))


# --- the go command -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "places", "gap"),
    [
        pytest.param("# m/a\nvet: a/a.go:3:4: undefined: x\n", ["a/a.go:3:4: undefined: x"], None, id="vet"),
        pytest.param("# m/a\n./a.go:3:4: undefined: x\n", ["a.go:3:4: undefined: x"], None, id="build at the top"),
        pytest.param("a/a.go:3: bad\na/b.go:1:1: worse\n", ["a/a.go:3:None: bad", "a/b.go:1:1: worse"], None, id="two"),
        pytest.param(
            "a/a.go:3:8: cannot find module providing package x: module lookup disabled by GOPROXY=off\n",
            [],
            build.NO_MODULES,
            id="dependency that is not there",
        ),
        pytest.param("go: updates to go.mod needed\n", [], build.NO_MODULES, id="go.mod is not complete"),
        pytest.param("go: go.mod requires go >= 1.999\n", [], "go", id="toolchain that is too old"),
        pytest.param("/outside/x.go:1:1: SECRET\n", [], "go", id="file outside the tree"),
        pytest.param("", [], "go", id="nothing"),
    ],
)
def test_output_of_go_is_read(output: str, places: list[str], gap: str | None) -> None:
    faults, missing = build.complaints(output.encode(), "linux")
    assert [f"{one.path}:{one.line}:{one.column}: {one.message}" for one in faults] == places
    assert (missing.what if missing is not None else None) == gap


def test_what_was_wrong_before_is_subtracted_by_count() -> None:
    old, new = fault("a.go", 3), fault("a.go", 9)
    assert build.added([old, new], [old]) == [new]
    assert build.added([new], [old]) == []


@pytest.mark.parametrize(
    ("line", "outer"),
    [
        pytest.param("replace x => ./stubs/x", [], id="inside the module"),
        pytest.param("replace x => ../stubs/x", [], id="inside the repository"),
        pytest.param("replace x => ../../x", ["x"], id="above the repository"),
        pytest.param("replace x => /abs", ["x"], id="absolute"),
        pytest.param("replace x v1.0.0 => ../../x", ["x"], id="one version"),
        pytest.param("replace (\n\tx => ../../x\n\ty => ./y\n)", ["x"], id="block"),
        pytest.param("replace x => y v1.2.3", [], id="another module"),
        pytest.param("// replace x => /abs", [], id="comment"),
        pytest.param('replace x => "/abs"', ["x"], id="quoted"),
        pytest.param("replace x => C:/x", ["x"], id="a drive"),
    ],
)
def test_replacement_outside_the_tree_is_seen(line: str, outer: list[str]) -> None:
    tree = snapshot({"go.mod": f"module {MODULE}\n\n{line}\n"})
    assert build.outside(tree, "sub/") == outer


def events(*told: Mapping[str, str]) -> build.Tested:
    return build.tested("\n".join(json.dumps(event) for event in told).encode() + b"\nnoise\n{broken\n")


def test_failed_test_is_told_at_its_place_and_only_its_part() -> None:
    package = f"{MODULE}/a"
    after = events(
        {"Action": "output", "Package": package, "Test": "T/part", "Output": "    x_test.go:7: no\n"},
        {"Action": "fail", "Package": package, "Test": "T/part"},
        {"Action": "fail", "Package": package, "Test": "T"},
        {"Action": "pass", "Package": package, "Test": "Other"},
        {"Action": "fail", "Package": package},
    )
    (one,) = build.failures(MODULE, after, None, "linux")
    assert (one.path, one.line, one.message) == ("a/x_test.go", 7, "T/part fails: no")
    assert after.passed == 1
    assert build.failures(MODULE, after, after, "linux") == []


@pytest.mark.parametrize(
    ("output", "says"),
    [
        pytest.param("panic: boom\n\ngoroutine 1\nexit status 2\n", "the tests fail: panic: boom", id="panic"),
        pytest.param("==\nWARNING: DATA RACE\nRead at\n", "the tests fail: WARNING: DATA RACE", id="race"),
        pytest.param("", "the tests fail: no output", id="silence"),
    ],
)
def test_package_that_ends_without_a_test_to_blame_is_a_fault(output: str, says: str) -> None:
    package = f"{MODULE}/a"
    told = events({"Action": "output", "Package": package, "Output": output}, {"Action": "fail", "Package": package})
    assert [(one.path, one.message) for one in build.failures(MODULE, told, None, "linux")] == [("a", says)]


def test_only_configurations_that_select_a_change_are_touched() -> None:
    cut = stage({"a/a.go": "1", "b/b.go": "1"}, {"a/a.go": "2", "a/a_windows.go": "1", "b/c.go": "1"})
    assert build.folders(cut) == ("./a", "./b")
    assert build.touched(cut, frozenset({"a/a.go", "b/c.go"})) == ("./a", "./b")
    assert build.touched(cut, frozenset({"a/other.go"})) == ()
    assert build.touched(cut, frozenset({"b/other.go"})) == ("./b",), "a file went"


def test_time_that_is_left_is_told_from_the_first_configuration_on(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("refactor_tool.commands.bench.seconds", lambda: now)
    told: list[str] = []
    pace = Pace("build", lambda what, at, total: told.append(f"{what} {at}/{total}"), BUILD_CONFIGS * 3)
    for took in (0, 40, 60, 10, 14, 70, 90, 6):
        now += took
        pace.begin()
    now += 20
    pace.tell()
    assert told == [
        "build: configuration 0/12",
        "build, 40 s so far, about 100 s left: configuration 1/12",  # 40 s for windows, ten times 15 % of that
        "build, 100 s so far, about 75 s left: configuration 2/12",  # 15 % of what the two took
        "build, 110 s so far, about 90 s left: configuration 3/12",  # nine times as long as that took
        "build, 2 min so far, about 80 s left: configuration 4/12",
        "build, 3 min so far, about 90 s left: configuration 5/12",  # one that takes long is not the measure
        "build, 5 min so far, about 76 s left: configuration 6/12",
        "build, 5 min so far, about 62 s left: configuration 7/12",
        "build, 5 min so far, about 48 s left: configuration 7/12",  # this one takes longer than it did
    ]


# --- the decision ---------------------------------------------------------------------------------------------


def verification(*ran: Ran, wanted: Level = "types") -> Verification:
    return Verification(CUT.after, "series", (CUT,), ran, wanted)


OK = Checked("types")
WRONG = Checked("types", ("linux",), (fault("pkg/a/a.go", 6),))
GAPPY = Checked("types", gaps=(Gap("pkg/b", "too large"),))
SPARED = Checked("types", gaps=(Gap("pkg/b", "of no concern", blocks=False),))


@pytest.mark.parametrize(
    ("ran", "code", "says"),
    [
        pytest.param((Ran("types", (OK,)),), 0, "verified at level types: 1 step, no new error", id="verified"),
        pytest.param((Ran("types", (SPARED,)),), 0, "verified at level types", id="gap elsewhere"),
        pytest.param((Ran("types", (WRONG,)),), 1, "failed: 1 new error", id="new error"),
        pytest.param((Ran("types", (GAPPY,)),), 3, "not verified: level types is not proven", id="gap"),
        pytest.param((Ran("types", reason="no Go", lacking=True),), 3, "not verified: level types", id="no toolchain"),
        pytest.param(
            (Ran("types", (WRONG,)), Ran("build", reason="level types failed")), 1, "failed: 1 new error", id="no climb"
        ),
    ],
)
def test_exit_code_says_what_was_proven(ran: tuple[Ran, ...], code: int, says: str) -> None:
    result = verification(*ran)
    assert gravest(result.codes) == code
    text = render_text(result, ExitCode(code), Paint(colour=False))
    assert text.splitlines()[-1].startswith(says)
    assert json.loads(render_json(result, ExitCode(code)))["summary"]["exit_code"] == code


def test_text_shows_no_control_characters_of_the_tree() -> None:
    evil = Checked("types", ("linux",), (Fault("a\x1b[2J.go", 1, 1, "\x1b]0;x\x07##[error]", "types"),))
    text = render_text(verification(Ran("types", (evil,))), ExitCode.FINDINGS, Paint(colour=False))
    assert "\x1b" not in text
    assert "##[" not in text


def test_levels_are_told_in_order_of_their_cost() -> None:
    ran = tuple(Ran(level, reason="not asked for") for level in LEVELS)
    text = render_text(verification(*ran, wanted="syntax"), ExitCode.CLEAN, Paint(colour=False))
    assert [line.split()[0] for line in text.splitlines() if "not asked for" in line] == list(LEVELS)


def test_plan_json_of_another_tool_gives_no_names() -> None:
    base = snapshot({"a.go": LINES})
    patches = [("0001-do.patch", stages.of_change(base, snapshot({"a.go": AFTER})).changes)]
    for told in (None, b"", b"{", b'{"schema": "other/1", "steps": [{"id": "x"}]}', b'{"schema": "refactor-tool/1"}'):
        assert [one.id for one in stages.of_series(base, patches, told)] == ["0001-do"]


def test_file_change_without_before_is_a_new_file() -> None:
    cut = stages.of_change(snapshot({"a.go": "1"}), snapshot({"b.go": "1"}))
    assert cut.changes == (
        FileChange("a.go", File(b"1"), None),
        FileChange("b.go", None, File(b"1")),
    )
