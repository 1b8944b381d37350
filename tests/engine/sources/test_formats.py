"""Every format is read, with files of any writer, and a broken file is one clear error."""

import csv
import gzip
import json

import pyarrow as pa
import pyarrow.csv
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import functions as sf
from support.declared.sources import NOW, a_bundle, files, reader, rows_at, saved

from snaploom.errors import FormatNotAllowed, SnaploomError, SourceNotReadable, SourceSchemaInvalid
from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.policy.formatfaults import spark_format
from snaploom.sources.readers import Sources
from snaploom.spark.failures import translate

pytestmark = pytest.mark.spark

ROWS = [(1, "a"), (2, "ü"), (3, None)]
TABLE = pa.table({"id": pa.array([r[0] for r in ROWS], pa.int64()), "name": [r[1] for r in ROWS]})
SCHEMA = [
    {"name": "id", "dataType": {"long": {}}},
    {"name": "name", "dataType": {"string": {}}},
]


def frame(spark):
    return spark.createDataFrame(ROWS, "id long, name string")


@pytest.mark.parametrize(
    ("data_format", "settings"),
    [
        ("parquet", {}),
        ("PARQUET", {}),
        ("orc", {}),
        ("avro", {}),
        ("json", {}),
        ("csv", {"formatOptions": {"header": "true"}, "schemaFields": SCHEMA}),
    ],
)
def test_what_spark_wrote_is_read(spark, tmp_path, data_format, settings):
    options = {"header": "true"} if data_format == "csv" else {}
    path = str(tmp_path / "data")
    frame(spark).repartition(2).write.format(spark_format(data_format, NO_ALLOWANCES)).options(
        **options
    ).save(path)

    source = reader(spark, files(data_format, f"{path}/*", **settings))

    assert rows_at(source, NOW) == ROWS


def test_parquet_orc_and_csv_of_arrow_are_read(spark, tmp_path):
    pq.write_table(TABLE, tmp_path / "a.parquet")
    pa.orc.write_table(TABLE, tmp_path / "a.orc")
    pa.csv.write_csv(TABLE, tmp_path / "a.csv")

    for data_format in ("parquet", "orc"):
        source = reader(spark, files(data_format, tmp_path / f"*.{data_format}"))
        assert rows_at(source, NOW) == ROWS
    options = {"header": "true", "inferSchema": "true"}
    inferred = reader(spark, files("csv", tmp_path / "*.csv", formatOptions=options))
    assert [(int(str(i)), name) for i, name in rows_at(inferred, NOW)] == ROWS


def test_csv_json_and_text_of_plain_python_are_read(spark, tmp_path):
    with (tmp_path / "a.csv").open("w", newline="", encoding="utf-8") as out:
        csv.writer(out, delimiter=";").writerows([["1", 'x;"y"'], ["2", "z"]])
    with gzip.open(tmp_path / "a.json.gz", "wt", encoding="utf-8") as out:
        out.write("\n".join(json.dumps({"k": {"Ä b": i}}) for i in range(2)))
    (tmp_path / "a.txt").write_text("one\ntwo\n")

    options = {"sep": ";", "escape": '"'}
    assert rows_at(reader(spark, files("csv", tmp_path / "*.csv", formatOptions=options)), NOW) == [
        ("1", 'x;"y"'), ("2", "z"),
    ]  # fmt: skip
    nested = reader(spark, files("json", tmp_path / "*.json.gz"))
    assert [row[0]["Ä b"] for row in rows_at(nested, NOW)] == [0, 1]
    assert rows_at(reader(spark, files("text", tmp_path / "*.txt")), NOW) == [("one",), ("two",)]


def test_other_formats_are_taken_by_name(spark, tmp_path):
    (tmp_path / "a.bin").write_bytes(b"\x00\x01")

    (row,) = rows_at(reader(spark, files("binaryFile", tmp_path / "*.bin")), NOW)

    assert bytes(row[3]) == b"\x00\x01"  # type: ignore[arg-type]


def test_odd_names_nested_types_and_metadata_come_through(spark, tmp_path):
    odd = spark.range(2).select(
        sf.col("id").alias("a.b", metadata={"comment": "dot"}),
        sf.struct(sf.lit("x").alias("in `side")).alias("back`tick", metadata={"k": 1}),
        sf.array(sf.struct(sf.lit(1).alias("É 1"))).alias("sp ace"),
        sf.create_map(sf.lit("k"), sf.lit(1.5)).alias("map"),
    )
    odd.write.parquet(str(tmp_path / "data"))

    read = reader(spark, files("parquet", f"{tmp_path}/data/*")).read(NOW).frame

    assert read.schema.jsonValue() == spark.read.parquet(str(tmp_path / "data")).schema.jsonValue()
    assert read.schema["a.b"].metadata == {"comment": "dot"}
    assert read.count() == 2


