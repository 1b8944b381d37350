"""How much is built at once, and how long building waits for files that were just written."""

import time
from pathlib import Path

import numpy as np

from snaploom.skipping.spark.builds.filerows import piece_sizes
from snaploom.skipping.spark.relations.hadoop import LOCAL_GRANULARITY, wait_until_settled

MIB = 1 << 20


def test_small_files_are_built_a_thousand_at_once() -> None:
    assert list(piece_sizes([1000] * 2500)) == [1000, 1000, 500]


def test_large_files_are_built_a_few_at_once() -> None:
    assert list(piece_sizes([128 * MIB] * 150)) == [64, 64, 22]
    assert list(piece_sizes([MIB] * 600)) == [512, 88]


def test_no_files_are_no_piece() -> None:
    assert list(piece_sizes([])) == []


def test_a_file_written_just_now_is_waited_for(tmp_path: Path) -> None:
    (tmp_path / "new").touch()
    modified = (tmp_path / "new").stat().st_mtime_ns // 1_000_000
    wait_until_settled(LOCAL_GRANULARITY, np.array([modified]))
    assert time.time() * 1000 >= modified + LOCAL_GRANULARITY


def test_a_file_from_the_future_is_not_waited_for() -> None:
    started = time.monotonic()
    in_an_hour = int(time.time() * 1000) + 3_600_000
    wait_until_settled(LOCAL_GRANULARITY, np.array([in_an_hour]))
    assert time.monotonic() - started < 3600
