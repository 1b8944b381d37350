"""What Spark passes over in JSON and text is an error; what is no fault of a file is read."""

import gzip
import json
import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from support.declared.sources import NOW, files, reader, rows_at

from snaploom.errors import SourceNotReadable
from snaploom.sources.files.records import HALF_PAIR
from snaploom.spark.failures import translate

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("schema", [None, [{"name": "a", "dataType": {"long": {}}}]])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1}{"a": 2}\n', "more than one value"),
        ('{"a": 1} x\n', "more than one value"),
        ('{"a": 1},\n{"a": 2}\n', "more than one value"),
        ('{"a": 1, "a": 2}\n', '"a" twice'),
        ('{"a": 1}\n{"a": 1, "b": [{"c": NaN, "c": 2}]}\n', '"c" twice'),
        ('{"a": 1, "b": "x\\ud83d"}\n', "half of a surrogate pair"),
        ('{"a": 1, "b": {"\\udE00\\ud83d": 2}}\n', "half of a surrogate pair"),
        ('{"a": 1, "b": "\\\\\\uDFFF"}\n', "half of a surrogate pair"),
    ],
)
def test_lines_of_json_of_which_spark_would_drop_a_part_are_refused(
    spark, tmp_path, text, message, schema
):
    (tmp_path / "a.json").write_text(text)
    settings = {} if schema is None else {"schemaFields": schema}

    with pytest.raises(SourceNotReadable, match=message) as caught:
        reader(spark, files("json", tmp_path / "*", **settings)).read(NOW)

    assert "a.json" in str(caught.value.found)
    assert "PERMISSIVE" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("charset", "options"),
    [
        ("utf-16-le", {"encoding": "UTF-16LE", "lineSep": "\n"}),
        ("utf-16-be", {"encoding": "UTF-16BE", "lineSep": "\n"}),
        ("latin-1", {"encoding": "ISO-8859-1", "lineSep": "\n"}),
        ("utf-16", {"encoding": "UTF-16", "multiLine": "true"}),
    ],
)
def test_json_of_another_character_set_is_read_whole_or_refused(spark, tmp_path, charset, options):
    schema = [{"name": "a", "dataType": {"string": {}}}]
    spec = files("json", tmp_path / "*", formatOptions=options, schemaFields=schema)
    (tmp_path / "a.json").write_bytes('{"a": "é"}\n'.encode(charset))
    assert rows_at(reader(spark, spec), NOW) == [("é",)]
    for text, message in (('{"a": "é"}{"a": "x"}', "more than one"), ('{"a": 1, "a": 2}', "twice")):
        (tmp_path / "a.json").write_bytes(f"{text}\n".encode(charset))
        with pytest.raises(SourceNotReadable, match=message):
            reader(spark, spec).read(NOW)


LONG = {"schemaFields": [{"name": "a", "dataType": {"long": {}}}]}
LITTLE_ENDIAN = {"encoding": "UTF-16LE", "lineSep": "\n"}


@pytest.mark.parametrize(
    ("content", "settings", "helps"),
    [
        ('\ufeff{"a": 1}\n'.encode("utf-16-le"), {"formatOptions": LITTLE_ENDIAN}, "iconv"),
        ('{"a": 1}'.encode("utf-16"), {"formatOptions": {"multiLine": "true"}}, "encoding"),
        (b'{"a": "7"}\n', LONG, "cast it by a fieldTransformer"),
    ],
)
def test_json_that_cannot_be_read_as_declared_is_refused_with_what_to_do(
    spark, tmp_path, content, settings, helps
):
    (tmp_path / "a.json").write_bytes(content)
    source = reader(spark, files("json", tmp_path / "*", **settings))
    with pytest.raises((SourceNotReadable, PySparkException, Py4JJavaError)) as caught:
        rows_at(source, NOW)
    error = translate(caught.value)
    assert type(error) is SourceNotReadable
    assert helps in str(error.hint)


