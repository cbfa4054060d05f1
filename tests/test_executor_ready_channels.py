"""Step 2 gives the methods to whatever implements the interface, or says why it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from refactor_tool import engine
from refactor_tool.codemods.executor_ready_channels import CODEMOD
from refactor_tool.gosrc.tree import Tree
from refactor_tool.model import Edit, Finding, Leave, Manual, NewFile, Rewrite
from refactor_tool.record import replace
from refactor_tool.world.templates import load_templates
from refactor_tool.world.tree import read_ref
from tests import gotree

EXECUTOR = """package executor

import (
	"context"

	"example.com/m/pkg/daemons/config"
)

var executor Executor

type Executor interface {
	Bootstrap(ctx context.Context) error
	Containerd(ctx context.Context, node *config.Node) error
	Docker(ctx context.Context, node *config.Node) error
}

func Docker(ctx context.Context, node *config.Node) error {
	return executor.Docker(ctx, node)
}
"""
HALF_A_SIGNAL = """package util

type ReadySignal struct{}

func (r *ReadySignal) Chan() <-chan struct{} { return nil }

func (r *ReadySignal) Close() {}

func (r *ReadySignal) CloseIfNil(err error) error { return err }
"""
EMBED = """package executor

import (
	"context"

	"example.com/m/pkg/daemons/config"
)

type Embedded struct {
	node *config.Node
}

func (e *Embedded) Bootstrap(ctx context.Context) error {
	return nil
}

func (e *Embedded) Containerd(ctx context.Context, node *config.Node) error {
	return start(ctx, node)
}

