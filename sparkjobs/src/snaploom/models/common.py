"""Fragments that several kinds share: bounded text, time offsets, instants, patterns of dates."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, ClassVar, Literal, NewType, Self

from annotated_types import Ge, Le, MaxLen, MinLen
from pydantic import Field, JsonValue, StringConstraints, model_validator
from whenever import Instant, OffsetDateTime

from snaploom.models import base
from snaploom.models.findings import Finding, Severity, make_finding
from snaploom.models.shortforms import TYPE

# Instants: integers of nanoseconds since 1970-01-01T00:00:00Z, and their ISO 8601 form.

EpochNanos = NewType("EpochNanos", int)
"""Nanoseconds since the epoch, UTC."""

NANOS_PER_SECOND = 1_000_000_000
NANOS_PER_MILLISECOND = 1_000_000
NANOS_PER_MICROSECOND = 1_000


def format_instant(instant: EpochNanos) -> str:
    """ISO 8601 in UTC, with as many fractional digits as needed: `2020-01-01T00:00:00Z`."""
    return Instant.from_timestamp(instant, unit="nanosecond").format_iso()


def parse_instant(text: str) -> EpochNanos:
    """Parse ISO 8601 with `Z` or an offset.

    Raises:
        ValueError: without an offset, or when it is no ISO 8601 date-time.
    """
    return EpochNanos(OffsetDateTime.parse_iso(text).to_instant().timestamp(unit="nanosecond"))


def with_zone(text: str) -> str:
    """A time without a zone, or a date, completed to an instant in UTC; empty if it is neither."""
    for ending in ("Z", "T00:00:00Z"):
        try:
            parse_instant(text + ending)
        except ValueError:
            continue
        return text + ending
    return ""


def now() -> EpochNanos:
    """The wall clock; only entry points call it, everything below takes `now` as an argument."""
    return EpochNanos(Instant.now().timestamp(unit="nanosecond"))


# Fragments that several kinds share: bounded text, time offsets, data types, status.

GROUP = "snaploom.io"
VERSION = "v1alpha1"
API_VERSION: Literal["snaploom.io/v1alpha1"] = "snaploom.io/v1alpha1"
ROOT_FIELD = ""
"""Field name of the root in every document (rule W12)."""

# Bounds (rule R17). They are generous for people and small enough for the API server's CEL cost
# estimate, which multiplies the bounds of every list that a rule stands under.
ResourceName = Annotated[
    str,
    StringConstraints(
        min_length=1, max_length=253, pattern=r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
    ),
    base.Variables("a name"),
]
"""Name of a resource. Kubernetes allows lower case, digits, `-` and `.` only; on a laptop `_` and
upper case work too (with a warning), because examples of an early design use
them."""
ColumnName = Annotated[str, StringConstraints(min_length=1, max_length=512)]
"""A column, or a path into structs such as `address.country`; matched ignoring case."""
FieldName = Annotated[
    str, StringConstraints(min_length=1, max_length=255, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
]
"""Name of a field of the output."""
Alias = Annotated[
    str, StringConstraints(min_length=1, max_length=255, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
]
"""Name under which a query reads a source."""
ShortText = Annotated[str, StringConstraints(max_length=1024)]
MessageText = Annotated[str, StringConstraints(max_length=32768)]
SqlText = Annotated[str, StringConstraints(min_length=1, max_length=65536)]
RegexText = Annotated[str, StringConstraints(min_length=1, max_length=1024)]
UriText = Annotated[str, StringConstraints(min_length=1, max_length=2048)]
PlaceText = Annotated[
    str,
    StringConstraints(min_length=1, max_length=2048, pattern=base.WITHOUT_VARIABLE),
    base.Variables("a URI"),
    base.LocalPath(),
]
"""A URI or an absolute path; in a file also a path relative to the file, and with variables."""
TimeZoneName = Annotated[
    str, StringConstraints(min_length=1, max_length=64), base.Variables("the name of a time zone")
]
"""Name from the tz database, such as `Australia/Melbourne`."""
TimestampText = Annotated[
    str, StringConstraints(min_length=1, max_length=40), base.Variables("a time")
]
"""ISO 8601 date-time with `Z` or an offset."""
StringMap = Annotated[
    Mapping[
        Annotated[str, StringConstraints(max_length=512)],
        Annotated[str, StringConstraints(max_length=8192)],
    ],
    MaxLen(256),
]
Seconds = Annotated[int, Ge(0), Le(31_536_000)]
Atomic = base.ListType("atomic")
Unique = base.ListType("set")


class MissingMode(StrEnum):
    """Reaction to a part of a source that is absent for one snapshot."""

    ERROR = "ERROR"
    """The run fails and does not publish the snapshot."""
    CONTINUE_IGNORE = "CONTINUE_IGNORE"
    """The snapshot is published without the source and all that is joined to it."""
    CONTINUE_WARN = "CONTINUE_WARN"
    """Like CONTINUE_IGNORE, with a warning."""
    SKIP_IGNORE = "SKIP_IGNORE"
    """The snapshot is left out and tried again by the next run."""
    SKIP_WARN = "SKIP_WARN"
    """Like SKIP_IGNORE, with a warning."""

    @property
    def continues(self) -> bool:
        """The source and all below it are left out of the snapshot."""
        return self in (MissingMode.CONTINUE_IGNORE, MissingMode.CONTINUE_WARN)

    @property
    def skips(self) -> bool:
        """The whole snapshot is left out, and tried again by the next run."""
        return self in (MissingMode.SKIP_IGNORE, MissingMode.SKIP_WARN)

    @property
    def warns(self) -> bool:
        """The outcome is logged as a warning rather than not at all."""
        return self in (MissingMode.CONTINUE_WARN, MissingMode.SKIP_WARN)


class PathMissingMode(StrEnum):
    """Reaction to the lack of relationships that lead from the root to a source."""

    ERROR = "ERROR"
    """The declarations are refused."""
    CONTINUE_IGNORE = "CONTINUE_IGNORE"
    """The output does without the source."""
    CONTINUE_WARN = "CONTINUE_WARN"
    """Like CONTINUE_IGNORE, with a warning."""


class Preference(StrEnum):
    """Choice between several snapshots that qualify."""

    NEWEST = "NEWEST"
    """The latest one."""
    OLDEST = "OLDEST"
    """The earliest one."""


class CheckMode(StrEnum):
    """Effect of an unmet expectation: fail before publication, or warn and publish."""

    FAIL = "FAIL"
    """The snapshot is not published and the run fails."""
    WARN = "WARN"
    """The snapshot is published, with a warning."""


OffsetPart = Annotated[int, Ge(0), Le(1_000_000_000_000)]


class TimeOffset(base.ApiModel):
    """A calendar length; its parts are applied from year to nano, in a time zone.

    As text, `7d`, `1h30min` (units ns, s, min, h, d, w, mo and y) or ISO 8601 (`P7D`). A day is a
    calendar day (23 to 25 hours where clocks change); an hour is always 60 minutes.
    """

    nano: OffsetPart = 0
    """Nanoseconds."""
    second: OffsetPart = 0
    """Seconds."""
    minute: OffsetPart = 0
    """Minutes."""
    hour: OffsetPart = 0
    """Hours of 60 minutes."""
    day: OffsetPart = 0
    """Calendar days."""
    week: OffsetPart = 0
    """Calendar weeks."""
    month: OffsetPart = 0
    """Calendar months; the day is clipped to the month's last."""
    year: OffsetPart = 0
    """Calendar years; 29 February is clipped to 28."""

    @property
    def is_zero(self) -> bool:
        return not any(self.model_dump().values())

    @property
    def text(self) -> str:
        """As people write it: `1mo7d`; `0s` where every part is zero."""
        given = ((getattr(self, part), unit) for part, unit in _UNITS.items())
        return "".join(f"{number}{unit}" for number, unit in given if number) or "0s"


