"""The kinds of sources, one a line. Their readers are in the engine's registry."""

from __future__ import annotations

from snaploom.models.datasource import DataSource
from snaploom.planning.sources.databases.source import DatabaseSource
from snaploom.planning.sources.declared import DeclaredSource
from snaploom.planning.sources.files.source import FileSource
from snaploom.planning.sources.queries.complex import ComplexQuery
from snaploom.planning.sources.queries.simple import SimpleQuery
from snaploom.planning.sources.tables.source import TableSource

KINDS: tuple[type[DeclaredSource], ...] = (
    FileSource,
    TableSource,
    DatabaseSource,
    SimpleQuery,
    ComplexQuery,
)
"""Every source is of exactly one."""


def declared(source: DataSource) -> DeclaredSource:
    """A source, as its kind understands it."""
    return next(found for kind in KINDS if (found := kind.of(source)) is not None)
