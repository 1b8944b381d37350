"""Columns of CSV are those that headers name, in whatever order and number files have them."""

import bz2
import csv
import gzip
import io

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from support.declared.sources import NOW, by_field, files, reader, snapshot_times

from snaploom.errors import SnaploomError, SourceNotReadable, SourceSchemaInvalid
from snaploom.spark.failures import translate

pytestmark = pytest.mark.spark

HEADER = {"header": "true"}
A_B = [{"name": "a", "dataType": "integer"}, {"name": "b", "dataType": "string"}]


def opened(spark, folder, options=HEADER, **declared):
    return reader(spark, files("csv", folder / "*.csv*", formatOptions=options, **declared))


def found(spark, folder, options=HEADER, **declared):
    frame = opened(spark, folder, options, **declared).read(NOW).frame
    return frame.columns, sorted(map(tuple, frame.collect()), key=repr)


def failure(spark, folder, options=HEADER, **declared):
    try:
        found(spark, folder, options, **declared)
    except (SnaploomError, Py4JError, PySparkException) as error:
        return translate(error)
    raise AssertionError("it was read")


def by_duckdb(folder):
    """The same files as DuckDB reads them, matched by name."""
    relation = duckdb.sql(
        f"SELECT * FROM read_csv('{folder}/*.csv*', union_by_name=true, all_varchar=true,"
        " header=true, delim=',', quote='\"', escape='\"', nullstr='\ufdd0')"
    )
    return relation.columns, sorted(relation.fetchall(), key=repr)


def write(folder, **texts):
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.csv").write_text(text, encoding="utf-8")


def test_columns_that_are_reordered_added_and_missing_are_matched_by_name(spark, tmp_path):
    write(tmp_path, f1="a,b\n1,x\n", f2="b,a\ny,2\n", f3="b,c,a\nz,new,3\n", f4="b\nonly\n")

    columns, rows = found(spark, tmp_path)

    assert (columns, rows) == by_duckdb(tmp_path)
    assert columns == ["a", "b", "c"]
    assert ("2", "y", None) in rows
    assert (None, "only", None) in rows


@pytest.mark.parametrize("header", ["true", "false"])
@pytest.mark.parametrize(("declared", "other"), [("\r", "\n"), ("\n", "\r")])
def test_a_file_without_the_declared_line_ends_is_refused(spark, tmp_path, declared, other, header):
    write(tmp_path, f1=f"b{declared}1{declared}", f2=f"b{other}2{other}3{other}")

    options = {"header": header, "lineSep": declared}
    error = failure(spark, tmp_path, options, schemaFields=A_B[1:])

    assert isinstance(error, SourceSchemaInvalid)
    assert "f2.csv" in str(error.found)


def test_a_name_may_have_a_line_end_that_is_not_declared(spark, tmp_path):
    write(tmp_path, f1='"a\n(1)",b\r1,x\r')  # Excel for Mac
    assert found(spark, tmp_path, {**HEADER, "lineSep": "\r"})[0] == ["a\n(1)", "b"]


def test_declared_columns_are_taken_by_name_and_others_are_reported_once(spark, tmp_path):
    write(tmp_path, f1="a,b\n1,x\n", f2="c,b,a\nnew,y,2\n", f3="a\n3\n")
    source = opened(spark, tmp_path, schemaFields=A_B)

    read = source.read(NOW)

    assert sorted(map(tuple, read.frame.collect())) == [(1, "x"), (2, "y"), (3, None)]
    missing, further = read.listed.remarks
    assert "1 of 3 files have no column `b`" in missing
    assert "f3.csv" in missing
    assert "1 of 3 files have a column `c`, which is not read since" in further
    assert "f2.csv" in further
    assert source.read(NOW).listed.remarks == ()


@pytest.mark.parametrize("other", ["1,x\n2,y\n", "a;b\n1;x\n"])
def test_a_file_with_none_of_the_columns_is_refused_and_not_all_null(spark, tmp_path, other):
    write(tmp_path, f1="a,b\n1,x\n", f2=other)
    error = failure(spark, tmp_path, schemaFields=A_B)
    assert isinstance(error, SourceSchemaInvalid)
    assert "f2.csv" in error.found
    assert error.expected == "a header with some of a, b"


NAMES = ("id", "name", "Größe", "a b", "x.y", "`q`", 'quoth "hi"', "e,f")
TEXTS = st.text(
    st.characters(codec="utf-8", exclude_characters="\r\n\x00\ufdd0"), min_size=1, max_size=6
)


