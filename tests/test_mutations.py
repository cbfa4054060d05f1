"""Hold the whole campaign to small changes of the fixture: the right verdict, nothing lost, and the rest as before."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import pytest

from refactor_tool import engine
from refactor_tool.codemods import SUITE
from refactor_tool.gosrc import ast
from refactor_tool.gosrc.tree import Tree
from refactor_tool.model import ExitCode, Finding, Manual, Plan, Rewrite
from tests.campaign import CACHE, Files, contents, fixture, plan, planned, snapshot
from tests.mutate import Mutation, load

ANCHORS = {f"{codemod.id}/{anchor.name}" for codemod in SUITE for anchor in codemod.anchors}
MUTATIONS = load()
_TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|`[^`]*`|'(?:\\.|[^'\\\n])+'""", re.DOTALL)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_changed_site_gets_the_right_verdict_and_the_rest_stays_as_it_was(mutation: Mutation) -> None:
    before = mutation.apply(fixture())
    result = plan(before)
    after = contents(result.final)

    _hold_verdict(mutation, result)
    assert not [problem for problem in result.problems if problem.code is ExitCode.INTERNAL]
    if mutation.want in ("rewrite", "leave"):
        assert not result.problems and not result.pending
        _hold_result(mutation, after)
    else:
        assert (mutation.codemod in {step.id for step in result.steps}) == (mutation.said("emitted") == ["yes"])
    changed = touched(mutation, before, result)
    assert "*" in changed or verdicts(result, changed) == verdicts(planned(), changed)
    gone = comments(before) - comments(after) - (comments(fixture()) - comments(contents(planned().final)))
    assert gone <= Counter(mutation.said("lost"))
    assert not {step.id for step in plan(after).steps} & {step.id for step in result.steps}, (
        "a second plan is not empty"
    )


def test_every_anchor_and_every_kind_of_change_is_in_the_table() -> None:
    assert {mutation.anchor for mutation in MUTATIONS} == ANCHORS
    kinds = Counter(mutation.kind for mutation in MUTATIONS)
    assert all(kinds[kind] >= 2 for kind in KINDS), kinds
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS)


KINDS = (
    "alias-import",
    "comment",
    "dot-import",
    "duplicated-call",
    "else-branch",
    "error-wrapper",
    "extra-argument",
    "extra-statement",
    "function-value",
    "log-line",
    "name-taken",
    "negated-condition",
    "parentheses",
    "renamed-local",
    "shadowed-package",
    "swapped-branches",
    "tagged-copy",
)


def _hold_verdict(mutation: Mutation, result: Plan) -> None:
    found = list(sites(mutation, result))
    said = {type(each.verdict).__name__.lower() for each in found}
    counted = [problem.message for problem in result.problems if problem.step == mutation.codemod]
    match mutation.want:
        case "missing":
            assert f"the site {mutation.site} is missing" in counted
        case "doubled":
            assert any(message.startswith(f"the site {mutation.site} is there 2 times") for message in counted), counted
        case "rewrite" | "manual" | "leave":
            assert said == {mutation.want}, [each.verdict for each in found] or result.problems
            assert mutation.shape or len(found) == 1
            reasons = [each.verdict.reason for each in found if isinstance(each.verdict, Manual)]
            assert bool(reasons) == bool(mutation.said("reason")), "the text of the site must be shown"
            assert all(words in reason for reason in reasons for words in mutation.said("reason")), reasons


def sites(mutation: Mutation, result: Plan) -> Iterator[Finding]:
    """Yield the findings that a mutation is about."""
    changed = titles(fixture(), contents(result.base)) if mutation.shape else set()
    for found in result.findings:
        named = (
            found.shape == mutation.shape and found.function in changed
            if mutation.shape
            else found.anchor == mutation.site
        )
        if found.id == mutation.codemod and named:
            yield found


def _hold_result(mutation: Mutation, after: Files) -> None:
    """Hold the result against that of the fixture as it is, the mutation taken out."""
    kept = mutation.said("kept")
    for text in kept:
        assert any(text.encode() in data for data in after.values()), text
    if kept and not mutation.back and not mutation.said("result"):
        return
    wanted, found = contents(planned().final), mutation.undo(after)
    assert {path: data.decode() for path, data in found.items()} == {
        path: data.decode() for path, data in wanted.items()
    }


def touched(mutation: Mutation, before: Files, result: Plan) -> set[str]:
    """Return the declarations whose sites may have other verdicts: what is changed, and where the site is."""
    mine = (found for known in (planned(), result) for found in known.findings if found.id == mutation.codemod)
    return {
        *titles(fixture(), before),
        *(found.function for found in mine if found.anchor == mutation.site),
        *(title for line in mutation.said("beside") for title in line.split("; ")),
    }


def titles(one: Files, other: Files) -> set[str]:
    """Return the titles of the declarations that two trees do not have in common."""
    return {title for title, _, _ in declarations(one) ^ declarations(other)}


