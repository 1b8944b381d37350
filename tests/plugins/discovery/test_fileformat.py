"""How text is written, by its first bytes; and the types that values fit."""

import bz2
import csv
import gzip
import io
from contextlib import suppress
from datetime import date, timedelta
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import feather

from snaploom.errors import SourceNotReadable
from snaploom.plugins.discovery import samples
from snaploom.plugins.discovery.dates import DATE, DOUBLE, LONG, STRING, TIMESTAMP, UNSIGNED
from snaploom.plugins.discovery.discover import discover
from snaploom.plugins.discovery.foundfiles import HEAD_BYTES, NotRecognised
from snaploom.plugins.discovery.profiles import SourceProfile
from snaploom.plugins.discovery.scratch import inclusion
from snaploom.plugins.discovery.textforms import csv_format, json_format

_TEXTS = st.text(
    st.characters(codec="utf-8", exclude_characters="\0\r", categories=["L", "P", "Z"])
)


@pytest.mark.parametrize(
    ("content", "options", "columns"),
    [
        (b"id,name\n1,a\n", {"header": "true"}, ("id", "name")),
        (b"\xef\xbb\xbfid;name\n1;a,b\n", {"header": "true", "sep": ";"}, ("id", "name")),
        (b"id\tname\n1\ta\n", {"header": "true", "sep": "\\t"}, ("id", "name")),
        (("id|straße\n" + "1|ä\n" * 9).encode("latin-1"),
         {"header": "true", "sep": "|", "encoding": "ISO-8859-1"}, ("id", "straße")),
        ("id,name\n1,a\n".encode("utf-16"),
         {"header": "true", "encoding": "UTF-16"}, ("id", "name")),
        (b"id;name;\n1;a;\n", {"header": "true", "sep": ";"}, ("id", "name", "_c2")),
        (b"id,name,,\n1,a,,\n2,b,,\n", {"header": "true"}, ("id", "name", "_c2", "_c3")),
        (b",id,name\n0,1,a\n", {"header": "true"}, ("_c0", "id", "name")),
        (b"id,name,ID\n1,a,2\n", {"header": "true"}, ("id0", "name", "ID2")),
        (b"1,a\n2,b\n", {"header": "false"}, ("column_1", "column_2")),
        (b'id,text\n1,"a ""b"", c\nd"\n', {"header": "true"}, ("id", "text")),
        (b'id,text\n1,"a \\"b\\", c"\n', {"header": "true", "escape": "\\"}, ("id", "text")),
    ],
)  # fmt: skip
def test_csv_is_recognised(content, options, columns):
    found = csv_format(content, is_whole=True)
    assert found.options == options
    assert found.columns == columns


@given(st.lists(st.tuples(_TEXTS, _TEXTS, st.integers()), min_size=2), st.sampled_from(",;|\t"))
def test_what_python_writes_as_csv_is_recognised(rows, separator):
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=separator, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerows([("first", "second", "third"), *rows])
    found = csv_format(text.getvalue().encode(), is_whole=True)
    assert (found.separator, found.columns) == (separator, ("first", "second", "third"))


@pytest.mark.parametrize("content", [b"\0\1\2", b" \n", b"a,b\n1\n1,2,3\n4,5,6,7\n8\n"])
def test_other_bytes_are_not_csv(content: bytes) -> None:
    with pytest.raises(NotRecognised):
        csv_format(content, is_whole=True)


def test_lines_and_documents_of_json_are_distinguished() -> None:
    assert json_format(b'{"a": 1}\n{"a": 2}\n').is_lines
    assert not json_format(b'[{"a": 1},\n {"a": 2}]').is_lines
    assert not json_format(b'{\n  "a": 1\n}\n').is_lines
    with pytest.raises(NotRecognised):
        json_format(b"a,b\n")


def profile(folder: Path, **files: str) -> SourceProfile:
    """The profile of the only source of some files, whose ending is behind a `__`."""
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(content, "utf-8")
    (found,) = discover([str(folder)], "file:///model/").profiles
    return found


