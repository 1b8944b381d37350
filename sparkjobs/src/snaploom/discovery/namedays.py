"""Days in names of files whose folders are year and month: `2026/02/visits-03.parquet`."""

from __future__ import annotations

import re
from calendar import monthrange
from collections import defaultdict
from collections.abc import Sequence

from snaploom.discovery.pathpieces import Kind, ParsedPath, part_of

FEWEST_FILES = 5
"""In one month at least: fewer numbers are as likely those of shops or regions."""
_NUMBERED = frozenset({"part", "chunk", "batch", "shard", "split", "file", "page", "store", "run"})
"""Words behind which a number is none of a day."""


def day_piece(paths: Sequence[ParsedPath]) -> int | None:
    """The place of the piece that is the day of every file; None where it is not known to be one.

    Two digits may as well be the number of a part. They are days where each is one of its month,
    and either some month has all of its days or they are not counted from 1 without a gap. Numbers
    that are the same in every month are none. The paths are of the files of one source, with the
    same pieces.
    """
    pieces = paths[0].pieces
    numbers = [index for index, piece in enumerate(pieces) if piece.kind is Kind.ANY]
    dates = [part_of(piece) for piece in pieces if piece.kind is Kind.PART_OF_DATE]
    is_dated = any(piece.kind is Kind.DATE for piece in pieces)
    if len(numbers) != 1 or dates != ["year", "month"] or is_dated:
        return None
    (place,) = numbers
    words = re.findall(r"[A-Za-z]+", pieces[place - 1].text.rpartition("/")[2]) if place else []
    if words and words[-1].lower() in _NUMBERED:
        return None
    by_month: dict[tuple[int, int], set[int]] = defaultdict(set)
    for path in paths:
        month = path.instant
        if month is None or not re.fullmatch(r"[0-9]{2}", path.values[place]):
            return None
        by_month[month.year, month.month].add(int(path.values[place]))
    return place if _are_days(by_month) else None


def _are_days(by_month: dict[tuple[int, int], set[int]]) -> bool:
    lengths = {month: monthrange(*month)[1] for month in by_month}
    if any(min(days) < 1 or max(days) > lengths[month] for month, days in by_month.items()):
        return False
    if any(len(days) == lengths[month] for month, days in by_month.items()):
        return True
    sets = list(by_month.values())
    is_repeated = len(sets) > 1 and all(days == sets[0] for days in sets)
    has_gaps = any(len(days) < max(days) for days in sets)
    return has_gaps and not is_repeated and max(map(len, sets)) >= FEWEST_FILES
