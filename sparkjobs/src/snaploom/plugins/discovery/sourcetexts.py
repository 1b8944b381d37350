"""DataSources of found tables: globs, prefix with captures, snapshots and windows."""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from snaploom.models import datasource
from snaploom.models.common import ObjectMeta, SchemaField, TimeOffset
from snaploom.models.fieldtransformer import (
    Expression,
    FieldTransformer,
    FieldTransformerSpec,
    Transformer,
    TransformerSelector,
)
from snaploom.models.shortforms import MONTHS
from snaploom.plugins.discovery import dates
from snaploom.plugins.discovery.foundfiles import FoundFile
from snaploom.plugins.discovery.layout import Layout, TableFolder, globs_of
from snaploom.plugins.discovery.names import words_of
from snaploom.plugins.discovery.paths import Kind, date_place
from snaploom.plugins.discovery.profiles import DatabaseTable, SourceProfile
from snaploom.policy.fileformats import format_of
from snaploom.sources.files.globs import escape_glob
from snaploom.types.schemas import path_text, quote

# Intervals of the root's snapshots, and how far back a snapshot of a child is looked for.

EVER = TimeOffset(year=100)
"""Further than any data reaches: where one side has no history, the other one's is not compared."""
_DAY = timedelta(days=1)
_LADDER = (
    (timedelta(hours=1), TimeOffset(hour=1)),
    (_DAY, TimeOffset(day=1)),
    (7 * _DAY, TimeOffset(day=7)),
    (28 * _DAY, TimeOffset(month=1)),
    (89 * _DAY, TimeOffset(month=3)),
    (365 * _DAY, TimeOffset(year=1)),
    (3650 * _DAY, TimeOffset(year=10)),
)
"""Lags, and the window that holds each: round lengths, so that a late file is found as well. The
shortest month has 28 days, the shortest quarter 89."""


@dataclass(frozen=True)
class Interval:
    """Start and length of the output's snapshots."""

    start: datetime
    length: TimeOffset
    reason: str


@dataclass(frozen=True)
class Window:
    """Window in which a child's snapshot is looked for."""

    before: TimeOffset
    after: TimeOffset
    may_miss: bool
    """Whether snapshots of the root are older than the child's first."""
    reason: str
    """For people; empty where it is the default, a snapshot of the same time."""