@pytest.mark.parametrize(
    ("values", "kind", "null"),
    [
        (["1", "-20", None], LONG, None),
        (["9223372036854775807"], LONG, None),
        (["18446744073709551615", "7"], UNSIGNED, None),
        (["007", "8"], STRING, None),
        (["-0"], DOUBLE, None),
        (["1.5", "2"], DOUBLE, None),
        (["0.12345678901234567", "2"], DOUBLE, None),
        (["1e-3", "2.5E10", ".5"], DOUBLE, None),
        (["9007199254740993", "1.5"], STRING, None),
        (["1e999"], STRING, None),
        (["1e-400", "1.5"], STRING, None),
        (["4E6", "1E5"], STRING, None),
        (["1e5", "1E+05", "1.0E5"], DOUBLE, None),
        (["1,5", "2,0"], STRING, None),
        (["2026-02-03"], DATE, None),
        (["2026-02-03", "2026-02-30"], STRING, None),
        (["2026-02-03T10:00:00Z", "2026-02-03 10:00:00"], TIMESTAMP, None),
        (["2026-02-03T10:00:00Z", "2026-02-30 10:00:00"], STRING, None),
        (["2026-02-03T10:00:00Z", "2026-02-03T24:00:00Z"], STRING, None),
        (["NA", "3"], LONG, "NA"),
        (["", "3"], LONG, ""),
        (["NA", "3", "\\N"], LONG, "NA \\N"),
        (["2026-02-03", "open", "2026-02-04"], STRING, None),
        (["n/a", "3", "-"], LONG, "- n/a"),
        (["NA"], STRING, None),
        (["NA", "\\N"], STRING, "\\N"),
        ([None, None], STRING, None),
        (["9" * 21], STRING, None),
    ],
)
def test_types_hold_every_value(tmp_path, values, kind, null):
    rows = "".join("7," + ("" if v is None else f'"{v}"') + "\n" for v in values)
    found = profile(tmp_path, a__csv="n,v\n" + rows)
    assert found.column("v").type == kind
    assert found.null_texts == ({} if null is None else {"v": tuple(null.split(" "))})
    is_other = kind == STRING and "2026-02-03" in values
    assert (found.notes[-1:] == ("v is text for one row only: all other values are dates",)) == (
        is_other and len(values) > 2
    )
    assert found.column("v").nulls == (0 if null is None else len(null.split(" "))) + (
        values.count(None)
    )


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        (["1", "null"], {"long": {}}),
        (["1", "2.5"], {"double": {}}),
        (["9007199254740993", "2.5"], {"string": {}}),
        (["18446744073709551615"], {"decimal": {"precision": 20, "scale": 0}}),
        ([str(2**70)], {"string": {}}),
        (['"2026-02-03"', '"2026-02-30"'], {"string": {}}),
        (['"2026-02-03"'], {"date": {}}),
        (['{"a": [1]}', '{"b": "x"}'], {"struct": {"fields": [
            {"name": "a", "dataType": {"array": {"elementType": {"long": {}}}}},
            {"name": "b", "dataType": {"string": {}}}]}}),
        (['{"ada": 1}', '{"bob": 2, "eve": 1}', '{"carl": 3}'],
         {"map": {"keyType": {"string": {}}, "valueType": {"long": {}}}}),
        (["[]", "[[1.5], null]"],
         {"array": {"elementType": {"array": {"elementType": {"double": {}}}}}}),
        (['{"a": {"x/~y": 1}}', '{"a": {"x/~y": 2, "\'\\"": true}}'],
         {"struct": {"fields": [{"name": "a", "dataType": {"struct": {"fields": [
             {"name": "x/~y", "dataType": {"long": {}}},
             {"name": "'\"", "dataType": {"boolean": {}}}]}}}]}}),
    ],
)  # fmt: skip
def test_types_of_json_are_those_of_all_values(tmp_path, lines, kind):
    found = profile(tmp_path, a__json="".join(f'{{"n": 1, "v": {line}}}\n' for line in lines))
    dumped = found.column("v").type.data_type.model_dump(
        mode="json", by_alias=True, exclude_none=True, exclude_unset=True
    )
    assert dumped == kind


