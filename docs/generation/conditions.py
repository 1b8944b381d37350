"""The page of conditions: their types, and every reason that one can have."""

from __future__ import annotations

from generation.markdown import NOTE, meanings
from generation.reasons import reasons_table
from snaploom.models.attributedocs import member_docs
from snaploom_operator.conditions import ConditionType, Reason


def conditions_page() -> str:
    """The page of `status.conditions`."""
    return "\n".join(
        [
            "# Conditions\n",
            NOTE,
            "What stands in `status.conditions` of every resource in a cluster, and what events "
            "are about. [The operator](../concepts/operator.md) describes how they follow each "
            "other.\n",
            "## Types\n",
            "`Ready` is always there. `Reconciling` and `Stalled` are there only while they are "
            "true, and never both.\n",
            meanings(ConditionType),
            "## Reasons\n",
            "A failed run has a reason of its own in `status.lastRun`: "
            "[Reasons](reasons.md) lists those. Each leads to what to do about it.\n",
            reasons_table(member_docs(Reason)),
        ]
    )
