"""L07, L08, L14, L15, L22 and the rules that compare, at their edges."""

from __future__ import annotations

import pytest

from refactor_tool.model import Manual
from tests.hazards import BY_ID, PATH, fixed, found, lines, marked, tree

CONFIG = {
    "pkg/daemons/config/types.go": "package config\n\ntype Control struct {\n\tRuntime *ControlRuntime\n}\n\n"
    "type ControlRuntime struct {\n\tCore *Factory\n\tK3s *Factory\n\tClusterControllerStarts map[string]func()\n}\n"
}
SIGNALS = {"pkg/signals/signals.go": "package signals\n\nfunc RequestShutdown(err error) {}\n"}
HEAD = 'package x\n\nimport "example.com/m/pkg/daemons/config"\n\n'

ROWS = [
    # --- L07
    pytest.param("L07", "func run() error {\n\tx := executor.CurrentETCDOptions()\n\texecutor.Set(x)\n\treturn executor.Bootstrap(ctx)\n}", id="L07: what sets the executor up, or asks what it is"),
    pytest.param("L07", "func run() error {\n\texecutor.Docker(ctx) // hazard\n\treturn executor.Bootstrap(ctx)\n}", id="L07: a start"),
    pytest.param("L07", "func run() error {\n\tdefer func() { executor.Docker(ctx) }()\n\treturn executor.Bootstrap(ctx)\n}", id="L07: in a deferred literal"),
    pytest.param("L07", "func run(c *cluster) error {\n\texecutor.Docker(ctx)\n\treturn c.Bootstrap(ctx)\n}", id="L07: another Bootstrap"),
    pytest.param("L07", "func run() error {\n\texecutor.Docker(ctx)\n\treturn nil\n}\n\nfunc other() error { return executor.Bootstrap(ctx) }", id="L07: another function"),
    pytest.param("L07", "func run() error {\n\twaitForServer() // hazard\n\treturn executor.Bootstrap(ctx)\n}\n\nfunc waitForServer() { a() }\n\nfunc a() { b() }\n\nfunc b() { get(\"/v1/readyz\") }", id="L07: asks for readyz two calls away"),
    pytest.param("L07", "func run() error {\n\twaitForServer()\n\treturn executor.Bootstrap(ctx)\n}\n\nfunc waitForServer() { get(\"/v1/config\") }\n\nfunc b() { get(\"/v1/readyz\") }", id="L07: asks for something else"),
    pytest.param("L07", "func f(criReady chan struct{}) {\n\t<-criReady\n\tcri.Connection(ctx)\n}", id="L07: connects after the wait"),
    pytest.param("L07", "func f(criReady chan struct{}) {\n\tcri.Connection(ctx) // hazard\n\tgo func() { <-criReady }()\n}", id="L07: connects before the wait"),
    pytest.param("L07", "func f(ready chan struct{}) {\n\tcri.Connection(ctx)\n\t<-ready\n}", id="L07: waits for something else"),
    # --- L08
    pytest.param("L08", "func f() {\n\tgo func() {\n\t\tklog.Exitf(\"x\") // hazard\n\t\tklog.Info(1)\n\t}()\n}", id="L08: another logger"),
    pytest.param("L08", "func f(logrus fake) {\n\tgo func() {\n\t\tlogrus.Fatal(1)\n\t}()\n}", id="L08: logrus means something else"),
    pytest.param("L08", "func f() {\n\tgo func() {\n\t\tpanic(1)\n\t}()\n}\n\nfunc panic(int) {}", id="L08: panic means something else"),
    pytest.param("L08", "func f() {\n\tgo wait.Until(func() {\n\t\tos.Exit(1) // hazard\n\t}, 1, stop)\n}", id="L08: in a literal that a goroutine calls"),
    pytest.param("L08", "func f() {\n\tgo func() {\n\t\tdefer func() {\n\t\t\tif r := recover(); r != nil {\n\t\t\t\tos.Exit(1)\n\t\t\t}\n\t\t}()\n\t}()\n}", id="L08: in a handler of panics"),
    pytest.param("L08", "func f() {\n\tgo func() {\n\t\tfunc() {\n\t\t\trecover()\n\t\t\tos.Exit(1) // hazard\n\t\t}()\n\t}()\n}", id="L08: recover where nothing is deferred"),
    pytest.param("L08", "func f() {\n\tos.Exit(1)\n\tgo g()\n}\n\nfunc g() {}", id="L08: not in the goroutine"),
    pytest.param("L08", "type t struct{}\n\nfunc f(t *t) {\n\tgo t.serve()\n}\n\nfunc (*t) serve() {\n\tos.Exit(1) // hazard\n}", id="L08: in a method that a goroutine runs"),
    pytest.param("L08", "type t struct{}\n\ntype u struct{}\n\nfunc f(t *t) {\n\tgo t.serve()\n}\n\nfunc (*t) serve() {}\n\nfunc (*u) serve() {\n\tos.Exit(1)\n}", id="L08: in a method of that name of another type"),
    pytest.param("L08", "func f() {\n\tgo func() {\n\t\tlogrus.WithField(a, b).WithError(err).Fatal(1) // hazard\n\t\tx.Fatal(1)\n\t}()\n}", id="L08: logger with fields"),
    # --- L14
    pytest.param("L14", "func f(c *cfg) {\n\tgo func() { c.wg.Wait() }()\n\tc.wg = &sync.WaitGroup{} // hazard\n}", id="L14: literal"),
    pytest.param("L14", "func f(c *cfg) {\n\tgo func() { use(c) }()\n\tc.m = make(map[int]int) // hazard\n}\n\nfunc use(c *cfg) { c.m[1] = 1 }", id="L14: what the literal calls"),
    pytest.param("L14", "func f(c *cfg) {\n\tgo use(c)\n\tc.m = new(int)\n}\n\nfunc use(c *cfg) { c.other = 1 }", id="L14: another field"),
    pytest.param("L14", "func f(c *cfg) {\n\tgo c.serve()\n\tc.m = new(int) // hazard\n}\n\ntype cfg struct{ m *int }\n\nfunc (c *cfg) serve() { *c.m = 1 }", id="L14: method"),
    pytest.param("L14", "func f(c *cfg) {\n\tif x {\n\t\tc.m = new(int)\n\t} else {\n\t\tgo func() { use(c.m) }()\n\t}\n}", id="L14: in another branch"),
    pytest.param("L14", "func f(c *cfg) {\n\tgo outside.Run(c)\n\tc.m = new(int)\n}", id="L14: a function that is not in the tree"),
    pytest.param("L14", "func f(c *cfg) {\n\tgo func() { c.a.Wait() }()\n\tc.a = &sync.WaitGroup{} // hazard\n}\n\nfunc g(c *cfg) {\n\tgo func() { c.b.Wait() }()\n\tc.b = &sync.WaitGroup{} // hazard\n}", id="L14: each place"),
    # --- L15
    pytest.param("L15", HEAD + "func f(c *config.Control) {\n\tuse(c.Runtime.Core.Core()) // hazard\n\tuse(c.Runtime.Core.Core())\n\tuse(c.Runtime.K3s.K3s()) // hazard\n}\n", id="L15: each client once"),
    pytest.param("L15", HEAD + "func f(c *config.Control) bool {\n\treturn c.Runtime.Core != nil && use(c.Runtime.Core.Core())\n}\n", id="L15: tested in the same expression"),
    pytest.param("L15", HEAD + "func f(c *config.Control) {\n\tfor c.Runtime.Core == nil {\n\t\trest()\n\t}\n\tgo func() {\n\t\tuse(c.Runtime.Core.Core())\n\t}()\n}\n", id="L15: waited for around the literal"),
    pytest.param("L15", HEAD + "func f(c *config.Control) {\n\tif c.Runtime.K3s == nil {\n\t\treturn\n\t}\n\tuse(c.Runtime.Core.Core()) // hazard\n}\n", id="L15: another one is tested"),
    pytest.param("L15", "func f(c *other) {\n\tuse(c.Core.Core())\n}\n\ntype other struct{ Core *F }", id="L15: another type"),
    pytest.param("L15", HEAD + "func g(c *config.Control) {\n\tc.Runtime.ClusterControllerStarts[a] = start\n}\n\nfunc start() { later(c) }\n\nfunc later(c *config.Control) {\n\tuse(c.Runtime.Core.Core())\n}\n", id="L15: called from what is registered"),
    # --- L22
    pytest.param("L22", "func (e *e) f(ctx context.Context) {\n\tgo func() {\n\t\tselect {\n\t\tcase <-ctx.Done():\n\t\t\te.client = nil // hazard\n\t\t}\n\t}()\n}", id="L22: in a case"),
    pytest.param("L22", "func (e *e) f(ctx context.Context) {\n\tgo func() {\n\t\t<-ctx.Done()\n\t\tclient = nil\n\t}()\n}", id="L22: no field"),
    pytest.param("L22", "func (e *e) f(ctx context.Context) {\n\tgo func() {\n\t\t<-ctx.Done()\n\t\te.err, x = nil, nil\n\t}()\n}", id="L22: several at once"),
    pytest.param("L22", "func (e *e) f(ctx context.Context) {\n\tfunc() {\n\t\t<-ctx.Done()\n\t\te.client = nil\n\t}()\n\tgo func() {}()\n}", id="L22: no goroutine"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "body"), ROWS)
