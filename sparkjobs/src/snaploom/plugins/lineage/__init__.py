"""Lineage of runs as OpenLineage."""

from typing import TYPE_CHECKING

from snaploom.installed import attributes_of

if TYPE_CHECKING:
    from snaploom.plugins.lineage.listener import LineageListener as LineageListener
else:
    __getattr__ = attributes_of(
        __name__, {"LineageListener": "snaploom.plugins.lineage.listener:LineageListener"}
    )
