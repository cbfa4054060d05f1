"""Turn argv into calls and an exit code. The only importer of typer.

Everything deep is imported by the command that needs it: `--help` must not pay for a parser. Plain calls of the hot
commands do not come here (`plain`).
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from refactor_tool import __version__
from refactor_tool.model import UsageError


class _Commands(TyperGroup):
    """The commands, none of which takes an empty word: a variable that is not set is no base and no folder."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        for before, word in zip(["", *args], args, strict=False):
            name, equals, value = word.partition("=")
            if not word or (name.startswith("--") and equals and not value):
                what = name or (before if before.startswith("-") else "an argument")
                raise UsageError(f"{what}: the value is empty", "give one, or leave it out")
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_Commands,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


class Format(StrEnum):
    """How a result is written."""

    text = "text"
    json = "json"
    jsonl = "jsonl"


class TextOrJson(StrEnum):
    """How a proof or a comparison is written."""

    text = "text"
    json = "json"


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
_TextOrJsonOpt = Annotated[TextOrJson, typer.Option("--format", help="How to write the result.")]
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
_ForceOpt = Annotated[
    bool, typer.Option("--force", help="Write into DIR although it holds something else, or patches edited since.")
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
    from refactor_tool.commands.scan import Request, run

    raise typer.Exit(run(Request(path, refs=tuple(ref or ()), format=output.value)))


@app.command(
    epilog="Example: refactor-tool plan ~/src/k3s --out series; git -C ~/src/k3s am $PWD/series/000[1-9]-*.patch"
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
    force: _ForceOpt = False,
) -> None:
    """Make the series, one proved patch a step, ready for git am."""
    from refactor_tool.commands.plan import Request, run

    request = Request(
        path,
        ref=ref,
        out=out,
        stdout=stdout,
        format=output.value,
        only=tuple(only or ()),
        skip=tuple(skip or ()),
        keep_going=keep_going,
        signoff=signoff,
        author=author,
        force=force,
    )
    raise typer.Exit(run(request))


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
    """Put the series into the repository; undo takes it back as one."""
    from refactor_tool.commands.plan import make
    from refactor_tool.commands.printed import paint, write
    from refactor_tool.model import gravest
    from refactor_tool.report.series import DEFAULT_AUTHOR, message
    from refactor_tool.report.text import render_plan
    from refactor_tool.world import apply as world
    from refactor_tool.world.console import done
    from refactor_tool.world.text import shell_line

    asked = str(path or "")
    ref = None if worktree else "HEAD"
    result = make(path, ref, only or (), skip or (), keep_going=keep_going, whole=True)
    if not result.steps:
        raise typer.Exit(write([result], "text", lambda plan: render_plan(plan, paint(), next_command="", asked=asked)))
    here = ["-C", str(path)] if path is not None else []
    if worktree:
        applied = world.apply_worktree(path, result)
        following = shell_line("git", *here, "diff")
    else:
        messages = [message(step, signoff=signoff) for step in result.steps]
        applied = world.apply_branch(path, result, branch, messages=messages, author=author or DEFAULT_AUTHOR)
        following = shell_line("git", *here, "log", "--stat", f"{(result.base.commit or '')[:12]}..{branch}")
    with done(applied.summary):
        typer.echo(render_plan(result, paint(), next_command=following, asked=asked), nl=False)
        typer.echo(applied.summary)
    raise typer.Exit(gravest(problem.code for problem in result.problems))


@app.command(epilog="Example: refactor-tool undo ~/src/k3s")
def undo(path: _DefaultPathArg = None) -> None:
    """Take back the last apply, as one."""
    from refactor_tool.world.apply import undo as world_undo
    from refactor_tool.world.console import done

    told = world_undo(path)
    with done(told):
        typer.echo(told)


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
    rules: Annotated[
        str | None,
        typer.Option(
            "--rules", metavar="WHICH", help="Hazard rules: all, none or ID,ID; all with --base or --baseline."
        ),
    ] = None,
    verify: Annotated[
        str | None, typer.Option("--verify", metavar="LEVEL", help="Prove the change with Go too: syntax or types.")
    ] = None,
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
        rules=rules,
        verify=verify,
        today=today,
    )
    raise typer.Exit(run(request))


@app.command(epilog="Example: refactor-tool doctor ~/src/k3s")
def doctor(path: _DefaultPathArg = None, config: _ConfigOpt = None) -> None:
    """Show what is configured and why, and what this machine lacks."""
    from refactor_tool.commands.doctor import doctor as examine
    from refactor_tool.commands.printed import paint

    text, code = examine(path, config, paint())
    typer.echo(text, nl=False)
    raise typer.Exit(code)


class VerifyLevel(StrEnum):
    """How far a proof goes."""

    syntax = "syntax"
    types = "types"
    build = "build"
    behaviour = "behaviour"


class TableFormat(StrEnum):
    """How a table of branches is written."""

    text = "text"
    json = "json"
    html = "html"


@app.command(epilog="Example: refactor-tool matrix ~/src/k3s --ref main --ref 'release-1.*' --out campaign")
def matrix(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH...", help="Repositories; the current folder where none is named."),
    ] = None,
    ref: Annotated[
        list[str] | None,
        typer.Option("--ref", metavar="REF", help="A ref or a glob; may be given again. Default: the local branches."),
    ] = None,
    output: Annotated[TableFormat, typer.Option("--format", help="How to print the table.")] = TableFormat.text,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Make each branch's series, in a folder named after it.")
    ] = None,
    keep_going: _KeepOpt = False,
    force: _ForceOpt = False,
    jobs: Annotated[
        int | None, typer.Option("--jobs", metavar="N", help="How many processes. Default: one a processor.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", metavar="ADDRESS", help="Run on this Dask cluster (extra: cluster).")
    ] = None,
) -> None:
    """Show branches × sites, and make the series of each branch."""
    from refactor_tool.commands.matrix import Request, run

    request = Request(tuple(paths or ()), tuple(ref or ()), output.value, out, force, keep_going, jobs, scheduler)
    raise typer.Exit(run(request))


@app.command(epilog="Example: refactor-tool compare ~/src/k3s v1.32.2..release-1.32")
def compare(
    where: Annotated[
        list[str],
        typer.Argument(
            metavar="[PATH] REV..REV",
            help="Before and after somebody else's change; PATH as elsewhere.",
            show_default=False,
        ),
    ],
    output: _TextOrJsonOpt = TextOrJson.text,
) -> None:
    """Hold our series against a real range of commits."""
    from refactor_tool.commands.compare import Request, run

    *paths, revisions = where
    if len(paths) > 1:
        raise typer.BadParameter(f"{len(where)} of them, where at most PATH and REV..REV are wanted")
    raise typer.Exit(run(Request(Path(paths[0]) if paths else None, revisions, output.value)))


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
    output: _TextOrJsonOpt = TextOrJson.text,
) -> None:
    """Prove the series with the Go toolchain, in every build."""
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
