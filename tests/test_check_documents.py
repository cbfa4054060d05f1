"""What check hands on: documents that keep to the published schema, and fixes that are exact to the byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from refactor_tool import edits, engine
from refactor_tool.codemods import SUITE
from refactor_tool.gosrc.parse import ParseCache
from refactor_tool.model import LineIndex, Span
from refactor_tool.world.templates import load_templates
from refactor_tool.world.tree import read_tree
from tests import trees
from tests.command import FIXTURE, ROOT, run
from tests.repo import Repo
from tests.test_check import fifth

RESULT = jsonschema.Draft202012Validator(json.loads((ROOT / "schemas/result.schema.json").read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", ["result", "config"])
def test_schema_is_one(name: str) -> None:
    schema = json.loads((ROOT / f"schemas/{name}.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize(
    "args",
    [["scan"], ["plan"], ["check"], ["check", "--rules", "all"], ["check", "--fail-on", "never"]],
    ids=" ".join,
)
def test_document_keeps_to_the_schema(args: list[str]) -> None:
    command, *options = args
    RESULT.validate(json.loads(run(command, "--format", "json", *options, FIXTURE).out))


@pytest.mark.parametrize("place", ["findings", "gate"])
def test_schema_sees_what_is_wrong(place: str) -> None:
    document = json.loads(run("check", "--format", "json", FIXTURE).out)
    broken: Any = document["findings"] if place == "findings" else document["gate"]["results"]
    broken[0]["line"] = 0
    with pytest.raises(jsonschema.ValidationError):
        RESULT.validate(document)


def test_check_adds_to_the_document_of_scan_and_changes_nothing() -> None:
    scanned = json.loads(run("scan", "--format", "json", FIXTURE).out)
    checked = json.loads(run("check", "--format", "json", FIXTURE).out)
    del checked["gate"]
    assert checked == scanned


def test_results_are_the_open_findings_of_the_document() -> None:
    document = json.loads(run("check", "--format", "json", "--rules", "all", FIXTURE).out)
    open_ones = [found for found in document["findings"] if found["severity"] is not None]
    results = document["gate"]["results"]
    assert [found["fingerprint"] for found in open_ones] == [result["fingerprint"] for result in results]
    for found, result in zip(open_ones, results, strict=True):
        assert {key: found[key] for key in ("id", "path", "line", "column", "severity")} == {
            key: result[key] for key in ("id", "path", "line", "column", "severity")
        }


# --- fixes --------------------------------------------------------------------------------------------


def replaced(data: bytes, replacements: list[dict[str, Any]]) -> bytes:
    """Return a file with SARIF's replacements made by bytes, after a look that the lines say the same."""
    index = LineIndex(data)
    made = []
    for each in replacements:
        region = each["deletedRegion"]
        span = Span(region["byteOffset"], region["byteOffset"] + region["byteLength"])
        start, end = index.position(span.start), index.position(span.end)
        assert (start.line, start.column, end.line, end.column) == (
            region["startLine"],
            region["startColumn"],
            region["endLine"],
            region["endColumn"],
        )
        made.append((span, each["insertedContent"]["text"].encode()))
    return edits.apply(data, made)


def in_fixture(place: dict[str, Any]) -> str:
    """Return the path in the fixture of a place, which SARIF names from the top of this repository."""
    return str(place["artifactLocation"]["uri"]).removeprefix(read_tree(FIXTURE).prefix)


def test_fixes_are_exact_to_the_byte_and_whole() -> None:
    snapshot = read_tree(FIXTURE)
    cache = ParseCache()
    scanned = engine.scan(snapshot, SUITE, cache=cache)
    wanted = {
        (finding.id, finding.message, finding.path, finding.span): {
            change.path: change.after.data if change.after is not None else None for change in changes
        }
        for finding, changes in engine.fixes(scanned, SUITE, load_templates(), cache)
    }
    log = json.loads(run("check", "--format", "sarif", FIXTURE).out)["runs"][0]
    rewrites = [result for result in log["results"] if result["properties"]["verdict"] == "rewrite"]
    assert len(rewrites) > 100
    seen = 0
    for result in rewrites:
        region = result["locations"][0]["physicalLocation"]["region"]
        span = Span(region["byteOffset"], region["byteOffset"] + region["byteLength"])
        path = in_fixture(result["locations"][0]["physicalLocation"])
        expected = next(
            files
            for (id, message, where, at), files in wanted.items()
            if (id, where, at) == (result["ruleId"], path, span) and message in result["message"]["text"]
        )
        (fix,) = result["fixes"]
        changed = {in_fixture(change): change["replacements"] for change in fix["artifactChanges"]}
        assert set(changed) == set(expected)
        for name, replacements in changed.items():
            before = snapshot.files[name].data if name in snapshot.files else b""
            assert replaced(before, replacements) == expected[name]
            seen += 1
    assert seen > 100


