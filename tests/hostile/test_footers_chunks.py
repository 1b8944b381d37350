"""Footers of which Arrow must not be asked everything: it ends the process."""

from __future__ import annotations

import os
import pickle
import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from support.documentation.examples import REPOSITORY
from support.hostile.damagedfooters import (
    ODD,
    damage,
    parquet_file,
    write_with_encrypted_column,
)
from support.hostile.thriftedit import edited
from support.skipping.skippingfiles import build, index

from snaploom.skipping.spark.targets.targetlookup import open_path
from snaploom.storage.footerbatches import FailedFooter, FooterParser
from snaploom.storage.parquetfooters import FooterInvalid, local_footer_bytes, parse_footer

ASK = """
import pickle, sys
import pyarrow as pa, pyarrow.parquet as pq
from snaploom.storage.parquetfooters import FooterInvalid, parse_footer

def ask(metadata):
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for column in map(group.column, range(metadata.num_columns)):
            column.num_values, column.total_uncompressed_size
            try:
                found = column.statistics
                found and found.has_min_max and (found.min_raw, found.max_raw)
            except (OSError, ValueError, OverflowError, pa.ArrowException):
                pass

parse = {"ours": parse_footer, "arrow": lambda content: pq.read_metadata(pa.BufferReader(content))}
asked = 0
for content in pickle.load(sys.stdin.buffer):
    try:
        metadata = parse[sys.argv[1]](content)
    except (FooterInvalid, OSError, ValueError, pa.ArrowException):
        continue
    ask(metadata)
    asked += 1
print(asked)
"""
"""Asks about every column chunk of footers, and prints how many footers could be parsed."""


def asked(parser: str, contents: list[bytes]) -> subprocess.CompletedProcess[bytes]:
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY / "sparkjobs/src")}
    command = [sys.executable, "-c", ASK, parser]
    return subprocess.run(
        command, input=pickle.dumps(contents), env=environment, capture_output=True, check=False
    )


@pytest.mark.parametrize("name", ["other type", "short bound", "long histogram", "encrypted"])
def test_arrow_ends_the_process_over_an_odd_column_chunk(name: str) -> None:
    """Where this fails, Arrow has learned to raise, and `storage.columnchunks` may go."""
    assert asked("arrow", [edited(parquet_file(), ODD[name])]).returncode < 0


@pytest.mark.parametrize("name", ODD)
def test_a_footer_with_an_odd_column_chunk_is_refused(name: str) -> None:
    with pytest.raises(FooterInvalid):
        parse_footer(edited(parquet_file(), ODD[name]))


@pytest.mark.parametrize("name", ODD)
def test_an_odd_footer_among_its_like_fails_by_itself(name: str) -> None:
    content = parquet_file()
    found = FooterParser().parse([content, content, edited(content, ODD[name]), content])
    assert [each.place for each in found if isinstance(each, FailedFooter)] == [2]


@pytest.mark.parametrize("seed", range(3))
def test_damaged_footers_never_end_the_process(seed: int) -> None:
    chance = random.Random(seed)
    files = [parquet_file(), parquet_file(use_deprecated_int96_timestamps=True, version="1.0")]
    contents = [
        edited(chance.choice(files), lambda found: damage(found, chance)) for _ in range(1500)
    ]
    done = asked("ours", contents)
    assert done.returncode == 0, done.stderr[-500:]
    assert int(done.stdout) > 300  # of 1,500 about 900: the others are refused


@pytest.mark.parametrize(
    "options",
    [{}, {"version": "1.0"}, {"store_decimal_as_integer": True}, {"use_dictionary": False}],
)
def test_sound_footers_are_parsed_whatever_wrote_them(options: dict[str, object]) -> None:
    content = parquet_file(**options)
    assert parse_footer(content).equals(pq.read_metadata(pa.BufferReader(content)))


def test_an_encrypted_column_is_a_footer_that_proves_nothing(tmp_path: Path) -> None:
    write_with_encrypted_column(tmp_path / "a.parquet")
    with pytest.raises(FooterInvalid, match="encrypted"):
        parse_footer(local_footer_bytes(str(tmp_path / "a.parquet")))


def test_a_build_reads_a_file_whose_footer_is_odd_and_takes_it_for_what_it_is(
    spark: SparkSession, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for name, least in (("a", 0), ("b", 100), ("c", 200)):
        ids = pa.table({"id": pa.array(range(least, least + 10), pa.int64())})
        (data / f"{name}.parquet").write_bytes(parquet_file(ids))
    odd = data / "b.parquet"
    odd.write_bytes(edited(odd.read_bytes(), ODD["long histogram"]))
    target = open_path(spark, str(data), "parquet")
    rows = build(target, index(target, "MIN_MAX", "id"))
    assert [(row["i1.min"], row["i1.max"]) for row in rows] == [(0, 9), (100, 109), (200, 209)]
    assert target.counters.scanned_files == 1
