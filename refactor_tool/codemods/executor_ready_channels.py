"""Step 2: the executor gives out a channel a component that is closed when that is ready.

The interface gains what it lacks of `CRI` and the three accessors, and so do its forwarders and every type that
implements it. Nothing waits for the channels yet.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from refactor_tool.codemod import Anchor, Codemod, Template
from refactor_tool.codemods._executor_mock import derive
from refactor_tool.codemods._executor_state import (
    CHANNELS,
    FIELDS,
    ID,
    STARTS,
    STATE,
    TEMPLATES,
    Executor,
    Implementer,
    executor_findings,
    implementers,
)
from refactor_tool.codemods._k3s import CONFIG, EXECUTOR, MOCK, UTIL, declares, package, site
from refactor_tool.codemods._shapes import cannot_name, needs
from refactor_tool.gosrc import ast, layout
from refactor_tool.gosrc.tree import Tree
from refactor_tool.model import Change, Edit, Finding, Leave, Manual, NewFile, Rewrite, Span, Verdict

#: What the interface gains, in this order.
METHODS = ("CRI", *FIELDS)
TEST_NAMES = ("isClosed", "unset", "unsetExecutor")

INTERFACE_METHODS = Template(f"{ID}/interface_methods.go.j2", ("config", "context", "methods"))
INTERFACE_DOC = Template(f"{ID}/interface_doc.go.j2")
FORWARDERS = Template(f"{ID}/forwarders.go.j2", ("config", "context", "methods", "variable"))
READY = Template(f"{ID}/ready.go.j2")
READY_TEST = Template(f"{ID}/ready_test.go.j2")
EXECUTOR_TEST = Template(f"{ID}/executor_ready_test.go.j2", ("header", "util", "variable"))
EMBED_TEST = Template(f"{ID}/embed_test.go.j2", ("config", "header"))
MOCK_FILE = Template(f"{ID}/mock.go.j2", ("imports", "methods", "receiver", "starts_etcd"))


def find(tree: Tree) -> Iterator[Finding]:
    """Yield the interface, its forwarders, and what implements it."""
    found = tree.interface(package(tree, EXECUTOR), "Executor")
    if found is None:
        return
    path, decl, interface = found
    known = implementers(tree)
    forwarders = tree.forwarders(package(tree, EXECUTOR), "Executor")
    variable = _variable(tree, forwarders)
    yield from _interface(tree, path, decl, interface)
    has = {method.name for method in interface.methods}
    if not has.issuperset(METHODS) or any(isinstance(executor, Executor) and executor.lacking for executor in known):
        yield from _signal(tree, path, decl, _tests(tree, variable, known))
    yield from _forwarders(tree, forwarders, variable, has)
    yield from executor_findings(tree, known)


# --- the interface ----------------------------------------------------------------------------------


def _interface(tree: Tree, path: str, decl: ast.TypeDecl, interface: ast.InterfaceType) -> Iterator[Finding]:
    present = {method.name: method for method in interface.methods}
    missing = [name for name in METHODS if name not in present]
    for name in METHODS:
        if name in present:
            done = Leave("the interface has it already", done=True)
            yield _method_site(tree, path, present[name].span, done, f"keep {name}", name, "interface-method")
    after = next((present[name] for name in (*reversed(METHODS), "Docker") if name in present), None)
    if after is None and interface.methods:
        after = interface.methods[-1]
    verdict: Verdict = Leave("the interface has its readiness channels already", done=True)
    if missing:
        verdict = _with_methods(tree, path, decl, interface, after, missing)
    span = after.span if missing and after is not None else decl.name_span
    message = f"let the executor have {', '.join(missing or METHODS)}"
    yield site(tree, ID, path, span, verdict, message, channel="none", shape="interface", anchor="executor-interface")


def _with_methods(
    tree: Tree,
    path: str,
    decl: ast.TypeDecl,
    interface: ast.InterfaceType,
    after: ast.Method | None,
    missing: Sequence[str],
) -> Rewrite | Manual:
    instruction = f"give the interface {', '.join(missing)}, and every type that implements it"
    if after is None or tree.indent(path, after.span.start) == tree.indent(path, decl.span.start):
        return Manual("the methods of the interface are not on lines of their own", instruction)
    context = tree.qualify(path, "context", "context", after.span.start)
    config = tree.qualify(path, package(tree, CONFIG), "daemonconfig", after.span.start)
    if context is None or config is None:
        return cannot_name(CONFIG, "the methods of the interface")
    mock = _mock(tree, path, interface, missing)
    if isinstance(mock, str):
        return Manual(mock, instruction)
    values = {"methods": " ".join(missing), "context": context.prefix, "config": config.prefix}
    indent = tree.indent(path, after.span.start)
    place = layout.insert_after_line(tree, path, after.span.end - 1)
    changes: list[Change] = [
        Edit(path, place, INTERFACE_METHODS.filled(values, indent, lines=True)),
        *needs(path, context, config),
        *mock,
    ]
    # it tells what holds for all channels, so not where one of them is somebody else's
    if decl.doc is None and len(missing) == len(METHODS):
        above = layout.insert_before_line(tree, path, decl.span.start)
        text = INTERFACE_DOC.filled({}, tree.indent(path, decl.span.start), lines=True)
        changes.append(Edit(path, above, text))
    return Rewrite(tuple(changes))


def _method_site(tree: Tree, path: str, span: Span, verdict: Verdict, message: str, name: str, shape: str) -> Finding:
    return site(tree, ID, path, span, verdict, message, channel=CHANNELS.get(name, "cri"), shape=shape)


# --- new files --------------------------------------------------------------------------------------


def _signal(tree: Tree, path: str, decl: ast.TypeDecl, tests: tuple[NewFile, ...]) -> Iterator[Finding]:
    """Yield the type behind the channels, with its tests and those of k3s' own executor."""
    util = package(tree, UTIL)
    known = [name for name in ("ReadySignal", "WaitReady") if declares(tree, util, name)]
    new = _free(tree, f"{UTIL}/ready.go", f"{UTIL}/ready_signal.go")
    verdict: Verdict
    if len(known) == 2:
        verdict = Rewrite(tests) if tests else Leave("the type behind the channels is there already", done=True)
    elif known or new is None:
        what = f"declares {known[0]}" if known else "has files of the names that the new one could have"
        verdict = Manual(
            f"{UTIL} {what} already, but not all that goes with it", "add the type util.ReadySignal by hand"
        )
    else:
        test = new.replace(".go", "_test.go")
        is_free = test not in tree.snapshot.files and not declares(tree, util, "isClosed")
        signal = (NewFile(new, READY.filled({})), *((NewFile(test, READY_TEST.filled({})),) if is_free else ()))
        verdict = Rewrite((*signal, *tests))
    message = "add the type behind the channels"
    yield site(tree, ID, path, decl.name_span, verdict, message, channel="none", shape="signal")


