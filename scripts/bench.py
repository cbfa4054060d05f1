"""Measure the tool beside its peers: ratios of the smallest CPU time (children too) of alternating runs.

Machines are noisy, so only figures of one run are compared, and a bar is a goal plus a fifth. Prints a table; leaves
with 1 where a bar is broken. Run it through `scripts/bench`, which brings the peers.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
RULE = ROOT / "scripts" / "bench-readiness.yml"
TOOL = [sys.executable, "-m", "refactor_tool"]
WORDS = (
    r"(WaitForAPIServerReady|DefaultAPIServerReadyTimeout|waitForAPIServerInBackground|startOnAPIServerReady|NewRuntime"
    r"|ontainerRuntimeReady|piServerReady|APIServerReady|apiReady|tcdReady|ETCDReady|schedulerNodeReady|ccmRBACReady"
    r"|readyCh|testClusterDB|etcdLoop)"
)
BAR = 1.2


@dataclass(frozen=True)
class Cost:
    """One run: CPU seconds, wall seconds, peak memory in MB."""

    cpu: float
    wall: float
    memory: float


@dataclass(frozen=True)
class Job:
    """One command and where it runs; any exit code below 64 counts as a run."""

    name: str
    argv: Sequence[str]
    cwd: Path


@dataclass(frozen=True)
class Goal:
    """The smallest CPU of `job` over that of `peer` shall be at most `most`."""

    job: str
    peer: str
    most: float
    wall: bool = False


def main() -> int:
    """Measure what the arguments ask for; 0 where every bar holds."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("path", nargs="?", type=Path)
    parser.add_argument("-n", type=int, default=7, help="runs of each command (7)")
    parser.add_argument("--large", action="store_true", help="measure generated trees of 5,000 and 20,000 files too")
    parser.add_argument("--plot", type=Path, help="write the growth over refs and files as SVG")
    options = parser.parse_args()
    corpus = Path(os.environ["REFACTOR_TOOL_CORPUS"]) if os.environ.get("REFACTOR_TOOL_CORPUS") else None
    if options.path is None and corpus is None:
        parser.error("name a k3s checkout, or set REFACTOR_TOOL_CORPUS")
    with tempfile.TemporaryDirectory(prefix="refactor-tool-bench.") as folder:
        return _measure(options, corpus, Path(folder))


