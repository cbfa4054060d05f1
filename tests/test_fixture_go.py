"""The embedded Go fixture has the readiness shapes of k3s at `before/issue`, and compiles offline."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from refactor_tool.world import gotool

FIXTURE = Path(__file__).resolve().parent.parent / "fixtures" / "k3s"

#: The core sites of corpus branch `before/issue`: a file, then its functions with `kind identifier`, `xN` if repeated.
CORE_SITES = """
pkg/agent/flannel/setup.go
    Run: func_arg DefaultAPIServerReadyTimeout
pkg/agent/run.go
    run: nil_check ContainerRuntimeReady, close ContainerRuntimeReady
    run: call_WaitForAPIServerReady WaitForAPIServerReady, func_arg DefaultAPIServerReadyTimeout
    RunStandalone: nil_check ContainerRuntimeReady, close ContainerRuntimeReady
pkg/agent/tunnel/tunnel.go
    Setup: call_WaitForAPIServerReady WaitForAPIServerReady, func_arg DefaultAPIServerReadyTimeout x2
    Setup: make_chan apiServerReady, close apiServerReady, func_arg apiServerReady x3
    (*agentTunnel).setKubeletPort: func_param apiServerReady, receive_stmt apiServerReady
    (*agentTunnel).setKubeletPort: func_arg DefaultAPIServerReadyTimeout
    (*agentTunnel).watchPods: func_param apiServerReady, receive_stmt apiServerReady
    (*agentTunnel).watchEndpoints: func_param apiServerReady, receive_stmt apiServerReady
pkg/cli/cert/cert.go
    commandSetup: func_call NewRuntime
    rotateCA: func_call NewRuntime
pkg/cli/cmds/agent.go
    type Agent: struct_field_decl ContainerRuntimeReady
pkg/cli/cmds/server.go
    type StartupHookArgs: struct_field_decl APIServerReady
pkg/cli/server/server.go
    run: make_chan containerRuntimeReady, func_call NewRuntime, func_arg containerRuntimeReady
    run: receive_stmt APIServerReady, receive_stmt ETCDReady
    run: assignment ContainerRuntimeReady, assignment containerRuntimeReady
pkg/cluster/cluster.go
    (*Cluster).Start: result_type Start, make_chan ready, close ready, return_value ready x2
    (*Cluster).Start: assignment ready, func_call testClusterDB, select_case ready
pkg/cluster/managed.go
    doc comment of testClusterDB: comment_mention testClusterDB
    (*Cluster).testClusterDB: func_decl testClusterDB, make_chan result, close result x2, return_value result x2
pkg/daemons/config/types.go
    type ControlRuntime: struct_field_decl APIServerReady, struct_field_decl ContainerRuntimeReady
    type ControlRuntime: struct_field_decl ETCDReady
    NewRuntime: func_decl NewRuntime, func_param containerRuntimeReady
    NewRuntime: composite_literal_key ContainerRuntimeReady, composite_literal_value containerRuntimeReady
pkg/daemons/control/server.go
    Server: func_call waitForAPIServerInBackground
    controllerManager: func_arg APIServerReady
    scheduler: make_chan schedulerNodeReady, close schedulerNodeReady, func_arg schedulerNodeReady
    scheduler: label apiReadyLoop x2, select_case APIServerReady
    apiServer: func_arg ETCDReady
    prepare: assignment ready x2, assignment ETCDReady
    cloudControllerManager: make_chan ccmRBACReady, close ccmRBACReady, func_arg ccmRBACReady
    cloudControllerManager: label apiReadyLoop x2, select_case APIServerReady
    waitForAPIServerInBackground: func_decl waitForAPIServerInBackground, make_chan done, close done
    waitForAPIServerInBackground: assignment APIServerReady, assignment done, label etcdLoop x2
    waitForAPIServerInBackground: select_case ETCDReady, call_WaitForAPIServerReady WaitForAPIServerReady
pkg/daemons/executor/embed.go
    (*Embedded).Kubelet: comment_mention apiReady, call_WaitForAPIServerReady WaitForAPIServerReady
    (*Embedded).Kubelet: func_arg DefaultAPIServerReadyTimeout
    (*Embedded).APIServer: method_impl etcdReady, receive_stmt etcdReady
    (*Embedded).Scheduler: method_impl apiReady, receive_stmt apiReady
    (*Embedded).ControllerManager: method_impl apiReady, receive_stmt apiReady
    (*Embedded).CloudControllerManager: method_impl ccmRBACReady, receive_stmt ccmRBACReady
