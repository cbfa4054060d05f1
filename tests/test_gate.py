"""The gate's policy: what counts, what is excused, what an excuse costs, and the one code that comes of it."""

from __future__ import annotations

import json
import time

import pytest

from refactor_tool import baseline, gate
from refactor_tool.model import ExitCode, Leave, Manual, Problem, UsageError
from refactor_tool.outcome import Accepted, Baseline, Report
from refactor_tool.record import replace
from refactor_tool.report.document import fingerprints
from tests.reports import GO, RULES, comment, finding, plan

SOFT = Manual("reason", "instruction", blocks=False)
MEND = "refactor-tool check --baseline b --write-baseline"


def judged(*findings, comments=(), problems=(), files=None, **more) -> Report:
    return gate.judge(gate.Examined(plan(*findings, files=files, problems=problems), tuple(comments)), RULES, **more)


def statuses(report: Report) -> dict[str, str]:
    return {f"{result.path}:{result.start.line} {result.id}": result.status for result in report.results}


# --- thresholds and codes -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("severity", "codes"),
    [
        ("error", {"error": 1, "warning": 1, "info": 1, "never": 0}),
        ("warning", {"error": 0, "warning": 1, "info": 1, "never": 0}),
        ("info", {"error": 0, "warning": 0, "info": 1, "never": 0}),
    ],
)
def test_threshold_decides(severity: str, codes: dict[str, int]) -> None:
    found = finding("L01", verdict=SOFT, severity=severity)
    assert {level: int(judged(found, fail_on=level).decision.code) for level in codes} == codes


def test_what_is_below_the_threshold_is_told() -> None:
    report = judged(finding("L01", verdict=SOFT, severity="warning"))
    assert report.decision.line == "passed: not held against it with --fail-on error: 1 warning"
    assert len(report.results) == 1 and report.held() == ()


def test_never_says_that_it_looked_away() -> None:
    line = judged(finding(), fail_on="never").decision.line
    assert line == "passed: steps to do: step-one (1 site); not held against it with --fail-on never: 1 error"


def test_site_left_alone_is_no_result() -> None:
    report = judged(finding(verdict=Leave("rightly so")))
    assert report.results == ()
    assert report.decision.line == "passed: nothing to do in 1 site"


@pytest.mark.parametrize(
    ("codes", "wins"),
    [
        ([5, 4, 1], 5),
        ([4, 1], 4),
        ([3, 5], 3),
        ([2, 3], 2),
        ([70, 2], 70),
        ([6, 1], 6),
        ([4, 6], 4),
    ],
)
def test_gravest_code_wins_and_no_threshold_hides_it(codes: list[int], wins: int) -> None:
    problems = [Problem(ExitCode(code), f"problem {code}") for code in codes if code != 1]
    report = judged(finding(), problems=problems, fail_on="never")
    assert report.decision.code == wins
    assert f"problem {wins}" in report.decision.line
    assert report.decision.line.startswith(f"failed (exit {wins}): ")


def test_problem_that_a_finding_tells_is_not_told_twice() -> None:
    unknown = finding("audit", verdict=Manual("nobody knows"))
    told = Problem(ExitCode.FINDINGS, "unclassified: g()", "pkg/a.go", 4)
    assert judged(unknown, problems=[told]).problems == ()
    excused = judged(unknown, problems=[told], comments=[comment("pkg/a.go", 4, 4, "audit", "known")])
    assert excused.decision.code is ExitCode.CLEAN


def test_problem_that_no_finding_tells_fails() -> None:
    report = judged(problems=[Problem(ExitCode.FINDINGS, "unclassified", "pkg/a.go", 9)], fail_on="never")
    assert report.decision.code is ExitCode.FINDINGS


def test_steps_to_do_stand_in_the_order_of_the_suite() -> None:
    report = judged(finding("step-two"), finding("step-one", text=b"h()"), finding("step-two", nth=1))
    assert [(step.id, step.sites) for step in report.pending] == [("step-one", 1), ("step-two", 2)]


# --- suppressions -------------------------------------------------------------------------------------


def test_suppression_excuses_its_rule_on_its_lines_only() -> None:
    report = judged(
        finding("step-one"),
        finding("step-two"),
        finding("step-one", nth=1),
        comments=[comment("pkg/a.go", 3, 4, "step-one", "because")],
    )
    assert statuses(report) == {
        "pkg/a.go:4 step-one": "suppressed",
        "pkg/a.go:4 step-two": "open",
        "pkg/a.go:7 step-one": "open",
    }
    assert [result.why for result in report.results if result.status == "suppressed"] == ["because"]


