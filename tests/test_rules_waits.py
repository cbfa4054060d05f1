"""L03, L09, L10, L12, L16 and L17 at their edges: what is a wait, what counts as looking at its result, what ends a loop."""

from __future__ import annotations

import pytest

from refactor_tool.model import Manual
from tests.hazards import BY_ID, fixed, found, lines, marked, tree

WAIT = "util.WaitForAPIServerReady(ctx)"
POLL = "wait.PollUntilContextTimeout(ctx, 1, 2, true, g)"

ROWS = [
    # --- L03: what is a wait, what excuses its error, and what follows
    pytest.param("L03", f"func f() error {{\n\terr := {WAIT}\n\tif err != nil && !errors.Is(err, context.Canceled) {{ // hazard\n\t\treturn err\n\t}}\n\treturn nil\n}}", id="L03: cancelled"),
    pytest.param("L03", f"func f() error {{\n\terr := {POLL}\n\tif err != nil && err != context.DeadlineExceeded {{ // hazard\n\t\treturn err\n\t}}\n\trun()\n\treturn nil\n}}", id="L03: out of time, compared"),
    pytest.param("L03", f"func f() error {{\n\tif err := {POLL}; (err != nil) && !(wait.Interrupted(err)) {{\n\t\treturn err\n\t}}\n\treturn nil\n}}", id="L03: in parentheses"),
    pytest.param("L03", f"func f() error {{\n\tif err := {POLL}; err != nil && !wait.Interrupted(err) {{ // hazard\n\t\treturn err\n\t}}\n\treturn nil\n}}", id="L03: interrupted"),
    pytest.param("L03", f"func f() error {{\n\tif err := {POLL}; err != nil {{\n\t\tif !errors.Is(err, wait.ErrWaitTimeout) {{ // hazard\n\t\t\treturn err\n\t\t}}\n\t}}\n\treturn nil\n}}", id="L03: in two steps"),
    pytest.param("L03", "func f() error {\n\terr := run(ctx)\n\tif err != nil && !errors.Is(err, context.Canceled) {\n\t\treturn err\n\t}\n\treturn nil\n}\n\nfunc run(ctx context.Context) error { return nil }", id="L03: a function that does not poll"),
    pytest.param("L03", f"func f() error {{\n\terr := check(ctx)\n\tif err != nil && !errors.Is(err, context.Canceled) {{ // hazard\n\t\treturn err\n\t}}\n\treturn nil\n}}\n\nfunc check(ctx context.Context) error {{ return {POLL} }}", id="L03: a function that polls"),
    pytest.param("L03", f"func f() error {{\n\terr := {WAIT}\n\tif err != nil && !errors.Is(err, context.Canceled) {{\n\t\treturn errors.New(\"x\")\n\t}}\n\treturn err\n}}", id="L03: the error is returned after all"),
    pytest.param("L03", f"func f() error {{\n\terr := {WAIT}\n\tif err != nil && !errors.Is(err, context.Canceled) {{\n\t\treturn err\n\t}}\n\treturn ctx.Err()\n}}", id="L03: the context's error is returned"),
    pytest.param("L03", f"func f() error {{\n\terr := {WAIT}\n\tif err != nil && !errors.Is(err, context.Canceled) {{\n\t\treturn err\n\t}}\n\tif err != nil {{\n\t\treturn nil\n\t}}\n\treturn run()\n}}", id="L03: the error is tested again"),
    pytest.param("L03", f"func f() {{\n\tfor {{\n\t\tif err := {WAIT}; err != nil && !errors.Is(err, context.Canceled) {{\n\t\t\treport(err)\n\t\t}}\n\t}}\n}}", id="L03: the end of a round"),
    pytest.param("L03", f"func f() {{\n\tif err := {WAIT}; err != nil && !errors.Is(err, context.Canceled) {{\n\t\treport(err)\n\t}} else {{\n\t\trun(err)\n\t}}\n}}", id="L03: with an else"),
    pytest.param("L03", f"func f(nodeReady chan struct{{}}) {{\n\tdefer close(nodeReady)\n\tif err := {WAIT}; err != nil && !errors.Is(err, context.Canceled) {{ // hazard\n\t\treport(err)\n\t}}\n}}", id="L03: a channel is closed at the end"),
    pytest.param("L03", f"func f(context fake) error {{\n\terr := {WAIT}\n\tif err != nil && !errors.Is(err, context.Canceled) {{\n\t\treturn err\n\t}}\n\treturn nil\n}}", id="L03: context means something else"),
    # --- L09: what is dropped
    pytest.param("L09", f"func f() {{\n\t{WAIT} // hazard\n}}", id="L09: wait"),
    pytest.param("L09", "func f() {\n\texecutor.Kubelet(ctx) // hazard\n}", id="L09: start"),
    pytest.param("L09", "func f() {\n\tgo executor.Kubelet(ctx) // hazard\n}", id="L09: start in a go statement"),
    pytest.param("L09", "func f() {\n\tgo util.WaitForAPIServerReady(ctx) // hazard\n}", id="L09: wait in a go statement"),
    pytest.param("L09", f"func f() error {{\n\t_ = {WAIT}\n\tx := {POLL}\n\treturn x\n}}", id="L09: dropped on purpose, or kept"),
    pytest.param("L09", "func f() {\n\texecutor.Set(x)\n\texecutor.IsSelfHosted()\n\texecutor.CRIReadyChan()\n}", id="L09: functions without an error"),
    pytest.param("L09", "func f(executor fake) {\n\texecutor.Kubelet(ctx)\n}", id="L09: executor means something else"),
    pytest.param("L09", "func f() {\n\twait.PollUntilContextCancel(ctx, 1, true, func(ctx context.Context) (bool, error) { return ok(), nil })\n}", id="L09: unbounded and last"),
    pytest.param("L09", "func f() {\n\twait.PollUntilContextCancel(ctx, 1, true, func(ctx context.Context) (bool, error) { return ok(), nil }) // hazard\n\trun()\n}", id="L09: unbounded, and something follows"),
    pytest.param("L09", "func f() {\n\twait.PollUntilContextCancel(ctx, 1, true, func(ctx context.Context) (bool, error) { return false, err }) // hazard\n}", id="L09: unbounded, but gives up"),
    pytest.param("L09", "func f() {\n\twait.PollUntilContextCancel(ctx, 1, true, g) // hazard\n}", id="L09: unbounded, with a callback from elsewhere"),
    pytest.param("L09", "func f() {\n\twaitForX(ctx)\n}\n\nfunc waitForX(ctx context.Context) {}", id="L09: wait without an error"),
    pytest.param("L09", "func f() {\n\tfactory.WaitForCacheSync(stop) // hazard\n\trun()\n}", id="L09: sync of a factory"),
    pytest.param("L09", "func f() {\n\tcache.WaitForCacheSync(stop, x)\n}", id="L09: sync with nothing after it"),
    pytest.param("L09", "func f() {\n\tgo func() { executor.Kubelet(ctx) // hazard\n\t}()\n}", id="L09: in a literal on one line"),
    # --- L12: what only reports
    pytest.param("L12", f"func f() {{\n\tif err := {WAIT}; err != nil {{ // hazard\n\t\tlogrus.Errorf(\"x: %v\", err)\n\t}}\n\trun()\n}}", id="L12: logged"),
    pytest.param("L12", f"func f() {{\n\terr := {WAIT}\n\tif err != nil {{ // hazard\n\t\tlogrus.Error(err)\n\t}}\n\trun()\n}}", id="L12: in two statements"),
    pytest.param("L12", f"func f() {{\n\tif err := {WAIT}; err != nil {{\n\t\tlogrus.Fatal(err)\n\t}}\n\trun()\n}}", id="L12: ends the process"),
    pytest.param("L12", f"func f() {{\n\tif err := {WAIT}; err != nil {{\n\t\tlogrus.Error(err)\n\t\tretry()\n\t}}\n\trun()\n}}", id="L12: does something about it"),
    pytest.param("L12", f"func f() {{\n\tif err := {WAIT}; err != nil {{\n\t\tlogrus.Error(err)\n\t}} else {{\n\t\trun()\n\t}}\n\tstop()\n}}", id="L12: with an else"),
    pytest.param("L12", "func f() {\n\tif err := os.Remove(p); err != nil {\n\t\tlogrus.Error(err)\n\t}\n\trun()\n}", id="L12: no wait"),
    pytest.param("L12", f"func f() {{\n\tif err := {WAIT}; err == nil {{\n\t\tlogrus.Info(1)\n\t}}\n\trun()\n}}", id="L12: the success is logged"),
    pytest.param("L12", f"func f(ready chan struct{{}}) {{\n\tdefer close(ready)\n\tif err := {WAIT}; err != nil {{ // hazard\n\t\tlogrus.Warn(err)\n\t}}\n}}", id="L12: a channel is closed at the end"),
    # --- L10: who is told
    pytest.param("L10", "func f() error {\n\treturn wait.PollImmediate(1, 2, func() (bool, error) {\n\t\tif err := g(); err != nil { // hazard\n\t\t\treturn false, nil\n\t\t}\n\t\treturn true, nil\n\t})\n}", id="L10: not a word"),
    pytest.param("L10", "func f() error {\n\treturn retry(func() (bool, error) {\n\t\tif err := g(); err != nil {\n\t\t\treturn false, nil\n\t\t}\n\t\treturn true, nil\n\t})\n}", id="L10: no poll"),
    pytest.param("L10", "func f() error {\n\treturn wait.PollImmediate(1, 2, func() (bool, error) {\n\t\tif err := g(); err != nil {\n\t\t\tfailures.add(err)\n\t\t\treturn false, nil\n\t\t}\n\t\treturn true, nil\n\t})\n}", id="L10: handed on"),
    pytest.param("L10", "func f() {\n\tfor range t.C {\n\t\tif err := g(); err != nil { // hazard\n\t\t\tcontinue\n\t\t}\n\t}\n}", id="L10: each tick"),
    pytest.param("L10", "func f() {\n\tfor x != nil {\n\t\tif err := g(); err != nil {\n\t\t\tcontinue\n\t\t}\n\t}\n}", id="L10: a loop with a bound of its own"),
    pytest.param("L10", "func f() {\n\tfor {\n\t\tif err := g(); err != nil {\n\t\t\tif last {\n\t\t\t\tcontinue\n\t\t\t}\n\t\t\tcontinue\n\t\t}\n\t}\n}", id="L10: looked into"),
    # --- L16: what only rests
    pytest.param("L16", "func f() {\n\tfor x.y == nil { // hazard\n\t\tlogrus.Info(1)\n\t\ttime.Sleep(1)\n\t}\n}", id="L16: sleeps and says so"),
    pytest.param("L16", "func f() {\n\tfor x.y == nil {\n\t\tif g() {\n\t\t\tbreak\n\t\t}\n\t\ttime.Sleep(1)\n\t}\n}", id="L16: another way out"),
    pytest.param("L16", "func f() {\n\tfor x.y != nil {\n\t\ttime.Sleep(1)\n\t}\n}", id="L16: waits for it to go"),
    pytest.param("L16", "func f() {\n\tfor {\n\t\tselect {\n\t\tcase <-c:\n\t\t\treturn\n\t\tdefault:\n\t\t\twork()\n\t\t}\n\t\ttime.Sleep(1)\n\t}\n}", id="L16: works between"),
    # --- L17: what ends a loop
    pytest.param("L17", "func f(ctx context.Context) {\n\tfor range time.Tick(1) { // hazard\n\t\tg()\n\t}\n}", id="L17: time.Tick"),
    pytest.param("L17", "func f(ctx context.Context) {\n\tfor now := range t.C { // hazard\n\t\tg(now)\n\t}\n}", id="L17: uses the tick"),
    pytest.param("L17", "func f(ctx context.Context) {\n\tfor x() { // hazard\n\t\ttime.Sleep(1)\n\t}\n}", id="L17: sleeps while a condition holds"),
    pytest.param("L17", "func f(ctx context.Context) {\n\tfor _, x := range xs {\n\t\ttime.Sleep(1)\n\t}\n}", id="L17: sleeps between items"),
    pytest.param("L17", "func f(ctx context.Context, time clock) {\n\tfor {\n\t\ttime.Sleep(1)\n\t}\n}", id="L17: time means something else"),
    pytest.param("L17", "func f(ctx context.Context) {\n\tfor {\n\t\tselect {\n\t\tcase <-ctx.Done():\n\t\t\treturn\n\t\tdefault:\n\t\t}\n\t\ttime.Sleep(1)\n\t}\n}", id="L17: looks at the context"),
    pytest.param("L17", "func f(ctx context.Context) {\n\tfor { // hazard\n\t\tif g() {\n\t\t\ttime.Sleep(1)\n\t\t\tcontinue\n\t\t}\n\t\t<-ctx.Done()\n\t}\n}", id="L17: looks at the context in another branch"),
    pytest.param("L17", "func f(ctx context.Context) error {\n\treturn wait.PollInfinite(1, g) // hazard\n}", id="L17: poll of the old kind"),
    pytest.param("L17", "func f() error {\n\tuse(ctx)\n\treturn wait.PollInfinite(1, g)\n}", id="L17: poll of the old kind without a context"),
    pytest.param("L17", "func f(ctx context.Context) error {\n\treturn wait.PollUntilContextCancel(ctx, 1, true, func(context.Context) (bool, error) { // hazard\n\t\treturn g(ctx), nil\n\t})\n}", id="L17: callback whose context has no name"),
    pytest.param("L17", "func f(ctx context.Context) error {\n\treturn wait.PollUntilContextCancel(ctx, 1, true, func(c context.Context) (bool, error) {\n\t\treturn g(ctx), nil\n\t})\n}", id="L17: callback whose context has another name"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "body"), ROWS)
