"""Readers of the kinds of sources, one a line; the kinds are in planning's registry."""

from __future__ import annotations

from snaploom.engine.sources.databases.readers import open_database
from snaploom.engine.sources.files.readers import open_files
from snaploom.engine.sources.port import SourceReader
from snaploom.engine.sources.queries.complex import open_complex_query
from snaploom.engine.sources.queries.simple import open_simple_query
from snaploom.engine.sources.readercontext import OpenReader, ReaderContext
from snaploom.engine.sources.tables.readers import open_table
from snaploom.planning.sources.declared import DeclaredSource

READERS: tuple[OpenReader, ...] = (
    open_files,
    open_table,
    open_database,
    open_simple_query,
    open_complex_query,
)


def open_declared(source: DeclaredSource, context: ReaderContext) -> SourceReader:
    """The reader of a source; nothing is listed or read yet."""
    readers = (open_source(source, context) for open_source in READERS)
    return next(reader for reader in readers if reader is not None)
