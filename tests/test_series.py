"""The series against the real git: shaped as format-patch shapes it, taken by `git am`, nothing lost on the way."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from email import message_from_bytes, policy
from itertools import pairwise
from pathlib import Path

import pytest

from refactor_tool.edits import unified
from refactor_tool.model import (
    CodemodError,
    Edit,
    ExitCode,
    File,
    FileChange,
    Finding,
    Leave,
    Manual,
    Plan,
    Problem,
    Rewrite,
    Snapshot,
    Span,
    Step,
    UsageError,
    Verdict,
)
from refactor_tool.record import replace
from refactor_tool.report.series import PatchFile, check_series, mailbox, message, series

from .repo import MAIL, NAME, Repo

AUTHOR = f"{NAME} <{MAIL}>"
SENT = 1700000000

Tree = Mapping[str, File]


def files(**data: bytes | str) -> dict[str, File]:
    """Make a tree; `_go` at the end of a name stands for `.go`."""
    return {
        name.replace("_go", ".go"): File(text.encode() if isinstance(text, str) else text)
        for name, text in data.items()
    }


def step(before: Tree, after: Tree, title: str = "Do it", body: str = "", findings: Sequence[Finding] = ()) -> Step:
    changes = tuple(
        FileChange(path, before.get(path), after.get(path))
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path)
    )
    return Step(title.lower().replace(" ", "-"), title, body, tuple(findings), changes)


def plan(*trees: Tree, titles: Sequence[str] = (), bodies: Sequence[str] = ()) -> Plan:
    """Make the plan whose steps go from each tree to the next."""
    steps = tuple(
        step(
            before,
            after,
            titles[number] if number < len(titles) else f"Step {number}",
            bodies[number] if number < len(bodies) else "",
        )
        for number, (before, after) in enumerate(pairwise(trees))
    )
    base = Snapshot(trees[0], committed_at=SENT)
    return Plan(base, (), steps, Snapshot(trees[-1]))


def letters(value: Plan, **options: str | None) -> tuple[PatchFile, ...]:
    return series(value, **{"version": "9.9", "author": AUTHOR, **options})  # type: ignore[arg-type]


def cover(value: Plan, **options: str | None) -> str:
    return letters(value, **options)[0].data.decode()


def applied(repo: Repo, value: Plan, **options: str | None) -> list[str]:
    """Apply the series to its base with `git am`; return the messages it recorded, first one first."""
    start = repo.commit(value.base.files)
    repo.git("am", stdin=mailbox(letters(value, **options)))
    log = repo.git("log", "--reverse", "--format=%B%x00", f"{start}..").decode()
    return [text.lstrip("\n") + "\n" for text in log.replace("\n\0", "\0").split("\0")[:-1]]


def in_git(tree: Tree) -> dict[str, tuple[str, str]]:
    return {path: (file.mode, file.oid) for path, file in tree.items()}


# --- the same bytes as format-patch -------------------------------------------------------------------

LONG = "Carry the container runtime's readiness through one channel instead of five structs of pointers"
GO = "package p\n\nfunc f() {\n\ta()\n}\n"
MORE = "\nfunc g() {\n\tb()\n}\n"
_UNSORTED = ("a/b", "a-b", "a.b", "ab", "a0/b", "B", "\U0001f600", "é", b"\xff".decode("utf-8", "surrogateescape"))
SHAPES: dict[str, tuple[Plan, str]] = {
    "one step": (plan(files(a_go=GO), files(a_go=GO.replace("a()", "b()"))), AUTHOR),
    "several steps": (
        plan(
            files(a_go=GO, z_go=GO),
            files(a_go=GO, z_go=GO + MORE, m_go=GO),
            files(a_go=GO + MORE, m_go=""),
            files(a_go=GO + MORE, m_go=GO),
            bodies=["Why.\n\nMore,\n  indented.", "", "See k3s-io/k3s#11896."],
        ),
        AUTHOR,
    ),
    "ten steps": (plan(*(files(a_go="x\n" * number) for number in range(11))), AUTHOR),
    "long title": (plan({}, files(a_go=GO), titles=[LONG]), AUTHOR),
    "titles around the width of a line": (
        plan(
            {},
            *(files(a_go=f"{number}\n") for number in range(12)),
            titles=["w" * (45 + n) + " end" for n in range(12)],
        ),
        AUTHOR,
    ),
    "encoded titles around the width of a line": (
        plan(
            {},
            *(files(a_go=f"{number}\n") for number in range(12)),
            titles=["é" + "w" * (20 + n) + "ßß" for n in range(12)],
        ),
        AUTHOR,
    ),
    "title of one long word": (plan({}, files(a_go=GO), titles=["x" * 90 + " y"]), AUTHOR),
    "title with odd characters": (
        plan({}, files(a_go=GO), titles=["Say: 'no...' (see a/b), 100 % _x.go=?x..."]),
        AUTHOR,
    ),
    "title that looks encoded": (plan({}, files(a_go=GO), titles=["Keep =?UTF-8?q?x?= as it is"]), AUTHOR),
    "title not ASCII": (
        plan({}, files(a_go=GO), titles=["Führe die Prüfung aus – und zwar „immer“, auch wenn es lange dauert"]),
        AUTHOR,
    ),
    "body not ASCII": (plan({}, files(a_go=GO), bodies=["Für alle.\nÜber alles."]), AUTHOR),
    "author with a dot": (plan({}, files(a_go=GO)), "A. U. (Jr) Thor <a@example.org>"),
    "author not ASCII": (plan({}, files(a_go=GO)), "Zoë O'Böe-Łuk <z@example.org>"),
    "author too long for a line": (plan({}, files(a_go=GO)), f"{'Long Name ' * 5}X <{'mail' * 9}@example.org>"),
    "a name with one long directory": (plan({}, {"d" * 70 + "/f.go": File(b"x\n" * 90)}), AUTHOR),
    "names that need quoting": (
        plan({'a"b.go': File(b""), "é.go": File(b"x\n")}, {"a b.go": File(b"x\n"), "é.go": File(b"y\n")}),
        AUTHOR,
    ),
    "modes": (plan(files(a="x\n"), {"a": File(b"x\n", "100755"), "b": File(b"", "100755")}, {}), AUTHOR),
    "order of names is that of bytes": (
        plan({}, {name: File(b"x\n") for name in _UNSORTED}),
        AUTHOR,
    ),
    "a step is taken back by the next": (plan(files(a="x\n"), files(a="y\n"), files(a="x\n")), AUTHOR),
    "long names and many lines": (
        plan(
            files(small="1\n"),
            {
                "small": File(b"2\n"),
                f"pkg/{'deep/' * 15}file.go": File(b"x\n" * 300),
                "x" * 90: File(b"x\n"),
                "both": File(b"x\n" * 3000),
            },
            {"both": File(b"y\n" * 30 + b"x\n" * 2000), "small": File(b"")},
        ),
        AUTHOR,
    ),
    "long names and few lines": (
        plan({}, {f"pkg/{'deep/' * 15}file.go": File(b"x\n" * 12), "b": File(b"x\n")}),
        AUTHOR,
    ),
    "raw bytes in the diff": (plan(files(a="é\n"), files(a="è\n")), AUTHOR),
}


@pytest.mark.parametrize(("value", "author"), SHAPES.values(), ids=SHAPES)
def test_series_is_what_format_patch_writes(value: Plan, author: str, tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo")
    name = author.partition(" <")[0]
    tree: Tree = value.base.files
    base = repo.commit(tree)
    for each in value.steps:
        tree = Snapshot(tree).with_changes(each.changes).files
        repo.commit(tree, message(each))
        repo.git("commit", "-q", "--amend", "--no-edit", f"--author={author}")
    shape = ("--zero-commit", "--full-index", "--no-renames", "--signature=9.9", "--cover-letter", f"--base={base}")
    repo.git("format-patch", "-q", "-o", str(tmp_path / "out"), *shape, base)
    theirs = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}

    ours = {
        patch.name: patch.data
        for patch in letters(replace(value, base=replace(value.base, commit=base)), author=author)
    }
    assert list(ours) == sorted(theirs)
    covers = [found.pop("0000-cover-letter.patch") for found in (ours, theirs)]
    assert ours == theirs
    shortlog = f"\n\n{name} ({len(value.steps)}):\n".encode()
    assert covers[0].partition(shortlog)[1:] == covers[1].partition(shortlog)[1:], "from the shortlog to the end"


# --- git am gives back what was planned ---------------------------------------------------------------

CRLF = GO.replace("\n", "\r\n").encode()
CARRIED: dict[str, tuple[Tree, ...]] = {
    "change, new file, deletion": (files(a=GO, b=GO), files(a=GO + GO, c=GO)),
    "CRLF changed": (files(a=CRLF), files(a=CRLF.replace(b"a()", b"b()")), files(a=CRLF * 2)),
    "CRLF new and deleted": (files(a=CRLF), files(b=CRLF), files()),
    "CRLF to LF and back": (files(a=CRLF), files(a=GO), files(a=CRLF)),
    "one CRLF among LF": (files(a=GO), files(a=GO + "x\r\n" + GO)),
    "lone CR": (files(a="a\rb\nc\r"), files(a="a\rb\nd\r")),
    "no last newline": (files(a=GO[:-1]), files(a=GO), files(a=GO[:-1] + "x")),
    "no last newline with CRLF": (files(a=CRLF[:-2]), files(a=CRLF), files(a=CRLF[:-1])),
    "empty files": (files(a=""), files(b=""), files(b=GO), files(b="")),
    "modes": (
        files(a=GO),
        {"a": File(GO.encode(), "100755")},
        {"a": File(b"x", "100755"), "b": File(b"", "100755")},
    ),
    "not UTF-8": (files(a=b"\xff\xfe\nx\n"), files(a=b"\xff\xfe\ny\x80\n")),
    "NUL": (files(a=b"a\0b\nx\n"), files(a=b"a\0c\nx\n")),
    "very long lines": (
        files(a="x" * 5000 + "\ny\n"),
        files(a="x" * 5001 + " \ny\n"),
        files(a="From " * 400 + "\ny\n"),
    ),
    "long lines that soft breaks cut before From": (
        files(a="\r\n"),
        files(a="\r\n" + "".join("y" * pad + "From nobody Mon Sep 17 00:00:00 2001\n" for pad in range(60, 90))),
    ),
    "lines like a mail": (
        files(a="From: x\n\nFrom x Mon Sep 17 00:00:00 2001\n-- \n---\n"),
        files(a="Subject: y\n\nFrom y Mon Sep 17 00:00:00 2001\n-- \n--- a\n+++ b\n@@ -1 +1 @@\n---\n-- >8 --\n"),
    ),
    "lines like encoded text": (files(a="=3D=\n=?UTF-8?q?x?=\n"), files(a="=20\n=\n=0D=0A\t \n \r\n.\n..\n")),
    "blanks at line ends": (files(a="a \n"), files(a="b \t\n \n\n\n\t\n")),
    "odd names": (
        {},
        {
            name: File(b"x\r\n" if number % 2 else b"x\n")
            for number, name in enumerate(
                (
                    "a b",
                    "a\nb",
                    "a\tb",
                    'q"\\',
                    "é/ü",
                    b"\xff".decode("utf-8", "surrogateescape"),
                    "d/.go",
                    "\x7f",
                    "-o",
                )
            )
        },
        {"a b": File(b"y\n"), "é/ü": File(b"y\n")},
    ),
}


@pytest.mark.parametrize("trees", CARRIED.values(), ids=CARRIED)
def test_git_am_gives_the_planned_trees(trees: Sequence[Tree], tmp_path: Path) -> None:
    value = plan(*trees)
    repo = Repo(tmp_path / "repo")
    assert applied(repo, value, author=None) == [message(each) for each in value.steps]
    for back, tree in enumerate(reversed(trees)):
        repo.git("checkout", "-q", f"HEAD~{bool(back):d}")
        assert repo.tree() == in_git(tree)


def test_git_am_takes_the_patch_files_one_by_one(tmp_path: Path) -> None:
    value = plan(*CARRIED["CRLF changed"])
    repo = Repo(tmp_path / "repo")
    repo.commit(value.base.files)
    for patch in letters(value)[1:]:
        (tmp_path / patch.name).write_bytes(patch.data)
        repo.git("am", str(tmp_path / patch.name))
    assert repo.tree() == in_git(value.final.files)


def test_random_trees_survive_the_mail(tmp_path: Path) -> None:
    rng = random.Random(23)
    pieces = ("a", "From ", "é", "\r", "\t", " ", "=", "-- ", "x" * 700, "\n", "\n", "\r\n", "\0")
    trees = [
        {
            f"f{number}": File("".join(rng.choices(pieces, k=rng.randrange(60))).encode() + rng.choice((b"", b"\xff")))
            for number in range(4)
        }
        for _ in range(25)
    ]
    repo = Repo(tmp_path / "repo")
    applied(repo, plan(*trees))
    assert repo.tree() == in_git(trees[-1])


def test_git_am_records_author_and_date(tmp_path: Path) -> None:
    value = plan({}, files(a=GO))
    repo = Repo(tmp_path / "repo")
    for author in (None, "Zoë (x) Böe, Dr <z@example.org>", 'D. "'.replace('"', "O'N") + " <o@example.org>"):
        for sent, recorded in ((SENT, SENT), (0, 0), (-5, 0), (2**40, 0)):
            applied(repo, replace(value, base=replace(value.base, committed_at=sent)), author=author)
            wanted = author or "refactor-tool <refactor-tool@localhost>"
            assert repo.git("log", "-1", "--format=%an <%ae> %at").decode() == f"{wanted} {recorded}\n"


def test_real_changes_go_through_the_mail(corpus: Path, tmp_path: Path) -> None:
    """The hand-made change of k3s in its stages: `git am` gives the last tree, blob for blob."""
    stages = ("before/pr-base", "during/readyz", "during/apiserver", "during/cri", "during/tests", "after/etcd")
    repo = Repo(tmp_path / "repo")
    repo.take(corpus / "k3s.git", *stages)
    steps = tuple(
        Step(new, f"Come to {new}", "", (), tuple(FileChange(*change) for change in repo.changes(old, new)))
        for old, new in pairwise(stages)
    )
    repo.git("am", stdin=mailbox(letters(Plan(Snapshot({}), (), steps, Snapshot({})))))
    assert repo.git("rev-parse", "HEAD^{tree}") == repo.git("rev-parse", "after/etcd^{tree}")


# --- the commit message -------------------------------------------------------------------------------

BODIES = {
    "none": "",
    "only blanks": " \n\t\n",
    "paragraphs": "One\ntwo.\n\nThree.",
    "blank lines in excess": "\n\nOne.  \n\n\n\nTwo.\t\n\n",
    "indented code": "  x := y\n\ttab\n\nend",
    "rulers and lists": "- a\n-- b\n* c\n# not a comment\n> quote\n==",
    "not ASCII": "Für – „alle“.",
    "trailers": "Why.\n\nRefs: k3s-io/k3s#11896\nReviewed-by: X <x@example.org>",
    "one very long line": "word " * 400,
    "headers after the first line": "So:\nFrom: x\nSubject: y\n>From z",
    "issue that is only mentioned": "See #11896. This prefixes #1, encloses #2; the fix: #hash, closes nothing. Fixed.",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("signoff", [None, "Zoë Böe <z@example.org>"], ids=["unsigned", "signed"])
def test_git_am_records_the_message(body: str, signoff: str | None, tmp_path: Path) -> None:
    value = plan({}, files(a=GO), titles=[LONG], bodies=[body])
    wanted = message(value.steps[0], signoff)
    assert applied(Repo(tmp_path / "repo"), value, signoff=signoff) == [wanted]
    assert ("Signed-off-by" in wanted) == (signoff is not None)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param("", "T\n\nSigned-off-by: Ann Lee <a@x>\n", id="no body"),
        pytest.param("Why: so.\nand", "T\n\nWhy: so.\nand\n\nSigned-off-by: Ann Lee <a@x>\n", id="text"),
        pytest.param("W.\n\nRef: 1", "T\n\nW.\n\nRef: 1\nSigned-off-by: Ann Lee <a@x>\n", id="joins other trailers"),
        pytest.param(
            "W.\n\nSigned-off-by: Ann Lee <a@x>\nRef: 1",
            "T\n\nW.\n\nSigned-off-by: Ann Lee <a@x>\nRef: 1\n",
            id="is there already",
        ),
    ],
)
def test_signoff(body: str, expected: str) -> None:
    assert message(Step("t", "T", body, (), ()), "Ann Lee <a@x>") == expected


@pytest.mark.parametrize(
    "identity",
    ["", "x", "a@b", "<a@b>", "Ann <a>", "Ann<a@b>", " Ann <a@b>", "Ann  <a@b>", "Ann <a@b>\n", "Ann <a@b> x",
     "A\nB <a@b>", 'Ann "x" <a@b>', "Ann <a b@c>", "Ann <a@ü>", "A\u202eB <a@b>", "An <a@b>", "X" * 61 + " <a@b>",
     "A\u2028B <a@b>", "Ann\udcff <a@b>"],
)  # fmt: skip
@pytest.mark.parametrize("role", ["author", "signoff"])
def test_malformed_identity_is_a_usage_error(role: str, identity: str) -> None:
    with pytest.raises(UsageError, match="Name <mail>") as caught:
        letters(plan({}, files(a=GO)), **{role: identity})
    assert caught.value.code is ExitCode.USAGE
    with pytest.raises(UsageError, match="Name <mail>"):
        check_series(plan({}, files(a=GO)), **{role: identity})


@pytest.mark.parametrize(
    "title",
    ["", "two  blanks", " lead", "trail ", "two\nlines", "tab\tbed", "bell\x07", "\u202ex", "\udcff", "[x] y", "Re: x",
     "re:x", ": x"],
)  # fmt: skip
def test_title_that_git_am_would_change_is_refused(title: str) -> None:
    with pytest.raises(CodemodError, match=r"codemod t: .*title"):
        message(Step("t", title, "", (), ()))


@pytest.mark.parametrize(
    "line",
    ["From x", "---", "--- a/b", "---x", "diff --git a/b b/b", "diff -u", "Index: x", "-- >8 --", " --8< cut", "a\rb",
     "bell\x07", "\udcff", "a\u2028b"],
)  # fmt: skip
@pytest.mark.parametrize("before", ["", "Text.\n", "Text.\n\n"], ids=["first", "in a paragraph", "new paragraph"])
def test_body_line_that_would_break_the_mail_is_refused(line: str, before: str) -> None:
    with pytest.raises(CodemodError, match=r"codemod t: .*line of the body"):
        message(Step("t", "T", f"{before}{line}\nmore", (), ()))


@pytest.mark.parametrize("line", ["From: x", "subject: y", "Date:\tz", ">From x", "[PATCH] x"])
def test_body_that_begins_like_a_header_is_refused(line: str) -> None:
    with pytest.raises(CodemodError, match=r"codemod t: .*header"):
        message(Step("t", "T", f"\n{line}\n", (), ()))


CLOSING = ["Fixes #1", "closes: #12", "RESOLVED k3s-io/k3s#1", "fix GH-3", "Close https://github.com/k3s-io/k3s/issues/1",
           "fixed\n#7", "resolves https://github.com/k3s-io/k3s/pull/9"]  # fmt: skip


@pytest.mark.parametrize("words", CLOSING)
def test_words_that_close_an_issue_are_refused(words: str) -> None:
    value = plan({}, files(a=GO), bodies=[f"This {words}."])
    for made in (letters, check_series):
        with pytest.raises(CodemodError, match="would close an issue"):
            made(value)
    with pytest.raises(CodemodError, match="would close an issue"):
        letters(plan({}, files(a=GO)), subject=" ".join(f"It {words}".split()))
    for verdict in (Leave(words), Manual(words), Manual("x", words)):
        for made in (letters, check_series):
            with pytest.raises(CodemodError, match="a finding of x"):
                made(replace(plan({}, files(a=GO)), findings=(finding(verdict),)))


def test_closing_words_in_the_diff_are_data() -> None:
    assert b"+// Fixes #1" in mailbox(letters(plan({}, files(a="// Fixes #1\n"))))


def test_step_that_changes_nothing_is_refused() -> None:
    same = File(b"x")
    value = replace(plan({}, {}), steps=(Step("idle", "Idle", "", (), (FileChange("a", same, same),)),))
    with pytest.raises(CodemodError, match="codemod idle: the step changes nothing"):
        letters(value)


# --- the cover letter ---------------------------------------------------------------------------------


def finding(verdict: Verdict, path: str = "a.go", start: int = 0, function: str = "") -> Finding:
    return Finding("x", "codemod", path, Span(start, start), function, verdict, "")


def test_cover_letter_tells_a_reviewer() -> None:
    base = files(a_go="1\n2\n3\n", b_go=GO, b_test_go=GO)
    first = base | files(a_go="1\n2\n3\n4\n", b_go=GO * 9, b_test_go=GO * 20)
    second = first | files(c_go=GO * 3)
    sites = [finding(Rewrite(()), path) for path in ("a.go", "b.go", "b_test.go")]
    value = Plan(
        Snapshot(base, "ref", "before/issue", "f" * 40, SENT),
        (
            replace(finding(Rewrite((Edit("a.go", Span(0, 1), b"x"),)), "a.go"), id="surface-errors"),
            replace(finding(Rewrite(()), "a.go"), id="left-out"),
            finding(Leave("not for this step"), "a.go", 0),
            finding(Leave("a false friend"), "a.go", 2),
            finding(Leave("other"), "a.go", 4),
            finding(Leave("a false friend"), "a.go", 4),
            finding(Leave("says so already", done=True), "b.go", 11),
            finding(Manual("the shape\n is unknown", "Wait for\tthe channel."), "b.go", 0, "(*T).M"),
            finding(Leave("a false friend"), "b.go", 0),
            finding(Manual("gone"), "odd\nname.go", 5),
        ),
        (
            step(base, first, "Surface errors", "Why.", sites),
            step(first, second, "Add the channels", findings=[finding(Rewrite(()), "a.go")]),
        ),
        Snapshot(second),
        done=("etcd-ready", "cri-ready"),
        era="2025-03",
    )
    assert (
        cover(value)
        == f"""\
