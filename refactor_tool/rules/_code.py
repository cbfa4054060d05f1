"""Find the functions that a rule has to look at, converted as far as it looks, and report what it sees there."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Sequence

from refactor_tool.gosrc import ast
from refactor_tool.gosrc.tree import Tree
from refactor_tool.gosrc.walk import Function, Node, trail
from refactor_tool.model import Finding, Manual, Rewrite, Severity, Span
from refactor_tool.record import record

_CROWD = 50


@record
class Site:
    """A place in a function's body that holds what was looked for.

    `decl` has its body. `function` is the innermost function around the place, a literal or `decl`; `outer` leads from
    `decl` to it, and `inside` from its body to the innermost node around the place. In a `crowded` function there are
    so many places that nothing may be looked up in all of it for each.
    """

    path: str
    decl: ast.FuncDecl
    span: Span
    function: Function
    outer: tuple[Node, ...]
    inside: tuple[Node, ...]
    crowded: bool = False

    def nearest(self, *kinds: type[Node]) -> Node | None:
        """Return the innermost node of some kinds around the place, within its function."""
        return next((node for node in reversed(self.inside) if isinstance(node, kinds)), None)


def site_at(path: str, decl: ast.FuncDecl, span: Span, *, crowded: bool = False) -> Site | None:
    """Return the site of a span; None where no function's body holds it."""
    nodes = trail(decl, span)
    for at in range(len(nodes) - 1, -1, -1):
        node = nodes[at]
        if isinstance(node, ast.FuncDecl | ast.FuncLit) and node.body is not None and node.body.span.contains(span):
            return Site(path, decl, span, node, nodes[: at + 1], nodes[at + 1 :], crowded)
    return None


def sites(
    tree: Tree,
    *needles: bytes,
    in_file: Sequence[bytes] = (),
    in_body: Sequence[bytes] = (),
    keep: Callable[[bytes, int], bool] | None = None,
    paths: Collection[str] | None = None,
) -> Iterator[Site]:
    """Yield every place of a needle inside a function of the `sources`, or of `paths` where these are given, in order.

    Only files with any of `in_file` and functions with any of `in_body` are looked at, and only places that `keep`
    agrees to, which gets the file's bytes and the offset.
    """
    for path, decl, places in functions_with(tree, *needles, in_file=in_file, in_body=in_body, keep=keep, paths=paths):
        crowded = len(places) > _CROWD
        whole = tree.function(path, decl)
        for start, end in places:
            found = site_at(path, whole, Span(start, end), crowded=crowded)
            if found is not None:
                yield found


def functions_with(
    tree: Tree,
    *needles: bytes,
    in_file: Sequence[bytes] = (),
    in_body: Sequence[bytes] = (),
    keep: Callable[[bytes, int], bool] | None = None,
    paths: Collection[str] | None = None,
) -> Iterator[tuple[str, ast.FuncDecl, list[tuple[int, int]]]]:
    """Yield functions with needles in their bodies and the places (start, end) of these; bodies are left out."""
    for path in sources(tree, *needles) if paths is None else sorted(paths):
        data = tree.data(path)
        if not all(not words or any(word in data for word in words) for words in (in_file, in_body)):
            continue
        places = [place for place in _places(data, needles) if keep is None or keep(data, place[0])]
        at = 0
        while at < len(places):
            decl = tree.function_at(path, places[at][0])
            if decl is None or decl.body_span is None:
                at += 1
                continue
            body = decl.body_span
            past = bisect_left(places, (body.end,), at + 1)
            inside = [place for place in places[at:past] if place[0] >= body.start]
            if inside and (not in_body or any(word in data[body.start : body.end] for word in in_body)):
                yield path, decl, inside
            at = past


def sources(tree: Tree, *needles: bytes) -> Iterator[str]:
    """Yield the paths of files with any of the needles, tests and generated files left out; nothing is parsed."""
    return iter(tree.files_but(_is_left_out, *needles))


def _is_left_out(path: str, data: bytes) -> bool:
    return is_test(path) or b"Code generated " in data[:256]


def is_test(path: str) -> bool:
    """Tell whether a file only serves tests: what it does at start-up is not what a node does."""
    return path.endswith("_test.go") or path.startswith("tests/")


def hazard(
    rule: str,
    site: Site,
    span: Span,
    message: str,
    verdict: Manual | Rewrite,
    shape: str,
    severity: Severity | None = None,
) -> Finding:
    """Return a rule's finding in a site's function."""
    return Finding(rule, "rule", site.path, span, site.decl.title, verdict, message, shape=shape, severity=severity)


def by_hand(reason: str, instruction: str) -> Manual:
    """Return the verdict of a hazard that only a person can mend; it never holds up the campaign."""
    return Manual(reason, instruction, blocks=False)


def _places(data: bytes, needles: Sequence[bytes]) -> list[tuple[int, int]]:
    out = []
    for needle in needles:
        at = data.find(needle)
        while at >= 0:
            out.append((at, at + len(needle)))
            at = data.find(needle, at + len(needle))
    return sorted(out)
