"""Tables of SQLite as batches of Arrow: values as its own library has them, or one sentence."""

import sqlite3
from contextlib import closing

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.storage.disks import cuts_that_pass

from snaploom.files import sqlite
from snaploom.files.sqlite import open_sqlite, tables_of
from snaploom.files.typedfiles import LocalFile


def made(path, script, *rows):
    """A file by a script, with rows of its table `t`."""
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as opened, opened:
        opened.create_function("evil", 1, lambda value: value, deterministic=True)
        opened.executescript(script)
        for row in rows:
            opened.execute(f"INSERT INTO t VALUES ({', '.join('?' * len(row))})", row)
    return path


def read(path, **options):
    return open_sqlite(LocalFile(str(path)), **options).read_all()


def fault(path, **options):
    with pytest.raises(ValueError, match=r".+") as error:
        read(path, **options)
    return str(error.value)


@pytest.mark.parametrize(
    ("declared", "values", "kind"),
    [
        ("INTEGER", [1, None, 1 << 62], "int64"),
        ("", [1, 2.5], "double"),
        ("", [(1 << 53) + 1, 2.5], "string"),
        ("INTEGER", ["a", 7], "string"),
        ("BLOB", [b"\0\xff"], "binary"),
        ("BOOLEAN", [0, 1, None], "bool"),
        ("BOOLEAN", [0, 2], "int64"),
        ("DATE", ["2020-02-29"], "date32[day]"),
        ("DATE", ["2020-02-30"], "string"),
        ("DATETIME", ["2020-01-02 03:04:05.25"], "timestamp[us]"),
        ("TIMESTAMP", [1577934245], "int64"),
        ("INTEGER", [None], "null"),
    ],
)
def test_a_column_has_the_type_that_holds_its_values(tmp_path, declared, values, kind):
    table = read(made(tmp_path / "a.db", f"CREATE TABLE t (v {declared})", *([v] for v in values)))
    assert str(table.schema.field("v").type) == kind
    assert len(table) == len(values)


VALUES = st.one_of(st.none(), st.integers(-(1 << 63), (1 << 63) - 1), st.text("aü'\"\n\0"),
                   st.floats(allow_nan=False))  # fmt: skip


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(VALUES, VALUES), max_size=30), st.booleans())
def test_values_are_those_of_its_own_library(tmp_path_factory, rows, is_utf_16):
    encoding = "PRAGMA encoding = 'UTF-16le';" * is_utf_16
    path = tmp_path_factory.mktemp("drawn") / "a.db"
    made(path, f"{encoding} CREATE TABLE t (a, b REAL)", *rows)
    with closing(sqlite3.connect(path)) as opened:
        there = opened.execute("SELECT a, b FROM t").fetchall()
    text = pa.schema([("a", pa.string()), ("b", pa.string())])
    found = [tuple(row.values()) for row in read(path, schema=text).to_pylist()]
    assert found == [tuple(None if v is None else str(v) for v in row) for row in there]


def test_keys_are_those_that_the_file_declares(tmp_path):
    made(tmp_path / "a.db", """
        CREATE TABLE p (x, y, PRIMARY KEY (y, x)) WITHOUT ROWID;
        CREATE TABLE c (id INTEGER PRIMARY KEY, a, b, FOREIGN KEY (a, b) REFERENCES P);
        CREATE VIEW v AS SELECT * FROM p""")  # fmt: skip
    found = {each.name: each for each in tables_of(LocalFile(str(tmp_path / "a.db")))}
    (key,) = found["c"].foreign_keys
    assert found["p"].primary_key == ("y", "x")
    assert (key.columns, key.parent, key.parent_columns) == (("a", "b"), "p", ("y", "x"))
    assert found["v"].why_not


def test_changes_beside_the_file_are_not_passed_over(tmp_path):
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as opened, opened:
        opened.executescript(
            "PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1)"
        )
        assert "it has changes in a.db-wal that are not in the file yet" in fault(path)
    assert read(path).to_pylist() == [{"a": 1}]
    assert [each.name for each in tmp_path.iterdir()] == ["a.db"]


@pytest.mark.parametrize("expression", ["evil(1)", "zeroblob(1000000000)"])
def test_what_a_table_computes_is_bounded(tmp_path, expression):
    path = made(tmp_path / "a.db", f"CREATE TABLE t (a, b AS ({expression}))")
    with closing(sqlite3.connect(path)) as opened, opened:
        opened.create_function("evil", 1, lambda value: value, deterministic=True)
        opened.execute("INSERT INTO t (a) VALUES (1)")
    assert "SQLite refuses it" in fault(path)


def test_a_query_of_a_view_is_not_run(tmp_path):
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT * FROM n"
    path = made(tmp_path / "a.db", f"CREATE TABLE t (a); CREATE VIEW v AS {endless}")
    assert fault(path, table="v") == "there is no table v; its tables are t"
    assert len(read(path)) == 0


def test_a_schema_that_is_none_is_one_sentence(tmp_path):
    path = made(tmp_path / "a.db", "CREATE TABLE t (a); PRAGMA writable_schema = ON;"
                "UPDATE sqlite_master SET sql = 'CREATE TABLE t (a DEFAULT (evil(' ")  # fmt: skip
    assert "SQLite refuses it: malformed database schema" in fault(path)


def test_pages_that_lead_in_a_circle_end(tmp_path, monkeypatch):
    path = made(tmp_path / "a.db", "CREATE TABLE t (a)", *([n] for n in range(5000)))
    monkeypatch.setattr(sqlite, "_SMALLEST_ROW", 100)  # as if pages had been read again and again
    assert fault(path) == "t has more rows than the file has room for"


def test_a_huge_value_is_refused(tmp_path, monkeypatch):
    path = made(tmp_path / "a.db", "CREATE TABLE t (a)", ["x" * 2000])
    monkeypatch.setattr(sqlite, "_LARGEST_VALUE", 1000)
    assert fault(path) == "SQLite refuses it: string or blob too big"


def test_a_file_of_a_store_is_read_from_a_copy_that_goes(tmp_path, monkeypatch):
    content = made(tmp_path / "a.db", "CREATE TABLE t (a)", [1]).read_bytes()
    (tmp_path / "copies").mkdir()
    monkeypatch.setattr(sqlite.tempfile, "tempdir", str(tmp_path / "copies"))
    assert open_sqlite(pa.BufferReader(content)).read_all().to_pylist() == [{"a": 1}]
    assert list((tmp_path / "copies").iterdir()) == []


def test_no_row_of_a_cut_file_is_lost(tmp_path):
    path = made(tmp_path / "a.db", "PRAGMA page_size = 512; CREATE TABLE t (a)",
                *([n] for n in range(300)))  # fmt: skip
    assert cuts_that_pass(open_sqlite, path.read_bytes()) == []


def test_other_tables_are_not_looked_at(tmp_path):
    path = made(tmp_path / "a.db", "CREATE TABLE t (a); CREATE TABLE u (a)", [1])
    assert fault(path) == "the option `table` names none; its tables are t, u"
    assert read(path, table="T").to_pylist() == [{"a": 1}]
    assert fault(path, table="x") == "there is no table x; its tables are t, u"
