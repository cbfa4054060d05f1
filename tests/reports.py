"""A report with one of everything in it, and what each format tells of it, read back."""

from __future__ import annotations

import html
import json
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Callable
from typing import Any

from refactor_tool import gate
from refactor_tool.model import ExitCode, File, Finding, Leave, Manual, Plan, Problem, Rewrite, Snapshot, Span
from refactor_tool.outcome import Accepted, Baseline, FailOn, Report, RuleInfo, Suppression
from refactor_tool.report.document import fingerprints
from refactor_tool.report.formats import render
from refactor_tool.report.text import Paint, printable

#: Text that tries to be a command of a CI runner, a terminal, a spreadsheet or markup.
HOSTILE = (
    "\n::set-output name=x::y\r::error file=a::b %0A##[add-mask]x ##vso[task.complete] \x1b[31mred\x1b[0m "
    "<script>alert(1)</script> ]]> & \"'`` | [a](javascript:x) ![b](http://c) @team =cmd|' /C calc'!A1 {0} \u202e\x00\u2028"
)
#: File names of the same kind, one of them not UTF-8.
HOSTILE_PATHS = (
    "pkg/\n::error::x.go",
    "pkg/\x1b[2J.go",
    "pkg/a,b:c%2Cd.go",
    "pkg/\udcff.go",
    "pkg/<b>&'\".go",
    "pkg/ü z.go",
)
RULES = tuple(
    RuleInfo(id, f"title of {id}", f"help for {id}", "https://example.org/why" if id == "step-one" else "")
    for id in ("step-one", "step-two", "L01", "L13", "audit")
)
GO = (
    b"package p\n\nfunc f() {\n\tg()\n\th()\n\t\xc3\xbcber(\xff) // x\n\tg()\n}\n"
    b"::error::forged ##[warning]forged \x1b[2J \xe2\x80\xae k() \r\n" + b"x" * 100_000 + b" huge()" + b"y" * 100_000
)


def plan(*findings: Finding, files: dict[str, bytes] | None = None, problems: tuple[Problem, ...] = ()) -> Plan:
    """Return a scan of the files that the findings name, or of `files`."""
    contents = {finding.path: GO for finding in findings} | (files or {})
    snapshot = Snapshot({path: File(data) for path, data in contents.items()})
    ordered = tuple(sorted(findings, key=lambda found: (found.path, found.span, found.id)))
    return Plan(base=snapshot, findings=ordered, steps=(), final=snapshot, problems=problems)


def finding(id: str = "step-one", path: str = "pkg/a.go", text: bytes = b"g()", nth: int = 0, **more: Any) -> Finding:
    """Return a finding at the nth place of a text in `GO`; a codemod's rewrite unless `more` says otherwise."""
    starts = [found.start() for found in re.finditer(re.escape(text), GO)]
    kind = "audit" if id == "audit" else "rule" if id.startswith("L") else "codemod"
    values = {"verdict": Rewrite(()), "message": f"message of {id}", "function": "f"} | more
    return Finding(id, kind, path, Span(starts[nth], starts[nth] + len(text)), **values)


def everything(fail_on: FailOn = "error") -> Report:
    """Return a report with every severity, verdict and status, hostile text in every place that takes any."""
    warn = Manual("reason", "instruction", blocks=False)
    head = plan(
        finding(),
        finding("step-two", text=b"h()", verdict=Manual(HOSTILE, HOSTILE), message=HOSTILE, function=HOSTILE),
        finding("L01", path="pkg/b.go", verdict=warn, severity="warning"),
        finding("L13", path="pkg/b.go", text=b"h()", verdict=warn, severity="info"),
        finding("audit", path="pkg/b.go", text="über(".encode(), verdict=Manual("nobody knows")),
        finding("step-one", path="pkg/b.go", nth=1, verdict=Leave("rightly so")),
        finding("L01", path="pkg/b.go", text=b"k()", verdict=warn, severity="error"),
        finding("L01", path="pkg/b.go", text=b"huge()", verdict=warn, severity="error"),
        finding("step-one", path="pkg/old.go"),
        finding("step-one", path="pkg/old.go", nth=1),
        finding("step-two", path="pkg/suppressed.go"),
        *(finding("step-one", path=path, message=HOSTILE) for path in HOSTILE_PATHS),
        problems=(Problem(ExitCode.NOTHING_SCANNED, f"the site x is missing {HOSTILE}", "pkg/a.go", 3, "step-one"),),
    )
    comments = (
        comment("pkg/suppressed.go", 3, 4, "step-two", f"because {HOSTILE}"),
        comment("pkg/suppressed.go", 7, 8, "step-one", "of no use"),
        comment("pkg/suppressed.go", 8, 8, "step-oen", "misspelt"),
    )
    accepted = {
        found.function + str(at): name
        for at, (found, name) in enumerate(zip(head.findings, fingerprints(head), strict=True))
        if found.path == "pkg/b.go" and found.id == "L13"
    }
    entries = [Accepted("pkg/b.go", "L13", "f", name, "message of L13", "", 2) for name in accepted.values()]
    entries.append(Accepted("pkg/gone.go", "L01", "f", "0" * 20, HOSTILE, "", 3))
    return gate.judge(
        gate.Examined(head, comments),
        RULES,
        fail_on=fail_on,
        today="2026-11-30",
        base=gate.Examined(plan(finding("step-one", path="pkg/old.go"))),
        base_name="main",
        baseline=Baseline(
            "accepted.jsonl", tuple(entries), "refactor-tool check --baseline accepted.jsonl --write-baseline"
        ),
    )


