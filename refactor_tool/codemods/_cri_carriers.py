"""What carries the container runtime's readiness before step 4: two fields, `NewRuntime`, and variables that feed them.

Everything is found by the identity of the two fields, whatever a branch calls what lies between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from refactor_tool.codemods import _shapes
from refactor_tool.codemods._k3s import AGENT, CMDS, CONFIG, CRI_FIELDS, EXECUTOR, package, site
from refactor_tool.gosrc import ast, layout
from refactor_tool.gosrc.tree import Occurrence, Tree
from refactor_tool.gosrc.walk import Node, functions_at, statement, trail, walk
from refactor_tool.model import Finding, Leave, Manual, Rewrite, Span, Verdict
from refactor_tool.record import record

ID = "cri-ready"
BY_HAND = "take the channel out by hand; executor.CRIReadyChan() is the only one left"
_FIELDS = re.compile(rb"\b(?:" + "|".join(CRI_FIELDS).encode() + rb")\b")


@record
class Carriers:
    """The fields that carry the channel: of the agent's flags, closed there, and of the control runtime, waited on."""

    tree: Tree
    agent: frozenset[ast.Object]
    runtime: frozenset[ast.Object]
    new_runtime: ast.PackageObject

    @classmethod
    def of(cls, tree: Tree) -> Carriers:
        config = package(tree, CONFIG)
        agent = (ast.FieldObject(package(tree, CMDS), "Agent", name) for name in CRI_FIELDS)
        runtime = (ast.FieldObject(config, "ControlRuntime", name) for name in CRI_FIELDS)
        return cls(tree, frozenset(agent), frozenset(runtime), ast.PackageObject(config, "NewRuntime"))

    def uses(self) -> Iterator[Occurrence]:
        """Yield the uses of the fields in code, and those of a field of that name whose owner is not known."""
        for path in self.tree.files_with(*(name.encode() for name in CRI_FIELDS)):
            for found in self.tree.occurrences(path, _FIELDS):
                if found.role not in ("declaration", "comment", "string") and (
                    self.holds(found.object) or isinstance(found.object, ast.UnknownObject)
                ):
                    yield found

    def holds(self, found: ast.Object | None) -> bool:
        return found in self.agent or found in self.runtime

    def is_field(self, path: str, expr: ast.Expr) -> bool:
        return isinstance(expr, ast.Selector) and self.holds(self.tree.resolve(path, expr))

    def takes(self, path: str, nodes: tuple[Node, ...]) -> bool:
        """Tell whether the argument or value at the end of a trail goes to `NewRuntime` or to one of the fields."""
        for node in reversed(nodes):
            match node:
                case ast.Call(fun=fun):
                    return self.tree.resolve(path, fun) == self.new_runtime
                case ast.Element(key=ast.Ident() as key):
                    return self.holds(self.tree.resolve(path, key))
                case _:
                    pass
        return False

    def may_drop(self, path: str, value: ast.Expr) -> bool:
        """Tell whether nothing is lost when a value is handed on no longer.

        That is so for what was made on the spot and for the fields; a variable of a function, or the parameter of
        `NewRuntime`, is judged by itself. Whatever else closes one of another kind would do so for nobody.
        """
        match value, self.tree.resolve(path, value):
            case ast.Ident(), ast.LocalObject(kind=kind):
                decl = self.tree.function_at(path, value.span.start)
                return kind == "var" or (decl is not None and decl.name == self.new_runtime.name)
            case ast.Ident(name=name), _:
                return name == "nil"
            case ast.Selector(), _:
                return self.is_field(path, value)
            case _:
                return is_pure(value)


def finding(tree: Tree, path: str, span: Span, verdict: Verdict, message: str, shape: str, anchor: str = "") -> Finding:
    """Return a finding of step 4."""
    return site(tree, ID, path, span, verdict, message, channel="cri", shape=shape, anchor=anchor)


