"""Footers of many files and of other file systems, against those that Python reads here."""

import hashlib
import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from support.skipping.indexeddata import Row, build, index, names

from snaploom.models.allowances import ALLOW_VARIABLE, Allowances
from snaploom.models.skippingindex import RefreshMode
from snaploom.skipping.spark.builds import footers
from snaploom.skipping.spark.builds.footers import FooterReader, FooterTerm
from snaploom.skipping.spark.interfaces.enable import disable, enable
from snaploom.skipping.spark.interfaces.indexbuilder import IndexBuilder, skipping_index
from snaploom.skipping.spark.relations.hadoop import FileState, are_as_listed, states_of
from snaploom.skipping.spark.targets.sparktarget import SparkTarget
from snaploom.skipping.spark.targets.targetfiles import file_listing_of
from snaploom.skipping.spark.targets.targetlookup import open_path

pytestmark = pytest.mark.long

READER = FooterReader((FooterTerm(("id",), "bigint"), FooterTerm(("text",), "string")), False)


@pytest.fixture
def files(spark: SparkSession, tmp_path: Path) -> Path:
    frame = spark.range(0, 50, 1, 5).selectExpr("id", "string(id) AS text", "id / 2D AS half")
    frame.write.parquet(str(tmp_path / "files"))
    return tmp_path / "files"


@pytest.fixture
def mounted(spark: SparkSession, files: Path) -> Iterator[str]:
    """The same files under a file system that only Hadoop knows."""
    # Hadoop keeps a file system by its authority, so that every test needs one of its own.
    name = f"mount-{hashlib.sha256(str(files).encode()).hexdigest()[:12]}"
    setting = f"fs.viewfs.mounttable.{name}.link./files"
    spark.conf.set(setting, files.as_uri())
    yield f"viewfs://{name}/files"
    spark.conf.unset(setting)


def read(spark: SparkSession, folder: Path, root: str) -> pa.Table:
    """What footers prove, of files by which a file system calls them."""
    found = sorted(folder.glob("*.parquet"))
    paths = [f"{root}/{path.name}" for path in found]
    return READER.read(spark, paths, [path.stat().st_size for path in found]).facts


@pytest.mark.parametrize("first_bytes", [8, 100, 1 << 15])
def test_the_jvm_reads_the_same_footers(first_bytes, spark, files, mounted, monkeypatch):
    monkeypatch.setattr(footers, "_FIRST_BYTES", first_bytes)
    monkeypatch.setattr(footers, "_FILES_OF_A_CALL", 2)
    here, there = (read(spark, files, root).drop(["length"]) for root in (f"file:{files}", mounted))
    assert here == there
    assert there.column("rows").to_pylist() == [10] * 5


@pytest.mark.parametrize(
    "content", [b"", b"PAR1", b"no Parquet file at all", b"\xff" * 40, b"\x10\0\0\0PARQ" * 4]
)
def test_what_is_no_parquet_file_has_a_failure_for_a_footer(content, spark, files, mounted):
    (files / "odd.parquet").write_bytes(content)
    found = read(spark, files, mounted)
    (odd,) = (row for row in found.to_pylist() if row["rows"] is None)
    assert odd["failure"]
    assert found.column("rows").to_pylist().count(10) == 5


@pytest.mark.parametrize(
    ("listed", "now", "expected"),
    [
        (FileState(1, 2), FileState(1, 2), True),
        (FileState(1, 2, "a"), FileState(1, 2, "a"), True),
        (FileState(1, 2, "a"), FileState(1, 2, "b"), False),
        (FileState(1, 2), FileState(1, 2, "b"), True),
        (FileState(1, 2), FileState(1, 3), False),
        (FileState(1, 2), FileState(2, 2), False),
        (FileState(1, 2), None, False),
    ],
)
def test_states_agree_about_one_content(listed, now, expected):
    assert listed.agrees(now) is expected
    assert are_as_listed(columns(listed), columns(now)).tolist() == [expected]


