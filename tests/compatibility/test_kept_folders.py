"""What a release published and indexed stays readable, and goes on under this version."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from support.compatibility.keptfolders import FORMS, NOW, OUTPUT, KeptFolders, folders_of
from support.compatibility.releases import KeptRelease, kept_releases

import snaploom as sl
from snaploom import skipping

pytestmark = [pytest.mark.spark, pytest.mark.slow]
RELEASES = kept_releases()


@pytest.fixture(scope="module", params=RELEASES, ids=lambda release: release.version)
def release(request: pytest.FixtureRequest) -> KeptRelease:
    found: KeptRelease = request.param
    return found


@pytest.fixture
def folders(release: KeptRelease) -> Iterator[KeptFolders]:
    with folders_of(release) as found:
        yield found


def orders(spark: SparkSession, folders: KeptFolders) -> list[tuple[int, str | None]]:
    frame = sl.read(spark, folders.output.as_uri())
    rows = frame.selectExpr("data.order_id", "customer.data.name AS name").collect()
    return sorted((row["order_id"], row["name"]) for row in rows)


def test_published_days_are_read_and_the_next_one_is_published(folders, spark):
    first = orders(spark, folders)
    assert len(first) == 3
    run = sl.load(folders.model).run(OUTPUT, now=NOW, spark=spark, progress=False)
    assert [(str(each.time), each.rows) for each in run.published] == [("2024-05-02T00:00:00Z", 4)]
    after = orders(spark, folders)
    assert set(first) < set(after)
    assert (103, "Carl") in after
    assert sl.load(folders.model).check(OUTPUT).is_ok


@pytest.mark.parametrize("form", FORMS)
def test_indexes_are_read_refreshed_and_used(form, folders, spark):
    index = skipping.skipping_index(spark, folders.indexes(form)).on_path(folders.data)
    kept = index.describe()
    assert len(kept.indexes) == 2
    sl.load(folders.model).run(OUTPUT, now=NOW, spark=spark, progress=False)
    assert index.refresh().indexed >= 1
    skipping.enable(spark, folders.indexes(form))
    try:
        frame = spark.read.parquet(folders.data).where("data.order_id = 103")
        shown = str(skipping.explain(frame))
    finally:
        skipping.disable(spark)
    assert "1 of 2 files" in shown