def test_rule_finds_the_marked_lines_only(rule: str, body: str) -> None:
    subject = tree(body, CONFIG if rule == "L15" else None)
    assert lines(subject, found(BY_ID[rule], subject)) == marked(body)


def test_what_handles_the_shutdown_may_end_the_process() -> None:
    body = "func f() {\n\tgo func() {\n\t\tos.Exit(1)\n\t}()\n}"
    assert not found(BY_ID["L08"], tree(body, path="pkg/signals/signals.go"))
    assert found(BY_ID["L08"], tree(body, path="pkg/signalsx/signals.go"))


GO = "func f(ctx context.Context) {{\n\tlogrus.Info(1)\n\tgo func() {{\n\t\t{}\n\t}}()\n}}"


@pytest.mark.parametrize(
    ("rule", "body", "reason"),
    [
        pytest.param("L08", GO.format("os.Exit(1)"), "which error the node should end with", id="L08: no message"),
        pytest.param("L08", GO.format("logrus.Fatalln(1)"), "which error the node should end with", id="L08: another form"),
        pytest.param("L08", "func f() {\n\tgo g()\n}\n\nfunc g() {\n\tlogrus.Fatal(1)\n}", "not the goroutine's own function", id="L08: function"),
        pytest.param("L08", GO.format("each(func() error {\n\t\t\tlogrus.Fatal(1)\n\t\t\treturn nil\n\t\t})"), "not the goroutine's own", id="L08: callback"),
        pytest.param("L08", GO.format("logrus.Fatalf(\"%v\",\n\t\t\terr)"), "several lines", id="L08: message of several lines"),
        pytest.param("L08", GO.format("signals := 1\n\t\tuse(signals)\n\t\tlogrus.Fatal(1)"), "cannot be named here", id="L08: shadowed"),
        pytest.param("L08", "func f(ready chan struct{}) {\n\tgo func() {\n\t\tdefer close(ready)\n\t\tlogrus.Fatal(1)\n\t}()\n}", "leaving would close ready", id="L08: would become L02"),
        pytest.param("L22", "func (e *e) f(ctx context.Context) {\n\tgo func() {\n\t\t<-ctx.Done()\n\t\te.client = nil // done\n\t}()\n}", "the line holds something else", id="L22: comment"),
    ],
)  # fmt: skip
def test_what_cannot_be_fixed_for_sure_is_left_to_a_person(rule: str, body: str, reason: str) -> None:
    (one,) = found(BY_ID[rule], tree(body, SIGNALS))
    assert isinstance(one.verdict, Manual)
    assert reason in one.verdict.reason


