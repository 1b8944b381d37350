"""Files that did not change are sent to Python once."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.skipping.skippingrule import SETTINGS, write_parts

from snaploom.skipping.spark.optimizer import rule
from snaploom.skipping.spark.optimizer.requests import FORGOTTEN, Request


class Texts:
    """Keeps every file, and what it was asked."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    def __call__(self, text: str) -> str:
        self.requests.append(Request.parse(text))
        return "1" * 4

    @property
    def were_without_files(self) -> list[bool]:
        return [request.is_without_files for request in self.requests]


@pytest.fixture
def own(spark: SparkSession, tmp_path: Path) -> str:
    """Four files of this test only."""
    return write_parts(spark, tmp_path / "t")


@contextmanager
def asking(spark: SparkSession, decider: Callable[[str], str]) -> Iterator[None]:
    rule.install(spark, decider, SETTINGS)
    try:
        yield
    finally:
        rule.uninstall(spark)


def count_each(spark: SparkSession, path: str, *conditions: str) -> None:
    for condition in conditions:
        assert spark.read.schema("id BIGINT").parquet(path).where(condition).count() == 40


def test_second_query_sends_no_files(spark: SparkSession, own: str) -> None:
    texts = Texts()
    with asking(spark, texts):
        count_each(spark, own, "id >= 0", "id >= -1", "id >= -2")
    assert texts.were_without_files == [False, True, True]
    assert len({request.listing_name for request in texts.requests}) == 1


def test_changed_file_sends_the_files_under_another_name(spark: SparkSession, own: str) -> None:
    texts = Texts()
    with asking(spark, texts):
        count_each(spark, own, "id >= 0")
        next(Path(own).glob("part-*")).touch()
        count_each(spark, own, "id >= 0")
    assert texts.were_without_files == [False, False]
    assert len({request.listing_name for request in texts.requests}) == 2


def test_installing_again_sends_the_files_under_another_name(spark: SparkSession, own: str) -> None:
    first, second = Texts(), Texts()
    for texts in (first, second):
        with asking(spark, texts):
            count_each(spark, own, "id >= 0")
    assert second.were_without_files == [False]
    assert first.requests[0].listing_name != second.requests[0].listing_name


def test_forgotten_listing_is_sent_once_more(spark: SparkSession, own: str) -> None:
    asked: list[bool] = []

    def forgetful(text: str) -> str:
        asked.append(Request.parse(text).is_without_files)
        return FORGOTTEN if asked[-1] else "1111"

    failures, _ = rule.errors(spark)
    with asking(spark, forgetful):
        count_each(spark, own, "id >= 0", "id >= -1")
    assert asked == [False, True, False]
    assert rule.errors(spark)[0] == failures
