"""Step 5 decides site by site: small changes to a known site keep its verdict, or turn it into one for a person."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from refactor_tool.codemods import SUITE
from refactor_tool.codemods.etcd_ready import CODEMOD
from refactor_tool.engine import find, run_codemod
from refactor_tool.gosrc.tree import Tree
from refactor_tool.model import ExitCode, Finding, Leave, Manual, Rewrite
from refactor_tool.record import replace
from refactor_tool.world.templates import load_templates
from refactor_tool.world.tree import read_ref
from tests import gotree, txtar

#: On the small trees here, which do not have all of its places.
ALONE = replace(CODEMOD, anchors=())
CASES = Path(__file__).parent.parent / "fixtures" / "cases" / CODEMOD.id
CLI = "pkg/cli/server/server.go"
CLUSTER = "pkg/cluster/cluster.go"
CONFIG = "pkg/daemons/config/types.go"
CONTROL = "pkg/daemons/control/server.go"
DRIVER = "pkg/cluster/managed/driver.go"
EMBED = "pkg/daemons/executor/embed.go"
EMBEDDED = "pkg/daemons/executor/etcd.go"
ETCD = "pkg/etcd/etcd.go"
EXECUTOR = "pkg/daemons/executor/executor.go"
MANAGED = "pkg/cluster/managed.go"
MOCK = "tests/mock/executor.go"

BEFORE = ("before/issue", "before/issue-parent", "before/pr-base")
OLDER = ("older/v1.30", "older/v1.26")
DURING = ("during/readyz", "during/apiserver", "during/cri", "during/tests")
AFTER = ("after/etcd", "later/2025-06", "later/2025-11", "later/2026-04")


def base(case: str = "whole-chain") -> dict[str, str]:
    """Return the files of a case."""
    _, files = txtar.parse((CASES / f"{case}.txt").read_text(encoding="utf-8"))
    return {name: text for name, text in files.items() if not name.startswith("want")}


def mutated(path: str, old: str, new: str, case: str = "whole-chain") -> Tree:
    files = base(case)
    assert files[path].count(old) == 1, f"{files[path].count(old)} times in {path}: {old!r}"
    return gotree.of(files | {path: files[path].replace(old, new)})


def by_hand(tree: Tree) -> list[str]:
    """Return the shapes that are for a person, but that of the field that goes last."""
    findings = find(tree, CODEMOD)
    return [found.shape for found in findings if isinstance(found.verdict, Manual) and found.shape != "field"]


@pytest.mark.parametrize(
    ("path", "old", "new", "wanted"),
    [
        pytest.param(CLUSTER, "c.testClusterDB(ctx)\n", "c.testClusterDB(ctx)\n\tprintln()\n", [], id="start-log-line"),
        pytest.param(
            CLUSTER,
            "ready := make(chan struct{})\n",
            "ready := make(chan struct{}, 1)\n",
            [],
            id="start-buffered-channel",
        ),
        pytest.param(
            CLUSTER,
            "\t\tready := make(chan struct{})\n\t\tdefer close(ready)\n\t\treturn ready, nil\n",
            "\t\tclosed := make(chan struct{})\n\t\tprintln()\n\t\tclose(closed)\n\t\treturn closed, nil\n",
            [],
            id="start-renamed-local-that-is-closed-at-once",
        ),
        pytest.param(
            CLUSTER,
            "\t\tdefer close(ready)\n\t\treturn ready, nil\n",
            "\t\tdefer close(ready)\n\t\treturn c.other(ready)\n",
            ["missing", "return"],
            id="start-without-etcd-returns-something-else",
        ),
        pytest.param(CLUSTER, "\t\tdefer close(ready)\n", "", ["missing"], id="start-without-etcd-does-not-close"),
        pytest.param(
            CLUSTER,
            "\t\treturn ready, nil\n\t}\n\n\tif err := c.run",
            "\t\treturn ready, nil\n\t} else {\n\t\tprintln()\n\t}\n\n\tif err := c.run",
            ["missing"],
            id="start-else-branch",
        ),
        pytest.param(
            CLUSTER, "if c.config.DisableETCD {", "if !c.config.DisableETCD {", ["missing"], id="start-swapped-branches"
        ),
        pytest.param(
            CLUSTER,
            "if c.config.DisableETCD {",
            "if (&other{}).DisableETCD {",
            ["missing"],
            id="start-flag-of-something-else",
        ),
        pytest.param(
            CLUSTER,
            "ready := c.testClusterDB(ctx)",
            "ready, size := c.testClusterDB(ctx), 1\n\t_ = size",
            ["missing"],
            id="start-second-value",
        ),
        pytest.param(
            CLUSTER,
            "ready := c.testClusterDB(ctx)",
            "var ready <-chan struct{} = c.testClusterDB(ctx)",
            ["missing"],
            id="start-declared-channel",
        ),
        pytest.param(
            CLUSTER,
            "\t// the storage comes after its database\n",
            "\tgo func() { <-c.testClusterDB(ctx) }()\n",
            ["missing"],
            id="start-duplicated-test",
        ),
        pytest.param(
            CLUSTER,
            "if err := c.startStorage(ctx); err != nil {",
            "if err := c.startStorage(ctx, true); err != nil {",
            [],
            id="start-extra-argument-of-the-storage",
        ),
        pytest.param(
            CLUSTER,
            "if err := c.startStorage(ctx); err != nil {",
            "if err := other.startStorage(ctx); err != nil {",
            ["missing"],
            id="start-storage-of-something-else",
        ),
        pytest.param(
            CLUSTER, "managedDB managed.Driver", "db managed.Driver", ["missing", "test"], id="start-no-driver"
        ),
        pytest.param(
            CLUSTER,
            "func (c *Cluster) Start(",
            "func (*Cluster) Start(",
            ["result", "missing", "missing", "missing"],
            id="start-nameless-receiver",
        ),
        pytest.param(
            CLUSTER,
            "Start(ctx context.Context) (<-chan struct{}, error)",
            "Start(_ context.Context) (<-chan struct{}, error)",
            ["return", "storage", "select-case"],
            id="start-without-a-context",
        ),
        pytest.param(
            CLUSTER,
            "Start(ctx context.Context) (<-chan struct{}, error)",
            "Start(ctx context.Context) (<-chan struct{}, bool, error)",
            ["result"],
            id="start-third-result",
        ),
        pytest.param(
            CLUSTER,
            "\t\t\t\tcase <-ctx.Done():\n\t\t\t\t\treturn\n",
            "\t\t\t\tdefault:\n\t\t\t\t\truntime.Gosched()\n\t\t\t\t\tprintln()\n",
            ["select-case"],
            id="start-busy-loop-that-does-more",
        ),
        pytest.param(
            CLUSTER,
            'return nil, errors.WithMessage(err, "no listener")',
            "return c.fail()",
            ["return"],
            id="start-call",
        ),
        pytest.param(MANAGED, 'logrus.Info(c.managedDB.EndpointName() + " answers")', "", [], id="polling-silent"),
        pytest.param(
            MANAGED,
            "\t\t\tselect {\n",
            '\t\t\tlogrus.Info("another round")\n\t\t\tselect {\n',
            ["test"],
            id="polling-log-line",
        ),
        pytest.param(MANAGED, "close(done)\n\t\treturn", "c.save(ctx)\n\t\treturn", ["test"], id="polling-saves"),
        pytest.param(
            MANAGED,
            "testClusterDB(ctx context.Context)",
            "testClusterDB(ctx context.Context, n int)",
            ["test"],
            id="param",
        ),
        pytest.param(
            DRIVER,
            "\tGetMembersClientURLs(ctx context.Context) ([]string, error)\n",
            "",
            [],
            id="driver-gets-its-method",
        ),
        pytest.param(ETCD, ".MemberList(ctx)", ".Status(ctx)", ["test"], id="driver-that-lists-no-members"),
        pytest.param(
            CONTROL,
            "config.Runtime.ETCDReady = ready",
            "config.Runtime.ETCDReady = ready\n\t\tprintln()",
            ["if"],
            id="caller-log-line-in-the-branch",
        ),
        pytest.param(
            CONTROL,
            "config.Runtime.ETCDReady = ready",
            "other.ETCDReady = ready",
            ["if"],
            id="caller-stores-it-elsewhere",
        ),
        pytest.param(CONTROL, "c.Start(ctx); err", "c.Start(ctx, 1); err", [], id="caller-extra-argument"),
        pytest.param(
            CONTROL,
            "executor.APIServer(ctx, runtime.ETCDReady, ",
            "executor.APIServer(ctx, wait(runtime), ",
            ["caller"],
            id="apiserver-channel-from-a-call",
        ),
        pytest.param(
            CONTROL,
            "return executor.APIServer(",
            "f := executor.APIServer\n\treturn f(",
            ["caller"],
            id="apiserver-as-a-value",
        ),
        pytest.param(EMBED, "\t\t<-etcdReady\n", "\t\tprintln()\n\t\t<-etcdReady\n", [], id="apiserver-log-line"),
        pytest.param(
            EMBED,
            "\t\t<-etcdReady\n",
            "\t\tselect {\n\t\tcase <-etcdReady:\n\t\tcase <-ctx.Done():\n\t\t}\n",
            [],
            id="apiserver-select",
        ),
        pytest.param(
            EMBED, "\t\t<-etcdReady\n", "\t\tif etcdReady == nil {\n\t\t}\n", ["implementer"], id="apiserver-nil-check"
        ),
        pytest.param(
            EMBED, "\t\t<-etcdReady\n", "\t\te := 1\n\t\t_ = e\n\t\t<-etcdReady\n", ["implementer"], id="receiver-taken"
        ),
        pytest.param(
            EMBEDDED,
            "args ETCDConfig, extra []string) error {",
            "args ETCDConfig, extra []string) (err error) {",
            ["embedded"],
            id="etcd-named-result",
        ),
        pytest.param(
            EMBEDDED,
            "args ETCDConfig, extra []string) error {",
            "args ETCDConfig, logrus []string) error {",
            ["embedded"],
            id="etcd-shadowed-logrus",
        ),
        pytest.param(
            EMBEDDED, "func (e *Embedded) ETCD(", "func (*Embedded) ETCD(", ["embedded"], id="etcd-nameless-receiver"
        ),
        pytest.param(EMBEDDED, "func (e *Embedded) ETCD(", "func (e Embedded) ETCD(", ["embedded"], id="etcd-by-value"),
        pytest.param(
            EXECUTOR, "ETCDConfig, extra []string) error\n", "int) error\n", ["interface"], id="etcd-without-config"
        ),
        pytest.param(
            EXECUTOR, "type ETCDConfig", "var TestFunc int\n\ntype ETCDConfig", ["type"], id="test-func-taken"
        ),
        pytest.param(
            EXECUTOR,
            "return executor.ETCD(ctx, args, extra)",
            "println(args)\n\treturn executor.ETCD(ctx, args, extra)",
            ["forwarder"],
            id="etcd-forwarder-by-value",
        ),
        pytest.param(
            MOCK,
            "return (&executor.Embedded{}).ETCD(ctx, args, extra)",
            "inner := executor.Embedded{}\n\tprintln()\n\treturn inner.ETCD(ctx, args, extra)",
            [],
            id="mock-with-a-local",
        ),
        pytest.param(
            MOCK,
            "return (&executor.Embedded{}).ETCD(ctx, args, extra)",
            "println()\n\treturn nil",
            ["implementer"],
            id="mock-that-does-something-else",
        ),
        pytest.param(
            ETCD, "\treturn e.newCluster(ctx, false)", "\tprintln()\n\treturn e.newCluster(ctx, false)", [], id="log"
        ),
        pytest.param(
            ETCD,
            "\terr := e.cluster(ctx, reset)\n",
            "\ttest := 1\n\t_ = test\n\terr := e.cluster(ctx, reset)\n",
            ["call"],
            id="new-cluster-name-taken",
        ),
        pytest.param(
            ETCD,
            "\t\tif err := e.migrateFromSQLite(ctx); err != nil {\n\t\t\treturn err\n\t\t}\n",
            "\t\tgo e.migrateFromSQLite(ctx)\n",
            ["call"],
            id="new-cluster-migrates-in-a-goroutine",
        ),
        pytest.param(
            ETCD,
            "\terr := e.cluster(ctx, reset)\n\tif err != nil {\n\t\treturn err\n\t}\n",
            "\tif err := e.cluster(ctx, reset); err != nil {\n\t\treturn err\n\t}\n",
            [],
            id="new-cluster-with-the-error-in-the-if",
        ),
        pytest.param(
            ETCD,
            "\tif !reset {\n\t\tif err := e.migrate",
            "\tdefer println()\n\tif !reset {\n\t\tif err := e.migrate",
            [],
            id="new-cluster-statement-between",
        ),
        pytest.param(
            ETCD,
            "\t\tDataDir: e.config.DataDir,\n\t}, []string",
            "\t\tDataDir: e.config.DataDir,\n\t}.With(1), []string",
            ["call"],
            id="cluster-config-from-a-call",
        ),
        pytest.param(
            ETCD,
            "\treturn embedded.ETCD(ctx, executor.ETCDConfig{Name: e.name}, nil)",
            "\tconf := executor.ETCDConfig{Name: e.name}\n\treturn embedded.ETCD(ctx, conf, nil)",
            [],
            id="temporary-config-in-a-local",
        ),
        pytest.param(
            ETCD,
            "\tendpoints := addresses(e.config)\n",
            "\tprintln()\n\tendpoints := addresses(e.config)\n",
            [],
            id="client-log-line",
        ),
        pytest.param(
            ETCD,
            "\te.config.Datastore.BackendTLSConfig.CAFile = e.config.Runtime.ETCDServerCA\n",
            "",
            ["start-client"],
            id="client-without-a-certificate",
        ),
        pytest.param(
            ETCD,
            "\te.config.Datastore.BackendTLSConfig.CAFile =",
            "\tprintln()\n\te.config.Datastore.BackendTLSConfig.CAFile =",
            ["start-client"],
            id="client-statement-between",
        ),
        pytest.param(
            ETCD,
            "\tclient, err := dial(ctx, endpoints)\n",
            "\ttlsConfig := 1\n\tclient, err := dial(ctx, endpoints)\n",
            ["start-client"],
            id="client-name-taken",
        ),
        pytest.param(
            ETCD,
            "\t\te.client = nil\n\t\tclient.Close()\n",
            "\t\te.client = nil // gone\n\t\te.client.Close()\n",
            ["start-client"],
            id="client-comment-where-it-is-dropped",
        ),
        pytest.param(
            ETCD,
            "\tmembers, err := e.client.MemberList(ctx)\n",
            "\tctx, cancel := other(ctx)\n\tdefer cancel()\n\tmembers, err := e.client.MemberList(ctx)\n",
            ["member-urls"],
            id="members-name-taken",
        ),
        pytest.param(
            ETCD, "const statusTimeout = time.Second * 10", "const testTimeout = time.Second", [], id="older-limit"
        ),
        pytest.param(
            ETCD, "const statusTimeout = time.Second * 10", "const limit = time.Second", ["member-urls"], id="no-limit"
        ),
        pytest.param(
            ETCD,
            "\tclient      *clientv3.Client",
            "\tc           *clientv3.Client",
            ["start-client"],
            id="client-under-another-name",
        ),
        pytest.param(
            ETCD,
            "startClient(ctx context.Context) error",
            "startClient(ctx context.Context, n int) error",
            ["start-client"],
            id="client-second-parameter",
        ),
        pytest.param(
            ETCD,
            "// startClient opens the client.",
            "func (e *ETCD) ensureClient() {}\n\n// startClient opens the client.",
            ["start-client"],
            id="client-helper-taken",
        ),
        pytest.param(
            ETCD,
            "\t\tclient.Close()\n\t}()\n",
            "\t\tclient.Close()\n\t}()\n\tgo func() { println() }()\n",
            [],
            id="client-second-goroutine",
        ),
        pytest.param(
            ETCD,
            "GetMembersClientURLs(ctx context.Context)",
            "GetMembersClientURLs(_ context.Context)",
            ["member-urls"],
            id="members-without-a-context",
        ),
        pytest.param(
            ETCD,
            "\t\t\treturn err\n\t\t}\n\t}\n\treturn e.remove(ctx)",
            "\t\t\tprintln()\n\t\t\treturn err\n\t\t}\n\t}\n\treturn e.remove(ctx)",
            ["on-demand"],
            id="client-log-line-in-the-branch",
        ),
        pytest.param(
            ETCD,
            "cluster(ctx context.Context, reset bool) error {",
            "cluster(ctx context.Context, test bool) error {",
            ["call"],
            id="cluster-name-taken",
        ),
        pytest.param(
            ETCD,
            "\treturn e.remove(ctx)\n",
            "\tif e.client != nil {\n\t\treturn e.remove(ctx)\n\t}\n\treturn e.startClient(ctx)\n",
            [],
            id="client-started-without-a-condition",
        ),
        pytest.param(
            CLI, "<-cfg.Runtime.ETCDReady", "<-cfg.Runtime.ETCDReady // etcd", [], id="notify-trailing-comment"
        ),
        pytest.param(
            CLI,
            "\tgo func() {\n",
            "\tgo func() {\n\t\tdefer close(done)\n",
            ["receive"],
            id="notify-close-at-exit",
        ),
        pytest.param(
            CONFIG,
            "\tETCDReady      <-chan struct{}\n",
            "\tETCDReady, Other <-chan struct{}\n",
            [],
            id="field-with-another-name-beside",
        ),
    ],
)
def test_a_changed_site_gets_its_own_verdict(path: str, old: str, new: str, wanted: list[str]) -> None:
    tree = mutated(path, old, new)

    assert by_hand(tree) == wanted
    ran = run_codemod(tree, ALONE, load_templates())
    assert {problem.code for problem in ran.problems} <= {ExitCode.FINDINGS}
    assert bool(ran.changes) == (not ran.problems)


@pytest.mark.parametrize(
    ("path", "old", "new", "wanted"),
    [
        pytest.param(
            CLUSTER,
            "\tif err != nil {\n\t\treturn nil, err\n\t}\n\n\tif err := c.start",
            "\tif err != nil {\n\t\tprintln()\n\t\treturn nil, err\n\t}\n\n\tif err := c.start",
            ["missing"],
            id="test-log-line-in-the-branch",
        ),
        pytest.param(
            CLUSTER,
            "\treturn ready, nil\n}",
            "\terr = c.listen(ctx)\n\treturn ready, nil\n}",
            ["missing"],
            id="test-error-is-used-again",
        ),
        pytest.param(
            CONTROL, "\tconfig.Runtime.ETCDReady = ready\n", "\t_ = ready\n", ["assignment"], id="caller-does-not-store"
        ),
        pytest.param(
            CONTROL,
            "\t\treturn err\n",
            "\t\tprintln()\n\t\treturn err\n",
            ["assignment", "assignment"],
            id="caller-log-line",
        ),
        pytest.param(
            CONTROL,
            "\tready, err := c.Start(ctx)\n",
            "\tready, err := c.Start(ctx)\n\t// then\n",
            ["assignment"],
            id="caller-comment-between",
        ),
    ],
)
def test_a_changed_older_site_gets_its_own_verdict(path: str, old: str, new: str, wanted: list[str]) -> None:
    assert by_hand(mutated(path, old, new, "start-with-an-error-result")) == wanted


def test_what_is_for_a_person_holds_the_step_back() -> None:
    ran = run_codemod(
        mutated(CLUSTER, "if c.config.DisableETCD {", "if !c.config.DisableETCD {"), ALONE, load_templates()
    )

    assert not ran.changes
    assert ExitCode.FINDINGS in {problem.code for problem in ran.problems}


def test_a_doc_comment_in_other_words_does_not_hold_the_step_back() -> None:
    tree = mutated(
        CLUSTER, "// that will be closed when datastore is ready. It saves data later.", "// for those who wait."
    )
    ran = run_codemod(tree, ALONE, load_templates())

    assert by_hand(tree) == ["doc"]
    assert ran.changes and not ran.problems


@pytest.mark.parametrize("name", ["etcd-cluster", "start-call", "new-cluster"])
def test_a_site_that_is_there_twice_is_an_anchor_that_is_doubled(name: str) -> None:
    files = base()
    files[ETCD] += files[ETCD][files[ETCD].index("func (e *ETCD) cluster(") :].split("\n}\n")[0] + "\n}\n"
    files[ETCD] = files[ETCD].replace('println("new cluster")', "if reset {\n\t\treturn e.cluster(ctx, reset)\n\t}")
    files[CONTROL] += "\nfunc again(ctx context.Context, c *cluster.Cluster) {\n\tc.Start(ctx)\n}\n"
    problems = run_codemod(gotree.of(files), CODEMOD, load_templates()).problems

    assert any(f"the site {name} is there 2 times" in problem.message for problem in problems)


@pytest.mark.parametrize("anchor", [anchor.name for anchor in CODEMOD.anchors])
@pytest.mark.parametrize("case", ["whole-chain", "done", "half-made"])
def test_every_anchor_is_found_once(case: str, anchor: str) -> None:
    found = Counter(found.anchor for found in find(gotree.of(base(case)), CODEMOD))

    assert found[anchor] == 1


# --- real trees -------------------------------------------------------------------------------------


def real(corpus: Path, ref: str) -> Tree:
    return Tree(read_ref(corpus / "k3s.git", ref))


def after_earlier_steps(corpus: Path, ref: str) -> tuple[Finding, ...]:
    """Return what step 5 finds in the tree that the steps before it leave, which must be sound."""
    tree = real(corpus, ref)
    for codemod in SUITE:
        ran = run_codemod(tree, codemod, load_templates())
        assert not ran.problems, f"{codemod.id} on {ref}: {ran.problems[0].message}"
        if codemod is CODEMOD:
            return ran.findings
        tree = Tree(tree.snapshot.with_changes(ran.changes), tree.cache)
    raise AssertionError("etcd-ready is not in the suite")


@pytest.mark.parametrize("ref", [*BEFORE, *OLDER, *DURING])
def test_nothing_is_for_a_person_in_real_trees(corpus: Path, ref: str) -> None:
    findings = after_earlier_steps(corpus, ref)

    assert not [found.message for found in findings if isinstance(found.verdict, Manual)]
    assert sum(isinstance(found.verdict, Rewrite) for found in findings) >= 30


@pytest.mark.parametrize("ref", AFTER)
def test_upstreams_own_change_is_done(corpus: Path, ref: str) -> None:
    findings = find(real(corpus, ref), CODEMOD)

    assert all(isinstance(found.verdict, Leave) for found in findings)
    assert {anchor.name for anchor in CODEMOD.anchors if not anchor.optional} <= {found.anchor for found in findings}


@pytest.mark.parametrize("ref", [*BEFORE, *OLDER, *DURING])
def test_every_site_of_the_channel_is_in_a_finding(corpus: Path, ref: str) -> None:
    tree = real(corpus, ref)
    findings = find(tree, CODEMOD)

    missed = [
        f"{site['file']}:{site['line']} {site['identifier']}"
        for site in map(json.loads, (corpus / "sites.jsonl").read_text(encoding="utf-8").splitlines())
        if (site["ref"], site["set"], site["channel"]) == (ref, "core", "etcd")
        and site["func"] != "waitForAPIServerInBackground"  # goes as a whole in an earlier step
        and not any(found.path == site["file"] and _holds(tree, found, site["line"]) for found in findings)
    ]
    assert not missed


def _holds(tree: Tree, found: Finding, line: int) -> bool:
    lines = tree.lines(found.path)
    return (
        lines.position(found.span.start).line <= line <= lines.position(max(found.span.start, found.span.end - 1)).line
    )