def test_json_is_utf_8_and_of_one_form_in_all_days(tmp_path: Path) -> None:
    days = {"1": '{"v": 1}\n', "2": '[{"v": "x"},\n{"v": 2}]', "3": '{\n"v": 3.5}'}
    found = profile(tmp_path, **{f"a_2026-01-0{n}__json": text for n, text in days.items()})
    assert (found.rows, found.column("v").type) == (4, STRING)
    (tmp_path / "a_2026-01-04.json").write_text('{"v": "é"}\n', "latin-1")
    with pytest.raises(SourceNotReadable, match="is not UTF-8, as JSON is"):
        discover([str(tmp_path)], "file:///model/")


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [(pa.array([1]), pa.array([1.5]), DOUBLE), (pa.array([1]), pa.array(["x"]), STRING),
     (pa.nulls(1), pa.array(["x"]), STRING), (pa.array([date.max]), pa.array(["x"]), STRING)],
)  # fmt: skip
def test_a_column_of_several_types_in_its_days_is_read_as_one(tmp_path, first, second, expected):
    for day, values in ((1, first), (2, second)):
        pq.write_table(pa.table({"id": [day], "v": values}), tmp_path / f"a_2026-01-0{day}.parquet")
    found = discover([str(tmp_path)], "file:///m/")
    assert found.profiles[0].column("v").type == expected
    assert "CAST(CAST(value AS string) AS " in found.files["sources.yaml"]
    for file in tmp_path.iterdir():
        file.rename(str(file).replace("a_2026-01-", "part-"))
    with pytest.raises(SourceNotReadable, match=r"column v is .* in part-01.parquet"):
        discover([str(tmp_path)], "file:///m/")


@pytest.mark.parametrize(
    "kind",
    [pa.list_(pa.timestamp("ns")), pa.time64("us"), pa.float16(), pa.decimal256(50, 2), pa.uuid()],
)
def test_a_column_for_which_spark_has_no_type_is_named(tmp_path: Path, kind: pa.DataType) -> None:
    pq.write_table(pa.table({"id": [1], "v": pa.nulls(1, kind)}), tmp_path / "a.parquet")
    with pytest.raises(SourceNotReadable, match=r"column v\S*: Spark has no type for"):
        discover([str(tmp_path)], "file:///m/")


def test_what_only_spark_does_not_read_is_named_beside_its_column(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet", compression="brotli")
    feather.write_feather(
        pa.table({"v": pa.nulls(1, pa.decimal128(5, -2))}), tmp_path / "b.feather"
    )
    time = {"name": "t", "type": {"type": "long", "logicalType": "time-micros"}}
    with (tmp_path / "c.avro").open("wb") as file:
        fastavro.writer(file, {"type": "record", "name": "C", "fields": [time]}, [{"t": 1}])
    with pytest.raises(SourceNotReadable) as error:
        discover([str(tmp_path)], "file:///m/")
    for why in (
        "id: Spark has no codec",
        "v: Spark has no type for dec",
        "times of day (time-micros)",
    ):
        assert why in str(error.value.found)


def test_columns_that_differ_in_capitals_are_named(tmp_path: Path) -> None:
    for day, name in enumerate(("id", "ID"), 1):
        pq.write_table(pa.table({name: [day], "v": [1]}), tmp_path / f"a_2026-01-0{day}.parquet")
    with pytest.raises(SourceNotReadable, match="capitals: id, ID: write one"):
        discover([str(tmp_path)], "file:///m/")


def test_a_length_of_time_is_remarked_as_the_number_that_it_is(tmp_path: Path) -> None:
    lengths = pa.table({"id": [1], "v": pa.array([timedelta(1)])})
    pq.write_table(lengths, tmp_path / "a.parquet")
    (found,) = discover([str(tmp_path)], "file:///m/").profiles
    assert found.notes == ("v is a length of time: its number of us",)


@pytest.mark.parametrize(("digits", "number"), [(999, 1), (0, 0)])
def test_times_finer_than_those_of_spark_are_noted(tmp_path: Path, digits, number) -> None:
    times = pa.array([5_000, 7_000 + digits, None], pa.timestamp("ns", "UTC"))
    pq.write_table(pa.table({"id": [1, 2, 3], "v": times}), tmp_path / "a.parquet")
    (found,) = discover([str(tmp_path)], "file:///m/").profiles
    assert found.column("v").type == TIMESTAMP
    assert found.notes == ("v has times finer than microseconds, which are cut",) * number


@pytest.mark.parametrize(
    "text", ["[" * 100_000 + "]" * 100_000, '{"a":' * 9_000 + "1" + "}" * 9_000]
)
def test_values_that_are_nested_too_deeply_are_left_out(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(f'{{"v": {text}}}\n')
    with pytest.raises(SourceNotReadable, match="nested too deeply"):
        discover([str(tmp_path)], "file:///model/")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('{"a": 1}\n' * 200_000 + '{"a": 2, "late": "x"}\n', ["a", "late"]),
        ('{"b": 1, "a": 2}\n{"a": 1, "b": 2}\n' * 50, ["b", "a"]),
    ],
)
def test_keys_are_columns_in_the_order_of_the_records(tmp_path: Path, text, names) -> None:
    assert [column.name for column in profile(tmp_path, a__json=text).columns] == names


