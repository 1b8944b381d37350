"""CSV is read by RFC 4180, unless a source declares otherwise, and its values are unchanged."""

import csv
import io
import random
import re

import duckdb
import pandas
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql.types import DoubleType
from support.declared.sources import NOW, a_source, by_field, files, reader, snapshot_times

from snaploom.errors import SnaploomError, SourceNotReadable
from snaploom.sources.files.csv import (
    LinesOf,
    dialect_of,
    plain_record,
    unproved_files,
    with_facts,
)
from snaploom.sources.files.values import ValueChecks
from snaploom.spark.failures import translate

pytestmark = pytest.mark.spark

TRICKY = [
    ("1", 'Customer 990, the "great"'),
    ("2", "two\nlines"),
    ("3", 'two\r\nlines, "quoted"\r\n'),
    ("4", "old\rend"),
    ("5", 'a \\ and a \\" and \\'),
    ("6", '"'),
    ("7", '""'),
    ("8", "  blanks  "),
    ("9", "#no comment"),
    ("10", "é ü 漢字 😀"),
    ("11", "'single'"),
    ("12", "a;b\tc|d"),
]
"""Values that programs write with quotes, and that are easily read as others."""


PLAIN = [row for row in TRICKY if "\r" not in row[1]]
"""Without carriage returns, which several programs write without quotes where records end with LF,
and then read as the end of a record."""


def written(rows, **how):
    out = io.StringIO()
    csv.writer(out, **how).writerows(rows)
    return out.getvalue()


def rows_of(spark, path, **settings):
    return [
        tuple(row)
        for row in reader(spark, files("csv", path, **settings)).read(NOW).frame.collect()
    ]


def failure_of(spark, path, **settings):
    try:
        rows_of(spark, path, **settings)
    except (SnaploomError, Py4JError, PySparkException) as error:
        return translate(error)
    raise AssertionError("it was read")


HEADER = {"formatOptions": {"header": "true"}}


@pytest.mark.parametrize(
    ("rows", "ending", "quoting"),
    [
        (TRICKY, "\r\n", csv.QUOTE_MINIMAL),
        (TRICKY, "\r\n", csv.QUOTE_ALL),
        (TRICKY, "\n", csv.QUOTE_ALL),
        (PLAIN, "\n", csv.QUOTE_MINIMAL),
    ],
)
def test_what_python_wrote_is_read(spark, tmp_path, rows, ending, quoting):
    text = written([("id", "name"), *rows], lineterminator=ending, quoting=quoting)
    (tmp_path / "a b%20.csv").write_bytes(text.encode())

    assert sorted(rows_of(spark, tmp_path / "*", **HEADER)) == sorted(rows)


@pytest.mark.parametrize(
    "options",
    [
        {"sep": ";"},
        {"sep": "\t"},
        {"sep": "\\t"},
        {"quote": "'"},
        {"encoding": "UTF-16"},
        {"encoding": "utf-8"},
        {"charset": "UTF-16LE"},
        {"mode": "PERMISSIVE"},
    ],
)
def test_values_are_the_same_under_other_options(spark, tmp_path, options):
    how = {
        "delimiter": options.get("sep", ",").replace("\\t", "\t"),
        "quotechar": options.get("quote", '"'),
    }
    text = written(TRICKY, **how)
    (tmp_path / "a.csv").write_bytes(
        text.encode(options.get("encoding", options.get("charset", "utf-8")))
    )

    assert sorted(rows_of(spark, tmp_path / "*", formatOptions=options)) == sorted(TRICKY)


