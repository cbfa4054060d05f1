"""Parse Go bytes with tree-sitter and give out file skeletons. The pinned grammar decides output bytes."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from refactor_tool.gosrc import ast
from refactor_tool.gosrc.convert import Converter, doc_of
from refactor_tool.gosrc.depth import MEND, MOST_NESTED, is_too_deep
from refactor_tool.gosrc.reparse import reparse
from refactor_tool.gosrc.scope import Scopes
from refactor_tool.gosrc.words import places_before_dot, word_places
from refactor_tool.model import LineIndex, Snapshot, Span, Unparsable
from refactor_tool.record import record, replace

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Query, Tree

    from refactor_tool.gosrc import tree as facts

_GENERATED = re.compile(rb"^// Code generated .* DO NOT EDIT\.$", re.MULTILINE)
_GO_BUILD = re.compile(rb"^//go:build[ \t]+(.*?)\r?$", re.MULTILINE)
_PLUS_BUILD = re.compile(rb"^// \+build[ \t]+(.*?)\r?$", re.MULTILINE)
_RECEIVER = re.compile(r"(\w+)\s*(?:\[[^\]]*\])?\s*\)+\Z")
_GOOS = (
    "aix android darwin dragonfly freebsd hurd illumos ios js linux nacl netbsd openbsd"
    " plan9 solaris wasip1 windows zos"
).split()
_GOARCH = ("386 amd64 arm arm64 loong64 mips mips64 mips64le mipsle ppc64 ppc64le riscv64 s390x sparc64 wasm").split()


@record
class SyntaxFault:
    """One place that is not Go: bytes, and what is wrong there."""

    span: Span
    message: str


@record
class Head:
    """What a declaration at file level declares, without the cost of converting it."""

    node: Node
    names: tuple[str, ...]
    receiver: str

    @property
    def start(self) -> int:
        return self.node.start_byte


#: Everything that the proof looks at, found in one pass below Python.
_MARKS = """[
  (statement_list) @list
  (struct_type) @struct
  (raw_string_literal) @text
  (comment) @text
  (selector_expression operand: (identifier) @qualifier)
  (qualified_type package: (package_identifier) @qualifier)
]"""
#: Nodes by mark, in order: statement lists, struct types, raw strings and comments, the `x` of every `x.y`.
Marks: TypeAlias = Mapping[str, Sequence["Node"]]


class Parsed:
    """The tree of one blob and what was worked out from it; only gosrc looks inside."""

    def __init__(self, data: bytes, tree: Tree, marks: Query) -> None:
        self.data = data
        self.tree = tree
        self.root = tree.root_node
        self.scopes = Scopes()
        self._query = marks
        self._uses: dict[str, bool] = {}
        self._imports: tuple[ast.ImportSpec, ...] | None = None
        self._heads: tuple[Head, ...] | None = None
        self._decls: dict[int, ast.Decl] = {}
        self._functions: dict[int, ast.FuncDecl] = {}

    def marks(self, parts: Iterable[Node]) -> Marks:
        """Return what is marked at and below some nodes."""
        from tree_sitter import QueryCursor

        found: dict[str, list[Node]] = {}
        for part in parts:
            for name, nodes in QueryCursor(self._query).captures(part).items():
                found.setdefault(name, []).extend(nodes)
        return found

    def qualifiers(self, name: bytes) -> Iterator[Node]:
        """Yield the `x` of every `x.y` with that name, in order."""
        imports = self.imports()
        for place in places_before_dot(self.data, name, imports[-1].span.end if imports else 0):
            node = self.root.descendant_for_byte_range(place.start, place.end - 1)
            if node is not None and (node.start_byte, node.end_byte) == place and _is_qualifier(node):
                yield node

    def uses(self, local: str) -> bool:
        """Tell whether the file uses an imported package by its local name, in code and not shadowed."""
        if local not in self._uses:
            name = local.encode()
            self._uses[local] = any(
                node.type == "package_identifier" or not self._is_shadowed(node, name) for node in self.qualifiers(name)
            )
        return self._uses[local]

    def _is_shadowed(self, node: Node, name: bytes) -> bool:
        """Tell whether a local declaration of `name` is visible at `node`; a name before one dot declares nothing."""
        data, part = self.data, self.root.first_child_for_byte(node.start_byte)
        start, end = (part.start_byte, part.end_byte) if part is not None else (0, len(data))
        may_declare = any(
            not data.startswith(b".", place.end) or data.startswith(b"...", place.end)
            for place in word_places(data, name, start, end)
        )
        return may_declare and self.scopes.holds(node, name)

    def imports(self) -> tuple[ast.ImportSpec, ...]:
        if self._imports is None:
            convert = Converter(self.data)
            nodes = (node for node in self.root.children if node.type == "import_declaration")
            self._imports = tuple(spec for node in nodes for spec in _import_specs(node, convert))
        return self._imports

    def heads(self) -> tuple[Head, ...]:
        """Return the declarations at file level but imports, in order; the specs of a grouped one each."""
        if self._heads is None:
            self._heads = tuple(head for node in self.root.children for head in _heads(node))
        return self._heads

    def decl(self, head: Head) -> ast.Decl:
        """Return the declaration behind a head, without its body."""
        known = self._decls.get(head.start)
        if known is None:
            known = Converter(self.data).decl(head.node, self.doc(head))
            self._decls[head.start] = known
        return known

    def function(self, decl: ast.FuncDecl) -> ast.FuncDecl:
        """Return a function or method with its body."""
        known = self._functions.get(decl.span.start)
        if known is None:
            at = bisect_left(self.heads(), decl.span.start, key=lambda head: head.start)
            body = self.heads()[at].node.child_by_field_name("body")
            known = replace(decl, body=Converter(self.data).block(body) if body is not None else None)
            self._functions[decl.span.start] = known
        return known

    def doc(self, head: Head) -> Span | None:
        return doc_of(head.node)


class ParseCache:
    """Parsed blobs by their bytes, shared by the trees of one run, and the facts of the last of these."""

    def __init__(self) -> None:
        self.last: facts.Tree | None = None
        self._tools: tuple[Parser, Query] | None = None
        self._parsed: dict[bytes, Parsed] = {}

    def parse(self, data: bytes, old: Parsed | None = None) -> Parsed:
        """Return the parsed blob; with `old`, an earlier version of the file, what both have is not parsed again."""
        known = self._parsed.get(data)
        if known is None:
            known = self.parse_once(data, old)
            self._parsed[data] = known
        return known

    def keep(self, snapshot: Snapshot) -> None:
        """Forget what is not in a snapshot, so that memory is bounded by one tree however many are looked at."""
        blobs = {file.data for file in snapshot.held()}
        self._parsed = {data: parsed for data, parsed in self._parsed.items() if data in blobs}

    def parse_once(self, data: bytes, old: Parsed | None = None) -> Parsed:
        """Parse bytes that nobody will ask for again; `old` is as for `parse`."""
        if self._tools is None:
            # imported here: a tree in which no file needs parsing must not pay for the grammar
            from tree_sitter import Language, Parser, Query

            language = Language(_grammar())
            self._tools = Parser(language), Query(language, _MARKS)
        parser, marks = self._tools
        tree = reparse(parser, old.tree, old.data, data) if old is not None else parser.parse(data)
        return Parsed(data, tree, marks)


def _is_qualifier(node: Node) -> bool:
    parent = node.parent
    if parent is None or parent.type not in ("selector_expression", "qualified_type"):
        return False
    field = "operand" if parent.type == "selector_expression" else "package"
    return node.type in ("identifier", "package_identifier") and parent.child_by_field_name(field) == node


def _grammar() -> object:
    """Return Go's grammar from the library in `tree_sitter_go`.

    The package itself is not run: it loads what finds its query files, which takes as long as to parse ten files.
    """
    from importlib.machinery import PathFinder
    from importlib.util import find_spec, module_from_spec

    package = find_spec("tree_sitter_go")
    folders = package.submodule_search_locations if package is not None else None
    library = PathFinder.find_spec("tree_sitter_go._binding", folders)
    if library is None or library.loader is None:
        raise ModuleNotFoundError("No module named 'tree_sitter_go'", name="tree_sitter_go")
    module = module_from_spec(library)
    library.loader.exec_module(module)
    grammar: object = module.language()
    return grammar


def faults(parsed: Parsed) -> tuple[SyntaxFault, ...]:
    """Return every ERROR and MISSING place, in order; nested ones once."""
    out: list[SyntaxFault] = []
    stack = [parsed.root]
    while stack:
        node = stack.pop()
        if not node.has_error:
            continue
        if node.is_missing:
            out.append(SyntaxFault(Span(node.start_byte, node.end_byte), f"missing {node.type!r}"))
        elif node.is_error:
            text = parsed.data[node.start_byte : node.end_byte].split(b"\n", 1)[0][:40]
            shown = text.decode("utf-8", "replace")
            out.append(SyntaxFault(Span(node.start_byte, node.end_byte), f"unexpected {shown!r}"))
        else:
            stack.extend(reversed(node.children))
    return tuple(sorted(out, key=lambda fault: fault.span))


def require_go(path: str, parsed: Parsed) -> None:
    """Raise `Unparsable` naming file, line and what is wrong unless the blob is UTF-8 Go source of a sane depth."""
    if is_too_deep(parsed.data):
        raise Unparsable(f"brackets nested deeper than {MOST_NESTED} levels", MEND, path=path)
    try:
        parsed.data.decode("utf-8")
    except UnicodeDecodeError as error:
        at = LineIndex(parsed.data).position(error.start)
        what = f"not UTF-8 text (byte {error.start})"
        raise Unparsable(what, "convert the file to UTF-8", path=path, at=at) from None
    if parsed.root.has_error:
        found = faults(parsed)
        where = LineIndex(parsed.data).position(found[0].span.start) if found else None
        what = found[0].message if found else "syntax error"
        raise Unparsable(f"does not parse as Go: {what}", MEND, path=path, at=where)


def skeleton(path: str, parsed: Parsed) -> ast.GoFile:
    """Return what a file is, and everything that it imports."""
    data = parsed.data
    clause = next((node for node in parsed.root.children if node.type == "package_clause"), None)
    head = data[: clause.start_byte] if clause is not None else b""
    name = clause.named_children[0].text if clause is not None else None
    return ast.GoFile(
        path=path,
        package=name.decode() if name is not None else "",
        imports=parsed.imports(),
        constraint=_constraint(head),
        goos=_file_goos(path),
        generated=_GENERATED.search(data, 0, 4096) is not None,
        test=path.endswith("_test.go"),
        crlf=b"\r\n" in data[:4096],
    )


def _heads(node: Node) -> Iterator[Head]:
    match node.type:
        case "function_declaration":
            yield Head(node, (_text(node.child_by_field_name("name")),), "")
        case "method_declaration":
            yield Head(node, (_text(node.child_by_field_name("name")),), _receiver(node))
        case "type_declaration":
            specs = [child for child in node.named_children if child.type in ("type_spec", "type_alias")]
            for spec in specs:
                yield Head(node if len(specs) == 1 else spec, (_text(spec.child_by_field_name("name")),), "")
        case "var_declaration" | "const_declaration":
            yield Head(node, tuple(_spec_names(node)), "")


def _spec_names(node: Node) -> Iterator[str]:
    for child in node.named_children:
        if child.type in ("var_spec_list", "const_spec_list"):
            yield from _spec_names(child)
        elif child.type in ("var_spec", "const_spec"):
            yield from (_text(name) for name in child.children_by_field_name("name") if name.is_named)


def _receiver(node: Node) -> str:
    """Return the name of a method's receiver type, pointer and type parameters taken off."""
    found = _RECEIVER.search(_text(node.child_by_field_name("receiver")))
    return found.group(1) if found is not None else ""


