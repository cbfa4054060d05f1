"""Levels *build* and *behaviour*: the go command at work on a copy of the tree, one stage after the other.

A stage is compared with the tree before it only where something is wrong: what was wrong there too does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from refactor_tool.record import record, replace
from refactor_tool.verified import BUILD_CONFIGS, BuildConfig, Checked, Fault, Gap, Level, Stage
from refactor_tool.verify import build
from refactor_tool.verify.build import Tested
from refactor_tool.verify.origin import trace
from refactor_tool.verify.stages import unread
from refactor_tool.world import gotool
from refactor_tool.world.checkout import Checkout
from refactor_tool.world.clock import seconds

#: Seconds for one go command: dependencies of k3s take more than 20 minutes the first time.
_PATIENCE = 2 * 3600.0
#: What part of the first of its system a configuration takes, before one has been seen; of k3s on two cores.
_AGAIN = 0.15
#: What `go test` itself gives the tests of one package.
_TEST_TIMEOUT = "10m"
_EVERYTHING = ("./...",)


def run(
    level: Level,
    path: Path | None,
    stages: Sequence[Stage],
    module: str,
    go: gotool.Go,
    *,
    network: bool,
    step: Callable[[str, int, int], None],
) -> tuple[Checked, ...]:
    """Return what the level, build or behaviour, says of each stage.

    Raises `EnvironmentFailure` where the copy or a cache cannot be made.
    """
    first = stages[0]
    cgo = bool(gotool.c_compiler())
    with Checkout(path, first.before if first.before is not None else first.after) as copy:
        outer = [module for stage in stages for module in build.outside(stage.after, copy.prefix)]
        if outer:
            gap = Gap(
                ", ".join(dict.fromkeys(outer)), "go.mod replaces it by a folder outside the tree, which is not read"
            )
            return tuple(Checked(level, gaps=(gap,)) for _ in stages)
        home = gotool.Home(gotool.cache_folder(), copy.scratch)
        env = gotool.environment(go, home, network=network)
        pace = Pace(level, step, BUILD_CONFIGS * len(stages))
        bench = _Bench(copy, module, go, env, cgo, pace)
        found = [bench.build(stage) if level == "build" else bench.test(stage) for stage in stages]
        return tuple(
            replace(checked, gaps=(*unread(stage), *checked.gaps)) for stage, checked in zip(stages, found, strict=True)
        )


@record
class _Found:
    """What a command said of a configuration: whether it looked at anything, what is wrong, and what kept it."""

    ran: bool = True
    faults: tuple[Fault, ...] = ()
    gap: Gap | None = None
    note: str = ""


class Pace:
    """Tell how far the work is, and how long the rest will take as soon as the first configuration is done.

    The first configuration of a system takes longest, and so may the first step that touches a large package: they
    compile what all others depend on as well. So the middle of what was seen counts, not the mean.
    """

    def __init__(self, what: str, step: Callable[[str, int, int], None], configs: Sequence[BuildConfig]) -> None:
        """Take all configurations in their order, one step after the other."""
        self._what, self._step, self._configs = what, step, configs
        self._at, self._started = -1, seconds()
        self._since = self._started
        self._first: dict[str, float] = {}
        self._again: dict[str, list[float]] = {}

    def begin(self) -> None:
        """Say that the next configuration begins."""
        now = seconds()
        if self._at >= 0:
            done, took = self._configs[self._at], now - self._since
            if done.goos in self._first:
                self._again.setdefault(done.name, []).append(took)
            else:
                self._first[done.goos] = took
        self._at, self._since = self._at + 1, now
        self.tell()

    def tell(self) -> None:
        """Say how far the work is now."""
        now = seconds()
        told = [f"{_span(now - self._started)} so far"] if now - self._started >= 1 else []
        if self._first:
            told.append(f"about {_span(self._left(now - self._since))} left")
        self._step(", ".join((self._what, *told)) + ": configuration", self._at, len(self._configs))

    def _left(self, spent: float) -> float:
        """Return the seconds that are left, `spent` seconds after the configuration began."""
        first = sum(self._first.values()) / len(self._first)
        usual = _middle([one for took in self._again.values() for one in took if one >= 1] or [_AGAIN * first])
        met = set(self._first)
        rest = []
        for config in self._configs[self._at :]:
            own = self._again.get(config.name, [])
            rest.append(first if config.goos not in met else _middle(own) if len(own) > 1 else min([usual, *own]))
            met.add(config.goos)
        return max(rest[0] - spent, 0.0) + sum(rest[1:])


def _middle(values: Sequence[float]) -> float:
    """Return the median, of two the lower."""
    return sorted(values)[(len(values) - 1) // 2]


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


class _Bench:
    """A copy of the tree and the toolchain; each stage is applied to it for good."""

    def __init__(self, copy: Checkout, module: str, go: gotool.Go, env: dict[str, str], cgo: bool, pace: Pace) -> None:
        self._copy, self._module, self._go, self._env, self._cgo, self._pace = copy, module, go, env, cgo, pace

    def build(self, stage: Stage) -> Checked:
        """Compile and vet what the stage touches, tests included, in each configuration that selects it."""
        self._copy.apply(stage.changes)
        found = {}
        for config in BUILD_CONFIGS:
            self._pace.begin()
            paths = self._selected(stage, config)
            found[config.name] = paths if isinstance(paths, _Found) else self._compile(stage, config, paths)
        return _checked("build", stage, found)

    def test(self, stage: Stage) -> Checked:
        """Run the tests of what the stage touches; configurations of this system that select other files as well."""
        self._copy.apply(stage.changes)
        found: dict[str, _Found] = {}
        plain: frozenset[str] | None = None
        for config in BUILD_CONFIGS:
            self._pace.begin()
            goos, _ = self._go.system
            if config.goos != goos:
                gap = Gap(config.name, f"its tests cannot run on {goos}", (config.name,), blocks=False)
                found[config.name] = _Found(ran=False, gap=gap)
                continue
            paths = self._selected(stage, config)
            if isinstance(paths, _Found):
                found[config.name] = paths
                continue
            packages = _packages(stage, paths)
            if plain is not None:
                packages = build.unlike(packages, paths, plain) if packages != _EVERYTHING else ()
            plain = paths if plain is None else plain
            found[config.name] = self._try(stage, config, packages)
        checked = _checked("behaviour", stage, found)
        if not checked.configs and not checked.gaps:
            return checked
        return (
            checked
            if checked.configs
            else replace(checked, gaps=tuple(replace(gap, blocks=True) for gap in checked.gaps))
        )

    def _selected(self, stage: Stage, config: BuildConfig) -> frozenset[str] | _Found:
        """Return the files, in the folders of the stage, that a configuration selects."""
        folders = build.folders(stage) if stage.before is not None else _EVERYTHING
        if not folders:
            return frozenset()
        args = build.arguments("list", config, ("-e", "-find", f"-json={','.join(build.LISTED)}", *folders))
        answer = self._go_run(config, args)
        if answer.code != 0:
            return _failed(answer, config)
        return build.selected(answer.out, str(self._copy.module))

    def _compile(self, stage: Stage, config: BuildConfig, paths: frozenset[str]) -> _Found:
        packages = _packages(stage, paths)
        found = self._complaints(config, packages, paths)
        if found.faults and stage.before is not None:
            with self._before(stage):
                earlier = self._selected(stage, config)
                if not isinstance(earlier, _Found):
                    known = build.existing(packages, earlier)
                    faults = build.added(found.faults, self._complaints(config, known, earlier).faults)
                    return replace(found, faults=tuple(faults))
        return found

    def _complaints(self, config: BuildConfig, packages: Sequence[str], paths: frozenset[str]) -> _Found:
        wanted = {"build": build.with_code(packages, paths) if packages != _EVERYTHING else packages, "vet": packages}
        for command, folders in wanted.items():
            if folders:
                answer = self._go_run(config, build.arguments(command, config, folders))
                if answer.code != 0:
                    return _failed(answer, config)
        return _Found(ran=bool(packages))

    def _try(self, stage: Stage, config: BuildConfig, packages: Sequence[str]) -> _Found:
        if not packages:
            return _Found(ran=False)
        after = self._tested(config, packages)
        if isinstance(after, _Found):
            return after
        faults = build.failures(self._module, after, None, config.name)
        if faults and stage.before is not None:
            with self._before(stage):
                earlier = self._selected(stage, config)
                known = () if isinstance(earlier, _Found) else build.existing(packages, earlier)
                before = self._tested(config, known) if known else None
            before = None if isinstance(before, _Found) else before
            faults = build.failures(self._module, after, before, config.name)
        race = "" if self._cgo else " without -race: there is no C compiler"
        return _Found(faults=tuple(faults), note=f"{after.passed} tests pass{race}")

    def _tested(self, config: BuildConfig, packages: Sequence[str]) -> Tested | _Found:
        race = ("-race",) if self._cgo else ()
        args = build.arguments("test", config, ("-json", "-count=1", f"-timeout={_TEST_TIMEOUT}", *race, *packages))
        answer = self._go_run(config, args)
        told = build.tested(answer.out)
        return told if told.outcomes and answer.code is not None else _failed(answer, config)

    @contextmanager
    def _before(self, stage: Stage) -> Iterator[None]:
        """Put the tree before the stage into the copy for a while."""
        self._copy.apply(stage.changes, back=True)
        try:
            yield
        finally:
            self._copy.apply(stage.changes)

    def _go_run(self, config: BuildConfig, args: Sequence[str]) -> gotool.Answer:
        goos, goarch = self._go.system
        own = config.goos == goos
        env = self._env | {"GOOS": config.goos, "GOARCH": goarch if own else config.goarch}
        env["CGO_ENABLED"] = "1" if own and self._cgo else "0"
        answer = gotool.run(self._go, args, self._copy.module, env, _PATIENCE, self._pace.tell)
        return replace(answer, err=self._copy.relative(answer.err))


def _packages(stage: Stage, paths: frozenset[str]) -> tuple[str, ...]:
    return build.touched(stage, paths) if stage.before is not None else _EVERYTHING


def _failed(answer: gotool.Answer, config: BuildConfig) -> _Found:
    if answer.code is None:
        gap = Gap("go", f"took longer than {_PATIENCE / 3600:.0f} hours", (config.name,))
        return _Found(gap=gap)
    faults, missing = build.complaints(answer.err, config.name)
    return _Found(faults=tuple(faults), gap=missing)


def _checked(level: Level, stage: Stage, found: dict[str, _Found]) -> Checked:
    faults = build.merged(fault for each in found.values() for fault in each.faults)
    gaps = build.joined(each.gap for each in found.values() if each.gap is not None)
    configs = tuple(name for name, each in found.items() if each.ran and (each.gap is None or each.faults))
    notes = "; ".join(dict.fromkeys(each.note for each in found.values() if each.note))
    return Checked(level, configs, tuple(replace(fault, origin=trace(stage, fault)) for fault in faults), gaps, notes)
