"""Files of Avro (object container files, Avro 1.11): their blocks, and records as Arrow has them.

Values are decoded by fastavro; blocks are unpacked here, since it unpacks any number of bytes.
"""

import json
import zlib
from bz2 import BZ2Decompressor
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from typing import BinaryIO

import pyarrow as pa
from fastavro import parse_schema, schemaless_reader
from fastavro.schema import SchemaParseException, UnknownType
from fastavro.types import Schema
from pydantic import JsonValue

from snaploom.plugins.discovery.foundfiles import NotRecognised

_PLAIN = {
    "boolean": pa.bool_(), "int": pa.int32(), "long": pa.int64(), "float": pa.float32(),
    "double": pa.float64(), "string": pa.string(), "bytes": pa.binary(), "enum": pa.string(),
    "fixed": pa.binary(),
}  # fmt: skip
_TIMES = {
    "date": pa.date32(),
    "timestamp-millis": pa.timestamp("us", "UTC"), "timestamp-micros": pa.timestamp("us", "UTC"),
    "local-timestamp-millis": pa.timestamp("us"), "local-timestamp-micros": pa.timestamp("us"),
}  # fmt: skip
_PRIMITIVE = {"null": False, **dict.fromkeys(set(_PLAIN) - {"enum", "fixed"}, True)}
"""Whether their values take bytes."""
_NESTED = pa.list_(pa.null())
"""Of records, arrays, maps and other logical types, which are no part of a key."""
_BATCH = 10_000
"""Records of one batch."""


@dataclass(frozen=True)
class AvroFile:
    """A file whose header was read."""

    schema: dict[str, JsonValue]
    records: Iterator[dict[str, object]]


def avro_batches(file: pa.NativeFile) -> pa.RecordBatchReader:
    """The records of a file; values of nested types are left out.

    Raises:
        NotRecognised: it is no such file, or is packed or nested in a way that is not known.
    """
    opened = open_avro(file)
    fields = opened.schema.get("fields")
    given = [each for each in fields if isinstance(each, dict)] if isinstance(fields, list) else []
    schema = pa.schema([(str(each["name"]), _type_of(each.get("type"))) for each in given])

    def batches() -> Iterator[pa.RecordBatch]:
        while records := list(islice(opened.records, _BATCH)):
            arrays = [
                pa.nulls(len(records), one.type) if one.type == _NESTED
                else _array([record[one.name] for record in records], one.type)
                for one in schema
            ]  # fmt: skip
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def _array(values: list[object], found: pa.DataType) -> pa.Array:
    if found == pa.string():  # of which some are decoded as UUIDs
        values = [None if value is None else str(value) for value in values]
    return pa.array(values, found)


def _type_of(declared: JsonValue) -> pa.DataType:
    if isinstance(declared, list):
        others = [each for each in declared if each != "null"]
        if len(others) == 1:
            return _type_of(others[0])
        return pa.int64() if {str(each) for each in others} == {"int", "long"} else _NESTED
    if isinstance(declared, str):
        return _PLAIN.get(declared, _NESTED)
    if not isinstance(declared, dict):
        return _NESTED
    logical, kind = declared.get("logicalType"), declared.get("type")
    scale, precision = declared.get("scale", 0), declared.get("precision")
    if logical == "decimal" and isinstance(scale, int) and isinstance(precision, int):
        is_held = 1 <= precision <= 38 and 0 <= scale <= precision
        return pa.decimal128(precision, scale) if is_held else _NESTED
    if logical in _TIMES and kind in ("int", "long"):
        return _TIMES[str(logical)]
    if logical in ("time-millis", "time-micros"):
        raise NotRecognised(f"Spark has no type for times of day ({logical}): write texts")
    return _NESTED if logical is not None and logical != "uuid" else _type_of(kind)


# Blocks of a file, each unpacked within bounds.

_MAGIC = b"Obj\x01"
LONGEST_BLOCK = 64 * 1024 * 1024
"""Bytes of one block, unpacked: writers begin a new one after some 16 KiB to some MiB."""
_LONGEST_HEADER = 16 * 1024 * 1024
"""Bytes of one entry of the header, which holds the schema."""
_DEEPEST = 64
"""Types within types: a schema may name itself."""


def open_avro(stream: BinaryIO) -> AvroFile:
    """Read the header of a file; records are read when they are asked for.

    Raises:
        NotRecognised: it is no such file, or is packed or nested in a way that is not known.
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
    if not _takes_bytes(schema, {}, 0):
        raise NotRecognised("Avro whose records have no bytes")
    try:
        parsed = parse_schema(schema)
    except (SchemaParseException, UnknownType) as error:
        raise NotRecognised(f"Avro whose schema is not one: {str(error)[:200]}") from None
    return AvroFile(schema, _records(stream, parsed, unpack, sync))


def _takes_bytes(schema: JsonValue, named: dict[str, bool | None], depth: int) -> bool:
    """Whether each value takes a byte or more, so that there are no more values than bytes.

    Raises:
        NotRecognised: that is not so of members of an array or a map, or a type contains itself,
            which Spark does not read either.
    """
    if depth > _DEEPEST:
        raise NotRecognised("Avro whose types are nested too deeply")
    if isinstance(schema, str):
        known = {**_PRIMITIVE, **named}.get(schema.rpartition(".")[2], schema)
        if isinstance(known, str):
            raise NotRecognised(f"Avro with a type that is nowhere: {schema[:100]}")
        if known is None:
            raise NotRecognised("Avro with a type that contains itself")
        return known
    if isinstance(schema, list):
        for branch in schema:
            _takes_bytes(branch, named, depth + 1)
        return True
    if not isinstance(schema, dict):
        raise NotRecognised("Avro whose schema is not one")
    kind, name = schema.get("type"), str(schema.get("name")).rpartition(".")[2]
    if kind in ("array", "map"):
        if not _takes_bytes(schema.get("items" if kind == "array" else "values"), named, depth + 1):
            raise NotRecognised("Avro with members of no bytes, of which there may be any number")
        return True
    if kind in ("record", "enum", "fixed") and name in named:
        raise NotRecognised("Avro with two types of one name")
    if kind == "record":
        named[name] = None
        fields = schema.get("fields")
        members = [
            _takes_bytes(each.get("type") if isinstance(each, dict) else None, named, depth + 1)
            for each in (fields if isinstance(fields, list) else [])
        ]
        named[name] = any(members)
        return any(members)
    if kind in ("enum", "fixed"):
        named[name] = kind == "enum" or schema.get("size") != 0
        return named[name] is True
    return _takes_bytes(kind, named, depth + 1)


def _records(
    stream: BinaryIO, schema: Schema, unpack: Callable[[bytes], bytes], sync: bytes
) -> Iterator[dict[str, object]]:
    while first := stream.read(1):
        count = _long(stream, first)
        block = BytesIO(unpack(_bytes(stream, LONGEST_BLOCK)))
        for _ in range(count):
            record = schemaless_reader(block, schema, None)
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
