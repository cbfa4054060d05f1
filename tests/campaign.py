"""The whole campaign on the fixture, and on what a test makes of it, in memory."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from refactor_tool import engine
from refactor_tool.codemods import SUITE
from refactor_tool.gosrc.parse import ParseCache
from refactor_tool.model import File, Plan, Snapshot
from refactor_tool.world.templates import load_templates
from tests import trees

Files = Mapping[str, bytes]

#: Keyed by blob: what one plan has parsed, the next need not.
CACHE = ParseCache()


@cache
def fixture() -> Files:
    return contents(Snapshot(trees.before()))


@cache
def planned() -> Plan:
    """Return the plan of the fixture as it is."""
    return plan(fixture())


def plan(files: Files) -> Plan:
    """Return the plan of a tree; what is sound is in it even if something is missing."""
    return engine.plan(snapshot(files), SUITE, load_templates(), keep_going=True, cache=CACHE)


def snapshot(files: Files) -> Snapshot:
    return Snapshot({path: File(data) for path, data in files.items()})


def contents(tree: Snapshot) -> Files:
    return {path: file.data for path, file in tree.files.items()}
