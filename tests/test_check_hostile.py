"""Trees made to mislead: none forges an annotation, hides a finding or keeps the run from ending; and the same bytes."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from refactor_tool import gate
from refactor_tool.model import EnvironmentFailure
from refactor_tool.report.formats import FORMATS
from refactor_tool.world.transaction import Write, replace_files
from tests import trees
from tests.command import ROOT, run
from tests.repo import Repo
from tests.reports import RULES, facts, finding, plan, shown, told
from tests.test_check import EXTRA, FIFTH, fifth

HEAD = "package agent\n\nfunc hostile(apiReady <-chan struct{}) {\n"
DEEP = 100_000
NESTED: dict[str, str] = {
    "blocks": f"{HEAD}{'{' * DEEP}<-apiReady{'}' * DEEP}\n}}\n",
    "if statements": HEAD + "if true {\n" * DEEP + "<-apiReady\n" + "}\n" * DEEP + "}\n",
    "else if": HEAD + "if true {\n} else " * DEEP + "{ <-apiReady }\n}\n",
    "function literals": HEAD + "func() {" * DEEP + "<-apiReady" + "}()" * DEEP + "\n}\n",
    "calls": f"{HEAD}\t_ = {'f(' * DEEP}apiReady{')' * DEEP}\n}}\n",
    "parentheses": f"package agent\n\nvar nodeReady = {'(' * DEEP}1{')' * DEEP}\n",
    "brackets that never close": f"{HEAD}{'{' * DEEP}<-apiReady\n}}\n",
    "a sum": f"{HEAD}_ = apiReady{'+1' * DEEP}\n}}\n",
    "negations": f"{HEAD}_ = {'!' * DEEP}apiReady\n}}\n",
    "receives": f"{HEAD}{'<-' * DEEP}apiReady\n}}\n",
    "labels": HEAD + "".join(f"l{number}: " for number in range(DEEP)) + "<-apiReady\n}\n",
}


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path / "k3s")


@pytest.mark.parametrize("text", NESTED.values(), ids=NESTED)
def test_nesting_without_end_ends_the_run_and_names_the_file(text: str, repo: Repo) -> None:
    repo.commit(trees.added(trees.after(), "pkg/agent/hostile.go", text))
    ran = run("check", repo.path)
    assert ran.code == 5
    assert "pkg/agent/hostile.go" in ran.last and ("nested deeper" in ran.last or "does not parse" in ran.last)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param(f"{HEAD}_ = a{'.b' * DEEP}.apiReady\n}}\n", 1, id="selectors"),
        pytest.param(f"package agent\n\nfunc hostile(apiReady {'*' * DEEP}int) {{}}\n", 0, id="pointers to no channel"),
        pytest.param(f"package agent\n\ntype nodeReady {'[]' * DEEP}int\n", 1, id="slices"),
    ],
)
def test_name_beside_nesting_without_end_is_judged(text: str, code: int, repo: Repo) -> None:
    repo.commit(trees.added(trees.after(), "pkg/agent/hostile.go", text))
    ran = run("check", repo.path)
    assert ran.code == code and (b"pkg/agent/hostile.go:" in ran.out) is (code == 1)


#: What is nested without a bracket, and holds nothing of readiness.
CHAINS: dict[str, str] = {
    "strings": "\t_ = " + " +\n\t\t".join(['"x"'] * 2_000),
    "calls": "\tnew(strings.Replacer)" + ".\n\t\tReplace(file)" * 2_000,
    "selectors": f"\t_ = file{'.x' * DEEP}",
    "slices": f"\tvar _ {'[]' * 2_000}int",
    "else if": "\tif file == file {\n\t}" + " else if file == file {\n\t}" * 490,
}


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_chain_does_not_keep_what_stands_beside_it_from_being_judged(chain: str, repo: Repo) -> None:
    text = re.sub(r"\treturn .*", lambda found: f"{chain}\n{found[0]}", FIFTH["plain call"])
    repo.commit(trees.added(trees.after(), EXTRA, text))
    ran = run("check", repo.path, "--rules=all")
    assert ran.code == 1 and f"{EXTRA}:" in ran.out.decode()


NAMES = [
    "pkg/agent/\n::error file=x::forged\n.go",
    "pkg/agent/\x1b[31m\x1b[2J.go",
    "pkg/agent/##[error]forged.go",
    "pkg/agent/a,line=1::forged.go",
    "pkg/agent/<script>&'\".go",
    "pkg/agent/=cmd|' C'!A1.go",
    "pkg/agent/\u202eog.txet.go",
    "pkg/agent/\udcff\udcfe.go",
    "pkg/agent/%0A::error::x.go",
]


@pytest.mark.parametrize("path", NAMES, ids=ascii)
def test_file_name_is_told_and_not_obeyed(path: str, repo: Repo, tmp_path: Path) -> None:
    repo.git("commit", "-q", "--allow-empty", "-m", "x")
    repo.commit(trees.after())
    where = os.path.join(os.fsencode(repo.path), path.encode("utf-8", "surrogateescape"))
    os.makedirs(os.path.dirname(where), exist_ok=True)
    Path(os.fsdecode(where)).write_text(FIFTH["plain call"])
    outputs = {name: tmp_path / name for name in FORMATS}
    ran = run("check", repo.path, *(f"--format={name}={file}" for name, file in outputs.items()))
    assert ran.code == 1 and ran.err.count("\n") == 1
    rows = {name: told(name, file.read_bytes()) for name, file in outputs.items()}
    assert rows["json"].total() == 1
    for name, row in rows.items():
        assert row == rows["json"], name
        _is_inert(outputs[name].read_bytes().decode(), is_commands=name == "github")


HOSTILE_LINES = [
    "return util.WaitForAPIServerReady(ctx, file, time.Minute) // \x1b[2J\x1b]0;owned\x07",
    'return util.WaitForAPIServerReady(ctx, "::set-output name=x::y ##[add-mask]x ##vso[task.complete]", time.Minute)',
    "return util.WaitForAPIServerReady(ctx, `\n::error file=x::forged\n##[error]forged\n`, time.Minute)",
    'return util.WaitForAPIServerReady(ctx, "</failure>]]><error/>", time.Minute)',
    "return util.WaitForAPIServerReady(ctx, file, time.Minute) // \u202e\u2066 bidi \u2069",
    "return util.WaitForAPIServerReady(ctx, file, time.Minute) //\r::error::forged",
]


@pytest.mark.parametrize("line", HOSTILE_LINES, ids=ascii)
def test_source_is_shown_and_not_obeyed(line: str, repo: Repo, tmp_path: Path) -> None:
    text = re.sub(r"\treturn .*", lambda _: f"\t{line}", FIFTH["plain call"])
    repo.commit(trees.added(trees.after(), EXTRA, text))
    outputs = {name: tmp_path / name for name in FORMATS}
    ran = run("check", repo.path, *(f"--format={name}={file}" for name, file in outputs.items()))
    assert ran.code == 1
    for name, file in outputs.items():
        assert told(name, file.read_bytes()).total() == 1
        _is_inert(file.read_bytes().decode(), is_commands=name == "github")


def _is_inert(text: str, *, is_commands: bool) -> None:
    lines = re.split(r"[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", text)
    if is_commands:
        assert all(re.match(r"::(error|warning|notice) (file|title)=|$", line) for line in lines)
    else:
        assert not any(line.lstrip().startswith("::") for line in lines)
    assert not re.search(r"##(\[|vso|teamcity)", text)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", text)


@pytest.mark.parametrize("name", FORMATS)
def test_ten_thousand_findings_are_all_told(name: str) -> None:
    many = [finding(path=f"pkg/f{number % 100:02}.go", message=f"m{number}") for number in range(10_000)]
    report = gate.judge(gate.Examined(plan(*many)), RULES)
    data = shown(name, report)
    if name == "github-summary" and b"too many to list" in data:
        assert sum(int(row.rsplit(b"|", 2)[1]) for row in data.splitlines() if row.startswith(b"| <code>")) == 10_000
    else:
        assert told(name, data) == facts(report)


def test_many_findings_in_one_line_do_not_multiply_it(repo: Repo, tmp_path: Path) -> None:
    calls = "util.WaitForAPIServerReady(ctx, file, time.Minute); " * 1000
    repo.commit(trees.added(trees.after(), EXTRA, FIFTH["plain call"].replace("\treturn", f"\t{calls}\n\treturn")))
    out = tmp_path / "out.json"
    ran = run("check", repo.path, "--format", f"json={out}", "--format", "text")
    assert ran.code == 1 and b"1001 findings" in ran.out.splitlines()[-1]
    assert out.stat().st_size < 10_000_000 and len(ran.out) < 10_000_000


def test_huge_line_is_cut_where_it_is_shown(repo: Repo) -> None:
    huge = "x" * 20_000_000
    repo.commit(trees.added(trees.after(), EXTRA, FIFTH["plain call"].replace("\treturn", f'\t_ = "{huge}"; return')))
    ran = run("check", repo.path)
    assert ran.code == 1 and "steps to do: apiserver-ready (1 site)" in ran.last
    assert max(map(len, ran.out.splitlines())) < 2000


def test_bytes_that_are_no_text_do_not_matter_elsewhere_and_are_told_where_they_do(repo: Repo) -> None:
    noise = b"package agent\n\n// \xff\xfe\n"
    repo.commit(trees.added(trees.after(), "pkg/agent/noise.go", noise))
    assert run("check", repo.path).code == 0
    repo.commit(trees.added(trees.after(), EXTRA, FIFTH["plain call"].encode() + noise.partition(b"\n\n")[2]))
    ran = run("check", repo.path)
    assert ran.code == 5 and f"{EXTRA}:13: not UTF-8 text" in ran.last


# --- whatever happens, no file of an earlier run speaks for this one ------------------------------------


@pytest.mark.parametrize(
    ("error", "code"), [(RuntimeError("boom"), 70), (KeyboardInterrupt(), 130), (MemoryError(), 70)]
)
def test_run_that_breaks_leaves_no_clean_result_behind(
    error: BaseException, code: int, repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.commit(trees.after())
    outputs = {name: tmp_path / name for name in FORMATS}
    args = ["check", str(repo.path), *(f"--format={name}={file}" for name, file in outputs.items())]
    assert run(*args).code == 0

    def breaks(*_args: object, **_more: object) -> None:
        raise error

    monkeypatch.setattr("refactor_tool.engine.scan", breaks)
    clean = {name: file.read_bytes() for name, file in outputs.items()}
    assert run(*args).code == code
    for name, file in outputs.items():
        assert file.read_bytes() != clean[name], name
    assert json.loads(outputs["json"].read_bytes())["summary"]["exit_code"] == code


def test_output_that_cannot_be_written_is_no_success(repo: Repo, tmp_path: Path) -> None:
    repo.commit(trees.after())
    for where, code in ((tmp_path / "absent/out", 2), (tmp_path, 2), (repo.path / ".git/out", 2)):
        ran = run("check", repo.path, "--format", f"json={where}")
        assert ran.code == code, where
        assert "passed" not in ran.out.decode() + ran.err


@pytest.mark.parametrize("early", [True, False], ids=["known before", "found out in the middle"])
def test_file_beside_one_that_cannot_be_written_does_not_say_otherwise(
    early: bool, repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.commit(trees.after())
    first, second = tmp_path / "first", tmp_path / ("absent/second" if early else "second")

    def refuse(root: Path, changes: Mapping[str, Write | None]) -> None:
        if second.name in changes:
            raise EnvironmentFailure("the disk is full")
        replace_files(root, changes)

    monkeypatch.setattr("refactor_tool.world.out.replace_files", refuse)
    ran = run("check", repo.path, "--format", f"json={first}", "--format", f"sarif={second}")
    assert ran.code == (2 if early else 3)
    assert json.loads(first.read_bytes())["summary"]["exit_code"] == ran.code


@pytest.mark.parametrize(
    "args",
    [
        pytest.param(["--format", "json=link", "--format", "sarif=out"], id="a link"),
        pytest.param(["--format", "json=folder/../out", "--format", "sarif=out"], id="a way around"),
        pytest.param(["--format", "json=/dev/stdout", "--format", "sarif"], id="standard output by name"),
        pytest.param(["--baseline", "out", "--write-baseline", "--format", "json=out"], id="the baseline"),
    ],
)
def test_one_file_under_two_names_is_refused(args: list[str], repo: Repo, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("out")
    assert run("check", repo.path, *args, cwd=tmp_path).code == 2
    assert not (tmp_path / "out").exists()


# --- the same bytes -----------------------------------------------------------------------------------

VARIANTS: dict[str, dict[str, str]] = {
    "as it is": {},
    "again": {},
    "another hash seed": {"PYTHONHASHSEED": "1"},
    "a third hash seed": {"PYTHONHASHSEED": "4242"},
    "the C locale": {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
    "a Turkish locale": {"LC_ALL": "tr_TR.UTF-8", "LANGUAGE": "tr"},
    "Latin-1 output": {"PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"},
    "another time zone": {"TZ": "Pacific/Kiritimati"},
    "colour wished for": {"FORCE_COLOR": "1", "CLICOLOR_FORCE": "1", "TERM": "xterm-256color"},
}


def _bytes(folder: Path, out: Path, env: dict[str, str], terminal: bool = False) -> dict[str, bytes]:
    out.mkdir(parents=True)
    formats = [f"--format={name}={out / name}" for name in FORMATS if name != "text"]
    base = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(out), "NO_COLOR": "1"}
    command = [sys.executable, "-m", "refactor_tool", "check", *formats, "--format=text", "--base=HEAD~1"]
    if terminal:
        leader, follower = pty.openpty()
        with subprocess.Popen(command, cwd=folder, env=base | env, stdout=follower, stderr=subprocess.PIPE) as process:
            os.close(follower)
            text = _drained(leader).replace(b"\r\n", b"\n")
            process.communicate()
        code = process.returncode
    else:
        done = subprocess.run(command, cwd=folder, env=base | env, capture_output=True, check=False)
        text, code = done.stdout, done.returncode
    assert code == 1, text
    return {"text": text} | {file.name: file.read_bytes() for file in out.iterdir() if file.is_file()}


def _drained(leader: int) -> bytes:
    """Return what was written to a terminal until nobody has it open any more, which is an error on Linux."""
    parts = []
    with suppress(OSError):
        while part := os.read(leader, 1 << 16):
            parts.append(part)
    os.close(leader)
    return b"".join(parts)


def test_same_tree_same_bytes(repo: Repo, tmp_path: Path) -> None:
    repo.commit(trees.added(fifth(), "pkg/agent/grüße.go", FIFTH["function value"].replace("extra", "grüße")))
    repo.commit(trees.added(fifth(), "pkg/agent/grüße.go", FIFTH["dot import"].replace("extra", "grüße")))
    other = tmp_path / "a longer name/of another folder/k3s"
    other.parent.mkdir(parents=True)
    repo.git("clone", "-q", repo.path.as_uri(), str(other))
    wanted = _bytes(repo.path, tmp_path / "first", {})
    assert set(wanted) == set(FORMATS)
    runs: dict[str, Callable[[], dict[str, bytes]]] = {
        name: lambda name=name, env=env: _bytes(repo.path, tmp_path / "out" / name.replace(" ", "-"), env)
        for name, env in VARIANTS.items()
    }
    runs["another folder"] = lambda: _bytes(other, tmp_path / "out/elsewhere", {})
    runs["a terminal"] = lambda: _bytes(repo.path, tmp_path / "out/terminal", {"TERM": "xterm"}, terminal=True)
    for name, again in runs.items():
        assert again() == wanted, name