@pytest.mark.parametrize(
    ("statement", "after"),
    [
        pytest.param('logrus.Fatalf("x: %v", err)', 'signals.RequestShutdown(fmt.Errorf("x: %v", err))', id="format"),
        pytest.param('logrus.Fatal("x", err)', 'signals.RequestShutdown(fmt.Errorf("%s", fmt.Sprint("x", err)))', id="values"),
        pytest.param("if x {\n\t\t\tlogrus.Fatal(err)\n\t\t}", 'signals.RequestShutdown(fmt.Errorf("%s", fmt.Sprint(err)))\n\t\t\treturn', id="more follows"),
    ],
)  # fmt: skip
def test_goroutine_asks_for_a_shutdown(statement: str, after: str) -> None:
    subject = tree(GO.format(statement), SIGNALS)
    text = fixed(subject, found(BY_ID["L08"], subject), PATH).data(PATH).decode()
    assert after in text
    assert '\t"example.com/m/pkg/signals"\n' in text
    assert '\t"fmt"\n' in text


LOOP = "func f() {{\n\tfor _, x := range xs {{\n\t\tif skip(x) {{\n\t\t\t{}\n\t\t}}\n\t\tuse(x)\n\t}}\n}}"
SELECT = "func f(ctx context.Context, ready chan struct{}) {\n\tselect {\n\tcase <-ctx.Done():\n\t\treturn\n\tcase <-ready:\n\t}\n}"
RECEIVE = "func f(ctx context.Context, ready chan struct{}) {\n\t<-ready // hazard\n}"

