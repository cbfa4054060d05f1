"""Where edits go: lines, lists, aligned fields, imports; and what the proof sees."""

from __future__ import annotations

import pytest

from refactor_tool import edits
from refactor_tool.gosrc import ast, layout
from refactor_tool.gosrc.parse import ParseCache
from refactor_tool.gosrc.proof import layout_faults, prove
from refactor_tool.gosrc.tree import Tree
from refactor_tool.model import Edit, File, FileChange, Span
from tests import gotree
from tests.gotree import place


def apply(tree: Tree, path: str, *changes: Edit) -> str:
    texts = [(change.span, change.text) for change in changes if isinstance(change.text, bytes)]
    assert len(texts) == len(changes)
    return edits.apply(tree.data(path), texts).decode()


def struct(body: str) -> tuple[Tree, ast.StructType]:
    tree = gotree.of({"go.mod": "module m\n", "a.go": f"package a\n\ntype T struct {{\n{body}}}\n"})
    ((_, decl),) = tree.types("m", "T")
    assert isinstance(decl.type, ast.StructType)
    return tree, decl.type


@pytest.mark.parametrize(
    ("before", "want"),
    [
        pytest.param("\ta int\n", "\ta   int\n\tnew util.T\n", id="shorter-field-is-padded"),
        pytest.param("\tlonger int\n", "\tlonger int\n\tnew    util.T\n", id="new-field-is-padded"),
        pytest.param(
            "\tlonger int\n\n\tb int\n", "\tlonger int\n\n\tb   int\n\tnew util.T\n", id="blank-line-ends-a-section"
        ),
        pytest.param(
            "\tlonger int\n\t// c\n\tb int\n",
            "\tlonger int\n\t// c\n\tb   int\n\tnew util.T\n",
            id="comment-ends-a-section",
        ),
        pytest.param("\tEmbedded\n", "\tEmbedded\n\tnew util.T\n", id="embedded-field-has-no-columns"),
        pytest.param("\ta int // why\n", "\ta   int // why\n\tnew util.T\n", id="trailing-comment"),
        pytest.param(
            "\ta  int\n\tbbbb int\n", "\ta  int\n\tbbbb int\n\tnew util.T\n", id="badly-aligned-is-left-alone"
        ),
        pytest.param("", "\tnew util.T\n", id="empty-struct"),
    ],
)
def test_a_field_is_added_as_gofmt_aligns_it(before: str, want: str) -> None:
    tree, found = struct(before)
    assert apply(tree, "a.go", *layout.add_fields(tree, "a.go", found, [("new", "util.T")])) == (
        f"package a\n\ntype T struct {{\n{want}}}\n"
    )


@pytest.mark.parametrize(
    ("before", "want"),
    [
        pytest.param(
            "\ta       int\n\tgone    int\n\tlongest int\n", "\ta       int\n\tlongest int\n", id="not-the-longest"
        ),
        pytest.param("\ta    int\n\tgone int\n\tb    int\n", "\ta int\n\tb int\n", id="the-longest"),
        pytest.param("\ta int\n\n\tgone int\n\n\tb int\n", "\ta int\n\n\tb int\n", id="between-blank-lines"),
        pytest.param("\ta int\n\n\tgone int\n", "\ta int\n", id="last-after-a-blank-line"),
        pytest.param("\tgone int\n\n\ta int\n", "\ta int\n", id="first-before-a-blank-line"),
        pytest.param("\tgone int\n", "", id="the-only-one"),
    ],
)
def test_a_field_is_removed_and_the_rest_aligned(before: str, want: str) -> None:
    tree, found = struct(before)
    assert apply(tree, "a.go", *layout.remove_fields(tree, "a.go", found, ["gone"])) == (
        f"package a\n\ntype T struct {{\n{want}}}\n"
    )


@pytest.mark.parametrize(
    ("items", "index", "want"),
    [("a, b, c", 0, "b, c"), ("a, b, c", 1, "a, c"), ("a, b, c", 2, "a, b"), ("a", 0, "")],
)
def test_an_item_goes_with_its_comma(items: str, index: int, want: str) -> None:
    tree = gotree.of({"go.mod": "module m\n", "a.go": f"package a\n\nvar _ = f({items})\n"})
    spans = [place(tree, "a.go", f"{name}{end}", 0) for name, end in zip(items.split(", "), [""] * 9, strict=False)]
    start = place(tree, "a.go", "f(").end
    spans = [Span(start + 3 * at, start + 3 * at + 1) for at in range(len(spans))]
    assert apply(tree, "a.go", layout.remove_item(tree, "a.go", spans, index)).endswith(f"f({want})\n")