pkg/daemons/executor/executor.go
    type Executor: interface_method etcdReady, interface_method apiReady x2, interface_method ccmRBACReady
    APIServer: forwarding_func etcdReady, func_arg etcdReady
    Scheduler: forwarding_func apiReady, func_arg apiReady
    ControllerManager: forwarding_func apiReady, func_arg apiReady
    CloudControllerManager: forwarding_func ccmRBACReady, func_arg ccmRBACReady
pkg/etcd/etcd.go
    (*ETCD).Reset: receive_stmt ContainerRuntimeReady
    (*ETCD).Start: select_case ContainerRuntimeReady
    (*ETCD).manageLearners: receive_stmt ContainerRuntimeReady
pkg/etcd/etcd_linux_test.go
    generateTestConfig: make_chan containerRuntimeReady, close containerRuntimeReady
    generateTestConfig: func_call NewRuntime, func_arg containerRuntimeReady
pkg/server/handlers/cert.go
    caCertReplace: func_call NewRuntime
pkg/server/server.go
    StartServer: composite_literal_key APIServerReady, composite_literal_value APIServerReady
    StartServer: func_call startOnAPIServerReady
    startOnAPIServerReady: func_decl startOnAPIServerReady, select_case APIServerReady
pkg/util/api.go
    doc comment of const DefaultAPIServerReadyTimeout = 15 * time.Minute: comment_mention apiReady
    -: const_decl DefaultAPIServerReadyTimeout
    doc comment of WaitForAPIServerReady: comment_mention WaitForAPIServerReady
    WaitForAPIServerReady: func_decl WaitForAPIServerReady
tests/unit.go
    GenerateRuntime: var_decl readyCh, assignment readyCh, assignment ContainerRuntimeReady
    GenerateRuntime: func_call NewRuntime, func_arg readyCh
