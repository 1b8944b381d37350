"""Tables of SQLite and sheets of workbooks as sources: every value, or one clear error."""

import datetime as dt
import sqlite3
import zipfile

import openpyxl
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from support.declared.sources import NOW, files, reader, rows_at, snapshot_times

from snaploom.errors import SnaploomError, SourceNotReadable
from snaploom.spark.failures import translate

pytestmark = pytest.mark.spark

ROWS = [(1, "a", 0.5), (2, None, None), (1 << 40, "ü", 1e300)]
TYPED = "id bigint, name string, share double"


def a_database(path, rows=ROWS, table="t"):
    with sqlite3.connect(path) as opened:
        opened.execute(f"CREATE TABLE {table} (id INTEGER, name TEXT, share REAL)")
        opened.executemany(f"INSERT INTO {table} VALUES (?, ?, ?)", rows)
    opened.close()
    return path


def a_workbook(path, rows=ROWS, table="t"):
    book = openpyxl.Workbook()
    book.active.title = table
    for row in [("id", "name", "share"), *rows]:
        book.active.append(row)
    book.save(path)
    return path


KINDS = [
    pytest.param("sqlite", a_database, "table", id="sqlite"),
    pytest.param("xlsx", a_workbook, "sheet", id="xlsx"),
]


def declared(types):
    return [
        {"name": name, "dataType": {kind: {}}}
        for name, kind in (each.split(" ") for each in types.split(", "))
    ]


def outcome(spark, data_format, path, **settings):
    try:
        return rows_at(reader(spark, files(data_format, path, **settings)), NOW)
    except (SnaploomError, Py4JError, PySparkException) as error:
        return translate(error, resource="DataSource/orders")


@pytest.mark.parametrize(("data_format", "write", "option"), KINDS)
@pytest.mark.parametrize("types", [None, "id long, name string, share double"])
def test_rows_come_as_they_were_written(spark, tmp_path, data_format, write, option, types):
    write(tmp_path / f"a b%20ü.{data_format}")
    fields = {"schemaFields": declared(types)} if types else {}
    spec = files(data_format, tmp_path / "*", formatOptions={option.upper(): "T"}, **fields)
    frame = reader(spark, spec).read(NOW).frame
    assert frame.schema.simpleString() == "struct<id:bigint,name:string,share:double>"
    assert sorted(map(tuple, frame.collect())) == ROWS


@pytest.mark.parametrize(("data_format", "write", "option"), KINDS)
def test_files_of_days_are_snapshots(spark, tmp_path, data_format, write, option):
    for day in (1, 2):
        write(tmp_path / f"2026-02-0{day}.{data_format}", [(day, "x", 1.5)])
    by_day = {"fieldName": "day", "timeFormat": "ISO8601_DATE", "dropField": True}
    source = reader(spark, files(data_format, tmp_path / "*",
                                 sourceUriPrefix=f"{tmp_path.as_uri()}/{{day:STRING}}.{data_format}",
                                 snapshot={"fromFieldValue": by_day}))  # fmt: skip
    read = [source.read(time).frame.drop("day").collect() for time in snapshot_times(source)]
    assert [list(map(tuple, rows)) for rows in read] == [[(1, "x", 1.5)], [(2, "x", 1.5)]]


@pytest.mark.parametrize(("data_format", "write", "option"), KINDS)
def test_columns_that_came_and_went_are_named(spark, tmp_path, data_format, write, option):
    path = write(tmp_path / f"a.{data_format}")
    fields = declared("id long, Name string, amount double")
    listed = reader(spark, files(data_format, path, schemaFields=fields)).read(NOW).listed
    assert [note.partition(":")[0] for note in listed.notes] == [
        "1 of 1 files have no column `amount`, which is NULL in their rows",
        "1 of 1 files have a column `share`, which is not read since schemaFields does not declare "
        "it",
    ]


