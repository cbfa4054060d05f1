"""The fixture module before and after the campaign, as files of a repository, and small changes to them."""

from __future__ import annotations

from functools import cache

from refactor_tool import engine
from refactor_tool.codemods import SUITE
from refactor_tool.model import File
from refactor_tool.world.templates import load_templates
from refactor_tool.world.tree import read_tree
from tests.command import FIXTURE

Files = dict[str, File]


@cache
def _before() -> Files:
    return dict(read_tree(FIXTURE).files)


@cache
def _after() -> Files:
    planned = engine.plan(read_tree(FIXTURE), SUITE, load_templates())
    assert not planned.problems, planned.problems
    return dict(planned.final.files)


def before() -> Files:
    """Return the fixture as it is: everything is still to do."""
    return dict(_before())


def after() -> Files:
    """Return the fixture as the campaign leaves it."""
    return dict(_after())


def edited(files: Files, path: str, old: str, new: str) -> Files:
    """Return the files with one text of one of them replaced, once."""
    text = files[path].data.decode()
    assert text.count(old) >= 1, f"{path} does not hold {old!r}"
    return files | {path: File(text.replace(old, new, 1).encode())}


def added(files: Files, path: str, text: str | bytes) -> Files:
    return files | {path: File(text if isinstance(text, bytes) else text.encode())}


def without(files: Files, *paths: str) -> Files:
    return {path: file for path, file in files.items() if path not in paths}
