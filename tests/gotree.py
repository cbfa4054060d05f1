"""Build trees of small Go files for tests."""

from __future__ import annotations

import re

from refactor_tool.gosrc.tree import Tree
from refactor_tool.model import File, Snapshot, Span

MODULE = "example.com/m"


def tree(**files: str) -> Tree:
    """Return the facts of a module: `pkg__util__api` is the file `pkg/util/api.go`, `go_mod` overrides go.mod."""
    contents = {"go.mod": files.pop("go_mod", f"module {MODULE}\n\ngo 1.23\n")}
    contents |= {f"{name.replace('__', '/')}.go": text for name, text in files.items()}
    return of(contents)


def of(contents: dict[str, str]) -> Tree:
    return Tree(Snapshot({path: File(text.encode()) for path, text in contents.items()}))


def place(tree: Tree, path: str, needle: str, nth: int = 0) -> Span:
    """Return the span of the nth occurrence of a text in a file."""
    found = [match.span() for match in re.finditer(re.escape(needle.encode()), tree.data(path))]
    return Span(*found[nth])
