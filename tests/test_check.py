"""The command as CI calls it: one decision, one line, one exit code, for every way a run can end.

The table is the contract: a row for each exit code, and for each lie a gate could tell.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from refactor_tool.rule import MARK
from refactor_tool.rules import RULES
from tests import trees
from tests.command import run
from tests.repo import Repo

MODULE = "github.com/k3s-io/k3s"
EXTRA = "pkg/agent/extra.go"


def go(body: str, *, imports: str = f'"{MODULE}/pkg/util"', head: str = "package agent") -> str:
    return f'{head}\n\nimport (\n\t"context"\n\t"time"\n\n\t{imports}\n)\n\n{body}\n'


CALL = (
    "func extra(ctx context.Context, file string) error {\n\treturn %sWaitForAPIServerReady(ctx, file, time.Minute)\n}"
)
#: A wait that somebody adds after the campaign, in every form it can take.
FIFTH = {
    "plain call": go(CALL % "util."),
    "under an alias": go(CALL % "other.", imports=f'other "{MODULE}/pkg/util"'),
    "dot import": go(CALL % "", imports=f'. "{MODULE}/pkg/util"'),
    "function value": go(
        "var _ = time.Second\n\nfunc extra(_ context.Context) any {\n\treturn util.WaitForAPIServerReady\n}"
    ),
    "behind a build tag": go(CALL % "util.", head="//go:build windows\n\npackage agent"),
    "behind a tag nobody sets": go(CALL % "util.", head="//go:build never\n\npackage agent"),
    "in parentheses": go(CALL % "(util).").replace("(util).WaitForAPIServerReady(", "(util.WaitForAPIServerReady)("),
}
HAZARD_FILE = "pkg/agent/hazard/hazard.go"
IGNORE = "//refactor-tool:ignore"


def fifth(form: str = "plain call") -> trees.Files:
    return trees.added(trees.after(), EXTRA, FIFTH[form])


def excused(comment: str) -> trees.Files:
    """Return the migrated tree with a fifth wait and a comment above it."""
    return trees.added(trees.after(), EXTRA, FIFTH["plain call"].replace("\treturn", f"\t{comment}\n\treturn"))


def hazard(comment: str = "") -> str:
    """Return a file with one hazard, which its rule shows itself; with a comment above the line, if there is one."""
    (rule,) = [rule for rule in RULES if rule.id == "L22"]
    lines = rule.bad[0].go.split("\n")
    at = next(number for number, line in enumerate(lines) if line.endswith(MARK))
    return "\n".join([*lines[:at], *([comment] if comment else []), lines[at].removesuffix(MARK), *lines[at + 1 :]])


def config(text: str, files: Callable[[], trees.Files] = trees.after) -> Callable[[], trees.Files]:
    return lambda: trees.added(files(), ".refactor-tool.toml", text)


def nothing(repo: Repo) -> None:
    """Leave the repository as it was committed."""


@dataclass(frozen=True)
class Row:
    """One run: the tree, what happens to the repository, the arguments, and how it must end."""

    id: str
    code: int
    line: str
    args: Sequence[str] = ()
    files: Callable[[], trees.Files] = trees.after
    prepare: Callable[[Repo], object] = nothing
    env: dict[str, str] = field(default_factory=dict)
    #: Whether the files of `--format NAME=FILE` are written: not where the request itself cannot be read.
    writes: bool = True


def baselined(repo: Repo, *more: str) -> None:
    """Accept what the tree holds now."""
    assert run("check", repo.path, "--baseline", repo.path / "accepted", "--write-baseline", *more).code == 0


def then(*steps: Callable[[Repo], object]) -> Callable[[Repo], None]:
    def do(repo: Repo) -> None:
        for step in steps:
            step(repo)

    return do


def put(name: str, text: str | bytes) -> Callable[[Repo], object]:
    def do(repo: Repo) -> None:
        (repo.path / name).parent.mkdir(parents=True, exist_ok=True)
        (repo.path / name).write_bytes(text if isinstance(text, bytes) else text.encode())

    return do


def git(*args: str) -> Callable[[Repo], object]:
    return lambda repo: repo.git(*args)


def unmerged(repo: Repo) -> None:
    for branch, text in (("one", "1"), ("two", "2")):
        repo.git("checkout", "-q", "-b", branch, "main")
        (repo.path / EXTRA).write_text(f"package agent\n\nconst x = {text}\n")
        repo.git("add", "-A")
        repo.git("commit", "-q", "-m", branch)
    assert repo.run("merge", "-q", "one").returncode == 1


def undone() -> trees.Files:
    """Return the migrated tree with the agent's wait as it was before."""
    return trees.after() | {"pkg/agent/tunnel/tunnel.go": trees.before()["pkg/agent/tunnel/tunnel.go"]}


