"""A plan as the mails `git format-patch --cover-letter --full-index` would write, for `git am` and for reviewers.

The bytes depend on the plan and the arguments alone: no git, clock, locale or machine has a part in them. That
`git am` and `git format-patch` agree is shown by the tests, which run both.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from refactor_tool.edits import Hunk, hunks, quote_path, unified
from refactor_tool.model import (
    CodemodError,
    Cover,
    Edit,
    File,
    FileChange,
    Finding,
    Leave,
    Manual,
    Places,
    Plan,
    Rewrite,
    Step,
)
from refactor_tool.record import record
from refactor_tool.report.document import other_problems, tally, why_pending
from refactor_tool.report.mail import CONTROL, Envelope, Identity, filled

DEFAULT_AUTHOR = "refactor-tool <refactor-tool@localhost>"
_COVER = "0000-cover-letter.patch"


@record
class PatchFile:
    """One mail and the file name format-patch gives it."""

    name: str
    data: bytes


def series(
    plan: Plan, *, signoff: str | None = None, author: str | None = None, version: str, subject: str | None = None
) -> tuple[PatchFile, ...]:
    """Return the cover letter and one patch a step, in order; nothing for a plan without steps.

    `signoff` and `author` are `Name <mail>`; `version` ends each mail; `subject` heads the cover letter, by
    default the titles do. A plan with problems or pending codemods is headed `[PARTIAL]`.

    Raises `UsageError` for a malformed identity, and `CodemodError` for text that `git am` would not give
    back or that would close an issue.
    """
    if not plan.steps:
        return ()
    sender, messages = _said(plan, signoff, author)
    parts = [_Part(step, text, _diffs(step.changes)) for step, text in zip(plan.steps, messages, strict=True)]
    envelope = Envelope(sender, plan.base.committed_at, len(parts), version)
    patches = (_patch(envelope, number, part) for number, part in enumerate(parts, 1))
    return (PatchFile(_COVER, _cover(envelope, plan, parts, subject)), *patches)


def check_series(plan: Plan, *, signoff: str | None = None, author: str | None = None) -> None:
    """Raise what `series` raises of identities and texts; the patches, which take most of its time, are not made."""
    if plan.steps:
        _said(plan, signoff, author)


def _said(plan: Plan, signoff: str | None, author: str | None) -> tuple[Identity, list[str]]:
    """Return the sender and the message of each step, all text of the series checked."""
    sender = Identity.parse(DEFAULT_AUTHOR if author is None else author, "author")
    messages = [message(step, signoff) for step in plan.steps]
    for finding in plan.findings:
        match finding.verdict:
            case Manual(reason, instruction):
                _check_no_closing(f"{reason}\n{instruction}", f"a finding of {finding.id}")
            case Leave(reason):
                _check_no_closing(reason, f"a finding of {finding.id}")
            case Rewrite():
                pass
            case _:
                assert_never(finding.verdict)
    return sender, messages


def mailbox(patches: Iterable[PatchFile]) -> bytes:
    """Return the patches as one mailbox for `git am`; without the cover letter, at which `git am` would stop."""
    return b"".join(patch.data for patch in patches if patch.name != _COVER)


def message(step: Step, signoff: str | None = None) -> str:
    """Return the commit message of a step: just what `git am` of its patch records, with the last LF.

    Raises as `series` does.
    """
    where = f"codemod {step.id}"
    _check_title(step.title, where)
    body = _tidy(step.body)
    _check_body(body, where)
    _check_no_closing(f"{step.title}\n{body}", where)
    if signoff is not None:
        trailer = f"Signed-off-by: {Identity.parse(signoff, 'sign-off')}"
        last = body.rpartition("\n\n")[2].splitlines()
        if trailer not in last:
            only_trailers = bool(last) and all(re.match(r"[A-Za-z0-9-]+: ", line) for line in last)
            body += ("\n" if only_trailers else "\n\n" if body else "") + trailer
    return f"{step.title}\n\n{body}\n" if body else f"{step.title}\n"


# --- what may be said -------------------------------------------------------------------------------

_CLOSING = re.compile(
    r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?)\b:?\s*"
    r"(?:(?:[\w.-]+/[\w.-]+)?#\d|gh-\d|https?://\S+/(?:issues|pull)/\d)",
    re.IGNORECASE,
)
#: Lines that end a commit message, or one mail of a mailbox, for `git am`.
_PATCH_BREAK = re.compile(r"(?:From |---|diff -|Index: |\s*-+\s*(?:>8|8<|>%|%<))")
#: What `git am` takes for a header of the mail when the message begins with it.
_BODY_HEADER = re.compile(r"(?:(?:from|subject|date):\s|>From\s|\[PATCH\]\s)", re.IGNORECASE)


def _check_title(title: str, where: str) -> None:
    if not title or title != " ".join(title.split()) or CONTROL.search(title):
        raise CodemodError(f"{where}: the title must be one line of words with one space between them: {title!r}")
    if re.match(r"\[|:|re:", title, re.IGNORECASE):
        raise CodemodError(f"{where}: git am would cut the beginning of the title: {title!r}")


def _check_body(body: str, where: str) -> None:
    for line in body.split("\n"):
        if CONTROL.search(line.replace("\t", "")):
            raise CodemodError(f"{where}: a line of the body has control characters: {line!r}")
        if _PATCH_BREAK.match(line):
            raise CodemodError(f"{where}: git am would end the message at this line of the body: {line!r}")
    if _BODY_HEADER.match(body):
        raise CodemodError(f"{where}: git am would take the body's first line for a header: {body.splitlines()[0]!r}")


def _check_no_closing(text: str, where: str) -> None:
    if match := _CLOSING.search(text):
        raise CodemodError(f"{where}: {match[0]!r} would close an issue when the commit lands; say 'see' or 'for'")


def _tidy(body: str) -> str:
    """Do what git does to a message: no blanks at line ends, single empty lines, none at either end."""
    lines = "\n".join(line.rstrip(" \t") for line in body.split("\n"))
    return re.sub(r"\n{3,}", "\n\n", lines).strip("\n")


# --- the patches ------------------------------------------------------------------------------------


@record
class _Diff:
    """One file's change, its hunks and its size in lines."""

    change: FileChange
    hunks: tuple[Hunk, ...]
    added: int
    removed: int

    @classmethod
    def of(cls, change: FileChange) -> _Diff:
        before, after = (file.data if file else b"" for file in (change.before, change.after))
        found = hunks(before, after)
        sizes = [hunk.size for hunk in found]
        return cls(change, found, sum(added for added, _ in sizes), sum(removed for _, removed in sizes))

    @property
    def name(self) -> str:
        return quote_path(self.change.path).decode()

    def __str__(self) -> str:
        return f"{self.name} +{self.added} -{self.removed}"


