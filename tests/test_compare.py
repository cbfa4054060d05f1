"""Our series beside a real change: by declaration, wherever it went; in numbers; with the hazards of each side."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from refactor_tool.compare import Comparison, Unit, compare
from refactor_tool.model import File
from tests import gotree
from tests.command import run
from tests.repo import Repo
from tests.small_trees import fingerprint
from tests.test_table import validate
from tests.trees import Files, after, before, edited, without

A, B = "pkg/a/a.go", "pkg/a/b.go"
HEAD = "package a\n"
BASE = {
    A: f"{HEAD}\n// F is one.\nfunc F() int {{\n\tx := 1\n\treturn x\n}}\n\ntype T struct{{}}\n\nfunc (t *T) M() {{}}\n"
}
ONE, TWO = "x := 1", "x := 2"


def tree(files: dict[str, str]) -> Any:
    return gotree.of({"go.mod": "module example.com/m\n\ngo 1.23\n"} | files)


def changed(old: str, new: str, path: str = A) -> dict[str, str]:
    assert BASE[path].count(old) == 1
    return BASE | {path: BASE[path].replace(old, new)}


def units(ours: dict[str, str], theirs: dict[str, str], base: dict[str, str] = BASE) -> dict[str, Unit]:
    found = compare(tree(base), tree(ours), tree(theirs)).units
    assert list(found) == sorted(found, key=lambda unit: (unit.path, unit.name))
    return {f"{unit.path} {unit.name}": unit for unit in found}


def told(ours: dict[str, str], theirs: dict[str, str], base: dict[str, str] = BASE) -> dict[str, str]:
    return {key: unit.verdict for key, unit in units(ours, theirs, base).items()}


FUNCTION = BASE[A][BASE[A].index("// F is") : BASE[A].index("\ntype T")]
WITHOUT_F = changed(FUNCTION, "")
F_IN_B = WITHOUT_F | {B: f"{HEAD}\n{FUNCTION}"}


# --- what became of a declaration -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "theirs", "wanted"),
    [
        pytest.param(BASE, BASE, {}, id="nobody changed anything"),
        pytest.param(changed(ONE, TWO), changed(ONE, TWO), {f"{A} F": "same"}, id="alike"),
        pytest.param(changed(ONE, TWO), BASE, {f"{A} F": "ours only"}, id="ours"),
        pytest.param(BASE, changed(ONE, TWO), {f"{A} F": "theirs only"}, id="theirs"),
        pytest.param(changed(ONE, TWO), changed(ONE, "x := 3"), {f"{A} F": "different"}, id="both, not alike"),
        pytest.param(
            changed("one.\nfunc F", "two.\nfunc F"), BASE, {f"{A} F": "ours only"}, id="the comment belongs to it"
        ),
        pytest.param(changed("type T struct{}", "type T struct{ x int }"), BASE, {f"{A} type T": "ours only"}, id="type"),
        pytest.param(changed("M() {}", "M() { println() }"), BASE, {f"{A} (*T).M": "ours only"}, id="method"),
        pytest.param(
            changed(HEAD, f'{HEAD}\nimport "fmt"\n'), BASE, {f"{A} (file)": "ours only"}, id="rest of the file"
        ),
        pytest.param(BASE | {B: f"{HEAD}\nvar x, y = 1, 2\n"}, BASE,
                     {f"{B} (file)": "ours only", f"{B} var x, y": "ours only"}, id="new file"),
        pytest.param({}, BASE, {f"{A} {name}": "ours only" for name in ("F", "type T", "(*T).M", "(file)")},
                     id="file gone"),
        pytest.param({}, {}, {f"{A} {name}": "same" for name in ("F", "type T", "(*T).M", "(file)")},
                     id="gone on both sides"),
        pytest.param(WITHOUT_F, changed(ONE, TWO), {f"{A} F": "different"}, id="gone here, changed there"),
        pytest.param(WITHOUT_F, WITHOUT_F, {f"{A} F": "same"}, id="function gone on both sides"),
        pytest.param(F_IN_B, BASE, {f"{A} F": "ours only", f"{B} (file)": "ours only"}, id="moved by us"),
        pytest.param(F_IN_B, F_IN_B, {f"{A} F": "same", f"{B} (file)": "same"}, id="moved by both"),
        pytest.param(
            F_IN_B, changed(ONE, TWO), {f"{A} F": "different", f"{B} (file)": "ours only"}, id="moved and changed"
        ),
        pytest.param(
            changed("M() {}", "M() {}\n\nfunc init() {}\n\nfunc init() { println() }"),
            changed("M() {}", "M() {}\n\nfunc init() {}\n\nfunc init() {}"),
            {f"{A} init": "same", f"{A} init #2": "different"},
            id="names that may be there twice",
        ),
    ],
)  # fmt: skip
def test_declaration_is_compared_by_name(ours: Any, theirs: Any, wanted: dict[str, str]) -> None:
    assert told(ours, theirs) == wanted
    mirrored = {"ours only": "theirs only", "theirs only": "ours only"}
    assert told(theirs, ours) == {key: mirrored.get(verdict, verdict) for key, verdict in wanted.items()}


def test_what_both_add_in_other_files_is_compared() -> None:
    ours, theirs = (BASE | {path: f"{HEAD}\nfunc New() {{}}\n"} for path in (B, "pkg/a/c.go"))
    found = units(ours, theirs)
    assert {key: (unit.verdict, unit.is_new, unit.theirs) for key, unit in found.items()} == {
        f"{B} {name}": ("different", True, "pkg/a/c.go") for name in ("New", "(file)")
    }
    assert all(unit.similarity == 1.0 for unit in found.values())


def test_renamed_file_is_no_change_of_what_is_in_it_but_its_place() -> None:
    renamed = {B: BASE[A]}
    found = units(renamed, changed(ONE, TWO))
    assert {key: unit.verdict for key, unit in found.items()} == {
        f"{A} F": "different",
        **{f"{A} {name}": "ours only" for name in ("type T", "(*T).M", "(file)")},
    }
    assert {unit.ours for unit in found.values()} == {B}
    assert {unit.theirs for unit in found.values()} == {A}


def test_function_of_another_package_is_the_moved_one_only_if_it_is_much_the_same() -> None:
    moved = WITHOUT_F | {"pkg/b/b.go": f"package b\n\n{FUNCTION}"}
    other = WITHOUT_F | {"pkg/b/b.go": "package b\n\nfunc F() {\n\tprintln()\n}\n"}
    assert units(moved, BASE)[f"{A} F"].ours == "pkg/b/b.go"
    found = units(other, BASE)
    assert found[f"{A} F"].ours == ""
    assert found["pkg/b/b.go F"].is_new


def test_two_new_functions_of_a_name_are_no_move() -> None:
    twice = WITHOUT_F | {"pkg/b/b.go": f"package b\n\n{FUNCTION}", "pkg/c/c.go": f"package c\n\n{FUNCTION}"}
    assert units(twice, BASE)[f"{A} F"].ours == ""


@pytest.mark.parametrize(
    ("ours", "theirs", "similarity"),
    [(TWO, TWO, 1.0), (TWO, "x := 3", 0.8), ("y", "z", 0.8)],
    ids=["same", "one line of five", "other words do not count as alike"],
)
def test_similarity_is_of_lines(ours: str, theirs: str, similarity: float) -> None:
    assert units(changed(ONE, ours), changed(ONE, theirs))[f"{A} F"].similarity == pytest.approx(similarity)


def test_sides_say_where_they_have_it() -> None:
    unit = units(F_IN_B, WITHOUT_F)[f"{A} F"]
    assert (unit.path, unit.ours, unit.theirs, unit.is_new) == (A, B, "", False)


# --- numbers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "theirs", "wanted"),
    [
        pytest.param(BASE, BASE, (0, 0, 0, 1.0), id="nothing"),
        pytest.param(changed(ONE, TWO), changed(ONE, TWO), (2, 2, 2, 1.0), id="alike"),
        pytest.param(changed(ONE, TWO), changed(ONE, "x := 3"), (1, 2, 2, 1 / 3), id="one line out, another in"),
        pytest.param(changed(ONE, TWO), BASE, (0, 2, 0, 0.0), id="one side"),
        pytest.param(changed(ONE, f"{ONE}\n\n\n"), BASE, (0, 0, 0, 1.0), id="empty lines do not count"),
        pytest.param(changed(f"\t{ONE}", f"\t\t{TWO}"), changed(ONE, TWO), (2, 2, 2, 1.0), id="nor does indentation"),
    ],
)
def test_lines_are_counted(ours: Any, theirs: Any, wanted: tuple[int, int, int, float]) -> None:
    found: Comparison = compare(tree(BASE), tree(ours), tree(theirs))
    assert (found.alike, found.ours, found.theirs, pytest.approx(found.similarity)) == wanted


def test_order_of_files_does_not_matter() -> None:
    files = BASE | {B: f"{HEAD}\nfunc G() {{}}\n"}
    turned = dict(reversed(files.items()))
    assert compare(tree(files), tree(F_IN_B), tree({})) == compare(tree(turned), tree(F_IN_B), tree({}))


# --- the command ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def k3s(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """The fixture, then what others made of it: our own result, nothing, a change by hand, and a broken file."""
    repo = Repo(tmp_path_factory.mktemp("compare") / "k3s")
    api = "pkg/util/api.go"
    by_hand = edited(before(), api, "healthStatus := 0", "healthStatus := 1")
    trees: dict[str, Files] = {
        "before": before(),
        "after": after(),
        "by-hand": without(by_hand, "pkg/certmonitor/certmonitor.go"),
        "broken": edited(before(), api, "func WaitForAPIServerReady(", "func WaitForAPIServerReady(("),
        "lacking": edited(before(), "pkg/agent/run.go", "close(cfg.ContainerRuntimeReady)", "println()"),
        "other": {"go.mod": File(b"module example.org/m\n"), "main.go": File(b"package main\n")},
    }
    for name, files in trees.items():
        repo.commit(files, name)
        repo.git("tag", name)
    return repo


def document(*args: str | Path, code: int = 0, **kwargs: Any) -> dict[str, Any]:
    ran = run("compare", *args, "--format", "json", **kwargs)
    assert (ran.code, ran.err) == (code, "")
    found: dict[str, Any] = json.loads(ran.out)
    validate(found, "compare.schema.json")
    return found


def test_our_own_result_is_the_same_in_everything(k3s: Repo) -> None:
    found = document(k3s.path, "before..after")
    assert {unit["verdict"] for unit in found["units"]} == {"same"}
    assert found["summary"]["similarity"] == 1.0
    assert found["summary"]["lines"]["alike"] == found["summary"]["lines"]["ours"] > 1000
    assert found["hazards"]["ours"] == found["hazards"]["theirs"]
    assert (len(found["steps"]), found["pending"], found["range"]) == (7, [], "before..after")


def test_unchanged_range_has_only_ours(k3s: Repo) -> None:
    found = document(k3s.path, "before..before")
    assert {unit["verdict"] for unit in found["units"]} == {"ours only"}
    assert found["summary"]["lines"]["theirs"] == 0
    assert found["new_hazards"]["theirs"] == []


def test_range_of_which_all_is_done_has_only_theirs(k3s: Repo) -> None:
    found = document(k3s.path, "after..before")
    assert {unit["verdict"] for unit in found["units"]} == {"theirs only"}
    assert found["steps"] == []


def test_current_folder_is_meant_without_a_path(k3s: Repo) -> None:
    assert document("before..after", cwd=k3s.path) == document(k3s.path, "before..after")


def test_text_tells_units_numbers_and_hazards(k3s: Repo) -> None:
    ran = run("compare", k3s.path, "before..by-hand")
    text = ran.out.decode()
    lines = text.split("\n")
    assert (ran.code, ran.err) == (0, "")
    assert lines[0].startswith("before..by-hand: 0 same, 1 different, ")
    assert lines[1].startswith("changed lines: ")
    assert "\npkg/util/api.go\n" in text
    assert "  different   WaitForAPIServerReady (" in text
    assert "  ours only   NotifyAPIServerReady (new)\n" in text
    assert "  theirs only type Cluster" not in text
    assert "  theirs only (file) (deleted by theirs)\n" in text
    assert re.search(r"^hazards +base +ours +theirs$", text, re.MULTILINE)
    assert re.search(r"^  L01 +[1-9][0-9]* +0 +[1-9][0-9]*$", text, re.MULTILINE)
    assert "\x1b" not in text


def test_partial_series_is_compared_as_far_as_it_goes_and_said_so(k3s: Repo) -> None:
    found = document(k3s.path, "lacking..lacking", code=1)
    assert [each["id"] for each in found["pending"]] == ["cri-ready"]
    assert "cri-ready" not in found["steps"]
    assert found["steps"]
    assert "not in ours cri-ready: " in run("compare", k3s.path, "lacking..lacking").out.decode()


@pytest.mark.parametrize("revisions", ["before", "before..", "..after", "..", "before...after"])
def test_what_is_no_range_is_refused(k3s: Repo, revisions: str) -> None:
    ran = run("compare", k3s.path, revisions)
    assert (ran.code, ran.out) == (2, b"")
    assert f"refactor-tool: {revisions!r} is not REV..REV\n" in ran.err


@pytest.mark.parametrize(
    ("revisions", "code", "words"),
    [
        pytest.param("before..nope", 3, "'nope' is not a commit here", id="no such revision"),
        pytest.param("nope..before", 3, "'nope' is not a commit here", id="no such base"),
        pytest.param("before..--x", 2, "'--x' is not a ref", id="option"),
        pytest.param("broken..after", 5, "pkg/util/api.go:", id="base that is not Go"),
        pytest.param("other..after", 4, "has no readiness to move", id="base that is not k3s"),
    ],
)
def test_what_cannot_be_compared_is_one_line(k3s: Repo, revisions: str, code: int, words: str) -> None:
    ran = run("compare", k3s.path, revisions)
    assert (ran.code, ran.out) == (code, b"")
    assert words in ran.err.split("\n")[0]


def test_too_many_words_are_refused(k3s: Repo) -> None:
    assert run("compare", k3s.path, "before..after", "x").code == 2


def test_repository_is_untouched(k3s: Repo) -> None:
    before_run = fingerprint(k3s.path)
    run("compare", k3s.path, "before..after")
    assert fingerprint(k3s.path) == before_run


def test_same_range_same_bytes(k3s: Repo) -> None:
    first, second = (run("compare", k3s.path, "before..by-hand", "--format", "json") for _ in range(2))
    assert first == second


# --- the hand-made change of the issue ------------------------------------------------------------------


@pytest.fixture(scope="module")
def by_hand(corpus: Path) -> dict[str, Any]:
    return document(corpus / "k3s.git", "before/pr-base..after/etcd")


def test_hand_made_change_and_ours_in_numbers(by_hand: dict[str, Any]) -> None:
    """Stable figures: what target.md says is meant to differ does, and what is mechanical is alike."""
    summary = by_hand["summary"]
    assert summary["units"]["same"] >= 24
    assert summary["lines"]["theirs"] == 800
    assert 0.15 < summary["similarity"] < 0.3
    same = {f"{unit['path']} {unit['name']}" for unit in by_hand["units"] if unit["verdict"] == "same"}
    assert same >= {
        "pkg/cli/cmds/agent.go type Agent",
        "pkg/cluster/managed.go (*Cluster).testClusterDB",
        "pkg/daemons/config/types.go NewRuntime",
        "pkg/daemons/config/types.go type ControlRuntime",
        "pkg/daemons/control/server.go apiServer",
        "pkg/daemons/control/server.go controllerManager",
        "pkg/daemons/control/server.go waitForAPIServerInBackground",
        "pkg/daemons/executor/executor.go APIServerReadyChan",
        "pkg/daemons/executor/executor.go ETCD",
        "pkg/daemons/executor/executor.go Scheduler",
    }


def test_what_the_hand_made_change_moves_is_found(by_hand: dict[str, Any]) -> None:
    moved = {unit["name"]: unit["theirs"] for unit in by_hand["units"] if unit["theirs"] not in (None, unit["path"])}
    assert moved["Connection"] == "pkg/agent/cri/cri.go"
    assert moved["(*Embedded).APIServerReadyChan"] == "pkg/daemons/executor/embed.go"


def test_ours_brings_no_hazard_of_a_wait_that_the_base_lacks(by_hand: dict[str, Any]) -> None:
    count = {side: [each["id"] for each in said] for side, said in by_hand["hazards"].items()}
    for rule in ("L01", "L02"):
        assert count["ours"].count(rule) == 0
        assert count["base"].count(rule) > 0
        assert count["theirs"].count(rule) > count["base"].count(rule), (
            "theirs waits without a context, and closes early"
        )
    # the start of etcd moves into a function of its own, and what it logs fatally goes with it
    assert "startETCD" in [each["function"] for each in by_hand["hazards"]["ours"] if each["id"] == "L08"]
    assert [each["id"] for each in by_hand["new_hazards"]["ours"]] == ["D3"]
