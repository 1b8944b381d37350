"""SkippingIndex: facts kept about every file, so that queries read only those that matter."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar, Literal, Self

from annotated_types import Ge, Le, MaxLen, MinLen
from pydantic import Field, StringConstraints, model_validator

from snaploom.models import common
from snaploom.models.base import ApiModel, CelRule, Variables, contradiction
from snaploom.models.datasource import Credentials
from snaploom.models.run import CurrentRun, LastRun, RunSettings

KeyLabel = Annotated[str, StringConstraints(min_length=1, max_length=253)]
"""Name of an encryption key in the key management service; never the key itself."""


HostText = Annotated[
    str,
    StringConstraints(
        min_length=1,
        max_length=253,
        # Nothing that would be more than a host in a URI.
        pattern=r"^([A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?|\[?[0-9A-Fa-f:.]+\]?)$",
    ),
    Variables("a host"),
]
"""Name or address of a server."""


class PathTarget(ApiModel):
    """Files below a path."""

    uri: common.PlaceText
    """The path."""
    format: Annotated[str, StringConstraints(min_length=1, max_length=255)]
    """Format of the files, as for `hdfsLike.format`."""
    options: common.StringMap = Field(default_factory=dict)
    """Options with which they are read, as for `hdfsLike.formatOptions`; queries with others do not
    use the index."""


class TableTarget(ApiModel):
    """A table of Spark's catalog."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=512), Variables("a table")]
    """`catalog.database.table`, `database.table` or `table`."""


class IndexTarget(ApiModel):
    """The files that are indexed."""

    one_of: ClassVar[tuple[str, ...]] = ("dataSource", "outputDataset", "path", "table")

    data_source: common.ResourceName | None = None
    """The files of a DataSource."""
    output_dataset: common.ResourceName | None = None
    """The published files of an OutputDataset."""
    path: PathTarget | None = None
    """Files below a path."""
    table: TableTarget | None = None
    """A table of Spark's catalog."""


class Index(ApiModel):
    """Facts kept about one column, several, or an expression."""

    one_of: ClassVar[tuple[str, ...]] = ("column", "columns", "expression")

    type: Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]*$", max_length=64)]
    """MIN_MAX, VALUE_SET, BLOOM_FILTER, PARTITION, or a registered type."""
    column: common.ColumnName | None = None
    """The column."""
    columns: (
        Annotated[tuple[common.ColumnName, ...], MinLen(1), MaxLen(16), common.Unique] | None
    ) = None
    """The columns, for types that take several."""
    expression: common.SqlText | None = None
    """A deterministic SQL expression over the columns."""
    parameters: common.StringMap = Field(default_factory=dict)
    """Parameters of the type; values are text, so quote numbers."""
    key_label: KeyLabel | None = None
    """Key with which this index is encrypted."""


class RefreshMode(StrEnum):
    """Scope of a refresh."""

    FULL = "FULL"
    """Every file, as if there were no index yet."""
    INCREMENTAL = "INCREMENTAL"
    """Only files that are new or changed."""
    AUTO = "AUTO"
    """INCREMENTAL where the index can be continued, FULL where not."""


class RefreshTrigger(StrEnum):
    """Trigger of a refresh."""

    MANUAL = "MANUAL"
    """By hand only."""
    SCHEDULE = "SCHEDULE"
    """At the ticks of `run.schedule`."""
    ON_PUBLISH = "ON_PUBLISH"
    """After each publication of the indexed OutputDataset."""


class Refresh(ApiModel):
    """Refreshes of the index."""

    mode: RefreshMode = RefreshMode.AUTO
    """Scope of a refresh."""
    trigger: RefreshTrigger = RefreshTrigger.MANUAL
    """Trigger of a refresh."""


class ParquetForm(StrEnum):
    """Form of a Parquet metadata store (rule S24)."""

    NATIVE = "NATIVE"
    """Snaploom's own files, which hold everything."""
    XSKIPPER = "XSKIPPER"
    """A version 4 folder that others read too, with our own beside it."""


class ParquetStore(ApiModel):
    """A folder of Parquet files."""

    location: common.PlaceText
    """The folder."""
    form: ParquetForm = ParquetForm.NATIVE
    """Form of the files."""


class OpenSearchAuth(StrEnum):
    """Method of authentication."""

    NOAUTH = "NOAUTH"
    """None."""
    BASIC = "BASIC"
    """User name and password, from `credentials`."""
    SIGV4 = "SIGV4"
    """Signed requests of AWS, with the pod's own identity."""


class OpenSearchStore(ApiModel):
    """An OpenSearch cluster."""

    cel_rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule(
            "(has(self.auth) && self.auth == 'BASIC') == has(self.credentials)",
            "credentials belong to auth BASIC, which needs them",
        ),
        CelRule(
            "!has(self.auth) || self.auth != 'SIGV4' || has(self.region)", "SIGV4 needs region"
        ),
    )

    scheme: Literal["http", "https"] = "https"
    """Protocol."""
    host: HostText
    """Host name, or address."""
    port: Annotated[int, Ge(1), Le(65535)] = 9200
    """Port."""
    auth: OpenSearchAuth = OpenSearchAuth.NOAUTH
    """Method of authentication."""
    region: common.ShortText | None = None
    """Region, for SIGV4."""
    credentials: Credentials | None = None
    """User name and password, for BASIC."""

    @model_validator(mode="after")
    def _what_auth_needs(self) -> Self:
        if (self.auth is OpenSearchAuth.BASIC) != (self.credentials is not None):
            raise contradiction(
                "credentials belong to auth BASIC, which needs them",
                found=f"auth {self.auth} {'without' if self.credentials is None else 'with'} "
                "credentials",
                expected="auth BASIC with credentials, or another auth without",
                hint="add `credentials: {fromEnvironment: ...}`"
                if self.credentials is None
                else "write `auth: BASIC`, or remove credentials",
            )
        if self.auth is OpenSearchAuth.SIGV4 and self.region is None:
            raise contradiction(
                "SIGV4 needs region",
                found="auth SIGV4 without region",
                expected="the region of the domain, which requests are signed for",
                hint="add `region`, such as `region: eu-central-1`",
            )
        return self