"""

#: What each kind of site looks like in a line of gofmt's output; `@` is the identifier, `~` selectors in front of it.
CHANNEL_PARAMETER = r"[(, ]@ <-chan struct\{\}[,)]"
CALL = r"(?<!func )(?<!func \(c \*Cluster\) )\b@\("
SHAPES = {
    "assignment": r"(?<![\w.])~@(?:, err)? :?= (?!make)|(?<!nil) :?= ~@$",
    "call_WaitForAPIServerReady": CALL,
    "close": r"\bclose\(~@\)",
    "comment_mention": r"^\s*//.*\b@\b",
    "composite_literal_key": r"^\s+@: ",
    "composite_literal_value": r": +~@,$",
    "const_decl": r"^const @ = ",
    "forwarding_func": CHANNEL_PARAMETER,
    "func_arg": r"(?<=[( ])(?<!close\()~@(?=[,)])",
    "func_call": CALL,
    "func_decl": r"^func (?:\([^)]*\) )?@\(",
    "func_param": CHANNEL_PARAMETER,
    "interface_method": CHANNEL_PARAMETER,
    "label": r"^\s*@:$|\bbreak @$",
    "make_chan": r"^\s+@ := make\(chan struct\{\}\)$",
    "method_impl": CHANNEL_PARAMETER,
    "nil_check": r"\bif ~@ != nil \{$",
    "receive_stmt": r"^\s+<-~@$",
    "result_type": r"\b@\(.*\) \(<-chan struct\{\}, error\) \{$",
    "return_value": r"\breturn @\b",
    "select_case": r"\bcase <-~@:$",
    "struct_field_decl": r"^\s+@ +(?:<-chan|chan<-) struct\{\}$",
    "var_decl": r"^\s+var @ ",
}

#: Identifiers of the table that are also ordinary words.
ORDINARY = {"Start", "done", "ready", "result"}

Site = tuple[str, str, str, str]


def table() -> Counter[Site]:
    sites: Counter[Site] = Counter()
    path = ""
    for line in CORE_SITES.strip().splitlines():
        if not line.startswith(" "):
            path = line
            continue
        function, _, shapes = line.strip().rpartition(": ")
        for shape in shapes.split(", "):
            kind, identifier, *times = shape.split()
            sites[path, function, kind, identifier] += int(times[0][1:]) if times else 1
    return sites


def scope(source: str, function: str) -> str:
    """Return the text of a declaration, named as the corpus names it."""
    if function == "-":
        return source
    if function.startswith("doc comment of "):
        name = function.removeprefix("doc comment of ")
        declared = re.escape(name) if name.startswith("const ") else rf"func (?:\([^)]*\) )?{name}\("
        pattern = rf"(?:^//[^\n]*\n)+(?={declared})"
    elif function.startswith("type "):
        pattern = rf"^{function} (?:struct|interface) \{{\n.*?^\}}"
    elif function.startswith("("):
        receiver, name = re.fullmatch(r"\(\*(\w+)\)\.(\w+)", function).groups()  # type: ignore[union-attr]
        pattern = rf"^func \((?:\w+ )?\*{receiver}\) {name}\(.*?^\}}"
    else:
        pattern = rf"^func {function}\(.*?^\}}"
    found = re.findall(pattern, source, re.M | re.S)
    assert len(found) == 1, f"{function} is declared {len(found)} times"
    return str(found[0])


def test_table_has_the_127_core_sites() -> None:
    assert table().total() == 127


@pytest.mark.parametrize("site", sorted(table()), ids=lambda site: ":".join(site))
def test_core_site_has_a_counterpart_of_the_same_shape(site: Site) -> None:
    path, function, kind, identifier = site
    text = scope((FIXTURE / path).read_text(encoding="utf-8"), function)
    shape = SHAPES[kind].replace("~", r"(?:\w+\.)*").replace("@", identifier)
    assert len(re.findall(shape, text, re.M)) == table()[site]


def test_nothing_else_uses_the_vocabulary_of_readiness() -> None:
    expected: Counter[str] = Counter()
    for (_, _, _, identifier), times in table().items():
        expected[identifier] += times
    words = re.compile(r"\b(?:" + "|".join(sorted(expected.keys() - ORDINARY)) + r")\b")
    found = Counter(word for path in FIXTURE.rglob("*.go") for word in words.findall(path.read_text(encoding="utf-8")))
    assert found == Counter({word: times for word, times in expected.items() if word not in ORDINARY})


def test_table_agrees_with_the_corpus() -> None:
    corpus = os.environ.get("REFACTOR_TOOL_CORPUS")
    if not corpus:
        pytest.skip("REFACTOR_TOOL_CORPUS is not set")
    rows = map(json.loads, (Path(corpus) / "sites.jsonl").read_text(encoding="utf-8").splitlines())
    assert table() == Counter(
        (row["file"], row["func"] or "-", row["kind"], row["identifier"])
        for row in rows
        if row["ref"] == "before/issue" and row["set"] == "core"
    )


def test_every_dependency_is_a_stub_and_every_stub_is_used() -> None:
    replaced = dict(re.findall(r"^\t(\S+) => \./(\S+)$", (FIXTURE / "go.mod").read_text(encoding="utf-8"), re.M))
    for module, folder in replaced.items():
        assert folder == f"stubs/{module}"
        assert (FIXTURE / folder / "go.mod").read_text(encoding="utf-8").startswith(f"module {module}\n")
    imported = {
        path
        for file in FIXTURE.rglob("*.go")
        for path in re.findall(r'^(?:import |\t)(?:[\w.]+ )?"([\w-]+\.[\w.-]+/[^"]+)"$', file.read_text("utf-8"), re.M)
        if not path.startswith("github.com/k3s-io/k3s/")
    }
    assert all((FIXTURE / "stubs" / path).is_dir() for path in imported)
    assert {
        module for path in imported for module in replaced if f"{path}/".startswith(f"{module}/")
    } == replaced.keys()


@dataclass(frozen=True)
class Offline:
    """The toolchain with an environment of an offline build."""

    go: gotool.Go
    env: dict[str, str]

    def run(self, *args: str, goos: str = "linux") -> str:
        done = gotool.run(self.go, args, FIXTURE, {**self.env, "GOOS": goos}, 1200)
        said = (done.out + done.err).decode()
        assert done.code == 0, said
        return said


@pytest.fixture(scope="module")
def offline(go: gotool.Go, go_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Offline:
    """Return what builds offline and cannot write to the fixture; skip without Go 1.23 or later."""
    release = re.match(r"go1\.(\d+)", go.version)
    if not release or int(release[1]) < 23:
        pytest.skip(f"the fixture needs Go 1.23 or later, this is {go.version}")
    return Offline(go, gotool.environment(go, gotool.Home(go_cache / "refactor-tool", tmp_path_factory.mktemp("go"))))


@pytest.mark.parametrize(
    ("goos", "tags"),
    [("linux", ""), ("windows", ""), ("linux", "no_embedded_executor")],
    ids=["linux", "windows", "no_embedded_executor"],
)
def test_builds_and_vets_offline(offline: Offline, goos: str, tags: str) -> None:
    offline.run("build", "-tags", tags, "./...", goos=goos)
    offline.run("vet", "-tags", tags, "./...", goos=goos)


def test_its_own_tests_pass(offline: Offline) -> None:
    assert "FAIL" not in offline.run("test", "./...", goos=offline.go.system[0])


def test_is_gofmt_clean(unformatted: Callable[[Path], list[str]]) -> None:
    assert unformatted(FIXTURE) == []
