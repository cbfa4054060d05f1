"""The one door to facts about the Go source of a snapshot.

Everything given out is a plain value of `ast` or `model`. Facts are worked out when they are asked for, and parsed
blobs are shared through a `ParseCache`, so that the tree after a step costs only the files that the step changed.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import wraps
from itertools import chain
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar

from refactor_tool.gosrc import ast, words
from refactor_tool.gosrc.convert import Converter
from refactor_tool.gosrc.depth import ancestors
from refactor_tool.gosrc.parse import Head, ParseCache, Parsed, require_go, skeleton
from refactor_tool.gosrc.scope import Declared
from refactor_tool.model import IGNORE_MARK, NEEDLES, Cover, FileChange, LazyFiles, LineIndex, Snapshot, Span
from refactor_tool.record import record

if TYPE_CHECKING:
    from tree_sitter import Node

Role = Literal[
    "declaration",
    "call",
    "argument",
    "receive",
    "select-case",
    "assignment",
    "key",
    "value",
    "nil-check",
    "close",
    "defer-close",
    "return",
    "type",
    "label",
    "comment",
    "string",
    "other",
]

#: Bytes of a line that are shown at most.
_HUGE = 400
_P = ParamSpec("_P")
_R = TypeVar("_R")
_D = TypeVar("_D", ast.FuncDecl, ast.TypeDecl, ast.VarDecl)
_IMPORT_BLOCK = re.compile(rb"import[ \t]*\(([^)]*)\)|import[ \t]+(?:[\w.]+[ \t]+)?[\"`]([^\"`]+)[\"`]")
_QUOTED = re.compile(rb"^[ \t]*(?:[\w.]+[ \t]+)?[\"`]([^\"`\n]+)[\"`]", re.MULTILINE)
_MODULE = re.compile(rb"^module[ \t]+(\S+)", re.MULTILINE)
_GO_DIRECTIVE = re.compile(rb"^go[ \t]+(\d+)\.(\d+)", re.MULTILINE)


@record
class TypeRef:
    """A type expression and the file whose imports give it meaning."""

    expr: ast.Expr
    path: str


@record
class Occurrence:
    """One whole-word occurrence of a name in a file: in code, a comment or a string.

    `qualified` includes the selector prefix (`cfg.Runtime.APIServerReady`). `object` is None in comments and strings.
    """

    path: str
    span: Span
    name: str
    role: Role
    qualified: Span
    object: ast.Object | None


def _memoised(method: Callable[Concatenate[Tree, _P], _R]) -> Callable[Concatenate[Tree, _P], _R]:
    """Remember what a tree answered; the arguments must be hashable and given by position."""
    name = method.__name__

    @wraps(method)
    def asked(self: Tree, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        key = (name, *args)
        memo = self._memo
        if key not in memo:
            memo[key] = method(self, *args, **kwargs)
        found: _R = memo[key]
        return found

    return asked


class Tree:
    """Facts about one snapshot. Asking never changes an answer; files are parsed on first need.

    Methods that parse raise `Unparsable` for a file that is not UTF-8 Go source.
    """

    def __init__(self, snapshot: Snapshot, cache: ParseCache | None = None) -> None:
        self.snapshot = snapshot
        self.cache = cache if cache is not None else ParseCache()
        self._files: dict[str, ast.GoFile] = {}
        self._blobs: dict[str, Parsed] = {}
        self._lines: dict[str, LineIndex] = {}
        self._sources: tuple[tuple[str, bytes], ...] | None = None
        self._found: dict[bytes, frozenset[str]] = {}
        self._methods: dict[str, frozenset[bytes]] | None = None
        self._memo: dict[tuple[object, ...], Any] = {}
        self._by_dir: dict[str, tuple[str, ...]] | None = None
        self._imports: dict[str, frozenset[str]] = {}
        self._open: set[tuple[str, Span]] = set()
        self._below: dict[str, frozenset[str]] = {}
        self._package_names: dict[str, str] = {}
        go_mod = snapshot.files.get("go.mod")
        module = _MODULE.search(go_mod.data) if go_mod is not None else None
        self.module: str = module.group(1).decode("utf-8", "replace").strip('"') if module is not None else ""
        directive = _GO_DIRECTIVE.search(go_mod.data) if go_mod is not None else None
        #: The `go` directive as (major, minor); (1, 16) is what Go assumes where there is none.
        self.go_version: tuple[int, int] = (
            (int(directive.group(1)), int(directive.group(2))) if directive is not None else (1, 16)
        )

    def after(self, changes: Iterable[FileChange]) -> Tree:
        """Return the facts of the snapshot after `changes`."""
        return self.beside(self.snapshot.with_changes(changes))

    def beside(self, snapshot: Snapshot) -> Tree:
        """Return the facts of another snapshot; what files say that are the same in both is not worked out again."""
        other = Tree(snapshot, self.cache)
        theirs = snapshot.files
        changed = self.snapshot.paths_unlike(snapshot)
        other._files.update(_without(self._files, changed))
        other._blobs.update(_without(self._blobs, changed))
        other._lines.update(_without(self._lines, changed))
        held = [(path, theirs[path].data) for path in changed if path.endswith(".go") and path in theirs]
        for needle, paths in self._found.items():
            other._found[needle] = (paths - changed) | {path for path, data in held if needle in data}
        if self._methods is not None:
            other._methods = _without(self._methods, changed) | dict(words.methods_in(held))
        if other.module == self.module:
            folders = {path.rpartition("/")[0] for path in changed}
            for package, imports in self._imports.items():
                if package.removeprefix(self.module).lstrip("/") not in folders:
                    other._imports[package] = imports
        return other

    # --- bytes and places -------------------------------------------------------------------------

    def data(self, path: str) -> bytes:
        return self.snapshot.files[path].data

    def text(self, path: str, span: Span) -> str:
        return self.data(path)[span.start : span.end].decode("utf-8", "surrogateescape")

    def lines(self, path: str) -> LineIndex:
        if path not in self._lines:
            self._lines[path] = LineIndex(self.data(path))
        return self._lines[path]

    def indent(self, path: str, offset: int) -> str:
        """Return the white space that the line of `offset` starts with."""
        data = self.data(path)
        start = data.rfind(b"\n", 0, offset) + 1
        end = start
        while data[end : end + 1] in (b"\t", b" "):
            end += 1
        return data[start:end].decode()

    def line_text(self, path: str, offset: int) -> str:
        """Return the line that holds a byte, white space around it taken off; of a huge line what is near the byte."""
        data = self.data(path)
        end = data.find(b"\n", offset)
        first, last = data.rfind(b"\n", 0, offset) + 1, len(data) if end < 0 else end
        if last - first <= _HUGE:
            return data[first:last].strip().decode("utf-8", "surrogateescape")
        start, stop = max(first, offset - _HUGE // 2), min(last, offset + _HUGE // 2)
        text = data[start:stop].strip().decode("utf-8", "replace")
        return f"{'…' if start > first else ''}{text}{'…' if stop < last else ''}"

    def comments_in(self, path: str, span: Span) -> tuple[Span, ...]:
        """Return the comments that lie inside `span`, in order."""
        out: list[Span] = []
        root = self._parsed(path).root
        stack = [root.descendant_for_byte_range(span.start, span.end) or root]
        while stack:
            node = stack.pop()
            if node.end_byte <= span.start or node.start_byte >= span.end:
                continue
            if node.type == "comment":
                if span.start <= node.start_byte and node.end_byte <= span.end:
                    out.append(Span(node.start_byte, node.end_byte))
            else:
                stack.extend(node.children)
        return tuple(sorted(out))

    # --- finding files and declarations -----------------------------------------------------------

    def package_clause(self, path: str) -> str:
        """Return the name in a file's package clause; the file is not parsed."""
        return header_name(self.data(path))

    @_memoised
    def files_with(self, *needles: bytes) -> tuple[str, ...]:
        """Return the paths of Go files whose bytes contain any needle, sorted; nothing is parsed.

        Of a large tree only the packages that can have to do with the campaign are searched. A needle that holds an
        earlier one is searched only where that was found: begin with the short ones.
        """
        found: set[str] = set()
        for needle in needles:
            if needle not in self._found:
                known = [paths for shorter, paths in self._found.items() if shorter in needle]
                if known:
                    within = [path for path in min(known, key=len) if needle in self.data(path)]
                else:
                    within = [path for path, data in self._searched() if needle in data]
                self._found[needle] = frozenset(within)
            found |= self._found[needle]
        return tuple(sorted(found))

    def files_but(self, but: Callable[[str, bytes], bool], *needles: bytes) -> tuple[str, ...]:
        """Return the paths of Go files whose bytes contain any needle, sorted, without those that `but` is true of.

        It is asked with the path and the bytes of a file.
        """
        return tuple(sorted(frozenset().union(*(self._holding(needle, but) for needle in needles))))

    @_memoised
    def _holding(self, needle: bytes, but: Callable[[str, bytes], bool]) -> frozenset[str]:
        return frozenset(path for path, data in self._all_but(but) if needle in data)

    @_memoised
    def _all_but(self, but: Callable[[str, bytes], bool]) -> tuple[tuple[str, bytes], ...]:
        return tuple((path, data) for path, data in self._searched() if not but(path, data))

    def _searched(self) -> tuple[tuple[str, bytes], ...]:
        """Return the Go files, with their bytes, that are searched: all, but of a large tree some packages only.

        Those are the ones in which a file holds a word of the campaign, or names the module, as it does to import a
        package of it: without that nothing in a package can mean what another declares.
        """
        if self._sources is None:
            files = self.snapshot.files
            paths: Iterable[str] = files
            if isinstance(files, LazyFiles):
                holding = files.holding((self.module.encode(), *NEEDLES, IGNORE_MARK))
                folders = {path.rpartition("/")[0] for path in holding}
                paths = (path for path in files if path.rpartition("/")[0] in folders)
            self._sources = tuple((path, files[path].data) for path in paths if path.endswith(".go"))
        return self._sources

    def file(self, path: str) -> ast.GoFile:
        """Return what a file is: package, imports, what it is built for."""
        if path not in self._files:
            self._files[path] = skeleton(path, self._parsed(path))
        return self._files[path]

    def package_of(self, path: str) -> str:
        """Return the import path of the package that a file belongs to (test files: of the package beside them)."""
        folder = path.rpartition("/")[0]
        return f"{self.module}/{folder}" if folder else self.module

    def package_files(self, package: str) -> tuple[str, ...]:
        """Return the Go files of an in-tree package, tests and all build tags included; () for others."""
        if self._by_dir is None:
            by_dir: dict[str, list[str]] = {}
            for path in self.snapshot.go_paths():
                by_dir.setdefault(path.rpartition("/")[0], []).append(path)
            self._by_dir = {folder: tuple(paths) for folder, paths in by_dir.items()}
        if package == self.module:
            return self._by_dir.get("", ())
        if not package.startswith(self.module + "/"):
            return ()
        return self._by_dir.get(package[len(self.module) + 1 :], ())

    def decls(self, path: str) -> Iterator[ast.Decl]:
        """Yield everything that a file declares at file level, in order, function bodies left out."""
        parsed = self._parsed(path)
        return (parsed.decl(head) for head in parsed.heads())

    @_memoised
    def functions(self, package: str, name: str) -> tuple[tuple[str, ast.FuncDecl], ...]:
        """Return the declarations of a package-level function, one per build variant, without bodies."""
        return tuple(self._declarations(package, ast.FuncDecl, name, "", words.may_declare_function))

    @_memoised
    def types(self, package: str, name: str) -> tuple[tuple[str, ast.TypeDecl], ...]:
        """Return the declarations of a package-level type."""
        return tuple(self._declarations(package, ast.TypeDecl, name, "", words.may_declare_type))

    @_memoised
    def variables(self, package: str, name: str) -> tuple[tuple[str, ast.VarDecl, ast.VarSpec], ...]:
        """Return the package-level `var` and `const` specs that declare a name."""
        return tuple(
            (path, decl, spec)
            for path, decl in self._declarations(package, ast.VarDecl, name, "", words.may_declare_variable)
            for spec in decl.specs
            if any(ident.name == name for ident in spec.names)
        )

    @_memoised
    def methods(self, package: str, type_name: str) -> tuple[tuple[str, ast.FuncDecl], ...]:
        """Return the methods declared on a type, in file order, all build variants."""
        return tuple(self._declarations(package, ast.FuncDecl, None, type_name, words.may_have_methods))

    @_memoised
    def method(self, package: str, type_name: str, name: str) -> tuple[tuple[str, ast.FuncDecl], ...]:
        """Return the declarations of one method of a type, one per build variant."""
        return tuple(self._declarations(package, ast.FuncDecl, name, type_name, words.may_be_method))

    @_memoised
    def methods_named(self, name: str) -> tuple[tuple[str, ast.FuncDecl], ...]:
        """Return every method of that name in the tree, on any type."""
        out = []
        for path in self._files_with_method(name.encode()):
            parsed = self._parsed(path)
            for head in parsed.heads():
                if head.receiver and name in head.names:
                    decl = parsed.decl(head)
                    if isinstance(decl, ast.FuncDecl):
                        out.append((path, decl))
        return tuple(out)

    def _files_with_method(self, name: bytes) -> list[str]:
        """Return the files in which a method of that name may be declared, sorted; one search serves all names."""
        if self._methods is None:
            self._methods = dict(words.methods_in(self._searched()))
        return sorted(path for path, names in self._methods.items() if name in names)

    def _declarations(
        self, package: str, kind: type[_D], name: str | None, receiver: str, may: Callable[[bytes, bytes], bool]
    ) -> Iterator[tuple[str, _D]]:
        """Yield a package's declarations of one kind by name (None for any) and receiver type.

        Files that `may` not declare it, by their bytes, are not parsed, and other declarations are not converted.
        """
        word = (name or receiver).encode()
        for path in self.package_files(package):
            data = self.data(path)
            if word in data and may(data, word):
                parsed = self._parsed(path)
                for head in parsed.heads():
                    if head.receiver == receiver and (name is None or name in head.names):
                        decl = parsed.decl(head)
                        if isinstance(decl, kind):
                            yield path, decl

    def function(self, path: str, decl: ast.FuncDecl) -> ast.FuncDecl:
        """Return a function or method of a file with its body."""
        return self._parsed(path).function(decl)

    def function_at(self, path: str, offset: int) -> ast.FuncDecl | None:
        """Return the function or method that holds a byte, doc comment included, without its body."""
        decl = self.decl_at(path, offset)
        return decl if isinstance(decl, ast.FuncDecl) else None

    def decl_at(self, path: str, offset: int) -> ast.Decl | None:
        """Return the declaration that holds a byte, doc comment included."""
        head = self._head_at(path, offset)
        return self._parsed(path).decl(head) if head is not None else None

    def title_at(self, path: str, offset: int) -> str:
        """Return how a finding names its place: `run`, `(*Embedded).Kubelet`, `type Executor`, or ""."""
        head = self._head_at(path, offset)
        if head is None or head.node.type in ("var_declaration", "const_declaration"):
            return ""
        decl = self._parsed(path).decl(head)
        return decl.title if isinstance(decl, ast.FuncDecl) else f"type {head.names[0]}"

    def _head_at(self, path: str, offset: int) -> Head | None:
        parsed = self._parsed(path)
        heads = parsed.heads()
        at = bisect_right(heads, offset, key=lambda head: head.start)
        if at and offset < heads[at - 1].node.end_byte:
            return heads[at - 1]
        if at < len(heads):
            doc = parsed.doc(heads[at])
            if doc is not None and doc.start <= offset:
                return heads[at]
        return None

    # --- what names mean --------------------------------------------------------------------------

    def resolve(self, path: str, expr: ast.Expr) -> ast.Object:
        """Return what an identifier, selector or parenthesised one of them names."""
        match expr:
            case ast.Ident(span=span):
                return self._resolve_ident(path, self._node(path, span))
            case ast.Selector(x=x, name=name):
                return self._resolve_selector(path, x, name)
            case ast.Paren(x=inner) | ast.Unary(op="*", x=inner):
                return self.resolve(path, inner)
            case ast.OtherExpr(kind="generic_type", children=children) if children:
                return self.resolve(path, children[0])
            case _:
                return ast.UnknownObject(type(expr).__name__)

    def calls(self, path: str, call: ast.Call) -> ast.Object:
        """Return what a call calls."""
        return self.resolve(path, call.fun)

    def type_of(self, path: str, expr: ast.Expr) -> TypeRef | None:
        """Return the static type of an expression where it follows from declarations in the tree."""
        key = (path, expr.span)
        if key in self._open:  # `var a, b = b, a`: no type follows from that
            return None
        self._open.add(key)
        try:
            return self._infer(path, expr)
        finally:
            self._open.discard(key)

    def type_of_name(self, path: str, offset: int, name: str) -> TypeRef | None:
        """Return the type of what a plain `name` would mean at a byte of a file, None where none is known."""
        declared = self._visible(path, offset, name)
        if declared is not None:
            return self._type_of_local(path, declared)
        return self._type_of_object(path, self._resolve_global(path, name), ast.Ident(Span(offset, offset), name))

    def object_of_name(self, path: str, offset: int, name: str) -> ast.Object:
        """Return what a plain `name` would mean at a byte of a file."""
        declared = self._visible(path, offset, name)
        if declared is not None:
            return ast.LocalObject(name, Span(declared.name.start_byte, declared.name.end_byte), declared.kind)
        return self._resolve_global(path, name)

    def _infer(self, path: str, expr: ast.Expr) -> TypeRef | None:
        match expr:
            case ast.Ident() as ident:
                return self._type_of_object(path, self.resolve(path, ident), ident)
            case ast.Selector() as selector:
                return self._type_of_object(path, self.resolve(path, selector), selector)
            case ast.Paren(x=inner):
                return self.type_of(path, inner)
            case ast.Composite(type=type_) if type_ is not None:
                return TypeRef(type_, path)
            case ast.Unary(op="&", x=inner):
                found = self.type_of(path, inner)
                return TypeRef(ast.Unary(found.expr.span, "*", found.expr), found.path) if found is not None else None
            case ast.Unary(op="*", x=inner):
                return _deref(self.type_of(path, inner))
            case ast.Unary(op="<-", x=inner):
                channel = self.type_of(path, inner)
                return _element(channel)
            case ast.Call() as call:
                results = self.results_of(path, call)
                return results[0] if results else None
            case _:
                return None

    def results_of(self, path: str, call: ast.Call) -> tuple[TypeRef, ...]:
        """Return the types of a call's results, () where they are not known."""
        if isinstance(call.fun, ast.Ident) and call.fun.name in ("make", "new") and call.args:
            made = call.args[0]
            pointer = ast.Unary(made.span, "*", made) if call.fun.name == "new" else made
            return (TypeRef(pointer, path),)
        match self.resolve(path, call.fun):
            case ast.PackageObject(package=package, name=name):
                for where, decl in self.functions(package, name):
                    return _result_types(decl.results, where)
                if self.types(package, name):
                    return (TypeRef(call.fun, path),)
            case ast.FieldObject() as member:
                for where, method in self.method(member.package, member.type, member.name):
                    return _result_types(method.results, where)
                declared = self._member_type(member)
                if declared is not None and isinstance(declared.expr, ast.FuncType):
                    return _result_types(declared.expr.results, declared.path)
            case _:
                pass
        return ()

    def named_type(self, ref: TypeRef | None) -> ast.PackageObject | None:
        """Return the named type behind a type expression, pointers taken off; None for others and for basic types."""
        if ref is None:
            return None
        found = self.resolve(ref.path, ref.expr)
        return found if isinstance(found, ast.PackageObject) else None

    def _resolve_ident(self, path: str, node: Node) -> ast.Object:
        key = ("ident", path, node.start_byte, node.end_byte)
        if key not in self._memo:
            self._memo[key] = self._look_up(path, node)
        found: ast.Object = self._memo[key]
        return found

    def _look_up(self, path: str, node: Node) -> ast.Object:
        name = node.text.decode("utf-8", "replace") if node.text is not None else ""
        parent = node.parent
        if parent is not None:
            if parent.type in ("selector_expression", "qualified_type") and _is_member_name(parent, node):
                expr = Converter(self.data(path)).expr(parent)
                return self.resolve(path, expr)
            if parent.type == "literal_element" and _is_key(parent):
                member = self._resolve_key(path, parent, name)
                if member is not None:
                    return member
            if parent.type == "field_declaration" and node.type == "field_identifier":
                owner = _enclosing(parent, "type_spec")
                if owner is not None:
                    return ast.FieldObject(self.package_of(path), _name_text(owner), name)
            if parent.type == "method_elem" and node.type == "field_identifier":
                owner = _enclosing(parent, "type_spec")
                if owner is not None:
                    return ast.FieldObject(self.package_of(path), _name_text(owner), name)
            if parent.type == "method_declaration" and node.type == "field_identifier":
                decl = self.function_at(path, node.start_byte)
                if decl is not None:
                    return ast.FieldObject(self.package_of(path), decl.receiver_type, name)
        local = self._parsed(path).scopes.local(node)
        if local is not None:
            return ast.LocalObject(name, Span(local.name.start_byte, local.name.end_byte), local.kind)
        return self._resolve_global(path, name)

    @_memoised
    def _resolve_global(self, path: str, name: str) -> ast.Object:
        imported = self._imported_as(path).get(name)
        if imported is not None:
            return ast.PackageName(imported)
        package = self.package_of(path)
        if self._declares(package, name):
            return ast.PackageObject(package, name)
        for spec in self._parsed(path).imports():
            if spec.name == "." and self._declares(spec.path, name):
                return ast.PackageObject(spec.path, name)
        return ast.UnknownObject(name)

    @_memoised
    def _imported_as(self, path: str) -> dict[str, str]:
        """Return the import path behind each local name of an import."""
        specs = [spec for spec in self._parsed(path).imports() if spec.name not in (".", "_")]
        return {self._import_name(spec): spec.path for spec in reversed(specs)}

    def _import_name(self, spec: ast.ImportSpec) -> str:
        """Return the local name of an import: the alias, else the package clause where the package is in the tree."""
        if spec.name is not None:
            return spec.name
        if spec.path not in self._package_names:
            files = (path for path in self.package_files(spec.path) if not path.endswith("_test.go"))
            clauses = (header_name(self.data(path)) for path in files)
            self._package_names[spec.path] = next(filter(None, clauses), spec.local)
        return self._package_names[spec.path]

    @_memoised
    def _declares(self, package: str, name: str) -> bool:
        return bool(self.functions(package, name) or self.types(package, name) or self.variables(package, name))

    def _resolve_selector(self, path: str, x: ast.Expr, name: str) -> ast.Object:
        if isinstance(x, ast.Ident):
            base = self.resolve(path, x)
            if isinstance(base, ast.PackageName):
                return ast.PackageObject(base.package, name)
        owner = self.named_type(self.type_of(path, x))
        if owner is None:
            return ast.UnknownObject(name)
        return self.member(owner.package, owner.name, name) or ast.UnknownObject(name)

    def _resolve_key(self, path: str, element: Node, name: str) -> ast.FieldObject | None:
        literal = _enclosing(element, "composite_literal")
        body = element.parent.parent if element.parent is not None else None
        if literal is None or body is None or body.parent != literal:
            return None
        type_node = literal.child_by_field_name("type")
        if type_node is None:
            return None
        owner = self.named_type(TypeRef(Converter(self.data(path)).expr(type_node), path))
        return self.member(owner.package, owner.name, name) if owner is not None else None

    @_memoised
    def member(self, package: str, type_name: str, name: str) -> ast.FieldObject | None:
        """Return the field or method `name` of a named type, promoted ones with the type that declares them."""
        todo = [(package, type_name)]
        seen: set[tuple[str, str]] = set()
        while todo:
            here = todo.pop(0)
            if here in seen:
                continue
            seen.add(here)
            for path, decl in self.types(*here):
                match decl.type:
                    case ast.StructType(fields=fields):
                        for field in fields:
                            if any(ident.name == name for ident in field.names):
                                return ast.FieldObject(*here, name)
                            if not field.names:
                                embedded = self.named_type(TypeRef(field.type, path))
                                if embedded is not None:
                                    if embedded.name == name:
                                        return ast.FieldObject(*here, name)
                                    todo.append((embedded.package, embedded.name))
                    case ast.InterfaceType(methods=methods, embeds=embeds):
                        if any(method.name == name for method in methods):
                            return ast.FieldObject(*here, name)
                        for embed in embeds:
                            named = self.named_type(TypeRef(embed, path))
                            if named is not None:
                                todo.append((named.package, named.name))
                    case _:
                        alias = self.named_type(TypeRef(decl.type, path))
                        if alias is not None:
                            todo.append((alias.package, alias.name))
            if self.method(*here, name):
                return ast.FieldObject(*here, name)
        return None

    def _member_type(self, member: ast.FieldObject) -> TypeRef | None:
        for path, decl in self.types(member.package, member.type):
            match decl.type:
                case ast.StructType(fields=fields):
                    for field in fields:
                        if any(ident.name == member.name for ident in field.names):
                            return TypeRef(field.type, path)
                        if not field.names and _tail_name(field.type) == member.name:
                            return TypeRef(field.type, path)
                case ast.InterfaceType(methods=methods):
                    for method in methods:
                        if method.name == member.name:
                            return TypeRef(ast.FuncType(method.span, method.params, method.results), path)
                case _:
                    pass
        return None

    def _type_of_object(self, path: str, found: ast.Object, expr: ast.Expr) -> TypeRef | None:
        match found:
            case ast.LocalObject(at=at):
                declared = self._parsed(path).scopes.local(self._node(path, at))
                return self._type_of_local(path, declared) if declared is not None else None
            case ast.FieldObject() as member:
                return self._member_type(member)
            case ast.PackageObject(package=package, name=name):
                for where, _, spec in self.variables(package, name):
                    return self._type_of_spec(where, spec, [ident.name for ident in spec.names].index(name))
                return TypeRef(expr, path) if self.types(package, name) else None
            case _:
                return None

    def _type_of_local(self, path: str, declared: Declared) -> TypeRef | None:
        convert = Converter(self.data(path))
        owner = declared.owner
        match owner.type:
            case "parameter_declaration":
                type_node = owner.child_by_field_name("type")
                return TypeRef(convert.expr(type_node), path) if type_node is not None else None
            case "var_spec" | "const_spec":
                specs = convert._var_specs(owner.parent) if owner.parent is not None else ()
                for spec in specs:
                    if spec.span.start == owner.start_byte:
                        return self._type_of_spec(path, spec, declared.index)
                return None
            case "short_var_declaration" | "receive_statement":
                right = owner.child_by_field_name("right")
                if right is None:
                    return None
                values = convert._exprs(right)
                return self._type_of_value(path, values, declared.index)
            case _:
                return None

    def _type_of_spec(self, path: str, spec: ast.VarSpec, index: int) -> TypeRef | None:
        if spec.type is not None:
            return TypeRef(spec.type, path)
        return self._type_of_value(path, spec.values, index)

    def _type_of_value(self, path: str, values: tuple[ast.Expr, ...], index: int) -> TypeRef | None:
        if len(values) == 1 and isinstance(values[0], ast.Call):
            results = self.results_of(path, values[0])
            return results[index] if index < len(results) else None
        return self.type_of(path, values[index]) if index < len(values) else None

    # --- occurrences ------------------------------------------------------------------------------

    def occurrences(
        self, path: str, pattern: re.Pattern[bytes], outside: Sequence[Span] = ()
    ) -> tuple[Occurrence, ...]:
        """Return every match of `pattern` in a file, prose included, that lies in no span of `outside`."""
        if not outside:
            return self._all_occurrences(path, pattern)
        aside = Cover((path, span) for span in outside)
        return tuple(found for found in self._all_occurrences(path, pattern) if not aside.holds(path, found.span))

    @_memoised
    def _all_occurrences(self, path: str, pattern: re.Pattern[bytes]) -> tuple[Occurrence, ...]:
        return self.occurrences_at(path, words.places_of(pattern, self.data(path)))

    def occurrences_at(self, path: str, spans: Sequence[Span]) -> tuple[Occurrence, ...]:
        """Return what the words at these places are."""
        if not spans:
            return ()
        root = self._parsed(path).root
        out = []
        for span in spans:
            node = root.descendant_for_byte_range(span.start, max(span.start, span.end - 1))
            if node is not None:
                out.append(self._occurrence(path, node, span))
        return tuple(out)

    def type_at(self, path: str, span: Span) -> TypeRef | None:
        """Return the type of the name or selector that stands at exactly `span`."""
        node = self._node(path, span)
        expr = Converter(self.data(path)).expr(node)
        if node.parent is not None and node.parent.type in ("field_declaration", "method_elem"):
            found = self._resolve_ident(path, node)
            return self._type_of_object(path, found, expr)
        return self.type_of(path, expr)

    def _occurrence(self, path: str, node: Node, span: Span) -> Occurrence:
        name = self.text(path, span)
        if node.type == "comment":
            return Occurrence(path, span, name, "comment", span, None)
        if "string_literal" in node.type or node.type == "escape_sequence":
            return Occurrence(path, span, name, "string", span, None)
        role, whole = _role(node)
        found = ast.LocalObject(name, span, "label") if role == "label" else self._resolve_ident(path, node)
        return Occurrence(path, span, name, role, Span(whole.start_byte, whole.end_byte), found)

    # --- interfaces -------------------------------------------------------------------------------

    @_memoised
    def interface(self, package: str, name: str) -> tuple[str, ast.TypeDecl, ast.InterfaceType] | None:
        for path, decl in self.types(package, name):
            if isinstance(decl.type, ast.InterfaceType):
                return path, decl, decl.type
        return None

    @_memoised
    def implementers(self, package: str, name: str) -> tuple[ast.Implementer, ...]:
        """Return the types that implement an interface, or come close: most of its methods, or a check that they do.

        Covers every file of every build tag, tests included, and types that embed an implementer or the interface
        and declare some of its methods again. Sorted by package and type.
        """
        found = self.interface(package, name)
        if found is None:
            return ()
        wanted = {method.name for method in found[2].methods}
        owners: dict[tuple[str, str], list[tuple[str, ast.FuncDecl]]] = {}
        for method_name in sorted(wanted):
            for path, decl in self.methods_named(method_name):
                owners.setdefault((self.package_of(path), decl.receiver_type), []).append((path, decl))
        full = {
            owner
            for owner, methods in owners.items()
            if len({decl.name for _, decl in methods}) * 2 > len(wanted) or self._is_checked(owner, package, name)
        }
        handing = {ast.PackageObject(*owner) for owner in (*full, (package, name))}
        embedders = {owner for owner in owners if owner not in full and not handing.isdisjoint(self.embedded(*owner))}
        return tuple(
            ast.Implementer(
                package=owner[0],
                type=owner[1],
                methods=tuple(sorted(owners[owner], key=lambda item: (item[0], item[1].span))),
                missing=() if owner in embedders else tuple(sorted(wanted - {decl.name for _, decl in owners[owner]})),
            )
            for owner in sorted(full | embedders)
        )

    def _is_checked(self, owner: tuple[str, str], package: str, name: str) -> bool:
        """Tell whether the owner's package says `var _ Executor = &T{}`."""
        for path in self.package_files(owner[0]):
            for decl in self.decls(path) if name.encode() in self.data(path) else ():
                if isinstance(decl, ast.VarDecl):
                    for spec in decl.specs:
                        if spec.type is None or len(spec.values) != 1:
                            continue
                        interface = self.named_type(TypeRef(spec.type, path))
                        value = self.named_type(self.type_of(path, spec.values[0]))
                        if interface == ast.PackageObject(package, name) and value == ast.PackageObject(*owner):
                            return True
        return False

    @_memoised
    def embedded(self, package: str, name: str) -> tuple[ast.PackageObject, ...]:
        """Return the named types that a type embeds, at any depth and behind aliases too, the nearest first."""
        found: dict[ast.PackageObject, None] = {}
        todo = [(package, name)]
        while todo:
            for path, decl in self.types(*todo.pop(0)):
                inner: tuple[ast.Expr, ...] = ()
                match decl.type:
                    case ast.StructType(fields=fields):
                        inner = tuple(field.type for field in fields if not field.names)
                    case ast.InterfaceType(embeds=embeds):
                        inner = embeds
                    case other if b"=" in self.data(path)[decl.name_span.end : other.span.start]:
                        inner = (other,)
                    case _:
                        pass
                for named in (self.named_type(TypeRef(expr, path)) for expr in inner):
                    if named is not None and named not in found:
                        found[named] = None
                        todo.append((named.package, named.name))
        return tuple(found)

    @_memoised
    def forwarders(self, package: str, interface: str) -> tuple[tuple[str, ast.FuncDecl], ...]:
        """Return the package-level functions whose body only returns a call of the same-named interface method."""
        found = self.interface(package, interface)
        if found is None:
            return ()
        out = []
        for method in found[2].methods:
            for path, decl in self.functions(package, method.name):
                match self.function(path, decl).body:
                    case ast.Block(stmts=(ast.Return(values=(ast.Call(fun=ast.Selector(name=called)),)),)) if (
                        called == method.name
                    ):
                        out.append((path, decl))
                    case _:
                        pass
        return tuple(out)

    def callers(
        self, target: ast.PackageObject | ast.FieldObject, paths: Iterable[str] | None = None
    ) -> tuple[Occurrence, ...]:
        """Return every use of a function or method but its declaration: calls, function values, all.

        In the whole tree, or in the files of `paths`.
        """
        name = target.name.encode()
        pattern = re.compile(rb"\b" + re.escape(name) + rb"\b")
        return tuple(
            found
            for path in (self.files_with(name) if paths is None else paths)
            if self.knows(path, target.package)
            for found in self.occurrences(path, pattern)
            if found.object == target and found.role != "declaration"
        )

    def call_at(self, path: str, span: Span) -> ast.Call | None:
        """Return the innermost call whose callee is exactly `span` (a qualified name), if that place is a call."""
        node = self._node(path, span)
        parent = node.parent
        if parent is None or parent.type != "call_expression" or parent.child_by_field_name("function") != node:
            return None
        call = Converter(self.data(path)).expr(parent)
        return call if isinstance(call, ast.Call) else None

    def interface_at(self, path: str, place: Span) -> ast.InterfaceType | None:
        """Return the innermost interface type around a place: of a declaration, an assertion, a parameter, any."""
        here = self._parsed(path).root.descendant_for_byte_range(place.start, place.end)
        node = _enclosing(here, "interface_type") if here is not None else None
        found = Converter(self.data(path)).expr(node) if node is not None else None
        return found if isinstance(found, ast.InterfaceType) else None

    # --- imports ----------------------------------------------------------------------------------

    def imported_by(self, package: str) -> frozenset[str]:
        """Return what the non-test files of an in-tree package import, over all build tags."""
        if package not in self._imports:
            found: set[str] = set()
            for path in self.package_files(package):
                if not path.endswith("_test.go"):
                    found.update(_header_imports(self.data(path)))
            self._imports[package] = frozenset(found)
        return self._imports[package]

    def knows(self, path: str, package: str) -> bool:
        """Tell whether code in a file can mean what an in-tree package declares: it is in it, or imports it somehow.

        Go gives a file no value of a type whose package its own does not import, itself or through others.
        """
        folder = path.rpartition("/")[0]
        own = self.package_of(path)
        if package in (own, "") or f'"{package}"'.encode() in self.data(path) or package in self._imported_below(own):
            return True
        return path.endswith("_test.go") and package in self._imported_by_tests(folder)

    @_memoised
    def _imported_by_tests(self, folder: str) -> frozenset[str]:
        """Return what the test files of a folder import, themselves or through others."""
        package = f"{self.module}/{folder}" if folder else self.module
        tests = [path for path in self.package_files(package) if path.endswith("_test.go")]
        direct = {imported for path in tests for imported in _header_imports(self.data(path))}
        return frozenset(direct.union(*map(self._imported_below, direct)))

    def may_import(self, importer: str, imported: str) -> bool:
        """Tell whether `importer` can import `imported` without an import cycle."""
        return importer != imported and importer not in self._imported_below(imported)

    def _imported_below(self, package: str) -> frozenset[str]:
        """Return what a package imports, and what those import, and so on; only in-tree packages are followed."""
        if package in self._below:
            return self._below[package]
        seen: set[str] = set()
        todo = [package]
        while todo:
            new = self.imported_by(todo.pop()) - seen
            seen |= new
            for name in new:
                if name.startswith(self.module):
                    known = self._below.get(name)
                    if known is None:
                        todo.append(name)
                    else:
                        seen |= known
        self._below[package] = frozenset(seen)
        return self._below[package]

    def qualify(self, path: str, package: str, name: str, offset: int) -> ast.Qualifier | None:
        """Say how to write `package` at a byte of a file; `name` is used where it is not imported yet.

        None where nothing works there: the name is taken by a local or by something else in the file, or the import
        would be a cycle (a test file in a package of its own, `x_test`, may import what its package may not).
        """
        file = self.file(path)
        own = self.package_of(path)
        external_test = file.test and file.package.endswith("_test")
        if package == own and not external_test:
            return ast.Qualifier("", None)
        for spec in file.imports:
            if spec.path == package and spec.name != "_":
                if spec.name == ".":
                    return ast.Qualifier("", None)
                local = self._import_name(spec)
                if self._visible(path, offset, local) is not None:
                    return None
                return ast.Qualifier(f"{local}.", None)
        if not external_test and not self.may_import(own, package):
            return None
        if self._visible(path, offset, name) is not None:
            return None
        if not isinstance(self._resolve_global(path, name), ast.UnknownObject):
            return None
        default = ast.ImportSpec(Span(0, 0), package, None)
        return ast.Qualifier(f"{name}.", (package, None if self._import_name(default) == name else name))

    # --- inside -----------------------------------------------------------------------------------

    def _parsed(self, path: str) -> Parsed:
        parsed = self._blobs.get(path)
        if parsed is None:
            file = self.snapshot.files[path]
            parsed = self.cache.parse(file.data)
            require_go(path, parsed)
            self._blobs[path] = parsed
        return parsed

    def parsed(self) -> Mapping[str, Parsed]:
        """Return the files that had to be parsed so far."""
        return self._blobs

    def _visible(self, path: str, offset: int, name: str) -> Declared | None:
        """Return the local declaration that a plain `name` would mean at a byte of a file, None where there is none."""
        parsed = self._parsed(path)
        node = parsed.root.descendant_for_byte_range(offset, offset)
        return parsed.scopes.visible(node, name.encode()) if node is not None else None

    def _node(self, path: str, span: Span) -> Node:
        """Return the outermost node that covers exactly `span`."""
        node = self._parsed(path).root.descendant_for_byte_range(span.start, max(span.start, span.end - 1))
        while node is not None and node.start_byte >= span.start and node.end_byte <= span.end:
            if (node.start_byte, node.end_byte) == (span.start, span.end):
                break
            node = node.parent
        if node is None or (node.start_byte, node.end_byte) != (span.start, span.end):
            raise ValueError(f"{path}: no syntax at bytes {span.start}..{span.end}")
        if node.type in ("expression_list", "statement_list", "literal_element"):
            node = node.named_children[0]
        return node


