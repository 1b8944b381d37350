"""`DeclaredSource`: the questions that a source of any kind answers before it is read.

Nobody else looks into the fields of a DataSource's spec. A kind answers what differs from the
defaults, which are those of a source without files, credentials, or declared columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from snaploom.models.datasource import Credentials, DataSource, HdfsLike, SnapshotSettings
from snaploom.models.times import EpochNanos
from snaploom.planning.commonchecks.fields import Findings
from snaploom.planning.commonchecks.scope import Scope
from snaploom.planning.datasetnames import DatasetName
from snaploom.planning.declaredcolumns import DeclaredColumns


@dataclass(frozen=True)
class NoSnapshots:
    """The report for a source without any snapshot."""

    field: str
    """Field of `spec` that most often is the cause, such as `jdbc`."""
    found: str
    hint: str


@dataclass(frozen=True)
class BoundQuery:
    """A query over other sources, at one snapshot."""

    text: str
    """The query, without placeholders."""
    sources: Mapping[str, str]


@dataclass(frozen=True)
class DeclaredSource(ABC):
    """A source, as its kind understands it."""

    source: DataSource

    @classmethod
    @abstractmethod
    def of(cls, source: DataSource) -> Self | None:
        """The source, if it is of this kind."""

    @abstractmethod
    def findings(self, scope: Scope) -> Findings:
        """All findings particular to the kind."""

    @property
    @abstractmethod
    def caption(self) -> str:
        """Its data in a word or two, for drawings: `parquet`, `query on orders`."""

    @property
    def field(self) -> str:
        """Field of `spec` that declares it, such as `hdfsLike`."""
        return DataSource.variant_of(self.source.spec)

    @property
    def called(self) -> str:
        """Its name in messages, where files are expected."""
        return self.field

    @property
    def snapshot(self) -> SnapshotSettings | None:
        """How its snapshots are distinguished; None where other sources decide that."""
        return None

    @property
    def is_read_now(self) -> bool:
        """Whether it has no snapshot but the present one."""
        return self.snapshot is not None and self.snapshot.from_read_time is not None

    @property
    def snapshots_of(self) -> str | None:
        """Name of the source whose snapshots it has, one for one; None where it has its own."""
        return None

    @property
    def columns(self) -> DeclaredColumns | None:
        """The columns with which it is read; None where they are not declared."""
        return None

    @property
    def unknown_schema(self) -> str:
        """Why columns and types are only known once data is read; empty where they are before."""
        return ""

    @property
    def credentials(self) -> Credentials | None:
        """Where user name and password come from; None where it needs none."""
        return None

    @property
    def globs(self) -> tuple[str, ...]:
        """Hadoop globs of all files that it reads; empty where it reads none itself."""
        return ()

    @property
    def files(self) -> HdfsLike | None:
        """Its files, where data-skipping indexes can be about them."""
        return None

    @property
    def table_format(self) -> str | None:
        """Format of its table, whose library Spark needs; None where Spark itself suffices."""
        return None

    @property
    def datasets(self) -> tuple[DatasetName, ...]:
        """The datasets read directly, as lineage names them; empty if it reads other sources."""
        return ()

    @property
    def no_snapshots(self) -> NoSnapshots:
        """The report where it has no snapshot at all."""
        return NoSnapshots(self.field, "no snapshot", "check that the data is there")

    def query(self, snapshot: EpochNanos) -> BoundQuery | None:
        """The query that gives its rows at a snapshot; None where it reads no other source."""
        return None

    def cluster_findings(self, *, allow_jdbc_url: bool) -> Findings:
        """Settings that only a laptop accepts (rule R16): there a warning, an error in a cluster.

        `allow_jdbc_url` is whether the operator's settings allow whole JDBC URLs.
        """
        return ()