def test_suppression_of_another_file_excuses_nothing() -> None:
    report = judged(finding(), finding(path="pkg/b.go"), comments=[comment("pkg/b.go", 4, 4, "step-one", "because")])
    assert statuses(report) == {"pkg/a.go:4 step-one": "open", "pkg/b.go:4 step-one": "suppressed"}


@pytest.mark.parametrize(
    ("today", "status", "code"),
    [
        ("2026-11-29", "suppressed", 0),
        ("2026-11-30", "suppressed", 0),
        ("2026-12-01", "open", 1),
        ("2027-01-01", "open", 1),
    ],
)
def test_suppression_counts_until_its_last_day(today: str, status: str, code: int) -> None:
    report = judged(finding(), comments=[comment("pkg/a.go", 4, 4, "step-one", "why", "2026-11-30")], today=today)
    (result,) = report.results
    assert (result.status, int(report.decision.code)) == (status, code)
    assert ("counted until 2026-11-30" in result.advice) == (status == "open")


@pytest.mark.parametrize("until", ["", "2027-01-31"], ids=["for ever", "later"])
@pytest.mark.parametrize("order", [1, -1], ids=["expired first", "expired last"])
def test_expired_suppression_takes_nothing_from_a_valid_one(until: str, order: int) -> None:
    old = comment("pkg/a.go", 3, 4, "step-one", "old", "2026-01-01")
    new = comment("pkg/a.go", 4, 4, "step-one", "new", until)
    report = judged(finding(), comments=[old, new][::order], today="2026-11-30")
    excused, useless = sorted(report.results, key=lambda result: result.verdict == "gate")
    assert (excused.status, excused.why) == ("suppressed", "new")
    assert (useless.start.line, useless.message.partition(" covers")[0]) == (1, "another comment")


@pytest.mark.parametrize(
    ("given", "id", "words"),
    [
        (comment("pkg/a.go", 7, 7, "step-one", "why"), "unused-suppression", "nothing of step-one starts here"),
        (comment("pkg/a.go", 4, 4, "step-oen", "why"), "bad-suppression", "did you mean 'step-one'?"),
        (
            comment("pkg/a.go", 4, 4, "unheard-of-thing", "why"),
            "bad-suppression",
            "there is no rule 'unheard-of-thing'",
        ),
        (
            comment("pkg/a.go", 4, 4, "step-one", "", fault="it gives no reason"),
            "bad-suppression",
            "it gives no reason",
        ),
    ],
)
def test_comment_that_excuses_nothing_is_a_finding(given, id: str, words: str) -> None:
    report = judged(finding(verdict=SOFT), comments=[given])
    (complaint,) = [result for result in report.results if result.verdict == "gate"]
    assert complaint.id == id and words in complaint.message
    assert report.decision.code is ExitCode.FINDINGS
    assert [result.status for result in report.results if result.id == "step-one"] == ["open"]


# --- new since ----------------------------------------------------------------------------------------


def since(head, base, **more) -> Report:
    return gate.judge(
        gate.Examined(head, more.pop("comments", ())),
        RULES,
        base=gate.Examined(base, more.pop("before", ())),
        base_name="main",
        **more,
    )


def test_what_the_base_has_is_known_and_what_it_has_not_is_new() -> None:
    report = since(plan(finding(), finding("step-two")), plan(finding()))
    assert statuses(report) == {"pkg/a.go:4 step-one": "known", "pkg/a.go:4 step-two": "open"}
    assert report.decision.code is ExitCode.FINDINGS


def test_base_with_the_same_findings_passes() -> None:
    report = since(plan(finding()), plan(finding()))
    assert report.decision.line == "passed: 1 there before"


def test_moved_lines_and_reordered_functions_are_not_new() -> None:
    moved = b"package p\n\n// a comment\nfunc k() {}\n\n\n" + GO.removeprefix(b"package p\n\n")
    report = since(_shifted(moved), plan(finding()))
    assert [result.status for result in report.results] == ["known"]


def _shifted(data: bytes):
    from refactor_tool.model import Span

    at = data.index(b"g()")
    return plan(replace(finding(), span=Span(at, at + 3)), files={"pkg/a.go": data})


def test_second_of_two_alike_is_new() -> None:
    report = since(plan(finding(), finding(nth=1)), plan(finding()))
    assert sorted(statuses(report).values()) == ["known", "open"]