def tree_of(snapshot: Snapshot, cache: ParseCache) -> Tree:
    """Return the facts of a snapshot, with those that it shares with the last one that this was asked for."""
    last = cache.last
    if last is None:
        last = Tree(snapshot, cache)
    elif last.snapshot is not snapshot:
        last = last.beside(snapshot)
    cache.last = last
    return last


def _without(facts: dict[str, _R], paths: Set[str]) -> dict[str, _R]:
    return {path: fact for path, fact in facts.items() if path not in paths}


def header_name(data: bytes) -> str:
    """Return the package clause's name without parsing, "" where there is none."""
    found = re.search(rb"^package[ \t]+(\w+)", data, re.MULTILINE)
    return found.group(1).decode() if found is not None else ""


def _header_imports(data: bytes) -> Iterator[str]:
    """Yield import paths by the text of the import declarations."""
    text = b"\n" + data
    at = text.find(b"\nimport")
    while at >= 0:
        match = _IMPORT_BLOCK.match(text, at + 1)
        if match is not None and match[1] is not None:
            yield from (quoted.decode("utf-8", "replace") for quoted in _QUOTED.findall(match[1]))
        elif match is not None:
            yield match[2].decode("utf-8", "replace")
        at = text.find(b"\nimport", match.end() if match is not None else at + 1)


