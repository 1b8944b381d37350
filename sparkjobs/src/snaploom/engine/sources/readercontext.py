"""The inputs of a kind of source to open its reader, and the result."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from pyspark.sql import SparkSession

from snaploom.engine.sources.port import SourceReader
from snaploom.listing.sourcefiles import SourceFiles
from snaploom.models.allowances import Allowances
from snaploom.models.times import EpochNanos
from snaploom.planning.sources.declared import DeclaredSource
from snaploom.storage.listingcache import Listings


@dataclass(frozen=True)
class ReaderContext:
    """One run, as readers of sources need it."""

    spark: SparkSession
    """The session, with the settings of `snaploom.engine.settings`."""
    now: EpochNanos
    """The instant of the run: the time of `fromReadTime` snapshots."""
    allow: Allowances
    """Entries that declarations may use beyond the built-in lists."""
    listings: Listings | None
    """Facts that earlier runs learned of files; None to ask all of them."""
    files: SourceFiles
    reader: Callable[[str], SourceReader]
    """From the name of another source to its reader, which all that read it share."""
    resources: ExitStack
    """Closed at the end of the run: connections, and other resources opened once."""


OpenReader = Callable[[DeclaredSource, ReaderContext], SourceReader | None]
"""The reader of a source, at which nothing is listed or read yet; None for other kinds."""
