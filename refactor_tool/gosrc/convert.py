"""Turn tree-sitter nodes into the plain values of `ast`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal

from refactor_tool.gosrc import ast
from refactor_tool.gosrc.depth import MOST_NESTED
from refactor_tool.model import Span

if TYPE_CHECKING:
    from tree_sitter import Node

#: Makes a span or another record without looking at what it is made of.
_unchecked: Any = tuple.__new__
#: Longer ones are for what refuses depth.
_MOST_DOTS = 20
#: Names with dots between them and nothing else, in ASCII, so that bytes are characters.
_DOTTED = re.compile(rb"[A-Za-z_][A-Za-z_0-9]*(?:\.[A-Za-z_][A-Za-z_0-9]*)+")
_LITERALS = frozenset(
    {
        "int_literal",
        "float_literal",
        "imaginary_literal",
        "rune_literal",
        "interpreted_string_literal",
        "raw_string_literal",
    }
)
_IDENTS = frozenset(
    {
        "identifier",
        "type_identifier",
        "field_identifier",
        "package_identifier",
        "nil",
        "true",
        "false",
        "iota",
        "blank_identifier",
        "label_name",
    }
)


class Converter:
    """Convert nodes of one file.

    What lies in more than `MOST_NESTED` expressions becomes an `OtherExpr` without children: a chain, such as a sum of
    a thousand strings, is that deep without a bracket, and must not stop who asks about something else in its function.
    """

    def __init__(self, data: bytes, depth: int = 0) -> None:
        self.data = data
        self._depth = depth

    # --- declarations -----------------------------------------------------------------------------

    def decl(self, node: Node, doc: Span | None) -> ast.Decl:
        """Return a declaration at file level: a function without its body, one type, or all of a `var` or `const`."""
        match node.type:
            case "function_declaration" | "method_declaration":
                return self.func(node, doc)
            case "type_declaration":
                spec = next(child for child in node.named_children if child.type in ("type_spec", "type_alias"))
                return self._type_spec(spec, _span(node), doc)
            case "type_spec" | "type_alias":
                return self._type_spec(node, _span(node), doc)
            case _:
                return self._var_decl(node, doc)

    def func(self, node: Node, doc: Span | None) -> ast.FuncDecl:
        """Return a function or method without its body."""
        name = _field(node, "name")
        parameters = _field(node, "parameters")
        result = node.child_by_field_name("result")
        receiver_list = node.child_by_field_name("receiver")
        receivers = self.params(receiver_list) if receiver_list is not None else ()
        receiver = receivers[0] if receivers else None
        body = node.child_by_field_name("body")
        end = (result or parameters).end_byte
        return ast.FuncDecl(
            span=_span(node),
            doc=doc,
            name=self.text(name),
            name_span=_span(name),
            receiver=receiver,
            receiver_type=_base_name(receiver.type) if receiver is not None else "",
            params=self.params(parameters),
            params_span=_inner(parameters),
            results=self._results(result),
            results_span=_span(result) if result is not None else None,
            signature=Span(node.start_byte, end),
            body_span=_span(body) if body is not None else None,
            body=None,
        )

    def _type_spec(self, spec: Node, span: Span, doc: Span | None) -> ast.TypeDecl:
        name = _field(spec, "name")
        return ast.TypeDecl(span, doc, self.text(name), _span(name), self.expr(_field(spec, "type")))

    def _var_decl(self, node: Node, doc: Span | None) -> ast.VarDecl:
        keyword: Literal["var", "const"] = "const" if node.type == "const_declaration" else "var"
        return ast.VarDecl(_span(node), doc, keyword, self._var_specs(node))

    def _var_specs(self, node: Node) -> tuple[ast.VarSpec, ...]:
        specs: list[ast.VarSpec] = []
        for child in node.named_children:
            if child.type in ("var_spec_list", "const_spec_list"):
                specs.extend(self._var_specs(child))
            elif child.type in ("var_spec", "const_spec"):
                type_ = child.child_by_field_name("type")
                value = child.child_by_field_name("value")
                specs.append(
                    ast.VarSpec(
                        span=_span(child),
                        names=tuple(self._ident(n) for n in child.children_by_field_name("name") if n.is_named),
                        type=self.expr(type_) if type_ is not None else None,
                        values=self._exprs(value),
                    )
                )
        return tuple(specs)

    def params(self, node: Node) -> tuple[ast.Param, ...]:
        out = []
        for child in node.named_children:
            if child.type in ("parameter_declaration", "variadic_parameter_declaration"):
                names = tuple(self._ident(n) for n in child.children_by_field_name("name") if n.is_named)
                variadic = child.type == "variadic_parameter_declaration"
                out.append(ast.Param(_span(child), names, self.expr(_field(child, "type")), variadic))
        return tuple(out)

    def _results(self, node: Node | None) -> tuple[ast.Param, ...]:
        if node is None:
            return ()
        if node.type == "parameter_list":
            return self.params(node)
        return (ast.Param(_span(node), (), self.expr(node)),)

    # --- statements -------------------------------------------------------------------------------

    def block(self, node: Node) -> ast.Block:
        depth = self._depth
        return ast.Block(_span(node), lambda: tuple(Converter(self.data, depth).stmts(node)))

    def stmts(self, node: Node) -> Iterator[ast.Stmt]:
        """Yield the statements directly below a block or clause."""
        for child in node.named_children:
            if child.type == "statement_list":
                yield from (self.stmt(inner) for inner in child.named_children if inner.type != "comment")

    def stmt(self, node: Node) -> ast.Stmt:
        kind = node.type
        span = _span(node)
        make = _STMTS.get(kind)
        return make(self, node, span) if make is not None else ast.OtherStmt(span, kind)

    def _simple(self, node: Node | None) -> ast.Stmt | None:
        return self.stmt(node) if node is not None else None

    def _expr_stmt(self, node: Node, span: Span) -> ast.Stmt:
        return ast.ExprStmt(span, self.expr(node.named_children[0]))

    def _assign(self, node: Node, span: Span) -> ast.Stmt:
        operator = node.child_by_field_name("operator")
        op = self.text(operator) if operator is not None else ":="
        return ast.Assign(span, self._exprs(_field(node, "left")), op, self._exprs(_field(node, "right")))

    def _receive(self, node: Node, span: Span) -> ast.Stmt:
        left = node.child_by_field_name("left")
        right = self.expr(_field(node, "right"))
        if left is None:
            return ast.ExprStmt(span, right)
        between = self.data[left.end_byte : _field(node, "right").start_byte].strip()
        return ast.Assign(span, self._exprs(left), ":=" if between == b":=" else "=", (right,))

    def _var_stmt(self, node: Node, span: Span) -> ast.Stmt:
        return ast.VarStmt(span, "const" if node.type == "const_declaration" else "var", self._var_specs(node))

    def _if(self, node: Node, _span_: Span) -> ast.Stmt:
        # from the last `else if` back, since a chain may have more links than Python has room for calls
        chain = [node]
        while (other := chain[-1].child_by_field_name("alternative")) is not None and other.type == "if_statement":
            chain.append(other)
        else_: ast.Block | ast.If | None = self.block(other) if other is not None else None
        for link in reversed(chain[1:]):
            else_ = self._link(link, else_)
        return self._link(node, else_)

    def _link(self, node: Node, else_: ast.Block | ast.If | None) -> ast.If:
        return ast.If(
            _span(node),
            self._simple(node.child_by_field_name("initializer")),
            self.expr(_field(node, "condition")),
            self.block(_field(node, "consequence")),
            else_,
        )

    def _for(self, node: Node, span: Span) -> ast.Stmt:
        body = _field(node, "body")
        header = Span(min(node.start_byte + 3, body.start_byte), body.start_byte)
        exprs: list[ast.Expr] = []
        for child in node.named_children:
            if child.type == "range_clause":
                exprs.append(self.expr(_field(child, "right")))
            elif child.type == "for_clause":
                condition = child.child_by_field_name("condition")
                if condition is not None:
                    exprs.append(self.expr(condition))
            elif child.type not in ("block", "comment"):
                exprs.append(self.expr(child))
        return ast.For(span, header, tuple(exprs), self.block(body))

    def _select(self, node: Node, span: Span) -> ast.Stmt:
        return ast.Select(span, tuple(self._cases(node)))

    def _switch(self, node: Node, span: Span) -> ast.Stmt:
        return ast.Switch(span, tuple(self._cases(node)))

    def _cases(self, node: Node) -> Iterator[ast.Case]:
        for child in node.named_children:
            if child.type not in ("communication_case", "expression_case", "type_case", "default_case"):
                continue
            comm = child.child_by_field_name("communication")
            exprs = self._exprs(child.child_by_field_name("value"))
            default = child.type == "default_case"
            yield ast.Case(_span(child), self._comm(comm), default, exprs, tuple(self.stmts(child)))

    def _comm(self, node: Node | None) -> ast.Stmt | None:
        if node is None:
            return None
        if node.type == "receive_statement":
            return self._receive(node, _span(node))
        return self.stmt(node)

    def _go(self, node: Node, span: Span) -> ast.Stmt:
        return ast.Go(span, self.expr(node.named_children[0]))

    def _defer(self, node: Node, span: Span) -> ast.Stmt:
        return ast.Defer(span, self.expr(node.named_children[0]))

    def _return(self, node: Node, span: Span) -> ast.Stmt:
        values = next((child for child in node.named_children if child.type == "expression_list"), None)
        return ast.Return(span, self._exprs(values))

    def _labeled(self, node: Node, span: Span) -> ast.Stmt:
        label = _field(node, "label")
        inner = next((child for child in node.named_children if child.type not in ("label_name", "comment")), None)
        return ast.Labeled(span, self.text(label), self._simple(inner))

    def _branch(self, node: Node, span: Span) -> ast.Stmt:
        label = next((child for child in node.named_children if child.type == "label_name"), None)
        return ast.Branch(span, node.type.removesuffix("_statement"), self.text(label) if label is not None else "")

    def _send(self, node: Node, span: Span) -> ast.Stmt:
        return ast.Send(span, self.expr(_field(node, "channel")), self.expr(_field(node, "value")))

    def _block_stmt(self, node: Node, _span_: Span) -> ast.Stmt:
        return self.block(node)

    # --- expressions ------------------------------------------------------------------------------

    def _exprs(self, node: Node | None) -> tuple[ast.Expr, ...]:
        if node is None:
            return ()
        if node.type != "expression_list":
            return (self.expr(node),)
        return tuple(self.expr(child) for child in node.named_children if child.type != "comment")

    def expr(self, node: Node) -> ast.Expr:
        kind = node.type
        if kind in _IDENTS:
            return self._ident(node)
        span = _span(node)
        if kind in _LITERALS:
            return ast.Literal_(span, kind, self.text(node))
        if self._depth == MOST_NESTED:
            return ast.OtherExpr(span, kind, ())
        self._depth += 1
        found = _EXPRS.get(kind, Converter._other)(self, node, span)
        self._depth -= 1
        return found

    def _other(self, node: Node, span: Span) -> ast.Expr:
        children = tuple([self.expr(child) for child in node.named_children if child.type != "comment"])
        return ast.OtherExpr(span, node.type, children)

    def _selector(self, node: Node, span: Span) -> ast.Expr:
        if _DOTTED.fullmatch(self.data, *span) is not None and self.data.count(b".", *span) < _MOST_DOTS:
            return self._dotted(span)
        qualified = node.type == "qualified_type"
        x, name = ("package", "name") if qualified else ("operand", "field")
        field = _field(node, name)
        return ast.Selector(span, self.expr(_field(node, x)), self.text(field), _span(field))

    def _dotted(self, span: Span) -> ast.Expr:
        """Return `a.b.c` by its text: two thirds of all nodes are in such names."""
        start = span.start
        first, *names = self.data[start : span.end].decode().split(".")
        end = start + len(first)
        found: ast.Expr = _unchecked(ast.Ident, (_unchecked(Span, (start, end)), first))
        for name in names:
            at, end = end + 1, end + 1 + len(name)
            found = _unchecked(ast.Selector, (_unchecked(Span, (start, end)), found, name, _unchecked(Span, (at, end))))
        return found

    def _call(self, node: Node, span: Span) -> ast.Expr:
        arguments = _field(node, "arguments")
        args: list[ast.Expr] = []
        ellipsis = False
        for child in arguments.named_children:
            if child.type == "variadic_argument":
                ellipsis = True
                args.append(self.expr(child.named_children[0]))
            elif child.type != "comment":
                args.append(self.expr(child))
        return ast.Call(span, self.expr(_field(node, "function")), tuple(args), _inner(arguments), ellipsis)

    def _func_lit(self, node: Node, span: Span) -> ast.Expr:
        results = self._results(node.child_by_field_name("result"))
        return ast.FuncLit(span, self.params(_field(node, "parameters")), results, self.block(_field(node, "body")))

    def _composite(self, node: Node, span: Span) -> ast.Expr:
        return ast.Composite(span, self.expr(_field(node, "type")), self._elements(_field(node, "body")))

    def _elided(self, node: Node, span: Span) -> ast.Expr:
        return ast.Composite(span, None, self._elements(node))

    def _elements(self, body: Node) -> tuple[ast.Element, ...]:
        out = []
        for child in body.named_children:
            if child.type == "keyed_element":
                key, value = _field(child, "key"), _field(child, "value")
                out.append(ast.Element(_span(child), self._element(key), self._element(value)))
            elif child.type == "literal_element":
                out.append(ast.Element(_span(child), None, self._element(child)))
        return tuple(out)

    def _element(self, node: Node) -> ast.Expr:
        return self.expr(node.named_children[0] if node.type == "literal_element" else node)

    def _unary(self, node: Node, span: Span) -> ast.Expr:
        return ast.Unary(span, self.text(_field(node, "operator")), self.expr(_field(node, "operand")))

    def _pointer(self, node: Node, span: Span) -> ast.Expr:
        return ast.Unary(span, "*", self.expr(node.named_children[0]))

    def _binary(self, node: Node, span: Span) -> ast.Expr:
        op = self.text(_field(node, "operator"))
        return ast.Binary(span, op, self.expr(_field(node, "left")), self.expr(_field(node, "right")))

    def _paren(self, node: Node, span: Span) -> ast.Expr:
        return ast.Paren(span, self.expr(node.named_children[0]))

    def _chan(self, node: Node, span: Span) -> ast.Expr:
        text = self.data[node.start_byte : _field(node, "value").start_byte].replace(b" ", b"")
        direction: Literal["both", "recv", "send"] = "both"
        if text.startswith(b"<-"):
            direction = "recv"
        elif b"<-" in text:
            direction = "send"
        return ast.ChanType(span, direction, self.expr(_field(node, "value")))

    def _func_type(self, node: Node, span: Span) -> ast.Expr:
        results = self._results(node.child_by_field_name("result"))
        return ast.FuncType(span, self.params(_field(node, "parameters")), results)

    def _struct(self, node: Node, span: Span) -> ast.Expr:
        fields = []
        for child in node.named_children[0].named_children if node.named_children else ():
            if child.type == "field_declaration":
                tag = child.child_by_field_name("tag")
                names = tuple(self._ident(n) for n in child.children_by_field_name("name") if n.is_named)
                type_ = self.expr(_field(child, "type"))
                if not names and self.data[child.start_byte : child.start_byte + 1] == b"*":
                    type_ = ast.Unary(Span(child.start_byte, type_.span.end), "*", type_)
                fields.append(ast.Field(_span(child), names, type_, _span(tag) if tag is not None else None))
        return ast.StructType(span, tuple(fields))

    def _interface(self, node: Node, span: Span) -> ast.Expr:
        methods: list[ast.Method] = []
        embeds: list[ast.Expr] = []
        for child in node.named_children:
            if child.type == "method_elem":
                name, params = _field(child, "name"), _field(child, "parameters")
                methods.append(
                    ast.Method(
                        _span(child),
                        self.text(name),
                        _span(name),
                        self.params(params),
                        _inner(params),
                        self._results(child.child_by_field_name("result")),
                    )
                )
            elif child.type == "type_elem":
                embeds.extend(self.expr(inner) for inner in child.named_children)
        return ast.InterfaceType(span, tuple(methods), tuple(embeds))

    def _ident(self, node: Node) -> ast.Ident:
        # every second node is one, which is why nothing is called here that can be done in place
        start, end = node.start_byte, node.end_byte
        name = self.data[start:end].decode("utf-8", "surrogateescape")
        ident: ast.Ident = _unchecked(ast.Ident, (_unchecked(Span, (start, end)), name))
        return ident

    def text(self, node: Node) -> str:
        return self.data[node.start_byte : node.end_byte].decode("utf-8", "surrogateescape")


def doc_of(node: Node) -> Span | None:
    """Return the comment lines that end on the line directly before `node`, as one span."""
    first: Node | None = None
    below = node
    previous = node.prev_sibling
    while previous is not None and previous.type in ("comment", "\n"):
        if previous.type == "comment":
            if previous.end_point.row + 1 != below.start_point.row or _is_trailing(previous):
                break
            first = below = previous
        previous = previous.prev_sibling
    last = node.prev_sibling
    while last is not None and last.type == "\n":
        last = last.prev_sibling
    return Span(first.start_byte, last.end_byte) if first is not None and last is not None else None


def _is_trailing(comment: Node) -> bool:
    """Tell whether a comment shares its line with code before it."""
    before = comment.prev_sibling
    while before is not None and before.type == "\n":
        before = before.prev_sibling
    return before is not None and before.type != "comment" and before.end_point.row == comment.start_point.row


def _base_name(type_: ast.Expr) -> str:
    match type_:
        case ast.Ident(name=name):
            return name
        case ast.Unary(op="*", x=inner) | ast.Paren(x=inner):
            return _base_name(inner)
        case ast.OtherExpr(kind="generic_type", children=children) if children:
            return _base_name(children[0])
        case _:
            return ""


def _span(node: Node) -> Span:
    span: Span = _unchecked(Span, (node.start_byte, node.end_byte))
    return span


def _inner(node: Node) -> Span:
    """Return what lies between a node's parentheses."""
    return Span(node.start_byte + 1, max(node.start_byte + 1, node.end_byte - 1))


