"""Lineage of runs as OpenLineage."""
