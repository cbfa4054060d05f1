"""Go source as plain values: what codemods match on with `match`.

Every node is frozen and carries its `span` (bytes, half open). Comments are not nodes: ask `Tree.comments_in`. A form
that nothing here needs is an `OtherExpr` or `OtherStmt` with its tree-sitter `kind`, so that no source is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from refactor_tool.model import Span
from refactor_tool.record import record

# --- expressions and types --------------------------------------------------------------------------


@record
class Ident:
    span: Span
    name: str


@record
class Selector:
    """`x.name`; also a qualified type such as `config.Node`."""

    span: Span
    x: Expr
    name: str
    name_span: Span


@record
class Call:
    """`fun(args...)`; `args_span` is the text between the parentheses."""

    span: Span
    fun: Expr
    args: tuple[Expr, ...]
    args_span: Span
    ellipsis: bool = False


@record
class FuncLit:
    span: Span
    params: tuple[Param, ...]
    results: tuple[Param, ...]
    body: Block


@record
class Element:
    """One element of a composite literal, without its comma."""

    span: Span
    key: Expr | None
    value: Expr


@record
class Composite:
    """`T{...}`; `type` is None for an elided inner type."""

    span: Span
    type: Expr | None
    elements: tuple[Element, ...]


@record
class Unary:
    """`op x`; a receive is `<-`, a pointer type or dereference `*`."""

    span: Span
    op: str
    x: Expr


@record
class Binary:
    span: Span
    op: str
    x: Expr
    y: Expr


@record
class Paren:
    span: Span
    x: Expr


@record
class ChanType:
    """`chan T`, `<-chan T` (`recv`) or `chan<- T` (`send`)."""

    span: Span
    direction: Literal["both", "recv", "send"]
    element: Expr


@record
class FuncType:
    span: Span
    params: tuple[Param, ...]
    results: tuple[Param, ...]


@record
class Field:
    """One field line of a struct, without comments; `names` is empty for an embedded field."""

    span: Span
    names: tuple[Ident, ...]
    type: Expr
    tag: Span | None


@record
class StructType:
    span: Span
    fields: tuple[Field, ...]


@record
class Method:
    """One method of an interface."""

    span: Span
    name: str
    name_span: Span
    params: tuple[Param, ...]
    params_span: Span
    results: tuple[Param, ...]


@record
class InterfaceType:
    span: Span
    methods: tuple[Method, ...]
    embeds: tuple[Expr, ...]


@record
class Literal_:
    """A basic literal; `text` as written."""

    span: Span
    kind: str
    text: str


@record
class OtherExpr:
    span: Span
    kind: str
    children: tuple[Expr, ...]


Expr: TypeAlias = (
    Ident
    | Selector
    | Call
    | FuncLit
    | Composite
    | Unary
    | Binary
    | Paren
    | ChanType
    | FuncType
    | StructType
    | InterfaceType
    | Literal_
    | OtherExpr
)


@record
class Param:
    """One parameter, result or receiver declaration: `a, b T`, `T`, `xs ...T`."""

    span: Span
    names: tuple[Ident, ...]
    type: Expr
    variadic: bool = False


# --- statements -------------------------------------------------------------------------------------


class Block:
    """`{ stmts }`, braces included in the span.

    Its statements are made when they are first asked for, once: who follows one place down a function needs but those
    of the blocks around it.
    """

    __slots__ = ("_make", "_stmts", "span")
    __match_args__ = ("span", "stmts")

    def __init__(self, span: Span, make: Callable[[], tuple[Stmt, ...]]) -> None:
        self.span = span
        self._make: Callable[[], tuple[Stmt, ...]] | None = make
        self._stmts: tuple[Stmt, ...] = ()

    @property
    def stmts(self) -> tuple[Stmt, ...]:
        if self._make is not None:
            self._stmts = self._make()
            self._make = None
        return self._stmts

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Block) and self.span == other.span and self.stmts == other.stmts)

    def __hash__(self) -> int:
        return hash(self.span)

    def __repr__(self) -> str:
        return f"Block(span={self.span!r}, stmts={self.stmts!r})"


@record
class ExprStmt:
    span: Span
    x: Expr


@record
class Assign:
    """`lhs op rhs`; `op` is `:=`, `=`, `+=`, …"""

    span: Span
    lhs: tuple[Expr, ...]
    op: str
    rhs: tuple[Expr, ...]


@record
class VarSpec:
    """One `var` or `const` spec: `names [type] [= values]`."""

    span: Span
    names: tuple[Ident, ...]
    type: Expr | None
    values: tuple[Expr, ...]


@record
class VarStmt:
    """A `var` or `const` declaration, local or at file level."""

    span: Span
    keyword: Literal["var", "const"]
    specs: tuple[VarSpec, ...]


@record
class If:
    span: Span
    init: Stmt | None
    cond: Expr
    then: Block
    else_: Block | If | None


@record
class For:
    """Any `for`; `header` is the text between `for` and the body (empty for an endless loop)."""

    span: Span
    header: Span
    exprs: tuple[Expr, ...]
    body: Block


@record
class Case:
    """One clause of a select or switch; `comm` is the select's communication, None for `default` and in a switch."""

    span: Span
    comm: Stmt | None
    default: bool
    exprs: tuple[Expr, ...]
    body: tuple[Stmt, ...]