def test_a_declared_schema_is_what_is_read(spark, tmp_path):
    (tmp_path / "a.csv").write_text("1,x\n")
    fields = [
        {"name": "n", "dataType": {"integer": {}}, "metadata": {"unit": "m"}},
        {"name": "t", "dataType": {"string": {}}},
    ]

    read = reader(spark, files("csv", tmp_path / "*", schemaFields=fields)).read(NOW).frame

    assert read.schema.simpleString() == "struct<n:int,t:string>"
    assert read.schema["n"].metadata == {"unit": "m"}
    assert [tuple(row) for row in read.collect()] == [(1, "x")]


@pytest.mark.parametrize("data_format", ["parquet", "orc", "avro", "json", "arrow"])
def test_a_file_that_is_not_of_its_format_is_named(spark, tmp_path, data_format):
    (tmp_path / "a.data").write_bytes(b"\x00not a file of any format" * 9)

    with pytest.raises(SourceNotReadable) as caught:
        reader(spark, files(data_format, tmp_path / "*")).read(NOW)

    assert caught.value.resource == "DataSource/orders"
    assert "a.data" in str(caught.value)
    assert "\tat " not in str(caught.value)


def read_failure(spark, data_format, path, **settings):
    """What reading all of a source fails with, whenever it does."""
    try:
        reader(spark, files(data_format, path, **settings)).read(NOW).frame.collect()
    except (SnaploomError, Py4JError, PySparkException) as error:
        return translate(error, resource="DataSource/orders")
    raise AssertionError("it was read")


HEADER = {"formatOptions": {"header": "true"}}


@pytest.mark.parametrize(
    ("data_format", "content", "settings", "found"),
    [
        ("csv", "1,a\nx,b\n", {"schemaFields": SCHEMA}, '"x"'),
        ("csv", "1,a\n2\n", {"schemaFields": SCHEMA}, "Malformed CSV record: 2"),
        ("csv", "1,a\n2,b,c\n", {}, "Malformed CSV record: 2,b,c"),
        ("csv", "id,name\n1,a\nx,b\n", {**HEADER, "schemaFields": SCHEMA}, '"x"'),
        ("json", '{"id": 1}\n{"id": "x"}\n', {"schemaFields": SCHEMA}, "'id' and the value x"),
        ("json", '{"id": 1}\n{"id": \n', {"schemaFields": SCHEMA}, "end-of-input"),
        ("json", '{"id": 1}\n{"id": \n', {}, "end-of-input"),
        ("xml", "<r><o><id>x</id></o></r>", {"schemaFields": SCHEMA}, '"x"'),
    ],
)
def test_a_record_that_does_not_fit_is_named_and_never_null(
    spark, tmp_path, data_format, content, settings, found
):
    (tmp_path / "a.data").write_text(content)
    tag = {"rowTag": "o"} if data_format == "xml" else {}
    options = {**settings.get("formatOptions", {}), **tag}

    error = read_failure(
        spark, data_format, tmp_path / "*", **{**settings, "formatOptions": options}
    )

    assert isinstance(error, SourceNotReadable)
    assert (found in str(error.found), "a.data" in str(error.found)) == (True, True)
    assert "PERMISSIVE" in str(error.hint)


def test_a_csv_header_in_other_case_is_read(spark, tmp_path):
    (tmp_path / "a.csv").write_text("id,name\n1,a\n")
    (tmp_path / "b.csv").write_text("\ufeffID,Name\n2,b\n", encoding="utf-8")
    (tmp_path / "c.csv").write_text("")
    source = reader(spark, files("csv", tmp_path / "*", schemaFields=SCHEMA, **HEADER))
    assert rows_at(source, NOW) == [(1, "a"), (2, "b")]
    assert source.read(NOW).frame.count() == 2


