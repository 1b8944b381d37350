"""Every index type over files that Comet wrote, queried through its scans: no row is lost.

`tests/unit/jobs/test_acceleration.py` runs this on the oldest Spark, for which Comet is built.
"""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.skipping.indexinterfaces import plan_text
from support.skipping.onequalsoff import skipping_by
from support.skipping.proofcases import ProofCase
from support.skipping.proofgenerated import generate
from support.skipping.proofmetadata import FolderHome
from support.skipping.prooftables import NATIVE, write_natively

from snaploom.skipping.indexes.base import registered_types

CASES = {
    "MIN_MAX": (("k",), "k = 25"),
    "VALUE_SET": (("t",), "t = 'name 2'"),
    "BLOOM_FILTER": (("k",), "k IN (25, 1000)"),
    "PARTITION": (("day",), "day = 2"),
    "PREFIX": (("t",), "t = 'name 2'"),
    "GEO_BOX": (("x", "y"), "x BETWEEN 2 AND 2.5 AND y BETWEEN -3 AND -2"),
    "TOKENS": (("t",), "t LIKE '%me 2%'"),
}
"""By type, columns to index and a condition that one of four files meets."""
LEAST_SHARES = {
    "MIN_MAX": 0.4, "VALUE_SET": 0.4, "BLOOM_FILTER": 0.2, "EXPRESSION": 0.3, "GEO_BOX": 0.2,
}  # fmt: skip
"""How much of what could be left out is left out at least: as of files that others wrote."""


@pytest.fixture
def case(spark: SparkSession, tmp_path: Path) -> ProofCase:
    """Four files of Comet's, in folders by day."""
    made = ProofCase(spark, tmp_path)
    for day in range(4):
        columns = f"id AS k, 'name {day}' AS t, {day} + id / 100D AS x, -{day} - id / 100D AS y"
        rows = spark.range(10 * day, 10 * day + 10, 1, 1).selectExpr(*columns.split(", "))
        rows.write.parquet(f"{tmp_path}/rows-{day}")
        write_natively(spark.read.parquet(f"{tmp_path}/rows-{day}"), made.path / f"day={day}")
    return made


@pytest.mark.parametrize("kind", registered_types())
def test_every_type_leaves_out_native_files(case: ProofCase, kind: str) -> None:
    columns, condition = CASES[kind]
    case.index(lambda builder: builder.add(kind, *columns))
    assert case.kept(condition) == 1


@pytest.mark.parametrize("layout", NATIVE)
def test_no_row_of_native_files_is_lost(spark: SparkSession, tmp_path: Path, layout: str) -> None:
    verdicts = generate(spark, tmp_path, layout, 0).verdicts(FolderHome(tmp_path))
    shares = {label: verdict.share for label, verdict in verdicts.items()}
    assert {"MIN_MAX", "VALUE_SET", "BLOOM_FILTER", "WHERE", "MIXED"} <= set(shares)
    assert not {name: share for name, share in shares.items() if share < LEAST_SHARES.get(name, 0)}


@pytest.mark.parametrize(
    ("condition", "scan"), [("k = 25", "FileScan"), ("k >= 0", "CometNativeScan")]
)
def test_comet_scans_where_most_files_are_read(case: ProofCase, condition: str, scan: str) -> None:
    case.min_max("k")
    with skipping_by(case.spark, case.location):
        frame = case.read().where(condition)
        assert f"{scan} parquet" in plan_text(frame)
        assert frame.count() == {"k = 25": 1, "k >= 0": 40}[condition]