_UNITS = {
    "year": "y", "month": "mo", "week": "w", "day": "d", "hour": "h", "minute": "min",
    "second": "s", "nano": "ns",
}  # fmt: skip


class LocalDateTime(base.ApiModel):
    """A local time in a zone; all eight parts are required.

    As text, a date (midnight in UTC), or a date and time with its zone in brackets, such as
    `2024-01-01[Australia/Melbourne]` or `2024-01-01T06:00[Europe/Berlin]`.
    """

    year: Annotated[int, Ge(1), Le(9999)]
    """Year."""
    month: Annotated[int, Ge(1), Le(12)]
    """Month."""
    day: Annotated[int, Ge(1), Le(31)]
    """Day of the month."""
    hour: Annotated[int, Ge(0), Le(23)]
    """Hour."""
    minute: Annotated[int, Ge(0), Le(59)]
    """Minute."""
    second: Annotated[int, Ge(0), Le(59)]
    """Second."""
    nano: Annotated[int, Ge(0), Le(999_999_999)]
    """Nanosecond."""
    timezone: TimeZoneName
    """Zone of this time and of every calendar length of the OutputDataset."""

    @model_validator(mode="after")
    def _day_exists(self) -> Self:
        days = monthrange(self.year, self.month)[1]
        if self.day > days:
            month = f"{self.year}-{self.month:02d}"
            raise base.contradiction(
                "the month has no such day",
                found=f"{self.day}, and {month} has {days}",
                expected=f"a day of {month}",
                hint=f"write a day from 1 to {days}",
            )
        return self