@pytest.mark.parametrize(
    ("data", "status"),
    [
        pytest.param(GO, "known", id="same bytes elsewhere"),
        pytest.param(GO.replace(b"h()", b"other()"), "known", id="most lines the same"),
        pytest.param(b"package q\n\nfunc f() {\n\tg()\n}\n" + b"var x = 1\n" * 20, "open", id="another file"),
    ],
)
def test_file_that_moved_is_the_same_file(data: bytes, status: str) -> None:
    from refactor_tool.model import Span

    at = data.index(b"g()")
    head = plan(replace(finding(path="pkg/new.go"), span=Span(at, at + 3)), files={"pkg/new.go": data})
    report = since(head, plan(finding(path="pkg/old.go")))
    assert [result.status for result in report.results] == [status]


def test_file_that_moved_whole_is_not_taken_for_its_edited_copy() -> None:
    head = plan(
        finding(path="pkg/copy.go"), finding(path="pkg/new.go"), files={"pkg/copy.go": GO + b"// x\n", "pkg/new.go": GO}
    )
    report = since(head, plan(finding(path="pkg/old.go")))
    assert [(result.path, result.status) for result in report.results] == [
        ("pkg/copy.go", "open"),
        ("pkg/new.go", "known"),
    ]


def test_thousands_of_files_that_moved_are_told_in_seconds() -> None:
    count = 3_000
    files = {f"pkg/new/f{at}.go": GO + b"// %d\n" % at for at in range(count)}
    moved = plan(*(finding(path=path) for path in files), files=files)
    known = plan(*(finding(path=path.replace("new", "old")) for path in files))
    start = time.process_time()
    report = since(moved, known)
    assert time.process_time() - start < 20
    assert {result.status for result in report.results} == {"known"}


def test_copy_beside_the_original_is_new() -> None:
    report = since(plan(finding(), finding(path="pkg/copy.go")), plan(finding()))
    assert statuses(report) == {"pkg/a.go:4 step-one": "known", "pkg/copy.go:4 step-one": "open"}


def test_taking_a_suppression_away_brings_its_finding_back() -> None:
    excused = (comment("pkg/a.go", 4, 4, "step-one", "why"),)
    assert since(plan(finding()), plan(finding()), before=excused).decision.code is ExitCode.FINDINGS


def test_unused_suppression_of_the_base_is_known_too() -> None:
    unused = (comment("pkg/a.go", 7, 7, "step-one", "why"),)
    report = since(plan(finding()), plan(finding()), comments=unused, before=unused)
    assert sorted(statuses(report).values()) == ["known", "known"]


def test_suppression_that_this_change_made_useless_is_new() -> None:
    comments = (comment("pkg/a.go", 4, 4, "step-one", "why"),)
    report = since(plan(files={"pkg/a.go": GO}), plan(finding()), comments=comments, before=comments)
    assert [(result.id, result.status) for result in report.results] == [("unused-suppression", "open")]


# --- baseline -----------------------------------------------------------------------------------------


def accepted(*findings, note: str = "") -> Baseline:
    whole = plan(*findings)
    prints = fingerprints(whole)
    entries = (
        Accepted(found.path, found.id, found.function, name, found.message, note, line)
        for line, (found, name) in enumerate(zip(whole.findings, prints, strict=True), start=2)
    )
    return Baseline("accepted.jsonl", tuple(entries), MEND)


def test_accepted_finding_passes_and_its_note_is_told() -> None:
    report = judged(finding(), baseline=accepted(finding(), note="legacy"))
    assert report.decision.line == "passed: 1 in the baseline"
    assert report.results[0].why == "legacy"


def test_new_finding_fails_beside_an_accepted_one() -> None:
    report = judged(finding(), finding("step-two"), baseline=accepted(finding()))
    assert report.decision.code is ExitCode.FINDINGS
    assert [result.id for result in report.held()] == ["step-two"]


def test_stale_entry_fails_with_the_command_that_mends_it() -> None:
    report = judged(finding(), baseline=accepted(finding(), finding("step-two", path="pkg/gone.go")))
    (stale,) = report.held()
    assert (stale.id, stale.path, stale.start.line) == ("stale-baseline", "accepted.jsonl", 3)
    assert MEND in stale.advice
    assert report.decision.code is ExitCode.FINDINGS


@pytest.mark.parametrize("lie", [{"path": "docs/x.go"}, {"id": "step-two"}, {"function": "g"}], ids=str)
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside the true line"])
def test_entry_that_says_another_thing_than_its_fingerprint_accepts_nothing(lie: dict[str, str], beside: bool) -> None:
    (entry,) = accepted(finding()).entries
    lines = [replace(entry, **lie), *([entry] if beside else [])]
    data = b"".join([baseline.render([], kept=[line]).splitlines(keepends=True)[1] for line in lines])
    entries = baseline.parse("b", baseline.render([]) + data)
    report = judged(finding(), baseline=Baseline("b", entries, MEND))
    (liar,) = [result for result in report.results if result.id == "stale-baseline"]
    assert (liar.path, liar.start.line) == ("b", 2)
    assert liar.message.startswith("the fingerprint is not of what this line says: ")
    assert statuses(report)["pkg/a.go:4 step-one"] == ("baseline" if beside else "open")