def _measure(options: argparse.Namespace, corpus: Path | None, work: Path) -> int:
    tree = options.path.resolve() if options.path is not None else _clone(corpus, "before/issue", work / "issue")
    broken = _report("one tree", _one_tree(tree, work), options.n, _ONE_TREE)
    points: dict[str, list[tuple[float, Cost]]] = {}
    if corpus is not None:
        repository = corpus / "k3s.git"
        before = _digest(repository)
        later = _clone(corpus, "later/2026-04", work / "later")
        broken += _report("a migrated tree", _migrated(later, work), options.n, _MIGRATED)
        refs = _refs(repository)
        broken += _report(f"{len(refs)} refs", _many(repository, refs), max(3, options.n // 2), _MANY)
        points["refs"] = [(count, _best(_matrix(repository, refs[:count]), 3)) for count in range(1, len(refs) + 1, 3)]
        print(f"the repository is {'untouched' if _digest(repository) == before else 'CHANGED'}")
        broken += _digest(repository) != before
    if options.large:
        points["files"] = []
        for count in (1_000, 5_000, 20_000):
            large = _large(tree, work / f"large{count}", count)
            if count == 5_000:
                broken += _report("5,000 files", _one_tree(large, work), 3, _LARGE)
            points["files"].append((count, _best(Job("scan", [*TOOL, "scan", str(large)], work), 3)))
    for name, series in points.items():
        print(
            f"growth over {name}: " + ", ".join(f"{at:g}: {cost.cpu:.2f} s {cost.memory:.0f} MB" for at, cost in series)
        )
    if options.plot is not None:
        options.plot.write_text(_plot(points), encoding="utf-8")
    return 1 if broken else 0


# --- what is measured -------------------------------------------------------------------------------

_ONE_TREE = (
    Goal("scan", "ast-grep", 0.35),
    Goal("scan", "ast-grep", 0.7, wall=True),
    Goal("scan", "rg, then ast-grep", 2.0),
    Goal("check, no rules", "ast-grep", 0.35),
    Goal("check, all rules", "ast-grep", 1.0),
    Goal("plan", "ast-grep", 1.0),
    Goal("--help", "python -c pass", 10),
    Goal("--version", "python -c pass", 10),
)
_MIGRATED = (Goal("check, no rules", "ast-grep", 0.15), Goal("check, all rules", "ast-grep", 1.0))
_MANY = (Goal("matrix, one process", "git grep", 1.5), Goal("matrix", "git grep", 2.0, wall=True))
_LARGE = (Goal("scan", "ast-grep", 0.10), Goal("scan", "rg, then ast-grep", 3.0))
_MOST_MEMORY = {"scan": 40.0, "plan": 40.0, "matrix, one process": 45.0}


def _one_tree(tree: Path, work: Path) -> list[Job]:
    return [
        *_peers(tree),
        Job("scan", [*TOOL, "scan", str(tree)], work),
        *_checks(tree, work),
        Job("plan", [*TOOL, "plan", str(tree)], work),
        Job("--help", [*TOOL, "--help"], work),
        Job("--version", [*TOOL, "--version"], work),
        Job("python -c pass", [sys.executable, "-c", "pass"], work),
    ]


def _migrated(tree: Path, work: Path) -> list[Job]:
    return [_peers(tree)[0], *_checks(tree, work)]


def _checks(tree: Path, work: Path) -> list[Job]:
    return [
        Job("check, no rules", [*TOOL, "check", str(tree), "--rules", "none"], work),
        Job("check, all rules", [*TOOL, "check", str(tree), "--rules", "all"], work),
    ]


def _peers(tree: Path) -> list[Job]:
    scan = f"{BIN / 'ast-grep'} scan -r {RULE} --json=stream"
    return [
        Job("ast-grep", ["sh", "-c", f"exec {scan} ."], tree),
        Job("rg, then ast-grep", ["sh", "-c", f"{BIN / 'rg'} -l -g '*.go' '{WORDS}' . | xargs {scan}"], tree),
    ]


def _many(repository: Path, refs: Sequence[str]) -> list[Job]:
    return [
        _matrix(repository, refs),
        Job("matrix", [*TOOL, "matrix", str(repository), *_named(refs)], ROOT),
        Job("git grep", ["git", "grep", "-nE", WORDS, *refs, "--", "*.go"], repository),
    ]


def _matrix(repository: Path, refs: Sequence[str]) -> Job:
    return Job("matrix, one process", [*TOOL, "matrix", str(repository), "--jobs", "1", *_named(refs)], ROOT)


def _named(refs: Sequence[str]) -> list[str]:
    return [word for ref in refs for word in ("--ref", ref)]


# --- measuring --------------------------------------------------------------------------------------


def _report(title: str, jobs: Sequence[Job], runs: int, goals: Sequence[Goal]) -> int:
    """Run the jobs in turn, print each one's best figures and the ratios; return how many bars are broken."""
    costs: dict[str, list[Cost]] = {job.name: [] for job in jobs}
    for at in range(runs + 1):
        for job in jobs:
            cost = _run(job)
            if at:  # the first round warms caches
                costs[job.name].append(cost)
    print(f"\n{title}, best of {runs}")
    best = {
        name: Cost(*(min(getattr(one, part) for one in each) for part in ("cpu", "wall", "memory")))
        for name, each in costs.items()
    }
    for name, cost in best.items():
        print(f"  {name:<22} {cost.cpu:7.3f} s CPU {cost.wall:7.3f} s wall {cost.memory:6.1f} MB")
    broken = 0
    for goal in goals:
        mine, peer = best[goal.job], best[goal.peer]
        ratio = (mine.wall / peer.wall) if goal.wall else (mine.cpu / max(peer.cpu, 0.001))
        broken += _verdict(f"{goal.job} ÷ {goal.peer}{' (wall)' if goal.wall else ''}", ratio, goal.most)
    for name, most in _MOST_MEMORY.items():
        if name in best and title != "5,000 files":
            broken += _verdict(f"{name} peak memory, MB", best[name].memory, most)
    return broken


def _verdict(what: str, value: float, goal: float) -> bool:
    word = "ok" if value <= goal else ("within the bar" if value <= goal * BAR else "OVER")
    print(f"  {what:<40} {value:6.2f}  goal {goal:g}: {word}")
    return value > goal * BAR


def _best(job: Job, runs: int) -> Cost:
    costs = [_run(job) for _ in range(runs)]
    return Cost(min(cost.cpu for cost in costs), min(cost.wall for cost in costs), min(cost.memory for cost in costs))


def _run(job: Job) -> Cost:
    start = time.monotonic()
    with subprocess.Popen(job.argv, cwd=job.cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode >= 64 or process.returncode in (2, 3):
        raise SystemExit(f"{job.name} ended with {process.returncode}: {' '.join(job.argv)}")
    return Cost(usage.ru_utime + usage.ru_stime, time.monotonic() - start, usage.ru_maxrss / 1024)


# --- trees ------------------------------------------------------------------------------------------


def _clone(corpus: Path | None, ref: str, where: Path) -> Path:
    source = f"file://{(corpus or Path()).resolve() / 'k3s.git'}"
    subprocess.run(["git", "clone", "-q", "--no-local", "--depth", "1", "-b", ref, source, str(where)], check=True)
    return where


def _refs(repository: Path) -> list[str]:
    out = subprocess.run(
        ["git", "for-each-ref", "--format=%(refname:short)", "refs/heads"],
        cwd=repository,
        check=True,
        capture_output=True,
    )
    return out.stdout.decode().split()[:12]


def _large(tree: Path, where: Path, count: int) -> Path:
    """Copy the Go files of a tree, add plain ones of a common size until there are `count`, and commit that."""
    subprocess.run(["git", "clone", "-q", str(tree), str(where)], check=True)
    filler = "".join(
        f"// Step{at} does a part of the work.\nfunc Step{at}(x int) int {{\n\treturn x + {at}\n}}\n\n"
        for at in range(150)
    )
    for at in range(count - sum(1 for _ in where.rglob("*.go"))):
        folder = where / "pkg" / "filler" / f"p{at // 50}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"f{at}.go").write_text(f"package p{at // 50}\n\n{filler.replace('Step', f'F{at}Step')}")
    person = ("-c", "user.name=bench", "-c", "user.email=bench@example.org")
    subprocess.run(["git", "-C", str(where), "add", "-A"], check=True)
    subprocess.run(["git", "-C", str(where), *person, "commit", "-q", "-m", "filler"], check=True)
    return where


def _digest(folder: Path) -> str:
    """Return one hash over every file's name and bytes."""
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            total.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return total.hexdigest()


def _plot(points: dict[str, list[tuple[float, Cost]]]) -> str:
    """Draw CPU seconds (left) and MB (right) over each size, both from zero."""
    parts = []
    measures: tuple[tuple[str, Callable[[Cost], float]], ...] = (
        ("s CPU", lambda one: one.cpu),
        ("MB", lambda one: one.memory),
    )
    for row, (name, series) in enumerate(points.items()):
        for column, (unit, read) in enumerate(measures):
            left, top = 60 + column * 340, 30 + row * 220
            most_x, most_y = max(at for at, _ in series), max(read(cost) for _, cost in series) * 1.1
            line = " ".join(
                f"{left + 260 * at / most_x:.1f},{top + 160 - 160 * read(cost) / most_y:.1f}" for at, cost in series
            )
            parts.append(
                f'<path d="M{left} {top}v160h260" fill="none" stroke="#888"/>'
                f'<polyline points="{line}" fill="none" stroke="#2da44e" stroke-width="2"/>'
                f'<text x="{left}" y="{top - 8}">{unit} over {name}, to {most_y:.1f}</text>'
                f'<text x="{left + 220}" y="{top + 176}">{most_x:g} {name}</text>'
            )
    height = 40 + 220 * len(points)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 {height}" font-family="sans-serif" font-size="12">'
        f'<rect width="720" height="{height}" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


if __name__ == "__main__":
    raise SystemExit(main())
