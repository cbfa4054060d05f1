"""Run every case of `fixtures/cases/<codemod-id>/*.txt` through its codemod and hold it against what it says.

A case is one text file:

    Why this case exists, in a line or two.
    # crlf: pkg/agent/run.go        (optional: that file has CRLF line ends)
    -- go.mod --
    module github.com/k3s-io/k3s
    -- pkg/agent/run.go --
    package agent
    ...
    -- want --
    rewrite pkg/agent/run.go:12 run guard-return
    manual pkg/agent/run.go:30 run unknown-shape: part of the reason
    leave pkg/agent/run.go:40 run limit-of-another-wait (done): part of the reason
    -- want pkg/agent/run.go --
    package agent
    ...

`want` lists every finding: verdict, file:line, function (`-` at file level), shape, and after a colon some words that its reason
must contain (optional). `want FILE` is that file after the codemod; a file that is not named must not change. A case in which no
finding is wanted has an empty `want`. The codemod runs alone, without its anchors; problems (edits that overlap, an unsound result)
fail the case, a blocking manual site only means that nothing changes.

`pytest tests/test_cases.py --update-goldens` writes `want` and `want FILE` anew from what the tool does; read the difference.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from refactor_tool import engine
from refactor_tool.codemods import SUITE
from refactor_tool.gosrc.tree import Tree
from refactor_tool.model import ExitCode, File, Finding, Leave, Manual, Rewrite, Snapshot
from refactor_tool.record import replace
from refactor_tool.world.templates import load_templates
from tests import txtar

ROOT = Path(__file__).parent.parent / "fixtures" / "cases"
CASES = sorted(ROOT.glob("*/*.txt"))
CODEMODS = {codemod.id: codemod for codemod in SUITE}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}/{case.stem}")
def test_case(case: Path, request: pytest.FixtureRequest) -> None:
    comment, files = txtar.parse(case.read_text(encoding="utf-8"))
    crlf = re.findall(r"^# crlf: (\S+)", comment, re.MULTILINE)
    inputs = {name: text for name, text in files.items() if not name.startswith("want")}
    snapshot = Snapshot({name: File(_encode(text, name in crlf)) for name, text in inputs.items()})
    codemod = replace(CODEMODS[case.parent.name], anchors=(), requires=())

    ran = engine.run_codemod(Tree(snapshot), codemod, load_templates())

    unsound = [problem.message for problem in ran.problems if problem.code is not ExitCode.FINDINGS]
    assert not unsound, unsound
    tree = Tree(snapshot)
    found = [_line(tree, finding) for finding in ran.findings]
    after = {change.path: change.after.data for change in ran.changes if change.after is not None}
    changed = {f"want {path}": data.replace(b"\r\n", b"\n").decode() for path, data in sorted(after.items())}
    if request.config.getoption("--update-goldens"):
        want = "".join(f"{line}\n" for line in found)
        case.write_text(txtar.write(comment, {**inputs, "want": want, **changed}), encoding="utf-8")
        return
    assert "want" in files, "the case says nothing; write `want` with --update-goldens and read it"
    _compare(files["want"].splitlines(), found)
    assert changed == {name: text for name, text in files.items() if name.startswith("want ")}
    for path, data in after.items():
        assert (b"\r\n" in data) == (path in crlf), path
        assert data.count(b"\n") == data.count(b"\r\n") or path not in crlf, f"{path}: mixed line ends"


def test_every_codemod_has_the_cases_that_issue_3_asks_for() -> None:
    verdicts: dict[str, set[str]] = {codemod.id: set() for codemod in SUITE}
    for case in CASES:
        _, files = txtar.parse(case.read_text(encoding="utf-8"))
        verdicts[case.parent.name] |= {line.split(" ", 1)[0] for line in files.get("want", "").splitlines()}
    lacking = {name: {"rewrite", "manual", "leave"} - seen for name, seen in verdicts.items()}
    assert not {name: kinds for name, kinds in lacking.items() if kinds}


def _encode(text: str, crlf: bool) -> bytes:
    return text.replace("\n", "\r\n").encode() if crlf else text.encode()


def _line(tree: Tree, finding: Finding) -> str:
    line = tree.lines(finding.path).position(finding.span.start).line
    head = f"{finding.path}:{line} {finding.function or '-'} {finding.shape}"
    match finding.verdict:
        case Rewrite():
            return f"rewrite {head}"
        case Manual(reason=reason):
            return f"manual {head}: {reason}"
        case Leave(reason=reason, done=done):
            return f"leave {head}{' (done)' if done else ''}: {reason}"


def _compare(wanted: list[str], found: list[str]) -> None:
    """Lines must agree up to the colon before the reason; the wanted words must be in the reason found."""
    heads = [line.split(": ", 1)[0] for line in wanted]
    assert [line.split(": ", 1)[0] for line in found] == heads
    for want, got in zip(wanted, found, strict=True):
        _, _, words = want.partition(": ")
        assert words in got, f"{got!r} does not say {words!r}"