@pytest.mark.parametrize("encoding", ["UTF-16", "UTF-16BE", "UTF-32"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_wide_characters_on_plain_lines_are_read(spark, tmp_path, encoding, ending):
    rows = [("1", "Ada"), ("2", "é Ċ 漢")]
    text = written([("id", "name"), *rows], lineterminator=ending)
    (tmp_path / "a.csv").write_bytes(text.encode(encoding))
    options = {"header": "true", "encoding": encoding}

    assert rows_of(spark, tmp_path / "*", formatOptions=options) == rows


def test_empty_files_without_declared_columns_are_an_error_with_a_fix(spark, tmp_path):
    (tmp_path / "a.csv").write_bytes(b"")
    found = failure_of(spark, tmp_path / "*", **HEADER)
    assert "have no columns" in str(found)
    assert "declare schemaFields" in found.hint


def test_latin_1_is_read(spark, tmp_path):
    rows = [("é", "two\nlines"), ("ü §", 'a "b"')]
    (tmp_path / "a.csv").write_bytes(written(rows, delimiter="§").encode("latin-1"))
    options = {"encoding": "ISO-8859-1", "sep": "§"}

    assert rows_of(spark, tmp_path / "*", formatOptions=options) == rows


def test_what_pandas_duckdb_and_excel_wrote_is_read_together(spark, tmp_path):
    frame = pandas.DataFrame(PLAIN, columns=["id", "name"])
    frame.to_csv(tmp_path / "pandas.csv", index=False)
    duckdb.sql("SELECT * FROM frame").write_csv(str(tmp_path / "duckdb.csv"))
    # Excel and LibreOffice: CRLF after records, LF inside cells, and a byte-order mark.
    excel = written([("id", "name"), *PLAIN])
    (tmp_path / "excel.csv").write_bytes(excel.encode("utf-8-sig"))

    assert sorted(rows_of(spark, tmp_path / "*", **HEADER)) == sorted(PLAIN * 3)


def test_null_and_empty_text_of_duckdb_are_distinguished(spark, tmp_path):
    rows = [("a", None), ("", "b"), ("c", "")]
    values = duckdb.sql("SELECT * FROM (VALUES ('a', NULL), ('', 'b'), ('c', '')) t(x, y)")
    values.write_csv(str(tmp_path / "a.csv"), header=False)

    assert rows_of(spark, tmp_path / "*") == rows
    both = rows_of(spark, tmp_path / "*", formatOptions={"nullValue": ""})
    assert both == [("a", None), (None, "b"), ("c", None)]


def test_a_number_that_is_an_empty_text_is_refused_until_it_is_declared_null(spark, tmp_path):
    (tmp_path / "a.csv").write_text(written([(1, "a"), (None, "")], quoting=csv.QUOTE_ALL))
    fields = [
        {"name": "id", "dataType": {"long": {}}},
        {"name": "name", "dataType": {"string": {}}},
    ]

    error = failure_of(spark, tmp_path / "*", schemaFields=fields)
    assert 'nullValue: ""' in str(error.hint)

    options = {"nullValue": ""}
    rows = rows_of(spark, tmp_path / "*", schemaFields=fields, formatOptions=options)
    assert rows == [(1, "a"), (None, None)]


def test_what_postgresql_copied_is_read(spark, tmp_path, postgres):
    texts = [(int(key), value) for key, value in PLAIN] + [(13, "")]
    values = ", ".join("({}, $${}$$)".format(*row) for row in texts)
    query = f"SELECT * FROM (VALUES {values}, (14, NULL)) t"
    text = postgres.run(f"COPY ({query}) TO STDOUT (FORMAT csv)")
    (tmp_path / "a.csv").write_bytes(text.encode())
    fields = [
        {"name": "id", "dataType": {"long": {}}},
        {"name": "name", "dataType": {"string": {}}},
    ]

    assert rows_of(spark, tmp_path / "*", schemaFields=fields) == [*texts, (14, None)]


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ('1,a\n2,b"c\n', "ambiguous", "line 2"),
        ('1,"a\nb"\n2,"b"c\n', "ambiguous", "line 3"),
        ('1,"a" \n', "ambiguous", "line 1"),
        ('1, "a"\n', "ambiguous", "line 1"),
        ('1,"a\\"b"\n', "ambiguous", "line 1"),
        ('1,a\n2,"b\n3,c\n', "does not end", "line 2"),
        ("1,a\rb\n", "lone carriage return", "line 1"),
        ("1,a\r2,b\r", "lone carriage return", "line 1"),
        ('1,"a\nb"\r\n2,c\n3,d\r\n', "LF and with CRLF", "a.csv"),
        ("a\n\nb\n", "empty line", "line 2"),
    ],
)
def test_an_ambiguous_file_is_an_error_that_names_the_line(spark, tmp_path, text, message, place):
    (tmp_path / "a.csv").write_bytes(text.encode())

    error = failure_of(spark, tmp_path / "*")

    assert isinstance(error, SourceNotReadable)
    assert message in error.message
    assert place in str(error.found)
    assert "a.csv" in str(error.found)


@pytest.mark.parametrize(
    ("content", "options"),
    [
        ("é,a\n".encode("latin-1"), {}),
        ("é,a\n".encode("utf-16"), {}),
        (b"\x00\xd8a,\x00", {"encoding": "UTF-16LE"}),
        (b"\x81,a\n", {"encoding": "US-ASCII"}),
    ],
)
def test_a_file_of_another_character_set_is_an_error(spark, tmp_path, content, options):
    (tmp_path / "a.csv").write_bytes(content)

    error = failure_of(spark, tmp_path / "*", formatOptions=options)

    assert isinstance(error, SourceNotReadable)
    assert "encoding" in str(error.hint)