def test_rule_finds_the_marked_lines_only(rule: str, body: str) -> None:
    subject = tree(body)
    assert lines(subject, found(BY_ID[rule], subject)) == marked(body)


@pytest.mark.parametrize(
    ("rule", "body", "reason"),
    [
        pytest.param("L03", f"func f(ready chan struct{{}}) {{\n\tdefer close(ready)\n\tif err := {WAIT}; err != nil && !errors.Is(err, context.Canceled) {{\n\t\treport(err)\n\t}}\n}}", "leaving would close ready", id="L03: would become L02"),
        pytest.param("L03", f"func f() T {{\n\tif err := {WAIT}; err != nil && !errors.Is(err, context.Canceled) {{\n\t\treport(err)\n\t}}\n\treturn t\n}}", "what the function must return", id="L03: result"),
        pytest.param("L03", f"func f() {{\n\tif err := {WAIT}; err != nil {{\n\t\tif !errors.Is(err, context.Canceled) {{\n\t\t\treturn\n\t\t}}\n\t}}\n\trun()\n}}", "in two steps", id="L03: two steps"),
        pytest.param("L09", "func f() {\n\tgo executor.Kubelet(ctx)\n}", "the result of a call in a go statement cannot be used", id="L09: go statement"),
        pytest.param("L09", f"func f() T {{\n\t{WAIT}\n\treturn t\n}}", "what the function must return", id="L09: result"),
        pytest.param("L09", f"func f(ready chan struct{{}}) {{\n\tdefer close(ready)\n\t{WAIT}\n}}", "leaving would close ready", id="L09: would become L02"),
        pytest.param("L09", f"func f() {{\n\t{WAIT}\n}}", "can return no error", id="L09: nobody to tell"),
        pytest.param("L12", f"func f() T {{\n\tif err := {WAIT}; err != nil {{\n\t\tlogrus.Error(err)\n\t}}\n\treturn t\n}}", "what the function must return", id="L12: result"),
        pytest.param("L12", f"func f() {{\n\tif err := {WAIT}; err != nil {{ logrus.Error(err) }}\n\trun()\n}}", "the branch stands on one line", id="L12: on one line"),
        pytest.param("L17", "func f(ctx context.Context) {\n\tfor now := range t.C {\n\t\tg(now)\n\t}\n}", "the tick itself is used", id="L17: tick"),
        pytest.param("L17", "func f(ctx context.Context) {\n\tfor range t.C {\n\t}\n}", "the tick itself is used", id="L17: empty"),
        pytest.param("L17", "func f(ctx context.Context, ready chan struct{}) {\n\tdefer close(ready)\n\tfor range t.C {\n\t\tg()\n\t}\n}", "leaving would close ready", id="L17: would become L02"),
        pytest.param("L17", "func f(ctx context.Context) T {\n\tfor {\n\t\ttime.Sleep(1)\n\t}\n}", "what the function must return", id="L17: result"),
    ],
)  # fmt: skip
def test_what_cannot_be_fixed_for_sure_is_left_to_a_person(rule: str, body: str, reason: str) -> None:
    (one,) = found(BY_ID[rule], tree(body))
    assert isinstance(one.verdict, Manual)
    assert reason in one.verdict.reason
    assert one.verdict.instruction


