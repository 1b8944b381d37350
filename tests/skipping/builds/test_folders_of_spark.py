"""Folders that are listed without Spark, against Spark's own listing of them."""

import json
import os
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from snaploom.skipping.spark.relations.fingerprint import REQUESTED, Header, partition_columns
from snaploom.skipping.spark.relations.hadoop import JavaRule
from snaploom.skipping.spark.targets.targetfiles import (
    columns_frame,
    first_files,
    list_folder,
    list_relation,
    relation_files,
)
from snaploom.skipping.spark.targets.targetlookup import open_path

Tree = list[tuple[list[str], str, str]]
"""Folders, name and kind of each file."""
NAMES = st.sampled_from(
    ["a.json", "b", "_SUCCESS", "_c=1", ".crc", "_metadata", "d._COPYING_", "é %20 x", "_a", "e:f"]
)
_FOLDERS = [
    "day=1", "day=2", "day=x", "day=", "DAY=3", "hour=01", "day=__HIVE_DEFAULT_PARTITION__",
     "day=a%2Fb", "plain", "_hidden", "_h=1", ".dot", "_metadata", "_temporary",
]  # fmt: skip
FOLDERS = st.sampled_from(_FOLDERS)
KINDS = st.sampled_from(["file", "file", "file", "empty", "link", "broken link", "link to folder"])
DAYS = st.sampled_from([folder for folder in _FOLDERS if folder.startswith("day=")])


def trees(*folders: st.SearchStrategy[list[str]]) -> st.SearchStrategy[Tree]:
    return st.lists(st.tuples(st.one_of(folders), NAMES, KINDS), min_size=1, max_size=7)


HIDDEN = st.sampled_from([["_hidden"], [".dot"]])
TREES = st.one_of(
    trees(st.just([]), HIDDEN),
    trees(st.lists(DAYS, min_size=1, max_size=1), HIDDEN),
    trees(st.tuples(DAYS, st.sampled_from(["h=1", "h=02", "h=x"])).map(list), HIDDEN),
    trees(st.lists(FOLDERS, max_size=2)),
)


def lay(root: Path, tree: Tree) -> None:
    outside = root.parent / "outside"
    (outside / "folder").mkdir(parents=True)
    (outside / "folder" / "in it").write_text("{}")
    (outside / "target").write_text('{"a": 1}')
    root.mkdir()
    for folders, name, kind in tree:
        place = root.joinpath(*folders, name)
        if os.path.lexists(place) or any(above.is_file() for above in place.parents):
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        if kind in ("file", "empty"):
            place.write_text("{}" if kind == "file" else "")
        else:
            target = {"link": "target", "broken link": "gone", "link to folder": "folder"}[kind]
            place.symlink_to(outside / target)


@settings(max_examples=60, deadline=None)
@given(tree=TREES)
def test_what_is_listed_is_what_spark_lists(spark: SparkSession, tree: Tree) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary) / "r"
        lay(root, tree)
        if relation_files(f"file:{root}") is None:
            return
        try:
            frame = spark.read.schema(StructType([])).json(str(root))
        except PySparkException:
            with pytest.raises(PySparkException):
                list_folder(spark, f"file:{root}", "json", {})
            return
        known, listed = list_folder(spark, f"file:{root}", "json", {})
        (header,) = JavaRule(spark).describe(frame._jdf, REQUESTED)
        theirs = list_relation(JavaRule(spark), frame, partition_columns(known))
        by_path = [("path", "ascending")]
        assert listed.files.sort_by(by_path) == theirs.files.sort_by(by_path)
        assert listed.partitions == theirs.partitions
        assert seen(known) == seen(json.loads(header))


def seen(header: Header) -> dict[str, object]:
    """What a header has to show of how files are read, and from where."""
    names = ("roots", "format", "dataSchema", "partitionSchema", "settings", "zone")
    return {name: header.get(name) for name in names}


@pytest.mark.parametrize(
    "tree",
    [
        [([], "a", "file"), ([], "b", "link"), (["_hidden"], "c", "file")],
        [(["day=1"], "a", "file"), (["day=2"], "b", "file"), (["day=3"], "c", "empty")],
    ],
)
def test_plain_folders_and_partitions_are_listed_without_spark(tree: Tree, tmp_path: Path) -> None:
    lay(tmp_path / "r", tree)
    _, files = relation_files(f"file:{tmp_path}/r")
    paths = files.column("path").to_pylist()
    assert [path.rsplit("/", 1)[-1] for path in paths] == ["a", "b"]


