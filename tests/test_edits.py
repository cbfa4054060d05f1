"""Byte edits against a naive model, line diffs and patches against the real git."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from refactor_tool import edits
from refactor_tool.model import Conflict, File, Span

from .repo import Repo

# --- byte edits -------------------------------------------------------------------------------------


def at(start: int, end: int, text: bytes = b"") -> tuple[Span, bytes]:
    return Span(start, end), text


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        pytest.param([], b"0123456789", id="nothing to do"),
        pytest.param([at(2, 4, b"ab")], b"01ab456789", id="replace"),
        pytest.param([at(2, 4)], b"01456789", id="delete"),
        pytest.param([at(0, 0, b"<"), at(10, 10, b">")], b"<0123456789>", id="insert at both ends"),
        pytest.param([at(0, 10)], b"", id="delete all"),
        pytest.param([at(8, 9, b"y"), at(1, 2, b"x")], b"0x234567y9", id="order does not matter"),
        pytest.param([at(2, 4, b"a"), at(4, 6, b"b")], b"01ab6789", id="spans that touch"),
        pytest.param([at(2, 4, b"a"), at(2, 4, b"a")], b"01a456789", id="the same edit twice counts once"),
        pytest.param([at(3, 3, b"a"), at(3, 3, b"a")], b"012a3456789", id="the same insertion twice counts once"),
        pytest.param([at(3, 3, b"b"), at(3, 3, b"a")], b"012ba3456789", id="insertions keep the order given"),
        pytest.param([at(2, 4, b"x"), at(2, 2, b"a")], b"01ax456789", id="insertion before a replaced span"),
        pytest.param([at(4, 4, b"a"), at(2, 4, b"x")], b"01xa456789", id="insertion after a replaced span"),
        pytest.param([at(4, 6, b"y"), at(4, 4, b"a"), at(2, 4, b"x")], b"01xay6789", id="insertion between two"),
    ],
)
def test_apply(made: list[tuple[Span, bytes]], expected: bytes) -> None:
    assert edits.apply(b"0123456789", made) == expected


@pytest.mark.parametrize(
    ("made", "named"),
    [
        pytest.param([at(2, 5, b"a"), at(4, 6, b"b")], "bytes 2..5 and 4..6", id="overlap"),
        pytest.param([at(2, 5, b"a"), at(2, 5, b"b")], "bytes 2..5 and 2..5", id="same span, other text"),
        pytest.param([at(2, 5, b"a"), at(2, 4, b"a")], "bytes 2..4 and 2..5", id="same start"),
        pytest.param([at(2, 9, b"a"), at(3, 4, b"b")], "bytes 2..9 and 3..4", id="one inside the other"),
        pytest.param([at(3, 3, b"b"), at(2, 5, b"a")], "bytes 2..5 and 3..3", id="insertion inside a replaced span"),
        pytest.param([at(3, 3, b"b"), at(2, 5)], "bytes 2..5 and 3..3", id="insertion inside a deleted span"),
    ],
)
def test_apply_refuses_what_overlaps(made: list[tuple[Span, bytes]], named: str) -> None:
    with pytest.raises(Conflict, match=named):
        edits.apply(b"0123456789", made)


@pytest.mark.parametrize("span", [Span(9, 11), Span(11, 11)], ids=["replacement", "insertion"])
def test_apply_refuses_what_ends_after_the_data(span: Span) -> None:
    with pytest.raises(ValueError, match=rf"{span.start}\.\.{span.end} in 10 bytes"):
        edits.apply(b"0123456789", [(span, b"x")])


def test_apply_equals_doing_each_edit_by_itself_from_the_end() -> None:
    rng = random.Random(11)
    for _ in range(300):
        data = rng.randbytes(rng.randrange(40))
        cuts = sorted(rng.sample(range(len(data) + 1), rng.randrange(len(data) + 1) // 2 * 2))
        made = [
            (Span(start, end), rng.randbytes(rng.randrange(4)))
            for start, end in zip(cuts[::2], cuts[1::2], strict=True)
        ]
        expected = data
        for span, text in reversed(made):
            expected = expected[: span.start] + text + expected[span.end :]
        rng.shuffle(made)
        assert edits.apply(data, made) == expected


# --- line diff --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b"", [], id="empty"),
        pytest.param(b"a", [b"a"], id="no newline at the end"),
        pytest.param(b"a\n", [b"a\n"], id="one line"),
        pytest.param(b"\n\na", [b"\n", b"\n", b"a"], id="empty lines"),
        pytest.param(b"a\x0cb\rc\xe2\x80\xa8d\x85\x0b\n", [b"a\x0cb\rc\xe2\x80\xa8d\x85\x0b\n"], id="only LF ends"),
        pytest.param(b"a\r\nb\r\n", [b"a\r\n", b"b\r\n"], id="CRLF"),
    ],
)
def test_split_lines(data: bytes, expected: list[bytes]) -> None:
    assert edits.split_lines(data) == expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(b"a\n", b"a\n", (0, 0), id="same"),
        pytest.param(None, b"a\nb\n", (2, 0), id="new"),
        pytest.param(b"a\nb", None, (0, 2), id="deleted"),
        pytest.param(None, b"", (0, 0), id="new and empty"),
        pytest.param(b"a\nb", b"a\nb\n", (1, 1), id="only the last newline"),
        pytest.param(b"a\nb\nc\n", b"c\nb\na\n", (2, 2), id="reversed"),
    ],
)
def test_stat(before: bytes | None, after: bytes | None, expected: tuple[int, int]) -> None:
    assert edits.stat(before, after) == expected


def shown(before: str, after: str) -> str:
    """Return the lines of all hunks, without context."""
    return "".join(
        line.decode()
        for hunk in edits.hunks(before.encode(), after.encode())
        for line in hunk.lines
        if not line.startswith(b" ")
    )


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(
            "func a() {\n\tx()\n}\n\nfunc c() {\n\tx()\n}\n",
            "func a() {\n\tx()\n}\n\nfunc b() {\n\tx()\n}\n\nfunc c() {\n\tx()\n}\n",
            "+func b() {\n+\tx()\n+}\n+\n",
            id="a function begins at its head, not at the brace before",
        ),
        pytest.param(
            "func a() {\n\tx()\n}\n",
            "func a() {\n\tx()\n}\n\nfunc b() {\n\tx()\n}\n",
            "+\n+func b() {\n+\tx()\n+}\n",
            id="a function at the end of the file",
        ),
        pytest.param(
            "func a() {\n\tx()\n}\n\nfunc b() {\n\tx()\n}\n\nfunc c() {\n\tx()\n}\n",
            "func a() {\n\tx()\n}\n\nfunc c() {\n\tx()\n}\n",
            "-func b() {\n-\tx()\n-}\n-\n",
            id="a function that goes",
        ),
        pytest.param(
            "{\n\tif a {\n\t\treturn\n\t}\n\tz()\n}\n",
            "{\n\tif a {\n\t\treturn\n\t}\n\tif b {\n\t\treturn\n\t}\n\tz()\n}\n",
            "+\tif b {\n+\t\treturn\n+\t}\n",
            id="an if among others",
        ),
        pytest.param(
            "switch {\ncase a:\n\tx()\n}\n",
            "switch {\ncase a:\n\tx()\ncase b:\n\tx()\n}\n",
            "+case b:\n+\tx()\n",
            id="a case",
        ),
        pytest.param(
            "a\n\nb\n\nc\n", "a\n\nb\n\nb2\n\nc\n", "+b2\n+\n", id="a paragraph takes the blank line after it"
        ),
        pytest.param("a\n}\nb\n", "a\n}\n}\nb\n", "+}\n", id="one of equal lines"),
        pytest.param("x\nq\nr\n", "n\nx\nq\nm\nr\n", "+n\n+m\n", id="changes that cannot meet stay apart"),
        pytest.param("\na\nz\n", "\na\nb\na\nz\n", "+a\n+b\n", id="a statement begins after the blank line"),
        pytest.param("a\n\tb\nz\n", "a\n\tb\nc\na\n\tb\nz\n", "+a\n+\tb\n+c\n", id="outer lines at the edges"),
        pytest.param("\na\n", "c\n\n\na\n", "+c\n+\n", id="insertions that can meet become one"),
        pytest.param("c\n\n\na\n", "\na\n", "-c\n-\n", id="deletions that can meet become one"),
        pytest.param("y\nx\nx\n", "z\nx\nx\nx\n", "-y\n+z\n+x\n", id="an insertion joins a replacement"),
    ],
)
def test_hunks_read_well(before: str, after: str, expected: str) -> None:
    assert shown(before, after) == expected


def test_hunks_are_values_for_reports() -> None:
    before = b"func f() {\n" + b"\ta()\n" * 6 + b"\tb()\n}"
    (hunk,) = edits.hunks(before, before.replace(b"b()", b"c()"), context=1)
    assert hunk == edits.Hunk(
        edits.LineChange(6, 9, 6, 9), b"func f() {", (b" \ta()\n", b"-\tb()\n", b"+\tc()\n", b" }")
    )
    assert hunk.size == (1, 1)
    assert edits.changes(before, before.replace(b"b()", b"c()")) == (edits.LineChange(7, 8, 7, 8),)


@pytest.mark.parametrize("at", [0, 1, 31, 32, 33, 64, 199])
def test_long_equal_runs_are_one_run(at: int) -> None:
    """Lines are compared many at a time, and those that one side lacks are left out before."""
    lines = [b"%d\n" % (number // 3) for number in range(200)]
    changed = [*lines[:at], b"new\n", *lines[at + 1 :]]
    assert edits.changes(b"".join(lines), b"".join(changed)) == (edits.LineChange(at, at + 1, at, at + 1),)


def rebuilt(before: bytes, after: bytes) -> bytes:
    old, new = edits.split_lines(before), edits.split_lines(after)
    result, done = [], 0
    for change in edits.changes(before, after):
        result += old[done : change.before_start] + new[change.after_start : change.after_end]
        done = change.before_end
    return b"".join(result + old[done:])


@pytest.mark.parametrize("lines", [2, 30, 400], ids="{} kinds of lines".format)
def test_changes_rebuild_files_that_share_little(lines: int) -> None:
    """Beyond the cost limit the diff goes piece by piece; it stays true."""
    rng = random.Random(lines)
    before, after = (b"".join(b"%d\n" % rng.randrange(lines) for _ in range(1500)) for _ in range(2))
    assert rebuilt(before, after) == after


def test_changes_are_as_few_as_can_be() -> None:
    rng = random.Random(5)
    for _ in range(300):
        before, after = ([b"%d\n" % rng.randrange(4) for _ in range(rng.randrange(12))] for _ in range(2))
        longest = [[0] * (len(after) + 1) for _ in range(len(before) + 1)]
        for i, old in enumerate(before):
            for j, new in enumerate(after):
                equal = longest[i][j] + 1
                longest[i + 1][j + 1] = equal if old == new else max(longest[i][j + 1], longest[i + 1][j])
        shared = longest[-1][-1]
        assert edits.stat(b"".join(before), b"".join(after)) == (len(after) - shared, len(before) - shared)


def test_thousands_of_equal_lines_cost_little() -> None:
    """Some 0.05 s; whatever is quadratic in here would take minutes."""
    assert edits.stat(b"a\n" + b"\n" * 50_000, b"\n" * 50_001 + b"b\n") == (2, 1)


# --- git's patch ------------------------------------------------------------------------------------


def patch(before: File | None, after: File | None, path: str = "p.go", context: int = 3) -> bytes:
    return edits.unified(path if before else None, path if after else None, before, after, context)


ODD_NAMES = {
    "space": "a b.go",
    "newline": "a\nb.go",
    "tab": "a\tb.go",
    "tab and space": "a\t b.go",
    "quote and backslash": 'a"\\b.go',
    "control characters": "a\x01\x07\x08\x0b\x0c\r\x1f\x7fb.go",
    "non-ASCII": "dür/ü.go",
    "not UTF-8": b"a\xff\xfeb.go".decode("utf-8", "surrogateescape"),
    "like an option": "-p.go",
    "like a diff prefix": "b/a/b.go",
}
BEFORE = b"package p\n\nfunc f() {\n\ta()\n}\n"
AFTER = b"package p\n\nfunc f() {\n\tb()\n}\n"

CHANGES = {
    "change": (File(BEFORE), File(AFTER)),
    "new": (None, File(AFTER)),
    "new executable": (None, File(AFTER, "100755")),
    "deleted": (File(BEFORE), None),
    "deleted executable": (File(BEFORE, "100755"), None),
    "executable changed": (File(BEFORE, "100755"), File(AFTER, "100755")),
    "made executable": (File(BEFORE), File(BEFORE, "100755")),
    "made executable and changed": (File(BEFORE), File(AFTER, "100755")),
    "new and empty": (None, File(b"")),
    "empty and deleted": (File(b""), None),
    "emptied": (File(BEFORE), File(b"")),
    "filled": (File(b""), File(AFTER)),
    "last newline lost": (File(BEFORE), File(BEFORE[:-1])),
    "last newline gained": (File(BEFORE[:-1]), File(BEFORE)),
    "no last newline on either side": (File(BEFORE[:-1]), File(AFTER[:-1])),
    "no last newline, changed at the end": (File(BEFORE + b"x"), File(AFTER + b"y")),
    "CRLF": (File(BEFORE.replace(b"\n", b"\r\n")), File(AFTER.replace(b"\n", b"\r\n"))),
    "CRLF to LF": (File(BEFORE.replace(b"\n", b"\r\n")), File(BEFORE)),
    "lone CR, form feed and U+2028": (File(b"a\rb\x0c\xe2\x80\xa8\n"), File(b"a\rc\x0c\xe2\x80\xa8\n")),
    "not UTF-8": (File(b"\xff\xfe\nx\n"), File(b"\xff\xfe\ny\n")),
    "lines like a signature, a mail and a patch": (
        File(b"-- \nFrom x\n-- a/p.go\n\\ no\n"),
        File(b"++ b/p.go\nFrom y\n-- \n@@ -1 +1 @@\n\\ no\ndiff --git a/x b/x\n"),
    ),
    "six lines between two changes": (File(b"a\n" + b"x\n" * 6 + b"b\n"), File(b"c\n" + b"x\n" * 6 + b"d\n")),
    "seven lines between two changes": (File(b"a\n" + b"x\n" * 7 + b"b\n"), File(b"c\n" + b"x\n" * 7 + b"d\n")),
    "several hunks": (File(b"func a\n" + b"x\n" * 40), File(b"func b\n" + b"x\n" * 20 + b"y\n" + b"x\n" * 20)),
}


@pytest.mark.parametrize(("before", "after"), CHANGES.values(), ids=CHANGES)
def test_unified_is_what_git_writes_and_applies(before: File | None, after: File | None, tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo")
    keep = {"keep": File(b"")}
    repo.commit(keep | ({"p.go": before} if before else {}))
    start = repo.tree()
    repo.commit(keep | ({"p.go": after} if after else {}))
    planned = repo.tree()
    assert patch(before, after) == repo.git("diff", "--full-index", "HEAD~1", "HEAD")

    repo.git("checkout", "-q", "HEAD~1")
    repo.git("apply", "--index", stdin=patch(before, after))
    assert repo.tree() == planned
    repo.git("apply", "--index", "-R", stdin=patch(before, after))
    assert repo.tree() == start


@pytest.mark.parametrize("path", ODD_NAMES.values(), ids=ODD_NAMES)
def test_unified_quotes_names_as_git_does(path: str, tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo")
    repo.commit({path: File(BEFORE)})
    repo.commit({path: File(AFTER)})
    assert patch(File(BEFORE), File(AFTER), path) == repo.git("diff", "--full-index", "HEAD~1", "HEAD")
    for before, after in ((File(AFTER), File(BEFORE)), (File(BEFORE), None), (None, File(b"x"))):
        repo.git("apply", "--index", stdin=patch(before, after, path))
        assert repo.tree() == ({path: (after.mode, after.oid)} if after else {})


HEADS = {
    "no line before it": b"",
    "identifier": b"func f() {\n",
    "underscore": b"_x\n",
    "dollar": b"$x\n",
    "nothing else": b"type T\n#no\n\tno\n}\n1\n\xc3\xa9\n",
    "blanks at the end": b"type T   \t\r\n",
    "80 bytes": b"f" * 81 + b"\n",
    "80 bytes that end in blanks": b"f" * 70 + b" " * 20 + b"x\n",
    "a character across the 80th byte": b"f" * 79 + b"\xc3\xa9\n",
    "not UTF-8": b"func \xff f\n",
    "form feed stays": b"func f\x0c\n",
    "no newline counts": b"f\n",
}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
def test_heading_is_gits(head: bytes, tmp_path: Path) -> None:
    before, after = (File(head + b"1\n2\n3\n" + line + b"\n") for line in (b"4", b"5"))
    repo = Repo(tmp_path / "repo")
    repo.commit({"p.go": before})
    repo.commit({"p.go": after})
    assert patch(before, after) == repo.git("diff", "--full-index", "HEAD~1", "HEAD")


def test_heading_is_the_nearest_line_of_the_file_before() -> None:
    before = (
        b"func a\n" + b" x\n" * 9 + b" y\n" + b" x\n" * 9 + b"func b\n" + b" x\n" * 9 + b" z\n" + b" x\n" * 9 + b" v\n"
    )
    after = before.replace(b" y", b"func y").replace(b" z", b"func z").replace(b" v", b"func v")
    assert [hunk.heading for hunk in edits.hunks(before, after)] == [b"func a", b"func b", b"func b"]


@pytest.mark.parametrize("context", [0, 1, 3, 10], ids="{} lines of context".format)
def test_random_changes_apply(context: int, tmp_path: Path) -> None:
    rng = random.Random(f"context {context}")
    befores: dict[str, File] = {}
    patches: list[bytes] = []
    afters: dict[str, bytes] = {}
    for number in range(150):
        path = f"d{number % 7}/{number}.go"
        old = [_line(rng) for _ in range(rng.choice((0, 1, 3, 30, 200)))]
        new = old[:]
        for _ in range(rng.randrange(1, 8)):
            where = rng.randrange(len(new) + 1)
            new[where : where + rng.randrange(4)] = [_line(rng) for _ in range(rng.randrange(4))]
        before, after = (b"".join(lines)[: None if rng.random() < 0.7 else -1] for lines in (old, new))
        befores[path], afters[path] = File(before), after
        patches.append(patch(File(before), File(after), path, context))
    repo = Repo(tmp_path / "repo")
    repo.commit(befores)
    repo.git("apply", *([] if context else ["--unidiff-zero"]), stdin=b"".join(patches))
    assert {path: (repo.path / path).read_bytes() for path in afters} == afters


def _line(rng: random.Random) -> bytes:
    words = (
        b"}",
        b"",
        b"return err",
        b"if err != nil {",
        b"-- ",
        b"--- a",
        b"+++ b",
        b"\\ x",
        b"a\rb",
        b"\x00",
        b"\xff",
    )
    end = rng.choice((b"\n", b"\n", b"\n", b"\r\n"))
    return b"\t" * rng.randrange(3) + rng.choice((*words, b"x%d" % rng.randrange(50))) + end


def test_unified_says_nothing_where_nothing_differs() -> None:
    assert patch(File(b"a"), File(b"a")) == b""
    assert patch(None, None) == b""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param((None, File(b"")), ("p", File(b"")), id="file without path"),
        pytest.param(("p", File(b"")), ("p", None), id="path without file"),
        pytest.param(("p", File(b"")), ("q", File(b"")), id="rename"),
    ],
)
def test_unified_refuses(before: tuple[str | None, File | None], after: tuple[str | None, File | None]) -> None:
    with pytest.raises(ValueError, match=r"path|rename"):
        edits.unified(before[0], after[0], before[1], after[1])


def test_real_changes_apply_and_count_as_gits(corpus: Path, tmp_path: Path) -> None:
    """The hand-made change of k3s, whole: ours is no longer than git's and gives the same tree."""
    old, new = "before/pr-base", "after/etcd"
    repo = Repo(tmp_path / "repo")
    repo.take(corpus / "k3s.git", old, new)
    changed = repo.changes(old, new)
    counts = [
        edits.stat(before.data if before else None, after.data if after else None) for _, before, after in changed
    ]
    numstat = repo.git("diff", "--numstat", "--no-renames", old, new).split()
    assert 0 < sum(map(sum, counts)) <= sum(int(number) for number in numstat if number.isdigit())
    repo.git("apply", "--index", stdin=b"".join(patch(before, after, path) for path, before, after in changed))
    assert repo.git("write-tree") == repo.git("rev-parse", f"{new}^{{tree}}")
