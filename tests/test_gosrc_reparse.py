"""A tree that is made with the help of an earlier one is, node by node, the tree of the bytes."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tree_sitter import Node

from refactor_tool.gosrc.parse import ParseCache, Parsed
from refactor_tool.world.tree import read_tree
from tests.trees import FIXTURE

GO = b"""package a

import (
\t"fmt"
)

// why
var x, y = 1, `
raw
`

func f[T any](a []T) {
\tfmt.Println(a[0], T{1: 2}, <-ch)
}

func f2() {
\tfmt.Println("\xc3\xa9", x)
}
"""


def nodes(parsed: Parsed) -> list[tuple[Any, ...]]:
    """Return all that a tree says of each node, parents first."""
    out = []
    waiting: list[tuple[str | None, Node]] = [(None, parsed.root)]
    while waiting:
        field, node = waiting.pop()
        places = (node.start_byte, node.end_byte, node.start_point, node.end_point)
        out.append((node.type, field, places, node.is_named, node.is_missing, node.has_error, node.text))
        children = [(node.field_name_for_child(at), child) for at, child in enumerate(node.children)]
        waiting.extend(reversed(children))
    return out


def assert_same(before: bytes, after: bytes) -> None:
    cache = ParseCache()
    old = cache.parse_once(before)
    said = nodes(old)
    assert nodes(cache.parse_once(after, old)) == nodes(cache.parse_once(after))
    assert nodes(old) == said, "the earlier tree is what it was"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("fmt", "fmt", id="nothing"),
        pytest.param('\t"fmt"\n', '\t"errors"\n\t"fmt"\n', id="import added"),
        pytest.param('import (\n\t"fmt"\n)\n\n', "", id="imports gone"),
        pytest.param("x)", "x, y,\n\t\tz)", id="longer, over lines"),
        pytest.param('"\u00e9"', '"e"', id="shorter, not ASCII"),
        pytest.param("// why\n", "", id="comment gone"),
        pytest.param("raw\n", "", id="in a raw string"),
        pytest.param("func f2()", "func f()", id="name"),
        pytest.param("package a", "//go:build x\n\npackage a", id="at the beginning"),
        pytest.param("func f2() {", "func f3() {}\n\nfunc f2() {", id="function added"),
        pytest.param("// why\nvar x", "var z = 1\n\n// why\nvar x", id="declaration added above a comment"),
        pytest.param("}\n\nfunc f2() {", "", id="two functions become one"),
        pytest.param("func f2() {", "func f2()", id="brace gone"),
        pytest.param("// why", "/* why", id="comment that does not end"),
        pytest.param("`\nraw", "raw", id="string that does not end"),
        pytest.param("}\n", "}", id="all last newlines"),
    ],
)
def test_a_change_gives_the_tree_of_its_bytes(old: str, new: str) -> None:
    after = GO.replace(old.encode(), new.encode())
    assert_same(GO, after)
    assert_same(after, GO)


@pytest.mark.parametrize("other", [b"", b"package b\n", GO.replace(b"\n", b"\r\n"), GO + GO], ids=repr)
def test_versions_may_have_little_in_common(other: bytes) -> None:
    assert_same(GO, other)
    assert_same(other, GO)


@pytest.mark.parametrize("seed", range(8))
def test_any_edits_of_real_files_do(seed: int) -> None:
    rng = random.Random(seed)
    files = [file.data for path, file in read_tree(FIXTURE).files.items() if path.endswith(".go")]
    pieces = [b"{", b"}", b"(", b"\n", b"x.y()", b'"', b"`", b"/*", b"*/", b"func g() {}\n", b"T{}", b"[T any]", b";"]
    for _ in range(20):
        before = after = rng.choice(files)
        for _ in range(rng.choice([1, 1, 2, 4])):
            at = rng.randrange(len(after) + 1)
            gone = rng.choice([0, 0, 1, 20, 300])
            after = after[:at] + rng.choice([b"", *pieces]) + after[at + gone :]
        assert_same(before, after)
