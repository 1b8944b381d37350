from __future__ import annotations

import pytest
from support.declared.joinmodels import customer_model, output_of

from snaploom.models.common import parse_instant
from snaploom.models.outputdataset import HivePartitioned
from snaploom.plan.times import partition_clashes, partition_of


@pytest.mark.parametrize(
    ("given", "time", "folder"),
    [
        ("UNIX_MILLISECONDS UTC", "2020-01-01T00:00:00Z", "at=1577836800000"),
        ("UNIX_SECONDS UTC", "2020-01-01T00:00:00Z", "at=1577836800"),
        ("UNIX_SECONDS UTC", "1969-12-31T23:59:59.5Z", "at=-1"),
        ("ISO8601_DATE_TIME UTC", "2020-01-01T00:00:00Z", "at=2020-01-01T00%3A00%3A00Z"),
        (
            "ISO8601_DATE_TIME Australia/Melbourne", "2020-01-01T00:00:00.25Z",
            "at=2020-01-01T11%3A00%3A00.25+11%3A00",
        ),
        ("ISO8601_DATE_TIME Europe/London", "2020-01-01T00:00:00Z", "at=2020-01-01T00%3A00%3A00Z"),
        (
            "ISO8601_DATE_TIME America/New_York", "2020-07-01T00:00:00Z",
            "at=2020-06-30T20%3A00%3A00-04%3A00",
        ),
    ],
)  # fmt: skip
def test_partition_is_named_as_spark_would(given: str, time: str, folder: str) -> None:
    form, zone = given.split()
    hive = HivePartitioned.parse(
        {"fieldName": "at", "timestampFormat": form, "outputTimezone": zone}
    )
    assert partition_of(hive, parse_instant(time)).folder == folder


def test_snapshots_that_share_a_partition_are_refused() -> None:
    output = output_of(
        customer_model(), snapshotFormat={"hivePartitioned": {"timestampFormat": "UNIX_SECONDS"}}
    )
    times = [parse_instant(f"2020-01-01T00:00:0{s}Z") for s in ("0", "1", "1.5")]
    [finding] = partition_clashes(output, times)
    assert finding.code == "SL305"
    assert "2020-01-01T00:00:01Z and 2020-01-01T00:00:01.5Z" in finding.message
    assert partition_clashes(output, times[:2], published=times[:1]) == ()
    assert len(partition_clashes(output, times[2:], published=times[1:2])) == 1