def _field(node: Node, name: str) -> Node:
    child = node.child_by_field_name(name)
    if child is None:
        raise ValueError(f"{node.type} at byte {node.start_byte} has no {name}")
    return child


_STMTS: dict[str, Callable[[Converter, Node, Span], ast.Stmt]] = {
    "expression_statement": Converter._expr_stmt,
    "assignment_statement": Converter._assign,
    "short_var_declaration": Converter._assign,
    "var_declaration": Converter._var_stmt,
    "const_declaration": Converter._var_stmt,
    "if_statement": Converter._if,
    "for_statement": Converter._for,
    "select_statement": Converter._select,
    "expression_switch_statement": Converter._switch,
    "type_switch_statement": Converter._switch,
    "go_statement": Converter._go,
    "defer_statement": Converter._defer,
    "return_statement": Converter._return,
    "labeled_statement": Converter._labeled,
    "break_statement": Converter._branch,
    "continue_statement": Converter._branch,
    "goto_statement": Converter._branch,
    "send_statement": Converter._send,
    "block": Converter._block_stmt,
}
_EXPRS: dict[str, Callable[[Converter, Node, Span], ast.Expr]] = {
    "selector_expression": Converter._selector,
    "qualified_type": Converter._selector,
    "call_expression": Converter._call,
    "func_literal": Converter._func_lit,
    "composite_literal": Converter._composite,
    "literal_value": Converter._elided,
    "unary_expression": Converter._unary,
    "pointer_type": Converter._pointer,
    "binary_expression": Converter._binary,
    "parenthesized_expression": Converter._paren,
    "parenthesized_type": Converter._paren,
    "channel_type": Converter._chan,
    "function_type": Converter._func_type,
    "struct_type": Converter._struct,
    "interface_type": Converter._interface,
}
