"""Branches × sites as text, JSON, HTML, and as folders: readable, escaped, and the same whatever a ref is called."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from html.parser import HTMLParser

import jsonschema
import pytest
from referencing import Registry, Resource

from refactor_tool.model import BranchRow, ExitCode, SiteCell, SiteState
from refactor_tool.report.document import as_json
from refactor_tool.report.folder import branch_folders
from refactor_tool.report.table import STATES, columns, matrix_document, matrix_text
from refactor_tool.report.table_page import matrix_html
from refactor_tool.report.text import Paint
from tests.command import ROOT

PLAIN = Paint(colour=False)
HOSTILE = '</th><script>alert("x")</script>\x1b[2J{{legend}}\u202eabc&amp;'


def site(anchor: str, state: SiteState = "to do", codemod: str = "cri-ready", **more: object) -> SiteCell:
    place = "" if state == "missing" else "pkg/a.go (*T).Run"
    return SiteCell(codemod, anchor, state, place, f"why {anchor}", None if state == "missing" else 7, **more)  # type: ignore[arg-type]


def branch(ref: str, *cells: SiteCell, code: ExitCode = ExitCode.FINDINGS, **more: object) -> BranchRow:
    return BranchRow("repo", ref, code, era="carried", cells=cells, **more)  # type: ignore[arg-type]


MANY = tuple(site(f"site-{at}", STATES[at % 5], f"codemod-{at // 9}") for at in range(64))
FAILED = BranchRow("repo", "gone", ExitCode.ENVIRONMENT, "'gone' is not a commit here", "to see what is there: git")
DRIFTED = branch(
    "old",
    site("one", "differs", step="do it", expected="known shape", found="another shape", moved="pkg/b.go Run"),
    site("two", "missing", step="find it", expected="known shape"),
    site("", "differs", step="look"),
)


# --- text -------------------------------------------------------------------------------------------


def test_text_in_full() -> None:
    rows = [branch("main", site("one"), site("two", "applied"), site("three", "left", "etcd-ready")), DRIFTED, FAILED]
    assert matrix_text(rows, PLAIN) == (
        "✓ applied   · left   → to do   ! differs   ✗ missing\n"
        "\n"
        " 1 cri-ready, 2 sites\n"
        " 2 etcd-ready, 1 site\n"
        "\n"
        "  1  2\n"
        "main  1 applied, 1 to do  (carried)\n"
        "  →✓ ·\n"
        "old  2 differs, 1 missing  (carried)\n"
        "  !✗\n"
        "gone  'gone' is not a commit here\n"
        "  to see what is there: git\n"
        "\n"
        "needs a hand\n"
        "  old cri-ready/one: differs at pkg/a.go:7 (*T).Run, moved from pkg/b.go Run\n"
        "    why    why one\n"
        "    known  known shape\n"
        "    found  another shape\n"
        "    do     do it\n"
        "  old cri-ready/two: missing\n"
        "    why    why two\n"
        "    known  known shape\n"
        "    do     find it\n"
        "  old cri-ready: differs at pkg/a.go:7 (*T).Run\n"
        "    why    why \n"
        "    do     look\n"
        "\n"
        "3 branches: 1 to do, 1 by hand, 1 failed\n"
    )


def test_site_that_a_branch_has_not_is_a_gap() -> None:
    rows = [branch("a", site("one"), site("two")), branch("b", site("two", "applied"))]
    bars = [line for line in matrix_text(rows, PLAIN).split("\n") if re.fullmatch(r"  [→✓ ]+", line)]
    assert bars == ["  →→", "   ✓"]


def test_sites_stand_in_the_order_of_the_campaign_whichever_branch_is_first() -> None:
    whole = [site("a"), site("b"), site("c"), site("d", codemod="etcd-ready"), site("e", codemod="etcd-ready")]
    rows = [branch("x", whole[1], whole[4]), branch("y", whole[0], whole[3]), branch("z", *whole)]
    for turned in (rows, rows[::-1], [rows[1], rows[0], rows[2]]):
        assert columns(turned) == {"cri-ready": ("a", "b", "c"), "etcd-ready": ("d", "e")}


@pytest.mark.parametrize("width", [40, 80, 200])
def test_bars_fit_the_width(width: int) -> None:
    rows = [branch("a-branch-with-quite-a-long-name/of-two-parts", *MANY), branch("b", *MANY[:10])]
    text = matrix_text(rows, PLAIN, width=width)
    bars = [line for line in text.split("\n") if re.fullmatch(r"  [✓·→!✗ ]+", line)]
    assert all(len(line) <= width for line in bars)
    assert sum(len(line.replace(" ", "")) for line in bars) == 64 + 10
    if width >= 80:
        assert len(bars) == 2, "one line a branch where that fits"


def test_numbers_stand_above_the_sites_of_their_codemods() -> None:
    lines = matrix_text([branch("main", *MANY)], PLAIN).split("\n")
    numbers = next(line for line in lines if line.startswith("  1 "))
    bar = lines[lines.index(numbers) + 2]
    starts = [found.start() for found in re.finditer(r"\S+", bar)]
    assert starts == [found.start() for found in re.finditer(r"\S+", numbers)]


def test_refs_of_several_repositories_are_told_apart() -> None:
    rows = [branch("main", site("one")), BranchRow("other", "main", ExitCode.CLEAN, era="asked", cells=(site("one"),))]
    text = matrix_text(rows, PLAIN)
    assert "\nrepo: main  " in text
    assert "\nother: main  " in text


def test_ascii_where_signs_cannot_be_shown() -> None:
    assert matrix_text([branch("main", *MANY)], PLAIN, plain=True).isascii()


def test_text_of_a_tree_cannot_steer_the_terminal() -> None:
    row = branch(HOSTILE, site("one", "differs", step="a\x1b[2Jb", found="x\x07y", expected="k"))
    text = matrix_text([row], PLAIN)
    assert all(char.isprintable() or char == "\n" for char in text)


def test_colour_is_put_on_states_and_taken_off_leaves_the_same() -> None:
    rows = [branch("main", *MANY), DRIFTED, FAILED]
    coloured = matrix_text(rows, Paint(colour=True))
    assert "\x1b[31m✗\x1b[0m" in coloured
    assert re.sub(r"\x1b\[\d+m", "", coloured) == matrix_text(rows, PLAIN)


def test_problem_that_no_site_tells_is_told() -> None:
    problems = [
        {"code": 6, "message": "edits overlap", "path": "pkg/a.go", "line": 3, "step": "cri-ready"},
        {"code": 1, "message": "why one", "path": "pkg/a.go", "line": 7, "step": "cri-ready"},
        {"code": 4, "message": "the site two is missing", "path": "", "line": None, "step": "cri-ready"},
    ]
    row = branch("main", site("one", "differs"), site("two", "missing"), document={"problems": problems})
    told = matrix_text([row], PLAIN)
    assert "  main cri-ready: pkg/a.go: edits overlap\n" in told
    assert told.count("why one") == 1
    assert "the site two is missing" not in told


@pytest.mark.parametrize(
    ("rows", "total"),
    [
        ([], "0 branches: nothing to look at"),
        ([branch("a", site("one"))], "1 branch: 1 to do"),
        ([branch("a", site("one", "applied"), code=ExitCode.CLEAN)] * 2, "2 branches: 2 done"),
        ([FAILED, DRIFTED], "2 branches: 1 by hand, 1 failed"),
    ],
    ids=["none", "one", "done", "worst"],
)
def test_last_line_counts_branches(rows: list[BranchRow], total: str) -> None:
    assert matrix_text(rows, PLAIN).rstrip("\n").split("\n")[-1] == total


# --- JSON -------------------------------------------------------------------------------------------


def validate(document: object, name: str) -> None:
    """Hold a document against one of the published schemas."""
    schemas = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in (ROOT / "schemas").glob("*.json")}
    registry: Registry = Registry().with_resources(
        (file, Resource.from_contents(schema)) for file, schema in schemas.items()
    )
    jsonschema.Draft202012Validator(schemas[name], registry=registry).validate(document)


def test_document_is_as_the_schema_says_and_counts_states() -> None:
    rows = [branch("main", *MANY), DRIFTED, FAILED]
    document = json.loads(as_json(matrix_document(rows, {0: "main"})))
    validate(document, "matrix.schema.json")
    assert [each["folder"] for each in document["branches"]] == ["main", None, None]
    assert sum(document["summary"]["states"].values()) == 64 + 3
    assert document["summary"]["exit_code"] == 3
    assert document["branches"][1]["sites"][0] == {
        "codemod": "cri-ready",
        "site": "one",
        "state": "differs",
        "place": "pkg/a.go (*T).Run",
        "line": 7,
        "why": "why one",
        "moved_from": "pkg/b.go Run",
        "step": "do it",
        "expected": "known shape",
        "found": "another shape",
    }


def test_document_holds_names_that_are_not_utf8() -> None:
    data = as_json(matrix_document([branch("a\udcffb", site("one"))], {}))
    assert json.loads(data.decode("ascii"))["branches"][0]["ref"] == "a\udcffb"


# --- HTML -------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """Collects elements and text; fails for a tag that is not closed in order."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.feed(data.decode())
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_page_has_a_square_a_site_and_branch() -> None:
    page = Page(matrix_html([branch("main", *MANY), branch("b", *MANY[:60]), FAILED], {0: "main/report.html"}))
    squares = [attrs for tag, attrs in page.found if tag == "i" and "title" in attrs]
    assert len(squares) == 2 * 64
    assert sum("style" in attrs for attrs in squares) == 64 + 60
    assert squares[0]["title"] == "codemod-0/site-0: applied\npkg/a.go:7 (*T).Run\nwhy site-0"
    assert squares[-1]["title"] == "codemod-7/site-63: no such site here"
    assert [attrs["href"] for tag, attrs in page.found if tag == "a"] == ["main/report.html"]
    assert "'gone' is not a commit here" in page.text


