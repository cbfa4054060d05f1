"""The files that step 2 adds: the type behind the channels, the executor for tests, and tests."""

from __future__ import annotations

from collections.abc import Sequence

from refactor_tool.codemod import Template
from refactor_tool.codemods._executor_mock import derive
from refactor_tool.codemods._executor_runtime import waits_for_runtimes
from refactor_tool.codemods._executor_state import FIELDS, ID, Executor, Implementer
from refactor_tool.codemods._k3s import CONFIG, EXECUTOR, MOCK, UTIL, declares, package
from refactor_tool.codemods._left_out import InTheWay, in_the_way
from refactor_tool.codemods._shapes import CONTEXT
from refactor_tool.gosrc import ast
from refactor_tool.gosrc.tree import Tree, TypeRef
from refactor_tool.model import Leave, Manual, NewFile, Rewrite

#: What the tests of the type behind the channels declare, and those of k3s' own executor.
SIGNAL_TEST_NAMES = (
    "isClosed",
    "Test_UnitReadySignal_ZeroValue",
    "Test_UnitReadySignal_CloseIfNil",
    "Test_UnitReadySignal_Concurrent",
    "Test_UnitReadySignal_Independent",
    "Test_UnitWaitReady",
)
TEST_NAMES = (
    "isClosed",
    "unset",
    "unsetExecutor",
    "Test_UnitEmbedded_ReadyChan_BeforeBootstrap",
    "Test_UnitExecutor_Two",
    "Test_UnitExecutor_NotSet",
    "Test_UnitWaitReady_NotBootstrapped",
)

SIGNAL_PATHS = (f"{UTIL}/ready.go", f"{UTIL}/ready_signal.go")
READY = Template(f"{ID}/ready.go.j2")
READY_TEST = Template(f"{ID}/ready_test.go.j2")
EXECUTOR_TEST = Template(f"{ID}/executor_ready_test.go.j2", ("header", "util", "variable"))
EMBED_TEST = Template(f"{ID}/embed_test.go.j2", ("config", "header", "waits"))
MOCK_FILE = Template(f"{ID}/mock.go.j2", ("imports", "methods", "receiver", "starts_etcd"))
FILE_TEMPLATES = (READY, READY_TEST, EXECUTOR_TEST, EMBED_TEST, MOCK_FILE)


def signal(tree: Tree, tests: tuple[NewFile, ...]) -> Rewrite | Manual | Leave:
    """Return what becomes of the type behind the channels, which comes with its tests and with `tests`."""
    util = package(tree, UTIL)
    known = [name for name in ("ReadySignal", "WaitReady") if declares(tree, util, name)]
    other = another_helper(tree)
    if other is not None:
        return other
    if len(known) == 2:
        return Rewrite(tests) if tests else Leave("the type behind the channels is there already", done=True)
    path = _free(tree, *SIGNAL_PATHS)
    if known or path is None:
        what = f"declares {known[0]}" if known else "has files of the names that the new one could have"
        reason = f"{UTIL} {what} already, but not all that goes with it"
        return Manual(reason, "add the type util.ReadySignal and the function util.WaitReady by hand")
    added = NewFile(path, READY.filled({}))
    if signal_tests_left_out(tree) is not None:
        return Rewrite((added, *tests))
    return Rewrite((added, NewFile(path.replace(".go", "_test.go"), READY_TEST.filled({})), *tests))


def signal_tests_left_out(tree: Tree) -> InTheWay | None:
    """Return what keeps the tests of the type behind the channels out, where that is added."""
    path = _free(tree, *SIGNAL_PATHS)
    if path is None or declares(tree, package(tree, UTIL), "ReadySignal"):
        return None
    return in_the_way(tree, UTIL, [path.replace(".go", "_test.go")], SIGNAL_TEST_NAMES)


