"""Footers that are parsed together, against each parsed by itself."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.hostile.thriftedit import INT64, Value, edited, varint, whole

from snaploom.parquet.batches import FailedFooter, FooterParser, ParsedFooters
from snaploom.parquet.footers import FooterInvalid, bare_footer, parse_footer


def footer(table: pa.Table, **options: object) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def numbers(*values: int | None) -> pa.Table:
    return pa.table({"c": pa.array(values, pa.int64())})


ALIKE = [footer(numbers(*range(at, at + 3)), row_group_size=1 + at % 3) for at in range(6)]
OTHERS = [
    footer(numbers()),
    footer(numbers(*range(20)), row_group_size=1),
    footer(numbers(1, None), write_statistics=False),
    footer(pa.table({"c": [1], "d": ["x"]})),
    footer(numbers(1).replace_schema_metadata({"note": "x"})),
    b"no footer",
]


def described(metadata: pq.FileMetaData, rows: int, groups: range) -> object:
    schema, notes = metadata.schema.to_arrow_schema(), metadata.metadata
    found = [metadata.row_group(group).to_dict() for group in groups]
    return rows, str(schema), notes, metadata.created_by, found


def together(contents: Sequence[bytes]) -> dict[int, object]:
    found: dict[int, object] = {}
    for parsed in FooterParser().parse(contents):
        if isinstance(parsed, FailedFooter):
            found[parsed.place] = None
            continue
        for file in parsed.files:
            found[file.place] = described(parsed.metadata, file.rows, file.groups)
    return found


def single(content: bytes) -> object:
    try:
        found = parse_footer(content)
    except FooterInvalid:
        return None
    return described(found, found.num_rows, range(found.num_row_groups))


@given(contents=st.lists(st.sampled_from([*ALIKE, *OTHERS]), max_size=40))
def test_each_footer_is_what_it_is_by_itself(contents: list[bytes]) -> None:
    assert together(contents) == {place: single(each) for place, each in enumerate(contents)}


def other_rows(found: Value) -> None:
    """More rows than the row groups have."""
    found.fields = [(n, whole(7, INT64) if n == 3 else value) for n, value in found.fields]


def rows_again(found: Value) -> None:
    """A second number of rows, behind the row groups."""
    found.fields.append((3, whole(99, INT64)))


def groups_again(found: Value) -> None:
    found.fields.append((4, found.get(4)))


def other_order(found: Value) -> None:
    found.fields.sort(key=lambda each: each[0] == 3)


@pytest.mark.parametrize("edit", [other_rows, rows_again, groups_again, other_order])
def test_an_odd_footer_is_what_it_is_by_itself_among_its_like(
    edit: Callable[[Value], None],
) -> None:
    contents = [edited(each, edit) for each in ALIKE] * 2 + ALIKE
    assert together(contents) == {place: single(each) for place, each in enumerate(contents)}


@pytest.mark.parametrize("stated", [0, 2, 3, 300])
def test_a_footer_that_states_another_number_of_row_groups_spoils_no_other(stated: int) -> None:
    honest = [footer(numbers(at)) for at in range(4)]
    bare = bare_footer(honest[3])
    count = bytes([stated << 4 | 12]) if stated < 15 else b"\xfc" + varint(stated)
    lying = bare.replace(b"\x16\x02\x19\x1c", b"\x16\x02\x19" + count, 1)
    assert lying != bare
    framed = lying + len(lying).to_bytes(4, "little") + b"PAR1"
    contents = [honest[0], honest[1], framed, honest[2], honest[1]]
    assert together(contents) == {place: single(each) for place, each in enumerate(contents)}


def test_footers_that_are_alike_are_parsed_together() -> None:
    found = list(FooterParser().parse([footer(numbers(at)) for at in range(600)]))
    files = [len(each.files) for each in found if isinstance(each, ParsedFooters)]
    assert files == [1, 256, 256, 87]
