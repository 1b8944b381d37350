"""Advice about indexes and orders of rows, and sorting of files and published snapshots."""

from typing import TYPE_CHECKING

from snaploom.installed import attributes_of

if TYPE_CHECKING:
    from snaploom.plugins.advice.advise import advise_files as advise_files
    from snaploom.plugins.advice.sort import sort_files as sort_files
    from snaploom.plugins.advice.sort import sort_snapshots as sort_snapshots
else:
    __getattr__ = attributes_of(
        __name__,
        {
            "advise_files": "snaploom.plugins.advice.advise:advise_files",
            "sort_files": "snaploom.plugins.advice.sort:sort_files",
            "sort_snapshots": "snaploom.plugins.advice.sort:sort_snapshots",
        },
    )

COMMANDS = (
    (
        "index advise",
        "snaploom.plugins.advice.commands:advise",
        "Recommend indexes and sort orders.",
    ),
    (
        "index sort",
        "snaploom.plugins.advice.commands:sort",
        "Rewrite files so that more are skipped.",
    ),
)
