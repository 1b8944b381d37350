"""Size limits of statuses (rule R13).

Every part has a budget of its own, so that one part is never cut because another one grew: the same
decision always gives the same status.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TypeVar

from snaploom.models.base import ApiModel

MOST_BYTES = 32 * 1024
"""Of a whole status, as JSON."""
_MORE = "…"

_Item = TypeVar("_Item", bound=ApiModel)


def fit_text(text: str, most: int) -> str:
    """A text, truncated to some bytes of JSON; truncated texts end in an ellipsis."""
    if len(text) * 6 <= most or _bytes(text) <= most:  # "\\u0000" is the longest form
        return text
    low, high = 0, min(len(text), most)
    while low < high:
        middle = (low + high + 1) // 2
        if _bytes(text[:middle] + _MORE) <= most:
            low = middle
        else:
            high = middle - 1
    return text[:low] + _MORE


def fit_items(items: Iterable[_Item], most: int) -> tuple[_Item, ...]:
    """The first models that fit into some bytes of JSON."""
    kept: list[_Item] = []
    left = most
    for item in items:
        left -= len(item.dump_json().encode()) + 1
        if left < 0:
            break
        kept.append(item)
    return tuple(kept)


def fit_texts(texts: Iterable[str], most: int, most_each: int) -> tuple[str, ...]:
    """The first texts, each truncated, that fit into some bytes of JSON."""
    kept: list[str] = []
    left = most
    for text in texts:
        cut = fit_text(text, most_each)
        left -= _bytes(cut) + 1
        if left < 0:
            break
        kept.append(cut)
    return tuple(kept)


def joined(*parts: str) -> str:
    """The parts that are not empty, separated by colons."""
    return ": ".join(part for part in parts if part)


def _bytes(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogatepass"))
