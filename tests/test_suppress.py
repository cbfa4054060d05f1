"""Suppression comments in Go source: which text is one, which lines it covers, what is wrong with it."""

from __future__ import annotations

import pytest

from refactor_tool.model import Unparsable
from refactor_tool.suppress import suppressions
from tests import gotree


def found(text: str):
    return suppressions(gotree.tree(pkg__a=text))


@pytest.mark.parametrize(
    ("line", "rule", "reason", "until"),
    [
        ("//refactor-tool:ignore L01 it is fine", "L01", "it is fine", ""),
        ("//refactor-tool:ignore cri-ready ask #12 until=2027-01-31", "cri-ready", "ask #12", "2027-01-31"),
        ("//refactor-tool:ignore L01 until=2027-01-31 first", "L01", "first", "2027-01-31"),
        ("//refactor-tool:ignore\tL01\ttabs", "L01", "tabs", ""),
        ("//refactor-tool:ignore L01 until the release", "L01", "until the release", ""),
        ("//refactor-tool:ignore L01 grüße", "L01", "grüße", ""),
    ],
)
def test_comment_is_read(line: str, rule: str, reason: str, until: str) -> None:
    (one,) = found(f"package a\n\n{line}\nvar x = 1\n")
    assert (one.rule, one.reason, one.until, one.fault) == (rule, reason, until, "")


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("//refactor-tool:ignore", "it names no rule"),
        ("//refactor-tool:ignore ", "it names no rule"),
        ("//refactor-tool:ignore until=2027-01-01", "it names no rule"),
        ("//refactor-tool:ignore L01", "it gives no reason"),
        ("//refactor-tool:ignore L01 --- !!!", "it gives no reason"),
        ("//refactor-tool:ignore L01 why until=tomorrow", "until=tomorrow is not one day as YYYY-MM-DD"),
        ("//refactor-tool:ignore L01 why until=2027-02-30", "until=2027-02-30 is not one day as YYYY-MM-DD"),
        ("//refactor-tool:ignore L01 why until=20270201", "until=20270201 is not one day as YYYY-MM-DD"),
        ("//refactor-tool:ignore L01 why until=", "until= is not one day as YYYY-MM-DD"),
        (
            "//refactor-tool:ignore L01 why until=2027-01-01 until=2028-01-01",
            "until=2028-01-01 is not one day as YYYY-MM-DD",
        ),
        *(
            (
                f"//refactor-tool:ignore L01 why {loose}",
                f"{found!r} in its reason ends nothing: a day is until=YYYY-MM-DD",
            )
            for loose, found in (
                ("UNTIL=2027-01-01", "UNTIL="),
                ("(until=2027-01-01)", "until="),
                ("until: 2027-01-01", "until:"),
                ("until = 2027-01-01", "until ="),
                ("Until:2027-01-01", "Until:"),
                ("--until 2027-01-01", "until 2027-01-01"),
                ("until=2027-01-01 until: 2028-01-01", "until:"),
            )
        ),
        ("// refactor-tool:ignore L01 why", "it is not written as //refactor-tool:ignore"),
        ("//refactor-tool: ignore L01 why", "it is not written as //refactor-tool:ignore"),
        ("//refactor-tool:ignored L01 why", "it is not written as //refactor-tool:ignore"),
        ("//refactor-tool:nolint L01 why", "it is not written as //refactor-tool:ignore"),
    ],
)
def test_fault_is_told(line: str, fault: str) -> None:
    (one,) = found(f"package a\n\n{line}\nvar x = 1\n")
    assert one.fault == fault


@pytest.mark.parametrize(
    "text",
    [
        'package a\n\nvar x = "//refactor-tool:ignore L01 why"\n',
        "package a\n\nvar x = `\n//refactor-tool:ignore L01 why\n`\n",
        "package a\n\n/*\n//refactor-tool:ignore L01 why\n*/\nvar x = 1\n",
        "package a\n\n// see //refactor-tool:ignore\nvar x = 1\n",
    ],
    ids=["string", "raw string", "block comment", "quoted in a comment"],
)
def test_text_that_only_looks_like_one(text: str) -> None:
    assert found(text) == ()


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        pytest.param("package a\n\nvar x = 1 //refactor-tool:ignore L01 why\n", (3, 3), id="behind code"),
        pytest.param("package a\n\n//refactor-tool:ignore L01 why\nvar x = 1\n", (3, 4), id="above code"),
        pytest.param(
            "package a\n\n// x is.\n//refactor-tool:ignore L01 why\nvar x = 1\n", (3, 5), id="end of a doc comment"
        ),
        pytest.param(
            "package a\n\n//refactor-tool:ignore L01 why\n// x is.\nvar x = 1\n", (3, 5), id="start of a doc comment"
        ),
        pytest.param(
            "package a\n\n//refactor-tool:ignore L01 why\n/* a\nb */\nvar x = 1\n", (3, 6), id="block comment below"
        ),
        pytest.param(
            "package a\n\n//refactor-tool:ignore L01 why\n\nvar x = 1\n", (3, 4), id="blank line below ends it"
        ),
        pytest.param("package a\n\nfunc f() {\n\t//refactor-tool:ignore L01 why\r\n\tg()\r\n}\n", (4, 5), id="CRLF"),
    ],
)
def test_lines_that_are_covered(text: str, lines: tuple[int, int]) -> None:
    (one,) = found(text)
    assert (one.first, one.last) == lines


def test_file_with_a_comment_that_is_no_go_is_told() -> None:
    with pytest.raises(Unparsable, match=r"pkg/a\.go:3"):
        found("package a\n\n}} //refactor-tool:ignore L01 why\n")


def test_many_comments_in_one_block_cost_little() -> None:
    text = "package a\n\n" + "//refactor-tool:ignore L01 why\n" * 20_000 + "var x = 1\n"
    many = found(text)
    assert len(many) == 20_000
    assert {(one.first, one.last) for one in many} == {(3, 20_003)}
