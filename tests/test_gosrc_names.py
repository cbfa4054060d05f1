"""What names mean: scopes, selectors, imports, promoted fields, interfaces and who implements them."""

from __future__ import annotations

import re

import pytest

from refactor_tool.gosrc import ast
from refactor_tool.gosrc.tree import Occurrence, Role
from refactor_tool.model import Unparsable
from tests import gotree
from tests.gotree import MODULE, place

TARGET = re.compile(rb"\bTarget\b")


def meaning(body: str, *, imports: str = 'import "example.com/m/util"', nth: int = 0) -> ast.Object | None:
    """Return what the nth `Target` of a file in package m/a means; m/util declares Target, Box and a field Target."""
    tree = gotree.tree(
        util__util="package util\n\nfunc Target() error { return nil }\n\ntype Box struct{ Target int }\n",
        a__a=f"package a\n\n{imports}\n\n{body}\n",
    )
    return tree.occurrences("a/a.go", TARGET)[nth].object


UTIL_TARGET = ast.PackageObject(f"{MODULE}/util", "Target")


@pytest.mark.parametrize(
    ("imports", "body"),
    [
        pytest.param('import "example.com/m/util"', "func f() { util.Target() }", id="plain"),
        pytest.param('import u "example.com/m/util"', "func f() { u.Target() }", id="alias"),
        pytest.param('import . "example.com/m/util"', "func f() { Target() }", id="dot"),
        pytest.param('import "example.com/m/util"', "var f = util.Target", id="function-value-at-file-level"),
        pytest.param('import "example.com/m/util"', "func f() { g(util.Target) }", id="function-value-as-argument"),
        pytest.param(
            'import "example.com/m/util"', "func f() { util := 1; _ = util }\nvar g = util.Target", id="shadow-ends"
        ),
        pytest.param(
            'import "example.com/m/util"',
            "func f(util func() error) error { return nil }\nvar g = util.Target",
            id="param-ends",
        ),
        pytest.param(
            'import "example.com/m/util"', "func f() { if x := (util.Target)(); x != nil { } }", id="parenthesised"
        ),
    ],
)
def test_a_package_function_is_known_however_it_is_written(imports: str, body: str) -> None:
    assert meaning(body, imports=imports) == UTIL_TARGET


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("func f(util box) { util.Target() }", id="parameter"),
        pytest.param("func (util box) f() { util.Target() }", id="receiver"),
        pytest.param("func f() (util box) { util.Target(); return }", id="named-result"),
        pytest.param("func f() { util := box{}; util.Target() }", id="local"),
        pytest.param("func f() { var util box; util.Target() }", id="var"),
        pytest.param("func f() { util := box{}; go func() { util.Target() }() }", id="closure-sees-outer-local"),
        pytest.param("func f() { go func(util box) { util.Target() }(box{}) }", id="closure-parameter"),
        pytest.param("func f() { if util := g(); true { util.Target() } }", id="if-initializer"),
        pytest.param("func f() { if util := g(); true { } else { util.Target() } }", id="else-sees-initializer"),
        pytest.param("func f() { for util := g(); ; { util.Target() } }", id="for-initializer"),
        pytest.param("func f() { for _, util := range xs { util.Target() } }", id="range"),
        pytest.param("func f() { switch util := g(); { case true: util.Target() } }", id="switch-initializer"),
        pytest.param("func f() { switch util := x.(type) { case box: util.Target() } }", id="type-switch"),
        pytest.param("func f() { select { case util := <-ch: util.Target() } }", id="select-case"),
        pytest.param("func f() { const util = 1; util.Target() }", id="local-const"),
        pytest.param("func f() { type util struct{}; util.Target() }", id="local-type"),
    ],
)
def test_a_local_that_shadows_the_package_is_not_the_package(body: str) -> None:
    assert meaning(body) != UTIL_TARGET


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("func f() { util.Target(); util := 1; _ = util }", id="declared-after"),
        pytest.param("func f() { { util := 1; _ = util }; util.Target() }", id="declared-in-an-inner-block"),
        pytest.param("func f() { if util := 1; util > 0 { }; util.Target() }", id="if-initializer-ended"),
        pytest.param("func f() { util := util.Target(); _ = util }", id="own-right-hand-side"),
        pytest.param("func f() { go func(util int) {}(1); util.Target() }", id="parameter-of-another-closure"),
        pytest.param("func f() { select { case util := <-ch: _ = util; case <-util.Target(): } }", id="another-case"),
    ],
)
def test_a_name_out_of_scope_does_not_shadow(body: str) -> None:
    assert meaning(body) == UTIL_TARGET