def comment(path: str, first: int, last: int, rule: str, reason: str, until: str = "", fault: str = "") -> Suppression:
    return Suppression(path, Span(0, 9), first, first, last, rule, reason, until, fault)


def told(name: str, data: bytes) -> Counter[tuple[str, str, int, bool]]:
    """Return what a format tells, read back: rule, path as shown, line, and whether it is open."""
    return Counter(_READERS[name](data.decode()))


def facts(report: Report) -> Counter[tuple[str, str, int, bool]]:
    """Return what every format must tell of a report."""
    return Counter(
        (result.id, printable(result.path), result.start.line, result.status == "open") for result in report.results
    )


def shown(name: str, report: Report) -> bytes:
    return render(name, report, Paint(colour=False))


Row = tuple[str, str, int, bool]


def _json(text: str) -> list[Row]:
    return [
        (item["id"], printable(item["path"]), item["line"], item["status"] == "open")
        for item in json.loads(text)["gate"]["results"]
    ]


def _sarif(text: str) -> list[Row]:
    rows = []
    for item in json.loads(text)["runs"][0]["results"]:
        place = item["locations"][0]["physicalLocation"]
        uri = place["artifactLocation"]["uri"]
        path = re.sub(r"%([0-9A-F]{2})", lambda found: chr(int(found[1], 16)), uri)
        path = path.encode("latin-1").decode("utf-8", "surrogateescape")
        is_open = "suppressions" not in item and item.get("baselineState") != "unchanged"
        rows.append((item["ruleId"], printable(path), place["region"]["startLine"], is_open))
    return rows


def _junit(text: str) -> list[Row]:
    rows = []
    for case in ElementTree.fromstring(text).iter("testcase"):
        if case.get("name") == "gate":
            continue
        (verdict,) = case
        found = re.match(r"(.*?):(\d+):\d+: (?:error|warning|info): ", verdict.text or "")
        assert found, verdict.text
        id = (case.get("classname") or "").removeprefix("refactor-tool.")
        rows.append((id, found[1], int(found[2]), verdict.tag != "skipped"))
    return rows


def _github(text: str) -> list[Row]:
    rows = []
    for line in text.splitlines():
        head = re.fullmatch(r"::(error|warning|notice) ([^:]*)::.*", line)
        assert head, line
        properties = {key: _unescaped(value) for key, value in (part.split("=", 1) for part in head[2].split(","))}
        if properties["title"] != "refactor-tool":
            id, _, status = properties["title"].partition(" (")
            rows.append((id, properties["file"], int(properties["line"]), not status))
    return rows


def _unescaped(value: str) -> str:
    return re.sub(r"%([0-9A-F]{2})", lambda found: chr(int(found[1], 16)), value)


def _gitlab(text: str) -> list[Row]:
    return [
        (
            item["check_name"],
            item["location"]["path"],
            item["location"]["lines"]["begin"],
            not _is_excused(item["description"]),
        )
        for item in json.loads(text)
        if item["check_name"] != "refactor-tool"
    ]


def _checkstyle(text: str) -> list[Row]:
    return [
        (
            (error.get("source") or "").removeprefix("refactor-tool."),
            file.get("name") or "",
            int(error.get("line") or 0),
            not _is_excused(error.get("message") or ""),
        )
        for file in ElementTree.fromstring(text).iter("file")
        for error in file
        if error.get("source") != "refactor-tool"
    ]


def _rdjson(text: str) -> list[Row]:
    return [
        (
            item["code"]["value"],
            item["location"]["path"],
            item["location"]["range"]["start"]["line"],
            not _is_excused(item["message"]),
        )
        for item in json.loads(text)["diagnostics"]
        if "code" in item
    ]


def _is_excused(text: str) -> bool:
    return re.search(r" \((suppressed|known|baseline): .*\)$", text) is not None


def _markdown(text: str) -> list[Row]:
    rows: list[Row] = []
    path = ""
    for line in text.splitlines():
        if line.startswith("### "):
            path = html.unescape(re.sub(r"### <code>(.*)</code>: .*", r"\1", line))
        elif re.match(r"\| \d", line):
            number, status, _, id, _ = [cell.strip() for cell in line.strip("|").split(" | ")]
            rows.append(
                (html.unescape(id.removeprefix("<code>").removesuffix("</code>")), path, int(number), status == "open")
            )
    return rows


def _text(text: str) -> list[Row]:
    pattern = re.compile(r"(\S.*?):(\d+):\d+: (error|warning|info|known|baseline|suppressed): ([\w-]+)(?: in |: )")
    found = [pattern.match(line) for line in text.split("\n")]
    return [(m[4], m[1], int(m[2]), m[3] in ("error", "warning", "info")) for m in found if m]


_READERS: dict[str, Callable[[str], list[Row]]] = {
    "text": _text,
    "json": _json,
    "jsonl": _json,
    "sarif": _sarif,
    "junit": _junit,
    "github": _github,
    "github-summary": _markdown,
    "gitlab": _gitlab,
    "checkstyle": _checkstyle,
    "rdjson": _rdjson,
    "markdown": _markdown,
}