@pytest.mark.parametrize(
    ("rule", "body", "after"),
    [
        pytest.param("L09", f"func f() {{\n\t{WAIT}\n\tlogrus.Info(1)\n}}", f'if err := {WAIT}; err != nil {{\n\t\tlogrus.Errorf("WaitForAPIServerReady failed: %v", err)\n\t\treturn\n\t}}', id="L09: the log says it"),
        pytest.param("L09", f"func f() {{\n\tlogrus.Info(1)\n\t{WAIT}\n}}", f'if err := {WAIT}; err != nil {{\n\t\tlogrus.Errorf("WaitForAPIServerReady failed: %v", err)\n\t}}', id="L09: nothing to leave"),
        pytest.param("L09", "func f() error {\n\twait.PollImmediate(1, 2, func() (bool, error) {\n\t\treturn true, nil\n\t})\n\treturn nil\n}", "if err := wait.PollImmediate(1, 2, func() (bool, error) {\n\t\treturn true, nil\n\t}); err != nil {\n\t\treturn err\n\t}", id="L09: a call of several lines"),
        pytest.param("L12", f"func f() error {{\n\tif err := {WAIT}; err != nil {{\n\t\tlogrus.Error(err) // told\n\t}}\n\treturn run()\n}}", "\t\tlogrus.Error(err) // told\n\t\treturn err\n\t}", id="L12: a comment stays where it is"),
        pytest.param("L17", "func f(ctx context.Context) {\n\tfor range time.Tick(1) {\n\t\tg()\n\t}\n}", "for {\n\t\tselect {\n\t\tcase <-ctx.Done():\n\t\t\treturn\n\t\tcase <-time.Tick(1):\n\t\t}\n\t\tg()\n\t}", id="L17: ticks"),
    ],
)  # fmt: skip
def test_fix(rule: str, body: str, after: str) -> None:
    subject = tree(body)
    assert after in fixed(subject, found(BY_ID[rule], subject), "pkg/x/x.go").data("pkg/x/x.go").decode()


def test_a_failure_that_is_only_mentioned_is_a_warning() -> None:
    for level, severity in (("Warn", "warning"), ("Error", "error")):
        (one,) = found(
            BY_ID["L12"],
            tree(f"func f() {{\n\tif err := {WAIT}; err != nil {{\n\t\tlogrus.{level}(err)\n\t}}\n\trun()\n}}"),
        )
        assert one.severity == severity