BOX_FIELD = ast.FieldObject(f"{MODULE}/util", "Box", "Target")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("func f(b util.Box) { _ = b.Target }", id="parameter"),
        pytest.param("func f(b *util.Box) { _ = b.Target }", id="pointer"),
        pytest.param("func f() { b := util.Box{}; _ = b.Target }", id="composite"),
        pytest.param("func f() { b := &util.Box{}; _ = b.Target }", id="address-of-composite"),
        pytest.param("func f() { b := new(util.Box); _ = b.Target }", id="new"),
        pytest.param("func f() { var b util.Box; _ = b.Target }", id="var"),
        pytest.param(
            "func g() (*util.Box, error)\nfunc f() { b, err := g(); _ = b.Target; _ = err }", id="first-result"
        ),
        pytest.param("type t struct{ b util.Box }\nfunc (x *t) f() { _ = x.b.Target }", id="field-of-receiver"),
        pytest.param("type t struct{ *util.Box }\nfunc (x t) f() { _ = x.Target }", id="promoted"),
        pytest.param(
            "type u struct{ util.Box }\ntype t struct{ u }\nfunc (x t) f() { _ = x.Target }", id="promoted-twice"
        ),
        pytest.param("var b util.Box\nfunc f() { _ = b.Target }", id="package-variable"),
        pytest.param("var b = util.Box{}\nfunc f() { c := b; _ = c.Target }", id="copy-of-a-package-variable"),
        pytest.param("type alias = util.Box\nfunc f(b alias) { _ = b.Target }", id="alias-type"),
        pytest.param("func f(bs chan util.Box) { b := <-bs; _ = b.Target }", id="received"),
        pytest.param("var _ = util.Box{Target: 1}", id="literal-key"),
        pytest.param("func g() util.Box\nfunc f() { _ = g().Target }", id="call"),
        pytest.param("type t struct{ mk func() *util.Box }\nfunc f(x t) { _ = x.mk().Target }", id="function-field"),
        pytest.param("func f(config *util.Box) { func() { _ = config.Target }() }", id="closure"),
    ],
)
def test_a_field_is_known_by_the_declared_type(body: str) -> None:
    assert meaning(body) == BOX_FIELD


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("type mine struct{ Target int }\nfunc f(b mine) { _ = b.Target }", id="same-name-in-another-type"),
        pytest.param("func f(b unknown.Box) { _ = b.Target }", id="type-outside-the-tree"),
        pytest.param("var a, b = b, a\nfunc f() { _ = a.Target }", id="type-that-goes-in-circles"),
        pytest.param("func f(util *util.Box) { _ = util.Other; _ = mine{Target: 1} }", id="key-of-another-literal"),
    ],
)
def test_another_type_s_field_is_not_ours(body: str) -> None:
    found = _meanings(body)
    assert found and BOX_FIELD not in found


def _meanings(body: str) -> list[ast.Object | None]:
    tree = gotree.tree(
        util__util="package util\n\ntype Box struct{ Target int; Other int }\n",
        a__a=f'package a\n\nimport "example.com/m/util"\n\n{body}\n',
    )
    return [found.object for found in tree.occurrences("a/a.go", TARGET)]


@pytest.mark.parametrize(
    ("text", "role"),
    [
        ("func f() { x.Target() }", "call"),
        ("func f() { g(x.Target) }", "argument"),
        ("func f() { close(Target) }", "close"),
        ("func f() { defer close(Target) }", "defer-close"),
        ("func f() { <-x.y.Target }", "receive"),
        ("func f() { select { case <-x.Target: } }", "select-case"),
        ("func f() { select { case v := <-Target: _ = v } }", "select-case"),
        ("func f() { x.Target = y }", "assignment"),
        ("func f() { y = x.Target }", "assignment"),
        ("func f() { if x.Target != nil { } }", "nil-check"),
        ("func f() error { return x.Target }", "return"),
        ("var _ = t{Target: 1}", "key"),
        ("var _ = t{A: x.Target}", "value"),
        ("func Target() {}", "declaration"),
        ("func (x t) Target() {}", "declaration"),
        ("type Target struct{}", "declaration"),
        ("type t struct{ Target int }", "declaration"),
        ("type t interface{ Target() }", "declaration"),
        ("func f(Target int) {}", "declaration"),
        ("const Target = 1", "declaration"),
        ("func f() { Target: for { break } }", "label"),
        ("func f() { x: for { break Target } }", "label"),
        ("// Target\nvar x int", "comment"),
        ('var x = "Target"', "string"),
        ("var x = `Target`", "string"),
        ("func f(x *Target) {}", "type"),
    ],
)
def test_roles(text: str, role: Role) -> None:
    found = gotree.tree(a__a=f"package a\n\n{text}\n").occurrences("a/a.go", TARGET)
    assert [occurrence.role for occurrence in found] == [role]


