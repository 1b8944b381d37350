"""The places in which indexes are kept, and the ways in which they come there.

All must give the answers that Spark gives without them. A home that cannot hold an index holds
bounds of its columns instead, so that every home is asked the same conditions.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession
from support.skipping.onequalsoff import IndexHome, IndexOf, IndexSet
from support.skipping.prooffacts import Facts, facts_of
from support.skipping.proofmetadata import MetadataWriter, random_faults
from support.skipping.prooftables import ProofTable
from support.skipping.xskipperfiles import JavaBlooms

from snaploom.errors import IndexNotFound
from snaploom.skipping.lifecycle.interchange import ImportResult
from snaploom.skipping.spark.interfaces.indexbuilder import skipping_index
from snaploom.skipping.spark.interfaces.manage import SkippingIndexes
from snaploom.skipping.statements.syntax import Subject

_numbers = itertools.count()

_BLOOM_TYPES = frozenset({"tinyint", "smallint", "int", "bigint", "string"})
_STORED_KINDS = ("MIN_MAX", "VALUE_SET", "BLOOM_FILTER")


class FolderHome:
    """Folders, in our own form."""

    form = "NATIVE"

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def held(self, table: ProofTable, indexes: IndexSet) -> IndexSet:
        """Everything."""
        return indexes

    def build(self, spark: SparkSession, table: ProofTable, indexes: IndexSet) -> str:
        """Declare and refresh an index."""
        location = self.new_location()
        builder = table.subject(skipping_index(spark)).stored(location, self.form)
        for index in indexes.indexes:
            builder = index.add_to(builder)
        if indexes.where:
            builder = builder.filter_by(indexes.where)
        builder.build()
        return location

    def new_location(self) -> str:
        """A place that has no index yet."""
        return str(self._folder / f"home-{next(_numbers)}")


class XskipperHome(FolderHome):
    """Folders, with a metadata store of version 4 beside our own."""

    form = "XSKIPPER"

    def held(self, table: ProofTable, indexes: IndexSet) -> IndexSet:
        """What version 4 has a form for."""
        return replace(indexes, indexes=_stored(table, indexes.indexes, ()))


class ExportedHome(XskipperHome):
    """What we write as version 4, taken back as it is: our rows must be right for others, too."""

    def build(self, spark: SparkSession, table: ProofTable, indexes: IndexSet) -> str:
        """Build, and import what was written beside it."""
        (part,) = Path(super().build(spark, table, indexes)).glob("*/part-*.parquet")
        location = self.new_location()
        indexes_of = SkippingIndexes(spark, location)
        indexes_of.import_(subject_of(spark, table), str(part.parent), is_trusted=True)
        return location


class OpenSearchHome(FolderHome):
    """A cluster, or what behaves like one. It has one index of a table at a time."""

    def __init__(self, port: int) -> None:
        self._location = f"opensearch://127.0.0.1:{port}"

    def build(self, spark: SparkSession, table: ProofTable, indexes: IndexSet) -> str:
        """Remove the former index, declare and refresh another one."""
        indexes_of, subject = SkippingIndexes(spark, self._location), subject_of(spark, table)
        try:
            indexes_of.drop(subject)
            indexes_of.vacuum(subject)
        except IndexNotFound:
            pass
        return super().build(spark, table, indexes)

    def new_location(self) -> str:
        """The cluster."""
        return self._location


class ImportedHome:
    """Metadata stores of the reference, imported.

    Trusted ones hold what is right. Those that are verified have the faults of the reference.
    """

    def __init__(self, folder: Path, blooms: JavaBlooms, version: int, is_trusted: bool) -> None:
        self._folder = folder
        self._writer = MetadataWriter(blooms, version)
        self._is_trusted = is_trusted
        self._facts: dict[str, Facts] = {}
        self.imports: list[ImportResult] = []
        """What imports did."""

    def held(self, table: ProofTable, indexes: IndexSet) -> IndexSet:
        """Bounds, sets and blooms of whole files; version 0 does not contain the day of a date."""
        unknown = ("date",) if self._writer.version == 0 else ()
        kept = _stored(table, indexes.indexes, unknown)
        return IndexSet(
            indexes.label, tuple(each for each in kept if each.type_name in _STORED_KINDS)
        )

    def build(self, spark: SparkSession, table: ProofTable, indexes: IndexSet) -> str:
        """Write a store, and import it."""
        number = next(_numbers)
        store, location = self._folder / f"store-{number}", str(self._folder / f"home-{number}")
        if table.path not in self._facts:
            self._facts[table.path] = facts_of(spark, table)
        fault = None if self._is_trusted else random_faults(random.Random(f"{table.name} {number}"))
        self._writer.write(
            store,
            f"default.{table.name}" if table.by_catalog else table.path,
            self._facts[table.path],
            indexes.indexes,
            fault,
            table.partition_columns,
        )
        indexes_of, subject = SkippingIndexes(spark, location), subject_of(spark, table)
        self.imports.append(indexes_of.import_(subject, str(store), is_trusted=self._is_trusted))
        return location


def subject_of(spark: SparkSession, table: ProofTable) -> Subject:
    """What a table's index is about."""
    subject = table.subject(skipping_index(spark)).subject
    if subject is None:
        raise ValueError("an index has a subject")
    return subject


def held_sets(home: IndexHome, table: ProofTable, sets: Iterable[IndexSet]) -> list[IndexSet]:
    """Index sets as a home can hold them; all that it cannot hold whole make one set together."""
    whole: list[IndexSet] = []
    changed: list[IndexOf] = []
    for each in sets:
        held = home.held(table, each)
        if held == each:
            whole.append(each)
        elif each.label in _STORED_KINDS:
            whole.append(held)
        else:
            changed += held.indexes
    if changed:
        whole.append(IndexSet("REDUCED", _once(changed)))
    return whole


def _stored(
    table: ProofTable, indexes: Sequence[IndexOf], unknown: Sequence[str]
) -> tuple[IndexOf, ...]:
    """Indexes that a metadata store has a form for, and bounds for the others.

    Args:
        table: has the types.
        indexes: what is wanted.
        unknown: types of which the store has no values.
    """
    refused = ("timestamp_ntz", *unknown)
    kept: list[IndexOf] = []
    for index in indexes:
        types = [table.columns[name] for name in index.columns]
        is_kind = index.type_name in (*_STORED_KINDS, "PARTITION") and not index.expression
        is_bloom = index.type_name == "BLOOM_FILTER"
        if is_kind and not set(types) & set(refused) and (not is_bloom or types[0] in _BLOOM_TYPES):
            kept.append(index)
            continue
        kept += [
            IndexOf("MIN_MAX", (name,))
            for name, data_type in zip(index.columns, types, strict=True)
            if data_type not in refused
        ]
    return _once(kept)


def _once(indexes: Iterable[IndexOf]) -> tuple[IndexOf, ...]:
    """One index of a type about each column: a store has one column for them."""
    return tuple({(each.type_name, each.columns): each for each in indexes}.values())
