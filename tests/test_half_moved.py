"""Trees in which somebody has made a part of the campaign by hand: the rest is planned, or a person is told what to do."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Container, Iterator
from contextlib import suppress

import pytest

from refactor_tool.codemods import SUITE
from refactor_tool.gosrc import ast
from refactor_tool.model import ExitCode, FileChange, Leave, Manual, Plan, Step, Unparsable
from tests import gotree
from tests.campaign import Files, contents, fixture, plan, planned

STEPS = range(1, len(SUITE) + 1)
#: Hunks that use what another one declares, or declare it twice: Go would refuse them by themselves.
NOT_GO = {
    (3, "pkg/util/api.go", 2),
    (4, "tests/unit.go", 1),
    (5, "pkg/daemons/executor/etcd.go", 2),
    (5, "pkg/etcd/etcd.go", 15),
}
#: Functions that call another one as it was, which Go refuses.
UNDONE_IS_NOT_GO = {("pkg/etcd/etcd.go", "(*ETCD).join"), ("pkg/etcd/etcd.go", "(*ETCD).newCluster")}
#: Lines that only come with others: the check that goes above a method which is there, if it is the step that adds that.
_COMPANIONS = ("//", "var _ Executor = ")
_IMPORT = re.compile(r'(?:([\w.]+) )?"(?:.*/)?([^/"]+)"')


@pytest.mark.parametrize("number", STEPS, ids=lambda number: SUITE[number - 1].id)
def test_a_step_made_in_one_file_alone_or_in_all_but_one(number: int) -> None:
    step, before, after = _around(number)
    for change in step.changes:
        assert change.after is not None
        _hold(plan(before | {change.path: change.after.data}), f"{change.path} alone")
        left = {path: data for path, data in after.items() if path != change.path}
        _hold(plan(left | ({change.path: change.before.data} if change.before else {})), f"all but {change.path}")


@pytest.mark.parametrize("number", STEPS, ids=lambda number: SUITE[number - 1].id)
def test_one_hunk_of_a_step_made_by_hand(number: int) -> None:
    step, before, _ = _around(number)
    for change in (change for change in step.changes if change.before is not None):
        parts = _parts(change)
        hunks = [at for at, (old, new) in enumerate(parts) if old != new]
        for at, hunk in enumerate(hunks):
            if (number, change.path, at) in NOT_GO or (len(hunks) > 8 and at % 3):
                continue
            taken = {hunk, *(each for each in hunks if _imports_for(parts[each][1], parts[hunk][1]))}
            with suppress(Unparsable):  # half of a function is no Go
                _hold(plan(before | {change.path: _mixed(parts, taken)}), f"hunk {at + 1} of {change.path}")


def test_one_function_undone_by_hand_is_not_silent() -> None:
    before, after = fixture(), contents(planned().final)
    undone = 0
    for path in (path for path in before if path.endswith(".go") and before[path] != after[path]):
        old = dict(_functions(before[path]))
        for title, text in _functions(after[path]):
            if old.get(title, text) == text or (path, title) in UNDONE_IS_NOT_GO:
                continue
            undone += 1
            result = plan(after | {path: after[path].replace(text, old[title])})
            told = [found for found in result.findings if not isinstance(found.verdict, Leave)]
            assert told, f"{title} of {path}"
            _sound(result, f"{title} of {path}")
    assert undone > 40


@pytest.mark.parametrize(
    ("path", "old", "new", "told"),
    [
        pytest.param("pkg/etcd/etcd.go", "\tmigrated.Close()\n", "", "nothing closes migrated", id="signal"),
        pytest.param(
            "pkg/etcd/etcd.go", "\t\te.clientMu.Lock()\n", "", "takes the lock of the client 0 times", id="lock"
        ),
        pytest.param("pkg/etcd/etcd.go", "\t\te.clientMu.Unlock()\n", "", "gives it back 0 times", id="unlock"),
        pytest.param(
            "pkg/util/api.go",
            "\trestConfig.Timeout = readyzRequestTimeout\n",
            "",
            "nothing uses readyzRequestTimeout",
            id="limit",
        ),
    ],
)
def test_one_line_undone_by_hand_is_not_silent(path: str, old: str, new: str, told: str) -> None:
    after = contents(planned().final)
    assert after[path].count(old.encode()) == 1
    result = plan(after | {path: after[path].replace(old.encode(), new.encode())})
    (finding,) = [found for found in result.findings if not isinstance(found.verdict, Leave)]
    assert isinstance(finding.verdict, Manual)
    assert told in finding.verdict.reason


def test_a_configuration_written_more_than_once_again() -> None:
    """The lines as they were, under the lock: they are replaced again, and only they."""
    path = "pkg/etcd/etcd.go"
    before, after = fixture()[path].decode(), contents(planned().final)
    new = after[path].decode()
    was = before[before.index("\te.config.Datastore.Endpoint = ") :].split("\n\n")[0]
    once = new[new.index("\ttlsConfig := ") : new.index("\t\te.config.Datastore.BackendTLSConfig = tlsConfig\n\t}\n")]
    once += "\t\te.config.Datastore.BackendTLSConfig = tlsConfig\n\t}"
    was = was[: was.index("KeyFile")] + was[was.index("KeyFile") :].split("\n")[0]
    result = plan(after | {path: new.replace(once, was).encode()})
    assert [step.id for step in result.steps] == ["etcd-ready"]
    assert contents(result.final) == after


def _functions(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the functions and methods of a file, with their doc comments."""
    facts = gotree.of({"x.go": data.decode()})
    for decl in facts.decls("x.go"):
        if isinstance(decl, ast.FuncDecl):
            yield decl.title, data[(decl.doc or decl.span).start : decl.span.end]


