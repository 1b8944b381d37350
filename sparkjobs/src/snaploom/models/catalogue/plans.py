"""Codes of planning: SL30x."""

from __future__ import annotations

from snaploom.models.catalogue.code import error, warning

PLANNING = (
    error(
        "SL301", "Ambiguous join tree",
        "There are several equally good ways to reach a source from the root.",
        "Give one relationship a lower antiPriority, or exclude sources.",
    ),
    error(
        "SL302", "Source not reachable",
        "No relationship leads from the root to a source, and its pathMissingMode is ERROR.",
        "Add the relationship or the source that the hint names, or set pathMissingMode.",
    ),
    warning(
        "SL303", "Source left out",
        "No relationship leads from the root to a source; its pathMissingMode leaves it out.",
        "Nothing, or add the relationship that the hint names.",
    ),
    error(
        "SL304", "Join tree too deep",
        "A source lies further from the root than maxDepth allows.",
        "Raise maxDepth, or relate the source to one that is nearer to the root.",
    ),
    error(
        "SL305", "Partition shared",
        "Two snapshots would be published into the same partition folder.",
        "Choose a finer timestampFormat; ISO8601_DATE_TIME distinguishes all times.",
    ),
    warning(
        "SL306", "Newest snapshot of an open interval",
        "With preference NEWEST an interval that has not ended is published with what is newest "
        "at that moment, so the result depends on when the run starts.",
        "Set onlyClosedIntervals to true, or prefer OLDEST.",
    ),
    warning(
        "SL307", "Source without snapshots",
        "A source has no snapshot at all: no file matches its globs, or its data is empty.",
        "Check that the data is there, and how the place is spelt.",
    ),
    warning(
        "SL308", "Relationship never used",
        "A relationship could join sources of the output, but the join tree has better ways to all "
        "of them.",
        "Remove it, or lower its antiPriority where it is meant to be used.",
    ),
)  # fmt: skip