def _text(node: Node | None) -> str:
    return node.text.decode("utf-8", "replace") if node is not None and node.text is not None else ""


def _import_specs(node: Node, convert: Converter) -> list[ast.ImportSpec]:
    specs: list[Node] = []
    for child in node.named_children:
        if child.type == "import_spec":
            specs.append(child)
        elif child.type == "import_spec_list":
            specs.extend(inner for inner in child.named_children if inner.type == "import_spec")
    out = []
    for spec in specs:
        path = spec.child_by_field_name("path")
        name = spec.child_by_field_name("name")
        if path is not None:
            text = convert.text(path)[1:-1]
            alias = convert.text(name) if name is not None else None
            out.append(ast.ImportSpec(Span(spec.start_byte, spec.end_byte), text, alias))
    return out


def _constraint(head: bytes) -> str:
    modern = _GO_BUILD.search(head)
    if modern is not None:
        return modern.group(1).decode("utf-8", "replace")
    lines = [line.decode("utf-8", "replace").strip() for line in _PLUS_BUILD.findall(head)]
    return " && ".join(f"({' || '.join(option.replace(',', ' && ') for option in line.split())})" for line in lines)


def _file_goos(path: str) -> str:
    parts = path.rsplit("/", 1)[-1].removesuffix(".go").removesuffix("_test").split("_")[1:]
    if len(parts) >= 2 and parts[-1] in _GOARCH and parts[-2] in _GOOS:
        return parts[-2]
    return parts[-1] if parts and parts[-1] in _GOOS else ""
