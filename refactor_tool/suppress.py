"""Find `//refactor-tool:ignore RULE reason [until=YYYY-MM-DD]` comments in Go source. Pure.

A comment behind code covers what starts on its line; one on a line of its own covers what starts on the next line of
code, and the comment block it stands in. Whether a date has passed, or a comment is of any use, is the gate's to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from refactor_tool.gosrc.tree import Tree
from refactor_tool.model import IGNORE_MARK, Span
from refactor_tool.outcome import Suppression

DIRECTIVE = "//refactor-tool:ignore"
FORM = f"{DIRECTIVE} RULE reason [until=YYYY-MM-DD]"
_LOOSE = re.compile(rb"//\s*refactor-tool:\s*ignore\b|//\s*refactor-tool:")

#: What somebody writes who means a last day; `until the release` is a reason like any other.
_LOOSE_UNTIL = re.compile(r"\buntil\s*[=:]|\buntil\W*\d{4}-[\d-]*", re.IGNORECASE)


def suppressions(tree: Tree) -> tuple[Suppression, ...]:
    """Return every such comment of the tree, malformed ones too, sorted by path and place.

    Raises `Unparsable` for a file that holds one and is not Go source.
    """
    return tuple(found for path in tree.files_with(IGNORE_MARK) for found in _in_file(tree, path))


def _in_file(tree: Tree, path: str) -> Iterator[Suppression]:
    data = tree.data(path)
    lines = tree.lines(path)
    comments = tree.comments_in(path, Span(0, len(data)))
    blocks = _blocks(tree, path, comments)
    for comment in comments:
        if _LOOSE.match(data, comment.start, comment.end):
            line = lines.position(comment.start).line
            first, last = blocks.get(line, (line, line))
            yield Suppression(path, comment, line, first, last, *_read(tree.text(path, comment).rstrip()))


def _blocks(tree: Tree, path: str, comments: Iterable[Span]) -> dict[int, tuple[int, int]]:
    """Return, for each line a comment alone starts on, the first line of its block and the line after the block."""
    data, lines = tree.data(path), tree.lines(path)
    out: dict[int, tuple[int, int]] = {}
    block: list[int] = []
    after = 0
    for comment in comments:
        if data[data.rfind(b"\n", 0, comment.start) + 1 : comment.start].strip():
            continue
        line = lines.position(comment.start).line
        if block and line != after:
            out |= dict.fromkeys(block, (block[0], after))
            block = []
        block.append(line)
        after = lines.position(comment.end).line + 1
    return out | dict.fromkeys(block, (block[0] if block else 0, after))


def _read(text: str) -> tuple[str, str, str, str]:
    """Return rule, reason, last day, and what is wrong."""
    if not text.startswith(DIRECTIVE) or not text[len(DIRECTIVE) :][:1].isspace():
        bare = text == DIRECTIVE
        return "", "", "", "it names no rule" if bare else f"it is not written as {DIRECTIVE}"
    words = text[len(DIRECTIVE) :].split()
    dates = [word.removeprefix("until=") for word in words if word.startswith("until=")]
    rule, *reason = [word for word in words if not word.startswith("until=")] or [""]
    until = dates[0] if dates else ""
    if not rule:
        return "", "", until, "it names no rule"
    if not any(char.isalnum() for word in reason for char in word):
        return rule, "", until, "it gives no reason"
    if len(dates) > 1 or (dates and not _is_date(until)):
        return rule, " ".join(reason), until, f"until={dates[-1]} is not one day as YYYY-MM-DD"
    if loose := _LOOSE_UNTIL.search(" ".join(reason)):
        return rule, " ".join(reason), until, f"{loose[0]!r} in its reason ends nothing: a day is until=YYYY-MM-DD"
    return rule, " ".join(reason), until, ""


def _is_date(text: str) -> bool:
    from datetime import date

    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
