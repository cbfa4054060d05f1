"""Turn argv into calls and an exit code. The only importer of typer.

Everything deep is imported by the command that needs it: `--help` must not pay for a parser.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from refactor_tool import __version__
from refactor_tool.model import ExitCode, ToolError, UsageError, gravest

if TYPE_CHECKING:
    from refactor_tool.codemod import Codemod
    from refactor_tool.model import Plan, Snapshot
    from refactor_tool.report.text import Paint

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def main() -> NoReturn:
    """Run the command line and exit with a code of the table in the README."""
    with _boundary():
        app()
    raise SystemExit(ExitCode.CLEAN)


class Format(StrEnum):
    """How a result is written."""

    text = "text"
    json = "json"
    jsonl = "jsonl"


_PathArg = Annotated[Path, typer.Argument(metavar="PATH", help="A k3s work tree, a bare repository or a folder.")]
#: Without PATH it is the current folder, or what GIT_DIR and GIT_WORK_TREE name.
_DefaultPathArg = Annotated[
    Path | None, typer.Argument(metavar="[PATH]", help="A k3s work tree, a bare repository or a folder.")
]
_ConfigOpt = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Read this instead of the tree's .refactor-tool.toml.")
]
_RefOpt = Annotated[
    list[str] | None,
    typer.Option("--ref", metavar="REF", help="Read this ref from the object database; may be given again."),
]
_OneRefOpt = Annotated[str | None, typer.Option("--ref", metavar="REF", help="Read this ref from the object database.")]
_FormatOpt = Annotated[Format, typer.Option("--format", help="How to write the result.")]
_OnlyOpt = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="ID", help="Run just this codemod and what it needs; may be given again."),
]
_SkipOpt = Annotated[
    list[str] | None,
    typer.Option("--skip", metavar="ID", help="Leave this codemod out, and what needs it; may be given again."),
]
_KeepOpt = Annotated[
    bool, typer.Option("--keep-going", help="Emit what is sound although something is missing, and mark what is.")
]
_SignoffOpt = Annotated[
    str | None, typer.Option("--signoff", metavar="'NAME <MAIL>'", help="Add this Signed-off-by line to every patch.")
]
_AuthorOpt = Annotated[str | None, typer.Option("--author", metavar="'NAME <MAIL>'", help="The author of the patches.")]


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=lambda value: _print_version(value))
    ] = False,
) -> None:
    """Move k3s readiness onto the Executor: locate, rewrite, prove, gate (k3s issue #11896)."""


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"refactor-tool {__version__}")
        raise typer.Exit


@app.command(epilog="Example: refactor-tool scan ~/src/k3s --ref release-1.32")
def scan(
    path: _DefaultPathArg = None,
    ref: _RefOpt = None,
    output: _FormatOpt = Format.text,
) -> None:
    """Say where every readiness site is and what would become of it."""
    from refactor_tool import engine
    from refactor_tool.codemods import SUITE
    from refactor_tool.report.text import render_scan
    from refactor_tool.world.console import Progress

    with Progress() as progress:
        plans = [engine.scan(snapshot, SUITE, progress=progress.step) for snapshot in _snapshots(path, ref or [])]
    _write(plans, output, lambda plan: render_scan(plan, _paint()))


