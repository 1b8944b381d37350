"""Spark and Java read what we write, and we read what they write."""

import json
import random
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType
from support.skipping.xskipperfiles import (
    ROW_METADATA,
    JavaBlooms,
    a_definition,
    array_of,
    bloom_of_longs,
    field,
    identity,
    index_metadata,
    index_of,
    java_schema,
    some_rows,
    struct_of,
)

from snaploom.files.local import LocalObjectStore
from snaploom.plugins.xskipper.javastream import read_bloom, write_bloom
from snaploom.plugins.xskipper.storefiles import XskipperDirectory
from snaploom.skipping.core.filetable import FileTable
from snaploom.skipping.core.predicates import Comparison, Operator
from snaploom.skipping.indexes.bloomfilter import BLOOM_FILTER

pytestmark = pytest.mark.spark

random_numbers = random.Random(7)
LONGS = [random_numbers.randrange(-(2**63), 2**63) for _ in range(500)] + list(range(-250, 250))
LETTERS = "aé🎉\0ß中 _"
TEXTS = ["".join(random_numbers.choices(LETTERS, k=n % 23)) + str(n) for n in range(1000)]


@pytest.fixture(scope="module")
def java(spark: SparkSession) -> JavaBlooms:
    return JavaBlooms(spark)


def test_blocks_equal_java_s_byte_for_byte(java: JavaBlooms) -> None:
    for items in (1, 10, 107, 1000, 20_000):
        stream = java.serialised(items, 0.01, LONGS[:items], [])
        # Before the blocks each Spark describes its own class.
        (blocks, ours) = (
            each.split(b"xp", 2)[2] for each in (stream, write_bloom(read_bloom(stream)))
        )
        assert ours == blocks


def test_java_reads_our_stream_and_answers_alike(java: JavaBlooms) -> None:
    ours = write_bloom(bloom_of_longs(LONGS, items=1000))
    assert all(java.might_contain(ours, LONGS, []))
    others = [value + 1_000_000 for value in LONGS]
    assert 0 < sum(java.might_contain(ours, others, [])) < 40


@pytest.mark.parametrize("data_type", ["bigint", "string"])
def test_filter_that_java_built_is_probed_as_spark_probes_it(java, data_type):
    is_text = data_type == "string"
    longs, texts = ([], TEXTS[::3]) if is_text else (LONGS[::3], [])
    stream = java.serialised(350, 0.1, longs, texts)
    found = java.might_contain(stream, [] if is_text else LONGS, TEXTS if is_text else [])
    index = index_of("i1", "BLOOM_FILTER", "k", data_type, items="VALUES")
    kept = FileTable.of(pa.table({"i1.words": pa.array([read_bloom(stream)], pa.large_binary())}))
    literals = [text.encode() for text in TEXTS] if is_text else LONGS
    leaves = [Comparison(index.term, Operator.EQ, value) for value in literals]
    masks = [BLOOM_FILTER.may_match(index, kept, leaf) for leaf in leaves]
    assert [mask is not None and bool(mask[0]) for mask in masks] == found
    assert 0 < found.count(False) < 1000