@pytest.mark.parametrize(
    ("head", "need", "want"),
    [
        pytest.param(
            'import (\n\t"fmt"\n\n\t"x.io/a"\n\t"x.io/c"\n)\n',
            ("x.io/b", None),
            'import (\n\t"fmt"\n\n\t"x.io/a"\n\t"x.io/b"\n\t"x.io/c"\n)\n',
            id="sorted-into-its-group",
        ),
        pytest.param(
            'import (\n\t"fmt"\n\n\t"x.io/a"\n)\n',
            ("errors", None),
            'import (\n\t"errors"\n\t"fmt"\n\n\t"x.io/a"\n)\n',
            id="standard-library-with-its-own",
        ),
        pytest.param(
            'import (\n\t"fmt"\n\n\t"x.io/a"\n)\n',
            ("x.io/b/v2", "b"),
            'import (\n\t"fmt"\n\n\t"x.io/a"\n\tb "x.io/b/v2"\n)\n',
            id="alias",
        ),
        pytest.param('import "fmt"\n', ("errors", None), 'import "errors"\nimport "fmt"\n', id="single-import"),
        pytest.param("", ("errors", None), 'import (\n\t"errors"\n)\n\n', id="no-import"),
        pytest.param(
            'import (\n\t"fmt"\n\n\t"x.io/a"\n\n\t// why\n\t_ "x.io/a/b"\n)\n',
            ("x.io/a/a", None),
            'import (\n\t"fmt"\n\n\t"x.io/a"\n\t"x.io/a/a"\n\n\t// why\n\t_ "x.io/a/b"\n)\n',
            id="not-among-blank-imports",
        ),
    ],
)
def test_an_import_is_added(head: str, need: tuple[str, str | None], want: str) -> None:
    uses = "\nvar _ = fmt.Sprint(a.X)\n"
    data = f"package a\n\n{head}{uses}".encode()
    after = layout.settle_imports(ParseCache(), data, data, [need]).decode()
    assert after.replace(uses, "") == f"package a\n\n{want}"
    assert layout.settle_imports(ParseCache(), data, after.encode(), [need]).decode() == after


def test_an_import_that_a_change_made_unused_goes_and_another_stays() -> None:
    before = b'package a\n\nimport (\n\t"fmt"\n\t"os"\n\n\t"x.io/gone"\n\t"x.io/never"\n)\n\nvar _ = fmt.Sprint(os.Args, gone.X)\n'
    after = before.replace(b"os.Args, gone.X", b"os.Args")
    assert layout.settle_imports(ParseCache(), before, after, []) == (
        b'package a\n\nimport (\n\t"fmt"\n\t"os"\n\n\t"x.io/never"\n)\n\nvar _ = fmt.Sprint(os.Args)\n'
    )


def test_a_group_that_becomes_empty_leaves_no_blank_line() -> None:
    before = b'package a\n\nimport (\n\t"fmt"\n\n\t"x.io/gone"\n)\n\nvar _ = fmt.Sprint(gone.X)\n'
    after = before.replace(b"gone.X", b"")
    assert b'import (\n\t"fmt"\n)\n' in layout.settle_imports(ParseCache(), before, after, [])


def test_the_last_import_may_go_while_another_comes() -> None:
    before = b'package a\n\nimport (\n\t"fmt"\n)\n\nvar _ = fmt.Sprint()\n'
    after = before.replace(b"fmt.Sprint()", b"os.Args")
    assert layout.settle_imports(ParseCache(), before, after, [("os", None)]) == (
        b'package a\n\nimport (\n\t"os"\n)\n\nvar _ = os.Args\n'
    )


def test_nothing_is_left_of_an_import_that_nobody_uses() -> None:
    before = b'package a\n\nimport (\n\t"fmt"\n)\n\nvar _ = fmt.Sprint()\n'
    after = before.replace(b"fmt.Sprint()", b"1")
    assert layout.settle_imports(ParseCache(), before, after, []) == b"package a\n\nvar _ = 1\n"


IMPORTS = 'import (\n\t"fmt"\n\n\t"x.io/util"\n)\n'
WITHOUT = 'import (\n\t"fmt"\n)\n'


