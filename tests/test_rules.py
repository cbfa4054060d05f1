"""Run the examples that every rule carries, its fixes included, and hold docs/rules.md against the rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from refactor_tool.gosrc.tree import Tree
from refactor_tool.model import CodemodError, Finding, Rewrite
from refactor_tool.record import replace
from refactor_tool.rule import MARK, Example, Rule, catalogue, check_rules, hazards
from refactor_tool.rules import RULES
from tests import gotree
from tests.hazards import fixed, found, lines, marked

DOCS = Path(__file__).parent.parent / "docs" / "rules.md"
EXAMPLES = [
    pytest.param(rule, example, id=f"{rule.id}: {example.title}")
    for rule in RULES
    for example in (*rule.bad, *rule.good)
]


@pytest.mark.parametrize(("rule", "example"), EXAMPLES)
def test_example_says_where_its_rule_finds_something(rule: Rule, example: Example) -> None:
    tree = _tree(example, example.go)
    assert lines(tree, _found(rule, example, tree)) == marked(example.go)


@pytest.mark.parametrize(("rule", "example"), EXAMPLES)
def test_fix_of_example_is_sound_and_leaves_nothing_to_fix(rule: Rule, example: Example) -> None:
    tree = _tree(example, example.go)
    after = fixed(tree, _found(rule, example, tree), example.path)
    assert after.data(example.path).decode() == (example.fixed or tree.data(example.path).decode())
    again = _found(rule, example, after)
    assert not [one for one in again if isinstance(one.verdict, Rewrite)]
    assert not (example.fixed and again)


@pytest.mark.parametrize(("rule", "example"), [item for item in EXAMPLES if item.values[1].fixed])
def test_fix_keeps_line_ends(rule: Rule, example: Example) -> None:
    tree = _tree(example, example.go.replace(MARK, "").replace("\n", "\r\n"))
    text = fixed(tree, _found(rule, example, tree), example.path).data(example.path)
    assert text.count(b"\n") == text.count(b"\r\n")
    assert text.replace(b"\r\n", b"\n").decode() == example.fixed


def test_examples_are_gofmt_clean_where_a_tab_matters() -> None:
    texts = [text for rule in RULES for one in (*rule.bad, *rule.good) for text in (one.go, one.fixed, one.before)]
    lines = [line for text in texts for line in text.split("\n")]
    assert not [line for line in lines if line.startswith(" ") or line.rstrip() != line]


def test_rules_are_well_made() -> None:
    check_rules(RULES)


def _first(**changes: object) -> Rule:
    return replace(RULES[0], **changes)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        pytest.param((_first(id="X1"),), "not L or D", id="id of another form"),
        pytest.param((_first(name="Name"),), "not lower-case words", id="name of another form"),
        pytest.param((RULES[0], RULES[0]), "there twice", id="the same rule twice"),
        pytest.param((_first(find=None),), "one of find and compare", id="a rule that does nothing"),
        pytest.param((_first(summary="No full stop"),), "one sentence", id="summary that is no sentence"),
        pytest.param((_first(good=()),), "a bad and a good example", id="no good example"),
        pytest.param((_first(bad=RULES[0].good),), "marks no line", id="bad example without a mark"),
        pytest.param((_first(good=RULES[0].bad),), "marks a hazard", id="good example with a mark"),
        pytest.param((_first(fix=""),), "go together", id="example of a fix that is not told"),
        pytest.param(
            (_first(good=tuple(replace(one, before="package x\n") for one in RULES[0].good)),),
            "rules that compare",
            id="a before where nothing is compared",
        ),
    ],
)
def test_author_mistake_is_told_before_any_source_is_read(rules: tuple[Rule, ...], message: str) -> None:
    with pytest.raises(CodemodError, match=message):
        check_rules(rules)


def test_rule_that_gives_out_the_finding_of_another_is_a_mistake() -> None:
    tree = _tree(RULES[0].bad[0], RULES[0].bad[0].go)
    with pytest.raises(CodemodError, match="gave out"):
        hazards(tree, [replace(RULES[0], id="L99")])


def test_bug_in_a_rule_is_noted_with_its_id() -> None:
    def find(tree: Tree) -> list[Finding]:
        raise ZeroDivisionError(tree.module)

    with pytest.raises(ZeroDivisionError) as caught:
        hazards(gotree.tree(), [replace(RULES[0], find=find)])
    assert caught.value.__notes__ == ["rule L01 on ."]


def test_findings_have_the_severity_of_their_rule_or_a_lesser_one() -> None:
    grave = ("info", "warning", "error")
    for rule in RULES:
        for example in rule.bad:
            for one in _found(rule, example, _tree(example, example.go)):
                assert one.severity is not None
                assert grave.index(one.severity) <= grave.index(rule.severity), one


def test_page_of_rules_is_what_the_rules_say(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-goldens"):
        DOCS.write_text(catalogue(RULES), encoding="utf-8")
    assert DOCS.read_text(encoding="utf-8") == catalogue(RULES), "write it anew with --update-goldens"


def _tree(example: Example, go: str) -> Tree:
    files = {"go.mod": f"module {gotree.MODULE}\n\ngo 1.23\n", example.path: go.replace(MARK, "")}
    return gotree.of({**files, **dict(example.others)})


def _found(rule: Rule, example: Example, tree: Tree) -> tuple[Finding, ...]:
    return found(rule, tree, None if rule.compare is None else _tree(example, example.before))
