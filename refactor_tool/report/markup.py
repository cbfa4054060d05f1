"""Text from an examined tree in a page."""

from __future__ import annotations

import html

from refactor_tool.report.text import printable


def escaped(text: str) -> str:
    """Return text for HTML, in an element or a quoted attribute: no markup, nothing unprintable but line ends."""
    return html.escape("\n".join(printable(line) for line in text.split("\n")))