def _result_types(results: Iterable[ast.Param], path: str) -> tuple[TypeRef, ...]:
    return tuple(TypeRef(param.type, path) for param in results for _ in range(max(1, len(param.names))))


def _deref(ref: TypeRef | None) -> TypeRef | None:
    if ref is not None and isinstance(ref.expr, ast.Unary) and ref.expr.op == "*":
        return TypeRef(ref.expr.x, ref.path)
    return None


def _element(ref: TypeRef | None) -> TypeRef | None:
    if ref is not None and isinstance(ref.expr, ast.ChanType):
        return TypeRef(ref.expr.element, ref.path)
    return None


def _tail_name(type_: ast.Expr) -> str:
    match type_:
        case ast.Ident(name=name) | ast.Selector(name=name):
            return name
        case ast.Unary(x=inner):
            return _tail_name(inner)
        case _:
            return ""


def _is_member_name(parent: Node, node: Node) -> bool:
    field = parent.child_by_field_name("field") or parent.child_by_field_name("name")
    return field is not None and field == node


def _is_key(element: Node) -> bool:
    keyed = element.parent
    return keyed is not None and keyed.type == "keyed_element" and keyed.child_by_field_name("key") == element


def _enclosing(node: Node, kind: str) -> Node | None:
    return next((each for each in chain((node,), ancestors(node)) if each.type == kind), None)