def _mock(tree: Tree, path: str, interface: ast.InterfaceType, missing: Sequence[str]) -> tuple[NewFile, ...] | str:
    """Return the executor for tests, nothing where there is one, or why there can be none."""
    if declares(tree, package(tree, MOCK), "Executor"):
        return ()
    where = _free(tree, f"{MOCK}/executor.go", f"{MOCK}/ready_executor.go")
    if where is None or declares(tree, package(tree, MOCK), "NewReady"):
        return f"{MOCK} has something else by the name of the executor for tests"
    mock = derive(tree, path, interface, missing)
    if isinstance(mock, str):
        return mock
    values = {
        "imports": mock.imports,
        "methods": mock.methods,
        "receiver": mock.receiver,
        "starts_etcd": "yes" if mock.starts_etcd else "",
    }
    return (NewFile(where, MOCK_FILE.filled(values)),)


def _tests(tree: Tree, variable: str, known: Sequence[Implementer]) -> tuple[NewFile, ...]:
    """Return the tests of k3s' own executor where it gets all signals now, and no test has their names."""
    executor = package(tree, EXECUTOR)
    embedded = next((found for found in known if isinstance(found, Executor) and found.is_embedded), None)
    if embedded is None or embedded.package != executor or len(embedded.lacking) < len(FIELDS) or not variable:
        return ()
    ready, embed = f"{EXECUTOR}/ready_test.go", f"{EXECUTOR}/embed_test.go"
    if ready in tree.snapshot.files or any(declares(tree, executor, name) for name in TEST_NAMES):
        return ()
    values = {"header": _header(tree, embedded.path), "util": package(tree, UTIL), "variable": variable}
    out = [NewFile(ready, EXECUTOR_TEST.filled(values))]
    if embed not in tree.snapshot.files and not embedded.has("CRI"):
        values = {"header": _header(tree, embedded.home), "config": package(tree, CONFIG)}
        out.append(NewFile(embed, EMBED_TEST.filled(values)))
    return tuple(out)