def _hold(result: Plan, what: str) -> None:
    """Hold a plan to this: it is sound, and the end of the campaign unless it says what a person must do."""
    _sound(result, what)
    by_hand = any(isinstance(found.verdict, Manual) for found in result.findings)
    if not by_hand and not result.problems:
        found, wanted = _code(contents(result.final)), _code(contents(planned().final))
        assert (found - wanted, wanted - found) == (Counter(), Counter()), what


def _sound(result: Plan, what: str) -> None:
    unsound = [problem for problem in result.problems if problem.code in (ExitCode.INTERNAL, ExitCode.CONFLICT)]
    assert not unsound, f"{what}: {unsound}"


def _code(files: Files) -> Counter[str]:
    """Count the lines of code, but those of tests: tests come only with what they test."""
    code = (data.decode() for path, data in files.items() if path.endswith(".go") and not path.endswith("_test.go"))
    lines = (line.strip() for text in code for line in text.splitlines())
    return Counter(line for line in lines if line and not line.startswith(_COMPANIONS))


def _around(number: int) -> tuple[Step, Files, Files]:
    """Return a step of the fixture's series, and the trees before and after it."""
    before = dict(fixture())
    for step in planned().steps[:number]:
        after = before | {change.path: change.after.data for change in step.changes if change.after is not None}
        if step is planned().steps[number - 1]:
            return step, before, after
        before = after
    raise AssertionError(f"there is no step {number}")


def _parts(change: FileChange) -> list[tuple[str, str]]:
    """Return a file cut where a change begins or ends: each part as it was and as it is."""
    assert change.before is not None
    assert change.after is not None
    old, new = (text.decode().splitlines(keepends=True) for text in (change.before.data, change.after.data))
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    return [("".join(old[a:b]), "".join(new[c:d])) for _, a, b, c, d in matcher.get_opcodes()]


def _imports_for(part: str, hunk: str) -> bool:
    """Tell whether a part of a file imports what a hunk uses."""
    specs = [_IMPORT.fullmatch(line.strip()) for line in part.splitlines() if line.strip()]
    names = [spec[1] or spec[2] for spec in specs if spec is not None]
    return len(names) == len(specs) and any(f"{name}." in hunk for name in names)


def _mixed(parts: list[tuple[str, str]], taken: Container[int]) -> bytes:
    return "".join(_taken(parts, taken)).encode()


def _taken(parts: list[tuple[str, str]], taken: Container[int]) -> Iterator[str]:
    return (new if at in taken else old for at, (old, new) in enumerate(parts))
