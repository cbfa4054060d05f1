"""L01, L02, L04, L05 and L06 at their edges: what is a readiness channel, which way out is a failure, what guards a close."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from refactor_tool.model import Manual, Rewrite
from tests.hazards import BY_ID, fixed, found, lines, marked, tree

ROWS = [
    # --- L01: what is a bare receive of readiness
    pytest.param("L01", "func f(ready chan struct{}) { <-ready // hazard\n}", id="L01: parameter whose name says ready"),
    pytest.param("L01", "func f(ready <-chan struct{}) { <-(ready) // hazard\n}", id="L01: in parentheses"),
    pytest.param("L01", "func f(s args) {\n\t<-s.APIServerReady // hazard\n}", id="L01: field of a type that is not in the tree"),
    pytest.param(
        "L01", "type s struct{ ready chan struct{} }\n\nfunc f(s *s) {\n\t<-s.ready // hazard\n}", id="L01: field of a type in the tree"
    ),
    pytest.param("L01", "type s struct{ ready chan error }\n\nfunc f(s *s) error { return <-s.ready }", id="L01: carries an error"),
    pytest.param("L01", "func f() {\n\tc := executor.CRIReadyChan()\n\t<-c // hazard\n}", id="L01: local that was given one"),
    pytest.param("L01", "func f(x other) {\n\tc := x.Updates()\n\t<-c\n}", id="L01: local that was given something else"),
    pytest.param(
        "L01",
        "func f(r *rt) {\n\tdone := make(chan struct{})\n\tr.APIServerReady = done\n\t<-done // hazard\n}",
        id="L01: local that is kept under a name that says ready",
    ),
    pytest.param("L01", "func f() {\n\tdone := make(chan struct{})\n\tgo g(done)\n\t<-done\n}", id="L01: local of its own"),
    pytest.param("L01", "func f(c chan struct{}) { <-c }\n\nfunc g(x chan struct{}) { f(x) }", id="L01: parameter nobody gives one"),
    pytest.param(
        "L01",
        "type t struct{}\n\nfunc (t) f(n int, c chan struct{}) {\n\t<-c // hazard\n}\n\nfunc g(t t, ready chan struct{}) { t.f(1, ready) }",
        id="L01: parameter of a method that a caller gives one",
    ),
    pytest.param(
        "L01", "func f(c chan struct{}) { <-c }\n\nvar g = f\n\nfunc h(ready chan struct{}) { g(ready) }", id="L01: called through a value"
    ),
    pytest.param("L01", "func f(c chan struct{}) { g(func(c chan struct{}) { <-c }) }", id="L01: parameter of a literal"),
    pytest.param("L01", "var done = make(chan struct{})\n\nfunc f() { <-done }", id="L01: variable at file level"),
    pytest.param("L01", "func f(ready chan struct{}) {\n\tselect {\n\tcase <-ready: // hazard\n\t}\n}", id="L01: the only case"),
    pytest.param("L01", "func f(a, ready chan struct{}) {\n\tselect {\n\tcase <-ready:\n\tcase <-a:\n\t}\n}", id="L01: another case"),
    pytest.param("L01", "func f(ready chan struct{}) {\n\tselect {\n\tcase <-ready:\n\tdefault:\n\t}\n}", id="L01: with a default"),
    pytest.param(
        "L01", "func f(ready chan struct{}) {\n\tselect {\n\tcase <-ready:\n\tcase <-time.After(1):\n\t}\n}", id="L01: with a limit"
    ),
    pytest.param(
        "L01",
        "func f(ctx context.Context, ready chan struct{}) {\n\tselect {\n\tcase <-ctx.Done():\n\t\t<-ready // hazard\n\t}\n}",
        id="L01: in the body of a case",
    ),
    pytest.param("L01", "func f(ready chan struct{}) {\n\t// <-ready\n\ts := \"<-ready\"\n\tuse(s)\n}", id="L01: prose"),
    # --- L02: which way out is a failure
    pytest.param("L02", "func f(ready chan struct{}) { defer close(ready) }", id="L02: nothing can fail"),
    pytest.param("L02", "func f(ready chan struct{}) error {\n\tdefer close(ready)\n\treturn nil\n}", id="L02: only success is returned"),
    pytest.param(
        "L02", "func f(ready chan struct{}) error {\n\tdefer close(ready) // hazard\n\treturn run()\n}", id="L02: error of a call returned"
    ),
    pytest.param(
        "L02", "func f(ready chan struct{}) bool {\n\tdefer close(ready)\n\treturn true\n}", id="L02: true is a success"
    ),
    pytest.param(
        "L02",
        "func f(ready chan struct{}) error {\n\tif x {\n\t\tdefer close(ready)\n\t\treturn nil\n\t}\n\treturn run()\n}",
        id="L02: an error returned elsewhere than in the branch that closes",
    ),
    pytest.param(
        "L02",
        "func f(ready chan struct{}) {\n\tdefer close(ready) // hazard\n\tif err := g(); err != nil {\n\t\treturn\n\t}\n\trun()\n}",
        id="L02: returns where an error is",
    ),
    pytest.param(
        "L02",
        "func f(ready chan struct{}) {\n\tdefer close(ready) // hazard\n\tif skip {\n\t\treturn\n\t}\n\trun()\n}",
        id="L02: returns early",
    ),
    pytest.param(
        "L02",
        "func f(ready chan struct{}) {\n\tdefer close(ready)\n\tfor {\n\t\tif ok() {\n\t\t\treturn\n\t\t}\n\t}\n}",
        id="L02: the way out of an endless loop",
    ),
    pytest.param(
        "L02", "func f(ready chan struct{}) {\n\tdefer close(ready) // hazard\n\tif x {\n\t\tos.Exit(1)\n\t}\n}", id="L02: ends the process"
    ),
    pytest.param(
        "L02", "func f(ready chan struct{}) {\n\tdefer close(ready) // hazard\n\tif x {\n\t\tpanic(1)\n\t}\n}", id="L02: panics"
    ),
    pytest.param(
        "L02",
        "func f(ready chan struct{}) {\n\tdefer func() {\n\t\tclose(ready) // hazard\n\t}()\n\tif x {\n\t\tlogrus.Fatal(1)\n\t}\n}",
        id="L02: closed by a deferred literal",
    ),
    pytest.param(
        "L02",
        "func f(ready chan struct{}) (err error) {\n\tdefer func() {\n\t\tif err == nil {\n\t\t\tclose(ready)\n\t\t}\n\t}()\n\treturn run()\n}",
        id="L02: closed by a deferred literal on success",
    ),
    pytest.param(
        "L02",
        "func f(ctx context.Context, ready chan struct{}) {\n\tif err := util.WaitForAPIServerReady(ctx); err != nil {\n"
        "\t\tsignals.RequestShutdown(err)\n\t}\n\tclose(ready) // hazard\n}",
        id="L02: after a wait whose error is only reported",
    ),
    pytest.param(
        "L02",
        "func f(ctx context.Context, ready chan struct{}) {\n\tif err := util.WaitForAPIServerReady(ctx); err != nil {\n"
        "\t\tsignals.RequestShutdown(err)\n\t\treturn\n\t}\n\tclose(ready)\n}",
        id="L02: after a wait whose error leaves",
    ),
    pytest.param(
        "L02",
        "func f(ctx context.Context, ready chan struct{}) error {\n\terr := executor.Docker(ctx)\n\tclose(ready) // hazard\n\treturn err\n}",
        id="L02: before the error of a start is looked at",
    ),
    pytest.param(
        "L02",
        "func f(ctx context.Context, ready chan struct{}) error {\n\terr := executor.Docker(ctx)\n\tif err == nil {\n\t\tclose(ready)\n\t}\n\treturn err\n}",
        id="L02: where the error of a start is nil",
    ),
    pytest.param(
        "L02",
        "func f(ctx context.Context, ready, c chan struct{}) {\n\tselect {\n\tcase <-ctx.Done():\n\t\tlogrus.Info(1)\n\tcase <-c:\n\t}\n\tclose(ready) // hazard\n}",
        id="L02: after a select that goes on when the context ends",
    ),
    pytest.param(
        "L02",
        "func f(ctx context.Context, ready, c chan struct{}) {\n\tselect {\n\tcase <-ctx.Done():\n\t\treturn\n\tcase <-c:\n\t}\n\tclose(ready)\n}",
        id="L02: after a select that leaves when the context ends",
    ),
    pytest.param("L02", "func f(ready chan struct{}) {\n\tos.Remove(p)\n\tclose(ready)\n}", id="L02: after something that is no start"),
    pytest.param(
        "L02",
        "func f(ready chan struct{}) {\n\tif err := os.Remove(p); err != nil {\n\t\tlogrus.Error(err)\n\t}\n\tclose(ready)\n}",
        id="L02: after a failure that has nothing to do with it",
    ),
    pytest.param("L02", "func f(done chan struct{}) error {\n\tdefer close(done)\n\treturn run()\n}", id="L02: another channel"),
    pytest.param(
        "L02",
        "func f() error {\n\treturn executor.ETCD(ctx, func() error { return nil }) // hazard\n}",
        id="L02: a test that always succeeds",
    ),
    pytest.param(
        "L02",
        "func f() error {\n\tif db == nil {\n\t\treturn executor.ETCD(ctx, func() error { return nil })\n\t}\n\treturn nil\n}",
        id="L02: nothing to test",
    ),
    pytest.param(
        "L02", "func f() error { return executor.ETCD(ctx, func() error { return ping() }, func() error { return nil }()) }", id="L02: a test"
    ),
    # --- L04: what guards a close
    pytest.param(
        "L04",
        "func f(x bool) {\n\tready := make(chan struct{})\n\tif x {\n\t\tclose(ready)\n\t\treturn\n\t}\n\tclose(ready)\n}",
        id="L04: the first close leaves",
    ),
    pytest.param(
        "L04",
        "func f(x int) {\n\tready := make(chan struct{})\n\tswitch x {\n\tcase 1:\n\t\tclose(ready)\n\tcase 2:\n\t\tclose(ready)\n\t}\n}",
        id="L04: clauses of one switch",
    ),
    pytest.param(
        "L04",
        "func f(x bool) {\n\tready := make(chan struct{})\n\tif x {\n\t\tclose(ready) // hazard\n\t}\n\tclose(ready) // hazard\n}",
        id="L04: the first close goes on to the second",
    ),
    pytest.param(
        "L04",
        "type s struct{ ready chan struct{} }\n\nfunc (s *s) a() { close(s.ready) // hazard\n}\n\nfunc (s *s) b() { close(s.ready) // hazard\n}",
        id="L04: two methods",
    ),
    pytest.param(
        "L04",
        "type s struct{ ready chan struct{} }\n\nfunc (s *s) Docker() { close(s.ready) }\n\nfunc (s *s) CRI() { close(s.ready) }",
        id="L04: two starts of which one is used",
    ),
    pytest.param(
        "L04",
        "type s struct{ ready chan struct{} }\n\nfunc (s *s) a() {\n\tselect {\n\tcase <-s.ready:\n\tdefault:\n\t\tclose(s.ready)\n\t}\n}\n\n"
        "func (s *s) b() {\n\tif s.ready != nil {\n\t\tclose(s.ready)\n\t\ts.ready = nil\n\t}\n}",
        id="L04: closed only if it is open",
    ),
    pytest.param("L04", "func f(ready chan struct{}) {\n\tgo func() {\n\t\tclose(ready)\n\t}()\n}", id="L04: goroutine that closes a parameter"),
    # --- L05
    pytest.param(
        "L05",
        "type s struct{ ready chan struct{} }\n\nfunc (s *s) f(x bool) {\n\tif x && s.ready != nil { // hazard\n\t\tclose(s.ready)\n\t}\n}",
        id="L05: one of two conditions",
    ),
    pytest.param(
        "L05",
        "type s struct{ ready, x chan struct{} }\n\nfunc (s *s) f() {\n\tif s.x != nil {\n\t\tclose(s.ready)\n\t}\n}",
        id="L05: something else is asked",
    ),
    # --- L06
    pytest.param("L06", "func XReadyChan() chan struct{} {\n\treturn nil // hazard\n}", id="L06: always nil"),
    pytest.param("L06", "func XReadyChan() (<-chan struct{}, error) {\n\treturn nil, err\n}", id="L06: nil with an error"),
    pytest.param("L06", "func XReady() chan struct{} {\n\treturn nil\n}", id="L06: another function"),
    pytest.param(
        "L06", "func XReadyChan() chan struct{} {\n\tf := func() error {\n\t\treturn nil\n\t}\n\treturn get(f)\n}", id="L06: nil of a literal"
    ),
    pytest.param(
        "L06",
        "\n\n".join(
            f"func {name}() error {{\n\tif x == nil {{\n\t\treturn err\n\t}}\n\treturn x.{name}()\n}}" for name in ("A", "B", "C")
        )
        + "\n\nfunc D() error {\n\treturn x.D() // hazard\n}\n\nfunc E() error {\n\treturn y.E()\n}\n\nfunc F() error {\n\treturn x.G()\n}",
        id="L06: one of four has no test, others forward to something else",
    ),
    pytest.param(
        "L06",
        "func A() error {\n\tif x == nil {\n\t\treturn err\n\t}\n\treturn x.A()\n}\n\nfunc B() error {\n\treturn x.B()\n}",
        id="L06: no majority",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "body"), ROWS)
def test_rule_finds_the_marked_lines_only(rule: str, body: str) -> None:
    subject = tree(body)
    assert lines(subject, found(BY_ID[rule], subject)) == marked(body)


@pytest.mark.parametrize("path", ["pkg/x/x_test.go", "tests/mock/x.go"])
def test_tests_are_left_out(path: str) -> None:
    assert not found(BY_ID["L01"], tree("func f(ready chan struct{}) { <-ready }", path=path))


@pytest.mark.parametrize("path", ["pkg/x/x_windows.go", "pkg/x/x_linux.go", "main.go"])
def test_files_of_every_platform_are_looked_at(path: str) -> None:
    assert found(BY_ID["L01"], tree("func f(ready chan struct{}) { <-ready }", path=path))


def test_generated_files_are_left_out() -> None:
    text = "// Code generated by x. DO NOT EDIT.\n\npackage x\n\nfunc f(ready chan struct{}) { <-ready }\n"
    assert not found(BY_ID["L01"], tree("func g() {}", {"pkg/x/zz.go": text}))


START_METHODS = "\n\n".join(
    f"func (s *s) {name}() error {{ return nil }}"
    for name in "Bootstrap Kubelet KubeProxy APIServer Scheduler ControllerManager ETCD Containerd".split()
)


@pytest.mark.parametrize(
    ("body", "severity"),
    [
        pytest.param("func f(ready chan struct{}) { <-ready }", "warning", id="nobody waits"),
        pytest.param(
            "func f(wg *sync.WaitGroup, ready chan struct{}) {\n\tdefer wg.Done()\n\t<-ready\n}",
            "error",
            id="a WaitGroup waits",
        ),
        pytest.param(
            "func f(wg *sync.WaitGroup, ready chan struct{}) {\n\tdefer wg.Done()\n\tgo func() {\n\t\t<-ready\n\t}()\n}",
            "warning",
            id="a WaitGroup waits for the function around",
        ),
        pytest.param(
            f"func (s *s) Docker() error {{\n\t<-s.ready\n\treturn nil\n}}\n\n{START_METHODS}",
            "error",
            id="start method",
        ),
        pytest.param(
            f"func (s *s) Docker() error {{\n\tgo func() {{\n\t\t<-s.ready\n\t}}()\n\treturn nil\n}}\n\n{START_METHODS}",
            "warning",
            id="goroutine of a start method",
        ),
        pytest.param(
            "func (s *s) Docker() error {\n\t<-s.ready\n\treturn nil\n}",
            "warning",
            id="method of that name of no executor",
        ),
    ],
)
def test_severity_of_a_bare_receive(body: str, severity: str) -> None:
    (one,) = found(BY_ID["L01"], tree(f"{body}\n\ntype s struct{{ ready chan struct{{}} }}"))
    assert one.severity == severity


@pytest.mark.parametrize(
    ("body", "leave"),
    [
        pytest.param("func f(ctx context.Context, ready chan struct{}) {\n\t<-ready\n}", "return", id="no result"),
        pytest.param(
            "func f(ctx context.Context, ready chan struct{}) error {\n\t<-ready\n\treturn nil\n}",
            "return ctx.Err()",
            id="error",
        ),
        pytest.param(
            "func f(c context.Context, ready chan struct{}) (a, b int, s string, ok bool, p *T, m map[int]int, l []int, err error) {\n\t<-ready\n\treturn\n}",
            'return 0, 0, "", false, nil, nil, nil, c.Err()',
            id="zero values",
        ),
        pytest.param(
            "func f(ready chan struct{}) {\n\tctx, stop := context.WithCancel(base)\n\tdefer stop()\n\t<-ready\n}",
            "return",
            id="local",
        ),
    ],
)
def test_fix_leaves_with_what_the_function_returns(body: str, leave: str) -> None:
    subject = tree(body)
    after = fixed(subject, found(BY_ID["L01"], subject), "pkg/x/x.go")
    ctx = "c" if "c.Err()" in leave else "ctx"
    assert (
        f"\tselect {{\n\tcase <-{ctx}.Done():\n\t\t{leave}\n\tcase <-ready:\n\t}}" in after.data("pkg/x/x.go").decode()
    )


@pytest.mark.parametrize(
    ("rule", "body", "reason"),
    [
        pytest.param("L01", "func f(ready chan struct{}) { <-ready }", "no context is at hand", id="no context"),
        pytest.param(
            "L01",
            "func f(_ context.Context, ready chan struct{}) { <-ready }",
            "no context is at hand",
            id="thrown away",
        ),
        pytest.param(
            "L01",
            "func f(ctx context.Context, ready chan struct{}) T {\n\t<-ready\n\treturn g()\n}",
            "must return is not known",
            id="result",
        ),
        pytest.param(
            "L01",
            "func f(ctx context.Context, ready chan struct{}) (T, error) {\n\t<-ready\n\treturn g()\n}",
            "must return is not known",
            id="one of two results",
        ),
        pytest.param(
            "L01",
            "func f(ctx context.Context, ready, nodeReady chan struct{}) {\n\tdefer close(nodeReady)\n\t<-ready\n}",
            "leaving would close nodeReady",
            id="would become L02",
        ),
        pytest.param(
            "L01",
            "func f(ctx context.Context, ready chan struct{}) {\n\tx := <-ready\n\tuse(x)\n}",
            "part of another",
            id="value",
        ),
        pytest.param(
            "L01",
            "func f(ctx context.Context, ready chan struct{}) {\n\tselect {\n\tcase <-ready:\n\t}\n}",
            "part of another statement",
            id="case of a select",
        ),
        pytest.param(
            "L02",
            "func f(ready chan struct{}) error {\n\tdefer close(ready)\n\treturn run()\n}",
            "cannot be told",
            id="no helper in the tree",
        ),
        pytest.param(
            "L06",
            "\n\n".join(
                f"func {n}() error {{\n\tif x == nil {{\n\t\treturn err\n\t}}\n\treturn x.{n}()\n}}" for n in "ABC"
            )
            + "\n\nfunc D() (int, error) {\n\treturn x.D()\n}",
            "no sibling has the same results",
            id="other results",
        ),
    ],
)
def test_what_cannot_be_fixed_for_sure_is_left_to_a_person(rule: str, body: str, reason: str) -> None:
    (one,) = found(BY_ID[rule], tree(body))
    assert isinstance(one.verdict, Manual)
    assert reason in one.verdict.reason
    assert one.verdict.instruction
    assert not one.verdict.blocks


HELPER = {
    "pkg/daemons/executor/executor.go": "package executor\n\nfunc CloseIfNilErr(err error, ch chan struct{}) error { return err }\n"
}


def test_close_moves_to_the_helper_of_another_package() -> None:
    body = """package x

