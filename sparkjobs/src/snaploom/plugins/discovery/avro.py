"""Files of Avro (object container files, Avro 1.11), and their columns as Arrow has them."""

from __future__ import annotations

import json
import struct
import zlib
from bz2 import BZ2Decompressor
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from io import BytesIO
from typing import BinaryIO

import pyarrow as pa
from pydantic import JsonValue

from snaploom.plugins.discovery.foundfiles import NotRecognised

# Columns of Avro as Arrow has them: values as they are stored become those that they mean.

_PLAIN = {
    "boolean": pa.bool_(), "int": pa.int32(), "long": pa.int64(), "float": pa.float32(),
    "double": pa.float64(), "string": pa.string(), "bytes": pa.binary(), "enum": pa.string(),
    "fixed": pa.binary(),
}  # fmt: skip
_TIMES = {
    "date": pa.date32(), "timestamp-millis": pa.timestamp("ms", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"), "timestamp-nanos": pa.timestamp("ns", "UTC"),
    "local-timestamp-millis": pa.timestamp("ms"), "local-timestamp-micros": pa.timestamp("us"),
    "local-timestamp-nanos": pa.timestamp("ns"),
}  # fmt: skip
"""Types of logical types whose stored numbers Arrow has as they are."""
_NESTED = pa.null()
"""Of records, arrays and maps, which are no part of a key: their values are left out."""


def avro_table(schema: dict[str, JsonValue], records: Sequence[dict[str, object]]) -> pa.Table:
    """Records as a table."""
    given = schema.get("fields")
    fields = (
        [field for field in given if isinstance(field, dict)] if isinstance(given, list) else []
    )
    names = [str(field["name"]) for field in fields]
    columns = [
        _column([record[name] for record in records], field.get("type"))
        for name, field in zip(names, fields, strict=True)
    ]
    return pa.Table.from_arrays(columns, names=names)


def _column(values: Sequence[object], declared: JsonValue) -> pa.Array:
    found, convert = _type_of(declared)
    if found == _NESTED:
        return pa.array([None if value is None else b"" for value in values], pa.binary())
    return pa.array([None if value is None else convert(value) for value in values], found)


def _same(value: object) -> object:
    return value


def _type_of(declared: JsonValue) -> tuple[pa.DataType, Callable[[object], object]]:
    """The type of a column, and the conversion of its stored values."""
    if isinstance(declared, list):
        others = [each for each in declared if each != "null"]
        found = [_type_of(each) for each in others]
        if len(found) == 1:
            return found[0]
        if {str(each) for each in others} == {"int", "long"}:
            return pa.int64(), _same
        return _NESTED, _same
    if isinstance(declared, str):
        return _PLAIN.get(declared, _NESTED), _same
    if not isinstance(declared, dict):
        return _NESTED, _same
    logical, kind = declared.get("logicalType"), declared.get("type")
    if logical in _TIMES and kind in ("int", "long"):
        return _TIMES[str(logical)], _same
    scale, precision = declared.get("scale", 0), declared.get("precision")
    if logical == "decimal" and isinstance(scale, int) and isinstance(precision, int):
        if 1 <= precision <= 38 and 0 <= scale <= precision:
            return pa.decimal128(precision, scale), _decimals(scale)
        return _NESTED, _same
    if isinstance(kind, str):
        return _PLAIN.get(kind, _NESTED), _same
    return _type_of(kind)


def _decimals(scale: int) -> Callable[[object], object]:
    def convert(stored: object) -> object:
        assert isinstance(stored, bytes)
        return Decimal(f"{int.from_bytes(stored, 'big', signed=True)}E-{scale}")

    return convert


# Files of Avro (object container files, Avro 1.11), read record by record.

_MAGIC = b"Obj\x01"
LONGEST_BLOCK = 64 * 1024 * 1024
"""Bytes of one block, unpacked: writers begin a new one after some 16 KiB to some MiB."""
_LONGEST_HEADER = 16 * 1024 * 1024
"""Bytes of one entry of the header, which holds the schema."""
_MOST_MEMBERS = 1_000_000
"""Members of one array or map."""
_DEEPEST = 64
"""Types within types: a schema may name itself."""
_PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})

Decode = Callable[[BytesIO], object]


@dataclass(frozen=True)
class AvroFile:
    """A file whose header was read."""

    schema: dict[str, JsonValue]
    records: Iterator[dict[str, object]]
    """Each with the values as they are stored: days, microseconds, bytes of decimals."""