def test_texts_whose_first_lines_differ_have_no_header(tmp_path: Path) -> None:
    files = {
        "a_2026_01_01__csv": "Ada,Paris\nBob,Rome\n",
        "a_2026_01_02__csv": "Eve,Bern\nIda,Wien\n",
    }
    found = profile(tmp_path, **files)
    assert found.format_options["header"] == "false"
    assert found.rows == 4


@pytest.mark.parametrize(
    ("lines", "quote"),
    [
        ('1,Soka"an\n2,5" pipe\n', {"quote": ""}),
        ('1,"a ""b"""\n2,"c\n""d"", e"\n3,""\n', {}),
        ("1,a\n2,b\n", {}),
    ],
)
def test_quotes_of_which_none_encloses_a_value_are_characters(tmp_path, lines, quote):
    found = profile(tmp_path, a__csv="id,name\n" + lines)
    assert found.format_options == {"header": "true", **quote}


@pytest.mark.parametrize(
    ("lines", "seen"),
    [
        ("a:b\n1:2\n", ["':'"]),
        ("a b c\n1 2 3\n", ["' '"]),
        ("a b\nAda Byron\n", []),
        ("a:b\n1\n", []),
    ],
)
def test_another_separator_is_remarked_as_a_guess(tmp_path, lines, seen):
    notes = profile(tmp_path, a__csv=lines).notes
    assert [
        each.split("though ")[1].split(" divides")[0] for each in notes if "though" in each
    ] == seen


def test_packed_utf_16_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress("id,name\n1,ä\n".encode("utf-16")))
    with pytest.raises(SourceNotReadable, match="packed text in UTF-16"):
        discover([str(tmp_path)], "file:///m/")


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ('id,name\r1,"a\nb"\r', {"lineSep": "\r", "multiLine": "true"}),
        ('id,name\n1,"a\nb \\"c\\" d"\n', {"escape": "\\", "lineSep": "\n", "multiLine": "true"}),
        ('id,name\r\n1,"\r\n\\"c\\" d"\r\n',
         {"escape": "\\", "lineSep": "\r\n", "multiLine": "true"}),
        ('id,"na\nme"\r\n1,"a\nb"\r\n', {}),
    ],
)  # fmt: skip
def test_lines_in_values_are_declared_where_no_run_finds_them_out(tmp_path, text, options):
    (tmp_path / "a.csv").write_text(text, newline="")
    (found,) = discover([str(tmp_path)], "file:///m/").profiles
    assert found.format_options == {"header": "true", **options}
    assert found.columns[1].name.replace("\n", "") == "name"


@pytest.mark.parametrize(
    ("values", "notes"),
    [(["1.234", "999"], ["a guess: the points of v are decimal points, as of 1.234 below 2"]),
     (["1.234", "0.5"], []), (["1.234", "12345"], []), (["3", "NA"], [])],
)  # fmt: skip
def test_what_values_may_mean_as_well_is_remarked(tmp_path, values, notes):
    found = profile(tmp_path, a__csv="n,v\n" + "".join(f"7,{value}\n" for value in values))
    assert list(found.notes) == notes