CHANGES = [
    pytest.param("D1", LOOP.format("continue"), LOOP.format("return // hazard"), id="D1: the same loop"),
    pytest.param("D1", LOOP.format("return"), LOOP.format("continue"), id="D1: the other way round"),
    pytest.param("D1", LOOP.format("continue"), LOOP.format("break"), id="D1: break"),
    pytest.param("D1", LOOP.format("continue"), LOOP.format("return").replace("xs", "ys"), id="D1: another loop"),
    pytest.param("D1", LOOP.format("continue"), LOOP.format("return").replace("func f", "func g"), id="D1: another function"),
    pytest.param("D1", LOOP.format("continue"), LOOP.format("each(func() { return })"), id="D1: the return of a literal"),
    pytest.param("D2", SELECT, RECEIVE, id="D2: the select is gone"),
    pytest.param("D2", RECEIVE.replace(" // hazard", ""), SELECT, id="D2: the other way round"),
    pytest.param("D2", SELECT, SELECT + "\n\nfunc g(ready chan struct{}) { <-ready }", id="D2: a bare receive of its own"),
    pytest.param("D2", SELECT, SELECT.replace("}\n}", "}\n\t<-ready\n}"), id="D2: the select stays"),
    pytest.param("D2", SELECT, "func f(ctx context.Context, ready chan struct{}) {}", id="D2: nothing waits any more"),
    pytest.param("D2", "func f(ctx context.Context, ready chan struct{}) {\n\tutil.WaitForAPIServerReady(ctx)\n}", RECEIVE, id="D2: a call that waited"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "before", "after"), CHANGES)
def test_change_is_told_on_the_marked_lines_only(rule: str, before: str, after: str) -> None:
    subject = tree(after)
    assert lines(subject, found(BY_ID[rule], subject, tree(before))) == marked(after)


@pytest.mark.parametrize("rule", ["D1", "D2"])
def test_change_in_a_function_that_moved_is_seen(rule: str) -> None:
    old, new = (LOOP.format("continue"), LOOP.format("return")) if rule == "D1" else (SELECT, RECEIVE)
    assert [one.path for one in found(BY_ID[rule], tree(new, path="pkg/x/y.go"), tree(old))] == ["pkg/x/y.go"]