def open_avro(stream: BinaryIO) -> AvroFile:
    """Read the header of a file; records are read when they are asked for.

    Raises:
        NotRecognised: it is no such file, or is packed in a way that is not known.
    """
    if stream.read(4) != _MAGIC:
        raise NotRecognised("not an object container file of Avro")
    meta: dict[str, bytes] = {}
    while count := _long(stream):
        if count < 0:
            _long(stream)  # bytes of this block, for readers that pass over it
        for _ in range(abs(count)):
            name = _bytes(stream, _LONGEST_HEADER).decode()
            meta[name] = _bytes(stream, _LONGEST_HEADER)
    sync = stream.read(16)
    codec = meta.get("avro.codec", b"null").decode()
    unpack = _CODECS.get(codec)
    if unpack is None:
        raise NotRecognised(f"Avro that is packed as {codec}")
    try:
        schema = json.loads(meta.get("avro.schema", b""))
    except ValueError:
        raise NotRecognised("Avro whose header has no schema") from None
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise NotRecognised("Avro whose records are no records of fields")
    decode = _record(schema, {}, 0)
    return AvroFile(schema, _records(stream, decode, unpack, sync))


def _records(
    stream: BinaryIO, decode: Decode, unpack: Callable[[bytes], bytes], sync: bytes
) -> Iterator[dict[str, object]]:
    while first := stream.read(1):
        count = _long(stream, first)
        content = unpack(_bytes(stream, LONGEST_BLOCK))
        if count > max(1, len(content)):  # records of no bytes at all would never end
            raise NotRecognised("Avro with more records than bytes")
        block = BytesIO(content)
        for _ in range(count):
            record = decode(block)
            assert isinstance(record, dict)
            yield record
        if stream.read(16) != sync:
            raise NotRecognised("Avro whose blocks do not end as its header announces")


def _long(stream: BinaryIO, first: bytes = b"") -> int:
    """A whole number, written with as few bytes as it needs (ZigZag)."""
    number = shift = 0
    byte = first or stream.read(1)
    while True:
        if not byte or shift > 63:
            raise NotRecognised("Avro that ends within a number")
        number |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return (number >> 1) ^ -(number & 1)
        shift += 7
        byte = stream.read(1)


def _bytes(stream: BinaryIO, most: int) -> bytes:
    length = _long(stream)
    if not 0 <= length <= most:
        raise NotRecognised(f"Avro with a value of {length:,} bytes")
    return _exactly(stream, length)


def _exactly(stream: BinaryIO, length: int) -> bytes:
    content = stream.read(length)
    if len(content) < length:
        raise NotRecognised("Avro that ends within a value")
    return content


def _inflated(content: bytes) -> bytes:
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
    return _bounded(unpacker.decompress(content, LONGEST_BLOCK), unpacker.unconsumed_tail)


def _unbzipped(content: bytes) -> bytes:
    unpacker = BZ2Decompressor()
    unpacked = unpacker.decompress(content, LONGEST_BLOCK)
    return _bounded(unpacked, b"" if unpacker.eof else b"more")


def _bounded(unpacked: bytes, rest: bytes) -> bytes:
    if rest:
        raise NotRecognised(f"Avro with a block of more than {LONGEST_BLOCK:,} bytes")
    return unpacked


def _unsnapped(content: bytes) -> bytes:
    """Snappy's form begins with the length, and Avro's ends with a checksum."""
    length = shift = 0
    for byte in content[:5]:
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    _bounded(b"", b"" if length <= LONGEST_BLOCK else b"more")
    return bytes(pa.decompress(content[:-4], decompressed_size=length, codec="snappy"))


def _unzstd(content: bytes) -> bytes:
    with pa.CompressedInputStream(pa.BufferReader(content), "zstd") as stream:
        unpacked = bytes(stream.read(LONGEST_BLOCK + 1))
    return _bounded(unpacked[:LONGEST_BLOCK], unpacked[LONGEST_BLOCK:])


_CODECS: dict[str, Callable[[bytes], bytes]] = {
    "null": bytes, "deflate": _inflated, "bzip2": _unbzipped, "snappy": _unsnapped,
    "zstandard": _unzstd,
}  # fmt: skip