def test_quotes_behind_a_carriage_return_enclose_values(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id,name\r"1","a ""b"""\r"2","c"\r', newline="")
    (found,) = discover([str(tmp_path)], "file:///m/").profiles
    assert (found.rows, found.format_options) == (2, {"header": "true", "lineSep": "\r"})


@pytest.mark.parametrize(("name", "kind"), [("region_code", STRING), ("price", DOUBLE)])
def test_codes_with_a_point_keep_their_digits(tmp_path, name, kind):
    found = profile(tmp_path, a__csv=f"n,{name}\n1,11.01\n2,11.10\n")
    assert found.column(name).type == kind


def test_codes_in_all_lines_leave_no_header(tmp_path: Path) -> None:
    found = profile(tmp_path, a__csv="S001,hall\nS002,yard\nS003,roof\nS004,cellar\n")
    assert (found.rows, [column.name for column in found.columns]) == (4, ["column_1", "column_2"])


def test_indonesia_leaves_a_column_of_codes_its_name(tmp_path: Path) -> None:
    found = profile(tmp_path, a__csv="ID,Name\nAE,Emirates\nID,Indonesia\n")
    assert [column.name for column in found.columns] == ["ID", "Name"]


def test_numbers_for_names_mean_nothing_elsewhere(tmp_path: Path) -> None:
    for name, most in (("a", 60), ("b", 40)):
        (tmp_path / f"{name}.csv").write_text("".join(f"{n},{n % 9}\n" for n in range(1, most)))
    assert not discover([str(tmp_path)], "file:///m/").relationships.declared


@pytest.mark.parametrize(
    ("header", "column", "is_guess"),
    [
        ("Ada,Paris", ["Rome", "Vienna", *["Bern"] * 9], True),
        ("name,country", ["DE", "FR"], True),
        ("name,country", [f"{letter}X" for letter in "ABCDEFGHIJ"], False),
        ("Ada,Yes", ["No"] * 20, True),
        ("name,item_id", ["book", "pen"], False),
        ("name,item_id", ["book", "page_id"], True),
        (",name", ["Ada", "Bob"], True),
    ],
)
def test_a_header_of_one_file_of_texts_is_a_guess_unless_it_cannot_be_a_value(
    tmp_path: Path, header, column, is_guess
) -> None:
    records = "".join(f"{'b' * n},{value}\n" for n, value in enumerate(column, start=1))
    found = profile(tmp_path, a__csv=f"{header}\n{records}")
    assert found.format_options["header"] == "true"
    assert any("a guess" in note for note in found.notes) == is_guess


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("Export of today\nid,name,city\n1,a,b\n2,c,d\n", "line 1 has 1 value "),
        ("sep=;\nid;name\n1;a\n", "line 1 names the separator for Excel"),
        ("Sales of May;\nid;name\n1;a\n2;\n", "line 2 has the names of columns"),
        ("Sales;;\n;;\nid;name;x\nA;b;c\nB;;\n", "line 3 has the names of columns"),
        ('"sep=,"\nid,name,city\n1,a,b\n', "line 1 names the separator for Excel"),
        ("id,name\n1,a,b\n2,c,d\n", "line 1 has 2 values"),
        ("id,name,n,m\n1,a,2\n2,c,3\n", "line 1 has 4 values"),
        ("id,name,n\n" + "1,a,2\n" * 300 + "Total,600\n", "line 302 has 2 values"),
        ("id,name,n\n" + "1,a,2\n" * 300 + "1,a,2,3\n", "line 302 has 4 values"),
        ('id,name\n1,"a, b"\n2,Soka"an\n', "line 3: a quote stands inside"),
        ('id,name\n1,Soka"an\n2,"c\nd"\n', "line 2: a quote stands inside"),
        ('id,name\n1,"a" \n', "line 2: a quote stands inside a value that is not in quotes, or a"),
        ('id,name\n1, "a"\n', "line 2: a quote stands inside"),
        ('"id":"name"\n1:2\n', "line 1: a quote stands inside"),
        ('id,name\n1,"a"b\n', "line 2: a value in quotes does not end, or has text behind"),
        ("name\na\n\nb\n", "one column, with an empty line"),
    ],
)
def test_a_line_that_no_run_would_read_is_named(tmp_path: Path, text: str, place: str) -> None:
    (tmp_path / "b.csv").write_text("id,name\n1,a\n")
    (tmp_path / "a.csv").write_text(text)
    found = discover([str(tmp_path)], "file:///model/")
    assert [profile.name for profile in found.profiles] == ["b"]
    assert [each.why for each in found.declarations.left_out if place in each.why]


