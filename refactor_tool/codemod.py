"""The contract of a codemod, and the strict rendering of its templates. Newcomers start here.

A codemod is one logical commit. It is a frozen value: it says what it is, which sites it must find, which templates
it has, and how to find its sites in a tree. The engine owns the loop, the codemod owns the judgement:

    CODEMOD = Codemod(
        id="cri-ready",
        title="Wait for the container runtime with the executor's ready channel",
        body="...",
        requires=("executor-ready-channels",),
        anchors=(Anchor("agent-run"), ...),
        templates=(Template("cri-ready/agent_run.go.j2", ("executor",)), ...),
        find=find,
    )

The only importer of jinja2, and only when a template is rendered that does more than name its parameters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING

from refactor_tool.gosrc.tree import Tree
from refactor_tool.model import CodemodError, Finding, Fragment
from refactor_tool.record import record

if TYPE_CHECKING:
    from jinja2 import Environment

WHY = "https://github.com/k3s-io/k3s/issues/11896"
_ID = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*\Z")
_CLOSING = r"(?i)\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?)\b[:\s]+(?:[\w.-]+/[\w.-]+)?#\d+"


@record
class Template:
    """A file below `templates/` and exactly the parameters that it uses."""

    name: str
    params: tuple[str, ...] = ()

    def filled(self, values: Mapping[str, str], indent: str = "", *, lines: bool = False) -> Fragment:
        """Return the fragment with the parameters taken from `values`, which may hold others too."""
        return Fragment(self.name, tuple((param, values[param]) for param in sorted(self.params)), indent, lines)


@record
class Anchor:
    """A site that a codemod must find: exactly once, or at most once where trees of some time lack it.

    A finding with this `anchor` counts whatever its verdict, so a site that is done already, or that a person must
    do, is not missing.
    """

    name: str
    optional: bool = False


@record
class Codemod:
    """One commit of the campaign.

    `find` gets the facts of a tree and yields findings with a verdict each; it must not keep state. `requires` names
    codemods whose change must be in the tree before this one runs. `body` is the commit message without its subject,
    wrapped at 75 columns.
    """

    id: str
    title: str
    body: str
    find: Callable[[Tree], Iterable[Finding]]
    templates: tuple[Template, ...] = ()
    anchors: tuple[Anchor, ...] = ()
    requires: tuple[str, ...] = ()
    why: str = WHY


def check_suite(suite: Sequence[Codemod], sources: Mapping[str, str]) -> None:
    """Raise `CodemodError` for an author's mistake in ids, order, messages or templates (`sources`, by name).

    Templates are looked at without Jinja, whose parse of all of them takes longer than to render them: for the names
    that they use, not for their syntax. `check_templates` does that, and `Renderer` in those it renders.
    """
    seen: set[str] = set()
    for codemod in suite:
        if not _ID.match(codemod.id):
            raise CodemodError(f"codemod id {codemod.id!r} is not lower-case words joined by '-'")
        if codemod.id in seen:
            raise CodemodError(f"codemod id {codemod.id!r} is used twice")
        missing = [name for name in codemod.requires if name not in seen]
        if missing:
            raise CodemodError(f"{codemod.id} requires {missing[0]!r}, which does not come before it")
        seen.add(codemod.id)
        _check_message(codemod)
        names = [anchor.name for anchor in codemod.anchors]
        if len(set(names)) != len(names):
            raise CodemodError(f"{codemod.id} names an anchor twice")
        for template in codemod.templates:
            if template.name not in sources:
                raise CodemodError(f"{codemod.id}: there is no template {template.name!r}")
            _check_names(codemod, template, names_used(sources[template.name]))


def check_templates(suite: Iterable[Codemod], sources: Mapping[str, str]) -> None:
    """Raise `CodemodError` for a template that is not Jinja, or not of exactly the parameters that it declares.

    It says nothing new where the templates are the same, and takes its time: it is for tests and proofs.
    """
    from jinja2 import TemplateSyntaxError, meta

    for codemod in suite:
        for template in codemod.templates:
            try:
                parsed = _environment(sources).parse(sources[template.name])
            except TemplateSyntaxError as error:
                raise CodemodError(f"template {template.name}:{error.lineno}: {error.message}") from None
            _check_names(codemod, template, meta.find_undeclared_variables(parsed))


def names_used(text: str) -> set[str]:
    """Return the names that a template takes from outside, as far as its tags tell without their order."""
    used: set[str] = set()
    own: set[str] = set()
    for tag in _TAG.findall(text):
        words = _NAME_IN_TAG.findall(tag)
        bound = words[1 : words.index("in")] if words[:1] == ["for"] else []
        if words[:1] == ["set"]:
            bound = _NAME_IN_TAG.findall(tag.partition("=")[0])[1:]
        own.update(bound)
        used.update(words)
    return used - own - _KEYWORDS - {""}


def _check_message(codemod: Codemod) -> None:
    if not codemod.title or codemod.title.endswith(".") or "\n" in codemod.title or len(codemod.title) > 72:
        raise CodemodError(f"{codemod.id}: the title must be one line of at most 72 characters without a full stop")
    if re.search(_CLOSING, f"{codemod.title}\n{codemod.body}"):
        raise CodemodError(f"{codemod.id}: the message must not close an issue")
    if any(len(line) > 75 for line in codemod.body.splitlines()):
        raise CodemodError(f"{codemod.id}: the body must be wrapped at 75 columns")


def _check_names(codemod: Codemod, template: Template, used: Set[str]) -> None:
    if used != set(template.params):
        extra, lacking = sorted(used - set(template.params)), sorted(set(template.params) - used)
        what = f"uses {extra[0]!r} without declaring it" if extra else f"declares {lacking[0]!r} without using it"
        raise CodemodError(f"{codemod.id}: template {template.name} {what}")


_TAG = re.compile(r"\{[{%](.*?)[%}]\}", re.DOTALL)
#: A name in a tag; what stands in quotes or after a dot or a bar is none, and matches as "".
_NAME_IN_TAG = re.compile(r"""'[^']*'|"[^"]*"|[.|]\s*\w+|\b([A-Za-z_]\w*)""")
_KEYWORDS = frozenset("if elif else endif for in endfor set endset not and or is defined loop true false none".split())
#: What most templates are made of: text and names of parameters.
_NAME = re.compile(r"(?<!\{)\{\{ (\w+) \}\}")
_MORE = re.compile(r"\{[{%#]|\r")


