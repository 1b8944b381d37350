"""Kinds of sources: each declared, listed and read in one package."""

from typing import TYPE_CHECKING

from snaploom.installed import attributes_of

if TYPE_CHECKING:
    from snaploom.sources.files.footers import column_snapshots as column_snapshots
else:
    __getattr__ = attributes_of(
        __name__, {"column_snapshots": "snaploom.sources.files.footers:column_snapshots"}
    )
