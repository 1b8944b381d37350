"""Size limits of statuses (rule R13).

Every part has a budget of its own, so that one part is never cut because another one grew: the same
decision always gives the same status.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TypeVar

from snaploom.models.base import ApiModel

MOST_BYTES = 32 * 1024
"""Of a whole status, as JSON."""
_MORE = "…"

_Item = TypeVar("_Item")
_Model = TypeVar("_Model", bound=ApiModel)


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


def fit_items(items: Iterable[_Model], most: int) -> tuple[_Model, ...]:
    """The first models that fit into some bytes of JSON."""
    return _fitting(items, most, lambda item: len(item.dump_json().encode()))


def fit_texts(texts: Iterable[str], most: int, most_each: int) -> tuple[str, ...]:
    """The first texts, each truncated, that fit into some bytes of JSON."""
    return _fitting((fit_text(text, most_each) for text in texts), most, _bytes)


def _fitting(items: Iterable[_Item], most: int, size: Callable[[_Item], int]) -> tuple[_Item, ...]:
    kept: list[_Item] = []
    for item in items:
        most -= size(item) + 1
        if most < 0:
            break
        kept.append(item)
    return tuple(kept)


def joined(*parts: str) -> str:
    """The parts that are not empty, separated by colons."""
    return ": ".join(part for part in parts if part)


def _bytes(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogatepass"))
