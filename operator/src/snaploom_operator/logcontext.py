"""Fields of a log line besides its message."""

from __future__ import annotations

from collections.abc import Mapping

from snaploom_operator.objects import Ref

FIELDS = ("resource", "run", "reason")
"""Fields of a line besides its message, in this order."""


def about(resource: Ref, *, reason: str = "") -> Mapping[str, str]:
    """The `extra` of a log line about a resource, with a stable CamelCase reason."""
    return {"resource": str(resource), **({"reason": reason} if reason else {})}
