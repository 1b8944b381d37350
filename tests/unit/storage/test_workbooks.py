"""Sheets of workbooks as batches of Arrow: values as openpyxl has them, or the cell at fault."""

import datetime as dt
import io
import zipfile

import openpyxl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.storage.disks import cuts_that_pass

from snaploom.files import workbooks
from snaploom.files.workbooks import open_xlsx, tables_of

PLACE = "xl/worksheets/sheet1.xml"


def written(*rows, sheets=(), **settings):
    """The bytes of a workbook, by openpyxl."""
    book = openpyxl.Workbook()
    for name, value in settings.items():
        setattr(book, name, value)
    for row in rows:
        book.active.append(row)
    for name, state in sheets:
        book.create_sheet(name).sheet_state = state
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def changed(content, old, new, part=PLACE):
    """A workbook with other XML in a part."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as book, zipfile.ZipFile(out, "w", 8) as target:
        for name in book.namelist():
            text = book.read(name).decode()
            assert name != part or old in text
            target.writestr(name, text.replace(old, new) if name == part else text)
    return out.getvalue()


def rows(content, **options):
    return open_xlsx(pa.BufferReader(content), **options).read_all().to_pylist()


def fault(content, **options):
    with pytest.raises(ValueError, match=r".+") as error:
        rows(content, **options)
    return str(error.value)


@pytest.mark.parametrize(
    ("values", "kind", "read"),
    [
        ([1, None, -3], "int64", [1, None, -3]),
        ([1, 2.5], "double", [1.0, 2.5]),
        (["007", 7], "string", ["007", "7"]),
        ([True, False], "bool", [True, False]),
        ([True, 1], "string", ["true", "1"]),
        ([dt.date(2020, 2, 29)], "date32[day]", [dt.date(2020, 2, 29)]),
        ([dt.date(1900, 1, 1), dt.date(1900, 3, 1)], "date32[day]",
         [dt.date(1900, 1, 1), dt.date(1900, 3, 1)]),
        ([dt.date(2020, 1, 2), dt.datetime(2020, 1, 2, 3, 4, 5)], "timestamp[us]",
         [dt.datetime(2020, 1, 2), dt.datetime(2020, 1, 2, 3, 4, 5)]),
        ([dt.date(2020, 1, 2), "open"], "string", ["2020-01-02", "open"]),
        ([dt.time(3, 4), dt.timedelta(hours=30)], "string", ["03:04:00", "30:00:00"]),
        ([None, None], "null", [None, None]),
        (["a\nb", " c ", ""], "string", ["a\nb", " c ", None]),
    ],
)  # fmt: skip
def test_a_column_has_the_type_that_holds_its_values(values, kind, read):
    content = written(["key", "value"], *([n, value] for n, value in enumerate(values)))
    table = open_xlsx(pa.BufferReader(content)).read_all()
    assert str(table.schema.field("value").type) == kind
    assert table.column("value").to_pylist() == read


CELLS = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**14), 10**14), st.floats(-1e9, 1e9, width=32),
    st.text("aü\n<&_x0", min_size=1), st.dates(dt.date(1900, 3, 1)),
    st.datetimes(dt.datetime(1900, 3, 1), dt.datetime(2999, 1, 1)).map(
        lambda d: d.replace(microsecond=0)),
)  # fmt: skip


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=8), st.booleans())
def test_cells_are_those_that_openpyxl_reads(drawn, is_from_1904):
    epoch = openpyxl.utils.datetime.CALENDAR_MAC_1904 if is_from_1904 else None
    content = written(["a", "b", "c"], *drawn, **({"epoch": epoch} if epoch else {}))
    text = pa.schema([(name, pa.string()) for name in "abc"])
    sheet = openpyxl.load_workbook(io.BytesIO(content)).active
    there = [row for row in sheet.iter_rows(min_row=2) if any(
        cell.value is not None for cell in row)]  # fmt: skip
    found = [tuple(row.values()) for row in rows(content, schema=text)]
    assert found == [tuple(map(as_text, row)) for row in there]


def as_text(cell):
    value = cell.value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dt.datetime):  # openpyxl has dates as times
        return value.isoformat(" ") if "h" in cell.number_format else str(value.date())
    return None if value is None else str(value)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('<c r="A2" t="n"><v>1</v>', '<c r="A2" t="e"><v>#N/A</v>',
         'cell A2 has the error #N/A: correct it, as by IFERROR'),
        ('<c r="A2" t="n"><v>1</v>', '<c r="A2" t="s"><v>9</v>', "cell A2 cannot be read"),
        ('<c r="A2" t="n"><v>1</v>', '<c r="A2" t="n"><v>0x1</v>', "cell A2 cannot be read"),
        ('<c r="B2"', '<c r="XFD2"', "cell XFD2 is beside the header, which ends in B1"),
        ('<c r="B2"', '<c r="ZZZ2"', "its cells are out of order in row 2"),
        ('<row r="2"', '<row r="1"', "its rows are out of order behind row 1"),
        ("</sheetData>", '</sheetData><mergeCells><mergeCell ref="A2:A3"/></mergeCells>',
         "the cells A2:A3 are merged"),
        ("<worksheet", '<!DOCTYPE a [<!ENTITY b "c">]><worksheet', "declares entities"),
        ("</sheetData>", "", "cannot be read: mismatched tag"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_named_by_its_cell(old, new, reason):
    assert reason in fault(changed(written(["a", "b"], [1, 2], [3, 4]), old, new))


def test_a_text_that_is_no_value_may_be_declared():
    old, new = '<c r="A2" t="n"><v>1</v>', '<c r="A2" t="e"><v>#N/A</v>'
    content = changed(written(["a"], [1], [2]), old, new)
    assert rows(content, null_value="#N/A") == [{"a": 2}]


def test_rows_and_columns_without_a_value_are_none():
    content = written([None], ["a", None, "b", None], [None], [1, None, 2], [None], [3])
    assert rows(content) == [{"a": 1, "_c1": None, "b": 2}, {"a": 3, "_c1": None, "b": None}]


def test_cells_above_the_header_are_refused():
    reason = fault(written(["Report of May"], ["id", "name"], [1, "x"]))
    assert reason.startswith("cell B2 is beside the header, which ends in A1")


def test_without_a_header_columns_have_numbers():
    content = written([1, "x"], [2, "y", True])
    assert list(rows(content, header="false")[0].items()) == [
        ("column_1", 1), ("column_2", "x"), ("column_3", None)
    ]  # fmt: skip


def test_only_one_visible_sheet_needs_no_name():
    content = written(["a"], [1], sheets=[("Old", "hidden"), ("Older", "veryHidden")])
    assert rows(content) == [{"a": 1}]
    assert [(each.name, bool(each.why_not)) for each in tables_of(pa.BufferReader(content))] == [
        ("Sheet", False), ("Old", True), ("Older", True)
    ]  # fmt: skip
    several = written(["a"], [1], sheets=[("B", "visible")])
    assert fault(several) == "the option `sheet` names none; its sheets are Sheet, B"


@pytest.mark.parametrize("code", ["0.00", '"day" 0', "[Red]0", r"\d0", "General", "#,##0 [$€-407]"])
def test_a_format_without_a_date_leaves_a_number(code):
    book = openpyxl.Workbook()
    book.active.append(["a"])
    book.active.append([44000])
    book.active["A2"].number_format = code
    book.save(out := io.BytesIO())
    assert rows(out.getvalue()) == [{"a": 44000}]


def test_a_bomb_is_refused_by_its_declared_size(monkeypatch):
    monkeypatch.setattr(workbooks, "_LARGEST_SHEET", 100_000)
    content = changed(written(["a"], [1]), "</row>", " " * 200_000 + "</row>")
    assert len(content) < 20_000
    assert "bytes, and at most 100,000 are unpacked" in fault(content)


def test_a_huge_cell_is_refused():
    reason = fault(changed(written(["a"], ["xyz"]), "xyz", "x" * (2 << 20)))
    assert reason == "cell A2 has more than 1,048,576 characters"


def test_a_cell_in_the_last_corner_takes_no_memory():
    last = '<row r="1048576"><c r="A1048576"><v>2</v></c></row></sheetData>'
    content = changed(written(["a"], [1]), "</sheetData>", last)
    assert rows(content) == [{"a": 1}, {"a": 2}]


def test_a_workbook_with_a_password_is_refused():
    assert "password" in fault(b"\xd0\xcf\x11\xe0" + bytes(600))


def test_every_cut_is_refused():
    assert cuts_that_pass(open_xlsx, written(["a"], [1])) == []