@pytest.mark.parametrize(
    ("text", "stays"),
    [
        pytest.param("f()", False, id="gone"),
        pytest.param("util.Y()", True, id="another use"),
        pytest.param("f() // util.X", False, id="left in a comment"),
        pytest.param('f("util.X")', False, id="left in a string"),
        pytest.param("f(`\nutil.X`)", False, id="left in a raw string"),
        pytest.param("util := f()\n\tutil.X()", False, id="shadowed"),
        pytest.param("util := util.X()\n\tutil.X()", True, id="used where it is shadowed"),
        pytest.param("if util := f(); util != nil {\n\t}\n\tutil.X()", True, id="shadowed elsewhere"),
        pytest.param("a.util.X()", False, id="a field"),
        pytest.param("util()", False, id="a function"),
        pytest.param("myutil.X()", False, id="end of another name"),
        pytest.param("\u00fcutil.X()", False, id="end of a name that is not ASCII"),
        pytest.param("util . X()", True, id="blank before the dot"),
        pytest.param("util /* . */ .X()", True, id="comment before the dot"),
        pytest.param("util. // why\n\t\tX()", True, id="name on the next line"),
        pytest.param("var x *util.X", True, id="a type"),
        pytest.param("f(func(util util.X) {})", True, id="a type, shadowed by its parameter"),
    ],
)
def test_an_import_stays_where_the_code_still_uses_it(text: str, stays: bool) -> None:
    rest = "\nfunc g() {\n\tfmt.Println()\n\t%s\n}\n"
    before, after = (f"package a\n\n{IMPORTS}{rest % body}" for body in ("util.X()", text))
    made = layout.settle_imports(ParseCache(), before.encode(), after.encode(), []).decode()
    assert made == (after if stays else after.replace(IMPORTS, WITHOUT))


@pytest.mark.parametrize(
    ("head", "want"),
    [
        pytest.param('import u "x.io/util"\n\n', "", id="alias"),
        pytest.param('import . "x.io/util"\n\n', 'import . "x.io/util"\n\n', id="dot"),
        pytest.param('import _ "x.io/util"\n\n', 'import _ "x.io/util"\n\n', id="blank"),
        pytest.param('import "x.io/u/v2"\n\n', "", id="major version"),
        pytest.param('/*\ntype u.\n*/\nimport "x.io/u"\n\n', "/*\ntype u.\n*/\n\n", id="like a declaration"),
    ],
)
def test_an_import_goes_by_its_own_name(head: str, want: str) -> None:
    before, after = (f"package a\n\n{head}var _ = {value}\n".encode() for value in ("u.X", "1"))
    made = layout.settle_imports(ParseCache(), before, after, []).decode()
    assert made == f"package a\n\n{want}var _ = 1\n"


def proof_of(before: dict[str, str], after: dict[str, str]) -> list[str]:
    old, new = gotree.of(before), gotree.of(before | after)
    changes = [
        FileChange(path, File(before[path].encode()) if path in before else None, File(text.encode()))
        for path, text in after.items()
    ]
    return [flaw.message for flaw in prove(old, Tree(new.snapshot, old.cache), changes)]


BASE = {
    "go.mod": "module m\n",
    "a/a.go": 'package a\n\nimport "fmt"\n\nfunc f() {\n\tfmt.Println()\n}\n',
    "b/b.go": 'package b\n\nimport "m/a"\n\nvar _ = a.X\n',
}