func (e *Embedded) Docker(ctx context.Context, node *config.Node) error {
	return start(ctx, node)
}
"""
FILES = {
    "pkg/daemons/executor/executor.go": EXECUTOR,
    "pkg/daemons/executor/embed.go": EMBED,
    "pkg/daemons/config/types.go": "package config\n\ntype Node struct {\n\tContainerRuntimeEndpoint string\n}\n",
    "pkg/agent/cri/cri.go": 'package cri\n\nimport "context"\n\nfunc WaitForService(ctx context.Context, address, service string) error { return nil }\n',
    "pkg/util/util.go": "package util\n",
}


def findings(**changed: str) -> tuple[Finding, ...]:
    return engine.find(module(**changed), CODEMOD)


def module(**changed: str) -> Tree:
    """Return the module with some files replaced or added: `pkg__util__ready` is `pkg/util/ready.go`."""
    files = {f"{name.replace('__', '/')}.go": text for name, text in changed.items()}
    return gotree.of({"go.mod": f"module {gotree.MODULE}\n\ngo 1.23\n", **FILES, **files})


def refusals(**changed: str) -> list[str]:
    return [found.verdict.reason for found in findings(**changed) if isinstance(found.verdict, Manual)]


def changed_text(path: str, *edits: tuple[str, str]) -> str:
    text = FILES[path]
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return text


def created(**changed: str) -> set[str]:
    verdicts = [found.verdict for found in findings(**changed)]
    changes = [change for verdict in verdicts if isinstance(verdict, Rewrite) for change in verdict.changes]
    return {change.path for change in changes if isinstance(change, NewFile)}


def test_nothing_is_refused_in_the_plain_module() -> None:
    assert refusals() == []
    assert created() == {
        "pkg/daemons/executor/embed_test.go",
        "pkg/daemons/executor/ready_test.go",
        "pkg/util/ready.go",
        "pkg/util/ready_test.go",
        "tests/mock/executor.go",
    }


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        pytest.param("(e *Embedded) Bootstrap", "(e Embedded) Bootstrap", "works on a copy", id="value-receiver"),
        pytest.param("node *config.Node\n}", "criReady chan struct{}\n}", "has criReady already", id="field-without-accessor"),
        pytest.param("struct {\n\tnode *config.Node\n}", "struct{ node *config.Node }", "on one line", id="struct-on-one-line"),
        pytest.param("type Embedded struct {\n\tnode *config.Node\n}", "type (\n\tEmbedded struct {\n\t\tnode int\n\t}\n\tother int\n)", "in a group", id="struct-in-a-group"),
        pytest.param("type Embedded struct {\n\tnode *config.Node\n}", "type Embedded int", "not one struct", id="no-struct"),
        pytest.param("return start(ctx, node)", "err = start()\n\treturn", "return without its value", id="bare-return"),
        pytest.param("error {\n\treturn start", "(error, bool) {\n\treturn start", "does not return an error alone", id="two-results"),
        pytest.param("(e *Embedded) Docker(ctx", "(*Embedded) Docker(e", "e is taken", id="receiver-taken"),
        pytest.param("(e *Embedded) Docker(ctx context.Context, node *config.Node) error {\n\treturn start(ctx, node)\n}", "(*Embedded) Docker(e int) error { return nil }", "e is taken", id="receiver-taken-on-one-line"),
        pytest.param("error {\n\treturn start(ctx, node)\n}", "error { log(); return nil }", "more than a return", id="two-statements-on-one-line"),
        pytest.param('"context"\n', '"context"\n\n\tutil "example.com/other"\n', "pkg/util cannot be named", id="util-is-something-else"),
        pytest.param('"example.com/m/pkg/daemons/config"', 'daemonconfig "example.com/other/config"', "pkg/daemons/config cannot be named", id="config-is-something-else"),
    ],
)  # fmt: skip
def test_an_executor_that_cannot_be_derived_is_for_a_person(old: str, new: str, words: str) -> None:
    found = refusals(pkg__daemons__executor__embed=changed_text("pkg/daemons/executor/embed.go", (old, new)))
    assert found
    assert all(words in reason for reason in found)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        pytest.param({"pkg__agent__cri__cri": "package cri\n"}, "no WaitForService", id="no-wait-for-a-runtime"),
        pytest.param({"pkg__agent__cri__cri": "package cri\n\nimport _ \"example.com/m/pkg/daemons/executor\"\n"}, "would be a cycle", id="wait-imports-the-executor"),
        pytest.param({"pkg__daemons__config__types": "package config\n\ntype Node struct{}\n"}, "no field ContainerRuntimeEndpoint", id="no-endpoint"),
        pytest.param({"pkg__util__util": "package util\n\ntype ReadySignal int\n"}, "a ReadySignal that is something else", id="another-signal"),
        pytest.param({"pkg__util__util": HALF_A_SIGNAL}, "declares ReadySignal already", id="half-a-signal"),
        pytest.param({"pkg__util__ready": "package util\n", "pkg__util__ready_signal": "package util\n"}, "has files of the names", id="no-file-name-for-the-signal"),
        pytest.param({"tests__mock__core": "package mock\n\nfunc NewReady() {}\n"}, "something else by the name", id="mock-name-taken"),
        pytest.param({"pkg__daemons__executor__executor": changed_text("pkg/daemons/executor/executor.go", ("interface {", "interface {\n\tStopper"))}, "embeds Stopper", id="interface-that-embeds"),
        pytest.param({"pkg__daemons__executor__executor": changed_text("pkg/daemons/executor/executor.go", ('"context"', '"context"\n\n\tconfig2 "example.com/other/config"'), ("(ctx context.Context) error", "(ctx config2.Context) error"), ("config2", "config2"))}, "", id="alias-tells-packages-apart"),
        pytest.param({"pkg__daemons__executor__executor": changed_text("pkg/daemons/executor/executor.go", ('"context"', '"context"\n\n\tutil "example.com/other/util"'), ("(ctx context.Context) error", "(ctx util.Context) error"))}, "go by the name util", id="packages-of-one-name"),
        pytest.param({"pkg__daemons__executor__executor": changed_text("pkg/daemons/executor/executor.go", ("\tBootstrap(ctx context.Context) error\n\tContainerd(ctx context.Context, node *config.Node) error\n\tDocker(ctx context.Context, node *config.Node) error\n", " Docker(ctx context.Context, node *config.Node) error "), ("interface {\n", "interface {"))}, "not on lines of their own", id="interface-on-one-line"),
        pytest.param({"pkg__daemons__executor__executor": changed_text("pkg/daemons/executor/executor.go", ("executor Executor", "config Executor"), ("return executor.", "return config."))}, "do not all call one variable", id="variable-that-a-parameter-hides"),
        pytest.param({"pkg__daemons__executor__more": "package executor\n\nvar CRIReadyChan = 1\n"}, "declares a CRIReadyChan", id="name-of-a-forwarder-taken"),
    ],
)  # fmt: skip
def test_what_the_new_code_needs_is_looked_for_first(changed: dict[str, str], words: str) -> None:
    found = refusals(**changed)
    assert bool(found) == bool(words)
    assert all(words in reason for reason in found)


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        pytest.param("(e *Embedded) Docker", "(*Embedded) Docker", b"e ", id="without-a-name"),
        pytest.param("(e *Embedded) Docker", "(_ *Embedded) Docker", b"e", id="blank"),
        pytest.param("(e *Embedded)", "(own *Embedded)", b"own.criReady.CloseIfNil(", id="of-another-name"),
    ],
)
def test_a_receiver_gets_the_name_that_the_others_have(old: str, new: str, named: bytes) -> None:
    embed = changed_text("pkg/daemons/executor/embed.go", (old, new))
    start = next(
        found.verdict for found in findings(pkg__daemons__executor__embed=embed) if found.anchor == "embedded-docker"
    )
    assert isinstance(start, Rewrite)
    assert named in [change.text for change in start.changes if isinstance(change, Edit)]


@pytest.mark.parametrize(
    ("lines", "laid_out"),
    [
        pytest.param(
            [
                "(e *Fake) Start(_, a int) error { return nil }",
                "(e *Fake) Docker(_ []int) error { return nil }",
            ],
            [
                "(e *Fake) Start(_, a int) error { return nil }",
                "(e *Fake) Docker(_ []int) error { return e.criReady.CloseIfNil(nil) }",
            ],
            id="short-stays-on-its-line",
        ),
        pytest.param(
            ["(e *Fake) Docker(ctx context.Context, node *config.Node, _ int) error { return nil }"],
            [
                "(e *Fake) Docker(ctx context.Context, node *config.Node, _ int) error {",
                "\treturn e.criReady.CloseIfNil(nil)",
                "}",
            ],
            id="long-takes-three-lines",
        ),
        pytest.param(
            [
                "(e *Fake) Bootstrap(_ int) error     { return nil }",
                "(*Fake) Docker(_, some, more int) error { return nil }",
                "(e *Fake) Containerd() error            { return nil }",
            ],
            [
                "(e *Fake) Bootstrap(_ int) error          { return nil }",
                "(e *Fake) Docker(_, some, more int) error { return e.criReady.CloseIfNil(nil) }",
                "(e *Fake) Containerd() error              { return e.criReady.CloseIfNil(nil) }",
            ],
            id="columns-move-with-the-widest",
        ),
        pytest.param(
            [
                "(e *Fake) Bootstrap(_ int) error                                       { return nil }",
                "(e *Fake) Docker(ctx context.Context, node *config.Node, more int) error { return nil }",
                "(e *Fake) Containerd() error                                             { return nil }",
            ],
            [
                "(e *Fake) Bootstrap(_ int) error { return nil }",
                "(e *Fake) Docker(ctx context.Context, node *config.Node, more int) error {",
                "\treturn e.criReady.CloseIfNil(nil)",
                "}",
                "(e *Fake) Containerd() error { return e.criReady.CloseIfNil(nil) }",
            ],
            id="long-parts-the-columns",
        ),
        pytest.param(
            ["(e *Fake) Bootstrap() error { return nil }", "(*Fake) Docker(e int) error { return nil }", "(e *Fake) Containerd() error { return nil }"],
            [],
            id="refused-with-its-neighbour",
        ),
    ],
)  # fmt: skip
def test_functions_on_a_line_are_laid_out_as_gofmt_does(lines: list[str], laid_out: list[str]) -> None:
    fake = "package fakes\n\ntype Fake struct {\n\tnode int\n}\n\nvar _ executor.Executor = &Fake{}\n\n"
    imports = (
        '\nimport (\n\t"context"\n\n\t"example.com/m/pkg/daemons/config"\n\t"example.com/m/pkg/daemons/executor"\n)\n'
    )
    text = fake.replace("\n", f"\n{imports}", 1) + "".join(f"func {line}\n" for line in lines)
    tree = module(pkg__fakes__fake_test=text)
    ran = engine.run_codemod(tree, replace(CODEMOD, anchors=()), load_templates())
    after = [
        change.after.data.decode() for change in ran.changes if change.path == "pkg/fakes/fake_test.go" and change.after
    ]
    assert bool(after) == bool(laid_out)
    wanted = "".join(f"func {line}\n" if line.startswith("(") else f"{line}\n" for line in laid_out)
    assert [text[text.index("Fake{}") + 8 :][: len(wanted)] for text in after] == [wanted] * len(after)


@pytest.mark.parametrize("nil_guard", ["", "\tif executor == nil {\n\t\treturn nil\n\t}\n"], ids=["plain", "guarded"])
def test_functions_that_are_there_are_the_forwarders_in_whatever_form(nil_guard: str) -> None:
    names = ("CRI", "APIServerReadyChan", "ETCDReadyChan", "CRIReadyChan")
    methods = "".join(f"\t{name}() <-chan struct{{}}\n" for name in names)
    functions = "".join(
        f"\nfunc {name}() <-chan struct{{}} {{\n{nil_guard}\treturn executor.{name}()\n}}\n" for name in names
    )
    text = f"package executor\n\nvar executor Executor\n\ntype Executor interface {{\n{methods}}}\n{functions}"
    found = findings(pkg__daemons__executor__executor=text)
    assert {one.shape for one in found if isinstance(one.verdict, Leave)} >= {"interface", "forwarder", "forwarders"}
    assert not [one for one in found if one.shape == "forwarders" and not isinstance(one.verdict, Leave)]


def test_names_for_the_interface_and_its_functions_are_looked_for() -> None:
    text = EXECUTOR.replace('"example.com/m/pkg/daemons/config"', 'daemonconfig "example.com/other/config"').replace(
        "*config", "*daemonconfig"
    )
    found = findings(pkg__daemons__executor__executor=text)
    refused = {
        one.shape for one in found if isinstance(one.verdict, Manual) and "cannot be named" in one.verdict.reason
    }
    assert refused == {"interface", "forwarders"}


def test_without_a_function_that_calls_the_executor_there_is_no_place_for_more() -> None:
    text = EXECUTOR[: EXECUTOR.index("func Docker")]
    assert "executor-forwarders" not in {found.anchor for found in findings(pkg__daemons__executor__executor=text)}


def mock_of(methods: str, declarations: str = "") -> dict[str, str]:
    """Return what the mock's template gets for an interface with more methods."""
    imports = '"context"\n\t"net/http"\n\n\t"example.com/other/v2"\n\totherpkg "example.com/other/pkg"'
    edits = (("interface {\n", f"interface {{\n{methods}"), ('"context"', imports))
    text = changed_text("pkg/daemons/executor/executor.go", *edits) + declarations
    verdicts = [
        found.verdict for found in findings(pkg__daemons__executor__executor=text) if found.shape == "interface"
    ]
    (mock,) = (
        change.text
        for verdict in verdicts
        if isinstance(verdict, Rewrite)
        for change in verdict.changes
        if isinstance(change, NewFile) and change.path == "tests/mock/executor.go"
    )
    return dict(mock.params)


