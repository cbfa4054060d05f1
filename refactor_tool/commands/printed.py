"""How commands print: `scan` and `plan` as text for people or the JSON document, all with the paint of their output."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from refactor_tool.model import ExitCode, Plan, gravest
from refactor_tool.report.document import as_json, document, exit_code
from refactor_tool.report.text import Paint
from refactor_tool.world.console import colour_allowed

Format: TypeAlias = Literal["text", "json", "jsonl"]


def write(plans: Sequence[Plan], form: Format, render: Callable[[Plan], str]) -> ExitCode:
    """Print every plan in the wanted form, `render` gives the text; return the gravest of their codes."""
    if form == "text":
        sys.stdout.write("\n".join(render(plan) for plan in plans))
    elif form == "jsonl":
        import json

        sys.stdout.write("".join(f"{json.dumps(document(plan))}\n" for plan in plans))
    else:
        documents = [as_json(document(plan)).decode().rstrip("\n") for plan in plans]
        sys.stdout.write(f"{documents[0]}\n" if len(documents) == 1 else f"[{','.join(documents)}]\n")
    sys.stdout.flush()
    return gravest(exit_code(plan) for plan in plans)


def paint() -> Paint:
    """Return the paint that standard output may have."""
    return Paint(colour=colour_allowed(sys.stdout))