@pytest.mark.parametrize(
    ("text", "flaw"),
    [
        pytest.param(
            'package a\n\nimport "fmt"\n\nfunc f() {\n\tfmt.Println()\n', "does not parse", id="missing-brace"
        ),
        pytest.param(
            'package a\n\nimport "fmt"\n\nfunc f() {\n}\n', "import 'fmt' is no longer used", id="import-left"
        ),
        pytest.param(
            'package a\n\nimport (\n\t"fmt"\n\t"os"\n)\n\nfunc f() {\n\tfmt.Println()\n}\n',
            "import 'os' is not used",
            id="import-for-nothing",
        ),
        pytest.param(
            'package a\n\nimport "fmt"\n\nfunc f() {\n\tfmt.Println(os.Args)\n}\n',
            "'os' is neither imported nor declared",
            id="import-forgotten",
        ),
        pytest.param(
            'package a\n\nimport (\n\t"fmt"\n\n\t"m/b"\n)\n\nfunc f() {\n\tfmt.Println(b.X)\n}\n',
            "import cycle: m/b imports m/a already",
            id="cycle",
        ),
        pytest.param(
            'package a\n\nimport (\n\t"fmt"\n\tfmt "os"\n)\n\nfunc f() {\n\tfmt.Println()\n}\n',
            "import name 'fmt' is used twice",
            id="name-twice",
        ),
        pytest.param(
            'package a\n\nimport "fmt"\n\nfunc f() {\n\t\tfmt.Println()\n}\n', "indentation", id="indentation"
        ),
        pytest.param(
            'package a\n\nimport "fmt"\n\nfunc f() {\n\tfmt.Println() \n}\n', "trailing space", id="trailing-space"
        ),
        pytest.param(
            'package a\n\nimport "fmt"\n\n\nfunc f() {\n\tfmt.Println()\n}\n', "two blank lines", id="blank-lines"
        ),
        pytest.param('package a\n\nimport "fmt"\n\nfunc f() {\n\tfmt.Println()\n}', "no newline", id="last-newline"),
        pytest.param(
            'package a\n\nimport "fmt"\n\ntype t struct {\n\ta int\n\tlong int\n}\n\nfunc f() {\n\tfmt.Println()\n}\n',
            "alignment of the fields from 'a'",
            id="alignment",
        ),
        pytest.param(
            'package a\n\nimport (\n\t"os"\n\t"fmt"\n)\n\nfunc f() {\n\tfmt.Println(os.Args)\n}\n',
            "order of import",
            id="import-order",
        ),
    ],
)
def test_the_proof_sees_what_a_change_breaks(text: str, flaw: str) -> None:
    found = proof_of(BASE, {"a/a.go": text})
    assert any(flaw in message for message in found), found


def test_the_proof_accepts_a_sound_change() -> None:
    sound = 'package a\n\nimport (\n\t"fmt"\n\t"os"\n)\n\nfunc f() {\n\tfmt.Println(os.Args)\n}\n'
    assert proof_of(BASE, {"a/a.go": sound}) == []


def test_the_proof_does_not_ask_for_more_than_the_base_had() -> None:
    crooked = {"go.mod": "module m\n", "a.go": "package a\n\nfunc f() {\n\t\tx()\n\n\n\ty() \n}\n"}
    assert proof_of(crooked, {"a.go": crooked["a.go"].replace("x()", "z()").replace("y()", "y()")}) == [
        "gofmt would change it: indentation of 'z()'"
    ]


def test_a_declaration_that_stays_is_no_worse_but_it_may_lose_what_it_names() -> None:
    crooked = "func f() {\n\t\tfmt.Println()\n}\n"
    base = {"go.mod": "module m\n", "a.go": f'package a\n\nimport "fmt"\n\n{crooked}'}
    assert proof_of(base, {"a.go": base["a.go"] + "\nfunc g() {\n\tf()\n}\n"}) == []
    assert proof_of(base, {"a.go": f"package a\n\n{crooked}"}) == ["'fmt' is neither imported nor declared"]
    assert proof_of(base, {"a.go": f"{base['a.go']}\n{crooked}"}) == [
        "gofmt would change it: indentation of 'fmt.Println()'"
    ]


def test_a_name_that_loses_its_declaration_is_seen_where_it_stays() -> None:
    use = "func f() {\n\tx.y()\n}\n"
    base = {"go.mod": "module m\n", "a.go": f"package a\n\n{use}", "b.go": "package a\n\nvar x = 1\n"}
    more = "\nfunc g() {\n\tx := 1\n\tx.y()\n}\n"
    assert proof_of(base, {"a.go": base["a.go"] + more}) == []
    assert proof_of(base, {"a.go": base["a.go"] + more, "b.go": "package a\n"}) == [
        "'x' is neither imported nor declared"
    ]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("package a\n\nvar x = `\n  raw  \n\n\n`\n", id="raw-string"),
        pytest.param("package a\n\n/*\n  old  \n\n\n*/\n", id="block-comment"),
        pytest.param("package a\n\nfunc f() {\n\tif a &&\n\t\tb {\n\t\tc()\n\t}\n}\n", id="header-over-lines"),
        pytest.param("package a\n\nfunc f() {\nloop:\n\tfor {\n\t\tbreak loop\n\t}\n}\n", id="label"),
        pytest.param("package a\n\nfunc f() {\n\tswitch x {\n\tcase 1:\n\t\ty()\n\t}\n}\n", id="case"),
        pytest.param("package a\n\nfunc f() { x() }\n", id="one-line-function"),
        pytest.param(
            "package a\n\ntype t struct {\n\ta, b int    `x`\n\tlong string `y`\n\n\tf func() error\n}\n", id="columns"
        ),
    ],
)
def test_what_gofmt_accepts_is_no_fault(text: str) -> None:
    assert layout_faults(ParseCache().parse_once(text.encode())) == []