def test_spark_reads_our_store_with_its_metadata(spark: SparkSession, tmp_path: Path) -> None:
    types = {"p": "int", "t": "timestamp", "d": "date", "m": "decimal(20,2)", "a/b": "string"}
    values: dict[str, list[object]] = {
        "p": [-1, 9],
        "t": [-62135596800000000 + 1, 1577836800123456],
        "d": [-719162, 18262],
        "m": [Decimal("-1.50"), Decimal("99999999999999999.99")],
        "a/b": [b"", "🎉".encode()],
    }
    columns: dict[str, object] = dict(identity(["file:/data/t/P=5/a#1", "file:/data/t/b"], [1, 2]))
    indexes = []
    for number, (name, data_type) in enumerate(types.items()):
        indexes += [index_of(f"i{number}", "MIN_MAX", name, data_type)]
        indexes += [index_of(f"j{number}", "VALUE_SET", name, data_type)]
        kept_as = pa.scalar(None, some_type(data_type)).type
        columns[f"i{number}.values"] = [2, 0]
        columns[f"j{number}.values"] = [2, 0]
        for part, value in zip(("min", "max"), values[name], strict=True):
            columns[f"i{number}.{part}"] = pa.array([value, None], kept_as)
        columns[f"j{number}.set"] = pa.array([values[name], []], pa.list_(kept_as))
    definition = a_definition(*indexes, partitions=[("P", "int")])
    store = LocalObjectStore(tmp_path, create=True)
    XskipperDirectory(store).write([pa.table(columns)], definition)
    frame = spark.read.parquet(str(tmp_path))
    assert frame.schema["obj_name"].metadata == {"tableIdentifier": "/data/t", "version": 4}
    assert frame.schema["a$#$b_minmax_5"].metadata == {"index": {"name": "minmax", "cols": ["a.b"]}}
    # Python cannot show a timestamp of the year 1 in every time zone.
    shown = [f"`{name}`" for name in frame.columns if not name.startswith("t_")]
    first, second = frame.select(*shown).orderBy("obj_name").collect()
    assert (first["obj_name"], first["virtual_P"]) == ("/data/t/P=5/a#1#1", 5)
    assert tuple(first["p_minmax_1"]) == (-1, 9)
    assert first["d_valuelist_1"] == [date(1, 1, 1), date(2020, 1, 1)]
    assert tuple(first["m_minmax_1"]) == tuple(values["m"])
    assert first["a$#$b_valuelist_5"] == ["", "🎉"]
    assert list(second)[1:] == [None] * 9
    micros = frame.selectExpr("unix_micros(t_minmax_1.min) a", "unix_micros(t_minmax_1.max) b")
    assert [tuple(row) for row in micros.orderBy("a").collect()][1] == tuple(values["t"])
    (part,) = tmp_path.glob("*.parquet")
    leaves = [pq.ParquetFile(part).schema.column(at) for at in range(17)]
    assert {leaf.physical_type for leaf in leaves if leaf.path.startswith("t_")} == {"INT96"}


def some_type(data_type: str) -> pa.DataType:
    return {
        "int": pa.int32(),
        "timestamp": pa.int64(),
        "date": pa.int32(),
        "string": pa.large_binary(),
    }.get(data_type, pa.decimal128(20, 2))


def test_scala_parses_the_schema_of_a_store_with_a_bloom(spark, tmp_path):
    definition = a_definition(
        index_of("i1", "MIN_MAX", "price", "int"),
        index_of("i2", "BLOOM_FILTER", "k", "string", items="VALUES"),
    )
    XskipperDirectory(LocalObjectStore(tmp_path, create=True)).write([some_rows()], definition)
    (part,) = tmp_path.glob("*.parquet")
    schema = pq.ParquetFile(part).metadata.metadata[ROW_METADATA.encode()].decode()
    assert json.loads(java_schema(spark, schema)) == json.loads(schema)


def test_we_read_what_spark_writes_in_several_refreshes(spark, tmp_path):
    fields = [
        field("obj_name", "string", {"version": 4, "tableIdentifier": "/data/t"}),
        field("t_minmax_1", struct_of("timestamp"), index_metadata("minmax", ["t"])),
        field("d_minmax_1", struct_of("date"), index_metadata("minmax", ["d"])),
        field("m_valuelist_1", array_of("decimal(9,2)"), index_metadata("valuelist", ["m"])),
    ]
    schema = StructType.fromJson({"type": "struct", "fields": fields})
    old, new = datetime(1500, 3, 1, tzinfo=UTC), datetime(2020, 1, 1, 0, 0, 0, 123456, UTC)
    days = (date(1400, 2, 28), date(2020, 1, 1))
    rows = [("/data/t/a#1", (old, new), days, [Decimal("1.50")]), ("/data/t/b#2", None, None, [])]
    for row in rows:
        spark.createDataFrame([row], schema).coalesce(1).write.mode("append").parquet(str(tmp_path))
    found = XskipperDirectory(LocalObjectStore(tmp_path, create=False)).read()
    (first, second) = found.rows.sort_by("path").to_pylist()
    assert found.left_out == ()
    assert first["0.min"] == round(old.timestamp()) * 1_000_000
    assert first["0.max"] == 1577836800123456
    assert first["1.min"] == days[0].toordinal() - date(1970, 1, 1).toordinal()
    assert (first["2.set"], second["0.present"], second["2.set"]) == ([Decimal("1.50")], False, [])
