"""Refuse source that is nested deeper than anybody writes, before anything walks down into it.

The parser copes with any depth, but whoever climbs from a place to its function does so once a place, and whoever
converts a node to a value does so on the stack.
"""

from __future__ import annotations

#: Brackets within brackets. The deepest file of k3s has 13.
MOST_NESTED = 200
#: Brackets that pair with nothing, since they stand in strings and comments (9 in a file of k3s), and links of an `else if` chain.
_MOST_LOOSE = 500

_OTHERS = bytes(set(range(256)) - set(b"()[]{}"))


def is_too_deep(data: bytes) -> bool:
    """Say whether Go source is nested too deep, by its brackets alone; takes microseconds for ordinary source."""
    brackets = data.translate(None, _OTHERS)
    for _ in range(MOST_NESTED):
        inside_out = brackets.replace(b"()", b"").replace(b"[]", b"").replace(b"{}", b"")
        if len(inside_out) == len(brackets):
            return len(brackets) > _MOST_LOOSE or data.count(b"else if") > _MOST_LOOSE
        brackets = inside_out
    return bool(brackets)
