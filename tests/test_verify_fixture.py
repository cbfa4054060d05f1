"""The generated code at work: the series on the embedded fixture, its own tests, and ours, which ask from outside.

`fixtures/behaviour` holds our tests; here they become a package of the tree that the campaign leaves. The race detector
is on where there is a C compiler. Mutations show that the tests can fail.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from refactor_tool.verify import build
from refactor_tool.world import gotool
from tests import trees
from tests.command import ROOT

MODULE = "github.com/k3s-io/k3s"
BEHAVIOUR = sorted((ROOT / "fixtures/behaviour").glob("*_test.go"))
OURS = "pkg/behaviour"
_TEST = re.compile(r"^func (Test\w+)\(", re.MULTILINE)


def names(text: str) -> list[str]:
    return _TEST.findall(text)


#: Every test by package: those that travel with the series, and ours.
TRAVELLING = sorted(
    (path.rpartition("/")[0], name)
    for path, file in trees.after().items()
    if path.endswith("_test.go") and not path.startswith("stubs/")
    for name in names(file.data.decode())
)
ASKED = sorted((OURS, name) for file in BEHAVIOUR for name in names(file.read_text(encoding="utf-8")))


@dataclass(frozen=True)
class Bench:
    """A copy of the tree after the campaign, with our tests in it, and Go."""

    go: gotool.Go
    home: gotool.Home
    tree: Path

    def test(self, packages: Sequence[str], only: str = "") -> build.Tested:
        """Run the tests of packages, or one of them by name."""
        cgo = bool(gotool.c_compiler())
        args = [
            "test",
            "-json",
            "-count=1",
            "-timeout=5m",
            *(["-race"] if cgo else []),
            *(["-run", f"^{only}$"] if only else []),
        ]
        env = gotool.environment(self.go, self.home, cgo=cgo)
        answer = gotool.run(self.go, [*args, *(f"./{package}" for package in packages)], self.tree, env, 1200)
        told = build.tested(answer.out)
        assert told.outcomes, answer.err.decode(errors="replace")
        return told

    def write(self, files: Mapping[str, bytes]) -> None:
        for path, data in files.items():
            where = self.tree / path
            where.parent.mkdir(parents=True, exist_ok=True)
            where.write_bytes(data)


@pytest.fixture(scope="session")
def bench(go: gotool.Go, go_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    folder = tmp_path_factory.mktemp("behaviour")
    (folder / "scratch").mkdir()
    made = Bench(go, gotool.Home(go_cache / "refactor-tool", folder / "scratch"), folder / "tree")
    made.write({path: file.data for path, file in trees.after().items()})
    made.write({f"{OURS}/{file.name}": file.read_bytes() for file in BEHAVIOUR})
    return made


@pytest.fixture(scope="session")
def outcomes(bench: Bench) -> build.Tested:
    """Run all tests once."""
    return bench.test(sorted({package for package, _ in (*TRAVELLING, *ASKED)}))


@pytest.mark.parametrize(("package", "name"), [*TRAVELLING, *ASKED])
def test_generated_code_behaves(outcomes: build.Tested, package: str, name: str) -> None:
    key = f"{MODULE}/{package}", name
    assert outcomes.outcomes.get(key) == "pass", outcomes.output.get(key, "it did not run")


def test_what_must_be_asked_is_asked() -> None:
    assert len(TRAVELLING) >= 25
    assert len(ASKED) >= 15


@pytest.mark.parametrize(
    ("path", "old", "new", "test"),
    [
        pytest.param(
            "pkg/daemons/executor/embed.go",
            "return e.criReady.CloseIfNil(containerd.Run(ctx, cfg))",
            "defer e.criReady.Close()\n\treturn containerd.Run(ctx, cfg)",
            "TestContainerRuntimeThatFailsIsNeverReady",
            id="closed on error",
        ),
        pytest.param(
            "pkg/daemons/executor/embed.go",
            "if err := util.WaitReady(ctx, e.APIServerReadyChan()); err != nil {",
            "if err := e.APIServerReadyChan(); err == nil {",
            "TestComponentsThatWaitEndWithTheContext",
            id="call expression alone replaced, which compiles",
        ),
        pytest.param(
            "pkg/util/ready.go",
            "\tselect {\n\tcase <-ready:\n\t\treturn nil\n\tcase <-ctx.Done():\n\t\treturn ctx.Err()\n\t}\n",
            "\t<-ready\n\treturn nil\n",
            "TestWaitEndsWithItsContext",
            id="wait that outlives its context",
        ),
        pytest.param(
            "pkg/util/ready.go",
            "r.closeOnce.Do(func() { close(r.ch) })",
            "close(r.ch)",
            "TestSignalIsClosedOnceWhoeverReports",
            id="closed by each who reports",
        ),
        pytest.param(
            "pkg/daemons/executor/etcd.go",
            "if ctx.Err() != nil {\n\t\t\t\treturn\n\t\t\t}\n\t\t\tif err == nil {",
            "if err == nil {",
            "TestETCDIsReadyOnlyWhenItsTestSucceeds",
            id="closed by the end of the context",
        ),
        pytest.param(
            "pkg/util/api.go",
            "\t\tlastErr = err\n",
            "",
            "TestCauseOfAnUnreadyAPIServerIsToldInLogAndError",
            id="cause that is lost",
        ),
    ],
)
def test_mutation_is_caught(bench: Bench, path: str, old: str, new: str, test: str) -> None:
    sound = trees.after()[path].data
    bench.write({path: trees.edited(trees.after(), path, old, new)[path].data})
    try:
        told = bench.test([OURS], test)
    finally:
        bench.write({path: sound})
    assert not told.unbuilt, told.output
    assert told.outcomes[f"{MODULE}/{OURS}", ""] == "fail"
    assert told.outcomes.get((f"{MODULE}/{OURS}", test)) != "pass"