def test_rows_of_blanks_and_line_ends_of_both_kinds_are_kept(spark, tmp_path):
    (tmp_path / "tabs.csv").write_bytes(b"a\tb\n\t\nc\td\n\n")
    (tmp_path / "both.csv").write_bytes(b"a,b\r\nc,d\ne,f\r\n")
    (tmp_path / "one.csv").write_bytes(b'a\n""\n  \n')

    tabs = {"formatOptions": {"sep": "\t"}}
    assert rows_of(spark, tmp_path / "tabs.csv", **tabs) == [("a", "b"), (None, None), ("c", "d")]
    assert rows_of(spark, tmp_path / "both.csv") == [("a", "b"), ("c", "d"), ("e", "f")]
    assert rows_of(spark, tmp_path / "one.csv") == [("a",), ("",), ("  ",)]


@pytest.mark.parametrize(
    "how",
    [
        {"snapshot": by_field("part", "UNIX_SECONDS")},
        {"snapshot": by_field("at", "UNIX_SECONDS")},
    ],
)
def test_rows_of_files_of_all_forms_belong_to_their_file(spark, tmp_path, how):
    texts = {1: '1,"a\r\nb"\r\n', 2: '2,"c\nd"\n', 3: "3,e\n"}
    for part, text in texts.items():
        (tmp_path / f"part={part}.csv").write_bytes(text.encode())
    fields = [
        {"name": "at", "dataType": {"long": {}}},
        {"name": "name", "dataType": {"string": {}}},
    ]
    prefix = f"{tmp_path}/part={{part:LONG}}.csv"
    source = reader(
        spark,
        files("csv", tmp_path / "*", schemaFields=fields, sourceUriPrefix=prefix, **how),
    )

    assert snapshot_times(source) == [part * 10**9 for part in texts]
    read = source.read(2 * 10**9).frame.collect()
    assert [row["name"] for row in read] == ["c\nd"]


def test_rows_of_one_snapshot_keep_values_of_their_paths(spark, tmp_path):
    texts = {1: '"a\r\nb"\r\n', 2: '"c\nd"\n', 3: "e\n"}
    for part, text in texts.items():
        (tmp_path / f"part={part}.csv").write_bytes(text.encode())
    prefix = f"{tmp_path}/part={{part:LONG}}.csv"

    rows = rows_of(spark, tmp_path / "*", sourceUriPrefix=prefix)

    assert sorted(rows) == [("a\r\nb", 1), ("c\nd", 2), ("e", 3)]


def test_types_are_inferred_of_files_of_all_forms(spark, tmp_path):
    (tmp_path / "a.csv").write_text('n,name\n1,"two\nlines"\n')
    (tmp_path / "b.csv").write_text("n,name\n3000000000,one\n")
    options = {"header": "true", "inferSchema": "true"}

    rows = rows_of(spark, tmp_path / "*", formatOptions=options)

    assert sorted(rows) == [(1, "two\nlines"), (3_000_000_000, "one")]


def test_a_file_whose_every_line_is_a_record_is_read_in_pieces(spark, tmp_path):
    (tmp_path / "a.csv").write_text("".join(f'{i},"x, ""{i}"""\n' for i in range(20_000)))
    spark.conf.set("spark.sql.files.maxPartitionBytes", "64k")
    try:
        frame = reader(spark, files("csv", tmp_path / "*")).read(NOW).frame
        assert frame.rdd.getNumPartitions() > 1
        assert frame.distinct().count() == 20_000
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")


def test_places_of_lines_are_right_across_pieces(spark, tmp_path):
    rows = [(str(i), "two\nlines" if i % 3 else "one") for i in range(3_000)]
    (tmp_path / "a.csv").write_text(written(rows, lineterminator="\n"))
    (tmp_path / "b.csv").write_text(written(rows, lineterminator="\n") + '1,a"b\n')
    spark.conf.set("spark.sql.files.maxPartitionBytes", "4k")
    try:
        assert sorted(rows_of(spark, tmp_path / "a.csv")) == sorted(rows)
        assert "line 5001 of" in str(failure_of(spark, tmp_path / "b.csv").found)
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")


TEXT = st.text(st.sampled_from("ab ,;\"'\\\n\r\t#é😀"), min_size=1, max_size=8)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    rows=st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=30),
    ending=st.sampled_from(["\n", "\r\n"]),
)
def test_any_text_that_python_writes_is_read(spark, tmp_path_factory, rows, ending):
    # Python quotes no CR where records end with LF.
    quoting = csv.QUOTE_ALL if ending == "\n" else csv.QUOTE_MINIMAL
    path = tmp_path_factory.mktemp("any") / "a.csv"
    path.write_bytes(written(rows, lineterminator=ending, quoting=quoting).encode())

    assert rows_of(spark, path) == rows