From {"0" * 40} Mon Sep 17 00:00:00 2001
From: {AUTHOR}
Date: Tue, 14 Nov 2023 22:13:20 +0000
Subject: [PATCH 0/2] Surface errors, and 1 more step

2 patches on commit {"f" * 40}
(before/issue), era 2025-03.
10 sites seen: 1 rewritten, 1 left to steps that are not in the series,
2 for a person, 6 left alone (1 by one step, and rewritten by another).
`git am` takes the numbered patches, not this letter.

What each patch does:

  1/2 surface-errors: Surface errors (3 files, +136 -0)
      a.go +1 -0
      b.go +40 -0
      b_test.go +95 -0

  2/2 add-the-channels: Add the channels (1 file, +15 -0)
      c.go +15 -0

What to look at first (new files and sites, largest first, no tests):

- b.go +40 -0 in patch 1
- c.go +15 -0 in patch 2
- a.go +1 -0 in patch 1
- 2 places for a person, listed below

What needs a hand:

- b.go:1 in (*T).M: the shape is unknown. To do: Wait for the channel.
- "odd\\nname.go": gone

What was left alone, and why:

- a false friend (3 places): a.go:2,3 b.go:1
- other (1 place): a.go:3

What was done already:

- whole steps: etcd-ready, cri-ready
- says so already (1 place): b.go:3

