"""A folder that Snaploom publishes is read as a source through its manifest (rule W21)."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.declared.sources import by_field, files, reader, rows_at
from support.storage.folders import IDENTITY, SETTINGS, a_run, a_target, agrees

from snaploom.errors import SnaploomError
from snaploom.files.stores import open_store
from snaploom.models.common import format_instant
from snaploom.output.folder import prepare_folder
from snaploom.output.publication import WriteResult, publish

pytestmark = pytest.mark.spark

SCHEMA = '{"type":"struct","fields":[]}'


@pytest.fixture
def folder(tmp_path):
    store = open_store(str(tmp_path / "out\nput"), create=True)
    return prepare_folder(store, SETTINGS, IDENTITY, a_run())


def publish_rows(folder, number, *values):
    def write(uri):
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({"v": list(values)}), sink)
        key = uri.removeprefix(folder.store.uri) + "part-0.snappy.parquet"
        folder.store.put_if_absent(key, sink.getvalue().to_pybytes())
        return WriteResult(rows=len(values), schema=SCHEMA)

    publish(folder, a_run(), a_target(number), write, agrees)


def source_over(spark, tmp_path):
    root = tmp_path / "out\nput"
    spec = files(
        "parquet",
        f"{root}/data/*/*.parquet",
        sourceUriPrefix=f"{root}/data/day={{day:INTEGER}}/",
        snapshot=by_field("day", "UNIX_SECONDS"),
    )
    return reader(spark, spec)


def orphan(tmp_path, partition):
    path = (
        tmp_path / "out\nput/data" / partition / "20200101T000000000Z-0123456789ab-0-00000.parquet"
    )
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table({"v": [-1]}), path)


def test_only_live_files_are_snapshots(spark, tmp_path, folder):
    publish_rows(folder, 1, 10, 11)
    orphan(tmp_path, "day=1")
    orphan(tmp_path, "day=7")

    source = source_over(spark, tmp_path)

    assert [format_instant(t) for t in source.listing().times] == ["1970-01-01T00:00:01Z"]
    assert rows_at(source, source.listing().times[0]) == [(10,), (11,)]


def test_one_committed_state_serves_a_whole_run(spark, tmp_path, folder):
    publish_rows(folder, 1, 10)
    source = source_over(spark, tmp_path)
    source.listing()
    publish_rows(folder, 2, 20)

    assert len(source.listing().times) == 1
    assert len(source_over(spark, tmp_path).listing().times) == 2


def test_a_folder_without_our_marker_is_read_as_it_is(spark, tmp_path):
    (tmp_path / "out\nput/data").mkdir(parents=True)
    orphan(tmp_path, "day=3")

    assert len(source_over(spark, tmp_path).listing().times) == 1


def test_a_folder_of_a_newer_version_is_refused(spark, tmp_path, folder):
    publish_rows(folder, 1, 10)
    marker = tmp_path / "out\nput/snaploom.json"
    marker.unlink()
    marker.write_text(json.dumps({"format": 999}))

    with pytest.raises(SnaploomError, match="newer"):
        source_over(spark, tmp_path).listing()