@pytest.mark.parametrize(
    "tree",
    [
        [([], "a", "link to folder"), ([], "b", "file")],
        [([], "a", "file"), (["day=1"], "b", "file")],
        [(["day=1"], "a", "file"), (["plain"], "b", "file")],
        [([], "e:f", "file")],
    ],
)
def test_folders_in_doubt_are_left_to_spark(tree: Tree, tmp_path: Path) -> None:
    lay(tmp_path / "r", tree)
    assert relation_files(f"file:{tmp_path}/r") is None


def test_options_and_settings_that_choose_files_are_left_to_spark(spark, tmp_path):
    lay(tmp_path / "r", [([], "a.json", "file"), ([], "b", "file")])
    uri = f"file:{tmp_path}/r"
    assert list_folder(spark, uri, "json", {"PathGlobFilter": "*.json"}) is None
    assert list_folder(spark, uri, "json", {}) is not None


def test_many_partitions_run_no_job(spark: SparkSession, tmp_path: Path) -> None:
    lay(tmp_path / "r", [([f"day={day}"], "a", "file") for day in range(40)])
    spark.sparkContext.setJobGroup("listing", "a test of listings")
    _, listed = list_folder(spark, f"file:{tmp_path}/r", "json", {})
    assert not spark.sparkContext.statusTracker().getJobIdsForGroup("listing")
    assert {row[0].value for row in listed.partitions.values()} == set(range(40))


COLUMNS_OF_FILES = ["id BIGINT", "id BIGINT, text STRING", "other DATE", "id INT, day INT"]
FILE_NAMES = ["a", "b", "B", "\uffee", "\U0001f600", "_hidden", "é %20 x"]
PARQUET_TREES = st.lists(
    st.tuples(
        st.sampled_from(["", "day=1", "day=2", "day=10", "day=x"]),
        st.sampled_from(FILE_NAMES),
        st.sampled_from([*range(len(COLUMNS_OF_FILES)), "empty", "link"]),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=40, deadline=None)
@given(tree=PARQUET_TREES)
def test_columns_of_a_folder_are_those_that_spark_finds(spark, written, tree):
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary) / "r"
        outside = Path(temporary) / "outside"
        outside.write_bytes(written[0])
        for folder, name, kind in tree:
            place = root / folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            if os.path.lexists(place):
                continue
            if kind == "link":
                place.symlink_to(outside)
            else:
                place.write_bytes(b"" if isinstance(kind, str) else written[kind])
        found = columns_frame(spark, str(root), "parquet", {})
        if found is None:
            return
        (theirs,) = JavaRule(spark).describe(spark.read.parquet(str(root))._jdf, REQUESTED)
        (ours,) = JavaRule(spark).describe(found[0]._jdf, REQUESTED)
        assert seen({**json.loads(ours), "roots": [found[1]]}) == seen(json.loads(theirs))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """Parquet files, one for each of `COLUMNS_OF_FILES`."""
    types = {"BIGINT": pa.int64(), "STRING": pa.string(), "DATE": pa.date32(), "INT": pa.int32()}
    contents = []
    for columns in COLUMNS_OF_FILES:
        named = [column.split(" ") for column in columns.split(", ")]
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({name: pa.nulls(1, types[kind]) for name, kind in named}), sink)
        contents.append(sink.getvalue().to_pybytes())
    return contents


@pytest.mark.parametrize(
    ("tree", "is_sampled"),
    [
        ([([], "a", "file"), ([], "b", "empty")], True),
        ([(["day=1"], "a", "file"), (["day=2"], "b", "file")], True),
        ([([], "a", "empty"), ([], "b", "file")], False),
        ([([], "a", "file"), ([], "b", "link")], False),
        ([([], "a", "file"), ([], "b", "broken link")], False),
        ([(["day=1"], "a", "file"), (["plain"], "b", "file")], False),
    ],
)
def test_folders_whose_first_file_is_in_doubt_are_left_to_spark(tree, is_sampled, tmp_path):
    lay(tmp_path / "r", tree)
    assert (first_files(f"file:{tmp_path}/r") is not None) is is_sampled


def test_columns_that_spark_merges_are_left_to_it(spark, written, tmp_path):
    (tmp_path / "a").write_bytes(written[0])
    (tmp_path / "b").write_bytes(written[1])
    assert columns_frame(spark, str(tmp_path), "parquet", {}) is not None
    assert columns_frame(spark, str(tmp_path), "parquet", {"mergeSchema": "true"}) is None
    names = [term.names for term in open_path(spark, str(tmp_path), "parquet").terms]
    assert names == [("id",)]
    merged = open_path(spark, str(tmp_path), "parquet", {"mergeSchema": "true"})
    assert [term.names for term in merged.terms] == [("id",), ("text",)]
