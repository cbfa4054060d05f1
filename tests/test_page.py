"""The page of a series: one file, the same bytes, everything in it, nothing hostile."""

from __future__ import annotations

from html.parser import HTMLParser

from refactor_tool.model import (
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
)
from refactor_tool.record import replace
from refactor_tool.report.page import page

HOSTILE = 'a"<script>\x1b[31m\u202e.go'
BASE = Snapshot({"a.go": File(b"package a\n\nvar x = 1\n"), HOSTILE: File(b"package a\n")}, label="main")


def plan() -> Plan:
    step = Step(
        "one",
        "Do <one>",
        "Because & so",
        (),
        (FileChange("a.go", BASE.files["a.go"], File(b"package a\n\nvar y = 1\n")),),
    )
    findings = (
        Finding("one", "codemod", "a.go", Span(11, 14), "", Rewrite(()), "rename x"),
        Finding("one", "codemod", HOSTILE, Span(0, 1), "f", Manual("<b>look</b>", "do it"), "look"),
        Finding("one", "codemod", "a.go", Span(0, 1), "g", Leave("rightly so"), "leave"),
        Finding("audit", "audit", "a.go", Span(1, 2), "h", Manual("nobody knows"), "apiReady"),
    )
    return Plan(
        BASE, findings, (step,), BASE, (Problem(ExitCode.FINDINGS, "left", "a.go", 1),), pending=(("two", "no"),)
    )


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.titles: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.titles += [value or "" for name, value in attrs if name == "title"]

    def handle_data(self, data: str) -> None:
        self.text += data


def read(data: bytes) -> Reader:
    reader = Reader()
    reader.feed(data.decode())
    return reader


def test_it_shows_every_site_step_and_line() -> None:
    seen = read(page(plan(), "Move it"))
    assert seen.tags.count("i") == 4
    assert "4 sites: 1 to rewrite, 1 by hand, 1 left, 1 unclassified" in seen.text
    assert "two is not in the series: no" in seen.text
    assert "-var x = 1" in seen.text
    assert "+var y = 1" in seen.text
    assert "Because & so" in seen.text
    assert any("rightly so" in title for title in seen.titles)


def test_text_from_a_tree_stays_text() -> None:
    data = page(plan(), "Move it")
    seen = read(data)
    assert "script" not in seen.tags
    assert "<b>look</b>; do it" in seen.text
    assert b"\x1b" not in data
    assert "\u202e" not in data.decode()


def test_it_needs_nothing_from_elsewhere_and_is_the_same_each_time() -> None:
    data = page(plan(), "Move it")
    assert data == page(plan(), "Move it")
    assert b"http" not in data
    assert b"src=" not in data


def test_an_empty_plan_is_a_page_too() -> None:
    empty = replace(plan(), findings=(), steps=(), problems=(), pending=())
    assert "0 sites" in read(page(empty, "Move it")).text