def _decoder(schema: JsonValue, named: dict[str, Decode], depth: int) -> Decode:
    if depth > _DEEPEST:
        raise NotRecognised("Avro whose types are nested too deeply")
    if isinstance(schema, list):
        return _union([_decoder(each, named, depth + 1) for each in schema])
    if isinstance(schema, str):
        if schema in _PRIMITIVES:
            return _PRIMITIVE[schema]
        return lambda stream: _named(named, schema)(stream)
    if not isinstance(schema, dict):
        raise NotRecognised("Avro whose schema is not one")
    kind = schema.get("type")
    if kind == "record":
        return _record(schema, named, depth)
    if kind == "enum":
        return _remember(schema, named, _enum(schema.get("symbols")))
    if kind == "fixed":
        size = schema.get("size")
        if not isinstance(size, int) or not 0 <= size <= LONGEST_BLOCK:
            raise NotRecognised("Avro with a fixed type without a size")
        return _remember(schema, named, lambda stream: _exactly(stream, size))
    if kind == "array":
        return _array(_decoder(schema.get("items"), named, depth + 1))
    if kind == "map":
        return _map(_decoder(schema.get("values"), named, depth + 1))
    return _decoder(kind, named, depth + 1)


def _named(named: dict[str, Decode], name: str) -> Decode:
    found = named.get(name)
    if found is None:
        raise NotRecognised(f"Avro with a type that is nowhere: {name[:100]}")
    return found


def _remember(schema: dict[str, JsonValue], named: dict[str, Decode], decode: Decode) -> Decode:
    name, namespace = str(schema.get("name", "")), schema.get("namespace")
    named[name] = named[name.rpartition(".")[2]] = decode
    if isinstance(namespace, str):
        named[f"{namespace}.{name}"] = decode
    return decode


def _record(schema: dict[str, JsonValue], named: dict[str, Decode], depth: int) -> Decode:
    fields: list[tuple[str, Decode]] = []

    def decode(stream: BytesIO) -> object:
        return {name: read(stream) for name, read in fields}

    _remember(schema, named, decode)
    given = schema.get("fields")
    for field in given if isinstance(given, list) else []:
        if not isinstance(field, dict) or not isinstance(field.get("name"), str):
            raise NotRecognised("Avro with a field without a name")
        fields.append((str(field["name"]), _decoder(field.get("type"), named, depth + 1)))
    return decode


def _union(branches: list[Decode]) -> Decode:
    def decode(stream: BytesIO) -> object:
        branch = _long(stream)
        if not 0 <= branch < len(branches):
            raise NotRecognised("Avro with a value of a type that its schema does not have")
        return branches[branch](stream)

    return decode


def _enum(symbols: JsonValue) -> Decode:
    names = [str(symbol) for symbol in symbols] if isinstance(symbols, list) else []

    def decode(stream: BytesIO) -> object:
        place = _long(stream)
        if not 0 <= place < len(names):
            raise NotRecognised("Avro with a value that its enumeration does not have")
        return names[place]

    return decode


def _array(item: Decode) -> Decode:
    def decode(stream: BytesIO) -> object:
        return [item(stream) for _ in _counted(stream)]

    return decode


def _map(value: Decode) -> Decode:
    def decode(stream: BytesIO) -> object:
        return {_bytes(stream, LONGEST_BLOCK).decode(): value(stream) for _ in _counted(stream)}

    return decode


def _counted(stream: BytesIO) -> Iterator[None]:
    """Once for each member of an array or map, which come in blocks.

    Members without any bytes, of which a few bytes could announce a million, are not taken.
    """
    seen = 0
    while count := _long(stream):
        if count < 0:
            _long(stream)
        seen += abs(count)
        left = stream.getbuffer().nbytes - stream.tell()
        if seen > _MOST_MEMBERS or abs(count) > left:
            raise NotRecognised(f"Avro with an array of more than {_MOST_MEMBERS:,} values")
        for _ in range(abs(count)):
            yield None


def _boolean(stream: BytesIO) -> object:
    return _exactly(stream, 1) != b"\0"


def _float(stream: BytesIO) -> object:
    return struct.unpack("<f", _exactly(stream, 4))[0]


def _double(stream: BytesIO) -> object:
    return struct.unpack("<d", _exactly(stream, 8))[0]


_PRIMITIVE: dict[str, Decode] = {
    "null": lambda _: None,
    "boolean": _boolean,
    "int": _long,
    "long": _long,
    "float": _float,
    "double": _double,
    "bytes": lambda stream: _bytes(stream, LONGEST_BLOCK),
    "string": lambda stream: _bytes(stream, LONGEST_BLOCK).decode("utf-8", "replace"),
}