def test_a_qualified_name_includes_its_whole_chain() -> None:
    tree = gotree.tree(a__a="package a\n\nfunc f(c *T) { <-c.Runtime.Target }\n")
    (found,) = tree.occurrences("a/a.go", TARGET)
    assert tree.text("a/a.go", found.qualified) == "c.Runtime.Target"


def test_titles_are_written_as_go_does() -> None:
    tree = gotree.tree(
        a__a="package a\n\n// Doc of F\nfunc F() {}\n\nfunc (e *E) M() {}\n\nfunc (E) N() {}\n\ntype E struct{ x int }\n\nvar v int\n"
    )
    titles = {
        text: tree.title_at("a/a.go", place(tree, "a/a.go", text).start)
        for text in ("Doc", "M()", "N()", "x int", "v int")
    }
    assert titles == {"Doc": "F", "M()": "(*E).M", "N()": "E.N", "x int": "type E", "v int": ""}


@pytest.mark.parametrize(
    ("path", "text", "constraint", "goos", "generated", "test"),
    [
        ("a/a.go", "package a\n", "", "", False, False),
        ("a/a_windows.go", "package a\n", "", "windows", False, False),
        ("a/a_linux_test.go", "package a\n", "", "linux", False, True),
        ("a/a_linux_amd64.go", "package a\n", "", "linux", False, False),
        ("a/linux.go", "package a\n", "", "", False, False),
        ("a/a.go", "//go:build !windows && cgo\n\npackage a\n", "!windows && cgo", "", False, False),
        (
            "a/a.go",
            "// +build linux,cgo darwin\n// +build !x\n\npackage a\n",
            "(linux && cgo || darwin) && (!x)",
            "",
            False,
            False,
        ),
        ("a/a.go", "package a\n\n//go:build late\n", "", "", False, False),
        ("a/a.go", "// Code generated by x. DO NOT EDIT.\n\npackage a\n", "", "", True, False),
        ("a/a.go", "// Code generated by hand\n\npackage a\n", "", "", False, False),
    ],
)
def test_what_a_file_is_built_for(
    path: str, text: str, constraint: str, goos: str, generated: bool, test: bool
) -> None:
    file = gotree.of({"go.mod": "module m\n", path: text}).file(path)
    assert (file.constraint, file.goos, file.generated, file.test) == (constraint, goos, generated, test)


def test_an_unparsable_file_is_named_with_line_and_fault() -> None:
    tree = gotree.tree(a__a="package a\n\nfunc f() {\n\tx := := 1\n}\n")
    with pytest.raises(Unparsable, match=r"^a/a\.go:4:\d+: does not parse as Go: unexpected"):
        tree.file("a/a.go")


def test_a_file_that_is_not_utf_8_is_named_with_its_line() -> None:
    from refactor_tool.gosrc.tree import Tree
    from refactor_tool.model import File, Snapshot

    tree = Tree(Snapshot({"go.mod": File(b"module m\n"), "a.go": File(b"package a\n\n// \xff\n")}))
    with pytest.raises(Unparsable, match=r"^a\.go:3:4: not UTF-8 text"):
        tree.file("a.go")


INTERFACE = """package run

type Runner interface {
	Alpha(x int) error
	Beta()
	Gamma()
}

type Real struct{}

func (r *Real) Alpha(x int) error { return nil }
func (r *Real) Beta()             {}
func (r *Real) Gamma()            {}

var runner Runner

func Alpha(x int) error { return runner.Alpha(x) }
func Beta()             { runner.Beta() }
"""


