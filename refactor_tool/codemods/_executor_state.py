"""The types that implement the executor's interface, and the signals and accessors that each of them gets.

Any type that implements the interface, or comes close, is treated alike, as the methods that the interface gains would
be missing otherwise. What cannot be derived for one of them is a person's to write, and stops the step.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

from refactor_tool.codemod import Template
from refactor_tool.codemods._k3s import CONFIG, EXECUTOR, UTIL, is_test, package, site
from refactor_tool.codemods._literals import unkeyed
from refactor_tool.codemods._shapes import CONTEXT, cannot_name, names_in, needs, receiver_name
from refactor_tool.gosrc import ast, layout
from refactor_tool.gosrc.tree import Tree, TypeRef
from refactor_tool.gosrc.walk import walk
from refactor_tool.model import Change, Channel, Edit, Finding, Leave, Manual, Rewrite, Span, Verdict
from refactor_tool.record import record

ID = "executor-ready-channels"
#: The accessors that the interface gains, and the field that an executor keeps each signal in.
FIELDS = {"APIServerReadyChan": "apiServerReady", "ETCDReadyChan": "etcdReady", "CRIReadyChan": "criReady"}
CHANNELS: dict[str, Channel] = {"APIServerReadyChan": "apiserver", "ETCDReadyChan": "etcd", "CRIReadyChan": "cri"}
STATE = "embedded-state"
#: The methods that close a channel of k3s' own executor.
_CLOSING = frozenset(("Bootstrap", "CRI", "Containerd", "Docker", "ETCD"))
#: The value behind a pointer, where one is read.
_VALUE_OF = re.compile(
    rb"(?:[=,{:]|\breturn|\w\(|(?<!\w)\((?!\*\w+\)\s*\.))[ \t]*\*(\w+)(?![\w.(\[{])(?![ \t]*(?:[-+*/|&^%]|<<|>>)?=)"
)
#: K3s' own executor.
EMBEDDED = "Embedded"

ACCESSORS = Template(f"{ID}/accessors.go.j2", ("accessors", "receiver", "type"))
STRUCT_DOC = Template(f"{ID}/embedded_doc.go.j2", ("type",))
STATE_TEMPLATES = (ACCESSORS, STRUCT_DOC)


@record
class Executor:
    """A type that implements the interface: where it is declared, and all its methods in every build variant."""

    tree: Tree
    package: str
    type: str
    path: str
    decl: ast.TypeDecl
    struct: ast.StructType
    methods: tuple[tuple[str, ast.FuncDecl], ...]

    @property
    def lacking(self) -> tuple[str, ...]:
        """The accessors that it does not have."""
        return tuple(name for name in FIELDS if not self.has(name))

    @property
    def receiver(self) -> str:
        return receiver_name(self.tree, self.package, self.type)

    @property
    def is_embedded(self) -> bool:
        return self.type == EMBEDDED

    @property
    def home(self) -> str:
        """The file of the method after which `CRI` goes: of `Docker`, or with most of the others."""
        return self.after[0]

    @property
    def after(self) -> tuple[str, ast.FuncDecl]:
        starts = [found for found in self.methods if found[1].name == "Docker"]
        boot = [found for found in self.methods if found[1].name == "Bootstrap"]
        home = (starts or boot or self.methods)[-1][0]
        return (starts or [found for found in self.methods if found[0] == home])[-1]

    def has(self, name: str) -> bool:
        return any(method.name == name for _, method in self.methods)

    def anchor(self, name: str) -> str:
        """Return the anchor for k3s' own executor, which is the only one that must be there."""
        return name if self.is_embedded else ""


@record
class Unchanged:
    """An implementer that is not changed, and why."""

    type: str
    path: str
    span: Span
    verdict: Leave | Manual


Implementer: TypeAlias = Executor | Unchanged


def implementers(tree: Tree) -> tuple[Implementer, ...]:
    """Return every type that implements the interface, or comes close."""
    found = tree.implementers(package(tree, EXECUTOR), "Executor")
    owners = {(implementer.package, implementer.type) for implementer in found}
    return tuple(_implementer(tree, implementer, owners) for implementer in found)