@pytest.mark.parametrize("rule", ["D1", "D2"])
def test_change_in_one_of_two_variants_is_seen_in_that_one(rule: str) -> None:
    old, new = (LOOP.format("continue"), LOOP.format("return")) if rule == "D1" else (SELECT, RECEIVE)
    other = {"pkg/x/x_windows.go": tree(old).data(PATH).decode()}
    assert [one.path for one in found(BY_ID[rule], tree(new, other), tree(old, other))] == [PATH]


@pytest.mark.parametrize("rule", ["D1", "D2", "D3"])
def test_no_change_says_nothing(rule: str) -> None:
    assert not found(BY_ID[rule], tree(SELECT), tree(SELECT))


RUN = 'package agent\n\nimport "example.com/k/pkg/daemons/executor"\n\nfunc run() {{\n\t{}\n}}\n'
AGENT = "pkg/agent/run.go"


@pytest.mark.parametrize(
    ("before", "after", "messages"),
    [
        pytest.param(["CRI", "CNI", "Kubelet"], ["CNI", "Kubelet", "CRI"], ["executor.CRI now after executor.CNI; it was the other way round"], id="one moved down"),
        pytest.param(["CRI", "CNI", "Kubelet"], ["Kubelet", "CRI", "CNI"], ["executor.Kubelet now before executor.CRI; it was the other way round"], id="one moved up"),
        pytest.param(["CRI", "Kubelet"], ["CRI", "CNI", "Kubelet"], [], id="one more"),
        pytest.param(["CRI", "CNI", "Kubelet"], ["CRI", "Kubelet"], [], id="one less"),
    ],
)  # fmt: skip
def test_order_that_changed_is_told_once_a_place(before: list[str], after: list[str], messages: list[str]) -> None:
    old, new = (
        tree(RUN.format("\n\t".join(f"executor.{n}()" for n in names)), path=AGENT) for names in (before, after)
    )
    assert [one.message for one in found(BY_ID["D3"], new, old)] == messages


def test_starts_of_one_call_are_told_together() -> None:
    old = tree(RUN.format("executor.CRI()\n\texecutor.CNI()\n\tstart()"), path=AGENT)
    moved = RUN.format("go start()") + "\nfunc start() {\n\texecutor.CRI()\n\texecutor.CNI()\n\tstart()\n}\n"
    (one,) = found(BY_ID["D3"], tree(moved, path=AGENT), old)
    assert one.message == (
        "executor.CRI and executor.CNI are started in a goroutine now: what follows does not wait for it"
    )


def test_start_that_is_done_earlier_in_every_branch_is_seen() -> None:
    early = "if x {\n\t\texecutor.Kubelet()\n\t}\n\t"
    old = tree(RUN.format(f"{early}executor.CNI()\n\texecutor.Kubelet()"), path=AGENT)
    (one,) = found(BY_ID["D3"], tree(RUN.format("executor.Kubelet()\n\texecutor.CNI()"), path=AGENT), old)
    assert one.message == "executor.CNI now after executor.Kubelet; it was the other way round"


def test_start_that_stays_in_one_branch_is_not_detached() -> None:
    old = tree(RUN.format("executor.CNI()"), path=AGENT)
    new = tree(
        RUN.format("if x {\n\t\tgo func() { executor.CNI() }()\n\t} else {\n\t\texecutor.CNI()\n\t}"), path=AGENT
    )
    assert not found(BY_ID["D3"], new, old)


def test_order_elsewhere_is_not_looked_at() -> None:
    old, new = (tree(RUN.format(text).replace("package agent", "package x")) for text in ("executor.CRI()\n\texecutor.CNI()", "executor.CNI()\n\texecutor.CRI()"))  # fmt: skip
    assert not found(BY_ID["D3"], new, old)
