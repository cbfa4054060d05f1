"""Find where an identifier inside a file is declared, by Go's block structure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal

from refactor_tool.gosrc.depth import ancestors
from refactor_tool.record import record

if TYPE_CHECKING:
    from tree_sitter import Node

LocalKind = Literal["var", "param", "result", "receiver", "const", "type", "label"]

_SCOPES = frozenset(
    (
        *("if_statement", "for_statement", "for_clause", "communication_case"),
        *("expression_switch_statement", "type_switch_statement"),
    )
)
_FUNCTIONS = frozenset(("func_literal", "function_declaration", "method_declaration", "method_elem"))
_DECLARING = frozenset(
    ("short_var_declaration", "var_declaration", "const_declaration", "type_declaration", "labeled_statement")
)


@record
class Declared:
    """A declaration inside a function: the declaring identifier and the node that declares it.

    `index` is the place of the name among the names of the declaring node.
    """

    name: Node
    owner: Node
    index: int
    kind: LocalKind


class Scopes:
    """What names mean inside the functions of one file. What a block or a signature declares is read once."""

    def __init__(self) -> None:
        self._known: dict[int, dict[bytes, list[tuple[int, Declared]]]] = {}

    def local(self, node: Node) -> Declared | None:
        """Return what declares the name of the identifier `node` inside its function, None for one from outside."""
        return self.visible(node, node.text or b"")

    def holds(self, node: Node, name: bytes) -> bool:
        """Tell whether a local declaration of `name` is visible at `node`."""
        return self.visible(node, name) is not None

    def visible(self, node: Node, name: bytes) -> Declared | None:
        """Return the local declaration that `name` would mean at `node`, None where there is none."""
        at = node.start_byte
        child: Node = node
        for parent in ancestors(node):
            kind = parent.type
            found = None
            if kind == "statement_list":
                found = self._in_list(parent, name, at)
            elif kind in _FUNCTIONS:
                found = self._in_signature(parent, child, name, at)
            elif kind in _SCOPES:
                found = next((each for each in _declared_in(parent, child, at) if each.name.text == name), None)
            if found is not None:
                return found
            child = parent
        return None

    def _in_list(self, block: Node, name: bytes, at: int) -> Declared | None:
        """Return the latest declaration of `name` in a statement that ends by `at`, or the one that stands there."""
        for end, found in reversed(self._named(block, _of_statements).get(name, ())):
            if end <= at or found.name.start_byte == at:
                return found
        return None

    def _in_signature(self, function: Node, child: Node, name: bytes, at: int) -> Declared | None:
        # a parameter is in scope in the body only: in `config *config.Node` the type is the package's
        for _, found in self._named(function, _of_signature).get(name, ()):
            if child.type == "block" or found.name.start_byte == at:
                return found
        return None

    def _named(
        self, node: Node, declared: Callable[[Node], Iterator[tuple[int, Declared]]]
    ) -> dict[bytes, list[tuple[int, Declared]]]:
        """Return what a block or function declares, by name, each with the byte where that ends."""
        names = self._known.get(node.id)
        if names is None:
            names = {}
            for end, found in declared(node):
                names.setdefault(found.name.text or b"", []).append((end, found))
            self._known[node.id] = names
        return names


def _of_statements(block: Node) -> Iterator[tuple[int, Declared]]:
    for stmt in block.named_children:
        if stmt.type in _DECLARING:
            end = stmt.end_byte
            for found in declarations(stmt):
                yield end, found


def _of_signature(function: Node) -> Iterator[tuple[int, Declared]]:
    fields: tuple[tuple[str, LocalKind], ...] = (
        ("parameters", "param"),
        ("result", "result"),
        ("receiver", "receiver"),
    )
    for field, kind in fields:
        params = function.child_by_field_name(field)
        if params is None or params.type != "parameter_list":
            continue
        for param in params.named_children:
            for index, name in enumerate(n for n in param.children_by_field_name("name") if n.is_named):
                yield name.end_byte, Declared(name, param, index, kind)


def _declared_in(parent: Node, child: Node, at: int) -> Iterator[Declared]:
    """Yield what `parent` declares for its part `child`."""
    match parent.type:
        case "if_statement" | "expression_switch_statement" | "for_clause":
            yield from _initializer(parent, at)
        case "type_switch_statement":
            yield from _initializer(parent, at)
            alias = parent.child_by_field_name("alias")
            if alias is not None and child.type in ("type_case", "default_case"):
                yield from _listed(alias, parent, "var")
        case "for_statement":
            for part in parent.named_children:
                if part.type == "for_clause":
                    yield from _initializer(part, at)
                elif part.type == "range_clause" and part.end_byte <= at:
                    left = part.child_by_field_name("left")
                    if left is not None and any(token.type == ":=" for token in part.children):
                        yield from _listed(left, part, "var")
        case "communication_case":
            comm = parent.child_by_field_name("communication")
            if comm is not None and comm.end_byte <= at and comm.type == "receive_statement":
                left = comm.child_by_field_name("left")
                if left is not None and any(token.type == ":=" for token in comm.children):
                    yield from _listed(left, comm, "var")


def declarations(stmt: Node) -> Iterator[Declared]:
    """Yield what one statement declares in the block it stands in."""
    match stmt.type:
        case "short_var_declaration":
            left = stmt.child_by_field_name("left")
            if left is not None:
                yield from _listed(left, stmt, "var")
        case "var_declaration" | "const_declaration":
            kind: LocalKind = "var" if stmt.type == "var_declaration" else "const"
            for spec in _specs(stmt):
                for index, name in enumerate(n for n in spec.children_by_field_name("name") if n.is_named):
                    yield Declared(name, spec, index, kind)
        case "type_declaration":
            for spec in stmt.named_children:
                type_name = spec.child_by_field_name("name")
                if type_name is not None:
                    yield Declared(type_name, spec, 0, "type")
        case "labeled_statement":
            inner = stmt.named_children[-1]
            if inner.type != "label_name":
                yield from declarations(inner)


def _own_name(stmt: Node, at: int) -> Iterator[Declared]:
    """Yield the declaration whose very name stands at `at`, so that a declaring identifier resolves to itself."""
    for found in declarations(stmt):
        if found.name.start_byte == at:
            yield found


def _initializer(node: Node, at: int) -> Iterator[Declared]:
    init = node.child_by_field_name("initializer")
    if init is not None:
        if init.end_byte <= at:
            yield from declarations(init)
        elif init.start_byte <= at:
            yield from _own_name(init, at)


def _listed(names: Node, owner: Node, kind: LocalKind) -> Iterator[Declared]:
    for index, name in enumerate(child for child in names.named_children if child.type != "comment"):
        if name.type == "identifier":
            yield Declared(name, owner, index, kind)


def _specs(stmt: Node) -> Iterator[Node]:
    for child in stmt.named_children:
        if child.type in ("var_spec_list", "const_spec_list"):
            yield from _specs(child)
        elif child.type in ("var_spec", "const_spec"):
            yield child
