"""The Spark configuration that a resource asks for, on whatever machine it runs."""

import threading
from typing import cast

import pytest
from pyspark.sql import SparkSession

from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.run import DriverSettings, RunSettings, SparkSettings, spark_memory
from snaploom.run.session.jvm import SparkNotStarted
from snaploom.run.session.providers import open_early
from snaploom.run.session.spark import SparkStopped, configured, in_utc, sibling_session
from snaploom.sources.databases.connection import zone_in


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


def test_a_session_is_opened_while_its_user_goes_on() -> None:
    may_open, session = threading.Event(), cast(SparkSession, object())

    def open_session(
        name: str, run: RunSettings, allow: Allowances, /, *, is_small: bool = False
    ) -> SparkSession:
        assert may_open.wait(60)
        return session

    opened = open_early(open_session, "snaploom", RunSettings(), NO_ALLOWANCES)
    may_open.set()
    assert opened() is session


def test_what_opening_a_session_raises_reaches_its_user() -> None:
    def open_session(
        name: str, run: RunSettings, allow: Allowances, /, *, is_small: bool = False
    ) -> SparkSession:
        raise SparkNotStarted("no Java", hint="install it")

    opened = open_early(open_session, "snaploom", RunSettings(), NO_ALLOWANCES)
    with pytest.raises(SparkNotStarted, match="no Java"):
        opened()


class StoppedSession:
    """A session after `stop()`."""

    @property
    def sparkContext(self) -> object:  # noqa: N802 -- as PySpark spells it
        """Its context, without a JVM."""
        return type("Context", (), {"_jsc": None})


def test_a_session_that_was_stopped_is_named_and_no_java_is_looked_for() -> None:
    with pytest.raises(SparkStopped, match="was stopped") as caught:
        sibling_session(cast(SparkSession, StoppedSession()), RunSettings())
    assert "getOrCreate" in caught.value.hint
    assert "java" not in str(caught.value)