def test_fixes_of_the_first_step_together_are_that_step() -> None:
    planned = engine.plan(read_tree(FIXTURE), SUITE, load_templates())
    first = planned.steps[0]
    log = json.loads(run("check", "--format", "sarif", FIXTURE).out)["runs"][0]
    (result,) = [result for result in log["results"] if result["ruleId"] == first.id]
    (fix,) = result["fixes"]
    made = {
        path: replaced(planned.base.files[path].data if path in planned.base.files else b"", change["replacements"])
        for change in fix["artifactChanges"]
        for path in [in_fixture(change)]
    }
    assert made == {change.path: change.after.data for change in first.changes if change.after is not None}


def test_half_of_a_rewrite_is_never_suggested(tmp_path: Path) -> None:
    document = json.loads(run("check", "--format", "rdjson", FIXTURE).out)
    log = json.loads(run("check", "--format", "sarif", FIXTURE).out)["runs"][0]
    suggested = 0
    for item, result in zip(document["diagnostics"], log["results"], strict=True):
        changes = [change for fix in result.get("fixes", ()) for change in fix["artifactChanges"]]
        if "suggestions" in item:
            suggested += 1
            ((change,), (suggestion,)) = changes, item["suggestions"]
            (replacement,) = change["replacements"]
            assert suggestion["text"] == replacement["insertedContent"]["text"]
            assert suggestion["range"]["start"]["line"] == replacement["deletedRegion"]["startLine"]
        else:
            assert len(changes) != 1 or len(changes[0]["replacements"]) != 1
    assert suggested > 10


# --- the campaign, from before to after ---------------------------------------------------------------


def test_gate_follows_the_campaign(tmp_path: Path) -> None:
    """Before: 1 and the steps. After apply: 0. One site undone by hand: 1 and its name."""
    repo = Repo(tmp_path / "k3s")
    repo.commit(trees.before())
    ran = run("check", repo.path)
    assert ran.code == 1
    for codemod in SUITE:
        assert codemod.id in ran.last
    assert run("apply", repo.path, "--branch", "moved").code == 0
    assert run("check", repo.path, "--ref", "moved").code == 0
    repo.git("checkout", "-q", "moved")
    assert run("check", repo.path).code == 0
    (repo.path / "pkg/agent/tunnel/tunnel.go").write_bytes(trees.before()["pkg/agent/tunnel/tunnel.go"].data)
    ran = run("check", repo.path)
    assert ran.code == 1
    assert b"pkg/agent/tunnel/tunnel.go:" in ran.out and "apiserver-ready" in ran.last


def test_baseline_survives_moved_lines_and_reordered_functions(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "k3s")
    repo.commit(fifth())
    accepted = tmp_path / "accepted"
    assert run("check", repo.path, "--baseline", accepted, "--write-baseline").code == 0
    first = accepted.read_bytes()
    text = fifth()["pkg/agent/extra.go"].data.decode()
    head, body = text.split("func extra", 1)
    (repo.path / "pkg/agent/extra.go").write_text(
        f"{head}// moved\n\nfunc other() {{}}\n\nfunc extra{body}\nfunc last() {{}}\n"
    )
    assert run("check", repo.path, "--baseline", accepted).code == 0
    assert run("check", repo.path, "--baseline", accepted, "--write-baseline").code == 0
    assert accepted.read_bytes() == first


# --- real trees ---------------------------------------------------------------------------------------


def test_gate_on_the_tree_of_the_issue(corpus: Path) -> None:
    ran = run("check", corpus / "k3s.git", "--ref", "before/issue")
    assert ran.code == 1
    for codemod in SUITE:
        assert codemod.id in ran.last


def test_gate_on_the_tree_that_the_series_makes(corpus: Path, tmp_path: Path) -> None:
    repo = Repo(tmp_path / "k3s")
    repo.take(corpus / "k3s.git", "before/issue")
    assert run("apply", repo.path, "--branch", "moved").code == 0
    ran = run("check", repo.path, "--ref", "moved")
    assert ran.code == 0, ran.last


@pytest.mark.parametrize("ref", ["after/etcd", "later/2025-06", "later/2025-11", "later/2026-04"])
def test_gate_has_nothing_pending_after_upstream_moved(corpus: Path, ref: str) -> None:
    document = json.loads(run("check", corpus / "k3s.git", "--ref", ref, "--rules", "all", "--format", "json").out)
    assert document["gate"]["pending"] == []
    assert [result for result in document["gate"]["results"] if result["verdict"] != "hazard"] == []
    assert run("check", corpus / "k3s.git", "--ref", ref).code == 0