def refuse_nothing(field: str, offset: TimeOffset) -> None:
    """Refuse an offset of which every part is zero; the twin of `LENGTH_NOT_ZERO` in the schema."""
    if offset.is_zero:
        raise base.contradiction(
            f"{field} must be longer than nothing; every part is 0",
            found=f"{field} of length 0",
            expected="a part that is more than 0",
            hint=f"write a length, such as `{field}: 1d`",
        )


class Empty(base.ApiModel):
    """An object without fields, written `{}`."""


class DecimalType(base.ApiModel):
    """An exact number."""

    precision: Annotated[int, Ge(1), Le(38)]
    """Digits in all."""
    scale: Annotated[int, Ge(0), Le(38)]
    """Digits after the point; no more than `precision`."""

    @model_validator(mode="after")
    def _scale_within_precision(self) -> Self:
        if self.scale > self.precision:
            raise base.contradiction(
                "scale must not exceed precision",
                found=f"scale {self.scale} and precision {self.precision}",
                expected=f"a scale of at most {self.precision}",
                hint="precision counts all digits, scale those after the point: raise precision "
                "or lower scale",
            )
        return self


class ArrayType(base.ApiModel):
    """A list of values of one type."""

    element_type: Annotated[DataType, TYPE]
    """Type of the elements."""
    contains_null: bool = True
    """Whether elements may be NULL."""


class MapType(base.ApiModel):
    """Values by key."""

    key_type: Annotated[DataType, TYPE]
    """Type of the keys."""
    value_type: Annotated[DataType, TYPE]
    """Type of the values."""
    value_contains_null: bool = True
    """Whether values may be NULL."""


class SchemaField(base.ApiModel):
    """A named field with its type."""

    name: ColumnName
    """Name of the field."""
    data_type: Annotated[DataType, TYPE]
    """Type of the field."""
    nullable: bool = True
    """Whether the field may be NULL."""
    metadata: StringMap = Field(default_factory=dict)
    """Metadata attached to the field."""


class StructType(base.ApiModel):
    """Named fields."""

    fields_: Annotated[tuple[SchemaField, ...], MinLen(1), MaxLen(2000), Atomic] = Field(
        alias="fields"
    )
    """The fields, in order."""


class DataType(base.ApiModel):
    """A Spark data type, tagged by its name, such as `{string: {}}`.

    As text, it is written as in SQL, such as `bigint` or `array<string>`.
    """

    one_of_by_count = True
    one_of: ClassVar[tuple[str, ...]] = (
        "array", "binary", "boolean", "byte", "calendarInterval", "date", "decimal", "double",
        "float", "integer", "long", "map", "null", "short", "string", "struct", "timestamp",
        "timestampNtz",
    )  # fmt: skip

    array: ArrayType | None = None
    """A list of values of one type."""
    binary: Empty | None = None
    """Bytes."""
    boolean: Empty | None = None
    """True or false."""
    byte: Empty | None = None
    """Whole number of 8 bits."""
    calendar_interval: Empty | None = None
    """Months, days and microseconds."""
    date: Empty | None = None
    """A day without a time zone."""
    decimal: DecimalType | None = None
    """An exact number."""
    double: Empty | None = None
    """Floating point number of 64 bits."""
    float_: Empty | None = Field(default=None, alias="float")
    """Floating point number of 32 bits."""
    integer: Empty | None = None
    """Whole number of 32 bits."""
    long: Empty | None = None
    """Whole number of 64 bits."""
    map_: MapType | None = Field(default=None, alias="map")
    """Values by key."""
    null: Empty | None = None
    """Always NULL."""
    short: Empty | None = None
    """Whole number of 16 bits."""
    string: Empty | None = None
    """Text."""
    struct: StructType | None = None
    """Named fields."""
    timestamp: Empty | None = None
    """An instant, to microseconds."""
    timestamp_ntz: Empty | None = None
    """A date and a time of day without a time zone, to microseconds (Spark's `timestamp_ntz`)."""


STRING = DataType(string=Empty())
LONG = DataType(long=Empty())