def interval_of(times: Sequence[datetime], unit: dates.Unit) -> Interval:
    """The intervals of an output by the times of its root.

    The times ascend, and are empty for a root without history; `unit` is their precision.
    """
    if not times:
        start = datetime(2000, 1, 1)
        return Interval(start, TimeOffset(day=1), "one snapshot a day, of the data at the run")
    gaps = [later - earlier for earlier, later in pairwise(times)]
    count = f"{len(times):,} snapshots" if len(times) > 1 else "1 snapshot"
    count += f", the first of {times[0]:%Y-%m-%d}"
    midnight = times[0].replace(hour=0, minute=0, second=0, microsecond=0)
    smallest = min(gaps, default=_DAY)
    are_weeks = smallest >= 7 * _DAY and all(gap % (7 * _DAY) == timedelta() for gap in gaps)
    weeks = smallest // (7 * _DAY) if are_weeks and len(gaps) > 1 and len(set(gaps)) == 1 else 1
    for fits, start, months, length, text in (
        (unit is dates.Unit.YEAR or smallest >= 365 * _DAY, midnight.replace(month=1, day=1), 12,
         TimeOffset(year=1), "one a year"),
        (unit is dates.Unit.QUARTER, midnight, 3, TimeOffset(month=3), "one a quarter"),
        (unit is dates.Unit.MONTH or (smallest >= 28 * _DAY and weeks == 1),
         midnight.replace(day=1), 1, TimeOffset(month=1), "one a month"),
    ):  # fmt: skip
        # An output has one snapshot an interval: others in it would never be published.
        taken = {(12 * time.year + time.month - start.month) // months for time in times}
        if fits and len(taken) == len(times):
            return Interval(start, length, f"{count}, {text}")
    if unit is dates.Unit.WEEK or are_weeks:
        often = "one a week" if weeks == 1 else f"one every {weeks} weeks"
        return Interval(midnight, TimeOffset(week=weeks), f"{count}, {often}")
    if smallest >= _DAY:
        return Interval(midnight, TimeOffset(day=1), f"{count}, one a day at most")
    if smallest >= timedelta(hours=1):
        start = times[0].replace(minute=0, second=0, microsecond=0)
        return Interval(start, TimeOffset(hour=1), f"{count}, one an hour at most")
    start = times[0].replace(second=0, microsecond=0)
    for length, seconds in ((TimeOffset(minute=1), 60), (TimeOffset(second=1), 1)):
        if len({(time - start) // timedelta(seconds=seconds) for time in times}) == len(times):
            return Interval(start, length, f"{count}, several an hour")
    return Interval(start, TimeOffset(nano=1_000_000), f"{count}, several a second")


def window_of(root: Sequence[datetime], child: Sequence[datetime]) -> Window:
    """The window of a child by the times of both; empty for a source without history.

    Both ascend.
    """
    none = TimeOffset()
    if not child and not root:
        return Window(none, none, False, "")
    if not child:
        return Window(none, EVER, False, "no history: every snapshot gets the data at the run")
    if not root:
        return Window(EVER, none, False, "the newest snapshot at the time of the run")
    lags: list[timedelta] = []
    missed = 0
    for time in root:
        place = bisect_right(child, time)
        if place == 0:
            missed += 1
        else:
            lags.append(time - child[place - 1])
    most = max(lags, default=timedelta())
    late = f"; {missed} of {len(root)} snapshots are older than its first" if missed else ""
    if most == timedelta():
        return Window(none, none, missed > 0, late.removeprefix("; "))
    shown = f"{most.days} days" if most >= _DAY else f"{most.seconds // 60} minutes"
    if len(child) == 1:  # when the next one comes is not known
        most = max(most, 365 * _DAY)
    length = next((offset for lag, offset in _LADDER if most <= lag), EVER)
    return Window(length, none, missed > 0, f"its newest snapshot is up to {shown} older{late}")


# DataSources of found tables: globs, prefix with captures, snapshots, and schema.

READ_NOW = datasource.SnapshotSettings(from_read_time=datasource.FromReadTime())
_NUMBERS = (datasource.TimeFormat.UNIX_MILLISECONDS, datasource.TimeFormat.UNIX_SECONDS)
_DATE_COLUMN = "snapshot_date"


@dataclass(frozen=True)
class Capture:
    """A capture of `sourceUriPrefix`."""

    piece: int
    """Place of its piece in the layout."""
    name: str
    type: str


@dataclass(frozen=True)
class DeclaredSource:
    """The declaration of a table."""

    profile: SourceProfile
    name: str
    physical: datasource.HdfsLike | datasource.Jdbc
    """Its files, or its table of a database."""
    time_query: str
    """SQL for the milliseconds of a row's snapshot, where only a query can read the date; else
    empty."""

    @property
    def physical_name(self) -> str:
        """Name of the DataSource of its files."""
        return f"{self.name}-files" if self.time_query else self.name

    def resources(self) -> tuple[datasource.DataSource | FieldTransformer, ...]:
        """Its files, types of texts, and a query over them where only that can read the date."""
        physical = self.physical
        spec = (
            datasource.DataSourceSpec(jdbc=physical)
            if isinstance(physical, datasource.Jdbc)
            else datasource.DataSourceSpec(hdfs_like=physical)
        )
        files = _source(self.physical_name, spec)
        queries = (self.virtual(self.name),) if self.time_query else ()
        return (files, *_of_values(self.profile, physical), *queries)

    def virtual(self, name: str) -> datasource.DataSource:
        """A virtual source with the same rows, for a role or for dates that need a query."""
        if not self.time_query:
            alias = "_".join(words_of(self.name)) or "files"
            alias = alias if alias[0].isalpha() else f"t_{alias}"
            simple = datasource.SimpleVirtual(
                data_source=self.physical_name, alias=alias, data_query=f"SELECT * FROM {alias}"
            )
            return _source(name, datasource.DataSourceSpec(simple_virtual=simple))
        query = datasource.ComplexVirtual(
            data_sources=(datasource.AliasedSource(data_source=self.physical_name, alias="files"),),
            snapshot_query=f"SELECT {self.time_query} AS interval_start, "
            f"{self.time_query} AS interval_end FROM files",
            data_query=f"SELECT * FROM files WHERE {self.time_query} = "
            "{{ SNAPSHOT | UNIX_MILLISECONDS }}",
        )
        return _source(name, datasource.DataSourceSpec(complex_virtual=query))


def _source(name: str, spec: datasource.DataSourceSpec) -> datasource.DataSource:
    return datasource.DataSource(metadata=ObjectMeta(name=name), spec=spec)


def _of_values(
    profile: SourceProfile, physical: datasource.HdfsLike | datasource.Jdbc
) -> Iterator[FieldTransformer]:
    """Types of columns in which texts stand for no value.

    Spark's option `nullValue` holds for all columns, and `NA` is also the code of Namibia.
    """
    selectors = defaultdict[str, list[TransformerSelector]](list)
    for column in profile.columns:
        nulls = ", ".join(f"'{each}'" for each in profile.null_texts.get(column.name, ()))
        if nulls:
            cast = f"CAST(CASE WHEN value NOT IN ({nulls}) THEN value END AS {_SQL[column.type]})"
        elif column.name in profile.mixed:
            cast = f"CAST(CAST(value AS string) AS {_SQL.get(column.type, 'string')})"
        if nulls or column.name in profile.mixed:
            one = TransformerSelector(coordinate_include_regex=f"^{re.escape(column.name)}$")
            selectors[cast.replace("\\", "\\\\")].append(one)
    changes = tuple(
        Transformer(expression=Expression(sql=sql), selectors=tuple(some[at : at + _AT_ONCE]))
        for sql, some in selectors.items()
        for at in range(0, len(some), _AT_ONCE)
    )
    for name in physical.field_transformers:
        spec = FieldTransformerSpec(transformers=changes)
        yield FieldTransformer(metadata=ObjectMeta(name=name), spec=spec)


_AT_ONCE = 64
"""Selectors that a transformer may have."""
_SQL = {
    dates.LONG: "bigint", dates.UNSIGNED: "decimal(20)", dates.DOUBLE: "double", dates.DATE: "date",
    dates.TIMESTAMP: "timestamp", dates.BOOLEAN: "boolean", dates.STRING: "string",
}  # fmt: skip


def declared_source(
    profile: SourceProfile, name: str, listed: Iterable[FoundFile]
) -> DeclaredSource:
    """Return the declaration of a table.

    `listed` has every file that was found.
    """
    origin = profile.origin
    snapshot, query = _by_column(profile)
    if isinstance(origin, DatabaseTable):
        table = origin.address.source(origin.reference, snapshot)
        return DeclaredSource(profile, name, table, query)
    if isinstance(origin, TableFolder):
        folder = datasource.HdfsLike(
            format=origin.data_format, source_uri_globs=(origin.uri,), snapshot=snapshot
        )
        return DeclaredSource(profile, name, folder, query)
    captures = _captures(origin, {column.name.casefold() for column in profile.columns})
    if origin.is_dated:
        query = _time_query(origin, captures)
        snapshot = READ_NOW if query else _captured_snapshot(origin, captures)
    files = _files(profile, origin, captures, snapshot, listed)
    if profile.mixed or (profile.null_texts and files.schema_fields is not None):
        files = files.model_copy(update={"field_transformers": (f"{name}-values",)})
    return DeclaredSource(profile, name, files, query)


def _by_column(profile: SourceProfile) -> tuple[datasource.SnapshotSettings, str]:
    """Return the snapshot declaration of a column, or the query that its days take."""
    found = profile.snapshot_column
    if found is None:
        return READ_NOW, ""
    is_time = found.dates.time_format is datasource.TimeFormat.TIMESTAMP
    if not found.dates.is_exact or (is_time and profile.is_untyped):
        return READ_NOW, f"unix_millis(CAST(date_trunc('DAY', {quote(found.name)}) AS TIMESTAMP))"
    settings = datasource.FromFieldValue(
        field_name=path_text((found.name,)),
        time_format=found.dates.time_format,
        time_pattern=found.dates.time_pattern,
        drop_field=False,
    )
    return datasource.SnapshotSettings(from_field_value=settings), ""


def _files(
    profile: SourceProfile, layout: Layout, captures: Sequence[Capture],
    snapshot: datasource.SnapshotSettings, listed: Iterable[FoundFile],
) -> datasource.HdfsLike:  # fmt: skip
    place = layout.files[0].place.uri
    given: dict[str, object] = {"format": layout.data_format}
    if profile.format_options:
        given["format_options"] = dict(profile.format_options)
    others = (file for file in listed if file.place.uri == place)
    globs = globs_of(layout, others)
    given["source_uri_globs"] = tuple(escape_glob(place) + glob for glob in globs)
    if captures:
        given["source_uri_prefix"] = _prefix(layout, captures, place)
    given["snapshot"] = snapshot
    if not format_of(layout.data_format).is_self_describing and not profile.is_untyped:
        given["schema_fields"] = tuple(
            SchemaField(
                name=column.name,
                data_type=(
                    dates.STRING if column.name in profile.null_texts else column.type
                ).data_type,
            )
            for column in profile.columns
        )
    return datasource.HdfsLike.model_validate(given)


def _captured_snapshot(layout: Layout, captures: Sequence[Capture]) -> datasource.SnapshotSettings:
    place = date_place(layout.pieces)
    form = None if place is None else layout.pieces[place].form
    if form is None:
        return READ_NOW
    name = next(capture.name for capture in captures if capture.piece == place)
    return datasource.SnapshotSettings(
        from_field_value=datasource.FromFieldValue(
            field_name=name, time_format=form.time_format, time_pattern=form.pattern
        )
    )


def _captures(layout: Layout, columns: set[str]) -> tuple[Capture, ...]:
    """Dates and values of the path; numbers of parts only where these stand in front of one."""
    kept = [
        index
        for index, piece in enumerate(layout.pieces)
        if piece.kind is Kind.VALUE
        or (layout.is_dated and piece.kind in (Kind.DATE, Kind.PART_OF_DATE))
    ]
    if not kept:
        return ()
    taken = set(columns)
    found: list[Capture] = []
    for index in range(kept[-1] + 1):
        piece = layout.pieces[index]
        if piece.kind is Kind.TEXT:
            continue
        wanted = {
            Kind.DATE: piece.text or _DATE_COLUMN, Kind.PART_OF_DATE: piece.text,
            Kind.VALUE: piece.text, Kind.ANY: "file_part", Kind.WEEKDAY: "weekday",
        }[piece.kind]  # fmt: skip
        options = [wanted, f"file_{wanted}", *(f"{wanted}_{n}" for n in range(2, len(taken) + 4))]
        name = next(option for option in options if option.casefold() not in taken)
        taken.add(name.casefold())
        is_number = piece.form is not None and piece.form.time_format in _NUMBERS
        is_part = piece.kind is Kind.PART_OF_DATE and not _is_named(layout, index)
        kind = "INTEGER" if is_part else "LONG" if is_number else "STRING"
        found.append(Capture(index, name, kind))
    return tuple(found)


def _is_named(layout: Layout, index: int) -> bool:
    """Whether a part of a date is the name of a month."""
    return not all(values[index].isdecimal() for values in layout.values)


def _prefix(layout: Layout, captures: Sequence[Capture], place: str) -> str:
    """The text up to the last capture, and the text behind it to the next `/` or its end."""
    by_piece = {capture.piece: capture for capture in captures}
    last = captures[-1].piece
    parts = [_escaped(place)]
    for index, piece in enumerate(layout.pieces[: last + 1]):
        capture = by_piece.get(index)
        text = _escaped(piece.text)
        parts.append(text if capture is None else f"{{{capture.name}:{capture.type}}}")
    rest = layout.pieces[last + 1].text
    head, slash, _ = rest.partition("/")
    return "".join(parts) + _escaped(head + slash if slash else rest)


def _escaped(text: str) -> str:
    """Text as a prefix has it, in which braces are captures."""
    return text.replace("{", "{{").replace("}", "}}")


def _time_query(layout: Layout, captures: Sequence[Capture]) -> str:
    """SQL for the snapshot of a row; empty where a single capture is read as it is."""
    parts = {
        layout.pieces[c.piece].text: _month(c.name) if _is_named(layout, c.piece) else c.name
        for c in captures if layout.pieces[c.piece].kind is Kind.PART_OF_DATE
    }  # fmt: skip
    place = date_place(layout.pieces)
    form = None if place is None else layout.pieces[place].form
    if form is not None:
        name = next(capture.name for capture in captures if capture.piece == place)
        for part, unit, more in (("hour", dates.Unit.DAY, "HH"), ("day", dates.Unit.MONTH, "dd")):
            if part in parts and form.unit is unit:
                text = f"concat({name}, ' ', lpad(string({parts[part]}), 2, '0'))"
                return f"unix_millis(to_timestamp({text}, '{form.name} {more}'))"
        return ""
    if "week" in parts:  # the fourth of January is always in the first week of ISO
        first = f"CAST(date_trunc('WEEK', make_date({parts['year']}, 1, 4)) AS DATE)"
        return f"unix_millis(CAST(date_add({first}, 7 * ({parts['week']} - 1)) AS TIMESTAMP))"
    if "quarter" in parts:
        parts["month"] = f"3 * {parts['quarter']} - 2"
    numbers = [parts.get("year", ""), *(parts.get(part, number) for part, number in
               (("month", "1"), ("day", "1"), ("hour", "0")))]  # fmt: skip
    return f"unix_millis(make_timestamp({', '.join(numbers)}, 0, 0))"


def _month(name: str) -> str:
    """SQL for the number of a month from its name."""
    cases = (
        f"WHEN {name} RLIKE '(?iu)^({month})[.]?$' THEN {n}" for n, month in enumerate(MONTHS, 1)
    )
    return f"CASE {' '.join(cases)} END"