@given(
    st.lists(st.sampled_from(["\\ud83d", "\\uDE00", "\\\\", "\\u0061", "u", "d83d"]), max_size=8)
)
def test_half_pairs_are_those_that_python_decodes_to_no_character(parts):
    text = json.dumps("x")[:-1] + "".join(parts) + '"'
    is_half = any("\ud800" <= char <= "\udfff" for char in json.loads(text))
    assert bool(re.search(HALF_PAIR, text)) == is_half


def test_json_that_python_writes_is_read(spark, tmp_path):
    rows = [
        {"n": 2**63 - 1, "d": 0.1, "t": 'a \\ "b" \u2028 é 😀 \\ud83d', "x": float("nan")},
        {"n": None, "d": 1e-7, "t": '}{ "a": 1, "a": 2', "x": float("-inf")},
    ]
    (tmp_path / "a.json").write_text("\n\n".join(map(json.dumps, rows)))

    read = reader(spark, files("json", tmp_path / "*")).read(NOW).frame.orderBy("d").collect()

    assert [(row["n"], row["d"], row["t"]) for row in reversed(read)] == [
        (row["n"], row["d"], row["t"]) for row in rows
    ]


def test_integers_that_no_long_holds_are_read_exactly(spark, tmp_path):
    (tmp_path / "a.json").write_text(f'{{"a": {2**63}}}')
    assert rows_at(reader(spark, files("json", tmp_path / "*")), NOW) == [(Decimal(2**63),)]


def test_a_source_may_take_records_as_they_come(spark, tmp_path):
    (tmp_path / "a.json").write_text('{"a": 1}{"a": 2}\n')
    lax = files("json", tmp_path / "*", formatOptions={"mode": "PERMISSIVE"})
    assert rows_at(reader(spark, lax), NOW) == [(1,)]


def test_text_that_is_not_utf_8_is_refused(spark, tmp_path):
    (tmp_path / "a.txt").write_bytes("é\n".encode())
    (tmp_path / "b.txt").write_bytes("é\n".encode("latin-1"))

    assert rows_at(reader(spark, files("text", tmp_path / "a.txt")), NOW) == [("é",)]
    with pytest.raises(SourceNotReadable, match="not UTF-8") as caught:
        reader(spark, files("text", tmp_path / "*")).read(NOW)
    assert "b.txt" in str(caught.value.found)


@pytest.mark.parametrize(
    ("name", "text", "multi_line"),
    [("a.json", '\ufeff{"ID": 1, "b": {"id": 2}}\n{"b": null}\n{"c', "false"),
     ("a.json", '[\n{"ID": 1, "b": [1]}, {"b": 2}]', "true"),
     ("a.json.gz", '{"ID": 1}\n\n{"ID": 2, "b": 3}\n', "false")],
)  # fmt: skip
def test_keys_that_came_and_went_are_named_as_they_are_written(
    spark, tmp_path, name, text, multi_line
):
    content = text.encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    fields = [{"name": each, "dataType": {"string": {}}} for each in ("id", "b")]
    spec = files("json", tmp_path / "*", schemaFields=fields, formatOptions={
        "multiLine": multi_line, "mode": "PERMISSIVE"})  # fmt: skip
    notes = [each.partition(":")[0] for each in reader(spark, spec).read(NOW).listed.notes]
    assert notes == [
        "1 of 1 files have no key `id` in their first records, which is NULL there",
        "1 of 1 files have a column `ID`, which is not read since schemaFields does not declare it",
    ]


def test_a_key_that_no_record_of_a_day_has_is_not_remarked(spark, tmp_path):
    (tmp_path / "a.json").write_text('{"id": "1"}\n')
    fields = [{"name": each, "dataType": {"string": {}}} for each in ("id", "error")]
    spec = files("json", tmp_path / "*", schemaFields=fields)
    assert list(reader(spark, spec).read(NOW).listed.notes) == []