ACCEPTED = ("--baseline", "accepted")
ROWS = [
    # 0: nothing to do, or nothing that counts
    Row("migrated tree", 0, "passed: nothing to do in"),
    Row("a ref of it", 0, "passed: nothing to do in", ["--ref", "main"]),
    Row("its index", 0, "passed: nothing to do in", ["--staged"]),
    Row(
        "findings and --fail-on never, said aloud",
        0,
        "not held against it with --fail-on never:",
        ["--fail-on", "never"],
        fifth,
    ),
    Row("findings of the base", 0, "there before", ["--base", "main"], trees.before),
    Row("everything accepted", 0, "in the baseline", ACCEPTED, trees.before, baselined),
    Row(
        "accepted, by rules that do not run now",
        0,
        "hazard rules not run",
        [*ACCEPTED, "--rules", "none"],
        prepare=then(put(HAZARD_FILE, hazard()), baselined),
    ),
    Row(
        "written anew without the rules, which keeps their entries",
        0,
        "in the baseline",
        ACCEPTED,
        prepare=then(put(HAZARD_FILE, hazard()), baselined, lambda repo: baselined(repo, "--rules", "none")),
    ),
    Row(
        "suppressed with rule and reason",
        0,
        "suppressed in the source",
        (),
        lambda: excused(f"{IGNORE} apiserver-ready known"),
    ),
    Row(
        "suppressed to this very day",
        0,
        "suppressed",
        ["--today", "2026-11-30"],
        lambda: excused(f"{IGNORE} apiserver-ready known until=2026-11-30"),
    ),
    Row("configuration that looks away", 0, "--fail-on never", (), config('fail-on = "never"', fifth)),
    Row(
        "moved file",
        0,
        "there before",
        ["--base", "main", "--staged"],
        trees.before,
        git("mv", "pkg/agent/tunnel/tunnel.go", "pkg/agent/tunnel/moved.go"),
    ),
    Row("old hazards, told from new ones by a base", 0, "there before", ["--base", "main"]),
    Row("new hazard, and rules that were not asked", 0, "hazard rules not run", prepare=put(HAZARD_FILE, hazard())),
    Row(
        "new hazard, suppressed",
        0,
        "1 suppressed in the source",
        ["--base", "main"],
        prepare=put(HAZARD_FILE, hazard(f"{IGNORE} L22 known")),
    ),
    Row(
        "suppression of a rule that was not asked", 0, "passed", prepare=put(HAZARD_FILE, hazard(f"{IGNORE} L22 known"))
    ),
    # 1: findings or a pending change
    Row("campaign to do", 1, "steps to do: surface-readyz-errors (1 site), executor-ready-channels", (), trees.before),
    Row("one site undone by hand", 1, "steps to do: apiserver-ready (", (), undone),
    *(Row(f"fifth wait, {form}", 1, "failed (exit 1): ", (), lambda form=form: fifth(form)) for form in FIFTH),
    Row(
        "fifth wait in a test",
        1,
        "failed (exit 1): ",
        (),
        lambda: trees.added(trees.after(), "pkg/agent/extra_test.go", FIFTH["plain call"]),
    ),
    Row("fifth wait, not committed", 1, "failed (exit 1): ", (), prepare=put(EXTRA, FIFTH["plain call"])),
    Row(
        "fifth wait, only staged",
        1,
        "failed (exit 1): ",
        ["--staged"],
        prepare=then(put(EXTRA, FIFTH["plain call"]), git("add", "-A"), put(EXTRA, "package agent\n")),
    ),
    Row(
        "new since the base",
        1,
        "failed (exit 1): 1 finding at or above error",
        ["--base", "main"],
        prepare=put(EXTRA, FIFTH["plain call"]),
    ),
    Row(
        "new beside the accepted",
        1,
        "1 finding at or above error",
        ACCEPTED,
        trees.before,
        then(baselined, put(EXTRA, FIFTH["plain call"])),
    ),
    Row("stale baseline", 1, "finding", ACCEPTED, fifth, then(baselined, put(EXTRA, "package agent\n"))),
    Row(
        "unused suppression",
        1,
        "1 finding at or above error",
        (),
        lambda: trees.added(trees.after(), EXTRA, f"package agent\n\n{IGNORE} apiserver-ready why\nvar x = 1\n"),
    ),
    Row("suppression without a reason", 1, "2 findings", (), lambda: excused(f"{IGNORE} apiserver-ready")),
    Row("suppression without a rule", 1, "2 findings", (), lambda: excused(IGNORE)),
    Row(
        "suppression of a rule that is not there", 1, "2 findings", (), lambda: excused(f"{IGNORE} apiserver-raedy why")
    ),
    Row("suppression of another rule", 1, "2 findings", (), lambda: excused(f"{IGNORE} cri-ready why")),
    Row(
        "expired suppression",
        1,
        "1 finding",
        ["--today", "2026-12-01"],
        lambda: excused(f"{IGNORE} apiserver-ready known until=2026-11-30"),
    ),
    Row(
        "expired by SOURCE_DATE_EPOCH",
        1,
        "1 finding",
        (),
        lambda: excused(f"{IGNORE} apiserver-ready known until=2026-11-30"),
        env={"SOURCE_DATE_EPOCH": "1796083200"},
    ),
    Row(
        "flag against a configuration that looks away",
        1,
        "failed (exit 1)",
        ["--fail-on", "error"],
        config('fail-on = "never"', fifth),
    ),
    Row("old hazards, asked for", 1, "findings at or above error", ["--rules", "all"]),
    Row(
        "new hazard",
        1,
        "failed (exit 1): 1 finding at or above error",
        ["--base", "main"],
        prepare=put(HAZARD_FILE, hazard()),
    ),
    Row(
        "new hazard, asked for alone",
        1,
        "1 finding",
        ["--rules", "L22", "--base", "main"],
        prepare=put(HAZARD_FILE, hazard()),
    ),
    Row("hazards wanted by the configuration", 1, "findings at or above error", (), config('rules = "all"')),
    # 2: usage or configuration
    Row("unknown format", 2, "there is no format 'sarf'; did you mean 'sarif'?", ["--format", "sarf"], writes=False),
    Row("format without its file", 2, "no file is named", ["--format", "sarif="], writes=False),
    Row("two formats on standard output", 2, "two formats go to standard output", ["--format", "json"], writes=False),
    Row("unknown rule", 2, "there is no rule 'L9'; did you mean 'L09'?", ["--rules", "L9"]),
    Row("unknown threshold", 2, "'eror' is no threshold; did you mean 'error'?", ["--fail-on", "eror"]),
    Row("unknown option", 2, "", ["--fial-on", "error"], writes=False),
    Row("unknown key", 2, "there is no key 'fail_on'; did you mean 'fail-on'?", (), config("fail_on = 1")),
    Row("configuration that is no TOML", 2, ".refactor-tool.toml: not TOML", (), config("fail-on")),
    Row("configuration that is not there", 2, "no such file", ["--config", "absent.toml"]),
    Row("baseline that is not there", 2, "there is no such baseline (to write it: refactor-tool check", ACCEPTED),
    Row(
        "baseline in conflict",
        2,
        "accepted:2: not a line of a baseline (finish the merge)",
        ACCEPTED,
        prepare=put("accepted", '{"schema": "refactor-tool/baseline/1"}\n<<<<<<< ours\n'),
    ),
    Row("baseline to write, but where", 2, "--write-baseline needs to know which file", ["--write-baseline"]),
    Row(
        "baseline of a difference",
        2,
        "--write-baseline needs to know a whole tree",
        [*ACCEPTED, "--write-baseline", "--base", "main"],
    ),
    Row("day that is none", 2, "'2026-02-30' is no day", ["--today", "2026-02-30"]),
    Row("SOURCE_DATE_EPOCH that is no number", 2, "SOURCE_DATE_EPOCH is 'soon'", (), env={"SOURCE_DATE_EPOCH": "soon"}),
    *(
        Row(f"SOURCE_DATE_EPOCH that is {what}", 2, f"SOURCE_DATE_EPOCH is '{text}'", env={"SOURCE_DATE_EPOCH": text})
        for what, text in {"of the year 10000": "253402300800", "before 1970": "-1", "endless": "9" * 400}.items()
    ),
    Row("last second that is a day", 0, "passed", env={"SOURCE_DATE_EPOCH": "253402300799"}),
    Row("index and ref at once", 2, "--staged and --ref name two trees", ["--staged", "--ref", "main"]),
    Row("ref that is an option", 2, "is not a ref", ["--ref", "--upload-pack=x"]),
    # 3: environment
    Row("unknown ref", 3, "'mian' is not a commit here (near names: main)", ["--ref", "mian"]),
    Row("unknown base", 3, "the base: ", ["--base", "mian"]),
    Row(
        "base without a common history",
        3,
        "no history in common",
        ["--base", "other..."],
        prepare=then(
            git("checkout", "-q", "--orphan", "other"), git("commit", "-q", "-m", "x"), git("checkout", "-q", "main")
        ),
    ),
    Row("no git", 3, "git was not found", (), env={"PATH": "/nonexistent"}),
    # 4: nothing scanned, or not what must be there
    Row("no Go file", 4, "no Go file is there", (), lambda: {"README": trees.before()["go.mod"]}),
    Row(
        "another module",
        4,
        "is not k3s",
        (),
        lambda: trees.added({"go.mod": trees.before()["go.mod"]}, "main.go", "package main\n"),
    ),
    Row("Go files without a module", 4, "no go.mod", (), lambda: trees.without(trees.before(), "go.mod")),
    Row(
        "base that is no k3s",
        4,
        "",
        ["--base", "other"],
        prepare=then(
            git("checkout", "-q", "--orphan", "other"),
            git("rm", "-r", "-q", "-f", "."),
            put("README", "x"),
            git("add", "-A"),
            git("commit", "-q", "-m", "x"),
            git("checkout", "-q", "main"),
        ),
    ),
    Row(
        "site that is missing",
        4,
        "is missing",
        ["--fail-on", "never"],
        lambda: trees.without(trees.before(), "pkg/agent/tunnel/tunnel.go"),
    ),
    # 5: not Go
    Row(
        "file that does not parse",
        5,
        "pkg/util/api.go:",
        ["--fail-on", "never"],
        lambda: trees.edited(trees.before(), "pkg/util/api.go", "return err\n", "return err }}\n"),
    ),
    Row(
        "file that is not UTF-8",
        5,
        "pkg/util/api.go:",
        (),
        lambda: trees.before() | {"pkg/util/api.go": trees.File(trees.before()["pkg/util/api.go"].data + b"// \xff\n")},
    ),
    Row(
        "base that does not parse",
        5,
        "pkg/util/api.go:",
        ["--base", "main"],
        lambda: trees.edited(trees.before(), "pkg/util/api.go", "return err\n", "return err }}\n"),
        put("pkg/util/api.go", trees.before()["pkg/util/api.go"].data),
    ),
    # 6: conflict
    Row(
        "unmerged index",
        6,
        f"the index holds unmerged paths: {EXTRA} (finish the merge, then: git add {EXTRA})",
        ["--staged"],
        prepare=unmerged,
    ),
]


