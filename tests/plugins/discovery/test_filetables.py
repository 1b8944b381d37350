"""Sources that are tables of files: of SQLite and of workbooks, beside each other."""

import datetime as dt
import sqlite3
from contextlib import closing

import duckdb
import openpyxl
import pyarrow as pa
import pytest
from pyarrow import orc

from snaploom.errors import ArgumentInvalid, SourceNotReadable
from snaploom.plugins.discovery.dates import LONG, STRING
from snaploom.plugins.discovery.discover import discover


def a_database(path, script):
    with closing(sqlite3.connect(path)) as opened, opened:
        opened.executescript(script)


def a_workbook(path, sheets, hidden=()):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        sheet.sheet_state = "hidden" if name in hidden else "visible"
        for row in rows:
            sheet.append(row)
    book.save(path)


def found(folder, **options):
    return discover([str(folder)], "file:///shop/", **options)


def left_out(discovery):
    return {each.what.rpartition("/")[2]: each.why for each in discovery.declarations.left_out}


def test_tables_are_joined_by_the_keys_that_a_file_declares(tmp_path):
    a_database(tmp_path / "shop.db", """
        CREATE TABLE place (nr INTEGER PRIMARY KEY, label);
        CREATE TABLE sale (id INTEGER PRIMARY KEY, goes_to REFERENCES place, day DATE);
        INSERT INTO place VALUES (1, 'a'), (2, 'b');
        INSERT INTO sale VALUES (7, 1, '2026-01-01'), (8, 1, '2026-01-01'), (9, 2, '2026-01-02');
        CREATE VIEW sales AS SELECT * FROM sale""")  # fmt: skip
    discovery = found(tmp_path)
    (join,) = discovery.declarations.relationships
    assert "foreign key sale(goes_to)" in join.head[0]
    assert "format: sqlite" in discovery.files["sources.yaml"]
    assert "- {name: day, dataType: {date: {}}}" in discovery.files["sources.yaml"]
    assert list(left_out(discovery)) == ["shop.db sales"]


def test_sheets_of_a_workbook_are_sources(tmp_path):
    ids = [("id", "name"), *((n, f"n{n}") for n in range(1, 21))]
    orders = [("order", "id"), *((100 + n, 1 + n % 20) for n in range(60))]
    a_workbook(tmp_path / "a b.xlsx", {"Customers": ids, "Sheet2": orders, "Old": ids}, ["Old"])
    discovery = found(tmp_path)
    assert {each.name for each in discovery.profiles} == {"Customers", "a_b_Sheet2"}
    assert "formatOptions: {sheet: Sheet2}" in discovery.files["sources.yaml"]
    assert left_out(discovery)["a b.xlsx Old"].startswith("hidden")


def test_a_sheet_of_its_own_has_the_name_of_its_file_and_the_days_of_its_files(tmp_path):
    for day in (1, 2, 3):
        rows = [
            ("id", "at", "amount"),
            (day, dt.datetime(2026, 1, day, 12), None if day < 3 else 1.5),
        ]
        a_workbook(tmp_path / f"sales_2026-01-0{day}.xlsx", {f"Export {day}": rows})
    discovery = found(tmp_path)
    (profile,) = discovery.profiles
    assert (profile.name, len(profile.times)) == ("sales", 3)
    text = discovery.files["sources.yaml"]
    assert "formatOptions" not in text
    assert "- {name: amount, dataType: {double: {}}}" in text


def test_numbers_of_which_a_fraction_loses_digits_are_texts_beside_fractions_of_other_days(
    tmp_path,
):
    for day, value in ((1, 2**53 + 1), (2, 1.5)):
        script = f"CREATE TABLE sales (id, amount); INSERT INTO sales VALUES (7, {value})"
        a_database(tmp_path / f"sales_2026-01-0{day}.sqlite", script)
    (profile,) = found(tmp_path).profiles
    assert [column.type for column in profile.columns] == [LONG, STRING]


def test_workbooks_and_databases_in_a_folder_of_an_odd_name_are_read(tmp_path):
    folder = tmp_path / "a%20b #1"
    folder.mkdir()
    a_workbook(folder / "a.xlsx", {"S": [("id", "x"), (1, 2)]})
    with duckdb.connect(str(folder / "b.duckdb")) as made:
        made.execute("CREATE TABLE t AS SELECT 7 AS id")
    assert {profile.name for profile in found(folder).profiles} == {"a", "t"}


def test_a_sheet_without_a_header_has_numbered_columns(tmp_path):
    rows = [(n, dt.date(2026, 1, n), f"x{n}") for n in range(1, 9)]
    a_workbook(tmp_path / "a.xlsx", {"Data": rows})
    discovery = found(tmp_path)
    (profile,) = discovery.profiles
    assert [column.name for column in profile.columns] == ["column_1", "column_2", "column_3"]
    assert profile.rows == len(rows)
    assert "header: 'false'" in discovery.files["sources.yaml"]


