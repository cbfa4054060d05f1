"""The methods of an executor that start the container runtime, or wait for it, and close its signal on success."""

from __future__ import annotations

from collections.abc import Iterator

from refactor_tool.codemod import Template
from refactor_tool.codemods._executor_state import FIELDS, ID, Executor, another_signature
from refactor_tool.codemods._k3s import CONFIG, CRI, EXECUTOR, UTIL, is_test, package, site
from refactor_tool.codemods._one_liners import OneLiner, lines_beside, one_liners
from refactor_tool.codemods._shapes import cannot_name, needs, receiver
from refactor_tool.gosrc import ast, layout
from refactor_tool.gosrc.tree import Tree, TypeRef
from refactor_tool.gosrc.walk import Node, children, walk
from refactor_tool.model import Change, Edit, Finding, Leave, Manual, Rewrite, Span, Verdict

SIGNAL = FIELDS["CRIReadyChan"]
#: The methods whose success means that the container runtime is ready, with their anchors in k3s' own executor.
STARTS = {"Containerd": "embedded-containerd", "Docker": "embedded-docker", "CRI": "embedded-cri"}

CONTAINERD_DOC = Template(f"{ID}/containerd_doc.go.j2")
INTERFACE_CHECK = Template(f"{ID}/interface_check.go.j2", ("type",))
CRI_METHOD = Template(
    f"{ID}/cri.go.j2", ("config", "context", "cri", "is_started_elsewhere", "no_wait", "receiver", "type")
)
CRI_AT_ONCE = Template(f"{ID}/cri_at_once.go.j2", ("config", "context", "is_double", "receiver", "type"))
RUNTIME_TEMPLATES = (CONTAINERD_DOC, INTERFACE_CHECK, CRI_METHOD, CRI_AT_ONCE)


def starts(executor: Executor) -> Iterator[Finding]:
    """Yield the methods that start the container runtime, or wait for it."""
    for path, method in executor.methods:
        if method.name not in STARTS:
            continue
        verdict: Verdict = Leave("reports its success already, or in a way of its own", done=True)
        if not executor.has("CRIReadyChan") or _is_silent(executor, path, method):
            verdict = _reporting(executor, path, executor.tree.function(path, method))
        verdict = another_signature(executor.tree, path, method) or verdict
        message = f"let the success of {method.name} close {SIGNAL}"
        anchor = executor.anchor(STARTS[method.name])
        yield site(
            executor.tree, ID, path, method.span, verdict, message, channel="cri", shape="runtime-start", anchor=anchor
        )


def _is_silent(executor: Executor, path: str, method: ast.FuncDecl) -> bool:
    """Tell whether k3s' own executor has its signal, but a method that should close it does not speak of it."""
    tree = executor.tree
    ready = ast.PackageObject(package(tree, UTIL), "ReadySignal")
    own = (field for field in executor.struct.fields if any(name.name == SIGNAL for name in field.names))
    owns = any(tree.named_type(TypeRef(field.type, executor.path)) == ready for field in own)
    nodes = walk(tree.function(path, method))
    return owns and executor.is_embedded and not any(_is_signal(node) for node in nodes)


def _is_signal(node: Node) -> bool:
    return isinstance(node, ast.Selector) and node.name == SIGNAL


def _reports(value: ast.Expr) -> bool:
    """Tell whether a result goes through the signal already."""
    match value:
        case ast.Call(fun=ast.Selector(x=of, name="CloseIfNil")):
            return _is_signal(of)
        case _:
            return False


def _reporting(executor: Executor, path: str, method: ast.FuncDecl) -> Rewrite | Manual | Leave:
    """Close the signal wherever a method returns nil: put each error that it returns through the signal.

    A guard that returns the error it has just tested needs none.
    """
    tree = executor.tree
    instruction = f"return the error of {method.name} through CloseIfNil of {SIGNAL}, so that success closes it"
    match method.results:
        case (ast.Param(names=names, type=ast.Ident(name="error")),) if len(names) < 2:
            pass
        case _:
            return Manual(f"{method.title} does not return an error alone", instruction)
    own = receiver(tree, path, method, method.body.span if method.body is not None else method.span)
    if isinstance(own, Manual):
        return own
    if method.body is not None and "\n" not in tree.text(path, method.body.span):
        return _reporting_in_one_line(executor, path, method)
    changes: list[Change] = [*own[1]]
    guarded = {stmt.span for node in walk(method) if isinstance(node, ast.If) for stmt in _passes_on(tree, path, node)}
    for stmt in _own_statements(method):
        match stmt:
            case ast.Return(values=(value,)) if stmt.span not in guarded and not _reports(value):
                start, end = Span(value.span.start, value.span.start), Span(value.span.end, value.span.end)
                changes += (Edit(path, start, f"{own[0]}.{SIGNAL}.CloseIfNil(".encode()), Edit(path, end, b")"))
            case ast.Return(values=()):
                return Manual(f"{method.title} has a return without its value", instruction)
            case _:
                pass
    if not changes:
        return Leave("reports its success already", done=True)
    return Rewrite((*changes, *_containerd_doc(executor, path, method)))


