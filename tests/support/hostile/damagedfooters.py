"""Parquet files whose footers Arrow can parse, but not always be asked about."""

from __future__ import annotations

import base64
import io
import random
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
from support.hostile.thriftedit import INT32, INT64, LIST, STRUCT, TEXT, Value, text, varint, whole

TABLE = pa.table({
    "id": pa.array(range(10), pa.int64()),
    "text": [f"x{n}" for n in range(10)],
    "half": pa.array([1.5] * 10, pa.float32()),
    "price": pa.array([Decimal("1.23")] * 10, pa.decimal128(20, 2)),
    "day": [date(2026, 1, 1)] * 10,
    "is_new": [True] * 10,
    "lines": [{"n": 1, "tags": [1, 2]}] * 10,
})  # fmt: skip
Edit = Callable[[Value], None]


def parquet_file(table: pa.Table = TABLE, **options: object) -> bytes:
    """The bytes of a file of two row groups."""
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=5, **options)
    return sink.getvalue()


def first_chunk(footer: Value) -> Value:
    """The first column chunk of a file, a column of whole numbers."""
    return footer.get(4).members[0].get(1).members[0]


def _described(footer: Value) -> Value:
    return first_chunk(footer).get(3)


def _other_type(footer: Value) -> None:
    _described(footer).fields[0] = (1, whole(5))


def _type_again(footer: Value) -> None:
    _described(footer).fields.append((1, whole(5)))


def _short_bound(footer: Value) -> None:
    _described(footer).get(12).put(6, text(b"abc"))


def _long_histogram(footer: Value) -> None:
    numbers = Value(LIST, members=[whole(1, INT64)] * 9, of=INT64)
    _described(footer).get(16).put(3, numbers)


def _bytes_of_numbers(footer: Value) -> None:
    sizes = _described(footer).get(16)
    sizes.fields = [(1, whole(9, INT64)), *sizes.fields]


def _encodings_as_texts(footer: Value) -> None:
    _described(footer).get(2).of = TEXT


def _notes_as_numbers(footer: Value) -> None:
    footer.get(5).of = INT32


def _no_description(footer: Value) -> None:
    first_chunk(footer).fields = first_chunk(footer).fields[:1]


def _encrypted(footer: Value) -> None:
    path = Value(LIST, members=[text(b"id")], of=TEXT)
    key = Value(STRUCT, fields=[(1, path)])
    first_chunk(footer).put(8, Value(STRUCT, fields=[(2, key)]))


def _fewer_columns(footer: Value) -> None:
    del footer.get(4).members[0].get(1).members[0]


def _no_columns(footer: Value) -> None:
    footer.get(4).members[0].get(1).members.clear()


ODD: dict[str, Edit] = {
    "other type": _other_type,
    "type again": _type_again,
    "short bound": _short_bound,
    "long histogram": _long_histogram,
    "bytes of numbers": _bytes_of_numbers,
    "encodings as texts": _encodings_as_texts,
    "notes as numbers": _notes_as_numbers,
    "no description": _no_description,
    "encrypted": _encrypted,
    "fewer columns": _fewer_columns,
    "no columns": _no_columns,
}
"""Changes to a footer after which nobody should ask Arrow about its first column."""


class _Keys(pe.KmsClient):
    """Keys that are wrapped in nothing."""

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
        return base64.b64encode(key_bytes)

    def unwrap_key(self, wrapped_key: bytes, master_key_identifier: str) -> bytes:
        return base64.b64decode(wrapped_key)


def write_with_encrypted_column(file: Path) -> None:
    """Write a file whose footer anybody can read, and of whose columns one is encrypted."""
    factory = pe.CryptoFactory(lambda config: _Keys())
    settings = pe.EncryptionConfiguration(
        footer_key="footer", column_keys={"column": ["text"]}, plaintext_footer=True
    )
    properties = factory.file_encryption_properties(pe.KmsConnectionConfig(), settings)
    with pq.ParquetWriter(file, TABLE.schema, encryption_properties=properties) as writer:
        writer.write_table(TABLE)


def damage(footer: Value, random: random.Random) -> None:
    """Change one to three values of the row groups: numbers, texts, lists, fields."""
    for _ in range(random.randint(1, 3)):
        _change(random.choice(_values(footer.get(4))), random)


def _values(value: Value) -> list[Value]:
    members = [*value.members, *(each for _, each in value.fields)]
    return [value, *(found for each in members for found in _values(each))]


def _change(value: Value, random: random.Random) -> None:
    if value.kind in (INT32, INT64):
        value.raw = varint(random.choice([0, 1, 2, 4, 10, 12, 2**32 - 1, 2**64 - 1]))
    elif value.kind == TEXT:
        length = random.choice([0, 1, 3, 4, 7, 8, 12, 16, 17])
        value.raw = varint(length) + random.randbytes(length)
    elif value.kind == STRUCT and value.fields:
        place = random.randrange(len(value.fields))
        number, found = value.fields[place]
        others = [found, whole(3), text(b"ab"), Value(STRUCT)]
        match random.randrange(4):
            case 0:
                del value.fields[place]
            case 1:
                value.fields.append((random.randint(1, 20), random.choice(others)))
            case 2:
                value.fields[place] = (random.randint(1, 16), found)
            case _:
                value.fields[place] = (number, random.choice(others))
    elif value.kind == LIST and value.members:
        if random.random() < 0.5:
            del value.members[random.randrange(len(value.members))]
        else:
            value.members.append(random.choice(value.members))
