"""The Spark configuration that a resource asks for, on whatever machine it runs."""

import pytest

from snaploom.engine.sources.databases.zone import zone_in
from snaploom.jobs.session.spark import configured, in_utc
from snaploom.models.run import DriverSettings, RunSettings, SparkSettings, spark_memory


@pytest.mark.parametrize(
    ("text", "expected"),
    [("2Gi", "2g"), ("512m", "512m"), ("512MiB", "512m"), ("1T", "1t"), ("4gb", "4g")],
)
def test_sizes_in_kubernetes_words_become_sparks(text: str, expected: str) -> None:
    assert spark_memory(text) == expected
    spark = SparkSettings(driver=DriverSettings(memory=text))
    assert configured(RunSettings(spark=spark)) == {"spark.driver.memory": expected}


@pytest.mark.parametrize(
    ("options", "zone"),
    [
        ("", "UTC"),
        ("-Xss4m -Dx=y", "UTC"),
        ("-Duser.timezone=Asia/Kolkata", "Asia/Kolkata"),
        ("-Duser.timezone=Asia/Kolkata -Xss4m -Duser.timezone=GMT", "GMT"),
    ],
)
def test_executors_work_in_utc_unless_an_option_sets_a_zone(options: str, zone: str) -> None:
    assert zone_in(in_utc(options)) == zone
    assert in_utc(options).startswith(options)
    assert zone_in("-Xss4m") is None