def _one_liner(executor: Executor, path: str, method: ast.FuncDecl) -> tuple[tuple[Change, ...], str] | Manual:
    """Return the new body of a start method `{ return x }`, and the changes that name its receiver."""
    tree = executor.tree
    instruction = f"let it close {SIGNAL} where it returns nil"
    body = tree.function(path, method).body
    own = receiver(tree, path, method, method.span if body is None else body.span)
    if isinstance(own, Manual):
        return own
    match body:
        case ast.Block(stmts=(ast.Return(values=(value,)),)) if _reports(value):
            return own[1], tree.text(path, body.span)
        case ast.Block(stmts=(ast.Return(values=(value,)),)) if not tree.comments_in(path, body.span):
            return own[1], f"{{ return {own[0]}.{SIGNAL}.CloseIfNil({tree.text(path, value.span)}) }}"
        case _:
            return Manual(f"{method.title} has more than a return on its line", instruction)


def _reporting_in_one_line(executor: Executor, path: str, method: ast.FuncDecl) -> Rewrite | Manual | Leave:
    """Do the same for a method on one line, with the functions on the lines beside it: to gofmt these are columns."""
    tree = executor.tree
    changes: list[Change] = []
    laid_out: list[OneLiner] = []
    for decl in lines_beside(tree, path, method):
        is_start = decl.receiver_type == executor.type and decl.name in STARTS
        new = _one_liner(executor, path, decl) if is_start else ((), None)
        if isinstance(new, Manual):
            return new
        changes += new[0]
        grown = sum(len(edit.text) for edit in new[0] if isinstance(edit, Edit) and isinstance(edit.text, bytes))
        laid_out.append(OneLiner(decl, grown, new[1]))
    changes += one_liners(tree, path, laid_out)
    if not changes:
        return Leave("reports its success already", done=True)
    return Rewrite((*changes, *_containerd_doc(executor, path, method)))


def _containerd_doc(executor: Executor, path: str, method: ast.FuncDecl) -> tuple[Change, ...]:
    """Say of k3s' own `Containerd` what its success means, as the comment in the agent did."""
    if method.name != "Containerd" or method.doc is not None or not executor.is_embedded:
        return ()
    return (Edit(path, layout.insert_before_line(executor.tree, path, method.span.start), CONTAINERD_DOC.filled({})),)


def _own_statements(node: Node) -> Iterator[Node]:
    """Yield all below a node, but nothing of functions in it."""
    for child in children(node):
        if not isinstance(child, ast.FuncLit):
            yield child
            yield from _own_statements(child)


def _passes_on(tree: Tree, path: str, guard: ast.If) -> tuple[ast.Stmt, ...]:
    """Return the last statement of `if err != nil { …; return err }`."""
    match guard:
        case ast.If(
            cond=ast.Binary(op="!=", x=ast.Ident(name=tested), y=nil),
            then=ast.Block(stmts=(*_, ast.Return(values=(ast.Ident(name=returned),)) as last)),
        ) if tested == returned and tree.text(path, nil.span) == "nil":
            return (last,)
        case _:
            return ()


def missing_cri(executor: Executor) -> Iterator[Finding]:
    """Yield the place where the method for a runtime that the executor does not start is missing."""
    if executor.has("CRI"):
        return
    tree = executor.tree
    home, after = executor.after
    verdict = _cri_method(executor, home, after)
    message = f"let {executor.type} tell when a container runtime is ready that it does not start"
    anchor = executor.anchor(STARTS["CRI"])
    yield site(tree, ID, home, after.span, verdict, message, channel="cri", shape="executor-cri", anchor=anchor)