def nodes_at(tree: Tree, path: str, span: Span) -> tuple[Node, ...]:
    """Return the nodes from a declaration down to a place in it."""
    root = _shapes.whole_function(tree, path, span) or tree.decl_at(path, span.start)
    return trail(root, span) if root is not None else ()


def is_pure(value: ast.Expr) -> bool:
    """Tell whether nothing is lost when an expression is not evaluated."""
    match value:
        case ast.Ident():
            return True
        case ast.Selector(x=x):
            return is_pure(x)
        case ast.Call(fun=ast.Ident(name="make"), args=(ast.ChanType(),)):
            return True
        case _:
            return False


# --- the fields -------------------------------------------------------------------------------------


def fields(carriers: Carriers, found: Iterable[Finding]) -> Iterator[Finding]:
    """Remove the field from each of the two structs, unless a use in `found` is left to do by hand."""
    tree = carriers.tree
    left = next((use for use in found if isinstance(use.verdict, Manual)), None)
    for folder, name, anchor in ((CMDS, "Agent", "agent-field"), (CONFIG, "ControlRuntime", "runtime-field")):
        for path, decl in tree.types(package(tree, folder), name):
            if not isinstance(decl.type, ast.StructType):
                continue
            field = next((f for f in decl.type.fields if any(n.name in CRI_FIELDS for n in f.names)), None)
            if field is None:
                done = Leave(f"{name} carries no readiness of the container runtime", done=True)
                yield finding(tree, path, decl.name_span, done, f"{name} carries no channel", "field", anchor)
                continue
            title = field.names[0].name
            if left is not None:
                line = tree.lines(left.path).position(left.span.start).line
                verdict: Verdict = Manual(f"{name}.{title} may still be needed at {left.path}:{line}", BY_HAND)
            elif len(field.names) > 1 or not isinstance(field.type, ast.ChanType):
                verdict = Manual(f"{tree.text(path, field.span)!r} is not one channel in a line of its own", BY_HAND)
            else:
                verdict = Rewrite(layout.remove_fields(tree, path, decl.type, (title,)))
            yield finding(tree, path, field.span, verdict, f"remove {title} from {name}", "field", anchor)


def key(carriers: Carriers, use: Occurrence) -> Finding:
    """Take a field's key out of a literal of its struct."""
    tree, path = carriers.tree, use.path
    literal = next(node for node in reversed(nodes_at(tree, path, use.span)) if isinstance(node, ast.Composite))
    index = next(at for at, element in enumerate(literal.elements) if element.span.contains(use.span))
    element = literal.elements[index]
    start = literal.type.span.end + 1 if literal.type is not None else literal.span.start + 1
    if not carriers.may_drop(path, element.value):
        what = tree.text(path, element.value.span)
        verdict: Verdict = Manual(f"{what!r} does more than name a channel", BY_HAND)
    elif layout.whole_lines(tree.data(path), element.span).contains(literal.span):
        spans = [each.span for each in literal.elements]
        verdict = _shapes.combined(_shapes.drop_item(tree, path, spans, index, Span(start, literal.span.end - 1)))
    elif tree.comments_in(path, layout.whole_lines(tree.data(path), element.span)):
        verdict = Manual(f"a comment stands beside {tree.text(path, element.span)!r}", BY_HAND)
    else:
        verdict = Rewrite(layout.remove_element(tree, path, literal, index))
    return finding(tree, path, element.span, verdict, f"no longer set {use.name}", "literal-key")


# --- NewRuntime -------------------------------------------------------------------------------------


def new_runtime(carriers: Carriers) -> Iterator[Finding]:
    """Drop the parameter of `NewRuntime`; the key that it is for is a use of the field like any other."""
    tree = carriers.tree
    for path, decl in tree.functions(carriers.new_runtime.package, carriers.new_runtime.name):
        match decl.params:
            case ():
                verdict: Verdict = Leave("NewRuntime takes no channel", done=True)
            case (ast.Param(names=(ident,), type=ast.ChanType(), span=span),) if _is_stored(carriers, path, ident):
                verdict = _shapes.combined(_shapes.drop_item(tree, path, [span], 0, decl.params_span))
            case _:
                what = tree.text(path, decl.params_span)
                verdict = Manual(f"NewRuntime({what}) does not take one channel that it only stores", BY_HAND)
        span = decl.span if isinstance(verdict, Manual) else decl.signature
        yield finding(tree, path, span, verdict, "take no channel", "signature", "new-runtime")


