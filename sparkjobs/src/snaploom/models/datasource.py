"""DataSource: where data is, and how to distinguish its snapshots."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar, Literal, Self

from annotated_types import Ge, Le, MaxLen, MinLen
from pydantic import Field, SecretStr, StringConstraints, model_validator

from snaploom.models import base, common
from snaploom.models.shortforms import PatternInvalid, parse_pattern

GlobText = Annotated[common.PlaceText, base.LocalPath(base.PathForm.GLOB)]
PrefixText = Annotated[common.PlaceText, base.LocalPath(base.PathForm.PREFIX)]
References = Annotated[tuple[common.ResourceName, ...], MaxLen(64), common.Unique]


class TimeFormat(StrEnum):
    """Encoding of a snapshot's time in a column."""

    ISO8601_DATE = "ISO8601_DATE"
    """Text such as `2020-01-31`, or a date: midnight in `defaultTimezone`."""
    ISO8601_DATE_TIME = "ISO8601_DATE_TIME"
    """Text such as `2020-01-31T12:00:00Z`; without an offset it is in `defaultTimezone`."""
    TIMESTAMP = "TIMESTAMP"
    """A timestamp; one without time zone is in `defaultTimezone`, where a date is its midnight."""
    UNIX_MILLISECONDS = "UNIX_MILLISECONDS"
    """Whole milliseconds since 1970."""
    UNIX_SECONDS = "UNIX_SECONDS"
    """Whole seconds since 1970."""
    PATTERN = "PATTERN"
    """Text or a whole number by `timePattern`, such as `20200131`: the first moment of the period
    that it names, in `defaultTimezone`."""


class FromFieldValue(base.ApiModel):
    """The snapshot of a row, or of a file, is the value of a field."""

    cel_rules: ClassVar[tuple[base.CelRule, ...]] = (
        base.CelRule(
            "(self.timeFormat == 'PATTERN') == has(self.timePattern)",
            "timePattern belongs to timeFormat PATTERN, which needs it",
        ),
    )

    field_name: common.ColumnName
    """The field; either a column of the data or a capture of `sourceUriPrefix`."""
    time_format: TimeFormat
    """Encoding of the time in the field."""
    time_pattern: Annotated[str, StringConstraints(min_length=1, max_length=64)] | None = None
    """Of PATTERN, such as `yyyyMMdd`, `MM/dd/yyyy`, `d-MMM-yyyy` or `YYYY-'W'ww` (the ISO week):
    units yyyy, Q (quarter), MM, dd, DDD (day of the year), HH, mm, ss, YYYY and ww, each once, in
    any order, without a gap from the year down to the smallest; letters stand in quotes. M, d and w
    have one digit or two, yy is a year from 2000 on, MMM the name of a month in a language of
    Western or Northern Europe, short or in full (`Mar`, `March`, `März`, `mars`). The smallest unit
    is the length of the period."""
    default_timezone: common.TimeZoneName = "UTC"
    """Zone of dates, and of times without an offset."""
    drop_field: bool = True
    """Whether to leave the field out of the data."""

    @model_validator(mode="after")
    def _pattern_of_its_format(self) -> Self:
        if (self.time_format is TimeFormat.PATTERN) != (self.time_pattern is not None):
            raise base.contradiction(
                "timePattern belongs to timeFormat PATTERN, which needs it",
                found=f"timeFormat {self.time_format} "
                f"{'without' if self.time_pattern is None else 'with'} timePattern",
                expected="both, or another timeFormat without timePattern",
                hint="add `timePattern`, such as `timePattern: yyyyMMdd`"
                if self.time_pattern is None
                else "write `timeFormat: PATTERN`, or remove timePattern",
            )
        if self.time_pattern is not None:
            try:
                parse_pattern(self.time_pattern)
            except PatternInvalid as error:
                raise base.contradiction(
                    f"this is no pattern of a date: {error}",
                    found=f"timePattern {self.time_pattern}",
                    expected="units yyyy, yy, Q, MM, M, MMM, dd, d, DDD, HH, mm, ss, YYYY, ww and "
                    "w, without a gap from the year down",
                    hint="write a pattern such as yyyyMMdd, yyyy-MM or YYYY-'W'ww",
                ) from None
        return self


class FromReadTime(base.ApiModel):
    """There is one snapshot: the data present when it is read."""


class SnapshotSettings(base.ApiModel):
    """Distinction of a source's snapshots."""

    one_of: ClassVar[tuple[str, ...]] = ("fromFieldValue", "fromReadTime")

    from_field_value: FromFieldValue | None = None
    """The snapshot is the value of a field."""
    from_read_time: FromReadTime | None = None
    """There is one snapshot: the data present when it is read."""


