"""Find words in the bytes of Go source, before or instead of a parse. What is found here may still be prose."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from refactor_tool.model import Span

#: The source of a pattern that stands for whole words, and the words in it.
_WHOLE_WORDS = re.compile(rb"\\b(?:(\w+)|\(\?:(\w+(?:\|\w+)*)\))\\b")
_METHOD = re.compile(rb"\) ([\w\x80-\xff]+)\(")
_WORD = re.compile(rb"\w+")
_BEFORE_DOT = re.compile(rb"\s*(?:\.|/[/*])")
#: What may follow it: the end of the line, a blank, a comment, a comma, a value, or a type that no blank parts from it.
_AFTER_NAME = frozenset((b"", b" ", b"\t", b"\r", b"/", b",", b"=", b"[", b"*", b"<"))
_WORD_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
#: What stands before a name in the list of a `var` or `const` line.
_NAMES = re.compile(rb"[ \t]*(?!return\b)(?:(?:var|const)[ \t]+)?[\w\x80-\xff, \t]*")


def places_of(pattern: re.Pattern[bytes], data: bytes) -> list[Span]:
    """Return where a pattern matches, in order. One of whole words, such as `\\b(?:a|b)\\b`, is searched word by word.

    A regular expression that begins with `\\b` is tried at every byte, which took longer than to parse the file.
    """
    words = _WHOLE_WORDS.fullmatch(pattern.pattern)
    if words is None or pattern.flags & (re.IGNORECASE | re.LOCALE):
        return [Span(*match.span()) for match in pattern.finditer(data)]
    return sorted(place for word in {*(words[1] or words[2]).split(b"|")} for place in word_places(data, word))


def word_places(data: bytes, word: bytes, start: int = 0, end: int | None = None) -> Iterator[Span]:
    """Yield where a word stands by itself between two bytes, in order."""
    end = len(data) if end is None else end
    at = data.find(word, start, end)
    while at >= 0:
        after = at + len(word)
        if not (at and data[at - 1] in _WORD_BYTES) and not (after < len(data) and data[after] in _WORD_BYTES):
            yield Span(at, after)
        at = data.find(word, after, end)


def places_before_dot(data: bytes, word: bytes, start: int = 0) -> Iterator[Span]:
    """Yield where a word may be the `x` of an `x.y`, in order: before a dot, blanks or comments between them or not."""
    return (place for place in word_places(data, word, start) if _BEFORE_DOT.match(data, place.end))


def words_with(needles: Sequence[bytes], pattern: re.Pattern[bytes], data: bytes) -> list[Span]:
    """Return where the words stand that hold a needle and match a pattern as a whole, in order."""
    starts: set[int] = set()
    out = []
    for needle in needles:
        at = data.find(needle)
        while at >= 0:
            start = at
            while start and data[start - 1] in _WORD_BYTES:
                start -= 1
            found = _WORD.match(data, start)
            if found is not None and start not in starts and pattern.fullmatch(found.group()):
                starts.add(start)
                out.append(Span(*found.span()))
            at = data.find(needle, at + len(needle))
    return sorted(out)


# --- what a file may declare ------------------------------------------------------------------------


def may_declare_function(data: bytes, name: bytes) -> bool:
    return b"func " + name + b"(" in data or b"func " + name + b"[" in data


def may_declare_type(data: bytes, name: bytes) -> bool:
    return _has_word(data, b"type ", name) or (b"\ntype (" in data and _has_word(data, b"\n\t", name))


def may_declare_variable(data: bytes, name: bytes) -> bool:
    if _has_word(data, b"var ", name) or _has_word(data, b"const ", name):
        return True
    grouped = b"\nvar (" in data or b"\nconst (" in data
    if grouped and _has_word(data, b"\n\t", name, of_spec=True):
        return True
    listed = grouped or b"\nvar " in data or b"\nconst " in data
    return listed and _has_word(data, b", ", name, of_spec=True)


def _has_word(data: bytes, before: bytes, word: bytes, *, of_spec: bool = False) -> bool:
    """Tell whether a word stands somewhere directly behind `before`; with `of_spec` where a name is declared."""
    text = before + word
    at = data.find(text)
    while at >= 0:
        end = at + len(text)
        if (end == len(data) or data[end] not in _WORD_BYTES) and (not of_spec or _may_be_spec(data, at + 1, end)):
            return True
        at = data.find(text, end)
    return False


def _may_be_spec(data: bytes, start: int, end: int) -> bool:
    """Tell whether `start` to `end` may be in the list of names that a `var` or `const` line begins with."""
    line_end = data.find(b"\n", end)
    rest = data[end : line_end if line_end >= 0 else len(data)]
    if rest[:1] not in _AFTER_NAME or rest.lstrip(b" \t").startswith(b":="):
        return False
    before = data[data.rfind(b"\n", 0, start) + 1 : start]
    return b"/*" in before or _NAMES.fullmatch(before) is not None


def may_have_methods(data: bytes, receiver: bytes) -> bool:
    return receiver + b") " in data or receiver + b"[" in data


def may_be_method(data: bytes, name: bytes) -> bool:
    return b") " + name + b"(" in data


def methods_in(sources: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, frozenset[bytes]]]:
    """Yield each file with the names of the methods that it may declare, by its bytes."""
    for path, data in sources:
        names = _METHOD.findall(data)
        if names:
            yield path, frozenset(names)
