"""The cost of a backfill is estimated from what is published."""

from __future__ import annotations

from pathlib import Path

from support.storage.folders import a_folder, a_run, published

from snaploom.files.stores import open_store
from snaploom.output.state import EMPTY
from snaploom.run.runevents import Estimate, estimate_of


def test_rows_and_bytes_are_those_of_the_mean_and_time_is_that_between_two(tmp_path: Path) -> None:
    folder = a_folder(open_store(str(tmp_path), create=True))
    run = a_run()
    for number, files in enumerate((1, 3)):
        published(folder, number, run, files=files)
    state = folder.log.read()
    first, second = state.snapshots
    found = estimate_of(state, 10)
    assert (found.snapshots, found.rows) == (10, 200)
    sizes = [sum(file.bytes for file in record.files) for record in (first, second)]
    assert found.bytes == round(10 * sum(sizes) / 2)
    assert found.seconds == 10 * (second.created_at - first.created_at) / 1e9
    assert "10 snapshots due; about 200 rows" in str(found)


def test_publications_of_different_runs_give_no_time(tmp_path: Path) -> None:
    folder = a_folder(open_store(str(tmp_path), create=True))
    for number in (0, 1):
        published(folder, number)
    assert estimate_of(folder.log.read(), 3).seconds is None


def test_nothing_published_gives_no_estimate() -> None:
    assert estimate_of(EMPTY, 1) == Estimate(1)
    assert "nothing published yet" in str(Estimate(1))