@pytest.mark.parametrize("mode", [{"mode": "PERMISSIVE"}, {"MODE": "permissive"}])
def test_options_of_a_source_for_records_and_headers_are_kept(spark, tmp_path, mode):
    (tmp_path / "a.csv").write_text("name,id\n1,a\nx,b\n")
    (tmp_path / "a.json").write_text('{"id": 1, "name": "a"}\n{"id": "x", "name": "b"}\n')
    of_csv = {"header": "true", "enforceschema": "true", **mode}

    for data_format, options in (("csv", of_csv), ("json", mode)):
        settings = {"formatOptions": options, "schemaFields": SCHEMA}
        source = reader(spark, files(data_format, tmp_path / f"*.{data_format}", **settings))
        read = source.read(NOW).frame.collect()
        assert {tuple(row) for row in read} == {(1, "a"), (None, "b")}


def test_a_file_that_was_cut_short_is_named_whether_it_is_met_early_or_late(spark, tmp_path):
    whole, cut = tmp_path / "a.parquet", tmp_path / "b.parquet"
    pq.write_table(TABLE, whole)
    pq.write_table(TABLE, cut)
    late = reader(spark, files("parquet", whole, cut, schemaFields=SCHEMA)).read(NOW).frame
    cut.write_bytes(whole.read_bytes()[:-30])

    for declared in ({}, {"schemaFields": SCHEMA}):
        with pytest.raises(SourceNotReadable, match=r"b\.parquet"):
            reader(spark, files("parquet", cut, **declared)).read(NOW)
    with pytest.raises(Exception, match="FAILED_READ_FILE") as caught:
        late.write.parquet(str(tmp_path / "out"))

    error = translate(caught.value, resource="DataSource/orders")
    assert isinstance(error, SourceNotReadable)
    assert "b.parquet" in str(error)
    assert "\tat " not in str(error)


@pytest.mark.parametrize("data_format", ["parquet", "avro", "arrow"])
def test_an_empty_file_is_not_taken_for_no_rows(spark, tmp_path, data_format):
    saved(frame(spark), data_format, f"{tmp_path}/d")
    (tmp_path / "d" / "zero").write_bytes(b"")

    with pytest.raises(SourceNotReadable, match="zero bytes") as caught:
        reader(spark, files(data_format, f"{tmp_path}/d/*")).listing()

    assert "d/zero" in str(caught.value.found)


def test_an_unknown_format_is_one_clear_error(spark, tmp_path):
    (tmp_path / "a").write_text("x")

    unlisted = a_bundle(files("nonesuch", tmp_path / "*"))
    allowed = Allowances(formats=("nonesuch",))

    with pytest.raises(FormatNotAllowed):
        Sources(spark, unlisted, NOW).reader("orders").read(NOW)
    with pytest.raises(SourceSchemaInvalid, match="nonesuch") as caught:
        Sources(spark, unlisted, NOW, allow=allowed).reader("orders").read(NOW)

    assert "jars" in str(caught.value.hint)


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"a": [1], "A": [2]}),
        pa.table({"s": [{"x": 1, "X": 2}]}),
        pa.table({"s": [[{"x": {"é": 1, "É": 2}}]]}),
    ],
)
def test_names_that_differ_in_case_only_are_refused_before_anything_is_read(spark, tmp_path, table):
    pq.write_table(table, tmp_path / "a.parquet")

    with pytest.raises(SourceSchemaInvalid) as caught:
        reader(spark, files("parquet", tmp_path / "*")).read(NOW)

    assert "case" in str(caught.value)


def test_names_that_differ_in_case_between_files_are_one_column(spark, tmp_path):
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"ID": [2]}), tmp_path / "b.parquet")

    assert rows_at(reader(spark, files("parquet", tmp_path / "*")), NOW) == [(1,), (2,)]


def test_names_that_differ_in_case_between_json_files_are_refused(spark, tmp_path):
    """Spark itself would read NULL for one of them."""
    (tmp_path / "a.json").write_text('{"s": {"id": 1}}')
    (tmp_path / "b.json").write_text('{"s": {"ID": 1}}')

    with pytest.raises(SourceSchemaInvalid) as caught:
        reader(spark, files("json", tmp_path / "*")).read(NOW)

    assert caught.value.found == "s.ID and s.id"
    assert spark.conf.get("spark.sql.caseSensitive") == "false"


def test_a_declared_column_without_a_type_is_refused(spark, tmp_path):
    (tmp_path / "a.json").write_text('{"v": null}')
    fields = [{"name": "v", "dataType": {"array": {"elementType": {"null": {}}}}}]

    with pytest.raises(SourceSchemaInvalid, match="void") as caught:
        reader(spark, files("json", tmp_path / "*", schemaFields=fields)).read(NOW)

    assert caught.value.found == "v[]"
