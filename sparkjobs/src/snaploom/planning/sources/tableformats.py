"""Formats of `hdfsLike` sources that are tables with versions of their own, not files."""

from __future__ import annotations

from collections.abc import Mapping

from snaploom.models.datasource import HdfsLike

TABLE_FORMATS: Mapping[str, str] = {"iceberg": "Iceberg", "delta": "Delta"}
"""The display name of each format."""


def table_format(declared: HdfsLike) -> str | None:
    """The format of a source that is a table, as Spark names it; None for files."""
    name = declared.format.lower()
    return name if name in TABLE_FORMATS else None