def test_page_tells_of_drift_what_the_text_tells() -> None:
    page = " ".join(Page(matrix_html([DRIFTED], {})).text)
    for said in ("old needs a hand", "known shape", "another shape", "do it", "moved from pkg/b.go Run", "find it"):
        assert said in page


@pytest.mark.parametrize("where", ["ref", "era", "message", "hint", "place", "why", "found", "step", "moved"])
def test_page_escapes_whatever_comes_from_a_tree(where: str) -> None:
    if where in ("ref", "era"):
        row = BranchRow("repo", HOSTILE if where == "ref" else "x", ExitCode.CLEAN, era=HOSTILE, cells=(site("one"),))
    elif where in ("message", "hint"):
        row = BranchRow("repo", "x", ExitCode.ENVIRONMENT, **{"message": "m", where: HOSTILE})  # type: ignore[arg-type]
    else:
        values = {"place": "pkg/a.go Run", "why": "y"} | {where: HOSTILE}
        row = branch("x", SiteCell("cri-ready", "one", "differs", line=1, **values))  # type: ignore[arg-type]
    page = Page(matrix_html([row, row], {0: HOSTILE}))
    assert {tag for tag, _ in page.found} <= set(
        "html meta title style h1 h2 p span div table thead tbody tr th td a i small ol li dl dt dd br code".split()
    )
    assert all("\x1b" not in text and "\u202e" not in text for text in page.text)
    assert not any(name.startswith("on") for _, attrs in page.found for name in attrs)