@app.command(
    epilog="Example: refactor-tool plan ~/src/k3s --out series && git -C ~/src/k3s am $PWD/series/000[1-9]-*.patch"
)
def plan(
    path: _DefaultPathArg = None,
    ref: _OneRefOpt = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write the series and plan.json into this folder.")
    ] = None,
    stdout: Annotated[bool, typer.Option("--stdout", help="Print the series as one mailbox.")] = False,
    output: _FormatOpt = Format.text,
    only: _OnlyOpt = None,
    skip: _SkipOpt = None,
    keep_going: _KeepOpt = False,
    signoff: _SignoffOpt = None,
    author: _AuthorOpt = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what is in DIR.")] = False,
) -> None:
    """Make the series, one proved patch a step, ready for git am."""
    from refactor_tool.codemods import TITLE
    from refactor_tool.report.document import exit_code
    from refactor_tool.report.page import page
    from refactor_tool.report.series import mailbox, series
    from refactor_tool.report.text import render_plan
    from refactor_tool.world.out import write_dir
    from refactor_tool.world.text import shell_line

    result = _plan(path, ref, only, skip, keep_going=keep_going)
    patches = series(result, signoff=signoff, author=author, version=__version__, subject=TITLE) if result.steps else ()
    if stdout:
        sys.stdout.buffer.write(mailbox(patches))
        raise typer.Exit(exit_code(result))
    following = ""
    if out is not None:
        files = {patch.name: patch.data for patch in patches}
        write_dir(out, {**files, "plan.json": _json(result), "report.html": page(result, TITLE)}, force=force)
        where = shell_line("-C", str(path)) + " " if path is not None and ref is None else ""
        below = result.base.label if result.base.source == "tree" else "."
        into = shell_line(f"--directory={below}") + " " if below != "." else ""
        following = f"git {where}am {into}{shell_line(str(out.resolve()))}/000[1-9]-*.patch" if patches else ""
    elif patches:
        read = [*([str(path)] if path is not None else []), *(["--ref", ref] if ref is not None else [])]
        following = shell_line("refactor-tool", "plan", *read, "--out", "series")
    _write([result], output, lambda one: render_plan(one, _paint(), next_command=following))


@app.command(epilog="Example: refactor-tool apply ~/src/k3s --branch executor-ready")
def apply(
    path: _DefaultPathArg = None,
    branch: Annotated[str, typer.Option("--branch", metavar="NAME", help="The branch to make.")] = "executor-ready",
    worktree: Annotated[
        bool, typer.Option("--worktree", help="Change the work tree instead of making commits.")
    ] = False,
    only: _OnlyOpt = None,
    skip: _SkipOpt = None,
    keep_going: _KeepOpt = False,
    signoff: _SignoffOpt = None,
    author: _AuthorOpt = None,
) -> None:
    """Put the series into the repository, as one transaction that undo takes back."""
    from refactor_tool.report.series import DEFAULT_AUTHOR, message
    from refactor_tool.report.text import render_plan
    from refactor_tool.world import apply as world
    from refactor_tool.world.text import shell_line

    result = _plan(path, None if worktree else "HEAD", only, skip, keep_going=keep_going)
    if not result.steps:
        typer.echo(render_plan(result, _paint(), next_command=""), nl=False)
        raise typer.Exit(_code([result]))
    here = ["-C", str(path)] if path is not None else []
    if worktree:
        applied = world.apply_worktree(path, result)
        following = shell_line("git", *here, "diff")
    else:
        messages = [message(step, signoff=signoff) for step in result.steps]
        applied = world.apply_branch(path, result, branch, messages=messages, author=author or DEFAULT_AUTHOR)
        following = shell_line("git", *here, "log", "--stat", branch)
    typer.echo(render_plan(result, _paint(), next_command=following), nl=False)
    typer.echo(applied.summary)


@app.command(epilog="Example: refactor-tool undo ~/src/k3s")
def undo(path: _DefaultPathArg = None) -> None:
    """Take back the last apply, as one."""
    from refactor_tool.world.apply import undo as world_undo

    typer.echo(world_undo(path))


@app.command(epilog="Example: refactor-tool check ~/src/k3s --base origin/main --format text --format sarif=out.sarif")
def check(
    path: _DefaultPathArg = None,
    ref: _OneRefOpt = None,
    staged: Annotated[bool, typer.Option("--staged", help="Judge what the next commit would hold.")] = False,
    base: Annotated[
        str | None,
        typer.Option("--base", metavar="REF", help="Only what is new since REF counts; 'REF...' is where they parted."),
    ] = None,
    fail_on: Annotated[
        str | None, typer.Option("--fail-on", metavar="LEVEL", help="error (default), warning, info or never.")
    ] = None,
    output: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            metavar="NAME[=FILE]",
            help="Write the result like this; may be given again. text, json, jsonl, sarif, junit, github,"
            " github-summary, gitlab, checkstyle, rdjson, markdown.",
        ),
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option("--baseline", metavar="FILE", help="Accept the findings in this file.")
    ] = None,
    write_baseline: Annotated[
        bool, typer.Option("--write-baseline", help="Write that file anew: accept what is there now.")
    ] = False,
    config: _ConfigOpt = None,
    today: Annotated[
        str | None, typer.Option("--today", metavar="YYYY-MM-DD", help="The day that suppressions expire by.")
    ] = None,
) -> None:
    """Judge a tree: one decision, one line, one exit code."""
    from refactor_tool.commands.check import Request
    from refactor_tool.commands.check import check as run

    request = Request(
        path,
        ref=ref,
        staged=staged,
        base=base,
        fail_on=fail_on,
        formats=tuple(output or ()),
        baseline=str(baseline) if baseline is not None else None,
        write_baseline=write_baseline,
        config=config,
        today=today,
    )
    raise typer.Exit(run(request))