def test_implementers_are_found_in_every_file_and_by_a_check() -> None:
    tree = gotree.tree(
        run__run=INTERFACE,
        fake__fake_windows="package fake\n\ntype Fake struct{}\n\nfunc (Fake) Alpha(x int) error { return nil }\nfunc (Fake) Beta() {}\n",
        odd__odd='package odd\n\nimport "example.com/m/run"\n\nvar _ run.Runner = &Odd{}\n\ntype Odd struct{}\n\nfunc (*Odd) Gamma() {}\n',
        wrap__wrap_test='package wrap\n\nimport "example.com/m/run"\n\ntype wrap struct{ *run.Real }\n\nfunc (wrap) Beta() {}\n',
        other__other="package other\n\ntype Other struct{}\n\nfunc (Other) Beta() {}\n",
    )
    found = {(one.package, one.type): one.missing for one in tree.implementers(f"{MODULE}/run", "Runner")}
    assert found == {
        (f"{MODULE}/run", "Real"): (),
        (f"{MODULE}/fake", "Fake"): ("Gamma",),
        (f"{MODULE}/odd", "Odd"): ("Alpha", "Beta"),
        (f"{MODULE}/wrap", "wrap"): (),
    }


def test_a_forwarder_only_returns_the_method_of_its_name() -> None:
    found = gotree.tree(run__run=INTERFACE).forwarders(f"{MODULE}/run", "Runner")
    assert [decl.name for _, decl in found] == ["Alpha"]


def test_callers_are_every_use_but_the_declaration() -> None:
    tree = gotree.tree(
        util__util="package util\n\nfunc Target() {}\n\nfunc own() { Target() }\n",
        a__a='package a\n\nimport . "example.com/m/util"\n\nvar v = Target\n',
        b__b="package b\n\nfunc Target() {}\n\nfunc f() { Target() }\n",
    )
    found: list[Occurrence] = list(tree.callers(UTIL_TARGET))
    assert [(one.path, one.role) for one in found] == [("a/a.go", "assignment"), ("util/util.go", "call")]


@pytest.mark.parametrize(
    ("importer", "imported", "allowed"),
    [("a", "c", True), ("c", "a", False), ("b", "a", False), ("a", "a", False), ("c", "lone", True)],
)
def test_an_import_cycle_is_seen_over_other_packages(importer: str, imported: str, allowed: bool) -> None:
    tree = gotree.tree(
        a__a='package a\n\nimport (\n\t"fmt"\n\n\tx "example.com/m/b"\n)\n',
        b__b='package b\n\nimport "example.com/m/c"\n',
        c__c="package c\n",
        c__c_test='package c\n\nimport "example.com/m/lone"\n',
        lone__lone='package lone\n\nimport "example.com/m/a"\n' if imported != "lone" else "package lone\n",
    )
    assert tree.may_import(f"{MODULE}/{importer}", f"{MODULE}/{imported}") is allowed


@pytest.mark.parametrize(
    ("head", "line", "want"),
    [
        pytest.param("", "mark()", ast.Qualifier("util.", (f"{MODULE}/util", None)), id="not-imported-yet"),
        pytest.param('import "example.com/m/util"', "mark()", ast.Qualifier("util.", None), id="imported"),
        pytest.param('import u "example.com/m/util"', "mark()", ast.Qualifier("u.", None), id="alias"),
        pytest.param('import . "example.com/m/util"', "mark()", ast.Qualifier("", None), id="dot"),
        pytest.param("", "util := 1; mark(util)", None, id="local-takes-the-name"),
        pytest.param('import "example.com/m/util"', "util := 1; mark(util)", None, id="local-shadows-the-import"),
        pytest.param('import util "fmt"', "mark()", None, id="another-import-takes-the-name"),
        pytest.param("var util int", "mark()", None, id="package-variable-takes-the-name"),
    ],
)
def test_how_to_write_a_package_at_a_place(head: str, line: str, want: ast.Qualifier | None) -> None:
    tree = gotree.tree(util__util="package util\n", a__a=f"package a\n\n{head}\n\nfunc f() {{\n\t{line}\n}}\n")
    at = place(tree, "a/a.go", "mark").start
    assert tree.qualify("a/a.go", f"{MODULE}/util", "util", at) == want


def test_a_package_that_would_be_a_cycle_cannot_be_written() -> None:
    tree = gotree.tree(
        util__util='package util\n\nimport "example.com/m/a"\n',
        a__a="package a\n\nfunc f() {}\n",
        a__x_test="package a_test\n",
    )
    assert tree.qualify("a/a.go", f"{MODULE}/util", "util", 20) is None
    assert tree.qualify("a/x_test.go", f"{MODULE}/util", "util", 0) is not None
