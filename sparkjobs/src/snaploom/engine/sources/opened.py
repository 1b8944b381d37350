"""From declared sources to their readers, each opened once a run.

A source may be read in several places: as a node of the tree, and by virtual sources under one
alias or more. All of them share its reader, and with it what the reader has listed.

What a snapshot was read from is looked at again before it is published. Where all of it is as it
was listed, before anything was read, there was a moment at which all sources were as they were
read: after the last of them was listed, and before the first was looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace

from pyspark.sql import SparkSession

from snaploom.engine.hadoopfiles import HadoopFiles
from snaploom.engine.sources.declaredcolumns import ShapedReader
from snaploom.engine.sources.port import (
    Listed,
    SourceFrame,
    SourceReader,
    change_of,
    changed,
)
from snaploom.engine.sources.readercontext import ReaderContext
from snaploom.engine.sources.registry import open_declared
from snaploom.hadoop.client import client_of
from snaploom.listing.sourcefiles import SourceFiles
from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.datasource import DataSource
from snaploom.models.times import EpochNanos
from snaploom.planning.bundle import Bundle
from snaploom.planning.sources.databases.source import DatabaseSource
from snaploom.planning.sources.registry import declared
from snaploom.storage.listingcache import Listings


class Sources:
    """The readers of one run."""

    def __init__(
        self,
        spark: SparkSession,
        bundle: Bundle,
        now: EpochNanos,
        listings: Listings | None = None,
        allow: Allowances = NO_ALLOWANCES,
        files: SourceFiles | None = None,
    ) -> None:
        """Nothing is opened yet.

        Args:
            spark: the session, with the settings of `snaploom.engine.settings`.
            bundle: has the sources and all that they read; validated.
            now: the instant of the run: the time of `fromReadTime` snapshots.
            listings: facts that earlier runs learned of files; None to ask all of them.
            allow: entries that declarations may use beyond the built-in lists.
            files: files listed before there was a session.
        """
        self._bundle = bundle
        self._resources = ExitStack()
        hadoop = HadoopFiles(client_of(spark))
        listed = SourceFiles(hadoop) if files is None else files.asking(hadoop)
        self._context = ReaderContext(
            spark, now, allow, listings, listed, self.reader, self._resources
        )
        self._opened: dict[str, SourceReader] = {}
        self._applicators = {item.name: item for item in bundle.metadata_applicators}
        self._transformers = {item.name: item for item in bundle.field_transformers}

    def reader(self, name: str) -> SourceReader:
        """The reader of one source; nothing is listed or read yet."""
        if name not in self._opened:
            self._opened[name] = self._shaped(self._bundle.source(name))
        return self._opened[name]

    def look_again(self, frames: Iterable[SourceFrame], *, had_moment: bool = False) -> None:
        """Make sure that sources are as they were listed; one more listing, and no read of data.

        With `had_moment` the snapshots were fixed at one moment already, after all was listed: then
        only their presence is checked, since files that came beside them are later.

        Raises:
            SourceChanged: they are not.
        """
        now = SourceFiles(self._context.files.others)
        looked = (change_of(each, now) for each in listed_for(frames))
        found = [change for change in looked if change is not None]
        changes = [each for each in found if each.is_of_read or not had_moment]
        if changes:
            raise changed(changes)

    def list_again(self) -> None:
        """Forget the listed snapshots; databases keep the moment that they have fixed."""
        self._context = replace(self._context, files=SourceFiles(self._context.files.others))
        self._opened = {
            name: reader
            for name, reader in self._opened.items()
            if isinstance(declared(self._bundle.source(name)), DatabaseSource)
        }

    def close(self) -> None:
        """Close connections to databases; frames of their tables cannot be read any more."""
        self._resources.close()

    def _shaped(self, source: DataSource) -> SourceReader:
        known, variant = declared(source), source.spec.variant
        return ShapedReader(
            open_declared(known, self._context),
            known.field,
            tuple(self._transformers[used] for used in variant.field_transformers),
            tuple(self._applicators[used] for used in variant.metadata_applicators),
        )


def listed_for(frames: Iterable[SourceFrame]) -> tuple[Listed, ...]:
    """Return the listings of frames and of those that they are queries over; each once."""
    found: dict[int, Listed] = {}
    for frame in frames:
        below = listed_for(frame.below.values())
        found |= {id(each): each for each in (frame.listed, *below) if each is not None}
    return tuple(found.values())


def open_source(
    spark: SparkSession,
    bundle: Bundle,
    name: str,
    now: EpochNanos,
    allow: Allowances = NO_ALLOWANCES,
) -> SourceReader:
    """The reader of one source by itself; a run that reads several opens `Sources`."""
    return Sources(spark, bundle, now, allow=allow).reader(name)
