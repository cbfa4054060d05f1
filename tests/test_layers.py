"""The rooms of the house, read from the imports: who may know whom, and who may touch the world outside."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "refactor_tool"

#: Standard library modules that reach outside the process or differ from run to run.
IMPURE = frozenset(
    "asyncio atexit builtins concurrent ctypes fileinput getpass glob http importlib locale logging mmap"
    " multiprocessing os pathlib platform random runpy secrets select shelve shutil signal smtplib socket sqlite3"
    " ssl subprocess sys tempfile threading time urllib uuid webbrowser".split()
)
#: Builtins that do the same without an import.
IMPURE_CALLS = frozenset("__import__ breakpoint eval exec input open print".split())


@dataclass(frozen=True, slots=True)
class Room:
    """What one part of the package may import: rooms, packages from outside, and impure standard modules."""

    rooms: frozenset[str]
    packages: frozenset[str]
    impure: frozenset[str]

    @classmethod
    def of(cls, rooms: str = "", packages: str = "", impure: frozenset[str] | str = "") -> Room:
        reach = frozenset(impure.split()) if isinstance(impure, str) else impure
        return cls(frozenset(rooms.split()), frozenset(packages.split()), reach)


#: The table of the design: a module's room is its first name below the package. `root` is `refactor_tool/__init__.py`.
ROOMS = {
    "root": Room.of(),
    "record": Room.of(impure="exec"),
    "model": Room.of("record"),
    "edits": Room.of("record model"),
    # importlib: the grammar is loaded without the package around it
    "gosrc": Room.of("record model", packages="tree_sitter tree_sitter_go", impure="importlib"),
    "codemod": Room.of("record model gosrc", packages="jinja2"),
    "codemods": Room.of("record model gosrc codemod"),
    "rule": Room.of("record model gosrc"),
    "rules": Room.of("record model gosrc rule"),
    "audit": Room.of("record model gosrc"),
    "eras": Room.of("record model gosrc"),
    "engine": Room.of("record model gosrc edits codemod audit eras drift"),
    "compare": Room.of("record model gosrc edits"),
    "outcome": Room.of("record model"),
    "suppress": Room.of("record model gosrc outcome"),
    "baseline": Room.of("record model outcome"),
    "config": Room.of("record model outcome"),
    "gate": Room.of("record model outcome report"),
    "verified": Room.of("record model"),
    "verify": Room.of("record model edits gosrc rule verified"),
    "report": Room.of("record root model edits outcome compare verified"),
    "world": Room.of("record root model edits", packages="distributed", impure=IMPURE),
    "drift": Room.of("record model homes"),
    "homes": Room.of("record"),
    "matrix": Room.of("record root model gosrc codemods engine eras drift report world", impure="pathlib"),
    "commands": Room.of(
        "record root model outcome gosrc audit codemod codemods rule rules engine gate suppress baseline config report"
        " world matrix compare verified verify",
        impure="pathlib sys",
    ),
    "cli": Room.of(
        "record root model codemod codemods rules engine gate report world matrix compare commands",
        packages="typer libcst",
        impure="os pathlib sys",
    ),
    "plain": Room.of("record", impure="pathlib"),
    "start": Room.of("root model plain cli commands report", impure="os sys"),
    "__main__": Room.of("start", impure="os signal sys"),
}
#: Modules of these rooms are siblings that never import each other; the room's `__init__` lists them.
#: What several of them need stands in a module whose name begins with `_`.
CATALOGUES = frozenset({"codemods", "rules"})
#: Packages from outside cost start-up time: all but these are imported inside the function that needs them.
EAGER = frozenset({"typer"})


@dataclass(frozen=True, slots=True)
class Import:
    """One imported name in full, where, and whether the module pays for it as soon as it is imported itself."""

    name: str
    line: int
    eager: bool


def imports(module: str, is_package: bool, tree: ast.Module) -> Iterator[Import]:
    """Yield every import of a module, wherever it stands; `from a import b` gives `a.b`."""
    lazy = {inner for node in ast.walk(tree) if _defers(node) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno, node not in lazy) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = module.split(".")[: len(module.split(".")) - node.level + is_package] if node.level else []
            origin = ".".join([*above, *([node.module] if node.module else [])])
            yield from (Import(f"{origin}.{alias.name}", node.lineno, node not in lazy) for alias in node.names)


def _defers(node: ast.AST) -> bool:
    """Say whether imports inside `node` cost nothing when the module is imported."""
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.unparse(node.test)
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)


def room_of(module: str) -> str:
    """Return the room of a dotted name in the package; names that `__init__` defines belong to `root`."""
    _, _, rest = module.partition(".")
    first = rest.partition(".")[0]
    return first if first in ROOMS else "root"


def violations(module: str, is_package: bool, source: str) -> list[str]:
    """Return what a module of the package does that its room must not, one `line: what` each."""
    first = module.partition(".")[2].partition(".")[0]
    if first and first not in ROOMS:
        return [f"1: {first} is no room of the table"]
    name = room_of(module)
    room = ROOMS[name]
    tree = ast.parse(source)
    found = []
    for each in imports(module, is_package, tree):
        top = each.name.partition(".")[0]
        if top == PACKAGE:
            other = room_of(each.name)
            if other != name and other not in room.rooms:
                found.append(f"{each.line}: {name} imports room {other}")
            elif other == name and name in CATALOGUES and not is_package and f".{name}._" not in each.name:
                found.append(f"{each.line}: {name} imports its sibling {each.name}")
        elif top in sys.stdlib_module_names:
            if top in IMPURE - room.impure:
                found.append(f"{each.line}: {name} imports impure {top}")
        elif top not in room.packages:
            found.append(f"{each.line}: {name} imports package {top}")
        elif each.eager and top not in EAGER:
            found.append(f"{each.line}: {name} imports {top} eagerly")
    if IMPURE - room.impure == IMPURE:
        found += [
            f"{node.lineno}: {name} calls {node.func.id}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in IMPURE_CALLS - room.impure
        ]
    return found


SOURCES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / PACKAGE).rglob("*.py"))


@pytest.mark.parametrize("path", SOURCES)
def test_module_keeps_to_its_room(path: str) -> None:
    parts = path.removesuffix(".py").split("/")
    is_package = parts[-1] == "__init__"
    module = ".".join(parts[:-1] if is_package else parts)
    assert violations(module, is_package, (ROOT / path).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("module", "source", "expected"),
    [
        pytest.param("model", "import re\nfrom dataclasses import dataclass", [], id="pure standard library is free"),
        pytest.param("model", "import os.path", ["1: model imports impure os"], id="submodule of an impure module"),
        pytest.param("model", "import jinja2", ["1: model imports package jinja2"], id="package in the wrong room"),
        pytest.param("model", "open('x')", ["1: model calls open"], id="IO without an import"),
        pytest.param("model", "def f(open): return x.open()", [], id="method and parameter of that name"),
        pytest.param("edits", "from refactor_tool.model import Span", [], id="room that may be known"),
        pytest.param("edits", "from refactor_tool import gosrc", ["1: edits imports room gosrc"], id="room as a name"),
        pytest.param("edits", "from .gosrc.ast import File", ["1: edits imports room gosrc"], id="relative import"),
        pytest.param("gosrc.parse", "from .ast import File", [], id="sibling in its own room"),
        pytest.param("gosrc.parse", "from ..world import git", ["1: gosrc imports room world"], id="relative, up two"),
        pytest.param(
            "gosrc.parse", "import tree_sitter", ["1: gosrc imports tree_sitter eagerly"], id="package eagerly"
        ),
        pytest.param("gosrc.parse", "def f():\n import tree_sitter", [], id="package inside a function"),
        pytest.param("engine", "def f():\n import time", ["2: engine imports impure time"], id="hidden in a function"),
        pytest.param("engine", "import tree_sitter", ["1: engine imports package tree_sitter"], id="only gosrc parses"),
        pytest.param(
            "engine", "from refactor_tool.codemods import SUITE", ["1: engine imports room codemods"], id="suite"
        ),
        pytest.param(
            "engine", "try:\n import random\nexcept E: pass", ["2: engine imports impure random"], id="in a try"
        ),
        pytest.param(
            "codemods.a", "from . import b", ["1: codemods imports its sibling refactor_tool.codemods.b"], id="."
        ),
        pytest.param(
            "codemods.a", "import subprocess", ["1: codemods imports impure subprocess"], id="codemod runs things"
        ),
        pytest.param(
            "codemods.a", "from jinja2 import x", ["1: codemods imports package jinja2"], id="codemod renders"
        ),
        pytest.param("report.text", "print(1)", ["1: report calls print"], id="report prints"),
        pytest.param("world.git", "import subprocess, os", [], id="world may"),
        pytest.param(
            "world.git", "from refactor_tool.engine import plan", ["1: world imports room engine"], id="world"
        ),
        pytest.param("cli", "import typer", [], id="cli pays for typer"),
        pytest.param("cli", "import libcst", ["1: cli imports libcst eagerly"], id="cli does not pay for libcst"),
        pytest.param("cli", "if TYPE_CHECKING:\n import libcst", [], id="types cost nothing"),
        pytest.param(
            "cli",
            "if TYPE_CHECKING:\n from refactor_tool import gosrc",
            ["2: cli imports room gosrc"],
            id="knowledge of types is knowledge",
        ),
        pytest.param("report.text", "from refactor_tool import __version__", [], id="name of the root"),
        pytest.param("novel.thing", "", ["1: novel is no room of the table"], id="unknown room"),
    ],
)
def test_checker_sees(module: str, source: str, expected: list[str]) -> None:
    assert violations(f"{PACKAGE}.{module}", False, source) == expected


def test_catalogue_lists_its_modules() -> None:
    assert violations(f"{PACKAGE}.codemods", True, "from refactor_tool.codemods import a\nfrom .b import CODEMOD") == []


def test_nobody_outside_world_runs_a_process() -> None:
    assert [name for name, room in ROOMS.items() if "subprocess" in room.impure] == ["world"]


@pytest.mark.parametrize(
    ("owner", "package"),
    [("gosrc", "tree_sitter"), ("gosrc", "tree_sitter_go"), ("codemod", "jinja2"), ("cli", "typer"), ("cli", "libcst")],
)
def test_each_package_has_one_room(owner: str, package: str) -> None:
    assert [name for name, room in ROOMS.items() if package in room.packages] == [owner]


@pytest.mark.parametrize("module", ["engine", "codemods", "report", "world", "cli"])
def test_import_does_not_load(module: str) -> None:
    code = f"import sys, refactor_tool.{module}; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    heavy = {"jinja2", "libcst", "rich", "tree_sitter", "tree_sitter_go"}
    assert heavy.isdisjoint(run.stdout.split())