def _name_text(node: Node) -> str:
    name = node.child_by_field_name("name")
    return name.text.decode() if name is not None and name.text is not None else ""


def _role(node: Node) -> tuple[Role, Node]:
    """Return in which form a name stands, and the node of the whole qualified name."""
    whole = node
    parent = node.parent
    if parent is None:
        return "other", whole
    if parent.type in ("selector_expression", "qualified_type") and _is_member_name(parent, node):
        whole, parent = parent, parent.parent
    while parent is not None and parent.type in ("expression_list", "literal_element", "parenthesized_expression"):
        if parent.type == "literal_element" and _is_key(parent):
            return "key", whole
        if parent.type == "literal_element":
            return "value", whole
        whole_parent = parent.parent
        if parent.type == "expression_list" and whole_parent is not None and whole_parent.type == "return_statement":
            return "return", whole
        parent = whole_parent
    if parent is None:
        return "other", whole
    return _ROLES.get(parent.type, _other_role)(node, whole, parent), whole


def _other_role(_node: Node, _whole: Node, _parent: Node) -> Role:
    return "other"


def _call_role(_node: Node, whole: Node, parent: Node) -> Role:
    return "call" if parent.child_by_field_name("function") == whole else "other"


def _argument_role(_node: Node, _whole: Node, parent: Node) -> Role:
    call = parent.parent
    callee = call.child_by_field_name("function") if call is not None else None
    if callee is not None and callee.text == b"close" and call is not None:
        outer = call.parent
        return "defer-close" if outer is not None and outer.type == "defer_statement" else "close"
    return "argument"


