"""Files of the declared size, with sorted rows, none of which is lost."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from support.weaving.loom import Loom

pytestmark = pytest.mark.spark

ROWS = 60_000
"""Some 3 MB that no codec makes smaller."""


@pytest.fixture(scope="module")
def orders() -> pa.Table:
    """Rows in no order, of which most bytes are noise."""
    noise = random.Random(7)
    return pa.table(
        {
            "id": pa.array(noise.sample(range(ROWS), ROWS), pa.int64()),
            "region": pa.array([noise.randrange(50) for _ in range(ROWS)]),
            "noise": pa.array([noise.randbytes(48) for _ in range(ROWS)]),
        }
    )


def sorted_ids(loom: Loom) -> bool:
    """Whether every id was published, once."""
    found = duckdb.sql(f"SELECT data.id FROM read_parquet('{loom.out}/data/*/*') ORDER BY 1")
    return [row[0] for row in found.fetchall()] == list(range(ROWS))


def files(loom: Loom) -> list[Path]:
    (record,) = loom.state().snapshots
    return [loom.out / file.path for file in record.files]


def ranges(path: Path, column: str) -> tuple[int, int]:
    query = f"SELECT min(data.{column}), max(data.{column}) FROM read_parquet('{path}')"
    ((least, most),) = duckdb.sql(query).fetchall()
    return least, most


def test_files_have_about_the_size_asked_for(spark, tmp_path, orders) -> None:
    loom = Loom(tmp_path, folder={"targetFileSizeMiB": 1})
    loom.write("order", 1, orders)
    loom.weave(spark)
    sizes = [path.stat().st_size for path in files(loom)]
    assert len(sizes) > 2
    assert all(0.5 < size / 2**20 < 1.3 for size in sizes)
    assert (sorted_ids(loom), loom.is_clean()) == (True, True)


def test_files_that_fit_are_left_as_they_are(spark, tmp_path) -> None:
    loom = Loom(tmp_path, folder={"targetFileSizeMiB": 64})
    loom.write("order", 1, [{"id": 1}])
    (reported,) = loom.weave(spark).report.snapshots
    assert (reported.rows, reported.files, loom.is_clean()) == (1, 1, True)


def test_clustered_files_share_no_values_and_checks_still_hold(spark, tmp_path, orders) -> None:
    loom = Loom(tmp_path, folder={"targetFileSizeMiB": 1, "clusterBy": ["DATA.id"]})
    loom.spec["checks"] = [{"name": "all", "expression": f"count(*) = {ROWS}"}]
    loom.write("order", 1, orders)
    loom.weave(spark)
    bounds = sorted(ranges(path, "id") for path in files(loom))
    assert len(bounds) > 2
    assert all(before[1] < after[0] for before, after in pairwise(bounds))
    assert (sorted_ids(loom), loom.is_clean()) == (True, True)


def test_column_that_is_not_there_publishes_nothing(spark, tmp_path) -> None:
    loom = Loom(tmp_path, folder={"clusterBy": ["data.gone"]})
    loom.write("order", 1, [{"id": 1}])
    report = loom.weave(spark).report
    assert report.failed[0].path == "spec.outputFolder.clusterBy"
    assert (loom.live_days(), loom.is_clean()) == ([], True)
