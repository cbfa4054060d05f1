"""Find the templates that ship with the tool."""

from __future__ import annotations

from pathlib import Path

from refactor_tool.model import EnvironmentFailure


def load_templates() -> dict[str, str]:
    """Return every `*.j2` by its path below the templates folder, POSIX, sorted; line ends as they are in the file.

    Installed they lie in the package, in a checkout of this project beside it. Raises EnvironmentFailure without them.
    """
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "templates", package.parent / "templates"):
        found = {path.relative_to(folder).as_posix(): path.read_bytes().decode() for path in folder.rglob("*.j2")}
        if found:
            return dict(sorted(found.items()))
    raise EnvironmentFailure("the tool's templates are missing: the installation is incomplete", "install it again")
