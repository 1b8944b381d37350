"""Chooses segments to rewrite: the newest ones, as far back as they are small.

Walking from the newest segment back, a segment joins while it is not much larger than all newer
ones together. Each row is therefore rewritten a logarithmic number of times over the life of an
index, and a large old segment is not merged until enough new ones have gathered.
"""

from __future__ import annotations

from collections.abc import Sequence

from snaploom.skipping.stores.port import Segment

GROWTH = 4
"""How many times larger than all newer segments together an older one may be and still join."""

SMALL_ROWS = 10_000
"""A segment of no more rows joins in any case: rewriting it takes milliseconds."""


def rewritten_from(segments: Sequence[Segment]) -> int:
    """Number of the first segment to rewrite; the number of all if nothing is gained."""
    start, newer = len(segments), 0
    for number in reversed(range(len(segments))):
        rows = segments[number].rows
        if rows > max(SMALL_ROWS, GROWTH * newer) and newer:
            break
        start, newer = number, newer + rows
    if any(segment.merges for segment in segments[start:]):
        start = 0  # it completes rows of older segments, which only a whole rewrite can place
    is_one_clean = start == 0 and len(segments) == 1 and not segments[0].removed
    return len(segments) if is_one_clean or len(segments) - start < 2 else start
