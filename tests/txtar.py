"""Read and write case files: one text file holds a comment and named files, as Go's txtar does."""

from __future__ import annotations

import re

_MARK = re.compile(r"^-- (.+) --$", re.MULTILINE)


def parse(text: str) -> tuple[str, dict[str, str]]:
    """Return the leading comment and the files by name; each file's text ends before the next mark."""
    marks = list(_MARK.finditer(text))
    if not marks:
        return text, {}
    files = {}
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        name = mark.group(1)
        if name in files:
            raise ValueError(f"file {name!r} is there twice")
        files[name] = text[mark.end() + 1 : following.start() if following else len(text)]
    return text[: marks[0].start()], files


def write(comment: str, files: dict[str, str]) -> str:
    return comment + "".join(f"-- {name} --\n{text}" for name, text in files.items())
