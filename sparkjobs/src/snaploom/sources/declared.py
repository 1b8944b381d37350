"""`DeclaredSource`: what is asked of a source before it is read; checks of physical ones."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit

from snaploom.models import datasource
from snaploom.models.common import CatalogTable, DataType, EpochNanos, SchemaField
from snaploom.models.findings import Finding, make_finding
from snaploom.policy.addresses import store_kind
from snaploom.policy.fields import Findings, duplicate_findings, zone_findings
from snaploom.policy.formatfaults import format_findings, source_place
from snaploom.policy.references import DeclaredColumns, Scope, columns_of, undeclared_column
from snaploom.sources.prefix import SNAPSHOT_TYPES, PrefixInvalid, UriPrefix

# Names of datasets by OpenLineage's naming rules, so that other tools use the same names.


@dataclass(frozen=True, order=True)
class DatasetName:
    """The name of a dataset."""

    namespace: str
    """Location, such as `s3://lake` or `postgres://db:5432`."""
    name: str
    """Its name within the namespace, such as `raw/orders` or `shop.public.orders`."""


def place_dataset(uri: str) -> DatasetName:
    """The dataset that is everything at a place: a folder, a file, or an absolute path."""
    parts = urlsplit(uri)
    kind = store_kind(parts.scheme)
    is_bucket = kind is not None and kind.has_buckets and bool(kind.opener)
    scheme = kind.schemes[0] if kind is not None and is_bucket else parts.scheme.lower()
    path = re.sub(r"/+", "/", f"/{parts.path}").rstrip("/") or "/"
    if scheme in ("", "file"):
        return DatasetName("file", path)
    if is_bucket:
        path = path[1:] or "/"
    return DatasetName(f"{scheme}://{parts.netloc}", path)


def table_dataset(table: CatalogTable) -> DatasetName:
    """The dataset that is a table of a catalog, by the catalog's name in Spark."""
    return DatasetName(table.catalog, table.name)


# `DeclaredSource`: the questions that a source of any kind answers before it is read.


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

    source: datasource.DataSource

    @classmethod
    @abstractmethod
    def of(cls, source: datasource.DataSource) -> Self | None:
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
        return datasource.DataSource.variant_of(self.source.spec)

    @property
    def called(self) -> str:
        """Its name in messages, where files are expected."""
        return self.field

    @property
    def snapshot(self) -> datasource.SnapshotSettings | None:
        """Return the distinction of its snapshots; None where other sources decide that."""
        return None

    @property
    def is_read_now(self) -> bool:
        """Whether it has no snapshot but the present one."""
        return self.snapshot is not None and self.snapshot.from_read_time is not None

    @property
    def no_history(self) -> str:
        """The reason why its snapshots are not read together, and a fix; empty if they are."""
        if not self.is_read_now:
            return ""
        return (
            "it has no snapshot but the present one: name a field with the time in its "
            "snapshot.fromFieldValue"
        )

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
        """Return why columns and types are unknown before data is read; empty if they are known."""
        return ""

    @property
    def credentials(self) -> datasource.Credentials | None:
        """Return the source of user name and password; None where it needs none."""
        return None

    @property
    def globs(self) -> tuple[str, ...]:
        """Hadoop globs of all files that it reads; empty where it reads none itself."""
        return ()

    @property
    def files(self) -> datasource.HdfsLike | None:
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


# Checks that files, tables and databases share: names of columns, the field of the time.

_WHOLE = ("byte", "short", "integer", "long", "decimal")
COLUMN_TYPES = {
    datasource.TimeFormat.ISO8601_DATE: ("string", "date"),
    datasource.TimeFormat.ISO8601_DATE_TIME: ("string",),
    datasource.TimeFormat.TIMESTAMP: ("timestamp", "timestampNtz", "date"),
    datasource.TimeFormat.UNIX_MILLISECONDS: _WHOLE,
    datasource.TimeFormat.UNIX_SECONDS: _WHOLE,
    datasource.TimeFormat.PATTERN: ("string", *_WHOLE),
}
"""Types of a column from which each time format is read (rule W14)."""