class Renderer:
    """Render fragments to bytes, strictly: nothing undeclared, nothing missing. A template is compiled once."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._sources = sources
        self._environment: Environment | None = None

    def render(self, owner: str, templates: Iterable[Template], fragment: Fragment, *, crlf: bool = False) -> bytes:
        """Return the text of a fragment as `Fragment` says, in the file's line ends.

        `templates` are those that its `owner`, a codemod's id, declares. Raises `CodemodError` for parameters that are
        not the template's, and for a template that is not Jinja or uses what it does not declare.
        """
        template = next((known for known in templates if known.name == fragment.template), None)
        if template is None:
            raise CodemodError(f"{owner} does not declare the template {fragment.template!r}")
        given = dict(fragment.params)
        if set(given) != set(template.params):
            raise CodemodError(f"{owner}: {fragment.template} takes {template.params}, not {tuple(given)}")
        text = self._filled(owner, template.name, given)
        lines = [
            fragment.indent + line if line and (at or fragment.lines) else line
            for at, line in enumerate(text.split("\n"))
        ]
        return ("\r\n" if crlf else "\n").join(lines).encode("utf-8", "surrogateescape")

    def _filled(self, owner: str, name: str, given: Mapping[str, str]) -> str:
        texts = _NAME.split(self._sources[name])  # the odd ones are names
        if given.keys() >= set(texts[1::2]) and not _MORE.search(" ".join(texts[::2])):
            return "".join(given[text] if at % 2 else text for at, text in enumerate(texts))
        return self._by_jinja(owner, name, given)

    def _by_jinja(self, owner: str, name: str, given: Mapping[str, str]) -> str:
        from jinja2 import TemplateSyntaxError, UndefinedError

        if self._environment is None:
            self._environment = _environment(self._sources)
        try:
            return self._environment.get_template(name).render(given)
        except TemplateSyntaxError as error:
            raise CodemodError(f"template {name}:{error.lineno}: {error.message}") from None
        except UndefinedError as error:
            raise CodemodError(f"{owner}: template {name}: {error.message}") from None


def _environment(sources: Mapping[str, str]) -> Environment:
    # imported here: a scan renders nothing, and jinja2 is a third of its start-up time
    from jinja2 import DictLoader, Environment, StrictUndefined

    return Environment(
        loader=DictLoader(sources),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
        trim_blocks=True,
    )