@app.command(epilog="Example: refactor-tool doctor ~/src/k3s")
def doctor(path: _DefaultPathArg = None, config: _ConfigOpt = None) -> None:
    """Show which configuration is in force and why, and what this machine lacks."""
    from refactor_tool.commands.doctor import doctor as examine

    text, code = examine(path, config, _paint())
    typer.echo(text, nl=False)
    raise typer.Exit(code)


class VerifyLevel(StrEnum):
    """How far a proof goes."""

    syntax = "syntax"
    types = "types"
    build = "build"
    behaviour = "behaviour"


class VerifyFormat(StrEnum):
    """How a proof is written."""

    text = "text"
    json = "json"


class TableFormat(StrEnum):
    """How a table of branches is written."""

    text = "text"
    json = "json"
    html = "html"


class CompareFormat(StrEnum):
    """How a comparison is written."""

    text = "text"
    json = "json"


@app.command(epilog="Example: refactor-tool matrix ~/src/k3s --ref main --ref 'release-1.*' --out campaign")
def matrix(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH...", help="Repositories; the current folder where none is named."),
    ] = None,
    ref: Annotated[
        list[str] | None,
        typer.Option("--ref", metavar="REF", help="A ref or a glob; may be given again. All branches."),
    ] = None,
    output: Annotated[TableFormat, typer.Option("--format", help="How to print the table.")] = TableFormat.text,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Make each branch's series, in a folder named after it.")
    ] = None,
    keep_going: _KeepOpt = False,
    force: Annotated[bool, typer.Option("--force", help="Replace what is in DIR.")] = False,
    jobs: Annotated[int | None, typer.Option("--jobs", metavar="N", help="Processes to use; all processors.")] = None,
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", metavar="ADDRESS", help="Run on this Dask cluster (extra: cluster).")
    ] = None,
) -> None:
    """Show branches × sites of any number of repositories, and make the series of each branch."""
    from refactor_tool.commands.matrix import Request, run

    repositories = tuple(paths or [Path()])
    request = Request(repositories, tuple(ref or ()), output.value, out, force, keep_going, jobs, scheduler)
    raise typer.Exit(run(request))


@app.command(epilog="Example: refactor-tool compare ~/src/k3s v1.32.2..release-1.32")
def compare(
    path: _PathArg,
    revisions: Annotated[str, typer.Argument(metavar="REV..REV", help="Before and after somebody else's change.")],
    output: Annotated[CompareFormat, typer.Option("--format", help="How to write the result.")] = CompareFormat.text,
) -> None:
    """Hold our series against a real range of commits: what is the same, what only one side has, which hazards."""
    from refactor_tool.commands.compare import run

    raise typer.Exit(run(path, revisions, as_json=output is CompareFormat.json))


