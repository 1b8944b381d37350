"""What `make bench-growth` measures, with tiny data: so that it keeps working."""

import json
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

REPOSITORY = Path(__file__).parents[2]

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("growth")


@pytest.fixture(scope="module")
def found(folder: Path) -> dict[str, float]:
    """Figures by name, of parts that share their data."""
    done = subprocess.run(
        [sys.executable, "benchmarks/growth.py", "--small", "--only", "growth", "skew", "chain"],
        cwd=REPOSITORY,
        env={**os.environ, "XDG_CACHE_HOME": str(folder)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return {line["figure"]: line["value"] for line in map(json.loads, done.stdout.splitlines())}


def test_the_benchmark_of_growth_measures_rows_shuffles_and_memory(found: dict[str, float]) -> None:
    assert found["SF 0.01, million rows"] == pytest.approx(0.06, abs=0.001)
    for name in (
        "processor seconds per million rows",
        "bytes of the largest shuffle a row",
        "driver of 512m, live heap, MiB",
        "executor of 2048m, peak resident, MiB",
    ):
        assert found[f"SF 0.01, {name}"] > 0, name


def test_the_cases_of_skew_have_one_frequent_key_and_keys_that_are_null(folder, found) -> None:
    for case in ("one key", "one key, split", "NULL keys"):
        assert found[f"{case}, bytes of the largest task / of the median one"] >= 1, case
    tables = folder / "snaploom" / "benchmarks" / "tpch-0.01"
    for case, condition, share in (
        ("one-key", "l_orderkey = 1", 0.1),
        ("null-keys", "l_orderkey IS NULL", 0.3),
    ):
        files = tables / case / "*" / "lineitem.parquet"
        query = f"SELECT avg(CASE WHEN {condition} THEN 1 ELSE 0 END) FROM '{files}'"
        assert duckdb.sql(query).fetchall()[0][0] == pytest.approx(share, abs=0.01), case


def test_a_chain_has_the_same_rows_as_by_hand(found: dict[str, float]) -> None:
    assert found["chain of 3 joins, rows"] == 200
    assert found["chain of 3 joins, processor seconds, ratio to hand-written"] > 0
