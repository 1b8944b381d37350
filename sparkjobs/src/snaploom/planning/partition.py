"""The hive partition of a snapshot: one folder `<field>=<value>` (rule P12).

Spark escapes `:` in a partition's value as `%3A` and keeps `+` and `-`, so the folder must
be written the same way to be read back. A format that is coarser than the snapshots would put two
of them into one folder, which is refused before anything is written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from whenever import Instant, TimeDelta

from snaploom.models.finding import Finding, Severity
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.outputfolder import HivePartitioned, OutputFolder, TimestampFormat
from snaploom.models.times import (
    NANOS_PER_MILLISECOND,
    NANOS_PER_SECOND,
    EpochNanos,
    format_instant,
)

PARTITION_CLASH = "SL305"
"""Two snapshots would share a partition."""

_RESOLUTION = {
    TimestampFormat.UNIX_MILLISECONDS: NANOS_PER_MILLISECOND,
    TimestampFormat.UNIX_SECONDS: NANOS_PER_SECOND,
    # ISO 8601 is written with as many fractional digits as the time has.
    TimestampFormat.ISO8601_DATE_TIME: 1,
}
_PATH = "spec.outputFolder.snapshotFormat.hivePartitioned"


@dataclass(frozen=True, slots=True)
class Partition:
    """The partition of one snapshot."""

    value: str
    """Value of the partition column, as readers see it."""
    folder: str
    """Name of the folder, escaped as Spark does."""


def hive_of(folder: OutputFolder) -> HivePartitioned:
    """The partitioning of a folder; the model allows exactly this form."""
    hive = folder.snapshot_format.hive_partitioned
    assert hive is not None  # guaranteed by one_of
    return hive


def partition_of(hive: HivePartitioned, time: EpochNanos) -> Partition:
    """The partition of a snapshot time; times before 1970 round down."""
    value = _value(hive, time)
    return Partition(value, f"{hive.field_name}={value.replace(':', '%3A')}")


def _value(hive: HivePartitioned, time: EpochNanos) -> str:
    if hive.timestamp_format is not TimestampFormat.ISO8601_DATE_TIME:
        return str(time // _RESOLUTION[hive.timestamp_format])
    moment = Instant.from_timestamp(time, unit="nanosecond").to_tz(hive.output_timezone)
    if moment.offset == TimeDelta.ZERO:
        return format_instant(time)
    return moment.to_fixed_offset().format_iso()


def partition_clashes(
    output: OutputDataset, new: Iterable[EpochNanos], published: Iterable[EpochNanos] = ()
) -> tuple[Finding, ...]:
    """A finding for every new snapshot that another one's partition would hold too."""
    hive = hive_of(output.spec.output_folder)
    holders = {partition_of(hive, time).folder: time for time in published}
    found = []
    for time in new:
        folder = partition_of(hive, time).folder
        holder = holders.setdefault(folder, time)
        if holder != time:
            found.append(_clash(output, folder, holder, time))
    return tuple(found)


def _clash(output: OutputDataset, folder: str, holder: EpochNanos, time: EpochNanos) -> Finding:
    return Finding(
        code=PARTITION_CLASH,
        severity=Severity.ERROR,
        resource=output.identity,
        path=f"{_PATH}.timestampFormat",
        message=f"the snapshots {format_instant(holder)} and {format_instant(time)} would share "
        f"the partition {folder}",
        found=f"timestampFormat {hive_of(output.spec.output_folder).timestamp_format}",
        expected="a partition for each snapshot",
        hint="choose a finer timestampFormat; ISO8601_DATE_TIME distinguishes all times",
    )