def _cri_method(executor: Executor, path: str, after: ast.FuncDecl) -> Rewrite | Manual:
    tree = executor.tree
    instruction = (
        f"give {executor.type} a method CRI(ctx, node) that closes {SIGNAL} once the runtime at the node's"
        " ContainerRuntimeEndpoint answers, or at once where there is nothing to wait for"
    )
    last = lines_beside(tree, path, after)[-1:] or (after,)
    place = layout.insert_after_line(tree, path, last[0].span.end - 1)
    context = tree.qualify(path, "context", "context", place.start)
    config = tree.qualify(path, package(tree, CONFIG), "daemonconfig", place.start)
    if context is None or config is None:
        return cannot_name(CONFIG, f"the method CRI of {executor.type}")
    values = {"context": context.prefix, "config": config.prefix, "receiver": executor.receiver, "type": executor.type}
    # before 2024-02-21 the agent starts the runtime itself, and calls CRI after that
    elsewhere = [
        condition
        for start, condition in (("Docker", "cfg.Docker"), ("Containerd", 'cfg.ContainerRuntimeEndpoint == ""'))
        if not executor.has(start)
    ]
    if is_test(path) or (len(elsewhere) == 2 and not waits_for_runtimes(tree)):
        values["is_double"] = "yes" if is_test(path) else ""
        at_once = Edit(path, place, CRI_AT_ONCE.filled(values))
        return Rewrite((at_once, *needs(path, context, config), *_interface_check(executor, path)))
    cri = tree.qualify(path, package(tree, CRI), "cri", place.start)
    if cri is None:
        return cannot_name(CRI, f"the method CRI of {executor.type}, which calls WaitForService")
    if not _is_known_wait(tree):
        return Manual(f"{CRI} has no WaitForService that takes a context, an address and a name", instruction)
    fields = ["ContainerRuntimeEndpoint"] + ([] if executor.has("Docker") else ["Docker"])
    unknown = [name for name in fields if tree.member(package(tree, CONFIG), "Node", name) is None]
    if unknown:
        return Manual(f"the Node of {CONFIG} has no field {unknown[0]}", instruction)
    values |= {
        "cri": cri.prefix,
        "is_started_elsewhere": "yes" if elsewhere else "",
        "no_wait": " || ".join([*elsewhere, 'cfg.ContainerRuntimeEndpoint == "/dev/null"']),
    }
    waiting = Edit(path, place, CRI_METHOD.filled(values))
    return Rewrite((waiting, *needs(path, context, config, cri), *_interface_check(executor, path)))


def _interface_check(executor: Executor, path: str) -> tuple[Change, ...]:
    """Let the compiler hold k3s' own executor against the interface, where it does not yet."""
    if not executor.is_embedded or _is_checked(executor):
        return ()
    tree = executor.tree
    first = next(decl for decl in tree.decls(path) if isinstance(decl, ast.FuncDecl))
    at = layout.insert_before_line(tree, path, first.doc.start if first.doc is not None else first.span.start)
    return (Edit(path, at, INTERFACE_CHECK.filled({"type": executor.type})),)


def waits_for_runtimes(tree: Tree) -> bool:
    """Tell whether the tree can wait for a container runtime at all, which it cannot before 2023-01-27 (0d4caf4e2)."""
    return bool(tree.package_files(package(tree, CRI)))


def _is_known_wait(tree: Tree) -> bool:
    """Tell whether the wait for a runtime takes a context, an address and a name, and returns an error."""
    return any(
        [tree.text(path, param.type.span) for param in decl.params for _ in param.names][1:] == ["string", "string"]
        and [tree.text(path, result.type.span) for result in decl.results] == ["error"]
        for path, decl in tree.functions(package(tree, CRI), "WaitForService")
    )


def _is_checked(executor: Executor) -> bool:
    """Tell whether the package says `var _ Executor = …` of the type."""
    tree = executor.tree
    own = ast.PackageObject(executor.package, executor.type)
    return any(
        spec.type is not None
        and tree.named_type(TypeRef(spec.type, path)) == ast.PackageObject(package(tree, EXECUTOR), "Executor")
        and any(tree.named_type(tree.type_of(path, value)) == own for value in spec.values)
        for path, _, spec in tree.variables(executor.package, "_")
    )
