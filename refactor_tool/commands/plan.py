"""Make the series of a tree, one proved patch a step, and write it where it was asked for."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from refactor_tool import __version__, engine
from refactor_tool.codemod import Codemod, check_suite
from refactor_tool.codemods import SUITE, TITLE
from refactor_tool.commands.printed import Format, paint, write
from refactor_tool.model import ExitCode, Plan, UsageError
from refactor_tool.record import record
from refactor_tool.report.document import exit_code
from refactor_tool.report.series import PatchFile, check_series, mailbox, series
from refactor_tool.report.text import render_plan
from refactor_tool.world.console import Progress, done
from refactor_tool.world.templates import load_templates
from refactor_tool.world.text import shell_line
from refactor_tool.world.tree import read_trees


@record
class Request:
    """What the user typed; None is what the user did not say."""

    path: Path | None
    ref: str | None = None
    out: Path | None = None
    stdout: bool = False
    format: Format = "text"
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    keep_going: bool = False
    signoff: str | None = None
    author: str | None = None
    force: bool = False


def run(request: Request) -> ExitCode:
    """Plan, write the folder where one was asked for, print the rest, and return the plan's code."""
    if request.stdout and (request.out is not None or request.format != "text"):
        other = "--out" if request.out is not None else "--format"
        raise UsageError(f"--stdout prints a mailbox and nothing else, so {other} has no meaning", "leave one out")
    result = make(request.path, request.ref, request.only, request.skip, keep_going=request.keep_going)
    said = {"signoff": request.signoff, "author": request.author}
    patches: tuple[PatchFile, ...] = ()
    if request.stdout or request.out is not None:
        patches = series(result, **said, version=__version__, subject=TITLE)
    else:
        check_series(result, **said)
    if request.stdout:
        sys.stdout.buffer.write(mailbox(patches))
        sys.stdout.buffer.flush()
        return exit_code(result)
    following = ""
    if request.out is not None:
        from refactor_tool.report.folder import folder
        from refactor_tool.world.out import write_dir

        write_dir(request.out, folder(result, patches, TITLE), force=request.force)
        where = shell_line("-C", str(request.path)) + " " if request.path is not None and request.ref is None else ""
        below = result.base.prefix.rstrip("/")
        into = shell_line(f"--directory={below}") + " " if below else ""
        patch_files = f"{shell_line(str(request.out.resolve()))}/000[1-9]-*.patch"
        following = f"git {where}am {into}{patch_files}" if patches and result.base.commit else ""
    elif result.steps:
        read = [*([str(request.path)] if request.path is not None else [])]
        following = shell_line("refactor-tool", "plan", *read, *_options(request), "--out", "series")
    asked = str(request.path or "")
    with done(f"the series is in {request.out}" if request.out is not None else ""):
        return write(
            [result], request.format, lambda one: render_plan(one, paint(), next_command=following, asked=asked)
        )


def _options(request: Request) -> list[str]:
    """Return the options that decide what is in the series, as they were given."""
    given = [("--ref", [request.ref]), ("--only", request.only), ("--skip", request.skip)]
    given += [("--signoff", [request.signoff]), ("--author", [request.author])]
    words = [word for name, values in given for value in values if value is not None for word in (name, value)]
    return words + (["--keep-going"] if request.keep_going else [])


def make(
    path: Path | None,
    ref: str | None,
    only: Sequence[str],
    skip: Sequence[str],
    *,
    keep_going: bool,
    whole: bool = False,
) -> Plan:
    """Return the plan for a work tree or a ref; raises as `engine.plan` does, and `UsageError` for an unknown id.

    With `whole` every file is read before, so that whoever writes the plan sees that one changed in the meantime.
    """
    left_out = _left_out(SUITE, only, skip)
    sources = load_templates()
    check_suite(SUITE, sources)
    with Progress() as progress:
        (snapshot,) = read_trees(path, [ref] if ref is not None else [])
        if whole:
            snapshot = snapshot.whole()
        return engine.plan(snapshot, SUITE, sources, skip=left_out, keep_going=keep_going, progress=progress.step)


def _left_out(suite: Sequence[Codemod], only: Sequence[str], skip: Sequence[str]) -> tuple[str, ...]:
    """Return the codemods that --only and --skip leave out; what a wanted one needs stays."""
    known = {codemod.id: codemod for codemod in suite}
    for name in (*only, *skip):
        if name not in known:
            raise UsageError(f"there is no codemod {name!r}", f"the codemods are {', '.join(known)}")
    wanted = set(only or known)
    for codemod in reversed(suite):
        if codemod.id in wanted:
            wanted.update(codemod.requires)
    wanted -= set(skip)
    return tuple(codemod.id for codemod in suite if codemod.id not in wanted)
