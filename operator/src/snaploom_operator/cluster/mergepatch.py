"""JSON merge patches (RFC 7396)."""

from __future__ import annotations

import json

from pydantic import JsonValue

from snaploom_operator.objects import JsonObject


def difference(before: JsonObject, after: JsonObject) -> dict[str, JsonValue]:
    """The merge patch from one object to another; empty if they are equal.

    Removed members are null. A changed list is replaced as a whole, and null members of `after`
    count as missing: merge patches cannot express more.
    """
    patch: dict[str, JsonValue] = {
        key: None for key, value in before.items() if value is not None and after.get(key) is None
    }
    for key, value in after.items():
        held = before.get(key)
        if isinstance(held, dict) and isinstance(value, dict):
            if inner := difference(held, value):
                patch[key] = inner
        elif value is not None and not _is_same(held, value):
            patch[key] = value
    return patch


def _is_same(before: JsonValue, after: JsonValue) -> bool:
    """As JSON: Python holds True for equal to 1."""
    if isinstance(before, str) or isinstance(after, str):
        return before == after
    return json.dumps(before, sort_keys=True) == json.dumps(after, sort_keys=True)
