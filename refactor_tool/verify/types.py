"""Level *types*: what is asked of the Go program in `verify_go`, and what its answer says of each stage.

The program gets every tree and every build configuration in one request and compares neighbours itself, so that
unchanged packages are checked once. Packages outside the module are unknown to it and never the cause of an error.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from refactor_tool.model import EnvironmentFailure, Snapshot
from refactor_tool.record import replace
from refactor_tool.verified import BUILD_CONFIGS, BuildConfig, Checked, Fault, Gap, Stage
from refactor_tool.verify.origin import trace
from refactor_tool.verify.stages import unread

SCHEMA = "refactor-tool-types/1"


def request(
    module: str,
    stages: Sequence[Stage],
    goroot: str,
    *,
    configs: Sequence[BuildConfig] = BUILD_CONFIGS,
    timeout_ms: int = 60_000,
) -> bytes:
    """Return the request about all stages as JSON."""
    trees = _trees(stages)
    texts: dict[str, str] = {}
    others: dict[str, str] = {}
    for tree in trees.values():
        for file in tree.files.values():
            if file.oid not in texts and file.oid not in others:
                try:
                    texts[file.oid] = file.data.decode()
                except UnicodeDecodeError:
                    others[file.oid] = base64.b64encode(file.data).decode()
    asked = {
        "module": module,
        "goroot": goroot,
        "configs": [
            {"name": one.name, "goos": one.goos, "goarch": one.goarch, "tags": list(one.tags)} for one in configs
        ],
        "trees": [
            {"name": name, "files": {_shown(path): file.oid for path, file in tree.files.items()}}
            for name, tree in trees.items()
        ],
        "blobs": texts,
        "blobs_base64": others,
        "limits": {"timeout_ms": timeout_ms},
    }
    return json.dumps(asked, ensure_ascii=False).encode()


def read(
    answer: bytes, module: str, stages: Sequence[Stage], configs: Sequence[BuildConfig] = BUILD_CONFIGS
) -> tuple[Checked, ...]:
    """Return what the answer says of each stage, faults traced to who made them.

    Raises `EnvironmentFailure` for an answer that is not one.
    """
    try:
        told = json.loads(answer)
        is_answer = told["schema"] == SCHEMA
    except (ValueError, KeyError, TypeError):
        is_answer = False
    if not is_answer:
        raise EnvironmentFailure("the type checker gave no answer that can be read", "please report it")
    names = list(_trees(stages))
    notes = {note["name"]: note["not_verified"] for note in told["trees"]}
    out = []
    for at, stage in enumerate(stages):
        name = names[at + 1] if stage.before is not None else names[at]
        runs = [run for run in told["runs"] if run["tree"] == name]
        pairs = [pair for pair in told["pairs"] if pair["after"] == name]
        found = [(pair["config"], pair["new"]) for pair in pairs] or [(run["config"], run["errors"]) for run in runs]
        faults = tuple(replace(fault, origin=trace(stage, fault)) for fault in _faults(found))
        gaps = (*unread(stage), *_gaps(module, stage, runs, pairs), *_unseen(stage, notes[name]), *_unknown(told))
        out.append(Checked("types", tuple(one.name for one in configs), faults, gaps, _note(runs)))
    return tuple(out)


def package_of(module: str, path: str) -> str:
    """Return the import path of a file's folder."""
    folder = path.rpartition("/")[0]
    return f"{module}/{folder}" if folder else module


def _trees(stages: Sequence[Stage]) -> dict[str, Snapshot]:
    """Return every tree by a name of its own, in order; neighbours are compared."""
    trees = {} if stages[0].before is None else {"base": stages[0].before}
    return trees | {f"{at} {stage.id}": stage.after for at, stage in enumerate(stages, 1)}


def _shown(path: str) -> str:
    """Return a path that JSON can hold; what is no UTF-8 in it is replaced."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _faults(found: Iterable[tuple[str, Sequence[Mapping[str, Any]]]]) -> list[Fault]:
    """Merge what several configurations, or a package and its tests, say of one place."""
    merged: dict[tuple[str, int, int, str, str], Fault] = {}
    for config, problems in found:
        for each in problems:
            key = (each["path"], each["line"], each["column"], each["code"], each["message"])
            known = merged.get(key) or Fault(each["path"], key[1], key[2], each["message"], each["code"], each["decl"])
            if config not in known.configs:
                known = replace(known, configs=(*known.configs, config))
            merged[key] = known
    return [merged[key] for key in sorted(merged)]


def _gaps(
    module: str, stage: Stage, runs: Sequence[Mapping[str, Any]], pairs: Sequence[Mapping[str, Any]]
) -> list[Gap]:
    """Return packages that were not checked; one that was not before either, and is not touched, blocks nothing."""
    changed = {package_of(module, change.path) for change in stage.changes}
    newly = {(pair["config"], each["package"]) for pair in pairs for each in pair["newly_not_verified"]}
    merged: dict[tuple[str, str], tuple[tuple[str, ...], bool]] = {}
    for run in runs:
        for each in run["not_verified"]:
            package = each["package"].partition(" ")[0].removesuffix("_test")
            touched = stage.before is None or package in changed
            known, blocks = merged.get((each["package"], each["reason"]), ((), False))
            blocks = blocks or touched or (run["config"], each["package"]) in newly
            merged[each["package"], each["reason"]] = ((*known, run["config"]), blocks)
    return [Gap(what, why, configs, blocks) for (what, why), (configs, blocks) in sorted(merged.items())]


def _unseen(stage: Stage, notes: Iterable[Mapping[str, Any]]) -> list[Gap]:
    """Return files that no configuration looks at; they matter where the stage changes them."""
    changed = {change.path for change in stage.changes if change.after is not None}
    out = []
    for note in notes:
        path = note.get("path", "")
        touched = any(name == path or name.startswith(f"{path}/") for name in changed)
        out.append(Gap(path or note["package"], note["reason"], (), touched))
    return out


def _unknown(told: Mapping[str, Any]) -> list[Gap]:
    gaps = [] if told["std"] == "source" else [Gap("the standard library", told["std"])]
    return [*gaps, Gap("the rest", told["stopped"])] if told["stopped"] else gaps


def _note(runs: Sequence[Mapping[str, Any]]) -> str:
    return f"{max((run['packages'] for run in runs), default=0)} packages"