@pytest.mark.parametrize(("data_format", "write", "option"), KINDS)
def test_a_file_with_none_of_the_columns_is_refused(spark, tmp_path, data_format, write, option):
    path = write(tmp_path / f"a.{data_format}")
    error = outcome(spark, data_format, path, schemaFields=declared("amount double"))
    assert "a file has none of the columns" in str(error)
    assert "id, name, share in file:" in str(error)


def test_errors_in_cells_are_null_where_the_option_names_them(spark, tmp_path):
    path = a_workbook(tmp_path / "a.xlsx", [(1, "#N/A", 0.5), (2, "b", "#DIV/0!")])
    frame = outcome(spark, "xlsx", path, formatOptions={"nullValue": "#N/A #DIV/0!"})
    assert sorted(map(tuple, frame)) == [(1, None, 0.5), (2, "b", None)]


@pytest.mark.parametrize(("data_format", "write", "option"), KINDS)
def test_a_value_that_does_not_fit_is_named_by_its_place(
    spark, tmp_path, data_format, write, option
):
    path = write(tmp_path / f"a.{data_format}", [(7, "n/a", 1.5)])
    error = outcome(spark, data_format, path, schemaFields=declared("name long"))
    assert isinstance(error, SourceNotReadable)
    place = {"sqlite": "row 1 of t.name", "xlsx": "cell B2 (name)"}[data_format]
    assert f"{place} has n/a, which is no whole number" in str(error)


@pytest.mark.parametrize(("data_format", "write", "option"), KINDS)
@pytest.mark.parametrize("content", [b"", b"no such file", b"PK\3\4 and no archive"])
def test_what_is_no_such_file_is_one_error(spark, tmp_path, data_format, write, option, content):
    path = tmp_path / f"a.{data_format}"
    path.write_bytes(content)
    error = outcome(spark, data_format, path)
    assert isinstance(error, SnaploomError)
    assert path.name in str(error)


@pytest.mark.parametrize("types", [None, "id long"])
@pytest.mark.parametrize(("data_format", "write", "option"), KINDS)
def test_a_table_that_is_not_there_is_an_error_of_its_option_with_those_that_are(
    spark, tmp_path, data_format, write, option, types
):
    path = write(tmp_path / f"a.{data_format}")
    fields = {"schemaFields": declared(types)} if types else {}
    error = outcome(spark, data_format, path, formatOptions={option: "other"}, **fields)
    assert isinstance(error, SourceNotReadable)
    assert error.path == f"spec.hdfsLike.formatOptions.{option}"
    assert error.found == f"there is no {option} other in file:{path}"
    assert error.expected == "t"
    assert "name one of those" in error.hint


def test_numbers_of_a_workbook_are_decimals_if_these_are_declared(spark, tmp_path):
    path = a_workbook(tmp_path / "a.xlsx", [(1, None, 0.1), (2, None, 12)])
    amount = [{"name": "share", "dataType": {"decimal": {"precision": 9, "scale": 2}}}]
    rows = outcome(spark, "xlsx", path, schemaFields=amount)
    assert [str(share) for (share,) in rows] == ["0.10", "12.00"]


def test_a_declared_day_is_one_whether_it_is_a_date_or_a_text(spark, tmp_path):
    path = a_workbook(tmp_path / "a.xlsx", [(1, dt.date(2020, 1, 2), None), (2, "2020-01-03", 1)])
    rows = outcome(spark, "xlsx", path, schemaFields=declared("name date"))
    assert rows == [(dt.date(2020, 1, 2),), (dt.date(2020, 1, 3),)]


def test_an_archive_that_is_no_workbook_is_one_error(spark, tmp_path):
    with zipfile.ZipFile(tmp_path / "a.xlsx", "w") as out:
        out.writestr("notes.txt", "hello")
    error = outcome(spark, "xlsx", tmp_path / "a.xlsx")
    assert "it is no workbook: _rels/.rels is missing" in str(error)