def another_signature(tree: Tree, path: str, method: ast.FuncDecl | ast.Method) -> Manual | None:
    """Refuse a method or function of a name that the interface gains, where it takes or returns something else.

    One that is generated follows the interface.
    """
    params = [param.type for param in method.params for _ in param.names or (None,)]
    match method.results:
        case (ast.Param(type=ast.ChanType(direction="recv", element=ast.StructType(fields=()))),) if not params:
            fits = method.name in FIELDS
        case (ast.Param(type=ast.Ident(name="error")),) if len(params) == 2:
            named = [tree.named_type(TypeRef(each, path)) for each in params]
            node = ast.PackageObject(package(tree, CONFIG), "Node")
            fits = method.name == "CRI" and named == [CONTEXT, node] and isinstance(params[1], ast.Unary)
        case _:
            fits = False
    if fits or method.name not in (*FIELDS, "CRI") or tree.file(path).generated:
        return None
    span = method.signature if isinstance(method, ast.FuncDecl) else method.span
    wanted = f"{method.name}() <-chan struct{{}}" if method.name in FIELDS else "CRI(context.Context, *Node) error"
    reason = f"{tree.text(path, span)!r} takes the name of {wanted}, which the executor gets"
    return Manual(reason, "rename it wherever it is declared and called")


def _implementer(tree: Tree, implementer: ast.Implementer, owners: set[tuple[str, str]]) -> Implementer:
    methods = tree.methods(implementer.package, implementer.type)
    declared = tree.types(implementer.package, implementer.type)
    found = _executor(tree, implementer, methods, declared, owners)
    if isinstance(found, Executor):
        return found
    others = ((where, method, another_signature(tree, where, method)) for where, method in methods)
    for where, method, other in others if isinstance(found, Leave) else ():
        if other is not None:
            return Unchanged(implementer.type, where, method.span, other)
    path, decl = (declared or methods)[0]
    return Unchanged(implementer.type, path, decl.span, found)


def _executor(
    tree: Tree,
    implementer: ast.Implementer,
    methods: tuple[tuple[str, ast.FuncDecl], ...],
    declared: tuple[tuple[str, ast.TypeDecl], ...],
    owners: set[tuple[str, str]],
) -> Executor | Leave | Manual:
    """Return an implementer that is done or can be changed, else why there is nothing to do or no way known."""
    name = implementer.type
    instruction = (
        f"give {name} the methods {', '.join(FIELDS)} and CRI: keep a util.ReadySignal for each channel, and close it"
        " when its component has started"
    )
    if len(declared) != 1 or not isinstance(declared[0][1].type, ast.StructType):
        return Manual(f"{name} is not one struct for all builds", instruction)
    path, decl = declared[0]
    struct = decl.type
    assert isinstance(struct, ast.StructType)
    executor = Executor(tree, implementer.package, name, path, decl, struct, methods)
    if not executor.lacking and executor.has("CRI"):
        return executor
    promoted = _promoted_from(tree, implementer, owners)
    if promoted:
        alone = next((method.title for where, method in methods if _starts_alone(tree, where, method)), None)
        if alone is not None:
            return Manual(
                f"{alone} does not hand on to {promoted}, whose channel nothing closes then",
                f"call the method of {promoted} in it, or {instruction}",
            )
        return Leave(f"{name} takes the methods that it does not declare from {promoted}")
    if tree.file(path).generated:
        return Manual(f"{name} is generated", f"run its generator again; {instruction}")
    by_value = [method.title for _, method in methods if not _is_pointer(method)]
    if by_value:
        receivers = f"give pointer receivers to {', '.join(by_value)}, make the executor as &{name}{{}}, and plan again"
        return Manual(f"{by_value[0]} works on a copy, and a signal must not be copied", receivers)
    taken = [
        FIELDS[accessor] for accessor in executor.lacking if tree.member(implementer.package, name, FIELDS[accessor])
    ]
    if taken:
        return Manual(f"{name} has {taken[0]} already, but not its accessor", instruction)
    if not tree.text(path, decl.span).startswith("type ") or (
        struct.fields and "\n" not in tree.text(path, struct.span)
    ):
        return Manual(f"{name} is declared in a group or on one line", f"declare it by itself; {instruction}")
    return executor


def _promoted_from(tree: Tree, implementer: ast.Implementer, owners: set[tuple[str, str]]) -> str:
    """Return the executor or interface that a struct embeds, itself or through another, "" where it embeds none."""
    known = {*owners, (package(tree, EXECUTOR), "Executor")}
    embedded = tree.embedded(implementer.package, implementer.type)
    return next((found.name for found in embedded if (found.package, found.name) in known), "")


def _starts_alone(tree: Tree, path: str, method: ast.FuncDecl) -> bool:
    """Tell whether a method that closes a channel where it succeeds is declared without a call of the one below it."""
    if method.name not in _CLOSING or is_test(path):
        return False
    whole = walk(tree.function(path, method))
    return not any(isinstance(node, ast.Selector) and node.name == method.name for node in whole)