def declarations(files: Files) -> set[tuple[str, str, str]]:
    tree = Tree(snapshot(files), CACHE)
    return {
        (decl.title if isinstance(decl, ast.FuncDecl) else f"type {decl.name}", path, tree.text(path, decl.span))
        for path in files
        if path.endswith(".go")
        for decl in tree.decls(path)
        if isinstance(decl, ast.FuncDecl | ast.TypeDecl)
    }


def verdicts(result: Plan, but: set[str]) -> Counter[tuple[str, ...]]:
    return Counter(
        (found.id, found.path, found.function, found.shape, found.anchor, type(found.verdict).__name__)
        for found in result.findings
        if found.function not in but and found.kind == "codemod"
    )


def comments(files: Files) -> Counter[str]:
    """Return the comments of all Go files, found without the tool's own parser."""
    tokens = (token for path, data in files.items() if path.endswith(".go") for token in _TOKEN.findall(data.decode()))
    return Counter(token.strip() for token in tokens if token.startswith(("//", "/*")))


# --- every site in another setting --------------------------------------------------------------------


def _places() -> list[tuple[str, str]]:
    """Return the files and the functions in which the fixture has something to do."""
    found = engine.scan(snapshot(fixture()), SUITE, cache=CACHE).findings
    return sorted({(each.path, each.function) for each in found if isinstance(each.verdict, Rewrite)})


PLACES = _places()


@pytest.mark.parametrize("path", sorted({path for path, _ in PLACES}))
def test_a_file_with_crlf_is_changed_as_any_other(path: str) -> None:
    result = plan(fixture() | {path: _with_crlf(fixture()[path])})

    assert not result.problems
    wanted = contents(planned().final)
    assert contents(result.final) == wanted | {path: _with_crlf(wanted[path])}


@pytest.mark.parametrize(("path", "title"), [place for place in PLACES if place[1]])
def test_a_declaration_in_another_file_of_its_package_is_changed_as_any_other(path: str, title: str) -> None:
    result = plan(_moved(fixture(), path, title))

    assert not result.problems
    wanted, found = contents(planned().final), contents(result.final)
    changed = {name for name in found if found[name] != wanted.get(name) and not name.endswith("_test.go")}
    assert changed <= {path, _beside(path)}
    assert _lines(found[path]) + _lines(found[_beside(path)]) == _lines(wanted[path])


def _with_crlf(data: bytes) -> bytes:
    return data.replace(b"\n", b"\r\n")


def _beside(path: str) -> str:
    """Return a new file that is built as another is."""
    stem = path.removesuffix(".go")
    suffix = next((end for end in ("_linux_test", "_test", "_linux", "_windows") if stem.endswith(end)), "")
    return f"{stem.removesuffix(suffix)}_moved{suffix}.go"


def _moved(files: Files, path: str, title: str) -> Files:
    """Put a declaration, with its comment, into a new file of the package, and let each file import what it uses."""
    tree = Tree(snapshot(files), CACHE)
    data = files[path]
    decls = (decl for decl in tree.decls(path) if isinstance(decl, ast.FuncDecl | ast.TypeDecl))
    moved = next(decl for decl in decls if tree.title_at(path, decl.span.start) == title)
    start = moved.doc.start if moved.doc is not None else moved.span.start
    end = data.index(b"\n", moved.span.end - 1) + 1
    stays = data[:start] + data[end:].removeprefix(b"\n")
    goes = data[: data.index(b"\nimport ") + 1] + _imports(data) + b"\n" + data[start:end]
    return files | {path: _without_unused(stays), _beside(path): _without_unused(goes)}


def _imports(data: bytes) -> bytes:
    found = re.search(rb"^import (\([^)]*\)|[^(\n]*)\n", data, re.MULTILINE)
    return found[0] if found is not None else b""


def _without_unused(data: bytes) -> bytes:
    """Drop the imports that nothing in a file uses."""
    imports = _imports(data)
    rest = data.replace(imports, b"")
    kept = [line for line in imports.splitlines(keepends=True) if _is_needed(line.decode(), rest)]
    return data.replace(imports, b"".join(kept) if any(b'"' in line for line in kept) else b"")


def _is_needed(line: str, rest: bytes) -> bool:
    found = re.search(r'(\w+ )?"(?:.*/)?([^/"]+?)(/v\d+)?"', line)
    if found is None or (found[1] or "").strip() == "_":
        return True
    name = (found[1] or found[2]).strip()
    return re.search(rf"\b{name}\.".encode(), rest) is not None


def _lines(data: bytes) -> Counter[bytes]:
    """Count the lines of a file's declarations."""
    lines = (line.strip() for line in data.replace(_imports(data), b"").splitlines())
    return Counter(line for line in lines if line and not line.startswith((b"package ", b"//go:build", b"// +build")))