def test_a_text_among_numbers_of_a_sheet_is_noted(tmp_path):
    rows = [("id", "x"), (1, 2), (2, 3.5), ("Total", "n/a")]
    a_workbook(tmp_path / "a.xlsx", {"S": rows})
    assert found(tmp_path).profiles[0].notes == (
        "id is text for one row only: all other values are whole numbers",
        "x is text for n/a only: all other values are numbers",
    )


def test_a_title_above_the_header_is_refused_by_the_cell_beside_it(tmp_path):
    a_workbook(tmp_path / "a.xlsx", {"Bad": [("Report",), ("id", "x", "y"), (1, "a", 2)]})
    a_workbook(tmp_path / "b.xlsx", {"Good": [("id", "y"), (1, 2)]})
    assert "cell C2 is beside the header" in left_out(found(tmp_path))["a.xlsx"]


@pytest.mark.parametrize("errors", ["#N/A", "#DIV/0!", "#N/A #DIV/0!"])
def test_errors_of_cells_are_no_values_as_a_guess(tmp_path, errors):
    cells = [("id", "x"), (1, 2), *((n, text) for n, text in enumerate(errors.split(), 2)), (9, 4)]
    a_workbook(tmp_path / "a.xlsx", {"Results": cells})
    discovery = found(tmp_path)
    (profile,) = discovery.profiles
    assert profile.notes == (f"a guess: {errors} in cells is no value (nullValue)",)
    assert profile.column("x").nulls == len(errors.split())
    text = discovery.files["sources.yaml"]
    assert f"formatOptions: {{nullValue: '{errors}'}}" in text
    assert "- {name: x, dataType: {long: {}}}" in text


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.xlsx", b"PK\3\4 was cut", "it is no workbook, or was cut short"),
        ("a.xlsx", b"\xd0\xcf\x11\xe0" + bytes(99), "it has a password"),
        ("a.sqlite", b"SQLite format 3\0" + bytes(9), "it does not begin as a file of SQLite"),
        ("a.db", b"something else", "it does not begin as a file of SQLite"),
        ("~$a.xlsx", b"PK", "Excel's mark that the workbook is open"),
        ("a.xls", b"\xd0\xcf", "a workbook of Excel 2003"),
    ],
)
def test_what_is_no_such_file_is_left_out_with_the_reason(tmp_path, name, content, why):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceNotReadable) as error:
        found(tmp_path)
    assert f"{name}: " in str(error.value.found)
    assert why in str(error.value.found)


def test_a_table_of_duckdb_that_a_run_would_refuse_is_left_out(tmp_path):
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as opened:
        opened.execute("CREATE TABLE odd AS SELECT 1 AS id, now() AS changed")
        opened.execute("CREATE TABLE plain AS SELECT 1 AS id, uuid() AS code, TIME '10:30' AS at")
    discovery = found(tmp_path)
    (profile,) = discovery.profiles
    assert (profile.name, profile.notes) == (
        "plain",
        ("at is a time of day: it is read as one of 1970-01-01",),
    )
    assert "as changed has" in left_out(discovery)["shop.duckdb odd"]


def test_the_driver_of_sqlite_is_not_needed(tmp_path):
    with pytest.raises(ArgumentInvalid) as error:
        discover([f"jdbc:sqlite:{tmp_path}/a.db"], "file:///shop/")
    assert error.value.hint == "name the file itself, without jdbc:sqlite:"


def test_rows_beyond_the_bound_are_no_rows_that_were_read(tmp_path, monkeypatch):
    monkeypatch.setattr("snaploom.plugins.discovery.typedfiles.FILE_VALUES", 20)
    script = "".join(f"INSERT INTO t VALUES ({n}, {n});" for n in range(30))
    a_database(tmp_path / "a.db", f"CREATE TABLE t (id, x); {script}")
    a_workbook(tmp_path / "b.xlsx", {"S": [("id", "x"), *((n, n) for n in range(30))]})
    read = {each.name: (each.rows_read, each.rows) for each in found(tmp_path).profiles}
    assert read == {"t": (10, 30), "b": (10, 11)}


def test_one_file_may_be_named(tmp_path):
    a_database(tmp_path / "a.db", "CREATE TABLE t (id, x); INSERT INTO t VALUES (1, 2)")
    discovery = found(tmp_path / "a.db")
    assert (discovery.files_opened, [p.name for p in discovery.profiles]) == (1, ["t"])


def test_days_and_names_that_spark_reads_otherwise_in_orc_are_noted_or_refused(tmp_path):
    days = pa.array([dt.date(1500, 1, 1), dt.date(2020, 1, 1)])
    times = pa.array([dt.datetime(9999, 12, 31), None])
    table = pa.table({"id": [1, 2], "day": days, "until": times, "since": days[1:].take([0, 0])})
    orc.write_table(table, tmp_path / "a.orc")
    orc.write_table(table.rename_columns(["id", "a`b", "until", "since"]), tmp_path / "b.orc")
    discovery = found(tmp_path)
    (profile,) = discovery.profiles
    assert [note.partition(":")[0] for note in profile.notes] == [
        "day has days before 1582",
        "until has times before 1677 or after 2262, which were not looked at",
    ]
    assert left_out(discovery)["b.orc"].startswith("column a`b: Spark cuts names")