class IndexStore(ApiModel):
    """Location of the index."""

    one_of: ClassVar[tuple[str, ...]] = ("parquet", "openSearch")

    parquet: ParquetStore | None = None
    """A folder of Parquet files."""
    open_search: OpenSearchStore | None = None
    """An OpenSearch cluster."""


class IndexEncryption(ApiModel):
    """Encryption of the index as a whole (Parquet Modular Encryption)."""

    footer_key_label: KeyLabel
    """Key of the footer, and of the columns that every index has."""
    plaintext_footer: bool = False
    """Whether footers stay readable without a key."""


class SkippingIndexSpec(ApiModel):
    """The target of the index, its columns, and its store."""

    cel_rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule(
            "!has(self.refresh) || !has(self.refresh.trigger) || "
            "self.refresh.trigger != 'SCHEDULE' || (has(self.run) && has(self.run.schedule))",
            "the trigger SCHEDULE needs run.schedule",
        ),
        CelRule(
            "!has(self.refresh) || !has(self.refresh.trigger) || "
            "self.refresh.trigger != 'ON_PUBLISH' || has(self.target.outputDataset)",
            "the trigger ON_PUBLISH needs target.outputDataset",
        ),
    )

    target: IndexTarget
    """The files that are indexed."""
    enabled: bool = True
    """Whether queries use the index."""
    indexes: Annotated[tuple[Index, ...], MinLen(1), MaxLen(256), common.Atomic]
    """Facts kept about each file."""
    where: common.SqlText | None = None
    """Chooses files by partition columns or path; files outside are always read (rule S23)."""
    refresh: Refresh = Refresh()
    """Refreshes of the index."""
    store: IndexStore
    """Location of the index."""
    encryption: IndexEncryption | None = None
    """Encryption of the index as a whole."""
    run: RunSettings = RunSettings()
    """Settings and triggers of jobs."""

    @model_validator(mode="after")
    def _what_the_trigger_needs(self) -> Self:
        trigger = self.refresh.trigger
        if trigger is RefreshTrigger.SCHEDULE and self.run.schedule is None:
            raise contradiction(
                "the trigger SCHEDULE needs run.schedule",
                found="refresh.trigger SCHEDULE, and no run.schedule",
                expected="a schedule, or another trigger",
                hint="add `run: {schedule: {cron: '0 2 * * *'}}`, or write `trigger: MANUAL`",
            )
        if trigger is RefreshTrigger.ON_PUBLISH and self.target.output_dataset is None:
            raise contradiction(
                "the trigger ON_PUBLISH needs target.outputDataset",
                found="refresh.trigger ON_PUBLISH, and a target that no output publishes",
                expected="target.outputDataset, or another trigger",
                hint="name the output in `target.outputDataset`, or write `trigger: SCHEDULE` or "
                "`trigger: MANUAL`",
            )
        return self


class IndexState(StrEnum):
    """State of an index (rule S25)."""

    EMPTY = "empty"
    """Declared, and nothing is indexed yet."""
    CREATING = "creating"
    """The first build is under way."""
    ACTIVE = "active"
    """Queries may use it."""
    REFRESHING = "refreshing"
    """A refresh is under way; queries use the state before it."""
    UPDATING = "updating"
    """Its settings are being changed."""
    DELETING = "deleting"
    """It is being deleted."""
    DELETED = "deleted"
    """It is deleted; its files wait for `vacuum`."""
    FAILED = "failed"
    """The last operation failed; queries use the state before it."""
    RECOVERING = "recovering"
    """The remains of a failed operation are being cleaned up."""
    VACUUMING = "vacuuming"
    """Its files are being removed."""


class IndexedFiles(ApiModel):
    """Coverage of the target by the index."""

    indexed: Annotated[int, Ge(0)]
    """Files that the index knows as they are."""
    stale: Annotated[int, Ge(0)]
    """Files that changed since."""
    missing: Annotated[int, Ge(0)]
    """Files that the index does not know."""


class SkippingIndexStatus(common.ResourceStatus):
    """Observed state of an index."""

    state: IndexState | None = None
    """State of the index."""
    files: IndexedFiles | None = None
    """Coverage of the target by the index."""
    bytes: Annotated[int, Ge(0)] | None = None
    """Size of the index."""
    last_refreshed: common.TimestampText | None = None
    """Time of the last refresh."""
    current_run: CurrentRun | None = None
    """The run in flight."""
    last_run: LastRun | None = None
    """The run that ended last."""
    next_run_time: common.TimestampText | None = None
    """Time at which the next run is due, by schedule or as a retry."""
    realised: common.ShortText | None = None
    """Hash of the declarations that the last successful run worked on."""


class SkippingIndex(common.Resource):
    """Facts kept about every file, so that queries read only those that matter."""

    kind: Literal["SkippingIndex"] = "SkippingIndex"
    """Name of the kind."""
    spec: SkippingIndexSpec
    """The target of the index, its columns, and its store."""
    status: SkippingIndexStatus | None = None
    """Observed state; written by the operator."""
