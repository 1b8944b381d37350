"""How text is written, by its first bytes; and the types that values fit."""

from __future__ import annotations

import csv
import io

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snaploom.plugins.discovery.dates import (
    DATE,
    DOUBLE,
    LONG,
    STRING,
    TIMESTAMP,
    ColumnType,
    type_of_json,
    type_of_texts,
)
from snaploom.plugins.discovery.foundfiles import NotRecognised, csv_format, json_format

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
        (b",id,name\n0,1,a\n", {"header": "true"}, ("_c0", "id", "name")),
        (b"id,name,ID\n1,a,2\n", {"header": "true"}, ("id0", "name", "ID2")),
        (b"1,a\n2,b\n", {"header": "false"}, ("column_1", "column_2")),
        (b'id,text\n1,"a ""b"", c\nd"\n', {"header": "true"}, ("id", "text")),
        (b'id,text\n1,"a \\"b\\", c"\n', {"header": "true", "escape": "\\"}, ("id", "text")),
    ],
)  # fmt: skip
def test_csv_is_recognised(
    content: bytes, options: dict[str, str], columns: tuple[str, ...]
) -> None:
    found = csv_format(content, is_whole=True)
    assert found.options == options
    assert found.columns == columns


@given(st.lists(st.tuples(_TEXTS, _TEXTS, st.integers()), min_size=2), st.sampled_from(",;|\t"))
def test_what_python_writes_as_csv_is_recognised(
    rows: list[tuple[str, str, int]], separator: str
) -> None:
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


@pytest.mark.parametrize(
    ("values", "kind", "null"),
    [
        (["1", "-20", None], LONG, None),
        (["007", "8"], STRING, None),
        (["1.5", "2"], DOUBLE, None),
        (["1e-3", "2.5E10", ".5"], DOUBLE, None),
        (["1,5", "2,0"], STRING, None),
        (["2026-02-03"], DATE, None),
        (["2026-02-03T10:00:00Z", "2026-02-03 10:00:00"], TIMESTAMP, None),
        (["NA", "3"], LONG, "NA"),
        (["", "3"], LONG, ""),
        ([None, None], STRING, None),
        (["9" * 19], STRING, None),
    ],
)
def test_types_hold_every_value(
    values: list[str | None], kind: ColumnType, null: str | None
) -> None:
    found = type_of_texts(pa.array(values, pa.string()))
    assert (found.type, found.null_text) == (kind, null)


def test_types_of_json_are_those_of_its_values() -> None:
    assert type_of_json([1, None]) == LONG
    assert type_of_json([1, 2.5]) == DOUBLE
    assert type_of_json([2**70]) == STRING
    nested = type_of_json([{"a": [1]}, {"b": "x"}]).data_type.model_dump(exclude_none=True)
    assert [field["name"] for field in nested["struct"]["fields_"]] == ["a", "b"]