@pytest.mark.parametrize(
    ("second", "place"),
    [("3,x\n4,y\n", "02.csv, line 1 has no name"), ("id;n\n3;x\n", "02.csv, line 1 has no name"),
     ("id,n\n3,é\n", "02.csv is ISO-8859-1: write all"),
     ("id,n\n3,Ã¼Ã¶Ã¤é\n", "1 of its characters are not UTF-8, as others are"),
     ("id,n\n3,\x80 5\n", "the byte 0x80, as of € in windows-1252"),
     ("id,n\n" + "3,é\n" * HEAD_BYTES + "3,\x93x\x94\n", "the byte 0x93, as of “")],
)  # fmt: skip
def test_a_day_that_no_run_would_read_with_the_others_is_named(tmp_path, second, place):
    (tmp_path / "b.csv").write_text("id,name\n1,a\n")
    (tmp_path / "a_2026-01-01.csv").write_text("id,n\n1,ü\n")
    (tmp_path / "a_2026-01-02.csv").write_bytes(second.encode("latin-1"))
    found = discover([str(tmp_path)], "file:///model/")
    assert [each.why for each in found.declarations.left_out if place in each.why]


def test_ascii_is_no_utf_16(tmp_path: Path) -> None:
    (tmp_path / "a_2026-01-01.csv").write_text("id,n\n1,x\n")
    (tmp_path / "a_2026-01-02.csv").write_text("id,n\n2,y\n", "utf-16")
    with pytest.raises(SourceNotReadable, match="write all files in one character set"):
        discover([str(tmp_path)], "file:///model/")


