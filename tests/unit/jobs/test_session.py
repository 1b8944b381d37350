"""The Spark configuration that a resource asks for, on whatever machine it runs."""

import pytest

from snaploom.jobs.session.spark import configured
from snaploom.models.run import DriverSettings, RunSettings, SparkSettings, spark_memory


@pytest.mark.parametrize(
    ("text", "expected"),
    [("2Gi", "2g"), ("512m", "512m"), ("512MiB", "512m"), ("1T", "1t"), ("4gb", "4g")],
)
def test_sizes_in_kubernetes_words_become_sparks(text: str, expected: str) -> None:
    assert spark_memory(text) == expected
    spark = SparkSettings(driver=DriverSettings(memory=text))
    assert configured(RunSettings(spark=spark)) == {"spark.driver.memory": expected}