class SourceModel(base.ApiModel):
    """Base of the declaration of a kind of source: a field of `DataSourceSpec`."""

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of the sources that it reads; empty for a physical one."""
        return ()


class HdfsLike(SourceModel):
    """Files on anything that Hadoop calls a file system, or a table of Iceberg or Delta."""

    cel_rules: ClassVar[tuple[base.CelRule, ...]] = (
        base.CelRule(
            "(has(self.sourceUriGlobs) && size(self.sourceUriGlobs) > 0) != has(self.table)",
            "give either sourceUriGlobs or table",
        ),
        base.CelRule(
            "!has(self.table) || self.format == 'iceberg'",
            "only a table of format iceberg is found by a catalog",
        ),
    )

    format: Annotated[str, StringConstraints(min_length=1, max_length=255)]
    """`parquet`, `orc`, `csv`, `json`, `xml`, `avro`, `arrow` (IPC files, such as Feather's, and
    streams), `sqlite` and `xlsx` (one table or sheet of each file, by the options `table` and
    `sheet`), `text`, `binaryFile`, or one that was added to the list by the administrator; or
    `iceberg` or `delta`, for a table of theirs, which is read at one version for a whole run."""
    format_options: common.StringMap = Field(default_factory=dict)
    """Options of the format, as Spark's reader takes them; those of a list. Unless `mode` (of csv,
    json and xml) changes it, a record that does not fit the schema fails the snapshot. CSV is read
    by RFC 4180 (doubled quotes, values over several lines), unless options change that. With
    `header` its columns are matched by name; `enforceSchema` opts out: `true` takes them by place,
    `false` too and refuses a header of other names."""
    source_uri_globs: (
        Annotated[tuple[GlobText, ...], MinLen(1), MaxLen(256), common.Atomic] | None
    ) = None
    """Hadoop globs of the files; folders that match are passed over. For a table: its place."""
    table: common.CatalogTable | None = None
    """With `iceberg`, instead of a place: a table of a catalog, which the run's settings of Spark
    describe (`spark.sql.catalog.<name>.`)."""
    source_uri_prefix: PrefixText | None = None
    """Common beginning of all files, with captures `{NAME:TYPE}` (STRING, INTEGER, LONG or
    ISO8601_DATE_TIME) that become columns; `{{` and `}}` stand for braces."""
    snapshot: SnapshotSettings
    """Distinction of snapshots."""
    schema_fields: Annotated[tuple[common.SchemaField, ...], MaxLen(2000), common.Atomic] | None = (
        None
    )
    """The schema; omitted, Spark infers it."""
    metadata_applicators: References = ()
    """MetadataApplicators to apply, in order."""
    field_transformers: References = ()
    """FieldTransformers to apply, in order, before the applicators."""

    @property
    def globs(self) -> tuple[str, ...]:
        """Globs of the files, or the place of a table; none for a table of a catalog."""
        return self.source_uri_globs or ()

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if bool(self.globs) == (self.table is not None):
            raise base.contradiction(
                "give either sourceUriGlobs or table",
                found="both" if self.globs else "neither",
                expected="where the files or the table are, or the table's name in a catalog",
                hint="name files, or the place of a table, in `sourceUriGlobs`, and a table of a "
                "catalog by `table`",
            )
        if self.table is not None and self.format != "iceberg":
            raise base.contradiction(
                "only a table of format iceberg is found by a catalog",
                found=f"table {self.table} and format {self.format}",
                expected="format iceberg",
                hint="write `format: iceberg`, or give the place of the table in `sourceUriGlobs`",
            )
        return self


class JdbcDriver(StrEnum):
    """Databases whose drivers and options are known."""

    POSTGRESQL = "POSTGRESQL"
    """PostgreSQL."""
    MYSQL = "MYSQL"
    """MySQL."""
    MARIADB = "MARIADB"
    """MariaDB."""
    SQLSERVER = "SQLSERVER"
    """Microsoft SQL Server."""
    ORACLE = "ORACLE"
    """Oracle Database."""
    SQLITE = "SQLITE"
    """SQLite; `database` is a file."""
    H2 = "H2"
    """H2, embedded or as a server."""
    DUCKDB = "DUCKDB"
    """DuckDB; `database` is a file."""


class IsolationLevel(StrEnum):
    """Visibility of concurrent writes to a session."""

    READ_COMMITTED = "READ_COMMITTED"
    """Data committed when each statement began."""
    REPEATABLE_READ = "REPEATABLE_READ"
    """The same rows whenever it asks."""
    SERIALIZABLE = "SERIALIZABLE"
    """As if nobody else was at work."""
    SNAPSHOT = "SNAPSHOT"
    """Data committed when the session began."""


class FromPlaintext(base.ApiModel):
    """Credentials in the spec itself: for a laptop only, refused by a cluster (rule R16)."""

    user: common.ShortText
    """User name."""
    password: Annotated[SecretStr, MaxLen(1024)]
    """Password; never printed."""


class FromEnvironment(base.ApiModel):
    """Credentials from environment variables of the driver."""

    user_variable: common.ShortText
    """Variable that holds the user name."""
    password_variable: common.ShortText
    """Variable that holds the password."""


class FromSecret(base.ApiModel):
    """Credentials from a Secret of the same namespace, mounted into the job and nothing else."""

    name: common.ResourceName
    """Name of the Secret."""
    user_key: common.ShortText = "username"
    """Key of the user name."""
    password_key: common.ShortText = "password"
    """Key of the password."""


class Credentials(base.ApiModel):
    """Source of user name and password."""

    one_of: ClassVar[tuple[str, ...]] = ("fromEnvironment", "fromSecret", "fromPlaintext")

    from_environment: FromEnvironment | None = None
    """From environment variables of the driver."""
    from_secret: FromSecret | None = None
    """From a Secret of the same namespace."""
    from_plaintext: FromPlaintext | None = None
    """In the spec itself: for a laptop only."""


DatabaseText = Annotated[
    str,
    StringConstraints(min_length=1, max_length=1024, pattern=base.WITHOUT_VARIABLE),
    base.Variables("a database"),
    base.LocalPath(field="driver", values=frozenset({"SQLITE", "DUCKDB"})),
]


class Jdbc(SourceModel):
    """A table of a database (rule W6)."""

    cel_rules: ClassVar[tuple[base.CelRule, ...]] = (
        base.CelRule(
            "!has(self.url) || !(has(self.host) || has(self.port) || has(self.database))",
            "give either url or host, port and database",
        ),
        base.CelRule(
            "has(self.url) || has(self.database)", "give database (or url, where allowed)"
        ),
    )
    secrets_checked_elsewhere: ClassVar[frozenset[str]] = frozenset({"url"})

    driver: JdbcDriver
    """The kind of database."""
    host: (
        Annotated[str, StringConstraints(min_length=1, max_length=253), base.Variables("a host")]
        | None
    ) = None
    """Host name; not for embedded databases."""
    port: Annotated[int, Ge(1), Le(65535)] | None = None
    """Port; omitted, the driver's usual one."""
    database: DatabaseText | None = None
    """Name of the database, or the file of an embedded one, as an absolute path."""
    options: common.StringMap = Field(default_factory=dict)
    """Options of the connection, out of the driver's allowed ones."""
    url: common.UriText | None = None
    """A whole JDBC URL; only where the settings allow one."""
    driver_class: Annotated[str, StringConstraints(min_length=1, max_length=512)] | None = None
    """Class of the driver, one of those that are known; omitted, the usual one."""
    credentials: Credentials | None = None
    """Source of user name and password; omitted for databases that know no users."""
    table_reference: Annotated[
        str, StringConstraints(min_length=1, max_length=1024), base.Variables("a table")
    ]
    """The table, as the database names it: letter for letter, with its schema and a point in
    front; a name that contains a point stands in double quotes."""
    table_predicates: Annotated[
        tuple[Annotated[str, StringConstraints(min_length=1, max_length=4096)], ...],
        MaxLen(1000),
        common.Atomic,
    ] = ()
    """Conditions that split the table for parallel reading, by its own columns and functions of a
    list; together they must cover all rows, and no row may meet two."""
    check_predicates: bool = True
    """Whether it is made sure, once a run, that each row meets exactly one predicate. Ranges of
    whole numbers and remainders need no query; others are counted by the database."""
    fetch_size: Annotated[int, Ge(1), Le(1_000_000)] = 1000
    """Rows that the driver fetches at once: more need more memory, and fewer round trips."""
    isolation_level: IsolationLevel | None = None
    """Visibility of concurrent writes; omitted, all reads of a run see the table at one moment
    where the database can do that (PostgreSQL), else the database's usual level."""
    snapshot: SnapshotSettings
    """Distinction of snapshots."""
    schema_fields: Annotated[tuple[common.SchemaField, ...], MaxLen(2000), common.Atomic] | None = (
        None
    )
    """The schema; omitted, Spark infers it."""
    metadata_applicators: References = ()
    """MetadataApplicators to apply, in order."""
    field_transformers: References = ()
    """FieldTransformers to apply, in order, before the applicators."""

    @model_validator(mode="after")
    def _one_way_to_connect(self) -> Self:
        parts = (self.host, self.port, self.database)
        if self.url is not None and any(part is not None for part in parts):
            raise base.contradiction(
                "give either url or host, port and database",
                found="url and parts of an address",
                expected="one of the two",
                hint="remove url: host, port and database are what clusters accept",
            )
        if self.url is None and self.database is None:
            raise base.contradiction(
                "give database (or url, where allowed)",
                found="no database",
                expected="the name of the database",
                hint="add `database`",
            )
        return self


