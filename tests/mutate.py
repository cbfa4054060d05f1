"""Small changes to the fixture, as a branch may have them, and what is wanted of the site that each is about.

`tests/mutations/<codemod-id>.txt` holds them, one after the other:

    == agent-run log-line: in the branch        (anchor, kind of change, and what tells it from others of the kind)
    -- pkg/agent/run.go func run(               (a hunk, in the declaration that begins so; without it in all of the file)
    +	logrus.Info("a mutation")
        return pkgerrors.WithMessage(err, "no apiserver for the agent")
    ** pkg/agent/run.go func run(: nodeConfig => own       (a word, wherever it stands)
    want: rewrite

A hunk of a file that does not exist makes it. `want` is the verdict on the site:

    rewrite    and the whole series is emitted
    leave      and the whole series is emitted
    manual     with `reason: words` that it must show of the site; the step is not emitted, but with `emitted: yes`
    missing    the run says that the site is not there, exit 4
    doubled    the run says that the site is there twice, exit 4

Of a series that is emitted the final tree is held against that of the fixture as it is. By default it must be the same,
byte for byte, once the mutation is taken out of it again. `result: the same` is for a mutation of which nothing is left.
`back:` and hunks say how to take it out where more has changed. `kept: words` must be in the result; with them alone it
may differ in anything.

`shape: word` looks at the sites of that shape in the changed declarations, in place of the one with the anchor.
`beside: title; title` are other declarations whose sites get other verdicts too, `*` is all of them. `lost: comment` may go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.campaign import Files

ROOT = Path(__file__).parent / "mutations"
_NOTES = ("want", "reason", "emitted", "result", "kept", "shape", "beside", "lost", "back")


@dataclass(frozen=True, slots=True)
class Hunk:
    """Replace `old`, which stands once in the declaration of `path` that begins with `within`, by `new`.

    `words` replaces the word `old` wherever it stands there.
    """

    path: str
    within: str
    old: str
    new: str
    words: bool = False

    def apply(self, files: Files) -> Files:
        if self.path not in files:
            assert not self.old, f"there is no {self.path}"
            return {**files, self.path: self.new.encode()}
        text = files[self.path].decode()
        start, end = self._region(text)
        region = text[start:end]
        pattern = re.compile(rf"(?<![\w.]){re.escape(self.old)}\b" if self.words else re.escape(self.old))
        found = len(pattern.findall(region))
        assert found if self.words else found == 1, f"{found} times in {self.path}: {self.old!r}"
        return {**files, self.path: (text[:start] + pattern.sub(lambda _: self.new, region) + text[end:]).encode()}

    def undo(self, files: Files) -> Files:
        """Take out of a file what the hunk put in, wherever it is now, and put back what it took out."""
        if self.words:
            return Hunk(self.path, "", self.new, self.old, words=True).apply(files)
        if not self.old:
            return {path: data for path, data in files.items() if path != self.path}
        old, new = self.old.splitlines(keepends=True), self.new.splitlines(keepends=True)
        head, tail = _common(old, new)
        removed, added = "".join(old[head : len(old) - tail]), "".join(new[head : len(new) - tail])
        if removed and added:
            head, tail = _common(removed, added)
            removed, added = removed[head : len(removed) - tail], added[head : len(added) - tail]
        return Hunk(self.path, "", added, removed).apply(files)

    def _region(self, text: str) -> tuple[int, int]:
        if not self.within:
            return 0, len(text)
        starts = [found.start() for found in re.finditer(rf"^{re.escape(self.within)}", text, re.MULTILINE)]
        assert len(starts) == 1, f"{len(starts)} times in {self.path}: {self.within!r}"
        end = re.compile(r"^[})].*\n", re.MULTILINE).search(text, starts[0])
        return starts[0], end.end() if end is not None else len(text)


def _common(one: Sequence[str], other: Sequence[str]) -> tuple[int, int]:
    """Return how long the common beginning and, of what follows, the common end are."""
    least = min(len(one), len(other))
    head = next((at for at in range(least) if one[at] != other[at]), least)
    tail = next((at for at in range(least - head) if one[-1 - at] != other[-1 - at]), least - head)
    return head, tail


@dataclass(slots=True)
class Mutation:
    """One change and what is wanted, as the head of this file tells."""

    codemod: str
    site: str
    kind: str
    name: str
    hunks: list[Hunk] = field(default_factory=list)
    back: list[Hunk] = field(default_factory=list)
    notes: dict[str, list[str]] = field(default_factory=dict)

    def said(self, note: str) -> list[str]:
        return self.notes.get(note, [])

    @property
    def anchor(self) -> str:
        return f"{self.codemod}/{self.site}"

    @property
    def want(self) -> str:
        (want,) = self.notes["want"]
        return want

    @property
    def shape(self) -> str:
        return "".join(self.said("shape"))

    def apply(self, files: Files) -> Files:
        for hunk in self.hunks:
            files = hunk.apply(files)
        return files

    def undo(self, files: Files) -> Files:
        """Take the mutation out of a result again."""
        if self.said("result") == ["the same"]:
            return files
        for hunk in self.back:
            files = hunk.apply(files)
        for hunk in reversed(self.hunks) if not self.back else ():
            files = hunk.undo(files)
        return files


def load() -> list[Mutation]:
    """Return all mutations, in the order of the files."""
    return [
        found for path in sorted(ROOT.glob("*.txt")) for found in _parse(path.stem, path.read_text(encoding="utf-8"))
    ]


def _parse(codemod: str, text: str) -> Iterator[Mutation]:
    for part in re.split(r"^== ", text, flags=re.MULTILINE)[1:]:
        head, *lines = part.rstrip("\n").split("\n")
        site, _, rest = head.partition(" ")
        yield _mutation(Mutation(codemod, site, rest.partition(":")[0], f"{codemod}/{head}"), lines)


def _mutation(mutation: Mutation, lines: list[str]) -> Mutation:
    hunks = mutation.hunks
    for line in lines:
        name, _, value = line.partition(":")
        if line.startswith("-- "):
            path, _, within = line[3:].partition(" ")
            hunks.append(Hunk(path, within, "", ""))
        elif line.startswith("** "):
            place, _, words = line[3:].partition(": ")
            path, _, within = place.partition(" ")
            old, new = words.split(" => ")
            hunks.append(Hunk(path, within, old, new, words=True))
        elif line[:1] in (" ", "+", "-"):
            last = hunks.pop()
            text = f"{line[1:]}\n"
            old, new = last.old + text * (line[0] != "+"), last.new + text * (line[0] != "-")
            hunks.append(Hunk(last.path, last.within, old, new))
        elif name == "back":
            hunks = mutation.back
        elif not line:
            continue
        elif name in _NOTES:
            mutation.notes.setdefault(name, []).append(value.strip().replace("\\n", "\n").replace("\\t", "\t"))
        else:
            raise ValueError(f"{mutation.name}: {line!r} is no line of a mutation")
    return mutation
