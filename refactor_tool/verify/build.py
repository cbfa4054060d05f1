"""Levels *build* and *behaviour*: what is asked of the go command, and what its output means.

Only packages and configurations that a stage touches are built and tested, and only what was not wrong before counts.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from refactor_tool.model import Snapshot
from refactor_tool.record import record, replace
from refactor_tool.verified import BuildConfig, Fault, Gap, Stage

#: What `go list` is asked for about a package, to know which of its files a configuration selects.
LISTED = ("Dir", "GoFiles", "CgoFiles", "TestGoFiles", "XTestGoFiles")
_PLACE = re.compile(r"(?:vet: )?(?:\./)?([^\s:][^:\n]*\.go):(\d+):(?:(\d+):)? (.+)")
_TEST_PLACE = re.compile(r"^\s*([\w.-]+\.go):(\d+): (.*)", re.MULTILINE)
_MISSING = re.compile(
    r"module lookup disabled by GOPROXY=off|missing go\.sum entry|no required module provides package|"
    r"cannot find module providing package|updates to go\.mod needed|reading file:///|dial tcp"
)
_REPLACED = re.compile(r"^\s*(?:replace\s+)?(\S+)(?:\s+v\S+)?\s+=>\s+(\S+)", re.MULTILINE)
_COMMENT = re.compile(r"//.*")
NO_MODULES = "dependencies are not in the module cache"
NO_MODULES_HINT = "--network fetches them from the GOPROXY of this machine"


def folders(stage: Stage) -> tuple[str, ...]:
    """Return the folders (`./pkg/util`) whose packages the stage touches and leaves, sorted."""
    left = {path.rpartition("/")[0] for path in stage.after.go_paths()}
    changed = {change.path.rpartition("/")[0] for change in stage.changes if change.path.endswith(".go")}
    return tuple(f"./{folder}" if folder else "." for folder in sorted(changed & left))


def selected(listing: bytes, module: str) -> frozenset[str]:
    """Return the paths, below the module's folder, that `go list -json` says a configuration selects."""
    out: set[str] = set()
    for package in _objects(listing.decode("utf-8", "replace")):
        folder = posixpath.relpath(package["Dir"].replace("\\", "/"), module.replace("\\", "/"))
        names = [name for key in LISTED[1:] for name in package.get(key) or ()]
        out.update(posixpath.normpath(f"{folder}/{name}") for name in names)
    return frozenset(out)


def touched(stage: Stage, paths: frozenset[str]) -> tuple[str, ...]:
    """Return those folders of the stage in which a configuration selects a file that the stage changes.

    A folder from which a file went is touched in every configuration that selects any of its files.
    """
    changed = {change.path for change in stage.changes if change.after is not None}
    shrunk = {change.path.rpartition("/")[0] for change in stage.changes if change.after is None}
    hit = {path.rpartition("/")[0] for path in paths if path in changed or path.rpartition("/")[0] in shrunk}
    return tuple(folder for folder in folders(stage) if _bare(folder) in hit)


def arguments(command: str, config: BuildConfig, packages: Sequence[str]) -> tuple[str, ...]:
    """Return the arguments of a go command for packages in a configuration."""
    return (command, *(("-tags", ",".join(config.tags)) if config.tags else ()), *packages)


def with_code(packages: Iterable[str], paths: frozenset[str]) -> tuple[str, ...]:
    """Return those folders in which a configuration selects more than tests."""
    code = {path.rpartition("/")[0] for path in paths if not path.endswith("_test.go")}
    return tuple(folder for folder in packages if _bare(folder) in code)


def existing(packages: Iterable[str], paths: frozenset[str]) -> tuple[str, ...]:
    """Return those folders in which a configuration selects anything."""
    filled = {path.rpartition("/")[0] for path in paths}
    return tuple(folder for folder in packages if folder.endswith("...") or _bare(folder) in filled)


def unlike(packages: Iterable[str], paths: frozenset[str], others: frozenset[str]) -> tuple[str, ...]:
    """Return those folders in which two configurations select different files."""
    differ = {path.rpartition("/")[0] for path in paths ^ others}
    return tuple(folder for folder in packages if _bare(folder) in differ)


def outside(tree: Snapshot, prefix: str) -> list[str]:
    """Return the modules that go.mod replaces by folders outside the tree; `prefix` is the module's own folder."""
    go_mod = tree.files.get("go.mod")
    text = _COMMENT.sub("", go_mod.data.decode("utf-8", "replace")) if go_mod is not None else ""
    out = []
    for module, target in _REPLACED.findall(text):
        target = target.strip('"`')
        if not target.startswith((".", "/", "\\")) and target[1:2] != ":":
            continue
        place = posixpath.normpath(posixpath.join(prefix, target.replace("\\", "/")))
        if posixpath.isabs(place) or place.split("/")[0] == ".." or target[1:2] == ":":
            out.append(module)
    return out