@record
class _Part:
    """One step with its commit message and what really changes."""

    step: Step
    message: str
    diffs: tuple[_Diff, ...]


def _diffs(changes: Iterable[FileChange]) -> tuple[_Diff, ...]:
    """Return the diffs of what really changes, in git's order."""
    return _in_order(_Diff.of(change) for change in changes if change.before != change.after)


def _in_order(diffs: Iterable[_Diff]) -> tuple[_Diff, ...]:
    """Sort as git does, by the bytes of the path."""
    return tuple(sorted(diffs, key=lambda diff: diff.change.path.encode("utf-8", "surrogateescape")))


def _patch(envelope: Envelope, number: int, part: _Part) -> PatchFile:
    if not part.diffs:
        raise CodemodError(f"codemod {part.step.id}: the step changes nothing, and git am would stop at it")
    title, text = part.step.title, part.message.partition("\n\n")[2] + "---\n"
    rest = "".join((*_diffstat(part.diffs), "\n")).encode() + b"".join(map(_unified, part.diffs))
    return PatchFile(_file_name(number, title), envelope.mail(number, title, text, rest))


def _unified(diff: _Diff) -> bytes:
    change = diff.change
    before, after = (change.path if file else None for file in (change.before, change.after))
    return unified(before, after, change.before, change.after, known=diff.hunks)