def test_page_needs_nothing_from_elsewhere() -> None:
    page = matrix_html([branch("main", *MANY), DRIFTED, FAILED], {}).decode()
    assert not re.search(r"https?:|src=|@import|url\(", page)


def test_same_rows_same_bytes() -> None:
    rows = [branch("main", *MANY), DRIFTED, FAILED]
    assert matrix_html(rows, {}) == matrix_html(list(rows), {})


# --- folders ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Named:
    """Refs, each with the repository before a colon, and the folders wanted."""

    refs: tuple[str, ...]
    folders: tuple[str, ...]


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(Named(("main", "older/v1.30"), ("main", "older/v1.30")), id="as the ref"),
        pytest.param(Named(("a:main", "b:main"), ("a/main", "b/main")), id="below the repository where there are several"),
        pytest.param(Named(("x/k3s.git:m", "y/k3s.git:m"), ("k3s.git/m", "k3s.git~2/m")), id="repositories of one name"),
        pytest.param(Named((".:m", "..:m"), ("_./m", "_../m")), id="repositories without a name"),
        pytest.param(Named(("/:m", "a:m"), ("repository/m", "a/m")), id="root of the disk"),
        pytest.param(Named(("Main", "main", "MAIN"), ("Main", "main~2", "MAIN~3")), id="disk without upper case"),
        pytest.param(Named(("plan.json", "matrix.html"), ("plan.json~2", "matrix.html~2")), id="names of our files"),
        pytest.param(Named(("a", "a/plan.json"), ("a", "a/plan.json~2")), id="name of a file of another branch"),
        pytest.param(Named(("a/plan.json", "a"), ("a/plan.json", "a~2")), id="the other way round"),
        pytest.param(Named(("a/b", "a"), ("a/b", "a")), id="one above the other"),
        pytest.param(Named(("../../etc", "a/./b", "..."), ("_../_../etc", "a/_./b", "_...")), id="no way up"),
        pytest.param(Named(("HEAD:x", 'a\\b*?"<>|', "a\nb\udcff"), ("HEAD/x", "x/a_b______", "x/a_b_")), id="no odd letters"),
        pytest.param(Named(("v1~1", "@{-1}"), ("v1~1", "@{-1}")), id="revisions"),
    ],
)  # fmt: skip
def test_series_are_in_folders_that_never_meet(case: Named) -> None:
    rows = []
    for ref in case.refs:
        repository, colon, name = ref.rpartition(":")
        files = (("0001-x.patch", b""), ("plan.json", b""))
        rows.append(BranchRow(repository if colon else "x", name, ExitCode.FINDINGS, files=files))
    found = branch_folders(rows)
    assert tuple(found.values()) == case.folders
    paths = [f"{folder}/{name}".casefold() for folder in found.values() for name in ("0001-x.patch", "plan.json")]
    taken = {*paths, "plan.json", "matrix.html"}
    assert len(taken) == len(paths) + 2
    assert not any(other.startswith(f"{path}/") for path in taken for other in taken)


def test_branch_without_files_has_no_folder() -> None:
    assert branch_folders([FAILED, branch("main", site("one"))]) == {}