@pytest.mark.parametrize(
    ("method", "line"),
    [
        pytest.param("ETCDReadyChan() <-chan struct{}", "ETCDReadyChan() <-chan struct{}\treturn e.ETCDReady.Chan()", id="accessor-that-is-there"),
        pytest.param("Serve() (http.Handler, error)", "Serve() (http.Handler, error)\treturn nil, errNotImplemented", id="known-interface"),
        pytest.param("Get() (other.T, bool)", "Get() (r0 other.T, r1 bool)\treturn r0, false", id="type-of-elsewhere"),
        pytest.param("Get() otherpkg.T", "Get() (r0 otherpkg.T)\treturn r0", id="alias-of-elsewhere"),
        pytest.param("Get() (Loop, error)", "Get() (r0 executor.Loop, r1 error)\treturn r0, errNotImplemented", id="type-without-end"),
        pytest.param("Get() Alias", "Get() executor.Alias\treturn executor.Alias{}", id="struct-through-an-alias"),
        pytest.param("Get() (a, b *Alias)", "Get() (*executor.Alias, *executor.Alias)\treturn nil, nil", id="named-results"),
        pytest.param("Do(f func(Loop) map[string]Alias)", "Do(f func(executor.Loop) map[string]executor.Alias)\t", id="types-in-types"),
        pytest.param("Do(a, b int, _ string)", "Do(a, b int, arg2 string)\t", id="several-of-a-type"),
    ],
)  # fmt: skip
def test_the_mock_follows_from_the_interface(method: str, line: str) -> None:
    declarations = "\ntype Loop Loop2\n\ntype Loop2 Loop\n\ntype Alias = real\n\ntype real struct{}\n"
    assert line in mock_of(f"\t{method}\n", declarations)["methods"].split("\n")