class SimpleVirtual(SourceModel):
    """A query over one physical source; it has the snapshots of that source."""

    data_source: common.ResourceName
    """The DataSource that is read; it must not be virtual."""
    alias: common.Alias
    """Name under which the query reads it."""
    data_query: common.SqlText
    """A SELECT with WHERE and GROUP BY at most, over the alias."""
    metadata_applicators: References = ()
    """MetadataApplicators to apply, in order."""
    field_transformers: References = ()
    """FieldTransformers to apply, in order, before the applicators."""

    @property
    def reads(self) -> tuple[str, ...]:
        """The one source."""
        return (self.data_source,)


class AliasedSource(base.ApiModel):
    """A source, under the name by which queries read it."""

    data_source: common.ResourceName
    """The DataSource that is read."""
    alias: common.Alias
    """Name under which queries read it."""


class ComplexVirtual(SourceModel):
    """A query over the latest snapshot of several sources, valid for intervals of time."""

    data_sources: Annotated[
        tuple[AliasedSource, ...], MinLen(1), MaxLen(64), base.ListType("map", keys=("alias",))
    ]
    """The sources that the queries read."""
    snapshot_query: common.SqlText
    """A query that returns `interval_start` and `interval_end` (long, milliseconds since 1970),
    both inclusive: the times for which there is a snapshot."""
    data_query: common.SqlText
    """A query that contains `{{ SNAPSHOT | UNIX_SECONDS }}` or `{{ SNAPSHOT | UNIX_MILLISECONDS }}`
    and returns the data as of that time."""
    metadata_applicators: References = ()
    """MetadataApplicators to apply, in order."""
    field_transformers: References = ()
    """FieldTransformers to apply, in order, before the applicators."""

    @property
    def reads(self) -> tuple[str, ...]:
        """The sources behind the aliases."""
        return tuple(source.data_source for source in self.data_sources)


