"""Files, indexes and readers that change between a build and a query: the answers stay Spark's.

What is promised about files: a file is known by path, length and modification time in milliseconds,
by the store's etag where it has one, on HDFS by its number (`test_hdfs.py`), and on a local disk by
its inode and the time at which that last changed, which nobody can set. A file that differs in any
of these is read. Where only the first three are known, a file that was rewritten with the same
length, and whose time was then set back, cannot be distinguished from the indexed one; indexing
waits until the clock has moved past every file's time, so that no other change is missed.
"""

import json
import os
import shutil
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from support.declared.sources import NOW, files, reader
from support.skipping.fakeopensearch import FakeOpenSearch, serving
from support.skipping.faketarget import FakeFile, FakeTarget
from support.skipping.indexstores import DEADLINE, SPAWN, refresh_and_die
from support.skipping.onequalsoff import skipping_by
from support.skipping.proofcases import ProofCase

from snaploom.errors import IndexBusy
from snaploom.models.skippingindex import IndexState
from snaploom.skipping.lifecycle import operations
from snaploom.skipping.lifecycle.operations import Timing
from snaploom.skipping.spark.interfaces.enable import explain, setting
from snaploom.skipping.stores.catalog import open_base

FILES = 3


@pytest.fixture
def in_folder(case: ProofCase) -> ProofCase:
    """Three files with 0, 1 and 2, and bounds about them in a folder."""
    return case.write(*({"a": [number]} for number in range(FILES))).min_max("a")


@pytest.fixture
def cluster() -> FakeOpenSearch:
    return FakeOpenSearch()


def in_cluster_at(case: ProofCase, port: int) -> ProofCase:
    there = replace(case, elsewhere=f"opensearch://127.0.0.1:{port}")
    return there.write(*({"a": [number]} for number in range(FILES))).min_max("a")


@pytest.fixture
def in_cluster(case: ProofCase, cluster: FakeOpenSearch) -> Iterator[ProofCase]:
    with serving(cluster) as port:
        yield in_cluster_at(case, port)


@pytest.fixture(params=["in_folder", "in_cluster"])
def indexed(request: pytest.FixtureRequest) -> ProofCase:
    found: ProofCase = request.getfixturevalue(request.param)
    return found


def stored(case: ProofCase, pattern: str) -> list[Path]:
    return sorted(Path(case.location).glob(f"*/{pattern}"))


def test_touched_file_is_read(indexed: ProofCase) -> None:
    os.utime(indexed.files[0], (1, 1))
    assert indexed.kept("a = 2") == 2


def test_same_length_and_another_time_is_read(indexed: ProofCase) -> None:
    before = indexed.files[0].stat()
    indexed.write({"a": [2]})
    assert indexed.files[0].stat().st_size == before.st_size
    assert indexed.seen("a = 2") == (2, ["Row(a=2)", "Row(a=2)"])


def restored_in_place(path: Path, content: bytes) -> None:
    """As `cp -p` and `rsync --inplace --times` leave a file."""
    path.write_bytes(content)


def restored_by_rename(path: Path, content: bytes) -> None:
    """As `rsync -t` leaves a file."""
    written = path.with_name(f".{path.name}.part")
    written.write_bytes(content)
    written.replace(path)