@st.composite
def a_file(draw):
    """Bytes of one file, with a header of its own, and whether they are packed."""
    header = draw(st.lists(st.sampled_from(NAMES), min_size=2, max_size=5, unique=True))
    rows = draw(st.lists(st.tuples(*(TEXTS for _ in header)), max_size=3))
    out = io.StringIO()
    ending = draw(st.sampled_from(["\n", "\r\n"]))
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator=ending).writerows([header, *rows])
    mark = draw(st.sampled_from(["", "\ufeff"]))
    return f"{mark}{out.getvalue()}".encode(), draw(st.booleans())


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(a_file(), min_size=1, max_size=4))
def test_any_headers_give_the_rows_of_duckdb(spark, tmp_path_factory, contents):
    folder = tmp_path_factory.mktemp("drawn")
    for number, (content, is_packed) in enumerate(contents):
        name = f"{number}.csv.gz" if is_packed else f"{number}.csv"
        (folder / name).write_bytes(gzip.compress(content) if is_packed else content)

    columns, rows = found(spark, folder)

    theirs, expected = by_duckdb(folder)
    order = [columns.index(name) for name in theirs]
    assert sorted(theirs) == sorted(columns)
    assert sorted((tuple(row[n] for n in order) for row in rows), key=repr) == expected


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, bytes], ids=["gz", "bz2", "plain"])
def test_packed_files_and_values_over_lines_are_matched(spark, tmp_path, pack):
    ending = {gzip.compress: ".gz", bz2.compress: ".bz2"}.get(pack, "")
    (tmp_path / f"f1.csv{ending}").write_bytes(pack(b'b,a\r\n"two\r\nlines",1\r\n'))
    (tmp_path / f"f2.csv{ending}").write_bytes(pack(b"\xef\xbb\xbfA,B\n2,x\n"))

    assert found(spark, tmp_path, schemaFields=A_B)[1] == [(1, "two\r\nlines"), (2, "x")]


@pytest.mark.parametrize(
    "options",
    [
        {"multiLine": "true"},
        {"multiLine": "false"},
        {"comment": "#"},
        {"encoding": "UTF-16"},
        {"sep": "||"},
        {"escape": "\\"},
        {"mode": "PERMISSIVE"},
        {"ignoreLeadingWhiteSpace": "true", "ignoreTrailingWhiteSpace": "true"},
    ],
    ids=str,
)
def test_columns_are_matched_under_any_options(spark, tmp_path, options):
    sep, charset = options.get("sep", ","), options.get("encoding", "UTF-8")
    for name, text in {"f1": "a,b\n1,x\n", "f2": "b,c,a\ny,new,2\n"}.items():
        (tmp_path / f"{name}.csv").write_bytes(text.replace(",", sep).encode(charset))

    rows = found(spark, tmp_path, {**HEADER, **options}, schemaFields=A_B)[1]

    assert rows == [(1, "x"), (2, "y")]


def test_inferred_types_are_those_of_all_values_of_a_name(spark, tmp_path):
    write(tmp_path, f1="a,b,c\n1,2024-01-01,\n", f2="c,a,b\n7,2.5,\n", f3="d\nx\n")

    source = opened(spark, tmp_path, {**HEADER, "inferSchema": "true"}).read(NOW)

    types = "struct<a:double,b:date,c:int,d:string>"
    assert source.frame.schema.simpleString() == types
    assert {row.c for row in source.frame.collect()} == {None, 7}


def test_a_name_in_other_case_or_with_blanks_is_the_same_column(spark, tmp_path):
    write(tmp_path, f1="a,b\n1,x\n", f2="B,A\ny,2\n", f3=" b, a\nz,3\n", empty="")
    assert found(spark, tmp_path, schemaFields=A_B)[1] == [(1, "x"), (2, "y"), (3, "z")]
    assert found(spark, tmp_path)[0] == ["a", "b"]


def test_a_name_over_two_lines_is_the_whole_name(spark, tmp_path):
    write(tmp_path, f1='"two\nlines",b\n1,x\n', f2='b,"two\nother"\ny,2\n')
    assert found(spark, tmp_path)[0] == ["two\nlines", "b", "two\nother"]


def test_names_that_blanks_distinguish_in_one_file_stay_apart(spark, tmp_path):
    write(tmp_path, f1="a, a\n1,2\n", f2="a\n3\n")
    assert found(spark, tmp_path) == (["a", " a"], [("1", "2"), ("3", None)])


