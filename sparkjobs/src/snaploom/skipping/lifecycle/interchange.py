"""Exchange of index metadata with other programs, offered by a package that knows their files.

It is registered in the entry-point group `snaploom.skipping.interchange` under the name of the
format.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Protocol, cast

import pyarrow as pa

from snaploom.errors import IndexNotPossible
from snaploom.files.objectstore import ObjectStore
from snaploom.installed import load_registered
from snaploom.models.skippingindex import ParquetForm
from snaploom.skipping.core.definition import IndexDefinition, Target
from snaploom.skipping.formats.parquetfiles import ParquetKeys
from snaploom.skipping.lifecycle.declaration import IndexableTarget, Progress
from snaploom.skipping.stores.port import IndexStore, StoredState

ENTRY_POINTS = "snaploom.skipping.interchange"
"""Entry-point group: the name is the format's, the value an `Interchange`."""

EXCHANGED = ParquetForm.XSKIPPER.value
"""The format that commands import and export."""


@dataclass(frozen=True)
class Written:
    """Result of an export."""

    files: int
    """Part files of the store now."""
    rows: int
    left_out: int
    """Files without one, because some index has nothing about them (or not in this form)."""
    bytes: int
    """Size of the part files."""


@dataclass(frozen=True)
class Imported:
    """Rows and indexes of an import."""

    indexes: tuple[IndexDefinition, ...]
    rows: pa.Table
    """Rows as `snaploom.skipping.core.filetable` describes them."""
    rejected: tuple[str, ...]
    """Paths of files whose rows do not follow from the files themselves."""
    unmatched: int
    """Rows about files that are not there, or not as they were."""
    not_covered: int
    """Files of the listing about which the store has no row."""
    refused: tuple[str, ...]
    """Indexes and rows that were not read, and why."""

    @property
    def left_out(self) -> list[str]:
        """Number of rows and files left out, with reasons, for people."""
        counts = (
            (len(self.rejected), "rows contradict their files"),
            (self.unmatched, "rows are about files that are not there as they were"),
            (self.not_covered, "files have no row"),
        )
        return [f"{count} {what}" for count, what in counts if count]


@dataclass(frozen=True)
class ImportResult:
    """Result of an import."""

    imported: Imported
    """Rows that were taken over, and those that were not."""
    state: StoredState

    def __str__(self) -> str:
        found = self.imported
        labels = ", ".join(index.label for index in found.indexes)
        parts = [f"imported {labels} about {found.rows.num_rows} files", *found.left_out]
        return "; ".join([*parts, *(f"not read: {why}" for why in found.refused)])


@dataclass(frozen=True)
class CatalogProperties:
    """Properties that may name a location; empty for files that are no table."""

    table: Mapping[str, str] = field(default_factory=dict)
    database: Mapping[str, str] = field(default_factory=dict)


Import = Callable[[IndexStore, IndexableTarget], ImportResult]
"""Makes a new index from a metadata store that was read, in one commit.

Raises `IndexAlreadyExists`, `KeyUnavailable`, and `IndexNotPossible` if the metadata are about
another table, or no index or no row of theirs can be taken over; nothing is left then.
"""


class Interchange(Protocol):
    """A format of index metadata."""

    @property
    def property_names(self) -> tuple[str, ...]:
        """Properties of tables and databases that name a location."""

    def base(self, properties: CatalogProperties) -> str:
        """The folder of a table's indexes by properties; empty for none."""

    def find(
        self,
        target: Target,
        directory: str,
        properties: CatalogProperties,
        opened: Callable[[str], ObjectStore],
        keys: ParquetKeys | None,
        *,
        is_trusted: bool,
        progress: Progress,
    ) -> Import:
        """The metadata store of a target.

        Args:
            target: target of the metadata.
            directory: the store, or a folder with the stores of many tables; empty for the one that
                properties name.
            properties: of the target's table.
            opened: opens a folder.
            keys: for encrypted stores.
            is_trusted: whether values are believed; without, each row is compared with its file.
                Rows about files that are not there as they were are never taken.
            progress: called for files compared.

        Raises:
            IndexNotFound: there is none.
            IndexUnreadable: it is damaged, or of a newer version.
            KeyUnavailable: it is encrypted, and a key is unavailable.
        """

    def export(self, store: IndexStore, folder: ObjectStore, keys: ParquetKeys | None) -> Written:
        """Write the rows of an index as a metadata store; the index stays as it is.

        Raises:
            IndexNotFound: there is no index.
            IndexNotPossible: the format cannot hold it, or the folder is another table's.
            IndexUnreadable: the folder holds something else, which is left as it is.
            KeyUnavailable: the index is encrypted, and a key is unavailable.
        """


def registered_interchange() -> Interchange | None:
    """The format that commands import and export; None where it is not registered."""
    found = [entry for entry in entry_points(group=ENTRY_POINTS) if entry.name == EXCHANGED]
    return cast(Interchange, load_registered(found[0], "the format")) if found else None


def interchange() -> Interchange:
    """The format that commands import and export; `IndexNotPossible` if there is none."""
    found = registered_interchange()
    if found is None:
        raise IndexNotPossible(
            f"metadata of the format {EXCHANGED} are neither imported nor exported here",
            found="no package that reads and writes them",
            expected=f"one in the entry-point group {ENTRY_POINTS}",
            hint="install the package that registers it; Snaploom's own is snaploom.plugins",
        )
    return found
