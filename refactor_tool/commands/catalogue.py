"""What can be read about every id that a check reports."""

from __future__ import annotations

from refactor_tool.codemods import SUITE
from refactor_tool.outcome import RuleInfo


def hazard_ids() -> tuple[str, ...]:
    """Return the ids of the hazard rules."""
    from refactor_tool.rules import RULES

    return tuple(rule.id for rule in RULES)


def campaign() -> tuple[RuleInfo, ...]:
    """Return the codemods in the order of the series, and the audit."""
    codemods = (RuleInfo(codemod.id, codemod.title, codemod.body, codemod.why) for codemod in SUITE)
    audit = RuleInfo(
        "audit",
        "A name of the readiness vocabulary that no codemod knows",
        "Every occurrence of the vocabulary is held against the findings. This one lies in none, so nobody knows"
        " whether it waits for, carries or reports readiness. Look at it; report it if the tool should know the shape.",
        SUITE[0].why,
    )
    return (*codemods, audit)


def hazards() -> tuple[RuleInfo, ...]:
    """Return the hazard rules, those that compare two trees among them."""
    from refactor_tool.rules import RULES

    return tuple(
        RuleInfo(
            rule.id,
            f"{rule.name}: {rule.summary}",
            f"{rule.why.strip()}{f' The tool can {rule.fix}.' if rule.fix else ''}",
            "",
        )
        for rule in RULES
    )
