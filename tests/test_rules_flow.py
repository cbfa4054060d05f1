"""What several rules build on: which statements never run on, and how a function is left."""

from __future__ import annotations

import pytest

from refactor_tool.rules import _fix
from refactor_tool.rules._flow import leaves
from tests.hazards import PATH, tree


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param("", False, id="nothing"),
        pytest.param("return", True, id="return"),
        pytest.param("for {\n\t\tcontinue\n\t}", True, id="endless loop"),
        pytest.param("for {\n\t\tif x {\n\t\t\tbreak\n\t\t}\n\t}", False, id="loop with a break"),
        pytest.param("for x {\n\t}", False, id="loop with a condition"),
        pytest.param(
            "for {\n\t\tgo func() {\n\t\t\tfor {\n\t\t\t\tbreak\n\t\t\t}\n\t\t}()\n\t}",
            True,
            id="the break of a literal",
        ),
        pytest.param("panic(1)", True, id="panic"),
        pytest.param("os.Exit(1)", True, id="exit"),
        pytest.param("logrus.WithError(err).Fatalf(x)", True, id="logger with an error"),
        pytest.param("logrus.Error(panic)", False, id="log"),
        pytest.param("{\n\t\treturn\n\t}", True, id="block"),
        pytest.param("if x {\n\t\treturn\n\t}", False, id="one branch"),
        pytest.param("if x {\n\t\treturn\n\t} else {\n\t\treturn\n\t}", True, id="both branches"),
        pytest.param("if x {\n\t\treturn\n\t} else if y {\n\t\treturn\n\t}", False, id="two of three branches"),
        pytest.param(
            "select {\n\tcase <-a:\n\t\treturn\n\tcase <-b:\n\t\treturn\n\t}", True, id="every case of a select"
        ),
        pytest.param("select {\n\tcase <-a:\n\t\treturn\n\tcase <-b:\n\t\tbreak\n\t}", False, id="a case that breaks"),
        pytest.param("select {\n\tcase <-a:\n\t\treturn\n\tcase <-b:\n\t}", False, id="a case that goes on"),
        pytest.param("switch x {\n\tcase 1:\n\t\treturn\n\t}", False, id="switch without a default"),
        pytest.param(
            "switch x {\n\tcase 1:\n\t\treturn\n\tdefault:\n\t\treturn\n\t}", True, id="switch with a default"
        ),
        pytest.param("loop:\n\tfor {\n\t\tcontinue loop\n\t}", True, id="label"),
        pytest.param("x := 1\n\tuse(x)", False, id="work"),
    ],
)
def test_statements_that_never_run_on(body: str, expected: bool) -> None:
    subject = tree(f"func f() {{\n\t{body}\n}}")
    (decl,) = (found for _, found in subject.functions("example.com/m/pkg/x", "f"))
    whole = subject.function(PATH, decl).body
    assert whole is not None
    assert leaves(subject, PATH, whole.stmts) is expected


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        pytest.param("", "return", id="none"),
        pytest.param("error", "return err", id="error"),
        pytest.param("(n int, err error)", "return 0, err", id="named"),
        pytest.param("(a, b float64, err error)", "return 0, 0, err", id="two of one type"),
        pytest.param(
            "(any, func(), chan int, interface{}, error)", "return nil, nil, nil, nil, err", id="what can be nil"
        ),
        pytest.param("(error, error)", "return nil, err", id="two errors"),
        pytest.param("bool", None, id="no error"),
        pytest.param("(T, error)", None, id="type that is not known"),
        pytest.param("(http.Handler, error)", None, id="type of another package"),
        pytest.param("([2]int, error)", None, id="array"),
    ],
)
def test_how_a_function_is_left(results: str, expected: str | None) -> None:
    subject = tree(f"func f() {results} {{\n\tpanic(1)\n}}")
    (decl,) = (found for _, found in subject.functions("example.com/m/pkg/x", "f"))
    assert _fix.leave(decl, "err") == expected