def schema_findings(
    fields: Sequence[SchemaField], owner: datasource.DataSource, path: str
) -> Findings:
    """Fields of one struct whose names are equal ignoring case, at every level."""
    inner = (
        finding
        for index, field in enumerate(fields)
        for finding in _type_findings(field.data_type, owner, f"{path}[{index}].dataType")
    )
    # One finding a name: at the field's name rather than at the whole field.
    own = duplicate_findings((field.name for field in fields), owner, path)
    return (*(f.model_copy(update={"path": f"{f.path}.name"}) for f in own), *inner)


def _type_findings(data_type: DataType, owner: datasource.DataSource, path: str) -> Findings:
    if data_type.struct is not None:
        return schema_findings(data_type.struct.fields_, owner, f"{path}.struct.fields")
    if data_type.array is not None:
        return _type_findings(data_type.array.element_type, owner, f"{path}.array.elementType")
    if data_type.map_ is not None:
        return (
            *_type_findings(data_type.map_.key_type, owner, f"{path}.map.keyType"),
            *_type_findings(data_type.map_.value_type, owner, f"{path}.map.valueType"),
        )
    return ()


def snapshot_findings(
    settings: datasource.SnapshotSettings,
    columns: Sequence[SchemaField],
    owner: datasource.DataSource,
    path: str,
    prefix: UriPrefix | None = None,
) -> Findings:
    """Faults of the field of the snapshot time, as far as declarations show.

    `prefix` captures fields of paths; `path` is the field path of the declaration.
    """
    by_field = settings.from_field_value
    if by_field is None:
        return ()
    at = f"{path}.snapshot.fromFieldValue"
    return (
        *zone_findings(by_field.default_timezone, owner, f"{at}.defaultTimezone"),
        *_time_type(by_field, columns, owner, at, prefix),
    )


def _time_type(
    by_field: datasource.FromFieldValue,
    columns: Sequence[SchemaField],
    owner: datasource.DataSource,
    path: str,
    prefix: UriPrefix | None,
) -> Iterator[Finding]:
    capture = prefix.capture(by_field.field_name) if prefix else None
    if capture is not None:
        given, allowed = str(capture.type), tuple(map(str, SNAPSHOT_TYPES[by_field.time_format]))
    else:
        folded = by_field.field_name.casefold()
        column = next((c for c in columns if c.name.casefold() == folded), None)
        if column is None:
            return
        given, allowed = _variant(column.data_type), COLUMN_TYPES[by_field.time_format]
    if given in allowed:
        return
    yield make_finding(
        "SL142",
        f"{by_field.time_format} cannot be read from a field of this type",
        resource=owner.identity,
        path=f"{path}.timeFormat",
        found=f"{by_field.field_name} of type {given}",
        expected=f"a field of type {' or '.join(allowed)}",
    )


def _variant(data_type: DataType) -> str:
    variant = DataType.variant_of(data_type)
    if data_type.decimal is not None and data_type.decimal.scale != 0:
        return f"decimal with {data_type.decimal.scale} digits after the point"
    return variant


# The part shared by files and by tables of Iceberg and Delta, all declared as `hdfsLike`.

_PATH = "spec.hdfsLike"
_MADE_BY_OPTIONS = frozenset({"basepath", "columnnameofcorruptrecord", "singlevariantcolumn"})
"""Options of formats that add columns, in lower case."""