def _is_stored(carriers: Carriers, path: str, param: ast.Ident) -> bool:
    """Tell whether a parameter is used for nothing but one of the fields."""
    return all(
        found.span == param.span or carriers.takes(path, nodes_at(carriers.tree, path, found.span))
        for found in _occurrences(carriers.tree, path, ast.LocalObject(param.name, param.span, "param"))
    )


def _occurrences(tree: Tree, path: str, local: ast.LocalObject) -> tuple[Occurrence, ...]:
    name = re.compile(rb"\b" + re.escape(local.name.encode()) + rb"\b")
    return tuple(found for found in tree.occurrences(path, name) if found.object == local)


def call(carriers: Carriers, use: Occurrence) -> Finding:
    """Drop the argument of a call of `NewRuntime`."""
    tree, path = carriers.tree, use.path
    called = tree.call_at(path, use.qualified)
    message = "hand no channel to NewRuntime"
    if called is None:
        line = tree.line_text(path, use.span.start)
        return finding(
            tree, path, use.qualified, Manual(f"NewRuntime is used as a value: {line!r}", BY_HAND), message, "value"
        )
    match called.args:
        case ():
            verdict: Verdict = Leave("NewRuntime takes no channel here", done=True)
        case (value,) if carriers.may_drop(path, value):
            verdict = _shapes.combined(_shapes.drop_item(tree, path, [value.span], 0, called.args_span))
        case _:
            what = tree.text(path, called.args_span).strip()
            verdict = Manual(f"the argument {what!r} of NewRuntime cannot just be dropped", BY_HAND)
    return finding(tree, path, called.span, verdict, message, "call")


# --- variables that feed them -----------------------------------------------------------------------


@record
class Variable:
    """A variable of a function: the statements that go with it, by shape, and the uses of a field that they cover."""

    local: ast.LocalObject
    findings: tuple[Finding, ...]
    covers: frozenset[tuple[str, Span]]


def variables(carriers: Carriers, calls: Iterable[Occurrence], uses: Iterable[Occurrence]) -> tuple[Variable, ...]:
    """Return the variables that are handed to `NewRuntime` or to one of the fields, each once."""
    tree = carriers.tree
    values = (*_arguments(tree, calls), *_values(carriers, uses))
    named = ((path, tree.resolve(path, value)) for path, value in values if isinstance(value, ast.Ident))
    found = dict.fromkeys(
        (path, local) for path, local in named if isinstance(local, ast.LocalObject) and local.kind == "var"
    )
    return tuple(_variable(carriers, path, local) for path, local in found)


def _arguments(tree: Tree, calls: Iterable[Occurrence]) -> Iterator[tuple[str, ast.Expr]]:
    for use in calls:
        called = tree.call_at(use.path, use.qualified)
        yield from ((use.path, value) for value in (called.args if called is not None else ()))


def _values(carriers: Carriers, uses: Iterable[Occurrence]) -> Iterator[tuple[str, ast.Expr]]:
    for use in uses:
        nodes = nodes_at(carriers.tree, use.path, use.span)
        match use.role, statement(nodes):
            case "assignment", ast.Assign(lhs=(left,), op="=", rhs=(right,)) if carriers.is_field(use.path, left):
                yield use.path, right
            case "key", _:
                yield from ((use.path, node.value) for node in nodes[-3:] if isinstance(node, ast.Element))
            case _:
                pass