# Lines that are plain records need no second look.

A_K = [
    {"name": "k", "dataType": {"string": {}}},
    {"name": "v", "dataType": {"double": {}}},
]
PIECES = [
    "a",
    "1",
    " ",
    ",",
    '"',
    '""',
    "\\",
    "\r",
    "\t",
    "\x00",
    "\x01",
    "é",
    "😀",
    "\ufffd",
    "a,b",
]


@pytest.mark.parametrize("options", [{}, {"sep": "\t"}, {"sep": "||"}, {"quote": ""}], ids=str)
def test_no_plain_record_has_a_fact_that_matters(spark, options):
    chance, dialect = random.Random(7), dialect_of(options)
    texts = ["".join(chance.choices(PIECES, k=chance.randint(0, 8))) for _ in range(4000)]
    columns = "file string, block long, place long, line string, inside boolean"
    values = [("f", 0, place, text, False) for place, text in enumerate(texts)]
    lines = spark.createDataFrame(values, columns)
    rows = with_facts(lines, dialect).select("line", "is_special", "is_garbled").collect()
    is_plain = re.compile(f"{plain_record(dialect)}\r?").fullmatch
    plain = [row for row in rows if is_plain(row.line) and max(row.line, default="") > " "]
    assert len(plain) > 500
    assert [row.line for row in plain if row.is_special or row.is_garbled] == []


FILES = {
    "plain": (b"k,v\nx,1.5\ny,\n", True), "quoted": (b'k,v\n"x, ""y""",1.5\n', True),
    "crlf": (b"k,v\r\nx,1.5\r\n", True), "digits": (b"k,v\nx,0.12345678901234567\n", True),
    "marked": (b"\xef\xbb\xbfk,v\nx,1\n", True), "empty": (b"", True),
    "infinite": (b"k,v\nx,1e400\n", False), "nearly": (b"k,v\nx,1.9999999\n", False),
    "twice": (b"k,v\nx,1\nk,v\n", False), "inside": (b'k,v\nx"y,1.5\n', False),
    "cr": (b"k,v\nx\ry,1\n", False), "blank": (b"k,v\n\nx,1\n", False),
    "fewer": (b"k,v\nx\n", False), "more": (b"k,v\nx,1,2\n", False),
    "latin": (b"k,v\n\xe9,1\n", False), "nul": (b"k,v\n\x00,1\n", False),
    "open": (b'k,v\n"x\ny",1\n', False),
}  # fmt: skip


def test_files_of_plain_lines_with_harmless_values_are_known(spark, tmp_path):
    for name, (content, _) in FILES.items():
        (tmp_path / name).write_bytes(content)
    declared = a_source(files("csv", "*", schemaFields=A_K)).spec.hdfs_like
    harmless = ValueChecks(spark, "DataSource/s", declared).harmless(DoubleType())
    some = LinesOf([str(tmp_path / name) for name in FILES], "k,v", [None, harmless])
    found = unproved_files(spark, [some], dialect_of({}), {})
    assert {url.rpartition("/")[2] for url in found} == {
        n for n, (_, is_) in FILES.items() if not is_
    }


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("k,v\nx,1.5\n", {"header": "true"}),
        ('"v","k"\r\n1.5,x\r\n', {"header": "true"}),
        ("k,v\nx,1.5\n", {"header": "true", "enforceSchema": "true"}),
        ("x;1.5\n", {"sep": ";"}),
    ],
)
def test_harmless_values_are_not_read_twice(spark, tmp_path, monkeypatch, text, options):
    monkeypatch.setattr(ValueChecks, "check", lambda *_: pytest.fail("read twice"))
    (tmp_path / "a.csv").write_bytes(text.encode())
    assert rows_of(spark, tmp_path / "*", formatOptions=options, schemaFields=A_K) == [("x", 1.5)]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_no_row_of_utf_16_is_lost_whatever_ends_it(spark, tmp_path, end):
    rows = ["id,name", "1,a", '2,"x \\"q\\" b"', ""]
    (tmp_path / "a.csv").write_bytes(end.join(rows).encode("utf-16"))
    options = {"header": "true", "encoding": "UTF-16", "escape": "\\"}
    options |= {"lineSep": end} if end == "\r" else {}
    assert rows_of(spark, tmp_path / "a.csv", formatOptions=options) == [
        ("1", "a"),
        ("2", 'x "q" b'),
    ]