def test_the_mock_has_a_receiver_that_no_parameter_has() -> None:
    assert mock_of("")["receiver"] == "e"
    assert mock_of("\tDo(e, mock int)\n")["receiver"] == "receiver"


def test_a_tree_without_the_interface_has_no_site() -> None:
    assert findings(pkg__daemons__executor__executor="package executor\n\ntype Executor struct{}\n") == ()


def test_tests_are_left_out_where_their_names_are_taken() -> None:
    executor_tests = {"pkg/daemons/executor/embed_test.go", "pkg/daemons/executor/ready_test.go"}
    everything = created()
    taken = "\n\nfunc isClosed() {}\n"

    assert created(pkg__daemons__executor__other_test=f"package executor{taken}") == everything - executor_tests
    assert created(pkg__util__other_test=f"package util{taken}") == everything - {"pkg/util/ready_test.go"}
    assert created(pkg__daemons__executor__embed_test="package executor\n") == everything - {
        "pkg/daemons/executor/embed_test.go"
    }
    assert created(pkg__util__ready="package util\n") == everything - {
        "pkg/util/ready.go",
        "pkg/util/ready_test.go",
    } | {
        "pkg/util/ready_signal.go",
        "pkg/util/ready_signal_test.go",
    }


def test_an_executor_in_another_package_may_name_none_of_the_new_imports_twice() -> None:
    pods = EMBED.replace("package executor", "package pods").replace("Embedded", "Pods")
    found = [found for found in findings(pkg__pods__pods=pods) if found.path == "pkg/pods/pods.go"]
    assert {found.shape for found in found} == {"executor-state", "runtime-start", "executor-cri"}
    assert all(isinstance(found.verdict, Rewrite) and not found.anchor for found in found)


