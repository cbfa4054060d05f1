"""Give the executor's ETCD a function that tests the datastore, wherever its signature is written or called."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from refactor_tool.codemod import Template
from refactor_tool.codemods import _shapes
from refactor_tool.codemods._etcd_embedded import embedded
from refactor_tool.codemods._etcd_sites import appended, finding, is_nil, top_of
from refactor_tool.codemods._k3s import ETCD, EXECUTOR, declares, package
from refactor_tool.codemods._signatures import demands
from refactor_tool.gosrc import ast
from refactor_tool.gosrc.tree import Occurrence, Tree, TypeRef
from refactor_tool.gosrc.walk import walk
from refactor_tool.model import Change, Edit, Finding, Leave, Manual, Rewrite, Span, Verdict
from refactor_tool.record import record

TEST_FUNC = Template("etcd-ready/test_func.go.j2", ("context",))

#: The functions that start etcd.
_STARTS = {"(*ETCD).cluster": "etcd-cluster", "(*ETCD).StartEmbeddedTemporary": "etcd-temporary"}
_DONE = "ETCD is given a test already"


def of_start(tree: Tree) -> Iterator[Finding]:
    """Yield what becomes of TestFunc, and of ETCD: interface, forwarding function, implementers and callers."""
    executor = package(tree, EXECUTOR)
    found = tree.interface(executor, "Executor")
    method = next((each for each in found[2].methods if each.name == "ETCD"), None) if found is not None else None
    if found is None or method is None:
        return
    path, declared, _ = found
    arity = sum(max(1, len(param.names)) for param in method.params)
    verdict = _Start(tree, executor, arity + 1).signature(path, method.params, method.params_span)
    start = (
        _Start(tree, executor, arity, done=True) if isinstance(verdict, Leave) else _Start(tree, executor, arity + 1)
    )
    yield _test_func(tree, path, declared)
    yield finding(tree, path, method.span, verdict, "is given a test", "interface", "etcd-interface")
    own: list[tuple[str, Span]] = []
    for path, decl in tree.functions(executor, "ETCD"):
        own.append((path, decl.span))
        yield finding(
            tree, path, decl.span, start.delegating(path, decl), "hands the test on", "forwarder", "etcd-forwarder"
        )
    for owner in tree.implementers(executor, "Executor"):
        for path, decl in (item for item in owner.methods if item[1].name == "ETCD"):
            own.append((path, decl.span))
            yield start.implementer(path, decl, owner)
    for path, name, asked in demands(tree, "ETCD"):
        if isinstance(start.signature(path, asked.params, asked.params_span), Rewrite):
            reason = f"{name or 'an interface without a name'} asks for ETCD without its test"
            lost = Manual(reason, "let its ETCD take a *ETCDConfig, and a TestFunc at the end")
            yield finding(tree, path, asked.span, lost, "is given a test", "demand")
    for use in start.uses():
        if not any(path == use.path and span.contains(use.span) for path, span in own):
            yield start.call(use)


def _test_func(tree: Tree, path: str, decl: ast.TypeDecl) -> Finding:
    """Declare TestFunc in front of the interface."""
    message = "declares the function that tells if a component is ready"
    for where, known in tree.types(package(tree, EXECUTOR), "TestFunc"):
        verdict: Verdict = Leave("TestFunc is declared already", done=True)
        if not _is_test(tree, where, known.type):
            verdict = Manual("TestFunc is something else in the executor's package", "rename it")
        return finding(tree, where, known.name_span, verdict, message, "type", "test-func")
    at = top_of(tree, path, decl)
    context = tree.qualify(path, "context", "context", at)
    if declares(tree, package(tree, EXECUTOR), "TestFunc"):
        verdict = Manual("TestFunc is something else in the executor's package", "rename it")
    elif context is None:
        verdict = _shapes.cannot_name("context", "type TestFunc func(context.Context) error")
    else:
        text = TEST_FUNC.filled({"context": context.prefix})
        verdict = Rewrite((Edit(path, Span(at, at), text), *_shapes.needs(path, context)))
    return finding(tree, path, decl.name_span, verdict, message, "type", "test-func")


def _is_test(tree: Tree, path: str, type_: ast.Expr) -> bool:
    """Tell whether a type is a function that takes a context, and later more (2026), and returns an error."""
    match type_:
        case ast.FuncType(params=(first, *_), results=(ast.Param(type=ast.Ident(name="error")),)):
            return tree.named_type(TypeRef(first.type, path)) == _shapes.CONTEXT
        case _:
            return False


@record
class _Start:
    """`executor` is the package of the interface, `arity` how many arguments ETCD takes with its test.

    `done` tells whether the interface's ETCD is given a test already.
    """

    tree: Tree
    executor: str
    arity: int
    done: bool = False

    # --- signatures ---------------------------------------------------------------------------------

    def signature(self, path: str, params: Sequence[ast.Param], inside: Span) -> Verdict:
        """Make the configuration a pointer and add the test, where they are not yet."""
        config = self._typed(path, params, "ETCDConfig")
        if params and params[-1].variadic and self._typed(path, params, "TestFunc") is None:
            return _variadic(self.tree, path, inside)
        if config is None:
            if self.done:
                return Leave("takes whatever ETCD takes", done=True)
            line = self.tree.line_text(path, inside.start)
            return Manual(f"no parameter of ETCD is an ETCDConfig: {line!r}", "give it a *ETCDConfig and a TestFunc")
        edits: list[Change] = []
        if not isinstance(config.type, ast.Unary):
            edits.append(Edit(path, Span(config.type.span.start, config.type.span.start), b"*"))
        if self._typed(path, params, "TestFunc") is None:
            prefix = self.tree.text(path, config.type.span).lstrip("*").removesuffix("ETCDConfig")
            names = {ident.name for param in params for ident in param.names}
            name = "test " if names - {"_"} else "_ " if names else ""
            edits.append(appended(path, [param.span for param in params], inside, f"{name}{prefix}TestFunc"))
        return Rewrite(tuple(edits)) if edits else Leave(_DONE, done=True)

    def _typed(self, path: str, params: Sequence[ast.Param], name: str) -> ast.Param | None:
        """Return the parameter of a type of the executor's package, pointer or not, declared yet or not."""
        wanted = ast.PackageObject(self.executor, name)
        return next((each for each in params if self._named(path, each.type) in (wanted, name)), None)

    def _named(self, path: str, type_: ast.Expr) -> ast.PackageObject | str | None:
        match type_:
            case ast.Ident(name=name) if self.tree.package_of(path) == self.executor:
                return name
            case ast.Selector(x=ast.Ident() as prefix, name=name) if isinstance(
                found := self.tree.resolve(path, prefix), ast.PackageName
            ):
                return name if found.package == self.executor else None
            case _:
                return self.tree.named_type(TypeRef(type_, path))

    # --- declarations -------------------------------------------------------------------------------

    def implementer(self, path: str, decl: ast.FuncDecl, owner: ast.Implementer) -> Finding:
        tree = self.tree
        if owner.type != "Embedded":
            return finding(tree, path, decl.span, self.delegating(path, decl), "is given a test", "implementer")
        verdict = self.signature(path, decl.params, decl.params_span)
        if isinstance(verdict, Rewrite):
            stray = self._by_value(path, decl, ())
            config = self._typed(path, decl.params, "ETCDConfig")
            verdict = embedded(tree, path, decl, owner, verdict.changes, config, stray)
        message = "tests etcd until it is ready, and closes the channel then"
        return finding(tree, path, decl.signature, verdict, message, "embedded", "etcd-embedded")

    def delegating(self, path: str, decl: ast.FuncDecl) -> Verdict:
        """Change a function that hands its arguments on to the ETCD of another executor, or starts nothing."""
        tree = self.tree
        verdict = self.signature(path, decl.params, decl.params_span)
        if not isinstance(verdict, Rewrite):
            return verdict
        if _shapes.names_in(tree, path, decl.span, "test"):
            return Manual(f"{decl.title} has something called test already", "rename it")
        whole = tree.function(path, decl)
        calls = [node for node in walk(whole) if isinstance(node, ast.Call) and self._is_etcd(path, node)]
        stray = self._by_value(path, decl, calls)
        if stray is not None:
            line = tree.line_text(path, stray.start)
            return Manual(f"{decl.title} uses the configuration of etcd as a value: {line!r}", "use it as a pointer")
        if not calls and not _starts_nothing(whole):
            wanted = "let it call the test until it succeeds, and close the channel of ETCDReadyChan then and only then"
            return Manual(f"{decl.title} starts etcd in a way of its own", wanted)
        read = self._reads(path, decl)
        if read is not None:
            line = tree.line_text(path, read.start)
            reason = f"{decl.title} reads the configuration of etcd, and from now on a server without etcd has none"
            return Manual(f"{reason}: {line!r}", "take a pointer to it, and do that only where it is not nil")
        added = (self._with_test(path, call, "nil" if self._is_fresh(path, call) else "test") for call in calls)
        return Rewrite((*verdict.changes, *added))

    def _with_test(self, path: str, call: ast.Call, test: str) -> Edit:
        return appended(path, [arg.span for arg in call.args], call.args_span, test)

    def _is_etcd(self, path: str, call: ast.Call) -> bool:
        match self.tree.calls(path, call):
            case ast.FieldObject(name="ETCD") | ast.PackageObject(name="ETCD"):
                return True
            case _:
                return False

    def _is_fresh(self, path: str, call: ast.Call) -> bool:
        """Tell whether a call starts etcd with an embedded executor of its own, which nobody could ask."""
        if not isinstance(call.fun, ast.Selector):
            return False
        x = call.fun.x
        if self.tree.named_type(self.tree.type_of(path, x)) != ast.PackageObject(self.executor, "Embedded"):
            return False
        while isinstance(x, ast.Paren | ast.Unary):
            x = x.x
        if isinstance(x, ast.Ident):
            local = self.tree.resolve(path, x)
            return isinstance(local, ast.LocalObject) and local.kind == "var"
        return isinstance(x, ast.Composite)

    def _by_value(self, path: str, decl: ast.FuncDecl, calls: Sequence[ast.Call]) -> Span | None:
        """Return where a function uses its configuration other than through a field or as an argument of `calls`."""
        handed = {arg.span for call in calls for arg in call.args}
        uses = (span for span, through_field in self._config_uses(path, decl) if not through_field)
        return next((span for span in uses if span not in handed), None)

    def _reads(self, path: str, decl: ast.FuncDecl) -> Span | None:
        """Return where a function reads a field of its configuration, or sets one."""
        return next((span for span, through_field in self._config_uses(path, decl) if through_field), None)

    def _config_uses(self, path: str, decl: ast.FuncDecl) -> Iterator[tuple[Span, bool]]:
        """Yield where a function names the configuration that it is given by value, and whether that is for a field."""
        param = self._typed(path, decl.params, "ETCDConfig")
        if param is None or isinstance(param.type, ast.Unary) or not param.names or decl.body_span is None:
            return
        for use in _shapes.names_in(self.tree, path, decl.body_span, param.names[0].name):
            if isinstance(use.object, ast.LocalObject) and use.object.at == param.names[0].span:
                yield use.span, self.tree.data(path)[use.span.end : use.span.end + 1] == b"."

    # --- calls --------------------------------------------------------------------------------------

    def uses(self) -> Iterator[Occurrence]:
        """Yield where the tree calls ETCD, or uses it as a value."""
        targets: list[ast.PackageObject | ast.FieldObject] = [
            ast.PackageObject(self.executor, "ETCD"),
            ast.FieldObject(self.executor, "Executor", "ETCD"),
        ]
        for owner in self.tree.implementers(self.executor, "Executor"):
            targets.append(ast.FieldObject(owner.package, owner.type, "ETCD"))
        yield from _shapes.uses_of(self.tree, *targets)

    def call(self, use: Occurrence) -> Finding:
        """Give a call the address of its configuration, and the test that its function is given."""
        tree, path = self.tree, use.path
        call, decl = tree.call_at(path, use.qualified), tree.function_at(path, use.span.start)
        message = "starts etcd with a test"
        if call is None or decl is None:
            line = tree.line_text(path, use.span.start)
            value: Verdict = Manual(f"ETCD is used as a value: {line!r}", "use a function with the new parameters")
            if self.done:
                value = Leave("has the type that ETCD has now", done=True)
            return finding(tree, path, use.qualified, value, message, "function-value")
        verdict, anchor = self._started(path, decl, call), _STARTS.get(decl.title, "")
        return finding(tree, path, call.span, verdict, message, "call", anchor)

    def _started(self, path: str, decl: ast.FuncDecl, call: ast.Call) -> Verdict:
        edits = self._configured(path, call)
        if decl.title == "(*ETCD).cluster" and len(call.args) == self.arity and is_nil(call.args[-1]):
            return Manual("the etcd of this server is started without a test, and never ready", "pass its test on")
        if edits == ():
            return Leave(_DONE, done=True)
        if isinstance(edits, Manual):
            return edits
        if len(call.args) == self.arity:
            return Rewrite(edits)
        if self._is_fresh(path, call):
            return Rewrite((*edits, self._with_test(path, call, "nil")))
        if decl.receiver_type == "ETCD" and self.tree.package_of(path) == package(self.tree, ETCD):
            return self._handed_on(path, decl, call, edits)
        line = self.tree.line_text(path, call.span.start)
        wanted = "pass a pointer to the configuration, and a function that returns nil once etcd is ready"
        return Manual(f"it is not known how to test the etcd that is started here: {line!r}", wanted)

    def _configured(self, path: str, call: ast.Call) -> tuple[Change, ...] | Manual:
        """Return the edits that make the configuration a pointer; () where the call has that and its test already."""
        match next((arg for arg in call.args if self._is_config(path, arg)), None):
            case ast.Composite(span=span):
                return (Edit(path, Span(span.start, span.start), b"&"),)
            case _ if len(call.args) == self.arity:
                return ()
            case ast.Ident(span=span):
                return (Edit(path, Span(span.start, span.start), b"&"),)
            case ast.Unary(op="*", span=span, x=x):
                return (Edit(path, Span(span.start, x.span.start), b""),)
            case _:
                line = self.tree.line_text(path, call.span.start)
                return Manual(f"the configuration of etcd is not known: {line!r}", "pass a pointer to it, and a test")

    def _is_config(self, path: str, arg: ast.Expr) -> bool:
        return self.tree.named_type(self.tree.type_of(path, arg)) == ast.PackageObject(self.executor, "ETCDConfig")

    def _handed_on(self, path: str, decl: ast.FuncDecl, call: ast.Call, edits: tuple[Change, ...]) -> Verdict:
        """Hand on a test that the function is given from now on."""
        if _shapes.names_in(self.tree, path, decl.span, "test"):
            return Manual(f"{decl.title} has something called test already", "rename it")
        if decl.params and decl.params[-1].variadic:
            return _variadic(self.tree, path, decl.params_span)
        executor = self.tree.qualify(path, self.executor, "executor", decl.span.start)
        if executor is None:
            return _shapes.cannot_name(EXECUTOR, "executor.TestFunc")
        params = [param.span for param in decl.params]
        parameter = appended(path, params, decl.params_span, f"test {executor.prefix}TestFunc")
        return Rewrite((parameter, *edits, self._with_test(path, call, "test"), *_shapes.needs(path, executor)))


def _variadic(tree: Tree, path: str, inside: Span) -> Manual:
    text = tree.text(path, inside)
    return Manual(f"no parameter can follow the last of {text!r}", "make it a slice, and plan again")


def _starts_nothing(decl: ast.FuncDecl) -> bool:
    """Tell whether a function does nothing, or returns nothing but a name, such as nil or an error."""
    match decl.body:
        case None | ast.Block(stmts=()):
            return True
        case ast.Block(stmts=(ast.Return(values=values),)):
            return all(isinstance(value, ast.Ident) for value in values)
        case _:
            return False