@dataclass(frozen=True)
class HdfsLikeSource(DeclaredSource, ABC):
    """A source of files, or of a table that lies in files."""

    declared: datasource.HdfsLike

    @property
    @abstractmethod
    def options(self) -> dict[str, str]:
        """Options of the format, as far as the kind has any."""

    @abstractmethod
    def kind_findings(self) -> Iterable[Finding]:
        """Faults particular to files, or to a table."""

    def findings(self, scope: Scope) -> Findings:
        place = source_place(self.source.identity)
        prefix, wrong = self._prefix()
        fields = self.declared.schema_fields or ()
        return (
            *format_findings(self.declared.format, self.options, scope.allow, place),
            *wrong,
            *self._outside_of(prefix),
            *self.kind_findings(),
            *schema_findings(fields, self.source, f"{_PATH}.schemaFields"),
            *snapshot_findings(self.declared.snapshot, fields, self.source, _PATH, prefix),
            *self._undeclared_snapshot_column(scope),
        )

    @property
    def caption(self) -> str:
        return self.declared.format

    @property
    def snapshot(self) -> datasource.SnapshotSettings:
        """By a field, or by the time of reading."""
        return self.declared.snapshot

    @property
    def globs(self) -> tuple[str, ...]:
        return self.declared.globs

    @property
    def columns(self) -> DeclaredColumns | None:
        """The columns of `schemaFields`, and the captures of the path."""
        fields, prefix = self.declared.schema_fields, self.declared.source_uri_prefix
        options = {name.lower() for name in self.declared.format_options}
        if fields is None or _MADE_BY_OPTIONS & options:
            return None
        try:
            captures = UriPrefix.parse(prefix).names if prefix is not None else ()
        except PrefixInvalid:
            return None
        return columns_of(fields, captures)

    @property
    def no_snapshots(self) -> NoSnapshots:
        """Most often a glob that matches nothing."""
        found = f"no file matches {', '.join(self.globs)}"
        if self._has_snapshots_in_rows:
            found += ", or none that does has a row"
        hint = "check that the data is there, and the spelling of the globs"
        return NoSnapshots(f"{self.field}.sourceUriGlobs", found, hint)

    @property
    def _has_snapshots_in_rows(self) -> bool:
        """Whether a column has the snapshot, so that files without rows have none."""
        field = self.declared.snapshot.from_field_value
        if field is None:
            return False
        prefix = self.declared.source_uri_prefix
        captured = () if prefix is None else UriPrefix.parse(prefix).names
        return field.field_name.casefold() not in map(str.casefold, captured)

    def _undeclared_snapshot_column(self, scope: Scope) -> Iterator[Finding]:
        field, columns = self.declared.snapshot.from_field_value, self.columns
        if field is None or columns is None or columns.missing_of(field.field_name) is None:
            return
        path = f"{_PATH}.snapshot.fromFieldValue.fieldName"
        yield undeclared_column(self.source, columns, field.field_name, self.source, path, scope)

    def _prefix(self) -> tuple[UriPrefix | None, Findings]:
        text = self.declared.source_uri_prefix
        if text is None:
            return None, ()
        try:
            prefix = UriPrefix.parse(text)
        except PrefixInvalid as error:
            return None, (self._prefix_finding(str(error), text),)
        columns = {field.name.casefold() for field in self.declared.schema_fields or ()}
        return prefix, tuple(
            self._prefix_finding(f"'{name}' is captured, but is a column of the data too", name)
            for name in prefix.names
            if name.casefold() in columns
        )

    def _prefix_finding(self, message: str, found: str) -> Finding:
        return make_finding(
            "SL140",
            f"the prefix is not valid: {message}",
            resource=self.source.identity,
            path=f"{_PATH}.sourceUriPrefix",
            found=found,
            expected="literal text with captures {NAME:TYPE}, ending with a literal character",
        )

    def _outside_of(self, prefix: UriPrefix | None) -> Iterator[Finding]:
        for index, glob in enumerate(self.globs):
            if prefix is not None and not prefix.fits_glob(glob):
                yield make_finding(
                    "SL141",
                    "no file that this glob matches can begin with sourceUriPrefix",
                    resource=self.source.identity,
                    path=f"{_PATH}.sourceUriGlobs[{index}]",
                    found=glob,
                    expected=f"files that begin with {prefix.text}",
                )
