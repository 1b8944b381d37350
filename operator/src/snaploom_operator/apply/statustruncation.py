"""Truncates a status that is too large; the last resort after `statuslimits`.

The largest list loses its last half, repeatedly, until the status fits; lists begin with the most
important items, the newest or those nearest to the root. Conditions are never removed. When all
lists are empty, the longest text loses its last half and ends in an ellipsis.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator

from pydantic import JsonValue

from snaploom_operator.objects import JsonObject
from snaploom_operator.statuslimits import MOST_BYTES

SHORTEST_TEXT = 64
"""Characters below which a text is not truncated: names and times."""
KEPT = "conditions"


def cut_to_size(status: JsonObject, most: int = MOST_BYTES) -> dict[str, JsonValue]:
    """The status, truncated to some bytes of compact JSON."""
    result = copy.deepcopy(dict(status))
    while _size(result) > most and (_halve_list(result) or _halve_text(result)):
        pass
    return result


def _halve_list(status: dict[str, JsonValue]) -> bool:
    lists = [value for _, key, value in _parts(status) if isinstance(value, list) and key != KEPT]
    longest = max(lists, key=_size, default=[])
    is_shorter = bool(longest)
    del longest[len(longest) // 2 :]
    return is_shorter


def _halve_text(status: dict[str, JsonValue]) -> bool:
    texts = [part for part in _parts(status) if isinstance(part[2], str)]
    longest = max(texts, key=lambda part: _size(part[2]), default=None)
    if longest is None or len(str(longest[2])) < SHORTEST_TEXT:
        return False
    holder, key, text = longest
    holder[key] = str(text)[: len(str(text)) // 2 - 1] + "…"
    return True


def _parts(
    value: JsonValue | dict[str, JsonValue],
) -> Iterator[tuple[dict[str, JsonValue], str, JsonValue]]:
    """Every member of every mapping: the mapping, the key, the value."""
    if isinstance(value, list):
        for item in value:
            yield from _parts(item)
    elif isinstance(value, dict):
        for key, member in list(value.items()):
            yield value, key, member
            yield from _parts(member)


def _size(value: JsonValue | dict[str, JsonValue]) -> int:
    return len(
        json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(errors="surrogatepass")
    )
