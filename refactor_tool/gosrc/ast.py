"""Go source as plain values: what codemods match on with `match`.

Every node is frozen and carries its `span` (bytes, half open). Nodes compare by identity, as the same text in two
places is two nodes; without generated `__eq__` and `__repr__` the room also costs a third less at start-up.
Comments are not nodes: ask `Tree.comments_in`. A form that nothing here needs is an `OtherExpr` or `OtherStmt` with
its tree-sitter `kind`, so that no source is lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from refactor_tool.model import Span

# --- expressions and types --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Ident:
    span: Span
    name: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Selector:
    """`x.name`; also a qualified type such as `config.Node`."""

    span: Span
    x: Expr
    name: str
    name_span: Span


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Call:
    """`fun(args...)`; `args_span` is the text between the parentheses."""

    span: Span
    fun: Expr
    args: tuple[Expr, ...]
    args_span: Span
    ellipsis: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FuncLit:
    span: Span
    params: tuple[Param, ...]
    results: tuple[Param, ...]
    body: Block


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Element:
    """One element of a composite literal, without its comma."""

    span: Span
    key: Expr | None
    value: Expr


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Composite:
    """`T{...}`; `type` is None for an elided inner type."""

    span: Span
    type: Expr | None
    elements: tuple[Element, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Unary:
    """`op x`; a receive is `<-`, a pointer type or dereference `*`."""

    span: Span
    op: str
    x: Expr


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Binary:
    span: Span
    op: str
    x: Expr
    y: Expr


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Paren:
    span: Span
    x: Expr


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ChanType:
    """`chan T`, `<-chan T` (`recv`) or `chan<- T` (`send`)."""

    span: Span
    direction: Literal["both", "recv", "send"]
    element: Expr


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FuncType:
    span: Span
    params: tuple[Param, ...]
    results: tuple[Param, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Field:
    """One field line of a struct, without comments; `names` is empty for an embedded field."""

    span: Span
    names: tuple[Ident, ...]
    type: Expr
    tag: Span | None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StructType:
    span: Span
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Method:
    """One method of an interface."""

    span: Span
    name: str
    name_span: Span
    params: tuple[Param, ...]
    params_span: Span
    results: tuple[Param, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class InterfaceType:
    span: Span
    methods: tuple[Method, ...]
    embeds: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Literal_:
    """A basic literal; `text` as written."""

    span: Span
    kind: str
    text: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Param:
    """One parameter, result or receiver declaration: `a, b T`, `T`, `xs ...T`."""

    span: Span
    names: tuple[Ident, ...]
    type: Expr
    variadic: bool = False


# --- statements -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Block:
    """`{ stmts }`, braces included in the span."""

    span: Span
    stmts: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExprStmt:
    span: Span
    x: Expr


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Assign:
    """`lhs op rhs`; `op` is `:=`, `=`, `+=`, …"""

    span: Span
    lhs: tuple[Expr, ...]
    op: str
    rhs: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class VarSpec:
    """One `var` or `const` spec: `names [type] [= values]`."""

    span: Span
    names: tuple[Ident, ...]
    type: Expr | None
    values: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class VarStmt:
    """A `var` or `const` declaration, local or at file level."""

    span: Span
    keyword: Literal["var", "const"]
    specs: tuple[VarSpec, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class If:
    span: Span
    init: Stmt | None
    cond: Expr
    then: Block
    else_: Block | If | None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class For:
    """Any `for`; `header` is the text between `for` and the body (empty for an endless loop)."""

    span: Span
    header: Span
    exprs: tuple[Expr, ...]
    body: Block


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Case:
    """One clause of a select or switch; `comm` is the select's communication, None for `default` and in a switch."""

    span: Span
    comm: Stmt | None
    default: bool
    exprs: tuple[Expr, ...]
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Select:
    span: Span
    cases: tuple[Case, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Switch:
    span: Span
    cases: tuple[Case, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Go:
    span: Span
    call: Expr


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Defer:
    span: Span
    call: Expr


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Return:
    span: Span
    values: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Labeled:
    span: Span
    label: str
    stmt: Stmt | None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Branch:
    """`break`, `continue`, `goto`, with its label or ""."""

    span: Span
    keyword: str
    label: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Send:
    span: Span
    channel: Expr
    value: Expr


@dataclass(frozen=True, slots=True, eq=False, repr=False)
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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TypeDecl:
    """`type Name T`, one spec; `span` covers the whole declaration when it holds one spec only."""

    span: Span
    doc: Span | None
    name: str
    name_span: Span
    type: Expr


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class VarDecl:
    """A `var` or `const` declaration at file level."""

    span: Span
    doc: Span | None
    keyword: Literal["var", "const"]
    specs: tuple[VarSpec, ...]


Decl: TypeAlias = FuncDecl | TypeDecl | VarDecl


@dataclass(frozen=True, slots=True, eq=False, repr=False)
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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
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


@dataclass(frozen=True, slots=True)
class PackageObject:
    """A function, type, variable or constant at file level, by import path."""

    package: str
    name: str


@dataclass(frozen=True, slots=True)
class FieldObject:
    """A field or method `name` of the named type `type` in `package` (the type that declares it)."""

    package: str
    type: str
    name: str


@dataclass(frozen=True, slots=True)
class LocalObject:
    """A name declared inside a function; `at` is the span of the declaring identifier."""

    name: str
    at: Span
    kind: Literal["var", "param", "result", "receiver", "const", "type", "label"]


@dataclass(frozen=True, slots=True)
class PackageName:
    """An imported package's local name."""

    package: str


@dataclass(frozen=True, slots=True)
class UnknownObject:
    """A name whose declaration is outside the snapshot or could not be followed."""

    name: str


Object: TypeAlias = PackageObject | FieldObject | LocalObject | PackageName | UnknownObject


@dataclass(frozen=True, slots=True)
class Implementer:
    """A type with methods of an interface: `methods` are (file, declaration) by name."""

    package: str
    type: str
    methods: tuple[tuple[str, FuncDecl], ...]
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Qualifier:
    """How `package` is written at a place: `prefix` is `util.`, or "" in the package itself or with a dot import."""

    prefix: str
    need: tuple[str, str | None] | None
    """(import path, alias) to add to the file, None where nothing is to be added."""
