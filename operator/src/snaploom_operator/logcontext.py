"""What a log line is about: fields besides its message."""

from __future__ import annotations

from collections.abc import Mapping

from snaploom_operator.objects import Ref

FIELDS = ("resource", "run", "reason")
"""Fields of a line besides its message, in this order."""


def about(resource: Ref | None = None, *, run: str = "", reason: str = "") -> Mapping[str, str]:
    """The `extra` of a log line.

    Args:
        resource: the resource.
        run: name of the run.
        reason: stable CamelCase reason.
    """
    fields = {
        "resource": str(resource) if resource is not None else "",
        "run": run,
        "reason": reason,
    }
    return {key: value for key, value in fields.items() if value}