def _header(tree: Tree, path: str) -> str:
    """Return the build constraint of a file as it stands there, with the blank line after it."""
    lines = tree.data(path).split(b"\npackage ", 1)[0].decode("utf-8", "replace").splitlines()
    found = [line for line in lines if line.startswith(("//go:build ", "// +build "))]
    return "".join(f"{line}\n" for line in [*found, ""]) if found else ""


def _free(tree: Tree, *paths: str) -> str | None:
    return next((path for path in paths if path not in tree.snapshot.files), None)


# --- the forwarders ---------------------------------------------------------------------------------


def _variable(tree: Tree, forwarders: Sequence[tuple[str, ast.FuncDecl]]) -> str:
    """Return the name of the variable that the forwarders call, "" where they do not agree on one."""
    names = set()
    for path, decl in forwarders:
        match tree.function(path, decl).body:
            case ast.Block(stmts=(ast.Return(values=(ast.Call(fun=ast.Selector(x=ast.Ident(name=name))),)),)) if (
                name not in ("ctx", "config")  # as the parameters of new forwarders are called
            ):
                names.add(name)
            case _:
                names.add("")
    return names.pop() if len(names) == 1 else ""


def _forwarders(
    tree: Tree, forwarders: Sequence[tuple[str, ast.FuncDecl]], variable: str, has: Container[str]
) -> Iterator[Finding]:
    """Yield the package's functions; one that is there for a method that the interface has is one of them."""
    present = [found for name in METHODS if name in has for found in tree.functions(package(tree, EXECUTOR), name)]
    for path, decl in present:
        done = Leave("the function is there already", done=True)
        yield _method_site(tree, path, decl.span, done, f"keep {decl.name}", decl.name, "forwarder")
    missing = [name for name in METHODS if not any(decl.name == name for _, decl in present)]
    path, last = max((*forwarders, *present), key=lambda found: (found[0], found[1].span), default=("", None))
    if last is None:
        return
    verdict: Verdict = Leave("the package has functions for the readiness channels already", done=True)
    if missing:
        verdict = _with_forwarders(tree, path, last, variable, missing)
    message = f"let the package have {', '.join(missing or METHODS)}"
    yield site(
        tree, ID, path, last.span, verdict, message, channel="none", shape="forwarders", anchor="executor-forwarders"
    )


def _with_forwarders(
    tree: Tree, path: str, last: ast.FuncDecl, variable: str, missing: Sequence[str]
) -> Rewrite | Manual:
    instruction = f"write functions {', '.join(missing)} that call the executor's methods"
    taken = [name for name in missing if declares(tree, package(tree, EXECUTOR), name)]
    if taken:
        return Manual(f"{EXECUTOR} declares a {taken[0]} that does not only call the executor", instruction)
    if not variable:
        return Manual("the functions of the package do not all call one variable", instruction)
    place = layout.insert_after_line(tree, path, last.span.end - 1)
    context = tree.qualify(path, "context", "context", place.start)
    config = tree.qualify(path, package(tree, CONFIG), "daemonconfig", place.start)
    if context is None or config is None:
        return cannot_name(CONFIG, "the functions of the package")
    values = {
        "methods": " ".join(missing),
        "context": context.prefix,
        "config": config.prefix,
        "variable": variable,
    }
    return Rewrite((Edit(path, place, FORWARDERS.filled(values)), *needs(path, context, config)))


CODEMOD = Codemod(
    id=ID,
    title="Add readiness channels to the executor",
    body="""\
Give the executor's interface APIServerReadyChan, ETCDReadyChan,
CRIReadyChan and CRI, and write them for the embedded executor and for a
mock that tests can drive. A type whose zero value works is behind each
channel: it can be asked for before the executor is bootstrapped, is always
the same one, and is closed on success only. Nothing waits for the channels
yet.
""",
    find=find,
    templates=(
        INTERFACE_METHODS,
        INTERFACE_DOC,
        FORWARDERS,
        READY,
        READY_TEST,
        EXECUTOR_TEST,
        EMBED_TEST,
        MOCK_FILE,
        *TEMPLATES,
    ),
    anchors=(
        Anchor("executor-interface"),
        Anchor("executor-forwarders"),
        Anchor(STATE),
        *(Anchor(name, optional=True) for name in STARTS.values()),
    ),
)
