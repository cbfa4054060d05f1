"""Read a snapshot from a work tree, a plain folder or a git ref.

What belongs to it: Go source and `go.mod` of the module the user stands in, tests and all build tags included. That is
the nearest folder with a `go.mod`, from PATH upwards to the top of the repository; where there is none, the whole
repository, so that `scan pkg/util` still sees who calls it. A folder that git ignores is read as a plain folder.
What is seen and left out (links, submodules, nested repositories, `vendor`) is in `Snapshot.skipped` with its reason.
A file that a sparse checkout hides is read from the index: it is part of the tree all the same.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Literal

from refactor_tool.model import (
    EnvironmentFailure,
    File,
    LazyFiles,
    NothingScanned,
    Skipped,
    Snapshot,
    ToolError,
    Unparsable,
)
from refactor_tool.record import replace
from refactor_tool.world.disk import Disk, Listed, list_folder, list_worktree
from refactor_tool.world.git import Git
from refactor_tool.world.objects import FOLDER, LINK, SUBMODULE, Commit, Entry, Objects, is_source
from refactor_tool.world.place import Place, locate
from refactor_tool.world.presearch import MANY, Search, search_folder, search_tracked, search_untracked


def read_tree(path: Path | None = None) -> Snapshot:
    """Read the files as they lie in the work tree or folder at `path`; in a bare repository the tree of its HEAD.

    `commit` is the one the work tree stands on, uncommitted edits notwithstanding. Raises UsageError for a missing
    path, NothingScanned where no Go file is, Unparsable for a file that may not be read, EnvironmentFailure where git
    cannot answer.
    """
    place = locate(path)
    if place.kind == "bare":
        return read_ref(path, "HEAD")
    if place.kind == "worktree":
        git = Git.at(place)
        listing = list_worktree(git)
        prefix = tracked_prefix(listing, place)
        if prefix is not None:
            return _work_tree(git, listing, place, prefix)
    folder = place.root / place.below
    found = {entry.path: Listed(entry) for entry in list_folder(folder)}
    files, skipped, _ = _from_disk(Disk(folder), found, partial(search_folder, folder))
    return _snapshot(place, files, skipped, "tree", ".", None)


def read_ref(path: Path | None, ref: str) -> Snapshot:
    """Read the tree of `ref` from the object database; nothing in the repository changes.

    Raises EnvironmentFailure for an unknown ref or missing objects, NothingScanned where no Go file is.
    """
    (snapshot,) = read_many(path, (ref,))
    return snapshot


def read_trees(path: Path | None, refs: Sequence[str]) -> Iterator[Snapshot]:
    """Yield the tree of each ref, or without one the work tree at `path`; raises as `read_tree` and `read_ref` do."""
    if refs:
        yield from read_many(path, refs)
    else:
        yield read_tree(path)


def read_many(path: Path | None, refs: Iterable[str]) -> Iterator[Snapshot]:
    """Yield the tree of each ref, in order; raises as `read_ref` does at the first that cannot be read."""
    for _, result in read_each(path, refs):
        if isinstance(result, ToolError):
            raise result
        yield result


def read_each(path: Path | None, refs: Iterable[str]) -> Iterator[tuple[str, Snapshot | ToolError]]:
    """Yield each ref with its tree, or with why it cannot be read, which does not stop the others.

    One process for all. A file that a snapshot shares with the one before is the same object; no more than these two
    are held, so related refs are best asked for in a row.
    """
    place = locate(path)
    known: dict[tuple[str, str], File] = {}
    with Objects(Git.at(place)) as objects:
        for ref in refs:
            try:
                snapshot = _ref(objects, place, ref, known)
            except ToolError as error:
                yield ref, error
                continue
            known = {(file.oid, file.mode): file for file in snapshot.files.values()}
            yield ref, snapshot


def tracked_prefix(listing: Sequence[Listed], place: Place) -> str | None:
    """Return what stands before a snapshot's paths in the work tree: "" or a folder with a slash.

    None where git ignores the folder the user stands in.
    """
    if place.below and not any(listed.entry.path.startswith(f"{place.below}/") for listed in listing):
        return None
    return _module_prefix((listed.entry.path for listed in listing), place.below)


def list_commit(objects: Objects, commit: Commit, place: Place) -> tuple[str, dict[str, Entry]]:
    """Return the same prefix for the tree of a commit, and its entries by the path after it."""
    entries = list(objects.entries(commit.tree))
    prefix = _module_prefix((entry.path for entry in entries), place.below)
    return prefix, {entry.path[len(prefix) :]: entry for entry in entries if entry.path.startswith(prefix)}


def _module_prefix(paths: Iterable[str], below: str) -> str:
    folder = below
    modules = {path[: -len("go.mod")] for path in paths if path == "go.mod" or path.endswith("/go.mod")}
    while folder and f"{folder}/" not in modules:
        folder = folder.rpartition("/")[0]
    return f"{folder}/" if folder else ""


# --- from the object database -------------------------------------------------------------------------


def _ref(objects: Objects, place: Place, ref: str, known: Mapping[tuple[str, str], File]) -> Snapshot:
    commit = objects.commit(ref)
    prefix, below = list_commit(objects, commit, place)
    return replace(from_objects(objects, place, below, known, "ref", ref, commit), prefix=prefix)


def from_objects(
    objects: Objects,
    place: Place,
    below: Mapping[str, Entry],
    known: Mapping[tuple[str, str], File],
    source: Literal["ref", "tree"],
    label: str,
    commit: Commit | None,
) -> Snapshot:
    """Return the snapshot of entries of a tree or of the index, by their paths in it.

    Files that `known` has, by id and mode, are not read again.
    """
    unknown = (entry.oid for entry in below.values() if entry.is_file and (entry.oid, entry.mode) not in known)
    links = (entry.oid for entry in below.values() if entry.mode == LINK)
    data = dict(objects.blobs(dict.fromkeys((*unknown, *links))))
    files, skipped = {}, []
    for path, entry in below.items():
        if entry.is_file:
            files[path] = known.get((entry.oid, entry.mode)) or File(data[entry.oid], entry.mode, entry.oid)
        else:
            target = data[entry.oid].decode("utf-8", "surrogateescape") if entry.mode == LINK else None
            skipped.append(Skipped(path, _reason(path, entry.mode, target)))
    return _snapshot(place, files, skipped, source, label, commit)


# --- from the disk ------------------------------------------------------------------------------------


def _work_tree(git: Git, listing: Sequence[Listed], place: Place, prefix: str) -> Snapshot:
    found = relevant(listing, prefix)
    untracked = [path for path, listed in found.items() if not listed.entry.oid and path.endswith(".go")]
    unseen = {path for path, listed in found.items() if listed.sparse or listed.assumed}
    searches: list[Search] = [search_tracked]
    if len(untracked) > MANY:
        searches.append(search_untracked)
    else:
        unseen.update(untracked)
    search = partial(_below, git, prefix, frozenset(unseen), searches)
    files, skipped, hidden = _from_disk(Disk(git.root / prefix), found, search)
    with Objects(git) as objects:
        data = dict(objects.blobs(dict.fromkeys(entry.oid for entry in hidden.values())))
        given = {path: File(data[entry.oid], entry.mode, entry.oid) for path, entry in hidden.items()}
        commit = None
        with suppress(EnvironmentFailure):  # nothing is committed yet
            commit = objects.commit("HEAD")
    together = files.with_files(given) if isinstance(files, LazyFiles) else {**files, **given}
    return replace(_snapshot(place, together, skipped, "tree", prefix.rstrip("/") or ".", commit), prefix=prefix)


def _below(
    git: Git, prefix: str, unseen: frozenset[str], searches: Sequence[Search], words: tuple[bytes, ...]
) -> frozenset[str] | None:
    """Return which files below `prefix` may hold any of the words, by their paths after it: found, or `unseen`."""
    found = set(unseen)
    for search in searches:
        answer = search(git, words)
        if answer is None:
            return None
        found.update(path[len(prefix) :] for path in answer if path.startswith(prefix))
    return frozenset(found)


def relevant(listing: Iterable[Listed], prefix: str) -> dict[str, Listed]:
    """Return what matters below `prefix`, by the path relative to it; all of a `vendor` folder is one entry."""
    found = {}
    for listed in listing:
        if not listed.entry.path.startswith(prefix):
            continue
        path = listed.entry.path[len(prefix) :]
        vendored = f"/{path}".find("/vendor/")
        if vendored >= 0:
            folder = path[: vendored + len("vendor")]
            found[folder] = Listed(Entry(folder, FOLDER, ""))
        elif is_source(path) or listed.entry.mode in (LINK, SUBMODULE):
            found[path] = listed
    return found


def _from_disk(
    disk: Disk, found: Mapping[str, Listed], search: Callable[[tuple[bytes, ...]], frozenset[str] | None]
) -> tuple[Mapping[str, File], list[Skipped], dict[str, Entry]]:
    """Return the files that are there, what is left out, and the entries that a sparse checkout hides.

    Where they are many they are not read yet.
    """
    is_large = sum(path.endswith(".go") for path in found) > MANY
    files, modes, skipped, hidden = {}, {}, [], {}
    for path, listed in found.items():
        mode: str | None = listed.entry.mode
        if listed.entry.is_file:
            read = None if is_large else disk.read(path)
            mode = disk.mode(path) if is_large else read[1] if read is not None else None
        if mode is None:
            if listed.sparse:
                hidden[path] = listed.entry
        elif mode in ("100644", "100755"):
            modes[path] = listed.entry.mode if listed.entry.oid else mode
            if read is not None:
                files[path] = File(read[0], modes[path])
        else:
            skipped.append(Skipped(path, _reason(path, mode, disk.link(path))))
    if is_large:
        return LazyFiles(modes, partial(_read, disk, modes), search), skipped, hidden
    return files, skipped, hidden


def _read(disk: Disk, modes: Mapping[str, str], path: str) -> File:
    found = disk.read(path)
    if found is None or found[1] not in ("100644", "100755"):
        raise Unparsable("it was a file a moment ago", "leave the tree alone while it is read", path=path)
    return File(found[0], modes[path])


# --- both ---------------------------------------------------------------------------------------------


def _snapshot(
    place: Place,
    files: Mapping[str, File],
    skipped: Iterable[Skipped],
    source: Literal["ref", "tree"],
    label: str,
    commit: Commit | None,
) -> Snapshot:
    if not any(path.endswith(".go") for path in files):
        where = f"{place.root / place.below}{f' at {label}' if source == 'ref' else ''}"
        raise NothingScanned(f"{where}: no Go file is there", "give a checkout of k3s, or a ref of one with --ref")
    ordered = files if isinstance(files, LazyFiles) else {path: files[path] for path in sorted(files)}
    aside = tuple(sorted(skipped, key=lambda each: each.path))
    if commit is None:
        return Snapshot(ordered, source, label, skipped=aside)
    return Snapshot(ordered, source, label, commit.oid, commit.committed_at, aside)


def _reason(path: str, mode: str, target: str | None) -> str:
    match mode:
        case "120000":
            outside = target is not None and posixpath.join(posixpath.dirname(path), target)
            if outside and (outside.startswith("/") or posixpath.normpath(outside).split("/")[0] == ".."):
                return "a symbolic link that leaves the tree"
            return "a symbolic link"
        case "160000":
            return "a repository of its own"
        case "40000":
            return "vendored copies of other modules"
        case "special":
            return "a device, a pipe or a socket"
        case _:
            return "a name that no checkout may write"
