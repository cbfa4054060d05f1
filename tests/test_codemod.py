"""What a codemod's author may get wrong is found: by the suite's check, by the templates' check, or when rendering."""

from __future__ import annotations

import pytest
from jinja2 import DictLoader, Environment, StrictUndefined, meta

from refactor_tool.codemod import Anchor, Codemod, Renderer, Template, check_suite, check_templates, names_used
from refactor_tool.codemods import SUITE
from refactor_tool.model import CodemodError, Fragment
from refactor_tool.record import replace
from refactor_tool.world.templates import load_templates

ONE = Codemod(id="one", title="Do one thing", body="Because.", find=lambda _: (), templates=(Template("a", ("x",)),))
SOURCES = {"a": "{{ x }}\n"}


def test_campaign_has_no_mistake() -> None:
    sources = load_templates()
    check_suite(SUITE, sources)
    check_templates(SUITE, sources)


def test_every_template_that_ships_is_declared() -> None:
    assert {template.name for codemod in SUITE for template in codemod.templates} == set(load_templates())


@pytest.mark.parametrize(
    ("suite", "message"),
    [
        pytest.param([replace(ONE, id="One")], "not lower-case words", id="upper case"),
        pytest.param([replace(ONE, id="one-")], "not lower-case words", id="dash at the end"),
        pytest.param([ONE, ONE], "'one' is used twice", id="same id"),
        pytest.param([replace(ONE, requires=("two",)), replace(ONE, id="two")], "does not come before", id="order"),
        pytest.param([replace(ONE, title="")], "title must be one line", id="no title"),
        pytest.param([replace(ONE, title="Do it.")], "title must be one line", id="full stop"),
        pytest.param([replace(ONE, title="x" * 73)], "title must be one line", id="long title"),
        pytest.param([replace(ONE, body="x" * 76)], "wrapped at 75", id="long line"),
        pytest.param([replace(ONE, body="Fixes #1")], "must not close an issue", id="closing words"),
        pytest.param([replace(ONE, anchors=(Anchor("a"), Anchor("a")))], "an anchor twice", id="same anchor"),
        pytest.param([replace(ONE, templates=(Template("b"),))], "there is no template 'b'", id="no such template"),
    ],
)
def test_mistake_in_the_suite(suite: list[Codemod], message: str) -> None:
    with pytest.raises(CodemodError, match=message):
        check_suite(suite, SOURCES)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("{{ x }}{{ y }}", "uses 'y' without declaring it", id="undeclared"),
        pytest.param("{% if x %}{{ y }}{% endif %}", "uses 'y' without declaring it", id="undeclared in a branch"),
        pytest.param("x", "declares 'x' without using it", id="unused"),
        pytest.param("\n{% if x %}", "template a:2: ", id="not closed"),
        pytest.param("{{ x }", "template a:1: ", id="half a name"),
    ],
)
def test_mistake_in_a_template(text: str, message: str) -> None:
    with pytest.raises(CodemodError, match=message):
        check_templates([ONE], {"a": text})
    if "template a:" not in message:  # names are looked at before any source is read
        with pytest.raises(CodemodError, match=message):
            check_suite([ONE], {"a": text})


def test_names_that_templates_use_are_those_that_jinja_finds() -> None:
    environment = Environment()
    for name, text in load_templates().items():
        assert names_used(text) == meta.find_undeclared_variables(environment.parse(text)), name


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param('{% if x == "in" and not y %}z{% endif %}', {"x", "y"}, id="strings and words"),
        pytest.param("{% for a in x.split() %}{{ a }}{{ y }}{% endfor %}", {"x", "y"}, id="loop"),
        pytest.param("{% set a, b = x|upper %}{{ a }}{{ b }}", {"x"}, id="set"),
        pytest.param("{ x } {x}", set(), id="braces of Go"),
    ],
)
def test_names_used(text: str, names: set[str]) -> None:
    assert names_used(text) == names == meta.find_undeclared_variables(Environment().parse(text))


@pytest.mark.parametrize(
    ("text", "fragment", "message"),
    [
        pytest.param("{{ x }}", Fragment.of("b", x=""), "does not declare the template 'b'", id="another's template"),
        pytest.param("{{ x }}", Fragment.of("a"), "takes", id="missing"),
        pytest.param("{{ x }}", Fragment.of("a", x="", y=""), "takes", id="too many"),
        pytest.param("{{ x }}{{ y }}", Fragment.of("a", x=""), "one: template a: 'y' is undefined", id="undeclared"),
        pytest.param("{% if y %}{% endif %}", Fragment.of("a", x=""), "'y' is undefined", id="undeclared condition"),
        pytest.param("{{ x }}\n{% fi %}", Fragment.of("a", x=""), "template a:2: ", id="not Jinja"),
    ],
)
def test_nothing_is_rendered_by_mistake(text: str, fragment: Fragment, message: str) -> None:
    with pytest.raises(CodemodError, match=message):
        Renderer({"a": text}).render("one", ONE.templates, fragment)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", "", id="empty"),
        pytest.param("a\n{{ x }}\n", "a\n<{y}&\n", id="name"),
        pytest.param("{{ x }}", "<{y}&", id="no last newline"),
        pytest.param("{{ x }}{{ x }}}", "<{y}&<{y}&}", id="brace behind"),
        pytest.param("f{ {{ x }} }", "f{ <{y}& }", id="braces of Go"),
        pytest.param("{{x}}{{ x|upper }}", "<{y}&<{Y}&", id="more than a name"),
        pytest.param("{# {{ x }} #}", "", id="in a comment"),
        pytest.param("{% raw %}{{ x }}{% endraw %}", "{{ x }}", id="raw"),
        pytest.param("{{ x }}\r\n\r", "<{y}&\n\n", id="line ends"),
        pytest.param("{{- x -}}\n.", "<{y}&.", id="white space taken off"),
    ],
)
def test_what_is_rendered_is_what_jinja_makes_of_it(text: str, expected: str) -> None:
    made = Renderer({"a": text}).render("one", ONE.templates, Fragment.of("a", x="<{y}&"))
    assert made == expected.encode()


def test_braces_that_jinja_reads_otherwise_are_left_to_it() -> None:
    with pytest.raises(CodemodError, match="template a:1: "):
        Renderer({"a": "f{{{ x }}}"}).render("one", ONE.templates, Fragment.of("a", x=""))


def test_templates_without_blocks_are_rendered_as_jinja_does() -> None:
    sources = {name: text for name, text in load_templates().items() if "{%" not in text}
    assert len(sources) > 20
    environment = Environment(
        loader=DictLoader(sources), undefined=StrictUndefined, keep_trailing_newline=True, trim_blocks=True
    )
    for codemod in SUITE:
        for template in codemod.templates:
            if template.name in sources:
                values = {name: f" {{{{ {name}\t<\n" for name in template.params}
                made = Renderer(sources).render(codemod.id, codemod.templates, template.filled(values))
                assert made == environment.get_template(template.name).render(values).encode(), template.name


@pytest.mark.parametrize(
    ("lines", "expected"), [(False, b"a\r\n\r\n\t\tb\r\n"), (True, b"\t\ta\r\n\r\n\t\tb\r\n")], ids=["place", "lines"]
)
def test_indent_and_line_ends_are_those_of_the_place(lines: bool, expected: bytes) -> None:
    fragment = Fragment.of("a", "\t\t", lines=lines, x="b")
    assert Renderer({"a": "a\n\n{{ x }}\n"}).render("one", ONE.templates, fragment, crlf=True) == expected
