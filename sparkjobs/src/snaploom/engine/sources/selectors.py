"""Which fields a declaration means: by their coordinate, by their metadata, or by both.

Expressions are searched for in the coordinate, not anchored, in linear time (decision 0031). A
field that any selector of a list selects is selected, and within one selector exclusion wins (rule
W20).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache

from snaploom.models.fieldtransformer import TransformerSelector
from snaploom.models.metadataapplicator import CoordinateSelector
from snaploom.planning.regexes import regex

Selector = CoordinateSelector | TransformerSelector

searched = lru_cache(maxsize=1024)(regex)
"""The regular expressions of a job, each compiled once."""


def is_selected(
    selectors: Iterable[Selector], coordinate: str, metadata: Mapping[str, object]
) -> bool:
    """Whether any of the selectors selects a field.

    Raises:
        RegexError: a pattern is not valid, or cannot be judged for this coordinate.
    """
    return any(_selects(selector, coordinate, metadata) for selector in selectors)


def _selects(selector: Selector, coordinate: str, metadata: Mapping[str, object]) -> bool:
    include, exclude = selector.coordinate_include_regex, selector.coordinate_exclude_regex
    if exclude is not None and searched(exclude).is_found_in(coordinate):
        return False
    if include is not None and not searched(include).is_found_in(coordinate):
        return False
    wanted = selector.metadata if isinstance(selector, TransformerSelector) else None
    return wanted is None or all(
        key in metadata and _text(metadata[key]) == value for key, value in wanted.items()
    )


def _text(value: object) -> str:
    """A value of metadata as declarations write it: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value)