def _unary_role(_node: Node, _whole: Node, parent: Node) -> Role:
    if parent.child_count and parent.children[0].type == "<-":
        outer = parent.parent
        return "select-case" if outer is not None and outer.type == "receive_statement" else "receive"
    return "other"


def _binary_role(_node: Node, _whole: Node, parent: Node) -> Role:
    return "nil-check" if any(child.type == "nil" for child in parent.named_children) else "other"


def _declaration_role(node: Node, whole: Node, parent: Node) -> Role:
    if node in parent.children_by_field_name("name"):
        return "declaration"
    is_value = parent.type in ("var_spec", "const_spec") and whole != parent.child_by_field_name("type")
    return "assignment" if is_value else "type"


def _assignment_role(_node: Node, _whole: Node, _parent: Node) -> Role:
    return "assignment"


def _type_role(_node: Node, _whole: Node, _parent: Node) -> Role:
    return "type"


def _label_role(_node: Node, _whole: Node, _parent: Node) -> Role:
    return "label"


_ROLES = {
    "call_expression": _call_role,
    "argument_list": _argument_role,
    "unary_expression": _unary_role,
    "binary_expression": _binary_role,
    "short_var_declaration": _assignment_role,
    "assignment_statement": _assignment_role,
    "parameter_declaration": _declaration_role,
    "variadic_parameter_declaration": _declaration_role,
    "field_declaration": _declaration_role,
    "function_declaration": _declaration_role,
    "method_declaration": _declaration_role,
    "method_elem": _declaration_role,
    "var_spec": _declaration_role,
    "const_spec": _declaration_role,
    "type_spec": _declaration_role,
    "labeled_statement": _label_role,
    "break_statement": _label_role,
    "continue_statement": _label_role,
    "goto_statement": _label_role,
    "pointer_type": _type_role,
    "channel_type": _type_role,
}