def columns(state: FileState | None) -> pa.Table:
    facts = (None,) * 3 if state is None else (state.length, state.modified, state.etag)
    kinds = (pa.int64(), pa.int64(), pa.large_string())
    arrays = [pa.array([fact], kind) for fact, kind in zip(facts, kinds, strict=True)]
    return pa.table(arrays, ["length", "modified", "etag"])


def test_a_file_that_is_gone_has_no_state_and_no_footer(spark, files, mounted):
    size = next(files.glob("*.parquet")).stat()
    known = f"{mounted}/{next(files.glob('*.parquet')).name}"
    expected = FileState(size.st_size, size.st_mtime_ns // 1_000_000)
    found = states_of(spark, [known, f"{mounted}/gone"]).select(["length", "modified"])
    assert found.to_pylist() == [
        {"length": expected.length, "modified": expected.modified},
        {"length": None, "modified": None},
    ]
    (gone,) = READER.read(spark, [f"{mounted}/gone"], [100]).facts.to_pylist()
    assert gone["failure"]


def test_min_max_of_a_file_system_of_hadoop_reads_footers_only(spark, mounted):
    target = open_path(spark, mounted, "parquet")
    rows = build(target, index(target, "MIN_MAX", "id"))
    assert [row["i1.max"] for row in rows] == [9, 19, 29, 39, 49]
    assert (target.counters.footer_files, target.counters.scanned_files) == (5, 0)


def test_what_footers_cannot_prove_is_scanned_there(spark: SparkSession, mounted: str) -> None:
    target = open_path(spark, mounted, "parquet")
    rows = build(target, index(target, "MIN_MAX", "half"))
    assert [row["i1.max"] for row in rows] == [4.5, 9.5, 14.5, 19.5, 24.5]
    assert target.counters.scanned_files == 5


def test_a_file_rewritten_there_while_it_is_read_is_left_out(spark, files, mounted):
    target = open_path(spark, mounted, "parquet")
    listed = target.list_files("")
    changed = sorted(files.glob("*.parquet"))[0]
    changed.write_bytes(sorted(files.glob("*.parquet"))[1].read_bytes() + b" ")
    pieces = target.build([index(target, "MIN_MAX", "id")], listed, lambda done, total: None)
    rows = [row for piece in pieces for row in piece.to_pylist()]
    assert len(rows) == 4
    assert changed.name not in names(rows)


def test_queries_skip_files_there(spark: SparkSession, mounted: str, tmp_path: Path) -> None:
    building = skipping_index(spark, str(tmp_path / "i")).on_path(mounted)
    building.add_min_max("id").create()
    building.refresh()
    enable(spark, str(tmp_path / "i"))
    frame = spark.read.parquet(mounted).where("id = 17")
    assert [row.id for row in frame.collect()] == [17]
    assert "1 of 5 files" in frame._jdf.queryExecution().toString()
    disable(spark)


TIMES = [datetime(2020, 1, 2, 3, 4, 5, 678901, UTC), datetime(1999, 1, 1, tzinfo=UTC)]

COLUMNS: Mapping[str, pa.Array] = {
    "boolean": pa.array([True, None, False, True]),
    "tinyint": pa.array([1, None, -128, 1], pa.int8()),
    "smallint": pa.array([1, None, -300, 1], pa.int16()),
    "int": pa.array([1, None, -70000, 1], pa.int32()),
    "bigint": pa.array([1, None, -(1 << 40), 1]),
    "float": pa.array([1.5, None, -0.0, float("nan")], pa.float32()),
    "double": pa.array([0.0, None, -0.0, float("nan")]),
    "decimal(9,2)": pa.array([Decimal("1.25"), None, Decimal("-9.00"), None], pa.decimal128(9, 2)),
    "decimal(18,4)": pa.array([Decimal("1.25"), None, None, None], pa.decimal128(18, 4)),
    "date": pa.array([date(2020, 1, 1), None, date(1969, 12, 31), None]),
    "timestamp": pa.array([*TIMES, None, None], pa.timestamp("us", "UTC")),
    "timestamp_ntz": pa.array(
        [*(time.replace(tzinfo=None) for time in TIMES), None, None], pa.timestamp("us")
    ),
    "string": pa.array(["zoë", None, "\U0001f600" * 20, ""]),
    "binary": pa.array([b"\xff\x00", None, b"x" * 2000, b"\xff\x00"]),
}
TYPES = ("MIN_MAX", "VALUE_SET", "BLOOM_FILTER")


def as_a_set(row: Row) -> dict[str, object]:
    """A row without what differs between files, its sets without order."""
    return {
        name: sorted(map(repr, value)) if isinstance(value, list) else repr(value)
        for name, value in row.items()
        if name.startswith("i")
    }


def indexed(target: SparkTarget, *columns: str) -> list[dict[str, object]]:
    names = [(kind, column) for kind in TYPES for column in columns]
    indexes = (index(target, k, c, index_id=f"i{n}") for n, (k, c) in enumerate(names))
    return [as_a_set(row) for row in build(target, *indexes)]


def test_rows_of_every_type_are_those_of_sparks_scan(spark, tmp_path, monkeypatch):
    (tmp_path / "t").mkdir()
    table = pa.table({f"c{number}": values for number, values in enumerate(COLUMNS.values())})
    for number, part in enumerate((table, table.slice(2), table.slice(1, 1), table.slice(0, 0))):
        pq.write_table(part, tmp_path / "t" / f"{number}.parquet", row_group_size=3)
    target = open_path(spark, str(tmp_path / "t"), "parquet")
    assert [target.column(name).data_type for name in table.column_names] == list(COLUMNS)
    direct = indexed(target, *table.column_names)
    assert (target.counters.direct_files, target.counters.scanned_files) == (3, 0)
    monkeypatch.setattr("snaploom.skipping.spark.builds.filerows._direct", lambda *_: ())
    monkeypatch.setattr("snaploom.skipping.spark.builds.filerows._proved_terms", lambda *_: ())
    assert indexed(target, *table.column_names) == direct
    assert (target.counters.direct_files, target.counters.scanned_files) == (3, 4)


def test_an_expression_is_read_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    pq.write_table(pa.table({"c": ["A", "a", "b"]}), tmp_path / "t" / "a.parquet")
    target = open_path(spark, str(tmp_path / "t"), "parquet")
    column, lower = index(target, "VALUE_SET", "c"), target.expression("lower(c)")
    both = (column, type(column)("i2", "VALUE_SET", (lower,)))
    (row,) = build(target, *both)
    assert (row["i1.set"], row["i2.set"]) == ([b"A", b"a", b"b"], [b"a", b"b"])
    assert target.counters.scanned_files == 1


OPTIONS = {"csv": {"header": "true", "inferSchema": "true"}, "json": {}, "orc": {}, "parquet": {}}


@pytest.fixture(params=sorted(OPTIONS))
def file_format(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def folder(spark: SparkSession, file_format: str, tmp_path: Path) -> Path:
    """Three days of files with a time in each row."""
    frame = spark.range(6).selectExpr(
        "id",
        "timestamp_seconds(id * 1000) AS at",
        "date_add(DATE '2020-01-01', int(id / 2)) AS day",
    )
    writer = frame.repartition("day").write.partitionBy("day").options(header="true")
    writer.format(file_format).save(str(tmp_path / "t"))
    for checksum in (tmp_path / "t").rglob(".*.crc"):
        checksum.unlink()  # the test writes files by other means
    return tmp_path / "t"


def on(
    spark: SparkSession, folder: Path, file_format: str, tmp_path: Path, **options: str
) -> IndexBuilder:
    builder = skipping_index(spark, str(tmp_path / "i"))
    return builder.on_path(str(folder), file_format, **OPTIONS[file_format], **options)


@pytest.fixture
def built(spark: SparkSession, folder: Path, file_format: str, tmp_path: Path) -> IndexBuilder:
    builder = on(spark, folder, file_format, tmp_path)
    builder.add_min_max("id", "at").add_partitions("day").build()
    return builder


@pytest.fixture
def settings(spark: SparkSession) -> Iterator[SparkSession]:
    yield spark
    for name in ("spark.sql.timestampType", "spark.sql.caseSensitive"):
        spark.conf.unset(name)


@pytest.fixture
def jobs(spark: SparkSession) -> Iterator[Callable[[], int]]:
    context, group = spark.sparkContext, secrets.token_hex(8)
    context.setJobGroup(group, "a test of listings")
    yield lambda: len(context.statusTracker().getJobIdsForGroup(group))
    context.setLocalProperty("spark.jobGroup.id", None)


def test_nothing_to_do_runs_no_job(built: IndexBuilder, jobs: Callable[[], int]) -> None:
    result = built.refresh()
    assert jobs() == 0
    assert str(result.plan).endswith("0 new, 0 changed, 0 removed, 3 unchanged")
    assert result.state.checked_at >= result.state.refreshed_at
    built.refresh(RefreshMode.FULL)
    assert jobs() > 0


def test_new_changed_and_removed_files_are_noticed(spark, built, folder):
    first, second, third = sorted(path for path in folder.glob("day=*/part-*"))
    first.unlink()
    second.write_bytes(third.read_bytes())
    (folder / "day=2020-01-09").mkdir()
    third.rename(folder / "day=2020-01-09" / third.name)
    changes = str(built.refresh().plan.changes)
    assert changes == "1 new, 1 changed, 2 removed, 0 unchanged"
    assert built.refresh().plan.changes.is_empty


def test_the_mode_full_reads_again(built: IndexBuilder) -> None:
    assert built.refresh(RefreshMode.FULL).indexed == 3


@pytest.mark.parametrize(
    ("setting", "value"),
    [("spark.sql.caseSensitive", "true"), ("spark.sql.timestampType", "TIMESTAMP_NTZ")],
)
def test_another_reader_is_noticed(setting, value, settings, built, file_format):
    settings.conf.set(setting, value)
    is_watched = setting == "spark.sql.caseSensitive" or file_format in ("csv", "json")
    assert built.refresh().plan.mode is (
        RefreshMode.FULL if is_watched else RefreshMode.INCREMENTAL
    )


def test_other_options_of_the_reader_are_noticed(
    spark: SparkSession, built: IndexBuilder, folder: Path, file_format: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    # Options of ORC and Parquet that change values are not on the list by themselves.
    allowed = Allowances(options=("orc.mode", "parquet.mode"))
    monkeypatch.setenv(ALLOW_VARIABLE, allowed.dump_json())
    other = on(spark, folder, file_format, tmp_path, mode="FAILFAST")
    assert other.refresh().plan.mode is RefreshMode.FULL


def test_a_listing_has_the_partitions_that_opening_has(spark, built, folder, file_format):
    listing = file_listing_of(
        spark, str(folder), f"file:{folder}", file_format, OPTIONS[file_format]
    )
    definition = built.describe().definition
    assert listing.target == definition.target
    assert listing.reads_alike(definition)
    assert listing.list_files("day > DATE '2020-01-01'").num_rows == 2


@pytest.mark.parametrize("path", ["gone", "[0-9]*"])
def test_there_is_no_listing_of_what_cannot_be_opened(path, spark, tmp_path):
    for name in ("1", "2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.json").write_text(json.dumps({"id": 1}))
    place = str(tmp_path / path)
    assert file_listing_of(spark, place, f"file:{place}", "json", {}) is None
