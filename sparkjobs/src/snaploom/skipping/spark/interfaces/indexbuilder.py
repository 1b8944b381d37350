"""The Python interface: skipping indexes built verb by verb, with the verbs of the peers.

```python
skipping_index(spark, location="s3://lake/indexes").on_table("flights").add_partitions(
    "year"
).add_min_max("price").add_value_set("carrier", limit=50).build()

flights = skipping_index(spark).on_table("flights")
flights.refresh("AUTO")
flights.describe()
```
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from pyspark.sql import SparkSession

from snaploom.errors import IndexNotPossible
from snaploom.models.skippingindex import Index, RefreshMode
from snaploom.skipping.lifecycle.declaration import Declaration
from snaploom.skipping.lifecycle.description import Description
from snaploom.skipping.lifecycle.operations import RefreshResult
from snaploom.skipping.spark.interfaces.enable import is_enabled, statistics
from snaploom.skipping.spark.interfaces.manage import SkippingIndexes
from snaploom.skipping.statements.syntax import PathName, StorePlace, Subject, parse_subject
from snaploom.skipping.stores.port import NEVER, StoredState
from snaploom.skipping.stores.usage import Recorded

Parameter = str | int | float | bool
"""A parameter of an index, as Python writes it."""


@dataclass(frozen=True)
class IndexBuilder:
    """Declaration so far; every verb gives a new builder, so that one may serve several."""

    spark: SparkSession
    declaration: Declaration = field(default_factory=lambda: Declaration(()))
    subject: Subject | None = None
    place: StorePlace = field(default_factory=StorePlace)

    def on_table(self, name: str) -> Self:
        """Index a table: `table`, `database.table` or `catalog.database.table`."""
        return replace(self, subject=parse_subject(name))

    def on_path(self, uri: str, format: str = "parquet", **options: str) -> Self:  # noqa: A002
        """Index files below a path, read in a format with options of Spark's reader."""
        return replace(self, subject=PathName(format, uri, tuple(sorted(options.items()))))

    def filter_by(self, where: str) -> Self:
        """Index only files that a condition over partition columns chooses (rule S23)."""
        return replace(self, declaration=replace(self.declaration, where=where))

    def add_partitions(self, *columns: str) -> Self:
        """Keep the value of partition columns."""
        return self._each("PARTITION", columns, {})

    def add_min_max(self, *columns: str) -> Self:
        """Keep the least and greatest value of columns."""
        return self._each("MIN_MAX", columns, {})

    def add_value_set(self, *columns: str, **parameters: Parameter) -> Self:
        """Keep all values of columns, up to `limit` of them."""
        return self._each("VALUE_SET", columns, parameters)

    def add_bloom_filter(self, *columns: str, **parameters: Parameter) -> Self:
        """Keep a Bloom filter over the values of columns."""
        return self._each("BLOOM_FILTER", columns, parameters)

    def add(self, type_name: str, *columns: str, **parameters: Parameter) -> Self:
        """Keep one index of any type about one column, or the several that its type takes."""
        return self._add(
            Index(
                type=type_name.upper(),
                column=columns[0] if len(columns) == 1 else None,
                columns=columns if len(columns) != 1 else None,
                parameters=_texts(parameters),
            )
        )

    def add_expression(self, type_name: str, sql: str, **parameters: Parameter) -> Self:
        """Keep one index of any type about an expression such as `lower(carrier)`."""
        return self._add(
            Index(type=type_name.upper(), expression=sql, parameters=_texts(parameters))
        )

    def stored(self, location: str = "", form: str = "NATIVE") -> Self:
        """Set the folder and the form in which the index is kept."""
        declared = replace(self.declaration, form=form)
        return replace(self, declaration=declared, place=StorePlace(location, form))

    def encrypted(
        self, footer_key_label: str, key_label: str = "", plaintext_footer: bool = False
    ) -> Self:
        """Encrypt the index by keys of the session's key management service.

        Args:
            footer_key_label: key of the footers, and of the names of files.
            key_label: key of the indexes added so far; empty for none.
            plaintext_footer: whether footers stay readable without a key.
        """
        labelled = tuple(
            index.model_copy(update={"key_label": key_label}) if key_label else index
            for index in self.declaration.indexes
        )
        declared = replace(
            self.declaration,
            indexes=labelled,
            footer_key_label=footer_key_label,
            plaintext_footer=plaintext_footer,
        )
        return replace(self, declaration=declared)

    def refreshed(self, mode: RefreshMode | str) -> Self:
        """Set the refresh mode: FULL, INCREMENTAL or AUTO."""
        return replace(self, declaration=replace(self.declaration, mode=RefreshMode(mode)))

    def create(self, *, ignore_if_exists: bool = False) -> StoredState:
        """Create the declared index; nothing is indexed before the first refresh.

        Raises:
            SkippingError: it cannot be created; nothing is.
        """
        subject = self._subject()
        if not self.declaration.indexes:
            raise IndexNotPossible(
                "it is not declared what is to be kept about the files",
                found="no add_...",
                expected="one or more",
                hint="add at least one index before create()",
            )
        return SkippingIndexes(self.spark).create(
            subject, self.declaration, self.place, ignore_if_exists=ignore_if_exists
        )

    def build(self, *, ignore_if_exists: bool = False) -> RefreshResult:
        """Create the declared index, and index all files.

        Raises:
            SkippingError: it cannot be created, or none of the files could be indexed.
        """
        self.create(ignore_if_exists=ignore_if_exists)
        return self.refresh()

    def refresh(self, mode: RefreshMode | str | None = None) -> RefreshResult:
        """Bring the index up to date, in a mode or that of its declaration.

        Raises:
            IndexNotFound: there is none.
            SkippingError: it cannot be refreshed; what was there before stays in use.
        """
        asked = None if mode is None else RefreshMode(mode)
        return self._indexes.refresh(self._subject(), asked)

    def describe(self) -> Description:
        """Describe the index of the table or path.

        With the files that it covers, and when queries last used it: those of this application, and
        those of others that wrote it down.

        Raises:
            IndexNotFound: there is none.
        """
        described = self._indexes.describe(self._subject())
        if not is_enabled(self.spark):
            return described
        use = statistics(self.spark).indexes.get(described.uri)
        if use is None:
            return described
        return replace(described, last_used=max(use.last_used, described.last_used or NEVER))

    def usage(self) -> Recorded | None:
        """Usage of the index by queries; None where the store keeps none (OpenSearch).

        Raises:
            IndexNotFound: there is none.
        """
        return self._indexes.usage(self._subject())

    def drop(self) -> StoredState:
        """Delete the index of the table or path; `vacuum` removes its files.

        Raises:
            IndexNotFound: there is none.
            IndexOwned: a resource owns it.
        """
        return self._indexes.drop(self._subject())

    def vacuum(self) -> StoredState:
        """Remove the files of the index of the table or path, after it was dropped.

        Raises:
            IndexNotFound: nothing was dropped.
            IndexOwned: a resource owns it.
        """
        return self._indexes.vacuum(self._subject())

    def recover(self) -> StoredState:
        """Clean up after an operation that failed or died.

        Raises:
            IndexNotFound: there is none.
            IndexBusy: the operation is alive.
        """
        return self._indexes.recover(self._subject())

    @property
    def _indexes(self) -> SkippingIndexes:
        return skipping_indexes(self.spark, self.place.location)

    def _subject(self) -> Subject:
        if self.subject is None:
            raise IndexNotPossible(
                "it is not declared which files are meant",
                found="neither on_table nor on_path",
                expected="one of the two",
                hint="name a table or a path first",
            )
        return self.subject

    def _each(
        self, type_name: str, columns: tuple[str, ...], parameters: Mapping[str, Parameter]
    ) -> Self:
        kept = _texts(parameters)
        return self._add(
            *(Index(type=type_name, column=column, parameters=kept) for column in columns)
        )

    def _add(self, *indexes: Index) -> Self:
        all_indexes = (*self.declaration.indexes, *indexes)
        return replace(self, declaration=replace(self.declaration, indexes=all_indexes))


def skipping_index(spark: SparkSession, location: str = "") -> IndexBuilder:
    """Begin to build an index below a folder; by default the session's."""
    return IndexBuilder(spark, place=StorePlace(location))


def skipping_indexes(spark: SparkSession, location: str = "") -> SkippingIndexes:
    """List or use the indexes below a folder; by default the session's."""
    return SkippingIndexes(spark, location)


def _texts(parameters: Mapping[str, Parameter]) -> dict[str, str]:
    return {name: _text(value) for name, value in parameters.items()}


def _text(value: Parameter) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