def _is_pointer(method: ast.FuncDecl) -> bool:
    return method.receiver is not None and isinstance(method.receiver.type, ast.Unary)


# --- the signals ------------------------------------------------------------------------------------


def state(executor: Executor) -> Iterator[Finding]:
    """Yield the struct, and the accessors that are there."""
    tree, path, decl = executor.tree, executor.path, executor.decl
    verdict: Verdict = Leave("it has its readiness channels already", done=True)
    if executor.lacking:
        verdict = _with_signals(executor)
    span = Span(decl.doc.start if decl.doc is not None else decl.span.start, decl.span.end)
    message = f"let {executor.type} keep a signal for each component"
    yield site(
        tree, ID, path, span, verdict, message, channel="none", shape="executor-state", anchor=executor.anchor(STATE)
    )
    if isinstance(verdict, Rewrite):
        yield from _by_value(executor)
    for where, method in executor.methods:
        if method.name in FIELDS:
            other = another_signature(tree, where, method) or _gives_another(executor, where, method)
            done = other or Leave("gives out its channel already", done=True)
            yield site(
                tree,
                ID,
                where,
                method.span,
                done,
                f"keep {method.name}",
                channel=CHANNELS[method.name],
                shape="accessor",
            )


def _by_value(executor: Executor) -> Iterator[Finding]:
    """Yield the literals that do not fit the struct any more, and the copies of it that would copy its signals."""
    tree = executor.tree
    copies = (
        (path, place, Manual(f"{executor.type} is copied, and a signal must not be: {text!r}", "copy its fields alone"))
        for path, place, text in _copies(executor)
    )
    for path, place, by_hand in (*unkeyed(tree, executor.package, executor.type), *copies):
        message = f"let {executor.type} keep a signal for each component"
        yield site(tree, ID, path, place, by_hand, message, channel="none", shape="executor-value")


def _copies(executor: Executor) -> Iterator[tuple[str, Span, str]]:
    """Yield where its package takes the value behind a pointer to it, other than to reach a field or set it."""
    tree = executor.tree
    wanted = ast.PackageObject(executor.package, executor.type)
    for path in tree.package_files(executor.package):
        data = tree.data(path)
        for found in _VALUE_OF.finditer(data):
            at = Span(*found.span(1))
            decl = tree.function_at(path, at.start)
            inside = decl is not None and decl.body_span is not None and decl.body_span.contains(at)
            if inside and tree.named_type(tree.type_of_name(path, at.start, found[1].decode())) == wanted:
                yield path, Span(found.start(1) - 1, at.end), tree.line_text(path, at.start)


def _gives_another(executor: Executor, path: str, accessor: ast.FuncDecl) -> Manual | None:
    """Tell of an accessor that does not give out the signal which its type keeps for it."""
    tree, field = executor.tree, FIELDS[accessor.name]
    body = accessor.body_span
    if tree.member(executor.package, executor.type, field) is None or body is None:
        return None
    if any(name.object is not None for name in names_in(tree, path, body, field)):
        return None
    right = f"return {executor.receiver}.{field}.Chan()"
    return Manual(f"{accessor.title} gives out another channel than that of {field}", right)


def _with_signals(executor: Executor) -> Rewrite | Manual:
    tree, path, decl = executor.tree, executor.path, executor.decl
    util = tree.qualify(path, package(tree, UTIL), "util", decl.span.start)
    if util is None:
        return cannot_name(UTIL, "util.ReadySignal")
    fields = [(FIELDS[name], f"{util.prefix}ReadySignal") for name in executor.lacking]
    accessors = ACCESSORS.filled(
        {
            "accessors": " ".join(f"{name}={FIELDS[name]}" for name in executor.lacking),
            "receiver": executor.receiver,
            "type": executor.type,
        }
    )
    changes: list[Change] = [
        *layout.add_fields(tree, path, executor.struct, fields),
        Edit(path, layout.insert_after_line(tree, path, decl.span.end - 1), accessors),
        *needs(path, util),
    ]
    apart = all(where != path for where, method in executor.methods if method.name == "Bootstrap")
    if decl.doc is None and apart and not tree.file(path).constraint and executor.is_embedded:
        place = layout.insert_before_line(tree, path, decl.span.start)
        changes.append(Edit(path, place, STRUCT_DOC.filled({"type": executor.type})))
    return Rewrite(tuple(changes))