Variant = HdfsLike | Jdbc | SimpleVirtual | ComplexVirtual


class DataSourceSpec(base.ApiModel):
    """Exactly one kind of source."""

    one_of: ClassVar[tuple[str, ...]] = ("hdfsLike", "jdbc", "simpleVirtual", "complexVirtual")

    hdfs_like: HdfsLike | None = None
    """Files on anything that Hadoop calls a file system."""
    jdbc: Jdbc | None = None
    """A table of a database."""
    simple_virtual: SimpleVirtual | None = None
    """A query over one physical source."""
    complex_virtual: ComplexVirtual | None = None
    """A query over the latest snapshot of several sources."""

    @property
    def variant(self) -> Variant:
        """The one variant that is given."""
        return next(given for given in vars(self).values() if isinstance(given, Variant))

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of the sources that a virtual source reads; empty for a physical one."""
        return self.variant.reads


class UsedBy(base.ApiModel):
    """Resources that refer to a resource."""

    count: Annotated[int, Ge(0)]
    """Number of resources."""
    names: Annotated[tuple[common.ShortText, ...], MaxLen(20), common.Unique] = ()
    """The first of them, as `Kind/name`."""


class LastSeen(base.ApiModel):
    """A source as the latest run saw it."""

    run: common.ShortText
    """The run."""
    at: common.TimestampText
    """Time of the observation."""
    latest_snapshot: common.TimestampText | None = None
    """Newest snapshot that it saw."""
    snapshots: Annotated[int, Ge(0)] | None = None
    """Number of snapshots that it saw."""
    schema_fingerprint: common.ShortText | None = None
    """Hash of the schema that it saw."""


class DataSourceStatus(common.ResourceStatus):
    """Observed state of a source."""

    used_by: UsedBy | None = None
    """Resources that refer to it."""
    last_seen: LastSeen | None = None
    """The source as the latest run saw it."""


class DataSource(common.Resource):
    """Location of data, and the distinction of its snapshots."""

    kind: Literal["DataSource"] = "DataSource"
    """Name of the kind."""
    spec: DataSourceSpec
    """Exactly one kind of source."""
    status: DataSourceStatus | None = None
    """Observed state; written by the operator."""