def complaints(output: bytes, config: str) -> tuple[list[Fault], Gap | None]:
    """Return the faults that `go build` or `go vet` complains of, and what kept it from looking."""
    faults = []
    rest = []
    for line in output.decode("utf-8", "replace").splitlines():
        found = _PLACE.fullmatch(line)
        if found is not None and not found[1].startswith(("../", "/")) and not _MISSING.search(found[4]):
            column = int(found[3]) if found[3] else None
            faults.append(Fault(posixpath.normpath(found[1]), int(found[2]), column, found[4], "go", configs=(config,)))
        elif line.strip() and not line.startswith(("#", "\t")):
            rest.append(line.strip())
    missing = next((line for line in rest if _MISSING.search(line)), None)
    if missing is not None:
        return faults, Gap(NO_MODULES, missing, (config,))
    if not faults:
        return [], Gap("go", rest[0] if rest else "failed and gave no reason", (config,))
    return faults, None


def added(after: Iterable[Fault], before: Iterable[Fault]) -> list[Fault]:
    """Return the faults that were not there before, whatever lines they stand on now."""
    known = Counter((fault.path, fault.message, fault.configs) for fault in before)
    out = []
    for fault in after:
        key = (fault.path, fault.message, fault.configs)
        known[key] -= 1
        if known[key] < 0:
            out.append(fault)
    return out


def merged(faults: Iterable[Fault]) -> list[Fault]:
    """Return each fault once, with all the configurations it is met in, sorted by place."""
    out: dict[tuple[Any, ...], Fault] = {}
    for fault in faults:
        key = (fault.path, fault.line or 0, fault.column or 0, fault.message)
        known = out.get(key)
        configs = dict.fromkeys((*known.configs, *fault.configs) if known else fault.configs)
        out[key] = replace(fault, configs=tuple(configs))
    return [out[key] for key in sorted(out)]


def joined(gaps: Iterable[Gap]) -> tuple[Gap, ...]:
    """Return each gap once, with all the configurations it is in."""
    out: dict[tuple[str, str, bool], Gap] = {}
    for gap in gaps:
        key = (gap.what, gap.reason, gap.blocks)
        out[key] = replace(gap, configs=(*(out[key].configs if key in out else ()), *gap.configs))
    return tuple(out.values())


@record
class Tested:
    """What `go test -json` told: outcome and output by (import path, test), "" for the package itself.

    `unbuilt` are the packages that could not be compiled; they have failed too.
    """

    outcomes: Mapping[tuple[str, str], str]
    output: Mapping[tuple[str, str], str]
    unbuilt: frozenset[str] = frozenset()

    @property
    def passed(self) -> int:
        return sum(outcome == "pass" for (_, test), outcome in self.outcomes.items() if test)


def tested(output: bytes) -> Tested:
    """Read the events of `go test -json`; lines that are none are left out."""
    outcomes: dict[tuple[str, str], str] = {}
    told: dict[tuple[str, str], list[str]] = {}
    unbuilt: set[str] = set()
    for line in output.decode("utf-8", "replace").splitlines():
        try:
            event = json.loads(line) if line.startswith("{") else {}
        except ValueError:
            event = {}
        key = (str(event.get("Package") or event.get("ImportPath") or "").split(" ")[0], str(event.get("Test", "")))
        match event.get("Action"):
            case "pass" | "fail" | "skip" as action:
                outcomes[key] = action
            case "build-fail":
                outcomes[key] = "fail"
                unbuilt.add(key[0])
            case "output" | "build-output":
                told.setdefault(key, []).append(str(event.get("Output", "")))
    return Tested(outcomes, {key: "".join(lines) for key, lines in told.items()}, frozenset(unbuilt))


def failures(module: str, after: Tested, before: Tested | None, config: str) -> list[Fault]:
    """Return the tests that fail now and did not before, each at the place its output names."""
    failed = {key for key, outcome in after.outcomes.items() if outcome == "fail"}
    known = {key for key, outcome in before.outcomes.items() if outcome == "fail"} if before is not None else set()
    out = []
    for package, test in sorted(failed - known):
        inner = any(
            other != test and other.startswith(f"{test}/" if test else "") for name, other in failed if name == package
        )
        if inner:  # its part tells
            continue
        folder = package.removeprefix(module).lstrip("/")
        said = after.output.get((package, test), "")
        if not test and (package, "") in known:
            continue
        place = _TEST_PLACE.search(said) or None
        built = _PLACE.search(said)
        where, line = folder, None
        if built is not None and not built[1].startswith(("../", "/")) and "/" in built[1]:
            where, line, message = posixpath.normpath(built[1]), int(built[2]), built[4]
        elif place is not None:
            where, line, message = f"{folder}/{place[1]}".lstrip("/"), int(place[2]), place[3]
        else:
            message = _gist(said)
        told = f"{test} fails: {message}" if test else f"the tests fail: {message}"
        out.append(Fault(where, line, None, told, "test", test, (config,)))
    return out


def _bare(folder: str) -> str:
    return "" if folder == "." else folder.removeprefix("./")


def _gist(said: str) -> str:
    """Return the line of a test's output that says most: a race, a panic, else the last one."""
    lines = [
        line.strip() for line in said.splitlines() if line.strip() and not line.startswith(("=== ", "--- ", "FAIL"))
    ]
    telling = (line for line in lines if line.startswith(("WARNING: DATA RACE", "panic:", "fatal error:")))
    return next(telling, lines[-1] if lines else "no output")


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a text in which they follow each other."""
    decoder = json.JSONDecoder()
    at = text.find("{")
    while at >= 0:
        value, end = decoder.raw_decode(text, at)
        yield value
        at = text.find("{", end)
