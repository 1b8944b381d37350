"""Files of Avro: values of every type, and bytes that are no Avro."""

import io
import json
import struct
import zlib
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snaploom.files.typedfiles import FAULTS
from snaploom.plugins.discovery import avro as avrofile
from snaploom.plugins.discovery.avro import avro_batches, open_avro
from snaploom.plugins.discovery.foundfiles import NotRecognised

SYNC = b"0123456789abcdef"
FIELDS = [
    {"name": "id", "type": "long"},
    {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
    {"name": "price",
     "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
    {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
    {"name": "tags", "type": {"type": "array", "items": "string"}},
    {"name": "about", "type": {"type": "map", "values": "double"}},
    {"name": "code", "type": {"type": "fixed", "name": "Code", "size": 2}},
    {"name": "next", "type": ["null", "long"]},
    {"name": "again", "type": "Kind"},
    {"name": "half", "type": "float"},
    {"name": "yes", "type": "boolean"},
]  # fmt: skip


NULLS = {"type": "array", "items": "null"}
CODE = {"type": "fixed", "name": "C", "size": 2}
EMPTY = {"type": "map", "values": {"type": "fixed", "name": "F", "size": 0}}


def number(value: int) -> bytes:
    value = (value << 1) ^ (value >> 63)
    found = b""
    while value > 0x7F:
        found += bytes([value & 0x7F | 0x80])
        value >>= 7
    return found + bytes([value])


def text(value: str) -> bytes:
    return number(len(value.encode())) + value.encode()


def avro(*blocks: tuple[int, bytes], codec: str = "null", fields: object = FIELDS) -> bytes:
    schema = json.dumps({"type": "record", "name": "Row", "fields": fields})
    header = number(2) + text("avro.schema") + text(schema) + text("avro.codec") + text(codec)
    body = b"".join(number(n) + number(len(block)) + block + SYNC for n, block in blocks)
    return b"Obj\x01" + header + number(0) + SYNC + body


def row(n: int) -> bytes:
    end = number(0)
    return b"".join([
        number(n), number(20_487), number(1), number(n * 10**6), number(2), b"\x04\xd2", number(1),
        number(1), text("x"), end, number(-1), number(9), text("k"), struct.pack("<d", 1.5), end,
        b"ab", number(0), number(0), struct.pack("<f", 0.5), b"\x01",
    ])  # fmt: skip


CONTENT = avro((2, row(1) + row(-2)), (1, row(3)))


def test_records_are_read_with_their_types() -> None:
    table = avro_batches(pa.BufferReader(CONTENT)).read_all()
    first = table.slice(0, 1).to_pylist()[0]
    assert table.column("id").to_pylist() == [1, -2, 3]
    assert (first["day"], first["at"]) == (
        date(2026, 2, 3),
        datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
    )
    assert (first["price"], first["kind"], first["tags"]) == (Decimal("12.34"), "B", None)
    assert (first["code"], first["half"], first["yes"], first["next"]) == (b"ab", 0.5, True, None)


@given(st.integers(0, len(CONTENT) - 1), st.integers(0, 255))
def test_other_bytes_are_other_records_or_an_error(place: int, value: int) -> None:
    content = bytearray(CONTENT)
    content[place] = value
    with suppress(*FAULTS):
        avro_batches(pa.BufferReader(bytes(content))).read_all()


@given(st.integers(0, len(CONTENT) - 1))
def test_a_file_that_was_cut_is_an_error_or_ends_earlier(length: int) -> None:
    try:
        opened = open_avro(io.BytesIO(CONTENT[:length]))
        assert len(list(opened.records)) in (0, 2)
    except FAULTS:
        pass


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"PAR1", "not an object container"),
        (avro(codec="xz"), "packed as xz"),
        (avro(fields=[{"name": "a", "type": "Nowhere"}]), "nowhere: Nowhere"),
        (avro((1 << 40, b""), fields=[{"name": "a", "type": "null"}]), "no bytes"),
        (avro((1, number(1 << 40)), fields=[{"name": "a", "type": NULLS}]), "no bytes"),
        (avro((1, number(1 << 40)), fields=[{"name": "a", "type": EMPTY}]), "no bytes"),
        # Decoding this natively takes the stack of the process.
        (avro((1, b"\2" * 10**6), fields=[{"name": "a", "type": ["null", "Row"]}]), "itself"),
        (avro(fields=[{"name": name, "type": CODE} for name in "ab"]), "one name"),
        (avro(fields=[{"name": "a", "type": {"type": "error", "name": "E"}}]), "nowhere: error"),
    ],
)  # fmt: skip
def test_what_is_no_avro_is_an_error_with_the_reason(content: bytes, why: str) -> None:
    with pytest.raises(NotRecognised, match=why):
        list(open_avro(io.BytesIO(content)).records)


def test_a_block_that_unpacks_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avrofile, "LONGEST_BLOCK", 1000)
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = packer.compress(bytes(10_000)) + packer.flush()
    with pytest.raises(NotRecognised, match="more than 1,000 bytes"):
        list(open_avro(io.BytesIO(avro((1, packed), codec="deflate"))).records)