@pytest.mark.parametrize("ref", ["before/issue", "before/pr-base", "older/v1.30", "older/v1.26", "during/readyz"])
def test_everything_is_added_on_real_trees(corpus: Path, ref: str) -> None:
    found = engine.find(Tree(read_ref(corpus / "k3s.git", ref)), CODEMOD)
    assert all(isinstance(finding.verdict, Rewrite) for finding in found)
    assert {"executor-interface", "executor-forwarders", "embedded-state", "embedded-cri"} <= {f.anchor for f in found}


@pytest.mark.parametrize("ref", ["after/etcd", "later/2025-06", "later/2025-11", "later/2026-04"])
def test_upstreams_way_is_done_on_real_trees(corpus: Path, ref: str) -> None:
    found = engine.find(Tree(read_ref(corpus / "k3s.git", ref)), CODEMOD)
    assert found
    assert all(isinstance(finding.verdict, Leave) and finding.verdict.done for finding in found)


@pytest.mark.parametrize(
    ("ref", "lacking"),
    [
        ("during/apiserver", "CRI, ETCDReadyChan, CRIReadyChan"),
        ("during/cri", "ETCDReadyChan"),
        ("during/tests", "ETCDReadyChan"),
    ],
)
def test_what_upstream_began_is_completed_on_real_trees(corpus: Path, ref: str, lacking: str) -> None:
    found = engine.find(Tree(read_ref(corpus / "k3s.git", ref)), CODEMOD)
    interface = next(finding for finding in found if finding.anchor == "executor-interface")
    assert isinstance(interface.verdict, Rewrite)
    assert interface.message == f"let the executor have {lacking}"
    assert not [finding for finding in found if isinstance(finding.verdict, Manual)]