@app.command(epilog="Example: refactor-tool verify ~/src/k3s --ref release-1.32")
def verify(
    path: _DefaultPathArg = None,
    ref: _OneRefOpt = None,
    base: Annotated[
        str | None, typer.Option("--base", metavar="REF", help="Verify the change from REF to the tree instead.")
    ] = None,
    series: Annotated[
        Path | None,
        typer.Option("--series", metavar="DIR", help="Verify the patches in DIR, on the tree they are for."),
    ] = None,
    as_is: Annotated[bool, typer.Option("--as-is", help="Verify the tree itself: all that is wrong counts.")] = False,
    level: Annotated[
        VerifyLevel | None, typer.Option("--level", help="How far to go; types is the highest that needs no network.")
    ] = None,
    run_tests: Annotated[
        bool, typer.Option("--run-tests", help="Run the tests of touched packages: code of the examined tree.")
    ] = False,
    network: Annotated[
        bool, typer.Option("--network", help="Let Go fetch missing modules from this machine's GOPROXY.")
    ] = False,
    output: Annotated[VerifyFormat, typer.Option("--format", help="How to write the result.")] = VerifyFormat.text,
) -> None:
    """Prove the series with the Go toolchain: each step, in every build configuration."""
    from refactor_tool.commands.verify import Request, run

    request = Request(
        path,
        ref=ref,
        base=base,
        series=series,
        as_is=as_is,
        level=level.value if level is not None else None,
        run_tests=run_tests,
        network=network,
        format=output.value,
    )
    raise typer.Exit(run(request))


# --- helpers ----------------------------------------------------------------------------------------


def _plan(
    path: Path | None, ref: str | None, only: Sequence[str] | None, skip: Sequence[str] | None, *, keep_going: bool
) -> Plan:
    from refactor_tool import engine
    from refactor_tool.codemod import check_suite
    from refactor_tool.codemods import SUITE
    from refactor_tool.world.console import Progress
    from refactor_tool.world.templates import load_templates

    left_out = _left_out(SUITE, only or (), skip or ())
    sources = load_templates()
    check_suite(SUITE, sources)
    with Progress() as progress:
        (snapshot,) = _snapshots(path, [ref] if ref is not None else [])
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


def _snapshots(path: Path | None, refs: Sequence[str]) -> Iterator[Snapshot]:
    from refactor_tool.world.tree import read_many, read_tree

    if refs:
        yield from read_many(path, refs)
    else:
        yield read_tree(path)


def _write(plans: Sequence[Plan], output: Format, render: Callable[[Plan], str]) -> NoReturn:
    """Print every plan in the wanted form and exit with the gravest of their codes."""
    if output is Format.text:
        typer.echo("\n".join(render(plan) for plan in plans), nl=False)
    elif output is Format.jsonl:
        import json

        from refactor_tool.report.document import document

        for plan in plans:
            typer.echo(json.dumps(document(plan)))
    else:
        documents = [_json(plan).decode().rstrip("\n") for plan in plans]
        typer.echo(documents[0] if len(documents) == 1 else f"[{','.join(documents)}]")
    raise typer.Exit(_code(plans))


def _code(plans: Sequence[Plan]) -> ExitCode:
    from refactor_tool.report.document import exit_code

    return gravest(exit_code(plan) for plan in plans)


def _json(plan: Plan) -> bytes:
    import json

    from refactor_tool.report.document import document

    return (json.dumps(document(plan), indent=1) + "\n").encode()


def _paint() -> Paint:
    from refactor_tool.report.text import Paint
    from refactor_tool.world.console import colour_allowed

    return Paint(colour=colour_allowed(sys.stdout))


@contextmanager
def _boundary() -> Iterator[None]:
    """Turn every way to end into one clear line and the right exit code."""
    try:
        yield
    except ToolError as error:
        _complain(error.message, error.hint)
        raise SystemExit(error.code) from None
    except KeyboardInterrupt:
        _complain("interrupted; nothing was written")
        raise SystemExit(ExitCode.INTERRUPTED) from None
    except BrokenPipeError:
        sys.stderr.close()  # the reader is gone; the interpreter must not complain about it
        raise SystemExit(ExitCode.CLEAN) from None
    except Exception:
        import traceback

        traceback.print_exc()
        _complain(f"internal error in version {__version__}", "please report it with the text above")
        raise SystemExit(ExitCode.INTERNAL) from None


def _complain(message: str, hint: str = "") -> None:
    from refactor_tool.report.text import printable

    print(f"refactor-tool: {printable(message)}", file=sys.stderr)
    if hint:
        print(f"  {printable(hint)}", file=sys.stderr)