class CatalogTable(base.ApiModel):
    """A table of Iceberg in a catalog."""

    catalog: Annotated[
        str,
        StringConstraints(min_length=1, max_length=128, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$"),
        base.Variables("a table"),
    ]
    """Name of a catalog in the settings of Spark: `spark.sql.catalog.<name>.type` and others."""
    name: Annotated[
        str,
        StringConstraints(
            min_length=3, max_length=512, pattern=r"^[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)+$"
        ),
        base.Variables("a table"),
    ]
    """`namespace.table`; that of an output is made by the first publication, with the namespace if
    need be."""

    def __str__(self) -> str:
        return f"{self.catalog}.{self.name}"

    @property
    def place(self) -> str:
        """Its place, as places of outputs and sources are compared."""
        return f"table:/{self.catalog}/{self.name}/"


class ConditionStatus(StrEnum):
    """Whether a condition holds."""

    TRUE = "True"
    """It holds."""
    FALSE = "False"
    """It does not hold."""
    UNKNOWN = "Unknown"
    """It is not known yet."""


class Condition(base.ApiModel):
    """One aspect of a resource's state, in the form of Kubernetes' own conditions."""

    type: Annotated[str, StringConstraints(min_length=1, max_length=316)]
    """Ready, Reconciling, Stalled, Validated, Planned, SnapshotFresh, IndexFresh or Suspended."""
    status: ConditionStatus
    """Whether the condition holds."""
    observed_generation: Annotated[int, Ge(0)] | None = None
    """Generation of the spec that this was computed from."""
    last_transition_time: TimestampText
    """Time of the last change of the status."""
    reason: Annotated[str, StringConstraints(min_length=1, max_length=1024)]
    """Stable CamelCase reason, documented in the reference."""
    message: MessageText = ""
    """Information for a person, and the action to take."""


class ResourceStatus(base.ApiModel):
    """The status that every kind has."""

    observed_generation: Annotated[int, Ge(0)] | None = None
    """Generation of the spec that this status was computed from."""
    conditions: Annotated[
        tuple[Condition, ...], MaxLen(16), base.ListType("map", keys=("type",))
    ] = ()
    """Aspects of the state; wait for `Ready`."""


for _model in (ArrayType, MapType, SchemaField, StructType, DataType):
    _model.model_rebuild()


# The envelope of every resource: version, kind and metadata, as Kubernetes writes them.

_Text = Annotated[str, StringConstraints(max_length=1024)]
_AnnotationText = Annotated[str, StringConstraints(max_length=262_144)]  # Kubernetes' own limit


class ObjectMeta(base.ApiModel):
    """Metadata of a resource; all but name, namespace, labels and annotations is the cluster's."""

    name: ResourceName
    """Name, unique per kind (and namespace)."""
    namespace: Annotated[_Text, base.Variables("a name")] | None = None
    """Namespace; references never leave it."""
    labels: StringMap = Field(default_factory=dict)
    """Labels."""
    annotations: Annotated[dict[_Text, _AnnotationText], MaxLen(256)] = Field(default_factory=dict)
    """Annotations."""
    generate_name: _Text | None = None
    """Set by the cluster."""
    uid: _Text | None = None
    """Set by the cluster."""
    resource_version: _Text | None = None
    """Set by the cluster."""
    generation: int | None = None
    """Set by the cluster: counts changes of the spec."""
    creation_timestamp: _Text | None = None
    """Set by the cluster."""
    deletion_timestamp: _Text | None = None
    """Set by the cluster."""
    deletion_grace_period_seconds: int | None = None
    """Set by the cluster."""
    finalizers: Annotated[tuple[_Text, ...], MaxLen(64)] = ()
    """Set by controllers."""
    owner_references: Annotated[tuple[JsonValue, ...], MaxLen(64)] = ()
    """Set by controllers."""
    managed_fields: Annotated[tuple[JsonValue, ...], MaxLen(256)] = ()
    """Set by the cluster."""
    self_link: _Text | None = None
    """Set by old clusters."""


class Resource(base.ApiModel):
    """The parts of every kind besides its spec."""

    api_version: Literal["snaploom.io/v1alpha1"] = API_VERSION
    """Version of the API."""
    kind: str
    """Name of the kind."""
    metadata: ObjectMeta
    """Name, labels and the cluster's additions."""

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def identity(self) -> str:
        """`Kind/name`, as messages name it."""
        return f"{self.kind}/{self.metadata.name}"

    def finding(
        self,
        code: str,
        path: str,
        message: str,
        *,
        found: str = "",
        expected: str = "",
        hint: str = "",
        severity: Severity | None = None,
    ) -> Finding:
        """A finding about a field of this resource, as `make_finding` makes it."""
        return make_finding(
            code,
            message,
            resource=self.identity,
            path=path,
            found=found,
            expected=expected,
            hint=hint,
            severity=severity,
        )


LARGEST = 2**63 - 1
"""Of numbers that Spark, Iceberg and file systems know: 64 bits with a sign."""
