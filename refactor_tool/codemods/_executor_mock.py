"""Derive an executor for tests from the interface as it stands in a tree: methods, types and imports.

Every method fails but for those that the tests of k3s need: `ETCD` starts etcd, and a query answers with nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from refactor_tool.codemods._k3s import CONFIG, EXECUTOR, UTIL, package
from refactor_tool.gosrc import ast
from refactor_tool.gosrc.tree import Tree, TypeRef
from refactor_tool.gosrc.walk import walk
from refactor_tool.model import Span
from refactor_tool.record import record

#: Methods that ask and start nothing.
QUERIES = frozenset({"CurrentETCDOptions"})
#: Interfaces outside the tree, of which no more is known here than that their zero value is nil.
INTERFACES = frozenset(
    {
        ast.PackageObject("net/http", "Handler"),
        ast.PackageObject("k8s.io/apiserver/pkg/authentication/authenticator", "Request"),
    }
)
NOT_IMPLEMENTED = "errNotImplemented"

_ZEROS = {
    "bool": "false",
    "string": '""',
    **dict.fromkeys(("any", "error"), "nil"),
    **dict.fromkeys("int int8 int16 int32 int64 uint uint8 uint16 uint32 uint64 float32 float64".split(), "0"),
}


@record
class Mock:
    """What the template of the mock needs: lines of imports, and of `signature TAB body`, one a method."""

    imports: str
    methods: str
    receiver: str
    starts_etcd: bool


def derive(tree: Tree, path: str, interface: ast.InterfaceType, added: Sequence[str]) -> Mock | str:
    """Return the mock of an interface that gets the methods `added` as well, or why there can be none."""
    if interface.embeds:
        return f"{EXECUTOR} embeds {tree.text(path, interface.embeds[0].span)} in the interface"
    types = _Types(tree, path, _packages(tree, path, interface))
    clash = types.clash()
    if clash:
        return f"two packages in the interface's types go by the name {clash}"
    etcd = next((method for method in interface.methods if method.name == "ETCD"), None)
    embedded = {method.name for _, method in tree.methods(package(tree, EXECUTOR), "Embedded")}
    starts_etcd = etcd is not None and etcd.name in embedded
    taken = {ident.name for method in interface.methods for param in method.params for ident in param.names}
    receiver = next(name for name in ("e", "mock", "receiver") if name not in taken)
    methods = [
        _method(types, method, receiver, delegates=starts_etcd and method is etcd) for method in interface.methods
    ]
    methods += [_added(types, name, receiver) for name in added]
    return Mock("\n".join(types.import_lines()), "\n".join(methods), receiver, starts_etcd)


def _method(types: _Types, method: ast.Method, receiver: str, *, delegates: bool) -> str:
    params: list[str] = []
    passed: list[str] = []
    for param in method.params:
        names = [ident.name for ident in param.names if ident.name != "_"] or [f"arg{len(passed)}"]
        passed += [f"{name}{'...' if param.variadic else ''}" for name in names]
        params.append(f"{', '.join(names)} {'...' if param.variadic else ''}{types.text(param.type)}")
    head = f"{method.name}({', '.join(params)})"
    results = [result for result in method.results for _ in range(max(1, len(result.names)))]
    texts = [types.text(result.type) for result in results]
    listed = texts[0] if len(texts) == 1 else f"({', '.join(texts)})" if texts else ""
    if not results:
        return f"{head}\t"
    if method.name.endswith("ReadyChan"):
        return f"{head} {listed}\t{_chan(receiver, method.name)}"
    if delegates:
        return f"{head} {listed}\treturn (&executor.Embedded{{}}).{method.name}({', '.join(passed)})"
    zeros = [types.zero(TypeRef(result.type, types.path), text) for result, text in zip(results, texts, strict=True)]
    if texts[-1] == "error" and method.name not in QUERIES:
        zeros[-1] = NOT_IMPLEMENTED
    if None in zeros:  # a result whose zero value is not known gets a name, which stands for it
        listed = f"({', '.join(f'r{at} {text}' for at, text in enumerate(texts))})"
    values = (f"r{at}" if zero is None else zero for at, zero in enumerate(zeros))
    return f"{head} {listed}\treturn {', '.join(values)}"


def _added(types: _Types, name: str, receiver: str) -> str:
    if name.endswith("ReadyChan"):
        return f"{name}() <-chan struct{{}}\t{_chan(receiver, name)}"
    node = f"{types.locals[package(types.tree, CONFIG)]}.Node"
    return f"{name}(ctx {types.locals['context']}.Context, node *{node}) error\treturn {NOT_IMPLEMENTED}"


def _chan(receiver: str, method: str) -> str:
    return f"return {receiver}.{method.removesuffix('Chan')}.Chan()"


# --- types ------------------------------------------------------------------------------------------


def _packages(tree: Tree, path: str, interface: ast.InterfaceType) -> dict[str, str]:
    """Return what the mock calls each package that it imports: its own name, or the alias where that is not known."""
    own = (package(tree, EXECUTOR), package(tree, UTIL), package(tree, CONFIG))
    wanted = {"context", "errors", *own}
    for method in interface.methods:
        for node in walk(method):
            found = tree.resolve(path, node) if isinstance(node, ast.Ident) else None
            if isinstance(found, ast.PackageName):
                wanted.add(found.package)
    written = {spec.path: spec.local for spec in tree.file(path).imports if not _is_standard(spec.path)}
    return {name: _clause(tree, name) or written.get(name, name.rpartition("/")[2]) for name in wanted}


def _is_standard(imported: str) -> bool:
    """Tell whether a package is of the standard library, whose names are the last part of their paths."""
    return "." not in imported.split("/", 1)[0]


def _clause(tree: Tree, imported: str) -> str:
    """Return the name that an in-tree package gives itself, "" for others."""
    sources = (path for path in tree.package_files(imported) if not path.endswith("_test.go"))
    return next((tree.package_clause(path) for path in sources), "")


@record
class _Types:
    """Type expressions of the interface's file as another package writes them; `locals` are names by import path."""

    tree: Tree
    path: str
    locals: dict[str, str]

    def clash(self) -> str:
        names = sorted(self.locals.values())
        return next((name for name, following in pairwise(names) if name == following), "")

    def import_lines(self) -> Iterator[str]:
        """Yield the lines of the import declaration, the standard library first."""
        aliases = {spec.path: spec.name for spec in self.tree.file(self.path).imports}
        standard = sorted(filter(_is_standard, self.locals))
        yield from (f'"{name}"' for name in standard)
        yield ""
        for name in sorted(self.locals.keys() - set(standard)):
            alias = aliases.get(name) if not self.tree.package_files(name) else None
            yield f'{alias} "{name}"' if alias else f'"{name}"'

    def text(self, expr: ast.Expr) -> str:
        """Return a type with its package names replaced, and one put before the names of the executor's own types."""
        renamed: dict[int, tuple[int, str]] = {}
        for node in walk(expr):
            if isinstance(node, ast.Ident):
                match self.tree.resolve(self.path, node):
                    case ast.PackageName(package=imported):
                        renamed[node.span.start] = node.span.end, self.locals[imported]
                    case ast.PackageObject(package=owner, name=name):
                        renamed[node.span.start] = node.span.end, f"{self.locals[owner]}.{name}"
                    case _:
                        pass
        out, at = "", expr.span.start
        for start, (end, name) in sorted(renamed.items()):
            out += self.tree.text(self.path, Span(at, start)) + name
            at = end
        return out + self.tree.text(self.path, Span(at, expr.span.end))

    def zero(self, ref: TypeRef, text: str, seen: frozenset[ast.PackageObject] = frozenset()) -> str | None:
        """Return the zero value of a type that the mock writes as `text`, None where it is not known."""
        match ref.expr:
            case ast.Unary() | ast.ChanType() | ast.FuncType() | ast.InterfaceType():
                return "nil"
            case ast.OtherExpr(kind="slice_type" | "map_type"):
                return "nil"
            case ast.StructType():
                return f"{text}{{}}"
            case ast.Ident(name=name) if name in _ZEROS:
                return _ZEROS[name]
        named = self.tree.named_type(ref)
        if named in INTERFACES:
            return "nil"
        if named is None or named in seen:
            return None
        declared = self.tree.types(named.package, named.name)
        return next((self.zero(TypeRef(decl.type, path), text, seen | {named}) for path, decl in declared), None)
