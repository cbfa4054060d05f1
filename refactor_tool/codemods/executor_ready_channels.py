"""Step 2: the executor gives out a channel a component that is closed when that is ready.

The interface gains what it lacks of `CRI` and the three accessors, and so do its forwarders and every type that
implements it. Nothing waits for the channels yet.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import assert_never

from refactor_tool.codemod import Anchor, Codemod, Template
from refactor_tool.codemods._executor_files import (
    FILE_TEMPLATES,
    another_helper,
    embedded_tests_left_out,
    mock,
    signal,
    signal_tests_left_out,
    tests_of_embedded,
)
from refactor_tool.codemods._executor_runtime import RUNTIME_TEMPLATES, STARTS, missing_cri, starts
from refactor_tool.codemods._executor_state import (
    CHANNELS,
    EMBEDDED,
    FIELDS,
    ID,
    STATE,
    STATE_TEMPLATES,
    Executor,
    Implementer,
    Unchanged,
    another_signature,
    implementers,
    state,
)
from refactor_tool.codemods._k3s import CONFIG, EXECUTOR, UTIL, declares, package, site
from refactor_tool.codemods._shapes import cannot_name, needs
from refactor_tool.gosrc import ast, layout
from refactor_tool.gosrc.tree import Tree
from refactor_tool.model import Change, Edit, Finding, Leave, Manual, Rewrite, Span, Verdict

#: What the interface gains, in this order.
METHODS = ("CRI", *FIELDS)

INTERFACE_METHODS = Template(f"{ID}/interface_methods.go.j2", ("config", "context", "methods"))
INTERFACE_DOC = Template(f"{ID}/interface_doc.go.j2")
FORWARDERS = Template(f"{ID}/forwarders.go.j2", ("config", "context", "methods", "variable"))


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
    yield from _other_interfaces(tree, path, decl)
    has = {method.name for method in interface.methods}
    is_open = not has.issuperset(METHODS) or any(isinstance(each, Executor) and each.lacking for each in known)
    if is_open or _uses_signal(tree) or another_helper(tree) is not None:
        for_tests = mock(tree, path, interface, ()) if has.issuperset(METHODS) else ()
        beside = () if isinstance(for_tests, str) else for_tests
        added = signal(tree, (*beside, *tests_of_embedded(tree, variable, known)))
        message = "add the type behind the channels"
        yield site(tree, ID, path, decl.name_span, added, message, channel="none", shape="signal")
        for kept in filter(None, (signal_tests_left_out(tree), embedded_tests_left_out(tree, known))):
            yield site(tree, ID, kept.path, kept.span, kept.verdict, "add tests", channel="none", shape="tests")
    yield from _forwarders(tree, forwarders, variable, has)
    for implementer in known:
        yield from _implementer(tree, implementer)


def _uses_signal(tree: Tree) -> bool:
    """Tell whether executors have signals already, of a type that is not there yet."""
    used = any(b"util.ReadySignal" in tree.data(path) for path in tree.package_files(package(tree, EXECUTOR)))
    return used and not declares(tree, package(tree, UTIL), "ReadySignal")


def _implementer(tree: Tree, found: Implementer) -> Iterator[Finding]:
    match found:
        case Executor():
            yield from state(found)
            yield from starts(found)
            yield from missing_cri(found)
        case Unchanged(type=name, path=path, span=span, verdict=verdict):
            message = f"give {name} readiness channels"
            anchor = STATE if name == EMBEDDED else ""
            yield site(tree, ID, path, span, verdict, message, channel="none", shape="executor-state", anchor=anchor)
        case _:
            assert_never(found)


# --- the interface ----------------------------------------------------------------------------------


def _interface(tree: Tree, path: str, decl: ast.TypeDecl, interface: ast.InterfaceType) -> Iterator[Finding]:
    present = {method.name: method for method in interface.methods}
    missing = [name for name in METHODS if name not in present]
    for name in METHODS:
        if name in present:
            here = another_signature(tree, path, present[name]) or Leave("the interface has it already", done=True)
            yield _method_site(tree, path, present[name].span, here, f"keep {name}", name, "interface-method")
    after = next((present[name] for name in (*reversed(METHODS), "Docker") if name in present), None)
    if after is None and interface.methods:
        after = interface.methods[-1]
    verdict: Verdict = Leave("the interface has its readiness channels already", done=True)
    if missing:
        verdict = _with_methods(tree, path, decl, interface, after, missing)
    span = after.span if missing and after is not None else decl.name_span
    message = f"let the executor have {', '.join(missing or METHODS)}"
    yield site(tree, ID, path, span, verdict, message, channel="none", shape="interface", anchor="executor-interface")


def _other_interfaces(tree: Tree, path: str, decl: ast.TypeDecl) -> Iterator[Finding]:
    """Yield the interface's declarations for other builds: which one its methods belong to is not known."""
    for where, other in tree.types(package(tree, EXECUTOR), "Executor"):
        if (where, other.span) != (path, decl.span):
            line = tree.line_text(where, other.span.start)
            verdict = Manual(f"the interface is declared once more: {line!r}", "declare it once, for all builds")
            yield site(
                tree,
                ID,
                where,
                other.span,
                verdict,
                "keep one interface",
                channel="none",
                shape="interface",
                anchor="executor-interface",
            )


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
    for_tests = mock(tree, path, interface, missing)
    if isinstance(for_tests, str):
        return Manual(for_tests, instruction)
    values = {"methods": " ".join(missing), "context": context.prefix, "config": config.prefix}
    indent = tree.indent(path, after.span.start)
    place = layout.insert_after_line(tree, path, after.span.end - 1)
    changes: list[Change] = [
        Edit(path, place, INTERFACE_METHODS.filled(values, indent, lines=True)),
        *needs(path, context, config),
        *for_tests,
    ]
    # it tells what holds for all channels, so not where one of them is somebody else's
    if decl.doc is None and len(missing) == len(METHODS):
        above = layout.insert_before_line(tree, path, decl.span.start)
        text = INTERFACE_DOC.filled({}, tree.indent(path, decl.span.start), lines=True)
        changes.append(Edit(path, above, text))
    return Rewrite(tuple(changes))


def _method_site(tree: Tree, path: str, span: Span, verdict: Verdict, message: str, name: str, shape: str) -> Finding:
    return site(tree, ID, path, span, verdict, message, channel=CHANNELS.get(name, "cri"), shape=shape)


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
        done: Verdict = another_signature(tree, path, decl) or Leave("the function is there already", done=True)
        if decl.body_span is not None and f".{decl.name}(" not in tree.text(path, decl.body_span):
            done = Manual(f"{decl.name} calls another method of the executor", f"call its {decl.name}")
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
        *FILE_TEMPLATES,
        *STATE_TEMPLATES,
        *RUNTIME_TEMPLATES,
    ),
    anchors=(
        Anchor("executor-interface"),
        Anchor("executor-forwarders"),
        Anchor(STATE),
        *(Anchor(name, optional=True) for name in STARTS.values()),
    ),
)