import "example.com/m/pkg/daemons/executor"

type s struct{ criReady chan struct{} }

func (s *s) CRI(path string) error {
	defer close(s.criReady)
	if path != "" {
		return wait(path)
	}
	return nil
}

var _ = executor.CloseIfNilErr
"""
    subject = tree(body, HELPER)
    text = fixed(subject, found(BY_ID["L02"], subject), "pkg/x/x.go").data("pkg/x/x.go").decode()
    assert "defer" not in text
    assert "\t\treturn executor.CloseIfNilErr(wait(path), s.criReady)\n" in text
    assert "\treturn executor.CloseIfNilErr(nil, s.criReady)\n" in text


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("defer close(s.criReady) // not yet\n\treturn run()", id="a comment would be lost"),
        pytest.param(
            "if x {\n\t\tdefer close(s.criReady)\n\t}\n\treturn run()", id="not a statement of the function itself"
        ),
    ],
)
def test_close_that_cannot_be_moved_is_left_to_a_person(body: str) -> None:
    imports = 'package x\n\nimport "example.com/m/pkg/daemons/executor"\n\nvar _ = executor.CloseIfNilErr\n\n'
    subject = tree(
        f"{imports}type s struct{{ criReady chan struct{{}} }}\n\nfunc (s *s) CRI() error {{\n\t{body}\n}}\n", HELPER
    )
    assert [isinstance(one.verdict, Rewrite) for one in found(BY_ID["L02"], subject)] == [False]


@pytest.mark.parametrize(
    ("rule", "body"),
    [
        pytest.param("L01", lambda n: "select {\n" + "\tcase <-ready:\n" * n + "\t}", id="cases of one select"),
        pytest.param("L02", lambda n: "defer close(ready)\n\t" * n, id="closes that one function defers"),
        pytest.param("L02", lambda n: "defer close(ready)\n\tif x {\n\t\treturn\n\t}\n\t" * n, id="and exits between"),
    ],
)
def test_work_grows_with_the_length_of_a_function(rule: str, body: Callable[[int], str]) -> None:
    few, many = (_calls(rule, f"func f(ready chan struct{{}}) {{\n\t{body(count)}\n}}") for count in (200, 800))
    assert many < 6 * few, f"{few} calls for 200, {many} for 800"


def _calls(rule: str, body: str) -> int:
    """Count the calls of Python functions that it takes to run a rule on a file."""
    subject = tree(body)
    calls = 0

    def count(_frame: object, event: str, _arg: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        found(BY_ID[rule], subject)
    finally:
        sys.setprofile(None)
    return calls