@record
class Select:
    span: Span
    cases: tuple[Case, ...]


@record
class Switch:
    span: Span
    cases: tuple[Case, ...]


@record
class Go:
    span: Span
    call: Expr


@record
class Defer:
    span: Span
    call: Expr


@record
class Return:
    span: Span
    values: tuple[Expr, ...]


@record
class Labeled:
    span: Span
    label: str
    stmt: Stmt | None


@record
class Branch:
    """`break`, `continue`, `goto`, with its label or ""."""

    span: Span
    keyword: str
    label: str


@record
class Send:
    span: Span
    channel: Expr
    value: Expr


@record
class OtherStmt:
    span: Span
    kind: str


Stmt: TypeAlias = (
    Block
    | ExprStmt
    | Assign
    | VarStmt
    | If
    | For
    | Select
    | Switch
    | Go
    | Defer
    | Return
    | Labeled
    | Branch
    | Send
    | OtherStmt
)

# --- declarations -----------------------------------------------------------------------------------


@record
class FuncDecl:
    """A function or method. `doc` is its doc comment; `signature` runs from `func` to before the body.

    `title` is the name as Go writes it: `run`, `(*Embedded).Kubelet`. `body` is None for a declaration
    without one, and in whatever `Tree` gives out but `Tree.function`.
    """

    span: Span
    doc: Span | None
    name: str
    name_span: Span
    receiver: Param | None
    receiver_type: str
    params: tuple[Param, ...]
    params_span: Span
    results: tuple[Param, ...]
    results_span: Span | None
    signature: Span
    body_span: Span | None
    body: Block | None

    @property
    def title(self) -> str:
        if self.receiver is None:
            return self.name
        star = isinstance(self.receiver.type, Unary)
        return f"(*{self.receiver_type}).{self.name}" if star else f"{self.receiver_type}.{self.name}"


@record
class TypeDecl:
    """`type Name T`, one spec; `span` covers the whole declaration when it holds one spec only."""

    span: Span
    doc: Span | None
    name: str
    name_span: Span
    type: Expr


@record
class VarDecl:
    """A `var` or `const` declaration at file level."""

    span: Span
    doc: Span | None
    keyword: Literal["var", "const"]
    specs: tuple[VarSpec, ...]


Decl: TypeAlias = FuncDecl | TypeDecl | VarDecl


@record
class ImportSpec:
    """One import: `name` is the alias, `.`, `_` or None."""

    span: Span
    path: str
    name: str | None

    @property
    def local(self) -> str:
        """The name the file uses, guessed from the path where there is no alias (Go's `v2` rule included)."""
        if self.name is not None:
            return self.name
        parts = self.path.split("/")
        last = parts[-1]
        if len(parts) > 1 and last[:1] == "v" and last[1:].isdigit():
            last = parts[-2]
        if "." in last and last.rsplit(".", 1)[1][:1] == "v":
            last = last.rsplit(".", 1)[0]
        return last.removeprefix("go-")


@record
class GoFile:
    """What one file is.

    `constraint` is the text of `//go:build` (or the joined `// +build` lines), without the marker; `goos` what the
    file name implies; `generated` as Go's own convention says; `crlf` where lines end in CRLF.
    """

    path: str
    package: str
    imports: tuple[ImportSpec, ...]
    constraint: str
    goos: str
    generated: bool
    test: bool
    crlf: bool


# --- what a name means ------------------------------------------------------------------------------


@record
class PackageObject:
    """A function, type, variable or constant at file level, by import path."""

    package: str
    name: str


@record
class FieldObject:
    """A field or method `name` of the named type `type` in `package` (the type that declares it)."""

    package: str
    type: str
    name: str


@record
class LocalObject:
    """A name declared inside a function; `at` is the span of the declaring identifier."""

    name: str
    at: Span
    kind: Literal["var", "param", "result", "receiver", "const", "type", "label"]


@record
class PackageName:
    """An imported package's local name."""

    package: str


@record
class UnknownObject:
    """A name whose declaration is outside the snapshot or could not be followed."""

    name: str


Object: TypeAlias = PackageObject | FieldObject | LocalObject | PackageName | UnknownObject


@record
class Implementer:
    """A type with methods of an interface: `methods` are (file, declaration) by name."""

    package: str
    type: str
    methods: tuple[tuple[str, FuncDecl], ...]
    missing: tuple[str, ...]


@record
class Qualifier:
    """How `package` is written at a place: `prefix` is `util.`, or "" in the package itself or with a dot import."""

    prefix: str
    need: tuple[str, str | None] | None
    """(import path, alias) to add to the file, None where nothing is to be added."""