def test_table_has_a_row_for_each_code_and_enough_of_them() -> None:
    assert {row.code for row in ROWS} == {0, 1, 2, 3, 4, 5, 6}
    assert len(ROWS) >= 40
    assert len({row.id for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_run_ends_as_it_must(row: Row, tmp_path: Path) -> None:
    repo = Repo(tmp_path / "k3s")
    repo.commit(row.files())
    row.prepare(repo)
    out = tmp_path / "out.json"
    out.write_text('{"summary": {"exit_code": 0}, "stale": true}')
    ran = run("check", "--format", "text", "--format", f"json={out}", *row.args, cwd=repo.path, env=row.env)
    assert (ran.code, "Traceback" in ran.err) == (row.code, False), ran
    assert row.line in (ran.last if row.writes else ran.err), ran.last
    told = json.loads(out.read_bytes())
    assert ("stale" not in told) is row.writes
    if row.writes:
        assert told["summary"]["exit_code"] == told["gate"]["exit_code"] == row.code
        assert told["gate"]["passed"] is (row.code == 0)
        assert row.line in told["gate"]["line"]
    assert ran.last.startswith("passed: ") is (row.code == 0)


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["--baseline", "absent"], 2),
        (["--base", "absent"], 3),
        (["--today", "soon"], 2),
        (["--fail-on", "eror"], 2),
        (["--ref", "broken"], 5),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_failure_is_told_in_the_format_that_the_configuration_names(args: list[str], code: int, tmp_path: Path) -> None:
    repo = Repo(tmp_path / "k3s")
    repo.commit(config('format = "json"')())
    repo.git("checkout", "-q", "-b", "broken")
    repo.commit(trees.edited(config('format = "json"', trees.before)(), "pkg/util/api.go", "return err\n", "}}\n"))
    repo.git("checkout", "-q", "main")
    ran = run("check", repo.path, *args)
    assert (ran.code, json.loads(ran.out)["gate"]["exit_code"]) == (code, code)