@pytest.mark.parametrize("restore", [restored_in_place, restored_by_rename])
def test_same_length_and_time_set_back_is_read(indexed, restore):
    first, last = indexed.files[0], indexed.files[-1]
    before, listed = first.stat(), indexed.read()
    restore(first, last.read_bytes())
    os.utime(first, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (first.stat().st_size, first.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert indexed.seen("a = 2") == (2, ["Row(a=2)", "Row(a=2)"])
    with skipping_by(indexed.spark, indexed.location):
        assert listed.where("a = 2").count() == 2
        (outcome,) = explain(indexed.read().where("a = 2")).relations
        assert (outcome.kept_files, outcome.indexes[0].stale) == (2, 1)
    indexed.refresh()
    assert indexed.kept("a = 0") == 0


def test_time_set_back_between_planning_and_reading_is_read(indexed: ProofCase) -> None:
    first, before = indexed.files[0], indexed.files[0].stat()
    with skipping_by(indexed.spark, indexed.location):
        frame = indexed.read().where("a = 2")
        frame._jdf.queryExecution().executedPlan()
        restored_in_place(first, indexed.files[-1].read_bytes())
        os.utime(first, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert frame.count() == 2


def test_each_file_of_thousands_that_changed_is_read(case: ProofCase) -> None:
    indexed = case.write(*({"a": [number]} for number in range(4_100))).min_max("a")
    wanted = (indexed.path / "f4099.parquet").read_bytes()
    assert indexed.kept("a = 4099") == 1
    with skipping_by(indexed.spark, indexed.location):
        frame = indexed.read().where("a = 4099")
        for path in indexed.files:
            restored_in_place(path, wanted)
        assert frame.count() == 4_100


def test_description_states_what_the_same_file_means(indexed: ProofCase) -> None:
    described = indexed.indexes.describe(indexed.subject)
    assert described.same_file.endswith("milliseconds, inode and time of its last change")


def test_another_length_and_the_same_time_is_read(indexed: ProofCase) -> None:
    before = indexed.files[0].stat()
    indexed.write({"a": [2] * 5000})
    os.utime(indexed.files[0], ns=(before.st_atime_ns, before.st_mtime_ns))
    assert indexed.files[0].stat().st_size != before.st_size
    assert indexed.kept("a = 2") == 2


def test_time_that_goes_back_by_a_millisecond_is_noticed(indexed: ProofCase) -> None:
    before = indexed.files[0].stat()
    indexed.write({"a": [2]})
    os.utime(indexed.files[0], ns=(before.st_atime_ns, before.st_mtime_ns - 10**6))
    assert indexed.kept("a = 2") == 2


def test_file_rewritten_after_it_was_listed_is_read(indexed: ProofCase) -> None:
    listed = indexed.read()
    indexed.write({"a": [2]})
    with skipping_by(indexed.spark, indexed.location):
        assert listed.where("a = 2").count() == 2


def test_deleted_file_is_no_matter(indexed: ProofCase) -> None:
    indexed.files[1].unlink()
    assert indexed.kept("a >= 1") == 1


def test_file_deleted_after_planning_fails_as_without_skipping(indexed: ProofCase) -> None:
    with skipping_by(indexed.spark, indexed.location):
        frame = indexed.read().where("a >= 1")
        frame._jdf.queryExecution().executedPlan()
        indexed.files[1].unlink()
        with pytest.raises((PySparkException, Py4JJavaError), match="not exist"):
            frame.collect()


def test_added_file_is_read_and_then_indexed(indexed: ProofCase) -> None:
    indexed.write(*({"a": [number]} for number in range(FILES + 1)))
    assert indexed.kept("a = 3") == FILES + 1
    indexed.refresh()
    assert indexed.kept("a = 3") == 1


def test_truncated_file_fails_as_without_skipping(indexed: ProofCase) -> None:
    path = indexed.files[0]
    path.write_bytes(path.read_bytes()[:-20])
    rows = indexed.spark.read.schema("a bigint").parquet(str(indexed.path)).where("a = 2")
    with (
        skipping_by(indexed.spark, indexed.location),
        pytest.raises((PySparkException, Py4JJavaError)),
    ):
        rows.collect()
    path.unlink()
    assert indexed.kept("a = 2") == 1


def test_file_replaced_by_a_folder_of_its_name(indexed: ProofCase) -> None:
    path = indexed.files[0]
    moved = path.rename(path.with_name("moved"))
    path.mkdir()
    moved.rename(path / "part-0.parquet")

    def read() -> DataFrame:
        reader = indexed.spark.read.option("recursiveFileLookup", "true")
        return reader.parquet(str(indexed.path))

    assert indexed.seen("a = 0", read) == (1, ["Row(a=0)"])


def test_folder_swapped_for_another_one(indexed: ProofCase) -> None:
    shutil.rmtree(indexed.path)
    indexed.write({"a": [2]}, {"a": [1]}, {"a": [0]})
    assert indexed.seen("a = 2") == (FILES, ["Row(a=2)"])


@pytest.mark.parametrize(
    ("pattern", "damage"),
    [
        ("segments/*", lambda content: content[: len(content) // 2]),
        ("segments/*", lambda content: b""),
        ("segments/*", lambda content: content[:50] + b"\xff" * 50 + content[100:]),
        ("manifest/*", lambda content: content[: len(content) // 2]),
        ("manifest/*", lambda content: b""),
        ("manifest/*", lambda content: b'{"format": 1, "state": []}'),
        ("_latest", lambda content: b"{"),
    ],
)
def test_damaged_index_reads_every_file(in_folder, pattern, damage):
    assert in_folder.kept("a = 2") == 1
    path = stored(in_folder, pattern)[-1]
    path.write_bytes(damage(path.read_bytes()))
    is_only_a_hint = pattern == "_latest"
    assert in_folder.kept("a = 2") == (1 if is_only_a_hint else FILES)


def test_state_of_the_future_reads_every_file(in_folder: ProofCase) -> None:
    newest = stored(in_folder, "manifest/*")[-1]
    document = json.loads(newest.read_bytes())
    newest.write_text(json.dumps(document | {"format": document["format"] + 1}))
    assert in_folder.kept("a = 2") == FILES


def test_index_removed_while_it_is_enabled(in_folder: ProofCase) -> None:
    with skipping_by(in_folder.spark, in_folder.location):
        assert in_folder.read().where("a = 2").count() == 1
        shutil.rmtree(in_folder.location)
        assert in_folder.read().where("a = 1").count() == 1
    assert in_folder.kept("a = 2") == FILES


def test_documents_removed_while_the_index_is_enabled(in_cluster, cluster):
    with skipping_by(in_cluster.spark, in_cluster.location):
        assert in_cluster.read().where("a = 2").count() == 1
        cluster.indexes.clear()
        assert in_cluster.read().where("a = 1").count() == 1
    assert in_cluster.kept("a = 2") == FILES


@pytest.mark.parametrize("chosen", [0, 1, 2])
def test_document_that_is_lost_makes_no_row_lost(in_cluster, cluster, chosen):
    for index in cluster.indexes.values():
        rows = [name for name, source in index.visible.items() if "file_path" in source]
        for name in rows[chosen : chosen + 1]:
            del index.visible[name], index.documents[name]
    assert in_cluster.kept("a >= 0") == FILES


@pytest.mark.parametrize("name", ["row", "path", "length", "modified", "segment", "written_at"])
def test_documents_without_a_field_make_no_row_lost(in_cluster, cluster, name):
    removed = 0
    for index in cluster.indexes.values():
        for source in (*index.visible.values(), *(held for held, _ in index.documents.values())):
            removed += source.get("_snaploom", {}).pop(name, None) is not None
    assert removed
    assert in_cluster.kept("a >= 0") == FILES


def test_cluster_that_is_gone_reads_every_file(case: ProofCase) -> None:
    with serving(FakeOpenSearch()) as port:
        there = in_cluster_at(case, port)
        assert there.kept("a = 2") == 1
    assert there.kept("a = 2") == FILES


def test_dropped_index_reads_every_file(indexed: ProofCase) -> None:
    indexed.indexes.drop(indexed.subject)
    assert indexed.kept("a = 2") == FILES


def test_refreshes_that_race_both_end_right(indexed: ProofCase) -> None:
    indexed.write(*({"a": [number]} for number in range(FILES + 2)))

    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(indexed.refresh) for _ in range(2)]
    errors = [each.exception() for each in both if each.exception() is not None]
    assert len(errors) < 2
    assert all(isinstance(error, IndexBusy) for error in errors)
    state = open_base(indexed.location).index(f"file:{indexed.path}").read()
    assert state.phase is IndexState.ACTIVE
    assert indexed.kept("a = 4") == 1


@pytest.mark.parametrize("point", ["after refreshing", "before rows", "after rows"])
def test_killed_refresh_leaves_the_former_rows_in_use(in_folder: ProofCase, point: str) -> None:
    store = open_base(in_folder.location).index(f"file:{in_folder.path}")
    in_folder.write(*({"a": [number]} for number in range(FILES)), {"a": [3]})
    (folder,) = stored(in_folder, "manifest")
    target = FakeTarget({"f3.parquet": FakeFile((3,))}, uri=f"file:{in_folder.path}")
    process = SPAWN.Process(target=refresh_and_die, args=(folder.parent, target, point))
    process.start()
    process.join(DEADLINE)
    assert process.exitcode == -signal.SIGKILL
    assert store.read().phase is IndexState.REFRESHING
    assert in_folder.seen("a = 3")[1] == ["Row(a=3)"]
    operations.recover(store, timing=Timing(abandoned_after_seconds=0))
    in_folder.refresh()
    assert in_folder.kept("a = 3") == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.sql.caseSensitive", "true"),
        ("spark.sql.files.ignoreMissingFiles", "true"),
        ("spark.sql.parquet.binaryAsString", "true"),
        ("spark.sql.parquet.datetimeRebaseModeInRead", "LEGACY"),
    ],
)
def test_reader_with_other_settings_reads_every_file(in_folder, name, value):
    with setting(in_folder.spark, name, value):
        assert in_folder.kept("a = 2") == FILES
    assert in_folder.kept("a = 2") == 1


def test_case_of_names_decides_which_column_is_meant(case: ProofCase) -> None:
    case.write({"a": [1], "A": [5]}, {"a": [2], "A": [4]})
    with setting(case.spark, "spark.sql.caseSensitive", "true"):
        case.min_max("a")
        assert case.seen("A = 5") == (2, ["Row(a=1, A=5)"])
        assert case.kept("a = 2") == 1


def test_csv_read_with_another_separator_reads_every_file(case: ProofCase) -> None:
    case.path.mkdir()
    (case.path / "f0.csv").write_text("1;5,3\n")
    (case.path / "f1.csv").write_text("2;6,4\n")
    case.of_format("csv", sep=";").min_max("_c0")
    assert case.of_format("csv", sep=";").kept("_c0 = '1'") == 1
    assert case.of_format("csv", sep=",").kept("_c0 = '1;5'") == 2
    assert case.of_format("csv", sep=",").kept("_c0 = '2'") == 2


@pytest.mark.parametrize("column", ["a", "b"])
@pytest.mark.parametrize("value", ["1", "5", "9"])
def test_csv_that_is_matched_by_name_is_not_answered_by_an_index_by_place(case, column, value):
    case.path.mkdir(exist_ok=True)
    (case.path / "f0.csv").write_text("a,b\n1,9\n")
    (case.path / "f1.csv").write_text("b,a\n1,5\n")
    by_place = case.of_format("csv", header="true")
    by_place.min_max(column)
    declared = files("csv", case.path / "*.csv", formatOptions={"header": "true"})
    source = reader(case.spark, declared)
    where = f"{column} = '{value}'"
    assert by_place.kept(where) <= 2
    assert by_place.kept(where, lambda: source.read(NOW).frame) == 2


def test_column_added_to_the_table_later(case: ProofCase) -> None:
    table = case.of_table("proof_evolved", "a int")
    case.spark.sql("INSERT INTO proof_evolved VALUES (1)")
    table.min_max("a")
    case.spark.sql("ALTER TABLE proof_evolved ADD COLUMN b int DEFAULT 7")
    case.spark.sql("INSERT INTO proof_evolved VALUES (2, 3)")
    assert table.seen("b = 7 AND a = 1") == (2, ["Row(a=1, b=7)"])
    table.refresh()
    assert table.seen("b = 7") == (2, ["Row(a=1, b=7)"])
    assert table.kept("a = 2") == 1


def test_column_dropped_and_made_anew_with_another_type(case: ProofCase) -> None:
    case.write({"a": [1], "b": ["9"]}, {"a": [2], "b": ["10"]}).min_max("a", "b")
    case.write({"a": [1], "b": [9]}, {"a": [2], "b": [10]})
    assert case.seen("b > 9") == (2, ["Row(a=2, b=10)"])