def test_entry_of_a_rule_that_did_not_run_is_not_stale_and_is_written_again() -> None:
    before = accepted(finding("L01"), finding("L13", text=b"h()"), finding("gone"), note="ask Ann")
    tree = gate.Examined(plan(finding()), (), frozenset({"step-one", "L13"}))
    report = gate.judge(tree, RULES, baseline=before)
    stale = [result.message for result in report.results if result.id == "stale-baseline"]
    assert [text.split()[5] for text in stale] == ["gone", "L13"], "no rule is called gone, and L13 ran"
    kept = gate.unjudged(before, tree.ran, [rule.id for rule in RULES])
    again = baseline.parse("b", baseline.render([], before.entries, kept))
    assert [(entry.id, entry.note) for entry in again] == [("L01", "ask Ann")]


def test_suppressed_finding_keeps_its_baseline_entry_alive() -> None:
    report = judged(finding(), baseline=accepted(finding()), comments=[comment("pkg/a.go", 4, 4, "step-one", "why")])
    assert statuses(report) == {"pkg/a.go:4 step-one": "suppressed"}


def test_faults_of_the_gate_are_never_accepted() -> None:
    unused = comment("pkg/a.go", 7, 7, "step-one", "why")
    report = judged(finding(), comments=[unused])
    (complaint,) = [result for result in report.results if result.verdict == "gate"]
    entry = Accepted(complaint.path, complaint.id, "", complaint.fingerprint, complaint.message, "", 2)
    again = judged(finding(), comments=[unused], baseline=Baseline("b", (entry,), MEND))
    assert complaint.fingerprint in [result.fingerprint for result in again.held()]


def test_baseline_file_round_trips_sorted_with_its_notes() -> None:
    report = judged(finding(path="pkg/b.go"), finding(path="pkg/a.go"), finding("step-two", path="pkg/a.go"))
    data = baseline.render(reversed(report.results))
    lines = data.decode().splitlines()
    assert json.loads(lines[0]) == {"schema": "refactor-tool/baseline/1"}
    keys = [(row["path"], row["id"]) for row in map(json.loads, lines[1:])]
    assert keys == sorted(keys) and len(keys) == 3
    noted = data.replace(b'"message": "message of step-two"', b'"message": "old", "note": "ask Ann"')
    entries = baseline.parse("b", noted)
    again = baseline.parse("b", baseline.render(report.results, entries))
    assert [(entry.message, entry.note) for entry in again if entry.id == "step-two"] == [
        ("message of step-two", "ask Ann")
    ]


def test_both_sides_of_a_merge_may_add_the_same_line() -> None:
    data = baseline.render(judged(finding(), finding("step-two")).results)
    head, *rows = data.splitlines(keepends=True)
    assert baseline.parse("b", b"".join([head, *reversed(rows), *rows])) != ()
    assert len(baseline.parse("b", b"".join([head, *reversed(rows), *rows]))) == 2


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "b:1: not a line of a baseline"),
        (b"[]\n", "b:1: not a line of a baseline"),
        (b'{"schema": "other/1"}\n', "b:1: not a baseline of this tool"),
        (b'{"schema": "refactor-tool/baseline/1"}\n<<<<<<< ours\n', "b:2: not a line of a baseline"),
        (b'{"schema": "refactor-tool/baseline/1"}\n\n{"path": "x"}\n', "b:3: 'id' is missing"),
        (b'{"schema": "refactor-tool/baseline/1"}\n{"path": "x", "extra": "y"}\n', "b:2: 'extra' is no text"),
        (b'{"schema": "refactor-tool/baseline/1"}\n{"path": 7}\n', "b:2: 'path' is no text"),
        (b"[" * 100_000, "b:1: not a line of a baseline"),
        (b'{"schema": "refactor-tool/baseline/1"}\n\xff\n', "b:2: not a line of a baseline"),
    ],
    ids=[
        "empty",
        "a list",
        "another tool's",
        "conflict marker",
        "half an entry",
        "unknown key",
        "number",
        "deep",
        "bytes",
    ],
)
def test_broken_baseline_is_a_usage_error_that_names_the_line(data: bytes, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        baseline.parse("b", data)
    assert words in caught.value.message
