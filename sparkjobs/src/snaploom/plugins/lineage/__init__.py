"""Lineage of runs as OpenLineage."""

from typing import TYPE_CHECKING

from snaploom import ondemand

if TYPE_CHECKING:
    from snaploom.plugins.lineage.listener import LineageListener as LineageListener
else:
    __getattr__ = ondemand.attributes_of(
        __name__, {"LineageListener": "snaploom.plugins.lineage.listener:LineageListener"}
    )
