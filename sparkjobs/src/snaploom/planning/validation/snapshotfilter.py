"""Which snapshots an output takes: starts, zones, exclusions, settings that take none at all."""

from __future__ import annotations

from snaploom.models.codes import make_finding
from snaploom.models.common import TimeOffset
from snaploom.models.datasource import DataSource
from snaploom.models.finding import Finding
from snaploom.models.outputdataset import (
    FromCron,
    IntervalRules,
    OutputDataset,
)
from snaploom.models.outputfolder import TimestampFormat
from snaploom.models.times import NANOS_PER_MILLISECOND, NANOS_PER_SECOND
from snaploom.planning.commonchecks.fields import (
    Findings,
    cron_findings,
    instant_findings,
    length_findings,
    range_findings,
    zone_findings,
)
from snaploom.planning.commonchecks.scope import Scope
from snaploom.planning.sources.registry import declared

RESOLUTIONS = {
    TimestampFormat.UNIX_SECONDS: (NANOS_PER_SECOND, "a second"),
    TimestampFormat.UNIX_MILLISECONDS: (NANOS_PER_MILLISECOND, "a millisecond"),
}
"""Shortest time that partition folders can distinguish; ISO 8601 has as many digits as needed."""

_FILTER = "spec.dataModel.rootDataSource.snapshotFilter"


def filter_findings(output: OutputDataset, scope: Scope) -> Findings:
    """Everything that is wrong with an output's choice of snapshots."""
    snapshot_filter = output.spec.data_model.root_data_source.snapshot_filter
    if snapshot_filter.from_interval is not None:
        intervals = snapshot_filter.from_interval
        zone = intervals.interval_start_date.timezone
        path = f"{_FILTER}.fromInterval.intervalStartDate.timezone"
        return (
            *zone_findings(zone, output, path),
            *_common(intervals, intervals.interval_length, output, scope, "fromInterval"),
        )
    ticks = snapshot_filter.from_cron
    assert ticks is not None  # guaranteed by one_of
    return (*_cron(ticks, output), *_common(ticks, ticks.length, output, scope, "fromCron"))


def _cron(ticks: FromCron, output: OutputDataset) -> Findings:
    path = f"{_FILTER}.fromCron"
    return (
        *cron_findings(ticks.schedule, output, f"{path}.schedule"),
        *zone_findings(ticks.time_zone, output, f"{path}.timeZone"),
        *instant_findings(ticks.start_date, output, f"{path}.startDate")[1],
    )


def _common(
    rules: IntervalRules, length: TimeOffset, output: OutputDataset, scope: Scope, form: str
) -> Findings:
    path = f"{_FILTER}.{form}"
    length_field = "intervalLength" if form == "fromInterval" else "length"
    excluded = (
        finding
        for index, interval in enumerate(rules.exclude_intervals)
        for finding in range_findings(
            interval.from_, interval.to, output, f"{path}.excludeIntervals[{index}]"
        )
    )
    return (
        *excluded,
        *length_findings(rules.max_snapshot_age, output, f"{path}.maxSnapshotAge"),
        *_resolution(length, output, f"{path}.{length_field}"),
        *_never_published(rules, output, scope, path),
    )


def _resolution(length: TimeOffset, output: OutputDataset, path: str) -> Findings:
    partitioned = output.spec.output_folder.snapshot_format.hive_partitioned
    if partitioned is None or partitioned.timestamp_format not in RESOLUTIONS:
        return ()
    nanos, name = RESOLUTIONS[partitioned.timestamp_format]
    longer = length.model_copy(update={"nano": 0})
    if not longer.is_zero or length.nano >= nanos:
        return ()
    return (
        make_finding(
            "SL172",
            f"intervals are shorter than {name}, the resolution of partition folders",
            resource=output.identity,
            path=path,
            found=f"{length.nano} ns, with timestampFormat {partitioned.timestamp_format}",
            expected=f"at least {name}",
            hint="use timestampFormat ISO8601_DATE_TIME, or a longer interval",
        ),
    )


def _never_published(
    rules: IntervalRules, output: OutputDataset, scope: Scope, path: str
) -> list[Finding]:
    root = output.spec.data_model.root_data_source.data_source
    if rules.only_closed_intervals and _reads_now(scope.sources.get(root), scope):
        return [_never_closed(root, output, path)]
    return []


def _never_closed(root: str, output: OutputDataset, path: str) -> Finding:
    return make_finding(
        "SL179",
        "nothing will ever be published: the root is known at the time of reading only, "
        "which always lies in an interval that has not ended",
        resource=output.identity,
        path=f"{path}.onlyClosedIntervals",
        found=f"onlyClosedIntervals true, and DataSource/{root} with fromReadTime",
        expected="onlyClosedIntervals false, or a root with fromFieldValue",
        hint=f"write `onlyClosedIntervals: false`, or name a field of DataSource/{root} with "
        "the time in its snapshot.fromFieldValue",
    )


def _reads_now(source: DataSource | None, scope: Scope) -> bool:
    read = None if source is None else declared(source).snapshots_of
    if read is not None:
        source = scope.sources.get(read)
    return source is not None and declared(source).is_read_now
