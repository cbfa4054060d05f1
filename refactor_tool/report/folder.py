"""What an output folder holds: the series, the whole result as JSON, a page; and a folder like that for each branch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from refactor_tool.model import BranchRow, Plan, blob_id
from refactor_tool.report.document import as_json, document
from refactor_tool.report.page import page
from refactor_tool.report.series import PatchFile

#: The file that makes a folder one of ours, the page beside it, and the page of branches × sites.
RESULT, PAGE, TABLE = "plan.json", "report.html", "matrix.html"


def folder(plan: Plan, patches: Iterable[PatchFile], title: str) -> dict[str, bytes]:
    """Return the files of a plan's output by name; `title` heads the page."""
    files = {patch.name: patch.data for patch in patches}
    result = document(plan) | {"patches": [{"name": name, "blob": blob_id(data)} for name, data in files.items()]}
    return files | {RESULT: as_json(result), PAGE: page(plan, title)}


def branch_folders(rows: Sequence[BranchRow]) -> dict[int, str]:
    """Return a folder for each branch that has files, named after it, by the number of its row.

    With several repositories these stand above. Names that would meet, also where upper and lower case are the same,
    are numbered.
    """
    above: dict[str, str] = {}
    for repository in dict.fromkeys(row.repository for row in rows):
        name = _safe(repository.rstrip("/").rpartition("/")[2] or "repository")
        above[repository] = _first_free(name, [""], {f"{other}/" for other in above.values()})
    taken = {RESULT, TABLE}
    folders: dict[int, str] = {}
    for at, row in enumerate(rows):
        if row.files:
            parts = [*([above[row.repository]] if len(above) > 1 else []), *map(_safe, row.ref.split("/"))]
            names = [name for name, _ in row.files]
            folders[at] = _first_free("/".join(parts), names, taken)
            taken |= {f"{folders[at]}/{name}" for name in names}
    return folders


def _first_free(wanted: str, names: Sequence[str], taken: set[str]) -> str:
    """Return `wanted`, or it with a number, such that no file of these names meets one that is taken."""
    known = {name.casefold() for name in taken}
    above = {parent for name in known for parent in _above(name)}
    for candidate in _numbered(wanted):
        files = {f"{candidate}/{name}".casefold() for name in names}
        if not any(name in known or name in above or known.intersection(_above(name)) for name in files):
            return candidate
    raise AssertionError("numbers do not end")


def _numbered(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name}~{number}"
        number += 1


def _above(name: str) -> list[str]:
    """Return the folders that a file lies in."""
    parts = name.split("/")
    return ["/".join(parts[:at]) for at in range(1, len(parts))]


def _safe(part: str) -> str:
    """Return a part of a ref's name as a file name: not dots alone, no separators, no control characters."""
    kept = "".join(char if char.isprintable() and char not in '\\:*?"<>|' else "_" for char in part)
    return kept if kept.strip(".") else f"_{kept}"
