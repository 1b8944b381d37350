"""The same declaration is the same index in every interface."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession
from support.skipping.indexinterfaces import INTERFACES, Lake, by_sql

from snaploom.models.skippingindex import IndexState


@pytest.mark.parametrize("declare", INTERFACES)
def test_every_interface_makes_the_same_definition(
    spark: SparkSession, lake: Lake, declare: Callable[[SparkSession, Lake], None]
) -> None:
    other = Lake(lake.folder / "other").fill()
    by_sql(spark, other)
    expected = other.definition()
    declare(spark, lake)
    found = lake.definition()
    assert replace(found, owner="", target=expected.target, properties=()) == replace(
        expected, properties=()
    )
    assert found.target.uri == f"file:{lake.data}"


@pytest.mark.parametrize("declare", INTERFACES[:4])
def test_a_created_index_is_empty_until_it_is_refreshed(
    spark: SparkSession, lake: Lake, declare: Callable[[SparkSession, Lake], None]
) -> None:
    declare(spark, lake)
    assert lake.state().phase is IndexState.EMPTY
    assert not lake.state().may_skip
