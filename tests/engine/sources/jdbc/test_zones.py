"""Java's zone: times of databases are read where it is UTC, and refused elsewhere."""

from datetime import datetime

import pytest
from support.declared.sources import NOW, rows_at
from support.servers.databases import in_h2, make_h2

from snaploom.errors import SourceError

pytestmark = pytest.mark.spark


@pytest.fixture
def java_zone(spark):
    zones = spark.sparkContext._gateway.jvm.java.util.TimeZone
    before = zones.getDefault()
    yield lambda name: zones.setDefault(zones.getTimeZone(name))
    zones.setDefault(before)


@pytest.mark.parametrize("zone", ["America/New_York", "Europe/London", "Asia/Kolkata"])
def test_other_zones_than_utc_are_refused(opened, tmp_path, java_zone, zone):
    java_zone(zone)
    with pytest.raises(SourceError) as caught:
        opened(in_h2(tmp_path / "none", "ORDERS")).listing()
    assert (caught.value.reason, caught.value.found) == ("ZoneNotUtc", zone)


@pytest.mark.parametrize("zone", ["UTC", "GMT", "Etc/UTC"])
def test_names_of_utc_are_fine(opened, tmp_path, java_zone, zone):
    make_h2(tmp_path / "shop", "CREATE TABLE T AS SELECT TIMESTAMP '2024-03-10 02:30:00' AS AT")
    java_zone(zone)
    assert rows_at(opened(in_h2(tmp_path / "shop", "T")), NOW) == [(datetime(2024, 3, 10, 2, 30),)]