def _file_name(number: int, title: str) -> str:
    """Return the name format-patch gives: words joined by `-`, at most 63 bytes in all."""
    words = re.sub(r"[^A-Za-z0-9._]+", "-", re.sub(r"\.{2,}", ".", title)).strip("-").rstrip(".-")
    return f"{number:04}-{words}"[:57] + ".patch"


# --- diffstat as git draws it in 72 columns -----------------------------------------------------------

_WIDTH = 72


def _diffstat(diffs: Sequence[_Diff]) -> Iterator[str]:
    """Yield the lines of `git diff --stat --summary`."""
    if not diffs:
        return
    most = max(diff.added + diff.removed for diff in diffs)
    digits = len(str(most))
    room = _WIDTH - digits - 6
    names, bars = max(len(diff.name) for diff in diffs), most
    if names + bars > room:
        bars = min(bars, _WIDTH * 3 // 8 - digits - 6)
        names, bars = (room - bars, bars) if names > room - bars else (names, room - names)
    for diff in diffs:
        bar = _bar(diff.added, diff.removed, bars, most)
        total = f"{diff.added + diff.removed:{digits}}"
        yield f" {_shortened(diff.name, names):<{names}} | {total}{' ' if bar else ''}{bar}\n"
    added, removed = sum(diff.added for diff in diffs), sum(diff.removed for diff in diffs)
    totals = [f"{_count(len(diffs), 'file')} changed"]
    if added or not removed:
        totals.append(f"{_count(added, 'insertion')}(+)")
    if removed or not added:
        totals.append(f"{_count(removed, 'deletion')}(-)")
    yield f" {', '.join(totals)}\n"
    for diff in diffs:
        match diff.change.before, diff.change.after:
            case None, File(mode=mode):
                yield f" create mode {mode} {diff.name}\n"
            case File(mode=mode), None:
                yield f" delete mode {mode} {diff.name}\n"
            case File(mode=old), File(mode=new) if old != new:
                yield f" mode change {old} => {new} {diff.name}\n"


def _shortened(name: str, width: int) -> str:
    if len(name) <= width:
        return name
    tail = name[len(name) - width + 3 :]
    return "..." + (tail[tail.index("/") :] if "/" in tail else tail)


def _bar(added: int, removed: int, width: int, most: int) -> str:
    """Draw the changes of one file so that `most` lines fill the width; no side that changes vanishes."""

    def scaled(lines: int) -> int:
        return 1 + lines * (width - 1) // most if lines else 0

    total = scaled(added + removed)
    if added and removed:
        total = max(total, 2)
    less = scaled(min(added, removed))
    if added < removed:
        return "+" * less + "-" * (total - less)
    return "+" * (total - less) + "-" * less


def _count(number: int, noun: str, plural: str = "") -> str:
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


# --- the cover letter -------------------------------------------------------------------------------


def _cover(envelope: Envelope, plan: Plan, parts: Sequence[_Part], subject: str | None) -> bytes:
    more = f", and {_count(len(plan.steps) - 1, 'more step')}" if len(plan.steps) > 1 else ""
    title = subject or plan.steps[0].title + more
    _check_title(title, "cover letter")
    _check_no_closing(title, "cover letter")
    if plan.pending or plan.problems:
        title = f"[PARTIAL] {title}"
    places = Places(plan.base)
    left, both = _left(plan)
    sections = (
        _opening(plan, both),
        _missing(plan),
        _what_each_does(parts),
        _first_looks(parts, plan),
        _by_hand(plan, places),
        _section("What was left alone, and why", _reasons(left, places, done=False)),
        _section("What was done already", [*_done_steps(plan), *_reasons(left, places, done=True)]),
    )
    shortlog = [filled("  ", step.title.split(" "), _WIDTH, "    ") for step in plan.steps]
    overall = _overall(parts)
    text = "\n".join("".join(f"{line}\n" for line in section) for section in sections if section)
    text += "".join((f"\n{envelope.sender.name} ({len(plan.steps)}):\n", *(f"{line}\n" for line in shortlog), "\n"))
    text += "".join((*_diffstat(overall), "\n"))
    if plan.base.commit:
        text += f"\nbase-commit: {plan.base.commit}\n"
    return envelope.mail(0, title, text)


def _overall(parts: Iterable[_Part]) -> tuple[_Diff, ...]:
    """Return each file's diff from before the first step to after the last."""
    by_path: dict[str, list[_Diff]] = {}
    for diff in (diff for part in parts for diff in part.diffs):
        by_path.setdefault(diff.change.path, []).append(diff)
    once = (found[0] for found in by_path.values() if len(found) == 1)
    again = (
        FileChange(path, found[0].change.before, found[-1].change.after)
        for path, found in by_path.items()
        if len(found) > 1
    )
    return _in_order((*once, *_diffs(again)))


def _place(path: str, lines: Iterable[int | None]) -> str:
    shown = ",".join(str(line) for line in lines if line is not None)
    return quote_path(path).decode() + (f":{shown}" if shown else "")


def _opening(plan: Plan, both: int) -> list[str]:
    base = f"commit {plan.base.commit}" if plan.base.commit else "a tree that is no commit"
    label = f" ({_plain(plan.base.label)})" if plan.base.source == "ref" else ""
    era = f", era {_plain(plan.era)}" if plan.era else ""
    lines = _wrapped(f"{_count(len(plan.steps), 'patch', 'patches')} on {base}{label}{era}.")
    counts = tally(plan)
    here = len(_rewrites(plan))
    said = f"{here} rewritten"
    said += f", {counts.rewrite - here} left to steps that are not in the series" if counts.rewrite > here else ""
    said += f", {counts.manual} for a person, {counts.leave} left alone"
    said += f" ({both} by one step, and rewritten by another)" if both else ""
    said += f", {counts.unclassified} unclassified" if counts.unclassified else ""
    said += f", {_count(counts.hazards, 'hazard')}" if counts.hazards else ""
    lines += _wrapped(f"{_count(counts.sites, 'site')} seen: {said}.")
    return lines + _wrapped("`git am` takes the numbered patches, not this letter.")


def _missing(plan: Plan) -> list[str]:
    items = [f"{_plain(name)}: {_plain(why)}" for name, why in why_pending(plan)]
    for problem in other_problems(plan):
        place = _place(problem.path, [problem.line]) if problem.path else ""
        where = (problem.step, place, _plain(problem.message))
        items.append(": ".join(part for part in where if part) + (f"; {_plain(problem.hint)}" if problem.hint else ""))
    return _section("What is missing: this series is partial", list(dict.fromkeys(items)))


def _what_each_does(parts: Sequence[_Part]) -> list[str]:
    lines = ["What each patch does:"]
    for number, part in enumerate(parts, 1):
        added, removed = sum(diff.added for diff in part.diffs), sum(diff.removed for diff in part.diffs)
        size = f"{_count(len(part.diffs), 'file')}, +{added} -{removed}"
        head = f"{number}/{len(parts)} {part.step.id}: {part.step.title} ({size})"
        lines += ("", *_wrapped(head, "  ", "      "), *(f"      {diff}" for diff in part.diffs))
    return lines


_LOOKS = 3


def _first_looks(parts: Sequence[_Part], plan: Plan) -> list[str]:
    """Name the largest changes in new files and at rewritten sites, tests aside; then what needs a hand."""
    ranked: list[tuple[int, int, _Diff]] = []
    for number, part in enumerate(parts, 1):
        sites = {finding.path for finding in part.step.findings if isinstance(finding.verdict, Rewrite)}
        ranked += (
            (-diff.added - diff.removed, number, diff)
            for diff in part.diffs
            if (diff.change.before is None or diff.change.path in sites) and not diff.change.path.endswith("_test.go")
        )
    ranked.sort(key=lambda entry: entry[:2])
    items = [f"{diff} in patch {number}" for _, number, diff in ranked[:_LOOKS]]
    if manual := len(_manual(plan)):
        items.append(f"{_count(manual, 'place')} for a person, listed below")
    return _section("What to look at first (new files and sites, largest first, no tests)", items)


def _manual(plan: Plan) -> list[tuple[Finding, Manual]]:
    """Return what is for a person; an unclassified place is a problem, and said to be missing."""
    return [
        (finding, finding.verdict)
        for finding in plan.findings
        if isinstance(finding.verdict, Manual) and not finding.is_unclassified
    ]


def _by_hand(plan: Plan, places: Places) -> list[str]:
    items = []
    for finding, verdict in _manual(plan):
        place = _place(finding.path, [places.line(finding)])
        where = f"{place} in {_plain(finding.function)}" if finding.function else place
        reason, todo = _plain(verdict.reason), _plain(verdict.instruction)
        items.append(f"{where}: {reason.rstrip('.')}. To do: {todo}" if todo else f"{where}: {reason}")
    return _section("What needs a hand", items)


def _done_steps(plan: Plan) -> list[str]:
    return [f"whole steps: {', '.join(plan.done)}"] if plan.done else []


def _rewrites(plan: Plan) -> list[Rewrite]:
    """Return what the steps of the series do with the sites of the base."""
    steps = {step.id for step in plan.steps}
    return [found.verdict for found in plan.findings if isinstance(found.verdict, Rewrite) and found.id in steps]


def _left(plan: Plan) -> tuple[list[tuple[Finding, Leave]], int]:
    """Return what every step leaves alone, and how many places one step leaves and another rewrites all the same."""
    changes = (change for rewrite in _rewrites(plan) for change in rewrite.changes)
    rewritten = Cover((change.path, change.span) for change in changes if isinstance(change, Edit))
    every = [(found, found.verdict) for found in plan.findings if isinstance(found.verdict, Leave)]
    left = [(found, leave) for found, leave in every if not rewritten.holds(found.path, found.span)]
    return left, len(every) - len(left)


def _reasons(left: Iterable[tuple[Finding, Leave]], places: Places, *, done: bool) -> list[str]:
    """Group the places left alone by reason, the most frequent first."""
    groups: dict[str, list[Finding]] = {}
    for finding, leave in left:
        if leave.done == done:
            groups.setdefault(_plain(leave.reason), []).append(finding)
    return [
        f"{reason} ({_count(len(found), 'place')}): {' '.join(_places_by_file(found, places))}"
        for reason, found in sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    ]


def _places_by_file(found: Iterable[Finding], places: Places) -> Iterator[str]:
    by_file: dict[str, list[int | None]] = {}
    for finding in found:
        by_file.setdefault(finding.path, []).append(places.line(finding))
    return (_place(path, lines) for path, lines in by_file.items())


def _section(title: str, items: Sequence[str]) -> list[str]:
    if not items:
        return []
    return [f"{title}:", "", *(line for item in items for line in _wrapped(item, "- ", "  "))]


def _wrapped(text: str, first: str = "", further: str = "") -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent=first, subsequent_indent=further, break_long_words=False, break_on_hyphens=False
    )


def _plain(text: str) -> str:
    """Return text on one line, with control characters and lone surrogates escaped."""
    return CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), " ".join(text.split()))
