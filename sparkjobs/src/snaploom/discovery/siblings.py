"""Files that are parts of one table, though names differ in a word: orders_north, orders_south.

Names show that only with what is in the files: the same columns, and a key that no two of them
share. Lists of codes have the same columns too, but begin with the same numbers or are called for
what they list (`order_status`, `payment_status`), so that the last word is theirs in common.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations, takewhile

import numpy as np

from snaploom.discovery.keys import FEWEST_ROWS, single_keys
from snaploom.discovery.layout import Layout, merged_layout, takes_others
from snaploom.discovery.names import column_words, words_of
from snaploom.discovery.pathpieces import Kind
from snaploom.discovery.profiles import SourceProfile

_FEWEST_COLUMNS = 4
"""Columns from which two tables do not have the same ones by chance: lists have code and name."""
_BOUNDARY = re.compile(r"[_\-. /]")


def siblings_of(profiles: Iterable[SourceProfile]) -> tuple[tuple[Layout, tuple[str, ...]], ...]:
    """Layouts of files that are parts of one table, each with the names of the sources it joins."""
    groups: dict[object, list[tuple[Layout, SourceProfile]]] = defaultdict(list)
    for profile in profiles:
        if isinstance(profile.origin, Layout) and len(profile.columns) >= _FEWEST_COLUMNS:
            columns = tuple(column.name.casefold() for column in profile.columns)
            place = profile.origin.files[0].place.uri
            options = tuple(sorted(profile.format_options.items()))
            key = (place, profile.origin.data_format, columns, options)
            groups[key].append((profile.origin, profile))
    files = [f for p in profiles if isinstance(p.origin, Layout) for f in p.origin.files]
    found = []
    for members in groups.values():
        layouts = [layout for layout, _ in members]
        pieces = _common_pieces(layouts)
        if pieces is None or not _are_parts([profile for _, profile in members]):
            continue
        merged = merged_layout(layouts, *pieces)
        if not takes_others(merged, (f for f in files if f.place == layouts[0].files[0].place)):
            found.append((merged, tuple(profile.name for _, profile in members)))
    return tuple(found)


def _common_pieces(layouts: Sequence[Layout]) -> tuple[int, str, str] | None:
    """The one text in which names differ, by its place, and the text around the word that differs.

    None where they differ in more.
    """
    if len(layouts) < 2 or len({len(layout.pieces) for layout in layouts}) > 1:
        return None
    rows = list(zip(*(layout.pieces for layout in layouts), strict=True))
    differing = [index for index, row in enumerate(rows) if len(set(row)) > 1]
    if len(differing) != 1 or any(piece.kind is not Kind.TEXT for piece in rows[differing[0]]):
        return None
    texts = [piece.text for piece in rows[differing[0]]]
    before = _common_start(texts)
    behind = _common_start([text[len(before) :][::-1] for text in texts])[::-1]
    before = before[: max((m.end() for m in _BOUNDARY.finditer(before)), default=0)]
    start = next((m.start() for m in _BOUNDARY.finditer(behind)), len(behind))
    behind = behind[start:]
    variants = [text[len(before) : len(text) - len(behind)] for text in texts]
    if not all(variants) or any(_BOUNDARY.search(variant) for variant in variants):
        return None
    is_folder = behind.startswith("/")
    is_suffix = bool(before) and not before.endswith("/") and not words_of(_stem(behind))
    return (differing[0], before, behind) if is_folder or is_suffix else None


def _common_start(texts: Sequence[str]) -> str:
    letters = takewhile(lambda row: len(set(row)) == 1, zip(*texts, strict=False))
    return "".join(row[0] for row in letters)


def _stem(behind: str) -> str:
    return behind.partition(".")[0]


def _are_parts(profiles: Sequence[SourceProfile]) -> bool:
    """Whether all have the same key, of which no two have a value in common."""
    if any(len(profile.snapshot) < FEWEST_ROWS for profile in profiles):
        return False
    keys = {key.columns[0] for profile in profiles for key in single_keys(profile)[:1]}
    if len(keys) != 1 or not all(single_keys(profile) for profile in profiles):
        return False
    (key,) = keys
    if not column_words(key, profiles[0].prefix).has_id:
        return False
    sketches = [profile.column(key).sketch.kept for profile in profiles]
    return not any(
        np.isin(one, other, assume_unique=True).any() for one, other in combinations(sketches, 2)
    )