def test_one_file_behind_ascii_decides_the_character_set(tmp_path: Path) -> None:
    (tmp_path / "a_2026-01-01.csv").write_text("id,n\n1,x\n")
    late = b"id,n\n" + b"2,y\n" * (HEAD_BYTES // 4) + b"3,\xe9\n"
    (tmp_path / "a_2026-01-02.csv").write_bytes(late)
    (found,) = discover([str(tmp_path)], "file:///model/").profiles
    assert found.format_options == {"header": "true", "encoding": "ISO-8859-1"}
    assert found.rows == HEAD_BYTES // 4 + 2


def test_a_last_line_that_sums_up_is_declared_so_that_it_can_be_read(tmp_path: Path) -> None:
    found = profile(tmp_path, a__csv="id;n;a;b\n1;3;x;y\n2;4;x;y\nTotal;7;;\n")
    assert (found.column("id").type, found.column("n").type) == (STRING, LONG)


def zstd(content: bytes) -> bytes:
    packed = pa.BufferOutputStream()
    with pa.CompressedOutputStream(packed, "zstd") as stream:
        stream.write(content)
    return packed.getvalue().to_pybytes()


@pytest.mark.parametrize("ending", ["gz", "bz2", "zst"])
def test_text_that_unpacks_to_too_much_is_read_in_part(tmp_path, monkeypatch, ending):
    monkeypatch.setattr(samples, "SOURCE_BYTES", 100_000)
    packed = {"gz": gzip.compress, "bz2": bz2.compress, "zst": zstd}[ending](
        b"id,name\n" + b"1,a\n" * 10**6
    )
    (tmp_path / f"a.csv.{ending}").write_bytes(packed)
    (found,) = discover([str(tmp_path)], "file:///model/").profiles
    assert found.rows_read < 30_000
    assert found.rows > found.rows_read


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_of_many_files_some_at_equal_distances_are_read(tmp_path, monkeypatch, ending):
    for day in range(1, 29):
        table = pa.table({"id": list(range(1000 * day, 1000 * day + 500)), "day": [day] * 500})
        path = tmp_path / f"a-2026-01-{day:02d}.{ending}"
        (pacsv.write_csv if ending == "csv" else pq.write_table)(table, path)
    size = sum(path.stat().st_size for path in tmp_path.iterdir())
    monkeypatch.setattr(samples, "SOURCE_BYTES", size // 4)
    (found,) = discover([str(tmp_path)], "file:///model/").profiles
    day = found.column("day").values
    assert (found.rows_read, found.snapshots_read, day.distinct) == (3500, 7, 7)
    assert (found.column("day").low, found.column("day").high) == (1, 28)
    assert found.rows == pytest.approx(14_000, rel=0.02)
    assert inclusion(day, day).basis == "a part, 3,500 rows"


def test_small_daily_files_are_all_read(tmp_path: Path) -> None:
    customers = [f"{n},n{n}" for n in range(500)]
    (tmp_path / "customers.csv").write_text("customer_id,name\n" + "\n".join(customers))
    for day in range(412):
        rows = "".join(f"{5 * day + n},{(37 * day + 11 * n) % 500},1.5\n" for n in range(5))
        stem = date(2025, 1, 1) + timedelta(days=day)
        (tmp_path / f"orders_{stem}.csv").write_text("order_id,customer_id,amount\n" + rows)
    found = discover([str(tmp_path)], "file:///model/")
    orders = next(profile for profile in found.profiles if profile.name == "orders")
    assert (orders.rows_read, orders.snapshots_read) == (2060, 412)
    (one,) = found.relationships.declared
    assert (one.parent, one.included.share, one.included.basis) == ("customers", 1.0, "all rows")


def test_keys_of_64_bits_without_a_sign_are_compared(tmp_path: Path) -> None:
    ids = [2**64 - 1 - n for n in range(50)]
    pq.write_table(
        pa.table({"device_id": pa.array(ids, pa.uint64()), "site": ["a"] * 50}),
        tmp_path / "devices.parquet",
    )
    rows = "".join(f"{n},{ids[n % 50]}\n" for n in range(200))
    (tmp_path / "alerts.csv").write_text("alert_id,device_id\n" + rows)
    (one,) = discover([str(tmp_path)], "file:///model/").relationships.declared
    assert (one.child, one.parent, one.included.share) == ("alerts", "devices", 1.0)


@pytest.mark.parametrize(
    ("text", "is_by_key"),
    [
        ('{"a": {"x": 1, "y": 2}, "b": {"x": 3}}', True),
        ('{"a": [{"x": 1}, {"x": 2}], "b": [{"x": 3}]}', True),
        ('{"a": {"x": 1}, "b": {"y": 3}, "c": {"z": 4}}', False),
        ('{"a": {"x": 1}, "b": {"x": 3}, "c": 4}', False),
        ('{"a": {"x": 1}, "b": {"x": 3}}\n' * 2, False),
    ],
)
def test_an_object_with_records_by_key_has_a_remark(tmp_path: Path, text, is_by_key):
    notes = profile(tmp_path, a__json=text).notes
    assert ["keys have records" in each for each in notes] == [True] * is_by_key


@pytest.mark.parametrize("around", ["{}", '{{"b": {}}}', '{{"b": [{{"c": {}}}]}}'])
def test_a_key_that_stands_twice_is_named_with_its_file(tmp_path: Path, around: str) -> None:
    for day, record in enumerate(('{"b": 1, "a": 2}', '{"b": 1, "a": 2, "a": 3}'), start=1):
        (tmp_path / f"a-2026-01-0{day}.json").write_text(f"{around.format(record)}\n")
    with pytest.raises(SourceNotReadable, match=r'-02\.json has an object with the key "a" twice'):
        discover([str(tmp_path)], "file:///model/")


def test_a_record_that_is_no_json_is_named(tmp_path: Path) -> None:
    (tmp_path / "a-2026-01-01.json").write_text('{"a": 1}\n' * 9)
    (tmp_path / "a-2026-01-02.json").write_text('{"a": 1}\n' * 4 + '{"a": tru}\n')
    with pytest.raises(SourceNotReadable, match=r"a-2026-01-02\.json, record 5 is not JSON"):
        discover([str(tmp_path)], "file:///model/")


_BEGINNINGS = (
    b"id,name\n1,a\n",
    b'{"a": [1, {"b": 2}]}\n',
    b"PAR1",
    b"Obj\1",
    b"ORC",
    b"ARROW1\0\0",
)


@settings(max_examples=50)
@given(
    st.sampled_from(["csv", "json", "parquet", "avro", "orc", "arrow", "csv.gz", "json.zst"]),
    st.sampled_from(_BEGINNINGS),
    st.binary(max_size=60),
)
def test_bytes_of_any_kind_are_a_source_or_one_error(tmp_path_factory, ending, beginning, rest):
    folder = tmp_path_factory.mktemp("bytes")
    (folder / f"a.{ending}").write_bytes(beginning + rest)
    with suppress(SourceNotReadable):
        discover([str(folder)], "file:///model/")