def another_helper(tree: Tree) -> Manual | None:
    """Refuse a ReadySignal or WaitReady of the package util that is not what our code calls."""
    util = package(tree, UTIL)
    methods = {method.name for _, method in tree.methods(util, "ReadySignal")}
    for name in (name for name in ("ReadySignal", "WaitReady") if declares(tree, util, name)):
        is_signal = name == "ReadySignal" and methods >= {"Chan", "Close", "CloseIfNil"}
        if not is_signal and not any(_is_wait(tree, path, decl) for path, decl in tree.functions(util, name)):
            return Manual(f"{UTIL} declares a {name} that is something else than the one of the channels", "rename it")
    return None


def _is_wait(tree: Tree, path: str, decl: ast.FuncDecl) -> bool:
    """Tell whether a function takes a context and a channel, and returns an error."""
    params = [param.type for param in decl.params for _ in param.names or (None,)]
    results = [tree.text(path, result.type.span) for result in decl.results]
    takes = len(params) == 2 and tree.named_type(TypeRef(params[0], path)) == CONTEXT
    return takes and tree.text(path, params[1].span) == "<-chan struct{}" and results == ["error"]


def mock(tree: Tree, path: str, interface: ast.InterfaceType, missing: Sequence[str]) -> tuple[NewFile, ...] | str:
    """Return the executor for tests, nothing where there is one, or why there can be none."""
    if declares(tree, package(tree, MOCK), "Executor"):
        return ()
    where = _free(tree, f"{MOCK}/executor.go", f"{MOCK}/ready_executor.go")
    if where is None or declares(tree, package(tree, MOCK), "NewReady"):
        return f"{MOCK} has something else by the name of the executor for tests"
    derived = derive(tree, path, interface, missing)
    if isinstance(derived, str):
        return derived
    values = {
        "imports": derived.imports,
        "methods": derived.methods,
        "receiver": derived.receiver,
        "starts_etcd": "yes" if derived.starts_etcd else "",
    }
    return (NewFile(where, MOCK_FILE.filled(values)),)


def tests_of_embedded(tree: Tree, variable: str, known: Sequence[Implementer]) -> tuple[NewFile, ...]:
    """Return the tests of k3s' own executor where it gets all signals now, and no test has their names."""
    embedded = _bare_embedded(tree, known)
    if embedded is None or not variable or embedded_tests_left_out(tree, known) is not None:
        return ()
    ready, embed = f"{EXECUTOR}/ready_test.go", f"{EXECUTOR}/embed_test.go"
    values = {"header": _header(tree, embedded.path), "util": package(tree, UTIL), "variable": variable}
    out = [NewFile(ready, EXECUTOR_TEST.filled(values))]
    if embed not in tree.snapshot.files and not embedded.has("CRI"):
        waits = "yes" if waits_for_runtimes(tree) else ""
        values = {"header": _header(tree, embedded.home), "config": package(tree, CONFIG), "waits": waits}
        out.append(NewFile(embed, EMBED_TEST.filled(values)))
    return tuple(out)


def embedded_tests_left_out(tree: Tree, known: Sequence[Implementer]) -> InTheWay | None:
    """Return what keeps the tests of k3s' own executor out, where it gets all signals now."""
    if _bare_embedded(tree, known) is None:
        return None
    return in_the_way(tree, EXECUTOR, [f"{EXECUTOR}/ready_test.go"], TEST_NAMES)


def _bare_embedded(tree: Tree, known: Sequence[Implementer]) -> Executor | None:
    """Return k3s' own executor where it has no signal yet."""
    embedded = next((found for found in known if isinstance(found, Executor) and found.is_embedded), None)
    if embedded is None or embedded.package != package(tree, EXECUTOR) or len(embedded.lacking) < len(FIELDS):
        return None
    return embedded


def _header(tree: Tree, path: str) -> str:
    """Return the build constraint of a file as it stands there, with the blank line after it."""
    lines = tree.data(path).split(b"\npackage ", 1)[0].decode("utf-8", "replace").split("\n")
    found = [line.rstrip("\r") for line in lines if line.startswith(("//go:build ", "// +build "))]
    return "".join(f"{line}\n" for line in [*found, ""]) if found else ""


def _free(tree: Tree, *paths: str) -> str | None:
    return next((path for path in paths if path not in tree.snapshot.files), None)
