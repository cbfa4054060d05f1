"""Find where an identifier inside a file is declared, by Go's block structure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from refactor_tool.gosrc.depth import ancestors
from refactor_tool.record import record

if TYPE_CHECKING:
    from tree_sitter import Node

LocalKind = Literal["var", "param", "result", "receiver", "const", "type", "label"]

#: The kinds of nodes that `_declared_in` and `declarations` know something about: most nodes are of no such kind.
_SCOPES = frozenset(
    (
        *("statement_list", "if_statement", "for_statement", "for_clause", "communication_case"),
        *("expression_switch_statement", "type_switch_statement"),
        *("func_literal", "function_declaration", "method_declaration", "method_elem"),
    )
)
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


def local_declaration(node: Node) -> Declared | None:
    """Return what declares the name of the identifier `node` inside its function, None for a name from outside."""
    return visible_declaration(node, node.text or b"")


def names_in_scope(node: Node, name: bytes) -> bool:
    """Tell whether a local declaration of `name` is visible at `node`."""
    return visible_declaration(node, name) is not None


def visible_declaration(node: Node, name: bytes) -> Declared | None:
    """Return the local declaration that `name` would mean at `node`, None where there is none."""
    at = node.start_byte
    child: Node = node
    for parent in ancestors(node):
        if parent.type in _SCOPES:
            for found in _declared_in(parent, child, at):
                if found.name.text == name:
                    return found
        child = parent
    return None


def _declared_in(parent: Node, child: Node, at: int) -> Iterator[Declared]:
    """Yield what `parent` declares for its part `child`, innermost scope and latest declaration first."""
    match parent.type:
        case "statement_list":
            for stmt in reversed(parent.named_children):
                if stmt.type not in _DECLARING:
                    continue
                if stmt.end_byte <= at:
                    yield from declarations(stmt)
                elif stmt.start_byte <= at < stmt.end_byte:
                    yield from _own_name(stmt, at)
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
        case "func_literal" | "function_declaration" | "method_declaration" | "method_elem":
            # a parameter is in scope in the body only: in `config *config.Node` the type is the package's
            in_body = child.type == "block"
            yield from (found for found in _signature(parent) if in_body or found.name.start_byte == at)


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


def _signature(function: Node) -> Iterator[Declared]:
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
                yield Declared(name, param, index, kind)
