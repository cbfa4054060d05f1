"""The rules on real trees: defects that k3s and RKE2 had, and how much is said of code that nobody complained about."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from refactor_tool.gosrc.tree import Tree
from refactor_tool.model import Finding
from refactor_tool.rule import hazards, new_hazards
from refactor_tool.rules import RULES
from refactor_tool.world.tree import read_many
from tests.hazards import BY_ID

CONTROL = "pkg/daemons/control/server.go"
EMBED = "pkg/daemons/executor/embed.go"
ETCD = "pkg/etcd/etcd.go"
AGENT = "pkg/agent/run.go"
PEBINARY = "pkg/executor/pebinary/pebinary.go"
STATICPOD = "pkg/executor/staticpod/staticpod.go"

#: Rule, case, the tree without the defect ("" where there is none), and file and functions of the defect.
DEFECTS = [
    ("L01", "03", "good", CONTROL, "scheduler cloudControllerManager"),
    ("L01", "39", "good", PEBINARY, "(*PEBinaryConfig).Docker (*PEBinaryConfig).Containerd (*PEBinaryConfig).CRI"),
    ("L01", "39", "good", STATICPOD, "(*StaticPodConfig).Docker (*StaticPodConfig).Containerd (*StaticPodConfig).CRI"),
    ("L01", "42", "good", "pkg/podexecutor/staticpod.go", "(*StaticPodConfig).APIServerHandlers"),
    ("L02", "04", "fixed", EMBED, "(*Embedded).Containerd (*Embedded).Docker (*Embedded).CRI"),
    ("L02", "06", "fixed", PEBINARY, "(*PEBinaryConfig).Containerd"),
    ("L02", "07", "fixed", "pkg/daemons/executor/etcd.go", "(*Embedded).ETCD"),
    ("L02", "08", "fixed", "pkg/util/api.go", "APIServerReadyChan"),
    ("L02", "20", "fixed", "pkg/cluster/cluster.go", "(*Cluster).Start"),
    ("L02", "29", "", CONTROL, "scheduler cloudControllerManager"),
    ("L03", "08", "fixed", "pkg/util/api.go", "WaitForAPIServerReady"),
    ("L03", "29", "", CONTROL, "scheduler"),
    ("L04", "56", "", "pkg/cli/server/server.go", "run"),
    ("L05", "25", "good", "pkg/daemons/executor/etcd.go", "(*Embedded).ETCD"),
    ("L07", "22", "fixed", "pkg/spegel/spegel.go", "(*Config).Start"),
    ("L07", "37", "good", AGENT, "run"),
    ("L08", "02", "fixed", EMBED, "(*Embedded).Kubelet"),
    ("L08", "02", "fixed", "pkg/agent/tunnel/tunnel.go", "Setup"),
    (
        "L08",
        "16",
        "fixed",
        EMBED,
        "(*Embedded).Kubelet (*Embedded).KubeProxy (*Embedded).APIServer (*Embedded).Scheduler",
    ),
    ("L08", "16", "fixed", EMBED, "(*Embedded).ControllerManager (*Embedded).CloudControllerManager"),
    ("L08", "16", "fixed", "pkg/daemons/executor/etcd.go", "(*Embedded).ETCD"),
    ("L08", "16", "fixed", ETCD, "(*ETCD).Start"),
    ("L08", "16", "fixed", "pkg/util/api.go", "APIServerReadyChan"),
    ("L09", "20", "fixed", "pkg/cluster/cluster.go", "(*Cluster).Start"),
    ("L09", "58", "fixed", AGENT, "run"),
    ("L09", "58", "fixed", "pkg/agent/tunnel/tunnel.go", "Setup"),
    ("L10", "02", "fixed", CONTROL, "waitForAPIServerInBackground"),
    ("L10", "61", "", CONTROL, "waitForAPIServerInBackground"),
    ("L10", "92", "", "pkg/util/api.go", "WaitForRBACReady"),
    ("L12", "29", "", CONTROL, "scheduler"),
    ("L14", "80", "fixed", "pkg/server/server.go", "StartServer"),
    ("L15", "49", "fixed", "pkg/server/handlers/secrets-encrypt.go", "encryptionStatus"),
    ("L15", "51", "fixed", ETCD, "(*ETCD).Snapshot"),
    ("L15", "52", "fixed", "pkg/cluster/managed.go", "(*Cluster).deleteNodePasswdSecret"),
    ("L16", "54", "", EMBED, "(*Embedded).Scheduler"),
    ("L16", "70", "fixed", "pkg/cluster/cluster.go", "(*Cluster).Start"),
    ("L16", "90", "", ETCD, "(*ETCD).StoreSnapshotData"),
    ("L17", "17", "fixed", ETCD, "(*ETCD).Reset (*ETCD).manageLearners"),
    ("L17", "21", "fixed", "pkg/spegel/spegel.go", "(*Config).Start"),
    ("L17", "44", "fixed", "pkg/podexecutor/staticpod.go", "(*StaticPodConfig).Kubelet"),
    ("L17", "71", "fixed", "pkg/agent/config/config.go", "Get KubeProxyDisabled APIServers"),
    ("L17", "74", "fixed", "pkg/cli/server/server.go", "getAPIAddressFromEtcd"),
    ("L17", "86", "", AGENT, "configureNode"),
    ("L22", "31", "fixed", ETCD, "(*ETCD).startClient"),
    ("D1", "18", "fixed", ETCD, "(*ETCD).manageLearners"),
    ("D2", "03", "good", CONTROL, "scheduler cloudControllerManager"),
    ("D2", "42", "good", "pkg/podexecutor/staticpod.go", "(*StaticPodConfig).APIServerHandlers"),
    ("D3", "55", "fixed", AGENT, "run"),
    ("D3", "80", "fixed", "pkg/server/server.go", "StartServer"),
]


@pytest.mark.parametrize(
    ("rule", "case", "without", "path", "functions"),
    [pytest.param(*row, id=f"{row[0]} case {row[1]} {row[3]}") for row in DEFECTS],
)
def test_defect_is_found_where_it_was_and_not_where_it_was_mended(
    corpus: Path, rule: str, case: str, without: str, path: str, functions: str
) -> None:
    refs = [f"case/{case}-present", *([f"case/{case}-{without}"] if without else [])]
    trees = [Tree(snapshot) for snapshot in read_many(corpus / "cases.git", refs)]
    with_defect, others = trees[0], trees[1:]
    if BY_ID[rule].compare is not None:
        found = _sites(new_hazards(others[0], with_defect, [BY_ID[rule]]), path)
        mended: Counter[str] = Counter()
    else:
        found = _sites(hazards(with_defect, [BY_ID[rule]]), path)
        mended = sum((_sites(hazards(tree, [BY_ID[rule]]), path) for tree in others), Counter())
    for function in functions.split(" "):
        assert found[function] > mended[function], function


def _sites(findings: tuple[Finding, ...], path: str) -> Counter[str]:
    return Counter(finding.function for finding in findings if finding.path == path)


#: What each rule says of trees as they were: few errors, nearly all of them real, and shapes that upstream lives with.
NOISE = {
    (
        "k3s.git",
        "later/2026-04",
    ): "L01 19, L02 2, L03 1, L04 1, L05 1, L06 4, L08 7, L09 4, L10 2, L12 2, L15 6, L16 2, L17 1, L22 1",
    ("k3s.git", "before/issue"): "L01 11, L02 3, L04 2, L05 2, L08 35, L09 3, L10 4, L12 1, L15 6, L16 2, L17 4, L22 2",
    ("rke2.git", "before/rke2-1.31"): "L01 7, L08 13, L10 1",
    ("rke2.git", "after/rke2-1.31"): "L01 8, L02 7, L04 1, L08 13, L10 1",
}
ERRORS = {"later/2026-04": 10, "before/issue": 6, "before/rke2-1.31": 6, "after/rke2-1.31": 14}


@pytest.mark.parametrize(("repository", "ref"), NOISE)
def test_noise_is_what_it_was(corpus: Path, repository: str, ref: str) -> None:
    (snapshot,) = read_many(corpus / repository, [ref])
    found = hazards(Tree(snapshot), RULES)
    by_rule = Counter(finding.id for finding in found)
    assert ", ".join(f"{rule} {count}" for rule, count in sorted(by_rule.items())) == NOISE[repository, ref]
    assert sum(finding.severity == "error" for finding in found) == ERRORS[ref]


def test_releases_a_year_apart_are_compared_without_noise(corpus: Path) -> None:
    older, newer = (Tree(snapshot) for snapshot in read_many(corpus / "k3s.git", ["older/v1.26", "before/issue"]))
    assert not new_hazards(older, newer, RULES)