def _variable(carriers: Carriers, path: str, local: ast.LocalObject) -> Variable:
    """Work out what becomes of a variable: all its statements go, or none where it has another use."""
    tree = carriers.tree
    gone: dict[Span, str] = {}
    covers: set[tuple[str, Span]] = set()
    refusal: Manual | None = None
    for found in _occurrences(tree, path, local):
        nodes = nodes_at(tree, path, found.span)
        match found.role, statement(nodes):
            case _, ast.Assign(span=span, lhs=(_,), op=":=", rhs=(right,)) if found.span == local.at and is_pure(right):
                gone[span] = "local"
            case _, ast.VarStmt(span=span, specs=(ast.VarSpec(names=(_,), values=()),)) if found.span == local.at:
                gone[span] = "local"
            case "close", ast.ExprStmt(span=span) as stmt:
                gone[span] = "close"
                refusal = refusal or _lost_close(tree, path, nodes, stmt, local)
            case "assignment", ast.Assign(lhs=(ast.Ident(),), rhs=(right,)) as stmt if carriers.is_field(path, right):
                whole = _with_if(nodes, stmt)
                gone[whole or stmt.span] = "local-assignment"
                covers.add((path, right.span))
                if whole is None:
                    line = tree.line_text(path, found.span.start)
                    refusal = refusal or Manual(f"nothing would be left in the branch of {line!r}", BY_HAND)
            case "assignment", ast.Assign(lhs=(left,)) if carriers.is_field(path, left):
                pass
            case (("argument" | "value"), _) if carriers.takes(path, nodes):
                pass
            case _:
                line = tree.line_text(path, found.span.start)
                refusal = refusal or Manual(f"{local.name} is used for more than readiness: {line!r}", BY_HAND)
    gone = gone or {local.at: "local"}
    verdict = refusal or _shapes.combined(_shapes.remove_statements(tree, path, gone))
    message = f"{local.name} is no longer needed"
    findings = tuple(finding(tree, path, span, verdict, message, shape) for span, shape in gone.items())
    return Variable(local, findings, frozenset(covers))


def _lost_close(
    tree: Tree, path: str, nodes: tuple[Node, ...], stmt: ast.ExprStmt, local: ast.LocalObject
) -> Manual | None:
    """Refuse to take out a close that has a condition, or in whose place the executor closes nothing.

    A test has an executor that is ready (`GenerateRuntime`).
    """
    line = tree.line_text(path, stmt.span.start)
    decl = nodes[0]
    if not isinstance(decl, ast.FuncDecl) or functions_at(decl, stmt.span) != functions_at(decl, local.at):
        return Manual(f"{local.name} is closed by a function of its own: {line!r}", BY_HAND)
    if _with_if(nodes, stmt) != stmt.span:
        return Manual(f"nothing would be left in the branch of {line!r}", BY_HAND)
    later = (node for node in walk(decl) if isinstance(node, ast.Call) and node.span.start >= stmt.span.end)
    if tree.file(path).test or any(tree.calls(path, call) in _starting(tree) for call in later):
        return None
    return Manual(
        f"nothing closes the executor's channel in the place of {line!r}",
        "bootstrap an executor and call executor.CRI, which closes its channel; then delete this",
    )


def _starting(tree: Tree) -> frozenset[ast.Object]:
    """Return what ends with the executor's channel closed: its methods for a container runtime, and the agent."""
    names = [(EXECUTOR, name) for name in ("CRI", "Containerd", "Docker")] + [(AGENT, "Run"), (AGENT, "RunStandalone")]
    return frozenset(ast.PackageObject(package(tree, folder), name) for folder, name in names)


def _with_if(nodes: tuple[Node, ...], stmt: ast.Assign | ast.ExprStmt) -> Span | None:
    """Return the span of a statement, or of the nil check that holds nothing else; None for another `if` left empty."""
    around = next((node for node in reversed(nodes) if isinstance(node, ast.If)), None)
    match around:
        case ast.If(then=then, else_=None) if then.stmts != (stmt,):
            return stmt.span
        case ast.If(span=span, init=None, cond=ast.Binary(x=tested, y=ast.Ident(name="nil")), else_=None):
            return span if is_pure(tested) else None
        case None:
            return stmt.span
        case _:
            return None