{NAME} (2):
  Surface errors
  Add the channels

 a.go      |  1 +
 b.go      | 40 +++++++++++++++++++++++
 b_test.go | 95 +++++++++++++++++++++++++++++++++++++++++++++++++++++++
 c.go      | 15 +++++++++
 4 files changed, 151 insertions(+)
 create mode 100644 c.go


base-commit: {"f" * 40}
--{" "}
9.9

"""
    )


def test_cover_letter_of_a_partial_series_says_what_is_missing() -> None:
    value = replace(
        plan(files(a_go="1\n2\n"), files(a_go="1\n3\n")),
        findings=(replace(finding(Manual("nobody knows what this is"), start=2), kind="audit"),),
        pending=(("cri-ready", "stopped after\napiserver-ready"),),
        problems=(
            *[Problem(ExitCode.FINDINGS, "unclassified: ContainerRuntimeReady", "a.go", 2)] * 2,
            Problem(ExitCode.CONFLICT, "edits overlap", "a.go", 1, "etcd-ready"),
            Problem(ExitCode.UNPARSABLE, "no go.mod"),
        ),
    )
    letter = cover(value)
    assert "Subject: [PATCH 0/1] [PARTIAL] Step 0\n" in letter
    assert "1 site seen: 0 rewritten, 0 for a person, 0 left alone, 1 unclassified.\n" in letter
    assert "hand" not in letter, "an unclassified place is named once, where it is said what is missing"
    assert letter.partition("this series is partial:\n\n")[2].partition("\n\n")[0] == (
        "- cri-ready: stopped after apiserver-ready\n"
        "- a.go:2: unclassified: ContainerRuntimeReady\n"
        "- etcd-ready: a.go:1: edits overlap\n"
        "- no go.mod"
    )


def test_cover_letter_of_a_whole_series_is_short() -> None:
    letter = cover(plan(files(a_go=GO), files(a_go=GO * 2)), subject="Move readiness")
    assert "Subject: [PATCH 0/1] Move readiness\n" in letter
    assert "1 patch on a tree that is no commit.\n" in letter
    for absent in ("partial", "PARTIAL", "base-commit", "first", "a hand", "left alone, and", "already", "era"):
        assert absent not in letter


def test_cover_letter_survives_hostile_text() -> None:
    value = replace(
        plan({}, files(a=GO)),
        findings=(
            finding(Manual("x\x1b[31m\u202e\udcff", "y\r\nFrom: z"), b"\xff.go".decode("utf-8", "surrogateescape")),
        ),
    )
    assert '- "\\377.go": x\\x1b[31m\\u202e\\udcff. To do: y From: z\n' in cover(value)


def test_mailbox_leaves_out_the_cover_letter_at_which_git_am_stops(tmp_path: Path) -> None:
    patches = letters(plan({}, files(a=GO)))
    assert mailbox(patches) == patches[1].data
    repo = Repo(tmp_path / "repo")
    repo.commit({})
    stopped = repo.run("am", stdin=patches[0].data)
    assert stopped.returncode != 0
    assert b"Patch is empty" in stopped.stdout + stopped.stderr


def test_plan_without_steps_has_no_series() -> None:
    assert letters(plan({})) == ()
    assert mailbox(()) == b""


# --- the mails for other readers than git -------------------------------------------------------------


@pytest.mark.parametrize("trees", CARRIED.values(), ids=CARRIED)
def test_mails_are_well_formed(trees: Sequence[Tree]) -> None:
    """Python's own mail parser finds no defect and gets the same patches; armour is only where it is needed."""
    value = plan(*trees, titles=["Füge „hinzu“"], bodies=["Für alle."])
    mails = letters(value)
    for patch in mails:
        assert not message_from_bytes(patch.data, policy=policy.default).defects
        assert all(len(line) <= 998 for line in patch.data.split(b"\n"))
        assert not re.search(rb"[\r\0]", patch.data)
        assert not re.search(rb"\nFrom ", patch.data)
        patch.data.decode()
    for each, patch in zip(value.steps, mails[1:], strict=True):
        mail = message_from_bytes(patch.data, policy=policy.default)
        assert mail["Subject"].partition("] ")[2] == each.title
        body = mail.get_payload(decode=True)
        assert isinstance(body, bytes)
        for change in each.changes:
            before, after = (change.path if file else None for file in (change.before, change.after))
            assert unified(before, after, change.before, change.after) in body