@pytest.mark.parametrize("text", ["a,b,a\n1,x,2\n", "a ,b, a\n1,x,2\n"])
def test_a_name_that_stands_twice_is_refused_where_it_is_wanted(spark, tmp_path, text):
    write(tmp_path, f1=text)
    error = failure(spark, tmp_path, schemaFields=A_B)
    assert isinstance(error, SourceSchemaInvalid)
    assert "f1.csv" in error.found
    assert "enforceSchema" in error.hint


@pytest.mark.parametrize(
    ("text", "columns"),
    [("a,b,a\n1,x,2\n", ["a0", "b", "a2"]), (",b,\n1,x,2\n", ["_c0", "b", "_c2"])],
)
def test_names_that_are_empty_or_stand_twice_are_those_of_spark(spark, tmp_path, text, columns):
    write(tmp_path, f1=text)
    assert found(spark, tmp_path) == (columns, [("1", "x", "2")])
    declared = [{"name": name, "dataType": "string"} for name in reversed(columns)]
    assert found(spark, tmp_path, schemaFields=declared)[1] == [("2", "x", "1")]


def test_a_column_may_be_called_like_the_text_of_null(spark, tmp_path):
    write(tmp_path, f1="NA,b\n1,NA\n", f2="b,NA\nx,NA\n")
    options = {**HEADER, "nullValue": "NA"}
    assert found(spark, tmp_path, options) == (["NA", "b"], [("1", None), (None, "x")])


def test_enforce_schema_true_takes_columns_by_their_place(spark, tmp_path):
    write(tmp_path, f1="a,b\n1,x\n", f2="other,names\n2,y\n")
    options = {**HEADER, "enforceSchema": "true"}
    assert found(spark, tmp_path, options, schemaFields=A_B)[1] == [(1, "x"), (2, "y")]


@pytest.mark.parametrize("header", ["b,a", "a", "a,b,c", "a,nome", "a;b"])
@pytest.mark.parametrize("is_declared", [True, False])
def test_enforce_schema_false_refuses_another_header(spark, tmp_path, header, is_declared):
    write(tmp_path, f1="a,b\n" + "1,x\n" * 9, f2=f"{header}\n2,y\n")
    schema = {"schemaFields": A_B} if is_declared else {}
    error = failure(spark, tmp_path, {**HEADER, "enforceSchema": "false"}, **schema)
    assert isinstance(error, SourceSchemaInvalid)
    assert "f2.csv" in error.found
    assert "enforceSchema" in error.hint


@pytest.mark.parametrize("record", ["2", "2,y", "2,y,new,more"])
def test_a_record_of_another_length_fails_also_beside_columns_that_are_not_read(
    spark, tmp_path, record
):
    write(tmp_path, f1="a,b\n1,x\n", f2=f"a,b,c\n{record}\n")
    assert isinstance(failure(spark, tmp_path, schemaFields=A_B), SourceNotReadable)


def test_a_value_that_would_change_is_found_in_its_line_behind_another_header(spark, tmp_path):
    write(tmp_path, f1="a,b\n1,x\n", f2="b,c,a\ny,9.99,2\nz,8,3.75\n")
    declared = [{"name": "a", "dataType": "decimal(3,1)"}]
    error = failure(spark, tmp_path, schemaFields=declared)
    assert error.message == "a value of a would change as it is read"
    assert error.found.startswith("3.75 in line 3 of ")
    assert error.found.endswith("f2.csv")


def test_corrupt_records_are_kept_whatever_the_header(spark, tmp_path):
    write(tmp_path, f1="a,b\n1,x\n", f2="b,a\ny,bad\n")
    declared = [*A_B, {"name": "_corrupt_record", "dataType": "string"}]
    options = {**HEADER, "mode": "PERMISSIVE"}
    rows = found(spark, tmp_path, options, schemaFields=declared)[1]
    assert rows == [(1, "x", None), (None, "y", "y,bad")]


def test_files_without_a_header_go_by_place(spark, tmp_path):
    write(tmp_path, f1="1,x\n", f2="2,y\n")
    assert found(spark, tmp_path, {}, schemaFields=A_B)[1] == [(1, "x"), (2, "y")]


def test_a_column_of_snapshots_is_found_by_name_in_each_file(spark, tmp_path):
    write(tmp_path, f1="day,a\n2024-01-01,1\n", f2="a,b,day\n2,x,2024-01-02\n3,y,2024-01-01\n")
    source = opened(spark, tmp_path, snapshot=by_field("day", "ISO8601_DATE"))

    first, second = snapshot_times(source)

    rows = [row.asDict() for row in source.read(first).frame.collect()]
    assert sorted(rows, key=repr) == [{"a": "1", "b": None}, {"a": "3", "b": "y"}]
    assert source.read(second).frame.count() == 1
